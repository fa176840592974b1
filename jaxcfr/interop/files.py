"""Reading and writing the text of game files."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from jaxcfr.errors import GameFileError
from jaxcfr.files import path_text


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file: UTF-8, UTF-16 with a byte-order mark, or Latin-1 where it is not valid UTF-8.

    Raises:
      GameFileError: it cannot be read.
    """
    source = path_text(path, GameFileError)
    try:
        data = Path(source).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise GameFileError(f"{source}: cannot be read: {reason}") from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise GameFileError(f"{source}, line 1: the file starts like UTF-16 text but is not: {error}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a file that is complete or absent: under another name beside its place, and then renamed.

    Raises:
      GameFileError: it cannot be written.
    """
    target = os.path.realpath(path_text(path, GameFileError))
    temporary = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.tmp")
    try:
        try:
            with open(temporary, "xb") as stream:
                stream.write(text.encode("utf-8"))
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise GameFileError(f"{os.fspath(path)}: cannot be written: {reason}") from error
