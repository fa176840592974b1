"""A training process that is killed with SIGKILL at random moments, and goes on from its checkpoint.

    python tests/kill_and_resume.py --kills 50 [--deep]

Each time a process is started that resumes from the checkpoint if there is one, and trains on, one iteration and one
checkpoint after the other; at a random moment it is killed. In the end one is left to finish. Its strategy has to be
that of a run that nobody disturbed, bit for bit.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import tempfile
import time
import traceback
from typing import Any, TextIO

import jaxcfr

PER_KILL = 60
"""Iterations of the whole run for each kill."""

MOST_ITERATIONS, MOST_SECONDS = 80, 0.02
"""A process is killed this long after it has begun to train, at most: so many iterations, and then so many seconds."""

SEED = 7


def make(deep: bool) -> Any:
    if not deep:
        return jaxcfr.Trainer("kuhn_poker", jaxcfr.external_sampling(batch=4), seed=SEED, workers=2)
    settings = jaxcfr.deep.DREAM(
        walks=8, network=jaxcfr.deep.linear(), steps=4, batch_size=8, capacity=64, past_networks=4
    )
    return jaxcfr.deep.DeepTrainer("kuhn_poker", settings, seed=SEED)


def train(path: str, total: int, deep: bool, say: TextIO) -> None:
    """What the child does."""
    import numpy as np

    trainer = make(deep).train(1)  # compiles
    trainer = type(trainer).load(path) if os.path.exists(path) else make(deep)
    print("on", trainer.iterations_done, file=say, flush=True)
    while trainer.iterations_done < total:
        trainer.train(1, checkpoint=path)
        print("at", trainer.iterations_done, file=say, flush=True)
    bits = b"".join(np.asarray(values).tobytes() for values in trainer.strategy())
    print("digest", hashlib.sha256(bits).hexdigest(), file=say, flush=True)


def start(path: str, total: int, deep: bool) -> tuple[int, Any]:
    """The child's process number, and what it says. It is forked, so that nothing is imported again."""
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, os.fdopen(read)
    status = 1
    try:
        with os.fdopen(write, "w") as say:
            train(path, total, deep, say)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def finish(path: str, total: int, deep: bool) -> str:
    """The digest of the strategy at the end."""
    pid, said = start(path, total, deep)
    lines = said.read().splitlines()
    _, status = os.waitpid(pid, 0)
    assert status == 0, lines
    return lines[-1].split()[1]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--deep", action="store_true", help="a DeepTrainer's run")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as directory:
        total = max(200, PER_KILL * arguments.kills)
        undisturbed = finish(os.path.join(directory, "undisturbed"), total, arguments.deep)
        begun, killed, path = [], 0, os.path.join(directory, "killed")
        for _ in range(arguments.kills):
            pid, said = start(path, total, arguments.deep)
            begun.append(int(said.readline().split()[1]))
            for _ in range(rng.randrange(MOST_ITERATIONS)):
                said.readline()
            time.sleep(rng.uniform(0, MOST_SECONDS))
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            killed += os.WIFSIGNALED(status)
        broken = finish(path, total, arguments.deep)
    print(f"{killed} kills; begun at {begun}, of {total}")
    print(f"undisturbed: {undisturbed}\nkilled:      {broken}\n{'the same' if undisturbed == broken else 'DIFFERENT'}")
    return 0 if undisturbed == broken and killed == arguments.kills else 1


if __name__ == "__main__":
    raise SystemExit(main())
