"""Games in normal form, from tables of payoffs.

Rules: in order from player 0, unseen by the others, every player picks one of its
strategies; the table has the payoffs of each combination.

Payoffs: those of the table, exactly as they were given.

Source: von Neumann and Morgenstern (1944), *Theory of Games and Economic Behavior*.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from jaxcfr.errors import GameError
from jaxcfr.games import checks
from jaxcfr.games.base import Game, Payoff
from jaxcfr.games.options import GameOption, canonical_name, illegal_action

OPTIONS = (
    GameOption("payoffs", str, "1 -1; -1 1", "player 0's, rows separated by ; and numbers by spaces"),
    GameOption("total", float, 0, "what the payoffs of both players sum to"),
)
_OPTION = {option.name: option for option in OPTIONS}


class _Table:
    """What all histories of one game share."""

    __slots__ = ("actions", "labels", "name", "payoffs", "player_names", "shape")

    def __init__(
        self,
        payoffs: tuple[tuple[Payoff, ...], ...],
        shape: tuple[int, ...],
        labels: tuple[tuple[str, ...], ...],
        player_names: tuple[str, ...],
        name: str,
    ) -> None:
        self.payoffs = payoffs  # by combination of strategies, the last player's running fastest
        self.shape = shape
        self.labels = labels
        self.player_names = player_names
        self.name = name
        self.actions = tuple(tuple(range(count)) for count in shape)


class NormalFormGame(Game):
    """A history of a game in normal form, made by `normal_form` or `matrix_game`; action a is a player's strategy a."""

    __slots__ = ("_picks", "_table", "num_players")

    def __init__(self, table: _Table, picks: tuple[int, ...] = ()) -> None:
        self._table = table
        self._picks = picks
        self.num_players: int = len(table.shape)

    @property
    def name(self) -> str:
        """The name it was given."""
        return self._table.name

    @property
    def player_names(self) -> tuple[str, ...]:
        """The names of the players."""
        return self._table.player_names

    @property
    def strategies(self) -> tuple[tuple[str, ...], ...]:
        """Per player, the names of its strategies."""
        return self._table.labels

    @property
    def payoffs(self) -> tuple[tuple[Payoff, ...], ...]:
        """Every player's payoff, by combination of strategies; the last player's strategy runs fastest."""
        return self._table.payoffs

    def __repr__(self) -> str:
        """The name and the picks so far."""
        picks = " ".join(self._table.labels[player][pick] for player, pick in enumerate(self._picks))
        return f"<{self.name}: {picks or 'start'}>"

    def is_terminal(self) -> bool:
        """True once all have picked."""
        return len(self._picks) == self.num_players

    def is_chance(self) -> bool:
        """Always False: there is no chance."""
        return False

    def player_to_act(self) -> int:
        """The players pick in order."""
        return len(self._picks)

    def chance_outcomes(self) -> tuple[()]:
        """No outcome: there is no chance."""
        return ()

    def legal_actions(self) -> tuple[int, ...]:
        """All strategies of the player to act."""
        return () if self.is_terminal() else self._table.actions[len(self._picks)]

    def step(self, action: Any) -> NormalFormGame:
        """The history after the next pick."""
        if action not in self.legal_actions():
            raise illegal_action(self, action)
        return NormalFormGame(self._table, (*self._picks, int(action)))

    def terminal_returns(self) -> tuple[Payoff, ...]:
        """The payoffs of the combination."""
        if not self.is_terminal():
            raise GameError(f"{self!r}: not all have picked")
        row = 0
        for pick, count in zip(self._picks, self._table.shape, strict=True):
            row = row * count + pick
        return self._table.payoffs[row]

    def infoset_key(self, player: int) -> Hashable:
        """The player's own strategy; "" when it is about to pick, and "?" for each pick that it waits for."""
        if player < len(self._picks):
            own = self._table.labels[player][self._picks[player]]
            return own if self.is_terminal() else own + "?" * (self.num_players - len(self._picks))
        return "?" * (player - len(self._picks))

    def action_label(self, action: Any) -> str:
        """The name of a strategy."""
        return self._table.labels[len(self._picks)][action]


def normal_form(
    payoffs: Any,
    strategies: Sequence[Sequence[str]] | None = None,
    *,
    players: Sequence[str] | None = None,
    name: str = "normal_form",
) -> NormalFormGame:
    """A game in normal form for any number of players.

    Args:
      payoffs: nested sequences or an array, `[A_0, ..., A_{P-1}, P]`: `payoffs[a_0]...[a_{P-1}][p]` is what player p
        gets when the players pick the strategies a_0, ..., a_{P-1}. Integers and fractions stay exact.
      strategies: per player, names of its strategies; numbers from 0 when left out.
      players: their names.
      name: of the game.

    Raises:
      GameError: the table has another shape, or a payoff is no finite number, or names are missing or repeated.
    """
    table = _nested(payoffs)
    shape = table.shape[:-1]
    if table.ndim < 2 or table.shape[-1] != len(shape) or 0 in shape:
        raise GameError(
            f"{name}: payoffs have the shape {table.shape}; for P players it has to be one dimension for the "
            "strategies of each player and then one of size P, such as [2, 3, 2] for two players with two and three"
        )
    return _make(name, shape, table.reshape(-1, len(shape)).tolist(), strategies, players)


