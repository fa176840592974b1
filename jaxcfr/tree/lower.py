"""Lowering: from the rules of a game to tensors."""

from __future__ import annotations

import dataclasses
import functools
import gc
import math
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

GARBAGE_EVERY = 100_000
"""Allocations between two collections of cyclic garbage while a plain game is walked."""

ARRAYS_FROM = 200_000
"""A plain game is lowered by its array game from this many histories on; below, compiling takes longer than walking."""


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

    An array game is expanded a level at a time, some ten times faster, and so is a large game whose `array_game()`
    returns one; the tree is the same.

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
    """The breadth-first walk; collects the columns of a node table.

    What every history costs is kept small: columns hold only what cannot be derived, and what a game returns twice as
    the same object is looked at once.
    """

    def __init__(self, root: Any, max_nodes: int) -> None:
        self.root = root
        self.max_nodes = max_nodes
        self.num_players = root.num_players
        if not isinstance(self.num_players, int) or self.num_players < 1:
            raise GameError(f"{game_name(root)}: num_players has to be a positive integer, not {self.num_players!r}")
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
        counts = np.array(self.num_children, np.int32)
        return np.concatenate([np.array([-1], np.int32), np.repeat(rows, counts)])

    def run(self) -> None:
        level = [self.root]
        thresholds = gc.get_threshold()
        if thresholds[0]:
            # Histories by the hundred thousand that are no garbage would be looked through again and again.
            gc.set_threshold(max(thresholds[0], GARBAGE_EVERY), *thresholds[1:])
        try:
            while level:
                level = self._expand(level)
        except GameError:
            raise
        except Exception as error:
            # The rules themselves failed: keep their own error, and say where it happened. A history's `player` is
            # added when all is done with it, so the length of the column is the row of the one at fault.
            error.add_note(f"raised by the game {game_name(self.root)} at {self._path(len(self.player))}")
            raise
        finally:
            gc.set_threshold(*thresholds)

    def _expand(self, level: list[Any]) -> list[Any]:
        """Visits the histories of one depth; returns those of the next."""
        below: list[Any] = []
        num_players = self.num_players
        numbers, known_actions, returned = self.numbers, self.actions, self._returned
        payoffs_column, chance_column = self.payoffs, self.chance
        add_player, add_infoset, add_count = self.player.append, self.infoset.append, self.num_children.append
        first_row, first_payoff = len(self.player), len(payoffs_column)
        for node in level:
            if node.is_terminal():
                payoffs = node.terminal_returns()
                before = len(payoffs_column)
                try:
                    payoffs_column.extend(payoffs)
                except (TypeError, ValueError, OverflowError):
                    del payoffs_column[before:]
                    self._add_payoffs(payoffs)
                if len(payoffs_column) - before != num_players:
                    raise self._wrong_payoffs(payoffs)
                add_player(TERMINAL)
                continue
            if node.is_chance():
                outcomes = node.chance_outcomes()
                if not outcomes:
                    require_enumerable_chance(node, [self._path(len(self.player))], "lowering")
                chance_column.extend(self._check_chance(outcomes))
                count = len(outcomes)
                below += [node.step(action) for action, _ in outcomes]
                add_player(CHANCE)
            else:
                player = node.player_to_act()
                if not 0 <= player < num_players:
                    raise GameError(
                        f"{game_name(self.root)}: player_to_act() is {player!r} at {self._path(len(self.player))}, "
                        f"but there are {num_players} players, counted from 0"
                    )
                actions = node.legal_actions()
                key = node.infoset_key(player)
                known = known_actions[player]
                try:
                    number = numbers[player].setdefault(key, len(known))
                except TypeError as error:
                    raise GameError(
                        f"{game_name(self.root)}: infoset_key({player}) is not hashable at "
                        f"{self._path(len(self.player))}: {key!r}"
                    ) from error
                if number == len(known):
                    self._add_infoset(node, player, key, actions)
                elif actions is not returned[player][number]:
                    actions = tuple(actions)
                    if actions != known[number]:
                        raise GameError(
                            f"{game_name(self.root)}: the legal actions of player {player} at information set {key!r} "
                            f"are {list(actions)} at {self._path(len(self.player))}, but {list(known[number])} in "
                            "another of its histories; they have to be the same, in the same order"
                        )
                count = len(known[number])
                below += map(node.step, known[number])
                add_infoset(number)
                add_player(player)
            add_count(count)
            self.total += count
            if self.total > self.max_nodes:
                raise too_large(game_name(self.root), self.max_nodes, self.total, len(below))
        self._check_finite(first_row, first_payoff)
        return below

    def _add_infoset(self, node: Any, player: int, key: Hashable, actions: Sequence[Hashable]) -> None:
        """Makes the next information set of a player, met at `node` first."""
        actions_ = tuple(actions)
        self._check_actions(actions_, player, key, len(self.player))
        self.actions[player].append(actions_)
        self.labels[player].append(tuple(action_label(node, action) for action in actions_))
        self._returned[player].append(actions if type(actions) in (tuple, range) else None)

    def _add_payoffs(self, payoffs: Sequence[Any]) -> None:
        """Adds payoffs that an array does not take as they are: strings of digits; else `GameError`."""
        if len(payoffs) != self.num_players:
            raise self._wrong_payoffs(payoffs)
        for payoff in payoffs:
            try:
                self.payoffs.append(float(payoff))
            except (OverflowError, TypeError, ValueError):
                raise self._no_number(payoff, len(self.player)) from None

    def _wrong_payoffs(self, payoffs: Sequence[Any]) -> GameError:
        return GameError(
            f"{game_name(self.root)}: terminal_returns() has {len(payoffs)} payoffs at {self._path(len(self.player))}, "
            f"but there are {self.num_players} players"
        )

    def _no_number(self, payoff: Any, row: int) -> GameError:
        return GameError(f"{game_name(self.root)}: payoff {payoff!r} at {self._path(row)} is not a finite number")

    def _check_finite(self, first_row: int, first_payoff: int) -> None:
        """Checks the payoffs of the histories of one depth, which begins at these rows of the columns."""
        if first_payoff == len(self.payoffs):
            return
        payoffs = np.array(self.payoffs[first_payoff:], np.float64).reshape(-1, self.num_players)
        if not np.isfinite(payoffs).all():
            leaf = int(np.flatnonzero(~np.isfinite(payoffs).all(1))[0])
            rows = np.flatnonzero(np.array(self.player[first_row:], np.int8) == TERMINAL)
            payoff = payoffs[leaf][~np.isfinite(payoffs[leaf])][0]
            raise self._no_number(float(payoff), first_row + int(rows[leaf]))

    def _check_chance(self, outcomes: Sequence[tuple[Hashable, Any]]) -> list[float]:
        """The probabilities, which have to be numbers that sum to 1."""
        probabilities = [probability for _, probability in outcomes]
        if all(type(p) is Fraction for p in probabilities):
            # Sums of fractions are slow, and a game's have one denominator or a few.
            common = math.lcm(*{p.denominator for p in probabilities})
            numerators = [p.numerator * (common // p.denominator) for p in probabilities]
            if sum(numerators) == common and min(numerators) >= 0:
                return [numerator / common for numerator in numerators]
        try:
            total = sum(probabilities)
        except TypeError as error:
            raise GameError(
                f"{game_name(self.root)}: the chance probabilities at {self._path(len(self.player))} are not all "
                f"numbers: {probabilities}"
            ) from error
        exact = all(isinstance(p, (Fraction, int)) for p in probabilities)
        where = len(self.player)
        if not all(p >= 0 for p in probabilities):
            raise GameError(f"{game_name(self.root)}: a chance probability is negative or NaN at {self._path(where)}")
        if total != 1 if exact else not abs(total - 1) <= PROBABILITY_TOLERANCE:
            raise GameError(
                f"{game_name(self.root)}: the chance probabilities at {self._path(where)} sum to {total}, not to 1"
            )
        return [float(p) for p in probabilities]

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
        parents = self._parents()
        edges = []
        while row > 0:
            # Children lie next to each other, so the edge number is the distance to the first of them.
            edges.append(row - int(np.searchsorted(parents, parents[row], side="left")))
            row = int(parents[row])
        node, path = self.root, []
        for edge in reversed(edges):
            moves = [action for action, _ in node.chance_outcomes()] if node.is_chance() else node.legal_actions()
            path.append(action_label(node, moves[edge]))
            node = node.step(moves[edge])
        return format_path(path)
