"""Array games: the same trees as the plain rules, what is refused, and the plain game made of an array game."""

from __future__ import annotations

import pickle
from collections.abc import Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_games import CHANCE, TERMINAL, Node, TreeGame, from_seed

import jaxcfr
from jaxcfr.errors import GameError, GameTooLargeError, RecallError
from jaxcfr.games.array_game import ArrayGame, as_game, features
from jaxcfr.tree import lower_arrays
from jaxcfr.tree.lower import _array_game, _lower_arrays, _lower_plain, _Walk, lower
from jaxcfr.tree.lower_arrays import Lazy, lower_levels

LIMIT = 10**6


def assert_same_table(plain: Any, arrays: Any) -> None:
    """The node tables and all that describes information sets are equal, bit for bit."""
    walk = _Walk(plain, LIMIT)
    walk.run()
    table = walk.table()
    found, sets = lower_levels(arrays, LIMIT)
    for name in ("player", "infoset", "parent", "chance", "payoffs"):
        expected, column = getattr(table, name), getattr(found, name)
        assert (column.dtype, column.shape) == (expected.dtype, expected.shape), name
        assert column.tobytes() == expected.tobytes(), name
    for player, counts in enumerate(table.num_actions):
        np.testing.assert_array_equal(found.num_actions[player], counts)
        assert found.num_actions[player].dtype == counts.dtype
        assert list(Lazy(sets.key, player, len(counts))) == list(walk.numbers[player])
        assert list(Lazy(sets.actions, player, len(counts))) == walk.actions[player]
        assert list(Lazy(sets.labels, player, len(counts))) == walk.labels[player]


def assert_same_lowered(plain: Any, arrays: Any) -> None:
    """So are the trees, and whatever else `LoweredGame` has."""
    trees, structures = zip(*(jax.tree.flatten(lowered.tree) for lowered in (plain, arrays)), strict=True)
    assert structures[0] == structures[1]
    for expected, leaf in zip(*trees, strict=True):
        assert (expected.dtype, expected.shape) == (leaf.dtype, leaf.shape)
        assert np.asarray(expected).tobytes() == np.asarray(leaf).tobytes()
    for name in ("name", "infoset_keys", "actions", "action_labels", "infoset_numbers"):
        assert getattr(plain, name) == getattr(arrays, name), name


# The bundled games.

EXACT = [
    "leduc_poker(players=3,ranks=2)",  # pots are split in three
    "goofspiel(num_cards=3,players=3,returns_type=point_difference)",
    "goofspiel(num_cards=3,players=3,imp_info=True)",
]
"""Payoffs that are thirds, so that optimised programs have to round as Python does."""

TWINS = [
    "kuhn_poker",
    "kuhn_poker(players=3)",
    "kuhn_poker(players=5)",
    "leduc_poker",
    "leduc_poker(suit_isomorphism=True)",
    "leduc_poker(ranks=4,suits=1)",
    "leduc_poker(ranks=2,suits=3,suit_isomorphism=True)",
    "leduc_poker(ranks=13,suits=1)",
    "leduc_poker(players=3,ranks=2,suit_isomorphism=True)",
    "liars_dice(dice_sides=1)",
    "liars_dice(dice_sides=4)",
    "liars_dice(dice_sides=4,bidding_rule=reset-quantity)",
    "liars_dice(numdice=2,dice_sides=2)",
    "liars_dice(numdice=3,dice_sides=1)",
    "goofspiel(num_cards=1)",
    "goofspiel(num_cards=2)",
    "goofspiel(num_cards=3)",
    "goofspiel(num_cards=4,num_turns=2,imp_info=True)",
    "goofspiel(num_cards=4,num_turns=3,points_order=descending)",
    "goofspiel(num_cards=4,points_order=ascending,imp_info=True,returns_type=total_points)",
    "goofspiel(num_cards=3,num_turns=1,players=4,points_order=descending)",
    "goofspiel(num_cards=4,imp_info=True)",
]


