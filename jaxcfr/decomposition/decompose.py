"""`decompose`: a game as a trunk and subgames, and the batches in which these are solved."""

from __future__ import annotations

import collections
import dataclasses
import functools
import hashlib
from collections.abc import Hashable, Sequence
from typing import Any

import jax
import numpy as np

from jaxcfr.analytics import require_constant_sum
from jaxcfr.decomposition.rules import rules_source
from jaxcfr.decomposition.source import Cut, Source, TreeSource
from jaxcfr.decomposition.subtree import Piece, Subtree, solver_bytes, stacked
from jaxcfr.decomposition.trunk import Trunk, build_trunk
from jaxcfr.errors import OptionError, SubgameError
from jaxcfr.regret.variants import RegretVariant, dcfr_plus
from jaxcfr.subgames.whole import Whole
from jaxcfr.tree.build import float_dtype
from jaxcfr.tree.game_tree import GameTree
from jaxcfr.tree.limits import BYTES_PER_HISTORY, MAX_NODES
from jaxcfr.tree.lower import LoweredGame, lower


@dataclasses.dataclass(frozen=True)
class SubgameInfo:
    """What a subgame is like.

    Attributes:
      histories: how many it has, its roots and what lies below them.
      infosets: per player.
      roots: how many.
      root_infosets: per player, what it can tell apart at the roots.
      structure: digest of all but the numbers; subgames that share it are solved in one batch.
      numbers: digest of payoffs and chance.
    """

    histories: int
    infosets: tuple[int, int]
    roots: int
    root_infosets: tuple[int, int]
    structure: bytes
    numbers: bytes


@dataclasses.dataclass(frozen=True)
class Batch:
    """Subgames of one structure that are solved together.

    Attributes:
      members: B numbers of subgames; the last may be there more than once.
      classes: per player `[n_p, B]`, the root information sets of each, by their numbers in the whole game.
    """

    members: tuple[int, ...]
    classes: tuple[np.ndarray, np.ndarray]


