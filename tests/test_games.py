"""The bundled games: sizes, values, payoffs and keys against published figures, and against OpenSpiel."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from jaxcfr.errors import GameError, GameLookupError, GameTooLargeError, OptionError
from jaxcfr.games import (
    Battleship,
    BiasedCoin,
    DicePoker,
    FirstPriceAuction,
    Goofspiel,
    KuhnPoker,
    LeducPoker,
    LiarsDice,
    MatchingPennies,
    OshiZumo,
    RhodeIsland,
    RockPaperScissors,
    list_games,
    load_game,
    matrix_game,
    normal_form,
)
from jaxcfr.tree.lower import lower

# Histories and information sets per player.
SIZES = {
    "rock_paper_scissors": (13, [1, 1]),
    "matching_pennies": (7, [1, 1]),
    "biased_coin": (11, [2, 1]),
    "biased_coin(q=0)": (6, [1, 1]),
    "kuhn_poker": (58, [6, 6]),
    "kuhn_poker(players=3)": (617, [16, 16, 16]),
    "kuhn_poker(players=4)": (7886, [40, 40, 40, 40]),
    "leduc_poker": (9457, [468, 468]),
    "leduc_poker(suit_isomorphism=True)": (1939, [144, 144]),
    "liars_dice": (294883, [12288, 12288]),
    "liars_dice(dice_sides=3)": (1147, [96, 96]),
    "liars_dice(dice_sides=3,bidding_rule=reset-quantity)": (1147, [96, 96]),
    "liars_dice(numdice=2,dice_sides=2)": (8191, [384, 384]),
    "goofspiel(num_cards=1)": (4, [1, 1]),
    "goofspiel(num_cards=3,imp_info=True,points_order=descending)": (67, [8, 8]),
    "goofspiel(num_cards=3,imp_info=False,points_order=descending)": (67, [10, 10]),
    "goofspiel(num_cards=3,imp_info=True)": (418, [45, 45]),
    "goofspiel(num_cards=3)": (418, [57, 57]),
    "goofspiel(num_cards=4,imp_info=True,points_order=ascending)": (1077, [81, 81]),
    "goofspiel(num_cards=4,imp_info=True,points_order=ascending,num_turns=2)": (213, [11, 11]),
    "goofspiel(num_cards=3,players=3,imp_info=True)": (2551, [57, 57, 57]),
    # Counted by hand: a round of one bet has nine histories, of which three go on.
    "dice_poker": (1 + 3 + 9 * (9 + 3 * (3 + 9 * 9)), [3 * 2 + 3 * 3 * 3 * 2] * 2),
    "dice_poker(dice_sides=2)": (1 + 2 + 4 * (9 + 3 * (2 + 4 * 9)), [2 * 2 + 2 * 3 * 2 * 2] * 2),
    "rhode_island": (1 + 6 + 30 * (9 + 3 * 4 * (9 + 3 * 3 * 9)), [6 * 2 + 6 * 5 * 3 * 2 + 6 * 5 * 4 * 9 * 2] * 2),
    "rhode_island(ranks=4,suits=1)": (
        1 + 4 + 12 * (9 + 3 * 2 * (9 + 3 * 1 * 9)),
        [4 * 2 + 4 * 3 * 3 * 2 + 4 * 3 * 2 * 9 * 2] * 2,
    ),
    "matrix_game": (7, [1, 1]),
    "matrix_game(payoffs='1 2 3; 4 5 6')": (1 + 2 + 6, [1, 1]),
    "battleship": (3029, [133, 337]),
    "oshi_zumo": (6977, [959, 959]),
    "first_price_auction": (291, [4, 4]),
}

SMALL = [
    "rock_paper_scissors",
    "matching_pennies",
    "biased_coin",
    "biased_coin(q=1/3)",
    "kuhn_poker",
    "kuhn_poker(players=3)",
    "leduc_poker",
    "leduc_poker(suit_isomorphism=True)",
    "leduc_poker(ranks=2,suits=3)",
    "leduc_poker(players=3,ranks=2,suit_isomorphism=True)",
    "liars_dice(dice_sides=3)",
    "liars_dice(numdice=2,dice_sides=2)",
    "goofspiel(num_cards=3)",
    "goofspiel(num_cards=3,num_turns=2)",
    "goofspiel(num_cards=3,imp_info=True,players=3,returns_type=point_difference)",
    "matrix_game(payoffs='0 -1/2 1; 0.5 0 -1; -1 1 0')",
    "dice_poker(dice_sides=2)",
    "dice_poker(dice_sides=2,max_raises=2)",
    "rhode_island(ranks=4,suits=1)",
    "oshi_zumo(coins=3,horizon=3)",
    "oshi_zumo(coins=5,size=0,alesia=True,min_bid=2)",
    "battleship",
    "battleship(board_width=3,board_height=1,ship_sizes=[1;1],ship_values=[2;1/2])",
    "battleship(ship_sizes=[1],num_shots=3,allow_repeated_shots=True)",
]
RULES = [*SMALL, "first_price_auction(players=3,max_value=2)", "battleship(loss_multiplier=2)"]


def moves(state: Any) -> list[Any]:
    """Every action or outcome at a history."""
    return [a for a, _ in state.chance_outcomes()] if state.is_chance() else list(state.legal_actions())


def histories(root: Any) -> Any:
    """Every history below `root`, itself included."""
    stack = [root]
    while stack:
        state = stack.pop()
        yield state
        if not state.is_terminal():
            stack.extend(state.step(a) for a in moves(state))


def play(root: Any, *actions: Any) -> Any:
    """The history after some actions."""
    for action in actions:
        root = root.step(action)
    return root


def value_by_lp(root: Any) -> float:
    """The value of a two-player zero-sum game to player 0, by the linear program over the sequence form."""
    optimize = pytest.importorskip("scipy.optimize", reason="the linear program needs scipy: pip install scipy")
    sparse = pytest.importorskip("scipy.sparse", reason="the linear program needs scipy: pip install scipy")
    sequences: list[dict[Any, int]] = [{None: 0}, {None: 0}]
    infosets: list[dict[Any, tuple[int, int]]] = [{}, {}]
    payoffs: dict[tuple[int, int], float] = {}
    stack = [(root, (0, 0), 1.0)]
    while stack:
        state, last, reach = stack.pop()
        if state.is_terminal():
            payoffs[last] = payoffs.get(last, 0.0) + reach * float(state.terminal_returns()[0])
        elif state.is_chance():
            stack.extend((state.step(a), last, reach * float(p)) for a, p in state.chance_outcomes())
        else:
            p = state.player_to_act()
            key = state.infoset_key(p)
            infosets[p].setdefault(key, (len(infosets[p]) + 1, last[p]))
            for a in state.legal_actions():
                sequence = sequences[p].setdefault((key, a), len(sequences[p]))
                stack.append((state.step(a), (sequence, last[1]) if p == 0 else (last[0], sequence), reach))
    flow = []
    for p in range(2):
        matrix = sparse.lil_matrix((len(infosets[p]) + 1, len(sequences[p])))
        matrix[0, 0] = 1
        for row, parent in infosets[p].values():
            matrix[row, parent] = -1
        for key_action, sequence in sequences[p].items():
            if key_action is not None:
                matrix[infosets[p][key_action[0]][0], sequence] = 1
        flow.append(matrix.tocsr())
    n, m, k = len(sequences[0]), len(sequences[1]), flow[1].shape[0]
    rows, columns = zip(*payoffs, strict=True)
    payoff = sparse.coo_matrix((list(payoffs.values()), (rows, columns)), shape=(n, m))
    # Maximise what player 1's best answer leaves: v[0] subject to flow1' v <= payoff' x, x a realization plan.
    result = optimize.linprog(
        [0.0] * n + [-1.0] + [0.0] * (k - 1),
        A_ub=sparse.hstack([-payoff.T, flow[1].T]).tocsr(),
        b_ub=[0.0] * m,
        A_eq=sparse.hstack([flow[0], sparse.csr_matrix((flow[0].shape[0], k))]).tocsr(),
        b_eq=[1.0] + [0.0] * (flow[0].shape[0] - 1),
        bounds=[(0, None)] * n + [(None, None)] * k,
        method="highs",
    )
    assert result.success
    return float(-result.fun)


@pytest.mark.parametrize("spec", SIZES)
def test_sizes(spec: str) -> None:
    """Histories and information sets are as many as published, or as OpenSpiel has them."""
    root = load_game(spec)
    count, infosets = 0, [set() for _ in range(root.num_players)]
    for state in histories(root):
        count += 1
        if not state.is_terminal() and not state.is_chance():
            player = state.player_to_act()
            infosets[player].add(state.infoset_key(player))
    assert (count, [len(s) for s in infosets]) == SIZES[spec]


@pytest.mark.parametrize("spec", SMALL)
def test_payoffs_are_zero_sum_and_chance_is_exact(spec: str) -> None:
    """Payoffs sum to zero exactly, probabilities to one exactly."""
    for state in histories(load_game(spec)):
        if state.is_terminal():
            assert sum(state.terminal_returns()) == 0
            assert moves(state) == []
        elif state.is_chance():
            assert sum(p for _, p in state.chance_outcomes()) == 1
            assert len(state.legal_actions()) == 0


@pytest.mark.parametrize("spec", RULES)
def test_histories_are_values(spec: str) -> None:
    """No history carries a dictionary, every name is the root's, and every key and repr is text."""
    root = load_game(spec)
    for state in histories(root):
        assert not hasattr(state, "__dict__")
        assert state.name == root.name
        assert root.name in repr(state)
        assert all(isinstance(state.infoset_key(p), str) for p in range(root.num_players))


