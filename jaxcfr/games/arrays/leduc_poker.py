"""Leduc poker as an array game; see `jaxcfr.games.leduc_poker` for the rules."""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.games.array_game import CHANCE, TERMINAL, as_float
from jaxcfr.games.arrays.base import Bundled, put, quotient, small_int
from jaxcfr.games.leduc_poker import CALL, FOLD, MAX_RAISES, RAISE, RAISE_SIZE, LeducPoker

_LETTERS = " fcr"


class LeducState(NamedTuple):
    """A history.

    Attributes:
      cards: `[P + 1]`, the card of each player and the board, counted from 1; 0 until it is dealt.
      dealt: int8, how many players' cards are dealt.
      paid: `[P]` int8, chips each player has put in.
      folded: `[P]` bool.
      letters: `[2, M]` int8, the actions of each round, counted from 1; 0 where none was taken yet.
      moves: int8, the number of actions of this round.
      raises: int8, the number of raises of this round.
      waiting: int8, how many players still have to answer in this round.
      actor: int8, the player whose turn it is.
      stage: int8, 0 first round, 1 before the board, 2 second round, 3 the play is over.
    """

    cards: Array
    dealt: Array
    paid: Array
    folded: Array
    letters: Array
    moves: Array
    raises: Array
    waiting: Array
    actor: Array
    stage: Array


