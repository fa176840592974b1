"""Runs under `vmap`, whose axis comes last inside the loop: each must be the run it would have been alone."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_games import from_seed

import jaxcfr
from jaxcfr.tree import layout, payoffs

GAMMAS = np.array([0.0, 1.0, 3.0])


def lowered(name: str) -> jaxcfr.GameTree:
    return jaxcfr.lower(jaxcfr.load_game(name)).tree


def assert_alike(together: Any, alone: list[Any], tolerance: float = 1e-9) -> None:
    for number, one in enumerate(alone):
        for mine, theirs in zip(jax.tree.leaves(together), jax.tree.leaves(one), strict=True):
            np.testing.assert_allclose(mine[number], theirs, rtol=0, atol=tolerance)


def strategy_after(tree: jaxcfr.GameTree, variant: Any, iterations: int = 70, **options: Any) -> Any:
    return jaxcfr.average_strategy(tree, jaxcfr.solve(tree, variant, iterations, **options))


@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
@pytest.mark.parametrize(
    "name", ["kuhn_poker", "kuhn_poker(players=3)", "goofspiel(num_cards=3)", "liars_dice(dice_sides=3)"]
)
def test_a_sweep_over_hyperparameters(name, updates):
    tree = lowered(name)

    def run(gamma):
        return strategy_after(tree, jaxcfr.dcfr_plus(1.5, gamma), updates=updates)

    assert_alike(jax.vmap(run)(GAMMAS), [run(gamma) for gamma in GAMMAS])


@pytest.mark.parametrize(
    "variant",
    [
        jaxcfr.vanilla(),
        jaxcfr.cfr_plus(),
        jaxcfr.dcfr(),
        jaxcfr.pcfr_plus(),
        jaxcfr.pdcfr_plus(),
        jaxcfr.hs_dcfr(9, 99),
    ],
    ids=lambda variant: type(variant).__name__,
)
def test_a_sweep_over_payoffs(variant):
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), general_sum=True).tree

    def run(scale):
        scaled = tree.with_payoffs(jnp.asarray(tree.terminal_payoffs).at[3].multiply(scale))
        return strategy_after(scaled, variant)

    scales = np.array([0.5, 1.0, 2.0])
    assert_alike(jax.vmap(run)(scales), [run(scale) for scale in scales])


def test_runs_of_different_lengths_and_pasts():
    """Each lane stops at its own end, and settles its sums at its own times: the same bits as in any other batch."""
    tree = lowered("kuhn_poker")
    variant = jaxcfr.pdcfr_plus()
    pasts, lengths = np.array([0, 5, 63, 64, 130]), np.array([70, 0, 1, 130, 5])
    states = [jaxcfr.solve(tree, variant, past) for past in pasts.tolist()]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    together = jax.vmap(lambda state, length: jaxcfr.solve(tree, variant, length, state))(stacked, lengths)
    assert np.array_equal(together.t, pasts + lengths)
    alone = [jaxcfr.solve(tree, variant, int(n), state) for n, state in zip(lengths, states, strict=True)]
    assert_alike(together, alone)
    assert_alike(
        jax.vmap(lambda length: jaxcfr.solve(tree, variant, length))(lengths),
        [jaxcfr.solve(tree, variant, int(n)) for n in lengths],
    )


def test_a_sweep_goes_on():
    """Twice 50 is 100 for a batch too, whose t is an array by then."""
    tree = lowered("kuhn_poker")

    def variant(gamma):
        return jaxcfr.dcfr(1.5, 0.5, gamma)

    first = jax.vmap(lambda gamma: jaxcfr.solve(tree, variant(gamma), 50))(GAMMAS)
    assert first.t.shape == (3,)
    second = jax.vmap(lambda gamma, state: jaxcfr.solve(tree, variant(gamma), 50, state))(GAMMAS, first)
    once = jax.vmap(lambda gamma: jaxcfr.solve(tree, variant(gamma), 100))(GAMMAS)
    assert all(map(np.array_equal, jax.tree.leaves(second), jax.tree.leaves(once)))


def test_a_sweep_in_chunks():
    """For batches that would not fit: `lax.map` runs chunks of `vmap`, the last one smaller."""
    tree = lowered("kuhn_poker")

    def run(gamma):
        return strategy_after(tree, jaxcfr.dcfr_plus(1.5, gamma), 20)

    chunks = jax.jit(lambda gammas: jax.lax.map(run, gammas, batch_size=2))(GAMMAS)
    assert_alike(chunks, [run(gamma) for gamma in GAMMAS])


def test_nested_sweeps_and_out_axes():
    tree = lowered("kuhn_poker")

    def run(alpha, gamma):
        return strategy_after(tree, jaxcfr.dcfr_plus(alpha, gamma), 20)

    alphas = np.array([1.0, 2.0])
    together = jax.vmap(jax.vmap(run, (None, 0)), (0, None), out_axes=1)(alphas, GAMMAS)
    for p, values in enumerate(together):
        for i, alpha in enumerate(alphas):
            for j, gamma in enumerate(GAMMAS):
                np.testing.assert_allclose(values[j, i], run(alpha, gamma)[p], atol=1e-9)


def test_stacked_trees_and_the_gap_to_a_coarse_correlated_equilibrium():
    """Whole trees in a batch take the axis first; so do games of three players, whose payoffs are entries."""
    tree = jaxcfr.lower(from_seed(7, 3)).tree
    trees = [tree, tree.with_payoffs(-tree.terminal_payoffs)]

    def run(tree):
        state = jaxcfr.solve(tree, jaxcfr.cfr_plus(), 40, track_cce=True)
        return jaxcfr.average_strategy(tree, state), jaxcfr.cce_gap(tree, state)

    assert_alike(jax.vmap(run)(jaxcfr.stack(trees)), [run(tree) for tree in trees])

    def swept(gamma):
        state = jaxcfr.solve(tree, jaxcfr.dcfr_plus(1.5, gamma), 40, track_cce=True)
        return jaxcfr.average_strategy(tree, state), jaxcfr.cce_gap(tree, state)

    assert_alike(jax.vmap(swept)(GAMMAS), [swept(gamma) for gamma in GAMMAS])


@pytest.mark.parametrize("what", ["large blocks", "scanned levels"])
def test_other_layouts(what, monkeypatch):
    if what == "large blocks":
        monkeypatch.setattr(payoffs, "SMALL_BLOCK", 0)
    else:
        monkeypatch.setattr(layout, "UNROLLED_LEVELS", 0)
    jax.clear_caches()
    tree = lowered("liars_dice(dice_sides=2)")

    def run(gamma):
        return strategy_after(tree, jaxcfr.dcfr_plus(1.5, gamma))

    together, alone = jax.vmap(run)(GAMMAS), [run(gamma) for gamma in GAMMAS]
    jax.clear_caches()
    assert_alike(together, alone)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Normed(jaxcfr.RegretVariant):
    """Looks at all regrets at once, as a rule of one's own may: its batches must not be mixed."""

    scale: Any = 1.0

    def update(self, state, r, t):
        return state._replace(regret=state.regret + self.scale * r / (1 + jnp.abs(r).max()))


