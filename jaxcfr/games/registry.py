"""The names of games: `load_game("kuhn_poker(players=3)")`, and what there is to load.

A specification is a name with options in brackets, `name(option=value,...)`, or
the path of a game file, or `openspiel:` and one of OpenSpiel's own names with its
parameters. Every game here is a factory with its options
stated as `GameOption`s; `register_game` adds more.
"""

from __future__ import annotations

import difflib
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from jaxcfr.errors import GameError, GameLookupError, OptionError
from jaxcfr.games import (
    battleship,
    biased_coin,
    dice_poker,
    first_price_auction,
    goofspiel,
    kuhn_poker,
    leduc_poker,
    liars_dice,
    matching_pennies,
    normal_form_game,
    oshi_zumo,
    rhode_island,
    rock_paper_scissors,
)
from jaxcfr.games.base import Game
from jaxcfr.games.options import GameOption

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_SYNTAX = "write name or name(option=value,option=value)"
_FILES = (".efg", ".nfg", ".json")
_FILE_ENDINGS = ".efg or .nfg (Gambit's) or .json (jaxcfr's)"
_OPENSPIEL = "openspiel:"

_Factory = TypeVar("_Factory", bound=Callable[..., Any])


@dataclass(frozen=True)
class GameInfo:
    """One game that `load_game` knows.

    Attributes:
        name: what `load_game` calls it.
        description: one line.
        options: its options, in the order they are listed.
        factory: makes the root from the options as keyword arguments.
    """

    name: str
    description: str
    options: tuple[GameOption, ...]
    factory: Callable[..., Any]


_GAMES: dict[str, GameInfo] = {}


def list_games() -> tuple[GameInfo, ...]:
    """Every game that `load_game` knows by name, in alphabetical order."""
    return tuple(_GAMES[name] for name in sorted(_GAMES))


@overload
def register_game(
    name: str,
    factory: None = None,
    options: Sequence[GameOption] | None = None,
    description: str | None = None,
    *,
    replace: bool = False,
) -> Callable[[_Factory], _Factory]: ...


@overload
def register_game(
    name: str,
    factory: _Factory,
    options: Sequence[GameOption] | None = None,
    description: str | None = None,
    *,
    replace: bool = False,
) -> _Factory: ...


def register_game(
    name: str,
    factory: Callable[..., Any] | None = None,
    options: Sequence[GameOption] | None = None,
    description: str | None = None,
    *,
    replace: bool = False,
) -> Any:
    """Let `load_game` and `list_games` know a game; also usable as a decorator.

        @register_game("my_game")
        class MyGame(Game):
            \"\"\"One line for the list.\"\"\"

            def __init__(self, rounds: int = 2) -> None: ...

    Args:
        name: letters, digits and underscores, beginning with a letter.
        factory: makes the root; called with the options as keyword arguments. Left out: a decorator is returned.
        options: the options; left out, they are read from the factory's parameters, whose defaults must be int,
            float, bool or str. A parameter whose default is a tuple is no option: histories carry such things along.
        description: one line; by default the first line of the factory's docstring.
        replace: whether a game of this name may be replaced.

    Returns:
        The factory, unchanged.

    Raises:
        GameLookupError: the name is malformed or taken.
        OptionError: the options cannot be read from the factory, or two have the same name.
    """
    if factory is None:
        return lambda decorated: register_game(name, decorated, options, description, replace=replace)
    if not isinstance(name, str) or not _NAME.match(name):
        raise GameLookupError(
            f"{name!r} cannot name a game: a name is letters, digits and underscores, beginning with a letter"
        )
    if name in _GAMES and not replace:
        raise GameLookupError(f"there is a game named {name} already; pass replace=True to replace it")
    if not callable(factory):
        raise OptionError(f"{name}: the factory {factory!r} cannot be called")
    stated = _options_of(name, factory) if options is None else tuple(options)
    for option in stated:
        if not isinstance(option, GameOption):
            raise OptionError(f"{name}: options are GameOption values, not {option!r}")
    names = [option.name for option in stated]
    if len(set(names)) < len(names):
        raise OptionError(f"{name}: two options have the same name: {', '.join(names)}")
    if description is None:
        description = (inspect.getdoc(factory) or "").strip().split("\n")[0]
    _GAMES[name] = GameInfo(name, description, stated, factory)
    return factory


