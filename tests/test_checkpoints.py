"""Checkpoints: bit for bit, whole at every moment, and refused where they do not belong."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from random_games import copied

import jaxcfr
from jaxcfr import checkpoint, errors

SAMPLER = jaxcfr.external_sampling(batch=4)


@pytest.fixture
def saved(kuhn, tmp_path):
    trainer = jaxcfr.Trainer(kuhn, SAMPLER, seed=3, workers=2).train(6)
    trainer.save(tmp_path / "a.ckpt")
    return trainer, tmp_path / "a.ckpt"


def same(one, other):
    assert one.iterations_done == other.iterations_done
    for a, b in zip(one.strategy(), other.strategy(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_going_on_gives_the_same_bits(kuhn, saved):
    trainer, path = saved
    for loaded in (jaxcfr.Trainer.load(path), jaxcfr.Trainer.load(path, kuhn)):
        assert loaded.iterations_done == 6
        same(loaded.train(9), jaxcfr.Trainer(kuhn, SAMPLER, seed=3, workers=2).train(15))
    again = jaxcfr.Trainer.load(path)
    again.save(path)  # a file that is read and written again is the same file
    assert checkpoint.read(path)[0]["tree"] == checkpoint.read(f"{path}.previous")[0]["tree"]
    same(jaxcfr.Trainer.load(f"{path}.previous").train(2), trainer.train(2))


@pytest.mark.parametrize(
    "settings",
    [
        {"regret": jaxcfr.pcfr_plus(jaxcfr.linear(1.0, 3.0, 100)), "algorithm": jaxcfr.full_tree()},
        {"regret": jaxcfr.dcfr(jnp.float32(1.25), 0.0), "algorithm": jaxcfr.full_tree(), "updates": "simultaneous"},
        {
            "algorithm": jaxcfr.outcome_sampling(
                jaxcfr.geometric(0.9, 0.99), batch=4, baseline=jaxcfr.control_variate()
            ),
            "workers": 2,
        },
        {
            "algorithm": jaxcfr.external_sampling(batch=4, pruning=jaxcfr.probabilistic_pruning(2)),
            "regret": jaxcfr.linear_cfr(),
            "seed": jax.random.key(11, impl="rbg"),
            "workers": 1,
        },
    ],
    ids=["schedule", "array, simultaneous", "baselines", "pruning, key"],
)
def test_every_setting_comes_back(kuhn, settings, tmp_path):
    trainer = jaxcfr.Trainer(kuhn, **settings).train(5, eval_every=3)
    trainer.save(tmp_path / "a.ckpt")
    loaded = jaxcfr.Trainer.load(tmp_path / "a.ckpt")
    assert (loaded.algorithm, loaded.updates, loaded.workers) == (trainer.algorithm, trainer.updates, trainer.workers)
    assert str(loaded.regret) == str(trainer.regret)
    assert loaded.history == trainer.history
    same(loaded.train(4), trainer.train(4))


def test_locks_and_blends_come_back(kuhn, tmp_path):
    trainer = jaxcfr.Trainer(kuhn, SAMPLER, workers=2, locked={0: {"0": [0.25, 0.75]}})
    trainer.blend_opponent(1, lambda key: [0.1, 0.9], jaxcfr.geometric(0.5, 0.9))
    trainer.train(4, checkpoint=tmp_path / "a.ckpt")
    loaded = jaxcfr.Trainer.load(tmp_path / "a.ckpt")
    same(loaded.train(3), trainer.train(3))
    loaded.train_split(6)
    same(loaded, trainer.train_split(6))
    assert loaded.profile().average_strategy(0, "0") == {"pass": 0.25, "bet": 0.75}


def test_every_so_many_iterations(kuhn, tmp_path, monkeypatch):
    path, done = tmp_path / "run.ckpt", []
    save = jaxcfr.Trainer.save
    monkeypatch.setattr(
        jaxcfr.Trainer, "save", lambda self, path: (done.append(self.iterations_done), save(self, path))[1]
    )
    jaxcfr.Trainer(kuhn, jaxcfr.full_tree()).train(25, checkpoint=path, checkpoint_every=10)
    assert done == [10, 20, 25]
    assert jaxcfr.Trainer.load(path).iterations_done == 25
    assert jaxcfr.Trainer.load(f"{path}.previous").iterations_done == 20
    assert sorted(os.listdir(tmp_path)) == ["run.ckpt", "run.ckpt.previous"]


def test_a_damaged_file_is_refused_and_the_one_before_it_named(saved):
    trainer, path = saved
    trainer.save(path)
    whole = path.read_bytes()
    rng = random.Random(0)
    for length in [0, 1, 7, 8, 50, *sorted(rng.randrange(len(whole)) for _ in range(20)), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(errors.CheckpointError, match=r"a\.ckpt.*(truncated|not a jaxcfr).*a\.ckpt\.previous"):
            jaxcfr.Trainer.load(path)
    for _ in range(30):
        place = rng.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << rng.randrange(8))]) + whole[place + 1 :])
        with pytest.raises(errors.CheckpointError, match="ckpt"):
            jaxcfr.Trainer.load(path)
    path.write_bytes(whole + b"more")
    with pytest.raises(errors.CheckpointError, match="damaged"):
        jaxcfr.Trainer.load(path)
    for data in (b"", b"\x89PNG", b"PK\x03\x04", struct.pack("<Q", 2**63) + b"{}"):
        path.write_bytes(data)
        with pytest.raises(errors.CheckpointError, match="not a jaxcfr checkpoint"):
            jaxcfr.Trainer.load(path)
    os.unlink(path)
    with pytest.raises(errors.CheckpointError, match=r"no such file.*previous"):
        jaxcfr.Trainer.load(path)
    with pytest.raises(errors.CheckpointError, match="no such file"):
        jaxcfr.Trainer.load(path.parent / "nothing")


def test_a_newer_format_is_refused(saved, monkeypatch):
    trainer, path = saved
    monkeypatch.setattr(checkpoint, "VERSION", 2)
    trainer.save(path)
    monkeypatch.undo()
    with pytest.raises(errors.CheckpointError, match="format version 2; this jaxcfr reads version 1"):
        jaxcfr.Trainer.load(path)


def test_another_game_layout_or_dtype_is_refused(kuhn, saved):
    path = saved[1]
    with pytest.raises(errors.CheckpointError, match=r"made for kuhn_poker .*this is leduc_poker"):
        jaxcfr.Trainer.load(path, "leduc_poker")
    with pytest.raises(errors.CheckpointError, match="other payoffs"):
        jaxcfr.Trainer.load(path, kuhn.tree.with_payoffs(2 * kuhn.tree.terminal_payoffs))
    with pytest.raises(errors.CheckpointError, match=r"float64.*float32"):
        jaxcfr.Trainer.load(path, jaxcfr.lower(jaxcfr.load_game("kuhn_poker"), dtype="float32"))
    bare = jaxcfr.Trainer.load(path, kuhn.tree)
    assert bare.lowered is None
    bare.save(path)
    with pytest.raises(errors.CheckpointError, match=r"without a name.*give the game"):
        jaxcfr.Trainer.load(path)
    own = copied(jaxcfr.load_game("kuhn_poker"), "a game of one's own")
    jaxcfr.Trainer(own, jaxcfr.full_tree()).train(2).save(path)
    with pytest.raises(errors.CheckpointError, match=r"no game .*one's own.*give the game"):
        jaxcfr.Trainer.load(path)
    assert jaxcfr.Trainer.load(path, own).iterations_done == 2


def test_what_no_file_can_hold(kuhn, saved, tmp_path, monkeypatch):
    path = tmp_path / "b.ckpt"
    trainer = jaxcfr.Trainer(kuhn, jaxcfr.full_tree(), jaxcfr.dcfr(alpha=lambda t: 1.0))
    with pytest.raises(errors.CheckpointError, match="none of jaxcfr's own"):
        trainer.save(path)
    with pytest.raises(errors.CheckpointError, match="none of jaxcfr's own"):
        trainer.train(10, checkpoint=path)
    assert trainer.iterations_done == 0  # known before the work is done
    blended = jaxcfr.Trainer(kuhn, jaxcfr.full_tree())
    blended.blend_all(jaxcfr.uniform_strategy(kuhn.tree), lambda t: 1 / (1 + t))
    with pytest.raises(errors.CheckpointError, match="none of jaxcfr's own"):
        blended.save(path)
    assert not path.exists()
    trainer, path = saved
    for wrong in (tmp_path, tmp_path / "no" / "where", "\0", "", 5):
        with pytest.raises(errors.CheckpointError):
            trainer.save(wrong)
        with pytest.raises(errors.CheckpointError):
            trainer.train(3, checkpoint=wrong)
        assert trainer.iterations_done == 6  # known before the work is done
    with pytest.raises(errors.CheckpointError, match="not a regular file"):
        jaxcfr.Trainer.load("/dev/zero" if os.path.exists("/dev/zero") else os.devnull)
    number = jaxcfr.Trainer(kuhn, SAMPLER, seed=jnp.int32(3), workers=2)
    number.save(tmp_path / "seed.ckpt")
    assert jaxcfr.Trainer.load(tmp_path / "seed.ckpt").seed == number.seed == 3
    (tmp_path / "seed.ckpt").unlink()
    before = path.read_bytes()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(errors.CheckpointError, match="no space left"):
        trainer.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.ckpt"]


def test_no_code_comes_out_of_a_file(saved):
    """Only jaxcfr's own settings are made, whatever the file says."""
    for data in (
        {"class": "os:system", "fields": {"command": "true"}},
        {"class": "jaxcfr.trainer:Trainer", "fields": {"game_or_tree": "kuhn_poker"}},
        {"class": "jaxcfr.regret.variants:DCFR", "fields": {"colour": 1}},
        {"class": "jaxcfr"},
        {"float": "x"},
    ):
        with pytest.raises(errors.CheckpointError, match="no setting"):
            checkpoint.decode_setting(data)


def test_the_file_has_the_layout_of_safetensors(saved):
    data = saved[1].read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert header.pop("__metadata__")["format"] == "jaxcfr checkpoint"
    end = max(entry["data_offsets"][1] for entry in header.values())
    assert len(data) == 8 + length + end
    for entry in header.values():
        start, stop = entry["data_offsets"]
        size = {"F64": 8, "F32": 4, "I32": 4, "U32": 4, "BOOL": 1}[entry["dtype"]]
        assert stop - start == size * int(np.prod(entry["shape"]))


@pytest.mark.parametrize(
    ("kills", "more"),
    [
        (3, ()),
        pytest.param(50, (), marks=pytest.mark.slow),
        pytest.param(20, ("--deep",), marks=pytest.mark.slow),
    ],
)
def test_killed_and_resumed(kills, more):
    """With SIGKILL, at random moments; ends in the bits of an undisturbed run. The command takes any number."""
    command = [
        sys.executable,
        Path(__file__).parent / "kill_and_resume.py",
        "--kills",
        str(kills),
        "--seed",
        "1",
        *more,
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=900, env=quick.environment())
    print(result.stdout, result.stderr)
    assert result.returncode == 0
