"""Play that is prescribed: node locking, and blending with a given policy.

Both say what is played at some information sets instead of, or besides, what
the solver's own strategy says. With sigma the player's own strategy of
iteration t, pi the policy given, and s(t) its share,

    played(I, a) = (1 - s(t)) sigma(I, a) + s(t) pi(I, a),

and at a locked information set `played = sigma = the lock`. Everything that
depends on what is played takes `played`: everyone's reach, the counterfactual
values of what lies above, the realization weights that are averaged. The
regrets at an information set compare its actions with sigma:

    r(I, a) = v(I, a) - sum_b sigma(I, b) v(I, b).

With a constant share that is CFR (Zinkevich et al. 2007) in the game in which,
before each decision of the player, chance takes it over with probability s and
draws from pi: there every decision comes once for each history of take-overs,
and all of them hold the same regrets up to a factor, which regret matching
does not see. With locks it is CFR in the game in which chance moves at the
locked information sets. The average is that of what was played, so it is an
equilibrium of that modified game that it approaches.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.arguments import integer
from jaxcfr.concrete import is_concrete
from jaxcfr.errors import OptionError, ProfileError, ProfileFileError, StrategyError
from jaxcfr.files import path_text, reason
from jaxcfr.profile import Profile, key_text, near_keys
from jaxcfr.regret.matching import over_actions
from jaxcfr.regret.schedules import SCHEDULES, Hyperparameter, at, hyperparameter
from jaxcfr.traversal.full_tree import ROUNDING, best_rule
from jaxcfr.tree.game_tree import GameTree, Strategy, require_tree
from jaxcfr.tree.treeplex import Treeplex

TOLERANCE = 1e-5
"""How far probabilities that are given by key may sum from 1; they are rescaled."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class Locks:
    """Information sets whose strategy is fixed: see `lock`.

    Attributes:
      masks: per player `[L_p]` bool, the entries of the locked information sets.
      strategy: per player `[L_p]`, what is played there; anything elsewhere.
    """

    masks: tuple[Array, ...]
    strategy: Strategy

    def __repr__(self) -> str:
        return f"Locks({len(self.masks)} players)"


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class Blend:
    """Policies that are mixed into what is played: see `blend`.

    Attributes:
      policies: per player `[L_p]`, or None for a player who plays its own strategy only.
      shares: per player a schedule, or None.
    """

    policies: tuple[Array | None, ...]
    shares: tuple[Hyperparameter | None, ...]

    def __repr__(self) -> str:
        return f"Blend({', '.join(map(repr, self.shares))})"


def held(locks: Locks | None, player: int, strategy: Array) -> Array:
    """A player's own strategy, `[L_p, ...]`, with the locks put in."""
    return strategy if locks is None else jnp.where(locks.masks[player], locks.strategy[player], strategy)


def played(locks: Locks | None, blend: Blend | None, player: int, strategy: Array, t: Array) -> Array:
    """What a player with this strategy plays in iteration t (a float array)."""
    policy = None if blend is None else blend.policies[player]
    if blend is None or policy is None:
        return strategy
    share = jnp.clip(jnp.asarray(at(blend.shares[player], t), strategy.dtype), 0, 1)
    return held(locks, player, (1 - share) * strategy + share * policy)


def regrets_against(treeplex: Treeplex, regrets: Array, strategy: Array) -> Array:
    """Regrets `[L, ...]` against what was played, turned into those against `strategy`."""

    def rule(regret: Array, uniform: Array, strategy: Array) -> Array:
        shifted = jnp.where(uniform > 0, regret - over_actions(jnp.add, strategy * regret), 0)
        noise = ROUNDING * np.finfo(regret.dtype).eps * over_actions(jnp.maximum, jnp.abs(regret))
        return jnp.where(jnp.abs(shifted) <= noise, 0, shifted)

    return treeplex.over_tables(rule, regrets, treeplex.uniform, strategy)


