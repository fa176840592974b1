"""Closed parts of games, safe re-solving and node-rooted subgames."""

from __future__ import annotations

import functools
import itertools
import warnings
from typing import Any

import brute_force
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_games import from_seed

import jaxcfr
from jaxcfr import errors
from jaxcfr.games.kuhn_poker import KuhnPoker
from jaxcfr.linear_program import solve_lp
from jaxcfr.solve import _run
from jaxcfr.subgames.solved import SolvedSubgame

SAFE = ("resolve", "maxmargin", "reach")
BETS = ((1, 1), (1, 2, 1), (2, 1), (2, 2, 1), (1, 2, 2, 1))  # Leduc's first rounds without a fold


def rows(profile: jaxcfr.Profile) -> brute_force.Profile:
    return {
        (player, key): list(profile.average_strategy(player, key).values())
        for player, keys in enumerate(profile.infoset_keys)
        for key in keys
    }


def blueprint_of(game: Any, given: brute_force.Profile) -> jaxcfr.Blueprint:
    lowered = jaxcfr.lower(game)
    strategy = lowered.strategy([[given[p, key] for key in keys] for p, keys in enumerate(lowered.infoset_keys)])
    return jaxcfr.Blueprint(game, lowered, strategy)


def exactly(subgame: jaxcfr.PublicSubgame, safety: Any, values: Any = None) -> tuple[SolvedSubgame, list[float]]:
    """The equilibrium of the games that stand for a part, by linear programs; and their values to the opponents."""
    games = subgame.games(safety, values)
    solutions = [solve_lp(game.tree) for game in games]
    solved = SolvedSubgame(subgame.blueprint, subgame.part, games, [solution.strategy for solution in solutions])
    return solved, [float(s.value[game.opponent]) for s, game in zip(solutions, games, strict=True)]


def best_values(rules: brute_force.Rules, profile: brute_force.Profile) -> list[float]:
    return [float(brute_force.best_response(rules, profile, player)[0]) for player in range(2)]


@functools.cache
def kuhn() -> tuple[Any, jaxcfr.Blueprint]:
    game = jaxcfr.load_game("kuhn_poker")
    return game, jaxcfr.Blueprint.train(game, 2000, jaxcfr.cfr_plus())


@functools.cache
def leduc() -> tuple[Any, jaxcfr.Blueprint]:
    game = jaxcfr.load_game("leduc_poker")
    lowered = jaxcfr.lower(game)
    return game, jaxcfr.Blueprint(game, lowered, jaxcfr.uniform_strategy(lowered.tree))


def moves(history: Any) -> list[Any]:
    return [move for move, _ in history.chance_outcomes()] if history.is_chance() else list(history.legal_actions())