@pytest.mark.parametrize("spec", TWINS)
def test_bundled_games_have_array_twins(spec: str) -> None:
    game = jaxcfr.load_game(spec)
    assert_same_table(game, game.array_game())  # type: ignore[attr-defined]


@pytest.mark.parametrize("spec", EXACT)
def test_array_twins_round_as_python_does(spec: str) -> None:
    game = jaxcfr.load_game(spec)
    assert_same_table(game, game.array_game())  # type: ignore[attr-defined]


@pytest.mark.parametrize("spec", ["leduc_poker", "goofspiel(num_cards=3,imp_info=True)"])
@pytest.mark.parametrize("x64", [True, False])
def test_both_ways_of_lowering_give_the_same(spec: str, x64: bool) -> None:
    game: Any = jaxcfr.load_game(spec)
    dtype = jnp.dtype("float64" if x64 else "float32")
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", x64)
    try:
        plain = _lower_plain(game, dtype, LIMIT, True, False)
        assert_same_lowered(plain, _lower_arrays(game.array_game(), dtype, LIMIT, True, False))
        assert_same_lowered(plain, lower(game.array_game(), dtype=dtype))
    finally:
        jax.config.update("jax_enable_x64", before)


def test_which_way_a_game_is_lowered() -> None:
    """Small games are walked, since compiling takes longer; the rule looks at the count of histories only."""
    for spec in ("kuhn_poker", "leduc_poker", "liars_dice(dice_sides=5)", "goofspiel(num_cards=4)", "biased_coin"):
        assert _array_game(jaxcfr.load_game(spec))[0] is None, spec
    for spec in ("liars_dice", "liars_dice(numdice=5)", "goofspiel", "leduc_poker(ranks=13)", "kuhn_poker(players=9)"):
        game: Any = jaxcfr.load_game(spec)
        assert _array_game(game)[0] == game.array_game(), spec
    assert type(lower(jaxcfr.load_game("kuhn_poker")).infoset_keys[0]) is tuple


@pytest.mark.parametrize("spec", ["kuhn_poker", "leduc_poker", "liars_dice", "goofspiel", "goofspiel(num_turns=2)"])
def test_only_roots_have_array_games(spec: str) -> None:
    root: Any = jaxcfr.load_game(spec)
    assert root.array_game().name == root.name
    node = root
    for _ in range(4):
        node = node.step(node.chance_outcomes()[0][0] if node.is_chance() else node.legal_actions()[0])
        assert node.array_game() is None


@pytest.mark.parametrize("spec", TWINS[:6] + TWINS[9:13] + TWINS[15:19])
def test_estimated_histories(spec: str) -> None:
    game: Any = jaxcfr.load_game(spec)
    walk = _Walk(game, LIMIT)
    walk.run()
    estimate = game.array_game().estimated_histories()
    if "isomorphism" in spec:
        assert estimate == pytest.approx(len(walk.player), rel=0.25)
    else:
        assert estimate == len(walk.player)


def test_equal_twins_share_programs() -> None:
    first, second, other = (
        jaxcfr.load_game(spec).array_game()  # type: ignore[attr-defined]
        for spec in ("leduc_poker", "leduc_poker(ranks=3)", "leduc_poker(ranks=4)")
    )
    assert first == second
    assert hash(first) == hash(second)
    assert first != other
    assert lower_arrays._program(first) is lower_arrays._program(second)


