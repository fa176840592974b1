"""What a walk through a tree needs at each history, packed (host side, numpy).

A walk that samples its way down gathers one row per history it visits, so
everything about a history lies in one row of four integers, and whoever acts
there (a player or chance) draws from one long vector of cumulative
probabilities.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import jax
import numpy as np
from jax import Array

from jaxcfr.tree.nodes import CHANCE, TERMINAL, NodeFacts, NodeTable
from jaxcfr.tree.segments import as_numpy
from jaxcfr.tree.treeplex import Treeplex

ACTOR_BITS = 8
"""The actor takes so many bits of a packed row, the number of children the others."""

MAX_PLAYERS = 2**ACTOR_BITS - 3

PER_WALK = 1024
"""Mean sizes of frontiers are stored for so many walks, as integers."""

EXACT_WORK = 50_000_000
"""The worst frontier of one walk is found exactly where that takes at most so many steps, else bounded."""


@dataclasses.dataclass(frozen=True)
class Frontier:
    """How many histories a walk meets right below the k-th histories it branches at, k = 0, 1, ...

    Structural: whoever is sampled is taken as uniform, so that trees of one structure have equal frontiers.

    Attributes:
      mean: per k, for `PER_WALK` walks, rounded up; by the number of chance moves among the k histories, since a walk
        that draws n outcomes at each of those meets n times as many histories below.
      worst: per k, for one walk, the most over all that could be sampled (or a bound on it); if one outcome is drawn.
      rolls: per k, the largest number of chance moves among the k histories.
    """

    mean: tuple[tuple[int, ...], ...]
    worst: tuple[int, ...]
    rolls: tuple[int, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Moves:
    """The N histories as a walk sees them.

    Actors have codes: 0 terminal, 1 chance, 2 + p player p. The vector of cumulative probabilities is the
    concatenation of every player's flat vector and `chance`.

    Attributes:
      rows: `[N, 4]` int32: the first child (or the number of the leaf); 256 times the number of children plus the
        actor's code; where the actor's first action lies in the vector of cumulative probabilities; and the distance
        between its consecutive actions there.
      chance: `[C]` cumulative probabilities of chance's outcomes, each distribution once.
      frontiers: of walks that branch at player p's decisions, for each p; then of walks that branch at everyone's;
        then of walks that branch at chance too (static).
      most_children: the largest number of children (static).
    """

    rows: Array
    chance: Array
    frontiers: tuple[Frontier, ...] = dataclasses.field(metadata={"static": True})
    most_children: int = dataclasses.field(metadata={"static": True})


def build_moves(nodes: NodeTable, facts: NodeFacts, treeplexes: list[Treeplex], dtype: Any) -> Moves:
    """Packs the histories; made of numpy arrays."""
    count = facts.num_children.astype(np.int64)
    base = np.zeros(nodes.num_histories, np.int64)
    stride = np.ones(nodes.num_histories, np.int64)
    offset = 0
    for player, treeplex in enumerate(treeplexes):
        mine = np.flatnonzero(nodes.player == player)
        infoset = nodes.infoset[mine]
        base[mine] = offset + np.asarray(treeplex.first, np.int64)[infoset]
        stride[mine] = np.asarray(treeplex.stride)[infoset]
        offset += treeplex.size
    chance_rows = np.flatnonzero(nodes.player == CHANCE)
    cumulative, place = _chance_table(nodes, facts, chance_rows)
    base[chance_rows] = offset + place
    target = np.where(nodes.player == TERMINAL, np.cumsum(nodes.player == TERMINAL) - 1, facts.first_child)
    # NodeTable's players from TERMINAL = -2 on become codes from 0 on.
    packed = (count << ACTOR_BITS) | (np.minimum(nodes.player.astype(np.int64), MAX_PLAYERS) - TERMINAL)
    rows = np.stack([target, packed, base, stride], axis=1)
    branching = [nodes.player == player for player in range(nodes.num_players)]
    branching += [nodes.player >= 0, nodes.player != TERMINAL]
    return Moves(
        rows=as_numpy(rows, np.int32),
        chance=as_numpy(cumulative, dtype),
        frontiers=tuple(_frontier(nodes, facts, branches) for branches in branching),
        most_children=int(count.max(initial=1)),
    )


def _chance_table(nodes: NodeTable, facts: NodeFacts, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct distributions of chance, cumulative, one after the other, and where each row's begins."""
    if not len(rows):
        return np.zeros(0), np.zeros(0, np.int64)
    counts = facts.num_children[rows].astype(np.int64)
    starts = np.cumsum(counts) - counts
    within = np.arange(counts.sum()) - np.repeat(starts, counts)
    probability = nodes.chance[np.repeat(facts.first_child[rows], counts) + within]
    # Distributions are told apart by a number each: a sum with weights that no two of them share.
    weight = np.random.default_rng(0).random(int(counts.max()))[within]
    number = np.add.reduceat(probability * weight, starts) + counts
    _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
    like = np.repeat(starts[first[inverse]], counts) + within
    if np.any(counts[first[inverse]] != counts) or np.any(probability[like] != probability):
        first = inverse = np.arange(len(rows))  # two of them do: every row has its own
    total = np.add.reduceat(probability, starts)
    running = np.cumsum(probability / np.repeat(total, counts))
    running -= np.repeat(running[starts] - probability[starts] / total, counts)
    running[starts + counts - 1] = 1.0
    # Outcomes that cannot happen at the end of a distribution are never drawn: the running sum is 1 before them.
    last = starts + counts - 1
    positive = np.where(probability > 0, np.arange(len(probability)), -1)
    final = np.maximum.reduceat(positive, starts)
    running[np.arange(len(running)) >= np.repeat(np.where(final >= 0, final, last), counts)] = 1.0
    kept = np.zeros(len(rows), bool)
    kept[first] = True
    place = np.cumsum(np.where(kept, counts, 0)) - np.where(kept, counts, 0)
    return running[np.repeat(kept, counts)], place[first[inverse]]


