"""Time and memory per history as games grow, each size in a process of its own."""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

FAMILIES = {
    "liars_dice": [f"liars_dice(dice_sides={sides})" for sides in (4, 5, 6, 7, 8)],
    "leduc_poker": [f"leduc_poker(ranks={ranks})" for ranks in (3, 6, 12, 25)],
    "goofspiel": [f"goofspiel(num_cards={cards},imp_info=True,points_order=descending)" for cards in (5, 6)],
}


def resident() -> int:
    """Bytes of memory this process holds."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


def measure(name: str, seconds: float) -> dict[str, Any]:
    """One game, in this process: lowering, memory, time per iteration."""
    import jax
    import jax.numpy as jnp

    import jaxcfr
    from benchmarks.common import time_solve
    from jaxcfr.solve import solve_bytes

    jax.block_until_ready(jax.jit(lambda x: x + 1)(jnp.ones(8)))
    before = resident()
    game = jaxcfr.load_game(name)
    lowered = jaxcfr.lower(game, dtype="float32", histories=False)
    tree, by_levels = lowered.tree, lowered.infosets is not None
    del lowered
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    state = jax.block_until_ready(jaxcfr.solve(tree, jaxcfr.dcfr_plus(), 64))
    gc.collect()
    held = resident()
    del state
    iteration = time_solve(tree, jaxcfr.cfr_plus(), seconds)
    predicted, size = solve_bytes(tree, by_levels=by_levels), tree.nbytes
    del tree
    start = time.perf_counter()
    count = jaxcfr.lower(game, dtype="float32", histories=False).tree.num_histories  # nothing is compiled any more
    lowering = time.perf_counter() - start
    return {
        "game": name,
        "histories": count,
        "lowering": lowering,
        "iteration": iteration,
        "bytes_before": before,
        "bytes_lowering": peak - before,
        "bytes_solving": held - before,
        "bytes_predicted": predicted,
        "bytes_tree": size,
    }


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    rows = []
    for name in (name for family in arguments.families for name in FAMILIES[family][: arguments.sizes]):
        command = [sys.executable, "-m", "benchmarks.growth", name, str(arguments.seconds)]
        root = Path(__file__).parent.parent
        result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
        rows.append(json.loads(result.stdout.strip().splitlines()[-1]))
    table = Table(title="growth (memory is net of a JAX process that has compiled nothing of note)")
    for heading in ("game", "histories", "M histories/s lowered", "us an iteration", "ns a history"):
        table.add_column(heading, justify="left" if heading == "game" else "right")
    for heading in ("bytes a history, solving", "lowering's peak", "MB solving", "MB predicted"):
        table.add_column(heading, justify="right")
    for row in rows:
        count = row["histories"]
        table.add_row(
            row["game"],
            f"{count:,}",
            f"{count / row['lowering'] / 1e6:.2f}",
            f"{row['iteration'] * 1e6:,.1f}",
            f"{row['iteration'] * 1e9 / count:.2f}",
            f"{row['bytes_solving'] / count:,.0f}",
            f"{row['bytes_lowering'] / count:,.0f}",
            f"{row['bytes_solving'] / 1e6:,.0f}",
            f"{row['bytes_predicted'] / 1e6:,.0f}",
        )
    Console(width=160).print(table)
    if arguments.plot:
        plot(rows, arguments.plot)
    return {"rows": rows}


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    from benchmarks.common import figure

    shown, axes = figure("Time per iteration and history (CFR+, float32, CPU)", "histories", "nanoseconds a history")
    for family in dict.fromkeys(row["game"].partition("(")[0] for row in rows):
        mine = [row for row in rows if row["game"].startswith(family)]
        sizes = [row["histories"] for row in mine]
        axes.plot(sizes, [row["iteration"] * 1e9 / row["histories"] for row in mine], "o-", label=family)
    axes.legend()
    shown.savefig(path, dpi=150)


def add(commands: Any) -> None:
    command = commands.add_parser("growth", help=__doc__)
    command.add_argument("--families", nargs="+", choices=list(FAMILIES), default=list(FAMILIES))
    command.add_argument("--sizes", type=int, default=9, help="at most so many of each family, the smallest first")
    command.add_argument("--seconds", type=float, default=5.0, help="time for each measurement")
    command.add_argument("--plot", type=Path, help="write a picture (PNG, SVG or PDF)")
    command.set_defaults(function=run)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], float(sys.argv[2]))))
