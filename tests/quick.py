"""How most tests compile: with few optimisations, in two to three times less time."""

import os

XLA_OPTIONS = {
    "xla_cpu_use_fusion_emitters": False,  # the older way to emit fused loops
    "xla_cpu_parallel_codegen_split_count": 1,  # of one program; tests run side by side as it is
}


def environment(**more: str) -> dict[str, str]:
    """That of a child process that compiles quickly; `more` goes on top, and flags of XLA besides these."""
    flags = [f"--{name}={str(value).lower()}" for name, value in XLA_OPTIONS.items()]
    quick = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "XLA_FLAGS": " ".join(flags)}
    return {**os.environ, **quick, **more}
