"""Memory of fixed size: a uniform sample of everything that was ever put in (Vitter 1985, Algorithm R)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.arguments import integer
from jaxcfr.traversal.base import Visited, none_visited

MAX_CAPACITY = 2**30


class ReservoirBuffer(NamedTuple):
    """A uniform sample, without replacement, of all items inserted so far; a pytree of fixed shape.

    Attributes:
      items: a pytree whose leaves are `[capacity, ...]`.
      filled: int32, how many of them hold an item.
      seen: how many items were inserted in all; above 2^48 a count of floats.
    """

    items: Any
    filled: Array
    seen: Visited

    @staticmethod
    def empty(item: Any, capacity: int) -> ReservoirBuffer:
        """A buffer without items.

        Args:
          item: a pytree of arrays (or their shapes), as one item is.
          capacity: how many it holds.

        Raises:
          OptionError: capacity is no positive integer, or larger than 2^30.
        """
        capacity = integer("capacity", capacity, 1, MAX_CAPACITY)
        items = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), item)
        return ReservoirBuffer(items, jnp.zeros((), jnp.int32), none_visited())

    @property
    def capacity(self) -> int:
        """How many items it holds at most."""
        return int(jax.tree.leaves(self.items)[0].shape[0])

    def insert(self, key: Array, items: Any, valid: Array) -> ReservoirBuffer:
        """Puts items in, one after the other: item number i stays with probability capacity / i.

        Args:
          key: a PRNG key.
          items: leaves `[M, ...]`.
          valid: `[M]` bool, which of them are any.
        """
        capacity, count = self.capacity, valid.shape[0]
        rank = jnp.cumsum(valid.astype(jnp.int32)) - 1
        keep_key, slot_key = jax.random.split(key)
        number = self.seen.value + (self.seen.rest + (rank + 1).astype(jnp.float32))
        kept = jax.random.uniform(keep_key, (count,)) * number < capacity
        anywhere = jax.random.randint(slot_key, (count,), 0, capacity)
        next_free = self.filled + rank
        slot = jnp.where(next_free < capacity, next_free, anywhere)
        slot = jnp.where(valid & ((next_free < capacity) | kept), slot, capacity)
        # Of several for one slot the last one stays; then no two write to the same place.
        order = jnp.arange(1, count + 1, dtype=jnp.int32)
        last = jnp.zeros(capacity + 1, jnp.int32).at[slot].max(order)
        slot = jnp.where(last[slot] == order, slot, capacity)

        def put(column: Array, new: Array) -> Array:
            return column.at[slot].set(new.astype(column.dtype), mode="drop")

        total = valid.sum(dtype=jnp.int32)
        return ReservoirBuffer(
            jax.tree.map(put, self.items, items),
            # Without an overflow near the largest integers.
            self.filled + jnp.minimum(total, capacity - self.filled),
            self.seen.add(total.astype(jnp.float32)),
        )

    def cleared(self) -> ReservoirBuffer:
        """The same buffer without its items."""
        return ReservoirBuffer(self.items, jnp.zeros((), jnp.int32), none_visited())

    def without_room(self) -> ReservoirBuffer:
        """A buffer that holds nothing and takes no memory, for where only the rest of a state is needed."""
        return ReservoirBuffer(jax.tree.map(lambda column: column[:0], self.items), self.filled * 0, none_visited())

    def sample(self, key: Array, size: int | None) -> tuple[Any, Array]:
        """Items drawn uniformly, with replacement; None for all of them.

        Returns:
          The items, leaves `[size, ...]`, and which are any, `[size]` bool: none are while the buffer is empty.
        """
        if size is None:
            return self.items, jnp.arange(self.capacity) < self.filled
        index = jax.random.randint(key, (size,), 0, jnp.maximum(self.filled, 1))
        valid = jnp.broadcast_to(self.filled > 0, (size,))
        return jax.tree.map(lambda column: column[index], self.items), valid

    def as_numpy(self) -> Any:
        """The items that it holds, on the host."""
        return jax.tree.map(lambda column: np.asarray(column)[: int(self.filled)], self.items)
