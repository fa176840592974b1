"""Sampling without a tree against OpenSpiel's external sampling, after equal time, in Liar's dice with ten faces.

The tree of one die each has 210 million histories. Both strategies are then played against each other, and bounded.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcfr
from jaxcfr.array_play import make_table
from jaxcfr.regret.text import parse_variant


def add(commands: Any) -> None:
    """Adds the command to those of `python -m benchmarks`."""
    command = commands.add_parser("large", help=__doc__, description=__doc__)
    command.add_argument("--faces", type=int, default=10, help="of the dice, at most 15")
    command.add_argument("--seconds", type=float, default=60.0, help="for each solver")
    command.add_argument("--variant", default="linear_cfr")
    command.add_argument("--batch", type=int, default=128)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--plays", type=int, default=1_000_000, help="in each seating")
    command.add_argument("--bounds", type=int, default=2_000, help="plays of the response in each seat")
    command.add_argument(
        "--peers", required=True, help="the Python of the peers' environment (see benchmarks/README.md)"
    )
    command.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Wall time; compilation, and the making of strategies from tables, are not counted for either."""
    game = jaxcfr.load_game(f"liars_dice(dice_sides={arguments.faces})").array_game()
    theirs, facts = _theirs(arguments)
    ours, mine = _ours(game, arguments)
    rows = {"jaxcfr": mine, "OpenSpiel": facts}
    key = jax.random.key(arguments.seed + 1)
    for name, policy, other in (("jaxcfr", ours, theirs), ("OpenSpiel", theirs, ours)):
        bound = jaxcfr.exploitability_bound(game, (policy, policy), key, arguments.bounds)
        first = jaxcfr.expected_payoffs_sampled(game, (policy, other), key, arguments.plays)
        rows[name] |= {
            "bound": bound.value,
            "bound_error": bound.standard_error,
            "moving first": float(first.mean[0]),
            "moving first_error": float(first.standard_error[0]),
        }
    mean = (rows["jaxcfr"]["moving first"] - rows["OpenSpiel"]["moving first"]) / 2
    error = np.hypot(rows["jaxcfr"]["moving first_error"], rows["OpenSpiel"]["moving first_error"]) / 2
    table = Table(title=f"Liar's dice with {arguments.faces} faces, {arguments.seconds:g} s each")
    for column in ("solver", "walks of each player", "information sets", "exploitability is at least", "moving first"):
        table.add_column(column, justify="left" if column == "solver" else "right")
    for name, row in rows.items():
        cells = [name, f"{row['walks']:,}", f"{row['infosets']:,}"]
        cells += [f"{row[what]:.4f} ({row[what + '_error']:.4f})" for what in ("bound", "moving first")]
        table.add_row(*cells)
    console = Console(width=140)
    console.print(table)
    console.print(f"jaxcfr wins {mean:.5f} a play, standard error {error:.5f}, over both seatings.")
    return {"rows": rows, "head to head": float(mean), "standard error": float(error)}


def _ours(game: Any, arguments: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    variant = parse_variant(arguments.variant, 1_000_000)
    options: dict[str, Any] = {
        "traversal": jaxcfr.external_sampling(batch=arguments.batch),
        "capacity": 2 ** (2 * arguments.faces + 2),
        "dtype": "float32",
    }
    jax.block_until_ready(jaxcfr.solve_game(game, variant, 1, seed=1, **options).state)
    start = time.perf_counter()
    solved = jaxcfr.solve_game(game, variant, 0, seed=arguments.seed, **options)
    spent, chunk = 0.0, 8
    while spent < arguments.seconds:
        solved = jaxcfr.solve_game(game, variant, chunk, solved, **options)
        jax.block_until_ready(solved.state)
        before, spent = spent, time.perf_counter() - start
        left = arguments.seconds - spent
        chunk = max(1, min(2 * chunk, int(left / max(spent - before, 1e-3) * chunk)))
    iterations = int(solved.state.t)
    facts = {"walks": iterations * arguments.batch, "infosets": solved.num_infosets, "seconds": spent}
    return solved.policy(), facts


def _theirs(arguments: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "policy.npz"
        command = [arguments.peers, "-m", "benchmarks.large_peer", arguments.faces, arguments.seconds, path]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=Path(__file__).parent.parent)
        if done.returncode:
            sys.exit(f"OpenSpiel: {done.stderr.strip().splitlines()[-1:]}")
        facts = json.loads(done.stdout.strip().splitlines()[-1])
        with np.load(path) as file:
            policy = make_table([file["rows0"], file["rows1"]], [file["weights0"], file["weights1"]])
    return policy, facts
