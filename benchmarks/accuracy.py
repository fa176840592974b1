"""Time to an exploitability, for every variant, without compilation; and for the linear program."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

import jaxcfr
from benchmarks.common import GAMES, lower, time_solve
from jaxcfr.regret.matching import normalise
from jaxcfr.regret.variants import VARIANTS
from jaxcfr.tree.game_tree import GameTree

TARGETS = (1e-2, 1e-4, 1e-6, 1e-8)

LOWEST = 1e-16
"""Exploitabilities below this are rounding."""


def made(name: str, horizon: float) -> Any:
    """The variant of this name, with schedules that long."""
    if not name.startswith("hs_"):
        return VARIANTS[name]()
    return VARIANTS[name](15 if "pcfr" in name else 30, horizon)


def curve(
    tree: GameTree, judge: GameTree, name: str, horizon: float, seconds: float, stop: float
) -> list[tuple[int, float, float]]:
    """(iterations, seconds, exploitability) while a run goes on, looked at more and more rarely.

    The seconds are those of so many iterations at the speed that was measured beforehand.
    """
    cost = time_solve(tree, made(name, 1e9), min(2.0, seconds))
    variant = made(name, horizon)
    state = jaxcfr.solve(tree, variant, 0)
    points, done = [], 0
    while done * cost < seconds:
        step = max(10, done // 4)
        if variant.total is not None:
            step = min(step, int(variant.total) - done)
            if step == 0:
                break
        state = jaxcfr.solve(tree, variant, step, state)
        done += step
        value = _judged(judge, tree, state)
        points.append((done, done * cost, value))
        if value <= stop:
            break
    return points


def _judged(judge: GameTree, tree: GameTree, state: Any) -> float:
    """The exploitability of a run's average, computed in float64."""
    strategy = jax.tree.map(lambda values: values.astype(judge.dtype), jaxcfr.average_strategy(tree, state))
    normalised = tuple(map(_normalised, judge.treeplexes, strategy))
    return float(jaxcfr.exploitability(judge, normalised))


@jax.jit
def _normalised(treeplex: Any, strategy: Any) -> Any:
    return treeplex.over_tables(normalise, strategy, treeplex.uniform)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    jax.config.update("jax_enable_x64", True)
    rows = []
    for name in arguments.games:
        tree = lower(name, arguments.dtype, histories=True)
        judge = lower(name, "float64")
        for variant in arguments.variants:
            found = curve(tree, judge, variant, arguments.horizon, arguments.cap, arguments.stop)
            rows.append({"game": name, "method": variant, "curve": found})
        if arguments.dtype == "float32":
            continue
        start = time.perf_counter()
        strategy = jaxcfr.solve_lp(tree).strategy
        spent = time.perf_counter() - start
        reached = float(jaxcfr.exploitability(judge, strategy))
        rows.append({"game": name, "method": "linear program", "curve": [(0, spent, reached)]})
        jax.clear_caches()
    table = Table(title=f"seconds to an exploitability ({arguments.dtype}, at most {arguments.cap:g} s), else a dash")
    for heading in ("game", "method", *(f"{target:g}" for target in TARGETS), "reached", "in s", "iterations"):
        table.add_column(heading, justify="left" if heading in ("game", "method") else "right")
    for row in rows:
        best = min(row["curve"], key=lambda point: point[2])
        cells = [row["game"], row["method"]]
        for target in TARGETS:
            met = [seconds for _, seconds, value in row["curve"] if value <= target]
            cells.append(f"{met[0]:.3g}" if met else "-")
        table.add_row(*cells, f"{best[2]:.1e}", f"{best[1]:.3g}", f"{best[0]:,}" if best[0] else "")
    Console(width=140).print(table)
    if arguments.plot:
        plot(rows, arguments.plot)
    return {"rows": rows, "targets": TARGETS}


def plot(rows: list[dict[str, Any]], directory: Path) -> None:
    """A picture for each game; what is below `LOWEST` is drawn there."""
    from matplotlib import colormaps

    from benchmarks.common import figure

    directory.mkdir(parents=True, exist_ok=True)
    for game in dict.fromkeys(row["game"] for row in rows):
        shown, axes = figure(f"{game} (float64, CPU)", "seconds", "exploitability")
        axes.set_prop_cycle(color=colormaps["tab20"].colors[::2] + colormaps["tab20"].colors[1::2])
        for row in rows:
            if row["game"] == game:
                _, seconds, values = zip(*row["curve"], strict=True)
                values = [max(value, LOWEST) for value in values]
                axes.plot(seconds, values, "k*" if len(values) == 1 else "-", label=row["method"])
        axes.set_ylim(bottom=LOWEST / 10)
        axes.legend(fontsize="small", ncols=2)
        shown.savefig(directory / f"{game}.png", dpi=150)


def add(commands: Any) -> None:
    command = commands.add_parser("accuracy", help=__doc__)
    command.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES))
    command.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    command.add_argument("--cap", type=float, default=30.0, help="seconds for each variant and game")
    command.add_argument("--stop", type=float, default=TARGETS[-1], help="the exploitability at which a run ends")
    command.add_argument("--dtype", choices=("float32", "float64"), default="float64", help="of the solver")
    command.add_argument("--horizon", type=int, default=10_000, help="length of the runs with hyperparameter schedules")
    command.add_argument("--plot", type=Path, help="write a picture for each game to this directory")
    command.set_defaults(function=run)
