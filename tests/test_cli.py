"""The command line: results against known numbers, every refusal in one line, and nothing lost on the way."""

import contextlib
import importlib
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading

import jax
import pytest
from odd_game import OddGame

import jaxcfr
from jaxcfr import __version__, cli, trainer
from jaxcfr.errors import HorizonError, OptionError
from jaxcfr.facts import probability_text
from jaxcfr.games.registry import list_games, load_game
from jaxcfr.interrupts import Interrupts, watch_signals
from jaxcfr.profile import Profile
from jaxcfr.regret.variants import VARIANTS
from jaxcfr.tree.convert import uniform_strategy
from jaxcfr.tree.lower import lower

SOLVE = importlib.import_module("jaxcfr.solve")  # jaxcfr.solve itself is the function
CASES = os.path.join(os.path.dirname(__file__), "cases")
KEYS = ["iteration", "nash_conv", "exploitability", "expected_payoffs", "gains", "seconds"]


def strict(text):
    """JSON without the NaN and Infinity that Python would let pass."""

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def json_lines(command):
    def run(*arguments):
        status, out, _ = command(*arguments, "--json")
        assert status == 0
        return [strict(line) for line in out.splitlines()]

    return run


@pytest.fixture
def uniform(tmp_path):
    """A file with the uniform profile of Kuhn poker."""
    lowered = lower(load_game("kuhn_poker"))
    path = tmp_path / "uniform"
    Profile.from_strategy(lowered, uniform_strategy(lowered.tree)).save(path)
    return path


@pytest.fixture
def refused(command):
    """Runs the command and returns the one line that it has to end with."""

    def run(*arguments):
        status, out, err = command(*arguments)
        assert status == 2
        assert out == ""
        assert err.startswith("jaxcfr: error: ")
        assert err.endswith("\n")
        assert err.count("\n") == 1
        return err

    return run


def environment(**changes):
    return {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "0", "JAX_COMPILATION_CACHE_DIR": "", **changes}


def start(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "jaxcfr", *map(str, arguments)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


# Results


def test_solve_json_is_one_object_a_line(json_lines):
    lines = json_lines("solve", "kuhn_poker", "-n", 500)
    assert [line["iteration"] for line in lines] == list(range(50, 501, 50))
    for line in lines:
        assert list(line) == KEYS
        assert line["exploitability"] == pytest.approx(line["nash_conv"] / 2, rel=1e-12)
        assert line["nash_conv"] == pytest.approx(sum(line["gains"]), rel=1e-12)
        assert min(line["gains"]) >= 0
    seconds = [line["seconds"] for line in lines]
    assert seconds == sorted(seconds)
    assert lines[-1]["expected_payoffs"] == pytest.approx([-1 / 18, 1 / 18], abs=1e-4)
    assert lines[-1]["nash_conv"] < 1e-3


def test_zero_iterations_evaluate_the_uniform_strategy(json_lines, tmp_path):
    (line,) = json_lines("solve", "kuhn_poker", "-n", 0, "--dtype", "float64", "--out", tmp_path / "p")
    assert line["iteration"] == 0
    assert line["nash_conv"] == pytest.approx(11 / 12, abs=1e-12)
    profile = Profile.load(tmp_path / "p")
    assert profile.iterations == 0
    assert profile.average_strategy(0, "0") == {"pass": 0.5, "bet": 0.5}


def test_leduc_approaches_its_value(json_lines):
    lines = json_lines("solve", "leduc_poker", "-n", 1000, "--dtype", "float64", "--eval-every", 1000)
    assert lines[-1]["expected_payoffs"] == pytest.approx([-0.085606424078, 0.085606424078], abs=1e-4)
    assert lines[-1]["nash_conv"] < 1e-3


def test_chunks_do_not_change_the_result(json_lines, tmp_path, monkeypatch):
    profiles = []
    for number, (seconds, every) in enumerate(((0.2, 1000), (1e-9, 7), (1e9, 100))):
        monkeypatch.setattr(trainer, "CHUNK_SECONDS", seconds)
        path = tmp_path / str(number)
        lines = json_lines("solve", "kuhn_poker", "-n", 100, "--eval-every", every, "--out", path)
        assert [line["iteration"] for line in lines] == [*range(every, 100, every), 100]
        profiles.append(Profile.load(path))
    assert profiles[0] == profiles[1] == profiles[2]


def test_solve_saves_what_exploit_and_show_read(command, json_lines, tmp_path):
    path = tmp_path / "kuhn profile"
    options = ["-n", 300, "--regret", "dcfr:gamma=3", "--updates", "simultaneous", "--seed", 7]
    line = json_lines("solve", "kuhn_poker", *options, "--dtype", "float64", "--out", path)[-1]
    assert os.listdir(tmp_path) == ["kuhn profile"]
    profile = Profile.load(path)
    assert profile.variant == "dcfr:alpha=1.5,beta=0,gamma=3, simultaneous updates"
    assert (profile.game_name, profile.iterations, profile.seed) == ("kuhn_poker", 300, 7)
    (again,) = json_lines("exploit", "kuhn_poker", path)
    assert list(again) == KEYS[1:-1]
    for key in again:
        assert again[key] == pytest.approx(line[key], abs=1e-12)
    status, out, _ = command("show", "kuhn_poker", path)
    assert status == 0
    assert out.startswith("kuhn_poker: dcfr:alpha=1.5,beta=0,gamma=3, simultaneous updates, 300 iterations\n")
    assert len(out.splitlines()) == 2 + 2 * 12


@pytest.mark.parametrize("given", ["a file", "the word"])
def test_exploit_table(command, uniform, given):
    status, out, err = command("exploit", "kuhn_poker", uniform if given == "a file" else "uniform")
    assert (status, err) == (0, "")
    assert re.search(r"NashConv +0\.916667\n", out)
    assert re.search(r"exploitability +0\.458333\n", out)
    assert re.search(r"\n +0 +0\.125 +0\.5 +0\.375\n +1 +-0\.125 ", out)


def test_show_in_a_pipe(command, uniform):
    """Every line has all of its cells, and there is no colour."""
    status, out, err = command("show", "kuhn_poker", uniform, "--player", 1, "--pattern", "2?")
    assert (status, err) == (0, "")
    bar = "\u2588" * 20
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["player", "information", "set", "action", "probability"],
        *(["1", key, action, "0.5000", bar] for key in ("2p", "2b") for action in ("pass", "bet")),
    ]
    assert "and 10 more" in command("show", "kuhn_poker", uniform, "--limit", 2)[1]
    assert len(command("show", "kuhn_poker", uniform, "--limit", 0)[1].splitlines()) == 2 + 2 * 12
    out = command("show", "kuhn_poker", uniform, "--pattern", "PB", "--limit", 0)[1]
    assert {line.split()[1] for line in out.splitlines()[2:]} == {"0pb", "1pb", "2pb"}
    assert "is like '['" in command("show", "kuhn_poker", uniform, "--pattern", "[")[1]
    assert "is like '\\x1b'" in command("show", "kuhn_poker", uniform, "--pattern", "\x1b")[1]


