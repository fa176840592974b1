"""The command `jaxcfr`: solve games, look at games and profiles, and play.

Results go to standard output, progress and messages to standard error. Exit
statuses: 0; 2 for anything wrong with what the user gave, with one line on
standard error; 130 after Ctrl-C (143 after a request to terminate).

Whatever needs JAX or rich is imported by the command that needs it.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import io
import itertools
import json
import logging
import math
import os
import shlex
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jaxcfr.errors import (
    ChanceNotEnumerableError,
    CheckpointError,
    GameTooLargeError,
    HorizonError,
    JaxCFRError,
    OptionError,
)
from jaxcfr.files import require_writable
from jaxcfr.games.base import game_name
from jaxcfr.games.registry import list_games, load_game
from jaxcfr.interrupts import Interrupts, watch_signals
from jaxcfr.progress import ProgressBar, printable, progress_bar

if TYPE_CHECKING:
    from jaxcfr.decomposition import CFRDSolution
    from jaxcfr.play import UniformPlayer
    from jaxcfr.profile import InfosetStrategy, Profile
    from jaxcfr.regret.variants import RegretVariant
    from jaxcfr.trainer import Trainer
    from jaxcfr.traversal.base import Traversal
    from jaxcfr.tree.lower import LoweredGame

DEFAULT_EVALUATIONS = 10
"""How often `solve` evaluates unless --eval-every says otherwise."""

FITTING_NODES = 300_000
"""Histories of a game that is looked at as a whole before it is played against a profile of another name."""

MAX_ITERATIONS = 2**31 - 1  # the solver counts in int32
CACHE_FROM_SECONDS = 0.5  # programs that take longer to compile are kept on disk
PIPE_WIDTH = 200  # columns of tables that do not go to a terminal
BAR_WIDTH = 40  # columns of a bar, at most
STEP_SECONDS = 0.2  # of cfr-d, between looks at the keyboard and at the clock


class Updates(StrEnum):
    """Values of --updates."""

    alternating = "alternating"
    simultaneous = "simultaneous"
    best_response = "best_response"


class Algorithm(StrEnum):
    """Values of --algorithm."""

    full_tree = "full_tree"
    external_sampling = "external_sampling"
    chance_sampling = "chance_sampling"
    outcome_sampling = "outcome_sampling"


class Dtype(StrEnum):
    """Values of --dtype."""

    float32 = "float32"
    float64 = "float64"


def _integer(low: int, high: int | None = None) -> Callable[[Any], int]:
    """Reads the integer of an option: typer's own words for what is wrong are made for programs."""
    bounds = f"from {low:,} to {high:,}" if high is not None else f"of at least {low:,}"

    def parse(text: Any) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if value < low or (high is not None and value > high):
            raise typer.BadParameter(f"it has to be an integer {bounds}, not {text}")
        return value

    return parse


def _complete_game(incomplete: str) -> list[tuple[str, str]]:
    """Names of games; where none begins so the shell offers its files."""
    return [(info.name, info.description) for info in list_games() if info.name.startswith(incomplete)]


def _complete_regret(incomplete: str) -> list[str]:
    """Names of regret variants, and after the colon the arguments they have."""
    from jaxcfr.regret.variants import VARIANTS

    name, colon, rest = incomplete.partition(":")
    if not colon:
        return [known for known in VARIANTS if known.startswith(name)]
    begun, comma, last = rest.rpartition(",")
    parameters = inspect.signature(VARIANTS[name]).parameters if name in VARIANTS else ()
    before = f"{name}:{begun}{comma}"
    return [f"{before}{parameter}=" for parameter in parameters if parameter.startswith(last)]


def _complete_one_of(choices: type[StrEnum]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [choice.value for choice in choices if choice.value.startswith(incomplete)]

    return complete


def _complete_player(incomplete: str) -> list[str]:
    return ["uniform"] if incomplete and "uniform".startswith(incomplete) else []


def _any_integer(text: Any) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"it has to be an integer, not {text}") from None


def _number(text: Any) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"it has to be a number, not {text}") from None


def _one_of(choices: type[StrEnum]) -> Callable[[Any], Any]:
    """Reads an option with a few allowed values."""

    def parse(text: Any) -> Any:
        try:
            return choices(text)
        except ValueError:
            raise typer.BadParameter(f"it has to be {' or '.join(choices)}, not {text}") from None

    return parse


app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Compiled programs are kept in $XDG_CACHE_HOME/jaxcfr or ~/.cache/jaxcfr, so that later runs start faster. "
    "JAX_COMPILATION_CACHE_DIR names another directory; where it is set and empty, nothing is kept.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

