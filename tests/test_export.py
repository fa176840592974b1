"""The program for accelerators, which no test machine has: exported and read."""

import re

import jax
import pytest
from jax import export

import jaxcfr


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("name", ["leduc_poker(suit_isomorphism=True)", "kuhn_poker(players=3)"])
def test_the_loop_for_accelerators(platform, name):
    """No float scatter (slow and of no fixed order there), and every matrix product in full precision."""
    tree = jaxcfr.lower(jaxcfr.load_game(name), histories=False, dtype="float32").tree
    solve = jax.jit(lambda tree, n: jaxcfr.solve(tree, jaxcfr.dcfr_plus(), n))
    program = export.export(solve, platforms=[platform])(tree, 10).mlir_module()
    assert "stablehlo.while" in program
    assert "stablehlo.scatter" not in program
    for precision in re.findall(r"stablehlo\.dot_general.*", program):
        assert "HIGHEST, HIGHEST" in precision
