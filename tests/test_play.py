"""Playing: exact values met by sampled plays on every road, matches, refusals."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_games import from_seed
from test_array_games import Countdown, TableGame, choice, deal, leaf

import jaxcfr
from jaxcfr.array_play import NO_DISTRIBUTION, TOO_LONG, make_table
from jaxcfr.errors import GameError, JaxCFRError, OptionError, ProfileError, StrategyError
from jaxcfr.games.array_game import draw, features, one_hot
from jaxcfr.play import _play_tree, _reached

UNIFORM = (jaxcfr.uniform_policy, jaxcfr.uniform_policy)


@dataclasses.dataclass
class Case:
    """A game, lowered by its array game, and a strategy with exact payoffs."""

    game: Any
    arrays: Any
    lowered: Any
    strategy: Any
    profile: Any
    exact: np.ndarray


def solved(spec: str) -> Case:
    game: Any = jaxcfr.load_game(spec)
    arrays = game.array_game()
    lowered = jaxcfr.lower(arrays)
    strategy = jaxcfr.average_strategy(lowered.tree, jaxcfr.solve(lowered.tree, jaxcfr.cfr_plus(), 5))
    profile = jaxcfr.Profile.from_strategy(lowered, strategy)
    exact = np.asarray(jaxcfr.expected_payoffs(lowered.tree, strategy))
    return Case(game, arrays, lowered, strategy, profile, exact)


@pytest.fixture(scope="module")
def kuhn() -> Case:
    return solved("kuhn_poker")


@pytest.fixture(scope="module")
def kuhn3() -> Case:
    return solved("kuhn_poker(players=3)")


def assert_near(found: jaxcfr.Estimate, exact: np.ndarray, sigmas: float = 4.5) -> None:
    assert np.all(np.abs(found.mean - exact) <= sigmas * found.standard_error), (found, exact)


# Sampled payoffs against the exact ones.


def test_all_ways_of_playing_give_the_exact_payoffs(kuhn: Case, kuhn3: Case) -> None:
    for case, seed in ((kuhn, 1), (kuhn3, 2)):
        players = case.lowered.tree.num_players
        key = jax.random.key(seed)
        profiles = [case.profile] * players
        policies = [jaxcfr.table_policy(case.lowered, case.profile)] * players
        for game, who in ((case.lowered.tree, case.strategy), (case.lowered, profiles), (case.arrays, policies)):
            found = jaxcfr.expected_payoffs_sampled(game, who, key, 50_000)
            assert (found.n, found.confidence) == (50_000, 0.95)
            assert_near(found, case.exact)
            np.testing.assert_allclose(found.mean.sum(), 0, atol=1e-12)
        found = jaxcfr.expected_payoffs_sampled(case.game, profiles, np.random.default_rng(seed), 3_000)
        assert_near(found, case.exact)


def test_a_million_plays_of_leduc_are_one_call() -> None:
    lowered = jaxcfr.lower(jaxcfr.load_game("leduc_poker"))
    uniform = jaxcfr.uniform_strategy(lowered.tree)
    found = jaxcfr.expected_payoffs_sampled(lowered.tree, uniform, jax.random.key(3), 1_000_000)
    assert_near(found, np.asarray(jaxcfr.expected_payoffs(lowered.tree, uniform)))
    assert found.standard_error[0] < 0.005
    payoffs = jaxcfr.play_batch(lowered.tree, uniform, jax.random.key(3), 1_000_000)
    assert payoffs.shape == (1_000_000, 2)
    assert set(np.unique(payoffs)) <= set(np.unique(np.asarray(lowered.tree.terminal_payoffs)))


@pytest.mark.parametrize("seed", range(4))
def test_plays_on_random_trees(seed: int) -> None:
    """Several players, sets that span depths, wide and narrow histories, edges of probability 0."""
    game = from_seed(seed, 1 + seed % 3, max_nodes=200)
    lowered = jaxcfr.lower(game)
    rng = np.random.default_rng(seed)
    rows = [
        [rng.dirichlet(np.full(len(actions), 0.3)) * 1.0 for actions in per_player] for per_player in lowered.actions
    ]
    for per_player in rows:
        for row in per_player:
            if len(row) > 1 and rng.random() < 0.5:
                row[rng.integers(len(row))] = 0.0
                row /= row.sum()
    strategy = lowered.strategy(rows)
    found = jaxcfr.expected_payoffs_sampled(lowered.tree, strategy, rng, 20_000)
    assert_near(found, np.asarray(jaxcfr.expected_payoffs(lowered.tree, strategy)), 5)
    profile = jaxcfr.Profile.from_strategy(lowered, strategy)
    one_by_one = jaxcfr.expected_payoffs_sampled(game, [profile] * game.num_players, rng, 500)
    assert_near(one_by_one, np.asarray(jaxcfr.expected_payoffs(lowered.tree, strategy)), 5)


def test_edges_without_probability_are_never_taken() -> None:
    tiny = 1e-30
    children = [leaf(float(i), 0.0) for i in range(7)]
    lowered = jaxcfr.lower(TableGame(deal([0.0, 0.3, 0.0, 0.4, 0.3 - tiny, tiny, 0.0], *children), 2), dtype="float32")
    reached = np.asarray(_reached(lowered.tree, jaxcfr.uniform_strategy(lowered.tree)))[1:]
    assert reached[0] == 0
    assert reached[2] == reached[1]
    assert reached[6] == reached[5]
    payoffs = _play_tree(lowered.tree, jaxcfr.uniform_strategy(lowered.tree), jax.random.key(0), 50_000)[:, 0]
    counts = np.bincount(payoffs.astype(int), minlength=7)
    assert counts[[0, 2, 5, 6]].sum() == 0
    np.testing.assert_allclose(counts[[1, 3, 4]] / 50_000, [0.3, 0.4, 0.3], atol=0.01)


def test_draw_is_in_proportion_and_never_of_weight_zero() -> None:
    weights = jnp.asarray([0.0, 3.0, 0.0, 1.0, 0.0], jnp.float32)
    drawn = np.asarray(jax.vmap(draw, (0, None))(jax.random.split(jax.random.key(5), 40_000), weights))
    counts = np.bincount(drawn, minlength=5) / 40_000
    assert counts[[0, 2, 4]].sum() == 0
    assert abs(counts[1] - 0.75) < 4 * math.sqrt(0.75 * 0.25 / 40_000)


def test_the_interval_covers_as_often_as_it_says(kuhn: Case) -> None:
    covered = 0
    payoffs = jaxcfr.play_batch(kuhn.lowered, [kuhn.profile] * 2, jax.random.key(11), 400 * 100).reshape(400, 100, 2)
    for sample in payoffs:
        found = jaxcfr.play.estimate(sample, 0.9)
        covered += bool(found.low[0] <= kuhn.exact[0] <= found.high[0])
    assert abs(covered / 400 - 0.9) < 4.5 * math.sqrt(0.9 * 0.1 / 400)


def test_the_same_seed_gives_the_same_plays(kuhn: Case) -> None:
    profiles = [kuhn.profile] * 2
    for game in (kuhn.lowered, kuhn.game):
        first, again, other = (jaxcfr.play_batch(game, profiles, np.random.default_rng(seed), 50) for seed in (4, 4, 5))
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)
    key = jax.random.key(2)
    fewer, more = (jaxcfr.play_batch(kuhn.lowered, profiles, key, n) for n in (100, 128))
    np.testing.assert_array_equal(fewer, more[:100])
    for same in (jax.random.PRNGKey(2), 2):
        np.testing.assert_array_equal(jaxcfr.play_batch(kuhn.lowered, profiles, same, 128), more)


def test_another_number_of_plays_or_another_strategy_compiles_nothing(kuhn: Case) -> None:
    programs = jaxcfr.array_play.programs_of(kuhn.arrays)
    other = jaxcfr.uniform_strategy(kuhn.lowered.tree)
    key = jax.random.key(0)
    for n in (1000, 1024, 600):
        for strategy in (kuhn.strategy, other):
            jaxcfr.play_batch(kuhn.lowered.tree, strategy, key, n)
            jaxcfr.play_batch(kuhn.arrays, [jaxcfr.table_policy(kuhn.lowered, strategy)] * 2, key, n)
        if n == 1000:
            sizes = (jaxcfr.play._tree_plays._cache_size(), programs.plays._cache_size())  # type: ignore[attr-defined]
    assert sizes == (jaxcfr.play._tree_plays._cache_size(), programs.plays._cache_size())  # type: ignore[attr-defined]


# Games beyond enumeration.


@pytest.mark.parametrize(("spec", "longest"), [("goofspiel", 36), ("liars_dice(numdice=5)", 71)])
def test_large_games_are_played(spec: str, longest: int) -> None:
    game: Any = jaxcfr.load_game(spec)
    arrays = game.array_game()
    with pytest.raises(JaxCFRError, match="histories"):
        jaxcfr.lower(game)
    play = jax.jit(jax.vmap(lambda key: jaxcfr.sample_play(arrays, UNIFORM, key)))
    plays = play(jax.random.split(jax.random.key(1), 256))
    assert np.all(np.asarray(plays.status) == 0)
    assert np.all((np.asarray(plays.steps) > 10) & (np.asarray(plays.steps) <= longest))
    sampled = jaxcfr.expected_payoffs_sampled(arrays, UNIFORM, jax.random.key(2), 4096)
    walked = jaxcfr.expected_payoffs_sampled(game, [jaxcfr.UniformPlayer()] * 2, np.random.default_rng(3), 400)
    difference = np.hypot(sampled.standard_error, walked.standard_error)
    assert np.all(np.abs(sampled.mean - walked.mean) <= 4.5 * difference)
    if spec == "goofspiel":
        assert_near(sampled, np.zeros(2))  # the game is symmetric
        np.testing.assert_array_equal(np.asarray(plays.steps), 36)  # the last turn plays itself


def test_features_are_zeros_and_ones_and_tell_information_sets_apart() -> None:
    for spec in (
        "leduc_poker(ranks=2,suits=2)",
        "liars_dice(dice_sides=2)",
        "goofspiel(num_cards=3,imp_info=True)",
    ):
        game: Any = jaxcfr.load_game(spec).array_game()  # type: ignore[attr-defined]
        lowered = jaxcfr.lower(game)
        limits = game.infoset_limits()
        for player in range(2):
            rows = lowered.infosets.rows[player]  # type: ignore[union-attr]
            assert np.all((rows >= limits[:, 0]) & (rows <= limits[:, 1])), spec
            vectors = np.asarray(jax.vmap(lambda row, limits=limits: one_hot(row, limits))(rows))
            assert vectors.dtype == np.float32
            assert set(np.unique(vectors)) <= {0.0, 1.0}
            assert len(np.unique(vectors, axis=0)) == len(rows), spec
            # One by one, what stands for each number.
            row = rows[-1]
            alone = [one_hot(row[i : i + 1], limits[i : i + 1]) for i in range(len(row))]
            np.testing.assert_array_equal(vectors[-1], np.concatenate(alone))
    for name in ("goofspiel", "liars_dice(numdice=5)"):
        large: Any = jaxcfr.load_game(name).array_game()  # type: ignore[attr-defined]
        rows = jax.vmap(lambda _, game=large: game.infoset(game.init(), 1))(jnp.arange(3))
        assert jax.vmap(lambda row, game=large: features(game, row, 1))(rows).shape[0] == 3


@pytest.mark.parametrize(
    "options", ["num_cards=3", "num_cards=3,imp_info=True", "num_cards=3,players=3", "num_cards=4,num_turns=2"]
)
def test_features_of_goofspiel_say_of_each_card_where_it_went(options: str) -> None:
    game: Any = jaxcfr.load_game(f"goofspiel({options})").array_game()  # type: ignore[attr-defined]
    table: Any = jaxcfr.lower(game).infosets
    for player in range(game.num_players):
        rows = jnp.asarray(table.rows[player])
        vectors = np.asarray(jax.vmap(lambda row, player=player: features(game, row, player))(rows))
        assert len(np.unique(vectors, axis=0)) == len(rows)
        assert vectors.min() == 0
        assert vectors.max() == 1
    # Prize 2 was won by player 1 with 3 against 1, prize 3 is shown, and player 0 has bid 2.
    if options == "num_cards=3":
        row = jnp.asarray([1, 2, 3, 0, 1, 3, 0, 0, 0, 0], jnp.int8)
        first, second = np.float32(1) / 3, np.float32(2) / 3
        expected = [
            *(1, 0, 0, 2 / 6),  # who has bid, points
            *(0, 1, 1, 0, 0, 1, 0, first, second),  # prizes: shown, now, when
            *(0, 0, 0, 0, 0, 0, 0, 1, 0),  # prizes: nobody's, player 0's, player 1's
            *(1, 0, 0, first, 0, 0),  # cards of player 0: played, when
            *(0, 0, 1, 0, 0, first),  # cards of player 1
        ]
        np.testing.assert_allclose(features(game, row, 1), expected, atol=1e-6)


def test_features_without_limits_are_binary() -> None:
    row = jnp.asarray([-1, 5], jnp.int8)
    np.testing.assert_array_equal(one_hot(row, None), [1] * 8 + [1, 0, 1, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(one_hot(row, np.array([[-1, 1], [0, 100]])), [1, 0, 0, 1, 0, 1, 0, 0, 0, 0])
    assert features(Countdown(3), Countdown(3).infoset(Countdown(3).init(), 0), 0).shape == (
        8,
    )  # it has neither features nor limits


# Tables.


def test_table_policies_find_every_row_and_nothing_else() -> None:
    rng = np.random.default_rng(8)
    rows = np.unique(rng.integers(-3, 90, (3000, 3)).astype(np.int32), axis=0)
    weights = rng.random((len(rows), 4)).astype(np.float32)
    table = make_table([rows, rows[:0]], [weights, weights[:0]])

    class Rows:
        def infoset(self, state: Any, player: int) -> Any:
            return state

        def legal_actions(self, state: Any) -> Any:
            return jnp.asarray([True, False, True, True])

    ask = jax.jit(jax.vmap(lambda row: table(Rows(), row, 0)))
    np.testing.assert_array_equal(ask(rows), weights)
    strangers = np.setdiff1d(rng.integers(-3, 99, 5000), []).astype(np.int32)[:, None] * [1, 1, 1] + [100, 0, 0]
    np.testing.assert_array_equal(ask(strangers.astype(np.int32)), np.tile([1.0, 0, 1, 1], (len(strangers), 1)))
    np.testing.assert_array_equal(table(Rows(), jnp.asarray(rows[0]), 1), [1, 0, 1, 1])


def test_table_policies_are_not_for_other_games(kuhn: Case) -> None:
    leduc: Any = jaxcfr.load_game("leduc_poker").array_game()  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match=r"3 numbers.*3 actions, but leduc_poker has 11 and 6"):
        jaxcfr.play_batch(leduc, [jaxcfr.table_policy(kuhn.lowered, kuhn.strategy)] * 2, jax.random.key(1), 8)


# Matches and two profiles against each other.


def test_play_match_chains_plays_and_sums(kuhn: Case) -> None:
    seen = []

    def transition(last: Any, actions: tuple[Any, ...]) -> Any:
        node = kuhn.game
        for action in actions:
            node = node.step(action)
        assert node.terminal_returns() == last.terminal_returns()
        seen.append(last.terminal_returns())
        return kuhn.game if len(seen) < 7 else None

    total = jaxcfr.play_match(kuhn.game, [kuhn.profile] * 2, None, transition, np.random.default_rng(1))
    assert len(seen) == 7
    np.testing.assert_array_equal(total, np.sum(seen, axis=0))
    # From a history of the game: player 1 has bet, player 0 has the ace, so player 0 wins 1 or 2.
    seen = [0] * 6
    start = kuhn.game.step(2).step(0).step(0).step(1)
    total = jaxcfr.play_match(kuhn.game, [kuhn.profile] * 2, start, lambda *_: None, np.random.default_rng(1))
    assert total[0] in (-1.0, 2.0)
    with pytest.raises(GameError, match="max_plays = 20"):
        jaxcfr.play_match(
            kuhn.game, [kuhn.profile] * 2, None, lambda *_: kuhn.game, np.random.default_rng(1), max_plays=20
        )


def test_head_to_head_is_exact_where_it_can_be(kuhn: Case) -> None:
    uniform = jaxcfr.uniform_strategy(kuhn.lowered.tree)
    b = jaxcfr.Profile.from_strategy(kuhn.lowered, uniform)
    found = jaxcfr.head_to_head(kuhn.game, kuhn.profile, b)
    tree, a = kuhn.lowered.tree, kuhn.strategy
    by_seat = [
        jaxcfr.expected_payoffs(tree, (a[0], uniform[1]))[0],
        jaxcfr.expected_payoffs(tree, (uniform[0], a[1]))[1],
    ]
    np.testing.assert_allclose(found.by_seat, by_seat)
    np.testing.assert_allclose(found.value, np.mean(by_seat))
    assert (found.exact, found.standard_error, found.plays) == (True, 0.0, 0)
    against_itself = jaxcfr.head_to_head(kuhn.game, kuhn.profile, kuhn.profile)
    assert abs(against_itself.value) < 1e-15
    np.testing.assert_array_equal(
        jaxcfr.head_to_head(kuhn.game, kuhn.profile, jaxcfr.UniformPlayer()).by_seat, found.by_seat
    )

    class Coin:
        def act_stochastic(self, game: Any, player: int, rng: Any) -> Any:
            return int(rng.integers(2))

    for other in (b, Coin()):
        sampled = jaxcfr.head_to_head(kuhn.game, kuhn.profile, other, np.random.default_rng(2), 2000, max_nodes=9)
        assert (sampled.exact, sampled.plays) == (False, 4000)
        assert abs(sampled.value - found.value) < 4.5 * sampled.standard_error
    with pytest.raises(OptionError, match=r"rng.*max_nodes = 9"):
        jaxcfr.head_to_head(kuhn.game, kuhn.profile, b, max_nodes=9)
    with pytest.raises(OptionError, match=r"rng.*no Profile"):
        jaxcfr.head_to_head(kuhn.game, kuhn.profile, Coin())


def test_head_to_head_of_three_players(kuhn3: Case) -> None:
    uniform = jaxcfr.uniform_strategy(kuhn3.lowered.tree)
    b = jaxcfr.Profile.from_strategy(kuhn3.lowered, uniform)
    found = jaxcfr.head_to_head(kuhn3.game, kuhn3.profile, b)
    expected = [
        jaxcfr.expected_payoffs(
            kuhn3.lowered.tree, tuple(kuhn3.strategy[p] if p == seat else uniform[p] for p in range(3))
        )[seat]
        for seat in range(3)
    ]
    np.testing.assert_allclose(found.by_seat, expected)
    np.testing.assert_allclose(found.value, np.mean(expected))


def test_information_sets_that_a_profile_lacks(kuhn: Case) -> None:
    """They are an error unless they are said to be played uniformly; also where the game is lowered."""
    data = kuhn.profile.to_dict()
    dropped = data["players"][0].pop(0)
    data["tree"]["infosets"] = [len(sets) for sets in data["players"]]
    data["tree"]["sequences"][0] -= len(dropped["actions"])
    partial = jaxcfr.Profile.from_dict(data)
    rng = np.random.default_rng(1)
    with pytest.raises(ProfileError, match=f"player 0 has no strategy for the information set '{dropped['key']}'"):
        jaxcfr.play_batch(kuhn.game, [partial, partial], rng, 100)
    with pytest.raises(ProfileError, match=dropped["key"]):
        jaxcfr.play_batch(kuhn.lowered, [partial, partial], rng, 100)
    with pytest.raises(ProfileError, match=dropped["key"]):
        jaxcfr.head_to_head(kuhn.game, partial, kuhn.profile)
    data["players"][0].insert(0, {**dropped, "probabilities": [0.5, 0.5]})
    data["tree"]["infosets"][0] += 1
    data["tree"]["sequences"][0] += 2
    filled = jaxcfr.Profile.from_dict(data)
    for mine, theirs in zip(
        partial.to_strategy(kuhn.lowered, missing="uniform"), filled.to_strategy(kuhn.lowered), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    one, other = (jaxcfr.head_to_head(kuhn.game, who, kuhn.profile, missing="uniform") for who in (partial, filled))
    np.testing.assert_array_equal(one.by_seat, other.by_seat)
    plays = [
        jaxcfr.play_batch(kuhn.game, [who, who], np.random.default_rng(3), 200, missing="uniform")
        for who in (partial, filled)
    ]
    np.testing.assert_array_equal(*plays)
    empty = jaxcfr.Profile.from_dict(
        {**data, "players": [[], []], "tree": {**data["tree"], "infosets": [0, 0], "sequences": [1, 1]}}
    )
    for found, uniform in zip(
        empty.to_strategy(kuhn.lowered, missing="uniform"), jaxcfr.uniform_strategy(kuhn.lowered.tree), strict=True
    ):
        np.testing.assert_array_equal(found, uniform)


def test_array_games_with_wrong_shapes_are_refused_before_they_are_played() -> None:
    for member, value, words in (
        ("returns", lambda state: jnp.zeros(3), r"returns has to return floats \[2\]"),
        ("step", lambda state, action: (state.steps,), "same shapes and dtypes"),
        ("chance_probabilities", lambda state: None, "sample_chance"),
    ):
        game = Countdown(4)
        setattr(game, member, value)
        with pytest.raises(GameError, match=words):
            jaxcfr.play_batch(game, UNIFORM, jax.random.key(0), 4)


# What is refused.


class Endless(jaxcfr.Game):
    num_players = 1

    def is_terminal(self) -> bool:
        return False

    def is_chance(self) -> bool:
        return False

    def player_to_act(self) -> int:
        return 0

    def legal_actions(self) -> tuple[str, ...]:
        return ("on",)

    def step(self, action: Any) -> Endless:
        return self

    def infoset_key(self, player: int) -> str:
        return ""


class Cheat:
    def act_stochastic(self, game: Any, player: int, rng: Any) -> Any:
        return "raise"


def test_plays_that_do_not_end() -> None:
    with pytest.raises(GameError, match="max_steps = 10,000"):
        jaxcfr.play_out(Endless(), [jaxcfr.UniformPlayer()], np.random.default_rng(0))
    game = Countdown(100)
    onward = jax.tree_util.Partial(lambda game, state, player: jnp.asarray([0.0, 1.0]))  # type: ignore[no-untyped-call]
    with pytest.raises(GameError, match="max_steps = 50"):
        jaxcfr.play_batch(game, [onward, onward], jax.random.key(0), 10, max_steps=50)
    play = jaxcfr.sample_play(game, [onward, onward], jax.random.key(0), max_steps=50)
    assert (int(play.status), int(play.steps)) == (TOO_LONG, 50)
    assert np.isnan(np.asarray(play.payoffs)).all()
    play = jaxcfr.sample_play(game, [onward, onward], jax.random.key(0), max_steps=100)
    np.testing.assert_array_equal(play.payoffs, [100, -100])


@pytest.mark.parametrize("answer", [[0.0, 0.0], [-1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0, 5.0]])
def test_policies_that_give_no_distribution(answer: list[float]) -> None:
    game = TableGame(choice(0, "x", "abc"[: len(answer)], *[leaf(1, -1)] * len(answer)), 2)
    legal = np.arange(len(answer)) < 2
    game.legal_actions = lambda state: jnp.asarray(legal)  # type: ignore[method-assign]

    def policy(game: Any, state: Any, player: int) -> Any:
        return jnp.asarray(answer)

    with pytest.raises(StrategyError, match="no distribution"):
        jaxcfr.play_batch(game, [policy, policy], jax.random.key(0), 10)
    assert int(jaxcfr.sample_play(game, [policy, policy], jax.random.key(0)).status) == NO_DISTRIBUTION


def test_refusals(kuhn: Case, kuhn3: Case) -> None:
    rng, key = np.random.default_rng(0), jax.random.key(0)
    two = [kuhn.profile] * 2
    refused: list[tuple[type[Exception], str, Any]] = [
        (OptionError, "2 players, but 1 profiles", lambda: jaxcfr.play_out(kuhn.game, two[:1], rng)),
        (OptionError, "2 players, but 3 profiles", lambda: jaxcfr.play_out(kuhn.game, two + two[:1], rng)),
        (OptionError, "a list with one profile for each", lambda: jaxcfr.play_out(kuhn.game, kuhn.profile, rng)),  # type: ignore[arg-type]
        (OptionError, "2 players, but 3", lambda: jaxcfr.play_batch(kuhn.lowered, two + two[:1], rng, 5)),
        (OptionError, "2 players, but 1", lambda: jaxcfr.play_batch(kuhn.arrays, UNIFORM[:1], rng, 5)),
        (OptionError, "a list with one policy", lambda: jaxcfr.play_batch(kuhn.arrays, UNIFORM[0], rng, 5)),
        (OptionError, "table_policy", lambda: jaxcfr.play_batch(kuhn.arrays, two, rng, 5)),
        (OptionError, "numpy.random.default_rng", lambda: jaxcfr.play_out(kuhn.game, two, 7)),  # type: ignore[arg-type]
        (OptionError, "seed has to be", lambda: jaxcfr.play_batch(kuhn.lowered, two, "7", 5)),  # type: ignore[arg-type]
        (OptionError, "seed has to be", lambda: jaxcfr.play_batch(kuhn.lowered, two, -1, 5)),
        (OptionError, "2 keys", lambda: jaxcfr.play_batch(kuhn.lowered, two, jax.random.split(key), 5)),
        (OptionError, "n has to be a positive", lambda: jaxcfr.play_batch(kuhn.lowered, two, key, 0)),
        (OptionError, "n has to be a positive", lambda: jaxcfr.play_batch(kuhn.lowered, two, key, 2.5)),  # type: ignore[arg-type]
        (OptionError, "at least 2", lambda: jaxcfr.expected_payoffs_sampled(kuhn.lowered, two, key, 1)),
        (OptionError, "confidence", lambda: jaxcfr.expected_payoffs_sampled(kuhn.lowered, two, key, 9, confidence=95)),
        (OptionError, "max_steps", lambda: jaxcfr.play_out(kuhn.game, two, rng, max_steps=0)),
        (OptionError, "missing has to be", lambda: jaxcfr.play_out(kuhn.game, two, rng, missing="skip")),  # type: ignore[arg-type]
        (OptionError, "missing has to be", lambda: jaxcfr.play_batch(kuhn.lowered, two, key, 5, missing="x")),  # type: ignore[arg-type]
        (OptionError, "as_game", lambda: jaxcfr.play_out(kuhn.arrays, two, rng)),
        (OptionError, "load_game", lambda: jaxcfr.play_out("kuhn_poker", two, rng)),
        (OptionError, r"pass the \.tree", lambda: jaxcfr.play_batch(kuhn.lowered, kuhn.strategy, key, 5)),
        (OptionError, "act_stochastic", lambda: jaxcfr.play_out(kuhn.game, [kuhn.profile, "b"], rng)),  # type: ignore[list-item]
        (OptionError, "act_stochastic", lambda: jaxcfr.play_out(kuhn.game, [jaxcfr.UniformPlayer] * 2, rng)),  # type: ignore[list-item]
        (ProfileError, "3 players", lambda: jaxcfr.play_out(kuhn.game, [kuhn3.profile, kuhn.profile], rng)),
        (ProfileError, "no strategy", lambda: jaxcfr.play_out(jaxcfr.load_game("leduc_poker"), two, rng)),
        (GameError, "'raise'.*legal actions", lambda: jaxcfr.play_out(kuhn.game, [Cheat(), Cheat()], rng)),
        (StrategyError, "shape", lambda: jaxcfr.play_batch(kuhn.lowered.tree, kuhn3.strategy[:2], key, 5)),
        (
            StrategyError,
            r"player 0 has to return one number for each of the 3 actions.*shape \(5,\)",
            lambda: jaxcfr.play_batch(kuhn.arrays, [lambda game, state, player: jnp.ones(5)] * 2, key, 5),
        ),
        (
            StrategyError,
            "not str",
            lambda: jaxcfr.play_batch(kuhn.arrays, [lambda game, state, player: "call"] * 2, key, 5),
        ),
        (
            OptionError,
            "sample_play",
            lambda: jax.jit(lambda key: jaxcfr.play_batch(kuhn.lowered.tree, kuhn.strategy, key, 5))(key),
        ),
        (OptionError, "stacked", lambda: jaxcfr.play_batch(jaxcfr.stack([kuhn.lowered.tree] * 2), two, key, 5)),
        (OptionError, "array game", lambda: jaxcfr.table_policy(jaxcfr.lower(kuhn.game), kuhn.strategy)),
        (
            OptionError,
            "histories=True",
            lambda: jaxcfr.play_batch(jaxcfr.lower(kuhn.game, histories=False), two, key, 5),
        ),
    ]
    for error, words, call in refused:
        with pytest.raises(error, match=words):
            call()


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_standard_errors_of_extreme_payoffs(size: float) -> None:
    players = [jaxcfr.UniformPlayer(), jaxcfr.UniformPlayer()]
    one = jaxcfr.matrix_game([[1.0, -1.0], [-1.0, 0.5]])
    scaled = jaxcfr.matrix_game([[size, -size], [-size, size / 2]])
    expected, found = (jaxcfr.expected_payoffs_sampled(game, players, 0, 50) for game in (one, scaled))
    np.testing.assert_allclose(found.mean / size, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(found.standard_error / size, expected.standard_error, rtol=1e-12)
    rngs = [np.random.default_rng(0) for _ in range(2)]
    expected, found = (
        jaxcfr.head_to_head(game, *players, rng, 20, max_nodes=2) for game, rng in zip((one, scaled), rngs, strict=True)
    )
    assert found.standard_error / size == pytest.approx(expected.standard_error, rel=1e-12)
