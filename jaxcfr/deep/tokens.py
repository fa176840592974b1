"""Features of information sets from their keys, for games that say nothing else."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

MAX_TOKENS = 2048
"""At most so many features: beyond it, the hindmost share columns, and numbers tell rows apart."""


def tokens(key: Any, place: tuple[Hashable, ...] = ()) -> Iterator[tuple[Hashable, ...]]:
    """A key as a set of facts: each part with the place where it stands."""
    if isinstance(key, tuple | list):
        yield (*place, "length", len(key))
        for number, part in enumerate(key):
            yield from tokens(part, (*place, number))
    elif isinstance(key, str) and len(key) > 1:
        yield (*place, "length", len(key))
        for number, letter in enumerate(key):
            yield (*place, number, letter)
    elif isinstance(key, frozenset):
        yield (*place, "length", len(key))
        for part in key:
            yield (*place, "has", part)
    else:
        yield (*place, type(key).__name__, key)


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
