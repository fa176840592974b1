"""Settings for all tests: 64-bit mode, a compilation cache, and reproducible random games."""

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

import jax
import pytest
from hypothesis import settings

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


@pytest.fixture
def quick_compilation() -> Iterator[None]:
    """Compiles programs with few optimisations: twice as fast, and correctness does not hang on them.

    The tests of exact iterations and curves do without it, so that the numbers users get are the ones tested.
    """
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
