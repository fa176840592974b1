"""What came out of a sweep over two hyperparameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxcfr.errors import OptionError
from jaxcfr.plotting.common import LARGEST, as_text, as_title, axes_for, is_number, is_scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def sweep(
    values: Any,
    rows: Sequence[Any],
    columns: Sequence[Any],
    *,
    row_label: str = "",
    column_label: str = "",
    label: str,
    log: bool = True,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A heat map of what came out for pairs of hyperparameters; the lowest is framed.

    Args:
      values: `[rows, columns]`, as `vmap` of `vmap` gives it: `jax.vmap(lambda a: jax.vmap(lambda g: f(a, g))(gammas))(
        alphas)`. What is not finite is crossed out.
      rows, columns: what stands beside them: numbers or text.
      row_label, column_label: their names, such as "alpha".
      label: what the values are, whose, and in which unit: "exploitability of the average strategy (chips)".
      log: whether the colours are logarithmic (where all values are positive).
      title: of the picture.
      ax: where to draw; None makes a figure.

    Raises:
      OptionError: the shapes do not go together, or no value is finite.
      MissingPackageError: matplotlib is not installed.
    """
    try:
        table = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise OptionError(f"values has to be an array of numbers [rows, columns]: {error}") from None
    names = [None if is_scalar(side) else [_tick(value) for value in side] for side in (rows, columns)]
    if table.ndim != 2 or None in names or table.shape != tuple(len(side or ()) for side in names):
        sizes = " and ".join("no list" if side is None else str(len(side)) for side in names)
        raise OptionError(
            f"values has to be [rows, columns]; it has the shape {table.shape}, and rows and columns are {sizes}"
        )
    finite = np.isfinite(table)
    if not finite.any():
        raise OptionError("no value of this sweep is finite" if table.size else "this sweep is empty")
    if np.abs(table[finite]).max() > LARGEST:
        raise OptionError(f"this sweep has a value beyond {LARGEST:g}, which no axis has a place for")
    from_low, to_high = float(table[finite].min()), float(table[finite].max())
    ax = axes_for(
        ax, (min(14.0, 2.2 + 0.75 * max(4, table.shape[1])), min(12.0, max(3.6, 2.4 + 0.42 * table.shape[0]))), "sweep"
    )
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.patches import Rectangle

    norm: Any = LogNorm(from_low, to_high) if log and 1 / LARGEST < from_low < to_high else Normalize(from_low, to_high)
    image = ax.imshow(
        np.where(finite, table, np.nan), cmap="viridis", norm=norm, aspect="auto", interpolation="nearest"
    )
    ax.set_facecolor("#dddddd")
    few = table.size <= 150
    if not few:  # texts take long
        down, across = np.nonzero(~finite)
        ax.plot(across, down, "x", color="#a00000", markersize=4)
    for (row, column), value in np.ndenumerate(table) if few else ():
        if not math.isfinite(value):
            ax.text(column, row, "\u00d7", ha="center", va="center", color="#a00000", fontsize=10)
        else:
            bright = float(norm(value)) > 0.6
            ax.text(
                column, row, f"{value:.2g}", ha="center", va="center", fontsize=7, color="black" if bright else "white"
            )
    best = np.unravel_index(np.nanargmin(np.where(finite, table, np.nan)), table.shape)
    frame = Rectangle((best[1] - 0.48, best[0] - 0.48), 0.96, 0.96, fill=False, edgecolor="#D55E00", linewidth=2)
    ax.add_patch(frame)
    for axis, ticks, name in ((ax.yaxis, names[0], row_label), (ax.xaxis, names[1], column_label)):
        assert ticks is not None
        every = max(1, math.ceil(len(ticks) / 30))
        axis.set_ticks(range(0, len(ticks), every), ticks[::every])
        axis.set_label_text(as_text(name))
    if sum(map(len, names[1] or ())) > 8 * table.shape[1]:
        for tick in ax.get_xticklabels():
            tick.set(rotation=60, ha="right", rotation_mode="anchor")
    crossed = "" if finite.all() else "; \u00d7 not finite"
    heading = "" if title is None else as_title(title)
    ax.set_title((heading + "\n" if heading else "") + f"framed: lowest, {table[best]:.3g}{crossed}", fontsize="medium")
    ax.figure.colorbar(
        image, ax=ax, label=as_text(label, 80).replace(" (", "\n("), fraction=0.08
    ).ax.yaxis.label.set_fontsize("small")
    return ax


def _tick(value: Any) -> str:
    if is_scalar(value) and hasattr(value, "item"):
        value = value.item()
    return f"{value:.4g}" if is_number(value) and abs(value) <= LARGEST else as_text(value, 18)
