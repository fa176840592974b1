"""Pictures: convergence, strategies, small game trees, sweeps, trajectories. They need matplotlib.

Every function takes what users have in hand, draws into `ax` or into a new
figure, and returns the matplotlib `Axes`; `save` writes it to a file. Labels
say whose strategy a number belongs to: in CFR it is the *average* strategy
that approaches an equilibrium, the last iterate need not.
"""

from __future__ import annotations

import io
import itertools
import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np

from jaxcfr.errors import GameTooLargeError, MissingPackageError, OptionError
from jaxcfr.files import require_writable, write_atomically
from jaxcfr.games.base import game_name, require_enumerable_chance
from jaxcfr.profile import InfosetStrategy, Profile, as_profile, distinct_labels, key_text
from jaxcfr.progress import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jaxcfr.tree.lower import LoweredGame

__all__ = ["convergence", "game_tree", "save", "strategy", "sweep", "trajectories"]

Spread = Literal["range", "deviation"]
Kind = Literal["bars", "heatmap"]

UNITS = "units of payoff"

FORMATS = (".png", ".svg", ".pdf")
"""Endings of the files that `save` writes."""

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D31", "#7F7F7F", "#B8A900", "#332288")
"""Of players and actions; colours that colour-blind readers can tell apart (after Okabe and Ito) come first."""

MAX_BAR_ACTIONS = len(COLOURS)
"""Bars tell so many action labels apart; with more of them a heat map is drawn."""

MAX_HISTORIES = 200
"""A game tree with more histories than this is not readable in one picture."""

LONGEST = 36  # characters of a key or label
LEGEND_INSIDE_UP_TO = 8  # curves
MARKERS_UP_TO = 25  # points of a curve that are marked one by one
LINKS_UP_TO = 8  # information sets whose histories are joined by lines

_WRONG = "a run is a list of (iteration, value) pairs, the history of a Trainer, or a Trainer"


