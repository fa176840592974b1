"""`solve`: the jitted loop that joins a regret variant to a traversal."""

from __future__ import annotations

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.arguments import INT32, function, given_instead, integer, real
from jaxcfr.concrete import is_concrete, release_memory
from jaxcfr.errors import HorizonError, OptionError, SolverError
from jaxcfr.forward import forward_only
from jaxcfr.prescribed import (
    Blend,
    Locks,
    best_response_weights,
    check_prescribed,
    held,
    played,
    regrets_against,
)
from jaxcfr.regret import average as averages
from jaxcfr.regret.matching import normalise
from jaxcfr.regret.schedules import SCHEDULES
from jaxcfr.regret.variants import VARIANTS, RegretVariant, dcfr_plus
from jaxcfr.traversal.base import SamplingState, Traversal, full_tree, none_visited
from jaxcfr.traversal.full_tree import counterfactual_regrets
from jaxcfr.traversal.pruning import SafePruning, Stored
from jaxcfr.traversal.randomness import as_key, check_seed
from jaxcfr.tree.game_tree import GameTree, Strategy, require_tree
from jaxcfr.tree.payoffs import PayoffTable
from jaxcfr.tree.treeplex import Treeplex

Updates = Literal["alternating", "simultaneous", "best_response"]

COMPILER_BYTES, KERNEL_BYTES, LOWERING_BYTES = 35_000_000, 1_170_000, 30_000_000
"""What the compiler keeps, the part of a program that belongs to a bucket of information sets, and what stays behind
of lowering (of a plain game at most, of an array game its programs). Measured on a CPU.
"""

NOT_DIFFERENTIABLE = (
    "solve has gradients in reverse (jax.grad, jax.vjp) only with differentiable=True and a fixed number of iterations"
)

TRAVERSALS = ("full_tree", "chance_sampling", "external_sampling", "outcome_sampling")

WALK_BYTES = 100
"""What stays behind of lowering a plain game, for each history."""

CHUNK = 16
"""Iterations in a loop of static length on accelerators; what goes past the end is computed and dropped."""


class PlayerState(NamedTuple):
    """One player's part of a run.

    Attributes:
      regrets: what the variant stores, leaves `[L]`.
      average: weighted sum of the realization weights played, `[L]`.
      strategy: the player's own strategy of the next iteration, `[L]`: the last iterate, not the solution.
      weights: the realization weights, `[L + 1]`, of what is played then: of `strategy`, or of its blend.
    """

    regrets: Any
    average: averages.Sum
    strategy: Array
    weights: Array


class JointState(NamedTuple):
    """What the gap to a coarse correlated equilibrium is computed from (see `cce_gap`).

    Attributes:
      values: per player `[L + 1]`, weighted sum of the direct counterfactual values against what the others played.
      payoffs: `[P]`, weighted sum of the payoffs of the profiles played.
      total: the sum of the weights.
    """

    values: tuple[averages.Sum, ...]
    payoffs: averages.Sum
    total: averages.Sum


class SolverState(NamedTuple):
    """A run after t iterations; a pytree. `iterations = 0` makes the first one, `solve(..., state=state)` goes on.

    Attributes:
      t: int32, iterations done.
      weight: the averaging weight of iterate t, relative to the scale of the sums.
      players: one `PlayerState` per player.
      joint: only with `track_cce`.
      sampling: only with traversals that sample.
      locks, blend: only where play is prescribed, see `jaxcfr.prescribed`.
    """

    t: Array
    weight: averages.Weight
    players: tuple[PlayerState, ...]
    joint: JointState | None
    sampling: SamplingState | None = None
    locks: Locks | None = None
    blend: Blend | None = None

    def __repr__(self) -> str:
        kind = type(self.players[0].regrets).__name__
        return f"SolverState(t={self.t}, {len(self.players)} players, {kind}; its solution is average_strategy)"


