"""Odd games and odd circumstances that once went wrong."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import jaxcfr
from jaxcfr.regret import average as averages


@dataclasses.dataclass(frozen=True)
class Node:
    """A history written out: `kind` is "terminal", "chance" or a player's number."""

    kind: Any
    key: Hashable = None
    children: tuple[Node, ...] = ()
    chance: tuple[float, ...] = ()
    payoffs: tuple[float, ...] = ()
    wrap: Callable[[Any], Any] = list
    """What `chance_outcomes` and `legal_actions` return: a list, an iterator, an array."""

    num_players = 2

    def is_terminal(self) -> bool:
        return self.kind == "terminal"

    def is_chance(self) -> bool:
        return self.kind == "chance"

    def player_to_act(self) -> int:
        return int(self.kind)

    def chance_outcomes(self) -> Any:
        return self.wrap(enumerate(self.chance))

    def legal_actions(self) -> Any:
        return self.wrap(range(len(self.children)))

    def step(self, action: Any) -> Node:
        return self.children[int(action)]

    def terminal_returns(self) -> Sequence[float]:
        return self.payoffs

    def infoset_key(self, player: int) -> Hashable:
        return self.key


def leaf(*payoffs: float) -> Node:
    return Node("terminal", payoffs=payoffs)


def choice(player: int, key: Hashable, *children: Node, wrap: Callable[[Any], Any] = list) -> Node:
    return Node(player, key, children, wrap=wrap)


def chance(probabilities: Sequence[float], *children: Node, wrap: Callable[[Any], Any] = list) -> Node:
    return Node("chance", None, children, tuple(probabilities), wrap=wrap)


def coins(offset: float) -> Node:
    """A 2 by 2 game whose equilibrium is (0.4, 0.6) for both; `offset` is added to all payoffs."""

    def pay(a: int, b: int) -> Node:
        stake = 2.0 if a == b == 0 else 1.0 if a == b else -1.0
        return leaf(offset + stake, offset - stake)

    return choice(0, "a", *(choice(1, "b", *(pay(a, b) for b in range(2))) for a in range(2)))


@pytest.mark.parametrize("wrap", [iter, lambda pairs: (pair for pair in pairs)], ids=["iterator", "generator"])
def test_chance_outcomes_that_can_be_read_only_once_are_kept_or_refused(wrap: Callable[[Any], Any]) -> None:
    """Below the root they once vanished without a word, and with them their share of all payoffs."""
    late = chance([0.5, 0.5], leaf(8.0, -8.0), leaf(0.0, 0.0), wrap=wrap)
    try:
        tree = jaxcfr.lower(choice(0, "root", late, leaf(1.0, -1.0))).tree
    except jaxcfr.errors.GameError:
        return
    assert tree.num_terminals == 3
    np.testing.assert_allclose(jaxcfr.expected_payoffs(tree, jaxcfr.uniform_strategy(tree)), [2.5, -2.5])


def test_what_validate_game_accepts_can_be_lowered() -> None:
    """An array of outcomes, and numpy's integers as the number of players."""

    def array(pairs: Any) -> np.ndarray:
        return np.array(list(pairs))

    class NumpyNode(Node):
        num_players = np.int64(2)  # type: ignore[assignment]

    for game in (
        chance([0.5, 0.5], leaf(1.0, -1.0), leaf(0.0, 0.0), wrap=array),
        NumpyNode("terminal", payoffs=(1.0, -1.0)),
    ):
        jaxcfr.validate_game(game)  # type: ignore[arg-type]
        assert jaxcfr.lower(game).tree.num_players == 2


def test_where_the_rules_fail_is_told_even_if_moves_come_from_a_generator() -> None:
    class Broken(Node):
        def terminal_returns(self) -> Sequence[float]:
            raise ZeroDivisionError("the rules fail")

    game = choice(0, "a", Broken("terminal"), leaf(0.0, 0.0), wrap=lambda moves: (move for move in moves))
    with pytest.raises(Exception, match="the rules fail"):
        jaxcfr.lower(game)


