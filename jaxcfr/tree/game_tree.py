"""`GameTree`: a game as a pytree of padded arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.concrete import is_concrete
from jaxcfr.errors import OptionError, StrategyError
from jaxcfr.tree.moves import Moves
from jaxcfr.tree.payoffs import PayoffOperator
from jaxcfr.tree.treeplex import Treeplex

Strategy = tuple[Array, ...]
"""One behaviour strategy per player: player p's is flat, `[L_p]`, in the layout of its `Treeplex`."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Histories:
    """The N histories in breadth-first order (what sampling and cutting subgames need; full-tree CFR does not).

    Attributes:
      player: `[N]` int8, 0 to P - 1, -1 chance, -2 terminal.
      infoset: `[N]` int32, number of the information set among its owner's, -1 elsewhere.
      parent: `[N]` int32, -1 for the root.
      first_child: `[N]` int32, -1 where there is none; children lie next to each other in action order.
      num_children: `[N]` int32.
      chance: `[N]` probability of the edge into the history if chance moves there, else 1.
      chance_reach: `[N]` product of the chance probabilities on the path.
      sequence: per player `[N]` int32, flat index of its last sequence on the path, L_p for the empty one.
      terminal: `[N]` int32, number of the leaf, -1 elsewhere.
      moves: the same, packed for walks that sample.
      level_offsets: rows `level_offsets[d]:level_offsets[d + 1]` are the histories of depth d (static).
    """

    player: Array
    infoset: Array
    parent: Array
    first_child: Array
    num_children: Array
    chance: Array
    chance_reach: Array
    sequence: tuple[Array, ...]
    terminal: Array
    moves: Moves
    level_offsets: tuple[int, ...] = dataclasses.field(metadata={"static": True})


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class GameTree:
    """A game of P players, lowered: their decision trees and the payoff operator that couples them.

    All arrays are leaves, all shapes and offsets are static, so trees of equal shape stack (`stack`), and `vmap`
    and `grad` work over payoffs and chance. The information-set keys are not here: see `LoweredGame`.

    Attributes:
      treeplexes: one decision tree per player.
      payoffs: maps realization weights to counterfactual values.
      histories: the N histories, or None where the tree was built without them.
      num_histories, num_terminals, depth: counts (static).
      constant_sum: two players whose payoffs have the same sum at every leaf (static).
      zero_sum: that sum is zero (static).
    """

    treeplexes: tuple[Treeplex, ...]
    payoffs: PayoffOperator
    histories: Histories | None
    num_histories: int = dataclasses.field(metadata={"static": True})
    num_terminals: int = dataclasses.field(metadata={"static": True})
    depth: int = dataclasses.field(metadata={"static": True})
    constant_sum: bool = dataclasses.field(metadata={"static": True})
    zero_sum: bool = dataclasses.field(metadata={"static": True})

    def __repr__(self) -> str:
        return (
            f"GameTree({self.num_players} players, {self.num_histories:,} histories, "
            f"information sets {self.num_infosets}, depth {self.depth}, {self.dtype})"
        )

    @property
    def num_players(self) -> int:
        return len(self.treeplexes)

    @property
    def num_infosets(self) -> tuple[int, ...]:
        """Information sets per player."""
        return tuple(treeplex.num_infosets for treeplex in self.treeplexes)

    @property
    def num_sequences(self) -> tuple[int, ...]:
        """Sequences per player, the empty one included."""
        return tuple(treeplex.num_sequences for treeplex in self.treeplexes)

    @property
    def dtype(self) -> Any:
        return self.payoffs.leaves.payoffs.dtype

    @property
    def terminal_payoffs(self) -> Array:
        """`[Z, P]` payoffs of the leaves in breadth-first order, rounded to the tree's dtype.

        What the solver works with was centred first: payoffs 1e6 and 1e6 + 0.01 differ in a float32 tree, although
        they do not here.
        """
        return self.payoffs.leaves.payoffs

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self))

    def with_payoffs(self, terminal_payoffs: Array) -> GameTree:
        """The same game with other payoffs, `[Z, P]`, in the order of `terminal_payoffs`.

        Pure, so payoffs can be swept with `vmap` and differentiated. What is static stays: a tree that was lowered
        as constant-sum (or zero-sum) only takes payoffs that are; lower with `general_sum=True` to be free of that.

        Raises:
          OptionError: the shape is wrong, or the payoffs of a constant-sum tree are not constant-sum. Where they are
            traced and cannot be checked, payoffs that break the promise become NaN.
        """
        payoffs = jnp.asarray(terminal_payoffs, self.dtype)
        if payoffs.shape != self.terminal_payoffs.shape:
            raise OptionError(
                f"terminal_payoffs has shape {payoffs.shape}, but this tree has {self.num_terminals} leaves and "
                f"{self.num_players} players: it has to be {self.terminal_payoffs.shape}"
            )
        if self.constant_sum and not is_concrete(payoffs):
            payoffs = jnp.where(self._keeps_the_sum(payoffs, jnp), payoffs, jnp.nan)
        elif self.constant_sum and not self._keeps_the_sum(np.asarray(payoffs), np):
            kind = "zero-sum" if self.zero_sum else "constant-sum"
            raise OptionError(
                f"this tree was lowered as {kind}, and these payoffs are not; lower the game with general_sum=True "
                "to give it any payoffs"
            )
        return dataclasses.replace(self, payoffs=self.payoffs.with_payoffs(payoffs))

    def _keeps_the_sum(self, payoffs: Any, xp: Any) -> Any:
        """Whether payoffs `[Z, 2]` are zero-sum, or constant-sum, as this tree's; `xp` is numpy or jax.numpy."""
        total = payoffs.sum(1)
        tolerance = 16 * np.finfo(self.dtype).eps * xp.abs(payoffs).max(1)
        if self.zero_sum:
            return xp.all(xp.abs(total) <= tolerance)
        finest = xp.argmin(tolerance)
        return xp.all(xp.abs(total - total[finest]) <= tolerance + tolerance[finest])

    def check_strategy(self, strategy: Any) -> None:
        """Raises `StrategyError` unless `strategy` has one array of the right shape and dtype per player.

        Concrete strategies are also checked to be distributions at every information set.
        """
        instead = _STRATEGY_OF.get(type(strategy).__name__)
        if instead or not isinstance(strategy, (tuple, list)) or len(strategy) != self.num_players:
            length = f" of length {len(strategy)}" if isinstance(strategy, (tuple, list)) and not instead else ""
            raise StrategyError(
                f"a strategy is a tuple with one array per player, here {self.num_players}; "
                f"got {_kind(strategy)}{length}{instead or ''}"
            )
        for player, (values, treeplex) in enumerate(zip(strategy, self.treeplexes, strict=True)):
            if isinstance(values, (tuple, list)):
                raise StrategyError(
                    f"player {player}'s strategy is a {type(values).__name__} of numbers, but an array is needed: "
                    "jnp.asarray makes one"
                )
            try:
                chex.assert_shape(values, treeplex.uniform.shape)
            except (AssertionError, TypeError) as error:
                raise StrategyError(
                    f"player {player}'s strategy has shape {jnp.shape(values)}, but its part of this tree is "
                    f"{treeplex.uniform.shape}: is it a strategy of another game or layout? A Profile finds its "
                    "information sets in any tree: profile.to_strategy(lowered), and lowered.strategy(rows) "
                    "takes one number for each action, set by set"
                ) from error
            if not jnp.issubdtype(jnp.asarray(values).dtype, jnp.floating):
                raise StrategyError(f"player {player}'s strategy holds {jnp.asarray(values).dtype}, not floats")
            if is_concrete(values, treeplex.uniform) and values.ndim == 1:
                _check_distributions(player, np.asarray(values), treeplex)


