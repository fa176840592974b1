"""The `Game` protocol: the rules of a game as plain, immutable Python values.

A `Game` is one history (a node of the game tree). The object a user hands to
`jaxcfr.lower` is the root; `step` returns the next history and never changes
the one it is called on.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from jaxcfr.errors import ChanceNotEnumerableError, GameError
from jaxcfr.games import checks

if TYPE_CHECKING:
    from jaxcfr.games.array_game import ArrayGame

Action = Hashable
Probability = float | Fraction
Payoff = float | Fraction


class Game(Protocol):
    """One history of a game; subclass it, or write any class with these methods.

    `num_players`: number of players, counted from 0, chance not included.
    Exactly one of three kinds holds for every history: terminal
    (`is_terminal`), chance (`is_chance`), or a decision of `player_to_act`.

    Perfect recall is required by everything that lowers a game: whatever a
    player knew or did must show in its later information-set keys.
    """

    __slots__ = ()  # subclasses that declare slots stay free of a per-history dictionary

    num_players: int

    def is_terminal(self) -> bool:
        """True where the play has ended."""
        ...

    def is_chance(self) -> bool:
        """True where chance moves next."""
        ...

    def player_to_act(self) -> int:
        """The player who decides here, 0 to num_players - 1 (decision histories only)."""
        ...

    def chance_outcomes(self) -> Sequence[tuple[Action, Probability]] | None:
        """Every outcome of chance with its probability, or None where it can only be sampled.

        Outcomes are hashable and distinct. Probabilities are floats, or exact `fractions.Fraction`s; they sum to 1.
        """
        ...

    def sample_chance(self, rng: np.random.Generator) -> Action:
        """One outcome of chance, drawn with `rng`; by default from `chance_outcomes`."""
        outcomes = self.chance_outcomes()
        if outcomes is None:
            raise ChanceNotEnumerableError(
                f"{game_name(self)}: chance_outcomes() is None, so the game has to define sample_chance(rng) itself"
            )
        actions, given = checks.chance(outcomes)
        probabilities = np.array([float(p) for p in given])
        return actions[int(rng.choice(len(actions), p=probabilities / probabilities.sum()))]

    def legal_actions(self) -> Sequence[Action]:
        """The legal actions of a decision history: hashable, distinct, never empty.

        The order is part of the game: it must be the same in every history of
        an information set.
        """
        ...

    def step(self, action: Action) -> Game:
        """The history after `action` (a legal action, or an outcome of chance)."""
        ...

    def terminal_returns(self) -> Sequence[Payoff]:
        """One payoff per player (terminal histories only)."""
        ...

    def infoset_key(self, player: int) -> Hashable:
        """What `player` knows here, as a hashable key.

        Must be defined for the player who acts. Where the game can say what
        the others know, it answers for them too, else it raises `GameError`.
        """
        ...

    # What follows has defaults; a class that does not subclass `Game` may leave it out.

    def nash_value(self) -> Sequence[Payoff] | None:
        """Payoffs per player at equilibrium, where they are known and unique; else None."""
        return None

    def action_label(self, action: Action) -> str:
        """A readable name of `action` here, for tables and files."""
        return str(action)

    def array_game(self) -> ArrayGame | None:
        """The same rules as functions on arrays, at the root of a game that has them; else None.

        `jaxcfr.lower` uses them where the game is large. They have to give the same tree: the same histories in the
        same order, the same keys, actions and labels.
        """
        return None


def game_name(game: Any) -> str:
    """The name of a game for messages and files: its `name` where it has one, else its class."""
    name = getattr(game, "name", None)
    return name if isinstance(name, str) and name else type(game).__name__


def action_label(game: Any, action: Action) -> str:
    """`game.action_label(action)` where the game defines it, else `str(action)`."""
    label = getattr(game, "action_label", None)
    return str(action) if label is None else str(label(action))


def format_path(path: Sequence[Any]) -> str:
    """A path of actions as it appears in messages."""
    return " > ".join(str(action) for action in path) if path else "(the root)"


def require_enumerable_chance(game: Any, path: Sequence[Any], what: str) -> tuple[tuple[Action, Any], ...]:
    """The chance outcomes at `game`; raises `ChanceNotEnumerableError` naming `what` needs them."""
    outcomes = game.chance_outcomes()
    if outcomes is None:
        raise not_enumerable(game_name(game), format_path(path), what)
    try:
        return tuple(zip(*checks.chance(outcomes), strict=True))
    except checks.BrokenRuleError as error:
        raise GameError(f"{game_name(game)}: at {format_path(path)}: {error}") from error.__cause__


LOWERING = "lowering, and with it the full tree, exact analytics and subgames,"
"""What needs every outcome of chance; `jaxcfr.solve_game` does not."""


def not_enumerable(name: str, path: str, what: str) -> ChanceNotEnumerableError:
    """The error of a game of this name where chance can only be sampled at a path, but `what` needs every outcome."""
    return ChanceNotEnumerableError(
        f"{name}: chance can only be sampled at {path} (chance_outcomes() is None), but {what} needs every outcome "
        "with its probability"
    )
