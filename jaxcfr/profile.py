"""`Profile`: strategies bound to information-set keys.

A strategy of the solver is a flat vector that means something only together
with its tree. A profile is the same numbers by player and information-set key,
with the actions and their labels: it can be played, shown, saved, exported and
turned back into the flat vectors of any tree whose keys and actions it fits.
Everything here lives on the host, in numpy.
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import fnmatch
import functools
import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np

from jaxcfr.arguments import integer
from jaxcfr.errors import OptionError, ProfileError, ProfileFileError
from jaxcfr.files import path_text, reason, write_atomically
from jaxcfr.games.base import action_label, game_name
from jaxcfr.hashables import STORABLE, UnstorableError, decode, encode

if TYPE_CHECKING:
    from jaxcfr.tree.game_tree import GameTree, Strategy
    from jaxcfr.tree.lower import LoweredGame

FORMAT = "jaxcfr profile"
"""What every exported profile says that it is."""

VERSION = 1
"""Version of the file, JSON, dict and CSV formats; another one is refused."""

Missing = Literal["error", "uniform"]
"""What is done at information sets that a profile does not have."""

TOLERANCE = 1e3 * float(np.finfo(np.float32).eps)
"""How far the probabilities of an information set may sum from 1: what `GameTree.check_strategy` grants float32."""

_HEADER = "jaxcfr_profile"  # the first member of a file, by which it is recognised
_COMMENT = b"jaxcfr profile, SHA-256 of all bytes before this number: "
_DIGEST = 64  # hexadecimal digits
_MAGIC_BYTES = 64  # enough for the local header of the first member with its name
_FROM_NUMBERS = "Profile.from_strategy(lowered, lowered.strategy(rows)) takes numbers of your own, set by set"
_MAX_SHOWN_ACTIONS = 12
_MAX_COMPARED_KEYS = 10_000
_MAX_SHOWN_KEYS = 3
_NPY_HEADER = 128  # bytes of an array's own header, in every member
_TEXT_BYTES = 1 << 24  # texts of this size are always read
_TEXT_RATIO = 500  # larger ones only if they were compressed at most so well, as a text of many different keys is
_HEADINGS = ("player", "information set")
_CSV_COLUMNS = ("player", "key", "action", "label", "probability", "profile")


@dataclass(frozen=True)
class TreeShape:
    """The counts of the tree that a profile was made for.

    Attributes:
      histories, terminals, depth: counts.
      infosets: information sets per player.
      sequences: sequences per player, the empty one included.
    """

    histories: int
    terminals: int
    depth: int
    infosets: tuple[int, ...]
    sequences: tuple[int, ...]

    @staticmethod
    def of(tree: GameTree) -> TreeShape:
        """The shape of `tree`."""
        return TreeShape(tree.num_histories, tree.num_terminals, tree.depth, tree.num_infosets, tree.num_sequences)

    def __str__(self) -> str:
        return (
            f"players: {len(self.infosets)}, histories: {self.histories:,}, "
            f"information sets: {' + '.join(f'{count:,}' for count in self.infosets)}"
        )


class EntropySummary(NamedTuple):
    """Entropies of a profile's strategies, in nats.

    Attributes:
      mean, min, max: over the information sets with more than one action; 0 where there are none.
      infosets: how many those are.
    """

    mean: float
    min: float
    max: float
    infosets: int


class InfosetStrategy(NamedTuple):
    """A player's strategy at one information set.

    Attributes:
      player: whose.
      key: of the information set.
      labels: of its actions, in order; those that occur twice have their action added, `label (action)`.
      probabilities: `[actions]` float64, sums to 1.
    """

    player: int
    key: Hashable
    labels: tuple[str, ...]
    probabilities: np.ndarray


class _Menu(NamedTuple):
    """What can be chosen at an information set; most sets of a game share a few of them."""

    actions: tuple[Hashable, ...]
    labels: tuple[str, ...]

    @property
    def distinct_labels(self) -> tuple[str, ...]:
        """The labels; those that occur twice with their actions added."""
        if len(set(self.labels)) == len(self.labels):
            return self.labels
        return tuple(
            label if self.labels.count(label) == 1 else f"{label} ({_spelled(action)})"
            for action, label in zip(self.actions, self.labels, strict=True)
        )


@dataclass(frozen=True, eq=False)
class _Table:
    """One player's n information sets.

    Attributes:
      keys: n keys.
      menus: `[n]` int32, number of each set's menu.
      offsets: `[n + 1]` int64, where each set's probabilities begin.
      probabilities: `[offsets[-1]]` float64.
    """

    keys: tuple[Hashable, ...]
    menus: np.ndarray
    offsets: np.ndarray
    probabilities: np.ndarray

    @functools.cached_property
    def numbers(self) -> dict[Hashable, int]:
        return {key: number for number, key in enumerate(self.keys)}

    def row(self, number: int) -> np.ndarray:
        """A set's probabilities, rescaled to sum to 1: a float32 solve leaves them off by its rounding.

        Those that sum to 1 but for rounding in float64 are left alone, so that what is rescaled once stays the same.
        """
        values = self.probabilities[self.offsets[number] : self.offsets[number + 1]]
        total = float(values.sum())
        row: np.ndarray = values / (1.0 if abs(total - 1) <= len(values) * np.finfo(np.float64).eps else total)
        return row


class Profile:
    """One behaviour strategy per player, by information-set key.

    Made by `from_strategy`, `from_probabilities`, `load`, `from_dict`, `from_json` or `from_csv`; never changes. Two
    profiles are equal if they hold the same keys in the same order with the same actions and exactly the same
    probabilities, and the same facts about how they came about: a game may have many equilibria, so which of two is
    better is told by `jaxcfr.compare`, `jaxcfr.exploitability` and `jaxcfr.head_to_head`, not by their probabilities.
    A profile holds whatever strategy it was made of; a run's solution is its average strategy. `len(profile)` is the
    number of information sets of all players.

    Attributes:
      game_name: of the game it was made for.
      tree_shape: counts of the tree it was made for.
      variant: text that names the regret variant, or None.
      iterations: how many the solver ran, or None.
      seed: recorded as given, or None.
    """

    __slots__ = ("_menus", "_tables", "game_name", "iterations", "seed", "tree_shape", "variant")

    def __init__(
        self,
        game_name: str,
        tree_shape: TreeShape,
        menus: Sequence[_Menu],
        tables: Sequence[_Table],
        *,
        variant: str | None,
        iterations: int | None,
        seed: int | None,
    ) -> None:
        """Not called by users; checks all there is to check, and raises `ProfileError`."""
        self.game_name = game_name
        self.tree_shape = tree_shape
        self.variant = variant
        self.iterations = iterations
        self.seed = seed
        self._menus = tuple(menus)
        self._tables = tuple(tables)
        for menu in self._menus:
            if not menu.actions or len(set(menu.actions)) < len(menu.actions):
                what = "an action twice" if menu.actions else "no action"
                raise ProfileError(f"an information set has {what}: {list(menu.actions)}")
        for player, table in enumerate(self._tables):
            if len(table.numbers) < len(table.keys):
                seen: set[Hashable] = set()
                twice = next(key for key in table.keys if key in seen or seen.add(key))  # type: ignore[func-returns-value]
                raise ProfileError(f"player {player} has the information set {_key_name(twice)} twice")
            _check_probabilities(player, table)
            for values in (table.menus, table.offsets, table.probabilities):
                values.setflags(write=False)
        if not self._tables:
            raise ProfileError("a profile needs at least one player")
        shape = (self.num_infosets, tuple(len(table.probabilities) + 1 for table in self._tables))
        if shape != (tree_shape.infosets, tree_shape.sequences):
            raise ProfileError(
                f"the tree is said to have {tree_shape.infosets} information sets and {tree_shape.sequences} "
                f"sequences, but the strategies have {shape[0]} and {shape[1]}"
            )

    # Facts

    @property
    def num_players(self) -> int:
        return len(self._tables)

    @property
    def num_infosets(self) -> tuple[int, ...]:
        """Information sets per player."""
        return tuple(len(table.keys) for table in self._tables)

    @property
    def infoset_keys(self) -> tuple[tuple[Hashable, ...], ...]:
        """Per player, the keys of its information sets."""
        return tuple(table.keys for table in self._tables)

    def __len__(self) -> int:
        return sum(self.num_infosets)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Profile):
            return NotImplemented
        return (
            self._facts() == other._facts()
            and len(self._tables) == len(other._tables)
            and all(
                mine.keys == theirs.keys
                and np.array_equal(mine.probabilities, theirs.probabilities)
                and all(
                    self._menus[a] == other._menus[b]
                    for a, b in set(zip(mine.menus.tolist(), theirs.menus.tolist(), strict=True))
                )
                for mine, theirs in zip(self._tables, other._tables, strict=True)
            )
        )

    __hash__ = None  # type: ignore[assignment]  # as large as it is, it should not be hashed by accident

    def __repr__(self) -> str:
        facts = [repr(self.game_name), f"infosets={self.num_infosets}"]
        facts += [
            f"{name}={value!r}"
            for name, value in (("variant", self.variant), ("iterations", self.iterations), ("seed", self.seed))
            if value is not None
        ]
        return f"Profile({', '.join(facts)})"

    def _facts(self) -> tuple[Any, ...]:
        return self.game_name, self.tree_shape, self.variant, self.iterations, self.seed

    # From and to the solver

    @staticmethod
    def from_strategy(
        lowered: LoweredGame,
        strategy: Strategy,
        *,
        variant: Any = None,
        iterations: Any = None,
        seed: int | None = None,
    ) -> Profile:
        """Binds a strategy to the keys of the game it was computed for.

        Args:
          lowered: what `jaxcfr.lower` returned.
          strategy: one array (or list) per player, `[L_p]`, in the layout of `lowered.tree`.
          variant: the regret variant, recorded in the words of the command line (`pcfr_plus:gamma=2`) where it comes
            from one of the factories; or any text that names it.
          iterations: how many iterations it took; a `SolverState`'s `t` will do.
          seed: of the run, to be recorded.

        Raises:
          StrategyError: the strategy does not fit the tree, or is no distribution.
          ProfileError: an argument is not what it should be, or the strategy is being traced.
        """
        from jaxcfr.concrete import is_concrete

        tree = _tree_of(lowered, "from_strategy")
        if type(strategy) in (tuple, list):
            strategy = tuple(np.asarray(v, tree.dtype) if isinstance(v, (tuple, list)) else v for v in strategy)
        if not is_concrete(strategy, tree):
            raise ProfileError("a profile holds numbers: make it outside of jit, vmap and grad")
        tree.check_strategy(strategy)
        values = []
        for vector, treeplex in zip(strategy, tree.treeplexes, strict=True):
            indices, _ = treeplex.sequence_indices()
            # check_strategy lets rounding below zero pass.
            values.append(np.maximum(np.asarray(vector).astype(np.float64)[indices], 0.0))
        return _bind(lowered, values, variant, iterations, seed)

    @staticmethod
    def from_probabilities(
        lowered: LoweredGame,
        probabilities: Sequence[Sequence[Any]],
        *,
        variant: Any = None,
        iterations: Any = None,
        seed: int | None = None,
    ) -> Profile:
        """Binds probabilities by information set to the keys of a game; kept in float64, whatever the tree's dtype.

        Args:
          lowered: what `jaxcfr.lower` returned.
          probabilities: per player, per information set in the order of `lowered.infoset_keys`, one number per action.
          variant, iterations, seed: see `from_strategy`.

        Raises:
          ProfileError: numbers are missing or are no distribution (within `TOLERANCE`), or an argument is not what it
            should be.
        """
        _tree_of(lowered, "from_probabilities")
        count = len(lowered.infoset_keys)
        if len(probabilities) != count:
            raise ProfileError(f"probabilities of {len(probabilities)} players were given, but the game has {count}")
        values = []
        for player, (rows, keys, actions) in enumerate(
            zip(probabilities, lowered.infoset_keys, lowered.actions, strict=True)
        ):
            if len(rows) != len(keys):
                raise ProfileError(f"player {player} has {len(keys)} information sets, but {len(rows)} rows were given")
            arrays = [np.asarray(row, np.float64) for row in rows]
            for array, key, legal in zip(arrays, keys, actions, strict=True):
                if array.shape != (len(legal),):
                    raise ProfileError(
                        f"player {player} has {len(legal)} actions at the information set {_key_name(key)}, but its "
                        f"row has the shape {array.shape}"
                    )
            values.append(np.concatenate(arrays) if arrays else np.zeros(0))
        return _bind(lowered, values, variant, iterations, seed)

    @staticmethod
    def from_infosets(
        name: str,
        players: Sequence[Sequence[tuple[Hashable, tuple[Hashable, ...], tuple[str, ...], Sequence[float]]]],
        *,
        variant: Any = None,
        iterations: Any = None,
        seed: int | None = None,
    ) -> Profile:
        """Strategies of a game of which there is no tree, for the information sets that are known.

        Args:
          name: of the game.
          players: per player, its information sets: key, actions, their labels, and their probabilities.
          variant, iterations, seed: see `from_strategy`.

        Raises:
          ProfileError: probabilities are no distribution, a key comes twice, or an argument is not what it should be.
        """
        from jaxcfr.regret.text import describe

        builder = _Builder()
        try:
            listed = [[(*infoset,) for infoset in infosets] for infosets in players]
            short = any(len(infoset) != 4 for infosets in listed for infoset in infosets)
        except TypeError:
            short = True
        if short or not isinstance(name, str):
            raise ProfileError(
                "from_infosets takes the name of the game and, per player, a list of (key, actions, labels, "
                f"probabilities); {_FROM_NUMBERS}"
            )
        players = listed
        for player, infosets in enumerate(players):
            builder.add_player()
            for infoset in infosets:
                builder.add_infoset(player, *infoset)
        counts = tuple(len(infosets) for infosets in players)
        sequences = tuple(1 + sum(len(infoset[1]) for infoset in infosets) for infosets in players)
        # Nobody has counted the histories.
        shape = TreeShape(0, 0, 0, counts, sequences)
        return builder.profile(
            {
                "game": name,
                "tree": shape,
                "variant": None if variant is None else describe(variant),
                "iterations": _whole_number("iterations", iterations, 0),
                "seed": _whole_number("seed", seed),
            }
        )

    @staticmethod
    def train(game: Any, iterations: int, **settings: Any) -> Profile:
        """Trains a strategy in one call: `Trainer(game, **settings).train(iterations).profile()`.

        Args:
          game: what `Trainer` takes: a game, its name, or what `jaxcfr.lower` returned.
          iterations: how many, by every worker.
          **settings: of the `Trainer`: algorithm, regret, seed, workers, ...

        Raises:
          OptionError: an argument makes no sense.
        """
        from jaxcfr.trainer import Trainer

        return Trainer(game, **settings).train(iterations).profile()

    def to_strategy(self, lowered: LoweredGame, *, missing: Missing = "error") -> Strategy:
        """The flat vectors of a tree: one array per player, `[L_p]`, in the tree's dtype.

        The tree may be of another game, and smaller: what counts is that the profile has all of its information sets,
        with the same action labels in the same order. What the profile has besides is left out.

        The numbers are the stored ones, except where the tree's dtype is finer than that of the solve (float32 to
        float64): there the probabilities of an information set are rescaled to sum to 1 in the finer one.

        Args:
          lowered: what `jaxcfr.lower` returned.
          missing: whether information sets that the profile does not have are an "error", or played "uniform"ly.

        Raises:
          ProfileError: an information set is missing or has other actions; names the player and the key.
          OptionError: `missing` is something else.
        """
        import jax.numpy as jnp

        tree = _tree_of(lowered, "to_strategy")
        if missing not in ("error", "uniform"):
            raise OptionError(f'missing has to be "error" or "uniform", not {missing!r}')
        if tree.num_players != self.num_players:
            raise ProfileError(
                f"this profile has strategies of {self.num_players} players, but the game has {tree.num_players}; "
                + self._shapes(lowered)
            )
        strategy = []
        for player, (table, keys) in enumerate(zip(self._tables, lowered.infoset_keys, strict=True)):
            rows = np.array([table.numbers.get(key, -1) for key in keys], np.int64)
            unknown = rows < 0
            if missing == "error" and np.any(unknown):
                absent = [key for key, row in zip(keys, rows, strict=True) if row < 0]
                wanted = set(keys)
                instead = [key for key in table.keys if key not in wanted]
                raise ProfileError(
                    f"player {player} has no strategy for the information set{'s'[: len(absent) > 1]} "
                    f"{_key_names(absent)}"
                    + (f", but one for {_key_names(instead)}, which the game does not have" if instead else "")
                    + f"; {self._shapes(lowered)}"
                )
            for key, row, actions, labels in zip(
                keys, rows.tolist(), lowered.actions[player], lowered.action_labels[player], strict=True
            ):
                if row >= 0:
                    self._check_menu(player, key, self._menus[table.menus[row]], actions, labels)
            treeplex = tree.treeplexes[player]
            flat = np.zeros(treeplex.size)
            if len(keys):
                indices, offsets = treeplex.sequence_indices()
                counts = np.diff(offsets)
                shift = np.repeat(table.offsets[rows] - offsets[:-1], counts)
                # Beyond the end where the set is unknown.
                place = np.where(np.repeat(unknown, counts), len(table.probabilities), np.arange(len(indices)) + shift)
                values = np.append(table.probabilities, 1.0)[place]
                total = np.add.reduceat(values, offsets[:-1])
                # Half of what check_strategy grants, so that what it let in comes out again bit for bit.
                finer = np.abs(total - 1) > 500 * np.finfo(tree.dtype).eps
                flat[indices] = values / np.repeat(np.where(finer, total, 1.0), counts)
            strategy.append(jnp.asarray(flat, tree.dtype))
        return tuple(strategy)

    def _shapes(self, lowered: LoweredGame) -> str:
        if self.tree_shape == TreeShape.of(lowered.tree):
            return f"the profile was made for {self.game_name}, the game is {lowered.name}, of the same size"
        return (
            f"the profile was made for {self.game_name} ({self.tree_shape}), "
            f"the game is {lowered.name} ({TreeShape.of(lowered.tree)})"
        )

    # Parts of a game

    def overlaid(self, override: Profile) -> Profile:
        """This profile, with the strategies of another one wherever that has the information set.

        Args:
          override: of the same game or a part of it; usually smaller.

        Raises:
          ProfileError: `override` has an information set that this profile does not have, or other actions in one.
        """
        if not isinstance(override, Profile):
            raise ProfileError(f"a profile can be overlaid with a profile, not with {type(override).__name__}")
        if override.num_players != self.num_players:
            raise ProfileError(
                f"a profile of {self.num_players} players cannot be overlaid with one of {override.num_players}"
            )
        tables = []
        for player, (table, other) in enumerate(zip(self._tables, override._tables, strict=True)):
            values = table.probabilities.copy()
            for number, key in enumerate(other.keys):
                mine = table.numbers.get(key)
                if mine is None:
                    self._unknown(player, key)
                menu, known = override._menus[other.menus[number]], self._menus[table.menus[mine]]
                self._check_menu(player, key, known, menu.actions, menu.labels)
                values[table.offsets[mine] : table.offsets[mine + 1]] = other.row(number)
            tables.append(_Table(table.keys, table.menus, table.offsets, values))
        return Profile(self.game_name, self.tree_shape, self._menus, tables, variant=None, iterations=None, seed=None)

    def restricted(self, keys: Sequence[Sequence[Hashable]], histories: int, terminals: int, depth: int) -> Profile:
        """The strategies at some information sets only.

        Args:
          keys: per player, which.
          histories, terminals, depth: counts of the part of the game that has them.

        Raises:
          ProfileError: there is no such information set.
        """
        tables = []
        for player, (table, wanted) in enumerate(zip(self._tables, keys, strict=True)):
            for key in wanted:
                if key not in table.numbers:
                    self._unknown(player, key)
            rows = np.array([table.numbers[key] for key in wanted], np.int64)
            counts = np.diff(table.offsets)[rows]
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            index = np.arange(offsets[-1]) + np.repeat(table.offsets[rows] - offsets[:-1], counts)
            tables.append(_Table(tuple(wanted), table.menus[rows], offsets, table.probabilities[index]))
        shape = TreeShape(
            histories,
            terminals,
            depth,
            tuple(len(table.keys) for table in tables),
            tuple(len(table.probabilities) + 1 for table in tables),
        )
        return Profile(
            self.game_name,
            shape,
            self._menus,
            tables,
            variant=self.variant,
            iterations=self.iterations,
            seed=self.seed,
        )

    def mapped(self, rule: Callable[[np.ndarray], np.ndarray]) -> Profile:
        """The profile with `rule` applied to the probabilities of each information set.

        Args:
          rule: from probabilities `[actions]` to as many.

        Raises:
          ProfileError: what comes out is no distribution.
        """
        tables = []
        for table in self._tables:
            rows = [np.asarray(rule(table.row(number)), np.float64) for number in range(len(table.keys))]
            if [len(row) for row in rows] != np.diff(table.offsets).tolist():
                raise ProfileError("the rule has to give as many probabilities as it gets")
            values = np.concatenate(rows) if rows else np.zeros(0)
            tables.append(_Table(table.keys, table.menus, table.offsets, values))
        return Profile(
            self.game_name,
            self.tree_shape,
            self._menus,
            tables,
            variant=self.variant,
            iterations=self.iterations,
            seed=self.seed,
        )

    # Playing

    def policy(self, game: Any, player: int | None = None, *, missing: Missing | None = None) -> np.ndarray:
        """The probabilities of the actions at a history, in the order of `game.legal_actions()`.

        Args:
          game: a decision history.
          player: who acts there; None asks the game.
          missing: what comes out at information sets that the profile does not have: "uniform", or an "error"; None is
            uniform in the game that the profile was made for, and an error in another.

        Returns:
          `[number of legal actions]` float64, sums to 1.

        Raises:
          ProfileError: nobody or somebody else acts there, the actions are not those of the profile, or it does not
            have the information set.
        """
        return self._policy(game, player, missing)[1]

    def policy_strict(self, game: Any, player: int | None = None) -> np.ndarray:
        """As `policy`, but information sets that the profile does not have raise `ProfileError`."""
        return self._policy(game, player, "error")[1]

    def act(self, game: Any, player: int | None = None) -> Hashable:
        """The most probable legal action, the first of several.

        Raises:
          ProfileError: as in `policy`.
        """
        actions, probabilities = self._policy(game, player, None)
        return actions[int(probabilities.argmax())]

    def act_stochastic(self, game: Any, player: int | None = None, rng: np.random.Generator | None = None) -> Hashable:
        """A legal action drawn with the probabilities of `policy`.

        Args:
          game: a decision history.
          player: who acts there; None asks the game.
          rng: what draws; it has to be given.

        Raises:
          ProfileError: `rng` is no `numpy.random.Generator`; or as in `policy`.
        """
        if not isinstance(rng, np.random.Generator):
            given = "and got none" if rng is None else f"not {type(rng).__name__}"
            raise ProfileError(
                f"act_stochastic(game, player, rng) needs a numpy.random.Generator as rng, {given}; "
                "numpy.random.default_rng(seed) makes one, and player may be None"
            )
        actions, probabilities = self._policy(game, player, None)
        return actions[int(rng.choice(len(actions), p=probabilities))]

    def _policy(
        self, game: Any, player: int | None, missing: Missing | None
    ) -> tuple[tuple[Hashable, ...], np.ndarray]:
        if not hasattr(game, "is_terminal"):
            raise ProfileError(
                f"a history of a game is needed, such as game.step(action), not {type(game).__name__}; "
                "average_strategy(player, key) takes the key of an information set"
            )
        if game.is_terminal() or game.is_chance():
            kind = "the play has ended" if game.is_terminal() else "chance moves"
            raise ProfileError(f"{game_name(game)}: no player acts at {game!r}: {kind}")
        acting = game.player_to_act()
        if player is None:
            player = acting
        elif player != acting:
            raise ProfileError(f"{game_name(game)}: player {player} does not act at {game!r}: player {acting} does")
        table = self._table(player)
        actions = tuple(game.legal_actions())
        key = game.infoset_key(player)
        number = _number(table, key)
        if number is None:
            if missing == "error":
                self._unknown(player, key)
            if missing is None and game_name(game) != self.game_name:
                raise ProfileError(
                    f"this profile is of {self.game_name}, and has no information set {_key_name(key)} of player "
                    f'{player}, as {game_name(game)} has; missing="uniform" would play uniformly there'
                )
            return actions, np.full(len(actions), 1.0 / len(actions))
        labels = tuple(action_label(game, action) for action in actions)
        self._check_menu(player, key, self._menus[table.menus[number]], actions, labels)
        return actions, table.row(number)

    def _check_menu(
        self, player: int, key: Hashable, menu: _Menu, actions: tuple[Hashable, ...], labels: tuple[str, ...]
    ) -> None:
        if menu.labels != labels:
            raise ProfileError(
                f"player {player} has the actions {_list_text(labels)} at the information set {_key_name(key)}, but "
                f"the profile of {self.game_name} has {_list_text(menu.labels)}: number and order have to be the same"
            )
        # Where labels repeat they do not tell the order, and the actions themselves have to.
        if menu.actions != actions and len(set(labels)) < len(labels):
            raise ProfileError(
                f"player {player} has the actions {_list_text(actions)} at the information set {_key_name(key)}, but "
                f"the profile of {self.game_name} has {_list_text(menu.actions)}, and the labels do not tell them apart"
            )

    def _table(self, player: int) -> _Table:
        return self._tables[integer("player", player, 0, self.num_players - 1, error=ProfileError)]

    def _unknown(self, player: int, key: Hashable) -> NoReturn:
        raise ProfileError(
            f"player {player} has no strategy for the information set {_key_name(key)} "
            f"in this profile of {self.game_name}{near_keys(player, key, self.infoset_keys)}"
        )

    # Looking

    def average_strategy(self, player: int, key: Hashable) -> dict[str, float]:
        """A player's strategy at an information set: from action label to probability, in the order of the actions.

        Labels that occur twice have their action added, `label (action)`.

        Raises:
          ProfileError: there is no such player or information set.
        """
        table = self._table(player)
        number = _number(table, key)
        if number is None:
            self._unknown(player, key)
        labels = self._menus[table.menus[number]].distinct_labels
        return dict(zip(labels, table.row(number).tolist(), strict=True))

    def probabilities(self, player: int, key: Hashable) -> dict[Hashable, float]:
        """As `average_strategy`, but by the actions themselves.

        Raises:
          ProfileError: there is no such player or information set; `has_infoset` says so without an error.
        """
        table = self._table(player)
        number = _number(table, key)
        if number is None:
            self._unknown(player, key)
        return dict(zip(self._menus[table.menus[number]].actions, table.row(number).tolist(), strict=True))

    def has_infoset(self, player: int, key: Hashable) -> bool:
        """Whether there is a strategy for a player's information set.

        Raises:
          ProfileError: there is no such player.
        """
        return _number(self._table(player), key) is not None

    def infosets(self, *, player: int | None = None, pattern: str | None = None) -> Iterator[InfosetStrategy]:
        """The strategies of all information sets, player by player, in the order of the keys.

        Args:
          player: only this player's.
          pattern: only information sets whose key, as `key_text` shows it, contains this text; or, where there is a
            `*` (any text) or a `?` (one character) in it, whose whole key is like it. Upper and lower case are one.

        Raises:
          ProfileError: there is no such player, or the pattern is no text.
        """
        players = range(self.num_players) if player is None else (player,)
        tables = [(p, self._table(p)) for p in players]
        wanted = _matcher(pattern)
        return (
            InfosetStrategy(p, key, self._menus[table.menus[number]].distinct_labels, table.row(number))
            for p, table in tables
            for number, key in enumerate(table.keys)
            if wanted(key_text(key))
        )

    def entropy_summary(self) -> EntropySummary:
        """Mean, minimum and maximum entropy of the strategies, in nats.

        Every information set with more than one action counts once, of whichever player and however likely it is to
        be reached; sets with a single action decide nothing and are left out.
        """
        entropies = []
        for table in self._tables:
            counts = np.diff(table.offsets)
            if not len(counts):
                continue
            total = np.add.reduceat(table.probabilities, table.offsets[:-1])
            p = table.probabilities / np.repeat(total, counts)
            terms = np.where(p > 0, -p * np.log(np.where(p > 0, p, 1.0)), 0.0)
            entropies.append(np.add.reduceat(terms, table.offsets[:-1])[counts > 1])
        values = np.concatenate(entropies) if entropies else np.zeros(0)
        if not len(values):
            return EntropySummary(0.0, 0.0, 0.0, 0)
        return EntropySummary(float(values.mean()), float(values.min()), float(values.max()), len(values))

    def pretty(
        self,
        *,
        max_rows: int | None = 40,
        player: int | None = None,
        pattern: str | None = None,
        width: int | None = None,
    ) -> str:
        """A table for reading: one information set a line, with the probability of every action.

        Args:
          max_rows: show at most this many information sets, and say how many are left out; None shows all.
          player: only this player's.
          pattern: only information sets whose key is like this; see `infosets`.
          width: actions that would go beyond this many columns go on a line of their own; None has no limit.

        Raises:
          OptionError: `max_rows` is negative.
          ProfileError: there is no such player.
        """
        if max_rows is not None:
            max_rows = integer("max_rows", max_rows, 0)
        rows: list[tuple[str, str, list[str]]] = []
        found = 0
        for infoset in self.infosets(player=player, pattern=pattern):
            found += 1
            if max_rows is None or len(rows) < max_rows:
                pieces = _row_pieces(infoset.labels, infoset.probabilities)
                rows.append((str(infoset.player), key_text(infoset.key), pieces))
        first, second = (max(len(row[column]) for row in (_HEADINGS, *rows)) for column in (0, 1))
        lines = [f"{_HEADINGS[0]:>{first}}  {_HEADINGS[1]:<{second}}  strategy"]
        for acting, shown, pieces in rows:
            start, *more = _wrap(pieces, None if width is None else width - first - second - 4)
            lines.append(f"{acting:>{first}}  {shown:<{second}}  {start}")
            lines += [" " * (first + second + 4) + line for line in more]
        if found > len(rows):
            lines.append(f"... and {found - len(rows):,} more information sets (of {found:,})")
        elif not found:
            lines.append("(no information set)" if pattern is None else f"(no information set is like {pattern!r})")
        return "\n".join(lines)

    # Plain formats

    def to_dict(self) -> dict[str, Any]:
        """The profile in dictionaries, lists, strings and numbers, as `json` takes them.

        Returns:
          A dictionary with "format", "version", "game", "tree" (counts), "variant", "iterations", "seed" and
          "players": per player a list of `{"key": .., "actions": [..], "labels": [..], "probabilities": [..]}`.
          Tuples in keys and actions become lists; what JSON has no word for becomes a dictionary such as
          `{"bytes": "00ff"}` or `{"fraction": [1, 3]}`.

        Raises:
          ProfileError: a key or an action is of a type that cannot be written.
        """
        menus = [self._encoded_menu(menu) for menu in self._menus]
        players = []
        for player, table in enumerate(self._tables):
            values, offsets = table.probabilities.tolist(), table.offsets.tolist()
            players.append(
                [
                    {
                        "key": _encode_key(player, key),
                        "actions": list(menus[menu][0]),
                        "labels": list(menus[menu][1]),
                        "probabilities": values[start:stop],
                    }
                    for key, menu, start, stop in zip(
                        table.keys, table.menus.tolist(), offsets[:-1], offsets[1:], strict=True
                    )
                ]
            )
        return {**self._header(), "players": players}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Profile:
        """The inverse of `to_dict`, exact.

        Raises:
          ProfileError: something is missing, misspelt or of the wrong type, the version is another one, or
            probabilities are negative, not finite or do not sum to 1.
        """
        with _malformed():
            facts = _read_header(data, "players")
            builder = _Builder()
            for player, infosets in enumerate(_sequence(data["players"])):
                builder.add_player()
                for infoset in _sequence(infosets):
                    _only(infoset, ("key", "actions", "labels", "probabilities"))
                    builder.add_infoset(
                        player,
                        decode(infoset["key"]),
                        tuple(decode(action) for action in _sequence(infoset["actions"])),
                        tuple(_sequence(infoset["labels"])),
                        _sequence(infoset["probabilities"]),
                    )
            return builder.profile(facts)

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dict` as JSON text, ASCII only; numbers are written so that they read back exactly.

        Raises:
          ProfileError: a key or an action is of a type that cannot be written.
        """
        try:
            return json.dumps(self.to_dict(), allow_nan=False, indent=indent)
        except RecursionError as error:
            raise ProfileError("a key or an action is nested too deeply to be written") from error

    @staticmethod
    def from_json(text: str) -> Profile:
        """The inverse of `to_json`, exact.

        Raises:
          ProfileFileError: the text is no JSON, or not that of a profile; see `from_dict`.
        """
        with _as_file_error("this JSON text"), _malformed():
            return Profile.from_dict(_parse_json(text))

    def to_csv(self) -> str:
        """The profile as CSV text with a header line, one line per action.

        Columns: player, key, action, label, probability, profile. Keys and actions are written as in `to_json`, so
        a text key is in quotes of its own. The last column has the game, the counts of the tree and how the strategy
        came about as JSON in the first line, and is empty after it.

        Raises:
          ProfileError: a key or an action is of a type that cannot be written.
        """
        menus = [
            [(_compact(action), label) for action, label in zip(*self._encoded_menu(menu), strict=True)]
            for menu in self._menus
        ]
        lines = [",".join(_CSV_COLUMNS)]
        extra = _cell(_compact(self._header()))
        for player, table in enumerate(self._tables):
            values, offsets = table.probabilities.tolist(), table.offsets.tolist()
            for key, menu, start in zip(table.keys, table.menus.tolist(), offsets, strict=False):
                shown = _cell(_compact(_encode_key(player, key)))
                for position, (action, label) in enumerate(menus[menu], start):
                    lines.append(f"{player},{shown},{_cell(action)},{_cell(label)},{values[position]!r},{extra}")
                    extra = ""
        if extra:
            lines.append(f",,,,,{extra}")
        return "\n".join(lines) + "\n"

    @staticmethod
    def from_csv(text: str) -> Profile:
        """The inverse of `to_csv`, exact.

        The lines of an information set have to stay together, and the "profile" column of the first has to stay.

        Raises:
          ProfileFileError: the text is not that of a profile; see `from_dict`.
        """
        with _as_file_error("this CSV text"), _malformed():
            records = csv.reader(io.StringIO(text, newline=""), strict=True)
            if tuple(next(records, ())) != _CSV_COLUMNS:
                raise ProfileError(f"the first line has to be {','.join(_CSV_COLUMNS)}")
            rows = list(records)
            if not rows or any(len(row) != len(_CSV_COLUMNS) for row in rows):
                raise ProfileError(f"every line has to have {len(_CSV_COLUMNS)} cells, and there has to be one")
            facts = _read_header(_parse_json(rows[0][5]))
            builder = _Builder()
            for _ in facts["tree"].infosets:
                builder.add_player()
            if rows[0][:5] == [""] * 5:
                rows.pop(0)
            start = 0
            for stop in range(1, len(rows) + 1):
                if stop < len(rows) and rows[stop][:2] == rows[start][:2]:
                    continue
                block = rows[start:stop]
                builder.add_infoset(
                    int(block[0][0]),
                    decode(_parse_json(block[0][1])),
                    tuple(decode(_parse_json(row[2])) for row in block),
                    tuple(row[3] for row in block),
                    [float(row[4]) for row in block],
                )
                start = stop
            return builder.profile(facts)

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the profile to one file, exactly at `path`.

        The file is complete before it gets its name: it is written beside `path`, synced and renamed, so that what
        was there before stays if anything goes wrong. It is a zip of numpy arrays (`numpy.load` opens it, and no
        pickle is in it), and equal profiles give equal bytes.

        Raises:
          ProfileFileError: it cannot be written there.
          ProfileError: a key or an action is of a type that cannot be written.
        """
        data = self._to_bytes()
        write_atomically(path, data, ProfileFileError)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Profile:
        """Reads what `save` wrote, exactly; keys come back as the types they were.

        Raises:
          ProfileFileError: there is no such file, or it is truncated, damaged, of another version, or no profile.
        """
        shown = path_text(path, ProfileFileError)
        try:
            with open(path, "rb") as file:
                data = file.read(_MAGIC_BYTES)
                if _HEADER.encode() not in data or not data.startswith(b"PK\x03\x04"):
                    # A file cut off inside these first bytes cannot be told from a foreign one.
                    raise ProfileFileError(f"{shown}: not a jaxcfr profile{_checkpoint_hint(data + file.read(200))}")
                data += file.read()
        except (OSError, ValueError) as error:
            raise ProfileFileError(f"{shown}: cannot be read: {reason(error)}") from error
        if hashlib.sha256(data[:-_DIGEST]).hexdigest().encode() != data[-_DIGEST:]:
            raise ProfileFileError(f"{shown}: this profile is truncated or damaged")
        with _as_file_error(shown), _malformed():
            return Profile._from_bytes(data)

    def _to_bytes(self) -> bytes:
        header = {**self._header(), "menus": [self._encoded_menu(menu) for menu in self._menus]}
        members = {_HEADER: _json_array(header)}
        for player, table in enumerate(self._tables):
            members[f"keys_{player}"] = _json_array([_encode_key(player, key) for key in table.keys])
            members[f"menus_{player}"] = table.menus
            members[f"probabilities_{player}"] = table.probabilities
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, values in members.items():
                # A ZipInfo without a date has a fixed one, which keeps the bytes reproducible.
                info = zipfile.ZipInfo(f"{name}.npy")
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = 0o644 << 16
                with archive.open(info, "w", force_zip64=False) as member:
                    np.lib.format.write_array(member, values, allow_pickle=False)
            # The comment of a zip is its very end, and other readers skip it.
            archive.comment = _COMMENT + b"0" * _DIGEST
        data = buffer.getvalue()[:-_DIGEST]
        return data + hashlib.sha256(data).hexdigest().encode()

    @staticmethod
    def _from_bytes(data: bytes) -> Profile:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {info.filename: info for info in archive.infolist()}

            def array(name: str, low: int, high: int) -> Any:
                """A member; damaged or hostile ones that would fill the memory are not even begun."""
                info = members[f"{name}.npy"]
                if not low <= info.file_size - _NPY_HEADER <= high:
                    raise ProfileError(f"{name} takes {info.file_size:,} bytes, which does not go with the counts")
                return np.lib.format.read_array(io.BytesIO(archive.read(info)), allow_pickle=False)

            def text(name: str) -> Any:
                most = max(_TEXT_BYTES, _TEXT_RATIO * members[f"{name}.npy"].compress_size)
                return _parse_json(bytes(array(name, 0, most)).decode())

            header = text(_HEADER)
            facts = _read_header(header, "menus")
            shape = facts["tree"]
            if len(members) != 1 + 3 * len(shape.infosets) or len(shape.sequences) != len(shape.infosets):
                raise ProfileError(f"{len(members)} arrays do not go with {len(shape.infosets)} players")
            menus = [
                _menu(tuple(decode(action) for action in _sequence(actions)), tuple(_sequence(labels)))
                for actions, labels in _sequence(header["menus"])
            ]
            sizes = np.array([len(menu.actions) for menu in menus], np.int64)
            tables = []
            for player, (count, sequences) in enumerate(zip(shape.infosets, shape.sequences, strict=True)):
                keys = tuple(decode(key) for key in _sequence(text(f"keys_{player}")))
                if len(keys) != count or sequences - 1 > count * sizes.max(initial=0):
                    raise ProfileError(f"player {player} has {len(keys)} keys, which does not go with the counts")
                numbers = array(f"menus_{player}", 4 * count, 4 * count)
                values = array(f"probabilities_{player}", 8 * (sequences - 1), 8 * (sequences - 1))
                if (numbers.dtype, numbers.shape) != (np.int32, (len(keys),)) or values.dtype != np.float64:
                    raise ProfileError(f"the arrays of player {player} have the wrong type or length")
                if np.any((numbers < 0) | (numbers >= len(menus))):
                    raise ProfileError(f"an information set of player {player} has no actions")
                offsets = np.concatenate([[0], np.cumsum(sizes[numbers])]).astype(np.int64)
                if values.shape != (offsets[-1],):
                    raise ProfileError(f"player {player} has {values.size} probabilities, not {offsets[-1]}")
                tables.append(_Table(keys, numbers, offsets, values))
        return Profile(
            facts["game"],
            facts["tree"],
            menus,
            tables,
            variant=facts["variant"],
            iterations=facts["iterations"],
            seed=facts["seed"],
        )

    def _header(self) -> dict[str, Any]:
        shape = self.tree_shape
        return {
            "format": FORMAT,
            "version": VERSION,
            "game": self.game_name,
            "tree": {
                "histories": shape.histories,
                "terminals": shape.terminals,
                "depth": shape.depth,
                "infosets": list(shape.infosets),
                "sequences": list(shape.sequences),
            },
            "variant": self.variant,
            "iterations": self.iterations,
            "seed": self.seed,
        }

    def _encoded_menu(self, menu: _Menu) -> tuple[list[Any], list[str]]:
        try:
            return [encode(action) for action in menu.actions], list(menu.labels)
        except (UnstorableError, RecursionError) as error:
            raise ProfileError(
                f"the actions {_list_text(menu.actions)} cannot be written: {_unstorable(error)}; a profile file holds "
                f"{STORABLE}: let legal_actions return such values"
            ) from error


def as_profile(source: Any, strategy: Any, what: str) -> Profile:
    """The profile that users mean by what they have in hand.

    Args:
      source: a `Profile`; anything with a method `profile`, such as a `Trainer`; or, with `strategy`, a `LoweredGame`.
      strategy: for a `LoweredGame`, one array `[L_p]` per player.
      what: wants it.

    Raises:
      OptionError: it is none of these.
      StrategyError: the strategy does not fit the game.
    """
    if strategy is not None:
        if not hasattr(source, "infoset_keys") or not hasattr(source, "tree"):
            raise OptionError(
                "a strategy is read with the keys of its game: pass what jaxcfr.lower returned before it, not "
                f"{type(source).__name__}"
            )
        if hasattr(strategy, "players") and hasattr(strategy, "t"):
            raise OptionError(
                "a SolverState holds the last iterate and the sums of the average: pass "
                "jaxcfr.average_strategy(tree, state), or jaxcfr.current_strategy(tree, state)"
            )
        return Profile.from_strategy(source, strategy)
    if isinstance(source, Profile):
        return source
    made = getattr(source, "profile", None)
    found = made() if callable(made) else None
    if isinstance(found, Profile):
        return found
    raise OptionError(
        f"{what} takes a Profile, a Trainer, or a LoweredGame and a strategy, not {type(source).__name__}"
    )


def distinct_labels(game: Any, actions: Sequence[Hashable]) -> tuple[str, ...]:
    """The labels of the actions at a history; those that occur twice with their actions added."""
    return _Menu(tuple(actions), tuple(action_label(game, action) for action in actions)).distinct_labels


def require_storable(lowered: LoweredGame) -> None:
    """Raises `ProfileError` if a key or an action of the game is of a type that no profile file can hold."""
    from jaxcfr.tree.convert import uniform_strategy

    Profile.from_strategy(lowered, uniform_strategy(lowered.tree))._to_bytes()


# Checks


class _Builder:
    """Collects information sets one by one, as the readers find them."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[Any, ...], int] = {}
        self.menus: list[_Menu] = []
        self.players: list[tuple[list[Hashable], list[int], list[int], list[float]]] = []

    def add_player(self) -> None:
        self.players.append(([], [], [0], []))

    def add_infoset(
        self,
        player: int,
        key: Hashable,
        actions: tuple[Hashable, ...],
        labels: tuple[str, ...],
        probabilities: Sequence[float],
    ) -> None:
        if not 0 <= player < len(self.players):
            raise ProfileError(f"there is no player {player}: the tree is said to have {len(self.players)}")
        if not len(actions) == len(labels) == len(probabilities):
            raise ProfileError(
                f"player {player} has {len(actions)} actions, {len(labels)} labels and {len(probabilities)} "
                f"probabilities at the information set {_key_name(key)}"
            )
        for value in probabilities:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ProfileError(
                    f"player {player} has a probability that is no number at the information set {_key_name(key)}: "
                    f"{value!r}"
                )
        keys, menus, offsets, values = self.players[player]
        menu = _menu(actions, labels)
        # Equal actions of different types (1 and True) may well have their own menus.
        number = self.numbers.setdefault((menu, tuple(map(type, actions))), len(self.menus))
        if number == len(self.menus):
            self.menus.append(menu)
        keys.append(key)
        menus.append(number)
        values.extend(map(float, probabilities))
        offsets.append(len(values))

    def profile(self, facts: Mapping[str, Any]) -> Profile:
        tables = [
            _Table(tuple(keys), np.array(menus, np.int32), np.array(offsets, np.int64), np.array(values, np.float64))
            for keys, menus, offsets, values in self.players
        ]
        return Profile(
            facts["game"],
            facts["tree"],
            self.menus,
            tables,
            variant=facts["variant"],
            iterations=facts["iterations"],
            seed=facts["seed"],
        )


