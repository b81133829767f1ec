"""AES-128 in counter mode by the processor's own instructions: the words of ``randomgen.AESCounter``, many at once.

A bit generator gives a word a call, which takes longer than to encrypt four. Here a compiled loop encrypts thirty-two
counters at once, so that one round of one hides behind those of the others; on processors that have it (VAES) four lie
in one register. Round keys and counter are read off the bit generator, which is then moved past what was taken.

Reference: Salmon et al. (2011), "Parallel random numbers: as easy as 1, 2, 3". Decision 240.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from llvmlite.binding import get_host_cpu_features  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray
from randomgen import AESCounter

__all__ = ["NONE", "encrypt", "reserve"]

_FEATURES = get_host_cpu_features()
_WIDE = 4 if _FEATURES.get("vaes") and _FEATURES.get("avx512f") else 1  # blocks of a register
_REGISTERS, _ROUNDS = 8, 10
_WORDS = 2 * _WIDE * _REGISTERS  # that one call of ``_encrypt`` writes
_GROUP = 8  # words that the bit generator makes at a time
NONE = np.empty(0, np.uint64)


def _codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    lanes, suffix = 2 * _WIDE, ".512" if _WIDE == 4 else ""
    block, vector, word = ir.VectorType(ir.IntType(64), 2), ir.VectorType(ir.IntType(64), lanes), ir.IntType(64)
    round_of = ir.FunctionType(vector, [vector, vector])
    middle, last = (
        builder.module.declare_intrinsic(f"llvm.x86.aesni.{name}{suffix}", (), round_of)
        for name in ("aesenc", "aesenclast")
    )
    out, keys = (builder.inttoptr(args[i], kind.as_pointer()) for i, kind in ((0, vector), (1, block)))
    spread = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [i % 2 for i in range(lanes)])

    def key(i: int) -> Any:
        one = builder.load(builder.gep(keys, [ir.Constant(word, i)]), align=8)
        return builder.shuffle_vector(one, ir.Constant(block, ir.Undefined), spread)

    # the low word of each block is the counter, the high one zero
    first = builder.insert_element(ir.Constant(block, [0, 0]), args[2], ir.Constant(word, 0))
    first = builder.shuffle_vector(first, ir.Constant(block, ir.Undefined), spread)
    states = []
    for i in range(_REGISTERS):
        places = [i * _WIDE + j // 2 if j % 2 == 0 else 0 for j in range(lanes)]
        states.append(builder.xor(builder.add(first, ir.Constant(vector, places)), key(0)))
    for i in range(1, _ROUNDS + 1):
        own, step = key(i), middle if i < _ROUNDS else last
        states = [builder.call(step, [state, own]) for state in states]
    for i, state in enumerate(states):
        builder.store(state, builder.gep(out, [ir.Constant(word, i)]), align=8)
    return context.get_dummy_value()


def _encrypt_type(typingctx: Any, out: Any, keys: Any, counter: Any) -> Any:
    """Write ``_WORDS`` words to the address ``out``: the counters from this one, under the round keys at ``keys``."""
    return types.void(types.int64, types.int64, types.int64), _codegen


_encrypt: Any = intrinsic(_encrypt_type)


@njit(cache=True, nogil=True)
def _encrypt_all(words: Any, keys: Any, counter: int) -> None:
    start, at = words.ctypes.data, keys.ctypes.data
    for i in range(len(words) // _WORDS):
        _encrypt(start + 8 * _WORDS * i, at, counter + i * (_WORDS // 2))


@njit(cache=True, nogil=True)
def _refuse(words: Any, keys: Any, counter: int) -> None:
    raise NotImplementedError("This processor has no instructions for AES.")


encrypt: Any = _encrypt_all if _FEATURES.get("aes") else _refuse
"""Fill an array, of a multiple of 64 words, with the blocks from a counter on; compiled."""


def reserve(bits: AESCounter, count: int) -> tuple[NDArray[np.uint64], int, NDArray[np.uint64]]:
    """The next ``count`` words, from the next group of eight on, which no other draw will have: the round keys and the
    first counter for ``encrypt``, or the words themselves where the processor has no instructions."""
    state = bits.state["s"]
    left, whole = (8 * _GROUP - state["offset"]) // 8, -(-count // _GROUP) * _GROUP
    if not has_instructions():
        return NONE, 0, bits.random_raw(left + whole)[left:]
    bits.advance(left + whole)
    return state["seed"], int(state["counter"][0]), NONE


@cache
def has_instructions() -> bool:
    """Whether ``encrypt`` gives what the bit generator gives, which it is asked once."""
    if encrypt is _refuse:
        return False
    bits, words = AESCounter(key=2**127 + 1), np.empty(2 * _WORDS, np.uint64)
    state = bits.state["s"]
    encrypt(words, state["seed"], int(state["counter"][0]))
    return bool((words == bits.random_raw(len(words))).all())
