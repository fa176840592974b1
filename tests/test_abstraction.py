"""Fewer actions, coarser information, and the way back to the real game."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from random_games import Wrapped, from_seed

import jaxcfr
from jaxcfr import errors


def leduc_key(player: int, key: Any) -> Any:
    """Holding a Jack, a Queen on the board looks like a King; holding a King, a Jack looks like a Queen."""
    before, slash, after = key.partition("/")
    confused = {"J": "QK", "K": "JQ"}.get(key[0], "")
    return before + "/*" + after[2:] if slash and after[0] in confused else key


class Keep:
    """Keeps what a function says."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule

    def actions(self, game: Any, player: int) -> Any:
        return self.rule(game, player)


def test_identity_solves_to_the_same_bits() -> None:
    game = jaxcfr.load_game("kuhn_poker")
    whole, wrapped = jaxcfr.lower(game), jaxcfr.lower(jaxcfr.Abstracted(game, jaxcfr.Identity()))
    assert whole.infoset_keys == wrapped.infoset_keys
    assert whole.action_labels == wrapped.action_labels
    for a, b in zip(jax.tree.leaves(whole.tree), jax.tree.leaves(wrapped.tree), strict=True):
        np.testing.assert_array_equal(a, b)
    solutions = [jaxcfr.average_strategy(w.tree, jaxcfr.solve(w.tree, iterations=20)) for w in (whole, wrapped)]
    for a, b in zip(*solutions, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_wrapped_game_is_the_game_with_fewer_actions() -> None:
    game = jaxcfr.load_game("leduc_poker(ranks=2)")
    few = jaxcfr.Abstracted(game, Keep(lambda game, player: [a for a in game.legal_actions() if a != 2]))
    jaxcfr.validate_game(few)
    lowered = jaxcfr.lower(few)
    assert lowered.tree.num_histories < jaxcfr.lower(game).tree.num_histories
    assert {label for labels in lowered.action_labels[0] for label in labels} == {"call"}
    node = few.step(0).step(1)
    assert node.legal_actions() == (1,)
    assert node.action_label(1) == "call"
    assert node.step(1).inner.player_to_act() == 1
    assert node.sample_chance is not None
    assert few.array_game() is None  # the arrays would have all actions
    other = from_seed(0, 2, "zero")
    assert jaxcfr.Abstracted(other, jaxcfr.Identity()).node is other.node


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda game, player: [], "is empty"),
        (lambda game, player: [0, 0], "has 0 more than once"),
        (lambda game, player: [0, 7], r"has 7, which is not one of the legal actions \[0, 1\]"),
        (lambda game, player: {0, 1}, "not a sequence with an order"),
        (lambda game, player: None, "not a sequence with an order"),
    ],
)
def test_what_an_abstraction_must_not_keep(rule: Any, message: str) -> None:
    with pytest.raises(errors.GameError, match=message):
        jaxcfr.lower(jaxcfr.Abstracted(jaxcfr.load_game("kuhn_poker"), Keep(rule)))


def test_actions_that_are_only_equal_to_legal_ones_are_taken_for_them() -> None:
    few = jaxcfr.Abstracted(jaxcfr.load_game("kuhn_poker"), Keep(lambda game, player: (0.0, np.int64(1))))
    assert [type(action) for action in few.step(0).step(1).legal_actions()] == [int, int]
    assert jaxcfr.lower(few).tree.num_histories == 58


def test_the_order_within_an_information_set_is_verified() -> None:
    def rule(game: Any, player: int) -> Any:
        other = game.infoset_key(1 - player)  # what the player does not see
        return (1, 0) if other.startswith("2") else (0, 1)

    with pytest.raises(errors.GameError, match="have to be the same, in the same order"):
        jaxcfr.lower(jaxcfr.Abstracted(jaxcfr.load_game("kuhn_poker"), Keep(rule)))


def test_refusals() -> None:
    game = jaxcfr.load_game("kuhn_poker")
    few = jaxcfr.Abstracted(game, Keep(lambda game, player: [0]))
    with pytest.raises(errors.GameError, match=r"1 is not one of the actions kept at .*: \[0\]"):
        few.step(0).step(1).step(1)
    for inner, message in (("kuhn_poker", "load_game"), (type(game), "pass an instance"), (7, "not 'int'")):
        with pytest.raises(errors.GameError, match=message):
            jaxcfr.Abstracted(inner, jaxcfr.Identity())
    for abstraction in (jaxcfr.Identity, None, lambda game, player: [0]):
        with pytest.raises(errors.GameError, match="an abstraction is an object with a method"):
            jaxcfr.Abstracted(game, abstraction)  # type: ignore[arg-type]
    with pytest.raises(errors.GameError, match="needs a function key"):
        jaxcfr.MergedInfosets(game, "key")  # type: ignore[arg-type]
    profile = jaxcfr.Profile.from_strategy(lowered := jaxcfr.lower(few), jaxcfr.uniform_strategy(lowered.tree))
    with pytest.raises(errors.OptionError, match="lift needs an Abstracted or MergedInfosets"):
        jaxcfr.lift(profile, game, game)
    with pytest.raises(errors.ProfileError, match="is it of another game"):
        jaxcfr.lift(profile, few, jaxcfr.load_game("rock_paper_scissors"))
    with pytest.raises(errors.RecallError, match="forgets at information set"):
        jaxcfr.lower(jaxcfr.MergedInfosets(game, lambda player, key: key[:1]))


