"""What solving parts of Leduc poker again costs: milliseconds for 100 iterations, microseconds an iteration.

    taskset -c 0 python examples/subgames_speed.py

float32, alternating CFR+; the least of many runs, without compiling.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax

import jaxcfr
from jaxcfr.subgames.solving import side_by_side

BETS = {
    "leduc_poker": ((1, 1), (1, 2, 1), (2, 1), (2, 2, 1), (1, 2, 2, 1)),  # ways into the second round
    "kuhn_poker": ((0,), (1,)),
}
VARIANT = jaxcfr.cfr_plus()


def least(run: Callable[[int], Any], iterations: int, runs: int) -> float:
    jax.block_until_ready(run(iterations))
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        jax.block_until_ready(run(iterations))
        times.append(time.perf_counter() - start)
    return min(times)


def report(name: str, run: Callable[[int], Any], runs: int, games: int = 1) -> None:
    short, long = least(run, 100, runs), least(run, 1100, runs)
    print(
        f"{name:48}{1e3 * short / games:8.2f} ms for 100 iterations {1e3 * (long - short) / games:8.2f} us an iteration"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="Kuhn poker, and every time is that of one run")
    quick = parser.parse_args().quick
    name, runs = ("kuhn_poker", 1) if quick else ("leduc_poker", 30)
    game, bets = jaxcfr.load_game(name), BETS[name]
    blueprint = jaxcfr.Blueprint.train(game, 100, VARIANT)
    path = (0, 2, *bets[0])

    def alone(tree: Any) -> Callable[[int], Any]:
        return lambda iterations: jaxcfr.solve(tree, VARIANT, iterations)

    report("the whole game", alone(blueprint.lowered.tree), runs)
    part = jaxcfr.Subgame.public(game, blueprint, path)
    report("one part, unsafe, both players in one game", alone(part.joint_game("unsafe").tree), runs)
    for safety in ("resolve", "maxmargin"):
        report(f"one part, {safety}, for one player", alone(part.game(0, safety).tree), runs)  # type: ignore[arg-type]
    subgames = [jaxcfr.Subgame.public(game, blueprint, (0, 2, *own)) for own in bets]
    together = side_by_side([game.tree for subgame in subgames for game in subgame.games()])
    report(f"{len(bets)} parts together, resolve, both players, each", alone(together), runs, len(bets))
    for depth, values in ((1, None), (1, "biased")) if quick else ((2, None), (3, None), (3, "biased")):
        limited = jaxcfr.Subgame.public(game, blueprint, path, max_depth=depth, leaf_values=values)
        name = f"depth limit {depth}, {values or 'one'} value{'s' if values else ''}"
        report(f"{name}, {limited.game(0).tree.num_histories:,} histories", alone(limited.game(0).tree), runs)


if __name__ == "__main__":
    main()
