"""Checks of settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxcfr.regret.schedules import hyperparameter


def number_option(name: str, value: Any) -> None:
    """Raises `OptionError` unless a leaf of the settings is a number of at least 0, or a schedule.

    What JAX puts in the place of leaves, while it looks at the structure of a pytree, passes.
    """
    if isinstance(value, str | bytes | list | tuple | dict | set | bool | int | float | np.ndarray | np.generic):
        hyperparameter(name, value, 0.0)