def solve(
    tree: GameTree,
    variant: RegretVariant | None = None,
    iterations: int | Array = 1000,
    state: SolverState | None = None,
    *,
    traversal: Traversal | None = None,
    seed: int | Array = 0,
    updates: Updates = "alternating",
    callback: Callable[[SolverState], Any] | None = None,
    every: int | None = None,
    target_exploitability: float | None = None,
    track_cce: bool = False,
    table_dtype: Any = None,
    locked: Locks | None = None,
    blended: Blend | None = None,
    differentiable: bool = False,
) -> SolverState:
    """Runs counterfactual regret minimization.

    One jitted loop with a dynamic trip count: another number of iterations, other hyperparameters or other payoffs
    of the same shapes compile nothing new. t lives in the state, so `solve(500)` twice gives the same bits as
    `solve(1000)`. Works under `jit` and `vmap`.

    Args:
      tree: the game.
      variant: the regret variant; None means `dcfr_plus()`.
      iterations: how many more; 0 gives the initial state, whose average strategy is uniform.
      state: a state to go on from; it stays usable. It must be of the same tree, and of a variant that stores the
        same things (the rules of the one given here apply from now on). None starts anew.
      traversal: where the counterfactual regrets come from: `full_tree()`, the default, or one that samples, such as
        `external_sampling(batch=256)`, for trees lowered with histories.
      seed: of traversals that sample: an integer, or a key of `jax.random.key` (or `PRNGKey`). A state that already
        has a key keeps it. Iteration t draws from `fold_in(key, t)`, so that the same seed gives the same bits.
      updates: "alternating" (default: player 0 updates and changes its strategy, then player 1 against the new
        player 0, ...), "simultaneous", or "best_response": CFR-BR (Johanson et al. 2012), in which each player
        updates against a best response to its own strategy. The average approaches an equilibrium, and with high
        probability so does the strategy of an iteration picked at random. Two players, and no `track_cce`.
      callback: called with the state every `every` iterations and at the end; returns None, or whether to stop (a
        bool of Python, numpy or JAX). Only outside of `jit`.
      every: iterations between calls and checks; default 100.
      target_exploitability: stop once the exploitability of the average strategy, in units of payoff, is at most
        this; checked every `every` iterations. Two-player constant-sum games only.
      track_cce: also keep what `cce_gap` needs (one more payoff product per player and iteration if alternating).
      table_dtype: how a new state stores regrets and averages: "float32" or "bfloat16" instead of the tree's dtype,
        for half the memory of these tables; what is computed with them stays as precise as the tree. Measured on a
        small Leduc in float64 (5,000 iterations of CFR+): exploitability 1.8e-5, with float32 tables 1.5e-5, with
        bfloat16 ones 1.6e-3, where it stays; the sums of `vanilla`, which only grow, do not fit bfloat16 (0.036
        instead of 0.0033).
      locked: information sets whose strategy is fixed, made by `jaxcfr.lock`; the rest of the game is solved given
        them. `target_exploitability` is then that of the locked game: best responses keep to the locks. Given when a
        state is made; it stays in the state.
      blended: policies that are mixed into what players play, made by `jaxcfr.blend`; stays in the state too. While a
        share is positive this solves a modified game.
      differentiable: a loop of static length with rematerialisation, for reverse-mode gradients with respect to
        payoffs or hyperparameters; memory grows as the square root of `iterations`, which must not be traced. What
        is differentiated is piecewise smooth: where a regret is exactly zero (symmetric games, integer payoffs) it
        has a kink or a jump, and the gradient is that of one side. It is the derivative of a run: where that has not
        settled it may grow with every iteration. Predictive variants settle soonest (Kuhn poker with other bets, 200
        iterations: within 3e-8 at half of 61 bets with `pdcfr_plus`, 5e-5 with `pcfr_plus`, 1.5e-3 with `dcfr_plus`).

    Raises:
      OptionError: an argument makes no sense.
      SolverError: the state belongs to another tree or variant, or a host-side option is used under `jit`.
      HorizonError: the run would go past the end of the variant's hyperparameter schedules (where that is traced,
        the strategies turn NaN instead).
      NotTwoPlayerConstantSumError: `target_exploitability` for a game where it is not defined.
    """
    variant = dcfr_plus() if variant is None else variant
    traversal = full_tree() if traversal is None else traversal
    _check_arguments(tree, variant, iterations, traversal, updates, seed)
    every, target_exploitability = check_watching(callback, every, target_exploitability)
    if not traversal.samples:
        tree = dataclasses.replace(tree, histories=None)  # the loop needs none of them
    iterations = iterations if isinstance(iterations, jax.core.Tracer) else int(iterations)
    if state is None:
        state = initial_state(tree, variant, track_cce=track_cce, table_dtype=_table_dtype(tree, table_dtype))
        if locked is not None or blended is not None:
            check_prescribed(tree, locked, blended)
            state = prescribe(tree, state, locked, blended)
    elif table_dtype is not None or locked is not None or blended is not None:
        raise OptionError(
            "a state keeps the dtype of its tables, its locks and its blends: give table_dtype, locked and blended "
            "when it is made, not when it goes on"
        )
    _check_state(tree, variant, state, track_cce)
    if updates == "best_response":
        _check_best_response(tree, traversal, state)
    if state.blend is not None and traversal.pruning is not None:
        raise OptionError("pruning skips actions that the player's own strategy never plays, and a blend may play them")
    if state.locks is not None and isinstance(traversal.pruning, SafePruning):
        raise OptionError(
            "safe_pruning() catches up by best responses that do not know of locks: use probabilistic_pruning()"
        )
    check_horizon(variant, state.t, iterations)
    traversal.check_schedules(state.t, iterations)
    if traversal.samples:
        state = _with_sampling(tree, traversal, state, seed)
    if variant.floored and traversal.pruning is not None:
        warnings.warn(
            f"{type(variant).__name__} floors regrets at zero, so nothing is pruned", UserWarning, stacklevel=2
        )

    if differentiable:
        if traversal.samples:
            raise OptionError("differentiable=True needs traversal=full_tree(): what is sampled has no gradient")
        if isinstance(iterations, jax.core.Tracer):
            raise OptionError("differentiable=True has a loop of static length: iterations must not be traced")
        if callback is not None or target_exploitability is not None:
            raise OptionError("differentiable=True takes neither callback nor target_exploitability")
        return _run_static(tree, variant, state, iterations, updates)
    if callback is None and target_exploitability is None:
        if not isinstance(iterations, jax.core.Tracer) and iterations == 0:
            return state  # a state to begin with needs no program
        programs = _num_programs()
        result = _run(tree, variant, state, iterations, updates, traversal)
        if _num_programs() > programs:
            release_memory()
        return forward_only(result, NOT_DIFFERENTIABLE)
    run = functools.partial(_run, updates=updates, traversal=traversal)
    return _run_watched(run, tree, variant, state, iterations, callback, every or 100, target_exploitability)


