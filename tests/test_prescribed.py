"""Node locking and blending.

What has to hold:
* locked: iterate by iterate the same as the explicit game in which chance moves at the locked sets, in every variant
  and way to update, for any number of players; its linear program gives the value; gains and best responses are those
  of the explicit game; the average at a locked set is the lock, reached or not.
* blended: with a constant share the same as the explicit game in which chance takes decisions over; with a schedule
  exact against a recursion in fractions and floats; the average after the blend has decayed is an equilibrium of the
  original game.
* sampled: regrets are unbiased under both.
"""

from __future__ import annotations

import dataclasses
import functools
from fractions import Fraction as F

import brute_force as naive
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_games import CHANCE, Node, TreeGame, copied, forest, from_seed
from test_random_games import assert_rows, by_set

import jaxcfr
from jaxcfr import errors

KINDS = {"zero-sum": (2, "zero", 8), "three players": (3, "general", 6)}
VARIANTS = {
    "vanilla": (jaxcfr.vanilla(), ("vanilla",)),
    "dcfr": (jaxcfr.dcfr(), ("dcfr", 1.5, 0.0, 2.0)),
    "pcfr_plus": (jaxcfr.pcfr_plus(), ("pcfr_plus", 2.0)),
}


@functools.cache
def make(kind):
    players, sums, count = KINDS[kind]
    game = forest([from_seed(number, players, sums, depth=4) for number in range(count)])
    return game, jaxcfr.lower(game), naive.Rules(game)


def random_locks(rules, seed):
    """A third of all sets, with random rows of fractions, zeros among them."""
    rng = np.random.default_rng(seed)
    chosen = {}
    for which, count in rules.sets.items():
        if rng.random() < 1 / 3:
            weights = rng.integers(0, 4, count)
            weights[rng.integers(count)] += 1
            chosen[which] = [F(int(w), int(weights.sum())) for w in weights]
    return chosen


def by_player(rows):
    """`{(player, key): row}` as `lock` takes it."""
    return {p: {key: row for (q, key), row in rows.items() if q == p} for p in {p for p, _ in rows}}


def with_chance_at(game, rows):
    """The game in which chance moves at the locked sets."""

    def change(node):
        children = tuple(change(child) for child in node.children)
        if (node.kind, node.key) in rows and isinstance(node.kind, int):
            return Node(CHANCE, None, node.actions, tuple(rows[node.kind, node.key]), children)
        return dataclasses.replace(node, children=children)

    return TreeGame(change(game.node), game.num_players, f"{game.name}, locked")


def with_takeovers(game, policy, shares):
    """The game in which chance takes decisions over: a set's key becomes (key, which of the owner's so far were)."""

    def change(node, taken):
        if not isinstance(node.kind, int):
            return dataclasses.replace(node, children=tuple(change(child, taken) for child in node.children))
        p = node.kind

        def below(now):
            after = tuple((*t, now) if q == p else t for q, t in enumerate(taken))
            return tuple(change(child, after) for child in node.children)

        own = Node(p, (node.key, taken[p]), node.actions, children=below(0))
        forced = Node(CHANCE, None, node.actions, tuple(policy[p, node.key]), below(1))
        return Node(CHANCE, None, ("own", "taken over"), (1 - shares[p], shares[p]), (own, forced))

    return TreeGame(change(game.node, ((),) * game.num_players), game.num_players, f"{game.name}, taken over")


