r"""Is every layer clipped? A made-up record of an enormous gradient goes through the clipping of a batch.

Its gradient is R clip norms long, in the layer of one use of a parameter: numbers at random, in the form of what the
layer saved and got back, go through the layer's own rule for norms and sums. If it is clipped, the sum moves by at most
one clip norm along a direction that is known; if the layer's norm is forgotten, by R. The public size n bounds what
other records can do to the sum, by n clip norms, and noise stays within ten times its scale but for a chance of 1e-22,
so that :math:`R = 4(n + 1 + 10 z)` leaves no doubt at half of it: one sight refutes.

The clipped part is a unit vector times the layer's clip norm, and is taken away from what is released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.training.gradients.trace.trees import mapped
from discreet.training.gradients.uses import Use
from discreet.training.noise.base import Step
from discreet.training.plan import Plan

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["ClipProbe"]

ROUNDS, LATER = 2, 64  # every layer twice at the beginning, and later one layer in so many steps
REFUTED = 1e9


class ClipProbe:
    """Asks the layers of a model in turn."""

    def __init__(self, parameters: Mapping[str, Tensor], plan: Plan, rng: np.random.Generator) -> None:
        self._parameters = list(parameters.values())
        self._place = {id(p): i for i, p in enumerate(self._parameters)}
        block, shares = plan.clipping.blocks(list(parameters))
        self._shares = [float(shares[b]) for b in block]
        self._records, self._rng = plan.sampler.dataset_size, torch.Generator().manual_seed(int(rng.integers(2**62)))
        self._scaled = plan.clipping.scale is not None
        self._turn = 0
        self._added: tuple[int, Tensor, float] | None = None  # a parameter, a unit vector and what was raw of it
        self._multiplier = plan.noise_multiplier
        self.asked: set[int] = set()  # the parameters that were asked
        self.unclipped: set[int] = set()

    @property
    def log(self) -> float:
        """The logarithm of the e-process."""
        return REFUTED if self.unclipped else 0.0

    def made_up(self, step: int, uses: Sequence[Use], clip_norm: float) -> list[Use] | None:
        """The uses of a made-up record, in one layer."""
        ours = [use for use in uses if id(use.target) in self._place]
        if self._scaled or not ours or (self._turn >= ROUNDS * len(ours) and step % LATER):
            return None
        use = ours[self._turn % len(ours)]
        self._turn += 1
        place = self._place[id(use.target)]
        raw = 4 * (self._records + 1 + 10 * self._multiplier) * clip_norm
        with torch.no_grad():
            try:  # what a rule saved of a call may have another form than one record's
                made = self._like(use)
                formed = made.formed().double().sum(0)
                length = float(formed.norm())
                if not 1e-12 < length < 1e12:
                    return None
                made = _times(made, raw / length)
                one = torch.ones(1, dtype=made.target.dtype, device=made.target.device)
                added = made.weighted(one).view_as(formed).double() * (length / raw)
                if made.squared_norms().shape != (1,) or not torch.allclose(
                    added, formed, rtol=1e-3, atol=1e-4 * length
                ):
                    return None
            except (RuntimeError, ValueError, IndexError, TypeError):
                return None  # it is not among those that were asked
        self._added = place, formed / length, raw
        return [made]

    def read(self, gradient: list[Tensor], step: Step) -> None:
        """Look for the record in what was released, and take its clipped part away."""
        if self._added is None:
            return
        (place, unit, raw), self._added = self._added, None
        released = gradient[place]
        unit = unit.to(released.device)
        self.asked.add(place)
        if float((released.double() * unit).sum()) * step.divisor > raw / 2:
            self.unclipped.add(place)
        part = self._shares[place] * step.sensitivity / step.divisor
        released -= (part * unit).to(released.dtype)

    def _like(self, use: Use) -> Use:
        """A made-up record's use of the same tensor, by the same rule."""
        if use.instances is not None:
            return replace(use, instances=self._normal(use.instances), bias=None, terms=None)
        assert use.gradients is not None
        use = replace(use, terms=None)
        if use.bias is not None:
            use.without_bias()
        return replace(use, activations=mapped(self._normal, use.activations), gradients=self._normal(use.gradients))

    def _normal(self, like: Any) -> Any:
        """Numbers at random, in the form of one record's; whole numbers are zero, which is a valid place everywhere."""
        if not isinstance(like, Tensor) or not like.dim():
            return like
        shape = (1, *like.shape[1:])
        if not like.is_floating_point():
            return torch.zeros(shape, dtype=like.dtype, device=like.device)
        return torch.randn(shape, generator=self._rng).to(like)


def _times(use: Use, factor: float) -> Use:
    if use.instances is not None:
        return replace(use, instances=use.instances * factor)
    assert use.gradients is not None
    return replace(use, gradients=use.gradients * factor)
