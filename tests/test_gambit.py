"""The Gambit `.efg` reader and writer: the handed cases, every rejection, spellings, round trips and fuzzing."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcfr.errors import (
    ChanceNotEnumerableError,
    GameError,
    GameFileError,
    GameTooLargeError,
    RecallError,
)
from jaxcfr.games import Game, load_game
from jaxcfr.interop import EfgGame, format_efg, parse_efg, read_efg, write_efg

CASES = Path(__file__).parent / "cases"
EXPECTED: dict[str, dict[str, Any]] = json.loads((CASES / "expected.json").read_text())
OK = sorted(name for name, case in EXPECTED.items() if case["expect"] == "ok")
SMALL = [name for name in OK if EXPECTED[name]["nodes"] < 100]
REJECTED = sorted(set(EXPECTED) - set(OK))
HEADER = 'EFG 2 R "t" { "Ann" "Bob" }\n'


def read_case(name: str) -> EfgGame:
    return read_efg(CASES / f"{name}.efg")


def one(body: str) -> EfgGame:
    """A game with one player, from the text below the header, which is line 1."""
    return parse_efg('EFG 2 R "one" { "Ann" }\n' + body, "one.efg")


# Walking a game, without recursion


def moves(game: Any) -> Sequence[tuple[Any, Any]]:
    """The actions of a history with their probabilities, uniform for players."""
    if game.is_terminal():
        return ()
    if game.is_chance():
        return game.chance_outcomes()
    actions = game.legal_actions()
    return [(action, Fraction(1, len(actions))) for action in actions]


def walk(root: Any) -> Iterator[tuple[Any, int, Fraction]]:
    """Every history in prefix order with its depth and its probability under uniform play."""
    waiting = [(root, 0, Fraction(1))]
    while waiting:
        game, depth, reach = waiting.pop()
        yield game, depth, reach
        for action, probability in reversed(moves(game)):
            waiting.append((game.step(action), depth + 1, reach * probability))


def facts(root: Any) -> dict[str, Any]:
    """What expected.json says about a game. The value is added up from the leaves, which is exact and cheap."""
    order = [(root, 0)]
    nodes = terminals = deepest = 0
    infosets: list[set[Hashable]] = [set() for _ in range(root.num_players)]
    # Backward induction over the prefix order keeps the fractions small in deep trees.
    listed: list[tuple[Any, list[Fraction]]] = []
    while order:
        game, depth = order.pop()
        nodes += 1
        deepest = max(deepest, depth)
        steps = moves(game)
        terminals += not steps
        if steps and not game.is_chance():
            infosets[game.player_to_act()].add(game.infoset_key(game.player_to_act()))
        listed.append((game, [p for _, p in steps]))
        order.extend((game.step(action), depth + 1) for action, _ in reversed(steps))
    values: list[Sequence[Fraction]] = []
    for game, probabilities in reversed(listed):
        if not probabilities:
            values.append(game.terminal_returns())
        else:
            children = [values.pop() for _ in probabilities]
            value = [Fraction(0)] * root.num_players
            for p, child in zip(probabilities, children, strict=True):
                value = [v + p * c for v, c in zip(value, child, strict=True)]
            values.append(value)
    return {
        "nodes": nodes,
        "terminals": terminals,
        "infosets": [len(keys) for keys in infosets],
        "depth": deepest,
        "uniform_ev": list(values[0]),
    }


def same_game(first: Any, second: Any, *, same_keys: bool) -> int:
    """Walks both games and asserts that they are the same; returns the number of histories.

    Actions may differ (a file has only indices). Keys are equal, or else map one to one.
    """
    assert first.num_players == second.num_players
    there: dict[Hashable, Hashable] = {}
    back: dict[Hashable, Hashable] = {}
    waiting = [(first, second)]
    count = 0
    while waiting:
        a, b = waiting.pop()
        count += 1
        assert (a.is_terminal(), a.is_chance()) == (b.is_terminal(), b.is_chance())
        if a.is_terminal():
            assert list(map(float, a.terminal_returns())) == list(map(float, b.terminal_returns()))
            if all(isinstance(x, Fraction) for x in a.terminal_returns()):
                assert tuple(a.terminal_returns()) == tuple(b.terminal_returns())
            continue
        if a.is_chance():
            pairs = list(zip(a.chance_outcomes(), b.chance_outcomes(), strict=True))
            assert sum(p for _, p in b.chance_outcomes()) == 1
            for (_, p), (_, q) in pairs:
                assert q == p if isinstance(p, Fraction) else abs(float(q) - p) <= 1e-6
            steps = [(x, y) for (x, _), (y, _) in pairs]
        else:
            player = a.player_to_act()
            assert player == b.player_to_act()
            key, other = (player, a.infoset_key(player)), (player, b.infoset_key(player))
            assert there.setdefault(key, other) == other
            assert back.setdefault(other, key) == key
            assert not same_keys or key == other
            steps = list(zip(a.legal_actions(), b.legal_actions(), strict=True))
        waiting.extend((a.step(x), b.step(y)) for x, y in steps)
    return count


def fraction(text: str) -> Fraction:
    """A value in expected.json: a ratio, or the formula of the deepest case."""
    deepest = (1 - Fraction(1, 4**2500)) / 3
    if text == "-(same)":
        return -deepest
    return deepest if text.startswith("(1-4^-2500)/3 ~") else Fraction(text)


# The handed cases


@pytest.mark.parametrize("name", OK)
def test_case_is_read(name: str) -> None:
    case = EXPECTED[name]
    got = facts(read_case(name))
    assert got == {**{key: case[key] for key in got}, "uniform_ev": [fraction(v) for v in case["uniform_ev"]]}


@pytest.mark.parametrize("name", OK)
def test_case_is_written_and_read_back(name: str, tmp_path: Path) -> None:
    game = read_case(name)
    path = tmp_path / "again.efg"
    write_efg(game, path)
    again = read_efg(path)
    assert same_game(game, again, same_keys=True) == EXPECTED[name]["nodes"]
    assert path.read_text() == format_efg(again) == format_efg(game)
    assert (game.title, game.comment, game.player_names) == (again.title, again.comment, again.player_names)
    assert [(s.number, s.name, s.actions) for s in game.infosets] == [
        (s.number, s.name, s.actions) for s in again.infosets
    ]
    assert list(tmp_path.iterdir()) == [path]


REASONS = {
    "05_absent_minded": (5, r'player 1 \("Driver"\), information set 1 \("crossing"\): absent-minded'),
    "06_forgets_own_action": (7, r'player 1 \("P1"\), information set 2 \("forgetful"\): imperfect recall'),
    "26_bad_probs": (3, r"chance, information set 1: the probabilities sum to 999999/1000000"),
    "26c_negative_prob": (3, r'chance, information set 1: the probability of "b" is negative: -1/2'),
    "30_mismatch_count": (7, r'player 2 \("P2"\), information set 1 has 3 actions here, but 2 before'),
    "30d_truncated": (4, r'the file ends here, but the node .* after action 2 \("b"\) of player 1 \("P1"\)'),
}


@pytest.mark.parametrize("name", REJECTED)
def test_case_is_rejected(name: str) -> None:
    line, reason = REASONS[name]
    kind = RecallError if EXPECTED[name]["expect"] == "reject_recall" else GameFileError
    with pytest.raises(kind, match=reason) as caught:
        read_case(name)
    assert f"{name}.efg, line {line}, column" in str(caught.value)


def test_deep_and_wide_cases_are_fast() -> None:
    start = time.process_time()
    read_case("19a_deep_5000")
    read_case("20_wide_1000")
    assert time.process_time() - start < 0.5


def test_tree_of_100000_levels() -> None:
    levels = 100_000
    lines = [HEADER]
    for level in range(levels):
        lines.append(f'p "" {level % 2 + 1} {level} "" {{ "take" "pass" }} 1 "toll" {{ 1, -1 }} t "" 0')
    game = parse_efg("\n".join([*lines, 't "" 0']))
    assert game.num_nodes == 2 * levels + 1
    deepest: Any = game
    while not deepest.is_terminal():
        deepest = deepest.step(1)
    assert tuple(deepest.terminal_returns()) == (levels, -levels)
    assert format_efg(game).count("\n") == 2 * levels + 4


# The format


SPELLINGS = {
    "1/3": (1, 3), ".5": (1, 2), "5e-1": (1, 2), "1.5E0": (3, 2), "-15e-1": (-3, 2), "0.": (0, 1), "-0": (0, 1),
    "+1": (1, 1), "10/4": (5, 2), "-10/4": (-5, 2), "007": (7, 1), "-.25": (-1, 4), "+.5e+1": (5, 1),
    "1.e2": (100, 1), "2E3": (2000, 1), "1e-6": (1, 10**6), "1.5/2.5": (3, 5), "1/.5": (2, 1), "1e1/2e0": (5, 1),
    "0.1": (1, 10), "123456789012345678901234567890": (123456789012345678901234567890, 1), "0/5": (0, 1),
    "1e00000000000000000001": (10, 1), "1e308": (10**308, 1), "5e-324": (5, 10**324), "0e1000": (0, 1),
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_number_spellings(spelling: str) -> None:
    (payoff,) = one(f't "" 1 "" {{ {spelling} }}').terminal_returns()
    assert isinstance(payoff, Fraction)
    assert payoff == Fraction(*SPELLINGS[spelling])


@pytest.mark.parametrize(
    "spelling",
    ["nan", "inf", "-inf", "NaN", "Infinity", "1.2.3", "1/2/3", "-/2", "e5", "1e", "1e+", ".", "+", "-", "1/-2", "1/+2",
     "1/", "/2", "1_000", "0x10", "\u0661", "1,5", "--1", "+-1", "4-4"],
)  # fmt: skip
def test_not_a_number(spelling: str) -> None:
    with pytest.raises(GameFileError, match=r"one\.efg, line 2, column"):
        one(f't "" 1 "" {{ {spelling} }}')


@pytest.mark.parametrize("spelling", ["1/0", "1/0.0", "0/0", "1/0e5"])
def test_division_by_zero(spelling: str) -> None:
    with pytest.raises(GameFileError, match=f"outcome 1, payoff of player 1: {spelling} divides by zero"):
        one(f't "" 1 "" {{ {spelling} }}')


@pytest.mark.parametrize(
    ("spelling", "reason"),
    [
        ("1e999999999", "digits"),
        ("-1e-999999999", "digits"),
        ("1/1e999999999", "digits"),
        ("1e" + "9" * 100_000, "digits"),
        ("9" * 100_000, "digits"),
        ("0." + "0" * 100_000 + "1", "digits"),
        ("1e309", "too large"),
        ("-1e309", "too large"),
        ("1/1e-400", "too large"),
    ],
    ids=lambda value: value[:20],
)
def test_absurd_numbers_do_not_hang(spelling: str, reason: str) -> None:
    start = time.process_time()
    with pytest.raises(GameFileError, match=rf"line 2, column 13: outcome 1, payoff of player 1: .*{reason}") as caught:
        one(f't "" 1 "" {{ {spelling} }}')
    assert time.process_time() - start < 1
    assert len(str(caught.value)) < 300


def test_longest_numbers_are_written_and_read_back() -> None:
    long = "1" + "0" * 1800 + "1"
    game = one(f't "" 1 "" {{ 1.{long}/2.{long}7e-50 }}')
    text = format_efg(game)
    assert parse_efg(text).terminal_returns() == game.terminal_returns()
    assert format_efg(parse_efg(text)) == text


IMPLICIT = """EFG 2 R "x" { "A" "B" } "c"
c "" 1 "ch" { "u" 1/4 "d" 3/4 } 0
p "" 1 5 "I" { "L" "R" } 0
t "" 1 "w" { 4 -4 }
t "" 2 "v" { 0 0 }
p "" 1 5 "I" { "L" "R" } 0
c "" 1 "ch" { "u" 1/4 "d" 3/4 } 1 "w" { 4 -4 }
t "" 1 "w" { 4 -4 }
t "" 2 "v" { 0 0 }
t "" 1 "w" { 4 -4 }
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"\n", "\r\n"),
        (r"\n", "\r"),
        (r"\n", " "),
        (r"\n", "\t\v\f "),
        (r" ", "\n\n"),
        (r"\A", "\ufeff"),
        (r"\A", "\n\n  "),
        (r"\Z", "   \n\n"),
        (r"(?<=[0-9]) (?=-|0 \})", ", "),
        (r"(?<=[0-9]) (?=-|0 \})", " , "),
        (r"(?<=4|0) \}", ", }"),
        (r'(?<=L") ', ", "),
        (r'(?<=") (?=")', ","),
        (r"1/4", "1/4,"),
        (r"1/4", ".25"),
        (r"EFG 2 R", "EFG 2 D"),
        (r"(?s)(?<=c\"\n)(.*?v.*?)(1 \"w\" \{.*?\}) *(?=\n)", r"\1\2"),
        (r'(?s)(1 5) "I" \{[^}]*\}(?!.*1 5)', r"\1"),
        (r'(?s)(1 5 "I") \{[^}]*\}(?!.*1 5)', r"\1"),
        (r'(?s)(1 5) "I" (\{[^}]*\})(?!.*1 5)', r"\1 \2"),
        (r'(?s)(1 5) "I" (?!.*1 5)', r'\1 "" '),
        (r'c "" 1 "ch" \{[^}]*\} 1', 'c "" 1 1'),
        (r'1 "w" \{ 4 -4 \}\n\Z', "1"),
        (r'1 "w" \{ 4 -4 \}\n\Z', '1 "w"'),
        (r'1 "w" \{ 4 -4 \}\n\Z', "1 { 4.0, -8/2 }"),
        (r'2 "v" \{ 0 0 \}', '2 "v" {0 0}'),
        (r'" \{ "', '"{"'),
        (r"t \"\" ", 't""'),
    ],
)
def test_layouts_and_references_of_one_game(old: str, new: str) -> None:
    text = re.sub(old, new.replace("\\r", "\r"), IMPLICIT)
    game = parse_efg(text)
    assert same_game(parse_efg(IMPLICIT), game, same_keys=True) == 9
    assert game.comment == "c"
    assert {s.name for s in game.infosets} == {"ch", "I"}
    if "EFG 2 D" not in text:
        assert format_efg(game) == format_efg(parse_efg(IMPLICIT))


