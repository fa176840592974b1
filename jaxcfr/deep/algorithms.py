"""Deep CFR and its kin: what they have in common, and the few functions in which they differ.

Each is a small frozen dataclass of settings and itself a pytree: numbers that may be swept (`learning_rate`,
`exploration`, exponents) are leaves, sizes are static. One iteration of any of them, for each player p in turn:

    1. walks are sampled with everybody's current strategy (`jaxcfr.deep.walks`),
    2. p's sampled advantages, and the strategies of the next player met on the way, go into memories,
    3. p's network, and only p's, is trained on p's memory.

All of it is one jitted program.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from jaxcfr.arguments import integer
from jaxcfr.deep.approximators import mlp, require_approximator
from jaxcfr.deep.learning import (
    Item,
    Learner,
    Training,
    cross_entropy,
    default_optimiser,
    new_learner,
    squared_error,
    train,
)
from jaxcfr.deep.options import number_option
from jaxcfr.deep.past import Past, no_past
from jaxcfr.deep.reservoir import MAX_CAPACITY, ReservoirBuffer
from jaxcfr.deep.rules import Ask, Rules
from jaxcfr.deep.walks import (
    MAX_WIDTH,
    Choose,
    FollowOne,
    FollowSome,
    Tape,
    Values,
    Walker,
    follow_all,
    follow_starts,
    hand_up,
    uniform_over,
)
from jaxcfr.errors import OptionError
from jaxcfr.games.array_game import CHANCE, TERMINAL
from jaxcfr.regret.matching import normalise
from jaxcfr.regret.schedules import Hyperparameter, at
from jaxcfr.traversal.base import Visited, none_visited


class PlayerState(NamedTuple):
    """What belongs to one player.

    Attributes:
      advantage: the network whose positive outputs are matched.
      prediction: of the next advantages, or None.
      value: what actions are worth to this player, given all that happened; or None.
      strategies: a memory of past strategies, or None.
      past: past advantage networks, or None.
    """

    advantage: Learner
    prediction: Learner | None
    value: Learner | None
    strategies: ReservoirBuffer | None
    past: Past | None


class DeepState(NamedTuple):
    """A run after t iterations; a pytree.

    Attributes:
      t: int32, iterations done.
      key: a typed key; iteration t takes its random numbers from `fold_in(key, t)`.
      players: one for each player.
      visited: histories visited so far.
    """

    t: Array
    key: Array
    players: tuple[PlayerState, ...]
    visited: Visited


STATIC = {"static": True}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class DeepAlgorithm:
    """Settings that all algorithms share; see `DeepCFR` for a use of them.

    Attributes:
      walks: of each player and iteration.
      width: histories of one depth that the walks of a batch have room for; None is four times as many as walks, or as
        many where walks do not branch.
      network: the approximator of advantages; so are `average_network` and `value_network`, None for the same.
      steps: of the optimiser, for each training of an advantage network.
      batch_size: items of a step; None for all in memory.
      reset: begin each training anew instead of with the network of the iteration before.
      learning_rate: of the default optimiser, Adam; falls to a tenth within a training.
      optimiser: any of optax instead, schedules included.
      capacity: items of each memory.
      gamma: iteration t counts with weight t^gamma in the average strategy.
      average_steps: of the optimiser, when the average strategy is asked for.
      past_networks: how many past networks are kept, where the average is made of them.
    """

    walks: int = dataclasses.field(default=1024, metadata=STATIC)
    width: int | None = dataclasses.field(default=None, metadata=STATIC)
    network: Any = dataclasses.field(default=mlp(), metadata=STATIC)
    average_network: Any = dataclasses.field(default=None, metadata=STATIC)
    value_network: Any = dataclasses.field(default=None, metadata=STATIC)
    steps: int = dataclasses.field(default=200, metadata=STATIC)
    batch_size: int | None = dataclasses.field(default=512, metadata=STATIC)
    reset: bool = dataclasses.field(default=False, metadata=STATIC)
    learning_rate: Any = 1e-3
    optimiser: Any = dataclasses.field(default=None, metadata=STATIC)
    capacity: int = dataclasses.field(default=2**18, metadata=STATIC)
    gamma: Any = 1.0
    average_steps: int = dataclasses.field(default=2000, metadata=STATIC)
    past_networks: int = dataclasses.field(default=512, metadata=STATIC)

    branches = False
    """Whether a walk may follow several actions of one history."""
    keeps_past = False
    """Whether the average is made of past networks."""
    predicts = False
    """Whether a second network predicts the next advantages."""
    bootstraps = False
    """Whether advantages are added to what the network said before, instead of remembered for ever."""
    values = False
    """Whether a network learns what actions are worth."""

    def __post_init__(self) -> None:
        limits = {"walks": MAX_WIDTH, "width": MAX_WIDTH, "capacity": MAX_CAPACITY}
        for name in ("walks", "steps", "capacity", "average_steps", "past_networks", "width", "batch_size"):
            if getattr(self, name) is not None or name not in ("width", "batch_size"):
                integer(name, getattr(self, name), 1, limits.get(name))
        if self.width is not None and self.width < self.walks:
            raise OptionError(f"width is {self.width}, but {self.walks} walks have to begin there: raise it")
        for name in ("network", "average_network", "value_network"):
            if getattr(self, name) is not None or name == "network":
                require_approximator(getattr(self, name), name)
        if self.optimiser is not None and not isinstance(self.optimiser, optax.GradientTransformation):
            raise OptionError(f"optimiser has to be one of optax, such as optax.adam(1e-3), not {self.optimiser!r}")
        if not isinstance(self.reset, bool):
            raise OptionError(f"reset has to be True or False, not {self.reset!r}")
        if callable(self.learning_rate):
            raise OptionError("learning_rate is a number: schedules are optax's, optimiser=optax.adam(schedule)")
        number_option(self, "learning_rate")
        number_option(self, "gamma")

    # What differs: see the classes below.

    def choose(self, t: Array) -> Choose:
        """Which of its own actions a walk follows."""
        raise NotImplementedError

    def advantages(self, tape: Tape, found: Values, player: int, q: Array | None) -> tuple[Array, Array]:
        """Sampled advantages of all actions `[D, W, A]`, and how much each history counts `[D, W]`.

        `A(a) = q(a) - sum_b sigma(b) q(b)`; a history that a walk came to by drawing own actions counts as many times
        more as the draws were unlikely.
        """
        own = found.actions
        return own - jnp.sum(tape.sigma * own, axis=-1, keepdims=True), tape.front.scale

    def weight(self, t: Array) -> Array:
        """How much the advantages of iteration t count in memory: linear CFR (Brown et al. 2019, Alg. 1)."""
        return t

    def target(self, before: Array, items: Item, t: Array) -> Array:
        """What to learn, where advantages are added up: from what the network said before `[B, A]`."""
        return before + items.target

    def scores(self, player: PlayerState, ask: Any, t: Array) -> Array:
        """What is matched in iteration t: by default the advantage network's outputs."""
        return ask(player.advantage)

    def learn_first(self, rules: Rules, me: PlayerState, walker: Walker, key: Array) -> tuple[PlayerState, Visited]:
        """What the value network learns before the walks, and how many histories it met for that: nothing."""
        return me, none_visited()

    def learn_after(self, rules: Rules, me: PlayerState, tape: Tape, q: Array | None, key: Array) -> PlayerState:
        """What the value network learns from the walks: nothing."""
        return me

    # What is shared.

    @property
    def room(self) -> int:
        """W, the width of the frontier."""
        if self.width is not None:
            return self.width
        return min(4 * self.walks, MAX_WIDTH) if self.branches else self.walks

    def training(self, kind: str) -> Training:
        """How networks of a kind are trained: "advantage", "value" or "average"."""
        steps = self.average_steps if kind == "average" else self.steps
        networks = {"advantage": self.network, "average": self.average_network, "value": self.value_network}
        return Training(
            network=self.network if networks[kind] is None else networks[kind],
            steps=steps,
            batch=self.batch_size,
            optimiser=default_optimiser(self.learning_rate, steps) if self.optimiser is None else self.optimiser,
            loss=cross_entropy if kind == "average" else squared_error,
            measured=kind != "average",
        )

    def policy(self, player: PlayerState, features: Array, legal: Array) -> Array:
        """The strategy of the next iteration, `[B, A]`: uniform before anything was learnt.

        Positive advantages are matched; where there is none, the action with the highest is played (Brown et al. 2019,
        section 5.1).
        """

        def ask(learner: Learner) -> Array:
            return learner.scale * self.network.apply(learner.params, features, legal)

        t = (player.advantage.updates + 1).astype(jnp.float32)
        scores = jnp.where(legal, self.scores(player, ask, t), -jnp.inf)
        best = jax.nn.one_hot(jnp.argmax(scores, axis=1), legal.shape[1])
        matched = normalise(jax.nn.relu(jnp.where(legal, scores, 0)), best, axis=1)
        return jnp.where(player.advantage.updates > 0, matched, uniform_over(legal))


