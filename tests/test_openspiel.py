"""OpenSpiel: the bundled games against its own (information sets, NashConv), and its games in ours."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from jaxcfr import analytics, interop
from jaxcfr.errors import (
    ChanceNotEnumerableError,
    GameError,
    GameLookupError,
    GameTooLargeError,
    MissingPackageError,
    ProfileError,
    RecallError,
)
from jaxcfr.games import load_game, validate_game
from jaxcfr.interop import openspiel
from jaxcfr.profile import Profile
from jaxcfr.tree.convert import uniform_strategy
from jaxcfr.tree.limits import MAX_NODES, refuse_far_too_large
from jaxcfr.tree.lower import _Walk, lower

pyspiel = pytest.importorskip("pyspiel", reason='OpenSpiel is not installed: pip install "jaxcfr[openspiel]"')
exploitability = pytest.importorskip("open_spiel.python.algorithms.exploitability")
get_all_states = pytest.importorskip("open_spiel.python.algorithms.get_all_states")
policies = pytest.importorskip("open_spiel.python.policy")

# Our name, and OpenSpiel's. Simultaneous moves become turns, as in our games.
GAMES = {
    "kuhn_poker": "kuhn_poker",
    "kuhn_poker(players=3)": "kuhn_poker(players=3)",
    "leduc_poker": "leduc_poker",
    "leduc_poker(suit_isomorphism=True)": "leduc_poker(suit_isomorphism=True)",
    "liars_dice(dice_sides=2)": "liars_dice(dice_sides=2)",
    "liars_dice(dice_sides=3)": "liars_dice(dice_sides=3)",
    "goofspiel(num_cards=3,imp_info=True,points_order=descending)": (
        "turn_based_simultaneous_game(game=goofspiel(num_cards=3,imp_info=True,points_order=descending))"
    ),
    "goofspiel(num_cards=3,imp_info=True,points_order=ascending,returns_type=point_difference)": (
        "turn_based_simultaneous_game(game=goofspiel(num_cards=3,imp_info=True,points_order=ascending,"
        "returns_type=point_difference))"
    ),
    "goofspiel(num_cards=3,imp_info=True)": ("turn_based_simultaneous_game(game=goofspiel(num_cards=3,imp_info=True))"),
    "rock_paper_scissors": "turn_based_simultaneous_game(game=matrix_rps())",
    "matching_pennies": "turn_based_simultaneous_game(game=matrix_mp())",
    "matrix_game(payoffs='0 -25 50; 25 0 -5; -50 5 0')": "turn_based_simultaneous_game(game=matrix_brps())",
    "oshi_zumo(coins=3,horizon=3)": "turn_based_simultaneous_game(game=oshi_zumo(coins=3,size=1,horizon=3))",
    "oshi_zumo(coins=5,min_bid=2,size=0,alesia=True)": (
        "turn_based_simultaneous_game(game=oshi_zumo(coins=5,size=0,min_bid=2,horizon=4,alesia=True))"
    ),
    "first_price_auction": "first_sealed_auction(max_value=4)",
    "first_price_auction(players=3,max_value=3)": "first_sealed_auction(players=3,max_value=3)",
    "battleship": (
        "battleship(board_width=2,board_height=2,ship_sizes=[2],ship_values=[1],num_shots=2,allow_repeated_shots=false)"
    ),
    "battleship(board_width=3,board_height=1,ship_sizes=[1;2],ship_values=[2;1/2],loss_multiplier=2)": (
        "battleship(board_width=3,board_height=1,ship_sizes=[1;2],ship_values=[2;0.5],num_shots=2,"
        "allow_repeated_shots=false,loss_multiplier=2.0)"
    ),
    "battleship(ship_sizes=[1],num_shots=3,allow_repeated_shots=True)": (
        "battleship(board_width=2,board_height=2,ship_sizes=[1],ship_values=[1],num_shots=3,allow_repeated_shots=true)"
    ),
}
LARGE_GAMES = {
    "leduc_poker(players=3,suit_isomorphism=True)": "leduc_poker(players=3,suit_isomorphism=True)",
    "battleship(ship_sizes=[1;2],ship_values=[1;2],allow_repeated_shots=True)": (
        "battleship(board_width=2,board_height=2,ship_sizes=[1;2],ship_values=[1;2],num_shots=2)"
    ),
    "oshi_zumo": "turn_based_simultaneous_game(game=oshi_zumo(coins=4,size=1,horizon=4))",
}


def pairs(ours: Any, theirs: Any) -> Iterator[tuple[Any, Any]]:
    """Walks both games side by side; actions and chance outcomes have the same numbers."""
    stack = [(ours, theirs)]
    while stack:
        mine, other = stack.pop()
        yield mine, other
        if mine.is_terminal():
            assert other.is_terminal()
            np.testing.assert_allclose([float(x) for x in mine.terminal_returns()], other.returns(), atol=1e-12)
            continue
        if mine.is_chance():
            assert other.is_chance_node()
            wanted = dict(other.chance_outcomes())
            outcomes = list(mine.chance_outcomes())
            assert {action for action, _ in outcomes} == set(wanted)
            for action, probability in outcomes:
                assert float(probability) == pytest.approx(wanted[action], abs=1e-12)
            actions = [action for action, _ in outcomes]
        else:
            assert mine.player_to_act() == other.current_player()
            actions = list(mine.legal_actions())
            assert actions == other.legal_actions()
        stack.extend((mine.step(action), other.child(action)) for action in actions)


@pytest.mark.parametrize("name", [*GAMES, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE_GAMES)])
def test_against_openspiel(name: str) -> None:
    game = load_game(name)
    theirs = pyspiel.load_game((GAMES | LARGE_GAMES)[name])
    lowered = lower(game)
    tree = lowered.tree

    # Which of their information states is which of our information sets.
    keys: dict[tuple[int, Any], str] = {}
    count = 0
    for mine, other in pairs(game, theirs.new_initial_state()):
        count += 1
        if not (mine.is_terminal() or mine.is_chance()):
            player = mine.player_to_act()
            text = other.information_state_string(player)
            assert keys.setdefault((player, mine.infoset_key(player)), text) == text
    assert tree.num_histories == count
    assert len(keys) == sum(tree.num_infosets)
    for player in range(tree.num_players):
        # As many of theirs as of ours: the map is one to one.
        assert len({keys[player, key] for key in lowered.infoset_keys[player]}) == tree.num_infosets[player]

    found = float(analytics.nash_conv(tree, uniform_strategy(tree)))
    wanted = exploitability.nash_conv(theirs, policies.UniformRandomPolicy(theirs))
    assert found == pytest.approx(wanted, abs=1e-9)

    seed = 20
    rng = np.random.default_rng(seed)
    rows = [[rng.dirichlet(np.ones(len(actions))) for actions in per] for per in lowered.actions]
    policy = policies.TabularPolicy(theirs)
    assert len(policy.state_lookup) == sum(tree.num_infosets)
    for player, (own, per, infosets) in enumerate(zip(rows, lowered.actions, lowered.infoset_keys, strict=True)):
        for row, actions, key in zip(own, per, infosets, strict=True):
            entry = policy.action_probability_array[policy.state_lookup[keys[player, key]]]
            entry[:] = 0
            entry[list(actions)] = row
    wanted = exploitability.nash_conv(theirs, policy)
    found = float(analytics.nash_conv(tree, lowered.strategy(rows)))
    assert found == pytest.approx(wanted, abs=1e-9), f"strategy of seed {seed}"


WALKED = (
    "kuhn_poker(players=3)",
    "leduc_poker(suit_isomorphism=True)",
    "goofspiel(num_cards=3)",
    "battleship(board_width=2,board_height=2,ship_sizes=[1],ship_values=[1],num_shots=2)",
    "python_kuhn_poker",
)


@pytest.mark.parametrize("name", WALKED)
def test_a_game_walks_itself_as_lower_would(name: str) -> None:
    game = load_game(f"openspiel:{name}")
    assert isinstance(game, interop.OpenSpielGame)
    found = game.walk_histories(MAX_NODES)
    walk = _Walk(game, MAX_NODES)
    walk.run()
    wanted = walk.walked()
    for column in ("player", "infoset", "parent", "chance", "payoffs"):
        np.testing.assert_array_equal(getattr(found.nodes, column), getattr(wanted.nodes, column))
    assert [*map(list, found.nodes.num_actions)] == [*map(list, wanted.nodes.num_actions)]
    assert found.infoset_keys == wanted.infoset_keys
    assert found.actions == wanted.actions
    assert found.action_labels == wanted.action_labels
    assert load_game(game.name).walk_histories(MAX_NODES).infoset_keys == wanted.infoset_keys  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("", GameLookupError, "no game named ''"),
        ("nosuch", GameLookupError, "no game named 'nosuch'"),
        ("kuhn", GameLookupError, "did you mean kuhn_poker"),
        ("leduc_poker(ranks=3)", GameLookupError, "Unknown parameter 'ranks'"),
        ("leduc_poker(players=3,players=2)", GameLookupError, "players is given twice"),
        ("leduc_poker(players=30)", GameLookupError, "players=30"),
        ("leduc_poker(players=3", GameLookupError, "bracket"),
        ("negotiation", ChanceNotEnumerableError, "negotiation"),
        ("mfg_garnet", GameError, "mean-field"),
        ("pig", GameError, "no information-state strings"),
    ],
)
def test_what_cannot_be_loaded(name: str, error: type[Exception], words: str, capfd: pytest.CaptureFixture) -> None:
    with pytest.raises(error, match=re.escape(words)):
        load_game(f"openspiel:{name}")
    assert not capfd.readouterr().err  # OpenSpiel prints what it raises


@pytest.mark.parametrize("name", ["liars_dice_ir(dice_sides=3)", "dark_hex_ir(board_size=2)"])
def test_imperfect_recall_is_refused_by_name(name: str) -> None:
    with pytest.raises(RecallError, match=rf"openspiel:{re.escape(name)}: player \d forgets"):
        lower(load_game(f"openspiel:{name}"))


def test_too_many_histories() -> None:
    with pytest.raises(GameTooLargeError, match=r"max_nodes = 1,000 histories .* still to be expanded"):
        lower(load_game("openspiel:chess"), max_nodes=1000)
    # Random plays show it long before ten million are met.
    with pytest.raises(GameTooLargeError, match="many times more than max_nodes = 10,000,000"):
        lower(load_game("openspiel:phantom_ttt"))


def test_random_plays_refuse_nothing_that_fits() -> None:
    game = load_game("openspiel:tiny_bridge_2p")
    walk = openspiel._Walk(game, 107_129)
    walk.run()  # as many as there are
    assert len(walk.player) == 107_129
    refuse_far_too_large(game, 107_129)
    with pytest.raises(GameTooLargeError):
        refuse_far_too_large(game, 100)


# Small enough that OpenSpiel's own best response in Python takes a moment.
SMALL = (
    "battleship(board_width=2,board_height=1,ship_sizes=[1],ship_values=[1],num_shots=2)",
    "blotto(coins=3,fields=2,players=3)",
    "cliff_walking(horizon=3)",
    "clobber(rows=2,columns=3)",
    "connect_four(rows=2,columns=3,x_in_row=2)",
    "coordinated_mp",
    "dark_hex(board_size=2)",
    "first_sealed_auction(max_value=3,players=3)",
    "go(board_size=2,max_game_length=4)",
    "gomoku(size=2,dims=2)",
    "goofspiel(num_cards=3,imp_info=True)",
    "hex(num_cols=2,num_rows=2)",
    "kuhn_poker(players=3)",
    "lewis_signaling",
    "liars_dice(dice_sides=2,numdice=1)",
    "matching_pennies_3p",
    "matrix_shapleys_game",
    "misere(game=kuhn_poker())",
    "mnk(m=2,n=2,k=2)",
    "nim(pile_sizes=1;2;2)",
    "oh_hell(players=3,num_suits=1,num_cards_per_suit=4,num_tricks_fixed=1)",
    "oshi_zumo(coins=3,size=1,horizon=3)",
    "python_kuhn_poker",
    "restricted_nash_response(game=kuhn_poker())",
    "sheriff(item_penalty=1.0,item_value=5.0,max_bribe=1,max_items=2,num_rounds=1,sheriff_penalty=1.0)",
    "start_at(game=latent_ttt(),history=0;1;4;8;2)",
    "start_at(game=leduc_poker(),history=0;1)",
    "start_at(game=phantom_ttt(),history=0;1;4;8;2;6;3)",
    "start_at(game=tiny_bridge_2p(),history=0;27)",
    "tiny_hanabi",
    "trade_comm(num_items=2)",
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,raiseSize=1 1,maxRaises=1 1,numSuits=1,"
    "numRanks=4,numHoleCards=1,numBoardCards=0 1,firstPlayer=1 1)",
    "y(board_size=2)",
)
LARGE = (
    "battleship(board_width=2,board_height=2,ship_sizes=[1;2],ship_values=[1;2],num_shots=2)",
    "dots_and_boxes(num_rows=1,num_cols=2)",
    "leduc_poker(players=3,suit_isomorphism=True)",
    "liars_dice(dice_sides=5)",
    "oh_hell(players=3,num_suits=2,num_cards_per_suit=3,num_tricks_fixed=1)",
    "oshi_zumo(coins=4,size=1,horizon=4)",
    "start_at(game=phantom_ttt(),history=0;1;4;8;2;6)",
    "tiny_bridge_2p",
)


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)])
def test_games_of_openspiel(name: str) -> None:
    game = load_game(f"openspiel:{name}")
    assert isinstance(game, interop.OpenSpielGame)
    lowered = lower(game)
    tree = lowered.tree
    states = get_all_states.get_all_states(
        game.game, include_terminals=True, include_chance_states=True, to_string=lambda state: str(state.history())
    )
    assert tree.num_histories == len(states)
    assert tree.num_terminals == sum(state.is_terminal() for state in states.values())
    uniform = policies.TabularPolicy(game.game)
    assert [*map(set, lowered.infoset_keys)] == [*map(set, uniform.states_per_player)]
    found = float(analytics.nash_conv(tree, uniform_strategy(tree)))
    assert found == pytest.approx(exploitability.nash_conv(game.game, uniform), abs=1e-9)

    seed = 21
    rng = np.random.default_rng(seed)
    rows = [[rng.dirichlet(np.ones(len(actions))) for actions in per] for per in lowered.actions]
    profile = Profile.from_probabilities(lowered, rows)
    policy = interop.to_openspiel(profile, game)
    assert policy.state_lookup == uniform.state_lookup
    found = float(analytics.nash_conv(tree, profile.to_strategy(lowered)))
    assert found == pytest.approx(exploitability.nash_conv(game.game, policy), abs=1e-9), f"seed {seed}"
    back = interop.from_openspiel_policy(policy, game.game)
    assert back == profile
    again = interop.to_openspiel(back, game)
    np.testing.assert_array_equal(again.action_probability_array, policy.action_probability_array)


def test_a_policy_in_cpp() -> None:
    theirs = pyspiel.load_game("kuhn_poker")
    solver = pyspiel.CFRSolver(theirs)
    for _ in range(20):
        solver.evaluate_and_update_policy()
    profile = interop.from_openspiel_policy(solver.average_policy(), theirs)
    lowered = lower(interop.from_openspiel(theirs))
    found = float(analytics.nash_conv(lowered.tree, profile.to_strategy(lowered)))
    assert found == pytest.approx(pyspiel.nash_conv(theirs, solver.average_policy()), abs=1e-12)


def test_a_policy_of_simultaneous_moves() -> None:
    theirs = pyspiel.load_game("goofspiel(num_cards=3,imp_info=True,points_order=descending)")
    policy = policies.TabularPolicy(theirs)
    seed = 22
    policy.action_probability_array[:] *= np.random.default_rng(seed).random(policy.action_probability_array.shape)
    policy.action_probability_array[:] /= policy.action_probability_array.sum(1, keepdims=True)
    profile = interop.from_openspiel_policy(policy, theirs)
    tabular = interop.to_openspiel(profile, theirs)
    state, turns = theirs.new_initial_state(), pyspiel.convert_to_turn_based(theirs).new_initial_state()
    for actions in ([0, 2], [1, 0]):
        for player, action in enumerate(actions):
            assert tabular.action_probabilities(turns) == policy.action_probabilities(state, player), f"seed {seed}"
            turns.apply_action(action)
        state.apply_actions(actions)


def test_a_float32_profile_is_played_with_probabilities_that_sum_to_1() -> None:
    game = load_game("openspiel:kuhn_poker")
    lowered = lower(game, dtype="float32")
    seed = 23
    rng = np.random.default_rng(seed)
    rows = [[rng.dirichlet(np.ones(len(actions))) for actions in per] for per in lowered.actions]
    profile = Profile.from_strategy(lowered, lowered.strategy(rows))
    policy = interop.to_openspiel(profile, game)
    np.testing.assert_allclose(policy.action_probability_array.sum(1), 1, atol=1e-15)
    back = interop.from_openspiel_policy(policy, game)
    again = interop.to_openspiel(back, game)
    np.testing.assert_array_equal(again.action_probability_array, policy.action_probability_array)
    assert interop.from_openspiel_policy(again, game) == back


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (lambda state: {}, "has no distribution: {}"),
        (lambda state: {0: 0.5}, "has no distribution: {0: 0.5}"),
        (lambda state: {0: 2.0, 1: -1.0}, "has no distribution"),
        (lambda state: {0: float("nan")}, "has no distribution"),
        (lambda state: {7: 1.0}, "plays the illegal action 7"),
        (lambda state: None, "raised TypeError"),
        (3, "raised TypeError"),
    ],
)
def test_policies_that_are_none(policy: Any, words: str) -> None:
    with pytest.raises(ProfileError, match=re.escape("player 0, information state '0': the policy " + words)):
        interop.from_openspiel_policy(policy, load_game("openspiel:kuhn_poker"))


def test_a_policy_of_one_player_only() -> None:
    theirs = pyspiel.load_game("kuhn_poker")
    with pytest.raises(ProfileError, match="player 0, information state '0': the policy raised KeyError"):
        interop.from_openspiel_policy(policies.TabularPolicy(theirs, players=[1]), theirs)


def test_a_profile_of_another_game() -> None:
    lowered = lower(load_game("kuhn_poker"))
    profile = Profile.from_strategy(lowered, uniform_strategy(lowered.tree))
    with pytest.raises(ProfileError, match=re.escape("has the actions [Pass, Bet] at the information set '0'")):
        interop.to_openspiel(profile, pyspiel.load_game("kuhn_poker"))
    with pytest.raises(ProfileError, match=r"of 2 players, but openspiel:kuhn_poker\(players=3\) has 3"):
        interop.to_openspiel(profile, pyspiel.load_game("kuhn_poker(players=3)"))
    with pytest.raises(ProfileError, match="player 0 has no strategy for the information set "):
        interop.to_openspiel(profile, pyspiel.load_game("leduc_poker"))
    with pytest.raises(GameTooLargeError, match=r"openspiel:phantom_ttt.* many times more than"):
        interop.to_openspiel(profile, pyspiel.load_game("phantom_ttt"))  # a TabularPolicy would never be made
    with pytest.raises(ProfileError, match="needs a Profile, not tuple"):
        interop.to_openspiel(uniform_strategy(lowered.tree), pyspiel.load_game("kuhn_poker"))  # type: ignore[arg-type]


@pytest.mark.parametrize("game", [3, "kuhn_poker", None])
def test_what_is_no_game_of_openspiel(game: Any) -> None:
    with pytest.raises(GameError, match=r"needs a pyspiel\.Game"):
        interop.from_openspiel(game)


def test_a_history_of_openspiel_is_a_game() -> None:
    game = load_game("openspiel:leduc_poker")
    report = validate_game(game, 2000)
    assert report.recall
    history = game.step(0).step(1)
    assert history.action_label(1) == "Call"
    assert history.infoset_key(1) == history.state.information_state_string(1)
    for wrong in (0, 7, "x", None):
        with pytest.raises(GameError, match="not a legal action"):
            history.step(wrong)
    with pytest.raises(GameError, match="no player acts"):
        game.player_to_act()
    with pytest.raises(GameError, match="chance does not move"):
        history.chance_outcomes()
    with pytest.raises(GameError, match="has not ended"):
        history.terminal_returns()
    part = lower(history)  # a subtree
    assert (
        part.tree.num_histories
        == lower(load_game("openspiel:start_at(game=leduc_poker(),history=0;1)")).tree.num_histories
    )


def test_without_openspiel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    for ask in (lambda: load_game("openspiel:kuhn_poker"), lambda: interop.from_openspiel(None)):
        with pytest.raises(MissingPackageError, match=re.escape('pip install "jaxcfr[openspiel]"')):
            ask()