def _options_of(name: str, factory: Callable[..., Any]) -> tuple[GameOption, ...]:
    """The options of a factory whose parameters all have plain defaults."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError) as error:
        raise OptionError(f"{name}: the parameters of {factory!r} cannot be read; pass options=[...]") from error
    options = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or parameter.name.startswith("_"):
            continue
        kind = type(parameter.default)
        if kind is tuple:
            continue  # the moves so far, of a class that is its own histories
        if kind not in (int, float, bool, str):
            raise OptionError(
                f"{name}: the type of option {parameter.name} cannot be told from its default; pass options=[...] or "
                f"give it a default that is int, float, bool or str"
            )
        options.append(GameOption(parameter.name, kind, parameter.default))
    return tuple(options)


def load_game(spec: str | os.PathLike[str], **options: Any) -> Game:
    """The root of the game that `spec` names.

    Args:
        spec: `name` or `name(option=value,...)` as in `list_games`, for example
            `"goofspiel(num_cards=4,imp_info=True)"`, or the path of a game file (Gambit's `.efg` and `.nfg`,
            and `.json` as in `jaxcfr.interop.json_game`), or a game of OpenSpiel,
            `"openspiel:leduc_poker(players=3)"`. Options that are left out have their defaults.
        **options: the same options, by keyword: `load_game("kuhn_poker", players=3)`.

    Raises:
        GameLookupError: no game has this name, the game has no such option, or `spec` is malformed; the message
            lists what is near.
        OptionError: an option has a value that is not allowed; the message names the allowed ones.
        GameFileError: the game file cannot be read.
        MissingPackageError: a game of OpenSpiel is asked for, and that is not installed.
        GameError: a game of OpenSpiel cannot be used; see `jaxcfr.interop.from_openspiel`.
    """
    if options:
        listed = ",".join(f"{name}={value}" for name, value in options.items())
        spec = f"{spec}({listed})"
    if isinstance(spec, os.PathLike):
        path = os.fspath(spec)
        if os.path.isdir(path):
            raise _is_directory(path)
        if not path.lower().endswith(_FILES):
            raise GameLookupError(f"{path}: a game file has a name that ends in {_FILE_ENDINGS}")
        return _read_file(path)
    if not isinstance(spec, str):
        raise GameLookupError(f"a game is named by a string such as 'kuhn_poker(players=3)', not by {spec!r}")
    if spec.strip().startswith(_OPENSPIEL):
        from jaxcfr.interop.openspiel import load_openspiel  # as below

        return load_openspiel(spec.strip().removeprefix(_OPENSPIEL))
    if spec.strip().lower().endswith(_FILES):
        return _read_file(spec if os.path.exists(spec) else spec.strip())
    if spec not in _GAMES and os.path.exists(spec):
        if os.path.isdir(spec):
            raise _is_directory(spec)
        raise GameLookupError(f"{_shown(spec)}: a game file has a name that ends in {_FILE_ENDINGS}")
    name, texts = _split(spec)
    info = _GAMES.get(name)
    if info is None:
        raise GameLookupError(f"no game is named {_shown(name)}{_near(name, _GAMES, 'games')}")
    options = {option.name: option for option in info.options}
    values = {}
    for option_name, text in texts.items():
        option = options.get(option_name)
        if option is None:
            raise GameLookupError(
                f"{name} has no option {_shown(option_name)}{_near(option_name, options, f'options of {name}')}"
            )
        values[option_name] = option.parse(name, text)
    game: Game | None = info.factory(**values)
    if game is None:
        raise GameError(f"{name}: the registered factory returned None instead of a game")
    return game


def _is_directory(path: str) -> GameLookupError:
    return GameLookupError(
        f"{_shown(path)} is a directory, not a game; a game file has a name that ends in {_FILE_ENDINGS}"
    )


def _read_file(path: str) -> Game:
    """The root of the game in a file."""
    from jaxcfr.interop.convert import read_game  # only here, so that bundled games do not load interop

    return read_game(path)


def _shown(text: str, limit: int = 60) -> str:
    """`text` in quotes, cut where it is long."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")