def _bind(lowered: LoweredGame, values: Sequence[np.ndarray], variant: Any, iterations: Any, seed: Any) -> Profile:
    """The profile of probabilities, per player concatenated in the order of its information sets, and facts."""
    from jaxcfr.regret.text import describe

    numbers: dict[_Menu, int] = {}
    tables = []
    for player, keys in enumerate(lowered.infoset_keys):
        menus = [
            numbers.setdefault(_Menu(actions, labels), len(numbers))
            for actions, labels in zip(lowered.actions[player], lowered.action_labels[player], strict=True)
        ]
        offsets = np.cumsum([0, *map(len, lowered.actions[player])], dtype=np.int64)
        tables.append(_Table(tuple(keys), np.array(menus, np.int32), offsets, values[player]))
    return Profile(
        lowered.name,
        TreeShape.of(lowered.tree),
        list(numbers),
        tables,
        variant=None if variant is None else describe(variant),
        iterations=_whole_number("iterations", iterations, 0),
        seed=_whole_number("seed", seed),
    )


def _menu(actions: tuple[Hashable, ...], labels: tuple[Any, ...]) -> _Menu:
    if len(actions) != len(labels) or not all(isinstance(label, str) for label in labels):
        raise ProfileError(f"the actions {_list_text(actions)} need one text each as labels, not {_list_text(labels)}")
    return _Menu(actions, labels)


