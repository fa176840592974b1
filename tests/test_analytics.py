"""Exact quantities at their edges: where they are not defined, known values, wrong input."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxcfr
from jaxcfr import errors


@pytest.fixture(scope="module")
def kuhn():
    return jaxcfr.lower(jaxcfr.load_game("kuhn_poker")).tree


@pytest.fixture(scope="module")
def kuhn3():
    return jaxcfr.lower(jaxcfr.load_game("kuhn_poker(players=3)")).tree


def test_uniform_kuhn_is_exploitable_by_eleven_twelfths(kuhn):
    uniform = jaxcfr.uniform_strategy(kuhn)
    np.testing.assert_allclose(jaxcfr.expected_payoffs(kuhn, uniform), [1 / 8, -1 / 8], rtol=1e-14)
    np.testing.assert_allclose(jaxcfr.best_response_values(kuhn, uniform), [1 / 2, 5 / 12], rtol=1e-14)
    np.testing.assert_allclose(jaxcfr.gains(kuhn, uniform), [3 / 8, 13 / 24], rtol=1e-14)
    np.testing.assert_allclose(jaxcfr.nash_conv(kuhn, uniform), 11 / 12, rtol=1e-14)
    np.testing.assert_allclose(jaxcfr.exploitability(kuhn, uniform), 11 / 24, rtol=1e-14)


def test_a_best_response_earns_its_value(kuhn):
    uniform = jaxcfr.uniform_strategy(kuhn)
    for player in (0, 1):
        response = jaxcfr.best_response(kuhn, uniform, player)
        played = tuple(response.strategy if p == player else uniform[p] for p in (0, 1))
        np.testing.assert_allclose(jaxcfr.expected_payoffs(kuhn, played)[player], response.value, rtol=1e-14)
        assert set(np.unique(response.strategy)) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kuhn_poker", -1 / 18),
        ("liars_dice(dice_sides=3)", 1 / 9),
        ("liars_dice(dice_sides=4)", 1 / 16),
        ("matching_pennies", 0.0),
        ("rock_paper_scissors", 0.0),
        ("leduc_poker(suit_isomorphism=True)", -0.085606424078),
    ],
)
def test_the_linear_program_finds_known_values(name, value):
    tree = jaxcfr.lower(jaxcfr.load_game(name)).tree
    solution = jaxcfr.solve_lp(tree)
    np.testing.assert_allclose(solution.value, [value, -value], atol=1e-9)
    assert float(jaxcfr.nash_conv(tree, solution.strategy)) < 1e-7


def test_exploitability_is_refused_where_it_is_not_defined(kuhn, kuhn3):
    with pytest.raises(errors.NotTwoPlayerConstantSumError, match="nash_conv"):
        jaxcfr.exploitability(kuhn3, jaxcfr.uniform_strategy(kuhn3))
    general = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), general_sum=True).tree
    with pytest.raises(errors.NotTwoPlayerConstantSumError, match="general-sum"):
        jaxcfr.exploitability(general, jaxcfr.uniform_strategy(general))
    with pytest.raises(errors.NotTwoPlayerConstantSumError):
        jaxcfr.solve_lp(general)
    with pytest.raises(errors.NotTwoPlayerConstantSumError):
        jaxcfr.solve(kuhn3, iterations=1, target_exploitability=0.1)
    np.testing.assert_allclose(jaxcfr.nash_conv(general, jaxcfr.uniform_strategy(general)), 11 / 12, rtol=1e-14)


def test_three_player_runs_approach_a_coarse_correlated_equilibrium(kuhn3):
    gaps = [
        float(jaxcfr.cce_gap(kuhn3, jaxcfr.solve(kuhn3, jaxcfr.cfr_plus(), n, track_cce=True)).gap)
        for n in (10, 100, 1000)
    ]
    assert gaps[2] < gaps[1] / 4 < gaps[0] / 8
    assert gaps[2] < 1e-3


def test_the_gap_needs_a_run_that_kept_track(kuhn):
    with pytest.raises(errors.SolverError, match="track_cce"):
        jaxcfr.cce_gap(kuhn, jaxcfr.solve(kuhn, iterations=3))
    with pytest.raises(errors.SolverError, match="at least one"):
        jaxcfr.cce_gap(kuhn, jaxcfr.solve(kuhn, iterations=0, track_cce=True))


@pytest.mark.parametrize("player", [-1, 2, True, 0.0, "0"])
def test_players_that_do_not_exist(kuhn, player):
    with pytest.raises(errors.OptionError, match="player"):
        jaxcfr.best_response(kuhn, jaxcfr.uniform_strategy(kuhn), player)


def test_payoffs_that_are_no_numbers_do_not_pass_for_an_equilibrium(kuhn):
    blocks = tuple(dataclasses.replace(b, values=(b.values[0] * jnp.nan,)) for b in kuhn.payoffs.blocks)
    broken = dataclasses.replace(kuhn, payoffs=dataclasses.replace(kuhn.payoffs, blocks=blocks))
    with pytest.raises(errors.AnalyticsError, match="negative"):
        jaxcfr.nash_conv(broken, jaxcfr.uniform_strategy(kuhn))


def test_analytics_work_inside_transformations(kuhn):
    uniform = jaxcfr.uniform_strategy(kuhn)
    np.testing.assert_allclose(jax.jit(jaxcfr.nash_conv)(kuhn, uniform), 11 / 12, rtol=1e-14)
    scales = jnp.array([1.0, 2.0])
    swept = jax.vmap(lambda s: jaxcfr.nash_conv(kuhn.with_payoffs(s * kuhn.terminal_payoffs), uniform))(scales)
    np.testing.assert_allclose(swept, 11 / 12 * scales, rtol=1e-14)


def test_counterfactual_reach_of_uniform_kuhn(kuhn):
    """First decisions are reached by chance alone (1/3 a card); each later one with the other's 1/2 besides."""
    first, second = jaxcfr.counterfactual_reach(kuhn, jaxcfr.uniform_strategy(kuhn))
    np.testing.assert_allclose(np.unique(np.round(np.asarray(first), 12)), np.round([1 / 6, 1 / 3], 12))
    np.testing.assert_allclose(np.unique(np.round(np.asarray(second), 12)), np.round([1 / 6], 12))


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker(players=3)"])
def test_a_constant_in_the_payoffs_only_moves_them(name):
    """Payoffs are stored relative to the middle of their range; what is reported is as they are."""
    tree = jaxcfr.lower(jaxcfr.load_game(name), general_sum=True).tree
    offset = jnp.array([7.0, -3.0, 100.0])[: tree.num_players]
    moved = tree.with_payoffs(tree.terminal_payoffs + offset)
    uniform = jaxcfr.uniform_strategy(tree)
    expected = jaxcfr.expected_payoffs(tree, uniform)
    np.testing.assert_allclose(jaxcfr.expected_payoffs(moved, uniform), expected + offset, rtol=1e-12)
    np.testing.assert_allclose(jaxcfr.nash_conv(moved, uniform), jaxcfr.nash_conv(tree, uniform), rtol=1e-12)
    reach = jaxcfr.counterfactual_reach(tree, uniform)
    before = jaxcfr.counterfactual_values(tree, uniform)
    after = jaxcfr.counterfactual_values(moved, uniform)
    for p in range(tree.num_players):
        np.testing.assert_allclose(after[p].actions, before[p].actions + offset[p] * reach[p], atol=1e-12)
        best = jaxcfr.counterfactual_best_response(moved, uniform, p)
        np.testing.assert_allclose(best.value, jaxcfr.best_response_values(tree, uniform)[p] + offset[p], rtol=1e-12)


def test_regret_matching_on_plain_arrays():
    np.testing.assert_allclose(jaxcfr.regret_matching([3.0, -1.0, 1.0]), [0.75, 0, 0.25])
    np.testing.assert_allclose(jaxcfr.regret_matching([-3.0, -1.0, 0.0]), [1 / 3] * 3)
    np.testing.assert_allclose(jaxcfr.regret_matching([5, 1, 3], [False, True, True]), [0, 0.25, 0.75])
    np.testing.assert_allclose(jaxcfr.regret_matching([-5.0, 1e-30], [True, False]), [1, 0])
    np.testing.assert_allclose(jaxcfr.regret_matching([1.0, 2.0], [False, False]), [0, 0])
    np.testing.assert_allclose(jaxcfr.regret_matching([[1.0, 3.0], [-1.0, -1.0]], axis=1), [[0.25, 0.75], [0.5, 0.5]])
    gradient = jax.grad(lambda r: jaxcfr.regret_matching(r)[0])(jnp.array([-1.0, -2.0]))
    assert np.all(np.isfinite(gradient))
    with pytest.raises(errors.OptionError, match="axis"):
        jaxcfr.regret_matching([1.0], axis=1)
