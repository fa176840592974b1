"""Telling numbers that can be looked at from numbers that are being traced."""

from __future__ import annotations

from typing import Any

import jax


def is_concrete(*values: Any) -> bool:
    """True if no leaf of `values` is being traced, so that checks may look at the numbers."""
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))
