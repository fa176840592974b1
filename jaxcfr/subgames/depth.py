"""Depth limits: what histories are worth where a part of a game is cut off.

A cut-off history is worth one number, several among which the opponent chooses, or what a function makes of both
players' ranges in every iteration.
"""

from __future__ import annotations

import dataclasses
import functools
import reprlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import Array

from jaxcfr.arguments import integer
from jaxcfr.errors import OptionError, SubgameError
from jaxcfr.profile import Profile
from jaxcfr.subgames.blueprint import Blueprint
from jaxcfr.subgames.part import Part
from jaxcfr.subgames.resolving import Continuation, ResolvingGame
from jaxcfr.tree.payoffs import Leaves, PayoffOperator

if TYPE_CHECKING:
    from jaxcfr.tree.game_tree import Strategy

BIAS = 10.0
"""A biased copy of a strategy takes the favoured actions this many times as often, before normalising."""

MAX_BIASED = 4
"""With more different actions than this, only the first and the last of each information set are favoured."""

ValueFunction = Callable[[Array, tuple[Array, Array]], tuple[Array, Array]]
"""From the number of a public leaf and both ranges there to both players' counterfactual values."""

LeafValues = None | str | np.ndarray | Sequence[Profile] | ValueFunction
"""What may be given for the values of cut-off histories; see `jaxcfr.Subgame.public`."""


def check_depth(max_depth: Any, leaf_values: LeafValues) -> int | None:
    """The depth limit itself, if it is one."""
    if isinstance(leaf_values, str) and leaf_values != "biased":
        raise OptionError(f'leaf_values has to be "biased", profiles, an array or a function, not {leaf_values!r}')
    if max_depth is None:
        if leaf_values is not None:
            raise OptionError("leaf_values need a max_depth, below which they stand for the rest of the game")
        return None
    return integer("max_depth", max_depth)


def continuation_of(
    blueprint: Blueprint, leaf_values: LeafValues, opponent: int, part: Part, classes: tuple[np.ndarray, ...]
) -> Continuation:
    """What `leaf_values` says about the cut-off histories of a part.

    Raises:
      SubgameError: values do not fit, or there is a choice and no opponent to make it.
    """
    if opponent < 0:
        if leaf_values is not None and not callable(leaf_values):
            raise SubgameError("several leaf_values are chosen among by the opponent, and without safety there is none")
        opponent = 0
    known = classes[opponent]
    if leaf_values is None:
        return Continuation(blueprint.values[None], known)
    if callable(leaf_values):
        return Continuation(np.zeros((1, *blueprint.values.shape)), known)
    if isinstance(leaf_values, str):
        return Continuation(_values_against(blueprint, opponent, biased_copies(blueprint, opponent)), known)
    if isinstance(leaf_values, Sequence) and leaf_values and all(isinstance(p, Profile) for p in leaf_values):
        strategies = [p.to_strategy(blueprint.lowered)[opponent] for p in leaf_values if isinstance(p, Profile)]
        return Continuation(_values_against(blueprint, opponent, strategies), known)
    rows = part.rows[part.cut_off]
    try:
        given = np.asarray(leaf_values, np.float64)
    except (TypeError, ValueError) as error:
        raise SubgameError(
            f'leaf_values has to be "biased", a list of profiles, an array [K, {len(rows)}, 2] or a function, not '
            f"{reprlib.repr(leaf_values)}"
        ) from error
    if given.ndim != 3 or given.shape[1:] != (len(rows), 2) or not len(given) or not np.all(np.isfinite(given)):
        raise SubgameError(
            f"leaf_values has to be finite numbers [K, {len(rows)}, 2]: K continuations, both players' payoffs at each "
            f"cut-off history, not {given.shape}"
        )
    values = np.zeros((len(given), *blueprint.values.shape))
    values[:, rows] = given
    return Continuation(values, known)


def _values_against(blueprint: Blueprint, opponent: int, strategies: Sequence[Any]) -> np.ndarray:
    """`[K, N, 2]`, what the histories are worth if the opponent goes on with each of these strategies."""
    values = []
    for strategy in strategies:
        pair: Strategy = (strategy, blueprint.strategy[1]) if opponent == 0 else (blueprint.strategy[0], strategy)
        values.append(blueprint.whole.values(pair))
    return np.stack(values)


