"""Sampling in a tree: unbiased estimates, convergence, randomness, wrong input."""

import functools
from fractions import Fraction as F
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_games import OnlySampled, Wrapped, copied, forest, from_seed

import jaxcfr
from jaxcfr import errors
from jaxcfr.traversal import baselines, outcome, pruning, randomness, walks
from jaxcfr.traversal.full_tree import counterfactual_regrets
from jaxcfr.traversal.sampling import _cumulative, _probabilities
from jaxcfr.tree.fusion import kept_apart
from jaxcfr.tree.moves import private_chance

CASES = Path(__file__).parent / "cases"
SAMPLERS = {
    "external": jaxcfr.external_sampling(batch=64),
    "external, one walk": jaxcfr.external_sampling(batch=1),
    "external, baselines": jaxcfr.external_sampling(batch=64, baseline=jaxcfr.control_variate()),
    "external, baselines by history": jaxcfr.external_sampling(
        batch=64, baseline=jaxcfr.control_variate(per_history=True)
    ),
    "chance": jaxcfr.chance_sampling(batch=64),
    "chance, 2 rolls": jaxcfr.chance_sampling(2, batch=64),
    "public chance": jaxcfr.chance_sampling(batch=8, public=True),
    "outcome": jaxcfr.outcome_sampling(batch=64),
    "outcome, baselines": jaxcfr.outcome_sampling(batch=64, baseline=jaxcfr.control_variate()),
    "outcome, baselines by history": jaxcfr.outcome_sampling(
        batch=64, baseline=jaxcfr.control_variate(per_history=True)
    ),
    "outcome, other exploration": jaxcfr.outcome_sampling(0.9, batch=64),
}


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

        def rule(uniform, weights):
            weights = weights * (uniform > 0)
            total = weights.sum(0, keepdims=True)
            return jnp.where(total > 0, weights / jnp.where(total > 0, total, 1), uniform)

        weights = rng.exponential(size=treeplex.size) * (rng.random(treeplex.size) > zeros)
        result.append(treeplex.over_tables(rule, treeplex.uniform, jnp.asarray(weights, tree.dtype)))
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


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampled_regrets_are_unbiased(many, name):
    """With all strategies held: handed cases, several moves in a row, sets across depths, random games."""
    tree = many.tree
    # The weights of outcome sampling have long tails: its standard errors need more samples.
    assert_unbiased(tree, SAMPLERS[name], random_strategy(tree, 5), 1000 if "outcome" in name else 200)


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


def assert_same_bits(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize("name", ["external", "outcome"])
def test_runs_split_into_parts_are_the_same_bits_and_converge(name):
    lowered = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), dtype="float32")
    tree, traversal = lowered.tree, SAMPLERS[name]

    def run(iterations, state=None, seed=7):
        return jaxcfr.solve(tree, jaxcfr.dcfr(), iterations, state, traversal=traversal, seed=seed)

    whole = run(200)
    assert_same_bits(run(100, run(100)), whole)
    assert_same_bits(run(200, seed=jax.random.key(7)), whole)
    other = run(200, seed=8)
    assert np.any(np.asarray(other.players[0].strategy) != np.asarray(whole.players[0].strategy))
    gap = float(jaxcfr.nash_conv(tree, jaxcfr.average_strategy(tree, whole)))
    assert gap < {"external": 0.03, "outcome": 0.2}[name]
    assert int(whole.sampling.visited) > 200 * 64 * 2 * 3
    # A run may go on with the whole tree.
    full = jaxcfr.solve(tree, jaxcfr.dcfr(), 10, whole)
    assert int(full.t) == 210


@pytest.mark.parametrize(
    "variant",
    [jaxcfr.vanilla(), jaxcfr.cfr_plus(), jaxcfr.linear_cfr(), jaxcfr.dcfr_plus(), jaxcfr.pcfr_plus()],
    ids=lambda variant: type(variant).__name__,
)
def test_external_sampling_converges_with_every_kind_of_variant(variant):
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), dtype="float32").tree
    state = jaxcfr.solve(tree, variant, 300, traversal=SAMPLERS["external"], seed=1)
    assert float(jaxcfr.nash_conv(tree, jaxcfr.average_strategy(tree, state))) < 0.1


