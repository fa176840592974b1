"""Deep CFR and its kin: NashConv by time and iteration, and OpenSpiel's deep_cfr (JAX) for the same time."""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

import jaxcfr
from jaxcfr import deep

ALGORITHMS = ("DeepCFR", "SDCFR", "DoubleNeuralCFR", "DREAM", "ESCHER", "DeepDCFRPlus", "DeepPDCFRPlus")


def add(commands: Any) -> None:
    """Adds the command to those of `python -m benchmarks`."""
    command = commands.add_parser("deep", help=__doc__, description=__doc__)
    command.add_argument("--games", nargs="+", default=["kuhn_poker", "leduc_poker"])
    command.add_argument("--algorithms", nargs="+", default=["DeepCFR"], choices=ALGORITHMS)
    command.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    command.add_argument("--seconds", type=float, default=300.0, help="CPU seconds of training, compilation included")
    command.add_argument("--evaluations", type=int, default=10)
    command.add_argument("--target", type=float, default=0.0, help="stop at an evaluation with a NashConv of this")
    command.add_argument("--settings", type=json.loads, default={}, help="of the algorithm, as JSON")
    command.add_argument("--peers", help="the Python of an environment with open_spiel and flax")
    command.set_defaults(function=measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Training by the clock of the process, CPU seconds: pin it to one core, and they are seconds. Compilation counts,
    evaluations do not."""
    rows = []
    for game in arguments.games:
        for name in arguments.algorithms:
            for seed in arguments.seeds:
                row = run(game, getattr(deep, name)(**arguments.settings), seed, arguments)
                rows.append(row)
                _show(row)
        if arguments.peers:
            for seed in arguments.seeds:
                command = [arguments.peers, str(Path(__file__).with_name("deep_peer.py")), game]
                command += [str(arguments.seconds), str(seed), str(arguments.evaluations)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                row = json.loads(done.stdout.splitlines()[-1])
                rows.append(row)
                _show(row)
    for game in arguments.games:
        for name in dict.fromkeys(row["algorithm"] for row in rows):
            last = [row["curve"][-1]["nash_conv"] for row in rows if (row["game"], row["algorithm"]) == (game, name)]
            if last:
                print(f"{game} {name}: NashConv {np.mean(last):.4f} (from {min(last):.4f} to {max(last):.4f})")
    return {"rows": rows}


def run(game: str, algorithm: deep.DeepAlgorithm, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """One run."""
    begun = time.process_time()
    trainer = deep.DeepTrainer(game, algorithm, seed=seed)
    players = trainer.tree.num_players
    paused, curve = 0.0, []
    while True:
        trainer.train(1)
        seconds = time.process_time() - begun - paused
        if seconds >= arguments.seconds * (len(curve) + 1) / arguments.evaluations:
            started = time.process_time()
            strategy = trainer.strategy()
            gap = float(jaxcfr.nash_conv(trainer.tree, strategy))
            paused += time.process_time() - started
            curve.append({"seconds": round(seconds, 1), "iteration": trainer.iterations_done, "nash_conv": gap})
            if seconds >= arguments.seconds or gap <= arguments.target:
                break
    return {
        "game": game,
        "algorithm": type(algorithm).__name__,
        "seed": seed,
        "curve": curve,
        "walks_per_second": round(algorithm.walks * players * trainer.iterations_done / seconds, 1),
    }


def _show(row: dict[str, Any]) -> None:
    curve = " ".join(f"{point['seconds']:.0f}s:{point['nash_conv']:.3f}" for point in row["curve"])
    print(
        f"{row['game']} {row['algorithm']} seed {row['seed']}: {curve}, {row['walks_per_second']:,} walks/s", flush=True
    )