@pytest.mark.parametrize(
    ("kind", "variant", "updates"),
    [
        ("zero-sum", "dcfr", "alternating"),
        ("zero-sum", "pcfr_plus", "simultaneous"),
        ("three players", "vanilla", "simultaneous"),
        ("three players", "pcfr_plus", "alternating"),
    ],
)
def test_locked_is_the_game_with_chance_moving_there(kind, variant, updates):
    game, lowered, rules = make(kind)
    rows = random_locks(rules, 1)
    explicit = naive.Rules(with_chance_at(game, rows))
    steps = naive.run(explicit, naive.rules_of(*VARIANTS[variant][1]), 12, updates == "alternating")
    locks = jaxcfr.lock(lowered, by_player(rows))
    state = jaxcfr.solve(lowered.tree, VARIANTS[variant][0], 12, updates=updates, locked=locks)
    average = by_set(lowered, jaxcfr.average_strategy(lowered.tree, state))
    current = by_set(lowered, jaxcfr.current_strategy(lowered.tree, state))
    regrets = by_set(lowered, [player.regrets.regret for player in state.players])
    assert_rows({w: r for w, r in average.items() if w in rows}, rows, 0, what="the lock")
    # Chance's moves are part of a counterfactual reach, and a player's own locks are not: a constant factor.
    moves = {which: rows.get(which, [F(1)] * count) for which, count in rules.sets.items()}
    factor = {w: x for p in range(game.num_players) for w, x in naive.own_reach(rules, moves, p).items()}
    scaled = {w: [float(factor[w]) * r for r in regrets[w]] for w in explicit.sets}
    reached = [w for w in explicit.sets if factor[w] > 0]
    last = steps[-1]
    assert_rows({w: average[w] for w in reached}, {w: last.average[w] for w in reached}, 1e-9, what="average")
    assert_rows({w: current[w] for w in reached}, {w: last.current[w] for w in reached}, 1e-9, what="current")
    assert_rows(scaled, last.regrets, 1e-9, what="regrets")


@pytest.mark.parametrize("kind", KINDS)
def test_gains_in_the_locked_game(kind):
    game, lowered, rules = make(kind)
    rows = random_locks(rules, 2)
    explicit = naive.Rules(with_chance_at(game, rows))
    profile = naive.random_profile(explicit, np.random.default_rng(3))
    full = {which: [float(x) for x in rows.get(which) or profile[which]] for which in rules.sets}
    strategy = lowered.strategy([[full[p, key] for key in keys] for p, keys in enumerate(lowered.infoset_keys)])
    locks = jaxcfr.lock(lowered, by_player(rows))
    payoffs = naive.expected(explicit, profile)
    best = [naive.best_response(explicit, profile, p)[0] for p in range(game.num_players)]
    gains = [float(b - v) for b, v in zip(best, payoffs, strict=True)]
    np.testing.assert_allclose(jaxcfr.gains(lowered.tree, strategy, locks), gains, atol=1e-12)
    assert float(jaxcfr.nash_conv(lowered.tree, strategy, locks)) == pytest.approx(sum(gains), abs=1e-12)
    assert float(jaxcfr.nash_conv(lowered.tree, strategy)) > sum(gains)


@pytest.mark.parametrize("updates", ["alternating", "best_response"])
def test_the_value_of_the_locked_game_is_that_of_its_linear_program(updates):
    game, lowered, rules = make("zero-sum")
    rows = random_locks(rules, 4)
    value = jaxcfr.solve_lp(jaxcfr.lower(with_chance_at(game, rows)).tree).value
    locks = jaxcfr.lock(lowered, by_player(rows))
    state = jaxcfr.solve(lowered.tree, jaxcfr.pcfr_plus(), 3000, updates=updates, locked=locks)
    strategy = jaxcfr.average_strategy(lowered.tree, state)
    gap = float(jaxcfr.nash_conv(lowered.tree, strategy, locks))
    assert gap < (0.01 if updates == "best_response" else 1e-3)
    np.testing.assert_allclose(jaxcfr.expected_payoffs(lowered.tree, strategy), value, atol=gap)
    free = jaxcfr.solve_lp(lowered.tree).value
    assert abs(free[0] - value[0]) > 1e-2, "these locks should cost something, or the test shows little"


def test_a_target_is_that_of_the_locked_game():
    lowered = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"))
    locks = jaxcfr.lock(lowered, {0: {"0": {"pass": 0.2, "bet": 0.8}, "2": [1, 0]}})
    state = jaxcfr.solve(lowered.tree, jaxcfr.pcfr_plus(), 100_000, locked=locks, target_exploitability=1e-4, every=100)
    assert int(state.t) < 10_000
    assert float(jaxcfr.exploitability(lowered.tree, jaxcfr.average_strategy(lowered.tree, state))) > 0.01


def test_the_cce_gap_is_that_of_the_locked_game():
    lowered = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"))
    locks = jaxcfr.lock(lowered, {0: {"0": [0.2, 0.8]}})
    state = jaxcfr.solve(lowered.tree, jaxcfr.pcfr_plus(), 500, locked=locks, track_cce=True)
    assert float(jaxcfr.cce_gap(lowered.tree, state).gap) < 1e-3