def test_twins_play_batches_without_64_bits() -> None:
    """A batch of random plays as one jitted call, in JAX's default types."""
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", False)
    try:
        game: Any = jaxcfr.load_game("leduc_poker").array_game()  # type: ignore[attr-defined]

        def play(key: Any) -> tuple[Any, Any]:
            def move(state: Any, key: Any) -> tuple[Any, Any]:
                player = game.player(state)
                logits = jnp.where(player == -1, jnp.log(game.chance_probabilities(state)), 0.0)
                action = jax.random.categorical(key, jnp.where(game.legal_actions(state), logits, -jnp.inf))
                after = game.step(state, action.astype(jnp.int32))
                kept = jax.tree.map(lambda old, new: jnp.where(player == -2, old, new), state, after)
                return kept, (action, player)

            state, moves = jax.lax.scan(move, game.init(), jax.random.split(key, 12))
            return game.returns(state), moves

        returns, (actions, players) = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), 200))
        assert returns.dtype == jnp.float32
        for payoffs, path, who in zip(np.asarray(returns), np.asarray(actions), np.asarray(players), strict=True):
            node: Any = jaxcfr.load_game("leduc_poker")
            for action in path[who != -2]:
                node = node.step(int(action))
            assert tuple(payoffs) == node.terminal_returns()
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize(
    "spec",
    [
        "kuhn_poker(players=3)",
        "leduc_poker(suit_isomorphism=True)",
        "liars_dice(numdice=2,dice_sides=3)",
        "goofspiel(num_cards=4)",
        "goofspiel(num_cards=4,imp_info=True)",
        "goofspiel(num_cards=3,points_order=ascending)",
    ],
)
def test_as_game_of_a_twin(spec: str) -> None:
    """Random plays: what players know who do not act, labels, chance and payoffs are those of the plain game."""
    plain: Any = jaxcfr.load_game(spec)
    twin: Any = as_game(plain.array_game())
    assert twin.name == plain.name
    assert twin.num_players == plain.num_players
    assert twin.array_game() == plain.array_game()
    rng = np.random.default_rng(0)
    for _ in range(25):
        a, b = plain, twin
        while True:
            assert (a.is_terminal(), a.is_chance()) == (b.is_terminal(), b.is_chance())
            assert [a.infoset_key(p) for p in range(a.num_players)] == [b.infoset_key(p) for p in range(a.num_players)]
            if a.is_terminal():
                assert b.legal_actions() == ()
                assert [float(x) for x in a.terminal_returns()] == list(b.terminal_returns())
                break
            if a.is_chance():
                assert [(x, float(p)) for x, p in a.chance_outcomes()] == list(b.chance_outcomes())
                moves = [outcome for outcome, _ in a.chance_outcomes()]
            else:
                assert a.player_to_act() == b.player_to_act()
                moves = list(a.legal_actions())
                assert moves == list(b.legal_actions())
            assert [a.action_label(move) for move in moves] == [b.action_label(move) for move in moves]
            move = moves[rng.integers(len(moves))]
            a, b = a.step(move), b.step(move)
            assert b.array_game() is None


def test_as_game_keeps_the_rules_of_plain_games() -> None:
    game = as_game(jaxcfr.load_game("kuhn_poker").array_game())  # type: ignore[attr-defined]
    report = jaxcfr.validate_game(game)
    assert (report.histories, report.infosets) == (58, (6, 6))
    with pytest.raises(GameError, match="7"):
        game.step(7)
    with pytest.raises(GameError, match=r"ArrayGame.*num_actions"):
        as_game(game)  # type: ignore[arg-type]


# Features of one's own.


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"features": lambda game, row, player: jnp.float32(1)}, r"numbers \[F\], not float32\[\]"),
        ({"features": lambda game, row, player: jnp.ones((2, 3))}, r"float\d\d\[2, 3\]"),
        ({"features": lambda game, row, player: row[:0]}, r"int32\[0\]"),
        ({"features": lambda game, row, player: row * 1j}, r"numbers \[F\], not complex"),
        ({"features": lambda game, row, player: None}, "fails"),
        ({"features": lambda game, row: row}, r"features\(row, 0\) fails: TypeError.*arguments"),
        ({"features": lambda game, row, player: row if row[0] > 0 else -row}, "fails: TracerBool.*It is compiled"),
        ({"features": 5}, "not callable"),
        ({"features": lambda game, row, player: jnp.log(-1.0 - row**2)}, "not finite where the game begins"),
        ({"infoset_limits": lambda game: np.zeros((1, 2))}, r"\[3, 2\].*shape \[1, 2\]"),
        ({"infoset_limits": lambda game: 5}, r"\[3, 2\].*shape \[\]"),
    ],
)
def test_features_that_are_none(own: dict[str, Any], message: str) -> None:
    kuhn: Any = type(jaxcfr.load_game("kuhn_poker").array_game())
    with pytest.raises(GameError, match=message) as caught:
        jaxcfr.deep.DeepTrainer(type("Own", (kuhn,), own)())
    assert "\n" not in str(caught.value)


