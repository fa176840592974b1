"""Strategies by information set, as bars or as a heat map."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jaxcfr.arguments import integer
from jaxcfr.errors import OptionError
from jaxcfr.plotting.common import COLOURS, as_text, as_title, axes_for, one_of, readable_on, short_number
from jaxcfr.profile import InfosetStrategy, as_profile, key_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["bars", "heatmap"]

MAX_BAR_ACTIONS = len(COLOURS)
"""Bars tell so many action labels apart; with more of them a heat map is drawn."""


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
    if kind is not None:
        one_of("kind", kind, ("bars", "heatmap"))
    if max_infosets is not None:
        max_infosets = integer("max_infosets", max_infosets)
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
    ax = axes_for(ax, (width, min(60.0, 1.3 + 0.24 * max(3, len(rows)))), "strategy")
    if title is None:
        made = [profile.variant] if profile.variant else []
        made += [] if profile.iterations is None else [f"{profile.iterations:,} iterations"]
        title = profile.game_name + (f"\n{', '.join(made)}" if made else "")
    if len(shown) < len(infosets):
        title = f"{title}\n{_shown_of_all(shown, infosets)}"
    ax.set_title(as_title(title), fontsize="medium")
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


def _shown_of_all(shown: Sequence[InfosetStrategy], infosets: Sequence[InfosetStrategy]) -> str:
    """How many information sets are there and left out, player by player as far as a line has room."""
    counts = [Counter(infoset.player for infoset in given) for given in (shown, infosets)]
    each = [f"{counts[0][player]:,} of {total:,} of player {player}" for player, total in sorted(counts[1].items())]
    if len(each) > 2:
        return f"only {len(shown):,} of {len(infosets):,} information sets, the first ones of each player"
    return f"only the first information sets: {', '.join(each)}"


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
    return f"player {row}" if isinstance(row, int) else as_text(key_text(row.key))


def _bars(ax: Axes, rows: Sequence[_Row], labels: Sequence[str]) -> None:
    colours = dict(zip(labels, COLOURS, strict=False))
    drawn = set()
    for position, row in enumerate(rows):
        if isinstance(row, int):
            continue
        left = 0.0
        for label, probability in zip(row.labels, row.probabilities.tolist(), strict=True):
            name = None if label in drawn else as_text(label)
            drawn.add(label)
            ax.barh(position, probability, left=left, height=0.78, color=colours[label], label=name, linewidth=0)
            if probability >= 0.08:
                middle = left + probability / 2
                ax.text(
                    middle,
                    position,
                    short_number(probability),
                    ha="center",
                    va="center",
                    fontsize=6.5,
                    color=readable_on(colours[label]),
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
                    short_number(probability),
                    ha="center",
                    va="center",
                    fontsize=6.5,
                    color="white" if probability > 0.55 else "#222222",
                )
    for position, row in enumerate(rows):
        if isinstance(row, int):
            ax.axhspan(position - 0.5, position + 0.5, color="white")
    every = max(1, math.ceil(len(labels) / 40))
    shown = [as_text(label, 18) for label in labels[::every]]
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