def test_show_json(json_lines, uniform):
    lines = json_lines("show", "kuhn_poker", uniform, "--pattern", "0*", "--limit", 3)
    half = {"pass": 0.5, "bet": 0.5}
    assert lines == [
        {"player": 0, "infoset": "0", "strategy": half},
        {"player": 0, "infoset": "0pb", "strategy": half},
        {"player": 1, "infoset": "0p", "strategy": half},
    ]


def test_show_many_actions_and_odd_names(command, tmp_path):
    path = tmp_path / "p"
    wide = lower(load_game(os.path.join(CASES, "20_wide_1000.efg")))
    Profile.from_strategy(wide, uniform_strategy(wide.tree)).save(path)
    out = command("show", os.path.join(CASES, "20_wide_1000.efg"), path)[1]
    assert "less probable)" in out
    assert len(out.splitlines()) < 40
    odd = lower(OddGame())
    Profile.from_strategy(odd, uniform_strategy(odd.tree)).save(path)
    game = tmp_path / "odd.json"
    jaxcfr.interop.write_game(OddGame(), game)
    status, out, _ = command("show", game, path)
    assert status == 0
    assert all(line.isprintable() for line in out.splitlines())
    assert "two\\nlines\\tand a tab" in out
    assert "<script>" in out


def test_bars_and_probabilities():
    assert [cli._bar(share, 10, True) for share in (0, 1e-12, 0.5, 0.5625, 1)] == [
        "",
        "\u258f",
        "\u2588" * 5,
        "\u2588" * 5 + "\u258b",  # five eighths
        "\u2588" * 10,
    ]
    assert [cli._bar(share, 10, False) for share in (0, 1e-12, 0.5, 1)] == ["", "#", "#####", "##########"]
    shown = [probability_text(p) for p in (0, 1e-9, 0.00005, 0.5, 0.99994, 0.99996, 1)]
    assert shown == ["0", "<0.0001", "0.0001", "0.5000", "0.9999", ">0.9999", "1"]


@pytest.mark.parametrize("settings", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"}])
def test_show_on_a_terminal(uniform, settings):
    full = environment(**{"TERM": "xterm", "COLUMNS": "70", "PYTHONIOENCODING": "utf-8", **settings})
    if "NO_COLOR" not in settings:
        full.pop("NO_COLOR", None)
    shown = on_a_terminal(["show", "kuhn_poker", uniform, "--player", 0, "--pattern", "pb"], full)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert ("\x1b[36m" in shown) == (not settings or "PYTHONIOENCODING" in settings)
    assert max(map(len, plain.splitlines())) <= 70
    assert ("####" in plain) == ("PYTHONIOENCODING" in settings)
    assert plain.count("0pb") == (2 if "TERM" in settings else 1)  # said once to a person


def test_narrow_terminals_get_fewer_columns_and_whole_numbers(command, monkeypatch):
    for columns, headings in (
        (100, ["NashConv", "expected", "seconds"]),
        (60, ["NashConv", "seconds"]),
        (45, ["NashConv"]),
    ):
        monkeypatch.setenv("COLUMNS", str(columns))
        out = command("solve", "kuhn_poker", "-n", 20, "--eval-every", 20)[1]
        table = out.splitlines()[2:]
        for heading in ("NashConv", "expected", "seconds"):
            assert any(heading in line for line in table) == (heading in headings)
        assert any(re.match(r" *20 +\d\.\d+ +\d\.\d+", line) for line in table)


# Pictures


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plot(command, tmp_path, ending):
    path = tmp_path / f"curve.{ending}"
    path.write_text("before")
    status, out, err = command("solve", "kuhn_poker", "-n", 30, "--plot", path)
    assert (status, err) == (0, "")
    assert out.endswith(f"The curve is drawn in {path}.\n")
    assert path.read_bytes().startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending])
    assert [line.split()[0] for line in out.splitlines()[5:11]] == ["1", "2", "5", "10", "20", "30"]
    if ending == "svg":
        drawing = path.read_text()
        assert "exploitability of the average strategy" in drawing
        assert "(units of payoff)" in drawing


def test_plot_of_other_games_and_options(command, json_lines, tmp_path):
    path = tmp_path / "c.svg"
    lines = json_lines("solve", "kuhn_poker(players=3)", "-n", 20, "--eval-every", 10, "--plot", path)
    assert [line["iteration"] for line in lines] == [10, 20]
    assert "NashConv of the average strategy" in path.read_text()
    lines = json_lines("solve", "kuhn_poker", "-n", 1000, "--target-exploitability", 0.05, "--plot", path)
    assert lines[-1]["exploitability"] <= 0.05
    assert lines[-1]["iteration"] < 1000
    assert "target 0.05" in path.read_text()
    for case in ("09_terminal_root", "10_chance_only"):
        assert command("solve", os.path.join(CASES, f"{case}.efg"), "-n", 3, "--plot", path)[0] == 0
    assert command("solve", "kuhn_poker", "-n", 0, "--plot", path)[0] == 0
    assert os.listdir(tmp_path) == ["c.svg"]


def test_a_stopped_run_tells_whether_there_is_a_curve(command, tmp_path, monkeypatch):
    path = tmp_path / "c.svg"
    run, stops = trainer.Trainer.run, {"leduc_poker": 0, "kuhn_poker": 2}

    def stopped(self, *arguments):
        if self.iterations_done == stops[self.lowered.name]:
            signal.raise_signal(signal.SIGINT)
        return run(self, *arguments)

    monkeypatch.setattr(trainer.Trainer, "run", stopped)
    status, _, err = command("solve", "leduc_poker", "-n", 10**6, "--eval-every", 10**6, "--plot", path)
    assert status == 130
    assert "nothing is saved; no curve is drawn, for nothing was evaluated" in err
    assert not path.exists()
    err = command("solve", "kuhn_poker", "-n", 10**6, "--plot", path)[2]
    assert f"after 2 iterations; nothing is saved; the curve is drawn in {path}" in err
    assert path.exists()


