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
_DECISION, _CHANCE, _TERMINAL = 0, 1, 2
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
        sees: by move of chance, the player who sees it, or -1 where both do.
        max_raises: bets and raises allowed in a round.
        value: the payoff of player 0 at equilibrium, or None.
    """

    name: str
    ante: int
    stakes: tuple[int, ...]
    deals: tuple[int, ...]
    sees: tuple[int, ...]
    max_raises: int
    value: Fraction | float | None

    def outcomes(self, dealt: tuple[int, ...]) -> tuple[tuple[int, Fraction], ...]:
        """The next move of chance, after those made so far."""
        ...

    def shown(self, outcome: int) -> str:
        """An outcome of chance in words."""
        ...

    def winner(self, dealt: tuple[int, ...]) -> int:
        """The player with the better hand at the end, or -1 for a draw."""
        ...


class LimitPoker(Game):
    """A history of such a game; actions 0, 1 and 2 are fold, call (or check) and raise (or bet)."""

    __slots__ = ("_bets", "_dealt", "_kind", "_left", "_paid", "_round", "_rules", "_views")

    num_players = 2
    _rules: Rules

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._dealt: tuple[int, ...] = ()
        self._round = 0
        self._left = rules.deals[0]  # moves of chance before the next bets
        self._bets = ""  # letters of this round's actions
        self._paid = (rules.ante, rules.ante)
        self._views = ("", "")  # what each player saw of deals and bets
        self._kind = _CHANCE

    @property
    def name(self) -> str:
        """The canonical name, with the options that differ from their defaults."""
        return self._rules.name

    def __repr__(self) -> str:
        """The name, and what each player has seen."""
        return f"<{self.name}: {self._views[0] or '-'} | {self._views[1] or '-'}>"

    def is_terminal(self) -> bool:
        """True when somebody folded, or the last round is over."""
        return self._kind == _TERMINAL

    def is_chance(self) -> bool:
        """True before the bets of a round."""
        return self._kind == _CHANCE

    def player_to_act(self) -> int:
        """The player whose turn it is; player 0 begins every round."""
        return len(self._bets) % 2

    def rounds_ended(self) -> int:
        """How many betting rounds are over and followed by another."""
        return self._round

    def chance_outcomes(self) -> tuple[tuple[int, Fraction], ...]:
        """What can be dealt next."""
        return self._rules.outcomes(self._dealt)

    def legal_actions(self) -> tuple[int, ...]:
        """Fold (facing a bet), call or check, and bet or raise (while more are allowed)."""
        if self._kind != _DECISION:
            return ()
        bets = self._bets
        return _MENUS[bets.endswith("r"), bets.count("r") < self._rules.max_raises]

    def step(self, action: Any) -> LimitPoker:
        """The history after the next deal or action."""
        child = object.__new__(type(self))
        child._rules = self._rules
        child._round, child._paid, child._kind = self._round, self._paid, _DECISION
        if self._kind == _CHANCE:
            self._deal(child, action)
        else:
            self._act(child, action)
        return child

    def _deal(self, child: LimitPoker, action: Any) -> None:
        """Deal `action` in `child`."""
        rules = self._rules
        if all(action != outcome for outcome, _ in rules.outcomes(self._dealt)):
            raise illegal_action(self, action)
        card = int(action)
        seer, shown = rules.sees[len(self._dealt)], rules.shown(card)
        first, second = self._views
        child._views = (first + shown if seer != 1 else first, second + shown if seer != 0 else second)
        child._dealt = (*self._dealt, card)
        child._bets = ""
        child._left = self._left - 1
        if child._left:
            child._kind = _CHANCE

    def _act(self, child: LimitPoker, action: Any) -> None:
        """Let the player to act do `action` in `child`."""
        if action not in self.legal_actions():
            raise illegal_action(self, action)
        rules, before = self._rules, self._bets
        letter = _LETTERS[int(action)]
        child._bets = before + letter
        child._dealt = self._dealt
        child._left = 0
        said = letter if before else " " + letter
        if action == FOLD:
            child._kind = _TERMINAL
        else:
            paid = max(self._paid) + (rules.stakes[self._round] if action == RAISE else 0)
            child._paid = (self._paid[0], paid) if len(before) % 2 else (paid, self._paid[1])
            if action == CALL and before:
                if self._round + 1 == len(rules.stakes):
                    child._kind = _TERMINAL
                else:
                    child._round = self._round + 1
                    child._bets = ""
                    child._left = rules.deals[child._round]
                    child._kind = _CHANCE if child._left else _DECISION
                    said += "/"
        child._views = (self._views[0] + said, self._views[1] + said)

    def terminal_returns(self) -> tuple[int, int]:
        """The payoffs of players 0 and 1, in chips."""
        last = self._bets
        winner = len(last) % 2 if last.endswith("f") else self._rules.winner(self._dealt)
        if winner < 0:
            return (0, 0)
        won = self._paid[1 - winner]
        return (won, -won) if winner == 0 else (-won, won)

    def infoset_key(self, player: int) -> Hashable:
        """By round, the deal as the player saw it and the bets (c: call or check, r: bet or raise, f: fold).

        As "4 crc/2 r"; "?" stands for each deal to come.
        """
        return self._views[player] + "?" * self._left

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
        return self._rules.shown(action) if self._kind == _CHANCE else _LABELS[action]
