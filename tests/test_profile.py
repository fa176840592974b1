"""`Profile`: binding to keys, playing, and exact round trips through every format."""

import contextlib
import csv
import hashlib
import io
import json
import math
import os
import random
import re
import stat
import tracemalloc
import zipfile
from enum import Enum
from fractions import Fraction
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jaxcfr
from jaxcfr import profile as profile_module
from jaxcfr.errors import JaxCFRError, OptionError, ProfileError, ProfileFileError, StrategyError
from jaxcfr.files import require_writable
from jaxcfr.games.base import Game
from jaxcfr.games.registry import load_game
from jaxcfr.prescribed import lock
from jaxcfr.profile import Profile, require_storable
from jaxcfr.regret.text import describe, parse_variant
from jaxcfr.regret.variants import CFRPlus, PCFRPlus, dcfr_plus
from jaxcfr.solve import average_strategy, solve
from jaxcfr.tree.convert import uniform_strategy
from jaxcfr.tree.lower import lower


class KeyGame(Game):
    """Chance picks one of the given information sets; its player acts, and the play ends.

    Args:
        infosets: (player, key, actions) each.
        labels: from action to label; by default `str`.
        name: of the game.
    """

    num_players = 2

    def __init__(self, infosets, labels=str, name="key_game", at=None, ended=False):
        self.infosets, self.labels, self.name, self.at, self.ended = infosets, labels, name, at, ended

    def is_terminal(self):
        return self.ended

    def is_chance(self):
        return not self.ended and self.at is None

    def chance_outcomes(self):
        return [(number, Fraction(1, len(self.infosets))) for number in range(len(self.infosets))]

    def player_to_act(self):
        return self.infosets[self.at][0]

    def infoset_key(self, player):
        return self.infosets[self.at][1]

    def legal_actions(self):
        return self.infosets[self.at][2]

    def step(self, action):
        at, ended = (action, False) if self.at is None else (self.at, True)
        return KeyGame(self.infosets, self.labels, self.name, at, ended)

    def terminal_returns(self):
        return (1, -1)

    def action_label(self, action):
        return self.labels(action)


def random_strategy(lowered, seed):
    rng = np.random.default_rng(seed)
    rows = [[rng.dirichlet(np.ones(len(a))) for a in actions] for actions in lowered.actions]
    return lowered.strategy(rows)


@pytest.fixture(scope="module")
def kuhn_profile(kuhn):
    return Profile.from_strategy(kuhn, random_strategy(kuhn, 1), variant="dcfr_plus", iterations=7, seed=3)


def kuhn_history(*actions):
    game = load_game("kuhn_poker")
    for action in actions:
        game = game.step(action)
    return game


def round_trips(profile, tmp_path):
    path = tmp_path / "round_trip"
    profile.save(path)
    yield Profile.load(path)
    yield Profile.from_dict(profile.to_dict())
    yield Profile.from_dict(json.loads(json.dumps(profile.to_dict())))
    yield Profile.from_json(profile.to_json())
    yield Profile.from_json(profile.to_json(indent=1))
    yield Profile.from_csv(profile.to_csv())


def typed(value):
    """A value with the types of all its parts, so that 1, True and 1.0 differ."""
    if isinstance(value, tuple):
        return tuple(typed(item) for item in value)
    if isinstance(value, frozenset):
        return frozenset(typed(item) for item in value)
    return type(value), repr(value)


# From and to the solver


@pytest.mark.parametrize("name", ["kuhn_poker", "kuhn_poker(players=3)", "leduc_poker", "matching_pennies"])
def test_strategy_round_trip_is_exact(name, tmp_path):
    lowered = lower(load_game(name))
    strategy = random_strategy(lowered, 0)
    profile = Profile.from_strategy(lowered, strategy)
    for restored in (profile, *round_trips(profile, tmp_path)):
        assert restored == profile
        back = restored.to_strategy(lowered)
        assert [values.dtype for values in back] == [values.dtype for values in strategy]
        assert all(np.array_equal(a, b) for a, b in zip(back, strategy, strict=True))


def test_facts(kuhn, kuhn_profile):
    profile = kuhn_profile
    assert (profile.game_name, profile.num_players, profile.num_infosets, len(profile)) == ("kuhn_poker", 2, (6, 6), 12)
    assert (profile.variant, profile.iterations, profile.seed) == ("dcfr_plus", 7, 3)
    assert profile.infoset_keys == kuhn.infoset_keys
    assert (profile.tree_shape.histories, profile.tree_shape.terminals) == (58, 30)
    assert (profile.tree_shape.depth, profile.tree_shape.sequences) == (5, (13, 13))
    assert repr(profile) == "Profile('kuhn_poker', infosets=(6, 6), variant='dcfr_plus', iterations=7, seed=3)"
    with pytest.raises(TypeError):
        hash(profile)


