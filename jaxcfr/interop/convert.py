"""Game files by the ending of their names."""

from __future__ import annotations

import os
from typing import Any

from jaxcfr.errors import GameFileError, GameLookupError
from jaxcfr.files import path_text
from jaxcfr.games.base import Game
from jaxcfr.interop.gambit import read_efg, write_efg
from jaxcfr.interop.json_game import read_json, write_json
from jaxcfr.interop.nfg import read_nfg, write_nfg


def read_game(path: str | os.PathLike[str]) -> Game:
    """The root of the game in a file: `.efg`, `.nfg` or `.json`.

    Raises:
      GameFileError: the file cannot be read, or breaks its format.
      RecallError: a player forgets.
      GameLookupError: the name ends in something else.
    """
    ending = _ending(path)
    if ending == ".efg":
        return read_efg(path)
    return read_nfg(path) if ending == ".nfg" else read_json(path)


def write_game(game: Any, path: str | os.PathLike[str], *, max_nodes: int = 10_000_000) -> None:
    """Writes a game to a file: `.efg`, `.json`, or `.nfg` for a game in normal form.

    Raises:
      GameFileError: it cannot be written there.
      GameTooLargeError: more than `max_nodes` histories.
      GameError: the game breaks a rule, or cannot be held by such a file.
      GameLookupError: the name ends in something else.
    """
    ending = _ending(path)
    if ending == ".nfg":
        write_nfg(game, path)
    else:
        (write_efg if ending == ".efg" else write_json)(game, path, max_nodes=max_nodes)


def _ending(path: str | os.PathLike[str]) -> str:
    shown = path_text(path, GameFileError)
    ending = os.path.splitext(shown)[1].lower()
    if ending not in (".efg", ".nfg", ".json"):
        raise GameLookupError(f"{shown}: a game file has a name that ends in .efg, .nfg or .json")
    return ending
