"""What all pictures share: axes, files, colours, names and numbers as text."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxcfr.arguments import real
from jaxcfr.errors import OptionError, missing_package
from jaxcfr.files import path_text, require_writable, write_atomically
from jaxcfr.progress import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".png", ".svg", ".pdf")
"""Endings of the files that `save` writes."""

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D31", "#7F7F7F", "#B8A900", "#332288")
"""Of players and actions; colours that colour-blind readers can tell apart (after Okabe and Ito) come first."""

LONGEST = 36  # characters of a key or label
PIECE = 10_000  # points of a line that are drawn at once
LARGEST = 1e150
"""Of the numbers in a picture: the squares of larger ones, and the margins of their axes, are no floating numbers."""


def save(picture: Any, path: str | os.PathLike[str], *, dpi: float = 150) -> None:
    """Writes a picture to a file, `.png`, `.svg` or `.pdf` by its name; what was there before is replaced at the end.

    Args:
      picture: what a function here returned, or a matplotlib figure.
      path: of the file.
      dpi: dots an inch, of a `.png`; 10 to 1200.

    Raises:
      OptionError: the name ends in something else, `picture` is none, `dpi` is out of bounds, or the file cannot be
        written.
      MissingPackageError: matplotlib is not installed.
    """
    ending, dpi = check_path(path), real("dpi", dpi, 10, 1200)
    import matplotlib

    figure = getattr(picture, "figure", None)
    if figure is None or not hasattr(figure, "savefig"):
        raise OptionError(
            f"save takes what a function of jaxcfr.plotting returned, or a figure, not {short_repr(picture)}"
        )
    buffer = io.BytesIO()
    dates = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    # The same picture gives the same bytes.
    with matplotlib.rc_context({"svg.hashsalt": "jaxcfr"}):
        figure.savefig(buffer, format=ending[1:], dpi=dpi, metadata=dates[ending])
    write_atomically(path, buffer.getvalue(), OptionError)


def check_path(path: str | os.PathLike[str]) -> str:
    """The ending of a picture's file; raises as `save` does where no picture could be written there."""
    shown = path_text(path, OptionError)
    ending = os.path.splitext(shown)[1].lower()
    if ending not in FORMATS:
        raise OptionError(f"{shown or repr('')}: a picture's name ends in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    require_matplotlib("a picture")
    require_writable(path, OptionError)
    return ending


def require_matplotlib(what: str) -> None:
    """Raises `MissingPackageError` where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise missing_package(what, "matplotlib", "plot") from error


def axes_for(ax: Any, size: tuple[float, float], what: str) -> Axes:
    """The axes to draw into: those given, or those of a new figure of this size in inches."""
    require_matplotlib(f"plotting.{what}")
    from matplotlib.axes import Axes

    if ax is None:
        from matplotlib import pyplot

        return pyplot.subplots(figsize=size, layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise OptionError(f"ax has to be the Axes of a matplotlib figure, not {short_repr(ax)}")
    return ax


# What users have in hand


def labelled(runs: Any) -> list[tuple[str | None, Any]]:
    """Runs with their labels; a single one has none."""
    if isinstance(runs, Mapping):
        if not runs:
            raise OptionError("there is no run to draw: the mapping is empty")
        return [(str(label), run) for label, run in runs.items()]
    return [(None, runs)]


def named(label: str | None) -> str:
    """A run in messages."""
    return "the run" if label is None else f"the run {label!r}"


def is_scalar(value: Any) -> bool:
    """Whether a value is one thing and no sequence; ragged lists, which numpy refuses, are told too."""
    return getattr(value, "ndim", None) == 0 or not hasattr(value, "__iter__")


def one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raises `OptionError` unless an argument is one of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise OptionError(f"{name} has to be {' or '.join(map(repr, allowed))}, not {short_repr(value)}")


def draw_line(ax: Axes, x: Any, y: Any, *, label: str | None, **style: Any) -> None:
    """A line, in pieces that matplotlib can draw however far it moves to and fro."""
    for begin in range(0, max(len(x) - 1, 1), PIECE):
        part = slice(begin, begin + PIECE + 1)
        ax.plot(x[part], y[part], label=None if begin else label, **style)


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python or numpy."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


# Text


def as_text(value: Any, longest: int = LONGEST) -> str:
    """Text for matplotlib: printable, shortened in the middle, and no formula."""
    text = printable(str(value))
    if len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[: longest - 1 - half]}\u2026{text[-half:]}"
    # Labels that begin with an underscore are left out of legends.
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def as_title(title: Any) -> str:
    """The same for a title, line by line."""
    return "\n".join(as_text(line, 80) for line in str(title).split("\n"))


def short_number(probability: float) -> str:
    """A probability in four characters; what is not exactly 0 or 1 does not look so."""
    if probability in (0.0, 1.0):
        return f"{probability:.0f}"
    if probability < 0.005:
        return "<.01"
    return ">.99" if probability > 0.995 else f"{probability:.2f}"[-3:]


def readable_on(colour: str) -> str:
    """Black or white, whichever can be read on a colour."""
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else "white"


def short_repr(value: Any) -> str:
    """What messages show of a value."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