def test_small_payoffs_beside_large_ones_are_not_taken_for_rounding() -> None:
    """A leaf that is not zero-sum makes the game general-sum, however large the payoffs at other leaves."""
    tree = jaxcfr.lower(chance([0.0, 1.0], leaf(1e12, -1e12), leaf(1e-3, 0.0))).tree
    assert not tree.constant_sum
    payoffs = jaxcfr.expected_payoffs(tree, jaxcfr.uniform_strategy(tree))
    np.testing.assert_allclose(payoffs, [1e-3, 0.0], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("offset", [1e3, 1e5])
def test_a_constant_in_all_payoffs_does_not_stop_learning_in_float32(offset: float) -> None:
    """Regrets do not depend on it, and these payoffs are exact in float32."""
    tree = jaxcfr.lower(coins(offset), dtype="float32").tree
    assert tree.constant_sum
    state = jaxcfr.solve(tree, jaxcfr.pcfr_plus(), 2000)
    plain = jaxcfr.lower(coins(0.0), dtype="float32").tree
    assert float(jaxcfr.nash_conv(plain, jaxcfr.average_strategy(tree, state))) < 1e-3


@pytest.mark.parametrize(("offset", "step"), [(1e6, 0.01), (1e5, 0.01), (1e6, 1.0)])
def test_a_constant_does_not_cost_the_digits_in_which_payoffs_differ(offset: float, step: float) -> None:
    """In float32 1e6 has a spacing of 1/16: payoffs are centred before they are rounded to it."""

    def game(constant: float) -> Node:
        rows = [[3.0, -1.0], [-1.0, 1.0]]
        inner = [choice(1, "column", *(leaf(constant + step * x, constant - step * x) for x in row)) for row in rows]
        return choice(0, "row", *inner)

    tree = jaxcfr.lower(game(offset), dtype="float32").tree
    plain = jaxcfr.lower(game(0.0), dtype="float32").tree
    strategy = jaxcfr.average_strategy(tree, jaxcfr.solve(tree, jaxcfr.pcfr_plus(), 2000))
    exploitable = float(jaxcfr.exploitability(plain, strategy))
    assert exploitable < 1e-3 * step
    np.testing.assert_allclose(jaxcfr.exploitability(tree, strategy), exploitable, atol=1e-4 * step)


def test_a_leaf_that_chance_never_reaches_does_not_spoil_a_warm_start() -> None:
    """Its payoff once set the size of the regrets of a warm start, which then never moved again."""
    rows = [[3.0, -1.0], [-1.0, 1.0]]
    inner = [choice(1, "column", *(leaf(x, -x) for x in row)) for row in rows]
    tree = jaxcfr.lower(chance([1.0, 0.0], choice(0, "row", *inner), leaf(1e6, -1e6))).tree
    warm = jaxcfr.state_from_profile(tree, jaxcfr.uniform_strategy(tree))
    state = jaxcfr.solve(tree, jaxcfr.dcfr_plus(), 500, warm)
    assert float(jaxcfr.exploitability(tree, jaxcfr.average_strategy(tree, state))) < 0.01


def test_forgetting_in_a_large_information_set_is_told_quickly() -> None:
    """The check for absent-mindedness once took quadratic time: 10 s for 6,000 histories."""
    late = choice(0, "late", leaf(1.0, -1.0), leaf(0.0, 0.0))
    count = 4000
    game = chance([1 / count] * count, *(choice(0, i, late, late) for i in range(count)))
    start = time.perf_counter()
    with pytest.raises(jaxcfr.errors.RecallError, match="late"):
        jaxcfr.lower(game)
    assert time.perf_counter() - start < 4


@pytest.mark.parametrize("iterations", [2**31, 10**30, "10", None])
def test_iterations_that_make_no_sense_are_an_option_error(iterations: Any) -> None:
    tree = jaxcfr.lower(coins(0.0)).tree
    with pytest.raises(jaxcfr.errors.OptionError, match="iterations"):
        jaxcfr.solve(tree, jaxcfr.vanilla(), iterations)


def test_a_run_does_not_count_past_the_end_of_int32() -> None:
    """t once turned negative."""
    tree = jaxcfr.lower(coins(0.0)).tree
    state = jaxcfr.solve(tree, jaxcfr.vanilla(), 1)._replace(t=jnp.asarray(2**31 - 5, jnp.int32))
    with pytest.raises(jaxcfr.errors.JaxCFRError):
        jaxcfr.solve(tree, jaxcfr.vanilla(), 10, state)


@pytest.mark.parametrize("make", [lambda: jaxcfr.dcfr(gamma=float("inf")), lambda: jaxcfr.dcfr(gamma=10**400)])
def test_an_infinite_exponent_of_the_average_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(jaxcfr.errors.OptionError, match="gamma"):
        make()


def test_sums_that_would_vanish_are_kept_but_outweighed() -> None:
    """A growth of the weight beyond the range of the dtype once left old sums at full weight."""
    total = jnp.asarray([[1.0], [0.0]], jnp.float32)
    factor = averages.power_of_two(jnp.asarray(200.0, jnp.float32), jnp.float32)
    kept = total * averages.table_scale(total, factor)
    assert 0 < float(kept[0, 0]) < 1e-20


@pytest.mark.skipif(sys.platform == "win32", reason="closes file descriptors in a shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_closed_standard_streams_give_no_traceback(closed: str) -> None:
    code = "from jaxcfr.cli import main; import sys; sys.exit(main(['solve', 'nothing']))"
    code_out = "from jaxcfr.cli import main; import sys; sys.exit(main(['games']))"
    run = subprocess.run(
        ["sh", "-c", f'"$0" -c "$1" {closed}', sys.executable, code_out if closed == ">&-" else code],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in run.stderr
    assert run.returncode in ((2,) if closed == "2>&-" else (0, 2, 141))
