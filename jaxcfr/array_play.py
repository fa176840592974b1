"""Plays of array games: policies as pure functions, and whole plays that jit and vmap.

A *policy* is a callable `policy(game, state, player)` that returns `[A]` numbers, not negative and not all zero over
the legal actions, in proportion to which `player` acts at `state`; what it gives to other actions is ignored. It has
to look at what the player knows only: `game.infoset(state, player)`, `game.legal_actions(state)`, or
`features(game, row, player)`. `player` is static.

Big arrays (a table, the weights of a network) belong into the leaves of the policy, not into its closure, so that they
are arguments of compiled programs: `TablePolicy` is a pytree, and `jax.tree_util.Partial(function, weights)` makes one
of a function. A bare function is taken as it is, and compiled anew for every other function.

A policy that mixes whole strategies has a method `begin(key)` besides, which returns the policy for one play; it is
called before each. Such a mixture says nothing of single information sets, so best responses to it cannot be bounded.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.errors import GameError, OptionError, StrategyError
from jaxcfr.games.array_game import CHANCE, TERMINAL, Describe, State, draw, sample_chance
from jaxcfr.profile import Profile
from jaxcfr.traversal.randomness import STEP, mix
from jaxcfr.tree.game_tree import Strategy
from jaxcfr.tree.lower import LoweredGame
from jaxcfr.tree.lower_arrays import check_shapes

Policy = Callable[[Any, State, int], Array]
"""See the module's text."""

MAX_STEPS = 10_000
"""A play that goes on after this many moves, chance included, is taken to be infinite."""

BATCH = 1 << 20
"""Plays of one call of a compiled program, at most."""

BATCH_ENTRIES = 1 << 23
"""And at most about this many entries of the probabilities of their actions."""

BEGINNING = 0xBE61
"""Keeps what policies draw at the beginning of a play apart from its moves."""

ENDED, TOO_LONG, NO_DISTRIBUTION = 0, 1, 2
"""Values of `Play.status`."""


class Play(NamedTuple):
    """How a play went.

    Attributes:
      payoffs: `[P]`, of every player; NaN unless the play has ended.
      steps: int32, moves of the play, chance included.
      status: int32, `ENDED`; `TOO_LONG`: not within `max_steps`; `NO_DISTRIBUTION`: a policy gave numbers that are
        negative, not finite, or zero at all legal actions.
    """

    payoffs: Array
    steps: Array
    status: Array


def uniform_policy(game: Any, state: State, player: int) -> Array:
    """Every legal action is equally likely."""
    return game.legal_actions(state).astype(jnp.float32)


def sample_play(
    game: Any, policies: Sequence[Policy], key: Array, state: State | None = None, *, max_steps: int = MAX_STEPS
) -> Play:
    """One play of an array game. Pure: `jax.vmap` over keys (and states) plays a batch, `jax.jit` compiles it.

    Args:
      game: a `jaxcfr.ArrayGame`.
      policies: one per player.
      key: a PRNG key.
      state: where the play begins; None means the root.
      max_steps: the play is broken off after this many moves.
    """
    start = game.init() if state is None else state
    policies = [_begun(policy, key, player) for player, policy in enumerate(policies)]

    def goes_on(carry: tuple[State, Array, Array, Array]) -> Array:
        state, _, steps, status = carry
        return (game.player(state) != TERMINAL) & (steps < max_steps) & (status == ENDED)

    def move(carry: tuple[State, Array, Array, Array]) -> tuple[State, Array, Array, Array]:
        state, key, steps, status = carry
        key, mine = jax.random.split(key)
        player = game.player(state)
        weights, sound = acting_weights(game, policies, state, player)
        action = jnp.where(player == CHANCE, sample_chance(game, state, mine), draw(mine, weights))
        # Chance draws no action, and players no outcome: each play uses `mine` once.
        broken = (player != CHANCE) & ~sound
        after = jax.tree.map(lambda old, new: new.astype(old.dtype), state, game.step(state, action))
        return after, key, steps + 1, jnp.where(broken, NO_DISTRIBUTION, status).astype(jnp.int32)

    zero = jnp.zeros((), jnp.int32)
    state, _, steps, status = jax.lax.while_loop(goes_on, move, (start, key, zero, zero))
    unfinished = (status == ENDED) & (game.player(state) != TERMINAL)
    status = jnp.where(unfinished, TOO_LONG, status)
    payoffs = jnp.asarray(game.returns(state), jnp.result_type(float))
    return Play(jnp.where(status == ENDED, payoffs, jnp.nan), steps, status)


def begins(policy: Any) -> bool:
    """Whether a policy draws something for each play."""
    return callable(getattr(policy, "begin", None))


