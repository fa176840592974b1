"""CFR-D on Leduc poker: figure 4 of Burch, Johanson and Bowling (2014), and the cost of solving a subgame again."""

from __future__ import annotations

import argparse
import time
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

TRUNK = (500, 2_000, 8_000, 32_000)
SUBGAME = (100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800)


def curve(
    cut: Any, trunk: list[int], subgame: int, variant: str, inside: str, updates: Any, resolve: int
) -> dict[str, Any]:
    """One run with a number of iterations in every subgame, looked at after several numbers of trunk iterations."""
    import jaxcfr
    from jaxcfr.regret.text import parse_variant

    outer, inner = parse_variant(variant), parse_variant(inside)
    points: list[dict[str, Any]] = []
    solution, spent = None, 0.0
    for count in sorted(trunk):
        start = time.process_time()
        done = 0 if solution is None else solution.t
        solution = jaxcfr.cfr_d(cut, count - done, subgame, outer, inner, subgame_updates=updates, solution=solution)
        jax.block_until_ready(solution.state.t)
        spent += time.process_time() - start
        points.append(
            {
                "trunk": count,
                "subgame": subgame,
                "exploitability": solution.exploitability(resolve, inner, updates=updates),
                "regrets": solution.regrets.tolist(),
                "cpu_seconds": spent,
            }
        )
    return {"variant": variant, "inside": inside, "updates": updates, "resolve": resolve, "points": points}


def measure_resolving(cut: Any, iterations: int, inside: str, updates: Any) -> dict[str, Any]:
    """CPU seconds of solving one of the five subgames again, for one player; without compiling."""
    import jax.numpy as jnp

    import jaxcfr
    from jaxcfr.decomposition.solution import _resolve_batch
    from jaxcfr.regret.text import parse_variant

    solution = jaxcfr.cfr_d(cut, 50, 50)
    batch = cut.batch_of([0])
    tree = cut.batch_tree(batch, 1)
    reach = solution._reach[0][batch.classes[0]]
    stop = solution.root_values[1][batch.classes[1]]
    seconds = []
    for count in (10, iterations):
        start = time.process_time()
        jax.block_until_ready(_resolve_batch(tree, reach, stop, parse_variant(inside), jnp.int32(count), updates))
        seconds.append(time.process_time() - start)
    return {"iterations": iterations, "inside": inside, "updates": updates, "cpu_seconds": seconds[1]}


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """The figure, or a part of its grid."""
    import jaxcfr

    console = Console()
    if arguments.dtype == "float64":
        jax.config.update("jax_enable_x64", True)
    cut = jaxcfr.decompose(jaxcfr.load_game("leduc_poker"), "round")
    console.print(cut.report(), highlight=False)
    again = measure_resolving(cut, arguments.resolve, arguments.inside, arguments.updates)
    console.print(
        f"one subgame, {arguments.resolve:,} iterations: {again['cpu_seconds']:.2f} s of one core", highlight=False
    )
    curves = []
    table = Table("subgame iterations", *(f"{count:,} trunk iterations" for count in sorted(arguments.trunk)), "CPU s")
    for subgame in arguments.subgame:
        found = curve(
            cut, arguments.trunk, subgame, arguments.variant, arguments.inside, arguments.updates, arguments.resolve
        )
        curves.append(found)
        points = found["points"]
        row = (f"{point['exploitability']:.3g}" for point in points)
        table.add_row(f"{subgame:,}", *row, f"{points[-1]['cpu_seconds']:.1f}")
        console.print(f"{subgame}: {[round(point['exploitability'], 5) for point in points]}", highlight=False)
    console.print(table)
    return {"resolving": again, "curves": curves}


def add(commands: Any) -> None:
    """The command line."""
    command = commands.add_parser("cfr-d", help="CFR-D on Leduc poker, figure 4 of the paper")
    command.add_argument("--trunk", type=int, nargs="+", default=TRUNK, help="trunk iterations to look at")
    command.add_argument("--subgame", type=int, nargs="+", default=SUBGAME, help="subgame iterations, a run for each")
    command.add_argument("--resolve", type=int, default=200_000, help="iterations of solving the subgames again")
    command.add_argument("--variant", default="vanilla", help="regret variant of the trunk")
    command.add_argument("--inside", default="vanilla", help="regret variant of the subgames")
    command.add_argument("--updates", default="alternating", choices=("alternating", "simultaneous"))
    command.add_argument("--dtype", default="float64", choices=("float32", "float64"))
    command.set_defaults(function=run)
