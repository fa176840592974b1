"""A subgame as a tree: what players know at its roots comes first, and how they got there is given from outside.

Above the roots each player has one information set for everything that it can tell apart there, its *root information
sets*, with a single action. So the counterfactual values of the subgame's roots are the values of these sets, and a
player's reach of the roots is a number for each of them, which scales its realization weights where the other player's
values are computed, and nowhere else: a player's own sets are solved whether it goes there or not.

In the gadget of re-solving (Burch, Johanson and Bowling 2014) the opponent may also terminate there.

Vectors may have an axis of a batch behind their own: several subgames of one structure at once.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.regret import average as averages
from jaxcfr.regret.matching import normalise, over_actions
from jaxcfr.regret.variants import RegretVariant
from jaxcfr.solve import SolverState, Updates, initial_state, run_loop
from jaxcfr.subgames.part import Assembly, Choice, Numbering, Part, add_part
from jaxcfr.subgames.resolving import OWN_KEYS, TERMINATE_OR_FOLLOW
from jaxcfr.tree.game_tree import GameTree, Strategy
from jaxcfr.tree.lower import LoweredGame
from jaxcfr.tree.nodes import CHANCE, TERMINAL
from jaxcfr.tree.payoffs import Leaves, PayoffOperator, PayoffTable

Pair = tuple[Array, Array]
"""One array for each player."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ReachedPayoffs:
    """The payoffs of a two-player subgame whose roots are reached by reaches that are given.

    Attributes:
      table: the payoffs where both players reach every root with 1.
      reach: per player `[L_p + 1, ...]`, its reach of the root above each of its sequences.
      extra: per player `[L_p + 1, ...]`, direct counterfactual values to add; or None.
    """

    table: PayoffTable
    reach: Pair
    extra: tuple[Array | None, Array | None]

    @property
    def offset(self) -> Array:
        """As of the table."""
        return self.table.offset

    @property
    def leaves(self) -> Leaves:
        """As of the table."""
        return self.table.leaves

    def product(self, player: int, weights: tuple[Array, ...]) -> Array:
        """See `PayoffTable.product`."""
        reached = tuple(weight if p == player else weight * self.reach[p] for p, weight in enumerate(weights))
        direct = self.table.product(player, reached)
        extra = self.extra[player]
        return direct if extra is None else direct + extra

    def spread(self) -> Array:
        """As of the table."""
        return self.table.spread()

    def with_payoffs(
        self, payoffs: Array, mirrored: bool | None = None, centre: bool = True, chance: Array | None = None
    ) -> PayoffOperator:
        """Other payoffs, the same reaches."""
        return dataclasses.replace(self, table=self.table.with_payoffs(payoffs, mirrored, centre, chance))

    def paying_one(self) -> PayoffOperator:
        """See `PayoffTable.paying_one`; what is added by `extra` is left out."""
        return dataclasses.replace(self, table=self.table.paying_one(), extra=(None, None))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Subtree:
    """The tree of a subgame (of several, where the payoffs have an axis of a batch).

    Attributes:
      tree: the game, without histories.
      root_of: per player `[L_p + 1]` int32, the root information set above each of its sequences.
      first: per player `[n_p]` int32, flat index of the action that leads into the subgame.
      stop: `[n]` int32, flat index of the opponent's other action; None where nobody may terminate.
      opponent: who may (static), or -1.
      batched: whether the payoffs have an axis of a batch (static).
    """

    tree: GameTree
    root_of: Pair
    first: Pair
    stop: Array | None
    opponent: int = dataclasses.field(metadata={"static": True})
    batched: bool = dataclasses.field(default=False, metadata={"static": True})

    def reached(self, reach: Pair, stop_values: Array | None = None) -> GameTree:
        """The game for reaches `[n_p, ...]` of the root information sets; `[n, ...]` is what terminating is worth."""
        extra: list[Array | None] = [None, None]
        if self.stop is not None and stop_values is not None:
            size = self.root_of[self.opponent].shape[0]
            zeros = jnp.zeros((size, *stop_values.shape[1:]), self.tree.dtype)
            extra[self.opponent] = zeros.at[self.stop].set(stop_values, unique_indices=True)
        scale = tuple(values[index] for values, index in zip(reach, self.root_of, strict=True))
        assert isinstance(self.tree.payoffs, PayoffTable)
        payoffs = ReachedPayoffs(self.tree.payoffs, (scale[0], scale[1]), (extra[0], extra[1]))
        return dataclasses.replace(self.tree, payoffs=payoffs)


