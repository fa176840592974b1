"""Lowering and `GameTree`: what is refused, with which words, and what trees can be used for."""

from __future__ import annotations

import dataclasses
import math
import os
import subprocess
import sys
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_games import CHANCE, TERMINAL, Node, TreeGame, from_seed

from jaxcfr import analytics
from jaxcfr.errors import (
    ChanceNotEnumerableError,
    GameError,
    GameTooLargeError,
    OptionError,
    RecallError,
    StrategyError,
)
from jaxcfr.games import load_game
from jaxcfr.games.base import Game
from jaxcfr.tree.build import build_tree
from jaxcfr.tree.convert import uniform_strategy
from jaxcfr.tree.game_tree import GameTree, stack
from jaxcfr.tree.lower import LoweredGame, _Walk, lower


def leaf(*payoffs: Any) -> Node:
    return Node(TERMINAL, payoffs=payoffs)


def choice(player: int, key: Any, actions: Any, *children: Node) -> Node:
    return Node(player, key, tuple(actions), children=children)


def chance(probabilities: list[Any], *children: Node) -> Node:
    return Node(CHANCE, None, tuple(f"card {i}" for i in range(len(children))), tuple(probabilities), children)


def game(root: Node, num_players: Any = 2) -> TreeGame:
    return TreeGame(root, num_players, "little game")


def assert_says(error: pytest.ExceptionInfo[Any], *parts: str) -> None:
    for part in parts:
        assert part in str(error.value), f"{part!r} is not in: {error.value}"


EVEN = leaf(1, -1)


def test_imperfect_recall() -> None:
    """Player 1 moves twice, and forgets what it chose first."""
    second = choice(1, "later", "LR", EVEN, EVEN)
    root = choice(0, "first", "ab", choice(1, "early", "xy", second, second), EVEN)
    with pytest.raises(RecallError) as error:
        lower(game(root))
    assert_says(error, "player 1", "'later'", "imperfect recall", "perfect recall")


def test_forgotten_knowledge() -> None:
    """Player 0 saw the card when it first moved, and does not know it any more when it moves again."""

    def after(card: str) -> Node:
        return choice(0, card, ["go"], choice(0, "blind", "ab", EVEN, EVEN))

    with pytest.raises(RecallError) as error:
        lower(game(chance([0.5, 0.5], after("king"), after("queen"))))
    assert_says(error, "player 0", "'blind'", "imperfect recall")


def test_absent_mindedness() -> None:
    exits = choice(0, "crossing", ["exit", "go on"], EVEN, choice(0, "crossing", ["exit", "go on"], EVEN, EVEN))
    with pytest.raises(RecallError) as error:
        lower(game(exits))
    assert_says(error, "player 0", "'crossing'", "twice", "absent-minded")


def test_recall_is_perfect_where_an_information_set_spans_depths() -> None:
    """Player 1 does not know whether player 0 moved at all: its information set lies at depths 1 and 2."""
    guess = choice(1, "guess", "ab", EVEN, EVEN)
    tree = lower(game(chance([0.5, 0.5], guess, choice(0, "move", "xy", guess, guess)))).tree
    assert (tree.num_infosets, tree.depth) == ((1, 1), 3)


def test_order_of_actions() -> None:
    root = chance(
        [0.5, 0.5], choice(0, "I", ["fold", "call"], EVEN, EVEN), choice(0, "I", ["call", "fold"], EVEN, EVEN)
    )
    with pytest.raises(GameError) as error:
        lower(game(root))
    assert_says(error, "player 0", "'I'", "card 1", "['call', 'fold']", "['fold', 'call']", "same order")


def test_number_of_actions() -> None:
    root = chance([0.5, 0.5], choice(0, "I", "ab", EVEN, EVEN), choice(0, "I", "abc", EVEN, EVEN, EVEN))
    with pytest.raises(GameError, match="information set 'I' of player 0 has the legal actions"):
        lower(game(root))


