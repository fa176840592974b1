"""Lower bounds on exploitability against the exact value, and the beliefs behind them against the tree."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_games import from_seed
from test_array_games import Countdown, TableGame, choice, leaf

import jaxcfr
from jaxcfr import LocalBestResponse, SampledBestResponse, exploitability_bound
from jaxcfr.array_play import as_policies, programs_of
from jaxcfr.bounds import _Local, _merge, _Table
from jaxcfr.errors import GameError, JaxCFRError, NotTwoPlayerConstantSumError, OptionError, StrategyError

UNIFORM = [jaxcfr.uniform_policy] * 2


def random_strategy(lowered: Any, rng: np.random.Generator) -> Any:
    return lowered.strategy([[rng.dirichlet(np.ones(len(a))) for a in actions] for actions in lowered.actions])


@pytest.fixture(scope="module")
def kuhn() -> Any:
    game: Any = jaxcfr.load_game("kuhn_poker")
    return game.array_game()


@pytest.mark.parametrize("method", [LocalBestResponse(64), SampledBestResponse(2000)], ids=["local", "sampled"])
def test_bounds_are_below_the_exact_value_and_near_it(kuhn: Any, method: Any) -> None:
    lowered = jaxcfr.lower(kuhn)
    for seed in range(3):
        strategy = random_strategy(lowered, np.random.default_rng(seed))
        exact = float(jaxcfr.exploitability(lowered.tree, strategy))
        best = np.asarray(jaxcfr.best_response_values(lowered.tree, strategy))
        policy = jaxcfr.table_policy(lowered, strategy)
        found = exploitability_bound(kuhn, [policy, policy], jax.random.key(seed), 1000, method)
        assert found.value <= exact + 4.5 * found.standard_error, seed
        assert found.value >= 0.7 * exact - 4.5 * found.standard_error, seed
        assert found.low < found.value < found.high
        # Player 1 has one decision in a play, so looking one action ahead is all there is to it.
        assert abs(found.responses[1] - best[1]) <= 4.5 * 2 / np.sqrt(1000)
        np.testing.assert_allclose(found.value, found.responses.sum() / 2)


def test_a_local_response_improves_on_its_rollout(kuhn: Any) -> None:
    """With a best response as rollout nothing is left to improve: the exact value."""
    lowered = jaxcfr.lower(kuhn)
    strategy = random_strategy(lowered, np.random.default_rng(5))
    responses = tuple(jaxcfr.best_response(lowered.tree, strategy, p).strategy for p in range(2))
    policy, rollout = (jaxcfr.table_policy(lowered, part) for part in (strategy, responses))
    found = exploitability_bound(
        kuhn, [policy, policy], jax.random.key(1), 4000, LocalBestResponse(rollout=rollout), confidence=0.99
    )
    assert abs(found.value - float(jaxcfr.exploitability(lowered.tree, strategy))) <= 4.5 * found.standard_error
    assert found.confidence == 0.99


class Silent(TableGame):
    """Tells players nothing between their decisions."""

    def infoset(self, state: Any, player: int) -> Any:
        return jnp.where(self.player(state) == player, super().infoset(state, player), -1)


@pytest.mark.parametrize(("seed", "between"), [(None, True), (None, False), (3, False), (8, False)])
def test_beliefs_are_the_distribution_over_an_information_set(kuhn: Any, seed: int | None, between: bool) -> None:
    """Chance's reach times the other's, against the tree; on random games sets span depths."""
    game = kuhn if seed is None else Silent(from_seed(seed, 2, max_nodes=80).node, 2)
    lowered = jaxcfr.lower(game)
    strategy = random_strategy(lowered, np.random.default_rng(seed))
    tree, histories = lowered.tree, lowered.tree.histories
    assert histories is not None
    policy = jaxcfr.table_policy(lowered, strategy)
    checked = 0
    for seat in range(2):
        table = _Table(game, programs_of(game), as_policies(game, [policy, policy]), seat, 1000)
        local = _Local(table, LocalBestResponse(between=between), jax.random.key(0))
        other = tree.treeplexes[1 - seat].realization_weights(strategy[1 - seat])
        reach = np.asarray(histories.chance_reach) * np.asarray(other)[np.asarray(histories.sequence[1 - seat])]
        here = np.asarray(histories.player) == seat
        rows = {row.tobytes(): number for number, row in enumerate(lowered.infosets.rows[seat])}  # type: ignore[union-attr]
        met = set()
        waiting = list(local.start.values())
        while waiting:
            belief = waiting.pop()
            _, found, weights = local._expand(belief)
            if len(weights):
                infoset = rows[belief.row]
                met.add(infoset)
                chances = reach[here & (np.asarray(histories.infoset) == infoset)]
                expected = np.sort(chances[chances > 0])
                np.testing.assert_allclose(np.sort(weights) / weights.sum(), expected / expected.sum(), rtol=1e-5)
                for action in np.flatnonzero(found.legal[0]):
                    waiting.extend(local._after(belief, int(action)).values())
            waiting.extend(belief.below.values())
        assert met == set(np.unique(np.asarray(histories.infoset)[here & (reach > 0)]).tolist())
        checked += len(met)
    assert checked >= 4


def test_what_players_see_but_do_not_recall_is_an_error() -> None:
    """Between its decisions this game shows a player the other's information set."""
    game = TableGame(from_seed(3, 2, "zero", max_nodes=80).node, 2)
    with pytest.raises(GameError, match=r"does not show in its information set.*between=False"):
        exploitability_bound(game, UNIFORM, jax.random.key(1), 1000, LocalBestResponse(8))
    lowered = jaxcfr.lower(game)
    exact = float(jaxcfr.exploitability(lowered.tree, jaxcfr.uniform_strategy(lowered.tree)))
    found = exploitability_bound(game, UNIFORM, jax.random.key(1), 1000, LocalBestResponse(64, between=False))
    assert found.value <= exact + 4.5 * found.standard_error


