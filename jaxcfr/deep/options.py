"""Checks of settings."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxcfr.concrete import is_concrete
from jaxcfr.errors import OptionError
from jaxcfr.regret.schedules import hyperparameter

KNOWN = (str, bytes, list, tuple, dict, set, bool, int, float, complex, np.ndarray, np.generic, jax.Array)


def number_option(settings: Any, name: str, high: float | None = None) -> None:
    """Checks a leaf of the settings, and brings a schedule into the form of a pytree.

    What JAX puts in the place of leaves, while it looks at the structure of a pytree, passes.

    Args:
      settings: a frozen dataclass.
      name: of the field.
      high: the largest value, of a number that has to be above 0; or None for any of at least 0.

    Raises:
      OptionError: it is no number, or out of range.
    """
    value = getattr(settings, name)
    if not isinstance(value, KNOWN) and not callable(value):
        return
    checked = hyperparameter(name, value, 0.0)
    if callable(value):
        object.__setattr__(settings, name, checked)
    elif high is not None and is_concrete(value) and not np.all((np.asarray(value) > 0) & (np.asarray(value) <= high)):
        raise OptionError(f"{name} has to lie above 0 and be at most {high:g}, not {value!r}")