@pytest.mark.parametrize(
    ("probabilities", "words"),
    [
        ([0.5, 0.4], "sum to 0.9"),
        ([0.5, 0.5 + 1e-8], "sum to 1.00000001"),
        ([Fraction(1, 2), Fraction(499999, 1000000)], "sum to 999999/1000000"),
        ([1.5, -0.5], "negative"),
        ([Fraction(3, 2), Fraction(-1, 2)], "negative"),
        ([math.nan, 0.5], "nan, not finite"),
        ([math.inf, 0.5], "inf, not finite"),
        (["a", "b"], "not a number"),
    ],
)
def test_chance_probabilities(probabilities: list[Any], words: str) -> None:
    below = chance(probabilities, EVEN, EVEN)
    with pytest.raises(GameError) as error:
        lower(game(choice(0, "I", ["left", "right"], EVEN, below)))
    assert_says(error, words, "right")


def test_float_probabilities_may_be_rounded() -> None:
    tree = lower(game(chance([0.1] * 10, *[EVEN] * 10))).tree
    assert float(analytics.expected_payoffs(tree, uniform_strategy(tree))[0]) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("payoff", [math.nan, math.inf, -math.inf, Fraction(10) ** 400, "many", None, 1j])
def test_payoffs_that_are_no_finite_numbers(payoff: Any) -> None:
    with pytest.raises(GameError) as error:
        lower(game(choice(0, "I", ["left", "right"], EVEN, leaf(0, payoff))))
    assert_says(error, "payoff of player 1", "right", "not ")


def test_number_of_payoffs() -> None:
    with pytest.raises(GameError) as error:
        lower(game(choice(0, "I", ["left", "right"], EVEN, leaf(1, 2, 3))))
    assert_says(error, "(1, 2, 3)", "right", "2 players")


def test_actions_and_keys_that_make_no_sense() -> None:
    for root, words in (
        (choice(0, "I", []), "legal_actions() is empty"),
        (choice(0, "I", "aa", EVEN, EVEN), "'a' more than once"),
        (choice(0, "I", [["a"], ["b"]], EVEN, EVEN), "hashable"),
        (choice(0, ["I"], "ab", EVEN, EVEN), "unhashable"),
        (choice(2, "I", "ab", EVEN, EVEN), "player_to_act() returned 2"),
        (choice(-1, "I", "ab", EVEN, EVEN), "player_to_act() returned -1"),
    ):
        with pytest.raises(GameError) as error:
            lower(game(root))
        assert_says(error, words)
    for number in (0, -1, 1.5, "two", True):
        with pytest.raises(GameError, match="num_players"):
            lower(game(EVEN, number))


class Bush:
    """Ten actions everywhere, without end."""

    num_players = 1
    made: list[int] = []  # noqa: RUF012

    def __init__(self, number: int) -> None:
        self.number = number

    def is_terminal(self) -> bool:
        return False

    def is_chance(self) -> bool:
        return False

    def player_to_act(self) -> int:
        return 0

    def legal_actions(self) -> range:
        return range(10)

    def step(self, action: int) -> Bush:
        Bush.made.append(action)
        return Bush(10 * self.number + action + 1)

    def infoset_key(self, player: int) -> int:
        return self.number


def test_max_nodes() -> None:
    with pytest.raises(GameTooLargeError) as error:
        lower(load_game("leduc_poker"), max_nodes=1000)
    assert_says(error, "max_nodes = 1,000", "about 9,460 histories", "800 bytes a history", "7.57 MB")
    Bush.made.clear()
    with pytest.raises(GameTooLargeError) as error:
        lower(Bush(0), max_nodes=1000)
    assert_says(error, "max_nodes = 1,000", "met", "800 bytes a history", "kB")
    assert len(Bush.made) < 200  # the level that is too large is never made
    assert lower(load_game("kuhn_poker"), max_nodes=58).tree.num_histories == 58
    with pytest.raises(GameTooLargeError):
        lower(load_game("kuhn_poker"), max_nodes=57)
    for value in (0, -5, 1e6, "many", True):
        with pytest.raises(OptionError, match="max_nodes"):
            lower(load_game("kuhn_poker"), max_nodes=value)  # type: ignore[arg-type]


