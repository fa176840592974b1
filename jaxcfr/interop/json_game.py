"""Games as JSON files: a tree for people and programs without Python.

A file is one JSON object:

    {
      "format": "jaxcfr game",
      "version": 1,
      "name": "a guess",
      "players": ["chooser", "guesser"],
      "root": "start",
      "nodes": {
        "start": {"chance": [
          {"outcome": "heads", "probability": "1/2", "node": "heads"},
          {"outcome": "tails", "probability": "1/2", "node": "tails"}]},
        "heads": {"player": 1, "infoset": "unseen", "actions": [
          {"action": "heads", "node": "right"},
          {"action": "tails", "node": "wrong"}]},
        "tails": {"player": "guesser", "infoset": "unseen", "actions": [
          {"action": "heads", "node": "wrong too"},
          {"action": "tails", "node": "right too"}]},
        "right": {"payoffs": [-1, 1]},
        "wrong": {"payoffs": [1, -1]},
        "right too": {"payoffs": [-1, 1]},
        "wrong too": {"payoffs": ["1/2", -0.5]}
      }
    }

`name` may be left out. `nodes` has every node by a name of its own, in any order; each but the root is the `node` of
exactly one outcome or action, so that they form a tree. There are three kinds:

* `chance`: its outcomes, each with its `probability`.
* `player`, `infoset`, `actions`: a decision. `player` is a number counted from 0, or a name out of `players`;
  `infoset` is what the player knows. The nodes of one information set have the same actions in the same order.
* `payoffs`: a terminal node, with one payoff per player.

An `outcome`, an `action` and an `infoset` is a text or a number; what games in Python have besides (tuples, fractions,
bytes) is written as in `Profile.to_dict`. A `label` beside an outcome or action names it for readers, where it is not
the outcome or action itself.

A number is a JSON number, or an exact ratio or decimal in quotes: "1/3", "0.1". Probabilities that are all whole
numbers or in quotes have to sum to exactly 1, others within 1e-9. Players have to recall all they knew and did.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any, NoReturn

from jaxcfr.errors import GameError, GameFileError, GameTooLargeError, RecallError
from jaxcfr.games import checks
from jaxcfr.games.base import (
    Action,
    Game,
    Payoff,
    Probability,
    action_label,
    format_path,
    game_name,
    not_enumerable,
)
from jaxcfr.games.options import illegal_action
from jaxcfr.hashables import STORABLE, UnstorableError, decode, encode
from jaxcfr.interop.files import read_text, write_text
from jaxcfr.interop.gambit import parse_number, spell
from jaxcfr.tree.limits import PROBE_AT, refuse_far_too_large

__all__ = ["FORMAT", "VERSION", "JsonGame", "format_json", "parse_json", "read_json", "write_json"]

FORMAT = "jaxcfr game"
"""What every file says that it is."""

VERSION = 1
"""Version of the format; another one is refused."""

_FILE_FIELDS = ("format", "version", "name", "players", "root", "nodes")
_KINDS = (("payoffs",), ("chance",), ("player", "infoset", "actions"))
_MAX_DIGITS = 4000


class _Infoset:
    """An information set, or (`player` = -1) the moves of one chance node."""

    __slots__ = ("actions", "key", "labels", "player", "probabilities")

    def __init__(
        self,
        player: int,
        key: Hashable,
        actions: tuple[Hashable, ...],
        labels: tuple[str, ...],
        probabilities: tuple[Probability, ...] = (),
    ) -> None:
        self.player = player
        self.key = key
        self.actions = actions
        self.labels = labels
        self.probabilities = probabilities


class _Tree:
    """What all histories of one file share: lists over its nodes."""

    __slots__ = ("children", "infosets", "name", "names", "parents", "payoffs", "player_names")

    def __init__(self, name: str, player_names: tuple[str, ...]) -> None:
        self.name = name
        self.player_names = player_names
        self.names: list[str] = []
        self.parents: list[int] = []
        self.infosets: list[_Infoset | None] = []  # None at terminal nodes
        self.children: list[list[int]] = []
        self.payoffs: list[tuple[Payoff, ...]] = []  # empty elsewhere than at terminal nodes


class JsonGame(Game):
    """A history of a game read from a JSON file (a `jaxcfr.Game`), made by `read_json` and `parse_json`.

    Two histories are equal when they are the same node of the same read.
    """

    __slots__ = ("_node", "_tree", "num_players")

    def __init__(self, tree: _Tree, node: int = 0) -> None:
        self._tree = tree
        self._node = node
        self.num_players: int = len(tree.player_names)

    @property
    def name(self) -> str:
        """The name in the file, or the name of the file."""
        return self._tree.name

    @property
    def player_names(self) -> tuple[str, ...]:
        """The names of the players."""
        return self._tree.player_names

    @property
    def node_name(self) -> str:
        """The name of this node in the file."""
        return self._tree.names[self._node]

    @property
    def num_nodes(self) -> int:
        """The number of nodes in the file."""
        return len(self._tree.names)

    def is_terminal(self) -> bool:
        """True at a node with payoffs."""
        return self._tree.infosets[self._node] is None

    def is_chance(self) -> bool:
        """True at a chance node."""
        infoset = self._tree.infosets[self._node]
        return infoset is not None and infoset.player < 0

    def player_to_act(self) -> int:
        """The player of a decision node."""
        return self._decision().player

    def chance_outcomes(self) -> tuple[tuple[Action, Probability], ...]:
        """The outcomes with their probabilities, as the file has them."""
        infoset = self._tree.infosets[self._node]
        if infoset is None or infoset.player >= 0:
            raise GameError(f"{self!r}: chance does not move here")
        return tuple(zip(infoset.actions, infoset.probabilities, strict=True))

    def legal_actions(self) -> tuple[Action, ...]:
        """The actions, in the order of the file; none where no player acts."""
        infoset = self._tree.infosets[self._node]
        return () if infoset is None or infoset.player < 0 else infoset.actions

    def step(self, action: Action) -> JsonGame:
        """The history after an action, or an outcome of chance."""
        infoset = self._tree.infosets[self._node]
        if infoset is None or action not in infoset.actions:
            raise illegal_action(self, action)
        return JsonGame(self._tree, self._tree.children[self._node][infoset.actions.index(action)])

    def terminal_returns(self) -> tuple[Payoff, ...]:
        """The payoffs, as the file has them."""
        if not self.is_terminal():
            raise GameError(f"{self!r}: the play has not ended")
        return self._tree.payoffs[self._node]

    def infoset_key(self, player: int) -> Hashable:
        """The information set of the player who acts; for the others this raises `GameError`."""
        infoset = self._tree.infosets[self._node]
        if infoset is None or player < 0 or infoset.player != player:
            raise GameError(f"{self!r}: player {player} does not act here, and the file does not say what it knows")
        return infoset.key

    def action_label(self, action: Action) -> str:
        """The label of an action or outcome."""
        infoset = self._tree.infosets[self._node]
        if infoset is None or action not in infoset.actions:
            raise illegal_action(self, action)
        return infoset.labels[infoset.actions.index(action)]

    def _decision(self) -> _Infoset:
        infoset = self._tree.infosets[self._node]
        if infoset is None or infoset.player < 0:
            raise GameError(f"{self!r}: no player acts here")
        return infoset

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JsonGame):
            return NotImplemented
        return self._tree is other._tree and self._node == other._node

    def __hash__(self) -> int:
        return hash((id(self._tree), self._node))

    def __repr__(self) -> str:
        return f"<{self.name}: node {_short(self.node_name)}>"


def read_json(path: str | os.PathLike[str]) -> JsonGame:
    """Reads a JSON game file and returns the root of its game; `jaxcfr.interop.json_game` describes the format.

    Raises:
      GameFileError: the file cannot be read or breaks the format; names the file, the node and, where it can be told,
        the line.
      RecallError: a player forgets what it knew or did.
    """
    return parse_json(read_text(path), os.fspath(path))


def parse_json(text: str, source: str = "<string>") -> JsonGame:
    """The root of the game that `text` describes; `source` names it in messages. See `read_json`."""
    return _Parser(text.removeprefix("\ufeff"), source).parse()


def write_json(game: Any, path: str | os.PathLike[str], *, max_nodes: int = 10_000_000) -> None:
    """Writes `game` as a JSON game file, complete or not at all; see `format_json`.

    Raises:
      GameFileError: it cannot be written there; or as in `format_json`.
    """
    write_text(path, format_json(game, max_nodes=max_nodes))


def format_json(game: Any, *, max_nodes: int = 10_000_000) -> str:
    """The text of a JSON game file with the game below the history `game`.

    Reading it gives the same tree, with the same information-set keys, actions, labels, probabilities and payoffs; only
    what players know who do not act is lost. Nodes are named by numbers in the order of the tree, or keep the names
    of the file that they were read from.

    Raises:
      GameTooLargeError: more than `max_nodes` histories.
      GameError: a rule of the game is broken, or a key or an action is of a type that a file cannot hold.
    """
    checks.require_plain(game, "a game file")
    title = game_name(game)
    players = checks.num_players(game.num_players)
    names = getattr(game, "player_names", None)
    if not (isinstance(names, (list, tuple)) and len(names) == players and all(isinstance(n, str) for n in names)):
        names = [f"Player {player + 1}" for player in range(players)]
    kept = isinstance(game, JsonGame)
    nodes: dict[str, Any] = {}
    # A history, its name, and the chain of labels that lead to it.
    waiting: list[tuple[Any, str, Any]] = [(game, game.node_name if kept else "0", None)]
    root = waiting[0][1]
    total = 1
    while waiting:
        state, name, chain = waiting.pop()
        try:
            nodes[name], moves = _describe(state, players)
        except _SampledChanceError:
            raise not_enumerable(title, _path(chain), "a game file") from None
        except (checks.BrokenRuleError, UnstorableError) as error:
            raise GameError(f"{title}: at {_path(chain)}: {error}") from error.__cause__
        if total + len(moves) > max_nodes:
            raise GameTooLargeError(f"{title}: more than max_nodes = {max_nodes} histories")
        if total <= PROBE_AT < total + len(moves):
            refuse_far_too_large(game, max_nodes)
        below = []
        for number, (move, entry) in enumerate(moves, total):
            child = state.step(move)
            entry["node"] = child.node_name if kept else str(number)
            below.append((child, entry["node"], (chain, action_label(state, move))))
        total += len(moves)
        waiting += reversed(below)
    _Parser("", title).tree(_Tree(title, tuple(names)), nodes, root)  # what could not be read back is not written
    head = {"format": FORMAT, "version": VERSION, "name": title, "players": list(names), "root": root}
    header = "".join(f"  {json.dumps(field)}: {json.dumps(value)},\n" for field, value in head.items())
    body = ",\n".join(f"    {json.dumps(name)}: {json.dumps(node, allow_nan=False)}" for name, node in nodes.items())
    return f'{{\n{header}  "nodes": {{\n{body}\n  }}\n}}\n'


class _SampledChanceError(Exception):
    """Chance can only be sampled."""


def _describe(state: Any, players: int) -> tuple[dict[str, Any], list[tuple[Action, dict[str, Any]]]]:
    """A node as the file has it, and its moves with their entries, which still lack the node that follows."""
    if checks.flag("is_terminal()", state.is_terminal()):
        payoffs = state.terminal_returns()
        checked = checks.payoffs(payoffs, players)
        return {"payoffs": [_number(*pair) for pair in zip(payoffs, checked, strict=True)]}, []
    moves: list[tuple[Action, dict[str, Any]]] = []
    if checks.flag("is_chance()", state.is_chance()):
        given = state.chance_outcomes()
        if given is None:
            raise _SampledChanceError
        outcomes, values = checks.chance(given)
        for outcome, *pair in zip(outcomes, values, checks.probabilities(outcomes, values), strict=True):
            moves.append((outcome, {**_named("outcome", state, outcome), "probability": _number(*pair)}))
        return {"chance": [entry for _, entry in moves]}, moves
    player = checks.player(state.player_to_act(), players)
    key = _encoded(state.infoset_key(player))
    moves = [(a, _named("action", state, a)) for a in checks.moves("legal_actions()", state.legal_actions())]
    return {"player": player, "infoset": key, "actions": [entry for _, entry in moves]}, moves


def _named(what: str, state: Any, move: Action) -> dict[str, Any]:
    label = action_label(state, move)
    return {what: _encoded(move)} | ({} if label == str(move) else {"label": label})


def _encoded(value: Any) -> Any:
    try:
        return encode(value)
    except (UnstorableError, RecursionError) as error:
        reason = str(error) if isinstance(error, UnstorableError) else "it is nested too deeply"
        raise UnstorableError(f"{_short(value)} cannot be written: {reason}; a game file holds {STORABLE}") from error


def _number(given: Any, checked: float) -> Any:
    """A number as JSON: a float as such, an exact one as an integer or a ratio in quotes."""
    if isinstance(given, Rational):
        exact = Fraction(int(given.numerator), int(given.denominator))
        return exact.numerator if exact.denominator == 1 and abs(exact) < 2**53 else spell(exact)
    return float(given) if isinstance(given, float) else checked


def _path(chain: Any) -> str:
    path = []
    while chain is not None:
        chain, label = chain
        path.append(label)
    return format_path(path[::-1])


class _Parser:
    """Reads one file."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source

    def fail(self, message: str, node: str | None = None) -> NoReturn:
        raise GameFileError(f"{self.source}{self.place(node)}: {message}")

    def place(self, node: str | None) -> str:
        """Where a node is, for messages: its line, where its name is written as this library does, and its name."""
        if node is None:
            return ""
        found = re.search(rf"{re.escape(json.dumps(node))}\s*:\s*\{{", self.text)
        line = "" if found is None else f", line {self.text.count(chr(10), 0, found.start()) + 1}"
        return f"{line}, node {_short(node)}"

    def load(self) -> Any:
        """The JSON value; names given twice, and numbers that are none, are refused."""

        def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
            found = dict(items)
            if len(found) < len(items):
                names = [name for name, _ in items]
                self.fail(f"the name {_short(next(n for n in names if names.count(n) > 1))} is given twice")
            return found

        def constant(token: str) -> NoReturn:
            self.fail(f"{token} is no number")

        def integer(token: str) -> int:
            if len(token) > _MAX_DIGITS:
                self.fail(f"the number {_short(token)} has more than {_MAX_DIGITS} digits")
            return int(token)

        if not self.text.strip():
            self.fail("the file is empty")
        try:
            return json.loads(self.text, object_pairs_hook=pairs, parse_constant=constant, parse_int=integer)
        except json.JSONDecodeError as error:
            raise GameFileError(
                f"{self.source}, line {error.lineno}, column {error.colno}: this is no JSON: {error.msg}"
            ) from error
        except RecursionError as error:
            raise GameFileError(f"{self.source}: this is no game: it is nested too deeply") from error

    def parse(self) -> JsonGame:
        data = self.load()
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            found = data.get("format") if isinstance(data, dict) else None
            instead = f"; it is a {_short(found)[1:-1]}" if isinstance(found, str) else ""
            self.fail(f'not a jaxcfr game: the field "format" has to be "{FORMAT}"{instead}')
        if type(data.get("version")) is not int or data["version"] != VERSION:
            version = _short(data.get("version"))
            self.fail(f"a game of format version {version}, and this jaxcfr reads version {VERSION}")
        self.fields(data, _FILE_FIELDS, ("name",), None)
        players = data["players"]
        if not isinstance(players, list) or not players or not all(isinstance(name, str) for name in players):
            self.fail(f'"players" has to be a list of names, not {_short(players)}')
        name = data.get("name", os.path.basename(self.source) or self.source)
        if not isinstance(name, str) or not name:
            self.fail(f'"name" has to be a text, not {_short(name)}')
        nodes = data["nodes"]
        if not isinstance(nodes, dict):
            self.fail(f'"nodes" has to be an object with the nodes by name, not {_short(nodes)}')
        if not isinstance(data["root"], str) or data["root"] not in nodes:
            self.fail(f'"root" has to be the name of a node, not {_short(data["root"])}')
        return JsonGame(self.tree(_Tree(name, tuple(players)), nodes, data["root"]))

    def tree(self, tree: _Tree, nodes: dict[str, Any], root: str) -> _Tree:
        """Goes through the tree, parents first."""
        infosets: dict[tuple[int, Hashable], _Infoset] = {}
        # Per information set its player's last move before it; per node all players' last moves.
        before: dict[int, Any] = {}
        waiting: list[tuple[str, int, tuple[Any, ...]]] = [(root, -1, (None,) * len(tree.player_names))]
        found = {root}
        while waiting:
            name, parent, last = waiting.pop()
            number = len(tree.names)
            tree.names.append(name)
            tree.parents.append(parent)
            if parent >= 0:
                tree.children[parent].append(number)
            infoset, payoffs, below = self.node(tree, name, nodes[name], infosets)
            tree.infosets.append(infoset)
            tree.payoffs.append(payoffs)
            tree.children.append([])
            if infoset is None:
                continue
            acting = infoset.player
            if acting >= 0 and before.setdefault(id(infoset), last[acting]) != last[acting]:
                self.forgets(tree, number, infoset)
            entries = []
            for move, child in enumerate(below):
                if child not in nodes:
                    self.fail(f"there is no node {_short(child)}, which is said to follow", name)
                if child in found:
                    self.fail(f"node {_short(child)} follows here, but is the root or follows elsewhere too", name)
                found.add(child)
                after = last if acting < 0 else (*last[:acting], (id(infoset), move), *last[acting + 1 :])
                entries.append((child, number, after))
            waiting += reversed(entries)
        if len(found) < len(nodes):
            lost = next(name for name in nodes if name not in found)
            self.fail(f"the node cannot be reached from the root {_short(root)}", lost)
        return tree

    def forgets(self, tree: _Tree, number: int, infoset: _Infoset) -> NoReturn:
        node = tree.parents[number]
        while node >= 0 and tree.infosets[node] is not infoset:
            node = tree.parents[node]
        kind = (
            "a play can pass through it more than once (absent-mindedness)"
            if node >= 0
            else "its nodes follow different earlier moves of the player, which the player forgets (imperfect recall)"
        )
        raise RecallError(
            f"{self.source}{self.place(tree.names[number])}: player {infoset.player}, information set "
            f"{_short(infoset.key)}: {kind}; perfect recall is required"
        )

    def node(
        self, tree: _Tree, name: str, data: Any, infosets: dict[tuple[int, Hashable], _Infoset]
    ) -> tuple[_Infoset | None, tuple[Payoff, ...], list[str]]:
        """A node: its information set, its payoffs, and the nodes below."""
        if not isinstance(data, dict):
            self.fail(f"a node is an object, not {_short(data)}", name)
        kind = next((fields for fields in _KINDS if fields[0] in data), None)
        if kind is None:
            kind = next((fields for fields in _KINDS if any(field in data for field in fields)), None)
        if kind is None:
            self.fields(data, ("payoffs", "chance", "player", "infoset", "actions"), (), name, missing=False)
            self.fail('a node has "payoffs", or "chance", or "player", "infoset" and "actions"', name)
        self.fields(data, kind, (), name)
        if kind[0] == "payoffs":
            return None, self.payoffs(data["payoffs"], len(tree.player_names), name), []
        if kind[0] == "chance":
            moves, labels, below, entries = self.moves(data["chance"], "outcome", name)
            given = [self.number(entry["probability"], "a probability", name) for entry in entries]
            try:
                checks.probabilities(moves, given)
            except checks.BrokenRuleError as error:
                self.fail(str(error), name)
            return _Infoset(-1, None, moves, labels, tuple(given)), (), below
        player = self.player(data["player"], tree.player_names, name)
        key = self.value(data["infoset"], "the information set", name)
        moves, labels, below, _ = self.moves(data["actions"], "action", name)
        infoset = infosets.setdefault((player, key), _Infoset(player, key, moves, labels))
        if (infoset.actions, infoset.labels) != (moves, labels) or [*map(type, moves)] != [*map(type, infoset.actions)]:
            self.fail(
                f"player {player}, information set {_short(key)} has the actions {_short(list(labels))} here, but "
                f"{_short(list(infoset.labels))} at another of its nodes; they have to be the same, in the same order",
                name,
            )
        return infoset, (), below

    def fields(
        self,
        data: Mapping[str, Any],
        known: Sequence[str],
        optional: Sequence[str],
        node: str | None,
        missing: bool = True,
    ) -> None:
        """Refuses fields that are unknown, and misses those that are not there."""
        for field in data:
            if field not in known:
                near = difflib.get_close_matches(field[:200], known, n=1)
                hint = f"; did you mean {near[0]}?" if near else f"; the fields here are {', '.join(known)}"
                self.fail(f"there is no field {_short(field)}{hint}", node)
        lacking = [field for field in known if field not in data and field not in optional]
        if lacking and missing:
            self.fail(f"the field {_short(lacking[0])} is missing", node)

    def moves(
        self, data: Any, what: str, node: str
    ) -> tuple[tuple[Hashable, ...], tuple[str, ...], list[str], list[dict[str, Any]]]:
        """The moves of a node: outcomes or actions, their labels, the nodes that follow, and their entries."""
        if not isinstance(data, list) or not data:
            self.fail(f"the {what}s have to be a list with at least one of them, not {_short(data)}", node)
        known = (what, "label", "probability", "node") if what == "outcome" else (what, "label", "node")
        found, labels, below = [], [], []
        for entry in data:
            if not isinstance(entry, dict):
                self.fail(f'an {what} is an object with "{what}" and "node", not {_short(entry)}', node)
            self.fields(entry, known, ("label",), node)
            move = self.value(entry[what], f"an {what}", node)
            label = entry.get("label", str(move))
            if not isinstance(label, str):
                self.fail(f"a label has to be a text, not {_short(label)}", node)
            if not isinstance(entry["node"], str):
                self.fail(f'"node" has to be the name of a node, not {_short(entry["node"])}', node)
            found.append(move)
            labels.append(label)
            below.append(entry["node"])
        if len(set(found)) < len(found):
            twice = next(move for move in found if found.count(move) > 1)
            self.fail(f"the {what} {_short(twice)} is there twice", node)
        return tuple(found), tuple(labels), below, data

    def value(self, data: Any, what: str, node: str) -> Hashable:
        """An action, an outcome or a key."""
        try:
            return decode(data)
        except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
            self.fail(f"{what} cannot be {_short(data)}: it is a text or a number", node)

    def player(self, data: Any, names: tuple[str, ...], node: str) -> int:
        """A player, by number or name."""
        if type(data) is int and 0 <= data < len(names):
            return data
        if isinstance(data, str) and names.count(data) == 1:
            return names.index(data)
        if isinstance(data, str) and names.count(data) > 1:
            self.fail(f"the player {_short(data)} is more than one: say it by number, from 0", node)
        named = _short(list(names))
        self.fail(
            f"there is no player {_short(data)}: they are numbered 0 to {len(names) - 1}, and named {named}", node
        )

    def payoffs(self, data: Any, players: int, node: str) -> tuple[Payoff, ...]:
        """The payoffs of a terminal node."""
        if not isinstance(data, list) or len(data) != players:
            self.fail(f"payoffs have to be a list of {players} numbers, one per player, not {_short(data)}", node)
        return tuple([self.number(payoff, f"the payoff of player {p}", node) for p, payoff in enumerate(data)])

    def number(self, data: Any, what: str, node: str) -> int | float | Fraction:
        """A JSON number, or an exact one in quotes."""
        if isinstance(data, str):
            try:
                return parse_number(data.strip())
            except ValueError as error:
                self.fail(f"{what}: {_short(data)} {error}", node)
        try:
            checks.number(what, data)
        except checks.BrokenRuleError as error:
            self.fail(str(error) if len(str(error)) < 200 else f"{what} is {_short(data)}, not a number", node)
        number: int | float = data
        return number


def _short(value: Any, limit: int = 60) -> str:
    """A value for a message: one line, not too long, nothing unprintable; text in double quotes."""
    shown = json.dumps(value) if isinstance(value, str) else repr(value)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."
