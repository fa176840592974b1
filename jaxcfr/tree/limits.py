"""Limits that every way of lowering a game keeps."""

from __future__ import annotations

from jaxcfr.errors import GameTooLargeError
from jaxcfr.games.checks import PROBABILITY_TOLERANCE

__all__ = ["BYTES_PER_HISTORY", "MAX_NODES", "PROBABILITY_TOLERANCE", "WALK_BYTES_PER_HISTORY", "too_large", "too_many"]

MAX_NODES = 10_000_000
"""Default of `lower(max_nodes=...)`."""

BYTES_PER_HISTORY = 100
"""A rough price of a history while an array game is lowered and solved in float32, for messages."""

WALK_BYTES_PER_HISTORY = 800
"""The same where plain rules are walked: a history is a Python object until its children are made."""


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


def far_too_many(name: str, max_nodes: int) -> GameTooLargeError:
    """The error of a game that random plays show to have many times more than `max_nodes` histories."""
    return GameTooLargeError(
        f"{name} has many times more than max_nodes = {max_nodes:,} histories, as random plays show: raise max_nodes, "
        "or take a smaller game"
    )


def _size(count: float) -> str:
    unit = "GB" if count >= 1e9 else "MB" if count >= 1e6 else "kB"
    return f"{count / {'GB': 1e9, 'MB': 1e6, 'kB': 1e3}[unit]:,.3g} {unit}"
