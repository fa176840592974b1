"""The core against brute force on random games (`random_games`, `brute_force`): every number is computed twice.

Most tests use forests: chance picks one of many random games, so that one compiled program checks them all. The names
of the games tell their seeds.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import brute_force as naive
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from random_games import (
    TreeGame,
    forest,
    from_seed,
    games,
    reordered,
    scaled,
    with_forced_moves,
    with_impossible_branches,
)

from jaxcfr import analytics
from jaxcfr.linear_program import solve_lp
from jaxcfr.regret import variants
from jaxcfr.solve import average_strategy, current_strategy, initial_state, iterate, solve
from jaxcfr.tree import layout, payoffs, treeplex
from jaxcfr.tree.build import build_tree
from jaxcfr.tree.game_tree import GameTree, Strategy
from jaxcfr.tree.lower import LoweredGame, _Walk, lower

KINDS: dict[str, tuple[int, str, int, dict[str, int]]] = {
    # players, sums, number of games, sizes
    "one player": (1, "general", 8, {"max_nodes": 24}),
    "zero-sum": (2, "zero", 14, {"depth": 4}),
    "general-sum": (2, "general", 10, {"depth": 4}),
    "three players": (3, "general", 10, {"depth": 4}),
}


def part_of(kind: str, number: int) -> TreeGame:
    """One game of the forest of a kind; half of the games hold floats instead of fractions."""
    players, sums, _, sizes = KINDS[kind]
    return from_seed(number, players, sums, exact=number % 2 == 0, **sizes)


@functools.cache
def make(kind: str) -> tuple[TreeGame, LoweredGame, naive.Rules]:
    """The forest of a kind, lowered, and walked."""
    game = forest([part_of(kind, number) for number in range(KINDS[kind][2])])
    lowered = lower(game)
    return game, lowered, naive.Rules(game)


def to_arrays(lowered: LoweredGame, profile: naive.Profile) -> Strategy:
    rows = [
        [[float(x) for x in profile[player, key]] for key in keys] for player, keys in enumerate(lowered.infoset_keys)
    ]
    return lowered.strategy(rows)


def by_set(lowered: LoweredGame, flats: Sequence[Any]) -> dict[naive.Set, list[float]]:
    """Flat vectors of all players as rows by information set; reads `first`, `stride` and `num_actions` only."""
    rows = {}
    for player, (keys, flat) in enumerate(zip(lowered.infoset_keys, flats, strict=True)):
        tables = lowered.tree.treeplexes[player]
        values = np.asarray(flat)
        where = zip(*(np.asarray(x).tolist() for x in (tables.first, tables.stride, tables.num_actions)), strict=True)
        for key, (first, stride, count) in zip(keys, where, strict=True):
            rows[player, key] = values[first : first + stride * count : stride].tolist()
    return rows


def assert_rows(
    actual: dict[naive.Set, list[float]],
    expected: dict[naive.Set, Any],
    tolerance: float,
    relative: float = 0.0,
    what: str = "",
) -> None:
    assert actual.keys() == expected.keys(), what
    for which, row in expected.items():
        close = np.allclose(actual[which], np.array([float(x) for x in row]), rtol=relative, atol=tolerance)
        assert close, f"{what} at {which}: {actual[which]}, brute force {[float(x) for x in row]}"


@functools.partial(jax.jit, static_argnames="updates")
def everything(tree: GameTree, strategy: Strategy, updates: Any = "alternating") -> dict[str, Any]:
    """What the core computes, in one program."""
    values = analytics.counterfactual_values(tree, strategy)
    responses = [analytics.counterfactual_best_response(tree, strategy, p) for p in range(tree.num_players)]
    state = initial_state(tree, variants.cfr_plus())
    state = jax.lax.fori_loop(0, 4, lambda _, s: iterate(tree, variants.cfr_plus(), s, updates), state)
    return {
        "values": tuple(v.actions for v in values),
        "infoset values": tuple(v.infosets for v in values),
        "CBV": tuple(r.values.actions for r in responses),
        "infoset CBV": tuple(r.values.infosets for r in responses),
        "response": tuple(r.strategy for r in responses),
        "response value": jnp.stack([r.value for r in responses]),
        "reach": analytics.counterfactual_reach(tree, strategy),
        "average": average_strategy(tree, state),
        "expected": analytics._evaluate(tree, strategy)[0] + tree.payoffs.offset,
        "best": analytics._evaluate(tree, strategy)[1] + tree.payoffs.offset,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_analytics(kind: str) -> None:
    game, lowered, rules = make(kind)
    tree = lowered.tree
    assert tree.num_histories == rules.num_histories
    assert tree.constant_sum == (kind == "zero-sum")
    assert tree.zero_sum == (kind == "zero-sum")
    players = range(rules.num_players)
    for seed in range(3):
        profile = naive.random_profile(rules, np.random.default_rng(seed), sparse=seed < 2)
        actual = everything(tree, to_arrays(lowered, profile))
        what = f"{game}, strategy of seed {seed}"
        np.testing.assert_allclose(
            actual["expected"], np.array(naive.expected(rules, profile), float), atol=1e-12, err_msg=what
        )
        best = [naive.best_response(rules, profile, p) for p in players]
        for name in ("best", "response value"):
            np.testing.assert_allclose(actual[name], [float(value) for value, _ in best], atol=1e-12, err_msg=what)

        parts = [naive.counterfactual_values(rules, profile, p) for p in players]
        values = {which: row for part in parts for which, row in part.items()}
        assert_rows(by_set(lowered, actual["values"]), values, 1e-12, what=what)
        cbv = {which: row for _, part in best for which, row in part.items()}
        assert_rows(by_set(lowered, actual["CBV"]), cbv, 1e-12, what=what)
        chosen = by_set(lowered, actual["response"])
        for which, row in cbv.items():
            # One action with probability 1, and no other is better, whether the set is reached or not.
            assert sorted(chosen[which]) == [0.0] * (len(row) - 1) + [1.0], what
            assert float(row[chosen[which].index(1.0)]) >= float(max(row)) - 1e-12, what
        for p, keys in enumerate(lowered.infoset_keys):
            own = [sum(map(lambda x, v: x * v, profile[p, key], values[p, key])) for key in keys]
            np.testing.assert_allclose(actual["infoset values"][p], np.array(own, float), atol=1e-12, err_msg=what)
            own = [max(cbv[p, key]) for key in keys]
            np.testing.assert_allclose(actual["infoset CBV"][p], np.array(own, float), atol=1e-12, err_msg=what)
            # Playing the response gets what it promises.
            mixed = {**profile, **{which: row for which, row in chosen.items() if which[0] == p}}
            got = float(naive.expected(rules, mixed)[p])
            assert got == pytest.approx(float(actual["response value"][p]), abs=1e-12), what

        reach = {}
        for p in players:
            others = naive.others_reach(rules, profile, p)
            for which in rules.own_sets(p):
                reach[which] = [sum(others[id(h)] for h in rules.members[which])] * rules.sets[which]
        assert_rows(by_set(lowered, actual["reach"]), reach, 1e-12, what=what)


def test_public_functions() -> None:
    """The functions that users call, on three players."""
    game, lowered, rules = make("three players")
    profile = naive.random_profile(rules, np.random.default_rng(7))
    strategy, tree = to_arrays(lowered, profile), lowered.tree
    expected = [float(x) for x in naive.expected(rules, profile)]
    np.testing.assert_allclose(analytics.expected_payoffs(tree, strategy), expected, atol=1e-12)
    best = [naive.best_response(rules, profile, p) for p in range(3)]
    values = [float(value) for value, _ in best]
    np.testing.assert_allclose(analytics.best_response_values(tree, strategy), values, atol=1e-12)
    gains = np.array(values) - expected
    np.testing.assert_allclose(analytics.gains(tree, strategy), gains, atol=1e-12)
    np.testing.assert_allclose(analytics.nash_conv(tree, strategy), gains.sum(), atol=1e-12)
    for p in range(3):
        response = analytics.best_response(tree, strategy, p)
        assert float(response.value) == pytest.approx(values[p], abs=1e-12)
        mixed = (*strategy[:p], response.strategy, *strategy[p + 1 :])
        assert float(analytics.expected_payoffs(tree, mixed)[p]) == pytest.approx(values[p], abs=1e-12)
        again = analytics.counterfactual_best_response(tree, strategy, p)
        np.testing.assert_array_equal(again.strategy, response.strategy)
    rows = by_set(lowered, [v.actions for v in analytics.counterfactual_values(tree, strategy)])
    for p in range(3):
        wanted = naive.counterfactual_values(rules, profile, p)
        assert_rows({which: rows[which] for which in wanted}, wanted, 1e-12, what=str(game))


@pytest.mark.parametrize("kind", KINDS)
def test_best_response_is_the_maximum_over_pure_strategies(kind: str) -> None:
    """The forest's best response is the mean of the games', whose pure strategies are enumerated one by one."""
    _, lowered, rules = make(kind)
    profile = naive.random_profile(rules, np.random.default_rng(11))
    count = len(rules.root.children)
    total = np.zeros(rules.num_players)
    enumerated = 0
    for number in range(count):
        small = naive.Rules(part_of(kind, number))
        part = {(p, key): profile[p, (number, key)] for p, key in small.sets}
        for player in range(small.num_players):
            if naive.num_pure(small, player) <= naive.TOO_MANY:
                enumerated += 1
                total[player] += naive.pure_payoffs(small, [part], player).max()
            else:
                total[player] += float(naive.best_response(small, part, player)[0])
    assert enumerated >= 0.7 * count * rules.num_players
    best = everything(lowered.tree, to_arrays(lowered, profile))["best"]
    np.testing.assert_allclose(best, total / count, atol=1e-12)


RUNS: list[tuple[str, str, tuple[float, ...], str]] = [
    ("zero-sum", "vanilla", (), "alternating"),
    ("zero-sum", "vanilla", (), "simultaneous"),
    ("zero-sum", "cfr_plus", (), "alternating"),
    ("zero-sum", "cfr_plus", (), "simultaneous"),
    ("general-sum", "vanilla", (), "alternating"),
    ("three players", "vanilla", (), "simultaneous"),
    ("three players", "cfr_plus", (), "alternating"),
    # Those with other numbers of the same variant share its compiled program.
    ("three players", "dcfr", (1.5, 0.0, 2.0), "alternating"),
    ("three players", "dcfr", (1.5, -0.5, 3.0), "alternating"),
    ("three players", "linear_cfr", (), "alternating"),
    ("one player", "pcfr_plus", (2.0,), "alternating"),
    ("one player", "sapcfr_plus", (2.0,), "alternating"),
    ("general-sum", "dcfr_plus", (1.5, 4.0), "simultaneous"),
    ("general-sum", "dcfr_plus", (2.0, 1.0, 1.5), "simultaneous"),
    ("general-sum", "pdcfr_plus", (2.3, 5.0), "alternating"),
    ("one player", "hs_dcfr", (30.0, 20.0), "alternating"),
    ("one player", "hs_dcfr", (15.0, 6.0), "alternating"),
    ("one player", "hs_cfr_plus", (30.0, 9.0), "simultaneous"),
    ("general-sum", "hs_pcfr_plus", (30.0, 8.0), "alternating"),
]


@pytest.mark.parametrize(("kind", "name", "numbers", "updates"), RUNS)
def test_iterations(kind: str, name: str, numbers: tuple[float, ...], updates: Any) -> None:
    """Stored regrets, average and next strategies of six iterations, against a recursion over histories."""
    game, lowered, rules = make(kind)
    steps = naive.run(rules, naive.rules_of(name, *numbers), 6, updates == "alternating")
    variant = variants.VARIANTS[name](*numbers)
    state = None
    for t, step in enumerate(steps, 1):
        state = solve(lowered.tree, variant, 1, state, updates=updates)
        what = f"{name}{numbers}, {updates}, t = {t}, {game}"
        regrets = by_set(lowered, [player.regrets.regret for player in state.players])
        assert_rows(regrets, step.regrets, 1e-10, what=f"regrets, {what}")
        assert_rows(by_set(lowered, current_strategy(lowered.tree, state)), step.current, 1e-10, what=f"next, {what}")
        average = average_strategy(lowered.tree, state)
        assert_rows(by_set(lowered, average), step.average, 1e-10, what=f"average, {what}")


@pytest.mark.parametrize(("name", "updates"), [("vanilla", "alternating"), ("cfr_plus", "simultaneous")])
def test_iterations_exactly(name: str, updates: Any) -> None:
    """Three iterations in exact fractions, on games whose numbers are fractions: no rule about rounding is needed."""
    small = [from_seed(seed, 2, "zero", max_nodes=24) for seed in range(200, 206)]
    lowered = lower(forest(small))
    state = solve(lowered.tree, variants.VARIANTS[name](), 3, updates=updates)
    average = by_set(lowered, average_strategy(lowered.tree, state))
    regrets = by_set(lowered, [player.regrets.regret for player in state.players])
    for number, game in enumerate(small):
        rules = naive.Rules(game)
        step = naive.run(rules, naive.rules_of(name), 3, updates == "alternating", Fraction(1))[-1]
        assert all(isinstance(x, Fraction) for row in step.average.values() for x in row)
        for (player, key), row in step.average.items():
            assert average[player, (number, key)] == pytest.approx([float(x) for x in row], abs=1e-12), game
            stored = [float(x) / len(small) for x in step.regrets[player, key]]
            assert regrets[player, (number, key)] == pytest.approx(stored, abs=1e-12), game


def zero_sum_parts() -> Iterable[tuple[TreeGame, naive.Rules]]:
    for seed in range(300, 312):
        game = from_seed(seed, 2, "zero", max_nodes=28)
        rules = naive.Rules(game)
        if max(naive.num_pure(rules, p) for p in (0, 1)) <= 1500:
            yield game, rules


def test_values_of_zero_sum_games() -> None:
    """The linear program over pure strategies, the sequence form, and the solver, on the same games."""
    parts = list(zero_sum_parts())
    assert len(parts) >= 8
    values = [naive.matrix_game_value(rules) for _, rules in parts]
    together = forest([game for game, _ in parts])
    lowered = lower(together)
    solution = solve_lp(lowered.tree)
    np.testing.assert_allclose(solution.value, np.array([1, -1]) * np.mean(values), atol=1e-8)
    assert float(analytics.nash_conv(lowered.tree, solution.strategy)) < 1e-6
    state = solve(lowered.tree, variants.pdcfr_plus(), 4000)
    average = average_strategy(lowered.tree, state)
    profile = by_set(lowered, average)
    for number, ((game, rules), value) in enumerate(zip(parts, values, strict=True)):
        mine = {(p, key): profile[p, (number, key)] for p, key in rules.sets}
        assert float(naive.expected(rules, mine)[0]) == pytest.approx(value, abs=1e-6), game
        # Both sides of the value, so each player's strategy is optimal on its own.
        assert float(naive.best_response(rules, mine, 0)[0]) == pytest.approx(value, abs=1e-6), game
        assert float(naive.best_response(rules, mine, 1)[0]) == pytest.approx(-value, abs=1e-6), game
    for game, rules in parts[:3]:
        assert solve_lp(lower(game).tree).value[0] == pytest.approx(naive.matrix_game_value(rules), abs=1e-8), game


def test_linear_program_of_a_constant_sum_game() -> None:
    game, rules = next(iter(zero_sum_parts()))
    value = naive.matrix_game_value(rules)
    moved = lower(scaled(game, Fraction(3), [Fraction(10), Fraction(1)]))
    assert moved.tree.constant_sum
    assert not moved.tree.zero_sum
    np.testing.assert_allclose(solve_lp(moved.tree).value, [3 * value + 10, 1 - 3 * value], atol=1e-8)


@pytest.mark.parametrize(
    ("kind", "name", "updates"),
    [
        ("three players", "vanilla", "simultaneous"),
        ("general-sum", "cfr_plus", "alternating"),
    ],
)
def test_gap_to_a_coarse_correlated_equilibrium(kind: str, name: str, updates: Any) -> None:
    """`cce_gap` from the strategies that were played, with every pure deviation tried."""
    _, lowered, rules = make(kind)
    iterations = 5
    steps = naive.run(rules, naive.rules_of(name), iterations, updates == "alternating")
    state = solve(lowered.tree, variants.VARIANTS[name](), iterations, updates=updates, track_cce=True)
    gap = analytics.cce_gap(lowered.tree, state)
    weights = np.array([float(t if name == "cfr_plus" else 1) for t in range(1, iterations + 1)])
    weights /= weights.sum()
    players, _, count, _ = KINDS[kind]
    expected = np.zeros(players)
    for number in range(count):
        small = naive.Rules(part_of(kind, number))
        played = [{(p, key): step.played[p, (number, key)] for p, key in small.sets} for step in steps]
        got = np.array([[float(x) for x in naive.expected(small, profile)] for profile in played])
        for player in range(players):
            if naive.num_pure(small, player) <= naive.TOO_MANY:
                best = (naive.pure_payoffs(small, played, player) @ weights).max()
            else:
                best = _best_against_mixture(small, played, weights, player)
            expected[player] += (best - weights @ got[:, player]) / count
    np.testing.assert_allclose(gap.gains, expected, atol=1e-10)
    np.testing.assert_allclose(gap.gap, max(expected.max(), 0), atol=1e-10)
    if name == "vanilla" and updates == "simultaneous":
        # The player's regret is at most the sum of the positive regrets of its information sets (Zinkevich et al.).
        for player in range(players):
            bound = sum(max(*map(float, row), 0.0) for (p, _), row in steps[-1].regrets.items() if p == player)
            assert float(gap.gains[player]) <= bound / iterations + 1e-12


def _best_against_mixture(rules: naive.Rules, played: list[naive.Profile], weights: np.ndarray, player: int) -> float:
    """The best response to a mixture of profiles: chance draws the profile first, and nobody sees which."""
    values: dict[naive.Set, list[float]] = {}
    reaches = [naive.others_reach(rules, profile, player) for profile in played]

    def below(history: naive.History, number: int) -> float:
        if history.owner == "terminal":
            return float(history.payoffs[player])
        if history.owner == player:
            row = worth(history.set)
            return below(history.children[row.index(max(row))], number)
        shares = history.probabilities if history.owner == "chance" else played[number][history.set]
        return sum(float(w) * below(child, number) for w, child in zip(shares, history.children, strict=True))

    def worth(which: naive.Set) -> list[float]:
        if which not in values:
            values[which] = [
                sum(
                    weights[k] * float(reaches[k][id(h)]) * below(h.children[action], k)
                    for k in range(len(played))
                    for h in rules.members[which]
                )
                for action in range(rules.sets[which])
            ]
        return values[which]

    return sum(weights[k] * below(rules.root, k) for k in range(len(played)))


def strategies_after(game: TreeGame, iterations: int = 5) -> dict[naive.Set, dict[Any, float]]:
    """Average strategies after a few CFR+ iterations, by information set and action."""
    lowered = lower(game)
    average = average_strategy(lowered.tree, solve(lowered.tree, variants.cfr_plus(), iterations))
    rows = by_set(lowered, average)
    return {
        (player, key): dict(zip(actions, rows[player, key], strict=True))
        for player, keys in enumerate(lowered.infoset_keys)
        for key, actions in zip(keys, lowered.actions[player], strict=True)
    }


@functools.cache
def lawful() -> tuple[TreeGame, dict[naive.Set, dict[Any, float]]]:
    game = forest([from_seed(seed, 2, "zero", depth=4) for seed in range(400, 408)])
    return game, strategies_after(game)


LAWS = {
    "times 1e6": lambda game: scaled(game, Fraction(10**6)),
    "times 1e-6": lambda game: scaled(game, Fraction(1, 10**6)),
    "constant added": lambda game: scaled(game, Fraction(1), [Fraction(5), Fraction(-2)]),
    "children reordered": lambda game: reordered(game, 1),
    "forced moves": lambda game: with_forced_moves(game, 2),
    "impossible branches": lambda game: with_impossible_branches(game, 3),
}


@pytest.mark.parametrize("law", LAWS)
def test_strategies_stay_the_same(law: str) -> None:
    game, before = lawful()
    changed = LAWS[law](game)
    after = strategies_after(changed)
    if law in ("forced moves", "impossible branches"):
        assert len(after) > len(before)
    for which, row in before.items():
        assert after[which].keys() == row.keys()
        for action, probability in row.items():
            assert after[which][action] == pytest.approx(probability, abs=1e-10), (law, which, changed)


def test_numbers_of_information_sets_do_not_matter() -> None:
    """The same node table with its information sets renumbered."""
    game, before = lawful()
    walk = _Walk(game, 10**6)
    walk.run()
    table = walk.table()
    rng = np.random.default_rng(0)
    new = [rng.permutation(len(counts)) for counts in table.num_actions]
    infoset = table.infoset.copy()
    num_actions = []
    for player, counts in enumerate(table.num_actions):
        rows = table.player == player
        infoset[rows] = new[player][table.infoset[rows]]
        moved = np.empty_like(counts)
        moved[new[player]] = counts
        num_actions.append(moved)
    tree = build_tree(dataclasses.replace(table, infoset=infoset, num_actions=tuple(num_actions)))
    average = average_strategy(tree, solve(tree, variants.cfr_plus(), 5))
    for player, keys in enumerate(walk.numbers):
        for key, number in keys.items():
            tables = tree.treeplexes[player]
            moved = int(new[player][number])
            flat = int(tables.first[moved]) + int(tables.stride[moved]) * np.arange(int(tables.num_actions[moved]))
            row = np.asarray(average[player])[flat]
            np.testing.assert_allclose(row, list(before[player, key].values()), atol=1e-10, err_msg=str(key))


@jax.jit
def essentials(tree: GameTree, strategy: Strategy) -> dict[str, Any]:
    """Both passes over the decision trees, and the payoff product, in one program."""
    state = initial_state(tree, variants.cfr_plus())
    state = jax.lax.fori_loop(0, 3, lambda _, s: iterate(tree, variants.cfr_plus(), s, "alternating"), state)
    return {
        "regrets": tuple(player.regrets.regret for player in state.players),
        "average": average_strategy(tree, state),
        "best": analytics._evaluate(tree, strategy)[1] + tree.payoffs.offset,
    }


def results(game: TreeGame, **options: Any) -> tuple[GameTree, dict[str, Any]]:
    """`essentials` by information set, for one layout of a game."""
    walk = _Walk(game, 10**6)
    walk.run()
    tree = build_tree(walk.table(), **options)
    keys = tuple(tuple(numbers) for numbers in walk.numbers)
    lowered = LoweredGame(tree, "", keys, tuple(map(tuple, walk.actions)), tuple(map(tuple, walk.labels)))
    profile = naive.random_profile(naive.Rules(game), np.random.default_rng(3))
    found = essentials(tree, to_arrays(lowered, profile))
    return tree, {name: part if name == "best" else by_set(lowered, part) for name, part in found.items()}


@functools.cache
def plain(kind: str) -> tuple[TreeGame, tuple[GameTree, dict[str, Any]]]:
    """A smaller forest, and what the core says of it in the usual layout, which the other tests check."""
    if kind == "deep":
        game = forest([from_seed(seed, 2, "general", depth=9) for seed in (0, 1)])
    else:
        players, sums, _, _ = KINDS[kind]
        game = forest([from_seed(seed, players, sums, depth=3) for seed in range(600, 608)])
    return game, results(game)


def assert_same_results(kind: str, other: tuple[GameTree, dict[str, Any]]) -> None:
    for name, values in plain(kind)[1][1].items():
        if name == "best":
            np.testing.assert_allclose(other[1][name], values, atol=1e-12)
        else:
            assert_rows(other[1][name], values, 1e-12, what=name)


@pytest.mark.parametrize(("kind", "density"), [("zero-sum", 0.0), ("zero-sum", 2.0), ("general-sum", 0.0)])
def test_layouts_of_payoffs(kind: str, density: float) -> None:
    game, usual = plain(kind)
    other = results(game, block_density=density)
    assert jax.tree.structure(other[0]) != jax.tree.structure(usual[0])
    assert bool(other[0].payoffs.blocks) == (density <= 1)
    assert bool(other[0].payoffs.entries) == (density > 0)
    assert_same_results(kind, other)


def test_layout_of_large_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks multiplied as batches of matrices, as large ones are, instead of side by side."""
    game, usual = plain("zero-sum")
    monkeypatch.setattr(payoffs, "SMALL_BLOCK", 0)
    assert usual[0].payoffs.blocks
    # How blocks are read is no part of a tree's structure: no program of another layout may be taken.
    essentials.clear_cache()
    other = results(game)
    essentials.clear_cache()
    assert_same_results("zero-sum", other)