GameArgument = Annotated[
    str,
    typer.Argument(
        metavar="GAME",
        autocompletion=_complete_game,
        help="A name with options in brackets, such as 'kuhn_poker(players=3)', the path of a game file (Gambit's "
        ".efg and .nfg, jaxcfr's .json), or a game of OpenSpiel, such as 'openspiel:tiny_hanabi'; 'jaxcfr games' lists "
        "the names.",
    ),
]
ProfileArgument = Annotated[str, typer.Argument(metavar="PROFILE", help="A file written by 'jaxcfr solve --out'.")]
PlayerArgument = Annotated[
    str,
    typer.Argument(
        metavar="PROFILE",
        autocompletion=_complete_player,
        help="A file written by 'jaxcfr solve --out', or 'uniform': every legal action is equally likely.",
    ),
]
IterationsOption = Annotated[
    int,
    typer.Option("--iterations", "-n", parser=_integer(0, MAX_ITERATIONS), metavar="N", help="How many iterations."),
]
RegretOption = Annotated[
    str,
    typer.Option(
        metavar="NAME:ARG=VALUE,...",
        autocompletion=_complete_regret,
        help="The regret variant with its hyperparameters, for example dcfr_plus:alpha=1.5,gamma=4 or "
        "hs_dcfr:gamma_init=30 (whose total is by default the number of iterations).",
    ),
]
UpdatesOption = Annotated[
    Updates,
    typer.Option(
        parser=_one_of(Updates),
        autocompletion=_complete_one_of(Updates),
        metavar="alternating|simultaneous|best_response",
        help="Whether players update one after the other, all at once, or each against a best response to itself "
        "(CFR-BR; two players).",
    ),
]
DtypeOption = Annotated[
    Dtype | None,
    typer.Option(
        parser=_one_of(Dtype),
        autocompletion=_complete_one_of(Dtype),
        metavar="float32|float64",
        help="Precision; where no default is shown it is float32, or float64 where JAX_ENABLE_X64 is set.",
    ),
]
EvalEveryOption = Annotated[
    int | None,
    typer.Option(
        parser=_integer(1),
        metavar="N",
        help="Iterations between evaluations; by default there are 10 in all, and for a curve they are after 1, 2, 5, "
        "10, 20, ... iterations.",
    ),
]
TargetOption = Annotated[
    float | None,
    typer.Option(
        "--target-exploitability",
        parser=_number,
        metavar="X",
        help="Stop at the first evaluation with an exploitability of at most this, in units of payoff; two-player "
        "constant-sum games only.",
    ),
]
CheckpointOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Write all that is needed to go on into this file, at every evaluation, at the end, and after Ctrl-C; "
        "the one before it stays as FILE.previous.",
    ),
]
ResumeOption = Annotated[
    bool,
    typer.Option(
        "--resume", help="Go on from the file of --checkpoint, if it is there; --iterations counts from the beginning."
    ),
]
SeedOption = Annotated[
    int | None, typer.Option(parser=_integer(0), metavar="INTEGER", help="Of all that is drawn by chance.")
]
MaxNodesOption = Annotated[
    int | None,
    typer.Option(
        parser=_integer(1),
        metavar="N",
        help="Refuse games with more histories than this; by default 10,000,000.",
    ),
]
JSONOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else: one object a line.")]


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Counterfactual regret minimization in JAX: equilibria of games of imperfect information."""
    if version:
        from jaxcfr import __version__

        _write(f"jaxcfr {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        _write(context.get_help() + "\n")


@app.command()
def solve(
    game: GameArgument,
    iterations: IterationsOption = 1000,
    regret: RegretOption = "dcfr_plus",
    algorithm: Annotated[
        Algorithm,
        typer.Option(
            parser=_one_of(Algorithm),
            autocompletion=_complete_one_of(Algorithm),
            metavar="NAME",
            help="Where counterfactual regrets come from: full_tree, or external_sampling, chance_sampling or "
            "outcome_sampling, which visit only a part of the tree in each iteration.",
        ),
    ] = Algorithm.full_tree,
    batch: Annotated[
        int | None,
        typer.Option(
            parser=_integer(1, 2**24),
            metavar="N",
            help="Walks of each player and iteration, for the sampling algorithms; by default 256, and 1 for "
            "chance_sampling.",
        ),
    ] = None,
    exploration: Annotated[
        float | None,
        typer.Option(
            parser=_number,
            metavar="X",
            help="For outcome_sampling: how often the updating player draws its action uniformly; by default 0.6.",
        ),
    ] = None,
    chance_samples: Annotated[
        int | None,
        typer.Option(
            parser=_integer(1, 64),
            metavar="K",
            help="For chance_sampling: how many outcomes are drawn at each chance move; by default 1.",
        ),
    ] = None,
    updates: UpdatesOption = Updates.alternating,
    dtype: DtypeOption = None,
    seed: Annotated[
        int | None,
        typer.Option(
            parser=_any_integer,
            metavar="INTEGER",
            help="Of the random numbers, from 0 to 2**32 - 1; recorded in the profile. Solving the whole tree is "
            "deterministic, so there nothing else depends on it.",
        ),
    ] = None,
    eval_every: EvalEveryOption = None,
    target_exploitability: TargetOption = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Save the average strategy as a profile, also after Ctrl-C."),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Draw the evaluations as a curve into this file (.png, .svg or .pdf), also after Ctrl-C; needs "
            "matplotlib.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            parser=_integer(1, 2**16),
            metavar="W",
            help="For sampling: so many independent runs of all iterations, over all devices, whose averages are "
            "averaged; by default 1.",
        ),
    ] = None,
    split: Annotated[
        bool,
        typer.Option(
            "--split", help="Divide the iterations over the workers instead: one window of the timeline for each."
        ),
    ] = False,
    checkpoint: CheckpointOption = None,
    resume: ResumeOption = False,
    lock: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Fix the strategy at the information sets in this file, and solve the rest: a profile, or JSON such "
            'as {"0": {"key": {"action": 0.3, ...}}}, by player, key (as jaxcfr show writes it) and action. NashConv '
            "is then that of the game in which nobody deviates there.",
        ),
    ] = None,
    as_json: JSONOption = False,
    max_nodes: MaxNodesOption = None,
) -> int:
    """Solve GAME by counterfactual regret minimization and evaluate the average strategy.

    Seconds are wall-clock time since solving began, compilation and evaluations included.
    """
    variant, _ = parse_regret(regret, iterations)
    traversal = _traversal(algorithm, batch, exploration, chance_samples)
    if traversal.samples:
        from jaxcfr.traversal.randomness import as_key

        as_key(seed or 0)
    elif workers is not None and workers > 1:
        raise OptionError("--workers needs an --algorithm that samples: with full_tree all would do the same")
    if split and (workers is None or workers < 2):
        raise OptionError("--split divides the iterations over --workers, of which there have to be at least 2")
    if split and (target_exploitability is not None or eval_every is not None):
        raise OptionError("--split is evaluated at its end only: without --eval-every and --target-exploitability")
    _check_target(target_exploitability)
    from jaxcfr.prescribed import read_locks

    root = load_game(game)
    if out is not None:
        require_writable(out)
    if plot is not None:
        from jaxcfr.plotting.common import check_path

        check_path(plot)
    if checkpoint is not None:
        require_writable(checkpoint, CheckpointError)
    _require_different(game, {"--out": out, "--plot": plot, "--lock": lock}, checkpoint)
    _check_resume(resume, checkpoint)
    with _precision(dtype):
        device = _device()
        with progress_bar() as progress:
            progress.start(f"lowering {game_name(root)}")
            lowered = _lower(root, dtype, max_nodes)
        _require_target(lowered, target_exploitability)
        if out is not None:
            from jaxcfr.profile import require_storable

            require_storable(lowered)
        trainer = _trainer(
            lowered,
            {
                "algorithm": traversal,
                "regret": variant,
                "seed": seed or 0,
                "workers": workers or 1,
                "updates": updates.value,
                "locked": None if lock is None else read_locks(lock, lowered),
            },
            checkpoint if resume else None,
        )
        _check_counted(checkpoint, trainer.iterations_done, iterations)
        _tell_resumed(checkpoint, trainer.iterations_done, iterations)
        if as_json:
            _note(f"solving {lowered.name} in {lowered.tree.dtype} on {device}")
        run = _Run(
            lowered=lowered,
            trainer=trainer,
            iterations=iterations,
            split=split,
            every=eval_every or (None if plot else max(1, math.ceil(iterations / DEFAULT_EVALUATIONS))),
            target=target_exploitability,
            seed=seed,
            out=out,
            plot=plot,
            checkpoint=checkpoint,
            locked=lock is not None,
            as_json=as_json,
        )
        run.run()
        if not as_json:
            run.write_report(device)
    if run.stopped_by is None:
        return 0
    told = [f"the average so far is saved in {out}"] if run.saved else []
    if checkpoint is not None and not split:
        told.append(f"{checkpoint} goes on from here")
    saved = " and ".join(told) or "nothing is saved"
    if plot is not None:
        saved += f"; the curve is drawn in {plot}" if run.drawn else "; no curve is drawn, for nothing was evaluated"
    _note(f"stopped after {_count(trainer.iterations_done, 'iteration')}; {saved}")
    return 128 + run.stopped_by


@app.command()
def report(
    context: typer.Context,
    game: GameArgument,
    out: Annotated[str, typer.Option(metavar="FILE", help="The page to write; one that is there is replaced.")],
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="PROFILE",
            help="Report on this file, written by 'jaxcfr solve --out', which knows of no curve; else GAME is solved.",
        ),
    ] = None,
    iterations: IterationsOption = 1000,
    regret: RegretOption = "dcfr_plus",
    updates: UpdatesOption = Updates.alternating,
    eval_every: EvalEveryOption = None,
    target_exploitability: TargetOption = None,
    dtype: DtypeOption = Dtype.float64,
    max_nodes: MaxNodesOption = None,
) -> int:
    """Write a page about GAME and a strategy: facts, convergence, exploitability, every information set.

    The page is one HTML file that needs no network. After Ctrl-C it is about the average strategy so far.
    """
    from jaxcfr.profile import Profile
    from jaxcfr.report import write_report

    if profile is not None:
        solving = ("iterations", "regret", "updates", "eval_every", "target_exploitability")
        given = [name for name in solving if _was_given(context, name)]
        if given:
            name = given[0].replace("_", "-")
            raise OptionError(f"--{name} is for solving, and --profile gives a strategy that is there: choose one")
    variant, _ = parse_regret(regret, iterations)
    _check_target(target_exploitability)
    loaded = None if profile is None else Profile.load(profile)
    root = load_game(game)
    require_writable(out, OptionError)
    _require_different(game, {"--out": out, "--profile": profile})
    value = root.nash_value() if hasattr(root, "nash_value") else None
    with _precision(dtype):
        device = _device()
        with progress_bar() as progress:
            progress.start(f"lowering {game_name(root)}")
            lowered = _lower(root, dtype, max_nodes)
        made = {"command": shlex.join(["jaxcfr", *context.obj]), "device": device}
        if loaded is not None:
            write_report(out, lowered, loaded, nash_value=value, made=made)
            _write(f"The report is written to {printable(out)}; it is computed in {lowered.tree.dtype}.\n")
            return 0
        _require_target(lowered, target_exploitability)
        settings = {"algorithm": _traversal(Algorithm.full_tree, None, None, None), "regret": variant, "workers": 1}
        trainer = _trainer(lowered, settings | {"updates": updates.value}, None)
        run = _Run(lowered, trainer, iterations, every=eval_every, target=target_exploitability)
        run.run()
        begun = run.stopped_by is None or trainer.iterations_done > 0
        if begun:
            write_report(out, trainer, nash_value=value, made=made)
    told = f"the report is written to {out}; it is computed in {lowered.tree.dtype}"
    written = told if begun else "no report is written"
    if run.stopped_by is None:
        _write(f"{printable(written[:1].upper() + written[1:])}.\n")
        return 0
    _note(f"stopped after {_count(trainer.iterations_done, 'iteration')}; {written}")
    return 128 + run.stopped_by


def _was_given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _check_resume(resume: bool, checkpoint: str | None) -> None:
    """Refuses to resume from nothing, and to write a new run over one that is there."""
    if resume and checkpoint is None:
        raise OptionError("--resume goes on from the file that --checkpoint names")
    if checkpoint is not None and not resume and os.path.isfile(checkpoint):
        raise OptionError(
            f"{checkpoint} is there already: with --resume the run in it goes on; to begin another, name another file, "
            "or delete it"
        )


def _check_counted(checkpoint: str | None, done: int, iterations: int) -> None:
    if done > iterations:
        raise OptionError(
            f"{checkpoint} has done {_count(done, 'iteration')}, and --iterations is {iterations}: it counts from the "
            "beginning"
        )


def _tell_resumed(checkpoint: str | None, done: int, iterations: int) -> None:
    if done == iterations > 0:
        _note(f"{checkpoint} has done {_count(done, 'iteration')}, as many as --iterations asks for: no more are done")
    elif done:
        _note(f"going on from {checkpoint}, after {_count(done, 'iteration')}")


@app.command("cfr-d")
def solve_decomposed(
    game: GameArgument,
    cut: Annotated[
        str,
        typer.Option(metavar="DEPTH|round", help="Where subgames begin: a depth, or the end of the first round."),
    ],
    iterations: IterationsOption = 1000,
    subgame_iterations: Annotated[
        int, typer.Option(parser=_integer(1, MAX_ITERATIONS), metavar="N", help="Of each subgame in each of them.")
    ] = 100,
    resolve_iterations: Annotated[
        int,
        typer.Option(parser=_integer(1, MAX_ITERATIONS), metavar="N", help="Of subgames solved again, to evaluate."),
    ] = 1000,
    regret: RegretOption = "dcfr_plus",
    subgame_regret: Annotated[
        str,
        typer.Option(
            metavar="NAME:ARG=VALUE,...", autocompletion=_complete_regret, help="The subgames' regret variant."
        ),
    ] = "dcfr_plus",
    memory: Annotated[
        float | None,
        typer.Option(
            parser=_number,
            metavar="MB",
            help="Limit for the trees of subgames and for solving them; beyond it they are lowered when needed.",
        ),
    ] = None,
    dtype: DtypeOption = None,
    eval_every: EvalEveryOption = None,
    target_exploitability: TargetOption = None,
    checkpoint: CheckpointOption = None,
    resume: ResumeOption = False,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Save the whole strategy, all subgames solved again, as a profile."),
    ] = None,
    as_json: JSONOption = False,
) -> int:
    """Solve GAME by decomposition (CFR-D): a trunk, and subgames that are solved in each of its iterations.

    Iterations and the regret variant are the trunk's. Seconds are those of all iterations so far, compilation included
    and evaluations not.
    """
    import jax.numpy as jnp

    from jaxcfr.decomposition import CFRDSolution, cfr_d, decompose
    from jaxcfr.decomposition.solvers import CFRSolver
    from jaxcfr.regret.text import describe

    variant, described = parse_regret(regret, iterations)
    inner, inner_described = parse_regret(subgame_regret, subgame_iterations)
    try:
        where: int | str = cut if cut == "round" else int(cut)
    except ValueError:
        raise OptionError(f"--cut has to be a depth or round, not {cut}") from None
    if memory is not None and not 1e-6 <= memory < 1e12:
        raise OptionError(f"--memory has to be a positive number of megabytes, of at least one byte, not {memory:g}")
    _check_target(target_exploitability)
    root = load_game(game)
    if checkpoint is not None:
        require_writable(checkpoint, CheckpointError)
    if out is not None:
        require_writable(out)
    _require_different(game, {"--out": out}, checkpoint)
    _check_resume(resume, checkpoint)
    with _precision(dtype):
        device = _device()
        with progress_bar() as progress:
            progress.start(f"decomposing {game_name(root)}")
            limit = None if memory is None else int(memory * 1e6)
            decomposition = decompose(root, where, memory_limit=limit, dtype=None if dtype is None else dtype.value)
        solution, solver = None, CFRSolver(inner, jnp.int32(subgame_iterations), 0.0, "alternating", False)
        if resume and checkpoint is not None and os.path.exists(checkpoint):
            solution = CFRDSolution.load(checkpoint, decomposition)
            _check_counted(checkpoint, solution.t, iterations)
            if (found := describe(solution.variant)) != described:
                raise OptionError(
                    f"{checkpoint} has {found} in the trunk, and --regret is {described}: give the same options"
                )
            if solution.solver not in (None, str(solver)):
                raise OptionError(
                    f"{checkpoint} solves subgames by {solution.solver}, and this command by {solver}: give the same "
                    "options"
                )
            _tell_resumed(checkpoint, solution.t, iterations)
        how = (
            f"{described} in the trunk, {inner_described} in {_count(subgame_iterations, 'iteration')} of each "
            f"subgame, {decomposition.dtype} on {device}"
        )
        if as_json:
            _note(f"solving {decomposition.name} by CFR-D: {how}")
        else:
            _write("".join(f"{printable(line)}\n" for line in [*decomposition.report().split("\n"), how]))
        run = _DecomposedRun(
            solution=solution,
            advance=lambda count, found: cfr_d(
                decomposition, count, trunk_regret=variant, solver=solver, solution=found
            ),
            name=decomposition.name,
            iterations=iterations,
            resolve_iterations=resolve_iterations,
            every=eval_every or max(1, math.ceil(iterations / DEFAULT_EVALUATIONS)),
            target=target_exploitability,
            checkpoint=checkpoint,
            out=out,
            as_json=as_json,
        )
        run.run()
    if not as_json:
        run.write_report()
    if run.stopped_by is None:
        return 0
    told = [f"the whole strategy is saved in {out}"] if run.saved else []
    if run.kept:
        told.append(f"{checkpoint} goes on from {'here' if run.kept == run.done else _count(run.kept, 'iteration')}")
    _note(f"stopped after {_count(run.done, 'iteration')}; {' and '.join(told) or 'nothing is saved'}")
    return 128 + run.stopped_by


@app.command()
def games(as_json: JSONOption = False) -> None:
    """List the games that can be named, with their options."""
    if as_json:
        for info in list_games():
            options = [
                {
                    "name": option.name,
                    "type": option.type.__name__,
                    "default": _plain(option.default),
                    "allowed": option.allowed,
                    "help": option.help,
                }
                for option in info.options
            ]
            _write(_json_line({"name": info.name, "description": info.description, "options": options}))
        return
    rows = []
    for info in list_games():
        rows.append([info.name, info.description])
        for option in info.options:
            default = "" if option.default is None else f"={option.default}"
            rows.append([f"  {option.name}{default}", f"{option.help} ({option.allowed})"])
    _write_table(["game, options", ""], rows)
    _write("Options go in brackets: 'goofspiel(num_cards=4,imp_info=True)'. ")
    _write(
        "The path of a game file (.efg, .nfg, .json) is a game too, and so is openspiel:NAME, a game of OpenSpiel.\n"
    )


@app.command()
def info(
    game: GameArgument,
    as_json: JSONOption = False,
    max_nodes: MaxNodesOption = None,
) -> None:
    """Show the size of GAME: players, histories, information sets, depth, payoffs, memory."""
    from jaxcfr.facts import payoff_range, payoff_sum, per_player
    from jaxcfr.solve import solve_bytes

    root = load_game(game)
    device = _device()
    lowered = _lower(root, None, max_nodes)
    tree = lowered.tree
    low, high = payoff_range(tree)
    value = root.nash_value() if hasattr(root, "nash_value") else None
    facts: dict[str, Any] = {
        "game": lowered.name,
        "players": tree.num_players,
        "payoff_sum": payoff_sum(tree),
        "histories": tree.num_histories,
        "terminals": tree.num_terminals,
        "depth": tree.depth,
        "infosets": list(tree.num_infosets),
        "sequences": list(tree.num_sequences),
        "payoff_min": low,
        "payoff_max": high,
        "nash_value": None if value is None else [float(payoff) for payoff in value],
        "dtype": str(tree.dtype),
        "tree_bytes": tree.nbytes,
        "solve_bytes": solve_bytes(tree, by_levels=lowered.infosets is not None),
        "device": device,
    }
    if as_json:
        _write(_json_line(facts))
        return
    equilibrium = "not known" if value is None else "  ".join(f"{float(payoff):.9g}" for payoff in value)
    rows = [
        ["players", f"{tree.num_players}, {facts['payoff_sum']}"],
        ["histories", f"{tree.num_histories:,}"],
        ["terminal histories", f"{tree.num_terminals:,}"],
        ["depth", f"{tree.depth:,} (most actions on a path, chance included)"],
        ["information sets", per_player(tree.num_infosets)],
        ["sequences", per_player(tree.num_sequences) + " (the empty ones included)"],
        ["payoffs", f"{low:g} to {high:g}"],
        ["equilibrium payoffs", equilibrium],
        ["tree", f"{_bytes(tree.nbytes)} in {tree.dtype}"],
        ["solving takes about", f"{_bytes(facts['solve_bytes'])} on {device}"],
    ]
    _write(f"{printable(lowered.name)}\n")
    _write_table(None, rows)


@app.command()
def convert(
    game: Annotated[
        str, typer.Argument(metavar="A", autocompletion=_complete_game, help="The game, as for 'jaxcfr info'.")
    ],
    file: Annotated[
        str,
        typer.Argument(
            metavar="B",
            help="The file to write: Gambit's .efg, jaxcfr's .json, or for a game in normal form Gambit's .nfg.",
        ),
    ],
    max_nodes: MaxNodesOption = None,
) -> None:
    """Write the game A to the file B, in the format that its name ends in; a file that is there is replaced."""
    from jaxcfr.interop import write_game
    from jaxcfr.tree.limits import MAX_NODES

    root = load_game(game)
    with _option_names():
        write_game(root, file, max_nodes=max_nodes or MAX_NODES)
    _write(f"{printable(game_name(root))} is written to {printable(file)}\n")


@app.command()
def exploit(
    game: GameArgument,
    profile: PlayerArgument,
    dtype: DtypeOption = Dtype.float64,
    as_json: JSONOption = False,
    max_nodes: MaxNodesOption = None,
) -> None:
    """Evaluate PROFILE in GAME exactly: payoffs, what each player could gain, NashConv, exploitability."""
    from jaxcfr.facts import promise
    from jaxcfr.profile import Profile
    from jaxcfr.trainer import evaluate
    from jaxcfr.tree.convert import uniform_strategy

    who = _player(profile)
    root = load_game(game)
    with _precision(dtype):
        device = _device()
        lowered = _lower(root, dtype, max_nodes)
        strategy = who.to_strategy(lowered) if isinstance(who, Profile) else uniform_strategy(lowered.tree)
        result = evaluate(lowered.tree, strategy)
    if as_json:
        _write(_json_line(result))
        return
    players = zip(result["expected_payoffs"], result["gains"], strict=True)
    made_by = printable(_made_by(who)) if isinstance(who, Profile) else "the uniform strategy"
    _write(f"{printable(lowered.name)}: {made_by}, evaluated in {dtype} on {device}\n")
    _write_table(
        ["player", "payoff", "best response", "gain"],
        [[str(p), f"{payoff:.9g}", f"{payoff + gain:.9g}", f"{gain:.6g}"] for p, (payoff, gain) in enumerate(players)],
        numbers=True,
    )
    _write(f"NashConv        {result['nash_conv']:.6g}\n")
    if result["exploitability"] is not None:
        _write(f"exploitability  {result['exploitability']:.6g}\n")
    _write("All in units of payoff. " + promise(lowered.tree) + "\n")


@app.command()
def show(
    game: GameArgument,
    profile: ProfileArgument,
    player: Annotated[
        int | None, typer.Option(parser=_any_integer, metavar="P", help="Only this player's, counted from 0.")
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Only information sets whose key contains this; or, with * for any text and ? for one character, "
            "whose whole key is like it. Upper and lower case are one.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(parser=_integer(0), metavar="N", help="At most so many information sets; 0 for all.")
    ] = 40,
    as_json: JSONOption = False,
    max_nodes: MaxNodesOption = None,
) -> None:
    """Show the strategies of PROFILE as a table with bars, after checking that it fits GAME.

    In a pipe there is neither colour nor a limit to the width, and every line has all of its cells.
    """
    from jaxcfr.profile import Profile, key_text

    loaded = Profile.load(profile)
    found = loaded.infosets(player=player, pattern=pattern)
    root = load_game(game)
    _device()
    loaded.to_strategy(_lower(root, None, max_nodes))
    shown = list(itertools.islice(found, limit or None))
    if as_json:
        for infoset in shown:
            chances = dict(zip(infoset.labels, infoset.probabilities.tolist(), strict=True))
            _write(_json_line({"player": infoset.player, "infoset": key_text(infoset.key), "strategy": chances}))
        return
    _write(f"{printable(loaded.game_name)}: {printable(_made_by(loaded))}\n")
    if shown:
        _write_strategies(shown)
    elif pattern is not None:
        _write(f"(no information set is like {printable(repr(pattern))})\n")
    else:
        _write("(no information set)\n")
    more = sum(1 for _ in found)
    if more:
        _write(f"... and {more:,} more information sets (of {len(shown) + more:,}); --limit 0 shows all\n")


@app.command()
def play(
    game: GameArgument,
    profile: PlayerArgument,
    seat: Annotated[
        int, typer.Option("--as", parser=_integer(0), metavar="P", help="The player you are, counted from 0.")
    ] = 0,
    plays: Annotated[
        int | None, typer.Option(parser=_integer(1), metavar="N", help="End after so many plays; else when you say so.")
    ] = None,
    seed: SeedOption = None,
) -> None:
    """Play GAME yourself against PROFILE, and keep the score.

    You are shown what you know at each of your decisions, and nothing else; after a play also what the others knew,
    where the game tells it. Answer with an action or its first letters; 'help' explains what you see, 'quit' or the
    end of the input ends it.
    """
    import numpy as np

    from jaxcfr.play import play_match

    others = _player(profile)
    root = load_game(game)
    players = int(root.num_players)
    if seat >= players:
        raise OptionError(f"--as {seat}: {game_name(root)} has the players 0 to {players - 1}")
    _check_fits(others, root)
    person, ended = _Person(), []
    rng = np.random.default_rng(seed)
    seats = [person if p == seat else others for p in range(players)]
    _write(f"{printable(game_name(root))}: you are player {seat}, against {printable(_called(others, profile))}.\n")
    total, done = 0.0, 0
    while plays is None or done < plays:
        _write(f"\nPlay {done + 1}\n")
        person.asked = False
        try:
            payoff = float(play_match(root, seats, None, lambda last, _: ended.append(last), rng)[seat])
            total, done = total + payoff, done + 1
            for line in _revealed(ended.pop(), seat):
                _write(f"  {line}\n")
            _write(f"You get {payoff:+g}. Your score after {_count(done, 'play')} is {total:+g}.\n")
            if not person.asked:
                person.answer("There was nothing for you to decide. Enter goes on, 'quit' ends it: ")
        except _QuitError:
            _write("\n")
            break
    if done:
        _write(f"Score {total:+g} in {_count(done, 'play')}, {total / done:+.4g} a play.\n")


@app.command()
def match(
    game: GameArgument,
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            autocompletion=_complete_player,
            help="A file written by 'jaxcfr solve --out', or 'uniform'.",
        ),
    ],
    b: Annotated[str, typer.Argument(metavar="B", autocompletion=_complete_player, help="Another one.")],
    plays: Annotated[
        int, typer.Option(parser=_integer(2), metavar="N", help="Plays in each seat, where they have to be sampled.")
    ] = 2000,
    seed: SeedOption = 0,
    as_json: JSONOption = False,
    max_nodes: MaxNodesOption = None,
) -> None:
    """Let A play GAME against B in every seat: what A gets, exactly, or from sampled plays if GAME is too large.

    In each seat in turn A sits, and B in all the others.
    """
    import numpy as np

    from jaxcfr.play import EXACT_NODES, head_to_head

    first, second = _player(a), _player(b)
    root = load_game(game)
    with _precision(Dtype.float64):
        _device()
        rng = np.random.default_rng(seed)
        found = head_to_head(root, first, second, rng, plays, max_nodes=max_nodes or EXACT_NODES, dtype="float64")
    if as_json:
        _write(
            _json_line(
                {
                    "value": found.value,
                    "by_seat": found.by_seat.tolist(),
                    "exact": found.exact,
                    "standard_error": found.standard_error,
                    "plays": found.plays,
                }
            )
        )
        return
    names = (printable(_called(first, a)), printable(_called(second, b)))
    _write(f"{printable(game_name(root))}: {names[0]} against {names[1]}\n")
    _write_table(
        ["seat of A", "payoff of A"],
        [[str(p), f"{payoff:.9g}"] for p, payoff in enumerate(found.by_seat)],
        numbers=True,
    )
    how = (
        "exactly" if found.exact else f"with a standard error of {found.standard_error:.2g} from {found.plays:,} plays"
    )
    _write(f"A gets {found.value:.9g} a play over all seats, {how}, in units of payoff.\n")


# The options in words


def parse_regret(text: str, iterations: int) -> tuple[RegretVariant, str]:
    """The variant that `--regret` names, and its full text with every hyperparameter.

    Args:
      text: see `jaxcfr.regret.text.parse_variant`.
      iterations: of the run; what `total` is where it is not given.

    Raises:
      OptionError: an unknown name or argument (lists the near ones), a missing argument, or a bad value.
      HorizonError: the run is longer than the schedules of the variant.
    """
    from jaxcfr.regret.text import describe, parse_variant

    variant = parse_variant(text, iterations)
    described = describe(variant)
    if variant.total is not None and float(variant.total) < iterations:
        raise HorizonError(
            f"{described} is defined for {float(variant.total):g} iterations, and --iterations is {iterations}: "
            "leave total out, or lower --iterations"
        )
    return variant, described


def _traversal(
    algorithm: Algorithm, batch: int | None, exploration: float | None, chance_samples: int | None
) -> Traversal:
    """The traversal that `--algorithm` names, with its options.

    Raises:
      OptionError: an option belongs to another algorithm, or has a value that makes no sense.
    """
    from jaxcfr.traversal import sampling
    from jaxcfr.traversal.base import full_tree

    given = {"batch": batch, "exploration": exploration, "chance_samples": chance_samples}
    takes: dict[Algorithm, tuple[Callable[..., Traversal], tuple[str, ...]]] = {
        Algorithm.full_tree: (full_tree, ()),
        Algorithm.external_sampling: (sampling.external_sampling, ("batch",)),
        Algorithm.chance_sampling: (sampling.chance_sampling, ("batch", "chance_samples")),
        Algorithm.outcome_sampling: (sampling.outcome_sampling, ("batch", "exploration")),
    }
    factory, names = takes[algorithm]
    for name, value in given.items():
        if value is not None and name not in names:
            owners = " and ".join(other for other, (_, its) in takes.items() if name in its)
            raise OptionError(f"--{name.replace('_', '-')} belongs to {owners}, and --algorithm is {algorithm}")
    options: dict[str, Any] = {name: given[name] for name in names if given[name] is not None}
    return factory(**options)


def _require_different(game: str, files: dict[str, str | None], checkpoint: str | None = None) -> None:
    """Raises `OptionError` if two options name one file, or one names that of the game."""
    from jaxcfr.checkpoint import PREVIOUS

    named = {"GAME": game if os.path.exists(game) else None, **files, "--checkpoint": checkpoint}
    named["the previous --checkpoint"] = None if checkpoint is None else os.path.realpath(checkpoint) + PREVIOUS
    given = [(name, path) for name, path in named.items() if path is not None]
    for (one, path), (other, second) in itertools.combinations(given, 2):
        if os.path.realpath(path) == os.path.realpath(second):
            raise OptionError(f"{one} and {other} are the same file, {second}: give them different names")


def _check_target(target: float | None) -> None:
    if target is not None and not target >= 0:
        raise OptionError(f"--target-exploitability has to be at least 0, not {target}")


def _require_target(lowered: LoweredGame, target: float | None) -> None:
    """Raises `NotTwoPlayerConstantSumError` where a target is set and means nothing."""
    if target is not None:
        from jaxcfr.analytics import require_constant_sum

        require_constant_sum(lowered.tree, "--target-exploitability", "leave it out and look at NashConv")


def _trainer(lowered: LoweredGame, settings: dict[str, Any], resume: str | None) -> Trainer:
    """The trainer of a run, from its checkpoint where there is one.

    Raises:
      OptionError: the checkpoint was made with other settings.
    """
    from jaxcfr.trainer import Trainer

    if resume is None or not os.path.exists(resume):
        return Trainer(lowered, **settings)
    trainer = Trainer.load(resume, lowered)
    fresh = Trainer(lowered, **settings)
    for name, text in (("description", "solves by"), ("workers", "has --workers"), ("seed", "has --seed")):
        found, given = getattr(trainer, name), getattr(fresh, name)
        if found != given:
            raise OptionError(f"{resume} {text} {found}, and this command {text} {given}: give the same options")
    if str(trainer.algorithm) != str(fresh.algorithm):
        raise OptionError(f"{resume} was made with {trainer.algorithm}, and this command says {fresh.algorithm}")
    if not trainer.same_locks(fresh):
        raise OptionError(f"{resume} was made with other locks than --lock gives")
    return trainer


# Games and trees


@contextlib.contextmanager
def _precision(dtype: Dtype | None) -> Iterator[None]:
    """Allows float64 for as long as a command needs it; only this process is concerned."""
    import jax

    config: Any = jax.config
    before = bool(config.jax_enable_x64)
    if dtype is Dtype.float64:
        config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        config.update("jax_enable_x64", before)


def _device() -> str:
    """The device that JAX computes on, in words."""
    import jax

    # JAX warns there if it falls back to the CPU; the command says itself where it runs.
    logging.getLogger("jax._src.xla_bridge").setLevel(logging.ERROR)
    try:
        device = jax.devices()[0]
    except (RuntimeError, AssertionError) as error:
        asked = os.environ.get("JAX_PLATFORMS")
        reason = str(error) or (f"JAX_PLATFORMS={asked} names none that is there" if asked else "it does not say why")
        raise OptionError(f"JAX finds no device to run on: {reason}") from error
    kind = str(device.device_kind)
    return device.platform if kind.lower() == device.platform else f"{device.platform} ({kind})"


def _lower(root: Any, dtype: Dtype | None, max_nodes: int | None) -> LoweredGame:
    from jaxcfr.tree.limits import MAX_NODES
    from jaxcfr.tree.lower import lower

    with _option_names():
        return lower(root, dtype=None if dtype is None else dtype.value, max_nodes=max_nodes or MAX_NODES)


@contextlib.contextmanager
def _option_names() -> Iterator[None]:
    """Messages about large games speak of the option."""
    try:
        yield
    except GameTooLargeError as error:
        message = str(error).replace("max_nodes = ", "--max-nodes ").replace("raise max_nodes", "raise --max-nodes")
        raise GameTooLargeError(message) from error


def _made_by(profile: Profile) -> str:
    made = profile.variant or "a profile"
    return made if profile.iterations is None else f"{made}, {_count(profile.iterations, 'iteration')}"


# Playing


def _player(text: str) -> Profile | UniformPlayer:
    from jaxcfr.play import UniformPlayer
    from jaxcfr.profile import Profile

    if text != "uniform" and not os.path.exists(text) and difflib.get_close_matches(text, ["uniform"], 1, 0.7):
        raise OptionError(f"there is no file {text}; did you mean uniform?")
    return UniformPlayer() if text == "uniform" else Profile.load(text)


def _check_fits(who: Profile | UniformPlayer, root: Any) -> None:
    """Tells before the first play that a profile is of another game, where the whole game can be looked at."""
    from jaxcfr.profile import Profile

    if isinstance(who, Profile) and who.game_name != game_name(root):
        with contextlib.suppress(GameTooLargeError, ChanceNotEnumerableError):
            who.to_strategy(_lower(root, None, FITTING_NODES))


def _called(who: Profile | UniformPlayer, text: str) -> str:
    from jaxcfr.profile import Profile

    return f"{text} ({_made_by(who)})" if isinstance(who, Profile) else "uniform play"


class _QuitError(Exception):
    """The person at the terminal has had enough."""


class _Person:
    """A player who is asked on the terminal, and told the key of the information set only."""

    def __init__(self) -> None:
        self.asked = False
        self._explained = False

    def act_stochastic(self, game: Any, player: int, rng: Any) -> Any:
        from jaxcfr.profile import distinct_labels

        self.asked = True
        actions = tuple(game.legal_actions())
        # What is typed has no blanks at its ends.
        labels = [
            printable(label if label and label == label.strip() else repr(label))
            for label in distinct_labels(game, actions)
        ]
        explains, ends = _word("help", labels), _word("quit", labels)
        _write(f"  You see: {printable(str(game.infoset_key(player)))}\n")
        if not self._explained:
            self._explained = True
            _write(_explanation(game, labels))
        while True:
            answer = self.answer(f"  Your action ({', '.join(labels)}): ", labels)
            if answer.lower() in (explains, "?") and answer not in labels:
                _write(_explanation(game, labels))
                continue
            found = [label for label in labels if label == answer] or [
                label for label in labels if answer and label.lower().startswith(answer.lower())
            ]
            if len(found) == 1:
                return actions[labels.index(found[0])]
            if answer:
                which = f"could be {', '.join(found)}" if found else "is none of them"
                _write(f"  {printable(answer)} {which}; '{explains}' explains, '{ends}' ends the game.\n")

    def answer(self, question: str, labels: Sequence[str] = ()) -> str:
        """A line of the input; its end, 'quit' (see `_word`), and 'q' where no action begins so, end the game."""
        _write(question)
        line = sys.stdin.readline()
        answer = line.strip()
        if not sys.stdin.isatty():
            _write(f"{printable(answer)}\n")  # as a terminal shows what is typed
        ends = {_word("quit", labels)}
        if not any(label.lower().startswith("q") for label in labels):
            ends.add("q")
        if not line or (answer.lower() in ends and answer not in labels):
            raise _QuitError
        return answer


def _word(word: str, labels: Sequence[str]) -> str:
    """What is typed for 'help' or 'quit': with a colon before it where an action is called so."""
    while word in labels:
        word = f":{word}"
    return word


def _explanation(game: Any, labels: Sequence[str]) -> str:
    """How to read what one sees, and what one may type; games tell the first in the docstring of `infoset_key`."""
    from jaxcfr.games.base import Game
    from jaxcfr.games.wrapped import WrappedGame

    while isinstance(game, WrappedGame):
        game = game.inner
    text = inspect.getdoc(getattr(type(game), "infoset_key", Game.infoset_key))
    read = ""
    if text and text != inspect.getdoc(Game.infoset_key):
        read = f"  How to read it: {printable(' '.join(text.split()))}\n"
    return (
        f"{read}  Type an action or its first letters; '{_word('help', labels)}' shows this again, "
        f"'{_word('quit', labels)}' ends the game.\n"
    )


def _revealed(last: Any, seat: int) -> list[str]:
    """What the other players knew at the end of a play, where the game tells it and it is not what all know."""
    keys: dict[int, str] = {}
    for player in range(int(last.num_players)):
        # A game need not say what players know who do not act, and one of the user's own may fail in any way.
        with contextlib.suppress(Exception):
            keys[player] = printable(str(last.infoset_key(player)))
    own = keys.pop(seat, None)
    return [f"Player {player} saw: {key}" for player, key in keys.items() if key != own]


# Solving


@dataclass
class _Run:
    """One `jaxcfr solve`: the loop, its evaluations, and what is to become of the result."""

    lowered: LoweredGame
    trainer: Trainer
    iterations: int
    every: int | None  # None: after 1, 2, 5, 10, ... iterations
    target: float | None = None
    seed: int | None = None
    split: bool = False
    out: str | None = None
    plot: str | None = None
    checkpoint: str | None = None
    locked: bool = False
    as_json: bool = False

    def __post_init__(self) -> None:
        self.tree = self.lowered.tree
        self.evaluations: list[dict[str, Any]] = []
        self.saved = False
        self.drawn = False
        self.reached = False
        self.stopped_by: int | None = None

    def run(self) -> None:
        """Solves, evaluates, and saves: at the end, on a signal, and also if something breaks in between."""
        with Interrupts(signal.SIGINT, signal.SIGTERM) as signals:
            try:
                with progress_bar() as progress:
                    progress.start(f"solving {self.lowered.name}", self.iterations, self.trainer.iterations_done)
                    self._solve(signals, progress)
            except KeyboardInterrupt:
                signals.received = signals.received or signal.SIGINT
            except Exception:
                with contextlib.suppress(Exception):  # the first error is the one to tell
                    self._save(signals)
                raise
            self.stopped_by = signals.received
            self._save(signals)
            self._draw(signals)

    def _solve(self, signals: Interrupts, progress: ProgressBar) -> None:
        from jaxcfr.trainer import Watch

        def evaluated(result: dict[str, Any]) -> None:
            if self.trainer.algorithm.samples:
                result = result | {"unvisited": list(self.trainer.unvisited())}
            self.evaluations.append(result)
            if self.as_json:
                _write_evaluation(result, for_files=self.out is not None or self.checkpoint is not None)

        watch = Watch(
            interrupts=signals,
            bar=progress,
            eval_every=self.every or MAX_ITERATIONS,  # the end of a stretch is evaluated anyway
            target=self.target,
            checkpoint=self.checkpoint,
            checkpoint_every=None if self.checkpoint is None else self.every,
            evaluated=evaluated,
        )
        left = self.iterations - self.trainer.iterations_done
        if self.split and left:
            self.trainer.run_split(left, watch)
            return
        for stop in [self.iterations] if self.every else _round_numbers(self.iterations):
            left = stop - self.trainer.iterations_done
            if left > 0 or stop == self.iterations:
                self.reached = self.trainer.run(left, watch)
            if self.reached or signals.received is not None:
                break

    def _save(self, signals: Interrupts) -> None:
        """Saves the average so far; what an interrupted run has not begun is not worth replacing a file for."""
        from jaxcfr.profile import Profile

        done = self.trainer.iterations_done
        if self.out is None or (done == 0 and self.iterations > 0):
            return
        with signals.held():
            Profile.from_strategy(
                self.lowered,
                self.trainer.strategy(),
                variant=self.trainer.description,
                iterations=done,
                seed=self.seed,
            ).save(self.out)
            self.saved = True

    def _draw(self, signals: Interrupts) -> None:
        """Draws the evaluations, those of a resumed run included; without one there is nothing to draw."""
        if self.plot is None or not self.trainer.history:
            return
        from matplotlib.figure import Figure

        from jaxcfr import plotting

        with signals.held(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # a title need not be in every font
            axes = Figure(figsize=(7, 4.5), layout="constrained").subplots()
            title = f"{self.lowered.name}\n{self.trainer.description}"
            plotting.convergence(self.trainer, target=self.target or None, title=title, ax=axes)
            plotting.save(axes, self.plot)
            self.drawn = True

    def write_report(self, device: str) -> None:
        """The results as a table, on standard output."""
        from jaxcfr.facts import payoff_sum, promise

        tree, count = self.tree, self.trainer.workers
        workers = "" if count == 1 else f", a split over {count} workers" if self.split else f", {count} workers"
        _write(
            f"{printable(self.lowered.name)}: {_count(tree.num_players, 'player')}, {payoff_sum(tree)}, "
            f"{_count(tree.num_histories, 'history', 'histories')}, "
            f"{_count(sum(tree.num_infosets), 'information set')}\n"
            f"{self.trainer.description}, {tree.dtype} on {device}{workers}\n"
        )
        if self.evaluations:
            exploitability = ["exploitability"] if tree.constant_sum else []
            rows = []
            for result in self.evaluations:
                row = [f"{result['iteration']:,}", f"{result['nash_conv']:.6g}"]
                if exploitability:
                    row.append(f"{result['exploitability']:.6g}")
                row += [" ".join(f"{payoff:.6g}" for payoff in result["expected_payoffs"]), f"{result['seconds']:.2f}"]
                rows.append(row)
            columns = ["iteration", "NashConv", *exploitability, "expected payoffs", "seconds"]
            _write_fitting(columns, rows, ("expected payoffs", "seconds"))
            _write("All in units of payoff. " + promise(tree) + "\n")
            unvisited = sum(self.evaluations[-1].get("unvisited", ()))
            if unvisited:
                _write(f"{_count(unvisited, 'information set')} came up in no walk: there the strategy is uniform.\n")
            if self.locked:
                _write("NashConv is that of the locked game: nobody deviates at the locked information sets.\n")
        if self.target is not None and self.stopped_by is None:
            _write(_target_text(self.target, self.reached, self.trainer.iterations_done))
        if self.saved:
            _write(f"The average strategy is saved in {printable(str(self.out))}.\n")
        if self.drawn:
            _write(f"The curve is drawn in {printable(str(self.plot))}.\n")


@dataclass
class _DecomposedRun:
    """One `jaxcfr cfr-d`: the loop, its evaluations, and what is told."""

    solution: CFRDSolution | None  # to go on from
    advance: Callable[[int, CFRDSolution | None], CFRDSolution]
    name: str
    iterations: int
    resolve_iterations: int
    every: int
    target: float | None
    checkpoint: str | None
    out: str | None
    as_json: bool

    def __post_init__(self) -> None:
        self.progress = ProgressBar(None)
        self.evaluations: list[dict[str, Any]] = []
        self.done = 0 if self.solution is None else self.solution.t
        self.kept = self.done  # iterations that the checkpoint has
        self.reached = False
        self.saved = False
        self.stopped_by: int | None = None

    def run(self) -> None:
        """Solves, evaluates, keeps checkpoints, and saves the whole strategy at the end."""
        with Interrupts(signal.SIGINT, signal.SIGTERM) as self.signals:
            try:
                with progress_bar() as self.progress:
                    self.progress.start(f"solving {self.name}", self.iterations, self.done)
                    solution = self._solve()
                    if self.out is not None and self.signals.received is None:
                        profile = solution.to_profile(self.resolve_iterations)
                        with self.signals.held():
                            profile.save(self.out)
                            self.saved = True
            except KeyboardInterrupt:  # the second one
                pass
            self.stopped_by = self.signals.received

    def _solve(self) -> CFRDSolution:
        """Goes on from a solution, in steps that are short enough to be watched and long enough to cost nothing."""
        step, compiled, solution = 1, False, self.solution
        while True:
            done, seconds = (0, 0.0) if solution is None else (solution.t, solution.seconds)
            count = min(step, self.iterations - done, self.every - done % self.every)
            begun = time.perf_counter()
            solution = self.advance(count, solution)
            inside = solution.seconds - seconds
            around = time.perf_counter() - begun - inside
            if inside < max(STEP_SECONDS, 10 * around):
                step *= 2
            self.done = solution.t
            self.progress.update(self.done, speed=count / max(inside, 1e-9) if compiled else None)
            compiled = True
            if self._stops_after(solution) or self.done == self.iterations:
                return solution

    def _stops_after(self, solution: CFRDSolution) -> bool:
        """Saves and evaluates where that is due; returns whether to stop."""
        stopped = self.signals.received is not None
        due = self.done % self.every == 0 or self.done == self.iterations
        if self.checkpoint is not None and (due or stopped):
            with self.signals.held():
                solution.save(self.checkpoint)
                self.kept = self.done
        if due and not stopped:
            nash_conv = solution.nash_conv(self.resolve_iterations)
            result = {
                "iteration": self.done,
                "nash_conv": nash_conv,
                "exploitability": nash_conv / 2,
                "values": solution.value.tolist(),
                "seconds": round(solution.seconds, 6),
            }
            self.evaluations.append(result)
            self.progress.update(self.done, f"NashConv {nash_conv:.3g}")
            if self.as_json:
                _write_evaluation(result, for_files=self.out is not None or self.checkpoint is not None)
            self.reached = self.target is not None and nash_conv / 2 <= self.target
        # What came in meanwhile ends the run here only where this iteration is in the file.
        return self.reached or stopped or (due and self.signals.received is not None)

    def write_report(self) -> None:
        """The results as a table, on standard output."""
        if self.evaluations:
            columns = ["iteration", "NashConv", "exploitability", "values", "seconds"]
            rows = [
                [
                    f"{result['iteration']:,}",
                    f"{result['nash_conv']:.6g}",
                    f"{result['exploitability']:.6g}",
                    " ".join(f"{value:.6g}" for value in result["values"]),
                    f"{result['seconds']:.2f}",
                ]
                for result in self.evaluations
            ]
            _write_fitting(columns, rows, ("values", "seconds"))
            _write(
                "All in units of payoff. Exploitability is NashConv / 2, of the whole strategy: the trunk's, and that "
                f"of subgames solved again in {_count(self.resolve_iterations, 'iteration')}. Values are the players' "
                "average payoffs in the run.\n"
            )
        if self.target is not None and self.stopped_by is None:
            _write(_target_text(self.target, self.reached, self.done))
        if self.checkpoint is not None and self.stopped_by is None:
            _write(f"All that is needed to go on is in {printable(self.checkpoint)}.\n")
        if self.saved:
            _write(f"The whole strategy is saved in {printable(str(self.out))}.\n")


def _target_text(target: float, reached: bool, done: int) -> str:
    word = "reached" if reached else "not reached"
    return f"The target exploitability of {target:g} was {word} in {_count(done, 'iteration')}.\n"


def _round_numbers(last: int) -> list[int]:
    """1, 2, 5, 10, 20, ... up to `last` itself."""
    numbers = (lead * 10**power for power in range(10) for lead in (1, 2, 5))
    return [*itertools.takewhile(lambda number: number < last, numbers), last]


# Output


class _PipeClosedError(Exception):
    """Whoever read standard output has gone."""


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise _PipeClosedError from error


def _silence_stdout() -> None:
    """Lets later writes, and the flush at the end of the process, go nowhere."""
    with contextlib.suppress(OSError, ValueError, io.UnsupportedOperation):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _note(message: str) -> None:
    """One line on standard error."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"jaxcfr: {printable(' '.join(message.split()))}\n")
        sys.stderr.flush()


