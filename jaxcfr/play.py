"""Playing: single plays, matches, and what profiles earn against each other, exactly or by sampling.

Single plays (`play_out`, `play_match`) walk a plain game, history by history, with a numpy generator. Batches
(`play_batch`, `expected_payoffs_sampled`) are compiled where a game is on arrays: a lowered tree, which needs only a
few gathers a move, or an `ArrayGame`, which may be too large for any tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.analytics import expected_payoffs
from jaxcfr.arguments import integer
from jaxcfr.array_play import BATCH, MAX_STEPS, play_arrays, too_long
from jaxcfr.concrete import is_concrete
from jaxcfr.errors import (
    ChanceNotEnumerableError,
    GameError,
    GameTooLargeError,
    OptionError,
    ProfileError,
    RecallError,
)
from jaxcfr.games import checks
from jaxcfr.games.array_game import is_array_game
from jaxcfr.games.base import Game, format_path, game_name
from jaxcfr.profile import Missing, Profile
from jaxcfr.subgames.agent import SubgameAgent
from jaxcfr.traversal import randomness
from jaxcfr.tree.convert import uniform_strategy
from jaxcfr.tree.game_tree import GameTree, Strategy, require_tree
from jaxcfr.tree.lower import LoweredGame, lower

MAX_PLAYS = 10_000
"""Plays of a match, at most, unless said otherwise."""

EXACT_NODES = 1_000_000
"""`head_to_head` is exact for games of at most this many histories, unless said otherwise."""

SHOWN_ACTIONS = 20


class Player(Protocol):
    """Whoever plays: a `Profile`, a `UniformPlayer`, or any object with this method."""

    def act_stochastic(self, game: Any, player: int, rng: np.random.Generator) -> Hashable:
        """The action of `player` at the history `game`; it should look at `game.infoset_key(player)` only."""
        ...


class UniformPlayer:
    """Plays every legal action with the same probability."""

    def act_stochastic(self, game: Any, player: int, rng: np.random.Generator) -> Hashable:
        """One of the legal actions."""
        actions = checks.moves("legal_actions()", game.legal_actions())
        return cast(Hashable, actions[int(rng.integers(len(actions)))])

    def __repr__(self) -> str:
        return "UniformPlayer()"


class Estimate(NamedTuple):
    """Expected payoffs, estimated from independent plays.

    Attributes:
      mean: `[P]` float64, in units of payoff.
      standard_error: `[P]`, the standard deviation of a payoff over sqrt(n).
      low, high: `[P]`, the confidence interval, `mean` plus and minus Student's t times the standard error.
      n: plays.
      confidence: of the interval, 0.95 for 95%.
    """

    mean: np.ndarray
    standard_error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n: int
    confidence: float


class HeadToHead(NamedTuple):
    """What `a` earns against `b`, see `head_to_head`.

    Attributes:
      value: a's expected payoff per play, averaged over the seats.
      by_seat: `[P]`, a's expected payoff in each seat, `b` playing all the others.
      standard_error: of `value`; 0 where it is exact.
      exact: whether it was computed from the tree, and not sampled.
      plays: how many were sampled in all.
    """

    value: float
    by_seat: np.ndarray
    standard_error: float
    exact: bool
    plays: int


# One play after the other


def play_out(
    game: Any,
    profiles: Sequence[Player],
    rng: np.random.Generator,
    *,
    max_steps: int = MAX_STEPS,
    missing: Missing = "error",
) -> np.ndarray:
    """Plays a game to its end.

    Args:
      game: the history where the play begins, of a plain game; `jaxcfr.as_game` makes one of an array game.
      profiles: one per player: a `Profile`, of which player p uses p's strategy, or any `Player`.
      rng: draws chance and the actions.
      max_steps: a play with more moves than this, chance included, is an error.
      missing: what a profile does at information sets that it does not have: "error", or "uniform".

    Returns:
      `[P]` float64, every player's payoff.

    Raises:
      GameError: a rule of the game is broken, an action is not legal, or the play does not end.
      OptionError: not one profile for each player, or another argument makes no sense.
      ProfileError: a profile is of another game.
    """
    check_players(game, profiles, missing)
    _require_generator(rng, "play_out")
    return _play(game, profiles, rng, integer("max_steps", max_steps), missing)[0]


def play_match(
    game: Any,
    profiles: Sequence[Player],
    start: Any,
    transition: Callable[[Any, tuple[Hashable, ...]], Any],
    rng: np.random.Generator,
    *,
    max_plays: int = MAX_PLAYS,
    max_steps: int = MAX_STEPS,
    missing: Missing = "error",
) -> np.ndarray:
    """Plays one play after the other, and sums the payoffs.

    Args:
      game: the game, whose root is where a play begins unless something else is said.
      profiles: one per player, as in `play_out`.
      start: the history where the first play begins; None means `game`.
      transition: called with the terminal history of each play and all its actions (chance included); returns the
        history where the next play begins, of a game with as many players, or None to end the match.
      rng: draws chance and the actions.
      max_plays: a match of more plays than this is an error.
      max_steps, missing: of every play, as in `play_out`.

    Returns:
      `[P]` float64, the sum of every player's payoffs.

    Raises:
      GameError: the match does not end; or as in `play_out`.
      OptionError, ProfileError: as in `play_out`.
    """
    check_players(game, profiles, missing)
    _require_generator(rng, "play_match")
    max_plays, max_steps = integer("max_plays", max_plays), integer("max_steps", max_steps)
    total = np.zeros(len(profiles))
    node = game if start is None else start
    for _ in range(max_plays):
        check_players(node, profiles, missing)
        payoffs, last, actions = _play(node, profiles, rng, max_steps, missing)
        total += payoffs
        node = transition(last, actions)
        if node is None:
            return total
    raise GameError(
        f"{game_name(game)}: the match goes on after max_plays = {max_plays:,} plays; does transition return None at "
        "last? If so, raise max_plays"
    )


def _play(
    root: Any, players: Sequence[Player], rng: np.random.Generator, max_steps: int, missing: Missing
) -> tuple[np.ndarray, Any, tuple[Hashable, ...]]:
    """The payoffs of a play, its terminal history, and its actions."""
    node: Any = root
    path: list[Hashable] = []
    try:
        while not checks.flag("is_terminal()", node.is_terminal()):
            if len(path) == max_steps:
                raise too_long(game_name(root), max_steps)
            if checks.flag("is_chance()", node.is_chance()):
                sample = getattr(node, "sample_chance", None)
                action = Game.sample_chance(node, rng) if sample is None else sample(rng)
            else:
                player = checks.player(node.player_to_act(), len(players))
                action = choose(players[player], node, player, rng, missing)
            path.append(action)
            node = node.step(action)
        return np.array(checks.payoffs(node.terminal_returns(), len(players))), node, tuple(path)
    except checks.BrokenRuleError as error:
        shown = format_path(path[-SHOWN_ACTIONS:])
        before = f"({len(path) - SHOWN_ACTIONS} moves before) > " if len(path) > SHOWN_ACTIONS else ""
        raise GameError(f"{game_name(root)}: at {before}{shown}: {error}") from error.__cause__


def choose(who: Player, node: Any, player: int, rng: np.random.Generator, missing: Missing) -> Hashable:
    """The action of `player` at a decision, which has to be legal."""
    if isinstance(who, Profile | SubgameAgent):
        probabilities = who.policy(node, player, missing=missing)
        return cast(Hashable, tuple(node.legal_actions())[int(rng.choice(len(probabilities), p=probabilities))])
    action = who.act_stochastic(node, player, rng)
    legal = checks.moves("legal_actions()", node.legal_actions())
    if action not in legal:
        raise checks.BrokenRuleError(f"player {player} chose {action!r}, but the legal actions are {list(legal)!r}")
    return action


def check_players(game: Any, profiles: Any, missing: str) -> None:
    """Raises unless there is one player for each seat of a plain game."""
    checks.require_instance(game, "playing")
    if not hasattr(game, "is_terminal") or not hasattr(game, "step"):
        hint = "; play_batch plays array games" if is_array_game(game) else ""
        raise OptionError(f"a history of a plain game is needed, not {checks.instead_of_game(game)}{hint}")
    if missing not in ("error", "uniform"):
        raise OptionError(f'missing has to be "error" or "uniform", not {missing!r}')
    try:
        players = checks.num_players(getattr(game, "num_players", None))
    except checks.BrokenRuleError as error:
        raise GameError(f"{game_name(game)}: {error}") from None
    _check_count(game_name(game), players, profiles)
    for seat, who in enumerate(profiles):
        if isinstance(who, Profile | SubgameAgent) and who.num_players != players:
            raise ProfileError(
                f"the profile of player {seat} is of {who.game_name}, which has {who.num_players} players, but "
                f"{game_name(game)} has {players}"
            )
        if isinstance(who, type) or not hasattr(who, "act_stochastic"):
            raise OptionError(
                f"player {seat} has to be a Profile, or an object with the method act_stochastic(game, player, rng), "
                f"not {who!r}"
            )


def _check_count(name: str, players: int, profiles: Any) -> None:
    if not isinstance(profiles, Sequence) or isinstance(profiles, str):
        raise OptionError(
            f"{name} has {players} players, and a list with one profile for each is needed, not "
            f"{type(profiles).__name__}; the same profile may be in it more than once"
        )
    if len(profiles) != players:
        raise OptionError(f"{name} has {players} players, but {len(profiles)} profiles were given")


def _require_generator(rng: Any, what: str) -> None:
    if not isinstance(rng, np.random.Generator):
        raise OptionError(
            f"{what} needs a numpy.random.Generator as rng, not {type(rng).__name__}; numpy.random.default_rng(seed) "
            "makes one"
        )


# Batches


def play_batch(
    game: Any,
    profiles: Any,
    rng: Array | np.random.Generator | int,
    n: int,
    *,
    max_steps: int = MAX_STEPS,
    missing: Missing = "error",
) -> np.ndarray:
    """The payoffs of `n` independent plays.

    On arrays (the first three kinds of games) up to a million plays are one call of a compiled program, and the same
    key gives the same plays.

    Args:
      game: a `GameTree`, for which `profiles` is a strategy; a `LoweredGame`, with one `Profile` (or `UniformPlayer`)
        per player; an
        `ArrayGame`, with one policy per player (see `jaxcfr.array_play`); or a history of a plain game, which is
        played as by `play_out`, one play after the other.
      profiles: who plays.
      rng: a JAX key, a numpy generator, or a seed.
      n: how many plays.
      max_steps, missing: as in `play_out`; a tree has no plays that do not end.

    Returns:
      `[n, P]`, every player's payoff in every play.

    Raises:
      OptionError: not one profile for each player, or another argument makes no sense.
      StrategyError, ProfileError: the strategy or a profile does not fit.
      GameError: a play does not end, or a rule of the game is broken.
    """
    n, max_steps = integer("n", n), integer("max_steps", max_steps)
    if not is_concrete(rng, game if isinstance(game, GameTree) else None, profiles):
        raise OptionError(
            "batches of plays are made outside of jit, vmap and grad; jaxcfr.sample_play is one play of an array game, "
            "and works inside"
        )
    if isinstance(game, LoweredGame):
        return _play_tree(game.tree, seated(game, profiles, missing), as_key(rng), n)
    if isinstance(game, GameTree):
        require_tree(game).check_strategy(profiles)
        return _play_tree(game, profiles, as_key(rng), n)
    if is_array_game(game) and not hasattr(game, "is_terminal"):
        checks.require_instance(game, "play_batch")
        return play_arrays(game, profiles, as_key(rng), n, max_steps)
    check_players(game, profiles, missing)
    generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(_key_numbers(rng))
    return np.stack([_play(game, profiles, generator, max_steps, missing)[0] for _ in range(n)])


def expected_payoffs_sampled(
    game: Any,
    profiles: Any,
    rng: Array | np.random.Generator | int,
    n: int,
    *,
    confidence: float = 0.95,
    max_steps: int = MAX_STEPS,
    missing: Missing = "error",
) -> Estimate:
    """Every player's expected payoff, estimated from `n` independent plays, with a confidence interval.

    Args:
      game, profiles, rng, n, max_steps, missing: as in `play_batch`.
      confidence: of the interval, for each player by itself. It is exact for normal means, so make n large enough
        for that: where rare plays pay much, a few hundred plays may not have seen them.

    Raises:
      OptionError: n is less than 2, or `confidence` is not between 0 and 1; or as in `play_batch`.
      StrategyError, ProfileError, GameError: as in `play_batch`.
    """
    check_confidence(confidence)
    if integer("n", n) < 2:
        raise OptionError("n has to be at least 2: the error of a mean takes two plays")
    return estimate(play_batch(game, profiles, rng, n, max_steps=max_steps, missing=missing), confidence)


def check_confidence(confidence: Any) -> None:
    if isinstance(confidence, bool) or not isinstance(confidence, float | np.floating) or not 0 < confidence < 1:
        raise OptionError(f"confidence has to be a number between 0 and 1, such as 0.95, not {confidence!r}")


def estimate(payoffs: np.ndarray, confidence: float) -> Estimate:
    """Mean and confidence interval of independent samples `[n, P]`."""
    from scipy.stats import t

    n = len(payoffs)
    values = payoffs.astype(np.float64)
    unit = unit_of(values)
    mean = (values / unit).mean(0) * unit
    error = (values / unit).std(0, ddof=1) / math.sqrt(n) * unit
    width = float(t.ppf((1 + confidence) / 2, n - 1)) * error
    return Estimate(mean, error, mean - width, mean + width, n, float(confidence))


def unit_of(values: np.ndarray) -> float:
    """A power of two near the largest value, by which all are divided exactly, so that their squares are in range."""
    size = float(np.abs(values).max())
    return math.ldexp(1.0, math.frexp(size)[1] - 1) if 0 < size < math.inf else 1.0


def as_key(rng: Any) -> Array:
    """A JAX key: of a seed, the key itself, or one drawn with a numpy generator."""
    if isinstance(rng, np.random.Generator):
        return jax.random.key(int(rng.integers(1 << 32)))
    return randomness.as_key(rng)


def _key_numbers(rng: Any) -> list[int]:
    numbers: list[int] = np.asarray(jax.random.key_data(as_key(rng))).ravel().tolist()
    return numbers


def seated(lowered: LoweredGame, profiles: Any, missing: Missing) -> Strategy:
    """The strategy in which player p plays p's part of the p-th profile."""
    _check_count(lowered.name, lowered.tree.num_players, profiles)
    parts: dict[int, Strategy] = {}
    for seat, who in enumerate(profiles):
        if not isinstance(who, Profile | UniformPlayer):
            raise OptionError(
                f"player {seat} of a lowered game has to be a Profile, not {type(who).__name__}; for a strategy pass "
                "the .tree instead of the LoweredGame"
            )
        if id(who) not in parts:
            parts[id(who)] = (
                who.to_strategy(lowered, missing=missing)
                if isinstance(who, Profile)
                else uniform_strategy(lowered.tree)
            )
    return tuple(parts[id(who)][seat] for seat, who in enumerate(profiles))


