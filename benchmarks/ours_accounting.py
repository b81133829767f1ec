"""Runs in our environment: the certified interval of a composition of Poisson-sampled Gaussians."""

from __future__ import annotations

from typing import Any

import discreet as dp
from benchmarks.timed import answer_once


def answer(question: dict[str, Any]) -> tuple[float, float]:
    step, noise = dp.events.PoissonSampled, dp.events.Gaussian
    event = sum(step(rate=q, event=noise(noise_multiplier=s)) * t for q, s, t in question["steps"])
    return dp.epsilon_bounds(event, delta=question["delta"])


if __name__ == "__main__":
    answer_once(answer)
