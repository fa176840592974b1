"""Safe re-solving: the closed part of a game around a history, and the games that are solved in its place."""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxcfr.analytics import counterfactual_best_response, require_constant_sum
from jaxcfr.errors import OptionError, SubgameError
from jaxcfr.games.base import format_path
from jaxcfr.regret.variants import RegretVariant
from jaxcfr.solve import Updates
from jaxcfr.subgames.blueprint import Blueprint, as_blueprint
from jaxcfr.subgames.depth import LeafValues, PublicLeaves, check_depth, continuation_of, public_leaves, with_function
from jaxcfr.subgames.part import Part, part_of, root_labels
from jaxcfr.subgames.resolving import (
    TERMINATE_OR_FOLLOW,
    ResolvingGame,
    Safety,
    build_resolving_game,
    check_safety,
)
from jaxcfr.subgames.solved import SolvedSubgame, solve_games
from jaxcfr.tree.nodes import TERMINAL

UNREACHABLE = 1e12
"""A part reached with less than this many times the smallest number of the dtype counts as never reached."""


class Roots(NamedTuple):
    """The roots of a part, as the opponent of a player who solves it again sees them.

    Attributes:
      part: the part, without the roots of information sets that the player's own reach leaves out.
      label: `[R]`, the opponent's information set that each root belongs to, counted from 0.
      reach: `[R]`, the reach of the roots by everyone but the opponent.
      values: `[n]`, the opponent's counterfactual best-response values of these information sets.
    """

    part: Part
    label: np.ndarray
    reach: np.ndarray
    values: np.ndarray