def _json_line(value: dict[str, Any]) -> str:
    return json.dumps(value, allow_nan=False) + "\n"


def _write_evaluation(result: dict[str, Any], *, for_files: bool) -> None:
    """One line of JSON. Where nobody reads any more but a file was asked for, the run goes on for its sake."""
    try:
        _write(_json_line(result))
    except _PipeClosedError:
        if not for_files:
            raise
        _silence_stdout()


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _width() -> int | None:
    """Columns of the terminal; what COLUMNS says goes before. None where neither is there: in a pipe or a file."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    with contextlib.suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    return None


def _write_table(columns: Sequence[str] | None, rows: Sequence[Sequence[str]], *, numbers: bool = False) -> None:
    """A table, with a line of headings or without; numbers go to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE if columns else None, pad_edge=False, show_header=columns is not None)
    for column in columns or [""] * len(rows[0]):
        table.add_column(Text(printable(column)), justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console = Console(width=_width() or PIPE_WIDTH)
    with console.capture() as capture:
        console.print(table)
    _write("\n".join(line.rstrip() for line in capture.get().strip("\n").split("\n")) + "\n")


def _write_fitting(columns: Sequence[str], rows: Sequence[Sequence[str]], least: Sequence[str]) -> None:
    """A table of numbers. Digits cut in two cannot be read: in a narrow terminal the least of the columns give way."""
    table = [columns, *rows]
    for name in least:
        if sum(max(map(len, cells)) + 3 for cells in zip(*table, strict=True)) > (_width() or PIPE_WIDTH):
            place = table[0].index(name)
            table = [[*row[:place], *row[place + 1 :]] for row in table]
    _write_table(table[0], table[1:], numbers=True)


def _write_strategies(infosets: Sequence[InfosetStrategy]) -> None:
    """A table with a line for every action, and its probability as a bar."""
    from jaxcfr.facts import probability_text
    from jaxcfr.profile import key_text, most_probable

    terminal, width = _is_terminal(), _width()
    blocks = _can_write("".join(_BLOCKS))
    if width is None or width >= 60:
        headings = ["player", "information set", "action", "probability", ""]
    else:
        headings = ["who", "key", "action", "prob.", ""]
    rows: list[list[str]] = []
    shares: list[float] = []
    for infoset in infosets:
        kept = most_probable(infoset.probabilities)
        first = [str(infoset.player), printable(key_text(infoset.key))]
        for place in kept:
            probability = float(infoset.probabilities[place])
            rows.append([*first, printable(infoset.labels[place]) or "''", probability_text(probability)])
            shares.append(probability)
            if terminal:
                first = ["", ""]  # for people, each thing is said once
        if len(kept) < len(infoset.labels):
            rows.append([*first, f"(and {len(infoset.labels) - len(kept):,} less probable)", ""])
            shares.append(0.0)
    needed = [max(map(len, cells)) for cells in zip(headings[:4], *rows, strict=True)]
    room = BAR_WIDTH if width is None else min(BAR_WIDTH, width - sum(needed) - 3 * 4)
    bars = [_bar(share, room, blocks) if room >= 5 else "" for share in shares]
    if width is None:  # a pipe: as long as it takes, and quick
        lines = [
            f"{player:>{needed[0]}}  {key:<{needed[1]}}  {action:<{needed[2]}}  {number:>{needed[3]}}  {bar}".rstrip()
            for (player, key, action, number), bar in zip([headings[:4], *rows], ["", *bars], strict=True)
        ]
        _write("\n".join(lines) + "\n")
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=width, force_terminal=terminal, legacy_windows=False)
    table = Table(box=box.SIMPLE if terminal else None, pad_edge=False, show_edge=False)
    for place, heading in enumerate(headings[: 5 if room >= 5 else 4]):
        wraps = place in (1, 2)
        least = min(needed[place], 4) if wraps else None
        justify: Any = "right" if place in (0, 3) else "left"
        table.add_column(heading, justify=justify, no_wrap=not wraps, min_width=least, overflow="fold")
    for row, bar in zip(rows, bars, strict=True):
        cells = [*map(Text, row), Text(bar, style="cyan")]
        table.add_row(*cells[: len(table.columns)])
    with console.capture() as capture:
        console.print(table)
    _write("\n".join(line.rstrip() for line in capture.get().strip("\n").split("\n")) + "\n")


