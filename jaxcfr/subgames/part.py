"""Parts of a game, and games put together from them: every result is a node table for the one constructor."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from jaxcfr.subgames.whole import Whole
from jaxcfr.tree.build import build_tree
from jaxcfr.tree.lower import LoweredGame
from jaxcfr.tree.nodes import TERMINAL, NodeTable


@dataclasses.dataclass(frozen=True)
class Part:
    """M histories of a game: R roots and what lies below them, perhaps only down to some depth.

    Attributes:
      whole: the game.
      rows: `[M]` rows of the game, ascending.
      parent: `[M]`, place of the parent among `rows`, -1 for roots.
      roots: `[R]`, places of the roots.
      root_of: `[M]`, number of the root above.
      cut_off: `[M]` bool, not terminal in the game, but what lies below is left out.
    """

    whole: Whole
    rows: np.ndarray
    parent: np.ndarray
    roots: np.ndarray
    root_of: np.ndarray
    cut_off: np.ndarray

    @property
    def player(self) -> np.ndarray:
        """`[M]`, who acts; nobody where the part is cut off."""
        return np.where(self.cut_off, TERMINAL, self.whole.nodes.player[self.rows])

    def product_below(self, factor: np.ndarray) -> np.ndarray:
        """`[N]`, the product of the factors, `[N]`, of the edges from the root of the part down to every history."""
        product = np.ones(len(factor))
        top = np.ones(len(factor), bool)
        top[self.rows] = self.parent < 0
        for rows in self.whole.levels():
            product[rows] = np.where(top[rows], 1.0, product[self.whole.nodes.parent[rows]] * factor[rows])
        return product

    def infosets(self, player: int) -> np.ndarray:
        """The numbers of a player's information sets in it, ascending."""
        return np.unique(self.whole.nodes.infoset[self.rows[self.player == player]])


def part_of(whole: Whole, inside: np.ndarray, max_depth: int | None = None) -> Part:
    """The histories of a set, `[N]` bool, closed under descendants; at most `max_depth` plies below their roots."""
    nodes = whole.nodes
    root = np.full(len(inside), -1, np.int64)
    depth = np.zeros(len(inside), np.int64)
    top = inside.copy()
    top[1:] &= ~inside[nodes.parent[1:]]
    root[top] = np.arange(int(top.sum()))
    for rows in whole.levels():
        above = nodes.parent[rows]
        below = inside[rows] & ~top[rows]
        root[rows][below] = root[above][below]
        depth[rows][below] = depth[above][below] + 1
    kept = inside if max_depth is None else inside & (depth <= max_depth)
    members = np.flatnonzero(kept)
    place = np.full(len(inside) + 1, -1, np.int64)
    place[members] = np.arange(len(members))
    parent = place[nodes.parent[members]]  # -1, the parent of the whole game's root, reads the last place: -1 again
    cut_off = np.zeros(len(members), bool)
    if max_depth is not None:
        cut_off = (depth[members] == max_depth) & (nodes.player[members] != TERMINAL)
    return Part(whole, members, parent, np.flatnonzero(top[members]), root[members], cut_off)


@dataclasses.dataclass(frozen=True)
class Ends:
    """What the Z leaves of a game put together stand for, in the order of its payoffs.

    Attributes:
      row: `[Z]`, the row of the whole game, -1 for a leaf that it does not have.
      root: `[Z]`, number of the root above or, for such a leaf, beside.
      choice: `[Z]`, which of several continuations.
    """

    row: np.ndarray
    root: np.ndarray
    choice: np.ndarray


