"""Depth limits, composition, terminal functions, continual play, and what subgames refuse."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxcfr
from jaxcfr import errors
from jaxcfr.linear_program import solve_lp
from jaxcfr.subgames.depth import public_leaves


@functools.cache
def kuhn() -> tuple[Any, jaxcfr.Blueprint]:
    game = jaxcfr.load_game("kuhn_poker")
    return game, jaxcfr.Blueprint.train(game, 2000, jaxcfr.cfr_plus())


def uniform(game: Any) -> jaxcfr.Blueprint:
    lowered = jaxcfr.lower(game)
    return jaxcfr.Blueprint(game, lowered, jaxcfr.uniform_strategy(lowered.tree))


# Depth limits


def test_a_limit_beyond_the_depth_is_no_limit() -> None:
    game, blueprint = kuhn()
    path = (0, 1)
    pairs = [(jaxcfr.Subgame.at(game, blueprint, path), jaxcfr.DepthLimitedSubgame.at(game, blueprint, path, 3))]
    public = jaxcfr.Subgame.public(game, blueprint, path).game(0)
    for values in (None, "biased"):
        pairs.append((public, jaxcfr.Subgame.public(game, blueprint, path, max_depth=5, leaf_values=values).game(0)))
    for whole, limited in pairs:
        for a, b in zip(jax.tree.leaves(whole.tree), jax.tree.leaves(limited.tree), strict=True):
            np.testing.assert_array_equal(a, b)


def test_cut_off_histories_are_worth_their_continuation_value_and_shifted() -> None:
    game, blueprint = kuhn()
    limited = jaxcfr.DepthLimitedSubgame.at(game, blueprint, (0, 1), 1)
    assert limited.tree.num_histories == 3
    for action in (0, 1):  # player 0's, so that nothing of the other's reach is lost
        expected = jaxcfr.continuation_value(game, blueprint, (0, 1, action))
        np.testing.assert_allclose(limited.tree.terminal_payoffs[action], expected, atol=1e-12)
    deeper = jaxcfr.DepthLimitedSubgame.at(game, blueprint, (0, 1), 2)
    for number, (first, second) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        reach = blueprint.profile().policy(game.step(0).step(1).step(first))[second]
        payoffs = jaxcfr.continuation_value(game, blueprint, (0, 1, first, second))
        payoffs[1] += (reach - 1) * deeper.v_o
        np.testing.assert_allclose(deeper.tree.terminal_payoffs[number], payoffs, atol=1e-12)
    new = jaxcfr.DepthLimitedSubgame.new(game.step(0).step(1), blueprint, 1, deeper.v_o, 2)
    np.testing.assert_allclose(new.tree.terminal_payoffs, deeper.tree.terminal_payoffs, atol=1e-12)


def test_the_opponent_chooses_once_per_its_own_information() -> None:
    game, blueprint = kuhn()
    subgame = jaxcfr.Subgame.public(game, blueprint, (0, 1), max_depth=1, leaf_values="biased")
    resolving = subgame.game(0)
    added = [key for key in resolving.lowered.infoset_keys[1] if isinstance(key, tuple) and key[1] == "leaf"]
    # Three cards after each of pass and bet; three continuations: the blueprint, more passes, more bets.
    assert len(added) == 6
    assert len(resolving.lowered.actions[1][-1]) == 3
    profile = subgame.solve(5).profile
    assert [sorted(keys) for keys in profile.infoset_keys] == [["0", "1", "2"], []]
    plain = jaxcfr.Subgame.public(game, blueprint, (0, 1), max_depth=1)
    histories = plain.part.rows[plain.part.cut_off]
    for values in ([blueprint.profile()], blueprint.values[histories][None]):
        same = jaxcfr.Subgame.public(game, blueprint, (0, 1), max_depth=1, leaf_values=values)
        for player in range(2):
            a, b = (s.game(player).tree.terminal_payoffs for s in (same, plain))
            np.testing.assert_allclose(a, b, atol=1e-12)


def test_the_opponents_values_end_at_the_limit_too() -> None:
    """Else it would rather have what it could get below the limit, and nothing would be left to solve."""
    game, _ = kuhn()
    poor = uniform(game)
    whole = jaxcfr.Subgame.public(game, poor, (0, 1))
    lost = 0.0
    for player in range(2):
        opponent = 1 - player
        limited = jaxcfr.Subgame.public(game, poor, (0, 1), max_depth=1)
        values = limited.game(player).values
        assert np.all(values <= whole.game(player).values + 1e-12)
        lost += whole.game(player).values.sum() - values.sum()
        # The gadget's value is what the opponent is said to have.
        solution = solve_lp(limited.game(player).tree)
        assert float(solution.value[opponent]) == pytest.approx(values.sum(), abs=1e-7)
        # Where it goes on with a best response, nothing is lost at the limit.
        best = jaxcfr.best_response(poor.lowered.tree, poor.strategy, opponent).strategy
        pair = (best, poor.strategy[1]) if opponent == 0 else (poor.strategy[0], best)
        going_on = [jaxcfr.Profile.from_strategy(poor.lowered, pair)]
        same = jaxcfr.Subgame.public(game, poor, (0, 1), max_depth=1, leaf_values=going_on)
        np.testing.assert_allclose(same.game(player).values, whole.game(player).values, atol=1e-12)
    assert lost > 0.1


@pytest.mark.parametrize("safety", ["resolve", "unsafe"])
def test_a_value_function_that_knows_the_blueprint_is_the_blueprint(safety: Any) -> None:
    """Ranges in, counterfactual values out: with the blueprint's own values it is the single-valued limit."""
    game, blueprint = kuhn()
    plain = jaxcfr.Subgame.public(game, blueprint, (0, 1), max_depth=1)
    for number, first in enumerate(plain.games(safety)[:1]):
        public = public_leaves(first, plain.classes)
        assert (len(public.rows), public.sizes) == (2, (3, 3))  # after a pass and after a bet, three cards each
        table = np.zeros((2, 3, 3, 2))
        for leaf, members in enumerate(public.rows):
            place = public.infoset[0][leaf], public.infoset[1][leaf]
            table[leaf][place] = blueprint.values[members] * blueprint.reaches[2][members, None]

        def function(table: Any, leaf: Any, ranges: Any) -> Any:
            return table[leaf, :, :, 0] @ ranges[1], table[leaf, :, :, 1].T @ ranges[0]

        values = jax.tree_util.Partial(function, jnp.asarray(table))
        given = jaxcfr.Subgame.public(game, blueprint, (0, 1), max_depth=1, leaf_values=values)
        second = given.games(safety)[number]
        solutions = [
            jaxcfr.average_strategy(g.tree, jaxcfr.solve(g.tree, jaxcfr.cfr_plus(), 40)) for g in (first, second)
        ]
        for a, b in zip(*solutions, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
        weights = tuple(t.realization_weights(s) for t, s in zip(second.tree.treeplexes, solutions[0], strict=True))
        several = tuple(jnp.stack([w, w / 2], axis=-1) for w in weights)
        for player in range(2):
            one = second.tree.payoffs.product(player, weights)
            both = second.tree.payoffs.product(player, several)
            np.testing.assert_allclose(both, jnp.stack([one, one / 2], axis=-1), atol=1e-12)


# Composition


class TwoRounds(jaxcfr.Game):
    """Two rounds of hidden simultaneous moves; those of the first are shown after it and set the second's stakes."""

    num_players = 2
    name = "two rounds"

    def __init__(self, path: tuple[int, ...] = ()) -> None:
        self.path = path

    def is_terminal(self) -> bool:
        return len(self.path) == 4

    def is_chance(self) -> bool:
        return False

    def player_to_act(self) -> int:
        return len(self.path) % 2

    def legal_actions(self) -> tuple[int, ...]:
        return () if self.is_terminal() else (0, 1)

    def step(self, action: Any) -> TwoRounds:
        return type(self)((*self.path, action))

    def terminal_returns(self) -> tuple[float, float]:
        a, b, c, d = self.path
        won = ((2, -1), (-1, 1))[a][b] + (1 + a + 2 * b) * ((1, -1), (-2, 1))[c][d]
        return won, -won

    def infoset_key(self, player: int) -> Any:
        seen = self.path[: len(self.path) // 2 * 2]
        return seen, self.path[len(seen) :] if player == 0 else ()


class FirstRound(TwoRounds):
    """The first round alone; what the second is worth comes from outside."""

    def is_terminal(self) -> bool:
        return len(self.path) == 2

    def terminal_returns(self) -> tuple[float, float]:
        return 0.0, 0.0


def test_solved_successors_feed_the_game_above_them() -> None:
    whole = jaxcfr.lower(TwoRounds())
    value = solve_lp(whole.tree).value[0]
    solved: dict[Any, jaxcfr.Blueprint] = {}

    def successor(history: Any) -> Any:
        inner = TwoRounds(history.path)
        solved[history.path] = jaxcfr.solve_subgame_plain(inner, 2000, jaxcfr.pdcfr_plus())
        return jaxcfr.continuation_value(inner, solved[history.path])

    above = jaxcfr.solve_subgame_plain(FirstRound(), 2000, jaxcfr.pdcfr_plus(), terminal_fn=successor)
    assert len(solved) == 4
    assert jaxcfr.continuation_value(above.game, above)[0] == pytest.approx(value, abs=1e-6)
    composed: Any = uniform(TwoRounds())
    for part in (above, *solved.values()):
        composed = jaxcfr.compose_profiles(composed, part)
    assert float(jaxcfr.exploitability(whole.tree, composed.to_strategy(whole))) < 1e-6


def test_terminal_functions_override_and_are_shifted() -> None:
    game, blueprint = kuhn()

    def double(history: Any) -> Any:
        payoffs = history.terminal_returns()
        return None if abs(payoffs[0]) == 1 else (2 * payoffs[0], 2 * payoffs[1])

    plain = jaxcfr.Subgame.at(game, blueprint, (0, 1))
    changed = jaxcfr.Subgame.at(game, blueprint, (0, 1), terminal_fn=double)
    before, after = np.asarray(plain.game.payoffs), np.asarray(changed.game.payoffs)
    np.testing.assert_allclose(after, np.where(np.abs(before) == 1, before, 2 * before))
    shift = (changed.game.opponent_reach - 1) * changed.v_o
    np.testing.assert_allclose(changed.tree.terminal_payoffs[:, 1], after[:, 1] + shift, atol=1e-12)
    with pytest.raises(errors.NotTwoPlayerConstantSumError, match="terminal_fn gives"):
        jaxcfr.Subgame.at(game, blueprint, (0, 1), terminal_fn=lambda history: (1.0, 1.0))
    with pytest.raises(errors.GameError, match=r"terminal_fn at .* not one payoff for each"):
        jaxcfr.Subgame.at(game, blueprint, (0, 1), terminal_fn=lambda history: (1.0,))


def test_composition_touches_nothing_else() -> None:
    game, blueprint = kuhn()
    solved = jaxcfr.solve_subgame(game, blueprint, (0, 1, 1), 10)
    assert [sorted(keys) for keys in solved.profile.infoset_keys] == [[], ["0b", "1b", "2b"]]
    composed = blueprint.compose(solved).profile()
    for player, keys in enumerate(composed.infoset_keys):
        for key in keys:
            source = solved.profile if key in solved.profile.infoset_keys[player] else blueprint.profile()
            assert composed.average_strategy(player, key) == source.average_strategy(player, key)
    with pytest.raises(errors.ProfileError, match="no strategy for the information set"):
        jaxcfr.compose_profiles(solved, blueprint)
    with pytest.raises(errors.OptionError, match="compose_profiles needs a Profile"):
        jaxcfr.compose_profiles(blueprint, {})
    three = uniform(jaxcfr.load_game("kuhn_poker(players=3)"))
    with pytest.raises(errors.ProfileError, match="cannot be overlaid"):
        jaxcfr.compose_profiles(three, blueprint)


class OnlyPass:
    def actions(self, game: Any, player: int) -> list[Any]:
        return [0]


def test_invariants() -> None:
    game, blueprint = kuhn()
    solved = jaxcfr.solve_subgame(game, blueprint, (0, 1, 1), 10)
    assert jaxcfr.check_invariants(blueprint, game) == 12
    assert jaxcfr.check_invariants(solved, game, lambda history, row: row.min() >= 0) == 3
    with pytest.raises(errors.InvariantError, match=r"information set '1b' of player 1: the check says no to pass"):
        jaxcfr.check_invariants(solved, game, lambda history, row: False)
    with pytest.raises(errors.InvariantError, match=r"of player 1: the check failed: "):
        jaxcfr.check_invariants(solved, game, lambda history, row: {}["missing"])
    with pytest.raises(errors.InvariantError, match=r"of player 1: the check failed: "):
        jaxcfr.check_invariants(solved, game, lambda history, row: row >= 0)  # type: ignore[arg-type, return-value]
    passive = jaxcfr.Blueprint.train(jaxcfr.Abstracted(game, OnlyPass()), 3)
    with pytest.raises(errors.InvariantError, match="1 probabilities, but there are 2 legal actions"):
        jaxcfr.check_invariants(passive, game)


def test_training_with_sampled_chance() -> None:
    game, _ = kuhn()
    first, again, other = (jaxcfr.Blueprint.train(game, 2000, jaxcfr.cfr_plus(), 1, seed) for seed in (7, 7, 8))
    assert first.profile() == again.profile()
    assert first.profile().seed == 7
    assert float(jnp.abs(first.strategy[0] - other.strategy[0]).max()) > 0
    assert float(jaxcfr.nash_conv(first.lowered.tree, first.strategy)) < 0.1


def test_continuation_values() -> None:
    game, blueprint = kuhn()
    value = jaxcfr.continuation_value(game, blueprint)
    np.testing.assert_allclose(value, jaxcfr.expected_payoffs(blueprint.lowered.tree, blueprint.strategy), atol=1e-14)
    np.testing.assert_array_equal(jaxcfr.continuation_value(game, blueprint.profile(), (0, 1, 1, 0)), [1, -1])
    three = uniform(jaxcfr.load_game("kuhn_poker(players=3)"))
    expected = jaxcfr.expected_payoffs(three.lowered.tree, three.strategy)
    np.testing.assert_allclose(jaxcfr.continuation_value(three.game, three), expected, atol=1e-14)


# Continual play


@pytest.mark.parametrize("options", [{}, {"safety": "maxmargin"}, {"closure": "derived"}], ids=str)
def test_an_agent_is_harder_to_exploit_than_its_blueprint(options: Any) -> None:
    game, _ = kuhn()
    poor = uniform(game)
    agent = jaxcfr.SubgameAgent(poor, 400, jaxcfr.cfr_plus(), **options)
    history, rng = game.step(0).step(1), np.random.default_rng(0)
    while not history.is_terminal():
        assert agent.policy(history).sum() == pytest.approx(1)
        history = history.step(agent.act_stochastic(history, None, rng))
    tree = poor.lowered.tree
    before = np.asarray(jaxcfr.best_response_values(tree, poor.strategy))
    after = np.asarray(jaxcfr.best_response_values(tree, agent.to_profile().to_strategy(poor.lowered)))
    assert np.all(after <= before + 0.02)
    assert after.sum() < before.sum()


# Refusals


class Sampled(jaxcfr.Game):
    num_players = 2

    def is_terminal(self) -> bool:
        return False

    def is_chance(self) -> bool:
        return True

    def chance_outcomes(self) -> None:
        return None


class GeneralSum(TwoRounds):
    def terminal_returns(self) -> tuple[float, float]:
        return 1.0, float(sum(self.path))


class BackOut(jaxcfr.Game):
    """The first player may take 10 at once; else it has to match the second one."""

    num_players = 2

    def __init__(self, path: tuple[int, ...] = ()) -> None:
        self.path = path

    def is_terminal(self) -> bool:
        return len(self.path) == 3 or self.path == (0,)

    def is_chance(self) -> bool:
        return False

    def player_to_act(self) -> int:
        return len(self.path) % 2

    def legal_actions(self) -> tuple[int, ...]:
        return (0, 1)

    def step(self, action: Any) -> BackOut:
        return BackOut((*self.path, action))

    def terminal_returns(self) -> tuple[float, float]:
        value = 10.0 if len(self.path) == 1 else float(self.path[1] == self.path[2])
        return value, -value

    def infoset_key(self, player: int) -> Any:
        return len(self.path)


def test_an_agent_keeps_its_strategy_where_it_never_goes() -> None:
    game = BackOut()
    profile = jaxcfr.SubgameAgent(uniform(game), 4000, jaxcfr.dcfr_plus(gamma=100.0)).to_profile()
    assert profile.probabilities(0, 0) == pytest.approx({0: 1.0, 1: 0.0}, abs=1e-30)
    assert profile.probabilities(0, 2) == {0: 0.5, 1: 0.5}


def test_an_agent_does_not_play_another_game() -> None:
    agent = jaxcfr.SubgameAgent(kuhn()[1], 1)
    rng = np.random.default_rng(0)
    with pytest.raises(errors.ProfileError, match="has no strategy for the information set"):
        jaxcfr.play_out(jaxcfr.load_game("leduc_poker"), [agent, agent], rng)
    with pytest.raises(errors.ProfileError, match="which has 2 players, but"):
        jaxcfr.play_out(jaxcfr.load_game("kuhn_poker(players=3)"), [agent] * 3, rng)


def test_paths_that_lead_nowhere() -> None:
    game, blueprint = kuhn()
    for call in (jaxcfr.Subgame.at, jaxcfr.Subgame.public, jaxcfr.solve_subgame, jaxcfr.continuation_value):
        to: Any = functools.partial(call, game, blueprint)
        with pytest.raises(errors.SubgameError, match=r"cannot go on with 0 after 0: legal there: 1 \(1\), 2 \(2\)"):
            to((0, 0))
        with pytest.raises(errors.SubgameError, match="the play has ended there"):
            to((0, 1, 0, 0, 0))
        for path in ("01", 7, {0, 1}):
            with pytest.raises(errors.SubgameError, match="a path is a sequence"):
                to(path)
        if call is not jaxcfr.continuation_value:
            with pytest.raises(errors.SubgameError, match="the play has ended"):
                to((0, 1, 0, 0))
    for call in (jaxcfr.Subgame.at, functools.partial(jaxcfr.DepthLimitedSubgame.at, max_depth=1)):
        with pytest.raises(errors.SubgameError, match="chance moves, but a subgame begins at a decision"):
            call(game, blueprint, path=(0,))
    with pytest.raises(errors.SubgameError, match="chance moves, but a subgame begins at a decision"):
        jaxcfr.Subgame.new(game, blueprint, 0, 0.0)


def test_games_that_cannot_be_cut() -> None:
    _, blueprint = kuhn()
    many, general = uniform(jaxcfr.load_game("kuhn_poker(players=3)")), uniform(GeneralSum())
    for other, path in ((many, (0, 1, 2)), (general, ())):
        for call in (jaxcfr.Subgame.at, jaxcfr.Subgame.public):
            with pytest.raises(errors.NotTwoPlayerConstantSumError, match="solving a part of a game is defined for"):
                call(other.game, other, path)
        refusals: list[Any] = [
            functools.partial(jaxcfr.solve_subgame_plain, other.game, 1),
            functools.partial(jaxcfr.SubgameAgent, other),
            functools.partial(other.with_terminals, lambda history: None),
        ]
        for refuse in refusals:
            with pytest.raises(errors.NotTwoPlayerConstantSumError):
                refuse()
    for player in range(3):
        root = many.best_values(player)[0]
        response = jaxcfr.best_response(many.lowered.tree, many.strategy, player)
        assert root == pytest.approx(float(response.value), rel=1e-5)
    with pytest.raises(errors.ChanceNotEnumerableError):
        jaxcfr.Blueprint.train(Sampled())
    with pytest.raises(errors.ChanceNotEnumerableError):
        jaxcfr.Subgame.at(Sampled(), blueprint.profile(), ())


def test_arguments_that_make_no_sense() -> None:
    game, blueprint = kuhn()
    node = game.step(0).step(1)
    public: Any = functools.partial(jaxcfr.Subgame.public, game, blueprint, (0, 1))
    anything: Any = lambda leaf, ranges: ranges  # noqa: E731
    cases: list[tuple[type[Exception], str, Any]] = [
        (errors.OptionError, "opponent has to be 0 or 1", lambda: jaxcfr.Subgame.new(node, blueprint, 2, 0.0)),
        (errors.OptionError, "v_o has to be", lambda: jaxcfr.Subgame.new(node, blueprint, 1, float("nan"))),
        (errors.SubgameError, "a Blueprint or a Profile", lambda: jaxcfr.Subgame.at(game, None, (0, 1))),  # type: ignore[arg-type]
        (
            errors.OptionError,
            "max_depth has to be a positive integer",
            lambda: jaxcfr.DepthLimitedSubgame.at(game, blueprint, (), 0),
        ),
        (errors.OptionError, "leaf_values need a max_depth", lambda: public(leaf_values="biased")),
        (errors.OptionError, 'has to be "biased"', lambda: public(max_depth=1, leaf_values="best")),
        (
            errors.SubgameError,
            r"leaf_values has to be finite numbers \[K, 12, 2\]",
            lambda: public(max_depth=1, leaf_values=np.zeros((1, 3, 2))).game(0),
        ),
        (
            errors.OptionError,
            "a value function needs the ranges",
            lambda: jaxcfr.DepthLimitedSubgame.at(game, blueprint, (0, 1), 1, leaf_values=anything),
        ),
        (
            errors.OptionError,
            "the value function has to return",
            lambda: public(max_depth=1, leaf_values=_odd).solve(1),
        ),
        (
            errors.OptionError,
            "has to return two arrays, not NoneType",
            lambda: public(max_depth=1, leaf_values=lambda leaf, ranges: None).solve(1),
        ),
        (errors.SubgameError, "a list of profiles", lambda: public(max_depth=1, leaf_values=["biased"]).game(0)),
        (errors.SubgameError, "a list of profiles", lambda: public(max_depth=1, leaf_values=blueprint).game(0)),
        (errors.OptionError, "closure has to be", lambda: public(closure="magic")),
        (errors.OptionError, "safety has to be one of resolve, maxmargin", lambda: public().solve(1, safety="sound")),
        (errors.OptionError, "makes one game for both players", lambda: public().game(0, "unsafe")),
        (errors.OptionError, "player has to be 0 or 1", lambda: public().game(2)),
        (errors.SubgameError, "has to be 3 finite numbers", lambda: public().game(0, opponent_values=[1.0])),
        (errors.SubgameError, "has to be 3 finite numbers", lambda: public().game(0, opponent_values="high")),
        (errors.SubgameError, "has to be 3 finite numbers", lambda: public().game(0, opponent_values=[[1], [1, 2]])),
        (errors.OptionError, "opponent_values has to be a pair", lambda: public().solve(1, opponent_values=3)),
        (errors.OptionError, "players has to be", lambda: public().solve(1, players=0)),
        (errors.OptionError, "players has to be", lambda: public().solve(1, players=())),
        (errors.OptionError, "players has to be", lambda: public().solve(1, players=(0, 0))),
        (errors.OptionError, "terminal_fn has to be a function", lambda: public(terminal_fn=5)),
        (errors.OptionError, "needs a list of parts", lambda: jaxcfr.solve_together(public(), 1)),
        (
            errors.OptionError,
            "needs a list of parts",
            lambda: jaxcfr.solve_together([jaxcfr.Subgame.at(game, blueprint, (0, 1))], 1),  # type: ignore[list-item]
        ),
        (errors.SubgameError, "the play has ended", lambda: jaxcfr.solve_subgame_plain(node.step(0).step(0), 1)),
        (errors.ProfileError, "needs a Profile, not dict", lambda: jaxcfr.Blueprint.from_profile(game, {})),  # type: ignore[arg-type]
        (
            errors.SubgameError,
            "chance acts at",
            lambda: jaxcfr.Subgame.public(game, blueprint, (0,)).solve(1, safety="shift"),
        ),
        (errors.OptionError, "an agent needs a Blueprint", lambda: jaxcfr.SubgameAgent(blueprint.profile())),  # type: ignore[arg-type]
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message):
            call()


def _odd(leaf: Any, ranges: Any) -> Any:
    return ranges[0][:1], ranges[1][:1]