def test_null_outcome_and_payoffs_on_the_path() -> None:
    game = parse_efg(
        HEADER
        + """p "root" 1 1 "" { "a" "b" } 7 "ante" { -1/3 .5 }
        c "" 1 "" { "x" 1/2 "y" 1/2 } 7
        t "" 0
        t "leaf" 8 "win" { 1 1 }
        t "" 7"""
    )
    assert tuple(game.step(0).step(0).terminal_returns()) == (Fraction(-2, 3), 1)
    assert tuple(game.step(0).step(1).terminal_returns()) == (Fraction(1, 3), 2)
    assert tuple(game.step(1).terminal_returns()) == (Fraction(-2, 3), 1)
    assert (game.node_label, game.step(0).step(1).node_label) == ("root", "leaf")
    assert (game.outcome_name, game.step(0).step(1).outcome_name, game.step(0).step(0).outcome_name) == (
        "ante",
        "win",
        "",
    )
    nothing = parse_efg(HEADER + 't "" 0')
    assert tuple(nothing.terminal_returns()) == (0, 0)
    assert all(isinstance(x, Fraction) for x in nothing.terminal_returns())
    assert tuple(parse_efg(format_efg(nothing)).terminal_returns()) == (0, 0)


def test_players_without_moves_and_zero_probabilities() -> None:
    game = parse_efg('EFG 2 R "" { "A" "B" "C" } p "" 2 4 "" { "go" } 0 t "" 1 "" { 1 2 3 }', "dir/three.efg")
    assert game.num_players == 3
    assert game.player_to_act() == 1
    assert game.name == "three.efg"
    assert tuple(game.step(0).terminal_returns()) == (1, 2, 3)
    assert read_case("10_chance_only").chance_outcomes()[1] == (1, 0)
    draws = {read_case("10_chance_only").sample_chance(np.random.default_rng(seed)) for seed in range(30)}
    assert draws == {0, 2, 3}


