"""External, chance and outcome sampling in a tree (Lanctot et al. 2009)."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.arguments import integer
from jaxcfr.concrete import is_concrete
from jaxcfr.errors import OptionError, SolverError
from jaxcfr.regret.schedules import SCHEDULES, Hyperparameter, at, hyperparameter
from jaxcfr.traversal import outcome, randomness, walks
from jaxcfr.traversal.base import SamplingState, Traversal
from jaxcfr.traversal.baselines import Baseline, ControlVariate, centre
from jaxcfr.traversal.full_tree import regrets_of_values
from jaxcfr.traversal.pruning import ProbabilisticPruning, SafePruning, Skips, Stored, choices
from jaxcfr.tree.game_tree import GameTree, Strategy
from jaxcfr.tree.moves import private_chance


def _cumulative(tree: GameTree, strategy: Strategy) -> Array:
    assert tree.histories is not None
    players = [
        walks.cumulative_strategy(treeplex, values) for treeplex, values in zip(tree.treeplexes, strategy, strict=True)
    ]
    # One more entry, so that there is one in games where nobody moves.
    return jnp.concatenate([*players, tree.histories.moves.chance, jnp.ones(1, tree.dtype)])


def _probabilities(tree: GameTree, strategy: Strategy) -> Array:
    return jnp.concatenate([*strategy, jnp.ones(1, tree.dtype)])


EXPLORATION = 0.5
"""Of the plays that external sampling learns baselines from."""


class ExternalMemory(NamedTuple):
    """What external sampling carries along; nothing where it is not asked for.

    Attributes:
      skips: of safe pruning, per player.
      baselines: of the control variates, per player.
    """

    skips: tuple[Skips, ...]
    baselines: tuple[Baseline, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ExternalSampling(Traversal):
    """See `external_sampling`."""

    batch: int = dataclasses.field(metadata={"static": True})
    pruning: ProbabilisticPruning | SafePruning | None = None
    baseline: ControlVariate | None = None

    def init(self, tree: GameTree) -> ExternalMemory:
        """Nothing is skipped, and nothing expected."""
        skips = self.pruning.init(tree) if isinstance(self.pruning, SafePruning) else ()
        return ExternalMemory(skips, () if self.baseline is None else self.baseline.init(tree))

    def regrets(
        self, tree: GameTree, player: int, strategy: Strategy, stored: Stored | None, sampling: SamplingState, t: Array
    ) -> tuple[Array, SamplingState]:
        """See `Traversal.regrets`."""
        seed = randomness.words(sampling.key, t, player)
        treeplex, pruning, memory = tree.treeplexes[player], self.pruning, sampling.memory
        cumulative, probabilities = _cumulative(tree, strategy), _probabilities(tree, strategy)
        walker = walks.Walker(tree, player, False, 1, seed, cumulative)
        active = None
        if isinstance(pruning, ProbabilisticPruning):
            assert stored is not None
            active = pruning.active(treeplex, stored, strategy[player], tree.payoffs.spread()[player], seed, t)
        elif pruning is not None:
            active = (treeplex.uniform > 0) & ~memory.skips[player].cut
            walker = dataclasses.replace(walker, counts=True)
        if active is not None:
            walker = dataclasses.replace(walker, choices=choices(treeplex, active))
        if self.baseline is not None:
            expected, per_history = memory.baselines[player].mean(), self.baseline.per_history
            centred = centre(tree, player, expected, probabilities, per_history)
            walker = dataclasses.replace(walker, centre=centred)
        tally = walker.run(self.batch)
        if isinstance(pruning, SafePruning):
            assert stored is not None
            mine = memory.skips[player]
            r, mine = pruning.regrets(tree, player, strategy, stored, mine, tally, self.batch, t)
            memory = memory._replace(skips=(*memory.skips[:player], mine, *memory.skips[player + 1 :]))
        else:
            r = regrets_of_values(treeplex, tally.values, strategy[player])
            r = r if active is None else jnp.where(active, r, 0)
        visited = tally.visited
        if self.baseline is not None:
            episodes = outcome.Episodes(
                tree, player, randomness.others(seed), cumulative, probabilities, jnp.asarray(EXPLORATION, tree.dtype)
            )
            episodes = dataclasses.replace(episodes, per_history=self.baseline.per_history, keeps_leaves=True)
            _, more, leaves = episodes.run(self.batch)
            visited = visited + more
            learnt = memory.baselines[player]
            learnt = learnt.after(self.baseline.decay, *episodes.returns(leaves, learnt.sums.shape[0]))
            before, behind = memory.baselines[:player], memory.baselines[player + 1 :]
            memory = memory._replace(baselines=(*before, learnt, *behind))
        return r, sampling._replace(visited=sampling.visited.add(visited), memory=memory)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ChanceSampling(Traversal):
    """See `chance_sampling`."""

    batch: int = dataclasses.field(metadata={"static": True})
    rolls: int = dataclasses.field(metadata={"static": True})
    public: bool = dataclasses.field(metadata={"static": True})

    def init(self, tree: GameTree) -> tuple[Array, ...]:
        """Which chance moves are private, `[N]` bool, where they are told apart."""
        if not self.public:
            return ()
        if not is_concrete(tree.histories):
            raise SolverError("chance_sampling(public=True) begins outside of jit and vmap: make a state there first")
        return (jnp.asarray(private_chance(tree.histories)),)

    def regrets(
        self, tree: GameTree, player: int, strategy: Strategy, stored: Stored | None, sampling: SamplingState, t: Array
    ) -> tuple[Array, SamplingState]:
        """See `Traversal.regrets`."""
        seed = randomness.words(sampling.key, t, player)
        walker = walks.Walker(
            tree, player, True, self.rolls, seed, _cumulative(tree, strategy), _probabilities(tree, strategy)
        )
        if self.public:
            walker = dataclasses.replace(walker, private=sampling.memory[0])
        return _walk(walker, self.batch, strategy, sampling)


def _walk(walker: walks.Walker, batch: int, strategy: Strategy, sampling: SamplingState) -> tuple[Array, SamplingState]:
    tally = walker.run(batch)
    regrets = regrets_of_values(walker.tree.treeplexes[walker.player], tally.values, strategy[walker.player])
    return regrets, sampling._replace(visited=sampling.visited.add(tally.visited))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class OutcomeSampling(Traversal):
    """See `outcome_sampling`."""

    exploration: Hyperparameter
    baseline: ControlVariate | None
    batch: int = dataclasses.field(metadata={"static": True})

    def check_schedules(self, t: Any, iterations: Any) -> None:
        """See `Traversal.check_schedules`."""
        if not isinstance(self.exploration, SCHEDULES) or not is_concrete(self.exploration, t, iterations):
            return
        if np.ndim(t) or not iterations:
            return
        for step in sorted({int(t) + 1, int(t) + int(iterations)}):
            _require_exploration(self.exploration(jnp.asarray(float(step))), f" at t = {step}")

    def init(self, tree: GameTree) -> tuple[Baseline, ...]:
        """Baselines of everyone's payoffs, or nothing."""
        return () if self.baseline is None else self.baseline.init(tree)

    def regrets(
        self, tree: GameTree, player: int, strategy: Strategy, stored: Stored | None, sampling: SamplingState, t: Array
    ) -> tuple[Array, SamplingState]:
        """See `Traversal.regrets`."""
        seed = randomness.words(sampling.key, t, player)
        exploration = jnp.asarray(at(self.exploration, t.astype(tree.dtype)), tree.dtype)
        episodes = outcome.Episodes(
            tree, player, seed, _cumulative(tree, strategy), _probabilities(tree, strategy), exploration
        )
        memory = sampling.memory
        if self.baseline is not None:
            mine = memory[player]
            episodes = dataclasses.replace(
                episodes, baseline=mine.mean(), per_history=self.baseline.per_history, keeps_leaves=True
            )
        values, visited, leaves = episodes.run(self.batch)
        if self.baseline is not None:
            sums, weights = episodes.returns(leaves, mine.sums.shape[0])
            memory = (*memory[:player], mine.after(self.baseline.decay, sums, weights), *memory[player + 1 :])
        regrets = regrets_of_values(tree.treeplexes[player], values, strategy[player])
        return regrets, sampling._replace(visited=sampling.visited.add(visited), memory=memory)


