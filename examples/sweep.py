"""A sweep over hyperparameters: 64 runs of DCFR+ as one compiled program, by `vmap` over alpha and gamma.

python examples/sweep.py
"""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp

import jaxcfr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="leduc_poker")
    parser.add_argument("--iterations", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="Kuhn poker, a 3 x 3 grid")
    arguments = parser.parse_args()
    size, iterations = (3, 50) if arguments.quick else (8, arguments.iterations)
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker" if arguments.quick else arguments.game)).tree

    def exploitability(alpha, gamma):
        state = jaxcfr.solve(tree, jaxcfr.dcfr_plus(alpha, gamma), iterations)
        return jaxcfr.exploitability(tree, jaxcfr.average_strategy(tree, state))

    alphas, gammas = jnp.linspace(0.5, 4.0, size), jnp.linspace(0.0, 7.0, size)
    over_gammas = jax.vmap(exploitability, in_axes=(None, 0))
    grid = jax.vmap(over_gammas, in_axes=(0, None))(alphas, gammas)  # [alphas, gammas]

    print(f"exploitability after {iterations} iterations; a row for each alpha, a column for each gamma")
    print("alpha " + "".join(f"{float(gamma):>10.2f}" for gamma in gammas))
    for alpha, row in zip(alphas, grid, strict=True):
        print(f"{float(alpha):5.2f} " + "".join(f"{float(value):10.2e}" for value in row))
    best = jnp.unravel_index(grid.argmin(), grid.shape)
    print(f"best: alpha = {float(alphas[best[0]]):.2f}, gamma = {float(gammas[best[1]]):.2f}, {float(grid.min()):.2e}")


if __name__ == "__main__":
    main()
