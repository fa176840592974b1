"""A network that predicts regrets, trained through the solver with optax.

Optimistic variants play as if they had already seen the next regrets, and expect them to be the last ones. Here a small
network says what to expect from the last regrets, the ones before and the sum of all; it and the learning rate are
trained by gradients through whole runs, on games with random payoffs, for a small NashConv after a few iterations.
(The idea is that of Sychrovsky et al. 2024, "Learning not to regret".) Games that were not trained on tell what it is
worth: less than the best fixed rate leaves, but more than predictive CFR+ does.

Exponential weights take the place of regret matching because they are smooth. Regret matching jumps where the last
positive regret goes: gradients are right on both sides of a jump and do not see it, and training would go astray.

    python examples/learned_predictor.py
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

import jaxcfr


class Memory(NamedTuple):
    """What is stored: the sum of all regrets, and those of the last two iterations."""

    regret: jax.Array
    last: jax.Array
    before: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LearnedHedge(jaxcfr.RegretVariant):
    """Exponential weights that expect the last regrets and what a network adds to them, the same one everywhere."""

    log_rate: float
    layers: tuple[dict[str, jax.Array], ...]

    def init(self, zeros):
        return Memory(zeros, zeros, zeros)

    def update(self, state, r, t):
        return Memory(state.regret + r, r, state.last)

    def strategy(self, state, uniform, t):
        shrinking = jnp.broadcast_to(1 / (1 + t), state.regret.shape)
        features = jnp.stack([state.last, state.before, state.regret * shrinking, shrinking], axis=-1)
        expected = state.last + network(self.layers, features)
        scores = jnp.exp(self.log_rate) * (state.regret + expected)
        return jax.nn.softmax(jnp.where(uniform > 0, scores, -jnp.inf), axis=0)

    def gamma_at(self, t):
        return 2.0


def network(layers: Any, values: jax.Array) -> jax.Array:
    for layer in layers[:-1]:
        values = jnp.tanh(values @ layer["weights"] + layer["bias"])
    return (values @ layers[-1]["weights"] + layers[-1]["bias"])[..., 0]


def initial_layers(key: jax.Array, widths: tuple[int, ...]) -> tuple[dict[str, jax.Array], ...]:
    layers = []
    for number, (inputs, outputs) in enumerate(itertools.pairwise(widths)):
        weights = jax.random.normal(jax.random.fold_in(key, number), (inputs, outputs)) / jnp.sqrt(inputs)
        # The last layer begins at zero: until something is learned the last regrets are expected.
        weights = weights if number < len(widths) - 2 else jnp.zeros_like(weights)
        layers.append({"weights": weights, "bias": jnp.zeros(outputs)})
    return tuple(layers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--iterations", type=int, default=8, help="of the solver, in every run")
    parser.add_argument("--quick", action="store_true", help="matching pennies, a few steps")
    arguments = parser.parse_args()
    steps, iterations, batch = (10, 3, 8) if arguments.quick else (arguments.steps, arguments.iterations, 32)
    tree = jaxcfr.lower(jaxcfr.load_game("matching_pennies" if arguments.quick else "kuhn_poker")).tree

    def random_game(key):
        """The game with stakes of its own at every leaf."""
        stakes = jax.random.uniform(key, (tree.num_terminals, 1), minval=0.25, maxval=2.0)
        return tree.with_payoffs(tree.terminal_payoffs * stakes)

    def nash_conv(variant, key):
        game = random_game(key)
        state = jaxcfr.solve(game, variant, iterations, differentiable=True)
        return jaxcfr.nash_conv(game, jaxcfr.average_strategy(game, state))

    def loss(variant, keys):
        return jnp.mean(jax.vmap(lambda key: nash_conv(variant, key))(keys))

    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(1e-2, steps)))

    @jax.jit
    def train_step(variant, optimizer_state, key):
        value, gradients = jax.value_and_grad(loss)(variant, jax.random.split(key, batch))
        updates, optimizer_state = optimizer.update(gradients, optimizer_state)
        return optax.apply_updates(variant, updates), optimizer_state, value

    training, testing, initial = jax.random.split(jax.random.key(0), 3)
    first = variant = LearnedHedge(jnp.asarray(0.7, tree.dtype), initial_layers(initial, (4, 16, 16, 1)))
    optimizer_state = optimizer.init(variant)
    for step in range(steps):
        variant, optimizer_state, value = train_step(variant, optimizer_state, jax.random.fold_in(training, step))
        if step % max(1, steps // 10) == 0:
            print(f"step {step:4}: NashConv {float(value):.4f} on the games of this step", flush=True)

    test_keys = jax.random.split(testing, 4 * batch)
    test = jax.jit(loss)
    rates = jnp.geomspace(1.0, 32.0, 21)
    fixed = jnp.array([test(dataclasses.replace(first, log_rate=jnp.log(rate)), test_keys) for rate in rates])
    print(f"NashConv after {iterations} iterations of {len(test_keys)} games that were not trained on")
    print(f"before training                     {float(test(first, test_keys)):.4f}")
    print(f"without a network, the best rate    {float(fixed.min()):.4f}  (rate {float(rates[fixed.argmin()]):.1f})")
    print(f"trained                             {float(test(variant, test_keys)):.4f}", end="")
    print(f"  (rate {float(jnp.exp(variant.log_rate)):.1f})")
    print(f"pcfr_plus                           {float(test(jaxcfr.pcfr_plus(), test_keys)):.4f}")


if __name__ == "__main__":
    main()
