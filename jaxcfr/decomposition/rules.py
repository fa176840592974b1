"""Trunk and subgames lowered from the rules when they are needed: nothing ever holds all histories of the game.

The trunk is the game that ends at the cut. A subgame is lowered from its roots, which are kept: as states of an array
game, or as histories of a plain one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.decomposition.source import Cut, CutGame, as_depth, as_predicate, asked, connected, zero_sum
from jaxcfr.decomposition.subtree import Piece
from jaxcfr.errors import NotTwoPlayerConstantSumError, OptionError, SubgameError
from jaxcfr.games.array_game import TERMINAL, Describe, as_game, is_array_game, x64_enabled
from jaxcfr.games.base import game_name
from jaxcfr.games.wrapped import WrappedGame
from jaxcfr.subgames.part import Part, root_labels
from jaxcfr.subgames.whole import Whole
from jaxcfr.tree.build import build_tree
from jaxcfr.tree.limits import MAX_NODES
from jaxcfr.tree.lower import LoweredGame, walk_plain, walked_arrays
from jaxcfr.tree.lower_arrays import lower_levels
from jaxcfr.tree.nodes import Walked, level_offsets

CHUNK = 4096
"""Roots looked at in one call."""


class Section(Whole):
    """Some histories of a game below a root of chance, lowered for the moment."""

    def __init__(self, walked: Walked, name: str) -> None:
        self.nodes = walked.nodes
        self.names = walked
        self.level_offsets = level_offsets(walked.nodes.parent)
        self._name = name

    @property
    def name(self) -> str:
        return self._name


class RulesSource:
    """Trunk and subgames from rules; how these are asked is up to `Rules`."""

    def __init__(self, rules: Rules, siblings: bool) -> None:
        self.rules = rules
        trunk = rules.trunk()
        name = rules.name
        if trunk.nodes.num_players != 2:
            raise NotTwoPlayerConstantSumError(f"{name}: CFR-D is for two-player constant-sum games")
        found = rules.roots()
        if not len(found.leaf):
            raise SubgameError(f"{name}: nothing lies below the cut: there is no subgame to decompose into")
        self._found = found
        leaves = np.flatnonzero(trunk.nodes.player == TERMINAL)
        real = np.ones(len(leaves), bool)
        real[found.leaf] = False
        self._payoff_sum: float | None = None
        self.centre = self._middle(trunk.nodes.payoffs[real], name)
        payoffs = np.zeros(len(leaves))
        payoffs[real] = zero_sum(name, trunk.nodes.payoffs[real], self.centre)
        nodes = dataclasses.replace(trunk.nodes, payoffs=np.stack([payoffs, -payoffs], axis=1))
        keys = trunk.infoset_keys
        tree = build_tree(nodes, lambda p, i: repr(keys[p][i]), dtype=rules.dtype, centre=False)
        lowered = LoweredGame(tree, f"the trunk of {name}", keys, trunk.actions, trunk.action_labels)
        assert tree.histories is not None
        self._whole = Whole(rules.game, lowered)
        rows = leaves[found.leaf]
        sequence = [np.asarray(tree.histories.sequence[p])[rows].astype(np.int64) for p in range(2)]
        self._known = [np.stack([found.classes[p], sequence[p]]) for p in range(2)]
        self._chance = np.asarray(tree.histories.chance_reach, np.float64)[rows]
        every = np.arange(len(rows))
        links = [(every, classes) for classes in found.classes]
        if siblings:
            links.append((every, nodes.parent[rows].astype(np.int64)))
        component = connected(links, len(rows))
        order = np.argsort(component, kind="stable")
        self._members = np.split(order, np.cumsum(np.bincount(component))[:-1])
        self._subgame_at = dict(zip(rows.tolist(), component.tolist(), strict=True))
        self._rows = rows
        self.cut = CutGame(name, lowered, found.leaf, component, "observation")

    def _middle(self, payoffs: np.ndarray, name: str) -> tuple[float, float]:
        """The centre of the payoffs of the trunk, or of some subgame's where it has none."""
        if not len(payoffs):
            payoffs = self.rules.below(np.arange(1)).nodes.payoffs
        middle = float(payoffs[:, 0].min() / 2 + payoffs[:, 0].max() / 2)
        return middle, float(payoffs[0].sum()) - middle

    @property
    def held(self) -> int:
        """The roots."""
        return self.rules.held

    def piece(self, number: int) -> Piece:
        """See `Source`; the subgame is lowered anew."""
        members = self._members[number]
        name = f"subgame {number} of {self.rules.name}"
        section = Section(self.rules.below(members), name)
        nodes = section.nodes
        parent = nodes.parent[1:].astype(np.int64) - 1
        roots = np.arange(len(members))
        root_of = np.full(len(parent), -1, np.int64)
        root_of[roots] = roots
        for start, stop in zip(section.level_offsets[2:-1] - 1, section.level_offsets[3:] - 1, strict=True):
            root_of[start:stop] = root_of[parent[start:stop]]
        rows = np.arange(1, len(nodes.player))
        part = Part(section, rows, parent, roots, root_of, np.zeros(len(rows), bool))
        labels = (
            root_labels(part, self._known[0][:, members], 0),
            root_labels(part, self._known[1][:, members], 1),
        )
        payoffs = np.zeros(len(nodes.player))
        payoffs[nodes.player == TERMINAL] = zero_sum(name, nodes.payoffs, self.centre)
        return Piece(part, labels, self._chance[members], payoffs, name)

    def path(self, number: int) -> tuple[Hashable, ...]:
        """See `Source`."""
        return self._whole.path_to(int(self._rows[self._members[number][0]]))

    def find(self, path: Sequence[Hashable]) -> int | None:
        """See `Source`; what comes after the root of a subgame is not looked at."""
        if isinstance(path, (str, bytes)) or not isinstance(path, Sequence):
            raise SubgameError(f"a path is a sequence of actions from the root, chance outcomes included, not {path!r}")
        for length in range(len(path) + 1):
            row, _ = self._whole.step_along(path[:length])
            if row in self._subgame_at:
                return self._subgame_at[row]
        return None


