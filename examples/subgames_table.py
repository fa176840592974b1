"""NashConv after solving parts of a game again and putting them back: every way, three games, two blueprints.

Prints the table of docs/subgames.md. Takes some ten minutes, most of it compiling.

    python examples/subgames_table.py --iterations 2000
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax

import jaxcfr
from jaxcfr.subgames.solved import solve_games

SAFETY = ("resolve", "maxmargin", "reach", "unsafe")
VARIANT = jaxcfr.cfr_plus()
BETS = ((1, 1), (1, 2, 1), (2, 1), (2, 2, 1), (1, 2, 2, 1))


def kuhn() -> tuple[Any, list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The parts after the first action, and all decisions below it."""
    game = jaxcfr.load_game("kuhn_poker")
    deals = list(itertools.permutations(range(3), 2))
    nodes = [(*deal, *bets) for deal in deals for bets in ((0,), (1,), (0, 1))]
    return game, [(0, 1, 0), (0, 1, 1)], nodes


def leduc() -> tuple[Any, list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The five parts after the first round, and the decisions with which the second begins."""
    game = jaxcfr.load_game("leduc_poker")
    cards = itertools.permutations(range(6), 3)
    return game, [(0, 2, *bets) for bets in BETS], [(a, b, *bets, c) for a, b, c in cards for bets in BETS]


def dice() -> tuple[Any, list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The parts after each first bid but the last, and the decisions with which they begin."""
    game = jaxcfr.load_game("liars_dice(dice_sides=4)")
    bids = range(2, 7)
    return game, [(0, 0, bid) for bid in bids], [(a, b, bid) for a in range(4) for b in range(4) for bid in bids]


def blueprints(game: Any) -> Iterator[tuple[str, jaxcfr.Blueprint]]:
    lowered = jaxcfr.lower(game)
    for name, iterations in (("equilibrium", 100_000), ("poor", 10)):
        state = jaxcfr.solve(lowered.tree, jaxcfr.pdcfr_plus(), iterations)
        yield name, jaxcfr.Blueprint(game, lowered, jaxcfr.average_strategy(lowered.tree, state))


def nash_conv(blueprint: jaxcfr.Blueprint) -> float:
    return float(jaxcfr.nash_conv(blueprint.lowered.tree, blueprint.strategy))


def shifted_parts(game: Any, blueprint: jaxcfr.Blueprint, nodes: list[Any], iterations: int) -> jaxcfr.Blueprint:
    """All closed parts around the nodes, solved with the payoff shift."""
    composed, done = blueprint, set()
    for path in nodes:
        part = jaxcfr.Subgame.public(game, blueprint, path)
        key = part.inside.tobytes()
        if key not in done:
            done.add(key)
            joint = part.joint_game("shift")
            composed = composed.compose(solve_games(blueprint, part.part, [joint], iterations, VARIANT, "alternating"))
    return composed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--games", nargs="*", default=["kuhn", "leduc", "dice"])
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore", jaxcfr.errors.SubgameWarning)
    makers: dict[str, Callable[[], Any]] = {"kuhn": kuhn, "leduc": leduc, "dice": dice}
    print("| game | blueprint | before | " + " | ".join(SAFETY) + " | shift, closed parts | shift, one node |")
    print("|---" * (len(SAFETY) + 5) + "|")
    for name in arguments.games:
        game, parts, nodes = makers[name]()
        for kind, blueprint in blueprints(game):
            cells = [f"{nash_conv(blueprint):.2g}"]
            for safety in SAFETY:
                composed = blueprint
                for path in parts:
                    part = jaxcfr.Subgame.public(game, blueprint, path)
                    composed = composed.compose(part.solve(arguments.iterations, VARIANT, safety=safety))
                cells.append(f"{nash_conv(composed):.2g}")
            if name == "kuhn":  # some of its nodes lie below others
                each = [nash_conv(shifted_parts(game, blueprint, [node], arguments.iterations)) for node in nodes]
                cells.append(f"{min(each):.2g} to {max(each):.2g}")
            else:
                cells.append(f"{nash_conv(shifted_parts(game, blueprint, nodes, arguments.iterations)):.2g}")
            single = []
            for path in nodes:
                solved = jaxcfr.Subgame.at(game, blueprint, path).solve(arguments.iterations, VARIANT)
                single.append(nash_conv(blueprint.compose(solved)))
            cells.append(f"{min(single):.2g} to {max(single):.2g}")
            print(f"| {game.name} | {kind} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
