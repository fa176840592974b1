"""Runs the Python blocks of pages, each page in a namespace of its own, all in this process.

    python tests/run_pages.py PAGE...

A block that fails is told with its page and line. What a page changes of JAX's settings is set back after it.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[str]:
    """The blocks of a page, each behind as many empty lines as stand above it in the page."""
    text = page.read_text()
    return ["\n" * text.count("\n", 0, found.start(1)) + found[1] for found in BLOCK.finditer(text)]


def main(pages: list[str]) -> None:
    import jax

    for name in pages:
        before = jax.config.read("jax_enable_x64")
        began = time.process_time()
        namespace = {"__name__": "__main__"}
        for block in blocks(Path(name)):
            exec(compile(block, name, "exec"), namespace)
        jax.config.update("jax_enable_x64", before)
        print(f"{name}: {time.process_time() - began:.1f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