@dataclasses.dataclass(frozen=True)
class Found:
    """The roots of all subgames.

    Attributes:
      leaf: `[R]`, which leaf of the trunk each of them is.
      classes: per player `[R]`, a number for what it knows there.
    """

    leaf: np.ndarray
    classes: tuple[np.ndarray, np.ndarray]


class Rules:
    """What `RulesSource` asks of a game.

    Attributes:
      name: of the game.
      game: a plain game, for paths.
      dtype: of trees.
      held: bytes of the roots.
    """

    name: str
    game: Any
    dtype: Any
    held: int

    def trunk(self) -> Walked:
        """The game that ends at the cut."""
        raise NotImplementedError

    def roots(self) -> Found:
        """The roots, after `trunk`."""
        raise NotImplementedError

    def below(self, members: np.ndarray) -> Walked:
        """Some roots, in this order, below a root of chance; and what lies below them."""
        raise NotImplementedError


class _Stopped:
    """An array game that ends at a cut; a state is one of the game's and its depth."""

    def __init__(self, game: Any, cut: Callable[[Any, Array], Array]) -> None:
        self.game = game
        self._cut = cut

    def __getattr__(self, name: str) -> Any:
        return getattr(self.game, name)

    def init(self) -> Any:
        return self.game.init(), jnp.int32(0)

    def stops(self, state: Any) -> Array:
        """Whether the game goes on here, and the trunk does not."""
        return self._cut(*state) & (self.game.player(state[0]) != TERMINAL)

    def player(self, state: Any) -> Array:
        return jnp.where(self.stops(state), TERMINAL, self.game.player(state[0]))

    def legal_actions(self, state: Any) -> Array:
        return self.game.legal_actions(state[0])

    def chance_probabilities(self, state: Any) -> Array | None:
        return self.game.chance_probabilities(state[0])

    def step(self, state: Any, action: Array) -> Any:
        return self.game.step(state[0], action), state[1] + 1

    def returns(self, state: Any) -> Array:
        return jnp.where(self.stops(state), 0, self.game.returns(state[0]))

    def infoset(self, state: Any, player: int) -> Array:
        return self.game.infoset(state[0], player)


