"""What walks ask of a game: the same questions to a lowered tree and to the rules on arrays.

In a tree the networks are asked once per iteration, about all information sets, and walks read the answers from a
table. On arrays they are asked about the histories of each step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.deep.learning import Item
from jaxcfr.deep.tokens import token_features
from jaxcfr.errors import GameError, OptionError
from jaxcfr.games.array_game import (
    CHANCE,
    chance_is_enumerable,
    draw_at,
    features,
    possible_outcomes,
    sample_chance,
)
from jaxcfr.games.base import game_name
from jaxcfr.traversal.randomness import unit
from jaxcfr.traversal.walks import draw, look, take
from jaxcfr.tree.game_tree import GameTree, Strategy
from jaxcfr.tree.lower import LoweredGame
from jaxcfr.tree.lower_arrays import check_shapes

MAX_ACTIONS = 256
"""Actions that are told apart by name in a tree; where there are more, they are numbered at each information set."""

MAX_PATH_FEATURES = 4096

Ask = Callable[[int, Any, Array], Array]
"""ask(player, features, legal) -> probabilities `[B, A]`."""


class Seen(NamedTuple):
    """What n histories look like.

    Attributes:
      who: `[n]` int32, the player, or `CHANCE` or `TERMINAL`.
      legal: `[n, A]` bool, the legal actions of whoever acts; nothing where nobody does.
      row: `[n]` int32, the information set among those of all players; in trees only.
    """

    who: Array
    legal: Array
    row: Array | None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class TreeRules:
    """A lowered game.

    A history is its number. R is the number of all information sets, of player 0 first.

    Attributes:
      tree: with histories.
      row: `[N]` int32, the information set among all R; 0 where nobody decides.
      legal: `[R, A]` bool.
      position: `[R, A]` int32, the number of each among the legal actions, 0 where it is not legal.
      flat: `[R, A]` int32, where it lies in its player's flat vector; L_p where it is not legal.
      features: per player `[n_p, F_p]` float32, what networks take.
      history_features: `[N, H]` float32, for networks that see all; None where nobody asked for them.
    """

    tree: GameTree
    row: Array
    legal: Array
    position: Array
    flat: Array
    features: tuple[Array, ...]
    history_features: Array | None

    complete = True
    """Whether `max_depth` is as far as plays go."""

    @property
    def num_players(self) -> int:
        return self.tree.num_players

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.legal.shape[1])

    @property
    def max_depth(self) -> int:
        """Moves of the longest play."""
        return self.tree.depth

    def offset(self, player: int) -> int:
        """The first of a player's rows."""
        return sum(self.tree.num_infosets[:player])

    def root(self) -> Array:
        return jnp.zeros((), jnp.int32)

    def look(self, states: Array) -> Seen:
        histories = self._histories()
        who = take(histories.player, states).astype(jnp.int32)
        row = take(self.row, states)
        return Seen(who, take(self.legal, row) & (who >= 0)[:, None], row)

    def table(self, ask: Ask) -> Array:
        """What players do at all information sets, `[R, A]`."""
        parts = []
        for player, seen in enumerate(self.features):
            parts.append(ask(player, seen, self.player_legal(player)).astype(jnp.float32))
        table = jnp.concatenate(parts)
        return table if table.shape[0] else jnp.ones(self.legal.shape, jnp.float32)  # where nobody decides

    def prepare(self, ask: Ask) -> Array:
        """What `probabilities` needs, once per iteration."""
        return self.table(ask)

    def probabilities(self, table: Array, ask: Ask, states: Array, seen: Seen) -> Array:
        """What whoever acts does, `[n, A]`."""
        assert seen.row is not None
        return take(table, seen.row)

    def after_chance(self, states: Array, bits: Array) -> Array:
        """The histories after chance has moved, by random uint32 `[n]`."""
        moves = self._histories().moves
        rows = look(moves, states)
        offset = sum(treeplex.size for treeplex in self.tree.treeplexes)
        chance = jnp.concatenate([moves.chance, jnp.ones(1, moves.chance.dtype)])
        base = jnp.clip(rows.base - offset, 0, chance.shape[0] - 1)
        # Elsewhere than at chance the rows mean something else: nothing is drawn there.
        children = jnp.where(take(self._histories().player, states) == CHANCE, rows.children, 1)
        index = draw(chance, base, 1, children, unit(bits).astype(chance.dtype), moves.most_children)
        return take(self._histories().first_child, states) + index

    def after(self, states: Array, action: Array, seen: Seen) -> Array:
        """The histories after a player's action."""
        assert seen.row is not None
        return take(self._histories().first_child, states) + self.position[seen.row, action]

    def payoff(self, states: Array, seen: Seen, player: int) -> Array:
        """What a player gets where the play has ended, float32 `[n]`."""
        leaf = jnp.maximum(take(self._histories().terminal, states), 0)
        return take(self.tree.payoffs.leaves.payoffs[:, player], leaf).astype(jnp.float32)

    def observe(self, states: Array, seen: Seen, player: int) -> Array:
        """What is kept of an information set of `player`: its number."""
        assert seen.row is not None
        return jnp.where(seen.who == player, seen.row - self.offset(player), 0)

    def features_of(self, observed: Array, player: int) -> Array:
        """Features of what was kept, `[B, F]`."""
        seen = self.features[player]
        if not seen.shape[0]:  # a player who never decides
            return jnp.zeros((observed.shape[0], seen.shape[1]), seen.dtype)
        return take(seen, observed)

    def example(self, player: int) -> tuple[Any, Array, Array]:
        """What is kept, the features and the legal actions of one information set, for shapes."""
        seen = self.features[player]
        return (
            jnp.zeros((), jnp.int32),
            jnp.zeros((1, seen.shape[1]), seen.dtype),
            jnp.ones((1, self.num_actions), bool),
        )

    def merged(self, items: Item, valid: Array, player: int) -> tuple[Item, Array]:
        """One item for each information set: the weighted mean of those of its visits, with their weights summed.

        To learn from it is to learn from all of them, but for a constant in the loss.
        """
        count = self.tree.num_infosets[player]
        row = jnp.where(valid, items.observed, count)
        weight = jnp.where(valid, items.weight, 0)
        sums = sums_by_row(jnp.concatenate([weight[:, None] * items.target, weight[:, None]], axis=1), row, count)
        total = sums[:, -1]
        legal = self.player_legal(player)
        mean = sums[:, :-1] / jnp.where(total > 0, total, 1)[:, None]
        return Item(jnp.arange(count, dtype=jnp.int32), legal, mean, legal, total), total > 0

    def history(self, states: Array) -> Array:
        """What is kept of a history: its number."""
        return states

    def history_features_of(self, kept: Any) -> Array:
        """`[B, H]` float32."""
        assert self.history_features is not None
        return take(self.history_features, kept)

    def history_example(self) -> tuple[Array, Array]:
        """What is kept of one history, and its features."""
        assert self.history_features is not None
        return jnp.zeros((), jnp.int32), jnp.zeros((1, self.history_features.shape[1]), jnp.float32)

    def player_legal(self, player: int) -> Array:
        """`[n_p, A]` bool."""
        start = self.offset(player)
        return self.legal[start : start + self.tree.num_infosets[player]]

    def player_strategy(self, table: Array, player: int) -> Array:
        """A player's table `[n_p, A]` in the flat layout of the tree, `[L_p]`."""
        treeplex, legal = self.tree.treeplexes[player], self.player_legal(player)
        start = self.offset(player)
        values = jnp.where(legal, table, 0).astype(self.tree.dtype)
        total = values.sum(1, keepdims=True)
        values = values / jnp.where(total > 0, total, 1)
        # No two entries but the last one, which is left out, are the same place.
        place = self.flat[start : start + treeplex.num_infosets].reshape(-1)
        return jnp.zeros(treeplex.size + 1, self.tree.dtype).at[place].set(values.reshape(-1))[:-1]

    def strategy(self, table: Array) -> Strategy:
        """A table `[R, A]` in the flat layout of the tree."""
        bounds = [self.offset(player) for player in range(self.num_players + 1)]
        return tuple(self.player_strategy(table[bounds[p] : bounds[p + 1]], p) for p in range(self.num_players))

    def _histories(self) -> Any:
        assert self.tree.histories is not None
        return self.tree.histories


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class ArrayRules:
    """The rules on arrays, without a tree.

    Attributes:
      game: a `jaxcfr.ArrayGame` (static).
      max_depth: moves that a walk keeps (static); what comes after them is played out.
    """

    game: Any = dataclasses.field(metadata={"static": True})
    max_depth: int = dataclasses.field(metadata={"static": True})

    complete = False

    @property
    def num_players(self) -> int:
        return int(self.game.num_players)

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.game.num_actions)

    def root(self) -> Any:
        return jax.tree.map(jnp.asarray, self.game.init())

    def look(self, states: Any) -> Seen:
        who = jax.vmap(self.game.player)(states).astype(jnp.int32)
        return Seen(who, jax.vmap(self.game.legal_actions)(states) & (who >= 0)[:, None], None)

    def prepare(self, ask: Ask) -> None:
        """Nothing: networks are asked on the way."""

    def probabilities(self, table: None, ask: Ask, states: Any, seen: Seen) -> Array:
        """What whoever acts does, `[n, A]`."""
        found = jnp.zeros(seen.legal.shape, jnp.float32)
        for player in range(self.num_players):
            mine = seen.who == player

            def answer(states: Any, player: int = player) -> Array:
                observed = self.observe(states, seen, player)
                return ask(player, self.features_of(observed, player), seen.legal).astype(jnp.float32)

            # In most games all histories of a step belong to one player.
            given = jax.lax.cond(jnp.any(mine), answer, lambda _: jnp.zeros(seen.legal.shape, jnp.float32), states)
            found = jnp.where(mine[:, None], given, found)
        return found

    def after_chance(self, states: Any, bits: Array) -> Any:
        """The histories after chance has moved, by random uint32 `[n]`."""

        def outcome(state: Any, bits: Array) -> Array:
            if not chance_is_enumerable(self.game):
                return sample_chance(self.game, state, jax.random.key(bits))
            return draw_at(unit(bits), possible_outcomes(self.game, state).astype(jnp.float32))

        def one(state: Any, bits: Array) -> Any:
            action = jnp.where(self.game.player(state) == CHANCE, outcome(state, bits), 0)
            return self._step(state, action.astype(jnp.int32))

        return jax.vmap(one)(states, bits)

    def after(self, states: Any, action: Array, seen: Seen) -> Any:
        """The histories after a player's action."""
        return jax.vmap(self._step)(states, action)

    def _step(self, state: Any, action: Array) -> Any:
        return jax.tree.map(lambda old, new: new.astype(old.dtype), state, self.game.step(state, action))

    def payoff(self, states: Any, seen: Seen, player: int) -> Array:
        """What a player gets where the play has ended, float32 `[n]`."""
        return jax.vmap(self.game.returns)(states)[:, player].astype(jnp.float32)

    def observe(self, states: Any, seen: Seen, player: int) -> Array:
        """What is kept of an information set of `player`: its row, `[n, K]` integers."""
        return jax.vmap(lambda state: self.game.infoset(state, player))(states)

    def features_of(self, observed: Array, player: int) -> Array:
        """Features of what was kept, `[B, F]`."""
        return jax.vmap(lambda row: features(self.game, row, player))(observed)

    def example(self, player: int) -> tuple[Any, Array, Array]:
        """What is kept, the features and the legal actions of one information set, for shapes."""
        row = self.game.infoset(self.root(), player)
        return row, self.features_of(row[None], player), jnp.ones((1, self.num_actions), bool)

    def merged(self, items: Item, valid: Array, player: int) -> tuple[Item, Array]:
        """The items as they are: nothing tells which are of one information set."""
        return items, valid

    def history(self, states: Any) -> tuple[Array, ...]:
        """What is kept of a history: who acts, `[n]`, and the rows of all players, `[n, K]` each."""

        def one(state: Any) -> tuple[Array, ...]:
            rows = (self.game.infoset(state, player) for player in range(self.num_players))
            return (self.game.player(state).astype(jnp.int32), *rows)

        return jax.vmap(one)(states)

    def history_features_of(self, kept: Any) -> Array:
        """`[B, H]` float32: who acts, and what all players together know."""
        who, *rows = kept
        parts = [self.features_of(row, player) for player, row in enumerate(rows)]
        return jnp.concatenate([jax.nn.one_hot(who, self.num_players), *parts], axis=1)

    def history_example(self) -> tuple[tuple[Array, ...], Array]:
        """What is kept of one history, and its features."""
        kept = self.history(jax.tree.map(lambda leaf: leaf[None], self.root()))
        return jax.tree.map(lambda leaf: leaf[0], kept), self.history_features_of(kept)