def _init_player(rules: Rules, algorithm: DeepAlgorithm, player: int, key: Array) -> PlayerState:
    keys = jax.random.split(key, 3)
    observed, features, legal = rules.example(player)
    capacity = algorithm.capacity

    def learner(kind: str, key: Array) -> Learner:
        return new_learner(algorithm.training(kind).network, key, observed, features, legal, capacity)

    value = None
    if algorithm.values:
        kept, seen = rules.history_example()
        value = new_learner(algorithm.training("value").network, keys[2], kept, seen, legal, capacity)
    advantage = learner("advantage", keys[0])
    return PlayerState(
        advantage=advantage,
        prediction=learner("advantage", keys[1]) if algorithm.predicts else None,
        value=value,
        strategies=None if algorithm.keeps_past else learner("average", keys[1]).memory,
        past=no_past(advantage, algorithm.past_networks) if algorithm.keeps_past else None,
    )


def init(rules: Rules, algorithm: DeepAlgorithm, key: Array) -> DeepState:
    """A run before its first iteration. Pure: `jax.vmap` over keys begins several.

    Args:
      rules: of the game.
      algorithm: the settings.
      key: a typed key.
    """
    begin, run = jax.random.split(key)
    players = tuple(
        _init_player(rules, algorithm, player, jax.random.fold_in(begin, player)) for player in range(rules.num_players)
    )
    return DeepState(jnp.zeros((), jnp.int32), run, players, none_visited())


