"""Environments of pgx: a stand-in with its interface, always; pgx itself where it is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxcfr
from jaxcfr.array_play import ENDED
from jaxcfr.errors import ChanceNotEnumerableError, OptionError
from jaxcfr.interop import from_pgx

UNIFORM = [jaxcfr.uniform_policy] * 2


class State(NamedTuple):
    current_player: Any
    rewards: Any
    terminated: Any
    truncated: Any
    legal_action_mask: Any
    card: Any
    moves: Any


class StandIn:
    """Who begins is drawn, and a card of 0 to 3. Both guess its parity; a wrong guess costs 1, at once.

    With `draws` each guess draws another card, so `step` needs a key.
    """

    id = "stand_in"
    num_players = 2
    num_actions = 2

    def __init__(self, draws: bool) -> None:
        self.draws = draws

    def init(self, key: Any) -> State:
        who, card = jax.random.split(key)
        return State(
            current_player=jax.random.bernoulli(who).astype(jnp.int32),
            rewards=jnp.zeros(2, jnp.float32),
            terminated=jnp.zeros((), bool),
            truncated=jnp.zeros((), bool),
            legal_action_mask=jnp.ones(2, bool),
            card=jax.random.randint(card, (), 0, 4),
            moves=jnp.zeros((), jnp.int32),
        )

    def step(self, state: State, action: Any, key: Any = None) -> State:
        assert key is not None or not self.draws
        card = jax.random.randint(key, (), 0, 4) if self.draws else state.card
        cost = jnp.where(card % 2 == action, 0.0, 1.0)
        mine = jnp.arange(2) == state.current_player
        return state._replace(
            current_player=1 - state.current_player,
            rewards=jnp.where(mine, -cost, cost).astype(jnp.float32),
            terminated=state.moves == 1,
            card=card,
            moves=state.moves + 1,
        )

    def observe(self, state: State, player: Any) -> Any:
        shown = jnp.arange(4) == state.card
        return jnp.stack([shown, jnp.full(4, state.moves == 1), jnp.full(4, state.current_player == player)])


@pytest.mark.parametrize("draws", [False, True])
def test_an_environment_is_played(draws: bool) -> None:
    game = from_pgx(StandIn(draws))
    assert (game.name, game.num_players, game.num_actions, game.draws) == ("pgx:stand_in", 2, 2, draws)
    plays = jax.vmap(lambda key: jaxcfr.sample_play(game, UNIFORM, key))(jax.random.split(jax.random.key(1), 4000))
    assert np.all(np.asarray(plays.status) == ENDED)
    np.testing.assert_array_equal(plays.steps, 5 if draws else 3)
    payoffs = np.asarray(plays.payoffs)
    np.testing.assert_array_equal(payoffs.sum(1), 0)
    # Each guess is wrong with probability 1/2: payoffs -1, 0, 1 with 1/4, 1/2, 1/4.
    shares = [float((payoffs[:, 0] == value).mean()) for value in (-1, 0, 1)]
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.25], atol=4.5 * np.sqrt(0.25 / 4000))


def test_observations_are_information_sets_and_features() -> None:
    game = from_pgx(StandIn(False))
    root = game.init()
    assert not np.asarray(game.infoset(root, 0)).any()
    state = game.step(root, jnp.int32(7))
    shown = game.infoset(state, 1)
    assert shown.shape == (13,)
    assert shown.dtype == jnp.int32
    assert int(shown[0]) == 1
    assert game.features(shown, 1).dtype == jnp.float32
    np.testing.assert_array_equal(game.features(shown, 1), shown[1:])
    assert int(state.env.card) == int(np.flatnonzero(np.asarray(shown[1:5]))[0])

    class Coarse(StandIn):
        def observe(self, state: State, player: Any) -> Any:
            return super().observe(state, player).astype(jnp.float32) / 3

    floats = from_pgx(Coarse(False))
    row = np.asarray(floats.infoset(floats.step(floats.init(), jnp.int32(7)), 1))
    np.testing.assert_array_equal(
        row[1:].astype(np.int32).view(np.float32), np.asarray(shown[1:], np.float32) / np.float32(3)
    )
    np.testing.assert_array_equal(floats.features(jnp.asarray(row), 1), row[1:].astype(np.int32).view(np.float32))


def test_the_plain_game_of_an_environment() -> None:
    for draws in (False, True):
        root: Any = jaxcfr.as_game(from_pgx(StandIn(draws)))
        assert root.is_chance()
        assert root.chance_outcomes() is None
        rng = np.random.default_rng(3)
        outcome = root.sample_chance(rng)
        assert root.action_label(outcome) == str(outcome)
        first, again = (root.step(outcome).infoset_key(0) for _ in range(2))
        assert first == again  # an outcome is a seed: it can be replayed
        with pytest.raises(jaxcfr.errors.GameError, match="cannot be taken"):
            root.step(-1)
        payoffs = [jaxcfr.play_out(root, [jaxcfr.UniformPlayer()] * 2, rng) for _ in range(20)]
        assert {float(p[0]) for p in payoffs} <= {-1.0, 0.0, 1.0}
        assert not jaxcfr.validate_game(root, max_histories=40).complete


def test_what_needs_the_probabilities_of_chance_is_refused() -> None:
    game = from_pgx(StandIn(False))
    for call in (
        lambda: jaxcfr.lower(game),
        lambda: jaxcfr.lower(jaxcfr.as_game(game)),
        lambda: jaxcfr.solve_game(game, iterations=1),
        lambda: jaxcfr.exploitability_bound(game, UNIFORM, jax.random.key(0)),
    ):
        with pytest.raises(ChanceNotEnumerableError, match="can only be sampled"):
            call()
    with pytest.raises(OptionError, match=r"needs rng.*can only be sampled"):
        jaxcfr.head_to_head(jaxcfr.as_game(game), jaxcfr.UniformPlayer(), jaxcfr.UniformPlayer())


def test_a_sampled_best_response_needs_no_probabilities() -> None:
    """The card is shown, so a best response is never wrong, and wins 1/2 from uniform play: in both seats."""
    found = jaxcfr.exploitability_bound(
        from_pgx(StandIn(False)), UNIFORM, jax.random.key(4), 200, jaxcfr.SampledBestResponse(400, batch=50)
    )
    assert abs(found.value - 0.5) < 4.5 * found.standard_error
    assert found.low > 0.3


def test_an_environment_is_solved_play_by_play() -> None:
    """In Python, where chance may be sampled; the card is shown, so the average learns to say its parity."""
    run = jaxcfr.solve_game(jaxcfr.as_game(from_pgx(StandIn(False))), jaxcfr.cfr_plus(), 4, seed=2)
    profile = run.profile()
    for player, keys in enumerate(profile.infoset_keys):
        for key in keys:
            card = key[1:5].index(1)
            assert profile.average_strategy(player, key)[str(card % 2)] > 0.8
    payoffs = jaxcfr.play_out(run.game, [profile] * 2, np.random.default_rng(1), missing="uniform")
    assert payoffs.shape == (2,)


@pytest.mark.parametrize("what", [StandIn, 3, object()])
def test_what_is_no_environment_is_refused(what: Any) -> None:
    with pytest.raises(OptionError, match="from_pgx needs an environment"):
        from_pgx(what)


def test_pgx_is_imported_only_by_name() -> None:
    code = """