def _check_probabilities(player: int, table: _Table) -> None:
    values, starts = table.probabilities, table.offsets[:-1]
    if not len(starts):
        return
    # A sum of NaN or infinity fails the comparison, as it should.
    with np.errstate(invalid="ignore", over="ignore"):
        bad = ~(np.abs(np.add.reduceat(values, starts) - 1) <= TOLERANCE) | ~(np.minimum.reduceat(values, starts) >= 0)
    if np.any(bad):
        number = int(np.flatnonzero(bad)[0])
        shown = values[table.offsets[number] : table.offsets[number + 1]]
        raise ProfileError(
            f"player {player}'s probabilities at the information set {_key_name(table.keys[number])} are no "
            f"distribution: {_list_text(shown.tolist())}"
        )


def _whole_number(name: str, value: Any, low: int | None = None) -> int | None:
    if value is None:
        return None
    try:
        number = value.__index__()
    except (AttributeError, TypeError) as error:
        raise ProfileError(f"{name} has to be an integer or None, not {value!r}") from error
    if isinstance(value, (bool, np.bool_)) or (low is not None and number < low):
        raise ProfileError(f"{name} has to be an integer{'' if low is None else f' of at least {low}'}, not {value!r}")
    return int(number)


def _tree_of(lowered: Any, what: str) -> GameTree:
    if not hasattr(lowered, "infoset_keys"):
        raise ProfileError(
            f"{what} needs the LoweredGame that jaxcfr.lower returned, which has the keys, not {type(lowered).__name__}"
        )
    tree: GameTree = lowered.tree
    return tree