class Decomposition:
    """A two-player constant-sum game as a trunk and subgames.

    Made by `decompose`. A player's *root information sets* are what it can tell apart at the roots of subgames; those
    of all subgames are numbered one after the other.

    Attributes:
      name: of the game.
      source: gives subgames one at a time.
      lowered: the trunk with its keys; roots of subgames are leaves.
      trunk: the trunk for the solver.
      subgames: what they are like, in the order of their first roots.
      offsets: per player `[S + 1]`, the first root information set of every subgame.
      memory_limit: in bytes, for subgames and what solving them takes; None for none.
    """

    def __init__(self, source: Source, memory_limit: int | None) -> None:
        """Not called by users."""
        cut = source.cut
        self.name = cut.name
        self.source = source
        self.lowered = cut.trunk
        self.memory_limit = memory_limit
        self._trees: collections.OrderedDict[tuple[bytes, bytes, int], Subtree] = collections.OrderedDict()
        tree = cut.trunk.tree
        assert tree.histories is not None
        leaves = np.flatnonzero(np.asarray(tree.histories.terminal) >= 0)
        subgames: list[SubgameInfo] = []
        parents: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        members = [np.zeros(0, np.int64)] * cut.num_subgames
        order = np.argsort(cut.subgame, kind="stable")
        for rows in np.split(order, np.cumsum(np.bincount(cut.subgame))[:-1]):
            members[int(cut.subgame[rows[0]])] = rows
        for number, rows in enumerate(members):
            piece = source.piece(number)
            subgames.append(_info(piece))
            for player in range(2):
                sequence = np.asarray(tree.histories.sequence[player])[leaves[cut.leaf[rows]]]
                label, count = piece.label[player], piece.num_roots[player]
                parent = np.full(count, -1, np.int64)
                parent[label] = sequence
                if (parent[label] != sequence).any():
                    raise SubgameError(
                        f"{self.name}: at the roots of subgame {number} player {player} forgets what it did before"
                    )
                parents[player].append(parent)
        self.subgames = tuple(subgames)
        self.offsets = tuple(
            np.concatenate([[0], np.cumsum([len(parent) for parent in per_player])]) for per_player in parents
        )
        self.trunk: Trunk = build_trunk(tree, (np.concatenate(parents[0]), np.concatenate(parents[1])))

    def __repr__(self) -> str:
        return (
            f"Decomposition({self.name!r}, trunk of {self.lowered.tree.num_histories:,} histories, "
            f"{self.num_subgames} subgames of up to {max(s.histories for s in self.subgames):,})"
        )

    @property
    def num_subgames(self) -> int:
        return len(self.subgames)

    @property
    def dtype(self) -> Any:
        """Of all trees."""
        return self.lowered.tree.dtype

    @property
    def closure(self) -> str:
        """ "observation" or "derived", what subgames are closed under."""
        return self.source.cut.closure

    @property
    def num_root_infosets(self) -> tuple[int, int]:
        """Root information sets of each player, all subgames together."""
        return int(self.offsets[0][-1]), int(self.offsets[1][-1])

    @functools.cached_property
    def num_histories(self) -> int:
        """Histories of the whole game."""
        inside = sum(subgame.histories for subgame in self.subgames)
        return self.lowered.tree.num_histories + inside - sum(subgame.roots for subgame in self.subgames)

    def path(self, number: int) -> tuple[Hashable, ...]:
        """The path of the first root of a subgame."""
        return self.source.path(self.check_number(number))

    def find(self, where: int | Sequence[Hashable]) -> int:
        """The number of a subgame, itself or by a path into it.

        Raises:
          SubgameError: the path ends in the trunk.
          OptionError: there is no subgame of this number.
        """
        if isinstance(where, int) and not isinstance(where, bool):
            return self.check_number(where)
        number = self.source.find(where)  # type: ignore[arg-type]
        if number is None:
            raise SubgameError(f"{self.name}: the path {where!r} ends in the trunk, whose strategy is known already")
        return number

    def check_number(self, number: int) -> int:
        """The number itself; raises `OptionError` where there is no such subgame."""
        if not 0 <= number < self.num_subgames:
            raise OptionError(f"{self.name} has subgames 0 to {self.num_subgames - 1}, not {number}")
        return number

    # Trees

    def subtree(self, number: int, opponent: int = -1) -> Subtree:
        """The tree of a subgame, from memory or built; the last ones used stay while the memory limit allows it."""
        info = self.subgames[number]
        key = (info.structure, info.numbers, opponent)
        if key in self._trees:
            self._trees.move_to_end(key)
            return self._trees[key]
        subtree = self.source.piece(number).subtree(self.dtype, opponent)
        self._trees[key] = subtree
        if self.memory_limit is not None:
            held = sum(_nbytes(tree) for tree in self._trees.values())
            while held > self.memory_limit // 2 and len(self._trees) > 1:
                held -= _nbytes(self._trees.popitem(last=False)[1])
        return subtree

    def batches(self, variant: RegretVariant | None = None, batch: int | None = None) -> tuple[Batch, ...]:
        """The subgames in batches of one structure, as large as the memory limit allows.

        Args:
          variant: that solves them, which decides what one takes; None means `dcfr_plus()`.
          batch: so many at most.
        """
        variant = dcfr_plus() if variant is None else variant
        groups: dict[bytes, list[int]] = {}
        for number, info in enumerate(self.subgames):
            groups.setdefault(info.structure, []).append(number)
        result = []
        for members in groups.values():
            size = len(members)
            if self.memory_limit is not None:
                one = solver_bytes(self.subtree(members[0]), variant)
                if len({self.subgames[number].numbers for number in members}) > 1:
                    one += 2 * _nbytes(self.subtree(members[0]))
                size = max(1, min(size, int(self.memory_limit // 2 // one)))
            pieces = -(-len(members) // min(size, batch or size))
            size = -(-len(members) // pieces)
            for first in range(0, len(members), size):
                part = members[first : first + size]
                # All of one size, for one compiled program: the last is filled up with a member it has already.
                result.append(self.batch_of(part + part[-1:] * (size - len(part))))
        return tuple(result)

    def batch_of(self, members: Sequence[int]) -> Batch:
        """Some subgames of one structure as a batch."""
        classes = []
        for player in range(2):
            offsets = self.offsets[player]
            count = self.subgames[members[0]].root_infosets[player]
            classes.append((np.arange(count)[:, None] + offsets[np.array(members)]).astype(np.int32))
        return Batch(tuple(members), (classes[0], classes[1]))

    def batch_tree(self, batch: Batch, opponent: int = -1) -> Subtree:
        """The one tree that stands for a batch."""
        if len({self.subgames[number].numbers for number in batch.members}) == 1:
            return self.subtree(batch.members[0], opponent)
        return stacked([self.subtree(number, opponent) for number in batch.members])

    def report(self, variant: RegretVariant | None = None) -> str:
        """How many subgames there are, how large, and what memory trunk and one batch need."""
        sizes = np.array([subgame.histories for subgame in self.subgames])
        batches = self.batches(variant)
        variant = dcfr_plus() if variant is None else variant
        largest = max(batches, key=lambda batch: self.subgames[batch.members[0]].histories * len(batch.members))
        tree = self.batch_tree(largest)
        structures = len({subgame.structure for subgame in self.subgames})
        lines = [
            f"{self.name}: {self.num_histories:,} histories, closed under {self.closure}",
            f"trunk: {self.lowered.tree.num_histories:,} histories, information sets {self.lowered.tree.num_infosets}, "
            f"root information sets {self.num_root_infosets}, {size_text(self.trunk_bytes(variant))}",
            f"subgames: {self.num_subgames} of {structures} structure{'s' * (structures > 1)}, {sizes.min():,} to "
            f"{sizes.max():,} histories",
            f"batches: {len(batches)}, the largest {len(largest.members)} subgames: tree {size_text(_nbytes(tree))}, "
            f"solving {size_text(len(largest.members) * solver_bytes(tree, variant))}",
        ]
        return "\n".join(lines)

    def trunk_bytes(self, variant: RegretVariant | None = None) -> int:
        """Bytes of the trunk's tree and of what a run keeps from iteration to iteration."""
        from jaxcfr.decomposition.trunk import begin

        state = jax.eval_shape(begin, self.trunk, dcfr_plus() if variant is None else variant)
        return _nbytes(self.trunk) + sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def size_text(count: float) -> str:
    """Bytes in words."""
    unit, scale = next((pair for pair in (("GB", 1e9), ("MB", 1e6)) if count >= pair[1]), ("kB", 1e3))
    return f"{count / scale:.3g} {unit}"


def _nbytes(part: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(part))


def _info(piece: Piece) -> SubgameInfo:
    part = piece.part
    nodes = part.whole.nodes
    numbers = [part.infosets(player) for player in range(2)]
    player = part.player
    own = [np.searchsorted(numbers[p], nodes.infoset[part.rows[player == p]]) for p in range(2)]
    structure = _digest(player, part.parent, *own, *piece.label, *(nodes.num_actions[p][numbers[p]] for p in range(2)))
    values = _digest(nodes.chance[part.rows][part.parent >= 0], piece.chance, piece.payoffs[part.rows])
    return SubgameInfo(
        len(part.rows), (len(numbers[0]), len(numbers[1])), len(part.roots), piece.num_roots, structure, values
    )


def _digest(*arrays: np.ndarray) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype.str}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


def decompose(
    game: Any,
    cut: Cut,
    *,
    closure: str | None = None,
    siblings: bool = False,
    memory_limit: int | None = None,
    from_rules: bool | None = None,
    dtype: Any = None,
) -> Decomposition:
    """Cuts a game into a trunk and subgames closed under augmented information sets.

    Args:
      game: the root of a game, or a game or tree that is lowered already, with its histories.
      cut: where subgames begin: a depth, a predicate of histories, or "round" for the end of the first round in a game
        that names its rounds. What players cannot tell from a history below the cut belongs to its subgame too.
      closure: "observation" (what `infoset_key` tells players who do not act), "derived" (all is one to a player since
        its last own action), or None for the first where the game has it.
        from rules it has to be the first.
      siblings: take subgames that begin below the same histories for one.
      memory_limit: bytes for the trees of subgames and for solving them; None for as much as it takes.
      from_rules: lower trunk and subgames from the rules when they are needed, and never the whole game. The cut then
        has to be one that both players see; for an `ArrayGame` a predicate is a traceable function of a state. None
        does that where the game has more histories than `lower` takes, or than fit the memory limit.
      dtype: of the trees, as in `lower`.

    Raises:
      SubgameError: nothing lies below the cut, or what players know makes no subgames.
      NotTwoPlayerConstantSumError: the game is for another number of players, or general-sum.
      OptionError: an argument makes no sense.
    """
    if memory_limit is not None and (
        isinstance(memory_limit, bool) or not isinstance(memory_limit, int | float | np.integer) or not memory_limit > 0
    ):
        raise OptionError(f"memory_limit has to be a positive number of bytes, not {memory_limit!r}")
    dtype = float_dtype(dtype)
    if _from_rules(game, from_rules, memory_limit):
        if closure not in (None, "observation"):
            raise OptionError('from rules a game is closed under what players observe: closure="observation"')
        return Decomposition(rules_source(game, cut, dtype, siblings), memory_limit)
    rules = None
    if isinstance(game, GameTree):
        counts = [np.asarray(treeplex.num_actions).tolist() for treeplex in game.treeplexes]
        game = LoweredGame(
            game,
            "a tree",
            tuple(tuple(range(count)) for count in game.num_infosets),
            tuple(tuple(tuple(range(count)) for count in own) for own in counts),
            tuple(tuple(tuple(map(str, range(count))) for count in own) for own in counts),
        )
    if isinstance(game, LoweredGame):
        lowered = game
        closure = "derived" if closure is None else closure
    else:
        rules, lowered = game, lower(game, dtype=dtype)
    require_constant_sum(lowered.tree, "decomposing a game", "solve the whole game instead")
    return Decomposition(TreeSource(Whole(rules, lowered), cut, closure, siblings), memory_limit)


def _from_rules(game: Any, asked: bool | None, memory_limit: int | None) -> bool:
    """Whether a game is lowered piece by piece."""
    if isinstance(game, (GameTree, LoweredGame)):
        if asked:
            raise OptionError("a game that is lowered already is not lowered from its rules: give the game itself")
        return False
    if asked is not None:
        return asked
    rules = game
    if not hasattr(game, "estimated_histories") and hasattr(game, "array_game"):
        rules = game.array_game()
    estimate = rules.estimated_histories() if hasattr(rules, "estimated_histories") else None
    limit = MAX_NODES if memory_limit is None else min(MAX_NODES, memory_limit / BYTES_PER_HISTORY)
    return estimate is not None and estimate > limit