class ArrayLeducPoker(Bundled):
    """Leduc poker; actions 0, 1 and 2 are fold, call and raise, outcomes of chance are cards.

    Args:
        players: 2 to 10.
        suit_isomorphism: cards show their rank only.
        ranks: number of ranks; players + 1 when left out.
        suits: number of suits.
    """

    def __init__(
        self, players: int = 2, suit_isomorphism: bool = False, ranks: int | None = None, suits: int = 2
    ) -> None:
        rules = LeducPoker(players, suit_isomorphism, ranks, suits)._rules
        self.name: str = rules.name
        self.num_players: int = rules.players
        self.cards = rules.cards
        self.suits = rules.suits
        self.copies = rules.copies
        self.labels = rules.labels
        self.num_actions: int = max(rules.cards, 3)
        # Everyone answers once, and everyone else answers each raise.
        self.most_moves = rules.players + MAX_RAISES * (rules.players - 1)
        self._card_dtype = small_int(rules.cards)
        total = rules.cards * rules.copies
        # probability[count, dealt]: of a card of which `count` copies are left after `dealt` cards.
        self._probability = np.array(
            [
                [count / (total - dealt) if total > dealt else 0.0 for dealt in range(rules.players + 1)]
                for count in range(rules.copies + 1)
            ]
        )

    def init(self) -> LeducState:
        """Nothing is dealt."""
        n = self.num_players
        return LeducState(
            cards=jnp.zeros(n + 1, self._card_dtype),
            dealt=jnp.int8(0),
            paid=jnp.ones(n, jnp.int8),
            folded=jnp.zeros(n, bool),
            letters=jnp.zeros((2, self.most_moves), jnp.int8),
            moves=jnp.int8(0),
            raises=jnp.int8(0),
            waiting=jnp.int8(n),
            actor=jnp.int8(0),
            stage=jnp.int8(0),
        )

    def _chance(self, state: LeducState) -> Array:
        return (state.dealt < self.num_players) | (state.stage == 1)

    def player(self, state: LeducState) -> Array:
        """Chance while cards are dealt, and before the board; else the player whose turn it is."""
        who = jnp.where(state.stage == 3, TERMINAL, state.actor.astype(jnp.int32))
        return jnp.where(self._chance(state), CHANCE, who)

    def _left(self, state: LeducState) -> Array:
        """`[cards]` int32, how many copies of each card are left."""
        dealt = state.cards[:, None] == jnp.arange(1, self.cards + 1, dtype=self._card_dtype)
        return self.copies - dealt.sum(0, dtype=jnp.int32)

    def legal_actions(self, state: LeducState) -> Array:
        """The cards that are left; or fold (facing a raise), call, and raise (while fewer than two were made)."""
        actions = jnp.arange(self.num_actions)
        left = jnp.concatenate([self._left(state) > 0, jnp.zeros(self.num_actions - self.cards, bool)])
        # Whoever acts after a raise of this round has not matched it yet.
        facing = state.raises > 0
        moves = (actions == CALL) | ((actions == FOLD) & facing) | ((actions == RAISE) & (state.raises < MAX_RAISES))
        return jnp.where(self._chance(state), left, moves)

    def chance_probabilities(self, state: LeducState) -> Array:
        """The share of the rest of the deck that shows each card."""
        left = as_float(self._probability)[self._left(state), state.dealt]
        return jnp.concatenate([left, jnp.zeros(self.num_actions - self.cards, left.dtype)])

    def step(self, state: LeducState, action: Array) -> LeducState:
        """The history after the next card or action."""
        n = self.num_players
        chance = self._chance(state)
        private = state.dealt < n
        # Chance.
        place = jnp.where(private, state.dealt, n)
        cards = jnp.where(chance, put(state.cards, place, action + 1), state.cards)
        # A player.
        folds, raises = action == FOLD, action == RAISE
        seats = jnp.arange(n, dtype=jnp.int8)
        mine = seats == state.actor
        folded = state.folded | (mine & folds & ~chance)
        second = state.stage == 2
        stake = state.paid.max() + jnp.where(raises, jnp.where(second, RAISE_SIZE[1], RAISE_SIZE[0]), 0)
        paid = jnp.where(mine & ~folds & ~chance, stake, state.paid).astype(jnp.int8)
        still = n - folded.sum(dtype=jnp.int32)
        waiting = jnp.where(raises, still - 1, state.waiting - 1)
        alone = still == 1
        ends = (waiting == 0) | alone
        # The next player who has not folded, in the order of the seats from the actor on.
        distance = jnp.where(folded, n, (seats - state.actor - 1) % n)
        following = (state.actor + 1 + distance.min()) % n
        lowest = jnp.argmin(folded)
        over = alone | second
        stage = jnp.where(ends, jnp.where(over, 3, 1), state.stage)
        fresh = ends & ~over
        letter = ~chance & (jnp.arange(2) == second)[:, None] & (jnp.arange(self.most_moves) == state.moves)

        def either(card: Array, move: Array, like: Array) -> Array:
            return jnp.where(chance, card, move).astype(like.dtype)

        return LeducState(
            cards=cards,
            dealt=(state.dealt + private).astype(jnp.int8),
            paid=paid,
            folded=folded,
            letters=jnp.where(letter, (action + 1).astype(jnp.int8), state.letters),
            moves=either(state.moves, jnp.where(fresh, 0, state.moves + 1), state.moves),
            raises=either(state.raises, jnp.where(fresh, 0, state.raises + raises), state.raises),
            waiting=either(state.waiting, jnp.where(fresh, still, waiting), state.waiting),
            actor=either(state.actor, jnp.where(fresh, lowest, following), state.actor),
            stage=either(jnp.where(private, 0, 2), stage, state.stage),
        )

    def returns(self, state: LeducState) -> Array:
        """The payoff of every player, in chips."""
        rank = (state.cards.astype(jnp.int32) - 1) // self.suits
        # A pair of the board beats any rank, so it is the best rank whatever its size.
        strength = jnp.where(rank[:-1] == rank[-1], self.cards, rank[:-1])
        strength = jnp.where(state.folded, -1, strength)
        # Where all but one have folded nobody else has a strength.
        wins = strength == strength.max()
        winners = wins.sum(dtype=jnp.int32)
        paid = state.paid.astype(jnp.int32)
        return quotient(wins * paid.sum() - winners * paid, winners)

    def infoset(self, state: LeducState, player: int) -> Array:
        """`[3 + 2 M]`: the player's card and the board (from 1), the stage, the letters of both rounds.

        The stage is 0 in the first round, 1 from its end on, and -1 for each card that is still to be dealt before.
        """
        waiting = self.num_players - state.dealt
        opened = (state.stage == 1) | (state.cards[-1] > 0)
        stage = jnp.where(waiting > 0, -waiting, opened)
        facts = jnp.stack([state.cards[player], state.cards[-1], stage.astype(self._card_dtype)])
        return jnp.concatenate([facts, state.letters.reshape(-1).astype(self._card_dtype)])

    def rounds_ended(self, state: LeducState) -> Array:
        """How many betting rounds are over: 1 from the end of the first one on, before the board is dealt."""
        return (state.stage >= 1).astype(jnp.int32)

    def infoset_limits(self) -> np.ndarray:
        """See `infoset`."""
        cards, letters = [0, self.cards], [0, RAISE + 1]
        return np.array([cards, cards, [-self.num_players, 1], *[letters] * (2 * self.most_moves)])

    def infoset_key(self, row: np.ndarray, player: int) -> Hashable:
        """As in `LeducPoker.infoset_key`."""
        own, board, stage, *moves = row.tolist()
        if stage < 0:
            return (self.labels[own - 1] if own else "") + "?" * -stage
        letters = [_LETTERS[move] for move in moves if move]
        first = sum(move > 0 for move in moves[: self.most_moves])
        key = f"{self.labels[own - 1]} {''.join(letters[:first])}"
        if not stage:
            return key
        return f"{key}/" + (f"{self.labels[board - 1]} {''.join(letters[first:])}" if board else "?")

    def action_label(self, index: int, player: int, row: np.ndarray | None = None) -> str:
        """The action in words, or the card."""
        return self.labels[index] if player == CHANCE else ("fold", "call", "raise")[index]

    def estimated_histories(self) -> float:
        """About the number of histories; exact unless a card can run out with `suit_isomorphism`."""
        n = self.num_players
        total = self.cards * self.copies
        deals = [
            float(math.perm(self.cards, dealt)) if self.copies == 1 else float(self.cards) ** dealt
            for dealt in range(n + 1)
        ]
        boards = min(self.cards, total - n) if self.copies > 1 else self.cards - n
        nodes, ends = _round(n, n, 0)
        for left, count in ends:
            nodes += count * boards * _round(left, left, 0)[0]
        return sum(deals[:-1]) + deals[-1] * nodes


@functools.cache
def _round(left: int, waiting: int, raises: int) -> tuple[float, tuple[tuple[int, float], ...]]:
    """Histories of a betting round, its last ones included, and how many of these end it with how many players left."""
    if left == 1:
        return 1.0, ()
    if waiting == 0:
        return 1.0, ((left, 1.0),)
    below = [_round(left, waiting - 1, raises)]
    if raises:
        below.append(_round(left - 1, waiting - 1, raises))
    if raises < MAX_RAISES:
        below.append(_round(left, left - 1, raises + 1))
    ends: dict[int, float] = {}
    for _, part in below:
        for players, count in part:
            ends[players] = ends.get(players, 0.0) + count
    return 1.0 + sum(nodes for nodes, _ in below), tuple(sorted(ends.items()))
