"""The random numbers of sampled walks.

One typed key decides everything. Iteration t takes two words from
`fold_in(key, t)` with JAX's own generator; every draw inside the iteration is
a hash of these words, of the number of its walk, and of the actions that led
to it. So a draw does not depend on how walks are grouped into passes, and
costs 0.3 to 0.6 ns where threefry costs 4 to 5 and XLA's own generator
("rbg") 10 (measured on a CPU, 32,768 at a time).

The hash is the 32-bit finaliser `lowbias32` of Wellons (2018, "Prospecting for
hash functions"), a relative of MurmurHash3's (Appleby 2008).
"""

from __future__ import annotations

import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxcfr.errors import OptionError

STEP = 0x9E3779B9  # 2^32 / golden ratio: distinct small numbers are spread over all bits
EDGE = 0x85EBCA6B
_OLD_KEY = (2,)  # shape of a key of jax.random.PRNGKey, by the generator that is JAX's default


def as_key(seed: Any) -> Array:
    """A typed key from a seed or a key.

    Raises:
      OptionError: neither an integer nor one key.
    """
    check_seed(seed)
    if not isinstance(seed, jax.Array):
        return jax.random.key(np.uint32(operator.index(seed)))
    if jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        return seed
    return jax.random.wrap_key_data(seed) if seed.ndim else jax.random.key(seed.astype(jnp.uint32))


def check_seed(seed: Any) -> None:
    """Raises `OptionError` unless `seed` is an integer, a key of `jax.random.key` or an older one of `PRNGKey`."""
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        if seed.ndim:
            raise OptionError(f"seed is {seed.size} keys: it has to be one; for several runs, jax.vmap over them")
        return
    if isinstance(seed, jax.Array) and seed.dtype == jnp.uint32 and seed.shape == _OLD_KEY:
        return
    if isinstance(seed, jax.core.Tracer) and jnp.issubdtype(seed.dtype, jnp.integer) and not seed.ndim:
        return
    try:
        number = -1 if isinstance(seed, bool | np.bool_) else operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < 2**32:
        raise OptionError(f"seed has to be an integer from 0 to 2**32 - 1, or a key of jax.random.key, not {seed!r}")


def mix(word: Array) -> Array:
    """A bijection of uint32 under which close inputs have unrelated outputs."""
    word = (word ^ (word >> 16)) * np.uint32(0x7FEB352D)
    word = (word ^ (word >> 15)) * np.uint32(0x846CA68B)
    return word ^ (word >> 16)


def words(key: Array, t: Array, player: int) -> tuple[Array, Array]:
    """The two words that decide player `player`'s walks of iteration t."""
    bits = jax.random.bits(jax.random.fold_in(jax.random.fold_in(key, t), player), (2,), jnp.uint32)
    return bits[0], bits[1]


def others(seed: tuple[Array, Array]) -> tuple[Array, Array]:
    """Two other words, for draws that have nothing to do with those of `seed`."""
    return mix(seed[0] + np.uint32(STEP)), mix(seed[1] + np.uint32(EDGE))


def streams(seed: tuple[Array, Array], walk: Array) -> Array:
    """The stream of each walk (numbers `[n]`), uint32 `[n]`."""
    return mix(mix(walk.astype(jnp.uint32) ^ seed[0]) + seed[1])


def after_draw(stream: Array) -> Array:
    """A stream behind one draw."""
    return mix(stream + np.uint32(STEP))


def after_branch(stream: Array, action: Array) -> Array:
    """The stream of each branch of a walk."""
    return mix(stream + (action + 1).astype(jnp.uint32) * np.uint32(EDGE))


def unit(bits: Array) -> Array:
    """Random uint32 as float32 in [0, 1)."""
    return (bits >> 8).astype(jnp.float32) * np.float32(2.0**-24)


def uniform(seed: tuple[Array, Array], stream: Array, dtype: Any) -> Array:
    """One draw from [0, 1) for each stream, with as many bits as the dtype holds, at most 32."""
    bits = mix(stream ^ seed[0])
    if dtype == jnp.float32:
        return unit(bits)
    return bits.astype(dtype) * 2.0**-32
