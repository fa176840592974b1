"""What there is to say about a game in words, for the command line and reports."""

from __future__ import annotations

import numpy as np

from jaxcfr.tree.game_tree import GameTree


def payoff_range(tree: GameTree) -> tuple[float, float]:
    """The smallest and the largest payoff."""
    payoffs = np.asarray(tree.terminal_payoffs)
    return float(payoffs.min()), float(payoffs.max())


def payoff_sum(tree: GameTree) -> str:
    """What the payoffs of the players sum to: "zero-sum", "constant-sum" or "general-sum"."""
    if tree.num_players == 2:
        return "zero-sum" if tree.zero_sum else "constant-sum" if tree.constant_sum else "general-sum"
    payoffs = np.asarray(tree.terminal_payoffs)
    total = payoffs.astype(np.float64).sum(1)
    tolerance = 16 * np.finfo(payoffs.dtype).eps * np.abs(payoffs).max()
    if np.abs(total).max() <= tolerance:
        return "zero-sum"
    return "constant-sum" if np.ptp(total) <= tolerance else "general-sum"


def promise(tree: GameTree) -> str:
    """One sentence on what CFR promises in this kind of game."""
    if tree.constant_sum:
        return "Exploitability is NashConv / 2; CFR's average strategy approaches an equilibrium, where both are 0."
    if tree.num_players == 1:
        return "There is one player: CFR's average strategy approaches an optimal one, where NashConv is 0."
    kind = f"{tree.num_players} players" if tree.num_players > 2 else "general-sum payoffs"
    return (
        f"In a game with {kind} CFR promises only that the joint play of all iterations approaches a coarse correlated "
        "equilibrium; the average strategies need not be a Nash equilibrium, so their NashConv may stay above 0."
    )


def per_player(counts: tuple[int, ...]) -> str:
    """Counts of the players, and their sum."""
    shown = " + ".join(f"{count:,}" for count in counts)
    return f"{shown} = {sum(counts):,}" if len(counts) > 1 else shown


def probability_text(value: float) -> str:
    """Four decimals; what is not exactly 0 or 1 does not look so."""
    if value in (0.0, 1.0):
        return f"{value:.0f}"
    if value < 0.00005:
        return "<0.0001"
    return ">0.9999" if value >= 0.99995 else f"{value:.4f}"
