"""Oshi-Zumo, with hidden bids made one after the other.

Rules: a wrestler stands in the middle of a ring of 2 * `size` + 1 places, and both
players have `coins` coins. Each turn both bid from `min_bid` up to all they have left
(all they have, where that is less), player 0 first and unseen by player 1. The bids
are paid and shown, and the wrestler moves one place away from the higher bidder. The
game ends when the wrestler leaves the ring, when neither has a coin, or after `horizon`
turns. Whoever's opponent's side the wrestler is then on has won, out of the ring or,
unless `alesia` is set, in it; in the middle it is a draw.

Payoffs (chips): 1 to the winner, -1 to the loser, 0 each for a draw.

Value: 0 for both, because the game is symmetric and zero-sum.

Source: Kotani (2001); Buro (2003), "Solving the Oshi-Zumo game"; `alesia` as in Perolat
et al. (2016). Options are spelled as in OpenSpiel, whose defaults (50 coins, size 3,
horizon 1000) are too large to enumerate.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from jaxcfr.errors import OptionError
from jaxcfr.games.base import Game
from jaxcfr.games.options import GameOption, canonical_name, illegal_action

OPTIONS = (
    GameOption("alesia", bool, False, "only pushing the wrestler out wins"),
    GameOption("coins", int, 4, "coins of each player", minimum=1, maximum=1000),
    GameOption("size", int, 1, "places on either side of the middle", minimum=0, maximum=1000),
    GameOption("horizon", int, 4, "most turns", minimum=1, maximum=1_000_000),
    GameOption("min_bid", int, 0, "least bid", minimum=0, maximum=1000),
)


class _Rules:
    """What all histories of one game share."""

    __slots__ = ("alesia", "coins", "horizon", "min_bid", "name", "size")

    def __init__(self, **values: Any) -> None:
        values = {option.name: option.check("oshi_zumo", values[option.name]) for option in OPTIONS}
        self.name = canonical_name("oshi_zumo", OPTIONS, values)
        self.alesia: bool = values["alesia"]
        self.coins: int = values["coins"]
        self.size: int = values["size"]
        self.horizon: int = values["horizon"]
        self.min_bid: int = values["min_bid"]
        if self.min_bid > self.coins:
            raise OptionError(f"oshi_zumo: min_bid={self.min_bid} is more than coins={self.coins}")


class OshiZumo(Game):
    """Oshi-Zumo; action b bids b coins.

    Args:
        alesia: only pushing the wrestler out wins.
        coins: coins of each player.
        size: places on either side of the middle.
        horizon: most turns.
        min_bid: least bid.
    """

    __slots__ = ("_bid", "_coins", "_past", "_place", "_rules", "_turn")

    num_players = 2

    def __init__(self, alesia: bool = False, coins: int = 4, size: int = 1, horizon: int = 4, min_bid: int = 0) -> None:
        rules = _Rules(alesia=alesia, coins=coins, size=size, horizon=horizon, min_bid=min_bid)
        self._rules = rules
        self._coins = (rules.coins, rules.coins)
        self._place = 0  # of the wrestler, from the middle; on player 1's side where positive
        self._turn = 0
        self._past = ""  # the bids of the turns that are over
        self._bid = -1  # of player 0 in this turn

    @property
    def name(self) -> str:
        """The canonical name, with the options that differ from their defaults."""
        return self._rules.name

    def __repr__(self) -> str:
        """The name, the coins, where the wrestler stands, and the bids."""
        hidden = f"{self._bid}-" if self._bid >= 0 else ""
        return f"<{self.name}: coins {self._coins}, place {self._place}, bids {self._past}{hidden}>"

    def is_terminal(self) -> bool:
        """True when the wrestler is out, no coins are left, or the turns are over."""
        rules = self._rules
        return abs(self._place) > rules.size or self._coins == (0, 0) or self._turn >= rules.horizon

    def is_chance(self) -> bool:
        """Always False: there is no chance."""
        return False

    def player_to_act(self) -> int:
        """Player 0 bids first."""
        return int(self._bid >= 0)

    def chance_outcomes(self) -> tuple[()]:
        """No outcome: there is no chance."""
        return ()

    def legal_actions(self) -> tuple[int, ...]:
        """The bids the player to act can pay."""
        if self.is_terminal():
            return ()
        coins = self._coins[self.player_to_act()]
        return tuple(range(min(self._rules.min_bid, coins), coins + 1))

    def step(self, action: Any) -> OshiZumo:
        """The history after the next bid."""
        if action not in self.legal_actions():
            raise illegal_action(self, action)
        child = object.__new__(OshiZumo)
        child._rules = self._rules
        child._coins, child._place, child._turn = self._coins, self._place, self._turn
        child._past = self._past
        if self._bid < 0:
            child._bid = int(action)
            return child
        first, second = self._bid, int(action)
        child._bid = -1
        child._coins = (self._coins[0] - first, self._coins[1] - second)
        child._place += (first > second) - (first < second)
        child._turn += 1
        child._past += f"{first}-{second} "
        return child

    def terminal_returns(self) -> tuple[int, int]:
        """The payoffs of players 0 and 1."""
        if self._place == 0 or (self._rules.alesia and abs(self._place) <= self._rules.size):
            return (0, 0)
        return (1, -1) if self._place > 0 else (-1, 1)

    def infoset_key(self, player: int) -> Hashable:
        """The bids of the turns that are over, as "2-1 0-1 "; then one's own, and "?" for each bid to wait for."""
        if self.is_terminal():
            return self._past
        if self._bid < 0:
            return self._past + "?" * player
        return f"{self._past}{self._bid}?" if player == 0 else self._past

    def nash_value(self) -> tuple[int, int]:
        """Zero for both players."""
        return (0, 0)
