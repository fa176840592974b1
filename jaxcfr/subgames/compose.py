"""Putting solutions back, checking them, and what a game is worth from a history on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from jaxcfr.errors import InvariantError, OptionError
from jaxcfr.games.base import action_label, require_enumerable_chance
from jaxcfr.profile import TOLERANCE, Profile
from jaxcfr.subgames.blueprint import Blueprint, as_blueprint
from jaxcfr.subgames.solved import SolvedSubgame

Invariant = Callable[[Any, np.ndarray], bool | None]
"""Called with a history and the probabilities of its actions; returns False, or raises, where something is wrong."""


def as_profile(solved: Any, what: str) -> Profile:
    """The profile of a solution, a blueprint, or itself."""
    if isinstance(solved, SolvedSubgame):
        return solved.profile
    if isinstance(solved, Blueprint):
        return solved.profile()
    if not isinstance(solved, Profile):
        raise OptionError(f"{what} needs a Profile, a Blueprint or a SolvedSubgame, not {type(solved).__name__}")
    return solved


def compose_profiles(base: Any, override: Any) -> Profile:
    """Overlays a profile with the information sets of another one; everything else is untouched.

    Args:
      base: a strategy of the whole game: a `Profile` or a `Blueprint`.
      override: of a part of it: a `SolvedSubgame`, a `Profile` or a `Blueprint`.

    Raises:
      ProfileError: `override` has an information set that `base` does not have, or other actions in one.
    """
    return as_profile(base, "compose_profiles").overlaid(as_profile(override, "compose_profiles"))


def continuation_value(game: Any, profile: Any, path: Sequence[Hashable] = ()) -> np.ndarray:
    """What a game is worth from a history on if everybody plays a profile: `[P]`, in chips.

    Args:
      game: the root.
      profile: a `Profile` or a `Blueprint` of the game.
      path: actions and outcomes of chance from the root to the history, which may be of any kind.

    Raises:
      SubgameError: the path is not one of the game's.
    """
    blueprint = as_blueprint(game, profile)
    row, _ = blueprint.whole.step_along(path)
    values: np.ndarray = blueprint.values[row].copy()
    return values


def check_invariants(solved: Any, game: Any, invariant: Invariant | None = None) -> int:
    """Checks a strategy against the rules of a game, and against a rule of the caller's own.

    At every information set of the strategy that the game has: as many probabilities as there are legal actions, all
    of them finite and not negative, with sum 1; then the caller's check.

    Args:
      solved: a `SolvedSubgame`, a `Profile` or a `Blueprint`.
      game: the root, or a history, of the real game; everything below is walked.
      invariant: called once for each information set, with a history of it and the probabilities `[actions]`.

    Returns:
      How many information sets were checked.

    Raises:
      InvariantError: something is wrong; names player and information set.
    """
    profile = as_profile(solved, "check_invariants")
    if not hasattr(game, "is_terminal") or not hasattr(game, "step"):
        raise OptionError(f"check_invariants needs a game with the methods of jaxcfr.Game, not {type(game).__name__!r}")
    checked: set[tuple[int, Hashable]] = set()
    waiting = [game]
    while waiting:
        history = waiting.pop()
        if history.is_terminal():
            continue
        if history.is_chance():
            moves: Sequence[Any] = [move for move, _ in require_enumerable_chance(history, (), "check_invariants")]
        else:
            moves = tuple(history.legal_actions())
            player = history.player_to_act()
            key = history.infoset_key(player)
            if profile.has_infoset(player, key) and (player, key) not in checked:
                checked.add((player, key))
                _check(history, player, key, moves, profile.probabilities(player, key), invariant)
        waiting.extend(history.step(move) for move in reversed(moves))
    return len(checked)


def _check(
    history: Any,
    player: int,
    key: Hashable,
    moves: Sequence[Any],
    found: dict[Hashable, float],
    invariant: Invariant | None,
) -> None:
    def wrong(problem: str) -> InvariantError:
        return InvariantError(f"information set {key!r} of player {player}: {problem}")

    row = np.array(list(found.values()))
    if len(row) != len(moves):
        raise wrong(f"the strategy has {len(row)} probabilities, but there are {len(moves)} legal actions")
    if not np.all(np.isfinite(row)) or row.min() < 0 or abs(row.sum() - 1) > TOLERANCE:
        raise wrong(f"{row.tolist()} is no probability distribution")
    if invariant is None:
        return
    try:
        answer = invariant(history, row)
        refused = answer is not None and not answer
    except Exception as error:
        raise wrong(f"the check failed: {error or type(error).__name__}") from error
    if refused:
        shown = ", ".join(f"{action_label(history, move)} {p:.4g}" for move, p in zip(moves, row, strict=True))
        raise wrong(f"the check says no to {shown}")