def test_from_strategy_takes_a_variant_and_the_state_counter(kuhn):
    state = solve(kuhn.tree, dcfr_plus(), 3)
    profile = Profile.from_strategy(
        kuhn, average_strategy(kuhn.tree, state), variant=dcfr_plus(), iterations=state.t, seed=np.int64(4)
    )
    assert (profile.iterations, type(profile.iterations), profile.seed, type(profile.seed)) == (3, int, 4, int)
    assert "alpha=1.5" in profile.variant


def test_equality_looks_at_everything(kuhn, kuhn_profile):
    data = kuhn_profile.to_dict()
    assert kuhn_profile == Profile.from_dict(data)
    assert kuhn_profile != "kuhn_poker"
    other = Profile.from_strategy(kuhn, uniform_strategy(kuhn.tree), variant="dcfr_plus", iterations=7, seed=3)
    assert other != kuhn_profile
    for field, value in (("game", "x"), ("variant", None), ("iterations", 8), ("seed", None)):
        assert Profile.from_dict({**data, field: value}) != kuhn_profile
    relabelled = json.loads(json.dumps(data))
    relabelled["players"][0][0]["labels"] = ["a", "b"]
    assert Profile.from_dict(relabelled) != kuhn_profile


def test_from_strategy_refuses(kuhn):
    uniform = uniform_strategy(kuhn.tree)
    with pytest.raises(StrategyError):
        Profile.from_strategy(kuhn, uniform[:1])
    with pytest.raises(StrategyError):
        Profile.from_strategy(kuhn, tuple(2 * values for values in uniform))
    with pytest.raises(ProfileError, match="LoweredGame"):
        Profile.from_strategy(kuhn.tree, uniform)
    with pytest.raises(ProfileError, match="iterations"):
        Profile.from_strategy(kuhn, uniform, iterations=-1)
    with pytest.raises(ProfileError, match="seed"):
        Profile.from_strategy(kuhn, uniform, seed=1.5)
    with pytest.raises(ProfileError, match="outside of jit"):
        jax.jit(lambda strategy: Profile.from_strategy(kuhn, strategy) and 0)(uniform)


def test_to_strategy_names_what_is_missing(kuhn, kuhn_profile):
    leduc, three = lower(load_game("leduc_poker")), lower(load_game("kuhn_poker(players=3)"))
    with pytest.raises(ProfileError, match=r"player 0 .*'Js '.* more, .*; the profile was made for kuhn_poker .*leduc"):
        kuhn_profile.to_strategy(leduc)
    with pytest.raises(ProfileError, match=r"2 players, but the game has 3"):
        kuhn_profile.to_strategy(three)
    with pytest.raises(ProfileError, match="LoweredGame"):
        kuhn_profile.to_strategy(kuhn.tree)


def test_to_strategy_names_keys_that_differ_in_a_game_of_the_same_size():
    first = lower(KeyGame([(0, key, ("x", "y")) for key in "abcde"]))
    second = lower(KeyGame([(0, key, ("x", "y")) for key in "aBCDE"]))
    profile = Profile.from_strategy(first, uniform_strategy(first.tree))
    with pytest.raises(ProfileError) as error:
        profile.to_strategy(second)
    assert str(error.value) == (
        "player 0 has no strategy for the information sets 'B', 'C', 'D' and 1 more, but one for 'b', 'c', 'd' and 1 "
        "more, which the game does not have; the profile was made for key_game, the game is key_game, of the same size"
    )


@pytest.mark.parametrize(
    ("variant", "text"),
    [
        (jaxcfr.pcfr_plus(), "pcfr_plus:gamma=2"),
        (jaxcfr.sapcfr_plus(3), "sapcfr_plus:gamma=3"),
        (jaxcfr.dcfr(1.5, np.float32(0.5)), "dcfr:alpha=1.5,beta=0.5,gamma=2"),
        (jaxcfr.linear_cfr(), "linear_cfr"),
        (jaxcfr.hs_pcfr_plus(30, 1000), "hs_pcfr_plus:gamma_init=30,total=1000"),
        ("what I did", "what I did"),
    ],
)
def test_variants_are_recorded_as_the_command_line_takes_them(kuhn, variant, text):
    profile = Profile.from_strategy(kuhn, uniform_strategy(kuhn.tree), variant=variant)
    assert profile.variant == text
    if variant != text:
        assert parse_variant(text) == variant
        assert describe(parse_variant(text)) == text


def test_variants_that_no_factory_makes_are_recorded_as_python_shows_them(kuhn):
    for variant in (jaxcfr.dcfr(jaxcfr.linear(1, 2, 100)), jaxcfr.RegretVariant(), PCFRPlus(2.0, 0.5), CFRPlus(2.0)):
        assert describe(variant) == repr(variant)
        assert Profile.from_strategy(kuhn, uniform_strategy(kuhn.tree), variant=variant).variant == repr(variant)


def test_strategies_may_be_lists(kuhn):
    uniform = uniform_strategy(kuhn.tree)
    profile = Profile.from_strategy(kuhn, uniform)
    assert Profile.from_strategy(kuhn, [np.asarray(values).tolist() for values in uniform]) == profile


