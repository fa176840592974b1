"""Liar's dice as an array game; see `jaxcfr.games.liars_dice` for the rules."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.games.array_game import CHANCE, TERMINAL, as_float
from jaxcfr.games.arrays.base import Bundled, small_int
from jaxcfr.games.liars_dice import LiarsDice


class LiarsDiceState(NamedTuple):
    """A history.

    Attributes:
      dice: `[2, numdice]`, each player's faces counted from 0, sorted; `dice_sides` where a die is not rolled yet.
      rolled: int16, how many dice are rolled.
      bids: `[W]` int32, bit b is set if bid b was made; the bit after the highest bid is the call of a liar.
      last: int16, the last bid, -1 if there is none.
      turn: int16, how many bids were made; -1 - (the loser) when the game is over.
    """

    dice: Array
    rolled: Array
    bids: Array
    last: Array
    turn: Array


class ArrayLiarsDice(Bundled):
    """Liar's dice; actions below the number of bids are bids, the next one calls a liar, outcomes are faces.

    Args:
        numdice: dice of each player.
        dice_sides: faces of a die; the highest is wild.
        players: 2.
        bidding_rule: "reset-face" or "reset-quantity", the order of the bids.
    """

    def __init__(
        self, numdice: int = 1, dice_sides: int = 6, players: int = 2, bidding_rule: str = "reset-face"
    ) -> None:
        rules = LiarsDice(numdice, dice_sides, players, bidding_rule)._rules
        self.name: str = rules.name
        self.num_players: int = 2
        self.numdice = rules.numdice
        self.sides = rules.sides
        self.liar = rules.liar
        self.labels = rules.labels
        self.num_actions: int = max(rules.liar + 1, rules.sides)
        self.words = rules.liar // 32 + 1
        self._quantity = np.array([quantity for quantity, _ in rules.bids], np.int32)
        self._face = np.array([face - 1 for _, face in rules.bids], np.int32)

    def init(self) -> LiarsDiceState:
        """Nothing is rolled."""
        return LiarsDiceState(
            dice=jnp.full((2, self.numdice), self.sides, small_int(self.sides)),
            rolled=jnp.int16(0),
            bids=jnp.zeros(self.words, jnp.int32),
            last=jnp.int16(-1),
            turn=jnp.int16(0),
        )

    def player(self, state: LiarsDiceState) -> Array:
        """Chance until all dice are rolled, then the players take turns."""
        turn = state.turn.astype(jnp.int32)
        return jnp.where(state.rolled < 2 * self.numdice, CHANCE, jnp.where(turn < 0, TERMINAL, turn & 1))

    def legal_actions(self, state: LiarsDiceState) -> Array:
        """Every face; or every higher bid, and after a bid the call of a liar."""
        actions = jnp.arange(self.num_actions)
        bids = (actions > state.last) & (actions < self.liar + (state.last >= 0))
        return jnp.where(state.rolled < 2 * self.numdice, actions < self.sides, bids)

    def chance_probabilities(self, state: LiarsDiceState) -> Array:
        """Every face is equally likely."""
        faces = np.arange(self.num_actions) < self.sides
        return as_float(np.where(faces, 1 / self.sides, 0.0))

    def step(self, state: LiarsDiceState, action: Array) -> LiarsDiceState:
        """The history after the next roll, bid or call."""
        rolls = state.rolled < 2 * self.numdice
        # Which die shows what does not matter, so a face is put in its place among those of the player.
        mine = state.rolled // self.numdice == jnp.arange(2)
        before = jnp.concatenate([jnp.full((2, 1), -1, state.dice.dtype), state.dice[:, :-1]], axis=1)
        inserted = jnp.minimum(state.dice, jnp.maximum(before, action.astype(state.dice.dtype)))

        calls = action == self.liar
        words = jnp.arange(self.words)
        bit = jnp.where(words == action // 32, jnp.int32(1) << (action % 32), 0)
        turn = state.turn.astype(jnp.int32)
        caller = turn & 1
        # The caller, whose turn it is, loses if the bid holds.
        loser = jnp.where(self._holds(state), caller, 1 - caller)
        return LiarsDiceState(
            dice=jnp.where(rolls & mine[:, None], inserted, state.dice),
            rolled=(state.rolled + rolls).astype(jnp.int16),
            bids=jnp.where(rolls, 0, state.bids | bit),
            last=jnp.where(rolls | calls, state.last, action).astype(jnp.int16),
            turn=jnp.where(rolls, 0, jnp.where(calls, -1 - loser, turn + 1)).astype(jnp.int16),
        )

    def _holds(self, state: LiarsDiceState) -> Array:
        """Whether the last bid is true of all the dice."""
        last = jnp.maximum(state.last, 0)
        face, quantity = jnp.asarray(self._face)[last], jnp.asarray(self._quantity)[last]
        matching = (state.dice == face) | (state.dice == self.sides - 1)
        return matching.sum(dtype=jnp.int32) >= quantity

    def returns(self, state: LiarsDiceState) -> Array:
        """1 to the winner, -1 to the loser."""
        return as_float(jnp.where(-1 - state.turn == jnp.arange(2), -1, 1))

    def infoset(self, state: LiarsDiceState, player: int) -> Array:
        """Int32 `[numdice + W]`: the player's dice, sorted, and the bids; (-1 for each die to come) until all rolled.

        Nobody looks under the cup until all dice are rolled.
        """
        waiting = 2 * self.numdice - state.rolled.astype(jnp.int32)
        first = jnp.arange(self.numdice) == 0
        dice = jnp.where(waiting > 0, jnp.where(first, -waiting, 0), state.dice[player].astype(jnp.int32))
        return jnp.concatenate([dice, state.bids])

    def infoset_limits(self) -> np.ndarray:
        """The bids are written in binary."""
        die, word = [0, self.sides - 1], [-(2**31), 2**31 - 1]
        first = [-2 * self.numdice, self.sides - 1]
        return np.array([first, *[die] * (self.numdice - 1), *[word] * self.words])

    def infoset_key(self, row: np.ndarray, player: int) -> Hashable:
        """As in `LiarsDice.infoset_key`."""
        values: list[int] = row.tolist()
        if values[0] < 0:
            return "?" * -values[0]
        key = ("," if self.sides > 9 else "").join(str(face + 1) for face in values[: self.numdice])
        for word, bits in enumerate(values[self.numdice :]):
            bits &= 0xFFFFFFFF
            while bits:
                key += " " + self.labels[32 * word + (bits & -bits).bit_length() - 1]
                bits &= bits - 1
        return key

    def action_label(self, index: int, player: int, row: np.ndarray | None = None) -> str:
        """The bid as quantity x face, "liar", or the face rolled."""
        return str(index + 1) if player == CHANCE else self.labels[index]

    def estimated_histories(self) -> float:
        """The exact count: every set of bids is a history, and every one but the empty set can be called."""
        dice = 2 * self.numdice
        rolls = [float(self.sides) ** rolled for rolled in range(dice + 1)]
        return sum(rolls[:-1]) + rolls[-1] * (2.0 ** min(self.liar + 1, 900) - 1)
