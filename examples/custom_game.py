"""A game of one's own: Dresher's inspection game (1962), with its exact value beside it.

An inspector may come on `visits` of the next `days` days; a violator breaks the rules on one day at most. Caught, it
loses 1; not caught, it wins 1. Both learn in the evening whether there was an inspection. On each day they choose at
the same time: the inspector moves first, and the violator does not see it.

    python examples/custom_game.py --days 6 --visits 2
"""

from __future__ import annotations

import argparse
import functools
from fractions import Fraction

import jaxcfr


class Inspection(jaxcfr.Game):
    """One history: what the inspector did on past days, and today's choice of the inspector where it has been made."""

    num_players = 2  # 0 inspects, 1 may violate
    name = "inspection"

    def __init__(self, days, visits, past=(), today=None, end=None):
        self.days, self.visits, self.past, self.today, self.end = days, visits, past, today, end

    def is_terminal(self):
        return self.end is not None

    def is_chance(self):
        return False

    def player_to_act(self):
        return 0 if self.today is None else 1

    def legal_actions(self):
        if self.today is not None:
            return ("comply", "violate")
        left = self.visits - self.past.count("inspect")
        return ("inspect", "stay") if left else ("stay",)

    def step(self, action):
        if self.today is None:
            return Inspection(self.days, self.visits, self.past, action)
        past = (*self.past, self.today)
        end = 0 if len(past) == self.days else None
        if action == "violate":
            end = 1 if self.today == "inspect" else -1  # to the inspector
        return Inspection(self.days, self.visits, past, end=end)

    def terminal_returns(self):
        return (self.end, -self.end)

    def infoset_key(self, player):
        return ", ".join(self.past) or "first day"  # today's choice is nobody else's to see


@functools.cache
def exact_value(days: int, visits: int) -> Fraction:
    """To the inspector: a 2x2 game for each day, solved backwards, in fractions."""
    if days == 0:
        return Fraction(0)
    stay_violate, stay_comply = Fraction(-1), exact_value(days - 1, visits)
    if visits == 0:
        return min(stay_violate, stay_comply)
    visit_violate, visit_comply = Fraction(1), exact_value(days - 1, visits - 1)
    rows = ((visit_violate, visit_comply), (stay_violate, stay_comply))
    lower, upper = max(map(min, rows)), min(map(max, zip(*rows, strict=True)))
    if lower == upper:
        return lower  # in pure strategies
    (a, b), (c, d) = rows
    return (a * d - b * c) / (a - b - c + d)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=6)
    parser.add_argument("--visits", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a small game")
    arguments = parser.parse_args()
    days, visits = (3, 1) if arguments.quick else (arguments.days, arguments.visits)

    game = Inspection(days, visits)
    jaxcfr.validate_game(game)
    lowered = jaxcfr.lower(game)
    print(lowered)
    state = jaxcfr.solve(lowered.tree, jaxcfr.pdcfr_plus(), 1000)
    strategy = jaxcfr.average_strategy(lowered.tree, state)
    value = float(jaxcfr.expected_payoffs(lowered.tree, strategy)[0])
    print(f"value {value:.6f}, exactly {exact_value(days, visits)} = {float(exact_value(days, visits)):.6f}")
    print(f"exploitability {float(jaxcfr.exploitability(lowered.tree, strategy)):.1e}")
    profile = jaxcfr.Profile.from_strategy(lowered, strategy)
    print("on the first day:", profile.probabilities(0, "first day"), profile.probabilities(1, "first day"))


if __name__ == "__main__":
    main()
