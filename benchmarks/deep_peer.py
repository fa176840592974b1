"""OpenSpiel's deep_cfr (JAX, flax.nnx) for so many CPU seconds: `python deep_peer.py GAME SECONDS SEED EVALUATIONS`.

Runs in an environment of its own; prints one JSON object. The networks, steps, batches and learning rate are jaxcfr's
defaults; an iteration has 40 walks of each player (twice its default), as many as it does in about a second.
"""

import json
import sys
import time

import pyspiel
from open_spiel.python import policy
from open_spiel.python.algorithms import exploitability
from open_spiel.python.jax import deep_cfr


def main(game_name: str, seconds: float, seed: int, evaluations: int) -> None:
    begun = time.process_time()
    game = pyspiel.load_game(game_name)
    solver = deep_cfr.DeepCFRSolver(
        game,
        policy_network_layers=(64, 64, 64),
        advantage_network_layers=(64, 64, 64),
        num_traversals=40,
        learning_rate=1e-3,
        batch_size_advantage=512,
        batch_size_strategy=512,
        policy_network_train_steps=2000,
        advantage_network_train_steps=200,
        seed=seed,
    )
    solver._num_iterations = 1
    learn = solver._learn_strategy_network
    # Its last step, the training of the policy network, is taken out of the loop and done when it is evaluated.
    solver._learn_strategy_network = lambda: 0.0
    paused, curve, iterations = 0.0, [], 0
    while True:
        solver.solve()
        iterations += 1
        now = time.process_time() - begun - paused
        if now >= seconds * (len(curve) + 1) / evaluations:
            started = time.process_time()
            solver._reinitialize_policy_network()
            solver._cached_policy.clear()
            learn()
            average = policy.tabular_policy_from_callable(game, solver.action_probabilities)
            gap = float(exploitability.nash_conv(game, average))
            paused += time.process_time() - started
            curve.append({"seconds": round(now, 1), "iteration": iterations, "nash_conv": gap})
            if now >= seconds:
                break
    walks = iterations * solver._num_traversals * game.num_players()
    row = {"game": game_name, "algorithm": "OpenSpiel deep_cfr", "seed": seed, "curve": curve}
    print(json.dumps({**row, "walks_per_second": round(walks / now, 1)}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