@pytest.mark.parametrize("overhead", [0, 10**6])
def test_layouts_of_buckets(overhead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table for every number of actions, and one table for all, padded."""
    game, _ = plain("three players")
    monkeypatch.setattr(treeplex, "BUCKET_OVERHEAD", overhead)
    other = results(game)
    for tables in other[0].treeplexes:
        padding = tables.size - (tables.num_sequences - 1)
        counts = len(np.unique(tables.num_actions))
        assert counts > 1
        assert (padding > 0, len(tables.tables)) == ((False, counts) if overhead == 0 else (True, 1))
    assert_same_results("three players", other)


SCANS = {
    # Which levels begin a run; all others go on with the run before.
    "first level alone": ("deep", lambda level: level in (0, 1), 8),
    "pairs of levels": ("deep", lambda level: level % 2 == 0, 8),
    "child sums by scatters": ("deep", lambda level: level in (0, 3), 0),
}


@pytest.mark.parametrize("split", SCANS)
def test_scanned_levels(split: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels folded into scans give what unrolled levels give."""
    kind, begins, limit = SCANS[split]
    game, usual = plain(kind)

    def runs(widest: np.ndarray, columns: np.ndarray, entries: np.ndarray) -> list[tuple[int, int]]:
        levels = len(widest)
        return list(itertools.pairwise([*filter(begins, range(levels)), levels]))

    monkeypatch.setattr(treeplex, "level_runs", runs)
    monkeypatch.setattr(treeplex, "SCAN_GATHER_LIMIT", limit)
    other = results(game)
    for tables in other[0].treeplexes:
        assert any(stage.num_levels > 1 for stage in tables.stages)
        assert len(tables.inner_children) == len(tables.stages)
    by_scatters = [c.shape for t in other[0].treeplexes for c in t.inner_children if c.shape[0] and not c.shape[1]]
    assert bool(by_scatters) == (limit == 0)
    assert_same_results(kind, other)
    assert usual[0].num_sequences == other[0].num_sequences


def test_scans_by_the_usual_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    game, _ = plain("general-sum")
    monkeypatch.setattr(layout, "UNROLLED_LEVELS", 0)
    other = results(game)
    assert any(stage.num_levels > 1 for tables in other[0].treeplexes for stage in tables.stages)
    assert_same_results("general-sum", other)


def test_segment_sums_on_either_platform() -> None:
    """The gathers meant for accelerators and the scatter-add meant for CPUs sum the same, and as numpy does."""
    leaves = jax.tree.leaves(make("three players")[1].tree, is_leaf=lambda x: isinstance(x, treeplex.SegmentSum))
    found = [leaf for leaf in leaves if isinstance(leaf, treeplex.SegmentSum) and len(leaf.row)]
    assert len(found) >= 8
    rng = np.random.default_rng(0)
    values = [jnp.asarray(rng.normal(size=len(total.row))) for total in found]
    scattered, gathered = jax.jit(
        lambda found, values: (
            [total._scatter(v) for total, v in zip(found, values, strict=True)],
            [total._gather(v) for total, v in zip(found, values, strict=True)],
        )
    )(found, values)
    for total, v, *sums in zip(found, values, scattered, gathered, strict=True):
        expected = np.zeros(total.num_rows)
        np.add.at(expected, np.asarray(total.row), np.asarray(v))
        for number in sums:
            np.testing.assert_allclose(number, expected, atol=1e-13)


@settings(max_examples=4, derandomize=True, suppress_health_check=list(HealthCheck))
@given(games(max_nodes=14, depth=3))
def test_small_games(game: TreeGame) -> None:
    """Single games, which hypothesis shrinks when something fails (terminal roots and players who never move too)."""
    lowered, rules = lower(game), naive.Rules(game)
    profile = naive.random_profile(rules, np.random.default_rng(0))
    actual = essentials(lowered.tree, to_arrays(lowered, profile))
    best = [
        naive.pure_payoffs(rules, [profile], player).max()
        if naive.num_pure(rules, player) <= naive.TOO_MANY
        else float(naive.best_response(rules, profile, player)[0])
        for player in range(rules.num_players)
    ]
    np.testing.assert_allclose(actual["best"], best, atol=1e-12)
    step = naive.run(rules, naive.rules_of("cfr_plus"), 3, True)[-1]
    assert_rows(by_set(lowered, actual["average"]), step.average, 1e-10)
