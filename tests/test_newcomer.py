"""What a newcomer gets wrong is told in one sentence of our own, on both sides: in Python and in the terminal."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxcfr
from jaxcfr import arguments, cli, errors


class Pennies(jaxcfr.Game):
    """Matching pennies; each class below it breaks one rule."""

    num_players = 2

    def __init__(self, path: tuple[str, ...] = ()) -> None:
        self.path = path

    def is_terminal(self) -> bool:
        return len(self.path) == 2

    def is_chance(self) -> bool:
        return False

    def player_to_act(self) -> int:
        return len(self.path)

    def legal_actions(self) -> tuple[str, ...]:
        return ("heads", "tails")

    def step(self, action: Any) -> Any:
        return type(self)((*self.path, action))

    def terminal_returns(self) -> Any:
        win = 1.0 if self.path[0] == self.path[1] else -1.0
        return (win, -win)

    def infoset_key(self, player: int) -> Any:
        return "to choose"


class Mutated(Pennies):
    def step(self, action: Any) -> Any:
        self.path = (*self.path, action)
        return self


class NothingReturned(Pennies):
    def step(self, action: Any) -> Any:
        self.path = (*self.path, action)


class NoKey(Pennies):
    def infoset_key(self, player: int) -> Any:
        "to choose"


class Unhashable(Pennies):
    def infoset_key(self, player: int) -> Any:
        return ["to choose"]


class NotANumber(Pennies):
    def terminal_returns(self) -> Any:
        return (float("nan"), 0.0)


class OnePayoff(Pennies):
    def terminal_returns(self) -> Any:
        return 1.0


class ForgottenPlayer(Pennies):
    def player_to_act(self) -> int:
        return len(self.path) + 1


class Unordered(Pennies):
    def legal_actions(self) -> Any:
        return {"heads", "tails"}


class OtherActions(Pennies):
    def legal_actions(self) -> tuple[str, ...]:
        return ("heads", "tails") if self.path != ("tails",) else ("left", "right")


class Forgetful(Pennies):
    """The first player moves again, and no longer knows what it did."""

    def is_terminal(self) -> bool:
        return len(self.path) == 3

    def player_to_act(self) -> int:
        return (0, 1, 0)[len(self.path)]

    def infoset_key(self, player: int) -> Any:
        return len(self.path)


class Loaded(Pennies):
    """A coin is thrown first."""

    def is_terminal(self) -> bool:
        return len(self.path) == 3

    def is_chance(self) -> bool:
        return not self.path

    def player_to_act(self) -> int:
        return len(self.path) - 1

    def chance_outcomes(self) -> Any:
        return (("heads", 0.5), ("tails", 0.4))


@functools.cache
def game() -> Any:
    return jaxcfr.load_game("kuhn_poker")


@functools.cache
def lowered(name: str = "kuhn_poker") -> jaxcfr.LoweredGame:
    return jaxcfr.lower(jaxcfr.load_game(name))


def tree(name: str = "kuhn_poker") -> jaxcfr.GameTree:
    return lowered(name).tree


@functools.cache
def state() -> jaxcfr.SolverState:
    return jaxcfr.solve(tree(), jaxcfr.dcfr(), 2)


def strategy() -> jaxcfr.Strategy:
    return jaxcfr.uniform_strategy(tree())


def profile() -> jaxcfr.Profile:
    return jaxcfr.Profile.from_strategy(lowered(), strategy())


def sampled(seed: Any) -> Any:
    return jaxcfr.solve(tree(), iterations=0, traversal=jaxcfr.external_sampling(batch=4), seed=seed)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@functools.cache
def general_sum() -> jaxcfr.GameTree:
    return jaxcfr.lower(jaxcfr.normal_form(np.array([[[3, 2], [0, 0]], [[0, 0], [2, 3]]]))).tree


def gap(alpha: Any) -> Any:
    return jaxcfr.nash_conv(tree(), jaxcfr.average_strategy(tree(), jaxcfr.solve(tree(), jaxcfr.dcfr(alpha), 3)))


MISTAKES: dict[str, tuple[Callable[[], Any], type[errors.JaxCFRError], str]] = {
    # Something else where a tree is needed
    "a game": (lambda: jaxcfr.solve(game()), errors.OptionError, r"jaxcfr\.lower\(game\)\.tree"),
    "a name": (lambda: jaxcfr.solve("kuhn_poker"), errors.OptionError, r"load_game\('kuhn_poker'\)\)\.tree makes one"),
    "a class": (lambda: jaxcfr.solve(Pennies), errors.OptionError, r"the class Pennies; .*lower\(Pennies\(\.\.\.\)\)"),
    "a lowered game": (lambda: jaxcfr.solve(lowered()), errors.OptionError, r"LoweredGame: pass its \.tree"),
    "arguments swapped": (lambda: jaxcfr.exploitability(strategy(), tree()), errors.OptionError, "tree comes first"),
    "stacked trees": (lambda: jaxcfr.solve(jaxcfr.stack([tree(), tree()])), errors.OptionError, "vmap over them"),
    # Something else where a game is needed
    "a name to lower": (lambda: jaxcfr.lower("kuhn_poker"), errors.GameError, r"load_game\('kuhn_poker'\) makes one"),
    "a class to lower": (lambda: jaxcfr.lower(Pennies), errors.GameError, r"pass an instance, Pennies\(\.\.\.\)"),
    "lowered twice": (lambda: jaxcfr.lower(lowered()), errors.GameError, "lowered already: give the game itself"),
    "a tree to lower": (lambda: jaxcfr.lower(tree()), errors.GameError, "no longer knows the rules"),
    "a tree without a tree": (lambda: jaxcfr.solve_game(tree()), errors.GameError, "give the game itself"),
    "a name to validate": (lambda: jaxcfr.validate_game("kuhn_poker"), errors.GameError, r"load_game\('kuhn_poker'\)"),
    "a name to play": (lambda: jaxcfr.play_out("kuhn_poker", [], rng()), errors.OptionError, "load_game"),
    "a game to cfr_d": (lambda: jaxcfr.cfr_d(game()), errors.OptionError, r"jaxcfr\.decompose\(game, cut\)"),
    # Names and files
    "a typo": (lambda: jaxcfr.load_game("khun_poker"), errors.GameLookupError, "did you mean kuhn_poker"),
    "an option's typo": (
        lambda: jaxcfr.load_game("kuhn_poker(player=3)"),
        errors.GameLookupError,
        "no option 'player'; did you mean players",
    ),
    "an option's value": (lambda: jaxcfr.load_game("kuhn_poker", players=30), errors.OptionError, "from 2 to 10"),
    "an open bracket": (lambda: jaxcfr.load_game("kuhn_poker(players=3"), errors.GameLookupError, "closing bracket"),
    "a missing file": (lambda: jaxcfr.load_game("nothing.efg"), errors.GameFileError, r"nothing\.efg: cannot be read"),
    "a foreign profile": (lambda: jaxcfr.Profile.load(__file__), errors.ProfileFileError, "not a jaxcfr profile"),
    "a profile from a dictionary of one's own": (
        lambda: jaxcfr.Profile.from_dict({0: {"K": {"bet": 1.0}}}),
        errors.ProfileError,
        r"lowered\.strategy\(rows\)",
    ),
    "information sets as a dictionary": (
        lambda: jaxcfr.Profile.from_infosets("kuhn_poker", {0: {"K": {"bet": 1.0}}}),  # type: ignore[arg-type]
        errors.ProfileError,
        r"a list of \(key, actions, labels, probabilities\)",
    ),
    "a foreign checkpoint": (lambda: jaxcfr.Trainer.load(__file__), errors.CheckpointError, "not a jaxcfr checkpoint"),
    # Rules
    "a game that changes": (lambda: jaxcfr.lower(Mutated()), errors.GameError, "return a new one"),
    "a step that returns nothing": (lambda: jaxcfr.lower(NothingReturned()), errors.GameError, "returned None instead"),
    "a key that is not returned": (lambda: jaxcfr.lower(NoKey()), errors.GameError, "is a return missing"),
    "two matrices": (
        lambda: jaxcfr.matrix_game([[3, 0], [5, 1]], [[3, 5], [0, 1]]),
        errors.GameError,
        r"jaxcfr\.normal_form",
    ),
    "a list as key": (lambda: jaxcfr.lower(Unhashable()), errors.GameError, r"unhashable value \['to choose'\]"),
    "a payoff of nan": (lambda: jaxcfr.lower(NotANumber()), errors.GameError, "payoff of player 0 is nan"),
    "one payoff for all": (lambda: jaxcfr.lower(OnePayoff()), errors.GameError, "one payoff for each of 2 players"),
    "a forgotten player": (lambda: jaxcfr.lower(ForgottenPlayer()), errors.GameError, "not a player from 0 to 1"),
    "a set of actions": (lambda: jaxcfr.lower(Unordered()), errors.GameError, "not a sequence with an order"),
    "actions that tell": (lambda: jaxcfr.lower(OtherActions()), errors.GameError, "have to be the same"),
    "imperfect recall": (lambda: jaxcfr.lower(Forgetful()), errors.RecallError, "player 0 forgets"),
    "chances of 0.9": (lambda: jaxcfr.lower(Loaded()), errors.GameError, "sum to 0.9, not to 1"),
    "too large a game": (lambda: jaxcfr.lower(jaxcfr.load_game("goofspiel")), errors.GameTooLargeError, "max_nodes"),
    # Strategies
    "a state as strategy": (lambda: jaxcfr.nash_conv(tree(), state()), errors.StrategyError, "average_strategy"),
    "a profile as strategy": (lambda: jaxcfr.nash_conv(tree(), profile()), errors.StrategyError, "to_strategy"),
    "one player's part": (lambda: jaxcfr.nash_conv(tree(), strategy()[:1]), errors.StrategyError, "one array per"),
    "an array as strategy": (lambda: jaxcfr.nash_conv(tree(), strategy()[0]), errors.StrategyError, "got an array"),
    "lists of numbers": (
        lambda: jaxcfr.nash_conv(tree(), tuple(values.tolist() for values in strategy())),
        errors.StrategyError,
        r"jnp\.asarray makes one",
    ),
    "another game's strategy": (
        lambda: jaxcfr.nash_conv(tree("matching_pennies"), strategy()),
        errors.StrategyError,
        "of another game",
    ),
    "no distribution": (
        lambda: jaxcfr.nash_conv(tree(), tuple(2 * values for values in strategy())),
        errors.StrategyError,
        "not a probability distribution at information set number 0",
    ),
    "a state for a profile": (
        lambda: jaxcfr.Profile.from_strategy(lowered(), state()),
        errors.StrategyError,
        "average_strategy",
    ),
    "a tree for a profile": (
        lambda: jaxcfr.Profile.from_strategy(tree(), strategy()),
        errors.ProfileError,
        r"LoweredGame that jaxcfr\.lower returned",
    ),
    # Profiles and play
    "another game's profile": (
        lambda: profile().to_strategy(lowered("leduc_poker")),
        errors.ProfileError,
        r"made for kuhn_poker .* the game is leduc_poker",
    ),
    "another game's history": (
        lambda: profile().policy(jaxcfr.load_game("leduc_poker").step(0).step(1)),
        errors.ProfileError,
        "this profile is of kuhn_poker",
    ),
    "a key as history": (lambda: profile().policy("0pb"), errors.ProfileError, r"average_strategy\(player, key\)"),
    "chance's turn": (lambda: profile().policy(game()), errors.ProfileError, "chance moves"),
    "one profile for two": (lambda: jaxcfr.play_out(game(), profile(), rng()), errors.OptionError, "one profile for"),
    "a seed as generator": (
        lambda: jaxcfr.play_out(game(), [profile()] * 2, 0),
        errors.OptionError,
        r"numpy\.random\.default_rng\(seed\)",
    ),
    "the other way to lock": (lambda: jaxcfr.solve(tree(), locked={0: {}}), errors.OptionError, r"jaxcfr\.lock"),
    # Variants and traversals
    "a variant's name": (lambda: jaxcfr.solve(tree(), "dcfr"), errors.OptionError, r"jaxcfr\.dcfr\(\) makes one"),
    "a variant not called": (lambda: jaxcfr.solve(tree(), jaxcfr.dcfr), errors.OptionError, r"call it, dcfr\(\)"),
    "iterations as variant": (lambda: jaxcfr.solve(tree(), 1000), errors.OptionError, "not 1000"),
    "a traversal's name": (
        lambda: jaxcfr.solve(tree(), traversal="external"),
        errors.OptionError,
        r"jaxcfr\.external_sampling\(\) makes one",
    ),
    "a traversal not called": (
        lambda: jaxcfr.solve(tree(), traversal=jaxcfr.external_sampling),
        errors.OptionError,
        r"call it, external_sampling\(\)",
    ),
    "a list to sweep": (lambda: jaxcfr.dcfr([1.5, 2.0]), errors.OptionError, r"for a sweep, jax\.vmap over it"),
    "an array to sweep": (
        lambda: jaxcfr.solve(tree(), jaxcfr.dcfr(jnp.arange(3.0))),
        errors.OptionError,
        r"for a sweep, jax\.vmap over it",
    ),
    "past the horizon": (
        lambda: jaxcfr.solve(tree(), jaxcfr.hs_dcfr(30, total=10), 100),
        errors.HorizonError,
        "do fewer iterations, or make the variant with a larger total",
    ),
    # Options of a run
    "negative iterations": (lambda: jaxcfr.solve(tree(), iterations=-1), errors.OptionError, "not -1"),
    "iterations with a dot": (lambda: jaxcfr.solve(tree(), iterations=1e3), errors.OptionError, "an integer from 0"),
    "a misspelt update": (lambda: jaxcfr.solve(tree(), updates="alternate"), errors.OptionError, '"alternating"'),
    "a float as seed": (lambda: jaxcfr.solve(tree(), seed=1.5), errors.OptionError, "seed has to be an integer"),
    "a generator as seed": (lambda: sampled(rng()), errors.OptionError, r"a key of jax\.random\.key"),
    "a callback that is none": (lambda: jaxcfr.solve(tree(), callback=3), errors.OptionError, "callback has to be a"),
    "a callback's number": (
        lambda: jaxcfr.solve(tree(), jaxcfr.dcfr(), 2, callback=lambda _: 0.3),
        errors.OptionError,
        "whether to stop",
    ),
    "a target of nan": (
        lambda: jaxcfr.solve(tree(), target_exploitability=float("nan")),
        errors.OptionError,
        "target_exploitability has to be a number of at least 0",
    ),
    "a target as text": (lambda: jaxcfr.solve(tree(), target_exploitability="1"), errors.OptionError, "not '1'"),
    "half a precision": (lambda: jaxcfr.lower(game(), dtype="float16"), errors.OptionError, "float32 or float64"),
    "half a table": (lambda: jaxcfr.solve(tree(), table_dtype="float16"), errors.OptionError, "bfloat16, float32"),
    # States
    "a strategy as state": (
        lambda: jaxcfr.solve(tree(), jaxcfr.dcfr(), 2, strategy()),
        errors.SolverError,
        "state_from_profile",
    ),
    "another tree's state": (
        lambda: jaxcfr.solve(tree("matching_pennies"), jaxcfr.dcfr(), 2, state()),
        errors.SolverError,
        "the state is of another tree",
    ),
    "another variant's state": (
        lambda: jaxcfr.solve(tree(), jaxcfr.pcfr_plus(), 2, state()),
        errors.SolverError,
        "start anew, or warm-start with state_from_profile",
    ),
    "a state's average asked of a strategy": (
        lambda: jaxcfr.average_strategy(tree(), strategy()),
        errors.SolverError,
        "expected the SolverState that solve returns",
    ),
    # Numbers that are not defined
    "exploitability of three": (
        lambda: jaxcfr.exploitability(tree("kuhn_poker(players=3)"), jaxcfr.uniform_strategy(tree())),
        errors.NotTwoPlayerConstantSumError,
        "it has 3 players.*: use nash_conv",
    ),
    "exploitability of a general sum": (
        lambda: jaxcfr.exploitability(general_sum(), jaxcfr.uniform_strategy(general_sum())),
        errors.NotTwoPlayerConstantSumError,
        "it is general-sum.*: use nash_conv",
    ),
    "a general sum by a linear program": (
        lambda: jaxcfr.solve_lp(general_sum()),
        errors.NotTwoPlayerConstantSumError,
        "general-sum",
    ),
    "payoffs of another sum": (
        lambda: tree().with_payoffs(tree().terminal_payoffs + jnp.arange(tree().num_terminals)[:, None]),
        errors.OptionError,
        "lower the game with general_sum=True",
    ),
    # Transformations of JAX
    "a gradient in reverse": (lambda: jax.grad(gap)(1.5), errors.SolverError, "only with differentiable=True"),
    "a compiled gradient": (
        lambda: jax.jit(jax.value_and_grad(gap))(1.5),
        errors.SolverError,
        "only with differentiable=True",
    ),
    "a static length that is traced": (
        lambda: jax.jit(lambda n: jaxcfr.solve(tree(), jaxcfr.dcfr(), n, differentiable=True))(3),
        errors.OptionError,
        "iterations must not be traced",
    ),
    "a batch that is traced": (
        lambda: jax.vmap(lambda n: jaxcfr.solve(tree(), traversal=jaxcfr.external_sampling(batch=n)))(jnp.arange(2)),
        errors.OptionError,
        "batch has to be known before a program is compiled",
    ),
    "a callback inside of jit": (
        lambda: jax.jit(lambda a: jaxcfr.solve(tree(), jaxcfr.dcfr(a), 2, callback=print))(1.5),
        errors.SolverError,
        "outside of jit",
    ),
    "a profile inside of jit": (
        lambda: jax.jit(lambda x: jaxcfr.Profile.from_strategy(lowered(), x))(strategy()),
        errors.ProfileError,
        "make it outside of jit",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_python(name: str) -> None:
    call, kind, words = MISTAKES[name]
    with pytest.raises(kind, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_double_precision_where_jax_has_it_off() -> None:
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(errors.OptionError, match="jax_enable_x64"):
            jaxcfr.lower(game(), dtype="float64")
    finally:
        jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize(
    ("module", "call", "extra"),
    [
        ("pyspiel", lambda: jaxcfr.load_game("openspiel:kuhn_poker"), "openspiel"),
        ("pgx", lambda: jaxcfr.interop.from_pgx("leduc_holdem"), "pgx"),
        ("matplotlib", lambda: jaxcfr.plotting.game_tree("kuhn_poker"), "plot"),
    ],
)
def test_a_missing_extra_is_named(
    module: str, call: Callable[[], Any], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(errors.MissingPackageError, match=rf'pip install "jaxcfr\[{extra}\]", .*"\.\[{extra}\]"'):
        call()


def test_the_last_iterate_is_not_taken_for_the_solution() -> None:
    assert "solution is average_strategy" in repr(state())
    for text in (jaxcfr.current_strategy.__doc__, jaxcfr.average_strategy.__doc__):
        assert text is not None
        assert "equilibrium" in text


def test_equilibria_that_look_different_are_equally_good() -> None:
    """Kuhn poker's equilibria: player 0 bets with the Jack a third as often as with the King (Kuhn 1950)."""

    def equilibrium(alpha: float) -> jaxcfr.Strategy:
        first = {"0": alpha, "1": 0, "2": 3 * alpha, "0pb": 0, "1pb": alpha + 1 / 3, "2pb": 1}
        second = {"0p": 1 / 3, "1p": 0, "2p": 1, "0b": 0, "1b": 1 / 3, "2b": 1}
        rows = [
            [[1 - by_key[key], by_key[key]] for key in keys]
            for by_key, keys in zip((first, second), lowered().infoset_keys, strict=True)
        ]
        return lowered().strategy(rows)

    found = jaxcfr.compare(tree(), equilibrium(0.0), equilibrium(1 / 3))
    np.testing.assert_allclose(found.nash_conv, 0, atol=1e-12)
    np.testing.assert_allclose(found.payoffs, [[-1 / 18, 1 / 18]] * 2, atol=1e-12)
    np.testing.assert_allclose(found.by_seat, [-1 / 18, 1 / 18], atol=1e-12)
    np.testing.assert_allclose(found.difference, 1.0)
    worse = jaxcfr.compare(tree(), equilibrium(0.2), strategy())
    assert worse.nash_conv[0] < 1e-12 < worse.nash_conv[1]
    assert float(worse.by_seat.sum()) > 0  # in both seats together it wins against uniform play