def test_labels() -> None:
    game = read_case("22_labels_empty")
    assert [game.action_label(a) for a in game.legal_actions()] == ["1", "2"]
    assert game.infoset.actions == ("", "")
    assert game.player_names == ("", "")
    game = one('p "" 1 1 "" { "2" "" "x" "x" "x#3" "1" } 0' + ' t "" 0' * 6)
    labels = [game.action_label(a) for a in game.legal_actions()]
    assert labels == ["2#1", "2#2", "x#3'", "x#4", "x#3", "1"]
    assert parse_efg(format_efg(game)).infoset.actions == ("2", "", "x", "x", "x#3", "1")


@pytest.mark.parametrize(
    "label",
    ['say "hi"', "back\\slash", "ends\\", "two\\\\", '\\"', '"', "\\", "\\\\\\", "é ü 漢字 🂡", "a\nb\r\nc\td", "{ , }",
     "\x00\x1b", "\u2028", "\ufeff", "t", "\ud800 alone", "'"],
)  # fmt: skip
def test_any_label_survives(label: str, tmp_path: Path) -> None:
    quoted = '"' + label.replace("\\", "\\\\").replace('"', '\\"') + '"'
    game = parse_efg(f"EFG 2 R {quoted} {{ {quoted} }} {quoted} p {quoted} 1 1 {quoted} {{ {quoted} }} 0 t {quoted} 0")
    assert game.title == game.comment == game.player_names[0] == game.infoset.name == game.node_label == label
    assert game.infoset.actions == (label,)
    write_efg(game, tmp_path / "label.efg")
    again = read_efg(tmp_path / "label.efg")
    expected = label.encode("utf-8", "backslashreplace").decode()
    assert again.title == again.comment == again.player_names[0] == again.infoset.name == again.node_label == expected
    assert format_efg(again).encode() == (tmp_path / "label.efg").read_bytes()


