"""The bundled games that grow large, as array games.

Each has the options of the plain game in `jaxcfr.games`, and lowers to the same tree, bit for bit.
"""

from jaxcfr.games.arrays.goofspiel import ArrayGoofspiel
from jaxcfr.games.arrays.kuhn_poker import ArrayKuhnPoker
from jaxcfr.games.arrays.leduc_poker import ArrayLeducPoker
from jaxcfr.games.arrays.liars_dice import ArrayLiarsDice

__all__ = ["ArrayGoofspiel", "ArrayKuhnPoker", "ArrayLeducPoker", "ArrayLiarsDice"]
