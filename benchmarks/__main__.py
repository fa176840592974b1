"""Speed, measured side by side: `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcfr
from benchmarks import sampling
from jaxcfr.tree.game_tree import GameTree

# Name in the tables, our name, OpenSpiel's name.
GAMES = {
    "kuhn": ("kuhn_poker", "kuhn_poker"),
    "leduc": ("leduc_poker", "leduc_poker"),
    "liars_dice": ("liars_dice", "liars_dice"),
    "goofspiel_5": (
        "goofspiel(num_cards=5,imp_info=True,points_order=descending)",
        "turn_based_simultaneous_game(game=goofspiel(num_cards=5,imp_info=True,points_order=descending))",
    ),
}
PEERS = ("openspiel_cpp", "openspiel_jax", "liteefg")


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "device": str(jax.devices()[0]),
    }


def time_solve(tree: GameTree, variant: Any, seconds: float) -> float:
    """Seconds per iteration without compilation: the smallest mean of runs that together take about `seconds`."""

    def run(iterations: int) -> float:
        start = time.perf_counter()
        jax.block_until_ready(jaxcfr.solve(tree, variant, iterations))
        return time.perf_counter() - start

    run(1)
    iterations = 1
    while (elapsed := run(iterations)) < seconds / 20 and iterations < 2**24:
        iterations *= 4
    iterations = max(1, int(iterations * (seconds / 5) / elapsed))
    means = []
    deadline = time.perf_counter() + seconds
    while len(means) < 3 or time.perf_counter() < deadline:
        means.append(run(iterations) / iterations)
    return min(means)


def floor_seconds(tree: GameTree) -> dict[str, float]:
    """The least an iteration can take: its arrays streamed once, or its multiplications done, at measured rates.

    Streamed are the payoff entries (once per player) and the regret and average tables (read and written once). The
    bandwidth is that of a copy of a working set of the same size, so it is the cache's where the game fits in it.
    """
    itemsize = tree.dtype.itemsize
    entries = tree.payoffs.num_entries * tree.num_players
    tables = 2 * 2 * sum(treeplex.size for treeplex in tree.treeplexes)
    size = (entries + tables) * itemsize
    source = np.ones(max(size // 2, 64), np.uint8)
    target = np.empty_like(source)
    bandwidth = source.nbytes * 2 / _best_time(lambda: np.copyto(target, source))
    left = np.ones(2**13, np.float32)
    rate = 2**13 / _best_time(lambda: np.multiply(left, left, out=left))
    return {"bytes": size, "seconds": max(size / bandwidth, entries / rate), "bandwidth": bandwidth}


def _best_time(function: Callable[[], Any], runs: int = 200) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def speed(arguments: argparse.Namespace) -> dict[str, Any]:
    """Time per iteration of alternating CFR+ in float32, against the peers, and against the floor."""
    rows = []
    for name in arguments.games:
        ours, theirs = GAMES[name]
        tree = jaxcfr.lower(jaxcfr.load_game(ours), dtype="float32", histories=False).tree
        row: dict[str, Any] = {"game": name, "histories": tree.num_histories}
        row["jaxcfr"] = time_solve(tree, jaxcfr.cfr_plus(), arguments.seconds)
        row["floor"] = floor_seconds(tree)["seconds"]
        for peer in PEERS if arguments.peers else ():
            row[peer] = _time_peer(arguments.peers, peer, theirs, arguments.seconds)
        rows.append(row)
    columns = ["histories", "jaxcfr", "floor", *(PEERS if arguments.peers else ())]
    table = Table(title="microseconds an iteration (in brackets: times slower than jaxcfr)")
    table.add_column("game")
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        cells = [f"{row['histories']:,}"]
        for column in columns[1:]:
            value = row.get(column)
            shown = "-" if value is None else f"{value * 1e6:,.1f}"
            cells.append(shown if value is None or column == "jaxcfr" else f"{shown} ({value / row['jaxcfr']:.3g}x)")
        table.add_row(row["game"], *cells)
    Console().print(table)
    return {"rows": rows}


def _time_peer(python: str, peer: str, game: str, seconds: float) -> float | None:
    command = [python, "-m", "benchmarks.peers", peer, game, str(seconds)]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=Path(__file__).parent.parent)
    except subprocess.TimeoutExpired:
        print(f"{peer} on {game}: more than 600 s", file=sys.stderr)
        return None
    if result.returncode:
        print(f"{peer} on {game}: {result.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return float(json.loads(result.stdout.strip().splitlines()[-1])["seconds_per_iteration"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("speed", help=speed.__doc__)
    command.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES))
    command.add_argument("--seconds", type=float, default=5.0, help="time for each measurement")
    command.add_argument("--out", type=Path, help="write the numbers as JSON")
    command.add_argument("--peers", help="the Python of the peers' environment (see benchmarks/README.md)")
    command.set_defaults(function=speed)
    sampling.add(commands)
    commands.choices["sampling"].add_argument("--out", type=Path, help="write the numbers as JSON")
    arguments = parser.parse_args()
    result = {"machine": machine(), **arguments.function(arguments)}
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