def test_draws_are_uniform_and_all_differ():
    """Streams of walks, of branches and of later draws: no two alike, and flat by a chi-squared test."""
    seed = randomness.words(jax.random.key(3), jnp.int32(1), 0)
    streams = [randomness.streams(seed, jnp.arange(20_000))]
    streams += [randomness.after_branch(streams[0], jnp.full(20_000, action)) for action in range(3)]
    streams += [randomness.after_draw(streams[0])]
    words = np.concatenate([np.asarray(stream) for stream in streams])
    # Of n random 32-bit numbers about n^2 / 2^33 pairs agree.
    assert len(np.unique(words)) >= len(words) - 12
    for dtype in (jnp.float32, jnp.float64):
        u = np.concatenate([np.asarray(randomness.uniform(seed, stream, dtype)) for stream in streams])
        assert u.min() >= 0
        assert u.max() < 1
        counts = np.histogram(u, 64, (0, 1))[0]
        expected = len(u) / 64
        assert ((counts - expected) ** 2 / expected).sum() < 63 + 5 * np.sqrt(2 * 63)
    first, second = (np.asarray(randomness.uniform(seed, stream, jnp.float64)) for stream in (streams[0], streams[4]))
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(20_000)
    # Other iterations and players have other words, and no key is used twice.
    keys = [randomness.words(jax.random.key(3), jnp.int32(t), p) for t in range(1, 60) for p in range(3)]
    assert len({(int(a), int(b)) for a, b in keys}) == len(keys)


@pytest.mark.parametrize("name", ["external", "outcome, baselines", "chance"])
def test_no_key_is_used_twice(name):
    """In whole solves that go on."""
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), dtype="float32").tree
    with jax.debug_key_reuse(True):
        state = jaxcfr.solve(tree, jaxcfr.dcfr(), 2, traversal=SAMPLERS[name], seed=jax.random.key(4))
        assert int(jaxcfr.solve(tree, jaxcfr.dcfr(), 2, state, traversal=SAMPLERS[name]).t) == 4


def test_prefix_sums():
    rng = np.random.default_rng(0)
    for count in (1, 31, 32, 33, 1024, 1025, 5000):
        values = rng.integers(0, 9, count).astype(np.int32)
        np.testing.assert_array_equal(walks.prefix_sums(jnp.asarray(values)), np.cumsum(values))


def test_odd_games():
    """A terminal root, chance only, one player: no sampler stumbles over them."""
    for case in ("09_terminal_root", "10_chance_only", "11_one_player"):
        tree = jaxcfr.lower(jaxcfr.load_game(str(CASES / f"{case}.efg"))).tree
        for name in ("external", "chance", "outcome"):
            state = jaxcfr.solve(tree, jaxcfr.vanilla(), 3, traversal=SAMPLERS[name])
            tree.check_strategy(jaxcfr.average_strategy(tree, state))


@pytest.mark.parametrize("case", ["19b_deep_12", pytest.param("19a_deep_5000", marks=pytest.mark.slow)])
def test_deep_games(case):
    deep = jaxcfr.lower(jaxcfr.load_game(str(CASES / f"{case}.efg"))).tree
    state = jaxcfr.solve(deep, jaxcfr.cfr_plus(), 2, traversal=jaxcfr.external_sampling(batch=4))
    assert int(state.sampling.visited) > 0


def test_wrong_input():
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker")).tree
    for make, match in (
        (lambda: jaxcfr.external_sampling(batch=0), "batch"),
        (lambda: jaxcfr.external_sampling(batch=2.5), "batch"),
        (lambda: jaxcfr.chance_sampling(0), "chance_samples"),
        (lambda: jaxcfr.outcome_sampling(0.0), "exploration"),
        (lambda: jaxcfr.outcome_sampling(float("nan")), "exploration"),
        (lambda: jaxcfr.solve(tree, traversal=jaxcfr.external_sampling), "call it"),
        (lambda: jaxcfr.solve(tree, traversal=jaxcfr.external_sampling(), seed=1.5), "seed"),
        (lambda: jaxcfr.solve(tree, traversal=jaxcfr.external_sampling(), differentiable=True), "gradient"),
    ):
        with pytest.raises(errors.OptionError, match=match):
            make()
    bare = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), histories=False).tree
    with pytest.raises(errors.OptionError, match="histories=True"):
        jaxcfr.solve(bare, traversal=jaxcfr.external_sampling())