def test_features_of_any_kind_of_number() -> None:
    kuhn: Any = type(jaxcfr.load_game("kuhn_poker").array_game())
    for own in (
        lambda game, row, player: row,
        lambda game, row, player: row > 0,
        lambda game, row, player: [row[0], 1],
    ):
        game = type("Own", (kuhn,), {"features": own})()
        found = features(game, game.infoset(game.init(), 1), 1)
        assert (found.ndim, found.dtype) == (1, jnp.float32)


# Array games made of tables.


class TableGame(ArrayGame):
    """Any finite game: a state is the number of a history."""

    def __init__(self, root: Node, num_players: int, words: int = 3, name: str = "table") -> None:
        self.num_players = num_players
        self.name = name
        nodes = list(root.walk())
        number = {id(node): i for i, node in enumerate(nodes)}
        self.num_actions = max(1, *(len(node.children) for node in nodes))
        shape = (len(nodes), self.num_actions)
        self.children = np.zeros(shape, np.int32)
        self.legal = np.zeros(shape, bool)
        self.probabilities = np.zeros(shape)
        self.payoffs = np.zeros((len(nodes), num_players))
        self.who = np.zeros(len(nodes), np.int32)
        keys: dict[tuple[int, Hashable], int] = {}
        self.menus: dict[int, Node] = {}
        self.rows = np.zeros(len(nodes), np.int32)
        self.words = words
        for i, node in enumerate(nodes):
            self.who[i] = {CHANCE: -1, TERMINAL: -2}.get(node.kind, node.kind)
            self.children[i, : len(node.children)] = [number[id(child)] for child in node.children]
            self.legal[i, : len(node.children)] = True
            if node.kind == CHANCE:
                self.probabilities[i, : len(node.children)] = [float(p) for p in node.probabilities]
            elif node.kind == TERMINAL:
                self.payoffs[i] = [float(x) for x in node.payoffs]
            else:
                self.rows[i] = keys.setdefault((node.kind, node.key), len(keys))
                self.menus[int(self.rows[i])] = node

    def init(self) -> Any:
        return jnp.int32(0)

    def player(self, state: Any) -> Any:
        return jnp.asarray(self.who)[state]

    def legal_actions(self, state: Any) -> Any:
        return jnp.asarray(self.legal)[state]

    def chance_probabilities(self, state: Any) -> Any:
        return jnp.asarray(self.probabilities)[state]

    def step(self, state: Any, action: Any) -> Any:
        return jnp.asarray(self.children)[state, action]

    def returns(self, state: Any) -> Any:
        return jnp.asarray(self.payoffs)[state]

    def infoset(self, state: Any, player: int) -> Any:
        row = jnp.asarray(self.rows)[state]
        return jnp.stack([row * (-3) ** i for i in range(self.words)])

    def infoset_key(self, row: np.ndarray, player: int) -> Hashable:
        return self.menus[int(row[0])].key

    def action_label(self, index: int, player: int, row: np.ndarray | None = None) -> str:
        return f"card {index}" if row is None else str(self.menus[int(row[0])].actions[index])


