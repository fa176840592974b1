"""How information sets are arranged in memory (host side, numpy).

Padding every information set to the widest action count can make tables many
times too large, and a table for every action count costs a kernel each, on
every level. `quantise` picks a few widths; `level_runs` decides which levels
of a player's decision tree are unrolled and which are folded into a scan.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from jaxcfr.tree.integers import distinct_inverse

BUCKET_OVERHEAD = 256
"""Entries whose cost about equals that of one more table (a few hundred nanoseconds on a CPU)."""

UNROLLED_LEVELS = 24
"""Trees up to this many levels per player are unrolled whole; deeper ones fold runs of levels into scans."""

MAX_STAGES = 64
"""Runs of levels are merged, at the price of padding, until there are at most about this many."""


MAX_WIDTHS = 12
"""At most this many widths, so that ragged games compile in time too."""


def quantise(sizes: np.ndarray, overhead: int) -> np.ndarray:
    """Rounds sizes up to a few widths, minimising padding plus `overhead` entries per width.

    Exact dynamic programme over the distinct sizes; the price is raised until there are at most `MAX_WIDTHS`. Zeros
    stay zero.

    Args:
      sizes: `[n]` non-negative integers.
      overhead: the price of one more width, in entries.

    Returns:
      `[n]` the width of each.
    """
    while True:
        width = _cheapest_widths(sizes, overhead)
        if np.count_nonzero(np.bincount(width)[1:]) <= MAX_WIDTHS:
            return width
        overhead = 2 * overhead + 1


def _cheapest_widths(sizes: np.ndarray, overhead: int) -> np.ndarray:
    distinct, inverse = distinct_inverse(sizes, int(sizes.max(initial=0)) + 1)
    counts = np.bincount(inverse, minlength=len(distinct))
    start = int(len(distinct) > 0 and distinct[0] == 0)
    sizes_, counts_ = distinct[start:].astype(np.int64), counts[start:]
    total = np.concatenate([[0], np.cumsum(counts_)])
    best = np.zeros(len(sizes_) + 1, np.int64)
    choice = np.zeros(len(sizes_) + 1, np.int64)
    for stop in range(1, len(sizes_) + 1):
        # Sizes begin..stop-1 all take the width sizes_[stop - 1].
        cost = best[:stop] + sizes_[stop - 1] * (total[stop] - total[:stop]) + overhead
        choice[stop] = int(np.argmin(cost))
        best[stop] = cost[choice[stop]]
    width = np.zeros(len(distinct), np.int64)
    stop = len(sizes_)
    while stop > 0:
        begin = int(choice[stop])
        width[start + begin : start + stop] = sizes_[stop - 1]
        stop = begin
    return width[inverse]


@dataclasses.dataclass(frozen=True)
class Table:
    """All information sets of one width, actions-major: `[width, columns]` at `offset` in the flat vector.

    Columns are sorted by level. Entries that belong to no legal action are padding.
    """

    width: int
    columns: int
    offset: int

    @property
    def stop(self) -> int:
        return self.offset + self.width * self.columns


@dataclasses.dataclass(frozen=True)
class Bucket:
    """The columns `first` to `stop` of a table that belong to one stage.

    In a stage of D levels of n information sets each, column `first + d * n + j` is set j of level d.
    """

    table: int
    width: int
    first: int
    stop: int

    @property
    def columns(self) -> int:
        return self.stop - self.first

    @property
    def size(self) -> int:
        return self.width * self.columns


@dataclasses.dataclass(frozen=True)
class Stage:
    """D consecutive levels of a decision tree: several buckets if D is 1, else one bucket that is scanned over.

    The entries of a level are its buckets' tables, one after the other.
    """

    num_levels: int
    buckets: tuple[Bucket, ...]

    @property
    def columns(self) -> int:
        """Information sets per level, padding included."""
        return sum(bucket.columns for bucket in self.buckets) // self.num_levels

    @property
    def entries(self) -> int:
        """Entries per level."""
        return sum(bucket.size for bucket in self.buckets) // self.num_levels


def level_runs(widest: np.ndarray, columns: np.ndarray, entries: np.ndarray) -> list[tuple[int, int]]:
    """Splits the levels of a decision tree into runs `(first, stop)`; runs longer than one level are scanned.

    Args:
      widest: `[levels]` the largest number of actions on each level.
      columns: `[levels]` the number of information sets on each level.
      entries: `[levels]` the number of sequences on each level.
    """
    levels = len(widest)
    if levels <= UNROLLED_LEVELS:
        return [(level, level + 1) for level in range(levels)]
    waste = 2.0
    while True:
        runs: list[tuple[int, int]] = []
        first = 0
        while first < levels:
            stop, width, count, total = first + 1, widest[first], columns[first], entries[first]
            while stop < levels:
                new_width, new_count = max(width, widest[stop]), max(count, columns[stop])
                new_total = total + entries[stop]
                if new_width * new_count * (stop + 1 - first) > waste * new_total + 64:
                    break
                stop, width, count, total = stop + 1, new_width, new_count, new_total
            runs.append((first, stop))
            first = stop
        if len(runs) <= MAX_STAGES or waste > 1e6:
            return runs
        waste *= 2.0
