"""The node table: every history of a game as rows of numpy arrays, breadth first.

This is the one way into a `GameTree`. Whatever produces a game (Python rules,
a file, a subgame cut out of another tree) produces a node table, and
`jaxcfr.tree.build.build_tree` does the rest.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from jaxcfr.errors import GameError, RecallError

CHANCE = -1
"""Value of `NodeTable.player` where chance moves."""

TERMINAL = -2
"""Value of `NodeTable.player` where the play has ended."""


@dataclasses.dataclass(frozen=True)
class NodeTable:
    """N histories in breadth-first order, the children of a history next to each other in action order.

    Attributes:
      num_players: P.
      player: `[N]` int8, who acts: 0 to P - 1, `CHANCE` or `TERMINAL`.
      infoset: `[N]` int32, number of the information set among its owner's, -1 elsewhere.
      parent: `[N]` int32, non-decreasing, -1 for the root (row 0).
      chance: `[N]` float64, probability of the edge into the history: 1 unless its parent is chance.
      payoffs: `[Z, P]` float64, payoffs of the Z terminal histories in row order.
      num_actions: per player, `[n_p]` int32, number of actions of each of its information sets.
    """

    num_players: int
    player: np.ndarray
    infoset: np.ndarray
    parent: np.ndarray
    chance: np.ndarray
    payoffs: np.ndarray
    num_actions: tuple[np.ndarray, ...]

    @property
    def num_histories(self) -> int:
        return len(self.player)


@dataclasses.dataclass(frozen=True)
class Walked:
    """A whole game: its node table, and what the numbers in it stand for.

    Attributes:
      nodes: the table.
      infoset_keys: per player, the key of each of its information sets.
      actions: per player and information set, the legal actions in order.
      action_labels: the same as readable strings.
    """

    nodes: NodeTable
    infoset_keys: tuple[Sequence[Hashable], ...]
    actions: tuple[Sequence[tuple[Hashable, ...]], ...]
    action_labels: tuple[Sequence[tuple[str, ...]], ...]


@dataclasses.dataclass(frozen=True)
class NodeFacts:
    """What follows from a node table alone, before any layout is chosen.

    Attributes:
      level_offsets: `[depth + 2]` int64, rows `level_offsets[d]:level_offsets[d + 1]` are the histories of depth d.
      first_child: `[N]` int32, row of the first child, -1 where there is none.
      num_children: `[N]` int32.
      chance_reach: `[N]` float64, product of the chance probabilities on the path.
      sequence: per player `[N]` int32, the player's last sequence on the path in *plain* numbering: actions of
        information set 0 first, then of 1, ...; the empty sequence comes last.
      first_sequence: per player `[n_p + 1]` int32, plain number of each information set's first action; the last
        entry is the number of non-empty sequences, which is also the number of the empty sequence.
      infoset_parent: per player `[n_p]` int32, the sequence (plain numbering) that leads to each information set.
      infoset_level: per player `[n_p]` int32, how many of the owner's information sets come before it on a path.
    """

    level_offsets: np.ndarray
    first_child: np.ndarray
    num_children: np.ndarray
    chance_reach: np.ndarray
    sequence: tuple[np.ndarray, ...]
    first_sequence: tuple[np.ndarray, ...]
    infoset_parent: tuple[np.ndarray, ...]
    infoset_level: tuple[np.ndarray, ...]

    @property
    def depth(self) -> int:
        return len(self.level_offsets) - 2


def derive_facts(nodes: NodeTable, describe: Callable[[int, int], str]) -> NodeFacts:
    """Derives `NodeFacts`, and checks perfect recall on the way.

    Args:
      nodes: the table.
      describe: names information set i of player p in messages.

    Raises:
      GameError: the table is inconsistent, or a decision history has another number of children than its
        information set has actions.
      RecallError: the histories of an information set differ in their owner's last sequence.
    """
    _check_table(nodes)
    num_histories = nodes.num_histories
    parent = nodes.parent
    num_children = np.bincount(parent[1:], minlength=num_histories).astype(np.int32)
    first_child = np.where(num_children > 0, 1 + np.cumsum(num_children) - num_children, -1).astype(np.int32)
    offsets = level_offsets(parent)
    first_sequence = tuple(
        np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int32) for counts in nodes.num_actions
    )
    _check_arity(nodes, num_children, describe)

    chance_reach = nodes.chance.astype(np.float64).copy()
    sequence = tuple(np.full(num_histories, first[-1], np.int32) for first in first_sequence)
    for start, stop in itertools.pairwise(offsets[1:]):
        above = parent[start:stop]
        chance_reach[start:stop] *= chance_reach[above]
        edge = np.arange(start, stop, dtype=np.int32) - first_child[above]
        actor = nodes.player[above]
        for player, (last, first) in enumerate(zip(sequence, first_sequence, strict=True)):
            acts = actor == player
            if acts.all():
                last[start:stop] = first[nodes.infoset[above]] + edge
                continue
            last[start:stop] = last[above]
            if acts.any():
                own = np.flatnonzero(acts)
                last[start + own] = first[nodes.infoset[above[own]]] + edge[own]

    infoset_parent, infoset_level = [], []
    for player in range(nodes.num_players):
        parents = _infoset_parents(nodes, player, sequence[player], describe)
        infoset_parent.append(parents)
        infoset_level.append(_infoset_levels(parents, first_sequence[player]))
    return NodeFacts(
        offsets,
        first_child,
        num_children,
        chance_reach,
        sequence,
        first_sequence,
        tuple(infoset_parent),
        tuple(infoset_level),
    )


def _check_table(nodes: NodeTable) -> None:
    """Raises `GameError` where the columns of a table do not fit together."""
    player, parent, count = nodes.player, nodes.parent, nodes.num_histories

    def require(condition: object, message: str) -> None:
        if not condition:
            raise GameError(f"node table: {message}")

    require(count > 0, "there is no history")
    for name in ("infoset", "parent", "chance"):
        require(getattr(nodes, name).shape == (count,), f"{name} has to have one entry for each of {count} histories")
    require(parent[0] == -1, "row 0 has to be the root, whose parent is -1")
    rows = np.arange(1, count, dtype=np.int32)
    ascending = count == 1 or (parent[1] == 0 and np.all(parent[2:] >= parent[1:-1]))
    breadth_first = ascending and np.all(parent[1:] < rows)
    require(breadth_first, "rows have to come breadth first: parents before children, in non-decreasing order")
    require(np.all((player >= TERMINAL) & (player < nodes.num_players)), "an entry of player is out of range")
    childless = np.bincount(parent[1:], minlength=count) == 0
    require(np.array_equal(childless, player == TERMINAL), "terminal histories, and only they, have no children")
    require(np.all(np.isfinite(nodes.chance) & (nodes.chance >= 0)), "a chance probability is negative or no number")
    shape = (int(childless.sum()), nodes.num_players)
    require(nodes.payoffs.shape == shape, f"payoffs have to have shape {shape}, not {nodes.payoffs.shape}")
    require(len(nodes.num_actions) == nodes.num_players, "num_actions has to have one array per player")
    for p, counts in enumerate(nodes.num_actions):
        infoset = nodes.infoset[player == p]
        require(np.all((infoset >= 0) & (infoset < len(counts))), f"an information set of player {p} is out of range")
        met = np.bincount(infoset, minlength=len(counts)) > 0
        require(np.all(met), f"information set number {int(np.argmin(met)) if len(met) else 0} of player {p} is empty")


def level_offsets(parent: np.ndarray) -> np.ndarray:
    """Boundaries of the depths: a level's rows are those whose parents lie in the level before."""
    offsets = [0, 1]
    while offsets[-1] < len(parent):
        # The needle has the haystack's dtype, or the whole haystack would be converted.
        offsets.append(int(np.searchsorted(parent, parent.dtype.type(offsets[-1]), side="left")))
    return np.array(offsets, np.int64)