@pytest.mark.parametrize("spec", RULES)
def test_what_players_know_only_grows(spec: str) -> None:
    """Two histories that a player cannot tell apart had parents it could not tell apart either, at least not by keys
    of its own that differ: the keys along a path are determined by the last key.
    """
    root = load_game(spec)
    for player in range(root.num_players):
        seen: dict[Any, tuple[Any, ...]] = {}
        stack = [(root, ())]
        while stack:
            state, before = stack.pop()
            if state.is_terminal():
                continue
            key = state.infoset_key(player)
            path = before if before and before[-1] == key else (*before, key)
            assert seen.setdefault(key, path) == path
            stack.extend((state.step(a), path) for a in moves(state))


@pytest.mark.parametrize("spec", RULES)
def test_an_illegal_action_is_refused(spec: str) -> None:
    """`step` raises `GameError` for what is not legal, everywhere."""
    rng = random.Random(0)
    state = load_game(spec)
    while True:
        for action in (-1, 10**6, "x", None):
            with pytest.raises(GameError, match=r"not a legal action|not an outcome|play has ended"):
                state.step(action)
        if state.is_terminal():
            break
        state = state.step(rng.choice(moves(state)))


@pytest.mark.parametrize("spec", RULES)
def test_labels_are_distinct(spec: str) -> None:
    """The labels of the actions at a history differ."""
    for state in histories(load_game(spec)):
        labels = [state.action_label(a) for a in moves(state)]
        assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(
    "spec",
    [
        "rock_paper_scissors",
        "matching_pennies",
        "kuhn_poker",
        "leduc_poker",
        "leduc_poker(suit_isomorphism=True)",
        "liars_dice(dice_sides=1)",
        "liars_dice(dice_sides=2)",
        "liars_dice(dice_sides=3)",
        "liars_dice(dice_sides=4)",
        "goofspiel(num_cards=3,returns_type=point_difference)",
        "goofspiel(num_cards=4,imp_info=True,points_order=descending)",
        "dice_poker",
        "dice_poker(dice_sides=2)",
        "oshi_zumo(coins=3,horizon=3)",
        pytest.param("rhode_island", marks=pytest.mark.slow),
    ],
)
def test_nash_values_against_a_linear_program(spec: str) -> None:
    """`nash_value` is what the linear program gives."""
    root = load_game(spec)
    value = root.nash_value()
    assert value is not None
    assert float(value[0]) == pytest.approx(value_by_lp(root), abs=2e-11)
    assert value[0] == -value[1]


