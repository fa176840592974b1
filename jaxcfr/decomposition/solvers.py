"""What solves the subgames of CFR-D in every iteration of the trunk."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxcfr.decomposition.subtree import Pair, Subtree, as_subtree, root_values, solve_reached
from jaxcfr.linear_program import solve_lp
from jaxcfr.regret import average as averages
from jaxcfr.regret.text import describe
from jaxcfr.regret.variants import RegretVariant
from jaxcfr.solve import Updates
from jaxcfr.tree.payoffs import PayoffTable

if TYPE_CHECKING:
    from jaxcfr.decomposition.decompose import Decomposition


class SubgameSolver:
    """Base class of what solves subgames; one that runs on the host defines `host_values`.

    What it returns are counterfactual values of the root information sets under strategies that are, as nearly as it
    can, counterfactual best responses to each other for the reaches given.
    """

    traceable: bool = False
    """Whether `values` can be traced by JAX, for batches."""

    def host_values(self, decomposition: Decomposition, number: int, reach: tuple[np.ndarray, np.ndarray]) -> Any:
        """Both players' root values, `[n_p]`, of one subgame.

        Args:
          decomposition: the game.
          number: of the subgame.
          reach: per player `[n_p]`, of its root information sets.
        """
        raise NotImplementedError


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class CFRSolver(SubgameSolver):
    """CFR, a whole batch at once.

    Attributes:
      variant: the regret variant.
      iterations: how many for each subgame.
      keep: with which share of the last regrets a subgame begins; 0 for nothing (and nothing kept).
      updates: as in `jaxcfr.solve` (static).
      warm: whether `keep` is positive (static).
    """

    variant: RegretVariant
    iterations: Any
    keep: Any
    updates: Updates = dataclasses.field(metadata={"static": True})
    warm: bool = dataclasses.field(metadata={"static": True})

    traceable = True

    def __str__(self) -> str:
        kept = f", beginning with {float(self.keep):g} of the last regrets" if self.warm else ""
        return f"{describe(self.variant)} in {int(self.iterations)} iterations, {self.updates}{kept}"

    def begin(self, subtree: Subtree, batch: int) -> Pair | None:
        """What is kept of a batch before its first solve: regrets in bfloat16, 2 bytes a sequence and subgame."""
        if not self.warm:
            return None
        first, second = (
            jnp.zeros((*treeplex.uniform.shape, batch), jnp.bfloat16) for treeplex in subtree.tree.treeplexes
        )
        return first, second

    def values(self, subtree: Subtree, reach: Pair, kept: Pair | None) -> tuple[Pair, Pair | None]:
        """Root values `[n_p, B]` for reaches `[n_p, B]`, and what to keep."""
        start = None
        if kept is not None:
            start = tuple(self.keep * regret.astype(subtree.tree.dtype) for regret in kept)
        strategy, regrets = solve_reached(subtree, reach, self.variant, self.iterations, self.updates, start=start)
        if regrets is not None:
            kept = averages.narrowed(regrets[0], jnp.bfloat16), averages.narrowed(regrets[1], jnp.bfloat16)
        return root_values(subtree, reach, strategy), kept


class LPSolver(SubgameSolver):
    """The sequence-form linear program (scipy's HiGHS), one subgame after the other: exact, as a reference."""

    def host_values(self, decomposition: Decomposition, number: int, reach: tuple[np.ndarray, np.ndarray]) -> Any:
        """See `SubgameSolver`; 0 where the players together never get there."""
        subtree, lowered, leaf_roots = _program(decomposition, number)
        table = lowered.tree.payoffs
        assert isinstance(table, PayoffTable)
        given = (
            jnp.asarray(reach[0], decomposition.dtype)[:, None],
            jnp.asarray(reach[1], decomposition.dtype)[:, None],
        )
        # One player's reach alone may vanish: the other still has to know what it could get.
        floor = [np.where(values.max(initial=0) > 0, values, 1.0) for values in reach]
        chance = np.asarray(table.leaves.chance, np.float64) * floor[0][leaf_roots[0]] * floor[1][leaf_roots[1]]
        largest = chance.max(initial=0.0)
        strategy: Any = tuple(treeplex.uniform for treeplex in lowered.tree.treeplexes)
        if largest > 0:
            leaves = dataclasses.replace(table.leaves, chance=jnp.asarray(chance / largest))
            tree = dataclasses.replace(lowered.tree, payoffs=dataclasses.replace(table, leaves=leaves))
            strategy = solve_lp(tree).strategy
        values = _root_values(subtree, given, tuple(own[:, None] for own in strategy))
        return tuple(np.asarray(value[:, 0]) for value in values)


_root_values = jax.jit(root_values)


@functools.lru_cache(maxsize=64)
def _program(decomposition: Decomposition, number: int) -> Any:
    """What a linear program needs: the tree for values, the one with histories, and the roots above its leaves."""
    piece = decomposition.source.piece(number)
    lowered = piece.lowered(decomposition.dtype)
    subtree = as_subtree(lowered, piece.num_roots, -1)
    histories = lowered.tree.histories
    assert histories is not None
    leaves = np.flatnonzero(np.asarray(histories.terminal) >= 0)
    roots = tuple(
        np.asarray(root_of)[np.asarray(sequence)[leaves]]
        for root_of, sequence in zip(subtree.root_of, histories.sequence, strict=True)
    )
    return subtree, lowered, roots


@functools.partial(jax.jit, donate_argnames="kept")
def batch_values(
    subtree: Subtree, solver: CFRSolver, reach: Pair, classes: Pair, kept: Pair | None
) -> tuple[Pair, Pair | None]:
    """One batch by itself: `CFRSolver.values` for the players' reaches of all root information sets."""
    return solver.values(subtree, (reach[0][classes[0]], reach[1][classes[1]]), kept)
