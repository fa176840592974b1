"""Pruning: actions with negative regret that are not walked for a while."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.arguments import INT32, integer, real
from jaxcfr.concrete import is_concrete
from jaxcfr.errors import OptionError, SolverError
from jaxcfr.regret.matching import over_actions
from jaxcfr.traversal import randomness
from jaxcfr.traversal.full_tree import regrets_of_values
from jaxcfr.traversal.walks import Choices, Tally
from jaxcfr.tree.game_tree import GameTree, Strategy
from jaxcfr.tree.treeplex import Treeplex

COIN = np.uint32(0xC2B2AE35)


class Stored(NamedTuple):
    """What the updating player has stored.

    Attributes:
      regret: `[L]`, the variant's.
      average: `[L]`, weighted sum of the realization weights played.
      kept: scalar, the part of a negative regret that this iteration's update keeps.
      after: from counterfactual regrets `[L]` to what the update with them makes of `regret`, and to the strategy
        that follows, `[L]` both.
    """

    regret: Array
    average: Array
    kept: Array
    after: Callable[[Array], tuple[Array, Array]]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ProbabilisticPruning:
    """See `probabilistic_pruning`."""

    warmup: Any
    probability: Any
    threshold: Any
    mass: Any

    def active(
        self, treeplex: Treeplex, stored: Stored, strategy: Array, spread: Array, seed: tuple[Array, Array], t: Array
    ) -> Array:
        """The actions that are walked in iteration t, `[L]` bool.

        Args:
          treeplex: of the updating player.
          stored: its regrets and average.
          strategy: `[L]`.
          spread: the range of its payoffs.
          seed: the two words of its walks.
          t: int32.
        """
        u = randomness.uniform(seed, randomness.mix(seed[1] ^ COIN), jnp.float32)
        prunes = (t > self.warmup) & (u < self.probability)
        bad = (stored.regret < -self.threshold * spread) & (strategy <= 0)
        skipped = prunes & bad & rarely_played(treeplex, stored.average, self.mass)
        return (treeplex.uniform > 0) & ~skipped


def rarely_played(treeplex: Treeplex, average: Array, mass: Any) -> Array:
    """Where an average strategy, given as sums `[L]`, has at most this probability: `[L]` bool."""
    return treeplex.over_tables(lambda sums: sums <= mass * over_actions(jnp.add, sums)[None], average)


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


class Skips(NamedTuple):
    """What one player skips, and what the iterations since the last catching up amount to.

    A sum over these iterations weighs each as the regrets do: what the discounts since then keep of it.

    Attributes:
      cut: `[L]` bool, the actions that are not walked; none lies below another.
      highest: `[L]`, the highest payoff below each action.
      reach: `[L]`, sum of the part of the walks that came to the information set.
      average: `[L + 1]` of the opponent, sum of the realization weights that it played.
    """

    cut: Array
    highest: Array
    reach: Array
    average: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SafePruning:
    """See `safe_pruning`."""

    mass: Any
    every: Any

    def init(self, tree: GameTree) -> tuple[Skips, ...]:
        """Nothing is skipped."""
        _require_two_players(tree)
        if not is_concrete(tree.histories, tree.payoffs):
            raise SolverError("safe_pruning() begins outside of jit and vmap: make a state there first")
        skips = []
        for player, treeplex in enumerate(tree.treeplexes):
            zeros = jnp.zeros_like(treeplex.uniform)
            highest = jnp.asarray(_highest_below(tree, player), tree.dtype)
            average = jnp.zeros_like(tree.treeplexes[1 - player].uniform_weights)
            skips.append(Skips(jnp.zeros(zeros.shape, bool), highest, zeros, average))
        return tuple(skips)

    def regrets(
        self,
        tree: GameTree,
        player: int,
        strategy: Strategy,
        stored: Stored,
        skips: Skips,
        tally: Tally,
        batch: int,
        t: Array,
    ) -> tuple[Array, Skips]:
        """Counterfactual regrets, `[L]`, in which an action that was not walked counts as worth the most it could be.

        Args:
          tree: the game.
          player: p, who updates.
          strategy: everyone's.
          stored: of p.
          skips: of p.
          tally: of walks that left out `skips.cut`.
          batch: how many they were.
          t: int32.
        """
        treeplex, other = tree.treeplexes[player], tree.treeplexes[1 - player]
        assert tally.visits is not None
        visits = treeplex.over_tables(
            lambda first: jnp.broadcast_to(over_actions(jnp.add, first), first.shape), tally.visits[:-1]
        )
        most = visits * skips.highest
        direct = tally.values.at[:-1].add(jnp.where(skips.cut, most, 0))
        r = regrets_of_values(treeplex, direct, strategy[player])
        weights = other.realization_weights(strategy[1 - player])
        skips = skips._replace(reach=stored.kept * skips.reach + visits, average=stored.kept * skips.average + weights)

        def catch_up(r: Array) -> tuple[Array, Skips]:
            averages = tuple(skips.average if p != player else treeplex.uniform_weights for p in range(2))
            exact = tree.payoffs.product(player, averages)
            r = r + owed(treeplex, exact, skips.cut, skips.reach * skips.highest)
            worth, _ = treeplex.fold(direct, _own_worth, strategy[player])
            # One walk more or less is to change nothing.
            growth = jnp.maximum(most - worth, 0) + tree.payoffs.spread()[player] / batch
            cut = self.safe(treeplex, stored, strategy[player], r, growth)
            return r, Skips(cut, skips.highest, jnp.zeros_like(skips.reach), jnp.zeros_like(skips.average))

        _, follows = stored.after(r)
        due = (t % self.every == 0) | jnp.any(skips.cut & (follows > 0))
        result: tuple[Array, Skips] = jax.lax.cond(due, catch_up, lambda r: (r, skips), r)
        return result

    def safe(self, treeplex: Treeplex, stored: Stored, strategy: Array, r: Array, growth: Array) -> Array:
        """The topmost actions that can be skipped for about `every` iterations, `[L]` bool.

        `growth` is how fast the bound on each one's regret grew in this iteration. Whether it stays below zero is
        seen while it is skipped; an action that will not is not worth beginning with.
        """
        regret, follows = stored.after(r)
        never = (treeplex.uniform > 0) & (strategy <= 0) & (follows <= 0) & (regret < 0) & (stored.regret <= 0)
        left = stored.kept**self.every
        terms = jnp.where(stored.kept < 1, (1 - left) / jnp.where(stored.kept < 1, 1 - stored.kept, 1), self.every)
        chosen = never & (regret * left + growth * terms < 0) & rarely_played(treeplex, stored.average, self.mass)
        return _topmost(treeplex, chosen)


def _own_worth(values: Array, strategy: Array) -> tuple[Array, Array]:
    """For `Treeplex.fold`: the value of an information set, collected at each of its actions."""
    worth = over_actions(jnp.add, strategy * values)
    return worth, jnp.broadcast_to(worth, values.shape)


def _topmost(treeplex: Treeplex, chosen: Array) -> Array:
    """Of the chosen sequences, `[L]` bool, those above which none is chosen."""
    doubled = treeplex.realization_weights(jnp.where(chosen, 2, 1).astype(treeplex.dtype))[:-1]
    return chosen & (doubled == 2)


def owed(treeplex: Treeplex, direct: Array, cut: Array, counted: Array) -> Array:
    """What regrets lack of a player who skipped actions for some iterations: `[L]`.

    A player that never takes an action may be taken to have played anything below it. So it has played a best
    response to the opponent's average over these iterations, as the average tells it: the action is worth what that
    earns, and no regret below it grows (Brown and Sandholm 2015).

    Args:
      treeplex: of the player.
      direct: `[L + 1]`, its direct counterfactual values against the sum of what the opponent played.
      cut: `[L]` bool, the actions; none lies below another.
      counted: `[L]`, what they have been taken to be worth, in sum.
    """
    doubled = treeplex.realization_weights(jnp.where(cut, 2, 1).astype(treeplex.dtype))[:-1]
    below = (treeplex.uniform > 0) & (doubled > 1) & ~cut

    def rule(values: Array, below: Array, uniform: Array) -> tuple[Array, Array]:
        best = over_actions(jnp.maximum, jnp.where(uniform > 0, values, -jnp.inf))
        return jnp.where(below.any(0), best, 0), jnp.where(below, values - best, values)

    values, _ = treeplex.fold(direct, rule, below, treeplex.uniform)
    return jnp.where(cut, values - counted, jnp.where(below, values, 0))


def _highest_below(tree: GameTree, player: int) -> np.ndarray:
    """The highest payoff of a player below each of its actions, relative to the offset: `[L]`, 0 at the padding."""
    histories = tree.histories
    assert histories is not None
    terminal, parent = np.asarray(histories.terminal), np.asarray(histories.parent)
    payoffs = np.asarray(tree.terminal_payoffs - tree.payoffs.offset)[:, player]
    highest = np.full(len(terminal), -np.inf, payoffs.dtype)
    highest[terminal >= 0] = payoffs[terminal[terminal >= 0]]
    offsets = histories.level_offsets
    for depth in range(len(offsets) - 2, 0, -1):
        rows = slice(offsets[depth], offsets[depth + 1])
        np.maximum.at(highest, parent[rows], highest[rows])
    mine = 1 + np.flatnonzero(np.asarray(histories.player)[parent[1:]] == player)
    result = np.full(tree.treeplexes[player].size, -np.inf)
    np.maximum.at(result, np.asarray(histories.sequence[player])[mine], highest[mine])
    return np.where(np.isfinite(result), result, 0)


def _require_two_players(tree: GameTree) -> None:
    """Raises `OptionError` for another number of players."""
    if tree.num_players != 2:
        raise OptionError(
            f"safe_pruning() is for two players, and this game has {tree.num_players}: what was skipped is caught up "
            "against the average of one opponent; use probabilistic_pruning()"
        )


def safe_pruning(*, mass: float = 0.05, every: int = 8) -> SafePruning:
    """Skips actions while their regret provably stays negative, and makes up for it; for two players.

    Regret-based pruning (Brown and Sandholm 2015), for `external_sampling`. A player that plays an action with
    probability zero, and will until its regret turns positive, need not know what lies below it. While it is skipped,
    its stored regret grows as if it were worth the most that can be had below it; before that bound turns positive, or
    when the other actions' regrets are negative too, the true regret takes its place: that of a best response, below
    the action, to the average of what the opponent played meanwhile. Averages and the fixed point are those without
    pruning.

    Nothing may be locked.

    Measured with linear CFR after 160 iterations: on Liar's dice, in batches of 4,096, a walk of each player visits 55
    histories instead of 160, in 0.65 of the time; on Leduc poker, where few actions are plainly bad, 39 instead of 45,
    which takes no less time. The whole tree gains nothing from pruning: its passes work on arrays of fixed shapes. A
    tree of Liar's dice without what could be skipped had 0.14 to 0.4 of the histories, but compiling its program took
    as long as 40,000 iterations, and of thousands of actions one turned positive again within a few hundred.

    How much is skipped depends on the variant: `vanilla` and `linear_cfr` keep negative regrets, so that bad actions
    are skipped ever longer; `dcfr` with beta = 0 halves them in every iteration, so that little is (use beta = 0.5, as
    Brown and Sandholm 2019 do for that). Variants that floor regrets at zero (`cfr_plus`, `dcfr_plus`, `pcfr_plus`,
    ...) have no negative ones: nothing is skipped, and `solve` warns. A variant of one's own has to update a negative
    regret R to `d R + r` with the d that its `discounts` says.

    Args:
      mass: an action is skipped only if its probability in the average strategy is at most this.
      every: so often is decided what is skipped, and only what will be for about so many iterations.

    Raises:
      OptionError: an argument makes no sense, or (where it is used) the game has not two players, or a player is
        locked somewhere.
    """
    return SafePruning(real("mass", mass, 0, 1), integer("every", every, 1, INT32))


def probabilistic_pruning(
    warmup: int = 200, probability: float = 0.95, *, threshold: float = 0.5, mass: float = 0.05
) -> ProbabilisticPruning:
    """Skips actions with negative regret in most iterations after a warm-up; for `external_sampling`.

    As in Pluribus (Brown and Sandholm 2019, supplement): with this probability an iteration does not walk the actions
    that its strategy does not play, whose regret is below the threshold and whose probability in the average is nearly
    zero. What is not walked keeps its regret, so such
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
      mass: the probability that an action may have in the average strategy.

    Raises:
      OptionError: an argument makes no sense.
    """
    warmup = integer("warmup", warmup, 0, INT32)
    probability, mass = real("probability", probability, 0, 1), real("mass", mass, 0, 1)
    return ProbabilisticPruning(warmup, probability, real("threshold", threshold, 0), mass)
