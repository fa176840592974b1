"""`Trainer`: a run that is kept, watched, interrupted and saved; no mathematics of its own."""

from __future__ import annotations

import dataclasses
import math
import re
import signal
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxcfr import checkpoint, workers
from jaxcfr.analytics import expected_payoffs, gains, require_constant_sum
from jaxcfr.arguments import integer, real
from jaxcfr.concrete import is_concrete
from jaxcfr.errors import AnalyticsError, CheckpointError, JaxCFRError, OptionError
from jaxcfr.files import path_text, require_writable
from jaxcfr.games.registry import load_game
from jaxcfr.interrupts import Interrupts
from jaxcfr.prescribed import Blend, Locks, blend, check_prescribed, lock
from jaxcfr.profile import Profile, TreeShape
from jaxcfr.progress import ProgressBar, progress_bar
from jaxcfr.regret.schedules import Hyperparameter
from jaxcfr.regret.text import describe
from jaxcfr.regret.variants import RegretVariant, dcfr_plus
from jaxcfr.solve import Updates, check_horizon, check_iterations, check_variant, count_unvisited, solve
from jaxcfr.traversal.base import Traversal
from jaxcfr.traversal.randomness import as_key
from jaxcfr.traversal.sampling import check_baseline, check_pruning, external_sampling
from jaxcfr.tree.game_tree import GameTree, Strategy
from jaxcfr.tree.lower import LoweredGame, lower

if TYPE_CHECKING:
    from os import PathLike

CHUNK_SECONDS = 0.2
"""The solver is called for about this long at a time: how fast Ctrl-C and the progress bar respond."""

TRACED = "a Trainer works outside of jit, vmap and grad only: there, use solve"

EVERY = 100
"""Iterations between evaluations where a target is set and nothing else is said."""


@dataclasses.dataclass(frozen=True)
class RegretTable:
    """What a variant has stored: one worker's regrets, never a mixture.

    Attributes:
      regrets: per player `[L_p]`, in the flat layout of the tree.
      worker: whose.
      of_workers: how many workers there are; above 1 these are not the regrets behind the profile.
    """

    regrets: tuple[jax.Array, ...]
    worker: int
    of_workers: int


@dataclasses.dataclass
class Watch:
    """What happens beside a run.

    Attributes:
      interrupts: where a request to stop is noted.
      bar: shows how far it is.
      eval_every: iterations between evaluations, or None for none.
      target: the exploitability at which to stop, or None.
      checkpoint: the file, or None.
      checkpoint_every: iterations between checkpoints; None writes one at the end.
      evaluated: called with each evaluation.
    """

    interrupts: Interrupts
    bar: ProgressBar
    eval_every: int | None = None
    target: float | None = None
    checkpoint: str | None = None
    checkpoint_every: int | None = None
    evaluated: Callable[[dict[str, Any]], None] = lambda record: None


def evaluate(tree: GameTree, strategy: Strategy, locked: Locks | None = None) -> dict[str, Any]:
    """NashConv and what it is made of, as JSON has it; all finite, in units of payoff.

    Returns:
      "nash_conv", "exploitability" (None where it is not defined), "expected_payoffs" and "gains" (lists).

    Raises:
      AnalyticsError: something came out beyond the range of the dtype.
    """
    gain = np.asarray(gains(tree, strategy, locked), np.float64).tolist()
    payoffs = np.asarray(expected_payoffs(tree, strategy), np.float64).tolist()
    if not all(map(math.isfinite, gain + payoffs)):
        raise AnalyticsError(f"the payoffs came out as {payoffs}: beyond the range of {tree.dtype}?")
    total = math.fsum(gain)
    return {
        "nash_conv": total,
        "exploitability": total / 2 if tree.constant_sum else None,
        "expected_payoffs": payoffs,
        "gains": gain,
    }


