"""Trainings that are broken in ways that trusted libraries were: each patches one place of this one, for one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from discreet.auditing import GradientCanaries
from discreet.random import Streams, seeded
from discreet.training import make_private
from discreet.training.errors import PrivateTrainingError
from discreet.training.noise import LambdaCGD, lambda_cgd
from discreet.training.noise import base as noise_base
from discreet.training.sampling import BallsInBins, poisson

RECORDS, CANARIES = 400, 200


def train(
    *,
    steps: int | None = None,
    audit: Any = None,
    start: Any = None,
    seed: int | None = None,
    model: Any = None,
    records: int = RECORDS,
    batch_size: int = 40,
    **options: Any,
) -> tuple[Any, str]:
    """A small network, audited: its ``privacy``, and what stopped it."""
    if model is None:
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    made = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randn(records, 8, generator=made), torch.randint(0, 2, (records,), generator=made))
    asked: dict[str, Any] = {"noise_multiplier": 1.0, "epochs": 4, "loss_reduction": "mean", "rng": seed}
    asked["audit"] = audit if audit is not None else GradientCanaries(CANARIES, every=10, report=None)
    model, optimizer, loader = make_private(
        model, optimizer, DataLoader(data, batch_size=batch_size), **asked | options
    )
    if start is not None:
        optimizer.privacy.load_state_dict(*(start if isinstance(start, tuple) else (start,)))
    privacy = optimizer.privacy
    try:
        while privacy.remaining_steps and privacy.steps != steps:
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
                if not privacy.remaining_steps or privacy.steps == steps:
                    break
    except PrivateTrainingError as stopped:
        return privacy, str(stopped)
    return privacy, ""


def _noise_of(factor: float) -> Any:
    honest = noise_base.Gaussians.add

    def add(self: Any, tensors: Any, sigma: float, scale: float = 1.0, **how: Any) -> None:
        honest(self, tensors, factor * sigma, scale, **how)

    return patch.object(noise_base.Gaussians, "add", add)


def no_noise() -> tuple[Any, str]:
    """The noise has no scale."""
    with _noise_of(0.0):
        return train()


def half_noise() -> tuple[Any, str]:
    """The noise has half its scale."""
    with _noise_of(0.5):
        return train()


def noise_once() -> tuple[Any, str]:
    """Every step adds the same noise."""
    secret = int(np.random.SeedSequence().generate_state(1)[0])
    with patch.object(Streams, "noise", lambda self, *index: seeded(secret)):
        return train()


def noise_of_two_ranks() -> tuple[Any, str]:
    """Two ranks put the same noise on their halves of a vector."""
    honest = noise_base.Gaussians.add

    def add(self: Any, tensors: Any, sigma: float, scale: float = 1.0, **how: Any) -> None:
        key = self.key()
        for half in (0, 1):
            shares = [t.view(-1)[half * (t.numel() // 2) : (half + 1) * (t.numel() // 2)] for t in tensors]
            honest(self.keyed(key), shares, sigma, scale, **how)

    with patch.object(noise_base.Gaussians, "add", add):
        return train()


def twice_the_rate() -> tuple[Any, str]:
    """Coins fall heads twice as often as claimed."""
    honest = poisson.chosen
    with patch.object(poisson, "chosen", lambda rate, keys, rng: honest(2 * rate, keys, rng)):
        return train()


def two_bins() -> tuple[Any, str]:
    """Every record is in its bin, and in the next."""

    def draw(self: Any, step: int, size: int, keys: Any, order: Any, rng: Any) -> Any:
        place = step % self.steps_per_pass
        return np.flatnonzero((order[:size] == place) | ((order[:size] + 1) % self.steps_per_pass == place))

    with patch.object(BallsInBins, "draw", draw):
        return train(sampler="balls-in-bins")


def a_wrong_matrix() -> tuple[Any, str]:
    """More of the last step's noise is taken back than the price says."""
    honest = lambda_cgd._Redrawn.__init__

    def wrong(self: Any, noise: Any, back: float) -> None:
        honest(self, noise, 0.9)

    with patch.object(lambda_cgd._Redrawn, "__init__", wrong):
        return train(noise=LambdaCGD(back=0.5), noise_multiplier=2.0)


def a_resume_that_repeats() -> tuple[Any, str]:
    """A run is saved and resumed, and draws the noise of its first steps once more."""
    secret = int(np.random.SeedSequence().generate_state(1)[0])
    with patch.object(Streams, "noise", lambda self, step, *rest: seeded(secret + step)):
        privacy, stopped = train(steps=20)
        if stopped:
            return privacy, stopped
        state = privacy.state_dict()
    with patch.object(Streams, "noise", lambda self, step, *rest: seeded(secret + step - 20)):
        return train(start=state)


EIGHT: dict[str, Callable[[], tuple[Any, str]]] = {
    "no noise": no_noise,
    "half the noise": half_noise,
    "noise drawn once": noise_once,
    "noise shared by two ranks": noise_of_two_ranks,
    "twice the rate": twice_the_rate,
    "a record in two bins": two_bins,
    "a wrong matrix": a_wrong_matrix,
    "a resume that repeats noise": a_resume_that_repeats,
}


@contextmanager
def weights_without_noise() -> Iterator[None]:
    """The canaries' tensor alone is noised."""
    honest = noise_base.Gaussians.add

    def add(self: Any, tensors: Any, sigma: float, scale: float = 1.0, **how: Any) -> None:
        honest(self, tensors[:-1], 0.0, scale, **how)
        honest(self, tensors[-1:], sigma, scale, **how)

    with patch.object(noise_base.Gaussians, "add", add):
        yield
