"""A player's decision tree (its *treeplex*): information sets, sequences, and the two passes over them.

Vectors over sequences are *flat*: `[L]`, the concatenation of the tables of
all buckets (see `jaxcfr.tree.layout`), padding included; vectors over
realization weights and counterfactual values have one more entry at the end,
`[L + 1]`, for the empty sequence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.tree.layout import BUCKET_OVERHEAD, Bucket, Stage, level_runs, quantise
from jaxcfr.tree.segments import SegmentSum, build_segment_sum

SCAN_GATHER_LIMIT = 8
"""Inside scans, child sums by gathers may read at most this many times more entries than there are."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Treeplex:
    """The decision tree of one player, with n information sets, L flat entries, S stages.

    Attributes:
      uniform: `[L]` float, the uniform strategy; 0 exactly at the padding, which makes it the mask of legal entries.
      first: `[n]` int32, flat index of each information set's first action.
      stride: `[n]` int32, distance between the flat indices of its consecutive actions.
      num_actions: `[n]` int32.
      parent: `[n]` int32, flat index of the sequence that leads to each information set; L for the empty one.
      entry_parent: per stage, `[columns]` int32, where the parent of each information set of the stage's first
        level lies among the entries of the level before (empty for the first stage, whose parent is the empty
        sequence).
      entry_sum: per stage but the first, sums over those information sets to the entries of the level before.
      inner_parent: per stage, `[num_levels - 1, columns]` int32, the same between the levels inside the stage.
      inner_children: per stage, `[num_levels - 1, K, width * columns]` int32, the children of every entry of a
        level, padded with `columns`; empty where a stage is too irregular for that.
      stages: the layout (static).
      num_infosets: n (static).
      num_sequences: number of sequences that are not padding, the empty one included (static).
    """

    uniform: Array
    first: Array
    stride: Array
    num_actions: Array
    parent: Array
    entry_parent: tuple[Array, ...]
    entry_sum: tuple[SegmentSum, ...]
    inner_parent: tuple[Array, ...]
    inner_children: tuple[Array, ...]
    stages: tuple[Stage, ...] = dataclasses.field(metadata={"static": True})
    num_infosets: int = dataclasses.field(metadata={"static": True})
    num_sequences: int = dataclasses.field(metadata={"static": True})

    @property
    def size(self) -> int:
        """L, the length of a flat vector."""
        return self.stages[-1].stop if self.stages else 0

    @property
    def dtype(self) -> Any:
        return self.uniform.dtype

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        return tuple(bucket for stage in self.stages for bucket in stage.buckets)

    def over_tables(self, rule: Callable[..., Array], *flats: Any) -> Array:
        """Applies `rule` to every table `[width, columns]` of flat vectors (or pytrees of them).

        Args:
          rule: from one table for each of `flats` to a table.
          *flats: pytrees whose leaves are `[L]`.

        Returns:
          `[L]`.
        """
        if not self.stages:
            return jnp.zeros(0, self.dtype)
        return jnp.concatenate(
            [rule(*(jax.tree.map(lambda v, b=b: _table(v, b), flat) for flat in flats)).reshape(-1) for b in self.buckets]
        )

    def realization_weights(self, strategy: Array) -> Array:
        """The player's own reach of every sequence: from a strategy `[L]` to `[L + 1]`, the last entry 1.

        `x[s] = product of the strategy's probabilities of the player's own actions on s` (von Stengel 1996).
        """
        one = jnp.ones(1, strategy.dtype)
        weights: list[Array] = []
        level = one
        for index, stage in enumerate(self.stages):
            reach = level[self.entry_parent[index]] if index else jnp.ones(stage.columns, strategy.dtype)
            if stage.num_levels == 1:
                columns = _columns(reach, stage)
                tables = [_table(strategy, b) * r for b, r in zip(stage.buckets, columns, strict=True)]
                level = jnp.concatenate([table.reshape(-1) for table in tables])
                weights.append(level)
            else:
                levels = _levels(strategy, stage)
                # The last level hands nothing on inside this stage.
                after = jnp.concatenate([self.inner_parent[index], jnp.zeros((1, stage.columns), jnp.int32)])

                def step(reach: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
                    probability, parent = inputs
                    weight = probability * reach
                    return weight.reshape(-1)[parent], weight

                _, stacked = jax.lax.scan(step, reach, (levels, after))
                level = stacked[-1].reshape(-1)
                weights.append(jnp.moveaxis(stacked, 0, 1).reshape(-1))
        return jnp.concatenate([*weights, one])

    def fold(
        self, direct: Array, rule: Callable[..., tuple[Array, Array]], *flats: Array
    ) -> tuple[Array, Array]:
        """One bottom-up pass.

        The value of an entry is what it is worth directly plus the values of the information sets right below it;
        `rule` turns the values of an information set's actions into the value of the set.

        Args:
          direct: `[L + 1]`, direct counterfactual values (leaves), the empty sequence last.
          rule: called as `rule(values, *tables)` with the values `[width, columns]` of a table's entries and the
            same tables of `flats`; returns the values of the information sets, `[columns]`, and a table
            `[width, columns]` to collect.
          *flats: `[L]` each.

        Returns:
          The collected tables, `[L]`, and the value of the whole tree, a scalar.
        """
        collected: list[Array] = []
        below: Array | None = None
        for index in reversed(range(len(self.stages))):
            stage = self.stages[index]
            from_below = None if below is None else self.entry_sum[index + 1](below)
            if stage.num_levels == 1:
                level = direct[stage.offset : stage.stop]
                if from_below is not None:
                    level = level + from_below
                values, tables = [], []
                for bucket in stage.buckets:
                    start = bucket.offset - stage.offset
                    entries = level[start : start + bucket.width * bucket.columns]
                    value, table = rule(
                        entries.reshape(bucket.width, bucket.columns), *(_table(flat, bucket) for flat in flats)
                    )
                    values.append(value)
                    tables.append(table.reshape(-1))
                below = jnp.concatenate(values)
                collected = [*tables, *collected]
            else:
                below, table = self._fold_scan(index, stage, direct, from_below, rule, flats)
                collected = [table, *collected]
        if below is None:
            return jnp.zeros(0, direct.dtype), direct[-1]
        return jnp.concatenate(collected), direct[-1] + below.sum()

    def _fold_scan(
        self,
        index: int,
        stage: Stage,
        direct: Array,
        from_below: Array | None,
        rule: Callable[..., tuple[Array, Array]],
        flats: tuple[Array, ...],
    ) -> tuple[Array, Array]:
        """`fold` over the levels of one stage, bottom-up, with the level's information-set values as the carry."""
        width, columns = stage.buckets[0].width, stage.columns
        values = _levels(direct[:-1], stage)
        if from_below is not None:
            values = values.at[-1].add(from_below.reshape(width, columns))
        tables = tuple(_levels(flat, stage) for flat in flats)
        below, last = rule(values[-1], *(table[-1] for table in tables))
        children = self.inner_children[index]

        def add_below(level: Array, below: Array, parent: Array, children: Array) -> Array:
            if children.shape[0]:
                extended = jnp.concatenate([below, jnp.zeros(1, below.dtype)])
                return level + extended[children].sum(0).reshape(width, columns)
            return level.reshape(-1).at[parent].add(below, mode="promise_in_bounds").reshape(width, columns)

        def step(below: Array, inputs: tuple[Any, ...]) -> tuple[Array, Array]:
            level, parent, children, *level_tables = inputs
            return rule(add_below(level, below, parent, children), *level_tables)

        inner = (values[:-1], self.inner_parent[index], children, *(table[:-1] for table in tables))
        below, rest = jax.lax.scan(step, below, inner, reverse=True)
        stacked = jnp.concatenate([rest, last[None]])
        return below, jnp.moveaxis(stacked, 0, 1).reshape(-1)

    def sequence_indices(self) -> tuple[np.ndarray, np.ndarray]:
        """Flat indices of all actions, information set by information set (host side).

        Returns:
          `[sum of num_actions]` flat indices, and `[n + 1]` offsets of the information sets in it.
        """
        counts = np.asarray(self.num_actions)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        return np.repeat(np.asarray(self.first), counts) + within * np.repeat(np.asarray(self.stride), counts), offsets


def _table(flat: Array, bucket: Bucket) -> Array:
    return flat[bucket.offset : bucket.stop].reshape(bucket.width, bucket.columns)


def _levels(flat: Array, stage: Stage) -> Array:
    """The table of a scanned stage as `[num_levels, width, columns per level]`."""
    bucket = stage.buckets[0]
    return jnp.moveaxis(_table(flat, bucket).reshape(bucket.width, stage.num_levels, stage.columns), 1, 0)


def _columns(values: Array, stage: Stage) -> list[Array]:
    """Splits `[columns]` of an unrolled stage by bucket."""
    stops = np.cumsum([bucket.columns for bucket in stage.buckets])
    return [values[stop - b.columns : stop] for stop, b in zip(stops.tolist(), stage.buckets, strict=True)]


def build_treeplex(
    num_actions: np.ndarray,
    infoset_parent: np.ndarray,
    infoset_level: np.ndarray,
    first_sequence: np.ndarray,
    dtype: Any,
) -> tuple[Treeplex, np.ndarray]:
    """Lays out one player's decision tree.

    Args:
      num_actions: `[n]` actions per information set.
      infoset_parent, infoset_level, first_sequence: see `jaxcfr.tree.nodes.NodeFacts`.
      dtype: of the float arrays.

    Returns:
      The treeplex, and `[num_sequences]` int32: the flat index of every sequence in plain numbering, the empty
      sequence's (L) last.
    """
    count = len(num_actions)
    num_plain = int(first_sequence[-1])
    levels = int(infoset_level.max()) + 1 if count else 0
    by_level = np.argsort(infoset_level, kind="stable")
    level_start = np.searchsorted(infoset_level[by_level], np.arange(levels + 1))
    widest, columns, entries = np.zeros((3, levels), np.int64)
    np.maximum.at(widest, infoset_level, num_actions)
    np.add.at(columns, infoset_level, 1)
    np.add.at(entries, infoset_level, num_actions)

    first = np.zeros(count, np.int64)
    stride = np.zeros(count, np.int64)
    position = np.full(num_plain + 1, -1, np.int64)  # of a sequence among the entries of its level
    stages: list[Stage] = []
    entry_parent, entry_sum, inner_parent, inner_children = [], [], [], []
    offset = 0
    above = 0  # entries of the level before
    for start, stop in level_runs(widest, columns, entries):
        depth = stop - start
        members = [by_level[level_start[level] : level_start[level + 1]] for level in range(start, stop)]
        if depth == 1:
            order, width = _order(members[0], position[infoset_parent[members[0]]], num_actions)
            buckets = []
            begin = offset
            for size in np.unique(width):
                inside = order[width == size]
                buckets.append(Bucket(int(size), len(inside), offset, bool(np.any(num_actions[inside] < size))))
                first[inside] = offset + np.arange(len(inside))
                stride[inside] = len(inside)
                offset = buckets[-1].stop
            _place(position, order, first[order] - begin, stride[order], num_actions, first_sequence)
            parents = position[infoset_parent[order]]
            inner_parent.append(np.zeros((0, len(order)), np.int64))
            inner_children.append(np.zeros((0, 0, offset - begin), np.int64))
        else:
            wide, many = int(widest[start:stop].max()), int(columns[start:stop].max())
            buckets = [Bucket(wide, depth * many, offset, bool(entries[start:stop].sum() < wide * many * depth))]
            parents_inside = np.zeros((depth, many), np.int64)
            for level, inside in enumerate(members):
                parent_position = position[infoset_parent[inside]]
                order = inside[np.argsort(parent_position, kind="stable")]
                first[order] = offset + level * many + np.arange(len(order))
                stride[order] = depth * many
                _place(position, order, np.arange(len(order)), np.full(len(order), many), num_actions, first_sequence)
                # Columns that hold no information set hang from entry 0: their value is always zero.
                parents_inside[level, : len(order)] = position[infoset_parent[order]]
            parents = parents_inside[0]
            inner_parent.append(parents_inside[1:])
            inner_children.append(_padded_children(parents_inside[1:], columns[start + 1 : stop], wide * many))
            offset = buckets[-1].stop
        stages.append(Stage(depth, tuple(buckets)))
        if start == 0:
            parents = np.zeros(0, np.int64)
        else:
            entry_sum.append(build_segment_sum(parents, above))
        entry_parent.append(parents)
        above = sum(bucket.width * bucket.columns for bucket in buckets) // depth

    uniform = np.zeros(offset)
    flat = np.full(num_plain + 1, offset, np.int64)
    owner = np.repeat(np.arange(count), num_actions)
    within = np.arange(num_plain) - first_sequence[:-1][owner]
    flat[:-1] = first[owner] + within * stride[owner]
    uniform[flat[:-1]] = 1.0 / num_actions[owner]
    treeplex = Treeplex(
        uniform=jnp.asarray(uniform, dtype),
        first=_int32(first),
        stride=_int32(stride),
        num_actions=_int32(num_actions),
        parent=_int32(flat[infoset_parent]),
        entry_parent=tuple(map(_int32, entry_parent)),
        # The first stage has no level before it; a placeholder keeps the tuples aligned.
        entry_sum=(build_segment_sum(np.zeros(0, np.int64), 0), *entry_sum) if stages else (),
        inner_parent=tuple(map(_int32, inner_parent)),
        inner_children=tuple(map(_int32, inner_children)),
        stages=tuple(stages),
        num_infosets=count,
        num_sequences=num_plain + 1,
    )
    return treeplex, flat.astype(np.int32)


def _int32(values: np.ndarray) -> Array:
    return jnp.asarray(values, jnp.int32)


def _order(members: np.ndarray, parent_position: np.ndarray, num_actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One level's information sets by width, then by parent, so that gathers and sums run in order."""
    width = quantise(num_actions[members], BUCKET_OVERHEAD)
    order = np.lexsort((parent_position, width))
    return members[order], width[order]


def _place(
    position: np.ndarray,
    infosets: np.ndarray,
    first: np.ndarray,
    stride: np.ndarray,
    num_actions: np.ndarray,
    first_sequence: np.ndarray,
) -> None:
    """Notes where the sequences of `infosets` lie among the entries of their level."""
    counts = num_actions[infosets]
    owner = np.repeat(np.arange(len(infosets)), counts)
    within = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
    position[first_sequence[infosets][owner] + within] = first[owner] + within * stride[owner]


def _padded_children(parents: np.ndarray, columns: np.ndarray, entries: int) -> np.ndarray:
    """The children of every entry of every level, `[levels, K, entries]`, filled up with the number of columns."""
    levels, many = parents.shape
    most = max(
        (int(np.bincount(row[:count], minlength=1).max()) for row, count in zip(parents, columns, strict=True)),
        default=0,
    )
    if levels * most * entries > SCAN_GATHER_LIMIT * max(int(columns.sum()), 64):
        return np.zeros((levels, 0, entries), np.int64)
    children = np.full((levels, most, entries), many, np.int64)
    for level, count in enumerate(columns):
        parent = parents[level, :count]
        order = np.argsort(parent, kind="stable")
        sorted_parent = parent[order]
        slot = np.arange(count) - np.searchsorted(sorted_parent, sorted_parent, side="left")
        children[level, slot, sorted_parent] = order
    return children
