"""Lowering: from the rules of a game to tensors."""

from __future__ import annotations

import dataclasses
import functools
from array import array
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from jaxcfr.errors import GameError, OptionError
from jaxcfr.games.array_game import is_array_game
from jaxcfr.games.base import action_label, format_path, game_name, require_enumerable_chance
from jaxcfr.tree.build import build_tree, float_dtype
from jaxcfr.tree.convert import strategy_from_rows
from jaxcfr.tree.game_tree import GameTree, Strategy
from jaxcfr.tree.limits import MAX_NODES, PROBABILITY_TOLERANCE, too_large
from jaxcfr.tree.lower_arrays import Lazy, lower_levels
from jaxcfr.tree.nodes import CHANCE, TERMINAL, NodeTable

ARRAYS_FROM = 200_000
"""A plain game is lowered by its array game from this many histories on; below, compiling takes longer than walking."""


@dataclasses.dataclass(frozen=True, repr=False)
class LoweredGame:
    """A tree together with what gives it meaning: keys and labels. Lives on the host; no pytree.

    Attributes:
      tree: the tensors.
      name: of the game.
      infoset_keys: per player, the key of each of its information sets.
      actions: per player and information set, the legal actions in order.
      action_labels: the same as readable strings.
    """

    tree: GameTree
    name: str
    infoset_keys: tuple[Sequence[Hashable], ...]
    actions: tuple[Sequence[tuple[Hashable, ...]], ...]
    action_labels: tuple[Sequence[tuple[str, ...]], ...]

    def __repr__(self) -> str:
        return f"LoweredGame({self.name!r}, {self.tree!r})"

    @functools.cached_property
    def infoset_numbers(self) -> tuple[dict[Hashable, int], ...]:
        """Per player, from key to number of the information set."""
        return tuple({key: number for number, key in enumerate(keys)} for keys in self.infoset_keys)

    def probabilities(self, strategy: Strategy, player: int) -> list[np.ndarray]:
        """A player's strategy by information set, in the order of `infoset_keys`, actions in order."""
        self.tree.check_strategy(strategy)
        indices, offsets = self.tree.treeplexes[player].sequence_indices()
        return np.split(np.asarray(strategy[player])[indices], offsets[1:-1]) if len(offsets) > 1 else []

    def strategy(self, probabilities: Sequence[Sequence[Any]]) -> Strategy:
        """The inverse of `probabilities`, for all players at once.

        Args:
          probabilities: per player, per information set in the order of `infoset_keys`, one number per action.

        Raises:
          StrategyError: numbers are missing, or are no distribution.
        """
        return strategy_from_rows(self.tree, probabilities)


def lower(
    game: Any,
    *,
    dtype: Any = None,
    max_nodes: int = MAX_NODES,
    histories: bool = True,
    general_sum: bool = False,
) -> LoweredGame:
    """Lowers a game to tensors: walks it breadth first, once, and builds its `GameTree`.

    Args:
      game: the root, an object with the methods of `jaxcfr.Game`.
      dtype: float32 or float64; None means float64 where `jax_enable_x64` is on, else float32.
      max_nodes: refuse games with more histories than this.
      histories: keep the histories in the tree (sampling and subgames need them).
      general_sum: do not record that payoffs are constant-sum, so that any payoffs can replace them later.

    Raises:
      GameTooLargeError: more than `max_nodes` histories; says how many were met and what they would take.
      ChanceNotEnumerableError: chance can only be sampled.
      GameError: a rule is broken; names the path. `jaxcfr.validate_game` checks more.
      RecallError: a player forgets what it knew or did.
      OptionError: the dtype is not available or cannot hold the payoffs.
    """
    dtype = float_dtype(dtype)
    arrays = _array_game(game)
    if arrays is None and (not hasattr(game, "is_terminal") or not hasattr(game, "step")):
        hint = "; jaxcfr.load_game(name) makes one" if isinstance(game, str) else ""
        raise GameError(f"lower needs a game with the methods of jaxcfr.Game, not {type(game).__name__!r}{hint}")
    if not isinstance(max_nodes, int) or max_nodes < 1:
        raise OptionError(f"max_nodes has to be a positive integer, not {max_nodes!r}")
    if arrays is None:
        return _lower_plain(game, dtype, max_nodes, histories, general_sum)
    return _lower_arrays(arrays, dtype, max_nodes, histories, general_sum)


