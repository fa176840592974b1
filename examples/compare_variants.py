"""All regret variants on one game: exploitability as the iterations go by. None of them is best everywhere.

python examples/compare_variants.py --game leduc_poker --iterations 1000
"""

from __future__ import annotations

import argparse

import jax

import jaxcfr

VARIANTS = {
    "vanilla": lambda total: jaxcfr.vanilla(),
    "cfr_plus": lambda total: jaxcfr.cfr_plus(),
    "linear_cfr": lambda total: jaxcfr.linear_cfr(),
    "dcfr": lambda total: jaxcfr.dcfr(),
    "dcfr_plus": lambda total: jaxcfr.dcfr_plus(),
    "pcfr_plus": lambda total: jaxcfr.pcfr_plus(),
    "pdcfr_plus": lambda total: jaxcfr.pdcfr_plus(),
    "sapcfr_plus": lambda total: jaxcfr.sapcfr_plus(),
    "hs_dcfr": lambda total: jaxcfr.hs_dcfr(30.0, total),  # these have schedules over a run of so many iterations
    "hs_cfr_plus": lambda total: jaxcfr.hs_cfr_plus(30.0, total),
    "hs_pcfr_plus": lambda total: jaxcfr.hs_pcfr_plus(30.0, total),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="leduc_poker")
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="Kuhn poker, 100 iterations, three variants")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    iterations = 100 if arguments.quick else arguments.iterations
    names = ("vanilla", "dcfr_plus", "pdcfr_plus") if arguments.quick else tuple(VARIANTS)
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker" if arguments.quick else arguments.game)).tree

    marks = [iterations // 100, iterations // 10, iterations]
    print(f"{'':14}" + "".join(f"{mark:>12,}" for mark in marks))
    for name in names:
        variant, state, cells = VARIANTS[name](iterations), None, ""
        for before, mark in zip((0, *marks), marks, strict=False):
            state = jaxcfr.solve(tree, variant, mark - before, state)  # goes on from where it was
            cells += f"{float(jaxcfr.exploitability(tree, jaxcfr.average_strategy(tree, state))):12.2e}"
        print(f"{name:14}{cells}", flush=True)


if __name__ == "__main__":
    main()