def test_a_variant_that_is_not_elementwise():
    tree = lowered("kuhn_poker")
    assert not Normed.elementwise
    scales = np.array([0.5, 1.0, 40.0])
    run = jax.jit(lambda scale: strategy_after(tree, Normed(scale), 30))
    assert_alike(jax.vmap(run)(scales), [run(scale) for scale in scales])


def test_derivatives_of_a_sweep():
    """Forward mode goes through the batched loop, reverse mode through the loop of static length."""
    tree = lowered("kuhn_poker")

    def value(alpha, differentiable):
        variant = jaxcfr.dcfr(alpha, 0.5, 2.0)
        strategy = jaxcfr.average_strategy(tree, jaxcfr.solve(tree, variant, 6, differentiable=differentiable))
        return jaxcfr.expected_payoffs(tree, strategy)[0]

    alphas = np.array([0.7, 1.5, 2.5])
    forward = jax.vmap(lambda alpha: jax.jvp(lambda a: value(a, False), (alpha,), (1.0,))[1])(alphas)
    backward = jax.vmap(jax.grad(lambda alpha: value(alpha, True)))(alphas)
    step = 1e-6
    differences = [(value(a + step, False) - value(a - step, False)) / (2 * step) for a in alphas]
    assert np.any(np.abs(differences) > 1e-5)
    np.testing.assert_allclose(forward, differences, atol=1e-7)
    np.testing.assert_allclose(backward, differences, atol=1e-7)