@pytest.mark.parametrize("q", [0, Fraction(1, 100), 0.3, 0.5, Fraction(2, 3), 0.75, Fraction(3, 4), 0.9, 1, 1.0])
def test_biased_coin_value(q: Any) -> None:
    """The closed form holds for every bias."""
    root = BiasedCoin(q)
    value = root.nash_value()
    assert float(value[0]) == pytest.approx(value_by_lp(root), abs=1e-12)
    assert value[0] == -value[1]
    assert float(value[0]) == pytest.approx(min(8 * float(q) / 3 - 1, 1))


def test_biased_coin_stays_exact() -> None:
    """A fraction in gives fractions out."""
    root = BiasedCoin(Fraction(1, 3))
    assert root.name == "biased_coin(q=1/3)"
    assert root.nash_value() == (Fraction(-1, 9), Fraction(1, 9))
    assert root.chance_outcomes() == ((0, Fraction(1, 3)), (1, Fraction(2, 3)))
    assert BiasedCoin().name == BiasedCoin(0.5).name == "biased_coin"


def test_values_that_are_not_known() -> None:
    """No value is made up."""
    assert KuhnPoker(3).nash_value() is None
    assert LeducPoker(ranks=4).nash_value() is None
    assert LeducPoker(suits=3, suit_isomorphism=True).nash_value() is None
    assert LiarsDice(numdice=2).nash_value() is None
    assert LiarsDice(bidding_rule="reset-quantity").nash_value() is None
    assert Goofspiel(returns_type="total_points").nash_value() is None
    assert Goofspiel(players=3).nash_value() is None
    assert LiarsDice().nash_value() == (Fraction(-7, 258), Fraction(7, 258))


def test_kuhn_plays() -> None:
    """Payoffs and keys of single plays."""
    state = play(KuhnPoker(), 0, 2)
    assert [state.infoset_key(p) for p in (0, 1)] == ["0", "2"]
    assert play(state, 0, 0).terminal_returns() == (-1, 1)
    assert play(state, 0, 1, 0).terminal_returns() == (-1, 1)
    assert play(state, 0, 1, 1).terminal_returns() == (-2, 2)
    assert play(state, 1, 0).terminal_returns() == (1, -1)
    assert play(state, 0, 1).infoset_key(0) == "0pb"
    assert play(KuhnPoker(3), 2, 0, 3, 0, 1, 1, 0).terminal_returns() == (-1, -2, 3)
    assert [KuhnPoker().step(1).infoset_key(p) for p in (0, 1)] == ["1?", "?"]


