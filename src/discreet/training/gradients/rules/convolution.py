"""Convolutions of any dimension, plain and transposed: ghost clipping where forming gradients is dearer.

The common ones have compiled loops that form gradients as fast as torch adds them up (``convolution_kernels``); in the
others windows are copied side by side, then outer products.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.rules.convolution_kernels import TAPS, record_gradients
from discreet.training.gradients.rules.handlers import KEPT, Handler, Measured, outward, squares
from discreet.training.gradients.rules.outer_products import PART, by_group, in_parts, outer_norms
from discreet.training.speed import on_threads

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor

__all__ = ["ConvolutionWeight"]


# numbers of copied windows at a time: larger pieces are given back to the system and faulted in again
WINDOWS = 1 << 20


class ConvolutionWeight(Handler):
    """The kernel of a convolution: activations are the inputs [B, C, *space], gradients [B, O, *positions].

    A transposed convolution is a convolution whose input and output gradient change places.
    """

    def __init__(
        self,
        weight: Tensor,
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dilation: tuple[int, ...],
        groups: int,
        *,
        transposed: bool = False,
        output_padding: tuple[int, ...] = (),
    ) -> None:
        self.shape, self.stride, self.padding, self.dilation = weight.shape, stride, padding, dilation
        self.groups, self.transposed = groups, transposed
        self.output_padding = output_padding or (0,) * len(stride)

    def _factors(self, activations: Tensor, output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        """u [B·groups, T, out/groups] and v [B·groups, T, kernel·in/groups], channels last: windows are copied in long
        runs."""
        outer, inner = (activations, output_gradients) if self.transposed else (output_gradients, activations)
        rows, positions = outer.shape[0] * self.groups, outer.shape[2:]
        v = self._windows(inner, positions).reshape(rows, positions.numel(), self.shape[1:].numel())
        u = outer.reshape(rows, outer.shape[1] // self.groups, positions.numel())
        return u.transpose(1, 2), v

    def _windows(self, x: Tensor, positions: torch.Size) -> Tensor:
        """The windows of x [B, C, *space] as a view [B, groups, *positions, *kernel, C/groups]."""
        if any(self.padding):
            x = F.pad(x, [side for p in reversed(self.padding) for side in (p, p)])
        x = x.movedim(1, -1).contiguous()
        record, *steps, channel = x.stride()
        each = x.shape[-1] // self.groups
        return x.as_strided(
            (x.shape[0], self.groups, *positions, *self.shape[2:], each),
            (
                record,
                each * channel,
                *(a * s for a, s in zip(steps, self.stride, strict=True)),
                *(a * d for a, d in zip(steps, self.dilation, strict=True)),
                channel,
            ),
        )

    def _steps(self, activations: Tensor, output_gradients: Tensor) -> int:
        return (activations if self.transposed else output_gradients).shape[2:].numel()

    def _parts(self, activations: Tensor, output_gradients: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Inputs and gradients of a few records at a time."""
        most = WINDOWS // max(1, self._steps(activations, output_gradients) * self.shape[1:].numel() * self.groups)
        return zip(in_parts(activations, most), in_parts(output_gradients, most), strict=True)

    def prefers_instances(self, activations: Tensor, output_gradients: Tensor) -> bool:
        """Where forming them is no dearer than measuring, and they are small, or not larger than what they replace."""
        steps, kept = self._steps(activations, output_gradients), activations.shape[0] * self.shape.numel()
        m, n = self.shape[0] // self.groups, self.shape[1:].numel()
        fits = kept <= max(KEPT // 2, activations.numel() + output_gradients.numel())
        return m * n < 2 * steps * (m + n) and fits

    def _compiled(self, x: Tensor, g: Tensor) -> bool:
        """Whether gradients are formed by compiled loops: one group, columns of the kernel that lie side by side."""
        outer, inner = (x, g) if self.transposed else (g, x)
        sizes = zip(outer.shape[2:], self.stride, self.dilation, self.shape[2:], strict=True)
        needed = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in sizes]
        inside = all(n <= size + 2 * p for n, size, p in zip(needed, inner.shape[2:], self.padding, strict=True))
        plain = len(self.stride) <= 2 and self.groups == 1 and self.dilation[-1] == 1
        single = all(part.dtype == torch.float32 and part.device.type == "cpu" and part.numel() for part in (x, g))
        return plain and single and inside and self.shape[1] * self.shape[-1] >= TAPS

    def _form(self, activations: Tensor, output_gradients: Tensor) -> Tensor:
        """[B, *kernel, C, O], by compiled loops, on as many threads as torch has."""
        outer, inner = (activations, output_gradients) if self.transposed else (output_gradients, activations)
        found = outer.new_empty(outer.shape[0], *self.shape[2:], self.shape[1], self.shape[0])
        more = [1] * (2 - len(self.stride))  # a line is an image of one row
        arrays = [
            outer.reshape(*outer.shape[:2], *more, *outer.shape[2:]).contiguous().detach().numpy(),
            inner.reshape(*inner.shape[:2], *more, *inner.shape[2:]).contiguous().detach().numpy(),
            found.view(len(found), *more, *self.shape[2:-1], -1, self.shape[0]).numpy(),
        ]
        stride, dilation = ((*more, *sizes)[:2] for sizes in (self.stride, self.dilation))
        padding: Any = (*[0] * len(more), *self.padding)
        parts = min(torch.get_num_threads(), len(found))
        ends = [len(found) * i // parts for i in range(parts + 1)]

        def form(i: int) -> None:
            outer, inner, found = (x[ends[i] : ends[i + 1]] for x in arrays)
            record_gradients(outer, inner, stride, padding, dilation[0], found)  # type: ignore[arg-type]

        on_threads(form, parts)
        return found

    def instantiate(self, activations: Tensor, output_gradients: Tensor) -> Tensor:
        """By compiled loops, or windows, then a batched matrix product, a few records at a time."""
        if self._compiled(activations, output_gradients):
            found = self._form(activations, output_gradients)
            return found.permute(0, -1, -2, *range(1, found.dim() - 2))
        m, n = self.shape[0] // self.groups, self.shape[1:].numel()
        found = activations.new_empty(activations.shape[0] * self.groups, m, n)
        start = 0
        for a, g in self._parts(activations, output_gradients):
            u, v = self._factors(a, g)
            torch.bmm(u.transpose(1, 2), v, out=found[start : start + len(u)])
            start += len(u)
        return found.view(activations.shape[0], self.shape[0], *self.shape[2:], self.shape[1]).movedim(-1, 2)

    def squared_norms(self, activations: Tensor, output_gradients: Tensor) -> Tensor:
        """Groups are separate tensors, so their squares add."""
        return self.measure(activations, output_gradients)[0]

    def measure(self, activations: Tensor, output_gradients: Tensor) -> Measured:
        """The same; the terms are the windows."""
        m, n, steps = self.shape[0], self.shape[1:].numel(), self._steps(activations, output_gradients)
        if self._compiled(activations, output_gradients) and m * n < 1.2 * steps * (m + n):
            return self._formed_norms(activations, output_gradients)
        parts = self._parts(activations, output_gradients)
        return _join([by_group(outer_norms(*self._factors(a, g)), self.groups) for a, g in parts])

    def _formed_norms(self, activations: Tensor, output_gradients: Tensor) -> Measured:
        """Norms of gradients that are formed, a few records at a time, and not kept."""
        found: list[Measured] = []
        each = PART // self.shape.numel()
        for a, g in zip(in_parts(activations, each), in_parts(output_gradients, each), strict=True):
            # a number is in as many windows as the kernel has places, at most
            lengths = [squares(x.flatten(1)).sqrt_() for x in (a, g)]
            terms = lengths[0] * lengths[1] * math.sqrt(self.shape[2:].numel())
            found.append((outward(squares(self._form(a, g).flatten(1)).sqrt_(), terms), terms))
        return _join(found)

    def weighted_sum(self, activations: Tensor, output_gradients: Tensor, weights: Tensor) -> Tensor:
        """An ordinary weight gradient, of weighted output gradients."""
        scaled = output_gradients * weights.view(-1, *[1] * (output_gradients.dim() - 1))
        weight = activations.new_empty(()).expand(self.shape)
        found: Any = torch.ops.aten.convolution_backward(
            scaled,
            activations,
            weight,
            None,
            self.stride,
            self.padding,
            self.dilation,
            self.transposed,
            self.output_padding,
            self.groups,
            [False, True, False],
        )[1]
        return found  # type: ignore[no-any-return]


def _join(parts: Sequence[Measured]) -> Measured:
    """What was measured a few records at a time."""
    terms = [own for _, own in parts if own is not None]
    return torch.cat([own for own, _ in parts]), torch.cat(terms) if terms else None
