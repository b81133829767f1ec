"""Noise on a clipped sum: where a private value becomes a released one.

Drawn by ``discreet.random.gaussian_noise`` from the operating system's entropy, or from a seed in the open. Under a seed
every step has a stream of its own, so a run that resumes at a step repeats its noise without carrying a state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from discreet import events
from discreet.errors import extra
from discreet.random import Rng, RngLike, as_rng, gaussian_noise, system
from discreet.random.tap import noised
from discreet.training.threads import torch_threads

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["GaussianNoise", "Streams", "streams"]

Streams: TypeAlias = Callable[[int, int], Rng]


def streams(rng: RngLike) -> tuple[Streams, bool]:
    """A source for every purpose and step, and whether it repeats: the system's own, or children of a seed."""
    source = as_rng(rng)
    if not source.reproducible:
        return (lambda purpose, step: system()), False
    root = source.word()
    return (lambda purpose, step: Rng(np.random.SeedSequence(root, spawn_key=(purpose, step)))), True


class GaussianNoise:
    """Adds Gaussian noise to a flat sum and divides by a public constant.

    ``secure`` takes the cryptographic generator; without it a faster one, keyed by the same entropy.
    """

    def __init__(self, secure: bool = True) -> None:
        self.secure = secure
        gaussian_noise(1, 0.0, secure=secure)  # loads the compiled code before the first step

    def release(self, total: Tensor, *, sensitivity: float, limit: float, multiplier: float, divisor: float,
                rng: Rng) -> Tensor:
        """``total`` plus noise of standard deviation multiplier·sensitivity, over ``divisor``.

        ``limit`` is the most by which ``total`` may move between neighbours. The noise is added in place: afterwards
        nothing holds the sum without it.
        """
        value = total.cpu().numpy()

        def draw() -> Any:
            return gaussian_noise(value, multiplier * sensitivity, rng, secure=self.secure, add=True, scale=1 / divisor,
                                  team=torch_threads)

        what = f"clipped sum, noise multiplier {multiplier:.6g}, sensitivity {sensitivity:.6g}"
        event = gaussian(multiplier * sensitivity, limit)
        return torch.from_numpy(noised(what, value, "l2", limit, draw, event=event))

    def count(self, value: float, *, sigma: float, limit: float, rng: Rng) -> float:
        """A noisy number."""
        def draw() -> Any:
            return value + gaussian_noise(1, sigma, rng, secure=self.secure)[0]

        what = f"count of unclipped records, sigma {sigma:.6g}"
        return float(noised(what, np.float64(value), "l2", limit, draw, event=gaussian(sigma, limit)))


def gaussian(sigma: float, limit: float) -> events.Event:
    """What noise of deviation ``sigma`` costs on what moves by at most ``limit``."""
    return events.Gaussian(noise_multiplier=sigma / limit) if sigma > 0 else events.NonPrivate()
