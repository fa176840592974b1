"""Lower bounds on exploitability of larger games, with programs that are optimised as users' are."""

from __future__ import annotations

from typing import Any

import jax
import pytest

import jaxcfr
from jaxcfr import LocalBestResponse, SampledBestResponse, exploitability_bound

UNIFORM = [jaxcfr.uniform_policy] * 2


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["liars_dice(numdice=5)", "goofspiel"])
def test_uniform_play_of_large_games_is_exploitable(spec: str) -> None:
    game: Any = jaxcfr.load_game(spec)
    found = exploitability_bound(game.array_game(), UNIFORM, jax.random.key(1), 40, LocalBestResponse(32))
    assert found.low > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("iterations", [0, 30])
def test_bounds_on_leduc(iterations: int) -> None:
    game: Any = jaxcfr.load_game("leduc_poker").array_game()  # type: ignore[attr-defined]
    lowered = jaxcfr.lower(game)
    tree = lowered.tree
    strategy = jaxcfr.average_strategy(tree, jaxcfr.solve(tree, jaxcfr.dcfr_plus(), iterations))
    exact = float(jaxcfr.exploitability(tree, strategy))
    policy = jaxcfr.table_policy(lowered, strategy)
    for method in (LocalBestResponse(), SampledBestResponse(20_000)):
        found = exploitability_bound(game, [policy, policy], jax.random.key(0), 1000, method)
        assert found.value <= exact + 4.5 * found.standard_error
        if not iterations:
            assert found.value > 0.75 * exact
