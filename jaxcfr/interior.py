"""Interior strategies: every action keeps some probability.

Whoever plays one reaches every information set, so that whatever is learnt by
playing against it, or divides by its probabilities, is defined everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.analytics import nash_conv
from jaxcfr.arguments import integer
from jaxcfr.errors import OptionError
from jaxcfr.profile import Profile
from jaxcfr.regret.schedules import Hyperparameter, at, hyperparameter, linear
from jaxcfr.regret.variants import RegretVariant, cfr_plus
from jaxcfr.solve import SolverState, average_strategy, solve
from jaxcfr.tree.game_tree import GameTree, Strategy, require_tree
from jaxcfr.tree.treeplex import Treeplex


class InteriorRound(NamedTuple):
    """One round of `rtcfr_solve`.

    Attributes:
      gamma: the smallest probability of an action in it.
      strategy: the average at its end, mixed with uniform.
      nash_conv: of that, in the original game.
    """

    gamma: float
    strategy: Strategy
    nash_conv: float


class InteriorSolution(NamedTuple):
    """What `rtcfr_solve` returns.

    Attributes:
      strategy: of the last round.
      rounds: all of them.
      state: after the last one.
    """

    strategy: Strategy
    rounds: tuple[InteriorRound, ...]
    state: SolverState


def perturb_uniform(strategy: Any, gamma: float, tree: GameTree | None = None) -> Any:
    """Mixes every information set's strategy with uniform, so that every action keeps at least `gamma`.

    Of n actions each gets `gamma + (1 - n gamma) p`; where n gamma is above 1, the set becomes uniform.

    Args:
      strategy: a `Profile`; or one array per player, `[L_p]`, together with the tree.
      gamma: from 0 to 1.
      tree: whose layout the arrays are in.

    Returns:
      The same kind of thing.

    Raises:
      OptionError: gamma is not from 0 to 1, or arrays came without a tree.
      StrategyError: the strategy does not fit the tree.
    """
    gamma = _gamma(gamma)
    if isinstance(strategy, Profile):

        def rule(row: np.ndarray) -> np.ndarray:
            least = min(gamma, 1 / len(row))
            return least + (1 - len(row) * least) * row

        return strategy.mapped(rule)
    if tree is None:
        raise OptionError("arrays need the tree whose layout they are in: perturb_uniform(strategy, gamma, tree)")
    require_tree(tree).check_strategy(strategy)
    mixed = []
    for values, treeplex in zip(strategy, tree.treeplexes, strict=True):
        share = _share(treeplex, gamma)
        mixed.append((1 - share) * jnp.asarray(values, tree.dtype) + share * treeplex.uniform)
    return tuple(mixed)


def rtcfr_solve(
    tree: GameTree,
    rounds: int = 10,
    iterations: int = 200,
    schedule: Hyperparameter | None = None,
    variant: RegretVariant | None = None,
) -> InteriorSolution:
    """CFR+ in rounds whose strategies are interior, by less and less.

    The run goes on from round to round. The strategy of round r = 1, ..., `rounds` is the average so far, mixed with
    uniform by `perturb_uniform`, with gamma = schedule(r): while gamma falls to zero the strategies approach an
    equilibrium from the inside.

    Args:
      tree: the game.
      rounds: how many.
      iterations: of each round.
      schedule: gamma, a function of the round; by default `linear(0.05, 0, rounds)`, whose last round is unperturbed.
      variant: the regret variant; None means `cfr_plus()`.

    Raises:
      OptionError: an argument makes no sense, or the schedule leaves 0 to 1.
    """
    require_tree(tree)
    rounds, iterations = integer("rounds", rounds), integer("iterations", iterations)
    schedule = linear(0.05, 0.0, rounds) if schedule is None else hyperparameter("schedule", schedule)
    variant = cfr_plus() if variant is None else variant
    state = solve(tree, variant, 0)
    done = []
    for number in range(1, rounds + 1):
        gamma = _gamma(float(at(schedule, jnp.asarray(float(number)))))
        state = solve(tree, variant, iterations, state)
        strategy = perturb_uniform(average_strategy(tree, state), gamma, tree)
        done.append(InteriorRound(gamma, strategy, float(nash_conv(tree, strategy))))
    return InteriorSolution(done[-1].strategy, tuple(done), state)


def _share(treeplex: Treeplex, gamma: float) -> Array:
    """How much of uniform is mixed in, `[L]`: n gamma, at most 1, in an information set of n actions."""
    legal = treeplex.uniform > 0
    count = jnp.where(legal, 1 / jnp.where(legal, treeplex.uniform, 1), 0)
    return jnp.minimum(gamma * count, 1).astype(treeplex.dtype)


def _gamma(gamma: Any) -> float:
    try:
        value = float(gamma)
    except (TypeError, ValueError) as error:
        raise OptionError(f"gamma has to be a number, not {gamma!r}") from error
    if isinstance(gamma, bool) or not 0 <= value <= 1:
        raise OptionError(f"gamma has to lie between 0 and 1, not {gamma}")
    return value
