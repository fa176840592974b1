"""The same bits on one device, on eight, and on two processes; a process that dies ends the others.

One inner batch of workers is one program, whatever the number of devices: see `jaxcfr.workers`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest
from several_devices import HEARTBEAT_SECONDS, digests

import jaxcfr

pytestmark = pytest.mark.full_compilation  # with fewer optimisations programs for other devices round otherwise

CHILD = Path(__file__).parent / "several_devices.py"


def environment():
    kept = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_ENABLE_X64")}
    return {**kept, "JAX_PLATFORMS": "cpu"}


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, str(CHILD), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


@pytest.fixture(scope="module", autouse=True)
def _one_cpu():
    if jax.default_backend() != "cpu" or len(jax.devices()) != 1:
        pytest.skip("compares with this process, which has to run on one CPU device")


@pytest.fixture(scope="module")
def one_device():
    return digests()


def test_eight_devices_give_the_bits_of_one(one_device):
    output, errors = start(8).communicate(timeout=600)
    assert json.loads(output.splitlines()[-1]) == one_device, errors
    # They are different runs, so the digests tell something.
    assert len(set(one_device.values())) == len(one_device)


def test_two_processes_give_the_bits_of_one_and_end_together(tmp_path):
    """Four workers over two processes with two devices each; then one process is killed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    children = [start(2, address, 2, number, tmp_path) for number in range(2)]
    try:
        expected = digests(few=True)
        lines = (line for line in children[0].stdout if not line.startswith("[Gloo]"))
        found = next(lines, "")
        assert found, children[0].stderr.read()
        assert json.loads(found) == expected
        assert next(lines).startswith("trained")  # a checkpoint is there, and more come
        children[1].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        _, errors = children[0].communicate(timeout=6 * HEARTBEAT_SECONDS + 60)
        print(f"the other process ended {time.monotonic() - killed:.1f} s later with {children[0].returncode}")
        assert children[0].returncode != 0, errors
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
            child.wait()
    trainer = jaxcfr.Trainer.load(tmp_path / "run.ckpt")
    assert trainer.iterations_done % 5 == 0
    assert trainer.iterations_done > 0
    assert trainer.train(1).iterations_done % 5 == 1
