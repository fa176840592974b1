"""Checks and times the solver on whatever device JAX has (a GPU, a TPU); takes less than five minutes."""

from __future__ import annotations

import argparse
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcfr
from benchmarks.common import lower, time_solve

GAMES = ("kuhn", "leduc", "liars_dice", "goofspiel_5", "kuhn_poker(players=3)")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Equal results to the host's CPU, equal bits twice, no accuracy lost, and times."""
    start = time.perf_counter()
    cpu = jax.devices("cpu")[0]
    rows = []
    for name in GAMES:
        tree = lower(name)
        begin = time.perf_counter()
        first = jax.block_until_ready(jaxcfr.solve(tree, jaxcfr.pcfr_plus(), 200))
        compiled = time.perf_counter() - begin
        second = jaxcfr.solve(tree, jaxcfr.pcfr_plus(), 200)
        same_bits = all(map(np.array_equal, jax.tree.leaves(first), jax.tree.leaves(second)))
        halves = jaxcfr.solve(tree, jaxcfr.pcfr_plus(), 100, jaxcfr.solve(tree, jaxcfr.pcfr_plus(), 100))
        resumed = all(map(np.array_equal, jax.tree.leaves(first), jax.tree.leaves(halves)))
        with jax.default_device(cpu):
            host_tree = jax.device_put(tree, cpu)
            host = jaxcfr.solve(host_tree, jaxcfr.pcfr_plus(), 200)
            gap = [
                float(jaxcfr.nash_conv(host_tree, jax.device_put(jaxcfr.average_strategy(t, s), cpu)))
                for t, s in ((tree, first), (host_tree, host))
            ]
        alphas = jnp.linspace(1.0, 2.0, 64)
        sweep = jax.jit(jax.vmap(lambda alpha, t=tree: jaxcfr.solve(t, jaxcfr.dcfr(alpha, 0.0, 2.0), 100)))
        jax.block_until_ready(sweep(alphas))
        begin = time.perf_counter()
        jax.block_until_ready(sweep(alphas))
        swept = (time.perf_counter() - begin) / 6400
        rows.append(
            {
                "game": name,
                "same_bits": same_bits,
                "resumed": resumed,
                "nash_conv": gap[0],
                "nash_conv_cpu": gap[1],
                "compile": compiled,
                "iteration": time_solve(tree, jaxcfr.cfr_plus(), arguments.seconds),
                "swept": swept,
            }
        )
    table = Table(title=f"{jax.devices()[0]}: microseconds an iteration, alone and per setting of 64")
    for heading in ("game", "same bits twice", "resumed", "NashConv", "on the CPU", "compile, s", "alone", "of 64"):
        table.add_column(heading, justify="left" if heading == "game" else "right")
    for row in rows:
        table.add_row(
            row["game"],
            "yes" if row["same_bits"] else "NO",
            "yes" if row["resumed"] else "NO",
            f"{row['nash_conv']:.3e}",
            f"{row['nash_conv_cpu']:.3e}",
            f"{row['compile']:.1f}",
            f"{row['iteration'] * 1e6:,.1f}",
            f"{row['swept'] * 1e6:,.2f}",
        )
    Console(width=120).print(table)
    failed = [row["game"] for row in rows if not (row["same_bits"] and row["resumed"])]
    failed += [row["game"] for row in rows if row["nash_conv"] > 1.5 * row["nash_conv_cpu"] + 1e-5]
    print(f"{time.perf_counter() - start:.0f} s;", f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return {"rows": rows, "failed": failed}


def add(commands: Any) -> None:
    command = commands.add_parser("accelerator", help=__doc__)
    command.add_argument("--seconds", type=float, default=3.0, help="time for each measurement")
    command.set_defaults(function=run)
