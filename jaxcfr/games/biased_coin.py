"""Biased coin: one bet on a coin that only one player sees; the smallest game with bluffing.

Rules: both players pay an ante of 1 chip. Chance tosses a coin that shows heads
with probability `q`; player 0 sees it, player 1 does not. Heads wins the pot for
player 0, tails for player 1. Player 0 passes, and the coin decides about the
antes, or bets 1 more chip. Then player 1 folds, and player 0 takes the antes, or
calls with 1 more chip, and the coin decides.

Payoffs (chips, to player 0; player 1 gets the negative):

              pass    bet, fold    bet, call
    heads      1          1            2
    tails     -1          1           -2

Value to player 0: min(8q/3 - 1, 1). Derivation: with heads a bet is never worse
than a pass. Let player 0 bet tails with probability b, and player 1 call with
probability c.

* q <= 3/4. A bet on tails pays (1 - c) - 2c against -1 for a pass: equal at c = 2/3.
  A call pays player 1 -2q + 2(1-q)b, a fold -q - (1-q)b: equal at b = q / (3(1-q)),
  which is a probability just when q <= 3/4. So player 0 gets 1/3 + 2 * 2/3 = 5/3
  with heads and -1 with tails: 5q/3 - (1-q) = 8q/3 - 1.
* q >= 3/4. Player 0 always bets; a call would pay player 1 2 - 4q <= -1, so it
  folds and player 0 gets 1. It cannot get more: folding holds it to 1.

Source: the bluffing model of Borel (1938) and von Neumann and Morgenstern (1944),
cut down to two hands; rules and derivation as stated here.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any

from jaxcfr.games.base import Game, Payoff, Probability
from jaxcfr.games.options import GameOption, canonical_name, illegal_action

OPTIONS = (GameOption("q", float, Fraction(1, 2), "probability of heads", minimum=0, maximum=1),)

_LABELS = (("heads", "tails"), ("pass", "bet"), ("fold", "call"))
_PAYOFFS = {
    "heads pass": 1,
    "heads bet fold": 1,
    "heads bet call": 2,
    "tails pass": -1,
    "tails bet fold": 1,
    "tails bet call": -2,
}


class BiasedCoin(Game):
    """Biased coin; actions 0 and 1 are pass and bet (player 0), fold and call (player 1).

    Args:
        q: the probability of heads, 0 to 1. A `Fraction` keeps everything exact.
    """

    __slots__ = ("_moves", "_q")

    num_players = 2

    def __init__(self, q: Probability = Fraction(1, 2)) -> None:
        self._q: Probability = OPTIONS[0].check("biased_coin", q)
        self._moves: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The canonical name, with `q` where it is not 1/2."""
        return canonical_name("biased_coin", OPTIONS, {"q": self._q})

    def __repr__(self) -> str:
        """The name and the moves so far."""
        return f"<{self.name}: {' '.join(self._moves) or 'start'}>"

    def is_terminal(self) -> bool:
        """True after a pass, a fold or a call."""
        return len(self._moves) == 3 or (len(self._moves) == 2 and self._moves[1] == "pass")

    def is_chance(self) -> bool:
        """True before the toss."""
        return not self._moves

    def player_to_act(self) -> int:
        """Player 0 after the toss, player 1 after a bet."""
        return len(self._moves) - 1

    def chance_outcomes(self) -> tuple[tuple[int, Probability], ...]:
        """Heads (0) with probability q and tails (1); a side that never comes up is left out."""
        return tuple((side, p) for side, p in ((0, self._q), (1, 1 - self._q)) if p > 0)

    def legal_actions(self) -> tuple[int, ...]:
        """Pass and bet, or fold and call."""
        return () if self.is_terminal() or self.is_chance() else (0, 1)

    def step(self, action: Any) -> BiasedCoin:
        """The history after the toss or a player's action."""
        legal = [side for side, _ in self.chance_outcomes()] if not self._moves else self.legal_actions()
        if action not in legal:
            raise illegal_action(self, action)
        child = object.__new__(BiasedCoin)
        child._q = self._q
        child._moves = (*self._moves, self.action_label(action))
        return child

    def terminal_returns(self) -> tuple[int, int]:
        """The payoffs of players 0 and 1, in chips."""
        payoff = _PAYOFFS[" ".join(self._moves)]
        return (payoff, -payoff)

    def infoset_key(self, player: int) -> Hashable:
        """Player 0 sees every move; player 1 all but the coin ("?" until it is tossed)."""
        return " ".join(self._moves if player == 0 else self._moves[1:]) if self._moves else "?"

    def nash_value(self) -> tuple[Payoff, Payoff]:
        """The exact value: min(8q/3 - 1, 1) for player 0."""
        value = min(8 * self._q / 3 - 1, type(self._q)(1))
        return (value, -value)

    def action_label(self, action: Any) -> str:
        """The side of the coin or the action in words."""
        return _LABELS[len(self._moves)][action]
