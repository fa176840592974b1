"""The weighted average of the strategies played, kept precise over long runs.

Iterate t counts with weight t^gamma (more generally: each step multiplies the
weight by (t / (t - 1))^gamma_t). The usual relative form
`S <- S ((t - 1) / t)^gamma + x` rounds away what is added once the factor is
near 1 (measured in float32: NashConv on Leduc rises from 1e-5 to 5e-4 between
10,000 and 400,000 iterations). So the sum is left alone and the *weight*
grows instead; whenever it passes 2^16 everything is scaled down by a power of
two, which is exact; and the sum is compensated (Kahan 1965).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

RESCALE = 16
"""Sums are scaled down once the weight reaches 2^RESCALE."""


class Weight(NamedTuple):
    """The weight of the next iterate: its binary logarithm as a compensated sum (two scalars)."""

    log2: Array
    compensation: Array


class Total(NamedTuple):
    """A compensated sum: `value - compensation` (each in the shape of what is summed)."""

    value: Array
    compensation: Array


def init_weight(dtype: Any) -> Weight:
    return Weight(jnp.zeros((), dtype), jnp.zeros((), dtype))


def init_total(zeros: Array) -> Total:
    return Total(zeros, zeros)


def advance(weight: Weight, gamma: Any, t: Array) -> tuple[Weight, Array, Array]:
    """The weight of iterate t from that of iterate t - 1.

    Args:
      weight: of iterate t - 1.
      gamma: the exponent at t.
      t: float scalar, counted from 1.

    Returns:
      The new weight; the exponent k >= 0 by which all sums have to be scaled down first (`2^-k`, mostly 0); and the
      factor with which iterate t is added.
    """
    growth = -gamma * jnp.log1p(-1 / jnp.maximum(t, 2)) / jnp.log(2.0).astype(t.dtype)
    growth = jnp.where(t > 1, growth, 0).astype(t.dtype)
    log2, compensation = add(Total(weight.log2, weight.compensation), growth)
    shift = jax.lax.stop_gradient(jnp.where(log2 >= RESCALE, jnp.floor(log2), 0))
    return Weight(log2 - shift, compensation), shift, jnp.exp2(log2 - shift)


def add(total: Total, value: Array) -> Total:
    """Kahan's compensated addition."""
    corrected = value - total.compensation
    new = total.value + corrected
    return Total(new, (new - total.value) - corrected)


def power_of_two(shift: Array, dtype: Any) -> Array:
    """`2^-shift` exactly; 0 where that is below the smallest normal number."""
    smallest = np.finfo(dtype).minexp
    exponent = jnp.clip(shift, 0, -int(smallest)).astype(jnp.int32)
    return jnp.where(shift > -smallest, 0, jnp.ldexp(jnp.ones((), dtype), -exponent))


def scaled(total: Total, factor: Array) -> Total:
    """A sum times a power of two."""
    return Total(total.value * factor, total.compensation * factor)


def table_scale(value: Array, factor: Array) -> Array:
    """What each entry of a table of sums, `[A, n]`, is scaled by: `factor`, or less where a set would vanish.

    An information set that was not reached for long would underflow to nothing and come out uniform; its last
    meaningful strategy is worth more. It is scaled to a number so small that whatever is added later outweighs it.
    """
    floor = np.finfo(value.dtype).tiny * 2.0**24
    largest = value.max(0, keepdims=True)
    kept = jnp.minimum(1, floor / jnp.where(largest > 0, largest, 1))
    return jnp.broadcast_to(jnp.maximum(factor, kept), value.shape).astype(value.dtype)
