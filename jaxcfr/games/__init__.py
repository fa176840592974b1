"""Rules of games: the `Game` and `ArrayGame` protocols, the bundled games, and their names.

Nothing here knows of solvers or trees; `jaxcfr.lower` turns a root into tensors.
"""

from jaxcfr.games.array_game import ArrayGame, as_game
from jaxcfr.games.base import Game
from jaxcfr.games.battleship import Battleship
from jaxcfr.games.biased_coin import BiasedCoin
from jaxcfr.games.dice_poker import DicePoker
from jaxcfr.games.first_price_auction import FirstPriceAuction
from jaxcfr.games.goofspiel import Goofspiel
from jaxcfr.games.kuhn_poker import KuhnPoker
from jaxcfr.games.leduc_poker import LeducPoker
from jaxcfr.games.liars_dice import LiarsDice
from jaxcfr.games.matching_pennies import MatchingPennies
from jaxcfr.games.normal_form_game import NormalFormGame, matrix_game, normal_form
from jaxcfr.games.options import GameOption
from jaxcfr.games.oshi_zumo import OshiZumo
from jaxcfr.games.registry import GameInfo, list_games, load_game, register_game
from jaxcfr.games.rhode_island import RhodeIsland
from jaxcfr.games.rock_paper_scissors import RockPaperScissors
from jaxcfr.games.validate import ValidationReport, validate_game

__all__ = [
    "ArrayGame",
    "Battleship",
    "BiasedCoin",
    "DicePoker",
    "FirstPriceAuction",
    "Game",
    "GameInfo",
    "GameOption",
    "Goofspiel",
    "KuhnPoker",
    "LeducPoker",
    "LiarsDice",
    "MatchingPennies",
    "NormalFormGame",
    "OshiZumo",
    "RhodeIsland",
    "RockPaperScissors",
    "ValidationReport",
    "as_game",
    "list_games",
    "load_game",
    "matrix_game",
    "normal_form",
    "register_game",
    "validate_game",
]
