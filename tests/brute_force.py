"""What the library computes, computed again: plain Python over `Game` objects, one history at a time.

Nothing here knows of sequences, layouts or JAX. Strategies are dictionaries from `(player, information-set key)` to a
list of probabilities in the order of `legal_actions`. Numbers are whatever the game and the strategies hold, so with
`Fraction`s everything is exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.optimize

Set = tuple[int, Hashable]
Profile = dict[Set, list[Any]]

TOO_MANY = 5000
"""Pure strategies of a player beyond which they are not enumerated."""


@dataclass
class History:
    """One history; `owner` is a player, "chance" or "terminal"."""

    owner: Any
    key: Hashable = None
    probabilities: list[Any] = field(default_factory=list)
    payoffs: list[Any] = field(default_factory=list)
    children: list[History] = field(default_factory=list)

    @property
    def set(self) -> Set:
        return (self.owner, self.key)


class Rules:
    """A game, walked once.

    Attributes:
      root: the first history.
      num_players: of the game.
      sets: the number of actions of every information set, in the order in which a depth-first walk meets them.
      members: the histories of every information set.
    """

    def __init__(self, game: Any) -> None:
        self.num_players: int = game.num_players
        self.sets: dict[Set, int] = {}
        self.members: dict[Set, list[History]] = {}
        self.num_histories = 0
        self.root = self._walk(game)

    def _walk(self, game: Any) -> History:
        self.num_histories += 1
        if game.is_terminal():
            return History("terminal", payoffs=list(game.terminal_returns()))
        if game.is_chance():
            outcomes = game.chance_outcomes()
            return History(
                "chance",
                probabilities=[probability for _, probability in outcomes],
                children=[self._walk(game.step(action)) for action, _ in outcomes],
            )
        player = game.player_to_act()
        history = History(player, game.infoset_key(player))
        actions = game.legal_actions()
        self.sets[history.set] = len(actions)
        self.members.setdefault(history.set, []).append(history)
        history.children = [self._walk(game.step(action)) for action in actions]
        return history

    def own_sets(self, player: int) -> list[Set]:
        return [which for which in self.sets if which[0] == player]


def uniform(rules: Rules, one: Any = 1.0) -> Profile:
    return {which: [one / count] * count for which, count in rules.sets.items()}


def random_profile(rules: Rules, rng: np.random.Generator, sparse: bool = True) -> Profile:
    """Random probabilities; with `sparse` some are exactly 0, so that parts of the game are not reached."""
    profile = {}
    for which, count in rules.sets.items():
        weights = rng.random(count) * (rng.random(count) < 0.7 if sparse else 1)
        if weights.sum() == 0:
            weights[rng.integers(count)] = 1.0
        profile[which] = (weights / weights.sum()).tolist()
    return profile


def expected(rules: Rules, profile: Profile) -> list[Any]:
    """Every player's expected payoff."""

    def value(history: History) -> list[Any]:
        if history.owner == "terminal":
            return history.payoffs
        weights = history.probabilities if history.owner == "chance" else profile[history.set]
        below = [value(child) for child in history.children]
        return [sum(w * v[p] for w, v in zip(weights, below, strict=True)) for p in range(rules.num_players)]

    return value(rules.root)


def counterfactual_values(rules: Rules, profile: Profile, player: int) -> dict[Set, list[Any]]:
    """v(I, a) = sum over the histories h of I of (everyone else's reach of h) * (the player's value of h a)."""
    values = {which: [0] * rules.sets[which] for which in rules.own_sets(player)}

    def value(history: History, reach: Any) -> Any:
        if history.owner == "terminal":
            return history.payoffs[player]
        if history.owner == player:
            below = [value(child, reach) for child in history.children]
            for action, worth in enumerate(below):
                values[history.set][action] += reach * worth
            return sum(w * v for w, v in zip(profile[history.set], below, strict=True))
        weights = history.probabilities if history.owner == "chance" else profile[history.set]
        return sum(w * value(child, reach * w) for w, child in zip(weights, history.children, strict=True))

    value(rules.root, 1)
    return values


def others_reach(rules: Rules, profile: Profile, player: int) -> dict[int, Any]:
    """The reach of every history by everyone but the player, by `id`."""
    reach: dict[int, Any] = {}

    def visit(history: History, so_far: Any) -> None:
        reach[id(history)] = so_far
        for action, child in enumerate(history.children):
            if history.owner == player:
                visit(child, so_far)
            elif history.owner == "chance":
                visit(child, so_far * history.probabilities[action])
            else:
                visit(child, so_far * profile[history.set][action])

    visit(rules.root, 1)
    return reach