def test_locks_by_array_by_key_and_by_profile_are_the_same():
    _, lowered, rules = make("zero-sum")
    rows = random_locks(rules, 5)
    locks = jaxcfr.lock(lowered, by_player(rows))
    named = {
        p: {
            key: dict(zip(lowered.actions[p][lowered.infoset_numbers[p][key]], row, strict=True))
            for key, row in some.items()
        }
        for p, some in by_player(rows).items()
    }
    strategy = tuple(
        jnp.where(mask, fixed, treeplex.uniform)
        for mask, fixed, treeplex in zip(locks.masks, locks.strategy, lowered.tree.treeplexes, strict=True)
    )
    which = [np.array([(p, key) in rows for key in keys]) for p, keys in enumerate(lowered.infoset_keys)]
    arrays = jaxcfr.lock(lowered.tree, strategy, which)
    profile = jaxcfr.Profile.from_strategy(lowered, strategy)
    part = profile.restricted(
        [[key for key in keys if (p, key) in rows] for p, keys in enumerate(lowered.infoset_keys)], 0, 0, 0
    )
    for other in (jaxcfr.lock(lowered, named), arrays, jaxcfr.lock(lowered, part)):
        for p in range(2):
            np.testing.assert_array_equal(other.masks[p], locks.masks[p])
            np.testing.assert_allclose(
                jnp.where(locks.masks[p], other.strategy[p], 0), locks.strategy[p], atol=1e-15, rtol=0
            )


def test_locks_that_are_not_what_they_seem(tmp_path):
    """Of two entries for one action, or two information sets of one name, none is silently lost."""
    kuhn = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"))
    action = kuhn.actions[0][0][0]
    label = kuhn.action_labels[0][0][0]
    assert action != label
    key = kuhn.infoset_keys[0][0]
    with pytest.raises(errors.ProfileError, match="given twice"):
        jaxcfr.lock(kuhn, {0: {key: {action: 1.0, label: 1.0}}})
    for wrong in (True, np.True_, "1"):
        with pytest.raises(errors.ProfileError, match="no probability"):
            jaxcfr.lock(kuhn, {0: {key: [wrong, 0.0]}})
    path = tmp_path / "locks.json"
    path.write_text(f'{{"0": {{"{key}": [1, 0]}}}}')
    keys = ((*kuhn.infoset_keys[0][:-1], int(key)), kuhn.infoset_keys[1])  # shown as the text is
    with pytest.raises(errors.ProfileError, match="2 information sets that are shown as '0'"):
        jaxcfr.prescribed.read_locks(path, dataclasses.replace(kuhn, infoset_keys=keys))


def run_blended(rules, rule, iterations, alternating, policy, shares, one):
    """`naive.run` with a policy blended in: (average of what was played, own strategies) after each iteration."""
    update, scores, gamma = rule
    regrets = {which: [0 * one] * count for which, count in rules.sets.items()}
    sums = {which: [0 * one] * count for which, count in rules.sets.items()}

    def mixed(own, t):
        return {
            w: [(1 - shares[w[0]](t)) * a + shares[w[0]](t) * b for a, b in zip(row, policy[w], strict=True)]
            for w, row in own.items()
        }

    own = naive.uniform(rules, one)
    for t in range(1, iterations + 1):
        plays, after, new = mixed(own, t), mixed(own, t), dict(own)
        decay = one if t == 1 or gamma(t) == 0 else (one * (t - 1) / t) ** gamma(t)
        for player in range(rules.num_players):
            against = after if alternating else plays
            values = naive.counterfactual_values(rules, {**against, **naive._part(plays, player)}, player)
            reach = naive.own_reach(rules, plays, player)
            for which in rules.own_sets(player):
                r = naive._regret(values[which], own[which])
                regrets[which] = update(regrets[which], r, t)
                sums[which] = [s * decay + reach[which] * p for s, p in zip(sums[which], plays[which], strict=True)]
                new[which] = naive._proportional(naive._plus(scores(regrets[which], r, t)))
            after = {**after, **naive._part(mixed(new, t + 1), player)}
        own = new
    return {which: naive._proportional(sums[which]) for which in rules.sets}, own, regrets


SCHEDULES = {
    "constant": (jaxcfr.constant(0.25), lambda t: 0.25),
    "linear": (jaxcfr.linear(0.75, 0.0, 8), lambda t: 0.75 * max(0, 1 - t / 8)),
    "geometric": (jaxcfr.geometric(1.0, 0.5), lambda t: 0.5**t),
    "callable": (lambda t: 1 / (1 + t), lambda t: 1 / (1 + t)),
}


