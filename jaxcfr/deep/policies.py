"""What was learnt, as policies of array games: they play wherever a policy or a `Player` plays."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.deep.algorithms import DeepAlgorithm, PlayerState
from jaxcfr.deep.approximators import Params
from jaxcfr.deep.average import average_policy, past_weights, played
from jaxcfr.errors import OptionError
from jaxcfr.games.array_game import ArrayHistory, Describe, features


class _Plays:
    """Plays plain games too, history by history; see `jaxcfr.play.Player`."""

    begun = True
    """Whether it can play as it is."""

    def act_stochastic(self, game: Any, player: int, rng: np.random.Generator) -> Hashable:
        """The action of `player` at a history that `jaxcfr.as_game` made.

        Raises:
          OptionError: the history is of a game with plain rules.
        """
        if not isinstance(game, ArrayHistory):
            raise OptionError(
                f"a network learnt on arrays plays jaxcfr.as_game(game.array_game()), not {type(game).__name__}"
            )
        if not self.begun:
            raise OptionError(
                "this policy draws a network for each play: policy.begin(jax.random.key(seed)) is what plays one"
            )
        arrays = game.arrays
        state = jax.tree.map(jnp.asarray, game.state)
        weights = np.asarray(cast(Any, self)(arrays, state, player), np.float64)
        index = int(rng.choice(len(weights), p=weights / weights.sum()))
        return Describe(arrays).action(index)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class NetworkPolicy(_Plays):
    """The average strategy, as a network says it. A pytree; one policy serves all players.

    Attributes:
      params: per player.
      algorithm: whose network it is.
    """

    params: tuple[Params, ...]
    algorithm: DeepAlgorithm

    def __call__(self, game: Any, state: Any, player: int) -> Array:
        seen, legal = features(game, game.infoset(state, player), player), game.legal_actions(state)
        return average_policy(self.algorithm, self.params[player], seen[None], legal[None])[0]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class PastPolicy(_Plays):
    """The average strategy as past networks, one of which is drawn for each play (Steinberger 2019). A pytree.

    The network of iteration t is drawn with probability in proportion to t^gamma, independently for each player. A play
    must go on with the network that it began with, so whatever plays has to call `begin`; as it stands the policy plays
    the uniform strategy of the first iteration.

    Attributes:
      players: what belongs to each player.
      algorithm: whose networks they are.
      t: iterations done.
      chosen: per player the number of the network, or T for the uniform strategy; T + 1 before `begin`.
    """

    players: tuple[PlayerState, ...]
    algorithm: DeepAlgorithm
    t: Array
    chosen: tuple[Array, ...]

    @property
    def begun(self) -> bool:  # type: ignore[override]
        """Whether `begin` was called."""
        past = self.players[0].past
        assert past is not None
        return bool(self.chosen[0] <= past.played.shape[0])

    def begin(self, key: Array) -> PastPolicy:
        """The policy for one play."""
        chosen = []
        for player, mine in enumerate(self.players):
            weights = past_weights(mine, self.algorithm, self.t.astype(jnp.float32))
            drawn = jax.random.categorical(jax.random.fold_in(key, player), jnp.log(weights))
            chosen.append(drawn.astype(jnp.int32))
        return dataclasses.replace(self, chosen=tuple(chosen))

    def __call__(self, game: Any, state: Any, player: int) -> Array:
        seen, legal = features(game, game.infoset(state, player), player), game.legal_actions(state)
        mine = self.players[player]
        assert mine.past is not None
        count = mine.past.played.shape[0]
        index = jnp.minimum(self.chosen[player], count - 1)
        said = played(mine, self.algorithm, index, seen[None], legal[None])[0]
        return jnp.where(self.chosen[player] < count, said, legal / jnp.maximum(legal.sum(), 1))