def decisions(game: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if game.is_terminal():
        return []
    own = [] if game.is_chance() else [path]
    return own + [found for move in moves(game) for found in decisions(game.step(move), (*path, move))]


# What belongs to a part


def closed_by_hand(game: Any, path: tuple[Any, ...]) -> set[tuple[Any, ...]]:
    """The closure under what players observe, on sets of paths."""
    seen: dict[tuple[Any, ...], Any] = {}

    def walk(history: Any, so_far: tuple[Any, ...]) -> None:
        seen[so_far] = history
        if not history.is_terminal():
            for move in moves(history):
                walk(history.step(move), (*so_far, move))

    walk(game, ())

    def views(history: Any) -> set[Any]:
        if history.is_terminal():
            return set()
        actor = None if history.is_chance() else history.player_to_act()
        return {(player, actor == player, history.infoset_key(player)) for player in range(2)}

    inside = {path}
    while True:
        met = {view for p in inside for view in views(seen[p])}
        more = {
            p
            for p, history in seen.items()
            if any(p[: len(start)] == start for start in inside) or views(history) & met
        }
        if more == inside:
            return inside
        inside = more


def test_the_closure_is_the_smallest_set_closed_under_what_players_observe() -> None:
    game, blueprint = kuhn()
    for path in decisions(game):
        subgame = jaxcfr.Subgame.public(game, blueprint, path)
        assert subgame.closure == "observation"
        expected = closed_by_hand(game, path)
        assert {blueprint.whole.path_to(int(row)) for row in np.flatnonzero(subgame.inside)} == expected
        assert set(subgame.root_paths) == {p for p in expected if len(p) == len(path)}


def test_leducs_five_subgames_and_closure_above_a_board_card() -> None:
    game, blueprint = leduc()
    for bets in BETS:
        subgame = jaxcfr.Subgame.public(game, blueprint, (0, 2, *bets))
        assert (subgame.num_roots, subgame.num_histories) == (30, 1830)
        assert subgame.game(0).num_root_infosets == subgame.game(1).num_root_infosets == 6
    seen = jaxcfr.Subgame.public(game, blueprint, (0, 2, 1, 1, 4))
    assert seen.num_roots == 20
    assert "closed under observation: 20 roots" in repr(seen)
    derived = jaxcfr.Subgame.public(game, blueprint, (0, 2, 1, 1, 4), closure="derived")
    # The board card came after the last action of both.
    assert derived.closure == "derived"
    assert max(map(len, derived.root_paths)) <= 4
    assert np.all(derived.inside[seen.inside])


def test_a_game_that_tells_nothing_about_idle_players_closes_by_the_tree() -> None:
    game = from_seed(1, 2, "zero")
    path = decisions(game)[-1]
    blueprint = blueprint_of(game, brute_force.uniform(brute_force.Rules(game)))
    assert jaxcfr.Subgame.public(game, blueprint, path).closure == "derived"
    with pytest.raises(errors.SubgameError, match=r'does not tell what players observe.*use closure="derived"'):
        jaxcfr.Subgame.public(game, blueprint, path, closure="observation")


def test_parts_are_closed_in_any_game() -> None:
    for seed in range(12):
        game = from_seed(seed, 2, "zero", exact=False)
        blueprint = blueprint_of(game, brute_force.uniform(brute_force.Rules(game)))
        whole = blueprint.whole
        for path in decisions(game):
            subgame = jaxcfr.Subgame.public(game, blueprint, path)
            inside, nodes = subgame.inside, whole.nodes
            assert inside[whole.step_along(path)[0]]
            assert np.all(inside[1:] | ~inside[nodes.parent[1:]])
            assert whole.straddling(inside) is None
            for player, (own, sequence) in enumerate(zip(nodes.num_actions, whole.sequence, strict=True)):
                # Histories where the player waits, with the same last action of its own.
                idle = (nodes.player != player) & (nodes.player != -2)
                for last in np.unique(sequence[idle & inside]):
                    assert np.all(inside[idle & (sequence == last)]), (seed, path, player, len(own))


class Whispering(KuhnPoker):
    """Tells whoever waits also the other's card: more than it will know when it acts."""

    __slots__ = ()

    def step(self, action: Any) -> Any:
        child = super().step(action)
        child.__class__ = type(self)
        return child

    def infoset_key(self, player: int) -> Any:
        key = super().infoset_key(player)
        acts = not self.is_chance() and not self.is_terminal() and self.player_to_act() == player
        return key if acts else (key, super().infoset_key(1 - player))


class Forgetful(Whispering):
    """Tells whoever waits nothing."""

    __slots__ = ()

    def infoset_key(self, player: int) -> Any:
        waits = self.is_chance() or self.is_terminal() or self.player_to_act() != player
        return "waiting" if waits else KuhnPoker.infoset_key(self, player)


@pytest.mark.parametrize("game", [Whispering(), Forgetful(), KuhnPoker()], ids=lambda game: type(game).__name__)
def test_whatever_a_game_says_to_those_who_wait_is_safe(game: Any) -> None:
    rules = brute_force.Rules(game)
    for seed in range(3):
        given = brute_force.random_profile(rules, np.random.default_rng(seed))
        before = best_values(rules, given)
        for path, safety in itertools.product([(0, 1), (0, 1, 0), (2, 1, 1), (1, 0, 0, 1)], SAFE):
            subgame = jaxcfr.Subgame.public(game, blueprint_of(game, given), path)
            solved, _ = exactly(subgame, safety)
            after = best_values(rules, rows(jaxcfr.compose_profiles(subgame.blueprint, solved)))
            assert np.all(np.array(after) <= np.array(before) + 1e-6), (seed, path, safety)


def test_all_parts_together_take_no_more_than_was_given() -> None:
    """Gifts are shared out: every part may take its share at once. Parts after the first action of Kuhn poker."""
    game, _ = kuhn()
    rules = brute_force.Rules(game)
    for seed in range(4):
        given = brute_force.random_profile(rules, np.random.default_rng(seed))
        before = best_values(rules, given)
        for safety in SAFE:
            composed = blueprint = blueprint_of(game, given)
            for path in [(0, 1, 0), (0, 1, 1)]:
                solved, _ = exactly(jaxcfr.Subgame.public(game, blueprint, path), safety)
                composed = composed.compose(solved)
            after = best_values(rules, rows(composed.profile()))
            assert np.all(np.array(after) <= np.array(before) + 1e-6), (seed, safety)


# Promises, against linear programs and brute force


def check_safety(seeds: range, paths_each: int) -> None:
    for seed in seeds:
        game = from_seed(seed, 2, ("zero", "constant")[seed % 2], exact=False)
        rules = brute_force.Rules(game)
        rng = np.random.default_rng(seed)
        given = brute_force.random_profile(rules, rng)
        blueprint = blueprint_of(game, given)
        before = best_values(rules, given)
        paths = decisions(game)
        for number, safety in itertools.product(rng.permutation(len(paths))[:paths_each], SAFE):
            subgame = jaxcfr.Subgame.public(game, blueprint, paths[number])
            solved, values = exactly(subgame, safety)
            after = best_values(rules, rows(jaxcfr.compose_profiles(blueprint, solved)))
            for resolving, value in zip(solved.games, values, strict=True):
                where = f"{safety}, seed {seed}, path {paths[number]}, player {resolving.players[0]}"
                assert after[resolving.opponent] <= before[resolving.opponent] + 1e-6, where
                if safety == "resolve":  # the value of the gadget is what the opponent had
                    assert value == pytest.approx(resolving.values.sum(), abs=1e-6), where
                else:  # no margin is negative
                    assert value <= 1e-6, where


def test_safe_resolving_never_helps_the_opponent() -> None:
    """From random strategies, on random games: no best response gets more than before, where the solve is exact."""
    check_safety(range(7), 6)


@pytest.mark.slow
def test_safe_resolving_never_helps_the_opponent_in_many_games() -> None:
    check_safety(range(100, 125), 12)


def test_the_opponents_values_are_counterfactual_best_response_values() -> None:
    game, blueprint = kuhn()
    rules = brute_force.Rules(game)
    given = rows(blueprint.profile())
    for path in decisions(game):
        subgame = jaxcfr.Subgame.public(game, blueprint, path)
        actor = int(blueprint.whole.nodes.player[subgame.row])
        resolving = subgame.game(1 - actor)  # whose opponent acts at the roots
        _, values = brute_force.best_response(rules, given, actor)
        for place, label in zip(resolving.part.roots, resolving.label, strict=True):
            root = blueprint.whole.path_to(int(resolving.part.rows[place]))
            key = blueprint.whole.step_along(root)[1].infoset_key(actor)
            assert resolving.values[label] == pytest.approx(float(max(values[actor, key])), abs=1e-12)


def test_values_given_wrong_cost_no_more_than_they_are_off() -> None:
    game, blueprint = kuhn()
    rules = brute_force.Rules(game)
    before = best_values(rules, rows(blueprint.profile()))
    rng = np.random.default_rng(3)
    for path in [(0, 1), (0, 1, 0), (2, 1, 1), (1, 2, 0, 1)]:
        subgame = jaxcfr.Subgame.public(game, blueprint, path)
        right = [subgame.game(player).values for player in range(2)]
        for eps in (0.3, 0.01):
            off = [rng.uniform(-eps, eps, len(values)) for values in right]
            solved, _ = exactly(subgame, "resolve", [v + d for v, d in zip(right, off, strict=True)])
            after = best_values(rules, rows(jaxcfr.compose_profiles(blueprint, solved)))
            for player in range(2):
                assert after[1 - player] <= before[1 - player] + np.abs(off[player]).sum() + 1e-7


def test_following_is_worth_its_counterfactual_value_in_the_whole_game() -> None:
    """The paper's identity, for the re-solved strategy and any strategy of the opponent below the roots."""
    game, blueprint = kuhn()
    solved = jaxcfr.Subgame.public(game, blueprint, (0, 1, 0)).solve(50, jaxcfr.cfr_plus())
    composed = blueprint.compose(solved)
    for resolving, strategy in zip(solved.games, solved.strategies, strict=True):
        player, opponent = resolving.players[0], resolving.opponent
        chosen = [resolving.lowered.probabilities(strategy, p) for p in range(2)]
        first = len(resolving.numbers[opponent])
        for number, key in enumerate(resolving.lowered.infoset_keys[opponent]):
            follow = np.array([0.0, 1.0])
            row = follow if number >= first else composed.profile().average_strategy(opponent, key).values()
            chosen[opponent][number] = np.array(list(row))
        values = jaxcfr.counterfactual_values(resolving.tree, resolving.lowered.strategy(chosen))[opponent]
        at = resolving.part.rows[resolving.part.roots]
        whole = composed.values[at, opponent] * composed.reaches[2][at] * composed.reaches[player][at]
        np.testing.assert_allclose(np.asarray(values.infosets)[first:], np.bincount(resolving.label, whole), atol=1e-12)


def test_always_rock() -> None:
    """Burch, Johanson and Bowling (2014): against fixed thirds every answer looks right, and "always rock" loses 1."""
    game = jaxcfr.load_game("rock_paper_scissors")
    third, rock = [1 / 3] * 3, [1.0, 0.0, 0.0]
    blueprint = blueprint_of(game, {(0, ""): third, (1, ""): third})
    subgame = jaxcfr.Subgame.public(game, blueprint, (0,))
    assert subgame.num_roots == 3
    unsafe = subgame.joint_game("unsafe")
    always = unsafe.lowered.strategy([[], [rock]])
    assert float(jaxcfr.nash_conv(unsafe.tree, always)) == pytest.approx(0, abs=1e-15)
    composed = blueprint.compose(SolvedSubgame(blueprint, subgame.part, [unsafe], [always]))
    assert float(jaxcfr.best_response_values(composed.lowered.tree, composed.strategy)[0]) == pytest.approx(1)
    safe = subgame.game(1)
    always = safe.lowered.strategy([[[0.0, 1.0]] * 3, [rock]])
    assert float(jaxcfr.nash_conv(safe.tree, always)) > 0.3
    solved, _ = exactly(subgame, "resolve")
    answer = blueprint.compose(solved).profile().average_strategy(1, "")
    np.testing.assert_allclose(list(answer.values()), third, atol=1e-9)


@pytest.mark.parametrize(
    "variant",
    [jaxcfr.cfr_plus(), jaxcfr.dcfr(1.5, 0.0, 2.0), jaxcfr.dcfr_plus(), jaxcfr.pcfr_plus()],
    ids=lambda variant: type(variant).__name__,
)
def test_every_variant_comes_back_to_a_unique_equilibrium(variant: Any) -> None:
    game = jaxcfr.load_game("rock_paper_scissors")
    blueprint = jaxcfr.Blueprint.train(game, 300, variant)
    solved = jaxcfr.Subgame.public(game, blueprint, (0,)).solve(300, variant)
    composed = blueprint.compose(solved)
    for a, b in zip(blueprint.strategy, composed.strategy, strict=True):
        np.testing.assert_allclose(a, b, atol=0.02)
    before, after = (jaxcfr.expected_payoffs(b.lowered.tree, b.strategy) for b in (blueprint, composed))
    np.testing.assert_allclose(before, after, atol=1e-3)
    gain = jaxcfr.nash_conv(composed.lowered.tree, composed.strategy) - jaxcfr.nash_conv(
        blueprint.lowered.tree, blueprint.strategy
    )
    assert float(gain) <= sum(solved.nash_convs()) + 1e-9


def test_leduc_resolved_from_an_equilibrium() -> None:
    """Figure 3 of the paper, short: the safe way falls and the unsafe way does not; the long runs are marked slow."""
    game, blueprint = leduc()
    strategy = jaxcfr.solve(blueprint.lowered.tree, jaxcfr.pdcfr_plus(), 6_000)
    tree = blueprint.lowered.tree
    blueprint = jaxcfr.Blueprint(game, blueprint.lowered, jaxcfr.average_strategy(tree, strategy))
    start = float(jaxcfr.exploitability(tree, blueprint.strategy))
    assert start < 1e-4
    found = {}
    subgames = [jaxcfr.Subgame.public(game, blueprint, (0, 2, *bets)) for bets in BETS]
    for safety, iterations in [("resolve", 100), ("resolve", 1600), ("unsafe", 100), ("unsafe", 1600)]:
        composed, error = blueprint, 0.0
        for subgame in subgames:
            size = _run._cache_size()
            solved = subgame.solve(iterations, jaxcfr.vanilla(), safety=safety, updates="simultaneous")  # type: ignore[arg-type]
            assert subgame is subgames[0] or _run._cache_size() == size  # one program serves all five
            if safety == "resolve":
                error += sum(solved.nash_convs())
            composed = composed.compose(solved)
        found[safety, iterations] = float(jaxcfr.exploitability(tree, composed.strategy))
        if safety == "resolve":
            assert found[safety, iterations] <= start + error / 2
    assert found["resolve", 1600] < found["resolve", 100] / 3  # 1/sqrt(T) would be a quarter
    assert found["resolve", 1600] < 0.025
    assert min(found["unsafe", 100], found["unsafe", 1600]) > 0.05


@pytest.mark.slow
def test_leduc_resolved_from_an_equilibrium_for_long() -> None:
    game = jaxcfr.load_game("leduc_poker")
    blueprint = jaxcfr.Blueprint.train(game, 200_000, jaxcfr.pdcfr_plus())
    tree = blueprint.lowered.tree
    assert float(jaxcfr.exploitability(tree, blueprint.strategy)) < 1e-10
    subgames = [jaxcfr.Subgame.public(game, blueprint, (0, 2, *bets)) for bets in BETS]

    def after(safety: Any, iterations: int, variant: Any, updates: Any = "alternating") -> float:
        composed = blueprint
        for subgame in subgames:
            composed = composed.compose(subgame.solve(iterations, variant, safety=safety, updates=updates))
        return float(jaxcfr.exploitability(tree, composed.strategy))

    assert after("resolve", 6250, jaxcfr.vanilla()) < 4e-3
    counts = (400, 1600, 6400, 25_600)
    curve = [after("resolve", n, jaxcfr.vanilla(), "simultaneous") for n in counts]
    slope = float(np.polyfit(np.log(counts), np.log(curve), 1)[0])
    assert -0.75 < slope < -0.45, curve  # 1/sqrt(T), or a little better
    assert after("resolve", 100_000, jaxcfr.cfr_plus()) < 2e-5
    assert after("resolve", 25_600, jaxcfr.pdcfr_plus()) < 1e-6
    for iterations in (400, 6400):
        for updates in ("simultaneous", "alternating"):
            assert after("unsafe", iterations, jaxcfr.vanilla(), updates) > 0.05


# Trees as arrays


@pytest.mark.parametrize("safety", ["resolve", "unsafe"])
def test_parts_are_solved_together_as_if_alone(safety: Any) -> None:
    """Of different shapes, and for players who do and do not get there."""
    game, blueprint = kuhn()
    subgames = [jaxcfr.Subgame.public(game, blueprint, path) for path in ((0, 1, 0), (0, 1, 1))]
    together = jaxcfr.solve_together(subgames, 20, jaxcfr.cfr_plus(), safety=safety)
    for subgame, both in zip(subgames, together, strict=True):
        alone = subgame.solve(20, jaxcfr.cfr_plus(), safety=safety)
        assert len(both.strategies) == len(alone.strategies)
        for x, y in zip(jax.tree.leaves(alone.strategies), jax.tree.leaves(both.strategies), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-9)
    with pytest.raises(errors.SubgameError, match="at least one"):
        jaxcfr.solve_together([])


@pytest.mark.parametrize("safety", [*SAFE, "unsafe", "shift"])
def test_with_roots_is_the_game_built_anew(safety: Any) -> None:
    game, blueprint = kuhn()
    other = jaxcfr.Blueprint(game, blueprint.lowered, jaxcfr.uniform_strategy(blueprint.lowered.tree))
    first, second = (jaxcfr.Subgame.public(game, b, (0, 1, 0)).games(safety)[0] for b in (blueprint, other))
    if safety == "shift":  # reaches below the roots stay those of the blueprint
        second = first
    tree = first.with_roots(second.root_reach, second.values)
    for a, b in zip(jax.tree.leaves(tree.payoffs), jax.tree.leaves(second.tree.payoffs), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-14)


# Node-rooted subgames


def test_the_shift_at_every_leaf() -> None:
    game, blueprint = kuhn()
    given = rows(blueprint.profile())

    def row(history: Any) -> list[tuple[Any, float]]:
        probabilities = given[history.player_to_act(), history.infoset_key(history.player_to_act())]
        return list(zip(history.legal_actions(), probabilities, strict=True))

    def value(history: Any, o: int) -> float:
        if history.is_terminal():
            return float(history.terminal_returns()[o])
        return sum(weight * value(history.step(action), o) for action, weight in row(history))

    def leaves(history: Any, o: int, v_o: float, reach: float, depth: int) -> list[tuple[int, list[float]]]:
        if history.is_terminal():
            payoffs = [float(u) for u in history.terminal_returns()]
            payoffs[o] += (reach - 1) * v_o
            return [(depth, payoffs)]
        mine = history.player_to_act() == o
        return [
            leaf
            for action, weight in row(history)
            for leaf in leaves(history.step(action), o, v_o, reach * (weight if mine else 1.0), depth + 1)
        ]

    for path in [(0, 1), (2, 0), (1, 2, 0), (0, 2, 0, 1)]:
        inner = game
        for action in path:
            inner = inner.step(action)
        subgame = jaxcfr.Subgame.at(game, blueprint, path)
        o = 1 - inner.player_to_act()
        v_o = value(inner, o)
        assert (subgame.opponent, subgame.v_o) == (o, pytest.approx(v_o))
        found = leaves(inner, o, v_o, 1.0, 0)
        breadth_first = [payoffs for _, payoffs in sorted(found, key=lambda pair: pair[0])]
        np.testing.assert_allclose(subgame.tree.terminal_payoffs, breadth_first, atol=1e-12)
        for made in (blueprint, blueprint.profile()):
            new = jaxcfr.Subgame.new(inner, made, o, v_o)
            np.testing.assert_allclose(new.tree.terminal_payoffs, breadth_first, atol=1e-12)
        with pytest.raises(errors.NotTwoPlayerConstantSumError):
            jaxcfr.exploitability(subgame.tree, jaxcfr.uniform_strategy(subgame.tree))


def test_one_program_serves_every_path_shift_and_payoff() -> None:
    game, blueprint = kuhn()
    subgames = [jaxcfr.Subgame.at(game, blueprint, (a, b)) for a in range(3) for b in range(3) if a != b]

    def strategy(tree: Any) -> Any:
        return jaxcfr.average_strategy(tree, jaxcfr.solve(tree, jaxcfr.cfr_plus(), 30))

    several = jax.vmap(strategy)(jaxcfr.stack([subgame.tree for subgame in subgames]))
    size = None
    for number, subgame in enumerate(subgames):
        np.testing.assert_allclose(several[0][number], strategy(subgame.tree)[0], atol=1e-10)
        assert size is None or _run._cache_size() == size
        size = _run._cache_size()
    shifts = [0.0, 0.5, -2.0]
    swept = jax.vmap(lambda v: strategy(subgames[0].with_shift(v)))(jnp.array(shifts))
    for number, shift in enumerate(shifts):
        again = jaxcfr.Subgame.new(game.step(0).step(1), blueprint, 1, shift)
        np.testing.assert_allclose(swept[1][number], strategy(again.tree)[1], atol=1e-10)


def test_open_subgames_warn_and_say_where() -> None:
    game, blueprint = kuhn()
    subgame = jaxcfr.Subgame.at(game, blueprint, (0, 1, 0))
    assert subgame.is_closed is False
    assert subgame.closed_under == ()
    with pytest.warns(errors.SubgameWarning, match=r"information set '0pb' of player 0 .*Subgame.public"):
        subgame.solve(1)
    bare = jaxcfr.Subgame.new(game.step(0).step(1), blueprint.profile(), 1, 0.0)
    assert bare.is_closed is None
    with pytest.warns(errors.SubgameWarning, match="not known from a profile alone"):
        bare.solve(1)


def test_closed_subgames_do_not_warn() -> None:
    game = jaxcfr.load_game("rock_paper_scissors")
    subgame = jaxcfr.Subgame.at(game, jaxcfr.Blueprint.train(game, 10), ())
    assert subgame.is_closed
    assert subgame.closed_under == ("information sets", "observation", "derived")
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.SubgameWarning)
        subgame.solve(10)


def test_parts_that_a_player_never_gets_to_keep_their_strategy() -> None:
    game, _ = kuhn()
    given = brute_force.uniform(brute_force.Rules(game))
    for card in "012":
        given[0, card] = [1.0, 0.0]  # player 0 never bets first
    subgame = jaxcfr.Subgame.public(game, blueprint_of(game, given), (0, 1, 1))
    assert subgame.roots(0) is None
    assert [resolving.players for resolving in subgame.games()] == [(1,)]
    with pytest.raises(errors.SubgameError, match=r"player 0 never gets to 0 > 1 > 1"):
        subgame.game(0)
    with pytest.raises(errors.SubgameError, match=r'the blueprint never gets to .* use safety="resolve"'):
        subgame.joint_game("unsafe")
    given[0, "0"] = [0.5, 0.5]  # and then with one card only, which leaves player 1 two
    resolving = jaxcfr.Subgame.public(game, blueprint_of(game, given), (0, 1, 1)).game(0)
    assert resolving.num_root_infosets == 2
    assert resolving.root_reach.tolist() == pytest.approx([1 / 12, 1 / 12, 0, 0])
