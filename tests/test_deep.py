"""Deep CFR and its kin."""

import dataclasses
import itertools
import re
import signal
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxcfr
from jaxcfr import deep
from jaxcfr.deep import algorithms, walks
from jaxcfr.deep.learning import Item, cross_entropy, squared_error
from jaxcfr.deep.rules import sums_by_row
from jaxcfr.deep.tokens import token_features
from jaxcfr.deep.walks import FollowOne, FollowSome, Walker, follow_all, hand_up
from jaxcfr.errors import CheckpointError, OptionError, SolverError
from jaxcfr.games.array_game import CHANCE, TERMINAL
from jaxcfr.traversal.base import none_visited

# Exact counterfactual regrets of a pass in Kuhn poker, per player and in order, when everybody plays uniformly.
KUHN_REGRETS = [
    [-1 / 4, -1 / 8, -1 / 8, -1 / 8, -1 / 12, 1 / 12],
    [-1 / 4, -1 / 12, -1 / 24, -1 / 24, -1 / 24, 1 / 12],
]


@pytest.fixture(scope="module")
def kuhn():
    arrays = jaxcfr.load_game("kuhn_poker").array_game()
    return arrays, jaxcfr.lower(arrays)


def uniform(player, features, legal):
    return legal / jnp.maximum(legal.sum(1, keepdims=True), 1)


def exact_regrets(tree):
    """By explicit sums over the leaves: per player `[n_p, most actions]`, for uniform play."""
    histories = tree.histories
    player, infoset, parent = (np.asarray(x) for x in (histories.player, histories.infoset, histories.parent))
    first, count = np.asarray(histories.first_child), np.asarray(histories.num_children)
    chance, payoffs = np.asarray(histories.chance, np.float64), np.asarray(tree.terminal_payoffs, np.float64)
    terminal = np.asarray(histories.terminal)
    value = np.zeros((len(player), tree.num_players))
    for node in reversed(range(len(player))):
        if player[node] == TERMINAL:
            value[node] = payoffs[terminal[node]]
            continue
        children = range(first[node], first[node] + count[node])
        weight = [chance[c] if player[node] == CHANCE else 1 / count[node] for c in children]
        value[node] = sum(w * value[c] for w, c in zip(weight, children, strict=True))
    regrets = [np.zeros((t.num_infosets, int(np.max(np.asarray(t.num_actions))))) for t in tree.treeplexes]
    reach = np.ones((len(player), tree.num_players))
    for node in range(1, len(player)):
        above = parent[node]
        reach[node] = reach[above]
        for p in range(tree.num_players):
            if player[above] == CHANCE:
                reach[node, p] *= chance[node]
            elif player[above] != p:
                reach[node, p] /= count[above]
    for node in np.flatnonzero(player >= 0):
        p = player[node]
        for a in range(count[node]):
            gain = value[first[node] + a, p] - value[node, p]
            regrets[p][infoset[node], a] += reach[node, p] * gain
    return regrets


def test_the_explicit_sums_are_the_known_ones(kuhn):
    _, lowered = kuhn
    for player, found in enumerate(exact_regrets(lowered.tree)):
        assert sorted(found[:, 0]) == pytest.approx(KUHN_REGRETS[player], abs=1e-12)
        assert found[:, 1] == pytest.approx(-found[:, 0], abs=1e-12)


def sampled_regrets(rules, player, choose, width, count, batches, baseline=None, single=False, rows=None):
    """Means and standard errors of the sampled counterfactual regrets, over batches of walks, `[n_p, A]` each."""
    walker = Walker(rules, uniform, rules.prepare(uniform), player, width, rules.max_depth + 1, choose, single=single)

    @jax.jit
    def batch(key):
        tape, _ = walker.run(key, count)
        b = None if baseline is None else baseline(jax.random.fold_in(key, 1), tape)
        q = hand_up(tape, player, b).actions
        advantage = q - jnp.sum(tape.sigma * q, axis=-1, keepdims=True)
        own = (tape.seen.who == player) & tape.front.active
        row = jnp.where(own, rows(tape) if rows else tape.seen.row - rules.offset(player), 1000)
        values = jnp.where(own[..., None], tape.front.scale[..., None] * advantage, 0)
        return jnp.zeros((1001, q.shape[-1])).at[row.reshape(-1)].add(values.reshape(-1, q.shape[-1]))[:1000] / count

    found = np.asarray(jax.lax.map(batch, jax.random.split(jax.random.key(3), batches)), np.float64)
    return found.mean(0), found.std(0, ddof=1) / np.sqrt(batches)


def random_baseline(key, tape):
    return 3 * jax.random.normal(key, tape.sigma.shape)