class Trainer:
    """A run of counterfactual regret minimization that is kept: train, look, train on, save.

    With W workers, `train(N)` does W independent runs of N iterations each, from their own tables and with their own
    random numbers, and the profile is the average of all of them (*bagging*): its variance falls about as 1 / W, its
    bias does not. `train_split` divides a budget instead. The workers are laid over all devices; the same seed,
    iterations and number of workers give the same bits on any number of devices of a kind. Another number of workers
    is another run.

    Attributes:
      tree: the game's.
      lowered: the game's `LoweredGame`, or None where a bare tree was given.
      algorithm, regret, seed, workers, updates: as given.
      history: the evaluations, as dictionaries: "iteration", "nash_conv", "exploitability", "expected_payoffs",
        "gains", "seconds" (of training so far).
    """

    def __init__(
        self,
        game_or_tree: Any,
        algorithm: Traversal = external_sampling(),  # noqa: B008 (a constant)
        regret: RegretVariant = dcfr_plus(1.5, 4.0),  # noqa: B008
        pruning: Any = None,
        variance_reduction: Any = None,
        chance_samples: int = 1,
        seed: Any = 0,
        workers: int | None = None,
        updates: Updates = "alternating",
        *,
        locked: Any = None,
    ) -> None:
        """Nothing is computed yet but the tree.

        Args:
          game_or_tree: a game, its name for `load_game`, a `LoweredGame`, or a `GameTree` (which has no keys, so
            there is no `profile()` of it).
          algorithm: where counterfactual regrets come from: `full_tree()`, `external_sampling()`, ...
          regret: the regret variant.
          pruning: `safe_pruning()` or `probabilistic_pruning()` for `external_sampling`; the same as giving it there.
          variance_reduction: `control_variate()` for outcome and external sampling; the same as giving it there.
          chance_samples: outcomes drawn at each chance move, for `chance_sampling`; the same as giving it there.
          seed: from 0 to `2**32 - 1`, or a typed key of `jax.random.key`.
          workers: W; None means as many as there are devices.
          updates: see `solve`.
          locked: information sets whose strategy is fixed: what `lock` returns, or a mapping or profile for it.

        Raises:
          OptionError: an argument makes no sense.
        """
        self.lowered = _lowered(game_or_tree)
        self.tree: GameTree = game_or_tree if self.lowered is None else self.lowered.tree
        self.algorithm = _with_options(algorithm, pruning, variance_reduction, chance_samples)
        self.regret = regret
        check_variant(regret)
        as_key(seed)
        if not is_concrete(self.tree, self.algorithm, regret, seed):
            raise OptionError(TRACED)
        is_key = isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key)
        self.seed = seed if is_key else int(seed)
        self.updates: Updates = updates
        self.workers = integer("workers", jax.device_count() if workers is None else workers)
        if not self.algorithm.samples:
            if self.workers > 1 and workers is not None:
                warnings.warn(
                    f"with full_tree() the runs of {workers} workers would be identical: one runs",
                    UserWarning,
                    stacklevel=2,
                )
            self.workers = 1
        self._locks: Locks | None = None
        self._blends: dict[int, tuple[Any, Hyperparameter]] = {}
        self._callback: Callable[[int, Profile], Any] | None = None
        self._trees: dict[bool, GameTree] = {}
        self._reset()
        if locked is not None:
            self.lock(locked)
        solve(self.tree, regret, 0, traversal=self.algorithm, seed=seed, updates=updates)  # checks all of them

    def __repr__(self) -> str:
        name = self.lowered.name if self.lowered is not None else repr(self.tree)
        return f"Trainer({name!r}, {self.description}, {self.iterations_done:,} iterations, {self.workers} workers)"

    @property
    def description(self) -> str:
        """The regret variant, the algorithm and the way to update in words."""
        text = describe(self.regret)
        if self.algorithm.samples:
            text += f", {_snake(type(self.algorithm).__name__)}"
        return text if self.updates == "alternating" else f"{text}, {self.updates} updates"

    @property
    def locks(self) -> Locks | None:
        """The information sets whose strategy is fixed, or None."""
        return self._locks

    def replace(self, **settings: Any) -> Trainer:
        """A trainer with other settings: algorithm=..., regret=..., pruning=..., seed=..., workers=..., ...

        It begins anew: its tables are empty, because statistics that were gathered under one rule mean something else
        under another. Locks, blends and the callback are kept.

        Raises:
          OptionError: there is no such setting, or its value makes no sense.
        """
        given = {
            "algorithm": self.algorithm,
            "regret": self.regret,
            "seed": self.seed,
            "workers": self.workers,
            "updates": self.updates,
            "locked": self._locks,
        }
        known = {*given, "pruning", "variance_reduction", "chance_samples"}
        for name in settings:
            if name not in known:
                raise OptionError(f"a Trainer has no setting {name!r}; they are {', '.join(sorted(known))}")
        algorithm = settings.get("algorithm", self.algorithm)
        if isinstance(algorithm, Traversal):
            if not algorithm.samples:
                given["workers"] = 1
            # The constructor takes what is none of these for what was not given.
            for name, field, none in _OPTIONS:
                if name in settings and settings[name] == none and hasattr(algorithm, field):
                    algorithm = dataclasses.replace(algorithm, **{field: none})  # type: ignore[type-var]
            settings["algorithm"] = algorithm
        other = Trainer(self.tree if self.lowered is None else self.lowered, **{**given, **settings})
        other._set_blends(self._blends)
        other._callback = self._callback
        return other

    def _reset(self) -> None:
        self._team: workers.Team | None = None
        self.history: list[dict[str, Any]] = []
        self._seconds = 0.0
        self._chunk: dict[int, int] = {}

    # Training

    @property
    def iterations_done(self) -> int:
        """t: how far the timeline of discounts and averages is; workers do not count."""
        return 0 if self._team is None else self._team.t

    def train(
        self,
        iterations: int,
        *,
        eval_every: int | None = None,
        target_exploitability: float | None = None,
        progress: bool = False,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: int | None = None,
    ) -> Trainer:
        """Every worker does so many iterations more; `train(a)` and `train(b)` give the bits of `train(a + b)`.

        Ctrl-C ends it at the next chunk (some tenths of a second) with all that is done until then kept: the trainer
        can go on. `KeyboardInterrupt` is raised after that, and after a checkpoint where one is asked for.

        Args:
          iterations: N.
          eval_every: evaluate whenever `iterations_done` is a multiple of this, and at the end, into `history`.
          target_exploitability: stop at the first evaluation with an exploitability of at most this; two-player
            constant-sum games only. In a locked game best responses keep to the locks.
          progress: show a progress bar.
          checkpoint: a file that is written at the end, and every `checkpoint_every` iterations; see `save`.
          checkpoint_every: write it whenever `iterations_done` is a multiple of this.

        Returns:
          The trainer itself.

        Raises:
          OptionError: an argument makes no sense.
          HorizonError: the run would go past the end of the variant's hyperparameter schedules.
          CheckpointError: the checkpoint cannot be written.
        """
        _check_iterations(iterations)
        if target_exploitability is not None:
            require_constant_sum(self.tree, "target_exploitability", "look at nash_conv in the history instead")
            target_exploitability = real("target_exploitability", target_exploitability, 0)
            eval_every = EVERY if eval_every is None else eval_every
        check_cadence(eval_every, checkpoint, checkpoint_every)
        shown = progress and jax.process_index() == 0
        with _interrupts() as interrupts, progress_bar(shown) as bar:
            bar.start("training", self.iterations_done + iterations, self.iterations_done)
            path = None if checkpoint is None else file_path(checkpoint)
            self.run(iterations, Watch(interrupts, bar, eval_every, target_exploitability, path, checkpoint_every))
        self._ended(interrupts)
        return self

    def run(self, iterations: int, watch: Watch) -> bool:
        """`train` without its own signals and progress bar.

        Returns:
          Whether the target was reached.
        """
        check_horizon(self.regret, self.iterations_done, iterations)
        self._require_savable_at(watch.checkpoint)
        end, begun, before = self.iterations_done + iterations, time.perf_counter(), self._seconds
        while True:
            done = self.iterations_done
            stops = [end, *(_next(done, every) for every in (watch.eval_every, watch.checkpoint_every) if every)]
            stop = max(done, min(stops))
            self._team = self._advance(self._begun(), np.full(self.workers, stop - done), watch, stop)
            self._seconds = before + time.perf_counter() - begun
            done = self.iterations_done
            stopped = watch.interrupts.received is not None
            last = stopped or done >= end
            reached = False
            if watch.eval_every and not stopped and (last or done % watch.eval_every == 0):
                record = self._evaluated(watch, before - begun)
                watch.bar.update(done, f"NashConv {record['nash_conv']:.3g}")
                reached = watch.target is not None and record["exploitability"] <= watch.target
            last = last or reached
            every = watch.checkpoint_every
            if watch.checkpoint is not None and (last or (every and done % every == 0)):
                with watch.interrupts.held():
                    self.save(watch.checkpoint)
            if last:
                return reached

    def _evaluated(self, watch: Watch, offset: float) -> dict[str, Any]:
        """Evaluates; the seconds of training are the clock plus `offset`, what was just computed included."""
        record = {"iteration": self.iterations_done, **evaluate(self.tree, self.strategy(), self._locks)}
        self._seconds = offset + time.perf_counter()
        record["seconds"] = round(self._seconds, 6)
        self.history.append(record)
        watch.evaluated(record)
        return record

    def train_split(self, total: int, workers: int | None = None) -> Trainer:
        """Divides `total` iterations over windows of the timeline: a speed-up at a fixed budget.

        Each of the workers does one window only, on its own device, beginning with the tables there are; their
        averages are summed with the weights that the iterations have in one run. Exactly `total` iterations are done
        in all, and `iterations_done` moves by `total`.

        The strategies of each window have learnt from the iterations of that window (and of before) only, so this is
        for games where `total / workers` iterations are plenty. Ctrl-C leaves the trainer as it was before.

        Args:
          total: the budget.
          workers: how many windows; None means as many as the trainer has workers. Uneven totals make windows that
            differ by one iteration.

        Raises:
          OptionError: an argument makes no sense.
          HorizonError: as `train`.
        """
        _check_iterations(total)
        with _interrupts() as interrupts, progress_bar(False) as bar:
            self.run_split(total, Watch(interrupts, bar), workers)
        self._ended(interrupts)
        return self

    def run_split(self, total: int, watch: Watch, count: int | None = None) -> None:
        """`train_split` without its own signals."""
        count = self.workers if count is None else integer("workers", count)
        if not self.algorithm.samples and count > 1:
            warnings.warn(
                f"with full_tree() {count} windows would repeat each other: one worker does all of it",
                UserWarning,
                stacklevel=3,
            )
            count = 1
        if not total or (count == 1 and self.workers == 1):  # a split of nothing leaves the tables of all workers
            self.run(total, watch)
            return
        check_horizon(self.regret, self.iterations_done, total)
        self._require_savable_at(watch.checkpoint)
        begun = time.perf_counter()
        part = workers.split(self.tree, self._begun(), total, count)
        team = self._advance(part.team, part.lengths, watch)
        if watch.interrupts.received is None:
            joined = workers.join(self.tree, self.regret, dataclasses.replace(part, team=team))
            self._team = joined
            before = self._seconds
            self._seconds = before + time.perf_counter() - begun
            watch.bar.update(self.iterations_done)
            if watch.eval_every:
                self._evaluated(watch, before - begun)
            if watch.checkpoint is not None:
                with watch.interrupts.held():
                    self.save(watch.checkpoint)

    def _advance(self, team: workers.Team, each: np.ndarray, watch: Watch, end: int | None = None) -> workers.Team:
        """Every worker of a team does `each[w]` iterations, in chunks that follow the clock."""
        left = np.array(each, np.int64)
        tree = self._placed(team.count)
        # Processes that run together have to call the same programs, so there the clock does not decide.
        paced = jax.process_count() == 1
        chunk = self._chunk.get(team.count, 1)
        while left.max(initial=0) > 0 and watch.interrupts.received is None:
            steps = np.minimum(left, chunk) if paced else left
            started = time.perf_counter()
            new = workers.advance(tree, self.regret, self.algorithm, self.updates, team, steps)
            jax.block_until_ready(new.rounds)  # type: ignore[no-untyped-call]
            team, left = new, left - steps
            seconds = max(time.perf_counter() - started, 1e-9)
            most = int(steps.max())
            if team.count in self._chunk:
                chunk = max(1, min(8 * most, int(most * CHUNK_SECONDS / seconds)))
            # The first call compiles, and says nothing of the pace.
            self._chunk[team.count] = chunk
            if end is not None:
                watch.bar.update(end - int(left.max()), speed=most / seconds)
                self._team = team
        return team

    def _placed(self, count: int) -> GameTree:
        several = count > 1
        if several not in self._trees:
            self._trees[several] = workers.placed(self.tree, count)
        return self._trees[several]

    def _begun(self) -> workers.Team:
        if self._team is None:
            self._team = workers.begin(
                self.tree,
                self.regret,
                self.algorithm,
                self.workers,
                seed=self.seed,
                locks=self._locks,
                blend=self._blend(),
            )
        return self._team

    def _ended(self, interrupts: Interrupts) -> None:
        if interrupts.received is not None:
            raise KeyboardInterrupt
        if self._callback is not None:
            self._callback(self.iterations_done, self.profile())

    def on_iteration(self, callback: Callable[[int, Profile], Any] | None) -> Any:
        """Registers what is called after each `train` and `train_split`, with `iterations_done` and the profile.

        Once for the whole window, never per worker; None takes it off. Costs nothing while there is none. May be used
        as a decorator.

        Raises:
          OptionError: it cannot be called, or the trainer was made from a bare tree, of which there is no profile.
        """
        if callback is not None:
            if not callable(callback):
                raise OptionError(f"on_iteration takes something that can be called, not {callback!r}")
            self._require_keys("on_iteration")
        self._callback = callback
        return callback

    # Prescribed play

    def lock(self, strategies: Any, infosets: Any = None) -> None:
        """Fixes the strategy at chosen information sets, and begins anew; see `jaxcfr.lock`. None takes locks off.

        Raises:
          OptionError, ProfileError, StrategyError: see `jaxcfr.lock`.
        """
        if strategies is None or isinstance(strategies, Locks):
            check_prescribed(self.tree, strategies, None)
            self._locks = strategies
        else:
            self._locks = lock(self.tree if self.lowered is None else self.lowered, strategies, infosets)
        self._reset()

    def blend_opponent(self, player: int, policy: Any, schedule: Hyperparameter) -> None:
        """At iteration t, draws the player's action from `policy` with probability schedule(t), else from its strategy.

        Begins anew. While the schedule is positive this solves a *modified* game: the exploitability in the original
        one is a signal, and not a proof. Once the schedule has decayed the average goes back to an equilibrium of the
        original game.

        Args:
          player: whose play is blended.
          policy: a `Profile`, a strategy (this player's array `[L_p]`, or one array per player), or a function that
            gives the probabilities at an information set from its key.
          schedule: a number or a schedule of t: `constant`, `geometric(start, rate)`, `linear(start, end, iterations)`,
            or any function of t.

        Raises:
          OptionError, ProfileError, StrategyError: see `jaxcfr.blend`.
        """
        player = integer("player", player, 0, self.tree.num_players - 1)
        self._set_blends({**self._blends, player: (policy, schedule)})

    def blend_all(self, policy: Any, schedule: Hyperparameter) -> None:
        """`blend_opponent` for every player."""
        self._set_blends(dict.fromkeys(range(self.tree.num_players), (policy, schedule)))

    def _set_blends(self, blends: dict[int, tuple[Any, Hyperparameter]]) -> None:
        made = blend(self.tree if self.lowered is None else self.lowered, blends)
        # What a function said at each information set is kept, and not the function.
        self._blends = {player: (made.policies[player], made.shares[player]) for player in blends}
        self._reset()

    def _blend(self) -> Blend | None:
        return blend(self.tree, self._blends) if self._blends else None

    # Results

    def strategy(self) -> Strategy:
        """The average strategy of all workers, per player `[L_p]`; uniform before the first iteration."""
        return workers.average_strategy(self.tree, self._begun(), self._locks)

    def profile(self) -> Profile:
        """The average strategy bound to the information-set keys.

        Raises:
          OptionError: the trainer was made from a bare tree, which has no keys.
        """
        lowered = self._require_keys("profile")
        return Profile.from_strategy(
            lowered,
            self.strategy(),
            variant=self.description,
            iterations=self.iterations_done,
            seed=None if isinstance(self.seed, jax.Array) else self.seed,
        )

    def _require_keys(self, what: str) -> LoweredGame:
        if self.lowered is None:
            raise OptionError(
                f"{what} needs the keys of the information sets: make the Trainer from the game, or from what "
                "jaxcfr.lower returned, not from its tree"
            )
        return self.lowered

    def regret_table(self, worker: int = 0) -> RegretTable:
        """The regrets that one worker has stored.

        With several workers the profile is their average, and no worker's regrets are those behind it: a warning says
        so, and the result says whose they are.

        Raises:
          OptionError: there is no such worker.
        """
        worker = integer("worker", worker, 0, self.workers - 1)
        if self.workers > 1:
            warnings.warn(
                f"these are the regrets of worker {worker} of {self.workers}; the profile averages all of them",
                UserWarning,
                stacklevel=2,
            )
        players = workers.stacked(self._begun(), lambda state: [player.regrets.regret for player in state.players])
        return RegretTable(tuple(regrets[worker] for regrets in players), worker, self.workers)

    def unvisited(self) -> tuple[int, ...]:
        """Per player, the number of information sets that no worker has learnt anything about; see `unvisited`."""
        tables = workers.stacked(self._begun(), lambda state: [player.regrets for player in state.players])
        return tuple(map(count_unvisited, self.tree.treeplexes, tables))

    def history_columns(self) -> dict[str, list[Any]]:
        """The evaluations by column, as `pandas.DataFrame` takes them; players have columns of their own."""
        columns: dict[str, list[Any]] = {}
        for record in self.history:
            flat: dict[str, Any] = {}
            for name, value in record.items():
                short = {"expected_payoffs": "payoff", "gains": "gain"}.get(name, name)
                flat.update(
                    {f"{short}_{p}": x for p, x in enumerate(value)} if isinstance(value, list) else {name: value}
                )
            for name, value in flat.items():
                columns.setdefault(name, []).append(value)
        return columns

    # Files

    def save(self, path: str | PathLike[str]) -> None:
        """Writes a checkpoint: all that is needed to go on bit for bit.

        Tables, t, keys, settings, locks, blends, the history, and a fingerprint of the tree. The file replaces the one
        before it in one step, and that one is kept as `path` + ".previous". With several processes each has to call it;
        the first writes. See `jaxcfr.checkpoint` for the format.

        Raises:
          CheckpointError: it cannot be written there, or a setting is a function, which no file can hold.
        """
        settings = self._require_savable()
        stacked = workers.stacked(self._begun())
        arrays = checkpoint.arrays_of(stacked._replace(locks=None, blend=None))
        for name, tables in (("lock", self._lock_arrays()), ("blend", [p for p, _ in self._blends.values()])):
            arrays |= {f"{name} {number}": np.asarray(table) for number, table in enumerate(tables)}
        facts = {
            "game": "" if self.lowered is None else self.lowered.name,
            "shape": dataclasses.asdict(TreeShape.of(self.tree)),
            "dtype": str(self.tree.dtype),
            "tree": checkpoint.fingerprint(self.tree),
            "iterations": self.iterations_done,
            "workers": self.workers,
            "updates": self.updates,
            "seconds": self._seconds,
            "history": self.history,
            **settings,
        }
        if jax.process_index() == 0:
            checkpoint.write(file_path(path), facts, arrays)

    def same_locks(self, other: Trainer) -> bool:
        """Whether another trainer of the same game has the same locks."""
        mine, theirs = self._lock_arrays(), other._lock_arrays()
        return len(mine) == len(theirs) and all(map(np.array_equal, mine, theirs))

    def _lock_arrays(self) -> list[Any]:
        return [] if self._locks is None else [*self._locks.masks, *self._locks.strategy]

    def _require_savable_at(self, path: str | None) -> None:
        """Raises `CheckpointError` if a checkpoint could not be written: better before the work than after it."""
        if path is not None:
            self._require_savable()
            if jax.process_index() == 0:
                require_writable(path, CheckpointError)

    def _require_savable(self) -> dict[str, Any]:
        """The settings as JSON has them."""
        return {
            "algorithm": checkpoint.encode_setting(self.algorithm),
            "regret": checkpoint.encode_setting(self.regret),
            "blends": {str(player): checkpoint.encode_setting(share) for player, (_, share) in self._blends.items()},
            "seed": checkpoint.encode_seed(self.seed),
        }

    @staticmethod
    def load(path: str | PathLike[str], game_or_tree: Any = None) -> Trainer:
        """A trainer that goes on where `save` was called.

        Args:
          path: of the checkpoint.
          game_or_tree: as in the constructor; None loads the game by the name in the file.

        Raises:
          CheckpointError: there is no such file, it is truncated or damaged, of a newer version, or of another game,
            layout or dtype; or no game was given, and there is none of the name in the file. Says whether the
            checkpoint before it is still there.
        """
        shown = file_path(path)
        facts, arrays = checkpoint.read(shown)
        checkpoint.require_kind(shown, facts, None)
        with checkpoint.restoring(shown):
            if game_or_tree is None:
                game_or_tree = _by_name(facts["game"])
            lowered = _lowered(game_or_tree, facts["dtype"])
            tree = game_or_tree if lowered is None else lowered.tree
            _check_same(shown, facts, tree, "this tree" if lowered is None else lowered.name)
            seed = checkpoint.decode_seed(facts["seed"])
            trainer = Trainer(
                game_or_tree if lowered is None else lowered,
                checkpoint.decode_setting(facts["algorithm"]),
                checkpoint.decode_setting(facts["regret"]),
                seed=seed,
                workers=facts["workers"],
                updates=facts["updates"],
            )
            count = trainer.tree.num_players
            extra = {name: arrays.pop(name) for name in list(arrays) if name.startswith(("lock ", "blend "))}
            if any(name.startswith("lock ") for name in extra):
                tables = [jnp.asarray(extra[f"lock {number}"]) for number in range(2 * count)]
                trainer.lock(Locks(tuple(tables[:count]), tuple(tables[count:])))
            trainer._set_blends(
                {
                    int(player): (jnp.asarray(extra[f"blend {number}"]), checkpoint.decode_setting(share))
                    for number, (player, share) in enumerate(facts["blends"].items())
                }
            )
            like = workers.begin(trainer.tree, trainer.regret, trainer.algorithm, 1, seed=seed).rounds[0]
            stacked = checkpoint.state_from(like, arrays, trainer.workers)
            trainer._resume(stacked, facts)
        return trainer

    def _resume(self, stacked: Any, facts: dict[str, Any]) -> None:
        prescribed = {"locks": self._locks, "blend": self._blend()}
        stacked = stacked._replace(
            **{
                name: jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.workers, *jnp.shape(leaf))), value)
                for name, value in prescribed.items()
            }
        )
        self._team = workers.team_of(stacked)
        self.history = list(facts["history"])
        self._seconds = float(facts["seconds"])


