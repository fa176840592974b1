"""The `ArrayGame` protocol: the rules of a game as pure functions on arrays.

A `Game` is one Python object per history, which is what most games are written as. An `ArrayGame` is one object for
the whole game, and a history is a *state*: a pytree of small arrays of fixed shape. Its functions can be jitted and
vmapped, so a million histories are expanded at once, and plays can be sampled on a device without any tree.

`jaxcfr.lower` takes an `ArrayGame`, or a `Game` whose method `array_game()` returns one; `as_game` turns an
`ArrayGame` into a plain `Game`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
from collections.abc import Callable, Hashable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.errors import GameError, JaxCFRError, one_line
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

    def chance_probabilities(self, state: State) -> Array | None:
        """Float `[A]`: the probability of every outcome where chance moves; they sum to 1 over `legal_actions`.

        None, for every state, in a game whose chance can only be sampled: such a game defines `sample_chance`, and is
        played but not lowered.
        """
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

    # What follows has defaults; a class that does not subclass `ArrayGame` may leave it out.

    def sample_chance(self, state: State, key: Array) -> Array:
        """One outcome of chance, an int32 scalar for `step`; by default drawn from `chance_probabilities`.

        Pure and traceable. Where chance can only be sampled, the outcome may be any number of at least 0, a seed say.
        """
        return draw(key, possible_outcomes(self, state))

    def infoset_limits(self) -> np.ndarray | None:
        """`[K, 2]`: the smallest and the largest number of every entry of `infoset`, or None where they are not known.

        Only the default of `features` reads it.
        """
        return None

    def features(self, row: Array, player: int) -> Array:
        """Numbers `[F]`: an information set as a network takes it; by default `one_hot` within `infoset_limits`.

        Args:
          row: `[K]`, what `infoset` returned.
          player: whose; static.
        """
        return one_hot(row, self.infoset_limits())

    # The rest describes the game on the host.

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


def draw(key: Array, weights: Array) -> Array:
    """An int32 scalar, drawn in proportion to `weights` `[A]` (not negative, not all zero); never one of weight 0."""
    return draw_at(jax.random.uniform(key, dtype=weights.dtype), weights)


def draw_at(u: Array, weights: Array) -> Array:
    """What `draw` draws where its uniform number is u, from [0, 1)."""
    possible = weights > 0
    reached = jnp.cumsum(weights)
    # Below the largest sum whatever the rounding of the sums.
    below = u * reached.max()
    found = possible & (reached > below)
    last = weights.shape[0] - 1 - jnp.argmax(possible[::-1])
    return jnp.where(found.any(), jnp.argmax(found), last).astype(jnp.int32)


def possible_outcomes(game: Any, state: State) -> Array:
    """The chance probabilities at a state, 0 where the outcome is not possible, `[A]`."""
    probabilities = game.chance_probabilities(state)
    return jnp.where(game.legal_actions(state), probabilities, 0)


MOST_ONE_HOT = 64
"""Entries that take more values than this are written in binary by `one_hot`."""


def one_hot(row: Array, limits: np.ndarray | None) -> Array:
    """Integers as zeros and ones for a network; different rows give different vectors.

    Args:
      row: `[K]` integers.
      limits: `[K, 2]`, the smallest and the largest value of each. An entry of at most `MOST_ONE_HOT` values is
        one-hot; a wider one, and every entry where `limits` is None, is written in binary.

    Returns:
      `[F]` float32.
    """
    bits = 8 * row.dtype.itemsize
    if limits is not None and np.shape(limits) != (row.shape[0], 2):
        raise GameError(
            f"infoset_limits has to be None or [{row.shape[0]}, 2], the smallest and the largest number of every entry "
            f"of infoset; it has the shape {list(np.shape(limits))}"
        )
    bounds = [(0, -1)] * row.shape[0] if limits is None else [(int(low), int(high)) for low, high in limits]
    parts, start = [], 0
    # Neighbours with the same limits together: few operations, however long the row is.
    for (low, high), alike in itertools.groupby(bounds):
        stop = start + len(list(alike))
        entries = row[start:stop, None]
        start = stop
        if 0 <= high - low < MOST_ONE_HOT:
            part = entries == np.arange(low, high + 1)
        else:
            # Unsigned, which keeps the bits.
            unsigned = entries.astype(f"uint{bits}")
            count = bits if limits is None or low < 0 else max(1, high.bit_length())
            part = (unsigned >> np.arange(count).astype(unsigned.dtype)) & 1
        parts.append(part.reshape(-1).astype(jnp.float32))
    return jnp.concatenate(parts) if parts else jnp.zeros(0, jnp.float32)


def features(game: Any, row: Array, player: int) -> Array:
    """`game.features(row, player)` where the game defines it, else the default of `ArrayGame`; `[F]` float32.

    Raises:
      GameError: it fails, or gives something else than numbers `[F]`.
    """
    own = getattr(game, "features", None)
    what = f"{game_name(game)}: features(row, {player})"
    try:
        if own is None:
            values = one_hot(row, game.infoset_limits() if hasattr(game, "infoset_limits") else None)
        else:
            values = jnp.asarray(own(row, player))
    except JaxCFRError:
        raise
    except Exception as error:  # it is anyone's code
        raise GameError(
            f"{what} fails: {type(error).__name__}: {one_line(error).rstrip('.')}. It is compiled, and gives numbers "
            "[F] for a row [K] of infoset"
        ) from error
    if values.ndim != 1 or not values.size or jnp.issubdtype(values.dtype, jnp.complexfloating):
        raise GameError(f"{what} has to be a vector of numbers [F], not {values.dtype}{list(values.shape)}")
    return values.astype(jnp.float32)


def sample_chance(game: Any, state: State, key: Array) -> Array:
    """`game.sample_chance(state, key)` where the game defines it, else the default of `ArrayGame`."""
    own = getattr(game, "sample_chance", None)
    return draw(key, possible_outcomes(game, state)) if own is None else own(state, key)


def x64_enabled(enabled: bool = True) -> Any:
    """A context in which JAX has 64-bit types, or has none, whatever the global setting."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(enabled)
    return importlib.import_module("jax.experimental").enable_x64(enabled)  # jax before 0.8


