"""OpenSpiel's games in, strategies out as OpenSpiel's policies, and policies back.

OpenSpiel (Lanctot et al. 2019, "OpenSpiel: A framework for reinforcement learning in games") is an optional package;
it is imported by the functions that need it.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import os
from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from jaxcfr.errors import (
    ChanceNotEnumerableError,
    GameError,
    GameLookupError,
    JaxCFRError,
    ProfileError,
    missing_package,
    one_line,
)
from jaxcfr.games import checks
from jaxcfr.games.base import Action, Game, format_path
from jaxcfr.games.options import illegal_action
from jaxcfr.profile import TOLERANCE, Profile
from jaxcfr.tree.limits import BYTES_PER_HISTORY, MAX_NODES, PROBE_AT, refuse_far_too_large, too_large
from jaxcfr.tree.lower import lower
from jaxcfr.tree.nodes import CHANCE, TERMINAL, NodeTable, Walked

__all__ = ["OpenSpielGame", "from_openspiel", "from_openspiel_policy", "load_openspiel", "to_openspiel"]

PREFIX = "openspiel:"
"""How the names of OpenSpiel's games begin."""

MAX_DEPTH = 10_000
"""Longer plays are refused: a state of OpenSpiel holds all its moves, so that they take memory by the square."""

LOOK_EVERY = 1000
"""Histories between two looks at the length of the play."""

_SHOWN_ACTIONS = 20
_CHANCE, _TERMINAL = -1, -4  # what `State.current_player()` returns there


class OpenSpielGame(Game):
    """A history of an OpenSpiel game (a `jaxcfr.Game`), made by `from_openspiel`.

    Actions are OpenSpiel's integers, and `infoset_key` is the information-state string. Payoffs are `returns()`, which
    has the rewards along the path.

    Attributes:
      game: the `pyspiel.Game`, turn-based.
      state: the `pyspiel.State`; not to be changed.
    """

    __slots__ = ("game", "num_players", "state")

    def __init__(self, game: Any, state: Any) -> None:
        self.game = game
        self.state = state
        self.num_players: int = game.num_players()

    @property
    def name(self) -> str:
        """What `load_game` calls it: `openspiel:` and OpenSpiel's own description."""
        return PREFIX + str(self.game.to_string())

    def __repr__(self) -> str:
        """The name, and the actions up to here."""
        return f"<{self.name}: {_path(self.game, self.state)}>"

    def is_terminal(self) -> bool:
        """True where the play has ended."""
        return self.state.current_player() == _TERMINAL

    def is_chance(self) -> bool:
        """True where chance moves next."""
        return self.state.current_player() == _CHANCE

    def player_to_act(self) -> int:
        """The player who decides here."""
        player: int = self.state.current_player()
        if player < 0:
            raise GameError(f"{self!r}: no player acts here")
        return player

    def chance_outcomes(self) -> Sequence[tuple[int, float]]:
        """OpenSpiel's outcomes with their probabilities."""
        if not self.is_chance():
            raise GameError(f"{self!r}: chance does not move here")
        return tuple(self.state.chance_outcomes())

    def legal_actions(self) -> Sequence[int]:
        """OpenSpiel's legal actions, in ascending order; none where no player acts."""
        return tuple(self.state.legal_actions()) if self.state.current_player() >= 0 else ()

    def step(self, action: Action) -> OpenSpielGame:
        """The history after a legal action, or an outcome of chance."""
        if action not in self.state.legal_actions():  # of chance: its outcomes
            raise illegal_action(self, action)
        return OpenSpielGame(self.game, self.state.child(int(action)))  # type: ignore[call-overload]

    def terminal_returns(self) -> Sequence[float]:
        """`returns()`: the sum of all rewards, per player."""
        if not self.is_terminal():
            raise GameError(f"{self!r}: the play has not ended")
        return tuple(self.state.returns())

    def infoset_key(self, player: int) -> str:
        """The information-state string of any player."""
        try:
            return str(self.state.information_state_string(player))
        except Exception as error:
            raise _failure(error, self.game, self.state) from error

    def action_label(self, action: Action) -> str:
        """OpenSpiel's own words for an action."""
        return str(self.state.action_to_string(self.state.current_player(), action))

    def walk_histories(self, max_nodes: int) -> Walked:
        """Walks everything below this history; what `jaxcfr.lower` uses instead of the methods above.

        Raises:
          GameTooLargeError: more than `max_nodes` histories.
          GameError: a rule is broken.
        """
        walk = _Walk(self, max_nodes)
        walk.run()
        return walk.walked()


