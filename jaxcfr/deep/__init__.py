"""Deep CFR and its kin: regret minimization with networks in place of tables, for games whose tables do not fit.

    trainer = jaxcfr.deep.DeepTrainer("leduc_poker", jaxcfr.deep.DeepCFR(), seed=0)
    trainer.train(100, eval_every=10)
    profile = trainer.profile()

An algorithm is a frozen dataclass of settings (`DeepCFR`, `SDCFR`, `DREAM`, `ESCHER`, `DoubleNeuralCFR`,
`DeepDCFRPlus`, `DeepPDCFRPlus`), a network a pair of pure functions (`mlp`, `linear`, `tabular`, or anyone's), and a
whole iteration one jitted program (`init`, `run`, `iterate`), which can be vmapped over keys and over settings.
"""

from jaxcfr.deep.algorithms import (
    DREAM,
    ESCHER,
    SDCFR,
    DeepAlgorithm,
    DeepCFR,
    DeepDCFRPlus,
    DeepPDCFRPlus,
    DeepState,
    DoubleNeuralCFR,
    init,
    iterate,
    run,
)
from jaxcfr.deep.approximators import Approximator, linear, mlp, tabular
from jaxcfr.deep.average import average_networks, average_strategy, current_strategy
from jaxcfr.deep.policies import NetworkPolicy, PastPolicy
from jaxcfr.deep.reservoir import ReservoirBuffer
from jaxcfr.deep.rules import ArrayRules, TreeRules, array_rules, tree_rules
from jaxcfr.deep.trainer import DeepTrainer

__all__ = [
    "DREAM",
    "ESCHER",
    "SDCFR",
    "Approximator",
    "ArrayRules",
    "DeepAlgorithm",
    "DeepCFR",
    "DeepDCFRPlus",
    "DeepPDCFRPlus",
    "DeepState",
    "DeepTrainer",
    "DoubleNeuralCFR",
    "NetworkPolicy",
    "PastPolicy",
    "ReservoirBuffer",
    "TreeRules",
    "array_rules",
    "average_networks",
    "average_strategy",
    "current_strategy",
    "init",
    "iterate",
    "linear",
    "mlp",
    "run",
    "tabular",
    "tree_rules",
]
