"""Figures 3 and 5 of Burch, Johanson and Bowling (2014), "Solving imperfect information games using decomposition".

Leduc poker with the first betting round as trunk: its five subgames are thrown away and solved again, from an
equilibrium (figure 3) or from the equilibrium of an abstract game (figure 5), and exploitability is drawn against the
iterations of that solve. Takes a few minutes; drawing needs the extra `plot`, the numbers do not.

    python examples/resolving_figures.py 3 --out figure3.png
    python examples/resolving_figures.py 5 --out figure5.png
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import jax

import jaxcfr

BETS = ((1, 1), (1, 2, 1), (2, 1), (2, 2, 1), (1, 2, 2, 1))
SAFETY = {3: ("resolve", "unsafe"), 5: ("resolve", "maxmargin", "reach", "unsafe")}
VARIANTS = {"vanilla": jaxcfr.vanilla(), "cfr_plus": jaxcfr.cfr_plus(), "pdcfr_plus": jaxcfr.pdcfr_plus()}


def abstract_key(player: int, key: Any) -> Any:
    """Holding a Jack, a Queen on the board looks like a King; holding a King, a Jack looks like a Queen."""
    before, slash, after = key.partition("/")
    confused = {"J": "QK", "K": "JQ"}.get(key[0], "")
    return before + "/*" + after[2:] if slash and after[0] in confused else key


def blueprint_of(figure: int, game: Any) -> jaxcfr.Blueprint:
    if figure == 3:
        return jaxcfr.Blueprint.train(game, 200_000, jaxcfr.pdcfr_plus())
    merged = jaxcfr.MergedInfosets(game, abstract_key)
    small = jaxcfr.Blueprint.train(merged, 1500, jaxcfr.cfr_plus())
    return jaxcfr.Blueprint.from_profile(game, jaxcfr.lift(small.profile(), merged, game))


def exploitability(blueprint: jaxcfr.Blueprint) -> float:
    return float(jaxcfr.exploitability(blueprint.lowered.tree, blueprint.strategy))


def curve(
    blueprint: jaxcfr.Blueprint, safety: Any, variant: Any, updates: Any, counts: list[int]
) -> Iterator[tuple[int, float]]:
    subgames = [jaxcfr.Subgame.public(blueprint.game, blueprint, (0, 2, *bets)) for bets in BETS]
    for iterations in counts:
        composed = blueprint
        for solved in jaxcfr.solve_together(subgames, iterations, variant, safety=safety, updates=updates):
            composed = composed.compose(solved)
        yield iterations, exploitability(composed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", type=int, choices=(3, 5))
    parser.add_argument("--iterations", type=int, default=25_600, help="the largest number")
    parser.add_argument("--updates", choices=("simultaneous", "alternating"), default="simultaneous")
    parser.add_argument("--out", help="a file for the drawing")
    parser.add_argument("--quick", action="store_true", help="200 iterations of vanilla CFR, and the safe way only")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    safeties, variants = SAFETY[arguments.figure], VARIANTS
    if arguments.quick:
        safeties, variants = safeties[:1], {"vanilla": VARIANTS["vanilla"]}
    counts = [100]
    while counts[-1] * 2 <= (200 if arguments.quick else arguments.iterations):
        counts.append(counts[-1] * 2)
    blueprint = blueprint_of(arguments.figure, jaxcfr.load_game("leduc_poker"))
    print(f"blueprint: exploitability {exploitability(blueprint):.4g}")
    curves: dict[str, list[tuple[int, float]]] = {}
    for safety in safeties:
        for name, variant in variants.items():
            curves[f"{safety}, {name}"] = found = []
            for iterations, value in curve(blueprint, safety, variant, arguments.updates, counts):
                found.append((iterations, value))
                print(f"{safety:10}{name:12}{iterations:8,}  {value:.4g}", flush=True)
    if arguments.out:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots()
        for name, found in curves.items():
            axes.loglog(*zip(*found, strict=True), label=name, linestyle="--" if "unsafe" in name else "-")
        if arguments.figure == 5:
            axes.axhline(exploitability(blueprint), color="grey", label="blueprint")
        axes.set(xlabel="iterations of solving again", ylabel="exploitability (chips a hand)")
        axes.legend()
        figure.savefig(arguments.out)


if __name__ == "__main__":
    main()