def solve_bytes(tree: GameTree, variant: RegretVariant | None = None, *, by_levels: bool = False) -> int:
    """About the bytes a process holds for a solve: the tree, the state twice, intermediate vectors, compiled programs.

    Args:
      tree: the game.
      variant: None means `dcfr_plus()`.
      by_levels: whether this process lowered it as an array game.
    """
    state = jax.eval_shape(initial_state, tree, dcfr_plus() if variant is None else variant)
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    buckets = sum(len(stage.buckets) for treeplex in tree.treeplexes for stage in treeplex.stages)
    left = LOWERING_BYTES if by_levels else min(LOWERING_BYTES, WALK_BYTES * tree.num_histories)
    return tree.nbytes + 4 * size + COMPILER_BYTES + buckets * KERNEL_BYTES + left


def _table_dtype(tree: GameTree, dtype: Any) -> Any:
    if dtype is None:
        return None
    try:
        chosen = jnp.dtype(dtype)
    except TypeError:
        chosen = None
    allowed = [name for name in ("bfloat16", "float32", "float64") if jnp.dtype(name).itemsize <= tree.dtype.itemsize]
    if chosen is None or chosen not in map(jnp.dtype, allowed):
        raise OptionError(
            f"table_dtype has to be one of {', '.join(allowed)} for a tree in {tree.dtype}, not {dtype!r}"
        )
    return chosen


@functools.partial(jax.jit, static_argnames=("track_cce", "table_dtype"))
def initial_state(
    tree: GameTree, variant: RegretVariant, *, track_cce: bool = False, table_dtype: Any = None
) -> SolverState:
    """The state before the first iteration."""
    players = []
    for treeplex in tree.treeplexes:
        zeros = jnp.zeros_like(treeplex.uniform)
        regrets = variant.init(zeros)
        strategy, weights = treeplex.uniform, treeplex.uniform_weights
        if not variant.starts_uniform:
            strategy = _next_strategy(variant, treeplex, regrets, jnp.zeros((), zeros.dtype))
            weights = treeplex.realization_weights(strategy)
        table = zeros.astype(table_dtype or zeros.dtype)
        regrets = _cast(regrets, table.dtype)
        players.append(PlayerState(regrets, averages.init_sum(table), strategy, weights))
    joint = None
    if track_cce:
        joint = JointState(
            tuple(averages.init_sum(jnp.zeros_like(player.weights)) for player in players),
            averages.init_sum(jnp.zeros(tree.num_players, tree.dtype)),
            averages.init_sum(jnp.zeros((), tree.dtype)),
        )
    return SolverState(jnp.zeros((), jnp.int32), averages.init_weight(tree.dtype), tuple(players), joint)


def iterate(
    tree: GameTree,
    variant: RegretVariant,
    state: SolverState,
    updates: Updates,
    traversal: Traversal = full_tree(),  # noqa: B008 (a constant)
) -> SolverState:
    """One iteration: every player updates once. `settle` has been called if that was due."""
    step = state.t + 1
    t, weight = next_weight(variant, state)
    factor = jnp.exp2(weight.log2)
    joint = None if state.joint is None else _add_joint(tree, state, factor)
    weights = [player.weights for player in state.players]
    prescribed = functools.partial(played, state.locks, state.blend)
    strategies = [prescribed(p, player.strategy, t) for p, player in enumerate(state.players)]
    sampling = state.sampling
    if updates == "best_response":
        weights = [best_response_weights(tree, p, tuple(weights), state.locks) for p in range(tree.num_players)]
    players = []
    for p, (player, treeplex) in enumerate(zip(state.players, tree.treeplexes, strict=True)):
        stored = _cast(player.regrets, tree.dtype)
        if traversal.samples:
            assert sampling is not None
            own = None if traversal.pruning is None else _own(tree, variant, treeplex, player, stored, t)
            r, sampling = traversal.regrets(tree, p, tuple(strategies), own, sampling, step)
        else:
            r = counterfactual_regrets(tree, p, tuple(weights), strategies[p])
        if state.blend is not None and state.blend.policies[p] is not None:
            r = regrets_against(treeplex, r, player.strategy)
        regrets, average, strategy = _learned(variant, treeplex, player, stored, r, t, factor)
        strategy = held(state.locks, p, strategy)
        plays = prescribed(p, strategy, t + 1)
        players.append(PlayerState(regrets, average, strategy, treeplex.realization_weights(plays)))
        if updates == "alternating":
            weights[p], strategies[p] = players[p].weights, plays
    return state._replace(t=step, weight=weight, players=tuple(players), joint=joint, sampling=sampling)


@jax.jit
def prescribe(tree: GameTree, state: SolverState, locks: Locks | None, blend: Blend | None) -> SolverState:
    """The state with locks and a blend, for the strategies that come next."""
    players, t = [], (state.t + 1).astype(tree.dtype)
    for p, (player, treeplex) in enumerate(zip(state.players, tree.treeplexes, strict=True)):
        strategy = held(locks, p, player.strategy)
        weights = treeplex.realization_weights(played(locks, blend, p, strategy, t))
        players.append(player._replace(strategy=strategy, weights=weights))
    return state._replace(players=tuple(players), locks=locks, blend=blend)


