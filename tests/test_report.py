"""Reports: the page says what was computed, escapes every name, and works in a real browser."""

import html
import html.parser
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from odd_game import KEYS, LABELS, SCRIPT, OddGame

import jaxcfr
from jaxcfr import trainer as trainer_module
from jaxcfr.errors import OptionError, ProfileError, StrategyError
from jaxcfr.facts import probability_text
from jaxcfr.profile import key_text
from jaxcfr.report import page as page_module
from jaxcfr.report.curve import curve_svg

CASES = Path(__file__).parent / "cases"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")


class Page(html.parser.HTMLParser):
    """A page as tests want it: the texts of elements, by their path of tags, and the scripts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.scripts, self.tags = [], [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "br", "input", "col"):
            self.open.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1][0] == "script":
            self.scripts[self.open[-1][1].get("id", "")] = data
        elif data.strip():
            self.texts.append((tuple(tag for tag, _ in self.open), data.strip()))

    @property
    def text(self):
        return " ".join(text for path, text in self.texts if "style" not in path)

    @property
    def data(self):
        return json.loads(self.scripts["data"])


# The page


def test_a_page_says_what_was_computed(trainer, kuhn):
    page = Page(jaxcfr.report_page(trainer, nash_value=(-1 / 18, 1 / 18), made={"command": "a <b> & 'c'"}))
    strategy = trainer.strategy()
    gains = np.asarray(jaxcfr.gains(kuhn.tree, strategy))
    for value in (gains.sum(), gains.sum() / 2, gains[0], gains[1]):
        assert f"{value:.4g}" in page.text
    assert f"{float(jaxcfr.expected_payoffs(kuhn.tree, strategy)[0]):.6g}" in page.text
    for words in (
        "kuhn_poker",
        "2, zero-sum",
        "58",
        "6 + 6 = 12",
        "-0.0555555556, 0.0555555556",
        "dcfr_plus:alpha=1.5,gamma=4,offset=1, 40 iterations",
        "a <b> & 'c'",
        f"jaxcfr {jaxcfr.__version__}",
        "4 evaluations",
        "All in units of payoff, computed in float64.",
        "Exploitability is NashConv / 2",
        "Exploitability of the average strategy (units of payoff)",
    ):
        assert words in page.text
    for record in trainer.history:
        assert f"{record['exploitability']:.6g}" in page.text


def test_the_data_is_the_strategy(trainer, kuhn):
    data = Page(jaxcfr.report_page(trainer)).data
    start = 0
    for number, infoset in enumerate(trainer.profile().infosets()):
        menu = data["menus"][data["menu"][number]]
        found = data["probabilities"][start : start + len(menu)]
        start += len(menu)
        assert (data["player"][number], data["keys"][number]) == (infoset.player, infoset.key)
        assert menu == list(infoset.labels)
        assert found == pytest.approx(infoset.probabilities, rel=1e-5, abs=1e-6)
        assert all(
            (p == 1) == (q == 1) and (p == 0) == (q == 0) for p, q in zip(found, infoset.probabilities, strict=True)
        )
    assert start == len(data["probabilities"])


def test_reach_against_all_plays(kuhn):
    rng = np.random.default_rng(0)
    rows = [[rng.dirichlet(np.ones(2)) for _ in range(6)] for _ in range(2)]
    strategy = kuhn.strategy(rows)
    profile = jaxcfr.Profile.from_strategy(kuhn, strategy)
    expected = {}

    def walk(game, reach):
        if game.is_terminal():
            return
        if game.is_chance():
            moves = [(action, float(p)) for action, p in game.chance_outcomes()]
        else:
            key = game.player_to_act(), game.infoset_key(game.player_to_act())
            expected[key] = expected.get(key, 0) + reach
            moves = list(zip(game.legal_actions(), profile.policy(game), strict=True))
        for action, p in moves:
            walk(game.step(action), reach * p)

    walk(jaxcfr.load_game("kuhn_poker"), 1.0)
    data = Page(jaxcfr.report_page(kuhn, profile)).data
    found = dict(zip(zip(data["player"], data["keys"], strict=True), data["reach"], strict=True))
    assert found == pytest.approx(expected, rel=1e-5)
    without = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), histories=False)
    page = Page(jaxcfr.report_page(without, profile))
    assert page.data["reach"] is None
    assert "Reached" not in page.text


def test_names_are_text_and_nothing_else():
    lowered = jaxcfr.lower(OddGame())
    uniform = jaxcfr.uniform_strategy(lowered.tree)
    text = jaxcfr.report_page(lowered, uniform, made={SCRIPT: SCRIPT})
    page = Page(text)
    assert page.data["keys"] == [*map(key_text, KEYS), "?"]
    assert page.data["menus"][0] == list(LABELS)
    assert "odd <game> & $co$: jaxcfr report" in page.text
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert text.count("<script") == text.count("</script") == 2
    assert "<!--" not in text
    assert all(not name.startswith("on") for _, attributes in page.tags for name in attributes)
    # Nothing is loaded from anywhere.
    assert not re.search(r"(?<!-)\b(?:src|href|url|@import)\b\s*[=(\"']", text)
    assert "http" not in text.replace('http-equiv="Content-Security-Policy"', "")
    (policy,) = [a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize(
    "case", ["09_terminal_root", "10_chance_only", "11_one_player", "13_prisoners_dilemma", "08_single_action"]
)
def test_small_games(case):
    trainer = jaxcfr.Trainer(str(CASES / f"{case}.efg"), jaxcfr.full_tree(), workers=1).train(3, eval_every=1)
    page = Page(jaxcfr.report_page(trainer))
    constant_sum = trainer.tree.constant_sum
    assert ("Exploitability of" in page.text) == constant_sum
    assert ("NashConv of the average strategy" in page.text) == (not constant_sum)
    assert ("No player decides anything" in page.text) == (sum(trainer.tree.num_infosets) == 0)


def test_large_games_keep_what_is_reached(monkeypatch, kuhn):
    monkeypatch.setattr(page_module, "MAX_INFOSETS", 5)
    strategy = kuhn.strategy([[[1, 0]] * 6, [[1, 0]] * 6])  # nobody bets
    page = Page(jaxcfr.report_page(kuhn, strategy))
    assert "Of 12 information sets, this page holds the 5 that are reached most." in page.text
    assert page.data["keys"] == ["0", "1", "2", "1p", "2p"]


def test_locked_games(kuhn):
    trainer = jaxcfr.Trainer(kuhn, jaxcfr.full_tree(), locked={0: {"0": {"pass": 0.2, "bet": 0.8}}}, workers=1)
    page = Page(jaxcfr.report_page(trainer.train(50)))
    assert "locked game" in page.text
    assert f"{float(jaxcfr.gains(kuhn.tree, trainer.strategy(), trainer.locks).sum()):.4g}" in page.text


def test_what_is_refused(kuhn, trainer, tmp_path):
    state = jaxcfr.solve(kuhn.tree, iterations=1)
    other = jaxcfr.lower(jaxcfr.load_game("matching_pennies"))
    for arguments, error, message in (
        ((kuhn,), OptionError, "Profile or a strategy"),
        ((kuhn, state), OptionError, "last iterate"),
        ((kuhn.tree, trainer.strategy()), OptionError, "jaxcfr.lower"),
        (("kuhn_poker",), OptionError, "jaxcfr.lower"),
        ((trainer, trainer.profile()), OptionError, "its own profile"),
        ((other, trainer.profile()), ProfileError, "matching_pennies"),
        ((other, trainer.strategy()), StrategyError, "another game"),
    ):
        with pytest.raises(error, match=message):
            jaxcfr.report_page(*arguments)
    for history in ([{"iteration": 1}], [(1, 2)], [{**trainer.history[0], "exploitability": float("nan")}]):
        with pytest.raises(OptionError, match="history"):
            jaxcfr.report_page(kuhn, trainer.profile(), history=history)
    with pytest.raises(OptionError, match="no directory"):
        jaxcfr.write_report(tmp_path / "none" / "r.html", trainer)
    bare = jaxcfr.Trainer(kuhn.tree, jaxcfr.full_tree(), workers=1)
    with pytest.raises(OptionError, match="keys"):
        jaxcfr.report_page(bare)


# The curve


def test_ticks_and_points():
    drawn = curve_svg([(1, 1.0), (10, 0.1), (100, 0.0), (1000, 1e-3)], "gap", width=640, height=300)
    assert drawn.count("<circle") == 3
    assert drawn.count('class="zero"') == 1
    assert [len(points.split()) for points in re.findall(r'points="([^"]*)"', drawn)] == [2, 1]  # 0 breaks the line
    x = {
        float(t.replace(",", "")): float(px) for px, t in re.findall(r'<text x="([\d.]+)"[^>]*middle">([\d,]+)<', drawn)
    }
    assert x[10] - x[1] == pytest.approx(x[1000] - x[100], abs=0.2)
    circles = [float(px) for px in re.findall(r'cx="([\d.]+)"', drawn)]
    assert circles == pytest.approx([x[1], x[10], x[1000]], abs=0.1)


@pytest.mark.parametrize(
    "points",
    [
        [(0, 0.0)],
        [(0, 0.5)],
        [(7, 1e-300)],
        [(0, 1.0), (1, 0.5), (2, 0.25)],
        [(0, 1.0), (10**9, 1e-15)],
        [(5, 0.3), (6, 0.3000001)],
        [(1, 0.0), (2, 0.0)],
        [(n, 1 / n) for n in range(1, 500)],
    ],
)
def test_any_curve_has_ticks_inside(points):
    drawn = curve_svg(points, "gap", width=350, height=250)
    assert "nan" not in drawn
    for horizontal in re.findall(r'<text x="([-\d.]+)"', drawn):
        assert 0 <= float(horizontal) <= 350
    for vertical in re.findall(r'<text x="[^"]*" y="([-\d.]+)"', drawn):
        assert 0 <= float(vertical) <= 250
    assert 2 <= drawn.count('class="grid"') <= 40


# The command


def test_the_command(command, tmp_path):
    path = tmp_path / "r.html"
    path.write_text("before")
    status, out, err = command("report", "kuhn_poker", "--out", path, "-n", 30, "--regret", "cfr_plus")
    assert (status, err) == (0, "")
    assert out == f"The report is written to {path}; it is computed in float64.\n"
    page = Page(path.read_text())
    assert f"jaxcfr report kuhn_poker --out {path} -n 30 --regret cfr_plus" in page.text
    assert "cfr_plus, 30 iterations" in page.text
    assert "6 evaluations" in page.text  # 1, 2, 5, 10, 20, 30
    assert "-0.0555555556, 0.0555555556" in page.text
    assert "float64" in page.text
    profile = tmp_path / "p.npz"
    assert command("solve", "kuhn_poker", "-n", 20, "--out", profile, "--json")[0] == 0
    assert command("report", "kuhn_poker", "--profile", profile, "--out", path)[0] == 0
    page = Page(path.read_text())
    assert "20 iterations" in page.text
    assert "no evaluation on the way" in page.text
    assert sorted(file.name for file in tmp_path.iterdir()) == ["p.npz", "r.html"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kuhn_poker"], "--out"),
        (["kuhn_poker", "--out", "{tmp}/none/r.html"], "no directory"),
        (["kuhn_poker", "--out", "{tmp}"], "directory"),
        (["kuhn_poker", "--out", "{tmp}/p", "--profile", "{tmp}/p"], "same file"),
        (["kuhn_poker", "--out", "{tmp}/r.html", "--profile", "{tmp}/p", "-n", "5"], "--iterations is for solving"),
        (["kuhn_poker", "--out", "{tmp}/r.html", "--profile", "{tmp}/p", "-n", "1000"], "--iterations is for solving"),
        (["kuhn_poker", "--out", "{tmp}/r.html", "--profile", "{tmp}/none"], "none"),
        (["leduc_poker", "--out", "{tmp}/r.html", "--profile", "{tmp}/p"], "no strategy"),
        (["kuhn", "--out", "{tmp}/r.html"], "kuhn_poker"),
        (["kuhn_poker", "--out", "{tmp}/r.html", "--regret", "none"], "variant"),
        (["kuhn_poker", "--out", "{tmp}/r.html", "--target-exploitability", "-1"], "at least 0"),
        (["kuhn_poker(players=3)", "--out", "{tmp}/r.html", "--target-exploitability", "1"], "constant-sum"),
        (["{tmp}/g.efg", "--out", "{tmp}/g.efg"], "same file"),
    ],
)
def test_the_command_refuses(command, arguments, message, tmp_path, kuhn):
    jaxcfr.Profile.from_strategy(kuhn, jaxcfr.uniform_strategy(kuhn.tree)).save(tmp_path / "p")
    shutil.copy(CASES / "08_single_action.efg", tmp_path / "g.efg")
    status, out, err = command("report", *(argument.format(tmp=tmp_path) for argument in arguments))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["g.efg", "p"]


def test_an_interrupted_command_writes_what_there_is(command, tmp_path, monkeypatch):
    evaluate, count = trainer_module.evaluate, []

    def interrupted(*arguments):
        count.append(1)
        if len(count) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return evaluate(*arguments)

    monkeypatch.setattr(trainer_module, "evaluate", interrupted)
    path = tmp_path / "r.html"
    status, out, err = command("report", "kuhn_poker", "--out", path, "-n", 1000)
    assert (status, out) == (130, "")
    told = f"the report is written to {path}; it is computed in float64"
    assert err == f"jaxcfr: stopped after 5 iterations; {told}\n"
    page = Page(path.read_text())
    assert ", 5 iterations" in page.text
    assert "3 evaluations" in page.text


# In a browser


@pytest.fixture(scope="module")
def opened(tmp_path_factory, kuhn, trainer):
    """Opens a page, with the state of its table after `#`; returns what is there after its script has run."""
    directory = tmp_path_factory.mktemp("pages")
    jaxcfr.write_report(directory / "kuhn.html", trainer)
    lowered = jaxcfr.lower(OddGame())
    jaxcfr.write_report(directory / "odd.html", lowered, jaxcfr.uniform_strategy(lowered.tree))
    goofspiel = jaxcfr.lower(jaxcfr.load_game("leduc_poker"))
    jaxcfr.write_report(directory / "many.html", goofspiel, jaxcfr.uniform_strategy(goofspiel.tree))
    empty = jaxcfr.Trainer(str(CASES / "10_chance_only.efg"), jaxcfr.full_tree(), workers=1)
    jaxcfr.write_report(directory / "empty.html", empty)

    def open_page(name, state=""):
        done = subprocess.run(
            [
                CHROMIUM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                f"--user-data-dir={directory / 'browser'}",
                "--virtual-time-budget=2000",
                "--dump-dom",
                f"{(directory / name).as_uri()}{state}",
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return open_page


def keys(dom):
    return [html.unescape(key) for key in re.findall(r'<td class="key">(.*?)</td>', dom, re.DOTALL)]


def status(dom):
    return re.search(r'<span id="status"[^>]*>(.*?)</span>', dom).group(1)


def sorted_by(dom):
    return re.findall(r'<th [^>]*data-sort="(\w+)"[^>]*aria-sort="(\w+ending)"', dom)


@browser
def test_the_table_in_a_browser(opened, trainer):
    dom = opened("kuhn.html")
    profile = trainer.profile()
    assert keys(dom) == [infoset.key for infoset in profile.infosets()]
    chips = re.findall(r'<span class="chip"><i class="dot c\d"></i>(\w+) <b>(.*?)</b></span>', dom)
    shown = [(label, html.unescape(number)) for label, number in chips]
    expected = [
        pair for infoset in profile.infosets() for pair in zip(infoset.labels, infoset.probabilities, strict=True)
    ]
    assert shown == [(label, probability_text(p)) for label, p in expected]
    widths = [float(width) for width in re.findall(r'<span class="c\d" title="[^"]*" style="width: ([\d.e-]+)%', dom)]
    widths += [float(w) for w in re.findall(r'<span class="c\d" style="width: ([\d.e-]+)%', dom)]
    assert sorted(widths) == pytest.approx(sorted(100 * p for _, p in expected), abs=1e-3)
    assert status(dom) == "12 information sets"
    assert sorted_by(dom) == []


@browser
def test_searching_and_sorting_in_a_browser(opened, trainer):
    dom = opened("kuhn.html", "#q=*b&player=0&sort=key&dir=desc")
    assert keys(dom) == ["2pb", "1pb", "0pb"]
    assert status(dom) == "3 of 12 information sets"
    assert sorted_by(dom) == [("key", "descending")]
    dom = opened("kuhn.html", "#sort=mixing&dir=desc&q=P")
    entropy = {
        infoset.key: -sum(p * np.log2(p) for p in infoset.probabilities if p > 0)
        for infoset in trainer.profile().infosets(pattern="p")
    }
    found = keys(dom)
    assert set(found) == set(entropy)
    assert all(entropy[a] >= entropy[b] - 1e-4 for a, b in itertools.pairwise(found))
    for nonsense in ("#sort=__proto__&dir=up&page=-3&player=9&q=", "#page=99", "#%"):
        assert len(keys(opened("kuhn.html", nonsense))) == 12


@browser
def test_pages_in_a_browser(opened):
    dom = opened("many.html", "#page=2&sort=reach&dir=asc")
    assert len(keys(dom)) == 50
    assert status(dom) == "936 information sets, page 2 of 19"
    last = opened("many.html", "#page=1000")
    assert len(keys(last)) == 36
    assert re.search(r'<button id="next"[^>]*disabled', last)


@browser
def test_odd_names_in_a_browser(opened):
    dom = opened("odd.html")
    assert keys(dom) == [*map(key_text, KEYS), "?"]
    assert dom.count("<script") == 2
    assert keys(opened("odd.html", "#q=%3Cscript")) == [SCRIPT]
    assert keys(opened("odd.html", "#q=%24x%5E2%24*")) == ["$x^2$ and $y$"]
    assert "No player decides anything" in opened("empty.html")


CLICKS = """
const log = [], get = (id) => document.getElementById(id);
const note = () => log.push([location.hash, [...document.querySelectorAll("td.key")].map((key) => key.textContent)]);
const click = (by) => document.querySelector(`th[data-sort=${by}] button`).click();
const set = (id, value, event) => { get(id).value = value; get(id).dispatchEvent(new Event(event)); note(); };
click("key"); note(); click("key"); note(); click("key"); note();
set("search", "?b", "input"); set("player", "1", "change");
location.hash = "#q=0&player=0";
setTimeout(() => { note(); document.title = JSON.stringify(log); }, 50);
"""


@browser
def test_clicks_in_a_browser(opened, trainer, tmp_path):
    """What a page's own policy forbids, another script, clicks here."""
    text = re.sub(r"<meta http-equiv[^>]*>", "", jaxcfr.report_page(trainer))
    path = tmp_path / "clicked.html"
    path.write_text(text.replace("</body>", f"<script>{CLICKS}</script></body>"))
    dom = opened(path)
    log = json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dom).group(1)))
    everything = [infoset.key for infoset in trainer.profile().infosets()]
    assert [state for state, _ in log] == [
        "#sort=key&dir=asc",
        "#sort=key&dir=desc",
        "",
        "#q=%3Fb",
        "#q=%3Fb&player=1",
        "#q=0&player=0",
    ]
    assert set(log[0][1]) == set(everything)
    assert log[1][1] == log[0][1][::-1] != everything
    assert log[2][1] == everything
    assert log[3][1] == log[4][1] == ["1b", "2b", "0b"]
    assert log[5][1] == ["0", "0pb"]
    # With its policy the page runs no script but its own.
    path.write_text(jaxcfr.report_page(trainer).replace("</body>", f"<script>{CLICKS}</script></body>"))
    dom = opened(path)
    assert "<title>kuhn_poker: jaxcfr report</title>" in dom
    assert keys(dom) == everything
