"""Lowering: from the rules of a game to tensors."""

from __future__ import annotations

import dataclasses
import functools
import gc
from array import array
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from jaxcfr.arguments import integer
from jaxcfr.concrete import release_memory
from jaxcfr.errors import GameError, RecallError
from jaxcfr.games import checks
from jaxcfr.games.array_game import is_array_game
from jaxcfr.games.base import LOWERING, action_label, format_path, game_name, not_enumerable
from jaxcfr.tree.build import build_tree, float_dtype
from jaxcfr.tree.convert import strategy_from_rows
from jaxcfr.tree.game_tree import GameTree, Strategy
from jaxcfr.tree.limits import BYTES_PER_HISTORY, MAX_NODES, WALK_BYTES_PER_HISTORY, too_large, too_many
from jaxcfr.tree.lower_arrays import InfosetTable, Lazy, lower_levels
from jaxcfr.tree.nodes import CHANCE, TERMINAL, NodeTable, Walked

GARBAGE_EVERY = 100_000
"""Allocations between two collections of cyclic garbage while a plain game is walked."""

ARRAYS_FROM = 200_000
"""A plain game is lowered by its array game from this many histories on; below, compiling takes longer than walking."""


SAME_OBJECT = "step() returned the same object; it has to leave the history as it is and return a new one"

CERTAIN = 2
"""A game is refused unseen only if its estimated histories are this many times too many: estimates are rough."""

_PLAIN_NUMBERS = frozenset({int, float, Fraction, np.float64})


@dataclasses.dataclass(frozen=True, repr=False)
class LoweredGame:
    """A tree together with what gives it meaning: keys and labels. Lives on the host; no pytree.

    The sequences are tuples, or like tuples and made item by item when they are asked for (array games).

    Attributes:
      tree: the tensors.
      name: of the game.
      infoset_keys: per player, the key of each of its information sets.
      actions: per player and information set, the legal actions in order.
      action_labels: the same as readable strings.
      infosets: what an array game says of its information sets, on arrays; None where the plain rules were walked.
    """

    tree: GameTree
    name: str
    infoset_keys: tuple[Sequence[Hashable], ...]
    actions: tuple[Sequence[tuple[Hashable, ...]], ...]
    action_labels: tuple[Sequence[tuple[str, ...]], ...]
    infosets: InfosetTable | None = None

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

    An array game is expanded a level at a time, some ten times faster, and so is a large game whose `array_game()`
    returns one; the tree is the same. A game with a method `walk_histories(max_nodes)` walks itself, and one
    whose `estimated_histories()` tells of far too many is refused unseen.

    Args:
      game: the root, an object with the methods of `jaxcfr.Game`, or a `jaxcfr.ArrayGame`.
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
    max_nodes = integer("max_nodes", max_nodes)
    checks.require_instance(game, "lower")
    arrays, estimate = _array_game(game)
    if estimate is not None and estimate > CERTAIN * max_nodes:
        price = WALK_BYTES_PER_HISTORY if arrays is None else BYTES_PER_HISTORY
        raise too_many(game_name(game), max_nodes, estimate, price)
    if arrays is None and (not hasattr(game, "is_terminal") or not hasattr(game, "step")):
        raise GameError(f"lower needs a game, not {checks.instead_of_game(game)}")
    if arrays is None:
        return _lower_plain(game, dtype, max_nodes, histories, general_sum)
    lowered = _lower_arrays(arrays, dtype, max_nodes, histories, general_sum)
    release_memory()
    return lowered


def _array_game(game: Any) -> tuple[Any, float | None]:
    """The array game to lower instead of walking, or None; and about how many histories there are, where it is known.

    A fixed rule: the same game always takes the same way.
    """
    arrays = game
    if not is_array_game(game):
        try:
            arrays = game.array_game() if hasattr(game, "array_game") else None
        except Exception as error:
            error.add_note(f"raised by array_game() of the game {game_name(game)} at {format_path(())}")
            raise
    rules = game if arrays is None else arrays
    estimate = rules.estimated_histories() if hasattr(rules, "estimated_histories") else None
    if arrays is None:
        return None, estimate
    if arrays is game or (estimate is not None and estimate >= ARRAYS_FROM):
        return arrays, estimate
    return None, estimate


