"""A game inside another one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from jaxcfr.games.base import Action, Game, Payoff, Probability, action_label, game_name


class WrappedGame(Game):
    """A history of a game inside another one, which does as that one; subclasses change some of it.

    What the protocol does not name is that of the game inside, but for `walk_histories`: the histories that a game
    walks by itself are those of the inner game.
    """

    __slots__ = ("inner", "num_players")

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.num_players: int = inner.num_players

    def _wrap(self, inner: Any) -> Any:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("inner", "num_players", "walk_histories"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def name(self) -> str:
        """As inside."""
        return game_name(self.inner)

    def is_terminal(self) -> bool:
        """As inside."""
        return self.inner.is_terminal()

    def is_chance(self) -> bool:
        """As inside."""
        return self.inner.is_chance()

    def player_to_act(self) -> int:
        """As inside."""
        return self.inner.player_to_act()

    def chance_outcomes(self) -> Sequence[tuple[Action, Probability]] | None:
        """As inside."""
        return self.inner.chance_outcomes()

    def sample_chance(self, rng: np.random.Generator) -> Action:
        """As inside."""
        return self.inner.sample_chance(rng)

    def legal_actions(self) -> Sequence[Action]:
        """As inside."""
        return self.inner.legal_actions()

    def step(self, action: Action) -> Any:
        """The history after an action, wrapped."""
        return self._wrap(self.inner.step(action))

    def terminal_returns(self) -> Sequence[Payoff]:
        """As inside."""
        return self.inner.terminal_returns()

    def infoset_key(self, player: int) -> Hashable:
        """As inside."""
        return self.inner.infoset_key(player)

    def action_label(self, action: Action) -> str:
        """As inside."""
        return action_label(self.inner, action)
