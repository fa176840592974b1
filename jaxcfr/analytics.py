"""Exact analytics: expected payoffs, best responses, NashConv, exploitability, counterfactual values.

All are computed from whole trees, in the tree's own dtype, jitted; for any
number of players and general-sum payoffs. All quantities are in units of
payoff (chips).

What NashConv means: it is 0 exactly at a Nash equilibrium, in every game. In
two-player zero-sum games CFR's average strategy approaches one, and
`nash_conv / 2` is the exploitability. With more players, or general-sum
payoffs, CFR promises only that the *joint* empirical play approaches a coarse
correlated equilibrium, whose gap is `cce_gap`; the average strategies are then
not in general a Nash equilibrium, and their NashConv may stay above 0.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.arguments import integer
from jaxcfr.concrete import is_concrete
from jaxcfr.errors import AnalyticsError, NotTwoPlayerConstantSumError, SolverError
from jaxcfr.prescribed import Locks, best_fold, check_prescribed
from jaxcfr.regret import average as averages
from jaxcfr.solve import SolverState
from jaxcfr.traversal.full_tree import best_rule
from jaxcfr.tree.game_tree import GameTree, Strategy, require_tree
from jaxcfr.tree.treeplex import Treeplex

GAIN_TOLERANCE = 1e3
"""Gains may be negative by this many units of rounding, relative to the largest payoff; below that it is an error."""


class BestResponse(NamedTuple):
    """A best response.

    Attributes:
      value: the player's payoff, a scalar.
      strategy: `[L_p]`, one action per information set, maximal at every one of them, reached or not.
    """

    value: Array
    strategy: Array


class Comparison(NamedTuple):
    """Two strategies a and b side by side, see `compare`.

    Attributes:
      payoffs: `[2, P]`, the expected payoffs when all players play by a, and by b.
      nash_conv: `[2]`, that of each.
      by_seat: `[P]`, what a gets in each seat when b has all the others.
      difference: the largest difference in the probability of one action, a scalar. It tells how alike they look, not
        which one is better.
    """

    payoffs: Array
    nash_conv: Array
    by_seat: Array
    difference: Array


class CounterfactualValues(NamedTuple):
    """Counterfactual values of a player: weighted by everyone else's reach, chance included.

    Attributes:
      actions: `[L_p]`, v(I, a), in the flat layout.
      infosets: `[n_p]`, v(I), by number of the information set.
    """

    actions: Array
    infosets: Array


class CounterfactualBestResponse(NamedTuple):
    """A counterfactual best response: maximal at every information set, reached or not.

    Attributes:
      value: the player's payoff, a scalar.
      strategy: `[L_p]`.
      values: its counterfactual values (CBV).
    """

    value: Array
    strategy: Array
    values: CounterfactualValues


def _all_weights(tree: GameTree, strategy: Strategy) -> tuple[Array, ...]:
    return tuple(
        treeplex.realization_weights(jnp.asarray(values, tree.dtype))
        for treeplex, values in zip(tree.treeplexes, strategy, strict=True)
    )


def _expected_rule(values: Array, strategy: Array) -> tuple[Array, Array]:
    return (strategy * values).sum(0), values


def expected_payoffs(tree: GameTree, strategy: Strategy) -> Array:
    """Every player's expected payoff, `[P]`.

    Raises:
      StrategyError: the strategy does not fit the tree.
    """
    require_tree(tree).check_strategy(strategy)
    return _evaluate(tree, strategy)[0] + tree.payoffs.offset


@jax.jit
def _evaluate(tree: GameTree, strategy: Strategy, locks: Locks | None = None) -> tuple[Array, Array]:
    """Everyone's expected payoff and best-response value, `[P]` each, relative to the payoffs' offset.

    One program for all that is made of them; gains are differences, which a large offset would only blur.
    """
    weights = _all_weights(tree, strategy)
    payoffs, best = [], []
    for p, treeplex in enumerate(tree.treeplexes):
        direct = tree.payoffs.product(p, weights)
        payoffs.append(treeplex.fold(direct, _expected_rule, jnp.asarray(strategy[p], tree.dtype))[1])
        best.append(best_fold(treeplex, direct, locks, p)[1])
    return jnp.stack(payoffs), jnp.stack(best)


def best_response(tree: GameTree, strategy: Strategy, player: int) -> BestResponse:
    """The best response of `player` to the others' strategies, exactly: value and strategy.

    Raises:
      StrategyError: the strategy does not fit the tree.
      OptionError: there is no such player.
    """
    response = counterfactual_best_response(tree, strategy, player)
    return BestResponse(response.value, response.strategy)


def best_response_values(tree: GameTree, strategy: Strategy) -> Array:
    """What every player could get by a best response to the others, `[P]`.

    Raises:
      StrategyError: the strategy does not fit the tree.
    """
    require_tree(tree).check_strategy(strategy)
    return _evaluate(tree, strategy)[1] + tree.payoffs.offset


def gains(tree: GameTree, strategy: Strategy, locked: Locks | None = None) -> Array:
    """What every player would gain by deviating to a best response, `[P]`; never negative.

    Args:
      tree: the game.
      strategy: everyone's, `[L_p]` each.
      locked: information sets at which best responses keep to the strategy that is fixed there (see `lock`), as
        `strategy` has to do as well. The gains are then those of the locked game.

    Raises:
      StrategyError: the strategy, or the locks, do not fit the tree.
      AnalyticsError: a gain is negative beyond rounding, or not a number (concrete inputs only).
    """
    require_tree(tree).check_strategy(strategy)
    check_prescribed(tree, locked, None)
    payoffs, best = _evaluate(tree, strategy, locked)
    difference = best - payoffs
    size = jnp.max(jnp.abs(tree.terminal_payoffs - tree.payoffs.offset), initial=0)
    tolerance = GAIN_TOLERANCE * np.finfo(tree.dtype).eps * size
    if is_concrete(difference, tolerance) and not bool(jnp.all(difference >= -tolerance)):
        raise AnalyticsError(
            f"the gains from deviating came out as {difference}; a gain cannot be negative, so the strategy or the "
            "payoffs are not what they should be (NaN, or beyond the range of the dtype)"
        )
    return jnp.maximum(difference, 0)


def nash_conv(tree: GameTree, strategy: Strategy, locked: Locks | None = None) -> Array:
    """NashConv, a scalar: the sum of all players' gains from deviating; 0 exactly at a Nash equilibrium.

    With more than two players, or general-sum payoffs, CFR's average need not approach 0: see `cce_gap`. `locked` is
    that of `gains`.

    Raises:
      StrategyError: the strategy does not fit the tree.
      AnalyticsError: a gain is negative beyond rounding, or not a number (concrete inputs only).
    """
    return gains(tree, strategy, locked).sum()


def exploitability(tree: GameTree, strategy: Strategy, locked: Locks | None = None) -> Array:
    """NashConv / 2, a scalar; for two-player constant-sum games. `locked` is that of `gains`.

    Raises:
      NotTwoPlayerConstantSumError: the game is not two-player constant-sum; use `nash_conv`.
      StrategyError: the strategy does not fit the tree.
    """
    require_constant_sum(tree, "exploitability", "use nash_conv")
    return nash_conv(tree, strategy, locked) / 2


def compare(tree: GameTree, a: Strategy, b: Strategy) -> Comparison:
    """What two strategies of a game have to say to each other.

    A game may have many equilibria, and off the paths that are played anything may be in one. So two solutions are
    not compared by their probabilities: in a two-player zero-sum game equal payoffs and a NashConv near zero say that
    they are equally good, however large the difference is.

    Raises:
      StrategyError: a strategy does not fit the tree.
    """
    require_tree(tree).check_strategy(a)
    tree.check_strategy(b)
    seats = range(tree.num_players)
    mixed = [expected_payoffs(tree, tuple(a[q] if q == p else b[q] for q in seats))[p] for p in seats]
    return Comparison(
        jnp.stack([expected_payoffs(tree, a), expected_payoffs(tree, b)]),
        jnp.stack([nash_conv(tree, a), nash_conv(tree, b)]),
        jnp.stack(mixed),
        jnp.max(jnp.stack([jnp.max(jnp.abs(x - y), initial=0) for x, y in zip(a, b, strict=True)])),
    )


def require_constant_sum(tree: GameTree, what: str, instead: str) -> None:
    """Raises `NotTwoPlayerConstantSumError` unless the tree is two-player constant-sum."""
    if not require_tree(tree).constant_sum:
        kind = f"it has {tree.num_players} players" if tree.num_players != 2 else "it is general-sum"
        raise NotTwoPlayerConstantSumError(
            f"{what} is defined for two-player constant-sum games, and this is none ({kind}): {instead}"
        )


def counterfactual_values(tree: GameTree, strategy: Strategy) -> tuple[CounterfactualValues, ...]:
    """Every player's counterfactual values when all play `strategy` (Zinkevich et al. 2007).

    Raises:
      StrategyError: the strategy does not fit the tree.
    """
    require_tree(tree).check_strategy(strategy)
    return _counterfactual_values(tree, strategy)


@jax.jit
def _counterfactual_values(tree: GameTree, strategy: Strategy) -> tuple[CounterfactualValues, ...]:
    weights = _all_weights(tree, strategy)
    result = []
    for p, treeplex in enumerate(tree.treeplexes):
        own = jnp.asarray(strategy[p], tree.dtype)
        actions, _ = treeplex.fold(_uncentred(tree, p, weights), _expected_rule, own)
        result.append(CounterfactualValues(actions, _infoset_values(treeplex, actions, own)))
    return tuple(result)


def _uncentred(tree: GameTree, player: int, weights: tuple[Array, ...]) -> Array:
    """Direct counterfactual values for the payoffs as they are: what the offset adds is its share of the reach."""
    return tree.payoffs.product(player, weights) + tree.payoffs.offset[player] * _reach(tree, player, weights)


def _reach(tree: GameTree, player: int, weights: tuple[Array, ...]) -> Array:
    """The others' reach of the leaves of each sequence: the product in a game that pays 1 everywhere."""
    return tree.payoffs.paying_one().product(player, weights)