def values_of_histories(tree, strategy, player):
    """What every history is worth to a player under a strategy, relative to the payoffs' offset; history by history."""
    histories = tree.histories
    count, first, actor = (np.asarray(a) for a in (histories.num_children, histories.first_child, histories.player))
    probability = np.asarray(histories.chance).copy()
    for p, values in enumerate(strategy):
        for node in np.flatnonzero(actor == p):
            children = first[node] + np.arange(count[node])
            probability[children] = np.asarray(values)[np.asarray(histories.sequence[p])[children]]
    worth = np.zeros(tree.num_histories)
    leaves = np.asarray(histories.terminal) >= 0
    worth[leaves] = np.asarray(tree.terminal_payoffs - tree.payoffs.offset)[:, player]
    for node in range(tree.num_histories - 1, 0, -1):
        worth[np.asarray(histories.parent)[node]] += probability[node] * worth[node]
    return worth


def test_exact_baselines_leave_no_variance_in_the_root_value_of_external_sampling(many):
    tree = many.tree
    strategy = random_strategy(tree, 5)
    cumulative, probabilities = _cumulative(tree, strategy), _probabilities(tree, strategy)
    for player in range(2):
        treeplex, worth = tree.treeplexes[player], jnp.asarray(values_of_histories(tree, strategy, player))

        def sample(t, worth, player=player, treeplex=treeplex):
            seed = randomness.words(jax.random.key(5), t, player)
            centred = baselines.centre(tree, player, worth, probabilities, True)
            direct = walks.Walker(tree, player, False, 1, seed, cumulative, centre=centred).run(1).values

            def rule(values, played):
                value = (values * played).sum(0)
                return value, values - value

            regrets, value = treeplex.fold(direct, rule, strategy[player])
            return value, regrets

        many_samples = jax.jit(lambda t, worth, sample=sample: jax.lax.map(lambda t: sample(t, worth), t))
        value, regrets = many_samples(jnp.arange(1, 101), worth)
        plain_value, plain_regrets = many_samples(jnp.arange(1, 101), jnp.zeros_like(worth))
        np.testing.assert_allclose(value, worth[0], atol=1e-9)
        assert np.var(np.asarray(plain_value)) > 1e-3
        assert np.asarray(regrets).var(0).sum() < np.asarray(plain_regrets).var(0).sum()


def test_learnt_baselines_by_history_lower_the_variance_of_external_sampling():
    """Kuhn poker, an equilibrium-like strategy; the baselines are learnt in 200 iterations before."""
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker")).tree
    strategy = jaxcfr.average_strategy(tree, jaxcfr.solve(tree, jaxcfr.dcfr(), 50))
    spread = []
    for baseline in (None, jaxcfr.control_variate(1.0, per_history=True)):
        traversal = jaxcfr.external_sampling(batch=64, baseline=baseline)
        _, _, state = moments(tree, traversal, 0, strategy, sampling_state(tree, traversal), 200)
        state = state._replace(key=jax.random.key(11))  # else the same draws as those that were learnt from
        _, variance, _ = moments(tree, traversal, 0, strategy, state, 200)
        spread.append(200 * float(variance.sum()))
    print("variance of the regrets without and with baselines:", spread)
    assert spread[1] < 0.95 * spread[0]


