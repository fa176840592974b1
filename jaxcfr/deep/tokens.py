"""Features of information sets from their keys, for games that say nothing else."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

MAX_TOKENS = 2048
"""At most so many features: beyond it, the hindmost share columns, and numbers tell rows apart."""


def tokens(key: Any) -> Iterator[tuple[Hashable, ...]]:
    """A key as a set of facts: each part with the place where it stands."""
    left: list[tuple[Any, tuple[Hashable, ...]]] = [(key, ())]  # not by recursion: keys may be nested deeply
    while left:
        part, place = left.pop()
        if isinstance(part, tuple | list):
            yield (*place, "length", len(part))
            left += [(inner, (*place, number)) for number, inner in reversed(list(enumerate(part)))]
        elif isinstance(part, str) and len(part) > 1:
            yield (*place, "length", len(part))
            for number, letter in enumerate(part):
                yield (*place, number, letter)
        elif isinstance(part, frozenset):
            yield (*place, "length", len(part))
            for inner in part:
                yield (*place, "has", inner)
        else:
            yield (*place, type(part).__name__, part)


def token_features(keys: Sequence[Sequence[Hashable]]) -> list[np.ndarray]:
    """Zeros and ones, `[n_p, F]` float32 per player: which facts each key holds. Different keys differ.

    Args:
      keys: per player.
    """
    numbers: dict[Hashable, int] = {}
    found = [[{numbers.setdefault(token, len(numbers)) for token in tokens(key)} for key in part] for part in keys]
    if len(numbers) > MAX_TOKENS:
        return [_binary(len(part), max(map(len, keys))) for part in keys]
    tables = []
    for part in found:
        table = np.zeros((len(part), max(len(numbers), 1)), np.float32)
        for row, columns in enumerate(part):
            table[row, list(columns)] = 1
        tables.append(table)
    return tables


def _binary(count: int, most: int) -> np.ndarray:
    """The numbers of the rows in binary."""
    bits = max(int(most - 1).bit_length(), 1)
    return ((np.arange(count)[:, None] >> np.arange(bits)) & 1).astype(np.float32)
