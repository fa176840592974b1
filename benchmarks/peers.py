"""Times one other CFR+ solver on one game; runs inside the peers' own environment and imports nothing of jaxcfr.

    PYTHON -m benchmarks.peers SOLVER GAME SECONDS

prints one JSON object: the best mean time of an iteration over several runs that together take about SECONDS, after
a warm-up of two iterations.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable


def openspiel_cpp(game: str) -> Callable[[], object]:
    """`pyspiel.CFRPlusSolver`, alternating, linear averaging, in C++."""
    import pyspiel

    return pyspiel.CFRPlusSolver(pyspiel.load_game(game)).evaluate_and_update_policy


def openspiel_jax(game: str) -> Callable[[], object]:
    """OpenSpiel's `JaxCFR` with its defaults: CFR+, alternating, linear averaging."""
    import jax
    import pyspiel
    from open_spiel.python.jax.cfr.jax_cfr import JaxCFR

    solver = JaxCFR(pyspiel.load_game(game))

    def step() -> None:
        solver.step()
        jax.block_until_ready((solver.regrets, solver.averages))

    return step


def liteefg(game: str) -> Callable[[], object]:
    """LiteEFG's CFR+ baseline, every node of the tree in every iteration."""
    import LiteEFG
    import pyspiel
    from LiteEFG.baselines.CFRplus import graph

    algorithm = graph()
    environment = LiteEFG.OpenSpielEnv(pyspiel.load_game(game), traverse_type="Enumerate", regenerate=False)
    environment.set_graph(algorithm)

    def step() -> None:
        algorithm.update_graph(environment)
        environment.update_strategy(algorithm.current_strategy())

    return step


SOLVERS = {"openspiel_cpp": openspiel_cpp, "openspiel_jax": openspiel_jax, "liteefg": liteefg}


def time_iteration(step: Callable[[], object], seconds: float) -> float:
    """Seconds per call: the smallest mean of runs, after a warm-up."""
    step()
    start = time.perf_counter()
    step()
    once = time.perf_counter() - start
    calls = max(1, int(seconds / 5 / max(once, 1e-7)))
    means = []
    deadline = time.perf_counter() + seconds
    while not means or time.perf_counter() < deadline:
        start = time.perf_counter()
        for _ in range(calls):
            step()
        means.append((time.perf_counter() - start) / calls)
    return min(means)


def main() -> None:
    solver, game, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    # The peers print banners; standard output is for the result alone.
    with contextlib.redirect_stdout(io.StringIO()):
        step = SOLVERS[solver](game)
        result = time_iteration(step, seconds)
    print(json.dumps({"solver": solver, "game": game, "seconds_per_iteration": result}))


if __name__ == "__main__":
    main()
