"""What the benchmarks share: the machine, times, games, tables and plots."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxcfr
from jaxcfr.tree.game_tree import GameTree

BATTLESHIP = (
    "battleship(board_width=2,board_height=2,ship_sizes=[1;2],ship_values=[1;2],num_shots=3,allow_repeated_shots=false)"
)
GOOFSPIEL = "goofspiel(num_cards=5,imp_info=True,points_order=descending)"

# Name in the tables, our name, OpenSpiel's name.
GAMES = {
    "kuhn": ("kuhn_poker", "kuhn_poker"),
    "leduc": ("leduc_poker", "leduc_poker"),
    "liars_dice": ("liars_dice", "liars_dice"),
    "goofspiel_5": (GOOFSPIEL, f"turn_based_simultaneous_game(game={GOOFSPIEL})"),
    "battleship_2x2": (f"openspiel:{BATTLESHIP}", BATTLESHIP),
}


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


def lower(name: str, dtype: str = "float32", histories: bool = False) -> GameTree:
    """One of `GAMES`, or any name that `load_game` takes."""
    game = jaxcfr.load_game(GAMES[name][0] if name in GAMES else name)
    return jaxcfr.lower(game, dtype=dtype, histories=histories).tree


def best_mean(run: Callable[[int], Any], seconds: float) -> float:
    """Seconds per iteration of `run(iterations)`: the smallest mean of runs that together take about `seconds`."""

    def timed(iterations: int) -> float:
        start = time.perf_counter()
        jax.block_until_ready(run(iterations))
        return time.perf_counter() - start

    timed(1)
    iterations = 1
    while (elapsed := timed(iterations)) < seconds / 200 and iterations < 2**24:
        iterations *= 4
    # Short runs, so that some of them meet a quiet moment of the machine.
    iterations = max(1, int(iterations * (seconds / 200) / elapsed))
    means = []
    deadline = time.perf_counter() + seconds
    while len(means) < 3 or time.perf_counter() < deadline:
        means.append(timed(iterations) / iterations)
    return min(means)


def time_solve(tree: GameTree, variant: Any, seconds: float) -> float:
    """Seconds per iteration without compilation, in the middle of a run (of 64 iterations, say)."""
    state = jaxcfr.solve(tree, variant, 64)
    return best_mean(lambda iterations: jaxcfr.solve(tree, variant, iterations, state), seconds)


def copy_bandwidth(size: int) -> float:
    """Bytes a second, read and written, of a copy whose source and target together have `size` bytes."""
    source = np.ones(max(size // 2, 64), np.uint8)
    target = np.empty_like(source)
    runs = max(5, min(200, int(2e9 / size)))
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        np.copyto(target, source)
        times.append(time.perf_counter() - start)
    return source.nbytes * 2 / min(times)


def figure(title: str, x: str, y: str) -> Any:
    """A matplotlib figure and its axes, logarithmic both ways."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    axes.set(title=title, xlabel=x, ylabel=y, xscale="log", yscale="log")
    axes.grid(True, which="both", alpha=0.3)
    return shown, axes