# In the terminal


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command says on standard error when it refuses, in one line."""

    def run(*words: object) -> str:
        assert cli.main([str(word) for word in words]) == 2
        output = capsys.readouterr()
        assert output.out == ""
        assert len(output.err.splitlines()) == 1
        assert output.err.startswith("jaxcfr: error: ")
        return output.err

    return run


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("solve khun_poker", "did you mean kuhn_poker"),
        ("solve kuhn_poker(player=3)", "did you mean players"),
        ("solve nothing.efg", "nothing.efg: cannot be read"),
        ("solve kuhn_poker --regret dcfr_puls", "did you mean dcfr_plus"),
        ("solve kuhn_poker --regret dcfr:alhpa=1", "did you mean alpha"),
        ("solve kuhn_poker -n 1e3", "an integer"),
        ("solve kuhn_poker -n -5", "from 0"),
        ("solve kuhn_poker --algorithm external", "external_sampling"),
        ("solve kuhn_poker --dtype double", "float32 or float64"),
        ("solve kuhn_poker --target-exploitability nan", "at least 0"),
        ("solve kuhn_poker(players=3) --target-exploitability 0.1", "two-player"),
        ("solve kuhn_poker --iteration 5", "--iteration"),
        ("solve kuhn_poker --resume", "--checkpoint"),
        ("solve goofspiel", "--max-nodes"),
        ("cfr-d kuhn_poker --cut 3 --resume", "--checkpoint"),
        ("cfr-d kuhn_poker --cut river", "a depth or round"),
        ("show kuhn_poker nothing.npz", "nothing.npz: cannot be read"),
        ("exploit kuhn_poker", "PROFILE"),
        ("sovle kuhn_poker", "sovle"),
        ("solve", "GAME"),
        ("info nothing", "no game is named 'nothing'"),
    ],
)
def test_mistakes_in_the_terminal(told: Callable[..., str], words: str, message: str) -> None:
    assert message in told(*words.split())


def test_files_of_another_kind_in_the_terminal(told: Callable[..., str], tmp_path: Path) -> None:
    file, text, locks = tmp_path / "kuhn.npz", tmp_path / "notes.txt", tmp_path / "locks.json"
    profile().save(file)
    text.write_text("some notes")
    assert "not a jaxcfr profile" in told("show", "kuhn_poker", text)
    assert "made for kuhn_poker" in told("exploit", "leduc_poker", file)
    # Before the first question, not in the middle of a play.
    assert "made for kuhn_poker" in told("play", "leduc_poker", file, "--as", 1)
    assert "not a jaxcfr checkpoint" in told("solve", "kuhn_poker", "--checkpoint", text, "--resume")
    row = '{"pass": 1, "bet": 0}'
    for twice in (f'{{"0": {{"0": {row}, "0": {row}}}}}', f'{{"0": {{"0": {row}}}, "0": {{"1": {row}}}}}'):
        locks.write_text(twice)
        assert "'0' stands there twice" in told("solve", "kuhn_poker", "--lock", locks)


# One rule for numbers


@pytest.mark.parametrize("value", [np.int64(2), np.array(2), jnp.asarray(2), np.uint16(2)], ids=repr)
def test_every_kind_of_integer_is_one(value: Any) -> None:
    assert arguments.integer("n", value) == 2
    assert int(jaxcfr.solve(tree(), jaxcfr.dcfr(), value, every=value, callback=lambda _: None).t) == 2
    assert jaxcfr.external_sampling(batch=value).batch == 2
    assert jaxcfr.Trainer(tree(), jaxcfr.external_sampling(batch=4), workers=value).workers == 2
    assert jaxcfr.lower(game(), max_nodes=value * 1000).tree.num_histories == 58


@pytest.mark.parametrize("value", [True, 2.0, "2", None, np.array([2]), np.bool_(True), 0, float("nan"), 2**40])
def test_what_is_no_positive_integer(value: Any) -> None:
    with pytest.raises(errors.OptionError, match=r"n has to be an integer from 1 to 2\*\*31 - 1, not"):
        arguments.integer("n", value, 1, arguments.INT32)


@pytest.mark.parametrize("value", [True, "2", None, np.array([0.5]), float("nan"), -0.5, float("inf"), 1.5])
def test_what_is_no_share(value: Any) -> None:
    with pytest.raises(errors.OptionError, match="x has to be a number from 0 to 1, not"):
        arguments.real("x", value, 0, 1)


def test_numbers_of_numpy_and_jax_are_numbers() -> None:
    for value in (np.float32(0.5), np.array(0.5), jnp.asarray(0.5), 0.5):
        assert arguments.real("x", value, 0, 1) == 0.5


def test_keys_of_both_kinds_are_seeds() -> None:
    first, second = (sampled(make(3)).sampling.key for make in (jax.random.key, jax.random.PRNGKey))
    np.testing.assert_array_equal(jax.random.key_data(first), jax.random.key_data(second))
