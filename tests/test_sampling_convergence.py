"""Sampling reaches what the full tree reaches: exact NashConv of the average strategy, game by game, rule by rule."""

import jax
import pytest

import jaxcfr
from jaxcfr.regret.variants import VARIANTS

GAMES = ["kuhn_poker", "kuhn_poker(players=3)", "leduc_poker", "liars_dice(dice_sides=4)"]

# Walks in a batch, and iterations.
TRAVERSALS = {
    "external": (lambda: jaxcfr.external_sampling(batch=256), 150),
    "chance": (lambda: jaxcfr.chance_sampling(batch=16), 150),
    "outcome": (lambda: jaxcfr.outcome_sampling(batch=2048), 150),
}

# NashConv of the uniform strategies: 0.92, 1.9 (chips), 4.7 (chips), 1.6.
REACHED = {
    "kuhn_poker": 0.05,
    "kuhn_poker(players=3)": 0.1,
    "leduc_poker": 0.5,
    "liars_dice(dice_sides=4)": 0.15,
}


# The schedules of `hs_...` weight the average by t^30 or t^15: it is that of the last few iterates, with their noise.
SENSIBLE = [name for name in VARIANTS if not name.startswith("hs_")]


def gap_after(game, traversal, variant, longer=1):
    factory, iterations = TRAVERSALS[traversal]
    iterations *= longer
    tree = jaxcfr.lower(jaxcfr.load_game(game), dtype="float32").tree
    state = jaxcfr.solve(tree, VARIANTS[variant](), iterations, traversal=factory(), seed=1)
    return float(jaxcfr.nash_conv(tree, jaxcfr.average_strategy(tree, state)))


@pytest.mark.parametrize(
    ("game", "traversal"),
    [
        ("kuhn_poker(players=3)", "external"),
        ("kuhn_poker(players=3)", "outcome"),
        ("leduc_poker", "external"),
        ("liars_dice(dice_sides=4)", "chance"),
    ],
)
def test_convergence(game, traversal):
    assert gap_after(game, traversal, "dcfr") < REACHED[game]


@pytest.mark.slow
@pytest.mark.parametrize("variant", SENSIBLE)
@pytest.mark.parametrize("traversal", TRAVERSALS)
@pytest.mark.parametrize("game", GAMES)
def test_convergence_of_every_sensible_variant(game, traversal, variant):
    gap = gap_after(game, traversal, variant, longer=10 if game == "leduc_poker" else 1)
    print(f"{game} {traversal} {variant}: NashConv {gap:.4f}")
    jax.clear_caches()
    assert gap < REACHED[game]


@pytest.mark.parametrize("traversal", ["external", "outcome"])
def test_convergence_without_a_tree(traversal):
    game = jaxcfr.load_game("liars_dice(dice_sides=4)")
    factory, iterations = TRAVERSALS[traversal]
    run = jaxcfr.solve_game(
        game, jaxcfr.dcfr(), iterations, traversal=factory(), seed=3, capacity=1024, dtype="float32"
    )
    lowered = jaxcfr.lower(game)
    assert run.num_infosets > 1000
    strategy = run.profile().to_strategy(lowered, missing="uniform")
    assert float(jaxcfr.nash_conv(lowered.tree, strategy)) < REACHED["liars_dice(dice_sides=4)"]
