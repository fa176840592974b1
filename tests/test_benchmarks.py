"""A small run of every benchmark: they work, and what they write is complete. No speed is judged here."""

import json
import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.__main__ import main

RUNS = {
    "speed": ["--games", "kuhn", "--seconds", "0.05"],
    "growth": ["--families", "leduc_poker", "--sizes", "1", "--seconds", "0.05", "--plot", "growth.svg"],
    "sweeps": ["--games", "kuhn", "--settings", "4", "--seconds", "0.05"],
    "accuracy": ["--games", "kuhn", "--variants", "cfr_plus", "hs_dcfr", "--cap", "0.1", "--plot", "curves"],
    "workers": [
        "--game",
        "kuhn_poker",
        "--workers",
        "1",
        "2",
        "--iterations",
        "5",
        "--seeds",
        "3",
        "--batch",
        "4",
        "--total",
        "9",
        "--repeats",
        "1",
    ],
}


@pytest.mark.parametrize("command", RUNS)
def test_a_small_run(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main([command, *RUNS[command], "--out", "result.json"])
    result = json.loads(Path("result.json").read_text())
    assert result["machine"]["jax"]
    assert result["rows"]
    numbers = [value for row in result["rows"] for value in row.values() if isinstance(value, int | float)]
    assert all(math.isfinite(number) and number > 0 for number in numbers)
    shown = capsys.readouterr().out
    assert all(row["game"][:10] in shown for row in result["rows"])
    if command == "accuracy":
        methods = {row["method"]: row["curve"][-1] for row in result["rows"]}
        assert methods["linear program"][2] < 1e-9
        assert methods["cfr_plus"][2] < 0.1
        assert Path("curves/kuhn.png").stat().st_size > 1000
    if command == "growth":
        assert result["rows"][0]["histories"] == 9457
        assert "histories" in Path("growth.svg").read_text()


@pytest.mark.slow
def test_a_small_run_of_cfr_d(tmp_path, capsys):
    """Its numbers are a grid, not rows."""
    file = tmp_path / "result.json"
    main(["cfr-d", "--trunk", "1", "2", "--subgame", "3", "--resolve", "5", "--out", str(file)])
    result = json.loads(file.read_text())
    assert result["resolving"]["cpu_seconds"] > 0
    points = result["curves"][0]["points"]
    assert [(point["trunk"], point["subgame"]) for point in points] == [(1, 3), (2, 3)]
    assert all(0 < point["exploitability"] < 13 for point in points)
    assert "2 trunk iterations" in " ".join(capsys.readouterr().out.split())
