"""What callers may pass where a number or a function is wanted: one rule for all of the library.

Python's, numpy's and JAX's integers are the same to everybody, arrays of one element without a dimension too. A bool
is no number, and a float no integer, even if it is whole.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxcfr.errors import JaxCFRError, OptionError

INT32 = 2**31 - 1
"""The largest integer that fits a counter of iterations."""


def integer(
    name: str, value: Any, low: int = 1, high: int | None = None, *, error: type[JaxCFRError] = OptionError
) -> int:
    """The integer that `value` is, from `low` to `high`.

    Raises:
      OptionError (or `error`): it is none, or is out of bounds; names the argument and the bounds.
    """
    if isinstance(value, jax.core.Tracer):
        raise error(
            f"{name} has to be known before a program is compiled: give it as a plain integer, not as an argument of "
            "a function under jit, vmap or grad"
        )
    try:
        found = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        found = None
    if found is None or found < low or (high is not None and found > high):
        if high is not None:
            wanted = f"an integer from {low:,} to {'2**31 - 1' if high == INT32 else format(high, ',')}"
        else:
            wanted = "a positive integer" if low == 1 else f"an integer of at least {low:,}"
        raise error(f"{name} has to be {wanted}, not {value!r}")
    return found


def real(name: str, value: Any, low: float, high: float = math.inf) -> float:
    """The finite number that `value` is, from `low` to `high`; an infinite `high` is no bound.

    Raises:
      OptionError: it is none, or is out of bounds; names the argument and the bounds.
    """
    scalar = isinstance(value, int | float | np.number) or (np.ndim(value) == 0 and hasattr(value, "dtype"))
    traced = isinstance(value, jax.core.Tracer)
    if not scalar or traced or isinstance(value, bool | np.bool_) or not low <= value <= high or value == math.inf:
        wanted = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise OptionError(f"{name} has to be a number {wanted}, not {value!r}")
    return float(value)


def given_instead(value: Any, factories: Sequence[str]) -> str:
    """What was given where a thing made by one of these functions of jaxcfr is needed, with what to write instead."""
    name = value if isinstance(value, str) else getattr(value, "__name__", "") if callable(value) else ""
    shown = repr(value) if isinstance(value, str) or not name else name
    near = difflib.get_close_matches(name, factories, 1, 0.5) if name else []
    if isinstance(value, str):
        return f"the text {shown}" + (f": jaxcfr.{near[0]}() makes one" if near else "")
    if not name:
        return shown
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    return f"{shown} itself: call it, {near[0] if near and snake != name else name}()"


def function(name: str, value: Any, takes: str) -> None:
    """Raises `OptionError` unless `value` can be called, or is None."""
    if value is not None and not callable(value):
        raise OptionError(f"{name} has to be a function of {takes}, or None, not {value!r}")
