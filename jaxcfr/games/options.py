"""Options of a game: their types, defaults and allowed values, stated once.

A game module declares its options as `GameOption`s. Its constructor checks
values against them, its canonical name leaves out the defaults, and the
registry parses and lists them.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from jaxcfr.errors import GameError, OptionError

# ASCII only and no underscores: Python's own int() and float() accept more than a reader would expect.
_INT = re.compile(r"[+-]?[0-9]+\Z")
_FLOAT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_FRACTION = re.compile(r"([+-]?[0-9]+)\s*/\s*([0-9]+)\Z")
_BOOLS = {"True": True, "true": True, "False": False, "false": False}
_MAX_DIGITS = 100


@dataclass(frozen=True)
class GameOption:
    """One option of a game.

    Attributes:
        name: as it is spelled in a game's name, `name(option=value)`.
        type: `int`, `float` (fractions such as 1/3 included), `bool` or `str`.
        default: the value when it is left out; None means that it follows from the others, as `help` says.
        help: one line for a list of games.
        minimum: the least value allowed, or None.
        maximum: the greatest value allowed, or None.
        choices: the values allowed, where there are only a few.
    """

    name: str
    type: type
    default: Any
    help: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Any, ...] = ()

    @property
    def allowed(self) -> str:
        """The allowed values in words, for messages and lists."""
        if self.choices:
            *others, last = [str(choice) for choice in self.choices]
            return f"{', '.join(others)} or {last}" if others else last
        if self.type is bool:
            return "True or False"
        if self.type is str:
            return "any text"
        kind = "an integer" if self.type is int else "a number"
        if self.minimum is not None and self.maximum is not None:
            return f"{kind} from {self.minimum} to {self.maximum}"
        if self.minimum is not None:
            return f"{kind}, {self.minimum} or more"
        if self.maximum is not None:
            return f"{kind}, {self.maximum} or less"
        return kind

    def check(self, game: str, value: Any) -> Any:
        """`value` as this option's own type; raises `OptionError` where it is not allowed."""
        if value is None and self.default is None:
            return None
        checked: Any
        if self.type is bool:
            # numpy's booleans are as good as Python's; 0 and 1 are more likely a slip.
            checked = bool(value) if type(value).__name__ in ("bool", "bool_") else None
        elif self.type is str:
            checked = value if isinstance(value, str) else None
        elif isinstance(value, bool):
            checked = None
        elif self.type is int:
            checked = _as_int(value)
        elif self.type is float:
            checked = _as_number(value)
        else:
            checked = value if isinstance(value, self.type) else None
        if (
            checked is None
            or (self.choices and checked not in self.choices)
            or (self.minimum is not None and checked < self.minimum)
            or (self.maximum is not None and checked > self.maximum)
        ):
            raise self.error(game, value)
        return checked

    def parse(self, game: str, text: str) -> Any:
        """The value written as `text`; raises `OptionError` where it is malformed or not allowed."""
        value: Any = None
        if self.type is bool:
            value = _BOOLS.get(text)
        elif self.type is str:
            quoted = len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]
            value = text[1:-1] if quoted else text
        elif len(text) <= _MAX_DIGITS:
            if self.type is int:
                value = int(text) if _INT.match(text) else None
            elif self.type is float:
                fraction = _FRACTION.match(text)
                if fraction:
                    value = Fraction(int(fraction[1]), int(fraction[2])) if int(fraction[2]) else None
                elif _FLOAT.match(text):
                    value = float(text)
        if value is None:
            raise self.error(game, text, quote=False)
        return self.check(game, value)

    def error(self, game: str, value: Any, reason: str = "", quote: bool = True) -> OptionError:
        """The error for a value that is not allowed; `reason` replaces the allowed values."""
        shown = repr(value) if quote and not isinstance(value, Fraction) else str(value)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        return OptionError(f"{game}: {self.name}={shown} is not allowed; {self.name} is {reason or self.allowed}")


def _as_int(value: Any) -> int | None:
    try:
        return operator.index(value)
    except TypeError:
        return None


def _as_number(value: Any) -> float | Fraction | None:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, str):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def canonical_name(game: str, options: Sequence[GameOption], values: Mapping[str, Any]) -> str:
    """`game(option=value,...)` with only those options that differ from their defaults."""
    shown = [f"{o.name}={values[o.name]}" for o in options if o.name in values and values[o.name] != o.default]
    return f"{game}({','.join(shown)})" if shown else game


def illegal_action(game: Any, action: Any) -> GameError:
    """The error of `step` for an action that cannot be taken at `game`."""
    if game.is_terminal():
        return GameError(f"{game!r}: the play has ended, so {action!r} cannot be taken")
    if game.is_chance():
        return GameError(f"{game!r}: {action!r} is not an outcome of chance here")
    legal = ", ".join(f"{a!r} ({game.action_label(a)})" for a in game.legal_actions())
    return GameError(f"{game!r}: {action!r} is not a legal action here; legal are {legal}")
