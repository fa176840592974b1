"""First-price sealed-bid auction.

Rules: every player draws a value from 1 to `max_value`, all equally likely, and only it
knows its own. In order from player 0, unseen by the others, each bids a whole number
from 0 to its value less 1. The highest bid wins and is paid; chance decides among equal
ones.

Payoffs: value less bid to the winner, 0 to the others (not constant-sum).

Source: Vickrey (1961), "Counterspeculation, auctions, and competitive sealed tenders".
Options are spelled as in OpenSpiel, where the game is `first_sealed_auction`.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any

from jaxcfr.games.base import Game
from jaxcfr.games.options import GameOption, canonical_name, illegal_action

OPTIONS = (
    GameOption("players", int, 2, "number of players", minimum=2, maximum=10),
    GameOption("max_value", int, 4, "highest value", minimum=1, maximum=1000),
)


class FirstPriceAuction(Game):
    """First-price auction; outcome v of chance is a value, action b bids b, and the last outcome is the winner.

    Args:
        players: 2 to 10.
        max_value: highest value.
    """

    __slots__ = ("_bids", "_max_value", "_values", "_winner", "name", "num_players")

    def __init__(self, players: int = 2, max_value: int = 4) -> None:
        given = {"players": players, "max_value": max_value}
        given = {option.name: option.check("first_price_auction", given[option.name]) for option in OPTIONS}
        self.name = canonical_name("first_price_auction", OPTIONS, given)
        self.num_players: int = given["players"]
        self._max_value: int = given["max_value"]
        self._values: tuple[int, ...] = ()
        self._bids: tuple[int, ...] = ()
        self._winner = -1

    def __repr__(self) -> str:
        """The name, the values, the bids and the winner so far."""
        return f"<{self.name}: values {self._values}, bids {self._bids}, winner {self._winner}>"

    def is_terminal(self) -> bool:
        """True when the winner is known."""
        return self._winner >= 0

    def is_chance(self) -> bool:
        """True while values are drawn, and after the last bid."""
        return len(self._values) < self.num_players or (len(self._bids) == self.num_players and self._winner < 0)

    def player_to_act(self) -> int:
        """Bids are made in order from player 0."""
        return len(self._bids)

    def chance_outcomes(self) -> tuple[tuple[int, Fraction], ...]:
        """The values, or the players with the highest bid, equally likely."""
        outcomes: tuple[int, ...] = tuple(range(1, self._max_value + 1))
        if self._bids:
            highest = max(self._bids)
            outcomes = tuple(player for player, bid in enumerate(self._bids) if bid == highest)
        return tuple((outcome, Fraction(1, len(outcomes))) for outcome in outcomes)

    def legal_actions(self) -> tuple[int, ...]:
        """Every bid below the value of the player to act."""
        if self.is_chance() or self.is_terminal():
            return ()
        return tuple(range(self._values[len(self._bids)]))

    def step(self, action: Any) -> FirstPriceAuction:
        """The history after the next value, bid or decision among equals."""
        chance = self.is_chance()
        legal = [outcome for outcome, _ in self.chance_outcomes()] if chance else self.legal_actions()
        if self.is_terminal() or action not in legal:
            raise illegal_action(self, action)
        child = object.__new__(FirstPriceAuction)
        child.name, child.num_players, child._max_value = self.name, self.num_players, self._max_value
        child._values, child._bids, child._winner = self._values, self._bids, -1
        if not chance:
            child._bids = (*self._bids, int(action))
        elif self._bids:
            child._winner = int(action)
        else:
            child._values = (*self._values, int(action))
        return child

    def terminal_returns(self) -> tuple[int, ...]:
        """The payoff of every player."""
        won = self._values[self._winner] - self._bids[self._winner]
        return tuple(won if player == self._winner else 0 for player in range(self.num_players))

    def infoset_key(self, player: int) -> Hashable:
        """The player's value, and its bid, as "3 1"; "?" stands for each move that it waits for."""
        n = self.num_players
        value = str(self._values[player]) if player < len(self._values) else ""
        if len(self._values) < n:
            return value + "?" * (n - len(self._values))
        made = len(self._bids)
        if player < made:
            waiting = "!" if self._winner == player else "" if self._winner >= 0 else "?" * (n - made + 1)
            return f"{value} {self._bids[player]}{waiting}"
        return value + "?" * (player - made)

    def estimated_histories(self) -> float | None:
        """How many histories there are, at the root; of ties, that there is one winner."""
        if self._values:
            return None
        n, values, bids = self.num_players, float(self._max_value), self._max_value * (self._max_value + 1) / 2
        drawn = sum(values**count for count in range(n + 1))
        return drawn + sum(bids**count * values ** (n - count) for count in range(1, n + 1)) + bids**n

    def action_label(self, action: Any) -> str:
        """The number of a value or bid; the winner as "player 0"."""
        return f"player {action}" if len(self._bids) == self.num_players else str(action)
