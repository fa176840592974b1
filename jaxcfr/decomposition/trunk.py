"""The trunk of a decomposed game: what is solved and kept, with subgames known by the values of their roots only."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.decomposition.subtree import Pair
from jaxcfr.regret import average as averages
from jaxcfr.regret.variants import RegretVariant
from jaxcfr.solve import JointState, SolverState, initial_state, next_weight, settle, update_player
from jaxcfr.traversal.full_tree import best_rule, regrets_of_values
from jaxcfr.tree.game_tree import GameTree, Strategy
from jaxcfr.tree.segments import SegmentSum, build_segment_sum


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Trunk:
    """The trunk for the solver.

    Attributes:
      tree: its histories; the roots of subgames are leaves that pay nothing by themselves.
      parent: per player `[n_p]` int32, the flat sequence that leads to each of its root information sets.
      total: per player, sums over these sets by that sequence.
    """

    tree: GameTree
    parent: Pair
    total: tuple[SegmentSum, SegmentSum]

    def reach(self, weights: tuple[Array, ...]) -> Pair:
        """Both players' reach of their root information sets, `[n_p]`, from their realization weights."""
        return weights[0][self.parent[0]], weights[1][self.parent[1]]

    def direct(self, player: int, weights: tuple[Array, ...], values: Array) -> Array:
        """Direct counterfactual values, `[L_p + 1]`, with those `[n_p]` of the player's root information sets."""
        return self.tree.payoffs.product(player, weights) + self.total[player](values)


def build_trunk(tree: GameTree, parent: tuple[np.ndarray, np.ndarray]) -> Trunk:
    """The trunk from its tree and the sequences above the root information sets."""
    total = tuple(
        build_segment_sum(sequence, treeplex.size + 1)
        for sequence, treeplex in zip(parent, tree.treeplexes, strict=True)
    )
    index = tuple(sequence.astype(np.int32) for sequence in parent)
    parents, totals = jax.device_put((index, total))
    return Trunk(dataclasses.replace(tree, histories=None), parents, totals)


def begin(trunk: Trunk, variant: RegretVariant) -> SolverState:
    """The state before the first iteration.

    Its `joint` keeps what re-solving needs: the weighted sums of the root values, of the payoffs in the whole game and
    of the weights.
    """
    state: SolverState = initial_state(trunk.tree, variant)
    dtype = trunk.tree.dtype
    joint = JointState(
        tuple(averages.init_sum(jnp.zeros(parent.shape, dtype)) for parent in trunk.parent),
        averages.init_sum(jnp.zeros(2, dtype)),
        averages.init_sum(jnp.zeros((), dtype)),
    )
    return state._replace(joint=joint)


def update(trunk: Trunk, variant: RegretVariant, state: SolverState, player: int, values: Array) -> SolverState:
    """One player's part of an iteration.

    Args:
      trunk: the trunk.
      variant: the regret variant.
      state: before the iteration, or with the other player's part done already.
      player: who updates.
      values: `[n_p]`, the counterfactual values of its root information sets against what the other plays.
    """
    assert state.joint is not None
    weights = tuple(part.weights for part in state.players)
    own = state.players[player]
    direct = trunk.direct(player, weights, values)
    r = regrets_of_values(trunk.tree.treeplexes[player], direct, own.strategy)
    _, weight = next_weight(variant, state)
    factor = jnp.exp2(weight.log2)
    payoff = jnp.zeros(2, direct.dtype).at[player].set((direct * own.weights).sum())
    sums = list(state.joint.values)
    sums[player] = averages.add(sums[player], factor * values)
    joint = state.joint._replace(values=tuple(sums), payoffs=averages.add(state.joint.payoffs, factor * payoff))
    players = list(state.players)
    players[player] = update_player(variant, trunk.tree.treeplexes[player], own, r, state)
    return state._replace(players=tuple(players), joint=joint)


def finish(variant: RegretVariant, state: SolverState) -> SolverState:
    """The end of an iteration, when both players have updated."""
    assert state.joint is not None
    _, weight = next_weight(variant, state)
    total = averages.add(state.joint.total, jnp.exp2(weight.log2))
    return state._replace(t=state.t + 1, weight=weight, joint=state.joint._replace(total=total))


def prepare(trunk: Trunk, variant: RegretVariant, state: SolverState) -> SolverState:
    """Before an iteration: sums are brought in order where that is due."""
    return settle(trunk.tree, variant, state, state.t + 1)


@jax.jit
def average_root_values(trunk: Trunk, state: SolverState) -> Pair:
    """The averages of the root values, `[n_p]`, weighted as the trunk's average is; 0 before the first iteration."""
    assert state.joint is not None
    dtype = trunk.tree.dtype
    total = averages.total(state.joint.total, dtype)
    total = jnp.where(total > 0, total, 1)
    first, second = (averages.total(values, dtype) / total for values in state.joint.values)
    return first, second


@jax.jit
def trunk_reach(trunk: Trunk, strategy: Strategy) -> Pair:
    """Both players' reach of their root information sets under a strategy of the trunk, `[n_p]`."""
    weights = tuple(
        treeplex.realization_weights(values) for treeplex, values in zip(trunk.tree.treeplexes, strategy, strict=True)
    )
    return trunk.reach(weights)


@jax.jit
def best_response_values(trunk: Trunk, strategy: Strategy, values: Pair) -> Array:
    """`[2]`, what each player gets by a best response in the whole game.

    Args:
      trunk: the trunk.
      strategy: what the others play there.
      values: per player `[n_p]`, the counterfactual best-response values of its root information sets.
    """
    weights = tuple(
        treeplex.realization_weights(own) for treeplex, own in zip(trunk.tree.treeplexes, strategy, strict=True)
    )
    best = []
    for player, treeplex in enumerate(trunk.tree.treeplexes):
        best.append(treeplex.fold(trunk.direct(player, weights, values[player]), best_rule, treeplex.uniform)[1])
    return jnp.stack(best)
