"""Published and hand-computed numbers: the handed cases, exact iterations, convergence curves."""

from __future__ import annotations

import dataclasses
import functools
import json
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_games import copied, forest

from jaxcfr import analytics
from jaxcfr.errors import JaxCFRError, RecallError
from jaxcfr.games import load_game
from jaxcfr.interop.gambit import parse_efg, read_efg
from jaxcfr.linear_program import solve_lp
from jaxcfr.regret import variants
from jaxcfr.solve import average_strategy, solve
from jaxcfr.tree.convert import uniform_strategy
from jaxcfr.tree.game_tree import Strategy
from jaxcfr.tree.lower import LoweredGame, lower

pytestmark = pytest.mark.full_compilation

HERE = Path(__file__).parent
CASES = HERE / "cases"
EXPECTED: dict[str, dict[str, Any]] = json.loads((CASES / "expected.json").read_text())
GOLDEN: dict[str, dict[str, Any]] = json.loads((CASES / "golden_iterations.json").read_text())
CURVES: dict[str, dict[str, Any]] = json.loads((HERE / "reference" / "curves.json").read_text())["games"]

GOOD = [name for name, case in EXPECTED.items() if case["expect"] == "ok"]
EXACT = [name for name in GOOD if name not in ("19a_deep_5000", "20_wide_1000")]


@functools.cache
def load(name: str) -> LoweredGame:
    return lower(read_efg(CASES / f"{name}.efg"))


def fractions(numbers: list[str]) -> list[float]:
    return [float(Fraction(number)) for number in numbers]


def profile_of(lowered: LoweredGame, rows: dict[str, list[str]]) -> Strategy:
    """A strategy from rows with keys such as "2.5": player 2, information set number 5."""
    return lowered.strategy(
        [[fractions(rows[f"{player + 1}.{key}"]) for key in keys] for player, keys in enumerate(lowered.infoset_keys)]
    )


def rows_of(lowered: LoweredGame, flats: Any) -> dict[str, list[float]]:
    """The other way round, for any flat vectors."""
    return {f"{player}.{key}": row for (player, key), row in flat_rows(lowered, flats).items()}


def scale_of(lowered: LoweredGame) -> float:
    return float(np.abs(np.asarray(lowered.tree.terminal_payoffs)).max())


def test_every_case_is_here() -> None:
    assert len(EXPECTED) == 27
    assert {path.stem for path in CASES.glob("*.efg")} == set(EXPECTED)
    assert len(GOOD) == 21


@pytest.mark.parametrize("name", EXACT)
def test_case(name: str) -> None:
    case, lowered = EXPECTED[name], load(name)
    tree = lowered.tree
    assert tree.num_histories == case["nodes"]
    assert tree.num_terminals == case["terminals"]
    assert list(tree.num_infosets) == case["infosets"]
    assert tree.depth == case["depth"]
    tolerance = 1e-12 * scale_of(lowered)
    uniform = uniform_strategy(tree)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-12, atol=tolerance)
    close(analytics.expected_payoffs(tree, uniform), fractions(case["uniform_ev"]))
    close(analytics.best_response_values(tree, uniform), fractions(case["uniform_br"]))
    close(analytics.gains(tree, uniform), fractions(case["uniform_gain"]))
    close(analytics.nash_conv(tree, uniform), float(Fraction(case["uniform_nashconv"])))
    nash = profile_of(lowered, case["nash_profile"])
    close(analytics.nash_conv(tree, nash), float(Fraction(case["nash_nashconv"])))
    close(analytics.expected_payoffs(tree, nash), fractions(case["nash_value"]))


def together(names: tuple[str, ...]) -> LoweredGame:
    """Two-player cases behind one chance move, so that one program solves all; keys are (case, number of the set)."""
    return lower(forest([copied(read_efg(CASES / f"{name}.efg"), name) for name in names]))


def rows_of_case(number: int, rows: dict[Any, list[float]]) -> dict[str, list[float]]:
    """What belongs to one case, with keys such as "2.5"."""
    return {f"{player}.{key}": row for (player, (case, key)), row in rows.items() if case == number}