def from_openspiel(game: Any) -> OpenSpielGame:
    """The root of an OpenSpiel game, as a `jaxcfr.Game`.

    A game of simultaneous moves becomes `pyspiel.convert_to_turn_based` of it: the players move in order, and none sees
    the moves of the others before all are made.

    Args:
      game: a `pyspiel.Game`.

    Raises:
      ChanceNotEnumerableError: chance can only be sampled.
      GameError: a mean-field game, or one without information-state strings; or no game of OpenSpiel.
    """
    spiel = _pyspiel("from_openspiel")
    if not isinstance(game, spiel.Game):
        hint = f"; jaxcfr.load_game({PREFIX + game!r}) takes a name" if isinstance(game, str) else ""
        raise GameError(f"from_openspiel needs a pyspiel.Game, not {type(game).__name__}{hint}")
    kind = spiel.GameType
    name = PREFIX + game.to_string()
    if game.get_type().chance_mode == kind.ChanceMode.SAMPLED_STOCHASTIC:
        raise ChanceNotEnumerableError(
            f"{name}: chance can only be sampled in this game of OpenSpiel (SAMPLED_STOCHASTIC), and every outcome "
            "with its probability is needed"
        )
    if game.get_type().dynamics == kind.Dynamics.MEAN_FIELD:
        raise GameError(f"{name} is a mean-field game, which has no tree of single players' moves")
    if not game.get_type().provides_information_state_string:
        raise GameError(
            f"{name} has no information-state strings (provides_information_state_string is False), so what its "
            "players know is not told"
        )
    try:
        if game.get_type().dynamics == kind.Dynamics.SIMULTANEOUS:
            game = spiel.convert_to_turn_based(game)
        return OpenSpielGame(game, game.new_initial_state())
    except Exception as error:
        raise _failure(error, game) from error


def load_openspiel(spec: str) -> OpenSpielGame:
    """The root of the game of OpenSpiel that `spec` names, in OpenSpiel's own words: `leduc_poker(players=3)`.

    Raises:
      MissingPackageError: OpenSpiel is not installed.
      GameLookupError: OpenSpiel has no such game, or refuses the parameters; has what it says.
      GameError, ChanceNotEnumerableError: see `from_openspiel`.
    """
    spiel = _pyspiel(PREFIX + spec)
    spec = spec.strip()
    name = spec.partition("(")[0].strip()
    if name.startswith("python_"):
        import open_spiel.python.games  # noqa: F401, registers them
    known = spiel.registered_names()
    if name not in known:
        near = difflib.get_close_matches(name.lower()[:200], known, n=3, cutoff=0.6)
        if len(name) >= 3:
            near += [other for other in known if name.lower() in other and other not in near][:3]
        hint = f"; did you mean {' or '.join(near)}?" if near else "; pyspiel.registered_names() lists them"
        raise GameLookupError(f"OpenSpiel has no game named {name[:60]!r}{hint}")
    twice = _repeated_parameter(spec)
    if twice is not None:
        raise GameLookupError(f"{PREFIX}{spec}: parameter {twice} is given twice")
    try:
        with _quiet():
            game = spiel.load_game(spec)
    except (spiel.SpielError, RuntimeError, ValueError, TypeError) as error:
        raise GameLookupError(f"{PREFIX}{spec}: OpenSpiel says: {one_line(error)}") from error
    return from_openspiel(game)


