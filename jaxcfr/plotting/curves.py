"""Curves of NashConv or exploitability over iterations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from jaxcfr.errors import OptionError
from jaxcfr.plotting.common import (
    COLOURS,
    LARGEST,
    as_text,
    as_title,
    axes_for,
    draw_line,
    is_number,
    is_scalar,
    labelled,
    named,
    one_of,
    short_repr,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Spread = Literal["range", "deviation"]

LEGEND_INSIDE_UP_TO = 8  # curves
MARKERS_UP_TO = 25  # points of a curve that are marked one by one

_WRONG = "a run is a list of (iteration, value) pairs, the history of a Trainer, or a Trainer"


class _Curve(NamedTuple):
    """One run: `[n]` iterations or seconds, `[n]` iterations, `[n]` values, and what the values are, if it is known."""

    x: np.ndarray
    iteration: np.ndarray
    y: np.ndarray
    quantity: str | None


def convergence(
    runs: Any,
    *,
    x: Literal["iteration", "seconds"] = "iteration",
    quantity: str | None = None,
    of: str = "average strategy",
    unit: str = "units of payoff",
    spread: Spread = "range",
    target: float | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Curves of NashConv or exploitability over iterations, logarithmic both ways.

    Args:
      runs: one run, or a mapping from labels to runs. A run is a list of (iteration, value) pairs (an array `[n, 2]`
        will do), the `history` of a `Trainer`, or a `Trainer`. A list of runs in place of one is one setting with
        several seeds: their mean is drawn, at the iterations that all of them have, in a band.
      x: what is drawn to the right; "seconds" are in histories only.
      quantity: "exploitability" or "nash_conv" chooses what is taken from a history: by default exploitability where
        all runs have it. For pairs, the words for the axis.
      of: whose; say "last iterate" where the values are those of `current_strategy`.
      unit: of the values.
      spread: the band reaches from the lowest to the highest run ("range"), or a standard deviation up and down.
      target: a value to mark by a line.
      title: of the picture.
      ax: where to draw; None makes a figure.

    Raises:
      OptionError: there is nothing to draw, a value is negative or not finite, or an argument makes no sense.
      MissingPackageError: matplotlib is not installed.
    """
    one_of("x", x, ("iteration", "seconds"))
    one_of("spread", spread, ("range", "deviation"))
    groups = [(label, _seeds(label, run)) for label, run in labelled(runs)]
    everything = [point for _, seeds in groups for seed in seeds for point in seed]
    records = [point for point in everything if isinstance(point, Mapping)]
    chosen = quantity
    if records and quantity in (None, "exploitability", "nash_conv"):
        defined = all(record.get("exploitability") is not None for record in records)
        if quantity == "exploitability" and not defined:
            raise OptionError(
                "exploitability is not defined in every one of these runs (it needs two players and constant-sum "
                "payoffs): leave quantity out, or say quantity='nash_conv'"
            )
        chosen = quantity or ("exploitability" if defined else "nash_conv")
    elif records:
        raise OptionError(f"quantity has to be 'exploitability' or 'nash_conv' for a history, not {quantity!r}")
    if target is not None and (not is_number(target) or not 0 < target <= LARGEST):
        raise OptionError(f"target has to be a positive number, not {short_repr(target)}")
    bands = [_band(label, [_curve(label, seed, x, chosen) for seed in seeds], spread) for label, seeds in groups]

    ax = axes_for(ax, (7, 4.5), "convergence")
    banded = any(len(seeds) > 1 for _, seeds in groups)
    for number, ((label, seeds), (horizontal, low, middle, high)) in enumerate(zip(groups, bands, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        style = ("-", "--", ":", "-.")[number // len(COLOURS) % 4]
        shown = None if label is None else as_text(label)
        if len(seeds) > 1:
            shown = f"{shown or 'mean'} ({len(seeds)} runs)"
            # A logarithmic axis has no place for what is not positive: there the band goes down to its end.
            floor = float(middle[middle > 0].min(initial=math.inf)) * 1e-9
            ax.fill_between(horizontal, np.maximum(low, floor), high, color=colour, alpha=0.2, linewidth=0)
        marker = "o" if len(middle) <= MARKERS_UP_TO else None
        draw_line(ax, horizontal, middle, color=colour, linestyle=style, marker=marker, markersize=3, label=shown)
    if target is not None:
        ax.axhline(float(target), color="#7F7F7F", linestyle=(0, (1, 1.5)), label=f"target {float(target):g}")
    values = np.concatenate([middle for _, _, middle, _ in bands] + [[float(target or 0)]])
    _scales(ax, x, np.concatenate([horizontal for horizontal, *_ in bands]), values, banded)
    zeros = np.concatenate([horizontal[middle == 0] for horizontal, _, middle, _ in bands])
    if len(zeros) and ax.get_yscale() == "log":
        ax.plot(zeros, [0.02] * len(zeros), "v", transform=ax.get_xaxis_transform(), color="#333333", label="exactly 0")
    names = {"nash_conv": "NashConv", None: "distance from equilibrium"}
    ax.set_xlabel("iteration" if x == "iteration" else "seconds of solving")
    ax.set_ylabel(f"{as_text(names.get(chosen, chosen or ''))} of the {as_text(of)}\n({as_text(unit)})")
    ax.grid(True, which="major", alpha=0.3)
    if title is not None:
        ax.set_title(as_title(title), fontsize="medium")
    if ax.get_legend_handles_labels()[1]:
        spreads = {"range": "lowest to highest", "deviation": "one standard deviation"}
        aside: dict[str, Any] = (
            {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if len(groups) > LEGEND_INSIDE_UP_TO else {}
        )
        heading = f"mean; band: {spreads[spread]}" if banded else None
        ax.legend(title=heading, fontsize="small", title_fontsize="small", **aside)
    return ax


def _seeds(label: str | None, run: Any) -> list[list[Any]]:
    """The runs of one setting, each as a list of points."""
    points = _points(label, run)
    seeds = [_points(label, seed) for seed in points] if points and not _is_point(points[0]) else [points]
    for seed in seeds:
        if not seed:
            hint = ": train(..., eval_every=N) evaluates on the way" if hasattr(run, "history") else ""
            raise OptionError(f"{named(label)} has no point to draw{hint}")
        for point in seed:
            if not _is_point(point):
                raise OptionError(f"{named(label)}: {_WRONG}, and {short_repr(point)} is no point of one")
    return seeds


def _points(label: str | None, run: Any) -> list[Any]:
    if hasattr(run, "history"):
        run = run.history
    if isinstance(run, str | bytes | Mapping) or is_scalar(run):
        raise OptionError(f"{named(label)} is {short_repr(run)}: {_WRONG}")
    return list(run)


def _is_point(point: Any) -> bool:
    if isinstance(point, Mapping):
        return True
    if hasattr(point, "history") or isinstance(point, str) or not hasattr(point, "__len__") or len(point) != 2:
        return False
    return all(is_scalar(part) and not hasattr(part, "history") for part in point)


def _curve(label: str | None, run: list[Any], x: str, quantity: str | None) -> _Curve:
    kinds = {isinstance(point, Mapping) for point in run}
    if len(kinds) > 1:
        raise OptionError(f"{named(label)} mixes pairs with evaluations: {_WRONG}")
    columns: list[tuple[Any, Any, Any]]
    if True in kinds:
        names = ("iteration", x, quantity)
        try:
            columns = [(point["iteration"], point[x], point[quantity]) for point in run]
        except KeyError as error:
            raise OptionError(f"{named(label)} has an evaluation without {error}: {short_repr(run[0])}") from None
    else:
        names = ("iteration", "iteration", "value")
        if x == "seconds":
            raise OptionError(f"{named(label)} has no seconds: they are in the history of a Trainer, not in pairs")
        columns = [(t, t, value) for t, value in run]
    rows = [[_finite(label, name, value) for name, value in zip(names, row, strict=True)] for row in columns]
    iteration, horizontal, y = np.array(rows, np.float64).T
    order = np.argsort(iteration, kind="stable")
    repeated = np.flatnonzero(np.diff(iteration[order]) == 0)
    if len(repeated):
        raise OptionError(f"{named(label)} has the iteration {iteration[order][repeated[0]]:g} twice")
    return _Curve(horizontal[order], iteration[order], y[order], quantity)


def _finite(label: str | None, name: str | None, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= LARGEST:
        raise OptionError(
            f"{named(label)}: {'value' if name is None else name} {short_repr(value)} cannot be drawn on a logarithmic "
            f"axis: it has to be a finite number of at least 0, and at most {LARGEST:g}"
        )
    return number


def _band(
    label: str | None, seeds: list[_Curve], spread: Spread
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Where the seeds all have a value: x, lower end, mean, upper end."""
    common = seeds[0].iteration
    for seed in seeds[1:]:
        common = np.intersect1d(common, seed.iteration)
    if not len(common):
        raise OptionError(f"{named(label)}: there is no iteration at which all {len(seeds)} runs have a value")
    rows = [np.isin(seed.iteration, common) for seed in seeds]
    x = np.mean([seed.x[row] for seed, row in zip(seeds, rows, strict=True)], 0)
    y = np.array([seed.y[row] for seed, row in zip(seeds, rows, strict=True)])
    mean = y.mean(0)
    if spread == "range":
        return x, y.min(0), mean, y.max(0)
    deviation = y.std(0, ddof=1) if len(seeds) > 1 else np.zeros_like(mean)
    return x, mean - deviation, mean, mean + deviation


def _scales(ax: Axes, x: str, horizontal: np.ndarray, values: np.ndarray, banded: bool) -> None:
    """Logarithmic axes, as far as the numbers allow."""
    positive = horizontal[horizontal > 0]
    if len(positive) < 2 or positive.max() < 10 * positive.min():
        ax.set_xscale("linear")  # ticks of a part of a decade are hard to read
    elif len(positive) < len(horizontal):
        ax.set_xscale("symlog", linthresh=1.0 if x == "iteration" else float(positive.min()), linscale=0.5)
        ax.set_xlim(left=0)
    else:
        ax.set_xscale("log")
    above = values[values > 0]
    if not len(above):
        ax.set_ylim(-0.02, 1)
        return
    ax.set_yscale("log", nonpositive="mask")
    if banded:
        # A band that goes down to 0 would take the axis along.
        ax.set_ylim(bottom=max(ax.get_ylim()[0], float(above.min()) / 10))
