"""`solve_game`: counterfactual regret minimization by sampling, in games too large for a tree.

The loop of `jaxcfr.solve` over a table of the information sets met so far, instead of a tree.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.array_play import TablePolicy, make_table
from jaxcfr.errors import (
    ChanceNotEnumerableError,
    GameTooLargeError,
    OptionError,
    RecallError,
    SolverError,
    TableFullError,
)
from jaxcfr.games.array_game import Describe, chance_is_enumerable, is_array_game
from jaxcfr.games.base import game_name
from jaxcfr.games.checks import require_instance
from jaxcfr.profile import Profile
from jaxcfr.regret import average as averages
from jaxcfr.regret.matching import normalise
from jaxcfr.regret.schedules import at
from jaxcfr.regret.variants import RegretVariant, dcfr_plus
from jaxcfr.solve import Updates, check_iterations, check_updates, check_variant
from jaxcfr.traversal import array_walks, randomness, table
from jaxcfr.traversal.base import Visited, none_visited
from jaxcfr.traversal.host_walks import HostWalker, Infosets
from jaxcfr.traversal.sampling import ExternalSampling, OutcomeSampling, external_sampling
from jaxcfr.tree.build import float_dtype

CAPACITY = 2**16
MAX_CAPACITY = 2**26
MAX_STEPS = 10_000


class TableState(NamedTuple):
    """A run after t iterations; a pytree. C rows of the table, A actions.

    Attributes:
      t: int32, iterations done.
      weight: the averaging weight of iterate t, relative to the scale of the sums.
      key: a typed key; iteration t takes its random numbers from `fold_in(key, t)`.
      table: the information sets met so far.
      regrets: what the variant stores, leaves `[A, C]`.
      average: `[C, A]`, weighted sum of the realization weights played. Summed plainly: rounding is far below what
        sampling does.
      strategy: `[C, A]`, of the next iteration; zeros at rows that are free.
      passes: `[P]`, about how many walks fit into a pass.
      visited: histories visited so far.
      fill: float32, above 1 if a single walk was too large for a frontier.
    """

    t: Array
    weight: averages.Weight
    key: Array
    table: table.Table
    regrets: Any
    average: Array
    strategy: Array
    passes: Array
    visited: Visited
    fill: Array


class SampledRun(NamedTuple):
    """What `solve_game` returns.

    Attributes:
      state: to go on from.
      infosets: of a plain game, the information sets by row; None for array games, whose state holds their keys.
      game: that was solved.
    """

    state: TableState
    infosets: Infosets | None
    game: Any

    @property
    def num_infosets(self) -> int:
        """How many information sets were met."""
        return int(self.state.table.size)

    @property
    def unvisited(self) -> int:
        """How many of them were met without ever being reached by their owner's own strategy: they play uniformly."""
        used = np.asarray(self.state.table.owner) >= 0
        return int((used & (np.asarray(self.state.average).sum(1) <= 0)).sum())

    def profile(self, *, variant: Any = None, seed: int | None = None) -> Profile:
        """The average strategy at the information sets that were met.

        What was never met is not in it: play it, or turn it into a tree's strategy, with `missing="uniform"`.
        """
        strategy = np.asarray(_average(self.state), np.float64)
        owner, legal = np.asarray(self.state.table.owner), np.asarray(self.state.table.legal)
        players: list[list[Any]] = [[] for _ in range(int(self.game.num_players))]
        describe = Describe(self.game) if self.infosets is None else None
        keys = np.asarray(self.state.table.keys)
        for row in range(min(self.num_infosets, len(owner))):
            chosen = np.flatnonzero(legal[row])
            values = strategy[row, chosen]
            player = int(owner[row])
            if describe is not None:
                key = describe.infoset_key(keys[row], player)
                actions = tuple(describe.action(int(index)) for index in chosen)
                labels = tuple(describe.action_label(int(index), player, keys[row]) for index in chosen)
            else:
                assert self.infosets is not None
                key = self.infosets.keys[row]
                actions, labels = self.infosets.actions[row], self.infosets.labels[row]
            players[player].append((key, actions, labels, (values / values.sum()).tolist()))
        return Profile.from_infosets(
            game_name(self.game), players, variant=variant, iterations=int(self.state.t), seed=seed
        )

    def policy(self) -> TablePolicy:
        """The average strategy of an array game as a policy, uniform at information sets that were never met.

        With it plays of games beyond any tree are sampled (`play_batch`), and its exploitability is bounded
        (`exploitability_bound`); one policy serves all players.

        Raises:
          OptionError: the run is of a plain game, whose information sets have no rows; take its `profile`.
        """
        if self.infosets is not None:
            raise OptionError("a policy is for array games, and this run is of a plain game: take its profile()")
        strategy, owner = np.asarray(_average(self.state), np.float32), np.asarray(self.state.table.owner)
        keys = np.asarray(self.state.table.keys)
        own = [np.flatnonzero(owner == player) for player in range(int(self.game.num_players))]
        return make_table([keys[rows] for rows in own], [strategy[rows] for rows in own])


