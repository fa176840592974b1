"""`Blueprint`: a strategy for a whole game, from which its parts are solved again."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxcfr.analytics import counterfactual_best_response, counterfactual_reach
from jaxcfr.errors import ProfileError, SubgameError
from jaxcfr.profile import Profile
from jaxcfr.regret.variants import RegretVariant, dcfr_plus
from jaxcfr.solve import Updates, average_strategy, solve
from jaxcfr.subgames.terminals import TerminalFunction, with_terminals
from jaxcfr.subgames.whole import Whole
from jaxcfr.traversal.sampling import chance_sampling
from jaxcfr.tree.game_tree import Strategy
from jaxcfr.tree.lower import LoweredGame, lower

if TYPE_CHECKING:
    from jaxcfr.abstraction import Abstraction
    from jaxcfr.subgames.solved import SolvedSubgame


class Blueprint:
    """A strategy of both players for a whole game, with the game, so that parts of it can be solved again.

    Made by `train`, `train_abstracted` or `from_profile`; never changes.

    It is said that solving a part again changes nothing for blueprints of the plain CFR family (`dcfr(1.5, 0.0, 2.0)`,
    `cfr_plus()`), while the default `dcfr_plus()`, with its heavy weight on late iterations, may land in another,
    equally good equilibrium. Any variant is accepted here. Measured, the claim does not hold for node-rooted subgames
    that are not closed, whatever the variant: in Kuhn poker, with a blueprint `dcfr(1.5, 0, 2)` of NashConv 0.00014,
    composing the solution of `Subgame.at` gives NashConv up to 0.43, and at 14 of 24 nodes more than 0.07;
    probabilities move by up to 1. What holds for every variant is what safe re-solving promises (`Subgame.public`):
    values are kept, and exploitability does not rise by more than the solve's own error. Strategies come back
    unchanged just where the equilibrium is unique.

    Attributes:
      game: the root of the game.
      lowered: the game, lowered.
      strategy: per player `[L_p]`, in the layout of `lowered.tree`.
      variant, iterations, seed: how it came about, or None.
    """

    def __init__(
        self,
        game: Any,
        lowered: LoweredGame,
        strategy: Strategy,
        *,
        variant: Any = None,
        iterations: int | None = None,
        seed: int | None = None,
    ) -> None:
        """Not called by users."""
        lowered.tree.check_strategy(strategy)
        self.game = game
        self.lowered = lowered
        self.strategy = strategy
        self.variant = variant
        self.iterations = iterations
        self.seed = seed

    def __repr__(self) -> str:
        return f"Blueprint({self.lowered.name!r}, infosets={self.lowered.tree.num_infosets})"

    @staticmethod
    def train(
        game: Any,
        iterations: int = 1000,
        variant: RegretVariant | None = None,
        chance_samples: int | None = None,
        seed: int = 0,
        *,
        updates: Updates = "alternating",
        dtype: Any = None,
    ) -> Blueprint:
        """Solves the whole game.

        Args:
          game: its root.
          iterations: how many.
          variant: the regret variant; None means `dcfr_plus()`.
          chance_samples: how many outcomes are drawn at each chance move in an iteration (`chance_sampling`); None
            walks the whole tree every time, exactly.
          seed: of the draws; recorded with the profile.
          updates: as in `solve`.
          dtype: of the tree.

        Raises:
          OptionError: an argument makes no sense.
          GameError: as in `lower`.
        """
        lowered = lower(game, dtype=dtype)
        variant = dcfr_plus() if variant is None else variant
        traversal = None if chance_samples is None else chance_sampling(chance_samples)
        state = solve(lowered.tree, variant, iterations, traversal=traversal, seed=seed, updates=updates)
        strategy = average_strategy(lowered.tree, state)
        return Blueprint(game, lowered, strategy, variant=variant, iterations=int(state.t), seed=seed)

    @staticmethod
    def from_profile(game: Any, profile: Profile, *, lowered: LoweredGame | None = None) -> Blueprint:
        """A profile as a blueprint of a game.

        Args:
          game: the root.
          profile: has to have all information sets of the game.
          lowered: the game lowered, where it is at hand.

        Raises:
          ProfileError: the profile lacks an information set, or has other actions.
        """
        if not isinstance(profile, Profile):
            raise ProfileError(f"from_profile needs a Profile, not {type(profile).__name__}")
        lowered = lower(game) if lowered is None else lowered
        return Blueprint(
            game,
            lowered,
            profile.to_strategy(lowered),
            variant=profile.variant,
            iterations=profile.iterations,
            seed=profile.seed,
        )

    def profile(self) -> Profile:
        """The strategy by information-set keys."""
        return self._profile

    def into_profile(self) -> Profile:
        """The same as `profile()`, for the end of a chain of calls."""
        return self._profile

    @functools.cached_property
    def _profile(self) -> Profile:
        return Profile.from_strategy(
            self.lowered, self.strategy, variant=self.variant, iterations=self.iterations, seed=self.seed
        )

    def with_terminals(self, terminal_fn: TerminalFunction | None) -> Blueprint:
        """The same strategy for the game with other payoffs at the end of a play.

        Args:
          terminal_fn: called with every terminal history; returns its payoffs, or None to keep them.
        """
        if terminal_fn is None:
            return self
        return Blueprint(self.game, with_terminals(self.whole, terminal_fn), self.strategy, variant=self.variant)

    # What cutting needs

    @functools.cached_property
    def whole(self) -> Whole:
        """The game on the host."""
        return Whole(self.game, self.lowered)

    @functools.cached_property
    def edges(self) -> np.ndarray:
        """`[N]`, the probability of the edge into every history, by chance or whoever acts."""
        return self.whole.edges(self.strategy)

    @functools.cached_property
    def reaches(self) -> np.ndarray:
        """`[P + 1, N]`, what every player, and at last chance, contribute to the reach of every history."""
        return self.whole.reaches(self.strategy)

    @functools.cached_property
    def values(self) -> np.ndarray:
        """`[N, P]`, every player's expected payoff from every history on."""
        return self.whole.values(self.strategy)

    def best_values(self, player: int) -> np.ndarray:
        """`[N]`, what every history is worth to a player whose counterfactual best response meets this strategy."""
        return self._best[player]

    @functools.cached_property
    def _best(self) -> tuple[np.ndarray, ...]:
        values = []
        for player in range(self.lowered.tree.num_players):
            response = counterfactual_best_response(self.lowered.tree, self.strategy, player).strategy
            met = (*self.strategy[:player], response, *self.strategy[player + 1 :])
            values.append(self.whole.values(met)[:, player])
        return tuple(values)

    @functools.cached_property
    def gifts(self) -> tuple[np.ndarray, ...]:
        """Per player `[L_p + 1]`: what it gives away by its sequences, per unit of the others' reach.

        A gift is the counterfactual best-response value of an information set less that of the action taken there
        (Brown and Sandholm 2017, section 5); the number of a sequence is the sum over its actions of gift over
        counterfactual reach. A part of the game that the sequence leads to, with some reach, may take that share of
        it: the shares of all parts together are never more than the gifts.
        """
        result = []
        tree = self.lowered.tree
        reach = counterfactual_reach(tree, self.strategy)
        for player in range(2):
            treeplex = tree.treeplexes[player]
            values = counterfactual_best_response(tree, self.strategy, player).values
            actions, infosets = np.asarray(values.actions, np.float64), np.asarray(values.infosets, np.float64)
            indices, offsets = treeplex.sequence_indices()
            owner = np.repeat(np.arange(len(infosets)), np.diff(offsets))
            others = np.asarray(reach[player], np.float64)[indices]
            gift = np.maximum(infosets[owner] - actions[indices], 0.0)
            share = np.where(others > 0, gift / np.where(others > 0, others, 1.0), 0.0)
            total = np.zeros(treeplex.size + 1)
            parent = np.asarray(treeplex.parent)
            # An information set lies deeper than the one its parent sequence belongs to.
            waiting = parent == treeplex.size
            above = np.zeros(treeplex.size + 1, bool)
            above[treeplex.size] = True
            while waiting.any():
                now = waiting[owner]
                total[indices[now]] = total[parent[owner[now]]] + share[now]
                above[:] = False
                above[indices[now]] = True
                waiting = above[parent]
            result.append(total)
        return tuple(result)

    # Solving parts

    def solve_subgame(
        self,
        path: Sequence[Hashable],
        iterations: int = 1000,
        variant: RegretVariant | None = None,
        **options: Any,
    ) -> SolvedSubgame:
        """Solves the part of the game around a node again, safely unless told otherwise: see `solve_subgame`."""
        from jaxcfr.subgames.solving import solve_subgame

        return solve_subgame(self.game, self, path, iterations, variant, **options)

    def compose(self, solved: SolvedSubgame | Blueprint | Profile) -> Blueprint:
        """This strategy, with the information sets of a solved part replaced.

        Raises:
          ProfileError: the part has an information set that the game has not.
        """
        from jaxcfr.subgames.compose import as_profile

        override = as_profile(solved, "compose")
        composed = Blueprint.from_profile(self.game, self.profile().overlaid(override), lowered=self.lowered)
        if "whole" in self.__dict__:
            composed.__dict__["whole"] = self.whole
        return composed

    @staticmethod
    def train_abstracted(
        game: Any,
        abstraction: Abstraction,
        iterations: int = 1000,
        variant: RegretVariant | None = None,
        *,
        updates: Updates = "alternating",
        dtype: Any = None,
    ) -> Blueprint:
        """Solves the game with fewer actions, and lifts the solution to the game itself.

        Raises:
          ChanceNotEnumerableError: chance can only be sampled.
          GameError: the abstraction breaks a rule, see `Abstracted`.
        """
        from jaxcfr.abstraction import Abstracted, lift

        abstracted = Abstracted(game, abstraction)
        small = Blueprint.train(abstracted, iterations, variant, updates=updates, dtype=dtype)
        return Blueprint.from_profile(game, lift(small.profile(), abstracted, game), lowered=lower(game, dtype=dtype))


def as_blueprint(game: Any, blueprint: Any) -> Blueprint:
    """The blueprint itself, or a profile made one for the game."""
    if isinstance(blueprint, Profile):
        return Blueprint.from_profile(game, blueprint)
    if not isinstance(blueprint, Blueprint):
        raise SubgameError(f"a blueprint has to be a Blueprint or a Profile, not {type(blueprint).__name__}")
    if blueprint.game is game:
        return blueprint
    return Blueprint.from_profile(game, blueprint.profile())
