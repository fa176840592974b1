"""Time per iteration of alternating CFR+ in float32, against other solvers and against the floor."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcfr
from benchmarks.common import GAMES, copy_bandwidth, lower, time_solve
from jaxcfr.tree.game_tree import GameTree

PEERS = ("openspiel_cpp", "openspiel_jax", "liteefg")

SETUP = """
import time
start = time.perf_counter()
import jax, jaxcfr
imported = time.perf_counter()
tree = jaxcfr.lower(jaxcfr.load_game({name!r}), dtype="float32", histories=False).tree
lowered = time.perf_counter()
jax.block_until_ready(jaxcfr.solve(tree, jaxcfr.cfr_plus(), 1))
end = time.perf_counter()
print([imported - start, lowered - imported, end - lowered])
"""


def floor_seconds(tree: GameTree) -> float:
    """The least an iteration can take: its arrays streamed once, or its multiplications done, at measured rates.

    Streamed are the payoff entries (once per player) and the regret and average tables (read and written once). The
    bandwidth is that of a copy of a working set of the same size, so it is the cache's where the game fits in it.
    """
    itemsize = tree.dtype.itemsize
    entries = tree.payoffs.num_entries * tree.num_players
    tables = 2 * 2 * sum(treeplex.size for treeplex in tree.treeplexes)
    size = (entries + tables) * itemsize
    left = np.ones(2**13, np.float32)
    times = []
    for _ in range(200):
        start = time.perf_counter()
        np.multiply(left, left, out=left)
        times.append(time.perf_counter() - start)
    return max(size / copy_bandwidth(size), entries / (2**13 / min(times)))


def setup_seconds(name: str) -> list[float]:
    """Import, lowering, and the first iteration with its compilation, in a fresh process without a cache."""
    result = subprocess.run([sys.executable, "-c", SETUP.format(name=name)], capture_output=True, text=True, check=True)
    return list(json.loads(result.stdout))


def time_peer(python: str, peer: str, game: str, seconds: float) -> float | None:
    """Seconds per iteration of another solver, in its own environment; None if it fails."""
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


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    rows = []
    for name in arguments.games:
        tree = lower(name)
        row: dict[str, Any] = {"game": name, "histories": tree.num_histories}
        row["jaxcfr"] = time_solve(tree, jaxcfr.cfr_plus(), arguments.seconds)
        row["floor"] = floor_seconds(tree)
        row["import"], row["lowering"], row["first_iteration"] = setup_seconds(GAMES[name][0])
        for peer in PEERS if arguments.peers else ():
            row[peer] = time_peer(arguments.peers, peer, GAMES[name][1], arguments.seconds)
        rows.append(row)
        jax.clear_caches()
    table = Table(title="microseconds an iteration (in brackets: times as long as jaxcfr's)")
    for heading in ("game", "histories", "jaxcfr", "floor", *(PEERS if arguments.peers else ()), "set-up, s"):
        table.add_column(heading, justify="left" if heading == "game" else "right")
    for row in rows:
        cells = [row["game"], f"{row['histories']:,}", f"{row['jaxcfr'] * 1e6:,.1f}"]
        for column in ("floor", *(PEERS if arguments.peers else ())):
            value = row[column]
            cells.append("-" if value is None else f"{value * 1e6:,.1f} ({value / row['jaxcfr']:.3g}x)")
        table.add_row(*cells, f"{row['lowering'] + row['first_iteration']:.1f}")
    Console(width=130).print(table)
    print("Set-up: lowering and the first iteration, compilation included, in a fresh process (without the import).")
    return {"rows": rows}


def add(commands: Any) -> None:
    command = commands.add_parser("speed", help=__doc__)
    command.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES))
    command.add_argument("--seconds", type=float, default=5.0, help="time for each measurement")
    command.add_argument("--peers", help="the Python of the peers' environment (see benchmarks/README.md)")
    command.set_defaults(function=run)
