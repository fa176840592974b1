"""Rules of games: the `Game` and `ArrayGame` protocols, the bundled games, and their names.

Nothing here knows of solvers or trees; `jaxcfr.lower` turns a root into tensors.
"""

from jaxcfr.games.array_game import ArrayGame, as_game
from jaxcfr.games.base import Game
from jaxcfr.games.biased_coin import BiasedCoin
from jaxcfr.games.goofspiel import Goofspiel
from jaxcfr.games.kuhn_poker import KuhnPoker
from jaxcfr.games.leduc_poker import LeducPoker
from jaxcfr.games.liars_dice import LiarsDice
from jaxcfr.games.matching_pennies import MatchingPennies
from jaxcfr.games.options import GameOption
from jaxcfr.games.registry import GameInfo, list_games, load_game, register_game
from jaxcfr.games.rock_paper_scissors import RockPaperScissors
from jaxcfr.games.validate import ValidationReport, validate_game

__all__ = [
    "ArrayGame",
    "BiasedCoin",
    "Game",
    "GameInfo",
    "GameOption",
    "Goofspiel",
    "KuhnPoker",
    "LeducPoker",
    "LiarsDice",
    "MatchingPennies",
    "RockPaperScissors",
    "ValidationReport",
    "as_game",
    "list_games",
    "load_game",
    "register_game",
    "validate_game",
]
