"""The program for accelerators, which no test machine has: exported and read, and its branches run on a CPU."""

import re

import jax
import numpy as np
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
    assert "stablehlo.scatter" not in program
    for precision in re.findall(r"stablehlo\.dot_general.*", program):
        assert "HIGHEST, HIGHEST" in precision
    # A dynamic loop around a static one, whose condition is a counter against a constant.
    assert program.count("stablehlo.while") == 2
    inner = program[program.rindex("stablehlo.while") :]
    bound = re.search(r"stablehlo\.compare +LT, %\w+, %(\w+), +SIGNED", inner)
    assert bound is not None
    assert re.search(rf"%{bound[1]} = stablehlo\.constant dense<16> : tensor<i\d\d>", program)
    # Nothing in the loops waits for the host but the branch that settles the sums, once per 16 iterations at most.
    assert "custom_call" not in program
    # (Branches by platform have been decided: what is left of them returns a constant.)
    lines = program.splitlines()
    decided = re.compile(r" *stablehlo\.return %c\w* : tensor<i32>")
    branches = [k for k, line in enumerate(lines) if re.match(r" *\}, \{", line) and not decided.match(lines[k - 1])]
    assert len(branches) == 1


@pytest.mark.parametrize("name", ["kuhn_poker(players=3)", "goofspiel(num_cards=3)"])
def test_the_branches_for_accelerators_compute_the_same(monkeypatch, name):
    tree = jaxcfr.lower(jaxcfr.load_game(name), histories=False).tree
    expected = jaxcfr.average_strategy(tree, jaxcfr.solve(tree, jaxcfr.pdcfr_plus(), 150))
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *operands, default, **others: default(*operands))
    jax.clear_caches()
    state = jaxcfr.solve(tree, jaxcfr.pdcfr_plus(), 150)
    found = jaxcfr.average_strategy(tree, state)
    resumed = jaxcfr.solve(tree, jaxcfr.pdcfr_plus(), 79, jaxcfr.solve(tree, jaxcfr.pdcfr_plus(), 71))
    jax.clear_caches()
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)
    assert all(map(np.array_equal, jax.tree.leaves(state), jax.tree.leaves(resumed)))
