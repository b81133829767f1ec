"""A convolution's gradients, record by record, compiled: windows are read where they lie, and none is copied.

Single precision on the processor, kernels of one or two dimensions; elsewhere ``convolution`` copies windows side by
side. A record's input is laid out with its channels last, so that a row of the kernel reads numbers that lie side by
side: ``TAPS`` of them at a time are multiplied by the gradients of ``LANES`` output channels, and added up over all
positions in registers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["TAPS", "record_gradients"]

TAPS, LANES = 8, 16


def _tile(
    typingctx: Any, outer: Any, inner: Any, rows: Any, columns: Any, down: Any, right: Any, found: Any, across: Any
) -> Any:  # pragma: no cover - run by the compiler
    """Write found[tap·across + lane], the sum over rows p and columns q of inner[p·down + q·right + tap] times
    outer[p·columns + q, lane]; the three are addresses of floats."""
    single, lanes, whole = ir.FloatType(), ir.VectorType(ir.FloatType(), LANES), ir.IntType(64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        outer, inner, rows, columns, down, right, found, across = args
        kind = ir.FunctionType(lanes, [lanes] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
        outer, inner, found = (builder.inttoptr(x, single.as_pointer()) for x in (outer, inner, found))
        zero, everywhere = ir.Constant(lanes, None), ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(TAPS)]

        def vector(pointer: Any, place: Any) -> Any:
            return builder.bitcast(builder.gep(pointer, [place]), lanes.as_pointer())

        with cgutils.for_range(builder, rows) as row, cgutils.for_range(builder, columns) as column:
            step = builder.add(builder.mul(row.index, columns), column.index)
            gradients = builder.load(vector(outer, builder.mul(step, whole(LANES))), align=4)
            start = builder.add(builder.mul(row.index, down), builder.mul(column.index, right))
            for tap, total in enumerate(sums):
                number = builder.load(builder.gep(inner, [builder.add(start, whole(tap))]), align=4)
                first = builder.insert_element(ir.Constant(lanes, ir.Undefined), number, ir.IntType(32)(0))
                spread = builder.shuffle_vector(first, ir.Constant(lanes, ir.Undefined), everywhere)
                builder.store(builder.call(fused, [spread, gradients, builder.load(total)]), total)
        for tap, total in enumerate(sums):
            builder.store(builder.load(total), vector(found, builder.mul(across, whole(tap))), align=4)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), codegen


_products: Any = intrinsic(_tile)


@njit(cache=True, nogil=True, error_model="numpy")
def _laid_out(inner: Any, top: int, left: int, image: Any) -> None:
    """A record's input [C, H, W], channels last, inside the padding of ``image`` [rows, columns · C]."""
    channels, height, width = inner.shape
    for c in range(channels):
        for y in range(height):
            row, own = image[top + y], inner[c, y]
            for x in range(width):
                row[(left + x) * channels + c] = own[x]


@njit(cache=True, nogil=True, error_model="numpy")
def record_gradients(
    outer: Any,
    inner: Any,
    stride: tuple[int, int],
    padding: tuple[int, int],
    apart: int,
    found: Any,
) -> None:
    """Write ``found`` [B, rows of the kernel, columns · C, O] from output gradients ``outer`` [B, O, P, Q] and inputs
    ``inner`` [B, C, H, W]; rows of the kernel are ``apart``, and its columns lie side by side.

    Whoever calls has seen to it that all windows lie inside the padded input, and that a row has ``TAPS`` numbers.
    """
    records, outputs, rows, columns = outer.shape
    channels, height, width = inner.shape[1:]
    taps, blocks = found.shape[2], (outputs + LANES - 1) // LANES
    line = (width + 2 * padding[1]) * channels
    image = np.zeros((height + 2 * padding[0], line), np.float32)
    packed = np.zeros((blocks, rows * columns, LANES), np.float32)
    tile = np.empty((TAPS, LANES), np.float32)
    for b in range(records):
        _laid_out(inner[b], padding[0], padding[1], image)
        for o in range(outputs):
            own, lane = packed[o // LANES], o % LANES
            for p in range(rows):
                for q in range(columns):
                    own[p * columns + q, lane] = outer[b, o, p, q]
        for k in range(found.shape[1]):
            for j in range(0, taps, TAPS):
                first = min(j, taps - TAPS)  # the last ones may be computed twice
                for block in range(blocks):
                    start = block * LANES
                    within = start + LANES <= outputs  # otherwise some lanes are nobody's
                    into = found[b, k, first:, start:] if within else tile
                    _products(
                        packed[block].ctypes.data,
                        image.ctypes.data + 4 * (k * apart * line + first),
                        rows,
                        columns,
                        stride[0] * line,
                        stride[1] * channels,
                        into.ctypes.data,
                        outputs if within else LANES,
                    )
                    if not within:
                        found[b, k, first : first + TAPS, start:] = tile[:, : outputs - start]