def best_response(rules: Rules, profile: Profile, player: int) -> tuple[Any, dict[Set, list[Any]]]:
    """The player's best payoff, and the counterfactual values of a response that is best everywhere (CBV)."""
    reach = others_reach(rules, profile, player)
    values: dict[Set, list[Any]] = {}

    def worth(which: Set) -> list[Any]:
        if which not in values:
            values[which] = [
                sum(reach[id(member)] * value(member.children[action]) for member in rules.members[which])
                for action in range(rules.sets[which])
            ]
        return values[which]

    def value(history: History) -> Any:
        if history.owner == "terminal":
            return history.payoffs[player]
        if history.owner == player:
            actions = worth(history.set)
            return value(history.children[actions.index(max(actions))])
        weights = history.probabilities if history.owner == "chance" else profile[history.set]
        return sum(w * value(child) for w, child in zip(weights, history.children, strict=True))

    best = value(rules.root)
    for which in rules.own_sets(player):
        worth(which)
    return best, values


def leaves(rules: Rules, player: int) -> Iterator[tuple[dict[Set, int], dict[Set, int], Any, list[Any]]]:
    """Every leaf: what the player and what the others chose on the way, its chance reach, its payoffs."""

    def visit(history: History, own: dict[Set, int], other: dict[Set, int], chance: Any) -> Iterator[Any]:
        if history.owner == "terminal":
            yield own, other, chance, history.payoffs
        for action, child in enumerate(history.children):
            if history.owner == "chance":
                yield from visit(child, own, other, chance * history.probabilities[action])
            elif history.owner == player:
                yield from visit(child, {**own, history.set: action}, other, chance)
            else:
                yield from visit(child, own, {**other, history.set: action}, chance)

    yield from visit(rules.root, {}, {}, 1)


def num_pure(rules: Rules, player: int) -> int:
    return math.prod(rules.sets[which] for which in rules.own_sets(player))


def _plays_to(rules: Rules, player: int, chosen: list[dict[Set, int]]) -> np.ndarray:
    """`[pure strategies, leaves]`: whether each pure strategy of the player allows each leaf."""
    own = rules.own_sets(player)
    choices = itertools.product(*(range(rules.sets[which]) for which in own))
    pure = np.array(list(choices), int).reshape(num_pure(rules, player), len(own))
    column = {which: number for number, which in enumerate(own)}
    allowed = np.ones((len(pure), len(chosen)), bool)
    for leaf, required in enumerate(chosen):
        for which, action in required.items():
            allowed[:, leaf] &= pure[:, column[which]] == action
    return allowed


def pure_payoffs(rules: Rules, profiles: list[Profile], player: int) -> np.ndarray:
    """`[pure strategies, profiles]`: what each pure strategy gets against the others' part of each profile."""
    table = list(leaves(rules, player))
    weights = np.zeros((len(table), len(profiles)))
    for row, (_, other, chance, payoffs) in enumerate(table):
        for number, profile in enumerate(profiles):
            reach = math.prod((profile[which][action] for which, action in other.items()), start=chance)
            weights[row, number] = reach * payoffs[player]
    return _plays_to(rules, player, [own for own, *_ in table]) @ weights


