"""Where sampling overtakes the full tree as games grow: CPU time to a NashConv in Liar's dice with more faces."""

from __future__ import annotations

import argparse
import math
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

import jaxcfr
from benchmarks.sampling import until

TRAVERSALS = {
    "full tree": (jaxcfr.full_tree, "cfr_plus"),
    "external, 256 walks": (lambda: jaxcfr.external_sampling(batch=256), "dcfr"),
    "external, 4,096 walks": (lambda: jaxcfr.external_sampling(batch=4096), "dcfr"),
    "outcome, 16,384 plays": (lambda: jaxcfr.outcome_sampling(batch=16384), "dcfr"),
}


def add(commands: Any) -> None:
    """Adds the command to those of `python -m benchmarks`."""
    command = commands.add_parser("crossing", help=__doc__, description=__doc__)
    command.add_argument("--faces", nargs="+", type=int, default=[4, 5, 6, 7, 8])
    command.add_argument("--targets", nargs="+", type=float, default=[0.2, 0.05], help="NashConv")
    command.add_argument("--cap", type=float, default=60.0, help="seconds for each run")
    command.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    rows = []
    for faces in arguments.faces:
        tree = jaxcfr.lower(jaxcfr.load_game(f"liars_dice(dice_sides={faces})"), dtype="float32").tree
        for name, (traversal, variant) in TRAVERSALS.items():
            for target in arguments.targets:
                found = until(tree, traversal(), variant, target, arguments.cap)
                rows.append(
                    {"faces": faces, "histories": tree.num_histories, "traversal": name, "target": target, **found}
                )
        del tree
        jax.clear_caches()
    table = Table(title="CPU seconds to a NashConv in Liar's dice (million histories visited)")
    for heading in ("faces", "histories", "traversal", *(f"{target:g}" for target in arguments.targets)):
        table.add_column(heading, justify="left" if heading == "traversal" else "right")
    width = len(arguments.targets)
    for start in range(0, len(rows), width):
        group = rows[start : start + width]
        cells = [
            f"{row['seconds']:.3g} ({row['visited'] / 1e6:,.3g})" if math.isfinite(row["seconds"]) else "-"
            for row in group
        ]
        table.add_row(str(group[0]["faces"]), f"{group[0]['histories']:,}", group[0]["traversal"], *cells)
    Console(width=120).print(table)
    return {"rows": rows}
