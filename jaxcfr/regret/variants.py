"""The regret variants: what is stored, what is matched, and how the average is weighted.

A variant is a frozen dataclass and a pytree; its hyperparameters are leaves.
Its methods are pure and know nothing of trees: they see tables of regrets
`[A, ...]` with the actions along the first axis. Per information set and
iteration t = 1, 2, ..., with r the counterfactual regrets of the iteration:

    init(zeros)               what is stored before the first iteration
    update(state, r, t)       what is stored after iteration t
    strategy(state, uniform, t)   the strategy of iteration t + 1, from what is stored after t
    gamma_at(t)               iterate t counts (t / (t - 1))^gamma times as much as the one before
    discounts(t)              what update multiplies positive and negative regrets by before it adds r

`[x]+ = max(x, 0)` is `relu(x)`, and `D(t, x) = t^x / (t^x + 1)` is `discount`.
A variant of one's own is any such class (subclass `RegretVariant`, decorate
with `jax.tree_util.register_dataclass`).
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.nn import relu

from jaxcfr.errors import OptionError
from jaxcfr.regret.matching import match
from jaxcfr.regret.schedules import Horizon, Hyperparameter, at, exponent, horizon, hyperparameter


def discount(t: Array, exponent: Any, offset: Any = 1.0) -> Array:
    """`D(t, x) = t^x / (t^x + offset)` for t >= 1, by a sigmoid: no overflow and no inf/inf, whatever the exponent.

    At t = 0 nothing has been stored yet that could be discounted, and any finite value serves.
    """
    later = t > 1
    value = jax.nn.sigmoid(exponent * jnp.log(jnp.where(later, t, 2)) - jnp.log(jnp.asarray(offset, t.dtype)))
    return jnp.where(later, value, 1 / (1 + jnp.asarray(offset, t.dtype))).astype(t.dtype)


class Regrets(NamedTuple):
    """Stored regrets R."""

    regret: Array


class PredictedRegrets(NamedTuple):
    """Stored regrets R and the prediction m of the next ones: the last r."""

    regret: Array
    prediction: Array


@dataclasses.dataclass(frozen=True)
class RegretVariant:
    """Base class of regret variants, and what one of your own defines.

    A variant is a frozen dataclass, registered as a pytree, whose fields are its hyperparameters:

        @jax.tree_util.register_dataclass
        @dataclasses.dataclass(frozen=True)
        class Floored(jaxcfr.RegretVariant):
            floor: float = 0.0

            def update(self, state, r, t):
                return state._replace(regret=jnp.maximum(state.regret + r, self.floor))

    Only `update` has to be defined. A field is one number or a schedule; other arrays, such as the weights of a
    network, are kept in a dict or a tuple, and are leaves as well. Regrets come in tables `[A, ...]` with the actions
    of an information set along the first axis; entries that are no legal action hold zeros.
    """

    elementwise: ClassVar[bool] = False
    """Whether the rules treat trailing axes, and hyperparameters with these axes, entry by entry.

    If so, `vmap` over runs puts the axis of the batch last, where it vectorises; else first, which is always right.
    Reductions over the actions (`axis=0`) are fine.
    """

    starts_uniform: ClassVar[bool] = False
    """Whether what `init` makes is played as the uniform strategy; if so, nothing has to be computed before a run."""

    def __init_subclass__(cls, **options: Any) -> None:
        """The two promises are a class's own: what inherits rules and changes some has to make them anew."""
        super().__init_subclass__(**options)
        for promise in ("elementwise", "starts_uniform"):
            if promise not in cls.__dict__:
                setattr(cls, promise, False)

    def init(self, zeros: Array) -> Any:
        """What is stored before the first iteration: by default `Regrets(regret=zeros)`, a named tuple."""
        return Regrets(zeros)

    def update(self, state: Any, r: Array, t: Array) -> Any:
        """What is stored after iteration t (a float scalar, from 1), given its counterfactual regrets r."""
        raise OptionError(f"{type(self).__name__} has to define update(state, r, t)")

    def strategy(self, state: Any, uniform: Array, t: Array) -> Array:
        """The strategy of iteration t + 1 from what is stored after t: by default regret matching.

        `uniform` is the uniform strategy; it is positive exactly at legal actions.
        """
        return match(state.regret, uniform)

    def gamma_at(self, t: Array) -> Any:
        """The average's exponent: iterate t counts (t / (t - 1))^gamma times as much as the one before."""
        return 0.0

    def discounts(self, t: Array) -> tuple[Any, Any]:
        """What `update` multiplies positive and negative stored regrets by at iteration t, before r is added.

        `solve_game` and `safe_pruning` leave alone what no walk comes to, and make up for the discounts when one does.
        By default 1.
        """
        return 1.0, 1.0

    @property
    def floored(self) -> bool:
        """Whether no stored regret is ever negative."""
        return False

    @property
    def total(self) -> Any:
        """The last iteration the hyperparameters are defined for, or None."""
        ends = [horizon(getattr(self, field.name)) for field in dataclasses.fields(self)]
        return next((end for end in ends if end is not None), None)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Vanilla(RegretVariant):
    """Counterfactual regret minimization (Zinkevich et al. 2007)."""

    elementwise: ClassVar[bool] = True
    starts_uniform: ClassVar[bool] = True

    def update(self, state: Regrets, r: Array, t: Array) -> Regrets:
        return Regrets(state.regret + r)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class CFRPlus(RegretVariant):
    """CFR+ (Tammelin 2014): regrets are floored at zero."""

    elementwise: ClassVar[bool] = True
    starts_uniform: ClassVar[bool] = True

    gamma: Hyperparameter = 1.0

    def update(self, state: Regrets, r: Array, t: Array) -> Regrets:
        return Regrets(relu(state.regret + r))

    @property
    def floored(self) -> bool:
        """No regret is negative."""
        return True

    def gamma_at(self, t: Array) -> Any:
        return at(self.gamma, t)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DCFR(RegretVariant):
    """Discounted CFR (Brown and Sandholm 2019): positive and negative regrets are discounted apart."""

    elementwise: ClassVar[bool] = True
    starts_uniform: ClassVar[bool] = True

    alpha: Hyperparameter = 1.5
    beta: Hyperparameter = 0.0
    gamma: Hyperparameter = 2.0

    def update(self, state: Regrets, r: Array, t: Array) -> Regrets:
        positive, negative = self.discounts(t)
        return Regrets(state.regret * jnp.where(state.regret > 0, positive, negative) + r)

    def discounts(self, t: Array) -> tuple[Array, Array]:
        return discount(t - 1, at(self.alpha, t)), discount(t - 1, at(self.beta, t))

    def gamma_at(self, t: Array) -> Any:
        return at(self.gamma, t)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DCFRPlus(RegretVariant):
    """DCFR+ (Xu et al. 2022, Eq. 5): discounted, then floored at zero."""

    elementwise: ClassVar[bool] = True
    starts_uniform: ClassVar[bool] = True

    alpha: Hyperparameter = 1.5
    gamma: Hyperparameter = 4.0
    offset: Hyperparameter = 1.0

    def update(self, state: Regrets, r: Array, t: Array) -> Regrets:
        positive, _ = self.discounts(t)
        return Regrets(relu(state.regret * positive + r))

    def discounts(self, t: Array) -> tuple[Array, Any]:
        return discount(t - 1, at(self.alpha, t), at(self.offset, t)), 1.0

    @property
    def floored(self) -> bool:
        """No regret is negative."""
        return True

    def gamma_at(self, t: Array) -> Any:
        return at(self.gamma, t)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PCFRPlus(RegretVariant):
    """Predictive CFR+ (Farina et al. 2021); with `trust` below 1 its asymmetric form (Meng et al. 2026)."""

    elementwise: ClassVar[bool] = True
    starts_uniform: ClassVar[bool] = True

    gamma: Hyperparameter = 2.0
    trust: Hyperparameter = 1.0

    def init(self, zeros: Array) -> PredictedRegrets:
        return PredictedRegrets(zeros, zeros)

    def update(self, state: PredictedRegrets, r: Array, t: Array) -> PredictedRegrets:
        return PredictedRegrets(relu(state.regret + r), r)

    def strategy(self, state: PredictedRegrets, uniform: Array, t: Array) -> Array:
        return match(state.regret + at(self.trust, t) * state.prediction, uniform)

    @property
    def floored(self) -> bool:
        """No regret is negative."""
        return True

    def gamma_at(self, t: Array) -> Any:
        return at(self.gamma, t)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PDCFRPlus(RegretVariant):
    """Predictive discounted CFR+ (Xu et al. 2024)."""

    elementwise: ClassVar[bool] = True
    starts_uniform: ClassVar[bool] = True

    alpha: Hyperparameter = 2.3
    gamma: Hyperparameter = 5.0

    def init(self, zeros: Array) -> PredictedRegrets:
        return PredictedRegrets(zeros, zeros)

    def update(self, state: PredictedRegrets, r: Array, t: Array) -> PredictedRegrets:
        positive, _ = self.discounts(t)
        return PredictedRegrets(relu(state.regret * positive + r), r)

    def discounts(self, t: Array) -> tuple[Array, Any]:
        return discount(t - 1, at(self.alpha, t)), 1.0

    def strategy(self, state: PredictedRegrets, uniform: Array, t: Array) -> Array:
        return match(state.regret * discount(t, at(self.alpha, t)) + state.prediction, uniform)

    @property
    def floored(self) -> bool:
        """No regret is negative."""
        return True

    def gamma_at(self, t: Array) -> Any:
        return at(self.gamma, t)