def _array_game(game: Any) -> Any:
    """The array game to lower instead of walking, or None. A fixed rule: the same game always takes the same way."""
    if is_array_game(game):
        return game
    arrays = game.array_game() if hasattr(game, "array_game") else None
    if arrays is None:
        return None
    estimate = arrays.estimated_histories() if hasattr(arrays, "estimated_histories") else None
    return arrays if estimate is not None and estimate >= ARRAYS_FROM else None


def _lower_plain(game: Any, dtype: Any, max_nodes: int, histories: bool, general_sum: bool) -> LoweredGame:
    """`lower` by walking the plain rules, one history after the other."""
    walk = _Walk(game, max_nodes)
    walk.run()
    keys = tuple(tuple(numbers) for numbers in walk.numbers)
    tree = build_tree(
        walk.table(),
        lambda player, infoset: repr(keys[player][infoset]),
        dtype=dtype,
        histories=histories,
        general_sum=general_sum,
    )
    return LoweredGame(
        tree=tree,
        name=game_name(game),
        infoset_keys=keys,
        actions=tuple(map(tuple, walk.actions)),
        action_labels=tuple(map(tuple, walk.labels)),
    )


def _lower_arrays(game: Any, dtype: Any, max_nodes: int, histories: bool, general_sum: bool) -> LoweredGame:
    """`lower` by expanding whole levels of an array game."""
    nodes, sets = lower_levels(game, max_nodes)
    tree = build_tree(
        nodes,
        lambda player, infoset: repr(sets.key(player, infoset)),
        dtype=dtype,
        histories=histories,
        general_sum=general_sum,
    )
    counts = list(enumerate(map(len, sets.rows)))
    return LoweredGame(
        tree=tree,
        name=game_name(game),
        infoset_keys=tuple(Lazy(sets.key, player, count) for player, count in counts),
        actions=tuple(Lazy(sets.actions, player, count) for player, count in counts),
        action_labels=tuple(Lazy(sets.labels, player, count) for player, count in counts),
    )


