"""Networks, what they learn from, and how they learn it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from jaxcfr.deep.approximators import Params
from jaxcfr.deep.reservoir import ReservoirBuffer
from jaxcfr.errors import OptionError, one_line

MEASURED = 4096
"""Items that the size of targets is measured on."""

CLIP = 10.0
"""The largest norm of a gradient that the default optimiser takes as it is."""


class Item(NamedTuple):
    """What is learnt from one visit of a history, or of all visits of an information set in one iteration.

    Attributes:
      observed: as `Rules.observe` or `Rules.history` keeps it.
      legal: `[A]` bool.
      target: `[A]`.
      mask: `[A]` bool, for which actions there is a target.
      weight: how much it counts.
    """

    observed: Any
    legal: Array
    target: Array
    mask: Array
    weight: Array


class Learner(NamedTuple):
    """A network and its memory.

    Attributes:
      params: of the network.
      scale: what comes out of the network is in units of this.
      memory: of `Item`s.
      updates: int32, how many times it was trained.
      losses: `[2]`, the mean loss of the first and of the last tenth of the latest training, in units of the targets'
        mean square.
    """

    params: Params
    scale: Array
    memory: ReservoirBuffer
    updates: Array
    losses: Array


Loss = Callable[[Array, Item], Array]
"""loss(outputs [B, A], items) -> [B]."""


def new_learner(network: Any, key: Array, observed: Any, features: Array, legal: Array, capacity: int) -> Learner:
    """A network that has learnt nothing, with an empty memory.

    Args:
      network: the approximator.
      key: a PRNG key.
      observed: what is kept of one history or information set.
      features: `[1, F]`.
      legal: `[1, A]`.
      capacity: of the memory.
    """
    numbers = jnp.zeros(legal.shape[1], jnp.float32)
    item = Item(observed, legal[0], numbers, legal[0], jnp.zeros((), jnp.float32))
    return Learner(
        params=network.init(key, features, legal),
        scale=jnp.ones((), jnp.float32),
        memory=ReservoirBuffer.empty(item, capacity),
        updates=jnp.zeros((), jnp.int32),
        losses=jnp.zeros(2, jnp.float32),
    )


def squared_error(outputs: Array, items: Item) -> Array:
    """Of the actions for which there is a target, `[B]`."""
    # Left out before the square, not after it: else minus infinity at illegal actions would leave a gradient of NaN.
    return jnp.sum(jnp.square(jnp.where(items.mask, outputs - items.target, 0)), axis=1)


def cross_entropy(outputs: Array, items: Item) -> Array:
    """Of the strategies that are the targets, to the softmax of the outputs, `[B]`; least at their weighted mean."""
    logits = jax.nn.log_softmax(jnp.where(items.legal, outputs, -1e9), axis=1)
    return -jnp.sum(jnp.where(items.legal, items.target * logits, 0), axis=1)


def default_optimiser(learning_rate: Any, steps: int) -> optax.GradientTransformation:
    """Adam, with a learning rate that falls to a tenth in a straight line, and gradients clipped."""
    schedule = optax.linear_schedule(learning_rate, learning_rate * 0.1, max(steps, 1))
    # In one vector: a step is a few operations instead of a few for each part of the network.
    return optax.flatten(optax.chain(optax.clip_by_global_norm(CLIP), optax.adam(schedule)))


class Training(NamedTuple):
    """How a network is trained; all static.

    Attributes:
      network: the approximator.
      steps: of the optimiser.
      batch: items of a step, or None for all that the memory holds.
      optimiser: of optax.
      loss: see `Loss`.
      measured: whether targets are learnt in units of their root mean square.
    """

    network: Any
    steps: int
    batch: int | None
    optimiser: optax.GradientTransformation
    loss: Loss = squared_error
    measured: bool = True


def updated(
    optimiser: optax.GradientTransformation, gradient: Params, state: Any, params: Params, value: Array, value_fn: Any
) -> tuple[Params, Any]:
    """The parameters after a step, and the optimiser's state.

    Some optimisers want to know the loss too (`reduce_on_plateau`), or to ask for it elsewhere (`lbfgs`).
    """
    told = optax.with_extra_args_support(optimiser)
    update, state = told.update(gradient, state, params, value=value, grad=gradient, value_fn=value_fn)
    return optax.apply_updates(params, update), state


def check_optimiser(training: Training, kind: str, features: Array, legal: Array) -> None:
    """Looks, without computing anything, at what an optimiser makes of a network's parameters.

    Raises:
      OptionError: it fails, or gives parameters of another form.
    """

    def step() -> tuple[Params, Params]:
        params = training.network.init(jax.random.key(0), features, legal)
        value = jnp.zeros((), jnp.float32)
        state = training.optimiser.init(params)
        return params, updated(training.optimiser, params, state, params, value, lambda params: value)[0]

    try:
        before, after = jax.eval_shape(step)
    except Exception as error:  # it is anyone's code
        raise OptionError(
            f"the optimiser fails on the parameters of the {kind} network: {type(error).__name__}: {one_line(error)}"
        ) from error
    forms = [
        (jax.tree.structure(tree), [(x.shape, x.dtype) for x in jax.tree.leaves(tree)]) for tree in (before, after)
    ]
    if forms[0] != forms[1]:
        raise OptionError(f"the optimiser gives the {kind} network parameters of another form than it takes")


def train(
    training: Training,
    key: Array,
    learner: Learner,
    params: Params,
    features_of: Callable[[Any], Array],
    targets: Callable[[Item, Array], Item] = lambda items, features: items,
) -> Learner:
    """Trains a network on its memory.

    Args:
      training: how.
      key: a PRNG key.
      learner: its memory and scale; what its network has learnt so far is for `targets` to use.
      params: where training begins.
      features_of: from what is kept to features.
      targets: from items and their features to items with the targets to learn.
    """
    network = training.network
    keys = jax.random.split(key, 1 + training.steps)
    memory = learner.memory

    def batch(key: Array, size: int | None) -> tuple[Item, Array, Array]:
        items, valid = memory.sample(key, size)
        features = features_of(items.observed)
        items = targets(items, features)
        weight = jnp.where(valid, items.weight, 0)
        total = weight.sum()
        return items, features, weight / jnp.where(total > 0, total, 1)

    items, _, weight = batch(keys[0], None if training.batch is None else MEASURED)
    # In units of the largest one, so that squares of tiny or huge numbers stay in range.
    largest = jnp.max(jnp.where(items.mask & (weight > 0)[:, None], jnp.abs(items.target), 0))
    unit = jnp.where(largest > 0, largest, 1)
    square = jnp.sum(weight[:, None] * jnp.where(items.mask, jnp.square(items.target / unit), 0))
    square = square / jnp.maximum(jnp.sum(weight[:, None] * items.mask), 1e-30)
    scale = jnp.where(square > 0, jnp.sqrt(square), 1) * unit if training.measured else jnp.ones((), jnp.float32)

    def loss(params: Params, key: Array) -> Array:
        items, features, weight = batch(key, training.batch)
        outputs = network.apply(params, features, items.legal)
        return jnp.sum(weight * training.loss(outputs, items._replace(target=items.target / scale)))

    def step(carry: tuple[Params, Any], key: Array) -> tuple[tuple[Params, Any], Array]:
        params, state = carry
        value, gradient = jax.value_and_grad(loss)(params, key)
        return updated(training.optimiser, gradient, state, params, value, lambda params: loss(params, key)), value

    begin = (params, training.optimiser.init(params))
    (params, _), losses = jax.lax.scan(step, begin, keys[1:])
    tenth = max(training.steps // 10, 1)
    shown = jnp.stack([losses[:tenth].mean(), losses[-tenth:].mean()])
    return Learner(params, scale, memory, learner.updates + 1, shown)