def best_fold(treeplex: Treeplex, direct: Array, locks: Locks | None, player: int) -> tuple[Array, Array]:
    """The best response to direct counterfactual values `[L + 1]` that keeps to the locks, `[L]`, and its value."""
    if locks is None:
        return treeplex.fold(direct, best_rule, treeplex.uniform)

    def rule(values: Array, uniform: Array, mask: Array, fixed: Array) -> tuple[Array, Array]:
        value, best = best_rule(values, uniform)
        fixed = jnp.where(mask, fixed, 0)
        return jnp.where(mask[0], (fixed * values).sum(0), value), jnp.where(mask, fixed, best)

    return treeplex.fold(direct, rule, treeplex.uniform, locks.masks[player], locks.strategy[player])


def best_response_weights(tree: GameTree, player: int, weights: tuple[Array, ...], locks: Locks | None) -> Array:
    """The realization weights `[L_p + 1]` of a best response of `player` that keeps to the locks, maximal everywhere.

    Args:
      tree: the game.
      player: who responds.
      weights: everyone's realization weights, `[L_q + 1]` each; the player's own are not read.
      locks: see `lock`, or None.
    """
    treeplex = tree.treeplexes[player]
    strategy, _ = best_fold(treeplex, tree.payoffs.product(player, weights), locks, player)
    return treeplex.realization_weights(strategy)


# Making them


def lock(
    game: Any,
    strategies: Profile | Mapping[int, Mapping[Hashable, Any]] | Strategy,
    infosets: Sequence[Any] | None = None,
) -> Locks:
    """Fixes a strategy at chosen information sets (*node locking*); for `solve(..., locked=...)` and `Trainer`.

    By key, for what `jaxcfr.lower` returned:

        lock(lowered, {0: {"K": {"pass": 0.3, "bet": 0.7}}})  # by action or label; actions left out have 0
        lock(lowered, {0: {"K": [0.3, 0.7]}, 1: {...}})       # in the order of the actions
        lock(lowered, profile)                                # everything that the profile has, if the game has it

    By arrays:

        lock(tree, strategy, [which, None])                   # which: [n_p] bool, by number of the information set

    Args:
      game: a `LoweredGame`, or a `GameTree` for arrays.
      strategies: what is played; see above.
      infosets: for arrays, per player the information sets that are locked, `[n_p]` bool; None for none of a player.

    Raises:
      OptionError: an argument is not what it should be.
      ProfileError: there is no such player, information set or action, or the probabilities are no distribution.
      StrategyError: the strategy does not fit the tree.
    """
    if infosets is not None:
        return _lock_arrays(require_tree(getattr(game, "tree", game)), strategies, infosets)
    if not hasattr(game, "infoset_keys"):
        raise OptionError(
            "to lock by key needs the LoweredGame that jaxcfr.lower returned; a tree takes a strategy and, as a third "
            "argument, per player which information sets are locked"
        )
    if isinstance(strategies, Profile):
        strategies = _of_profile(game, strategies)
    if not isinstance(strategies, Mapping):
        raise OptionError(
            "the strategies to lock have to be a Profile or a mapping from player to {key: probabilities}, not "
            f"{type(strategies).__name__}; arrays need a third argument, per player which information sets are locked"
        )
    tree: GameTree = game.tree
    masks = [np.zeros(treeplex.size, bool) for treeplex in tree.treeplexes]
    values = [np.zeros(treeplex.size) for treeplex in tree.treeplexes]
    for player, by_key in strategies.items():
        player = integer("the player to lock", player, 0, len(masks) - 1, error=ProfileError)
        if not isinstance(by_key, Mapping):
            raise OptionError(f"player {player}'s locks have to map keys to probabilities, not {by_key!r}")
        treeplex = tree.treeplexes[player]
        first, stride = np.asarray(treeplex.first), np.asarray(treeplex.stride)
        for key, given in by_key.items():
            number = _number(game, player, key)
            row = probabilities_of(game, player, number, given)
            index = first[number] + stride[number] * np.arange(len(row))
            masks[player][index] = True
            values[player][index] = row
    return Locks(tuple(jnp.asarray(mask) for mask in masks), tuple(jnp.asarray(value, tree.dtype) for value in values))