def test_single_backslash_is_itself() -> None:
    # Gambit escapes nothing but the quote, so a single backslash is read and written as it is.
    game = one(r'p "" 1 1 "C:\dir" { "a" } 0 t "" 0')
    assert game.infoset.name == "C:\\dir"
    assert r'"C:\dir"' in format_efg(game)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "encoded.efg"
    path.write_bytes('EFG 2 R "Löwe" { "Zoë" }\r\n""\r\nt "" 0\r\n'.encode(encoding))
    game = read_efg(str(path))
    assert (game.title, game.player_names) == ("Löwe", ("Zoë",))
    assert game.source == str(path)


def test_protocol_of_a_history() -> None:
    game = read_case("17a_kuhn")
    after = game.step(0)
    assert after.infoset_key(0) == 1
    assert after.step(0).infoset_key(1) == 3
    assert not hasattr(after, "__dict__")
    assert after == game.step(0)
    assert hash(after) == hash(game.step(0))
    assert after != game
    assert after != read_case("17a_kuhn").step(0)
    assert game.nash_value() is None
    assert game.name == "Kuhn"
    assert repr(game) == "EfgGame('Kuhn', node 1 of 55)"
    assert repr(after.infoset) == "EfgInfoset(player 1, 1, '0', ('p', 'b'))"
    calls: list[Callable[[], object]] = [
        lambda: after.infoset_key(1),
        lambda: game.infoset_key(-1),
        lambda: after.chance_outcomes(),
        lambda: after.terminal_returns(),
        lambda: game.player_to_act(),
        lambda: game.legal_actions(),
        lambda: after.step(2),
        lambda: after.step(-1),
        lambda: after.step("p"),
        lambda: after.step(0.0),
        lambda: after.action_label(7),
        lambda: after.action_label("x"),
        lambda: after.step(1).step(0).infoset,
        lambda: after.step(1).step(0).step(0),
    ]
    for call in calls:
        with pytest.raises(GameError, match="Kuhn"):
            call()
    with pytest.raises(GameError, match=r"at 01 > b > p"):
        after.step(1).step(0).legal_actions()


# Rejections: (text, line, reason)

TWO = HEADER + 'p "" 1 1 "first" { "a" "b" } 0\n'