def to_openspiel(profile: Profile, game: Any) -> Any:
    """A profile of a game of OpenSpiel as `open_spiel.python.policy.TabularPolicy`.

    Every information state of the game has to be in the profile, with the same actions. Probabilities that a float32
    solve left off by its rounding are rescaled to sum to 1, as everywhere where a profile is played.

    Args:
      profile: of a game with the same information-state strings, `load_game("openspiel:...")`.
      game: the `pyspiel.Game`, or a history of it in jaxcfr. A game of simultaneous moves stands for its turn-based
        form, which is the game of the policy.

    Raises:
      ProfileError: the profile has another number of players, lacks an information state, or has other actions
        there; or two players share an information-state string, so that a `TabularPolicy` cannot tell them apart.
      GameTooLargeError: random plays show that the game has many times more than 10 million histories.
      MissingPackageError: OpenSpiel is not installed.
      GameError, ChanceNotEnumerableError: see `from_openspiel`.
    """
    if not isinstance(profile, Profile):
        made = "Profile.from_strategy makes one"
        raise ProfileError(f"to_openspiel needs a Profile, not {type(profile).__name__}; {made}")
    game = _turn_based(game, "to_openspiel").game
    if game.num_players() != profile.num_players:
        raise ProfileError(
            f"this profile of {profile.game_name} has strategies of {profile.num_players} players, but "
            f"{PREFIX}{game.to_string()} has {game.num_players()}"
        )
    from open_spiel.python.policy import TabularPolicy

    refuse_far_too_large(OpenSpielGame(game, game.new_initial_state()), MAX_NODES)  # TabularPolicy walks all of it
    policy = TabularPolicy(game)
    policy.action_probability_array[:] = 0
    for row, state in zip(policy.action_probability_array, policy.states, strict=True):
        row[state.legal_actions()] = profile.policy_strict(OpenSpielGame(game, state))
    # OpenSpiel merges equal strings of different players; the profile has them apart.
    owners = {key: player for player, keys in enumerate(policy.states_per_player) for key in keys}
    for player, keys in enumerate(profile.infoset_keys):
        for key in keys:
            if owners.get(key, player) != player:
                raise ProfileError(
                    f"players {owners[key]} and {player} share the information-state string {key!r}, and a "
                    "TabularPolicy has one entry for both"
                )
    return policy


def from_openspiel_policy(policy: Any, game: Any) -> Profile:
    """A policy of OpenSpiel as a `jaxcfr.Profile`, for every information set of the game.

    The policy is asked at one history of each information set; that it plays the same at all of them is up to it.
    `from_openspiel_policy(to_openspiel(profile, game), game)` has the probabilities that `profile` plays, bit for bit.

    Args:
      policy: of OpenSpiel, in Python or C++, or any object with `action_probabilities(state, player)`, or a function
        from state to dictionary. Actions that are left out have probability 0.
      game: the `pyspiel.Game`, or a history of it in jaxcfr. A policy of a game of simultaneous moves is asked at the
        states of that game.

    Raises:
      ProfileError: the policy has nothing for an information state, or no distribution over the legal actions.
      MissingPackageError: OpenSpiel is not installed.
      GameError, ...: see `from_openspiel` and `jaxcfr.lower`.
    """
    root = _turn_based(game, "from_openspiel_policy")
    lowered = lower(root)
    ask = _asker(policy)
    rows: list[dict[Hashable, list[float]]] = [{} for _ in range(root.num_players)]
    for state in _first_states(root, sum(lowered.tree.num_infosets)):
        player = state.current_player()
        key = state.information_state_string(player)
        rows[player][key] = _distribution(ask, state, player, key)
    return Profile.from_probabilities(
        lowered, [[own[key] for key in keys] for own, keys in zip(rows, lowered.infoset_keys, strict=True)]
    )