def external_sampling(
    batch: int = 256,
    *,
    pruning: ProbabilisticPruning | SafePruning | None = None,
    baseline: ControlVariate | None = None,
) -> ExternalSampling:
    """External sampling: draws the others' actions and chance, walks every action of the player being updated.

    Lanctot et al. 2009. In each iteration every player updates once, from the mean over `batch` walks with the
    strategies of this iteration. A walk costs what it visits. Besides, an iteration passes over the tables of all
    information sets once, to discount and to match regrets, and a step of the walks has a cost of its own: choose the
    batch large enough that both are little. Measured on Leduc poker, one walk of each player takes 4.6, 2.4 and 1.5
    microseconds in batches of 256, 1,024 and 4,096.

    Averages weight each iterate by the player's own reach, exactly. Information sets that were never visited have no
    regret, are played uniformly and come out uniform wherever they count for nothing else.

    Args:
      batch: walks of each player and iteration.
      pruning: `safe_pruning()`, `probabilistic_pruning()`, or None to walk every action.
      baseline: `control_variate()`, or None. It is learnt from as many single plays besides.

    Raises:
      OptionError: an argument makes no sense.
    """
    check_pruning(pruning)
    check_baseline(baseline)
    return ExternalSampling(_batch(batch), pruning, baseline)


