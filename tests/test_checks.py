"""What the methods of a game may return: `lower` and `validate_game` take and refuse the same."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import jaxcfr
from jaxcfr.errors import ChanceNotEnumerableError, GameError


@dataclasses.dataclass(frozen=True)
class Node:
    """A history that returns exactly what it is told, or what calling it gives."""

    kind: Any
    moves: Any = None
    children: tuple[Node, ...] = ()
    key: Any = None
    num_players: Any = 2

    def is_terminal(self) -> bool:
        return self.kind == "terminal"

    def is_chance(self) -> bool:
        return self.kind == "chance"

    def player_to_act(self) -> Any:
        return self.kind

    def returned(self) -> Any:
        return self.moves() if callable(self.moves) else self.moves

    def chance_outcomes(self) -> Any:
        return self.returned()

    def legal_actions(self) -> Any:
        return self.returned()

    def terminal_returns(self) -> Any:
        return self.returned()

    def step(self, action: Any) -> Node:
        return self.children[int(action)]

    def infoset_key(self, player: int) -> Hashable:
        return self.key() if callable(self.key) else self.key


END = Node("terminal", (1.0, -1.0))


def chance(moves: Any, below: int = 2) -> Node:
    return Node("chance", moves, (END,) * below)


def decision(moves: Any, key: Any = "x", player: Any = 0) -> Node:
    return Node(player, moves, (END, END), key)


def at_go(node: Node) -> Node:
    """`node` below a move, so that there is a path to it."""
    return Node(1, (0, 1), (END, node), "root", node.num_players)


def lazily(*items: Any) -> Callable[[], Any]:
    return lambda: (item for item in items)


SOUND = {
    "zip": chance(lambda: zip((0, 1), (0.5, 0.5), strict=True)),
    "generator of pairs": chance(lazily((0, 0.5), (1, 0.5))),
    "iterator of lists": chance(lambda: iter([[0, 0.5], [1, 0.5]])),
    "array of pairs": chance(np.array([[0, 0.5], [1, 0.5]])),
    "items of a dictionary": chance(lambda: {0: 0.5, 1: 0.5}.items()),
    "float32 thirds": chance([(i, np.float32(1 / 3)) for i in range(3)], 3),
    "float32 tenths": chance([(i, np.float32(0.1)) for i in range(10)], 10),
    "float32 array": chance(np.array([[i, 0.1] for i in range(10)], np.float32), 10),
    "decimals": chance([(0, Decimal("0.3")), (1, Decimal("0.7"))]),
    "decimals and fractions": chance([(0, Decimal("0.5")), (1, Fraction(1, 2))]),
    "floats and fractions": chance([(0, 0.5), (1, Fraction(1, 2))]),
    "integers": chance([(0, 1), (1, 0)]),
    "numpy integers": chance([(0, np.int64(1)), (1, np.int64(0))]),
    "generator of actions": decision(lazily(0, 1)),
    "array of actions": decision(np.array([0, 1])),
    "text of actions": decision("01"),
    "keys of a dictionary": decision({0: "a", 1: "b"}.keys()),
    "numpy player": decision([0, 1], player=np.int8(1)),
    "numpy num_players": dataclasses.replace(END, num_players=np.int64(2)),
    "generator of payoffs": Node("terminal", lazily(1.0, -1.0)),
    "array of payoffs": Node("terminal", np.array([1.0, -1.0], np.float32)),
    "exact payoffs": Node("terminal", [Fraction(1), Decimal(-1)]),
    "map of payoffs": Node("terminal", lambda: map(float, "12")),
}

BROKEN = {
    "actions None": (decision(None), "legal_actions() returned None"),
    "actions set": (decision({0, 1}), "not a sequence with an order"),
    "actions number": (decision(3), "returned 3"),
    "actions dictionary": (decision({0: 1}), "not a sequence with an order"),
    "actions empty": (decision(lazily()), "legal_actions() is empty"),
    "actions twice": (decision(lazily(0, 0)), "0 more than once"),
    "actions equal": (decision([1, True]), "more than once"),
    "actions unhashable": (decision(np.zeros((2, 2))), "unhashable"),
    "actions NaN": (decision([math.nan, 0]), "does not equal itself"),
    "outcomes dictionary": (chance({0: 1.0}), "not a sequence with an order"),
    "outcomes empty": (chance(lazily()), "chance_outcomes() is empty"),
    "outcomes twice": (chance([(0, 0.5), (0, 0.5)]), "0 more than once"),
    "outcomes unhashable": (chance([([0], 0.5), ([1], 0.5)]), "unhashable"),
    "outcomes no pairs": (chance([0, 1]), "has 0, not a pair"),
    "outcomes triples": (chance([(0, 1, 2)]), "not a pair"),
    "outcomes text": (chance(["ab"]), "not a pair"),
    "outcomes NaN": (chance([(math.nan, 1.0)]), "does not equal itself"),
    "probability text": (chance([(0, "1")]), "not a number"),
    "probability bool": (chance([(0, True)]), "not a number"),
    "probability complex": (chance([(0, np.complex128(1))]), "not a number"),
    "probability None": (chance([(0, None)]), "not a number"),
    "float32 sum": (chance([(0, np.float32(0.5)), (1, np.float32(0.50001))]), "sum to"),
    "float64 sum": (chance([(0, 0.5), (1, 0.500001)]), "sum to"),
    "decimal sum": (chance([(0, Decimal("0.5")), (1, Decimal("0.4"))]), "sum to 0.9"),
    "exact sum": (chance([(0, Fraction(1, 2)), (1, Fraction(1, 3))]), "sum to 5/6"),
    "payoffs None": (Node("terminal", None), "terminal_returns() returned None"),
    "payoffs text": (Node("terminal", "12"), "terminal_returns() returned '12'"),
    "payoffs bytes": (Node("terminal", b"12"), "terminal_returns() returned b'12'"),
    "payoffs dictionary": (Node("terminal", {0: 1.0, 1: -1.0}), "terminal_returns() returned {0: 1.0, 1: -1.0}"),
    "payoffs set": (Node("terminal", {1.0, -1.0}), "not one payoff for each of 2"),
    "payoffs too few": (Node("terminal", lazily(1.0)), "returned (1.0,), not one payoff for each of 2"),
    "payoffs digits": (Node("terminal", ("1", "-1")), "payoff of player 0 is '1', not a number"),
    "payoffs bools": (Node("terminal", (True, False)), "payoff of player 0 is True, not a number"),
    "payoffs NaN": (Node("terminal", (math.nan, 0.0)), "payoff of player 0 is nan, not finite"),
    "payoffs infinite": (Node("terminal", np.array([0.0, np.inf])), "payoff of player 1 is inf, not finite"),
    "key unhashable": (decision([0, 1], key=[1]), "infoset_key(0) has the unhashable value [1]"),
    "key None": (decision([0, 1], key=lambda: None), "infoset_key(0) returned None"),
    "key NaN": (decision([0, 1], key=lambda: float("nan")), "does not equal itself"),
    "key with NaN": (decision([0, 1], key=lambda: ("a", (float("nan"),))), "does not equal itself"),
    "player bool": (decision([0, 1], player=False), "player_to_act() returned False"),
    "player float": (decision([0, 1], player=0.0), "player_to_act() returned 0.0"),
    "player None": (decision([0, 1], player=None), "player_to_act() returned None"),
}


@pytest.mark.parametrize("game", SOUND.values(), ids=SOUND)
def test_what_both_take(game: Node) -> None:
    for root in (game, at_go(game)):
        report = jaxcfr.validate_game(root)
        tree = jaxcfr.lower(root).tree
        assert (tree.num_histories, tree.num_terminals, tree.depth) == (
            report.histories,
            report.terminals,
            report.depth,
        )
        assert tree.num_infosets == report.infosets
        assert type(tree.num_players) is int


@pytest.mark.parametrize(("game", "message"), BROKEN.values(), ids=BROKEN)
def test_what_both_refuse_in_the_same_words(game: Node, message: str) -> None:
    said = []
    for function in (jaxcfr.validate_game, jaxcfr.lower):
        with pytest.raises(GameError) as error:
            function(at_go(game))
        assert message in str(error.value)
        assert str(error.value).startswith("Node: at 1: ")
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("players", [0, True, 2.0, None, "2"])
def test_numbers_of_players_that_both_refuse(players: Any) -> None:
    for function in (jaxcfr.validate_game, jaxcfr.lower):
        with pytest.raises(GameError, match=r"num_players is .*, not a positive integer"):
            function(dataclasses.replace(END, num_players=players))


def test_equal_actions_of_other_types_in_one_information_set() -> None:
    """0 == False, but they have other labels; a numpy integer has the same."""
    for other, sound in (([False, True], False), ([np.int64(0), np.int64(1)], True), ([0.0, 1.0], False)):
        game = Node("chance", [(0, 0.5), (1, 0.5)], (decision([0, 1]), decision(other)))
        for function in (jaxcfr.validate_game, jaxcfr.lower):
            if sound:
                function(game)
                continue
            with pytest.raises(GameError, match=r"at 1: .*action labels"):
                function(game)


@pytest.mark.parametrize("count", [3, 7, 10, 1000])
def test_coarse_probabilities_sum_to_one(count: int) -> None:
    for game in (
        chance([(i, np.float32(1) / np.float32(count)) for i in range(count)], count),
        chance([(i, Decimal(1) / count) for i in range(count)], count),
    ):
        walk = jaxcfr.tree.lower._Walk(game, 10**6)
        walk.run()
        assert math.fsum(walk.chance) == pytest.approx(1.0, abs=2e-16)
        assert jaxcfr.validate_game(game).complete


@pytest.mark.parametrize("function", [jaxcfr.validate_game, jaxcfr.lower])
def test_the_class_of_a_game_is_no_game(function: Any) -> None:
    with pytest.raises(GameError, match=r"class Node: pass an instance, Node\(\.\.\.\)"):
        function(Node)


def test_chance_that_can_only_be_sampled_names_the_path() -> None:
    with pytest.raises(ChanceNotEnumerableError, match="sampled at 1 "):
        jaxcfr.lower(at_go(chance(None)))


class Failing(Node):
    """Its methods raise what they are told to."""

    def fail(self) -> Any:
        raise self.moves

    chance_outcomes = legal_actions = terminal_returns = fail


@pytest.mark.parametrize("kind", ["terminal", "chance", 0])
@pytest.mark.parametrize(
    "error", [ZeroDivisionError("oops"), GameError("oops"), StopIteration("oops"), TypeError("oops"), KeyError("oops")]
)
def test_errors_of_the_rules_keep_their_type_and_get_the_path(kind: Any, error: Exception) -> None:
    game = Node(0, lazily(0, 1), (END, Failing(kind, error)), "root")
    with pytest.raises(type(error), match="oops") as caught:
        jaxcfr.lower(game)
    assert caught.value.__notes__[-1] == "raised by the game Node at 1"


def test_a_step_that_raises_stop_iteration_does_not_lose_histories() -> None:
    class Stops(Node):
        def step(self, action: Any) -> Node:
            if action == 1:
                raise StopIteration("oops")
            return super().step(action)

    for node in (Stops(0, (0, 1), (END, END), "x"), Stops("chance", ((0, 0.5), (1, 0.5)), (END, END))):
        with pytest.raises(StopIteration, match="oops") as caught:
            jaxcfr.lower(at_go(node))
        assert caught.value.__notes__ == ["raised by the game Node at 1"]


def test_the_path_never_raises() -> None:
    """Even where the rules do not answer a second time."""
    calls = []

    class Once(Node):
        def legal_actions(self) -> Any:
            calls.append(1)
            if len(calls) > 1:
                raise RuntimeError("again")
            return (0, 1)

    with pytest.raises(GameError, match="cannot be reached again"):
        jaxcfr.lower(Once(0, None, (END, decision(None)), "root"))