def _round_up(value: float) -> int:
    """Up to a number of a coarse grid, so that nearly equal trees count as equal."""
    if value <= 1:
        return math.ceil(value)
    step = 2.0 ** (math.floor(math.log2(value)) - 3)
    return int(math.ceil(value / step) * step) if step >= 1 else math.ceil(value)


def _frontier(nodes: NodeTable, facts: NodeFacts, branches: np.ndarray) -> Frontier:
    """Of walks that branch at some of the inner histories."""
    rows = np.flatnonzero(branches)
    if not len(rows):
        return Frontier((), (), ())
    chance = nodes.player == CHANCE
    level, rolls = np.zeros((2, nodes.num_histories), np.int32)
    share = np.zeros(nodes.num_histories)  # logarithm of how many of all walks come here
    sampled = (facts.num_children > 0) & (chance | ~branches)
    log = np.where(sampled, -np.log(np.maximum(facts.num_children, 1)), 0.0)
    rolled = branches & chance
    rolls[0] = rolled[0]
    for start, stop in itertools.pairwise(facts.level_offsets[1:]):
        above = nodes.parent[start:stop]
        level[start:stop] = level[above] + branches[above]
        rolls[start:stop] = rolls[above] + rolled[start:stop]
        share[start:stop] = share[above] + log[above]
    level_, rolls_ = level[rows], rolls[rows]
    levels, most = int(level_.max()) + 1, int(rolls_.max()) + 1
    children = np.where(chance[rows], 1.0, facts.num_children[rows])
    mean = np.bincount(level_ * most + rolls_, weights=np.exp(share[rows]) * children, minlength=levels * most)
    deepest = np.zeros(levels, np.int64)
    np.maximum.at(deepest, level_, rolls_)
    if levels * nodes.num_histories <= EXACT_WORK and levels * facts.depth <= 2000:
        worst = np.array([_worst(nodes, facts, branches & ~chance, branches, level, k) for k in range(levels)])
    else:
        # Different branches of one walk are different choices of whoever it branches at.
        widest = np.zeros(levels)
        np.maximum.at(widest, level_, children)
        worst = np.ceil(2.0 ** np.minimum(np.cumsum(np.log2(widest)), 40.0))
        worst = np.minimum(worst, np.bincount(level_, weights=children))
    return Frontier(
        tuple(tuple(_round_up(PER_WALK * value) for value in row) for row in mean.reshape(levels, most).tolist()),
        tuple(_round_up(value) for value in worst.tolist()),
        tuple(deepest.tolist()),
    )


def _worst(
    nodes: NodeTable, facts: NodeFacts, spread: np.ndarray, branches: np.ndarray, level: np.ndarray, k: int
) -> float:
    """The most histories below the k-th that one walk can meet: sums where it spreads to all children, else maxima."""
    below = np.zeros(0)
    for start, stop in reversed(list(itertools.pairwise(facts.level_offsets))):
        here = np.zeros(stop - start)
        inner = np.flatnonzero(facts.num_children[start:stop])
        if len(inner):
            first = facts.first_child[start + inner] - stop
            summed, best = np.add.reduceat(below, first), np.maximum.reduceat(below, first)
            here[inner] = np.where(spread[start + inner], summed, best)
        last = branches[start:stop] & (level[start:stop] == k)
        here[last] = np.where(spread[start:stop], facts.num_children[start:stop], 1)[last]
        below = here
    return float(below[0])