@pytest.mark.parametrize("seed", range(12))
def test_random_games(seed: int) -> None:
    """Information sets that span depths; keys of one 64-bit word, of several, and of a fraction of one."""
    plain = from_seed(seed, 2 + seed % 2, max_nodes=150)
    game = TableGame(plain.node, plain.num_players, words=1 + seed % 4)
    walk = _Walk(plain, LIMIT)
    walk.run()
    table, (found, sets) = walk.table(), lower_levels(game, LIMIT)
    for name in ("player", "infoset", "parent", "chance", "payoffs"):
        np.testing.assert_array_equal(getattr(found, name), getattr(table, name))
    for player, counts in enumerate(table.num_actions):
        np.testing.assert_array_equal(found.num_actions[player], counts)
        assert list(Lazy(sets.key, player, len(counts))) == list(walk.numbers[player])
        assert list(Lazy(sets.labels, player, len(counts))) == walk.labels[player]


class Chain(NamedTuple):
    steps: Any


class Countdown:
    """A deep and narrow game without any of the optional members: the players stop, or go on."""

    num_players = 2
    num_actions = 2
    name = "countdown"
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, depth: int) -> None:
        self.depth = depth

    def init(self) -> Chain:
        return Chain(jnp.int32(0))

    def player(self, state: Chain) -> Any:
        return jnp.where(state.steps >= self.depth, -2, state.steps % 2)

    def legal_actions(self, state: Chain) -> Any:
        return jnp.ones(2, bool)

    def chance_probabilities(self, state: Chain) -> Any:
        return jnp.zeros(2)

    def step(self, state: Chain, action: Any) -> Chain:
        # Who stops at step s is remembered as s after the end.
        return Chain(jnp.where(action == 0, self.depth + state.steps, state.steps + 1).astype(jnp.int32))

    def returns(self, state: Chain) -> Any:
        return jnp.stack([state.steps, -state.steps])

    def infoset(self, state: Chain, player: int) -> Any:
        return state.steps[None].astype(jnp.int8)


def test_a_deep_game_with_defaults_only() -> None:
    game = Countdown(100)
    lowered = lower(game)
    assert lowered.tree.num_histories == 201
    assert lowered.name == "countdown"
    assert lowered.infoset_keys[1][0] == (1,)
    assert lowered.infoset_keys[1][-2:] == ((97,), (99,))
    assert lowered.actions[0][0] == (0, 1)
    assert lowered.action_labels[0][3] == ("0", "1")
    assert lowered.infoset_numbers[0][4,] == 2
    strategy = jaxcfr.uniform_strategy(lowered.tree)
    assert len(jaxcfr.Profile.from_strategy(lowered, strategy).to_strategy(lowered)) == 2
    assert_same_lowered(_lower_plain(as_game(game), jnp.dtype("float64"), LIMIT, True, False), lowered)


def test_lazy_sequences_are_like_tuples() -> None:
    names = Lazy("{}:{}".format, 7, 4)
    assert names == ("7:0", "7:1", "7:2", "7:3")
    assert tuple.__eq__(("7:0",), names) is NotImplemented
    assert names != ("7:0",)
    assert names != ["7:0", "7:1", "7:2", "7:3"]
    assert (names[-1], names[1:3], len(names)) == ("7:3", ("7:1", "7:2"), 4)
    assert hash(names) == hash(tuple(names))
    assert repr(names) == repr(tuple(names))
    with pytest.raises(IndexError):
        names[4]


def test_a_lowered_array_game_can_be_pickled() -> None:
    game: Any = jaxcfr.load_game("kuhn_poker")
    lowered = lower(game.array_game())
    again = pickle.loads(pickle.dumps(lowered))
    assert again.infoset_keys == lowered.infoset_keys
    assert again.action_labels == lowered.action_labels


# What is refused.


def leaf(*payoffs: Any) -> Node:
    return Node(TERMINAL, payoffs=payoffs)


def choice(player: int, key: Any, actions: Any, *children: Node) -> Node:
    return Node(player, key, tuple(actions), children=children)