def test_to_strategy_takes_another_game_that_fits_in_another_order(tmp_path):
    infosets = [(0, "a", ("x", "y")), (1, "b", ("x",)), (0, "c", ("z", "y", "x")), (1, "d", ("x", "y"))]
    first = lower(KeyGame(infosets))
    profile = Profile.from_strategy(first, random_strategy(first, 0))
    fewer = lower(KeyGame(list(reversed(infosets))[:3], name="another"))
    strategy = profile.to_strategy(fewer)
    for player in (0, 1):
        for key, row in zip(fewer.infoset_keys[player], fewer.probabilities(strategy, player), strict=True):
            np.testing.assert_allclose(row, list(profile.average_strategy(player, key).values()), rtol=1e-6)


def test_actions_in_another_order_are_refused():
    lowered = lower(KeyGame([(0, "a", ("x", "y"))]))
    profile = Profile.from_strategy(lowered, random_strategy(lowered, 0))
    for actions in (("y", "x"), ("x",), ("x", "y", "z")):
        game = KeyGame([(0, "a", actions)])
        for refuses in (profile.policy, profile.policy_strict, profile.act):
            with pytest.raises(ProfileError, match=r"player 0 has the actions .* at the information set 'a'.*order"):
                refuses(game.step(0))
        with pytest.raises(ProfileError, match=r"\[x, y\]"):
            profile.act_stochastic(game.step(0), None, np.random.default_rng(0))
        with pytest.raises(ProfileError, match="player 0 has the actions"):
            profile.to_strategy(lower(game))


def test_labels_that_repeat_do_not_hide_another_order():
    def labels(action):
        return "same"

    lowered = lower(KeyGame([(0, "a", (1, 2))], labels))
    profile = Profile.from_strategy(lowered, random_strategy(lowered, 0))
    assert list(profile.average_strategy(0, "a")) == ["same (1)", "same (2)"]
    with pytest.raises(ProfileError, match="labels do not tell them apart"):
        profile.policy(KeyGame([(0, "a", (2, 1))], labels).step(0))


def test_a_float32_profile_in_a_float64_tree():
    coarse, fine = (lower(load_game("kuhn_poker"), dtype=dtype) for dtype in ("float32", "float64"))
    strategy = average_strategy(coarse.tree, solve(coarse.tree, iterations=30))
    profile = Profile.from_strategy(coarse, strategy)
    finer = profile.to_strategy(fine)
    fine.tree.check_strategy(finer)
    for player in (0, 1):
        assert finer[player].dtype == np.float64
        for row, stored in zip(fine.probabilities(finer, player), coarse.probabilities(strategy, player), strict=True):
            assert abs(row.sum() - 1) < 1e-15
            np.testing.assert_allclose(row, stored, rtol=1e-6)
    assert all(np.array_equal(a, b) for a, b in zip(profile.to_strategy(coarse), strategy, strict=True))
    exact = random_strategy(fine, 5)
    assert all(
        np.array_equal(a, b) for a, b in zip(Profile.from_strategy(fine, exact).to_strategy(fine), exact, strict=True)
    )


def test_games_without_moves(tmp_path):
    for name in ("09_terminal_root", "10_chance_only", "11_one_player"):
        lowered = lower(load_game(os.path.join(os.path.dirname(__file__), "cases", f"{name}.efg")))
        profile = Profile.from_strategy(lowered, uniform_strategy(lowered.tree))
        for restored in round_trips(profile, tmp_path):
            assert restored == profile
            assert len(restored.to_strategy(lowered)) == lowered.tree.num_players
        assert profile.pretty().startswith("player")
        assert len(profile) == sum(lowered.tree.num_infosets)


# Playing


def test_policy_is_in_the_order_of_legal_actions(kuhn, kuhn_profile):
    game = kuhn_history(2, 0, 1)
    policy = kuhn_profile.policy(game)
    assert policy.dtype == np.float64
    assert policy.sum() == pytest.approx(1, abs=1e-15)
    assert kuhn_profile.average_strategy(1, "0b") == dict(zip(("pass", "bet"), policy.tolist(), strict=True))
    assert np.array_equal(policy, kuhn_profile.policy(game, 1))
    assert np.array_equal(policy, kuhn_profile.policy_strict(game))
    assert kuhn_profile.act(game) == int(policy.argmax())
    policy[0] = 5  # a copy
    assert kuhn_profile.policy(game)[0] != 5


def test_act_takes_the_first_of_ties(kuhn):
    assert Profile.from_strategy(kuhn, uniform_strategy(kuhn.tree)).act(kuhn_history(0, 1)) == 0


@pytest.mark.parametrize("rest", [(), (0,), (np.random.default_rng(0),), (0, 7), (None, random.Random(0))])
def test_act_stochastic_says_what_draws(kuhn_profile, rest):
    game = load_game("kuhn_poker").step(0).step(1)
    with pytest.raises(
        ProfileError, match=r"act_stochastic\(game, player, rng\) needs a numpy.random.Generator as rng"
    ):
        kuhn_profile.act_stochastic(game, *rest)