def _play_tree(tree: GameTree, strategy: Strategy, key: Array, n: int) -> np.ndarray:
    if tree.histories is None:
        raise OptionError("plays are sampled history by history: lower the game with histories=True")
    count = min(BATCH, 1 << (n - 1).bit_length())
    found = []
    for batch, begin in enumerate(range(0, n, count)):
        payoffs = _tree_plays(tree, strategy, jax.random.fold_in(key, batch), count)
        found.append(np.asarray(payoffs)[: n - begin])
    return np.concatenate(found)


@jax.jit
def _reached(tree: GameTree, strategy: Strategy) -> Array:
    """`[N]`: the sum of the probabilities of a history and its siblings before it; 0 where there is no such history.

    Sums stay as they are over edges of probability 0, whatever the rounding, so that those are never drawn.
    """
    histories = tree.histories
    assert histories is not None
    parent = jnp.maximum(histories.parent, 0)
    probability = histories.chance
    for p, values in enumerate(strategy):
        # The root has no sequence, and no parent that acts.
        edge = jnp.append(jnp.asarray(values, tree.dtype), 0)[histories.sequence[p]]
        probability = jnp.where(histories.player[parent] == p, jnp.maximum(edge, 0), probability)
    eldest = histories.first_child[parent] == jnp.arange(parent.shape[0])

    def within(operation: Callable[[Array, Array], Array], values: Array) -> Array:
        """Running results among siblings."""

        def combine(before: tuple[Array, Array], after: tuple[Array, Array]) -> tuple[Array, Array]:
            (first, left), (second, right) = before, after
            return first | second, jnp.where(second, right, operation(left, right))

        return jax.lax.associative_scan(combine, (eldest, values))[1]

    sums = within(jnp.add, probability)
    return within(jnp.maximum, jnp.where(probability > 0, sums, 0))


