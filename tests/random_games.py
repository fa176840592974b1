"""Random extensive-form games with perfect recall, as plain `Game` objects, and ways to rewrite them.

A game is an explicit tree of `Node`s. Information sets are merged while the tree grows: a decision node either opens
a new information set or joins one of the same player with the same last sequence (information set, action), so
recall is perfect by construction, and sets span histories and depths. Everything is drawn from a `Source`, which is
either a seeded numpy generator (`from_seed`) or hypothesis (`games`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from hypothesis import strategies as st

from jaxcfr.games.base import Game
from jaxcfr.games.wrapped import WrappedGame

CHANCE = "chance"
TERMINAL = "terminal"


@dataclasses.dataclass
class Node:
    """One history: `kind` is `CHANCE`, `TERMINAL` or the number of the player who decides."""

    kind: Any
    key: Hashable = None
    actions: tuple[Hashable, ...] = ()
    probabilities: tuple[Any, ...] = ()
    children: tuple[Node, ...] = ()
    payoffs: tuple[Any, ...] = ()

    def walk(self) -> Iterator[Node]:
        """This node and all below, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


class TreeGame(Game):
    """A `Node` as a `Game`."""

    def __init__(self, node: Node, num_players: int, name: str = "random game") -> None:
        self.node = node
        self.num_players = num_players
        self.name = name

    def is_terminal(self) -> bool:
        return self.node.kind == TERMINAL

    def is_chance(self) -> bool:
        return self.node.kind == CHANCE

    def player_to_act(self) -> int:
        assert isinstance(self.node.kind, int)
        return self.node.kind

    def chance_outcomes(self) -> list[tuple[Hashable, Any]]:
        return list(zip(self.node.actions, self.node.probabilities, strict=True))

    def legal_actions(self) -> list[Hashable]:
        return list(self.node.actions)

    def step(self, action: Hashable) -> TreeGame:
        return TreeGame(self.node.children[self.node.actions.index(action)], self.num_players, self.name)

    def terminal_returns(self) -> tuple[Any, ...]:
        return self.node.payoffs

    def infoset_key(self, player: int) -> Hashable:
        assert player == self.node.kind
        return self.node.key

    def __repr__(self) -> str:
        nodes = list(self.node.walk())
        sets = {(node.kind, node.key) for node in nodes if isinstance(node.kind, int)}
        return (
            f"TreeGame({self.name}: {self.num_players} players, {len(nodes)} histories, {len(sets)} information sets)"
        )


class Source(Protocol):
    """Where random choices come from: an integer from `low` to `high`, both included."""

    def __call__(self, low: int, high: int) -> int: ...


