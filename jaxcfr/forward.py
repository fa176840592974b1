"""Values that have derivatives forward, but none in reverse, and say so."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxcfr.concrete import is_concrete
from jaxcfr.errors import SolverError

_forward_only = Primitive("forward_only")


def forward_only(values: Any, message: str) -> Any:
    """The pytree itself; asking for its gradient in reverse raises `SolverError` with this message.

    What has no gradient in reverse is a loop of a length that only the running program knows. JAX would name the
    loop, which its user has not written.
    """
    if is_concrete(values):
        return values
    return jax.tree.map(functools.partial(_forward_only.bind, message=message), values)


def _refuse(*_: Any, message: str) -> NoReturn:
    raise SolverError(message)


_forward_only.def_impl(lambda value, **_: value)  # type: ignore[no-untyped-call]
_forward_only.def_abstract_eval(lambda value, **_: value)  # type: ignore[no-untyped-call]
ad.deflinear2(_forward_only, _refuse)  # type: ignore[no-untyped-call]
batching.defvectorized(_forward_only)  # type: ignore[no-untyped-call]
mlir.register_lowering(_forward_only, lambda _, value, **__: [value])