def _number(table: _Table, key: Any) -> int | None:
    try:
        return table.numbers.get(key)
    except TypeError as error:
        raise ProfileError(f"the information-set key {_key_name(key)} is not hashable") from error


# Text


def key_text(key: Hashable) -> str:
    """A key as tables show it: text as it is where it can be printed."""
    return key if type(key) is str and key and key.isprintable() else repr(key)


def near_keys(player: int, key: Hashable, keys: Sequence[Sequence[Hashable]]) -> str:
    """What follows where a player has no such information set: which it may be, or what keys look like.

    Args:
      player: whose it was said to be.
      key: the unknown one.
      keys: per player, all of them.
    """
    owners = [other for other, its in enumerate(keys) if other != player and key in its]
    if owners:
        return f"; it is one of player {owners[0]}"
    text = _folded(key)
    alike = [known for known in keys[player] if _folded(known) == text]
    if not alike and len(keys[player]) <= _MAX_COMPARED_KEYS:
        texts = {_folded(known): known for known in keys[player]}
        alike = [texts[near] for near in difflib.get_close_matches(text[:200], texts, 3, 0.6)]
    if alike:
        return f"; did you mean {' or '.join(map(_key_name, alike[:3]))}?"
    return f"; its keys are such as {', '.join(map(_key_name, keys[player][:3]))}" if keys[player] else ""


