"""Lower bounds on exploitability, for games that are too large for an exact best response.

Whatever one player does against fixed strategies, a best response earns at least as much. So a response is found that
is better than nothing, plays are sampled in which it meets the strategies, and its mean payoff is a lower bound, up to
the error of sampling, which the interval tells. Two ways to find one:

* `LocalBestResponse` (Lisý and Bowling 2017, "Equilibrium approximation quality of current no-limit poker bots"):
  keeps, through the play, the exact distribution over the histories that it may be in, given what it has seen and how
  the others play; and takes the action that is best if it goes on by a fixed rule, the *rollout*, after it. In the
  paper the rollout is to call until the end, and so do the others once they have not folded; here the others go on as
  their strategies say, so that the response is no worse than the rollout itself.
* `SampledBestResponse`: learns from plays against the strategies, by UCT on its own information sets (Kocsis and
  Szepesvári 2006; for exploitability Timbers et al. 2022, "Approximate exploitability"). It needs neither beliefs nor
  probabilities of chance. Other plays than those it learned from are the ones that count.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from jaxcfr.arguments import integer
from jaxcfr.array_play import (
    MAX_STEPS,
    Look,
    Policy,
    Programs,
    as_policies,
    begins,
    programs_of,
    require_ended,
    too_long,
)
from jaxcfr.errors import ChanceNotEnumerableError, GameError, NotTwoPlayerConstantSumError, OptionError, StrategyError
from jaxcfr.games import checks
from jaxcfr.games.array_game import TERMINAL, Describe, State, chance_is_enumerable, is_array_game
from jaxcfr.play import as_key, check_confidence

SIZES = (64, 256, 2048, 16384)
"""States go through compiled programs in batches of these sizes, so that few programs are compiled."""

EVALUATED = 1024
"""Plays that are evaluated side by side, at most."""

STORED = 4_000_000
"""Histories in all beliefs that are kept for later plays; then they are forgotten."""


@dataclasses.dataclass(frozen=True)
class LocalBestResponse:
    """Looks one action ahead, with beliefs over histories; see the module's text.

    Attributes:
      rollouts: plays that estimate the worth of each action.
      rollout: the policy by which the response is assumed to go on; None means as the strategy of its own seat, which
        the response then improves on. (In poker, to call until the end as in the paper can be better against weak
        strategies.)
      max_histories: a belief of more histories is thinned out at random to so many, which costs quality only.
      between: whether what the game says that the response observes between its own decisions is used, which keeps
        beliefs small. Whatever it is has to show in the information sets of its later decisions too; where a play shows
        that it does not, that is an error. False looks at the response's own decisions only.
    """

    rollouts: int = 256
    rollout: Policy | None = None
    max_histories: int = 20_000
    between: bool = True


@dataclasses.dataclass(frozen=True)
class SampledBestResponse:
    """Learns by UCT from plays against the strategies; see the module's text.

    Attributes:
      plays: plays to learn from, in each seat.
      exploration: how much actions that seem worse are tried, relative to the range of payoffs.
      batch: plays side by side; fewer learn more from each other.
    """

    plays: int = 50_000
    exploration: float = 0.5
    batch: int = 128


class ExploitabilityBound(NamedTuple):
    """A lower bound on the exploitability of strategies, in units of payoff.

    Attributes:
      value: half of what the two responses earn together beyond the sum of the payoffs; the estimate of the bound.
      standard_error: of `value`, from the sampled plays.
      low, high: its confidence interval. The exploitability is at least `low` with that confidence; it may be anywhere
        above `high`.
      responses: `[2]`, what the response earns in each seat.
      n: plays in each seat.
      confidence: of the interval.
    """

    value: float
    standard_error: float
    low: float
    high: float
    responses: np.ndarray
    n: int
    confidence: float


def exploitability_bound(
    game: Any,
    policies: Any,
    rng: Array | np.random.Generator | int,
    n: int = 1000,
    method: LocalBestResponse | SampledBestResponse | None = None,
    *,
    confidence: float = 0.95,
    max_steps: int = MAX_STEPS,
) -> ExploitabilityBound:
    """A lower bound on the exploitability (NashConv / 2) of policies, by playing responses against them.

    Args:
      game: a `jaxcfr.ArrayGame` of two players, constant-sum.
      policies: one per player, see `jaxcfr.array_play`.
      rng: a JAX key, a numpy generator, or a seed.
      n: plays of the response in each seat.
      method: how responses are found; None means `LocalBestResponse()`.
      confidence: of the interval.
      max_steps: a play with more moves, chance included, is an error.

    Raises:
      NotTwoPlayerConstantSumError: the game is not two-player constant-sum, as far as its plays show.
      ChanceNotEnumerableError: beliefs are needed, and chance can only be sampled; use `SampledBestResponse`.
      OptionError: an argument makes no sense.
      StrategyError: a policy gives no distribution.
      GameError: a play does not end.
    """
    checks.require_instance(game, "exploitability_bound")
    if not is_array_game(game) or hasattr(game, "is_terminal"):
        raise OptionError(
            f"exploitability_bound needs an ArrayGame, not {type(game).__name__}: the bundled games have one, "
            "game.array_game(); jaxcfr.exploitability is exact, for games that can be lowered"
        )
    method = LocalBestResponse() if method is None else method
    check_confidence(confidence)
    n, max_steps = integer("n", n), integer("max_steps", max_steps)
    if n < 2:
        raise OptionError("n has to be at least 2: the error of a mean takes two plays")
    name = Describe(game).name
    if int(game.num_players) != 2:
        raise NotTwoPlayerConstantSumError(
            f"exploitability_bound is defined for two-player constant-sum games, and {name} has {game.num_players} "
            "players"
        )
    policies = as_policies(game, policies)
    if any(map(begins, policies)):
        raise OptionError(
            f"{name}: a policy draws a strategy for each play, and so says nothing of single information sets: there "
            "is no bound for it"
        )
    if isinstance(method, LocalBestResponse):
        _check_local(method, name, game)
        make: Callable[[_Table, Array], Any] = lambda table, key: _Local(table, method, key)  # noqa: E731
    elif isinstance(method, SampledBestResponse):
        _check_sampled(method)
        make = lambda table, key: _Sampled(table, method, key)  # noqa: E731
    else:
        raise OptionError(f"method has to be a LocalBestResponse or a SampledBestResponse, not {method!r}")

    payoffs = []
    # A key of the default kind, whose data stand for it below.
    root = jax.random.key(jax.random.bits(as_key(rng), dtype=np.uint32))
    for seat, key in enumerate(jax.random.split(root, 2)):
        learning, playing = jax.random.split(key)
        table = _Table(game, programs_of(game), policies, seat, max_steps)
        response = make(table, learning)
        payoffs.append(table.play(response, playing, n))
    sums = np.concatenate(payoffs).sum(1)
    size = max(float(np.abs(part).max()) for part in payoffs)
    if np.ptp(sums) > 1e-5 * size:
        raise NotTwoPlayerConstantSumError(
            f"exploitability_bound is defined for two-player constant-sum games, and payoffs of {name} sum to "
            f"{sums.min():g} as well as to {sums.max():g}"
        )
    earned = [part[:, seat] for seat, part in enumerate(payoffs)]
    responses = np.array([values.mean() for values in earned])
    value = (float(responses.sum()) - float(sums.mean())) / 2
    error = math.sqrt(sum(float(values.var(ddof=1)) for values in earned) / n) / 2
    from scipy.stats import t

    width = float(t.ppf((1 + confidence) / 2, n - 1)) * error
    return ExploitabilityBound(value, error, value - width, value + width, responses, n, float(confidence))


def _check_local(method: LocalBestResponse, name: str, game: Any) -> None:
    integer("rollouts", method.rollouts)
    integer("max_histories", method.max_histories)
    if method.rollout is not None and not callable(method.rollout):
        raise OptionError(f"rollout has to be a policy, policy(game, state, player), not {method.rollout!r}")
    if not chance_is_enumerable(game):
        raise ChanceNotEnumerableError(
            f"{name}: chance can only be sampled, but the beliefs of LocalBestResponse need every outcome with its "
            "probability; use SampledBestResponse()"
        )


def _check_sampled(method: SampledBestResponse) -> None:
    integer("plays", method.plays)
    integer("batch", method.batch)
    if not (isinstance(method.exploration, int | float) and 0 <= method.exploration < math.inf):
        raise OptionError(f"exploration has to be a number of at least 0, not {method.exploration!r}")


class _Table:
    """Where a response in one seat plays against policies in the other."""

    def __init__(self, game: Any, programs: Programs, policies: tuple[Any, ...], seat: int, max_steps: int) -> None:
        self.game = game
        self.programs = programs
        self.policies = policies
        self.seat = seat
        self.max_steps = max_steps
        self.root: State = jax.tree.map(lambda leaf: np.asarray(leaf)[None], jax.jit(game.init)())

    def look(self, states: State) -> Look:
        """Facts of states, as numpy arrays."""
        found = _batched(lambda part: self.programs.look(self.policies, part, self.seat), (states,))
        if not np.all(found.sound | (found.player == self.seat)):
            raise StrategyError(
                f"{Describe(self.game).name}: the policy of player {1 - self.seat} gave numbers that are no "
                "distribution over the legal actions"
            )
        return found

    def step(self, states: State, actions: np.ndarray) -> State:
        """The states after an action each."""
        return _batched(self.programs.step, (states, actions.astype(np.int32)))

    def play(self, response: Any, key: Array, n: int) -> np.ndarray:
        """Payoffs `[n, 2]` of plays of a response.

        Args:
          response: `begin(m)` is called before m plays, then for all that are not over `see(play, row, acts)` after
            every move, `act(play, legal)` where it is the response's turn, and `end(payoffs)` at last.
          key: of the plays.
          n: how many.
        """
        count = min(EVALUATED, n)
        return np.concatenate(
            [
                self.play_together(response, jax.random.fold_in(key, batch), min(count, n - begin))
                for batch, begin in enumerate(range(0, n, count))
            ]
        )

    def play_together(self, response: Any, key: Array, m: int) -> np.ndarray:
        """As `play`, all at once."""
        states = jax.tree.map(lambda leaf: np.repeat(leaf, m, axis=0), self.root)
        payoffs = np.zeros((m, 2))
        going = np.arange(m)
        response.begin(m)
        for step in range(self.max_steps + 1):
            found = self.look(states)
            over = found.player == TERMINAL
            payoffs[going[over]] = found.payoffs[over]
            states, found, going = _take(states, ~over), _take(found, ~over), going[~over]
            if not len(going):
                response.end(payoffs)
                return payoffs
            keys = jax.random.key_data(jax.random.split(jax.random.fold_in(key, step), m))
            actions = _batched(
                lambda keys, part: self.programs.sample(self.policies, keys, part), (np.asarray(keys)[going], states)
            )
            for place, row in enumerate(found.row):
                acts = bool(found.player[place] == self.seat)
                response.see(int(going[place]), row.tobytes(), acts)
                if acts:
                    actions[place] = response.act(int(going[place]), found.legal[place])
            states = self.step(states, actions)
        raise too_long(Describe(self.game).name, self.max_steps)


def _take(tree: Any, rows: Any) -> Any:
    """Some rows of all leaves, by number or by a mask."""
    return jax.tree.map(lambda leaf: leaf[rows], tree)


def _join(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _batched(program: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
    """A compiled program over B rows, in batches of a few sizes, filled up with the first row; numpy arrays."""
    total = jax.tree.leaves(inputs)[0].shape[0]
    parts = []
    begin = 0
    while begin < total:
        left = total - begin
        size = next((size for size in SIZES if size >= left), SIZES[-1])
        rows = np.minimum(np.arange(begin, begin + size), total - 1)
        found = jax.tree.map(np.array, program(*_take(inputs, rows)))
        parts.append(_take(found, np.arange(min(size, left))))
        begin += size
    return _join(parts)


# Local best response


_Part = tuple[State, Look, np.ndarray]
"""Histories: their states, facts and weights."""


class _Belief:
    """What the responder may be in after it has seen a sequence of rows (of `infoset`).

    Attributes:
      row: the last one.
      states, found, weights: the histories where it was first seen, and their probability given all rows, up to a
        factor.
      own: the histories of this row where it is the responder's turn, and their weights; None until `expand`.
      below: beliefs after the next row, where others move.
      after: for each own action that was asked for, beliefs after the next row.
      best: the action to take, once it has been worked out.
    """

    def __init__(self, row: bytes, states: State, found: Look, weights: np.ndarray) -> None:
        self.row = row
        self.states = states
        self.found = found
        self.weights = weights
        self.own: _Part | None = None
        self.below: dict[bytes, _Belief] = {}
        self.after: dict[int, dict[bytes, _Belief]] = {}
        self.best: int | None = None


class _Local:
    """Local best response in one seat."""

    def __init__(self, table: _Table, method: LocalBestResponse, key: Array) -> None:
        self.table = table
        self.method = method
        self.key, seed = jax.random.split(key)
        self.rng = np.random.default_rng(np.asarray(jax.random.key_data(seed)).ravel().tolist())
        self.policies = table.policies
        if method.rollout is not None:
            own = as_policies(table.game, [method.rollout] * 2)
            self.policies = tuple(own[p] if p == table.seat else policy for p, policy in enumerate(table.policies))
        self.rollouts = 0  # calls so far, each with a key of its own
        self._forget()

    def _forget(self) -> None:
        self.known: dict[bytes, _Belief] = {}
        self.stored = 0
        root = (self.table.root, self.table.look(self.table.root), np.ones(1))
        self._nothing: _Part = _take(root, np.zeros(1, bool))
        self.start = self._split(root)

    def begin(self, m: int) -> None:
        if self.stored > STORED:
            self._forget()
        self.at: list[_Belief | None] = [None] * m
        self.begun = [False] * m
        self.acted: list[int | None] = [None] * m

    def see(self, play: int, row: bytes, acts: bool) -> None:
        if not (acts or self.method.between):
            return
        belief, action = self.at[play], self.acted[play]
        self.acted[play] = None
        if not self.begun[play]:
            self.begun[play] = True
            self.at[play] = self.start.get(row)
        elif belief is None:
            pass
        elif action is not None:
            self.at[play] = self._after(belief, action).get(row)
        elif row != belief.row:
            self._expand(belief)
            self.at[play] = belief.below.get(row)

    def act(self, play: int, legal: np.ndarray) -> int:
        belief = self.at[play]
        actions = np.flatnonzero(legal)
        if belief is None:
            # Thinned out beliefs may lack where the play is; then any action is as good as another.
            action = int(self.rng.choice(actions))
        else:
            if self.known.setdefault(belief.row, belief) is not belief:
                raise self._forgets(belief)
            action = self._best(belief, actions)
        self.acted[play] = action
        return action

    def _forgets(self, belief: _Belief) -> GameError:
        table = self.table
        describe = Describe(table.game)
        key = describe.infoset_key(np.asarray(self._expand(belief)[1].row[0]), table.seat)
        hint = (
            "LocalBestResponse(between=False) looks at its own decisions only"
            if self.method.between
            else "perfect recall is needed"
        )
        return GameError(
            f"{describe.name}: what player {table.seat} has seen before does not show in its information set {key!r}, "
            f"which was reached in two ways; {hint}"
        )

    def end(self, payoffs: np.ndarray) -> None:
        self.at, self.acted = [], []

    def _expand(self, belief: _Belief) -> _Part:
        """Lets the others move until the responder sees something new; the histories where it is its turn."""
        if belief.own is None:
            begin = (belief.states, belief.found, belief.weights)
            belief.own, seen = self._let_others_move(begin, lambda row: row.tobytes() == belief.row)
            belief.below = self._split(seen)
        return belief.own

    def _let_others_move(self, part: _Part, goes_on: Callable[[Any], bool]) -> tuple[_Part, _Part]:
        """The histories where it is the responder's turn, and those below whose row ends it."""
        own, seen = [], []
        while len(part[2]):
            states, found, weights = part
            turn = found.player == self.table.seat
            own.append(_take(part, turn))
            moves = np.where((turn | (found.player == TERMINAL))[:, None], 0, found.weights) * weights[:, None]
            part = self._children(states, moves)
            same = np.array([goes_on(row) for row in np.asarray(part[1].row)], bool)
            seen.append(_take(part, ~same))
            part = _take(part, same)
        return _join(own or [self._nothing]), _join(seen or [self._nothing])

    def _after(self, belief: _Belief, action: int) -> dict[bytes, _Belief]:
        """Beliefs after an own action."""
        if action not in belief.after:
            states, found, weights = self._expand(belief)
            moves = np.zeros(found.weights.shape)
            moves[:, action] = weights
            belief.after[action] = self._split(self._children(states, moves))
        return belief.after[action]

    def _children(self, states: State, moves: np.ndarray) -> _Part:
        """The children of B states by all actions of weight above 0 in `moves` `[B, A]`; equal ones are merged."""
        above, action = np.nonzero(moves > 0)
        weights = moves[above, action]
        if not len(above):
            return self._nothing
        if len(above) > 16 * self.method.max_histories:  # too many to be looked at, even
            kept, weights = self._thin(weights, 16 * self.method.max_histories)
            above, action = above[kept], action[kept]
        children = self.table.step(_take(states, above), action)
        first, weights = _merge(children, weights)
        if len(first) > self.method.max_histories:
            kept, weights = self._thin(weights, self.method.max_histories)
            first = first[kept]
        children = _take(children, first)
        self.stored += len(first)
        return children, self.table.look(children), weights

    def _thin(self, weights: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """About `count` entries drawn in proportion to their weights (systematic resampling), and their new weights."""
        total = weights.sum()
        places = (np.arange(count) + self.rng.random()) / count * total
        drawn = np.bincount(np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1))
        kept = np.flatnonzero(drawn)
        return kept, drawn[kept] * (total / count)

    def _split(self, part: _Part) -> dict[bytes, _Belief]:
        """One belief for every row; if nothing counts between own decisions, for every row of the next of these."""
        if not self.method.between:
            part, _ = self._let_others_move(part, lambda row: True)
        states, found, weights = part
        places: dict[bytes, list[int]] = {}
        for place, row in enumerate(found.row):
            places.setdefault(row.tobytes(), []).append(place)
        # Relative to their sum, or long plays would underflow.
        result = {}
        for row, where in places.items():
            rows = np.array(where)
            result[row] = _Belief(row, _take(states, rows), _take(found, rows), weights[rows] / weights[rows].sum())
        return result

    def _best(self, belief: _Belief, actions: np.ndarray) -> int:
        """The action that earns most if the rollout goes on after it."""
        if belief.best is None:
            states, _, weights = self._expand(belief)
            if len(actions) == 1:
                belief.best = int(actions[0])
            elif len(weights):
                belief.best = int(actions[self._worth(states, weights, actions).argmax()])
            else:  # all that may be the case was thinned out
                belief.best = int(self.rng.choice(actions))
        return belief.best

    def _worth(self, states: State, weights: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The payoff after each action, estimated with the same histories and draws for all."""
        table, count = self.table, self.method.rollouts
        drawn = self.rng.choice(len(weights), count, p=weights / weights.sum())
        self.rollouts += 1
        keys = np.asarray(jax.random.key_data(jax.random.split(jax.random.fold_in(self.key, self.rollouts), count)))
        below = table.step(_take(states, np.tile(drawn, len(actions))), np.repeat(actions, count))
        play = _batched(
            lambda keys, part: table.programs.plays_from(self.policies, keys, part, table.max_steps),
            (np.tile(keys, (len(actions), 1)), below),
        )
        require_ended(table.game, play.status, table.max_steps)
        payoffs: np.ndarray = play.payoffs[:, table.seat].reshape(len(actions), count).mean(1)
        return payoffs


def _merge(states: State, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first of every set of equal states, and the sums of their weights."""
    count = len(weights)
    packed = np.concatenate(
        [
            np.ascontiguousarray(leaf).reshape(count, -1).view(np.uint8).reshape(count, -1)
            for leaf in jax.tree.leaves(states)
        ],
        axis=1,
    )
    whole = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).reshape(-1)
    _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
    return first, np.bincount(inverse.reshape(-1), weights, len(first))


