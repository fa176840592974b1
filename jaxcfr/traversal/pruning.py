"""Pruning: actions with negative regret that are not walked for a while (Brown et al. 2019, Pluribus)."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.errors import OptionError
from jaxcfr.traversal import randomness
from jaxcfr.traversal.walks import Choices
from jaxcfr.tree.treeplex import Treeplex

COIN = np.uint32(0xC2B2AE35)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ProbabilisticPruning:
    """See `probabilistic_pruning`."""

    warmup: Any
    probability: Any
    threshold: Any

    def active(
        self, treeplex: Treeplex, regret: Array, strategy: Array, spread: Array, seed: tuple[Array, Array], t: Array
    ) -> Array:
        """The actions that are walked in iteration t, `[L]` bool.

        Args:
          treeplex: of the updating player.
          regret: its stored regrets, `[L]`.
          strategy: `[L]`.
          spread: the range of its payoffs.
          seed: the two words of its walks.
          t: int32.
        """
        u = randomness.uniform(seed, randomness.mix(seed[1] ^ COIN), jnp.float32)
        prunes = (t > self.warmup) & (u < self.probability)
        legal = treeplex.uniform > 0
        skipped = prunes & (regret < -self.threshold * spread) & (strategy <= 0)
        return legal & ~skipped


def choices(treeplex: Treeplex, active: Array) -> Choices:
    """The actions that are walked, at every information set the first ones of a list."""

    def left(active: Array) -> Array:
        return jnp.broadcast_to(active.sum(0, dtype=jnp.int32), active.shape)

    def order(active: Array) -> Array:
        rank = jnp.cumsum(active, axis=0, dtype=jnp.int32)
        place = jnp.arange(active.shape[0])[:, None, None]
        # The i-th one: so many actions come before the one whose rank is above i.
        return jnp.minimum((rank[None] <= place).sum(1, dtype=jnp.int32), active.shape[0] - 1)

    return Choices(treeplex.over_tables(left, active), treeplex.over_tables(order, active))


def probabilistic_pruning(
    warmup: int = 200, probability: float = 0.95, *, threshold: float = 0.5
) -> ProbabilisticPruning:
    """Skips actions with negative regret in most iterations after a warm-up; for `external_sampling`.

    As in Pluribus (Brown and Sandholm 2019, supplement): with this probability an iteration does not walk the actions
    that its strategy never plays and whose regret is below the threshold. What is not walked keeps its regret, so such
    an action comes back more slowly, but it comes back. The threshold keeps actions that belong to a mixed strategy,
    and whose regrets swing about zero, from being caught. Measured on Leduc poker, 300 iterations of linear CFR with
    1,024 walks: without pruning NashConv is 0.087; with a threshold of 0 it is 1.05, for half of the histories visited,
    with 0.05 it is 0.094 for 92% of them, with 0.5 it is 0.082 for 99.5%. How much is saved depends on how many actions
    are plainly bad.

    Variants that floor regrets at zero (`cfr_plus`, `dcfr_plus`, `pcfr_plus`, ...) have no negative ones: there nothing
    is pruned, and `solve` warns.

    Args:
      warmup: iterations in which everything is walked.
      probability: of the iterations after it that prune.
      threshold: how far below zero the regret has to be, as a part of the range of the player's payoffs.

    Raises:
      OptionError: an argument makes no sense.
    """
    try:
        number = -1 if isinstance(warmup, bool) else operator.index(warmup)
    except TypeError:
        number = -1
    if not 0 <= number < 2**31:
        raise OptionError(f"warmup has to be an integer of at least 0, not {warmup!r}")
    for name, value, high in (("probability", probability, 1.0), ("threshold", threshold, float("inf"))):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= high:
            bounds = "between 0 and 1" if high == 1.0 else "at least 0"
            raise OptionError(f"{name} has to be {bounds}, not {value!r}")
    return ProbabilisticPruning(number, float(probability), float(threshold))
