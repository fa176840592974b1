"""The trees of small games."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from jaxcfr.arguments import integer
from jaxcfr.errors import GameTooLargeError, OptionError
from jaxcfr.games import checks
from jaxcfr.games.base import game_name, require_enumerable_chance
from jaxcfr.plotting.common import COLOURS, as_text, as_title, axes_for, short_number, short_repr
from jaxcfr.profile import Profile, as_profile, distinct_labels, key_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jaxcfr.tree.lower import LoweredGame

MAX_HISTORIES = 200
"""A game tree with more histories than this is not readable in one picture."""

LINKS_UP_TO = 8  # information sets whose histories are joined by lines


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
      GameError, OptionError, ProfileError, StrategyError: `game` is no game, or `profile` is no strategy of it.
      MissingPackageError: matplotlib is not installed.
    """
    from jaxcfr.games.array_game import is_array_game
    from jaxcfr.games.registry import load_game
    from jaxcfr.tree.lower import LoweredGame, lower

    max_histories = integer("max_histories", max_histories)
    if isinstance(game, str):
        game = load_game(game)
    checks.require_instance(game, "plotting.game_tree")
    if is_array_game(game):
        game = lower(game, max_nodes=max_histories)
    lowered = game if isinstance(game, LoweredGame) else None
    if lowered is None and not (hasattr(game, "is_terminal") and hasattr(game, "step")):
        hint = ": pass the LoweredGame it belongs to, which has the keys" if hasattr(game, "treeplexes") else ""
        raise OptionError(
            f"game_tree draws a game, its name, or what jaxcfr.lower returned, not {short_repr(game)}{hint}"
        )
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
    ax = axes_for(ax, (min(60.0, max(4.5, 1.6 + 1.75 * depth)), min(80.0, 1.2 + 0.3 * leaves)), "game_tree")
    _draw_tree(ax, nodes)
    ax.set_title(as_title(name if title is None else title))
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
                    f"{profile!r} has {len(values)} actions at the information set {short_repr(parent.key)} of player "
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
        words = [as_text(node.edge, 16)] if node.edge else []
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
                # In front of the arcs between histories of one information set.
                bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
                zorder=4,
            )
            continue
        ax.plot(
            node.depth, node.y, "D" if node.player == -1 else "o", color=colour(node.player), markersize=6, zorder=3
        )
        if node.player >= 0:
            members.setdefault((node.player, node.key), []).append(node)
            ax.annotate(
                as_text(key_text(node.key), 18),
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
    return short_number(float(value))
