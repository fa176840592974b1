"""The payoff operator: from realization weights to direct counterfactual values.

    g_p[s] = sum over leaves z with seq_p(z) = s of  chance(z) * u_p(z) * prod_{q != p} x_q[seq_q(z)]

Payoffs are stored relative to the middle of each player's range. A constant
changes no regret, but a large one would drown the differences in rounding;
and constant-sum games become zero-sum, whose payoffs are stored once.

For two players this is a product with a sparse matrix. Its entries fall into
independent blocks (the connected components of the bipartite graph between
the players' sequences). Dense blocks are stored whole and multiplied as a
batch; the rest, and every game with another number of players, is stored as
entries sorted by sequence and summed in segments. Which blocks count as dense
is a fixed rule, so the same game always gets the same layout.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import Array

from jaxcfr.tree.fusion import apart, with_trailing
from jaxcfr.tree.integers import distinct, distinct_inverse, order_by, rank_within
from jaxcfr.tree.segments import SegmentSum, as_numpy, build_segment_sum

BLOCK_DENSITY = 0.25
"""A block is stored dense if at least this part of it is filled."""

SMALL_BLOCK = 16
"""Blocks with at most this many rows and columns are stored side by side."""

TILE = 16
"""So many blocks at most lie side by side: a short loop of known length becomes a few vector instructions."""

MAX_BLOCK_SHAPES = 6
"""Blocks are padded to a few shapes until there are at most this many."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PayoffBlocks:
    """Dense blocks of R sequences of player 0 by K sequences of player 1, in T tiles of W blocks.

    Small blocks lie side by side in a tile, along the last axis, and a product is a sum of a few elementwise products
    over it, which vectorises; the tiles are read one after the other (measured on Liar's dice: a batch of tiny matrix
    products takes 140 us, all blocks in one tile 20 us, tiles of 16 take 8 us). A large block is a tile of its own,
    and multiplied as a matrix.

    Attributes:
      rows: `[T, R, W]` int32, flat sequences of player 0; padding points to the empty sequence.
      columns: `[T, K, W]` int32, flat sequences of player 1.
      values: per player `[T, R, K, W]`: chance reach times centred payoff; one array, player 0's, if the payoffs are
        mirrored.
    """

    rows: Array
    columns: Array
    values: tuple[Array, ...]

    def product(self, player: int, weights: tuple[Array, ...]) -> Array:
        """Direct counterfactual values of `player`'s sequences, `[T, R, W, ...]` or `[T, K, W, ...]`."""
        own, other = (self.rows, self.columns) if player == 0 else (self.columns, self.rows)
        reach = weights[1 - player][other]
        values = with_trailing(self.values[player % len(self.values)], 4, reach.ndim - 3)
        if is_small(own.shape[1], other.shape[1]):
            terms = values if player == 0 else jnp.swapaxes(values, 1, 2)
            result = sum(terms[:, :, k] * reach[:, None, k] for k in range(other.shape[1]))
        else:
            # HIGHEST: float32 products run in TF32 or bfloat16 on accelerators unless told otherwise.
            spec = "trk...,tk...->tr..." if player == 0 else "trk...,tr...->tk..."
            highest = jax.lax.Precision.HIGHEST
            result = jnp.einsum(spec, values[:, :, :, 0], reach[:, :, 0], precision=highest)[:, :, None]
        assert isinstance(result, Array)
        return result if player < len(self.values) else -result


def is_small(height: int, width: int) -> bool:
    """Whether blocks of this shape are stored side by side."""
    return max(height, width) <= SMALL_BLOCK


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PayoffEntries:
    """E entries in the order of one player's sequences.

    Attributes:
      values: `[E]`, chance reach times centred payoff.
      others: for each other player in order, `[E]` int32, its flat sequence.
      order: `[E]` int32, where each entry lies in the common order of entries.
      total: sums the entries to the player's F sequences that occur.
    """

    values: Array
    others: tuple[Array, ...]
    order: Array
    total: SegmentSum

    def product(self, player: int, weights: tuple[Array, ...]) -> Array:
        """Direct counterfactual values of the sequences that occur, `[F, ...]`."""
        reach = with_trailing(self.values, 1, weights[player].ndim - 1)
        opponents = weights[:player] + weights[player + 1 :]
        for weight, sequence in zip(opponents, self.others, strict=True):
            reach = reach * weight[sequence]
        return self.total(reach)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Leaves:
    """The Z terminal histories, from which the stored entries are made.

    Attributes:
      payoffs: `[Z, P]`.
      chance: `[Z]` chance reach.
      entry: `[Z]` int32, the entry each leaf adds to (leaves that share all players' sequences share one).
      block_slot: per group of blocks, two int32 arrays: the entries it holds and their places in `values`.
    """

    payoffs: Array
    chance: Array
    entry: Array
    block_slot: tuple[tuple[Array, Array], ...]


