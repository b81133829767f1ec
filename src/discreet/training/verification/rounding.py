"""Whether rounding may be the reason that a lone record's gradient is not the claimed one.

Two measures of how far rounding moves a gradient, neither of which trusts the other. Monte Carlo arithmetic moves every
result of every operation, forward and backward, at random by some units in the last place: a kink, a tie, a sum that
cancels, an overflow or the norm of a constant row shows itself. The same in double precision shows what happens inside
of one operation, such as the gates of a recurrent layer. How coarse numbers are is read off what torch computed them
in, for autocast computes in half precision what is given and wanted in single.

Reference: Parker (1997), "Monte Carlo arithmetic: exploiting randomness in floating-point arithmetic".

Decision 409.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.training.gradients.trace.trees import tensors

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["RandomRounding", "in_double"]

UNITS = 64.0  # in the last place: more than sums of some thousand terms lose, in another order
OF_HALF = 0.5  # in half precision, where 64 would be half of the number: what each operation loses
HALVES = frozenset({torch.bfloat16, torch.float16})
EXACT = frozenset(
    {
        *("ceil", "floor", "frac", "heaviside", "round", "sgn", "sign", "trunc"),  # may become places
        *("amax", "amin", "aminmax", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort", "topk"),
        *("clamp", "clamp_max", "clamp_min", "cummax", "cummin", "maximum", "minimum", "relu", "threshold"),
        *("_to_copy", "_unsafe_index", "cat", "clone", "constant_pad_nd", "copy", "gather", "index", "index_select"),
        *("abs", "embedding", "fill", "masked_fill", "neg", "repeat", "stack", "where", "zero"),
    }
)
"""Operations that choose or copy: nothing is rounded, and backward passes look for what was chosen by its value."""


SUMS = frozenset(
    {
        *("addmm", "addmv", "baddbmm", "bmm", "convolution", "convolution_backward", "cumsum", "dot", "linear", "mean"),
        *("mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "mm", "mv", "native_group_norm", "native_layer_norm", "sum"),
    }
)
"""Operations that add up terms in an order of their own: near the largest number, whether they overflow depends on it.
Not softmax, whose smallest numbers are masks."""
NEAR = 2.0**-24  # of the largest number: so many terms, or so large weights, would do
NEAR_OF_FLOAT16 = 2.0**-4  # whose largest number is 65,504


class RandomRounding(TorchDispatchMode):
    """Moves what operations make of ``rounded`` tensors; what is made of constants alone, such as masks, stays."""

    def __init__(self, rounded: Iterable[Tensor], seed: int) -> None:
        super().__init__()
        self._generator = np.random.default_rng(seed)  # torch's draws are the record's, and are followed
        self._held = {_place(x): x for x in rounded}  # held, so that nobody else gets their place in memory
        self.near_overflow = False

    def moved(self, x: Tensor) -> Tensor:
        """A copy of a tensor, moved; later operations on it are, too."""
        x = x.detach().clone()
        self._move(x)
        self._held[_place(x)] = x
        return x

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.partition("::")[2]
        rounded = [x for x in tensors((args, kwargs or {})) if _has_place(x) and _place(x) in self._held]
        if name in SUMS:
            self.near_overflow |= any(_is_near_overflow(x) for x in rounded)
        output = func(*args, **(kwargs or {}))
        if not rounded:
            return output
        views = any(part.alias_info is not None and not part.alias_info.is_write for part in func._schema.returns)
        exact = views or name.rstrip("_") in EXACT or name.endswith("_like")
        for x in tensors(output):
            if x.is_floating_point() and _has_place(x):
                if not exact:
                    self._move(x)
                self._held[_place(x)] = x
        return output

    def _move(self, x: Tensor) -> None:
        if x.is_floating_point():
            units = OF_HALF if x.dtype in HALVES else UNITS
            noise = self._generator.uniform(-1.0, 1.0, x.numel()) * units * torch.finfo(x.dtype).eps
            x.mul_(torch.from_numpy(1 + noise).view(x.shape).to(x.device))


def _is_near_overflow(x: Tensor) -> bool:
    near = NEAR_OF_FLOAT16 if x.dtype == torch.float16 else NEAR
    return x.is_floating_point() and not bool((x.abs() < near * torch.finfo(x.dtype).max).all())


def _has_place(x: Tensor) -> bool:
    return x.layout == torch.strided and bool(x.numel())


def _place(x: Tensor) -> int:
    return x.untyped_storage().data_ptr() if _has_place(x) else 0


@contextmanager
def in_double(model: nn.Module) -> Iterator[None]:
    """The model's parameters and buffers in double precision, for the length of a block."""
    kept = [(x, x.data) for x in [*model.parameters(), *model.buffers()] if x.is_floating_point()]
    try:
        for x, data in kept:
            x.data = data.double()
        yield
    finally:
        for x, data in kept:
            x.grad, x.data = None, data
