"""Goofspiel (the game of pure strategy), with hidden bids made one after the other.

Rules: every player holds the cards 1 to `num_cards`, and so does the prize deck.
Each turn a prize is shown, everyone bids one card, and the highest bid wins as many
points as the prize shows; if the highest bid is not alone, nobody wins the prize.
Bids are made in order from player 0, unseen until all are made. Prizes come in
`descending` or `ascending` order, or are drawn at `random`. With `imp_info=True` only
the winner of each turn is told (or that there was none), else all bids are shown
after the turn. The game ends after `num_turns` turns, or when all cards are played
(-1); the last prize and the last bids, which leave no choice, then play themselves.

Payoffs (`returns_type`): `win_loss`: the players with the most points share 1, the
others share -1, and all get 0 if all are equal; `point_difference`: a player's points
less the mean over all players; `total_points`: its points (not constant-sum).

Value: 0 for each of two players under `win_loss` and `point_difference`, because the
game is symmetric and zero-sum.

Source: Ross (1971), "Goofspiel - the game of pure strategy"; the imperfect-information
form as in Lanctot (2013). Options are spelled as in OpenSpiel. Two differences: what
players know here always includes all they saw before (OpenSpiel's information states
with `imp_info=False` forget the order of the bids, from four cards on), and every
`num_turns` ends after that many turns.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from jaxcfr.games.base import Game, Payoff
from jaxcfr.games.options import GameOption, canonical_name, illegal_action

if TYPE_CHECKING:
    from jaxcfr.games.array_game import ArrayGame

OPTIONS = (
    GameOption("imp_info", bool, False, "only the winner of a turn is told, not the bids"),
    GameOption("num_cards", int, 13, "cards of each player and of the prize deck", minimum=1, maximum=1000),
    GameOption("num_turns", int, -1, "turns played; -1 for all cards", minimum=-1),
    GameOption("players", int, 2, "number of players", minimum=2, maximum=10),
    GameOption(
        "points_order",
        str,
        "random",
        "order of the prizes",
        choices=("random", "descending", "ascending"),
    ),
    GameOption(
        "returns_type",
        str,
        "win_loss",
        "what a player is paid",
        choices=("win_loss", "point_difference", "total_points"),
    ),
)


class _Rules:
    """What all histories of one game share."""

    __slots__ = ("imp_info", "name", "num_cards", "players", "points_order", "returns_type", "turns")

    def __init__(self, **values: Any) -> None:
        values = {option.name: option.check("goofspiel", values[option.name]) for option in OPTIONS}
        self.num_cards: int = values["num_cards"]
        if values["num_turns"] == 0 or values["num_turns"] > self.num_cards:
            turns = next(option for option in OPTIONS if option.name == "num_turns")
            raise turns.error("goofspiel", values["num_turns"], f"-1, or 1 to num_cards={self.num_cards}")
        if values["num_turns"] == self.num_cards:
            values["num_turns"] = -1
        self.name = canonical_name("goofspiel", OPTIONS, values)
        self.turns: int = self.num_cards if values["num_turns"] == -1 else values["num_turns"]
        self.players: int = values["players"]
        self.imp_info: bool = values["imp_info"]
        self.points_order: str = values["points_order"]
        self.returns_type: str = values["returns_type"]


class Goofspiel(Game):
    """Goofspiel; action c bids the card c + 1, and outcome c of chance shows the prize c + 1.

    Args:
        imp_info: only the winner of a turn is told, not the bids.
        num_cards: cards of each player and of the prize deck.
        num_turns: turns played; -1 for all cards.
        players: 2 to 10.
        points_order: "random", "descending" or "ascending".
        returns_type: "win_loss", "point_difference" or "total_points".
    """

    __slots__ = ("_bids", "_hands", "_points", "_prize", "_prizes", "_rules", "_turn", "_views", "num_players")

    def __init__(
        self,
        imp_info: bool = False,
        num_cards: int = 13,
        num_turns: int = -1,
        players: int = 2,
        points_order: str = "random",
        returns_type: str = "win_loss",
    ) -> None:
        rules = _Rules(
            imp_info=imp_info,
            num_cards=num_cards,
            num_turns=num_turns,
            players=players,
            points_order=points_order,
            returns_type=returns_type,
        )
        self._rules = rules
        self.num_players: int = rules.players
        cards = tuple(range(rules.num_cards))
        self._hands = (cards,) * rules.players
        self._prizes = tuple(reversed(cards)) if rules.points_order == "descending" else cards  # those not yet shown
        self._points = (0,) * rules.players
        self._bids: tuple[int, ...] = ()
        self._turn = 0
        self._views = ("",) * rules.players  # what each player saw of the turns that are over
        self._prize = -1
        if rules.points_order != "random":
            self._show(self._prizes[0])

    def _show(self, prize: int) -> None:
        """Show the next prize (on a history still being made)."""
        self._prize = prize
        self._prizes = tuple(card for card in self._prizes if card != prize)

    @property
    def name(self) -> str:
        """The canonical name, with the options that differ from their defaults."""
        return self._rules.name

    def __repr__(self) -> str:
        """The name, the points, the hands and the bids of this turn."""
        hands = " ".join("".join(f"{card + 1}," for card in hand).rstrip(",") or "-" for hand in self._hands)
        return f"<{self.name}: points {self._points}, hands {hands}, bids {[bid + 1 for bid in self._bids]}>"

    def is_terminal(self) -> bool:
        """True when all turns are over."""
        return self._turn == self._rules.turns

    def is_chance(self) -> bool:
        """True before a prize is drawn."""
        return self._prize < 0 and self._turn < self._rules.turns

    def player_to_act(self) -> int:
        """Bids are made in order from player 0."""
        return len(self._bids)

    def chance_outcomes(self) -> tuple[tuple[int, Fraction], ...]:
        """Each prize that is left with equal probability."""
        p = Fraction(1, len(self._prizes))
        return tuple((prize, p) for prize in self._prizes)

    def legal_actions(self) -> tuple[int, ...]:
        """The cards in the hand of the player to act."""
        return () if self._prize < 0 else self._hands[len(self._bids)]

    def step(self, action: Any) -> Goofspiel:
        """The history after the next prize or bid."""
        child = object.__new__(Goofspiel)
        child._rules = self._rules
        child.num_players = self.num_players
        child._hands = self._hands
        child._prizes = self._prizes
        child._points = self._points
        child._bids = self._bids
        child._turn = self._turn
        child._views = self._views
        child._prize = self._prize
        if self.is_chance():
            if action not in self._prizes:
                raise illegal_action(self, action)
            child._show(int(action))
            return child
        if action not in self.legal_actions():
            raise illegal_action(self, action)
        player = len(self._bids)
        hand = tuple(card for card in self._hands[player] if card != action)
        child._hands = (*self._hands[:player], hand, *self._hands[player + 1 :])
        child._bids = (*self._bids, int(action))
        if len(child._bids) == self.num_players:
            child._end_turn()
            rules = self._rules
            if child._turn == rules.turns - 1 and len(child._prizes) == 1 and child._turn > 0:
                # One card each and one prize are left: nobody has a choice.
                child._show(child._prizes[0])
                child._bids = tuple(last[0] for last in child._hands)
                child._hands = ((),) * self.num_players
                child._end_turn()
            elif child._turn < rules.turns and rules.points_order != "random":
                child._show(child._prizes[0])
        return child

    def _end_turn(self) -> None:
        """Award the prize and tell the players (on a history still being made)."""
        bids = self._bids
        best = max(bids)
        winner = bids.index(best) if bids.count(best) == 1 else -1
        if winner >= 0:
            points = list(self._points)
            points[winner] += self._prize + 1
            self._points = tuple(points)
        told = f">{winner}" if winner >= 0 else ">-"
        prize = f"{self._prize + 1}:"
        if self._rules.imp_info:
            self._views = tuple(f"{view}{prize}{bid + 1}{told} " for view, bid in zip(self._views, bids, strict=True))
        else:
            shown = f"{prize}{','.join(str(bid + 1) for bid in bids)}{told} "
            self._views = tuple(view + shown for view in self._views)
        self._bids = ()
        self._prize = -1
        self._turn += 1

    def terminal_returns(self) -> tuple[Payoff, ...]:
        """The payoff of every player under `returns_type`."""
        points = self._points
        kind = self._rules.returns_type
        if kind == "total_points":
            return points
        if kind == "point_difference":
            total, n = sum(points), len(points)
            return tuple(_exact(n * mine - total, n) for mine in points)
        winners = points.count(max(points))
        losers = len(points) - winners
        if not losers:
            return (0,) * len(points)
        return tuple(_exact(1, winners) if mine == max(points) else _exact(-1, losers) for mine in points)

    def infoset_key(self, player: int) -> Hashable:
        """The turns so far as "prize:bids>winner", then the prize at stake, as "3:2>0 2:".

        With `imp_info` the bids are the player's own only. A "-" stands for no winner, and a "?" for each move
        that the player waits for: the prize, or the bids before its own, or after it.
        """
        view = self._views[player]
        if self._prize < 0:
            return view + "?" if self._turn < self._rules.turns else view
        made = len(self._bids)
        if player < made:
            return f"{view}{self._prize + 1}:{self._bids[player] + 1}{'?' * (self.num_players - made)}"
        return f"{view}{self._prize + 1}:{'?' * (player - made)}"

    def array_game(self) -> ArrayGame | None:
        """The same rules on arrays, at the root; see `jaxcfr.ArrayGame`."""
        rules = self._rules
        begun = self._turn or self._bids or len(self._prizes) < rules.num_cards - (rules.points_order != "random")
        if begun or type(self) is not Goofspiel:
            return None  # a subclass may have other rules
        from jaxcfr.games.arrays.goofspiel import ArrayGoofspiel

        return ArrayGoofspiel(
            rules.imp_info, rules.num_cards, rules.turns, rules.players, rules.points_order, rules.returns_type
        )

    def nash_value(self) -> tuple[int, int] | None:
        """(0, 0) for two players, unless they are paid `total_points`."""
        return (0, 0) if self.num_players == 2 and self._rules.returns_type != "total_points" else None

    def action_label(self, action: Any) -> str:
        """The card bid, or the prize shown."""
        return str(action + 1)


def _exact(numerator: int, denominator: int) -> int | Fraction:
    """The quotient, as an integer where it is one."""
    return numerator // denominator if numerator % denominator == 0 else Fraction(numerator, denominator)
