"""Sums over groups of entries: `out[row] = sum of values[e] over the entries e of that row`.

On a CPU a sorted scatter-add is fast. On a GPU or TPU float scatter-adds are
slow and their order is not fixed, so there the same sums are gathers over
rows padded to a few lengths, added along a leading axis. The choice is made
by platform when the program is compiled, never by timing.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.tree.integers import distinct, order_by
from jaxcfr.tree.layout import quantise


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SegmentSum:
    """Groups E entries into F rows.

    Attributes:
      row: `[E]` int32, the row of each entry, non-decreasing if `in_order`.
      padded: tuple of `[K, m]` int32: for rows of about the same length K, the entries of m rows, filled up with E
        (an entry that is always zero).
      place: `[F]` int32, where each row's sum lies in the concatenated sums of `padded`; rows without entries
        point past the end, to a zero.
      num_rows: F.
      in_order: whether `row` is sorted.
    """

    row: Array
    padded: tuple[Array, ...]
    place: Array
    num_rows: int = dataclasses.field(metadata={"static": True})
    in_order: bool = dataclasses.field(metadata={"static": True})

    def __call__(self, values: Array) -> Array:
        """Sums `values`, `[E, ...]`, to `[F, ...]`."""
        return jax.lax.platform_dependent(values, cpu=self._scatter, default=self._gather)

    def _scatter(self, values: Array) -> Array:
        return (
            jnp.zeros((self.num_rows, *values.shape[1:]), values.dtype)
            .at[self.row]
            .add(values, indices_are_sorted=self.in_order, mode="promise_in_bounds")
        )

    def _gather(self, values: Array) -> Array:
        zero = jnp.zeros((1, *values.shape[1:]), values.dtype)
        extended = jnp.concatenate([values, zero])
        sums = [extended[rows].sum(0) for rows in self.padded]
        return jnp.concatenate([*sums, zero])[self.place]


def as_numpy(values: np.ndarray, dtype: Any, copy: bool = True) -> Any:
    """A numpy array in the place of a JAX array: trees are built of numpy arrays, and put on the device whole.

    Building them from JAX operations would compile a program for every new shape.

    Args:
      values: the array.
      dtype: of the result.
      copy: even if the dtype is the same; needed for arrays that a caller still has and may change.
    """
    return values.astype(dtype, copy=copy)


def build_segment_sum(row: np.ndarray, num_rows: int) -> SegmentSum:
    """Builds the sums, of numpy arrays, for entries whose rows are `row`, `[E]`."""
    order = order_by(row, num_rows)
    length = np.bincount(row, minlength=num_rows)
    first = np.concatenate([[0], np.cumsum(length)[:-1]])
    width = quantise(length, overhead=256)
    place = np.full(num_rows, -1, np.int64)
    padded, filled = [], 0
    for size in distinct(width[width > 0], int(width.max(initial=0)) + 1):
        rows = np.flatnonzero(width == size)
        slot = np.arange(size)[:, None]
        inside = slot < length[rows]
        entries = np.where(inside, order[np.minimum(first[rows] + slot, len(row) - 1)], len(row))
        padded.append(as_numpy(entries, np.int32))
        place[rows] = filled + np.arange(len(rows))
        filled += len(rows)
    place[place < 0] = filled
    return SegmentSum(
        row=as_numpy(row, np.int32),
        padded=tuple(padded),
        place=as_numpy(place, np.int32),
        num_rows=num_rows,
        in_order=bool(np.all(row[1:] >= row[:-1])),
    )