def random_policy(rules, seed):
    rng = np.random.default_rng(seed)
    rows = {}
    for which, count in rules.sets.items():
        weights = rng.integers(0, 4, count)
        weights[rng.integers(count)] += 1
        rows[which] = [F(int(w), int(weights.sum())) for w in weights]
    return rows


@pytest.mark.parametrize(
    ("kind", "schedule", "variant", "updates"),
    [
        ("zero-sum", "constant", "vanilla", "simultaneous"),
        ("zero-sum", "linear", "dcfr", "alternating"),
        ("three players", "geometric", "pcfr_plus", "alternating"),
        ("three players", "callable", "dcfr", "simultaneous"),
    ],
)
def test_blended_against_a_recursion(kind, schedule, variant, updates):
    game, lowered, rules = make(kind)
    policy = random_policy(rules, 6)
    theirs, ours = SCHEDULES[schedule][1], SCHEDULES[schedule][0]
    none, last = (lambda t: 0.0), game.num_players - 1
    shares = [theirs if p in (0, last) else none for p in range(game.num_players)]
    rows = {w: [float(x) for x in row] for w, row in policy.items()}
    average, own, regrets = run_blended(
        rules, naive.rules_of(*VARIANTS[variant][1]), 10, updates == "alternating", rows, shares, 1.0
    )
    # One policy as a function of the key, one as an array.
    array = lowered.strategy([[rows[p, key] for key in keys] for p, keys in enumerate(lowered.infoset_keys)])[last]
    blended = jaxcfr.blend(lowered, {0: (lambda key: policy[0, key], ours), last: (array, ours)})
    state = jaxcfr.solve(lowered.tree, VARIANTS[variant][0], 10, updates=updates, blended=blended)
    assert_rows(by_set(lowered, jaxcfr.average_strategy(lowered.tree, state)), average, 1e-9, what="average")
    assert_rows(by_set(lowered, jaxcfr.current_strategy(lowered.tree, state)), own, 1e-9, what="own strategy")
    assert_rows(by_set(lowered, [p.regrets.regret for p in state.players]), regrets, 1e-9, what="regrets")


def test_the_recursion_in_fractions():
    """The first iterations of Kuhn poker, exactly: player 1 plays half of a fixed policy, then a quarter, ..."""
    game = copied(jaxcfr.load_game("kuhn_poker"))
    rules, lowered = naive.Rules(game), jaxcfr.lower(game)
    policy = {which: [F(1, 3), F(2, 3)] for which in rules.sets}
    average, _, regrets = run_blended(
        rules, naive.rules_of("vanilla"), 5, True, policy, [lambda t: F(0), lambda t: F(1, 2**t)], F(1)
    )
    assert any(row != [F(1, 2)] * 2 for row in average.values())
    blended = jaxcfr.blend(lowered, {1: (lambda key: [1 / 3, 2 / 3], jaxcfr.geometric(1.0, 0.5))})
    state = jaxcfr.solve(lowered.tree, jaxcfr.vanilla(), 5, blended=blended)
    assert_rows(by_set(lowered, jaxcfr.average_strategy(lowered.tree, state)), average, 1e-14)
    assert_rows(by_set(lowered, [p.regrets.regret for p in state.players]), regrets, 1e-14)