def test_exact_baselines_leave_no_variance_in_the_root_value(many):
    """With the value of every history under the strategies played as its baseline; and regrets vary less."""
    tree = many.tree
    strategy = random_strategy(tree, 5)
    for player in range(2):
        worth = values_of_histories(tree, strategy, player)

        def sample(t, baseline, player=player):
            seed = randomness.words(jax.random.key(5), t, player)
            vectors = _cumulative(tree, strategy), _probabilities(tree, strategy)
            episodes = outcome.Episodes(tree, player, seed, *vectors, jnp.asarray(0.6), baseline, True)
            direct = episodes.run(1)[0]
            treeplex = tree.treeplexes[player]

            def rule(values, played):
                value = (values * played).sum(0)
                return value, values - value

            regrets, value = treeplex.fold(direct, rule, strategy[player])
            return value, regrets

        many_samples = jax.jit(jax.vmap(sample, in_axes=(0, None)))
        numbers = jnp.arange(1, 201)
        value, regrets = many_samples(numbers, jnp.asarray(worth))
        plain_value, plain_regrets = many_samples(numbers, jnp.zeros(tree.num_histories))
        np.testing.assert_allclose(value, worth[0], atol=1e-9)
        assert np.var(np.asarray(plain_value)) > 1e-3
        assert np.asarray(regrets).var(0).sum() < 0.7 * np.asarray(plain_regrets).var(0).sum()


def test_probabilistic_pruning_saves_work_and_still_converges():
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), dtype="float32").tree

    def run(pruning, iterations, state=None):
        traversal = jaxcfr.external_sampling(batch=64, pruning=pruning)
        return jaxcfr.solve(tree, jaxcfr.linear_cfr(), iterations, state, traversal=traversal, seed=1)

    plain, pruned = run(None, 400), run(jaxcfr.probabilistic_pruning(50), 400)
    assert int(pruned.sampling.visited) < 0.95 * int(plain.sampling.visited)
    assert float(jaxcfr.nash_conv(tree, jaxcfr.average_strategy(tree, pruned))) < 0.05
    # With nothing to prune it is the same run.
    for other in (jaxcfr.probabilistic_pruning(10_000), jaxcfr.probabilistic_pruning(0, 0.0)):
        assert_same_bits(run(other, 20).players, run(None, 20).players)


@pytest.fixture(scope="module")
def dice():
    return jaxcfr.lower(jaxcfr.load_game("liars_dice(dice_sides=3)")).tree


SAFE = jaxcfr.external_sampling(batch=64, pruning=jaxcfr.safe_pruning(every=4))


@pytest.mark.parametrize(
    "variant",
    [
        jaxcfr.linear_cfr(),
        pytest.param(jaxcfr.vanilla(), marks=pytest.mark.slow),
        pytest.param(jaxcfr.dcfr(1.5, 0.5, 2.0), marks=pytest.mark.slow),
    ],
)
def test_safe_pruning_saves_work_and_finds_the_same_value(dice, variant):
    """Player 0's value is 1/9 (linear program: `solve_lp`); payoffs of the average are within its exploitability."""

    def run(traversal, iterations, state=None):
        return jaxcfr.solve(dice, variant, iterations, state, traversal=traversal, seed=1)

    plain, pruned = run(jaxcfr.external_sampling(batch=64), 600), run(SAFE, 600)
    print("visited", int(pruned.sampling.visited), "of", int(plain.sampling.visited))
    assert int(pruned.sampling.visited) < 0.9 * int(plain.sampling.visited)
    gaps = [float(jaxcfr.nash_conv(dice, jaxcfr.average_strategy(dice, state))) for state in (plain, pruned)]
    print("NashConv", gaps)
    assert max(gaps) < 0.06
    value = float(jaxcfr.expected_payoffs(dice, jaxcfr.average_strategy(dice, pruned))[0])
    assert abs(value - 1 / 9) < gaps[1]
    assert_same_bits(run(SAFE, 300, run(SAFE, 300)), pruned)