def biased_copies(blueprint: Blueprint, player: int, factor: float = BIAS) -> list[np.ndarray]:
    """A player's blueprint strategy and copies that favour one kind of action, after Brown, Sandholm and Amos (2018).

    In poker these are folding, calling and raising. Where there are more than `MAX_BIASED` different actions, the
    copies favour the first and the last action of every information set.

    Args:
      blueprint: the strategy.
      player: whose.
      factor: how many times as often, before normalising.

    Returns:
      `[L_p]` each, the blueprint's first.
    """
    lowered = blueprint.lowered
    indices, offsets = lowered.tree.treeplexes[player].sequence_indices()
    labels = [label for menu in lowered.action_labels[player] for label in menu]
    kinds = list(dict.fromkeys(labels))
    if len(kinds) <= MAX_BIASED:
        favoured = [np.array([label == kind for label in labels], bool) for kind in kinds]
    else:
        first, last = np.zeros((2, len(labels)), bool)
        first[offsets[:-1]], last[offsets[1:] - 1] = True, True
        favoured = [first, last]
    own = blueprint.whole.rescaled(player, blueprint.strategy)
    copies = [own]
    for chosen in favoured:
        copy = own.copy()
        copy[indices] *= np.where(chosen, factor, 1.0)
        total = np.add.reduceat(copy[indices], offsets[:-1])
        copy[indices] /= np.repeat(total, np.diff(offsets))
        copies.append(copy)
    return copies


# Values from a function


@dataclasses.dataclass(frozen=True)
class PublicLeaves:
    """The cut-off histories of a game, by what both players know about them together.

    Attributes:
      rows: for each of the J public leaves, the rows of the whole game that it stands for.
      infoset: per player, for each public leaf the number, within the leaf, of what the player knows at each row.
      sizes: per player, the largest number of such things at a leaf: the length of its ranges.
    """

    rows: tuple[np.ndarray, ...]
    infoset: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
    sizes: tuple[int, int]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class FunctionPayoffs:
    """A payoff operator whose cut-off leaves are worth what a function says, anew in every product.

    A tree with it can be solved. Its best responses take the function's values for given.

    Attributes:
      table: the leaves where the play has ended; the others pay nothing there.
      function: `jax.tree_util.Partial` of a `ValueFunction`, so that its parameters are leaves.
      sequence: per player `[J, W_p]` int32, its flat sequence at what it knows at each public leaf.
      reach: per player `[J, W_p]`, its own reach of the part, 0 at the padding.
    """

    table: PayoffOperator
    function: Any
    sequence: tuple[Array, Array]
    reach: tuple[Array, Array]

    @property
    def leaves(self) -> Leaves:
        return self.table.leaves

    @property
    def offset(self) -> Array:
        return self.table.offset

    def spread(self) -> Array:
        """As `PayoffTable.spread`."""
        return self.table.spread()

    def with_payoffs(
        self, payoffs: Array, mirrored: bool | None = None, centre: bool = True, chance: Array | None = None
    ) -> FunctionPayoffs:
        """As `PayoffTable.with_payoffs`; what the function says stays."""
        return dataclasses.replace(self, table=self.table.with_payoffs(payoffs, mirrored, centre, chance))

    def paying_one(self) -> PayoffOperator:
        """As `PayoffTable.paying_one`; cut-off leaves pay 1 too."""
        return self.table.paying_one()

    def product(self, player: int, weights: tuple[Array, ...]) -> Array:
        """As `PayoffTable.product`, with the function's values; reads both players' weights.

        Weights with more axes than one are a batch along the others.
        """
        if weights[player].ndim > 1:
            one = functools.partial(self.product, player)
            batch: Array = jax.vmap(one, in_axes=-1, out_axes=-1)(weights)
            return batch
        direct = self.table.product(player, weights)
        ranges = tuple(weights[p][self.sequence[p]] * self.reach[p] for p in range(2))
        leaf = jnp.arange(self.sequence[0].shape[0])
        returned = jax.vmap(self.function)(leaf, ranges)
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            raise OptionError(f"the value function has to return two arrays, not {type(returned).__name__}")
        values = jnp.asarray(returned[player])
        if values.shape != self.reach[player].shape:
            raise OptionError(
                f"the value function has to return two arrays like the ranges, {self.reach[player].shape[1:]} for "
                f"player {player}, not {values.shape[1:]}"
            )
        own = (values * self.reach[player]).astype(direct.dtype)
        return direct.at[self.sequence[player].reshape(-1)].add(own.reshape(-1))


