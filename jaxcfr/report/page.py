"""`write_report`: what there is to know about a game and a strategy, as one self-contained HTML page."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import importlib.resources
import json
import os
import platform
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxcfr.errors import OptionError
from jaxcfr.facts import payoff_range, payoff_sum, per_player, promise
from jaxcfr.files import write_atomically
from jaxcfr.profile import Profile, as_profile, key_text
from jaxcfr.progress import printable
from jaxcfr.report.curve import curve_svg
from jaxcfr.trainer import evaluate
from jaxcfr.tree.lower import LoweredGame

if TYPE_CHECKING:
    from jaxcfr.prescribed import Locks

MAX_INFOSETS = 200_000
"""A page holds at most so many information sets: of more, those that are reached most."""


def write_report(
    path: str | os.PathLike[str],
    source: Any,
    profile: Any = None,
    *,
    history: Sequence[Mapping[str, Any]] | None = None,
    nash_value: Sequence[Any] | None = None,
    made: Mapping[str, str] | None = None,
) -> None:
    """Writes `report_page` to a file; what was there before is replaced once the page is complete.

    Raises:
      OptionError: the file cannot be written; or as `report_page`.
    """
    page = report_page(source, profile, history=history, nash_value=nash_value, made=made)
    write_atomically(path, page.encode(), OptionError)


def report_page(
    source: Any,
    profile: Any = None,
    *,
    history: Sequence[Mapping[str, Any]] | None = None,
    nash_value: Sequence[Any] | None = None,
    made: Mapping[str, str] | None = None,
) -> str:
    """A page about a strategy in a game: HTML that loads nothing, and runs no script but its own.

    The game's facts, the convergence curve, NashConv, exploitability and what each player could gain, and the
    strategy at every information set, to be searched and sorted. The state of that table is in the address: `#q=...`
    (as `Profile.infosets` takes patterns), `player`, `sort` (player, key, reach, mixing), `dir` (asc, desc), `page`.

    Args:
      source: a `Trainer`, or a `DeepTrainer` of a lowered game, whose average strategy and history are reported on; or
        what `jaxcfr.lower` returned.
      profile: with a lowered game, a `Profile` or a strategy, one array `[L_p]` per player.
      history: evaluations for the curve, as `Trainer.history` has them.
      nash_value: the payoffs at equilibrium, where they are known.
      made: more lines on how it came about, by their headings: `{"command": "..."}`.

    Raises:
      OptionError: `source` is none of these, or an evaluation lacks what the curve needs.
      ProfileError, StrategyError: the profile or strategy does not fit the game.
    """
    lowered, profile, history, locks = _in_hand(source, profile, history)
    tree = lowered.tree
    strategy = profile.to_strategy(lowered)
    result = evaluate(tree, strategy, locks)
    name = _escape(lowered.name)
    facts = _facts(lowered, nash_value)
    columns = _columns(lowered, profile, strategy)
    sections = [
        f"<header><p class='quiet'>jaxcfr report</p><h1>{name}</h1><p>{_escape(_made_by(profile))}</p></header>",
        _figures(result, locks),
        f"<p>{_escape(f'All in units of payoff, computed in {tree.dtype}. {promise(tree)}')}</p>",
        "<h2>Convergence</h2>" + _convergence(history, tree.constant_sum),
        "<h2>Best responses</h2>" + _gains(result),
        "<h2>Strategy</h2>" + _strategies(columns, sum(tree.num_infosets), tree.num_players),
        "<h2>The game</h2>" + _rows(facts),
        "<h2>How it was made</h2>" + _rows(_made(lowered, profile, made)),
    ]
    script = _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{name}: jaxcfr report</title>\n<style>\n{_asset('page.css')}</style>\n</head>\n<body>",
            *sections,
            f'<script type="application/json" id="data">{_json(columns)}</script>',
            f"<script>{script}</script>\n</body>\n</html>\n",
        ]
    )


def _in_hand(
    source: Any, profile: Any, history: Sequence[Mapping[str, Any]] | None
) -> tuple[LoweredGame, Profile, Sequence[Mapping[str, Any]], Locks | None]:
    locks = None
    if hasattr(source, "history") and hasattr(source, "profile"):
        if profile is not None:
            raise OptionError("a report on a Trainer is on its own profile: pass its .lowered to report on another one")
        profile = source.profile()
        history = source.history if history is None else history
        source, locks = source.lowered, getattr(source, "locks", None)
    if not isinstance(source, LoweredGame):
        raise OptionError(
            f"a report is on a Trainer, or on what jaxcfr.lower returned with a Profile or a strategy, not on "
            f"{type(source).__name__}"
        )
    if profile is None:
        raise OptionError("a report on a lowered game needs a Profile or a strategy")
    if not isinstance(profile, Profile):
        profile = as_profile(source, profile, "a report")
    return source, profile, history or (), locks


# Sections


def _figures(result: Mapping[str, Any], locks: Locks | None) -> str:
    shown = [] if result["exploitability"] is None else [("exploitability", f"{result['exploitability']:.4g}")]
    shown.append(("NashConv", f"{result['nash_conv']:.4g}"))
    shown += [(f"payoff of player {p}", f"{payoff:.6g}") for p, payoff in enumerate(result["expected_payoffs"])]
    figures = "".join(f"<div>{_escape(name)}<b>{_escape(value)}</b></div>" for name, value in shown)
    note = (
        "<p>NashConv is that of the locked game: nobody deviates at the locked information sets.</p>" if locks else ""
    )
    return f'<div class="figures">{figures}</div>{note}'


def _convergence(history: Sequence[Mapping[str, Any]], constant_sum: bool) -> str:
    if not history:
        return "<p class='quiet'>Nothing is known of the run: there is no evaluation on the way.</p>"
    quantity, name = ("exploitability", "exploitability") if constant_sum else ("nash_conv", "NashConv")
    try:
        points = [(float(record["iteration"]), float(record[quantity])) for record in history]
        payoffs = [" ".join(f"{payoff:.6g}" for payoff in record["expected_payoffs"]) for record in history]
        rows = [
            [f"{record['iteration']:,}", f"{record[quantity]:.6g}", shown, f"{record['seconds']:.2f}"]
            for record, shown in zip(history, payoffs, strict=True)
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise OptionError(f"history has to be the history of a Trainer: {error!r}") from None
    if not all(np.isfinite(point).all() and min(point) >= 0 for point in points):
        raise OptionError("history has an iteration or a value that is negative or not finite")
    label = f"{name} of the average strategy (units of payoff)"
    head = "".join(f'<th class="number">{text}</th>' for text in ("iteration", name, "expected payoffs", "seconds"))
    body = "".join(
        "<tr>" + "".join(f'<td class="number">{_escape(text)}</td>' for text in row) + "</tr>" for row in rows
    )
    return (
        f"<p>{_escape(label[0].upper() + label[1:])} by iteration.</p>"
        f'<div class="wide">{curve_svg(points, label, width=760, height=320)}</div>'
        f'<div class="narrow">{curve_svg(points, label, width=350, height=250)}</div>'
        f"<details><summary>{len(rows):,} evaluations</summary>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details>'
    )


def _gains(result: Mapping[str, Any]) -> str:
    most = max(result["gains"], default=0.0)
    rows = []
    for player, (payoff, gain) in enumerate(zip(result["expected_payoffs"], result["gains"], strict=True)):
        width = 100 * gain / most if most > 0 else 0
        bar = f'<span class="gain" style="width:{width:.1f}%"></span>' if gain > 0 else ""
        numbers = "".join(
            f'<td class="number">{text}</td>' for text in (f"{payoff:.6g}", f"{payoff + gain:.6g}", f"{gain:.4g}")
        )
        rows.append(f"<tr><td>{player}</td>{numbers}<td>{bar}</td></tr>")
    head = "".join(f'<th class="number">{text}</th>' for text in ("payoff", "best response", "gain"))
    return (
        "<p>What each player gets, what a best response to the others would get, and the difference; NashConv is the "
        'sum of the gains.</p><div class="scroll"><table class="gains"><thead><tr><th>player</th>'
        f"{head}<th></th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _strategies(columns: Mapping[str, Any], count: int, players: int) -> str:
    if not count:
        return "<p id='none'>No player decides anything in this game.</p>" + _table(False, players, hidden=True)
    held = len(columns["keys"])
    left_out = (
        f"<p>Of {count:,} information sets, this page holds the {held:,} that are reached most.</p>"
        if held < count
        else ""
    )
    reach = (
        " <em>Reached</em> is the probability that a play comes to the information set."
        if columns["reach"] is not None
        else ""
    )
    return (
        f"{left_out}<p>The average strategy at every information set.{reach} <em>Mixing</em> is the entropy of the "
        "strategy there, in bits. In the search, * stands for any text and ? for one character.</p>"
        "<noscript><p>The table needs JavaScript.</p></noscript>" + _table(columns["reach"] is not None, players)
    )


def _table(reach: bool, players: int, *, hidden: bool = False) -> str:
    options = "".join(f'<option value="{p}">{p}</option>' for p in range(players))
    heads = [
        ("player", "player"),
        ("key", "information set"),
        *([("reach", "reached")] if reach else []),
        ("mixing", "mixing"),
    ]
    head = "".join(f'<th scope="col" data-sort="{by}"><button type="button">{text}</button></th>' for by, text in heads)
    cols = "".join(f'<col class="{by}">' for by, _ in heads)
    return (
        f"<div{' hidden' if hidden else ''}>"
        '<div class="controls">'
        '<label>search<input id="search" type="search" autocomplete="off" spellcheck="false"></label>'
        f'<label>player<select id="player"><option value="">all</option>{options}</select></label>'
        '<button id="previous" type="button">Previous</button><button id="next" type="button">Next</button>'
        '<span id="status" role="status" aria-live="polite"></span></div>'
        f'<table id="strategy"><colgroup>{cols}<col></colgroup>'
        f'<thead><tr>{head}<th scope="col">strategy</th></tr></thead>'
        '<tbody id="rows"></tbody></table></div>'
    )


def _facts(lowered: LoweredGame, nash_value: Sequence[Any] | None) -> list[tuple[str, str]]:
    tree = lowered.tree
    low, high = payoff_range(tree)
    known = "not known" if nash_value is None else ", ".join(f"{float(payoff):.9g}" for payoff in nash_value)
    return [
        ("players", f"{tree.num_players}, {payoff_sum(tree)}"),
        ("histories", f"{tree.num_histories:,}"),
        ("terminal histories", f"{tree.num_terminals:,}"),
        ("depth", f"{tree.depth:,} (most actions on a path, chance included)"),
        ("information sets", per_player(tree.num_infosets)),
        ("sequences", f"{per_player(tree.num_sequences)} (the empty ones included)"),
        ("payoffs", f"{low:g} to {high:g}"),
        ("equilibrium payoffs", known),
    ]


def _made(lowered: LoweredGame, profile: Profile, made: Mapping[str, str] | None) -> list[tuple[str, str]]:
    import jax

    from jaxcfr import __version__

    rows = [(str(name), str(value)) for name, value in (made or {}).items()]
    rows.append(("regret variant", profile.variant or "not known"))
    rows.append(("iterations", "not known" if profile.iterations is None else f"{profile.iterations:,}"))
    if profile.seed is not None:
        rows.append(("seed", str(profile.seed)))
    if profile.game_name != lowered.name:
        rows.append(("profile made for", profile.game_name))
    versions = (
        f"jaxcfr {__version__}, jax {jax.__version__}, numpy {np.__version__}, Python {platform.python_version()}"
    )
    return [*rows, ("versions", versions)]


def _rows(rows: Sequence[tuple[str, str]]) -> str:
    lines = "".join(
        f'<tr><th scope="row">{_escape(name)}</th><td>{_value(name, text)}</td></tr>' for name, text in rows
    )
    return f'<div class="scroll"><table class="facts"><tbody>{lines}</tbody></table></div>'


def _value(name: str, text: str) -> str:
    return f"<code>{_escape(text)}</code>" if name in ("command", "regret variant") else _escape(text)


def _made_by(profile: Profile) -> str:
    made = profile.variant or "a profile"
    return made if profile.iterations is None else f"{made}, {profile.iterations:,} iterations"


# The strategy as data


def _columns(lowered: LoweredGame, profile: Profile, strategy: Any) -> dict[str, Any]:
    """The information sets of the game by column, for the script of the page."""
    reach = _reach(lowered, strategy)
    infosets = {(infoset.player, infoset.key): infoset for infoset in profile.infosets()}
    names = [(player, key) for player, keys in enumerate(lowered.infoset_keys) for key in keys]
    kept: Sequence[int] = range(len(names))
    if len(names) > MAX_INFOSETS:
        order = kept if reach is None else np.argsort(-reach, kind="stable").tolist()
        kept = sorted(order[:MAX_INFOSETS])
    menus: dict[tuple[str, ...], int] = {}
    menu: list[int] = []
    probabilities: list[float] = []
    for number in kept:
        infoset = infosets[names[number]]
        labels = tuple(printable(label) or "''" for label in infoset.labels)
        menu.append(menus.setdefault(labels, len(menus)))
        probabilities += map(_rounded, infoset.probabilities.tolist())
    return {
        "players": lowered.tree.num_players,
        "menus": list(menus),
        "player": [names[number][0] for number in kept],
        "keys": [key_text(names[number][1]) for number in kept],
        "menu": menu,
        "probabilities": probabilities,
        "reach": None if reach is None else [_rounded(float(reach[number])) for number in kept],
    }


def _rounded(probability: float) -> float:
    """A probability in a few digits; only what is exactly 1 becomes 1."""
    return float(f"{probability:.6g}") if probability == 1 else min(float(f"{probability:.6g}"), 0.999999)


def _reach(lowered: LoweredGame, strategy: Any) -> np.ndarray | None:
    """The probability that a play comes to each information set, player after player; None without histories."""
    tree = lowered.tree
    if tree.histories is None:
        return None
    chance = np.asarray(tree.histories.chance_reach, np.float64)
    for treeplex, values, sequence in zip(tree.treeplexes, strategy, tree.histories.sequence, strict=True):
        chance = chance * np.asarray(treeplex.realization_weights(values), np.float64)[np.asarray(sequence)]
    player, infoset = np.asarray(tree.histories.player), np.asarray(tree.histories.infoset)
    reach = [
        np.bincount(infoset[player == p], chance[player == p], minlength=count)
        for p, count in enumerate(tree.num_infosets)
    ]
    return np.minimum(np.concatenate(reach), 1.0)  # rounding may carry a sum beyond 1


# Text


def _escape(text: str) -> str:
    return html.escape(printable(text))


def _json(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it ends one, or begins a comment."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@functools.cache
def _asset(name: str) -> str:
    return importlib.resources.files("jaxcfr.report").joinpath(name).read_text(encoding="utf-8")