def test_what_is_skipped_could_not_have_been_played(dice):
    """The same walks without pruning, draw for draw: no sampled regret of a skipped action is above its bound."""
    variant, plain = jaxcfr.vanilla(), jaxcfr.external_sampling(batch=64)
    state = jaxcfr.solve(dice, variant, 200, traversal=SAFE, seed=2)
    skipped = 0
    for _ in range(12):
        before = state
        state = jaxcfr.solve(dice, variant, 1, state, traversal=SAFE, updates="simultaneous")
        strategy = tuple(player.strategy for player in before.players)
        for player in range(2):
            cut = np.asarray(before.sampling.memory.skips[player].cut)
            skipped += int(cut.sum())
            assert np.all(np.asarray(strategy[player])[cut] == 0)
            walked, _ = plain.regrets(dice, player, strategy, None, before.sampling, before.t + 1)
            if float(state.sampling.memory.skips[player].average[-1]) == 0:
                continue  # what was skipped has been caught up
            bound = np.asarray(state.players[player].regrets.regret - before.players[player].regrets.regret)
            walked = np.asarray(walked)
            assert np.all(walked[cut] <= bound[cut] + 1e-12)
            assert np.all(np.asarray(state.players[player].regrets.regret)[cut] <= 0)
            played = np.asarray(dice.treeplexes[player].realization_weights(strategy[player]))[:-1] > 0
            np.testing.assert_allclose(walked[played], bound[played], atol=1e-12)
    assert skipped > 0


@pytest.mark.parametrize("seed", [0, 1])
def test_what_was_skipped_is_caught_up_by_a_best_response(dice, seed):
    """Against counterfactual best responses to the average of random opponents, for each skipped action by itself."""
    print("seed", seed)
    rng = np.random.default_rng(seed)
    player, treeplex = seed, dice.treeplexes[seed]
    opponents = [random_strategy(dice, seed + 10 + i) for i in range(3)]
    seen = sum(dice.treeplexes[1 - player].realization_weights(strategy[1 - player]) for strategy in opponents)
    chosen = jnp.asarray(rng.random(treeplex.size) < 0.2) & (treeplex.uniform > 0)
    cut = np.asarray(pruning._topmost(treeplex, chosen))
    assert 0 < cut.sum() < chosen.sum()
    counted = jnp.asarray(rng.normal(size=treeplex.size))
    weights = (treeplex.uniform_weights, seen) if player == 0 else (seen, treeplex.uniform_weights)
    direct = dice.payoffs.product(player, weights)
    owed = np.asarray(pruning.owed(treeplex, direct, jnp.asarray(cut), counted))

    def average(opponent):
        def rule(weights, uniform):
            total = weights.sum(0, keepdims=True)
            return jnp.where(total > 0, weights / jnp.where(total > 0, total, 1), uniform)

        return dice.treeplexes[opponent].over_tables(rule, seen[:-1], dice.treeplexes[opponent].uniform)

    strategy = [jaxcfr.uniform_strategy(dice)[player]] * 2
    strategy[1 - player] = average(1 - player)
    response = jaxcfr.counterfactual_best_response(dice, tuple(strategy), player)
    best = 3 * np.asarray(response.values.actions)
    np.testing.assert_allclose(owed[cut], best[cut] - np.asarray(counted)[cut], atol=1e-9)
    # Below: regrets against the best response, none of which is positive; elsewhere nothing.
    first, stride, number = (np.asarray(a) for a in (treeplex.first, treeplex.stride, treeplex.num_actions))
    parent, inside = np.asarray(treeplex.parent), np.append(cut, False)
    for infoset in np.argsort(first * 0 + np.asarray(parent == treeplex.size) * -1, kind="stable"):
        entries = first[infoset] + stride[infoset] * np.arange(number[infoset])
        if inside[parent[infoset]]:
            inside[entries] = True
            np.testing.assert_allclose(owed[entries], best[entries] - best[entries].max(), atol=1e-9)
        elif not cut[entries].any():
            assert np.all(owed[entries] == 0)


def test_pruning_looks_at_the_average_too(dice):
    treeplex = dice.treeplexes[0]
    first, stride = int(treeplex.first[0]), int(treeplex.stride[0])
    average = jnp.zeros(treeplex.size).at[first].set(9.0).at[first + stride].set(1.0)
    rare = np.asarray(pruning.rarely_played(treeplex, average, 0.1))
    assert not rare[first]
    assert rare[first + stride]
    assert not np.asarray(pruning.rarely_played(treeplex, average, 0.09))[first + stride]