def update_player(
    variant: RegretVariant, treeplex: Treeplex, player: PlayerState, r: Array, state: SolverState
) -> PlayerState:
    """One player's part of the next iteration.

    Args:
      variant: the regret variant.
      treeplex: the player's.
      player: its part so far.
      r: its counterfactual regrets in this iteration, `[L]`.
      state: the run before this iteration, from which t and the averaging weight are taken.
    """
    t, weight = next_weight(variant, state)
    stored = _cast(player.regrets, treeplex.dtype)
    regrets, average, strategy = _learned(variant, treeplex, player, stored, r, t, jnp.exp2(weight.log2))
    return PlayerState(regrets, average, strategy, treeplex.realization_weights(strategy))


def next_weight(variant: RegretVariant, state: SolverState) -> tuple[Array, averages.Weight]:
    """The number of the next iteration, as a float, and its averaging weight."""
    t = (state.t + 1).astype(state.weight.log2.dtype)
    return t, averages.advance(state.weight, variant.gamma_at(t), t)


def _learned(
    variant: RegretVariant, treeplex: Treeplex, player: PlayerState, stored: Any, r: Array, t: Array, factor: Array
) -> tuple[Any, averages.Sum, Array]:
    """What is stored after an iteration, the average, and the next strategy."""
    regrets = variant.update(stored, r, t)
    average = averages.add(player.average, factor * player.weights[:-1])
    strategy = _next_strategy(variant, treeplex, regrets, t)
    return _cast(regrets, player.average.value.dtype), average, strategy


def _own(
    tree: GameTree, variant: RegretVariant, treeplex: Treeplex, player: PlayerState, regrets: Any, t: Array
) -> Stored:
    """What a traversal that prunes sees of the updating player."""

    def after(r: Array) -> tuple[Array, Array]:
        new = variant.update(regrets, r, t)
        return new.regret, _next_strategy(variant, treeplex, new, t)

    kept = jnp.asarray(variant.discounts(t)[1], t.dtype)
    return Stored(regrets.regret, averages.total(player.average, tree.dtype), kept, after)


def settle(tree: GameTree, variant: RegretVariant, state: SolverState, end: Array) -> SolverState:
    """Brings the sums in order if that is due before the next iteration (see `jaxcfr.regret.average`)."""
    due = averages.due(state.t + 1) & (state.t < end)

    def settled(state: SolverState) -> SolverState:
        t = (state.t + 1).astype(tree.dtype)
        weight, shift = averages.scale_down(state.weight, variant.gamma_at(t), t)
        factor = averages.power_of_two(shift, tree.dtype)

        def whole(sum_: averages.Sum) -> averages.Sum:
            return averages.scaled(averages.settle(sum_, tree.dtype), factor)

        players = []
        for player, treeplex in zip(state.players, tree.treeplexes, strict=True):
            average = averages.settle(player.average, tree.dtype)
            keep = treeplex.over_tables(lambda value: averages.table_scale(value, factor), average.value)
            players.append(player._replace(average=averages.scaled(average, keep)))
        joint = state.joint
        if joint is not None:
            joint = JointState(tuple(map(whole, joint.values)), whole(joint.payoffs), whole(joint.total))
        return _choose(due, state._replace(weight=weight, players=tuple(players), joint=joint), state)

    return jax.lax.cond(jnp.any(due), settled, lambda state: state, state)


def _choose(condition: Array, new: SolverState, old: SolverState) -> SolverState:
    """The new state where the condition holds; `condition` has the shape of the batch."""
    if not condition.ndim:
        return new  # the caller's branch has decided
    return jax.tree.map(functools.partial(_where, condition), new, old)


def _where(condition: Array, new: Array, old: Array) -> Array:
    """`jnp.where`, but for the key, which never changes: to choose between two of it would count as using it again."""
    return old if jnp.issubdtype(old.dtype, jax.dtypes.prng_key) else jnp.where(condition, new, old)


def _with_sampling(tree: GameTree, traversal: Traversal, state: SolverState, seed: Any) -> SolverState:
    """The state with what the traversal keeps; a key that is there already stays."""
    memory = traversal.init(tree)
    if state.sampling is None:
        return state._replace(sampling=SamplingState(as_key(seed), none_visited(), memory))
    kept = state.sampling.memory
    if str(jax.tree.structure(kept)) == str(jax.tree.structure(memory)) and all(
        jnp.shape(a) == jnp.shape(b) for a, b in zip(jax.tree.leaves(kept), jax.tree.leaves(memory), strict=True)
    ):
        return state
    return state._replace(sampling=state.sampling._replace(memory=memory))


def _cast(regrets: Any, dtype: Any) -> Any:
    """Stored regrets widened to compute with, or narrowed to be stored."""

    def cast(leaf: Array) -> Array:
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            return leaf
        narrower = jnp.dtype(dtype).itemsize < leaf.dtype.itemsize
        return averages.narrowed(leaf, dtype) if narrower else leaf.astype(dtype)

    return jax.tree.map(cast, regrets)


def _next_strategy(variant: RegretVariant, treeplex: Treeplex, regrets: Any, t: Array) -> Array:
    return treeplex.over_tables(lambda state, uniform: variant.strategy(state, uniform, t), regrets, treeplex.uniform)