def _begun(policy: Any, key: Array, player: int) -> Any:
    """The policy for one play."""
    if not begins(policy):
        return policy
    return policy.begin(jax.random.fold_in(jax.random.fold_in(key, BEGINNING), player))


def acting_weights(game: Any, policies: Sequence[Policy], state: State, player: Array) -> tuple[Array, Array]:
    """What the policy of `player` gives to the legal actions, `[A]`, and whether it is a distribution up to a factor.

    Where it is none the weights are uniform.
    """
    legal = game.legal_actions(state)
    weights = jnp.zeros(legal.shape, jnp.result_type(float))
    for number, policy in enumerate(policies):
        given = policy(game, state, number)
        if getattr(given, "shape", None) != legal.shape:
            what = type(given).__name__ if not hasattr(given, "shape") else f"an array of shape {given.shape}"
            raise StrategyError(
                f"{Describe(game).name}: the policy of player {number} has to return one number for each of the "
                f"{legal.shape[0]} actions, an array of shape {legal.shape}, not {what}"
            )
        weights = jnp.where(player == number, jnp.asarray(given, weights.dtype), weights)
    weights = jnp.where(legal, weights, 0)
    sound = jnp.all((weights >= 0) & (weights < jnp.inf)) & (weights.sum() > 0) & (weights.sum() < jnp.inf)
    return jnp.where(sound, weights, legal), sound


# Tables


SALTS = 16
"""Hash functions that are tried for a table; a second one is needed for one table of a million rows in a hundred."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class TablePolicy:
    """A tabular strategy as a policy: uniform at information sets that the table does not have.

    A hash table with open addressing, one for each player; made by `table_policy`.

    Attributes:
      marks: per player `[S]` uint32, a hash of the row in every slot, 0 where it is empty; equal ones are farther
        apart than `probes`.
      rows: per player `[S, K]`, the information set in every slot.
      weights: per player `[S, A]` float32, its strategy.
      salt: uint32, which hash function.
      probes: most slots that a search has to look at (static).
    """

    marks: tuple[Array, ...]
    rows: tuple[Array, ...]
    weights: tuple[Array, ...]
    salt: Array
    probes: int = dataclasses.field(metadata={"static": True})

    def __repr__(self) -> str:
        return f"TablePolicy({len(self.rows)} players, slots {tuple(part.shape[0] for part in self.marks)})"

    def __call__(self, game: Any, state: State, player: int) -> Array:
        row, legal = game.infoset(state, player), game.legal_actions(state)
        marks, weights = self.marks[player], self.weights[player]
        if (row.shape, legal.shape) != (self.rows[player].shape[1:], weights.shape[1:]):
            raise OptionError(
                f"the table was made of a game with {self.rows[player].shape[1]} numbers in an information set and "
                f"{weights.shape[1]} actions, but {Describe(game).name} has {row.shape[0]} and {legal.shape[0]}"
            )
        home, mark = _hash(row, self.salt)
        slots = (home + jnp.arange(self.probes, dtype=jnp.uint32)) & np.uint32(marks.shape[0] - 1)
        slot = slots[jnp.argmax(marks[slots] == mark)]
        found = (marks[slot] == mark) & (self.rows[player][slot] == row).all()
        return jnp.where(found, weights[slot], legal.astype(weights.dtype))


def _hash(row: Array, salt: Array) -> tuple[Array, Array]:
    """Two uint32 of integers `[K]`, the second one not 0."""
    first, second = salt, ~salt
    for index in range(row.shape[0]):
        word = row[index].astype(jnp.int32).astype(jnp.uint32)
        first, second = mix(first ^ word), mix(second + word * np.uint32(STEP))
    return first, jnp.maximum(second, np.uint32(1))


_hashes = jax.jit(jax.vmap(_hash, (0, None)))


def table_policy(lowered: LoweredGame, strategy: Strategy | Profile) -> TablePolicy:
    """A strategy of a lowered array game as a policy of it.

    Args:
      lowered: what `jaxcfr.lower` returned for an array game (`game.array_game()`, where the game is a plain one).
      strategy: one array per player, `[L_p]`, or a profile.

    Raises:
      OptionError: the game was lowered by its plain rules, whose information sets have no rows.
      ProfileError, StrategyError: the strategy does not fit.
    """
    table = lowered.infosets
    if table is None:
        raise OptionError(
            "table_policy needs a game that was lowered as an array game: jaxcfr.lower(game.array_game()), where the "
            "game has one"
        )
    if isinstance(strategy, Profile):
        strategy = strategy.to_strategy(lowered)
    weights = []
    for player, packed in enumerate(table.legal):
        legal = np.unpackbits(packed, axis=1, count=table.num_actions, bitorder="little").astype(bool)
        found = np.zeros(legal.shape, np.float32)
        values = lowered.probabilities(strategy, player)
        if values:
            found[legal] = np.maximum(np.concatenate(values), 0)
        weights.append(found)
    return make_table(table.rows, weights)


def make_table(rows: Sequence[np.ndarray], weights: Sequence[np.ndarray]) -> TablePolicy:
    """A `TablePolicy` of different rows `[n_p, K]` and their weights `[n_p, A]`, one of each per player."""
    for number in range(1, SALTS + 1):
        salt = np.uint32(STEP * number % 2**32)
        parts = [_table(row, weight, salt) for row, weight in zip(rows, weights, strict=True)]
        # A power of two, so that tables of about the same size share compiled programs.
        probes = 1 << (max(most for *_, most in parts) - 1).bit_length()
        if not any(_close_twins(marks, probes) for marks, *_ in parts):
            return TablePolicy(
                marks=tuple(jnp.asarray(marks) for marks, *_ in parts),
                rows=tuple(jnp.asarray(placed) for _, placed, *_ in parts),
                weights=tuple(jnp.asarray(filled) for _, _, filled, _ in parts),
                salt=jnp.asarray(salt),
                probes=probes,
            )
    raise OptionError("the information sets cannot be told apart by 32-bit hashes: the table is too large")


def _table(row: np.ndarray, weight: np.ndarray, salt: np.uint32) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """One player's marks, rows and weights by slot, and the most slots that a search looks at."""
    size = 1 << max(2, (4 * len(row) - 1).bit_length())
    home, mark = (np.asarray(found) for found in _hashes(row, salt)) if len(row) else np.zeros((2, 0), np.uint32)
    slot, most = _place(home.astype(np.int64) & (size - 1), size)
    marks = np.zeros(size, np.uint32)
    rows, weights = np.zeros((size, row.shape[1]), row.dtype), np.zeros((size, weight.shape[1]), np.float32)
    marks[slot], rows[slot], weights[slot] = mark, row, weight
    return marks, rows, weights, most


