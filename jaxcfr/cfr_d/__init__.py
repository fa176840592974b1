"""CFR-D: games larger than memory, solved by decomposition (Burch, Johanson and Bowling 2014)."""

from jaxcfr.cfr_d.decompose import Decomposition, decompose
from jaxcfr.cfr_d.run import cfr_d
from jaxcfr.cfr_d.solution import CFRDSolution, ResolvedSubgame
from jaxcfr.cfr_d.solvers import LPSolver, SubgameSolver

__all__ = [
    "CFRDSolution",
    "Decomposition",
    "LPSolver",
    "ResolvedSubgame",
    "SubgameSolver",
    "cfr_d",
    "decompose",
]
