"""jaxcfr: counterfactual regret minimization in JAX.

rules of a game --lower--> LoweredGame: GameTree + keys --solve--> SolverState --> strategy --> analytics, Profile
"""

from typing import TYPE_CHECKING, Any

from jaxcfr import errors, interop, plotting
from jaxcfr.abstraction import Abstracted, Abstraction, Identity, MergedInfosets, lift
from jaxcfr.analytics import (
    Comparison,
    best_response,
    best_response_values,
    cce_gap,
    compare,
    counterfactual_best_response,
    counterfactual_reach,
    counterfactual_values,
    expected_payoffs,
    exploitability,
    gains,
    nash_conv,
)
from jaxcfr.array_play import TablePolicy, sample_play, table_policy, uniform_policy
from jaxcfr.bounds import ExploitabilityBound, LocalBestResponse, SampledBestResponse, exploitability_bound
from jaxcfr.decomposition import CFRDSolution, Decomposition, LPSolver, ResolvedSubgame, SubgameSolver, cfr_d, decompose
from jaxcfr.games import (
    ArrayGame,
    Game,
    as_game,
    list_games,
    load_game,
    matrix_game,
    normal_form,
    register_game,
    validate_game,
)
from jaxcfr.interior import perturb_uniform, rtcfr_solve
from jaxcfr.linear_program import solve_lp
from jaxcfr.play import (
    Estimate,
    HeadToHead,
    UniformPlayer,
    expected_payoffs_sampled,
    head_to_head,
    play_batch,
    play_match,
    play_out,
)
from jaxcfr.prescribed import Blend, Locks, blend, lock
from jaxcfr.profile import Profile
from jaxcfr.regret.matching import regret_matching
from jaxcfr.regret.schedules import constant, geometric, linear, polynomial
from jaxcfr.regret.variants import (
    RegretVariant,
    cfr_plus,
    dcfr,
    dcfr_plus,
    hs_cfr_plus,
    hs_dcfr,
    hs_pcfr_plus,
    linear_cfr,
    pcfr_plus,
    pdcfr_plus,
    sapcfr_plus,
    vanilla,
)
from jaxcfr.report import report_page, write_report
from jaxcfr.solve import SolverState, average_strategy, current_strategy, solve, state_from_profile, unvisited
from jaxcfr.solve_game import SampledRun, solve_game
from jaxcfr.subgames import (
    Blueprint,
    DepthLimitedSubgame,
    PublicSubgame,
    SolvedSubgame,
    Subgame,
    SubgameAgent,
    check_invariants,
    compose_profiles,
    continuation_value,
    solve_subgame,
    solve_subgame_depth_limited,
    solve_subgame_plain,
    solve_together,
)
from jaxcfr.trainer import Trainer
from jaxcfr.traversal.base import SamplingState, Traversal, full_tree
from jaxcfr.traversal.baselines import control_variate
from jaxcfr.traversal.full_tree import counterfactual_regrets
from jaxcfr.traversal.pruning import probabilistic_pruning, safe_pruning
from jaxcfr.traversal.sampling import chance_sampling, external_sampling, outcome_sampling
from jaxcfr.tree.build import build_tree
from jaxcfr.tree.convert import uniform_strategy
from jaxcfr.tree.game_tree import GameTree, Strategy, stack
from jaxcfr.tree.lower import LoweredGame, lower
from jaxcfr.tree.nodes import NodeTable

if TYPE_CHECKING:
    from jaxcfr import deep

__version__ = "0.1.0"

__all__ = [
    "Abstracted",
    "Abstraction",
    "ArrayGame",
    "Blend",
    "Blueprint",
    "CFRDSolution",
    "Comparison",
    "Decomposition",
    "DepthLimitedSubgame",
    "Estimate",
    "ExploitabilityBound",
    "Game",
    "GameTree",
    "HeadToHead",
    "Identity",
    "LPSolver",
    "LocalBestResponse",
    "Locks",
    "LoweredGame",
    "MergedInfosets",
    "NodeTable",
    "Profile",
    "PublicSubgame",
    "RegretVariant",
    "ResolvedSubgame",
    "SampledBestResponse",
    "SampledRun",
    "SamplingState",
    "SolvedSubgame",
    "SolverState",
    "Strategy",
    "Subgame",
    "SubgameAgent",
    "SubgameSolver",
    "TablePolicy",
    "Trainer",
    "Traversal",
    "UniformPlayer",
    "as_game",
    "average_strategy",
    "best_response",
    "best_response_values",
    "blend",
    "build_tree",
    "cce_gap",
    "cfr_d",
    "cfr_plus",
    "chance_sampling",
    "check_invariants",
    "compare",
    "compose_profiles",
    "constant",
    "continuation_value",
    "control_variate",
    "counterfactual_best_response",
    "counterfactual_reach",
    "counterfactual_regrets",
    "counterfactual_values",
    "current_strategy",
    "dcfr",
    "dcfr_plus",
    "decompose",
    "deep",
    "errors",
    "expected_payoffs",
    "expected_payoffs_sampled",
    "exploitability",
    "exploitability_bound",
    "external_sampling",
    "full_tree",
    "gains",
    "geometric",
    "head_to_head",
    "hs_cfr_plus",
    "hs_dcfr",
    "hs_pcfr_plus",
    "interop",
    "lift",
    "linear",
    "linear_cfr",
    "list_games",
    "load_game",
    "lock",
    "lower",
    "matrix_game",
    "nash_conv",
    "normal_form",
    "outcome_sampling",
    "pcfr_plus",
    "pdcfr_plus",
    "perturb_uniform",
    "play_batch",
    "play_match",
    "play_out",
    "plotting",
    "polynomial",
    "probabilistic_pruning",
    "register_game",
    "regret_matching",
    "report_page",
    "rtcfr_solve",
    "safe_pruning",
    "sample_play",
    "sapcfr_plus",
    "solve",
    "solve_game",
    "solve_lp",
    "solve_subgame",
    "solve_subgame_depth_limited",
    "solve_subgame_plain",
    "solve_together",
    "stack",
    "state_from_profile",
    "table_policy",
    "uniform_policy",
    "uniform_strategy",
    "unvisited",
    "validate_game",
    "vanilla",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Imports `jaxcfr.deep` when it is first asked for: it needs optax, which takes its time."""
    if name == "deep":
        import importlib

        return importlib.import_module("jaxcfr.deep")
    raise AttributeError(f"module 'jaxcfr' has no attribute {name!r}")
