"""Lowering array games: whole levels at once instead of one history after the other.

A level is expanded in chunks of a fixed number of children, padded, so that a game needs one compiled program (two if
its tree is deep and narrow). The program steps, and looks at the children: who acts, the legal actions, the payoffs
and the information set of whoever acts. Numbers for information sets and the columns of the node table are made in
numpy. The tree is the one that walking the plain rules gives: same order, same numbers.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import jax
import jax.numpy as jnp
import numpy as np

from jaxcfr.errors import ChanceNotEnumerableError, GameError
from jaxcfr.games.array_game import Describe, x64_enabled
from jaxcfr.games.base import LOWERING, format_path
from jaxcfr.tree.limits import PROBABILITY_TOLERANCE, too_large
from jaxcfr.tree.nodes import CHANCE, TERMINAL, NodeTable

CHUNK_BYTES = 1 << 22
"""About how much the compiled program returns at once; chunks of this size stay in cache."""

NARROW = 256
"""Children in a chunk where a tree is narrow."""

NARROW_LEVELS = 32
"""How many narrow levels are padded to whole chunks before a program for narrow levels is compiled."""

AHEAD = 3
"""Chunks under way at once, so that numpy and the compiled program work side by side."""

T = TypeVar("T")


class Lazy(Sequence[T]):
    """A sequence like a tuple whose items are made when they are asked for (a key for each of a million sets, say)."""

    __slots__ = ("_item", "_length", "_player")

    def __init__(self, item: Callable[[int, int], T], player: int, length: int) -> None:
        """Item i is `item(player, i)`."""
        self._item = item
        self._player = player
        self._length = length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        chosen = range(self._length)[index]
        if isinstance(chosen, range):
            return tuple(self._item(self._player, i) for i in chosen)
        return self._item(self._player, chosen)

    def __iter__(self) -> Iterator[T]:
        return (self._item(self._player, i) for i in range(self._length))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (tuple, Lazy)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class InfosetTable:
    """What information sets are: the rows that `infoset` returned, and their legal actions.

    Attributes:
      rows: per player `[n_p, K]` integers.
      legal: per player `[n_p, ceil(A / 8)]` uint8, the mask of legal actions in packed bits.
      num_actions: A.
    """

    def __init__(self, game: Any, rows: list[np.ndarray], legal: list[np.ndarray]) -> None:
        self.rows = rows
        self.legal = legal
        self.num_actions = int(game.num_actions)
        self._describe = Describe(game)
        # Few different menus are shared by many information sets.
        self._actions: dict[bytes, tuple[Hashable, ...]] = {}
        self._labels: dict[tuple[str, ...], tuple[str, ...]] = {}

    def key(self, player: int, infoset: int) -> Hashable:
        """The key of an information set."""
        return self._describe.infoset_key(self.rows[player][infoset], player)

    def _indices(self, player: int, infoset: int) -> list[int]:
        indices: list[int] = np.flatnonzero(np.unpackbits(self.legal[player][infoset], bitorder="little")).tolist()
        return indices

    def actions(self, player: int, infoset: int) -> tuple[Hashable, ...]:
        """The legal actions in order."""
        packed = self.legal[player][infoset].tobytes()
        actions = self._actions.get(packed)
        if actions is None:
            actions = self._actions[packed] = tuple(map(self._describe.action, self._indices(player, infoset)))
        return actions

    def labels(self, player: int, infoset: int) -> tuple[str, ...]:
        """Their labels."""
        row = self.rows[player][infoset]
        label = self._describe.action_label
        labels = tuple(label(index, player, row) for index in self._indices(player, infoset))
        return self._labels.setdefault(labels, labels)


def lower_levels(
    game: Any, max_nodes: int, roots: list[np.ndarray] | None = None, ended: list[np.ndarray] | None = None
) -> tuple[NodeTable, InfosetTable]:
    """Expands an array game level by level.

    Args:
      game: a `jaxcfr.ArrayGame`.
      max_nodes: refuse games with more histories than this.
      roots: leaves `[R, ...]` of the states of histories: what lies below them instead of the whole game. They become
        the children of a root of chance, with edges of probability 1 each.
      ended: a list that gets the leaves `[Z, ...]` of the states of the terminal histories, in the order of the rows.

    Raises:
      GameTooLargeError: more than `max_nodes` histories.
      GameError: a rule is broken.
    """
    with x64_enabled(), jax.default_device(_cpu()):
        shapes = check_shapes(game)
        for salt in range(_SALTS):
            try:
                levels = _Levels(game, shapes, max_nodes, salt, ended is not None)
                found = levels.run(roots)
                if ended is not None:
                    ended[:] = [np.concatenate(leaves) for leaves in zip(*levels.ended, strict=True)]
                return found
            except _CollisionError:
                continue
    raise GameError(f"{Describe(game).name}: the information sets cannot be told apart by 64-bit hashes")


_SALTS = 4


class _CollisionError(Exception):
    """Two different information sets have the same hash."""


def _cpu() -> Any:
    """The host's device: chance probabilities and payoffs are to be the same bits on every machine."""
    try:
        return jax.devices("cpu")[0]
    except RuntimeError:
        return None