def run(rules: Rules, algorithm: DeepAlgorithm, state: DeepState, iterations: Any) -> DeepState:
    """So many iterations more. Pure: it can be jitted, and vmapped over states and over leaves of the algorithm."""
    return jax.lax.fori_loop(0, iterations, lambda _, state: iterate(rules, algorithm, state), state)


def iterate(rules: Rules, algorithm: DeepAlgorithm, state: DeepState) -> DeepState:
    """One iteration: every player once, in turn."""
    state = state._replace(t=state.t + 1)
    key = jax.random.fold_in(state.key, state.t)
    for player in range(rules.num_players):
        state = update(rules, algorithm, state, player, jax.random.fold_in(key, player))
    return state


def asker(algorithm: DeepAlgorithm, state: DeepState) -> Ask:
    """What players do in this iteration."""

    def ask(player: int, features: Array, legal: Array) -> Array:
        return algorithm.policy(state.players[player], features, legal)

    return ask


def update(rules: Rules, algorithm: DeepAlgorithm, state: DeepState, player: int, key: Array) -> DeepState:
    """One player's walks and training."""
    keys = jax.random.split(key, 8)
    t = state.t.astype(jnp.float32)
    ask = asker(algorithm, state)
    count = rules.num_players
    after = (player + 1) % count
    depth = rules.max_depth + 1
    walker = Walker(
        rules,
        ask,
        rules.prepare(ask),
        player,
        algorithm.room,
        depth,
        algorithm.choose(t),
        tracked=after if count > 2 else None,
        single=not algorithm.branches,
    )
    me, visited = state.players[player], state.visited
    if algorithm.values:
        me, met = algorithm.learn_first(rules, me, walker, keys[0])
        visited = visited.add(met)
    tape, met = walker.run(keys[1], algorithm.walks)
    q = None
    if algorithm.values:
        q = value_of(rules, algorithm, me, tape)
    found = hand_up(tape, player, q)
    sampled, weight = algorithm.advantages(tape, found, player, q)
    # What was met, in one row.
    flat: Tape = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tape)
    own = flat.seen.who == player
    items = Item(
        observed=rules.observe(flat.front.states, flat.seen, player),
        legal=flat.seen.legal,
        target=jnp.where(flat.seen.legal, sampled.reshape(flat.sigma.shape), 0),
        mask=flat.seen.legal,
        weight=weight.reshape(-1) / algorithm.walks,
    )
    items, own = rules.merged(items, own, player)
    items = items._replace(weight=items.weight * (1.0 if algorithm.bootstraps else algorithm.weight(t)))
    me = _learnt(rules, algorithm, me, player, items, own, t, keys[2:6])
    if algorithm.values:
        me = algorithm.learn_after(rules, me, tape, q, keys[6])
    players = list(state.players)
    players[player] = me
    if not algorithm.keeps_past:
        # Of the next player, whose actions were drawn from its strategy: it was met as often as its own reach says. (A
        # game's only player is met at all that it can do, whatever it does.) With more than two players the draws of
        # the others are weighted out, as far as their strategies are positive.
        theirs = flat.seen.who == after
        items = Item(
            observed=rules.observe(flat.front.states, flat.seen, after),
            legal=flat.seen.legal,
            target=flat.sigma,
            mask=flat.seen.legal,
            weight=flat.front.scale / flat.front.others / algorithm.walks,
        )
        items, theirs = rules.merged(items, theirs, after)
        items = items._replace(weight=items.weight * t ** at(algorithm.gamma, t))
        memory = players[after].strategies
        assert memory is not None
        players[after] = players[after]._replace(strategies=memory.insert(keys[7], items, theirs))
    return state._replace(players=tuple(players), visited=visited.add(met))