def _build(name: str, walked: Walked, dtype: Any, histories: bool, general_sum: bool) -> LoweredGame:
    """The tensors of a game that has been walked."""
    keys = walked.infoset_keys
    try:
        tree = build_tree(
            walked.nodes,
            lambda player, infoset: repr(keys[player][infoset]),
            dtype=dtype,
            histories=histories,
            general_sum=general_sum,
        )
    except RecallError as error:
        raise RecallError(f"{name}: {error}") from None
    return LoweredGame(
        tree=tree, name=name, infoset_keys=keys, actions=walked.actions, action_labels=walked.action_labels
    )


def _lower_plain(game: Any, dtype: Any, max_nodes: int, histories: bool, general_sum: bool) -> LoweredGame:
    """`lower` by walking the plain rules, one history after the other."""
    return _build(game_name(game), walk_plain(game, max_nodes), dtype, histories, general_sum)


def walk_plain(game: Any, max_nodes: int) -> Walked:
    """The node table of a plain game, with what its numbers stand for.

    Raises:
      As `lower`.
    """
    if hasattr(game, "walk_histories"):
        walked: Walked = game.walk_histories(max_nodes)
        return walked
    walk = _Walk(game, max_nodes)
    walk.run()
    return walk.walked()


def _lower_arrays(game: Any, dtype: Any, max_nodes: int, histories: bool, general_sum: bool) -> LoweredGame:
    """`lower` by expanding whole levels of an array game."""
    nodes, sets = lower_levels(game, max_nodes)
    walked = walked_arrays(nodes, sets)
    return dataclasses.replace(_build(game_name(game), walked, dtype, histories, general_sum), infosets=sets)


def walked_arrays(nodes: NodeTable, sets: InfosetTable) -> Walked:
    """What the numbers of an array game's node table stand for, made when asked for."""
    counts = list(enumerate(map(len, sets.rows)))
    return Walked(
        nodes=nodes,
        infoset_keys=tuple(Lazy(sets.key, player, count) for player, count in counts),
        actions=tuple(Lazy(sets.actions, player, count) for player, count in counts),
        action_labels=tuple(Lazy(sets.labels, player, count) for player, count in counts),
    )