BAD_FILES = {
    "empty": ("", 1, "the file is empty"),
    "blank": (" \n\n", 1, "the file is empty"),
    "garbage": ("hello world", 1, "not a Gambit extensive-form file: it starts with hello"),
    "binary": ("\x7fELF\x02\x00\x01", 1, "not a Gambit extensive-form file"),
    "nfg": ('NFG 1 R "x" { "A" "B" } { 2 2 }', 1, r"strategic-form game \(NFG\): its name has to end in \.nfg"),
    "xml": ('<?xml version="1.0"?>', 1, "XML"),
    "efg 1": ('EFG 1 R "x" { "A" }', 1, "version 1 of the format is not supported"),
    "no version": ("EFG", 1, "the file ends here, but the version"),
    "letter": ('EFG 2 X "x" { "A" }', 1, "expected 'R' or 'D' after 'EFG 2', found X"),
    "no title": ('EFG 2 R { "A" }', 1, "the title of the game in double quotes"),
    "no players": ('EFG 2 R "x"\nt "" 0', 2, "the list of players in braces"),
    "empty players": ('EFG 2 R "x" { }', 1, "the list of players is empty"),
    "player unquoted": ('EFG 2 R "x" {\nA }', 2, "the name of a player in double quotes, found A"),
    "players open": ('EFG 2 R "x" { "A"\nt "" 0', 1, r"the file ends at line 2 .*'}' was expected"),
    "no tree": (HEADER + '"comment"', 2, r"the file ends here, but the root of the tree"),
    "node kind": (HEADER + 'x "" 0', 2, r"expected the root of the tree .*, found x"),
    "upper-case node": (HEADER + 'T "" 0', 2, "found T"),
    "node label": (HEADER + "t 1", 2, "the name of the node in double quotes, found 1"),
    "number for kind": (TWO + '\n5 "" 0', 4, r'after action 1 \("a"\) of player 1 \("Ann"\), information set 1 '
                        r'\("first"\) \(line 2\), found 5'),
    "player 0": (HEADER + 'p "" 0 1 "" { "a" } 0', 2, "there is no player 0: the game has 2 players"),
    "player 3": (HEADER + 'p ""\n3 1 "" { "a" } 0', 3, "there is no player 3"),
    "player negative": (HEADER + 'p "" -1 1 "" { "a" } 0', 2, "the number of the player"),
    "infoset number": (HEADER + 'p "" 1 1.5 "" { "a" } 0', 2, "the number of the information set"),
    "infoset unknown": (TWO + 't "" 0\np "" 2 7 0', 4, r'the list of actions .* of player 2 \("Bob"\), '
                        "information set 7"),
    "infoset of another": (TWO + 'p "" 2 1 0', 3, r'first node of player 2 \("Bob"\), information set 1'),
    "infoset only named": (HEADER + 'p "" 1 1 "n" 0', 2, r'player 1 \("Ann"\), information set 1 \("n"\)'),
    "no actions": (HEADER + 'p "" 1 1 "n" { } 0', 2, r'information set 1 \("n"\): the list of actions is empty'),
    "action unquoted": (HEADER + 'p "" 1 1 "n" { a } 0', 2, "the name of an action .* in double quotes, found a"),
    "more actions": (TWO + 't "" 0\np "" 1 1 ""\n{ "a" "b" "c" } 0', 5, r'player 1 \("Ann"\), information set 1 '
                     r'\("first"\) has 3 actions here, but 2 before'),
    "fewer actions": (TWO + 't "" 0\np "" 1 1 "" { "a" } 0', 4, "has 1 actions here, but 2 before"),
    "other actions": (TWO + 'p "" 1 1 "" { "a" "c" } 0', 3, r"here \('a', 'c'\) than before \('a', 'b'\)"),
    "actions swapped": (TWO + 'p "" 1 1 "" { "b" "a" } 0', 3, "other actions here"),
    "other set name": (TWO + 'p "" 1 1 "second" { "a" "b" } 0', 3, r'\("first"\) is given another name, "second"'),
    "negative": (HEADER + 'c "" 3 "deal" { "x" 3/2\n"y" -.5 } 0', 3, r'chance, information set 3 \("deal"\): the '
                 r'probability of "y" is negative: -.5'),
    "sum": (HEADER + 'c "" 3 "deal" { "x" .3 "y" .6 } 0', 2, r'chance, information set 3 \("deal"\): the probabilities '
            "sum to 9/10, not to 1"),
    "sum nearly": (HEADER + 'c "" 3 "" { "x" .5 "y" .50000000000000000001 } 0', 2, "sum to 100000000000000000001/1"),
    "chance without number": (HEADER + 'c "" 3 "" { "x" 1 "y" } 0', 2, 'no probability after "y"'),
    "chance without labels": (HEADER + 'c "" 3 "" { 1/2 1/2 } 0', 2, "the name of a move of chance"),
    "chance two labels": (HEADER + 'c "" 3 "" { "x" "y" } 0', 2, 'probability of "x": "y" is not a number'),
    "chance empty": (HEADER + 'c "" 3 "" { } 0', 2, "the list of moves is empty"),
    "chance unknown": (HEADER + 'c "" 3 0', 2, "first node of chance, information set 3"),
    "chance redefined": (HEADER + 'c "" 1 "" { "x" 1/2 "y" 1/2 } 0 t "" 0\nc "" 1 "" { "x" 1/3 "y" 2/3 } 0', 3,
                         "other probabilities here (1/3, 2/3) than before (1/2, 1/2)".replace("(", r"\(")
                         .replace(")", r"\)")),
    "few payoffs": (HEADER + 't "" 1 "" { 1 }', 2, "outcome 1 has 1 payoffs, but the game has 2 players"),
    "many payoffs": (HEADER + 't "" 1 "" { 1, 2, 3 }', 2, "outcome 1 has 3 payoffs"),
    "payoff text": (HEADER + 't "" 1 "" { 1 "2" }', 2, 'outcome 1, payoff of player 2: "2" is not a number'),
    "outcome unknown": (TWO + 't "" 1 "" { 1 2 }\nt "" 2', 4, "but the list of payoffs of outcome 2"),
    "outcome unknown inside": (TWO + 't "" 2\nt "" 1 "" { 1 2 }', 3, "outcome 2 is used before its payoffs are given"),
    "outcome only named": (TWO + 't "" 2 "n"\nt "" 0', 4, "the list of payoffs of outcome 2 .* found t"),
    "other payoffs": (TWO + 't "" 1 "win" { 1 2 }\nt "" 1 "win" { 1 3 }', 4, r'outcome 1 \("win"\) is given other '
                      "payoffs: 1, 3 here, 1, 2 before"),
    "other outcome name": (TWO + 't "" 1 "win" { 1 2 }\nt "" 1 "won" { 1 2 }', 4, 'is given another name, "won"'),
    "null outcome": (HEADER + 't "" 0 "" { 0 0 }', 2, "outcome 0 is the null outcome"),
    "outcome number": (HEADER + 't "" x', 2, "the number of the outcome"),
    "outcome negative": (HEADER + 't "" -1', 2, "the number of the outcome"),
    "outcome long": (HEADER + 't "" ' + "1" * 5000, 2, "the number of the outcome"),
    "comma first": (HEADER + 't "" 1 "" { , 1 2 }', 2, "a comma without an item before it"),
    "comma twice": (HEADER + 't "" 1 "" { 1,, 2 }', 2, "a comma without an item before it"),
    "comma outside": (HEADER + 't "" 1, "" { 1 2 }', 2, "found ,"),
    "trailing node": (HEADER + 't "" 0\n t "" 0', 3, "the tree is complete after 1 nodes, but the file goes on with t"),
    "trailing brace": (HEADER + 't "" 0\n\n}', 4, "the file goes on with }"),
    "trailing text": (TWO + 't "" 0 t "" 1 "" { 1 2 }\n"end"', 4, "the tree is complete after 3 nodes"),
    "open list": (HEADER + 't "" 1 "" { 1\n2\n', 2, "the file ends at line 3 inside the list"),
    "nested list": (HEADER + 't "" 1 "" { 1 { 2 } }', 2, "is not closed before the '{' in line 2, column 15"),
    "open text": (HEADER + 't "no end\n0\n\n', 2, "the file ends at line 3 inside the text that opens here"),
    "cut after kind": (HEADER + "t", 2, "the file ends here, but the name of the node"),
    "cut after label": (HEADER + 't ""', 2, "the file ends here, but the number of the outcome"),
    "cut after player": (HEADER + 'p "" 1', 2, "the file ends here, but the number of the information set"),
    "cut after set": (HEADER + 'p "" 1 1 "x"', 2, "the file ends here, but the list of actions"),
    "cut after actions": (HEADER + 'p "" 1 1 "x" { "a" }', 2, "the file ends here, but the number of the outcome"),
    "cut after node": (TWO + "\n\n\n", 2, r'the file ends here, but the node .* after action 1 \("a"\)'),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FILES)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_bad_file(name: str, newline: str) -> None:
    text, line, reason = BAD_FILES[name]
    with pytest.raises(GameFileError, match=reason) as caught:
        parse_efg(text.replace("\n", newline), "dir/bad.efg")
    assert str(caught.value).startswith(f"dir/bad.efg, line {line}")
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


