"""The notebooks run from top to bottom.

By default their code runs at small sizes in one process, and one of them in a kernel. `pytest -m slow` runs all of them
at full size in kernels of their own, and keeps them with their outputs where JAXCFR_NOTEBOOKS says.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import nbformat
import pytest
import quick

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "colab").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_valid_and_small(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")
    # The cell that installs is the same everywhere.
    first = nbformat.read(ROOT / "colab" / "quickstart.ipynb", as_version=4)
    assert notebook.cells[1].source == first.cells[1].source
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook.cells)
    assert path.stat().st_size < 20_000


def test_their_code_runs(tmp_path):
    """At small sizes, compiled with few optimisations."""
    command = [sys.executable, str(ROOT / "tests" / "run_pages.py"), *map(str, NOTEBOOKS)]
    environment = quick.environment(JAXCFR_QUICK="1", JAX_ENABLE_X64="0", MPLBACKEND="agg")
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900, env=environment)
    assert result.returncode == 0, result.stderr
    assert all(f"{path}: " in result.stderr for path in NOTEBOOKS)
    assert "the same bits: True" in result.stdout  # many_devices: a checkpoint that went on


def execute(path, directory, monkeypatch, quick):
    client = pytest.importorskip("nbclient")
    monkeypatch.setenv("JAX_ENABLE_X64", "0")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.delenv("JAXCFR_QUICK", raising=False)
    if quick:
        monkeypatch.setenv("JAXCFR_QUICK", "1")
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(directory)}}
    client.NotebookClient(notebook, timeout=1800, kernel_name="python3", resources=resources).execute()
    return notebook


def pictures(notebook):
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output for output in outputs if "image/png" in output.get("data", {})]


def test_one_of_them_runs_in_a_kernel(tmp_path, monkeypatch):
    notebook = execute(ROOT / "colab" / "quickstart.ipynb", tmp_path, monkeypatch, quick=True)
    assert len(pictures(notebook)) == 4
    assert (tmp_path / "strategy.npz").exists()


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_full_size_in_a_kernel(path, tmp_path, monkeypatch):
    notebook = execute(path, tmp_path, monkeypatch, quick=False)
    if kept := os.environ.get("JAXCFR_NOTEBOOKS"):
        Path(kept).mkdir(exist_ok=True)
        nbformat.write(notebook, Path(kept) / path.name)
    assert pictures(notebook) or path.stem == "cfr_d"


@pytest.mark.slow
def test_the_first_cell_installs_from_a_wheel_and_keeps_the_jax_that_is_there(tmp_path):
    """In a fresh environment with an older jax than the newest; needs the package index."""
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "jax<0.9"], check=True)
    versions = "import jax, jaxlib, numpy; print(jax.__version__, jaxlib.__version__, numpy.__version__)"
    before = subprocess.run([python, "-c", versions], capture_output=True, text=True, check=True).stdout
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".git", ".jax_cache", ".venv", "tests"))
    wheel = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(wheel, check=True)
    (found,) = tmp_path.glob("jaxcfr-*.whl")
    cell = nbformat.read(ROOT / "colab" / "quickstart.ipynb", as_version=4).cells[1].source
    cell = cell.replace('SOURCE = ""', f"SOURCE = {found.name!r}")
    cell += "\nimport jaxcfr\nprint(jaxcfr.solve(jaxcfr.lower(jaxcfr.load_game('kuhn_poker')).tree, iterations=10))"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = [python, "-c", cell]
    result = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=900, env=environment)
    assert result.returncode == 0, result.stderr
    assert "SolverState(t=10" in result.stdout
    assert subprocess.run([python, "-c", versions], capture_output=True, text=True, check=True).stdout == before