def flat_rows(lowered: LoweredGame, flats: Any) -> dict[Any, list[float]]:
    """Flat vectors by (player counted from 1, key)."""
    rows = {}
    for player, keys in enumerate(lowered.infoset_keys):
        tables = lowered.tree.treeplexes[player]
        values = np.asarray(flats[player])
        where = zip(*(np.asarray(x).tolist() for x in (tables.first, tables.stride, tables.num_actions)), strict=True)
        for key, (first, stride, count) in zip(keys, where, strict=True):
            rows[player + 1, key] = values[first : first + stride * count : stride].tolist()
    return rows


def strategy_of(lowered: LoweredGame, rows: dict[str, list[float]]) -> Strategy:
    return lowered.strategy([[rows[f"{p + 1}.{key}"] for key in keys] for p, keys in enumerate(lowered.infoset_keys)])


SOLVED = tuple(name for name in EXACT if len(EXPECTED[name]["infosets"]) == 2 and name != "23_bagwell_commas")


@functools.cache
def solutions() -> dict[str, dict[str, list[float]]]:
    lowered = together(SOLVED)
    rows = flat_rows(lowered, average_strategy(lowered.tree, solve(lowered.tree, variants.pdcfr_plus(), 3000)))
    return {name: rows_of_case(number, rows) for number, name in enumerate(SOLVED)}


@pytest.mark.parametrize("name", SOLVED)
def test_case_is_solved(name: str) -> None:
    """The solver reaches the value of every two-player constant-sum case, and so does the linear program.

    The prisoners' dilemma is solved too: its actions are dominant.
    """
    lowered = load(name)
    tree, payoffs, scale = lowered.tree, fractions(EXPECTED[name]["nash_value"]), scale_of(lowered) or 1.0
    strategy = strategy_of(lowered, solutions()[name])
    np.testing.assert_allclose(analytics.expected_payoffs(tree, strategy), payoffs, atol=1e-9 * scale)
    assert float(analytics.nash_conv(tree, strategy)) <= 1e-9 * scale
    assert tree.constant_sum == (name != "13_prisoners_dilemma")
    if tree.constant_sum:
        np.testing.assert_allclose(solve_lp(tree).value, payoffs, atol=1e-9 * scale)


def test_one_player_is_solved() -> None:
    lowered = load("11_one_player")
    average = average_strategy(lowered.tree, solve(lowered.tree, iterations=100))
    assert rows_of(lowered, average)["1.1"] == pytest.approx([0, 1], abs=1e-6)


@pytest.mark.parametrize("name", [name for name in EXPECTED if name not in GOOD])
def test_case_is_rejected(name: str) -> None:
    """Reading or lowering refuses it (what the reader says, and where, is tested with the reader)."""
    kind = RecallError if EXPECTED[name]["expect"] == "reject_recall" else JaxCFRError
    with pytest.raises(kind):
        lower(read_efg(CASES / f"{name}.efg"))


@pytest.mark.parametrize("name", ["19a_deep_5000", "20_wide_1000"])
def test_extreme_shapes(name: str) -> None:
    """5,000 levels, and 1,000 actions at a node: lowered, compiled and solved in seconds."""
    start = time.perf_counter()
    case, lowered = EXPECTED[name], load(name)
    tree = lowered.tree
    assert (tree.num_histories, tree.num_terminals) == (case["nodes"], case["terminals"])
    assert (list(tree.num_infosets), tree.depth) == (case["infosets"], case["depth"])
    uniform = uniform_strategy(tree)
    # 19a: (1 - 4^-2500) / 3, see expected.json.
    expected = [1 / 3, -1 / 3] if name == "19a_deep_5000" else fractions(case["uniform_ev"])
    best = fractions(case["uniform_br"])
    # Sums of payoffs, so exact relative to the largest of them.
    atol = 1e-13 * float(np.abs(tree.terminal_payoffs).max())
    np.testing.assert_allclose(analytics.expected_payoffs(tree, uniform), expected, rtol=1e-12, atol=atol)
    np.testing.assert_allclose(analytics.best_response_values(tree, uniform), best, rtol=1e-12, atol=atol)
    uniform_nash_conv = float(Fraction(case["uniform_nashconv"]))
    np.testing.assert_allclose(analytics.nash_conv(tree, uniform), uniform_nash_conv, rtol=1e-12)
    # Iterates far from the equilibrium have weights of (t / T)^5 to begin with.
    state = solve(tree, variants.pdcfr_plus(), 300)
    average = average_strategy(tree, state)
    payoffs = analytics.expected_payoffs(tree, average)
    np.testing.assert_allclose(payoffs, fractions(case["nash_value"]), rtol=1e-3)
    assert float(analytics.exploitability(tree, average)) < 1e-3 * scale_of(lowered)
    # Generous: a few seconds on an idle machine.
    assert time.perf_counter() - start < 60


