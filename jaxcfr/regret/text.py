"""The textual form of a regret variant, `name:argument=value,...`: `--regret` takes it and profiles record it."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from jaxcfr.errors import OptionError
from jaxcfr.regret.variants import VARIANTS, RegretVariant


def parse_variant(text: str, iterations: int | None = None) -> RegretVariant:
    """The variant that a text names.

    Args:
      text: `name` or `name:argument=value,...`, with a factory of `jaxcfr.regret.variants.VARIANTS` as the name.
      iterations: of the run; what `total` is where the text does not say.

    Raises:
      OptionError: an unknown name or argument (lists the near ones), a missing argument, or a bad value.
    """
    name, colon, rest = (part.strip() for part in text.partition(":"))
    if name not in VARIANTS:
        raise OptionError(f"no regret variant is named {name!r}{_near(name, list(VARIANTS), 'variants')}")
    factory: Callable[..., RegretVariant] = VARIANTS[name]
    parameters = inspect.signature(factory).parameters
    if colon and not rest:
        raise OptionError(f"regret variant {text!r}: there is nothing after the colon")
    values: dict[str, float] = {}
    for part in rest.split(",") if rest else []:
        argument, equals, value = (piece.strip() for piece in part.partition("="))
        if not argument or not equals:
            raise OptionError(f"regret variant {text!r}: {part.strip()!r} is not argument=value")
        if argument not in parameters:
            raise OptionError(f"{name} has no argument {argument!r}{_near(argument, list(parameters), 'arguments')}")
        if argument in values:
            raise OptionError(f"regret variant {text!r}: {argument} is given twice")
        try:
            values[argument] = float(value)
        except ValueError:
            raise OptionError(f"regret variant {text!r}: {argument}={value} is not a number") from None
    if "total" in parameters and iterations is not None:
        values.setdefault("total", float(max(iterations, 1)))
    for parameter in parameters.values():
        if parameter.default is inspect.Parameter.empty and parameter.name not in values:
            raise OptionError(f"{name} needs {parameter.name}, for example {name}:{parameter.name}=30")
    return factory(**values)


def describe(variant: Any) -> str:
    """The text that `parse_variant` turns into this variant; `repr` of one that no factory makes (schedules, own ones).

    Every hyperparameter is in it, so that other defaults would not change what it means. What is text already stays.
    """
    if isinstance(variant, str):
        return variant
    for name, factory in VARIANTS.items():
        with contextlib.suppress(Exception):
            arguments = _arguments(variant, inspect.signature(factory).parameters)
            if _same(factory(**arguments), variant):
                shown = ",".join(f"{argument}={_number(value)}" for argument, value in arguments.items())
                return f"{name}:{shown}" if shown else name
    return repr(variant)


def _arguments(variant: Any, parameters: Mapping[str, Any]) -> dict[str, float]:
    """What a factory would have to be called with to give `variant`, if it can."""
    ends = {"gamma_init": "start", "total": "total"}  # of the gamma schedule of the hs_ variants
    return {
        name: float(getattr(variant.gamma, ends[name]) if name in ends else getattr(variant, name))
        for name in parameters
    }


def _same(one: Any, other: Any) -> bool:
    """Whether two variants are of one type, and hold the same numbers."""
    mine, form = jax.tree.flatten(one)
    others, other_form = jax.tree.flatten(other)
    same: Any = type(one) is type(other) and form is not None and form == other_form
    return same and all(float(a) == float(b) and math.isfinite(a) for a, b in zip(mine, others, strict=True))


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _near(name: str, known: Sequence[str], kind: str) -> str:
    if not known:
        return f"; it has no {kind}"
    wanted = name.lower().replace("-", "_").replace("+", "_plus")
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else f"; the {kind} are {', '.join(known)}"
