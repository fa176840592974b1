"""Runs the Python blocks of pages and the code of notebooks, each in a namespace of its own, all in this process.

    python tests/run_pages.py PAGE...

A block that fails is told with its page and line, or with its notebook and the number of its cell. What a page changes
of JAX's settings and of the environment is set back after it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[tuple[str, str]]:
    """What to call each block, and its text; in a page it stands behind as many empty lines as above it in the page."""
    text = page.read_text()
    if page.suffix == ".ipynb":
        cells = enumerate(json.loads(text)["cells"])
        return [(f"{page}, cell {n}", "".join(cell["source"])) for n, cell in cells if cell["cell_type"] == "code"]
    return [(str(page), "\n" * text.count("\n", 0, found.start(1)) + found[1]) for found in BLOCK.finditer(text)]


def main(pages: list[str]) -> None:
    import jax

    for page in pages:
        x64, environment = jax.config.read("jax_enable_x64"), dict(os.environ)
        began = time.process_time()
        namespace = {"__name__": "__main__"}
        for name, block in blocks(Path(page)):
            exec(compile(block, name, "exec"), namespace)
        jax.config.update("jax_enable_x64", x64)
        os.environ.clear()
        os.environ.update(environment)
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")
        print(f"{page}: {time.process_time() - began:.1f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