def vanilla() -> Vanilla:
    """CFR: `R + r`, uniform average. Zinkevich et al. 2007."""
    return Vanilla()


def cfr_plus() -> CFRPlus:
    """CFR+: `[R + r]+`, average weighted by t. Tammelin 2014."""
    return CFRPlus(1.0)


def linear_cfr() -> DCFR:
    """Linear CFR: `R (t - 1) / t + r`, average weighted by t; the same as `dcfr(1, 1, 1)`. Brown & Sandholm 2019."""
    return DCFR(1.0, 1.0, 1.0)


def dcfr(alpha: Hyperparameter = 1.5, beta: Hyperparameter = 0.0, gamma: Hyperparameter = 2.0) -> DCFR:
    """Discounted CFR: `R D(t-1, alpha)` where R > 0, else `R D(t-1, beta)`; then `+ r`; average weighted by t^gamma.

    Brown & Sandholm 2019. Each hyperparameter may be a schedule of t.

    Raises:
      OptionError: a hyperparameter is no number and no schedule, or gamma lies outside of 0 to 100.
    """
    return DCFR(hyperparameter("alpha", alpha), hyperparameter("beta", beta), exponent("gamma", gamma))


def dcfr_plus(alpha: Hyperparameter = 1.5, gamma: Hyperparameter = 4.0, offset: Hyperparameter = 1.0) -> DCFRPlus:
    """DCFR+, the default variant: `[R D(t-1, alpha) + r]+`, average weighted by t^gamma. Xu et al. 2022, Eq. 5.

    `offset` is the constant in the discount's denominator, `t^alpha / (t^alpha + offset)`. It is 1; parts of the
    literature print alpha there, and published codes that use 1.5 are reproduced with `offset=1.5`.

    Raises:
      OptionError: a hyperparameter is no number and no schedule, or gamma or offset is negative.
    """
    return DCFRPlus(hyperparameter("alpha", alpha), exponent("gamma", gamma), hyperparameter("offset", offset, 0.0))