def test_act_stochastic_draws_with_the_policy(kuhn_profile):
    game, rng = kuhn_history(2, 0), np.random.default_rng(0)
    draws = [kuhn_profile.act_stochastic(game, 0, rng) for _ in range(2000)]
    assert set(draws) <= {0, 1}
    assert np.mean(draws) == pytest.approx(kuhn_profile.policy(game)[1], abs=0.04)
    again = np.random.default_rng(0)
    assert draws == [kuhn_profile.act_stochastic(game, None, again) for _ in range(2000)]


def test_unknown_information_sets_are_uniform_or_refused(kuhn_profile):
    game = KeyGame([(1, "unknown", ("x", "y", "z", "w"))]).step(0)
    assert kuhn_profile.policy(game, missing="uniform").tolist() == [0.25] * 4
    with pytest.raises(ProfileError, match=r"this profile is of kuhn_poker, .*'unknown' of player 1, as key_game has"):
        kuhn_profile.policy(game)
    game.name = "kuhn_poker"
    assert kuhn_profile.policy(game).tolist() == [0.25] * 4
    assert kuhn_profile.act(game) == "x"
    with pytest.raises(ProfileError, match=r"player 1 .*'unknown'"):
        kuhn_profile.policy_strict(game)
    for look in (kuhn_profile.average_strategy, kuhn_profile.probabilities):
        with pytest.raises(ProfileError, match=r"player 1 .*'unknown'"):
            look(1, "unknown")


@pytest.mark.parametrize(
    ("player", "key", "told"),
    [
        (0, "0 ", "did you mean '0'?"),
        (0, 0, "did you mean '0'?"),
        (0, "2PB", "did you mean '2pb'?"),
        (0, "0bp", "did you mean '0pb'?"),
        (0, "0b", "it is one of player 1"),
        (1, "9", "its keys are such as '1p', '1b', '2p'"),
    ],
)
def test_keys_that_are_nearly_right_are_named(kuhn, kuhn_profile, player, key, told):
    assert not kuhn_profile.has_infoset(player, key)
    for look in (kuhn_profile.probabilities, lambda p, k: lock(kuhn, {p: {k: [1, 0]}})):
        with pytest.raises(ProfileError, match=re.escape(told)):
            look(player, key)


def test_policy_refuses_where_the_player_does_not_act(kuhn_profile):
    with pytest.raises(ProfileError, match="chance moves"):
        kuhn_profile.policy(kuhn_history(0))
    with pytest.raises(ProfileError, match="ended"):
        kuhn_profile.policy(kuhn_history(0, 1, 0, 0))
    with pytest.raises(ProfileError, match="player 1 does not act"):
        kuhn_profile.policy(kuhn_history(0, 1), 1)
    with pytest.raises(ProfileError, match="from 0 to 1, not 2"):
        kuhn_profile.average_strategy(2, "0")
    with pytest.raises(ProfileError, match="integer"):
        kuhn_profile.average_strategy("0", "0")
    with pytest.raises(ProfileError, match="from 0 to 1, not 3"):
        kuhn_profile.policy(KeyGame([(3, "a", ("x",))]).step(0))
    with pytest.raises(ProfileError, match="not hashable"):
        kuhn_profile.average_strategy(0, ["0"])


# Looking


def test_entropy_summary(kuhn):
    uniform = Profile.from_strategy(kuhn, uniform_strategy(kuhn.tree)).entropy_summary()
    assert uniform == (pytest.approx(math.log(2)),) * 3 + (12,)
    # Information sets with a single action do not count; certainty has entropy 0.
    lowered = lower(KeyGame([(0, "a", (0, 1)), (0, "b", (0,)), (1, "c", (0, 1, 2))]))
    profile = Profile.from_strategy(lowered, lowered.strategy([[[1.0, 0.0], [1.0]], [[0.5, 0.25, 0.25]]]))
    assert profile.entropy_summary() == (
        pytest.approx(0.75 * math.log(2)),
        0,
        pytest.approx(1.5 * math.log(2)),
        2,
    )
    single = lower(KeyGame([(0, "b", (0,))]))
    assert Profile.from_strategy(single, uniform_strategy(single.tree)).entropy_summary() == (0, 0, 0, 0)


def test_pretty(kuhn, kuhn_profile):
    uniform = Profile.from_strategy(kuhn, uniform_strategy(kuhn.tree))
    lines = uniform.pretty().split("\n")
    assert lines[0].split() == ["player", "information", "set", "strategy"]
    assert "pass 0.5000  bet 0.5000" in lines[1]
    assert len(lines) == 13
    assert uniform.pretty(max_rows=5).endswith("... and 7 more information sets (of 12)")
    assert len(uniform.pretty(player=1).split("\n")) == 7
    assert [line.split()[1] for line in uniform.pretty(pattern="0*B").split("\n")[1:]] == ["0pb", "0b"]
    assert "is like 'x'" in uniform.pretty(pattern="x")
    assert len(uniform.pretty(max_rows=None).split("\n")) == 13
    with pytest.raises(OptionError, match="max_rows"):
        uniform.pretty(max_rows=-1)
    with pytest.raises(ProfileError, match="from 0 to 1, not 9"):
        uniform.pretty(player=9)


