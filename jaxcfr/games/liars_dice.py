"""Liar's dice for two players, one round.

Rules: each player rolls `numdice` dice of `dice_sides` faces under a cup. From
player 0 on, they take turns: bid, or call the last bidder a liar, which ends the
game. A bid "2x5" claims that at least two of all the dice show a 5; the highest
face is wild and counts as every face. Each bid must be higher than the last. With
`bidding_rule=reset-face` bids are ordered by quantity, then by face (after "1x6"
comes "2x1"); with `reset-quantity` by face, then by quantity. After the highest bid
only the call is left. If the last bid holds, its bidder wins, else the caller.

Payoffs (chips): 1 to the winner, -1 to the loser.

Value to player 0 for one die each and `reset-face`, 1 to 6 faces: 1, 1/2, 1/9, 1/16,
1/125, -7/258 (linear programs over the sequence form, solved to 1e-15; the fractions
are read off the decimals). Other values are not stated.

Source: a folk game; this form as in Lanctot (2013), with the highest face wild as in
Neller and Hnath (2011). Options are spelled as in OpenSpiel.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from jaxcfr.games.base import Game
from jaxcfr.games.options import GameOption, canonical_name, illegal_action

if TYPE_CHECKING:
    from jaxcfr.games.array_game import ArrayGame

OPTIONS = (
    GameOption("numdice", int, 1, "dice each player rolls", minimum=1, maximum=100),
    GameOption("dice_sides", int, 6, "faces of a die; the highest is wild", minimum=1, maximum=100),
    GameOption("players", int, 2, "number of players", choices=(2,)),
    GameOption(
        "bidding_rule",
        str,
        "reset-face",
        "order of the bids: by quantity (reset-face) or by face (reset-quantity)",
        choices=("reset-face", "reset-quantity"),
    ),
)

# By number of faces, one die each, reset-face.
_VALUES = {1: (1, 1), 2: (1, 2), 3: (1, 9), 4: (1, 16), 5: (1, 125), 6: (-7, 258)}

_WIN = (1, -1)
_LOSS = (-1, 1)


class _Rules:
    """What all histories of one game share."""

    __slots__ = (
        "bidding_rule",
        "bids",
        "dice",
        "labels",
        "later",
        "liar",
        "name",
        "numdice",
        "outcomes",
        "sides",
        "value",
    )

    def __init__(self, **values: Any) -> None:
        values = {option.name: option.check("liars_dice", values[option.name]) for option in OPTIONS}
        self.name = canonical_name("liars_dice", OPTIONS, values)
        self.numdice: int = values["numdice"]
        self.sides: int = values["dice_sides"]
        self.bidding_rule: str = values["bidding_rule"]
        self.dice = 2 * self.numdice
        self.value: Fraction | None = None
        if self.numdice == 1 and values["bidding_rule"] == "reset-face" and self.sides in _VALUES:
            self.value = Fraction(*_VALUES[self.sides])
        quantities = range(1, self.dice + 1)
        faces = range(1, self.sides + 1)
        if values["bidding_rule"] == "reset-face":
            self.bids = tuple((quantity, face) for quantity in quantities for face in faces)
        else:
            self.bids = tuple((quantity, face) for face in faces for quantity in quantities)
        self.liar = len(self.bids)
        self.labels = (*(f"{quantity}x{face}" for quantity, face in self.bids), "liar")
        # later[b]: what may follow bid b: every higher bid, or the call of a liar.
        self.later = tuple(range(bid + 1, self.liar + 1) for bid in range(self.liar))
        self.outcomes = tuple((face - 1, Fraction(1, self.sides)) for face in faces)

    def holds(self, bid: int, rolls: tuple[int, ...]) -> bool:
        """Whether `bid` is true of all the dice."""
        quantity, face = self.bids[bid]
        return sum(roll + 1 in (face, self.sides) for roll in rolls) >= quantity


class LiarsDice(Game):
    """Liar's dice; action b below the number of bids is the b-th lowest bid, the next one calls a liar.

    Outcomes of chance are faces counted from 0: player 0's dice first, then player 1's.

    Args:
        numdice: dice of each player.
        dice_sides: faces of a die; the highest is wild.
        players: 2.
        bidding_rule: "reset-face" or "reset-quantity", the order of the bids.
    """

    __slots__ = ("_bids", "_cups", "_last", "_rolls", "_rules", "_turn")

    num_players = 2

    def __init__(
        self, numdice: int = 1, dice_sides: int = 6, players: int = 2, bidding_rule: str = "reset-face"
    ) -> None:
        self._rules = _Rules(numdice=numdice, dice_sides=dice_sides, players=players, bidding_rule=bidding_rule)
        self._rolls: tuple[int, ...] = ()
        self._cups: tuple[str, str] | None = None  # each player's dice as text, once all are rolled
        self._bids = ""  # labels of the bids, each after a space
        self._last = -1  # the last bid, or -1
        self._turn = 0  # bids and calls so far; -1 - (the loser) when the game is over

    @property
    def name(self) -> str:
        """The canonical name, with the options that differ from their defaults."""
        return self._rules.name

    def __repr__(self) -> str:
        """The name, the dice and the bids so far."""
        return f"<{self.name}: {' '.join(str(roll + 1) for roll in self._rolls)} |{self._bids}>"

    def is_terminal(self) -> bool:
        """True after the call of a liar."""
        return self._turn < 0

    def is_chance(self) -> bool:
        """True while dice are rolled."""
        return self._cups is None

    def player_to_act(self) -> int:
        """The players take turns, player 0 first."""
        return self._turn & 1

    def chance_outcomes(self) -> tuple[tuple[int, Fraction], ...]:
        """Each face (counted from 0) with equal probability."""
        return self._rules.outcomes

    def legal_actions(self) -> Sequence[int]:
        """Every higher bid, and after a bid the call of a liar."""
        if self._last >= 0:
            return self._rules.later[self._last] if self._turn > 0 else ()
        return range(self._rules.liar) if self._cups is not None else ()

    def step(self, action: Any) -> LiarsDice:
        """The history after the next roll, bid or call."""
        rules = self._rules
        child = object.__new__(LiarsDice)
        child._rules = rules
        if self._cups is None:
            return self._roll(child, action)
        if action not in self.legal_actions():
            raise illegal_action(self, action)
        action = int(action)
        child._rolls = self._rolls
        child._cups = self._cups
        child._bids = self._bids + " " + rules.labels[action]
        if action == rules.liar:
            child._last = self._last
            # The caller, whose turn it is, loses if the bid holds.
            caller = self._turn & 1
            child._turn = -1 - (caller if rules.holds(self._last, self._rolls) else 1 - caller)
        else:
            child._last = action
            child._turn = self._turn + 1
        return child

    def _roll(self, child: LiarsDice, action: Any) -> LiarsDice:
        """Give `child` the face `action`."""
        rules = self._rules
        if action not in range(rules.sides):
            raise illegal_action(self, action)
        rolls = child._rolls = (*self._rolls, int(action))
        child._bids = ""
        child._last = -1
        child._turn = 0
        child._cups = None
        if len(rolls) == rules.dice:
            # Which die shows what does not matter, so the dice are sorted.
            separator = "," if rules.sides > 9 else ""
            first, second = sorted(rolls[: rules.numdice]), sorted(rolls[rules.numdice :])
            child._cups = (
                separator.join(str(face + 1) for face in first),
                separator.join(str(face + 1) for face in second),
            )
        return child

    def terminal_returns(self) -> tuple[int, int]:
        """The payoffs of players 0 and 1, in chips."""
        return _LOSS if self._turn == -1 else _WIN

    def infoset_key(self, player: int) -> Hashable:
        """The player's dice, sorted, and all bids, as "25 1x2 2x5".

        Nobody looks under the cup until all dice are rolled; until then the key is a "?" for each die to come.
        """
        if self._cups is None:
            return "?" * (self._rules.dice - len(self._rolls))
        return self._cups[player] + self._bids

    def array_game(self) -> ArrayGame | None:
        """The same rules on arrays, at the root; see `jaxcfr.ArrayGame`."""
        if self._rolls or type(self) is not LiarsDice:
            return None  # a subclass may have other rules
        from jaxcfr.games.arrays.liars_dice import ArrayLiarsDice

        rules = self._rules
        return ArrayLiarsDice(rules.numdice, rules.sides, 2, rules.bidding_rule)

    def nash_value(self) -> tuple[Fraction, Fraction] | None:
        """The value for one die of up to six faces each and `reset-face`, else None."""
        value = self._rules.value
        return None if value is None else (value, -value)

    def action_label(self, action: Any) -> str:
        """The bid as quantity x face, "liar", or the face rolled."""
        return str(action + 1) if self._cups is None else self._rules.labels[int(action)]
