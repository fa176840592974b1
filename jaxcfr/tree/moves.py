"""What a walk through a tree needs at each history, packed (host side, numpy).

A walk that samples its way down gathers one row per history it visits, so
everything about a history lies in one row of four integers, and whoever acts
there (a player or chance) draws from one long vector of cumulative
probabilities.
"""

from __future__ import annotations

import dataclasses
import itertools
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
      most_children: the largest number of children (static).
    """

    rows: Array
    chance: Array
    most_children: int = dataclasses.field(metadata={"static": True})


def private_chance(histories: Any) -> np.ndarray:
    """Where chance moves so that some player does not learn the outcome at once: `[N]` bool, host side.

    A chance move is public if no information set below it holds histories of two of its outcomes.

    Args:
      histories: a `jaxcfr.tree.game_tree.Histories`.
    """
    player, parent = np.asarray(histories.player), np.asarray(histories.parent)
    infoset, offsets = np.asarray(histories.infoset).astype(np.int64), histories.level_offsets
    private = np.zeros(len(player), bool)
    # One number for every information set of any player.
    number = infoset * (int(player.max(initial=0)) + 1) + player
    for depth in range(len(offsets) - 2):
        if not np.any(player[offsets[depth] : offsets[depth + 1]] == CHANCE):
            continue
        # The outcome through which each history is reached.
        outcome = np.full(len(player), -1, np.int64)
        start, stop = offsets[depth + 1], offsets[depth + 2]
        outcome[start:stop] = np.where(player[parent[start:stop]] == CHANCE, np.arange(start, stop), -1)
        for first, last in itertools.pairwise(offsets[depth + 2 :]):
            outcome[first:last] = outcome[parent[first:last]]
        rows = np.flatnonzero((outcome >= 0) & (player >= 0))
        if not len(rows):
            continue
        above = parent[outcome[rows]].astype(np.int64)
        order = np.lexsort((outcome[rows], above, number[rows]))
        sets, above, outcomes = number[rows][order], above[order], outcome[rows][order]
        mixed = (sets[1:] == sets[:-1]) & (above[1:] == above[:-1]) & (outcomes[1:] != outcomes[:-1])
        private[above[1:][mixed]] = True
    return private


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
    return Moves(
        rows=as_numpy(rows, np.int32),
        chance=as_numpy(cumulative, dtype),
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
