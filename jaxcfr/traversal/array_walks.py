"""Walks through an `ArrayGame` that sample: external and outcome sampling without a tree.

The stack of `jaxcfr.traversal.walks`, of states of the game instead of rows of a tree; information sets are found in a
hash table. Which of the updating player's information sets were met is written down, in an order in which what lies
above comes first, so that what follows a walk costs as much as the walk, however large the table is.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.games.array_game import CHANCE, TERMINAL
from jaxcfr.traversal import randomness
from jaxcfr.traversal.baselines import Baseline
from jaxcfr.traversal.table import BITS, Met, Table, counted, find, nth, packed, unpacked
from jaxcfr.traversal.walks import draw, ending_at_one, make_room, prefix_sums, take
from jaxcfr.tree.fusion import kept_apart

MIN_WIDTH, MAX_WIDTH = 64, 4096
"""Histories that a step of the walks looks at, at least and at most."""

WRITTEN_OUT = 64
"""Running sums over so many actions at most are written out: XLA for CPUs is slow at them (30 us for 21 x 256)."""

DEPTH = 64
"""Room on the stack, in steps' widths, unless more is asked for: each depth at which walks branch needs one."""

MAX_STEPS = 10_000
"""A play with more moves than this is taken to be endless."""

FINE, NO_ROOM, ENDLESS, NO_ACTION, NO_PLAYER, NO_CHANCE, NO_PAYOFF = range(7)
"""Values of `Walks.status`."""


class Front(NamedTuple):
    """Histories, N of them.

    Attributes:
      state: of the game, leaves `[N, ...]`.
      sequence: per player int32 `[N]`, the last sequence.
      stream: uint32 `[N]`, see `randomness`.
      depth: int32 `[N]`, moves so far.
      weight: `[N]`, of the walk there; None where all weigh the same.
      who: int32 `[N]`, who acts.
      row: int32 `[N]`, the information set.
      legal: uint32 `[N, W]`, see `Table`.
      children: int32 `[N]`, how many will be looked at; 0 at leaves.
      action: int32 `[N]`, which, where it is one.
    """

    state: Any
    sequence: tuple[Array, ...]
    stream: Array
    depth: Array
    weight: Array | None
    who: Array
    row: Array
    legal: Array
    children: Array
    action: Array


class Stack(NamedTuple):
    """Histories whose children are still to be looked at.

    Attributes:
      top: int32, how many there are; those from `top` on are leftovers.
      begun: int32, walks that have begun.
      front: the histories.
    """

    top: Array
    begun: Array
    front: Front


class Touched(NamedTuple):
    """The information sets of one player that the walks of an iteration came to, each once.

    Attributes:
      rows: int32 `[C + S]`, above before below.
      ends: int32 `[C + 1]`: from `ends[i - 1]` to `ends[i]` no row lies below another.
      stretches: int32, how many of these there are.
      length: int32, how many rows.
    """

    rows: Array
    ends: Array
    stretches: Array
    length: Array


class Walks(NamedTuple):
    """What walks read and add to.

    Attributes:
      table: the information sets met so far.
      cumulative: `[C, A]`, each row's strategy summed up along the actions.
      direct: `[(C + 1) A]`, payoffs at leaves, by the updating player's last sequence (the last of all: the empty one).
      returns: the same without importance weights, and the number of plays; only where baselines are learnt, else ().
      met: int32 `[C]`, above 0 at rows of `touched`.
      touched: the updating player's rows.
      visited: float32, histories visited.
      status: int32, `FINE` or the last thing that went wrong.
    """

    table: Table
    cumulative: Array
    direct: Array
    returns: tuple[Array, ...]
    met: Array
    touched: Touched
    visited: Array
    status: Array


def fine(table: Table, status: Array) -> Array:
    """Whether nothing has gone wrong."""
    return (status == FINE) & (table.size <= table.capacity) & (table.forgetful < 0) & (table.mixed < 0)


def none_touched(capacity: int, width: int) -> Touched:
    zero = jnp.zeros((), jnp.int32)
    return Touched(jnp.zeros(capacity + width, jnp.int32), jnp.zeros(capacity + 1, jnp.int32), zero, zero)


def step_width(batch: int, num_actions: int) -> int:
    """S, how many histories a step looks at: enough to pay for its overhead, few enough for a cache."""
    most = 1 << (max(num_actions, 1) - 1).bit_length()
    return max(MIN_WIDTH, min(1 << (16 * batch - 1).bit_length(), MAX_WIDTH), most)


