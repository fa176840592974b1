"""The rules that one history of a `Game` has to keep by itself, stated once.

`lower`, `validate_game` and whatever else walks a game read what its methods return through these functions. They
know no path: they raise `BrokenRuleError`, and the caller says where.
"""

from __future__ import annotations

import math
import numbers
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from jaxcfr.errors import GameError

PROBABILITY_TOLERANCE = 1e-9
"""How far float chance probabilities may sum from 1; exact fractions have to sum to exactly 1."""

COARSE = 8
"""Of a coarser dtype than float64, probabilities may sum from 1 by this many units of rounding: 1e-6 in float32."""

_SELF_EQUAL = frozenset({int, str, bool, bytes, Fraction, type(None)})
_UNORDERED = (set, frozenset, Mapping)


class BrokenRuleError(GameError):
    """A rule of `Game` is broken; the message does not yet say where."""


def require_instance(game: Any, what: str) -> None:
    """Refuses the class of a game where a game is needed."""
    if isinstance(game, type):
        raise GameError(f"{what} needs a game, not the class {game.__name__}: pass an instance, {game.__name__}(...)")


def require_plain(game: Any, what: str) -> None:
    """Refuses what has not the methods of `jaxcfr.Game`."""
    require_instance(game, what)
    if not hasattr(game, "is_terminal") or not hasattr(game, "step"):
        raise GameError(f"{what} needs a plain game, not {instead_of_game(game)}")


def instead_of_game(game: Any) -> str:
    """What was given where a game is needed, and where a game comes from."""
    if isinstance(game, str | os.PathLike):
        return f"a {type(game).__name__}: jaxcfr.load_game({str(game)!r}) makes one"
    if hasattr(game, "infoset_keys") and hasattr(game, "tree"):
        return f"a {type(game).__name__}, which has been lowered already: give the game itself"
    if hasattr(game, "treeplexes"):
        return f"a {type(game).__name__}, which no longer knows the rules: give the game itself"
    if hasattr(game, "init") and hasattr(game, "returns"):
        return f"an array game: jaxcfr.as_game({type(game).__name__}(...)) makes one"
    return f"{type(game).__name__}, which has not the methods of jaxcfr.Game"


def num_players(value: Any) -> int:
    """A number of players."""
    number = _integer(value)
    if number is None or number < 1:
        raise BrokenRuleError(f"num_players is {value!r}, not a positive integer")
    return number


def player(value: Any, players: int) -> int:
    """What `player_to_act()` returned."""
    number = _integer(value)
    if number is None or not 0 <= number < players:
        raise BrokenRuleError(
            f"player_to_act() returned {value!r}, not a player from 0 to {players - 1} "
            "(and the history is neither terminal nor chance)"
        )
    return number


def flag(what: str, value: Any) -> bool:
    """What `is_terminal()` or `is_chance()` returned."""
    if not isinstance(value, (bool, np.bool_)):
        raise BrokenRuleError(f"{what} returned {value!r} instead of True or False")
    return bool(value)


def moves(what: str, values: Any) -> tuple[Any, ...]:
    """Actions or outcomes, read once; they have to have an order, and to be hashable, distinct and at least one."""
    checked = ordered(what, values)
    if not checked:
        raise BrokenRuleError(f"{what} is empty")
    try:
        distinct = len(set(checked)) == len(checked)
    except TypeError:
        distinct = True  # said below
    for value in checked:
        if type(value) not in _SELF_EQUAL:
            hashable(what, value)
    if not distinct:
        twice = next(value for value in checked if checked.count(value) > 1)
        raise BrokenRuleError(f"{what} has {twice!r} more than once: {list(checked)!r}")
    return checked


def ordered(what: str, values: Any) -> tuple[Any, ...]:
    """The items of anything that can be iterated over and has an order, read once."""
    if type(values) is tuple:
        return values
    if isinstance(values, _UNORDERED) or not _iterable(values):
        raise BrokenRuleError(f"{what} returned {values!r}, not a sequence with an order")
    return tuple(values)


def hashable(what: str, value: Any) -> None:
    """Whether a value can be hashed, and equals itself."""
    try:
        hash(value)
    except TypeError as error:
        raise BrokenRuleError(f"{what} has the unhashable value {value!r}") from error
    if type(value) not in _SELF_EQUAL and not _equals_itself(value):
        raise BrokenRuleError(f"{what} has the value {value!r}, which does not equal itself")


def infoset_key(player: int, key: Any) -> None:
    """Whether a key of whoever acts can be one; without a `return` it would be None everywhere."""
    what = f"infoset_key({player})"
    if key is None:
        raise BrokenRuleError(f"{what} returned None, and player {player} acts here: is a return missing?")
    hashable(what, key)


