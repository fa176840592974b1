"""The examples run at a small size, and what they print is right where it can be known."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import jax
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs an example here, as from the command line; returns what it printed."""

    def run(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        x64 = jax.config.read("jax_enable_x64")
        try:
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        finally:
            jax.config.update("jax_enable_x64", x64)
        return capsys.readouterr().out

    return run


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+(?:e[+-]?\d+)?", text)]


def line(output: str, start: str) -> list[float]:
    """The numbers of the line that begins so."""
    return next(numbers(line[len(start) :]) for line in output.splitlines() if line.startswith(start))


def test_custom_game(run):
    output = run("custom_game.py", "--quick")
    found, exact = numbers(re.search(r"value .*", output)[0])
    # Three days, one visit: the violator complies to the end unless it pays to violate.
    assert found == pytest.approx(exact, abs=1e-5)
    assert line(output, "exploitability")[0] < 1e-5


def test_sweep(run):
    output = run("sweep.py", "--quick")
    rows = [numbers(row) for row in output.splitlines() if re.match(r" *\d\.\d\d ", row)]
    assert len(rows) == 3
    assert all(len(row) == 4 for row in rows)
    values = [value for row in rows for value in row[1:]]
    assert len(set(values)) == 9  # nine different runs
    assert min(values) == line(output, "best:")[-1]


def test_compare_variants(run):
    # The values of exact Kuhn poker after 10 and 100 iterations that the tests of the variants pin as well.
    output = run("compare_variants.py", "--quick")
    assert line(output, "vanilla")[1:] == pytest.approx([0.0686988, 0.00822598], rel=0.005)
    assert line(output, "dcfr_plus")[1:] == pytest.approx([0.0213145, 0.00152400], rel=0.005)
    assert line(output, "pdcfr_plus")[2] == pytest.approx(1.10483e-7, rel=0.005)


def test_blueprint_and_subgame(run):
    output = run("blueprint_and_subgame.py", "--quick")
    before = line(output, "exploitability of the blueprint")[0]
    assert line(output, "after solving again, resolve")[0] < before + 1e-3
    assert line(output, "after solving again, maxmargin")[0] < before + 1e-3
    assert line(output, "after solving again, unsafe")[0] > before + 1e-2  # it promises nothing


def test_own_variant(run):
    output = run("own_variant.py", "--quick")
    assert line(output, "power 1.0:") == line(output, "cfr_plus :")  # the power 1 is regret matching
    assert line(output, "power 2.0:") != line(output, "power 1.0:")


def test_learned_predictor(run):
    output = run("learned_predictor.py", "--quick")
    assert line(output, "trained")[0] < line(output, "before training")[0]


@pytest.mark.slow
def test_the_learned_predictor_learns(run):
    """Full size: on games it has not seen the network does better than any fixed rate without one."""
    output = run("learned_predictor.py")
    assert line(output, "trained")[0] < 0.95 * line(output, "without a network, the best rate")[0]


def test_to_openspiel(run):
    pytest.importorskip("pyspiel")
    output = run("to_openspiel.py", "--quick")
    assert line(output, "exploitability by jaxcfr") == pytest.approx(
        line(output, "exploitability by OpenSpiel"), abs=1e-7
    )


def test_many_devices():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(EXAMPLES / "many_devices.py"), "--quick"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("2 devices")
    one, many = line(result.stdout, "one worker"), line(result.stdout, "the average of 4 workers")
    assert many[0] < one[0]  # these seeds: the average of runs is steadier
    assert "40 iterations over 2 devices" in result.stdout


def test_subgames_speed(run):
    rows = run("subgames_speed.py", "--quick").splitlines()
    assert [re.split(r"  |, ", row)[0] for row in rows] == [
        "the whole game",
        "one part",
        "one part",
        "one part",
        "2 parts together",
        "depth limit 1",
        "depth limit 1",
    ]
    assert all(len(numbers(row)) == 2 and numbers(row)[0] > 0 for row in rows)


@pytest.mark.slow
def test_resolving_figures(run, tmp_path):
    """Figure 5 with little: never above the blueprint's exploitability when it is safe."""
    output = run("resolving_figures.py", "5", "--quick", "--out", str(tmp_path / "figure.png"))
    blueprint = line(output, "blueprint: exploitability")[0]
    assert blueprint == pytest.approx(0.3822, abs=0.01)
    assert all(row[-1] < blueprint for row in map(numbers, re.findall(r"resolve .*", output)))
    assert (tmp_path / "figure.png").stat().st_size > 5_000


@pytest.mark.slow
def test_subgames_table(run):
    output = run("subgames_table.py", "--games", "kuhn", "--iterations", "200")
    cells = [row.split("|")[3:6] for row in output.splitlines() if "| equilibrium |" in row or "| poor |" in row]
    assert len(cells) == 2
    for before, *safe in cells:
        assert all(float(after) < float(before) + 0.02 for after in safe)