@dataclasses.dataclass(frozen=True)
class ArrayWalker:
    """One player's walks.

    Attributes:
      game: the rules.
      player: who updates.
      seed: two words.
      exploration: of outcome sampling; None walks every action (external sampling).
      baseline: `[C, A]` each, what actions are expected to be worth to their player, for outcome sampling; or None.
      width: S.
      slots: histories that the stack has room for, besides the S of a step.
    """

    game: Any
    player: int
    seed: tuple[Array, Array]
    exploration: Array | None
    baseline: Baseline | None
    width: int
    slots: int

    def run(self, walks: Walks, batch: int) -> Walks:
        """All walks of an iteration."""
        size = self.slots + self.width

        def column(dtype: Any, *shape: int) -> Array:
            return jnp.zeros((size, *shape), dtype)

        front = Front(
            state=jax.tree.map(lambda leaf: column(leaf.dtype, *jnp.shape(leaf)), self._root()),
            sequence=tuple(column(jnp.int32) for _ in range(self.game.num_players)),
            stream=column(jnp.uint32),
            depth=column(jnp.int32),
            weight=None if self.exploration is None else column(walks.cumulative.dtype),
            who=column(jnp.int32),
            row=column(jnp.int32),
            legal=column(jnp.uint32, walks.table.legal.shape[1]),
            children=column(jnp.int32),
            action=column(jnp.int32),
        )
        zero = jnp.zeros((), jnp.int32)
        stack = Stack(zero, zero, front)

        def more(carry: tuple[Stack, Walks]) -> Array:
            stack, walks = carry
            return ((stack.top > 0) | (stack.begun < batch)) & fine(walks.table, walks.status)

        def step(carry: tuple[Stack, Walks]) -> tuple[Stack, Walks]:
            return self._look(*self._expand(carry[0], batch), carry[1])

        return jax.lax.while_loop(more, step, (stack, walks))[1]

    def _root(self) -> Any:
        return jax.tree.map(jnp.asarray, self.game.init())

    def _expand(self, stack: Stack, batch: int) -> tuple[Stack, Front, Array]:
        """Takes histories from the top of the stack.

        Returns:
          What is left of the stack, the children `[S]` (of which nothing is known yet but how they came about), and
          whether each is one.
        """
        width = self.width
        slot = jnp.arange(width, dtype=jnp.int32)
        bottom = jnp.maximum(stack.top - width, 0)

        def window(column: Array) -> Array:
            return jax.lax.dynamic_slice_in_dim(column, bottom, width)

        above: Front = kept_apart(jax.tree.map(window, stack.front))
        valid = bottom + slot < stack.top
        count = jnp.where(valid, above.children, 0)
        taken, start, total, parent = make_room(count)
        top = stack.top - jnp.sum(taken & valid, dtype=jnp.int32)
        inside = slot < total
        branch = jnp.where(inside, slot - take(start, parent), 0)
        moved: Front = kept_apart(jax.tree.map(lambda column: take(column, parent), above))
        branches = (moved.who == self.player) if self.exploration is None else jnp.zeros(width, bool)
        action = jnp.where(branches, nth(moved.legal, branch), moved.action)
        state = jax.vmap(self.game.step)(moved.state, action)
        after = moved.row * self.game.num_actions + action
        # Where nothing is left below them, new walks begin.
        fresh = jnp.where(top == 0, jnp.minimum(batch - stack.begun, width - total), 0)

        def or_root(column: Array, root: Array) -> Array:
            return jnp.where(inside.reshape(-1, *[1] * (column.ndim - 1)), column.astype(root.dtype), root)

        below = moved._replace(
            state=jax.tree.map(or_root, state, self._root()),
            sequence=tuple(
                jnp.where(inside, jnp.where(moved.who == player, after, sequence), -1)
                for player, sequence in enumerate(moved.sequence)
            ),
            stream=jnp.where(
                inside,
                randomness.after_branch(randomness.after_draw(moved.stream), branch),
                randomness.streams(self.seed, stack.begun + slot - total),
            ),
            depth=jnp.where(inside, moved.depth + 1, 0),
            weight=None if moved.weight is None else jnp.where(inside, moved.weight, 1),
        )
        return stack._replace(top=top, begun=stack.begun + fresh), below, slot < total + fresh

    def _look(self, stack: Stack, front: Front, active: Array, walks: Walks) -> tuple[Stack, Walks]:
        """Looks at histories: leaves are paid, the others are put on the stack."""
        game, dtype, last = self.game, walks.cumulative.dtype, walks.direct.shape[0] - 1
        front = kept_apart(front)
        who = jax.vmap(game.player)(front.state).astype(jnp.int32)
        leaf = active & (who == TERMINAL)
        payoff = jnp.where(leaf, jax.vmap(game.returns)(front.state)[:, self.player].astype(dtype), 0)
        mine = front.sequence[self.player]
        ended = jnp.where(leaf & (mine >= 0), mine, last)
        direct = walks.direct.at[ended].add(payoff if front.weight is None else payoff * front.weight)
        returns = tuple(
            total.at[ended].add(value)
            for total, value in zip(walks.returns, (payoff, leaf.astype(dtype)), strict=False)
        )

        mask = jax.vmap(game.legal_actions)(front.state)
        legal, actions = kept_apart((packed(mask), who))[0], mask.shape[1]
        decides = active & (who >= 0)
        before = walks.table.size
        table, row = find(walks.table, self._met(front, who, legal, decides), actions)
        cumulative = self._with_new_rows(walks.cumulative, table, before)
        number = counted(legal)
        u = randomness.uniform(self.seed, front.stream, dtype)
        own = decides & (who == self.player)
        draws = decides if self.exploration is not None else decides & ~own
        at = jnp.where(draws & (row >= 0), row, 0)
        weight = front.weight
        if self.exploration is None:
            action = self._drawn(cumulative, at, u)
            count = jnp.where(own, number, 1)
        else:
            assert weight is not None
            # One draw decides whether to explore, and what to play.
            exploration = jnp.where(own, self.exploration, 0).astype(dtype)
            explores = u < exploration
            any_ = jnp.minimum((u / jnp.where(explores, exploration, 1) * number).astype(jnp.int32), number - 1)
            rest = (u - exploration) / jnp.where(exploration < 1, 1 - exploration, 1)
            rest = jnp.clip(rest, 0, 1 - np.finfo(dtype).epsneg)  # at 1 an action without probability would be drawn
            action = jnp.where(explores, nth(legal, any_), self._drawn(cumulative, at, rest))
            flat = at * actions + action
            played = take(cumulative.reshape(-1), flat)
            played = played - jnp.where(action > 0, take(cumulative.reshape(-1), jnp.maximum(flat - 1, 0)), 0)
            chosen = exploration / jnp.maximum(number, 1) + (1 - exploration) * played
            weight = jnp.where(own, weight / jnp.where(own & (chosen > 0), chosen, 1), weight)
            count = jnp.ones_like(who)
            direct = self._centred(direct, at, own & (row >= 0), mask, action, front.weight, weight)
        chance = active & (who == CHANCE)
        action, sound = jax.lax.cond(
            jnp.any(chance),
            self._with_chance,
            lambda front, legal, u, action, chance: (action, jnp.ones((), bool)),
            *(front, legal, u, action, chance),
        )

        over = stack.top + self.width > self.slots + self.width
        wrong = (
            (NO_CHANCE, ~sound),
            (NO_PAYOFF, ~jnp.all(jnp.isfinite(payoff))),
            (NO_PLAYER, jnp.any(active & ((who < TERMINAL) | (who >= game.num_players)))),
            (NO_ACTION, jnp.any(decides & (number == 0))),
            (ENDLESS, jnp.any(active & (front.depth > MAX_STEPS))),
            (NO_ROOM, over),
        )
        status = walks.status
        for code, found in wrong:
            status = jnp.where(found, code, status)
        pushed = front._replace(
            weight=weight, who=who, row=row, legal=legal, children=jnp.where(active & ~leaf, count, 0), action=action
        )

        def push(column: Array, new: Array) -> Array:
            return jax.lax.dynamic_update_slice_in_dim(column, new.astype(column.dtype), stack.top, 0)

        top = stack.top + active.sum(dtype=jnp.int32)
        stack = Stack(top, stack.begun, jax.tree.map(push, stack.front, pushed))
        met, touched = self._touch(walks.met, walks.touched, row, own & (row >= 0))
        visited = walks.visited + active.sum(dtype=jnp.float32)
        return stack, Walks(table, cumulative, direct, returns, met, touched, visited, status)

    def _centred(
        self, direct: Array, row: Array, own: Array, legal: Array, action: Array, before: Any, after: Array
    ) -> Array:
        """Adds the baselines of all actions where the player draws one, and takes off that of the drawn one.

        `before` and `after` are the weights of the plays; in expectation nothing is added (Schmid et al. 2019, Eq. 9).
        """
        if self.baseline is None:
            return direct
        actions, last = legal.shape[1], direct.shape[0] - 1
        expected = kept_apart(Baseline(*(values[row] for values in self.baseline)).mean())
        each = row[:, None] * actions + jnp.arange(actions, dtype=jnp.int32)
        added = jnp.where(own[:, None] & legal, before[:, None] * expected, 0)
        direct = direct.at[jnp.where(own[:, None], each, last)].add(added)
        drawn = jnp.take_along_axis(expected, action[:, None], axis=1)[:, 0]
        return direct.at[jnp.where(own, row * actions + action, last)].add(jnp.where(own, -after * drawn, 0))

    @staticmethod
    def _drawn(cumulative: Array, row: Array, u: Array) -> Array:
        """An action by each row's strategy."""
        actions = cumulative.shape[1]
        return draw(cumulative.reshape(-1), row * actions, 1, jnp.full_like(row, actions), u, actions)

    def _with_new_rows(self, cumulative: Array, table: Table, before: Array) -> Array:
        """New rows lie side by side; they play uniformly."""

        size = jnp.minimum(table.size, table.capacity)

        def fill(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            at, cumulative = carry
            number = at + jnp.arange(self.width, dtype=jnp.int32)
            legal = kept_apart(table.legal[jnp.minimum(number, table.capacity - 1)])
            rows = uniform_running(legal, cumulative.shape[1], cumulative.dtype).T
            there = jnp.where(number < size, number, table.capacity)
            return at + self.width, cumulative.at[there].set(rows, mode="drop")

        return jax.lax.while_loop(lambda carry: carry[0] < size, fill, (before, cumulative))[1]

    def _with_chance(self, front: Front, legal: Array, u: Array, action: Array, chance: Array) -> tuple[Array, Array]:
        """Outcomes drawn where chance moves, and whether their probabilities make sense."""
        probabilities = jax.vmap(self.game.chance_probabilities)(front.state).astype(u.dtype).T
        probabilities = jnp.where(unpacked(legal, probabilities.shape[0]), probabilities, 0)
        total = probabilities.sum(0)
        running = cumulative_of(probabilities)
        drawn = jnp.minimum((running <= u).sum(0, dtype=jnp.int32), probabilities.shape[0] - 1)
        bad = chance & ~((jnp.abs(total - 1) < 1e-3) & (probabilities >= 0).all(0))
        return jnp.where(chance, drawn, action), ~jnp.any(bad)

    def _touch(self, met: Array, touched: Touched, row: Array, own: Array) -> tuple[Array, Touched]:
        """Writes down the rows that are met for the first time in this iteration."""
        width, outside = self.width, met.shape[0]
        slot = jnp.arange(width, dtype=jnp.int32)
        there = jnp.where(own, row, outside)
        claimed = met.at[there].max(slot + 1, mode="drop")
        claim = claimed[jnp.where(own, row, 0)]
        first = own & (claim == slot + 1)
        # The maximum is always `width + 1`; what is written depends on what was read, or XLA would copy the table.
        met = claimed.at[there].set(jnp.maximum(claim, width + 1), mode="drop")
        stop = prefix_sums(first.astype(jnp.int32))
        block = jnp.zeros(width + 1, jnp.int32).at[jnp.where(first, stop - 1, width)].set(row)[:width]
        rows = jax.lax.dynamic_update_slice_in_dim(touched.rows, block, touched.length, 0)
        length = touched.length + stop[-1]
        ends = touched.ends.at[touched.stretches].set(length)
        return met, Touched(rows, ends, touched.stretches + (stop[-1] > 0), length)

    def _met(self, front: Front, who: Array, legal: Array, decides: Array) -> Met:
        keys, parent = None, jnp.full(who.shape, -1, jnp.int32)
        for player in range(self.game.num_players):
            row = jax.vmap(lambda state, p=player: self.game.infoset(state, p))(front.state).astype(jnp.int32)
            mine = who == player
            keys = row if keys is None else jnp.where(mine[:, None], row, keys)
            parent = jnp.where(mine, front.sequence[player], parent)
        assert keys is not None
        named = jnp.concatenate([jnp.where(decides, who, 0)[:, None], parent[:, None], keys], axis=1)
        return kept_apart(Met(named, legal, decides))


def cumulative_of(probabilities: Array) -> Array:
    """Running sums of `[A, n]` along the actions, exactly 1 from the last positive one on: no other is drawn."""
    if probabilities.shape[0] <= WRITTEN_OUT:
        running = jnp.stack(list(itertools.accumulate(probabilities)))
    else:
        running = jnp.cumsum(probabilities, axis=0)
    return ending_at_one(running)


def uniform_running(legal: Array, num_actions: int, dtype: Any) -> Array:
    """`cumulative_of` the uniform strategy over sets of actions `[N, W]`, `[A, N]`."""
    number = counted(legal)
    rows, before = [], jnp.zeros_like(number)
    for start in range(0, num_actions, BITS):
        word = legal[:, start // BITS]
        for action in range(start, min(start + BITS, num_actions)):
            upto = word & np.uint32((2 << (action - start)) - 1)
            rows.append(before + jax.lax.population_count(upto).astype(jnp.int32))
        before = before + jax.lax.population_count(word).astype(jnp.int32)
    return jnp.stack(rows).astype(dtype) / jnp.maximum(number, 1).astype(dtype)


def key_width(game: Any) -> int:
    """K, the number of integers that an information set is told apart by."""
    return int(np.prod(jax.eval_shape(lambda: game.infoset(game.init(), 0)).shape))