class _Grower:
    def __init__(self, source: Source, num_players: int, sums: str, exact: bool, max_nodes: int, depth: int) -> None:
        self.source = source
        self.num_players = num_players
        self.sums = sums
        self.exact = exact
        self.left = max_nodes
        self.depth = depth
        self.sets: dict[tuple[int, Hashable], list[tuple[Hashable, tuple[Hashable, ...]]]] = {}
        self.number = 0

    def grow(self, depth: int, last: tuple[Hashable, ...]) -> Node:
        """A subtree; `last` holds the last sequence of every player."""
        source = self.source
        kind = source(0, 9)
        if depth >= self.depth or self.left <= 0 or (kind == 0 and depth > 0):
            return Node(TERMINAL, payoffs=self.payoffs())
        if kind <= 2 or (kind <= 5 and depth == 0):
            return self.chance(depth, last)
        # A game of two or more players may have some who never move.
        player = source(0, self.num_players - 1)
        known = self.sets.setdefault((player, last[player]), [])
        # To join a set is three times as likely as to open one.
        choice = source(0, 3 * len(known))
        if choice == 3 * len(known):
            known.append(self.new_set(player))
        key, actions = known[choice // 3]
        self.left -= len(actions)
        children = []
        for action in actions:
            after = (*last[:player], (key, action), *last[player + 1 :])
            children.append(self.grow(depth + 1, after))
        return Node(player, key, actions, children=tuple(children))

    def new_set(self, player: int) -> tuple[Hashable, tuple[Hashable, ...]]:
        count = (2, 1, 2, 3, 2, 4)[self.source(0, 5)]
        # Keys of several types; the same key may occur for several players, where it means different sets.
        self.number += 1
        key: Hashable = (f"set {self.number}", ("set", self.number), self.number)[self.source(0, 2)]
        labels: tuple[Hashable, ...] = (("a", "b", "c", "d"), (3, 1, 2, 0), (("x", 0), ("x", 1), None, "y"))[
            self.source(0, 2)
        ]
        return key, labels[:count]

    def chance(self, depth: int, last: tuple[Hashable, ...]) -> Node:
        source = self.source
        weights = [source(1, 5) for _ in range(source(1, 3))]
        if source(0, 3) == 0:
            weights.insert(source(0, len(weights)), 0)
        total = sum(weights)
        exact = [Fraction(weight, total) for weight in weights]
        self.left -= len(weights)
        children = tuple(self.grow(depth + 1, last) for _ in weights)
        probabilities: tuple[Any, ...] = tuple(exact) if self.exact else tuple(float(p) for p in exact)
        return Node(CHANCE, actions=tuple(range(len(weights))), probabilities=probabilities, children=children)

    def payoffs(self) -> tuple[Any, ...]:
        values = [Fraction(self.source(-6, 6), (1, 2, 3)[self.source(0, 2)]) for _ in range(self.num_players)]
        if self.num_players == 2 and self.sums != "general":
            values[1] = (Fraction(5, 3) if self.sums == "constant" else 0) - values[0]
        return tuple(values) if self.exact else tuple(float(value) for value in values)


def random_game(
    source: Source,
    num_players: int,
    sums: str = "general",
    *,
    exact: bool = True,
    max_nodes: int = 48,
    depth: int = 5,
) -> TreeGame:
    """A random game.

    Args:
      source: of choices.
      num_players: 1 to 3.
      sums: "zero", "constant" or "general"; only two players can be constant-sum.
      exact: probabilities and payoffs are `Fraction`s, else floats.
      max_nodes: no more nodes are opened after about this many.
      depth: no decisions or chance from this depth on.
    """
    grower = _Grower(source, num_players, sums, exact, max_nodes, depth)
    root = grower.grow(0, (None,) * num_players)
    return TreeGame(root, num_players)


def from_seed(seed: int, num_players: int, sums: str = "general", **options: Any) -> TreeGame:
    """`random_game` from a seed; the name of the game tells it."""
    rng = np.random.default_rng([seed, num_players])
    game = random_game(lambda low, high: int(rng.integers(low, high + 1)), num_players, sums, **options)
    game.name = f"from_seed({seed}, {num_players}, {sums!r}, {options})"
    return game


@st.composite
def games(draw: st.DrawFn, max_players: int = 3, sums: str | None = None, **options: Any) -> TreeGame:
    """A hypothesis strategy of random games; they shrink to small ones. `sums` other than None means two players."""
    players = draw(st.integers(1, max_players)) if sums is None else 2
    kind = draw(st.sampled_from(["zero", "constant", "general"])) if sums is None else sums
    game = random_game(lambda low, high: draw(st.integers(low, high)), players, kind, **options)
    game.name = "game from hypothesis"
    return game


def copied(game: Any, name: str = "copied game") -> TreeGame:
    """Any (small) game as a `TreeGame`."""

    def copy(game: Any) -> Node:
        if game.is_terminal():
            return Node(TERMINAL, payoffs=tuple(game.terminal_returns()))
        if game.is_chance():
            actions, probabilities = zip(*game.chance_outcomes(), strict=True)
            return Node(CHANCE, None, actions, probabilities, tuple(copy(game.step(action)) for action in actions))
        player, actions = game.player_to_act(), tuple(game.legal_actions())
        children = tuple(copy(game.step(action)) for action in actions)
        return Node(player, game.infoset_key(player), actions, children=children)

    return TreeGame(copy(game), game.num_players, name)


class Wrapped(WrappedGame):
    """A game that does as another one; subclasses change some of it."""

    name = "wrapped"

    def _wrap(self, inner: Any) -> Any:
        return type(self)(inner)


class OnlySampled(Wrapped):
    """A game whose chance can only be sampled."""

    name = "only sampled"

    def chance_outcomes(self) -> Any:
        return None


def forest(games: Sequence[TreeGame]) -> TreeGame:
    """Chance picks one of the games, all equally likely; information sets become `(number of the game, key)`.

    Whatever holds for each of them holds for the forest, so one compiled program checks them all.
    """
    part = Fraction(1, len(games))
    children = tuple(rewrite(game.node, key=lambda key, n=number: (n, key)) for number, game in enumerate(games))
    root = Node(CHANCE, actions=tuple(range(len(games))), probabilities=(part,) * len(games), children=children)
    return TreeGame(root, games[0].num_players, f"forest of {len(games)}: {games[0].name} ... {games[-1].name}")


def rewrite(
    node: Node,
    *,
    key: Callable[[Any], Hashable] = lambda key: key,
    payoffs: Callable[[tuple[Any, ...]], tuple[Any, ...]] = lambda payoffs: payoffs,
    order: Callable[[Node], Sequence[int]] = lambda node: range(len(node.children)),
) -> Node:
    """A copy with other keys, other payoffs, or children in another order."""
    children = [rewrite(child, key=key, payoffs=payoffs, order=order) for child in node.children]
    chosen = list(order(node))
    return Node(
        node.kind,
        key(node.key) if isinstance(node.kind, int) else None,
        tuple(node.actions[i] for i in chosen),
        tuple(node.probabilities[i] for i in chosen) if node.kind == CHANCE else (),
        tuple(children[i] for i in chosen),
        payoffs(node.payoffs) if node.kind == TERMINAL else (),
    )


def scaled(game: TreeGame, factor: Fraction, shift: Sequence[Any] | None = None) -> TreeGame:
    """All payoffs times `factor`, plus `shift` per player."""
    add = shift or [0] * game.num_players
    node = rewrite(game.node, payoffs=lambda values: tuple(v * factor + s for v, s in zip(values, add, strict=True)))
    return TreeGame(node, game.num_players, f"{game.name}, times {factor}, plus {shift}")


def reordered(game: TreeGame, seed: int) -> TreeGame:
    """Children of chance in random order, actions of every information set in one random order each."""
    rng = np.random.default_rng(seed)
    orders: dict[Any, list[int]] = {}

    def order(node: Node) -> Sequence[int]:
        count = len(node.children)
        if not isinstance(node.kind, int):
            return rng.permutation(count).tolist()
        return orders.setdefault((node.kind, node.key), rng.permutation(count).tolist())

    return TreeGame(rewrite(game.node, order=order), game.num_players, f"{game.name}, reordered")


def with_forced_moves(game: TreeGame, seed: int) -> TreeGame:
    """Single-action decisions of the owner before some information sets, of anyone before leaves; sure chance moves."""
    rng = np.random.default_rng(seed)
    before: dict[Any, bool] = {}
    counter = [0]

    def insert(node: Node) -> Node:
        node = dataclasses.replace(node, children=tuple(insert(child) for child in node.children))
        if isinstance(node.kind, int):
            if before.setdefault((node.kind, node.key), bool(rng.integers(2))):
                node = Node(node.kind, ("forced", node.key), ("go",), children=(node,))
        elif node.kind == TERMINAL and rng.integers(3) == 0:
            counter[0] += 1
            player = int(rng.integers(game.num_players))
            node = Node(player, ("forced", "leaf", counter[0]), ("go",), children=(node,))
        if rng.integers(4) == 0:
            node = Node(CHANCE, actions=("sure",), probabilities=(Fraction(1),), children=(node,))
        return node

    return TreeGame(insert(game.node), game.num_players, f"{game.name}, with forced moves")


def with_impossible_branches(game: TreeGame, seed: int) -> TreeGame:
    """Chance moves with outcomes of probability 0: copies of subtrees, in the same sets or in fresh ones.

    Payoffs of the copies differ where the game is not two-player, whose sum is kept.
    """
    rng = np.random.default_rng(seed)
    counter = [0]

    def insert(node: Node) -> Node:
        node = dataclasses.replace(node, children=tuple(insert(child) for child in node.children))
        if rng.integers(4) or sum(1 for _ in node.walk()) > 40:
            return node
        counter[0] += 1
        number = counter[0]
        same = bool(rng.integers(2))
        copy = rewrite(
            node,
            key=lambda key: key if same else ("impossible", number, key),
            payoffs=lambda payoffs: tuple(7 * payoff + 1 if game.num_players != 2 else payoff for payoff in payoffs),
        )
        return Node(CHANCE, actions=("no", "yes"), probabilities=(Fraction(0), Fraction(1)), children=(copy, node))

    return TreeGame(insert(game.node), game.num_players, f"{game.name}, with impossible branches")
