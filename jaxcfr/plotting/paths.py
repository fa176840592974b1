"""How strategies move over the iterations."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxcfr.errors import OptionError
from jaxcfr.plotting.common import (
    COLOURS,
    as_text,
    as_title,
    axes_for,
    is_scalar,
    labelled,
    named,
    short_repr,
)
from jaxcfr.profile import Profile, key_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jaxcfr.tree.lower import LoweredGame

MAX_POINTS = 10_000
"""Of longer trajectories so many points are drawn, evenly chosen: a picture has room for no more."""


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
    paths = [(label, [read(point) for point in _steps(label, run)]) for label, run in labelled(runs)]
    mark = None if equilibrium is None else read(equilibrium)
    ax = axes_for(ax, (5.2, 5.0), "trajectories")
    for number, (label, path) in enumerate(paths):
        colour = COLOURS[number % len(COLOURS)]
        x, y = np.array(path).T
        shown = None if label is None else as_text(label)
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
        ax.set_title(as_title(title))
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small", frameon=False)
    return ax


def _steps(label: str | None, run: Any) -> list[Any]:
    if isinstance(run, str | Profile) or is_scalar(run):
        raise OptionError(f"{named(label)} has to be a sequence of points, not {short_repr(run)}")
    steps = list(run)
    if not steps:
        raise OptionError(f"{named(label)} has no point to draw")
    if len(steps) > MAX_POINTS:
        steps = [steps[place] for place in np.linspace(0, len(steps) - 1, MAX_POINTS).astype(int)]
    return steps


class _Reader:
    """Reads points: two probabilities each."""

    def __init__(self, lowered: LoweredGame | None, at: Sequence[tuple[int, Hashable]] | None) -> None:
        self.lowered = lowered
        try:
            self.at = None if at is None else [(player, key) for player, key in at]
            two = self.at is None or len(self.at) == 2
        except (TypeError, ValueError):
            two = False
        if not two:
            raise OptionError(
                f"at has to be two information sets, ((player, key), (player, key)), not {short_repr(at)}"
            )
        self.names = ["probability of the first action, player 0", "probability of the first action, player 1"]

    def __call__(self, point: Any) -> tuple[float, float]:
        if isinstance(point, Profile):
            return self._of(point)
        parts = [] if is_scalar(point) or isinstance(point, str) else list(point)
        if len(parts) == 2 and all(map(is_scalar, parts)):
            try:
                first, second = map(float, parts)
            except (TypeError, ValueError, OverflowError):
                first = second = math.nan
            if not (-1e-6 <= first <= 1 + 1e-6 and -1e-6 <= second <= 1 + 1e-6):
                raise OptionError(f"a point is two probabilities from 0 to 1, not {short_repr(point)}")
            return first, second
        if not parts or any(map(is_scalar, parts)):
            raise OptionError(f"a point is two probabilities, a Profile, or a strategy, not {short_repr(point)}")
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
                    f"player {player} has {len(strategy)} actions at the information set {short_repr(key)}: a "
                    "trajectory is drawn for two"
                )
            label, probability = next(iter(strategy.items()))
            self.names[axis] = f"probability of {as_text(label)}, player {player}"
            if key != "":
                self.names[axis] += f" at {as_text(key_text(key))}"
            found.append(probability)
        return found[0], found[1]

    def _only_ones(self, profile: Profile) -> list[tuple[int, Hashable]]:
        chosen: list[tuple[int, Hashable]] = []
        for player in range(profile.num_players):
            those = [infoset.key for infoset in profile.infosets(player=player) if len(infoset.labels) == 2]
            if len(those) != 1 or profile.num_players != 2:
                raise OptionError(
                    f"{profile.game_name}: player {player} has {len(those)} information sets of two actions: say which "
                    "to draw, at=((player, key), (player, key))"
                )
            chosen.append((player, those[0]))
        return chosen
