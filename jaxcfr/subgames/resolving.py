"""The games that are solved in place of a part of a game: one `GameTree` for each way of being safe.

All of them keep the part's histories and information sets. They differ in how its roots are reached, in what the
opponent may do instead, and in what the leaves pay.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, get_args

import jax.numpy as jnp
import numpy as np

from jaxcfr.errors import OptionError
from jaxcfr.subgames.part import Assembly, Choice, Ends, Numbering, Part, add_part
from jaxcfr.tree.game_tree import GameTree, Strategy
from jaxcfr.tree.lower import LoweredGame
from jaxcfr.tree.nodes import CHANCE, TERMINAL

Safety = Literal["resolve", "maxmargin", "reach", "unsafe", "shift"]
SAFETY: tuple[Safety, ...] = get_args(Safety)

TERMINATE_OR_FOLLOW = ("terminate", "follow")
"""What the opponent may do at the roots of the re-solving game."""

OWN_KEYS = "jaxcfr.subgames"
"""The keys of information sets that the whole game does not have begin with this."""


@dataclasses.dataclass(frozen=True)
class Continuation:
    """What the histories are worth where a part is cut off.

    Attributes:
      values: `[K, N, 2]`, payoffs of both players; the opponent chooses among the K.
      infoset: `[N]`, classes of what the opponent knows, in which it chooses; read only where K > 1.
    """

    values: np.ndarray
    infoset: np.ndarray


@dataclasses.dataclass(frozen=True, repr=False)
class ResolvingGame:
    """A game whose solution is a strategy for a part of another one.

    Attributes:
      lowered: the game; its first information sets are the part's, with the whole game's keys.
      safety: how it was made.
      players: whose strategies are taken from its solution.
      opponent: the other player, or for "shift" the one whose payoffs are shifted; -1 for "unsafe".
      part: the part.
      numbers: of the part's information sets, per player, in the whole game.
      label: `[R]`, the root information set of the opponent that each root belongs to.
      root_reach: `[R]`, the reach of the roots by everyone who counts (by all but the opponent where it is safe).
      values: the opponent's values: for each root information set, or for each root with "shift".
      payoffs: `[Z, 2]`, what the leaves pay in the whole game; anything for leaves that it does not have.
      leaf_reach: `[Z]`, the reach of the leaves from their roots, by chance.
      opponent_reach: `[Z]`, the same by the opponent's blueprint.
      ends: what the leaves are.
    """

    lowered: LoweredGame
    safety: Safety
    players: tuple[int, ...]
    opponent: int
    part: Part
    numbers: tuple[np.ndarray, np.ndarray]
    label: np.ndarray
    root_reach: np.ndarray
    values: np.ndarray
    payoffs: np.ndarray
    leaf_reach: np.ndarray
    opponent_reach: np.ndarray
    ends: Ends

    def __repr__(self) -> str:
        return f"ResolvingGame({self.safety!r}, for player {' and '.join(map(str, self.players))}, {self.tree!r})"

    @property
    def tree(self) -> GameTree:
        return self.lowered.tree

    @property
    def num_root_infosets(self) -> int:
        return int(self.label.max(initial=-1)) + 1

    def with_roots(self, root_reach: Any = None, values: Any = None, payoffs: Any = None) -> GameTree:
        """The same game for other reaches of the roots, other opponent values or other payoffs.

        Pure, so that it works under `jit` and `vmap`, and every solve of such a tree runs the same compiled program.
        The tree comes without its histories, whose chance probabilities would be the old ones.

        Args:
          root_reach: `[R]`, None as before. An information set of the opponent without reach pays nothing.
          values: as `values`, None as before.
          payoffs: `[Z, 2]`, None as before.
        """
        dtype = self.tree.dtype
        reach, values, payoffs = (
            jnp.asarray(own if given is None else given, dtype)
            for given, own in ((root_reach, self.root_reach), (values, self.values), (payoffs, self.payoffs))
        )
        rule = _Rule(self.safety, self.opponent, self.label, jnp)
        chance = rule.root_chance(reach)[self.ends.root] * jnp.asarray(self.leaf_reach, dtype)
        opponent_reach = jnp.asarray(self.opponent_reach, dtype)
        given = rule.payoffs(reach, values, payoffs, self.ends, opponent_reach)
        return dataclasses.replace(
            self.tree, payoffs=self.tree.payoffs.with_payoffs(given, chance=chance), histories=None
        )

    def rows(self, strategy: Strategy) -> dict[int, dict[int, np.ndarray]]:
        """The part's strategy: per player that it is for, from number in the whole game to probabilities."""
        return {
            player: dict(zip(self.numbers[player].tolist(), self.lowered.probabilities(strategy, player), strict=False))
            for player in self.players
        }