def deal(probabilities: list[Any], *children: Node) -> Node:
    return Node(CHANCE, None, tuple(f"card {i}" for i in range(len(children))), tuple(probabilities), children)


EVEN = leaf(1, -1)

BROKEN: list[tuple[Node, type[Exception], str]] = [
    (deal([0.5, 0.25], EVEN, EVEN), GameError, "probabilities.*root.*sum to 0.75"),
    (choice(0, "x", "ab", EVEN, deal([1.5, -0.5], EVEN, EVEN)), GameError, "negative or NaN at b$"),
    (choice(0, "x", "ab", EVEN, deal([np.nan, 0.5], EVEN, EVEN)), GameError, "negative or NaN at b$"),
    (choice(0, "x", "ab", EVEN, deal([])), GameError, "no outcome at b$"),
    (choice(0, "x", "ab", EVEN, leaf(np.inf, 0)), GameError, "payoff inf at b is not a finite number"),
    (choice(0, "x", "ab", choice(1, "y", "", *[]), EVEN), GameError, "player 1 has no legal action.*'y', a$"),
    (
        deal([0.5, 0.5], choice(0, "I", "ab", EVEN, EVEN), choice(0, "I", "a", EVEN)),
        GameError,
        r"player 0 at information set 'I' are \[0\] at card 1, but \[0, 1\] in another",
    ),
    (
        choice(0, "first", "ab", EVEN, choice(0, "first", "ab", EVEN, EVEN)),
        RecallError,
        r"player 0.*'first'.*twice",
    ),
    (choice(0, "x", "ab", EVEN, choice(3, "y", "ab", EVEN, EVEN)), GameError, r"player\(state\) is 3 at b.*2 players"),
]