_BLOCKS = ("", *map(chr, range(0x258F, 0x2587, -1)))
"""Bars of 0 to 8 eighths of a character."""


def _bar(share: float, width: int, blocks: bool) -> str:
    """A share of 1 as a bar; what is more than nothing can be seen."""
    if not blocks:
        return "#" * max(round(share * width), int(share > 0))
    eighths = max(round(share * width * 8), int(share > 0))
    return _BLOCKS[8] * (eighths // 8) + _BLOCKS[eighths % 8]


def _is_terminal() -> bool:
    """Whether a person looks at standard output, at a terminal that knows colours."""
    with contextlib.suppress(OSError, ValueError):
        return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return False


def _can_write(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{count:,} bytes" if unit == "bytes" else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


# The entry point


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
      argv: the arguments; None takes those of the process, and lets JAX keep compiled programs on disk.

    Returns:
      The exit status: 0, 2 after an error (told in one line on standard error), 130 after Ctrl-C.
    """
    _replace_closed_streams()
    if argv is None:
        watch_signals()
        _use_compilation_cache()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names in a game file may be beyond the locale's encoding
    try:
        command = typer.main.get_command(app)
        arguments = sys.argv[1:] if argv is None else list(argv)
        status = command.main(arguments, prog_name="jaxcfr", standalone_mode=False, obj=arguments)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except (_PipeClosedError, BrokenPipeError):
        _silence_stdout()
        return 128 + signal.SIGPIPE if hasattr(signal, "SIGPIPE") else 1
    except (KeyboardInterrupt, typer.Abort):
        return 128 + signal.SIGINT
    except SystemExit as error:
        _silence_stdout()  # what typer does about a closed pipe
        return error.code if isinstance(error.code, int) else 1
    except JaxCFRError as error:
        return _fail(str(error))
    except MemoryError:
        return _fail("out of memory; 'jaxcfr info GAME' says how much a game needs")
    except OSError as error:
        return _fail(f"{error.filename or 'writing the results'}: {error.strerror or error}")
    except Exception as error:
        if isinstance(error, _CLICK_ERROR):
            return _fail(error.format_message())
        if "RESOURCE_EXHAUSTED" in str(error):
            return _fail("the device is out of memory; 'jaxcfr info GAME' says how much a game needs")
        raise  # a bug: the traceback is what helps


def _replace_closed_streams() -> None:
    """Gives standard streams that were closed a place to go to: nowhere.

    In this order, so that each gets the number that it should have: no file opened later takes its place.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, for the rest of the process


def _use_compilation_cache() -> None:
    """Lets JAX keep compiled programs in the user's cache directory, unless something else is set or it cannot be."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    base = os.environ.get("XDG_CACHE_HOME", "")
    directory = os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "jaxcfr")
    if not os.path.isabs(directory):  # nobody's home is known
        return
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except OSError:
        return
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        return
    import jax

    config: Any = jax.config
    with contextlib.suppress(AttributeError):  # names of another JAX
        if config.jax_compilation_cache_dir is None:
            config.update("jax_compilation_cache_dir", directory)
            if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
                config.update("jax_persistent_cache_min_compile_time_secs", CACHE_FROM_SECONDS)


# typer brings click along under one name or another; every usage error derives from this class.
_CLICK_ERROR: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


def _fail(message: str) -> int:
    _note(f"error: {message}")
    return 2