def test_a_resumed_run_draws_all_of_its_evaluations(json_lines, tmp_path, monkeypatch):
    path = tmp_path / "c.ckpt"
    options = ["solve", "kuhn_poker", "--checkpoint", path, "--resume", "--plot", tmp_path / "c.svg"]
    drawn = []
    draw = jaxcfr.plotting.convergence
    monkeypatch.setattr(jaxcfr.plotting, "convergence", lambda *a, **k: drawn.append(draw(*a, **k)) or drawn[-1])
    assert [line["iteration"] for line in json_lines(*options, "-n", 10)] == [1, 2, 5, 10]
    assert [line["iteration"] for line in json_lines(*options, "-n", 30)] == [20, 30]
    assert [ax.lines[0].get_xdata().tolist() for ax in drawn] == [[1, 2, 5, 10], [1, 2, 5, 10, 20, 30]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plot", "c.txt"], "ends in .png, .svg or .pdf"),
        (["--plot", os.path.join(CASES, "none", "c.png")], "no directory"),
        (["--plot", os.path.join(CASES, "c.png"), "--out", os.path.join(CASES, ".", "c.png")], "same file"),
    ],
)
def test_plots_that_are_refused_before_the_solve(refused, arguments, message, monkeypatch):
    monkeypatch.setattr(SOLVE, "_run", None)
    assert message in refused("solve", "kuhn_poker", *arguments)