def _add_joint(tree: GameTree, state: SolverState, factor: Array) -> JointState:
    """Adds the profile about to be played, as one joint draw, to the sums behind `cce_gap`."""
    assert state.joint is not None
    weights = tuple(player.weights for player in state.players)
    direct = [tree.payoffs.product(p, weights) for p in range(tree.num_players)]
    payoffs = jnp.stack([(values * weight).sum(0) for values, weight in zip(direct, weights, strict=True)])
    return JointState(
        tuple(averages.add(total, factor * values) for total, values in zip(state.joint.values, direct, strict=True)),
        averages.add(state.joint.payoffs, factor * payoffs),
        averages.add(state.joint.total, factor),
    )


def run_loop(
    tree: GameTree,
    variant: RegretVariant,
    state: SolverState,
    iterations: Array,
    updates: Updates,
    traversal: Traversal = full_tree(),  # noqa: B008 (a constant)
) -> SolverState:
    """The loop of a run; `solve` is what checks arguments and calls it.

    Sums are settled between two loops, so that the inner one, where the time goes, knows nothing of it.

    On an accelerator the trip count of the inner loop is static: a loop whose condition is computed on the device
    may wait for the host in every iteration.

    All arrays may have the axes of a batch behind their own. Where t or `iterations` differ within the batch, a
    stretch is as long as the shortest, and what has reached its end stays as it is.
    """
    end = state.t + iterations
    step = jax.jit(lambda state: iterate(tree, variant, state, updates, traversal))  # traced once for both platforms

    def dynamic(state: SolverState, steps: Array) -> SolverState:
        return jax.lax.fori_loop(0, steps, lambda _, s: step(s), state)

    def chunk(state: SolverState, steps: Array) -> SolverState:
        def masked(number: Array, state: SolverState) -> SolverState:
            return jax.tree.map(functools.partial(_where, number < steps), step(state), state)

        return jax.lax.fori_loop(0, CHUNK, masked, state)

    def stretch(state: SolverState) -> SolverState:
        state = settle(tree, variant, state, end)
        going = state.t < end
        steps = jnp.minimum(end - state.t, averages.until_due(state.t + 1))
        steps = jnp.min(jnp.where(going, steps, averages.BLOCK))
        new = jax.lax.platform_dependent(state, steps, cpu=dynamic, default=chunk)
        return _choose(going, new, state)

    return jax.lax.while_loop(lambda state: jnp.any(state.t < end), stretch, state)


@functools.partial(jax.jit, static_argnames="updates")
def _run(
    tree: GameTree,
    variant: RegretVariant,
    state: SolverState,
    iterations: Array,
    updates: Updates,
    traversal: Traversal,
) -> SolverState:
    iterations = jnp.asarray(iterations, jnp.int32)
    if traversal.samples:
        return run_loop(tree, variant, state, iterations, updates, traversal)
    return _BATCHED[updates](tree, variant, state, iterations)


def _batched_loop(updates: Updates) -> Callable[..., SolverState]:
    """`run_loop` with a rule of its own for `vmap`: the axis of the batch comes last instead of first.

    Then gathers move whole rows, and everything vectorises over the batch (measured: `benchmarks/sweeps.py`). What
    cannot take trailing axes (a variant of one's own, trees of different layout) takes the batch first, as usual.
    """

    @jax.custom_batching.custom_vmap
    def loop(tree: GameTree, variant: RegretVariant, state: SolverState, iterations: Array) -> SolverState:
        return run_loop(tree, variant, state, iterations, updates)

    @loop.def_vmap
    def rule(
        size: int, batched: Any, tree: GameTree, variant: RegretVariant, state: SolverState, iterations: Array
    ) -> Any:
        arguments = (tree, variant, state, iterations)
        indices = [
            flag and not jnp.issubdtype(leaf.dtype, jnp.floating)
            for leaf, flag in zip(jax.tree.leaves(tree), jax.tree.leaves(batched[0]), strict=True)
        ]
        if any(indices) or not variant.elementwise or not isinstance(tree.payoffs, PayoffTable):
            plain = functools.partial(run_loop, updates=updates)
            axes = jax.tree.map(lambda flag: 0 if flag else None, tuple(batched))
            together = jax.vmap(plain, in_axes=axes, axis_size=size)
            one_by_one = functools.partial(_one_by_one, plain, tuple(batched)) if any(indices) else together
            result = jax.lax.platform_dependent(*arguments, cpu=one_by_one, default=together)
            return result, jax.tree.map(lambda _: True, result)

        def last(leaf: Array, flag: bool) -> Array:
            return jnp.moveaxis(leaf, 0, -1) if flag else leaf

        tree, variant, state, iterations = jax.tree.map(last, arguments, tuple(batched))
        same_t = not batched[2].t and not batched[3]
        whole = jax.tree.map(
            lambda leaf, flag: leaf if flag else jnp.broadcast_to(leaf[..., None], (*leaf.shape, size)),
            state,
            batched[2],
        )
        result = run_loop(tree, variant, whole._replace(t=state.t) if same_t else whole, iterations, updates)
        flags = jax.tree.map(lambda _: True, result)._replace(t=not same_t)
        return jax.tree.map(lambda leaf, flag: jnp.moveaxis(leaf, -1, 0) if flag else leaf, result, flags), flags

    # Derivatives are those of the plain loop: custom_vmap has none where integers are among the arguments.
    differentiable = jax.custom_jvp(loop)

    @differentiable.defjvp
    def derivative(primals: Any, tangents: Any) -> Any:
        return jax.jvp(functools.partial(run_loop, updates=updates), primals, tangents)

    return differentiable