def test_lifting() -> None:
    game = jaxcfr.load_game("leduc_poker(ranks=2)")
    real = jaxcfr.lower(game)
    few = jaxcfr.Abstracted(
        game, Keep(lambda game, player: [a for a in reversed(game.legal_actions()) if a != 2 or player == 1])
    )
    lowered = jaxcfr.lower(few)
    rng = np.random.default_rng(5)
    rows = [[rng.dirichlet(np.ones(len(actions))) for actions in lowered.actions[p]] for p in range(2)]
    profile = jaxcfr.Profile.from_strategy(lowered, lowered.strategy(rows))
    lifted = jaxcfr.lift(profile, few, game)
    reached = 0
    for player, keys in enumerate(real.infoset_keys):
        for key, actions in zip(keys, real.actions[player], strict=True):
            row = lifted.probabilities(player, key)
            if not profile.has_infoset(player, key):  # the abstracted game never gets there
                assert list(row.values()) == pytest.approx([1 / len(actions)] * len(actions))
            else:
                reached += 1
                kept = profile.probabilities(player, key)
                assert row == pytest.approx({action: kept.get(action, 0.0) for action in actions})
    assert reached == sum(map(len, lowered.infoset_keys))
    # Actions that are kept without mass: uniform over all real ones.
    only = jaxcfr.Profile.from_dict(
        {**profile.to_dict(), "players": [_renamed(infosets) for infosets in profile.to_dict()["players"]]}
    )
    for player, keys in enumerate(real.infoset_keys):
        for key, actions in zip(keys, real.actions[player], strict=True):
            row = jaxcfr.lift(only, few, game, lowered=real).probabilities(player, key)
            assert row is not None
            assert list(row.values()) == pytest.approx([1 / len(actions)] * len(actions))


def _renamed(infosets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**infoset, "actions": [f"other {a}" for a in infoset["actions"]]} for infoset in infosets]


def test_leducs_abstraction() -> None:
    """Burch, Johanson and Bowling (2014), section 5: the abstract equilibrium is exploitable for 0.382."""
    game = jaxcfr.load_game("leduc_poker")
    merged = jaxcfr.MergedInfosets(game, leduc_key)
    small = jaxcfr.Blueprint.train(merged, 1500, jaxcfr.cfr_plus())
    assert small.lowered.tree.num_infosets == (288, 288)
    assert float(jaxcfr.exploitability(small.lowered.tree, small.strategy)) < 2e-3
    real = jaxcfr.lower(game)
    lifted = jaxcfr.lift(small.profile(), merged, game, lowered=real)
    assert float(jaxcfr.exploitability(real.tree, lifted.to_strategy(real))) == pytest.approx(0.382, abs=1e-3)
    for key in ("Jh c", "Qs cc/Kh ", "Ks rc/Qs c"):
        same = small.profile().average_strategy(0 if key.endswith(" ") else 1, leduc_key(0, key))
        assert lifted.average_strategy(0 if key.endswith(" ") else 1, key) == pytest.approx(same)


@pytest.mark.slow
def test_leducs_abstraction_resolved() -> None:
    """Figure 5 of the paper: at most 0.33 after 200 iterations, 0.23 to 0.30 after 2,000; unsafe 0.39."""
    game = jaxcfr.load_game("leduc_poker")
    real = jaxcfr.lower(game)
    merged = jaxcfr.MergedInfosets(game, leduc_key)
    small = jaxcfr.Blueprint.train(merged, 1500, jaxcfr.cfr_plus())
    blueprint = jaxcfr.Blueprint.from_profile(game, jaxcfr.lift(small.profile(), merged, game), lowered=real)
    before = float(jaxcfr.exploitability(real.tree, blueprint.strategy))
    bets = ((1, 1), (1, 2, 1), (2, 1), (2, 2, 1), (1, 2, 2, 1))
    subgames = [jaxcfr.Subgame.public(game, blueprint, (0, 2, *b)) for b in bets]

    def after(iterations: int, variant: Any, **options: Any) -> float:
        composed = blueprint
        for subgame in subgames:
            composed = composed.compose(subgame.solve(iterations, variant, **options))
        return float(jaxcfr.exploitability(real.tree, composed.strategy))

    for updates in ("simultaneous", "alternating"):
        assert after(200, jaxcfr.vanilla(), updates=updates) <= 0.33
        assert 0.23 <= after(2000, jaxcfr.vanilla(), updates=updates) <= 0.30
    for safety in ("resolve", "maxmargin", "reach"):
        for variant in (jaxcfr.cfr_plus(), jaxcfr.dcfr_plus(), jaxcfr.pdcfr_plus()):
            assert after(2000, variant, safety=safety) <= before
    assert after(2000, jaxcfr.vanilla(), safety="unsafe", updates="simultaneous") > 0.38


def test_blueprints_of_abstracted_games() -> None:
    game = jaxcfr.load_game("kuhn_poker")
    blueprint = jaxcfr.Blueprint.train_abstracted(game, Keep(lambda game, player: [0]), 5)
    assert blueprint.profile().average_strategy(0, "2") == {"pass": 1.0, "bet": 0.0}
    # What the abstracted game never gets to is uniform.
    assert blueprint.profile().average_strategy(1, "0b") == {"pass": 0.5, "bet": 0.5}
    with pytest.raises(errors.GameError, match="is empty"):
        jaxcfr.Blueprint.train_abstracted(game, Keep(lambda game, player: []), 5)


def test_a_game_that_walks_itself_is_walked_as_it_was_abstracted():
    """Its own walk would be that of the game inside."""

    class Walking(Wrapped):
        def walk_histories(self, max_nodes):
            raise AssertionError("the inner game was walked")

    first = Keep(lambda game, player: tuple(game.legal_actions())[:1])
    tree = jaxcfr.lower(jaxcfr.Abstracted(Walking(jaxcfr.load_game("kuhn_poker")), first)).tree
    assert tree.num_histories == 1 + 3 + 6 * 3  # the deal, and three histories of each of its six ends