def test_what_was_learned_without_a_tree_is_bounded(kuhn: Any) -> None:
    """A sampled run as a policy: the strategy of its profile, with the bound below the exact exploitability."""
    run = jaxcfr.solve_game(kuhn, jaxcfr.cfr_plus(), 20, seed=1)
    lowered = jaxcfr.lower(kuhn)
    exact = float(jaxcfr.exploitability(lowered.tree, run.profile().to_strategy(lowered, missing="uniform")))
    policy = run.policy()
    found = exploitability_bound(kuhn, [policy, policy], jax.random.key(1), 2000, LocalBestResponse(64))
    assert found.value <= exact + 4.5 * found.standard_error
    by_profile = jaxcfr.table_policy(lowered, run.profile().to_strategy(lowered, missing="uniform"))
    plays = [jaxcfr.play_batch(kuhn, [who, who], jax.random.key(2), 512) for who in (policy, by_profile)]
    np.testing.assert_array_equal(*plays)
    with pytest.raises(OptionError, match=r"profile\(\)"):
        jaxcfr.solve_game(from_seed(1, 2, "zero", max_nodes=20), iterations=1).policy()


def test_equal_states_are_merged() -> None:
    states = (np.array([3, 1, 3, 1, 2], np.int8), np.array([[0.0, 1], [5, 5], [0, 1], [5, 6], [0, 1]]))
    first, weights = _merge(states, np.array([1.0, 2, 4, 8, 16]))
    merged = {(int(states[0][i]), *states[1][i].tolist()): w for i, w in zip(first, weights, strict=True)}
    assert merged == {(3, 0, 1): 5, (1, 5, 5): 2, (1, 5, 6): 8, (2, 0, 1): 16}