def test_plot_without_matplotlib(refused, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert 'pip install "jaxcfr[plot]"' in refused("solve", "kuhn_poker", "--plot", tmp_path / "c.png")


# Completion


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("jaxcfr sol", ["solve"]),
        ("jaxcfr solve ku", ["kuhn_poker"]),
        ("jaxcfr info l", ["leduc_poker", "liars_dice"]),
        ("jaxcfr solve tests/", []),  # then the shell offers files
        ("jaxcfr solve kuhn_poker --regret pd", ["pdcfr_plus"]),
        ("jaxcfr solve kuhn_poker --algorithm ", [*cli.Algorithm]),
        ("jaxcfr solve kuhn_poker --updates s", ["simultaneous"]),
        ("jaxcfr exploit kuhn_poker p --dtype f", ["float32", "float64"]),
        ("jaxcfr match kuhn_poker u", ["uniform"]),
        ("jaxcfr solve kuhn_poker --pl", ["--plot"]),
    ],
)
def test_completion(line, expected, monkeypatch, capsys):
    monkeypatch.setenv("_JAXCFR_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    assert cli.main([]) == 0
    assert capsys.readouterr().out.split() == expected


def test_completion_of_hyperparameters():
    assert cli._complete_regret("dcfr:") == ["dcfr:alpha=", "dcfr:beta=", "dcfr:gamma="]
    assert cli._complete_regret("dcfr:alpha=1,b") == ["dcfr:alpha=1,beta="]
    assert cli._complete_regret("none:") == []


def test_completion_is_installed(command, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # the shell is what the options say
    for shell, word in (
        ("bash", "complete -o default"),
        ("zsh", "#compdef jaxcfr"),
        ("fish", "complete --command jaxcfr"),
    ):
        status, out, _ = command("--show-completion", shell)
        assert status == 0
        assert word in out
    assert command("--install-completion", "bash")[0] == 0
    (script,) = tmp_path.glob(".bash_completions/*")
    assert str(script) in (tmp_path / ".bashrc").read_text()


def test_solve_table(command, tmp_path):
    status, out, err = command("solve", "kuhn_poker", "-n", 50, "--eval-every", 20, "--out", tmp_path / "p")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "kuhn_poker: 2 players, zero-sum, 58 histories, 12 information sets"
    assert lines[1].startswith("dcfr_plus:alpha=1.5,gamma=4,offset=1, float")
    assert " on " in lines[1]
    assert re.search(r"iteration +NashConv +exploitability +expected payoffs +seconds", out)
    assert [line.split()[0] for line in lines[5:8]] == ["20", "40", "50"]
    assert "units of payoff" in out
    assert lines[-1] == f"The average strategy is saved in {tmp_path / 'p'}."


def test_games_that_are_not_two_player_constant_sum(command, json_lines):
    dilemma = os.path.join(CASES, "13_prisoners_dilemma.efg")
    assert [line["exploitability"] for line in json_lines("solve", dilemma, "-n", 20)] == [None] * 10
    for game, kind in ((dilemma, "general-sum"), ("kuhn_poker(players=3)", "3 players")):
        out = command("solve", game, "-n", 20, "--eval-every", 20)[1]
        assert "exploitability" not in out
        assert "coarse correlated equilibrium" in out
        assert kind in out
    out = command("solve", os.path.join(CASES, "11_one_player.efg"), "-n", 20)[1]
    assert "one player" in out


def test_constant_sum_has_an_exploitability(json_lines):
    lines = json_lines("solve", os.path.join(CASES, "16_constant_sum.efg"), "-n", 500)
    assert lines[-1]["exploitability"] < 1e-2
    assert sum(lines[-1]["expected_payoffs"]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("case", ["09_terminal_root", "10_chance_only"])
def test_games_without_moves(json_lines, command, case, tmp_path):
    game, path = os.path.join(CASES, f"{case}.efg"), tmp_path / "p"
    assert json_lines("solve", game, "-n", 3, "--out", path)[-1]["nash_conv"] == 0
    assert json_lines("exploit", game, path)[0]["nash_conv"] == 0
    assert command("show", game, path)[0] == 0
    assert command("info", game)[0] == 0


def test_target_exploitability_stops_the_run(json_lines, command):
    lines = json_lines("solve", "kuhn_poker", "-n", 10000, "--eval-every", 10, "--target-exploitability", 0.01)
    assert [line["exploitability"] <= 0.01 for line in lines] == [False] * (len(lines) - 1) + [True]
    out = command("solve", "kuhn_poker", "-n", 20, "--target-exploitability", 1e-9)[1]
    assert "1e-09 was not reached in 20 iterations" in out


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_can_be_named(name):
    variant, text = cli.parse_regret(f"{name}:gamma_init=30" if name.startswith("hs_") else name, 100)
    again, text_again = cli.parse_regret(text, 100)
    assert text_again == text
    assert again == variant
    assert isinstance(variant, type(VARIANTS[name](30.0, 100) if name.startswith("hs_") else VARIANTS[name]()))


def test_hs_variants_take_the_run_length(json_lines):
    assert cli.parse_regret("hs_dcfr: gamma_init = 30", 100)[1] == "hs_dcfr:gamma_init=30,total=100"
    assert json_lines("solve", "kuhn_poker", "-n", 60, "--regret", "hs_pcfr_plus:gamma_init=15")[-1]["nash_conv"] < 0.05
    assert cli.parse_regret("hs_dcfr:gamma_init=30,total=200", 100)[1] == "hs_dcfr:gamma_init=30,total=200"
    with pytest.raises(HorizonError):
        cli.parse_regret("hs_dcfr:gamma_init=30,total=50", 100)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dcfr:", "nothing after the colon"),
        ("dcfr+", "did you mean dcfr_plus"),
        ("dcfr-plus", "did you mean dcfr_plus"),
        ("DCFR_Plus", "did you mean dcfr_plus"),
        ("hedge_of_something", "the variants are vanilla, cfr_plus"),
        ("", "no regret variant is named ''"),
        ("dcfr:alhpa=1", "did you mean alpha"),
        ("dcfr:x=1", "the arguments are alpha, beta, gamma"),
        ("vanilla:alpha=1", "it has no arguments"),
        ("dcfr:alpha", "is not argument=value"),
        ("dcfr:alpha=", "is not a number"),
        ("dcfr:alpha=1,,beta=2", "is not argument=value"),
        ("dcfr:alpha=1,alpha=2", "given twice"),
        ("dcfr:alpha=one", "alpha=one is not a number"),
        ("dcfr:gamma=-1", "gamma"),
        ("dcfr:alpha=nan", "alpha"),
        ("hs_dcfr", "needs gamma_init"),
        ("hs_dcfr:gamma_init=1", "gamma_init"),
    ],
)
def test_regret_refusals(text, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        cli.parse_regret(text, 100)


def test_dtype_is_for_the_command_only(json_lines, tmp_path):
    for before, dtypes in ((False, ("float32", "float64")), (True, ("float32",))):
        with contextlib.ExitStack() as stack:
            stack.callback(jax.config.update, "jax_enable_x64", bool(jax.config.jax_enable_x64))
            jax.config.update("jax_enable_x64", before)
            for dtype in dtypes:
                (line,) = json_lines("solve", "kuhn_poker", "-n", 0, "--dtype", dtype)
                assert line["nash_conv"] == pytest.approx(11 / 12, abs=1e-6)
                assert (abs(line["nash_conv"] - 11 / 12) < 1e-13) == (dtype == "float64")
            assert bool(jax.config.jax_enable_x64) is before


def test_games_lists_every_game_and_option(command, json_lines):
    status, out, err = command("games")
    assert (status, err) == (0, "")
    assert ".efg" in out
    for game, line in zip(list_games(), json_lines("games"), strict=True):
        assert game.name in out
        assert line["name"] == game.name
        assert [option["name"] for option in line["options"]] == [option.name for option in game.options]
        for option in game.options:
            assert option.name in out


def test_info(command, json_lines):
    (facts,) = json_lines("info", "leduc_poker")
    assert (facts["players"], facts["histories"], facts["payoff_sum"]) == (2, 9457, "zero-sum")
    assert sum(facts["infosets"]) == 936
    assert (facts["payoff_min"], facts["payoff_max"]) == (-13, 13)
    assert facts["solve_bytes"] > facts["tree_bytes"] > 0
    status, out, err = command("info", "leduc_poker")
    assert (status, err) == (0, "")
    assert re.search(r"histories +9,457\n", out)
    assert re.search(r"information sets +468 \+ 468 = 936\n", out)
    assert "kB" in out
    for case, kind in (("13_prisoners_dilemma", "general-sum"), ("16_constant_sum", "constant-sum")):
        assert json_lines("info", os.path.join(CASES, f"{case}.efg"))[0]["payoff_sum"] == kind
    assert json_lines("info", "kuhn_poker(players=3)")[0]["payoff_sum"] == "zero-sum"


def test_help_and_version(command):
    assert command("--version") == (0, f"jaxcfr {__version__}\n", "")
    for arguments in ((), ("--help",), ("-h",)):
        status, out, err = command(*arguments)
        assert (status, err) == (0, "")
        assert all(name in out for name in ("solve", "games", "info", "exploit", "show"))
    for name in ("solve", "games", "info", "exploit", "show"):
        status, out, err = command(name, "--help")
        assert (status, err) == (0, "")
        assert "Usage" in out
    assert "deterministic" in command("solve", "--help")[1]


# Refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "frobnicate"),
        (["--frobnicate"], "--frobnicate"),
        (["solve"], "GAME"),
        (["solve", "kuhn"], "kuhn_poker"),
        (["solve", "kuhn_poker(player=3)"], "players"),
        (["solve", "kuhn_poker(players=99)"], "players"),
        (["solve", "kuhn_poker("], "bracket"),
        (["solve", "none.efg"], "none.efg"),
        (["solve", os.path.join(CASES, "26_bad_probs.efg")], "line"),
        (["solve", "kuhn_poker", "extra"], "extra"),
        (["solve", "kuhn_poker", "--frobnicate"], "--frobnicate"),
        (["solve", "kuhn_poker", "--iterations"], "--iterations"),
        (["solve", "kuhn_poker", "--iterations", "x"], "--iterations"),
        (
            ["solve", "kuhn_poker", "--iterations", "-1"],
            "'-n': it has to be an integer from 0 to 2,147,483,647, not -1",
        ),
        (["solve", "kuhn_poker", "--iterations", str(2**31)], "--iterations"),
        (["solve", "kuhn_poker", "--eval-every", "0"], "--eval-every"),
        (["solve", "kuhn_poker", "--seed", "x"], "--seed"),
        (
            ["solve", "kuhn_poker", "--updates", "sometimes"],
            "alternating or simultaneous or best_response, not sometimes",
        ),
        (["solve", "kuhn_poker", "--dtype", "float16"], "'--dtype': it has to be float32 or float64, not float16"),
        (["solve", "kuhn_poker", "--regret", "dcfr_plus:"], "nothing after the colon"),
        (["solve", "kuhn_poker", "--regret", "dcfr:gamma=inf"], "gamma"),
        (["solve", "kuhn_poker", "--regret", "dcfr:gamma=1e300"], "gamma"),
        (["solve", "kuhn_poker", "--regret", "hs_dcfr:gamma_init=inf"], "gamma_init"),
        (["info", os.path.dirname(CASES)], "is a directory"),
        (["info", "goofspiel(num_cards=13)"], "about 4.68e+29 histories, more than --max-nodes 10,000,000"),
        (["solve", "kuhn_poker", "--regret", "dcfr:alhpa=1"], "alpha"),
        (["solve", "kuhn_poker", "--regret", "hs_dcfr:gamma_init=30,total=5"], "total"),
        (["solve", "kuhn_poker", "--target-exploitability", "-1"], "--target-exploitability"),
        (["solve", "kuhn_poker", "--target-exploitability", "nan"], "--target-exploitability"),
        (["solve", "kuhn_poker(players=3)", "--target-exploitability", "0.1"], "constant-sum"),
        (["solve", "kuhn_poker", "--max-nodes", "10"], "raise --max-nodes"),
        (["solve", "kuhn_poker", "--out", os.path.join(CASES, "none", "p")], "directory"),
        (["solve", "kuhn_poker", "--out", CASES], "directory"),
        (["solve", "kuhn_poker", "--out", os.devnull], "regular file"),
        (["solve", "kuhn_poker", "--out", ""], "path"),
        (["info", "kuhn"], "kuhn_poker"),
        (["exploit", "kuhn_poker", "none"], "none"),
        (["exploit", "kuhn_poker", os.path.join(CASES, "17a_kuhn.efg")], "not a jaxcfr profile"),
        (["show", "kuhn_poker", CASES], "directory"),
    ],
)
def test_refusals_are_one_line(refused, arguments, message, monkeypatch):
    monkeypatch.setattr(SOLVE, "_run", None)  # nothing is solved before all is checked
    assert message in refused(*arguments)


