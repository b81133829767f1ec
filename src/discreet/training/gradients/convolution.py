"""Convolutions of any dimension, plain and transposed: windows copied side by side, then outer products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.handlers import KEPT, Handler
from discreet.training.gradients.outer_products import in_parts, outer_norms

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

    def instantiate(self, activations: Tensor, output_gradients: Tensor) -> Tensor:
        """Windows, then a batched matrix product, a few records at a time."""
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
        parts = self._parts(activations, output_gradients)
        return torch.cat([outer_norms(*self._factors(a, g)).view(-1, self.groups).sum(1) for a, g in parts])

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
