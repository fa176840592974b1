"""Hyperparameters that change over time.

Wherever a variant takes a number it also takes a schedule: a function of the
iteration t = 1, 2, ... The ones here are small pytrees with array leaves, so
a sweep over them with `vmap` compiles once. Any other callable of t (an optax
schedule, say) is accepted too, but a new one compiles the solver anew.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.concrete import is_concrete
from jaxcfr.errors import OptionError

Hyperparameter = Any
"""A number, an array that broadcasts as one, or a schedule."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Constant:
    """`value` at every t."""

    value: Any

    def __call__(self, t: Array) -> Array:
        return jnp.asarray(self.value)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Linear:
    """From `start` at t = 0 in a straight line to `end` at t = iterations, and `end` from then on."""

    start: Any
    end: Any
    iterations: Any

    def __call__(self, t: Array) -> Array:
        return self.start + (self.end - self.start) * jnp.clip(t / self.iterations, 0, 1)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Geometric:
    """`start * rate**t`."""

    start: Any
    rate: Any

    def __call__(self, t: Array) -> Array:
        return self.start * jnp.power(self.rate, t)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Polynomial:
    """`scale * t**power`."""

    scale: Any
    power: Any

    def __call__(self, t: Array) -> Array:
        return self.scale * jnp.power(t, self.power)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Horizon:
    """`start + slope * t / total` up to t = total; NaN after it, because the rule is not defined there.

    The shape of the hyperparameter schedules of Zhang et al. 2024.
    """

    start: Any
    slope: Any
    total: Any

    def __call__(self, t: Array) -> Array:
        return jnp.where(t <= self.total, self.start + self.slope * t / self.total, jnp.nan)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Bare:
    """Any callable of t; it is part of the program, so another one compiles anew."""

    schedule: Callable[[Any], Any] = dataclasses.field(metadata={"static": True})

    def __call__(self, t: Array) -> Array:
        return jnp.asarray(self.schedule(t))


SCHEDULES = (Constant, Linear, Geometric, Polynomial, Horizon, Bare)


def constant(value: float) -> Constant:
    """The same value at every iteration."""
    return Constant(_number("value", value))


def linear(start: float, end: float, iterations: float) -> Linear:
    """A straight line from `start` (t = 0) to `end` (t = iterations), constant after it."""
    _require(iterations, lambda n: n > 0, "iterations of a linear schedule has to be positive")
    return Linear(_number("start", start), _number("end", end), _number("iterations", iterations))


def geometric(start: float, rate: float) -> Geometric:
    """`start * rate**t`."""
    return Geometric(_number("start", start), _number("rate", rate))


def polynomial(scale: float, power: float) -> Polynomial:
    """`scale * t**power`."""
    return Polynomial(_number("scale", scale), _number("power", power))


LARGEST_GAMMA = 100.0
"""Exponents of the average may be this large: weights grow by 2^gamma between scalings, and float32 ends at 2^128."""


def exponent(name: str, value: Hyperparameter, low: float = 0.0) -> Hyperparameter:
    """`hyperparameter` for exponents of the average, which lie between `low` and `LARGEST_GAMMA`."""
    value = hyperparameter(name, value)
    if not isinstance(value, SCHEDULES):
        message = f"{name} has to lie between {low:g} and {LARGEST_GAMMA:g}"
        _require(value, lambda n: (n >= low) & (n <= LARGEST_GAMMA), message)
    return value


def hyperparameter(name: str, value: Hyperparameter, low: float = -float("inf")) -> Hyperparameter:
    """Checks a hyperparameter of a variant and brings it into the form of a pytree.

    Raises:
      OptionError: not a number, an array or a callable; or, where it can be seen, NaN or below `low`.
    """
    if isinstance(value, SCHEDULES):
        return value
    if callable(value):
        return Bare(value)
    number = _number(name, value)
    bound = "" if low == -float("inf") else f" of at least {low:g}"
    _require(number, lambda n: n >= low, f"{name} has to be a number{bound}")
    return number


def at(value: Hyperparameter, t: Array) -> Any:
    """The hyperparameter at iteration t (a float array, counted from 1)."""
    return value(t) if isinstance(value, SCHEDULES) else value


def horizon(value: Hyperparameter) -> Any:
    """The last iteration for which a hyperparameter is defined, or None where there is no end."""
    return value.total if isinstance(value, Horizon) else None


def _number(name: str, value: Any) -> Any:
    if isinstance(value, bool | str) or value is None:
        raise OptionError(f"{name} has to be a number or a schedule, not {value!r}")
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError as error:
            raise OptionError(f"{name} is too large") from error
    if isinstance(value, list | tuple):
        raise OptionError(f"{name} has to be one number or a schedule, not {value!r}; for a sweep, jax.vmap over it")
    try:
        dtype = jnp.asarray(value).dtype
    except (TypeError, ValueError) as error:
        raise OptionError(f"{name} has to be a number or a schedule, not {value!r}") from error
    if not (jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.integer)):
        raise OptionError(f"{name} has to be a real number, not {dtype}")
    return value


def _require(value: Any, condition: Callable[[Any], Any], message: str) -> None:
    # numpy, because jax.numpy would trace even constants inside of jit.
    if is_concrete(value) and not np.all(condition(np.asarray(value))):
        raise OptionError(f"{message}, not {value}")