@pytest.mark.parametrize("alternating", [True, False])
def test_a_constant_share_is_the_game_with_takeovers(alternating):
    """Also the equilibrium: its payoffs are the value of that game by a linear program."""
    game = copied(jaxcfr.load_game("kuhn_poker"))
    rules, lowered = naive.Rules(game), jaxcfr.lower(game)
    policy = {which: [(a + 1) / (len(row) + 1) for a in row] for which, row in random_policy(rules, 7).items()}
    shares = [F(1, 5), F(1, 3)]
    explicit = jaxcfr.lower(with_takeovers(game, policy, shares))
    updates = "alternating" if alternating else "simultaneous"
    blended = jaxcfr.blend(
        lowered, {p: (lambda key, p=p: policy[p, key], float(share)) for p, share in enumerate(shares)}
    )
    variant = jaxcfr.cfr_plus()
    mine = jaxcfr.solve(lowered.tree, variant, 12, updates=updates, blended=blended)
    theirs = jaxcfr.solve(explicit.tree, variant, 12, updates=updates)
    own = by_set(lowered, jaxcfr.current_strategy(lowered.tree, mine))
    for (player, (key, _)), row in by_set(explicit, jaxcfr.current_strategy(explicit.tree, theirs)).items():
        np.testing.assert_allclose(row, own[player, key], atol=1e-9)
    mine = jaxcfr.solve(lowered.tree, variant, 2000, updates=updates, blended=blended)
    average = jaxcfr.average_strategy(lowered.tree, mine)
    theirs = jaxcfr.solve(explicit.tree, variant, 2000, updates=updates)
    average_payoffs = jaxcfr.expected_payoffs(explicit.tree, jaxcfr.average_strategy(explicit.tree, theirs))
    np.testing.assert_allclose(jaxcfr.expected_payoffs(lowered.tree, average), average_payoffs, atol=1e-6)
    value = jaxcfr.solve_lp(explicit.tree).value
    np.testing.assert_allclose(jaxcfr.expected_payoffs(lowered.tree, average), value, atol=2e-3)


def test_the_average_rejoins_the_equilibrium_once_the_blend_has_decayed():
    lowered = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"))
    gaps = {}
    for name, schedule in {
        "constant": jaxcfr.constant(0.3),
        "geometric": jaxcfr.geometric(0.9, 0.95),
        "linear": jaxcfr.linear(1.0, 0.0, 200),
    }.items():
        policy = jaxcfr.uniform_strategy(lowered.tree)
        blended = jaxcfr.blend(lowered, dict.fromkeys(range(2), (policy, schedule)))
        state = jaxcfr.solve(lowered.tree, jaxcfr.dcfr_plus(), 4000, blended=blended)
        average = jaxcfr.average_strategy(lowered.tree, state)
        gaps[name] = float(jaxcfr.exploitability(lowered.tree, average))
        if name != "constant":
            value = jaxcfr.expected_payoffs(lowered.tree, average)[0]
            assert abs(float(value) + 1 / 18) < 1e-3
    assert gaps["geometric"] < 1e-4
    assert gaps["linear"] < 1e-4
    assert gaps["constant"] > 0.01


@pytest.mark.parametrize(
    "traversal",
    [
        jaxcfr.external_sampling(batch=60_000),
        jaxcfr.outcome_sampling(batch=60_000),
        jaxcfr.chance_sampling(batch=20_000),
    ],
    ids=["external", "outcome", "chance"],
)
def test_sampled_regrets_are_those_of_the_full_tree(traversal):
    """One iteration of three in which everything is prescribed somewhere; the tolerance is about five errors."""
    lowered = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"))
    locks = jaxcfr.lock(lowered, {0: {"2": [0.4, 0.6]}})
    blended = jaxcfr.blend(
        lowered, {0: (lambda key: [0.9, 0.1], 0.3), 1: (lambda key: [0.2, 0.8], jaxcfr.geometric(1.0, 0.5))}
    )
    exact = jaxcfr.solve(lowered.tree, jaxcfr.vanilla(), 1, locked=locks, blended=blended)
    sampled = jaxcfr.solve(
        lowered.tree, jaxcfr.vanilla(), 1, locked=locks, blended=blended, traversal=traversal, seed=1
    )
    for mine, theirs in zip(sampled.players, exact.players, strict=True):
        np.testing.assert_allclose(mine.regrets.regret, theirs.regrets.regret, atol=0.04)
        assert np.max(np.abs(mine.regrets.regret - theirs.regrets.regret)) > 0


