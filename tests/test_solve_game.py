"""Sampling without a tree: on arrays, and history by history in Python."""

import jax
import numpy as np
import pytest
from random_games import copied

import jaxcfr
from jaxcfr import errors
from jaxcfr.traversal import table
from jaxcfr.traversal.full_tree import counterfactual_regrets

pytestmark = pytest.mark.usefixtures("quick_compilation")
KUHN = jaxcfr.load_game("kuhn_poker")


class OnlySampled(jaxcfr.Game):
    """A game whose chance can only be sampled."""

    def __init__(self, game):
        self.game = game
        self.num_players = game.num_players
        self.name = "only sampled"

    def is_terminal(self):
        return self.game.is_terminal()

    def is_chance(self):
        return self.game.is_chance()

    def player_to_act(self):
        return self.game.player_to_act()

    def legal_actions(self):
        return self.game.legal_actions()

    def terminal_returns(self):
        return self.game.terminal_returns()

    def infoset_key(self, player):
        return self.game.infoset_key(player)

    def action_label(self, action):
        return self.game.action_label(action)

    def chance_outcomes(self):
        return None

    def sample_chance(self, rng):
        return self.game.sample_chance(rng)

    def step(self, action):
        return OnlySampled(self.game.step(action))

    def array_game(self):
        return None


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
        regrets, owner = np.asarray(run.state.regrets.regret).T, np.asarray(run.state.table.owner)
        for player in range(2):
            rows = np.flatnonzero(owner == player)
            for row, key in zip(rows, profile.infoset_keys[player], strict=True):
                samples[player, key].append(regrets[row, :2])
    for key, rows in samples.items():
        rows = np.array(rows + [[0.0, 0.0]] * ((40 if where == "arrays" else 15) - len(rows)))
        error = np.abs(rows.mean(0) - exact[key])
        assert np.all(error <= 4 * rows.std(0, ddof=1) / np.sqrt(len(rows)) + 1e-12), key


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


def test_the_average_of_three_players_is_weighted_by_own_reach():
    """Against sums made from the strategies of each iteration, for a player that moves twice."""
    game = copied(jaxcfr.load_game("kuhn_poker(players=3)"))
    traversal = jaxcfr.external_sampling(batch=4)
    run = jaxcfr.solve_game(game, jaxcfr.vanilla(), 0, traversal=traversal, seed=2)
    sums = {}
    for _ in range(6):
        before = np.asarray(run.state.strategy)
        run = jaxcfr.solve_game(game, jaxcfr.vanilla(), 1, run, traversal=traversal)
        infosets = run.infosets

        def probabilities(row, before=before, infosets=infosets):
            count = len(infosets.actions[row])
            known = row < len(before) and before[row].sum() > 0
            return before[row, :count] if known else np.full(count, 1 / count)

        def reach(row, infosets=infosets, probabilities=probabilities):
            above, action = infosets.parent[row]
            return 1.0 if above < 0 else reach(above) * probabilities(above)[action]

        average = np.asarray(run.state.average)
        for row in range(len(infosets.owner)):
            # What comes in the iteration where a set is first met may or may not count.
            first = average[row, : len(infosets.actions[row])]
            sums[row] = sums[row] + reach(row) * probabilities(row) if row in sums else first
    assert max(run.infosets.level) == 1
    for row, total in sums.items():
        np.testing.assert_allclose(average[row, : len(total)], total, rtol=1e-9)


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
    run = jaxcfr.solve_game(OnlySampled(KUHN), iterations=0)
    with pytest.raises(errors.SolverError, match="another game"):
        jaxcfr.solve_game(KUHN, iterations=1, run=run)


def test_rows_of_the_table_are_told_apart_by_all_of_their_key():
    """Many keys at once, with repetitions, into a table that they nearly fill; against a dictionary."""
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 9, (400, 2)).astype(np.int32)
    owner = rng.integers(0, 2, 400).astype(np.int32)
    legal = np.ones((400, 2), bool)
    everyone = table.Met(keys, owner, np.full(400, -1, np.int32), legal, np.ones(400, bool))
    filled, row = jax.jit(table.find)(table.empty_table(256, 2, 2), everyone)
    names = list(zip(owner.tolist(), keys[:, 0].tolist(), keys[:, 1].tolist(), strict=True))
    assert int(filled.size) == len(set(names))
    assert len(set(zip(names, np.asarray(row).tolist(), strict=True))) == len(set(names))
    np.testing.assert_array_equal(np.asarray(filled.keys)[row], keys)
    again, same = jax.jit(table.find)(filled, everyone)
    np.testing.assert_array_equal(row, same)
    assert int(again.size) == int(filled.size)
