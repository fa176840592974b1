"""Solving parts of a game in one call."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxcfr.analytics import require_constant_sum
from jaxcfr.errors import OptionError, SubgameError
from jaxcfr.profile import Profile
from jaxcfr.regret.variants import RegretVariant, dcfr_plus
from jaxcfr.solve import Updates, average_strategy, solve
from jaxcfr.subgames.blueprint import Blueprint
from jaxcfr.subgames.depth import LeafValues
from jaxcfr.subgames.part import Assembly
from jaxcfr.subgames.public import PublicSubgame
from jaxcfr.subgames.resolving import ResolvingGame, Safety
from jaxcfr.subgames.solved import SolvedSubgame
from jaxcfr.subgames.subgame import Subgame
from jaxcfr.subgames.terminals import TerminalFunction
from jaxcfr.tree.build import build_tree
from jaxcfr.tree.convert import uniform_strategy
from jaxcfr.tree.game_tree import GameTree, Strategy
from jaxcfr.tree.lower import lower
from jaxcfr.tree.nodes import CHANCE
from jaxcfr.tree.payoffs import PayoffTable


def solve_subgame(
    game: Any,
    blueprint: Blueprint | Profile,
    path: Sequence[Hashable],
    iterations: int = 1000,
    variant: RegretVariant | None = None,
    *,
    safety: Safety = "resolve",
    opponent_values: Any = None,
    closure: str | None = None,
    terminal_fn: TerminalFunction | None = None,
    updates: Updates = "alternating",
) -> SolvedSubgame:
    """Solves the closed part of a game around a history again, safely unless told otherwise.

    The same as `Subgame.public(game, blueprint, path, ...).solve(iterations, variant, ...)`, where the arguments are
    explained.
    """
    subgame = Subgame.public(game, blueprint, path, closure=closure, terminal_fn=terminal_fn)
    return subgame.solve(iterations, variant, safety=safety, opponent_values=opponent_values, updates=updates)


def solve_subgame_depth_limited(
    game: Any,
    blueprint: Blueprint | Profile,
    path: Sequence[Hashable],
    max_depth: int,
    iterations: int = 1000,
    variant: RegretVariant | None = None,
    *,
    leaf_values: LeafValues = None,
    safety: Safety = "resolve",
    opponent_values: Any = None,
    closure: str | None = None,
    terminal_fn: TerminalFunction | None = None,
    updates: Updates = "alternating",
) -> SolvedSubgame:
    """As `solve_subgame`, but only `max_depth` plies below the roots; for `leaf_values` see `Subgame.public`."""
    subgame = Subgame.public(
        game,
        blueprint,
        path,
        closure=closure,
        max_depth=max_depth,
        leaf_values=leaf_values,
        terminal_fn=terminal_fn,
    )
    return subgame.solve(iterations, variant, safety=safety, opponent_values=opponent_values, updates=updates)


def solve_subgame_plain(
    inner: Any,
    iterations: int = 1000,
    variant: RegretVariant | None = None,
    *,
    terminal_fn: TerminalFunction | None = None,
    updates: Updates = "alternating",
) -> Blueprint:
    """Solves the game from a history on for itself, as if it began there: right where everybody knows the history.

    Args:
      inner: the history, of any kind but terminal; two-player constant-sum.
      iterations, variant, updates: as in `jaxcfr.solve`.
      terminal_fn: called with every terminal history; returns payoffs that take the place of its own, or None.

    Returns:
      The solution, by the keys of the real game; `continuation_value(inner, solution)` is what it is worth.

    Raises:
      SubgameError: the play has ended there.
      NotTwoPlayerConstantSumError: another number of players, or a general-sum game.
    """
    lowered = lower(inner)
    require_constant_sum(lowered.tree, "solving a part of a game", "solve the whole game instead")
    if lowered.tree.num_histories == 1:
        raise SubgameError(f"{lowered.name}: the play has ended at {inner!r}: nothing to solve")
    start = Blueprint(inner, lowered, uniform_strategy(lowered.tree)).with_terminals(terminal_fn)
    variant = dcfr_plus() if variant is None else variant
    state = solve(start.lowered.tree, variant, iterations, updates=updates)
    strategy = average_strategy(start.lowered.tree, state)
    return Blueprint(inner, start.lowered, strategy, variant=variant, iterations=int(state.t))


def solve_together(
    subgames: Sequence[PublicSubgame],
    iterations: int = 1000,
    variant: RegretVariant | None = None,
    *,
    safety: Safety = "resolve",
    updates: Updates = "alternating",
) -> list[SolvedSubgame]:
    """Solves several parts of a game at once, in one program: the same solutions, up to rounding, in less time.

    All their games are laid side by side in one tree, whatever their shapes.

    Args:
      subgames: closed parts.
      iterations, variant, updates: as in `jaxcfr.solve`.
      safety: as in `PublicSubgame.solve`.

    Raises:
      SubgameError: there is nothing to solve, or nobody gets to one of the parts, or one has a value function, which
        is solved alone.
      OptionError: something else than parts is given.
    """
    if not isinstance(subgames, Sequence) or not all(isinstance(subgame, PublicSubgame) for subgame in subgames):
        raise OptionError(f"solve_together needs a list of parts made by Subgame.public, not {subgames!r}")
    variant = dcfr_plus() if variant is None else variant
    games = [subgame.games(safety) for subgame in subgames]
    for subgame, own in zip(subgames, games, strict=True):
        if not own:
            raise SubgameError(f"{subgame!r}: neither player gets there by its own strategy")
        if not all(isinstance(game.tree.payoffs, PayoffTable) for game in own):
            raise SubgameError(f"{subgame!r}: a part with a value function has to be solved alone")
    everything = [game for own in games for game in own]
    if not everything:
        raise SubgameError("solve_together needs at least one subgame")
    tree = side_by_side([game.tree for game in everything])
    strategy = average_strategy(tree, solve(tree, variant, iterations, updates=updates))
    waiting = iter(_apart(tree, strategy, everything))
    return [
        SolvedSubgame(
            subgame.blueprint, subgame.part, own, [next(waiting) for _ in own], variant=variant, iterations=iterations
        )
        for subgame, own in zip(subgames, games, strict=True)
    ]


def side_by_side(trees: Sequence[GameTree]) -> GameTree:
    """One tree whose root leads to several two-player games, each with weight 1, so that none sees the others.

    The information sets of the first come first, then those of the second, and so on.
    """
    assembly = Assembly()
    top = assembly.add(CHANCE, -1)
    infosets, leaves = [0, 0], 0
    payoffs: list[np.ndarray] = []
    num_actions: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for tree in trees:
        histories = tree.histories
        assert histories is not None
        player = np.asarray(histories.player)
        parent = assembly.size + np.asarray(histories.parent, np.int64)
        parent[0] = top[0]
        offset = np.select([player == 0, player == 1], infosets, 0)
        terminal = np.asarray(histories.terminal)
        row = np.where(terminal >= 0, leaves + terminal, -1)
        chance = np.asarray(histories.chance, np.float64)
        assembly.add(player, parent, np.asarray(histories.infoset) + offset, chance, row)
        payoffs.append(np.asarray(tree.terminal_payoffs, np.float64))
        leaves += tree.num_terminals
        for p in range(2):
            num_actions[p].append(np.asarray(tree.treeplexes[p].num_actions))
            infosets[p] += tree.num_infosets[p]
    nodes, ends = assembly.finish((np.concatenate(num_actions[0]), np.concatenate(num_actions[1])))
    nodes = dataclasses.replace(nodes, payoffs=np.concatenate(payoffs)[ends.row])
    return build_tree(nodes, dtype=trees[0].dtype, histories=False, general_sum=not trees[0].constant_sum)


def _apart(tree: GameTree, strategy: Strategy, games: Sequence[ResolvingGame]) -> list[Strategy]:
    """The strategies of the games that lie side by side in a tree."""
    result: list[list[Any]] = [[] for _ in games]
    for player in range(2):
        values = np.asarray(strategy[player])[tree.treeplexes[player].sequence_indices()[0]]
        start = 0
        for game, own in zip(games, result, strict=True):
            treeplex = game.tree.treeplexes[player]
            indices, _ = treeplex.sequence_indices()
            flat = np.zeros(treeplex.size, tree.dtype)
            flat[indices] = values[start : start + len(indices)]
            start += len(indices)
            own.append(jnp.asarray(flat))
    return [tuple(own) for own in result]