def matrix_game_value(rules: Rules) -> float:
    """Player 0's value of a two-player zero-sum game, from the linear program over all pure strategies."""
    table = list(leaves(rules, 0))
    weights = np.array([float(chance * payoffs[0]) for _, _, chance, payoffs in table])
    first = _plays_to(rules, 0, [own for own, *_ in table]).astype(float)
    second = _plays_to(rules, 1, [other for _, other, *_ in table]).astype(float)
    matrix = np.unique((first * weights) @ second.T, axis=0)
    # maximise v subject to matrix' x >= v, x a distribution
    rows, columns = matrix.shape
    solution = scipy.optimize.linprog(
        np.append(np.zeros(rows), -1.0),
        A_ub=np.hstack([-matrix.T, np.ones((columns, 1))]),
        b_ub=np.zeros(columns),
        A_eq=np.append(np.ones(rows), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * rows + [(None, None)],
    )
    assert solution.status == 0, solution.message
    return float(solution.x[-1])


def own_reach(rules: Rules, profile: Profile, player: int) -> dict[Set, Any]:
    """The player's own reach of each of its information sets, from any history (recall is perfect)."""
    reach: dict[Set, Any] = {}

    def visit(history: History, so_far: Any) -> None:
        if history.owner == player:
            assert reach.setdefault(history.set, so_far) == so_far
        for action, child in enumerate(history.children):
            visit(child, so_far * profile[history.set][action] if history.owner == player else so_far)

    visit(rules.root, 1)
    return reach


Rule = tuple[Callable[..., list[Any]], Callable[..., list[Any]], Callable[[int], float]]
"""From (R, r, t) to the new R; from (R, last r, t) to the scores to match; from t to the exponent of its weight."""


def _plus(numbers: list[Any]) -> list[Any]:
    return [max(number, 0) for number in numbers]


def _add(first: list[Any], second: list[Any]) -> list[Any]:
    return [a + b for a, b in zip(first, second, strict=True)]


def _discount(t: int, exponent: float, offset: float = 1.0) -> float:
    return t**exponent / (t**exponent + offset) if t else 0.0


def _dcfr(alpha: Any, beta: Any, gamma: Any) -> Rule:
    def update(stored: list[Any], r: list[Any], t: int) -> list[Any]:
        return _add([x * _discount(t - 1, alpha(t) if x > 0 else beta(t)) for x in stored], r)

    return update, lambda stored, last, t: stored, gamma


def _plus_rule(discount: Any, gamma: Any, scores: Any = lambda stored, last, t: stored) -> Rule:
    def update(stored: list[Any], r: list[Any], t: int) -> list[Any]:
        return _plus(_add([discount(t) * x for x in stored], r))

    return update, scores, gamma


def rules_of(name: str, *numbers: float) -> Rule:
    """The variants as VARIANTS states them, written naively."""
    if name == "vanilla":
        return (lambda stored, r, t: _add(stored, r)), (lambda stored, last, t: stored), (lambda t: 0)
    if name == "cfr_plus":
        return _plus_rule(lambda t: 1, lambda t: 1)
    if name == "linear_cfr":
        return _dcfr(lambda t: 1, lambda t: 1, lambda t: 1)
    if name == "dcfr":
        alpha, beta, gamma = numbers
        return _dcfr(lambda t: alpha, lambda t: beta, lambda t: gamma)
    if name == "dcfr_plus":
        alpha, gamma, *offset = numbers
        return _plus_rule(lambda t: _discount(t - 1, alpha, *offset), lambda t: gamma)
    if name in ("pcfr_plus", "sapcfr_plus"):
        (gamma,) = numbers
        trust = 1.0 if name == "pcfr_plus" else 1 / 3
        return _plus_rule(lambda t: 1, lambda t: gamma, lambda stored, last, t: _add(stored, [trust * m for m in last]))
    if name == "pdcfr_plus":
        alpha, gamma = numbers
        return _plus_rule(
            lambda t: _discount(t - 1, alpha),
            lambda t: gamma,
            lambda stored, last, t: _add([x * _discount(t, alpha) for x in stored], last),
        )
    initial, total = numbers

    def gamma_at(t: int) -> float:
        return initial - 5 * t / total

    if name == "hs_dcfr":
        return _dcfr(lambda t: 1 + 3 * t / total, lambda t: -1 - 2 * t / total, gamma_at)
    if name == "hs_cfr_plus":
        return _plus_rule(lambda t: 1, gamma_at)
    assert name == "hs_pcfr_plus"
    return _plus_rule(lambda t: 1, gamma_at, lambda stored, last, t: _add(stored, last))


@dataclass
class Step:
    """After an iteration: stored regrets, the average strategy, the next strategy, and what was played in it."""

    regrets: dict[Set, list[Any]]
    average: Profile
    current: Profile
    played: Profile


def _proportional(weights: list[Any]) -> list[Any]:
    total = sum(weights)
    if total > 0:
        return [weight / total for weight in weights]
    return [type(total)(1) / len(weights) if not isinstance(total, int) else 1.0 / len(weights)] * len(weights)


def run(rules: Rules, rule: Rule, iterations: int, alternating: bool, one: Any = 1.0) -> list[Step]:
    """Counterfactual regret minimization; `one` is 1.0 or `Fraction(1)`.

    In floats, regrets of at most 16 units of rounding are set to zero (VARIANTS), or the signs of exact zeros would
    be a matter of chance.
    """
    update, scores, gamma = rule
    regrets = {which: [0 * one] * count for which, count in rules.sets.items()}
    sums = {which: [0 * one] * count for which, count in rules.sets.items()}
    current = uniform(rules, one)
    steps = []
    for t in range(1, iterations + 1):
        played = dict(current)
        decay = one if t == 1 or gamma(t) == 0 else (one * (t - 1) / t) ** gamma(t)
        after = dict(current)
        for player in range(rules.num_players):
            against = after if alternating else played
            values = counterfactual_values(rules, {**against, **_part(played, player)}, player)
            reach = own_reach(rules, played, player)
            for which in rules.own_sets(player):
                r = _regret(values[which], played[which])
                regrets[which] = update(regrets[which], r, t)
                sums[which] = [s * decay + reach[which] * p for s, p in zip(sums[which], played[which], strict=True)]
                after[which] = _proportional(_plus(scores(regrets[which], r, t)))
        current = after
        average = {which: _proportional(sums[which]) for which in rules.sets}
        steps.append(Step(dict(regrets), average, dict(current), played))
    return steps


def _part(profile: Profile, player: int) -> Profile:
    return {which: row for which, row in profile.items() if which[0] == player}


def _regret(values: list[Any], strategy: list[Any]) -> list[Any]:
    value = sum(p * v for p, v in zip(strategy, values, strict=True))
    r = [v - value for v in values]
    if isinstance(value, float):
        size = 16 * np.finfo(float).eps * max(abs(v) for v in values)
        r = [0.0 if abs(x) <= size else x for x in r]
    return r
