"""`DeepTrainer`: a run of a deep algorithm that is kept, watched, interrupted and saved; no mathematics of its own."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr import checkpoint
from jaxcfr.arguments import integer, real
from jaxcfr.array_play import sample_play, uniform_policy
from jaxcfr.bounds import ExploitabilityBound, exploitability_bound
from jaxcfr.deep import algorithms, average
from jaxcfr.deep.algorithms import DeepAlgorithm, DeepCFR, DeepState, PlayerState
from jaxcfr.deep.approximators import check_approximator
from jaxcfr.deep.learning import check_optimiser
from jaxcfr.deep.policies import NetworkPolicy, PastPolicy
from jaxcfr.deep.rules import ArrayRules, TreeRules, array_rules, tree_rules
from jaxcfr.errors import CheckpointError, OptionError, SolverError
from jaxcfr.files import require_writable
from jaxcfr.games.array_game import is_array_game
from jaxcfr.games.base import game_name
from jaxcfr.games.registry import load_game
from jaxcfr.interrupts import Interrupts
from jaxcfr.play import expected_payoffs_sampled
from jaxcfr.profile import Profile
from jaxcfr.progress import progress_bar
from jaxcfr.regret.average import init_sum
from jaxcfr.solve import strategy_of_sums
from jaxcfr.trainer import check_cadence, evaluate, file_path
from jaxcfr.traversal.randomness import as_key
from jaxcfr.tree.game_tree import GameTree, Strategy
from jaxcfr.tree.lower import LoweredGame, lower
from jaxcfr.workers import each as each_worker
from jaxcfr.workers import gathered, placed, rounds_of

if TYPE_CHECKING:
    from os import PathLike

PLAYS = 10_000
"""Plays against the uniform strategy in an evaluation without a tree."""

MEASURED_PLAYS = 1_000
MAX_DEPTH = 256
"""Without being told, walks on arrays keep at most so many moves."""


class DeepTrainer:
    """A run of Deep CFR or one of its kin: train, look, train on, save.

    Attributes:
      algorithm, seed, workers: as given.
      lowered: the game's `LoweredGame`, or None where it was not lowered.
      history: the evaluations, as dictionaries: "iteration", "seconds" (of training so far), "visited" (histories),
        "losses" (per player, of the last training), and with a tree what `Trainer.history` has ("nash_conv", ...),
        without one "versus_uniform" (the mean payoff against the uniform strategy, by seat) and its "standard_error".
    """

    def __init__(
        self,
        game: Any,
        algorithm: DeepAlgorithm | None = None,
        *,
        seed: Any = 0,
        workers: int = 1,
        features: Any = None,
        history_features: Any = "path",
        max_depth: int | None = None,
        tree: LoweredGame | None = None,
    ) -> None:
        """Nothing is trained yet.

        Args:
          game: a name for `load_game`, a game, or a `LoweredGame`: it is lowered, networks are asked once per iteration
            about all information sets, and evaluations are exact. Or an `ArrayGame`: it is never lowered, however
            small it is, and networks are asked at every history.
          algorithm: the settings, `DeepCFR()` by default.
          seed: from 0 to `2**32 - 1`, or a typed key of `jax.random.key`.
          workers: W independent runs side by side, laid over all devices, however many; the strategy is the average of
            theirs.
          features: of a lowered game, what networks take of an information set: a function of (key, player), one array
            `[n_p, F]` per player, or "index", its number, for `tabular`. None takes what the array game says
            (`infoset` in zeros and ones), or else the parts of the key. Array games bring their own.
          history_features: of a lowered game, what networks take that see all (`DREAM`, `ESCHER`, ...): "path" (every
            move, in zeros and ones), "index", or an array `[N, H]`.
          max_depth: of an array game, moves of a play that are learnt from; what comes after them is played out. None
            measures random plays, and takes twice the longest.
          tree: of an array game that is small enough, `jaxcfr.lower(game)`: evaluations are exact, on it, and there are
            `strategy` and `profile`. Training does not look at it.

        Raises:
          OptionError: an argument makes no sense.
          GameTooLargeError: the game is too large to be lowered; give its `array_game()`.
        """
        self.algorithm = DeepCFR() if algorithm is None else algorithm
        if not isinstance(self.algorithm, DeepAlgorithm):
            name = getattr(algorithm, "__name__", None)
            hint = f"; call it: {name}()" if name else ""
            raise OptionError(f"algorithm has to be one such as jaxcfr.deep.DeepCFR(), not {algorithm!r}{hint}")
        self._key = as_key(seed)
        self.seed = seed
        self.workers = integer("workers", workers)
        self.lowered: LoweredGame | None = None
        self.rules: TreeRules | ArrayRules
        self._asked: TreeRules | None = None  # where strategies are asked for
        game = load_game(game) if isinstance(game, str) else game
        self.name = game.name if isinstance(game, LoweredGame) else game_name(game)
        if _on_arrays(game):
            if features is not None:
                raise OptionError("an array game brings its own features: leave features out, or lower the game")
            self.rules = array_rules(game, _depth(game, max_depth, self._key))
            if tree is not None:
                if not isinstance(tree, LoweredGame) or tree.infosets is None:
                    raise OptionError(f"tree has to be jaxcfr.lower({self.name}'s array game), not {tree!r:.80}")
                self.lowered = tree
                self._asked = tree_rules(tree, None, game, numbered=True)
        else:
            if tree is not None:
                raise OptionError("tree is for array games: this one is lowered")
            arrays = None
            if isinstance(game, LoweredGame):
                self.lowered = game
            elif not isinstance(game, GameTree):
                arrays = game.array_game() if hasattr(game, "array_game") else None
                self.lowered = lower(game if arrays is None else arrays)
            if max_depth is not None:
                raise OptionError("max_depth is for array games: this one is lowered, and walks go to its end")
            if self.algorithm.values and history_features is None:
                raise OptionError(
                    f"{type(self.algorithm).__name__} has a network that sees whole histories: history_features has to "
                    'be "path", "index" or an array'
                )
            seen = history_features if self.algorithm.values else None
            self.rules = self._asked = tree_rules(
                game if self.lowered is None else self.lowered, features, arrays, seen
            )
        _check_networks(self.rules, self.algorithm)
        _check_memory(self.rules, self.algorithm, self.workers)
        self._rounds: tuple[DeepState, ...] = ()
        """Of one worker its state; of several, see `jaxcfr.workers.rounds_of`."""
        self._shared = (placed(self.rules, workers), self.algorithm)
        self.history: list[dict[str, Any]] = []
        self._seconds = 0.0

    def __repr__(self) -> str:
        return f"DeepTrainer({self.name!r}, {type(self.algorithm).__name__}, {self.iterations_done:,} iterations" + (
            f", {self.workers} workers)" if self.workers > 1 else ")"
        )

    # Training

    @property
    def state(self) -> DeepState:
        """Of the run: a pytree; with several workers every leaf has an axis for them in front."""
        self._begin()
        return self._rounds[0] if self.workers == 1 else gathered(self._rounds, self.workers)

    def _begin(self) -> None:
        if self._rounds:
            return
        if self.workers == 1:
            self._rounds = (_init(self.rules, self.algorithm, self._key),)
        else:
            keys = jax.vmap(functools.partial(jax.random.fold_in, self._key))(np.arange(self.workers))
            self._rounds = _init_each(rounds_of(keys, self.workers), *self._shared)

    def _of_each(self, part: Callable[[DeepState], Any], rounds: tuple[DeepState, ...] = ()) -> Any:
        """What `part` takes of every worker's state, on the host, with an axis for them in front."""
        self._begin()
        parts = tuple(map(part, rounds or self._rounds))
        if self.workers == 1:
            return jax.tree.map(lambda leaf: np.asarray(leaf)[None], parts[0])
        return jax.tree.map(np.asarray, gathered(parts, self.workers))

    @property
    def iterations_done(self) -> int:
        """t."""
        return int(self._of_each(lambda state: state.t)[0]) if self._rounds else 0

    def train(
        self,
        iterations: int,
        *,
        eval_every: int | None = None,
        target: float | None = None,
        progress: bool = False,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: int | None = None,
    ) -> DeepTrainer:
        """So many iterations more; `train(a)` and `train(b)` give the bits of `train(a + b)`.

        Ctrl-C ends it after the iteration that is being done, with everything kept; then `KeyboardInterrupt` is raised.

        Args:
          iterations: N.
          eval_every: evaluate whenever `iterations_done` is a multiple of this, and at the end, into `history`.
          target: stop at the first evaluation with a NashConv of at most this; needs a tree.
          progress: show a progress bar.
          checkpoint: a file that is written at the end, and every `checkpoint_every` iterations; see `save`.
          checkpoint_every: write it whenever `iterations_done` is a multiple of this.

        Returns:
          The trainer itself.

        Raises:
          OptionError: an argument makes no sense.
          CheckpointError: the checkpoint cannot be written.
          SolverError: numbers came out infinite or not as numbers; says what was kept.
        """
        integer("iterations", iterations, 0)
        check_cadence(eval_every, checkpoint, checkpoint_every)
        if target is not None:
            if self._asked is None:
                raise OptionError("target needs a tree: NashConv is not known without one")
            target = real("target", target, 0)
            eval_every = 10 if eval_every is None else eval_every
        if checkpoint is not None:
            require_writable(file_path(checkpoint), CheckpointError)
        end = self.iterations_done + iterations
        with Interrupts(signal.SIGINT) as interrupts, progress_bar(progress) as bar:
            bar.start("training", end, self.iterations_done)
            reached = False
            while self.iterations_done < end and not reached and interrupts.received is None:
                begun = time.perf_counter()
                self._step()
                seconds = time.perf_counter() - begun
                self._seconds += seconds
                done = self.iterations_done
                bar.update(done, speed=1 / max(seconds, 1e-9))
                last = done >= end or interrupts.received is not None
                if eval_every and (done % eval_every == 0 or last) and interrupts.received is None:
                    record = self.evaluate()
                    if "nash_conv" in record:
                        bar.update(done, f"NashConv {record['nash_conv']:.3g}")
                        reached = target is not None and record["nash_conv"] <= target
                last = last or reached
                if checkpoint is not None and (last or (checkpoint_every and done % checkpoint_every == 0)):
                    with interrupts.held():
                        self.save(checkpoint)
        if interrupts.received is not None:
            raise KeyboardInterrupt
        return self

    def _step(self) -> None:
        self._begin()
        if self.workers == 1:
            rounds = (_run(self.rules, self.algorithm, self._rounds[0]),)
        else:
            rounds = _run_each(self._rounds, *self._shared)
        numbers = self._of_each(lambda state: [_numbers(player) for player in state.players], rounds)
        if not all(np.isfinite(values).all() for values in jax.tree.leaves(numbers)):
            raise SolverError(
                f"iteration {self.iterations_done + 1} came out infinite or as no number: are payoffs and features "
                "finite, and is the learning rate small enough? The trainer is as it was before that iteration"
            )
        self._rounds = rounds

    def losses(self) -> np.ndarray:
        """`[P, 2]` (with several workers `[W, P, 2]`): the loss of each advantage network at the beginning and at the
        end of its last training, in units of the targets' mean square."""
        each = np.stack(self._of_each(lambda state: [player.advantage.losses for player in state.players]), axis=1)
        return each[0] if self.workers == 1 else each

    # What was learnt

    @property
    def tree(self) -> GameTree:
        """The game's.

        Raises:
          OptionError: the game was not lowered.
        """
        return self._tree_rules("tree").tree

    def strategy(self) -> Strategy:
        """The average strategy, `[L_p]` per player: the solution. Trains the network of it, where there is one.

        Raises:
          OptionError: the game was not lowered; take `policy`.
        """
        rules = self._tree_rules("strategy")
        if isinstance(self.rules, ArrayRules):
            if self.workers > 1:
                raise OptionError("of an array game there is one run's strategy only: train with workers=1")
            if self.algorithm.keeps_past:
                return _average(rules, self.algorithm, self.state)
            return _average_on(rules, self.algorithm, self.policy())
        if self.workers == 1:
            return _average(rules, self.algorithm, self.state)
        self._begin()
        each = gathered(_average_each(self._rounds, *self._shared), self.workers)
        sums = tuple(
            init_sum(jax.vmap(treeplex.realization_weights)(values).mean(0)[:-1])
            for treeplex, values in zip(rules.tree.treeplexes, each, strict=True)
        )
        return strategy_of_sums(rules.tree, sums, None)

    def profile(self) -> Profile:
        """The average strategy with its keys: the solution.

        Raises:
          OptionError: the game was not lowered, or was given as a bare tree without keys.
        """
        if self.lowered is None:
            self._tree_rules("profile")
            raise OptionError("a bare tree has no information-set keys: give a game, or take strategy()")
        return Profile.from_strategy(
            self.lowered,
            self.strategy(),
            variant=type(self.algorithm).__name__,
            iterations=self.iterations_done,
            seed=self.seed if isinstance(self.seed, int) else None,
        )

    def policy(self) -> NetworkPolicy | PastPolicy:
        """The average strategy as a policy of the array game, for all players: see `jaxcfr.array_play`.

        Raises:
          OptionError: the game was lowered (take `profile`), or there are several workers.
        """
        if isinstance(self.rules, TreeRules):
            raise OptionError("the game was lowered: take profile(), or train on game.array_game()")
        if self.workers > 1:
            raise OptionError("a policy is of one run: train with workers=1")
        state = self.state
        if self.algorithm.keeps_past:
            lean = tuple(
                player._replace(
                    value=None,
                    advantage=player.advantage._replace(memory=player.advantage.memory.without_room()),
                )
                for player in state.players
            )
            count = lean[0].past.played.shape[0] if lean[0].past is not None else 0
            return PastPolicy(lean, self.algorithm, state.t, tuple(jnp.asarray(count + 1) for _ in lean))
        return NetworkPolicy(_average_networks(self.rules, self.algorithm, state), self.algorithm)

    def evaluate(self, plays: int = PLAYS) -> dict[str, Any]:
        """What the average strategy is worth now; also noted in `history`.

        Args:
          plays: sampled in each seat, against the uniform strategy, where there is no tree.
        """
        record: dict[str, Any] = {
            "iteration": self.iterations_done,
            "seconds": round(self._seconds, 6),
            "visited": sum(int(part.sum(dtype=np.float64)) for part in self._of_each(lambda state: state.visited)),
            "losses": self.losses().tolist(),
        }
        if self._asked is not None:
            record |= evaluate(self._asked.tree, self.strategy())
        else:
            means, errors = self.against(uniform_policy, plays)
            record |= {"versus_uniform": means, "standard_error": errors}
        self.history.append(record)
        return record

    def against(self, opponent: Any, plays: int = PLAYS, seed: Any = 0) -> tuple[list[float], list[float]]:
        """What the average strategy earns against another policy of the array game, by seat.

        Args:
          opponent: a policy; it sits in all other seats.
          plays: in each seat.
          seed: of the plays.

        Returns:
          The mean payoff in each seat, and its standard error.

        Raises:
          OptionError: the game was lowered: `jaxcfr.head_to_head` takes profiles.
        """
        if isinstance(self.rules, TreeRules):
            raise OptionError("the game was lowered: jaxcfr.head_to_head(game, trainer.profile(), other) is exact")
        key, mine = as_key(seed), self.policy()
        means, errors = [], []
        for seat in range(self.rules.num_players):
            policies = [mine if player == seat else opponent for player in range(self.rules.num_players)]
            found = expected_payoffs_sampled(self.rules.game, policies, jax.random.fold_in(key, seat), plays)
            means.append(float(found.mean[seat]))
            errors.append(float(found.standard_error[seat]))
        return means, errors

    def exploitability_bound(self, method: Any, plays: int = 500, seed: Any = 0) -> ExploitabilityBound:
        """What the average strategy can be exploited for at least, by playing against it.

        Args:
          method: `LocalBestResponse()` or `SampledBestResponse()`.
          plays: see `jaxcfr.exploitability_bound`.
          seed: of the plays.

        Raises:
          OptionError: the game was lowered (`jaxcfr.exploitability` is exact), or the average is made of past networks,
            of which each play draws one.
        """
        if isinstance(self.rules, TreeRules):
            raise OptionError("the game was lowered: jaxcfr.exploitability(trainer.tree, trainer.strategy()) is exact")
        policies = [self.policy()] * self.rules.num_players
        return exploitability_bound(self.rules.game, policies, as_key(seed), plays, method)

    def _tree_rules(self, name: str) -> TreeRules:
        if self._asked is None:
            raise OptionError(
                f"{self.name} was given as an array game, not lowered: there is no {name}, but a policy(); of a small "
                "game, tree=jaxcfr.lower(game) makes one"
            )
        return self._asked

    # Files

    def save(self, path: str | PathLike[str]) -> None:
        """Writes a checkpoint: networks, memories, t, key, settings and history. See `jaxcfr.checkpoint`.

        The file replaces the one before it in one step, and that one is kept as `path` + ".previous". Networks and
        optimisers of one's own are functions, which no file can hold: give them again to `load`.

        Raises:
          CheckpointError: it cannot be written there.
        """
        state = self.state
        if self.workers == 1:
            state = jax.tree.map(lambda leaf: leaf[None], state)
        settings = _encoded(self.algorithm)
        facts = {
            "kind": "deep",
            "game": self.name,
            "rules": _fingerprint(self.rules),
            "dtype": str(self.rules.tree.dtype) if isinstance(self.rules, TreeRules) else "",
            "arrays": isinstance(self.rules, ArrayRules),
            "settings": settings,
            "class": type(self.algorithm).__name__,
            "iterations": self.iterations_done,
            "workers": self.workers,
            "seed": checkpoint.encode_seed(self.seed if isinstance(self.seed, int) else self._key),
            "max_depth": self.rules.max_depth,
            "seconds": self._seconds,
            "history": self.history,
        }
        checkpoint.write(file_path(path), facts, checkpoint.arrays_of(state))

    @staticmethod
    def load(
        path: str | PathLike[str],
        game: Any = None,
        algorithm: DeepAlgorithm | None = None,
        *,
        features: Any = None,
        history_features: Any = "path",
    ) -> DeepTrainer:
        """A trainer that goes on where `save` was called, to the bit.

        Args:
          path: of the checkpoint.
          game, features, history_features: as in the constructor; without a game it is loaded by the name in the file.
          algorithm: needed where a network or an optimiser is not one of jaxcfr's own.

        Raises:
          CheckpointError: there is no such file, it is damaged, of another game or of other settings.
        """
        shown = file_path(path)
        facts, arrays = checkpoint.read(shown)
        checkpoint.require_kind(shown, facts, "deep")
        with checkpoint.restoring(shown):
            if algorithm is None:
                unknown = [name for name, value in facts["settings"].items() if value == UNKNOWN]
                if unknown:
                    raise CheckpointError(
                        f"{shown}: its {' and '.join(unknown)} is not one of jaxcfr's own: give the algorithm, "
                        f"DeepTrainer.load(path, game, {facts['class']}({unknown[0]}=...))"
                    )
                algorithm = _decoded(facts["class"], facts["settings"])
            elif isinstance(algorithm, DeepAlgorithm):
                _check_settings(shown, facts, algorithm)
            seed = checkpoint.decode_seed(facts["seed"])
            on_arrays = facts["arrays"]
            if game is None:
                game = load_game(facts["game"])
                game = game.array_game() if on_arrays else game
            trainer = DeepTrainer(
                game,
                algorithm,
                seed=seed,
                workers=facts["workers"],
                features=features,
                history_features=history_features,
                max_depth=facts["max_depth"] if on_arrays else None,
            )
            if not on_arrays and facts["dtype"] != str(trainer.tree.dtype):
                raise CheckpointError(
                    f"{shown}: made in {facts['dtype']}, and {trainer.name} is {trainer.tree.dtype} here"
                )
            if _fingerprint(trainer.rules) != facts["rules"]:
                raise CheckpointError(
                    f"{shown}: made for {facts['game']}, and {trainer.name} has another tree here, or other features"
                )
            like = _init(trainer.rules, trainer.algorithm, trainer._key)
            state = checkpoint.state_from(like, arrays, trainer.workers)
            one = trainer.workers == 1
            trainer._rounds = (jax.tree.map(lambda leaf: leaf[0], state),) if one else rounds_of(state, trainer.workers)
            trainer.history = list(facts["history"])
            trainer._seconds = float(facts["seconds"])
        return trainer