SAMPLERS = {
    "external": (follow_all, 256, False, None),
    "external, too little room": (follow_all, 64, False, None),
    "robust": (FollowSome(1), 128, False, None),
    "outcome": (FollowOne(0.5), 64, True, None),
    "outcome with any baseline": (FollowOne(0.3), 64, True, random_baseline),
    "external with any baseline": (follow_all, 64, False, random_baseline),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampled_regrets_have_the_exact_mean(name, kuhn):
    choose, width, single, baseline = SAMPLERS[name]
    rules = deep.tree_rules(kuhn[1])
    exact = exact_regrets(kuhn[1].tree)
    for player in range(2):
        mean, error = sampled_regrets(rules, player, choose, width, 64, 300, baseline, single)
        assert np.all(np.abs(mean[:6, :2] - exact[player]) < 4.5 * error[:6, :2] + 1e-6), (mean[:6], exact[player])


def test_three_players_and_chance(kuhn):
    lowered = jaxcfr.lower(jaxcfr.load_game("kuhn_poker(players=3)"))
    rules = deep.tree_rules(lowered)
    exact = exact_regrets(lowered.tree)
    mean, error = sampled_regrets(rules, 1, follow_all, 256, 128, 200)
    n = len(exact[1])
    assert np.all(np.abs(mean[:n, :2] - exact[1]) < 4.5 * error[:n, :2] + 1e-6)


def test_walks_on_arrays_are_those_of_the_tree(kuhn):
    arrays, lowered = kuhn
    rules = deep.array_rules(arrays, 3)  # the last moves are played out, so information sets lower down are not met
    rows = jnp.asarray(lowered.infosets.rows[0].astype(np.int64))

    def row_of(tape):
        seen = jax.vmap(jax.vmap(lambda state: arrays.infoset(state, 0)))(tape.front.states)
        return jnp.argmax((seen[:, :, None] == rows).all(-1), axis=-1)

    exact = exact_regrets(lowered.tree)[0]
    mean, error = sampled_regrets(rules, 0, follow_all, 256, 128, 300, rows=row_of)
    first = [number for number, key in enumerate(lowered.infoset_keys[0]) if len(key) == 1]
    met = mean[first][:, [0, 1]]
    assert np.all(np.abs(met - exact[first]) < 4.5 * error[first][:, [0, 1]] + 1e-6), (met, exact[first])
    assert not mean[[n for n in range(6) if n not in first]].any()


def test_sums_by_row_are_the_same_in_every_way():
    rng = np.random.default_rng(0)
    values, row = rng.normal(size=(500, 3)).astype(np.float32), rng.integers(0, 12, 500)
    row[row == 5] = 11  # a row without values; 10 and 11 belong nowhere
    expected = np.zeros((10, 3))
    for r, v in zip(row, values, strict=True):
        if r < 10:
            expected[r] += v
    np.testing.assert_allclose(sums_by_row(jnp.asarray(values), jnp.asarray(row), 10), expected, atol=1e-5)
    lowered = (
        jax.jit(sums_by_row, static_argnums=2)
        .trace(values, row.astype(np.int32), 10)
        .lower(lowering_platforms=("cuda",))
    )
    text = lowered.as_text()
    assert "stablehlo.sort" in text
    assert "stablehlo.scatter" not in text  # floats are not added up in an order of chance


def test_expectations_are_handed_up():
    # One history of player 0 with two actions worth 1 and 3, sigma a half each; above it an opponent, and chance.
    sigma = jnp.asarray([[[0.25, 0.75]], [[0.5, 0.5]], [[0.0, 0.0]]])
    who = jnp.asarray([[1], [0], [TERMINAL]])
    q = jnp.asarray([[[4.0, 8.0]], [[1.0, 3.0]], [[0.0, 0.0]]])
    zero, one = jnp.zeros((3, 1)), jnp.ones((3, 1))
    front = walks.Front(None, one > 0, zero.astype(int), zero.astype(int), one, one, one, zero.astype(int))
    tape = walks.Tape(front, walks.Seen(who, sigma >= 0, None), sigma, jnp.asarray([[0.0], [0.0], [5.0]]))
    below = algorithms.expected_below(tape, q)
    assert below[:, 0].tolist() == [2.0, 5.0, 0.0]
    assert algorithms.returns_of(tape)[:, 0].tolist() == [5.0, 5.0, 5.0]


def test_what_there_is_no_room_for_is_left_out_at_random():
    """Of two actions at each of 1,024 histories there is room for half: not all of them are the same action."""
    width = 1024
    followed = jnp.ones((width, 2), bool)

    @jax.jit
    @jax.vmap
    def drawn(key):
        parent, action, active, weight = walks._fitted(jax.random.uniform(key, (width,)), followed)
        return action.mean(), weight.sum(), active.all(), jnp.unique(parent * 2 + action, size=width).shape[0]

    share, total, active, _ = drawn(jax.random.split(jax.random.key(0), 200))
    # One by one they would vary by 1 / 64; of each pair one is drawn.
    assert abs(float(share.mean()) - 0.5) < 0.01
    assert 0.005 < float(share.std()) < 0.03
    assert np.all(np.asarray(total) == 2 * width)
    assert active.all()


@pytest.mark.parametrize("total", [1, 37, 64, 65, 100, 128, 129, 500])
def test_thinning_draws_different_children_and_weighs_them(total):
    width = 64
    rng = np.random.default_rng(total)
    followed = np.zeros(width * 8, bool)
    followed[rng.choice(width * 8, total, replace=False)] = True
    followed = followed.reshape(width, 8)
    sums = np.zeros((width, 8))
    fitted = jax.jit(walks._fitted)
    for seed in range(300):
        u = jax.random.uniform(jax.random.key(seed), (width,))
        parent, action, active, weight = map(np.asarray, fitted(u, jnp.asarray(followed)))
        pairs = list(zip(parent[active], action[active], strict=True))
        assert len(set(pairs)) == len(pairs) == min(total, width)
        assert all(followed[pair] for pair in pairs)
        for pair, w in zip(pairs, weight[active], strict=True):
            sums[pair] += w / 300
    # Each counts as 1 in the mean; a weight of w comes up once in w times.
    most = max(1, -(-total // width))
    assert np.all(np.abs(sums[followed] - 1) < 5 * np.sqrt((most - 1) / 300) + 1e-6)


# Memory


def test_a_reservoir_is_a_uniform_sample():
    capacity, batch, total = 2_000, 20_000, 1_000_000
    buffer = deep.ReservoirBuffer.empty(jax.ShapeDtypeStruct((), jnp.int32), capacity)

    @jax.jit
    def fill(buffer, key):
        def insert(number, buffer):
            items = number * batch + jnp.arange(batch, dtype=jnp.int32)
            # Every third one is no item.
            return buffer.insert(jax.random.fold_in(key, number), items, jnp.arange(batch) % 3 > 0)

        return jax.lax.fori_loop(0, total // batch, insert, buffer)

    cells = np.zeros(20)
    for seed in range(10):
        buffer = fill(deep.ReservoirBuffer.empty(jax.ShapeDtypeStruct((), jnp.int32), capacity), jax.random.key(seed))
        kept = np.sort(buffer.as_numpy())
        assert int(buffer.filled) == capacity
        assert len(np.unique(kept)) == capacity
        assert not ((kept % batch) % 3 == 0).any()
        assert int(buffer.seen) == sum((np.arange(batch) % 3 > 0).sum() for _ in range(total // batch))
        cells += np.histogram(kept, 20, (0, total))[0]
    expected = 10 * capacity / 20
    chi_square = ((cells - expected) ** 2 / expected).sum()  # 19 degrees of freedom: above 43.8 once in a thousand
    assert chi_square < 43.8, cells
    sample, valid = buffer.sample(jax.random.key(0), 4_000)
    assert valid.all()
    assert set(np.asarray(sample)) <= set(kept.tolist())


def test_a_reservoir_keeps_all_that_fits_and_forgets():
    buffer = deep.ReservoirBuffer.empty(jax.ShapeDtypeStruct((2,), jnp.float32), 8)
    _, valid = buffer.sample(jax.random.key(0), 3)
    assert not valid.any()
    items = jnp.arange(10.0).reshape(5, 2)
    buffer = buffer.insert(jax.random.key(1), items, jnp.asarray([True, False, True, True, False]))
    assert buffer.as_numpy().tolist() == [[0, 1], [4, 5], [6, 7]]
    buffer = buffer.insert(jax.random.key(2), items, jnp.ones(5, bool))
    assert buffer.as_numpy().tolist() == [[0, 1], [4, 5], [6, 7], *items.tolist()]
    assert int(buffer.cleared().filled) == 0
    with pytest.raises(OptionError, match="capacity has to be an integer from 1"):
        deep.ReservoirBuffer.empty(jnp.zeros(2), 0)


# Learning


class Module:
    """What a Flax module looks like from outside: `init(key, *inputs)` and `apply(params, *inputs)`."""

    def init(self, key, features, legal):
        return {"kernel": jax.random.normal(key, (features.shape[-1], legal.shape[-1])) * 0.1}

    def apply(self, params, features, legal):
        return jnp.where(legal, features @ params["kernel"], 7.0)


@pytest.mark.parametrize("network", [deep.mlp(16, 2), deep.linear(), deep.tabular(30), Module()])
def test_approximators(network):
    features, legal = jnp.ones((5, 1)), jnp.ones((5, 4), bool)
    params = network.init(jax.random.key(0), features, legal)
    out = network.apply(params, features, legal)
    assert out.shape == (5, 4)
    assert np.isfinite(out).all()
    deep.DeepCFR(network=network)


def trained_on_kuhn(network):
    settings = {"walks": 256, "steps": 100, "batch_size": 128, "capacity": 2**14, "average_steps": 500}
    trainer = deep.DeepTrainer("kuhn_poker", deep.DeepCFR(network=network, **settings), seed=0).train(40)
    return jaxcfr.nash_conv(trainer.tree, trainer.strategy())


def test_modules_of_flax_are_approximators():
    linen = pytest.importorskip("flax.linen", reason="Flax is not installed")

    class Net(linen.Module):
        @linen.compact
        def __call__(self, features, legal):
            x = linen.relu(linen.Dense(32)(features))
            return linen.Dense(legal.shape[-1])(linen.LayerNorm()(linen.relu(linen.Dense(32)(x))))

    class Batches(linen.Module):
        @linen.compact
        def __call__(self, features, legal):
            return linen.Dense(legal.shape[-1])(linen.BatchNorm(use_running_average=True)(features))

    class Dropping(linen.Module):
        @linen.compact
        def __call__(self, features, legal):
            return linen.Dense(legal.shape[-1])(linen.Dropout(0.5, deterministic=False)(features))

    assert trained_on_kuhn(Net()) < 0.2
    for module, message in ((Batches(), r"keeps state \(batch_stats\)"), (Dropping(), "InvalidRngError")):
        with pytest.raises(OptionError, match=message):
            deep.DeepTrainer("kuhn_poker", deep.DeepCFR(network=module))


def test_functions_of_haiku_are_approximators():
    haiku = pytest.importorskip("haiku", reason="Haiku is not installed")

    def net(features, legal):
        return haiku.nets.MLP([32, 32, legal.shape[-1]])(features)

    assert trained_on_kuhn(haiku.without_apply_rng(haiku.transform(net))) < 0.2
    for wrong in (haiku.transform(net), haiku.transform_with_state(net)):
        with pytest.raises(OptionError, match=r"the advantage network (fails in|gives no array)"):
            deep.DeepTrainer("kuhn_poker", deep.DeepCFR(network=wrong))


def test_modules_of_equinox_are_split():
    equinox = pytest.importorskip("equinox", reason="Equinox is not installed")

    def parts(key, features, legal):
        module = equinox.nn.MLP(features.shape[-1], legal.shape[-1], 32, 2, key=key)
        return equinox.partition(module, equinox.is_inexact_array)

    def apply(params, features, legal):
        _, rest = parts(jax.random.key(0), features, legal)
        return jax.vmap(equinox.combine(params, rest))(features)

    assert trained_on_kuhn(deep.Approximator(lambda *given: parts(*given)[0], apply)) < 0.2


def test_modules_of_nnx_are_split():
    nnx = pytest.importorskip("flax.nnx", reason="Flax is not installed")

    class Net(nnx.Module):
        def __init__(self, inputs, outputs, rngs):
            self.first, self.last = nnx.Linear(inputs, 32, rngs=rngs), nnx.Linear(32, outputs, rngs=rngs)

        def __call__(self, features):
            return self.last(nnx.relu(self.first(features)))

    def parts(key, features, legal):
        return nnx.split(Net(features.shape[-1], legal.shape[-1], rngs=nnx.Rngs(key)), nnx.Param)

    def apply(params, features, legal):
        graph, _ = parts(jax.random.key(0), features, legal)
        return nnx.merge(graph, params)(features)

    assert trained_on_kuhn(deep.Approximator(lambda *given: parts(*given)[1], apply)) < 0.2


class Keeping(Module):
    """As a Flax module with batch normalisation."""

    def init(self, key, features, legal):
        return {"params": super().init(key, features, legal), "batch_stats": jnp.zeros(3)}


class Counting(Module):
    def init(self, key, features, legal):
        return {**super().init(key, features, legal), "count": jnp.zeros((), jnp.int32)}


class Fixed(Module):
    def init(self, key, features, legal):
        return {}


class Drawing(Module):
    def apply(self, params, key, features, legal):
        return features


class Rounding(Module):
    def apply(self, params, features, legal):
        return super().apply(params, features, legal).astype(jnp.int32)


@dataclasses.dataclass
class Listed(Module):
    sizes: list


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Keeping, r"the advantage network keeps state \(batch_stats\)"),
        (Counting, r"a parameter \['count'\] of int32"),
        (Fixed, "has no parameters"),
        (Drawing, r"fails in apply\(params, features, legal\): TypeError"),
        (Rounding, "gives int32: floating-point numbers are needed"),
        (lambda: Listed([1]), "has to be hashable, and Listed is not"),
        (lambda: Module, r"a class has to be called first, Module\(...\)"),
    ],
)
def test_networks_that_do_not_fit_are_told(make, message, kuhn):
    with pytest.raises(OptionError, match=message):
        deep.DeepTrainer(kuhn[1], deep.DeepCFR(network=make()))


def test_optimisers_that_do_not_fit_are_told(kuhn):
    for fitting in (optax.polyak_sgd(), optax.inject_hyperparams(optax.adam)(learning_rate=1e-3)):
        deep.DeepTrainer(kuhn[1], deep.DeepCFR(network=deep.linear(), optimiser=fitting))
    lookahead = optax.lookahead(optax.adam(1e-3), 5, 0.5)  # trains a pair of parameters, which no network has
    with pytest.raises(OptionError, match="the optimiser fails on the parameters of the advantage network"):
        deep.DeepTrainer(kuhn[1], deep.DeepCFR(network=deep.linear(), optimiser=lookahead))


class Forbidding(Module):
    """Minus infinity for illegal actions, in the way whose gradient is most easily spoilt."""

    def apply(self, params, features, legal):
        return features @ params["kernel"] + jnp.where(legal, 0, -jnp.inf)


def test_what_networks_say_of_illegal_actions_is_ignored(kuhn):
    legal = jnp.asarray([[True, True, False]])
    features = jnp.ones((1, 4))
    item = Item(features, legal, jnp.asarray([[1.0, -1.0, 0.0]]), legal, jnp.ones(1))
    params = Forbidding().init(jax.random.key(0), features, legal)
    for loss in (squared_error, cross_entropy):
        value, gradient = jax.value_and_grad(
            lambda params, loss=loss: loss(Forbidding().apply(params, features, legal), item).sum()
        )(params)
        assert np.isfinite(value)
        assert np.isfinite(gradient["kernel"]).all()
        assert np.any(gradient["kernel"] != 0)
    # On arrays, where an outcome of chance is no action: the values that ESCHER takes advantages from.
    rules = deep.array_rules(kuhn[0], 3)
    algorithm = deep.ESCHER(walks=8, network=Forbidding(), steps=2, batch_size=8, capacity=16, past_networks=2)
    update = jax.jit(algorithms.update, static_argnames="player")
    state = deep.init(rules, algorithm, jax.random.key(0))._replace(t=jnp.asarray(1, jnp.int32))
    learnt = update(rules, algorithm, state, player=0, key=jax.random.key(1)).players[0].advantage
    assert np.isfinite(learnt.losses).all()
    assert np.isfinite(learnt.memory.as_numpy().target).all()


def small(kind, **settings):
    """Settings under which an algorithm is what it would be with a perfect network, as far as can be."""
    size = 32
    exact = deep.tabular(size)
    values = {"value_network": deep.tabular(64)} if kind.values else {}
    return kind(
        walks=128,
        network=exact,
        average_network=exact,
        steps=60,
        batch_size=None,
        learning_rate=0.2,
        capacity=2048,
        average_steps=300,
        past_networks=128,
        **{**values, **settings},
    )


KINDS = [
    deep.DeepCFR,
    deep.SDCFR,
    deep.DoubleNeuralCFR,
    deep.DREAM,
    deep.ESCHER,
    deep.DeepDCFRPlus,
    deep.DeepPDCFRPlus,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_with_a_table_it_converges(kind, kuhn):
    trainer = deep.DeepTrainer(kuhn[1], small(kind), seed=1, features="index", history_features="index")
    trainer.train(60)
    assert jaxcfr.nash_conv(kuhn[1].tree, trainer.strategy()) < 0.12
    assert int(trainer.state.visited) > 60 * 2 * 128


# The skeleton


@pytest.fixture(scope="module")
def tiny(kuhn):
    """A tree, settings of short runs, and one compiled iteration."""
    rules = deep.tree_rules(kuhn[1])
    algorithm = deep.DeepCFR(walks=32, network=deep.mlp(8, 2), steps=30, batch_size=32, capacity=256, average_steps=40)
    return rules, algorithm, jax.jit(algorithms.iterate)


def leaves_differ(a, b):
    return any(not np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_only_the_updated_player_learns(tiny):
    rules, algorithm, _ = tiny
    state = deep.init(rules, algorithm, jax.random.key(0))._replace(t=jnp.asarray(1, jnp.int32))
    update = jax.jit(algorithms.update, static_argnames="player")
    after = update(rules, algorithm, state, player=0, key=jax.random.key(1))
    mine, theirs = after.players
    assert leaves_differ(mine.advantage.params, state.players[0].advantage.params)
    assert (int(mine.advantage.updates), int(theirs.advantage.updates)) == (1, 0)
    assert not leaves_differ(theirs.advantage, state.players[1].advantage)
    assert int(mine.strategies.filled) == 0
    assert int(theirs.strategies.filled) == 6  # the other's strategy was met
    assert int(mine.advantage.memory.filled) == 6


def test_training_lowers_the_loss_and_reset_begins_anew(kuhn):
    rules = deep.tree_rules(kuhn[1])
    # Small learning rate: parameters stay near where they began.
    still = optax.sgd(1e-12)
    kept = deep.DeepCFR(walks=32, network=deep.mlp(8, 2), steps=30, optimiser=still, capacity=256)
    anew = dataclasses.replace(kept, reset=True)
    for algorithm, changes in ((kept, False), (anew, True)):
        state = deep.init(rules, algorithm, jax.random.key(0))
        after = jax.jit(algorithms.iterate)(rules, algorithm, state)
        begun, ended = state.players[0].advantage.params, after.players[0].advantage.params
        moved = max(float(jnp.abs(a - b).max()) for a, b in zip(*map(jax.tree.leaves, (begun, ended)), strict=True))
        assert (moved > 1e-3) == changes
    falling = optax.chain(optax.adam(optax.cosine_decay_schedule(1e-2, 300)), optax.contrib.reduce_on_plateau())
    learns = dataclasses.replace(kept, optimiser=falling, steps=300)  # the second one asks for the loss
    state = jax.jit(algorithms.iterate)(rules, learns, deep.init(rules, learns, jax.random.key(0)))
    for player in state.players:
        first, last = np.asarray(player.advantage.losses)
        assert last < 0.5 * first


def test_linear_weights_and_the_items_of_one_iteration(tiny):
    rules, algorithm, iterate = tiny
    state = deep.init(rules, algorithm, jax.random.key(0))
    for _ in range(3):
        state = iterate(rules, algorithm, state)
    items: Item = state.players[0].advantage.memory.as_numpy()
    # The opening sets are met by a third of the walks each: 1/3 t; so the weights of all three sum to t.
    openings = [n for n in range(6) if len(rules_keys(rules)[0][n]) == 1]
    per_iteration = items.weight[np.isin(items.observed, openings)].reshape(3, 3).sum(1)
    assert per_iteration == pytest.approx([1, 2, 3], rel=1e-5)


def test_histories_are_counted_beyond_what_one_float_holds(tiny):
    rules, algorithm, iterate = tiny
    count, total = none_visited(), 0
    for more in (2**24 - 1, 1, 1, 3, 2**24 + 2, 12_345_677, 1, 2**28, 7):
        count, total = count.add(jnp.float32(more)), total + more
        assert int(count) == total
    assert int(count.add(count)) == 2 * total
    state = deep.init(rules, algorithm, jax.random.key(0))
    fresh = int(iterate(rules, algorithm, state).visited)
    assert 2 * 32 * 3 < fresh < 2**24
    late = state._replace(visited=none_visited().add(jnp.float32(2**40)).add(jnp.float32(1)))
    assert int(iterate(rules, algorithm, late).visited) == 2**40 + 1 + fresh


def rules_keys(rules):
    return jaxcfr.lower(jaxcfr.load_game("kuhn_poker").array_game()).infoset_keys


def primitives(jaxpr):
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for value in equation.params.values():
            for inner in jax.tree.leaves(value, is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")):
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    yield from primitives(getattr(inner, "jaxpr", inner))


@pytest.mark.parametrize("kind", [deep.DeepCFR, deep.DREAM])
def test_an_iteration_is_one_program_without_the_host(kind, kuhn):
    rules = deep.tree_rules(kuhn[1], histories="path")
    algorithm = kind(walks=32, network=deep.mlp(8, 2), steps=5, batch_size=8, capacity=64, past_networks=4)
    state = deep.init(rules, algorithm, jax.random.key(0))
    used = set(primitives(jax.make_jaxpr(algorithms.iterate)(rules, algorithm, state).jaxpr))
    assert "while" in used
    assert not [name for name in used if "callback" in name or "infeed" in name or "outfeed" in name]
    # On accelerators floats that are scattered replace each other: sums would come in an order of chance.
    text = jax.jit(algorithms.iterate).trace(rules, algorithm, state).lower(lowering_platforms=("cuda",)).as_text()
    scattered = re.findall(r'"stablehlo\.scatter".*?\^bb0\(.*?\n(.*?)stablehlo\.return', text, re.DOTALL)
    assert len(scattered) > 4
    assert not [body for body in scattered if "stablehlo.add" in body]
    assert "stablehlo.custom_call" not in text
    if rules.tree.dtype == jnp.float32:
        assert "f64" not in text


def test_nothing_moves_to_the_host_and_nothing_compiles_anew(tiny):
    rules, algorithm, _ = tiny
    state = deep.init(rules, algorithm, jax.random.key(0))
    compiled = jax.jit(algorithms.run)
    few, more = jnp.asarray(1), jnp.asarray(3)
    slower = jax.tree.map(jnp.asarray, dataclasses.replace(algorithm, learning_rate=5e-4, gamma=2.0))
    compiled(rules, jax.tree.map(jnp.asarray, algorithm), state, few)
    with jax.transfer_guard("disallow"):
        compiled(rules, slower, state, more)
    assert compiled._cache_size() == 1


def test_seeds_and_learning_rates_are_vmapped(tiny):
    rules, algorithm, _ = tiny

    def losses(key, rate):
        settings = dataclasses.replace(algorithm, learning_rate=rate)
        state = deep.run(rules, settings, deep.init(rules, settings, key), 2)
        return jnp.stack([player.advantage.losses[1] for player in state.players])

    keys, rates = jax.random.split(jax.random.key(0), 3), jnp.asarray([1e-3, 1e-2, 1e-3])
    together, alone = jax.jit(jax.vmap(losses))(keys, rates), jax.jit(losses)
    for number in range(3):
        assert together[number].tolist() == pytest.approx(alone(keys[number], rates[number]).tolist(), rel=1e-3)
    assert len(np.unique(together)) == 6


# The trainer


def same(a, b):
    def plain(leaf):
        return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf

    return all(np.array_equal(plain(x), plain(y)) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_a_trainer_goes_on_to_the_bit(tiny, kuhn, tmp_path):
    _, algorithm, _ = tiny
    whole = deep.DeepTrainer(kuhn[1], algorithm, seed=7).train(4)
    trainer = deep.DeepTrainer(kuhn[1], algorithm, seed=7).train(2, eval_every=1, checkpoint=tmp_path / "run.ckpt")
    assert [record["iteration"] for record in trainer.history] == [1, 2]
    assert trainer.history[-1]["nash_conv"] == pytest.approx(
        float(jaxcfr.nash_conv(kuhn[1].tree, trainer.strategy())), rel=1e-6
    )
    loaded = deep.DeepTrainer.load(tmp_path / "run.ckpt", kuhn[1])
    assert loaded.history == trainer.history
    assert same(loaded.train(2).state, whole.state)
    assert same(trainer.train(2).state, whole.state)
    profile = whole.profile()
    assert jaxcfr.head_to_head(jaxcfr.load_game("kuhn_poker"), profile, jaxcfr.UniformPlayer()).exact
    assert profile.iterations == 4
    for wrong, message in (
        ({"game": "leduc_poker"}, "another tree here, or other features"),
        ({"features": "index"}, "other features"),
        ({"algorithm": dataclasses.replace(algorithm, gamma=3.0)}, "made with another gamma"),
        ({"algorithm": deep.DoubleNeuralCFR()}, "a run of DeepCFR, not of DoubleNeuralCFR"),
    ):
        with pytest.raises(CheckpointError, match=message):
            deep.DeepTrainer.load(tmp_path / "run.ckpt", **{"game": kuhn[1], **wrong})
    with pytest.raises(CheckpointError, match=r"load it with DeepTrainer.load"):
        jaxcfr.Trainer.load(tmp_path / "run.ckpt")
    with pytest.raises(CheckpointError, match="not the path of a file"):
        trainer.save(None)
    own = dataclasses.replace(algorithm, network=Module())
    deep.DeepTrainer(kuhn[1], own).save(tmp_path / "own.ckpt")
    with pytest.raises(CheckpointError, match="give the algorithm"):
        deep.DeepTrainer.load(tmp_path / "own.ckpt", kuhn[1])


def test_workers_are_runs_of_their_own_and_averaged(tiny, kuhn):
    _, algorithm, _ = tiny
    team = deep.DeepTrainer(kuhn[1], algorithm, seed=7, workers=2).train(2)
    tree = kuhn[1].tree
    sums = []
    for number in range(2):
        key = jax.random.fold_in(jax.random.key(7), number)
        alone = deep.DeepTrainer(kuhn[1], algorithm, seed=key).train(2)
        mine = jax.tree.map(lambda leaf, n=number: leaf[n], team.state)
        np.testing.assert_allclose(mine.players[0].advantage.losses, alone.state.players[0].advantage.losses, rtol=1e-3)
        sums.append([t.realization_weights(s) for t, s in zip(tree.treeplexes, alone.strategy(), strict=True)])
    for player, (treeplex, strategy) in enumerate(zip(tree.treeplexes, team.strategy(), strict=True)):
        mean = (sums[0][player] + sums[1][player]) / 2
        np.testing.assert_allclose(treeplex.realization_weights(strategy), mean, atol=2e-3)


def test_past_networks_are_averaged_by_own_reach(kuhn):
    """Against an explicit sum over iterations, and against plays that draw one network each."""
    arrays, lowered = kuhn
    settings = {"walks": 32, "network": deep.mlp(8, 2), "steps": 20, "batch_size": 16, "capacity": 64}
    algorithm = deep.SDCFR(**settings, past_networks=8)
    rules = deep.tree_rules(lowered, game=arrays)
    state = deep.init(rules, algorithm, jax.random.key(3))
    iterate = jax.jit(algorithms.iterate)
    total = [jnp.zeros(t.size + 1) for t in lowered.tree.treeplexes]
    for t in range(1, 5):
        played = jax.jit(deep.current_strategy)(rules, algorithm, state)
        for p, treeplex in enumerate(lowered.tree.treeplexes):
            total[p] += t * treeplex.realization_weights(played[p])
        state = iterate(rules, algorithm, state)
    found = jax.jit(deep.average_strategy)(rules, algorithm, state)
    for p, treeplex in enumerate(lowered.tree.treeplexes):
        np.testing.assert_allclose(treeplex.realization_weights(found[p]), total[p] / total[p][-1], atol=1e-5)
    # On arrays a play draws one network for each player: its value is the mean over all pairs of them.
    trainer = deep.DeepTrainer(arrays, algorithm).train(3)
    policy = trainer.policy()
    strategies = []
    for p, mine in enumerate(trainer.state.players):
        legal = jnp.ones((6, 3), bool).at[:, 2].set(False)  # pass and bet; 2 is an outcome of chance only
        tables = [deep.average.played(mine, algorithm, jnp.asarray(n), rules.features[p], legal)[:, :2] for n in (0, 1)]
        strategies.append([lowered.tree.treeplexes[p].uniform, *(rules.player_strategy(t, p) for t in tables)])
    pairs = itertools.product(range(3), repeat=2)
    exact = sum(
        (a + 1) * (b + 1) / 36 * float(jaxcfr.expected_payoffs(lowered.tree, (strategies[0][a], strategies[1][b]))[0])
        for a, b in pairs
    )
    on_tree = deep.DeepTrainer(arrays, algorithm, tree=lowered)
    on_tree._rounds = trainer._rounds
    assert jaxcfr.expected_payoffs(lowered.tree, on_tree.strategy())[0] == pytest.approx(exact, abs=1e-5)
    played = jaxcfr.expected_payoffs_sampled(arrays, [policy, policy], jax.random.key(0), 40_000)
    assert abs(played.mean[0] - exact) < 4 * played.standard_error[0]
    game, rng = jaxcfr.as_game(arrays), np.random.default_rng(0)
    with pytest.raises(OptionError, match="draws a network for each play"):
        jaxcfr.play_out(game, [policy, policy], rng)
    begun = policy.begin(jax.random.key(0))
    assert sum(jaxcfr.play_out(game, [begun, begun], rng)) == 0
    with pytest.raises(OptionError, match="draws a strategy for each play"):
        trainer.exploitability_bound(jaxcfr.LocalBestResponse())


def test_features_of_its_own_are_those_of_the_tree():
    """Goofspiel says what networks take: what was learnt without a tree is played as exactly evaluated on one."""
    arrays = jaxcfr.load_game("goofspiel(num_cards=3)").array_game()
    lowered = jaxcfr.lower(arrays)
    algorithm = deep.DeepCFR(walks=32, network=deep.linear(), steps=100, capacity=4096, learning_rate=0.05)
    trainer = deep.DeepTrainer(arrays, algorithm, seed=1, tree=lowered).train(4)
    exact = jaxcfr.expected_payoffs(lowered.tree, (trainer.strategy()[0], jaxcfr.uniform_strategy(lowered.tree)[1]))
    assert abs(exact[0]) > 0.02  # it is not uniform play
    policies = [trainer.policy(), jaxcfr.uniform_policy]
    played = jaxcfr.expected_payoffs_sampled(arrays, policies, jax.random.key(0), 40_000)
    assert abs(played.mean[0] - exact[0]) < 4.5 * played.standard_error[0]


def test_without_a_tree(tmp_path):
    arrays = jaxcfr.load_game("kuhn_poker").array_game()
    algorithm = deep.DeepCFR(walks=64, network=deep.mlp(16, 2), steps=60, capacity=4096, average_steps=300)
    trainer = deep.DeepTrainer(arrays, algorithm, seed=2).train(6, eval_every=6, checkpoint=tmp_path / "run.ckpt")
    record = trainer.history[-1]
    # The same run, asked about a tree: as it plays, so it is.
    lowered = jaxcfr.lower(arrays)
    on_tree = deep.DeepTrainer(arrays, algorithm, seed=2, tree=lowered)
    on_tree._rounds = trainer._rounds
    exact = on_tree.evaluate()
    assert exact["nash_conv"] < 0.6
    uniform = jaxcfr.uniform_strategy(lowered.tree)
    for seat in range(2):
        pair = tuple(on_tree.strategy()[p] if p == seat else uniform[p] for p in range(2))
        expected = float(jaxcfr.expected_payoffs(lowered.tree, pair)[seat])
        assert abs(record["versus_uniform"][seat] - expected) < 4.5 * record["standard_error"][seat]
    assert on_tree.profile().iterations == 6
    assert sum(record["versus_uniform"]) > 5 * sum(record["standard_error"])
    policy = trainer.policy()
    bound = trainer.exploitability_bound(jaxcfr.LocalBestResponse(rollouts=4), plays=200)
    assert bound.low < 0.5
    game = jaxcfr.as_game(arrays)
    payoffs = [jaxcfr.play_out(game, [policy, policy], np.random.default_rng(n)) for n in range(3)]
    assert all(sum(payoff) == 0 for payoff in payoffs)
    loaded = deep.DeepTrainer.load(tmp_path / "run.ckpt")
    assert same(loaded.state, trainer.state)
    with pytest.raises(OptionError, match="not lowered"):
        trainer.profile()
    with pytest.raises(OptionError, match="target needs a tree"):
        trainer.train(1, target=0.1)
    for target in (-0.1, float("nan"), float("inf"), True, "small"):
        with pytest.raises(OptionError, match="target has to be a number of at least 0"):
            on_tree.train(1, target=target)


def test_interrupts_keep_what_was_done(tiny, kuhn, monkeypatch):
    _, algorithm, _ = tiny
    trainer = deep.DeepTrainer(kuhn[1], algorithm, seed=7).train(1)
    step = trainer._step

    def interrupted():
        step()
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(trainer, "_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trainer.train(10)
    assert trainer.iterations_done == 2


def test_parts_of_sets_are_not_mixed_up():
    keys = [frozenset({("a", 1), ("b", 2)}), frozenset({("a", 2), ("b", 1)}), frozenset(), frozenset({frozenset()})]
    (table,) = token_features([keys])
    assert len(np.unique(table, axis=0)) == 4


def test_keys_may_be_nested_deeply():
    key = other = ()
    for depth in range(3_000):
        key, other = (key,), (other, 1) if depth == 0 else (other,)
    (table,) = token_features([[key, other]])
    assert len(np.unique(table, axis=0)) == 2


def test_memories_that_do_not_fit_are_told(kuhn, monkeypatch):
    monkeypatch.setattr("jaxcfr.deep.trainer._memory", lambda: 2**24)
    algorithm = deep.DeepCFR(walks=8, network=deep.linear(), capacity=2**10)
    deep.DeepTrainer(kuhn[1], algorithm)
    # Both players have two memories; an item is a number, two masks, two numbers and a weight: 20 bytes.
    message = r"take 0\.2 GiB here, with 2 actions, and there are 0\.0 GiB: lower capacity, 1,048,576 items"
    with pytest.raises(OptionError, match=message):
        deep.DeepTrainer(kuhn[1], dataclasses.replace(algorithm, capacity=2**20))
    with pytest.raises(OptionError, match="or workers, 300"):
        deep.DeepTrainer(kuhn[1], algorithm, workers=300)


def test_features(kuhn):
    arrays, lowered = kuhn
    plain = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"))
    for rules in (deep.tree_rules(plain), deep.tree_rules(lowered, game=arrays), deep.tree_rules(lowered.tree)):
        for table in rules.features:
            assert len(np.unique(np.asarray(table), axis=0)) == 6  # no two information sets look alike
    assert np.array_equal(
        deep.tree_rules(lowered, game=arrays).features[0][0],
        arrays.features(arrays.infoset(arrays.step(arrays.step(arrays.init(), 0), 1), 0), 0),
    )
    own = deep.tree_rules(plain, lambda key, player: [len(key), player])
    assert own.features[1].shape == (6, 2)
    paths = deep.tree_rules(plain, histories="path").history_features
    assert len(np.unique(np.asarray(paths), axis=0)) == 58


class Narrow(Module):
    """One number for all actions."""

    def apply(self, params, features, legal):
        return (features @ params["kernel"])[:, :1]


def bare_kuhn():
    return jaxcfr.lower(jaxcfr.load_game("kuhn_poker")).tree


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: deep.DeepCFR(walks=0), "walks has to be an integer from 1 to 32,768, not 0"),
        (lambda: deep.DeepCFR(walks=64, width=32), "width is 32, but 64 walks have to begin there"),
        (lambda: deep.DeepCFR(network=deep.mlp), "call it: mlp"),
        (lambda: deep.DeepCFR(network=3), "network has to be a pair of functions"),
        (lambda: deep.DeepCFR(optimiser="adam"), "optimiser has to be one of optax"),
        (lambda: deep.DeepCFR(learning_rate=-1.0), "learning_rate"),
        (lambda: deep.DREAM(exploration=0.0), "exploration has to lie above 0"),
        (lambda: deep.DREAM(exploration=np.float32(1.5)), "exploration has to lie above 0"),
        (lambda: deep.DeepCFR(gamma=jnp.asarray(-1.0)), "gamma has to be a number of at least 0"),
        (lambda: deep.DeepCFR(learning_rate=lambda t: 1e-3), "schedules are optax's"),
        (lambda: deep.DeepCFR(network=deep.linear), r"call it: linear\(...\)"),
        (lambda: deep.DeepCFR(walks=10**6), "walks has to be an integer from 1"),
        (lambda: deep.DeepTrainer("kuhn_poker", deep.DeepCFR(network=deep.tabular(6))), "a table takes one number"),
        (
            lambda: deep.DeepTrainer("kuhn_poker", deep.DeepCFR(network=deep.tabular(2)), features="index"),
            "the advantage table has 2 rows, and 6 are needed",
        ),
        (lambda: deep.DeepTrainer("kuhn_poker", deep.DeepCFR(network=Narrow())), r"gives \(2, 1\) for 2 rows"),
        (lambda: deep.DeepTrainer("kuhn_poker", deep.DREAM(), history_features=None), "sees whole histories"),
        (lambda: deep.DeepTrainer("kuhn_poker", deep.DREAM(), history_features=[[1], [2, 3]]), "an array"),
        (lambda: deep.DeepTrainer("kuhn_poker", max_depth=3), "max_depth is for array games"),
        (lambda: deep.mlp(0), "width has to be a positive integer"),
        (lambda: deep.DeepTrainer("kuhn_poker", deep.DeepCFR), r"call it: DeepCFR\(\)"),
        (lambda: deep.DeepTrainer("kuhn_poker", jaxcfr.dcfr()), "algorithm has to be one such as"),
        (lambda: deep.DeepTrainer("kuhn_poker", workers=0), "workers has to be a positive integer"),
        (lambda: deep.DeepTrainer("kuhn_poker", features="names"), "features has to be"),
        (lambda: deep.DeepTrainer("kuhn_poker", features=[np.ones((5, 2))] * 2), "6 rows of numbers"),
        (lambda: deep.DeepTrainer("kuhn_poker", deep.ESCHER(), history_features="all"), "history_features has to be"),
        (lambda: deep.DeepTrainer("kuhn_poker").train(-1), "iterations has to be an integer of at least 0"),
        (lambda: deep.DeepTrainer("kuhn_poker").train(1, checkpoint_every=1), "checkpoint_every needs checkpoint"),
        (lambda: deep.DeepTrainer("kuhn_poker").policy(), "the game was lowered: take profile"),
        (
            lambda: deep.DeepTrainer(jaxcfr.lower(jaxcfr.load_game("kuhn_poker")).tree).profile(),
            "no information-set key",
        ),
    ],
)
def test_wrong_input_is_told(make, message):
    with pytest.raises(OptionError, match=message):
        make()


def test_numbers_that_are_none_end_a_run(kuhn):
    algorithm = deep.DeepCFR(walks=8, network=deep.mlp(4, 1), steps=3, batch_size=8, capacity=32, learning_rate=1e38)
    trainer = deep.DeepTrainer(kuhn[1], algorithm)
    with pytest.raises(SolverError, match="came out infinite"):
        trainer.train(5)
    assert np.isfinite(trainer.losses()).all()


@pytest.mark.parametrize("name", ["08_single_action", "09_terminal_root", "10_chance_only", "11_one_player"])
def test_odd_games(name):
    path = Path(__file__).parent / "cases" / f"{name}.efg"
    algorithm = deep.DeepCFR(walks=8, network=deep.linear(), steps=2, batch_size=8, capacity=32, average_steps=3)
    trainer = deep.DeepTrainer(jaxcfr.load_game(str(path)), algorithm).train(1, eval_every=1)
    assert np.isfinite(trainer.history[-1]["nash_conv"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "algorithm", "iterations"),
    [
        ("liars_dice(numdice=5)", deep.DeepCFR(walks=64, width=1024, steps=100, average_steps=500), 4),
        ("goofspiel", deep.ESCHER(walks=2048, steps=150, average_steps=1000), 4),
    ],
)
def test_a_game_that_no_tree_holds(name, algorithm, iterations):
    """Against the uniform strategy and against itself at half time."""
    trainer = deep.DeepTrainer(jaxcfr.load_game(name).array_game(), algorithm, seed=0).train(iterations)
    earlier = trainer.policy()
    trainer.train(iterations)
    for name, opponent in (("the uniform strategy", jaxcfr.uniform_policy), ("after four iterations", earlier)):
        means, errors = trainer.against(opponent, 10_000)
        mean, error = np.mean(means), np.sqrt(np.sum(np.square(errors))) / len(errors)
        print(f"against {name}: {mean:.4f} ({error:.4f})")
        assert mean > 1.96 * error