def _folded(key: Hashable) -> str:
    """What people take to be the same has the same."""
    return "".join(key_text(key).casefold().split())


def _matcher(pattern: str | None) -> Callable[[str], bool]:
    """Whether a text is like a pattern; see `Profile.infosets`."""
    if not pattern and (pattern is None or isinstance(pattern, str)):
        return lambda text: True
    if not isinstance(pattern, str):
        raise ProfileError(f"pattern has to be text, not {pattern!r}")
    folded = pattern.casefold()
    if not set(folded) & {"*", "?"}:
        return lambda text: folded in text.casefold()
    # Brackets, in which keys abound, stand for themselves.
    like = re.compile(fnmatch.translate(folded.replace("[", "[[]")))
    return lambda text: any(like.match(shown) for shown in (text.casefold(), text.casefold().strip()))


def _key_name(key: Hashable) -> str:
    """A key as messages show it."""
    return _shorten(repr(key))


def _key_names(keys: Sequence[Hashable]) -> str:
    """The first few of several keys as messages show them."""
    shown = ", ".join(map(_key_name, keys[:_MAX_SHOWN_KEYS]))
    return shown + (f" and {len(keys) - _MAX_SHOWN_KEYS:,} more" if len(keys) > _MAX_SHOWN_KEYS else "")


