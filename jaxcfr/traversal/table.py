"""Information sets met so far, in a hash table of fixed capacity on the device (open addressing, linear probing).

Without a tree nothing is known of a game but what walks come across. Each information set that one meets gets a row,
with its owner's last sequence as parent; so the rows of a player are a decision tree that grows, and a parent's row
always comes before those below it.

C rows, A actions; the sequence of action a at row i has the number i A + a, the empty one -1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.traversal.randomness import mix
from jaxcfr.traversal.walks import prefix_sums

SLOTS = 4
"""Slots for each row: at a quarter full nearly every search ends in its first window."""

WINDOW = 8
"""Slots that a search looks at together."""

BITS = 32
"""Actions in a word of `Table.legal`."""


class Table(NamedTuple):
    """The information sets.

    Attributes:
      marks: `[4 C]` uint32, a hash of the row that lies in each slot, 0 where there is none.
      slots: `[4 C]` int32, the row that lies there.
      keys: `[C, 2 + K]` int32, the owner (-1 at rows that are free), the owner's last sequence, and what
        `ArrayGame.infoset` returned.
      level: `[C]` int32, how many of the owner's information sets come before it.
      legal: `[C, ceil(A / 32)]` uint32, a bit for each legal action.
      size: int32, rows in use; more than C once the table is full.
      forgetful: int32, a row that was met with two different parents, or -1: imperfect recall.
      mixed: int32, a row that was met with two different sets of legal actions, or -1: broken rules.
    """

    marks: Array
    slots: Array
    keys: Array
    level: Array
    legal: Array
    size: Array
    forgetful: Array
    mixed: Array

    @property
    def capacity(self) -> int:
        return self.level.shape[0]

    @property
    def owner(self) -> Array:
        return self.keys[:, 0]

    @property
    def parent(self) -> Array:
        return self.keys[:, 1]


def empty_table(capacity: int, width: int, num_actions: int) -> Table:
    """A table for `capacity` information sets (a power of two) with keys of `width` integers."""
    return Table(
        marks=jnp.zeros(SLOTS * capacity, jnp.uint32),
        slots=jnp.full(SLOTS * capacity, -1, jnp.int32),
        keys=jnp.full((capacity, 2 + width), -1, jnp.int32),
        level=jnp.zeros(capacity, jnp.int32),
        legal=jnp.zeros((capacity, -(-num_actions // BITS)), jnp.uint32),
        size=jnp.zeros((), jnp.int32),
        forgetful=jnp.full((), -1, jnp.int32),
        mixed=jnp.full((), -1, jnp.int32),
    )


class Met(NamedTuple):
    """Information sets that a walk has come to, `[N]` each (`keys` `[N, 2 + K]`, `legal` `[N, W]` as in `Table`)."""

    keys: Array
    legal: Array
    active: Array


def find(table: Table, met: Met, num_actions: int) -> tuple[Table, Array]:
    """The row of each information set, `[N]` int32; those that are new get one. -1 where the table is full."""
    home, mark = _hash(met.keys)
    position = (home & np.uint32(table.marks.shape[0] - 1)).astype(jnp.int32)

    def look(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        position, row, pending = carry
        position, row, found, free = _look(table, met, mark, position, row, pending)
        return position, row, pending & ~found & ~free

    nowhere = jnp.full(home.shape, -1, jnp.int32)
    position, row, _ = jax.lax.while_loop(lambda carry: jnp.any(carry[2]), look, (position, nowhere, met.active))
    table, row = _insert(table, met, mark, position, row, num_actions)
    there, known = jnp.maximum(row, 0), met.active & (row >= 0)
    forgets = known & (table.keys[there, 1] != met.keys[:, 1])
    mixes = known & jnp.any(table.legal[there] != met.legal, axis=1)

    def highest(found: Array, before: Array) -> Array:
        return jnp.maximum(before, jnp.max(jnp.where(found, row, -1)))

    return table._replace(forgetful=highest(forgets, table.forgetful), mixed=highest(mixes, table.mixed)), row


def _hash(keys: Array) -> tuple[Array, Array]:
    """Two words of each information set, the second one not 0; the parent does not belong to its name."""
    first = mix(keys[:, 0].astype(jnp.uint32) + np.uint32(0x51ED270B))
    second = ~first
    for column in range(2, keys.shape[1]):
        word = keys[:, column].astype(jnp.uint32)
        first = mix(first ^ word) + np.uint32(0x9E3779B9)
        second = mix(second + word)
    return first, jnp.maximum(second, np.uint32(1))


def _look(
    table: Table, met: Met, mark: Array, position: Array, row: Array, pending: Array
) -> tuple[Array, Array, Array, Array]:
    """One window of slots: where the search stands now, the row, whether it was found, whether the slot is free."""
    last = table.marks.shape[0] - 1
    seen = table.marks[(jnp.where(pending, position, 0)[:, None] + jnp.arange(WINDOW, dtype=jnp.int32)) & last]
    ends = (seen == mark[:, None]) | (seen == 0)
    ended = ends.any(1)
    first = jnp.where(ended, jnp.argmax(ends, axis=1).astype(jnp.int32), WINDOW)
    at = (position + first) & last
    there = jnp.where(pending & ended, at, 0)
    free = ended & (table.marks[there] == 0)
    candidate = jnp.where(pending & ended & ~free, table.slots[there], 0)
    known = table.keys[candidate]
    same = (known[:, 0] == met.keys[:, 0]) & jnp.all(known[:, 2:] == met.keys[:, 2:], axis=1)
    found = pending & ended & ~free & same
    # Another information set of the same mark: the search goes on behind it.
    position = jnp.where(pending, jnp.where(ended & ~free & ~same, (at + 1) & last, at), position)
    return position, jnp.where(found, candidate, row), found, free


def _insert(table: Table, met: Met, mark: Array, position: Array, row: Array, num_actions: int) -> tuple[Table, Array]:
    """Gives rows to what is missing; `position` is the free slot that each one's search came to."""
    capacity, outside = table.capacity, table.marks.shape[0]
    number = jnp.arange(row.shape[0], dtype=jnp.int32)

    def step(carry: tuple[Table, Array, Array, Array]) -> tuple[Table, Array, Array, Array]:
        table, position, row, pending = carry
        position, row, found, free = _look(table, met, mark, position, row, pending)
        pending = pending & ~found
        claims = pending & free
        # Of those that want the same free slot the one with the largest number gets it.
        claim = -2 - number
        claimed = table.slots.at[jnp.where(claims, position, outside)].min(claim, mode="drop")
        wins = claims & (claimed[position] == claim)
        new = table.size + prefix_sums(wins.astype(jnp.int32)) - 1
        fits = wins & (new < capacity)
        there, place = jnp.where(wins, position, outside), jnp.where(fits, new, capacity)
        parent = met.keys[:, 1]
        level = jnp.where(parent < 0, 0, table.level[jnp.maximum(parent, 0) // num_actions] + 1)
        table = Table(
            marks=table.marks.at[there].set(mark, mode="drop"),
            slots=claimed.at[there].set(jnp.where(fits, new, -1), mode="drop"),
            keys=table.keys.at[place].set(met.keys, mode="drop"),
            level=table.level.at[place].set(level, mode="drop"),
            legal=table.legal.at[place].set(met.legal, mode="drop"),
            size=table.size + wins.sum(dtype=jnp.int32),
            forgetful=table.forgetful,
            mixed=table.mixed,
        )
        row = jnp.where(fits, new, row)
        return table, position, row, pending & ~wins & (table.size <= capacity)

    pending = met.active & (row < 0)
    table, _, row, _ = jax.lax.while_loop(lambda carry: jnp.any(carry[3]), step, (table, position, row, pending))
    return table, row


# Sets of actions as bits


def packed(legal: Array) -> Array:
    """A mask `[N, A]` as words `[N, W]`."""
    actions = legal.shape[1]
    words = []
    for start in range(0, actions, BITS):
        part = [legal[:, a].astype(jnp.uint32) << (a - start) for a in range(start, min(start + BITS, actions))]
        word = part[0]
        for bit in part[1:]:
            word = word | bit
        words.append(word)
    return jnp.stack(words, axis=1)


def unpacked(words: Array, num_actions: int) -> Array:
    """Words `[..., W]` as a mask `[A, ...]`."""
    number = np.arange(num_actions)
    bits = jnp.moveaxis(words, -1, 0)[number // BITS]
    shift = (number % BITS).astype(np.uint32).reshape(-1, *[1] * (bits.ndim - 1))
    return (bits >> shift) & 1 > 0


def counted(words: Array) -> Array:
    """How many actions are in each set, int32 `[N]`."""
    return jax.lax.population_count(words).sum(1, dtype=jnp.int32)


def nth(words: Array, index: Array) -> Array:
    """The `index`-th action, counted from 0, of each set `[N, W]`."""
    found = jnp.zeros_like(index)
    left, done = index, jnp.zeros(index.shape, bool)
    for number in range(words.shape[1]):
        word = words[:, number]
        count = jax.lax.population_count(word).astype(jnp.int32)
        here = ~done & (left < count)
        found = jnp.where(here, BITS * number + _nth_bit(word, left), found)
        left, done = jnp.where(done | here, left, left - count), done | here
    return found


def _nth_bit(word: Array, index: Array) -> Array:
    """The position of the set bit with `index` set bits below it, by bisection."""
    position = jnp.zeros_like(index)
    for width in (16, 8, 4, 2, 1):
        low = jax.lax.population_count(word & np.uint32((1 << width) - 1)).astype(jnp.int32)
        up = index >= low
        index = jnp.where(up, index - low, index)
        word = jnp.where(up, word >> width, word)
        position = position + jnp.where(up, width, 0)
    return position


def uniform(table: Table, num_actions: int, dtype: Any) -> Array:
    """The uniform strategy, `[A, C]`."""
    return uniform_over(unpacked(table.legal, num_actions), dtype)


def uniform_over(legal: Array, dtype: Any) -> Array:
    """The uniform strategy over legal actions, `[A, ...]`."""
    return legal / jnp.maximum(legal.sum(0), 1).astype(dtype)