class PayoffOperator(Protocol):
    """What a tree needs to know of its payoffs, a pytree; `PayoffTable` is the stored one, and says what is what."""

    @property
    def offset(self) -> Array:
        """`[P]`, what `product` leaves out of each player's payoffs."""
        ...

    @property
    def leaves(self) -> Leaves:
        """The terminal histories."""
        ...

    def product(self, player: int, weights: tuple[Array, ...]) -> Array:
        """See `PayoffTable.product`."""
        ...

    def spread(self) -> Array:
        """See `PayoffTable.spread`."""
        ...

    def with_payoffs(
        self, payoffs: Array, mirrored: bool | None = None, centre: bool = True, chance: Array | None = None
    ) -> PayoffOperator:
        """See `PayoffTable.with_payoffs`."""
        ...

    def paying_one(self) -> PayoffOperator:
        """See `PayoffTable.paying_one`."""
        ...


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PayoffTable:
    """The payoff operator of a stored game.

    Attributes:
      blocks: dense blocks, by shape (two players only).
      entries: per player, the entries outside of blocks, or an empty tuple if there are none.
      place: per player `[L_p + 1]` int32, where the value of every sequence lies in the concatenated products;
        sequences without leaves point past the end, to a zero.
      offset: `[P]`, the middle of the range of each player's payoffs, which is left out of what is stored.
      leaves: the terminal histories.
      mirrored: two players whose payoffs sum to a constant, so that player 0's stand for both (static).
      num_entries: number of distinct combinations of sequences at leaves (static).
    """

    blocks: tuple[PayoffBlocks, ...]
    entries: tuple[PayoffEntries, ...]
    place: tuple[Array, ...]
    offset: Array
    leaves: Leaves
    mirrored: bool = dataclasses.field(metadata={"static": True})
    num_entries: int = dataclasses.field(metadata={"static": True})

    def product(self, player: int, weights: tuple[Array, ...]) -> Array:
        """Direct counterfactual values of `player`'s sequences, `[L_p + 1]`, for payoffs relative to `offset[p]`.

        Args:
          player: p.
          weights: every player's realization weights, `[L_q + 1]` each; of p's own only the shape is read. For a
            batch `[L_q + 1, ...]`, and so is the result.
        """
        place = self.place[player]

        def products(weights: tuple[Array, ...]) -> tuple[Array, ...]:
            parts = tuple(block.product(player, weights) for block in self.blocks)
            return (*parts, self.entries[player].product(player, weights)) if self.entries else parts

        def joined(*parts: Array) -> Array:
            batch = weights[player].shape[1:]
            zero = jnp.zeros((1, *batch), weights[player].dtype)
            return jnp.concatenate([*(part.reshape(-1, *batch) for part in parts), zero])

        return apart(place, joined, *apart(place, products, weights))[place]

    def spread(self) -> Array:
        """About the range of each player's payoffs, `[P]`, over the leaves that chance can reach."""
        centred = self.leaves.payoffs - self.offset
        return 2 * jnp.where((self.leaves.chance > 0)[:, None], jnp.abs(centred), 0).max(0)

    def paying_one(self) -> PayoffTable:
        """The operator of the game that pays everybody 1 everywhere: its product is the others' reach of the leaves."""
        return self.with_payoffs(jnp.ones_like(self.leaves.payoffs), mirrored=False, centre=False)

    def with_payoffs(
        self, payoffs: Array, mirrored: bool | None = None, centre: bool = True, chance: Array | None = None
    ) -> PayoffTable:
        """The same operator with other payoffs, `[Z, P]`; pure and differentiable.

        Args:
          payoffs: in the order of the leaves.
          mirrored: whether they sum to a constant; None means as before.
          centre: store them relative to the middle of their range.
          chance: `[Z]`, other chance reaches of the leaves; None means as before.
        """
        if mirrored is not None and mirrored != self.mirrored:
            resized = tuple(
                dataclasses.replace(block, values=(block.values[0],) * (1 if mirrored else 2)) for block in self.blocks
            )
            return dataclasses.replace(self, blocks=resized, mirrored=mirrored).with_payoffs(
                payoffs, None, centre, chance
            )
        leaves = dataclasses.replace(
            self.leaves, payoffs=payoffs, chance=self.leaves.chance if chance is None else chance
        )
        num_players = payoffs.shape[1]
        offset = _middle(payoffs, leaves.chance) if centre else jnp.zeros_like(payoffs, shape=num_players)
        centred = payoffs - offset
        # In a mirrored table one array serves both players; this form treats them alike under differentiation.
        per_player = (
            [(centred[:, 0] - centred[:, 1]) / 2] if self.mirrored else [centred[:, p] for p in range(num_players)]
        )
        sums = [_scatter_add(self.num_entries, leaves.entry, leaves.chance * payoff) for payoff in per_player]
        blocks: list[PayoffBlocks] = []
        for block, (entry, slot) in zip(self.blocks, leaves.block_slot, strict=True):
            values = []
            for old, new in zip(block.values, sums, strict=True):
                values.append(_scatter_set(old.size, slot, new[entry]).reshape(old.shape))
            blocks.append(dataclasses.replace(block, values=tuple(values)))
        signs = (1.0, -1.0) if self.mirrored else (1.0,) * num_players
        entries = tuple(
            dataclasses.replace(e, values=signs[p] * sums[p % len(sums)][e.order]) for p, e in enumerate(self.entries)
        )
        return dataclasses.replace(self, blocks=tuple(blocks), entries=entries, offset=offset, leaves=leaves)


