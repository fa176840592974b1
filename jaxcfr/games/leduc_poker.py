"""Leduc poker for two or more players.

Rules: a deck of `ranks` x `suits` cards, three ranks and two suits for two
players. Everyone pays an ante of 1 chip and is dealt one card. There are two
betting rounds; between them one card is laid open on the board. In a round the
players act in turn, the lowest-numbered one still in the hand first: call
(which is a check where there is nothing to call), raise by 2 chips in the first
round and by 4 in the second, at most two raises a round in all, or fold where
there is something to call. A round ends when everyone still in has matched the
last raise, or checked. Whoever is left alone takes the pot. Otherwise a card that
pairs the board beats every card that does not, then the higher rank wins, and
equal ranks split the pot.

With `suit_isomorphism=True` cards show their rank only, which leaves the value as it
is and merges the histories that differ in suits.

Payoffs (chips): what a player takes from the pot less what it put in.

Value, two players: -0.085606424078 for player 0, with or without suits.

Source: Southey et al. (2005), "Bayes' bluff: opponent modelling in poker". Options
are spelled as in OpenSpiel; `ranks` and `suits` are this library's own.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from jaxcfr.errors import OptionError
from jaxcfr.games.base import Game, Payoff
from jaxcfr.games.options import GameOption, canonical_name, illegal_action

if TYPE_CHECKING:
    from jaxcfr.games.array_game import ArrayGame

OPTIONS = (
    GameOption("players", int, 2, "number of players", minimum=2, maximum=10),
    GameOption("suit_isomorphism", bool, False, "cards show their rank only"),
    GameOption("ranks", int, None, "number of ranks; players + 1 when left out", minimum=2, maximum=1000),
    GameOption("suits", int, 2, "number of suits", minimum=1, maximum=1000),
)

FOLD, CALL, RAISE = 0, 1, 2
_LABELS = ("fold", "call", "raise")
_LETTERS = "fcr"
RAISE_SIZE = (2, 4)
MAX_RAISES = 2
_ACTIONS = {
    (facing, raises): ((FOLD,) if facing else ()) + (CALL,) + ((RAISE,) if raises < MAX_RAISES else ())
    for facing in (False, True)
    for raises in range(MAX_RAISES + 1)
}
_RANK_LETTERS = "23456789TJQK"  # three ranks are jack, queen and king
_SUIT_LETTERS = "shdc"


class _Rules:
    """What all histories of one game share."""

    __slots__ = ("cards", "copies", "labels", "merged", "name", "players", "suits")

    def __init__(self, players: int, suit_isomorphism: bool, ranks: int | None, suits: int) -> None:
        values: dict[str, Any] = {
            "players": players,
            "suit_isomorphism": suit_isomorphism,
            "ranks": ranks,
            "suits": suits,
        }
        values = {option.name: option.check("leduc_poker", values[option.name]) for option in OPTIONS}
        self.players: int = values["players"]
        if values["ranks"] == self.players + 1:
            values["ranks"] = None
        n_ranks: int = values["ranks"] or self.players + 1
        n_suits: int = values["suits"]
        if n_ranks * n_suits <= self.players:
            raise OptionError(
                f"leduc_poker: ranks={n_ranks} and suits={n_suits} make {n_ranks * n_suits} cards; "
                f"{self.players} players and the board need {self.players + 1} or more"
            )
        self.name = canonical_name("leduc_poker", OPTIONS, values)
        # A card is a number: its rank, or rank * suits + suit where suits are seen.
        merged = self.merged = bool(values["suit_isomorphism"])
        self.suits = 1 if merged else n_suits
        self.copies = n_suits if merged else 1
        self.cards = n_ranks * self.suits
        lettered = n_ranks <= len(_RANK_LETTERS) and self.suits <= len(_SUIT_LETTERS)
        ranks_shown = _RANK_LETTERS[-n_ranks:] if lettered else [str(rank) for rank in range(n_ranks)]
        suits_shown = _SUIT_LETTERS if lettered else [f".{suit}" for suit in range(self.suits)]
        self.labels = tuple(
            ranks_shown[card // self.suits] + ("" if merged else suits_shown[card % self.suits])
            for card in range(self.cards)
        )


class LeducPoker(Game):
    """Leduc poker; actions 0, 1 and 2 are fold, call and raise, outcomes of chance are cards.

    A card is the number rank * suits + suit, or the rank alone with `suit_isomorphism`.

    Args:
        players: 2 to 10.
        suit_isomorphism: cards show their rank only.
        ranks: number of ranks; players + 1 when left out.
        suits: number of suits.
    """

    __slots__ = (
        "_actor",
        "_bets",
        "_board",
        "_cards",
        "_chance",
        "_folded",
        "_paid",
        "_raises",
        "_rules",
        "_terminal",
        "_waiting",
        "num_players",
    )

    def __init__(
        self, players: int = 2, suit_isomorphism: bool = False, ranks: int | None = None, suits: int = 2
    ) -> None:
        rules = _Rules(players, suit_isomorphism, ranks, suits)
        self._rules = rules
        self.num_players: int = rules.players
        self._cards: tuple[int, ...] = ()
        self._board = -1
        self._bets = ""  # letters of the actions; the rounds are separated by "/"
        self._paid = (1,) * rules.players
        self._folded = (False,) * rules.players
        self._raises = 0
        self._waiting = rules.players  # how many players still have to answer in this round
        self._actor = 0
        self._chance = True
        self._terminal = False

    @property
    def name(self) -> str:
        """The canonical name, with the options that differ from their defaults."""
        return self._rules.name

    def __repr__(self) -> str:
        """The name, the cards dealt, the betting and the board so far."""
        labels = self._rules.labels
        board = labels[self._board] if self._board >= 0 else ""
        return f"<{self.name}: {' '.join(labels[c] for c in self._cards)} {self._bets} {board}>"

    def is_terminal(self) -> bool:
        """True when one player is left, or the second round is over."""
        return self._terminal

    def is_chance(self) -> bool:
        """True while cards are dealt, and before the board."""
        return self._chance

    def player_to_act(self) -> int:
        """The player whose turn it is."""
        return self._actor

    def rounds_ended(self) -> int:
        """How many betting rounds are over: 1 from the end of the first one on, before the board is dealt."""
        return int("/" in self._bets)

    def chance_outcomes(self) -> tuple[tuple[int, Fraction], ...]:
        """Each card that is left, with the share of the deck that shows it."""
        rules = self._rules
        dealt = self._cards
        total = rules.cards * rules.copies - len(dealt)
        counts = [(card, rules.copies - dealt.count(card)) for card in range(rules.cards)]
        return tuple((card, Fraction(count, total)) for card, count in counts if count)

    def legal_actions(self) -> tuple[int, ...]:
        """Fold (facing a raise), call, and raise (while fewer than two were made this round)."""
        if self._chance or self._terminal:
            return ()
        return _ACTIONS[self._paid[self._actor] < max(self._paid), self._raises]

    def step(self, action: Any) -> LeducPoker:
        """The history after the next card or action."""
        child = object.__new__(LeducPoker)
        child._rules = self._rules
        child.num_players = self.num_players
        child._cards = self._cards
        child._board = self._board
        child._bets = self._bets
        child._paid = self._paid
        child._folded = self._folded
        child._raises = self._raises
        child._waiting = self._waiting
        child._actor = self._actor
        child._chance = self._chance
        child._terminal = False
        if self._chance:
            self._deal(child, action)
        else:
            self._act(child, action)
        return child

    def _deal(self, child: LeducPoker, action: Any) -> None:
        """Give `child` the card `action`."""
        rules = self._rules
        if action not in range(rules.cards) or self._cards.count(action) >= rules.copies:
            raise illegal_action(self, action)
        card = int(action)
        if len(self._cards) == self.num_players:
            child._board = card
            child._chance = False
        else:
            child._cards = (*self._cards, card)
            child._chance = len(child._cards) < self.num_players

    def _act(self, child: LeducPoker, action: Any) -> None:
        """Let the player to act do `action` in `child`."""
        if action not in self.legal_actions():
            raise illegal_action(self, action)
        n = self.num_players
        p = self._actor
        child._bets = self._bets + _LETTERS[int(action)]
        if action == FOLD:
            folded = child._folded = (*self._folded[:p], True, *self._folded[p + 1 :])
            child._waiting = self._waiting - 1
            if sum(folded) == n - 1:
                child._terminal = True
                return
        else:
            folded = self._folded
            stake = max(self._paid)
            if action == RAISE:
                stake += RAISE_SIZE[self._board >= 0]
                child._raises = self._raises + 1
                child._waiting = n - sum(folded) - 1
            else:
                child._waiting = self._waiting - 1
            child._paid = (*self._paid[:p], stake, *self._paid[p + 1 :])
        if child._waiting:
            p = (p + 1) % n
            while folded[p]:
                p = (p + 1) % n
            child._actor = p
        elif self._board >= 0:
            child._terminal = True
        else:
            child._bets += "/"
            child._chance = True
            child._raises = 0
            child._waiting = n - sum(folded)
            child._actor = folded.index(False)

    def terminal_returns(self) -> tuple[Payoff, ...]:
        """The payoff of every player, in chips."""
        rivals = [p for p, out in enumerate(self._folded) if not out]
        if len(rivals) > 1:
            suits = self._rules.suits
            board = self._board // suits
            ranks = {p: self._cards[p] // suits for p in rivals}
            best = max((rank == board, rank) for rank in ranks.values())[1]
            # A pair of the board beats any rank, so it is the best rank whatever its size.
            rivals = [p for p in rivals if ranks[p] == best]
        pot = sum(self._paid)
        share = pot // len(rivals) if pot % len(rivals) == 0 else Fraction(pot, len(rivals))
        return tuple((share if p in rivals else 0) - paid for p, paid in enumerate(self._paid))

    def infoset_key(self, player: int) -> Hashable:
        """The player's card, the betting (c: call or check, r: raise, f: fold), and the board with its betting.

        As "Ks crrc/Jh r"; a "?" stands for each card that is about to be dealt.
        """
        labels = self._rules.labels
        if len(self._cards) < self.num_players:
            card = labels[self._cards[player]] if player < len(self._cards) else ""
            return card + "?" * (self.num_players - len(self._cards))
        first, slash, second = self._bets.partition("/")
        key = labels[self._cards[player]] + " " + first
        if not slash:
            return key
        return key + "/" + (labels[self._board] + " " + second if self._board >= 0 else "?")

    def array_game(self) -> ArrayGame | None:
        """The same rules on arrays, at the root; see `jaxcfr.ArrayGame`."""
        if self._cards or type(self) is not LeducPoker:
            return None  # a subclass may have other rules
        from jaxcfr.games.arrays.leduc_poker import ArrayLeducPoker

        rules = self._rules
        ranks, suits = rules.cards // rules.suits, rules.suits * rules.copies
        return ArrayLeducPoker(rules.players, rules.merged, ranks, suits)

    def nash_value(self) -> tuple[float, float] | None:
        """(-0.085606424078, 0.085606424078) for two players, three ranks and two suits, else None."""
        rules = self._rules
        if rules.players == 2 and rules.cards // rules.suits == 3 and rules.suits * rules.copies == 2:
            return (-0.085606424078, 0.085606424078)
        return None

    def action_label(self, action: Any) -> str:
        """The action in words, or the card."""
        labels = self._rules.labels if self._chance else _LABELS
        return labels[int(action)]
