"""Past networks, of which an average is made (Steinberger 2019)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxcfr.deep.learning import Learner


class Past(NamedTuple):
    """At most T networks; where there were more, a uniform sample of them.

    Attributes:
      params: leaves `[T, ...]`.
      scale: `[T]`.
      played: `[T]` float32, the iteration in which each was played; 0 where there is none.
      met: int32, how many there were.
    """

    params: Any
    scale: Array
    played: Array
    met: Array

    def add(self, key: Array, learner: Learner) -> Past:
        """With the network that was just trained, and is played next. The n-th one stays with probability T / n."""
        capacity = self.played.shape[0]
        keep_key, slot_key = jax.random.split(key)
        kept = jax.random.uniform(keep_key) * (self.met + 1) < capacity
        anywhere = jnp.where(kept, jax.random.randint(slot_key, (), 0, capacity), capacity)
        slot = jnp.where(self.met < capacity, self.met, anywhere)

        def put(rows: Array, new: Array) -> Array:
            return rows.at[slot].set(jnp.asarray(new, rows.dtype), mode="drop")

        return Past(
            jax.tree.map(put, self.params, learner.params),
            put(self.scale, learner.scale),
            put(self.played, learner.updates + 1),
            self.met + 1,
        )


def no_past(learner: Learner, capacity: int) -> Past:
    """Nothing yet."""
    return Past(
        jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), learner.params),
        jnp.zeros(capacity, jnp.float32),
        jnp.zeros(capacity, jnp.float32),
        jnp.zeros((), jnp.int32),
    )