def root_labels(part: Part, known: np.ndarray, player: int) -> np.ndarray:
    """A player's information sets at the roots, counted in the order of their first roots.

    Args:
      part: with all that lies below its roots.
      known: `[K, R]`, what the player knows at the roots, as numbers.
      player: whose.

    Returns:
      `[R]`.
    """
    nodes = part.whole.nodes
    classes, label = np.unique(known, axis=1, return_inverse=True)
    label = label.reshape(-1)
    # Where one of its information sets further down cannot tell two of these apart, they are one.
    inside = np.flatnonzero(part.player == player)
    count, sets = classes.shape[1], nodes.num_actions[player].size
    graph = scipy.sparse.coo_matrix(
        (np.ones(len(inside), np.int8), (label[part.root_of[inside]], count + nodes.infoset[part.rows[inside]])),
        shape=(count + sets, count + sets),
    )
    _, component = scipy.sparse.csgraph.connected_components(graph, directed=False)
    _, first, inverse = np.unique(component[label], return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    result: np.ndarray = rank[inverse.reshape(-1)]
    return result


class Assembly:
    """Histories put together block by block: parents before children, siblings in the order of their actions."""

    def __init__(self) -> None:
        self._columns: list[tuple[np.ndarray, ...]] = []
        self.size = 0

    def add(
        self,
        player: Any,
        parent: Any,
        infoset: Any = -1,
        chance: Any = 1.0,
        row: Any = -1,
        root: Any = -1,
        choice: Any = 0,
    ) -> np.ndarray:
        """Adds histories; the columns broadcast. For the last three see `Ends`.

        Returns:
          Their places.
        """
        columns = np.broadcast_arrays(*map(np.atleast_1d, (player, parent, infoset, chance, row, root, choice)))
        self._columns.append(tuple(columns))
        places = np.arange(self.size, self.size + len(columns[0]))
        self.size += len(places)
        return places

    def finish(self, num_actions: tuple[np.ndarray, ...]) -> tuple[NodeTable, Ends]:
        """The histories breadth first, with payoffs still zero, and what the leaves are."""
        player, parent, infoset, chance, *ends = (np.concatenate(column) for column in zip(*self._columns, strict=True))
        by_parent = np.argsort(parent, kind="stable")
        sorted_parent = parent[by_parent]
        row = np.full(self.size, -1, np.int64)
        order, level, met = [], np.flatnonzero(parent < 0), 0
        while len(level):
            order.append(level)
            row[level] = met + np.arange(len(level))
            met += len(level)
            first, last = (np.searchsorted(sorted_parent, level, side) for side in ("left", "right"))
            stops = np.cumsum(last - first)
            level = by_parent[np.repeat(last - stops, last - first) + np.arange(stops[-1])]
        places = np.concatenate(order)
        above = parent[places]
        leaves = places[player[places] == TERMINAL]
        table = NodeTable(
            num_players=2,
            player=player[places].astype(np.int8),
            infoset=infoset[places].astype(np.int32),
            parent=np.where(above < 0, -1, row[above]).astype(np.int32),
            chance=chance[places].astype(np.float64),
            payoffs=np.zeros((len(leaves), 2)),
            num_actions=num_actions,
        )
        return table, Ends(*(column[leaves] for column in ends))


@dataclasses.dataclass(frozen=True)
class Choice:
    """Decisions that a game put together has and the whole game has not.

    Attributes:
      player: who takes them.
      keys: one for each information set.
      menus: for each, the actions.
    """

    player: int
    keys: tuple[Hashable, ...]
    menus: tuple[tuple[str, ...], ...]


class Numbering:
    """The information sets of a game put together: those of a part first, then choices.

    Attributes:
      real: per player, the numbers that the first of its information sets have in the whole game.
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        self.real = (part.infosets(0), part.infosets(1))
        self._choices: list[Choice] = []

    def of_rows(self) -> np.ndarray:
        """`[M]`, the number of the information set of every history of the part, -1 where nobody acts."""
        player = self.part.player
        result = np.full(len(player), -1, np.int64)
        for p in range(2):
            own = player == p
            result[own] = np.searchsorted(self.real[p], self.part.whole.nodes.infoset[self.part.rows[own]])
        return result

    def add(self, choice: Choice) -> int:
        """Adds information sets; returns the number of the first."""
        added = sum(len(other.keys) for other in self._choices if other.player == choice.player)
        self._choices.append(choice)
        return len(self.real[choice.player]) + added

    def num_actions(self) -> tuple[np.ndarray, ...]:
        """Per player, the numbers of actions."""
        counts = []
        for player in range(2):
            real = self.part.whole.nodes.num_actions[player][self.real[player]]
            added = [len(menu) for choice in self._choices if choice.player == player for menu in choice.menus]
            counts.append(np.concatenate([real, np.array(added, np.int32)]).astype(np.int32))
        return tuple(counts)

    def lower(
        self, nodes: NodeTable, name: str, dtype: Any, general_sum: bool = False, centre: bool = True
    ) -> LoweredGame:
        """The tree of a table with these information sets, with keys and labels."""
        whole = self.part.whole.names
        keys, actions, labels = [], [], []
        for player in range(2):
            real = self.real[player].tolist()
            mine = [choice for choice in self._choices if choice.player == player]
            menus = tuple(menu for choice in mine for menu in choice.menus)
            keys.append(
                tuple(whole.infoset_keys[player][i] for i in real)
                + tuple(key for choice in mine for key in choice.keys)
            )
            actions.append(tuple(whole.actions[player][i] for i in real) + menus)
            labels.append(tuple(whole.action_labels[player][i] for i in real) + menus)
        tree = build_tree(
            nodes,
            lambda player, infoset: repr(keys[player][infoset]),
            dtype=dtype,
            general_sum=general_sum,
            centre=centre,
        )
        return LoweredGame(tree, name, tuple(keys), tuple(actions), tuple(labels))


def add_part(
    assembly: Assembly,
    numbers: Numbering,
    above: Any,
    chance: Any,
    choices: int = 1,
    leaf_infoset: np.ndarray | None = None,
    opponent: int = -1,
) -> None:
    """Adds the part of a numbering below histories that are there already.

    Args:
      assembly: where to.
      numbers: of the information sets.
      above: `[R]`, the place of each root's parent, -1 for none.
      chance: `[R]`, the probability of the edge into each root.
      choices: how many continuations there are where the part is cut off; with more than one the opponent chooses.
      leaf_infoset: `[M]`, the number of its information set there.
      opponent: who chooses.
    """
    part = numbers.part
    player, infoset = part.player, numbers.of_rows()
    parent = assembly.size + part.parent
    parent[part.roots] = above
    probability = part.whole.nodes.chance[part.rows]
    probability[part.roots] = chance
    if leaf_infoset is not None:
        player = np.where(part.cut_off, opponent, player)
        infoset = np.where(part.cut_off, leaf_infoset, infoset)
    places = assembly.add(player, parent, infoset, probability, part.rows, part.root_of)
    if leaf_infoset is not None:
        cut = np.repeat(np.flatnonzero(part.cut_off), choices)
        choice = np.tile(np.arange(choices), int(part.cut_off.sum()))
        assembly.add(TERMINAL, places[cut], row=part.rows[cut], root=part.root_of[cut], choice=choice)
