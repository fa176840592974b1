"""The solver loop: continuation, recompilation, sweeps, gradients, long runs, averages, warm starts."""

import dataclasses
import functools
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxcfr
from jaxcfr import errors
from jaxcfr.regret import average as averages
from jaxcfr.solve import _run

VARIANTS = [
    jaxcfr.vanilla(),
    jaxcfr.cfr_plus(),
    jaxcfr.linear_cfr(),
    jaxcfr.dcfr(),
    jaxcfr.dcfr_plus(),
    jaxcfr.pcfr_plus(),
    jaxcfr.pdcfr_plus(),
    jaxcfr.hs_dcfr(30.0, 1000),
    jaxcfr.hs_cfr_plus(15.0, 1000),
    jaxcfr.hs_pcfr_plus(30.0, 1000),
    jaxcfr.sapcfr_plus(),
]


@pytest.fixture(scope="module")
def kuhn():
    return jaxcfr.lower(jaxcfr.load_game("kuhn_poker")).tree


@pytest.fixture(scope="module")
def kuhn32():
    return jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), dtype="float32").tree


@pytest.fixture(scope="module")
def leduc32():
    return jaxcfr.lower(jaxcfr.load_game("leduc_poker"), dtype="float32").tree


def assert_same_bits(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


class OwnReach(jaxcfr.Game):
    """One player moves A or B; after A it moves C or D, seeing its first move."""

    num_players = 1

    def __init__(self, path=()):
        self.path = path

    def is_terminal(self):
        return self.path[:1] == ("B",) or len(self.path) == 2

    def is_chance(self):
        return False

    def player_to_act(self):
        return 0

    def legal_actions(self):
        return ("C", "D") if self.path else ("A", "B")

    def step(self, action):
        return OwnReach((*self.path, action))

    def terminal_returns(self):
        return [{("B",): 1.0, ("A", "C"): 2.0, ("A", "D"): 0.0}[self.path]]

    def infoset_key(self, player):
        return self.path


class Unregistered(jaxcfr.RegretVariant):
    """A user's variant that was not made a pytree."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Hedge(jaxcfr.RegretVariant):
    """Exponential weights: a variant of a user's own, whose map from regrets to strategy is not regret matching."""

    def strategy(self, state, uniform, t):
        return jax.nn.softmax(jnp.where(uniform > 0, state.regret, -jnp.inf), axis=0)

    def update(self, state, r, t):
        return state._replace(regret=state.regret + r)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
def test_two_halves_equal_the_whole_to_the_bit(kuhn32, variant, updates):
    half = jaxcfr.solve(kuhn32, variant, 500, updates=updates)
    before = jax.tree.map(np.array, half)
    whole = jaxcfr.solve(kuhn32, variant, 1000, updates=updates)
    assert_same_bits(jaxcfr.solve(kuhn32, variant, 500, half, updates=updates), whole)
    assert_same_bits(before, half)  # the input state stays usable
    assert int(whole.t) == 1000


def test_no_iterations_give_the_uniform_strategy(kuhn):
    state = jaxcfr.solve(kuhn, iterations=0)
    assert int(state.t) == 0
    assert_same_bits(jaxcfr.average_strategy(kuhn, state), jaxcfr.uniform_strategy(kuhn))
    assert_same_bits(jaxcfr.current_strategy(kuhn, state), jaxcfr.uniform_strategy(kuhn))


def test_other_numbers_compile_nothing_new(kuhn):
    jaxcfr.solve(kuhn, jaxcfr.dcfr(1.5, 0.0, 2.0), 3)
    size = _run._cache_size()
    jaxcfr.solve(kuhn, jaxcfr.dcfr(1.2, -0.5, 3), 7)
    jaxcfr.solve(kuhn.with_payoffs(kuhn.terminal_payoffs * 3), jaxcfr.dcfr(2, 0, 0), 11)
    state = jaxcfr.solve(kuhn, jaxcfr.dcfr(), np.int64(2))
    jaxcfr.solve(kuhn, jaxcfr.dcfr(), 2, state)
    assert _run._cache_size() == size


def test_big_arrays_are_arguments_not_constants():
    tree = jaxcfr.lower(jaxcfr.load_game("liars_dice(dice_sides=5)"), histories=False).tree
    assert tree.num_histories > 50_000
    closed = jax.make_jaxpr(lambda tree, n: jaxcfr.solve(tree, jaxcfr.dcfr_plus(), n))(tree, 3)
    assert sum(np.asarray(c).nbytes for c in jax.tree.leaves(closed.consts)) < 1e6


@pytest.mark.parametrize("gamma", [3.0, 0.5, -1.5])
def test_the_average_weights_iterates_by_own_reach_and_by_t_to_the_gamma(kuhn, gamma):
    """Against an explicit weighted sum of the realization weights that were played (a schedule may be negative)."""
    iterations = 40
    variant = jaxcfr.dcfr(1.5, 0.0, jaxcfr.constant(gamma))
    state = jaxcfr.solve(kuhn, variant, 0)
    sums = [np.zeros(treeplex.size) for treeplex in kuhn.treeplexes]
    for t in range(1, iterations + 1):
        for total, player in zip(sums, state.players, strict=True):
            total += t**gamma * np.asarray(player.weights)[:-1]
        state = jaxcfr.solve(kuhn, variant, 1, state)
    for p, treeplex in enumerate(kuhn.treeplexes):
        indices, offsets = treeplex.sequence_indices()
        rows = np.split(sums[p][indices], offsets[1:-1])
        average = np.asarray(jaxcfr.average_strategy(kuhn, state)[p])[indices]
        np.testing.assert_allclose(average, np.concatenate([row / row.sum() for row in rows]), rtol=1e-12)


def test_own_reach_weighting_on_two_iterates():
    """Iterate 1 plays A, C; iterate 2 plays B, D: after A the average plays C for certain."""
    lowered = jaxcfr.lower(OwnReach())
    tree = lowered.tree
    state = jaxcfr.solve(tree, jaxcfr.vanilla(), 0)
    for rows in ([[1, 0], [1, 0]], [[0, 1], [0, 1]]):
        strategy = lowered.strategy([rows])[0]
        player = state.players[0]._replace(strategy=strategy, weights=tree.treeplexes[0].realization_weights(strategy))
        state = jaxcfr.solve(tree, jaxcfr.vanilla(), 1, state._replace(players=(player,)))
    average = lowered.probabilities(jaxcfr.average_strategy(tree, state), 0)
    np.testing.assert_allclose(average[lowered.infoset_numbers[0][("A",)]], [1, 0])
    np.testing.assert_allclose(average[lowered.infoset_numbers[0][()]], [0.5, 0.5])


@pytest.mark.full_compilation
@pytest.mark.parametrize("gamma", [0.0, 2.0, 30.0, 100.0])
def test_large_exponents_neither_overflow_nor_forget(kuhn32, gamma):
    """In float32 t^30 overflows at t = 20; the average is kept relative, and rows it left behind stay."""
    state = jaxcfr.solve(kuhn32, jaxcfr.dcfr(1.5, 0.0, gamma), 3000)
    strategy = jaxcfr.average_strategy(kuhn32, state)
    kuhn32.check_strategy(strategy)
    assert float(jaxcfr.exploitability(kuhn32, strategy)) < 0.1
    for player in state.players:
        assert np.all(np.isfinite(player.average.value))


def test_an_information_set_left_behind_keeps_its_average():
    """After A becomes unreached, with gamma 30 its rows fall by t^30: they keep their last numbers."""
    lowered = jaxcfr.lower(OwnReach(), dtype="float32")
    tree = lowered.tree
    variant = jaxcfr.dcfr(1.5, 0.0, 30.0)
    state = jaxcfr.solve(tree, variant, 0)

    def play(state, rows):
        strategy = lowered.strategy([rows])[0]
        player = state.players[0]._replace(strategy=strategy, weights=tree.treeplexes[0].realization_weights(strategy))
        return jaxcfr.solve(tree, variant, 1, state._replace(players=(player,)))

    state = play(state, [[0.9, 0.1], [0.75, 0.25]])
    for _ in range(60):
        state = play(state, [[0, 1], [0.5, 0.5]])
    average = lowered.probabilities(jaxcfr.average_strategy(tree, state), 0)
    np.testing.assert_allclose(average[lowered.infoset_numbers[0][("A",)]], [0.75, 0.25], rtol=1e-6)
    np.testing.assert_allclose(average[lowered.infoset_numbers[0][()]], [0, 1], atol=1e-6)


@pytest.mark.full_compilation
def test_single_precision_does_not_get_worse(leduc32):
    """A short twin of the test below."""
    _long_run(leduc32, jaxcfr.pdcfr_plus(), 2_000, 10_000)


@pytest.mark.slow
@pytest.mark.full_compilation
@pytest.mark.parametrize("variant", [jaxcfr.pdcfr_plus(), jaxcfr.cfr_plus(), jaxcfr.dcfr_plus(), jaxcfr.pcfr_plus()])
def test_single_precision_does_not_get_worse_in_400_000_iterations(leduc32, variant):
    """Done naively, NashConv on Leduc rises 40-fold between 10,000 and 400,000 iterations (VARIANTS of the design)."""
    _long_run(leduc32, variant, 10_000, 400_000)


def _long_run(tree, variant, early, late):
    state = jaxcfr.solve(tree, variant, early)
    first = float(jaxcfr.nash_conv(tree, jaxcfr.average_strategy(tree, state)))
    state = jaxcfr.solve(tree, variant, late - early, state)
    last = float(jaxcfr.nash_conv(tree, jaxcfr.average_strategy(tree, state)))
    print(type(variant).__name__, first, last)
    assert last <= max(first, 1e-5)


def test_sweeps_over_hyperparameters_equal_single_runs(kuhn):
    alphas = jnp.array([0.5, 1.5, 2.5])

    def run(alpha):
        state = jaxcfr.solve(kuhn, jaxcfr.dcfr(alpha, 0.0, 2.0), 100)
        return jaxcfr.nash_conv(kuhn, jaxcfr.average_strategy(kuhn, state))

    together = jax.vmap(run)(alphas)
    # Another program rounds otherwise, and a hundred iterations magnify that.
    np.testing.assert_allclose(together, [run(float(a)) for a in alphas], rtol=1e-5)
    assert len(set(np.asarray(together).tolist())) == 3


def test_stacked_trees_solve_together(kuhn):
    trees = [kuhn, kuhn.with_payoffs(kuhn.terminal_payoffs * 2.0)]
    stacked = jaxcfr.stack(trees)
    together = jax.vmap(lambda tree: jaxcfr.average_strategy(tree, jaxcfr.solve(tree, jaxcfr.cfr_plus(), 50)))(stacked)
    for number, tree in enumerate(trees):
        alone = jaxcfr.average_strategy(tree, jaxcfr.solve(tree, jaxcfr.cfr_plus(), 50))
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_allclose(a[number], b, rtol=1e-9)


@pytest.mark.parametrize("iterations", [1, 6, 20])
def test_gradients_through_the_solver_match_finite_differences(kuhn, iterations):
    """Of NashConv with respect to alpha and to one direction of payoffs (away from symmetric, kinked points)."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=kuhn.num_terminals)
    direction = rng.normal(size=kuhn.num_terminals)

    def objective(alpha, shift):
        payoffs = kuhn.terminal_payoffs[:, 0] + 0.1 * base + shift * direction
        tree = kuhn.with_payoffs(jnp.stack([payoffs, -payoffs], 1))
        state = jaxcfr.solve(tree, jaxcfr.dcfr(alpha, 0.0, 2.0), iterations, differentiable=True)
        return jaxcfr.nash_conv(tree, jaxcfr.average_strategy(tree, state))

    point = (1.5, 0.0)
    gradient = jax.grad(objective, argnums=(0, 1))(*point)
    step = 1e-6
    objective = jax.jit(objective)
    for index in range(2):
        ahead, behind = list(point), list(point)
        ahead[index] += step
        behind[index] -= step
        difference = (objective(*ahead) - objective(*behind)) / (2 * step)
        assert np.isfinite(gradient[index])
        np.testing.assert_allclose(gradient[index], difference, rtol=1e-4, atol=1e-8)


@jax.jit
@functools.partial(jax.grad, argnums=(0, 1))
def gradient_of_the_gap(variant, payoffs, tree):
    tree = tree.with_payoffs(payoffs)
    state = jaxcfr.solve(tree, variant, 4, differentiable=True)
    return jaxcfr.nash_conv(tree, jaxcfr.average_strategy(tree, state))


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: type(v).__name__)
def test_gradients_are_finite_for_every_variant(kuhn, variant):
    gradient = gradient_of_the_gap(variant, kuhn.terminal_payoffs, kuhn)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))
    assert np.any(np.asarray(gradient[1]) != 0)


def test_the_differentiable_loop_is_the_same_computation(kuhn):
    plain = jaxcfr.solve(kuhn, jaxcfr.pdcfr_plus(), 30)
    static = jaxcfr.solve(kuhn, jaxcfr.pdcfr_plus(), 30, differentiable=True)
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(static), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_schedules_and_constants_agree(kuhn):
    def final(variant):
        return jaxcfr.average_strategy(kuhn, jaxcfr.solve(kuhn, variant, 60))

    reference = final(jaxcfr.dcfr(1.5, 0.0, 2.0))
    for alpha in (jaxcfr.constant(1.5), optax.constant_schedule(1.5), jaxcfr.linear(1.5, 1.5, 10), lambda t: 1.5):
        for a, b in zip(final(jaxcfr.dcfr(alpha, 0.0, 2.0)), reference, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
    moving = final(jaxcfr.dcfr(jaxcfr.linear(0.0, 3.0, 60), 0.0, 2.0))
    assert any(np.max(np.abs(np.asarray(a) - np.asarray(b))) > 1e-3 for a, b in zip(moving, reference, strict=True))


def test_schedules_have_the_values_they_promise():
    t = jnp.array([0.0, 5.0, 10.0, 20.0])
    np.testing.assert_allclose(jaxcfr.linear(1.0, 3.0, 10)(t), [1, 2, 3, 3])
    np.testing.assert_allclose(jaxcfr.geometric(8.0, 0.5)(t), [8, 0.25, 8 / 1024, 8 / 2**20])
    np.testing.assert_allclose(jaxcfr.polynomial(2.0, 2.0)(t), [0, 50, 200, 800])
    np.testing.assert_allclose(jaxcfr.constant(0.3)(t), 0.3)


def test_runs_do_not_go_past_the_horizon(kuhn):
    variant = jaxcfr.hs_dcfr(30.0, 100)
    state = jaxcfr.solve(kuhn, variant, 100)
    kuhn.check_strategy(jaxcfr.average_strategy(kuhn, state))
    with pytest.raises(errors.HorizonError, match="t = 100"):
        jaxcfr.solve(kuhn, variant, 1, state)
    with pytest.raises(errors.HorizonError):
        jaxcfr.solve(kuhn, variant, 101)
    traced = jax.jit(lambda n: jaxcfr.average_strategy(kuhn, jaxcfr.solve(kuhn, variant, n)))
    assert np.all(np.isfinite(traced(100)[0]))
    assert np.all(np.isnan(traced(101)[0]))


def test_the_callback_sees_the_run_and_can_stop_it(kuhn):
    seen = []

    def callback(state):
        seen.append(int(state.t))
        return len(seen) == 3

    state = jaxcfr.solve(kuhn, iterations=1000, callback=callback, every=70)
    assert seen == [70, 140, 210]
    assert int(state.t) == 210
    assert_same_bits(state, jaxcfr.solve(kuhn, iterations=210))
    seen.clear()
    jaxcfr.solve(kuhn, iterations=100, callback=lambda state: seen.append(int(state.t)), every=40)
    assert seen == [40, 80, 100]


@pytest.mark.parametrize("yes", [np.bool_(True), jnp.array(True), True])
def test_any_kind_of_true_stops(kuhn, yes):
    assert int(jaxcfr.solve(kuhn, iterations=100, callback=lambda state: yes, every=10).t) == 10


def test_a_callback_that_returns_something_else_is_told(kuhn):
    with pytest.raises(errors.OptionError, match="callback"):
        jaxcfr.solve(kuhn, iterations=100, callback=lambda state: 0.1, every=10)


def test_the_iteration_counter_does_not_overflow(kuhn):
    state = jaxcfr.solve(kuhn, iterations=1)._replace(t=jnp.int32(2**31 - 5))
    with pytest.raises(errors.OptionError, match="32-bit"):
        jaxcfr.solve(kuhn, iterations=10, state=state)


def test_the_run_stops_at_the_target(kuhn):
    state = jaxcfr.solve(kuhn, jaxcfr.pcfr_plus(), 100_000, target_exploitability=1e-4, every=10)
    assert int(state.t) < 1000
    assert float(jaxcfr.exploitability(kuhn, jaxcfr.average_strategy(kuhn, state))) <= 1e-4


def test_a_warm_start_plays_the_profile_next(kuhn):
    equilibrium = jaxcfr.solve_lp(kuhn).strategy
    state = jaxcfr.state_from_profile(kuhn, equilibrium, jaxcfr.cfr_plus(), iterations=100)
    assert int(state.t) == 100
    for a, b in zip(jaxcfr.average_strategy(kuhn, state), equilibrium, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    for a, b in zip(jaxcfr.current_strategy(kuhn, state), equilibrium, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    warm = jaxcfr.solve(kuhn, jaxcfr.cfr_plus(), 1, state)
    cold = jaxcfr.solve(kuhn, jaxcfr.cfr_plus(), 101)
    gap = [float(jaxcfr.nash_conv(kuhn, jaxcfr.average_strategy(kuhn, s))) for s in (warm, cold)]
    assert gap[0] < gap[1] / 10


def test_a_warm_start_weights_its_past_as_iterations(kuhn):
    """t iterations of one strategy, then one of another: weights 1 + 2 + ... + t against t + 1 with CFR+."""
    uniform = jaxcfr.uniform_strategy(kuhn)
    state = jaxcfr.state_from_profile(kuhn, uniform, jaxcfr.cfr_plus(), iterations=9)
    state = jaxcfr.solve(kuhn, jaxcfr.cfr_plus(), 1, state)  # plays uniform once more
    for player, treeplex in zip(state.players, kuhn.treeplexes, strict=True):
        weights = treeplex.realization_weights(treeplex.uniform)[:-1]
        total = averages.total(player.average, kuhn.dtype) / jnp.exp2(state.weight.log2)
        np.testing.assert_allclose(total, weights * (55 / 10), rtol=1e-12)


def test_a_variant_of_ones_own(kuhn):
    state = jaxcfr.solve(kuhn, Hedge(), 3000)
    assert float(jaxcfr.exploitability(kuhn, jaxcfr.average_strategy(kuhn, state))) < 0.02


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variant": jaxcfr.vanilla}, r"call it, vanilla\(\)"),
        ({"variant": "cfr_plus"}, "regret variant"),
        ({"iterations": -1}, "from 0"),
        ({"iterations": 2.5}, "integer"),
        ({"iterations": True}, "integer"),
        ({"iterations": "10"}, "integer"),
        ({"iterations": None}, "integer"),
        ({"iterations": 10**30}, "integer"),
        ({"variant": jaxcfr.dcfr(gamma=np.ones(3))}, "vmap"),
        ({"variant": Unregistered()}, "register_dataclass"),
        ({"iterations": 2**31}, "2\\*\\*31"),
        ({"updates": "sideways"}, "alternating"),
        ({"every": 0, "callback": print}, "positive"),
        ({"target_exploitability": -1.0}, "target_exploitability"),
        ({"target_exploitability": float("nan")}, "target_exploitability"),
        ({"iterations": 3, "differentiable": True, "callback": print}, "differentiable"),
    ],
)
def test_wrong_arguments_are_named(kuhn, arguments, message):
    with pytest.raises(errors.OptionError, match=message):
        jaxcfr.solve(kuhn, **arguments)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Weighted(jaxcfr.RegretVariant):
    """CFR that multiplies regrets by a number."""

    weights: Any

    def update(self, state, r, t):
        (weight,) = jax.tree.leaves(self.weights)
        return state._replace(regret=state.regret + jnp.sum(weight) * r)


def test_a_variant_keeps_arrays_of_its_own_in_a_container(kuhn):
    """Weights of any shape are leaves that have gradients; a bare array would be a hyperparameter, to be swept."""
    plain = jaxcfr.solve(kuhn, jaxcfr.vanilla(), 5)
    state = jaxcfr.solve(kuhn, Weighted({"layer": jnp.array([0.25, 0.75])}), 5)
    for one, other in zip(state.players, plain.players, strict=True):
        np.testing.assert_allclose(one.strategy, other.strategy, atol=1e-12)
    with pytest.raises(errors.OptionError, match=r"weights of Weighted has shape \(2,\).*dict or tuple"):
        jaxcfr.solve(kuhn, Weighted(jnp.array([0.25, 0.75])), 5)


def test_a_lowered_game_in_the_place_of_its_tree(kuhn):
    lowered = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"))
    uniform = jaxcfr.uniform_strategy(kuhn)
    state = jaxcfr.solve(kuhn, iterations=1)
    for call in (
        lambda: jaxcfr.nash_conv(lowered, uniform),
        lambda: jaxcfr.exploitability(lowered, uniform),
        lambda: jaxcfr.expected_payoffs(lowered, uniform),
        lambda: jaxcfr.best_response(lowered, uniform, 0),
        lambda: jaxcfr.solve_lp(lowered),
        lambda: jaxcfr.uniform_strategy(lowered),
        lambda: jaxcfr.average_strategy(lowered, state),
        lambda: jaxcfr.current_strategy(lowered, state),
        lambda: jaxcfr.state_from_profile(lowered, uniform),
    ):
        with pytest.raises(errors.OptionError, match=r"pass its \.tree"):
            call()
    with pytest.raises(errors.OptionError, match="vmap"):
        jaxcfr.solve(jaxcfr.stack([kuhn, kuhn]), iterations=1)


def test_wrong_objects_are_named(kuhn, kuhn32):
    lowered = jaxcfr.lower(jaxcfr.load_game("matching_pennies"))
    with pytest.raises(errors.OptionError, match=r"pass its \.tree"):
        jaxcfr.solve(lowered)
    state = jaxcfr.solve(kuhn, jaxcfr.cfr_plus(), 2)
    with pytest.raises(errors.SolverError, match="another tree"):
        jaxcfr.solve(lowered.tree, jaxcfr.cfr_plus(), 2, state)
    with pytest.raises(errors.SolverError, match="another tree"):
        jaxcfr.average_strategy(lowered.tree, state)
    with pytest.raises(errors.SolverError, match="PredictedRegrets"):
        jaxcfr.solve(kuhn, jaxcfr.pcfr_plus(), 2, state)
    with pytest.raises(errors.SolverError, match="float32"):
        jaxcfr.solve(kuhn32, jaxcfr.cfr_plus(), 2, state)
    with pytest.raises(errors.SolverError, match="track_cce"):
        jaxcfr.solve(kuhn, jaxcfr.cfr_plus(), 2, state, track_cce=True)
    with pytest.raises(errors.SolverError, match="SolverState"):
        jaxcfr.average_strategy(kuhn, jaxcfr.uniform_strategy(kuhn))
    with pytest.raises(errors.SolverError, match="outside of jit"):
        jax.jit(lambda n: jaxcfr.solve(kuhn, iterations=n, callback=print))(3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: jaxcfr.dcfr(gamma=-1.0),
        lambda: jaxcfr.dcfr(gamma=float("inf")),
        lambda: jaxcfr.dcfr(gamma=1e300),
        lambda: jaxcfr.dcfr(alpha=10**400),
        lambda: jaxcfr.hs_dcfr(float("inf"), 100),
        lambda: jaxcfr.dcfr(alpha=float("nan")),
        lambda: jaxcfr.dcfr(alpha="1.5"),
        lambda: jaxcfr.dcfr(alpha=None),
        lambda: jaxcfr.dcfr(alpha=True),
        lambda: jaxcfr.dcfr_plus(offset=-1.0),
        lambda: jaxcfr.hs_dcfr(4.0, 100),
        lambda: jaxcfr.hs_dcfr(30.0, 0),
        lambda: jaxcfr.linear(0.0, 1.0, 0),
    ],
)
def test_hyperparameters_that_make_no_sense_are_refused(make):
    with pytest.raises(errors.OptionError):
        make()


@pytest.mark.parametrize("alpha", [-50.0, 0.0, 50.0, 1e6, float("inf")])
@pytest.mark.parametrize("beta", [-float("inf"), -50.0, 0.0, 50.0])
def test_extreme_discounts_stay_finite(kuhn32, alpha, beta):
    state = jaxcfr.solve(kuhn32, jaxcfr.dcfr(alpha, beta, 2.0), 100)
    kuhn32.check_strategy(jaxcfr.average_strategy(kuhn32, state))


def test_dropping_negative_regrets_is_cfr_plus(kuhn):
    """alpha to infinity keeps positive regrets whole, beta to minus infinity drops negative ones: CFR+ from t = 3 on.

    (The first discount is D(1, x) = 1/2 for every finite x, so the two agree up to a transient.)
    """
    limit = jaxcfr.solve(kuhn, jaxcfr.dcfr(float("inf"), -float("inf"), 1.0), 2000)
    assert float(jaxcfr.exploitability(kuhn, jaxcfr.average_strategy(kuhn, limit))) < 2e-4


def test_importing_changes_no_setting():
    script = (
        "import jax; before = dict(jax.config.values); import jaxcfr; "
        "changed = {k: v for k, v in jax.config.values.items() if before.get(k, v) != v}; "
        "assert not changed, changed; import sys; "
        "heavy = {'pyspiel', 'matplotlib', 'pandas', 'pgx'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
