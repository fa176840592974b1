"""A progress bar, in terminals and notebooks."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator
from typing import Any


class ProgressBar:
    """A progress bar on standard error, or in the cell of a notebook; or none."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task: Any = None

    def start(self, text: str, total: int | None = None, done: int = 0) -> None:
        """Begins; without a total there is only a sign of life."""
        if self._bar is not None:
            fields = {"note": "" if total is None else "compiling", "speed": "", "left": ""}
            self._task = self._bar.add_task(printable(text), total=total or None, completed=done, **fields)

    def update(self, done: int, note: str | None = None, speed: float | None = None) -> None:
        """Notes how much is done, what there is to say about it, and iterations a second."""
        if self._bar is None:
            return
        task = self._bar.tasks[self._task]
        fields = {"left": "left"}
        if note is not None or task.fields["note"] == "compiling":
            fields["note"] = note or ""
        if speed is not None:
            fields["speed"] = f"{speed:,.3g} it/s" if speed < 1000 else f"{speed:,.0f} it/s"
        self._bar.update(self._task, completed=done, **fields)


@contextlib.contextmanager
def progress_bar(shown: bool | None = None) -> Iterator[ProgressBar]:
    """A bar while the context lasts; by default only where standard error is a terminal."""
    if not (sys.stderr.isatty() if shown is None else shown):
        yield ProgressBar(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    def text(form: str, **options: Any) -> TextColumn:
        return TextColumn(form, markup=False, table_column=Column(no_wrap=True, **options))

    # In a notebook rich draws with ipywidgets; where these are missing it would warn, and there is one line at the end.
    plain = False if "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets") is None else None
    console = Console(stderr=True, force_jupyter=plain, force_terminal=plain)
    # Numbers that are cut off say nothing: where there is little room, the least of them give way.
    columns = [
        (80, text("{task.description}", overflow="ellipsis", max_width=32)),
        (95, BarColumn(bar_width=None, table_column=Column(ratio=1, max_width=40))),
        (65, MofNCompleteColumn(table_column=Column(no_wrap=True))),
        (50, text("{task.fields[speed]}")),
        (0, TimeRemainingColumn(table_column=Column(no_wrap=True))),
        (0, text("{task.fields[left]}")),
        (0, text("{task.fields[note]}")),
    ]
    bar = Progress(
        *(column for room, column in columns if console.width >= room),
        console=console,
        expand=console.width >= 95,
        transient=shown is None,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        yield ProgressBar(bar)


def printable(text: str) -> str:
    """Text without what would move the cursor or change the colours of a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