def test_infosets_by_pattern(kuhn):
    keys = ["0", "0pb", "[a](b)", "A*", "X\ny", ("t", 1), "Js "]
    lowered = lower(KeyGame([(n % 2, key, ("x", "y")) for n, key in enumerate(keys)]))
    profile = Profile.from_strategy(lowered, uniform_strategy(lowered.tree))

    def found(pattern, player=None):
        return {infoset.key for infoset in profile.infosets(player=player, pattern=pattern)}

    assert found(None) == found("") == found("*") == set(keys)
    assert found("0") == {"0", "0pb"}
    assert found("?") == {"0"}
    assert found("?s") == found("?s ") == {"Js "}  # as it is seen, and as it is
    assert found("0*b") == found("??B") == {"0pb"}
    assert found("[A](") == found("[*)") == {"[a](b)"}
    assert found("a*") == {"A*"}
    assert found("'t', ?") == set()  # with ? or * it is the whole key that counts
    assert found("('t', ?)") == {("t", 1)}
    assert found(r"\n") == {"X\ny"}
    assert found(None, player=1) == {"0pb", "A*", ("t", 1)}
    for infoset in profile.infosets():
        assert profile.average_strategy(infoset.player, infoset.key) == dict(
            zip(infoset.labels, infoset.probabilities, strict=True)
        )
    with pytest.raises(ProfileError, match="from 0 to 1, not 2"):
        profile.infosets(player=2)


def test_pretty_cuts_many_actions_and_escapes_control_characters():
    lowered = lower(KeyGame([(0, "\x1b[31m", tuple(range(100))), (0, ("a", 1), ("\n",))]))
    rows = [[np.eye(100)[70], [1.0]], []]
    table = Profile.from_strategy(lowered, lowered.strategy(rows)).pretty()
    assert "\x1b" not in table
    assert "70 1.0000" in table
    assert "(and 88 less probable)" in table
    assert r"('a', 1)" in table
    assert r"'\n' 1.0000" in table
    assert len(table.split("\n")) == 3


# Files


def test_save_writes_exactly_there_and_nothing_else(kuhn_profile, tmp_path):
    for name in ("profile", "profile.npz", "ünïcode name", "p.tar.gz"):
        kuhn_profile.save(str(tmp_path / name))
        assert Profile.load(str(tmp_path / name)) == kuhn_profile
    assert sorted(os.listdir(tmp_path)) == sorted(["profile", "profile.npz", "ünïcode name", "p.tar.gz"])
    assert (tmp_path / "profile").read_bytes() == (tmp_path / "profile.npz").read_bytes()
    with np.load(tmp_path / "profile") as archive:  # plain arrays, no pickle
        assert archive["probabilities_0"].shape == (12,)


