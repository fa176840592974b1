"""Parts of games, solved again with the rest fixed: subgames, blueprints, re-solving, depth limits, composition."""

from jaxcfr.subgames.agent import SubgameAgent
from jaxcfr.subgames.blueprint import Blueprint
from jaxcfr.subgames.compose import check_invariants, compose_profiles, continuation_value
from jaxcfr.subgames.public import PublicSubgame
from jaxcfr.subgames.solved import SolvedSubgame
from jaxcfr.subgames.solving import solve_subgame, solve_subgame_depth_limited, solve_subgame_plain, solve_together
from jaxcfr.subgames.subgame import DepthLimitedSubgame, Subgame

__all__ = [
    "Blueprint",
    "DepthLimitedSubgame",
    "PublicSubgame",
    "SolvedSubgame",
    "Subgame",
    "SubgameAgent",
    "check_invariants",
    "compose_profiles",
    "continuation_value",
    "solve_subgame",
    "solve_subgame_depth_limited",
    "solve_subgame_plain",
    "solve_together",
]
