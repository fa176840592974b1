"""Matching pennies, as a sequential game whose second player does not see the first coin.

Rules: player 0 lays down a coin, heads or tails up, and covers it; player 1
lays down a coin too. Player 0 wins if the coins match, player 1 if they differ.

Payoffs (chips): 1 to the winner, -1 to the loser.

Value: 0 for both; the equilibrium is unique, each side with probability 1/2.

Source: a folk game; as a zero-sum matrix game, von Neumann and Morgenstern (1944).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from jaxcfr.games.base import Game
from jaxcfr.games.options import illegal_action
from jaxcfr.games.rock_paper_scissors import two_move_key

_LABELS = ("heads", "tails")


class MatchingPennies(Game):
    """Matching pennies; actions 0 and 1 are heads and tails."""

    __slots__ = ("_coins",)

    num_players = 2
    name = "matching_pennies"

    def __init__(self, _coins: tuple[int, ...] = ()) -> None:
        self._coins = _coins

    def __repr__(self) -> str:
        """The name and the coins so far."""
        return f"<{self.name}: {' '.join(_LABELS[a] for a in self._coins) or 'start'}>"

    def is_terminal(self) -> bool:
        """True once both coins lie."""
        return len(self._coins) == 2

    def is_chance(self) -> bool:
        """Always False: there is no chance."""
        return False

    def player_to_act(self) -> int:
        """Player 0, then player 1."""
        return len(self._coins)

    def chance_outcomes(self) -> tuple[()]:
        """No outcome: there is no chance."""
        return ()

    def legal_actions(self) -> tuple[int, ...]:
        """Heads and tails."""
        return () if len(self._coins) == 2 else (0, 1)

    def step(self, action: Any) -> MatchingPennies:
        """The history after the next coin."""
        if action not in self.legal_actions():
            raise illegal_action(self, action)
        return MatchingPennies((*self._coins, int(action)))

    def terminal_returns(self) -> tuple[int, int]:
        """The payoffs of players 0 and 1, in chips."""
        return (1, -1) if self._coins[0] == self._coins[1] else (-1, 1)

    def infoset_key(self, player: int) -> Hashable:
        """The player's own coin, "" when it is about to choose, and "?" while it waits for the other."""
        return two_move_key(self._coins, player, _LABELS)

    def nash_value(self) -> tuple[int, int]:
        """Zero for both players."""
        return (0, 0)

    def action_label(self, action: Any) -> str:
        """The side in words."""
        return _LABELS[action]