def test_save_takes_relative_paths_and_links(kuhn_profile, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("inside")
    os.symlink(os.path.join("inside", "target"), "link")
    kuhn_profile.save("link")
    assert os.path.islink("link")
    assert os.listdir("inside") == ["target"]
    assert Profile.load("link") == kuhn_profile


def test_save_keeps_permissions(kuhn_profile, tmp_path):
    kuhn_profile.save(tmp_path / "new")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o666 & ~umask
    os.chmod(tmp_path / "new", 0o640)
    kuhn_profile.save(tmp_path / "new")
    assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o640


def test_save_that_fails_leaves_the_old_file(kuhn, kuhn_profile, tmp_path, monkeypatch):
    path = tmp_path / "profile"
    kuhn_profile.save(path)
    other = Profile.from_strategy(kuhn, uniform_strategy(kuhn.tree))
    for name in ("fsync", "replace"):

        def fails(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(profile_module.os, name, fails)
            with pytest.raises(ProfileFileError, match="no space left"):
                other.save(path)
        assert os.listdir(tmp_path) == ["profile"]
        assert Profile.load(path) == kuhn_profile


def test_save_refuses(kuhn_profile, tmp_path):
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "fifo")
    for path, reason in (
        (tmp_path, "directory"),
        (f"{tmp_path}/", "directory"),
        (tmp_path / "none" / "x", "there is no directory"),
        (tmp_path / "file" / "x", "there is no directory"),
        (tmp_path / "fifo", "not a regular file"),
        (tmp_path / ("x" * 300), "name too long"),
        ("", "not the path"),
        ("a\0b", "not the path"),
    ):
        for refuses in (kuhn_profile.save, require_writable):
            with pytest.raises(ProfileFileError, match=reason):
                refuses(path)
    assert sorted(os.listdir(tmp_path)) == ["fifo", "file"]
    if os.geteuid() != 0:  # nothing is forbidden to root
        os.chmod(tmp_path / "file", 0o444)
        with pytest.raises(ProfileFileError, match="read-only"):
            kuhn_profile.save(tmp_path / "file")
        os.chmod(tmp_path, 0o555)
        with pytest.raises(ProfileFileError, match="permission denied"):
            kuhn_profile.save(tmp_path / "other")
        os.chmod(tmp_path, 0o755)


def test_load_refuses_what_is_no_profile(tmp_path):
    np.savez(tmp_path / "foreign.npz", a=np.zeros(3))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("not a profile\n" * 100)
    (tmp_path / "zip_magic").write_bytes(b"PK\x03\x04" + b"\0" * 500)
    for name in ("foreign.npz", "empty", "text", "zip_magic"):
        with pytest.raises(ProfileFileError, match=f"{name}: not a jaxcfr profile"):
            Profile.load(tmp_path / name)
    with pytest.raises(ProfileFileError, match="no such file"):
        Profile.load(tmp_path / "none")
    with pytest.raises(ProfileFileError, match="is a directory"):
        Profile.load(tmp_path)
    with pytest.raises(ProfileFileError, match="cannot be read"):
        Profile.load("a\0b")


def test_damage_is_always_noticed(kuhn_profile, tmp_path):
    kuhn_profile.save(tmp_path / "whole")
    data, path = (tmp_path / "whole").read_bytes(), tmp_path / "damaged"
    damaged = [data[:size] for size in range(0, len(data), 100)] + [data[:-1], data + b"\0", data[100:]]
    for position in range(0, len(data), 3):
        damaged.append(data[:position] + bytes([data[position] ^ (1 << position % 8)]) + data[position + 1 :])
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(ProfileFileError):
            Profile.load(path)


def seal(data):
    """The file with a digest that is right, as a forger would write it."""
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


def test_damage_under_a_right_digest_is_a_clean_error(kuhn_profile, tmp_path):
    kuhn_profile.save(tmp_path / "whole")
    data, path = (tmp_path / "whole").read_bytes(), tmp_path / "forged"
    rng = np.random.default_rng(0)
    for position in range(0, len(data) - 64, 2):
        changed = bytearray(data)
        changed[position] ^= int(rng.integers(1, 256))
        path.write_bytes(seal(bytes(changed)))
        with contextlib.suppress(ProfileFileError):  # any other exception fails the test
            assert Profile.load(path) == kuhn_profile  # some bytes, dates for instance, mean nothing


@pytest.mark.parametrize("name", ["jaxcfr_profile", "keys_0", "menus_1", "probabilities_0", "more"])
def test_a_small_file_that_would_fill_the_memory_is_refused(kuhn_profile, tmp_path, name):
    """Sizes are compared with the counts of the header before anything is unpacked."""
    kuhn_profile.save(tmp_path / "whole")
    bomb = io.BytesIO()
    np.lib.format.write_array(bomb, np.full(70 << 20, ord(" "), np.uint8))
    forged = io.BytesIO()
    with zipfile.ZipFile(tmp_path / "whole") as whole, zipfile.ZipFile(forged, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in whole.namelist():
            archive.writestr(member, bomb.getvalue() if member == f"{name}.npy" else whole.read(member))
        if name == "more":
            archive.writestr("more.npy", bomb.getvalue())
        archive.comment = whole.comment
    data = seal(forged.getvalue())
    assert len(data) < 200_000
    (tmp_path / "forged").write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(ProfileFileError, match=r"does not go with the counts|do not go with 2 players"):
            Profile.load(tmp_path / "forged")
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_another_version_is_refused(kuhn_profile, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(profile_module, "VERSION", 2)
        kuhn_profile.save(tmp_path / "newer")
        texts = kuhn_profile.to_json(), kuhn_profile.to_csv()
    with pytest.raises(ProfileFileError, match="format version 2, and this jaxcfr reads version 1"):
        Profile.load(tmp_path / "newer")
    for read, text in zip((Profile.from_json, Profile.from_csv), texts, strict=True):
        with pytest.raises(ProfileFileError, match="version 2"):
            read(text)


# Keys


KEYS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
    | st.fractions(),
    lambda inner: st.tuples(inner, inner) | st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    # A key that is None is taken for a forgotten return.
    keys=st.lists(
        st.tuples(st.integers(0, 1), KEYS.filter(lambda key: key is not None)), min_size=1, max_size=6, unique=True
    ),
    actions=st.lists(KEYS, min_size=1, max_size=4, unique=True),
    labels=st.lists(st.text(), min_size=4, max_size=4),
    name=st.text(min_size=1),
    variant=st.none() | st.text(),
    iterations=st.none() | st.integers(0),
    seed=st.none() | st.integers(),
    random=st.integers(0, 2**32),
)
def test_round_trips(tmp_path, keys, actions, labels, name, variant, iterations, seed, random):
    game = KeyGame(
        [(player, key, tuple(actions[: 1 + number % len(actions)])) for number, (player, key) in enumerate(keys)],
        lambda action: labels[actions.index(action)],
        name,
    )
    lowered = lower(game)
    profile = Profile.from_strategy(
        lowered, random_strategy(lowered, random), variant=variant, iterations=iterations, seed=seed
    )
    for restored in round_trips(profile, tmp_path):
        assert restored == profile
        assert typed(restored.infoset_keys) == typed(profile.infoset_keys)
        for player, key in keys:
            assert restored.average_strategy(player, key) == profile.average_strategy(player, key)
        assert all(
            np.array_equal(a, b)
            for a, b in zip(restored.to_strategy(lowered), profile.to_strategy(lowered), strict=True)
        )


def test_labels_do_not_depend_on_the_order_in_which_a_set_was_made(tmp_path):
    """Equal frozensets may iterate, and so print, in different orders."""
    colliding = [frozenset([8, 0]), (frozenset([0, 8]), "x")]
    swapped = [frozenset([0, 8]), (frozenset([8, 0]), "x")]
    tables = []
    for actions in (colliding, swapped):
        lowered = lower(KeyGame([(0, "key", tuple(actions))], lambda action: "same"))
        profile = Profile.from_strategy(lowered, random_strategy(lowered, 0))
        tables += [p.average_strategy(0, "key") for p in (profile, *round_trips(profile, tmp_path))]
    assert list(tables[0]) == ["same (frozenset({0, 8}))", "same ((frozenset({0, 8}), 'x'))"]
    assert all(table == tables[0] for table in tables)


def test_subclasses_of_plain_types_are_stored_as_these(tmp_path):
    class Card(NamedTuple):
        rank: int
        suit: str

    lowered = lower(KeyGame([(0, Card(3, "s"), (np.int64(0), np.int64(1))), (1, np.str_("x"), (0, 1))]))
    profile = Profile.from_strategy(lowered, random_strategy(lowered, 0))
    for restored in round_trips(profile, tmp_path):
        assert restored == profile
        assert restored.average_strategy(0, Card(3, "s")) == profile.average_strategy(0, (3, "s"))
    assert type(Profile.from_json(profile.to_json()).infoset_keys[0][0]) is tuple


def test_keys_that_cannot_be_stored_say_what_to_do(tmp_path):
    class Suit(Enum):
        SPADES = 1

    class TextSuit(str, Enum):  # noqa: UP042  # its hash is not that of its text
        SPADES = "s"

    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    for key, what in (
        (Suit.SPADES, "Suit"),
        (TextSuit.SPADES, "TextSuit"),
        ((1, Suit.SPADES), "Suit"),
        (1j, "complex"),
    ):
        for infoset in ((1, key, (0, 1)), (0, "a", (key,))):
            lowered = lower(KeyGame([infoset]))
            profile = Profile.from_strategy(lowered, uniform_strategy(lowered.tree))
            for export in (lambda p: p.save(tmp_path / "x"), Profile.to_dict, Profile.to_json, Profile.to_csv):
                with pytest.raises(ProfileError, match=what) as caught:
                    export(profile)
                assert "tuples" in str(caught.value)
            with pytest.raises(ProfileError, match=what):
                require_storable(lowered)
            assert profile.average_strategy(infoset[0], infoset[1])  # in memory anything hashable will do
    assert os.listdir(tmp_path) == []


def test_large_numbers(tmp_path):
    key = (10**6000, -(2**63), 2**63, Fraction(10**5000, 3), float("inf"), -0.0, 5e-324)
    lowered = lower(KeyGame([(0, key, (0, 1))]))
    profile = Profile.from_strategy(lowered, random_strategy(lowered, 0), seed=2**200)
    for restored in round_trips(profile, tmp_path):
        assert restored == profile
        assert math.copysign(1, restored.infoset_keys[0][0][5]) == -1


# Plain formats


def broken(profile, change):
    data = json.loads(json.dumps(profile.to_dict()))
    change(data)
    return data


BREAKS = {
    "nan": lambda d: d["players"][0][0].update(probabilities=[float("nan"), 1.0]),
    "infinite": lambda d: d["players"][0][0].update(probabilities=[float("inf"), 1.0]),
    "both infinities": lambda d: d["players"][0][0].update(probabilities=[float("inf"), float("-inf")]),
    "negative": lambda d: d["players"][0][0].update(probabilities=[-0.5, 1.5]),
    "unnormalised": lambda d: d["players"][0][0].update(probabilities=[0.5, 0.6]),
    "zeros": lambda d: d["players"][1][5].update(probabilities=[0, 0]),
    "text": lambda d: d["players"][0][0].update(probabilities=["0.5", "0.5"]),
    "booleans": lambda d: d["players"][0][0].update(probabilities=[True, False]),
    "too many": lambda d: d["players"][0][0].update(probabilities=[0.5, 0.25, 0.25]),
    "no actions": lambda d: d["players"][0][0].update(actions=[], labels=[], probabilities=[]),
    "same actions": lambda d: d["players"][0][0].update(actions=[1, 1]),
    "labels": lambda d: d["players"][0][0].update(labels=["a"]),
    "label type": lambda d: d["players"][0][0].update(labels=["a", 2]),
    "key type": lambda d: d["players"][0][0].update(key={"set": [1]}),
    "key types": lambda d: d["players"][0][0].update(key={"int": "1", "float": "inf"}),
    "key content": lambda d: d["players"][0][0].update(key={"bytes": "x"}),
    "fraction": lambda d: d["players"][0][0].update(key={"fraction": [1, 0]}),
    "same key": lambda d: d["players"][0][0].update(key=d["players"][0][1]["key"]),
    "infoset field": lambda d: d["players"][0][0].update(more=1),
    "infoset": lambda d: d["players"][0].append(3),
    "infosets": lambda d: d["players"][0].pop(),
    "players": lambda d: d["players"].pop(),
    "no players": lambda d: d.update(players=[]),
    "players type": lambda d: d.update(players={}),
    "field": lambda d: d.update(seeds=3),
    "missing": lambda d: d.pop("seed"),
    "game": lambda d: d.update(game=3),
    "variant": lambda d: d.update(variant=3),
    "iterations": lambda d: d.update(iterations=-3),
    "seed": lambda d: d.update(seed="3"),
    "version": lambda d: d.update(version="1"),
    "format": lambda d: d.update(format="other"),
    "tree": lambda d: d.update(tree=None),
    "tree count": lambda d: d["tree"].update(depth=-1),
    "tree infosets": lambda d: d["tree"].update(infosets=[6, 7]),
    "tree infosets type": lambda d: d["tree"].update(infosets=6),
}


@pytest.mark.parametrize("case", BREAKS)
def test_broken_dicts_and_json_are_refused(kuhn_profile, case):
    data = broken(kuhn_profile, BREAKS[case])
    with pytest.raises(ProfileError):
        Profile.from_dict(data)
    with pytest.raises(ProfileFileError, match="this JSON text: "):
        Profile.from_json(json.dumps(data))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "3", "[" * 100_000, '{"format": NaN}', "9" * 5000, "\ud800", '"' + "\\ud8" + '"']
)
def test_text_that_is_no_profile_is_refused(text):
    for read in (Profile.from_json, Profile.from_csv):
        with pytest.raises(ProfileFileError):
            read(text)
    for value in (None, 3, [], {}, "x"):
        with pytest.raises(ProfileError):
            Profile.from_dict(value)
    with pytest.raises(ProfileFileError):
        Profile.from_json(None)


