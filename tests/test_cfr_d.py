"""CFR-D: what decomposing gives, what the trunk learns, and what the solution is worth in the whole game."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import math
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_games import from_seed

import jaxcfr
from jaxcfr import checkpoint, cli, errors
from jaxcfr.decomposition import CFRDSolution, Decomposition, LPSolver, cfr_d, decompose
from jaxcfr.decomposition import run as runs
from jaxcfr.decomposition.solvers import CFRSolver
from jaxcfr.decomposition.subtree import root_values

BETS = ((1, 1), (1, 2, 1), (2, 1), (2, 2, 1), (1, 2, 2, 1))  # Leduc's first rounds without a fold


@functools.cache
def kuhn() -> tuple[Any, Decomposition]:
    game = jaxcfr.load_game("kuhn_poker")
    return game, decompose(game, 3)


@functools.cache
def leduc() -> tuple[Any, Decomposition]:
    game = jaxcfr.load_game("leduc_poker")
    return game, decompose(game, "round")


def in_whole(game: Any, profile: jaxcfr.Profile) -> float:
    """Exploitability by the whole tree."""
    lowered = jaxcfr.lower(game)
    return float(jaxcfr.exploitability(lowered.tree, profile.to_strategy(lowered)))


# Decomposing


def test_leducs_first_round_leaves_five_subgames() -> None:
    _, cut = leduc()
    assert cut.num_subgames == 5
    assert cut.num_histories == 9_457
    assert cut.lowered.tree.num_histories == 457
    assert {(s.histories, s.roots, s.infosets, s.root_infosets) for s in cut.subgames} == {
        (1_830, 30, (90, 90), (6, 6))
    }
    assert sorted(cut.path(number)[2:] for number in range(5)) == sorted(BETS)
    for number in range(5):
        assert {cut.find((first, second, *cut.path(number)[2:])) for first, second in ((0, 1), (5, 2))} == {number}
        assert cut.find((*cut.path(number)[:2], *cut.path(number)[2:], 3, 1)) == number
    # They differ in payoffs only, so one batch solves them all.
    assert len(cut.batches()) == 1
    assert "5 of 1 structure" in cut.report()
    with pytest.raises(errors.SubgameError, match="trunk"):
        cut.find((0, 1, 1))


@pytest.mark.parametrize("ranks", [4, 6])
def test_leducs_subgames_are_five_whatever_the_ranks(ranks: int) -> None:
    cut = decompose(jaxcfr.load_game(f"leduc_poker(ranks={ranks})"), "round")
    assert cut.num_subgames == 5


def test_subgames_are_the_closed_parts_of_safe_resolving() -> None:
    game, cut = leduc()
    blueprint = jaxcfr.Blueprint.train(game, 1)
    for number in range(cut.num_subgames):
        part = jaxcfr.Subgame.public(game, blueprint, cut.path(number))
        piece = cut.source.piece(number)
        np.testing.assert_array_equal(piece.part.rows, part.part.rows)
        for player in range(2):
            np.testing.assert_array_equal(piece.label[player], part._labels(player))


@pytest.mark.parametrize("seed", range(6))
def test_trunk_and_subgames_share_no_information_set(seed: int) -> None:
    game = from_seed(seed, num_players=2, sums="zero")
    lowered = jaxcfr.lower(game)
    for depth in range(1, 4):
        try:
            cut = decompose(game, depth)
        except errors.SubgameError:
            continue
        met = [np.zeros(count, int) for count in lowered.tree.num_infosets]
        histories = 0
        for number in range(cut.num_subgames):
            part = cut.source.piece(number).part
            histories += len(part.rows) - len(part.roots)
            for player in range(2):
                met[player][part.infosets(player)] += 1
        assert histories + cut.lowered.tree.num_histories == lowered.tree.num_histories == cut.num_histories
        for player in range(2):
            inside = {lowered.infoset_keys[player][i] for i in np.flatnonzero(met[player])}
            assert met[player].max(initial=0) <= 1
            assert inside.isdisjoint(cut.lowered.infoset_keys[player])
            assert len(inside) + len(cut.lowered.infoset_keys[player]) == len(lowered.infoset_keys[player])


def test_a_cut_may_be_a_predicate_or_a_tree_may_be_given() -> None:
    game, by_depth = kuhn()
    by_predicate = decompose(game, lambda history: not set("pb").isdisjoint(history.infoset_key(0)))
    assert by_predicate.num_subgames == by_depth.num_subgames == 2
    tree = jaxcfr.lower(game).tree
    assert decompose(tree, 3).num_histories == 58
    # A tree says nothing about idle players: all is one to them since their last own action.
    assert decompose(tree, 3).closure == "derived"


def test_what_cannot_be_decomposed_is_refused() -> None:
    game, cut = kuhn()
    with pytest.raises(errors.SubgameError, match="no subgame"):
        decompose(game, 50)
    with pytest.raises(errors.OptionError, match="rounds_ended"):
        decompose(game, "round")
    with pytest.raises(errors.OptionError, match="predicate"):
        decompose(game, "river")  # type: ignore[arg-type]
    with pytest.raises(errors.OptionError, match="at least 0"):
        decompose(game, -1)
    with pytest.raises(errors.OptionError, match="decompose the game itself"):
        decompose(jaxcfr.lower(game).tree, lambda history: True)
    with pytest.raises(errors.GameError, match="True or False"):
        decompose(game, lambda history: "yes")
    with pytest.raises(errors.NotTwoPlayerConstantSumError):
        decompose(jaxcfr.load_game("kuhn_poker(players=3)"), 3)
    with pytest.raises(errors.OptionError, match="memory_limit"):
        decompose(game, 3, memory_limit=0)
    with pytest.raises(errors.OptionError, match="decompose"):
        cfr_d(game)
    for wrong in ({"warm_start": 2}, {"updates": "both"}, {"batch": 0}, {"every": 0}, {"solver": "lp"}):
        with pytest.raises(errors.OptionError):
            cfr_d(cut, 1, 1, **wrong)  # type: ignore[arg-type]
    for iterations in (-1, 1.5):
        with pytest.raises(errors.OptionError):
            cfr_d(cut, iterations)  # type: ignore[arg-type]


# The values at the roots


def test_root_values_are_those_of_the_whole_game() -> None:
    """Against the counterfactual best-response values of a blueprint, computed from the whole tree."""
    game, cut = leduc()
    lowered = jaxcfr.lower(game)
    key = jax.random.key(3)
    strategy = []
    for treeplex in lowered.tree.treeplexes:
        key, own = jax.random.split(key)
        noise = jnp.where(treeplex.uniform > 0, jax.random.exponential(own, treeplex.uniform.shape), 0)
        strategy.append(treeplex.over_tables(lambda table: table / jnp.maximum(table.sum(0), 1e-9), noise))
    blueprint = jaxcfr.Blueprint(game, lowered, tuple(strategy))
    for number in range(cut.num_subgames):
        piece = cut.source.piece(number)
        small = piece.lowered(cut.dtype)
        rows = [
            [*probabilities, *[np.ones(1)] * piece.num_roots[p]]
            for p, probabilities in enumerate(
                [
                    [blueprint.lowered.probabilities(blueprint.strategy, p)[i] for i in piece.part.infosets(p)]
                    for p in range(2)
                ]
            )
        ]
        inner = small.strategy(rows)
        roots = piece.part.rows[piece.part.roots]
        reach = []
        for player in range(2):
            own_reach = np.zeros(piece.num_roots[player])
            own_reach[piece.label[player]] = blueprint.reaches[player][roots]
            reach.append(jnp.asarray(own_reach)[:, None])
        found = root_values(cut.subtree(number), (reach[0], reach[1]), tuple(values[:, None] for values in inner))
        for player in range(2):
            others = blueprint.reaches[1 - player][roots] * blueprint.reaches[2][roots]
            expected = np.bincount(
                piece.label[player],
                others * (blueprint.best_values(player)[roots] - cut.source.centre[player]),
            )
            np.testing.assert_allclose(found[player][:, 0], expected, atol=1e-12)


# Solving


@pytest.mark.parametrize("updates", ["simultaneous", "alternating"])
def test_the_trunk_approaches_an_equilibrium(updates: Any) -> None:
    _, cut = kuhn()
    solution = cfr_d(cut, 300, 100, jaxcfr.cfr_plus(), updates=updates)
    assert solution.exploitability(2_000) < 0.006
    assert abs(float(solution.value[0]) + 1 / 18) < 0.006
    long = cfr_d(cut, 1_000, 150, jaxcfr.cfr_plus(), jaxcfr.pcfr_plus(), updates=updates)
    assert long.exploitability(2_000, jaxcfr.pcfr_plus()) < 0.0025


def test_exploitability_by_subgames_is_that_of_the_whole_strategy() -> None:
    for game, cut in (kuhn(), leduc()):
        solution = cfr_d(cut, 30, 30)
        profile = solution.to_profile(150)
        assert math.isclose(in_whole(game, profile), solution.exploitability(150), abs_tol=1e-9)
        lowered = jaxcfr.lower(game)
        best = jaxcfr.best_response_values(lowered.tree, profile.to_strategy(lowered))
        np.testing.assert_allclose(solution.best_response_values(150), best, atol=1e-9)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed > 0)) for seed in range(8)])
def test_random_games_are_solved(seed: int) -> None:
    print("seed", seed)
    game = from_seed(100 + seed, num_players=2, sums="zero")
    try:
        cut = decompose(game, 2)
    except errors.SubgameError:
        pytest.skip("everything ends above the cut")
    solution = cfr_d(cut, 300, 200, jaxcfr.cfr_plus(), jaxcfr.pcfr_plus())
    size = float(jnp.abs(jaxcfr.lower(game).tree.terminal_payoffs).max())
    profile = solution.to_profile(1_000)
    assert math.isclose(in_whole(game, profile), solution.exploitability(1_000), abs_tol=1e-9 * size)
    assert solution.exploitability(1_000) < 0.02 * size


def test_leduc_resolved_at_play_time() -> None:
    game, cut = leduc()
    solution = cfr_d(cut, 200, 100)
    assert solution.exploitability(1_000) < 0.025
    solved = solution.resolve((0, 1, 1, 1), 200)
    assert solved.number == cut.find((4, 2, 1, 1))
    assert solved.profile.num_infosets == (90, 90)
    history = functools.reduce(lambda h, move: h.step(move), (0, 1, 1, 1, 2), game)
    assert math.isclose(float(solved.profile.policy(history).sum()), 1.0, abs_tol=1e-9)
    whole = solution.to_profile(200)
    for player in range(2):
        for key in solved.profile.infoset_keys[player]:
            np.testing.assert_allclose(
                list(solved.profile.average_strategy(player, key).values()),
                list(whole.average_strategy(player, key).values()),
                atol=1e-6,
            )


def test_theorem_2_with_exactly_solved_subgames() -> None:
    """With subgames solved by linear programs the trunk's regret is CFR's: bounded, and falling as 1 / sqrt(T)."""
    _, cut = kuhn()
    counts = cut.lowered.tree.num_infosets
    spread, actions = 4.0, 2
    found = []
    solution = None
    for total in (4, 16, 64):
        more = total - (0 if solution is None else solution.t)
        solution = cfr_d(cut, more, 1, jaxcfr.vanilla(), solver=LPSolver(), solution=solution)
        assert solution.t == total
        # Solved exactly, the subgames give one player what they take from the other.
        assert abs(float(solution.value.sum())) < 1e-6
        for player in range(2):
            bound = spread * counts[player] * math.sqrt(actions / total)
            assert -1e-9 < solution.regrets[player] <= bound + 1e-9
        found.append(float(solution.regrets.sum()))
    assert found[2] * math.sqrt(64) < 2 * max(found[0] * math.sqrt(4), found[1] * math.sqrt(16))
    # The regrets bound how far the average strategy, subgames re-solved, is from an equilibrium.
    solved = solution.exploitability(10_000, jaxcfr.pcfr_plus())
    assert solved <= float(solution.regrets.sum()) / 2 + 1e-3


def test_linear_programs_and_cfr_find_the_same_worth() -> None:
    """Root values may differ where a subgame has several equilibria; what they are worth together may not."""
    _, cut = kuhn()
    solver = CFRSolver(jaxcfr.pcfr_plus(), 5_000, 0.0, "alternating", warm=False)
    rng = np.random.default_rng(0)
    for number in range(cut.num_subgames):
        reach = [rng.uniform(size=count) for count in cut.subgames[number].root_infosets]
        reach[0][0] = 0.0
        exact = LPSolver().host_values(cut, number, (reach[0], reach[1]))
        given = tuple(jnp.asarray(values)[:, None] for values in reach)
        close, _ = solver.values(cut.subtree(number), (given[0], given[1]), None)
        worth = [float(values @ own) for values, own in zip(exact, reach, strict=True)]
        assert math.isclose(sum(worth), 0.0, abs_tol=1e-7)
        assert math.isclose(worth[0], float(close[0][:, 0] @ reach[0]), abs_tol=1e-4)
        # Where player 0 never goes, it still has the best that it could get there.
        assert close[0][0, 0] > -1.0


# How it runs


def test_batches_give_what_one_program_gives() -> None:
    game, cut = leduc()
    together = cfr_d(cut, 5, 20)
    for batch in (1, 2):
        apart = cfr_d(cut, 5, 20, batch=batch)
        for ours, theirs in zip(together.trunk_strategy, apart.trunk_strategy, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-9)
    limited = decompose(game, "round", memory_limit=300_000)
    assert len(limited.batches()) > 1
    apart = cfr_d(limited, 5, 20)
    for ours, theirs in zip(together.trunk_strategy, apart.trunk_strategy, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    assert math.isclose(together.exploitability(50), apart.exploitability(50), abs_tol=1e-9)


def test_nothing_is_compiled_for_other_numbers() -> None:
    _, cut = kuhn()
    cfr_d(cut, 3, 5, jaxcfr.dcfr(1.5, 0.0, 2.0))
    programs = runs._fused._cache_size()
    cfr_d(cut, 7, 9, jaxcfr.dcfr(1.2, 0.1, 3.0), jaxcfr.dcfr_plus(2.0))
    assert runs._fused._cache_size() == programs


def test_going_on_and_checkpoints_give_the_same_bits(tmp_path: Path) -> None:
    game, cut = kuhn()
    whole = cfr_d(cut, 30, 10)
    file = tmp_path / "run.npz"
    seen = []

    def watch(solution: CFRDSolution) -> bool:
        seen.append(solution.t)
        return solution.t >= 20

    stopped = cfr_d(cut, 30, 10, callback=watch, every=5, checkpoint=file)
    assert seen == [5, 10, 15, 20]
    assert stopped.t == 20
    resumed = cfr_d(cut, 10, 10, solution=CFRDSolution.load(file, decompose(game, 3)))
    for ours, theirs in zip(jax.tree.leaves(resumed.state), jax.tree.leaves(whole.state), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    done = cfr_d(cut, 1_000, 50, target_exploitability=0.02, every=50)
    assert done.t < 1_000
    assert done.exploitability() <= 0.02


def test_files_that_are_no_solution_of_this_game_are_refused(tmp_path: Path) -> None:
    game, cut = kuhn()
    file = tmp_path / "solution.npz"
    solution = cfr_d(cut, 2, 2)
    solution.save(file)
    with pytest.raises(errors.CheckpointError, match="another cut"):
        CFRDSolution.load(file, decompose(game, 2))
    with pytest.raises(errors.CheckpointError, match=r"this run keeps|does not keep"):
        CFRDSolution.load(file, cut, jaxcfr.pcfr_plus())
    with pytest.raises(errors.SolverError, match="trunk_regret"):
        cfr_d(cut, 1, 1, jaxcfr.pcfr_plus(), solution=solution)
    with pytest.raises(errors.SolverError, match="another cut"):
        cfr_d(decompose(game, 2), 1, 1, solution=solution)
    data = file.read_bytes()
    for damaged in (b"", b"not a zip", data[: len(data) // 2]):
        file.write_bytes(damaged)
        with pytest.raises(errors.CheckpointError, match=r"solution\.npz"):
            CFRDSolution.load(file, cut)
    checkpoint.write(file, {"kind": "other"}, {})
    with pytest.raises(errors.CheckpointError, match="a checkpoint of the kind 'other'"):
        CFRDSolution.load(file, cut)
    with pytest.raises(errors.CheckpointError, match="cannot be read"):
        CFRDSolution.load(tmp_path / "none", cut)
    with pytest.raises(errors.CheckpointError, match="no directory"):
        cfr_d(cut, 1, 1, checkpoint=tmp_path / "none" / "x")


def test_warm_starts_and_variants_of_ones_own() -> None:
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass(frozen=True)
    class Halved(jaxcfr.RegretVariant):
        share: float = 0.5

        def update(self, state: Any, r: Any, t: Any) -> Any:
            return state._replace(regret=jnp.maximum(self.share * state.regret + r, 0))

    _, cut = kuhn()

    @jax.tree_util.register_dataclass
    @dataclasses.dataclass(frozen=True)
    class Nameless(jaxcfr.RegretVariant):
        share: float = 1.0

        def init(self, zeros: Any) -> Any:
            return (zeros,)

        def update(self, state: Any, r: Any, t: Any) -> Any:
            return (state[0] + self.share * r,)

        def strategy(self, state: Any, uniform: Any, t: Any) -> Any:
            return jax.nn.softmax(jnp.where(uniform > 0, 5 * state[0], -jnp.inf), axis=0)

    with pytest.raises(errors.OptionError, match="no warm_start"):
        cfr_d(kuhn()[1], 1, 1, subgame_regret=Nameless(), warm_start=0.5)
    assert cfr_d(kuhn()[1], 20, 20, subgame_regret=Nameless()).exploitability(200) < 0.3

    warm = cfr_d(cut, 200, 20, warm_start=0.9)
    assert warm.exploitability(1_000) < 0.02
    own = cfr_d(cut, 50, 50, subgame_regret=Halved())
    assert own.exploitability(500, Halved()) < 0.2


# From rules


def both_ways(name: str) -> tuple[Decomposition, Decomposition]:
    """A game decomposed with its tree in memory, and from its rules."""
    game = jaxcfr.load_game(name)
    if name.startswith("liars_dice"):
        bids = decompose(game, lambda history: history.infoset_key(0).count(" ") > 0 and later(history), siblings=True)
        arrays = game.array_game()
        return bids, decompose(arrays, lambda state: state.last >= 3, siblings=True, from_rules=True)
    cut: Any = "round" if name.startswith("leduc") else 3
    return decompose(game, cut), decompose(game, cut, from_rules=True)


def later(history: Any) -> bool:
    """Whether the last bid is one of the three highest of six."""
    return str(history.infoset_key(0)).split()[-1].startswith("2x")


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "liars_dice(dice_sides=3)"])
def test_subgames_lowered_when_needed_are_those_of_the_tree(name: str) -> None:
    held, lowered = both_ways(name)
    assert lowered.num_histories == held.num_histories
    assert [dataclasses.replace(s, structure=b"", numbers=b"") for s in lowered.subgames] == [
        dataclasses.replace(s, structure=b"", numbers=b"") for s in held.subgames
    ]
    ours, theirs = cfr_d(lowered, 10, 10), cfr_d(held, 10, 10)
    np.testing.assert_allclose(ours.value, theirs.value, atol=1e-9)
    assert math.isclose(ours.exploitability(50), theirs.exploitability(50), abs_tol=1e-9)
    for number in range(held.num_subgames):
        assert lowered.path(number) == held.path(number)
        assert lowered.find(held.path(number)) == number
    again, other = ours.resolve(0, 20).profile, theirs.resolve(0, 20).profile
    for player in range(2):
        assert set(again.infoset_keys[player]) == set(other.infoset_keys[player])
        for key in again.infoset_keys[player]:
            row, expected = (list(profile.average_strategy(player, key).values()) for profile in (again, other))
            np.testing.assert_allclose(row, expected, atol=1e-6)


def test_a_cut_through_an_information_set_is_refused_from_rules() -> None:
    game = jaxcfr.load_game("kuhn_poker")

    def sees_a_card(history: Any) -> bool:
        return not history.is_chance() and history.infoset_key(1)[0] == "0"

    with pytest.raises(errors.SubgameError, match="goes through information set"):
        decompose(game, sees_a_card, from_rules=True)
    closed = decompose(game, sees_a_card)
    assert closed.num_subgames == 1
    arrays = game.array_game()
    with pytest.raises(errors.OptionError, match="traceable"):
        decompose(arrays, lambda state: 1, from_rules=True)
    with pytest.raises(errors.OptionError, match="give the game itself"):
        decompose(jaxcfr.lower(game), 3, from_rules=True)
    with pytest.raises(errors.SubgameError, match="no subgame"):
        decompose(game, 50, from_rules=True)
    with pytest.raises(errors.NotTwoPlayerConstantSumError):
        decompose(jaxcfr.load_game("kuhn_poker(players=3)"), 4, from_rules=True)


def test_a_game_that_says_nothing_about_idle_players_is_not_decomposed_from_rules() -> None:
    game = from_seed(0, num_players=2, sums="zero")
    with pytest.raises(errors.SubgameError, match="do not act"):
        decompose(game, 2, from_rules=True)


def test_trees_of_subgames_stay_within_the_memory_limit() -> None:
    game = jaxcfr.load_game("liars_dice(dice_sides=3)").array_game()
    whole = decompose(game, lambda state: state.last >= 2, siblings=True, from_rules=True)
    limit = 20_000
    tight = decompose(game, lambda state: state.last >= 2, siblings=True, from_rules=True, memory_limit=limit)
    sizes = [sum(leaf.nbytes for leaf in jax.tree.leaves(tight.subtree(n))) for n in range(tight.num_subgames)]
    assert sum(sizes) > limit / 2  # so that not all of them can stay
    held = sum(leaf.nbytes for tree in tight._trees.values() for leaf in jax.tree.leaves(tree))
    assert held <= max(limit / 2, *sizes)
    assert len(tight.batches()) > len(whole.batches())
    ours, theirs = cfr_d(tight, 3, 5), cfr_d(whole, 3, 5)
    for mine, other in zip(ours.root_values, theirs.root_values, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-9)


@pytest.mark.slow
def test_a_game_twenty_times_larger_than_fits_is_solved(tmp_path: Path) -> None:
    """Liar's dice with nine faces, where a plain solve has room for seven and not for eight."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from benchmarks import decomposition_memory as memory

    arguments = argparse.Namespace(trunk=20, subgame=20, resolve=50, memory=20, bid=None)
    once = argparse.Namespace(trunk=1, subgame=1, resolve=1, memory=20, bid=None)
    limit = 520
    for method, faces in (("plain", 7), ("cfr-d", 9)):
        memory.measure(method, faces, once, str(tmp_path))
    fits = memory.measure("plain", 7, arguments, str(tmp_path), limit)
    assert fits is not None
    assert memory.measure("plain", 8, arguments, str(tmp_path), limit) is None
    solved = memory.measure("cfr-d", 9, arguments, str(tmp_path), limit)
    assert solved is not None
    assert solved["histories"] > 20 * fits["histories"]
    assert solved["exploitability"] < 0.5