def test_leduc_plays() -> None:
    """Payoffs and keys of single plays: fold, pair, higher card, split."""
    iso = LeducPoker(suit_isomorphism=True)
    deal = play(iso, 0, 2)
    assert deal.infoset_key(0) == "J "
    assert deal.infoset_key(1) == "K "
    assert deal.legal_actions() == (1, 2)
    assert play(deal, 2).legal_actions() == (0, 1, 2)
    assert play(deal, 2, 2).legal_actions() == (0, 1)
    assert play(deal, 2, 0).terminal_returns() == (1, -1)
    board = play(deal, 2, 2, 1)
    assert board.is_chance()
    assert board.infoset_key(0) == "J rrc/?"
    assert board.chance_outcomes() == ((0, Fraction(1, 4)), (1, Fraction(1, 2)), (2, Fraction(1, 4)))
    pair = play(board, 0)
    assert pair.infoset_key(1) == "K rrc/J "
    assert play(pair, 1, 1).terminal_returns() == (5, -5)
    assert play(board, 1, 2, 2, 1).terminal_returns() == (-13, 13)
    assert play(iso, 1, 1, 1, 1, 0, 2, 1).terminal_returns() == (0, 0)
    assert play(LeducPoker(), 0, 5).infoset_key(1) == "Kh "
    # Three players and a split pot: chips stay exact.
    three = play(LeducPoker(3, True, ranks=2, suits=3), 0, 0, 1, 1, 1, 1, 0, 1, 1, 1)
    assert three.terminal_returns() == (Fraction(1, 2), Fraction(1, 2), -1)


def test_leduc_decks() -> None:
    """Ranks and suits change the deck and the name."""
    assert LeducPoker(ranks=3).name == "leduc_poker"
    assert LeducPoker(ranks=4, suits=3).name == "leduc_poker(ranks=4,suits=3)"
    assert len(LeducPoker(ranks=4, suits=3).chance_outcomes()) == 12
    assert len(LeducPoker(players=4).chance_outcomes()) == 10
    assert LeducPoker(ranks=14).action_label(1) == "0.1"
    with pytest.raises(OptionError, match="4 cards; 4 players and the board need 5 or more"):
        LeducPoker(players=4, ranks=2)


def test_liars_dice_plays() -> None:
    """The highest face is wild; the caller loses when the bid holds."""
    root = LiarsDice()
    deal = play(root, 0, 5)  # a 1 and a wild 6
    assert deal.infoset_key(0) == "1"
    assert root.infoset_key(0) == "??"
    assert root.step(0).infoset_key(0) == "?"
    two_ones = play(deal, 6)
    assert deal.action_label(6) == "2x1"
    assert two_ones.action_label(12) == "liar"
    assert two_ones.infoset_key(1) == "6 2x1"
    assert play(two_ones, 12).terminal_returns() == (1, -1)
    assert play(deal, 7, 12).terminal_returns() == (-1, 1)
    assert play(deal, 11).legal_actions() == range(12, 13)
    assert play(LiarsDice(2, 3), 2, 0, 1, 1).infoset_key(0) == "13"
    assert LiarsDice(bidding_rule="reset-quantity", dice_sides=3).step(0).step(0).action_label(1) == "2x1"
    assert play(LiarsDice(2, 10), 9, 0, 3, 3).infoset_key(0) == "1,10"


def test_goofspiel_plays() -> None:
    """Bids, prizes, ties and what is told."""
    root = Goofspiel(num_cards=3, imp_info=True, points_order="descending", returns_type="point_difference")
    assert root.infoset_key(0) == "3:"
    assert root.infoset_key(1) == "3:?"
    bid = root.step(1)
    assert bid.infoset_key(0) == "3:2?"
    assert bid.infoset_key(1) == "3:"
    told = bid.step(0)
    assert told.infoset_key(0) == "3:2>0 2:"
    assert told.infoset_key(1) == "3:1>0 2:?"
    assert play(told, 2, 2).terminal_returns() == (Fraction(3, 2) - Fraction(1, 2), -1)
    tie = play(Goofspiel(num_cards=3, points_order="ascending"), 1, 1)
    assert tie.infoset_key(1) == "1:2,2>- 2:?"
    assert play(tie, 2, 0).terminal_returns() == (-1, 1)  # 2 points against the last prize, 3
    random_order = Goofspiel(num_cards=3)
    assert random_order.is_chance()
    assert random_order.infoset_key(0) == "?"
    assert Goofspiel(num_cards=4, num_turns=4).name == "goofspiel(num_cards=4)"
    two = play(Goofspiel(num_cards=3, num_turns=2, points_order="descending", returns_type="total_points"), 2, 0, 0, 1)
    assert two.is_terminal()
    assert two.terminal_returns() == (3, 2)


