"""The weighted average of the strategies played, kept precise over long runs.

Iterate t counts with weight t^gamma (more generally: each step multiplies the
weight by (t / (t - 1))^gamma_t). The usual relative form
`S <- S ((t - 1) / t)^gamma + x` rounds away what is added once the factor is
near 1 (measured in float32: NashConv on Leduc rises from 1e-5 to 5e-4 between
10,000 and 400,000 iterations). So the sum is left alone and the *weight*
grows instead; from time to time everything is scaled down by a power of two,
which is exact; and the sum is compensated (Kahan 1965). Both happen before
the iterations that `due` names. In between, at most `BLOCK` iterates are added
up plainly, which costs one addition an iteration; the rounding errors of that
are a few units of the last place, and those of different blocks average out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

BLOCK = 64
"""So many iterates at most are summed without compensation."""


class Weight(NamedTuple):
    """The weight of the last iterate: its binary logarithm as a compensated sum (two scalars)."""

    log2: Array
    compensation: Array


class Sum(NamedTuple):
    """A sum in three parts, each in the shape of what is summed: see `total`."""

    value: Array
    compensation: Array
    recent: Array


def init_weight(dtype: Any) -> Weight:
    return Weight(jnp.zeros((), dtype), jnp.zeros((), dtype))


def init_sum(value: Array) -> Sum:
    return Sum(value, jnp.zeros_like(value), jnp.zeros_like(value))


def advance(weight: Weight, gamma: Any, t: Array) -> Weight:
    """The weight of iterate t (a float scalar, from 1) from that of iterate t - 1; gamma is the exponent at t."""
    growth = -gamma * jnp.log1p(-1 / jnp.maximum(t, 2)) / jnp.log(2.0).astype(t.dtype)
    growth = jnp.where(t > 1, growth, 0).astype(t.dtype)
    return Weight(*_compensated(weight.log2, weight.compensation, growth, t.dtype))


def due(step: Array) -> Array:
    """Whether sums are settled before iteration `step` (an integer from 1): at powers of two and whole blocks."""
    return ((step & (step - 1)) == 0) | (step % BLOCK == 0)


def until_due(step: Array) -> Array:
    """How many iterations, beginning with `step`, come before sums are settled again."""
    next_power = 1 << (32 - jax.lax.clz(jnp.minimum(step, BLOCK)))
    return jnp.where(step < BLOCK, next_power, step + BLOCK - step % BLOCK) - step


def scale_down(weight: Weight, gamma: Any, t: Array) -> tuple[Weight, Array]:
    """Before iteration t: the weight relative to a new scale, in which iterate t's is less than 2.

    Weights that fall (a negative exponent) need no new scale.

    Returns:
      The weight, and the k >= 0 for which all sums have to be multiplied by `2^-k`.
    """
    shift = jax.lax.stop_gradient(jnp.maximum(jnp.floor(advance(weight, gamma, t).log2), 0))
    return Weight(weight.log2 - shift, weight.compensation), shift


def add(sum_: Sum, value: Array) -> Sum:
    return sum_._replace(recent=narrowed(sum_.recent + value, sum_.recent.dtype))


def settle(sum_: Sum, dtype: Any) -> Sum:
    """Takes the recent terms into the compensated sum; computes in `dtype`, and stores as before."""
    stored = sum_.value.dtype
    value, compensation, recent = (part.astype(dtype) for part in sum_)
    new, compensation = _compensated(value, compensation, recent, stored)
    return Sum(new, narrowed(compensation, stored), jnp.zeros_like(sum_.recent))


def total(sum_: Sum, dtype: Any) -> Array:
    """What all terms add up to, in `dtype`."""
    value, compensation, recent = (part.astype(dtype) for part in sum_)
    return value + (recent - compensation)


def narrowed(values: Array, dtype: Any) -> Array:
    """The values as they are stored in a table of `dtype`; compilers may not keep the digits that are dropped."""
    if values.dtype == dtype:
        return values
    info = jnp.finfo(dtype)  # type: ignore[no-untyped-call]
    return jax.lax.reduce_precision(values, info.nexp, info.nmant).astype(dtype)


def _compensated(value: Array, compensation: Array, term: Array, stored: Any) -> tuple[Array, Array]:
    """Kahan's compensated addition, for a sum that is stored in `stored`; the sum is `value - compensation`."""
    corrected = term - compensation
    new = narrowed(value + corrected, stored)
    return new, (new.astype(value.dtype) - value) - corrected


def power_of_two(shift: Array, dtype: Any) -> Array:
    """`2^-shift` exactly; 0 where that is below the smallest normal number."""
    smallest = np.finfo(dtype).minexp
    exponent = jnp.clip(shift, 0, -int(smallest)).astype(jnp.int32)
    return jnp.where(shift > -smallest, 0, jnp.ldexp(jnp.ones((), dtype), -exponent))


def scaled(sum_: Sum, factor: Array) -> Sum:
    """A sum times a power of two."""
    return Sum(*(narrowed(part * factor, part.dtype) for part in sum_))


def table_scale(value: Array, factor: Array) -> Array:
    """What each entry of a table of sums, `[A, n]`, is scaled by: `factor`, or less where a set would vanish.

    An information set that was not reached for long would underflow to nothing and come out uniform; its last
    meaningful strategy is worth more. It is scaled to a number so small that whatever is added later outweighs it.
    """
    floor = float(jnp.finfo(value.dtype).tiny) * 2.0**24  # type: ignore[no-untyped-call]
    largest = value.max(0, keepdims=True)
    kept = jnp.minimum(1, floor / jnp.where(largest > 0, largest, 1))
    return jnp.broadcast_to(jnp.maximum(factor, kept), value.shape)
