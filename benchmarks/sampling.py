"""Sampling: walks a second and time to a target against OpenSpiel's solvers, and NashConv against the full tree."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

import jaxcfr
from jaxcfr.regret.text import parse_variant

TARGET = 0.2
"""NashConv, in chips, to which the time is taken on Leduc poker."""


def add(commands: Any) -> None:
    """Adds the command to those of `python -m benchmarks`."""
    command = commands.add_parser("sampling", help=__doc__, description=__doc__)
    command.add_argument("--games", nargs="+", default=["leduc_poker", "liars_dice"])
    command.add_argument("--batches", nargs="+", type=int, default=[256, 1024, 4096])
    command.add_argument("--seconds", type=float, default=3.0, help="time for each measurement")
    command.add_argument("--variant", default="dcfr", help="regret variant of the time to the target")
    command.add_argument("--curves", nargs="*", default=[], metavar="GAME", help="also NashConv against nodes and time")
    command.add_argument("--peers", help="the Python of the peers' environment (see benchmarks/README.md)")
    command.set_defaults(function=sampling)


def sampling(arguments: argparse.Namespace) -> dict[str, Any]:
    """CPU seconds throughout, so that what else runs on the machine counts for little; all threads counted."""
    rows = []
    for game in arguments.games:
        tree = jaxcfr.lower(jaxcfr.load_game(game), dtype="float32").tree
        for kind, factory in (("external", jaxcfr.external_sampling), ("outcome", jaxcfr.outcome_sampling)):
            row: dict[str, Any] = {"game": game, "sampling": kind}
            for batch in arguments.batches:
                row[f"batch {batch}"] = _seconds(tree, factory(batch=batch), arguments.seconds) / batch
            best = min(row[f"batch {batch}"] for batch in arguments.batches)
            wanted = TARGET if game == "leduc_poker" and kind == "external" else 0.0
            if wanted:
                row["target_seconds"] = min(
                    until(tree, factory(batch=batch), arguments.variant, wanted)["seconds"]
                    for batch in arguments.batches
                )
            if arguments.peers:
                theirs = _peer(arguments.peers, kind, game, arguments.seconds, wanted)
                row["openspiel"] = theirs["seconds_per_iteration"]
                row["times faster"] = theirs["seconds_per_iteration"] / best
                row["openspiel target_seconds"] = theirs["target_seconds"]
            rows.append(row)
    table = Table(title="microseconds of CPU for one walk (play) of each player")
    columns = ["game", "sampling", *(f"batch {batch}" for batch in arguments.batches)]
    columns += ["openspiel"] if arguments.peers else []
    for column in [*columns, "times faster", f"s to NashConv {TARGET:g}", "openspiel"]:
        table.add_column(column, justify="right")
    for row in rows:
        cells = [row["game"], row["sampling"], *(f"{row[column] * 1e6:.2f}" for column in columns[2:])]
        cells += [_shown(row.get(name)) for name in ("times faster", "target_seconds", "openspiel target_seconds")]
        table.add_row(*cells)
    Console().print(table)
    return {"rows": rows, "curves": [_curves(game, arguments.seconds) for game in arguments.curves]}


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _seconds(tree: Any, traversal: Any, seconds: float) -> float:
    """CPU seconds of an iteration: the smallest mean of short runs, without compilation."""
    state = jax.block_until_ready(jaxcfr.solve(tree, jaxcfr.dcfr(), 20, traversal=traversal, seed=1))
    means = []
    deadline = time.perf_counter() + seconds
    while len(means) < 5 or time.perf_counter() < deadline:
        start = time.process_time()
        state = jax.block_until_ready(jaxcfr.solve(tree, jaxcfr.dcfr(), 3, state, traversal=traversal))
        means.append((time.process_time() - start) / 3)
    return min(means)


def until(tree: Any, traversal: Any, variant: str, target: float, most: float = 120.0) -> dict[str, Any]:
    """A run until NashConv is at most the target: CPU seconds without evaluations and compilation, and visits.

    The seconds are infinite where the target was not met in `most` seconds.
    """
    chosen = parse_variant(variant, 1000)
    jax.block_until_ready(jaxcfr.solve(tree, chosen, 1, traversal=traversal, seed=2))
    state = jaxcfr.solve(tree, chosen, 0, traversal=traversal, seed=1)
    spent, chunk, gap = 0.0, 1, float("inf")
    while spent < most and gap > target:
        start = time.process_time()
        state = jax.block_until_ready(jaxcfr.solve(tree, chosen, chunk, state, traversal=traversal))
        spent += time.process_time() - start
        gap = float(jaxcfr.nash_conv(tree, jaxcfr.average_strategy(tree, state)))
        chunk = max(1, int(state.t) // 10)
    return {
        "seconds": spent if gap <= target else float("inf"),
        "nash_conv": gap,
        "iterations": int(state.t),
        "visited": visited(tree, state),
    }


def visited(tree: Any, state: Any) -> int:
    """Histories that a run has visited: all of them in every iteration of the full tree."""
    return int(state.t) * tree.num_histories if state.sampling is None else int(state.sampling.visited)


def _curves(game: str, seconds: float) -> dict[str, Any]:
    """NashConv after growing numbers of iterations, with the histories visited and the CPU seconds."""
    tree = jaxcfr.lower(jaxcfr.load_game(game), dtype="float32").tree
    result: dict[str, Any] = {"game": game, "histories": tree.num_histories, "runs": []}
    table = Table(title=f"{game}: NashConv after so many CPU seconds (million histories visited)")
    for column in ("traversal", "variant", "t", "NashConv", "seconds", "visited"):
        table.add_column(column, justify="right")
    traversals = {
        "full_tree": jaxcfr.full_tree(),
        "external_sampling": jaxcfr.external_sampling(batch=1024),
        "outcome_sampling": jaxcfr.outcome_sampling(batch=4096),
        "chance_sampling": jaxcfr.chance_sampling(batch=16),
    }
    for name, traversal in traversals.items():
        for variant in (jaxcfr.dcfr(), jaxcfr.linear_cfr(), jaxcfr.cfr_plus()):
            jax.block_until_ready(jaxcfr.solve(tree, variant, 1, traversal=traversal, seed=2))
            state, spent, points = jaxcfr.solve(tree, variant, 0, traversal=traversal, seed=1), 0.0, []
            chunk = 1
            while spent < seconds:
                start = time.process_time()
                state = jax.block_until_ready(jaxcfr.solve(tree, variant, chunk, state, traversal=traversal))
                spent += time.process_time() - start
                gap = float(jaxcfr.nash_conv(tree, jaxcfr.average_strategy(tree, state)))
                points.append({"t": int(state.t), "nash_conv": gap, "seconds": spent, "visited": visited(tree, state)})
                chunk = int(state.t)
            label = type(variant).__name__ if variant != jaxcfr.linear_cfr() else "LinearCFR"
            result["runs"].append({"traversal": name, "variant": label, "points": points})
            last = points[-1]
            cells = [f"{last['t']:,}", f"{last['nash_conv']:.4g}", f"{last['seconds']:.2f}"]
            table.add_row(name, label, *cells, f"{last['visited'] / 1e6:.2f}")
    Console().print(table)
    return result


def _peer(python: str, kind: str, game: str, seconds: float, target: float) -> dict[str, Any]:
    command = [python, "-m", "benchmarks.sampling_peer", kind, game, str(seconds), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=Path(__file__).parent.parent)
    if done.returncode:
        sys.exit(f"OpenSpiel on {game}: {done.stderr.strip().splitlines()[-1:]}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result