def test_refusals_with_a_profile(refused, uniform):
    assert "2 players, but the game has 3" in refused("exploit", "kuhn_poker(players=3)", uniform)
    assert "player 0 has no strategy" in refused("show", "leduc_poker", uniform)
    assert "from 0 to 1, not 2" in refused("show", "kuhn_poker", uniform, "--player", 2)
    data = uniform.read_bytes()
    uniform.write_bytes(data[:-100])
    assert "truncated or damaged" in refused("exploit", "kuhn_poker", uniform)


def test_messages_stay_on_one_line_and_off_the_terminal_controls(refused):
    assert "\\x1b" in refused("solve", "x\x1b[31m\ny.efg")
    assert refused("solve", "two\nlines")


def test_keys_that_cannot_be_saved_are_refused_before_the_solve(refused, tmp_path, monkeypatch):
    game = load_game("kuhn_poker")
    monkeypatch.setattr(type(game), "infoset_key", lambda self, player: complex(len(self._bets), self._cards[player]))
    monkeypatch.setattr(SOLVE, "_run", None)
    assert "complex" in refused("solve", "kuhn_poker", "--out", tmp_path / "p")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("platform", ["none_such", "cuda"])
def test_no_device_is_one_line(platform):
    if platform == "cuda" and jax.default_backend() != "cpu":
        pytest.skip("there is an accelerator")
    process = subprocess.run(
        [sys.executable, "-m", "jaxcfr", "solve", "kuhn_poker"],
        env=environment(JAX_PLATFORMS=platform),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith("jaxcfr: error: JAX finds no device")
    assert process.stderr.count("\n") == 1


def test_out_of_memory_is_one_line(refused, monkeypatch):
    def fails(*_, **__):
        raise MemoryError

    def device_fails(*_, **__):
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes")

    for function in (fails, device_fails):
        monkeypatch.setattr("jaxcfr.cli._lower", function)
        assert "out of memory" in refused("info", "kuhn_poker")


# Nothing is lost


def test_an_existing_file_is_replaced_only_when_all_is_done(command, uniform, monkeypatch):
    before = uniform.read_bytes()
    seen = []
    write = cli._write

    def look(text):
        seen.append(uniform.read_bytes() == before)
        write(text)

    monkeypatch.setattr(cli, "_write", look)
    assert command("solve", "kuhn_poker", "-n", 20, "--json", "--out", uniform)[0] == 0
    assert seen == [True] * 10
    assert Profile.load(uniform).iterations == 20
    assert os.listdir(uniform.parent) == ["uniform"]


def test_a_failure_on_the_way_still_saves(command, tmp_path, monkeypatch):
    count = []
    evaluate = trainer.evaluate

    def fails(*arguments):
        count.append(1)
        if len(count) == 3:
            raise MemoryError
        return evaluate(*arguments)

    monkeypatch.setattr(trainer, "evaluate", fails)
    status, _, err = command("solve", "kuhn_poker", "-n", 100, "--json", "--out", tmp_path / "p")
    assert status == 2
    assert "out of memory" in err
    assert Profile.load(tmp_path / "p").iterations == 30


def test_a_second_interrupt_stops_at_once_and_still_saves(command, tmp_path, monkeypatch):
    def interrupted(text):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_write", interrupted)
    status, _, err = command("solve", "kuhn_poker", "-n", 100, "--json", "--out", tmp_path / "p")
    assert status == 130
    assert "stopped after 10 iterations; the average so far is saved" in err
    assert Profile.load(tmp_path / "p").iterations == 10


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_save_the_average_so_far(tmp_path, number, status):
    path = tmp_path / "p"
    process = start(
        "solve", "kuhn_poker", "-n", 10**9, "--eval-every", 500, "--json", "--out", path, start_new_session=True
    )
    try:
        strict(process.stdout.readline())
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == status
    assert re.search(rb"jaxcfr: stopped after [\d,]+ iterations; the average so far is saved in ", err)
    assert b"Traceback" not in err
    for line in out.splitlines():
        strict(line)
    assert Profile.load(path).iterations >= 500
    assert os.listdir(tmp_path) == ["p"]


def test_a_closed_pipe_is_quiet_and_the_file_is_written_all_the_same(tmp_path):
    for options in ([], ["--out", tmp_path / "p"]):
        process = start("solve", "kuhn_poker", "-n", 300, "--eval-every", 1, "--json", *options)
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        assert process.wait(timeout=60) == (0 if options else 141)
        assert err.count(b"\n") == 1  # which device it runs on
    assert Profile.load(tmp_path / "p").iterations == 300


def on_a_terminal(arguments, full, stream="stdout"):
    """Runs the command with one stream on a terminal: what comes out there; the other one has to be JSON lines."""
    parent, child = pty.openpty()
    pieces = []

    def read():
        with contextlib.suppress(OSError):  # how Linux says that the other end is closed
            while piece := os.read(parent, 1 << 16):
                pieces.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        process = subprocess.run(
            [sys.executable, "-m", "jaxcfr", *map(str, arguments)],
            env=full,
            timeout=60,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: child},
        )
    finally:
        os.close(child)
        reader.join(timeout=60)
        os.close(parent)
    assert process.returncode == 0
    shown = b"".join(pieces).decode()
    if stream == "stdout":
        return shown
    return shown, [strict(line) for line in process.stdout.splitlines()]


def test_progress_goes_to_a_terminal_on_standard_error_only():
    full = environment(TERM="xterm", COLUMNS="120")
    shown, lines = on_a_terminal(["solve", "kuhn_poker", "-n", "2000", "--json"], full, "stderr")
    assert [line["iteration"] for line in lines] == list(range(200, 2001, 200))
    assert "solving kuhn_poker in float32 on cpu" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert "2000/2000" in plain
    assert "compiling" in plain
    assert re.search(r"[\d,]+ it/s +\d:\d\d:\d\d left +NashConv \d", plain)


def test_progress_of_a_decomposition():
    full = environment(TERM="xterm", COLUMNS="120", JAX_DISABLE_MOST_OPTIMIZATIONS="1")
    sizes = ["-n", 20, "--subgame-iterations", 5, "--resolve-iterations", 5]
    shown, lines = on_a_terminal(["cfr-d", "kuhn_poker", "--cut", 3, *sizes, "--json"], full, "stderr")
    assert [line["iteration"] for line in lines] == list(range(2, 21, 2))
    assert "solving kuhn_poker by CFR-D: dcfr_plus:" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert "20/20" in plain
    assert re.search(r"[\d,.]+ it/s +\d:\d\d:\d\d left +NashConv \d", plain)


