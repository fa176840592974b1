"""Limits that every way of lowering a game keeps."""

from __future__ import annotations

import random
from typing import Any

from jaxcfr.errors import GameTooLargeError
from jaxcfr.games.base import game_name
from jaxcfr.games.checks import PROBABILITY_TOLERANCE

__all__ = [
    "BYTES_PER_HISTORY",
    "MAX_NODES",
    "PROBABILITY_TOLERANCE",
    "PROBE_AT",
    "WALK_BYTES_PER_HISTORY",
    "refuse_far_too_large",
    "too_large",
    "too_many",
]

MAX_NODES = 10_000_000
"""Default of `lower(max_nodes=...)`."""

BYTES_PER_HISTORY = 100
"""A rough price of a history while an array game is lowered and solved in float32, for messages."""

WALK_BYTES_PER_HISTORY = 800
"""The same where plain rules are walked: a history is a Python object until its children are made."""

PROBE_AT = 20_000
"""Once so many histories are met, random plays tell whether the game is far too large."""

PROBES = 256
"""Random plays that show whether a game is far too large."""

FAR_TOO_LARGE = 16
"""Only a game with this many times too many histories is refused from random plays."""

PROBE_DEPTH = 1000
"""Moves after which a random play is given up."""


def too_large(
    name: str, max_nodes: int, met: int, waiting: int, bytes_each: int = BYTES_PER_HISTORY
) -> GameTooLargeError:
    """The error of a game with more than `max_nodes` histories.

    Args:
      name: of the game.
      max_nodes: the limit.
      met: histories found so far.
      waiting: those among them that are still to be expanded.
      bytes_each: what lowering takes for a history.
    """
    return GameTooLargeError(
        f"{name} has more than max_nodes = {max_nodes:,} histories ({met:,} met, {waiting:,} of them still to be "
        f"expanded); lowering takes about {bytes_each} bytes a history, {_size(met * bytes_each)} for these alone: "
        "raise max_nodes, or take a smaller game"
    )


def too_many(name: str, max_nodes: int, estimate: float, bytes_each: int = BYTES_PER_HISTORY) -> GameTooLargeError:
    """The error of a game that is known to have about `estimate` histories, more than `max_nodes`."""
    shown = f"{float(f'{estimate:.3g}'):,.0f}" if estimate < 1e12 else f"{estimate:.3g}"
    return GameTooLargeError(
        f"{name} has about {shown} histories, more than max_nodes = {max_nodes:,}; lowering takes about {bytes_each} "
        f"bytes a history, {_size(estimate * bytes_each)} in all: raise max_nodes, or take a smaller game"
    )


def refuse_far_too_large(root: Any, max_nodes: int) -> None:
    """Refuses a plain game that is far too large, by Knuth (1975), "Estimating the efficiency of backtrack programs".

    In a play with moves drawn uniformly, 1 + b1 + b1 b2 + ..., b being the numbers of moves, is on average the
    number of histories. So if the game has at most `max_nodes`, this exceeds 16 times as many with a probability
    below 1 / 16, and that it does in a quarter of 256 plays has a probability below 1e-17.
    """
    rng = random.Random(0)
    limit = FAR_TOO_LARGE * max_nodes
    found = []
    for _ in range(PROBES):
        node, width, total, depth = root, 1, 1, 0
        try:
            while total <= limit and depth < PROBE_DEPTH and not node.is_terminal():
                chance = node.is_chance()
                moves = [action for action, _ in node.chance_outcomes()] if chance else list(node.legal_actions())
                width *= len(moves)
                total += width
                depth += 1
                node = node.step(rng.choice(moves))
        except Exception:  # broken rules: the walk meets them too, and says where
            return
        found.append(total)
    if sum(total > limit for total in found) >= PROBES // 4:
        raise GameTooLargeError(
            f"{game_name(root)} has many times more than max_nodes = {max_nodes:,} histories, as random plays show: "
            "raise max_nodes, or take a smaller game"
        )


def _size(count: float) -> str:
    unit = "GB" if count >= 1e9 else "MB" if count >= 1e6 else "kB"
    return f"{count / {'GB': 1e9, 'MB': 1e6, 'kB': 1e3}[unit]:,.3g} {unit}"