@dataclasses.dataclass(frozen=True)
class _Rule:
    """Chance and payoffs of a resolving game from its numbers; in numpy while it is built, in JAX afterwards."""

    safety: Safety
    opponent: int
    label: np.ndarray
    xp: Any

    def _by_infoset(self, reach: Any) -> Any:
        count = int(self.label.max(initial=-1)) + 1
        if self.xp is np:
            return np.bincount(self.label, reach, count)
        return jnp.zeros(count, reach.dtype).at[self.label].add(reach)

    def root_chance(self, reach: Any) -> Any:
        """`[R]`, the probability of the edge into every root."""
        total = self._by_infoset(reach)[self.label] if _chooses(self.safety) else reach.sum()
        return self.xp.where(total > 0, reach / self.xp.where(total > 0, total, 1), 0)

    def payoffs(self, reach: Any, values: Any, payoffs: Any, ends: Ends, opponent_reach: Any) -> Any:
        """`[Z, 2]`."""
        xp = self.xp
        if self.safety == "unsafe":
            return reach.sum() * payoffs
        own = payoffs[:, self.opponent]
        if self.safety == "shift":
            shifted = own + (opponent_reach - 1) * values[ends.root]
            return xp.stack([shifted if p == self.opponent else payoffs[:, p] for p in range(2)], axis=1)
        label = self.label[ends.root]
        total = self._by_infoset(reach)[label]
        if _chooses(self.safety):
            own = total * own - values[label]
        else:
            stop = xp.where(total > 0, values[label] / xp.where(total > 0, total, 1), 0)
            own = reach.sum() * xp.where(ends.row < 0, stop, own)
        return xp.stack([own if p == self.opponent else -own for p in range(2)], axis=1)


def _chooses(safety: Safety) -> bool:
    """Whether the opponent chooses its root information set."""
    return safety in ("maxmargin", "reach")


def check_safety(safety: Any) -> Safety:
    """The value itself, if it is one of the ways of being safe."""
    if safety not in SAFETY:
        raise OptionError(f"safety has to be one of {', '.join(SAFETY)}, not {safety!r}")
    return safety


def build_resolving_game(
    part: Part,
    safety: Safety,
    *,
    players: tuple[int, ...],
    opponent: int,
    label: np.ndarray,
    root_reach: np.ndarray,
    values: np.ndarray,
    opponent_edges: np.ndarray,
    terminal_payoffs: np.ndarray,
    continuation: Continuation | None,
    name: str,
    dtype: Any,
) -> ResolvingGame:
    """Builds the game.

    Args:
      part: its histories.
      safety, players, opponent, label, root_reach, values: see `ResolvingGame`.
      opponent_edges: `[N]`, the opponent's blueprint probabilities of the edges into the histories of the whole game,
        1 where somebody else acts.
      terminal_payoffs: `[N, 2]`, payoffs of the terminal histories.
      continuation: what a part that is cut off goes on with.
      name: of the game.
      dtype: of the tree.
    """
    whole = part.whole
    assembly, numbers = Assembly(), Numbering(part)
    roots = len(part.roots)
    rule = _Rule(safety, opponent, label, np)
    edge = rule.root_chance(root_reach)
    if _chooses(safety):
        count = int(label.max()) + 1
        first = numbers.add(Choice(opponent, ((OWN_KEYS, "root"),), (tuple(f"root {i}" for i in range(count)),)))
        top = assembly.add(opponent, -1, first)
        above = assembly.add(CHANCE, np.repeat(top, count))[label]
    elif safety == "resolve":
        keys = tuple((OWN_KEYS, "root", i) for i in range(int(label.max()) + 1))
        first = numbers.add(Choice(opponent, keys, (TERMINATE_OR_FOLLOW,) * len(keys)))
        top = assembly.add(CHANCE, -1)
        above = assembly.add(opponent, np.repeat(top, roots), first + label, edge)
        edge = np.ones(roots)  # the edges of chance lead to the opponent's decisions above the roots
        assembly.add(TERMINAL, above, root=np.arange(roots))
    elif roots == 1:
        above = np.array([-1])
    else:
        above = np.repeat(assembly.add(CHANCE, -1), roots)
    choices, leaf_infoset = 1, None
    if continuation is not None and len(continuation.values) > 1 and part.cut_off.any():
        choices = len(continuation.values)
        cut_off = part.rows[part.cut_off]
        # The opponent remembers what it did, whatever the game says that it observes.
        known = (continuation.infoset[cut_off], whole.sequence[opponent][cut_off], label[part.root_of[part.cut_off]])
        classes, which = np.unique(np.stack(known), axis=1, return_inverse=True)
        count = classes.shape[1]
        menu = tuple(f"continuation {i}" for i in range(choices))
        first = numbers.add(Choice(opponent, tuple((OWN_KEYS, "leaf", i) for i in range(count)), (menu,) * count))
        leaf_infoset = np.full(len(part.rows), -1, np.int64)
        leaf_infoset[part.cut_off] = first + which.reshape(-1)

    add_part(assembly, numbers, above, edge, choices, leaf_infoset, opponent)
    nodes, ends = assembly.finish(numbers.num_actions())

    row = np.maximum(ends.row, 0)
    payoffs = terminal_payoffs[row]
    if continuation is not None:
        inner = whole.nodes.player[row] != TERMINAL
        payoffs[inner] = continuation.values[ends.choice[inner], row[inner]]
    payoffs[ends.row < 0] = 0.0
    by_chance = part.product_below(whole.nodes.chance)[row]
    by_opponent = part.product_below(opponent_edges)[row]
    by_chance[ends.row < 0] = by_opponent[ends.row < 0] = 1.0
    nodes = dataclasses.replace(nodes, payoffs=rule.payoffs(root_reach, values, payoffs, ends, by_opponent))
    return ResolvingGame(
        lowered=numbers.lower(nodes, name, dtype, general_sum=safety == "shift"),
        safety=safety,
        players=players,
        opponent=opponent,
        part=part,
        numbers=numbers.real,
        label=label,
        root_reach=root_reach,
        values=values,
        payoffs=payoffs,
        leaf_reach=by_chance,
        opponent_reach=by_opponent,
        ends=ends,
    )
