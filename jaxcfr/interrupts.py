"""Ctrl-C between the steps of a run."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_early: list[int] = []
"""Signals that came before a run began, in a process that watches them."""


def watch_signals() -> None:
    """Lets Ctrl-C raise `KeyboardInterrupt`, as it does, and be remembered until a run begins.

    While programs are compiled the exception may be raised inside of a callback that drops it.
    """

    def remember(number: int, frame: FrameType | None) -> None:
        _early.append(number)
        raise KeyboardInterrupt

    _early.clear()
    # Elsewhere it is ignored, in a background job, or somebody else's.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, remember)


class Interrupts:
    """Turns Ctrl-C and requests to terminate into a note that a loop looks at between its steps.

    The second one interrupts at once, except while something is being saved.

    Attributes:
      received: the number of the first signal, or None.
    """

    def __init__(self, *numbers: int) -> None:
        self.received: int | None = None
        self._numbers = numbers
        self._holding = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        # Elsewhere than in the main thread handlers cannot be set, and signals do not arrive.
        if threading.current_thread() is threading.main_thread():
            for number in self._numbers:
                self._before[number] = signal.signal(number, self._handle)
            for number in _early:
                if number in self._numbers:
                    self.received = number
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first = self.received is None
        if first:
            self.received = number
        elif not self._holding:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts nothing interrupts."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