def _tree_plays_impl(tree: GameTree, strategy: Strategy, key: Array, count: int) -> Array:
    """Payoffs `[count, P]` of plays on a tree: at every move a bisection among the children."""
    histories = tree.histories
    assert histories is not None
    reached = _reached(tree, strategy)
    most = histories.num_children.max(initial=1)
    halvings = jnp.ceil(jnp.log2(jnp.asarray(most, jnp.float32))).astype(jnp.int32) + 1

    def goes_on(carry: tuple[Array, Array]) -> Array:
        node, _ = carry
        return jnp.any(histories.num_children[node] > 0)

    def move(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        node, step = carry
        first, children = histories.first_child[node], histories.num_children[node]
        drawn = jax.random.uniform(jax.random.fold_in(key, step), node.shape, reached.dtype)
        last = first + children - 1
        # Below the sum of all, whatever the rounding.
        below = drawn * reached[last]

        def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bounds
            middle = (low + high) // 2
            beyond = reached[middle] > below
            return jnp.where(beyond, low, jnp.minimum(middle + 1, high)), jnp.where(beyond, middle, high)

        _, chosen = jax.lax.fori_loop(0, halvings, halve, (first, last))
        return jnp.where(children > 0, chosen, node), step + 1

    node, _ = jax.lax.while_loop(goes_on, move, (jnp.zeros(count, jnp.int32), jnp.zeros((), jnp.int32)))
    return tree.terminal_payoffs[histories.terminal[node]]


_tree_plays = jax.jit(_tree_plays_impl, static_argnames="count")


# Two profiles against each other


def head_to_head(
    game: Any,
    a: Player,
    b: Player,
    rng: np.random.Generator | None = None,
    n: int = 10_000,
    *,
    max_nodes: int = EXACT_NODES,
    missing: Missing = "error",
    dtype: Any = None,
) -> HeadToHead:
    """What `a` earns against `b`, over all seats: in each seat in turn `a` sits, and `b` in all the others.

    Exact if both are profiles (or uniform players) and the game can be lowered, that is, it has at most `max_nodes`
    histories, chance can be enumerated, and nobody forgets. Else `n` plays are sampled in each seat, one after the
    other.

    Args:
      game: the root of a plain game.
      a, b: who plays: profiles, or other players.
      rng: draws the plays; needed unless the result is exact.
      n: plays in each seat, where they are sampled.
      max_nodes: the largest game that is lowered.
      missing: what a profile does at information sets that it does not have: "error", or "uniform".
      dtype: of the exact result, as in `jaxcfr.lower`.

    Raises:
      OptionError: plays have to be sampled, and there is no `rng`; or another argument makes no sense.
      ProfileError: a profile is of another game.
      GameError: a rule of the game is broken.
    """
    players = getattr(game, "num_players", 0)
    check_players(game, [a] * players if isinstance(players, int) else [], missing)
    check_players(game, [b] * players, missing)
    if integer("n", n) < 2:
        raise OptionError("n has to be at least 2: the error of a mean takes two plays")
    reason = "a player is no Profile"
    if isinstance(a, Profile | UniformPlayer) and isinstance(b, Profile | UniformPlayer):
        try:
            lowered = lower(game, dtype=dtype, max_nodes=max_nodes, histories=False)
        except (GameTooLargeError, ChanceNotEnumerableError, RecallError) as error:
            reason = str(error)
        else:
            by_seat = np.zeros(players)
            for seat in range(players):
                strategy = seated(lowered, [a if p == seat else b for p in range(players)], missing)
                by_seat[seat] = float(expected_payoffs(lowered.tree, strategy)[seat])
            return HeadToHead(float(by_seat.mean()), by_seat, 0.0, True, 0)
    if rng is None:
        raise OptionError(
            f"head_to_head has to sample plays, and needs rng = numpy.random.default_rng(seed) for that: {reason}"
        )
    _require_generator(rng, "head_to_head")
    payoffs = np.empty((n, players))
    for seat in range(players):
        who = [a if p == seat else b for p in range(players)]
        payoffs[:, seat] = play_batch(game, who, rng, n, missing=missing)[:, seat]
    unit = unit_of(payoffs)
    payoffs /= unit
    by_seat = payoffs.mean(0)
    # The seats are sampled independently.
    spread = math.sqrt(float((payoffs.var(0, ddof=1) / n).sum()))
    return HeadToHead(float(by_seat.mean()) * unit, by_seat * unit, spread / players * unit, False, n * players)