def chance_is_enumerable(game: Any) -> bool:
    """Whether the chance probabilities of an array game are known; False where chance can only be sampled."""
    return jax.eval_shape(game.chance_probabilities, jax.eval_shape(game.init)) is not None


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
    costs a few calls of compiled functions, so this is for small games, tests and playing. Where chance can only be
    sampled, `chance_outcomes()` is None and an outcome is a number.

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
        self._sample = jax.jit(functools.partial(sample_chance, game))
        self.enumerable = chance_is_enumerable(game)

    def _precision(self) -> Any:
        """Probabilities are to be exact where there are any; else the game runs as it does elsewhere."""
        return x64_enabled() if self.enumerable else contextlib.nullcontext()

    def init(self) -> State:
        with self._precision():
            return jax.tree.map(np.asarray, self.game.init())

    def look(self, state: State) -> tuple[Any, ...]:
        with self._precision():
            return tuple(jax.tree.map(np.asarray, self._look(state)))

    def step(self, state: State, action: int) -> State:
        with self._precision():
            return jax.tree.map(np.asarray, self._step(state, np.int32(action)))

    def sample_chance(self, state: State, seed: int) -> int:
        with self._precision():
            return int(self._sample(state, jax.random.key(np.uint32(seed))))


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
    def arrays(self) -> Any:
        """The array game, at every history."""
        return self._rules.game

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

    def chance_outcomes(self) -> tuple[tuple[Action, float], ...] | None:
        """The possible outcomes with their probabilities; None where they can only be sampled."""
        if not self._rules.enumerable:
            return None
        action, probabilities = self._rules.describe.action, self._facts[2]
        # As numpy scalars, whose dtype tells how exactly they can sum to 1.
        return tuple((action(index), probabilities[index]) for index in self._legal())

    def sample_chance(self, rng: np.random.Generator) -> Action:
        """One outcome of chance."""
        index = self._rules.sample_chance(self._state, int(rng.integers(1 << 32)))
        return self._rules.describe.action(index) if self._rules.enumerable else index

    def legal_actions(self) -> tuple[Action, ...]:
        """The legal actions in the order of their numbers."""
        if self.is_terminal() or self.is_chance():
            return ()
        return tuple(map(self._rules.describe.action, self._legal()))

    def _index(self, action: Action) -> int:
        """The number of a legal action."""
        if self.is_chance() and not self._rules.enumerable:
            if isinstance(action, int | np.integer) and 0 <= action < 1 << 31:
                return int(action)
        elif not self.is_terminal():
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
        if player == CHANCE and not self._rules.enumerable:
            return str(self._index(action))
        row = self._facts[4][player] if player >= 0 else None
        return self._rules.describe.action_label(self._index(action), player, row)
