"""Checkpoints: one file with everything that a run needs to go on bit for bit.

The file has the layout of safetensors, which other programs read: eight bytes
with the length of a header, the header (JSON: name, dtype, shape and place of
every array; the facts of the run as text in its `__metadata__`), and the bytes
of the arrays. A SHA-256 over all of it is in the header, so that a truncated
or damaged file is refused.

Why not Orbax: a run is a few flat arrays on one host or gathered onto one,
which this module writes in a hundred lines and in one atomic step; what Orbax
is made for, sharded and asynchronous directories of parameters, would bring a
dozen packages for a format without a checksum of the whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxcfr.errors import CheckpointError
from jaxcfr.files import path_text, reason, write_atomically
from jaxcfr.tree.game_tree import GameTree

FORMAT = "jaxcfr checkpoint"
VERSION = 1
"""Version of the file; a newer one is refused."""

PREVIOUS = ".previous"
"""What the name of the checkpoint before the last one ends in."""

_DTYPES = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "BF16": np.dtype(jnp.bfloat16),
    "I32": np.dtype(np.int32),
    "U32": np.dtype(np.uint32),
    "BOOL": np.dtype(np.bool_),
}
_NO_DIGEST = "0" * 64
_MOST_HEADER = 100_000_000


def write(path: str | os.PathLike[str], facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a checkpoint. The one that was there before is kept as `path` + ".previous".

    The new file is whole and synced before it gets its name, so at every moment `path` names a whole checkpoint.

    Args:
      path: of the file.
      facts: what JSON can hold.
      arrays: by name.

    Raises:
      CheckpointError: it cannot be written there.
    """
    entries: dict[str, Any] = {}
    place = 0
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in contiguous.items():
        code = next((code for code, dtype in _DTYPES.items() if dtype == array.dtype), None)
        if code is None:
            raise CheckpointError(f"{name} is of {array.dtype}, which a checkpoint cannot hold")
        entries[name] = {
            "dtype": code,
            "shape": list(arrays[name].shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    metadata = {"format": FORMAT, "version": str(VERSION), "facts": json.dumps(facts, allow_nan=False)}

    def header(digest: str) -> bytes:
        text = json.dumps({"__metadata__": {**metadata, "sha256": digest}, **entries}, separators=(",", ":")).encode()
        return text + b" " * (-len(text) % 8)

    def data() -> Iterator[bytes]:
        for array in contiguous.values():
            yield array.tobytes()

    digest = hashlib.sha256(header(_NO_DIGEST))
    for piece in data():
        digest.update(piece)
    whole = header(digest.hexdigest())

    def pieces() -> Iterator[bytes]:
        yield len(whole).to_bytes(8, "little")
        yield whole
        yield from data()

    shown = path_text(path, CheckpointError)
    write_atomically(shown, pieces(), CheckpointError, previous=os.path.basename(shown) + PREVIOUS)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The facts and the arrays of a checkpoint.

    Raises:
      CheckpointError: there is no such file, it is truncated or damaged, it is of a newer version, or no checkpoint;
        says whether the checkpoint before it is still there.
    """
    shown = path_text(path, CheckpointError)
    try:
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise ValueError("it is not a regular file")  # a device may have no end
        with open(path, "rb") as file:
            data = file.read()
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{shown}: cannot be read: {reason(error)}{_other(shown)}") from error
    damaged = CheckpointError(f"{shown}: this checkpoint is truncated or damaged{_other(shown)}")
    foreign = CheckpointError(f"{shown}: not a jaxcfr checkpoint{_other(shown)}")
    if FORMAT.encode() not in data[:200]:
        # A file cut off inside these first bytes cannot be told from a foreign one.
        raise foreign
    length = int.from_bytes(data[:8], "little")
    if length > min(len(data) - 8, _MOST_HEADER):
        raise damaged
    text = data[8 : 8 + length]
    try:
        entries = json.loads(text)
        metadata = entries.pop("__metadata__")
        version, digest = int(metadata["version"]), metadata["sha256"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged from error
    if version != VERSION:
        raise CheckpointError(f"{shown}: a checkpoint of format version {version}; this jaxcfr reads version {VERSION}")
    blank = text.replace(str(digest).encode(), _NO_DIGEST.encode(), 1)
    found = hashlib.sha256(blank)
    found.update(memoryview(data)[8 + length :])
    if found.hexdigest() != digest:
        raise damaged
    try:
        arrays = {}
        for name, entry in entries.items():
            start, stop = entry["data_offsets"]
            flat = np.frombuffer(data, np.uint8, stop - start, 8 + length + start)
            arrays[name] = flat.view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
        facts: dict[str, Any] = json.loads(metadata["facts"])
    except (ValueError, KeyError, TypeError) as error:
        raise damaged from error
    return facts, arrays


KINDS = {
    None: "of a Trainer (jaxcfr solve): load it with Trainer.load",
    "deep": "of a run of jaxcfr.deep: load it with DeepTrainer.load",
    "CFR-D": "of a solution of CFR-D (jaxcfr cfr-d): load it with CFRDSolution.load",
}
"""What checkpoints are of, by the fact "kind"."""


def require_kind(shown: str, facts: Mapping[str, Any], kind: str | None) -> None:
    """Raises `CheckpointError` where the checkpoint in the file `shown` is of something else; says what reads it."""
    found = facts.get("kind")
    if found != kind:
        raise CheckpointError(f"{shown}: this is a checkpoint {KINDS.get(found, f'of the kind {found!r}')}")


@contextlib.contextmanager
def restoring(shown: str) -> Iterator[None]:
    """What goes wrong while a run is made of the facts and arrays of the file `shown` becomes an error about it.

    Raises:
      CheckpointError: names the file, and what it lacks.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{shown}: this checkpoint lacks something: {error}") from error
    except CheckpointError as error:
        raise error if str(error).startswith(shown) else CheckpointError(f"{shown}: {error}") from error


def _other(shown: str) -> str:
    before = shown + PREVIOUS
    return f"; the one before it is {before}" if os.path.exists(before) else ""


def fingerprint(tree: GameTree) -> str:
    """SHA-256 of all that a tree holds, the layout of its vectors included."""
    digest = hashlib.sha256()
    for treeplex in tree.treeplexes:
        digest.update(repr((treeplex.tables, treeplex.stages)).encode())
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        array = np.ascontiguousarray(leaf)
        digest.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape};".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


# States


def arrays_of(state: Any) -> dict[str, np.ndarray]:
    """The leaves of a pytree by their paths; of random keys, their words."""
    arrays = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]:
        is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        arrays[jax.tree_util.keystr(path)] = np.asarray(jax.random.key_data(leaf) if is_key else leaf)
    return arrays