class _Walk:
    """The breadth-first walk; collects the columns of a node table."""

    def __init__(self, root: Any, max_nodes: int) -> None:
        self.root = root
        self.max_nodes = max_nodes
        self.num_players = root.num_players
        if not isinstance(self.num_players, int) or self.num_players < 1:
            raise GameError(f"{game_name(root)}: num_players has to be a positive integer, not {self.num_players!r}")
        players = range(self.num_players)
        self.player = array("b")
        self.infoset = array("i")
        self.parent = array("i", [-1])
        self.chance = array("d", [1.0])
        self.payoffs = array("d")
        self.numbers: list[dict[Hashable, int]] = [{} for _ in players]
        self.actions: list[list[tuple[Hashable, ...]]] = [[] for _ in players]
        self.labels: list[list[tuple[str, ...]]] = [[] for _ in players]

    def table(self) -> NodeTable:
        return NodeTable(
            num_players=self.num_players,
            player=np.array(self.player, np.int8),
            infoset=np.array(self.infoset, np.int32),
            parent=np.array(self.parent, np.int32),
            chance=np.array(self.chance, np.float64),
            payoffs=np.array(self.payoffs, np.float64).reshape(-1, self.num_players),
            num_actions=tuple(
                np.array([len(actions) for actions in per_player], np.int32) for per_player in self.actions
            ),
        )

    def run(self) -> None:
        level = [self.root]
        while level:
            below: list[Any] = []
            for node in level:
                row = len(self.player)
                try:
                    self._visit(node, row, below)
                except Exception as error:
                    if not isinstance(error, GameError):
                        # The rules themselves failed: keep their own error, and say where it happened.
                        error.add_note(f"raised by the game {game_name(self.root)} at {self._path(row)}")
                    raise
                if len(self.parent) > self.max_nodes:
                    raise too_large(game_name(self.root), self.max_nodes, len(self.parent), len(below))
            level = below

    def _visit(self, node: Any, row: int, below: list[Any]) -> None:
        if node.is_terminal():
            self.player.append(TERMINAL)
            self.infoset.append(-1)
            self._add_payoffs(node.terminal_returns(), row)
            return
        if node.is_chance():
            self.player.append(CHANCE)
            self.infoset.append(-1)
            outcomes = node.chance_outcomes()
            if not outcomes:
                require_enumerable_chance(node, [self._path(row)], "lowering")
            self._check_chance(outcomes, row)
            for action, probability in outcomes:
                below.append(node.step(action))
                self.parent.append(row)
                self.chance.append(float(probability))
            return
        player = node.player_to_act()
        if not 0 <= player < self.num_players:
            raise GameError(
                f"{game_name(self.root)}: player_to_act() is {player!r} at {self._path(row)}, but there are "
                f"{self.num_players} players, counted from 0"
            )
        actions = tuple(node.legal_actions())
        key = node.infoset_key(player)
        try:
            number = self.numbers[player].setdefault(key, len(self.actions[player]))
        except TypeError as error:
            raise GameError(
                f"{game_name(self.root)}: infoset_key({player}) is not hashable at {self._path(row)}: {key!r}"
            ) from error
        if number == len(self.actions[player]):
            self._check_actions(actions, player, key, row)
            self.actions[player].append(actions)
            self.labels[player].append(tuple(action_label(node, action) for action in actions))
        elif actions != self.actions[player][number]:
            raise GameError(
                f"{game_name(self.root)}: the legal actions of player {player} at information set {key!r} are "
                f"{list(actions)} at {self._path(row)}, but {list(self.actions[player][number])} in another of its "
                "histories; they have to be the same, in the same order"
            )
        self.player.append(player)
        self.infoset.append(number)
        for action in actions:
            below.append(node.step(action))
            self.parent.append(row)
            self.chance.append(1.0)

    def _add_payoffs(self, payoffs: Sequence[Any], row: int) -> None:
        if len(payoffs) != self.num_players:
            raise GameError(
                f"{game_name(self.root)}: terminal_returns() has {len(payoffs)} payoffs at {self._path(row)}, but "
                f"there are {self.num_players} players"
            )
        for payoff in payoffs:
            try:
                value = float(payoff)
            except OverflowError:
                value = float("inf")
            except (TypeError, ValueError):
                value = float("nan")
            if not -float("inf") < value < float("inf"):
                raise GameError(
                    f"{game_name(self.root)}: payoff {payoff!r} at {self._path(row)} is not a finite number"
                )
            self.payoffs.append(value)

    def _check_chance(self, outcomes: Sequence[tuple[Hashable, Any]], row: int) -> None:
        probabilities = [probability for _, probability in outcomes]
        try:
            total = sum(probabilities)
        except TypeError as error:
            raise GameError(
                f"{game_name(self.root)}: the chance probabilities at {self._path(row)} are not all numbers: "
                f"{probabilities}"
            ) from error
        exact = all(isinstance(p, (Fraction, int)) for p in probabilities)
        if not all(p >= 0 for p in probabilities):
            raise GameError(f"{game_name(self.root)}: a chance probability is negative or NaN at {self._path(row)}")
        if total != 1 if exact else not abs(total - 1) <= PROBABILITY_TOLERANCE:
            raise GameError(
                f"{game_name(self.root)}: the chance probabilities at {self._path(row)} sum to {total}, not to 1"
            )

    def _check_actions(self, actions: tuple[Hashable, ...], player: int, key: Hashable, row: int) -> None:
        try:
            distinct = len(set(actions))
        except TypeError as error:
            raise GameError(
                f"{game_name(self.root)}: the legal actions of player {player} at information set {key!r}, "
                f"{self._path(row)}, are not all hashable: {list(actions)}"
            ) from error
        if not actions or distinct != len(actions):
            what = "has no legal action" if not actions else f"has an action twice: {list(actions)}"
            raise GameError(
                f"{game_name(self.root)}: player {player} {what} at information set {key!r}, {self._path(row)}"
            )

    def _path(self, row: int) -> str:
        """The actions that lead to a row, found by replaying the game from the root."""
        edges = []
        while row > 0:
            above = self.parent[row]
            # Children lie next to each other, so the edge number is the distance to the first of them.
            first = row
            while first > 0 and self.parent[first - 1] == above:
                first -= 1
            edges.append(row - first)
            row = above
        node, path = self.root, []
        for edge in reversed(edges):
            moves = [action for action, _ in node.chance_outcomes()] if node.is_chance() else node.legal_actions()
            path.append(action_label(node, moves[edge]))
            node = node.step(moves[edge])
        return format_path(path)
