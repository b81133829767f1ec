r"""Noise of different steps that cancels: the sums of a run are released as x + C⁻¹z.

``Correlated`` states the price and finds the matrix; a run works on a ``Stream``, which holds what the noise remembers.
What it remembers would take the noise of released steps away, so it is *secret*: it is never in a checkpoint, but in
``privacy.secret_state_dict()``, to be kept apart from whatever is published.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from discreet import events
from discreet.errors import extra
from discreet.mechanisms.factorization import Measure, Pattern, Strategy, Workload
from discreet.sessions import PaidOnce, one_at_a_time
from discreet.training.noise.base import Gaussians, Noise, Step
from discreet.training.sampling import KeptBins, Sampler
from discreet.training.sampling.participation import Participation

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Correlated", "Stream", "Vector"]


@dataclass(frozen=True, kw_only=True)
class Correlated(Noise):
    """Noise through a matrix, for an optimiser of this ``momentum`` that keeps ``decay`` of the model at every step.

    The noise multiplier is that of the fresh draws. ``error`` is what a matrix is optimised for: the mean over steps,
    or the largest.

    Guarantee: the Gaussian mechanism on C times the sums, at C's sensitivity for the sampler's participation.
    """

    momentum: float = 0.0
    decay: float = 1.0
    error: Measure = "mean"

    def __post_init__(self) -> None:
        self.workload(1)  # refuses a momentum or a decay that none is
        if self.error not in ("mean", "max"):
            raise ValueError(f"error is {self.error!r}, but must be 'mean' or 'max'.")

    @abstractmethod
    def strategy_for(self, pattern: Pattern) -> Strategy:
        """The matrix for records that take part so."""

    def workload(self, steps: int) -> Workload:
        """What the noise is felt through."""
        return Workload(steps, self.momentum, self.decay)

    def strategy(self, participation: Participation, steps: int) -> Strategy:
        """The matrix of a run, found once."""
        return _strategy(self, participation.pattern(steps))

    def sampler(self, batch_size: int, dataset_size: int) -> Sampler:
        """The one that its price is proved with: every record has a step of a pass, the same in all passes."""
        return KeptBins(batch_size=batch_size, dataset_size=dataset_size)

    def event(self, participation: Participation, multipliers: Sequence[float]) -> events.Event:
        """One price for all steps."""
        if not multipliers:
            return events.Composed(events=())
        if len(set(multipliers)) > 1:
            raise ValueError(
                f"noise_schedule is set, but the steps of {type(self).__name__} share one noise: leave it out, or use "
                "Independent()."
            )
        return participation.correlated(self.strategy(participation, len(multipliers)), multipliers[0])

    def vectors(self, participation: Participation, steps: int) -> int:
        """How many vectors of the model's size are kept from step to step."""
        return self.strategy(participation, steps).memory

    def deviation(self, participation: Participation, steps: int) -> float:
        """The root of the mean variance, over steps, of the noise in what the optimiser sums up, at multiplier 1."""
        return self.strategy(participation, steps).error(self.workload(steps))

    def begun(self, participation: Participation, steps: int) -> Noise:
        """A stream that has drawn nothing."""
        return Stream(self, self.strategy(participation, steps))

    def release(self, step: Step, total: Sequence[Tensor], gaussians: Gaussians) -> None:
        """A run's own stream does this."""
        raise TypeError(f"{type(self).__name__} draws nothing before a run has begun: begun(participation, steps).")


@lru_cache(maxsize=64)
def _strategy(noise: Correlated, pattern: Pattern) -> Strategy:
    strategy = noise.strategy_for(pattern)
    if strategy.steps != pattern.steps:
        raise ValueError(
            f"{type(noise).__name__} found a matrix of {strategy.steps} steps for a run of {pattern.steps}: the steps "
            "beyond it would have no price."
        )
    return strategy


@lru_cache(maxsize=8)
def _variances(strategy: Strategy) -> Any:
    return strategy.variances()


class Stream(PaidOnce, Noise):
    """The noise of one run, and what it remembers."""

    def __init__(self, noise: Correlated, strategy: Strategy) -> None:
        super().__init__()
        self.noise, self.strategy = noise, strategy
        self._memory: list[Vector] = []
        self._next = 0
        self._torn = False  # whether a step was begun and did not end: what is remembered may be half of it

    def event(self, participation: Participation, multipliers: Sequence[float]) -> events.Event:
        """As planned."""
        return self.noise.event(participation, multipliers)

    def begun(self, participation: Participation, steps: int) -> Noise:
        """Another one, which remembers nothing of this."""
        return self.noise.begun(participation, steps)

    @one_at_a_time
    def release(self, step: Step, total: Sequence[Tensor], gaussians: Gaussians) -> None:
        """The next row of C⁻¹z; those of steps that were left out are drawn and never shown."""
        if step.number < self._next:
            raise ValueError("A step comes twice, but its noise was released: the run went back.")
        self._refuse_torn()
        self._torn = True
        draw = drawing(total, gaussians)
        while self._next < step.number:
            self.strategy.advance(self._next, draw, self._memory)
            self._next += 1
        noise: Vector = self.strategy.advance(step.number, draw, self._memory)
        self._next = step.number + 1
        noise.add_to(total, step.sigma, step.divisor)
        self._torn = False

    def spread(self, step: int) -> float:
        """The norm of a row of C⁻¹."""
        return float(_variances(self.strategy)[step]) ** 0.5

    @one_at_a_time
    def state_dict(self) -> dict[str, Any]:
        """Secret: the noise that later steps depend on."""
        self._refuse_torn()
        return {"next": self._next, "memory": [[t.clone() for t in vector.parts] for vector in self._memory]}

    def _refuse_torn(self) -> None:
        if self._torn:
            raise ValueError(
                "The noise of a step was interrupted, and what it remembers may be half of that step: go on from the "
                "last checkpoint, in a new run."
            )

    @one_at_a_time
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._torn = False
        self._next, self._memory = int(state["next"]), [Vector([t.clone() for t in parts]) for parts in state["memory"]]


# --- vectors -------------------------------------------------------------------------------------------------------


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