def state_from(like: Any, arrays: Mapping[str, np.ndarray], count: int) -> Any:
    """The inverse of `arrays_of`, for the states of `count` workers.

    Args:
      like: one worker's state; says which leaves there are.
      arrays: theirs, with a leading axis `[count]`.
      count: W.

    Raises:
      CheckpointError: the arrays are not those of such states.
    """
    found, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = []
    for path, leaf in found:
        name = jax.tree_util.keystr(path)
        is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        expected = np.asarray(jax.random.key_data(leaf) if is_key else leaf)
        array = arrays.get(name)
        if array is None or array.shape != (count, *expected.shape) or array.dtype != expected.dtype:
            has = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
            raise CheckpointError(
                f"the checkpoint has {has} where this run keeps {expected.dtype} of shape {(count, *expected.shape)} "
                f"({name})"
            )
        value = jnp.asarray(array)
        leaves.append(jax.random.wrap_key_data(value, impl=str(jax.random.key_impl(leaf))) if is_key else value)
    if len(arrays) != len(leaves):
        raise CheckpointError("the checkpoint has arrays that this run does not keep")
    return jax.tree.unflatten(structure, leaves)


def encode_seed(seed: Any) -> Any:
    """A seed as JSON has it: an integer, or the words of a key with the name of its generator."""
    if isinstance(seed, jax.Array):
        return {"key": np.asarray(jax.random.key_data(seed)).tolist(), "impl": str(jax.random.key_impl(seed))}
    return int(seed)


def decode_seed(data: Any) -> Any:
    """The inverse of `encode_seed`."""
    if isinstance(data, dict):
        return jax.random.wrap_key_data(jnp.asarray(data["key"], jnp.uint32), impl=data["impl"])
    return data


# Settings: variants, traversals, schedules


def encode_setting(value: Any) -> Any:
    """A variant, a traversal or a schedule as JSON has it.

    Raises:
      CheckpointError: it is none of jaxcfr's own, or holds a function.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, np.ndarray | np.generic | jax.Array) and not np.ndim(value):
        return {"scalar": str(value.dtype), "bytes": np.asarray(value).tobytes().hex()}
    kind = type(value)
    if dataclasses.is_dataclass(value) and kind.__module__.startswith("jaxcfr."):
        fields = {field.name: encode_setting(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"class": f"{kind.__module__}:{kind.__qualname__}", "fields": fields}
    raise CheckpointError(f"{value!r} cannot be written into a checkpoint: it is none of jaxcfr's own settings")


def decode_setting(data: Any) -> Any:
    """The inverse of `encode_setting`, exact.

    Raises:
      CheckpointError: this version of jaxcfr has no such setting.
    """
    if not isinstance(data, dict):
        return data
    try:
        if "float" in data:
            return float.fromhex(data["float"])
        if "scalar" in data:
            return jnp.asarray(np.frombuffer(bytes.fromhex(data["bytes"]), np.dtype(data["scalar"]))[0])
        module, name = data["class"].split(":")
        if not module.startswith("jaxcfr.") or not name.isidentifier():
            raise ValueError(name)
        kind = getattr(importlib.import_module(module), name)
        if not dataclasses.is_dataclass(kind):
            raise ValueError(name)
        make: Any = kind
        return make(**{field: decode_setting(value) for field, value in data["fields"].items()})
    except (KeyError, ValueError, TypeError, AttributeError, ImportError) as error:
        raise CheckpointError(f"this jaxcfr has no setting {json.dumps(data)[:200]}") from error