class _Walk:
    """The breadth-first walk; collects the columns of a node table.

    What every history costs is kept small: columns hold only what cannot be derived, and what a game returns twice as
    the same object is looked at once.
    """

    def __init__(self, root: Any, max_nodes: int) -> None:
        self.root = root
        self.max_nodes = max_nodes
        self.refused: GameError | None = None  # the last error of our own, which says where
        try:
            self.num_players = checks.num_players(getattr(root, "num_players", None))
        except checks.BrokenRuleError as error:
            raise GameError(f"{game_name(root)}: at {format_path(())}: {error}") from None
        players = range(self.num_players)
        self.total = 1  # histories met
        self.player = array("b")
        self.infoset = array("i")  # of decision histories
        self.num_children = array("i")  # of histories that are not terminal
        self.chance = array("d")  # of the edges out of chance histories
        self.payoffs = array("d")
        self.numbers: list[dict[Hashable, int]] = [{} for _ in players]
        self.actions: list[list[tuple[Hashable, ...]]] = [[] for _ in players]
        self.labels: list[list[tuple[str, ...]]] = [[] for _ in players]
        # Per information set what `legal_actions` returned, or None where that can be changed.
        self._returned: list[list[Any]] = [[] for _ in players]
        # And the types of its actions, because 1 == True.
        self._types: list[list[list[type]]] = [[] for _ in players]
        # These three of information sets with the very same actions, which thereby stay alive and keep their id.
        self._menus: dict[int, tuple[tuple[Hashable, ...], list[type], Any]] = {}

    def walked(self) -> Walked:
        """The game, after `run`."""
        return Walked(
            nodes=self.table(),
            infoset_keys=tuple(map(tuple, self.numbers)),
            actions=tuple(map(tuple, self.actions)),
            action_labels=tuple(map(tuple, self.labels)),
        )

    def table(self) -> NodeTable:
        player = np.array(self.player, np.int8)
        infoset = np.full(self.total, -1, np.int32)
        infoset[player >= 0] = np.array(self.infoset, np.int32)
        parent = self._parents()
        chance = np.ones(self.total)
        chance[1:][player[parent[1:]] == CHANCE] = np.array(self.chance, np.float64)
        return NodeTable(
            num_players=self.num_players,
            player=player,
            infoset=infoset,
            parent=parent,
            chance=chance,
            payoffs=np.array(self.payoffs, np.float64).reshape(-1, self.num_players),
            num_actions=tuple(
                np.array([len(actions) for actions in per_player], np.int32) for per_player in self.actions
            ),
        )

    def _parents(self) -> np.ndarray:
        """`[N]` int32, the parents of the children of all histories that were expanded."""
        rows = np.flatnonzero(np.array(self.player, np.int8) != TERMINAL).astype(np.int32)
        counts = np.array(self.num_children[: len(rows)], np.int32)
        return np.concatenate([np.array([-1], np.int32), np.repeat(rows, counts)])

    def run(self) -> None:
        level = [self.root]
        thresholds = gc.get_threshold()
        if thresholds[0]:
            # Histories by the hundred thousand that are no garbage would be looked through again and again.
            gc.set_threshold(max(thresholds[0], GARBAGE_EVERY), *thresholds[1:])
        try:
            before = 1
            while level:
                # As this level grew, the next one may not fit: then it is counted before it is made.
                if len(level) * len(level) > before * (self.max_nodes - self.total):
                    self._count(level)
                before, level = len(level), self._expand(level)
        except checks.BrokenRuleError as error:
            raise self._error(str(error)) from error.__cause__
        except Exception as error:
            if isinstance(error, AttributeError) and any(node is None for node in level):
                raise self._error("step() returned None instead of the next history") from None
            if error is not self.refused:
                # The rules themselves failed: keep their own error, and say where it happened. A history's `player` is
                # added when all is done with it, so the length of the column is the row of the one at fault.
                error.add_note(f"raised by the game {game_name(self.root)} at {self._path(len(self.player))}")
            raise
        finally:
            gc.set_threshold(*thresholds)

    def _error(self, problem: str, row: int | None = None) -> GameError:
        """A broken rule at a row; by default at the one that is being looked at."""
        path = self._path(len(self.player) if row is None else row)
        self.refused = GameError(f"{game_name(self.root)}: at {path}: {problem}")
        return self.refused

    def _too_large(self, met: int, waiting: int) -> GameError:
        self.refused = too_large(game_name(self.root), self.max_nodes, met, waiting, WALK_BYTES_PER_HISTORY)
        return self.refused

    def _count(self, level: list[Any]) -> None:
        """Refuses a game whose next level is too large, without making it."""
        total = self.total
        for looked_at, node in enumerate(level, 1):
            try:
                if node.is_terminal():
                    continue
                moves = node.chance_outcomes() if node.is_chance() else node.legal_actions()
                total += len(moves) if type(moves) in (tuple, list, range) else len(checks.ordered("", moves))
            except Exception:
                return  # whatever is wrong there, the walk finds it and knows the path
            if total > self.max_nodes:
                raise self._too_large(total, total - self.total + len(level) - looked_at)

    def _expand(self, level: list[Any]) -> list[Any]:
        """Visits the histories of one depth; returns those of the next."""
        below: list[Any] = []
        num_players = self.num_players
        numbers, known_actions, returned, types = self.numbers, self.actions, self._returned, self._types
        payoffs_column, chance_column = self.payoffs, self.chance
        add_player, add_infoset, add_count = self.player.append, self.infoset.append, self.num_children.append
        first_row, first_payoff, first_total = len(self.player), len(payoffs_column), self.total
        plain = _PLAIN_NUMBERS
        for node in level:
            flag = node.is_terminal()
            if flag is not False and (flag is True or checks.flag("is_terminal()", flag)):
                payoffs = node.terminal_returns()
                kind = type(payoffs)
                if (
                    (kind is tuple or kind is list)
                    and len(payoffs) == num_players
                    and type(payoffs[0]) in plain
                    and type(payoffs[-1]) in plain
                ):
                    try:
                        payoffs_column.extend(payoffs)
                    except (TypeError, ValueError, OverflowError):
                        checks.payoffs(payoffs, num_players)  # says what is wrong
                        raise
                else:
                    payoffs_column.extend(checks.payoffs(payoffs, num_players))
                add_player(TERMINAL)
                continue
            flag = node.is_chance()
            if flag is not False and (flag is True or checks.flag("is_chance()", flag)):
                outcomes = node.chance_outcomes()
                if outcomes is None:
                    self.refused = not_enumerable(game_name(self.root), self._path(len(self.player)), LOWERING)
                    raise self.refused
                moves, given = checks.chance(outcomes)
                chance_column.extend(checks.probabilities(moves, given))
                count = len(moves)
                below += map(node.step, moves)
                if below[-1] is node:
                    raise checks.BrokenRuleError(SAME_OBJECT)
                add_player(CHANCE)
            else:
                player = node.player_to_act()
                if type(player) is not int or not 0 <= player < num_players:
                    player = checks.player(player, num_players)
                actions = node.legal_actions()
                key = node.infoset_key(player)
                known = known_actions[player]
                try:
                    number = numbers[player].setdefault(key, len(known))
                except TypeError:
                    checks.infoset_key(player, key)
                    raise
                if number == len(known):
                    self._add_infoset(node, player, key, actions)
                elif actions is not returned[player][number]:
                    moves = actions if type(actions) is tuple else checks.ordered("legal_actions()", actions)
                    if moves != known[number] or [*map(type, moves)] != types[player][number]:
                        self._check_same(node, player, number, moves)
                moves = known[number]
                count = len(moves)
                below += map(node.step, moves)
                if below[-1] is node:
                    raise checks.BrokenRuleError(SAME_OBJECT)
                add_infoset(number)
                add_player(player)
            add_count(count)
            self.total += count
            if self.total > self.max_nodes:
                raise self._too_large(self.total, len(below))
        if len(below) < self.total - first_total:
            self._find_stop(level, first_row)
        self._check_finite(first_row, first_payoff)
        return below

    def _add_infoset(self, node: Any, player: int, key: Hashable, actions: Any) -> None:
        """Makes the next information set of a player, met at `node` first."""
        if type(key) is not str:
            checks.infoset_key(player, key)
        menu = self._menus.get(id(actions))
        if menu is None:
            moves = checks.moves("legal_actions()", actions)
            kept = actions if type(actions) in (tuple, range) else None
            menu = moves, [*map(type, moves)], kept
            if kept is not None:
                self._menus[id(kept)] = menu
        moves, types, kept = menu
        self.actions[player].append(moves)
        self.labels[player].append(tuple([action_label(node, action) for action in moves]))
        self._returned[player].append(kept)
        self._types[player].append(types)

    def _check_same(self, node: Any, player: int, number: int, moves: tuple[Hashable, ...]) -> None:
        """Compares the legal actions at `node` with those of its information set."""
        known = self.actions[player][number]
        if moves != known:
            what, here, there = "legal actions", moves, known
        else:  # 1 == True, but they look different
            here, there = tuple(action_label(node, action) for action in moves), self.labels[player][number]
            what = "action labels"
        if here != there:
            key = list(self.numbers[player])[number]
            raise self._error(
                f"information set {key!r} of player {player} has the {what} {list(here)!r} here, but {list(there)!r} "
                "in another of its histories; they have to be the same, in the same order"
            )

    def _find_stop(self, level: list[Any], first_row: int) -> None:
        """Finds the step that raised StopIteration, which `map` takes for its own end, and lets it raise again."""
        rows = self.player[first_row:]
        for row, node in enumerate(level):
            if rows[row] != TERMINAL:
                del self.player[first_row + row :]
                moves = checks.chance(node.chance_outcomes())[0] if rows[row] == CHANCE else node.legal_actions()
                for move in moves:
                    node.step(move)
                self.player.extend(rows[row:])

    def _check_finite(self, first_row: int, first_payoff: int) -> None:
        """Checks the payoffs of the histories of one depth, which begins at these rows of the columns."""
        if first_payoff == len(self.payoffs):
            return
        payoffs = np.array(self.payoffs[first_payoff:], np.float64).reshape(-1, self.num_players)
        if not np.isfinite(payoffs).all():
            leaf, player = map(int, np.argwhere(~np.isfinite(payoffs))[0])
            rows = np.flatnonzero(np.array(self.player[first_row:], np.int8) == TERMINAL)
            problem = f"the payoff of player {player} is {payoffs[leaf, player]}, not finite"
            raise self._error(problem, first_row + int(rows[leaf]))

    def _path(self, row: int) -> str:
        """The actions that lead to a row, found by replaying the game from the root; as far as the rules allow."""
        parents = self._parents()
        edges = []
        while row > 0:
            # Children lie next to each other, so the edge number is the distance to the first of them.
            edges.append(row - int(np.searchsorted(parents, parents[row], side="left")))
            row = int(parents[row])
        node, path = self.root, []
        for edge in reversed(edges):
            try:
                if node.is_chance():
                    moves = checks.chance(node.chance_outcomes())[0]
                else:
                    moves = checks.ordered("legal_actions()", node.legal_actions())
                path.append(action_label(node, moves[edge]))
                node = node.step(moves[edge])
            except Exception:
                return f"{format_path(path)} > (move {edge} of a history that cannot be reached again)"
        return format_path(path)
