"""A whole game on the host: its histories as numpy rows, reaches and values of a strategy, what players know.

Everything that cuts a game starts here. Numbers are float64, whatever the dtype of the tree.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from jaxcfr.errors import OptionError, SubgameError
from jaxcfr.games.array_game import as_game, is_array_game
from jaxcfr.games.base import action_label, format_path, require_enumerable_chance
from jaxcfr.tree.game_tree import Strategy
from jaxcfr.tree.lower import LoweredGame
from jaxcfr.tree.nodes import CHANCE, TERMINAL, NodeTable, Walked


class Whole:
    """A game of P players with N histories, on the host.

    Attributes:
      game: the root, a plain `Game`.
      lowered: the same game, lowered with its histories.
      names: what the information sets and actions are called.
      nodes: its node table.
      level_offsets: `[depth + 2]`, where each depth begins.
      first_child, num_children, terminal: `[N]`, as in `GameTree.histories`.
      sequence: per player `[N]`, flat index of its last sequence on the path.
    """

    def __init__(self, game: Any, lowered: LoweredGame) -> None:
        histories = lowered.tree.histories
        if histories is None:
            raise OptionError("this tree was lowered without its histories, which cutting a subgame needs: lower(game)")
        self.game = as_game(game) if is_array_game(game) else game
        self.lowered = lowered
        self.names: LoweredGame | Walked = lowered
        self.nodes = NodeTable(
            num_players=lowered.tree.num_players,
            player=np.asarray(histories.player),
            infoset=np.asarray(histories.infoset),
            parent=np.asarray(histories.parent),
            chance=np.asarray(histories.chance, np.float64),
            payoffs=np.asarray(lowered.tree.terminal_payoffs, np.float64),
            num_actions=tuple(np.asarray(treeplex.num_actions) for treeplex in lowered.tree.treeplexes),
        )
        self.level_offsets = np.array(histories.level_offsets)
        self.first_child = np.asarray(histories.first_child)
        self.num_children = np.asarray(histories.num_children)
        self.terminal = np.asarray(histories.terminal)
        self.sequence = tuple(np.asarray(sequence) for sequence in histories.sequence)

    @property
    def name(self) -> str:
        return self.lowered.name

    def levels(self) -> list[slice]:
        """The rows of every depth but the first, from the top."""
        return [slice(start, stop) for start, stop in itertools.pairwise(self.level_offsets[1:].tolist())]

    # Strategies

    def edges(self, strategy: Strategy) -> np.ndarray:
        """`[N]`, the probability of the edge into every history; 1 at the root."""
        edge = self.nodes.chance.copy()
        actor = self.nodes.player[self.nodes.parent[1:]]
        for player in range(self.nodes.num_players):
            rows = 1 + np.flatnonzero(actor == player)
            edge[rows] = self.rescaled(player, strategy)[self.sequence[player][rows]]
        return edge

    def rescaled(self, player: int, strategy: Strategy) -> np.ndarray:
        """A player's strategy `[L_p]` in float64, every information set's probabilities summing to 1."""
        flat = np.asarray(strategy[player], np.float64).copy()
        indices, offsets = self.lowered.tree.treeplexes[player].sequence_indices()
        if len(indices):
            values = np.maximum(flat[indices], 0.0)
            total = np.add.reduceat(values, offsets[:-1])
            flat[indices] = values / np.repeat(total, np.diff(offsets))
        return flat

    def reaches(self, strategy: Strategy) -> np.ndarray:
        """`[P + 1, N]`, what every player, and at last chance, contribute to the reach of every history."""
        edge = self.edges(strategy)
        reach = np.ones((self.nodes.num_players + 1, len(edge)))
        for rows in self.levels():
            above = self.nodes.parent[rows]
            reach[:, rows] = reach[:, above]
            actor = self.nodes.player[above]
            reach[actor, np.arange(rows.start, rows.stop)] *= edge[rows]
        return reach

    def values(self, strategy: Strategy) -> np.ndarray:
        """`[N, P]`, every player's expected payoff from every history on."""
        edge = self.edges(strategy)
        values = np.zeros((len(edge), self.nodes.num_players))
        values[self.nodes.player == TERMINAL] = self.nodes.payoffs
        for rows in reversed(self.levels()):
            np.add.at(values, self.nodes.parent[rows], edge[rows, None] * values[rows])
        return values

    # Paths

    def step_along(self, path: Sequence[Hashable]) -> tuple[int, Any]:
        """The row and the history that a path of actions and outcomes of chance leads to.

        Raises:
          SubgameError: an action is not legal there, or the play has ended before.
        """
        if isinstance(path, (str, bytes)) or not isinstance(path, Sequence):
            raise SubgameError(f"a path is a sequence of actions from the root, chance outcomes included, not {path!r}")
        row, history = 0, self.game
        for position, action in enumerate(path):
            moves = self.moves(row, history, path[:position])
            if action not in moves:
                where = format_path(path[:position])
                legal = ", ".join(f"{move!r} ({action_label(history, move)})" for move in moves)
                what = f"legal there: {legal}" if moves else "the play has ended there"
                raise SubgameError(f"{self.name}: the path cannot go on with {action!r} after {where}: {what}")
            edge = moves.index(action)
            row, history = int(self.first_child[row]) + edge, history.step(moves[edge])
        return row, history

    def moves(self, row: int, history: Any, path: Sequence[Hashable] = ()) -> tuple[Hashable, ...]:
        """Actions, or outcomes of chance, in the order of the children."""
        player = int(self.nodes.player[row])
        if player == TERMINAL:
            return ()
        if player == CHANCE:
            return tuple(outcome for outcome, _ in require_enumerable_chance(history, path, "cutting a subgame"))
        return self.lowered.actions[player][int(self.nodes.infoset[row])]

    def path_to(self, row: int) -> tuple[Hashable, ...]:
        """The actions and outcomes of chance that lead to a row."""
        edges = []
        while row > 0:
            above = int(self.nodes.parent[row])
            edges.append(row - int(self.first_child[above]))
            row = above
        path: list[Hashable] = []
        history = self.game
        for edge in reversed(edges):
            move = self.moves(row, history, path)[edge]
            row, history = int(self.first_child[row]) + edge, history.step(move)
            path.append(move)
        return tuple(path)

    def visit(self, look: Callable[[int, Any], None], wanted: np.ndarray) -> None:
        """Calls `look(row, history)` for the wanted rows, `[N]` bool, a parent before its children."""
        needed = wanted.copy()
        for rows in reversed(self.levels()):
            needed[self.nodes.parent[rows][needed[rows]]] = True
        level = [(0, self.game)] if needed[0] else []
        while level:
            below = []
            for row, history in level:
                if wanted[row]:
                    look(row, history)
                first, count = int(self.first_child[row]), int(self.num_children[row])
                if count and needed[first : first + count].any():
                    for child, move in enumerate(self.moves(row, history), first):
                        if needed[child]:
                            below.append((child, history.step(move)))
            level = below

    # What players know

    @functools.cached_property
    def observed(self) -> tuple[np.ndarray, ...] | Exception:
        """Per player `[N]`, a number for what it observes at every history where somebody acts, itself included or not.

        Where the player acts this is its information set; -1 at terminal histories. The exception that the game raised
        where it does not say what players observe while they do not act.
        """
        players = range(self.nodes.num_players)
        numbers: tuple[dict[Hashable, int], ...] = tuple({} for _ in players)
        classes = tuple(np.full(len(self.nodes.player), -1, np.int64) for _ in players)
        actor = self.nodes.player

        def look(row: int, history: Any) -> None:
            for player in players:
                if actor[row] != player:
                    key = history.infoset_key(player)
                    number = numbers[player].setdefault(key, len(numbers[player]))
                    classes[player][row] = self.nodes.num_actions[player].size + number

        try:
            self.visit(look, actor != TERMINAL)
        except Exception as error:  # whatever the game does where it cannot answer
            return error
        for player in players:
            own = actor == player
            classes[player][own] = self.nodes.infoset[own]
        return classes

    @functools.cached_property
    def derived(self) -> tuple[np.ndarray, ...]:
        """As `observed`, from the tree alone: all is one to a player since its last own action."""
        classes = []
        for player in range(self.nodes.num_players):
            sequence = self.nodes.num_actions[player].size + self.sequence[player].astype(np.int64)
            own, ended = self.nodes.player == player, self.nodes.player == TERMINAL
            classes.append(np.where(ended, -1, np.where(own, self.nodes.infoset, sequence)))
        return tuple(classes)

    def knowledge(self, closure: str | None) -> tuple[tuple[np.ndarray, ...], str]:
        """The classes to close a part under, and which they are.

        Raises:
          OptionError: there is no such closure.
          SubgameError: the game does not say what players observe.
        """
        if closure not in (None, "observation", "derived"):
            raise OptionError(f'closure has to be "observation", "derived" or None, not {closure!r}')
        if closure != "derived":
            observed = self.observed
            if not isinstance(observed, Exception):
                return observed, "observation"
            if closure == "observation":
                raise SubgameError(
                    f"{self.name}: infoset_key(player) does not tell what players observe where they do not act "
                    f'({type(observed).__name__}: {observed}): use closure="derived"'
                ) from observed
        return self.derived, "derived"

    def close(self, row: int, classes: tuple[np.ndarray, ...]) -> np.ndarray:
        """`[N]` bool: the smallest set with this row that holds all descendants, and all of a class or nothing."""
        inside = np.zeros(len(self.nodes.player), bool)
        inside[row] = True
        size = 0
        while size < (size := int(inside.sum())):
            self.descend(inside)
            for per_player in classes:
                met = np.zeros(int(per_player.max(initial=-1)) + 2, bool)
                met[per_player[inside]] = True
                met[-1] = False  # the place of -1: terminal histories
                inside |= met[per_player]
        return inside

    def descend(self, inside: np.ndarray) -> None:
        """Adds all descendants to a set of rows, in place."""
        for rows in self.levels():
            inside[rows] |= inside[self.nodes.parent[rows]]

    def straddling(self, inside: np.ndarray) -> tuple[int, int] | None:
        """A player and the number of one of its information sets with histories both inside and outside of a set."""
        for player in range(self.nodes.num_players):
            rows = np.flatnonzero(self.nodes.player == player)
            infoset = self.nodes.infoset[rows]
            count = self.nodes.num_actions[player].size
            members = np.bincount(infoset, minlength=count)
            within = np.bincount(infoset[inside[rows]], minlength=count)
            split = np.flatnonzero((within > 0) & (within < members))
            if len(split):
                return player, int(split[0])
        return None
