"""What a traversal is: the way from strategies to counterfactual regrets."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxcfr.traversal.pruning import Stored
from jaxcfr.tree.game_tree import GameTree, Strategy


class Visited(NamedTuple):
    """How many histories were visited, as the sum of two float32 numbers: exact up to 2^48."""

    value: Array
    rest: Array

    def __int__(self) -> int:
        return int(self.value) + int(self.rest)

    def add(self, count: Array | Visited) -> Visited:
        """Knuth's exact addition of two numbers, then of what it leaves."""
        if isinstance(count, Visited):
            return self.add(count.value).add(count.rest)
        total = self.value + count
        added = total - self.value
        rest = self.rest + ((self.value - (total - added)) + (count - added))
        value = total + rest
        return Visited(value, rest - (value - total))


def none_visited() -> Visited:
    return Visited(jnp.zeros((), jnp.float32), jnp.zeros((), jnp.float32))


class SamplingState(NamedTuple):
    """What a run with a sampling traversal carries along.

    Attributes:
      key: a typed key; iteration t takes its random numbers from `fold_in(key, t)`.
      visited: histories visited so far.
      memory: what the traversal keeps from iteration to iteration.
    """

    key: Array
    visited: Visited
    memory: Any


class Traversal:
    """Base class of traversals, and what one of your own defines: `regrets`.

    A traversal is a frozen dataclass, registered as a pytree. It turns everybody's strategies into the counterfactual
    regrets of one player, and knows nothing of variants.
    """

    pruning: Any = None
    """Which actions are skipped; see `jaxcfr.traversal.pruning`."""

    @property
    def samples(self) -> bool:
        """Whether regrets are estimates, made of random numbers."""
        return True

    def check_schedules(self, t: Any, iterations: Any) -> None:
        """Looks at schedules in the first and in the last of the iterations after t.

        Raises:
          OptionError: one is out of range.
        """

    def init(self, tree: GameTree) -> Any:
        """The `memory` of a run before its first iteration: by default there is none."""
        return ()

    def regrets(
        self, tree: GameTree, player: int, strategy: Strategy, stored: Stored | None, sampling: SamplingState, t: Array
    ) -> tuple[Array, SamplingState]:
        """Estimates of one player's counterfactual regrets.

        Args:
          tree: the game, with histories.
          player: p.
          strategy: everyone's, `[L_q]` each.
          stored: of p; None where the traversal prunes nothing.
          sampling: of the run.
          t: the iteration, an int32 scalar from 1.

        Returns:
          `[L_p]`, 0 at the padding; and the new state.
        """
        raise NotImplementedError


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class FullTree(Traversal):
    """Every history, exactly; `solve` has its own program for it."""

    @property
    def samples(self) -> bool:
        """Nothing is random."""
        return False


def full_tree() -> FullTree:
    """The whole tree in every iteration, exactly: the default."""
    return FullTree()