def _turn_based(game: Any, what: str) -> OpenSpielGame:
    """The root of the game that a user names by a `pyspiel.Game` or a history."""
    _pyspiel(what)
    if isinstance(game, OpenSpielGame):
        return OpenSpielGame(game.game, game.game.new_initial_state())
    return from_openspiel(game)


def _asker(policy: Any) -> Callable[[Any, int], Any]:
    """How a policy is asked at a state of the turn-based game."""
    import pyspiel

    dynamics = getattr(getattr(policy, "game", None), "get_type", lambda: None)()
    simultaneous = dynamics is not None and dynamics.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS

    def ask(state: Any, player: int) -> Any:
        if simultaneous and hasattr(state, "simultaneous_game_state"):
            return policy.action_probabilities(state.simultaneous_game_state(), player)
        if isinstance(policy, pyspiel.Policy):
            return policy.action_probabilities(state)
        if hasattr(policy, "action_probabilities"):
            return policy.action_probabilities(state, player)
        return policy(state)

    return ask


def _distribution(ask: Callable[[Any, int], Any], state: Any, player: int, key: str) -> list[float]:
    """What a policy plays at a state, in the order of the legal actions."""

    def error(problem: str, cause: Exception | None = None) -> ProfileError:
        found = ProfileError(f"player {player}, information state {key!r}: the policy {problem}")
        found.__cause__ = cause
        return found

    try:
        given = {int(action): float(p) for action, p in dict(ask(state, player)).items()}
    except Exception as cause:  # policies are anybody's
        raise error(f"raised {type(cause).__name__}: {cause}", cause) from cause
    legal = state.legal_actions()
    illegal = [action for action, p in given.items() if p and action not in legal]
    if illegal:
        raise error(f"plays the illegal action {illegal[0]}")
    row = [given.get(action, 0.0) for action in legal]
    if not (min(row) >= 0 and abs(math.fsum(row) - 1) <= TOLERANCE):
        raise error(f"has no distribution: {given}")
    return row


def _first_states(root: OpenSpielGame, count: int) -> Iterator[Any]:
    """A state of each of the `count` information sets."""
    met: set[tuple[int, str]] = set()
    states = [root.state]
    while states and len(met) < count:
        state = states.pop()
        player = state.current_player()
        if player == _TERMINAL:
            continue
        if player >= 0:
            key = player, state.information_state_string(player)
            if key not in met:
                met.add(key)
                yield state
        states += [state.child(action) for action in reversed(state.legal_actions())]


def _pyspiel(what: str) -> Any:
    try:
        import pyspiel
    except ImportError as error:
        raise missing_package(what, "OpenSpiel", "openspiel") from error
    return pyspiel


def _repeated_parameter(spec: str) -> str | None:
    """A parameter that stands twice in the outermost brackets; OpenSpiel would take the last one silently."""
    depth, word, names = 0, "", []
    for character in spec.partition("(")[2]:
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == ",":
            word = ""
        elif depth == 0 and character == "=":
            names.append(word.strip())
        else:
            word += character
    return next((name for name in names if names.count(name) > 1), None)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps OpenSpiel from printing an error that is told by an exception as well."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        kept = os.dup(2)
    except OSError:  # closed
        kept = -1
    try:
        if kept >= 0:
            os.dup2(null, 2)
        yield
    finally:
        if kept >= 0:
            os.dup2(kept, 2)
            os.close(kept)
        os.close(null)


def _failure(error: Exception, game: Any, state: Any = None) -> GameError:
    """What a game of OpenSpiel raises, with its name and the path."""
    where = "" if state is None else f" at {_path(game, state)}:"
    said = "OpenSpiel says" if isinstance(error, RuntimeError) else type(error).__name__
    return GameError(f"{PREFIX}{game.to_string()}:{where} {said}: {one_line(error)}")