# Convergence


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
    unit: str = UNITS,
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
    for name, value, allowed in (("x", x, ("iteration", "seconds")), ("spread", spread, ("range", "deviation"))):
        if value not in allowed:
            raise OptionError(f"{name} has to be {' or '.join(map(repr, allowed))}, not {value!r}")
    groups = [(label, _seeds(label, run)) for label, run in _labelled(runs)]
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
    if target is not None and (not _is_number(target) or not target > 0):
        raise OptionError(f"target has to be a positive number, not {target!r}")
    bands = [_band(label, [_curve(label, seed, x, chosen) for seed in seeds], spread) for label, seeds in groups]

    ax = _axes(ax, (7, 4.5), "convergence")
    banded = any(len(seeds) > 1 for _, seeds in groups)
    for number, ((label, seeds), (horizontal, low, middle, high)) in enumerate(zip(groups, bands, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        style = ("-", "--", ":", "-.")[number // len(COLOURS) % 4]
        shown = None if label is None else _text(label)
        if len(seeds) > 1:
            shown = f"{shown or 'mean'} ({len(seeds)} runs)"
            # A logarithmic axis has no place for what is not positive: there the band goes down to its end.
            floor = float(middle[middle > 0].min(initial=math.inf)) * 1e-9
            ax.fill_between(horizontal, np.maximum(low, floor), high, color=colour, alpha=0.2, linewidth=0)
        marker = "o" if len(middle) <= MARKERS_UP_TO else None
        ax.plot(horizontal, middle, color=colour, linestyle=style, marker=marker, markersize=3, label=shown)
    if target is not None:
        ax.axhline(float(target), color="#7F7F7F", linestyle=(0, (1, 1.5)), label=f"target {float(target):g}")
    values = np.concatenate([middle for _, _, middle, _ in bands] + [[float(target or 0)]])
    _scales(ax, x, np.concatenate([horizontal for horizontal, *_ in bands]), values, banded)
    zeros = np.concatenate([horizontal[middle == 0] for horizontal, _, middle, _ in bands])
    if len(zeros) and ax.get_yscale() == "log":
        ax.plot(zeros, [0.02] * len(zeros), "v", transform=ax.get_xaxis_transform(), color="#333333", label="exactly 0")
    names = {"nash_conv": "NashConv", None: "distance from equilibrium"}
    ax.set_xlabel("iteration" if x == "iteration" else "seconds of solving")
    ax.set_ylabel(f"{_text(names.get(chosen, chosen or ''))} of the {_text(of)}\n({_text(unit)})")
    ax.grid(True, which="major", alpha=0.3)
    if title is not None:
        ax.set_title("\n".join(_text(line, 80) for line in title.split("\n")), fontsize="medium")
    if ax.get_legend_handles_labels()[1]:
        spreads = {"range": "lowest to highest", "deviation": "one standard deviation"}
        aside: dict[str, Any] = (
            {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if len(groups) > LEGEND_INSIDE_UP_TO else {}
        )
        heading = f"mean; band: {spreads[spread]}" if banded else None
        ax.legend(title=heading, fontsize="small", title_fontsize="small", **aside)
    return ax


def _labelled(runs: Any) -> list[tuple[str | None, Any]]:
    if isinstance(runs, Mapping):
        if not runs:
            raise OptionError("there is no run to draw: the mapping is empty")
        return [(str(label), run) for label, run in runs.items()]
    return [(None, runs)]


def _named(label: str | None) -> str:
    return "the run" if label is None else f"the run {label!r}"


def _seeds(label: str | None, run: Any) -> list[list[Any]]:
    """The runs of one setting, each as a list of points."""
    points = _points(label, run)
    seeds = [_points(label, seed) for seed in points] if points and not _is_point(points[0]) else [points]
    for seed in seeds:
        if not seed:
            hint = ": train(..., eval_every=N) evaluates on the way" if hasattr(run, "history") else ""
            raise OptionError(f"{_named(label)} has no point to draw{hint}")
        for point in seed:
            if not _is_point(point):
                raise OptionError(f"{_named(label)}: {_WRONG}, and {_short(point)} is no point of one")
    return seeds


def _points(label: str | None, run: Any) -> list[Any]:
    if hasattr(run, "history"):
        run = run.history
    if isinstance(run, str | bytes | Mapping) or _is_scalar(run):
        raise OptionError(f"{_named(label)} is {_short(run)}: {_WRONG}")
    return list(run)


def _is_point(point: Any) -> bool:
    if isinstance(point, Mapping):
        return True
    if hasattr(point, "history") or isinstance(point, str) or not hasattr(point, "__len__") or len(point) != 2:
        return False
    return all(_is_scalar(part) and not hasattr(part, "history") for part in point)


def _curve(label: str | None, run: list[Any], x: str, quantity: str | None) -> _Curve:
    kinds = {isinstance(point, Mapping) for point in run}
    if len(kinds) > 1:
        raise OptionError(f"{_named(label)} mixes pairs with evaluations: {_WRONG}")
    columns: list[tuple[Any, Any, Any]]
    if True in kinds:
        names = ("iteration", x, quantity)
        try:
            columns = [(point["iteration"], point[x], point[quantity]) for point in run]
        except KeyError as error:
            raise OptionError(f"{_named(label)} has an evaluation without {error}: {_short(run[0])}") from None
    else:
        names = ("iteration", "iteration", "value")
        if x == "seconds":
            raise OptionError(f"{_named(label)} has no seconds: they are in the history of a Trainer, not in pairs")
        columns = [(t, t, value) for t, value in run]
    rows = [[_finite(label, name, value) for name, value in zip(names, row, strict=True)] for row in columns]
    iteration, horizontal, y = np.array(rows, np.float64).T
    order = np.argsort(iteration, kind="stable")
    repeated = np.flatnonzero(np.diff(iteration[order]) == 0)
    if len(repeated):
        raise OptionError(f"{_named(label)} has the iteration {iteration[order][repeated[0]]:g} twice")
    return _Curve(horizontal[order], iteration[order], y[order], quantity)


def _finite(label: str | None, name: str | None, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise OptionError(
            f"{_named(label)}: {'value' if name is None else name} {_short(value)} cannot be drawn on a logarithmic "
            "axis: it has to be a finite number of at least 0"
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
        raise OptionError(f"{_named(label)}: there is no iteration at which all {len(seeds)} runs have a value")
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


# Strategies


def strategy(
    source: Any,
    values: Any = None,
    *,
    player: int | None = None,
    pattern: str | None = None,
    kind: Kind | None = None,
    max_infosets: int | None = 40,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The probabilities of actions by information set: stacked bars, or a heat map where there are many actions.

    Args:
      source: a `Profile`, a `Trainer` or anything else with a `profile()`, or what `jaxcfr.lower` returned together
        with `values`.
      values: a strategy for the tree of `source`, one array `[L_p]` per player. Which one is for you to say in the
        title: `average_strategy` approaches an equilibrium, `current_strategy` is the last iterate.
      player: only this player's information sets.
      pattern: only information sets whose key is like this; see `Profile.infosets`.
      kind: "bars" or "heatmap"; None takes bars for up to 10 different actions.
      max_infosets: draw at most this many, and say how many there are; None draws all.
      title: of the picture; None names the game and how the profile came about.
      ax: where to draw; None makes a figure that is as high as it has to be.

    Raises:
      OptionError: `source` is nothing of these, no information set is like the pattern, or an argument makes no sense.
      StrategyError, ProfileError: `values` is no strategy of this game, or there is no such player.
      MissingPackageError: matplotlib is not installed.
    """
    profile = as_profile(source, values, "plotting.strategy")
    if kind not in (None, "bars", "heatmap"):
        raise OptionError(f"kind has to be 'bars' or 'heatmap', not {kind!r}")
    if max_infosets is not None and (type(max_infosets) is not int or max_infosets < 1):
        raise OptionError(f"max_infosets has to be a positive integer or None, not {max_infosets!r}")
    infosets = list(profile.infosets(player=player, pattern=pattern))
    if not infosets and pattern is not None:
        raise OptionError(f"no information set of {profile.game_name} is like {pattern!r}")
    shown = _first_of_each(infosets, max_infosets)
    labels = list(dict.fromkeys(label for infoset in shown for label in infoset.labels))
    kind = kind or ("bars" if len(labels) <= MAX_BAR_ACTIONS else "heatmap")
    if kind == "bars" and len(labels) > MAX_BAR_ACTIONS:
        raise OptionError(
            f"bars tell {MAX_BAR_ACTIONS} actions apart, and there are {len(labels)}: say kind='heatmap', or choose "
            "information sets by player and pattern"
        )
    rows = _with_headings(shown)
    width = 7.0 if kind == "bars" else min(14.0, max(6.0, 3.5 + 0.55 * len(labels)))
    ax = _axes(ax, (width, min(60.0, 1.3 + 0.24 * max(3, len(rows)))), "strategy")
    if title is None:
        made = [profile.variant] if profile.variant else []
        made += [] if profile.iterations is None else [f"{profile.iterations:,} iterations"]
        title = profile.game_name + (f"\n{', '.join(made)}" if made else "")
    if len(shown) < len(infosets):
        title += f"\n{len(shown):,} of {len(infosets):,} information sets, the first of each player"
    ax.set_title("\n".join(_text(line, 80) for line in title.split("\n")), fontsize="medium")
    if not shown:
        ax.set_axis_off()
        ax.text(0.5, 0.5, "no player decides anything in this game", ha="center", transform=ax.transAxes)
        return ax
    draw = _bars if kind == "bars" else _heat_map
    draw(ax, rows, labels)
    size = "small" if len(rows) <= 60 else "xx-small"
    ax.set_yticks(range(len(rows)), [_row_label(row) for row in rows], fontsize=size)
    for row, tick in zip(rows, ax.get_yticklabels(), strict=True):
        if isinstance(row, int):
            tick.set_fontweight("bold")
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    return ax


def _first_of_each(infosets: list[InfosetStrategy], most: int | None) -> list[InfosetStrategy]:
    """At most so many information sets, as evenly divided over the players as they have them."""
    if most is None or len(infosets) <= most:
        return infosets
    players = [list(those) for _, those in itertools.groupby(infosets, lambda infoset: infoset.player)]
    shares = dict.fromkeys(range(len(players)), 0)
    left = most
    while left:
        for number, those in enumerate(players):
            if left and shares[number] < len(those):
                shares[number] += 1
                left -= 1
    return [infoset for number, those in enumerate(players) for infoset in those[: shares[number]]]


_Row = InfosetStrategy | int


def _with_headings(infosets: Sequence[InfosetStrategy]) -> list[_Row]:
    """The information sets, with the number of a player before the first of each."""
    rows: list[_Row] = []
    for number, infoset in enumerate(infosets):
        if not number or infosets[number - 1].player != infoset.player:
            rows.append(infoset.player)
        rows.append(infoset)
    return rows


def _row_label(row: _Row) -> str:
    return f"player {row}" if isinstance(row, int) else _text(key_text(row.key))


def _bars(ax: Axes, rows: Sequence[_Row], labels: Sequence[str]) -> None:
    colours = dict(zip(labels, COLOURS, strict=False))
    drawn = set()
    for position, row in enumerate(rows):
        if isinstance(row, int):
            continue
        left = 0.0
        for label, probability in zip(row.labels, row.probabilities.tolist(), strict=True):
            name = None if label in drawn else _text(label)
            drawn.add(label)
            ax.barh(position, probability, left=left, height=0.78, color=colours[label], label=name, linewidth=0)
            if probability >= 0.08:
                middle = left + probability / 2
                ax.text(
                    middle,
                    position,
                    _short_number(probability),
                    ha="center",
                    va="center",
                    fontsize=6.5,
                    color=_on(colours[label]),
                )
            left += probability
    ax.set_xlim(0, 1)
    ax.set_xlabel("probability")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small", frameon=False, title="action")


def _heat_map(ax: Axes, rows: Sequence[_Row], labels: Sequence[str]) -> None:
    column = {label: number for number, label in enumerate(labels)}
    table = np.full((len(rows), len(labels)), np.nan)
    for position, row in enumerate(rows):
        if not isinstance(row, int):
            table[position, [column[label] for label in row.labels]] = row.probabilities
    ax.set_facecolor("#f2f2f2")
    image = ax.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    if len(labels) <= 25 and len(rows) <= 120:
        for (position, number), probability in np.ndenumerate(table):
            if not math.isnan(probability):
                ax.text(
                    number,
                    position,
                    _short_number(probability),
                    ha="center",
                    va="center",
                    fontsize=6.5,
                    color="white" if probability > 0.55 else "#222222",
                )
    for position, row in enumerate(rows):
        if isinstance(row, int):
            ax.axhspan(position - 0.5, position + 0.5, color="white")
    every = max(1, math.ceil(len(labels) / 40))
    shown = [_text(label, 18) for label in labels[::every]]
    slanted = sum(map(len, shown)) > 45
    ax.set_xticks(
        range(0, len(labels), every),
        shown,
        rotation=60 if slanted else 0,
        ha="right" if slanted else "center",
        fontsize="small",
    )
    ax.set_xlabel("action (grey: not legal there)")
    ax.figure.colorbar(image, ax=ax, label="probability", shrink=min(1.0, 12 / max(12, len(rows)) + 0.2), aspect=25)


# Game trees


@dataclass
class _Node:
    """A history in a picture: where it comes from, who acts, what leads to it and how likely that is."""

    parent: int
    depth: int
    player: int  # -1 chance, -2 terminal
    key: Hashable = None
    edge: str = ""
    probability: Any = None
    payoffs: tuple[float, ...] = ()
    y: float = 0.0


def game_tree(
    game: Any,
    profile: Any = None,
    *,
    max_histories: int = MAX_HISTORIES,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The tree of a small game, from left to right: who acts, what is known, and probabilities on the edges.

    Lines are as thick as their action is probable, and dotted where its probability is exactly 0. Beside a history is
    the key of its information set; where there are few, dashed lines join the histories that its player cannot tell
    apart.

    Args:
      game: a game, its name for `load_game`, or what `jaxcfr.lower` returned (which does not keep the names of the
        outcomes of chance).
      profile: a `Profile`, a `Trainer`, or a strategy, one array `[L_p]` per player; None draws no probabilities of
        actions.
      max_histories: larger games are refused.
      title: of the picture; None takes the game's name.
      ax: where to draw; None makes a figure of the size of the tree.

    Raises:
      GameTooLargeError: there are more than `max_histories` histories.
      OptionError, ProfileError, StrategyError: `game` is no game, or `profile` is no strategy of it.
      MissingPackageError: matplotlib is not installed.
    """
    from jaxcfr.games.array_game import is_array_game
    from jaxcfr.games.registry import load_game
    from jaxcfr.tree.lower import LoweredGame, lower

    if isinstance(game, str):
        game = load_game(game)
    if is_array_game(game):
        game = lower(game, max_nodes=max_histories)
    lowered = game if isinstance(game, LoweredGame) else None
    if lowered is None and not (hasattr(game, "is_terminal") and hasattr(game, "step")):
        hint = ": pass the LoweredGame it belongs to, which has the keys" if hasattr(game, "treeplexes") else ""
        raise OptionError(f"game_tree draws a game, its name, or what jaxcfr.lower returned, not {_short(game)}{hint}")
    name = game_name(game) if lowered is None else lowered.name
    if isinstance(profile, tuple | list) and not hasattr(profile, "profile"):
        binding = lower(game, max_nodes=max_histories) if lowered is None else lowered
        profile = Profile.from_strategy(binding, tuple(profile))
    elif profile is not None:
        profile = as_profile(profile, None, "plotting.game_tree")
    nodes = _walked(game, name, max_histories) if lowered is None else _histories(lowered, max_histories)
    _put_probabilities(nodes, profile)
    leaves = _lay_out(nodes)
    depth = max(node.depth for node in nodes)
    ax = _axes(ax, (min(60.0, max(4.5, 1.6 + 1.75 * depth)), min(80.0, 1.2 + 0.3 * leaves)), "game_tree")
    _draw_tree(ax, nodes)
    ax.set_title(_text(name if title is None else title, 80))
    return ax


def _walked(game: Any, name: str, limit: int) -> list[_Node]:
    """The histories of a game in depth-first order."""
    nodes: list[_Node] = []
    waiting: list[tuple[Any, _Node, tuple[Any, ...]]] = [(game, _Node(-1, 0, -2), ())]
    while waiting:
        history, node, path = waiting.pop()
        number = len(nodes)
        nodes.append(node)
        if number >= limit:
            _refuse_large(name, limit)
        if history.is_terminal():
            node.payoffs = tuple(map(float, history.terminal_returns()))
            continue
        if history.is_chance():
            node.player = -1
            outcomes = require_enumerable_chance(history, path, "drawing a game tree")
        else:
            node.player = int(history.player_to_act())
            node.key = history.infoset_key(node.player)
            outcomes = tuple((action, None) for action in history.legal_actions())
        actions = [action for action, _ in outcomes]
        labels = distinct_labels(history, actions)
        children = [
            (
                history.step(action),
                _Node(number, node.depth + 1, -2, edge=label, probability=probability),
                (*path, action),
            )
            for (action, probability), label in zip(outcomes, labels, strict=True)
        ]
        waiting += reversed(children)
    return nodes


def _histories(lowered: LoweredGame, limit: int) -> list[_Node]:
    """The histories of a lowered game in depth-first order."""
    tree = lowered.tree
    if tree.num_histories > limit:
        _refuse_large(lowered.name, limit)
    if tree.histories is None:
        raise OptionError("this game was lowered without its histories, which game_tree draws: lower it with them")
    table = {
        name: np.asarray(getattr(tree.histories, name)).tolist()
        for name in ("player", "infoset", "first_child", "num_children", "chance", "terminal")
    }
    payoffs = np.asarray(tree.terminal_payoffs, np.float64).tolist()
    nodes: list[_Node] = []
    waiting = [(0, _Node(-1, 0, -2))]
    while waiting:
        row, node = waiting.pop()
        number = len(nodes)
        nodes.append(node)
        node.player = table["player"][row]
        if node.player == -2:
            node.payoffs = tuple(payoffs[table["terminal"][row]])
            continue
        count, first = table["num_children"][row], table["first_child"][row]
        labels: Sequence[str] = [""] * count
        if node.player >= 0:
            infoset = table["infoset"][row]
            node.key = lowered.infoset_keys[node.player][infoset]
            labels = lowered.action_labels[node.player][infoset]
        children = []
        for place, label in enumerate(labels):
            probability = table["chance"][first + place] if node.player == -1 else None
            child = _Node(number, node.depth + 1, -2, edge=label, probability=probability)
            children.append((first + place, child))
        waiting += reversed(children)
    return nodes


def _refuse_large(name: str, limit: int) -> NoReturn:
    raise GameTooLargeError(
        f"{name} has more than {limit:,} histories, which no one could read in one picture: draw a smaller game, or "
        "its strategy by plotting.strategy; max_histories allows more"
    )


def _put_probabilities(nodes: Sequence[_Node], profile: Profile | None) -> None:
    if profile is None:
        return
    place = dict.fromkeys(range(len(nodes)), 0)
    for node in nodes[1:]:
        parent = nodes[node.parent]
        if parent.player >= 0:
            values = list(profile.average_strategy(parent.player, parent.key).values())
            number = place[node.parent]
            if number >= len(values):
                raise OptionError(
                    f"{profile!r} has {len(values)} actions at the information set {_short(parent.key)} of player "
                    f"{parent.player}, and this game has more: is it the profile of another game?"
                )
            node.probability = values[number]
            place[node.parent] += 1


def _lay_out(nodes: Sequence[_Node]) -> int:
    """Puts leaves on lines of their own and every other history in the middle of its children; returns the leaves."""
    children: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        children.setdefault(node.parent, []).append(number)
    leaves = 0
    for number in range(len(nodes)):
        if number not in children:
            nodes[number].y = float(leaves)
            leaves += 1
    for number in reversed(range(len(nodes))):
        if number in children:
            nodes[number].y = (nodes[children[number][0]].y + nodes[children[number][-1]].y) / 2
    return leaves


def _draw_tree(ax: Axes, nodes: Sequence[_Node]) -> None:
    from matplotlib.lines import Line2D

    def colour(player: int) -> str:
        return "#666666" if player < 0 else COLOURS[player % len(COLOURS)]

    elbow = 0.3  # of the way to the right an edge is slanted, then level
    for node in nodes[1:]:
        parent = nodes[node.parent]
        p = None if node.probability is None else float(node.probability)
        width = 1.0 if p is None else 0.5 + 2.5 * p
        style = (0, (1, 2)) if p == 0 else "-"
        ends = ([parent.depth, parent.depth + elbow, node.depth], [parent.y, node.y, node.y])
        ax.plot(
            *ends,
            color=colour(parent.player),
            linewidth=width,
            linestyle=style,
            alpha=0.75,
            zorder=1,
            solid_joinstyle="round",
        )
        words = [_text(node.edge, 16)] if node.edge else []
        words += [] if p is None else [_probability(node.probability)]
        ax.annotate(
            ": ".join(words),
            (parent.depth + elbow + 0.02, node.y),
            xytext=(0, 1 + width / 2),
            textcoords="offset points",
            ha="left",
            va="bottom",
            fontsize=6.5,
            color="#222222",
        )
    members: dict[tuple[int, Hashable], list[_Node]] = {}
    for node in nodes:
        if node.player == -2:
            ax.plot(node.depth, node.y, "|", color="#444444", markersize=7, zorder=3)
            ax.annotate(
                _payoffs(node.payoffs),
                (node.depth, node.y),
                xytext=(5, 0),
                textcoords="offset points",
                ha="left",
                va="center",
                fontsize=7,
            )
            continue
        ax.plot(
            node.depth, node.y, "D" if node.player == -1 else "o", color=colour(node.player), markersize=6, zorder=3
        )
        if node.player >= 0:
            members.setdefault((node.player, node.key), []).append(node)
            ax.annotate(
                _text(key_text(node.key), 18),
                (node.depth, node.y),
                xytext=(-5, -3),
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize=6.5,
                color=colour(node.player),
                style="italic",
            )
    joined = {owner: those for owner, those in members.items() if len(those) > 1}
    if len(joined) <= LINKS_UP_TO:
        for (player, _), those in joined.items():
            for one, other in itertools.pairwise(those):
                ax.annotate(
                    "",
                    (one.depth, one.y),
                    (other.depth, other.y),
                    zorder=0,
                    arrowprops={
                        "arrowstyle": "-",
                        "linestyle": (0, (4, 3)),
                        "color": colour(player),
                        "alpha": 0.6,
                        "linewidth": 1,
                        "connectionstyle": "arc3,rad=0.18",
                    },
                )
    players = sorted({node.player for node in nodes if node.player >= 0})
    marks = [(-1, "chance")] if any(node.player == -1 for node in nodes) else []
    marks += [(player, f"player {player}") for player in players]
    handles = [
        Line2D([], [], color=colour(p), marker="D" if p == -1 else "o", linestyle="none", label=text)
        for p, text in marks
    ]
    counts = len(next(node.payoffs for node in nodes if node.player == -2))
    who = "the player" if counts == 1 else f"players {', '.join(map(str, range(counts)))}"
    handles.append(Line2D([], [], color="#444444", marker="|", linestyle="none", label=f"end: payoffs of {who}"))
    ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        ncols=len(handles),
        fontsize="small",
        frameon=False,
    )
    deepest = max(node.depth for node in nodes)
    ax.set_xlim(-0.35, deepest + 0.55)
    ax.set_ylim(max(node.y for node in nodes) + 0.8, -0.8)
    ax.set_axis_off()


def _payoffs(payoffs: Sequence[float]) -> str:
    return ", ".join(f"{payoff:+.4g}" if payoff else "0" for payoff in payoffs)


def _probability(value: Any) -> str:
    """A probability on an edge: a fraction where the rules give a short one."""
    denominator = getattr(value, "denominator", 0)
    if 1 < denominator <= 999 and not isinstance(value, float):
        return f"{value.numerator}/{denominator}"
    return _short_number(float(value))


# Sweeps


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
    except (TypeError, ValueError) as error:
        raise OptionError(f"values has to be an array of numbers [rows, columns]: {error}") from None
    names = [None if _is_scalar(side) else [_tick(value) for value in side] for side in (rows, columns)]
    if table.ndim != 2 or None in names or table.shape != tuple(len(side or ()) for side in names):
        sizes = " and ".join("no list" if side is None else str(len(side)) for side in names)
        raise OptionError(
            f"values has to be [rows, columns]; it has the shape {table.shape}, and rows and columns are {sizes}"
        )
    finite = np.isfinite(table)
    if not finite.any():
        raise OptionError("no value of this sweep is finite" if table.size else "this sweep is empty")
    from_low, to_high = float(table[finite].min()), float(table[finite].max())
    ax = _axes(
        ax, (min(14.0, 2.2 + 0.75 * max(4, table.shape[1])), min(12.0, max(3.6, 2.4 + 0.42 * table.shape[0]))), "sweep"
    )
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.patches import Rectangle

    norm: Any = LogNorm(from_low, to_high) if log and 0 < from_low < to_high else Normalize(from_low, to_high)
    image = ax.imshow(
        np.where(finite, table, np.nan), cmap="viridis", norm=norm, aspect="auto", interpolation="nearest"
    )
    ax.set_facecolor("#dddddd")
    few = table.size <= 150
    for (row, column), value in np.ndenumerate(table):
        if not math.isfinite(value):
            ax.text(column, row, "\u00d7", ha="center", va="center", color="#a00000", fontsize=10)
        elif few:
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
        axis.set_label_text(_text(name))
    if sum(map(len, names[1] or ())) > 8 * table.shape[1]:
        for tick in ax.get_xticklabels():
            tick.set(rotation=60, ha="right", rotation_mode="anchor")
    crossed = "" if finite.all() else "; \u00d7 not finite"
    ax.set_title(
        (_text(title, 80) + "\n" if title else "") + f"framed: lowest, {table[best]:.3g}{crossed}", fontsize="medium"
    )
    ax.figure.colorbar(
        image, ax=ax, label=_text(label, 80).replace(" (", "\n("), fraction=0.08
    ).ax.yaxis.label.set_fontsize("small")
    return ax


def _tick(value: Any) -> str:
    if _is_scalar(value) and hasattr(value, "item"):
        value = value.item()
    return f"{value:.4g}" if _is_number(value) else _text(value, 18)


# Trajectories


def trajectories(
    runs: Any,
    *,
    lowered: LoweredGame | None = None,
    at: Sequence[tuple[int, Hashable]] | None = None,
    equilibrium: Any = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """How the strategies at two information sets of two actions each move: both probabilities of the first action.

    Args:
      runs: a trajectory, or a mapping from labels to trajectories; say in the labels which is of the average strategy
        and which of the last iterate. A trajectory is a sequence of points in the order of time. A point is a pair of
        probabilities, a `Profile`, or a strategy, one array `[L_p]` per player.
      lowered: the game that strategies belong to.
      at: the two information sets, (player, key) each; None takes the only one of two actions that each player has.
      equilibrium: a point to mark. Where equilibria are not unique it is one of them.
      title: of the picture.
      ax: where to draw; None makes a figure.

    Raises:
      OptionError: a point is none of these, or its information sets cannot be told or have other than two actions.
      MissingPackageError: matplotlib is not installed.
    """
    read = _Reader(lowered, at)
    paths = [(label, [read(point) for point in _steps(label, run)]) for label, run in _labelled(runs)]
    mark = None if equilibrium is None else read(equilibrium)
    ax = _axes(ax, (5.2, 5.0), "trajectories")
    for number, (label, path) in enumerate(paths):
        colour = COLOURS[number % len(COLOURS)]
        x, y = np.array(path).T
        shown = None if label is None else _text(label)
        ax.plot(x, y, color=colour, linewidth=1, alpha=0.8, label=shown, zorder=2)
        ax.plot(x[0], y[0], "o", color=colour, markerfacecolor="white", markersize=6, zorder=3)
        ax.plot(x[-1], y[-1], "s", color=colour, markersize=6, zorder=4)
    ax.plot([], [], "o", color="#555555", markerfacecolor="white", label="first")
    ax.plot([], [], "s", color="#555555", label="last")
    if mark is not None:
        ax.plot(*mark, "+", color="black", markersize=13, markeredgewidth=1.5, zorder=5, label="equilibrium")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    for axis, name in ((ax.xaxis, read.names[0]), (ax.yaxis, read.names[1])):
        axis.set_label_text(name)
    ax.grid(True, alpha=0.3)
    if title is not None:
        ax.set_title(_text(title, 60))
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small", frameon=False)
    return ax


def _steps(label: str | None, run: Any) -> list[Any]:
    if isinstance(run, str | Profile) or not hasattr(run, "__iter__"):
        raise OptionError(f"{_named(label)} has to be a sequence of points, not {_short(run)}")
    steps = list(run)
    if not steps:
        raise OptionError(f"{_named(label)} has no point to draw")
    return steps


class _Reader:
    """Reads points: two probabilities each."""

    def __init__(self, lowered: LoweredGame | None, at: Sequence[tuple[Any, ...]] | None) -> None:
        self.lowered = lowered
        self.at: list[tuple[Any, ...]] | None = None if at is None else [tuple(where) for where in at]
        if self.at is not None and (len(self.at) != 2 or any(len(where) != 2 for where in self.at)):
            raise OptionError(f"at has to be two information sets, ((player, key), (player, key)), not {_short(at)}")
        self.names = ["probability of the first action, player 0", "probability of the first action, player 1"]

    def __call__(self, point: Any) -> tuple[float, float]:
        if isinstance(point, Profile):
            return self._of(point)
        parts = list(point) if hasattr(point, "__iter__") and not isinstance(point, str) else []
        if len(parts) == 2 and all(map(_is_scalar, parts)):
            try:
                first, second = map(float, parts)
            except (TypeError, ValueError):
                first = second = math.nan
            if not (-1e-6 <= first <= 1 + 1e-6 and -1e-6 <= second <= 1 + 1e-6):
                raise OptionError(f"a point is two probabilities from 0 to 1, not {_short(point)}")
            return first, second
        if not parts or any(map(_is_scalar, parts)):
            raise OptionError(f"a point is two probabilities, a Profile, or a strategy, not {_short(point)}")
        if self.lowered is None:
            raise OptionError("strategies need the game they belong to: give lowered=, what jaxcfr.lower returned")
        return self._of(Profile.from_strategy(self.lowered, tuple(parts)))

    def _of(self, profile: Profile) -> tuple[float, float]:
        if self.at is None:
            self.at = self._only_ones(profile)
        found = []
        for axis, (player, key) in enumerate(self.at):
            strategy = profile.average_strategy(player, key)
            if len(strategy) != 2:
                raise OptionError(
                    f"player {player} has {len(strategy)} actions at the information set {_short(key)}: a trajectory "
                    "is drawn for two"
                )
            label, probability = next(iter(strategy.items()))
            self.names[axis] = f"probability of {_text(label)}, player {player}"
            if key != "":
                self.names[axis] += f" at {_text(key_text(key))}"
            found.append(probability)
        return found[0], found[1]

    def _only_ones(self, profile: Profile) -> list[tuple[Any, ...]]:
        chosen: list[tuple[Any, ...]] = []
        for player in range(profile.num_players):
            those = [infoset.key for infoset in profile.infosets(player=player) if len(infoset.labels) == 2]
            if len(those) != 1 or profile.num_players != 2:
                raise OptionError(
                    f"{profile.game_name}: player {player} has {len(those)} information sets of two actions: say which "
                    "to draw, at=((player, key), (player, key))"
                )
            chosen.append((player, those[0]))
        return chosen


# Files


def save(picture: Any, path: str | os.PathLike[str], *, dpi: int = 150) -> None:
    """Writes a picture to a file, `.png`, `.svg` or `.pdf` by its name; what was there before is replaced at the end.

    Args:
      picture: what a function here returned, or a matplotlib figure.
      path: of the file.
      dpi: dots an inch, of a `.png`.

    Raises:
      OptionError: the name ends in something else, `picture` is none, or the file cannot be written.
      MissingPackageError: matplotlib is not installed.
    """
    ending = check_path(path)
    import matplotlib

    figure = getattr(picture, "figure", None)
    if figure is None or not hasattr(figure, "savefig"):
        raise OptionError(f"save takes what a function of jaxcfr.plotting returned, or a figure, not {_short(picture)}")
    buffer = io.BytesIO()
    dates = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    # The same picture gives the same bytes.
    with matplotlib.rc_context({"svg.hashsalt": "jaxcfr"}):
        figure.savefig(buffer, format=ending[1:], dpi=dpi, metadata=dates[ending])
    write_atomically(path, buffer.getvalue(), OptionError)


def check_path(path: str | os.PathLike[str]) -> str:
    """The ending of a picture's file; raises as `save` does where no picture could be written there."""
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in FORMATS:
        raise OptionError(
            f"{os.fspath(path) or repr('')}: a picture's name ends in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        )
    _require_matplotlib("a picture")
    require_writable(path, OptionError)
    return ending


def _require_matplotlib(what: str) -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(f'{what} needs matplotlib: pip install "jaxcfr[plot]"') from error


def _axes(ax: Any, size: tuple[float, float], what: str) -> Axes:
    _require_matplotlib(f"plotting.{what}")
    from matplotlib.axes import Axes

    if ax is None:
        from matplotlib import pyplot

        return pyplot.subplots(figsize=size, layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise OptionError(f"ax has to be the Axes of a matplotlib figure, not {_short(ax)}")
    return ax


# Text


def _text(value: Any, longest: int = LONGEST) -> str:
    """Text for matplotlib: printable, shortened in the middle, and no formula."""
    text = printable(str(value))
    if len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[: longest - 1 - half]}\u2026{text[-half:]}"
    # Labels that begin with an underscore are left out of legends.
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def _short_number(probability: float) -> str:
    """A probability in four characters; what is not exactly 0 or 1 does not look so."""
    if probability in (0.0, 1.0):
        return f"{probability:.0f}"
    if probability < 0.005:
        return "<.01"
    return ">.99" if probability > 0.995 else f"{probability:.2f}"[-3:]


def _on(colour: str) -> str:
    """Black or white, whichever can be read on a colour."""
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else "white"


def _is_scalar(value: Any) -> bool:
    return getattr(value, "ndim", None) == 0 or not hasattr(value, "__iter__")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
