"""OpenSpiel's external sampling on Liar's dice with one die each; runs inside the peers' own environment.

    PYTHON -m benchmarks.large_peer FACES SECONDS FILE

writes the average policy to FILE (.npz): for each player the information sets as rows (face of the die, bids as bits)
and their weights by action; prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    import numpy as np
    import pyspiel

    faces, seconds, path = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    solver = pyspiel.ExternalSamplingMCCFRSolver(pyspiel.load_game(f"liars_dice(numdice=1,dice_sides={faces})"))
    walks, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(100):
            solver.run_iteration()
        walks += 100
    spent = time.perf_counter() - start
    # The policy's table can only be had by way of pickling: name<~>actions;regrets;average;current<~>name<~>...
    text = solver.__getstate__()
    parts = text[text.index("[SolverValuesTable]") :].split("\n", 1)[1].strip().split("<~>")
    del text
    rows: tuple[list[list[int]], ...] = ([], [])
    weights: tuple[list[np.ndarray], ...] = ([], [])
    for name, values in zip(parts[0::2], parts[1::2], strict=False):
        die, *bids = name.split()
        bits = 0
        for bid in bids:
            quantity, face = map(int, bid.split("-"))
            bits |= 1 << ((quantity - 1) * faces + face - 1)
        actions, _, average, _ = values.split(";")
        dense = np.zeros(2 * faces + 1, np.float32)
        dense[[int(action) for action in actions.split(",")]] = [float.fromhex(x) for x in average.split(",")]
        player = len(bids) % 2
        rows[player].append([int(die) - 1, bits])
        weights[player].append(dense)
    arrays = {}
    for player in range(2):
        arrays[f"rows{player}"] = np.array(rows[player], np.int32)
        arrays[f"weights{player}"] = np.array(weights[player])
    np.savez(path, **arrays)
    print(json.dumps({"walks": walks, "infosets": len(parts) // 2, "seconds": spent}))


if __name__ == "__main__":
    main()