GOLDEN_RUNS = {
    "cfr_alternating": (variants.vanilla, "alternating"),
    "cfr_simultaneous": (variants.vanilla, "simultaneous"),
    "cfrplus_alternating_linear": (variants.cfr_plus, "alternating"),
    "cfrplus_simultaneous_linear": (variants.cfr_plus, "simultaneous"),
}


GOLDEN_GAMES = tuple(GOLDEN)


@functools.cache
def golden_forest() -> LoweredGame:
    return together(GOLDEN_GAMES)


@functools.cache
def golden_states(run: str) -> list[Any]:
    """The states after 0 to 8 iterations of all golden games together."""
    lowered = golden_forest()
    factory, updates = GOLDEN_RUNS[run]
    states = [solve(lowered.tree, factory(), 0, updates=updates)]
    for _ in range(8):
        states.append(solve(lowered.tree, factory(), 1, states[-1], updates=updates))
    return states


def golden_regrets(run: str, t: int, game: str) -> dict[str, list[float]]:
    """Stored regrets of one game, in its own units: chance picks each game equally often."""
    players = golden_states(run)[t].players
    rows = flat_rows(golden_forest(), [player.regrets.regret * len(GOLDEN_GAMES) for player in players])
    return rows_of_case(GOLDEN_GAMES.index(game), rows)


def golden_average(run: str, t: int, game: str) -> dict[str, list[float]]:
    lowered = golden_forest()
    rows = flat_rows(lowered, average_strategy(lowered.tree, golden_states(run)[t]))
    return rows_of_case(GOLDEN_GAMES.index(game), rows)


def assert_rows(found: dict[str, list[float]], wanted: dict[str, list[str]], tolerance: float) -> None:
    assert found.keys() == wanted.keys()
    for key, row in wanted.items():
        np.testing.assert_allclose(found[key], fractions(row), atol=tolerance, err_msg=key)