def pcfr_plus(gamma: Hyperparameter = 2.0) -> PCFRPlus:
    """Predictive CFR+: `[R + r]+`, played is `[R + m]+` with m = the last r; t^gamma. Farina et al. 2021.

    Raises:
      OptionError: gamma is no number and no schedule, or lies outside of 0 to 100.
    """
    return PCFRPlus(exponent("gamma", gamma))


def pdcfr_plus(alpha: Hyperparameter = 2.3, gamma: Hyperparameter = 5.0) -> PDCFRPlus:
    """Predictive discounted CFR+: `[R D(t-1, alpha) + r]+`, played is `[R D(t, alpha) + m]+`; t^gamma.

    Xu et al. 2024.

    Raises:
      OptionError: a hyperparameter is no number and no schedule, or gamma lies outside of 0 to 100.
    """
    return PDCFRPlus(hyperparameter("alpha", alpha), exponent("gamma", gamma))


def sapcfr_plus(gamma: Hyperparameter = 2.0) -> PCFRPlus:
    """Simple asymmetric predictive CFR+: `pcfr_plus` played from `[R + m/3]+`. Meng et al. 2026.

    Raises:
      OptionError: gamma is no number and no schedule, or lies outside of 0 to 100.
    """
    return PCFRPlus(exponent("gamma", gamma), 1 / 3)


def hs_dcfr(gamma_init: float, total: float) -> DCFR:
    """DCFR with hyperparameter schedules over a run of `total` iterations.

    alpha = 1 + 3t/total, beta = -1 - 2t/total, gamma = gamma_init - 5t/total (usual gamma_init: 30 or 15).
    Zhang et al. 2024, Eq. 4. Going on past `total` raises `HorizonError`, or gives NaN where it is traced.

    Raises:
      OptionError: an argument is no number, or the exponents of the average would turn negative.
    """
    gamma = _hs_gamma(gamma_init, total)
    return DCFR(Horizon(1.0, 3.0, gamma.total), Horizon(-1.0, -2.0, gamma.total), gamma)


def hs_cfr_plus(gamma_init: float, total: float) -> CFRPlus:
    """CFR+ with the gamma schedule of `hs_dcfr`. Zhang et al. 2024."""
    return CFRPlus(_hs_gamma(gamma_init, total))


def hs_pcfr_plus(gamma_init: float, total: float) -> PCFRPlus:
    """Predictive CFR+ with the gamma schedule of `hs_dcfr`. Zhang et al. 2024."""
    return PCFRPlus(_hs_gamma(gamma_init, total))


def _hs_gamma(gamma_init: float, total: float) -> Horizon:
    # gamma_init - 5 is the last exponent of the average.
    return Horizon(exponent("gamma_init", gamma_init, 5.0), -5.0, hyperparameter("total", total, 1.0))


VARIANTS = {
    factory.__name__: factory
    for factory in (
        vanilla,
        cfr_plus,
        linear_cfr,
        dcfr,
        dcfr_plus,
        pcfr_plus,
        pdcfr_plus,
        hs_dcfr,
        hs_cfr_plus,
        hs_pcfr_plus,
        sapcfr_plus,
    )
}
"""Every variant's factory by name."""