def solve_game(
    game: Any,
    variant: RegretVariant | None = None,
    iterations: int = 1000,
    run: SampledRun | None = None,
    *,
    traversal: ExternalSampling | OutcomeSampling | None = None,
    seed: int | Array = 0,
    updates: Updates = "alternating",
    capacity: int = CAPACITY,
    slots: int | None = None,
    dtype: Any = None,
) -> SampledRun:
    """Runs counterfactual regret minimization without a tree: what is not sampled is never looked at.

    An `ArrayGame` (or a bundled game that has one) is sampled on the device, where information sets live in a hash
    table of fixed capacity. Any other `Game` is walked in Python, history by history: slow, but its chance may be of
    the kind that can only be sampled (`chance_outcomes()` is None).

    Each iteration passes over the whole table to discount, to match regrets and to weight the average by the player's
    own reach, exactly as `solve` does, so choose the batch large enough that this is little. An information set counts
    in the average from the iteration on in which it was first met.

    Args:
      game: the rules: an `ArrayGame`, or the root of a `Game`.
      variant: the regret variant; None means `dcfr_plus()`.
      iterations: how many more.
      run: what an earlier call for the same game returned, to go on from. None starts anew.
      traversal: `external_sampling()`, the default, or `outcome_sampling()`.
      seed: an integer, or a typed key; a run that goes on keeps its own.
      updates: "alternating" or "simultaneous", as in `solve`.
      capacity: information sets that the table has room for (rounded up to a power of two). Memory is about
        `capacity * num_actions * 5` numbers.
      slots: histories that a frontier on the device has room for; by default 16 times the batch, within bounds.
      dtype: float32 or float64; None follows `jax_enable_x64`.

    Raises:
      OptionError: an argument makes no sense.
      TableFullError: more information sets were met than the table has room for.
      GameTooLargeError: a single walk meets more histories at a time than a frontier has room for.
      RecallError: a player forgets.
      GameError: the rules are broken.
    """
    variant = dcfr_plus() if variant is None else variant
    traversal = external_sampling() if traversal is None else traversal
    check_variant(variant)
    check_iterations(iterations)
    check_updates(updates)
    if updates == "best_response":
        raise OptionError('updates="best_response" needs the whole tree: lower the game, and use jaxcfr.solve')
    if not isinstance(traversal, ExternalSampling | OutcomeSampling):
        raise OptionError(
            f"without a tree the traversal has to be external_sampling() or outcome_sampling(), not {traversal!r}"
        )
    if isinstance(traversal, ExternalSampling) and traversal.pruning is not None:
        raise OptionError("pruning needs a tree: leave it out, or lower the game and use solve")
    if isinstance(traversal, OutcomeSampling) and traversal.baseline is not None:
        raise OptionError("baselines need a tree: leave baseline out, or lower the game and use solve")
    rows = _power_of_two("capacity", capacity, MAX_CAPACITY)
    require_instance(game, "solve_game")
    arrays = _array_game(game)
    chosen = float_dtype(dtype)
    if run is not None and not isinstance(run, SampledRun):
        raise SolverError(f"expected the SampledRun that solve_game returns, not {type(run).__name__}")
    if run is not None and run.game is not arrays and run.game is not game and run.game != arrays:
        raise SolverError(f"the run is of another game: {game_name(run.game)}")
    if arrays is None:
        return _run_on_host(game, variant, int(iterations), run, traversal, seed, updates, rows, chosen)
    room = _slots(slots, traversal.batch)
    state = _initial(arrays, variant, rows, room, seed, chosen) if run is None else run.state
    state = _run_on_device(arrays, variant, traversal, state, int(iterations), updates, room)
    _check(state, int(arrays.num_players), room)
    return SampledRun(state, None, arrays)


def _array_game(game: Any) -> Any:
    """The array game that is sampled on the device, or None where the plain rules are walked."""
    if is_array_game(game) and not hasattr(game, "is_terminal"):
        if not chance_is_enumerable(game):
            raise ChanceNotEnumerableError(
                f"{game_name(game)}: chance can only be sampled, and on the device every outcome with its probability "
                "is needed; jaxcfr.as_game(game) is walked in Python, one play after the other"
            )
        return game
    method = getattr(game, "array_game", None)
    arrays = None if method is None else method()
    return arrays if arrays is not None and chance_is_enumerable(arrays) else None