def _list_text(values: Sequence[Any]) -> str:
    shown = [str(value) if isinstance(value, (str, float)) else repr(value) for value in values[:_MAX_SHOWN_ACTIONS]]
    return f"[{', '.join(shown)}{', ...' if len(values) > _MAX_SHOWN_ACTIONS else ''}]"


def most_probable(probabilities: np.ndarray) -> Sequence[int]:
    """Which actions of an information set a table shows, in order: of many, the most probable."""
    if len(probabilities) <= _MAX_SHOWN_ACTIONS:
        return range(len(probabilities))
    kept = np.argsort(-probabilities, kind="stable")[:_MAX_SHOWN_ACTIONS]
    return sorted(kept.tolist())


def _row_pieces(labels: tuple[str, ...], probabilities: np.ndarray) -> list[str]:
    """The probabilities of an information set; of many actions, the most probable."""
    order = most_probable(probabilities)
    shown = [f"{_label_text(labels[a])} {probabilities[a]:.4f}" for a in order]
    left_out = len(labels) - len(shown)
    return [*shown, f"(and {left_out:,} less probable)"] if left_out else shown


def _wrap(pieces: Sequence[str], width: int | None) -> list[str]:
    """Lines of at most `width` columns, of pieces two columns apart; a longer piece has a line to itself."""
    lines = [""]
    for piece in pieces:
        if lines[-1] and width is not None and len(lines[-1]) + 2 + len(piece) > width:
            lines.append("")
        lines[-1] += f"  {piece}" if lines[-1] else piece
    return lines


