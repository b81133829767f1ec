"""Convolutions of any dimension, plain and transposed: patches by strides, then outer products."""

from __future__ import annotations

from typing import Any

from discreet.errors import extra
from discreet.training.rules import KEPT, Rule, outer_norms

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor

__all__ = ["ConvolutionWeight", "patches"]


def patches(x: Tensor, kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...],
            dilation: tuple[int, ...]) -> Tensor:
    """Every window of x [B, C, *space] as a view [B, *positions, C, *kernel]: no copy but that of the padding."""
    if any(padding):
        x = F.pad(x, [side for p in reversed(padding) for side in (p, p)])
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    positions = [(size - r) // s + 1 for size, r, s in zip(x.shape[2:], reach, stride, strict=True)]
    steps = x.stride()[2:]
    return x.as_strided((x.shape[0], *positions, x.shape[1], *kernel),
                        (x.stride(0), *(a * s for a, s in zip(steps, stride, strict=True)), x.stride(1),
                         *(a * d for a, d in zip(steps, dilation, strict=True))))


class ConvolutionWeight(Rule):
    """The kernel of a convolution: activations are the inputs [B, C, *space], gradients [B, O, *positions].

    A transposed convolution is a convolution whose input and output gradient change places.
    """

    def __init__(self, weight: Tensor, stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...],
                 groups: int, *, transposed: bool = False, output_padding: tuple[int, ...] = ()) -> None:
        self.shape, self.stride, self.padding, self.dilation = weight.shape, stride, padding, dilation
        self.groups, self.transposed = groups, transposed
        self.output_padding = output_padding or (0,) * len(stride)

    def _factors(self, activations: Tensor, output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        """u [B·groups, T, out/groups] and v [B·groups, T, in/groups·kernel]."""
        outer, inner = (activations, output_gradients) if self.transposed else (output_gradients, activations)
        windows = patches(inner, tuple(self.shape[2:]), self.stride, self.padding, self.dilation)
        for d, size in enumerate(outer.shape[2:]):  # positions that output_padding adds belong to no input
            windows = windows.narrow(1 + d, 0, size)
        records, space, g = outer.shape[0], outer.dim() - 2, self.groups
        v = windows.unflatten(1 + space, (g, -1)).movedim(1 + space, 1)
        v = v.reshape(records * g, outer[0, 0].numel(), self.shape[1:].numel())
        u = outer.reshape(records * g, outer.shape[1] // g, -1).transpose(1, 2)
        return u, v

    def prefers_instances(self, activations: Tensor, output_gradients: Tensor) -> bool:
        """As for any outer product, by shapes alone."""
        records = activations.shape[0]
        steps = (activations if self.transposed else output_gradients)[0, 0].numel()
        m, n = self.shape[0] // self.groups, self.shape[1:].numel()
        return m * n < 2 * steps * (m + n) and records * self.shape.numel() <= KEPT

    def instantiate(self, activations: Tensor, output_gradients: Tensor) -> Tensor:
        """Patches, then one batched matrix product."""
        u, v = self._factors(activations, output_gradients)
        return torch.bmm(u.transpose(1, 2), v).view(activations.shape[0], *self.shape)

    def squared_norms(self, activations: Tensor, output_gradients: Tensor) -> Tensor:
        """Groups are separate tensors, so their squares add."""
        rows = max(1, KEPT // max(1, activations.shape[2:].numel() * self.shape[1:].numel() * self.groups))
        parts = zip(activations.split(rows), output_gradients.split(rows), strict=True)
        return torch.cat([outer_norms(*self._factors(a, g)).view(-1, self.groups).sum(1) for a, g in parts])

    def weighted_sum(self, activations: Tensor, output_gradients: Tensor, weights: Tensor) -> Tensor:
        """An ordinary weight gradient, of weighted output gradients."""
        scaled = output_gradients * weights.view(-1, *[1] * (output_gradients.dim() - 1))
        weight = activations.new_empty(()).expand(self.shape)
        found: Any = torch.ops.aten.convolution_backward(
            scaled, activations, weight, None, self.stride, self.padding, self.dilation, self.transposed,
            self.output_padding, self.groups, [False, True, False])[1]
        return found  # type: ignore[no-any-return]
