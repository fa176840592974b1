"""Checking the rules of a game: `validate_game` walks it and reports the first rule of `Game` that it breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jaxcfr.arguments import integer
from jaxcfr.errors import GameError, RecallError
from jaxcfr.games import checks
from jaxcfr.games.array_game import is_array_game
from jaxcfr.games.base import Game, action_label, format_path, game_name

_REQUIRED = (
    "is_terminal",
    "is_chance",
    "player_to_act",
    "legal_actions",
    "step",
    "terminal_returns",
    "infoset_key",
)
_SAMPLES = 3
_SHOWN_ACTIONS = 20


@dataclass(frozen=True)
class ValidationReport:
    """What `validate_game` walked, all of it in order.

    Attributes:
        name: the game's name.
        num_players: number of players.
        histories: histories walked, terminal ones and the root included.
        terminals: terminal histories walked.
        infosets: information sets met, one number per player.
        depth: moves of the longest play walked, chance included.
        recall: whether every player recalls all it knew and did.
        complete: whether every history was walked: False where `max_histories` ended the walk, or where chance can
            only be sampled.
    """

    name: str
    num_players: int
    histories: int
    terminals: int
    infosets: tuple[int, ...]
    depth: int
    recall: bool
    complete: bool


class _Path:
    """The moves that lead to a history, last one first; histories share their beginnings."""

    __slots__ = ("action", "before", "depth")

    def __init__(self, before: _Path | None, action: Any) -> None:
        self.before = before
        self.action = action
        self.depth: int = before.depth + 1 if before is not None else 1


def _text(path: _Path | None) -> str:
    """The path as it appears in messages; long ones show their last moves."""
    actions: list[Any] = []
    node = path
    while node is not None and len(actions) < _SHOWN_ACTIONS:
        actions.append(node.action)
        node = node.before
    shown = format_path(actions[::-1])
    return shown if node is None else f"({node.depth} moves before) > {shown}"


class _Facts(NamedTuple):
    """What a history says about itself; asked twice, it must say the same."""

    kind: str
    player: int = -1
    key: Any = None
    actions: tuple[Any, ...] = ()
    labels: tuple[str, ...] = ()
    chance: tuple[tuple[Any, Any], ...] | None = None
    payoffs: tuple[float, ...] = ()


class _Infoset:
    """An information set as it was first met."""

    __slots__ = ("actions", "labels", "parent", "path")

    def __init__(self, facts: _Facts, parent: int, path: _Path | None) -> None:
        self.actions = facts.actions
        self.labels = facts.labels
        self.parent = parent
        self.path = path


def validate_game(
    game: Game,
    max_histories: int = 1_000_000,
    *,
    max_depth: int = 10_000,
    require_recall: bool = True,
    seed: int = 0,
) -> ValidationReport:
    """Walk a game and check every rule of the `Game` protocol.

    Checked are: the methods and `num_players`; that each history is exactly one of terminal, chance and decision;
    players, actions and outcomes of chance (distinct hashable values in an order, never empty); probabilities (finite,
    not negative, summing to 1: exactly for fractions, within 1e-9 for floats, within its rounding for float32);
    payoffs (one finite number per player); that all histories of an information set have the same actions in the same
    order, with the same labels; that `step` returns a new history and changes none; that players recall all they knew
    and did; and that plays end.

    Where chance can only be sampled (`chance_outcomes()` is None), a few outcomes are sampled and walked, and the
    report is not `complete`.

    Args:
        game: the root.
        max_histories: the walk ends after this many histories, with a report that is not `complete`.
        max_depth: a play of more moves than this is taken to be infinite, which is an error.
        require_recall: whether imperfect recall is an error; if not, the report tells.
        seed: seed of the sampled outcomes.

    Returns:
        What was walked.

    Raises:
        GameError: the first broken rule, with the path of actions that leads to it.
        RecallError: a player forgets what it knew or did.
        OptionError: `max_histories` or `max_depth` is not a positive integer.
    """
    max_histories, max_depth = integer("max_histories", max_histories), integer("max_depth", max_depth)
    checks.require_instance(game, "validate_game")
    if isinstance(game, str) or hasattr(game, "treeplexes") or hasattr(game, "infoset_keys") or is_array_game(game):
        checks.require_plain(game, "validate_game")
    return _Walk(game, max_histories, max_depth, require_recall, seed).run()


class _Walk:
    """One walk over the game, depth first and without recursion."""

    def __init__(self, game: Any, max_histories: int, max_depth: int, require_recall: bool, seed: int) -> None:
        self.root = game
        self.name = game_name(game)
        self.max_histories = max_histories
        self.max_depth = max_depth
        self.require_recall = require_recall
        self.rng = np.random.default_rng(seed)
        self.known_types: set[type] = set()
        self.infosets: list[dict[Any, _Infoset]] = []
        # A player's sequences (key of its information set, action, sequence before) are numbered, 0 is the empty one;
        # steps[player][number] gives them back. Recall means that all of an information set has the same one.
        self.sequences: list[dict[tuple[Any, Any, int], int]] = []
        self.steps: list[list[tuple[Any, Any, int]]] = []
        self.recall = True
        self.num_players = 0

    def error(self, path: _Path | None, problem: str) -> GameError:
        """A broken rule at `path`."""
        return GameError(f"{self.name}: at {_text(path)}: {problem}")

    def call(self, path: _Path | None, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """`function(*arguments)`, with whatever it raises turned into a `GameError` that names the path."""
        try:
            return function(*arguments)
        except checks.BrokenRuleError as error:
            raise self.error(path, str(error)) from error.__cause__
        except Exception as error:
            raise self.error(path, f"{what} raised {type(error).__name__}: {error}") from error

    def run(self) -> ValidationReport:
        """Walk and report."""
        root = self.root
        self.check_methods(root, None)
        n = self.num_players = checks.num_players(root.num_players)
        self.infosets = [{} for _ in range(n)]
        self.sequences = [{} for _ in range(n)]
        self.steps = [[(None, None, -1)] for _ in range(n)]
        histories = terminals = depth = 0
        complete = True
        # An entry: history, path, each player's last sequence, and what the history said when it was made.
        stack: list[tuple[Any, _Path | None, tuple[int, ...], _Facts]] = [
            (root, None, (0,) * n, self.observe(root, None))
        ]
        while stack:
            if histories >= self.max_histories:
                complete = False
                break
            state, path, last, said = stack.pop()
            facts = self.observe(state, path)
            if facts != said:
                raise self.error(path, f"the history changed while others were walked: {_difference(said, facts)}")
            histories += 1
            level = path.depth if path is not None else 0
            depth = max(depth, level)
            if facts.kind == "terminal":
                terminals += 1
                continue
            if facts.kind == "chance":
                if facts.chance is None:
                    complete = False
                    moves = self.sample(state, path)
                else:
                    moves = [outcome for outcome, _ in facts.chance]
                for move in moves:
                    self.label(state, path, move)
            else:
                self.check_others(state, path, facts.player)
                self.enter(facts, path, last)
                moves = list(facts.actions)
            if level >= self.max_depth:
                raise self.error(path, f"the play goes on after {self.max_depth} moves; the game may never end")
            children = []
            for move in moves:
                child_path = _Path(path, move)
                child = self.call(path, f"step({move!r})", state.step, move)
                if child is None:
                    raise self.error(path, f"step({move!r}) returned None instead of the next history")
                if child is state:
                    raise self.error(
                        path, f"step({move!r}) returned the same object; it has to leave it and return a new one"
                    )
                self.check_methods(child, child_path)
                after = last
                if facts.kind == "decision":
                    p = facts.player
                    sequence = self.sequence(p, facts.key, move, last[p])
                    after = (*last[:p], sequence, *last[p + 1 :])
                children.append((child, child_path, after, self.observe(child, child_path)))
            again = self.observe(state, path)
            if again != facts:
                raise self.error(path, f"step changed the history it was called on: {_difference(facts, again)}")
            stack.extend(reversed(children))
        return ValidationReport(
            name=self.name,
            num_players=n,
            histories=histories,
            terminals=terminals,
            infosets=tuple(len(infosets) for infosets in self.infosets),
            depth=depth,
            recall=self.recall,
            complete=complete,
        )

    def check_methods(self, state: Any, path: _Path | None) -> None:
        """The methods of a history's class, and `num_players`."""
        cls = type(state)
        if cls not in self.known_types:
            for method in _REQUIRED:
                found = getattr(cls, method, None) or getattr(state, method, None)
                # A method that a subclass of `Game` leaves out is inherited from the protocol and does nothing.
                if found is None or found is getattr(Game, method):
                    raise self.error(path, f"{cls.__name__} has no method {method}")
                if not callable(found):
                    raise self.error(path, f"{method} of {cls.__name__} is not a method but {found!r}")
            self.known_types.add(cls)
        n = self.call(path, "num_players", lambda: checks.num_players(getattr(state, "num_players", None)))
        if path is not None and n != self.num_players:
            raise self.error(path, f"num_players is {n}, but {self.num_players} at the root")

    def observe(self, state: Any, path: _Path | None) -> _Facts:
        """Everything a history says about itself, checked."""
        terminal, chance = (
            self.read(path, f"{method}()", getattr(state, method), checks.flag)
            for method in ("is_terminal", "is_chance")
        )
        if terminal and chance:
            raise self.error(path, "the history is terminal and chance at once")
        n = self.num_players
        if terminal:
            payoffs = self.read(path, "terminal_returns()", state.terminal_returns, lambda _, v: checks.payoffs(v, n))
            return _Facts("terminal", payoffs=tuple(payoffs))
        if chance:
            return _Facts("chance", chance=self.chance(state, path))
        player = self.read(path, "player_to_act()", state.player_to_act, lambda _, value: checks.player(value, n))
        actions = self.read(path, "legal_actions()", state.legal_actions, checks.moves)
        what = f"infoset_key({player})"
        key = self.call(path, what, state.infoset_key, player)
        self.call(path, what, checks.infoset_key, player, key)
        labels = tuple(self.label(state, path, action) for action in actions)
        return _Facts("decision", player, key, actions, labels)

    def read(self, path: _Path | None, what: str, method: Callable[[], Any], check: Callable[[str, Any], Any]) -> Any:
        """What a method returns, read by a function of `checks`; where it is an iterator, that may raise as well."""
        return self.call(path, what, lambda: check(what, method()))

    def check_hash(self, path: _Path | None, what: str, value: Any) -> None:
        """Whether a value can be hashed, and equals itself."""
        self.call(path, what, checks.hashable, what, value)

    def chance(self, state: Any, path: _Path | None) -> tuple[tuple[Any, Any], ...] | None:
        """The outcomes of chance and their probabilities, or None where they can only be sampled."""
        method = getattr(state, "chance_outcomes", None)
        if method is None or getattr(type(state), "chance_outcomes", None) is Game.chance_outcomes:
            raise self.error(path, f"the history is chance, but {type(state).__name__} has no method chance_outcomes")

        def check(what: str, returned: Any) -> tuple[tuple[Any, Any], ...] | None:
            if returned is None:
                return None
            outcomes, given = checks.chance(returned)
            return tuple(zip(outcomes, checks.probabilities(outcomes, given), strict=True))

        found: tuple[tuple[Any, Any], ...] | None = self.read(path, "chance_outcomes()", method, check)
        return found

    def sample(self, state: Any, path: _Path | None) -> list[Any]:
        """A few distinct outcomes where chance can only be sampled."""
        method = getattr(state, "sample_chance", None)
        if method is None:
            raise self.error(path, "chance_outcomes() is None, so the game has to define sample_chance(rng)")
        drawn = []
        for _ in range(_SAMPLES):
            outcome = self.call(path, "sample_chance(rng)", method, self.rng)
            self.check_hash(path, "sample_chance(rng)", outcome)
            drawn.append(outcome)
        return list(dict.fromkeys(drawn))

    def label(self, state: Any, path: _Path | None, action: Any) -> str:
        """The label of an action."""
        label: str = self.call(path, f"action_label({action!r})", action_label, state, action)
        return label

    def check_others(self, state: Any, path: _Path | None, actor: int) -> None:
        """The keys of those who do not act: hashable, or a `GameError` where the game cannot tell."""
        for player in range(self.num_players):
            if player == actor:
                continue
            try:
                key = state.infoset_key(player)
            except GameError:
                continue
            except Exception as error:
                raise self.error(
                    path,
                    f"infoset_key({player}) raised {type(error).__name__}: {error} (player {actor} acts here; a game "
                    f"that cannot tell what player {player} knows raises GameError)",
                ) from error
            self.check_hash(path, f"infoset_key({player})", key)

    def enter(self, facts: _Facts, path: _Path | None, last: tuple[int, ...]) -> None:
        """Compare a decision history with its information set."""
        player, key = facts.player, facts.key
        infoset = self.infosets[player].setdefault(key, _Infoset(facts, last[player], path))
        where = f"information set {key!r} of player {player}"
        if infoset.actions != facts.actions:
            how = "in another order " if set(infoset.actions) == set(facts.actions) else ""
            raise self.error(
                path,
                f"{where} has the legal actions {list(facts.actions)!r} here, but {how}{list(infoset.actions)!r} at "
                f"{_text(infoset.path)}",
            )
        if infoset.labels != facts.labels:
            raise self.error(
                path,
                f"{where} has the action labels {list(facts.labels)!r} here, but {list(infoset.labels)!r} at "
                f"{_text(infoset.path)}",
            )
        if infoset.parent == last[player]:
            return
        self.recall = False
        if not self.require_recall:
            return
        # Absent-minded: the information set is one of those that this very play went through.
        sequence = last[player]
        while sequence > 0:
            passed, _, sequence = self.steps[player][sequence]
            if passed == key:
                raise RecallError(
                    f"{self.name}: at {_text(path)}: {where} is met a second time in one play (absent-mindedness): the "
                    f"player cannot tell whether it has moved already"
                )
        raise RecallError(
            f"{self.name}: at {_text(path)}: player {player} forgets what it knew or did: {where} is reached here "
            f"after {self.own_moves(player, last[player])}, but at {_text(infoset.path)} "
            f"after {self.own_moves(player, infoset.parent)}"
        )

    def sequence(self, player: int, key: Any, action: Any, before: int) -> int:
        """The number of a player's sequence."""
        step = (key, action, before)
        found = self.sequences[player].get(step)
        if found is None:
            found = self.sequences[player][step] = len(self.steps[player])
            self.steps[player].append(step)
        return found

    def own_moves(self, player: int, sequence: int) -> str:
        """The player's last own move, in words."""
        if sequence == 0:
            return "no move of its own"
        key, action, _ = self.steps[player][sequence]
        return f"action {action!r} at {key!r}"


def _difference(before: _Facts, after: _Facts) -> str:
    """How two answers of one history differ."""
    names = {
        "kind": "its kind",
        "player": "player_to_act()",
        "key": "infoset_key()",
        "actions": "legal_actions()",
        "labels": "the action labels",
        "chance": "chance_outcomes()",
        "payoffs": "terminal_returns()",
    }
    for field, name in names.items():
        old, new = getattr(before, field), getattr(after, field)
        if old != new:
            return f"{name} was {old!r} and is now {new!r}"
    return "its answers differ"