Rules = TreeRules | ArrayRules


def sums_by_row(values: Array, row: Array, count: int) -> Array:
    """Sums `[count, K]` of the values `[M, K]` of each row; rows of `count` and more belong nowhere.

    In a fixed order on every platform, so that runs are reproducible to the bit: on a CPU a scatter is, elsewhere the
    values are sorted by row and added up in a tree.
    """

    def scattered(values: Array, row: Array) -> Array:
        return jax.ops.segment_sum(values, row, count + 1)[:count]

    def scanned(values: Array, row: Array) -> Array:
        order = jnp.argsort(row, stable=True)
        row, values = row[order], values[order]
        first = jnp.concatenate([jnp.ones(1, bool), row[1:] != row[:-1]])

        def add(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
            begins, value = right
            return left[0] | begins, jnp.where(begins[:, None], value, left[1] + value)

        _, sums = jax.lax.associative_scan(add, (first, values))
        last = jnp.searchsorted(row, jnp.arange(count), side="right") - 1
        there = (last >= 0) & (row[jnp.maximum(last, 0)] == jnp.arange(count))
        return jnp.where(there[:, None], sums[jnp.maximum(last, 0)], 0)

    return jax.lax.platform_dependent(values, row, cpu=scattered, default=scanned)


# Making them


def tree_rules(
    lowered: LoweredGame | GameTree,
    features: Any = None,
    game: Any = None,
    histories: Any = None,
    *,
    numbered: bool = False,
) -> TreeRules:
    """A lowered game as walks need it.

    Args:
      lowered: with histories.
      features: see `DeepTrainer`.
      game: the array game that it was lowered from, for features.
      histories: what networks that see all take of a history: "path", "index", an array `[N, H]`, or None for nothing.
      numbered: whether networks number actions as the array game does, and not only those that players take.

    Raises:
      OptionError: the tree has no histories, or features make no sense.
    """
    tree = lowered.tree if isinstance(lowered, LoweredGame) else lowered
    if tree.histories is None:
        raise OptionError("the tree has no histories, and walks need them: lower the game without histories=False")
    whole = lowered if isinstance(lowered, LoweredGame) else None
    player, infoset = np.asarray(tree.histories.player), np.asarray(tree.histories.infoset)
    offsets = np.cumsum([0, *tree.num_infosets])
    row = np.where(player >= 0, infoset + offsets[np.maximum(player, 0)], 0)
    columns, count = _array_columns(whole) if numbered and whole is not None else _action_columns(tree, whole)
    rows = max(int(offsets[-1]), 1)
    legal = np.zeros((rows, count), bool)
    position = np.zeros((rows, count), np.int32)
    flat = np.zeros((rows, count), np.int32)
    for number, treeplex in enumerate(tree.treeplexes):
        if not treeplex.num_infosets:
            continue
        indices, bounds = treeplex.sequence_indices()
        counts = np.diff(bounds)
        own = np.repeat(np.arange(len(counts)), counts) + offsets[number]
        flat[offsets[number] : offsets[number + 1]] = treeplex.size
        legal[own, columns[number]] = True
        position[own, columns[number]] = np.arange(bounds[-1]) - np.repeat(bounds[:-1], counts)
        flat[own, columns[number]] = indices
    return TreeRules(
        tree=tree,
        row=jnp.asarray(row, jnp.int32),
        legal=jnp.asarray(legal),
        position=jnp.asarray(position),
        flat=jnp.asarray(flat),
        features=tuple(jnp.asarray(part) for part in _tree_features(tree, whole, features, game)),
        history_features=None if histories is None else jnp.asarray(_history_features(tree, histories)),
    )


def _action_columns(tree: GameTree, lowered: LoweredGame | None) -> tuple[list[np.ndarray], int]:
    """Per player, which of the A outputs of a network stands for each action, set by set; and A.

    The same action has the same column at every information set, so that networks generalise.
    """
    most = max((int(np.max(np.asarray(t.num_actions), initial=1)) for t in tree.treeplexes), default=1)
    if lowered is not None:
        numbers: dict[Hashable, int] = {}
        columns = [
            np.array([numbers.setdefault(action, len(numbers)) for own in per_player for action in own], np.int64)
            for per_player in lowered.actions
        ]
        if len(numbers) <= max(MAX_ACTIONS, most):
            return columns, max(len(numbers), 1)
    columns = []
    for treeplex in tree.treeplexes:
        bounds = treeplex.sequence_indices()[1]
        columns.append(np.arange(bounds[-1]) - np.repeat(bounds[:-1], np.diff(bounds)))
    return columns, most


def _array_columns(lowered: LoweredGame) -> tuple[list[np.ndarray], int]:
    """As `_action_columns`, with the numbers that the array game gives its actions."""
    table = lowered.infosets
    if table is None:
        raise OptionError("the game was lowered by its plain rules: lower its array_game()")
    bits = [np.unpackbits(part, axis=1, count=table.num_actions, bitorder="little") for part in table.legal]
    return [np.nonzero(part)[1] for part in bits], table.num_actions


def _tree_features(tree: GameTree, lowered: LoweredGame | None, given: Any, game: Any) -> list[np.ndarray]:
    """Per player `[n_p, F_p]` float32."""
    if isinstance(given, str) and given == "index":
        return [np.arange(count, dtype=np.float32)[:, None] for count in tree.num_infosets]
    if callable(given):
        if lowered is None:
            raise OptionError("features=function needs the information-set keys: give a game or a LoweredGame")
        rows = [[given(key, player) for key in keys] for player, keys in enumerate(lowered.infoset_keys)]
        return _feature_tables(rows, tree)
    if given is not None:
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != tree.num_players:
            raise OptionError(
                f'features has to be "index", a function of (key, player), or one array for each of the '
                f"{tree.num_players} players, not {given!r:.80}"
            )
        return _feature_tables(given, tree)
    if lowered is not None and lowered.infosets is not None and game is not None:
        return [_row_features(game, rows, player) for player, rows in enumerate(lowered.infosets.rows)]
    if lowered is not None:
        return token_features(lowered.infoset_keys)
    widest = max((*tree.num_infosets, 1))
    if widest > MAX_PATH_FEATURES:
        raise OptionError("a bare tree says nothing of its information sets: give a LoweredGame, or features")
    return [np.eye(count, widest, dtype=np.float32) for count in tree.num_infosets]


def _row_features(game: Any, rows: np.ndarray, player: int) -> np.ndarray:
    table = jax.vmap(lambda row: features(game, row, player))(jnp.asarray(rows))
    return _feature_table(table, len(rows), player)


def _feature_tables(given: Sequence[Any], tree: GameTree) -> list[np.ndarray]:
    counts = tree.num_infosets
    return [_feature_table(part, counts[player], player) for player, part in enumerate(given)]


def _feature_table(values: Any, count: int, player: int) -> np.ndarray:
    try:
        table = np.asarray(values, np.float32)
    except (TypeError, ValueError) as error:
        raise OptionError(f"features of player {player}: rows of numbers of one length are needed: {error}") from error
    if count == 0 and table.size == 0:
        return np.zeros((0, 1), np.float32)
    if table.ndim != 2 or table.shape[0] != count or not table.shape[1] or not np.isfinite(table).all():
        raise OptionError(
            f"features of player {player} have shape {table.shape}, or are not finite: {count} rows of numbers, one "
            "for each of its information sets, are needed"
        )
    return table


def _history_features(tree: GameTree, given: Any) -> np.ndarray:
    """`[N, H]` float32."""
    count = tree.num_histories
    if isinstance(given, str) and given == "index":
        return np.arange(count, dtype=np.float32)[:, None]
    if not isinstance(given, str):
        try:
            table = np.asarray(given, np.float32)
        except (TypeError, ValueError) as error:
            raise OptionError(f"history_features: an array [{count}, H] of numbers is needed: {error}") from error
        if table.ndim != 2 or table.shape[0] != count or not table.shape[1] or not np.isfinite(table).all():
            raise OptionError(f"history_features has shape {table.shape}: [{count}, H] is needed, all finite")
        return table
    if given != "path":
        raise OptionError(f'history_features has to be "path", "index" or an array, not {given!r}')
    histories = tree.histories
    assert histories is not None
    parent, first = np.asarray(histories.parent), np.asarray(histories.first_child)
    bounds, children = histories.level_offsets, np.asarray(histories.num_children)
    widths = [int(children[bounds[d] : bounds[d + 1]].max(initial=0)) for d in range(len(bounds) - 1)]
    width = sum(widths)
    if width > MAX_PATH_FEATURES or width * count > 2**30:
        raise OptionError(
            f"the {count:,} histories of this game are too many, or too long, to be told apart by their moves: give "
            "history_features=..., an array [N, H]"
        )
    table = np.zeros((count, max(width, 1)), np.float32)
    start = 0
    for depth in range(1, len(bounds) - 1):
        rows = np.arange(bounds[depth], bounds[depth + 1])
        table[rows] = table[parent[rows]]
        table[rows, start + rows - first[parent[rows]]] = 1
        start += widths[depth - 1]
    return table


def array_rules(game: Any, max_depth: int) -> ArrayRules:
    """The rules on arrays as walks need them.

    Raises:
      GameError: what the game returns has the wrong shape, or its features are not finite.
    """
    check_shapes(game, sampled=True)
    rules = ArrayRules(game, max_depth)
    for player in range(rules.num_players):
        first = rules.example(player)[1]
        if not np.isfinite(first).all():
            raise GameError(
                f"{game_name(game)}: features(row, {player}) are not finite where the game begins: "
                f"{np.asarray(first)[0]}"
            )
    return rules