class _Sampled(TreeGame):
    def chance_outcomes(self) -> Any:
        return None

    def step(self, action: Any) -> Game:
        return _Sampled(super().step(action).node, self.num_players, self.name)


def test_chance_that_can_only_be_sampled() -> None:
    root = choice(0, "I", ["left", "right"], EVEN, chance([0.5, 0.5], EVEN, EVEN))
    with pytest.raises(ChanceNotEnumerableError) as error:
        lower(_Sampled(root, 2, "dice"))
    assert_says(error, "dice", "right", "sampled", "lowering")


def test_things_that_are_no_games() -> None:
    with pytest.raises(GameError, match="load_game"):
        lower("kuhn_poker")
    for thing in (None, 3, object()):
        with pytest.raises(GameError, match=r"jaxcfr\.Game"):
            lower(thing)


class _Broken(TreeGame):
    def step(self, action: Any) -> Game:
        if action == "c":
            raise ZeroDivisionError("oops")
        return _Broken(super().step(action).node, self.num_players, self.name)


def test_errors_of_the_rules_tell_where_they_happened() -> None:
    root = choice(0, "I", "ab", EVEN, choice(1, "J", "cd", EVEN, EVEN))
    with pytest.raises(ZeroDivisionError, match="oops") as error:
        lower(_Broken(root, 2, "broken game"))
    assert error.value.__notes__ == ["raised by the game broken game at b"]


def table_of(name: str) -> Any:
    walk = _Walk(load_game(name), 10**6)
    walk.run()
    return walk.table()


def _moved(column: np.ndarray, row: int, value: Any) -> np.ndarray:
    changed = column.copy()
    changed[row] = value
    return changed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: {"payoffs": t.payoffs[:-1]}, r"payoffs have to have shape \(30, 2\)"),
        (lambda t: {"payoffs": t.payoffs[:, :1]}, r"payoffs have to have shape \(30, 2\)"),
        (lambda t: {"parent": _moved(t.parent, 57, 3)}, "breadth first"),
        (lambda t: {"parent": _moved(t.parent, 0, 0)}, "root"),
        (lambda t: {"parent": t.parent[:-1]}, "58 histories"),
        (lambda t: {"player": _moved(t.player, 0, -2)}, "terminal"),
        (lambda t: {"player": _moved(t.player, 57, 1)}, "terminal"),
        (lambda t: {"player": _moved(t.player, 57, 2)}, "out of range"),
        (lambda t: {"infoset": np.where(t.infoset == 5, 6, t.infoset)}, "out of range"),
        (lambda t: {"num_actions": (np.append(t.num_actions[0], 2), t.num_actions[1])}, "number 6 of player 0"),
        (lambda t: {"num_actions": (_moved(t.num_actions[0], 2, 3), t.num_actions[1])}, "2 actions in one"),
        (lambda t: {"num_actions": t.num_actions[:1]}, "one array per player"),
        (lambda t: {"chance": _moved(t.chance, 1, np.nan)}, "chance"),
        (lambda t: {"chance": _moved(t.chance, 1, -0.5)}, "chance"),
        (lambda t: {"payoffs": _moved(t.payoffs, (0, 0), np.inf)}, "infinite"),
    ],
)
def test_node_tables_that_do_not_fit_together(change: Any, words: str) -> None:
    table = table_of("kuhn_poker")
    with pytest.raises(GameError, match=words):
        build_tree(dataclasses.replace(table, **change(table)))


def run_python(code: str) -> str:
    """The output of a fresh interpreter, without this one's settings of JAX."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_float64_needs_64_bit_mode() -> None:
    code = """