def _near(name: str, known: Mapping[str, Any], kind: str) -> str:
    """What follows 'no such name': those that are near, or where none is, all."""
    if not known:
        return f"; there are no {kind}"
    lower = name.lower()
    near = difflib.get_close_matches(lower[:200], known, n=3, cutoff=0.6)
    if len(lower) >= 3:
        near += [other for other in sorted(known) if other not in near and (lower in other or other in lower)]
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; the {kind} are {', '.join(sorted(known))}"


def _split(spec: str) -> tuple[str, dict[str, str]]:
    """The name and the texts of the options of a specification."""

    def malformed(reason: str) -> GameLookupError:
        return GameLookupError(f"{_shown(spec)} is not a game: {reason}; {_SYNTAX}")

    name, bracket, rest = spec.strip().partition("(")
    name = name.strip()
    if not name:
        raise malformed("it has no name")
    if not bracket:
        if ")" in name:
            raise malformed("it closes a bracket that it does not open")
        if "=" in name or "," in name:
            raise malformed("options go in brackets after the name")
        return name, {}
    parts, closed = [""], False
    quote = ""
    for character in rest:
        if closed:
            if character.isspace():
                continue
            raise malformed(f"something follows the closing bracket: {_shown(character)}")
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "(":
            raise malformed("brackets inside brackets are not allowed")
        elif character == ")":
            closed = True
            continue
        elif character == ",":
            parts.append("")
            continue
        parts[-1] += character
    if quote:
        raise malformed("a quote is not closed")
    if not closed:
        raise malformed("the closing bracket is missing")
    if not parts[-1].strip():
        parts.pop()  # "name()" and a trailing comma
    texts: dict[str, str] = {}
    for part in parts:
        option, equals, value = (piece.strip() for piece in part.partition("="))
        if not part.strip():
            raise malformed("there is nothing between two commas")
        if not equals:
            raise malformed(f"{_shown(option)} has no value")
        if not option:
            raise malformed(f"the value {_shown(value)} has no option")
        if not value:
            raise malformed(f"option {_shown(option)} has no value")
        if option in texts:
            raise malformed(f"option {_shown(option)} is given twice")
        texts[option] = value
    return name, texts


register_game(
    "rock_paper_scissors", rock_paper_scissors.RockPaperScissors, (), "rock, paper, scissors with a hidden first move"
)
register_game("matching_pennies", matching_pennies.MatchingPennies, (), "two coins: one player wants them to match")
register_game("biased_coin", biased_coin.BiasedCoin, biased_coin.OPTIONS, "one bet on a coin that one player sees")
register_game("kuhn_poker", kuhn_poker.KuhnPoker, kuhn_poker.OPTIONS, "Kuhn poker: one card each, one bet")
register_game("leduc_poker", leduc_poker.LeducPoker, leduc_poker.OPTIONS, "Leduc poker: one card each, two rounds")
register_game("liars_dice", liars_dice.LiarsDice, liars_dice.OPTIONS, "liar's dice, one round, highest face wild")
register_game("goofspiel", goofspiel.Goofspiel, goofspiel.OPTIONS, "goofspiel: sealed bids for prize cards")
register_game("battleship", battleship.Battleship, battleship.OPTIONS, "battleship: hidden ships, then shots in turn")
register_game(
    "dice_poker", dice_poker.DicePoker, dice_poker.OPTIONS, "dice poker: two hidden rolls, two rounds of bets"
)
register_game(
    "first_price_auction",
    first_price_auction.FirstPriceAuction,
    first_price_auction.OPTIONS,
    "sealed bids, the highest wins and is paid",
)
register_game(
    "matrix_game",
    normal_form_game.matrix_game,
    normal_form_game.OPTIONS,
    "a constant-sum game of two players from a table",
)
register_game("oshi_zumo", oshi_zumo.OshiZumo, oshi_zumo.OPTIONS, "oshi-zumo: bids push a wrestler out of the ring")
register_game(
    "rhode_island", rhode_island.RhodeIsland, rhode_island.OPTIONS, "Rhode Island hold'em: one card each, two open"
)
