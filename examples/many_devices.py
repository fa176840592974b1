"""Training on all devices there are: independent workers that are averaged, and a budget that is split.

A machine with CPUs only can play at having four devices:

    XLA_FLAGS=--xla_force_host_platform_device_count=4 python examples/many_devices.py
"""

from __future__ import annotations

import argparse

import jax

import jaxcfr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="Kuhn poker, few iterations")
    arguments = parser.parse_args()
    name, iterations, batch = ("kuhn_poker", 20, 8) if arguments.quick else ("leduc_poker", 400, 64)
    devices = jax.devices()
    print(f"{len(devices)} devices of kind {devices[0].device_kind!r}")

    game = jaxcfr.lower(jaxcfr.load_game(name))
    sampling = jaxcfr.external_sampling(batch=batch)
    one = jaxcfr.Trainer(game, sampling, jaxcfr.dcfr(), workers=1).train(iterations)
    report("one worker", one)
    many = jaxcfr.Trainer(game, sampling, jaxcfr.dcfr(), workers=2 * len(devices)).train(iterations)
    report(f"the average of {many.workers} workers", many)  # steadier; not that many times closer

    split = jaxcfr.Trainer(game, sampling, jaxcfr.dcfr(), workers=len(devices))
    split.train_split(len(devices) * iterations)  # each device does its own stretch of one long run
    report(f"{split.iterations_done:,} iterations over {len(devices)} devices", split)


def report(what: str, trainer: jaxcfr.Trainer) -> None:
    print(f"{what:40}NashConv {float(jaxcfr.nash_conv(trainer.tree, trainer.strategy())):.4f}", flush=True)


if __name__ == "__main__":
    main()
