"""Information sets met so far, in a hash table of fixed capacity on the device (open addressing, linear probing).

Without a tree nothing is known of a game but what walks come across. Each
information set that one meets gets a row, with its owner's last sequence as
parent; so the rows of a player are a decision tree that grows, and the two
passes of `jaxcfr.tree.treeplex` go over it here, level by level.

C rows, A actions; the sequence of action a at row i has the number i A + a, the
empty one -1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.traversal.randomness import mix
from jaxcfr.traversal.walks import prefix_sums


class Table(NamedTuple):
    """The information sets.

    Attributes:
      slots: `[2 C]` int32, the row that lies in each slot, -1 where there is none.
      keys: `[C, K]` int32, what `ArrayGame.infoset` returned.
      owner: `[C]` int32, whose; -1 at rows that are free.
      parent: `[C]` int32, the owner's last sequence.
      level: `[C]` int32, how many of the owner's information sets come before it.
      legal: `[C, A]` bool.
      size: int32, rows in use; more than C once the table is full.
      forgetful: int32, a row that was met with two different parents, or -1: imperfect recall.
    """

    slots: Array
    keys: Array
    owner: Array
    parent: Array
    level: Array
    legal: Array
    size: Array
    forgetful: Array

    @property
    def capacity(self) -> int:
        return self.owner.shape[0]

    @property
    def num_actions(self) -> int:
        return self.legal.shape[1]


def empty_table(capacity: int, width: int, num_actions: int) -> Table:
    """A table for `capacity` information sets (a power of two) with keys of `width` integers."""
    return Table(
        slots=jnp.full(2 * capacity, -1, jnp.int32),
        keys=jnp.zeros((capacity, width), jnp.int32),
        owner=jnp.full(capacity, -1, jnp.int32),
        parent=jnp.full(capacity, -1, jnp.int32),
        level=jnp.zeros(capacity, jnp.int32),
        legal=jnp.zeros((capacity, num_actions), bool),
        size=jnp.zeros((), jnp.int32),
        forgetful=jnp.full((), -1, jnp.int32),
    )


class Met(NamedTuple):
    """Information sets that a walk has come to, `[N]` each (`keys` `[N, K]`, `legal` `[N, A]`)."""

    keys: Array
    owner: Array
    parent: Array
    legal: Array
    active: Array


def find(table: Table, met: Met) -> tuple[Table, Array]:
    """The row of each information set, `[N]` int32; those that are new get one. -1 where the table is full."""
    position = _first_slot(met, table.slots.shape[0])

    def look(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        position, row, pending = carry
        row, same, occupied = _compare(table, met, position, row, pending)
        moves = pending & occupied & ~same
        return _next_slot(table, position, moves), row, moves

    pending = met.active
    nowhere = jnp.full(met.owner.shape, -1, jnp.int32)
    position, row, _ = jax.lax.while_loop(lambda carry: jnp.any(carry[2]), look, (position, nowhere, pending))
    missing = met.active & (row < 0)
    table, row = jax.lax.cond(jnp.any(missing), _insert, lambda table, *_: (table, row), table, met, position, row)
    known = jnp.maximum(row, 0)
    differs = met.active & (row >= 0) & (table.parent[known] != met.parent)
    forgetful = jnp.maximum(table.forgetful, jnp.max(jnp.where(differs, row, -1)))
    return table._replace(forgetful=forgetful), row


def _first_slot(met: Met, slots: int) -> Array:
    word = mix(met.owner.astype(jnp.uint32) + np.uint32(0x51ED270B))
    for column in range(met.keys.shape[1]):
        word = mix(word ^ met.keys[:, column].astype(jnp.uint32)) + np.uint32(0x9E3779B9)
    return (word & np.uint32(slots - 1)).astype(jnp.int32)


def _next_slot(table: Table, position: Array, moves: Array) -> Array:
    return jnp.where(moves, (position + 1) & (table.slots.shape[0] - 1), position)


def _compare(table: Table, met: Met, position: Array, row: Array, pending: Array) -> tuple[Array, Array, Array]:
    """Whether each one's slot holds it, and whether it holds anything."""
    found = table.slots[position]
    occupied = found >= 0
    at = jnp.maximum(found, 0)
    same = pending & occupied & (table.owner[at] == met.owner) & jnp.all(table.keys[at] == met.keys, axis=1)
    return jnp.where(same, found, row), same, occupied


