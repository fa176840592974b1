"""Single plays with importance weights: outcome sampling (Lanctot et al. 2009)."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.traversal import randomness
from jaxcfr.traversal.walks import PLAYER_CODE, TERMINAL_CODE, Rows, draw, look, take
from jaxcfr.tree.fusion import kept_apart
from jaxcfr.tree.game_tree import GameTree

MAX_LANES = 4096
"""So many plays go on side by side; where one ends, its lane begins the next."""


@dataclasses.dataclass(frozen=True)
class Episodes:
    """Plays in which one player explores.

    Attributes:
      tree: with histories.
      player: who updates, and explores.
      seed: two words.
      cumulative: cumulative probabilities of everyone's strategy and of chance.
      probabilities: everyone's strategies in one vector.
      exploration: probability of drawing uniformly.
      baseline: what each action is expected to be worth, see `jaxcfr.traversal.baselines`; None for nothing.
      per_history: whether `baseline` is by history, `[N]`, or lies like `cumulative`.
      keeps_leaves: whether the leaf of each play is wanted.
    """

    tree: GameTree
    player: int
    seed: tuple[Array, Array]
    cumulative: Array
    probabilities: Array
    exploration: Array
    baseline: Array | None = None
    per_history: bool = False
    keeps_leaves: bool = False

    def run(self, batch: int) -> tuple[Array, Array, Array]:
        """All plays of an iteration.

        Returns:
          Estimates of the direct counterfactual values, `[L + 1]`; how many histories were visited; and the leaf of
          each play, `[batch]`, or nothing.
        """
        histories, dtype = self.tree.histories, self.tree.dtype
        assert histories is not None
        moves, treeplex = histories.moves, self.tree.treeplexes[self.player]
        offset = sum(other.size for other in self.tree.treeplexes[: self.player])
        payoffs = self.tree.payoffs.leaves.payoffs[:, self.player] - self.tree.payoffs.offset[self.player]
        lanes = min(batch, MAX_LANES)
        root = look(moves, jnp.zeros(1, jnp.int32))
        size = treeplex.size

        def ended(
            rows: Rows,
            sequence: Array,
            weight: Array,
            walk: Array,
            stream: Array,
            values: Array,
            leaves: Array,
            node: Array,
        ) -> tuple[Rows, Array, Array, Array, Array, Array, Array]:
            """Adds up the plays that have ended, and begins others in their lanes."""
            leaf = (rows.actor == TERMINAL_CODE) & (walk < batch)
            if self.keeps_leaves:
                leaves = leaves.at[jnp.where(leaf, walk, batch)].set(node, mode="drop")
            value = jnp.where(leaf, weight * take(payoffs, jnp.where(leaf, rows.target, 0)), 0)
            values = values.at[sequence].add(value, mode="promise_in_bounds")
            walk = jnp.where(leaf, walk + lanes, walk)
            stream = jnp.where(leaf, randomness.streams(self.seed, walk), stream)
            rows = Rows(*(jnp.where(leaf, first, column) for first, column in zip(root, rows, strict=True)))
            return rows, jnp.where(leaf, size, sequence), jnp.where(leaf, 1, weight), walk, stream, values, leaves

        def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            rows, sequence, weight, walk, stream, values, leaves, visited = carry
            going = walk < batch
            visited = visited + going.sum(dtype=jnp.float32)
            inner = rows.actor != TERMINAL_CODE
            own = rows.actor == PLAYER_CODE + self.player
            u = randomness.uniform(self.seed, stream, dtype)
            explores = own & (u < self.exploration)
            # Either part of the unit interval is stretched to the whole.
            rest = jnp.where(self.exploration < 1, 1 - self.exploration, 1)
            u = jnp.where(explores, u / self.exploration, jnp.where(own, (u - self.exploration) / rest, u))
            below_one = jnp.minimum(u, 1 - np.finfo(dtype).epsneg)
            followed = draw(self.cumulative, rows.base, rows.stride, rows.children, below_one, moves.most_children)
            any_action = jnp.minimum((u * rows.children).astype(jnp.int32), rows.children - 1)
            action = kept_apart(jnp.where(explores, any_action, followed))
            flat = rows.base + action * rows.stride
            probability = take(self.probabilities, jnp.where(own, flat, 0))
            drawn = self.exploration / jnp.maximum(rows.children, 1) + (1 - self.exploration) * probability
            after = jnp.where(own, weight / jnp.where(own, drawn, 1), weight)
            if self.baseline is not None:
                values = self._centre(values, rows, going & inner, own, action, sequence, weight, after)
            sequence = jnp.where(own & going, flat - offset, sequence)
            node = jnp.where(inner, rows.target + action, 0)
            below = kept_apart(look(moves, node))
            stream = randomness.after_draw(stream)
            return *ended(below, sequence, after, walk, stream, values, leaves, node), visited

        walk = jnp.arange(lanes, dtype=jnp.int32)
        begin = Rows(*(jnp.broadcast_to(column, lanes) for column in root))
        carry = (
            begin,
            jnp.full(lanes, size, jnp.int32),
            jnp.ones(lanes, dtype),
            walk,
            randomness.streams(self.seed, walk),
            jnp.zeros(size + 1, dtype),
            jnp.zeros(batch if self.keeps_leaves else 0, jnp.int32),
            jnp.zeros((), jnp.float32),
        )
        *_, values, leaves, visited = jax.lax.while_loop(lambda carry: jnp.any(carry[3] < batch), step, carry)
        return values / batch, visited, leaves

    def _centre(
        self,
        values: Array,
        rows: Rows,
        going: Array,
        own: Array,
        action: Array,
        sequence: Array,
        weight: Array,
        after: Array,
    ) -> Array:
        """Adds the baselines of all actions at the histories where plays are, and takes off those of the drawn ones.

        Of the actions of the updating player each counts by itself, of the others' and chance's their expectation
        (Schmid et al. 2019, Eq. 9). In expectation nothing is added, whatever the baselines.
        """
        assert self.baseline is not None
        assert self.tree.histories is not None
        baseline, offset = self.baseline, sum(other.size for other in self.tree.treeplexes[: self.player])
        nowhere = self.tree.treeplexes[self.player].size

        def worth(index: Array) -> Array:
            place = rows.target if self.per_history else rows.base
            return take(baseline, jnp.where(going, place + index * (1 if self.per_history else rows.stride), 0))

        def add(index: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            values, expected, before = carry
            there = going & (index < rows.children)
            flat = jnp.where(there, rows.base + index * rows.stride, 0)
            upto = take(self.cumulative, flat)
            found = jnp.where(there, worth(jnp.minimum(index, jnp.maximum(rows.children - 1, 0))), 0)
            values = values.at[jnp.where(there & own, flat - offset, nowhere)].add(jnp.where(own, weight * found, 0))
            return values, expected + jnp.where(there, (upto - before) * found, 0), jnp.where(there, upto, before)

        zeros = jnp.zeros_like(weight)
        values, expected, _ = jax.lax.fori_loop(0, self.tree.histories.moves.most_children, add, (values, zeros, zeros))
        drawn = jnp.where(going, worth(action), 0)
        values = values.at[jnp.where(own & going, rows.base + action * rows.stride - offset, nowhere)].add(
            jnp.where(own, -after * drawn, 0)
        )
        return values.at[sequence].add(jnp.where(going & ~own, weight * (expected - drawn), 0))

    def returns(self, leaves: Array, size: int) -> tuple[Array, Array]:
        """What the plays that came through each action earned below it, as a weighted sum, and the weights.

        A play counts as much as the player's strategy would have made it more likely than the exploring one did, below
        the action in question.

        Args:
          leaves: `[batch]`, as `run` returned them.
          size: of the baseline.
        """
        histories = self.tree.histories
        assert histories is not None
        moves = histories.moves
        payoffs = self.tree.payoffs.leaves.payoffs[:, self.player] - self.tree.payoffs.offset[self.player]
        worth = take(payoffs, look(moves, leaves).target)

        def climb(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            node, ratio, sums, weights = carry
            below = node > 0
            parent = jnp.where(below, take(histories.parent, node), 0)
            rows = look(moves, parent)
            action = jnp.where(below, node - rows.target, 0)
            decision = rows.actor >= PLAYER_CODE
            place = node if self.per_history else jnp.where(decision, rows.base + action * rows.stride, size)
            place = jnp.where(below, place, size)
            sums = sums.at[place].add(ratio * worth, mode="drop")
            weights = weights.at[place].add(ratio, mode="drop")
            own = below & (rows.actor == PLAYER_CODE + self.player)
            played = take(self.probabilities, jnp.where(own, rows.base + action * rows.stride, 0))
            drawn = self.exploration / jnp.maximum(rows.children, 1) + (1 - self.exploration) * played
            return parent, jnp.where(own, ratio * played / jnp.where(own, drawn, 1), ratio), sums, weights

        zeros = jnp.zeros(size, worth.dtype)
        _, _, sums, weights = jax.lax.while_loop(
            lambda carry: jnp.any(carry[0] > 0), climb, (leaves, jnp.ones_like(worth), zeros, zeros)
        )
        return sums, weights