def _path(game: Any, state: Any) -> str:
    """The actions up to a state, in OpenSpiel's words; of many, the last ones."""
    node, path = game.new_initial_state(), []
    for action in state.history()[len(node.history()) :]:
        path.append(node.action_to_string(node.current_player(), action))
        node.apply_action(action)
    before = len(path) - _SHOWN_ACTIONS
    return format_path(path) if before <= 0 else f"({before} moves before) > {format_path(path[before:])}"


class _Walk:
    """One walk over the states below a root, depth first; collects the columns of a node table.

    A row is made for a history when its parent is expanded, and only then is it looked at: so terminal states live for
    a moment, states wait only along one path, and the last child of a state is the state itself, which saves a copy.
    """

    def __init__(self, root: OpenSpielGame, max_nodes: int) -> None:
        self.root = root
        self.max_nodes = max_nodes
        players = range(root.num_players)
        self.player = array("b")  # by row, in OpenSpiel's numbers
        self.payoffs = array("d")  # of terminal rows
        self.expanded = array("q")  # rows, in the order in which their children were made
        self.num_children = array("i")  # of those
        self.infoset = array("i")  # of those, -1 where chance moves
        self.chance = array("d")  # of the edges out of chance histories
        self.numbers: list[dict[str, int]] = [{} for _ in players]
        self.actions: list[list[list[int]]] = [[] for _ in players]
        self.labels: list[list[tuple[str, ...]]] = [[] for _ in players]

    def run(self) -> None:
        """Fills the columns."""
        player, infoset, all_actions, numbers = self.player, self.infoset, self.actions, self.numbers
        add_player, add_payoffs = player.append, self.payoffs.extend
        look_at, probed = LOOK_EVERY, False
        state = self.root.state.clone()
        add_player(state.current_player())
        total = 1
        states, rows = [state], [0]  # those still to be expanded
        if player[0] == _TERMINAL:
            add_payoffs(state.returns())
            return
        try:
            while states:
                state, row = states.pop(), rows.pop()
                acting = player[row]
                if acting >= 0:
                    actions = state.legal_actions()
                    known = all_actions[acting]
                    number = numbers[acting].setdefault(state.information_state_string(acting), len(known))
                    if number == len(known):
                        self._add_infoset(state, acting, actions)
                    elif actions != known[number]:
                        raise self._other_actions(acting, number, actions)
                    infoset.append(number)
                else:
                    actions = self._deal(state, acting)
                    infoset.append(-1)
                self.expanded.append(row)
                self.num_children.append(len(actions))
                below = [*map(state.child, actions[:-1])]
                state.apply_action(actions[-1])
                below.append(state)
                waiting, waiting_rows = [], []
                for state in below:
                    acting = state.current_player()
                    add_player(acting)
                    if acting == _TERMINAL:
                        add_payoffs(state.returns())
                    else:
                        waiting.append(state)
                        waiting_rows.append(total)
                    total += 1
                if waiting:
                    states += reversed(waiting)
                    rows += reversed(waiting_rows)
                if total > look_at:
                    if total > PROBE_AT and not probed:
                        probed = True
                        refuse_far_too_large(self.root, self.max_nodes)
                    look_at = total + LOOK_EVERY
                    if state.move_number() > MAX_DEPTH:
                        raise checks.BrokenRuleError(f"the play goes on after {MAX_DEPTH:,} moves; it may never end")
                if total > self.max_nodes:
                    raise too_large(self.root.name, self.max_nodes, total, len(states), BYTES_PER_HISTORY)
        except checks.BrokenRuleError as error:
            raise GameError(f"{self.root.name}: at {_path(self.root.game, state)}: {error}") from error.__cause__
        except JaxCFRError:
            raise
        except Exception as error:
            raise _failure(error, self.root.game, state) from error

    def _add_infoset(self, state: Any, acting: int, actions: list[int]) -> None:
        """Makes the next information set of a player, met at `state` first."""
        checks.moves("legal_actions()", tuple(actions))
        self.actions[acting].append(actions)
        self.labels[acting].append(tuple([state.action_to_string(acting, action) for action in actions]))

    def _other_actions(self, acting: int, number: int, actions: list[int]) -> checks.BrokenRuleError:
        return checks.BrokenRuleError(
            f"information set {list(self.numbers[acting])[number]!r} of player {acting} has the legal actions "
            f"{actions} here, but {self.actions[acting][number]} in another of its histories"
        )

    def _deal(self, state: Any, acting: int) -> list[int]:
        """The outcomes of chance; notes their probabilities."""
        if acting != _CHANCE:
            raise checks.BrokenRuleError(f"current_player() is {acting}, neither a player nor chance")
        outcomes, given = checks.chance(state.chance_outcomes())
        self.chance.extend(checks.probabilities(outcomes, given))
        return list(outcomes)

    def walked(self) -> Walked:
        """The game, after `run`: breadth first, information sets numbered as they are met in that order."""
        player = np.array(self.player, np.int8)
        player[player == _TERMINAL] = TERMINAL
        total, num_players = len(player), self.root.num_players
        expanded = np.array(self.expanded, np.int64)
        counts = np.zeros(total, np.int64)
        counts[expanded] = self.num_children
        first = np.zeros(total, np.int64)
        first[expanded] = 1 + np.cumsum(counts[expanded]) - counts[expanded]
        order = _breadth_first(first, counts)

        parent = np.full(total, -1, np.int32)
        place = np.empty(total, np.int32)
        place[order] = np.arange(total, dtype=np.int32)
        parent[place[1:]] = np.repeat(place[expanded], counts[expanded])
        chance = np.ones(total)
        edges = np.flatnonzero(np.repeat(player[expanded], counts[expanded]) == CHANCE) + 1
        chance[place[edges]] = self.chance
        payoffs = np.array(self.payoffs, np.float64).reshape(-1, num_players)
        leaf = np.cumsum(player == TERMINAL) - 1
        infoset = np.full(total, -1, np.int32)
        infoset[place[expanded]] = self.infoset
        player = player[order]
        nodes_payoffs = payoffs[leaf[order[player == TERMINAL]]]

        keys, actions, labels = [], [], []
        for acting in range(num_players):
            rows = np.flatnonzero(player == acting)
            met, number = _by_first_meeting(infoset[rows], len(self.actions[acting]))
            infoset[rows] = number
            own = list(self.numbers[acting])
            keys.append(tuple([own[i] for i in met]))
            actions.append(tuple([tuple(self.actions[acting][i]) for i in met]))
            labels.append(tuple([self.labels[acting][i] for i in met]))
        return Walked(
            nodes=NodeTable(
                num_players=num_players,
                player=player,
                infoset=infoset,
                parent=parent,
                chance=chance,
                payoffs=nodes_payoffs,
                num_actions=tuple(np.array([*map(len, own)], np.int32) for own in actions),
            ),
            infoset_keys=tuple(keys),
            actions=tuple(actions),
            action_labels=tuple(labels),
        )


def _breadth_first(first: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The rows of a tree in breadth-first order, from each row's first child and number of children."""
    level = np.zeros(1, np.int64)
    levels = []
    while len(level):
        levels.append(level)
        number = counts[level]
        before = np.cumsum(number) - number
        level = np.repeat(first[level] - before, number) + np.arange(number.sum())
    return np.concatenate(levels)


def _by_first_meeting(numbers: np.ndarray, count: int) -> tuple[list[int], np.ndarray]:
    """Renumbers 0 to count - 1 in the order of first occurrence: the old numbers in that order, and the new ones."""
    first = np.full(count, len(numbers), np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    met = np.argsort(first, kind="stable")
    new = np.empty(count, np.int32)
    new[met] = np.arange(count, dtype=np.int32)
    renumbered: np.ndarray = new[numbers]
    return met.tolist(), renumbered
