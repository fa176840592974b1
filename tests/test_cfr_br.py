"""CFR-BR against the NashConv that OpenSpiel publishes for its first iterations."""

import jax
import numpy as np
import pytest

import jaxcfr
from jaxcfr.errors import OptionError

PUBLISHED = {
    "kuhn_poker": [0.9166667, 0.3333333, 0.3194444, 0.2604167, 0.2266667],
    "leduc_poker": [4.747222, 4.006867, 3.409049, 2.898254, 2.536719],
}
"""NashConv of the average strategies after 1, 2, ... iterations: cfr_br_test.py of OpenSpiel."""


@pytest.mark.parametrize("spec", PUBLISHED)
def test_the_published_nash_conv(spec):
    tree = jaxcfr.lower(jaxcfr.load_game(spec), dtype="float64").tree
    found = []

    def watch(state):
        found.append(float(jaxcfr.nash_conv(tree, jaxcfr.average_strategy(tree, state))))

    jaxcfr.solve(tree, jaxcfr.vanilla(), 5, updates="best_response", callback=watch, every=1)
    np.testing.assert_allclose(found, PUBLISHED[spec], atol=6e-7)


def test_the_average_and_the_iterates_approach_an_equilibrium():
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker")).tree
    state, iterates = None, []
    for _ in range(50):
        state = jaxcfr.solve(tree, jaxcfr.cfr_plus(), 20, state, updates="best_response")
        iterates.append(float(jaxcfr.exploitability(tree, jaxcfr.current_strategy(tree, state))))
    assert float(jaxcfr.exploitability(tree, jaxcfr.average_strategy(tree, state))) < 0.005
    assert np.median(iterates[25:]) < 0.02


def test_it_runs_under_vmap_and_goes_on_from_a_state():
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker")).tree

    def final(alpha):
        state = jaxcfr.solve(tree, jaxcfr.dcfr(alpha, 0.0, 2.0), 10, updates="best_response")
        return jaxcfr.average_strategy(tree, state)

    swept = jax.vmap(final)(np.array([1.0, 1.5]))
    state = jaxcfr.solve(tree, jaxcfr.dcfr(1.5, 0.0, 2.0), 4, updates="best_response")
    state = jaxcfr.solve(tree, jaxcfr.dcfr(1.5, 0.0, 2.0), 6, state, updates="best_response")
    for found, expected in zip(swept, jaxcfr.average_strategy(tree, state), strict=True):
        np.testing.assert_allclose(found[1], expected, atol=1e-12)


def test_refusals():
    three = jaxcfr.lower(jaxcfr.load_game("kuhn_poker(players=3)")).tree
    with pytest.raises(OptionError, match="for two players, and this game has 3"):
        jaxcfr.solve(three, iterations=1, updates="best_response")
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker")).tree
    with pytest.raises(OptionError, match="track_cce"):
        jaxcfr.solve(tree, iterations=1, updates="best_response", track_cce=True)
    with pytest.raises(OptionError, match="full_tree"):
        jaxcfr.solve(tree, iterations=1, updates="best_response", traversal=jaxcfr.external_sampling())
    with pytest.raises(OptionError, match="whole tree"):
        jaxcfr.solve_game(jaxcfr.load_game("kuhn_poker"), iterations=1, updates="best_response")
    with pytest.raises(OptionError, match='"simultaneous" or "best_response"'):
        jaxcfr.solve(tree, iterations=1, updates="best")
