"""Pictures: what is drawn is what was given, labels say what it is, and wrong input is refused by name."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from odd_game import KEYS, OddGame

import jaxcfr
from jaxcfr import plotting
from jaxcfr.errors import GameError, GameTooLargeError, MissingPackageError, OptionError, ProfileError, StrategyError
from jaxcfr.plotting.common import FORMATS, LONGEST, short_number

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

CASES = Path(__file__).parent / "cases"


@pytest.fixture(autouse=True)
def _no_figure_left():
    yield
    pyplot.close("all")


def texts(ax):
    ax.figure.canvas.draw()
    return [text.get_text() for text in ax.texts]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# Convergence


def test_a_curve_is_what_was_given():
    points = [(1, 0.5), (10, 0.05), (1000, 1e-7)]
    ax = plotting.convergence(points, quantity="NashConv", of="last iterate", title="T", unit="chips")
    (line,) = ax.lines
    assert np.column_stack(line.get_data()).tolist() == [list(map(float, point)) for point in points]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_title(), ax.get_xlabel()) == ("T", "iteration")
    assert ax.get_ylabel() == "NashConv of the last iterate\n(chips)"
    assert ax.get_legend() is None
    shuffled = plotting.convergence(np.array(points)[[2, 0, 1]])
    assert shuffled.lines[0].get_xdata().tolist() == [1, 10, 1000]
    assert "distance from equilibrium of the average strategy" in shuffled.get_ylabel()


def test_histories_and_trainers(trainer):
    history = trainer.history
    ax = plotting.convergence({"all": trainer, "again": history})
    assert ax.get_ylabel() == "exploitability of the average strategy\n(units of payoff)"
    assert legend(ax) == ["all", "again"]
    for line in ax.lines:
        assert line.get_ydata().tolist() == [record["exploitability"] for record in history]
    ax = plotting.convergence(trainer, quantity="nash_conv", x="seconds")
    assert ax.get_ylabel().startswith("NashConv")
    assert ax.get_xlabel() == "seconds of solving"
    assert ax.lines[0].get_xdata().tolist() == [record["seconds"] for record in history]
    general = [{**record, "exploitability": None} for record in history]
    assert plotting.convergence({"a": general, "b": trainer}).get_ylabel().startswith("NashConv")
    with pytest.raises(OptionError, match="two players and constant-sum"):
        plotting.convergence(general, quantity="exploitability")


def test_bands_over_seeds_at_the_iterations_that_all_have():
    seeds = [[(1, 1.0), (10, 0.2)], [(1, 3.0), (5, 9.0), (10, 0.4)], [(10, 0.9), (1, 2.0)]]
    ax = plotting.convergence({"s": seeds, "one": [(1, 1)]}, target=0.01)
    assert np.column_stack(ax.lines[0].get_data()).tolist() == [[1, 2.0], [10, pytest.approx(0.5)]]
    assert legend(ax) == ["s (3 runs)", "one", "target 0.01"]
    assert "lowest to highest" in ax.get_legend().get_title().get_text()
    corners = ax.collections[0].get_paths()[0].vertices.round(12).tolist()
    assert all(corner in corners for corner in ([1, 1.0], [1, 3.0], [10, 0.2], [10, 0.9]))
    ax = plotting.convergence(seeds, spread="deviation")
    corners = ax.collections[0].get_paths()[0].vertices.tolist()
    assert [1, 1.0] in corners  # mean 2, sample standard deviation 1
    assert [1, 3.0] in corners
    assert legend(ax) == ["mean (3 runs)"]
    with pytest.raises(OptionError, match="no iteration at which all 2 runs"):
        plotting.convergence([[(1, 1)], [(2, 1)]])


def test_what_a_logarithmic_axis_has_no_place_for():
    ax = plotting.convergence([(0, 0.9), (10, 0.1), (100, 0.0), (1000, 1e-4)])
    assert ax.get_xscale() == "symlog"
    assert legend(ax) == ["exactly 0"]
    assert ax.lines[-1].get_xdata().tolist() == [100]
    assert plotting.convergence([(1, 0.0), (100, 0.0)]).get_yscale() == "linear"
    one = plotting.convergence([(7, 0.25)])
    assert (one.get_xscale(), one.get_yscale()) == ("linear", "log")
    one.figure.canvas.draw()


@pytest.mark.parametrize(
    ("runs", "options", "message"),
    [
        ({}, {}, "no run"),
        ([], {}, "no point"),
        ({"a": [[(1, 1)], []]}, {}, "the run 'a' has no point"),
        ([(1, float("nan"))], {}, "value nan"),
        ([(1, float("inf"))], {}, "value inf"),
        ([(1, -0.1)], {}, "at least 0"),
        ([(-1, 0.1)], {}, "iteration -1"),
        ([(1, None)], {}, "value None"),
        ([(1, 0.1), (1, 0.2)], {}, "iteration 1 twice"),
        ([1, 2, 3], {}, "(iteration, value) pairs"),
        ([(1, 2, 3)], {}, "(iteration, value) pairs"),
        (["ab"], {}, "(iteration, value) pairs"),
        ("history", {}, "(iteration, value) pairs"),
        (3, {}, "(iteration, value) pairs"),
        ({"a": 3}, {}, "the run 'a' is 3"),
        (np.zeros((3, 3)), {}, "(iteration, value) pairs"),
        ([{"iteration": 1}], {}, "without 'nash_conv'"),
        ([{"iteration": 1, "nash_conv": 1}, (2, 1)], {}, "mixes"),
        ([{"iteration": 1, "nash_conv": 1}], {"quantity": "gap"}, "'nash_conv'"),
        ([(1, 1)], {"x": "seconds"}, "no seconds"),
        ([(1, 1)], {"x": "hours"}, "'seconds'"),
        ([(1, 1)], {"spread": "all"}, "'range'"),
        ([(1, 1)], {"target": 0}, "positive"),
        ([(1, 1)], {"target": float("inf")}, "positive"),
        ([(1, 1)], {"target": 10**400}, "positive"),
        ([(1, 1)], {"spread": np.ones(3)}, "'range'"),
        ([(1, 1e308)], {}, "at most 1e+150"),
        ([(10**400, 1)], {}, "at most 1e+150"),
        ([(1, 1)], {"ax": pyplot}, "Axes"),
    ],
)
def test_curves_that_are_refused(runs, options, message):
    with pytest.raises(OptionError) as caught:
        plotting.convergence(runs, **options)
    assert message in str(caught.value)
    assert not pyplot.get_fignums()


def test_a_trainer_that_was_never_evaluated(kuhn):
    with pytest.raises(OptionError, match="eval_every"):
        plotting.convergence(jaxcfr.Trainer(kuhn, jaxcfr.full_tree(), workers=1))


# Strategies


def test_bars_are_the_probabilities(trainer):
    profile = trainer.profile()
    ax = plotting.strategy(trainer)
    drawn = {}
    for bar in ax.patches:
        drawn.setdefault(round(bar.get_y() + bar.get_height() / 2), []).append(bar.get_width())
    rows = [tick.get_text() for tick in ax.get_yticklabels()]
    assert rows[0] == "player 0"
    assert rows[7] == "player 1"
    for row, (infoset, name) in zip(
        sorted(drawn), zip(profile.infosets(), [*rows[1:7], *rows[8:]], strict=True), strict=True
    ):
        assert name == infoset.key
        assert drawn[row] == pytest.approx(infoset.probabilities)
    assert legend(ax) == ["pass", "bet"]
    assert ax.get_title() == "kuhn_poker\ndcfr_plus:alpha=1.5,gamma=4,offset=1, 40 iterations"


def test_strategies_in_hand(kuhn, trainer):
    assert plotting.strategy(kuhn, trainer.strategy(), title="last iterate").get_title() == "last iterate"
    assert len(plotting.strategy(trainer.profile(), player=1, pattern="*b").get_yticklabels()) == 1 + 3
    ax = plotting.strategy(trainer, max_infosets=5)
    assert ax.get_title().endswith("only the first information sets: 3 of 6 of player 0, 2 of 6 of player 1")
    title = plotting.strategy(trainer, max_infosets=2, player=1).get_title()
    assert title.endswith("only the first information sets: 2 of 6 of player 1")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["player 0", "0", "1", "2", "player 1", "1p", "1b"]
    state = jaxcfr.solve(kuhn.tree, iterations=1)
    with pytest.raises(OptionError, match="last iterate"):
        plotting.strategy(kuhn, state)
    for source, values in ((kuhn, None), (trainer.strategy(), None), (kuhn.tree, trainer.strategy()), (3, None)):
        with pytest.raises(OptionError, match=r"plotting.strategy takes|keys of its game"):
            plotting.strategy(source, values)
    with pytest.raises(StrategyError):
        plotting.strategy(kuhn, (np.zeros(3), np.zeros(3)))
    with pytest.raises(ProfileError, match="from 0 to 1, not 2"):
        plotting.strategy(trainer, player=2)
    for options, message in (
        ({"pattern": "zzz"}, "is like 'zzz'"),
        ({"kind": "pie"}, "'heatmap'"),
        ({"max_infosets": 0}, "positive"),
        ({"max_infosets": True}, "positive"),
    ):
        with pytest.raises(OptionError, match=message):
            plotting.strategy(trainer, **options)


def test_runs_without_a_tree_have_profiles_too():
    run = jaxcfr.solve_game(jaxcfr.load_game("kuhn_poker"), jaxcfr.dcfr(), 20, capacity=256, seed=7)
    assert len(plotting.strategy(run).get_yticklabels()) == 2 + 12
    assert len(texts(plotting.game_tree("kuhn_poker", run))) == 57 + 30 + 24


def test_many_actions_make_a_heat_map():
    lowered = jaxcfr.lower(jaxcfr.load_game("goofspiel(num_cards=3)"))
    ax = plotting.strategy(lowered, jaxcfr.uniform_strategy(lowered.tree), kind="heatmap")
    table = ax.images[0].get_array()
    assert np.ma.masked_invalid(table).sum(1).max() == pytest.approx(1)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "3"]
    assert ".33" in texts(ax)
    wide = jaxcfr.lower(jaxcfr.load_game(str(CASES / "20_wide_1000.efg")))
    uniform = jaxcfr.uniform_strategy(wide.tree)
    ax = plotting.strategy(wide, uniform)
    assert ax.images[0].get_array().shape[1] == 1002
    assert len(ax.get_xticklabels()) <= 40
    ax.figure.canvas.draw()
    with pytest.raises(OptionError, match="heatmap"):
        plotting.strategy(wide, uniform, kind="bars")


def test_probabilities_next_to_0_and_1_do_not_look_like_them():
    shown = [short_number(p) for p in (0.0, 1e-9, 0.004, 0.005, 0.5, 0.995, 0.996, 1 - 1e-9, 1.0)]
    assert shown == ["0", "<.01", "<.01", ".01", ".50", ".99", ">.99", ">.99", "1"]


def test_games_in_which_nobody_decides():
    for case in ("09_terminal_root", "10_chance_only"):
        lowered = jaxcfr.lower(jaxcfr.load_game(str(CASES / f"{case}.efg")))
        ax = plotting.strategy(lowered, jaxcfr.uniform_strategy(lowered.tree))
        assert texts(ax) == ["no player decides anything in this game"]


# Game trees


def test_the_tree_of_kuhn_poker(trainer, kuhn):
    profile = trainer.profile()
    ax = plotting.game_tree("kuhn_poker", trainer)
    shown = texts(ax)
    assert sum(text.count("1/3") for text in shown) == 3
    assert sum(text.count("1/2") for text in shown) == 6
    assert sum(text in ("+1, -1", "-1, +1", "+2, -2", "-2, +2") for text in shown) == 30
    for infoset in profile.infosets():
        assert shown.count(infoset.key) == 2
        for label, probability in zip(infoset.labels, infoset.probabilities, strict=True):
            assert f"{label}: {short_number(probability)}" in shown
    assert ax.get_title() == "kuhn_poker"
    assert legend(ax) == ["chance", "player 0", "player 1", "end: payoffs of players 0, 1"]
    for other in (profile, trainer.strategy()):
        lowered = sorted(texts(plotting.game_tree(kuhn, other)))
        # What was lowered has no names for the outcomes of chance, and their probabilities are numbers.
        assert len(lowered) == len(shown)
        assert lowered.count(".33") == 3
    plain = texts(plotting.game_tree(jaxcfr.load_game("kuhn_poker")))
    assert plain.count("bet") == 24


def test_small_trees():
    for case, players in (
        ("11_one_player", "the player"),
        ("09_terminal_root", "players 0, 1"),
        ("10_chance_only", "players 0, 1"),
    ):
        ax = plotting.game_tree(str(CASES / f"{case}.efg"))
        assert legend(ax)[-1] == f"end: payoffs of {players}"
    three = plotting.game_tree("kuhn_poker(players=3)", max_histories=2000)
    assert legend(three)[-1] == "end: payoffs of players 0, 1, 2"


def test_trees_that_are_refused(kuhn, trainer):
    for game in ("leduc_poker", jaxcfr.load_game("leduc_poker")):
        with pytest.raises(GameTooLargeError, match=r"leduc_poker has more than 200 histories.*max_histories"):
            plotting.game_tree(game)
    with pytest.raises(GameTooLargeError):
        plotting.game_tree(kuhn, max_histories=57)
    with pytest.raises(OptionError, match="LoweredGame"):
        plotting.game_tree(kuhn.tree)
    with pytest.raises(OptionError, match="lowered without"):
        plotting.game_tree(jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), histories=False))
    with pytest.raises(ProfileError, match="no strategy for the information set"):
        plotting.game_tree("matching_pennies", trainer)
    with pytest.raises(StrategyError):
        plotting.game_tree("matching_pennies", trainer.strategy())
    with pytest.raises(OptionError, match="Profile"):
        plotting.game_tree(kuhn, "a profile")
    with pytest.raises(OptionError, match="max_histories"):
        plotting.game_tree(kuhn, max_histories="5")
    with pytest.raises(GameError, match="not the class"):
        plotting.game_tree(type(jaxcfr.load_game("kuhn_poker")))


# Sweeps


def test_a_sweep_is_what_was_given():
    values = np.array([[0.1, 0.01, 1.0], [np.nan, 0.5, np.inf]])
    ax = plotting.sweep(values, [1, 2.5], ["a", "b", "c"], row_label="alpha", column_label="kind", label="gap (chips)")
    image = ax.images[0]
    assert np.array_equal(image.get_array().filled(np.nan), [[0.1, 0.01, 1.0], [np.nan, 0.5, np.nan]], equal_nan=True)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["1", "2.5"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b", "c"]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("alpha", "kind")
    assert texts(ax) == ["0.1", "0.01", "1", "\u00d7", "0.5", "\u00d7"]
    assert ax.get_title() == "framed: lowest, 0.01; \u00d7 not finite"
    assert (ax.patches[0].get_x() + 0.48, ax.patches[0].get_y() + 0.48) == (1, 0)
    assert [other.get_ylabel() for other in ax.figure.axes[1:]] == ["gap\n(chips)"]
    plotting.sweep([[0.0]], [1], [1], label="x").figure.canvas.draw()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1, 2], [1]), "shape \\(2,\\)"),
        (([[1, 2]], [1, 2], [1]), "rows and columns are 2 and 1"),
        (([[1, 2]], 3, [1, 2]), "no list"),
        (([["a"]], [1], [1]), "numbers"),
        (([[1], [1, 2]], [1, 2], [1]), "numbers"),
        (([[np.nan]], [1], [1]), "finite"),
        ((np.zeros((0, 0)), [], []), "empty"),
        (([[10**400]], [1], [1]), "numbers"),
        (([[1e308, -1e308]], [1], [1, 2]), "beyond 1e\\+150"),
    ],
)
def test_sweeps_that_are_refused(arguments, message):
    with pytest.raises(OptionError, match=message):
        plotting.sweep(*arguments, label="x")


# Trajectories


def test_trajectories(kuhn):
    pennies = jaxcfr.lower(jaxcfr.load_game("matching_pennies"))
    strategies = [pennies.strategy([[[p, 1 - p]], [[q, 1 - q]]]) for p, q in ((0.1, 0.2), (0.3, 0.9))]
    profiles = [jaxcfr.Profile.from_strategy(pennies, strategy) for strategy in strategies]
    for runs in ({"last iterate": strategies}, {"last iterate": profiles}):
        ax = plotting.trajectories(runs, lowered=pennies, equilibrium=(0.5, 0.5))
        assert np.column_stack(ax.lines[0].get_data()) == pytest.approx(np.array([[0.1, 0.2], [0.3, 0.9]]))
        assert ax.get_xlabel().startswith("probability of heads, player 0")
        assert legend(ax) == ["last iterate", "first", "last", "equilibrium"]
    ax = plotting.trajectories([(0, 0), (1, 1)])
    assert ax.get_xlabel() == "probability of the first action, player 0"
    uniform = jaxcfr.uniform_strategy(kuhn.tree)
    ax = plotting.trajectories([uniform], lowered=kuhn, at=((0, "2"), (0, "0")))
    assert ax.get_ylabel() == "probability of pass, player 0 at 0"
    for runs, options, message in (
        ([uniform], {"lowered": kuhn}, "6 information sets of two actions"),
        ([uniform], {}, "lowered="),
        ([uniform], {"lowered": kuhn, "at": ((0, "2"),)}, "two information sets"),
        ([uniform], {"lowered": kuhn, "at": (0, "2")}, "two information sets"),
        ([uniform], {"lowered": kuhn, "at": 5}, "two information sets"),
        (np.ones(()), {}, "sequence of points"),
        ([(10**400, 0.5)], {}, "from 0 to 1"),
        ([], {}, "no point"),
        ([(0.5, 1.5)], {}, "from 0 to 1"),
        ([(0.5, float("nan"))], {}, "from 0 to 1"),
        ([(0.5, 0.5, 0.5)], {}, "two probabilities"),
        ("ab", {}, "sequence of points"),
        (["ab"], {}, "two probabilities"),
        (profiles[0], {}, "sequence of points"),
    ):
        with pytest.raises(OptionError, match=message):
            plotting.trajectories(runs, **options)


# Much, and little


def test_what_moves_far_to_and_fro_can_be_drawn(tmp_path):
    """A line of many points that cannot be simplified is more than matplotlib draws at once."""
    noise = np.random.default_rng(0).random(100_000)
    ax = plotting.convergence(np.stack([np.arange(1, len(noise) + 1), noise], 1))
    drawn = np.concatenate([line.get_ydata()[int(place > 0) :] for place, line in enumerate(ax.lines)])
    assert np.array_equal(drawn, noise)
    plotting.save(ax, tmp_path / "c.png")
    path = np.stack([noise, noise[::-1]], 1)
    ax = plotting.trajectories({"a": path})
    drawn = np.column_stack(ax.lines[0].get_data())
    assert len(drawn) < 20_000
    assert np.array_equal(drawn[[0, -1]], path[[0, -1]])
    plotting.save(ax, tmp_path / "t.png")


def test_numbers_at_the_ends_of_the_floating_ones(tmp_path):
    for points in ([(1, 5e-324), (10, 1e150)], [[(1, 5e-324), (10, 0)], [(1, 1e-5), (10, 1e150)]]):
        plotting.save(plotting.convergence(points, spread="deviation"), tmp_path / "c.png")
    for row in ([5e-324, 1e150], [5e-324, 1e-323], [-1e150, 1e150]):
        plotting.save(plotting.sweep([row], [10**400], [float("nan"), 2], label="x", title=5), tmp_path / "s.png")


def test_many_crosses_are_one_drawing():
    table = np.where(np.arange(40_000).reshape(200, 200) % 2, np.nan, 1.0)
    ax = plotting.sweep(table, range(200), range(200), label="x")
    assert texts(ax) == []
    assert len(ax.lines[0].get_xdata()) == 20_000


# Names and files


def test_names_that_break_careless_pictures(tmp_path):
    lowered = jaxcfr.lower(OddGame())
    profile = jaxcfr.Profile.from_strategy(lowered, jaxcfr.uniform_strategy(lowered.tree))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # a font need not have them
        ax = plotting.strategy(profile)
        rows = [tick.get_text().replace(r"\$", "$") for tick in ax.get_yticklabels()]
        assert rows[1] == KEYS[0]
        assert "$x^2$ and $y$" in rows
        assert r"'two\nlines\tand a tab'" in rows
        assert max(map(len, rows)) <= LONGEST
        assert all(text.isprintable() for text in rows)
        assert [text.strip().replace(r"\$", "$") for text in legend(ax)] == ["</td>", "_pass", "$b$"]
        for ending in FORMATS:
            plotting.save(ax, tmp_path / f"s{ending}")
        plotting.save(plotting.game_tree(OddGame(), profile), tmp_path / "t.svg")
        plotting.save(plotting.convergence({"_$a$": [(1, 1)], "<b>": [(1, 2)]}), tmp_path / "c.svg")
        plotting.save(plotting.strategy(profile, kind="heatmap"), tmp_path / "h.svg")
    drawing = (tmp_path / "c.svg").read_text()
    assert "_$a$" in drawing
    assert "<b>" not in drawing
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.svg", "h.svg", "s.pdf", "s.png", "s.svg", "t.svg"]


def test_saving(tmp_path):
    ax = plotting.convergence([(1, 1), (10, 0.1)])
    path = tmp_path / "a.png"
    path.write_text("before")
    plotting.save(ax, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    for name in ("b.SVG", "c.svg"):
        plotting.save(plotting.convergence([(1, 1), (10, 0.1)]).figure, tmp_path / name)
    assert (tmp_path / "b.SVG").read_bytes() == (tmp_path / "c.svg").read_bytes()
    for wrong, message in (
        (tmp_path / "a.txt", "ends in .png, .svg or .pdf"),
        (tmp_path / "none" / "a.png", "no directory"),
        (tmp_path, "ends in"),
        (tmp_path / ".png" / "x.pdf", "no directory"),
        (None, "not the path of a file"),
        (5, "not the path of a file"),
    ):
        with pytest.raises(OptionError, match=message):
            plotting.save(ax, wrong)
    with pytest.raises(OptionError, match="plotting returned"):
        plotting.save("picture", path)
    for dpi in (0, -5, "fine", float("nan"), 100_000):
        with pytest.raises(OptionError, match="dpi has to be a number from 10 to 1200"):
            plotting.save(ax, path, dpi=dpi)


def test_axes_of_ones_own():
    figure, (left, right) = pyplot.subplots(1, 2)
    assert plotting.convergence([(1, 1)], ax=left) is left
    assert plotting.sweep([[1, 2]], [1], [1, 2], label="x", ax=right) is right
    assert pyplot.get_fignums() == [figure.number]


def test_without_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (
        lambda: plotting.convergence([(1, 1)]),
        lambda: plotting.save(None, tmp_path / "a.png"),
        lambda: plotting.game_tree("matching_pennies"),
    ):
        with pytest.raises(MissingPackageError, match=r"pip install \"jaxcfr\[plot\]\""):
            draw()
