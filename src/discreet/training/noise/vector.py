"""Tensors, one a parameter and each on its device, as one vector: what a strategy adds and multiplies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from discreet.errors import extra
from discreet.training.noise.gaussians import Gaussians

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Vector", "drawing"]


class Vector:
    """A list of tensors.

    >>> two = Vector([torch.ones(2), torch.ones(1)]) * 2.0
    >>> two.sub_(two, alpha=0.25).parts
    [tensor([1.5000, 1.5000]), tensor([1.5000])]
    """

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Tensor]) -> None:
        self.parts = list(parts)

    def __mul__(self, factor: float) -> Vector:
        return Vector(torch._foreach_mul(self.parts, factor))

    def __imul__(self, factor: float) -> Vector:
        torch._foreach_mul_(self.parts, factor)
        return self

    def sub_(self, other: Vector, *, alpha: float) -> Vector:
        """Take ``alpha`` times another away, in place."""
        torch._foreach_sub_(self.parts, other.parts, alpha=alpha)
        return self

    def add_to(self, total: Sequence[Tensor], sigma: float, divisor: float) -> None:
        """``total`` plus ``sigma`` times this, divided; in place."""
        given = list(total)
        torch._foreach_add_(given, self.parts, alpha=sigma)
        torch._foreach_div_(given, divisor)


def drawing(like: Sequence[Tensor], gaussians: Gaussians) -> Callable[[], Any]:
    """Fresh noise of unit variance, in the form of these tensors, at each call."""

    def draw() -> Vector:
        fresh = [torch.zeros_like(part) for part in like]
        gaussians.add(fresh, 1.0)
        return Vector(fresh)

    return draw
