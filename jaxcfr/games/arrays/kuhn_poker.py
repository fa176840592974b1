"""Kuhn poker as an array game; see `jaxcfr.games.kuhn_poker` for the rules."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.games.array_game import CHANCE, TERMINAL, as_float
from jaxcfr.games.arrays.base import Bundled, put
from jaxcfr.games.kuhn_poker import KuhnPoker


class KuhnState(NamedTuple):
    """A history.

    Attributes:
      cards: `[P]` int8, the card of each player, -1 until it is dealt.
      dealt: int8, how many cards are dealt.
      bets: int32, bit i is set if action i was a bet.
      moves: int8, how many actions were taken.
    """

    cards: Array
    dealt: Array
    bets: Array
    moves: Array


class ArrayKuhnPoker(Bundled):
    """Kuhn poker; actions 0 and 1 are pass and bet, outcomes of chance are card ranks.

    Args:
        players: 2 to 10.
    """

    def __init__(self, players: int = 2) -> None:
        self.name: str = KuhnPoker(players).name
        self.num_players: int = players
        self.num_actions: int = players + 1

    def init(self) -> KuhnState:
        """Nothing is dealt."""
        return KuhnState(jnp.full(self.num_players, -1, jnp.int8), jnp.int8(0), jnp.int32(0), jnp.int8(0))

    def _first(self, state: KuhnState) -> Array:
        """The number of the first bet, or -1."""
        lowest = state.bets & -state.bets
        return jnp.where(state.bets == 0, -1, jax.lax.population_count(lowest - 1))

    def player(self, state: KuhnState) -> Array:
        """Players act in turn, from player 0."""
        n = self.num_players
        moves = state.moves.astype(jnp.int32)
        over = moves == n + jnp.maximum(self._first(state), 0)
        return jnp.where(state.dealt < n, CHANCE, jnp.where(over, TERMINAL, moves % n))

    def legal_actions(self, state: KuhnState) -> Array:
        """The cards that are left, or pass and bet."""
        ranks = jnp.arange(self.num_actions)
        left = ~jnp.any(ranks[:, None] == state.cards, axis=1)
        return jnp.where(state.dealt < self.num_players, left, ranks < 2)

    def chance_probabilities(self, state: KuhnState) -> Array:
        """Every card that is left is equally likely."""
        left = self.num_players + 1 - state.dealt.astype(jnp.int32)
        return jnp.where(self.legal_actions(state), 1 / as_float(left), 0)

    def step(self, state: KuhnState, action: Array) -> KuhnState:
        """The history after the next card or action."""
        deals = state.dealt < self.num_players
        return KuhnState(
            cards=jnp.where(deals, put(state.cards, state.dealt, action), state.cards),
            dealt=jnp.where(deals, state.dealt + 1, state.dealt).astype(jnp.int8),
            bets=jnp.where(deals, 0, state.bets | (action << state.moves.astype(jnp.int32))).astype(jnp.int32),
            moves=jnp.where(deals, 0, state.moves + 1).astype(jnp.int8),
        )

    def returns(self, state: KuhnState) -> Array:
        """The payoff of every player, in chips."""
        n = self.num_players
        first = self._first(state)
        seats = jnp.arange(n)
        # Each player's last action tells whether it put in the second chip.
        last = jnp.where(seats >= first, seats, seats + n)
        paid = (first >= 0) & ((state.bets >> last) & 1 == 1)
        winner = jnp.argmax(jnp.where(paid | (first < 0), state.cards, -1))
        pot = n + paid.sum(dtype=jnp.int32)
        return as_float(jnp.where(seats == winner, pot, 0) - 1 - paid)

    def infoset(self, state: KuhnState, player: int) -> Array:
        """Int32 `[3]`: the player's card + 1, the number of actions + 32 times the cards to be dealt, the bets."""
        waiting = self.num_players - state.dealt.astype(jnp.int32)
        return jnp.stack(
            [state.cards[player].astype(jnp.int32) + 1, state.moves.astype(jnp.int32) + 32 * waiting, state.bets]
        )

    def infoset_limits(self) -> np.ndarray:
        """The bets are written in binary."""
        n = self.num_players
        return np.array([[0, n + 1], [0, 32 * n], [0, 2 ** (2 * n - 1) - 1]])

    def infoset_key(self, row: np.ndarray, player: int) -> Hashable:
        """As in `KuhnPoker.infoset_key`."""
        card, counts, bets = row.tolist()
        letters = "".join("pb"[bets >> move & 1] for move in range(counts % 32))
        return (str(card - 1) if card else "") + letters + "?" * (counts // 32)

    def action_label(self, index: int, player: int, row: np.ndarray | None = None) -> str:
        """The action in words, or the rank of the card."""
        return str(index) if player == CHANCE else ("pass", "bet")[index]

    def estimated_histories(self) -> float:
        """The exact count."""
        n = self.num_players
        deals = [math.perm(n + 1, dealt) for dealt in range(n + 1)]
        # n + 1 histories without a bet; a first bet in one of n places, then n - 1 answers.
        return float(sum(deals[:-1]) + deals[-1] * (n + 1 + n * (2**n - 1)))