def test_beliefs_that_are_thinned_out_still_give_a_bound(kuhn: Any) -> None:
    lowered = jaxcfr.lower(kuhn)
    strategy = random_strategy(lowered, np.random.default_rng(2))
    policy = jaxcfr.table_policy(lowered, strategy)
    for most in (1, 3):
        method = LocalBestResponse(16, max_histories=most)
        found = exploitability_bound(kuhn, [policy, policy], jax.random.key(3), 500, method)
        exact = float(jaxcfr.exploitability(lowered.tree, strategy))
        assert found.value <= exact + 4.5 * found.standard_error


def test_the_same_key_gives_the_same_bound(kuhn: Any) -> None:
    for method in (LocalBestResponse(16), SampledBestResponse(300, batch=100)):
        first, again = (
            exploitability_bound(kuhn, UNIFORM, rng, 50, method) for rng in (jax.random.key(9), jax.random.PRNGKey(9))
        )
        assert first.value == again.value
        other = exploitability_bound(kuhn, UNIFORM, np.random.default_rng(1), 50, method)
        assert other.value != first.value


@pytest.mark.parametrize("spec", ["liars_dice(numdice=5)", "goofspiel"])
def test_games_too_large_for_any_tree(spec: str) -> None:
    game: Any = jaxcfr.load_game(spec)
    method: Any = SampledBestResponse(128, batch=64)
    if spec == "goofspiel":
        method = LocalBestResponse(4, max_histories=200)
    found = exploitability_bound(game.array_game(), UNIFORM, jax.random.key(1), 4, method)
    assert np.all(np.abs(found.responses) <= 1)
    assert np.isfinite([found.low, found.high]).all()


def test_refusals(kuhn: Any) -> None:
    key = jax.random.key(0)
    three: Any = jaxcfr.load_game("kuhn_poker(players=3)").array_game()  # type: ignore[attr-defined]
    general = TableGame(choice(0, "x", "ab", leaf(1, 1), leaf(0, 3)), 2)

    def broken(game: Any, state: Any, player: int) -> Any:
        return -game.legal_actions(state).astype(float)

    refused: list[tuple[type[JaxCFRError], str, Any]] = [
        (NotTwoPlayerConstantSumError, "3 players", lambda: exploitability_bound(three, [*UNIFORM, UNIFORM[0]], key)),
        (NotTwoPlayerConstantSumError, "sum to 2 as well", lambda: exploitability_bound(general, UNIFORM, key, 50)),
        (OptionError, r"game\.array_game\(\)", lambda: exploitability_bound(jaxcfr.load_game("kuhn_poker"), [], key)),
        (OptionError, "2 players, but 1", lambda: exploitability_bound(kuhn, UNIFORM[:1], key)),
        (OptionError, "at least 2", lambda: exploitability_bound(kuhn, UNIFORM, key, 1)),
        (OptionError, "LocalBestResponse or", lambda: exploitability_bound(kuhn, UNIFORM, key, 9, "local")),  # type: ignore[arg-type]
        (OptionError, "rollouts", lambda: exploitability_bound(kuhn, UNIFORM, key, 9, LocalBestResponse(0))),
        (OptionError, "batch", lambda: exploitability_bound(kuhn, UNIFORM, key, 9, SampledBestResponse(9, batch=0))),
        (
            OptionError,
            "exploration",
            lambda: exploitability_bound(kuhn, UNIFORM, key, 9, SampledBestResponse(9, exploration=-1.0)),
        ),
        (OptionError, "rollout has", lambda: exploitability_bound(kuhn, UNIFORM, key, 9, LocalBestResponse(9, "x"))),  # type: ignore[arg-type]
        (StrategyError, "no distribution", lambda: exploitability_bound(kuhn, [broken, broken], key, 9)),
        (GameError, "max_steps = 5", lambda: exploitability_bound(Countdown(50), UNIFORM, key, 30, max_steps=5)),
    ]
    for error, words, call in refused:
        with pytest.raises(error, match=words):
            call()