def _infoset_values(treeplex: Treeplex, actions: Array, strategy: Array) -> Array:
    def spread(values: Array, probabilities: Array) -> Array:
        return jnp.broadcast_to((values * probabilities).sum(0), values.shape)

    return treeplex.over_tables(spread, actions, strategy)[treeplex.first]


def counterfactual_best_response(tree: GameTree, strategy: Strategy, player: int) -> CounterfactualBestResponse:
    """The best response of `player` that is maximal at every information set, reached or not, with its values.

    Raises:
      StrategyError: the strategy does not fit the tree.
      OptionError: there is no such player.
    """
    require_tree(tree).check_strategy(strategy)
    player = integer("player", player, 0, tree.num_players - 1)
    return _counterfactual_best_response(tree, strategy, player)


def _counterfactual_best_response_impl(tree: GameTree, strategy: Strategy, player: int) -> CounterfactualBestResponse:
    treeplex = tree.treeplexes[player]
    direct = _uncentred(tree, player, _all_weights(tree, strategy))
    best, value = treeplex.fold(direct, best_rule, treeplex.uniform)
    actions, _ = treeplex.fold(direct, _expected_rule, best)
    values = CounterfactualValues(actions, _infoset_values(treeplex, actions, best))
    return CounterfactualBestResponse(value, best, values)


