"""Other payoffs at the end of a play: how solved successors feed the game above them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxcfr.analytics import require_constant_sum
from jaxcfr.errors import GameError, NotTwoPlayerConstantSumError, OptionError
from jaxcfr.games import checks
from jaxcfr.games.base import format_path
from jaxcfr.subgames.whole import Whole
from jaxcfr.tree.lower import LoweredGame
from jaxcfr.tree.nodes import TERMINAL

TerminalFunction = Callable[[Any], Sequence[float] | None]
"""From a terminal history to the payoffs that take the place of its own, or None to keep them."""


def with_terminals(whole: Whole, terminal_fn: TerminalFunction) -> LoweredGame:
    """The game with the payoffs that a function gives to terminal histories.

    Raises:
      GameError: the function returns what no payoffs can be.
      NotTwoPlayerConstantSumError: with them, or without, the game is not two-player constant-sum.
      OptionError: it is no function.
    """
    if not callable(terminal_fn):
        raise OptionError(f"terminal_fn has to be a function of a terminal history, not {terminal_fn!r}")
    require_constant_sum(whole.lowered.tree, "terminal_fn", "change the game's own terminal_returns instead")
    payoffs = whole.nodes.payoffs.copy()

    def look(row: int, history: Any) -> None:
        given = terminal_fn(history)
        if given is not None:
            try:
                payoffs[whole.terminal[row]] = checks.payoffs(given, 2)
            except checks.BrokenRuleError as error:
                where = format_path(whole.path_to(row))
                raise GameError(f"{whole.name}: terminal_fn at {where}: {error}") from None

    whole.visit(look, whole.nodes.player == TERMINAL)
    total = payoffs.sum(1)
    tolerance = 1e3 * np.finfo(whole.lowered.tree.dtype).eps * max(float(np.abs(payoffs).max()), 1e-300)
    off = np.flatnonzero(np.abs(total - whole.nodes.payoffs[0].sum()) > tolerance)
    if len(off):
        row = int(np.flatnonzero(whole.nodes.player == TERMINAL)[off[0]])
        raise NotTwoPlayerConstantSumError(
            f"{whole.name}: terminal_fn gives {payoffs[off[0]].tolist()} at {format_path(whole.path_to(row))}, but "
            f"payoffs of this game sum to {whole.nodes.payoffs[0].sum():g}: they have to go on doing so"
        )
    return dataclasses.replace(whole.lowered, tree=whole.lowered.tree.with_payoffs(jnp.asarray(payoffs)))