class Piece(NamedTuple):
    """A subgame on the host, from which its trees are built.

    Attributes:
      part: its histories, roots and all.
      label: per player `[R]`, the root information set of every root.
      chance: `[R]`, the reach of the roots by chance.
      payoffs: `[N]`, player 0's payoffs at the terminal histories of `part.whole`, zero-sum; read at leaves only.
      name: for messages.
    """

    part: Part
    label: tuple[np.ndarray, np.ndarray]
    chance: np.ndarray
    payoffs: np.ndarray
    name: str

    def lowered(self, dtype: Any, opponent: int = -1) -> LoweredGame:
        """The tree, with its histories and keys; root information sets come after the subgame's own.

        Args:
          dtype: of the tree.
          opponent: who may terminate at the roots; -1 for nobody.
        """
        part, roots = self.part, len(self.part.roots)
        assembly, numbers = Assembly(), Numbering(part)
        above = np.repeat(assembly.add(CHANCE, -1), roots)
        edge: Any = self.chance
        # The opponent decides first, so that what it terminates is a leaf whose other sequence is empty.
        for player in (opponent, 1 - opponent) if opponent >= 0 else (0, 1):
            count = int(self.label[player].max()) + 1
            menu = TERMINATE_OR_FOLLOW if player == opponent else ("follow",)
            keys = tuple((OWN_KEYS, "root", i) for i in range(count))
            first = numbers.add(Choice(player, keys, (menu,) * count))
            above = assembly.add(player, above, first + self.label[player], edge)
            edge = 1.0
            if player == opponent:
                assembly.add(TERMINAL, above)
        add_part(assembly, numbers, above, np.ones(roots))
        nodes, ends = assembly.finish(numbers.num_actions())
        payoffs = np.where(ends.row >= 0, self.payoffs[np.maximum(ends.row, 0)], 0.0)
        nodes = dataclasses.replace(nodes, payoffs=np.stack([payoffs, -payoffs], axis=1))
        return numbers.lower(nodes, self.name, dtype, centre=False)

    def subtree(self, dtype: Any, opponent: int = -1) -> Subtree:
        """The tree for the solver; see `lowered`."""
        return as_subtree(self.lowered(dtype, opponent), self.num_roots, opponent)

    @property
    def num_roots(self) -> tuple[int, int]:
        """How many root information sets each player has."""
        return int(self.label[0].max()) + 1, int(self.label[1].max()) + 1


def as_subtree(lowered: LoweredGame, num_roots: tuple[int, int], opponent: int) -> Subtree:
    """The tree for the solver from what `Piece.lowered` made."""
    tree = lowered.tree
    root_of, first, stop = [], [], None
    for player, (treeplex, count) in enumerate(zip(tree.treeplexes, num_roots, strict=True)):
        start, parent = np.asarray(treeplex.first), np.asarray(treeplex.parent)
        stride = np.asarray(treeplex.stride)
        indices, offsets = treeplex.sequence_indices()
        counts = np.diff(offsets)
        owner = np.repeat(np.arange(len(counts)), counts)
        # The root above an information set is found from its parent's, level by level.
        root = np.zeros(treeplex.size + 1, np.int64)
        of_set = np.full(len(counts), -1, np.int64)
        of_set[-count:] = np.arange(count)
        known = np.zeros(treeplex.size + 1, bool)
        while True:
            fresh = (of_set[owner] >= 0) & ~known[indices]
            if not fresh.any():
                break
            root[indices[fresh]] = of_set[owner[fresh]]
            known[indices[fresh]] = True
            below = (of_set < 0) & known[parent]
            of_set[below] = root[parent[below]]
        root_of.append(root.astype(np.int32))
        into = start[-count:]
        if player == opponent:
            stop = into.astype(np.int32)
            into = into + stride[-count:]
        first.append(into.astype(np.int32))
    above, into_subgame, out = jax.device_put((tuple(root_of), tuple(first), stop))
    return Subtree(dataclasses.replace(tree, histories=None), above, into_subgame, out, opponent)


def table_values(table: PayoffTable) -> Any:
    """The arrays that products read payoffs from."""
    return tuple(block.values for block in table.blocks), tuple(entries.values for entries in table.entries)


def with_table_values(table: PayoffTable, values: Any) -> PayoffTable:
    """The table with other such arrays."""
    blocks, entries = values
    return dataclasses.replace(
        table,
        blocks=tuple(dataclasses.replace(b, values=v) for b, v in zip(table.blocks, blocks, strict=True)),
        entries=tuple(dataclasses.replace(e, values=v) for e, v in zip(table.entries, entries, strict=True)),
    )


def stacked(subtrees: list[Subtree]) -> Subtree:
    """Subgames of one structure as one, the axis of the batch last in what payoffs are read from."""
    tables = [subtree.tree.payoffs for subtree in subtrees]
    values = [table_values(table) for table in tables if isinstance(table, PayoffTable)]
    together = jax.tree.map(lambda *arrays: jnp.stack(arrays, axis=-1), *values)
    first = subtrees[0]
    assert isinstance(first.tree.payoffs, PayoffTable)
    payoffs = with_table_values(first.tree.payoffs, together)
    return dataclasses.replace(first, tree=dataclasses.replace(first.tree, payoffs=payoffs), batched=True)


# Solving, and values