# The command line


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: object) -> tuple[int, str, str]:
        status = cli.main([str(word) for word in words])
        output = capsys.readouterr()
        return status, output.out, output.err

    file, profile = tmp_path / "run", tmp_path / "kuhn.npz"
    settings = ("cfr-d", "kuhn_poker", "--cut", 3, "--subgame-iterations", 30, "--dtype", "float64", "--json")
    status, out, _ = run(*settings, "-n", 40, "--eval-every", 20, "--checkpoint", file, "--out", profile)
    assert status == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["iteration"] for line in lines] == [20, 40]
    assert list(lines[0]) == ["iteration", "nash_conv", "exploitability", "values", "seconds"]
    assert all(line["exploitability"] == line["nash_conv"] / 2 for line in lines)
    found = in_whole(jaxcfr.load_game("kuhn_poker"), jaxcfr.Profile.load(profile))
    assert math.isclose(found, lines[-1]["exploitability"], abs_tol=1e-7)
    status, out, _ = run(
        *(*settings, "-n", 1_000, "--checkpoint", file, "--resume"),
        *("--target-exploitability", 0.02, "--eval-every", 50),
    )
    assert status == 0
    resumed = [json.loads(line) for line in out.splitlines()]
    assert resumed[-1]["exploitability"] <= 0.02
    seconds = [line["seconds"] for line in lines + resumed]
    assert seconds == sorted(seconds)  # they go on from those in the file
    status, out, err = run(*settings[:-1], "-n", resumed[-1]["iteration"], "--checkpoint", file, "--resume")
    assert status == 0
    assert "as many as --iterations asks for" in err  # nothing is left to do but to tell
    assert [line.split(":")[0] for line in out.splitlines()[:4]] == ["kuhn_poker", "trunk", "subgames", "batches"]
    for words in (
        "kuhn_poker: 58 histories",
        "dcfr_plus:alpha=1.5,gamma=4,offset=1 in 30 iterations of each subgame, float64 on cpu",
        f"{resumed[-1]['nash_conv']:.6g}",
        f" {seconds[-1]:.2f}\n",
        "Exploitability is NashConv / 2, of the whole strategy",
        f"to go on is in {file}",
    ):
        assert words in out
    jaxcfr.Trainer("kuhn_poker").save(tmp_path / "solve.ckpt")
    with pytest.raises(errors.CheckpointError, match=r"of CFR-D \(jaxcfr cfr-d\): load it with CFRDSolution.load"):
        jaxcfr.Trainer.load(file)
    for wrong, message in (
        (("--cut", "river"), "a depth or round"),
        (("--cut", 99), "no subgame"),
        (("--cut", 2, "--checkpoint", file, "--resume"), "another cut"),
        (("--cut", 3, "--resume"), "--checkpoint"),
        (("--cut", 3, "--checkpoint", file, "--resume", "-n", 39), "counts from the beginning"),
        (("--cut", 3, "--checkpoint", file, "--resume", "--regret", "pcfr_plus"), "give the same options"),
        (
            ("--cut", 3, "--checkpoint", file, "--resume", "--dtype", "float64", "--regret", "dcfr_plus:gamma=5"),
            "gamma=4,offset=1 in the trunk, and --regret is dcfr_plus:alpha=1.5,gamma=5,offset=1: give the same",
        ),
        (
            ("--cut", 3, "--checkpoint", file, "--resume", "--dtype", "float64"),
            "offset=1 in 30 iterations, alternating, and this command by dcfr_plus:alpha=1.5,gamma=4,offset=1 in 100",
        ),
        (("--cut", 3, "--checkpoint", tmp_path / "solve.ckpt", "--resume"), "load it with Trainer.load"),
        (("--cut", 3, "--memory", -1), "megabytes"),
        (("--cut", 3, "--memory", 1e-9), "megabytes"),
        (("--cut", 3, "--checkpoint", file, "--out", file), "same file"),
        (("--cut", 3, "--checkpoint", tmp_path / "none" / "x"), "no directory"),
    ):
        status, _, err = run("cfr-d", "kuhn_poker", *wrong)
        assert status == 2
        assert message in err
        assert len(err.splitlines()) == 1


