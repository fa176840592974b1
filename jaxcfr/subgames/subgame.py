"""Node-rooted subgames: the game from one history on, with the payoffs of one player shifted."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.analytics import require_constant_sum
from jaxcfr.errors import OptionError, SubgameError, SubgameWarning
from jaxcfr.games.base import format_path, game_name
from jaxcfr.profile import Profile
from jaxcfr.regret.variants import RegretVariant
from jaxcfr.solve import Updates
from jaxcfr.subgames.blueprint import Blueprint, as_blueprint
from jaxcfr.subgames.depth import LeafValues, check_depth, continuation_of
from jaxcfr.subgames.part import part_of
from jaxcfr.subgames.public import PublicSubgame
from jaxcfr.subgames.resolving import ResolvingGame, build_resolving_game
from jaxcfr.subgames.solved import SolvedSubgame, solve_games
from jaxcfr.subgames.terminals import TerminalFunction
from jaxcfr.tree.game_tree import GameTree
from jaxcfr.tree.lower import LoweredGame, lower
from jaxcfr.tree.nodes import TERMINAL


class Subgame:
    """The game from one history h on, in which one player o's payoffs are shifted by what it would give up above.

    At every leaf z, o gets `u_o(z) + (b_o(z) - 1) * V_o(h)`, where `b_o(z)` is o's reach from h to z under the
    blueprint and `V_o(h)` its expected payoff at h; the other player gets its own payoff. All of it is arrays: the
    tree's payoffs can be replaced, and every solve of a tree of the same shape runs the same compiled program.

    What it does not promise: one history is rarely closed under information sets, and where it is not, the solution
    knows what the players do not. In Kuhn poker, from a blueprint of NashConv 0.00008 (`cfr_plus`), composing it gives
    NashConv 0.0001 to 0.44, depending on the node, and the same shift over the closed part still gives 0.07 to 0.35;
    other regret variants do no better. `Subgame.public` is the safe way. See docs/subgames.md.

    Attributes:
      game: the shifted game, with its tree, keys and pieces.
      opponent: o.
      v_o: `V_o(h)`, in chips.
      is_closed: whether no information set has histories both inside and outside; None where only a profile is known.
      closed_under: of "information sets", "observation" and "derived", what the histories are closed under.
      straddling: where they are not closed, a player and the key of an information set that has some outside.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        inside: np.ndarray,
        opponent: int,
        v_o: float,
        name: str,
        max_depth: int | None,
        leaf_values: LeafValues,
        closed_under: tuple[str, ...] | None,
        straddling: tuple[int, Hashable] | None,
    ) -> None:
        """Not called by users."""
        require_constant_sum(blueprint.lowered.tree, "solving a part of a game", "solve the whole game instead")
        whole = blueprint.whole
        if opponent not in (0, 1) or isinstance(opponent, bool):
            raise OptionError(f"opponent has to be 0 or 1, not {opponent!r}")
        if not isinstance(v_o, (int, float, np.integer, np.floating)) or not np.isfinite(v_o):
            raise OptionError(f"v_o has to be the opponent's expected payoff, a finite number, not {v_o!r}")
        if callable(leaf_values):
            raise OptionError(
                "a value function needs the ranges of a whole public state, which one history is not: use "
                "Subgame.public(game, blueprint, path, max_depth=..., leaf_values=...)"
            )
        self.blueprint = blueprint
        self.opponent = opponent
        self.v_o = float(v_o)
        self.max_depth = max_depth
        self.closed_under = closed_under
        self.straddling = straddling
        part = part_of(whole, inside, max_depth)
        edges = np.ones(len(inside))
        below = 1 + np.flatnonzero(whole.nodes.player[whole.nodes.parent[1:]] == opponent)
        edges[below] = blueprint.edges[below]
        payoffs = np.zeros((len(inside), 2))
        payoffs[whole.nodes.player == TERMINAL] = whole.nodes.payoffs
        continuation = None
        if part.cut_off.any():
            continuation = continuation_of(blueprint, leaf_values, opponent, part, whole.knowledge(None)[0])
        self.game: ResolvingGame = build_resolving_game(
            part,
            "shift",
            players=(0, 1),
            opponent=opponent,
            label=np.zeros(1, np.int64),
            root_reach=np.ones(1),
            values=np.array([self.v_o]),
            opponent_edges=edges,
            terminal_payoffs=payoffs,
            continuation=continuation,
            name=name,
            dtype=whole.lowered.tree.dtype,
        )

    @classmethod
    def at(
        cls,
        game: Any,
        blueprint: Blueprint | Profile,
        path: Sequence[Hashable],
        *,
        terminal_fn: TerminalFunction | None = None,
    ) -> Subgame:
        """The subgame at the end of a path.

        Args:
          game: the root of the whole game, two-player and constant-sum.
          blueprint: a strategy of it.
          path: actions and outcomes of chance from the root on, to a decision.
          terminal_fn: called with every terminal history; returns payoffs that take the place of its own, or None.

        Raises:
          SubgameError: the path is not one of the game's, or ends where no player acts.
          NotTwoPlayerConstantSumError: another number of players, or a general-sum game.
          ChanceNotEnumerableError: chance can only be sampled.
        """
        return cls._at(game, blueprint, path, terminal_fn, None, None)

    @classmethod
    def new(
        cls,
        inner: Any,
        blueprint: Blueprint | Profile,
        opponent: int,
        v_o: float,
        *,
        terminal_fn: TerminalFunction | None = None,
    ) -> Subgame:
        """The subgame at a history that the caller has stepped to.

        Args:
          inner: the history; a player acts there.
          blueprint: a strategy of the whole game, or a profile that has the information sets below `inner`. With a
            profile it is not known whether the subgame is closed.
          opponent: the player whose payoffs are shifted.
          v_o: its expected payoff at `inner` under the blueprint, in chips.
          terminal_fn: as in `at`.

        Raises:
          SubgameError: no player acts there.
          OptionError: there is no such player, or `v_o` is no number.
          ProfileError: the blueprint lacks an information set.
        """
        return cls._new(inner, blueprint, opponent, v_o, terminal_fn, None, None)

    @classmethod
    def _at(
        cls,
        game: Any,
        blueprint: Any,
        path: Sequence[Hashable],
        terminal_fn: TerminalFunction | None,
        max_depth: int | None,
        leaf_values: LeafValues,
    ) -> Subgame:
        blueprint = as_blueprint(game, blueprint).with_terminals(terminal_fn)
        whole = blueprint.whole
        row, _ = whole.step_along(path)
        player = int(whole.nodes.player[row])
        if player < 0:
            kind = "the play has ended" if player == TERMINAL else "chance moves"
            raise SubgameError(f"{whole.name}: at {format_path(path)} {kind}, but a subgame begins at a decision")
        inside = np.zeros(len(whole.nodes.player), bool)
        inside[row] = True
        whole.descend(inside)
        split = whole.straddling(inside)
        straddling = None if split is None else (split[0], whole.lowered.infoset_keys[split[0]][split[1]])
        closed_under = [] if split else ["information sets"]
        for closure in ("observation", "derived"):
            if closure == "derived" or not isinstance(whole.observed, Exception):
                classes, _ = whole.knowledge(closure)
                if np.array_equal(whole.close(row, classes), inside):
                    closed_under.append(closure)
        return cls(
            blueprint,
            inside,
            1 - player,
            float(blueprint.values[row, 1 - player]),
            f"{whole.name} from {format_path(path)} on, shift",
            max_depth,
            leaf_values,
            tuple(closed_under),
            straddling,
        )

    @classmethod
    def _new(
        cls,
        inner: Any,
        blueprint: Any,
        opponent: int,
        v_o: float,
        terminal_fn: TerminalFunction | None,
        max_depth: int | None,
        leaf_values: LeafValues,
    ) -> Subgame:
        if not isinstance(blueprint, (Blueprint, Profile)):
            raise SubgameError(f"a blueprint has to be a Blueprint or a Profile, not {type(blueprint).__name__}")
        if hasattr(inner, "is_terminal") and (inner.is_terminal() or inner.is_chance()):
            kind = "the play has ended" if inner.is_terminal() else "chance moves"
            raise SubgameError(f"{game_name(inner)}: at {inner!r} {kind}, but a subgame begins at a decision")
        closed_under: tuple[str, ...] | None = None
        straddling = None
        if isinstance(blueprint, Blueprint):
            lowered = lower(inner, dtype=blueprint.lowered.tree.dtype)
            straddling = _straddling_by_key(lowered, blueprint.lowered)
            closed_under = () if straddling else ("information sets",)
            profile = blueprint.profile()
        else:
            lowered, profile = lower(inner), blueprint
        part = Blueprint.from_profile(inner, profile, lowered=lowered).with_terminals(terminal_fn)
        inside = np.ones(lowered.tree.num_histories, bool)
        name = f"{lowered.name} from {inner!r} on, shift"
        return cls(part, inside, opponent, v_o, name, max_depth, leaf_values, closed_under, straddling)

    @staticmethod
    def public(
        game: Any,
        blueprint: Blueprint | Profile,
        path: Sequence[Hashable],
        *,
        closure: str | None = None,
        max_depth: int | None = None,
        leaf_values: LeafValues = None,
        terminal_fn: TerminalFunction | None = None,
    ) -> PublicSubgame:
        """The smallest closed part of a game around the history at the end of a path, to be solved again safely.

        Closed means: with a history it has all that lie below, and all that either player cannot tell from it.

        Args:
          game: the root of the whole game, two-player and constant-sum.
          blueprint: a strategy of it.
          path: actions and outcomes of chance from the root on, to a decision or to chance.
          closure: how what a player knows while it does not act is found: "observation" asks the game
            (`infoset_key(player)`), "derived" takes all for one since the player's last own action, so that a path
            that ends just after a public card closes above that card; None takes the first where the game answers.
          max_depth: leave out what lies more than so many plies below the roots.
          leaf_values: what the histories at that depth are worth. None: their value under the blueprint. "biased": the
            opponent chooses, once per what it knows there, among going on with the blueprint and with copies of its
            strategy that favour one kind of action (multi-valued states, Brown, Sandholm and Amos 2018). Profiles: it
            chooses among going on with each of them. An array `[K, histories, 2]`: among K payoffs of both players,
            for the cut-off histories in the order of `part.rows[part.cut_off]`. A function `f(leaf, (r0, r1)) ->
            (v0, v1)`, traceable by JAX: from the number of a public leaf and both players' ranges there (own reach,
            by what they know, see `leaves`) to their counterfactual values, in every iteration anew.
          terminal_fn: called with every terminal history; returns payoffs that take the place of its own, or None.

        Raises:
          SubgameError: the path is not one of the game's, or the play has ended there.
          NotTwoPlayerConstantSumError: another number of players, or a general-sum game.
          ChanceNotEnumerableError: chance can only be sampled.
        """
        blueprint = as_blueprint(game, blueprint).with_terminals(terminal_fn)
        return PublicSubgame.at(game, blueprint, path, closure=closure, max_depth=max_depth, leaf_values=leaf_values)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.lowered.name!r}, opponent={self.opponent}, v_o={self.v_o:g}, {self.tree!r})"
        )

    @property
    def is_closed(self) -> bool | None:
        return None if self.closed_under is None else "information sets" in self.closed_under

    @property
    def lowered(self) -> LoweredGame:
        """The shifted game with the whole game's keys."""
        return self.game.lowered

    @property
    def tree(self) -> GameTree:
        """The shifted game; not constant-sum, so that `exploitability` raises."""
        return self.game.tree

    def with_shift(self, v_o: float | Array, payoffs: Array | None = None) -> GameTree:
        """The tree for another `V_o(h)`, and other payoffs `[Z, 2]` before the shift; pure, for `jit` and `vmap`."""
        return self.game.with_roots(values=jnp.reshape(jnp.asarray(v_o), (1,)), payoffs=payoffs)

    def solve(
        self,
        iterations: int = 1000,
        variant: RegretVariant | None = None,
        *,
        updates: Updates = "alternating",
    ) -> SolvedSubgame:
        """Solves the shifted game; warns where it is not closed, with an information set that straddles its boundary.

        Args:
          iterations, variant, updates: as in `jaxcfr.solve`.
        """
        if not self.is_closed:
            if self.straddling is None:
                why = "whether it is closed under information sets is not known from a profile alone"
            else:
                player, key = self.straddling
                why = f"information set {key!r} of player {player} has histories inside of it and outside"
            warnings.warn(
                f"{self.lowered.name}: {why}, so that its solution may be worth much less in the whole game; "
                "Subgame.public(game, blueprint, path).solve() is the safe way",
                SubgameWarning,
                stacklevel=2,
            )
        return solve_games(self.blueprint, self.game.part, [self.game], iterations, variant, updates)


