"""Speed and accuracy, measured: `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks import (
    accelerator,
    accuracy,
    crossing,
    decomposition,
    decomposition_memory,
    deep,
    growth,
    large,
    sampling,
    speed,
    sweeps,
    workers,
)
from benchmarks.common import machine

MODULES = (
    speed,
    growth,
    sweeps,
    accuracy,
    sampling,
    crossing,
    large,
    workers,
    decomposition,
    decomposition_memory,
    deep,
    accelerator,
)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for module in MODULES:
        module.add(commands)
    for command in commands.choices.values():
        command.add_argument("--out", type=Path, help="write the numbers as JSON")
    arguments = parser.parse_args(words)
    result = {"machine": machine(), **arguments.function(arguments)}
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