def _label_text(label: str) -> str:
    return label if label and label.isprintable() else repr(label)


def _cell(text: str) -> str:
    # By hand, because csv leaves a carriage return unquoted that csv then refuses to read.
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _json_array(value: Any) -> np.ndarray:
    """JSON text as bytes, `[n]` uint8: what a file without pickles can hold."""
    try:
        return np.frombuffer(_compact(value).encode("ascii"), np.uint8)
    except RecursionError as error:
        raise ProfileError("a key or an action is nested too deeply to be written") from error


# Keys and actions


def _unstorable(error: BaseException) -> str:
    return str(error) if isinstance(error, UnstorableError) else "it is nested too deeply"


def _encode_key(player: int, key: Hashable) -> Any:
    try:
        return encode(key)
    except (UnstorableError, RecursionError) as error:
        raise ProfileError(
            f"player {player}'s information-set key {_key_name(key)} cannot be written: {_unstorable(error)}; a "
            f"profile file holds {STORABLE}: let infoset_key return such a value, a tuple of the fields for instance"
        ) from error


def _spelled(value: Any) -> str:
    """`repr`, but with the members of sets in order: equal sets may iterate differently."""
    if isinstance(value, frozenset) and value:
        return f"frozenset({{{', '.join(sorted(map(_spelled, value)))}}})"
    if type(value) is tuple:
        return f"({', '.join(map(_spelled, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


