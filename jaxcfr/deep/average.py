"""The average strategy of a run."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxcfr.deep.algorithms import DeepAlgorithm, DeepState, PlayerState
from jaxcfr.deep.approximators import Params
from jaxcfr.deep.learning import Learner, train
from jaxcfr.deep.rules import Rules, TreeRules
from jaxcfr.regret.average import init_sum
from jaxcfr.regret.schedules import at
from jaxcfr.solve import strategy_of_sums
from jaxcfr.tree.game_tree import Strategy

AVERAGE_KEY = 0xA7E
"""Keeps the random numbers of this training apart from those of iterations."""


def average_networks(rules: Rules, algorithm: DeepAlgorithm, state: DeepState) -> tuple[Params, ...]:
    """Per player a network trained on its past strategies; what it says, softmaxed, is the average strategy.

    Training is part of the question, not of the run: the run goes on as if nobody had asked.
    """
    training = algorithm.training("average")
    found = []
    for player, mine in enumerate(state.players):
        assert mine.strategies is not None
        key = jax.random.fold_in(jax.random.fold_in(state.key, AVERAGE_KEY), player)
        init_key, train_key = jax.random.split(jax.random.fold_in(key, state.t))
        _, features, legal = rules.example(player)
        learner = Learner(
            training.network.init(init_key, features, legal),
            jnp.ones((), jnp.float32),
            mine.strategies,
            jnp.zeros((), jnp.int32),
            jnp.zeros(2, jnp.float32),
        )

        def features_of(observed: Any, player: int = player) -> Array:
            return rules.features_of(observed, player)

        found.append(train(training, train_key, learner, learner.params, features_of).params)
    return tuple(found)


def average_policy(algorithm: DeepAlgorithm, params: Params, features: Array, legal: Array) -> Array:
    """What such a network plays, `[B, A]`."""
    outputs = algorithm.training("average").network.apply(params, features, legal)
    return jnp.where(legal, jax.nn.softmax(jnp.where(legal, outputs, -1e9), axis=1), 0)


def asked_strategy(rules: TreeRules, algorithm: DeepAlgorithm, networks: tuple[Params, ...]) -> Strategy:
    """What such networks, one for each player, play at all information sets."""
    return rules.strategy(
        rules.table(lambda player, features, legal: average_policy(algorithm, networks[player], features, legal))
    )


def played(mine: PlayerState, algorithm: DeepAlgorithm, index: Array, features: Array, legal: Array) -> Array:
    """What the past network number `index` plays, `[B, A]`."""
    assert mine.past is not None
    learner = mine.advantage._replace(
        params=jax.tree.map(lambda rows: rows[index], mine.past.params),
        scale=mine.past.scale[index],
        updates=(mine.past.played[index] - 1).astype(jnp.int32),
    )
    return algorithm.policy(mine._replace(advantage=learner), features, legal)


def past_weights(mine: PlayerState, algorithm: DeepAlgorithm, t: Array) -> Array:
    """How much each past network counts: t^gamma for the one that was played in iteration t.

    Returns:
      `[T + 1]`, in units of the weight of iteration t; the last one is of the uniform strategy of the first iteration.
    """
    past = mine.past
    assert past is not None
    number = past.played
    there = (number > 0) & (number <= t)
    safe = jnp.where(there, number, 1.0)
    # Where there were more than are kept, each stands for as many.
    stands_for = jnp.maximum(past.met / number.shape[0], 1).astype(jnp.float32)
    weights = jnp.where(there, stands_for * (safe / jnp.maximum(t, 1)) ** at(algorithm.gamma, safe), 0)
    first = (1 / jnp.maximum(t, 1)) ** at(algorithm.gamma, jnp.ones(()))
    return jnp.append(weights, first.astype(weights.dtype))


def average_strategy(rules: TreeRules, algorithm: DeepAlgorithm, state: DeepState) -> Strategy:
    """The average strategy in the layout of the tree.

    Of past networks it is exact: each counts by the player's own reach (Steinberger 2019, section 4). The strategy of
    the first iteration, before anything was learnt, is the uniform one.
    """
    if not algorithm.keeps_past:
        return asked_strategy(rules, algorithm, average_networks(rules, algorithm, state))
    sums = []
    for player, (mine, treeplex) in enumerate(zip(state.players, rules.tree.treeplexes, strict=True)):
        weights = past_weights(mine, algorithm, state.t.astype(jnp.float32))

        def add(total: Array, index: Array, player: int = player, mine: PlayerState = mine, w: Array = weights) -> Any:
            def reached() -> Array:
                flat = rules.player_strategy(
                    played(mine, algorithm, index, rules.features[player], rules.player_legal(player)), player
                )
                return (
                    total + w[index].astype(total.dtype) * rules.tree.treeplexes[player].realization_weights(flat)[:-1]
                )

            return jax.lax.cond(w[index] > 0, reached, lambda: total), None

        total = weights[-1].astype(treeplex.dtype) * treeplex.realization_weights(treeplex.uniform)[:-1]
        total, _ = jax.lax.scan(add, total, jnp.arange(weights.shape[0] - 1))
        sums.append(init_sum(total))
    return strategy_of_sums(rules.tree, tuple(sums), None)


def current_strategy(rules: TreeRules, algorithm: DeepAlgorithm, state: DeepState) -> Strategy:
    """What is played in the next iteration; not what converges."""
    return rules.strategy(
        rules.table(lambda player, features, legal: algorithm.policy(state.players[player], features, legal))
    )