def solve_reached(
    subtree: Subtree,
    reach: Pair,
    variant: RegretVariant,
    iterations: Array,
    updates: Updates,
    stop_values: Array | None = None,
    start: Any = None,
) -> tuple[Strategy, Pair | None]:
    """The average strategy after some iterations of CFR, `[L_p, B]`, and the last regrets if it began with any; traced.

    A player's average is weighted by its own reach from the roots on, so that it means something where its strategy
    above never leads.

    Args:
      subtree: the subgame, or several of one structure.
      reach: per player `[n_p, B]`, of its root information sets.
      variant, iterations, updates: as in `jaxcfr.solve`.
      stop_values: `[n, B]`, what the opponent gets where it terminates.
      start: per player `[L_p, B]`, regrets to begin with, as they are returned; None for none.
    """
    # Regrets are as large as the reach; the largest is made 1, so that small ones do not vanish in float32.
    largest = [values.max(0) for values in reach]
    largest = [jnp.where(value > 0, value, 1) for value in largest]
    reach = (reach[0] / largest[0], reach[1] / largest[1])
    if stop_values is not None:
        stop_values = stop_values / largest[1 - subtree.opponent]
    if variant.elementwise:
        return _solve(subtree, reach, variant, iterations, updates, stop_values, start)
    table = subtree.tree.payoffs
    assert isinstance(table, PayoffTable)

    def one(values: Any, reach: Pair, stop_values: Array | None, start: Any) -> tuple[Strategy, Pair | None]:
        tree = dataclasses.replace(subtree.tree, payoffs=with_table_values(table, values))
        alone = dataclasses.replace(subtree, tree=tree)
        return _solve(alone, reach, variant, iterations, updates, stop_values, start)

    axes = (-1 if subtree.batched else None, -1, None if stop_values is None else -1, None if start is None else -1)
    return jax.vmap(one, in_axes=axes, out_axes=-1)(table_values(table), reach, stop_values, start)


def _solve(
    subtree: Subtree,
    reach: Pair,
    variant: RegretVariant,
    iterations: Array,
    updates: Updates,
    stop_values: Array | None,
    start: Any,
) -> tuple[Strategy, Pair | None]:
    tree, zero = subtree.tree, jnp.zeros((), subtree.tree.dtype)
    batch = reach[0].shape[1:]

    def spread(leaf: Array) -> Array:
        return jnp.broadcast_to(leaf.reshape(leaf.shape + (1,) * len(batch)), (*leaf.shape, *batch))

    state: SolverState = initial_state(tree, variant)
    state = state._replace(players=jax.tree.map(spread, state.players))
    if start is not None:
        players = []
        for treeplex, player, regret in zip(tree.treeplexes, state.players, start, strict=True):
            regrets = player.regrets._replace(regret=regret.astype(tree.dtype))
            own = treeplex.over_tables(lambda r, u: variant.strategy(r, u, zero), regrets, treeplex.uniform)
            weights = treeplex.realization_weights(own)
            players.append(player._replace(regrets=regrets, strategy=own, weights=weights))
        state = state._replace(players=tuple(players))
    state = run_loop(subtree.reached(reach, stop_values), variant, state, iterations, updates)
    strategy = tuple(
        treeplex.over_tables(normalise, averages.total(player.average, tree.dtype), treeplex.uniform)
        for treeplex, player in zip(tree.treeplexes, state.players, strict=True)
    )
    if start is None:
        return strategy, None
    first, second = (player.regrets.regret for player in state.players)
    return strategy, (first, second)


def solver_bytes(subtree: Subtree, variant: RegretVariant) -> int:
    """About the bytes that solving one such subgame takes besides its tree: the state twice, and some vectors."""
    state = jax.eval_shape(initial_state, subtree.tree, variant)
    return 4 * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def root_values(subtree: Subtree, reach: Pair, strategy: Strategy) -> Pair:
    """Counterfactual values of both players' root information sets, `[n_p, B]`, by a strategy of the subgame.

    They are those of a counterfactual best response to what the other plays. Where the strategies are counterfactual
    best responses to each other these are their values. A solver that only looks where a player's own strategy leads,
    such as a linear program, is put right by that everywhere else; and what is left of a solve's error makes a subgame
    look better to both players (measured on Leduc poker with 100 iterations of `vanilla` in each subgame: the trunk
    ends at an exploitability of 0.074 chips, with the values of the average strategies themselves at 0.115; with
    variants that converge faster there is no difference).
    """
    weights = _weights(subtree, strategy)
    tree = subtree.reached(reach)

    def rule(values: Array, uniform: Array) -> tuple[Array, Array]:
        best = over_actions(jnp.maximum, jnp.where(uniform > 0, values, -jnp.inf))
        return jnp.where(over_actions(jnp.maximum, uniform) > 0, best, 0), values

    def of(player: int) -> Array:
        treeplex = tree.treeplexes[player]
        values, _ = treeplex.fold(tree.payoffs.product(player, weights), rule, treeplex.uniform)
        return values[subtree.first[player]]

    return of(0), of(1)


def _weights(subtree: Subtree, strategy: Strategy) -> tuple[Array, ...]:
    return tuple(
        treeplex.realization_weights(values) for treeplex, values in zip(subtree.tree.treeplexes, strategy, strict=True)
    )
