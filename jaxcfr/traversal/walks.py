"""Walks that sample: a batch of walks from the root as one fixed-shape array program.

A walk branches at the decisions of one player (external sampling) or of all
(chance sampling), and samples one child everywhere else. The batch's histories
below the k-th decisions form a *frontier*, whose size differs from walk to
walk: the worst is 10 to 29 times the mean on Liar's dice. So frontiers are
pooled, with room for somewhat more than the mean; where a pass runs out of
room it is done again with fewer walks. Draws do not depend on the grouping, so
that changes nothing but the order of summation.

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

from jaxcfr.errors import OptionError
from jaxcfr.traversal import randomness
from jaxcfr.tree.game_tree import GameTree, Histories
from jaxcfr.tree.moves import ACTOR_BITS, PER_WALK, Frontier, Moves
from jaxcfr.tree.treeplex import Treeplex

TERMINAL_CODE, CHANCE_CODE, PLAYER_CODE = 0, 1, 2

ROOM = 1.5
"""Room in a frontier, relative to its mean under uniform play."""

LEAST_ROOM = 128
"""Frontiers have room for at least so many histories: smaller ones cost the same."""

MAX_PASS = 4096
"""A pass does at most so many walks; larger batches take several."""

PASS_SLOTS = 2**13
"""A pass does so few walks that its largest frontier has room for about this many histories."""

MOST_SLOTS = 2**22
"""No frontier is larger than this."""

MAX_GROUPS = 3
"""Frontiers are of at most so many sizes; those of one size share one compiled loop."""


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


def cumulative_strategy(treeplex: Treeplex, strategy: Array) -> Array:
    """Cumulative probabilities `[L]` along the actions of every information set.

    Divided by the total, so that they are exactly 1 from the last action on that has a probability: no other is drawn.
    """

    def rule(probabilities: Array) -> Array:
        running = jnp.cumsum(probabilities, axis=0)
        total = running[-1:]
        return jnp.where(total > 0, running / jnp.where(total > 0, total, 1), 1)

    return treeplex.over_tables(rule, strategy)


def draw(cumulative: Array, rows: Rows, u: Array, most_children: int) -> Array:
    """For each row the action whose interval of cumulative probability holds u, by bisection: int32 `[K]`."""
    low, high = jnp.zeros_like(rows.children), jnp.maximum(rows.children - 1, 0)
    for _ in range(math.ceil(math.log2(max(most_children, 1)))):
        middle = (low + high) >> 1
        beyond = (u >= take(cumulative, rows.base + middle * rows.stride)) & (low < high)
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
        return jnp.cumsum(values)
    blocks = -(-count // BLOCK)
    table = jnp.pad(values, (0, blocks * BLOCK - count)).reshape(blocks, BLOCK)
    triangle = np.triu(np.ones((BLOCK, BLOCK), np.float32))
    inside = jnp.dot(table.astype(jnp.float32), triangle, precision=jax.lax.Precision.HIGHEST).astype(jnp.int32)
    before = prefix_sums(inside[:, -1]) - inside[:, -1]
    return (inside + before[:, None]).reshape(-1)[:count]


@dataclasses.dataclass(frozen=True)
class Group:
    """Consecutive frontiers with room for the same number of histories.

    The first frontier of all is the root, once for each walk.
    """

    size: int
    levels: int


def plan(frontier: Frontier, walks: int, rolls: int = 1, room: float = ROOM) -> tuple[int, tuple[Group, ...]]:
    """Sizes of the pooled frontiers of a pass: near the mean, and never too small for one walk.

    Args:
      frontier: of one walk.
      walks: how many there are.
      rolls: how many outcomes are drawn at each chance move the walk branches at.
      room: see `ROOM`.

    Returns:
      The most walks of a pass, and the frontiers.

    Raises:
      OptionError: a single walk is too large.
    """
    means = [sum(mean * rolls**power for power, mean in enumerate(row)) / PER_WALK for row in frontier.mean]
    worst = [most * rolls**power for most, power in zip(frontier.worst, frontier.rolls, strict=True)]
    if max(worst, default=0) > MOST_SLOTS:
        raise OptionError(
            f"one walk of this game can meet {max(worst):,} histories at a time, more than the {MOST_SLOTS:,} that a "
            "frontier has room for: use outcome_sampling(), or fewer chance_samples"
        )
    walks = max(1, min(walks, MAX_PASS, int(PASS_SLOTS / (room * max(means, default=1)))))
    sizes = [walks]
    sizes += [max(math.ceil(room * walks * mean), one, LEAST_ROOM) for mean, one in zip(means, worst, strict=True)]
    sizes = [-(-size // BLOCK) * BLOCK for size in sizes]
    return walks, tuple(Group(max(sizes[start:stop]), stop - start) for start, stop in _partition(sizes, MAX_GROUPS))


def _partition(sizes: list[int], groups: int) -> list[tuple[int, int]]:
    """Splits levels into at most `groups` runs whose sizes, each rounded up to the largest of its run, cost least."""
    count = len(sizes)
    if count > 256:  # deep and narrow: one loop
        return [(0, count)]
    best = [[math.inf] * (count + 1) for _ in range(groups + 1)]
    cut = [[0] * (count + 1) for _ in range(groups + 1)]
    best[0][0] = 0
    for used in range(1, groups + 1):
        for stop in range(1, count + 1):
            largest = 0
            for start in range(stop - 1, -1, -1):
                largest = max(largest, sizes[start])
                cost = best[used - 1][start] + largest * (stop - start)
                if cost < best[used][stop]:
                    best[used][stop], cut[used][stop] = cost, start
    used = min(range(1, groups + 1), key=lambda used: best[used][count]) if count else 0
    runs: list[tuple[int, int]] = []
    stop = count
    while stop:
        runs.insert(0, (cut[used][stop], stop))
        stop, used = cut[used][stop], used - 1
    return runs


class Front(NamedTuple):
    """A frontier of K histories.

    Attributes:
      node: `[K]` int32.
      stream: `[K]` uint32, see `randomness`.
      sequence: `[K]` int32, the updating player's last sequence.
      weight: `[K]`, of the walk here; None where all weigh the same.
      active: `[K]` bool, whether there is a history.
    """

    node: Array
    stream: Array
    sequence: Array
    weight: Array | None
    active: Array


class Tally(NamedTuple):
    """What a pass adds up.

    Attributes:
      values: `[L + 1]`, direct counterfactual values.
      visited: float32, histories visited.
      fill: float32, the largest part of a frontier that was in use; above 1 the pass has run out of room.
    """

    values: Array
    visited: Array
    fill: Array


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
      correction: what each drawn action adds, see `jaxcfr.traversal.baselines`, or None.
      choices: the updating player's actions that are not pruned, or None.
    """

    tree: GameTree
    player: int
    everyone: bool
    rolls: int
    seed: tuple[Array, Array]
    cumulative: Array
    probabilities: Array | None = None
    correction: Array | None = None
    choices: Choices | None = None

    @property
    def moves(self) -> Moves:
        histories = self.tree.histories
        assert isinstance(histories, Histories)
        return histories.moves

    def run(self, batch: int, passes: Array, room: float) -> tuple[Tally, Array]:
        """All walks of an iteration.

        Args:
          batch: how many.
          passes: float32, about how many walks a pass has room for.
          room: see `ROOM`.

        Returns:
          The sums over all walks, and the new number of walks a pass has room for.
        """
        which = self.player if not self.everyone else -2 if self.rolls == 1 else -1
        size, groups = plan(self.moves.frontiers[which], batch, self.rolls, room)
        values = jnp.zeros(self.tree.treeplexes[self.player].size + 1, self.tree.dtype)
        zero = jnp.zeros((), jnp.float32)

        def step(carry: tuple[Array, Array, Tally]) -> tuple[Array, Array, Tally]:
            done, fits, sums = carry
            left = batch - done
            # Equal shares of what is left.
            trips = -(-left // jnp.clip(fits.astype(jnp.int32), 1, size))
            walks = -(-left // trips)
            tally = self._pass(done, walks, groups)
            enough = tally.fill <= 1
            kept = Tally(
                *(jnp.where(enough, after, before) for after, before in zip(_add(sums, tally), sums, strict=True))
            )
            fits = walks * 0.9 / jnp.maximum(tally.fill, 1e-6)
            fits = jnp.clip(jnp.where(enough, fits, jnp.minimum(fits, walks / 2)), 1.0, float(size))
            return done + jnp.where(enough, walks, 0), fits, kept

        _, passes, tally = jax.lax.while_loop(
            lambda carry: carry[0] < batch, step, (jnp.zeros((), jnp.int32), passes, Tally(values, zero, zero))
        )
        return tally._replace(values=tally.values / batch), passes

    def _pass(self, first: Array, walks: Array, groups: tuple[Group, ...]) -> Tally:
        treeplex = self.tree.treeplexes[self.player]
        size = groups[0].size
        number = jnp.arange(size, dtype=jnp.int32)
        dtype = self.tree.dtype
        front = Front(
            node=jnp.zeros(size, jnp.int32),
            stream=randomness.streams(self.seed, first + number),
            sequence=jnp.full(size, treeplex.size, jnp.int32),
            weight=jnp.ones(size, dtype) if self.everyone else None,
            active=number < walks,
        )
        zero = jnp.zeros((), jnp.float32)
        tally = Tally(jnp.zeros(treeplex.size + 1, dtype), walks.astype(jnp.float32), zero)
        for index, group in enumerate(groups):
            front = jax.tree.map(lambda column, size=group.size: _resized(column, size), front)
            after = groups[index + 1].size if index + 1 < len(groups) else group.size
            front, tally = self._levels(front, tally, group, after)
        return tally

    def _levels(self, front: Front, tally: Tally, group: Group, after: int) -> tuple[Front, Tally]:
        """From frontier to frontier of one size, as long as there are histories; the last has to fit into `after`."""

        def step(carry: tuple[Array, Front, Tally]) -> tuple[Array, Front, Tally]:
            level, front, tally = carry
            front, rows, tally = self._advance(front, tally)
            size = after if group.levels == 1 else group.size
            room = jnp.where(level + 1 < group.levels, group.size, min(after, size))
            return level + 1, *self._descend(front, rows, tally, size, room)

        def more(carry: tuple[Array, Front, Tally]) -> Array:
            return (carry[0] < group.levels) & jnp.any(carry[1].active)

        carry = (jnp.zeros((), jnp.int32), front, tally)
        _, front, tally = step(carry) if group.levels == 1 else jax.lax.while_loop(more, step, carry)
        return front, tally

    def _branches(self, front: Front, rows: Rows) -> Array:
        """Where the walk goes on with several children."""
        mine = rows.actor >= PLAYER_CODE if self.everyone else rows.actor == PLAYER_CODE + self.player
        if self.rolls > 1:
            mine = mine | (rows.actor == CHANCE_CODE)
        if front.weight is not None:
            mine = mine & (front.weight != 0)
        return front.active & mine

    def _advance(self, front: Front, tally: Tally) -> tuple[Front, Rows, Tally]:
        """Draws children until everyone is at a history where the walk branches, or at a leaf; adds up the leaves."""
        moves, dtype = self.moves, self.tree.dtype
        corrections = jnp.zeros(front.node.shape, dtype)

        def pending(rows: Rows) -> Array:
            if self.everyone:
                return front.active & (rows.actor == CHANCE_CODE) & (self.rolls == 1)
            return front.active & (rows.actor != TERMINAL_CODE) & (rows.actor != PLAYER_CODE + self.player)

        def step(carry: tuple[Array, Rows, Array, Array, Array]) -> tuple[Array, Rows, Array, Array, Array]:
            node, rows, stream, visited, corrections = carry
            going = pending(rows)
            u = randomness.uniform(self.seed, stream, dtype)
            action = draw(self.cumulative, rows, u, moves.most_children)
            if self.correction is not None:
                found = take(self.correction, jnp.where(going, rows.base + action * rows.stride, 0))
                corrections = corrections + jnp.where(going, found, 0)
            node = jnp.where(going, rows.target + action, node)
            stream = jnp.where(going, randomness.after_draw(stream), stream)
            return node, look(moves, node), stream, visited + going.sum(dtype=jnp.float32), corrections

        node, rows, stream, visited, corrections = jax.lax.while_loop(
            lambda carry: jnp.any(pending(carry[1])),
            step,
            (front.node, look(moves, front.node), front.stream, tally.visited, corrections),
        )
        front = front._replace(node=node, stream=stream)
        leaf = front.active & (rows.actor == TERMINAL_CODE)
        payoffs = self.tree.payoffs.leaves.payoffs[:, self.player] - self.tree.payoffs.offset[self.player]
        value = jnp.where(leaf, take(payoffs, jnp.where(leaf, rows.target, 0)), 0)
        if self.correction is not None:
            value = value + corrections
        if front.weight is not None:
            value = value * front.weight
        values = tally.values.at[front.sequence].add(value, mode="promise_in_bounds")
        return front, rows, tally._replace(values=values, visited=visited)

    def _descend(self, front: Front, rows: Rows, tally: Tally, size: int, room: Array) -> tuple[Front, Tally]:
        """From histories where the walk branches to their children, in the first slots of a frontier."""
        treeplex = self.tree.treeplexes[self.player]
        mine = self._branches(front, rows)
        count = rows.children
        if self.rolls > 1:
            count = jnp.where(rows.actor == CHANCE_CODE, self.rolls, count)
        if self.choices is not None:
            count = take(self.choices.left, jnp.where(mine, rows.base - self._offset, 0))
        count = jnp.where(mine, count, 0)
        stop = prefix_sums(count)
        start, total = stop - count, stop[-1]
        # Slot j belongs to the last history that begins at or before it.
        marks = jnp.zeros(size + 1, jnp.int32).at[jnp.minimum(start, size)].add(1, mode="promise_in_bounds")
        parent = prefix_sums(marks[:size]) - 1
        slot = jnp.arange(size, dtype=jnp.int32)
        active = slot < total
        action = jnp.where(active, slot - take(start, parent), 0)
        stream = randomness.after_branch(take(front.stream, parent), action)
        base, target = take(rows.base, parent), take(rows.target, parent)
        if self.choices is not None:
            place = base - self._offset + action * take(rows.stride, parent)
            action = take(self.choices.action, jnp.where(active, place, 0))
        flat = base + action * take(rows.stride, parent)
        weight: Array | None = None
        own: Array = active
        visited = active.sum(dtype=jnp.float32)
        if front.weight is not None and self.probabilities is not None:
            actor = take(rows.actor, parent)
            own = actor == PLAYER_CODE + self.player
            factor = jnp.where(own | (actor == CHANCE_CODE), 1, take(self.probabilities, jnp.where(active, flat, 0)))
            weight = take(front.weight, parent) * factor
            if self.rolls > 1:
                rolled = actor == CHANCE_CODE
                weight = weight * jnp.where(rolled, 1 / self.rolls, 1)
                u = randomness.uniform(self.seed, stream, self.tree.dtype)
                drawn = draw(
                    self.cumulative, Rows(*(take(column, parent) for column in rows)), u, self.moves.most_children
                )
                action = jnp.where(rolled, drawn, action)
                stream = jnp.where(rolled, randomness.after_draw(stream), stream)
            active = active & (weight != 0)
        sequence = jnp.where(own, flat - self._offset, take(front.sequence, parent))
        below = Front(
            node=jnp.where(active, target + action, 0),
            stream=stream,
            sequence=jnp.where(active, sequence, treeplex.size),
            weight=weight,
            active=active,
        )
        fill = jnp.maximum(tally.fill, total.astype(jnp.float32) / room)
        return below, tally._replace(visited=tally.visited + visited, fill=fill)

    @property
    def _offset(self) -> int:
        """Where the player's flat vector lies in the vector of cumulative probabilities."""
        return sum(treeplex.size for treeplex in self.tree.treeplexes[: self.player])


class Choices(NamedTuple):
    """The actions of one player that are left after pruning.

    Attributes:
      left: `[L]` int32, at each information set's first action how many are left.
      action: `[L]` int32, at its i-th action the number of the i-th that is left.
    """

    left: Array
    action: Array


def _resized(column: Array, size: int) -> Array:
    """The first entries of a column, or more of them; what is added is not active."""
    return column[:size] if size <= column.shape[0] else jnp.pad(column, (0, size - column.shape[0]))


def _add(sums: Tally, tally: Tally) -> Tally:
    return Tally(sums.values + tally.values, sums.visited + tally.visited, jnp.maximum(sums.fill, tally.fill))
