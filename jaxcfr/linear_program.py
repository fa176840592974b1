"""The exact sequence-form linear program of a two-player zero-sum tree: a ground truth for solvers.

Koller, Megiddo and von Stengel (1996): with A the payoff matrix between
sequences and E x = e, F y = f the flow constraints of the two players,

    maximise  f' q   subject to   A' x - F' q >= 0,   E x = e,   x >= 0.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxcfr.analytics import require_constant_sum
from jaxcfr.concrete import is_concrete
from jaxcfr.errors import AnalyticsError, OptionError
from jaxcfr.tree.game_tree import GameTree, Strategy
from jaxcfr.tree.treeplex import Treeplex


class LPSolution(NamedTuple):
    """An exact equilibrium.

    Attributes:
      value: `[2]`, payoffs of both players (float64).
      strategy: one strategy per player, `[L_p]`; uniform at information sets it does not reach.
    """

    value: np.ndarray
    strategy: Strategy


def solve_lp(tree: GameTree) -> LPSolution:
    """Solves a two-player constant-sum tree exactly, with scipy's HiGHS (two linear programs, in float64).

    Memory and time grow faster than linearly with the tree: meant for trees of up to some 100,000 sequences.

    Raises:
      NotTwoPlayerConstantSumError: the tree is not two-player constant-sum.
      OptionError: called under `jit` or `vmap`.
      AnalyticsError: HiGHS did not find an optimum.
    """
    require_constant_sum(tree, "solve_lp", "no linear program finds an equilibrium of such a game")
    if not is_concrete(tree):
        raise OptionError("solve_lp works on concrete trees only, outside of jit and vmap")
    sequences = _leaf_sequences(tree)
    payoffs = np.asarray(tree.terminal_payoffs, np.float64)
    chance = np.asarray(tree.payoffs.leaves.chance, np.float64)
    # A constant sum is split evenly, which makes the game zero-sum.
    constant = float(payoffs[0].sum()) if len(payoffs) else 0.0
    centred = payoffs - constant / 2
    scale = float(np.abs(centred).max()) or 1.0
    strategy, value = [], []
    for player in (0, 1):
        other = 1 - player
        shape = (tree.treeplexes[player].size + 1, tree.treeplexes[other].size + 1)
        entries = chance * centred[:, player] / scale
        matrix = scipy.sparse.coo_matrix((entries, (sequences[player], sequences[other])), shape=shape).tocsr()
        weights, best = _solve_for(tree.treeplexes[player], tree.treeplexes[other], matrix)
        strategy.append(jnp.asarray(_behaviour(tree.treeplexes[player], weights), tree.dtype))
        value.append(best * scale + constant / 2)
    return LPSolution(np.array(value), tuple(strategy))


def _leaf_sequences(tree: GameTree) -> tuple[np.ndarray, np.ndarray]:
    """Both players' flat sequences at every leaf."""
    if tree.histories is None:
        raise OptionError("solve_lp needs a tree with its histories: lower it with histories=True")
    leaves = np.flatnonzero(np.asarray(tree.histories.terminal) >= 0)
    first, second = (np.asarray(sequence)[leaves] for sequence in tree.histories.sequence)
    return first, second


def _flow(treeplex: Treeplex) -> scipy.sparse.csr_matrix:
    """Constraints: the actions of an information set share what its parent carries; the empty sequence carries 1."""
    count = treeplex.num_infosets
    indices, offsets = treeplex.sequence_indices()
    owner = np.repeat(np.arange(count), np.diff(offsets))
    rows = np.concatenate([owner, np.arange(count), [count]])
    columns = np.concatenate([indices, np.asarray(treeplex.parent), [treeplex.size]])
    values = np.concatenate([np.ones(len(indices)), -np.ones(count), [1.0]])
    return scipy.sparse.coo_matrix((values, (rows, columns)), shape=(count + 1, treeplex.size + 1)).tocsr()


def _solve_for(own: Treeplex, other: Treeplex, matrix: scipy.sparse.csr_matrix) -> tuple[np.ndarray, float]:
    """The maximin realization weights of a player and their worth."""
    import scipy.optimize  # takes as long to import as the rest of this library

    flow, other_flow = _flow(own), _flow(other)
    # Padding is no sequence: its weights are pinned to zero, and its constraints are empty.
    legal = np.append(np.asarray(own.uniform) > 0, True)
    other_legal = np.append(np.asarray(other.uniform) > 0, True)
    num_weights, num_duals = own.size + 1, other.num_infosets + 1
    objective = np.zeros(num_weights + num_duals)
    objective[-1] = -1.0  # q of the empty sequence's constraint, the value of the game
    inequality = scipy.sparse.hstack([-matrix.T, other_flow.T]).tocsr()[other_legal]
    equality = scipy.sparse.hstack([flow, scipy.sparse.csr_matrix((flow.shape[0], num_duals))]).tocsr()
    right = np.zeros(flow.shape[0])
    right[-1] = 1.0
    bounds = np.full((num_weights + num_duals, 2), (-np.inf, np.inf))
    bounds[:num_weights] = np.stack([np.zeros(num_weights), np.where(legal, np.inf, 0.0)], axis=1)
    result = scipy.optimize.linprog(
        objective,
        A_ub=inequality,
        b_ub=np.zeros(inequality.shape[0]),
        A_eq=equality,
        b_eq=right,
        bounds=bounds,
        method="highs",
    )
    if result.status != 0:
        raise AnalyticsError(f"the linear program was not solved: {result.message}")
    return np.maximum(result.x[:num_weights], 0.0), float(-result.fun)


def _behaviour(treeplex: Treeplex, weights: np.ndarray) -> np.ndarray:
    """From realization weights to probabilities; uniform where an information set is not reached."""
    flat = np.asarray(treeplex.uniform, np.float64).copy()
    if not treeplex.num_infosets:
        return flat
    indices, offsets = treeplex.sequence_indices()
    counts = np.diff(offsets)
    total = np.repeat(np.add.reduceat(weights[indices], offsets[:-1]), counts)
    # HiGHS's own feasibility tolerance is 1e-7: below it a weight is noise.
    reached = total > 1e-9
    flat[indices[reached]] = weights[indices[reached]] / total[reached]
    return flat
