"""Interior strategies: the bound holds at every information set, and the rounds end in an equilibrium."""

import numpy as np
import pytest
from random_games import from_seed

import jaxcfr
from jaxcfr import errors


def rows_of(lowered, strategy):
    return [row for player in range(lowered.tree.num_players) for row in lowered.probabilities(strategy, player)]


@pytest.mark.parametrize("gamma", [0, 0.02, 0.3, 1])
def test_every_action_keeps_gamma(gamma):
    for seed in range(3):
        lowered = jaxcfr.lower(from_seed(seed, 2))
        pure = jaxcfr.counterfactual_best_response(lowered.tree, jaxcfr.uniform_strategy(lowered.tree), 0).strategy
        strategy = (pure, jaxcfr.uniform_strategy(lowered.tree)[1])
        mixed = jaxcfr.perturb_uniform(strategy, gamma, lowered.tree)
        lowered.tree.check_strategy(mixed)
        for before, row in zip(rows_of(lowered, strategy), rows_of(lowered, mixed), strict=True):
            least = min(gamma, 1 / len(row))
            np.testing.assert_allclose(row, least + (1 - len(row) * least) * np.asarray(before), atol=1e-15)
            assert row.min() >= least - 1e-15
        profile = jaxcfr.perturb_uniform(jaxcfr.Profile.from_strategy(lowered, strategy), gamma)
        for a, b in zip(profile.to_strategy(lowered), mixed, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-15)


def test_rounds_end_in_an_equilibrium():
    lowered = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"))
    solution = jaxcfr.rtcfr_solve(lowered.tree, rounds=8, iterations=500)
    assert [round_.gamma for round_ in solution.rounds] == pytest.approx([0.05 * (1 - r / 8) for r in range(1, 9)])
    for round_ in solution.rounds:
        assert min(row.min() for row in rows_of(lowered, round_.strategy)) >= round_.gamma - 1e-12
    gaps = [round_.nash_conv for round_ in solution.rounds]
    assert gaps[-1] < 2e-3 < gaps[0]
    assert float(jaxcfr.expected_payoffs(lowered.tree, solution.strategy)[0]) == pytest.approx(-1 / 18, abs=2e-3)
    assert int(solution.state.t) == 4000
    state = jaxcfr.solve(lowered.tree, jaxcfr.cfr_plus(), 1500)
    average = jaxcfr.average_strategy(lowered.tree, state)
    mixed = jaxcfr.perturb_uniform(average, solution.rounds[2].gamma, lowered.tree)
    for a, b in zip(mixed, solution.rounds[2].strategy, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_wrong_is_said():
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker")).tree
    uniform = jaxcfr.uniform_strategy(tree)
    for call, words in [
        (lambda: jaxcfr.perturb_uniform(uniform, 0.1), "tree"),
        (lambda: jaxcfr.perturb_uniform(uniform, 1.5, tree), "between 0 and 1"),
        (lambda: jaxcfr.perturb_uniform(uniform, float("nan"), tree), "between 0 and 1"),
        (lambda: jaxcfr.perturb_uniform(uniform, "x", tree), "number"),
        (lambda: jaxcfr.rtcfr_solve(tree, 0), "rounds"),
        (lambda: jaxcfr.rtcfr_solve(tree, 2, 5, jaxcfr.constant(2.0)), "between 0 and 1"),
    ]:
        with pytest.raises(errors.OptionError, match=words):
            call()
