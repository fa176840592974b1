"""Control variates: baselines that are taken off sampled payoffs and added back in expectation.

VR-MCCFR (Schmid et al. 2019): the less a sampled payoff differs from what was expected of the drawn action, the less
the estimates vary. They stay unbiased for any baseline that is fixed before the plays, so baselines change after the
batch.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxcfr.errors import OptionError
from jaxcfr.regret.schedules import hyperparameter


class Baseline(NamedTuple):
    """Running means of returns, as weighted sums and weights, in one layout."""

    sums: Array
    weights: Array

    def mean(self) -> Array:
        """What each action is expected to be worth; 0 where nothing is known."""
        known = self.weights > 0
        return jnp.where(known, self.sums / jnp.where(known, self.weights, 1), 0)

    def after(self, decay: Any, sums: Array, weights: Array) -> Baseline:
        """With the returns of another batch; what was there before counts `decay` times as much."""
        return Baseline(decay * self.sums + sums, decay * self.weights + weights)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ControlVariate:
    """See `control_variate`."""

    decay: Any
    per_history: bool = dataclasses.field(metadata={"static": True})

    def init(self, size: int, dtype: Any) -> Baseline:
        """Nothing is known."""
        return Baseline(jnp.zeros(size, dtype), jnp.zeros(size, dtype))


def control_variate(decay: float = 0.9, *, per_history: bool = False) -> ControlVariate:
    """Baselines for `outcome_sampling`: running means of the returns after each action.

    Schmid et al. 2019. Unbiased whatever the baselines; a play takes two to three times as long.

    Args:
      decay: how much the batches before count against the newest one, from 0 to 1 (a plain mean).
      per_history: one baseline for each action of each history, chance's outcomes included, instead of one for each
        action of each information set. Varies less, and takes memory for all histories.

    Raises:
      OptionError: decay lies outside of 0 to 1.
    """
    decay = hyperparameter("decay", decay, 0.0)
    if isinstance(decay, float) and decay > 1:
        raise OptionError(f"decay has to lie between 0 and 1, not {decay}")
    if not isinstance(per_history, bool):
        raise OptionError(f"per_history has to be True or False, not {per_history!r}")
    return ControlVariate(decay, per_history)
