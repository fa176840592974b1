"""`solve_game`: counterfactual regret minimization by sampling, in games too large for a tree.

The loop of `jaxcfr.solve` over a table of the information sets met so far, instead of a tree. An iteration costs as
much as its walks, however large the table is, because only rows that a walk came to are touched:

* Regrets of other rows would only be discounted. The product of the discounts of all iterations is kept, as a
  logarithm; each row remembers what it was when the row was last touched, and makes up for the difference.
* The strategy of other rows does not change, so their part in the average, `sum_t w_t pi_t(sequence) sigma_t`, can
  wait: with X the sum of `w_t pi_t` of the sequence above, which is the average's own entry there, a row that was
  brought up to date when X was x is due `(X - x) sigma`. A walk touches all that is above a row it touches, from the
  top, so the X it needs is always up to date.

Both are exact, up to rounding.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.arguments import integer
from jaxcfr.array_play import TablePolicy, make_table
from jaxcfr.concrete import is_concrete
from jaxcfr.errors import (
    ChanceNotEnumerableError,
    GameError,
    GameTooLargeError,
    OptionError,
    RecallError,
    SolverError,
    TableFullError,
)
from jaxcfr.games.array_game import Describe, chance_is_enumerable, is_array_game
from jaxcfr.games.base import game_name
from jaxcfr.games.checks import require_instance, require_plain
from jaxcfr.profile import Profile
from jaxcfr.regret import average as averages
from jaxcfr.regret.matching import normalise
from jaxcfr.regret.schedules import at
from jaxcfr.regret.variants import RegretVariant, dcfr_plus
from jaxcfr.solve import Updates, check_horizon, check_iterations, check_updates, check_variant
from jaxcfr.traversal import array_walks, randomness, table
from jaxcfr.traversal.array_walks import Touched, Walks
from jaxcfr.traversal.base import Visited, none_visited
from jaxcfr.traversal.baselines import Baseline
from jaxcfr.traversal.host_walks import HostWalker, Infosets
from jaxcfr.traversal.sampling import ExternalSampling, OutcomeSampling, external_sampling
from jaxcfr.tree.build import float_dtype
from jaxcfr.tree.fusion import kept_apart

CAPACITY = 2**16
MAX_CAPACITY = 2**26
MAX_STEPS = 10_000

BLOCK = 256
"""So many rows are updated together."""

LEAST_LOG = -80.0
"""The logarithm of the smallest discount that is told from none."""


class TableState(NamedTuple):
    """A run after t iterations; a pytree. C rows of the table, A actions.

    Attributes:
      t: int32, iterations done.
      weight: the averaging weight of iterate t, relative to the scale of the sums.
      mass: the sum of the weights.
      discounts: `[2]`, the logarithms of the products of all discounts of positive and of negative regrets.
      key: a typed key; iteration t takes its random numbers from `fold_in(key, t)`.
      table: the information sets met so far.
      regrets: what the variant stores, leaves `[C, A]`.
      discounted: `[C, 2]`, `discounts` when the row was last touched.
      average: `[C, A]`, weighted sum of the realization weights played, of the time before `pulled`. Summed plainly:
        rounding is far below what sampling does.
      pulled: `[C]`, the average's entry of the sequence above when the row was last touched; infinite before.
      cumulative: `[C, A]`, running sums of the strategy of the next iteration along the actions.
      baseline: `[C, A]` each, the returns of each action to its player; None without `control_variate()`.
      visited: histories visited so far.
      status: of the last walks, see `Walks`.
    """

    t: Array
    weight: averages.Weight
    mass: Array
    discounts: Array
    key: Array
    table: table.Table
    regrets: Any
    discounted: Array
    average: Array
    pulled: Array
    cumulative: Array
    baseline: Baseline | None
    visited: Visited
    status: Array

    @property
    def strategy(self) -> Array:
        """`[C, A]`, of the next iteration; zeros at rows that are free."""
        return _strategy(self.cumulative)


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
        return int((used & (np.asarray(_sums(self.state)).sum(1) <= 0)).sum())

    def profile(self, *, variant: Any = None, seed: int | None = None) -> Profile:
        """The average strategy at the information sets that were met.

        What was never met is not in it: play it, or turn it into a tree's strategy, with `missing="uniform"`.
        """
        strategy, legal = (np.asarray(values) for values in _average(self.state))
        strategy, owner = strategy.astype(np.float64), np.asarray(self.state.table.owner)
        players: list[list[Any]] = [[] for _ in range(int(self.game.num_players))]
        describe = Describe(self.game) if self.infosets is None else None
        keys = np.asarray(self.state.table.keys)[:, 2:]
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
        strategy, owner = np.asarray(_average(self.state)[0], np.float32), np.asarray(self.state.table.owner)
        keys = np.asarray(self.state.table.keys)[:, 2:]
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

    An iteration costs as much as its walks, however large the table is (see the module's text), so that batches may be
    small. What it stores is what `solve` would, with two differences: what no walk of its player came to keeps its
    prediction (of predictive variants), and counts in the average only from the first iteration on in which one did.

    Args:
      game: the rules: an `ArrayGame`, or the root of a `Game`.
      variant: the regret variant; None means `dcfr_plus()`.
      iterations: how many more.
      run: what an earlier call for the same game returned, to go on from. None starts anew.
      traversal: `external_sampling()`, the default, or `outcome_sampling()`, also with `control_variate()` baselines,
        which here are by the updating player's own information sets.
      seed: an integer, or a typed key; a run that goes on keeps its own.
      updates: "alternating" or "simultaneous", as in `solve`.
      capacity: information sets that the table has room for (rounded up to a power of two). Memory is about
        `capacity * (num_actions * 4 + 20)` numbers, twice while a call begins.
      slots: histories that the walks' stack on the device has room for; by default enough for games in which a walk
        branches at up to 64 depths.
      dtype: float32 or float64; None follows `jax_enable_x64`.

    Raises:
      OptionError: an argument makes no sense.
      SolverError: the run is of another game, or stores what another variant needs; or under `jit` or `vmap`.
      TableFullError: more information sets were met than the table has room for.
      GameTooLargeError: the walks leave more histories to be looked at than the stack has room for.
      HorizonError: the run would go past the end of the variant's hyperparameter schedules.
      RecallError: a player forgets what it did last. That it forgets what it saw cannot be told without a tree: whoever
        writes the rules has to see to it that information-set keys hold all of it.
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
    if traversal.baseline is not None and (isinstance(traversal, ExternalSampling) or traversal.baseline.per_history):
        raise OptionError(
            "baselines of external sampling, and by history, need a tree: leave baseline out, or lower the game and "
            "use solve; outcome_sampling(baseline=control_variate()) goes without"
        )
    rows = _power_of_two("capacity", capacity, MAX_CAPACITY)
    if not is_array_game(game):
        require_plain(game, "solve_game")
    require_instance(game, "solve_game")
    arrays = _array_game(game)
    chosen = float_dtype(dtype)
    if run is not None and not isinstance(run, SampledRun):
        raise SolverError(f"expected the SampledRun that solve_game returns, not {type(run).__name__}")
    if run is not None and run.game is not arrays and run.game is not game and run.game != arrays:
        raise SolverError(f"the run is of another game: {game_name(run.game)}")
    if not is_concrete(seed, variant, traversal, run):
        raise SolverError("solve_game runs outside of jit and vmap: a hash table is filled step by step")
    if run is not None:
        _check_stored(variant, run.state)
    begin = 0 if run is None else run.state.t
    check_horizon(variant, begin, int(iterations))
    traversal.check_schedules(begin, int(iterations))
    if arrays is None:
        return _run_on_host(game, variant, int(iterations), run, traversal, seed, updates, rows, chosen)
    width = array_walks.step_width(traversal.batch, int(arrays.num_actions))
    room = _slots(slots, width)
    state = _initial(arrays, variant, rows, seed, chosen) if run is None else run.state
    state = _with_baseline(state, traversal)
    state = _run_on_device(arrays, variant, traversal, state, int(iterations), updates, width, room)
    _check(arrays, state, room)
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


def _check_stored(variant: RegretVariant, state: TableState) -> None:
    """Raises `SolverError` for a variant that stores other things."""
    expected = jax.tree.structure(jax.eval_shape(variant.init, state.average))
    if str(jax.tree.structure(state.regrets)) != str(expected):
        raise SolverError(
            f"the run stores {type(state.regrets).__name__}, and {type(variant).__name__} stores other things: go on "
            "with the variant that it was begun with, or one that stores the same"
        )


def _slots(slots: Any, width: int) -> int:
    if slots is None:
        return width * array_walks.DEPTH
    return max(_power_of_two("slots", slots, 2**24), width)


def _power_of_two(name: str, value: Any, most: int) -> int:
    return 1 << max(integer(name, value, 1, most) - 1, 15).bit_length()


def _initial(game: Any, variant: RegretVariant, rows: int, seed: Any, dtype: Any) -> TableState:
    empty = table.empty_table(rows, array_walks.key_width(game), int(game.num_actions))
    return _state(empty, variant, int(game.num_actions), seed, dtype)


def _state(empty: table.Table, variant: RegretVariant, actions: int, seed: Any, dtype: Any) -> TableState:
    rows = empty.capacity
    zeros = jnp.zeros((rows, actions), dtype)
    return TableState(
        t=jnp.zeros((), jnp.int32),
        weight=averages.init_weight(dtype),
        mass=jnp.zeros((), dtype),
        discounts=jnp.zeros(2, dtype),
        key=randomness.as_key(seed),
        table=empty,
        regrets=jax.tree.map(jnp.transpose, variant.init(zeros.T)),
        discounted=jnp.zeros((rows, 2), dtype),
        average=zeros,
        pulled=jnp.full(rows, jnp.inf, dtype),
        cumulative=jnp.zeros((rows, actions), dtype),
        baseline=None,
        visited=none_visited(),
        status=jnp.zeros((), jnp.int32),
    )


def _with_baseline(state: TableState, traversal: ExternalSampling | OutcomeSampling) -> TableState:
    """The state with baselines just where the traversal wants them; what was learnt stays."""
    if traversal.baseline is None:
        return state._replace(baseline=None)
    if state.baseline is not None:
        return state
    return state._replace(baseline=Baseline(jnp.zeros_like(state.average), jnp.zeros_like(state.average)))


def _check(game: Any, state: TableState, slots: int) -> None:
    count, capacity, name = int(state.table.size), state.table.capacity, game_name(game)
    if count > capacity:
        raise TableFullError(
            f"more information sets were met than the table has room for: all {capacity:,} rows were taken in "
            f"iteration {int(state.t)}; give a larger capacity"
        )

    def named(row: Array) -> tuple[int, Any]:
        """The owner and the key of a row."""
        owner, _, *key = np.asarray(state.table.keys[row])
        return int(owner), Describe(game).infoset_key(np.array(key), int(owner))

    if int(state.table.forgetful) >= 0:
        player, key = named(state.table.forgetful)
        raise RecallError(
            f"{name}: player {player} forgets at information set {key!r}: its histories differ in what the player did "
            "before; counterfactual regret minimization needs perfect recall"
        )
    if int(state.table.mixed) >= 0:
        player, key = named(state.table.mixed)
        raise GameError(
            f"{name}: information set {key!r} of player {player} has other legal actions in some of its histories than "
            "in others"
        )
    status = int(state.status)
    if status == array_walks.NO_ROOM:
        raise GameTooLargeError(
            f"{name}: walks leave more than {slots:,} histories to be looked at: give more slots, or use "
            "outcome_sampling()"
        )
    broken = {
        array_walks.ENDLESS: f"a play has not ended after {array_walks.MAX_STEPS:,} moves",
        array_walks.NO_ACTION: "a player has to act and has no legal action",
        array_walks.NO_PLAYER: f"player(state) is neither a player (0 to {int(game.num_players) - 1}), nor -1 for "
        "chance, nor -2 for the end",
        array_walks.NO_CHANCE: "the probabilities of chance are negative, or do not sum to 1",
        array_walks.NO_PAYOFF: f"a payoff is not finite in {state.average.dtype}",
    }
    if status in broken:
        raise GameError(f"{name}: {broken[status]} (iteration {int(state.t)}; jaxcfr.validate_game tells where)")


def _strategy(cumulative: Array) -> Array:
    """Probabilities from their running sums along the last axis."""
    return jnp.diff(cumulative, axis=-1, prepend=jnp.zeros_like(cumulative[..., :1]))


def _begin(variant: RegretVariant, state: TableState) -> TableState:
    """The next t and its averaging weight; sums are scaled down before powers of two."""
    dtype = state.average.dtype
    t = (state.t + 1).astype(dtype)

    def scale(carry: tuple[Array, TableState]) -> tuple[Array, TableState]:
        _, state = carry
        weight, shift = averages.scale_down(state.weight, variant.gamma_at(t), t)
        factor = averages.power_of_two(shift, dtype)
        keep = averages.table_scale(state.average.T, factor)[0]
        parent = state.table.parent
        above = jnp.where(parent < 0, factor, keep[jnp.maximum(parent, 0) // state.average.shape[1]])
        return jnp.zeros((), bool), state._replace(
            weight=weight,
            mass=state.mass * factor,
            average=state.average * keep[:, None],
            pulled=state.pulled * jnp.where(above > 0, above, 1),
        )

    # A loop, which copies nothing, in place of a branch, which would copy the tables.
    due = (state.t & (state.t + 1)) == 0
    _, state = jax.lax.while_loop(lambda carry: carry[0], scale, (due, state))
    weight = averages.advance(state.weight, variant.gamma_at(t), t)
    return state._replace(t=state.t + 1, weight=weight, mass=state.mass + jnp.exp2(weight.log2))


def _logarithms(variant: RegretVariant, t: Array) -> Array:
    """Of the discounts of iteration t."""
    factors = jnp.stack([jnp.asarray(factor, t.dtype) for factor in variant.discounts(t)])
    return jnp.maximum(jnp.log(jnp.maximum(factors, jnp.finfo(t.dtype).tiny)), LEAST_LOG)  # type: ignore[no-untyped-call]


def _end(variant: RegretVariant, state: TableState) -> TableState:
    """All players have been updated."""
    return state._replace(discounts=state.discounts + _logarithms(variant, state.t.astype(state.average.dtype)))


class _Block(NamedTuple):
    """Some of the rows that walks came to: their numbers (0 for the padding), which are real, and what they hold."""

    rows: Array
    valid: Array
    direct: Array
    strategy: Array
    parent: Array


class _Scratch(NamedTuple):
    """See `Walks`: zero between updates."""

    direct: Array
    returns: tuple[Array, ...]
    met: Array


def _scratch(state: TableState, direct: Any = None, returns: Any = None) -> _Scratch:
    """Zero, but for what is given."""
    capacity, actions = state.average.shape
    nothing = jnp.zeros((capacity + 1) * actions, state.average.dtype)
    if returns is None:
        returns = () if state.baseline is None else (nothing, nothing)
    return _Scratch(nothing if direct is None else direct, returns, jnp.zeros(capacity, jnp.int32))


def _update(
    variant: RegretVariant,
    traversal: ExternalSampling | OutcomeSampling,
    state: TableState,
    scratch: _Scratch,
    touched: Touched,
) -> tuple[TableState, _Scratch]:
    """What a player stores after its walks, and its next strategy."""
    batch = traversal.batch
    capacity, actions = state.average.shape
    dtype, t = state.average.dtype, state.t.astype(state.average.dtype)
    outside = scratch.direct.shape[0] - 1

    def block(at: Array, end: Array, direct: Array, cumulative: Array) -> _Block:
        rows = jax.lax.dynamic_slice_in_dim(touched.rows, at, BLOCK)
        valid = at + jnp.arange(BLOCK, dtype=jnp.int32) < end
        rows = jnp.where(valid, rows, 0)
        gathered = (direct.reshape(-1, actions)[rows], cumulative[rows], state.table.keys[rows, 1])
        values, running, parent = kept_apart(gathered)
        return _Block(rows, valid, values, _strategy(running), parent)

    def bounds(stretch: Array) -> tuple[Array, Array]:
        return jnp.where(stretch > 0, touched.ends[jnp.maximum(stretch - 1, 0)], 0), touched.ends[stretch]

    def over_blocks(stretch: Array, step: Any, carry: Any) -> Any:
        begin, end = bounds(stretch)
        return jax.lax.while_loop(
            lambda carry: carry[0] < end,
            lambda carry: (carry[0] + BLOCK, step(carry[0], end, carry[1])),
            (begin, carry),
        )[1]

    def up(number: Array, carry: tuple[Array, tuple[Array, ...]]) -> tuple[Array, tuple[Array, ...]]:
        """A set is worth to the sequence above it what its strategy earns there.

        Of the returns, a play counts as much as the strategy makes it more likely than the exploring one.
        """

        def step(begin: Array, end: Array, carry: tuple[Array, tuple[Array, ...]]) -> tuple[Array, tuple[Array, ...]]:
            direct, returns = carry
            here = block(begin, end, direct, state.cumulative)
            inner = here.valid & (here.parent >= 0)
            parent = jnp.where(inner, here.parent, outside)

            def handed_up(totals: Array, values: Array, weights: Array) -> Array:
                return totals.at[parent].add(jnp.where(inner, (weights * values).sum(1), 0))

            if returns and exploration is not None:
                legal = table.unpacked(state.table.legal[here.rows], actions).T
                drawn = exploration * legal / jnp.maximum(legal.sum(1, keepdims=True), 1)
                drawn = drawn + (1 - exploration) * here.strategy
                ratio = here.strategy / jnp.where(drawn > 0, drawn, 1)
                returns = tuple(
                    handed_up(totals, kept_apart(totals.reshape(-1, actions)[here.rows]), ratio) for totals in returns
                )
            return handed_up(direct, here.direct, here.strategy), returns

        return over_blocks(touched.stretches - 1 - number, step, carry)

    exploration = _exploration(traversal, t)
    direct, returns = jax.lax.fori_loop(0, touched.stretches, up, (scratch.direct, scratch.returns))
    logarithms = state.discounts + _logarithms(variant, t)
    idle_matters = type(variant).discounts is not RegretVariant.discounts

    def caught_up(stored: Any, discounted: Array) -> Any:
        """Stored regrets after the discounts of the iterations since the rows were last touched."""
        if not idle_matters:
            return stored
        factors = jnp.exp(state.discounts - discounted)
        factor = jnp.where(stored.regret > 0, factors[:, 0], factors[:, 1])
        return stored._replace(regret=stored.regret * factor)

    def step(begin: Array, end: Array, carry: tuple[TableState, _Scratch]) -> tuple[TableState, _Scratch]:
        old, (direct, returns, met) = carry
        here = block(begin, end, direct, old.cumulative)
        there = jnp.where(here.valid, here.rows, capacity)
        legal = table.unpacked(state.table.legal[here.rows], actions)
        uniform = table.uniform_over(legal, dtype)
        worth = (here.strategy * here.direct).sum(1)
        r = jnp.where(legal, (here.direct.T - worth) / batch, 0)
        stored = jax.tree.map(lambda leaf: leaf.T, kept_apart(jax.tree.map(lambda leaf: leaf[here.rows], old.regrets)))
        discounted = old.discounted[here.rows]
        stored = variant.update(caught_up(stored, discounted), r, t)
        strategy = array_walks.cumulative_of(kept_apart(variant.strategy(stored, uniform, t))).T
        # The average of the strategy that was played until now.
        above = jnp.where(here.parent < 0, old.mass, old.average.reshape(-1)[jnp.maximum(here.parent, 0)])
        pulled = old.pulled[here.rows]
        above = jnp.where(jnp.isfinite(pulled), jnp.maximum(above, pulled), above)
        due = jnp.where(jnp.isfinite(pulled), above - pulled, 0)
        average = old.average[here.rows] + due[:, None] * here.strategy

        def put(column: Array, values: Any) -> Array:
            return column.at[there].set(values, mode="drop")

        # XLA copies a table that is written to, unless what is written depends on all that is read from it: thus the
        # conditions that always hold, and the subtraction.

        new = old._replace(
            regrets=jax.tree.map(lambda column, values: put(column, values.T), old.regrets, stored),
            discounted=put(old.discounted, jnp.where(jnp.isnan(discounted), discounted, logarithms)),
            average=put(old.average, average),
            pulled=put(old.pulled, above),
            cumulative=put(old.cumulative, strategy),
        )

        def zeroed(totals: Array, values: Array) -> Array:
            return totals.reshape(-1, actions).at[there].add(-values, mode="drop").reshape(-1)

        if old.baseline is not None and traversal.baseline is not None:
            newest = tuple(kept_apart(totals.reshape(-1, actions)[here.rows]) for totals in returns)
            learnt = Baseline(*(values[here.rows] for values in old.baseline)).after(traversal.baseline.decay, *newest)
            new = new._replace(baseline=Baseline(*map(put, old.baseline, learnt)))
            returns = tuple(map(zeroed, returns, newest))
        return new, _Scratch(zeroed(direct, here.direct), returns, put(met, 0))

    state, scratch = jax.lax.fori_loop(
        0,
        touched.stretches,
        lambda number, carry: over_blocks(number, step, carry),
        (state, _Scratch(direct, returns, scratch.met)),
    )
    # The empty sequence.
    direct, returns = (jax.tree.map(lambda totals: totals.at[outside].set(0), part) for part in scratch[:2])
    return state, _Scratch(direct, returns, scratch.met)


def _exploration(traversal: ExternalSampling | OutcomeSampling, t: Array) -> Array | None:
    """Of iteration t; None in external sampling."""
    if isinstance(traversal, ExternalSampling):
        return None
    return jnp.asarray(at(traversal.exploration, t), t.dtype)


@functools.partial(jax.jit, static_argnames=("game", "updates", "width", "slots"))
def _run_on_device(
    game: Any,
    variant: RegretVariant,
    traversal: ExternalSampling | OutcomeSampling,
    state: TableState,
    iterations: Array,
    updates: Updates,
    width: int,
    slots: int,
) -> TableState:
    end = state.t + iterations
    none = array_walks.none_touched(state.table.capacity, max(width, BLOCK))
    players = range(int(game.num_players))

    def iterate(carry: tuple[TableState, _Scratch]) -> tuple[TableState, _Scratch]:
        state, scratch = carry
        state = _begin(variant, state)
        exploration = _exploration(traversal, state.t.astype(state.average.dtype))
        waiting = []
        for player in players:
            seed = randomness.words(state.key, state.t, player)
            walker = array_walks.ArrayWalker(game, player, seed, exploration, state.baseline, width, slots)
            zero = jnp.zeros((), jnp.float32)
            walks = Walks(state.table, state.cumulative, *scratch, none, zero, state.status)
            walks = walker.run(walks, traversal.batch)
            scratch = _Scratch(walks.direct, walks.returns, walks.met)
            state = state._replace(
                table=walks.table,
                cumulative=walks.cumulative,
                visited=state.visited.add(walks.visited),
                status=walks.status,
            )
            waiting.append(walks.touched)
            if updates == "alternating" or player == players[-1]:
                for touched in waiting:
                    state, scratch = _update(variant, traversal, state, scratch, touched)
                waiting = []
        return _end(variant, state), scratch

    def fine(state: TableState) -> Array:
        return array_walks.fine(state.table, state.status)

    start = (state, _scratch(state))
    return jax.lax.while_loop(lambda carry: (carry[0].t < end) & fine(carry[0]), iterate, start)[0]


@jax.jit
def _update_from_host(
    variant: RegretVariant,
    traversal: ExternalSampling | OutcomeSampling,
    state: TableState,
    touched: Touched,
    direct: Array,
    returns: tuple[Array, ...],
) -> TableState:
    return _update(variant, traversal, state, _scratch(state, direct, returns), touched)[0]


_begin_from_host = jax.jit(_begin)
_end_from_host = jax.jit(_end)


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
    players = range(int(game.num_players))
    if run is None:
        infosets = Infosets()
        state = _state(table.empty_table(16, 0, 2), variant, 2, seed, dtype)
    else:
        assert run.infosets is not None
        infosets, state = run.infosets.copy(), run.state
    state = _with_baseline(state, traversal)
    for _ in range(iterations):
        state = _begin_from_host(variant, state)
        exploration = None
        if isinstance(traversal, OutcomeSampling):
            exploration = float(at(traversal.exploration, state.t.astype(dtype)))
        fixed = np.asarray(state.strategy)
        waiting = []
        for player in players:
            strategy = np.asarray(state.strategy) if updates == "alternating" else fixed
            numbers = np.asarray(jnp.stack(randomness.words(state.key, state.t, player))).tolist()
            rng = np.random.default_rng(numbers)
            baseline = None if state.baseline is None else np.asarray(state.baseline.mean())
            walker = HostWalker(game, infosets, strategy, rng, exploration, baseline, MAX_STEPS)
            totals: dict[tuple[int, int], np.ndarray] = {}
            for _ in range(traversal.batch):
                walker.walk(player, totals)
                if len(infosets.owner) > capacity:
                    raise TableFullError(
                        f"more information sets were met than the table has room for: {len(infosets.owner):,} in "
                        f"iteration {int(state.t)}; give a larger capacity"
                    )
            state = state._replace(visited=state.visited.add(jnp.float32(walker.visited)))
            waiting.append(totals)
            if updates == "alternating" or player == players[-1]:
                state = _grown(state, infosets)
                for totals in waiting:
                    touched, (direct, *returns) = _from_walks(infosets, totals, *state.average.shape)
                    learnt = () if state.baseline is None else tuple(returns)
                    state = _update_from_host(variant, traversal, state, touched, direct, learnt)
                waiting = []
        state = _end_from_host(variant, state)
    return SampledRun(state, infosets, game)


def _from_walks(
    infosets: Infosets, totals: dict[tuple[int, int], np.ndarray], capacity: int, actions: int
) -> tuple[Touched, np.ndarray]:
    """The rows that walks came to, one level after the other, and what was added up by sequence (see `HostWalker`)."""
    rows: set[int] = set()
    values = np.zeros((3, (capacity + 1) * actions))
    for (row, action), value in totals.items():
        if row >= 0:
            values[:, row * actions + action] = value
        while row >= 0 and row not in rows:
            rows.add(row)
            row, _ = infosets.parent[row]
    ordered = sorted(rows, key=lambda row: (infosets.level[row], row))
    levels = np.array([infosets.level[row] for row in ordered], np.int64)
    stops = np.flatnonzero(np.diff(levels, append=-1)) + 1
    touched = array_walks.none_touched(capacity, BLOCK)
    listed, ends = np.array(touched.rows), np.array(touched.ends)
    listed[: len(ordered)] = ordered
    ends[: len(stops)] = stops
    return Touched(*map(jnp.asarray, (listed, ends, len(stops), len(ordered)))), values


def _grown(state: TableState, infosets: Infosets) -> TableState:
    """The state with rows for all information sets met; tables double in size, so that few programs are compiled."""
    count = len(infosets.owner)
    (rows, actions), known = state.average.shape, int(state.table.size)
    if count == known:
        return state
    old = actions
    while rows < count:
        rows *= 2
    while actions < infosets.most_actions:
        actions *= 2

    def pad(values: Any, fill: float = 0) -> np.ndarray:
        wide = [(0, rows - values.shape[0]), (0, actions - values.shape[-1])][: values.ndim]
        return np.pad(np.asarray(values), wide, constant_values=fill)

    # Sequences are numbered by row and action; the sums there stay where they are.
    mask = np.zeros((rows, actions), bool)
    for row, menu in enumerate(infosets.actions):
        mask[row, : len(menu)] = True
    level = np.zeros(rows, np.int32)
    level[:count] = infosets.level
    keys = np.full((rows, 2), -1, np.int32)
    keys[:count, 0] = infosets.owner
    keys[:count, 1] = [row * actions + action if row >= 0 else -1 for row, action in infosets.parent]
    # A wider table repeats the last running sum.
    cumulative = np.concatenate([np.asarray(state.cumulative), np.ones((len(state.cumulative), actions - old))], axis=1)
    cumulative = pad(cumulative)
    uniform = table.uniform_over(jnp.asarray(mask[known:count].T), state.average.dtype)
    cumulative[known:count] = np.asarray(array_walks.cumulative_of(uniform)).T
    grown = state.table._replace(
        keys=jnp.asarray(keys),
        level=jnp.asarray(level),
        legal=table.packed(jnp.asarray(mask)),
        size=jnp.asarray(count, jnp.int32),
    )
    dtype = state.average.dtype
    return state._replace(
        table=grown,
        regrets=jax.tree.map(lambda leaf: jnp.asarray(pad(leaf)), state.regrets),
        discounted=jnp.pad(state.discounted, [(0, rows - len(state.discounted)), (0, 0)]),
        average=jnp.asarray(pad(state.average)),
        pulled=jnp.asarray(pad(state.pulled, np.inf)),
        cumulative=jnp.asarray(cumulative, dtype),
        baseline=jax.tree.map(lambda leaf: jnp.asarray(pad(leaf)), state.baseline),
    )


@jax.jit
def _sums(state: TableState) -> Array:
    """The average's weighted sums `[C, A]`, all brought up to date, from the top."""
    strategy = state.strategy
    parent, level = state.table.parent, state.table.level
    deepest = jnp.max(jnp.where(state.table.owner >= 0, level, -1))

    def down(number: Array, sums: Array) -> Array:
        above = jnp.where(parent < 0, state.mass, sums.reshape(-1)[jnp.maximum(parent, 0)])
        due = jnp.where(jnp.isfinite(state.pulled), jnp.maximum(above - state.pulled, 0), 0)
        return jnp.where((level == number)[:, None], state.average + due[:, None] * strategy, sums)

    return jax.lax.fori_loop(0, deepest + 1, down, state.average)


@jax.jit
def _average(state: TableState) -> tuple[Array, Array]:
    """The average strategy and the mask of legal actions, `[C, A]`."""
    legal = table.unpacked(state.table.legal, state.average.shape[1])
    uniform = table.uniform_over(legal, state.average.dtype).T
    return normalise(_sums(state), uniform, axis=1), legal.T