def require_tree(tree: Any) -> GameTree:
    """The tree itself; raises `OptionError` for anything else, with what to pass instead."""
    if isinstance(tree, GameTree):
        if any(treeplex.uniform.ndim != 1 for treeplex in tree.treeplexes):
            raise OptionError("these are several trees, stacked: jax.vmap over them")
        return tree
    if hasattr(tree, "tree"):
        hint = ": pass its .tree"
    elif isinstance(tree, str):
        hint = f"; jaxcfr.lower(jaxcfr.load_game({tree!r})).tree makes one"
    elif isinstance(tree, type) and hasattr(tree, "is_terminal"):
        hint = f"; jaxcfr.lower({tree.__name__}(...)).tree makes one"
    elif hasattr(tree, "is_terminal") or hasattr(tree, "init"):
        hint = "; jaxcfr.lower(game).tree makes one"
    else:
        hint = ": the tree comes first" if isinstance(tree, tuple) else ""
    raise OptionError(f"a GameTree is needed here, not {_kind(tree)}{hint}")


_STRATEGY_OF = {
    "SolverState": ": jaxcfr.average_strategy(tree, state) is the solution that a run has found",
    "Profile": ": profile.to_strategy(lowered) makes the arrays",
}
"""What has a strategy, by the name of its type, and where to find it."""


def _kind(value: Any) -> str:
    """What something is, in an error."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "an array" if isinstance(value, (jax.Array, np.ndarray)) else type(value).__name__


def _check_distributions(player: int, values: np.ndarray, treeplex: Treeplex) -> None:
    indices, offsets = treeplex.sequence_indices()
    if not len(indices):
        return
    probability = values[indices].astype(np.float64)
    total = np.add.reduceat(probability, offsets[:-1])
    # Written down in float64, what a float32 tree found is still as rough as float32.
    tolerance = 1e3 * max(float(np.finfo(dtype).eps) for dtype in (values.dtype, treeplex.dtype))
    bad = ~(np.abs(total - 1) <= tolerance) | (np.minimum.reduceat(probability, offsets[:-1]) < -tolerance)
    if np.any(bad):
        infoset = int(np.flatnonzero(bad)[0])
        shown = probability[offsets[infoset] : offsets[infoset + 1]]
        raise StrategyError(
            f"player {player}'s strategy is not a probability distribution at information set number {infoset}: "
            f"{np.array2string(shown, threshold=8)}"
        )


def stack(trees: Sequence[GameTree]) -> GameTree:
    """Stacks trees of equal shape along a new leading axis, for `vmap`.

    Raises:
      OptionError: the trees differ in shape or in a static fact.
    """
    if not trees:
        raise OptionError("stack needs at least one tree")
    structures: list[Any] = [jax.tree.structure(tree) for tree in trees]
    shapes = [[(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)] for tree in trees]
    for number, (structure, shape) in enumerate(zip(structures, shapes, strict=True)):
        if structure != structures[0] or shape != shapes[0]:
            raise OptionError(
                f"tree {number} has another shape than tree 0 (counts, layout or dtype differ): they cannot be stacked"
            )
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)
