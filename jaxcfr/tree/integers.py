"""Sorting integers that are known to be small, without comparing them (host side, numpy).

Sequences, rows and sizes are numbers below a known bound, so marking and counting takes a few nanoseconds an element
where `np.unique` and `np.argsort` take a hundred, which would dominate the building of large trees.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

SPARSE = 16
"""Where the bound is more than this many times the number of elements, comparing is cheaper than counting."""


def _dense(values: np.ndarray, bound: int) -> bool:
    return bound <= SPARSE * len(values) + 4096


def distinct(values: np.ndarray, bound: int) -> np.ndarray:
    """The distinct values in order, as `np.unique` gives them.

    Args:
      values: `[n]` integers from 0 to bound - 1.
      bound: their bound.
    """
    if not _dense(values, bound):
        return np.unique(values)
    met = np.zeros(bound, bool)
    met[values] = True
    return np.flatnonzero(met)


def distinct_inverse(values: np.ndarray, bound: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values in order, and the place of every value among them (`np.unique` with `return_inverse`)."""
    if not _dense(values, bound):
        unique, inverse = np.unique(values, return_inverse=True)
        return unique, inverse.reshape(-1)
    met = np.zeros(bound, bool)
    met[values] = True
    rank = np.cumsum(met, dtype=np.int32) - 1
    return np.flatnonzero(met), rank[values]


def order_by(values: np.ndarray, bound: int) -> np.ndarray:
    """The stable order of the values: `np.argsort(values, kind="stable")`.

    Args:
      values: `[n]` integers from 0 to bound - 1.
      bound: their bound.
    """
    if len(values) < 2 or bool(np.all(values[1:] >= values[:-1])):
        return np.arange(len(values))
    if not _dense(values, bound) or max(bound, len(values)) >= 2**31 - 1:
        return np.argsort(values, kind="stable")
    # From one compressed row to compressed columns: a counting sort in C.
    index = np.arange(len(values), dtype=np.int32)
    row = scipy.sparse.csr_matrix((index, values.astype(np.int32), [0, len(values)]), shape=(1, bound))
    order: np.ndarray = row.tocsc().data
    return order


def rank_within(values: np.ndarray, bound: int) -> np.ndarray:
    """`[n]` int64, how many elements before each one have the same value."""
    order = order_by(values, bound)
    count = np.bincount(values, minlength=bound)
    first = np.cumsum(count) - count
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values)) - np.repeat(first, count)
    return rank
