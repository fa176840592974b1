"""Depth limits: what histories are worth where a part of a game is cut off."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxcfr.errors import OptionError
from jaxcfr.subgames.blueprint import Blueprint
from jaxcfr.subgames.part import Part
from jaxcfr.subgames.resolving import Continuation

LeafValues = Any


def check_depth(max_depth: Any, leaf_values: LeafValues) -> int | None:
    """The depth limit itself, if it is one."""
    if max_depth is None:
        if leaf_values is not None:
            raise OptionError("leaf_values need a max_depth, below which they stand for the rest of the game")
        return None
    if isinstance(max_depth, bool) or not isinstance(max_depth, (int, np.integer)) or max_depth < 1:
        raise OptionError(f"max_depth has to be a positive number of plies, not {max_depth!r}")
    return int(max_depth)


def continuation_of(
    blueprint: Blueprint, leaf_values: LeafValues, opponent: int, part: Part, classes: tuple[np.ndarray, np.ndarray]
) -> Continuation:
    return Continuation(blueprint.values[None], classes[max(opponent, 0)])