def _slots(slots: Any, batch: int) -> int:
    if slots is None:
        return min(max(16 * batch, 2**11), 2**16)
    return _power_of_two("slots", slots, 2**22)


def _power_of_two(name: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
        raise OptionError(f"{name} has to be an integer from 1 to {most:,}, not {value!r}")
    return 1 << max(int(value) - 1, 15).bit_length()


def _initial(game: Any, variant: RegretVariant, rows: int, room: int, seed: Any, dtype: Any) -> TableState:
    empty = table.empty_table(rows, array_walks.key_width(game), int(game.num_actions))
    return _state(empty, variant, int(game.num_players), room, seed, dtype)


def _state(empty: table.Table, variant: RegretVariant, players: int, room: int, seed: Any, dtype: Any) -> TableState:
    zeros = jnp.zeros(empty.legal.shape, dtype)
    return TableState(
        t=jnp.zeros((), jnp.int32),
        weight=averages.init_weight(dtype),
        key=randomness.as_key(seed),
        table=empty,
        regrets=variant.init(zeros.T),
        average=zeros,
        strategy=zeros,
        passes=jnp.full(players, room, jnp.float32),
        visited=none_visited(),
        fill=jnp.zeros((), jnp.float32),
    )


def _check(state: TableState, players: int, room: int) -> None:
    count, capacity = int(state.table.size), state.table.capacity
    if count > capacity:
        raise TableFullError(
            f"more information sets were met than the table has room for: all {capacity:,} rows were taken in "
            f"iteration {int(state.t)}; give a larger capacity"
        )
    if int(state.table.forgetful) >= 0:
        row = int(state.table.forgetful)
        raise RecallError(
            f"player {int(state.table.owner[row])} forgets at information set {np.asarray(state.table.keys[row])}: its "
            "histories differ in what the player did before; counterfactual regret minimization needs perfect recall"
        )
    if float(state.fill) > 1:
        raise GameTooLargeError(
            f"a single walk meets more than {room:,} histories at a time: give more slots, or use outcome_sampling()"
        )


def _known(state: TableState) -> Array:
    """The strategy, uniform at rows that are new."""
    new = (state.table.owner >= 0) & (state.strategy.sum(1) <= 0)
    return jnp.where(new[:, None], table.uniform(state.table, state.strategy.dtype), state.strategy)


def _begin(variant: RegretVariant, state: TableState) -> TableState:
    """The next t and its averaging weight; everything is scaled down where that is due."""
    dtype = state.strategy.dtype
    t = (state.t + 1).astype(dtype)

    def scale(state: TableState) -> TableState:
        weight, shift = averages.scale_down(state.weight, variant.gamma_at(t), t)
        return state._replace(weight=weight, average=state.average * averages.power_of_two(shift, dtype))

    state = jax.lax.cond(averages.due(state.t + 1), scale, lambda state: state, state)
    return state._replace(t=state.t + 1, weight=averages.advance(state.weight, variant.gamma_at(t), t))


def _update(variant: RegretVariant, state: TableState, played: Array, player: int, direct: Array) -> TableState:
    """What a player stores after its walks, and its next strategy."""
    dtype = state.strategy.dtype
    t = state.t.astype(dtype)
    mine = state.table.owner == player
    r = table.regrets(state.table, direct.astype(dtype), played, player)
    after = variant.update(state.regrets, r.T, t)
    regrets = jax.tree.map(lambda new, old: jnp.where(mine, new, old), after, state.regrets)
    strategy = variant.strategy(regrets, table.uniform(state.table, dtype).T, t).T
    weights = table.realization_weights(state.table, jnp.where(mine[:, None], played, 0))
    average = state.average + jnp.exp2(state.weight.log2) * weights
    return state._replace(regrets=regrets, average=average, strategy=jnp.where(mine[:, None], strategy, state.strategy))


@functools.partial(jax.jit, static_argnames=("game", "updates", "room"))
def _run_on_device(
    game: Any,
    variant: RegretVariant,
    traversal: ExternalSampling | OutcomeSampling,
    state: TableState,
    iterations: Array,
    updates: Updates,
    room: int,
) -> TableState:
    end = state.t + iterations

    def fine(state: TableState) -> Array:
        return (state.table.size <= state.table.capacity) & (state.table.forgetful < 0) & (state.fill <= 1)

    def iterate(state: TableState) -> TableState:
        state = _begin(variant, state)
        fixed = _known(state)
        for player in range(int(game.num_players)):
            strategy = _known(state) if updates == "alternating" else fixed
            exploration = None
            if isinstance(traversal, OutcomeSampling):
                exploration = jnp.asarray(at(traversal.exploration, state.t.astype(strategy.dtype)), strategy.dtype)
            seed = randomness.words(state.key, state.t, player)
            walker = array_walks.ArrayWalker(game, player, seed, strategy, exploration, room)
            sums, fits = walker.run(state.table, traversal.batch, state.passes[player])
            state = state._replace(
                table=sums.table,
                passes=state.passes.at[player].set(fits),
                visited=state.visited.add(sums.visited),
                fill=jnp.maximum(state.fill, sums.fill),
            )
            played = _known(state._replace(strategy=strategy))
            state = _update(variant, state, played, player, sums.values)
        return state

    return jax.lax.while_loop(lambda state: (state.t < end) & fine(state), iterate, state)


@functools.partial(jax.jit, static_argnames="player")
def _update_from_host(
    variant: RegretVariant, state: TableState, strategy: Array, player: int, direct: Array
) -> TableState:
    return _update(variant, state, _known(state._replace(strategy=strategy)), player, direct)


_begin_from_host = jax.jit(_begin)


def _run_on_host(
    game: Any,
    variant: RegretVariant,
    iterations: int,
    run: SampledRun | None,
    traversal: ExternalSampling | OutcomeSampling,
    seed: Any,
    updates: Updates,
    capacity: int,
    dtype: Any,
) -> SampledRun:
    players = int(game.num_players)
    if run is None:
        infosets = Infosets()
        state = _state(table.empty_table(16, 0, 2), variant, players, 1, seed, dtype)
    else:
        assert run.infosets is not None
        infosets, state = run.infosets.copy(), run.state
    for _ in range(iterations):
        state = _begin_from_host(variant, state)
        fixed = state.strategy
        for player in range(players):
            strategy = state.strategy if updates == "alternating" else fixed
            exploration = None
            if isinstance(traversal, OutcomeSampling):
                exploration = float(at(traversal.exploration, state.t.astype(dtype)))
            numbers = np.asarray(jnp.stack(randomness.words(state.key, state.t, player))).tolist()
            rng = np.random.default_rng(numbers)
            walker = HostWalker(game, infosets, np.asarray(strategy), rng, exploration, MAX_STEPS)
            direct: dict[tuple[int, int], float] = {}
            for _ in range(traversal.batch):
                walker.walk(player, direct)
                if len(infosets.owner) > capacity:
                    raise TableFullError(
                        f"more information sets were met than the table has room for: {len(infosets.owner):,} in "
                        f"iteration {int(state.t)}; give a larger capacity"
                    )
            state, strategy, fixed = _grown(state, variant, infosets, strategy, fixed)
            actions = state.table.num_actions
            values = np.zeros(state.table.legal.size + 1)
            for (row, action), value in direct.items():
                values[row * actions + action if row >= 0 else -1] += value / traversal.batch
            state = state._replace(visited=state.visited.add(jnp.float32(walker.visited)))
            state = _update_from_host(variant, state, strategy, player, jnp.asarray(values, dtype))
    return SampledRun(state, infosets, game)


def _grown(
    state: TableState, variant: RegretVariant, infosets: Infosets, *strategies: Array
) -> tuple[TableState, Array, Array]:
    """The state with rows for all information sets met; tables double in size, so that few programs are compiled."""
    count = len(infosets.owner)
    rows, actions = state.table.legal.shape
    while rows < count:
        rows *= 2
    while actions < infosets.most_actions:
        actions *= 2

    def pad(values: Array) -> Array:
        return jnp.pad(values, [(0, rows - values.shape[0]), (0, actions - values.shape[1])])

    legal = np.zeros((rows, actions), bool)
    for row, menu in enumerate(infosets.actions):
        legal[row, : len(menu)] = True
    owner, parent, level = np.full(rows, -1, np.int32), np.full(rows, -1, np.int32), np.zeros(rows, np.int32)
    owner[:count], level[:count] = infosets.owner, infosets.level
    parent[:count] = [row * actions + action if row >= 0 else -1 for row, action in infosets.parent]
    grown = state.table._replace(
        keys=jnp.zeros((rows, 0), jnp.int32),
        owner=jnp.asarray(owner),
        parent=jnp.asarray(parent),
        level=jnp.asarray(level),
        legal=jnp.asarray(legal),
        size=jnp.asarray(count, jnp.int32),
    )
    state = state._replace(
        table=grown,
        regrets=jax.tree.map(lambda leaf: pad(leaf.T).T, state.regrets),
        average=pad(state.average),
        strategy=pad(state.strategy),
    )
    padded = [pad(strategy) for strategy in strategies]
    return state, padded[0], padded[1]


@jax.jit
def _average(state: TableState) -> Array:
    return normalise(state.average, table.uniform(state.table, state.average.dtype), axis=1)