def read_locks(path: str | os.PathLike[str], lowered: Any) -> Locks:
    """Locks from a file: a profile, or JSON by player, information set and action or label.

        {"0": {"K": {"pass": 0.3, "bet": 0.7}}, "1": {...}}

    Information sets go by their keys where these are text, else by how `Profile.pretty` shows them.

    Raises:
      ProfileFileError: the file cannot be read, or is neither.
      ProfileError: see `lock`.
    """
    shown = path_text(path, ProfileFileError)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (OSError, ValueError) as error:
        raise ProfileFileError(f"{shown}: cannot be read: {reason(error)}") from error
    found = Profile.load(path) if data.startswith(b"PK") else _entries(shown, data, lowered)
    try:
        return lock(lowered, found)
    except (ProfileError, OptionError) as error:
        raise ProfileFileError(f"{shown}: {error}") from error


def _entries(shown: str, data: bytes, lowered: Any) -> dict[int, dict[Hashable, Any]]:
    """What the JSON of locks says, by player and key."""
    try:
        by_player = _object(json.loads(data, object_pairs_hook=_without_repetition))
        entries = _without_repetition([(int(player), _object(by_key)) for player, by_key in by_player.items()])
    except (ValueError, RecursionError) as error:
        raise ProfileFileError(
            f'{shown}: neither a profile nor JSON such as {{"0": {{"key": {{"action": 0.3}}}}}}: {error}'
        ) from error
    found: dict[int, dict[Hashable, Any]] = {}
    for player, by_key in entries.items():
        known: dict[str, list[Hashable]] = {}
        for key in lowered.infoset_keys[player] if 0 <= player < len(lowered.infoset_keys) else ():
            known.setdefault(key_text(key), []).append(key)
        found[player] = {}
        for text, row in by_key.items():
            key, *others = known.get(text, [text])
            if others:
                raise ProfileFileError(
                    f"{shown}: player {player} has {len(others) + 1} information sets that are shown as {text!r}: lock "
                    "them by a profile"
                )
            found[player][key] = row
    if not any(found.values()):
        raise ProfileFileError(f"{shown}: it locks no information set")
    return found


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{json.dumps(value)[:60]} is no object")
    return value