def _interrupts() -> Interrupts:
    """Ctrl-C as a note; not with several processes, which could not agree on where to stop."""
    return Interrupts(*([signal.SIGINT] if jax.process_count() == 1 else []))


def check_cadence(eval_every: Any, checkpoint: Any, checkpoint_every: Any) -> None:
    """Raises `OptionError` unless these arguments of `train` make sense."""
    for name, value in (("eval_every", eval_every), ("checkpoint_every", checkpoint_every)):
        if value is not None:
            integer(name, value)
    if checkpoint_every is not None and checkpoint is None:
        raise OptionError("checkpoint_every needs checkpoint, the file")


def file_path(path: Any) -> str:
    """The path as text; raises `CheckpointError` for what is none."""
    return path_text(path, CheckpointError)


def _by_name(name: str) -> Any:
    try:
        return load_game(name)
    except JaxCFRError as error:
        named = f"there is no game {name!r} to load" if name else "it was made from a tree without a name"
        raise CheckpointError(f"{named}: give the game, Trainer.load(path, game)") from error


def _check_same(shown: str, facts: dict[str, Any], tree: GameTree, name: str) -> None:
    fields: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in facts["shape"].items()}
    made = TreeShape(**fields)
    mine = TreeShape.of(tree)
    if made != mine:
        raise CheckpointError(f"{shown}: made for {facts['game']} ({made}), and this is {name} ({mine})")
    if facts["dtype"] != str(tree.dtype):
        raise CheckpointError(f"{shown}: made in {facts['dtype']}, and {name} is lowered to {tree.dtype}")
    if facts["tree"] != checkpoint.fingerprint(tree):
        raise CheckpointError(
            f"{shown}: made for {facts['game']} with other payoffs, another chance or another layout than {name} has "
            "here"
        )


