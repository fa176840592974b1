"""Names of games: what is loaded, and what a wrong specification is told."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxcfr.errors import GameError, GameLookupError, JaxCFRError, OptionError
from jaxcfr.games import Game, GameOption, KuhnPoker, list_games, load_game, register_game, registry

COIN_EFG = """EFG 2 R "coin" { "one" "two" }
""
p "" 1 1 "" { "left" "right" } 0
t "" 1 "" { 1 -1 }
t "" 2 "" { -1 1 }
"""


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    """Games that a test registers are gone after it."""
    before = dict(registry._GAMES)
    yield
    registry._GAMES.clear()
    registry._GAMES.update(before)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("kuhn_poker", "kuhn_poker"),
        ("  kuhn_poker  ", "kuhn_poker"),
        ("kuhn_poker()", "kuhn_poker"),
        ("kuhn_poker ( )", "kuhn_poker"),
        ("kuhn_poker(players=3)", "kuhn_poker(players=3)"),
        ("kuhn_poker( players = 3 , ) ", "kuhn_poker(players=3)"),
        ("kuhn_poker(players=+2)", "kuhn_poker"),
        ("leduc_poker(suit_isomorphism=true)", "leduc_poker(suit_isomorphism=True)"),
        ("leduc_poker(suit_isomorphism=False,players=3)", "leduc_poker(players=3)"),
        ("goofspiel(points_order='ascending',num_cards=4)", "goofspiel(num_cards=4,points_order=ascending)"),
        ('goofspiel(points_order="random")', "goofspiel"),
        ("goofspiel(num_cards=4,num_turns=-1)", "goofspiel(num_cards=4)"),
        ("biased_coin(q=1/3)", "biased_coin(q=1/3)"),
        ("biased_coin(q=.25)", "biased_coin(q=0.25)"),
        ("biased_coin(q=1e-1)", "biased_coin(q=0.1)"),
        ("liars_dice(bidding_rule=reset-quantity)", "liars_dice(bidding_rule=reset-quantity)"),
    ],
)
def test_load(spec: str, name: str) -> None:
    """A specification in any spelling gives the game of one canonical name, which loads again."""
    assert load_game(spec).name == name
    assert load_game(name).name == name


def test_fractions_are_exact() -> None:
    """1/3 is a fraction, not a float."""
    assert load_game("biased_coin(q=1/3)").chance_outcomes()[0][1] == Fraction(1, 3)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("khun_poker", "no game is named 'khun_poker'; did you mean kuhn_poker"),
        ("Kuhn_Poker", "did you mean kuhn_poker"),
        ("kuhn", "did you mean kuhn_poker"),
        ("poker", "did you mean kuhn_poker or dice_poker or leduc_poker"),
        ("dice", "did you mean dice_poker or liars_dice"),
        ("chess", "the games are battleship, biased_coin, dice_poker, first_price_auction, goofspiel, kuhn"),
        ("kühn_poker", "did you mean kuhn_poker"),
        ("扑克", "the games are battleship"),
        ("kuhn_poker(player=3)", "kuhn_poker has no option 'player'; did you mean players"),
        ("goofspiel(cards=3)", "did you mean num_cards"),
        ("leduc_poker(zzz=3)", "the options of leduc_poker are players, ranks, suit_isomorphism, suits"),
        ("matching_pennies(players=2)", "matching_pennies has no option 'players'; there are no options"),
        ("", "it has no name"),
        ("   ", "it has no name"),
        ("(players=3)", "it has no name"),
        ("kuhn_poker(players=3", "the closing bracket is missing"),
        ("kuhn_poker(", "the closing bracket is missing"),
        ("kuhn_poker)", "closes a bracket that it does not open"),
        ("kuhn_poker(players=3))", "something follows the closing bracket"),
        ("kuhn_poker(players=3)x", "something follows the closing bracket"),
        ("kuhn_poker((players=3))", "brackets inside brackets"),
        ("kuhn_poker(players=f(3))", "brackets inside brackets"),
        ("kuhn_poker(3)", "'3' has no value; write name"),
        ("kuhn_poker(players)", "'players' has no value"),
        ("kuhn_poker(players=)", "option 'players' has no value"),
        ("kuhn_poker(=3)", "the value '3' has no option"),
        ("kuhn_poker(,)", "nothing between two commas"),
        ("kuhn_poker(players=3,,)", "nothing between two commas"),
        ("kuhn_poker(,players=3)", "nothing between two commas"),
        ("kuhn_poker(players=3,players=3)", "option 'players' is given twice"),
        ("kuhn_poker,players=3", "options go in brackets"),
        ("kuhn_poker players=3", "options go in brackets"),
        ("goofspiel(points_order='random)", "a quote is not closed"),
    ],
)
def test_lookup_errors(spec: str, message: str) -> None:
    """A wrong name, option or bracket is told apart, with what is near."""
    with pytest.raises(GameLookupError) as caught:
        load_game(spec)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("kuhn_poker(players=1)", "kuhn_poker: players=1 is not allowed; players is an integer from 2 to 10"),
        ("kuhn_poker(players=11)", "players is an integer from 2 to 10"),
        ("kuhn_poker(players=two)", "players=two is not allowed"),
        ("kuhn_poker(players=3.0)", "players=3.0 is not allowed"),
        ("kuhn_poker(players='3')", "players='3' is not allowed"),
        ("kuhn_poker(players=1_0)", "players=1_0 is not allowed"),
        ("kuhn_poker(players=3)".replace("3", "\uff13"), "is not allowed"),  # a full-width digit
        ("kuhn_poker(players=" + "9" * 5000 + ")", "... is not allowed"),
        ("leduc_poker(suit_isomorphism=yes)", "suit_isomorphism=yes is not allowed; suit_isomorphism is True or False"),
        ("leduc_poker(suit_isomorphism=1)", "suit_isomorphism is True or False"),
        ("goofspiel(points_order=up)", "points_order is random, descending or ascending"),
        ("goofspiel(points_order=Random)", "points_order='Random' is not allowed"),
        ("goofspiel(num_cards=3,num_turns=4)", "num_turns is -1, or 1 to num_cards=3"),
        ("biased_coin(q=3/2)", "q=3/2 is not allowed; q is a number from 0 to 1"),
        ("biased_coin(q=1/0)", "q=1/0 is not allowed"),
        ("biased_coin(q=nan)", "q=nan is not allowed"),
        ("biased_coin(q=1e999)", "q=inf is not allowed"),
        ("liars_dice(numdice=0)", "numdice is an integer from 1 to 100"),
        ("liars_dice(players=3)", "players is 2"),
    ],
)
def test_option_errors(spec: str, message: str) -> None:
    """A wrong value is told with its option and what is allowed."""
    with pytest.raises(OptionError) as caught:
        load_game(spec)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


@given(st.text(alphabet="kuhn_poker(players=23,)'\" é", max_size=40) | st.text(max_size=40))
def test_anything_else_is_refused_by_our_own_errors(spec: str) -> None:
    """Whatever the text, there is a game or one of the library's errors."""
    try:
        game = load_game(spec)
    except JaxCFRError:
        return
    assert game.num_players >= 1


