"""OpenSpiel's sampling solvers on one game; runs inside the peers' own environment and imports nothing of jaxcfr.

    PYTHON -m benchmarks.sampling_peer external|outcome GAME SECONDS TARGET

prints one JSON object: CPU seconds of an iteration (the smallest mean of many short runs), and, if TARGET is above
0, the CPU seconds and iterations until NashConv of the average policy was at most TARGET, evaluations not counted.
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    import pyspiel

    kind, name, seconds, target = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    game = pyspiel.load_game(name)
    solver = {
        "external": pyspiel.ExternalSamplingMCCFRSolver,
        "outcome": pyspiel.OutcomeSamplingMCCFRSolver,
    }[kind](game)
    result: dict[str, float | None] = {"target_seconds": None}
    spent, iterations, chunk = 0.0, 0, 100
    while target > 0 and spent < 20 * seconds:
        start = time.process_time()
        for _ in range(chunk):
            solver.run_iteration()
        spent += time.process_time() - start
        iterations += chunk
        if pyspiel.nash_conv(game, solver.average_policy(), True) <= target:
            result |= {"target_seconds": spent, "target_iterations": iterations}
            break
        chunk = max(100, iterations // 10)
    means = []
    deadline = time.perf_counter() + seconds
    while len(means) < 5 or time.perf_counter() < deadline:
        start = time.process_time()
        for _ in range(200):
            solver.run_iteration()
        means.append((time.process_time() - start) / 200)
    print(json.dumps({**result, "seconds_per_iteration": min(means)}))


if __name__ == "__main__":
    main()
