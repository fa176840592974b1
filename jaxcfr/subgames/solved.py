"""Solutions of parts of a game, and how they are put back."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import numpy as np

from jaxcfr.analytics import nash_conv
from jaxcfr.errors import SubgameError
from jaxcfr.profile import Profile
from jaxcfr.regret.variants import RegretVariant, dcfr_plus
from jaxcfr.solve import SolverState, Updates, average_strategy, solve
from jaxcfr.tree.game_tree import Strategy

if TYPE_CHECKING:
    from jaxcfr.subgames.blueprint import Blueprint
    from jaxcfr.subgames.part import Part
    from jaxcfr.subgames.resolving import ResolvingGame


class SolvedSubgame:
    """The solution of a part of a game.

    Attributes:
      blueprint: the strategy of the whole game that the part was solved against.
      games: what was solved: one game for each player, or one for both.
      strategies: their solutions, in the layout of each game's tree.
      states: the solver's last states, where one was kept.
      variant, iterations: of the solve.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        part: Part,
        games: Sequence[ResolvingGame],
        strategies: Sequence[Strategy],
        *,
        states: Sequence[SolverState] = (),
        variant: RegretVariant | None = None,
        iterations: int | None = None,
    ) -> None:
        """Not called by users."""
        self.blueprint = blueprint
        self.part = part
        self.games = tuple(games)
        self.strategies = tuple(strategies)
        self.states = tuple(states)
        self.variant = variant
        self.iterations = iterations

    def __repr__(self) -> str:
        return f"SolvedSubgame({', '.join(map(repr, self.games))})"

    @functools.cached_property
    def profile(self) -> Profile:
        """The solution by the whole game's information-set keys, of the part's information sets only.

        Information sets that the solve left out, because their owner's own strategy never gets there, have the
        blueprint's strategy.
        """
        whole = self.part.whole.lowered
        strategy = [np.asarray(values).copy() for values in self.blueprint.strategy]
        for game, solution in zip(self.games, self.strategies, strict=True):
            for player, found in game.rows(solution).items():
                treeplex = whole.tree.treeplexes[player]
                indices, offsets = treeplex.sequence_indices()
                for number, row in found.items():
                    strategy[player][indices[offsets[number] : offsets[number + 1]]] = row
        everything = Profile.from_strategy(
            whole, tuple(jax.numpy.asarray(s) for s in strategy), variant=self.variant, iterations=self.iterations
        )
        keys = [[whole.infoset_keys[p][i] for i in self.part.infosets(p).tolist()] for p in range(2)]
        rows = self.part.rows
        depth = np.searchsorted(self.part.whole.level_offsets, rows, side="right")
        leaves = int((self.part.player == -2).sum())
        return everything.restricted(keys, len(rows), leaves, int(depth.max() - depth.min()))

    def nash_convs(self) -> tuple[float, ...]:
        """The NashConv of each solution in the game that was solved, in chips of the whole game: the solve's error.

        With the default opponent values, the sum of both halves is the most that safe re-solving can add to the
        NashConv of the blueprint.
        """
        return tuple(
            float(nash_conv(game.tree, strategy)) for game, strategy in zip(self.games, self.strategies, strict=True)
        )


def solve_games(
    blueprint: Blueprint,
    part: Part,
    games: Sequence[ResolvingGame],
    iterations: int,
    variant: RegretVariant | None,
    updates: Updates,
) -> SolvedSubgame:
    """Solves each of the games, all of them parts of one solution."""
    variant = dcfr_plus() if variant is None else variant
    if not games:
        raise SubgameError(f"{part.whole.name}: neither player gets there by its own strategy: nothing to solve again")
    states = [solve(game.tree, variant, iterations, updates=updates) for game in games]
    strategies = [average_strategy(game.tree, state) for game, state in zip(games, states, strict=True)]
    return SolvedSubgame(
        blueprint, part, games, strategies, states=states, variant=variant, iterations=int(states[0].t)
    )