def _learnt(
    rules: Rules,
    algorithm: DeepAlgorithm,
    me: PlayerState,
    player: int,
    items: Item,
    valid: Array,
    t: Array,
    keys: Array,
) -> PlayerState:
    """The player after new advantages have come into its memory, and its networks were trained on it."""
    training = algorithm.training("advantage")
    before = me.advantage
    memory = before.memory.cleared() if algorithm.bootstraps else before.memory
    before = before._replace(memory=memory.insert(keys[0], items, valid))

    def features_of(observed: Any) -> Array:
        return rules.features_of(observed, player)

    def targets(items: Item, features: Array) -> Item:
        if not algorithm.bootstraps:
            return items
        said = before.scale * training.network.apply(before.params, features, items.legal)
        said = jnp.where(before.updates > 0, said, 0)
        return items._replace(target=algorithm.target(said, items, t))

    def begin(key: Array, learner: Learner) -> Any:
        if not algorithm.reset:
            return learner.params
        _, features, legal = rules.example(player)
        return training.network.init(key, features, legal)

    fresh, first = jax.random.split(keys[1])
    me = me._replace(advantage=train(training, first, before, begin(fresh, before), features_of, targets))
    if me.prediction is not None:
        fresh, first = jax.random.split(keys[2])
        learner = me.prediction._replace(memory=before.memory)
        learner = train(training, first, learner, begin(fresh, learner), features_of)
        # The memory is the other network's.
        me = me._replace(prediction=learner._replace(memory=me.prediction.memory))
    if me.past is not None:
        me = me._replace(past=me.past.add(keys[3], me.advantage))
    return me


def value_of(rules: Rules, algorithm: DeepAlgorithm, me: PlayerState, tape: Tape) -> Array:
    """What the value network says of all histories that were met, `[D, W, A]`; 0 of what is illegal, and while it has
    learnt nothing."""
    value = me.value
    assert value is not None
    depths, width, actions = tape.sigma.shape
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tape.front.states)
    features = rules.history_features_of(rules.history(states))
    said = value.scale * algorithm.training("value").network.apply(
        value.params, features, tape.seen.legal.reshape(-1, actions)
    )
    said = said.reshape(depths, width, actions)
    return jnp.where((value.updates > 0) & tape.seen.legal, said, 0)


