"""Reader and writer of Gambit's strategic-form files (`.nfg`, "NFG 1").

The format is described in the Gambit documentation, "The strategic game (.nfg) file format" (R. D. McKelvey, A. M.
McLennan and T. L. Turocy, *Gambit: The package for computation in game theory*), in two versions: payoffs listed for
each combination of strategies, or outcomes listed once and referred to by number. In both the first player's strategy
runs fastest. Every number is kept as the exact fraction that the file spells.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from jaxcfr.errors import GameError, GameFileError
from jaxcfr.games.base import Payoff
from jaxcfr.games.normal_form_game import NormalFormGame, normal_form
from jaxcfr.interop.files import read_text, write_text
from jaxcfr.interop.gambit import Tokens, distinct_labels, exact_fraction, quote, spell

__all__ = ["format_nfg", "parse_nfg", "read_nfg", "write_nfg"]


def read_nfg(path: str | os.PathLike[str]) -> NormalFormGame:
    """Reads a Gambit strategic-form file and returns its game; the players pick in order, unseen.

    Raises:
      GameFileError: it cannot be read, or breaks the format; names file, line and reason.
    """
    return parse_nfg(read_text(path), os.fspath(path))


def parse_nfg(text: str, source: str = "<string>") -> NormalFormGame:
    """The game that `text` describes; `source` names it in messages. See `read_nfg`."""
    return _Parser(text.removeprefix("\ufeff"), source).parse()


def format_nfg(game: Any) -> str:
    """The text of a Gambit `.nfg` file, payoff version, with a game in normal form.

    Numbers are written as exact ratios; a float is taken to be the shortest decimal that denotes it.

    Raises:
      GameError: the game is not in normal form, or not at its root.
    """
    if not isinstance(game, NormalFormGame):
        raise GameError(
            f"a Gambit .nfg file holds a game in normal form, not {type(game).__name__}; an .efg file holds any game"
        )
    if game.is_terminal() or game.player_to_act() != 0:
        raise GameError(f"{game!r}: a Gambit .nfg file holds a whole game, not what is left of it")
    names = " ".join(map(quote, game.player_names))
    strategies = "\n".join("{ " + " ".join(map(quote, labels)) + " }" for labels in game.strategies)
    shape = tuple(map(len, game.strategies))
    order = np.arange(len(game.payoffs)).reshape(shape).transpose().reshape(-1)
    body = "\n".join(" ".join(spell(exact_fraction(payoff)) for payoff in game.payoffs[row]) for row in order.tolist())
    return f"NFG 1 R {quote(game.name)} {{ {names} }}\n\n{{\n{strategies}\n}}\n\n{body}\n"


def write_nfg(game: Any, path: str | os.PathLike[str]) -> None:
    """Writes a game in normal form as a Gambit `.nfg` file, complete or not at all; see `format_nfg`.

    Raises:
      GameFileError: it cannot be written.
      GameError: see `format_nfg`.
    """
    write_text(path, format_nfg(game))


class _Parser(Tokens):
    """One pass over the tokens of one file."""

    def parse(self) -> NormalFormGame:
        title, names, index = self.header()
        labels, index = self.strategies(index, len(names))
        if self.tokens[index][:1] == '"':
            self.read_text(index, "the comment")
            index += 1
        count = math.prod(map(len, labels))
        listed = self.tokens[index][:1] == "{"
        rows = self.outcomes(index, len(names), count) if listed else self.payoffs(index, len(names), count)
        # The file's first player runs fastest, ours slowest.
        shape = tuple(map(len, labels))
        order = np.arange(count).reshape(shape[::-1]).transpose().reshape(-1)
        table = np.empty((count, len(names)), object)
        for number, row in enumerate(order.tolist()):
            table[number] = rows[row]
        try:
            return normal_form(
                table.reshape(*shape, len(names)),
                labels,
                players=names,
                name=title or os.path.basename(self.source) or self.source,
            )
        except GameError as error:
            raise GameFileError(f"{self.source}: {error}") from error

    def header(self) -> tuple[str, tuple[str, ...], int]:
        tokens = self.tokens
        if not self.count:
            raise GameFileError(f"{self.source}, line 1: the file is empty: 'NFG 1 R' was expected")
        if tokens[0] == "EFG":
            self.fail(0, "this is an extensive-form game (EFG): its name has to end in .efg")
        if tokens[0] != "NFG":
            self.fail(0, f"not a Gambit strategic-form file: it starts with {tokens[0][:40]} instead of 'NFG 1 R'")
        if tokens[1] != "1":
            self.expected(1, "the version of the format, 1,")
        if tokens[2] not in ("R", "D"):
            self.expected(2, "'R' or 'D' after 'NFG 1'")
        return *self.title_and_players(), 5

    def strategies(self, index: int, players: int) -> tuple[list[tuple[str, ...]], int]:
        """The names of each player's strategies: as many numbers as players, or as many lists of names."""
        token = self.tokens[index]
        what = f"the list of strategies in braces, of {players} players,"
        if token[:1] != "{":
            self.expected(index, what)
        if token != "{":
            items = self.items(index)
            if len(items) != players:
                self.fail(index, f"strategies of {len(items)} players are given, but the game has {players}")
            counts = []
            for player, (inner, item) in enumerate(items, 1):
                if not (item.isdecimal() and item.isascii()) or len(item) > 9 or int(item) < 1:
                    self.fail(index, f"the number of strategies of player {player} is {item[:40]}", inner)
                counts.append(int(item))
            # Names by the million for a file of a few bytes: nothing is made before the table is known to be there.
            if math.prod(counts) > self.count:
                self.fail(index, f"the table has {math.prod(counts):,} combinations of strategies, and the file ends")
            return [tuple(str(number) for number in range(1, count + 1)) for count in counts], index + 1
        labels: list[tuple[str, ...]] = []
        index += 1
        while self.tokens[index] != "}":
            if self.tokens[index][:1] != "{" or self.tokens[index] == "{":
                self.expected(index, f"the list of strategies of player {len(labels) + 1} in braces")
            names = self.text_list(index, f"the name of a strategy of player {len(labels) + 1}")
            if not names:
                self.fail(index, f"player {len(labels) + 1} has no strategy")
            labels.append(distinct_labels(names))
            index += 1
        if len(labels) != players:
            self.fail(index, f"strategies of {len(labels)} players are given, but the game has {players}")
        return labels, index + 1

    def payoffs(self, index: int, players: int, count: int) -> list[Sequence[Payoff]]:
        numbers, _ = self.numbers_from(index, players * count, "payoff")
        return [numbers[first : first + players] for first in range(0, len(numbers), players)]

    def outcomes(self, index: int, players: int, count: int) -> list[Sequence[Payoff]]:
        """Outcomes in braces, then the number of one for each combination; 0 is the one that pays nothing."""
        if self.tokens[index] != "{":
            self.expected(index, "the list of outcomes in braces")
        found: list[Sequence[Payoff]] = [(Fraction(0),) * players]
        index += 1
        while self.tokens[index] != "}":
            token = self.tokens[index]
            if token[:1] != "{" or token == "{":
                self.expected(index, f"outcome {len(found)} in braces")
            items = self.items(index)
            if not items or items[0][1][:1] != '"':
                self.fail(index, f"outcome {len(found)} has no name in double quotes")
            if len(items) - 1 != players:
                given = len(items) - 1
                self.fail(index, f"outcome {len(found)} has {given} payoffs, but the game has {players} players")
            what = f"outcome {len(found)}, payoff of player"
            found.append(
                [self.read_number(index, inner, item, f"{what} {p}") for p, (inner, item) in enumerate(items[1:], 1)]
            )
            index += 1
        numbers, start = self.numbers_from(index + 1, count, "outcome")
        for place, number in zip(start, numbers, strict=True):
            if number.denominator != 1 or not 0 <= number < len(found):
                last = len(found) - 1
                self.fail(place, f"there is no outcome {self.tokens[place][:40]}: they are numbered 0 to {last}")
        return [found[int(number)] for number in numbers]

    def numbers_from(self, index: int, count: int, what: str) -> tuple[list[Fraction], list[int]]:
        """The rest of the file: exactly `count` numbers, and where they stand."""
        numbers: list[Fraction] = []
        places = []
        while index < self.count:
            token = self.tokens[index]
            if token == "," and self.tokens[index - 1] not in (",", "}"):
                index += 1
                continue
            if len(numbers) == count:
                self.fail(index, f"the table is complete after {count} numbers, but the file goes on with {token[:40]}")
            if token[0] in '{}",':
                self.expected(index, f"{what} {len(numbers) + 1} of {count}")
            numbers.append(self.read_number(index, None, token, f"{what} {len(numbers) + 1}"))
            places.append(index)
            index += 1
        if len(numbers) < count:
            self.expected(self.count, f"{what} {len(numbers) + 1} of {count}")
        return numbers, places