def test_two_move_games() -> None:
    """Who beats whom, and what is seen."""
    rps = RockPaperScissors()
    assert play(rps, 1, 0).terminal_returns() == (1, -1)
    assert play(rps, 1, 2).terminal_returns() == (-1, 1)
    assert play(rps, 2, 2).terminal_returns() == (0, 0)
    assert play(rps, 0).infoset_key(1) == ""
    assert play(rps, 0).infoset_key(0) == "rock"
    assert rps.infoset_key(1) == "?"
    assert rps.infoset_key(0) == ""
    assert play(MatchingPennies(), 1, 1).terminal_returns() == (1, -1)
    assert play(MatchingPennies(), 0, 1).terminal_returns() == (-1, 1)


def test_large_games_start_at_once() -> None:
    """The largest options make a root and a play without walking anything."""
    for spec in ("kuhn_poker(players=10)", "leduc_poker(players=10,ranks=100,suits=5)", "goofspiel(num_cards=200)"):
        rng = np.random.default_rng(0)
        state = load_game(spec)
        while not state.is_terminal():
            state = state.step(state.sample_chance(rng) if state.is_chance() else state.legal_actions()[-1])
        assert len(state.terminal_returns()) == state.num_players
    assert len(LiarsDice(numdice=100, dice_sides=100)._rules.bids) == 20_000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KuhnPoker(11), "kuhn_poker: players=11 is not allowed; players is an integer from 2 to 10"),
        (lambda: KuhnPoker(True), "players=True is not allowed"),
        (lambda: KuhnPoker(2.0), r"players=2\.0 is not allowed"),
        (lambda: BiasedCoin(1.5), "q is a number from 0 to 1"),
        (lambda: BiasedCoin(float("nan")), "q=nan is not allowed"),
        (lambda: LiarsDice(players=3), "players=3 is not allowed; players is 2"),
        (lambda: LiarsDice(bidding_rule="highest"), "bidding_rule is reset-face or reset-quantity"),
        (lambda: LeducPoker(suit_isomorphism=1), "suit_isomorphism is True or False"),
        (
            lambda: Goofspiel(num_cards=3, num_turns=4),
            "num_turns=4 is not allowed; num_turns is -1, or 1 to num_cards=3",
        ),
        (lambda: Goofspiel(num_turns=0), "num_turns=0 is not allowed"),
        (lambda: Goofspiel(points_order="up"), "points_order is random, descending or ascending"),
    ],
)
def test_options_out_of_range(make: Any, message: str) -> None:
    """A bad option is named with its value and what is allowed."""
    with pytest.raises(OptionError, match=message):
        make()


def test_numpy_options() -> None:
    """Numbers of numpy are as good as Python's."""
    assert KuhnPoker(np.int64(3)).name == "kuhn_poker(players=3)"
    assert LeducPoker(suit_isomorphism=np.bool_(True)).name == "leduc_poker(suit_isomorphism=True)"


# --- against OpenSpiel ---

OPEN_SPIEL = 'comparing with OpenSpiel needs pyspiel: pip install "jaxcfr[openspiel]"'

# Specification here, the same game in OpenSpiel, and plays to sample (None: every history).
PAIRS = [
    ("rock_paper_scissors", "matrix_rps", None),
    ("matching_pennies", "matrix_mp", None),
    *((f"kuhn_poker(players={n})", f"kuhn_poker(players={n})", None) for n in (2, 3, 4)),
    ("kuhn_poker(players=10)", "kuhn_poker(players=10)", 200),
    ("leduc_poker", "leduc_poker", None),
    ("leduc_poker(suit_isomorphism=True)", "leduc_poker(suit_isomorphism=True)", None),
    *((f"leduc_poker(players={n})", f"leduc_poker(players={n})", 300) for n in (3, 6, 10)),
    *((f"liars_dice({options})",) * 2 + (None,) for options in ("dice_sides=3", "numdice=2,dice_sides=2")),
    ("liars_dice(bidding_rule=reset-quantity,dice_sides=3)",) * 2 + (None,),
    ("liars_dice(numdice=3)",) * 2 + (300,),
    *(
        (f"goofspiel({options})",) * 2 + (None,)
        for options in (
            "num_cards=1",
            "num_cards=3,imp_info=True,points_order=descending",
            "num_cards=3,imp_info=True,points_order=random",
            "num_cards=3,imp_info=False,points_order=ascending,returns_type=total_points",
            "num_cards=4,imp_info=True,num_turns=2,points_order=random,returns_type=point_difference",
            "num_cards=3,players=3,imp_info=True",
        )
    ),
    ("goofspiel(num_cards=7,players=3,imp_info=True)",) * 2 + (300,),
]


