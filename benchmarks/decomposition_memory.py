"""Memory of CFR-D and of a plain solve on Liar's dice, as its faces grow; each run in a process of its own.

CFR-D cuts where the last bid is at least the middle one, and lowers everything from the rules. Memory is that of the
process at its peak (VmHWM), less what an empty JAX process has; a limit is enforced with RLIMIT_DATA, over what an
empty JAX process has mapped. Every run is done twice, so that the second one, which is reported, finds its compiled
programs in a cache: compiling takes some hundred megabytes by itself, whatever the size of the game.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

MB = 1e6
ROOT = Path(__file__).parent.parent


def status(field: str) -> int:
    """A number of /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def child(arguments: argparse.Namespace) -> dict[str, Any]:
    """One run, in this process."""
    import jax
    import jax.numpy as jnp

    import jaxcfr
    from jaxcfr.concrete import release_memory

    jax.block_until_ready(jax.jit(lambda x: x + 1)(jnp.ones(8)))
    empty, mapped = status("VmHWM"), status("VmData")
    if arguments.limit:
        limit = mapped + int(arguments.limit * MB)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    start = time.process_time()
    sides = arguments.faces
    bid = sides if arguments.bid is None else arguments.bid
    game = jaxcfr.load_game(f"liars_dice(dice_sides={sides})")
    result: dict[str, Any] = {"method": arguments.method, "faces": sides, "limit_mb": arguments.limit}
    if arguments.method == "plain":
        tree = jaxcfr.lower(game, histories=False).tree
        result["histories"] = tree.num_histories
        state = jaxcfr.solve(tree, None, arguments.trunk)
        jax.clear_caches()
        result["exploitability"] = float(jaxcfr.exploitability(tree, jaxcfr.average_strategy(tree, state)))
    else:
        cut = jaxcfr.decompose(
            game.array_game(),
            lambda state: state.last >= bid,
            siblings=True,
            from_rules=True,
            memory_limit=int(arguments.memory * MB),
        )
        result["histories"] = cut.num_histories
        result["trunk_histories"] = cut.lowered.tree.num_histories
        result["subgames"] = cut.num_subgames
        jax.clear_caches()  # the programs that expand the game, which are loaded again where they are needed
        gc.collect()
        release_memory()
        result["decomposing_seconds"] = time.process_time() - start
        solution = jaxcfr.cfr_d(cut, arguments.trunk, arguments.subgame)
        jax.clear_caches()  # its programs, before those of solving subgames again are loaded
        gc.collect()
        release_memory()
        result["solving_seconds"] = time.process_time() - start - result["decomposing_seconds"]
        result["exploitability"] = solution.exploitability(arguments.resolve)
    result["seconds"] = time.process_time() - start
    result["peak_mb"] = (status("VmHWM") - empty) / MB
    return result


def measure(
    method: str, faces: int, arguments: argparse.Namespace, cache: str, limit: float = 0
) -> dict[str, Any] | None:
    """One run, in a process of its own; None where it does not fit the limit."""
    words = [sys.executable, "-m", "benchmarks.decomposition_memory", method, str(faces)]
    for name in ("trunk", "subgame", "resolve", "memory"):
        words += [f"--{name}", str(getattr(arguments, name))]
    if arguments.bid is not None:
        words += ["--bid", str(arguments.bid)]
    environment = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    done = subprocess.run([*words, "--limit", str(limit)], env=environment, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        if limit and ("emory" in done.stderr or "alloc" in done.stderr or done.returncode < 0):
            return None
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """The growth of both methods, and who fits the limit."""
    console = Console()
    rows = []
    with tempfile.TemporaryDirectory() as fresh:
        cache = arguments.cache or fresh
        for method, sizes in (("plain", arguments.plain), ("cfr-d", arguments.cfr_d)):
            for faces in sizes:
                warm = argparse.Namespace(**{**vars(arguments), "trunk": 1, "subgame": 1, "resolve": 1})
                measure(method, faces, warm, cache)
                found = measure(method, faces, arguments, cache, arguments.limit)
                rows.append(found or {"method": method, "faces": faces, "limit_mb": arguments.limit, "fits": False})
                console.print(rows[-1], highlight=False)
    table = Table("", "faces", "histories", "peak MB", "exploitability", "CPU s")
    for row in rows:
        if "histories" in row:
            numbers = (f"{row['histories']:,}", f"{row['peak_mb']:.0f}", f"{row['exploitability']:.3g}")
            table.add_row(row["method"], str(row["faces"]), *numbers, f"{row['seconds']:.0f}")
        else:
            table.add_row(row["method"], str(row["faces"]), "", "does not fit", "", "")
    console.print(table)
    return {"rows": rows}


def options(command: argparse.ArgumentParser) -> None:
    """What a run takes."""
    command.add_argument("--trunk", type=int, default=40, help="iterations of the trunk, or of the plain solve")
    command.add_argument("--subgame", type=int, default=20, help="iterations in every subgame")
    command.add_argument("--resolve", type=int, default=100, help="iterations of solving the subgames again")
    command.add_argument("--memory", type=float, default=20, help="memory limit of the decomposition, in MB")
    command.add_argument("--bid", type=int, help="cut where the last bid is at least this; the middle one by default")
    command.add_argument("--limit", type=float, default=0, help="limit of the process, in MB; 0 for none")


def add(commands: Any) -> None:
    """The command line."""
    command = commands.add_parser("cfr-d-memory", help="memory of CFR-D on Liar's dice, against a plain solve")
    options(command)
    command.add_argument("--plain", type=int, nargs="*", default=(5, 6, 7, 8), help="faces")
    command.add_argument("--cfr-d", type=int, nargs="*", default=(5, 6, 7, 8, 9), help="faces")
    command.add_argument("--cache", help="directory of compiled programs; a fresh one by default")
    command.set_defaults(function=run)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("method", choices=("plain", "cfr-d"))
    parser.add_argument("faces", type=int)
    options(parser)
    print(json.dumps(child(parser.parse_args())))
