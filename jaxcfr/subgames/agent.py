"""Continual play: a strategy that is solved anew, part by part, as the play goes on."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from jaxcfr.analytics import require_constant_sum
from jaxcfr.errors import OptionError
from jaxcfr.profile import Missing, Profile
from jaxcfr.regret.variants import RegretVariant
from jaxcfr.solve import Updates
from jaxcfr.subgames.blueprint import Blueprint
from jaxcfr.subgames.depth import LeafValues, check_depth
from jaxcfr.subgames.public import PublicSubgame
from jaxcfr.subgames.resolving import Safety, check_safety


class SubgameAgent:
    """Plays like a `Profile`, but solves the part of the game that the play has come to at every decision.

    Re-solving is nested (Brown and Sandholm 2017): at each of a player's decisions the closed part around it is solved
    again, from the blueprint as changed by what was solved at the player's earlier decisions. With a safe way each
    step adds no more exploitability than its own error. Parts are solved when a play first comes to them and kept, so
    an agent is one fixed strategy however often it is asked; `to_profile` gives the whole of it.

    Args:
      blueprint: the strategy of the whole game.
      iterations, variant, updates: of every solve, as in `jaxcfr.solve`.
      safety, closure, max_depth, leaf_values: as in `Subgame.public` and its `solve`.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        iterations: int = 200,
        variant: RegretVariant | None = None,
        *,
        safety: Safety = "resolve",
        closure: str | None = None,
        max_depth: int | None = None,
        leaf_values: LeafValues = None,
        updates: Updates = "alternating",
    ) -> None:
        if not isinstance(blueprint, Blueprint):
            raise OptionError(
                f"an agent needs a Blueprint, not {type(blueprint).__name__}: Blueprint.from_profile(game, profile)"
            )
        require_constant_sum(blueprint.lowered.tree, "solving a part of a game", "let its profile() play instead")
        self.blueprint = blueprint
        self.iterations = iterations
        self.variant = variant
        self.safety = check_safety(safety)
        self.closure = closure
        self.max_depth = check_depth(max_depth, leaf_values)
        self.leaf_values = leaf_values
        self.updates = updates
        self._classes, _ = blueprint.whole.knowledge(closure)
        self._inside: dict[tuple[int, int], np.ndarray] = {}
        self._solved: dict[tuple[Any, ...], Blueprint] = {}

    def __repr__(self) -> str:
        return f"SubgameAgent({self.blueprint!r}, {self.safety!r}, {len(self._solved)} parts solved)"

    @property
    def num_players(self) -> int:
        return 2

    @property
    def game_name(self) -> str:
        """The name of the game."""
        return self.blueprint.lowered.name

    def policy(self, game: Any, player: int | None = None, *, missing: Missing | None = None) -> np.ndarray:
        """As `Profile.policy`."""
        return self._profile_at(game).policy(game, player, missing=missing)

    def policy_strict(self, game: Any, player: int | None = None) -> np.ndarray:
        """As `Profile.policy_strict`."""
        return self._profile_at(game).policy_strict(game, player)

    def act(self, game: Any, player: int | None = None) -> Hashable:
        """As `Profile.act`."""
        return self._profile_at(game).act(game, player)

    def act_stochastic(self, game: Any, player: int | None = None, rng: np.random.Generator | None = None) -> Hashable:
        """As `Profile.act_stochastic`."""
        return self._profile_at(game).act_stochastic(game, player, rng)

    def to_profile(self) -> Profile:
        """The whole strategy; solves every part that no play has come to yet."""
        lowered = self.blueprint.lowered
        rows = []
        for player, keys in enumerate(lowered.infoset_keys):
            own = []
            for number, key in enumerate(keys):
                own.append(list(self._at(player, number).profile().probabilities(player, key).values()))
            rows.append(own)
        return Profile.from_strategy(lowered, lowered.strategy(rows))

    def _profile_at(self, game: Any) -> Profile:
        if not (game.is_terminal() or game.is_chance()):
            player = game.player_to_act()
            number = self.blueprint.lowered.infoset_numbers[player].get(game.infoset_key(player))
            if number is not None:
                return self._at(player, number).profile()
        return self.blueprint.profile()

    def _at(self, player: int, number: int) -> Blueprint:
        """The strategy after everything was solved on the way to an information set."""
        current, key = self.blueprint, tuple[Any, ...]((player,))
        before: np.ndarray | None = None
        for infoset in self._way_to(player, number):
            inside = self._part(player, infoset)
            if before is not None and np.array_equal(inside, before):
                continue
            before, key = inside, (*key, inside.tobytes())
            if key not in self._solved:
                self._solved[key] = self._solve(current, player, infoset)
            current = self._solved[key]
        return current

    def _solve(self, blueprint: Blueprint, player: int, infoset: int) -> Blueprint:
        row = self._row(player, infoset)
        path = blueprint.whole.path_to(row)
        subgame = PublicSubgame(blueprint, row, path, self.closure, self.max_depth, self.leaf_values)
        if subgame.roots(player) is None:
            return blueprint  # the player's own strategy never gets there: whatever it does there costs nothing
        solved = subgame.solve(
            self.iterations, self.variant, safety=self.safety, players=(player,), updates=self.updates
        )
        return blueprint.compose(solved)

    def _way_to(self, player: int, number: int) -> list[int]:
        """The player's information sets on the way to one of them, which is the last."""
        treeplex = self.blueprint.lowered.tree.treeplexes[player]
        parent = np.asarray(treeplex.parent)
        indices, offsets = treeplex.sequence_indices()
        owner = np.full(treeplex.size + 1, -1, np.int64)
        owner[indices] = np.repeat(np.arange(len(parent)), np.diff(offsets))
        way = [number]
        while (above := int(owner[parent[way[-1]]])) >= 0:
            way.append(above)
        return way[::-1]

    def _row(self, player: int, infoset: int) -> int:
        nodes = self.blueprint.whole.nodes
        return int(np.flatnonzero((nodes.player == player) & (nodes.infoset == infoset))[0])

    def _part(self, player: int, infoset: int) -> np.ndarray:
        if (player, infoset) not in self._inside:
            row = self._row(player, infoset)
            self._inside[player, infoset] = self.blueprint.whole.close(row, self._classes)
        return self._inside[player, infoset]