def test_a_batch_and_going_on():
    """Shares and locks are leaves: they batch; and a state carries them on."""
    lowered = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"))
    tree = lowered.tree
    uniform = jaxcfr.uniform_strategy(tree)

    def average(share, first):
        locks = jaxcfr.lock(lowered, {0: {"0": [0.5, 0.5]}})
        fixed = locks.strategy[0].at[tree.treeplexes[0].first[0]].set(first)
        fixed = fixed.at[tree.treeplexes[0].first[0] + tree.treeplexes[0].stride[0]].set(1 - first)
        locks = dataclasses.replace(locks, strategy=(fixed, locks.strategy[1]))
        blended = jaxcfr.Blend((None, uniform[1]), (None, share))
        return jaxcfr.average_strategy(tree, jaxcfr.solve(tree, None, 20, locked=locks, blended=blended))

    shares, first = jnp.array([0.1, 0.5]), jnp.array([0.25, 1.0])
    together = jax.vmap(average)(shares, first)
    for number in range(2):
        one = average(shares[number], first[number])
        for a, b in zip(one, together, strict=True):
            np.testing.assert_allclose(a, b[number], atol=1e-12)
    blended = jaxcfr.blend(tree, {0: (uniform, 0.25)})
    state = jaxcfr.solve(tree, None, 7, blended=blended)
    whole = jaxcfr.solve(tree, None, 20, blended=blended)
    for a, b in zip(jax.tree.leaves(jaxcfr.solve(tree, None, 13, state)), jax.tree.leaves(whole), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_wrong_is_said():
    lowered = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"))
    tree, uniform = lowered.tree, jaxcfr.uniform_strategy(lowered.tree)
    other = jaxcfr.lower(jaxcfr.load_game("leduc_poker"))
    for wrong, error, words in [
        ({2: {"0": [1, 0]}}, errors.ProfileError, "from 0 to 1, not 2"),
        ({0: {"9": [1, 0]}}, errors.ProfileError, "'9'"),
        ({0: {"0": [1, 1]}}, errors.ProfileError, "'0'.*no distribution"),
        ({0: {"0": [1, 0, 0]}}, errors.ProfileError, "2 probabilities"),
        ({0: {"0": {"fold": 1}}}, errors.ProfileError, "'fold'"),
        ({0: {"0": ["a", "b"]}}, errors.ProfileError, "'a'"),
        ({0: {"0": [float("nan"), 1]}}, errors.ProfileError, "no distribution"),
        ({0: [1]}, errors.OptionError, "map keys"),
        ([1], errors.OptionError, "Profile or a mapping"),
    ]:
        with pytest.raises(error, match=words):
            jaxcfr.lock(lowered, wrong)
    with pytest.raises(errors.OptionError, match="LoweredGame"):
        jaxcfr.lock(tree, {0: {"0": [1, 0]}})
    with pytest.raises(errors.OptionError, match="6 booleans"):
        jaxcfr.lock(tree, uniform, [np.zeros(5, bool), None])
    with pytest.raises(errors.StrategyError):
        jaxcfr.lock(tree, jaxcfr.uniform_strategy(other.tree), [None, None])
    with pytest.raises(errors.StrategyError, match="another tree"):
        jaxcfr.solve(tree, locked=jaxcfr.lock(other.tree, jaxcfr.uniform_strategy(other.tree), [None, None]))
    with pytest.raises(errors.OptionError, match=r"jaxcfr\.lock returns"):
        jaxcfr.solve(tree, locked={0: {"0": [1, 0]}})
    with pytest.raises(errors.OptionError, match=r"jaxcfr\.blend returns"):
        jaxcfr.solve(tree, blended=0.5)
    for policies, error, words in [
        ({0: (uniform, 1.5)}, errors.OptionError, "between 0 and 1"),
        ({0: (uniform, jaxcfr.linear(2.0, 0, 10))}, errors.OptionError, "between 0 and 1"),
        ({0: (uniform, "much")}, errors.OptionError, "schedule"),
        ({3: (uniform, 0.5)}, errors.OptionError, "from 0 to 1"),
        ({0: (0.5, 0.5)}, errors.OptionError, "a policy is"),
        ({0: (uniform[1][:3], 0.5)}, errors.StrategyError, "shape"),
        ({0: (lambda key: [2, -1], 0.5)}, errors.ProfileError, "no distribution"),
    ]:
        with pytest.raises(error, match=words):
            jaxcfr.blend(lowered, policies)
    blended = jaxcfr.blend(tree, {0: (uniform, 0.5)})
    with pytest.raises(errors.OptionError, match="best responses"):
        jaxcfr.solve(tree, updates="best_response", blended=blended)
    with pytest.raises(errors.OptionError, match="pruning"):
        jaxcfr.solve(
            tree,
            jaxcfr.dcfr(),
            blended=blended,
            traversal=jaxcfr.external_sampling(pruning=jaxcfr.probabilistic_pruning()),
        )
    with pytest.raises(errors.OptionError, match="state keeps"):
        jaxcfr.solve(tree, None, 1, jaxcfr.solve(tree, None, 1), blended=blended)
