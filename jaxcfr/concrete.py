"""The side of the host: numbers that can be looked at, and memory."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import jax


def is_concrete(*values: Any) -> bool:
    """True if no leaf of `values` is being traced, so that checks may look at the numbers."""
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def release_memory() -> None:
    """Gives memory that was freed back to the system, where the allocator has a call for that (glibc).

    Lowering and compiling free hundreds of megabytes which the allocator would keep.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
