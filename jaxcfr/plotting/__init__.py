"""Pictures: convergence, strategies, small game trees, sweeps, trajectories. They need matplotlib.

Every function takes what users have in hand, draws into `ax` or into a new
figure, and returns the matplotlib `Axes`; `save` writes it to a file. Labels
say whose strategy a number belongs to: in CFR it is the *average* strategy
that approaches an equilibrium, the last iterate need not.
"""

from jaxcfr.plotting.common import save
from jaxcfr.plotting.curves import convergence
from jaxcfr.plotting.paths import trajectories
from jaxcfr.plotting.strategies import strategy
from jaxcfr.plotting.sweeps import sweep
from jaxcfr.plotting.trees import game_tree

__all__ = ["convergence", "game_tree", "save", "strategy", "sweep", "trajectories"]