class ArrayRules(Rules):
    """An array game; trunk and subgames are expanded a level at a time."""

    def __init__(self, game: Any, plain: Any, cut: Cut, dtype: Any) -> None:
        self.name = game_name(game)
        self.game = as_game(game) if plain is None else plain
        self.dtype = dtype
        self.arrays = game
        self.held = 0
        self._stopped = _Stopped(game, _array_cut(self.name, game, cut))
        self._states: list[np.ndarray] = []
        self._trunk_rows: list[np.ndarray] = []

    def trunk(self) -> Walked:
        """See `Rules`."""
        nodes, sets = lower_levels(self._stopped, MAX_NODES, ended=self._states)
        self._trunk_rows = sets.rows
        return walked_arrays(nodes, sets)

    def roots(self) -> Found:
        """See `Rules`."""
        with x64_enabled():
            return self._roots()

    def _roots(self) -> Found:
        stopped, game = self._stopped, self.arrays
        structure = jax.tree.structure(jax.eval_shape(stopped.init))

        @jax.jit
        @jax.vmap
        def look(state: Any) -> tuple[Array, Array, Array, Array]:
            return stopped.stops(state), game.player(state[0]), game.infoset(state[0], 0), game.infoset(state[0], 1)

        total = len(self._states[0])
        columns: list[list[np.ndarray]] = [[], [], [], []]
        for begin in range(0, total, CHUNK):
            index = np.minimum(np.arange(begin, begin + CHUNK), total - 1)
            states = jax.tree.unflatten(structure, [leaf[index] for leaf in self._states])
            for column, values in zip(columns, look(states), strict=True):
                column.append(np.asarray(values)[: total - begin])
        stops, actor, *views = (np.concatenate(column) for column in columns)
        leaf = np.flatnonzero(stops)
        # The depth is the last leaf of a state.
        self._states = [leaf_[leaf] for leaf_ in self._states[:-1]]
        self.held = sum(states.nbytes for states in self._states)
        classes = []
        for player in range(2):
            view = views[player][leaf]
            _, label = np.unique(view, axis=0, return_inverse=True)
            classes.append(label.reshape(-1).astype(np.int64))
            acts = view[actor[leaf] == player]
            known = {row.tobytes() for row in self._trunk_rows[player].astype(view.dtype)}
            straddling = next((row for row in acts if row.tobytes() in known), None)
            if straddling is not None:
                raise _not_closed(self.name, player, Describe(game).infoset_key(straddling, player))
        self._trunk_rows = []
        return Found(leaf, (classes[0], classes[1]))

    def below(self, members: np.ndarray) -> Walked:
        """See `Rules`."""
        nodes, sets = lower_levels(self.arrays, MAX_NODES, roots=[leaf[members] for leaf in self._states])
        return walked_arrays(nodes, sets)


def _array_cut(name: str, game: Any, cut: Cut) -> Callable[[Any, Array], Array]:
    """The cut as a traceable function of a state and its depth."""
    limit = as_depth(cut)
    if limit is not None:
        return lambda state, depth: depth >= limit
    predicate = as_predicate(cut)
    if cut == "round":
        if not hasattr(game, "rounds_ended"):
            raise OptionError(f'cut="round" needs a game that names its rounds, and {name} has no rounds_ended(state)')

        def predicate(state: Any) -> Array:
            return game.rounds_ended(state) > 0

    found = jax.eval_shape(predicate, jax.eval_shape(game.init))
    if getattr(found, "shape", None) != () or found.dtype != np.bool_:
        raise OptionError(f"{name}: the cut has to be a traceable function from a state to a bool, and returns {found}")
    return lambda state, depth: predicate(state)


class _StoppedGame(WrappedGame):
    """A plain game that ends at a cut."""

    __slots__ = ("_cut", "_depth", "ends", "stops")

    def __init__(self, inner: Any, depth: int, cut: Callable[[Any, int], bool]) -> None:
        super().__init__(inner)
        self._depth = depth
        self._cut = cut
        self.ends = bool(inner.is_terminal())
        self.stops = not self.ends and cut(inner, depth)

    def _wrap(self, inner: Any) -> _StoppedGame:
        return _StoppedGame(inner, self._depth + 1, self._cut)

    def is_terminal(self) -> bool:
        """There, and at the cut."""
        return self.ends or self.stops

    def terminal_returns(self) -> Any:
        """Nothing at the cut."""
        return self.inner.terminal_returns() if self.ends else (0,) * self.num_players

    def is_chance(self) -> bool:
        """As inside, above the cut."""
        return not self.stops and self.inner.is_chance()


