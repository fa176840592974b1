"""Kuhn poker for two or more players.

Rules: n players, n + 1 cards of different ranks (0 is the lowest). Everyone pays
an ante of 1 chip and is dealt one card. From player 0 on, each passes or bets
1 chip. As soon as somebody bets, the others, in order from the bettor, call with
1 chip (action "bet") or fold (action "pass"), once each. The highest card of those
who put in the chip takes the pot; if nobody bet, the highest card of all does.

Payoffs (chips): what a player takes from the pot less what it put in.

Value, two players: -1/18 for player 0, 1/18 for player 1. With more players the
equilibrium payoffs are not unique.

Source: Kuhn (1950), "A simplified two-person poker"; more players as in Abou Risk
and Szafron (2010) and Lanctot (2014). Options are spelled as in OpenSpiel.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from jaxcfr.games.base import Game
from jaxcfr.games.options import GameOption, canonical_name, illegal_action

if TYPE_CHECKING:
    from jaxcfr.games.array_game import ArrayGame

OPTIONS = (GameOption("players", int, 2, "number of players", minimum=2, maximum=10),)

_PASS_BET = (0, 1)


class KuhnPoker(Game):
    """Kuhn poker; actions 0 and 1 are pass and bet, outcomes of chance are card ranks.

    Args:
        players: 2 to 10.
    """

    __slots__ = ("_bets", "_cards", "_terminal", "num_players")

    def __init__(self, players: int = 2) -> None:
        self.num_players: int = OPTIONS[0].check("kuhn_poker", players)
        self._cards: tuple[int, ...] = ()
        self._bets = ""
        self._terminal = False

    @property
    def name(self) -> str:
        """The canonical name, with `players` where they are not two."""
        return canonical_name("kuhn_poker", OPTIONS, {"players": self.num_players})

    def __repr__(self) -> str:
        """The name, the cards dealt and the betting so far."""
        return f"<{self.name}: {' '.join(map(str, self._cards))} {self._bets}>"

    def is_terminal(self) -> bool:
        """True when everyone has passed, or answered a bet."""
        return self._terminal

    def is_chance(self) -> bool:
        """True while cards are dealt."""
        return len(self._cards) < self.num_players

    def player_to_act(self) -> int:
        """Players act in turn, from player 0."""
        return len(self._bets) % self.num_players

    def chance_outcomes(self) -> tuple[tuple[int, Fraction], ...]:
        """Each card that is left, for the next player, with equal probability."""
        p = Fraction(1, self.num_players + 1 - len(self._cards))
        return tuple((card, p) for card in range(self.num_players + 1) if card not in self._cards)

    def legal_actions(self) -> tuple[int, ...]:
        """Pass and bet."""
        return () if self._terminal or self.is_chance() else _PASS_BET

    def step(self, action: Any) -> KuhnPoker:
        """The history after the next card or action."""
        n = self.num_players
        child = object.__new__(KuhnPoker)
        child.num_players = n
        if len(self._cards) < n:
            if action not in range(n + 1) or action in self._cards:
                raise illegal_action(self, action)
            child._cards = (*self._cards, int(action))
            child._bets = ""
            child._terminal = False
            return child
        if self._terminal or action not in _PASS_BET:
            raise illegal_action(self, action)
        bets = self._bets + "pb"[int(action)]
        child._cards = self._cards
        child._bets = bets
        first = bets.find("b")
        child._terminal = len(bets) == n + max(first, 0)
        return child

    def terminal_returns(self) -> tuple[int, ...]:
        """The payoff of every player, in chips."""
        n = self.num_players
        first = self._bets.find("b")
        # Each player's last action tells whether it put in the second chip.
        paid = [first >= 0 and self._bets[p if p >= first else p + n] == "b" for p in range(n)]
        rivals = [p for p in range(n) if paid[p] or first < 0]
        winner = max(rivals, key=self._cards.__getitem__)
        pot = n + sum(paid)
        return tuple((pot if p == winner else 0) - 1 - paid[p] for p in range(n))

    def infoset_key(self, player: int) -> Hashable:
        """The player's card and all betting (p: pass, b: bet), as "0pb"; a "?" for each card still to be dealt."""
        card = str(self._cards[player]) if player < len(self._cards) else ""
        return card + self._bets + "?" * (self.num_players - len(self._cards))

    def array_game(self) -> ArrayGame | None:
        """The same rules on arrays, at the root; see `jaxcfr.ArrayGame`."""
        if self._cards or type(self) is not KuhnPoker:
            return None  # a subclass may have other rules
        from jaxcfr.games.arrays.kuhn_poker import ArrayKuhnPoker

        return ArrayKuhnPoker(self.num_players)

    def nash_value(self) -> tuple[Fraction, Fraction] | None:
        """(-1/18, 1/18) for two players, else None."""
        return (Fraction(-1, 18), Fraction(1, 18)) if self.num_players == 2 else None

    def action_label(self, action: Any) -> str:
        """The action in words, or the rank of the card."""
        return str(action) if self.is_chance() else ("pass", "bet")[action]
