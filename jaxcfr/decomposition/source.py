"""Where trunk and subgames come from: a tree that is there, or rules from which they are lowered when needed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from jaxcfr.decomposition.subtree import Piece
from jaxcfr.errors import GameError, NotTwoPlayerConstantSumError, OptionError, SubgameError
from jaxcfr.games.base import format_path
from jaxcfr.subgames.part import Assembly, Numbering, Part, add_part, root_labels
from jaxcfr.subgames.whole import Whole
from jaxcfr.tree.lower import LoweredGame
from jaxcfr.tree.nodes import TERMINAL

Cut = int | str | Callable[[Any], Any]
"""Where subgames begin: a depth, "round", or a predicate of histories."""


@dataclasses.dataclass(frozen=True)
class CutGame:
    """A game cut in two.

    Attributes:
      name: of the game.
      trunk: with histories; the roots of subgames are leaves.
      leaf: `[R]`, the leaf of the trunk that each root is.
      subgame: `[R]`, the number of the subgame that each root belongs to.
      closure: under which notion of what players know subgames are closed.
    """

    name: str
    trunk: LoweredGame
    leaf: np.ndarray
    subgame: np.ndarray
    closure: str

    @property
    def num_subgames(self) -> int:
        return int(self.subgame.max()) + 1


class Source(Protocol):
    """Gives subgames one at a time.

    Attributes:
      cut: trunk and roots.
      centre: what was taken from both players' payoffs, so that they sum to zero.
    """

    cut: CutGame
    centre: tuple[float, float]

    @property
    def held(self) -> int:
        """Bytes that the source keeps by itself."""
        ...

    def piece(self, number: int) -> Piece:
        """A subgame; its roots in the order of `cut.leaf`."""
        ...

    def path(self, number: int) -> tuple[Hashable, ...]:
        """The path of the first root of a subgame."""
        ...

    def find(self, path: Sequence[Hashable]) -> int | None:
        """The subgame that a path leads into; None where it ends in the trunk."""
        ...


def zero_sum(name: str, payoffs: np.ndarray, centre: tuple[float, float]) -> np.ndarray:
    """Player 0's payoffs relative to `centre`, `[Z]`, of `[Z, 2]`.

    Raises:
      NotTwoPlayerConstantSumError: their sum is not that of the centre.
    """
    total, size = payoffs.sum(1) - sum(centre), max(float(np.abs(payoffs).max(initial=0)), 1e-300)
    off = np.flatnonzero(np.abs(total) > 1e-6 * size)
    if len(off):
        raise NotTwoPlayerConstantSumError(
            f"{name}: CFR-D is for two-player constant-sum games, and payoffs {payoffs[off[0]].tolist()} do not sum to "
            f"{sum(centre):g} as others do"
        )
    return payoffs[:, 0] - centre[0]


class TreeSource:
    """Trunk and subgames of a game whose tree is in memory."""

    def __init__(self, whole: Whole, cut: Cut, closure: str | None, siblings: bool) -> None:
        self.whole = whole
        tree = whole.lowered.tree
        nodes = whole.nodes
        classes, closure = whole.knowledge(closure)
        inside = self._inside(cut)
        inside[nodes.player == TERMINAL] = False
        if not inside.any():
            raise SubgameError(
                f"{whole.name}: nothing lies below the cut {cut!r}: there is no subgame to decompose into"
            )
        self._close(inside, classes)
        top = inside.copy()
        top[1:] &= ~inside[nodes.parent[1:]]
        roots = np.flatnonzero(top)
        root_of = np.full(len(inside), -1, np.int64)
        root_of[roots] = np.arange(len(roots))
        for rows in whole.levels():
            below = inside[rows] & ~top[rows]
            root_of[rows][below] = root_of[nodes.parent[rows][below]]
        links = [(root_of, per_player) for per_player in classes]
        if siblings:
            links.append((np.arange(len(roots)), nodes.parent[roots].astype(np.int64)))
        component = connected(links, len(roots))
        subgame_of = np.where(root_of >= 0, component[np.maximum(root_of, 0)], -1)
        self._classes = classes
        self._root_of = root_of
        self._roots = roots
        order = np.argsort(subgame_of, kind="stable")
        starts = np.searchsorted(subgame_of[order], np.arange(int(component.max()) + 2))
        self._rows = [order[a:b] for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
        self._subgame_of = subgame_of
        payoffs = np.asarray(tree.terminal_payoffs, np.float64)
        middle = payoffs[:, 0].min() / 2 + payoffs[:, 0].max() / 2
        self.centre = (middle, float(payoffs[0].sum()) - middle)
        self._payoffs = np.zeros(len(inside))
        self._payoffs[nodes.player == TERMINAL] = zero_sum(whole.name, payoffs, self.centre)
        trunk, leaf_of = self._trunk(inside, top, tree.dtype)
        self.cut = CutGame(whole.name, trunk, leaf_of[roots], component, closure)

    def _inside(self, cut: Cut) -> np.ndarray:
        """`[N]` bool, the histories at the cut or below."""
        whole = self.whole
        inside = np.zeros(len(whole.nodes.player), bool)
        limit = as_depth(cut)
        if limit is not None:
            inside[whole.level_offsets[min(limit, len(whole.level_offsets) - 1)] :] = True
            return inside
        if whole.game is None:
            raise OptionError("a tree has no histories to ask: cut it at a depth, or decompose the game itself")
        predicate = as_predicate(cut)
        acting = whole.nodes.player != TERMINAL

        def look(row: int, history: Any) -> None:
            inside[row] = asked(whole.name, predicate, history, lambda: format_path(whole.path_to(row)))

        whole.visit(look, acting)
        whole.descend(inside)
        return inside

    def _close(self, inside: np.ndarray, classes: tuple[np.ndarray, ...]) -> None:
        """Adds what players cannot tell from it, in place."""
        self.whole.descend(inside)
        size = 0
        while size < (size := int(inside.sum())):
            for per_player in classes:
                met = np.zeros(int(per_player.max(initial=-1)) + 2, bool)
                met[per_player[inside]] = True
                met[-1] = False  # the place of -1: terminal histories
                inside |= met[per_player]
            self.whole.descend(inside)

    def _trunk(self, inside: np.ndarray, top: np.ndarray, dtype: Any) -> tuple[LoweredGame, np.ndarray]:
        """The trunk, and for every row of the game its leaf, or -1."""
        whole = self.whole
        rows = np.flatnonzero(~inside | top)
        place = np.full(len(inside) + 1, -1, np.int64)
        place[rows] = np.arange(len(rows))
        part = Part(
            whole, rows, place[whole.nodes.parent[rows]], np.zeros(1, np.int64), np.zeros(len(rows), int), top[rows]
        )
        assembly, numbers = Assembly(), Numbering(part)
        add_part(assembly, numbers, np.array([-1]), np.ones(1))
        nodes, ends = assembly.finish(numbers.num_actions())
        payoffs = np.where(inside[ends.row], 0.0, self._payoffs[ends.row])
        nodes = dataclasses.replace(nodes, payoffs=np.stack([payoffs, -payoffs], axis=1))
        leaf_of = np.full(len(inside), -1, np.int64)
        leaf_of[ends.row] = np.arange(len(ends.row))
        return numbers.lower(nodes, f"the trunk of {whole.name}", dtype, centre=False), leaf_of

    @property
    def held(self) -> int:
        """The tree of the whole game."""
        return self.whole.lowered.tree.nbytes

    def piece(self, number: int) -> Piece:
        """See `Source`."""
        whole, rows = self.whole, self._rows[number]
        parent = np.searchsorted(rows, whole.nodes.parent[rows])
        parent = np.where(rows[np.minimum(parent, len(rows) - 1)] == whole.nodes.parent[rows], parent, -1)
        roots = np.flatnonzero(parent < 0)
        first = np.full(int(self._root_of[rows].max()) + 1, -1, np.int64)
        first[self._root_of[rows[roots]]] = np.arange(len(roots))
        part = Part(whole, rows, parent, roots, first[self._root_of[rows]], np.zeros(len(rows), bool))
        known = [np.stack([self._classes[p][rows[roots]], whole.sequence[p][rows[roots]]]) for p in range(2)]
        labels = root_labels(part, known[0], 0), root_labels(part, known[1], 1)
        assert whole.lowered.tree.histories is not None
        chance = np.asarray(whole.lowered.tree.histories.chance_reach, np.float64)[rows[roots]]
        return Piece(part, labels, chance, self._payoffs, f"subgame {number} of {whole.name}")

    def path(self, number: int) -> tuple[Hashable, ...]:
        """See `Source`."""
        return self.whole.path_to(int(self._rows[number][0])) if self.whole.game is not None else ()

    def find(self, path: Sequence[Hashable]) -> int | None:
        """See `Source`."""
        if self.whole.game is None:
            raise OptionError("a tree knows no paths: name the subgame by its number")
        row, _ = self.whole.step_along(path)
        number = int(self._subgame_of[row])
        return None if number < 0 else number


def connected(links: Sequence[tuple[np.ndarray, np.ndarray]], count: int) -> np.ndarray:
    """Components of roots that share a class, numbered in the order of their first roots.

    Args:
      links: pairs of `[m]` root numbers and `[m]` classes, -1 for none; classes of different pairs differ.
      count: how many roots there are.
    """
    first, second, base = [], [], count
    for root, classes in links:
        linked = (root >= 0) & (classes >= 0)
        first.append(root[linked])
        second.append(base + classes[linked])
        base += int(classes.max(initial=-1)) + 1
    ends = np.concatenate(first), np.concatenate(second)
    graph = scipy.sparse.coo_matrix((np.ones(len(ends[0]), np.int8), ends), shape=(base, base))
    _, component = scipy.sparse.csgraph.connected_components(graph, directed=False)
    _, place, inverse = np.unique(component[:count], return_index=True, return_inverse=True)
    rank = np.empty(len(place), np.int64)
    rank[np.argsort(place)] = np.arange(len(place))
    result: np.ndarray = rank[inverse.reshape(-1)]
    return result


def as_depth(cut: Cut) -> int | None:
    """The depth that a cut is, or None for other cuts.

    Raises:
      OptionError: the depth is negative.
    """
    if isinstance(cut, bool) or not isinstance(cut, int):
        return None
    if cut < 0:
        raise OptionError(f"cut has to be a depth of at least 0, not {cut}")
    return cut


def as_predicate(cut: Cut) -> Callable[[Any], Any]:
    """The predicate of histories that a cut other than a depth stands for."""
    if cut == "round":
        return _second_round
    if not callable(cut):
        raise OptionError(f'cut has to be a depth, "round" or a predicate of histories, not {cut!r}')
    return cut


def _second_round(history: Any) -> bool:
    if not hasattr(history, "rounds_ended"):
        raise OptionError(
            f'cut="round" needs a game that names its rounds, and {type(history).__name__} has no rounds_ended(): '
            "give a depth, or a predicate of histories"
        )
    return bool(history.rounds_ended() > 0)


def asked(name: str, predicate: Callable[[Any], Any], history: Any, where: Callable[[], str]) -> bool:
    """What a predicate says of a history.

    Raises:
      GameError: it is no bool.
    """
    answer = predicate(history)
    if np.shape(answer) != () or np.asarray(answer).dtype != np.bool_:
        raise GameError(f"{name}: the cut has to say True or False, not {answer!r}, as it does at {where()}")
    return bool(answer)
