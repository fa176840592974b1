"""What the tests of several devices and processes run in processes of their own.

    python tests/several_devices.py DEVICES [ADDRESS PROCESSES NUMBER DIRECTORY]

Prints digests of the strategies of a few runs, by name, as one line of JSON. With an address, as one of several
processes of `jax.distributed`; process 0 prints. Then it trains on, with checkpoints, until somebody ends it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import unittest.mock
from pathlib import Path

if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={sys.argv[1]}"

import jax
import numpy as np

import jaxcfr
from jaxcfr import workers

HEARTBEAT_SECONDS = 10


def digest(strategy) -> str:
    return hashlib.sha256(b"".join(np.asarray(values).tobytes() for values in strategy)).hexdigest()


def digests(few: bool = False) -> dict[str, str]:
    """Workers that fill the devices, that do not, and that are more than the devices; a split; both."""
    found = {}
    sampler = jaxcfr.external_sampling(batch=8)
    game = jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), dtype="float32")
    for count in (4,) if few else (3, 11):
        trainer = jaxcfr.Trainer(game, sampler, seed=9, workers=count)
        found[f"{count} workers"] = digest(trainer.train(13).strategy())
        found[f"{count} workers, then a split"] = digest(trainer.train_split(17, 3).strategy())
        found[f"{count} workers, on"] = digest(trainer.train(4).strategy())
    found |= deep_digests(game, few)
    trainer = jaxcfr.Trainer(game, sampler, seed=9, workers=1)
    found["a split"] = digest(trainer.train_split(30, 4).strategy())
    if not few:
        # Inner batches of three, as on devices that a batch fills.
        with unittest.mock.patch.dict(workers.INNER, {"cpu": 3}):
            trainer = jaxcfr.Trainer(game, sampler, seed=9, workers=5)
            found["batches of 3"] = digest(trainer.train(13).strategy())
    return found


def deep_digests(game, few: bool) -> dict[str, str]:
    """Always with 64-bit numbers allowed: optax computes in them where it may."""
    found = {}
    network, before = jaxcfr.deep.linear(), jax.config.read("jax_enable_x64")
    settings = jaxcfr.deep.DeepCFR(walks=16, network=network, steps=5, batch_size=8, capacity=64, average_steps=5)
    jax.config.update("jax_enable_x64", True)
    try:
        for count in (4,) if few else (2, 3):
            trainer = jaxcfr.deep.DeepTrainer(game, settings, seed=9, workers=count).train(2)
            found[f"{count} deep workers"] = digest(trainer.strategy())
            with tempfile.TemporaryDirectory() as directory:
                trainer.save(Path(directory) / "run.ckpt")
                loaded = jaxcfr.deep.DeepTrainer.load(Path(directory) / "run.ckpt", game)
            found[f"{count} deep workers, on"] = digest(loaded.train(1).strategy())
            assert digest(trainer.train(1).strategy()) == found[f"{count} deep workers, on"]
    finally:
        jax.config.update("jax_enable_x64", before)
    return found


def main(devices: int, address: str | None = None, processes: int = 1, number: int = 0, directory: str = "") -> None:
    if address is None:
        assert len(jax.devices()) == devices
        print(json.dumps(digests()), flush=True)
        return
    jax.distributed.initialize(address, processes, number, heartbeat_timeout_seconds=HEARTBEAT_SECONDS)
    assert len(jax.devices()) == devices * processes
    found = digests(few=True)
    if number == 0:
        print(json.dumps(found), flush=True)
    trainer = jaxcfr.Trainer("kuhn_poker", jaxcfr.external_sampling(batch=8), seed=9, workers=4)
    while True:
        trainer.train(5, checkpoint=Path(directory) / "run.ckpt")
        print("trained", trainer.iterations_done, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), *(int(x) if x.isdecimal() else x for x in sys.argv[2:]))
