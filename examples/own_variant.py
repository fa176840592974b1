"""A regret variant of one's own in 20 lines: regret matching with other powers than 1 (Hart and Mas-Colell 2001).

Regret matching plays actions in proportion to their positive regrets. Any power of them keeps regret small too; the
power is a leaf of the pytree, so that one program runs all of them.

    python examples/own_variant.py
"""

from __future__ import annotations

import argparse
import dataclasses

import jax
import jax.numpy as jnp

import jaxcfr


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PowerMatching(jaxcfr.RegretVariant):
    """Plays `[R]+ ** power`; 1 is regret matching. Regrets are floored, and the average weighted, as in CFR+."""

    power: float = 1.0

    def update(self, state, r, t):
        return state._replace(regret=jnp.maximum(state.regret + r, 0))

    def strategy(self, state, uniform, t):
        largest = jnp.max(state.regret, axis=0, keepdims=True)  # scaled, so that no power overflows
        scaled = state.regret / jnp.where(largest > 0, largest, 1)
        return jaxcfr.regret_matching(jnp.where(scaled > 0, scaled**self.power, 0), uniform > 0)

    def gamma_at(self, t):
        return 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="Kuhn poker")
    arguments = parser.parse_args()
    tree = jaxcfr.lower(jaxcfr.load_game("kuhn_poker" if arguments.quick else "leduc_poker")).tree
    iterations = 100 if arguments.quick else 1000

    def exploitability(variant):
        state = jaxcfr.solve(tree, variant, iterations)
        return jaxcfr.exploitability(tree, jaxcfr.average_strategy(tree, state))

    powers = jnp.array([0.5, 1.0, 1.5, 2.0, 3.0])
    for power, value in zip(powers, jax.vmap(lambda p: exploitability(PowerMatching(p)))(powers), strict=True):
        print(f"power {float(power):.1f}: exploitability {float(value):.6f}")
    print(f"cfr_plus : exploitability {float(exploitability(jaxcfr.cfr_plus())):.6f}")


if __name__ == "__main__":
    main()
