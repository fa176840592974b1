"""Settings for all tests: 64-bit mode, a compilation cache, and reproducible random games."""

import os
from pathlib import Path

os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

import jax
from hypothesis import settings

jax.config.update("jax_enable_x64", True)

settings.register_profile("jaxcfr", deadline=None, print_blob=True)
settings.load_profile("jaxcfr")