import jax
before = dict(jax.config.values)
import jaxcfr
after = dict(jax.config.values)
assert before == after, {key for key in before if before[key] != after.get(key)}
from jaxcfr.games import load_game
from jaxcfr.tree.lower import lower
assert lower(load_game("kuhn_poker")).tree.dtype == "float32"
try:
    lower(load_game("kuhn_poker"), dtype="float64")
except jaxcfr.errors.OptionError as error:
    print(error)
"""
    message = run_python(code)
    assert "jax_enable_x64" in message
    assert "float64" in message


def test_dtypes() -> None:
    root = game(choice(0, "I", "ab", EVEN, leaf(0, 0)))
    assert lower(root).tree.dtype == np.float64
    assert lower(root, dtype="float32").tree.dtype == np.float32
    assert lower(root, dtype=jnp.float32).tree.dtype == np.float32
    floats = {str(x.dtype) for x in jax.tree.leaves(lower(root, dtype="float32").tree) if x.dtype.kind == "f"}
    assert floats == {"float32"}
    for dtype in ("float16", "bfloat16", "int32", "junk", object()):
        with pytest.raises(OptionError, match="dtype has to be float32 or float64"):
            lower(root, dtype=dtype)


@pytest.mark.parametrize("payoff", [1e35, -1e35, 1e-35])
def test_payoffs_beyond_the_range_of_float32(payoff: float) -> None:
    root = game(choice(0, "I", "ab", leaf(payoff, -payoff), leaf(0, 0)))
    with pytest.raises(OptionError) as error:
        lower(root, dtype="float32")
    assert_says(error, f"{abs(payoff):g}", "float32", "scale the payoffs")
    assert lower(root, dtype="float64").tree.num_terminals == 2


def test_sums_of_payoffs() -> None:
    def sums(*leaves: Node, players: int = 2) -> tuple[bool, bool]:
        tree = lower(game(choice(0, "I", "abcd"[: len(leaves)], *leaves), players)).tree
        return tree.constant_sum, tree.zero_sum

    assert sums(leaf(1, -1), leaf(Fraction(1, 3), Fraction(-1, 3))) == (True, True)
    assert sums(leaf(1, 0), leaf(0.1, 0.9)) == (True, False)
    assert sums(leaf(1, 0), leaf(0, 0)) == (False, False)
    assert sums(leaf(0.1 + 0.2, -0.3), leaf(5, -5)) == (True, True)
    assert sums(leaf(1e6, -1e6 + 1e-3), leaf(0, 0)) == (False, False)
    assert sums(leaf(1, -1, 0), leaf(2, -2, 0), players=3) == (False, False)
    assert sums(leaf(0), leaf(0), players=1) == (False, False)
    root = game(choice(0, "I", "ab", leaf(1, -1), leaf(0, 0)))
    assert not lower(root, general_sum=True).tree.constant_sum


def test_facts_of_the_histories(kuhn: LoweredGame) -> None:
    """The histories against a breadth-first walk over the rules."""
    histories = kuhn.tree.histories
    assert histories is not None
    assert lower(load_game("kuhn_poker"), histories=False).tree.histories is None
    level: list[tuple[Any, int, float]] = [(load_game("kuhn_poker"), -1, 1.0)]
    row, leaves, offsets = 0, 0, [0]
    while level:
        below: list[tuple[Any, int, float]] = []
        for node, parent, reach in level:
            assert int(histories.parent[row]) == parent
            assert float(histories.chance_reach[row]) == pytest.approx(reach, rel=1e-15)
            children: list[tuple[Any, float]] = []
            if node.is_terminal():
                assert int(histories.player[row]) == -2
                assert int(histories.terminal[row]) == leaves
                payoffs = [float(x) for x in node.terminal_returns()]
                np.testing.assert_array_equal(kuhn.tree.terminal_payoffs[leaves], payoffs)
                leaves += 1
            elif node.is_chance():
                assert int(histories.player[row]) == -1
                children = [(node.step(action), float(p)) for action, p in node.chance_outcomes()]
            else:
                player = node.player_to_act()
                assert int(histories.player[row]) == player
                number = kuhn.infoset_numbers[player][node.infoset_key(player)]
                assert int(histories.infoset[row]) == number
                assert list(kuhn.actions[player][number]) == list(node.legal_actions())
                children = [(node.step(action), 1.0) for action in node.legal_actions()]
            assert int(histories.num_children[row]) == len(children)
            first = offsets[-1] + len(level) + len(below)
            assert int(histories.first_child[row]) == (first if children else -1)
            below += [(child, row, reach * p) for child, p in children]
            row += 1
        offsets.append(row)
        level = below
    assert row == kuhn.tree.num_histories
    assert histories.level_offsets == tuple(offsets)


# Payoffs as arguments: matching pennies with payoffs a, b, c, d to player 0 has a value in closed form.


def pennies(general_sum: bool = False) -> GameTree:
    second = [choice(1, "J", "LR", leaf(2, -2), leaf(-1, 1)), choice(1, "J", "LR", leaf(-1, 1), leaf(1, -1))]
    return lower(game(choice(0, "I", "LR", *second)), general_sum=general_sum).tree


def test_with_payoffs() -> None:
    tree = pennies()
    before = np.array(tree.terminal_payoffs)
    new = np.array([[3.0, -3], [0, 0], [-2, 2], [5, -5]])
    other = tree.with_payoffs(new)
    uniform = uniform_strategy(tree)
    np.testing.assert_allclose(analytics.expected_payoffs(other, uniform), [1.5, -1.5])
    np.testing.assert_allclose(analytics.best_response_values(other, uniform), [1.5, -0.5])
    np.testing.assert_array_equal(tree.terminal_payoffs, before)
    np.testing.assert_allclose(analytics.expected_payoffs(tree, uniform), [0.25, -0.25])
    assert jax.tree.structure(other) == jax.tree.structure(tree)
    # The same payoffs give the same bits as lowering gave.
    for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(tree.with_payoffs(tree.terminal_payoffs)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_with_payoffs_refuses_what_the_tree_does_not_promise() -> None:
    tree = pennies()
    general = tree.terminal_payoffs.at[0, 1].set(7.0)
    with pytest.raises(OptionError, match=r"zero-sum.*general_sum=True"):
        tree.with_payoffs(general)
    with pytest.raises(OptionError, match=r"has to be \(4, 2\)"):
        tree.with_payoffs(general[:3])
    # A constant sum is not zero.
    with pytest.raises(OptionError, match="zero-sum"):
        tree.with_payoffs(tree.terminal_payoffs + 1)
    free = pennies(general_sum=True)
    uniform = uniform_strategy(free)
    np.testing.assert_allclose(analytics.expected_payoffs(free.with_payoffs(general), uniform), [0.25, 2.0])
    # Where payoffs are traced, a broken promise shows as NaN.
    values = jax.jit(lambda p: analytics.expected_payoffs(tree.with_payoffs(p), uniform))
    assert np.all(np.isnan(values(general)))
    np.testing.assert_allclose(values(tree.terminal_payoffs), [0.25, -0.25])
    constant = lower(game(choice(0, "I", "ab", leaf(1, 0), leaf(0, 1)))).tree
    np.testing.assert_array_equal(constant.with_payoffs(constant.terminal_payoffs * 3).terminal_payoffs.sum(1), [3, 3])
    with pytest.raises(OptionError, match="constant-sum"):
        constant.with_payoffs(jnp.array([[1.0, 0], [0, 2]]))


@pytest.mark.parametrize("seed", [1, 2])
def test_gradients_with_respect_to_payoffs(seed: int) -> None:
    """Expected payoffs are linear in the payoffs; NashConv has kinks, but not at a random point."""
    tree = lower(from_seed(seed, 2, "general", max_nodes=24)).tree
    rng = np.random.default_rng(seed)
    strategy = []
    for treeplex in tree.treeplexes:
        weights = np.asarray(treeplex.uniform) * rng.uniform(0.2, 1, treeplex.size)
        indices, offsets = treeplex.sequence_indices()
        totals = np.add.reduceat(weights[indices], offsets[:-1])
        weights[indices] /= np.repeat(totals, np.diff(offsets))
        strategy.append(jnp.asarray(weights))
    point = jnp.asarray(rng.normal(size=tree.terminal_payoffs.shape))

    @jax.jit
    def gain(payoffs: jax.Array) -> jax.Array:
        other = tree.with_payoffs(payoffs)
        return (analytics.best_response_values(other, tuple(strategy)) * jnp.array([1.0, 3.0])).sum() - (
            analytics.expected_payoffs(other, tuple(strategy)) * jnp.array([2.0, 1.0])
        ).sum()

    gradient = np.asarray(jax.jit(jax.grad(gain))(point))
    step = 1e-6
    for z, p in np.ndindex(*point.shape):
        difference = (gain(point.at[z, p].add(step)) - gain(point.at[z, p].add(-step))) / (2 * step)
        assert gradient[z, p] == pytest.approx(float(difference), abs=1e-7), f"leaf {z}, player {p}, seed {seed}"


def test_payoffs_can_be_swept() -> None:
    tree = pennies()
    uniform = uniform_strategy(tree)
    scales = jnp.arange(1.0, 6.0)
    values = jax.vmap(lambda s: analytics.nash_conv(tree.with_payoffs(tree.terminal_payoffs * s), uniform))(scales)
    # Best responses to uniform play get 1/2 and 0; uniform play gets 1/4 and -1/4.
    np.testing.assert_allclose(values, 0.5 * np.asarray(scales), rtol=1e-12)


def test_trees_of_equal_shape_stack(kuhn: LoweredGame) -> None:
    uniform = uniform_strategy(kuhn.tree)
    trees = [kuhn.tree.with_payoffs(kuhn.tree.terminal_payoffs * s) for s in (1.0, 2.0, 5.0)]
    stacked = stack(trees)
    assert all(leaf.shape[0] == 3 for leaf in jax.tree.leaves(stacked))
    np.testing.assert_allclose(
        jax.vmap(lambda tree: analytics.nash_conv(tree, uniform))(stacked), np.array([1, 2, 5]) * 11 / 12, rtol=1e-12
    )
    with pytest.raises(OptionError, match="tree 1 has another shape"):
        stack([kuhn.tree, pennies()])
    with pytest.raises(OptionError, match="at least one"):
        stack([])
    # float32 and float64 do not stack.
    with pytest.raises(OptionError, match="tree 1"):
        stack([kuhn.tree, lower(load_game("kuhn_poker"), dtype="float32").tree])


def test_trees_hold_arrays_only(kuhn: LoweredGame) -> None:
    """Keys and labels are not in the tree, not even in its static part: games that differ in them share programs."""
    again = lower(load_game("kuhn_poker"))
    renamed = lower(_Renamed(load_game("kuhn_poker")))
    assert renamed.infoset_keys != kuhn.infoset_keys
    structure = jax.tree.structure(kuhn.tree)
    for other in (again.tree, renamed.tree):
        assert jax.tree.structure(other) == structure
        assert hash(jax.tree.structure(other)) == hash(structure)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(kuhn.tree))
    stack([kuhn.tree, again.tree, renamed.tree])
    count = []

    @jax.jit
    def trace(tree: GameTree) -> jax.Array:
        count.append(1)
        return tree.terminal_payoffs.sum()

    for tree in (kuhn.tree, again.tree, renamed.tree):
        trace(tree)
    assert len(count) == 1
    # There and back again.
    leaves, definition = jax.tree.flatten(kuhn.tree)
    assert isinstance(jax.tree.unflatten(definition, leaves), GameTree)


class _Renamed(Game):
    """A game whose information sets have other keys and whose actions have other names."""

    def __init__(self, game: Any) -> None:
        self.game = game
        self.num_players = game.num_players

    def __getattr__(self, name: str) -> Any:
        return getattr(self.game, name)

    def is_terminal(self) -> bool:
        return bool(self.game.is_terminal())

    def is_chance(self) -> bool:
        return bool(self.game.is_chance())

    def player_to_act(self) -> int:
        return int(self.game.player_to_act())

    def chance_outcomes(self) -> Any:
        return self.game.chance_outcomes()

    def legal_actions(self) -> Any:
        return [("action", action) for action in self.game.legal_actions()]

    def step(self, action: Any) -> Game:
        return _Renamed(self.game.step(action[1] if isinstance(action, tuple) else action))

    def terminal_returns(self) -> Any:
        return self.game.terminal_returns()

    def infoset_key(self, player: int) -> Any:
        return ("renamed", self.game.infoset_key(player))

    def action_label(self, action: Any) -> str:
        return f"<{action}>"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda u: u[0], "tuple with one array per player"),
        (lambda u: None, "tuple with one array per player"),
        (lambda u: (u[0],), "of length 1"),
        (lambda u: (u[0], u[1][:-1]), "player 1's strategy has shape"),
        (lambda u: (u[0][None], u[1]), "player 0's strategy has shape"),
        (lambda u: (u[0], jnp.zeros(u[1].shape, int)), "player 1's strategy holds int"),
        (lambda u: (u[0] * jnp.nan, u[1]), "player 0's strategy is not a probability distribution"),
        (lambda u: (u[0], u[1].at[-1].set(jnp.nan)), "player 1's strategy is not a probability distribution"),
        (lambda u: (u[0], u[1] * 1.001), "player 1's strategy is not a probability distribution"),
        (lambda u: (u[0] * 0, u[1]), "player 0's strategy is not a probability distribution"),
        (lambda u: (jnp.where(jnp.arange(12) < 6, 1.5, -0.5), u[1]), "player 0's strategy is not a probability"),
    ],
)
def test_strategies_that_do_not_fit(kuhn: LoweredGame, make: Any, words: str) -> None:
    strategy = make(uniform_strategy(kuhn.tree))
    for function in (
        analytics.nash_conv,
        analytics.expected_payoffs,
        analytics.best_response_values,
        analytics.counterfactual_values,
        lambda tree, s: analytics.best_response(tree, s, 0),
        lambda tree, s: tree.check_strategy(s),
    ):
        with pytest.raises(StrategyError, match=words):
            function(kuhn.tree, strategy)


def test_strategies_by_information_set(kuhn: LoweredGame) -> None:
    rng = np.random.default_rng(0)
    rows = [[rng.dirichlet(np.ones(2)) for _ in keys] for keys in kuhn.infoset_keys]
    strategy = kuhn.strategy(rows)
    for player in range(2):
        np.testing.assert_array_equal(kuhn.probabilities(strategy, player), rows[player])
    for bad, words in (
        (rows[:1], "rows for 1 players"),
        ([rows[0][:-1], rows[1]], "player 0 has 6 information sets, but 5 rows"),
        ([rows[0], [*rows[1][:-1], [1.0]]], "player 1 has 2 actions at information set number 5"),
        ([rows[0], [*rows[1][:-1], [0.6, 0.6]]], "player 1's strategy is not a probability distribution"),
    ):
        with pytest.raises(StrategyError, match=words):
            kuhn.strategy(bad)


def test_players_without_moves_and_roots_without_moves() -> None:
    for root, infosets in (
        (leaf(3, -3), (0, 0)),
        (chance([Fraction(1, 3), Fraction(2, 3)], leaf(3, -3), leaf(0, 0)), (0, 0)),
        (choice(1, "I", ["only"], leaf(2, -2)), (0, 1)),
    ):
        lowered = lower(game(root))
        assert lowered.tree.num_infosets == infosets
        strategy = lowered.strategy([[[1.0]] * n for n in infosets])
        assert float(analytics.nash_conv(lowered.tree, strategy)) == 0.0