def _middle(payoffs: Any, chance: Any) -> Any:
    """The middle of the range of each player's payoffs, `[P]`, over the leaves that chance can reach."""
    xp: Any = np if isinstance(payoffs, np.ndarray) else jnp
    reached = (chance > 0)[:, None]
    low = xp.min(xp.where(reached, payoffs, xp.inf), axis=0)
    high = xp.max(xp.where(reached, payoffs, -xp.inf), axis=0)
    middle = xp.where(high >= low, low / 2 + high / 2, 0).astype(payoffs.dtype)
    return middle if xp is np else jax.lax.stop_gradient(middle)


def _scatter_add(size: int, index: Array, values: Array) -> Array:
    """Sums of the values by index; in numpy for numpy arrays, so that building a tree compiles nothing."""
    if isinstance(values, np.ndarray):
        total = np.zeros(size, values.dtype)
        np.add.at(total, index, values)
        return total
    return jnp.zeros(size, values.dtype).at[index].add(values)


def _scatter_set(size: int, index: Array, values: Array) -> Array:
    """Values at their (distinct) indices, zero elsewhere; in numpy for numpy arrays."""
    if isinstance(values, np.ndarray):
        result = np.zeros(size, values.dtype)
        result[index] = values
        return result
    return jnp.zeros(size, values.dtype).at[index].set(values, unique_indices=True)