_init = jax.jit(algorithms.init)
_run = jax.jit(lambda rules, algorithm, state: algorithms.iterate(rules, algorithm, state))
_average = jax.jit(average.average_strategy)
_average_networks = jax.jit(average.average_networks)
_average_on = jax.jit(lambda rules, algorithm, policy: average.asked_strategy(rules, algorithm, policy.params))
_init_each = each_worker(lambda key, rules, algorithm: algorithms.init(rules, algorithm, key))
_run_each = each_worker(lambda state, rules, algorithm: algorithms.iterate(rules, algorithm, state))
_average_each = each_worker(lambda state, rules, algorithm: average.average_strategy(rules, algorithm, state))


def _check_memory(rules: TreeRules | ArrayRules, algorithm: DeepAlgorithm, workers: int) -> None:
    """Raises `OptionError` where a run takes more memory than there is: while it is lost, nothing can be told."""
    state = jax.eval_shape(algorithms.init, rules, algorithm, jax.random.key(0))
    one = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    there, devices = _memory(), 1 if jax.default_backend() == "cpu" else len(jax.devices())
    # That of before an iteration is kept until the one after it has come out well.
    needed = 2 * one * -(-workers // devices)
    if there is not None and needed > there:
        raise OptionError(
            f"memories and networks of {type(algorithm).__name__} take {needed / 2**30:,.1f} GiB here, with "
            f"{rules.num_actions:,} actions, and there are {there / 2**30:,.1f} GiB: lower capacity, "
            f"{algorithm.capacity:,} items of each memory"
            + (f", or workers, {workers}" if workers > 1 else "")
            + (f", or past_networks, {algorithm.past_networks:,}" if algorithm.keeps_past else "")
        )


def _memory() -> int | None:
    """Bytes of a device, or of the machine where that is the device; None where nobody tells."""
    if jax.default_backend() != "cpu":
        facts = jax.local_devices()[0].memory_stats() or {}
        return facts.get("bytes_limit")
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _numbers(player: PlayerState) -> tuple[Array, Array]:
    """What is infinite, or no number, where training went wrong."""
    return player.advantage.scale, player.advantage.losses


def _check_networks(rules: TreeRules | ArrayRules, algorithm: DeepAlgorithm) -> None:
    """Raises `OptionError` where a network does not fit the game."""
    cases: list[tuple[str, Any, Any, Any]] = []
    for player in range(rules.num_players):
        _, features, legal = rules.example(player)
        known = rules.features[player] if isinstance(rules, TreeRules) else None
        cases += [(kind, features, legal, known) for kind in ("advantage", "average")]
        if algorithm.values:
            known = rules.history_features if isinstance(rules, TreeRules) else None
            cases.append(("value", rules.history_example()[1], legal, known))
    for kind, features, legal, known in cases:
        network = algorithm.training(kind).network
        check_approximator(network, kind, jnp.concatenate([features, features]), jnp.concatenate([legal, legal]))
        if algorithm.optimiser is not None:
            check_optimiser(algorithm.training(kind), kind, features, legal)
        size = getattr(network, "table_size", None)
        if size is not None and known is not None and known.size and float(jnp.max(known)) >= size:
            raise OptionError(f"the {kind} table has {size} rows, and {int(jnp.max(known)) + 1} are needed")


def _on_arrays(game: Any) -> bool:
    return is_array_game(game) and not hasattr(game, "is_terminal")


def _depth(game: Any, given: int | None, key: Array) -> int:
    """Moves that walks on arrays keep."""
    if given is not None:
        return integer("max_depth", given, 1, 10_000)

    policies = [uniform_policy] * int(game.num_players)

    def play(key: Array) -> Array:
        return sample_play(game, policies, key, max_steps=MAX_DEPTH).steps

    lengths = jax.jit(jax.vmap(play))(jax.random.split(jax.random.fold_in(key, 1), MEASURED_PLAYS))
    return int(min(2 * int(lengths.max()), MAX_DEPTH))


def _fingerprint(rules: TreeRules | ArrayRules) -> str:
    """Tells games and features apart; array games, whose rules are functions, by their names."""
    if isinstance(rules, ArrayRules):
        return game_name(rules.game)
    digest = hashlib.sha256(checkpoint.fingerprint(rules.tree).encode())
    for table in (*rules.features, rules.history_features):
        if table is not None:
            digest.update(repr(table.shape).encode() + np.ascontiguousarray(table).tobytes())
    return digest.hexdigest()


UNKNOWN = "?"
"""Stands for a setting that no file can hold."""


def _encoded(algorithm: DeepAlgorithm) -> dict[str, Any]:
    """The settings as JSON has them."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(algorithm):
        try:
            found[field.name] = checkpoint.encode_setting(getattr(algorithm, field.name))
        except CheckpointError:
            found[field.name] = UNKNOWN
    return found


def _decoded(name: str, settings: dict[str, Any]) -> DeepAlgorithm:
    kind = getattr(algorithms, name, None)
    if not (isinstance(kind, type) and issubclass(kind, DeepAlgorithm)):
        raise CheckpointError(f"this jaxcfr has no algorithm {name!r}")
    return kind(**{field: checkpoint.decode_setting(value) for field, value in settings.items()})


def _check_settings(shown: str, facts: dict[str, Any], algorithm: DeepAlgorithm) -> None:
    """Raises `CheckpointError` where a run was made with other settings than those given."""
    if facts["class"] != type(algorithm).__name__:
        raise CheckpointError(f"{shown}: a run of {facts['class']}, not of {type(algorithm).__name__}")
    given = _encoded(algorithm)
    other = [
        name for name, value in facts["settings"].items() if value != UNKNOWN and given[name] not in (value, UNKNOWN)
    ]
    if other:
        raise CheckpointError(f"{shown}: made with another {' and '.join(other)} than the algorithm given")