_FOR_TWO = "jaxcfr.normal_form([rows, columns, players]) takes a payoff of every player"


def matrix_game(
    payoffs: Any = OPTIONS[0].default,
    total: Payoff = 0,
    strategies: Sequence[Sequence[str]] | None = None,
    *,
    name: str | None = None,
) -> NormalFormGame:
    """A constant-sum game of two players from the payoffs of player 0.

    Args:
      payoffs: `[rows, columns]`, nested sequences or an array; or text, `"0 -1/2; 1 0"`. Player 0 picks the row.
      total: what the payoffs of both players sum to.
      strategies: names of the rows and of the columns; numbers from 0 when left out.
      name: of the game.

    Raises:
      GameError: no table of finite numbers, or names are missing or repeated.
      OptionError: the text cannot be read.
    """
    if isinstance(total, (Sequence, np.ndarray)) and not isinstance(total, str):
        raise GameError(f"matrix_game takes one matrix, of player 0: {_FOR_TWO}")
    total = _OPTION["total"].check("matrix_game", total)
    total = int(total) if total == int(total) else total
    spelled = None
    if isinstance(payoffs, str):
        payoffs = _read(payoffs)
        spelled = "; ".join(" ".join(map(str, row)) for row in payoffs)
    table = _nested(payoffs)
    if table.ndim != 2 or 0 in table.shape:
        raise GameError(
            f"matrix_game: the payoffs of player 0 have the shape {table.shape}, not [rows, columns]; {_FOR_TWO}"
        )
    if name is None:
        shown = {"payoffs": f"'{spelled}'", "total": total} if spelled not in (None, OPTIONS[0].default) else {}
        name = canonical_name("matrix_game", OPTIONS, {"total": total, **shown} if spelled else {})
    rows = []
    for payoff in table.reshape(-1).tolist():
        try:
            rows.append((payoff, total - payoff))
        except TypeError:
            raise GameError(f"{name}: a payoff of player 0 is {payoff!r}, not a number") from None
    return _make(name, table.shape, rows, strategies, None)


def _read(text: str) -> list[list[Payoff]]:
    """A table from text."""
    rows = [re.split(r"[\s,]+", row.strip()) for row in text.strip().strip(";").split(";")]
    number = GameOption("payoffs", float, 0, "", minimum=-1e100, maximum=1e100)
    table = []
    for row in rows:
        if len(row) != len(rows[0]):
            raise _OPTION["payoffs"].error("matrix_game", text, "a table whose rows have the same length")
        values = [number.parse("matrix_game", item) for item in row]
        table.append([int(value) if value == int(value) else value for value in values])
    return table


def _nested(payoffs: Any) -> np.ndarray:
    """Nested sequences as an array of Python objects; sequences of different lengths stop it short."""
    if isinstance(payoffs, np.ndarray) or hasattr(payoffs, "__array__"):
        return np.asarray(payoffs).astype(object)
    try:
        return np.array(payoffs, dtype=object)
    except ValueError as error:
        raise GameError(f"payoffs are no table: {error}") from error


def _make(
    name: str,
    shape: Sequence[int],
    rows: Sequence[Sequence[Any]],
    strategies: Sequence[Sequence[str]] | None,
    players: Sequence[str] | None,
) -> NormalFormGame:
    for number, row in enumerate(rows):
        try:
            checks.payoffs(row, len(shape))
        except checks.BrokenRuleError as error:
            place = ", ".join(map(str, np.unravel_index(number, tuple(shape))))
            raise GameError(f"{name}: at the strategies [{place}]: {error}") from error.__cause__
    if strategies is None:
        strategies = [[str(number) for number in range(count)] for count in shape]
    if players is None:
        players = [f"Player {player + 1}" for player in range(len(shape))]
    if len(strategies) != len(shape) or len(players) != len(shape):
        raise GameError(
            f"{name}: names of strategies for {len(strategies)} players and names of {len(players)} players are given, "
            f"but the table has {len(shape)} players"
        )
    for player, (names, count) in enumerate(zip(strategies, shape, strict=True)):
        if len(names) != count or len(set(names)) < count or not all(isinstance(label, str) for label in names):
            raise GameError(f"{name}: player {player} needs {count} different names of strategies, not {list(names)}")
    return NormalFormGame(
        _Table(
            tuple(tuple(map(_plain, row)) for row in rows),
            tuple(shape),
            tuple(map(tuple, strategies)),
            tuple(players),
            name,
        )
    )


def _plain(value: Any) -> Payoff:
    """A payoff as a Python number; integers, fractions and floats as they are."""
    if type(value) in (int, float, Fraction):
        return value
    number = float(value)
    return int(number) if number == math.floor(number) and abs(number) < 2**53 else number
