"""Counterfactual regrets from the whole tree, exactly."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.regret.matching import over_actions
from jaxcfr.tree.game_tree import GameTree
from jaxcfr.tree.treeplex import Treeplex

ROUNDING = 16
"""Regrets of at most this many units of rounding, relative to the values they are differences of, count as zero."""


def counterfactual_regrets(tree: GameTree, player: int, weights: tuple[Array, ...], strategy: Array) -> Array:
    """`r(I, a) = v(I, a) - v(I)` for every information set of a player (Zinkevich et al. 2007, Eq. 7).

    Args:
      tree: the game.
      player: p.
      weights: every player's realization weights, `[L_q + 1]` each; p's own are not read.
      strategy: p's strategy, `[L_p]`.

    Returns:
      `[L_p]`, 0 at the padding.
    """
    return regrets_of_values(tree.treeplexes[player], tree.payoffs.product(player, weights), strategy)


def regrets_of_values(treeplex: Treeplex, direct: Array, strategy: Array) -> Array:
    """The counterfactual regrets, `[L]`, that follow from direct counterfactual values `[L + 1]`, exact or sampled."""
    values, _ = treeplex.fold(direct, lambda values, own: (over_actions(jnp.add, own * values), values), strategy)
    return treeplex.over_tables(_regrets, values, treeplex.uniform, strategy)


def _regrets(values: Array, uniform: Array, strategy: Array) -> Array:
    regret = jnp.where(uniform > 0, values - over_actions(jnp.add, strategy * values), 0)
    # A regret that is zero but for rounding would pick a side by chance, and two correct programs would part ways
    # there. Gradients pass as if nothing had been rounded.
    noise = jnp.abs(regret) <= ROUNDING * np.finfo(values.dtype).eps * over_actions(jnp.maximum, jnp.abs(values))
    return regret - jax.lax.stop_gradient(jnp.where(noise, regret, 0))


def best_rule(values: Array, uniform: Array) -> tuple[Array, Array]:
    """For `Treeplex.fold`: the best legal action; the first of several."""
    legal = uniform > 0
    best = jnp.where(legal, values, -jnp.inf).argmax(0)
    chosen = (jax.lax.broadcasted_iota(best.dtype, values.shape, 0) == best) & legal
    # A column of padding has no legal action, and the value 0.
    return jnp.where(chosen, values, 0).sum(0), chosen.astype(values.dtype)
