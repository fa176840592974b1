"""What the small two-player games with limit betting share: rounds of deals and bets, and a showdown.

Both players pay an ante. Every round begins with some moves of chance, then the players bet in turn, player 0 first:
check, or bet the round's stake; who faces a bet folds, calls, or raises by the stake as long as fewer than `max_raises`
bets and raises were made in the round. A round is over when a bet is called or both have checked. Who folds loses what
it paid; after the last round the better hand takes all, and equal hands take back what they paid.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, Protocol

from jaxcfr.games.base import Game
from jaxcfr.games.options import illegal_action

FOLD, CALL, RAISE = 0, 1, 2
_LABELS = ("fold", "call", "raise")
_LETTERS = "fcr"
_MENUS = {
    (facing, more): ((FOLD,) if facing else ()) + (CALL,) + ((RAISE,) if more else ())
    for facing in (False, True)
    for more in (False, True)
}


class Rules(Protocol):
    """What a game of this family states.

    Attributes:
        name: canonical name.
        ante: chips.
        stakes: the size of bets and raises, by round.
        deals: how many moves of chance come before each round.
        max_raises: bets and raises allowed in a round.
        value: the payoff of player 0 at equilibrium, or None.
    """

    name: str
    ante: int
    stakes: tuple[int, ...]
    deals: tuple[int, ...]
    max_raises: int
    value: Fraction | float | None

    def outcomes(self, dealt: tuple[int, ...]) -> tuple[tuple[int, Fraction], ...]:
        """The next move of chance, after those made so far."""
        ...

    def shown(self, outcome: int) -> str:
        """An outcome of chance in words."""
        ...

    def seen(self, dealt: tuple[int, ...], player: int) -> tuple[str, ...]:
        """What a player has seen of the moves of chance, by round."""
        ...

    def winner(self, dealt: tuple[int, ...]) -> int:
        """The player with the better hand at the end, or -1 for a draw."""
        ...


class LimitPoker(Game):
    """A history of such a game; actions 0, 1 and 2 are fold, call (or check) and raise (or bet)."""

    __slots__ = ("_bets", "_dealt", "_paid", "_rules")

    num_players = 2
    _rules: Rules

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._dealt: tuple[int, ...] = ()
        self._bets: tuple[str, ...] = ("",)  # letters of the actions, by round; the last round is the present one
        self._paid = (rules.ante, rules.ante)

    @property
    def name(self) -> str:
        """The canonical name, with the options that differ from their defaults."""
        return self._rules.name

    def __repr__(self) -> str:
        """The name, what was dealt, and the bets."""
        return f"<{self.name}: {' '.join(map(self._rules.shown, self._dealt))} {'/'.join(self._bets)}>"

    def is_terminal(self) -> bool:
        """True when somebody folded, or the last round is over."""
        last = self._bets[-1]
        return last.endswith("f") or (len(self._bets) == len(self._rules.stakes) and _over(last))

    def is_chance(self) -> bool:
        """True before the bets of a round."""
        return len(self._dealt) < sum(self._rules.deals[: len(self._bets)])

    def player_to_act(self) -> int:
        """The player whose turn it is; player 0 begins every round."""
        return len(self._bets[-1]) % 2

    def chance_outcomes(self) -> tuple[tuple[int, Fraction], ...]:
        """What can be dealt next."""
        return self._rules.outcomes(self._dealt)

    def legal_actions(self) -> tuple[int, ...]:
        """Fold (facing a bet), call or check, and bet or raise (while more are allowed)."""
        if self.is_terminal() or self.is_chance():
            return ()
        bets = self._bets[-1]
        return _MENUS[bets.endswith("r"), bets.count("r") < self._rules.max_raises]

    def step(self, action: Any) -> LimitPoker:
        """The history after the next deal or action."""
        child = object.__new__(type(self))
        child._rules = self._rules
        child._dealt, child._bets, child._paid = self._dealt, self._bets, self._paid
        if self.is_chance():
            if all(action != outcome for outcome, _ in self.chance_outcomes()):
                raise illegal_action(self, action)
            child._dealt = (*self._dealt, int(action))
            return child
        if action not in self.legal_actions():
            raise illegal_action(self, action)
        player = self.player_to_act()
        last = self._bets[-1] + _LETTERS[int(action)]
        child._bets = (*self._bets[:-1], last)
        if action != FOLD:
            paid = max(self._paid) + (self._rules.stakes[len(self._bets) - 1] if action == RAISE else 0)
            child._paid = (paid, self._paid[1]) if player == 0 else (self._paid[0], paid)
        if _over(last) and not child.is_terminal():
            child._bets = (*child._bets, "")
        return child

    def terminal_returns(self) -> tuple[int, int]:
        """The payoffs of players 0 and 1, in chips."""
        last = self._bets[-1]
        winner = len(last) % 2 if last.endswith("f") else self._rules.winner(self._dealt)
        if winner < 0:
            return (0, 0)
        won = self._paid[1 - winner]
        return (won, -won) if winner == 0 else (-won, won)

    def infoset_key(self, player: int) -> Hashable:
        """By round, what the player saw of the deal and the bets, as "4 crc/2 r"; "?" stands for each deal to come."""
        rounds = self._rules.seen(self._dealt, player)
        waiting = "?" * (sum(self._rules.deals[: len(self._bets)]) - len(self._dealt))
        return "/".join(
            f"{seen}{waiting if number == len(self._bets) else ''} {bets}".strip()
            for number, (seen, bets) in enumerate(zip(rounds, self._bets, strict=False), 1)
        )

    def estimated_histories(self) -> float | None:
        """How many histories there are, at the root; every round has as many of bets after each deal."""
        if self._dealt:
            return None
        rules = self._rules
        total = going = 1.0
        dealt: tuple[int, ...] = ()
        for deals in rules.deals:
            for _ in range(deals):
                outcomes = rules.outcomes(dealt)
                dealt = (*dealt, outcomes[0][0])
                going *= len(outcomes)
                total += going
            # Before each of the bets either player may have checked first; each is folded to, called or raised.
            total += going * (2 + 6 * rules.max_raises)
            going *= 1 + 2 * rules.max_raises
        return total

    def nash_value(self) -> Sequence[Fraction | float] | None:
        """Payoffs at equilibrium, where they are known."""
        value = self._rules.value
        return None if value is None else (value, -value)

    def action_label(self, action: Any) -> str:
        """The action, or what is dealt."""
        return self._rules.shown(action) if self.is_chance() else _LABELS[action]


def _over(bets: str) -> bool:
    """Whether a round is over without a fold: a bet was called, or both checked."""
    return len(bets) > 1 and bets.endswith("c")