def test_unreadable_paths(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path, "directory"),
        (tmp_path / "missing.efg", "No such file"),
        (tmp_path / "a\0b", "null"),
    ):
        with pytest.raises(GameFileError, match=rf"cannot be read: .*{reason}"):
            read_efg(path)
    for name, data in (
        ("random", random.Random(0).randbytes(100_000)),
        ("zeros", bytes(1000)),
        ("utf-16", b"\xff\xfe\x00"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(GameFileError, match=f"{name}, line 1"):
            read_efg(tmp_path / name)


def test_recall_errors_name_every_set() -> None:
    body = """p "" 1 1 "start" { "a" "b" } 0
    p "" 1 2 "lost" { "x" "y" } 0
    p "" 1 3 "later" { "z" } 0 t "" 0
    t "" 0
    p "" 1 2 0
    p "" 1 2 0 t "" 0 t "" 0
    p "" 1 3 0 t "" 0
    """
    with pytest.raises(RecallError) as caught:
        one(body)
    message = str(caught.value)
    assert message.startswith('one.efg, line 6, column 5: player 1 ("Ann"), information set 2 ("lost"): absent-minded')
    assert 'also player 1 ("Ann"), information set 3 ("later") (imperfect recall)' in message


def test_recall_is_per_player_and_not_chance() -> None:
    # Bob's move lies between, and does not show in Ann's sets; chance may repeat its own.
    game = parse_efg(
        HEADER
        + """c "" 1 "" { "x" 1/2 "y" 1/2 } 0
        c "" 1 0 t "" 0
        p "" 1 1 "" { "a" "b" } 0 p "" 2 1 "" { "c" "d" } 0 p "" 1 2 "" { "e" } 0 t "" 0 p "" 1 2 0 t "" 0 t "" 0
        p "" 2 1 0 p "" 1 1 0 t "" 0 t "" 0 t "" 0"""
    )
    assert game.num_nodes == 15


# Writing games that were not read from a file


class Tree(Game):
    """A game as nested data: ("t", payoffs), ("c", [(probability, child)]) or (player, key, actions, children)."""

    def __init__(self, num_players: int, node: Any, name: str = "tree") -> None:
        self.num_players = num_players
        self.node = node
        self.name = name

    def is_terminal(self) -> bool:
        return bool(self.node[0] == "t")

    def is_chance(self) -> bool:
        return bool(self.node[0] == "c")

    def player_to_act(self) -> int:
        return int(self.node[0])

    def chance_outcomes(self) -> Sequence[tuple[Hashable, Any]] | None:
        if self.node[1] is None:
            return None
        return [(f"m{i}", p) for i, (p, _) in enumerate(self.node[1])]

    def legal_actions(self) -> Sequence[Hashable]:
        return list(self.node[2])

    def step(self, action: Hashable) -> Tree:
        if self.is_chance():
            assert isinstance(action, str)
            return Tree(self.num_players, self.node[1][int(action[1:])][1], self.name)
        return Tree(self.num_players, self.node[3][self.node[2].index(action)], self.name)

    def terminal_returns(self) -> Sequence[Any]:
        return list(self.node[1])

    def infoset_key(self, player: int) -> Hashable:
        return self.node[1]  # type: ignore[no-any-return]


def chance_of(*probabilities: Any) -> Tree:
    return Tree(1, ("c", [(p, ("t", [0])) for p in probabilities]))


def written(game: Any) -> EfgGame:
    text = format_efg(game)
    again = parse_efg(text)
    assert format_efg(again) == text
    return again


def probabilities_of(game: Any) -> list[Fraction]:
    return [p for _, p in written(game).chance_outcomes()]


def test_writes_keys_labels_and_numbers() -> None:
    leaf = ("t", [0.1, np.float32(0.5)])
    nested = (1, "k2", [True, None], [leaf, ("t", [Fraction(1, 3), -2])])
    tree = Tree(2, (0, ("a", 'q"', 1), ["x", 3], [nested, nested]), 'a "name" \\')
    game = written(tree)
    assert same_game(tree, game, same_keys=False) == 7
    assert game.title == tree.name
    assert game.player_names == ("Player 1", "Player 2")
    assert [(s.player, s.number, s.name, s.actions) for s in game.infosets] == [
        (0, 1, "('a', 'q\"', 1)", ("x", "3")),
        (1, 1, "k2", ("True", "None")),
    ]
    assert tuple(game.step(0).step(0).terminal_returns()) == (Fraction(1, 10), Fraction(1, 2))
    assert len({line for line in format_efg(tree).splitlines() if line.startswith("t")}) == 2


def test_names_are_fitted_to_what_gambit_accepts() -> None:
    tree = Tree(1, (0, " J\u2665  \tb\x00 ", [" raise  2", "\ud800"], [("t", [1])] * 2))
    assert written(tree).infoset.name == "J\\u2665 b\\x00"
    assert written(tree).infoset.actions == ("raise 2", "\\ud800")


@pytest.mark.parametrize(
    "spec",
    ["kuhn_poker", "kuhn_poker(players=3)", "leduc_poker", "matching_pennies", "rock_paper_scissors", "biased_coin"],
)
def test_bundled_games_round_trip(spec: str, tmp_path: Path) -> None:
    game = load_game(spec)
    path = tmp_path / "bundled.efg"
    write_efg(game, path)
    again = read_efg(path)
    assert same_game(game, again, same_keys=False) == again.num_nodes
    assert format_efg(again) == path.read_text()


@pytest.mark.parametrize(
    ("floats", "exact"),
    [
        ([1 / 3] * 3, [Fraction(1, 3)] * 3),
        ([1 / 3, 1 - 1 / 3], [Fraction(1, 3), Fraction(2, 3)]),
        ([0.1] * 10, [Fraction(1, 10)] * 10),
        ([0.99, 0.01], [Fraction(99, 100), Fraction(1, 100)]),
        ([1 / 132] * 132, [Fraction(1, 132)] * 132),
        ([0.333333, 0.333333, 0.333334], [Fraction(333333, 10**6)] * 2 + [Fraction(333334, 10**6)]),
        ([0.12345678901, 0.87654321099], [Fraction(12345678901, 10**11), Fraction(87654321099, 10**11)]),
        ([1.0, 0.0], [1, 0]),
        ([Fraction(1, 3), 2 / 3], [Fraction(1, 3), Fraction(2, 3)]),
        ([1e-17, 1.0], [Fraction(1, 10**17), 1 - Fraction(1, 10**17)]),
        ([np.float32(1 / 3)] * 3, None),
        ([0.1 + 0.2, 0.7 - 1e-9], None),
        ([1, 0], [1, 0]),
    ],
)
def test_float_probabilities_become_exact(floats: list[Any], exact: list[Fraction] | None) -> None:
    got = probabilities_of(chance_of(*floats))
    assert sum(got) == 1
    assert min(got) >= 0
    assert exact is None or got == exact
    assert [float(p) for p in got] == pytest.approx([float(p) for p in floats], abs=1e-6)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20).filter(lambda weights: sum(weights) > 0))
