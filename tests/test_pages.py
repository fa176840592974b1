"""The Python of the README and of all pages runs as it stands; the reference has all public names; the site builds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import quick

import jaxcfr

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


def run(pages, directory):
    """In a process that compiles quickly, as most tests do (see conftest.py)."""
    command = [sys.executable, str(ROOT / "tests" / "run_pages.py"), *map(str, pages)]
    environment = quick.environment(JAX_ENABLE_X64="0")
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=600, env=environment)
    assert result.returncode == 0, result.stderr
    return result


def test_the_python_of_the_readme_runs(tmp_path):
    result = run([ROOT / "README.md"], tmp_path)
    # Among what it prints are facts: the value of Kuhn poker, and that of matching pennies.
    numbers = [float(n) for n in re.findall(r"-?\d+\.\d*(?:e-?\d+)?", result.stdout)]
    assert any(abs(n + 1 / 18) < 1e-3 for n in numbers)


def test_the_python_of_the_pages_runs(tmp_path):
    """All in one process."""
    result = run(PAGES, tmp_path)
    assert all(f"{page}: " in result.stderr for page in PAGES)
    assert "[ 0.2962963 -0.2962963]" in result.stdout  # the linear program agrees on the game of own_game.md: 8/27


def test_a_block_that_fails_is_told_with_its_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\nx = 1\n```\n\n```python\nx += 1\nraise ValueError(x)\n```\n")
    with pytest.raises(AssertionError, match=r'page\.md", line 9') as caught:
        run([page], tmp_path)
    assert "ValueError: 2" in str(caught.value)


def documented():
    text = "\n".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    return re.findall(r"^::: (jaxcfr\S*)$", text, re.MULTILINE)


def test_the_reference_has_every_public_name_once():
    found = [name.removeprefix("jaxcfr.") for name in documented()]
    assert len(found) == len(set(found))
    expected = set(jaxcfr.__all__) - {"deep", "interop", "plotting", "solve", "solve_game"}
    expected |= {"solve.solve", "solve_game.solve_game"}  # named like their modules
    for module in ("deep", "interop", "plotting"):
        expected |= {f"{module}.{name}" for name in getattr(jaxcfr, module).__all__}
    assert set(found) == expected


def test_the_site_builds_and_fetches_nothing(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, env=environment)
    assert result.returncode == 0, result.stderr + result.stdout
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > len(PAGES) + 10
    for page in pages:
        html = page.read_text()
        assert not re.search(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(?:https?:)?//', html), page
        text = re.sub(r"<(pre|code)\b.*?</\1>|<[^>]+>", "", html, flags=re.DOTALL)
        # Markup that was not understood would show.
        broken = re.search(r"^:::|```|\*\*|Args:$|(?<!\w)`", text, re.MULTILINE)
        assert broken is None, (page, text[max(0, broken.start() - 200) : broken.end() + 100])
