"""Writing files so that what was there before stays if anything goes wrong."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Iterable
from typing import Any, NoReturn

from jaxcfr.errors import JaxCFRError, ProfileFileError

ABANDONED_SECONDS = 3600
"""Temporary files that have not changed for so long belong to nobody any more."""

_BINARY = getattr(os, "O_BINARY", 0)


def path_text(path: Any, error: type[JaxCFRError]) -> str:
    """A path as text.

    Raises:
      The given error: it is none.
    """
    try:
        return os.fsdecode(path)
    except TypeError:
        raise error(f"{path!r} is not the path of a file") from None


def require_writable(path: str | os.PathLike[str], error: type[JaxCFRError] = ProfileFileError) -> str:
    """The real path of `path`, after checking that a file can be written there.

    Links are followed, so that it is the file they point to that gets replaced. A file is made beside `path` and
    removed again; `path` itself is left alone.

    Raises:
      The given error: it cannot be written there; says why.
    """
    shown = path_text(path, error)

    def refuse(why: str) -> NoReturn:
        raise error(f"{shown}: cannot be written: {why}")

    if not shown or "\0" in shown:
        raise error(f"{shown!r} is not the path of a file")
    target = os.path.realpath(shown)
    directory = os.path.dirname(target)
    if not os.path.isdir(directory):
        refuse(f"there is no directory {directory}")
    if not os.path.basename(shown):
        refuse("it is a directory")
    try:
        mode = os.stat(target).st_mode
        if stat.S_ISDIR(mode):
            refuse("it is a directory")
        if not stat.S_ISREG(mode):
            refuse("it is not a regular file")  # renaming onto a device would replace the device
        if not os.access(target, os.W_OK):
            refuse("the file is read-only")
    except FileNotFoundError:
        pass
    except OSError as failure:
        refuse(reason(failure))
    probe = _temporary_beside(target)
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        os.unlink(probe)
    except OSError as failure:
        refuse(reason(failure))
    return target


def write_atomically(
    path: str | os.PathLike[str],
    data: bytes | Iterable[bytes],
    error: type[JaxCFRError],
    *,
    previous: str | None = None,
) -> None:
    """Writes a file that is complete before it gets its name: it is written beside `path`, synced and renamed.

    At every moment the file of this name is whole.

    Args:
      path: of the file.
      data: its bytes, in one piece or several.
      error: what is raised if it cannot be written.
      previous: what the file that was there before is called from then on, beside the new one; None keeps it not.

    Raises:
      The given error: it cannot be written there; says why.
    """
    target = require_writable(path, error)
    temporary = _temporary_beside(target)
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666), "wb") as file:
            for piece in (data,) if isinstance(data, bytes) else data:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(OSError):  # the permissions of the file it replaces, where there is one
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        if previous is not None and os.path.exists(target):
            second = _temporary_beside(target)
            os.link(target, second)
            os.replace(second, os.path.join(os.path.dirname(target), previous))
        os.replace(temporary, target)
        _remove_abandoned(target)
    except BaseException as failure:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(failure, OSError):
            raise error(f"{os.fspath(path)}: cannot be written: {reason(failure)}") from failure
        raise
    # The name itself is durable once the directory is; not every system can sync one.
    with contextlib.suppress(OSError, AttributeError):
        directory = os.open(os.path.dirname(target), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _temporary_beside(target: str) -> str:
    return os.path.join(os.path.dirname(target), f"{_prefix(target)}{secrets.token_hex(8)}.tmp")


def _prefix(target: str) -> str:
    return f".jaxcfr-{os.path.basename(target)[:100]}-"


def _remove_abandoned(target: str) -> None:
    """What killed processes have left of files with this name."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(os.path.dirname(target)):
            if entry.name.startswith(_prefix(target)) and time.time() - entry.stat().st_mtime > ABANDONED_SECONDS:
                os.unlink(entry.path)


def reason(error: Exception) -> str:
    """What the system says went wrong."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)