# Reading


def _parse_json(text: Any) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise ProfileError(f"{constant} is no number")

    if not isinstance(text, str):
        raise ProfileError(f"text is needed, not {type(text).__name__}")
    return json.loads(text, parse_constant=refuse)


def _sequence(value: Any) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)):
        raise ProfileError(f"a list is needed, not {_shorten(repr(value))}")
    return value


def _checkpoint_hint(data: bytes) -> str:
    """How a strategy is taken out of a checkpoint, if this is the beginning of one."""
    from jaxcfr.checkpoint import FORMAT as CHECKPOINT

    if CHECKPOINT.encode() not in data:
        return ""
    return ", but a checkpoint: the command that wrote it writes the strategy too, with --resume --out FILE"


def _only(data: Any, names: Sequence[str]) -> None:
    if not isinstance(data, Mapping) or sorted(map(str, data)) != sorted(names):
        shown = ", ".join(map(str, data)) if isinstance(data, Mapping) else _shorten(repr(data))
        raise ProfileError(f"exactly {', '.join(names)} are needed, not {_shorten(shown)}")


def _read_header(data: Any, *more: str) -> dict[str, Any]:
    """The facts that every format has, checked: "game", "tree", "variant", "iterations", "seed"."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ProfileError(f"not a jaxcfr profile, as Profile.to_dict gives it; {_FROM_NUMBERS}")
    if data.get("version") != VERSION:
        raise ProfileError(
            f"a profile of format version {data.get('version')!r}, and this jaxcfr reads version {VERSION}"
        )
    _only(data, ("format", "version", "game", "tree", "variant", "iterations", "seed", *more))
    tree = data["tree"]
    _only(tree, ("histories", "terminals", "depth", "infosets", "sequences"))
    for name in ("game", "variant"):
        if not isinstance(data[name], str) and not (name == "variant" and data[name] is None):
            raise ProfileError(f"{name} has to be text, not {_shorten(repr(data[name]))}")
    counts = [tree["histories"], tree["terminals"], tree["depth"], *tree["infosets"], *tree["sequences"]]
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ProfileError(f"the counts of the tree have to be integers, not {_shorten(repr(counts))}")
    return {
        "game": data["game"],
        "variant": data["variant"],
        "iterations": _whole_number("iterations", data["iterations"], 0),
        "seed": _whole_number("seed", data["seed"]),
        "tree": TreeShape(
            tree["histories"], tree["terminals"], tree["depth"], tuple(tree["infosets"]), tuple(tree["sequences"])
        ),
    }


@contextlib.contextmanager
def _malformed() -> Iterator[None]:
    """Turns whatever the readers meet in malformed data into `ProfileError`."""
    try:
        yield
    except ProfileError:
        raise
    except RecursionError as error:
        raise ProfileError("it is nested too deeply") from error
    except Exception as error:
        # numpy, zipfile, zlib and json document no closed list of what damaged data makes them raise.
        raise ProfileError(f"malformed: {error or type(error).__name__}") from error


@contextlib.contextmanager
def _as_file_error(source: str) -> Iterator[None]:
    try:
        yield
    except ProfileError as error:
        raise ProfileFileError(f"{source}: {error}") from error
