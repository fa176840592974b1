"""A player's decision tree (its *treeplex*): information sets, sequences, and the two passes over them.

Vectors over sequences are *flat*: `[L]`, the concatenation of a few tables,
one for each width, padding included (see `jaxcfr.tree.layout`); realization
weights and direct counterfactual values have one more entry at the end,
`[L + 1]`, for the empty sequence. Both passes also take batches, `[L, ...]`:
the axes of the batch come last, where they vectorise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.tree.fusion import apart, with_trailing
from jaxcfr.tree.integers import distinct, order_by, rank_within
from jaxcfr.tree.layout import BUCKET_OVERHEAD, Bucket, Stage, Table, level_runs, quantise
from jaxcfr.tree.segments import SegmentSum, as_numpy, build_segment_sum

SCAN_GATHER_LIMIT = 8
"""Inside scans, child sums by gathers may read at most this many times more entries than there are."""

STORED_WEIGHTS, STORED_VALUES = 2_000, 20_000
"""The weights of a level with so many entries are stored before the next one gathers them (see `apart`), and the values
before they are joined: for smaller levels that costs more time, compiling above all, than it saves."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Treeplex:
    """The decision tree of one player, with n information sets, L flat entries, S stages.

    Attributes:
      uniform: `[L]` float, the uniform strategy; 0 exactly at the padding, which makes it the mask of legal entries.
      uniform_weights: `[L + 1]` float, the realization weights of the uniform strategy.
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
      tables, stages: the layout (static).
      num_infosets: n (static).
      num_sequences: number of sequences that are not padding, the empty one included (static).
    """

    uniform: Array
    uniform_weights: Array
    first: Array
    stride: Array
    num_actions: Array
    parent: Array
    entry_parent: tuple[Array, ...]
    entry_sum: tuple[SegmentSum, ...]
    inner_parent: tuple[Array, ...]
    inner_children: tuple[Array, ...]
    tables: tuple[Table, ...] = dataclasses.field(metadata={"static": True})
    stages: tuple[Stage, ...] = dataclasses.field(metadata={"static": True})
    num_infosets: int = dataclasses.field(metadata={"static": True})
    num_sequences: int = dataclasses.field(metadata={"static": True})

    @property
    def size(self) -> int:
        """L, the length of a flat vector."""
        return self.tables[-1].stop if self.tables else 0

    @property
    def dtype(self) -> Any:
        return self.uniform.dtype

    def over_tables(self, rule: Callable[..., Array], *flats: Any) -> Array:
        """Applies `rule` to every table `[width, columns, ...]` of flat vectors (or pytrees of them).

        Args:
          rule: from one table for each of `flats` to a table.
          *flats: pytrees whose leaves are `[L]`, or `[L, ...]` with the axes of a batch.

        Returns:
          `[L, ...]`.
        """
        axes = _batch_axes(flats)

        def tables(*flats: Any) -> list[Array]:
            return [
                rule(*(jax.tree.map(lambda leaf, t=table: _view(leaf, t, axes), flat) for flat in flats))
                for table in self.tables
            ]

        results = apart(self.parent, tables, *flats)
        return jnp.concatenate(list(map(_entries, results))) if results else jnp.zeros(0, self.dtype)

    def _views(self, flat: Array, axes: int) -> list[Array]:
        return [_view(flat, table, axes) for table in self.tables]

    def _flat(self, parts: list[list[Array]]) -> Array:
        """From the pieces of every table, in the order of their columns, to a flat vector."""
        return jnp.concatenate([_entries(jnp.concatenate(pieces, axis=1)) for pieces in parts])

    def realization_weights(self, strategy: Array) -> Array:
        """The player's own reach of every sequence: from a strategy `[L, ...]` to `[L + 1, ...]`, the last entry 1.

        `x[s] = product of the strategy's probabilities of the player's own actions on s` (von Stengel 1996).
        """
        batch = strategy.shape[1:]
        one = jnp.ones((1, *batch), strategy.dtype)
        if not self.stages:
            return one
        tables = self._views(strategy, len(batch))
        parts: list[list[Array]] = [[] for _ in tables]
        level = one
        for index, stage in enumerate(self.stages):
            reach = level[self.entry_parent[index]] if index else jnp.ones((stage.columns, *batch), strategy.dtype)
            if stage.num_levels == 1:

                def below(reach: Array, stage: Stage = stage) -> tuple[list[Array], Array]:
                    weights = [
                        _piece(tables, bucket) * part
                        for bucket, part in zip(stage.buckets, _columns(reach, stage), strict=True)
                    ]
                    return weights, jnp.concatenate(list(map(_entries, weights)))

                stored = len(stage.buckets) > 1 or stage.entries >= STORED_WEIGHTS
                weights, level = apart(self.parent, below, reach) if stored else below(reach)
                for bucket, weight in zip(stage.buckets, weights, strict=True):
                    parts[bucket.table].append(weight)
            else:
                # The last level hands nothing on inside this stage.
                after = jnp.concatenate([self.inner_parent[index], jnp.zeros((1, stage.columns), jnp.int32)])

                def step(reach: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
                    probability, parent = inputs
                    weight = probability * reach
                    return _entries(weight)[parent], weight

                _, stacked = jax.lax.scan(step, reach, (_levels(tables, stage), after))
                level = _entries(stacked[-1])
                parts[stage.buckets[0].table].append(_unlevels(stacked))
        return jnp.concatenate([self._flat(parts), one])

    def fold(self, direct: Array, rule: Callable[..., tuple[Array, Array]], *flats: Array) -> tuple[Array, Array]:
        """One bottom-up pass.

        The value of an entry is what it is worth directly plus the values of the information sets right below it;
        `rule` turns the values of an information set's actions into the value of the set.

        Args:
          direct: `[L + 1, ...]`, direct counterfactual values (leaves), the empty sequence last.
          rule: called as `rule(values, *tables)` with the values `[width, columns, ...]` of some information sets'
            actions and the same entries of `flats`; returns the values of the information sets, `[columns, ...]`,
            and a table `[width, columns, ...]` to collect.
          *flats: `[L]` or `[L, ...]` each.

        Returns:
          The collected tables, `[L, ...]`, and the value of the whole tree, `[...]`.
        """
        batch = direct.shape[1:]
        if not self.stages:
            return jnp.zeros((0, *batch), direct.dtype), direct[-1]
        values = self._views(direct, len(batch))
        tables = [self._views(flat, len(batch)) for flat in flats]
        parts: list[list[Array]] = [[] for _ in self.tables]
        below: Array | None = None
        for index in reversed(range(len(self.stages))):
            stage = self.stages[index]
            handed_up = None if below is None else self.entry_sum[index + 1](below)
            if stage.num_levels == 1:

                def level(handed_up: Array | None, stage: Stage = stage) -> list[tuple[Array, Array]]:
                    results, start = [], 0
                    for bucket in stage.buckets:
                        entries = _piece(values, bucket)
                        if handed_up is not None:
                            entries = entries + handed_up[start : start + bucket.size].reshape(entries.shape)
                        results.append(rule(entries, *(_piece(views, bucket) for views in tables)))
                        start += bucket.size
                    return results

                stored = stage.entries >= STORED_VALUES
                results = apart(self.parent, level, handed_up) if stored else level(handed_up)
                worth = []
                for bucket, (value, table) in zip(stage.buckets, results, strict=True):
                    worth.append(value)
                    parts[bucket.table].insert(0, table)
                below = jnp.concatenate(worth)
            else:
                below, stacked = self._fold_scan(
                    index, _levels(values, stage), handed_up, rule, [_levels(views, stage) for views in tables]
                )
                parts[stage.buckets[0].table].insert(0, _unlevels(stacked))
        assert below is not None
        return self._flat(parts), direct[-1] + below.sum(0)

    def _fold_scan(
        self,
        index: int,
        values: Array,
        handed_up: Array | None,
        rule: Callable[..., tuple[Array, Array]],
        tables: list[Array],
    ) -> tuple[Array, Array]:
        """`fold` over the levels of one stage, bottom-up, with the values of a level's information sets as carry."""
        shape = values.shape[1:]
        if handed_up is not None:
            values = values.at[-1].add(handed_up.reshape(shape))
        below, last = rule(values[-1], *(table[-1] for table in tables))

        def add_below(level: Array, below: Array, parent: Array, children: Array) -> Array:
            if children.shape[0]:
                padded = below.at[children].get(mode="fill", fill_value=0)
                return level + padded.sum(0).reshape(shape)
            return _entries(level).at[parent].add(below, mode="promise_in_bounds").reshape(shape)

        def step(below: Array, inputs: tuple[Any, ...]) -> tuple[Array, Array]:
            level, parent, children, *level_tables = inputs
            return rule(add_below(level, below, parent, children), *level_tables)

        inner = (
            values[:-1],
            self.inner_parent[index],
            self.inner_children[index],
            *(table[:-1] for table in tables),
        )
        below, rest = jax.lax.scan(step, below, inner, reverse=True)
        return below, jnp.concatenate([rest, last[None]])

    def sequence_indices(self) -> tuple[np.ndarray, np.ndarray]:
        """Flat indices of all actions, information set by information set (host side).

        Returns:
          `[sum of num_actions]` flat indices, and `[n + 1]` offsets of the information sets in it.
        """
        counts = np.asarray(self.num_actions)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        return np.repeat(np.asarray(self.first), counts) + within * np.repeat(np.asarray(self.stride), counts), offsets


def _batch_axes(flats: Any) -> int:
    return max((leaf.ndim - 1 for leaf in jax.tree.leaves(flats)), default=0)


def _view(flat: Array, table: Table, axes: int) -> Array:
    """A table of a flat vector `[L, ...]`, with `axes` trailing axes."""
    entries = flat[table.offset : table.stop]
    return with_trailing(entries.reshape(table.width, table.columns, *flat.shape[1:]), 2, axes)


def _piece(tables: list[Array], bucket: Bucket) -> Array:
    return tables[bucket.table][:, bucket.first : bucket.stop]


def _entries(piece: Array) -> Array:
    """The entries of a table `[width, columns, ...]` as one vector."""
    return piece.reshape(piece.shape[0] * piece.shape[1], *piece.shape[2:])


def _levels(tables: list[Array], stage: Stage) -> Array:
    """The entries of a scanned stage as `[num_levels, width, columns per level, ...]`."""
    bucket = stage.buckets[0]
    piece = _piece(tables, bucket)
    return jnp.moveaxis(piece.reshape(bucket.width, stage.num_levels, stage.columns, *piece.shape[2:]), 1, 0)


def _unlevels(stacked: Array) -> Array:
    """The inverse of `_levels`, a piece `[width, num_levels * columns per level, ...]`."""
    levels, width, columns, *batch = stacked.shape
    return jnp.moveaxis(stacked, 0, 1).reshape(width, levels * columns, *batch)


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
      The treeplex, made of numpy arrays, and `[num_sequences]` int32: the flat index of every sequence in plain
      numbering, the empty sequence's (L) last.
    """
    count = len(num_actions)
    num_plain = int(first_sequence[-1])
    levels = int(infoset_level.max()) + 1 if count else 0
    by_level = order_by(infoset_level, levels)
    level_start = np.searchsorted(infoset_level[by_level], np.arange(levels + 1))
    columns = np.diff(level_start)
    # No level between the first and the last is empty.
    widest, entries = (
        how.reduceat(num_actions[by_level].astype(np.int64), level_start[:-1]) if count else np.zeros(0, np.int64)
        for how in (np.maximum, np.add)
    )
    runs = level_runs(widest, columns, entries)

    # Widths: one for each scanned run, and a few for all unrolled levels together.
    unrolled = np.isin(infoset_level, [start for start, stop in runs if stop - start == 1])
    width = np.zeros(count, np.int64)
    width[unrolled] = quantise(num_actions[unrolled], BUCKET_OVERHEAD * max(1, len(runs)))
    for start, stop in runs:
        if stop - start > 1:
            width[(infoset_level >= start) & (infoset_level < stop)] = widest[start:stop].max()
    widths = distinct(width, int(width.max(initial=0)) + 1).tolist()
    filled = [0] * len(widths)  # columns of each table

    first_column = np.zeros(count, np.int64)
    position = np.full(num_plain + 1, -1, np.int64)  # of a sequence among the entries of its level
    stages: list[Stage] = []
    entry_parent, entry_sum, inner_parent, inner_children = [], [], [], []
    for start, stop in runs:
        depth = stop - start
        members = [by_level[level_start[level] : level_start[level + 1]] for level in range(start, stop)]
        buckets = []
        if depth == 1:
            # By width, then by parent, so that gathers and sums run in order.
            # The first stage hangs from the empty sequence, whose place is -1.
            by_parent = members[0][
                order_by(position[infoset_parent[members[0]]] + 1, stages[-1].entries + 1 if stages else 1)
            ]
            order = by_parent[order_by(width[by_parent], widths[-1] + 1)]
            begin = 0
            for size in distinct(width[order], widths[-1] + 1).tolist():
                inside = order[width[order] == size]
                table = widths.index(size)
                buckets.append(Bucket(table, size, filled[table], filled[table] + len(inside)))
                first_column[inside] = filled[table] + np.arange(len(inside))
                filled[table] += len(inside)
                _place(position, inside, begin, len(inside), num_actions, first_sequence)
                begin += size * len(inside)
            parents = position[infoset_parent[order]]
            inner_parent.append(np.zeros((0, len(order)), np.int64))
            inner_children.append(np.zeros((0, 0, begin), np.int64))
        else:
            wide, many = int(widest[start:stop].max()), int(columns[start:stop].max())
            table = widths.index(wide)
            buckets.append(Bucket(table, wide, filled[table], filled[table] + depth * many))
            parents_inside = np.zeros((depth, many), np.int64)
            for level, inside in enumerate(members):
                above = wide * many if level else stages[-1].entries if stages else 0
                order = inside[order_by(position[infoset_parent[inside]] + 1, above + 1)]
                first_column[order] = filled[table] + level * many + np.arange(len(order))
                # Columns that hold no information set hang from entry 0: their value is always zero.
                parents_inside[level, : len(order)] = position[infoset_parent[order]]
                _place(position, order, 0, many, num_actions, first_sequence)
            filled[table] += depth * many
            parents = parents_inside[0]
            inner_parent.append(parents_inside[1:])
            inner_children.append(_padded_children(parents_inside[1:], columns[start + 1 : stop], wide * many))
        above = stages[-1].entries if stages else 0
        parents = parents if stages else np.zeros(0, np.int64)
        stages.append(Stage(depth, tuple(buckets)))
        entry_parent.append(parents)
        # The first stage has no level before it: its sum is empty, and never used.
        entry_sum.append(build_segment_sum(parents, above))

    tables, offset = [], 0
    for size, number in zip(widths, filled, strict=True):
        tables.append(Table(size, number, offset))
        offset = tables[-1].stop
    table_of = np.searchsorted(widths, width) if count else np.zeros(0, np.int64)
    first = np.array([table.offset for table in tables], np.int64)[table_of] + first_column
    stride = np.array([table.columns for table in tables], np.int64)[table_of]

    uniform = np.zeros(offset)
    flat = np.full(num_plain + 1, offset, np.int64)
    owner = np.repeat(np.arange(count), num_actions)
    within = np.arange(num_plain) - first_sequence[:-1][owner]
    flat[:-1] = first[owner] + within * stride[owner]
    uniform[flat[:-1]] = 1.0 / num_actions[owner]
    weights = np.zeros(offset + 1)
    weights[offset] = 1.0
    for level in range(levels):
        inside = by_level[level_start[level] : level_start[level + 1]]
        counts = num_actions[inside]
        reach = weights[flat[infoset_parent[inside]]] / counts
        sequence = np.repeat(first_sequence[inside], counts) + rank_within(
            np.repeat(np.arange(len(inside)), counts), len(inside)
        )
        weights[flat[sequence]] = np.repeat(reach, counts)
    treeplex = Treeplex(
        uniform=as_numpy(uniform, dtype),
        uniform_weights=as_numpy(weights, dtype),
        first=_int32(first),
        stride=_int32(stride),
        num_actions=_int32(num_actions),
        parent=_int32(flat[infoset_parent]),
        entry_parent=tuple(map(_int32, entry_parent)),
        entry_sum=tuple(entry_sum),
        inner_parent=tuple(map(_int32, inner_parent)),
        inner_children=tuple(map(_int32, inner_children)),
        tables=tuple(tables),
        stages=tuple(stages),
        num_infosets=count,
        num_sequences=num_plain + 1,
    )
    return treeplex, flat.astype(np.int32)


def _int32(values: np.ndarray) -> Any:
    return as_numpy(values, np.int32)


def _place(
    position: np.ndarray,
    infosets: np.ndarray,
    begin: int,
    columns: int,
    num_actions: np.ndarray,
    first_sequence: np.ndarray,
) -> None:
    """Notes where the sequences of a bucket's information sets lie among the entries of their level."""
    counts = num_actions[infosets]
    column = np.repeat(np.arange(len(infosets)), counts)
    action = np.arange(len(column)) - (np.cumsum(counts) - counts)[column]
    position[first_sequence[infosets][column] + action] = begin + action * columns + column


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