def _insert(table: Table, met: Met, position: Array, row: Array) -> tuple[Table, Array]:
    """Gives rows to what is missing; `position` is where each one's probing came to a free slot."""
    capacity, number = table.capacity, jnp.arange(met.owner.shape[0], dtype=jnp.int32)
    outside = table.slots.shape[0]

    def step(carry: tuple[Table, Array, Array, Array]) -> tuple[Table, Array, Array, Array]:
        table, position, row, pending = carry
        row, same, occupied = _compare(table, met, position, row, pending)
        pending = pending & ~same
        free = pending & ~occupied
        # Of those that want the same free slot the one with the largest number gets it.
        claim = -2 - number
        claimed = table.slots.at[jnp.where(free, position, outside)].min(claim, mode="drop")
        wins = free & (claimed[position] == claim)
        new = table.size + prefix_sums(wins.astype(jnp.int32)) - 1
        fits = wins & (new < capacity)
        slots = claimed.at[jnp.where(wins, position, outside)].set(jnp.where(fits, new, -1), mode="drop")
        place = jnp.where(fits, new, capacity)
        above = jnp.maximum(met.parent, 0) // table.num_actions
        level = jnp.where(met.parent < 0, 0, table.level[above] + 1)
        table = Table(
            slots=slots,
            keys=table.keys.at[place].set(met.keys, mode="drop"),
            owner=table.owner.at[place].set(met.owner, mode="drop"),
            parent=table.parent.at[place].set(met.parent, mode="drop"),
            level=table.level.at[place].set(level, mode="drop"),
            legal=table.legal.at[place].set(met.legal, mode="drop"),
            size=table.size + wins.sum(dtype=jnp.int32),
            forgetful=table.forgetful,
        )
        row = jnp.where(fits, new, row)
        pending = pending & ~wins & (table.size <= capacity)
        return table, _next_slot(table, position, pending & occupied), row, pending

    pending = met.active & (row < 0)
    table, _, row, _ = jax.lax.while_loop(lambda carry: jnp.any(carry[3]), step, (table, position, row, pending))
    return table, row


def uniform(table: Table, dtype: Any) -> Array:
    """The uniform strategy, `[C, A]`."""
    legal = table.legal.astype(dtype)
    return legal / jnp.maximum(legal.sum(1, keepdims=True), 1)


def regrets(table: Table, direct: Array, strategy: Array, player: int) -> Array:
    """Counterfactual regrets `[C, A]` from direct values `[C A + 1]`, bottom-up over the player's rows."""
    shape = table.legal.shape
    mine = table.owner == player
    deepest = jnp.max(jnp.where(mine, table.level, -1))
    last = direct.shape[0] - 1

    def up(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        level, values = carry
        worth = (values[:-1].reshape(shape) * strategy).sum(1)
        here = mine & (table.level == level) & (table.parent >= 0)
        return level - 1, values.at[jnp.where(here, table.parent, last)].add(jnp.where(here, worth, 0))

    _, values = jax.lax.while_loop(lambda carry: carry[0] > 0, up, (deepest, direct))
    actions = values[:-1].reshape(shape)
    worth = (actions * strategy).sum(1, keepdims=True)
    return jnp.where(table.legal & mine[:, None], actions - worth, 0)


def realization_weights(table: Table, strategy: Array) -> Array:
    """Everyone's own reach of every sequence, `[C, A]`, top-down."""
    deepest = jnp.max(jnp.where(table.owner >= 0, table.level, 0))

    def down(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        level, weights = carry
        above = weights.reshape(-1)[jnp.maximum(table.parent, 0)]
        reach = jnp.where(table.parent < 0, 1, above)
        return level + 1, jnp.where((table.level == level)[:, None], reach[:, None] * strategy, weights)

    _, weights = jax.lax.while_loop(
        lambda carry: carry[0] <= deepest, down, (jnp.zeros((), jnp.int32), jnp.zeros_like(strategy))
    )
    return weights
