"""Hashable values in JSON: information-set keys and actions in files."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np

STORABLE = "None, bool, int, float, str, bytes, Fraction, and tuples and frozensets of them"


class UnstorableError(Exception):
    """A value that has no encoding; the message says which."""


def encode(value: Any) -> Any:
    """A hashable value as JSON; `decode` is the inverse.

    Text, booleans, None, finite floats and integers stand for themselves, a list is a tuple, and a dictionary with
    one entry says the type of what JSON has no word for.
    """
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        # Beyond 64 bits in hexadecimal, which has no limit on digits.
        return value if -(2**63) <= value < 2**63 else {"int": hex(value)}
    if kind is float:
        if math.isnan(value):
            raise UnstorableError("it has a NaN, which is not equal to itself")
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is tuple:
        return [encode(item) for item in value]
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind is Fraction:
        return {"fraction": [encode(value.numerator), encode(value.denominator)]}
    if kind is frozenset:
        return {"frozenset": sorted((encode(item) for item in value), key=_compact)}
    plain = _plain(value)
    if plain is value:
        raise UnstorableError(f"{_shorten(repr(value))} is a {kind.__qualname__}")
    return encode(plain)


def _plain(value: Any) -> Any:
    """A value of a subclass (a named tuple, a numpy scalar) as its base, where a dictionary takes one for the other."""
    plain = value
    if isinstance(value, np.generic):
        plain = value.item()
    else:
        bases: tuple[Any, ...] = (int, float, str, bytes, tuple, frozenset)
        for base in bases:
            if isinstance(value, base):
                plain = base(value)
    if isinstance(plain, (bool, int, float, str, bytes, tuple, frozenset)) and plain is not value:
        same: bool = bool(plain == value) and hash(plain) == hash(value)
        return plain if same else value
    return value


def decode(data: Any) -> Hashable:
    """The value that `encode` wrote; `ValueError`, `TypeError` or `ArithmeticError` for anything else."""
    if isinstance(data, list):
        return tuple(decode(item) for item in data)
    if isinstance(data, dict):
        [(kind, content)] = data.items()
        if kind == "int":
            return int(content, 16)
        if kind == "float" and content in ("inf", "-inf"):
            return float(content)
        if kind == "bytes":
            return bytes.fromhex(content)
        if kind == "fraction":
            numerator, denominator = map(decode, content)
            if isinstance(numerator, int) and isinstance(denominator, int):
                return Fraction(numerator, denominator)
        if kind == "frozenset" and isinstance(content, list):
            return frozenset(decode(item) for item in content)
        raise ValueError(f"unknown value {_shorten(repr(data))}")
    if data is None or isinstance(data, (bool, int, str)) or (isinstance(data, float) and math.isfinite(data)):
        return data
    raise ValueError(f"unknown value {_shorten(repr(data))}")


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
