r"""Scale, then privatise: coordinates are brought to a like size before a gradient is clipped and noised.

Each record's gradient g is multiplied by a *public* scale s, one number a coordinate, then clipped, added up and
noised, and what is released is divided by s again. A record moves the scaled sum by at most the clip norm, whatever s
is, so the price is that of any other run; the noise, of equal size in all coordinates of the scaled sum, is in
proportion to 1/s in the gradient. It is small where gradients are small, which an adaptive optimiser would otherwise
blow up.

A scale is made of public facts and of released gradients alone, and never changes within a batch.

Reference: Li, Zaheer, Liu, Reddi, McMahan and Smith (2023), "Differentially private adaptive optimization with delayed
preconditioners"; Ganesh, McMahan and Thakurta (2025), "On design principles for private adaptive optimizers".

Decision 423.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.errors import extra, number, whole

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["PastGradients", "PublicScale", "Scale", "Scales"]


class Scale(ABC):
    """Where the scales of a run come from; handed to ``Clipping(scale=...)``."""

    @abstractmethod
    def begun(self, parameters: Mapping[str, Tensor]) -> Scales:
        """What one run works on."""


class Scales:
    """The scales of one run: one tensor a parameter, or none while all are one."""

    def __init__(self, values: list[Tensor] | None = None) -> None:
        self.values = values

    def undo(self, total: Sequence[Tensor]) -> None:
        """Divide a noisy sum by the scales, in place."""
        if self.values is not None:
            torch._foreach_div_(list(total), self.values)

    def learn(self, gradient: Sequence[Tensor], variances: Sequence[float | Tensor]) -> None:
        """A gradient was released; ``variances`` are those of the noise in it."""

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint: nothing in it is private."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""


@dataclass(frozen=True, kw_only=True)
class PublicScale(Scale):
    """Scales that are known beforehand, by the parameter's name: of public data, or of a model trained on it.

    Parameters that are not named keep a scale of one.

    >>> PublicScale(values={"weight": 2.0}).begun({"weight": torch.ones(2), "bias": torch.ones(1)}).values
    [tensor([2., 2.]), tensor([1.])]
    """

    values: Mapping[str, Any] = field(compare=False)

    def begun(self, parameters: Mapping[str, Tensor]) -> Scales:
        """The same at every step."""
        if unknown := sorted(set(self.values) - set(parameters)):
            raise ValueError(f"scale names {unknown[0]!r}, but no trained parameter has that name.")
        return Scales([_place(name, self.values.get(name, 1.0), p) for name, p in parameters.items()])


def _place(name: str, value: Any, p: Tensor) -> Tensor:
    found = torch.as_tensor(value, dtype=torch.promote_types(p.dtype, torch.float32), device=p.device).detach()
    if found.dim() and found.shape != p.shape:
        raise ValueError(f"scale of {name!r} has shape {tuple(found.shape)}, but must be a number or as the parameter.")
    if not bool((torch.isfinite(found) & (found > 0)).all()):
        raise ValueError(f"scale of {name!r} is not above zero and finite everywhere, but must be.")
    return found.expand(p.shape).clone()


@dataclass(frozen=True, slots=True, kw_only=True)
class PastGradients(Scale):
    r"""Scales that follow what was released: :math:`s = \bar D/D`, D the root of the second moment of a coordinate.

    D² is the average of squared gradients, ``decay`` of it kept at a step, less the variance that the noise is known to
    have; it is at least ``floor``² times its mean. :math:`\bar D` is the root of that mean over all coordinates, so
    that gradients keep their length, and the clip norm its meaning. Scales change every ``every`` steps, the first
    time after as many, all of them ones before: an average of few noisy gradients says little.
    """

    decay: float = 0.95
    every: int = 10
    floor: float = 0.1

    def __post_init__(self) -> None:
        number("decay", self.decay, low=0, high=1, open_high=True)
        whole("every", self.every, low=1)
        number("floor", self.floor, low=0, high=1, open_low=True)

    def begun(self, parameters: Mapping[str, Tensor]) -> Scales:
        """Nothing is known yet."""
        return _Following(self)


class _Following(Scales):
    """The second moments of released gradients, and the scales made of them."""

    def __init__(self, how: PastGradients) -> None:
        super().__init__()
        self.how, self.steps = how, 0
        self._moments: list[Tensor] = []  # of the gradients, less the noise's

    def learn(self, gradient: Sequence[Tensor], variances: Sequence[float | Tensor]) -> None:
        """Squares less what noise adds to them, averaged."""
        if not self._moments:
            self._moments = [torch.zeros_like(g) for g in gradient]
        for moment, g, variance in zip(self._moments, gradient, variances, strict=True):
            moment.lerp_(g * g - variance, 1 - self.how.decay)
        self.steps += 1
        if self.steps % self.how.every == 0:
            self.values = self._scales()

    def _scales(self) -> list[Tensor] | None:
        """The mean size over that of each coordinate; none where nothing but noise was seen."""
        found = [moment.clamp(min=0) for moment in self._moments]
        count = sum(m.numel() for m in found)
        mean = math.fsum(float(m.double().sum()) for m in found) / count
        if not (math.isfinite(mean) and mean > 0):
            return self.values
        sizes = [m.clamp(min=self.how.floor**2 * mean) for m in found]
        mean = math.fsum(float(m.double().sum()) for m in sizes) / count
        return [(mean / m).sqrt_() for m in sizes]

    def state_dict(self) -> dict[str, Any]:
        """Moments and scales."""
        return {
            "steps": self.steps,
            "moments": [m.clone() for m in self._moments],
            "values": None if self.values is None else [v.clone() for v in self.values],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        if state:
            self.steps, self._moments = int(state["steps"]), [m.clone() for m in state["moments"]]
            self.values = None if state["values"] is None else [v.clone() for v in state["values"]]
