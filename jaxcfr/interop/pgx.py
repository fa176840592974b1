"""Environments of pgx as array games, for playing and for networks.

pgx (Koyamada et al. 2023, "Pgx: hardware-accelerated parallel game simulators for reinforcement learning") keeps its
chance in random keys, so its probabilities are not known: such a game is played and learned from, but not lowered.

pgx 2.6.0 runs with jax 0.10.2: its `kuhn_poker`, `leduc_holdem`, `tic_tac_toe`, `connect_four`, `backgammon` and `2048`
were played through this module.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.errors import OptionError, missing_package
from jaxcfr.games.array_game import CHANCE, TERMINAL, ArrayGame, x64_enabled

_MEMBERS = ("init", "step", "observe", "num_players", "num_actions")


class PgxState(NamedTuple):
    """A history.

    Attributes:
      env: the state of the environment; before the first outcome of chance it stands for nothing.
      payoffs: `[P]` float32, each player's rewards so far.
      begun: bool, whether chance has dealt.
      pending: int32, the action that chance is about to complete, -1 if there is none.
    """

    env: Any
    payoffs: Array
    begun: Array
    pending: Array


class PgxGame(ArrayGame):
    """See `from_pgx`.

    Attributes:
      env: the environment.
      draws: whether chance moves after every action, and not at the beginning only.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self.name: str = f"pgx:{getattr(env, 'id', type(env).__name__)}"
        self.num_players: int = int(env.num_players)
        self.num_actions: int = int(env.num_actions)
        key = jax.eval_shape(lambda: jax.random.key(0))
        begin = jax.eval_shape(self._begin, key)
        jax.eval_shape(self._move, begin, np.int32(0), key)
        try:
            jax.eval_shape(self._move, begin, np.int32(0))
        except Exception:  # pgx documents no error of its own for a step that lacks a key
            self.draws = True
        else:
            self.draws = False

    # Some environments mix up dtypes where JAX has 64-bit types.

    def _begin(self, key: Array) -> Any:
        with x64_enabled(False):
            return self.env.init(key)

    def _move(self, state: Any, action: Any, *key: Array) -> Any:
        with x64_enabled(False):
            return self.env.step(state, action, *key)

    def init(self) -> PgxState:
        """Nothing is dealt."""
        return PgxState(
            env=self._begin(jax.random.key(0)),
            payoffs=jnp.zeros(self.num_players, jnp.float32),
            begun=jnp.zeros((), bool),
            pending=jnp.full((), -1, jnp.int32),
        )

    def _chance(self, state: PgxState) -> Array:
        return ~state.begun | (state.pending >= 0)

    def player(self, state: PgxState) -> Array:
        """Chance at the beginning, and after every action if it has to; else the environment's current player."""
        over = state.env.terminated | state.env.truncated
        who = jnp.where(over, TERMINAL, state.env.current_player.astype(jnp.int32))
        return jnp.where(self._chance(state), CHANCE, who)

    def legal_actions(self, state: PgxState) -> Array:
        """The environment's mask; of no meaning where chance moves."""
        mask: Array = state.env.legal_action_mask
        return mask

    def chance_probabilities(self, state: PgxState) -> None:
        """None: chance can only be sampled."""
        return None

    def sample_chance(self, state: PgxState, key: Array) -> Array:
        """A seed, which the environment makes a random key of."""
        return jax.random.randint(key, (), 0, np.iinfo(np.int32).max, jnp.int32)

    def step(self, state: PgxState, action: Array) -> PgxState:
        """The history after a player's action, or after chance with a seed."""
        dealt = self._begin(jax.random.key(action))
        if self.draws:
            moved = self._move(state.env, jnp.maximum(state.pending, 0), jax.random.key(action))
            waits = state.begun & (state.pending < 0)
        else:
            moved = self._move(state.env, action)
            waits = jnp.zeros((), bool)

        def which(before: Array, first: Array, later: Array) -> Array:
            return jnp.where(waits, before, jnp.where(state.begun, later, first))

        env = jax.tree.map(which, state.env, dealt, moved)
        earned = jnp.where(waits | ~state.begun, 0, moved.rewards)
        return PgxState(
            env=env,
            payoffs=state.payoffs + earned.astype(jnp.float32),
            begun=jnp.ones((), bool),
            pending=jnp.where(waits, action, -1).astype(jnp.int32),
        )

    def returns(self, state: PgxState) -> Array:
        """The sum of every player's rewards."""
        return state.payoffs

    def _observed(self, state: PgxState, player: int) -> Array:
        with warnings.catch_warnings(), x64_enabled(False):
            # To observe for a player who does not act is deprecated, and there is no other way.
            warnings.simplefilter("ignore", DeprecationWarning)
            observed = self.env.observe(state.env, jnp.int32(player))
        return jnp.where(state.begun, observed, jnp.zeros_like(observed)).reshape(-1)

    def infoset(self, state: PgxState, player: int) -> Array:
        """Int32 `[1 + F]`: whether chance has dealt, and the player's observation; floats by their bits.

        A pgx observation shows the present. Where it leaves out what the player saw before, so does this.
        """
        observed = self._observed(state, player)
        if jnp.issubdtype(observed.dtype, jnp.floating):
            observed = jax.lax.bitcast_convert_type(observed.astype(jnp.float32), jnp.int32)
        return jnp.concatenate([state.begun.astype(jnp.int32)[None], observed.astype(jnp.int32)])

    def features(self, row: Array, player: int) -> Array:
        """Float32 `[F]`: the player's observation."""
        observed = jax.eval_shape(lambda: self._observed(self.init(), player))
        if jnp.issubdtype(observed.dtype, jnp.floating):
            return jax.lax.bitcast_convert_type(row[1:], jnp.float32)
        return row[1:].astype(jnp.float32)


def from_pgx(env: Any) -> PgxGame:
    """An environment of pgx as a `jaxcfr.ArrayGame` whose chance can only be sampled.

    Players are those of pgx, which draws who of them begins. An outcome of chance is a seed: one for the beginning, and
    one after each action where the environment's `step` needs a random key. A payoff is the sum of a player's rewards.
    An illegal action is a matter of pgx, which ends the play with a penalty; policies are never asked for one.

    Such a game can be played (`sample_play`, `play_batch`, `as_game`) and bounded (`exploitability_bound` with
    `SampledBestResponse`). Its information sets are pgx's observations, which need not recall the past.

    Args:
      env: what `pgx.make(name)` returned, or the name itself.

    Raises:
      MissingPackageError: pgx is not installed.
      OptionError: there is no such environment, or `env` is none.
    """
    if isinstance(env, str):
        try:
            pgx = importlib.import_module("pgx")
        except ImportError as error:
            raise missing_package("from_pgx(name)", "the package pgx", "pgx") from error
        try:
            env = pgx.make(env)
        except ValueError as error:
            raise OptionError(f"pgx has no environment {env!r}; pgx.available_envs() lists them") from error
    missing = next((member for member in _MEMBERS if not hasattr(env, member)), None)
    if missing is not None or isinstance(env, type):
        what = f"the class {env.__name__}" if isinstance(env, type) else type(env).__name__
        raise OptionError(f"from_pgx needs an environment as pgx.make(name) returns it, not {what}")
    return PgxGame(env)
