"""What the package is made of: versions in one place, bounds that are tested, imports that stay light."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

import jaxcfr

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HEAVY = ["matplotlib", "pyspiel", "open_spiel", "pgx", "optax", "rich", "typer", "IPython", "pandas"]
HEAVY += ["scipy.optimize", "scipy.stats", "jaxcfr.cli", "jaxcfr.deep"]


def test_importing_loads_nothing_that_one_method_needs_alone():
    """`import jaxcfr` takes about half a second beyond jax itself, of which scipy's sparse matrices take a third."""
    code = f"import jaxcfr, sys; print([name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert result.stdout == "[]\n", result.stdout + result.stderr


def test_the_version_is_the_same_everywhere():
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "jaxcfr/__init__.py"
    assert PROJECT["project"]["dynamic"] == ["version"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    logged = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited is not None
    assert logged is not None
    assert cited[1] == logged[1] == jaxcfr.__version__


def test_the_smallest_versions_are_those_that_are_tested():
    """`.ci/lower_bounds` installs the versions of tests/lower_bounds.txt."""
    lines = (ROOT / "tests" / "lower_bounds.txt").read_text().splitlines()
    tested = {name: Version(version) for name, version in (line.split("==") for line in lines if line[0] != "#")}
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = map(Requirement, [*PROJECT["project"]["dependencies"], *extras["plot"], *extras["test"]])
    bounds = {r.name: Version(next(iter(r.specifier)).version) for r in wanted if len(r.specifier) == 1}
    core = {Requirement(text).name for text in PROJECT["project"]["dependencies"]}
    assert core <= tested.keys()
    for name, version in tested.items():
        assert version == bounds[name], name


def test_the_marker_of_types_is_there():
    assert (Path(jaxcfr.__file__).parent / "py.typed").exists()
    assert "Typing :: Typed" in PROJECT["project"]["classifiers"]


def test_scripts_of_the_guide_exist():
    """CONTRIBUTING.md names commands; those in the repository can be run."""
    for script in re.findall(r"\.ci/\w+", (ROOT / "CONTRIBUTING.md").read_text()):
        assert (ROOT / script).stat().st_mode & 0o111, script