class PublicSubgame:
    """A part of a game that is closed under descendants and under what both players know.

    Made by `Subgame.public` or `PublicSubgame.at`.

    Attributes:
      blueprint: the strategy of the whole game.
      path: of the history it was made around.
      closure: "observation" or "derived", which of the two it was closed under.
      inside: `[N]` bool, the histories of the whole game that belong to it.
      part: them, down to `max_depth` plies below the roots.
      max_depth: None for all.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        row: int,
        path: tuple[Hashable, ...],
        closure: str | None,
        max_depth: int | None,
        leaf_values: LeafValues,
    ) -> None:
        """Not called by users."""
        require_constant_sum(blueprint.lowered.tree, "solving a part of a game", "solve the whole game instead")
        whole = blueprint.whole
        self.blueprint = blueprint
        self.path = path
        self.row = row
        self.classes, self.closure = whole.knowledge(closure)
        self.inside = whole.close(row, self.classes)
        self.max_depth = max_depth
        self.part = part_of(whole, self.inside, max_depth)
        self._leaf_values = leaf_values
        self._roots: dict[int, Roots] = {}

    @staticmethod
    def at(
        game: Any,
        blueprint: Any,
        path: Sequence[Hashable],
        *,
        closure: str | None = None,
        max_depth: int | None = None,
        leaf_values: LeafValues = None,
    ) -> PublicSubgame:
        """The smallest closed part that holds the history at the end of a path; see `Subgame.public`."""
        blueprint = as_blueprint(game, blueprint)
        row, _ = blueprint.whole.step_along(path)
        if blueprint.whole.nodes.player[row] == TERMINAL:
            raise SubgameError(f"{blueprint.whole.name}: the play has ended at {format_path(path)}: nothing to solve")
        return PublicSubgame(blueprint, row, tuple(path), closure, check_depth(max_depth, leaf_values), leaf_values)

    def __repr__(self) -> str:
        return (
            f"PublicSubgame({self.blueprint.whole.name!r}, around {format_path(self.path)}, closed under "
            f"{self.closure}: {self.num_roots} roots, {self.num_histories:,} histories)"
        )

    @property
    def num_roots(self) -> int:
        return len(self.part.roots)

    @property
    def num_histories(self) -> int:
        return len(self.part.rows)

    @functools.cached_property
    def root_paths(self) -> tuple[tuple[Hashable, ...], ...]:
        """The paths of the roots."""
        return tuple(self.blueprint.whole.path_to(int(row)) for row in self.part.rows[self.part.roots])

    @property
    def infosets(self) -> tuple[np.ndarray, np.ndarray]:
        """Per player, the numbers of its information sets in it."""
        return self.part.infosets(0), self.part.infosets(1)

    def roots(self, player: int) -> Roots | None:
        """The roots as the opponent of `player` sees them; None where the player's strategy never gets there."""
        if player not in (0, 1) or isinstance(player, bool):
            raise OptionError(f"player has to be 0 or 1, not {player!r}")
        if player not in self._roots:
            found = self._make_roots(player)
            if found is None:
                return None
            self._roots[player] = found
        return self._roots[player]

    def _make_roots(self, player: int) -> Roots | None:
        whole, opponent = self.blueprint.whole, 1 - player
        rows = self.part.rows[self.part.roots]
        reach = self.blueprint.reaches[2][rows] * self.blueprint.reaches[player][rows]
        dtype = whole.lowered.tree.dtype
        largest = float(np.abs(whole.nodes.payoffs).max())
        if reach.sum() * max(largest, 1e-300) < UNREACHABLE * np.finfo(dtype).tiny:
            return None
        label = self._labels(opponent)
        count = int(label.max()) + 1
        total = np.bincount(label, reach, count)
        kept = total > 0
        values = np.bincount(label, reach * self.blueprint.best_values(opponent)[rows], count)
        part = self.part
        if not kept.all():
            gone = np.zeros(len(self.inside), bool)
            gone[rows[~kept[label]]] = True
            whole.descend(gone)
            part = part_of(whole, self.inside & ~gone, self.max_depth)
        number = np.cumsum(kept) - 1
        chosen = kept[label]
        return Roots(part, number[label[chosen]], reach[chosen], values[kept])

    def _labels(self, opponent: int) -> np.ndarray:
        """`[R]`, the opponent's information sets at the roots, counted in the order of their first roots."""
        whole, part = self.blueprint.whole, self.part
        rows = part.rows[part.roots]
        known = np.stack([self.classes[opponent][rows], whole.sequence[opponent][rows]])
        return root_labels(part if self.max_depth is None else part_of(whole, self.inside), known, opponent)

    def allowances(self, player: int) -> np.ndarray:
        """`[n]`, what the opponent's root information sets may take of the gifts on the way to them."""
        roots = self._require_roots(player)
        whole, opponent = self.blueprint.whole, 1 - player
        rows = roots.part.rows[roots.part.roots]
        share = self.blueprint.gifts[opponent][whole.sequence[opponent][rows]]
        allowances: np.ndarray = np.bincount(roots.label, roots.reach * share, len(roots.values))
        return allowances

    def _require_roots(self, player: int) -> Roots:
        roots = self.roots(player)
        if roots is None:
            raise SubgameError(
                f"{self.blueprint.whole.name}: player {player} never gets to {format_path(self.path)} by its own "
                "strategy and chance, so that it has nothing to solve again there"
            )
        return roots

    def game(self, player: int, safety: Safety = "resolve", opponent_values: Any = None) -> ResolvingGame:
        """The game that `player` solves to get its strategy for this part.

        Args:
          player: 0 or 1.
          safety: "resolve", "maxmargin" or "reach".
          opponent_values: `[n]`, the opponent's values of its root information sets, weighted with the reach of
            everyone else as counterfactual values are, in chips of the whole game and in the order of `roots(player)`;
            None for its counterfactual best-response values, which with a depth limit end there.

        Raises:
          SubgameError: the player never gets there, or the values do not fit.
        """
        if check_safety(safety) in ("unsafe", "shift"):
            raise OptionError(f'safety "{safety}" makes one game for both players: see joint_game')
        roots = self._require_roots(player)
        values = roots.values
        if opponent_values is None and roots.part.cut_off.any():
            values = self._limited_values(player, roots)
        elif opponent_values is not None:
            try:
                values = np.asarray(opponent_values, np.float64)
            except (TypeError, ValueError):
                values = np.array(np.nan)
            if values.shape != roots.values.shape or not np.all(np.isfinite(values)):
                raise SubgameError(
                    f"opponent_values has to be {len(roots.values)} finite numbers, one for each root information set "
                    f"of player {1 - player}, not {reprlib.repr(opponent_values)}"
                )
        if safety == "reach":
            values = values + self.allowances(player)
        return self._build(
            roots.part, safety, (player,), 1 - player, label=roots.label, root_reach=roots.reach, values=values
        )

    def _limited_values(self, player: int, roots: Roots) -> np.ndarray:
        """As `roots.values`, where the opponent's best response ends at the depth limit."""
        opponent = 1 - player
        game = self._build(
            roots.part,
            "resolve",
            (player,),
            opponent,
            label=roots.label,
            root_reach=roots.reach,
            values=np.zeros(len(roots.values)),
        )
        treeplexes = self.blueprint.lowered.tree.treeplexes
        rows: list[list[Any]] = []
        for p in range(2):
            indices, offsets = treeplexes[p].sequence_indices()
            given = self.blueprint.whole.rescaled(p, self.blueprint.strategy)
            own: list[Any] = [given[indices[offsets[i] : offsets[i + 1]]] for i in game.numbers[p]]
            added = game.lowered.actions[p][len(own) :]
            own += [[0.0, 1.0] if menu == TERMINATE_OR_FOLLOW else [1.0] + [0.0] * (len(menu) - 1) for menu in added]
            rows.append(own)
        response = counterfactual_best_response(game.tree, game.lowered.strategy(rows), opponent)
        first = np.asarray(game.tree.treeplexes[opponent].first)
        stride = np.asarray(game.tree.treeplexes[opponent].stride)
        menus = game.lowered.actions[opponent]
        follow = [first[i] + stride[i] for i in range(len(menus)) if menus[i] == TERMINATE_OR_FOLLOW]
        values: np.ndarray = np.asarray(response.values.actions, np.float64)[follow]
        return values

    def joint_game(self, safety: Safety, opponent: int | None = None) -> ResolvingGame:
        """The one game that stands for both players without any guarantee.

        Args:
          safety: "unsafe" (the roots are dealt by everyone's reach) or "shift" (by all but the opponent's, whose
            payoffs are shifted, see `Subgame.at`).
          opponent: for "shift", by default the player who does not act at the end of the path.

        Raises:
          SubgameError: the blueprint never gets there, or chance acts at the end of the path and no opponent is given.
        """
        whole, rows = self.blueprint.whole, self.part.rows[self.part.roots]
        label = np.zeros(len(rows), np.int64)
        if check_safety(safety) == "unsafe":
            reach = self.blueprint.reaches[:, rows].prod(0)
            if (
                not reach.sum() * np.abs(whole.nodes.payoffs).max()
                > UNREACHABLE * np.finfo(whole.lowered.tree.dtype).tiny
            ):
                raise SubgameError(
                    f"{whole.name}: the blueprint never gets to {format_path(self.path)}, and the unsafe way needs its "
                    'reach: use safety="resolve"'
                )
            return self._build(self.part, safety, (0, 1), -1, label=label, root_reach=reach, values=np.zeros(1))
        if safety != "shift":
            raise OptionError(f'safety "{safety}" makes a game for each player: see game')
        if opponent is None:
            actor = int(whole.nodes.player[self.row])
            if actor < 0:
                raise SubgameError(
                    f"chance acts at {format_path(self.path)}: say whose payoffs to shift: opponent=0 or 1"
                )
            opponent = 1 - actor
        reach = self.blueprint.reaches[2][rows] * self.blueprint.reaches[1 - opponent][rows]
        if not reach.sum() > 0:
            raise SubgameError(f"{whole.name}: player {1 - opponent} never gets to {format_path(self.path)}")
        values = self.blueprint.values[rows, opponent]
        return self._build(self.part, safety, (0, 1), opponent, label=label, root_reach=reach, values=values)

    def _build(
        self, part: Part, safety: Safety, players: tuple[int, ...], opponent: int, **numbers: np.ndarray
    ) -> ResolvingGame:
        whole = part.whole
        edges = np.ones(len(self.inside))
        if opponent >= 0:
            below = 1 + np.flatnonzero(whole.nodes.player[whole.nodes.parent[1:]] == opponent)
            edges[below] = self.blueprint.edges[below]
        payoffs = np.zeros((len(self.inside), 2))
        payoffs[whole.nodes.player == TERMINAL] = whole.nodes.payoffs
        continuation = None
        if part.cut_off.any():
            continuation = continuation_of(self.blueprint, self._leaf_values, opponent, part, self.classes)
        game = build_resolving_game(
            part,
            safety,
            players=players,
            opponent=opponent,
            opponent_edges=edges,
            terminal_payoffs=payoffs,
            continuation=continuation,
            name=f"{whole.name} from {format_path(self.path)} on, {safety}",
            dtype=whole.lowered.tree.dtype,
            **numbers,
        )
        if not callable(self._leaf_values) or not part.cut_off.any():
            return game
        if safety == "shift":
            raise SubgameError('a value function gives no shifted payoffs: use another safety than "shift"')
        return with_function(game, self._leaf_values, self.classes, self.blueprint.reaches)

    def leaves(self, player: int, safety: Safety = "resolve") -> PublicLeaves:
        """The public leaves of the game of `player`, in the order in which a value function gets them."""
        return public_leaves(self.game(player, safety), self.classes)

    def games(
        self, safety: Safety = "resolve", opponent_values: Any = None, players: tuple[int, ...] = (0, 1)
    ) -> tuple[ResolvingGame, ...]:
        """All games that `solve` solves: one for each player who gets here, or the joint one.

        Args:
          safety: see `solve`.
          opponent_values: a pair: for the game of player 0, and for that of player 1; each as in `game`, or None.
          players: who wants a strategy.
        """
        if not isinstance(players, (tuple, list)) or tuple(players) not in ((0,), (1,), (0, 1), (1, 0)):
            raise OptionError(f"players has to be (0,), (1,) or (0, 1): whose strategies to solve for, not {players!r}")
        if check_safety(safety) in ("unsafe", "shift"):
            if opponent_values is not None:
                raise OptionError(f'opponent_values have no place in safety="{safety}"')
            return (self.joint_game(safety),)
        given = (None, None) if opponent_values is None else opponent_values
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise OptionError("opponent_values has to be a pair: for the game of player 0 and for that of player 1")
        return tuple(self.game(p, safety, given[p]) for p in players if self.roots(p) is not None)

    def solve(
        self,
        iterations: int = 1000,
        variant: RegretVariant | None = None,
        *,
        safety: Safety = "resolve",
        opponent_values: Any = None,
        players: tuple[int, ...] = (0, 1),
        updates: Updates = "alternating",
    ) -> SolvedSubgame:
        """Solves the part again for both players, or for one.

        Args:
          iterations, variant, updates: as in `jaxcfr.solve`.
          safety: what the solution promises.
            "resolve" (default): the re-solving game of Burch, Johanson and Bowling (2014). At each of its root
              information sets the opponent may terminate, for the value that it has under the blueprint, or follow.
              With the default values exploitability rises by at most the re-solving game's own error.
            "maxmargin": Moravcik et al. (2016). The opponent chooses among its root information sets, whose values are
              measured from those of the blueprint: the smallest improvement is made as large as possible.
            "reach": the same with the gifts of Brown and Sandholm (2017) added to what the opponent may have.
            "unsafe": everyone's strategy above is taken for fixed. Nothing is promised, see docs/subgames.md.
            "shift": the payoff shift of `Subgame.at` over this part. Nothing is promised.
          opponent_values: see `games`.
          players: whose strategies to solve for; the other's stays as it is. The last two ways need both.

        Raises:
          SubgameError: nobody gets here by the blueprint.
        """
        games = self.games(safety, opponent_values, players)
        return solve_games(self.blueprint, self.part, games, iterations, variant, updates)
