"""Programs in float32, compiled as users' are: what they compute is what float64 computes, to its precision.

A compiler may be wrong for one dtype and one layout only: with jaxlib 0.10.2 a gather fused with the concatenation it
reads from took wrong entries in Liar's dice with five faces, in float32 alone.
"""

import re

import jax
import numpy as np
import pytest

import jaxcfr
from jaxcfr.solve import _run, initial_state

pytestmark = pytest.mark.full_compilation

NAMES = [
    "kuhn_poker(players=3)",
    "leduc_poker(suit_isomorphism=True)",
    "liars_dice(dice_sides=4)",
    "liars_dice(dice_sides=5)",
    "goofspiel(num_cards=4)",
]


@pytest.mark.parametrize("name", NAMES)
def test_float32_against_float64(name):
    """Alike for two iterations; then ties are broken otherwise, and only the distance to equilibrium is alike."""
    gaps = {}
    for dtype in ("float32", "float64"):
        tree = jaxcfr.lower(jaxcfr.load_game(name), dtype=dtype).tree
        for iterations in (2, 100):
            strategy = jaxcfr.average_strategy(tree, jaxcfr.solve(tree, jaxcfr.cfr_plus(), iterations))
            gaps[dtype, iterations] = float(jaxcfr.nash_conv(tree, strategy))
    np.testing.assert_allclose(gaps["float32", 2], gaps["float64", 2], rtol=1e-4)
    assert gaps["float64", 100] < 0.1
    assert gaps["float32", 100] < 2 * gaps["float64", 100] + 1e-4


def test_no_gather_is_fused_with_a_concatenation():
    tree = jaxcfr.lower(jaxcfr.load_game("liars_dice(dice_sides=5)"), dtype="float32", histories=False).tree
    variant = jaxcfr.dcfr_plus()
    state = initial_state(tree, variant)
    if jax.default_backend() != "cpu":
        pytest.skip("fusions on other platforms are others")
    program = _run.lower(tree, variant, state, 10, "alternating", jaxcfr.full_tree()).compile().as_text()
    computations = re.findall(r"^%?fused[\w.\-]* \(.*?\n\}", program, re.DOTALL | re.MULTILINE)
    assert sum(" gather(" in text for text in computations) > 10
    assert not [text for text in computations if " gather(" in text and " concatenate(" in text]