def _lowered(game_or_tree: Any, dtype: Any = None) -> LoweredGame | None:
    if isinstance(game_or_tree, GameTree):
        return None
    if isinstance(game_or_tree, LoweredGame):
        return game_or_tree
    return lower(load_game(game_or_tree) if isinstance(game_or_tree, str) else game_or_tree, dtype=dtype)


_OPTIONS: tuple[tuple[str, str, Any], ...] = (
    ("pruning", "pruning", None),
    ("variance_reduction", "baseline", None),
    ("chance_samples", "rolls", 1),
)
"""Arguments of the constructor, the fields of a traversal that they are, and what stands for nothing."""


def _with_options(algorithm: Any, pruning: Any, variance_reduction: Any, chance_samples: Any) -> Traversal:
    """The algorithm with the options that are fields of it."""
    if not isinstance(algorithm, Traversal):
        hint = f"; call it: {algorithm.__name__}()" if hasattr(algorithm, "__name__") else ""
        raise OptionError(f"algorithm has to be one such as jaxcfr.external_sampling(), not {algorithm!r}{hint}")
    samples = integer("chance_samples", chance_samples)
    check_pruning(pruning)
    check_baseline(variance_reduction)
    for (name, field, none), value in zip(_OPTIONS, (pruning, variance_reduction, samples), strict=True):
        if value == none:
            continue
        if field not in {known.name for known in dataclasses.fields(algorithm)}:  # type: ignore[arg-type]
            raise OptionError(f"{_snake(type(algorithm).__name__)} has no {name}")
        algorithm = dataclasses.replace(algorithm, **{field: value})  # type: ignore[type-var]
    return algorithm


def _check_iterations(iterations: Any) -> None:
    if isinstance(iterations, jax.core.Tracer):
        raise OptionError(TRACED)
    check_iterations(iterations)


def _next(done: int, every: int) -> int:
    return (done // every + 1) * every


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
