"""For all tests: 64-bit mode, quick compilation, a compilation cache, reproducible random games, shared fixtures."""

import contextlib
import functools
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

import jax
import pytest
import quick
from hypothesis import settings
from jax._src import compiler

import jaxcfr
from jaxcfr import cli

jax.config.update("jax_enable_x64", True)

settings.register_profile("jaxcfr", deadline=None, print_blob=True)
settings.load_profile("jaxcfr")


MAPS_LIMIT = 25_000
"""Memory maps of a process; Linux allows 65,530, and every compiled program takes hundreds."""


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Lets go of compiled programs in time: where the system grants no more memory maps, XLA crashes."""
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MAPS_LIMIT:
        jax.clear_caches()


@functools.cache
def _xla_options() -> dict[str, bool | int]:
    """The compiler's options for quick compilation; nothing where it has no such options."""
    try:
        jax.jit(lambda x: x, compiler_options=quick.XLA_OPTIONS).lower(0.0).compile()
    except Exception:
        return {}
    return quick.XLA_OPTIONS


@contextlib.contextmanager
def compiling_quickly() -> Iterator[None]:
    """Compiles programs with few optimisations: two to three times as fast, and correctness does not hang on them."""
    given, options = compiler.get_compile_options, _xla_options()

    def quickly(*args: Any, env_options_overrides: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        return given(*args, env_options_overrides={**options, **(env_options_overrides or {})}, **kwargs)

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    compiler.get_compile_options = quickly
    yield
    compiler.get_compile_options = given
    jax.config.update("jax_disable_most_optimizations", before)


def is_quick(item: pytest.Item) -> bool:
    return item.get_closest_marker("full_compilation") is None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those with full compilation come first, so that a process changes from one to the other once."""
    items.sort(key=is_quick)


_compiled_quickly: bool | None = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tests compile quickly, fixtures and all, except where they carry the mark `full_compilation`.

    That mark is for tests of exact iterations, bits and curves, so that the numbers users get are the ones tested:
    none of their programs comes from a test that compiled quickly.
    """
    global _compiled_quickly
    if _compiled_quickly not in (None, is_quick(item)):
        jax.clear_caches()
    _compiled_quickly = is_quick(item)
    with compiling_quickly() if _compiled_quickly else contextlib.nullcontext():
        return (yield)


@pytest.fixture(scope="session")
def kuhn() -> jaxcfr.LoweredGame:
    """Kuhn poker, lowered."""
    return jaxcfr.lower(jaxcfr.load_game("kuhn_poker"))


@pytest.fixture(scope="session")
def trainer(kuhn: jaxcfr.LoweredGame) -> jaxcfr.Trainer:
    """A run of 40 iterations with four evaluations: to look at, not to train on."""
    return jaxcfr.Trainer(kuhn, jaxcfr.full_tree(), workers=1).train(40, eval_every=10)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs the command in this process: from arguments to (status, standard output, standard error).

    As in a pipe, whatever the terminal is that the tests were started in.
    """
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = cli.main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return run