def test_csv_is_a_plain_table(kuhn_profile):
    rows = list(csv.DictReader(io.StringIO(kuhn_profile.to_csv())))
    assert len(rows) == 24
    assert [rows[0][name] for name in ("player", "key", "action", "label")] == ["0", '"0"', "0", "pass"]
    assert float(rows[0]["probability"]) == kuhn_profile.to_dict()["players"][0][0]["probabilities"][0]
    assert json.loads(rows[0]["profile"])["game"] == "kuhn_poker"
    assert all(row["profile"] == "" for row in rows[1:])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("probability", "chance"),
        ("pass,", "pass,nan#"),
        ("pass,", "pass,-"),
        ('0,"""0""",0,pass', '7,"""0""",0,pass'),
        ('0,"""0""",0,pass', 'x,"""0""",0,pass'),
        ('0,"""0""",0,pass', "0,0,0,pass"),
        ('0,"""0""",0,pass', '0,"""0""",{},pass'),
        ("kuhn_poker", 'kuhn"_poker'),
        ("\n1,", "\n1,,"),
    ],
)
def test_broken_csv_is_refused(kuhn_profile, before, after):
    text = kuhn_profile.to_csv()
    assert before in text
    with pytest.raises(ProfileFileError, match="this CSV text: "):
        Profile.from_csv(text.replace(before, after, 1).replace("#", "\n"))


def test_csv_without_some_lines_is_refused(kuhn_profile):
    lines = kuhn_profile.to_csv().splitlines(keepends=True)
    for position in range(len(lines)):
        with pytest.raises(ProfileFileError):
            Profile.from_csv("".join(lines[:position] + lines[position + 1 :]))


def test_every_error_is_a_jaxcfr_error():
    assert issubclass(ProfileFileError, ProfileError)
    assert issubclass(ProfileError, JaxCFRError)


def test_values_cannot_be_changed(kuhn, kuhn_profile):
    strategy = tuple(np.array(values) for values in uniform_strategy(kuhn.tree))
    profile = Profile.from_strategy(kuhn, tuple(map(jnp.asarray, strategy)))
    strategy[0][:] = 0
    assert profile.policy(kuhn_history(0, 1)).tolist() == [0.5, 0.5]
