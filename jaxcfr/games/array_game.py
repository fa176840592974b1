"""The `ArrayGame` protocol: the rules of a game as pure functions on arrays.

A `Game` is one Python object per history, which is what most games are written as. An `ArrayGame` is one object for
the whole game, and a history is a *state*: a pytree of small arrays of fixed shape. Its functions can be jitted and
vmapped, so a million histories are expanded at once, and plays can be sampled on a device without any tree.

`jaxcfr.lower` takes an `ArrayGame`, or a `Game` whose method `array_game()` returns one; `as_game` turns an
`ArrayGame` into a plain `Game`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Hashable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.errors import GameError
from jaxcfr.games import checks
from jaxcfr.games.base import Action, Game, game_name

CHANCE = -1
"""What `ArrayGame.player` returns where chance moves."""

TERMINAL = -2
"""What `ArrayGame.player` returns where the play has ended."""

State = Any
"""A pytree of arrays; its structure, shapes and dtypes are the same for every history of a game."""


class ArrayGame(Protocol):
    """The rules of a game as functions of a state; subclass it, or write any class with these members.

    The functions from `init` to `infoset` are pure and traceable by JAX: no Python branch may depend on a value in a
    state. Each is written for one state; callers `vmap` over batches. What they return outside of the situation they
    are meant for (the legal actions of a terminal history, say) is ignored, but must have the right shape.

    Actions are numbers 0 to A - 1, for players and chance alike. Their order is the order of the children in a tree.

    A level of millions of states is held at once, so keep states small: int8 where values fit, bits packed into
    int32. Lowering runs with 64-bit types on: `jnp.result_type(float)` is float64 there, and chance probabilities
    and payoffs of that dtype are as exact as in a plain game. Note that in JAX the quotient of two int32 is float32:
    convert before dividing (`as_float`). A vector divided by one number may come out one bit off, since XLA multiplies
    by the reciprocal.

    Two equal games (`==`, with equal hashes) share compiled programs, so define both where games are made again and
    again; by default a game is equal to itself only. A game must not change once it has been lowered: its compiled
    programs would go on with the old rules.

    Attributes:
      num_players: P, players are counted from 0, chance not included.
      num_actions: A, static: one more than the largest number of any action or outcome of chance.
      name: of the game, for messages and files.
    """

    num_players: int
    num_actions: int
    name: str

    def init(self) -> State:
        """The state of the root."""
        ...

    def player(self, state: State) -> Array:
        """Who acts: an integer scalar, 0 to P - 1, or `CHANCE` (-1), or `TERMINAL` (-2)."""
        ...

    def legal_actions(self, state: State) -> Array:
        """Bool `[A]`: the legal actions of a decision, or the possible outcomes of chance.

        The legal actions have to be the same in every history of an information set.
        """
        ...

    def chance_probabilities(self, state: State) -> Array:
        """Float `[A]`: the probability of every outcome where chance moves; they sum to 1 over `legal_actions`."""
        ...

    def step(self, state: State, action: Array) -> State:
        """The state after a legal action or a possible outcome, an int32 scalar."""
        ...

    def returns(self, state: State) -> Array:
        """Float `[P]`: the payoff of every player (terminal states)."""
        ...

    def infoset(self, state: State, player: int) -> Array:
        """Integers `[K]`: what `player` knows here.

        K and the dtype (int32 or narrower) are the same for all players and states; entries without a meaning hold
        a fixed number. Two decisions of a player belong to one information set just where these are equal. Perfect
        recall is required: whatever the player knew or did must show in all its later ones. As in
        `Game.infoset_key`, players who do not act are told what they observe.

        Args:
          state: the history.
          player: static.
        """
        ...

    # What follows describes the game on the host, and has defaults; a class that does not subclass `ArrayGame` may
    # leave it out.

    def infoset_key(self, row: np.ndarray, player: int) -> Hashable:
        """The key of an information set, as the plain game has it; by default `row` as a tuple.

        Different rows of a player must have different keys.

        Args:
          row: `[K]`, what `infoset` returned.
          player: whose.
        """
        return tuple(row.tolist())

    def action(self, index: int) -> Action:
        """An action as the plain game has it; by default its number."""
        return index

    def action_label(self, index: int, player: int, row: np.ndarray | None = None) -> str:
        """A readable name of an action.

        Args:
          index: its number.
          player: who takes it, or `CHANCE`.
          row: `[K]`, the information set where it is taken; None for chance.
        """
        return str(self.action(index))

    def estimated_histories(self) -> float | None:
        """About how many histories the game has, or None where nobody counted.

        Where a plain game has an array game as well, `lower` walks the plain rules if this is small, because then
        compiling would take longer than walking.
        """
        return None


def as_float(values: Any) -> Array:
    """`values` in JAX's default float dtype: float64 while a game is lowered."""
    return jnp.asarray(values, jnp.result_type(float))