def test_any_normalised_floats_become_exact(weights: list[float]) -> None:
    floats = [w / sum(weights) for w in weights]
    got = probabilities_of(chance_of(*floats))
    assert sum(got) == 1
    assert min(got) >= 0
    assert all((p == 0) == (q == 0) for p, q in zip(floats, got, strict=True))
    assert [float(p) for p in got] == pytest.approx(floats, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    ("game", "reason"),
    [
        (chance_of(0.5, 0.4), "sum to 0.9, not to 1"),
        (chance_of(Fraction(1, 2), Fraction(1, 3)), "sum to 5/6, not to 1"),
        (chance_of(1.5, -0.5), "negative"),
        (chance_of(float("nan"), 1.0), "not a finite"),
        (chance_of(), "is empty"),
        (Tree(2, ("t", [1])), "1 payoffs at .* 2 players"),
        (Tree(1, ("t", [float("inf")])), "not a finite"),
        (Tree(1, ("t", ["much"])), "much"),
        (Tree(1, ("t", [10**400])), "too large"),
        (Tree(1, (3, "k", ["a"], [("t", [1])])), "there is no player 3"),
        (Tree(1, (0, "k", [], [])), "empty or not distinct"),
        (Tree(1, (0, "k", ["a", "a"], [("t", [1])] * 2)), "empty or not distinct"),
        (
            Tree(1, ("c", [(0.5, (0, "k", order, [("t", [1])] * 2)) for order in (["a", "b"], ["b", "a"])])),
            "information set 'k' has the actions",
        ),
    ],
)
def test_broken_games_are_not_written(game: Tree, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "kept.efg"
    path.write_text("old")
    with pytest.raises(GameError, match=reason):
        write_efg(game, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_needs_enumerable_bounded_perfect_recall_games() -> None:
    with pytest.raises(ChanceNotEnumerableError, match=r"at m1 .*a Gambit file"):
        format_efg(Tree(1, ("c", [(0.5, ("t", [1])), (0.5, ("c", None))])))
    with pytest.raises(GameTooLargeError, match="max_nodes = 3"):
        format_efg(chance_of(0.5, 0.25, 0.25), max_nodes=3)
    absent = Tree(1, (0, "k", ["a"], [(0, "k", ["a"], [("t", [1])])]))
    with pytest.raises(RecallError, match=r'tree, at a: player 1 \("Player 1"\), information set 1 \("k"\): absent'):
        format_efg(absent)


def test_write_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "such.efg", tmp_path):
        with pytest.raises(GameFileError, match="cannot be written"):
            write_efg(chance_of(1), path)
    assert not list(tmp_path.iterdir())


def test_deep_game_is_written() -> None:
    class Count:
        num_players = 1
        name = "count"

        def __init__(self, level: int = 0) -> None:
            self.level = level

        def is_terminal(self) -> bool:
            return self.level == 5_000

        def is_chance(self) -> bool:
            return False

        def player_to_act(self) -> int:
            return 0

        def legal_actions(self) -> tuple[str, ...]:
            return ("on",)

        def step(self, action: Hashable) -> Count:
            return Count(self.level + 1)

        def infoset_key(self, player: int) -> int:
            return self.level

        def terminal_returns(self) -> tuple[int]:
            return (1,)

    game: Any = Count()
    assert written(game).num_nodes == 5_001


@pytest.mark.parametrize("name", SMALL)
def test_subtrees_are_games_of_their_own(name: str) -> None:
    for game, _, _ in walk(read_case(name)):
        same_game(game, written(game), same_keys=True)


def test_subtree_keeps_what_was_paid_before() -> None:
    game = parse_efg(
        HEADER + 'p "" 1 1 "" { "a" "b" } 3 "ante" { -1 1/2 } t "" 0 p "" 1 2 "" { "c" } 3 t "" 9 "win" { 5 5 }'
    )
    assert tuple(written(game.step(0)).terminal_returns()) == (-1, Fraction(1, 2))
    assert tuple(written(game.step(1)).step(0).terminal_returns()) == (3, 6)
    assert written(game.step(1)).outcome_name == "ante"


def random_tree(seed: int, floats: bool) -> Tree:
    """A random game of perfect recall: what a player knows is its own past and one bit it saw at each of its moves."""
    rng = random.Random(seed)
    players = rng.randint(1, 3)
    budget = [rng.randint(1, 120)]

    def number() -> Any:
        exact = Fraction(rng.randint(-50, 50), rng.choice([1, 1, 2, 3, 7]))
        return float(exact) if floats else exact

    def grow(depth: int, seen: tuple[tuple[Any, ...], ...]) -> Any:
        budget[0] -= 1
        draw = rng.random()
        if budget[0] <= 0 or depth > 7 or draw < 0.15:
            return ("t", [number() for _ in range(players)])
        if draw < 0.35:
            weights = [rng.randint(0, 4) for _ in range(rng.randint(1, 4))]
            weights[0] += 1
            chances = [Fraction(w, sum(weights)) for w in weights]
            return ("c", [(float(p) if floats else p, grow(depth + 1, seen)) for p in chances])
        player = rng.randrange(players)
        key = (*seen[player], rng.randint(0, 1))
        # The number of actions follows from the key, so that all nodes of a set agree.
        actions = [f"a{i}" for i in range(1 + random.Random(repr((seed, player, key))).randrange(3))]
        children = []
        for action in actions:
            now = list(seen)
            now[player] = (*key, action)
            children.append(grow(depth + 1, tuple(now)))
        return (player, key, actions, children)

    return Tree(players, grow(0, ((),) * players), f"random {seed}")


@settings(derandomize=True, max_examples=150, deadline=None, print_blob=True)
@given(seed=st.integers(0, 10**6), floats=st.booleans())
def test_random_games_round_trip(seed: int, floats: bool) -> None:
    tree = random_tree(seed, floats)
    game = written(tree)
    assert same_game(tree, game, same_keys=False) == game.num_nodes
    assert [s.name for s in game.infosets if s.player >= 0] == [str(n.infoset_key(0)) for n in decisions_by_set(tree)]


def decisions_by_set(tree: Tree) -> list[Tree]:
    """The first decision history of each information set, in prefix order."""
    first: dict[tuple[int, Hashable], Tree] = {}
    for game, _, _ in walk(tree):
        if not game.is_terminal() and not game.is_chance():
            first.setdefault((game.player_to_act(), game.infoset_key(0)), game)
    return list(first.values())


# Fuzzing


def damaged(text: str, rng: random.Random) -> str:
    where = rng.randrange(len(text))
    with_what = rng.choice('{}",\\ \n\0cpt019-+/.eE€' + text[rng.randrange(len(text))])
    return rng.choice(
        [
            text[:where],
            text[:where] + text[where + 1 :],
            text[:where] + with_what + text[where:],
            text[:where] + with_what + text[where + 1 :],
        ]
    )


def read_or_refused(text: str) -> EfgGame | None:
    """The game, or None where the text is refused in the proper way; anything else that is raised fails the test."""
    message = "<string>, line 0"
    try:
        return parse_efg(text)
    except (GameFileError, RecallError) as error:
        message = str(error)
    assert re.match(r"<string>, line [1-9]", message), text
    return None


@pytest.mark.parametrize("name", [name for name in sorted(EXPECTED) if not name.startswith(("19a", "20"))])
def test_damaged_files_raise_nothing_else(name: str) -> None:
    text = (CASES / f"{name}.efg").read_text()
    rng = random.Random(name)
    for _ in range(400):
        game = read_or_refused(damaged(text, rng))
        if game is not None:
            assert format_efg(parse_efg(format_efg(game))) == format_efg(game)


@pytest.mark.parametrize("name", ["19a_deep_5000", "20_wide_1000"])
def test_damaged_large_files_raise_nothing_else(name: str) -> None:
    text = (CASES / f"{name}.efg").read_text()
    rng = random.Random(name)
    for _ in range(8):
        read_or_refused(damaged(text, rng))


@pytest.mark.parametrize("piece", ["{", '"', '\\"', '{ "', '"\\"" ', "}", ",", "p ", "\\", '{ "a" ', "1/", "\r"])
def test_garbage_takes_linear_time(piece: str) -> None:
    start = time.process_time()
    for opening in ("", HEADER, HEADER + 't "" 1 "" {'):
        with pytest.raises(GameFileError):
            parse_efg(opening + piece * 100_000)
    assert time.process_time() - start < 3


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*"cptx01234{},", '""', '"a"', "{ 1 2 }", '{ "a" }', '{ "a" 1 }', "1/2", "-1"])))
def test_random_tokens_raise_nothing_else(tokens: list[str]) -> None:
    read_or_refused(HEADER + " ".join(tokens))