def chance(outcomes: Any) -> tuple[tuple[Any, ...], Sequence[Any]]:
    """What `chance_outcomes()` returned, read once: the outcomes, and their probabilities as they were given."""
    what = "chance_outcomes()"
    names, values = [], []
    for pair in ordered(what, outcomes):
        if type(pair) is not tuple:
            scalar = isinstance(pair, (str, bytes, *_UNORDERED)) or not _iterable(pair)
            pair = (pair,) if scalar else tuple(pair)
        if len(pair) != 2:
            shown = pair[0] if len(pair) == 1 else pair
            raise BrokenRuleError(f"{what} has {shown!r}, not a pair (outcome, probability)")
        names.append(pair[0])
        values.append(pair[1])
    return moves(what, tuple(names)), values


def probabilities(outcomes: Sequence[Any], values: Sequence[Any]) -> list[float]:
    """The probabilities of outcomes in float64: numbers, not negative, that sum to 1.

    Integers and fractions have to sum to exactly 1, floats within `PROBABILITY_TOLERANCE`. Those that come in a coarser
    dtype may be off by its rounding, and are scaled to sum to 1 in float64.
    """
    kinds = set(map(type, values))
    if kinds == {float}:
        if min(values) >= 0 and abs(sum(values) - 1.0) <= PROBABILITY_TOLERANCE:
            return list(values)
    elif kinds == {Fraction}:
        # Sums of fractions are slow, and a game's have one denominator or a few.
        common = math.lcm(*{p.denominator for p in values})
        numerators = [p.numerator * (common // p.denominator) for p in values]
        if sum(numerators) == common and min(numerators) >= 0:
            return [numerator / common for numerator in numerators]
    return _probabilities(outcomes, values)


def _probabilities(outcomes: Sequence[Any], values: Sequence[Any]) -> list[float]:
    """`probabilities` of any types, and the words where something is wrong."""
    found = [
        number(f"the probability of outcome {outcome!r}", value)
        for outcome, value in zip(outcomes, values, strict=True)
    ]
    for outcome, value, p in zip(outcomes, values, found, strict=True):
        if p < 0:
            raise BrokenRuleError(f"outcome {outcome!r} has the negative probability {value!s}")
    if all(isinstance(value, numbers.Rational) for value in values):
        exact = sum((Fraction(value) for value in values), Fraction(0))
        if exact != 1:
            raise BrokenRuleError(f"the probabilities of chance sum to {exact!s}, not to 1")
        return found
    eps = max(map(_rounding, values))
    total = math.fsum(found) if max(found) < 1e300 else math.inf
    if not abs(total - 1.0) <= max(PROBABILITY_TOLERANCE, COARSE * eps):
        raise BrokenRuleError(f"the probabilities of chance sum to {total!s}, not to 1")
    if eps > PROBABILITY_TOLERANCE:
        found = [p / total for p in found]
        largest = max(range(len(found)), key=found.__getitem__)
        found[largest] = 1.0 - math.fsum(found[:largest] + found[largest + 1 :])
    return found


def payoffs(values: Any, players: int) -> list[float]:
    """What `terminal_returns()` returned: one finite number per player."""
    if isinstance(values, (*_UNORDERED, str, bytes)) or not _iterable(values):
        raise BrokenRuleError(
            f"terminal_returns() returned {values!r}, not a sequence with an order, not one payoff for each of "
            f"{players} players"
        )
    read = tuple(values)
    if len(read) != players:
        shown = values if isinstance(values, (Sequence, np.ndarray)) else read
        raise BrokenRuleError(f"terminal_returns() returned {shown!r}, not one payoff for each of {players} players")
    return [number(f"the payoff of player {p}", payoff) for p, payoff in enumerate(read)]


def number(what: str, value: Any) -> float:
    """A finite real number."""
    if isinstance(value, (bool, np.bool_, str, bytes)) or (
        isinstance(value, (numbers.Number, np.generic)) and not isinstance(value, (numbers.Real, Decimal))
    ):
        raise BrokenRuleError(f"{what} is {value!r}, not a number")
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BrokenRuleError(f"{what} is {_short(value)}, not a number") from error
    if not math.isfinite(result):
        raise BrokenRuleError(f"{what} is {result}, not finite")
    return result


def _short(value: Any) -> str:
    """A value as messages show it; a number beyond the range of floats has many digits."""
    try:
        text = repr(value)
    except ValueError:  # more digits than Python converts
        return "too large"
    return text if len(text) <= 80 else text[:77] + "..."


def _rounding(value: Any) -> float:
    """The unit of rounding of a number's dtype; 0 where it has none, or is exact."""
    dtype = getattr(value, "dtype", None)
    try:
        return 0.0 if dtype is None else float(np.finfo(dtype).eps)
    except ValueError:  # integers, and formats of which numpy knows nothing
        return 0.0


def _integer(value: Any) -> int | None:
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _iterable(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Iterable) or hasattr(type(value), "__getitem__")


def _equals_itself(value: Any) -> bool:
    """False for NaN, also inside of tuples, which take the same NaN for equal and another one for different."""
    if not isinstance(value, (tuple, frozenset)):
        return bool(value == value)
    waiting = [value]
    while waiting:
        for item in waiting.pop():
            if type(item) not in _SELF_EQUAL:
                if isinstance(item, (tuple, frozenset)):
                    waiting.append(item)
                elif item != item:
                    return False
    return True