class _Shapes(NamedTuple):
    """Static facts of an array game."""

    num_players: int
    num_actions: int
    row_length: int
    row_dtype: Any
    words: int  # of 64 bits, that a row of `infoset` takes
    state_bytes: int


def check_shapes(game: Any, *, sampled: bool = False) -> _Shapes:
    """Traces every function once; a wrong shape or dtype is a `GameError` that names it.

    Args:
      game: an array game.
      sampled: whether chance may be such that it can only be sampled.
    """
    name = Describe(game).name
    for member in ("num_players", "num_actions"):
        value = getattr(game, member)
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise GameError(f"{name}: {member} has to be a positive integer, not {value!r}")
    players, actions = int(game.num_players), int(game.num_actions)

    def shape_of(what: str, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return jax.eval_shape(function, *args)
        except Exception as error:
            error.add_note(f"raised by {what} of the game {name}, while it was traced")
            raise

    def check(what: str, found: Any, shape: tuple[int, ...], kind: Any, words: str) -> None:
        if getattr(found, "shape", None) != shape or not jnp.issubdtype(found.dtype, kind):
            raise GameError(f"{name}: {what} has to return {words}, not {_short(found)}")

    state = shape_of("init", game.init)
    action = np.int32(0)
    after = shape_of("step", game.step, state, action)
    before, now = (str(jax.tree.map(_short, part)) for part in (state, after))
    if before != now:
        raise GameError(
            f"{name}: step has to return a state of the same shapes and dtypes as init's, {before}, not {now}"
        )
    check("player", shape_of("player", game.player, state), (), np.integer, "an integer scalar")
    legal = shape_of("legal_actions", game.legal_actions, state)
    check("legal_actions", legal, (actions,), np.bool_, f"bool [{actions}]")
    chance = shape_of("chance_probabilities", game.chance_probabilities, state)
    if chance is None and not sampled:
        raise ChanceNotEnumerableError(
            f"{name}: chance can only be sampled (chance_probabilities(state) is None), but {LOWERING} needs "
            "every outcome with its probability"
        )
    if chance is None and not hasattr(game, "sample_chance"):
        raise GameError(f"{name}: chance_probabilities(state) is None, so the game has to define sample_chance")
    if chance is None:
        outcome = shape_of("sample_chance", game.sample_chance, state, jax.eval_shape(lambda: jax.random.key(0)))
        check("sample_chance", outcome, (), np.integer, "an integer scalar")
    else:
        check("chance_probabilities", chance, (actions,), np.floating, f"floats [{actions}]")
    returns = shape_of("returns", game.returns, state)
    check("returns", returns, (players,), np.number, f"floats [{players}]")
    rows = [shape_of("infoset", functools.partial(game.infoset, player=p), state) for p in range(players)]
    for row in rows:
        if getattr(row, "ndim", None) != 1 or not jnp.issubdtype(row.dtype, np.integer):
            raise GameError(f"{name}: infoset has to return integers [K], not {_short(row)}")
        check("infoset", row, rows[0].shape, rows[0].dtype, f"the same for all players, {_short(rows[0])}")
    row_bytes = rows[0].shape[0] * rows[0].dtype.itemsize
    return _Shapes(
        num_players=players,
        num_actions=actions,
        row_length=rows[0].shape[0],
        row_dtype=np.dtype(rows[0].dtype),
        words=max(1, -(-row_bytes // 8)),
        state_bytes=sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state)),
    )


def _short(found: Any) -> str:
    return f"{found.dtype}{list(found.shape)}" if hasattr(found, "dtype") else repr(found)


class _Program:
    """The compiled functions of one array game."""

    def __init__(self, game: Any) -> None:
        self.game = game
        self.init = jax.jit(game.init)
        self.expand = jax.jit(self._expand)
        self.chance = jax.jit(jax.vmap(game.chance_probabilities))

    def _expand(self, states: Any, action: Any, root: Any, salt: Any) -> tuple[Any, ...]:
        """Children of C states, `action` `[C]` each; the states themselves where `root` (a scalar) is true.

        Returns:
          The children; who acts, `[C]` int8; legal actions in packed bits, `[C, ceil(A / 8)]`, none where the play has
          ended; a 64-bit key of the information set of who acts, `[C]`; the row itself as 64-bit words, `[C, W]`;
          legal actions, `[C, A]`; and payoffs, `[C, P]`.
        """
        game = self.game

        def one(state: Any, action: Any) -> tuple[Any, ...]:
            stepped = game.step(state, action)
            child = jax.tree.map(lambda old, new: jnp.where(root, old, new), state, stepped)
            player = game.player(child).astype(jnp.int32)
            legal = game.legal_actions(child) & (player != TERMINAL)
            row = game.infoset(child, 0)
            for other in range(1, int(game.num_players)):
                row = jnp.where(player == other, game.infoset(child, other), row)
            words = _words(row)
            # Out of range for int8 is out of range for players too, but must not wrap around.
            return child, jnp.clip(player, -128, 127).astype(jnp.int8), legal, _pack(legal), game.returns(child), words

        child, player, legal, packed, payoffs, words = jax.vmap(one)(states, action)
        return child, player, packed, _mix(words, salt), words, legal, payoffs.astype(jnp.float64)


def _pack(mask: Any) -> Any:
    """Bits `[A]` in bytes `[ceil(A / 8)]`, little end first."""
    size = -(-mask.shape[0] // 8)
    padded = jnp.pad(mask, (0, 8 * size - mask.shape[0])).reshape(size, 8)
    return (padded.astype(jnp.uint8) << np.arange(8, dtype=np.uint8)).sum(1, dtype=jnp.uint8)


def _words(row: Any) -> Any:
    """Integers `[K]` as 64-bit words `[W]`, padded with zeros, in the byte order that `_rows` undoes."""
    size = row.dtype.itemsize
    per_word = 8 // size
    count = max(1, -(-row.shape[0] // per_word))
    unsigned = row.astype(f"uint{8 * size}")  # keeps the bits
    padded = jnp.pad(unsigned, (0, count * per_word - row.shape[0])).reshape(count, per_word).astype(jnp.uint64)
    shifts = np.arange(per_word, dtype=np.uint64) * np.uint64(8 * size)
    return (padded << shifts).sum(1, dtype=jnp.uint64)


def _rows(words: np.ndarray, shapes: _Shapes) -> np.ndarray:
    """The inverse of `_words`, `[n, W]` to `[n, K]`."""
    little = np.ascontiguousarray(words.astype("<u8"))
    rows = little.view(shapes.row_dtype.newbyteorder("<")).reshape(
        len(words), 8 * shapes.words // shapes.row_dtype.itemsize
    )
    rows = rows[:, : shapes.row_length]
    return rows.astype(shapes.row_dtype)


def _mix(words: Any, salt: Any) -> Any:
    """A 64-bit key of words `[C, W]`: the word itself if there is one, else a hash (multiply and shift)."""
    if words.shape[1] == 1:
        return words[:, 0]
    key = jnp.full(words.shape[0], salt, jnp.uint64)
    for index in range(words.shape[1]):
        key = (key ^ words[:, index]) * np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        key = key ^ (key >> np.uint64(32))
    return key


@functools.lru_cache(maxsize=32)
def _program_of(game: Any) -> _Program:
    return _Program(game)


def _program(game: Any) -> _Program:
    try:
        return _program_of(game)
    except TypeError:  # the game cannot be hashed
        return _Program(game)


class _Infosets:
    """Numbers the information sets of one player by first encounter."""

    def __init__(self, words: int, packed: int) -> None:
        self.count = 0
        self._words = _Growing(words, np.uint64)
        self._legal = _Growing(packed, np.uint8)
        # Known keys in a few sorted runs of falling size, so that adding keys costs a logarithm, not a rebuild.
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []

    @property
    def words(self) -> np.ndarray:
        return self._words.rows

    @property
    def legal(self) -> np.ndarray:
        return self._legal.rows

    def number(self, key: np.ndarray, words: np.ndarray, legal: np.ndarray) -> tuple[np.ndarray, int]:
        """Numbers of histories by their information set.

        Args:
          key: `[m]` of the information set.
          words: `[m, W]`, the row itself; compared, since keys are hashes where W > 1.
          legal: `[m, B]`, packed legal actions.

        Returns:
          `[m]` int32, and the position of the first history whose legal actions are not those of its information
          set, or -1.
        """
        first = _first_of_equals(key)
        rows = np.flatnonzero(first == np.arange(len(key), dtype=np.int32))
        groups = key[rows]
        number = self._find(groups)
        fresh = np.flatnonzero(number < 0)
        if len(fresh):
            number[fresh] = self.count + np.arange(len(fresh), dtype=np.int32)
            self.count += len(fresh)
            self._words.append(words[rows[fresh]])
            self._legal.append(legal[rows[fresh]])
            self._add(groups[fresh], number[fresh])
        of_row = np.empty(len(key), np.int32)
        of_row[rows] = number
        numbers = of_row[first]
        if words.shape[1] > 1 and not _same(self.words, numbers, words):
            raise _CollisionError
        if _same(self.legal, numbers, legal):
            return numbers, -1
        return numbers, int(np.flatnonzero((self.legal[numbers] != legal).any(1))[0])

    def _find(self, keys: np.ndarray) -> np.ndarray:
        """`[g]` int32, the numbers of keys, -1 where a key is new."""
        number = np.full(len(keys), -1, np.int32)
        for known, numbers in self._runs:
            place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            number = np.where(known[place] == keys, numbers[place], number)
        return number

    def _add(self, keys: np.ndarray, number: np.ndarray) -> None:
        """Remembers new keys and their numbers."""
        order = np.argsort(keys)
        self._runs.append((keys[order], number[order]))
        while len(self._runs) > 1 and len(self._runs[-2][0]) <= 2 * len(self._runs[-1][0]):
            known, numbers = (np.concatenate(parts) for parts in zip(*self._runs[-2:], strict=True))
            order = np.argsort(known)
            self._runs[-2:] = [(known[order], numbers[order])]


def _first_of_equals(key: np.ndarray) -> np.ndarray:
    """`[m]` int32, for each of `[m]` 64-bit keys the position of the first that equals it.

    A hash table instead of a sort, which would be most of the work: every key writes its position into its slot, from
    the last to the first, so the first stays. Keys that share the slot of an earlier one try again in the next round,
    with another hash; all positions of one key fare alike, so the first of them is the one that is found.
    """
    count = len(key)
    bits = max(4, (2 * count - 1).bit_length())
    table = np.empty(1 << bits, np.int32)  # only slots that were written are read
    first = np.empty(count, np.int32)
    left, keys, multiplier = np.arange(count, dtype=np.int32), key, 0x9E3779B97F4A7C15
    while len(left):
        slot = ((keys * np.uint64(multiplier)) >> np.uint64(64 - bits)).view(np.int64)
        table[slot[::-1]] = left[::-1]
        found = table[slot]
        same = key[found] == keys
        if same.all():
            first[left] = found
            break
        first[left[same]] = found[same]
        left, keys = left[~same], keys[~same]
        multiplier = (multiplier * 0xD1342543DE82EF95 + 2) & 0xFFFFFFFFFFFFFFFF | 1
    return first


def _same(known: np.ndarray, numbers: np.ndarray, rows: np.ndarray) -> bool:
    """Whether `known[numbers]` are `rows`, column by column (rows are short, and few rows differ)."""
    return all(bool((known[:, i].take(numbers) == rows[:, i]).all()) for i in range(rows.shape[1]))


def _any_bit(packed: np.ndarray) -> np.ndarray:
    """Whether some bit of a row is set; column by column, since rows are short."""
    result = packed[:, 0] != 0
    for column in range(1, packed.shape[1]):
        result |= packed[:, column] != 0
    return result


class _Growing:
    """Rows of an array that grows."""

    def __init__(self, width: int, dtype: Any) -> None:
        self._buffer = np.empty((1024, width), dtype)
        self._count = 0

    @property
    def rows(self) -> np.ndarray:
        return self._buffer[: self._count]

    def append(self, rows: np.ndarray) -> None:
        needed = self._count + len(rows)
        if needed > len(self._buffer):
            buffer = np.empty((max(needed, 2 * len(self._buffer)), self._buffer.shape[1]), self._buffer.dtype)
            buffer[: self._count] = self.rows
            self._buffer = buffer
        self._buffer[self._count : needed] = rows
        self._count = needed


class _Level(NamedTuple):
    """The m histories of one depth, see `_Program._expand`."""

    states: list[np.ndarray]
    player: np.ndarray
    packed: np.ndarray
    key: np.ndarray
    words: np.ndarray
    payoffs: np.ndarray  # of those where the play has ended
    above: np.ndarray  # for each of their children, which of the m it follows
    action: np.ndarray  # and which action leads there


class _Levels:
    """The expansion; collects the columns of a node table, level by level."""

    def __init__(self, game: Any, shapes: _Shapes, max_nodes: int, salt: int, keep: bool = False) -> None:
        self.game = game
        self.ended: list[list[np.ndarray]] = []
        self.keep = keep
        self.part = False
        self.shapes = shapes
        self.max_nodes = max_nodes
        self.salt = np.uint64(salt)
        self.describe = Describe(game)
        self.program = _program(game)
        self.infosets = [_Infosets(shapes.words, -(-shapes.num_actions // 8)) for _ in range(shapes.num_players)]
        self.player: list[np.ndarray] = []
        self.infoset: list[np.ndarray] = []
        self.parent: list[np.ndarray] = [np.array([-1], np.int32)]
        self.chance: list[np.ndarray] = [np.ones(1)]
        self.payoffs: list[np.ndarray] = []
        per_child = shapes.state_bytes + 2 * shapes.num_actions + 8 * (shapes.num_players + shapes.words + 1)
        self.chunk = 1 << max(8, min(15, (CHUNK_BYTES // per_child).bit_length() - 1))
        self.sizes = [self.chunk]
        self.narrow_levels = 0
        self.structure = jax.tree.structure(jax.eval_shape(game.init))

    def run(self, roots: list[np.ndarray] | None = None) -> tuple[NodeTable, InfosetTable]:
        start, count = 0, 1
        if roots is None:
            roots = [np.asarray(leaf)[None] for leaf in jax.tree.leaves(self.program.init())]
        else:
            self.part = True
            start, count = 1, len(roots[0])
            self.player.append(np.array([CHANCE], np.int8))
            self.infoset.append(np.array([-1], np.int32))
            self.parent.append(np.zeros(count, np.int32))
            self.chance.append(np.ones(count))
            # Parts of a game are small and many: levels are padded to one of several sizes.
            self.sizes = sorted({min(NARROW << shift, self.chunk) for shift in (0, 3, 6)} | {self.chunk})
        level = self._expand(roots, np.arange(count, dtype=np.int32), np.zeros(count, np.int32), root=True)
        while count:
            self._visit(level, start)
            if self.keep:
                over = level.player == TERMINAL
                self.ended.append([leaf[over] for leaf in level.states])
            self._check_size(start, count, level.above)
            self.parent.append(level.above + np.int32(start))
            self.chance.append(self._edges(level))
            start, count = start + count, len(level.above)
            if count:
                level = self._expand(level.states, level.above, level.action)
        shapes = self.shapes
        table = NodeTable(
            num_players=shapes.num_players,
            player=np.concatenate(self.player),
            infoset=np.concatenate(self.infoset),
            parent=np.concatenate(self.parent),
            chance=np.concatenate(self.chance),
            payoffs=np.concatenate(self.payoffs).reshape(-1, shapes.num_players),
            num_actions=tuple(
                np.unpackbits(sets.legal, axis=1).sum(1, dtype=np.int32).reshape(-1) for sets in self.infosets
            ),
        )
        rows = [_rows(sets.words, shapes) for sets in self.infosets]
        return table, InfosetTable(self.game, rows, [sets.legal for sets in self.infosets])

    def _expand(self, states: list[np.ndarray], above: np.ndarray, action: np.ndarray, root: bool = False) -> _Level:
        """The children `action` `[m]` of the states number `above` `[m]`."""
        shapes, count = self.shapes, len(above)
        size = next((size for size in self.sizes if count <= size), self.chunk)
        if count <= NARROW < size:
            self.narrow_levels += 1
            if self.narrow_levels > NARROW_LEVELS:
                size = NARROW
        children = [np.empty((count, *leaf.shape[1:]), leaf.dtype) for leaf in states]
        player = np.empty(count, np.int8)
        packed = np.empty((count, -(-shapes.num_actions // 8)), np.uint8)
        key = np.empty(count, np.uint64)
        words = key[:, None] if shapes.words == 1 else np.empty((count, shapes.words), np.uint64)
        ended: list[np.ndarray] = []
        grand: list[tuple[np.ndarray, np.ndarray]] = []
        under_way: collections.deque[tuple[int, Any]] = collections.deque()

        def collect() -> None:
            begin, (found, *facts, legal, payoffs) = under_way.popleft()
            stop = min(begin + size, count)
            # With one word the key is the row, and `words` a view of it.
            for target, source in zip(
                (*children, player, packed, key, words), (*jax.tree.leaves(found), *facts), strict=True
            ):
                target[begin:stop] = np.asarray(source)[: stop - begin]
            ended.append(np.asarray(payoffs)[: stop - begin][player[begin:stop] == TERMINAL])
            # A chunk has fewer than 2^31 entries, and divides faster in 32 bits.
            index = np.flatnonzero(np.asarray(legal)[: stop - begin]).astype(np.int32)
            row = index // np.int32(shapes.num_actions)
            grand.append((row + np.int32(begin), index - row * np.int32(shapes.num_actions)))

        for begin in range(0, count, size):
            parents, actions = above[begin : begin + size], action[begin : begin + size]
            if len(parents) < size:
                # Any child will do to fill up a chunk; this one is known to exist.
                parents = np.concatenate([parents, np.full(size - len(parents), parents[0])])
                actions = np.concatenate([actions, np.full(size - len(actions), actions[0])])
            inputs = jax.tree.unflatten(self.structure, [leaf.take(parents, axis=0) for leaf in states])
            under_way.append((begin, self.program.expand(inputs, actions, np.bool_(root), self.salt)))
            if len(under_way) > AHEAD:
                collect()
        while under_way:
            collect()
        rows, actions = (np.concatenate(parts) for parts in zip(*grand, strict=True))
        return _Level(children, player, packed, key, words, np.concatenate(ended), rows, actions)

    def _visit(self, level: _Level, start: int) -> None:
        """Adds the columns of a level, whose first row is `start`."""
        player = level.player
        infoset = np.full(len(player), -1, np.int32)
        self.player.append(player)
        self.infoset.append(infoset)
        counts = np.bincount(player.astype(np.int64) + 128, minlength=256)
        terminal, chance, acting = counts[126], counts[127], counts[128 : 128 + self.shapes.num_players]
        if terminal + chance + acting.sum() != len(player):
            bad = int(np.flatnonzero((player < TERMINAL) | (player >= self.shapes.num_players))[0])
            raise GameError(
                f"{self.describe.name}: player(state) is {player[bad]} at {self._path(start + bad)}, but there are "
                f"{self.shapes.num_players} players, counted from 0, and {CHANCE} for chance and {TERMINAL} for the end"
            )
        if terminal:
            payoffs = level.payoffs
            if not np.isfinite(payoffs).all():
                bad = int(np.flatnonzero(~np.isfinite(payoffs).all(1))[0])
                row = start + int(np.flatnonzero(player == TERMINAL)[bad])
                payoff = payoffs[bad][~np.isfinite(payoffs[bad])][0]
                raise GameError(f"{self.describe.name}: payoff {payoff} at {self._path(row)} is not a finite number")
            self.payoffs.append(payoffs)
        if terminal + chance < len(player):
            stuck = np.flatnonzero((player >= 0) & ~_any_bit(level.packed))
            if len(stuck):
                row = int(stuck[0])
                raise GameError(
                    f"{self.describe.name}: player {player[row]} has no legal action at information set "
                    f"{self._key(level, row)!r}, {self._path(start + row)}"
                )
        for who in np.flatnonzero(acting).tolist():
            if acting[who] == len(player):
                infoset[:], differs = self.infosets[who].number(level.key, level.words, level.packed)
                rows = np.arange(1) if differs < 0 else np.arange(len(player))
            else:
                rows = np.flatnonzero(player == who)
                infoset[rows], differs = self.infosets[who].number(
                    level.key.take(rows), level.words.take(rows, axis=0), level.packed.take(rows, axis=0)
                )
            if differs >= 0:
                raise self._different_actions(level, start, int(rows[differs]), int(infoset[rows[differs]]))

    def _different_actions(self, level: _Level, start: int, row: int, infoset: int) -> GameError:
        player = int(level.player[row])
        legal = self.infosets[player].legal[infoset]
        known, here = (
            [self.describe.action(int(i)) for i in np.flatnonzero(mask)]
            for mask in (np.unpackbits(legal, bitorder="little"), np.unpackbits(level.packed[row], bitorder="little"))
        )
        return GameError(
            f"{self.describe.name}: the legal actions of player {player} at information set "
            f"{self._key(level, row)!r} are {here} at {self._path(start + row)}, but {known} in another of its "
            "histories; they have to be the same, in the same order"
        )

    def _key(self, level: _Level, row: int) -> Hashable:
        return self.describe.infoset_key(_rows(level.words[row : row + 1], self.shapes)[0], int(level.player[row]))

    def _edges(self, level: _Level) -> np.ndarray:
        """`[m]` float64, the probability of the edge into each child."""
        edges = np.ones(len(level.above))
        chance = np.flatnonzero(level.player == CHANCE)
        if not len(chance):
            return edges
        found: list[np.ndarray] = []
        start = sum(map(len, self.player)) - len(level.player)
        size = NARROW if len(chance) <= NARROW else self.chunk
        for begin in range(0, len(chance), size):
            rows = chance[begin : begin + size]
            padded = np.concatenate([rows, np.full(size - len(rows), rows[0])])
            inputs = jax.tree.unflatten(self.structure, [leaf.take(padded, axis=0) for leaf in level.states])
            probabilities = np.asarray(self.program.chance(inputs))[: len(rows)]
            bits = np.unpackbits(level.packed[rows], axis=1, count=self.shapes.num_actions, bitorder="little")
            possible = bits.astype(bool)
            found.append(self._checked(probabilities, possible, start + rows)[possible])
        edges[(level.player == CHANCE)[level.above]] = np.concatenate(found)
        return edges

    def _checked(self, found: np.ndarray, possible: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Probabilities `[c, A]` of chance histories, which have to sum to 1 over the possible outcomes."""
        name = self.describe.name
        given = np.where(possible, found, 0).astype(np.float64)
        total = given.sum(1)
        empty = np.flatnonzero(~possible.any(1))
        if len(empty):
            raise GameError(f"{name}: chance has no outcome at {self._path(int(rows[empty[0]]))}")
        negative = np.flatnonzero(~(given >= 0).all(1))
        if len(negative):
            raise GameError(f"{name}: a chance probability is negative or NaN at {self._path(int(rows[negative[0]]))}")
        # float32 probabilities sum to 1 only as well as they can, and are put right.
        coarse = found.dtype != np.float64
        tolerance = 8 * self.shapes.num_actions * float(np.finfo(found.dtype).eps) if coarse else PROBABILITY_TOLERANCE
        wrong = np.flatnonzero(~(np.abs(total - 1) <= tolerance))
        if len(wrong):
            raise GameError(
                f"{name}: the chance probabilities at {self._path(int(rows[wrong[0]]))} sum to {total[wrong[0]]}, not "
                "to 1"
            )
        return given / total[:, None] if coarse else given

    def _check_size(self, start: int, count: int, above: np.ndarray) -> None:
        """The error comes as it would one history after the other: at the one whose children are too many."""
        room = self.max_nodes - start - count
        if len(above) <= room:
            return
        # Still to be expanded: the children so far, and the histories of this level that come later.
        at = int(above[room])
        below = int(np.searchsorted(above, above[room], side="right"))
        raise too_large(self.describe.name, self.max_nodes, start + count + below, below + count - 1 - at)

    def _path(self, row: int) -> str:
        """The actions that lead to a row, found by replaying the game from the root."""
        parent = np.concatenate(self.parent)
        edges = []
        while row > 0:
            edges.append(row - int(np.searchsorted(parent, parent[row], side="left")))
            row = int(parent[row])
        state, path = self.program.init(), []
        if self.part:
            return f"a history below root {edges[-1]} of a part"
        for edge in reversed(edges):
            player = int(self.game.player(state))
            index = int(np.flatnonzero(np.asarray(self.game.legal_actions(state)))[edge])
            known = None if player == CHANCE else np.asarray(self.game.infoset(state, player))
            path.append(self.describe.action_label(index, player, known))
            state = self.game.step(state, jnp.int32(index))
        return format_path(path)