@pytest.mark.parametrize(("spec", "theirs", "plays"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_against_openspiel(spec: str, theirs: str, plays: int | None) -> None:
    """The same histories, actions, probabilities, payoffs and partition into information sets."""
    pyspiel = pytest.importorskip("pyspiel", reason=OPEN_SPIEL)
    turn_based = theirs.startswith(("goofspiel", "matrix"))
    game = pyspiel.load_game_as_turn_based(theirs) if turn_based else pyspiel.load_game(theirs)
    forward: dict[Any, Any] = {}
    backward: dict[Any, Any] = {}

    def compare(ours: Any, state: Any) -> list[Any]:
        assert ours.is_terminal() == state.is_terminal()
        if ours.is_terminal():
            assert [float(u) for u in ours.terminal_returns()] == pytest.approx(state.returns())
            return []
        assert ours.is_chance() == state.is_chance_node()
        if ours.is_chance():
            outcomes = state.chance_outcomes()
            assert [a for a, _ in ours.chance_outcomes()] == [a for a, _ in outcomes]
            assert [float(p) for _, p in ours.chance_outcomes()] == pytest.approx([p for _, p in outcomes])
        else:
            player = ours.player_to_act()
            assert player == state.current_player()
            assert list(ours.legal_actions()) == state.legal_actions()
            key = (player, ours.infoset_key(player))
            text = (player, state.information_state_string())
            assert forward.setdefault(key, text) == text
            assert backward.setdefault(text, key) == key
        return moves(ours)

    root, start = load_game(spec), game.new_initial_state()
    assert root.num_players == game.num_players()
    if plays is None:
        stack = [(root, start)]
        while stack:
            ours, state = stack.pop()
            stack.extend((ours.step(a), state.child(a)) for a in compare(ours, state))
        return
    rng = random.Random(0)
    for _ in range(plays):
        ours, state = root, start.clone()
        while actions := compare(ours, state):
            action = rng.choice(actions)
            ours = ours.step(action)
            state.apply_action(action)


def test_every_bundled_game_is_tested() -> None:
    """No game is listed without a size here."""
    bundled = {g.name for g in list_games() if g.factory.__module__.startswith("jaxcfr.games.")}
    assert bundled <= {spec.partition("(")[0] for spec in SIZES}


def test_dice_poker_plays() -> None:
    """Payoffs and keys: fold, call, and the sum of two dice."""
    deal = play(DicePoker(), 3, 1)
    assert [deal.infoset_key(p) for p in (0, 1)] == ["3", "1"]
    assert DicePoker().step(3).infoset_key(0) == "3?"
    assert play(deal, 2).legal_actions() == (0, 1)
    assert play(deal, 2, 0).terminal_returns() == (1, -1)
    assert play(deal, 1, 2, 0).terminal_returns() == (-1, 1)
    second = play(deal, 2, 1, 1, 2)
    assert [second.infoset_key(p) for p in (0, 1)] == ["3 rc/1", "1 rc/2"]
    assert play(second, 1, 1).terminal_returns() == (3, -3)  # 4 against 3
    assert play(second, 2, 1).terminal_returns() == (7, -7)
    assert play(deal, 1, 1, 1, 3, 2, 1).terminal_returns() == (0, 0)
    assert play(DicePoker(max_raises=2), 1, 1, 2, 2, 0).terminal_returns() == (-3, 3)
    assert DicePoker(max_raises=0).nash_value() is None


def test_rhode_island_plays() -> None:
    """Hands from high to low, by showdown without a bet."""
    game = RhodeIsland(ranks=4, suits=4)
    cards = {game.action_label(card): card for card, _ in game.chance_outcomes()}

    def showdown(first: str, second: str, board: str) -> int:
        state = play(game, cards[first], cards[second], 1, 1, cards[board[:2]], 1, 1, cards[board[2:]], 1, 1)
        return state.terminal_returns()[0]

    assert showdown("As", "Js", "KsQs") == 5  # straight flushes by rank
    assert showdown("Ks", "Ah", "AsAd") == -5  # three of a kind
    assert showdown("Ks", "Qd", "QsJs") == 5  # a straight flush before a pair
    assert showdown("Kh", "As", "QsJs") == 5  # a straight before a flush
    assert showdown("As", "Kh", "KsJs") == 5  # a flush before a pair
    assert showdown("Kd", "Jh", "AsAh") == 5  # pairs by rank, then by the third card
    assert showdown("Jd", "Jh", "AsQh") == 0
    assert showdown("Kd", "Ah", "JsJh") == -5
    board = play(game, cards["As"], cards["Kh"], 1, 2, 1, cards["Qd"])
    assert [board.infoset_key(p) for p in (0, 1)] == ["As crc/Qd", "Kh crc/Qd"]
    assert play(board, 2, 0).terminal_returns() == (15, -15)
    assert play(board, 2, 1, cards["Jd"], 2, 1).terminal_returns() == (-55, 55)
    with pytest.raises(OptionError, match="2 cards; 4 are dealt"):
        RhodeIsland(ranks=2, suits=1)


def test_oshi_zumo_plays() -> None:
    """The wrestler moves away from the higher bid; out of the ring, on a side, or in the middle."""
    state = play(OshiZumo(), 2, 1)
    assert [state.infoset_key(p) for p in (0, 1)] == ["2-1 ", "2-1 ?"]
    assert [state.step(0).infoset_key(p) for p in (0, 1)] == ["2-1 0?", "2-1 "]
    assert play(state, 1, 0).terminal_returns() == (1, -1)
    assert play(state, 0, 1, 0, 0, 0, 0).terminal_returns() == (0, 0)
    assert play(OshiZumo(horizon=1), 0, 3).terminal_returns() == (-1, 1)
    assert play(OshiZumo(horizon=1, alesia=True), 0, 3).terminal_returns() == (0, 0)
    with pytest.raises(OptionError, match="min_bid=5 is more than coins=4"):
        OshiZumo(min_bid=5)


def test_battleship_plays() -> None:
    """What players see of shots, and payoffs."""
    game = Battleship(ship_sizes=[1, 2], ship_values=[1, Fraction(1, 2)], num_shots=3, loss_multiplier=2)
    squares = ["a1", "b1", "a2", "b2"]
    names = [*squares, *(f"{square} {way}" for way in ("across", "down") for square in squares)]
    labels = {name: action for action, name in enumerate(names)}
    state = play(game, labels["a1 across"], labels["b2 across"], labels["a2 across"], labels["a1 down"])
    assert state.infoset_key(0) == "a1-across ? a2-across ? "
    assert [state.action_label(a) for a in state.legal_actions()] == ["a1", "b1", "a2", "b2"]
    state = play(state, labels["a1"], labels["a1"], labels["a2"])
    assert state.infoset_key(0) == "a1-across ? a2-across ? a1=hit <a1 a2=sunk "
    assert state.infoset_key(1) == "? b2-across ? a1-down <a1 a1=sunk <a2 "
    end = play(state, labels["b1"], labels["b2"])
    assert end.is_terminal()  # player 1 has no ship left
    assert end.terminal_returns() == (Fraction(3, 2) - 2, 1 - 3)
    assert game.name == "battleship(ship_sizes=[1;2],ship_values=[1;1/2],num_shots=3,loss_multiplier=2.0)"
    assert load_game(game.name).name == game.name


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("ship_sizes=[3]", "ship_sizes is whole numbers from 1 to 2"),
        ("ship_sizes=[2;2;1],ship_values=[1;1;1]", "all ships fit on a board of 2 x 2"),
        ("ship_sizes=[1;x]", "one to 26 numbers"),
        ("ship_sizes=[]", "one to 26 numbers"),
        ("ship_sizes=[1.5]", "whole numbers"),
        ("ship_sizes=[1/0]", "one to 26 numbers"),
        ("ship_values=[1;2]", "1 numbers of at least 0"),
        ("ship_values=[-1]", "1 numbers of at least 0"),
        ("ship_values=[1e999]", "one to 26 numbers"),
        ("num_shots=5", "num_shots is at most 4"),
    ],
)
def test_battleships_that_make_no_sense(options: str, words: str) -> None:
    """Every wrong list of ships is named."""
    with pytest.raises(OptionError, match=re.escape(words)):
        load_game(f"battleship({options})")


