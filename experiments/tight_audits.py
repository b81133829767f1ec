"""How near audits come to claims that are tight: ``python -m experiments.tight_audits [--quick] [NAME ...]``.

Each mechanism claims epsilon = 1 and is audited at 99 % confidence on neighbours at its full sensitivity. The median of
21 audits is printed as a share of the claim, for 10^4 and for 10^5 observations a side.

*DP-GD* is a run of four full-batch steps through ``make_private``, with gradient canaries on coordinates of their own;
an observation is what the released sums add up to along a canary. A run has five thousand canaries, whose noise is
independent. *DP-GD, a record* has one observation a run: neighbours with and without a record of a large gradient,
which goes through loader, model and clipping; it is audited three times, at 10^4.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import discreet as dp
from discreet import auditing, events, mechanisms
from discreet.release import Release
from experiments import _results

AUDITS, SIZES = 21, (10_000, 100_000)
TARGETS = {10_000: 0.68, 100_000: 0.88}
STEPS, DELTA = 4, 1e-5


class Observed:
    """Observations of a mechanism that ran elsewhere, as an operation: data says which side is asked."""

    unit = "one record"

    def __init__(self, event: events.Event, sides: tuple[Iterator[float], Iterator[float]]) -> None:
        self.event, self._sides = event, sides

    def release(self, data: Any = None, rng: Any = None) -> Release[float]:
        """The next observation of a side."""
        return Release(next(self._sides[data]), self.event)


@cache
def multiplier() -> float:
    """The noise of a step for which four cost epsilon = 1."""
    return dp.calibrate(lambda z: events.Gaussian(noise_multiplier=z) * STEPS, epsilon=1.0, delta=DELTA)


def descent(observations: int, canaries: int = 5000) -> Observed:
    """As many observations a side of DP-GD with gradient canaries."""
    found: tuple[list[float], list[float]] = ([], [])
    event = None
    while min(map(len, found)) < observations:
        sums, inside, event = _run(canaries)
        for side, chosen in zip(found, (~inside, inside), strict=True):
            side.extend(sums[chosen])
    assert event is not None
    return Observed(event, (iter(found[0]), iter(found[1])))


def _run(canaries: int) -> tuple[Any, Any, events.Event]:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    handle = auditing.GradientCanaries(canaries, halt=False, report=None)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    records = DataLoader(TensorDataset(torch.zeros(2, 2), torch.zeros(2, 1)), batch_size=2 + canaries)
    model, optimizer, loader = dp.training.make_private(
        model, optimizer, records, noise_multiplier=multiplier(), epochs=STEPS, loss_reduction="mean", audit=handle
    )
    for _ in range(STEPS):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    return *optimizer.privacy.observation.observations, optimizer.privacy.executed


def a_record() -> Any:
    """DP-GD on neighbours, one observation a run; a function of their number of records."""
    import torch

    from tests.auditing.broken import Training

    def made(extra: int) -> Training:
        records = torch.cat([torch.zeros(2, 2), torch.tensor([[30.0, 0.0]] * extra)])
        noise = {"noise_multiplier": multiplier(), "epochs": 10**6, "dataset_size": 2}
        return Training(records, torch.nn.Linear(2, 1, bias=False), steps=STEPS, batch_size=2, **noise)

    return made


def share(name: str, observations: int, seed: int) -> float:
    """What one audit reaches of the claim."""
    asked: dict[str, Any] = {"trials": observations, "delta": DELTA}
    match name:
        case "Gaussian":
            sides = mechanisms.Gaussian(sensitivity=1.0, epsilon=1.0, delta=DELTA), 0.0, 1.0
        case "Laplace":
            sides, asked["delta"] = (mechanisms.Laplace(sensitivity=1.0, epsilon=1.0), 0.0, 1.0), 0.0
        case "randomised response":
            sides = mechanisms.RandomizedResponse(epsilon=1.0), [0], [1]  # type: ignore[assignment]
            asked |= {"delta": 0.0, "adjacency": "replace"}
        case "DP-GD":
            sides = descent(observations), 0, 1  # type: ignore[assignment]
        case "DP-GD, a record":
            sides = a_record(), 0, 1
            asked["read"] = lambda steps: sum(float(step[0][0, 0]) for step in steps)
    found = auditing.audit(*sides, rng=seed, **asked)
    return found.lower / found.claimed


NAMES = ("Gaussian", "Laplace", "randomised response", "DP-GD", "DP-GD, a record")


def main(quick: bool = False) -> None:
    """Print the medians beside their targets; ``--quick`` makes three audits of 10^4 observations, without
    that of a record's training."""
    names = [name for name in NAMES if name in sys.argv] or NAMES
    for size, name in itertools.product(SIZES[: 1 if quick else 2], names):
        lone = name == "DP-GD, a record"
        if lone and (quick or size > SIZES[0]):  # it takes minutes an audit
            continue
        found = [share(name, size, seed) for seed in range(3 if quick or lone else AUDITS)]
        print(
            f"{name:<20} {size:>7} observations a side: median {np.median(found):.3f} of the claim ({min(found):.3f} "
            f"to {max(found):.3f}; target {TARGETS[size]}; {sum(x > 1 for x in found)} of {len(found)} above it)",
            flush=True,
        )


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
