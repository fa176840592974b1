"""Limits that every way of lowering a game keeps."""

from __future__ import annotations

from jaxcfr.errors import GameTooLargeError

MAX_NODES = 20_000_000
"""Default of `lower(max_nodes=...)`."""

BYTES_PER_HISTORY = 100
"""A rough price of a history while lowering and solving in float32, for messages."""

PROBABILITY_TOLERANCE = 1e-9
"""How far float chance probabilities may sum from 1; exact fractions have to sum to exactly 1."""


def too_large(name: str, max_nodes: int, met: int, waiting: int) -> GameTooLargeError:
    """The error of a game with more than `max_nodes` histories.

    Args:
      name: of the game.
      max_nodes: the limit.
      met: histories found so far.
      waiting: those among them that are still to be expanded.
    """
    return GameTooLargeError(
        f"{name} has more than max_nodes = {max_nodes:,} histories ({met:,} met, {waiting:,} of them still to be "
        f"expanded); at about {BYTES_PER_HISTORY} bytes a history these alone take "
        f"{met * BYTES_PER_HISTORY / 1e6:,.1f} MB: raise max_nodes, or take a smaller game"
    )
