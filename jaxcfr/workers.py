"""Several independent runs of one problem, and their average.

A *team* is W runs of `solve` that differ in their random keys only, each with
its own tables. They are laid over all devices of a mesh, a fixed number of
them (`INNER`) in one program of one device, as many rounds as it takes: so the
same worker goes through the same program, next to the same others, however
many devices there are, and gives the same bits. Only the averages are folded
together, one worker after the other. With `jax.distributed` the mesh spans all
processes, and every process holds the folded average.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxcfr.prescribed import Blend, Locks
from jaxcfr.regret import average as averages
from jaxcfr.regret.variants import RegretVariant
from jaxcfr.solve import SolverState, Updates, _run, prescribe, solve, strategy_of_sums
from jaxcfr.traversal.base import Traversal
from jaxcfr.traversal.randomness import as_key
from jaxcfr.tree.game_tree import GameTree, Strategy

INNER = {"cpu": 1}
"""Workers in one program of a device. On a CPU a sampling walk that is batched takes twice as long as two that are not
(measured on Kuhn and Leduc poker, 8 workers)."""

OTHER_INNER = 8
"""The same on platforms where nothing else is said: there a batch fills the device."""

WORKERS = np.uint32(0x80000000)
"""Folded into the key before the number of a worker. Iterations are folded in too, and are all below it."""


_PARTS: Any = PartitionSpec("workers")  # type: ignore[no-untyped-call]
_WHOLE: Any = PartitionSpec()  # type: ignore[no-untyped-call]


@dataclasses.dataclass(frozen=True)
class Team:
    """W runs, at the same t.

    Attributes:
      count: W.
      rounds: for W = 1 the state; else states with a leading axis, sharded over the mesh: worker w is entry w of
        their concatenation, and what lies behind the last worker is padding.
    """

    count: int
    rounds: tuple[SolverState, ...]

    @property
    def t(self) -> int:
        """Iterations done."""
        return int(np.max(np.asarray(_local(self.rounds[0].t))))


def worker_key(seed: Any, worker: int) -> Array:
    """The key of a worker's run; the first worker has the seed's own, so that one worker is `solve(seed=seed)`."""
    key = as_key(seed)
    return key if worker == 0 else jax.random.fold_in(jax.random.fold_in(key, WORKERS), worker)


def begin(
    tree: GameTree,
    variant: RegretVariant,
    traversal: Traversal,
    count: int,
    *,
    seed: Any,
    locks: Locks | None = None,
    blend: Blend | None = None,
) -> Team:
    """A team before the first iteration.

    Raises:
      OptionError: as `solve`.
    """
    states = [
        solve(tree, variant, 0, traversal=traversal, seed=worker_key(seed, worker), locked=locks, blended=blend)
        for worker in range(count)
    ]
    return team_of(jax.tree.map(lambda *leaves: jnp.stack(leaves), *states))


def team_of(stacked: SolverState) -> Team:
    """A team from its states with a leading axis `[W]`."""
    count = stacked.t.shape[0]
    if count == 1:
        return Team(1, (jax.tree.map(lambda leaf: leaf[0], stacked),))
    return Team(count, rounds_of(stacked, count))


def rounds_of(stacked: Any, count: int) -> tuple[Any, ...]:
    """What belongs to `count` workers, leaves `[W, ...]`, divided into rounds and laid over the mesh."""
    width = _mesh().size * _inner()
    rounds = []
    for start in range(0, count, width):
        # What is missing in the last round is filled up with the last worker, whose doubles nobody looks at.
        index = np.minimum(np.arange(start, start + width), count - 1)
        rounds.append(_put(jax.tree.map(lambda leaf, index=index: leaf[index], stacked), _PARTS))
    return tuple(rounds)


def stacked(team: Team, part: Callable[[SolverState], Any] = lambda state: state) -> Any:
    """What `part` takes from every worker's state, with a leading axis `[W]`, on one device of this process."""
    if team.count == 1:
        return jax.tree.map(lambda leaf: leaf[None], part(team.rounds[0]))
    return gathered(tuple(map(part, team.rounds)), team.count)


def gathered(rounds: tuple[Any, ...], count: int) -> Any:
    """The inverse of `rounds_of`, on one device of this process."""
    whole = [jax.tree.map(_gathered, values) for values in rounds]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[:count], *whole)


def placed(tree: Any, count: int) -> Any:
    """The tree, or whatever else workers share, where teams of this size need it."""
    return tree if count == 1 else _put(tree, _WHOLE)


def advance(
    tree: GameTree,
    variant: RegretVariant,
    traversal: Traversal,
    updates: Updates,
    team: Team,
    iterations: int | np.ndarray,
) -> Team:
    """Every worker does so many iterations more, all at once.

    Args:
      tree: as `placed` returned it.
      variant, traversal, updates: see `solve`.
      team: goes on from here; stays usable.
      iterations: the same for all, or `[W]`.
    """
    each = np.broadcast_to(np.asarray(iterations, np.int32), (team.count,))
    if team.count == 1:
        state = solve(tree, variant, int(each[0]), team.rounds[0], traversal=traversal, updates=updates)
        return Team(1, (state,))
    width, rounds = _mesh().size * _inner(), []
    for number, states in enumerate(team.rounds):
        own = each[number * width : (number + 1) * width]
        own = np.concatenate([own, np.zeros(width - len(own), np.int32)])
        steps = _put(own, _PARTS)
        rounds.append(_run_round(tree, variant, states, steps, traversal, mesh=_mesh(), updates=updates))
    return Team(team.count, tuple(rounds))


