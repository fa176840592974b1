"""Strategies between the flat layout and one row per information set (host side)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxcfr.errors import StrategyError
from jaxcfr.tree.game_tree import GameTree, Strategy, require_tree


def strategy_from_rows(tree: GameTree, rows: Sequence[Sequence[Any]]) -> Strategy:
    """A strategy from one row of probabilities per information set.

    Args:
      tree: the tree.
      rows: per player, per information set, one number per action, in order.

    Raises:
      StrategyError: a row is missing, has the wrong length, or is no distribution.
    """
    if len(rows) != tree.num_players:
        raise StrategyError(f"rows for {len(rows)} players were given, but the game has {tree.num_players}")
    strategy = []
    for player, (treeplex, per_infoset) in enumerate(zip(tree.treeplexes, rows, strict=True)):
        counts = np.asarray(treeplex.num_actions)
        if len(per_infoset) != treeplex.num_infosets:
            raise StrategyError(
                f"player {player} has {treeplex.num_infosets} information sets, but {len(per_infoset)} rows were given"
            )
        for number, (row, count) in enumerate(zip(per_infoset, counts, strict=True)):
            if len(row) != count:
                raise StrategyError(
                    f"player {player} has {count} actions at information set number {number}, but its row has "
                    f"{len(row)} entries"
                )
        flat = np.zeros(treeplex.size)
        if treeplex.num_infosets:
            indices, _ = treeplex.sequence_indices()
            flat[indices] = np.concatenate([np.asarray(row, np.float64) for row in per_infoset])
        strategy.append(jax.device_put(flat.astype(tree.dtype)))
    result = tuple(strategy)
    tree.check_strategy(result)
    return result


def uniform_strategy(tree: GameTree) -> Strategy:
    """Every action equally likely at every information set."""
    return tuple(treeplex.uniform for treeplex in require_tree(tree).treeplexes)
