"""Bagged workers and splits: the variance of NashConv, and the time of a fixed budget, by number of workers."""

from __future__ import annotations

import argparse
import time
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jaxcfr


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    game = jaxcfr.lower(jaxcfr.load_game(arguments.game), dtype="float32")
    sampler = jaxcfr.external_sampling(batch=arguments.batch)
    rows: list[dict[str, Any]] = []
    for count in arguments.workers:

        def trainer(seed: int, count: int = count) -> jaxcfr.Trainer:
            return jaxcfr.Trainer(game, sampler, jaxcfr.dcfr(), seed=seed, workers=count)

        gaps = [
            float(jaxcfr.nash_conv(game.tree, trainer(seed).train(arguments.iterations).strategy()))
            for seed in range(arguments.seeds)
        ]
        times, split_gaps = [], []
        for seed in range(arguments.repeats + 1):
            split = trainer(seed)
            begin = time.perf_counter()
            split.train_split(arguments.total)
            times.append(time.perf_counter() - begin)
            split_gaps.append(float(jaxcfr.nash_conv(game.tree, split.strategy())))
        rows.append(
            {
                "game": arguments.game,
                "workers": count,
                "nash_conv": float(np.mean(gaps)),
                "deviation": float(np.std(gaps, ddof=1)),
                "split_seconds": min(times[1:] or times),
                "split_nash_conv": float(np.mean(split_gaps)),
            }
        )
    title = (
        f"{arguments.game}: {arguments.iterations} iterations by each of W workers, {arguments.seeds} seeds; a split"
    )
    table = Table(title=f"{title} of {arguments.total} iterations over W, {len(jax.devices())} devices")
    for heading in ("W", "NashConv", "deviation", "variance", "split, s", "times faster", "NashConv of it"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            str(row["workers"]),
            f"{row['nash_conv']:.4f}",
            f"{row['deviation']:.2e}",
            f"1/{(rows[0]['deviation'] / row['deviation']) ** 2:.2f}",
            f"{row['split_seconds']:.2f}",
            f"{rows[0]['split_seconds'] / row['split_seconds']:.2f}",
            f"{row['split_nash_conv']:.4f}",
        )
    Console().print(table)
    return {"rows": rows}


def add(commands: Any) -> None:
    command = commands.add_parser("workers", help=__doc__)
    command.add_argument("--game", default="leduc_poker")
    command.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4, 8])
    command.add_argument("--iterations", type=int, default=200)
    command.add_argument("--batch", type=int, default=64)
    command.add_argument("--seeds", type=int, default=40)
    command.add_argument("--total", type=int, default=4000, help="budget of the split")
    command.add_argument("--repeats", type=int, default=3, help="runs of the split after the one that compiles")
    command.set_defaults(function=run)
