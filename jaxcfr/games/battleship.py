"""Battleship.

Rules: each player has a board of `board_height` rows and `board_width` columns, and one
ship of each length in `ship_sizes`. In turns, player 0 first, they put their ships on
their own board, in the given order and unseen by the other, in a row or in a column and
without overlap. Then they take turns to shoot at a square of the other's board, each
`num_shots` times, and learn whether it is water, a hit, or sinks the ship. Without
`allow_repeated_shots` no square is shot at twice. The game also ends as soon as a player
has lost all its ships.

Payoffs: the values (`ship_values`) of the ships one sank, less `loss_multiplier` times
the values of those one lost. Zero-sum where that is 1.

Source: Farina et al. (2019), "Correlation in extensive-form games: saddle-point
formulation and benchmarks". Options are spelled as in OpenSpiel, whose defaults (a board
of 10 x 10, five ships, 50 shots) are too large to enumerate.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

from jaxcfr.games.base import Game, Payoff
from jaxcfr.games.options import GameOption, canonical_name, illegal_action

OPTIONS = (
    GameOption("board_width", int, 2, "columns", minimum=1, maximum=26),
    GameOption("board_height", int, 2, "rows", minimum=1, maximum=26),
    GameOption("ship_sizes", str, "[2]", "lengths of the ships, as [1;2]"),
    GameOption("ship_values", str, "[1]", "values of the ships, as [1;1/2]"),
    GameOption("num_shots", int, 2, "shots of each player", minimum=1, maximum=10_000),
    GameOption("allow_repeated_shots", bool, False, "a square may be shot at twice"),
    GameOption("loss_multiplier", float, 1, "what a lost ship counts against one sunk", minimum=0),
)
_OPTION = {option.name: option for option in OPTIONS}

_MAX_REMEMBERED = 100_000
_LIST = re.compile(r"\s*\[?([^\[\]]*)\]?\s*\Z")


class _Rules:
    """What all histories of one game share.

    Placements are numbered as actions; `squares` has the set of squares of each as bits.
    """

    __slots__ = (
        "fitting",
        "free",
        "labels",
        "loss_multiplier",
        "name",
        "num_shots",
        "places",
        "repeated",
        "shots",
        "sizes",
        "squares",
        "values",
    )

    def __init__(self, **values: Any) -> None:
        sizes = _numbers("ship_sizes", values["ship_sizes"])
        worth = _numbers("ship_values", values["ship_values"])
        values = {**values, "ship_sizes": _spelled(sizes), "ship_values": _spelled(worth)}
        values = {option.name: option.check("battleship", values[option.name]) for option in OPTIONS}
        width, height = values["board_width"], values["board_height"]
        cells = width * height
        self.name = canonical_name("battleship", OPTIONS, values)
        if any(size != int(size) or not 1 <= size <= max(width, height) for size in sizes):
            raise _error(values, "ship_sizes", f"whole numbers from 1 to {max(width, height)}, separated by ;")
        if len(worth) != len(sizes) or min(worth) < 0:
            raise _error(values, "ship_values", f"{len(sizes)} numbers of at least 0 separated by ;, one for each ship")
        self.repeated: bool = values["allow_repeated_shots"]
        self.num_shots: int = values["num_shots"]
        if not self.repeated and self.num_shots > cells:
            raise _error(values, "num_shots", f"at most {cells}, the squares, unless shots may be repeated")
        multiplier = values["loss_multiplier"]
        self.loss_multiplier: Payoff = _exact(Fraction(multiplier))
        self.sizes = tuple(map(int, sizes))
        self.values = tuple(map(_exact, worth))
        self.shots = tuple(range(cells))
        named = [f"{'abcdefghijklmnopqrstuvwxyz'[cell % width]}{cell // width + 1}" for cell in range(cells)]
        self.labels = dict(enumerate(named))
        self.squares: dict[int, dict[int, int]] = {}  # by size, by action
        for size in set(self.sizes):
            across = {
                cells + row * width + column: ((1 << size) - 1) << (row * width + column)
                for row in range(height)
                for column in range(width - size + 1)
            }
            bits = sum(1 << (step * width) for step in range(size))
            down = {
                2 * cells + row * width + column: bits << (row * width + column)
                for row in range(height - size + 1 if size > 1 else 0)
                for column in range(width)
            }
            self.squares[size] = {**across, **down}
        for cell, square in enumerate(named):
            self.labels[cells + cell] = f"{square} across"
            self.labels[2 * cells + cell] = f"{square} down"
        self.places: dict[tuple[int, int], tuple[int, ...]] = {}
        self.free: dict[int, tuple[int, ...]] = {}  # squares not yet shot at, by those that were
        self.fitting: dict[tuple[int, int], bool] = {}
        if not self._fit(0, 0):
            raise _error(values, "ship_sizes", f"such that all ships fit on a board of {width} x {height}")

    def legal_places(self, number: int, taken: int) -> tuple[int, ...]:
        """Where ship `number` can go, squares of earlier ones being taken, so that all later ones still fit."""
        found = self.places.get((number, taken))
        if found is None:
            found = tuple(
                action
                for action, squares in self.squares[self.sizes[number]].items()
                if not squares & taken and self._fit(number + 1, taken | squares)
            )
            _remember(self.places, (number, taken), found)
        return found

    def _fit(self, number: int, taken: int) -> bool:
        """Whether ship `number` and all later ones fit beside the squares taken."""
        if number == len(self.sizes):
            return True
        known = self.fitting.get((number, taken))
        if known is None:
            known = any(
                not squares & taken and self._fit(number + 1, taken | squares)
                for squares in self.squares[self.sizes[number]].values()
            )
            _remember(self.fitting, (number, taken), known)
        return known


class Battleship(Game):
    """Battleship; with c squares, action s < c shoots at square s (row by row), c + s and 2 c + s place a ship there.

    Args:
        board_width: columns.
        board_height: rows.
        ship_sizes: lengths of the ships, as "[1;2]" or a sequence of numbers.
        ship_values: values of the ships, likewise.
        num_shots: shots of each player.
        allow_repeated_shots: a square may be shot at twice.
        loss_multiplier: what a lost ship counts against one sunk.
    """

    __slots__ = ("_moves", "_over", "_rules", "_ships", "_shot", "_sunk", "_views")

    num_players = 2

    def __init__(
        self,
        board_width: int = 2,
        board_height: int = 2,
        ship_sizes: str | Sequence[int] = "[2]",
        ship_values: str | Sequence[Payoff] = "[1]",
        num_shots: int = 2,
        allow_repeated_shots: bool = False,
        loss_multiplier: Payoff = 1,
    ) -> None:
        self._rules = _Rules(
            board_width=board_width,
            board_height=board_height,
            ship_sizes=ship_sizes,
            ship_values=ship_values,
            num_shots=num_shots,
            allow_repeated_shots=allow_repeated_shots,
            loss_multiplier=loss_multiplier,
        )
        self._moves = 0
        self._ships: tuple[tuple[int, ...], ...] = ((), ())  # by owner, the squares of each ship
        self._shot = (0, 0)  # by owner, the squares shot at
        self._sunk: tuple[Payoff, Payoff] = (0, 0)  # by owner, the value of what it lost
        self._views = ("", "")
        self._over = False

    @property
    def name(self) -> str:
        """The canonical name, with the options that differ from their defaults."""
        return self._rules.name

    def __repr__(self) -> str:
        """The name, and what each player has seen."""
        return f"<{self.name}: {self._views[0] or '-'} | {self._views[1] or '-'}>"

    def _placing(self) -> bool:
        return self._moves < 2 * len(self._rules.sizes)

    def is_terminal(self) -> bool:
        """True after the last shot, or when a player has lost all its ships."""
        return self._over

    def is_chance(self) -> bool:
        """Always False: there is no chance."""
        return False

    def player_to_act(self) -> int:
        """The players move in turns."""
        return self._moves % 2

    def chance_outcomes(self) -> tuple[()]:
        """No outcome: there is no chance."""
        return ()

    def legal_actions(self) -> tuple[int, ...]:
        """Where the next ship fits, or the squares to shoot at."""
        rules, player = self._rules, self._moves % 2
        if self._placing():
            ships = self._ships[player]
            return rules.legal_places(len(ships), sum(ships))
        if self._over:
            return ()
        if rules.repeated:
            return rules.shots
        shot = self._shot[1 - player]
        free = rules.free.get(shot)
        if free is None:
            free = tuple(square for square in rules.shots if not shot >> square & 1)
            _remember(rules.free, shot, free)
        return free

    def step(self, action: Any) -> Battleship:
        """The history after the next ship or shot."""
        if action not in self.legal_actions():
            raise illegal_action(self, action)
        rules, player = self._rules, self._moves % 2
        child = object.__new__(Battleship)
        child._rules, child._moves = rules, self._moves + 1
        child._ships, child._shot, child._sunk = self._ships, self._shot, self._sunk
        child._over = False
        label = rules.labels[int(action)]
        if self._placing():
            own = self._ships[player]
            own = (*own, rules.squares[rules.sizes[len(own)]][int(action)])
            child._ships = (own, self._ships[1]) if player == 0 else (self._ships[0], own)
            seen, told = f"{label.replace(' ', '-')} ", "? "
        else:
            other = 1 - player
            before = self._shot[other]
            after = before | 1 << int(action)
            child._shot = (after, self._shot[1]) if other == 0 else (self._shot[0], after)
            outcome, lost = "water", self._sunk[other]
            for ship, value in zip(self._ships[other], rules.values, strict=True):
                if ship >> int(action) & 1:
                    outcome = "hit" if ship & ~after else "sunk"
                    if ship & ~before and not ship & ~after:
                        lost += value
            child._sunk = (lost, self._sunk[1]) if other == 0 else (self._sunk[0], lost)
            child._over = child._moves == 2 * (len(rules.sizes) + rules.num_shots) or (
                outcome == "sunk" and not any(ship & ~after for ship in self._ships[other])
            )
            seen, told = f"{label}={outcome} ", f"<{label} "
        mine, theirs = self._views[player] + seen, self._views[1 - player] + told
        child._views = (mine, theirs) if player == 0 else (theirs, mine)
        return child

    def terminal_returns(self) -> tuple[Payoff, Payoff]:
        """The payoffs of players 0 and 1."""
        lost, multiplier = self._sunk, self._rules.loss_multiplier
        return (lost[1] - multiplier * lost[0], lost[0] - multiplier * lost[1])

    def infoset_key(self, player: int) -> Hashable:
        """One's own ships and shots with what they hit, and the other's moves as far as one sees them, in order.

        As "a1-across ? a2=water <b1 ": a "?" for each ship the other has placed, "<b1" for its shot at b1.
        """
        return self._views[player]

    def action_label(self, action: Any) -> str:
        """The square, from a1 in the first row, and the direction of a ship."""
        return self._rules.labels[action]


def _remember(cache: dict[Any, Any], key: Any, value: Any) -> None:
    """Keeps a value for later, but not ever more of them."""
    if len(cache) >= _MAX_REMEMBERED:
        cache.clear()
    cache[key] = value


def _numbers(option: str, given: Any) -> tuple[Fraction, ...]:
    """The numbers of a list such as [1;1/2], or of a sequence."""
    items: Any = given
    if isinstance(given, str):
        inside = _LIST.match(given)
        items = inside[1].split(";") if inside else ()
    try:
        found = tuple(Fraction(item.strip() if isinstance(item, str) else item) for item in items)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        found = ()
    if not found or len(found) > 26 or any(abs(number) > 1e6 or number.denominator > 1e6 for number in found):
        raise _OPTION[option].error("battleship", given, "one to 26 numbers, as [1;2]")
    return found


def _spelled(numbers: Sequence[Fraction]) -> str:
    return f"[{';'.join(map(str, numbers))}]"


def _exact(number: Fraction) -> int | Fraction:
    return number.numerator if number.denominator == 1 else number


def _error(values: dict[str, Any], option: str, reason: str) -> Exception:
    return _OPTION[option].error("battleship", values[option], reason)
