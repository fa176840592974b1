"""CFR-D: games larger than memory, solved by decomposition (Burch, Johanson and Bowling 2014)."""

from jaxcfr.decomposition.decompose import Decomposition, decompose
from jaxcfr.decomposition.run import cfr_d
from jaxcfr.decomposition.solution import CFRDSolution, ResolvedSubgame
from jaxcfr.decomposition.solvers import LPSolver, SubgameSolver

__all__ = [
    "CFRDSolution",
    "Decomposition",
    "LPSolver",
    "ResolvedSubgame",
    "SubgameSolver",
    "cfr_d",
    "decompose",
]