def _check_arity(nodes: NodeTable, num_children: np.ndarray, describe: Callable[[int, int], str]) -> None:
    for player, counts in enumerate(nodes.num_actions):
        rows = np.flatnonzero(nodes.player == player)
        wrong = rows[num_children[rows] != counts[nodes.infoset[rows]]] if len(rows) else rows
        if len(wrong):
            infoset = int(nodes.infoset[wrong[0]])
            raise GameError(
                f"player {player} has {num_children[wrong[0]]} actions in one history of information set "
                f"{describe(player, infoset)} and {counts[infoset]} in another"
            )


def _infoset_parents(
    nodes: NodeTable, player: int, last: np.ndarray, describe: Callable[[int, int], str]
) -> np.ndarray:
    """The sequence leading to each information set; the same for all its histories, or recall is not perfect."""
    rows = np.flatnonzero(nodes.player == player)
    infoset = nodes.infoset[rows]
    parents = np.full(len(nodes.num_actions[player]), -1, np.int32)
    parents[infoset[::-1]] = last[rows[::-1]]
    differing = np.flatnonzero(last[rows] != parents[infoset])
    if len(differing):
        bad = int(infoset[differing[0]])
        members = rows[infoset == bad]
        kind = (
            "a play can pass through it twice (absent-mindedness)"
            if _any_above_another(nodes.parent, members)
            else "its histories differ in what the player knew or did before (imperfect recall)"
        )
        raise RecallError(
            f"player {player} forgets at information set {describe(player, bad)}: {kind}; counterfactual regret "
            "minimization needs perfect recall, so let the information-set key hold everything the player has seen "
            "and done"
        )
    return parents


def _any_above_another(parent: np.ndarray, rows: np.ndarray) -> bool:
    """Whether a play through one of the rows has passed another before; looks at no history twice."""
    wanted, seen = np.zeros((2, len(parent)), bool)
    wanted[rows] = True
    while len(rows):
        rows = parent[rows]
        rows = rows[rows >= 0]
        if np.any(wanted[rows]):
            return True
        rows = np.unique(rows[~seen[rows]])
        seen[rows] = True
    return False


def _infoset_levels(infoset_parent: np.ndarray, first_sequence: np.ndarray) -> np.ndarray:
    """How many of the owner's information sets lie above each one, by pointer doubling."""
    count = len(infoset_parent)
    above = np.searchsorted(first_sequence, infoset_parent, side="right") - 1
    # The empty sequence leads nowhere: `count` is the one fixed point of the pointers.
    pointer = np.append(np.where(infoset_parent == first_sequence[-1], count, above), count)
    steps = np.append((pointer[:-1] != count).astype(np.int32), 0)
    while np.any(pointer != count):
        steps = steps + steps[pointer]
        pointer = pointer[pointer]
    return steps[:-1].astype(np.int32)