# Sampled best response


class _Sampled:
    """UCT on the information sets of one seat."""

    def __init__(self, table: _Table, method: SampledBestResponse, key: Array) -> None:
        self.method = method
        self.seat = table.seat
        key, seed = jax.random.split(key)
        self.rng = np.random.default_rng(np.asarray(jax.random.key_data(seed)).ravel().tolist())
        self.numbers: dict[bytes, int] = {}
        actions = int(table.game.num_actions)
        self.visits = np.zeros((1024, actions))
        self.totals = np.zeros((1024, actions))
        self.low, self.high = math.inf, -math.inf
        self.learning = True
        for batch, begin in enumerate(range(0, method.plays, method.batch)):
            table.play_together(self, jax.random.fold_in(key, batch), min(method.batch, method.plays - begin))
        self.learning = False

    def begin(self, m: int) -> None:
        self.rows = [b""] * m
        self.beyond = [False] * m  # whether the play has left the information sets that are known
        self.path: list[tuple[int, int, int]] = []  # (play, information set, action)

    def see(self, play: int, row: bytes, acts: bool) -> None:
        self.rows[play] = row

    def act(self, play: int, legal: np.ndarray) -> int:
        actions = np.flatnonzero(legal)
        number = self.numbers.get(self.rows[play])
        if not self.learning:
            if number is None:
                return int(self.rng.choice(actions))
            return int(actions[self.visits[number, actions].argmax()])
        if number is None:
            if self.beyond[play]:
                return int(self.rng.choice(actions))
            self.beyond[play] = True  # one new information set a play
            number = self._add(self.rows[play])
        visits = self.visits[number, actions]
        new = np.flatnonzero(visits == 0)
        if len(new):
            action = int(actions[self.rng.choice(new)])
        else:
            spread = self.method.exploration * max(self.high - self.low, 0.0)
            bonus = spread * np.sqrt(np.log(visits.sum()) / visits)
            action = int(actions[(self.totals[number, actions] / visits + bonus).argmax()])
        self.path.append((play, number, action))
        return action

    def _add(self, row: bytes) -> int:
        number = self.numbers[row] = len(self.numbers)
        if number == len(self.visits):
            self.visits, self.totals = (
                np.concatenate([part, np.zeros_like(part)]) for part in (self.visits, self.totals)
            )
        return number

    def end(self, payoffs: np.ndarray) -> None:
        if not self.learning or not len(payoffs):
            return
        earned = payoffs[:, self.seat]
        self.low, self.high = min(self.low, float(earned.min())), max(self.high, float(earned.max()))
        if self.path:
            play, number, action = np.array(self.path).T
            np.add.at(self.visits, (number, action), 1.0)
            np.add.at(self.totals, (number, action), earned[play])