def test_pruning_under_floored_regrets_warns():
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker")).tree
    for rule in (jaxcfr.probabilistic_pruning(), jaxcfr.safe_pruning()):
        with pytest.warns(UserWarning, match="DCFRPlus floors"):
            jaxcfr.solve(tree, jaxcfr.dcfr_plus(), 0, traversal=jaxcfr.external_sampling(pruning=rule))
    for make in (
        lambda: jaxcfr.probabilistic_pruning(-1),
        lambda: jaxcfr.probabilistic_pruning(probability=1.5),
        lambda: jaxcfr.probabilistic_pruning(mass=-0.1),
        lambda: jaxcfr.safe_pruning(mass=2),
        lambda: jaxcfr.safe_pruning(every=0),
        lambda: jaxcfr.external_sampling(pruning=0.95),
    ):
        with pytest.raises(errors.OptionError):
            make()
    three = jaxcfr.lower(jaxcfr.load_game("kuhn_poker(players=3)")).tree
    with pytest.raises(errors.OptionError, match="two players"):
        jaxcfr.solve(three, jaxcfr.vanilla(), 1, traversal=SAFE)
    lowered = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"))
    locks = jaxcfr.lock(lowered, {0: {lowered.infoset_keys[0][0]: (0.5, 0.5)}})
    with pytest.raises(errors.OptionError, match="locks"):
        jaxcfr.solve(lowered.tree, jaxcfr.vanilla(), 1, traversal=SAFE, locked=locks)
    trainer = jaxcfr.Trainer(lowered, SAFE, jaxcfr.vanilla(), workers=2, locked=locks)
    with pytest.raises(errors.OptionError, match="locks"):
        trainer.train(1)


class Forgetful(Wrapped):
    """Kuhn poker with players who know their card only."""

    def infoset_key(self, player):
        return str(self.inner.infoset_key(player))[0]


def test_a_player_who_forgets_is_told_without_a_tree():
    """Player 0 bets or passes, and then no longer knows which."""
    traversal = jaxcfr.external_sampling(batch=16)
    with pytest.raises(errors.RecallError, match="player 0 forgets at information set"):
        jaxcfr.solve_game(Forgetful(jaxcfr.load_game("kuhn_poker")), iterations=2, traversal=traversal)


def test_what_needs_every_outcome_of_chance_says_so():
    game = OnlySampled(jaxcfr.load_game("kuhn_poker"))
    run = jaxcfr.solve_game(game, jaxcfr.vanilla(), 1, traversal=jaxcfr.external_sampling(batch=4))
    for needs in (
        lambda: jaxcfr.lower(game),
        lambda: jaxcfr.Trainer(game),
        lambda: jaxcfr.Subgame.at(game, run.profile(), ()),
        lambda: jaxcfr.solve_subgame(game, run.profile(), ()),
    ):
        with pytest.raises(errors.ChanceNotEnumerableError, match="the full tree, exact analytics and subgames, needs"):
            needs()
    for needs in (lambda: jaxcfr.solve(game), lambda: jaxcfr.nash_conv(game, run.profile())):
        with pytest.raises(errors.OptionError, match=r"jaxcfr\.lower"):
            needs()


def test_private_and_public_chance_are_told_apart():
    """In Leduc poker the hands are private and the board is public; in Kuhn poker all is private."""
    for name, depths in (("leduc_poker", {0, 1}), ("kuhn_poker", {0, 1}), ("liars_dice(dice_sides=3)", {0, 1})):
        histories = jaxcfr.lower(jaxcfr.load_game(name)).tree.histories
        private = private_chance(histories)
        chance = np.asarray(histories.player) == -1
        depth = np.searchsorted(np.asarray(histories.level_offsets), np.arange(len(chance)), side="right") - 1
        assert set(depth[private].tolist()) == depths
        np.testing.assert_array_equal(private, chance & np.isin(depth, list(depths)))


def test_more_rolls_vary_less():
    """Variance of the regrets of one walk on Kuhn poker, whose two deals are each rolled k times."""
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker")).tree
    strategy = jaxcfr.uniform_strategy(tree)
    spread = []
    for traversal in (jaxcfr.chance_sampling(1), jaxcfr.chance_sampling(3)):
        _, variance, _ = moments(tree, traversal, 0, strategy, sampling_state(tree, traversal), 300)
        spread.append(300 * float(variance.sum()))
    print("variance of the regrets with 1 and 3 rolls:", spread)
    assert spread[1] < 0.5 * spread[0]


