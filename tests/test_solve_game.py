"""Sampling without a tree: on arrays, and history by history in Python."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_games import OnlySampled, Wrapped, copied

import jaxcfr
from jaxcfr import errors
from jaxcfr.regret.variants import VARIANTS
from jaxcfr.traversal import array_walks, table
from jaxcfr.traversal.full_tree import counterfactual_regrets

KUHN = jaxcfr.load_game("kuhn_poker")
solve_game_module = importlib.import_module("jaxcfr.solve_game")
_average = solve_game_module._average


@pytest.mark.parametrize("where", ["arrays", "host"])
@pytest.mark.parametrize("traversal", [jaxcfr.external_sampling(batch=32), jaxcfr.outcome_sampling(batch=32)])
def test_sampled_regrets_are_unbiased(where, traversal):
    """The first regrets of vanilla CFR, with all strategies uniform, against those of the tree."""
    lowered = jaxcfr.lower(KUHN)
    strategy = jaxcfr.uniform_strategy(lowered.tree)
    weights = tuple(
        treeplex.realization_weights(values) for treeplex, values in zip(lowered.tree.treeplexes, strategy, strict=True)
    )
    exact = {}
    for player in range(2):
        rows = lowered.probabilities(strategy, player)
        regrets = np.asarray(counterfactual_regrets(lowered.tree, player, weights, strategy[player]))
        treeplex = lowered.tree.treeplexes[player]
        for key, number in lowered.infoset_numbers[player].items():
            first, stride = int(treeplex.first[number]), int(treeplex.stride[number])
            exact[player, key] = regrets[first + stride * np.arange(len(rows[number]))]
    game = KUHN.array_game() if where == "arrays" else OnlySampled(KUHN)
    samples = {key: [] for key in exact}
    for seed in range(40 if where == "arrays" else 15):
        run = jaxcfr.solve_game(
            game, jaxcfr.vanilla(), 1, traversal=traversal, seed=seed, updates="simultaneous", capacity=64
        )
        profile = run.profile()
        regrets, owner = np.asarray(run.state.regrets.regret), np.asarray(run.state.table.owner)
        for player in range(2):
            rows = np.flatnonzero(owner == player)
            for row, key in zip(rows, profile.infoset_keys[player], strict=True):
                samples[player, key].append(regrets[row, :2])
    for key, rows in samples.items():
        rows = np.array(rows + [[0.0, 0.0]] * ((40 if where == "arrays" else 15) - len(rows)))
        error = np.abs(rows.mean(0) - exact[key])
        assert np.all(error <= 4 * rows.std(0, ddof=1) / np.sqrt(len(rows)) + 1e-12), key


@pytest.mark.parametrize("where", ["arrays", "host"])
def test_baselines_leave_the_mean_and_take_variance(where):
    """Regrets of one more iteration after two that learnt baselines, many times, against those of the tree."""
    lowered = jaxcfr.lower(KUHN)
    game = KUHN.array_game() if where == "arrays" else OnlySampled(KUHN)
    count, spread = 60 if where == "arrays" else 25, []
    for baseline in (None, jaxcfr.control_variate(1.0)):
        traversal = jaxcfr.outcome_sampling(0.5, batch=64, baseline=jaxcfr.control_variate(1.0))
        options = {"updates": "simultaneous", "capacity": 64}
        begun = jaxcfr.solve_game(game, jaxcfr.vanilla(), 2, traversal=traversal, seed=1, **options)
        profile = begun.profile()
        owner, strategy = np.asarray(begun.state.table.owner), np.asarray(begun.state.strategy)
        keys = [key for player in range(2) for key in profile.infoset_keys[player]]
        rows = [row for player in range(2) for row in np.flatnonzero(owner == player)]
        assert len(rows) == 12
        played = {key: strategy[row, :2] for key, row in zip(keys, rows, strict=True)}
        flat = []
        for player in range(2):
            values = np.array(jaxcfr.uniform_strategy(lowered.tree)[player])
            treeplex = lowered.tree.treeplexes[player]
            for key, number in lowered.infoset_numbers[player].items():
                first, stride = int(treeplex.first[number]), int(treeplex.stride[number])
                values[first + stride * np.arange(2)] = played[key]
            flat.append(jnp.asarray(values))
        weights = tuple(t.realization_weights(values) for t, values in zip(lowered.tree.treeplexes, flat, strict=True))
        exact = {}
        for player in range(2):
            regrets = np.asarray(counterfactual_regrets(lowered.tree, player, weights, flat[player]))
            treeplex = lowered.tree.treeplexes[player]
            for key, number in lowered.infoset_numbers[player].items():
                first, stride = int(treeplex.first[number]), int(treeplex.stride[number])
                exact[key] = regrets[first + stride * np.arange(2)]
        walk = jaxcfr.outcome_sampling(0.5, batch=16, baseline=baseline)
        samples = []
        for seed in range(count):
            state = begun.state._replace(key=jax.random.key(seed))
            after = jaxcfr.solve_game(game, jaxcfr.vanilla(), 1, begun._replace(state=state), traversal=walk, **options)
            samples.append(np.asarray(after.state.regrets.regret - begun.state.regrets.regret)[rows, :2])
        samples = np.array(samples)
        error = np.abs(samples.mean(0) - np.array([exact[key] for key in keys]))
        assert np.all(error <= 4 * samples.std(0, ddof=1) / np.sqrt(count) + 1e-12)
        spread.append(samples.var(0).sum())
    print("variance without and with baselines:", spread)
    assert spread[1] < 0.8 * spread[0]


def assert_same_bits(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_two_halves_equal_the_whole_to_the_bit():
    game, traversal = KUHN.array_game(), jaxcfr.external_sampling(batch=32)
    options = {"traversal": traversal, "capacity": 64}
    half = jaxcfr.solve_game(game, jaxcfr.vanilla(), 5, seed=3, **options)
    whole = jaxcfr.solve_game(game, jaxcfr.vanilla(), 10, seed=3, **options)
    assert_same_bits(jaxcfr.solve_game(game, jaxcfr.vanilla(), 5, half, **options).state, whole.state)
    other = jaxcfr.solve_game(game, jaxcfr.vanilla(), 10, seed=4, **options)
    assert np.any(np.asarray(other.state.strategy) != np.asarray(whole.state.strategy))


def test_it_converges_and_the_profile_fits_the_tree():
    lowered = jaxcfr.lower(KUHN)
    run = jaxcfr.solve_game(
        KUHN.array_game(), jaxcfr.dcfr(), 300, traversal=jaxcfr.external_sampling(batch=32), capacity=64
    )
    assert run.num_infosets == 12
    assert run.unvisited == 0
    profile = run.profile(variant=jaxcfr.dcfr(), seed=0)
    assert profile.iterations == 300
    assert float(jaxcfr.nash_conv(lowered.tree, profile.to_strategy(lowered))) < 0.06


def test_chance_that_can_only_be_sampled():
    game = OnlySampled(KUHN)
    with pytest.raises(errors.ChanceNotEnumerableError, match="only sampled"):
        jaxcfr.lower(game)
    traversal = jaxcfr.external_sampling(batch=8)
    run = jaxcfr.solve_game(game, jaxcfr.cfr_plus(), 60, traversal=traversal, seed=1)
    more = jaxcfr.solve_game(game, jaxcfr.cfr_plus(), 60, run, traversal=traversal)
    again = jaxcfr.solve_game(game, jaxcfr.cfr_plus(), 60, run, traversal=traversal)
    assert_same_bits(more.state, again.state)
    lowered = jaxcfr.lower(KUHN)
    assert float(jaxcfr.nash_conv(lowered.tree, more.profile().to_strategy(lowered))) < 0.2


@pytest.mark.parametrize("where", ["arrays", "host"])
@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
def test_the_average_of_three_players_is_weighted_by_own_reach(where, updates):
    """Against sums made from the strategies of each iteration, for a player that moves twice; weights t^2."""
    game = jaxcfr.load_game("kuhn_poker(players=3)")
    game = game.array_game() if where == "arrays" else copied(game)
    options = {"traversal": jaxcfr.external_sampling(batch=2), "updates": updates}
    variant = jaxcfr.dcfr(1.5, 0.5, 2.0)
    run = jaxcfr.solve_game(game, variant, 0, seed=2, capacity=64, **options)
    sums = {}
    for t in range(1, 8):
        before = run.state
        run = jaxcfr.solve_game(game, variant, 1, run, **options)
        state = run.state
        strategy, counts = np.asarray(before.strategy), np.isfinite(np.asarray(before.pulled))
        parent, actions = np.asarray(state.table.parent), state.average.shape[1]

        def reach(row, strategy=strategy, parent=parent, actions=actions):
            if parent[row] < 0:
                return 1.0
            above, action = divmod(int(parent[row]), actions)
            return reach(above) * strategy[above, action]

        # An information set counts from the first iteration on after which its player's walks came to it.
        for row in np.flatnonzero(counts):
            sums[row] = sums.get(row, 0) + t**2 * reach(row) * strategy[row]
    assert int(np.asarray(run.state.table.level).max()) == 1
    assert len(sums) > 20
    average = np.asarray(_average(run.state)[0])
    for row, total in sums.items():
        if total.sum() > 0:  # else its owner has never come there
            np.testing.assert_allclose(average[row], total / total.sum(), rtol=1e-9)


@pytest.mark.parametrize("name", ["vanilla", "dcfr", "linear_cfr", "dcfr_plus", "cfr_plus", "pdcfr_plus"])
def test_rows_that_no_walk_comes_to_make_up_for_it(name):
    """Sparse updates of a decision tree of three levels against updates of every row in every iteration."""
    variant = {
        **{key: value for key, value in VARIANTS.items() if not key.startswith("hs_")},
        "dcfr": lambda: jaxcfr.dcfr(1.2, 0.3, 2.0),
    }[name]()
    rng = np.random.default_rng(5)
    capacity, actions = 16, 3
    parent = np.array([-1, -1, 0, 1, 3, 4, 7, 8, 11, 6, 12, 13], np.int32)
    count = len(parent)
    level = np.zeros(capacity, np.int32)
    for row in range(count):
        level[row] = 0 if parent[row] < 0 else level[parent[row] // actions] + 1
    legal = np.zeros((capacity, actions), bool)
    legal[:count] = True
    legal[[2, 5], 1] = False
    empty = table.empty_table(capacity, 0, actions)
    keys = np.full((capacity, 2), -1, np.int32)
    keys[:count, 0], keys[:count, 1] = 0, parent
    filled = empty._replace(
        keys=jnp.asarray(keys),
        level=jnp.asarray(level),
        legal=table.packed(jnp.asarray(legal)),
        size=jnp.asarray(count, jnp.int32),
    )
    state = solve_game_module._state(filled, variant, actions, 0, jnp.float64)
    uniform = legal.T / np.maximum(legal.sum(1), 1)
    cumulative = np.where(legal.any(1)[:, None], np.cumsum(uniform.T, 1), 0)
    state = state._replace(cumulative=jnp.asarray(cumulative))

    stored, played = variant.init(jnp.zeros((actions, capacity))), uniform
    sums, met = np.zeros((actions, capacity)), np.zeros(capacity, bool)
    for t in range(1, 41):
        state = solve_game_module._begin_from_host(variant, state)
        rows = set()
        for row in rng.choice(count, rng.integers(0, 4), replace=False):
            while row not in rows:
                rows.add(int(row))
                row = row if parent[row] < 0 else parent[row] // actions
        ordered = sorted(rows, key=lambda row: (level[row], row))
        direct = np.zeros((capacity + 1) * actions)
        for row in ordered:
            direct[row * actions : row * actions + actions] = np.where(legal[row], rng.normal(size=actions), 0)
        ends = np.cumsum([sum(level[row] == deep for row in ordered) for deep in range(3)])
        ends = np.unique(ends[ends > 0])
        touched = array_walks.none_touched(capacity, solve_game_module.BLOCK)
        touched = touched._replace(
            rows=touched.rows.at[: len(ordered)].set(jnp.asarray(ordered, jnp.int32)) if ordered else touched.rows,
            ends=touched.ends.at[: len(ends)].set(jnp.asarray(ends, jnp.int32)) if ordered else touched.ends,
            stretches=np.int32(len(ends)),
            length=np.int32(len(ordered)),
        )
        walk = jaxcfr.external_sampling(batch=1)
        state = solve_game_module._update_from_host(variant, walk, state, touched, jnp.asarray(direct), ())
        state = solve_game_module._end_from_host(variant, state)

        # Every row, from the definitions.
        values = direct[:-actions].reshape(capacity, actions).copy()
        for row in sorted(range(count), key=lambda row: -level[row]):
            if parent[row] >= 0:
                values.reshape(-1)[parent[row]] += played[:, row] @ values[row]
        r = np.where(legal, values - (played.T * values).sum(1, keepdims=True), 0).T
        reach = np.ones(capacity)
        for row in range(count):
            reach[row] = 1 if parent[row] < 0 else reach[parent[row] // actions] * played.T.reshape(-1)[parent[row]]
        sums = sums * ((t - 1) / t) ** float(np.asarray(variant.gamma_at(jnp.asarray(float(t)))))
        sums = sums + np.where(met, reach * played, 0)
        after = variant.update(stored, jnp.asarray(r), jnp.asarray(float(t)))
        here = np.isin(np.arange(capacity), ordered)
        if name == "pdcfr_plus":  # what was not met keeps its prediction
            after = after._replace(prediction=jnp.where(here, after.prediction, stored.prediction))
        strategy = np.asarray(variant.strategy(after, jnp.asarray(uniform), jnp.asarray(float(t))))
        stored, played, met = after, np.where(here, strategy, played), met | here
        np.testing.assert_allclose(np.asarray(state.strategy)[:count].T, played[:, :count], atol=1e-9)
    assert met.sum() == count
    total = sums[:, :count].sum(0)
    average = np.asarray(_average(state)[0])[:count].T
    reached = total > 0
    assert reached.sum() >= 9
    np.testing.assert_allclose(average[:, reached], sums[:, :count][:, reached] / total[reached], rtol=1e-8)
    np.testing.assert_allclose(average[:, ~reached], uniform[:, :count][:, ~reached])


def test_a_full_table_says_so():
    with pytest.raises(errors.TableFullError, match="all 16 rows"):
        jaxcfr.solve_game(jaxcfr.load_game("leduc_poker").array_game(), iterations=5, capacity=16)
    with pytest.raises(errors.TableFullError, match="were met"):
        jaxcfr.solve_game(OnlySampled(jaxcfr.load_game("leduc_poker")), iterations=5, capacity=16)


def test_wrong_input():
    with pytest.raises(errors.OptionError, match="external_sampling"):
        jaxcfr.solve_game(KUHN, traversal=jaxcfr.full_tree())
    with pytest.raises(errors.OptionError, match="capacity"):
        jaxcfr.solve_game(KUHN, capacity=0)
    with pytest.raises(errors.OptionError, match="seed"):
        jaxcfr.solve_game(KUHN, seed=-1)
    for traversal in (
        jaxcfr.external_sampling(baseline=jaxcfr.control_variate()),
        jaxcfr.outcome_sampling(baseline=jaxcfr.control_variate(per_history=True)),
    ):
        with pytest.raises(errors.OptionError, match="need a tree"):
            jaxcfr.solve_game(KUHN, traversal=traversal)
    run = jaxcfr.solve_game(OnlySampled(KUHN), iterations=0)
    with pytest.raises(errors.SolverError, match="another game"):
        jaxcfr.solve_game(KUHN, iterations=1, run=run)


def test_rows_of_the_table_are_told_apart_by_all_of_their_key():
    """Many keys at once, with repetitions, into a table that they nearly fill; against a dictionary."""
    rng = np.random.default_rng(0)
    names = rng.integers(0, 9, (400, 3)).astype(np.int32)
    names[:, 0] %= 2
    keys = np.insert(names, 1, -1, axis=1)
    everyone = table.Met(keys, np.full((400, 1), 3, np.uint32), np.ones(400, bool))
    find = jax.jit(table.find, static_argnums=2)
    filled, row = find(table.empty_table(256, 2, 2), everyone, 2)
    names = [tuple(name) for name in names.tolist()]
    assert int(filled.size) == len(set(names))
    assert len(set(zip(names, np.asarray(row).tolist(), strict=True))) == len(set(names))
    np.testing.assert_array_equal(np.asarray(filled.keys)[row], keys)
    again, same = find(filled, everyone, 2)
    np.testing.assert_array_equal(row, same)
    assert int(again.size) == int(filled.size)
    assert int(again.forgetful) == -1
    keys[7, 1] = 5  # met after another sequence of its owner
    assert int(find(filled, everyone, 2)[0].forgetful) == int(row[7])


def test_searches_go_on_behind_the_first_window():
    """Marks that are all alike, as if all keys had the same hash."""
    original = table._hash
    keys = np.stack([np.zeros(40), np.full(40, -1), np.arange(40)], axis=1).astype(np.int32)
    everyone = table.Met(keys, np.ones((40, 1), np.uint32), np.ones(40, bool))
    table._hash = lambda keys: (jnp.zeros(len(keys), jnp.uint32), jnp.ones(len(keys), jnp.uint32))
    try:
        filled, row = table.find(table.empty_table(64, 1, 1), everyone, 1)
        assert sorted(np.asarray(row).tolist()) == list(range(40))
        np.testing.assert_array_equal(row, table.find(filled, everyone, 1)[1])
    finally:
        table._hash = original


@pytest.mark.parametrize("actions", [1, 7, 32, 70])
def test_sets_of_actions_as_bits(actions):
    legal = np.random.default_rng(actions).random((50, actions)) < 0.4
    legal[:, 0] |= ~legal.any(1)
    words = table.packed(jnp.asarray(legal))
    np.testing.assert_array_equal(table.unpacked(words, actions), legal.T)
    np.testing.assert_array_equal(table.counted(words), legal.sum(1))
    for index in range(legal.sum(1).min()):
        expected = [np.flatnonzero(row)[index] for row in legal]
        np.testing.assert_array_equal(table.nth(words, jnp.full(50, index, jnp.int32)), expected)
    running = array_walks.uniform_running(words, actions, jnp.float64)
    np.testing.assert_allclose(running, np.cumsum(legal / legal.sum(1, keepdims=True), 1).T, atol=1e-12)


class Broken(jaxcfr.ArrayGame):
    """Chance, then one move; broken in the way that is asked for."""

    num_players, num_actions, name = 1, 2, "broken"

    def __init__(self, how):
        self.how = how

    def init(self):
        return {"move": jnp.int32(0), "last": jnp.int32(0)}

    def player(self, state):
        over = -2 if self.how != "endless" else 0
        who = 0 if self.how != "player" else 3
        return jnp.where(state["move"] == 0, -1, jnp.where(state["move"] == 1, who, over))

    def legal_actions(self, state):
        none = (self.how == "actions") & (state["move"] == 1)
        fewer = (self.how == "mixed") & (state["move"] == 1) & (state["last"] == 1)
        return jnp.arange(2) < jnp.where(none, 0, jnp.where(fewer, 1, 2))

    def chance_probabilities(self, state):
        return jnp.array([0.5, 0.2 if self.how == "chance" else 0.5])

    def step(self, state, action):
        return {"move": state["move"] + 1, "last": action}

    def returns(self, state):
        return jnp.where(self.how == "payoff", jnp.nan, state["last"])[None].astype(float)

    def infoset(self, state, player):
        return jnp.stack([state["move"], state["last"] * 0])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("endless", "10,000 moves"),
        ("player", "neither a player"),
        ("actions", "no legal"),
        ("chance", "do not sum"),
        ("payoff", "not finite"),
        ("mixed", "has other legal actions"),
    ],
)
def test_broken_rules_are_told(how, message):
    traversal = jaxcfr.outcome_sampling(batch=1 if how == "endless" else 16)
    with pytest.raises(errors.GameError, match=f"broken: .*{message}"):
        jaxcfr.solve_game(Broken(how), iterations=1, traversal=traversal, capacity=2**15)


class Mixed(Wrapped):
    """Kuhn poker in which a player may only bet with one of the cards, but does not see which it has."""

    def legal_actions(self):
        actions = self.inner.legal_actions()
        return actions[:1] if str(self.inner.infoset_key(self.inner.player_to_act()))[0] == "2" else actions

    def infoset_key(self, player):
        return str(self.inner.infoset_key(player))[1:]


class Nobody(Wrapped):
    """Kuhn poker in which a player acts who does not exist."""

    def player_to_act(self):
        return 7


@pytest.mark.parametrize(("broken", "message"), [(Mixed, "has the actions"), (Nobody, "player_to_act")])
def test_broken_rules_of_plain_games_are_told_with_the_path(broken, message):
    traversal = jaxcfr.external_sampling(batch=16)
    with pytest.raises(errors.GameError, match=rf"wrapped: at .*{message}"):
        jaxcfr.solve_game(broken(KUHN), iterations=3, traversal=traversal)


def test_a_run_goes_on_with_what_it_stores_only_and_outside_of_transformations():
    traversal = jaxcfr.external_sampling(batch=2)
    run = jaxcfr.solve_game(KUHN, jaxcfr.dcfr(), 0, traversal=traversal, capacity=16)
    with pytest.raises(errors.SolverError, match="stores other things"):
        jaxcfr.solve_game(KUHN, jaxcfr.pcfr_plus(), 1, run, traversal=traversal)
    with pytest.raises(errors.SolverError, match="outside of jit and vmap"):
        jax.vmap(lambda seed: jaxcfr.solve_game(KUHN, iterations=1, seed=seed, traversal=traversal).state.average)(
            jnp.arange(2)
        )


def test_exploration_stays_in_range():
    falling = jaxcfr.outcome_sampling(jaxcfr.linear(0.5, -0.5, 10), batch=2)
    tree = jaxcfr.lower(KUHN).tree
    for run in (
        lambda: jaxcfr.solve(tree, jaxcfr.dcfr(), 10, traversal=falling),
        lambda: jaxcfr.solve_game(KUHN, jaxcfr.dcfr(), 10, traversal=falling),
    ):
        with pytest.raises(errors.OptionError, match=r"exploration has to be .* at t = 10"):
            run()


def test_the_horizon_of_schedules():
    with pytest.raises(errors.HorizonError, match="t = 20"):
        jaxcfr.solve_game(KUHN, jaxcfr.hs_cfr_plus(15, 20), 21)