def _value_items(rules: Rules, tape: Tape, targets: Array, wanted: Array) -> tuple[Item, Array]:
    """What is learnt of the action that was played at each history, by walks that follow one each.

    Args:
      targets: `[D, W]`, of the action played there.
      wanted: `[D, W]` bool.
    """
    actions = tape.sigma.shape[2]
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), tape.front.states)
    played = jnp.concatenate([tape.front.action[1:], tape.front.action[:1]])
    went_on = jnp.concatenate([tape.front.active[1:], jnp.zeros_like(tape.front.active[:1])])
    mask = jax.nn.one_hot(played.reshape(-1), actions, dtype=bool)
    items = Item(
        observed=rules.history(states),
        legal=tape.seen.legal.reshape(-1, actions),
        target=jnp.where(mask, targets.reshape(-1, 1), 0),
        mask=mask,
        weight=jnp.ones(mask.shape[0], jnp.float32),
    )
    return items, (wanted & went_on & tape.front.active).reshape(-1)


def _shifted(rows: Array) -> Array:
    """What is one depth below, `[D, W]`."""
    return jnp.concatenate([rows[1:], jnp.zeros_like(rows[:1])])


def returns_of(tape: Tape) -> Array:
    """What the play through each history paid in the end, `[D, W]`, for walks that follow one action each."""

    def step(after: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        who, payoff = row
        now = jnp.where(who == TERMINAL, payoff, after)
        return now, now

    return jax.lax.scan(step, jnp.zeros_like(tape.payoff[0]), (tape.seen.who, tape.payoff), reverse=True)[1]


def expected_below(tape: Tape, q: Array) -> Array:
    """What the history after each is worth, by the network: `[D, W]`. Expected SARSA (van Seijen et al. 2009).

    The expectation over the actions, never their maximum, at histories of players; what was paid at leaves; what lies
    below at chance.
    """
    mean = jnp.sum(tape.sigma * jnp.where(tape.seen.legal, q, 0), axis=-1)

    def step(after: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        who, mean, payoff = row
        now = jnp.where(who == TERMINAL, payoff, jnp.where(who == CHANCE, after, mean))
        return now, now

    worth = jax.lax.scan(step, jnp.zeros_like(tape.payoff[0]), (tape.seen.who, mean, tape.payoff), reverse=True)[1]
    return _shifted(worth)


def _trained_value(
    rules: Rules, algorithm: DeepAlgorithm, me: PlayerState, items: Item, valid: Array, key: Array
) -> PlayerState:
    """The player after its value network was trained on what was just seen; other strategies' values are forgotten."""
    assert me.value is not None
    insert_key, train_key = jax.random.split(key)
    value = me.value._replace(memory=me.value.memory.cleared().insert(insert_key, items, valid))
    value = train(algorithm.training("value"), train_key, value, value.params, rules.history_features_of)
    return me._replace(value=value)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class DeepCFR(DeepAlgorithm):
    """Deep CFR (Brown, Lerer, Gross, Sandholm 2019): external sampling, linear weights, a network of the average.

    Attributes:
      actions: how many of the learner's own actions a walk follows at each history, drawn uniformly (robust sampling,
        Li et al. 2020); None for all.
    """

    actions: int | None = dataclasses.field(default=None, metadata=STATIC)

    branches = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.actions is not None:
            integer("actions", self.actions)

    def choose(self, t: Array) -> Choose:
        return follow_all if self.actions is None else FollowSome(self.actions)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class SDCFR(DeepCFR):
    """Single Deep CFR (Steinberger 2019): the average is made of all past networks, and no other is trained for it."""

    keeps_past = True


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class DoubleNeuralCFR(DeepCFR):
    """Double neural CFR (Li et al. 2020): robust sampling, and a network that adds to what it said before."""

    actions: int | None = dataclasses.field(default=2, metadata=STATIC)

    bootstraps = True


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class _WithValues(DeepAlgorithm):
    """One action of its own is followed, and a network knows what actions are worth.

    Attributes:
      exploration: with which probability the learner plays any of its actions.
    """

    exploration: Any = 0.5

    values = True

    def __post_init__(self) -> None:
        super().__post_init__()
        number_option(self, "exploration", 1.0)

    def choose(self, t: Array) -> Choose:
        return FollowOne(at(self.exploration, t))

    def learn_after(self, rules: Rules, me: PlayerState, tape: Tape, q: Array | None, key: Array) -> PlayerState:
        """What it learns from them, by expected SARSA, for the next iteration: then it is fixed before the walks."""
        assert q is not None
        items, valid = _value_items(rules, tape, expected_below(tape, q), tape.seen.who >= 0)
        return _trained_value(rules, self, me, items, valid, key)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class DREAM(_WithValues):
    """DREAM (Steinberger, Lerer, Brown 2020): outcome sampling with a learned baseline, averaged as in SD-CFR."""

    keeps_past = True


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class ESCHER(_WithValues):
    """ESCHER (McAleer, Farina, Lanctot, Sandholm 2023): advantages from a value network, without importance weights.

    The learner's actions are drawn from a fixed strategy, the uniform one, so every history of an information set is
    met as often as everybody else's strategies say, times a constant. The value network is trained before the walks of
    each iteration, on plays of their own: uniform down to a random depth, and by the current strategies below it, from
    where on what they pay is an unbiased sample.
    """

    exploration: Any = 1.0

    def choose(self, t: Array) -> Choose:
        return FollowOne(jnp.ones(()))

    def learn_first(self, rules: Rules, me: PlayerState, walker: Walker, key: Array) -> tuple[PlayerState, Visited]:
        """Plays, and what they paid."""
        until_key, run_key, train_key = jax.random.split(key, 3)
        until = jax.random.randint(until_key, (walker.width,), 0, walker.depth)
        plays = dataclasses.replace(walker, choose=follow_starts)
        tape, met = plays.run(run_key, self.walks, until)
        depth = jnp.arange(walker.depth)[:, None]
        wanted = (tape.seen.who == walker.player) & (depth >= tape.front.until)
        items, valid = _value_items(rules, tape, _shifted(returns_of(tape)), wanted)
        return _trained_value(rules, self, me, items, valid, train_key), met

    def learn_after(self, rules: Rules, me: PlayerState, tape: Tape, q: Array | None, key: Array) -> PlayerState:
        """Nothing."""
        return me

    def advantages(self, tape: Tape, found: Values, player: int, q: Array | None) -> tuple[Array, Array]:
        """`A(a) = q(h, a) - sum_b sigma(b) q(h, b)`, from the network (McAleer et al. 2023, Eq. 5)."""
        assert q is not None
        return q - jnp.sum(tape.sigma * q, axis=-1, keepdims=True), jnp.ones_like(tape.payoff)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class DeepDCFRPlus(_WithValues):
    """VR-DeepDCFR+ (Xu et al. 2026): advantages added up, discounted and floored at zero, with a learned baseline.

    `A_t = [A_{t-1}]+ (t-1)^alpha / ((t-1)^alpha + 1) + a_t`: the network of iteration t is trained on the samples
    of that iteration only.

    Attributes:
      alpha: of the discount.
    """

    alpha: Hyperparameter = 1.5
    gamma: Any = 4.0
    exploration: Any = 0.6

    bootstraps = True

    def __post_init__(self) -> None:
        super().__post_init__()
        number_option(self, "alpha")

    def target(self, before: Array, items: Item, t: Array) -> Array:
        return self.discount(t - 1) * jax.nn.relu(before) + items.target

    def discount(self, t: Array) -> Array:
        """`t^alpha / (t^alpha + 1)`, 0 at t = 0."""
        power = jnp.maximum(t, 1) ** at(self.alpha, t)
        return jnp.where(t > 0, power / (power + 1), 0)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class DeepPDCFRPlus(DeepDCFRPlus):
    """VR-DeepPDCFR+ (Xu et al. 2026): as `DeepDCFRPlus`, and a second network predicts the next advantages.

    Played is what matches `[A_t]+ t^alpha / (t^alpha + 1) + m_t`, with m_t the advantages of iteration t.
    """

    alpha: Hyperparameter = 2.3
    gamma: Any = 5.0

    predicts = True

    def scores(self, player: PlayerState, ask: Any, t: Array) -> Array:
        """What was learnt in iteration t - 1, as it is to be discounted next, and what is expected to come."""
        assert player.prediction is not None
        return self.discount(t - 1) * jax.nn.relu(ask(player.advantage)) + ask(player.prediction)