def test_first_price_auction_plays() -> None:
    """Chance decides among equal bids."""
    state = play(FirstPriceAuction(3), 3, 2, 4, 1, 1, 0)
    assert state.chance_outcomes() == ((0, Fraction(1, 2)), (1, Fraction(1, 2)))
    assert state.action_label(1) == "player 1"
    assert state.step(1).terminal_returns() == (0, 1, 0)
    assert [state.step(1).infoset_key(p) for p in (0, 1, 2)] == ["3 1", "2 1!", "4 0"]
    assert state.infoset_key(0) == "3 1?"


def test_normal_form() -> None:
    """Tables of any number of players, exactly as they were given."""
    third = Fraction(1, 3)
    game = normal_form([[[1, 2], [third, 0.1]]], [["only"], ["left", "right"]], players=["row", "column"], name="g")
    assert (game.name, game.player_names, game.num_players) == ("g", ("row", "column"), 2)
    end = play(game, 0, 1)
    assert end.terminal_returns() == (third, 0.1)
    assert [type(payoff) for payoff in end.terminal_returns()] == [Fraction, float]
    assert [game.infoset_key(p) for p in (0, 1)] == ["", "?"]
    assert [game.step(0).infoset_key(p) for p in (0, 1)] == ["only?", ""]
    assert game.step(0).action_label(1) == "right"
    rng = np.random.default_rng(0)
    table = rng.integers(-5, 6, (2, 3, 4, 2, 4))
    game = normal_form(table)
    for picks in np.ndindex(2, 3, 4, 2):
        payoffs = play(game, *picks).terminal_returns()
        assert payoffs == tuple(table[picks])
        assert all(type(payoff) is int for payoff in payoffs)
    assert [len(names) for names in game.strategies] == [2, 3, 4, 2]
    assert normal_form([[1], [2]]).num_players == 1


