"""Walks of a batch, depth by depth, in a frontier of fixed width.

All walks of a batch go down together. At a history of the player who learns, several of its actions are followed;
everybody else's are drawn from their strategies. Where more histories would follow than the frontier has room for, as
many as fit are drawn. Every history carries the probability with which it was followed, so that the
values that are handed up again are unbiased whatever was left out:

    v(h) = sum_a sigma(a) q(h, a),   q(h, a) = b(h, a) + [a followed] (v(ha) - b(h, a)) / probability of following it

with baselines b (0 unless a network gives some) at the histories of players (Schmid et al. 2019, Eqs. 8 and 9; with
every own action followed this is external sampling, with one of them outcome sampling, Lanctot et al. 2009; with k
of them the robust sampling of Li et al. 2020).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.deep.rules import Ask, Rules, Seen
from jaxcfr.games.array_game import CHANCE, TERMINAL, draw_at
from jaxcfr.traversal.base import Visited, none_visited
from jaxcfr.traversal.randomness import EDGE, STEP, mix, unit

Uniforms = Callable[..., Array]
"""uniforms(*shape) -> float32 draws from [0, 1)."""

Choose = Callable[[Uniforms, Array, Array, Array, Array], tuple[Array, Array]]
"""choose(uniforms, legal, sigma, depth, until) -> which own actions are followed `[n, A]`, with which probability."""

CHANCE_DRAW, PLAYER_DRAW, CHOICE, THINNING = 0, 1, 2, 3

MAX_WIDTH = 2**15
"""Histories of one depth, at most: their products have to fit 32 bits."""

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

    def run(self, key: Array, walks: int, until: Array | None = None) -> tuple[Tape, Visited]:
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
        # What is drawn at a depth is a hash of two words, the depth and the slot: see `jaxcfr.traversal.randomness`.
        words = jax.random.bits(key, (2,), jnp.uint32)
        shapes = jax.eval_shape(
            lambda words, front: self._step(words, jnp.zeros((), jnp.int32), front)[0], words, front
        )
        tape: Tape = jax.tree.map(lambda leaf: jnp.zeros((self.depth, *leaf.shape), leaf.dtype), shapes)
        # Depths that no walk comes to hold nobody's decisions.
        tape = tape._replace(seen=tape.seen._replace(who=jnp.full_like(tape.seen.who, TERMINAL)))

        def more(carry: tuple[Any, ...]) -> Array:
            depth, front, *_ = carry
            return (depth < self.depth - 1) & jnp.any(front.active)

        def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            depth, front, tape, visited = carry
            row, below = self._step(words, depth, front)
            return depth + 1, below, put(tape, row, depth), visited.add(front.active.sum(dtype=jnp.float32))

        def put(tape: Tape, row: Tape, depth: Any) -> Tape:
            return jax.tree.map(lambda rows, new: jax.lax.dynamic_update_index_in_dim(rows, new, depth, 0), tape, row)

        begin = (jnp.zeros((), jnp.int32), front, tape, none_visited())
        _, front, tape, visited = jax.lax.while_loop(more, step, begin)
        return put(tape, self._last(words, front), self.depth - 1), visited

    def _last(self, words: Array, front: Front) -> Tape:
        """The last depth: its histories count as leaves, worth what the rest of one play pays."""
        seen = self._seen(front.states, front.active)
        leaves = Seen(jnp.full_like(seen.who, TERMINAL), jnp.zeros_like(seen.legal), seen.row)
        if self.rules.complete:
            payoff = jnp.where(front.active, self.rules.payoff(front.states, seen, self.player), 0)
        else:
            payoff = self._played_out(words, front.states, front.active)
        return Tape(front, leaves, jnp.zeros(seen.legal.shape, jnp.float32), payoff)

    def _seen(self, states: Any, active: Array) -> Seen:
        seen = self.rules.look(states)
        return seen._replace(who=jnp.where(active, seen.who, TERMINAL), legal=seen.legal & active[:, None])

    def _step(self, words: Array, depth: Array, front: Front) -> tuple[Tape, Front]:
        """Looks at the histories of one depth; returns what they are, and the ones that follow."""
        uniforms = functools.partial(drawn_uniforms, words, depth)
        rules, width = self.rules, self.width
        seen = self._seen(front.states, front.active)
        sigma = jnp.where(seen.legal, rules.probabilities(self.prepared, self.ask, front.states, seen), 0)
        sigma = sigma.astype(jnp.float32)
        leaf = front.active & (seen.who == TERMINAL)
        payoff = jnp.where(leaf, rules.payoff(front.states, seen, self.player), 0)
        row = Tape(front, seen, sigma, payoff)

        own = seen.who == self.player
        others = (seen.who >= 0) & ~own
        followed, probability = self.choose(functools.partial(uniforms, CHOICE), seen.legal, sigma, depth, front.until)
        drawn = chosen(drawn_from(uniforms(PLAYER_DRAW, width), sigma), seen.legal)
        followed = jnp.where(own[:, None], followed & seen.legal, drawn & others[:, None])
        chance = seen.who == CHANCE
        followed = followed.at[:, 0].set(followed[:, 0] | chance)
        slot = jnp.arange(width, dtype=jnp.int32)
        if self.single:
            parent, action = slot, jnp.argmax(followed, axis=1).astype(jnp.int32)
            active, thinned = followed.any(1), jnp.ones(width, jnp.float32)
        else:
            parent, action, active, thinned = _fitted(uniforms(THINNING, width), followed)
        who = seen.who[parent]
        here = Seen(who, seen.legal[parent], None if seen.row is None else seen.row[parent])
        states = jax.tree.map(lambda leaf: leaf[parent], front.states)
        states = self._moved(drawn_bits(words, depth, CHANCE_DRAW, width), states, action, here, active)
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

    def _played_out(self, words: Array, states: Any, active: Array) -> Array:
        """What plays from here pay, everybody by its strategy: `[W]`."""

        def more(carry: tuple[Any, ...]) -> Array:
            step, _, active, _ = carry
            return jnp.any(active) & (step < MAX_STEPS)

        def play(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            step, states, active, payoff = carry
            depth = self.depth + step
            seen = self._seen(states, active)
            ended = active & (seen.who == TERMINAL)
            payoff = jnp.where(ended, self.rules.payoff(states, seen, self.player), payoff)
            active = active & ~ended
            sigma = jnp.where(seen.legal, self.rules.probabilities(self.prepared, self.ask, states, seen), 0)
            sigma = sigma.astype(jnp.float32)
            action = drawn_from(drawn_uniforms(words, depth, PLAYER_DRAW, self.width), sigma)
            states = self._moved(drawn_bits(words, depth, CHANCE_DRAW, self.width), states, action, seen, active)
            return step + 1, states, active, payoff

        begin = (jnp.zeros((), jnp.int32), states, active, jnp.zeros(self.width, jnp.float32))
        _, _, unfinished, payoff = jax.lax.while_loop(more, play, begin)
        return jnp.where(unfinished, jnp.nan, payoff)

    def _moved(self, bits: Array, states: Any, action: Array, seen: Seen, active: Array) -> Any:
        """The histories after chance, or whoever acts, has moved; those that are not active stay."""
        after_chance = self.rules.after_chance(states, bits)
        after = self.rules.after(states, action, seen)

        def choose(chance: Array, played: Array, before: Array) -> Array:
            shape = (self.width, *[1] * (played.ndim - 1))
            moved = jnp.where((seen.who == CHANCE).reshape(shape), chance.astype(played.dtype), played)
            return jnp.where(active.reshape(shape), moved, before)

        return jax.tree.map(choose, after_chance, after, states)


def _fitted(u: Array, followed: Array) -> tuple[Array, Array, Array, Array]:
    """As many of the actions followed as there is room for.

    Where there are too many, they are divided into W runs of neighbours, as long as each other but for one, and one of
    each run is drawn: stratified sampling, in which the draws of different runs have nothing to do with each other.

    Args:
      u: `[W]` drawn from [0, 1).
      followed: `[W, A]` bool.

    Returns:
      Per slot of the next depth the history above it, the action, whether there is any, and one by the probability with
      which it was drawn, `[W]` each.
    """
    width = followed.shape[0]
    count = followed.sum(1, dtype=jnp.int32)
    stop = jnp.cumsum(count)
    total = stop[-1]
    slot = jnp.arange(width, dtype=jnp.int32)
    step, rest = total // width, total % width
    # Widths are limited so that this product fits.
    begin = slot * step + (slot * rest) // width
    size = (slot + 1) * step + ((slot + 1) * rest) // width - begin
    drawn = begin + jnp.minimum((u * size).astype(jnp.int32), jnp.maximum(size - 1, 0))
    fits = total <= width
    child = jnp.where(fits, slot, drawn)
    active = slot < jnp.minimum(total, width)
    parent = jnp.minimum(jnp.searchsorted(stop, child, side="right"), width - 1).astype(jnp.int32)
    nth = child - (stop - count)[parent]
    running = jnp.cumsum(followed[parent].astype(jnp.int32), axis=1)
    action = jnp.argmax(running > nth[:, None], axis=1).astype(jnp.int32)
    return parent, action, active, jnp.where(fits, 1, size).astype(jnp.float32)


# Which of its own actions a walk follows


def uniform_over(legal: Array) -> Array:
    """The uniform strategy `[n, A]`, float32."""
    return legal.astype(jnp.float32) / jnp.maximum(legal.sum(1, keepdims=True), 1).astype(jnp.float32)


def follow_all(uniforms: Uniforms, legal: Array, sigma: Array, depth: Array, until: Array) -> tuple[Array, Array]:
    """Every action: external sampling."""
    return legal, jnp.ones(legal.shape, jnp.float32)


@dataclasses.dataclass(frozen=True)
class FollowSome:
    """k actions, all equally likely: robust sampling (Li et al. 2020)."""

    k: int

    def __call__(
        self, uniforms: Uniforms, legal: Array, sigma: Array, depth: Array, until: Array
    ) -> tuple[Array, Array]:
        noise = jnp.where(legal, uniforms(*legal.shape), 2)
        rank = jnp.argsort(jnp.argsort(noise, axis=1), axis=1)
        count = jnp.maximum(legal.sum(1, keepdims=True), 1)
        probability = jnp.minimum(self.k / count, 1).astype(jnp.float32)
        return legal & (rank < self.k), jnp.broadcast_to(probability, legal.shape)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class FollowOne:
    """One action: uniformly with probability `exploration`, else by the strategy. Outcome sampling."""

    exploration: Any

    def __call__(
        self, uniforms: Uniforms, legal: Array, sigma: Array, depth: Array, until: Array
    ) -> tuple[Array, Array]:
        exploration = jnp.asarray(self.exploration, jnp.float32)
        probability = exploration * uniform_over(legal) + (1 - exploration) * sigma
        return chosen(drawn_from(uniforms(legal.shape[0]), probability), legal), probability


def follow_starts(uniforms: Uniforms, legal: Array, sigma: Array, depth: Array, until: Array) -> tuple[Array, Array]:
    """One action: uniformly down to depth `until`, by the strategy below it."""
    probability = jnp.where((depth <= until)[:, None], uniform_over(legal), sigma)
    return chosen(drawn_from(uniforms(legal.shape[0]), probability), legal), probability


def chosen(action: Array, legal: Array) -> Array:
    """One action of each row as a mask `[n, A]`; nothing where it is not legal."""
    return jax.nn.one_hot(action, legal.shape[1], dtype=bool) & legal


def drawn_bits(words: Array, depth: Array, purpose: int, count: int) -> Array:
    """Random uint32 `[count]` for one purpose at one depth."""
    there = mix(words[1] + depth.astype(jnp.uint32) * np.uint32(EDGE) + np.uint32(purpose * STEP % 2**32))
    return mix(mix(jnp.arange(count, dtype=jnp.uint32) ^ words[0]) + there)


def drawn_uniforms(words: Array, depth: Array, purpose: int, *shape: int) -> Array:
    """Draws from [0, 1), float32."""
    return unit(drawn_bits(words, depth, purpose, math.prod(shape))).reshape(shape)


def drawn_from(u: Array, probabilities: Array) -> Array:
    """One action by each row `[n, A]`, never one without probability, from draws `[n]`: int32 `[n]`."""
    found: Array = jax.vmap(draw_at)(u, probabilities)
    return found


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
        b = jnp.where(decides[:, None] & row.seen.legal, b, 0).astype(jnp.float32)
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
