"""From a node table to a `GameTree`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxcfr.errors import GameError, OptionError
from jaxcfr.tree.game_tree import GameTree, Histories
from jaxcfr.tree.moves import build_moves
from jaxcfr.tree.nodes import TERMINAL, NodeFacts, NodeTable, derive_facts
from jaxcfr.tree.payoffs import BLOCK_DENSITY, build_payoffs
from jaxcfr.tree.segments import as_numpy
from jaxcfr.tree.treeplex import Treeplex, build_treeplex


def float_dtype(dtype: Any = None) -> Any:
    """The float dtype asked for, or JAX's default: float64 where `jax_enable_x64` is on, else float32.

    Raises:
      OptionError: float64 is asked for while `jax_enable_x64` is off, or the dtype is not float32 or float64.
    """
    if dtype is None:
        return jnp.dtype(jnp.zeros(0).dtype)
    try:
        chosen = jnp.dtype(dtype)
    except TypeError as error:
        raise OptionError(f"dtype has to be float32 or float64, not {dtype!r}") from error
    if chosen not in (jnp.dtype("float32"), jnp.dtype("float64")):
        raise OptionError(f"dtype has to be float32 or float64, not {chosen}")
    if chosen == jnp.dtype("float64") and jnp.zeros(0).dtype != chosen:
        raise OptionError(
            'dtype float64 needs JAX\'s 64-bit mode: call jax.config.update("jax_enable_x64", True) first, '
            "or set the environment variable JAX_ENABLE_X64=1"
        )
    return chosen


def build_tree(
    nodes: NodeTable,
    describe: Callable[[int, int], str] = lambda player, infoset: f"number {infoset}",
    *,
    dtype: Any = None,
    histories: bool = True,
    general_sum: bool = False,
    block_density: float = BLOCK_DENSITY,
    centre: bool = True,
) -> GameTree:
    """Builds the tree.

    Args:
      nodes: the game, as a table.
      describe: names information set i of player p in messages.
      dtype: float32 or float64; None follows `jax_enable_x64`.
      histories: keep the histories (sampling and subgames need them, full-tree CFR and analytics do not).
      general_sum: do not record that payoffs are constant-sum even if they are, so that any payoffs can replace them.
      block_density: how full a block of payoffs has to be to be stored dense; the default is calibrated.
      centre: store payoffs relative to the middle of their range.

    Raises:
      GameError: the table is inconsistent.
      RecallError: a player forgets.
      OptionError: the dtype is not available, or cannot hold the payoffs.
    """
    dtype = float_dtype(dtype)
    facts = derive_facts(nodes, describe)
    _check_range(nodes.payoffs, dtype)
    treeplexes, flat = [], []
    for player in range(nodes.num_players):
        treeplex, flat_of_plain = build_treeplex(
            nodes.num_actions[player],
            facts.infoset_parent[player],
            facts.infoset_level[player],
            facts.first_sequence[player],
            dtype,
        )
        treeplexes.append(treeplex)
        flat.append(flat_of_plain[facts.sequence[player]])
    leaves = np.flatnonzero(nodes.player == TERMINAL)
    constant_sum, zero_sum = (False, False) if general_sum else _payoff_sums(nodes)
    payoffs = build_payoffs(
        tuple(sequence[leaves] for sequence in flat),
        tuple(treeplex.size for treeplex in treeplexes),
        facts.chance_reach[leaves],
        nodes.payoffs,
        constant_sum,
        dtype,
        block_density,
        centre,
    )
    tree = GameTree(
        treeplexes=tuple(treeplexes),
        payoffs=payoffs,
        histories=_histories(nodes, facts, flat, leaves, treeplexes, dtype) if histories else None,
        num_histories=nodes.num_histories,
        num_terminals=len(leaves),
        depth=facts.depth,
        constant_sum=constant_sum,
        zero_sum=zero_sum,
    )
    on_device: GameTree = jax.device_put(tree)
    return on_device


def _histories(
    nodes: NodeTable,
    facts: NodeFacts,
    flat: list[np.ndarray],
    leaves: np.ndarray,
    treeplexes: list[Treeplex],
    dtype: Any,
) -> Histories:
    terminal = np.full(nodes.num_histories, -1, np.int32)
    terminal[leaves] = np.arange(len(leaves))
    return Histories(
        player=as_numpy(nodes.player, np.int8),
        infoset=as_numpy(nodes.infoset, np.int32),
        parent=as_numpy(nodes.parent, np.int32),
        first_child=as_numpy(facts.first_child, np.int32, copy=False),
        num_children=as_numpy(facts.num_children, np.int32, copy=False),
        chance=as_numpy(nodes.chance, dtype),
        chance_reach=as_numpy(facts.chance_reach, dtype),
        sequence=tuple(as_numpy(sequence, np.int32, copy=False) for sequence in flat),
        terminal=as_numpy(terminal, np.int32, copy=False),
        moves=build_moves(nodes, facts, treeplexes, dtype),
        level_offsets=tuple(facts.level_offsets.tolist()),
    )


def _payoff_sums(nodes: NodeTable) -> tuple[bool, bool]:
    """Whether the payoffs are constant-sum, and whether they are zero-sum (both for two players only)."""
    if nodes.num_players != 2:
        return False, False
    total = nodes.payoffs.sum(1)
    # Each leaf is judged by its own size: a small payoff beside large ones is no rounding error of theirs.
    tolerance = 4 * np.finfo(np.float64).eps * np.abs(nodes.payoffs).max(1)
    zero = bool(np.all(np.abs(total) <= tolerance))
    finest = int(np.argmin(tolerance))  # the leaf whose sum is known best
    return zero or bool(np.all(np.abs(total - total[finest]) <= tolerance + tolerance[finest])), zero


def _check_range(payoffs: np.ndarray, dtype: Any) -> None:
    """Sums of payoffs and of regrets must neither overflow nor vanish."""
    if not np.all(np.isfinite(payoffs)):
        raise GameError("a payoff is infinite or not a number")
    largest = float(np.abs(payoffs).max(initial=0.0))
    info = np.finfo(dtype)
    high, low = float(info.max) * 1e-8, float(info.tiny) * 1e8
    if largest > high or 0 < largest < low:
        raise OptionError(
            f"the largest payoff is {largest:g} in size; with {info.dtype} it has to lie between {low:g} and {high:g}: "
            "scale the payoffs (equilibria stay the same)"
        )
