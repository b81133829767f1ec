"""Machine words straight from a bit generator, inside compiled code.

The generator's C function and state are passed as plain integers, so that compiled code can be cached on disk: it
holds no address of this process.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

__all__ = ["draw_words", "next_word"]


def _next_word(typingctx: Any, function: Any, state: Any) -> Any:
    """``uint64 function(void *state)``, where both are addresses given as 64-bit integers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.IntType(64), [pointer])
        call = builder.inttoptr(args[0], kind.as_pointer())
        return builder.call(call, [builder.inttoptr(args[1], pointer)])

    return types.uint64(types.int64, types.int64), codegen


next_word: Any = intrinsic(_next_word)  # called without the typing context, which a checker cannot know


@njit(cache=True, nogil=True)
def draw_words(out: Any, function: int, state: int) -> None:
    """Fill an array, word by word."""
    for i in range(len(out)):
        out[i] = next_word(function, state)
