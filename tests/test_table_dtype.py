"""Regrets and averages stored with fewer digits than they are computed with."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxcfr
from jaxcfr import errors
from jaxcfr.regret import average as averages


@pytest.fixture(scope="module")
def leduc():
    return jaxcfr.lower(jaxcfr.load_game("leduc_poker(suit_isomorphism=True)"), dtype="float64").tree


@pytest.mark.parametrize(("dtype", "bound"), [("float32", 1e-5), (jnp.bfloat16, 0.01)])
def test_tables_take_half_the_memory_and_lose_little(leduc, dtype, bound):
    """float32 tables lose next to nothing of float64's exploitability; bfloat16 ones a few thousandths of a chip."""
    variant = jaxcfr.pcfr_plus()
    state = jaxcfr.solve(leduc, variant, 500, table_dtype=dtype)
    for player in state.players:
        assert {leaf.dtype for leaf in jax.tree.leaves((player.regrets, player.average))} == {jnp.dtype(dtype)}
        assert player.strategy.dtype == player.weights.dtype == jnp.float64
    strategy = jaxcfr.average_strategy(leduc, state)
    exact = jaxcfr.average_strategy(leduc, jaxcfr.solve(leduc, variant, 500))
    assert float(jaxcfr.exploitability(leduc, exact)) < 2e-3
    loss = float(jaxcfr.exploitability(leduc, strategy) - jaxcfr.exploitability(leduc, exact))
    assert abs(loss) < bound
    again = jaxcfr.solve(leduc, variant, 300, jaxcfr.solve(leduc, variant, 200, table_dtype=dtype))
    assert all(map(np.array_equal, jax.tree.leaves(state), jax.tree.leaves(again)))


def test_a_narrow_sum_against_exact_arithmetic():
    """Compensation keeps a bfloat16 sum of a thousand terms to four digits; without it two are left."""
    terms = np.random.default_rng(5).random((1000, 40))
    kept = averages.init_sum(jnp.zeros(40, jnp.bfloat16))

    @jax.jit
    def step(kept, term):
        return averages.settle(averages.add(kept, term), jnp.float64)

    for term in terms:
        kept = step(kept, jnp.asarray(term))
    np.testing.assert_allclose(averages.total(kept, jnp.float64), terms.sum(0), rtol=4e-3)


@pytest.mark.parametrize("dtype", ["float16", "int32", "nonsense", 7])
def test_other_dtypes_are_refused(leduc, dtype):
    with pytest.raises(errors.OptionError, match="bfloat16, float32, float64"):
        jaxcfr.solve(leduc, iterations=1, table_dtype=dtype)


def test_wider_than_the_tree_and_too_late(leduc):
    narrow = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), dtype="float32").tree
    with pytest.raises(errors.OptionError, match="one of bfloat16, float32 for a tree in float32"):
        jaxcfr.solve(narrow, iterations=1, table_dtype="float64")
    state = jaxcfr.solve(narrow, iterations=1)
    with pytest.raises(errors.OptionError, match="when it is made"):
        jaxcfr.solve(narrow, iterations=1, state=state, table_dtype="bfloat16")