def x64_enabled() -> Any:
    """A context in which JAX has 64-bit types, whatever the global setting."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return importlib.import_module("jax.experimental").enable_x64(True)  # jax before 0.8


def is_array_game(game: Any) -> bool:
    """Whether `game` has the members of an `ArrayGame` (a history of a plain game has no `init`)."""
    return all(hasattr(game, member) for member in _MEMBERS)


_MEMBERS = ("num_players", "num_actions", "init", "player", "step", "returns", "infoset")


class Describe:
    """The describing methods of an array game, with the defaults of `ArrayGame` where it leaves them out."""

    def __init__(self, game: Any) -> None:
        self.game = game
        self.name = game_name(game)

        def method(name: str) -> Callable[..., Any]:
            found = getattr(game, name, None)
            return functools.partial(getattr(ArrayGame, name), game) if found is None else found

        self.infoset_key: Callable[[np.ndarray, int], Hashable] = method("infoset_key")
        self._own_action = getattr(game, "action", None)
        self._own_label = getattr(game, "action_label", None)

    def action(self, index: int) -> Action:
        """See `ArrayGame.action`."""
        return index if self._own_action is None else self._own_action(index)

    def action_label(self, index: int, player: int, row: np.ndarray | None = None) -> str:
        """See `ArrayGame.action_label`."""
        if self._own_label is None:
            return str(self.action(index))
        return str(self._own_label(index, player, row))


def as_game(game: ArrayGame) -> Game:
    """The root of an `ArrayGame` as a plain `Game`, for whatever walks games history by history.

    Keys, actions and labels are those that the array game describes, so both lower to the same tree. Each history
    costs a few calls of compiled functions, so this is for small games, tests and playing.

    Args:
      game: the array game.

    Raises:
      GameError: `game` is no array game.
    """
    checks.require_instance(game, "as_game")
    if not is_array_game(game):
        missing = next(member for member in _MEMBERS if not hasattr(game, member))
        raise GameError(f"as_game needs an ArrayGame, but {type(game).__name__!r} has no {missing}")
    rules = _Rules(game)
    return ArrayHistory(rules, rules.init(), root=True)


class _Rules:
    """The compiled functions that all histories of one array game share."""

    def __init__(self, game: Any) -> None:
        self.game = game
        self.num_players = int(game.num_players)
        self.describe = Describe(game)

        def look(state: State) -> tuple[Any, ...]:
            return (
                game.player(state),
                game.legal_actions(state),
                game.chance_probabilities(state),
                game.returns(state),
                tuple(game.infoset(state, player) for player in range(self.num_players)),
            )

        self._look = jax.jit(look)
        self._step = jax.jit(game.step)

    def init(self) -> State:
        with x64_enabled():
            return jax.tree.map(np.asarray, self.game.init())

    def look(self, state: State) -> tuple[Any, ...]:
        with x64_enabled():
            return tuple(jax.tree.map(np.asarray, self._look(state)))

    def step(self, state: State, action: int) -> State:
        with x64_enabled():
            return jax.tree.map(np.asarray, self._step(state, np.int32(action)))


class ArrayHistory(Game):
    """One history of an array game, made by `as_game`."""

    __slots__ = ("_facts", "_is_root", "_rules", "_state", "num_players")

    def __init__(self, rules: _Rules, state: State, *, root: bool = False) -> None:
        self._rules = rules
        self._state = state
        self._is_root = root
        self._facts = rules.look(state)
        self.num_players: int = rules.num_players

    @property
    def name(self) -> str:
        """The name of the array game."""
        return self._rules.describe.name

    @property
    def state(self) -> State:
        """The state: a pytree of numpy arrays."""
        return self._state

    def array_game(self) -> ArrayGame | None:
        """The array game, at the root."""
        game: ArrayGame | None = self._rules.game if self._is_root else None
        return game

    def is_terminal(self) -> bool:
        """True where the play has ended."""
        return int(self._facts[0]) == TERMINAL

    def is_chance(self) -> bool:
        """True where chance moves next."""
        return int(self._facts[0]) == CHANCE

    def player_to_act(self) -> int:
        """The player who decides here."""
        return int(self._facts[0])

    def _legal(self) -> list[int]:
        legal: list[int] = np.flatnonzero(self._facts[1]).tolist()
        return legal

    def chance_outcomes(self) -> tuple[tuple[Action, float], ...]:
        """The possible outcomes with their probabilities."""
        action, probabilities = self._rules.describe.action, self._facts[2]
        # As numpy scalars, whose dtype tells how exactly they can sum to 1.
        return tuple((action(index), probabilities[index]) for index in self._legal())

    def legal_actions(self) -> tuple[Action, ...]:
        """The legal actions in the order of their numbers."""
        if self.is_terminal() or self.is_chance():
            return ()
        return tuple(map(self._rules.describe.action, self._legal()))

    def _index(self, action: Action) -> int:
        """The number of a legal action."""
        if not self.is_terminal():
            for index in self._legal():
                if self._rules.describe.action(index) == action:
                    return index
        raise GameError(f"{self.name}: {action!r} cannot be taken here")

    def step(self, action: Action) -> ArrayHistory:
        """The history after a legal action, or an outcome of chance."""
        return ArrayHistory(self._rules, self._rules.step(self._state, self._index(action)))

    def terminal_returns(self) -> tuple[float, ...]:
        """The payoff of every player."""
        return tuple(self._facts[3].tolist())

    def infoset_key(self, player: int) -> Hashable:
        """The key of what `player` knows."""
        return self._rules.describe.infoset_key(self._facts[4][player], player)

    def action_label(self, action: Action) -> str:
        """The label of a legal action, or of an outcome of chance."""
        player = int(self._facts[0])
        row = self._facts[4][player] if player >= 0 else None
        return self._rules.describe.action_label(self._index(action), player, row)