@pytest.mark.parametrize("spec", [None, 3, b"kuhn_poker", ["kuhn_poker"]])
def test_not_a_string(spec: Any) -> None:
    """Only text and paths name a game."""
    with pytest.raises(GameLookupError, match="a game is named by a string"):
        load_game(spec)


def test_efg_files(tmp_path: Path) -> None:
    """A path that ends in .efg is read as a Gambit file."""
    path = tmp_path / "my game (1).EFG"
    path.write_text(COIN_EFG)
    assert load_game(path).num_players == 2
    assert load_game(str(path)).num_players == 2
    with pytest.raises(JaxCFRError, match=r"missing\.efg"):
        load_game(str(tmp_path / "missing.efg"))
    with pytest.raises(GameLookupError, match=r"ends in \.efg"):
        load_game(tmp_path / "game.txt")


def test_list_games() -> None:
    """Every bundled game is listed with a line, and with options whose defaults are allowed."""
    games = list_games()
    assert [g.name for g in games] == sorted(g.name for g in games)
    assert {g.name for g in games} >= {"kuhn_poker", "leduc_poker", "liars_dice", "goofspiel", "biased_coin"}
    for info in games:
        assert info.description
        assert load_game(info.name).name == info.name
        for option in info.options:
            assert option.help
            assert option.allowed
            assert option.check(info.name, option.default) == option.default
            if option.default is not None:
                assert load_game(f"{info.name}({option.name}={option.default})").name == info.name