@pytest.mark.skipif(sys.platform == "win32", reason="closes file descriptors in a shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_as_good_as_devnull(tmp_path, closed):
    script = f'"$0" -m jaxcfr solve kuhn_poker -n 3 --out p {closed}; echo $? > status'
    process = subprocess.run(
        ["sh", "-c", script, sys.executable],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in process.stderr
    assert (tmp_path / "status").read_text() == "0\n"
    assert Profile.load(tmp_path / "p").iterations == 3


def test_tables_keep_to_the_width_of_the_terminal(command, uniform, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    for arguments in (["games"], ["info", "kuhn_poker"], ["show", "kuhn_poker", uniform, "--limit", 0]):
        out = command(*arguments)[1]
        assert max(map(len, [line for line in out.splitlines() if "Options" not in line])) <= 50
    monkeypatch.setenv("COLUMNS", "40")
    lines = command("show", "kuhn_poker", uniform, "--limit", 1)[1].splitlines()[1:-1]
    assert max(map(len, lines)) <= 40
    rows = [["who", "key", "action", "prob."], ["0", "0", "pass", "0.5000"], ["0", "0", "bet", "0.5000"]]
    assert [line.split()[:4] for line in lines] == rows


def test_values_of_info_stand_near_their_names(command):
    game = os.path.join(CASES, "13_prisoners_dilemma.efg")
    lines = command("info", game)[1].splitlines()
    assert all(re.search(r" {2,3}\S", line[10:26]) for line in lines[1:])


@pytest.mark.parametrize("where", ["xdg", "home", "set", "off", "unwritable"])
def test_compiled_programs_are_kept_for_the_command_only(tmp_path, where):
    directory = {"xdg": "xdg/jaxcfr", "home": "home/.cache/jaxcfr", "set": "set"}.get(where)
    full = environment(
        HOME=str(tmp_path / "home"),
        XDG_CACHE_HOME=str(tmp_path / "xdg") if where == "xdg" else "",
        JAX_COMPILATION_CACHE_DIR=str(tmp_path / "set") if where == "set" else "",
    )
    if where not in ("set", "off"):
        del full["JAX_COMPILATION_CACHE_DIR"]
    if where == "unwritable":
        (tmp_path / "home").write_text("a file")
    code = (
        "import os, sys, jax, jaxcfr.cli as cli\n"
        "assert not jax.config.jax_compilation_cache_dir or 'JAX_COMPILATION_CACHE_DIR' in os.environ\n"
        "sys.argv = ['jaxcfr', '--version']\n"
        "status = cli.main()\n"
        "print(jax.config.jax_compilation_cache_dir)"
    )
    process = subprocess.run([sys.executable, "-c", code], env=full, capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stderr) == (0, "")
    shown = process.stdout.splitlines()[-1]
    assert shown in ([str(tmp_path / directory)] if directory else ["", "None"])


def test_names_beyond_the_encoding_of_the_terminal():
    process = subprocess.run(
        [sys.executable, "-m", "jaxcfr", "info", os.path.join(CASES, "23_bagwell_commas.efg")],
        env=environment(PYTHONIOENCODING="ascii"),
        capture_output=True,
        timeout=60,
    )
    assert (process.returncode, process.stderr) == (0, b"")


# Playing.


@pytest.fixture
def person(command, monkeypatch):
    """Runs the command with what a person types."""

    def run(typed, *arguments):
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        return command(*arguments)

    return run


def test_playing_against_a_profile(person, uniform):
    status, out, _ = person("bet\n" * 40, "play", "kuhn_poker", uniform, "--as", 1, "--plays", 12, "--seed", 5)
    assert status == 0
    assert out.startswith(f"kuhn_poker: you are player 1, against {uniform}")
    # What is shown is the own card and the betting; the other card only when the play is over.
    keys = re.findall(r"You see: (.*)", out)
    ends = re.findall(r"Player 0 saw: (\d)[pb]+\nYou get ([+-]\d)", out)
    assert len(ends) == 12
    for key, (other, payoff) in zip(keys, ends, strict=True):
        assert key[0] != other
        if abs(int(payoff)) == 2:  # two called, so that the cards decide
            assert (int(payoff) > 0) == (key[0] > other)
    assert out.count('How to read it: The player\'s card and all betting (p: pass, b: bet), as "0pb"') == 1
    # What a terminal would show of what is typed is there in a pipe too.
    assert out.count("Your action (pass, bet): bet\n") == 12
    assert len(keys) == 12
    assert set(keys) <= {card + bets for card in "012" for bets in "pb"}
    gains = [float(text) for text in re.findall(r"You get ([+-]\d+)\.", out)]
    assert len(gains) == 12
    assert set(gains) <= {-2, -1, 1, 2}
    assert f"Score {sum(gains):+g} in 12 plays" in out
    scores = [float(text) for text in re.findall(r"is ([+-]\d+)\.", out)]
    assert scores == [sum(gains[: n + 1]) for n in range(12)]
    again = person("bet\n" * 40, "play", "kuhn_poker", uniform, "--as", 1, "--plays", 12, "--seed", 5)[1]
    assert again == out


def test_what_a_person_may_type(person):
    typed = "\nfish\nB\npas\nz\nq\n"
    status, out, err = person(typed, "play", "kuhn_poker", "uniform", "--seed", 1)
    assert (status, err) == (0, "")
    assert "fish is none of them; 'help' explains, 'quit' ends the game" in out
    assert "z is none of them" in out
    for word in ("help", "?"):
        out = person(f"{word}\nquit\n", "play", "leduc_poker", "uniform", "--seed", 1)[1]
        assert out.count("c: call or check, r: raise, f: fold") == 2
        assert "none of them" not in out
    status, out, err = person("1\n", "play", "goofspiel", "uniform", "--seed", 1)
    assert "Your action (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)" in out
    assert "could be" not in out  # an action itself goes before longer ones that begin so
    assert "Your action (2, 3" in out
    status, out, err = person("", "play", "kuhn_poker", "uniform")
    assert (status, err) == (0, "")
    assert "Score" not in out


class Words(jaxcfr.Game):
    """One choice among words that mean something else to the command, and blanks."""

    num_players = 1

    def __init__(self, chosen=None):
        self.chosen = chosen

    def is_terminal(self):
        return self.chosen is not None

    def is_chance(self):
        return False

    def player_to_act(self):
        return 0

    def legal_actions(self):
        return ("help", "quit", "?", "", " ")

    def step(self, action):
        return Words(action)

    def terminal_returns(self):
        return (float(self.legal_actions().index(self.chosen)),)

    def infoset_key(self, player):
        return "words"


def test_actions_that_are_called_like_commands(person, monkeypatch):
    monkeypatch.setattr(cli, "load_game", lambda name: Words())
    out = person("help\nquit\n?\n\n''\n' '\n:help\nfish\n:QUIT\nhelp\n", "play", "words", "uniform")[1]
    assert re.findall(r"You get \+(\d)", out) == ["0", "1", "2", "3", "4"]
    assert out.count("':help' shows this again, ':quit' ends the game") == 2
    assert "fish is none of them; ':help' explains, ':quit' ends the game" in out
    assert out.endswith("in 5 plays, +2 a play.\n")
    monkeypatch.undo()
    out = person("HELP\nQuit\nfish\n", "play", "kuhn_poker", "uniform")[1]
    assert out.count("Type an action") == 2
    assert "fish" not in out


def test_a_game_without_decisions_waits_for_the_person(person):
    status, out, _ = person("\n\nquit\n", "play", os.path.join(CASES, "10_chance_only.efg"), "uniform")
    assert status == 0
    assert out.count("nothing for you to decide") == 3
    assert "in 3 plays" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--as", "2"], "players 0 to 1"),
        (["--as", "-1"], "at least 0"),
        (["--plays", "0"], "at least 1"),
        (["--seed", "x"], "integer"),
    ],
)
def test_play_refuses(refused, arguments, words):
    assert words in refused("play", "kuhn_poker", "uniform", *arguments)


def test_play_and_match_refuse_what_is_no_profile_of_the_game(refused, person, uniform, tmp_path):
    assert "cannot be read" in refused("play", "kuhn_poker", tmp_path / "none")
    assert "no strategy" in refused("match", "leduc_poker", uniform, "uniform")
    assert "2 players" in refused("match", "kuhn_poker(players=3)", uniform, uniform)
    status, _, err = person("call\n" * 9, "play", "leduc_poker", uniform, "--seed", 1)
    assert status == 2
    assert err.count("\n") == 1
    assert "no strategy" in err


def test_match_is_exact_where_it_can_be(command, json_lines, uniform):
    [found] = json_lines("match", "kuhn_poker", uniform, "uniform")
    assert found == {"value": 0.0, "by_seat": [0.125, -0.125], "exact": True, "standard_error": 0.0, "plays": 0}
    [sampled] = json_lines("match", "kuhn_poker", uniform, "uniform", "--max-nodes", 9, "--plays", 500)
    assert not sampled["exact"]
    assert sampled["plays"] == 1000
    assert abs(sampled["value"]) < 4.5 * sampled["standard_error"]
    status, out, _ = command("match", "kuhn_poker", uniform, "uniform")
    assert status == 0
    assert "A gets 0 a play over all seats, exactly" in out
    status, out, _ = command("match", "goofspiel", "uniform", "uniform", "--plays", 5)
    assert status == 0
    assert "standard error" in out


# Converting


def test_convert(command, json_lines, tmp_path):
    before = json_lines("info", "kuhn_poker")[0]
    file = "kuhn_poker"
    for name in ("a.json", "b.efg", "c.json"):
        status, out, err = command("convert", file, tmp_path / name)
        assert (status, err) == (0, "")
        assert out == f"kuhn_poker is written to {tmp_path / name}\n"
        file = tmp_path / name
        after = json_lines("info", file)[0]
        same = ("players", "payoff_sum", "histories", "terminals", "depth", "infosets", "payoff_min", "payoff_max")
        assert {key: after[key] for key in same} == {key: before[key] for key in same}
    assert command("convert", "matrix_game", tmp_path / "d.nfg")[0] == 0
    assert json_lines("info", tmp_path / "d.nfg")[0]["histories"] == 7


@pytest.mark.parametrize(
    ("game", "name", "words"),
    [
        ("kuhn_poker", "x.nfg", "normal form"),
        ("kuhn_poker", "x.txt", "ends in .efg, .nfg or .json"),
        ("kuhn_poker", "no/x.json", "cannot be written"),
        ("kuhn", "x.json", "no game is named"),
        (os.path.join(CASES, "05_absent_minded.efg"), "x.json", "absent-minded"),
    ],
)
def test_convert_refuses(game, name, words, refused, tmp_path):
    assert words in refused("convert", game, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_convert_keeps_to_max_nodes(refused, tmp_path):
    assert "--max-nodes 57" in refused("convert", "kuhn_poker", tmp_path / "x.json", "--max-nodes", 57)


@pytest.mark.parametrize("ending", ["json", "efg"])
def test_convert_refuses_a_game_that_no_file_can_hold(ending, refused, tmp_path):
    assert "many times more than --max-nodes 10,000,000" in refused("convert", "goofspiel", tmp_path / f"x.{ending}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "{", '{"format": "jaxcfr profile"}', "[" * 10_000, "NFG 1 R"])
@pytest.mark.parametrize("ending", ["json", "nfg", "efg"])
def test_game_files_that_are_none(text, ending, refused, tmp_path):
    path = tmp_path / f"x.{ending}"
    path.write_text(text)
    assert str(path) in refused("info", path)


# Workers, splits, checkpoints, locks

SAMPLED = ["--algorithm", "external_sampling", "--batch", 4, "--seed", 3]


def test_workers_and_splits(command, json_lines, tmp_path):
    line = json_lines("solve", "kuhn_poker", "-n", 30, *SAMPLED, "--workers", 3, "--out", tmp_path / "p")[-1]
    sampler = jaxcfr.external_sampling(batch=4)
    lowered = lower(load_game("kuhn_poker"))
    expected = jaxcfr.Trainer(lowered, sampler, seed=3, workers=3).train(30)
    assert Profile.load(tmp_path / "p") == expected.profile()
    assert line["nash_conv"] == pytest.approx(float(jaxcfr.nash_conv(lowered.tree, expected.strategy())))
    shown = command("solve", "kuhn_poker", "-n", 30, *SAMPLED, "--workers", 3, "--split", "--out", tmp_path / "p")[1]
    assert "a split over 3 workers" in shown
    expected = jaxcfr.Trainer(lowered, sampler, seed=3, workers=3).train_split(30)
    assert Profile.load(tmp_path / "p") == expected.profile()


def test_checkpoint_and_resume(command, json_lines, refused, tmp_path):
    path, out = tmp_path / "run.ckpt", tmp_path / "p"
    options = ["solve", "kuhn_poker", *SAMPLED, "--workers", 2, "--checkpoint", path, "--resume"]
    first = json_lines(*options, "-n", 25, "--eval-every", 10)
    assert [line["iteration"] for line in first] == [10, 20, 25]
    second = json_lines(*options, "-n", 40, "--eval-every", 10, "--out", out)
    assert [line["iteration"] for line in second] == [30, 40]
    whole = json_lines("solve", "kuhn_poker", "-n", 40, *SAMPLED, "--workers", 2, "--out", tmp_path / "q")
    assert Profile.load(out) == Profile.load(tmp_path / "q")
    assert second[-1]["nash_conv"] == whole[-1]["nash_conv"]
    status, shown, told = command(*options, "-n", 40)
    assert (status, "40" in shown) == (0, True)
    assert "has done 40 iterations, as many as --iterations asks for" in told
    assert "after 40 iterations" in command(*options, "-n", 41)[2]
    before = path.read_bytes()
    assert "run.ckpt is there already" in refused(*[x for x in options if x != "--resume"], "-n", 50)
    assert path.read_bytes() == before
    assert "not a jaxcfr profile, but a checkpoint" in refused("exploit", "kuhn_poker", path)
    assert "counts from the beginning" in refused(*options, "-n", 40)
    assert "--workers 2" in refused(*[3 if x == 2 else x for x in options], "-n", 50)
    assert "dcfr_plus" in refused(*options, "--regret", "dcfr", "-n", 50)
    assert "other locks" in refused(*options, "--lock", out, "-n", 50)
    assert "made for kuhn_poker" in refused("solve", "leduc_poker", *options[2:], "-n", 50)
    path.write_bytes(path.read_bytes()[:-1])
    assert "run.ckpt.previous" in refused(*options, "-n", 50)
    assert sorted(os.listdir(tmp_path)) == ["p", "q", "run.ckpt", "run.ckpt.previous"]


def test_an_interrupt_that_is_dropped_ends_the_run():
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        watch_signals()
        with Interrupts(signal.SIGINT) as signals:
            assert signals.received is None
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with Interrupts(signal.SIGINT) as signals:  # the exception was dropped, and a run begins
            assert signals.received == signal.SIGINT
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        watch_signals()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # a job in the background
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupted_run_goes_on(tmp_path):
    path, out = tmp_path / "run.ckpt", tmp_path / "p"
    options = ["solve", "kuhn_poker", "--checkpoint", path, "--resume", "--out", out]
    process = subprocess.Popen(
        [sys.executable, "-m", "jaxcfr", *map(str, options), "-n", "1000000000", "--json", "--eval-every", "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert "goes on from here" in err
    done = jaxcfr.Trainer.load(path, lower(load_game("kuhn_poker"), dtype="float32")).iterations_done
    assert done == Profile.load(out).iterations >= 100


def test_lock(command, json_lines, refused, tmp_path):
    """The file by key, as a profile, and what is wrong with one."""
    path = tmp_path / "locks.json"
    path.write_text(json.dumps({"0": {"0": {"bet": 0.8, "pass": 0.2}}}))
    options = ["--dtype", "float64", "-n", 4000, "--regret", "pcfr_plus", "--lock", path]
    line = json_lines("solve", "kuhn_poker", *options, "--out", tmp_path / "p")[-1]
    assert line["nash_conv"] < 1e-4
    assert Profile.load(tmp_path / "p").average_strategy(0, "0") == pytest.approx({"pass": 0.2, "bet": 0.8})
    free = json_lines("exploit", "kuhn_poker", tmp_path / "p")[-1]
    assert free["nash_conv"] > 0.01
    assert "locked game" in command("solve", "kuhn_poker", *options)[1]
    fixed = tmp_path / "fixed"
    leduc = lower(load_game("leduc_poker"))
    uniform = Profile.from_strategy(leduc, uniform_strategy(leduc.tree))
    uniform.restricted([[], leduc.infoset_keys[1]], 0, 0, 0).save(fixed)
    line = json_lines("solve", "leduc_poker", "-n", 200, "--lock", fixed)[-1]
    assert line["gains"][1] < 1e-5  # everything that player 1 does is fixed
    for text, message in [
        ("{", "neither a profile nor JSON"),
        ("[]", "neither a profile nor JSON"),
        ('{"a": {}}', "neither a profile nor JSON"),
        ('{"0": {"9": {"bet": 1}}}', "no information set '9'"),
        ('{"0": {"0 ": {"bet": 1}}}', "did you mean '0'?"),
        ('{"0": {"0": {"fold": 1}}}', "'fold'"),
        ('{"0": {"0": [0.5, 0.6]}}', "no distribution"),
        ('{"0": {"0": "01"}}', "2 probabilities"),
        ('{"0": {"0": [true, false]}}', "True at player 0's information set '0' is no probability"),
        ('{"0": {"0": {"bet": "0.5", "pass": "0.5"}}}', "'0.5' at"),
        ('{"0": {"0": {"bet": NaN, "pass": 1}}}', "no distribution"),
        ('{"0": [["0", [1, 0]], ["0", [0, 1]]]}', "is no object"),
        ('{"0": {"0": [1, 0], "0": [0, 1]}}', "'0' stands there twice"),
        ("{}", "locks no information set"),
        ('{"0": {}, "1": {}}', "locks no information set"),
        ('{"5": {"0": [0.5, 0.5]}}', "from 0 to 1, not 5"),
    ]:
        path.write_text(text)
        assert message in refused("solve", "kuhn_poker", "--lock", path)
    assert "no such file" in refused("solve", "kuhn_poker", "--lock", tmp_path / "none")
    assert f"{fixed}: " in refused("solve", "kuhn_poker", "--lock", fixed)


def test_files_that_would_be_lost(refused, tmp_path):
    """The game's own file, and the checkpoint that is kept beside the new one."""
    game, checkpoint = tmp_path / "kuhn.efg", tmp_path / "c"
    jaxcfr.interop.write_game(load_game("kuhn_poker"), game)
    before = game.read_text()
    for command in (["solve"], ["cfr-d", "--cut", 2], ["report"]):
        assert "GAME and --out are the same file" in refused(*command, game, "--out", game)
    assert "GAME and --checkpoint" in refused("solve", game, "--checkpoint", game)
    assert game.read_text() == before
    words = refused("solve", game, "--checkpoint", checkpoint, "--out", tmp_path / "c.previous")
    assert "--out and the previous --checkpoint" in words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "2"], "samples"),
        (["--workers", "0"], "--workers"),
        (["--split"], "--workers"),
        ([*SAMPLED, "--workers", 2, "--split", "--eval-every", 3], "--eval-every"),
        (["--resume"], "--checkpoint"),
        (["--checkpoint", os.devnull], "regular file"),
        (["--checkpoint", os.path.join(CASES, "c"), "--out", os.path.join(CASES, ".", "c")], "same file"),
        (["--checkpoint", os.path.join(CASES, "none", "c")], "directory"),
    ],
)
def test_refusals_of_runs(refused, arguments, message, monkeypatch):
    monkeypatch.setattr(SOLVE, "_run", None)
    assert message in refused("solve", "kuhn_poker", *arguments)
