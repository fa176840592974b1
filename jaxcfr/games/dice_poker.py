"""Dice poker: two rolls in secret, two rounds of betting.

Rules: both players pay an ante of 1 chip, and each rolls a die of `dice_sides` faces
that only it sees. In turn, player 0 first, they check or bet 2 chips; who faces a bet
folds, calls, or raises by 2 (at most `max_raises` bets and raises a round). If nobody
folded, each rolls a second die, again in secret, and there is another round with bets
of 4 chips. Then the higher sum of two dice takes the pot, and equal sums share it.

Payoffs (chips): what a player takes from the pot less what it put in.

Value to player 0 with one bet a round, for 2 and 3 faces: -19/400 and -12209/225261
(linear programs over the sequence form, solved to 1e-16; the fractions are read off the
decimals). Other values are not stated.

Source: made for this library, as a small game whose chance moves are independent.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from jaxcfr.games.limit_poker import LimitPoker
from jaxcfr.games.options import GameOption, canonical_name

OPTIONS = (
    GameOption("dice_sides", int, 3, "faces of a die", minimum=1, maximum=100),
    GameOption("max_raises", int, 1, "bets and raises in a round", minimum=0, maximum=100),
)

# By number of faces, for one bet a round.
_VALUES = {2: Fraction(-19, 400), 3: Fraction(-12209, 225261)}


class _Rules:
    """What all histories of one game share; see `jaxcfr.games.limit_poker.Rules`."""

    __slots__ = ("_roll", "ante", "deals", "max_raises", "name", "sees", "stakes", "value")

    def __init__(self, **values: Any) -> None:
        values = {option.name: option.check("dice_poker", values[option.name]) for option in OPTIONS}
        sides: int = values["dice_sides"]
        self.name = canonical_name("dice_poker", OPTIONS, values)
        self.ante = 1
        self.stakes: tuple[int, ...] = (2, 4)
        self.deals: tuple[int, ...] = (2, 2)
        self.sees: tuple[int, ...] = (0, 1, 0, 1)
        self.max_raises: int = values["max_raises"]
        self.value: Fraction | float | None = _VALUES.get(sides) if self.max_raises == 1 else None
        self._roll = tuple((face, Fraction(1, sides)) for face in range(1, sides + 1))

    def outcomes(self, dealt: tuple[int, ...]) -> tuple[tuple[int, Fraction], ...]:
        return self._roll

    def shown(self, outcome: int) -> str:
        return str(outcome)

    def winner(self, dealt: tuple[int, ...]) -> int:
        difference = dealt[0] + dealt[2] - dealt[1] - dealt[3]
        return -1 if difference == 0 else 0 if difference > 0 else 1


class DicePoker(LimitPoker):
    """Dice poker; actions 0, 1 and 2 are fold, call and raise, outcome f of chance is the face f.

    Args:
        dice_sides: faces of a die.
        max_raises: bets and raises in a round.
    """

    __slots__ = ()

    def __init__(self, dice_sides: int = 3, max_raises: int = 1) -> None:
        super().__init__(_Rules(dice_sides=dice_sides, max_raises=max_raises))