class Counter(Game):
    """A game of one player.

    The rest of the docstring.
    """

    num_players = 1

    def __init__(self, rounds: int = 2, scale: float = 1.0, flag: bool = False, mode: str = "a") -> None:
        self.settings = (rounds, scale, flag, mode)


def test_register_a_class() -> None:
    """Options are read from the parameters, the line from the docstring."""
    assert register_game("counter", Counter) is Counter
    info = next(g for g in list_games() if g.name == "counter")
    assert info.description == "A game of one player."
    assert [(o.name, o.type, o.default) for o in info.options] == [
        ("rounds", int, 2),
        ("scale", float, 1.0),
        ("flag", bool, False),
        ("mode", str, "a"),
    ]
    loaded: Any = load_game("counter(rounds=3,scale=1/2,flag=true,mode=b c)")
    assert loaded.settings == (3, Fraction(1, 2), True, "b c")


def test_a_class_that_is_its_own_histories_has_no_option_for_its_moves() -> None:
    """`__init__(self, rounds=2, path=())`: the path is nobody's to choose by name."""
    register_game("paths", lambda players=2, path=(): KuhnPoker(players))
    info = next(info for info in list_games() if info.name == "paths")
    assert [option.name for option in info.options] == ["players"]
    assert load_game("paths(players=3)").num_players == 3
    with pytest.raises(GameLookupError, match="no option"):
        load_game("paths(path=1)")


def test_register_as_a_decorator() -> None:
    """`@register_game(name)` returns what it decorates."""

    @register_game("three_handed", options=[GameOption("shift", int, 0, minimum=0)], description="Kuhn for three")
    def three_handed(shift: int = 0) -> KuhnPoker:
        return KuhnPoker(3 + shift)

    assert three_handed(1).num_players == 4
    assert load_game("three_handed(shift=2)").num_players == 5
    with pytest.raises(OptionError, match="shift is an integer, 0 or more"):
        load_game("three_handed(shift=-1)")


def test_register_errors() -> None:
    """Names and options that cannot be used are refused."""
    with pytest.raises(GameLookupError, match="named kuhn_poker already"):
        register_game("kuhn_poker", KuhnPoker)
    register_game("kuhn_poker", lambda: KuhnPoker(4), replace=True)
    assert load_game("kuhn_poker").num_players == 4
    for name in ("", "a b", "a(b)", "3d", "x.efg", "ü", None):
        with pytest.raises(GameLookupError, match="cannot name a game"):
            register_game(name, KuhnPoker)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="type of option size cannot be told"):
        register_game("sized", lambda size: KuhnPoker(size))
    with pytest.raises(OptionError, match="cannot be called"):
        register_game("thing", 3)  # type: ignore[type-var]
    with pytest.raises(OptionError, match="two options have the same name"):
        register_game("twice", KuhnPoker, [GameOption("a", int, 1), GameOption("a", int, 2)])
    with pytest.raises(OptionError, match="options are GameOption values"):
        register_game("text", KuhnPoker, ["players"])  # type: ignore[list-item]
    register_game("nothing", lambda: None)
    with pytest.raises(GameError, match="returned None"):
        load_game("nothing")


def test_paths_that_are_no_game_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories and other files are told apart from misspelt names; a game goes before a file of its name."""
    monkeypatch.chdir(tmp_path)
    for name in ("folder", "kuhn_poker"):
        (tmp_path / name).mkdir()
    (tmp_path / "text.txt").write_text("EFG 2 R")
    for spec in ("folder", str(tmp_path), tmp_path):
        with pytest.raises(GameLookupError, match="is a directory, not a game"):
            load_game(spec)
    for spec in ("text.txt", tmp_path / "text.txt"):
        with pytest.raises(GameLookupError, match=r"text.txt.*: a game file has a name that ends in \.efg"):
            load_game(spec)
    assert load_game("kuhn_poker").num_players == 2
