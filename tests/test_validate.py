"""`validate_game`: what it reports of sound games, and that it finds each broken rule with the path to it."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from jaxcfr.errors import GameError, OptionError, RecallError
from jaxcfr.games import Game, ValidationReport, load_game, validate_game


class Tree:
    """A game given as nested tuples, with nothing inherited from `Game`.

    ("t", payoffs), ("c", [(outcome, probability, node), ...]) or ("p", player, key, [(action, node), ...]).
    """

    num_players = 2

    def __init__(self, node: Any) -> None:
        self.node = node

    def is_terminal(self) -> bool:
        return self.node[0] == "t"

    def is_chance(self) -> bool:
        return self.node[0] == "c"

    def player_to_act(self) -> int:
        return self.node[1]

    def chance_outcomes(self) -> Any:
        return [(outcome, p) for outcome, p, _ in self.node[1]]

    def legal_actions(self) -> Any:
        return [action for action, _ in self.node[3]]

    def step(self, action: Any) -> Any:
        below = self.node[1] if self.node[0] == "c" else self.node[3]
        return type(self)(next(entry[-1] for entry in below if entry[0] == action))

    def terminal_returns(self) -> Any:
        return self.node[1]

    def infoset_key(self, player: int) -> Any:
        if player != self.node[1]:
            raise GameError("only the player who acts")
        return self.node[2]


END = ("t", (1, -1))


def decision(key: Any, *actions: Any, player: int = 0, below: Any = END) -> Any:
    """A decision whose actions all lead to `below`."""
    return ("p", player, key, [(action, below) for action in actions or ("a", "b")])


def fair(*nodes: Any) -> Any:
    """Chance with equal probabilities; outcomes are 0, 1 and so on."""
    return ("c", [(i, Fraction(1, len(nodes)), node) for i, node in enumerate(nodes)])


def patched(node: Any, **methods: Any) -> Any:
    """A tree whose class has some methods replaced (None: removed)."""
    return type("Patched", (Tree,), methods)(node)


@pytest.mark.parametrize(
    ("spec", "histories", "terminals", "infosets", "depth"),
    [
        ("kuhn_poker", 58, 30, (6, 6), 5),
        ("kuhn_poker(players=3)", 617, 312, (16, 16, 16), 8),
        ("leduc_poker(suit_isomorphism=True)", 1939, 1116, (144, 144), 11),
        ("leduc_poker", 9457, 5520, (468, 468), 11),
        ("leduc_poker(players=3,ranks=2,suit_isomorphism=True)", 6913, 3786, (630, 630, 630), 18),
        ("liars_dice(dice_sides=3)", 1147, 567, (96, 96), 9),
        ("liars_dice(numdice=2,dice_sides=2)", 8191, 4080, (384, 384), 13),
        ("goofspiel(num_cards=4)", 26773, 13824, (3652, 3652), 9),
        ("goofspiel(num_cards=4,imp_info=True)", 26773, 13824, (1804, 1804), 9),
        ("goofspiel(num_cards=3,players=3,num_turns=2)", 2551, 1296, (165, 165, 165), 8),
        ("biased_coin(q=0.3)", 11, 6, (2, 1), 3),
        ("rock_paper_scissors", 13, 9, (1, 1), 2),
        ("matching_pennies", 7, 4, (1, 1), 2),
    ],
)
def test_bundled_games(spec: str, histories: int, terminals: int, infosets: tuple[int, ...], depth: int) -> None:
    """Every bundled game keeps all rules."""
    root = load_game(spec)
    assert validate_game(root) == ValidationReport(
        name=root.name,  # type: ignore[attr-defined]
        num_players=root.num_players,
        histories=histories,
        terminals=terminals,
        infosets=infosets,
        depth=depth,
        recall=True,
        complete=True,
    )


def test_sound_tree() -> None:
    """A class that inherits nothing and leaves out everything optional is a game."""
    report = validate_game(Tree(fair(decision("x"), decision("y", player=1), END)))
    assert report == ValidationReport("Tree", 2, 8, 5, (1, 1), 2, True, True)
    assert validate_game(Tree(END)).histories == 1
    numbers = patched(END, terminal_returns=lambda self: np.array([0.5, -0.5]))
    assert validate_game(numbers).terminals == 1
    floats = Tree(("c", [(i, 0.1, END) for i in range(10)]))
    assert validate_game(floats).complete


BROKEN: list[tuple[Any, str]] = [
    # Methods and players.
    (3, r"at \(the root\): int has no method is_terminal"),
    (patched(END, step=None), "Patched has no method step"),
    (patched(END, is_chance=7), "is_chance of Patched is not a method but 7"),
    (patched(END, num_players=0), "num_players is 0, not a positive integer"),
    (patched(END, num_players=2.0), r"num_players is 2\.0"),
    (patched(END, num_players=None), "num_players is None"),
    (patched(fair(END), chance_outcomes=None), "has no method chance_outcomes"),
    # Kinds.
    (patched(END, is_chance=lambda self: True), "terminal and chance at once"),
    (patched(END, is_terminal=lambda self: None), r"is_terminal\(\) returned None instead of True or False"),
    (Tree(decision("x", player=2)), r"player_to_act\(\) returned 2, not a player from 0 to 1"),
    (Tree(decision("x", player=-1)), "neither terminal nor chance"),
    (Tree(decision("x", player=None)), "returned None, not a player"),
    # Actions and keys.
    (Tree(("p", 0, "x", [])), r"legal_actions\(\) is empty"),
    (Tree(decision("x", "a", "b", "a")), "has 'a' more than once"),
    (Tree(decision("x", ["a"])), r"unhashable value \['a'\]"),
    (patched(decision("x"), legal_actions=lambda self: None), "returned None, not a sequence"),
    (patched(decision("x"), legal_actions=lambda self: {"a", "b"}), "not a sequence with an order"),
    (patched(decision("x"), legal_actions=lambda self: 1 / 0), r"legal_actions\(\) raised ZeroDivisionError"),
    (Tree(decision(["x"])), r"infoset_key\(0\) has the unhashable value"),
    (Tree(decision(float("nan"))), "does not equal itself"),
    (patched(decision("x"), infoset_key=lambda self, p: {0: "x"}[p]), r"infoset_key\(1\) raised KeyError"),
    (patched(decision("x"), infoset_key=lambda self, p: "x" if p == 0 else []), r"infoset_key\(1\) has the unhashable"),
    (patched(decision("x"), action_label=lambda self, a: {}[a]), r"action_label\('a'\) raised KeyError"),
    # Information sets.
    (
        Tree(fair(decision("x", "a", "b"), decision("x", "b", "a"))),
        r"at 1: information set 'x' of player 0 has the legal actions \['b', 'a'\] here, but in another order "
        r"\['a', 'b'\] at 0",
    ),
    (Tree(fair(decision("x", "a", "b"), decision("x", "a"))), r"\['a'\] here, but \['a', 'b'\] at 0"),
    (
        patched(
            fair(decision("x"), decision("x", below=END)), action_label=lambda self, a: str(a) + str(id(self.node))
        ),
        "has the action labels",
    ),
    # Chance.
    (Tree(("c", [])), r"chance_outcomes\(\) is empty"),
    (Tree(("c", [(0, 0.5, END), (1, 0.4, END)])), r"probabilities of chance sum to 0\.9, not to 1"),
    (Tree(("c", [(0, 1.5, END), (1, -0.5, END)])), r"outcome 1 has the negative probability -0\.5"),
    (Tree(("c", [(0, float("nan"), END)])), "probability of outcome 0 is nan, not finite"),
    (Tree(("c", [(0, "1", END)])), "probability of outcome 0 is '1', not a number"),
    (Tree(("c", [(0, 0.5, END), (0, 0.5, END)])), "has 0 more than once"),
    (Tree(("c", [(0, Fraction(10**12 - 1, 10**12), END)])), "sum to 999999999999/1000000000000"),
    (patched(fair(END), chance_outcomes=lambda self: {0: 1.0}), "not a sequence"),
    (patched(fair(END), chance_outcomes=lambda self: [0, 1]), r"has 0, not a pair \(outcome, probability\)"),
    (patched(fair(END), chance_outcomes=lambda self: None), r"has to define sample_chance\(rng\)"),
    # Payoffs.
    (Tree(("t", (1,))), r"returned \(1,\), not one payoff for each of 2 players"),
    (Tree(("t", (1, 2, 3))), "not one payoff for each of 2 players"),
    (Tree(("t", None)), "returned None, not a sequence"),
    (Tree(("t", 3)), "returned 3, not a sequence"),
    (Tree(("t", "12")), "not one payoff"),
    (Tree(("t", (1, float("nan")))), "payoff of player 1 is nan, not finite"),
    (Tree(("t", (float("-inf"), 1))), "payoff of player 0 is -inf, not finite"),
    (Tree(("t", (1, "x"))), "payoff of player 1 is 'x', not a number"),
    (Tree(("t", (1, 1j))), "payoff of player 1 is 1j, not a number"),
    (Tree(("t", (1, None))), "payoff of player 1 is None, not a number"),
    # Steps.
    (patched(decision("x"), step=lambda self, a: None), r"step\('a'\) returned None"),
    (patched(decision("x"), step=lambda self, a: self), r"step\('a'\) returned the same object"),
    (patched(decision("x"), step=lambda self, a: "next"), "at a: str has no method is_terminal"),
    (patched(decision("x"), step=lambda self, a: [].pop()), "raised IndexError: pop from empty list"),
]


@pytest.mark.parametrize(("game", "message"), BROKEN, ids=[message[:40] for _, message in BROKEN])
def test_broken_rules(game: Any, message: str) -> None:
    """Each broken rule is named."""
    with pytest.raises(GameError, match=message) as caught:
        validate_game(game)
    assert "\n" not in str(caught.value)


def test_the_path_is_named() -> None:
    """The message says how to get there; a long way is cut."""
    deep = Tree(fair(END, decision("x", "left", "right", below=("t", (1,)))))
    with pytest.raises(GameError, match=r"^Tree: at 1 > left: terminal_returns"):
        validate_game(deep)
    node: Any = ("t", (1,))
    for level in range(200):
        node = decision(level, "go", below=node)
    with pytest.raises(GameError, match=r"at \(180 moves before\) > go > ") as caught:
        validate_game(Tree(node))
    assert len(str(caught.value)) < 400


def test_methods_left_out_of_a_subclass() -> None:
    """A subclass of `Game` inherits empty methods; they do not count."""

    class Half(Game):
        num_players = 1

        def is_terminal(self) -> bool:
            return True

    with pytest.raises(GameError, match="Half has no method is_chance"):
        validate_game(Half())  # type: ignore[abstract]


def test_step_that_changes_its_history() -> None:
    """Moves in place are found even where `step` returns a new object."""

    class InPlace(Tree):
        def __init__(self, moves: list[str]) -> None:
            self.moves = moves

        def is_terminal(self) -> bool:
            return len(self.moves) == 2

        def is_chance(self) -> bool:
            return False

        def player_to_act(self) -> int:
            return 0

        def legal_actions(self) -> Any:
            return ["a"]

        def step(self, action: Any) -> Any:
            self.moves.append(action)
            return InPlace(self.moves)

        def terminal_returns(self) -> Any:
            return (0, 0)

        def infoset_key(self, player: int) -> Any:
            return tuple(self.moves)

    with pytest.raises(GameError, match=r"step changed the history it was called on: infoset_key\(\) was \(\)"):
        validate_game(InPlace([]))


def test_step_that_changes_another_history() -> None:
    """One object handed out for two histories, and changed in between, is found."""

    class Scratch(Tree):
        shared: Any = None

        def step(self, action: Any) -> Any:
            child = super().step(action)
            if Scratch.shared is None:
                Scratch.shared = child
            Scratch.shared.node = child.node
            return Scratch.shared

    node = ("p", 0, "x", [("a", ("t", (1, -1))), ("b", ("t", (2, -2)))])
    with pytest.raises(GameError, match=r"at a: the history changed while others were walked: terminal_returns\(\)"):
        validate_game(Scratch(node))


def test_num_players_changes() -> None:
    """The number of players is one for the whole game."""

    class Growing(Tree):
        @property
        def num_players(self) -> int:  # type: ignore[override]
            return 2 if self.node[0] == "p" else 3

    with pytest.raises(GameError, match="at a: num_players is 3, but 2 at the root"):
        validate_game(Growing(decision("x")))


FORGETS_ACTION = ("p", 0, "x", [("a", decision("y")), ("b", decision("y"))])
FORGETS_CHANCE = fair(decision("x", below=decision("z")), decision("y", below=decision("z")))
ABSENT_MINDED = decision("x", "go", "stop", below=decision("x", "go", "stop"))
ABSENT_LATER = decision("x", below=decision("y", below=decision("x")))


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            FORGETS_ACTION,
            "at b: player 0 forgets what it knew or did: information set 'y' of player 0 is reached here after "
            "action 'b' at 'x', but at a after action 'a' at 'x'",
        ),
        (FORGETS_CHANCE, "player 0 forgets what it knew or did: information set 'z'"),
        (fair(decision("x", below=decision("y")), decision("y")), "but at 0 > a after action 'a' at 'x'"),
        (ABSENT_MINDED, r"at go: information set 'x' of player 0 is met a second time in one play"),
        (ABSENT_LATER, r"at a > a: information set 'x' of player 0 is met a second time in one play"),
    ],
)
def test_recall(node: Any, message: str) -> None:
    """Imperfect recall and absent-mindedness are errors of their own, or reported."""
    with pytest.raises(RecallError, match=message):
        validate_game(Tree(node))
    report = validate_game(Tree(node), require_recall=False)
    assert not report.recall
    assert report.complete


def test_the_same_key_of_two_players() -> None:
    """Keys are each player's own: another player may use the same one."""
    node = decision("x", "a", "b", below=decision("x", "c", player=1))
    assert validate_game(Tree(node)).infosets == (1, 1)


