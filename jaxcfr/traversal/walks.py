"""Walks that sample: a batch of walks from the root as one fixed-shape array program.

A walk branches at the decisions of one player (external sampling) or of all
(chance sampling), and samples one child everywhere else. Walks differ in size:
the worst is 10 to 29 times the mean on Liar's dice. So nothing is padded to a
walk: all walks of a batch share one stack of histories. Each step looks at the
`width` topmost, takes as many as have room for their children, and puts the
children in their place; where the stack runs empty, new walks begin. Nearly
every slot of every step holds a history, and the stack cannot overflow: what
lies higher on it has fewer moves left, so each depth of the tree has at most
`width` histories there. Draws do not depend on when a history is looked at.

Nothing is handed up the tree. A sampled walk is an estimate of the *direct*
counterfactual values, the payoffs at the leaves summed by the player's last
sequence; what lies between the sequences is the player's own decision tree,
which `Treeplex.fold` goes through as for the full tree. The result is that of
Lanctot et al. (2009), summed over the batch.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.traversal import randomness
from jaxcfr.tree.fusion import kept_apart
from jaxcfr.tree.game_tree import GameTree
from jaxcfr.tree.moves import ACTOR_BITS, Moves
from jaxcfr.tree.treeplex import Treeplex

TERMINAL_CODE, CHANCE_CODE, PLAYER_CODE = 0, 1, 2

MIN_WIDTH, MAX_WIDTH = 256, 4096
"""A step looks at so many histories, at least and at most: enough to pay for its overhead, few enough for a cache."""


class Rows(NamedTuple):
    """Columns of `Moves.rows` for some histories, `[K]` each."""

    target: Array
    children: Array
    actor: Array
    base: Array
    stride: Array


def look(moves: Moves, node: Array) -> Rows:
    """The rows of histories `[K]`."""
    rows = moves.rows.at[node].get(mode="promise_in_bounds")
    packed = rows[:, 1]
    return Rows(rows[:, 0], packed >> ACTOR_BITS, packed & (2**ACTOR_BITS - 1), rows[:, 2], rows[:, 3])


def take(values: Array, index: Array) -> Array:
    """`values[index]` for indices that are known to be in range."""
    return values.at[index].get(mode="promise_in_bounds")


def ending_at_one(running: Array) -> Array:
    """Running sums of probabilities `[A, n]`, divided by their total.

    So they are exactly 1 from the last action on that has a probability: no other is drawn.
    """
    total = running[-1:]
    return jnp.where(total > 0, running / jnp.where(total > 0, total, 1), 1)


def cumulative_strategy(treeplex: Treeplex, strategy: Array) -> Array:
    """Cumulative probabilities `[L]` along the actions of every information set."""
    return treeplex.over_tables(lambda values: ending_at_one(jnp.cumsum(values, axis=0)), strategy)


def draw(cumulative: Array, base: Array, stride: Array | int, children: Array, u: Array, most_children: int) -> Array:
    """The child whose interval of cumulative probability holds u, by bisection: int32 `[K]`.

    Those of each lie at `base`, `base + stride`, ... of `cumulative`.
    """
    low, high = jnp.zeros_like(children), jnp.maximum(children - 1, 0)
    for _ in range(math.ceil(math.log2(max(most_children, 1)))):
        middle = (low + high) >> 1
        beyond = (u >= take(cumulative, base + middle * stride)) & (low < high)
        low = jnp.where(beyond, middle + 1, low)
        high = jnp.where(beyond, high, middle)
    return low


BLOCK = 32


def prefix_sums(values: Array) -> Array:
    """Inclusive sums of int32 `[n]`, exact below 2^24.

    As products with a triangle of ones: four times as fast on a CPU as `jnp.cumsum`.
    """
    count = values.shape[0]
    if count <= BLOCK:
        return jnp.cumsum(values, dtype=jnp.int32)
    blocks = -(-count // BLOCK)
    table = jnp.pad(values, (0, blocks * BLOCK - count)).reshape(blocks, BLOCK)
    triangle = np.triu(np.ones((BLOCK, BLOCK), np.float32))
    inside = jnp.dot(table.astype(jnp.float32), triangle, precision=jax.lax.Precision.HIGHEST).astype(jnp.int32)
    inside = kept_apart(inside)
    before = prefix_sums(inside[:, -1]) - inside[:, -1]
    return (inside + before[:, None]).reshape(-1)[:count]


class Room(NamedTuple):
    """Which of a window of histories a step takes, and whose children its slots hold.

    Attributes:
      taken: bool `[width]`, which histories.
      start: int32 `[width]`, the slot of each one's first child.
      total: int32, how many children there are.
      parent: int32 `[width]`, the history that the child in each slot belongs to.
    """

    taken: Array
    start: Array
    total: Array
    parent: Array


def make_room(count: Array) -> Room:
    """Of histories with so many children `[width]`, as many from the end as have room for them in as many slots."""
    width = count.shape[0]
    stop = kept_apart(prefix_sums(kept_apart(count)))
    taken = stop[-1] - stop + count <= width
    left_out = jnp.sum(jnp.where(taken, 0, count), dtype=jnp.int32)
    start, total, taken = kept_apart((jnp.maximum(stop - count - left_out, 0), stop[-1] - left_out, taken))
    # Child j belongs to the last history that begins at or before it.
    marks = jnp.zeros(width + 1, jnp.int32).at[jnp.minimum(start, width)].add(1, mode="promise_in_bounds")
    return Room(taken, start, total, kept_apart(prefix_sums(marks[:width]) - 1))


class Stack(NamedTuple):
    """Histories still to be looked at, `[S]` each; those from `top` on are leftovers.

    Attributes:
      top: int32, how many there are.
      begun: int32, walks that have begun.
      node: int32.
      stream: uint32, see `randomness`.
      sequence: int32, the updating player's last sequence.
      weight: of the walk there; None where all weigh the same.
    """

    top: Array
    begun: Array
    node: Array
    stream: Array
    sequence: Array
    weight: Array | None


class Tally(NamedTuple):
    """What walks add up.

    Attributes:
      values: `[L + 1]`, direct counterfactual values.
      visited: float32, histories visited.
      visits: `[L + 1]`, at each information set's first action the part of the walks that came to it, or None.
    """

    values: Array
    visited: Array
    visits: Array | None = None


class Choices(NamedTuple):
    """The actions of one player that are left after pruning.

    Attributes:
      left: `[L]` int32, at each information set's first action how many are left.
      action: `[L]` int32, at its i-th action the number of the i-th that is left.
    """

    left: Array
    action: Array


@dataclasses.dataclass(frozen=True)
class Walker:
    """One player's walks through a tree.

    Attributes:
      tree: with histories.
      player: who updates.
      everyone: whether walks branch at everyone's decisions, or at this player's only.
      rolls: how many children are drawn at each history of chance.
      seed: two words.
      cumulative: cumulative probabilities of everyone's strategy and of chance.
      probabilities: everyone's strategies in one vector (only where walks branch at everyone's decisions).
      choices: the updating player's actions that are not pruned, or None.
      private: `[N]` bool, chance moves where walks take all outcomes, by their probability, or None for nowhere (only
        where walks branch at everyone's decisions).
      counts: whether to count how many walks come to the updating player's information sets.
      centre: `[N]`, what a walk's coming to a history adds to its value (see `jaxcfr.traversal.baselines`), or None.
    """

    tree: GameTree
    player: int
    everyone: bool
    rolls: int
    seed: tuple[Array, Array]
    cumulative: Array
    probabilities: Array | None = None
    choices: Choices | None = None
    private: Array | None = None
    counts: bool = False
    centre: Array | None = None

    def run(self, batch: int) -> Tally:
        """All walks of an iteration; the mean of what they are worth."""
        treeplex, dtype = self.tree.treeplexes[self.player], self.tree.dtype
        width = self._width(batch)
        size = width * (self.tree.depth + 2)
        zero = jnp.zeros((), jnp.int32)
        stack = Stack(
            top=zero,
            begun=zero,
            node=jnp.zeros(size, jnp.int32),
            stream=jnp.zeros(size, jnp.uint32),
            sequence=jnp.zeros(size, jnp.int32),
            weight=jnp.zeros(size, dtype) if self.everyone else None,
        )
        # What is counted lies behind the values, so that one scatter serves both.
        size = treeplex.size + 1
        tally = Tally(jnp.zeros(2 * size if self.counts else size, dtype), jnp.zeros((), jnp.float32))

        def step(carry: tuple[Stack, Tally]) -> tuple[Stack, Tally]:
            return self._step(*carry, batch, width)

        def more(carry: tuple[Stack, Tally]) -> Array:
            return (carry[0].top > 0) | (carry[0].begun < batch)

        _, tally = jax.lax.while_loop(more, step, (stack, tally))
        values = tally.values / batch
        return Tally(values[:size], tally.visited, values[size:] if self.counts else None)

    def _width(self, batch: int) -> int:
        assert self.tree.histories is not None
        widest = max(self.tree.histories.moves.most_children, self.rolls)
        return max(MIN_WIDTH, min(1 << (2 * batch - 1).bit_length(), MAX_WIDTH), 1 << (widest - 1).bit_length())

    def _step(self, stack: Stack, tally: Tally, batch: int, width: int) -> tuple[Stack, Tally]:
        """Takes histories from the top of the stack and puts their children there."""
        histories, treeplex, dtype = self.tree.histories, self.tree.treeplexes[self.player], self.tree.dtype
        assert histories is not None
        most = histories.moves.most_children
        offset = sum(other.size for other in self.tree.treeplexes[: self.player])
        slot = jnp.arange(width, dtype=jnp.int32)
        bottom = jnp.maximum(stack.top - width, 0)

        def window(column: Array) -> Array:
            return jax.lax.dynamic_slice_in_dim(column, bottom, width)

        columns = (stack.node, stack.stream, stack.sequence, stack.weight)
        node, stream, sequence, weight = kept_apart(jax.tree.map(window, columns))
        valid = bottom + slot < stack.top
        if weight is not None:
            valid = valid & (weight != 0)  # what an opponent never plays is worth nothing
        rows = kept_apart(look(histories.moves, jnp.where(valid, node, 0)))
        leaf = valid & (rows.actor == TERMINAL_CODE)
        inner = valid & ~leaf
        chance = rows.actor == CHANCE_CODE
        dealt = jnp.zeros_like(chance)
        if self.private is not None:
            dealt = chance & take(self.private, jnp.where(valid, node, 0))
            chance = chance & ~dealt
        own = inner & (rows.actor == PLAYER_CODE + self.player)
        branches = inner & ~chance if self.everyone else own
        action = jnp.zeros_like(node)
        if not self.everyone or self.rolls == 1:
            u = randomness.uniform(self.seed, stream, dtype)
            action = kept_apart(draw(self.cumulative, rows.base, rows.stride, rows.children, u, most))

        children = rows.children
        if self.choices is not None:
            children = jnp.where(own, take(self.choices.left, jnp.where(own, rows.base - offset, 0)), children)
        count = jnp.where(inner, jnp.where(branches, children, self.rolls), 0)
        taken, start, total, parent = make_room(count)
        payoffs = self.tree.payoffs.leaves.payoffs[:, self.player] - self.tree.payoffs.offset[self.player]
        value = jnp.where(leaf & taken, take(payoffs, jnp.where(leaf, rows.target, 0)), 0)
        if weight is not None:
            value = value * weight
        place, values = sequence, tally.values
        if self.centre is not None:
            met = taken & (bottom + slot < stack.top)
            added = jnp.where(met, take(self.centre, jnp.where(met, node, 0)), 0)
            if self.counts:
                values = values.at[sequence].add(added, mode="promise_in_bounds")
            else:
                value = value + added
        if self.counts:
            value = jnp.where(own & taken, 1, value)
            place = jnp.where(own, treeplex.size + 1 + rows.base - offset, sequence)
        values = values.at[place].add(value, mode="promise_in_bounds")
        gone = taken & (bottom + slot < stack.top)
        top = stack.top - gone.sum(dtype=jnp.int32)

        inside = slot < total
        branch = jnp.where(inside, slot - take(start, parent), 0)
        chosen = branch
        flat, stride = take(jnp.where(own, rows.base - offset, sequence), parent), take(rows.stride, parent)
        mine = take(own, parent)
        if self.choices is not None:
            chosen = jnp.where(mine, take(self.choices.action, jnp.where(mine, flat + branch * stride, 0)), branch)
        # By the number of the action: what is drawn below one does not depend on which others are pruned.
        below = randomness.after_branch(take(stream, parent), chosen)
        if self.everyone and self.rolls > 1:
            # Every outcome is drawn anew.
            rolled = take(chance, parent)
            u = randomness.uniform(self.seed, below, dtype)
            base, steps, number = (take(column, parent) for column in (rows.base, rows.stride, rows.children))
            chosen = jnp.where(rolled, draw(self.cumulative, base, steps, number, u, most), branch)
            below = jnp.where(rolled, randomness.after_draw(below), below)
        child = take(kept_apart(rows.target + jnp.where(branches, 0, action)), parent) + chosen
        after = jnp.where(mine, flat + chosen * stride, flat)
        child_weight = None
        if weight is not None and self.probabilities is not None:
            other = take(branches & ~own & ~dealt, parent)
            played = take(self.probabilities, jnp.where(other & inside, take(rows.base, parent) + chosen * stride, 0))
            factor = jnp.where(other, played, jnp.where(mine, 1, 1 / self.rolls))
            if self.private is not None:
                reached = take(histories.chance, jnp.where(inside, child, 0))
                factor = jnp.where(take(dealt, parent), reached, factor)
            child_weight = jnp.where(inside, take(weight, parent) * factor, 1)

        # Where nothing is left below them, new walks begin.
        fresh = jnp.where(top == 0, jnp.minimum(batch - stack.begun, width - total), 0)
        pushed = Stack(
            top=top + total + fresh,
            begun=stack.begun + fresh,
            node=jnp.where(inside, child, 0),
            stream=jnp.where(inside, below, randomness.streams(self.seed, stack.begun + slot - total)),
            sequence=jnp.where(inside, after, treeplex.size),
            weight=child_weight,
        )

        def push(column: Array, new: Array) -> Array:
            return jax.lax.dynamic_update_slice_in_dim(column, new, top, 0)

        stack = Stack(
            top=pushed.top,
            begun=pushed.begun,
            node=push(stack.node, pushed.node),
            stream=push(stack.stream, pushed.stream),
            sequence=push(stack.sequence, pushed.sequence),
            weight=None if stack.weight is None or pushed.weight is None else push(stack.weight, pushed.weight),
        )
        return stack, Tally(values, tally.visited + gone.sum(dtype=jnp.float32))
