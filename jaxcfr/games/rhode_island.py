"""Rhode Island hold'em with a small deck.

Rules: a deck of `ranks` x `suits` cards. Both players pay an ante of 5 chips and are
dealt one card each. Three rounds of betting follow, with bets and raises of 10, 20
and 20 chips, at most `max_raises` a round; player 0 acts first in each. Before the
second round and before the third a card is laid open. Whoever is left alone takes the
pot; else the better hand of three cards (one's own and the open ones) does, and equal
hands share it. Hands rank as: straight flush, three of a kind, straight, flush, pair,
high card; within a kind the higher ranks win, those of a pair before its third card.
The highest rank is not also the lowest.

Payoffs (chips): what a player takes from the pot less what it put in.

Value to player 0 of the default game, with 3 ranks and 2 suits: -92/567 (a linear program
over the sequence form, solved to 1e-15; the fraction is read off the decimals). Other
values are not stated.

Source: Shi and Littman (2001), "Abstraction methods for game theoretic poker", where the
deck has 13 ranks and 4 suits and `max_raises` is 3.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from jaxcfr.errors import OptionError
from jaxcfr.games.limit_poker import LimitPoker
from jaxcfr.games.options import GameOption, canonical_name

OPTIONS = (
    GameOption("ranks", int, 3, "number of ranks", minimum=2, maximum=13),
    GameOption("suits", int, 2, "number of suits", minimum=1, maximum=4),
    GameOption("max_raises", int, 1, "bets and raises in a round", minimum=0, maximum=100),
)

_RANKS = "23456789TJQKA"
_SUITS = "shdc"


class _Rules:
    """What all histories of one game share; see `jaxcfr.games.limit_poker.Rules`."""

    __slots__ = ("_chances", "_labels", "_suits", "ante", "deals", "max_raises", "name", "sees", "stakes", "value")

    def __init__(self, **values: Any) -> None:
        values = {option.name: option.check("rhode_island", values[option.name]) for option in OPTIONS}
        ranks, suits = values["ranks"], values["suits"]
        if ranks * suits < 4:
            raise OptionError(f"rhode_island: ranks={ranks} and suits={suits} make {ranks * suits} cards; 4 are dealt")
        self.name = canonical_name("rhode_island", OPTIONS, values)
        self.ante = 5
        self.stakes: tuple[int, ...] = (10, 20, 20)
        self.deals: tuple[int, ...] = (2, 1, 1)
        self.sees: tuple[int, ...] = (0, 1, -1, -1)
        self.max_raises: int = values["max_raises"]
        self.value: Fraction | float | None = None
        if (ranks, suits, self.max_raises) == (3, 2, 1):
            self.value = Fraction(-92, 567)
        self._suits: int = suits
        self._chances = tuple(Fraction(1, ranks * suits - dealt) for dealt in range(4))
        self._labels = tuple(rank + suit for rank in _RANKS[-ranks:] for suit in _SUITS[:suits])

    def outcomes(self, dealt: tuple[int, ...]) -> tuple[tuple[int, Fraction], ...]:
        p = self._chances[len(dealt)]
        return tuple([(card, p) for card in range(len(self._labels)) if card not in dealt])

    def shown(self, outcome: int) -> str:
        return self._labels[outcome]

    def winner(self, dealt: tuple[int, ...]) -> int:
        mine, theirs = (self._hand((dealt[player], *dealt[2:])) for player in (0, 1))
        return -1 if mine == theirs else 0 if mine > theirs else 1

    def _hand(self, cards: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        """The kind of a hand, and its ranks in the order in which they count."""
        low, middle, high = sorted(card // self._suits for card in cards)
        flush = len({card % self._suits for card in cards}) == 1
        straight = high - middle == middle - low == 1
        if low == high:
            return 4, (high,)
        if straight or flush:
            return 5 if straight and flush else 3 if straight else 2, (high, middle, low)
        if low == middle or middle == high:
            return 1, (middle, high if low == middle else low)
        return 0, (high, middle, low)


class RhodeIsland(LimitPoker):
    """Rhode Island hold'em; actions 0, 1 and 2 are fold, call and raise, outcomes of chance are cards.

    A card is the number rank * suits + suit.

    Args:
        ranks: number of ranks.
        suits: number of suits.
        max_raises: bets and raises in a round.
    """

    __slots__ = ()

    def __init__(self, ranks: int = 3, suits: int = 2, max_raises: int = 1) -> None:
        super().__init__(_Rules(ranks=ranks, suits=suits, max_raises=max_raises))
