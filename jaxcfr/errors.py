"""Every exception that jaxcfr raises on purpose.

All of them derive from `JaxCFRError`, so one `except` clause catches whatever
is wrong with a game, a file, an option or a strategy.
"""

from __future__ import annotations


class JaxCFRError(Exception):
    """Base class of all errors raised by jaxcfr."""


class GameError(JaxCFRError):
    """The rules of a game are broken; the message names the path that shows it."""


class RecallError(GameError):
    """A player forgets what it knew or did (imperfect recall or absent-mindedness)."""


class ChanceNotEnumerableError(GameError):
    """Chance can only be sampled, but the caller needs every outcome with its probability."""


class GameTooLargeError(GameError):
    """A game has more histories than `max_nodes` allows."""


class TableFullError(GameTooLargeError):
    """More information sets were met than a table has room for."""


class GameLookupError(JaxCFRError):
    """No game has this name, or the game has no such option."""


class GameFileError(JaxCFRError):
    """A game file cannot be read; the message names the file and the line."""


class StrategyError(JaxCFRError):
    """A strategy does not fit the tree, or is not a probability distribution."""


class SolverError(JaxCFRError):
    """`solve` was asked for something it cannot do."""


class HorizonError(SolverError):
    """A run would go past the last iteration a hyperparameter schedule is defined for."""


class NotTwoPlayerConstantSumError(JaxCFRError):
    """The quantity is only defined for two-player constant-sum games."""


class SubgameError(JaxCFRError):
    """A path, a closure or values describe no part of a game that could be solved."""


class InvariantError(JaxCFRError):
    """A strategy breaks a rule that it was checked against; the message names the information set."""


class SubgameWarning(UserWarning):
    """A part of a game is solved in a way that promises nothing for the whole."""


class AnalyticsError(JaxCFRError):
    """An exact quantity came out impossible (for example a negative gain)."""


class ProfileError(JaxCFRError):
    """A profile does not fit a game, or lacks an information set."""


class ProfileFileError(ProfileError):
    """A profile file is truncated, foreign, or of an unknown version."""


class CheckpointError(JaxCFRError):
    """A checkpoint cannot be written or read, or belongs to another game, layout, setting or version."""


class OptionError(JaxCFRError):
    """An option or argument has a value that makes no sense."""


class MissingPackageError(JaxCFRError):
    """An optional package is not installed; the message says which extra of jaxcfr brings it."""


def one_line(error: Exception, limit: int = 300) -> str:
    """What an error says, in one line of at most so many characters."""
    text = " ".join(str(error).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def missing_package(what: str, package: str, extra: str) -> MissingPackageError:
    """The error of something that needs a package that is not installed.

    Args:
      what: needs it.
      package: its name, as people know it.
      extra: of jaxcfr, which brings it.
    """
    return MissingPackageError(
        f'{what} needs {package}: pip install "jaxcfr[{extra}]", or where the source of jaxcfr lies, '
        f'pip install ".[{extra}]"'
    )
