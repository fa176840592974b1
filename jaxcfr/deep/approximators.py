"""What learns: functions from what a player knows to one number per action.

An *approximator* is anything with two pure functions,

    init(key, features, legal) -> params
    apply(params, features, legal) -> [B, A]

with `features` `[B, F]` float32 and `legal` `[B, A]` bool. So a Flax (linen) module whose `__call__` takes
`(features, legal)` is one as it stands, and so is a Haiku function after `hk.without_apply_rng(hk.transform(f))`;
modules of Equinox and of Flax's nnx are split into parameters and the rest, as the guide shows. `params` is any pytree
of floating-point arrays, all of which are trained. What comes out for illegal actions is ignored, and may be minus
infinity. A network keeps no state (running means of batch normalisation) and draws nothing (dropout).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxcfr.arguments import integer
from jaxcfr.errors import OptionError, one_line

Params = Any


@dataclasses.dataclass(frozen=True)
class Approximator:
    """A pair of pure functions; see the module's text.

    Attributes:
      init: from a key, features `[B, F]` and legal actions `[B, A]` to parameters.
      apply: from parameters, features and legal actions to `[B, A]`.
    """

    init: Callable[..., Params]
    apply: Callable[..., Array]


def require_approximator(network: Any, name: str = "network") -> Any:
    """The approximator itself; raises `OptionError` for what has no `init` and `apply`, or cannot be hashed."""
    if isinstance(network, type):
        hint = f": a class has to be called first, {network.__name__}(...)"
        raise OptionError(f"{name} has to be a pair of functions init and apply, not {network!r}{hint}")
    if callable(getattr(network, "init", None)) and callable(getattr(network, "apply", None)):
        try:
            hash(network)
        except TypeError as error:
            raise OptionError(
                f"{name} has to be hashable, and {type(network).__name__} is not: give it tuples instead of lists, or "
                "make it a frozen dataclass, or an Approximator of two functions"
            ) from error
        return network
    hint = f"; call it: {network.__name__}(...)" if network in (mlp, linear, tabular) else ""
    raise OptionError(
        f"{name} has to be a pair of functions init(key, features, legal) and apply(params, features, legal), as "
        f"mlp() is, not {network!r:.80}{hint}"
    )


def check_approximator(network: Any, name: str, features: Array, legal: Array) -> None:
    """Looks, without computing anything, at what a network makes of some features.

    Args:
      network: an approximator.
      name: of the network, for errors.
      features: `[B, F]`.
      legal: `[B, A]`.

    Raises:
      OptionError: it fails, has parameters that cannot be trained, or does not give one number for each action.
    """

    def said(step: str, function: Callable[..., Any], *given: Any) -> Any:
        try:
            return jax.eval_shape(function, *given)
        except OptionError:
            raise
        except Exception as error:  # it is anyone's code
            what = one_line(error).rstrip(".")
            raise OptionError(
                f"the {name} network fails in {step}: {type(error).__name__}: {what}. An approximator is a pair of "
                "pure functions init(key, features, legal) and apply(params, features, legal), without state and "
                "without random numbers"
            ) from error

    params = said("init(key, features, legal)", network.init, jax.random.key(0), features, legal)
    # So Flax's linen names what belongs to a module.
    if isinstance(params, Mapping) and "params" in params and len(params) > 1:
        state = " and ".join(sorted(set(map(str, params)) - {"params"}))
        raise OptionError(
            f"the {name} network keeps state ({state}), and an approximator has parameters only: normalise layers, not "
            "batches"
        )
    if not jax.tree.leaves(params):
        raise OptionError(f"the {name} network has no parameters: there is nothing to train")
    for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]:
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            raise OptionError(
                f"the {name} network has a parameter {jax.tree_util.keystr(path)} of {leaf.dtype}: parameters are "
                "floating-point numbers, all of which are trained; leave keys and counters out"
            )
    out = said("apply(params, features, legal)", network.apply, params, features, legal)
    shape = getattr(out, "shape", None)
    if shape != legal.shape:
        raise OptionError(
            f"the {name} network gives {shape if shape is not None else 'no array'} for {legal.shape[0]} rows of "
            f"features: one number for each of the {legal.shape[1]} actions is needed, {legal.shape}"
        )
    if not jnp.issubdtype(out.dtype, jnp.floating):
        raise OptionError(f"the {name} network gives {out.dtype}: floating-point numbers are needed")


@dataclasses.dataclass(frozen=True)
class _MLP:
    width: int
    layers: int

    def init(self, key: Array, features: Array, legal: Array) -> Params:
        sizes = [features.shape[-1], *[self.width] * self.layers]
        *hidden, last = jax.random.split(key, self.layers + 1)

        def layer(key: Array, inputs: int, outputs: int, scale: float) -> dict[str, Array]:
            weights = jax.random.normal(key, (inputs, outputs), jnp.float32) * (scale / max(inputs, 1)) ** 0.5
            return {"weights": weights, "bias": jnp.zeros(outputs, jnp.float32)}

        parts = [
            layer(key, inputs, outputs, 2.0) for key, inputs, outputs in zip(hidden, sizes, sizes[1:], strict=False)
        ]
        return {"hidden": parts, "out": layer(last, self.width, legal.shape[-1], 0.01)}

    def apply(self, params: Params, features: Array, legal: Array) -> Array:
        x = features.astype(jnp.float32)
        for number, layer in enumerate(params["hidden"]):
            before = x
            x = x @ layer["weights"] + layer["bias"]
            x = jax.nn.relu(x + before if number else x)
        centred = x - x.mean(-1, keepdims=True)
        x = centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-6)
        return x @ params["out"]["weights"] + params["out"]["bias"]


def mlp(width: int = 64, layers: int = 3) -> Any:
    """A multi-layer perceptron: ReLU, skip connections between its layers, and normalisation before the last one.

    The shape of Brown et al. 2019 (their Figure 4, behind the embedding of cards). It begins near zero.

    Args:
      width: units of each layer.
      layers: hidden layers.

    Raises:
      OptionError: an argument makes no sense.
    """
    return _MLP(integer("width", width), integer("layers", layers))


@dataclasses.dataclass(frozen=True)
class _Linear:
    def init(self, key: Array, features: Array, legal: Array) -> Params:
        shape = (features.shape[-1], legal.shape[-1])
        return {"weights": jnp.zeros(shape, jnp.float32), "bias": jnp.zeros(shape[1], jnp.float32)}

    def apply(self, params: Params, features: Array, legal: Array) -> Array:
        return features.astype(jnp.float32) @ params["weights"] + params["bias"]


def linear() -> Any:
    """A linear function of the features. It begins at zero."""
    return _Linear()


@dataclasses.dataclass(frozen=True)
class _Tabular:
    size: int

    @property
    def table_size(self) -> int:
        """Rows; a `DeepTrainer` checks that they are enough."""
        return self.size

    def init(self, key: Array, features: Array, legal: Array) -> Params:
        if features.shape[-1] != 1:
            raise OptionError(
                f'a table takes one number, and there are {features.shape[-1]} features: features="index" (and '
                'history_features="index") make one'
            )
        return jnp.zeros((self.size, legal.shape[-1]), jnp.float32)

    def apply(self, params: Params, features: Array, legal: Array) -> Array:
        return params[features[..., 0].astype(jnp.int32)]


def tabular(size: int) -> Any:
    """A table, for features that are one number from 0 to size - 1: `features="index"` makes them. It begins at zero.

    It learns the mean of its targets exactly, in the limit: what a trainer would do if its network were perfect.

    Args:
      size: rows, at least the information sets of each player.

    Raises:
      OptionError: size is no positive integer.
    """
    return _Tabular(integer("size", size))
