"""`vmap` over hyperparameters: time and memory per setting against a single run."""

from __future__ import annotations

import argparse
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

import jaxcfr
from benchmarks.common import GAMES, best_mean, lower, time_solve


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    rows = []
    for name in arguments.games:
        tree = lower(name)
        single = time_solve(tree, jaxcfr.dcfr(), arguments.seconds)
        for settings in arguments.settings:
            alphas = jnp.linspace(1.0, 2.0, settings)

            def sweep(iterations: int, tree: Any = tree, alphas: Any = alphas) -> Any:
                return _sweep(tree, alphas, iterations)

            compiled = _sweep.lower(tree, alphas, 1).compile()
            memory = compiled.memory_analysis()
            each = best_mean(sweep, arguments.seconds) / settings
            rows.append(
                {
                    "game": name,
                    "settings": settings,
                    "single": single,
                    "each": each,
                    "bytes_each": (memory.temp_size_in_bytes + memory.output_size_in_bytes) / settings,
                }
            )
    table = Table(title="microseconds an iteration, single and per setting of a sweep (DCFR, float32)")
    for heading in ("game", "settings", "single", "per setting", "ratio", "kB per setting"):
        table.add_column(heading, justify="left" if heading == "game" else "right")
    for row in rows:
        table.add_row(
            row["game"],
            str(row["settings"]),
            f"{row['single'] * 1e6:,.2f}",
            f"{row['each'] * 1e6:,.2f}",
            f"{row['each'] / row['single']:.2f}",
            f"{row['bytes_each'] / 1e3:,.0f}",
        )
    Console().print(table)
    return {"rows": rows}


@jax.jit
def _sweep(tree: Any, alphas: Any, iterations: Any) -> Any:
    return jax.vmap(lambda alpha: jaxcfr.solve(tree, jaxcfr.dcfr(alpha, 0.0, 2.0), iterations))(alphas)


def add(commands: Any) -> None:
    command = commands.add_parser("sweeps", help=__doc__)
    command.add_argument("--games", nargs="+", choices=list(GAMES), default=["kuhn", "leduc", "liars_dice"])
    command.add_argument("--settings", nargs="+", type=int, default=[16, 64, 256])
    command.add_argument("--seconds", type=float, default=5.0, help="time for each measurement")
    command.set_defaults(function=run)
