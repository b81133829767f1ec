"""Products of matrices of single precision on the processor, by whichever of torch's two libraries is quicker there.

``torch.mm`` is MKL's, which leaves half of the vector unit of a processor that is not Intel's idle. oneDNN, by which
torch convolves and runs its LSTM, does not: on one core 100 and 230 billion operations a second. It copies what is not
in its own order, so small products stay with MKL, and large ones are made a part of the rows at a time.

Decision 418.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from llvmlite.binding import get_host_cpu_name  # type: ignore[import-untyped]

from discreet.errors import extra

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["rows_product", "tall_product"]

LEAST = 1 << 21  # multiplications that are worth a call, which takes 20 microseconds
FEWEST = 512  # rows of a part, and more while a copy of it stays below
PART = 1 << 20  # numbers


@cache
def _onednn() -> Callable[..., Tensor] | None:
    """x, W, b -> x Wᵀ + b by oneDNN, where MKL is slower: on AMD's processors that have AVX-512."""
    if not get_host_cpu_name().startswith("znver") or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return None
    product = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    return None if product is None else lambda x, w, b=None: product.default(x, w, b, "none", [], "")


def _by_onednn(one: Tensor, other: Tensor, columns: int) -> Callable[..., Tensor] | None:
    """oneDNN's product where these two matrices, with so many columns in the result, are for it; else none."""
    if one.dtype != torch.float32 or other.dtype != torch.float32 or one.numel() * columns < LEAST:
        return None
    return _onednn() if one.device.type == other.device.type == "cpu" else None


def rows_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b of matrices, as precise under autocast. Autograd must not be listening: nothing here has a gradient."""
    product = _by_onednn(x, weight, len(weight))
    if product is not None:
        return product(x, weight, bias)
    out = x.new_empty(len(x), len(weight))  # functions that write to it are not autocast's
    return torch.mm(x, weight.t(), out=out) if bias is None else torch.addmm(bias, x, weight.t(), out=out)


def tall_product(u: Tensor, v: Tensor, out: Tensor) -> Tensor:
    """uᵀv of two tall matrices, written where it belongs."""
    product = _by_onednn(u, v, v.shape[1])
    if product is None:
        return torch.mm(u.T, v, out=out)
    # the thinner one is copied, row by column, before oneDNN sees it
    thin, wide = (u, v) if u.shape[1] <= v.shape[1] else (v, u)
    rows = max(FEWEST, PART // (u.shape[1] + v.shape[1]))
    first, *others = zip(thin.split(rows), wide.split(rows), strict=True)
    total = product(first[0].T, first[1].T)
    for a, b in others:
        total += product(a.T, b.T)
    return out.copy_(total if thin is u else total.T)
