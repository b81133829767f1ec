"""Implementations with the faults that libraries of this kind have had, and their honest siblings.

Training is watched one step, or one pass, at a time: with a learning rate of zero a long run is many short ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from discreet import events, mechanisms, tuning
from discreet.release import Release
from discreet.training import Clipping, Shuffled, make_private
from discreet.training.noise import Independent
from discreet.training.noise.base import Gaussians, Step
from discreet.training.sampling.participation import Participation, PoissonSampling

__all__ = [
    "Averaged",
    "FirstSeen",
    "Halved",
    "Naive",
    "NoClip",
    "NotPoisson",
    "Recounted",
    "Tied",
    "Training",
    "one_pass",
    "one_step",
]


class Training:
    """A private run on some records, of which each release is the noisy gradients of the next ``steps`` steps."""

    unit = "one record"

    def __init__(self, records: Tensor, model: torch.nn.Module, *, steps: int = 1, batch_size: int = 4, **options: Any):
        target = torch.zeros(len(records), 1)
        loader = DataLoader(TensorDataset(records, target), batch_size=batch_size)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        told = {"noise_multiplier": 1.0, "epochs": 10_000, "loss_reduction": "mean"} | options
        self.model, self.optimizer, self.loader = make_private(model, optimizer, loader, **told)
        self.steps, self._batches = steps, iter(())

    @property
    def event(self) -> events.Event:
        return self.optimizer.privacy.plan.price(self.steps)

    def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
        return Release([self._step() for _ in range(self.steps)], self.event)

    def _step(self) -> Any:
        batch = next(self._batches, None)
        if batch is None:
            self._batches = iter(self.loader)
            batch = next(self._batches)
        self.optimizer.zero_grad()
        (self.model(batch[0]) - batch[1]).mean().backward()
        self.optimizer.step()
        return [p.grad.numpy().copy() for p in self.model.parameters()]


NOTHING = torch.zeros(4, 2)  # records whose gradient is zero
LARGE = torch.tensor([[30.0, 0.0]])  # one whose gradient is 30 times the clip norm


def one_step(records: Tensor, model: torch.nn.Module | None = None, **options: Any) -> Training:
    return Training(records, model or torch.nn.Linear(2, 1, bias=False), dataset_size=4, **options)


def one_pass(records: Tensor, sampler: Any) -> Training:
    return Training(
        records,
        torch.nn.Linear(2, 1, bias=False),
        steps=5,
        noise_multiplier=0.2,
        sampler=sampler(batch_size=1, dataset_size=5),
    )


class NoClip(Clipping):
    """Says what it clips to, and does not."""

    def terms(self, clip_norm: float, scale: float = 1.0) -> tuple[float, float, float]:
        return math.inf, 0.0, scale


class Halved(Independent):
    """Half of the noise that it is priced for."""

    def release(self, step: Step, total: Sequence[Tensor], gaussians: Gaussians) -> None:
        gaussians.add(total, step.sigma / 2, 1 / step.divisor)


class Averaged(Independent):
    """Noise for a mean of gradients, on their sum: a factor of the batch size is lost."""

    def release(self, step: Step, total: Sequence[Tensor], gaussians: Gaussians) -> None:
        gaussians.add(total, step.sigma / step.divisor, 1 / step.divisor)


class NotPoisson(Shuffled):
    """Shuffled batches that are accounted as Poisson ones."""

    @property
    def participation(self) -> Participation:
        return PoissonSampling(self.rate)


class Tied(torch.nn.Module):
    """One layer that is used eight times."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return sum((self.layer(x) for _ in range(8)), start=torch.zeros(len(x), 1))


class Recounted:
    """Norms of a parameter's uses, each by itself: without the cross terms of tied weights."""

    def __init__(self, honest: Any) -> None:
        self.honest = honest

    def __call__(self, uses: list[Any]) -> Tensor:
        return sum(self.honest([use]) for use in uses[1:]) + self.honest(uses[:1])


@dataclass(frozen=True)
class FirstSeen:
    """A histogram of keys that shows each as the first record wrote it."""

    honest: Any
    unit = "one record"

    @property
    def event(self) -> events.Event:
        return self.honest.event

    def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
        found = self.honest.release(data, rng)
        first = {key: key for key in reversed(data)}
        return replace(found, value={repr(first[key]): n for key, n in Counter(found.value).items()})


@dataclass(frozen=True)
class Naive:
    """A search that compares exact errors, and charges for the candidates' training only."""

    honest: tuning.Selection
    unit = "one record"

    @property
    def event(self) -> events.Event:
        return self.honest.event

    def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
        best = min(self.honest.candidates, key=lambda params: abs(sum(data) - params["guess"]))
        return Release(best["guess"], self.event)


@dataclass(frozen=True)
class Guess:
    """A candidate that is a public number: training it costs nothing."""

    guess: float
    unit = "one record"
    event = events.Composed(events=())

    def release(self, data: Any = None, rng: Any = None) -> Release[float]:
        return Release(self.guess, self.event)


def search() -> tuning.Selection:
    """Which of two numbers is nearer to how many ones there are."""
    near = tuning.Total(
        values=lambda guess, data: [1.0 if guess > 10 and x else 0.0 for x in data], bounds=(0.0, 1.0), epsilon=0.5
    )
    return tuning.Selection(train=lambda p: Guess(p["guess"]), space={"guess": [10.0, 13.0]}, score=near, mean=3.0)


def histogram() -> mechanisms.StabilityHistogram:
    return mechanisms.StabilityHistogram(epsilon=1.0, delta=1e-6)
