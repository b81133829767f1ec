"""Runs in the peers' environment: kept bins by jax_privacy's Monte Carlo, and what it may report with its confidence.

The epsilon at which the hockey-stick divergences of the samples, both directions, are at most the ``base_delta`` that
so many samples allow for delta.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.timed import answer_once


def answer(question: dict[str, Any]) -> dict[str, float]:
    from jax_privacy.batch_selection import BallsInBinsSampling
    from jax_privacy.experimental.monte_carlo import delta_calculation, sample_generation

    bins, passes, samples = question["bins"], question["passes"], question["samples"]
    strategy = BallsInBinsSampling(iterations=bins * passes, cycle_length=bins)
    losses = [
        sample_generation.get_privacy_loss_sample(
            strategy, question["noise"], np.array(question["column"]), seed, removed, samples
        )[0]
        for seed, removed in enumerate((True, False))
    ]

    def epsilon(delta: float) -> float:
        low, high = 0.0, 200.0
        for _ in range(60):
            middle = (low + high) / 2
            worst = max(delta_calculation.delta_from_epsilon_and_samples(middle, each) for each in losses)
            low, high = (middle, high) if worst > delta else (low, middle)
        return high

    certain = delta_calculation.get_base_delta(samples, question["delta"])
    return {"estimate": epsilon(question["delta"]), "reported": epsilon(certain)}


if __name__ == "__main__":
    answer_once(answer)