@functools.partial(jax.jit, static_argnames=("mesh", "updates"))
def _run_round(
    tree: GameTree,
    variant: RegretVariant,
    states: SolverState,
    iterations: Array,
    traversal: Traversal,
    *,
    mesh: Mesh,
    updates: Updates,
) -> SolverState:
    def one(own: Any, tree: Any, variant: Any, traversal: Any) -> SolverState:
        state, steps = own
        return _run(tree, variant, state, steps, updates, traversal)

    return _each(one, mesh, (states, iterations), tree, variant, traversal)


def _each(one: Callable[..., Any], mesh: Mesh, own: Any, *shared: Any) -> Any:
    """`one(own, *shared)` of every worker of a round, `own` with a leading axis for them; to be traced."""

    def inner(own: Any, *shared: Any) -> Any:
        if jax.tree.leaves(own)[0].shape[0] > 1:
            return jax.vmap(lambda mine: one(mine, *shared))(own)
        found = one(jax.tree.map(lambda leaf: leaf[0], own), *shared)
        return jax.tree.map(lambda leaf: leaf[None], found)

    return _shard_map(inner, mesh, (_PARTS, *[_WHOLE] * len(shared)), _PARTS)(own, *shared)


def each(one: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """A compiled program that does the same for every worker.

    Args:
      one: a pure function of what one worker has, and of what all of them share.

    Returns:
      A function of what they have, in rounds as `rounds_of` makes them, and of what they share, as `placed` returns it;
      it gives what comes out in rounds again.
    """
    program = jax.jit(lambda mesh, own, *shared: _each(one, mesh, own, *shared), static_argnums=0)

    def all_rounds(rounds: tuple[Any, ...], *shared: Any) -> tuple[Any, ...]:
        return tuple(program(_mesh(), own, *shared) for own in rounds)

    return all_rounds


def average_strategy(tree: GameTree, team: Team, locks: Locks | None) -> Strategy:
    """The average strategy of all workers together, on one device of this process."""
    if team.count == 1:
        sums = tuple(player.average for player in team.rounds[0].players)
    else:
        sums = tuple(map(averages.init_sum, _mean(stacked(team, _totals))))
    return strategy_of_sums(tree, sums, locks)


@jax.jit
def _totals(states: SolverState) -> tuple[Array, ...]:
    """The sums behind the averages, per player `[..., L]`."""
    return tuple(averages.total(player.average, player.strategy.dtype) for player in states.players)


@jax.jit
def _mean(totals: tuple[Array, ...]) -> tuple[Array, ...]:
    """Over the leading axis, one after the other."""

    def mean(values: Array) -> Array:
        sum_ = jax.lax.fori_loop(1, values.shape[0], lambda w, sum_: sum_ + values[w], values[0])
        return sum_ / values.shape[0]

    return tuple(map(mean, totals))


def _with_averages(state: SolverState, values: tuple[Array, ...]) -> SolverState:
    """The state with other sums, `[L]` or `[W, L]` as its own are."""
    players = []
    for player, value in zip(state.players, values, strict=True):
        table = averages.narrowed(jnp.broadcast_to(value, player.strategy.shape), player.average.value.dtype)
        players.append(player._replace(average=averages.init_sum(table)))
    return state._replace(players=tuple(players))


def windows(total: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the windows of the workers begin, `[K]`, and how long they are, `[K]`: `total` iterations in all.

    As even as can be, the longer ones first; no more windows than iterations.
    """
    count = max(1, min(count, total))
    lengths = np.full(count, total // count)
    lengths[: total % count] += 1
    return np.cumsum(lengths) - lengths, lengths


@dataclasses.dataclass(frozen=True)
class Split:
    """A budget divided over windows of the timeline: worker k does the iterations of the k-th window only.

    Attributes:
      before: the team whose tables all windows begin with, at t0.
      team: K workers, each in its window.
      lengths: of the windows, `[K]`.
    """

    before: Team
    team: Team
    lengths: np.ndarray


def split(tree: GameTree, before: Team, total: int, count: int) -> Split:
    """The workers of a split before they begin; `tree` is where it was lowered to.

    Worker k begins with the tables of worker k mod W of `before`, at the t at which its window begins, with an empty
    average. Iterations draw from the fold of their own t, so no two windows share random numbers.
    """
    starts, lengths = windows(total, count)
    source = np.arange(len(starts)) % before.count
    states = jax.tree.map(lambda leaf: leaf[source], stacked(before))
    states = states._replace(
        t=states.t + jnp.asarray(starts, jnp.int32), weight=jax.tree.map(jnp.zeros_like, states.weight)
    )
    states = _with_averages(states, tuple(jnp.zeros_like(player.strategy) for player in states.players))
    team = team_of(_prescribed_again(tree, states))
    return Split(before, team, lengths)


def _prescribed_again(tree: GameTree, states: SolverState) -> SolverState:
    """What is played depends on t where something is blended in."""
    if states.blend is None:
        return states
    again: Callable[[SolverState], SolverState] = jax.vmap(lambda one: prescribe(tree, one, one.locks, one.blend))
    return again(states)


def join(tree: GameTree, variant: RegretVariant, part: Split) -> Team:
    """The team of `part.before` after all windows, which `part.team` has done.

    The average of every worker of the result is the one of all windows together with that of before: iterate t counts
    with the weight that it has in one run. A sum S_k whose last iterate is b_k, with that one's weight as the unit,
    counts times

        product over s = b_k + 1, ..., T of ((s - 1) / s)^gamma_s,     T the end of the last window.

    Tables are those of the windows, the last worker's from the last one; random keys stay.
    """
    before, states = stacked(part.before), stacked(part.team)
    count, kept = part.before.count, len(part.lengths)
    end = part.before.t + int(part.lengths.sum())
    source = (np.arange(count) + kept - count) % kept
    joined = _join(variant, before, states, jnp.asarray(end, jnp.int32), jnp.asarray(source))
    begun = before.sampling
    if begun is not None and states.sampling is not None and joined.sampling is not None:
        # What the windows have visited counts for the first worker.
        old, new, from_ = begun.visited, states.sampling.visited, np.arange(kept) % count
        more = (new.value - old.value[from_]) + (new.rest - old.rest[from_])
        visited = old.add(jnp.zeros_like(old.value).at[0].set(more.sum()))
        joined = joined._replace(sampling=joined.sampling._replace(key=begun.key, visited=visited))
    return team_of(_prescribed_again(tree, joined))


@jax.jit
def _join(variant: RegretVariant, before: SolverState, states: SolverState, end: Array, source: Array) -> SolverState:
    def unit(t: Array, weight: averages.Weight) -> Array:
        """What a sum is multiplied with, so that the weight of iterate `end` is 1."""

        def step(s: Array, growth: averages.Weight) -> averages.Weight:
            time = s.astype(weight.log2.dtype)
            return averages.advance(growth, variant.gamma_at(time), time)

        growth = jax.lax.fori_loop(t + 1, end + 1, step, averages.init_weight(weight.log2.dtype))
        return jnp.exp2(-(growth.log2 - growth.compensation) - (weight.log2 - weight.compensation))

    def scaled(states: SolverState) -> tuple[Array, ...]:
        factor = jax.lax.map(lambda pair: unit(*pair), (states.t, states.weight))
        return tuple(total * factor[:, None] for total in _totals(states))

    sums = [
        mean + jax.lax.fori_loop(0, values.shape[0], lambda k, sum_, v=values: sum_ + v[k], jnp.zeros_like(mean))
        for mean, values in zip(_mean(scaled(before)), scaled(states), strict=True)
    ]
    chosen = jax.tree.map(lambda leaf: leaf[source], states)
    chosen = chosen._replace(
        t=jnp.broadcast_to(end, before.t.shape), weight=jax.tree.map(jnp.zeros_like, before.weight)
    )
    return _with_averages(chosen, tuple(sums))


# Devices


@functools.cache
def _mesh() -> Mesh:
    """All devices of all processes, in one axis."""
    return Mesh(np.asarray(jax.devices()), ("workers",))


def _inner() -> int:
    return INNER.get(jax.default_backend(), OTHER_INNER)


def _shard_map(function: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any) -> Callable[..., Any]:
    """`jax.shard_map` under the names it has had; carries of loops are not checked for what varies where."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    from jax.experimental.shard_map import shard_map

    before: Any = shard_map
    return before(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_rep=False)


def _put(values: Any, spec: Any) -> Any:
    """The same values on the mesh; every process gives all of them, and keeps its own."""
    sharding = NamedSharding(_mesh(), spec)

    def put(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return _wrap_keys(put(jax.random.key_data(leaf)), str(jax.random.key_impl(leaf)))
        if jax.process_count() == 1:
            return jax.device_put(leaf, sharding)
        host = np.asarray(leaf)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(put, values)


@functools.partial(jax.jit, static_argnames="implementation")
def _wrap_keys(data: Array, implementation: str) -> Array:
    return jax.random.wrap_key_data(data, impl=implementation)


def _gathered(leaf: Array) -> Array:
    """All entries of an array that is sharded over the mesh, on the first device of this process."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_gathered(_key_data(leaf)), impl=str(jax.random.key_impl(leaf)))
    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        return jnp.asarray(multihost_utils.process_allgather(leaf, tiled=True))
    return jax.device_put(leaf, jax.local_devices()[0])


_key_data = jax.jit(jax.random.key_data)


def _local(leaf: Array) -> Array:
    """Some entries of an array that are on this process."""
    return leaf.addressable_shards[0].data