@pytest.mark.parametrize(
    ("game", "run"), [(game, run) for game, runs in GOLDEN.items() for run in runs if run != "uniform_cf_regret"]
)
def test_golden_iterations(game: str, run: str) -> None:
    golden, lowered = GOLDEN[game][run], load(game)
    exact = [float(Fraction(text)) for text in golden.get("nashconv_exact_1_to_6", [])]
    floats = golden.get("nashconv_float_1_to_8", [])
    assert exact or floats
    # Everything a run can hold is compared below.
    assert set(golden) <= {"nashconv_exact_1_to_6", "nashconv_float_1_to_8", "avg_strategy_T3", "cum_regret_T3"}
    seen = []
    for t in range(1, max(len(exact), len(floats)) + 1):
        strategy = strategy_of(lowered, golden_average(run, t, game))
        seen.append(float(analytics.nash_conv(lowered.tree, strategy)))
    np.testing.assert_allclose(seen[: len(exact)], exact, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(seen[: len(floats)], floats, rtol=1e-10, atol=1e-12)
    if "avg_strategy_T3" in golden:
        assert_rows(golden_average(run, 3, game), golden["avg_strategy_T3"], 1e-10)
    if "cum_regret_T3" in golden:
        assert_rows(golden_regrets(run, 3, game), golden["cum_regret_T3"], 1e-10)


@pytest.mark.parametrize("game", GOLDEN)
def test_golden_regrets_of_uniform_play(game: str) -> None:
    """The first iteration plays uniformly; with simultaneous updates its regrets are those of uniform play."""
    assert_rows(golden_regrets("cfr_simultaneous", 1, game), GOLDEN[game]["uniform_cf_regret"], 1e-12)


def test_golden_regrets_in_words() -> None:
    """The numbers that the README of the cases lists, which the sampled regrets have to average to."""
    listed = {"1.1": [-1 / 8, 1 / 8], "2.3": [-1 / 24, 1 / 24], "1.6": [-1 / 4, 1 / 4], "2.2": [1 / 12, -1 / 12]}
    for key, row in listed.items():
        np.testing.assert_allclose(fractions(GOLDEN["17a_kuhn"]["uniform_cf_regret"][key]), row, atol=1e-15)
    assert fractions(GOLDEN["29_implicit"]["uniform_cf_regret"]["2.5"]) == [-0.75, 0.75]


KUHN_FRACTIONS = {
    ("vanilla", "alternating"): ["11/12", "13/24", "7/18", "9/32", "437/1800"],
    ("vanilla", "simultaneous"): ["11/12", "5/8", "13/24", "67/144", "2987/7920"],
    ("cfr_plus", "alternating"): ["11/12", "19/36", "485/1716", "694/3465", "37816823/257802615"],
}


@functools.cache
def bundled(name: str) -> LoweredGame:
    return lower(load_game(name))


@pytest.mark.parametrize(("name", "updates"), KUHN_FRACTIONS)
def test_kuhn_exactly(name: str, updates: Any) -> None:
    """NashConv of the first five iterations, in exact fractions (VARIANTS)."""
    tree = bundled("kuhn_poker").tree
    state = None
    for wanted in KUHN_FRACTIONS[name, updates]:
        state = solve(tree, variants.VARIANTS[name](), 1, state, updates=updates)
        found = float(analytics.nash_conv(tree, average_strategy(tree, state)))
        assert found == pytest.approx(float(Fraction(wanted)), rel=1e-12)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class _FirstThenLast(variants.Vanilla):
    """Plays the first of two actions in the first iteration, and the second from then on."""

    def strategy(self, state: Any, uniform: Any, t: Any) -> Any:
        rows = jnp.arange(2)[:, None] == jnp.where(t == 0, 0, 1)
        return jnp.broadcast_to(rows, uniform.shape).astype(uniform.dtype)


def test_average_is_weighted_by_own_reach() -> None:
    """A or B, and after A: C or D. With A, C played and then B, D, the average after A is C for sure."""
    text = (
        'EFG 2 R "own reach" { "one" }\np "" 1 1 "" { "A" "B" } 0\np "" 1 2 "" { "C" "D" } 0\n'
        't "" 1 "" { 1 }\nt "" 2 "" { 2 }\nt "" 3 "" { 3 }\n'
    )
    lowered = lower(parse_efg(text))
    state = solve(lowered.tree, _FirstThenLast(), 2)
    average = rows_of(lowered, average_strategy(lowered.tree, state))
    assert average == {"1.1": [0.5, 0.5], "1.2": [1.0, 0.0]}


def test_game_values() -> None:
    """Values for player 0 that are in the literature (VARIANTS)."""
    for name, value in (("kuhn_poker", -1 / 18), ("liars_dice(dice_sides=3)", 1 / 9)):
        np.testing.assert_allclose(solve_lp(bundled(name).tree).value, [value, -value], atol=1e-9)
    np.testing.assert_allclose(solve_lp(bundled("leduc_poker").tree).value[0], -0.085606424078, atol=1e-9)


def make_variant(text: str) -> Any:
    """`dcfr_plus(1.5, 4.0, offset=1.5)` and the like, as the keys of the curves are spelled."""
    return eval(text, {"__builtins__": {}}, dict(variants.VARIANTS))


def curve_cases() -> list[tuple[str, str]]:
    return [(game, variant) for game, curves in CURVES.items() for variant in curves["exploitability"]]


@pytest.mark.parametrize("game", CURVES)
def test_sizes_of_the_curves(game: str) -> None:
    tree = bundled(game).tree
    assert tree.num_histories == CURVES[game]["nodes"]
    assert sum(tree.num_infosets) == CURVES[game]["infosets"]
    assert max(int(np.max(t.num_actions)) for t in tree.treeplexes) == CURVES[game]["max_actions"]


@pytest.mark.parametrize(("game", "variant"), curve_cases())
def test_curve(game: str, variant: str) -> None:
    """Exploitability of the average strategy, alternating updates, as two independent programs computed it.

    Programs part ways once a regret that is zero but for rounding changes sign, hence the later tolerances.
    """
    tree, rule, state = bundled(game).tree, make_variant(variant), None
    done = 0
    for text, wanted in CURVES[game]["exploitability"][variant].items():
        t = int(text)
        state = solve(tree, rule, t - done, state)
        done = t
        found = float(analytics.exploitability(tree, average_strategy(tree, state)))
        if t <= 50:
            relative = 1e-9 if t <= 20 else 1e-6
            # The curves are written with 12 digits.
            assert found == pytest.approx(wanted, rel=relative, abs=1e-12), f"t = {t}"
        else:
            assert wanted / 4 - 1e-12 <= found <= wanted * 4 + 1e-12, f"t = {t}: {found}, not about {wanted}"


# VARIANTS: exploitability in Kuhn poker at t = 10, 100, 1000 and in Leduc poker at t = 10, 100.
TABLE = {
    "vanilla()": (0.0686988, 0.00822598, 9.37617e-4, 0.888579, 0.0957164),
    "cfr_plus()": (0.0326871, 0.00119440, 8.73653e-5, 0.610439, 0.0134160),
    "linear_cfr()": (0.0212507, 0.00108903, 9.35299e-5, 0.721065, 0.03449),
    "dcfr(1.5, 0, 2)": (0.0227788, 0.00166634, 1.46500e-4, 0.778802, 0.007755),
    "dcfr_plus()": (0.0213145, 0.00152400, 1.18158e-4, 0.575482, 0.008673),
    "dcfr_plus(offset=1.5)": (0.0308194, 0.00162420, 1.14888e-4, 0.782658, 0.006531),
    "pcfr_plus()": (0.0202066, 2.32296e-5, 2.35438e-8, 0.536847, 0.019801),
    "pdcfr_plus()": (0.0294812, 1.10483e-7, 1.13e-13, 0.626929, 0.017647),
    "hs_dcfr(30, total=1000)": (0.0844394, 0.00865473, 3.75964e-4, 1.17929, 0.0396338),
    "hs_dcfr(15, total=1000)": (0.0712065, 0.00453087, 1.82955e-4, 1.10523, 0.0229745),
    "hs_cfr_plus(30, total=1000)": (0.0592614, 0.0221855, 0.00197278, 0.478117, 0.0311265),
    "hs_pcfr_plus(30, total=1000)": (0.1104574, 2.12e-13, 0.0, 0.502603, 0.0310640),
    "sapcfr_plus()": (0.00989195, 1.05432e-5, 1.06858e-8, 0.548024, 0.0128562),
}


@pytest.mark.parametrize("variant", TABLE)
@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker"])
def test_table(game: str, variant: str) -> None:
    """The table of VARIANTS, which is printed with six digits."""
    tree, rule, state = bundled(game).tree, make_variant(variant), None
    kuhn, leduc = TABLE[variant][:3], TABLE[variant][3:]
    row = zip((10, 100, 1000), kuhn if game == "kuhn_poker" else leduc, strict=False)
    done = 0
    for t, wanted in row:
        state = solve(tree, rule, t - done, state)
        done = t
        found = float(analytics.exploitability(tree, average_strategy(tree, state)))
        if t == 10:
            assert found == pytest.approx(wanted, rel=1e-5), f"t = {t}"
        else:
            assert wanted / 4 - 1e-12 <= found <= wanted * 4 + 1e-12, f"t = {t}: {found}, not about {wanted}"