def test_an_interrupted_command_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run"
    words = ["cfr-d", "kuhn_poker", "--cut", "3", "--subgame-iterations", "30", "--dtype", "float64", "--json"]
    words += ["-n", "40", "--eval-every", "20", "--checkpoint", str(file)]
    evaluated = CFRDSolution.nash_conv

    def interrupted(solution: CFRDSolution, *args: Any) -> float:
        signal.raise_signal(signal.SIGINT)
        return evaluated(solution, *args)

    with monkeypatch.context() as context:
        context.setattr(CFRDSolution, "nash_conv", interrupted)
        assert cli.main(words) == 130
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["iteration"] for line in lines] == [20]
    assert f"stopped after 20 iterations; {file} goes on from here" in err
    assert cli.main([*words, "--resume"]) == 0
    lines += [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["iteration"] for line in lines] == [20, 40]
    file.unlink()
    assert cli.main(words) == 0  # and in one go
    whole = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["nash_conv"] for line in lines] == [line["nash_conv"] for line in whole]


def test_what_an_interrupted_command_tells_is_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the whole strategy is solved again, which is saved then; and a second signal, which ends at once."""
    file, profile = tmp_path / "run", tmp_path / "kuhn.npz"
    words = ["cfr-d", "kuhn_poker", "--cut", "3", "--subgame-iterations", "30", "--dtype", "float64", "-n", "40"]
    words += ["--eval-every", "20", "--out", str(profile)]

    def interrupting(name: str, signals: Sequence[int]) -> None:
        unchanged = getattr(CFRDSolution, name)

        def interrupted(solution: CFRDSolution, *args: Any) -> Any:
            for number in signals:
                signal.raise_signal(number)
            return unchanged(solution, *args)

        monkeypatch.setattr(CFRDSolution, name, interrupted)

    with monkeypatch.context():
        interrupting("to_profile", [signal.SIGINT])
        assert cli.main(words) == 130
    out, err = capsys.readouterr()
    assert f"The whole strategy is saved in {profile}." in out
    assert err == f"jaxcfr: stopped after 40 iterations; the whole strategy is saved in {profile}\n"
    assert jaxcfr.Profile.load(profile).iterations == 40
    profile.unlink()
    monkeypatch.undo()
    interrupting("nash_conv", [signal.SIGTERM, signal.SIGTERM])
    assert cli.main(words) == 143
    assert capsys.readouterr().err == "jaxcfr: stopped after 20 iterations; nothing is saved\n"
    assert cli.main([*words, "--checkpoint", str(file)]) == 143
    assert capsys.readouterr().err == f"jaxcfr: stopped after 20 iterations; {file} goes on from here\n"
    assert not profile.exists()


def test_arguments_of_another_type() -> None:
    game = jaxcfr.load_game("kuhn_poker")
    with pytest.raises(errors.OptionError, match="memory_limit"):
        decompose(game, 3, memory_limit="20MB")  # type: ignore[arg-type]
    with pytest.raises(errors.OptionError, match="CFRDSolution"):
        cfr_d(decompose(game, 3), 5, 5, solution=7)  # type: ignore[arg-type]