_counterfactual_best_response = jax.jit(_counterfactual_best_response_impl, static_argnames="player")


def counterfactual_reach(tree: GameTree, strategy: Strategy) -> tuple[Array, ...]:
    """Reach of every information set by everyone but its owner, chance included, per player `[L_p]`.

    The same number at all actions of an information set: the value of the set in a game that pays 1 everywhere.

    Raises:
      StrategyError: the strategy does not fit the tree.
    """
    require_tree(tree).check_strategy(strategy)
    return _counterfactual_reach(tree, strategy)


@jax.jit
def _counterfactual_reach(tree: GameTree, strategy: Strategy) -> tuple[Array, ...]:
    weights = _all_weights(tree, strategy)
    reach = []
    for p, treeplex in enumerate(tree.treeplexes):
        reach.append(treeplex.fold(_reach(tree, p, weights), _expected_rule, treeplex.uniform)[0])
    return tuple(reach)


class CCEGap(NamedTuple):
    """How far the joint empirical play of a run is from a coarse correlated equilibrium.

    Attributes:
      gap: the largest gain, or 0 where no player gains: the joint play is a coarse correlated equilibrium up to it.
      gains: `[P]`, what each player would gain by committing to its best fixed strategy beforehand. Unlike the gains
        of `nash_conv` one may be negative: to follow the joint play can be better than any fixed strategy.
    """

    gap: Array
    gains: Array


def cce_gap(tree: GameTree, state: SolverState) -> CCEGap:
    """The gap of a run's joint play to a coarse correlated equilibrium (Moulin and Vial 1978), in units of payoff.

    The joint play is: draw an iteration with the averaging weights of the variant, let everyone play its strategy of
    that iteration. It is what CFR's regret bound speaks of in any game: with uniform weights (`vanilla`) and
    simultaneous updates every gain is that player's regret divided by t. Where information sets are locked, the fixed
    strategies keep to the locks.

    Args:
      tree: the game.
      state: of a run with `solve(..., track_cce=True)` and at least one iteration.

    Raises:
      SolverError: the run did not track it, or has not begun.
    """
    require_tree(tree)
    if not isinstance(state, SolverState) or state.joint is None:
        raise SolverError("cce_gap needs a run that kept track: solve(..., track_cce=True) from the first iteration")
    if is_concrete(state.t) and int(state.t) == 0:
        raise SolverError("cce_gap needs at least one iteration")
    return _cce_gap(tree, state)


@jax.jit
def _cce_gap(tree: GameTree, state: SolverState) -> CCEGap:
    assert state.joint is not None
    total = averages.total(state.joint.total, tree.dtype)
    best = []
    for p, (values, treeplex) in enumerate(zip(state.joint.values, tree.treeplexes, strict=True)):
        best.append(best_fold(treeplex, averages.total(values, tree.dtype) / total, state.locks, p)[1])
    payoffs = averages.total(state.joint.payoffs, tree.dtype) / total
    difference = jnp.stack(best) - payoffs
    return CCEGap(jnp.maximum(difference.max(), 0), difference)
