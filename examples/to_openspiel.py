"""A strategy made here, handed to OpenSpiel as a `TabularPolicy`: both programs agree on its exploitability.

Needs the extra `openspiel`.

    python examples/to_openspiel.py
"""

from __future__ import annotations

import argparse

import pyspiel
from open_spiel.python.algorithms import exploitability

import jaxcfr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="leduc_poker", help="a name of OpenSpiel")
    parser.add_argument("--quick", action="store_true", help="Kuhn poker")
    arguments = parser.parse_args()
    name = "kuhn_poker" if arguments.quick else arguments.game

    game = pyspiel.load_game(name)
    lowered = jaxcfr.lower(jaxcfr.interop.from_openspiel(game))  # the rules are OpenSpiel's own
    strategy = jaxcfr.average_strategy(lowered.tree, jaxcfr.solve(lowered.tree, iterations=500))
    profile = jaxcfr.Profile.from_strategy(lowered, strategy)

    policy = jaxcfr.interop.to_openspiel(profile, game)
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    print("OpenSpiel asks the policy:", policy.action_probabilities(state))
    print(f"exploitability by jaxcfr    {float(jaxcfr.exploitability(lowered.tree, strategy)):.8f}")
    print(f"exploitability by OpenSpiel {exploitability.exploitability(game, policy):.8f}")


if __name__ == "__main__":
    main()