import sys, jaxcfr
assert "pgx" not in sys.modules
sys.modules["pgx"] = None
try:
    jaxcfr.interop.from_pgx("kuhn_poker")
except jaxcfr.errors.MissingPackageError as error:
    assert 'pip install "jaxcfr[pgx]"' in str(error)
else:
    raise SystemExit(1)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(importlib.util.find_spec("pgx") is None, reason="pgx is not installed")
class TestPgx:
    @pytest.mark.parametrize(
        "name", ["kuhn_poker", "leduc_holdem", "tic_tac_toe", "connect_four", "backgammon", "2048"]
    )
    def test_plays(self, name: str) -> None:
        game = from_pgx(name)
        policies = [jaxcfr.uniform_policy] * game.num_players
        plays = jax.jit(jax.vmap(lambda key: jaxcfr.sample_play(game, policies, key, max_steps=20_000)))(
            jax.random.split(jax.random.key(1), 8)
        )
        assert np.all(np.asarray(plays.status) == ENDED)
        payoffs = np.asarray(plays.payoffs)
        if game.num_players == 2:
            np.testing.assert_allclose(payoffs.sum(1), 0)
        assert game.draws == (name in ("backgammon", "2048"))

    def test_uniform_play_of_kuhn_poker_is_as_exploitable_as_it_is(self) -> None:
        """Exactly: half of what best responses in a seat drawn at random earn, (1/2 + 5/12) / 2."""
        found = jaxcfr.exploitability_bound(
            from_pgx("kuhn_poker"), UNIFORM, jax.random.key(1), 4000, jaxcfr.SampledBestResponse(20_000)
        )
        assert abs(found.value - 11 / 24) < 4.5 * found.standard_error

    def test_unknown_names(self) -> None:
        with pytest.raises(OptionError, match="no environment 'poker'"):
            from_pgx("poker")
