"""Games in files: jaxcfr's JSON, Gambit's `.nfg`, and what `read_game` and `write_game` make of a file's name."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcfr.errors import ChanceNotEnumerableError, GameError, GameFileError, GameLookupError, RecallError
from jaxcfr.errors import GameTooLargeError as TooLarge
from jaxcfr.games import load_game, normal_form, validate_game
from jaxcfr.games.base import Game
from jaxcfr.games.normal_form_game import NormalFormGame
from jaxcfr.interop import (
    JsonGame,
    format_json,
    format_nfg,
    json_game,
    parse_efg,
    parse_json,
    parse_nfg,
    read_game,
    read_json,
    read_nfg,
    write_game,
    write_json,
    write_nfg,
)
from jaxcfr.tree.limits import MAX_NODES
from jaxcfr.tree.lower import _Walk
from jaxcfr.tree.nodes import Walked
from tests.random_games import games

CASES = Path(__file__).parent / "cases"


def walked(game: Any) -> Walked:
    walk = _Walk(game, MAX_NODES)
    walk.run()
    return walk.walked()


def assert_same(found: Any, wanted: Any) -> None:
    """Two games have the same tree, keys, actions and labels, and the very same numbers."""
    mine, theirs = walked(found), walked(wanted)
    for column in ("player", "infoset", "parent", "chance", "payoffs"):
        np.testing.assert_array_equal(getattr(mine.nodes, column), getattr(theirs.nodes, column))
    for column in ("infoset_keys", "actions", "action_labels"):
        assert getattr(mine, column) == getattr(theirs, column)
        assert repr(getattr(mine, column)) == repr(getattr(theirs, column))  # 1 == True == 1.0


# JSON

GUESS: dict[str, Any] = {
    "format": "jaxcfr game",
    "version": 1,
    "name": "a guess",
    "players": ["chooser", "guesser"],
    "root": "start",
    "nodes": {
        "start": {
            "chance": [
                {"outcome": "heads", "probability": "1/3", "node": "heads"},
                {"outcome": "tails", "probability": "2/3", "node": "tails"},
            ]
        },
        "heads": {
            "player": "guesser",
            "infoset": "unseen",
            "actions": [{"action": 0, "label": "heads", "node": "hh"}, {"action": 1, "label": "tails", "node": "ht"}],
        },
        "tails": {
            "player": 1,
            "infoset": "unseen",
            "actions": [{"action": 0, "label": "heads", "node": "th"}, {"action": 1, "label": "tails", "node": "tt"}],
        },
        "hh": {"payoffs": [-1, 1]},
        "ht": {"payoffs": [1.5, "-3/2"]},
        "th": {"payoffs": ["0.1", -1e-3]},
        "tt": {"payoffs": [-1, 1]},
    },
}


def changed(path: str, value: Any) -> str:
    """The text of the game above with something else at a place such as `nodes.hh.payoffs`; `...` takes it out."""
    data = json.loads(json.dumps(GUESS))
    at: Any = data
    *steps, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
    for step in steps:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return json.dumps(data, indent=1)


def test_a_file_written_by_hand() -> None:
    game = parse_json(json.dumps(GUESS, indent=2), "guess.json")
    assert (game.name, game.num_players, game.num_nodes, game.node_name) == ("a guess", 2, 7, "start")
    assert game.player_names == ("chooser", "guesser")
    assert game.is_chance()
    assert game.chance_outcomes() == (("heads", Fraction(1, 3)), ("tails", Fraction(2, 3)))
    guess = game.step("heads")
    assert (guess.player_to_act(), guess.infoset_key(1), guess.legal_actions()) == (1, "unseen", (0, 1))
    assert guess.action_label(1) == "tails"
    assert guess == game.step("heads") != game.step("tails")
    payoffs = guess.step(1).terminal_returns()
    assert payoffs == (1.5, Fraction(-3, 2))
    assert [type(payoff) for payoff in payoffs] == [float, Fraction]
    assert game.step("tails").step(0).terminal_returns() == (Fraction(1, 10), -1e-3)
    assert validate_game(game).histories == 7


def test_the_example_of_the_description() -> None:
    lines = (json_game.__doc__ or "").split("\n")
    game = parse_json("\n".join(line for line in lines if line.startswith("    ")))
    assert validate_game(game).histories == game.num_nodes == 7
    assert game.step("tails").step("heads").terminal_returns() == (Fraction(1, 2), -0.5)


def test_a_history_refuses_what_it_does_not_have() -> None:
    game = parse_json(json.dumps(GUESS))
    guess = game.step("heads")
    for ask, words in (
        (lambda: game.step("edge"), "not an outcome of chance"),
        (lambda: guess.step(2), "not a legal action"),
        (lambda: guess.step(0).step(0), "the play has ended"),
        (lambda: guess.infoset_key(0), "player 0 does not act here"),
        (lambda: game.player_to_act(), "no player acts here"),
        (lambda: guess.chance_outcomes(), "chance does not move here"),
        (lambda: guess.terminal_returns(), "the play has not ended"),
        (lambda: guess.action_label(7), "not a legal action"),
    ):
        with pytest.raises(GameError, match=words):
            ask()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "<string>: the file is empty"),
        ("{", "<string>, line 1, column 2: this is no JSON"),
        ("[1, 2", "this is no JSON"),
        ("\x00", "this is no JSON"),
        ("[]", 'the field "format" has to be "jaxcfr game"'),
        ('{"format": "jaxcfr profile"}', "it is a jaxcfr profile"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": 1, "a": 2}', 'the name "a" is given twice'),
        ("NaN", "NaN is no number"),
        ("9" * 5000, "more than 4000 digits"),
        (changed("version", 2), "version 2, and this jaxcfr reads version 1"),
        (changed("version", True), "version True"),
        (changed("version", ...), "version None"),
        (changed("title", "x"), 'there is no field "title"'),
        (changed("nodes", ...), 'the field "nodes" is missing'),
        (changed("players", []), '"players" has to be a list of names'),
        (changed("players", [1, 2]), '"players" has to be a list of names'),
        (changed("name", ""), '"name" has to be a text'),
        (changed("root", "no"), '"root" has to be the name of a node, not "no"'),
        (changed("root", None), '"root" has to be the name of a node, not None'),
        (changed("nodes", []), '"nodes" has to be an object'),
        (changed("nodes.hh", 5), 'node "hh": a node is an object, not 5'),
        (changed("nodes.hh", {}), 'line 57, node "hh": a node has "payoffs", or'),
        (changed("nodes.hh.payoff", 1), 'node "hh": there is no field "payoff"; did you mean payoffs?'),
        (changed("nodes.hh", {"payoff": [1, -1]}), 'node "hh": there is no field "payoff"; did you mean payoffs?'),
        (changed("nodes.hh.payoffs", [1]), "payoffs have to be a list of 2 numbers, one per player, not [1]"),
        (changed("nodes.hh.payoffs", [1, None]), "the payoff of player 1 is None, not a number"),
        (changed("nodes.hh.payoffs", [1, True]), "the payoff of player 1 is True, not a number"),
        (changed("nodes.hh.payoffs", [1, "x"]), 'the payoff of player 1: "x" is not a number'),
        (changed("nodes.hh.payoffs", [1, "1/0"]), '"1/0" divides by zero'),
        (changed("nodes.hh.payoffs", [1, "1e999999"]), "digits"),
        (changed("nodes.hh.payoffs", [1, 10**400]), "the payoff of player 1 is"),
        (changed("nodes.hh.payoffs", ["9e999", 1]), "is too large for a floating-point number"),
        (changed("nodes.start.chance", []), "the outcomes have to be a list with at least one"),
        (changed("nodes.start.chance.0", "x"), "an outcome is an object"),
        (changed("nodes.start.chance.0.probability", "2/3"), "the probabilities of chance sum to 4/3, not to 1"),
        (changed("nodes.start.chance.0.probability", 0.3), "not to 1"),
        (changed("nodes.start.chance.0.probability", -1), "negative probability"),
        (changed("nodes.start.chance.0.probability", ...), 'the field "probability" is missing'),
        (changed("nodes.start.chance.0.outcome", "tails"), 'the outcome "tails" is there twice'),
        (changed("nodes.start.chance.0.outcome", {"x": 1}), "an outcome cannot be {'x': 1}"),
        (changed("nodes.start.chance.0.node", "x"), 'node "start": there is no node "x"'),
        (
            changed("nodes.start.chance.0.node", "tails"),
            'node "tails" follows here, but is the root or follows elsewhere',
        ),
        (
            changed("nodes.start.chance.0.node", "start"),
            'node "start" follows here, but is the root or follows elsewhere',
        ),
        (changed("nodes.start.chance.0.node", 1), '"node" has to be the name of a node, not 1'),
        (changed("nodes.start.chance.0.label", 1), "a label has to be a text, not 1"),
        (changed("nodes.heads.player", 2), "there is no player 2: they are numbered 0 to 1"),
        (changed("nodes.heads.player", True), "there is no player True"),
        (changed("nodes.heads.player", "nobody"), 'there is no player "nobody"'),
        (changed("nodes.heads.actions", {}), "the actions have to be a list"),
        (changed("nodes.heads.actions.0.probability", 1), 'there is no field "probability"'),
        (changed("nodes.heads.actions.0.label", "x"), "they have to be the same, in the same order"),
        (changed("nodes.heads.actions.0.action", True), "the action True is there twice"),
        (changed("nodes.heads.actions.0.action", 0.0), "they have to be the same, in the same order"),
        (changed("nodes.heads.infoset", {"fraction": [1, 0]}), "the information set cannot be"),
        (changed("nodes.heads.infoset", ...), 'the field "infoset" is missing'),
        (changed("nodes.heads.chance", []), 'there is no field "player"'),
        (changed("nodes.lost", {"payoffs": [0, 0]}), 'node "lost": the node cannot be reached from the root "start"'),
    ],
)
def test_files_that_are_wrong(text: str, words: str) -> None:
    with pytest.raises(GameFileError, match=re.escape(words)):
        parse_json(text)


def test_two_players_of_one_name() -> None:
    data = json.loads(changed("players", ["guesser", "guesser"]))
    with pytest.raises(GameFileError, match="is more than one: say it by number"):
        parse_json(json.dumps(data))
    data["nodes"]["heads"]["player"] = 1
    assert parse_json(json.dumps(data)).player_names == ("guesser", "guesser")


@pytest.mark.parametrize(("case", "kind"), [("05_absent_minded", "absent-mindedness"), ("09", "imperfect recall")])
def test_imperfect_recall(case: str, kind: str) -> None:
    decision = {"player": 0, "infoset": "I", "actions": [{"action": "a", "node": "x"}, {"action": "b", "node": "y"}]}
    again = {"player": 0, "infoset": "I", "actions": [{"action": "a", "node": "xa"}, {"action": "b", "node": "xb"}]}
    leaves = {name: {"payoffs": [0]} for name in ("y", "xa", "xb")}
    nodes = {"r": decision, "x": again, **leaves}
    if kind == "imperfect recall":
        other = {"player": 0, "infoset": "J", "actions": [{"action": "a", "node": "ya"}, {"action": "b", "node": "yb"}]}
        nodes = {"r": decision, "x": {**again, "infoset": "J"}, "y": other}
        nodes |= {name: {"payoffs": [0]} for name in ("ya", "yb", "xa", "xb")}
    text = json.dumps(
        {"format": "jaxcfr game", "version": 1, "players": ["one"], "root": "r", "nodes": nodes}, indent=1
    )
    with pytest.raises(
        RecallError, match=rf"f.json, line \d+, node \"[xy]\": player 0, information set \"[IJ]\".*{kind}"
    ):
        parse_json(text, "f.json")


ROUND_TRIPS = [
    "kuhn_poker(players=3)",
    "leduc_poker(suit_isomorphism=True)",
    "liars_dice(dice_sides=2)",
    "goofspiel(num_cards=3,returns_type=point_difference)",
    "biased_coin(q=0.3)",
    "first_price_auction",
    "battleship",
    "matrix_game(payoffs='1/3 0.1')",
]


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_bundled_games_round_trip(name: str, tmp_path: Path) -> None:
    game = load_game(name)
    path = tmp_path / "game.json"
    write_json(game, path)
    again = load_game(path)
    assert isinstance(again, JsonGame)
    assert again.name == game.name
    assert_same(again, game)
    assert format_json(again) == path.read_text()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("path", sorted(CASES.glob("*.efg")), ids=lambda path: path.stem)
def test_gambit_files_round_trip(path: Path) -> None:
    try:
        game = load_game(path)
    except (GameFileError, RecallError):
        pytest.skip("a file that is refused")
    assert_same(parse_json(format_json(game)), game)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(games(max_nodes=30))
def test_random_games_round_trip(game: Any) -> None:
    again = parse_json(format_json(game))
    assert_same(again, game)
    assert format_json(again) == format_json(parse_json(format_json(again)))


@settings(derandomize=True, max_examples=100, deadline=None)
@given(games(max_nodes=20), st.randoms(use_true_random=False))
def test_the_order_of_a_file_does_not_matter(game: Any, rng: random.Random) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            items = [(name, shuffled(item)) for name, item in value.items()]
            rng.shuffle(items)
            return dict(items)
        return [*map(shuffled, value)] if isinstance(value, list) else value

    text = format_json(game)
    assert_same(parse_json(json.dumps(shuffled(json.loads(text)))), parse_json(text))


def read_or_refused(parse: Callable[[str], Any], text: str) -> Any:
    """The game, or None where the text is refused in the proper way; anything else that is raised fails the test."""
    message = ""
    try:
        return parse(text)
    except (GameFileError, RecallError) as error:
        message = str(error)
    assert message.startswith("<string>"), text
    assert message.isprintable(), text
    return None


def damaged(text: str, rng: random.Random) -> str:
    where = rng.randrange(len(text))
    end = where + rng.choice([1, 1, 1, 20, 200])
    other = rng.randrange(len(text))
    piece = rng.choice(
        ['"', "{", "}", "[", "]", ",", ":", "\\", "\n", "\0", "0", "-", "e9", "null", "é", text[other : other + 9]]
    )
    return rng.choice(
        [
            text[:where],
            text[:where] + text[end:],
            text[:where] + piece + text[where:],
            text[:where] + piece + text[end:],
        ]
    )


@pytest.mark.parametrize("name", ["kuhn_poker", "biased_coin", "guess"])
def test_damaged_files_raise_nothing_else(name: str) -> None:
    text = json.dumps(GUESS, indent=1) if name == "guess" else format_json(load_game(name))
    rng = random.Random(name)
    for _ in range(500):
        game = read_or_refused(parse_json, damaged(text, rng))
        if game is not None:
            assert format_json(parse_json(format_json(game))) == format_json(game)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.data())
def test_values_of_any_kind_raise_nothing_else(data: st.DataObject) -> None:
    """Some value anywhere in a file is replaced by any other."""
    game = json.loads(json.dumps(GUESS))
    places: list[tuple[Any, Any]] = []
    waiting: list[Any] = [game]
    while waiting:
        value = waiting.pop()
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            places.append((value, key))
            if isinstance(value[key], (dict, list)):
                waiting.append(value[key])
    at, key = data.draw(st.sampled_from(places))
    leaves = (
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["hh", "tails"])
    )
    at[key] = data.draw(
        st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner))
    )
    read_or_refused(parse_json, json.dumps(game))


def test_truncated_files_are_refused() -> None:
    text = format_json(load_game("kuhn_poker")).rstrip()
    for end in range(len(text)):
        with pytest.raises(GameFileError):
            parse_json(text[:end])


def test_deep_and_wide_trees() -> None:
    for name in ("19a_deep_5000", "20_wide_1000"):
        game = load_game(CASES / f"{name}.efg")
        assert_same(parse_json(format_json(game)), game)


class Odd(Game):
    """Two actions and no more, with whatever is put in."""

    num_players = 1

    def __init__(self, **values: Any) -> None:
        self.values = values
        self.done = values.get("done", False)

    def is_terminal(self) -> bool:
        return self.done

    def is_chance(self) -> bool:
        return "chance" in self.values and not self.done

    def player_to_act(self) -> int:
        return 0

    def chance_outcomes(self) -> Any:
        return self.values["chance"]

    def legal_actions(self) -> Any:
        return self.values.get("actions", ("a", "b"))

    def step(self, action: Any) -> Odd:
        return Odd(**{**self.values, "done": True})

    def terminal_returns(self) -> Any:
        return self.values.get("payoffs", (0,))

    def infoset_key(self, player: int) -> Any:
        return self.values.get("key", "k")


@pytest.mark.parametrize(
    "values",
    [
        {"key": ("a", 1, (None, True), b"\x00", Fraction(1, 3), frozenset({"x"}))},
        {"key": 2**70},
        {"key": "\ud800 \n \\ é"},
        {"key": float("inf")},
        {"actions": (1, "1")},
        {"actions": ((0, 1), 1.5, None)},
        {"payoffs": (np.float32(0.1),)},
        {"payoffs": (np.int64(7),)},
        {"payoffs": (1e-300,)},
        {"payoffs": (Fraction(10**300, 3),)},
        {"chance": [("x", np.float32(1 / 3)), ("y", np.float32(2 / 3))]},
        {"chance": [("x", 0.1), ("y", 0.2), ("z", 0.7)]},
        {"chance": [(0, 0), (1, 1)]},
    ],
)
def test_odd_games_round_trip(values: dict[str, Any]) -> None:
    assert_same(parse_json(format_json(Odd(**values))), Odd(**values))


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({"key": object()}, GameError, "cannot be written"),
        ({"key": float("nan")}, GameError, "NaN"),
        ({"actions": ()}, GameError, "legal_actions() is empty"),
        ({"payoffs": (float("nan"),)}, GameError, "not finite"),
        ({"payoffs": (1, 2)}, GameError, "at a: terminal_returns() returned (1, 2)"),
        ({"chance": None}, ChanceNotEnumerableError, "chance can only be sampled at (the root)"),
        ({"chance": [("x", 0.5)]}, GameError, "sum to 0.5"),
    ],
)
def test_games_that_cannot_be_written(
    values: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=re.escape(words)):
        write_json(Odd(**values), tmp_path / "x.json")
    assert not list(tmp_path.iterdir())


def test_large_games_are_not_written() -> None:
    with pytest.raises(TooLarge, match="more than max_nodes = 57 histories"):
        format_json(load_game("kuhn_poker"), max_nodes=57)
    format_json(load_game("kuhn_poker"), max_nodes=58)


# Gambit's .nfg

# The game of Selten (1975), figure 2, as the documentation of the format has it, in both versions.
PAYOFFS = 'NFG 1 R "Selten" { "Player 1" "Player 2" } { 3 2 }\n\n1 1 0 2 0 2 1 1 0 3 2 0\n'
OUTCOMES = """NFG 1 R "Selten" { "Player 1" "Player 2" }
{ { "1" "2" "3" } { "1" "2" } }
"a comment"
{ { "" 1, 1 } { "" 0, 2 } { "" 0, 2 } { "" 1, 1 } { "" 0, 3 } { "" 2, 0 } }
1 2 3 4 5 6
"""


def test_the_example_of_the_documentation() -> None:
    for text in (PAYOFFS, OUTCOMES):
        game = parse_nfg(text)
        assert (game.name, game.player_names) == ("Selten", ("Player 1", "Player 2"))
        assert game.strategies == (("1", "2", "3"), ("1", "2"))
        # The first player's strategy runs fastest in the file.
        rows = [[(1, 1), (1, 1)], [(0, 2), (0, 3)], [(0, 2), (2, 0)]]
        for first, row in enumerate(rows):
            for second, payoffs in enumerate(row):
                assert game.step(first).step(second).terminal_returns() == payoffs


def test_nfg_against_openspiel(tmp_path: Path) -> None:
    pyspiel = pytest.importorskip("pyspiel", reason='OpenSpiel is not installed: pip install "jaxcfr[openspiel]"')
    path = tmp_path / "game.nfg"
    seed = 31
    game = normal_form(np.random.default_rng(seed).integers(-9, 10, (2, 3, 2, 3)), name="three players")
    write_nfg(game, path)
    # It reads numbers of strategies only.
    theirs = pyspiel.load_nfg_game(re.sub(r"\{\n.*\n\}", "{ 2 3 2 }", path.read_text(), flags=re.DOTALL))
    for picks in np.ndindex(2, 3, 2):
        state = theirs.new_initial_state()
        state.apply_actions(list(picks))
        mine = game.step(picks[0]).step(picks[1]).step(picks[2])
        assert list(mine.terminal_returns()) == state.returns(), f"seed {seed}"


TABLES = st.lists(st.integers(1, 3), min_size=1, max_size=4).flatmap(
    lambda shape: st.tuples(
        st.just(shape),
        st.lists(
            st.integers(-(10**20), 10**20) | st.fractions() | st.floats(-1e200, 1e200),
            min_size=int(np.prod(shape)) * len(shape),
            max_size=int(np.prod(shape)) * len(shape),
        ),
    )
)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(TABLES, st.text(min_size=1, max_size=5))
def test_tables_round_trip(table: tuple[list[int], list[Any]], name: str) -> None:
    shape, numbers = table
    payoffs = np.empty(len(numbers), object)
    payoffs[:] = numbers
    game = normal_form(payoffs.reshape(*shape, len(shape)), name=name)
    text = format_nfg(game)
    again = parse_nfg(text)
    assert again.strategies == game.strategies
    # Floats come back as the shortest decimals that denote them, so as the same floats.
    assert [[*map(float, row)] for row in again.payoffs] == [[*map(float, row)] for row in game.payoffs]
    assert format_nfg(again) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: the file is empty"),
        ("NFG", "the version of the format"),
        ("NFG 2 R", "the version of the format"),
        ("NFG 1 X", "'R' or 'D'"),
        ("EFG 2 R", "its name has to end in .efg"),
        ("hello", "not a Gambit strategic-form file"),
        ('NFG 1 R "x" { }', "the list of players is empty"),
        ('NFG 1 R "x" { "a" }', "the list of strategies in braces"),
        ('NFG 1 R "x" { "a" } { 2 2 } 1 1', "strategies of 2 players are given, but the game has 1"),
        ('NFG 1 R "x" { "a" } { 0 }', "the number of strategies of player 1 is 0"),
        ('NFG 1 R "x" { "a" } { 999999999 } 1', "999,999,999 combinations"),
        ('NFG 1 R "x" { "a" } { 9999999999999 } 1', "the number of strategies of player 1 is 9999999999999"),
        ('NFG 1 R "x" { "a" } { { } } 1', "player 1 has no strategy"),
        ('NFG 1 R "x" { "a" } { { "s" } { "t" } } 1', "strategies of 2 players are given"),
        ('NFG 1 R "x" { "a" } { { "s" } 1', "the list of strategies of player 2 in braces"),
        ('NFG 1 R "x" { "a" } { 2 } 1', "line 1, column 28: the file ends here, but payoff 2 of 2 was expected"),
        ('NFG 1 R "x" { "a" } { 2 } 1 2 3', "complete after 2 numbers, but the file goes on with 3"),
        ('NFG 1 R "x" { "a" } { 2 } 1 x', "payoff 2: x is not a number"),
        ('NFG 1 R "x" { "a" } { 2 } 1 1/0', "divides by zero"),
        ('NFG 1 R "x" { "a" } { 2 } 1 1e400', "too large"),
        ('NFG 1 R "x" { "a" } { 2 } { { "" 1 } } 1 2', "there is no outcome 2: they are numbered 0 to 1"),
        ('NFG 1 R "x" { "a" } { 2 } { { "" 1 } } 1 1/2', "there is no outcome 1/2"),
        ('NFG 1 R "x" { "a" } { 2 } { { "" 1 2 } } 1 1', "outcome 1 has 2 payoffs, but the game has 1 players"),
        ('NFG 1 R "x" { "a" } { 2 } { { 1 } } 1 1', "outcome 1 has no name"),
        ('NFG 1 R "x" { "a" } { 2 } { { "" 1 }', "outcome 2 in braces"),
    ],
)
def test_nfg_files_that_are_wrong(text: str, words: str) -> None:
    with pytest.raises(GameFileError, match=re.escape(words)):
        parse_nfg(text)


def test_the_null_outcome_and_repeated_names() -> None:
    game = parse_nfg('NFG 1 R "" { "a" } { { "s" "s" "" } } { { "" 1/2 } } 0, 1, 0', "dir/some.nfg")
    assert game.name == "some.nfg"
    assert game.strategies == (("s#1", "s#2", "3"),)
    assert [row[0] for row in game.payoffs] == [0, Fraction(1, 2), 0]


@pytest.mark.parametrize("text", [PAYOFFS, OUTCOMES])
def test_damaged_nfg_files_raise_nothing_else(text: str) -> None:
    rng = random.Random(len(text))
    for _ in range(500):
        game = read_or_refused(parse_nfg, damaged(text, rng))
        if game is not None:
            assert parse_nfg(format_nfg(game)).payoffs == game.payoffs
    for end in range(len(text.rstrip())):
        read_or_refused(parse_nfg, text[:end])


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*"012{},", '""', '"a"', "{ 1 2 }", '{ "a" "b" }', '{ "" 1 }', "1/2", "-1"])))
def test_random_tokens_raise_nothing_else(tokens: list[str]) -> None:
    read_or_refused(parse_nfg, 'NFG 1 R "x" { "a" } ' + " ".join(tokens))


def test_only_games_in_normal_form() -> None:
    with pytest.raises(GameError, match=r"a Gambit \.nfg file holds a game in normal form, not KuhnPoker"):
        format_nfg(load_game("kuhn_poker"))
    with pytest.raises(GameError, match="holds a whole game"):
        format_nfg(load_game("matrix_game").step(0))


# By the name of the file


def test_files_by_their_endings(tmp_path: Path) -> None:
    game = load_game("matrix_game(payoffs='1/3 -2; 0 5')")
    for name in ("g.efg", "g.nfg", "g.json", "G.JSON"):
        path = tmp_path / name
        write_game(game, path)
        for again in (read_game(path), load_game(path), load_game(str(path))):
            np.testing.assert_array_equal(walked(again).nodes.payoffs, walked(game).nodes.payoffs)
    assert isinstance(read_nfg(tmp_path / "g.nfg"), NormalFormGame)
    assert_same(read_json(tmp_path / "g.json"), game)
    for name in ("g.txt", "g", "efg"):
        for ask in (lambda name=name: write_game(game, tmp_path / name), lambda name=name: read_game(tmp_path / name)):
            with pytest.raises(GameLookupError, match=r"ends in \.efg, \.nfg or \.json"):
                ask()
    for name in ("no/such.json", "no/such.nfg"):
        with pytest.raises(GameFileError, match="cannot be written"):
            write_game(game, tmp_path / name)
        with pytest.raises(GameFileError, match="cannot be read"):
            load_game(tmp_path / name)


def test_efg_to_json_and_back() -> None:
    from jaxcfr.interop import format_efg

    game = load_game(CASES / "17a_kuhn.efg")
    again = parse_efg(format_efg(parse_json(format_json(game))))
    np.testing.assert_array_equal(walked(again).nodes.payoffs, walked(game).nodes.payoffs)
    np.testing.assert_array_equal(walked(again).nodes.infoset, walked(game).nodes.infoset)


@pytest.mark.parametrize("ending", ["json", "efg"])
def test_only_plain_games_are_written(ending: str, tmp_path: Path) -> None:
    game: Any = load_game("kuhn_poker")
    wrongs = ((game.array_game(), r"jaxcfr\.as_game"), ("kuhn_poker", r"jaxcfr\.load_game"), (None, "NoneType"))
    for wrong, hint in wrongs:
        with pytest.raises(GameError, match=f"a game file needs a plain game, not .*{hint}"):
            write_game(wrong, tmp_path / f"x.{ending}")
    assert not list(tmp_path.iterdir())
