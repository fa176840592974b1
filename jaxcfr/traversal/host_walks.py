"""Walks through a plain `Game` that sample, history by history, in Python: slow, but for any game.

Chance is drawn with `Game.sample_chance`, so it need not be enumerable.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from jaxcfr.errors import GameError, RecallError
from jaxcfr.games import checks
from jaxcfr.games.base import action_label, format_path, game_name


class Infosets:
    """The information sets met so far; the row of each is the order in which they were met."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, Hashable], int] = {}
        self.owner: list[int] = []
        self.keys: list[Hashable] = []
        self.actions: list[tuple[Hashable, ...]] = []
        self.labels: list[tuple[str, ...]] = []
        self.parent: list[tuple[int, int]] = []
        self.level: list[int] = []
        self.most_actions = 1

    def copy(self) -> Infosets:
        """Another object with the same rows, which may grow on its own."""
        other = Infosets()
        for name, value in vars(self).items():
            setattr(other, name, value if isinstance(value, int) else value.copy())
        return other

    def find(self, game: Any, player: int, last: tuple[int, int], path: Sequence[Hashable]) -> int:
        """The row of the information set of `player`, who acts at `game`; `last` is its last (row, action) or (-1, 0).

        Raises:
          BrokenRuleError: the rules are broken.
          RecallError: the information set was met after another last action of the player.
        """
        key = game.infoset_key(player)
        checks.hashable("infoset_key()", key)
        actions = tuple(checks.moves("legal_actions()", game.legal_actions()))
        row = self.rows.get((player, key))
        if row is None:
            row = len(self.owner)
            self.rows[player, key] = row
            self.owner.append(player)
            self.keys.append(key)
            self.actions.append(actions)
            self.labels.append(tuple(action_label(game, action) for action in actions))
            self.parent.append(last)
            self.level.append(0 if last[0] < 0 else self.level[last[0]] + 1)
            self.most_actions = max(self.most_actions, len(actions))
            return row
        if self.actions[row] != actions:
            raise checks.BrokenRuleError(
                f"information set {key!r} of player {player} has the actions {list(actions)!r} here and "
                f"{list(self.actions[row])!r} elsewhere"
            )
        if self.parent[row] != last:
            raise RecallError(
                f"player {player} forgets at information set {key!r}: its histories differ in what the player did "
                "before; counterfactual regret minimization needs perfect recall"
            )
        return row


class HostWalker:
    """One player's walks of an iteration.

    Args:
      game: the root.
      infosets: those met so far; new ones are added.
      strategy: `[C, A]`; rows that are zero, or missing, play uniformly.
      rng: draws everything.
      exploration: of outcome sampling; None walks every action of the player (external sampling).
      baseline: `[C, A]`, what actions are expected to be worth to their player, for outcome sampling; or None.
      max_steps: plays with more moves than this are taken for endless.
    """

    def __init__(
        self,
        game: Any,
        infosets: Infosets,
        strategy: np.ndarray,
        rng: np.random.Generator,
        exploration: float | None,
        baseline: np.ndarray | None,
        max_steps: int,
    ) -> None:
        self.game = game
        self.infosets = infosets
        self.strategy = strategy
        self.rng = rng
        self.exploration = exploration
        self.baseline = baseline
        self.max_steps = max_steps
        self.visited = 0

    def walk(self, player: int, totals: dict[tuple[int, int], np.ndarray]) -> None:
        """One walk; adds to the last sequence (row, action) of each leaf; (-1, 0) is the empty one.

        Three numbers: the direct values, the payoffs without importance weights, and the plays.

        Raises:
          GameError: the rules are broken.
          RecallError: a player forgets what it did.
        """
        self.path: tuple[Hashable, ...] = ()
        try:
            self._walk(player, totals)
        except checks.BrokenRuleError as error:
            where = f"at {format_path(self.path)}" if self.path else "at the root"
            raise GameError(f"{game_name(self.game)}: {where}: {error}") from error.__cause__

    def _walk(self, player: int, totals: dict[tuple[int, int], np.ndarray]) -> None:
        players = checks.num_players(self.game.num_players)
        stack: list[tuple[Any, tuple[tuple[int, int], ...], float, tuple[Hashable, ...]]] = [
            (self.game, ((-1, 0),) * players, 1.0, ())
        ]
        while stack:
            game, last, weight, path = stack.pop()
            self.path = path
            if game is None:
                raise checks.BrokenRuleError("step() returned None, not the history that follows")
            self.visited += 1
            if len(path) > self.max_steps:
                raise GameError(f"{game_name(game)}: a play has not ended after {self.max_steps:,} moves")
            if checks.flag("is_terminal()", game.is_terminal()):
                payoffs = checks.payoffs(game.terminal_returns(), players)
                payoff = float(payoffs[player])
                _add(totals, last[player], weight * payoff, payoff, 1.0)
                continue
            if checks.flag("is_chance()", game.is_chance()):
                action = game.sample_chance(self.rng)
                stack.append((game.step(action), last, weight, (*path, action)))
                continue
            actor = checks.player(game.player_to_act(), players)
            row = self.infosets.find(game, actor, last[actor], path)
            actions = self.infosets.actions[row]
            choices: Sequence[int] = range(len(actions))
            if actor != player or self.exploration is not None:
                probabilities = self._probabilities(row, len(actions))
                if actor == player and self.exploration is not None:
                    probabilities = self.exploration / len(actions) + (1 - self.exploration) * probabilities
                choice = int(self.rng.choice(len(actions), p=probabilities))
                choices = (choice,)
                if actor == player:
                    before, weight = weight, weight / float(probabilities[choice])
                    if self.baseline is not None and row < len(self.baseline):
                        # The baselines of all actions instead of that of the drawn one.
                        for action, worth in enumerate(self.baseline[row, : len(actions)].tolist()):
                            _add(totals, (row, action), worth * (before - weight * (action == choice)))
            for choice in choices:
                after = (*last[:actor], (row, choice), *last[actor + 1 :])
                stack.append((game.step(actions[choice]), after, weight, (*path, actions[choice])))

    def _probabilities(self, row: int, count: int) -> np.ndarray:
        if row < len(self.strategy):
            played = self.strategy[row, :count].astype(np.float64)
            total = played.sum()
            if total > 0:
                return played / total
        return np.full(count, 1 / count)


def _add(totals: dict[tuple[int, int], np.ndarray], sequence: tuple[int, int], *values: float) -> None:
    found = totals.setdefault(sequence, np.zeros(3))
    found[: len(values)] += values
