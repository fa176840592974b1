"""Walks through an `ArrayGame` that sample: external and outcome sampling without a tree.

The walks of `jaxcfr.traversal.walks` and the plays of `jaxcfr.traversal.outcome`,
over states of the game instead of rows of a tree, one move of everyone at a
time; information sets are found in a hash table. Draws are made the same way.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.games.array_game import CHANCE, TERMINAL
from jaxcfr.traversal import randomness
from jaxcfr.traversal.table import Met, Table, find
from jaxcfr.traversal.walks import prefix_sums, take


class Front(NamedTuple):
    """S histories: their states, everyone's last sequence `[P, S]`, stream, weight, and whether there is one."""

    state: Any
    sequence: Array
    stream: Array
    weight: Array
    active: Array


class Sums(NamedTuple):
    """What walks add up.

    Attributes:
      table: with the information sets met.
      values: `[C A + 1]`, direct counterfactual values.
      visited: float32, histories visited.
      fill: float32, the largest part of the frontier that was in use.
    """

    table: Table
    values: Array
    visited: Array
    fill: Array


@dataclasses.dataclass(frozen=True)
class ArrayWalker:
    """One player's walks.

    Attributes:
      game: the rules.
      player: who updates.
      seed: two words.
      strategy: `[C, A]`; information sets that are new play uniformly.
      exploration: of outcome sampling; None walks every action (external sampling).
      slots: S, the size of a frontier.
    """

    game: Any
    player: int
    seed: tuple[Array, Array]
    strategy: Array
    exploration: Array | None
    slots: int

    def run(self, table: Table, batch: int, passes: Array) -> tuple[Sums, Array]:
        """All walks of an iteration: mean values, and about how many walks fit into a pass.

        Where not even one walk fits, `fill` is above 1, and the values mean nothing.
        """
        dtype = self.strategy.dtype
        values = jnp.zeros(table.legal.size + 1, dtype)
        zero = jnp.zeros((), jnp.float32)
        size = min(batch, self.slots)

        def step(carry: tuple[Array, Array, Sums]) -> tuple[Array, Array, Sums]:
            done, fits, sums = carry
            left = batch - done
            trips = -(-left // jnp.clip(fits.astype(jnp.int32), 1, size))
            walks = -(-left // trips)
            new = self._pass(sums.table, done, walks)
            enough = (new.fill <= 1) | (walks == 1)
            fits = walks * 0.9 / jnp.maximum(new.fill, 1e-6)
            fits = jnp.clip(jnp.where(enough, fits, jnp.minimum(fits, walks / 2)), 1.0, float(size))
            return (
                done + jnp.where(enough, walks, 0),
                fits,
                Sums(
                    new.table,
                    sums.values + jnp.where(enough, new.values, 0),
                    sums.visited + jnp.where(enough, new.visited, 0),
                    jnp.maximum(sums.fill, jnp.where(enough, new.fill, 0)),
                ),
            )

        def more(carry: tuple[Array, Array, Sums]) -> Array:
            return (carry[0] < batch) & (carry[2].fill <= 1) & (carry[2].table.size <= table.capacity)

        carry = (jnp.zeros((), jnp.int32), passes, Sums(table, values, zero, zero))
        _, passes, sums = jax.lax.while_loop(more, step, carry)
        return sums._replace(values=sums.values / batch), passes

    def _pass(self, table: Table, first: Array, walks: Array) -> Sums:
        slots, players = self.slots, self.game.num_players
        number = jnp.arange(slots, dtype=jnp.int32)
        state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (slots, *jnp.shape(leaf))), self.game.init())
        front = Front(
            state=state,
            sequence=jnp.full((players, slots), -1, jnp.int32),
            stream=randomness.streams(self.seed, first + number),
            weight=jnp.ones(slots, self.strategy.dtype),
            active=number < walks,
        )
        zero = jnp.zeros((), jnp.float32)
        sums = Sums(table, jnp.zeros(table.legal.size + 1, self.strategy.dtype), walks.astype(jnp.float32), zero)
        _, sums = jax.lax.while_loop(lambda carry: jnp.any(carry[0].active), self._step, (front, sums))
        return sums

    def _step(self, carry: tuple[Front, Sums]) -> tuple[Front, Sums]:
        front, sums = carry
        game, dtype, last = self.game, self.strategy.dtype, sums.values.shape[0] - 1
        who = jax.vmap(game.player)(front.state).astype(jnp.int32)
        leaf = front.active & (who == TERMINAL)
        payoff = jax.vmap(game.returns)(front.state)[:, self.player].astype(dtype) * front.weight
        own_sequence = front.sequence[self.player]
        values = sums.values.at[jnp.where(own_sequence >= 0, own_sequence, last)].add(jnp.where(leaf, payoff, 0))

        inner = front.active & ~leaf
        decides = inner & (who >= 0)
        legal = jax.vmap(game.legal_actions)(front.state)
        table, row = find(sums.table, self._met(front, who, legal, decides))
        own = decides & (who == self.player)
        chance = jax.vmap(game.chance_probabilities)(front.state).astype(dtype)
        played = self.strategy[jnp.maximum(row, 0)]
        # Information sets that are new have no strategy yet, and those of a full table never get one.
        uniform = legal / jnp.maximum(legal.sum(1, keepdims=True), 1).astype(dtype)
        known = (row >= 0)[:, None] & (played.sum(1, keepdims=True) > 0)
        played = jnp.where(known, played, uniform)
        weights = jnp.where((who == CHANCE)[:, None], jnp.where(legal, chance, 0), played)
        u = randomness.uniform(self.seed, front.stream, dtype)
        weight = front.weight
        if self.exploration is not None:
            mixed = self.exploration * uniform + (1 - self.exploration) * played
            weights = jnp.where(own[:, None], mixed, weights)
        running = jnp.cumsum(weights, axis=1)
        drawn = (running <= (u * running[:, -1])[:, None]).sum(1, dtype=jnp.int32)
        drawn = jnp.minimum(drawn, legal.shape[1] - 1)
        if self.exploration is not None:
            probability = jnp.take_along_axis(weights, drawn[:, None], axis=1)[:, 0]
            weight = jnp.where(own, weight / jnp.where(own, probability, 1), weight)
            branches = jnp.zeros_like(own)
        else:
            branches = own

        children = jnp.where(inner, jnp.where(branches, legal.sum(1, dtype=jnp.int32), 1), 0)
        stop = prefix_sums(children)
        start, total = stop - children, stop[-1]
        marks = jnp.zeros(self.slots + 1, jnp.int32).at[jnp.minimum(start, self.slots)].add(1)
        above = prefix_sums(marks[: self.slots]) - 1
        slot = jnp.arange(self.slots, dtype=jnp.int32)
        active = slot < total
        branch = jnp.where(active, slot - take(start, above), 0)
        # The branch-th legal action.
        order = jnp.cumsum(legal, axis=1, dtype=jnp.int32)[above]
        nth = (order <= branch[:, None]).sum(1, dtype=jnp.int32)
        action = jnp.where(take(branches, above), jnp.minimum(nth, legal.shape[1] - 1), take(drawn, above))
        state = jax.vmap(game.step)(jax.tree.map(lambda column: column[above], front.state), action)
        actor = take(who, above)
        row_above = take(row, above)
        taken = jnp.where(row_above >= 0, row_above * legal.shape[1] + action, -1)
        sequence = front.sequence[:, above]
        moved = (jnp.arange(sequence.shape[0])[:, None] == actor) & (actor >= 0)
        stream = randomness.after_branch(randomness.after_draw(take(front.stream, above)), branch)
        below = Front(state, jnp.where(moved, taken, sequence), stream, take(weight, above), active)
        fill = jnp.maximum(sums.fill, total.astype(jnp.float32) / self.slots)
        # A pass that has run out of room, or met a full table, is over.
        over = (fill > 1) | (table.size > table.capacity)
        below = below._replace(active=active & ~over)
        return below, Sums(table, values, sums.visited + active.sum(dtype=jnp.float32), fill)

    def _met(self, front: Front, who: Array, legal: Array, decides: Array) -> Met:
        keys, parent = None, jnp.full(who.shape, -1, jnp.int32)
        for player in range(self.game.num_players):
            row = jax.vmap(lambda state, p=player: self.game.infoset(state, p))(front.state).astype(jnp.int32)
            mine = who == player
            keys = row if keys is None else jnp.where(mine[:, None], row, keys)
            parent = jnp.where(mine, front.sequence[player], parent)
        assert keys is not None
        return Met(keys, jnp.where(decides, who, 0), parent, legal, decides)


def key_width(game: Any) -> int:
    """K, the number of integers that an information set is told apart by."""
    return int(np.prod(jax.eval_shape(lambda: game.infoset(game.init(), 0)).shape))
