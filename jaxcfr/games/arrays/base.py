"""What the bundled array games have in common."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.games.array_game import ArrayGame, as_float


class Bundled(ArrayGame):
    """An array game that is determined by its class and its canonical name, so that equal ones share programs."""

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bundled) and type(self) is type(other) and self.name == other.name

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.name))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}>"


def small_int(largest: int) -> Any:
    """The narrowest signed integer dtype that holds 0 to `largest`, and -1."""
    return np.int8 if largest <= 127 else np.int16 if largest <= 32767 else np.int32


def put(values: Array, index: Array, value: Any) -> Array:
    """`values` `[n]` with `value` at `index`.

    A comparison instead of `.at[].set`: batched scatters are slow on CPUs and this vectorises.
    """
    return jnp.where(jnp.arange(values.shape[0]) == index, jnp.asarray(value, values.dtype), values)


def quotient(numerator: Array, denominator: Any) -> Array:
    """`numerator / denominator` rounded once, as Python rounds it.

    To divide many numbers by the same one XLA multiplies them by its reciprocal, which is rounded twice; so every
    number gets a denominator of its own, which only we know to be the same.

    Args:
      numerator: `[n]` int32, above -2^31.
      denominator: a positive integer scalar.
    """
    impossible = numerator == np.iinfo(numerator.dtype).min
    return as_float(numerator) / as_float(denominator + impossible)