@pytest.mark.parametrize(
    ("payoffs", "words"),
    [
        ([[1, 2], [3, 4]], "have the shape (2, 2)"),
        ([[[1, 2], [3, 4]], [[1, 2]]], "shape"),
        ([], "shape (0,)"),
        (5, "shape ()"),
        (np.zeros((0, 2, 2)), "shape (0, 2, 2)"),
        ([[[1, float("nan")]]], "at the strategies [0, 0]: the payoff of player 1 is nan, not finite"),
        ([[[1, "x"]]], "at the strategies [0, 0]: the payoff of player 1 is 'x'"),
        ([[[1, None]]], "the payoff of player 1 is None"),
        ([[[True, 1]]], "the payoff of player 0 is True"),
    ],
)
def test_tables_that_are_no_game(payoffs: Any, words: str) -> None:
    """The shape or the payoff at fault is named."""
    with pytest.raises(GameError, match=re.escape(words)):
        normal_form(payoffs)


def test_names_of_strategies() -> None:
    """Names have to be there for all, and different."""
    table = [[[0, 0], [1, 1]]]
    for strategies in ([["a"]], [["a"], ["b", "b"]], [["a"], ["b"]], [["a"], [1, 2]]):
        with pytest.raises(GameError, match="names of"):
            normal_form(table, strategies)
    with pytest.raises(GameError, match="names of 1 players"):
        normal_form(table, players=["x"])


def test_matrix_game() -> None:
    """A table of player 0's payoffs, as text or numbers; the other gets the rest."""
    game = load_game("matrix_game(payoffs='1/2 0.25;-1 0',total=3)")
    assert play(game, 0, 0).terminal_returns() == (Fraction(1, 2), Fraction(5, 2))
    assert play(game, 0, 1).terminal_returns() == (0.25, 2.75)
    assert game.name == "matrix_game(payoffs='1/2 0.25; -1 0',total=3)"
    assert load_game(game.name).payoffs == game.payoffs
    assert matrix_game().name == "matrix_game"
    assert matrix_game([[1, 0]], 1).payoffs == ((1, 0), (0, 1))
    for wrong in ("1 2; 3", "1 x", "", ";", "1 nan", "1 1e999", "(1 2)"):
        with pytest.raises((OptionError, GameLookupError)):
            load_game(f"matrix_game(payoffs='{wrong}')")
    for table in ([1, 2], [[]], 3, [[1, 2], [3]], [["a", "b"]], [[1, None]]):
        with pytest.raises(GameError, match=r"shape|payoff of player 0"):
            matrix_game(table)


@pytest.mark.parametrize(
    "spec",
    ["dice_poker(dice_sides=2,max_raises=3)", "rhode_island(ranks=4,suits=1,max_raises=0)", "rhode_island(ranks=2)"],
)
def test_estimates_of_limit_poker_are_exact(spec: str) -> None:
    """So that a game far too large is refused before it is walked."""
    root = load_game(spec)
    assert root.estimated_histories() == sum(1 for _ in histories(root))
    assert root.step(moves(root)[0]).estimated_histories() is None


def test_games_far_too_large_are_refused_at_once() -> None:
    """By an estimate, or because the next level does not fit."""
    auction = load_game("first_price_auction(players=3,max_value=3)")
    assert auction.estimated_histories() == pytest.approx(sum(1 for _ in histories(auction)), rel=0.2)
    for spec in (
        "rhode_island(ranks=13,suits=4,max_raises=3)",
        "dice_poker(dice_sides=100)",
        "first_price_auction(players=10,max_value=1000)",
        "battleship(board_width=10,board_height=10,ship_sizes=[2;3;3;4;5],ship_values=[1;1;1;1;1],num_shots=50)",
    ):
        with pytest.raises(GameTooLargeError, match="max_nodes"):
            lower(load_game(spec), max_nodes=100_000)


def test_battleship_leaves_room_for_later_ships() -> None:
    """Where a ship would leave no place for the next one, it cannot be put."""
    game = Battleship(3, 1, [1, 2], [1, 1], 1)
    assert [game.action_label(action) for action in game.legal_actions()] == ["a1 across", "c1 across"]