def _close_twins(marks: np.ndarray, probes: int) -> bool:
    """Whether two equal marks are so near that one search sees both."""
    shifts = range(1, min(probes, len(marks)))
    return any(bool(np.any((marks == np.roll(marks, shift)) & (marks > 0))) for shift in shifts)


def _place(home: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """Slots for entries that would like to have those of `home`: the next free one, and most slots looked at."""
    taken = np.zeros(size, bool)
    slot = np.full(len(home), -1, np.int64)
    waiting, step = np.arange(len(home)), 0
    while len(waiting):
        wanted = (home[waiting] + step) & (size - 1)
        _, first = np.unique(wanted, return_index=True)
        gets = np.zeros(len(waiting), bool)
        gets[first] = ~taken[wanted[first]]
        slot[waiting[gets]] = wanted[gets]
        taken[wanted[gets]] = True
        waiting, step = waiting[~gets], step + 1
    return slot, max(step, 1)


# Batches


class Programs:
    """The compiled functions of one array game."""

    def __init__(self, game: Any) -> None:
        check_shapes(game, sampled=True)
        self.game = game
        self.plays = jax.jit(self._plays, static_argnames=("count", "max_steps"))
        self.plays_from = jax.jit(self._plays_from, static_argnames="max_steps")
        self.look = jax.jit(self._look, static_argnames="observer")
        self.step = jax.jit(jax.vmap(self._step))
        self.sample = jax.jit(self._sample)

    def _plays(self, policies: Any, key: Array, count: int, max_steps: int) -> Play:
        """`count` plays from the root."""
        play = functools.partial(sample_play, self.game, policies, max_steps=max_steps)
        return jax.vmap(play)(jax.random.split(key, count))

    def _plays_from(self, policies: Any, keys: Array, states: State, max_steps: int) -> Play:
        """One play from each of several states; `keys` are the data of a key each."""
        play = functools.partial(sample_play, self.game, policies, max_steps=max_steps)
        return jax.vmap(play)(jax.random.wrap_key_data(keys), states)

    def _look(self, policies: Any, states: State, observer: int) -> Look:
        def one(state: State) -> Look:
            game = self.game
            player = game.player(state).astype(jnp.int32)
            weights, sound = acting_weights(game, policies, state, player)
            chance = game.chance_probabilities(state)
            if chance is not None:
                weights = jnp.where(player == CHANCE, chance, weights)
            legal = game.legal_actions(state) & (player != TERMINAL)
            weights = jnp.where(legal, weights, 0)
            total = weights.sum()
            return Look(
                player,
                legal,
                weights / jnp.where(total > 0, total, 1),
                sound | (player < 0),
                game.infoset(state, observer),
                jnp.asarray(game.returns(state), jnp.result_type(float)),
            )

        return jax.vmap(one)(states)

    def _step(self, state: State, action: Array) -> State:
        return jax.tree.map(lambda old, new: new.astype(old.dtype), state, self.game.step(state, action))

    def _sample(self, policies: Any, keys: Array, states: State) -> Array:
        """An action of whoever acts at each of several states; `keys` are the data of a key each."""

        def one(key: Array, state: State) -> Array:
            player = self.game.player(state)
            weights, _ = acting_weights(self.game, policies, state, player)
            return jnp.where(player == CHANCE, sample_chance(self.game, state, key), draw(key, weights))

        return jax.vmap(one)(jax.random.wrap_key_data(keys), states)


class Look(NamedTuple):
    """What is to be known about B states.

    Attributes:
      player: `[B]` int32.
      legal: `[B, A]` bool, nothing where the play has ended.
      weights: `[B, A]`, probabilities of the actions of whoever acts, or of the outcomes of chance where it can be
        enumerated.
      sound: `[B]`, whether the policy that was asked gave a distribution.
      row: `[B, K]`, what the observer knows.
      payoffs: `[B, P]`, of the states where the play has ended.
    """

    player: Array
    legal: Array
    weights: Array
    sound: Array
    row: Array
    payoffs: Array


@functools.lru_cache(maxsize=32)
def _programs_of(game: Any) -> Programs:
    return Programs(game)


def programs_of(game: Any) -> Programs:
    """The compiled functions of an array game; equal games share them."""
    return _programs_of(game) if isinstance(game, Hashable) else Programs(game)


def as_policies(game: Any, policies: Any) -> tuple[Any, ...]:
    """One policy per player as pytrees; raises `OptionError` for anything else."""
    players = int(game.num_players)
    name = Describe(game).name
    if callable(policies) or isinstance(policies, Profile) or not isinstance(policies, Sequence):
        raise OptionError(f"{name} has {players} players, and a list with one policy for each is needed")
    if len(policies) != players:
        raise OptionError(f"{name} has {players} players, but {len(policies)} policies were given")
    for player, policy in enumerate(policies):
        if isinstance(policy, Profile) or not callable(policy):
            hint = "; jaxcfr.table_policy makes a policy of a profile" if isinstance(policy, Profile) else ""
            raise OptionError(
                f"player {player} of {name}: a policy of an array game is a function policy(game, state, player), not "
                f"{type(policy).__name__}{hint}"
            )
    # A function is no pytree by itself; a Partial of it is one without leaves.
    partial: Any = jax.tree_util.Partial
    return tuple(partial(policy) if jax.tree_util.all_leaves([policy]) else policy for policy in policies)


def play_arrays(game: Any, policies: Any, key: Array, n: int, max_steps: int = MAX_STEPS) -> np.ndarray:
    """Payoffs of `n` plays of an array game, `[n, P]`.

    Raises:
      OptionError: the wrong number of policies, or what is no policy.
      GameError: a play did not end within `max_steps` moves.
      StrategyError: a policy gave no distribution.
    """
    policies = as_policies(game, policies)
    programs = programs_of(game)
    largest = min(BATCH, max(1, BATCH_ENTRIES // (1 << (int(game.num_actions) - 1).bit_length())))
    count = min(largest, 1 << (n - 1).bit_length())
    found = []
    for batch, begin in enumerate(range(0, n, count)):
        play = programs.plays(policies, jax.random.fold_in(key, batch), count, max_steps)
        kept = min(count, n - begin)
        require_ended(game, np.asarray(play.status)[:kept], max_steps)
        found.append(np.asarray(play.payoffs)[:kept])
    return np.concatenate(found)


def require_ended(game: Any, status: np.ndarray, max_steps: int) -> None:
    """Raises the error of the first play that did not end as it should."""
    bad = status[status != ENDED]
    if not len(bad):
        return
    name = Describe(game).name
    if bad[0] == TOO_LONG:
        raise too_long(name, max_steps)
    raise StrategyError(
        f"{name}: a policy gave numbers that are no distribution over the legal actions: they have to be finite and "
        "not negative, and one of them above zero"
    )


def too_long(name: str, max_steps: int) -> GameError:
    """The error of a play that goes on and on."""
    return GameError(
        f"{name}: a play did not end within max_steps = {max_steps:,} moves; does the game end? If so, raise max_steps"
    )
