"""OpenSpiel: the bundled games against its own (information sets, NashConv), and its games in ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from jaxcfr import analytics, interop
from jaxcfr.errors import ChanceNotEnumerableError, GameError, GameLookupError, GameTooLargeError, RecallError
from jaxcfr.games import load_game
from jaxcfr.tree.convert import uniform_strategy
from jaxcfr.tree.limits import MAX_NODES
from jaxcfr.tree.lower import _Walk, lower

pytestmark = pytest.mark.usefixtures("quick_compilation")

pyspiel = pytest.importorskip("pyspiel", reason='OpenSpiel is not installed: pip install "jaxcfr[openspiel]"')
exploitability = pytest.importorskip("open_spiel.python.algorithms.exploitability")
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


@pytest.mark.parametrize("name", GAMES)
def test_against_openspiel(name: str) -> None:
    game = load_game(name)
    theirs = pyspiel.load_game(GAMES[name])
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
    with pytest.raises(GameTooLargeError, match="max_nodes = 1,000 "):
        lower(load_game("openspiel:chess"), max_nodes=1000)
