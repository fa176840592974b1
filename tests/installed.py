"""What `.ci/wheel` runs, and type-checks, where only the wheel and what it needs are installed."""

import importlib.metadata
import importlib.resources
import sys

import jaxcfr


def value(name: str) -> float:
    """What the first player gets in equilibrium."""
    lowered = jaxcfr.lower(jaxcfr.load_game(name))
    state: jaxcfr.SolverState = jaxcfr.solve(lowered.tree, jaxcfr.pcfr_plus(), 200)
    strategy: jaxcfr.Strategy = jaxcfr.average_strategy(lowered.tree, state)
    profile = jaxcfr.Profile.from_strategy(lowered, strategy, variant="pcfr_plus", iterations=state.t)
    print(profile)
    return float(jaxcfr.expected_payoffs(lowered.tree, strategy)[0])


def main() -> None:
    assert abs(value("kuhn_poker") + 1 / 18) < 1e-3
    assert importlib.metadata.version("jaxcfr") == jaxcfr.__version__
    assert (importlib.resources.files("jaxcfr") / "py.typed").is_file()
    for optional in ("matplotlib", "pyspiel", "pgx"):
        assert optional not in sys.modules
    print("jaxcfr", jaxcfr.__version__, "on Python", sys.version.split()[0])


if __name__ == "__main__":
    main()