def chance_sampling(chance_samples: int = 1, *, batch: int = 1, public: bool = False) -> ChanceSampling:
    """Chance sampling: draws chance's outcomes, walks every action of all players.

    Zinkevich et al. 2007. With two or more `chance_samples` every chance move that a walk comes to is drawn so many
    times, independently, and the results are averaged. A walk costs what it visits; histories that an opponent's
    strategy never reaches are not visited.

    Args:
      chance_samples: k, how many outcomes are drawn at each chance move.
      batch: walks of each player and iteration.
      public: public chance sampling (Johanson et al. 2012): only outcomes that everybody sees at once are drawn, such
        as the cards of a board; of the others, such as private hands, all are walked, by their probability.

    Raises:
      OptionError: an argument makes no sense.
    """
    if not isinstance(public, bool):
        raise OptionError(f"public has to be True or False, not {public!r}")
    return ChanceSampling(_batch(batch), integer("chance_samples", chance_samples, 1, 64), public)


def outcome_sampling(
    exploration: Hyperparameter = 0.6, *, batch: int = 256, baseline: ControlVariate | None = None
) -> OutcomeSampling:
    """Outcome sampling: single plays, weighted by how likely they were drawn.

    Lanctot et al. 2009. The player being updated draws its action uniformly with probability `exploration`, else from
    its strategy; the others and chance draw from theirs. The payoff counts 1 / (probability with which the player's
    own actions were drawn), which makes the regrets unbiased at every depth.

    Memory beside the tables: one history per play of a pass, whatever the size of the tree.

    Args:
      exploration: above 0 and at most 1, or a schedule of t.
      batch: plays of each player and iteration.
      baseline: `control_variate()`, or None.

    Raises:
      OptionError: an argument makes no sense.
    """
    exploration = hyperparameter("exploration", exploration)
    if not isinstance(exploration, SCHEDULES) and is_concrete(exploration):
        _require_exploration(exploration, "")
    check_baseline(baseline)
    return OutcomeSampling(exploration, baseline, _batch(batch))


def _require_exploration(value: Any, when: str) -> None:
    number = np.asarray(value)
    # The leaves of a batch, which a vmap takes apart, all have to make sense.
    if not np.all((number > 0) & (number <= 1)):
        raise OptionError(f"exploration has to be above 0 and at most 1, not {value}{when}")


def check_pruning(pruning: Any) -> None:
    """Refuses what is none."""
    if pruning is not None and not isinstance(pruning, ProbabilisticPruning | SafePruning):
        raise OptionError(f"pruning has to be safe_pruning(), probabilistic_pruning() or None, not {pruning!r}")


def check_baseline(baseline: Any) -> None:
    """Refuses what is none."""
    if baseline is not None and not isinstance(baseline, ControlVariate):
        raise OptionError(f"baseline has to be control_variate() or None, not {baseline!r}")


def _batch(value: Any) -> int:
    return integer("batch", value, 1, 2**24)
