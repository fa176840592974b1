"""Checks of settings."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jaxcfr.errors import OptionError
from jaxcfr.regret.schedules import hyperparameter


def integer_option(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """The integer; raises `OptionError` for anything else, and out of range."""
    try:
        number = operator.index(value) if not isinstance(value, bool) else least - 1
    except TypeError:
        number = least - 1
    if number < least or (most is not None and number > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        raise OptionError(f"{name} has to be an integer {limits}, not {value!r}")
    return number


def number_option(name: str, value: Any) -> None:
    """Raises `OptionError` unless a leaf of the settings is a number of at least 0, or a schedule.

    What JAX puts in the place of leaves, while it looks at the structure of a pytree, passes.
    """
    if isinstance(value, str | bytes | list | tuple | dict | set | bool | int | float | np.ndarray | np.generic):
        hyperparameter(name, value, 0.0)