def _one_by_one(function: Callable[..., Any], batched: tuple[Any, ...], *arguments: Any) -> Any:
    """`vmap` as a loop: trees that differ in their indices have nothing that a CPU could vectorise."""
    leaves, structure = jax.tree.flatten(arguments)
    flags = jax.tree.leaves(batched)

    def one(mapped: list[Array]) -> Any:
        rest = iter(mapped)
        merged = [next(rest) if flag else leaf for leaf, flag in zip(leaves, flags, strict=True)]
        return function(*jax.tree.unflatten(structure, merged))

    return jax.lax.map(one, [leaf for leaf, flag in zip(leaves, flags, strict=True) if flag])


def _num_programs() -> int:
    return int(_run._cache_size())  # type: ignore[attr-defined]


_BATCHED = {updates: _batched_loop(updates) for updates in get_args(Updates)}


@functools.partial(jax.jit, static_argnames=("iterations", "updates"))
def _run_static(
    tree: GameTree, variant: RegretVariant, state: SolverState, iterations: int, updates: Updates
) -> SolverState:
    """Two nested scans of about sqrt(iterations) steps; only the states between the outer steps are stored."""

    def body(state: SolverState, _: None) -> tuple[SolverState, None]:
        return iterate(tree, variant, settle(tree, variant, state, state.t + 1), updates), None

    inner = max(1, math.isqrt(iterations))

    @jax.checkpoint
    def chunk(state: SolverState, _: None) -> tuple[SolverState, None]:
        return jax.lax.scan(body, state, None, length=inner)

    state, _ = jax.lax.scan(chunk, state, None, length=iterations // inner)
    if rest := iterations % inner:
        state, _ = jax.lax.scan(jax.checkpoint(body), state, None, length=rest)
    return state


def wants_to_stop(answer: Any) -> bool:
    """What a callback's answer means."""
    if answer is None:
        return False
    if np.shape(answer) != () or np.asarray(answer).dtype != np.bool_:
        raise OptionError(f"the callback has to return None or whether to stop (a bool), not {answer!r}")
    return bool(answer)


def _run_watched(
    run: Callable[..., SolverState],
    tree: GameTree,
    variant: RegretVariant,
    state: SolverState,
    iterations: int | Array,
    callback: Callable[[SolverState], Any] | None,
    every: int,
    target: float | None,
) -> SolverState:
    from jaxcfr.analytics import exploitability, require_constant_sum

    if not is_concrete(tree, variant, state, iterations):
        raise SolverError("callback and target_exploitability work outside of jit, vmap and grad only")
    if target is not None:
        require_constant_sum(tree, "target_exploitability", "use a callback that looks at nash_conv instead")
    left = int(iterations)
    while left > 0:
        chunk = min(every, left)
        state = run(tree, variant, state, chunk)
        left -= chunk
        if callback is not None and wants_to_stop(callback(state)):
            break
        if target is not None and float(exploitability(tree, average_strategy(tree, state), state.locks)) <= target:
            break
    return state


def average_strategy(tree: GameTree, state: SolverState) -> Strategy:
    """The average strategy of a run, the one that approaches equilibrium: per player `[L_p]`.

    Each iterate is weighted by the player's own reach and by the variant's weight of the iteration. Information sets
    that the player never reached come out uniform, locked ones as they are locked. Where a policy is blended in, the
    average is that of what was played, the policy's share included.

    Raises:
      SolverError: the state is of another tree.
    """
    _require_state(tree, state)
    return strategy_of_sums(tree, tuple(player.average for player in state.players), state.locks)


@jax.jit
def strategy_of_sums(tree: GameTree, sums: tuple[averages.Sum, ...], locks: Locks | None) -> Strategy:
    """The strategy behind weighted sums of realization weights, one for each player."""
    return tuple(
        held(locks, p, treeplex.over_tables(normalise, averages.total(sum_, tree.dtype), treeplex.uniform))
        for p, (treeplex, sum_) in enumerate(zip(tree.treeplexes, sums, strict=True))
    )


def unvisited(tree: GameTree, state: SolverState) -> tuple[int, ...]:
    """Per player, the number of information sets with a choice that a run has learnt nothing about.

    With a traversal that samples: those that no walk has come to (or where all actions were worth the same to all of
    them). They have no regrets and come out uniform. A large part of all means that a run has to go on for longer.

    Raises:
      SolverError: the state is of another tree.
    """
    _require_state(tree, state)
    return tuple(
        count_unvisited(treeplex, player.regrets)
        for treeplex, player in zip(tree.treeplexes, state.players, strict=True)
    )


def count_unvisited(treeplex: Treeplex, regrets: Any) -> int:
    """How many of a player's information sets have two actions or more, and no regret in any table `[..., L]`."""
    known = np.zeros(treeplex.size, bool)
    for table in jax.tree.leaves(regrets):
        known |= (np.asarray(table) != 0).reshape(-1, treeplex.size).any(0)
    entries, offsets = treeplex.sequence_indices()
    if not len(entries):
        return 0
    met = np.logical_or.reduceat(known[entries], offsets[:-1])
    return int(np.sum(~met & (np.diff(offsets) > 1)))


def current_strategy(tree: GameTree, state: SolverState) -> Strategy:
    """The players' own strategies of the next iteration, per player `[L_p]`; what is blended in is not in them.

    This is the last iterate: in general it does not approach an equilibrium. Use `average_strategy` for a solution.

    Raises:
      SolverError: the state is of another tree.
    """
    _require_state(tree, state)
    return tuple(player.strategy for player in state.players)


def state_from_profile(
    tree: GameTree,
    strategy: Strategy,
    variant: RegretVariant | None = None,
    iterations: int = 1,
    *,
    track_cce: bool = False,
) -> SolverState:
    """A warm start: a state that plays `strategy` next, as if `iterations` iterations had been done already.

    The regrets are proportional to the strategy, so that regret matching plays exactly it, and as large in each
    information set as `iterations` iterations could have left them: its counterfactual reach times the range of
    payoffs, times sqrt(iterations) (in the spirit of Brown and Sandholm 2016, who choose the scale by the
    bound on regret; any positive scale is sound). The average counts the strategy as played in all of them.

    Args:
      tree: the game.
      strategy: one array per player, `[L_p]`.
      variant: the variant that will go on; None means `dcfr_plus()`.
      iterations: t of the state, at least 1.
      track_cce: as in `solve`.

    Raises:
      StrategyError: the strategy does not fit the tree.
      OptionError: `iterations` is less than 1.
    """
    from jaxcfr.analytics import counterfactual_reach

    variant = dcfr_plus() if variant is None else variant
    iterations = integer("iterations", iterations, 1, INT32)
    require_tree(tree).check_strategy(strategy)
    state = initial_state(dataclasses.replace(tree, histories=None), variant, track_cce=False)
    reach = counterfactual_reach(tree, strategy)
    scale = tree.payoffs.spread() * math.sqrt(iterations)
    # The weights of iterates 1 to t, relative to the last: the sum of a geometric-like series, exactly.
    weight, total = _sum_weights(variant, jnp.zeros((), tree.dtype), iterations)
    players = []
    for p, (player, treeplex) in enumerate(zip(state.players, tree.treeplexes, strict=True)):
        values = jnp.asarray(strategy[p], tree.dtype)
        regret = values * jnp.maximum(reach[p], np.finfo(tree.dtype).eps) * jnp.where(scale[p] > 0, scale[p], 1)
        realization = treeplex.realization_weights(values)
        average = averages.init_sum(realization[:-1] * total)
        players.append(PlayerState(player.regrets._replace(regret=regret), average, values, realization))
    warm = SolverState(jnp.asarray(iterations, jnp.int32), weight, tuple(players), None)
    if track_cce:
        joint = initial_state(tree, variant, track_cce=True).joint
        warm = warm._replace(joint=_add_joint(tree, warm._replace(joint=joint), total))
    return warm


@jax.jit
def _sum_weights(variant: RegretVariant, zero: Array, iterations: int) -> tuple[averages.Weight, Array]:
    """The weight of the last of so many iterates, and the sum of all their weights."""

    def body(step: Array, carry: tuple[averages.Weight, averages.Sum]) -> tuple[averages.Weight, averages.Sum]:
        weight, sum_ = carry
        t = step.astype(zero.dtype)
        weight, shift = averages.scale_down(weight, variant.gamma_at(t), t)
        weight = averages.advance(weight, variant.gamma_at(t), t)
        sum_ = averages.scaled(averages.settle(sum_, zero.dtype), averages.power_of_two(shift, zero.dtype))
        return weight, averages.add(sum_, jnp.exp2(weight.log2))

    weight, sum_ = jax.lax.fori_loop(
        1, iterations + 1, body, (averages.init_weight(zero.dtype), averages.init_sum(zero))
    )
    return weight, averages.total(sum_, zero.dtype)


def _check_arguments(tree: Any, variant: Any, iterations: Any, traversal: Any, updates: Any, seed: Any) -> None:
    require_tree(tree)
    if not isinstance(traversal, Traversal):
        raise OptionError(
            f"traversal has to be one such as jaxcfr.external_sampling(), not {given_instead(traversal, TRAVERSALS)}"
        )
    if traversal.samples and tree.histories is None:
        raise OptionError("sampling walks through histories, and this tree has none: lower it with histories=True")
    if traversal.samples and not isinstance(tree.payoffs, PayoffTable):
        raise OptionError("sampling reads the payoffs at the leaves, and this tree's are computed: use full_tree()")
    check_variant(variant)
    check_updates(updates)
    check_iterations(iterations)
    check_seed(seed)


def check_watching(callback: Any, every: Any, target: Any) -> tuple[int | None, float | None]:
    """`every` and `target_exploitability` as numbers; raises `OptionError` for what cannot watch a run."""
    function("callback", callback, "the run so far")
    return (
        None if every is None else integer("every", every),
        None if target is None else real("target_exploitability", target, 0),
    )


def check_variant(variant: Any) -> None:
    """Raises `OptionError` unless `variant` is one that can go into compiled programs."""
    if not isinstance(variant, RegretVariant):
        given = given_instead(variant, tuple(VARIANTS))
        raise OptionError(f"variant has to be a regret variant such as jaxcfr.dcfr_plus(), not {given}")
    if jax.tree_util.all_leaves([variant]):
        raise OptionError(
            f"{type(variant).__name__} is no pytree: decorate it with @jax.tree_util.register_dataclass and "
            "@dataclasses.dataclass(frozen=True)"
        )
    for field in dataclasses.fields(variant):
        value = getattr(variant, field.name)
        if not jax.tree_util.all_leaves([value]) and not isinstance(value, SCHEDULES):
            continue  # what a variant of one's own computes with, such as the weights of a network
        for leaf in jax.tree.leaves(value):
            if jnp.ndim(leaf) != 0:
                raise OptionError(
                    f"{field.name} of {type(variant).__name__} has shape {jnp.shape(leaf)}: a hyperparameter has to be "
                    "one number; for a sweep, jax.vmap over it (other arrays, such as the weights of a network, are "
                    "kept in a dict or tuple)"
                )


def check_updates(updates: Any) -> None:
    """Raises `OptionError` unless `updates` is one of the ways to update."""
    if updates not in ("alternating", "simultaneous", "best_response"):
        raise OptionError(f'updates has to be "alternating", "simultaneous" or "best_response", not {updates!r}')


def _check_best_response(tree: GameTree, traversal: Traversal, state: SolverState) -> None:
    what = 'updates="best_response" (CFR-BR)'
    if tree.num_players != 2:
        raise OptionError(f"{what} is for two players, and this game has {tree.num_players}")
    if traversal.samples:
        raise OptionError(f"{what} computes best responses from the whole tree: it takes traversal=full_tree()")
    if state.joint is not None:
        raise OptionError(f"{what} does not play jointly, so there is nothing for track_cce to track")
    if state.blend is not None:
        raise OptionError(f"{what} has best responses play, into which nothing is blended")


def check_iterations(iterations: Any) -> None:
    """Raises `OptionError` unless `iterations` is a number of iterations, traced or not."""
    if isinstance(iterations, jax.core.Tracer):
        if iterations.ndim != 0 or not jnp.issubdtype(iterations.dtype, jnp.integer):
            raise OptionError(f"iterations has to be one integer, not {iterations.aval}")
        return
    integer("iterations", iterations, 0, INT32)


def _require_state(tree: GameTree, state: Any) -> None:
    require_tree(tree)
    if not isinstance(state, SolverState):
        hint = "; to start from a strategy, jaxcfr.state_from_profile makes a state" if isinstance(state, tuple) else ""
        raise SolverError(f"expected the SolverState that solve returns, not {type(state).__name__}{hint}")
    if not jnp.issubdtype(jnp.result_type(state.t), jnp.integer):
        raise SolverError(f"the state's t has to be an integer, not {state.t!r}")
    if not all(isinstance(player, PlayerState) for player in state.players):
        raise SolverError("the state's players have to be PlayerStates, as solve returns them")
    shapes = [player.strategy.shape for player in state.players]
    expected = [treeplex.uniform.shape for treeplex in tree.treeplexes]
    if shapes != expected:
        raise SolverError(f"the state is of another tree: its players have shapes {shapes}, this tree's {expected}")


def _check_state(tree: GameTree, variant: RegretVariant, state: Any, track_cce: bool) -> None:
    _require_state(tree, state)
    for player, treeplex in zip(state.players, tree.treeplexes, strict=True):
        expected = jax.eval_shape(variant.init, treeplex.uniform)
        if str(jax.tree.structure(player.regrets)) != str(jax.tree.structure(expected)):
            raise SolverError(
                f"the state was made by a variant that stores {type(player.regrets).__name__}, but "
                f"{type(variant).__name__} stores {type(expected).__name__}: start anew, or warm-start with "
                "state_from_profile"
            )
        computed, tables = (player.strategy, player.weights, state.weight), (player.regrets, player.average)
        dtypes = {leaf.dtype for leaf in jax.tree.leaves(tables)}
        if {leaf.dtype for leaf in jax.tree.leaves(computed)} != {treeplex.dtype} or len(dtypes) != 1:
            raise SolverError(f"the state holds other dtypes than the tree, which is {treeplex.dtype}")
    if track_cce and state.joint is None:
        raise SolverError("track_cce=True has to be given from the first iteration on")


def check_horizon(variant: RegretVariant, t: Any, iterations: Any) -> None:
    """Raises an error if a run at t cannot go on for so many iterations; what is traced is not checked.

    Raises:
      HorizonError: the variant's schedules end before.
      OptionError: t would not fit its integer.
    """
    if is_concrete(t, iterations) and int(np.max(t)) + int(iterations) >= 2**31:
        raise OptionError(f"t is a 32-bit integer: a run at t = {np.max(t)} cannot go on for {iterations} more")
    total = variant.total
    if total is None or not is_concrete(total, t, iterations):
        return
    end = int(np.max(t)) + int(iterations)
    last = float(np.min(total))
    if end > last:
        raise HorizonError(
            f"{type(variant).__name__}'s hyperparameter schedules end at t = {last:g}, but this run would go on to "
            f"t = {end}: do fewer iterations, or make the variant with a larger total"
        )
