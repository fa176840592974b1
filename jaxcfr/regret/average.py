"""The weighted average of the strategies played, kept precise over long runs.

Iterate t counts with weight t^gamma (more generally: each step multiplies the
weight by (t / (t - 1))^gamma_t). The usual relative form
`S <- S ((t - 1) / t)^gamma + x` rounds away what is added once the factor is
near 1 (measured in float32: NashConv on Leduc rises from 1e-5 to 5e-4 between
10,000 and 400,000 iterations). So the sum is left alone and the *weight*
grows instead; whenever t is a power of two everything is scaled down by a
power of two, which is exact and keeps the weight below 2^gamma; and the sum is
compensated (Kahan 1965).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


class Weight(NamedTuple):
    """The weight of the last iterate: its binary logarithm as a compensated sum (two scalars)."""

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


def advance(weight: Weight, gamma: Any, t: Array) -> Weight:
    """The weight of iterate t (a float scalar, from 1) from that of iterate t - 1; gamma is the exponent at t."""
    growth = -gamma * jnp.log1p(-1 / jnp.maximum(t, 2)) / jnp.log(2.0).astype(t.dtype)
    growth = jnp.where(t > 1, growth, 0).astype(t.dtype)
    return Weight(*add(Total(*weight), growth))


def due(step: Array) -> Array:
    """Whether everything is scaled down before iteration `step` (an integer from 1): when it is a power of two."""
    return (step & (step - 1)) == 0


def until_due(step: Array) -> Array:
    """How many iterations, beginning with `step`, come before the next scaling down: up to the next power of two."""
    bits = 32 - jax.lax.clz(step)
    # Beyond the largest power of two that fits nothing is due any more.
    return jnp.where(bits >= 31, 2**31 - 1, (1 << bits) - 1) - step + 1


def scale_down(weight: Weight, gamma: Any, t: Array) -> tuple[Weight, Array]:
    """Before iteration t: the weight relative to a new scale, in which iterate t's is less than 2.

    Weights that fall (a negative exponent) need no new scale.

    Returns:
      The weight, and the k >= 0 for which all sums have to be multiplied by `2^-k`.
    """
    shift = jax.lax.stop_gradient(jnp.maximum(jnp.floor(advance(weight, gamma, t).log2), 0))
    return Weight(weight.log2 - shift, weight.compensation), shift


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