class Endless(Tree):
    """Two actions for ever."""

    def __init__(self, level: int = 0) -> None:
        self.level = level
        self.node = ("p", level % 2, level, [("a", None), ("b", None)])

    def step(self, action: Any) -> Any:
        return Endless(self.level + 1)


def test_endless_games() -> None:
    """A play that does not end is an error, or the limit of histories ends the walk first."""
    with pytest.raises(GameError, match="the play goes on after 10000 moves; the game may never end"):
        validate_game(Endless())
    with pytest.raises(GameError, match="after 7 moves"):
        validate_game(Endless(), max_depth=7)
    report = validate_game(Endless(), max_histories=50)
    assert (report.histories, report.complete) == (50, False)


def test_limits() -> None:
    """A walk that is cut says so; a limit that is just enough does not cut."""
    game = load_game("kuhn_poker")
    assert not validate_game(game, max_histories=57).complete
    assert validate_game(game, max_histories=58).complete
    assert validate_game(game, max_depth=5).complete
    with pytest.raises(GameError, match="after 4 moves"):
        validate_game(game, max_depth=4)
    for bad in (0, -1, 2.5, True, None):
        with pytest.raises(OptionError, match="max_histories"):
            validate_game(game, max_histories=bad)  # type: ignore[arg-type]


def test_deep_game() -> None:
    """Five thousand moves in a row are walked without recursion."""
    node: Any = END
    for level in range(5000):
        node = ("p", level % 2, level, [("go", node), ("stop", END)])
    start = time.monotonic()
    report = validate_game(Tree(node))
    assert (report.histories, report.depth, report.complete) == (10_001, 5000, True)
    assert time.monotonic() - start < 20


def test_chance_that_can_only_be_sampled() -> None:
    """A few outcomes are walked, and the report says that it is not complete; the seed decides which."""

    class Sampled(Tree):
        def chance_outcomes(self) -> Any:
            return None

        def sample_chance(self, rng: np.random.Generator) -> Any:
            return int(rng.integers(1000))

    game = Sampled(("c", [(i, 0.001, decision(i)) for i in range(1000)]))
    report = validate_game(game)
    assert not report.complete
    assert 1 <= report.infosets[0] <= 3
    assert report == validate_game(game)
    broken = Sampled(("c", [(i, 0.001, ("t", (1,))) for i in range(1000)]))
    with pytest.raises(GameError, match="not one payoff"):
        validate_game(broken)