def build_payoffs(
    sequences: tuple[np.ndarray, ...],
    empty: tuple[int, ...],
    chance: np.ndarray,
    payoffs: np.ndarray,
    mirrored: bool,
    dtype: Any,
    block_density: float = BLOCK_DENSITY,
    centre: bool = True,
) -> PayoffTable:
    """Arranges the leaves of a game.

    Args:
      sequences: per player `[Z]`, its flat sequence at every leaf.
      empty: per player, L, the flat index of the empty sequence.
      chance: `[Z]` float64 chance reach.
      payoffs: `[Z, P]` float64.
      mirrored: two players whose payoffs have the same sum at every leaf.
      dtype: of the float arrays.
      block_density: see `BLOCK_DENSITY`; 0 stores everything in blocks, more than 1 nothing.
      centre: see `PayoffTable.with_payoffs`.

    Returns:
      The table, made of numpy arrays.
    """
    num_players = len(sequences)
    combined, entry = _unique_rows(sequences, empty)
    count = len(combined)
    if num_players == 2 and block_density <= 1:
        groups, in_block = _find_blocks(combined, empty, block_density)
    else:
        groups, in_block = [], np.zeros(count, bool)

    rest = np.flatnonzero(~in_block)
    place = [np.full(size + 1, -1, np.int64) for size in empty]
    offsets = [0] * num_players
    blocks, block_slot = [], []
    for rows, columns, members, (block, row, column) in groups:
        (height, number), width = rows.shape, columns.shape[0]
        tiles = -(-number // TILE) if is_small(height, width) else number
        lanes = -(-number // tiles)
        tile, lane = np.divmod(block, lanes)
        blocks.append(
            PayoffBlocks(
                _tiled(rows, tiles, empty[0]),
                _tiled(columns, tiles, empty[1]),
                tuple(
                    as_numpy(np.zeros((tiles, height, width, lanes)), np.float64) for _ in range(1 if mirrored else 2)
                ),
            )
        )
        slot = ((tile * height + row) * width + column) * lanes + lane
        block_slot.append((as_numpy(members, np.int32), as_numpy(slot, np.int32)))
        for player, (flat, line) in enumerate(((blocks[-1].rows, row), (blocks[-1].columns, column))):
            present = distinct((tile * flat.shape[1] + line) * lanes + lane, flat.size)
            place[player][flat.reshape(-1)[present]] = offsets[player] + present
            offsets[player] += flat.size
    entries = []
    if len(rest):
        for player in range(num_players):
            order = rest[order_by(combined[rest, player], empty[player] + 1)]
            own, row = distinct_inverse(combined[order, player], empty[player] + 1)
            place[player][own] = offsets[player] + np.arange(len(own))
            offsets[player] += len(own)
            entries.append(
                PayoffEntries(
                    values=as_numpy(np.zeros(len(order)), np.float64),
                    others=tuple(
                        as_numpy(combined[order, other], np.int32) for other in range(num_players) if other != player
                    ),
                    order=as_numpy(order, np.int32),
                    total=build_segment_sum(row.reshape(-1), len(own)),
                )
            )
    for player in range(num_players):
        place[player][place[player] < 0] = offsets[player]
    leaves = Leaves(
        payoffs=as_numpy(payoffs, np.float64),
        chance=as_numpy(chance, np.float64),
        entry=as_numpy(entry.reshape(-1), np.int32, copy=False),
        block_slot=tuple(block_slot),
    )
    table = PayoffTable(
        blocks=tuple(blocks),
        entries=tuple(entries),
        place=tuple(as_numpy(p, np.int32) for p in place),
        offset=as_numpy(np.zeros(num_players), np.float64),
        leaves=leaves,
        mirrored=mirrored,
        num_entries=count,
    )
    # Centred in float64: a large constant must not cost the digits in which payoffs differ.
    filled = table.with_payoffs(leaves.payoffs, centre=centre)
    narrowed: PayoffTable = jax.tree.map(lambda a: a.astype(dtype) if a.dtype == np.float64 else a, filled)
    return narrowed


def _tiled(sequences: np.ndarray, tiles: int, padding: int) -> Any:
    """From the sequences of all blocks, `[R, C]`, to `[tiles, R, W]`, filled up with `padding`."""
    height, number = sequences.shape
    lanes = -(-number // tiles)
    padded = np.full((height, tiles * lanes), padding, np.int64)
    padded[:, :number] = sequences
    return as_numpy(np.swapaxes(padded.reshape(height, tiles, lanes), 0, 1), np.int32)


def _unique_rows(sequences: tuple[np.ndarray, ...], empty: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """`np.unique` over the rows `[Z, P]` of the sequences, and the place of every row among the distinct ones."""
    order: np.ndarray | None = None
    for sequence, last in reversed(list(zip(sequences, empty, strict=True))):
        by = order_by(sequence if order is None else sequence[order], last + 1)
        order = by if order is None else order[by]
    assert order is not None
    columns = [sequence[order] for sequence in sequences]
    begins = np.ones(len(order), bool)
    begins[1:] = False
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    inverse = np.empty(len(order), np.int32)
    inverse[order] = np.cumsum(begins, dtype=np.int32) - 1
    return np.stack([column[begins] for column in columns], axis=1).astype(np.int64), inverse


_Group = tuple[np.ndarray, np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]


def _find_blocks(pairs: np.ndarray, empty: tuple[int, ...], density: float) -> tuple[list[_Group], np.ndarray]:
    """Connected components of the graph between the two players' sequences, grouped by shape.

    Returns:
      Per group: rows `[R, C]`, columns `[K, C]`, the entries it holds and, for each, its block, row and column; and
      a mask over entries, True where some group holds the entry.
    """
    rows, row = distinct_inverse(pairs[:, 0], empty[0] + 1)
    columns, column = distinct_inverse(pairs[:, 1], empty[1] + 1)
    total = len(rows) + len(columns)
    graph = scipy.sparse.coo_matrix((np.ones(len(pairs), np.int8), (row, len(rows) + column)), shape=(total, total))
    count, label = scipy.sparse.csgraph.connected_components(graph, directed=False)
    height = np.bincount(label[: len(rows)], minlength=count)
    width = np.bincount(label[len(rows) :], minlength=count)
    filled = np.bincount(label[row], minlength=count)
    dense = filled >= density * height.astype(np.float64) * width
    local_row = rank_within(label[: len(rows)], count)
    local_column = rank_within(label[len(rows) :], count)

    component = label[row]
    groups: list[_Group] = []
    in_block = np.zeros(len(pairs), bool)
    padded_height, padded_width = _few_shapes(height, width, filled, dense, density)
    dense &= filled >= density * padded_height * padded_width
    for shape in np.unique(np.stack([padded_height, padded_width], axis=1)[dense], axis=0):
        chosen = np.flatnonzero(dense & (padded_height == shape[0]) & (padded_width == shape[1]))
        number = np.full(count, -1, np.int64)
        number[chosen] = np.arange(len(chosen))
        block_rows = np.full((shape[0], len(chosen)), empty[0], np.int64)
        block_columns = np.full((shape[1], len(chosen)), empty[1], np.int64)
        mine = number[label[: len(rows)]] >= 0
        block_rows[local_row[mine], number[label[: len(rows)]][mine]] = rows[mine]
        mine = number[label[len(rows) :]] >= 0
        block_columns[local_column[mine], number[label[len(rows) :]][mine]] = columns[mine]
        members = np.flatnonzero(number[component] >= 0)
        in_block[members] = True
        slot = (number[component[members]], local_row[row[members]], local_column[column[members]])
        groups.append((block_rows, block_columns, members, slot))
    return groups, in_block


def _few_shapes(
    height: np.ndarray, width: np.ndarray, filled: np.ndarray, dense: np.ndarray, density: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rounds block shapes up on ever coarser grids until few are left, or padding would thin the blocks too much."""
    best = height.astype(np.float64), width.astype(np.float64)
    for base in (1.0, 1.25, 1.5, 2.0, 3.0, 4.0):
        shapes = tuple(_round_up(side, base) for side in (height, width))
        volume = float((shapes[0] * shapes[1])[dense].sum())
        if base > 1 and filled[dense].sum() < max(density, BLOCK_DENSITY) * volume:
            break
        best = shapes[0], shapes[1]
        if len(np.unique(np.stack(best)[:, dense], axis=1).T) <= MAX_BLOCK_SHAPES:
            break
    return best[0].astype(np.int64), best[1].astype(np.int64)


def _round_up(side: np.ndarray, base: float) -> np.ndarray:
    """The next power of `base`, rounded up to an integer, but never more than the largest side."""
    if base == 1.0:
        return side.astype(np.float64)
    power = np.ceil(np.log(np.maximum(side, 1)) / np.log(base) - 1e-9)
    return np.minimum(np.maximum(np.ceil(base**power), side), side.max(initial=1)).astype(np.float64)