def _without_repetition(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """An object of JSON, of which Python would silently keep the last of two entries with the same name."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return found


def _lock_arrays(tree: GameTree, strategy: Any, infosets: Any) -> Locks:
    tree.check_strategy(strategy)
    if not isinstance(infosets, list | tuple) or len(infosets) != tree.num_players:
        raise OptionError(f"which information sets are locked has to be said for each of {tree.num_players} players")
    masks = []
    for player, (which, treeplex) in enumerate(zip(infosets, tree.treeplexes, strict=True)):
        chosen = np.zeros(treeplex.num_infosets, bool) if which is None else np.asarray(which)
        if chosen.dtype != np.bool_ or chosen.shape != (treeplex.num_infosets,):
            raise OptionError(
                f"player {player}'s locked information sets have to be {treeplex.num_infosets} booleans, not "
                f"{chosen.dtype} of shape {chosen.shape}"
            )
        indices, offsets = treeplex.sequence_indices()
        mask = np.zeros(treeplex.size, bool)
        mask[indices] = np.repeat(chosen, np.diff(offsets))
        masks.append(jnp.asarray(mask))
    return Locks(tuple(masks), tuple(jnp.asarray(values, tree.dtype) for values in strategy))


def _of_profile(lowered: Any, profile: Profile) -> dict[int, dict[Hashable, Any]]:
    found: dict[int, dict[Hashable, Any]] = {}
    if profile.num_players != len(lowered.infoset_keys):
        raise ProfileError(f"a profile of {profile.num_players} players cannot be locked in {lowered.name}")
    for player, keys in enumerate(profile.infoset_keys):
        known = lowered.infoset_numbers[player]
        found[player] = {key: profile.probabilities(player, key) for key in keys if key in known}
    if not any(found.values()):
        raise ProfileError(f"the profile of {profile.game_name} has no information set of {lowered.name} to lock")
    return found


def _number(lowered: Any, player: int, key: Hashable) -> int:
    try:
        number: int | None = lowered.infoset_numbers[player].get(key)
    except TypeError as error:
        raise ProfileError(f"the information-set key {key!r} is not hashable") from error
    if number is None:
        near = near_keys(player, key, lowered.infoset_keys)
        raise ProfileError(f"player {player} has no information set {key!r} in {lowered.name}{near}")
    return number


def probabilities_of(lowered: Any, player: int, number: int, given: Any) -> np.ndarray:
    """A row of probabilities `[actions]` from a sequence of numbers or a mapping from action or label.

    Raises:
      ProfileError: an action is unknown, or the numbers are no distribution; names player and information set.
    """
    actions = lowered.actions[player][number]
    labels = lowered.action_labels[player][number]
    where = f"player {player}'s information set {lowered.infoset_keys[player][number]!r}"
    if isinstance(given, Mapping):
        row = np.zeros(len(actions))
        given_already: set[int] = set()
        for action, value in given.items():
            place = [i for i, known in enumerate(actions) if known == action]
            place = place or [i for i, label in enumerate(labels) if label == action]
            if len(place) != 1:
                what = "is one of several" if place else "is none"
                raise ProfileError(f"{action!r} {what} of the actions {list(labels)} at {where}")
            if place[0] in given_already:
                raise ProfileError(f"the action {labels[place[0]]!r} at {where} is given twice")
            given_already.add(place[0])
            row[place[0]] = _probability(value, where)
    else:
        try:
            values = list(() if isinstance(given, str | bytes) else given)
        except TypeError as error:
            raise ProfileError(f"probabilities are needed at {where}, not {given!r}") from error
        if len(values) != len(actions):
            raise ProfileError(f"{len(actions)} probabilities are needed at {where}, for {list(labels)}, not {given!r}")
        row = np.array([_probability(value, where) for value in values])
    total = row.sum()
    if not abs(total - 1) <= TOLERANCE or row.min() < 0:
        raise ProfileError(f"the probabilities at {where} are no distribution: {row.tolist()}")
    # What sums to 1 but for rounding is left as it is.
    return row if abs(total - 1) <= len(row) * np.finfo(float).eps else row / total


def _probability(value: Any, where: str) -> float:
    try:
        if isinstance(value, bool | np.bool_ | str | bytes):
            raise TypeError("it is no number")
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProfileError(f"{value!r} at {where} is no probability") from error


Policy = Profile | Array | Strategy | Callable[[Hashable], Any]
"""What can be blended in: a profile, flat arrays, or a function from information-set key to probabilities."""


def policy_values(game: Any, player: int, policy: Any) -> Array:
    """A policy of one player as a flat array `[L_p]`.

    Args:
      game: the `LoweredGame`, or a `GameTree`, which only takes arrays.
      player: whose.
      policy: a `Profile`; a strategy (one array per player) or this player's array `[L_p]`; or a function that gives
        the probabilities at an information set, by action or in order, from its key.

    Raises:
      ProfileError, StrategyError: it does not fit the game.
      OptionError: it is none of these, or a tree without keys was given where they are needed.
    """
    tree: GameTree = require_tree(getattr(game, "tree", game))
    treeplex = tree.treeplexes[player]
    if isinstance(policy, tuple | list) and len(policy) == tree.num_players:
        policy = policy[player]
    if hasattr(policy, "shape"):
        others = [other.uniform for other in tree.treeplexes]
        tree.check_strategy((*others[:player], policy, *others[player + 1 :]))
        return jnp.asarray(policy, tree.dtype)
    if not isinstance(policy, Profile) and not callable(policy):
        raise OptionError(
            f"a policy is a Profile, an array of {treeplex.size} probabilities, or a function of the information-set "
            f"key, not {type(policy).__name__}"
        )
    if not hasattr(game, "infoset_keys"):
        raise OptionError("a policy by key needs the keys: give the game, or what jaxcfr.lower returned, not its tree")
    if isinstance(policy, Profile):
        return policy.to_strategy(game)[player]
    flat = np.zeros(treeplex.size)
    first, stride = np.asarray(treeplex.first), np.asarray(treeplex.stride)
    for number, key in enumerate(game.infoset_keys[player]):
        row = probabilities_of(game, player, number, policy(key))
        flat[first[number] + stride[number] * np.arange(len(row))] = row
    return jnp.asarray(flat, tree.dtype)


def blend(game: Any, policies: Mapping[int, tuple[Any, Hyperparameter]]) -> Blend:
    """Policies that are mixed into what players play; for `solve(..., blended=...)` and `Trainer`.

    At iteration t a player's action is drawn from its policy with probability s(t), else from its own strategy: a
    mixture where the whole tree is computed, drawn where it is sampled. See `jaxcfr.prescribed` for the formulas.

    While the share is positive this solves a *modified* game: the exploitability in the original one is a signal, and
    not a proof of anything.

    Args:
      game: a `LoweredGame`, or a `GameTree` for arrays.
      policies: from player to (policy, share): see `policy_values`; a share is a number or a schedule of t from 0 to 1
        (`constant`, `geometric`, `linear`, ... ).

    Raises:
      OptionError: there is no such player, or a share is no number or schedule from 0 to 1.
      ProfileError, StrategyError: a policy does not fit the game.
    """
    tree: GameTree = require_tree(getattr(game, "tree", game))
    values: list[Array | None] = [None] * tree.num_players
    shares: list[Hyperparameter | None] = [None] * tree.num_players
    for player, (policy, share) in policies.items():
        player = integer("player", player, 0, len(values) - 1)
        values[player] = policy_values(game, player, policy)
        shares[player] = _share(share)
    return Blend(tuple(values), tuple(shares))


def _share(share: Any) -> Hyperparameter:
    share = hyperparameter("the schedule of a blend", share)
    for t in (1.0, 2.0, 10.0, 1e3, 1e6) if is_concrete(share) else ():
        value = np.asarray(share(jnp.asarray(t)) if isinstance(share, SCHEDULES) else share)
        if value.ndim or not 0 <= float(value) <= 1:
            raise OptionError(f"the share of a blend has to lie between 0 and 1, not {value} at t = {t:g}")
    return share


def check_prescribed(tree: GameTree, locks: Any, blended: Any) -> None:
    """Raises `OptionError` unless both are None or what `lock` and `blend` return for a tree of this layout."""
    for name, value, kind in (("lock", locks, Locks), ("blend", blended, Blend)):
        if value is not None and not isinstance(value, kind):
            raise OptionError(f"{name}ed has to be what jaxcfr.{name} returns, not {type(value).__name__}")
    arrays = () if locks is None else (*locks.masks, *locks.strategy)
    sizes = [jnp.shape(array) for array in arrays]
    expected = [treeplex.uniform.shape for treeplex in tree.treeplexes]
    if locks is not None and sizes != 2 * expected:
        raise StrategyError("the locks are of another tree")
    if blended is not None:
        shapes = [None if values is None else jnp.shape(values) for values in blended.policies]
        if len(shapes) != len(expected) or any(a not in (None, b) for a, b in zip(shapes, expected, strict=True)):
            raise StrategyError("the policies that are blended in are of another tree")
        if [share is None for share in blended.shares] != [shape is None for shape in shapes]:
            raise OptionError("every policy that is blended in needs a share, and every share a policy")