def public_leaves(game: ResolvingGame, classes: tuple[np.ndarray, ...]) -> PublicLeaves:
    """The public leaves of a game: what can only be told apart by somebody is not told apart together."""
    rows, known = _cut_leaves(game, classes)[1:]
    counts = [int(k.max(initial=-1)) + 1 for k in known]
    graph = scipy.sparse.coo_matrix(
        (np.ones(len(rows), np.int8), (known[0], counts[0] + known[1])), shape=(sum(counts), sum(counts))
    )
    _, component = scipy.sparse.csgraph.connected_components(graph, directed=False)
    public = component[known[0]]
    numbers = [np.flatnonzero(public == c) for c in dict.fromkeys(public.tolist())]
    infoset = tuple(tuple(np.unique(k[n], return_inverse=True)[1].reshape(-1) for n in numbers) for k in known)
    sizes = tuple(max((int(i.max()) + 1 for i in per_player), default=0) for per_player in infoset)
    return PublicLeaves(tuple(rows[n] for n in numbers), infoset, sizes)  # type: ignore[arg-type]


def _cut_leaves(
    game: ResolvingGame, classes: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """The cut-off leaves among all, their rows of the whole game, and per player a number for what it knows there."""
    cut_off = np.zeros(len(game.part.whole.nodes.player), bool)
    cut_off[game.part.rows[game.part.cut_off]] = True
    leaves = np.flatnonzero((game.ends.row >= 0) & cut_off[np.maximum(game.ends.row, 0)])
    rows = game.ends.row[leaves]
    known = []
    for player in range(2):
        pairs = np.stack([classes[player][rows], game.part.whole.sequence[player][rows]])
        known.append(np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1))
    return leaves, rows, known


def with_function(
    game: ResolvingGame, function: ValueFunction, classes: tuple[np.ndarray, ...], reaches: np.ndarray
) -> ResolvingGame:
    """The game with a function in the place of its cut-off leaves' values.

    Args:
      game: whose cut-off leaves pay nothing.
      function: see `ValueFunction`.
      classes: what the players know.
      reaches: `[3, N]`, by the blueprint.
    """
    histories = game.tree.histories
    assert histories is not None
    public = public_leaves(game, classes)
    leaves, rows, _ = _cut_leaves(game, classes)
    leaf_of_row = np.zeros(len(classes[0]), np.int64)
    leaf_of_row[rows] = leaves
    history_of_leaf = np.flatnonzero(np.asarray(histories.terminal) >= 0)
    root_row = game.part.rows[game.part.roots]
    counted = (0, 1) if game.opponent < 0 else (1 - game.opponent,)
    sequence, reach = [], []
    for player in range(2):
        shape = (len(public.rows), public.sizes[player])
        flat = np.full(shape, game.tree.treeplexes[player].size, np.int32)
        own = np.zeros(shape)
        for j, (members, place) in enumerate(zip(public.rows, public.infoset[player], strict=True)):
            leaf = leaf_of_row[members]
            flat[j, place] = np.asarray(histories.sequence[player])[history_of_leaf[leaf]]
            above = reaches[player][root_row[game.ends.root[leaf]]]
            own[j, place] = above if player in counted else 1.0
        sequence.append(jnp.asarray(flat))
        reach.append(jnp.asarray(own, game.tree.dtype))
    wrapped = function if isinstance(function, jax.tree_util.Partial) else jax.tree_util.Partial(function)  # type: ignore[no-untyped-call]
    payoffs = FunctionPayoffs(game.tree.payoffs, wrapped, (sequence[0], sequence[1]), (reach[0], reach[1]))
    # What the function says need not be constant-sum, so nothing that takes it for granted may be asked.
    tree = dataclasses.replace(game.tree, payoffs=payoffs, constant_sum=False, zero_sum=False)
    return dataclasses.replace(game, lowered=dataclasses.replace(game.lowered, tree=tree))