@pytest.mark.parametrize(("root", "error", "words"), BROKEN)
def test_broken_rules(root: Node, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        lower(TableGame(root, 2))


def test_max_nodes_says_the_same_both_ways() -> None:
    plain: Any = jaxcfr.load_game("kuhn_poker")
    for limit in (*range(1, 9), *range(9, 58, 7), 56, 57):
        with pytest.raises(GameTooLargeError) as walked:
            lower(plain, max_nodes=limit)
        with pytest.raises(GameTooLargeError) as expanded:
            lower(plain.array_game(), max_nodes=limit)
        # Both say how far they came; walking takes more memory.
        assert str(walked.value).split(";")[0] == str(expanded.value).split(";")[0]
    assert lower(plain.array_game(), max_nodes=58).tree.num_histories == 58


def test_games_that_cannot_be_enumerated_are_refused_soon() -> None:
    with pytest.raises(GameTooLargeError, match="max_nodes = 100,000"):
        lower(jaxcfr.load_game("goofspiel"), max_nodes=100_000)
    with pytest.raises(GameTooLargeError, match="max_nodes = 100,000"):
        lower(jaxcfr.load_game("liars_dice(numdice=5)"), max_nodes=100_000)


@pytest.mark.parametrize(
    ("member", "value", "words"),
    [
        ("num_players", 0, "num_players has to be a positive integer"),
        ("num_actions", 2.0, "num_actions has to be a positive integer"),
        ("player", lambda state: jnp.zeros(2, int), r"player has to return an integer scalar, not int64\[2\]"),
        ("player", lambda state: jnp.zeros(()), "player has to return an integer scalar"),
        ("legal_actions", lambda state: jnp.ones(3, bool), r"legal_actions has to return bool \[2\], not bool\[3\]"),
        ("chance_probabilities", lambda state: jnp.zeros(2, int), r"chance_probabilities has to return floats \[2\]"),
        ("returns", lambda state: jnp.zeros(3), r"returns has to return floats \[2\]"),
        ("infoset", lambda state, player: jnp.zeros(3), r"infoset has to return integers \[K\]"),
        ("infoset", lambda state, player: jnp.zeros(3 + player, int), "the same for all players"),
        ("step", lambda state, action: Chain(jnp.zeros((), jnp.int8)), "same shapes and dtypes as init's"),
        ("step", lambda state, action: (state.steps,), "same shapes and dtypes as init's"),
    ],
)
def test_wrong_shapes(member: str, value: Any, words: str) -> None:
    game = Countdown(4)
    setattr(game, member, value)
    with pytest.raises(GameError, match=words):
        lower(game)


def test_errors_of_the_rules_tell_which_function_was_traced() -> None:
    game: Any = Countdown(4)
    game.returns = lambda state: 1 / 0
    with pytest.raises(ZeroDivisionError) as error:
        lower(game)
    assert any("raised by returns of the game countdown" in note for note in error.value.__notes__)


def test_float32_probabilities_are_put_right() -> None:
    class Coarse(TableGame):
        def chance_probabilities(self, state: Any) -> Any:
            return super().chance_probabilities(state).astype(jnp.float32)

    found, _ = lower_levels(Coarse(deal([1 / 3, 1 / 3, 1 / 3], EVEN, EVEN, EVEN), 2), LIMIT)
    np.testing.assert_allclose(found.chance[1:], 1 / 3, rtol=1e-7)
    assert abs(found.chance[1:].sum() - 1) < 1e-15
    walk = _Walk(as_game(Coarse(deal([0.1, 0.2, 0.7], EVEN, EVEN, EVEN), 2)), LIMIT)
    walk.run()
    np.testing.assert_allclose(walk.table().chance[1:4], [0.1, 0.2, 0.7], rtol=1e-7)
    assert abs(walk.table().chance[1:4].sum() - 1) < 1e-15


def test_hints_for_array_games_where_plain_games_are_needed() -> None:
    with pytest.raises(GameError, match="as_game"):
        jaxcfr.validate_game(Countdown(3))
    with pytest.raises(GameError, match="instance"):
        as_game(Countdown)


def test_equal_hashes_never_merge_information_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are compared, so a collision is noticed: another hash is tried, and if none helps, that is an error."""
    plain = from_seed(5, 2, max_nodes=150)
    mix = lower_arrays._mix

    def weak(words: Any, salt: Any) -> Any:
        return jnp.where(salt == 0, jnp.uint64(1), mix(words, salt))

    def useless(words: Any, salt: Any) -> Any:
        return jnp.zeros(words.shape[0], jnp.uint64)

    monkeypatch.setattr(lower_arrays, "_mix", weak)
    game = TableGame(plain.node, plain.num_players, words=3)
    expected = lower(plain)
    assert lower(game).tree.num_infosets == expected.tree.num_infosets
    assert lower(game).infoset_keys == expected.infoset_keys
    monkeypatch.setattr(lower_arrays, "_mix", useless)
    with pytest.raises(GameError, match="hashes"):
        lower(TableGame(plain.node, plain.num_players, words=3))


def test_grouping_by_hash_table() -> None:
    rng = np.random.default_rng(0)
    for count, different in ((1, 1), (1000, 3), (5000, 5000), (20000, 900)):
        key = rng.integers(0, 2**63, different).astype(np.uint64)[rng.integers(0, different, count)]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        np.testing.assert_array_equal(lower_arrays._first_of_equals(key), first[inverse])
        # Small numbers, as rows of one word are.
        small = key % np.uint64(50)
        _, first, inverse = np.unique(small, return_index=True, return_inverse=True)
        np.testing.assert_array_equal(lower_arrays._first_of_equals(small), first[inverse])


def test_subclasses_of_bundled_games_have_no_twin() -> None:
    class Doubled(jaxcfr.games.KuhnPoker):
        def terminal_returns(self) -> Any:
            return tuple(2 * payoff for payoff in super().terminal_returns())

    assert Doubled().array_game() is None


def test_plain_games_still_come_as_they_were() -> None:
    assert isinstance(jaxcfr.load_game("liars_dice"), jaxcfr.games.LiarsDice)
    assert lower(TreeGame(EVEN, 2)).tree.num_histories == 1