class _Joined:
    """Histories below a root of chance."""

    def __init__(self, histories: Sequence[Any]) -> None:
        self.histories = histories
        self.num_players = histories[0].num_players

    @property
    def name(self) -> str:
        """Of the game."""
        return game_name(self.histories[0])

    def is_terminal(self) -> bool:
        return False

    def is_chance(self) -> bool:
        return True

    def chance_outcomes(self) -> Any:
        return tuple((i, 1 / len(self.histories)) for i in range(len(self.histories)))

    def step(self, action: Any) -> Any:
        return self.histories[action]


class PlainRules(Rules):
    """A plain game; trunk and subgames are walked history by history."""

    def __init__(self, game: Any, cut: Cut, dtype: Any) -> None:
        self.name = game_name(game)
        self.dtype = dtype
        self.held = 0
        limit = as_depth(cut)
        if limit is not None:
            self.game = _StoppedGame(game, 0, lambda history, depth: depth >= limit)
        else:
            predicate = as_predicate(cut)
            self.game = _StoppedGame(
                game, 0, lambda history, depth: asked(self.name, predicate, history, lambda: repr(history))
            )
        self._walked: Walked | None = None
        self._histories: list[Any] = []

    def trunk(self) -> Walked:
        """See `Rules`."""
        self._walked = walk_plain(self.game, MAX_NODES)
        return self._walked

    def roots(self) -> Found:
        """See `Rules`."""
        walked = self._walked
        assert walked is not None
        known = [set(keys) for keys in walked.infoset_keys]
        leaf: list[int] = []
        classes: tuple[list[int], list[int]] = ([], [])
        numbers: tuple[dict[Hashable, int], dict[Hashable, int]] = ({}, {})
        # Breadth first, as the walk was.
        level, met = [self.game], 0
        while level:
            below: list[Any] = []
            for stopped in level:
                if not stopped.is_terminal():
                    moves = (
                        [outcome for outcome, _ in stopped.chance_outcomes()]
                        if stopped.is_chance()
                        else stopped.legal_actions()
                    )
                    below.extend(stopped.step(move) for move in moves)
                    continue
                if stopped.stops:
                    leaf.append(met)
                    self._histories.append(stopped.inner)
                    for player in range(2):
                        key = self._view(stopped.inner, player)
                        acts = not stopped.inner.is_chance() and stopped.inner.player_to_act() == player
                        if acts and key in known[player]:
                            raise _not_closed(self.name, player, key)
                        classes[player].append(numbers[player].setdefault(key, len(numbers[player])))
                met += 1
            level = below
        self._walked = None
        return Found(np.array(leaf, np.int64), (np.array(classes[0], np.int64), np.array(classes[1], np.int64)))

    def _view(self, history: Any, player: int) -> Hashable:
        try:
            key: Hashable = history.infoset_key(player)
        except Exception as error:
            raise SubgameError(
                f"{self.name}: to be decomposed from its rules a game has to tell what players observe where they do "
                f"not act: infoset_key({player}) failed at {history!r}: {error or type(error).__name__}"
            ) from error
        return key

    def below(self, members: np.ndarray) -> Walked:
        """See `Rules`."""
        walked = walk_plain(_Joined([self._histories[i] for i in members.tolist()]), MAX_NODES)
        chance = walked.nodes.chance.copy()
        chance[1 : 1 + len(members)] = 1.0
        return dataclasses.replace(walked, nodes=dataclasses.replace(walked.nodes, chance=chance))


def _not_closed(name: str, player: int, key: Hashable) -> SubgameError:
    return SubgameError(
        f"{name}: the cut goes through information set {key!r} of player {player}, some of whose histories are in the "
        "trunk: cut where both players know it, or lower the whole game, whose cut is closed"
    )


def rules_source(game: Any, cut: Cut, dtype: Any, siblings: bool) -> RulesSource:
    """A source for a game of either kind; a plain one with an array game is expanded by that, where the cut can be."""
    if is_array_game(game):
        return RulesSource(ArrayRules(game, None, cut, dtype), siblings)
    arrays = game.array_game() if hasattr(game, "array_game") else None
    if arrays is not None and not callable(cut):
        return RulesSource(ArrayRules(arrays, game, cut, dtype), siblings)
    return RulesSource(PlainRules(game, cut, dtype), siblings)
