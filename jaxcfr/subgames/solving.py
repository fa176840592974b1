"""Solving parts of a game in one call."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import jax
import numpy as np

from jaxcfr.errors import SubgameError
from jaxcfr.profile import Profile
from jaxcfr.regret.variants import RegretVariant, dcfr_plus
from jaxcfr.solve import Updates, average_strategy, solve
from jaxcfr.subgames.blueprint import Blueprint
from jaxcfr.subgames.depth import LeafValues
from jaxcfr.subgames.public import PublicSubgame
from jaxcfr.subgames.resolving import ResolvingGame, Safety
from jaxcfr.subgames.solved import SolvedSubgame
from jaxcfr.subgames.subgame import Subgame
from jaxcfr.subgames.terminals import TerminalFunction
from jaxcfr.tree.convert import uniform_strategy
from jaxcfr.tree.game_tree import GameTree, Strategy, stack
from jaxcfr.tree.lower import lower


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
    """
    lowered = lower(inner)
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
    """Solves several parts of a game at once: those whose games have the same shape run as one program.

    Args:
      subgames: closed parts of the same game.
      iterations, variant, updates: as in `jaxcfr.solve`.
      safety: as in `PublicSubgame.solve`.

    Raises:
      SubgameError: nobody gets to one of them.
    """
    variant = dcfr_plus() if variant is None else variant
    games = [subgame.games(safety) for subgame in subgames]
    for subgame, own in zip(subgames, games, strict=True):
        if not own:
            raise SubgameError(f"{subgame!r}: neither player gets there by its own strategy")
    solutions: list[list[Strategy]] = [[()] * len(own) for own in games]
    groups: dict[Any, list[tuple[int, int]]] = {}
    for i, own in enumerate(games):
        for j, game in enumerate(own):
            groups.setdefault(_shape(game), []).append((i, j))
    for members in groups.values():
        trees = stack([games[i][j].tree for i, j in members])
        strategies = _solve_stack(trees, variant, iterations, updates)
        for number, (i, j) in enumerate(members):
            solutions[i][j] = jax.tree.map(lambda values, n=number: values[n], strategies)
    return [
        SolvedSubgame(subgame.blueprint, subgame.part, own, solved, variant=variant, iterations=iterations)
        for subgame, own, solved in zip(subgames, games, solutions, strict=True)
    ]


def _solve_stack(trees: GameTree, variant: RegretVariant, iterations: int, updates: Updates) -> Strategy:
    def one(tree: GameTree) -> Strategy:
        return average_strategy(tree, solve(tree, variant, iterations, updates=updates))

    return jax.vmap(one)(trees)


def _shape(game: ResolvingGame) -> Any:
    leaves, structure = jax.tree.flatten(game.tree)
    return structure, tuple((np.shape(leaf), leaf.dtype) for leaf in leaves)
