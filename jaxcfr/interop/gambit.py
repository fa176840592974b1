"""Reader and writer of Gambit's extensive-form files (`.efg`, "EFG 2").

The format is described in the Gambit documentation, "The extensive game
(.efg) file format" (https://gambitproject.readthedocs.io, R. D. McKelvey,
A. M. McLennan and T. L. Turocy, *Gambit: The package for computation in game
theory*). A file is a header and the nodes of the tree in prefix order, so one
pass over the tokens with an explicit stack reads a tree of any depth.

Every number is kept as the exact `fractions.Fraction` that the file spells.

Where the documentation and the versions of Gambit differ, this reader

* lets a name, a list of actions or a list of payoffs be left out separately
  once it has been given (recent Gambit wants all of a description or none);
* takes an empty name as no name: it may meet a name given elsewhere, whereas
  two different names of one information set or outcome are an error, as in
  the documentation;
* compares payoffs and probabilities that are given twice by value, not by
  spelling;
* allows one comma after any item of a list.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from math import isfinite
from numbers import Rational
from typing import Any, NoReturn

from jaxcfr.errors import GameError, GameFileError, GameTooLargeError, RecallError
from jaxcfr.games import checks
from jaxcfr.games.base import Action, Game, action_label, format_path, game_name, require_enumerable_chance
from jaxcfr.interop.files import read_text, write_text
from jaxcfr.tree.limits import PROBE_AT, refuse_far_too_large

__all__ = ["EfgGame", "EfgInfoset", "format_efg", "parse_efg", "read_efg", "write_efg"]

_CHANCE = -1
_TERMINAL = -2

# A whole brace list is one token, so that a list met before costs one dictionary look-up. The loops are unrolled
# (plain characters, then an escape, then plain characters ...) so that no text makes the match backtrack at length,
# and a text that never ends runs to the end of the file, so that garbage is scanned once.
_TOKEN = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"?'
    r'|\{[^"{}]*(?:"[^"\\]*(?:\\.[^"\\]*)*"[^"{}]*)*\}'
    r"|[{},]"
    r'|[^\s{},"]+',
    re.DOTALL,
)
_TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')
_BACKSLASHES = re.compile(r'\\+(?=(["]|\Z)?)')
_NEWLINE = re.compile(r"\r\n|\r|\n")
_DECIMAL = r"([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?"
_NUMBER = re.compile(rf"([+-]?){_DECIMAL}(?:/{_DECIMAL})?")
_INTEGER = re.compile(r"\+?[0-9]{1,18}")

# No spelling may expand to more digits than this. Decimals are held shorter than whole numbers, so that a ratio of
# two of them is still a ratio of two whole numbers that can be written and read back. Both are enough for the exact
# value of any double, and below the length from which Python refuses to convert integers.
_MAX_DIGITS = 4000
_MAX_DECIMAL_DIGITS = 1900
_LARGEST = Fraction(sys.float_info.max)

_Payoffs = tuple[Fraction, ...]


class EfgInfoset:
    """An information set of a file: of a player, or (`player` = -1) of chance.

    `number` and `name` identify it in the file, `actions` are its action
    labels as written there, and `probabilities` are those of chance, else
    None. See the Gambit documentation of the `.efg` format.
    """

    __slots__ = ("_labels", "_outcomes", "actions", "legal", "name", "number", "player", "probabilities")

    def __init__(
        self,
        player: int,
        number: int,
        name: str,
        actions: tuple[str, ...],
        probabilities: tuple[Fraction, ...] | None = None,
    ) -> None:
        self.player = player
        self.number = number
        self.name = name
        self.actions = actions
        self.probabilities = probabilities
        self.legal = tuple(range(len(actions)))
        self._labels: tuple[str, ...] | None = None
        self._outcomes: tuple[tuple[int, Fraction], ...] | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """One readable label per action, all different.

        An empty label becomes the action's number, counted from 1; labels
        that occur more than once get `#` and that number.
        """
        if self._labels is None:
            self._labels = distinct_labels(self.actions)
        return self._labels

    @property
    def outcomes(self) -> tuple[tuple[int, Fraction], ...]:
        """The actions of chance with their probabilities."""
        if self._outcomes is None:
            self._outcomes = tuple(zip(self.legal, self.probabilities or (), strict=True))
        return self._outcomes

    def __repr__(self) -> str:
        who = "chance" if self.player == _CHANCE else f"player {self.player + 1}"
        return f"EfgInfoset({who}, {self.number}, {self.name!r}, {self.actions!r})"


class _Outcome:
    """An outcome of a file: payoffs that are added along the path."""

    __slots__ = ("name", "number", "payoffs")

    def __init__(self, number: int, name: str, payoffs: _Payoffs) -> None:
        self.number = number
        self.name = name
        self.payoffs = payoffs


class _EfgFile:
    """What all histories of one file share: the tree as lists over its nodes in prefix order."""

    __slots__ = (
        "children",
        "comment",
        "infosets",
        "labels",
        "outcome_rows",
        "outcomes",
        "parents",
        "player_names",
        "players",
        "returns",
        "rows",
        "source",
        "title",
    )

    def __init__(self, source: str, title: str, comment: str, player_names: tuple[str, ...]) -> None:
        self.source = source
        self.title = title
        self.comment = comment
        self.player_names = player_names
        self.infosets: list[EfgInfoset] = []
        self.outcomes: list[_Outcome | None] = [None]  # row 0 is the null outcome
        self.players: list[int] = []  # the player, _CHANCE or _TERMINAL
        self.rows: list[int] = []  # the information set, -1 at terminal nodes
        self.labels: list[str] = []
        self.parents: list[int] = []
        self.children: list[Sequence[int]] = []
        self.outcome_rows: list[int] = []
        self.returns: list[_Payoffs | None] = []  # summed along the path, at terminal nodes


class EfgGame(Game):
    """A history of a game read from a Gambit `.efg` file (a `jaxcfr.games.base.Game`).

    Actions are the integers 0, 1, ... in the order of the file, and
    `infoset_key` is the number of the information set in the file. All
    probabilities and payoffs are exact `Fraction`s. Two histories are equal
    when they are the same node of the same read. Made by `read_efg` and
    `parse_efg`; the format is the Gambit documentation's.
    """

    __slots__ = ("_file", "_node", "num_players")

    def __init__(self, file: _EfgFile, node: int = 0) -> None:
        self._file = file
        self._node = node
        self.num_players = len(file.player_names)

    def is_terminal(self) -> bool:
        """True at a `t` node."""
        return self._file.players[self._node] == _TERMINAL

    def is_chance(self) -> bool:
        """True at a `c` node."""
        return self._file.players[self._node] == _CHANCE

    def player_to_act(self) -> int:
        """The player of a `p` node, counted from 0."""
        player = self._file.players[self._node]
        if player < 0:
            raise GameError(f"{self.name}: no player acts at {self._place()}")
        return player

    def chance_outcomes(self) -> Sequence[tuple[int, Fraction]]:
        """The moves of chance with their exact probabilities, those of probability 0 included."""
        if self._file.players[self._node] != _CHANCE:
            raise GameError(f"{self.name}: chance does not move at {self._place()}")
        return self._file.infosets[self._file.rows[self._node]].outcomes

    def legal_actions(self) -> Sequence[int]:
        """0 to k - 1 at a `p` node with k actions."""
        if self._file.players[self._node] < 0:
            raise GameError(f"{self.name}: no player acts at {self._place()}")
        return self._file.infosets[self._file.rows[self._node]].legal

    def step(self, action: Action) -> EfgGame:
        """The history after an action (or a move of chance), given by its index."""
        children = self._file.children[self._node]
        try:
            if not 0 <= action < len(children):  # type: ignore[operator]
                raise GameError(f"{self.name}: no action {action!r} at {self._place()}")
            return EfgGame(self._file, children[action])  # type: ignore[call-overload]
        except TypeError:
            raise GameError(f"{self.name}: no action {action!r} at {self._place()}") from None

    def terminal_returns(self) -> Sequence[Fraction]:
        """The payoff of each player, summed over the outcomes on the path."""
        returns = self._file.returns[self._node]
        if returns is None:
            raise GameError(f"{self.name}: {self._place()} is not terminal")
        return returns

    def infoset_key(self, player: int) -> int:
        """The number in the file of the information set of the player who acts.

        A file does not say what the other players know: for them this raises `GameError`.
        """
        if player < 0 or self._file.players[self._node] != player:
            raise GameError(
                f"{self.name}: player {player + 1} does not act at {self._place()}, and a Gambit file does not say "
                "what it knows there"
            )
        return self._file.infosets[self._file.rows[self._node]].number

    def nash_value(self) -> None:
        """None: a file does not say."""
        return None

    def action_label(self, action: Action) -> str:
        """The label of an action here, as in `EfgInfoset.labels`: never empty, all different."""
        labels = self.infoset.labels
        try:
            if not 0 <= action < len(labels):  # type: ignore[operator]
                raise GameError(f"{self.name}: no action {action!r} at {self._place()}")
            return labels[action]  # type: ignore[call-overload]
        except TypeError:
            raise GameError(f"{self.name}: no action {action!r} at {self._place()}") from None

    @property
    def name(self) -> str:
        """The title of the game, or the name of the file where the title is empty."""
        return self._file.title or os.path.basename(self._file.source) or self._file.source

    @property
    def title(self) -> str:
        """The title as written in the file."""
        return self._file.title

    @property
    def comment(self) -> str:
        """The comment of the header, or the empty string."""
        return self._file.comment

    @property
    def source(self) -> str:
        """The path of the file, as given to the reader."""
        return self._file.source

    @property
    def player_names(self) -> tuple[str, ...]:
        """The names of the players as written in the file."""
        return self._file.player_names

    @property
    def num_nodes(self) -> int:
        """The number of nodes in the whole file."""
        return len(self._file.players)

    @property
    def infosets(self) -> tuple[EfgInfoset, ...]:
        """All information sets of the file, chance's included, in the order of their first node."""
        return tuple(self._file.infosets)

    @property
    def infoset(self) -> EfgInfoset:
        """The information set of this history (of chance's move at a chance history)."""
        row = self._file.rows[self._node]
        if row < 0:
            raise GameError(f"{self.name}: {self._place()} is terminal and has no information set")
        return self._file.infosets[row]

    @property
    def node_label(self) -> str:
        """The name of this node in the file, often empty."""
        return self._file.labels[self._node]

    @property
    def outcome_name(self) -> str:
        """The name of the outcome at this node, empty where it has none."""
        outcome = self._file.outcomes[self._file.outcome_rows[self._node]]
        return "" if outcome is None else outcome.name

    def _place(self) -> str:
        file, node, path = self._file, self._node, []
        while node:
            parent = file.parents[node]
            path.append(file.infosets[file.rows[parent]].labels[file.children[parent].index(node)])
            node = parent
        return format_path(path[::-1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EfgGame):
            return NotImplemented
        return self._file is other._file and self._node == other._node

    def __hash__(self) -> int:
        return hash((id(self._file), self._node))

    def __repr__(self) -> str:
        return f"EfgGame({self.name!r}, node {self._node + 1} of {self.num_nodes})"


def read_efg(path: str | os.PathLike[str]) -> EfgGame:
    """Reads a Gambit extensive-form file ("EFG 2 R" or "EFG 2 D") and returns the root of its game.

    Text is UTF-8 (a byte-order mark is allowed; UTF-16 with one is read too),
    or Latin-1 where it is not valid UTF-8. Raises `GameFileError` with file,
    line and reason for a file that cannot be read or breaks the format, and
    `RecallError` for a game without perfect recall. Format: the Gambit
    documentation, "The extensive game (.efg) file format".
    """
    return parse_efg(read_text(path), os.fspath(path))


def parse_efg(text: str, source: str = "<string>") -> EfgGame:
    """The root of the game that `text` describes; `source` names it in messages. See `read_efg`."""
    parser = _Parser(text.removeprefix("\ufeff"), source)
    file = parser.parse()
    violations = recall_violations(file)
    if violations:
        node, _, _ = violations[0]
        where = parser.where(parser.starts[node])
        raise RecallError(_recall_message(file, where, violations))
    return EfgGame(file)


class Tokens:
    """The tokens of one file, what they mean, and messages that say where they stand."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.tokens: list[str] = _TOKEN.findall(text)
        self.count = len(self.tokens)
        self.tokens += ["", ""]  # the end of the file: no other token is empty, and nothing looks further than that
        self.starts: list[int] = []  # the first token of each node
        # What a spelling means, by token: files repeat themselves, and most tokens have been met before.
        self.texts: dict[str, str] = {}
        self.integers: dict[str, int] = {}
        self.numbers: dict[str, Fraction] = {}

    # Messages. Positions are worked out only once something is wrong.

    def position(self, index: int, inner: int | None = None) -> int:
        """The offset in the text of a token, or of a token inside a list."""
        if index >= self.count:
            return len(self.text.rstrip())
        match = next(islice(_TOKEN.finditer(self.text), index, None))
        if inner is None:
            return match.start()
        return next(islice(_TOKEN.finditer(self.text, match.start() + 1, match.end() - 1), inner, None)).start()

    def where(self, index: int, inner: int | None = None) -> str:
        """File, line and column of a token, as every message starts."""
        position = self.position(index, inner)
        line, column = self.line(position)
        return f"{self.source}, line {line}, column {column}"

    def line(self, position: int) -> tuple[int, int]:
        line, start = 1, 0
        for match in _NEWLINE.finditer(self.text, 0, position):
            line, start = line + 1, match.end()
        return line, position - start + 1

    def fail(self, index: int, message: str, inner: int | None = None) -> NoReturn:
        raise GameFileError(f"{self.where(index, inner)}: {message}")

    def expected(self, index: int, what: str) -> NoReturn:
        """Fails at a token that is not `what`."""
        token = self.tokens[index]
        if index >= self.count:
            self.fail(index, f"the file ends here, but {what} was expected")
        if token == "{":
            self.unclosed(index)
        self.fail(index, f"expected {what}, found {_shorten(token)}")

    def unclosed(self, index: int) -> NoReturn:
        """Fails at a brace that does not open a whole list."""
        for following in range(index + 1, self.count):
            token = self.tokens[following]
            if token[0] == "{":
                line, column = self.line(self.position(following))
                self.fail(
                    index, f"the list that opens here is not closed before the '{{' in line {line}, column {column}"
                )
        end, _ = self.line(len(self.text.rstrip()))
        self.fail(index, f"the file ends at line {end} inside the list that opens here: '}}' was expected")

    # Small pieces.

    def read_text(self, index: int, what: str) -> str:
        token = self.tokens[index]
        if token[:1] != '"':
            self.expected(index, f"{what} in double quotes")
        if not _TEXT.fullmatch(token):
            end, _ = self.line(len(self.text.rstrip()))
            self.fail(index, f"the file ends at line {end} inside the text that opens here: '\"' was expected ({what})")
        return self.texts.setdefault(token, _unescape(token))

    def read_integer(self, index: int, what: str) -> int:
        token = self.tokens[index]
        if not _INTEGER.fullmatch(token):
            self.expected(index, f"{what} (a whole number)")
        return self.integers.setdefault(token, int(token))

    def read_number(self, index: int, inner: int | None, token: str, what: str) -> Fraction:
        value = self.numbers.get(token)
        if value is None:
            try:
                value = parse_number(token)
            except ValueError as error:
                self.fail(index, f"{what}: {_shorten(token)} {error}", inner)
            self.numbers[token] = value
        return value

    def items(self, index: int) -> list[tuple[int, str]]:
        """The items of a list with their positions in it, commas checked and dropped."""
        block = self.tokens[index]
        items: list[tuple[int, str]] = []
        after_item = False
        for inner, token in enumerate(_TOKEN.findall(block, 1, len(block) - 1)):
            if token != ",":
                items.append((inner, token))
            elif not after_item:
                self.fail(index, "a comma without an item before it", inner)
            after_item = token != ","
        return items

    def title_and_players(self) -> tuple[str, tuple[str, ...]]:
        """What follows the version in the header of either format."""
        title = self.read_text(3, "the title of the game")
        if self.tokens[4][:1] != "{" or self.tokens[4] == "{":
            self.expected(4, "the list of players in braces")
        names = self.text_list(4, "the name of a player")
        if not names:
            self.fail(4, "the list of players is empty")
        return title, names

    def text_list(self, index: int, what: str) -> tuple[str, ...]:
        return tuple(self.list_text(index, inner, token, what) for inner, token in self.items(index))

    def list_text(self, index: int, inner: int, token: str, what: str) -> str:
        if token[0] != '"':
            self.fail(index, f"expected {what} in double quotes, found {_shorten(token)}", inner)
        return self.texts.setdefault(token, _unescape(token))


class _Parser(Tokens):
    """One pass over the tokens of one file."""

    def chance_list(self, index: int, who: str) -> tuple[tuple[str, ...], tuple[Fraction, ...]]:
        actions: list[str] = []
        probabilities: list[Fraction] = []
        items = self.items(index)
        for (inner, label), (inner_number, number) in zip(items[::2], items[1::2], strict=False):
            actions.append(self.list_text(index, inner, label, f"the name of a move of {who}"))
            value = self.read_number(index, inner_number, number, f"{who}: probability of {_shorten(label)}")
            if value < 0:
                self.fail(index, f"{who}: the probability of {_shorten(label)} is negative: {number}", inner_number)
            probabilities.append(value)
        if len(items) % 2:
            inner, label = items[-1]
            self.list_text(index, inner, label, f"the name of a move of {who}")
            self.fail(index, f"{who}: no probability after {_shorten(label)}", inner)
        if not actions:
            self.fail(index, f"{who}: the list of moves is empty")
        total = sum(probabilities, Fraction(0))
        if total != 1:
            self.fail(index, f"{who}: the probabilities sum to {_show(total)}, not to 1")
        return tuple(actions), tuple(probabilities)

    def payoff_list(self, index: int, number: int, players: int) -> _Payoffs:
        items = self.items(index)
        payoffs = tuple(
            self.read_number(index, inner, token, f"outcome {number}, payoff of player {player}")
            for player, (inner, token) in enumerate(items, 1)
        )
        if len(payoffs) != players:
            self.fail(index, f"outcome {number} has {len(payoffs)} payoffs, but the game has {players} players")
        return payoffs

    # The file.

    def header(self) -> tuple[_EfgFile, int]:
        tokens = self.tokens
        if not self.count:
            raise GameFileError(f"{self.source}, line 1: the file is empty: 'EFG 2 R' was expected")
        if tokens[0] == "NFG":
            self.fail(0, "this is a strategic-form game (NFG): its name has to end in .nfg")
        if tokens[0].startswith("<"):
            self.fail(0, "this looks like XML (a Gambit workspace?), which is not supported: only 'EFG 2' files are")
        if tokens[0] != "EFG":
            self.fail(0, f"not a Gambit extensive-form file: it starts with {_shorten(tokens[0])} instead of 'EFG 2 R'")
        if tokens[1] != "2":
            if _INTEGER.fullmatch(tokens[1]):
                self.fail(1, f"version {tokens[1]} of the format is not supported: only 'EFG 2' files are")
            self.expected(1, "the version of the format, 2,")
        if tokens[2] not in ("R", "D"):
            self.expected(2, "'R' or 'D' after 'EFG 2'")
        title, names = self.title_and_players()
        comment, index = "", 5
        if tokens[5][:1] == '"':
            comment, index = self.read_text(5, "the comment"), 6
        return _EfgFile(self.source, title, comment, names), index

    def parse(self) -> _EfgFile:
        file, i = self.header()
        tokens, texts, integers = self.tokens, self.texts, self.integers
        players = len(file.player_names)
        infosets, outcomes = file.infosets, file.outcomes
        action_lists: dict[str, tuple[str, ...]] = {}
        chance_lists: dict[str, tuple[tuple[str, ...], tuple[Fraction, ...]]] = {}
        payoff_lists: dict[str, _Payoffs] = {}
        infoset_rows: list[dict[int, int]] = [{} for _ in range(players + 1)]  # chance's is the last, hence [-1]
        outcome_rows: dict[int, int] = {}
        zero: _Payoffs = (Fraction(0),) * players
        # The innermost node that still waits for children, and those around it.
        stack: list[tuple[int, list[int], int, _Payoffs | None]] = []
        parent, missing, before = -1, 1, None
        siblings: list[int] = []
        node = 0

        while True:
            self.starts.append(i)
            kind = tokens[i]
            if kind != "t" and kind != "p" and kind != "c":
                self.expected(i, self.next_node(file, parent, siblings))
            label = texts.get(tokens[i + 1])
            if label is None:
                label = self.read_text(i + 1, "the name of the node")
            i += 2

            # The move: player, information set and actions.
            player, row, moves = _TERMINAL, -1, 0
            if kind != "t":
                player = _CHANCE
                if kind == "p":
                    found = integers.get(tokens[i])
                    player = (self.read_integer(i, "the number of the player") if found is None else found) - 1
                    if not 0 <= player < players:
                        self.fail(i, f"there is no player {player + 1}: the game has {players} players")
                    i += 1
                found = integers.get(tokens[i])
                number = self.read_integer(i, "the number of the information set") if found is None else found
                i += 1
                found = infoset_rows[player].get(number)
                token = tokens[i]
                name = ""
                named = i
                if token[:1] == '"':
                    text = texts.get(token)
                    name = self.read_text(i, "the name of the information set") if text is None else text
                    i += 1
                    token = tokens[i]
                if token[:1] == "{":
                    if token == "{":
                        self.unclosed(i)
                    probabilities = None
                    if kind == "p":
                        actions = action_lists.get(token)
                        if actions is None:
                            who = _infoset_words(file, player, number, name)
                            actions = self.text_list(i, f"the name of an action of {who}")
                            if not actions:
                                self.fail(i, f"{who}: the list of actions is empty")
                            action_lists[token] = actions
                    else:
                        moves_of_chance = chance_lists.get(token)
                        if moves_of_chance is None:
                            who = _infoset_words(file, player, number, name)
                            moves_of_chance = chance_lists[token] = self.chance_list(i, who)
                        actions, probabilities = moves_of_chance
                    if found is None:
                        found = infoset_rows[player][number] = len(infosets)
                        infosets.append(EfgInfoset(player, number, name, actions, probabilities))
                    infoset = infosets[found]
                    # Mostly the lists are the same object, made from the same token.
                    if (actions is not infoset.actions or probabilities is not infoset.probabilities) and (
                        actions != infoset.actions or probabilities != infoset.probabilities
                    ):
                        self.redefined(i, file, infoset, actions, probabilities)
                    i += 1
                elif found is None:
                    who = _infoset_words(file, player, number, name)
                    self.expected(i, f"the list of actions in braces, as this is the first node of {who},")
                else:
                    infoset = infosets[found]
                if name and name != infoset.name:
                    if infoset.name:
                        who = _infoset_words(file, player, number, infoset.name)
                        self.fail(named, f"{who} is given another name, {_shorten(tokens[named])}")
                    infoset.name = name
                row, moves = found, len(infoset.actions)

            # The outcome.
            found = integers.get(tokens[i])
            number = self.read_integer(i, "the number of the outcome") if found is None else found
            i += 1
            token = tokens[i]
            name, named, payoffs = "", i, None
            if token[:1] == '"':
                text = texts.get(token)
                name = self.read_text(i, "the name of the outcome") if text is None else text
                i += 1
                token = tokens[i]
            if token[:1] == "{":
                if token == "{":
                    self.unclosed(i)
                payoffs = payoff_lists.get(token)
                if payoffs is None:
                    payoffs = payoff_lists[token] = self.payoff_list(i, number, players)
                i += 1
            outcome_row = 0
            total = before
            if number:
                known = outcome_rows.get(number)
                if known is None:
                    if payoffs is None:
                        self.expected_payoffs(i, named, number)
                    known = outcome_rows[number] = len(outcomes)
                    outcomes.append(_Outcome(number, name, payoffs))
                outcome_row = known
                outcome = outcomes[known]
                assert outcome is not None
                if payoffs is not None and payoffs is not outcome.payoffs and payoffs != outcome.payoffs:
                    self.fail(
                        i - 1,
                        f"outcome {number}{_name_words(outcome.name)} is given other payoffs: {_show_all(payoffs)} "
                        f"here, {_show_all(outcome.payoffs)} before",
                    )
                if name and name != outcome.name:
                    if outcome.name:
                        was = f"outcome {number}{_name_words(outcome.name)}"
                        self.fail(named, f"{was} is given another name, {_shorten(tokens[named])}")
                    outcome.name = name
                if before is None:
                    total = outcome.payoffs
                else:
                    total = tuple([a + b for a, b in zip(before, outcome.payoffs, strict=True)])
            elif i != named:
                self.fail(named, "outcome 0 is the null outcome: it can have neither a name nor payoffs")

            # The node takes its place in the tree.
            siblings.append(node)
            file.players.append(player)
            file.rows.append(row)
            file.labels.append(label)
            file.parents.append(parent)
            file.outcome_rows.append(outcome_row)
            missing -= 1
            if moves:
                stack.append((parent, siblings, missing, before))
                parent, siblings, missing, before = node, [], moves, total
                file.children.append(siblings)
                file.returns.append(None)
            else:
                file.children.append(())
                file.returns.append(zero if total is None else total)
                while not missing and stack:
                    parent, siblings, missing, before = stack.pop()
            node += 1
            if not stack:
                break
        if i < self.count:
            self.fail(i, f"the tree is complete after {node} nodes, but the file goes on with {_shorten(tokens[i])}")
        return file

    def next_node(self, file: _EfgFile, parent: int, siblings: list[int]) -> str:
        """What the next token ought to be, in words."""
        if parent < 0:
            return "the root of the tree ('c', 'p' or 't')"
        infoset = file.infosets[file.rows[parent]]
        action = len(siblings)
        who = _infoset_words(file, infoset.player, infoset.number, infoset.name)
        return (
            f"the node ('c', 'p' or 't') after action {action + 1}{_name_words(infoset.actions[action])} of {who} "
            f"(line {self.line(self.position(self.starts[parent]))[0]})"
        )

    def expected_payoffs(self, index: int, named: int, number: int) -> NoReturn:
        if index == named and self.tokens[index] in ("t", "p", "c"):
            self.fail(index - 1, f"outcome {number} is used before its payoffs are given")
        self.expected(index, f"the list of payoffs of outcome {number} in braces, as it was not described before,")

    def redefined(
        self,
        index: int,
        file: _EfgFile,
        infoset: EfgInfoset,
        actions: tuple[str, ...],
        probabilities: tuple[Fraction, ...] | None,
    ) -> NoReturn:
        who = _infoset_words(file, infoset.player, infoset.number, infoset.name)
        if len(actions) != len(infoset.actions):
            self.fail(index, f"{who} has {len(actions)} actions here, but {len(infoset.actions)} before")
        if actions != infoset.actions:
            now, before = (", ".join(map(repr, labels[:20])) for labels in (actions, infoset.actions))
            self.fail(index, f"{who} has other actions here ({now}) than before ({before})")
        now, before = (_show_all(numbers or ()) for numbers in (probabilities, infoset.probabilities))
        self.fail(index, f"{who} has other probabilities here ({now}) than before ({before})")


def recall_violations(file: _EfgFile) -> list[tuple[int, EfgInfoset, str]]:
    """The information sets that break perfect recall: (first node that shows it, set, kind), in file order.

    A player has perfect recall when all nodes of each of its information sets
    are reached by the same sequence of its own information sets and actions;
    comparing the last pair is enough, as the pairs before it are compared at
    theirs. A set that is met again below itself is the absent-minded case.
    """
    first_sequence: list[int | None] = [None] * len(file.infosets)
    open_nodes = [0] * len(file.infosets)
    offsets: list[int] = []
    total = 1  # sequence 0 is the empty one
    for infoset in file.infosets:
        offsets.append(total)
        total += len(infoset.actions)
    last = [0] * (len(file.player_names) + 1)  # chance's is kept too, in the last place, and never looked at
    found: dict[int, tuple[int, str]] = {}
    path: list[list[int]] = []  # [information set, player, number of actions, current action, player's sequence before]
    for node, player in enumerate(file.players):
        if player != _TERMINAL:
            row = file.rows[node]
            before = last[player]
            if player >= 0:
                if first_sequence[row] is None:
                    first_sequence[row] = before
                elif first_sequence[row] != before:
                    if open_nodes[row]:
                        found[row] = (found.get(row, (node,))[0], "absent-minded")
                    else:
                        found.setdefault(row, (node, "imperfect recall"))
                open_nodes[row] += 1
            last[player] = offsets[row]
            path.append([row, player, len(file.children[node]), 0, before])
            continue
        while path:
            step = path[-1]
            step[3] += 1
            if step[3] < step[2]:
                last[step[1]] = offsets[step[0]] + step[3]
                break
            last[step[1]] = step[4]
            open_nodes[step[0]] -= step[1] >= 0
            path.pop()
    return [(node, file.infosets[row], kind) for row, (node, kind) in found.items()]


def _recall_message(file: _EfgFile, where: str, violations: list[tuple[int, EfgInfoset, str]]) -> str:
    reasons = {
        "absent-minded": "a play can pass through it more than once, so the player forgets that it was there",
        "imperfect recall": "its nodes follow different earlier moves of the player, which the player forgets",
    }
    _, infoset, kind = violations[0]
    message = (
        f"{where}: {_infoset_words(file, infoset.player, infoset.number, infoset.name)}: {kind} ({reasons[kind]}); "
        "perfect recall is required"
    )
    others = [
        f"{_infoset_words(file, other.player, other.number, other.name)} ({kind})" for _, other, kind in violations[1:6]
    ]
    if others:
        message += "; also " + ", ".join(others)
        if len(violations) > 6:
            message += f" and {len(violations) - 6} more"
    return message


def write_efg(game: Game, path: str | os.PathLike[str], *, max_nodes: int = 10_000_000) -> None:
    """Writes `game` as a Gambit `.efg` file; see `format_efg` for what is written.

    The file is complete or absent: it is written under another name beside
    its place and renamed. Raises `GameFileError` where that fails.
    """
    write_text(path, format_efg(game, max_nodes=max_nodes))


def format_efg(game: Game, *, max_nodes: int = 10_000_000) -> str:
    """The text of a Gambit `.efg` file with the game below the history `game`.

    A game that was read from a file keeps its title, comment, names, numbers
    and inner outcomes. In any other game the information sets of each player
    and the outcomes are numbered as they are met, information-set keys become
    the names of the sets, and action labels are those of the first history of
    a set. Names and labels are fitted to what Gambit 16.7 accepts: printable
    ASCII (other characters escaped), without spaces at the ends or in a row.
    Descriptions are repeated at every node, since not every reader of
    the format follows references.

    Numbers are written as exact ratios. A float payoff is taken to be the
    shortest decimal that denotes it. The probabilities of a chance move must
    sum to exactly 1 in a file, which floats rarely do: if ratios with
    denominators up to 1,000,000 lie within a relative 1e-15 of all of them
    and sum to 1, these are written; else the shortest decimals, the largest of
    them corrected by what is missing to 1 (at most 1e-6, else `GameError`).

    Raises `GameTooLargeError` past `max_nodes` histories, and `RecallError`
    for a game without perfect recall, which could not be read back.
    """
    if isinstance(game, EfgGame):
        return _format_file(game._file, game._node)
    return _format_file(_capture(game, max_nodes), 0)


def _format_file(file: _EfgFile, root: int) -> str:
    infoset_texts: dict[int, str] = {-1: ""}
    outcome_texts: dict[int, str] = {0: "0"}
    names = " ".join(map(quote, file.player_names))
    lines = [f"EFG 2 R {quote(file.title)} {{ {names} }}", quote(file.comment), ""]
    waiting, node = 1, root
    while waiting:
        row, outcome_row = file.rows[node], file.outcome_rows[node]
        if row not in infoset_texts:
            infoset_texts[row] = _format_infoset(file.infosets[row])
        if outcome_row not in outcome_texts:
            outcome = file.outcomes[outcome_row]
            assert outcome is not None
            outcome_texts[outcome_row] = _format_outcome(outcome.number, outcome.name, outcome.payoffs)
        outcome_text = outcome_texts[outcome_row]
        if node == root != 0:
            outcome_text = _format_root_outcome(file, root)
        kind = "t" if row < 0 else "c" if file.players[node] == _CHANCE else "p"
        lines.append(f"{kind} {quote(file.labels[node])} {infoset_texts[row]}{outcome_text}")
        waiting += len(file.children[node]) - 1
        node += 1
    lines.append("")
    return "\n".join(lines)


def _format_root_outcome(file: _EfgFile, root: int) -> str:
    """The outcome at the root of a subtree: what was paid on the way there is paid at once."""
    own = file.outcomes[file.outcome_rows[root]]
    paid: list[_Payoffs] = []
    node = file.parents[root]
    while node >= 0:
        outcome = file.outcomes[file.outcome_rows[node]]
        if outcome is not None:
            paid.append(outcome.payoffs)
        node = file.parents[node]
    if not paid:
        return "0" if own is None else _format_outcome(own.number, own.name, own.payoffs)
    if own is not None:
        paid.append(own.payoffs)
    number = 1 + max(outcome.number for outcome in file.outcomes if outcome is not None)
    payoffs = tuple(sum(column, Fraction(0)) for column in zip(*paid, strict=True))
    return _format_outcome(number, own.name if own else "", payoffs)


def _format_infoset(infoset: EfgInfoset) -> str:
    if infoset.probabilities is None:
        items = " ".join(map(quote, infoset.actions))
        return f"{infoset.player + 1} {infoset.number} {quote(infoset.name)} {{ {items} }} "
    items = " ".join(
        f"{quote(label)} {spell(p)}" for label, p in zip(infoset.actions, infoset.probabilities, strict=True)
    )
    return f"{infoset.number} {quote(infoset.name)} {{ {items} }} "


def _format_outcome(number: int, name: str, payoffs: _Payoffs) -> str:
    return f"{number} {quote(name)} {{ {' '.join(map(spell, payoffs))} }}"


# A path as a chain of (earlier path, action), so that extending it costs nothing in a deep tree.
_Chain = tuple[Any, Action] | None


def _capture(game: Game, max_nodes: int) -> _EfgFile:
    """Walks any enumerable game and returns it in the form of a file."""
    checks.require_plain(game, "a game file")
    title = game_name(game)
    players = game.num_players
    names = getattr(game, "player_names", None)
    if not (isinstance(names, (list, tuple)) and len(names) == players and all(isinstance(n, str) for n in names)):
        names = [f"Player {player + 1}" for player in range(players)]
    file = _EfgFile(title, title, "", tuple(map(_fit, names)))
    rows: dict[tuple[int, Hashable], int] = {}
    legal_actions: dict[int, tuple[Action, ...]] = {}
    numbers = [0] * (players + 1)  # chance's is the last
    outcome_rows: dict[_Payoffs, int] = {}
    chains: list[_Chain] = []
    waiting: list[tuple[Any, int, _Chain]] = [(game, -1, None)]
    while waiting:
        state, parent, chain = waiting.pop()
        node = len(file.players)
        if node >= max_nodes:
            raise GameTooLargeError(f"{title}: more than max_nodes = {max_nodes} histories")
        if node == PROBE_AT:
            refuse_far_too_large(game, max_nodes)
        if parent >= 0:
            file.children[parent].append(node)  # type: ignore[attr-defined]
        file.labels.append("")
        file.parents.append(parent)
        chains.append(chain)
        if state.is_terminal():
            payoffs = _exact_payoffs(title, state, players, chain)
            row = outcome_rows.setdefault(payoffs, len(file.outcomes))
            if row == len(file.outcomes):
                file.outcomes.append(_Outcome(row, "", payoffs))
            file.players.append(_TERMINAL)
            file.rows.append(-1)
            file.children.append(())
            file.outcome_rows.append(row)
            file.returns.append(payoffs)
            continue
        if state.is_chance():
            player = _CHANCE
            try:
                outcomes = require_enumerable_chance(state, (), "a Gambit file")
            except GameError:
                # Once more for the message, with the path, which is costly to spell out at every node.
                outcomes = require_enumerable_chance(state, _chain_path(chain), "a Gambit file")
            actions = tuple(action for action, _ in outcomes)
            probabilities = _exact_probabilities(title, [p for _, p in outcomes], chain)
            row = len(file.infosets)
            numbers[_CHANCE] += 1
            labels = tuple(_fit(action_label(state, action)) for action in actions)
            file.infosets.append(EfgInfoset(player, numbers[_CHANCE], "", labels, probabilities))
        else:
            player = int(state.player_to_act())
            if not 0 <= player < players:
                raise GameError(f"{title}: there is no player {player} at {format_path(_chain_path(chain))}")
            key = state.infoset_key(player)
            actions = tuple(state.legal_actions())
            row = rows.setdefault((player, key), len(file.infosets))
            if row == len(file.infosets):
                if not actions or len(set(actions)) < len(actions):
                    raise GameError(
                        f"{title}: the legal actions {actions!r} at {format_path(_chain_path(chain))} are empty or "
                        "not distinct"
                    )
                numbers[player] += 1
                labels = tuple(_fit(action_label(state, action)) for action in actions)
                file.infosets.append(EfgInfoset(player, numbers[player], _fit(str(key)), labels))
                legal_actions[row] = actions
            elif legal_actions[row] != actions:
                raise GameError(
                    f"{title}: player {player}, information set {key!r} has the actions {actions!r} at "
                    f"{format_path(_chain_path(chain))}, but {legal_actions[row]!r} elsewhere"
                )
        file.players.append(player)
        file.rows.append(row)
        file.children.append([])
        file.outcome_rows.append(0)
        file.returns.append(None)
        waiting.extend((state.step(action), node, (chain, action)) for action in reversed(actions))
    violations = recall_violations(file)
    if violations:
        where = f"{title}, at {format_path(_chain_path(chains[violations[0][0]]))}"
        raise RecallError(_recall_message(file, where, violations))
    return file


def _chain_path(chain: _Chain) -> list[Action]:
    path: list[Action] = []
    while chain is not None:
        chain, action = chain
        path.append(action)
    return path[::-1]


def exact_fraction(value: Any) -> Fraction:
    """A number as a fraction: exactly, or for a float the shortest decimal that denotes it."""
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    number = float(value)
    if not isfinite(number):
        raise ValueError(f"{number} is not a finite number")
    return Fraction(repr(number))


def _exact_payoffs(title: str, state: Any, players: int, chain: _Chain) -> _Payoffs:
    returns = state.terminal_returns()
    try:
        payoffs = tuple(map(exact_fraction, returns))
    except (TypeError, ValueError) as error:
        raise GameError(f"{title}: payoff at {format_path(_chain_path(chain))}: {error}") from error
    if len(payoffs) != players:
        raise GameError(
            f"{title}: {len(payoffs)} payoffs at {format_path(_chain_path(chain))}, but the game has {players} players"
        )
    return payoffs


def _exact_probabilities(title: str, probabilities: Sequence[Any], chain: _Chain) -> tuple[Fraction, ...]:
    """Fractions that sum to exactly 1; how is described at `format_efg`."""

    def fail(reason: str) -> NoReturn:
        raise GameError(f"{title}: the probabilities of chance at {format_path(_chain_path(chain))} {reason}")

    try:
        exact = [exact_fraction(p) for p in probabilities]
    except (TypeError, ValueError) as error:
        fail(f"cannot be written: {error}")
    if min(exact) < 0:
        fail(f"are negative: {_show(min(exact))}")
    total = sum(exact, Fraction(0))
    if all(isinstance(p, Rational) for p in probabilities):
        if total != 1:
            fail(f"sum to {_show(total)}, not to 1")
        return tuple(exact)
    simple = [
        p if isinstance(given, Rational) else p.limit_denominator(10**6)
        for p, given in zip(exact, probabilities, strict=True)
    ]
    # Relative closeness, so that a tiny probability does not become 0.
    close = all(abs(s - p) <= p * Fraction(1, 10**15) for s, p in zip(simple, exact, strict=True))
    if close and sum(simple, Fraction(0)) == 1:
        return tuple(simple)
    largest = max(range(len(exact)), key=exact.__getitem__)
    if abs(1 - total) > Fraction(1, 10**6) or exact[largest] + 1 - total <= 0:
        fail(f"sum to {float(total)!r}, not to 1")
    exact[largest] += 1 - total
    return tuple(exact)


def parse_number(token: str) -> Fraction:
    """The exact value of a number's spelling; `ValueError` says what is wrong with it."""
    match = _NUMBER.fullmatch(token)
    if match is None:
        raise ValueError("is not a number")
    sign, top, top_exponent, bottom, bottom_exponent = match.groups()
    value = _parse_decimal(top, top_exponent)
    if bottom is not None:
        divisor = _parse_decimal(bottom, bottom_exponent)
        if not divisor:
            raise ValueError("divides by zero")
        value /= divisor
    if value > _LARGEST:
        raise ValueError("is too large for a floating-point number")
    return -value if sign == "-" else value


def _parse_decimal(digits: str, exponent: str | None) -> Fraction:
    # The exponent is looked at as text first: int() of a long one, let alone 10 to that power, could take forever.
    exponent = (exponent or "0").lstrip("+")
    size = exponent.lstrip("-").lstrip("0") or "0"
    limit = _MAX_DIGITS if size == "0" and "." not in digits else _MAX_DECIMAL_DIGITS
    if len(size) > 4 or len(digits) + int(size) > limit:
        raise ValueError(f"has more than {limit} digits")
    whole, _, decimals = digits.partition(".")
    shift = (-int(size) if exponent[0] == "-" else int(size)) - len(decimals)
    value = int(whole + decimals)
    return Fraction(value * 10**shift) if shift >= 0 else Fraction(value, 10**-shift)


def distinct_labels(actions: tuple[str, ...]) -> tuple[str, ...]:
    labels = [label or str(number) for number, label in enumerate(actions, 1)]
    counts = Counter(labels)
    if len(counts) == len(labels):
        return tuple(labels)
    taken = set(labels)
    for index, label in enumerate(labels):
        if counts[label] > 1:
            candidate = f"{label}#{index + 1}"
            while candidate in taken:
                candidate += "'"
            taken.add(candidate)
            labels[index] = candidate
    return tuple(labels)


def _unescape(token: str) -> str:
    """The text between the quotes; a backslash is itself unless a quote or a backslash follows it."""
    return _ESCAPED.sub(r"\1", token[1:-1]) if "\\" in token else token[1:-1]


def quote(text: str) -> str:
    """A text in quotes, so that `_unescape` gives it back."""
    if not text.isascii():
        # Lone surrogates cannot be stored in any encoding of text.
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if "\\" in text:
        # Gambit itself takes a single backslash before any character but a quote literally: escape only the others.
        text = _BACKSLASHES.sub(
            lambda run: run[0] if len(run[0]) == 1 and run[1] is None else run[0] * 2,
            text,
        )
    return '"' + text.replace('"', '\\"') + '"'


def _fit(text: str) -> str:
    """A name as current Gambit accepts it, from a text that may be anything."""
    text = " ".join(text.split())
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isascii() and c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def spell(value: Fraction) -> str:
    """An exact number as the file has it; refuses what could not be read back."""
    if abs(value) > _LARGEST:
        raise GameError(f"{_show(value)} is too large a number for a game file")
    if value.denominator.bit_length() > 13_000:
        raise GameError(f"the exact ratio of a number near {float(value)!r} is too long for a game file")
    return str(value)


def _infoset_words(file: _EfgFile, player: int, number: int, name: str) -> str:
    who = "chance" if player == _CHANCE else f"player {player + 1}{_name_words(file.player_names[player])}"
    return f"{who}, information set {number}{_name_words(name)}"


def _name_words(name: str) -> str:
    return f" ({_shorten(quote(name))})" if name else ""


def _shorten(token: str, limit: int = 60) -> str:
    """A token for a message: one line, not too long, nothing unprintable."""
    shown = token if token.isprintable() else "".join(_printable(token[: limit + 1]))
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def _printable(text: str) -> Iterator[str]:
    for character in text:
        yield character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def _show(value: Fraction) -> str:
    """A fraction for a message: exact, or rounded where that would fill the screen."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) <= 400:
        return str(value)
    try:
        return f"about {float(value):.17g}"
    except OverflowError:
        return "a huge number"


def _show_all(values: Sequence[Fraction]) -> str:
    shown = ", ".join(map(_show, values[:20]))
    return shown + (", ..." if len(values) > 20 else "")
