"""What solving parts of Leduc poker again costs: milliseconds for 100 iterations, microseconds an iteration.

    taskset -c 0 python examples/subgames_speed.py

float32, alternating CFR+; the least of many runs, without compiling.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax

import jaxcfr
from jaxcfr.subgames.solving import side_by_side

BETS = ((1, 1), (1, 2, 1), (2, 1), (2, 2, 1), (1, 2, 2, 1))
VARIANT = jaxcfr.cfr_plus()
RUNS = 30


def least(run: Callable[[int], Any], iterations: int) -> float:
    jax.block_until_ready(run(iterations))
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        jax.block_until_ready(run(iterations))
        times.append(time.perf_counter() - start)
    return min(times)


def report(name: str, run: Callable[[int], Any], games: int = 1) -> None:
    short, long = least(run, 100), least(run, 1100)
    print(
        f"{name:48}{1e3 * short / games:8.2f} ms for 100 iterations {1e3 * (long - short) / games:8.2f} us an iteration"
    )


def main() -> None:
    game = jaxcfr.load_game("leduc_poker")
    blueprint = jaxcfr.Blueprint.train(game, 100, VARIANT)
    path = (0, 2, *BETS[0])

    def alone(tree: Any) -> Callable[[int], Any]:
        return lambda iterations: jaxcfr.solve(tree, VARIANT, iterations)

    report("the whole game", alone(blueprint.lowered.tree))
    part = jaxcfr.Subgame.public(game, blueprint, path)
    report("one part, unsafe, both players in one game", alone(part.joint_game("unsafe").tree))
    for safety in ("resolve", "maxmargin"):
        report(f"one part, {safety}, for one player", alone(part.game(0, safety).tree))  # type: ignore[arg-type]
    subgames = [jaxcfr.Subgame.public(game, blueprint, (0, 2, *bets)) for bets in BETS]
    together = side_by_side([game.tree for subgame in subgames for game in subgame.games()])
    report("five parts together, resolve, both players, each", alone(together), len(BETS))
    for depth, values in ((2, None), (3, None), (3, "biased")):
        limited = jaxcfr.Subgame.public(game, blueprint, path, max_depth=depth, leaf_values=values)
        name = f"depth limit {depth}, {values or 'one'} value{'s' if values else ''}"
        report(f"{name}, {limited.game(0).tree.num_histories:,} histories", alone(limited.game(0).tree))


if __name__ == "__main__":
    main()
