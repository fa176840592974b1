"""What CFR-D leaves: a strategy of the trunk, and values from which any subgame is solved again."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr import checkpoint
from jaxcfr.decomposition import trunk as trunks
from jaxcfr.decomposition.decompose import Batch, Decomposition
from jaxcfr.decomposition.solvers import SubgameSolver
from jaxcfr.decomposition.subtree import Pair, Subtree, root_values, solve_reached
from jaxcfr.errors import CheckpointError, OptionError, SolverError
from jaxcfr.files import path_text
from jaxcfr.profile import Profile
from jaxcfr.regret import average as averages
from jaxcfr.regret.variants import RegretVariant, dcfr_plus
from jaxcfr.solve import SolverState, Updates, average_strategy, check_iterations, check_updates, check_variant
from jaxcfr.tree.game_tree import Strategy

KIND = "CFR-D"
"""What a checkpoint of a solution says that it is."""


class ResolvedSubgame(NamedTuple):
    """A subgame that was solved again.

    Attributes:
      number: of the subgame.
      profile: both players' strategies for its information sets.
      values: per player `[n_p]`, what a best response gets at each of its root information sets against it, in chips of
        the whole game weighted as counterfactual values are.
    """

    number: int
    profile: Profile
    values: tuple[np.ndarray, np.ndarray]


class CFRDSolution:
    """The result of `cfr_d`; never changes.

    Attributes:
      decomposition: of the game.
      state: of the trunk's run.
      variant: the trunk's regret variant.
      seconds: wall-clock time of all iterations so far, compilation included, evaluations not.
      solver: what solved the subgames in the last of them, or its text after `load`; None where none was done.
    """

    def __init__(
        self,
        decomposition: Decomposition,
        state: SolverState,
        variant: RegretVariant,
        seconds: float = 0.0,
        solver: SubgameSolver | str | None = None,
    ) -> None:
        """Not called by users."""
        self.decomposition = decomposition
        self.state = state
        self.variant = variant
        self.seconds = seconds
        self.solver = solver

    def __repr__(self) -> str:
        return f"CFRDSolution({self.decomposition.name!r}, t={self.t})"

    @property
    def t(self) -> int:
        """Iterations of the trunk so far."""
        return int(self.state.t)

    @functools.cached_property
    def trunk_strategy(self) -> Strategy:
        """The trunk's average strategy, in the layout of `decomposition.lowered.tree`."""
        return average_strategy(self.decomposition.lowered.tree, self.state)

    @functools.cached_property
    def trunk_profile(self) -> Profile:
        """The same by information-set keys."""
        return Profile.from_strategy(
            self.decomposition.lowered, self.trunk_strategy, variant=self.variant, iterations=self.t
        )

    @functools.cached_property
    def root_values(self) -> Pair:
        """Per player `[n_p]`, the average counterfactual values of its root information sets, in chips.

        Payoffs are taken relative to `decomposition.source.centre`.
        """
        return trunks.average_root_values(self.decomposition.trunk, self.state)

    @functools.cached_property
    def value(self) -> np.ndarray:
        """`[2]`, the average of what both players got by the root values; in an equilibrium, the value of the game."""
        assert self.state.joint is not None
        dtype = self.decomposition.dtype
        total = averages.total(self.state.joint.total, dtype)
        payoffs = averages.total(self.state.joint.payoffs, dtype) / jnp.where(total > 0, total, 1)
        return np.asarray(payoffs, np.float64) + np.array(self.decomposition.source.centre)

    @functools.cached_property
    def regrets(self) -> np.ndarray:
        """`[2]`, both players' average regret in the trunk, in chips; with simultaneous updates.

        What the best fixed strategy of the trunk would have got on average, by the root values met, less `value`. With
        uniform averages (`vanilla`) this is the trunk's part R / T of the paper's Theorem 2, which bounds it by
        `D N sqrt(A / T)` for a range D of payoffs, N information sets of at most A actions in the trunk, and the error
        of the subgames' solutions.
        """
        best = trunks.best_response_values(self.decomposition.trunk, self.trunk_strategy, self.root_values)
        return np.asarray(best, np.float64) + np.array(self.decomposition.source.centre) - self.value

    @functools.cached_property
    def _reach(self) -> Pair:
        return trunks.trunk_reach(self.decomposition.trunk, self.trunk_strategy)

    # Subgames

    def resolve(
        self,
        where: int | Sequence[Hashable],
        iterations: int = 1000,
        variant: RegretVariant | None = None,
        *,
        updates: Updates = "alternating",
    ) -> ResolvedSubgame:
        """Solves a subgame again, for each player against an opponent who may have its average root values instead.

        Args:
          where: its number, or a path into it: actions and outcomes of chance from the root of the game on.
          iterations, variant, updates: as in `jaxcfr.solve`.

        Raises:
          SubgameError: the path ends in the trunk.
          OptionError: an argument makes no sense.
        """
        number = self.decomposition.find(where)
        variant = _checked(iterations, variant, updates)
        batch = self.decomposition.batch_of([number])
        rows, values = [], []
        for player in (1, 0):
            strategy, found = self._resolve(batch, player, iterations, variant, updates)
            rows.append(strategy[:, 0])
            values.append(np.asarray(found[:, 0]))
        named = self._named(number, (rows[0], rows[1]))
        profile = Profile.from_infosets(
            f"subgame {number} of {self.decomposition.name}", named, variant=variant, iterations=iterations
        )
        return ResolvedSubgame(number, profile, (values[1], values[0]))

    def _resolve(
        self, batch: Batch, opponent: int, iterations: Any, variant: RegretVariant, updates: Updates
    ) -> tuple[Array, Array]:
        """For the other player, `[L_p, B]`, its strategy; and `[n, B]`, the opponent's best-response values."""
        subtree = self.decomposition.batch_tree(batch, opponent)
        player = 1 - opponent
        reach = self._reach[player][batch.classes[player]]
        stop = self.root_values[opponent][batch.classes[opponent]]
        return _resolve_batch(subtree, reach, stop, variant, jnp.int32(iterations), updates)

    def _named(self, number: int, strategy: tuple[Array, Array]) -> list[list[Any]]:
        """Strategies in the layout of the gadgets' trees by information-set keys."""
        piece = self.decomposition.source.piece(number)
        named: list[list[Any]] = []
        for player in range(2):
            lowered = piece.lowered(self.decomposition.dtype, 1 - player)
            own = len(lowered.infoset_keys[player]) - piece.num_roots[player]
            indices, offsets = lowered.tree.treeplexes[player].sequence_indices()
            values = np.maximum(np.asarray(strategy[player], np.float64)[indices], 0)
            probabilities = np.split(values, offsets[1:-1])[:own]
            named.append(
                [
                    (key, actions, labels, row / row.sum())
                    for key, actions, labels, row in zip(
                        lowered.infoset_keys[player][:own],
                        lowered.actions[player][:own],
                        lowered.action_labels[player][:own],
                        probabilities,
                        strict=True,
                    )
                ]
            )
        return named

    def _each(
        self, iterations: Any, variant: RegretVariant, updates: Updates
    ) -> Iterator[tuple[Batch, tuple[Array, Array], tuple[Array, Array]]]:
        """All batches, re-solved: their strategies and best-response values."""
        cut, before = self.decomposition, b""
        for batch in cut.batches(variant):
            shape = cut.subgames[batch.members[0]].structure
            if cut.memory_limit is not None and shape != before:
                # Compiled programs may take more memory than everything else.
                _resolve_batch.clear_cache()  # type: ignore[attr-defined]
            before = shape
            second, of_first = self._resolve(batch, 0, iterations, variant, updates)
            first, of_second = self._resolve(batch, 1, iterations, variant, updates)
            yield batch, (first, second), (of_first, of_second)

    def to_profile(
        self, iterations: int = 1000, variant: RegretVariant | None = None, *, updates: Updates = "alternating"
    ) -> Profile:
        """The strategy for the whole game, all subgames solved again; for games small enough to hold it.

        Args:
          iterations, variant, updates: of re-solving.
        """
        variant = _checked(iterations, variant, updates)
        lowered = self.decomposition.lowered
        named: tuple[list[Any], list[Any]] = ([], [])
        for player in range(2):
            rows = lowered.probabilities(self.trunk_strategy, player)
            for key, actions, labels, row in zip(
                lowered.infoset_keys[player], lowered.actions[player], lowered.action_labels[player], rows, strict=True
            ):
                values = np.maximum(row.astype(np.float64), 0)
                named[player].append((key, actions, labels, values / values.sum()))
        for batch, strategy, _ in self._each(iterations, variant, updates):
            for column, number in enumerate(dict.fromkeys(batch.members)):
                found = self._named(number, (strategy[0][:, column], strategy[1][:, column]))
                for player in range(2):
                    named[player].extend(found[player])
        return Profile.from_infosets(self.decomposition.name, named, variant=self.variant, iterations=self.t)

    def best_response_values(
        self, iterations: int = 1000, variant: RegretVariant | None = None, *, updates: Updates = "alternating"
    ) -> np.ndarray:
        """`[2]`, what each player gets by a best response to the whole strategy, which is never held whole.

        A batch of subgames at a time is solved again, and forgotten when the best response has passed through it.

        Args:
          iterations, variant, updates: of re-solving.
        """
        variant = _checked(iterations, variant, updates)
        values = [np.zeros(count) for count in self.decomposition.num_root_infosets]
        for batch, _, found in self._each(iterations, variant, updates):
            for player in range(2):
                values[player][batch.classes[player]] = np.asarray(found[player])
        given = tuple(jnp.asarray(own, self.decomposition.dtype) for own in values)
        best = trunks.best_response_values(self.decomposition.trunk, self.trunk_strategy, (given[0], given[1]))
        return np.asarray(best, np.float64) + np.array(self.decomposition.source.centre)

    def nash_conv(
        self, iterations: int = 1000, variant: RegretVariant | None = None, *, updates: Updates = "alternating"
    ) -> float:
        """The sum of both players' gains from a best response to the whole strategy; see `best_response_values`."""
        best = self.best_response_values(iterations, variant, updates=updates)
        return max(float(best.sum() - sum(self.decomposition.source.centre)), 0.0)

    def exploitability(
        self, iterations: int = 1000, variant: RegretVariant | None = None, *, updates: Updates = "alternating"
    ) -> float:
        """NashConv / 2 of the whole strategy, in chips; see `best_response_values`."""
        return self.nash_conv(iterations, variant, updates=updates) / 2

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the solution to one file, a checkpoint; the one that was there before stays beside it.

        It holds the trunk's run and the average root values, nothing of any subgame's strategy.

        Raises:
          CheckpointError: it cannot be written there.
        """
        variant = None
        with contextlib.suppress(CheckpointError):  # one of the user's own, which `load` is then told
            variant = checkpoint.encode_setting(self.variant)
        facts = {
            "kind": KIND,
            "game": self.decomposition.name,
            "decomposition": fingerprint(self.decomposition),
            "variant": variant,
            "seconds": self.seconds,
            "solver": None if self.solver is None else str(self.solver),
        }
        arrays = {name: array[None] for name, array in checkpoint.arrays_of(self.state).items()}
        checkpoint.write(path, facts, arrays)

    @staticmethod
    def load(
        path: str | os.PathLike[str], decomposition: Decomposition, variant: RegretVariant | None = None
    ) -> CFRDSolution:
        """Reads what `save` wrote.

        Args:
          path: of the file.
          decomposition: of the same game, with the same cut.
          variant: the trunk's; None for what the file says, where that is one of the library's own.

        Raises:
          CheckpointError: there is no such file, it is damaged, or of another game, cut, dtype or variant.
        """
        shown = path_text(path, CheckpointError)
        facts, arrays = checkpoint.read(path)
        checkpoint.require_kind(shown, facts, KIND)
        if facts.get("decomposition") != fingerprint(decomposition):
            raise CheckpointError(
                f"{shown}: a solution of {facts.get('game')} with another cut, dtype or game than this decomposition "
                f"of {decomposition.name}"
            )
        with checkpoint.restoring(shown):
            if variant is None:
                variant = checkpoint.decode_setting(facts["variant"])
            if not isinstance(variant, RegretVariant):
                raise CheckpointError("its variant is none of the library's: give variant=")
            state = checkpoint.state_from(trunks.begin(decomposition.trunk, variant), arrays, 1)
            seconds = float(facts["seconds"])
            solver = facts["solver"]
        return CFRDSolution(decomposition, jax.tree.map(lambda leaf: leaf[0], state), variant, seconds, solver)

    def state_for(self, decomposition: Decomposition, variant: RegretVariant) -> SolverState:
        """The state, to go on from.

        Raises:
          SolverError: it is of another game, or of a variant that stores other things.
        """
        if self.decomposition is not decomposition and fingerprint(self.decomposition) != fingerprint(decomposition):
            raise SolverError(
                f"this is a solution of {self.decomposition.name} with another cut, dtype or game than this "
                f"decomposition of {decomposition.name}"
            )
        template = jax.eval_shape(trunks.begin, decomposition.trunk, variant)
        if str(jax.tree.structure(template)) != str(jax.tree.structure(self.state)):
            raise SolverError(
                f"the solution was made with {type(self.variant).__name__}, and {type(variant).__name__} stores other "
                "things: go on with the same trunk_regret"
            )
        return self.state


def fingerprint(decomposition: Decomposition) -> str:
    """A digest of what a decomposition is: trunk, subgames and their payoffs, dtype."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((decomposition.name, decomposition.num_root_infosets, str(decomposition.dtype))).encode())
    for leaf in jax.tree.leaves(decomposition.trunk):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    for subgame in decomposition.subgames:
        digest.update(subgame.structure + subgame.numbers)
    return digest.hexdigest()


def _checked(iterations: Any, variant: RegretVariant | None, updates: Any) -> RegretVariant:
    check_iterations(iterations)
    if iterations < 1:
        raise OptionError("iterations has to be at least 1")
    check_updates(updates)
    variant = dcfr_plus() if variant is None else variant
    check_variant(variant)
    return variant


@functools.partial(jax.jit, static_argnames="updates")
def _resolve_batch(
    subtree: Subtree, reach: Array, stop: Array, variant: RegretVariant, iterations: Array, updates: Updates
) -> tuple[Array, Array]:
    """The re-solving games of a batch: the player's strategy, and the opponent's best-response values."""
    opponent = subtree.opponent
    given = (reach, jnp.ones_like(stop)) if opponent else (jnp.ones_like(stop), reach)
    strategy, _ = solve_reached(subtree, given, variant, iterations, updates, stop)
    return strategy[1 - opponent], root_values(subtree, given, strategy)[opponent]
