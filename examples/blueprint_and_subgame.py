"""A rough blueprint for a whole game, and a part of it solved again: safely, and in the way that promises nothing.

python examples/blueprint_and_subgame.py
"""

from __future__ import annotations

import argparse

import jaxcfr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="Kuhn poker, few iterations")
    arguments = parser.parse_args()
    if arguments.quick:
        game, path, iterations = jaxcfr.load_game("kuhn_poker"), (0, 1, 1), 200  # two cards dealt, a bet
    else:
        game, path, iterations = jaxcfr.load_game("leduc_poker"), (0, 2, 1, 1), 1000  # two cards dealt, call, call
    blueprint = jaxcfr.Blueprint.train(game, 10)
    print("blueprint:", blueprint)
    print(f"{'exploitability of the blueprint':44}{exploitability(blueprint):.4f}")

    subgame = jaxcfr.Subgame.public(game, blueprint, path)  # with all that the players cannot tell from this history
    print(f"to solve again: {subgame.num_roots} roots, {subgame.num_histories:,} histories")
    for safety in ("resolve", "maxmargin", "unsafe"):
        solved = subgame.solve(iterations, safety=safety)
        print(f"{'after solving again, ' + safety:44}{exploitability(blueprint.compose(solved)):.4f}")


def exploitability(blueprint: jaxcfr.Blueprint) -> float:
    return float(jaxcfr.exploitability(blueprint.lowered.tree, blueprint.strategy))


if __name__ == "__main__":
    main()
