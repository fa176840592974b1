"""`cfr_d`: the iterations of the trunk, with all subgames solved in each."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.arguments import INT32, integer, real
from jaxcfr.decomposition import trunk as trunks
from jaxcfr.decomposition.decompose import Batch, Decomposition
from jaxcfr.decomposition.solution import CFRDSolution
from jaxcfr.decomposition.solvers import CFRSolver, SubgameSolver, batch_values
from jaxcfr.decomposition.subtree import Pair, Subtree
from jaxcfr.decomposition.trunk import Trunk
from jaxcfr.errors import CheckpointError, OptionError
from jaxcfr.files import require_writable
from jaxcfr.regret.variants import RegretVariant, dcfr_plus
from jaxcfr.solve import SolverState, Updates, check_updates, check_variant, check_watching, wants_to_stop
from jaxcfr.tree.fusion import apart

TrunkUpdates = Literal["simultaneous", "alternating"]


class Held(NamedTuple):
    """A batch whose tree is in memory.

    Attributes:
      subtree: the tree.
      classes: per player `[n_p, B]`, its root information sets.
    """

    subtree: Subtree
    classes: Pair


def cfr_d(
    decomposition: Decomposition,
    trunk_iterations: int = 1000,
    subgame_iterations: int = 100,
    trunk_regret: RegretVariant | None = None,
    subgame_regret: RegretVariant | None = None,
    *,
    updates: TrunkUpdates = "simultaneous",
    subgame_updates: Updates = "alternating",
    warm_start: float = 0.0,
    batch: int | None = None,
    solver: SubgameSolver | None = None,
    solution: CFRDSolution | None = None,
    callback: Callable[[CFRDSolution], Any] | None = None,
    every: int | None = None,
    target_exploitability: float | None = None,
    resolve_iterations: int = 1000,
    checkpoint: Any = None,
) -> CFRDSolution:
    """Solves a decomposed game: CFR-D (Burch, Johanson and Bowling 2014).

    In every iteration of the trunk each subgame is solved for the players' current reaches of its roots, the trunk
    learns from the counterfactual values there, and the subgame's strategy is forgotten. What is kept of subgames is
    the average of these values, from which `CFRDSolution.resolve` solves any of them again.

    Args:
      decomposition: what `decompose` returned.
      trunk_iterations: how many more.
      subgame_iterations: for each subgame in each of them.
      trunk_regret, subgame_regret: regret variants; None means `dcfr_plus()`.
      updates: of the trunk: "simultaneous", or "alternating", which solves all subgames once for each player.
      subgame_updates: as in `jaxcfr.solve`.
      warm_start: with which share of its last regrets, 0 to 1, a subgame begins; with 0 it begins from nothing. More
        than 0 takes 2 bytes for each sequence of every subgame.
      batch: solve so many subgames at once at most; None for what the decomposition's memory limit allows.
      solver: solves the subgames instead of CFR, such as `LPSolver()`.
      solution: one to go on from; it stays usable.
      callback: called with the solution every `every` iterations and at the end; returns None, or whether to stop.
      every: iterations between calls, checks and checkpoints; default 100.
      target_exploitability: stop once the solution's, re-solved with `resolve_iterations`, is at most this.
      resolve_iterations: for that.
      checkpoint: a path where the solution is saved every `every` iterations and at the end, for `CFRDSolution.load`;
        a run that goes on from it has the same bits as one that was not interrupted, but for `warm_start`.

    Raises:
      OptionError: an argument makes no sense.
      SolverError: the solution to go on from is of another game or variant.
      CheckpointError: the checkpoint cannot be written.
    """
    _check(decomposition, trunk_iterations, subgame_iterations, updates)
    warm_start = real("warm_start", warm_start, 0, 1)
    batch = None if batch is None else integer("batch", batch)
    every, target_exploitability = check_watching(callback, every, target_exploitability)
    trunk_regret = dcfr_plus() if trunk_regret is None else trunk_regret
    subgame_regret = dcfr_plus() if subgame_regret is None else subgame_regret
    check_variant(trunk_regret)
    check_variant(subgame_regret)
    check_updates(subgame_updates)
    if warm_start > 0 and not hasattr(subgame_regret.init(jnp.zeros((1, 1))), "regret"):
        raise OptionError(f"{type(subgame_regret).__name__} stores no regret: it takes no warm_start")
    if solver is None:
        solver = CFRSolver(
            subgame_regret, jnp.int32(subgame_iterations), float(warm_start), subgame_updates, warm_start > 0
        )
    elif not isinstance(solver, SubgameSolver):
        raise OptionError(f"solver has to be a SubgameSolver such as LPSolver(), not {solver!r}")
    if checkpoint is not None:
        require_writable(checkpoint, CheckpointError)
    if solution is None:
        state = trunks.begin(decomposition.trunk, trunk_regret)
    else:
        if not isinstance(solution, CFRDSolution):
            raise OptionError(f"solution has to be a CFRDSolution of this decomposition, not {solution!r}")
        state = solution.state_for(decomposition, trunk_regret)
    advance = _advance(decomposition, trunk_regret, solver, updates, batch)
    seconds = 0.0 if solution is None else solution.seconds
    done = CFRDSolution(decomposition, state, trunk_regret, seconds, None if solution is None else solution.solver)
    if checkpoint is None and callback is None and target_exploitability is None and every is None:
        every = max(1, trunk_iterations)
    every = every or 100
    left = int(trunk_iterations)
    while left > 0:
        chunk = min(every, left)
        begun = time.perf_counter()
        state = jax.block_until_ready(advance(state, chunk))  # type: ignore[no-untyped-call]
        seconds += time.perf_counter() - begun
        left -= chunk
        done = CFRDSolution(decomposition, state, trunk_regret, seconds, solver)
        if checkpoint is not None:
            done.save(checkpoint)
        if callback is not None and wants_to_stop(callback(done)):
            break
        if target_exploitability is not None and done.exploitability(resolve_iterations) <= target_exploitability:
            break
    return done


def _check(decomposition: Any, trunk_iterations: Any, subgame_iterations: Any, updates: Any) -> None:
    if not isinstance(decomposition, Decomposition):
        raise OptionError(f"cfr_d needs what jaxcfr.decompose(game, cut) returns, not {type(decomposition).__name__}")
    integer("trunk_iterations", trunk_iterations, 0, INT32)
    integer("subgame_iterations", subgame_iterations, 1, INT32)
    if updates not in ("simultaneous", "alternating"):
        raise OptionError(f'updates of the trunk has to be "simultaneous" or "alternating", not {updates!r}')


def _advance(
    decomposition: Decomposition,
    variant: RegretVariant,
    solver: SubgameSolver,
    updates: TrunkUpdates,
    batch: int | None,
) -> Callable[[SolverState, int], SolverState]:
    """A function that does so many iterations."""
    trunk = decomposition.trunk
    if not isinstance(solver, CFRSolver):
        values: Callable[[Pair], Pair] = functools.partial(_host_values, decomposition, solver)
        return functools.partial(_on_host, trunk, variant, values, updates)
    batches = decomposition.batches(solver.variant, batch)
    place = tuple(jnp.asarray(_place(batches, player)) for player in range(2))
    kept: list[Any] = [None] * len(batches)
    if decomposition.memory_limit is None and batch is None:
        held = tuple(Held(decomposition.batch_tree(b), _classes(b)) for b in batches)
        kept = [solver.begin(h.subtree, h.classes[0].shape[1]) for h in held]

        def fused(state: SolverState, iterations: int) -> SolverState:
            nonlocal kept
            state, kept = _fused(trunk, held, place, variant, solver, updates, state, kept, iterations)
            return state

        return fused

    def values_of(reach: Pair) -> Pair:
        parts: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for number, b in enumerate(batches):
            subtree = decomposition.batch_tree(b)
            if kept[number] is None:
                kept[number] = solver.begin(subtree, len(b.members))
            found, kept[number] = batch_values(subtree, solver, reach, _classes(b), kept[number])
            for player in range(2):
                parts[player].append(np.asarray(found[player]).reshape(-1))
        return tuple(jnp.asarray(np.concatenate(parts[p])[np.asarray(place[p])]) for p in range(2))  # type: ignore[return-value]

    return functools.partial(_on_host, trunk, variant, values_of, updates)


def _classes(batch: Batch) -> Pair:
    return jnp.asarray(batch.classes[0]), jnp.asarray(batch.classes[1])


def _place(batches: Sequence[Batch], player: int) -> np.ndarray:
    """`[n_p]` int32, where the value of each root information set lies among those of all batches."""
    classes = np.concatenate([batch.classes[player].reshape(-1) for batch in batches])
    place = np.zeros(int(classes.max()) + 1, np.int32)
    place[classes] = np.arange(len(classes))
    return place


def _host_values(decomposition: Decomposition, solver: SubgameSolver, reach: Pair) -> Pair:
    """One subgame after the other, on the host."""
    given = [np.asarray(values, np.float64) for values in reach]
    parts: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for number in range(decomposition.num_subgames):
        own = [
            values[decomposition.offsets[p][number] : decomposition.offsets[p][number + 1]]
            for p, values in enumerate(given)
        ]
        found = solver.host_values(decomposition, number, (own[0], own[1]))
        for player in range(2):
            parts[player].append(np.asarray(found[player]))
    first, second = (jnp.asarray(np.concatenate(part), decomposition.dtype) for part in parts)
    return first, second


_prepare = jax.jit(trunks.prepare)
_update = jax.jit(trunks.update, static_argnames="player")
_finish = jax.jit(trunks.finish)


@jax.jit
def _reach(trunk: Trunk, state: SolverState) -> Pair:
    return trunk.reach(tuple(player.weights for player in state.players))


def _on_host(
    trunk: Trunk,
    variant: RegretVariant,
    values: Callable[[Pair], Pair],
    updates: TrunkUpdates,
    state: SolverState,
    iterations: int,
) -> SolverState:
    """Iterations led from the host, for subgames that are not all in memory."""
    for _ in range(iterations):
        state = _prepare(trunk, variant, state)
        if updates == "simultaneous":
            found = values(_reach(trunk, state))
            for player in range(2):
                state = _update(trunk, variant, state, player, found[player])
        else:
            for player in range(2):
                state = _update(trunk, variant, state, player, values(_reach(trunk, state))[player])
        state = _finish(variant, state)
    return state


@functools.partial(jax.jit, static_argnames="updates")
def _fused(
    trunk: Trunk,
    held: tuple[Held, ...],
    place: Pair,
    variant: RegretVariant,
    solver: CFRSolver,
    updates: TrunkUpdates,
    state: SolverState,
    kept: Any,
    iterations: Array,
) -> tuple[SolverState, Any]:
    """Iterations as one program, trunk and subgames together."""

    def values(state: SolverState, kept: Any) -> tuple[Pair, Any]:
        reach = _reach(trunk, state)
        parts: tuple[list[Array], list[Array]] = ([], [])
        now = []
        for batch, old in zip(held, kept, strict=True):
            classes = batch.classes
            found, new = solver.values(batch.subtree, (reach[0][classes[0]], reach[1][classes[1]]), old)
            now.append(new)
            for player in range(2):
                parts[player].append(found[player].reshape(-1))
        first, second = (
            apart(place[p], lambda *pieces: jnp.concatenate(pieces), *parts[p])[place[p]] for p in range(2)
        )
        return (first, second), now

    def iteration(_: Any, carry: tuple[SolverState, Any]) -> tuple[SolverState, Any]:
        state, kept = carry
        state = trunks.prepare(trunk, variant, state)
        if updates == "simultaneous":
            found, kept = values(state, kept)
            for player in range(2):
                state = trunks.update(trunk, variant, state, player, found[player])
        else:
            for player in range(2):
                found, kept = values(state, kept)
                state = trunks.update(trunk, variant, state, player, found[player])
        return trunks.finish(variant, state), kept

    return jax.lax.fori_loop(0, iterations, iteration, (state, kept))
