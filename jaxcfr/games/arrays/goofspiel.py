"""Goofspiel as an array game; see `jaxcfr.games.goofspiel` for the rules."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.games.array_game import CHANCE, TERMINAL, as_float
from jaxcfr.games.arrays.base import Bundled, quotient, small_int
from jaxcfr.games.goofspiel import Goofspiel


class GoofspielState(NamedTuple):
    """A history.

    Attributes:
      prizes: `[T]`, the prize of each turn, 0 until it is shown.
      bids: `[T, P]`, what each player bid in each turn, 0 until it has.
      turn: int16, turns that are over.
      made: int8, bids made in this turn.
    """

    prizes: Array
    bids: Array
    turn: Array
    made: Array


class ArrayGoofspiel(Bundled):
    """Goofspiel; action c bids the card c + 1, and outcome c of chance shows the prize c + 1.

    Args:
        imp_info: only the winner of a turn is told, not the bids.
        num_cards: cards of each player and of the prize deck.
        num_turns: turns played; -1 for all cards.
        players: 2 to 10.
        points_order: "random", "descending" or "ascending".
        returns_type: "win_loss", "point_difference" or "total_points".
    """

    def __init__(
        self,
        imp_info: bool = False,
        num_cards: int = 13,
        num_turns: int = -1,
        players: int = 2,
        points_order: str = "random",
        returns_type: str = "win_loss",
    ) -> None:
        rules = Goofspiel(imp_info, num_cards, num_turns, players, points_order, returns_type)._rules
        self.name: str = rules.name
        self.num_players: int = rules.players
        self.num_actions: int = rules.num_cards
        self.turns = rules.turns
        self.imp_info = rules.imp_info
        self.points_order = rules.points_order
        self.returns_type = rules.returns_type
        self._dtype = small_int(rules.num_cards + 1)
        self._cards = np.arange(1, rules.num_cards + 1, dtype=self._dtype)
        # 1 / (cards left) by turn.
        self._probability = 1 / np.arange(rules.num_cards, rules.num_cards - rules.turns - 1, -1).clip(1)
        # The last prize and the last bids, which leave no choice, play themselves.
        self._plays_itself = self.turns == rules.num_cards and self.turns > 1

    def init(self) -> GoofspielState:
        """Nothing is bid; the first prize is shown unless it is drawn."""
        prizes = np.zeros(self.turns, self._dtype)
        if self.points_order != "random":
            prizes[0] = self._in_order(0)
        return GoofspielState(
            prizes=jnp.asarray(prizes),
            bids=jnp.zeros((self.turns, self.num_players), self._dtype),
            turn=jnp.int16(0),
            made=jnp.int8(0),
        )

    def _in_order(self, turn: int) -> int:
        """The prize of a turn where the order is given."""
        return turn + 1 if self.points_order == "ascending" else self.num_actions - turn

    def _now(self, state: GoofspielState) -> Array:
        """Bool `[T]`: this turn."""
        return jnp.arange(self.turns) == state.turn

    def _shown(self, state: GoofspielState) -> Array:
        """Whether the prize of this turn is shown."""
        return (self._now(state) & (state.prizes > 0)).any()

    def player(self, state: GoofspielState) -> Array:
        """Chance before a prize is drawn; bids are made in order from player 0."""
        who = jnp.where(self._shown(state), state.made.astype(jnp.int32), CHANCE)
        return jnp.where(state.turn == self.turns, TERMINAL, who)

    def legal_actions(self, state: GoofspielState) -> Array:
        """The prizes that are left, or the cards in the hand of the player to act."""
        seats = jnp.arange(self.num_players, dtype=jnp.int8)
        mine = jnp.where(seats == state.made, state.bids, 0).sum(1, dtype=self._dtype)
        played = jnp.where(self._shown(state), mine, state.prizes)
        return ~(played[:, None] == self._cards).any(0)

    def chance_probabilities(self, state: GoofspielState) -> Array:
        """Every prize that is left is equally likely."""
        return jnp.where(self.legal_actions(state), as_float(self._probability)[state.turn], 0)

    def step(self, state: GoofspielState, action: Array) -> GoofspielState:
        """The history after the next prize or bid."""
        n = self.num_players
        card = (action + 1).astype(self._dtype)
        now = self._now(state)
        chance = ~self._shown(state)
        prizes = jnp.where(now & chance, card, state.prizes)
        seats = jnp.arange(n, dtype=jnp.int8)
        bids = jnp.where(now[:, None] & (seats == state.made) & ~chance, card, state.bids)
        ends = ~chance & (state.made == n - 1)
        turn = state.turn + ends
        if self.points_order != "random" and self.turns > 1:
            # The last prize, where it plays itself, is written below; it is the same.
            order = np.array([self._in_order(t) for t in range(self.turns)], self._dtype)
            prizes = jnp.where(ends & (jnp.arange(self.turns) == turn), order, prizes)
        if self._plays_itself:
            itself = ends & (turn == self.turns - 1)
            last = itself & (jnp.arange(self.turns) == self.turns - 1)
            every = self.num_actions * (self.num_actions + 1) // 2
            prizes = jnp.where(last, self._remaining(prizes[:-1], every), prizes)
            bids = jnp.where(last[:, None], self._remaining(bids[:-1], every), bids)
            turn = turn + itself
        return GoofspielState(
            prizes=prizes,
            bids=bids,
            turn=turn.astype(jnp.int16),
            made=jnp.where(chance, 0, jnp.where(ends, 0, state.made + 1)).astype(jnp.int8),
        )

    def _remaining(self, played: Array, every: int) -> Array:
        """The one card that is not among those played (all but one were)."""
        return (every - played.sum(0, dtype=jnp.int32)).astype(self._dtype)

    def _winners(self, state: GoofspielState) -> Array:
        """`[T]`: the winner of each turn that is over, counted from 2; 1 for nobody; 0 for a turn to come."""
        return jnp.where(jnp.arange(self.turns) < state.turn, self._winner_of(state.bids), 0).astype(self._dtype)

    def _winner_of(self, bids: Array) -> Array:
        """`[T]`: who bid most of `[T, P]`, counted from 2; 1 for nobody."""
        best = bids == bids.max(1, keepdims=True)
        alone = best.sum(1, dtype=jnp.int8) == 1
        return jnp.where(alone, jnp.argmax(best, 1).astype(self._dtype) + 2, 1)

    def returns(self, state: GoofspielState) -> Array:
        """The payoff of every player under `returns_type`."""
        n = self.num_players
        won = self._winners(state)[:, None] == jnp.arange(2, n + 2, dtype=self._dtype)
        points = jnp.where(won, state.prizes[:, None], 0).sum(0, dtype=jnp.int32)
        if self.returns_type == "total_points":
            return as_float(points)
        if self.returns_type == "point_difference":
            return quotient(n * points - points.sum(), n)
        first = points == points.max()
        winners = first.sum(dtype=jnp.int32)
        shares = jnp.where(first, winners, winners - n)
        return jnp.where(winners == n, 0, 1 / as_float(jnp.where(shares == 0, 1, shares)))

    def infoset(self, state: GoofspielState, player: int) -> Array:
        """The bids made in this turn and the prizes, `[1 + T]`, then the bids that the player knows.

        With `imp_info` these are its own, `[T]`, and the winners, `[T]`; else all but those of this turn, `[T P]`.
        """
        facts = [state.made.astype(self._dtype)[None], state.prizes]
        if self.imp_info:
            facts += [state.bids[:, player], self._winners(state)]
        else:
            hidden = self._now(state)[:, None] & (np.arange(self.num_players) != player)
            facts.append(jnp.where(hidden, 0, state.bids).reshape(-1))
        return jnp.concatenate(facts)

    def infoset_limits(self) -> np.ndarray:
        """See `infoset`."""
        card, winner = [0, self.num_actions], [0, self.num_players + 1]
        bids = [card] * self.turns + [winner] * self.turns if self.imp_info else [card] * self.turns * self.num_players
        return np.array([[0, self.num_players - 1], *[card] * self.turns, *bids])

    def features(self, row: Array, player: int) -> Array:
        """Card by card, which says more to a network than turn by turn: `[F]`, all from 0 to 1.

        Whether each bid of this turn is made, `[P]`; the points of each player, as parts of all, `[P]`; of each prize,
        whether it is shown, whether it is this turn's, and the turn, `[3 C]`, and who won it, nobody among them,
        `[(P + 1) C]`; of each card of each player whose bids are known, whether it is played and the turn, `[2 C]`.
        """
        turns, n = self.turns, self.num_players
        made, prizes, rest = row[0], row[1 : turns + 1], row[turns + 1 :]
        if self.imp_info:
            bids, winners = rest[None, :turns], rest[turns:]
        else:
            bids = rest.reshape(turns, n).T
            over = (bids > 0).all(0)
            winners = jnp.where(over, self._winner_of(bids.T), 0)
        when = jnp.arange(1, turns + 1, dtype=jnp.float32) / turns

        def of_cards(played: Array, values: Array) -> Array:
            """The value of the turn in which each card was played, 0 if it was in none; by comparison, no gather."""
            return jnp.where(played[:, None] == self._cards, values[:, None], 0).sum(0, dtype=jnp.float32)

        won = winners[None] == jnp.arange(1, n + 2)[:, None]
        points = (won[1:] * prizes.astype(jnp.float32)).sum(1)
        parts = [jnp.arange(n) < made, points / (self.num_actions * (self.num_actions + 1) / 2)]
        parts += [of_cards(prizes, values) for values in (jnp.ones(turns), (winners == 0) * 1.0, when, *(won * 1.0))]
        for known in bids:
            parts += [of_cards(known, jnp.ones(turns)), of_cards(known, when)]
        return jnp.concatenate([jnp.asarray(part, jnp.float32) for part in parts])

    def infoset_key(self, row: np.ndarray, player: int) -> Hashable:
        """As in `Goofspiel.infoset_key`."""
        values: list[int] = row.tolist()
        made, prizes, rest = values[0], values[1 : self.turns + 1], values[self.turns + 1 :]
        n = self.num_players
        key = ""
        for turn, prize in enumerate(prizes):
            if self.imp_info:
                own, winner = rest[turn], rest[self.turns + turn]
                over, shown = winner > 0, str(own)
                told = "-" if winner == 1 else str(winner - 2)
            else:
                bids = rest[turn * n : (turn + 1) * n]
                own, over, shown = bids[player], min(bids) > 0, ",".join(map(str, bids))
                told = str(bids.index(max(bids))) if bids.count(max(bids)) == 1 else "-"
            if over:
                key += f"{prize}:{shown}>{told} "
            elif not prize:
                return key + "?"
            elif player < made:
                return key + f"{prize}:{own}{'?' * (n - made)}"
            else:
                return key + f"{prize}:{'?' * (player - made)}"
        return key

    def action_label(self, index: int, player: int, row: np.ndarray | None = None) -> str:
        """The card bid, or the prize shown."""
        return str(index + 1)

    def estimated_histories(self) -> float:
        """The exact count."""
        total, level = 0.0, 1.0
        for turn in range(self.turns):
            cards = self.num_actions - turn
            if self._plays_itself and turn == self.turns - 1:
                break
            if self.points_order == "random":
                total += level
                level *= cards
            for _ in range(self.num_players):
                total += level
                level *= cards
            if level > 1e100:
                break
        return total + level
