"""Sampling in a tree: unbiased estimates, convergence, randomness, wrong input."""

import functools
from fractions import Fraction as F
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_games import copied, forest, from_seed

import jaxcfr
from jaxcfr.traversal.full_tree import counterfactual_regrets

CASES = Path(__file__).parent / "cases"
SAMPLERS = {
    "external": jaxcfr.external_sampling(batch=64),
    "external, one walk": jaxcfr.external_sampling(batch=1),
    "chance": jaxcfr.chance_sampling(batch=64),
    "chance, 2 rolls": jaxcfr.chance_sampling(2, batch=64),
    "outcome": jaxcfr.outcome_sampling(batch=64),
    "outcome, other exploration": jaxcfr.outcome_sampling(0.9, batch=64),
}
QUICK = pytest.mark.usefixtures("quick_compilation")


@functools.partial(jax.jit, static_argnames=("player", "repeats"))
def moments(tree, traversal, player, strategy, sampling, repeats):
    """Mean and variance of the mean of sampled regrets, over `repeats` iterations with the same strategies."""

    def body(t, carry):
        first, second, sampling = carry
        regrets, sampling = traversal.regrets(tree, player, strategy, None, sampling, t)
        return first + regrets, second + regrets**2, sampling

    zeros = jnp.zeros_like(strategy[player])
    first, second, sampling = jax.lax.fori_loop(1, repeats + 1, body, (zeros, zeros, sampling))
    mean = first / repeats
    return mean, (second / repeats - mean**2) / (repeats - 1), sampling


def sampling_state(tree, traversal, seed=0):
    return jaxcfr.solve(tree, jaxcfr.vanilla(), 0, traversal=traversal, seed=seed).sampling


def random_strategy(tree, seed, zeros=0.3):
    rng = np.random.default_rng(seed)
    result = []
    for treeplex in tree.treeplexes:

        def rule(uniform, treeplex=treeplex):
            weights = rng.exponential(size=uniform.shape) * (rng.random(uniform.shape) > zeros) * (uniform > 0)
            total = weights.sum(0, keepdims=True)
            return jnp.where(total > 0, weights / np.where(total > 0, total, 1), uniform)

        result.append(treeplex.over_tables(rule, treeplex.uniform))
    return tuple(result)


def assert_unbiased(tree, traversal, strategy, repeats=200, seed=3):
    print("seed", seed)
    weights = tuple(t.realization_weights(s) for t, s in zip(tree.treeplexes, strategy, strict=True))
    for player in range(tree.num_players):
        exact = counterfactual_regrets(tree, player, weights, strategy[player])
        state = sampling_state(tree, traversal, seed)
        mean, variance, _ = moments(tree, traversal, player, strategy, state, repeats)
        error = np.abs(np.asarray(mean - exact))
        tolerance = 4 * np.sqrt(np.maximum(variance, 0)) + 1e-9 * np.abs(np.asarray(tree.terminal_payoffs)).max()
        assert np.all(error <= tolerance), (player, np.max(error / tolerance))
        assert np.all(np.asarray(mean)[np.asarray(tree.treeplexes[player].uniform) == 0] == 0)


@pytest.fixture(scope="module")
def many():
    return many_games()


def many_games():
    """Several games in one tree, so that each sampler is compiled once: handed cases and random games."""
    names = ["17a_kuhn", "29_implicit", "01_cross_depth", "03_two_moves_in_a_row", "21_ragged_negative"]
    cases = [copied(jaxcfr.load_game(str(CASES / f"{name}.efg")), name) for name in names]
    return jaxcfr.lower(forest([*cases, from_seed(1, 2, max_nodes=40), from_seed(5, 2, max_nodes=40)]))


@QUICK
@pytest.mark.parametrize("name", SAMPLERS)
def test_sampled_regrets_are_unbiased(many, name):
    """With all strategies held: handed cases, several moves in a row, sets across depths, random games."""
    tree = many.tree
    # The weights of outcome sampling have long tails: its standard errors need more samples.
    assert_unbiased(tree, SAMPLERS[name], random_strategy(tree, 5), 1000 if "outcome" in name else 200)


@QUICK
@pytest.mark.parametrize("name", ["external", "chance", "outcome"])
def test_the_mean_of_sampled_regrets_is_the_known_number(many, name):
    """Regret of the second action under uniform play; exact fractions that no program of ours has made."""
    known = [
        (0, 0, 1, F(1, 8)),
        (0, 1, 3, F(1, 24)),
        (0, 0, 2, F(-1, 12)),
        (0, 1, 6, F(1, 4)),
        (1, 0, 5, F(3, 8)),
        (1, 1, 5, F(3, 4)),
    ]
    tree, strategy, parts = many.tree, jaxcfr.uniform_strategy(many.tree), 7
    for player in range(2):
        state = sampling_state(tree, SAMPLERS[name], 1)
        mean, variance, _ = moments(tree, SAMPLERS[name], player, strategy, state, 200)
        for part, owner, infoset, exact in known:
            if owner != player:
                continue
            treeplex = tree.treeplexes[player]
            row = many.infoset_numbers[player][(part, infoset)]
            flat = int(treeplex.first[row] + treeplex.stride[row])
            # Each game of the forest comes up with the same probability.
            assert abs(float(mean[flat]) * parts - float(exact)) <= 4 * parts * float(np.sqrt(variance[flat]))
            assert float(variance[flat]) > 0
