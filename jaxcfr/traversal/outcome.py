"""Single plays with importance weights: outcome sampling (Lanctot et al. 2009)."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.traversal import randomness
from jaxcfr.traversal.walks import PLAYER_CODE, TERMINAL_CODE, Rows, apart, draw, look, take
from jaxcfr.tree.game_tree import GameTree

MAX_LANES = 4096
"""So many plays go on side by side; where one ends, its lane begins the next."""


@dataclasses.dataclass(frozen=True)
class Episodes:
    """Plays in which one player explores.

    Attributes:
      tree: with histories.
      player: who updates, and explores.
      seed: two words.
      cumulative: cumulative probabilities of everyone's strategy and of chance.
      probabilities: everyone's strategies in one vector.
      exploration: probability of drawing uniformly.
    """

    tree: GameTree
    player: int
    seed: tuple[Array, Array]
    cumulative: Array
    probabilities: Array
    exploration: Array

    def run(self, batch: int) -> tuple[Array, Array]:
        """Estimates of the direct counterfactual values, `[L + 1]`, and how many histories were visited."""
        histories, dtype = self.tree.histories, self.tree.dtype
        assert histories is not None
        moves, treeplex = histories.moves, self.tree.treeplexes[self.player]
        offset = sum(other.size for other in self.tree.treeplexes[: self.player])
        payoffs = self.tree.payoffs.leaves.payoffs[:, self.player] - self.tree.payoffs.offset[self.player]
        lanes = min(batch, MAX_LANES)
        root = look(moves, jnp.zeros(1, jnp.int32))
        size = treeplex.size

        def ended(
            rows: Rows, sequence: Array, weight: Array, walk: Array, stream: Array, values: Array
        ) -> tuple[Rows, Array, Array, Array, Array, Array]:
            """Adds up the plays that have ended, and begins others in their lanes."""
            leaf = (rows.actor == TERMINAL_CODE) & (walk < batch)
            value = jnp.where(leaf, weight * take(payoffs, jnp.where(leaf, rows.target, 0)), 0)
            values = values.at[sequence].add(value, mode="promise_in_bounds")
            walk = jnp.where(leaf, walk + lanes, walk)
            stream = jnp.where(leaf, randomness.streams(self.seed, walk), stream)
            rows = Rows(*(jnp.where(leaf, first, column) for first, column in zip(root, rows, strict=True)))
            return rows, jnp.where(leaf, size, sequence), jnp.where(leaf, 1, weight), walk, stream, values

        def step(carry: tuple[Rows, Array, Array, Array, Array, Array, Array]) -> tuple[Any, ...]:
            rows, sequence, weight, walk, stream, values, visited = carry
            going = walk < batch
            visited = visited + going.sum(dtype=jnp.float32)
            inner = rows.actor != TERMINAL_CODE
            own = rows.actor == PLAYER_CODE + self.player
            u = randomness.uniform(self.seed, stream, dtype)
            explores = own & (u < self.exploration)
            # Either part of the unit interval is stretched to the whole.
            rest = jnp.where(self.exploration < 1, 1 - self.exploration, 1)
            u = jnp.where(explores, u / self.exploration, jnp.where(own, (u - self.exploration) / rest, u))
            followed = draw(self.cumulative, rows, jnp.minimum(u, 1 - np.finfo(dtype).epsneg), moves.most_children)
            any_action = jnp.minimum((u * rows.children).astype(jnp.int32), rows.children - 1)
            action = apart(jnp.where(explores, any_action, followed))
            flat = rows.base + action * rows.stride
            probability = take(self.probabilities, jnp.where(own, flat, 0))
            drawn = self.exploration / jnp.maximum(rows.children, 1) + (1 - self.exploration) * probability
            weight = jnp.where(own, weight / jnp.where(own, drawn, 1), weight)
            sequence = jnp.where(own & going, flat - offset, sequence)
            below = apart(look(moves, jnp.where(inner, rows.target + action, 0)))
            stream = randomness.after_draw(stream)
            return *ended(below, sequence, weight, walk, stream, values), visited

        walk = jnp.arange(lanes, dtype=jnp.int32)
        begin = Rows(*(jnp.broadcast_to(column, lanes) for column in root))
        carry = (
            begin,
            jnp.full(lanes, size, jnp.int32),
            jnp.ones(lanes, dtype),
            walk,
            randomness.streams(self.seed, walk),
            jnp.zeros(size + 1, dtype),
            jnp.zeros((), jnp.float32),
        )
        *_, values, visited = jax.lax.while_loop(lambda carry: jnp.any(carry[3] < batch), step, carry)
        return values / batch, visited
