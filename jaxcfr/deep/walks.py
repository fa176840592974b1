"""Walks of a batch, depth by depth, in a frontier of fixed width.

All walks of a batch go down together. At a history of the player who learns, several of its actions are followed;
everybody else's are drawn from their strategies. Where more histories would follow than the frontier has room for, as
many as fit are drawn, all equally likely. Every history carries the probability with which it was followed, so that the
values that are handed up again are unbiased whatever was left out:

    v(h) = sum_a sigma(a) q(h, a),   q(h, a) = b(h, a) + [a followed] (v(ha) - b(h, a)) / probability of following it

with baselines b (0 unless a network gives some) at the histories of players (Schmid et al. 2019, Eqs. 8 and 9; with
every own action followed this is external sampling, with one of them outcome sampling, Lanctot et al. 2009; with k
of them the robust sampling of Li et al. 2020).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxcfr.deep.rules import Ask, Rules, Seen
from jaxcfr.games.array_game import CHANCE, TERMINAL

Choose = Callable[[Array, Array, Array, Array, Array], tuple[Array, Array]]
"""choose(key, legal, sigma, depth, until) -> which of its own actions are followed `[n, A]`, with which probability."""

MAX_STEPS = 10_000
"""Plays that go on for longer are broken off, with a payoff of NaN."""


class Front(NamedTuple):
    """The histories of one depth, W of them.

    Attributes:
      states: the histories.
      active: `[W]` bool, which of them are any.
      parent: `[W]` int32, where the history above lies at the depth above.
      action: `[W]` int32, the player's action that led here, 0 after chance.
      inverse: `[W]`, one by the probability with which it was followed from the history above.
      scale: `[W]`, the product of those above and of its own, others' draws not counted.
      others: `[W]`, the probability of the draws of third players.
      until: `[W]` int32, up to which depth the walk explores.
    """

    states: Any
    active: Array
    parent: Array
    action: Array
    inverse: Array
    scale: Array
    others: Array
    until: Array


class Tape(NamedTuple):
    """What the walks met, depth by depth; leaves `[D, W, ...]`.

    Attributes:
      front: see there.
      seen: see `Seen`.
      sigma: `[D, W, A]` strategies of whoever acts.
      payoff: `[D, W]`, of the player who learns, where the play has ended.
    """

    front: Front
    seen: Seen
    sigma: Array
    payoff: Array


class Values(NamedTuple):
    """What is handed up.

    Attributes:
      actions: `[D, W, A]`, q of every action at the histories of players.
      below: `[D, W]`, the value of every history, v.
    """

    actions: Array
    below: Array


@dataclasses.dataclass(frozen=True)
class Walker:
    """Walks of one player who learns.

    Attributes:
      rules: the game.
      ask: what players do.
      prepared: what `rules.prepare` made of it.
      player: p, who learns.
      width: W.
      depth: D, depths that are kept; what the last one's histories are worth is played out without a trace.
      choose: which of p's actions are followed.
      tracked: the player whose strategy is learnt from these walks too, where there are more than two; or None.
      single: whether `choose` follows one action only, so that no more than W histories follow.
    """

    rules: Rules
    ask: Ask
    prepared: Any
    player: int
    width: int
    depth: int
    choose: Choose
    tracked: int | None = None
    single: bool = False

    def run(self, key: Array, walks: int, until: Array | None = None) -> tuple[Tape, Array]:
        """All walks down, `walks` of them (at most W).

        Returns:
          What they met, and how many histories that were.
        """
        width = self.width
        root = self.rules.root()
        one = jnp.ones(width, jnp.float32)
        zero = jnp.zeros(width, jnp.int32)
        front = Front(
            states=jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (width, *leaf.shape)), root),
            active=jnp.arange(width) < walks,
            parent=zero,
            action=zero,
            inverse=one,
            scale=one,
            others=one,
            until=zero if until is None else until,
        )
        shapes = jax.eval_shape(lambda key, front: self._step(key, jnp.zeros((), jnp.int32), front)[0], key, front)
        tape = jax.tree.map(lambda leaf: jnp.zeros((self.depth, *leaf.shape), leaf.dtype), shapes)

        def more(carry: tuple[Any, ...]) -> Array:
            depth, front, *_ = carry
            return (depth < self.depth - 1) & jnp.any(front.active)

        def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            depth, front, tape, visited = carry
            row, below = self._step(jax.random.fold_in(key, depth), depth, front)
            return depth + 1, below, put(tape, row, depth), visited + front.active.sum(dtype=jnp.float32)

        def put(tape: Tape, row: Tape, depth: Any) -> Tape:
            return jax.tree.map(lambda rows, new: jax.lax.dynamic_update_index_in_dim(rows, new, depth, 0), tape, row)

        begin = (jnp.zeros((), jnp.int32), front, tape, jnp.zeros((), jnp.float32))
        _, front, tape, visited = jax.lax.while_loop(more, step, begin)
        return put(tape, self._last(jax.random.fold_in(key, self.depth), front), self.depth - 1), visited

    def _last(self, key: Array, front: Front) -> Tape:
        """The last depth: its histories count as leaves, worth what the rest of one play pays."""
        seen = self._seen(front.states, front.active)
        leaves = Seen(jnp.full_like(seen.who, TERMINAL), jnp.zeros_like(seen.legal), seen.row)
        payoff = self._played_out(key, front.states, front.active)
        return Tape(front, leaves, jnp.zeros(seen.legal.shape, jnp.float32), payoff)

    def _seen(self, states: Any, active: Array) -> Seen:
        seen = self.rules.look(states)
        return seen._replace(who=jnp.where(active, seen.who, TERMINAL), legal=seen.legal & active[:, None])

    def _step(self, key: Array, depth: Array, front: Front) -> tuple[Tape, Front]:
        """Looks at the histories of one depth; returns what they are, and the ones that follow."""
        chance_key, draw_key, choose_key, thin_key = jax.random.split(key, 4)
        rules, width = self.rules, self.width
        seen = self._seen(front.states, front.active)
        sigma = jnp.where(seen.legal, rules.probabilities(self.prepared, self.ask, front.states, seen), 0)
        leaf = front.active & (seen.who == TERMINAL)
        payoff = jnp.where(leaf, rules.payoff(front.states, seen, self.player), 0)
        row = Tape(front, seen, sigma, payoff)

        own = seen.who == self.player
        others = (seen.who >= 0) & ~own
        followed, probability = self.choose(choose_key, seen.legal, sigma, depth, front.until)
        drawn = jax.nn.one_hot(drawn_from(draw_key, sigma), seen.legal.shape[1], dtype=bool) & seen.legal
        followed = jnp.where(own[:, None], followed & seen.legal, drawn & others[:, None])
        chance = seen.who == CHANCE
        followed = followed.at[:, 0].set(followed[:, 0] | chance)
        slot = jnp.arange(width, dtype=jnp.int32)
        if self.single:
            parent, action = slot, jnp.argmax(followed, axis=1).astype(jnp.int32)
            active, thinned = followed.any(1), jnp.ones((), jnp.float32)
        else:
            parent, action, active, thinned = _fitted(thin_key, followed, width)
        who = seen.who[parent]
        here = Seen(who, seen.legal[parent], None if seen.row is None else seen.row[parent])
        states = jax.tree.map(lambda leaf: leaf[parent], front.states)
        states = self._moved(chance_key, states, action, here, active)
        ours = who == self.player
        inverse = thinned * jnp.where(ours, 1 / jnp.maximum(probability[parent, action], 1e-30), 1)
        third = jnp.ones(width, jnp.float32)
        if self.tracked is not None:
            drawn_with = sigma[parent, action]
            third = jnp.where((who >= 0) & ~ours & (who != self.tracked), drawn_with, 1)

        below = Front(
            states=states,
            active=active,
            parent=parent,
            action=jnp.where(who == CHANCE, 0, action),
            inverse=inverse,
            scale=front.scale[parent] * inverse,
            others=front.others[parent] * third,
            until=front.until[parent],
        )
        return row, below

    def _played_out(self, key: Array, states: Any, active: Array) -> Array:
        """What plays from here pay, everybody by its strategy: `[W]`."""

        def more(carry: tuple[Any, ...]) -> Array:
            step, _, active, _ = carry
            return jnp.any(active) & (step < MAX_STEPS)

        def play(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            step, states, active, payoff = carry
            chance_key, draw_key = jax.random.split(jax.random.fold_in(key, step))
            seen = self._seen(states, active)
            ended = active & (seen.who == TERMINAL)
            payoff = jnp.where(ended, self.rules.payoff(states, seen, self.player), payoff)
            active = active & ~ended
            sigma = jnp.where(seen.legal, self.rules.probabilities(self.prepared, self.ask, states, seen), 0)
            states = self._moved(chance_key, states, drawn_from(draw_key, sigma), seen, active)
            return step + 1, states, active, payoff

        begin = (jnp.zeros((), jnp.int32), states, active, jnp.zeros(self.width, jnp.float32))
        _, _, unfinished, payoff = jax.lax.while_loop(more, play, begin)
        return jnp.where(unfinished, jnp.nan, payoff)

    def _moved(self, key: Array, states: Any, action: Array, seen: Seen, active: Array) -> Any:
        """The histories after chance, or whoever acts, has moved; those that are not active stay."""
        keys = jax.random.split(key, self.width + 1)
        after_chance = self.rules.after_chance(states, keys[1:], jax.random.uniform(keys[0], (self.width,)))
        after = self.rules.after(states, action, seen)

        def choose(chance: Array, played: Array, before: Array) -> Array:
            shape = (self.width, *[1] * (played.ndim - 1))
            moved = jnp.where((seen.who == CHANCE).reshape(shape), chance.astype(played.dtype), played)
            return jnp.where(active.reshape(shape), moved, before)

        return jax.tree.map(choose, after_chance, after, states)


def _fitted(key: Array, followed: Array, width: int) -> tuple[Array, Array, Array, Array]:
    """As many of the actions followed as there is room for, each of them equally likely.

    Systematic sampling with a random rotation: child number j is kept with probability width / total exactly.

    Args:
      followed: `[W, A]` bool.

    Returns:
      Per slot of the next depth the history above it, the action, and whether there is any; and one by the probability
      with which each is kept.
    """
    count = followed.sum(1, dtype=jnp.int32)
    stop = jnp.cumsum(count)
    total = stop[-1]
    slot = jnp.arange(width, dtype=jnp.int32)
    fits = total <= width
    step, rest = total // width, total % width
    turn = jax.random.randint(key, (), 0, jnp.maximum(total, 1))
    spread = (slot * step + (slot * rest) // width + turn) % jnp.maximum(total, 1)
    child = jnp.where(fits, slot, spread)
    active = slot < jnp.minimum(total, width)
    parent = jnp.minimum(jnp.searchsorted(stop, child, side="right"), width - 1).astype(jnp.int32)
    nth = child - (stop - count)[parent]
    running = jnp.cumsum(followed[parent].astype(jnp.int32), axis=1)
    action = jnp.argmax(running > nth[:, None], axis=1).astype(jnp.int32)
    thinned = jnp.where(fits, 1, total.astype(jnp.float32) / width)
    return parent, action, active, thinned


# Which of its own actions a walk follows


def follow_all(key: Array, legal: Array, sigma: Array, depth: Array, until: Array) -> tuple[Array, Array]:
    """Every action: external sampling."""
    return legal, jnp.ones(legal.shape, jnp.float32)


@dataclasses.dataclass(frozen=True)
class FollowSome:
    """k actions, all equally likely: robust sampling (Li et al. 2020)."""

    k: int

    def __call__(self, key: Array, legal: Array, sigma: Array, depth: Array, until: Array) -> tuple[Array, Array]:
        noise = jnp.where(legal, jax.random.uniform(key, legal.shape), 2)
        rank = jnp.argsort(jnp.argsort(noise, axis=1), axis=1)
        count = jnp.maximum(legal.sum(1, keepdims=True), 1)
        probability = jnp.minimum(self.k / count, 1).astype(jnp.float32)
        return legal & (rank < self.k), jnp.broadcast_to(probability, legal.shape)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class FollowOne:
    """One action: uniformly with probability `exploration`, else by the strategy. Outcome sampling."""

    exploration: Any

    def __call__(self, key: Array, legal: Array, sigma: Array, depth: Array, until: Array) -> tuple[Array, Array]:
        uniform = legal / jnp.maximum(legal.sum(1, keepdims=True), 1)
        probability = self.exploration * uniform + (1 - self.exploration) * sigma
        return jax.nn.one_hot(drawn_from(key, probability), legal.shape[1], dtype=bool), probability


def follow_starts(key: Array, legal: Array, sigma: Array, depth: Array, until: Array) -> tuple[Array, Array]:
    """One action: uniformly down to depth `until`, by the strategy below it."""
    uniform = legal / jnp.maximum(legal.sum(1, keepdims=True), 1)
    probability = jnp.where((depth <= until)[:, None], uniform, sigma)
    return jax.nn.one_hot(drawn_from(key, probability), legal.shape[1], dtype=bool), probability


def drawn_from(key: Array, probabilities: Array) -> Array:
    """One action by each row `[n, A]`, never one without probability: int32 `[n]`."""
    running = jnp.cumsum(probabilities, axis=1)
    below = jax.random.uniform(key, (probabilities.shape[0], 1), probabilities.dtype) * running[:, -1:]
    found = (probabilities > 0) & (running > below)
    last = probabilities.shape[1] - 1 - jnp.argmax(probabilities[:, ::-1] > 0, axis=1)
    return jnp.where(found.any(1), jnp.argmax(found, axis=1), last).astype(jnp.int32)


def hand_up(tape: Tape, player: int, baseline: Array | None = None) -> Values:
    """The values of all histories that were met, from the last depth to the root.

    Args:
      tape: what the walks met.
      player: who learns.
      baseline: `[D, W, A]`, what actions are expected to be worth to that player, or None for 0.
    """
    width, actions = tape.sigma.shape[1:]
    if baseline is None:
        baseline = jnp.zeros((), jnp.float32)

    def step(carry: tuple[Array, Front], inputs: Any) -> tuple[Any, Any]:
        value, below = carry
        row, b = inputs
        who = row.seen.who
        decides = who >= 0
        b = jnp.where(decides[:, None] & row.seen.legal, b, 0)
        there = jnp.where(below.active, below.parent * actions + below.action, width * actions)
        corrected = (value - b[below.parent, below.action]) * below.inverse
        # No two histories come from one action of one history.
        sampled = jnp.zeros(width * actions + 1, jnp.float32).at[there].set(jnp.where(below.active, corrected, 0))
        sampled = sampled[:-1].reshape(width, actions)
        own = who == player
        q = b + sampled
        mean = jnp.sum(row.sigma * jnp.where(own[:, None], q, b), axis=1)
        worth = jnp.where(own, mean, jnp.where(decides, mean + sampled.sum(1), sampled.sum(1)))
        worth = jnp.where(who == TERMINAL, row.payoff, worth)
        return (worth, row.front), (q, worth)

    nothing = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[0]), tape.front)
    b = jnp.broadcast_to(baseline, tape.sigma.shape)
    _, (q, worth) = jax.lax.scan(step, (jnp.zeros(width, jnp.float32), nothing), (tape, b), reverse=True)
    return Values(q, worth)