class DepthLimitedSubgame(Subgame):
    """A `Subgame` of which only the first plies are solved.

    Histories `max_depth` plies below its root are leaves, worth their value under the blueprint to both players, and
    shifted like all leaves. With `max_depth` at or beyond the true depth it is exactly the `Subgame`.
    """

    @classmethod
    def at(  # type: ignore[override]
        cls,
        game: Any,
        blueprint: Blueprint | Profile,
        path: Sequence[Hashable],
        max_depth: int,
        *,
        leaf_values: LeafValues = None,
        terminal_fn: TerminalFunction | None = None,
    ) -> Subgame:
        """As `Subgame.at`; `max_depth` plies below the node. For `leaf_values` see `Subgame.public`."""
        return cls._at(game, blueprint, path, terminal_fn, _required(max_depth, leaf_values), leaf_values)

    @classmethod
    def new(  # type: ignore[override]
        cls,
        inner: Any,
        blueprint: Blueprint | Profile,
        opponent: int,
        v_o: float,
        max_depth: int,
        *,
        leaf_values: LeafValues = None,
        terminal_fn: TerminalFunction | None = None,
    ) -> Subgame:
        """As `Subgame.new`; `max_depth` plies below the node. For `leaf_values` see `Subgame.public`."""
        return cls._new(inner, blueprint, opponent, v_o, terminal_fn, _required(max_depth, leaf_values), leaf_values)


def _required(max_depth: Any, leaf_values: LeafValues) -> int:
    if max_depth is None:
        raise OptionError("a depth-limited subgame needs max_depth, a positive number of plies")
    checked = check_depth(max_depth, leaf_values)
    assert checked is not None
    return checked


def _straddling_by_key(inner: LoweredGame, whole: LoweredGame) -> tuple[int, Hashable] | None:
    """An information set that has more histories in the whole game than below a history of it."""
    for player in range(whole.tree.num_players):
        counts = []
        for lowered in (inner, whole):
            assert lowered.tree.histories is not None
            own = np.asarray(lowered.tree.histories.player) == player
            numbers = np.asarray(lowered.tree.histories.infoset)[own]
            counts.append(np.bincount(numbers, minlength=lowered.tree.num_infosets[player]))
        for key, here in zip(inner.infoset_keys[player], counts[0].tolist(), strict=True):
            there = whole.infoset_numbers[player].get(key)
            if there is not None and counts[1][there] > here:
                return player, key
    return None
