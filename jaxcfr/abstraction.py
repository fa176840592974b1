"""Smaller games in the place of large ones: fewer actions, or coarser information.

`Abstracted` drops actions, `MergedInfosets` makes a player take information sets for one; both wrap any game and are
games. `lift` carries a strategy of such a game back to the real one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import numpy as np

from jaxcfr.errors import GameError, OptionError, ProfileError
from jaxcfr.games import checks
from jaxcfr.games.base import Action, Game, game_name
from jaxcfr.games.wrapped import WrappedGame
from jaxcfr.profile import Profile
from jaxcfr.tree.lower import LoweredGame, lower


class Abstraction(Protocol):
    """Which actions are kept: any class with this method."""

    def actions(self, game: Game, player: int) -> Sequence[Action]:
        """The actions that `player` keeps at a decision history.

        A non-empty subset of `game.legal_actions()` without duplicates, the same in the same order at all histories of
        an information set.

        Args:
          game: the history, of the game inside.
          player: who acts there.
        """
        ...


class Identity:
    """Keeps every action."""

    def actions(self, game: Game, player: int) -> Sequence[Action]:
        """All legal actions."""
        return game.legal_actions()


class _Wrapper(WrappedGame):
    """A history of a game inside another one; forwards everything."""

    __slots__ = ()

    def __init__(self, inner: Any) -> None:
        checks.require_instance(inner, type(self).__name__)
        if not hasattr(inner, "is_terminal") or not hasattr(inner, "step"):
            hint = "; jaxcfr.load_game(name) makes one" if isinstance(inner, str) else ""
            hint = "; jaxcfr.as_game makes one of an array game" if hasattr(inner, "init") else hint
            what = f"{type(self).__name__} needs a game with the methods of jaxcfr.Game"
            raise GameError(f"{what}, not {type(inner).__name__!r}{hint}")
        super().__init__(inner)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @property
    def name(self) -> str:
        """The name of the game inside, and how it was changed."""
        return f"{game_name(self.inner)}, {self._change}"

    _change = "wrapped"

    def abstract_key(self, player: int, key: Hashable) -> Hashable:
        """The key that an information set of the innermost game has here."""
        return self.inner.abstract_key(player, key) if isinstance(self.inner, _Wrapper) else key


class Abstracted(_Wrapper):
    """A game with fewer actions.

    Whatever the abstraction keeps is checked wherever it is asked; that an information set keeps the same actions in
    the same order at all its histories is checked by `jaxcfr.lower`.

    Args:
      inner: any game.
      abstraction: which actions are kept.

    Raises:
      GameError: at a history where the abstraction keeps no action, one twice, or one that is not legal; from `step`
        with an action that is not kept.
    """

    __slots__ = ("_kept", "abstraction")
    _change = "with fewer actions"

    def __init__(self, inner: Any, abstraction: Abstraction) -> None:
        super().__init__(inner)
        if isinstance(abstraction, type) or not callable(getattr(abstraction, "actions", None)):
            raise GameError(
                f"an abstraction is an object with a method actions(game, player), not {abstraction!r}"
                + ("; pass an instance" if isinstance(abstraction, type) else "")
            )
        self.abstraction = abstraction
        self._kept: tuple[Action, ...] | None = None

    def _wrap(self, inner: Any) -> Abstracted:
        return Abstracted(inner, self.abstraction)

    def legal_actions(self) -> tuple[Action, ...]:
        """The actions that are kept, in the order of the abstraction."""
        if self._kept is None:
            self._kept = self._check() if not (self.is_terminal() or self.is_chance()) else ()
        return self._kept

    def _check(self) -> tuple[Action, ...]:
        player = self.inner.player_to_act()
        legal = checks.ordered("legal_actions()", self.inner.legal_actions())
        what = f"{type(self.abstraction).__name__}.actions(game, {player})"
        try:
            kept = checks.moves(what, self.abstraction.actions(self.inner, player))
        except checks.BrokenRuleError as error:
            raise GameError(f"{self.name}: at {self.inner!r}: {error}") from None
        wrong = [action for action in kept if action not in legal]
        if wrong:
            raise GameError(
                f"{self.name}: at {self.inner!r}: {what} has {wrong[0]!r}, which is not one of the legal actions "
                f"{list(legal)!r}"
            )
        return tuple(
            legal[legal.index(action)] for action in kept
        )  # the game's own: an equal one may be of another type

    def step(self, action: Action) -> Abstracted:
        """The history after an action that is kept, or an outcome of chance."""
        if not self.is_chance() and action not in self.legal_actions():
            kept = list(self.legal_actions())
            raise GameError(f"{self.name}: {action!r} is not one of the actions kept at {self.inner!r}: {kept}")
        return self._wrap(self.inner.step(action))


class MergedInfosets(_Wrapper):
    """A game whose players take some information sets for one.

    Perfect recall of the result is checked by `jaxcfr.lower`, as for every game: sets can only be merged if what comes
    after them stays merged as well.

    Args:
      inner: any game.
      key: called as `key(player, infoset_key)`, returns the key of the merged set.
    """

    __slots__ = ("key",)
    _change = "with merged information sets"

    def __init__(self, inner: Any, key: Callable[[int, Hashable], Hashable]) -> None:
        super().__init__(inner)
        if not callable(key):
            raise GameError(f"MergedInfosets needs a function key(player, infoset_key), not {key!r}")
        self.key = key

    def _wrap(self, inner: Any) -> MergedInfosets:
        return MergedInfosets(inner, self.key)

    def infoset_key(self, player: int) -> Hashable:
        """The key of the merged set."""
        return self.key(player, self.inner.infoset_key(player))

    def abstract_key(self, player: int, key: Hashable) -> Hashable:
        """The key that an information set of the innermost game has here."""
        return self.key(player, super().abstract_key(player, key))


def lift(profile: Profile, abstracted: Any, game: Any, *, lowered: LoweredGame | None = None) -> Profile:
    """A strategy of an abstracted game as a strategy of the game itself.

    Information sets that were merged share the strategy of the merged one. Actions that were dropped get probability
    zero, and the others are rescaled to sum to 1; where they carry no mass, or the abstracted game never gets to, the
    strategy is uniform over all legal actions.

    Args:
      profile: of the abstracted game.
      abstracted: that game, an `Abstracted` or `MergedInfosets`, or one around the other.
      game: the real game.
      lowered: the real game lowered, where it is at hand.

    Raises:
      OptionError: `abstracted` is none of these.
      ProfileError: the profile is of another game.
    """
    if not isinstance(abstracted, _Wrapper):
        raise OptionError(f"lift needs an Abstracted or MergedInfosets game, not {type(abstracted).__name__}")
    if not isinstance(profile, Profile):
        raise ProfileError(f"lift needs a Profile of the abstracted game, not {type(profile).__name__}")
    lowered = lower(game) if lowered is None else lowered
    rows: list[list[np.ndarray]] = []
    met = 0
    for player, keys in enumerate(lowered.infoset_keys):
        per_player = []
        for key, actions in zip(keys, lowered.actions[player], strict=True):
            own = abstracted.abstract_key(player, key)
            kept = profile.probabilities(player, own) if profile.has_infoset(player, own) else {}
            met += bool(kept)
            row = np.array([kept.get(action, 0.0) for action in actions])
            total = row.sum()
            per_player.append(row / total if total > 0 else np.full(len(actions), 1.0 / len(actions)))
        rows.append(per_player)
    if not met and len(profile):
        raise ProfileError(
            f"no information set of {lowered.name} is in this profile of {profile.game_name}: is it of another game?"
        )
    return Profile.from_strategy(
        lowered,
        lowered.strategy(rows),
        variant=profile.variant,
        iterations=profile.iterations,
        seed=profile.seed,
    )
