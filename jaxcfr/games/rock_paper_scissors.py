"""Rock, paper, scissors, as a sequential game whose second player does not see the first move.

Rules: player 0 picks rock, paper or scissors; player 1, who does not see the
pick, picks too. Paper beats rock, scissors beat paper, rock beats scissors.

Payoffs (chips): 1 to the winner, -1 to the loser, 0 each for equal picks.

Value: 0 for both; the equilibrium is unique, each pick with probability 1/3.

Source: a folk game; as a zero-sum matrix game, von Neumann and Morgenstern (1944).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from jaxcfr.games.base import Game
from jaxcfr.games.options import illegal_action

_LABELS = ("rock", "paper", "scissors")
_PAYOFFS = ((0, 0), (1, -1), (-1, 1))  # by (first pick - second pick) modulo 3


class RockPaperScissors(Game):
    """Rock, paper, scissors; actions 0, 1 and 2 are rock, paper and scissors."""

    __slots__ = ("_picks",)

    num_players = 2
    name = "rock_paper_scissors"

    def __init__(self, _picks: tuple[int, ...] = ()) -> None:
        self._picks = _picks

    def __repr__(self) -> str:
        """The name and the picks so far."""
        return f"<{self.name}: {' '.join(_LABELS[a] for a in self._picks) or 'start'}>"

    def is_terminal(self) -> bool:
        """True once both have picked."""
        return len(self._picks) == 2

    def is_chance(self) -> bool:
        """Always False: there is no chance."""
        return False

    def player_to_act(self) -> int:
        """Player 0, then player 1."""
        return len(self._picks)

    def chance_outcomes(self) -> tuple[()]:
        """No outcome: there is no chance."""
        return ()

    def legal_actions(self) -> tuple[int, ...]:
        """All three picks."""
        return () if len(self._picks) == 2 else (0, 1, 2)

    def step(self, action: Any) -> RockPaperScissors:
        """The history after the next pick."""
        if action not in self.legal_actions():
            raise illegal_action(self, action)
        return RockPaperScissors((*self._picks, int(action)))

    def terminal_returns(self) -> tuple[int, int]:
        """The payoffs of players 0 and 1, in chips."""
        return _PAYOFFS[(self._picks[0] - self._picks[1]) % 3]

    def infoset_key(self, player: int) -> Hashable:
        """The player's own pick, "" when it is about to pick, and "?" while it waits for the other."""
        return two_move_key(self._picks, player, _LABELS)

    def nash_value(self) -> tuple[int, int]:
        """Zero for both players."""
        return (0, 0)

    def action_label(self, action: Any) -> str:
        """The pick in words."""
        return _LABELS[action]


def two_move_key(moves: tuple[int, ...], player: int, labels: tuple[str, ...]) -> str:
    """The key of `player` in a game of two hidden moves: its own move, "" before it, "?" while it cannot move yet."""
    if len(moves) == 2:
        return "-".join(labels[move] for move in moves)
    if player < len(moves):
        return labels[moves[player]]
    return "?" * (player - len(moves))