def test_unvisited_information_sets_are_counted_and_uniform():
    lowered = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), dtype="float32")
    tree = lowered.tree
    play = jaxcfr.outcome_sampling(batch=1)
    assert jaxcfr.unvisited(tree, jaxcfr.solve(tree, jaxcfr.dcfr(), 0)) == (6, 6)
    state = jaxcfr.solve(tree, jaxcfr.dcfr(), 1, traversal=play, seed=3)
    counts = jaxcfr.unvisited(tree, state)
    # One play of each player passes two of its information sets at most, and one at least.
    assert all(4 <= count <= 5 for count in counts)
    average = jaxcfr.average_strategy(tree, state)
    uniform = [np.all(np.asarray(rows) == 0.5, axis=1).sum() for rows in map(np.array, _rows(lowered, average))]
    assert all(number >= count for number, count in zip(uniform, counts, strict=True))
    state = jaxcfr.solve(tree, jaxcfr.dcfr(), 300, state, traversal=play)
    assert jaxcfr.unvisited(tree, state) == (0, 0)
    with pytest.raises(errors.SolverError):
        jaxcfr.unvisited(jaxcfr.lower(jaxcfr.load_game("kuhn_poker(players=3)")).tree, state)


def _rows(lowered, strategy):
    return [lowered.probabilities(strategy, player) for player in range(2)]


def test_on_the_command_line(tmp_path, capsys):
    from jaxcfr.cli import main

    out = tmp_path / "kuhn.npz"
    command = ["solve", "kuhn_poker", "-n", "20", "--algorithm", "external_sampling", "--batch", "16", "--json"]
    results = []
    for seed in ("7", "7", "8"):
        assert main([*command, "--seed", seed, "--eval-every", "20", "--out", str(out)]) == 0
        results.append(capsys.readouterr().out.split('"seconds"')[0])
    assert results[0] == results[1] != results[2]
    assert jaxcfr.Profile.load(out).variant.endswith("external_sampling")
    once = ["solve", "kuhn_poker", "-n", "1", "--algorithm", "outcome_sampling", "--batch", "1", "--seed", "3"]
    assert main(once) == 0
    assert "information sets came up in no walk" in capsys.readouterr().out
    assert main([*once, "--json"]) == 0
    assert '"unvisited": [' in capsys.readouterr().out
    for wrong, words in (
        (["--algorithm", "vanilla"], "full_tree"),
        (["--batch", "8"], "--batch belongs to"),
        (["--algorithm", "external_sampling", "--exploration", "0.5"], "outcome_sampling"),
        (["--algorithm", "outcome_sampling", "--exploration", "2"], "exploration"),
        (["--algorithm", "outcome_sampling", "--seed", "-1"], "seed"),
    ):
        assert main(["solve", "kuhn_poker", *wrong]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.full_compilation
@pytest.mark.parametrize("faces", [3, 5])
def test_compiled_weights_are_those_of_single_operations(faces):
    """In float32, where XLA once fused a gather with what it reads and read wrong entries (five faces)."""
    tree = jaxcfr.lower(jaxcfr.load_game(f"liars_dice(dice_sides={faces})"), dtype="float32").tree
    for treeplex in tree.treeplexes:
        compiled = jax.jit(lambda treeplex: treeplex.realization_weights(treeplex.uniform))(treeplex)
        with jax.disable_jit():
            single = treeplex.realization_weights(treeplex.uniform)
        np.testing.assert_allclose(compiled, single, rtol=1e-6)


@pytest.mark.full_compilation
@pytest.mark.parametrize("first", [np.int8(-3), np.int32(2**31 - 1), np.uint32(2**32 - 1), np.float32(3e38), True])
def test_what_is_kept_apart_stays_what_it_is(first):
    values = {"a": np.array([first, first]), "b": np.arange(3.0)}
    kept = jax.jit(lambda values: kept_apart(values))(values)
    for name, value in values.items():
        np.testing.assert_array_equal(kept[name], value)
