"""What verification costs: its share of a run of 200 steps, on the five models on which private training is timed.

CPU time on one thread. A run of a few steps is verified at its first two steps and at one later step; what those took
above the others, and above the first step of a run that verifies nothing, is what a verification takes. A run of 200
steps has the first two and at most six more. Short runs are repeated, and of each step the least time counts.
"""

from __future__ import annotations

import statistics
import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.workloads_training import WORKLOADS, prepared
from discreet.training import make_private
from discreet.training.run import Batch
from discreet.training.verification.verification import Schedule

STEPS, LATER, MORE, LENGTH = 12, 8, 6, 200
SECONDS = 1.0  # of processor time for runs of one kind, at least one run


def seconds(name: str, verified: set[int]) -> list[float]:
    """CPU seconds of each step of a run that verifies these."""
    torch.manual_seed(0)
    model, x, y, loss, _ = prepared(name)
    torch.set_num_threads(1)  # a second one would be counted while it waits
    records, turn = TensorDataset(torch.zeros(50_000), torch.zeros(50_000)), iter(range(STEPS))
    Schedule.next = lambda self, records: next(turn) in verified  # type: ignore[method-assign]
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.01),
        DataLoader(records, len(x)),
        epochs=100,
        noise_multiplier=1.0,
        loss_reduction="mean",
    )
    found = []
    for step in range(STEPS):
        start = time.process_time()
        loader.run.hand_out(Batch(len(x), None, step, True, True), (x, y))
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
        found.append(time.process_time() - start)
    return found


def least(name: str, verified: set[int]) -> list[float]:
    """The same, of as many runs as there is time for the least of each step."""
    runs = [seconds(name, verified)]
    while sum(map(sum, runs)) < SECONDS:
        runs.append(seconds(name, verified))
    return [min(times) for times in zip(*runs, strict=True)]


def share(name: str) -> float:
    """Of a run of 200 steps."""
    seconds(name, {0})  # loads and compiles what a first run needs
    without, with_it = least(name, set()), least(name, {0, 1, LATER})
    usual = statistics.median(with_it[2:LATER] + with_it[LATER + 1 :])
    extra = with_it[0] - without[0] + with_it[1] - usual + MORE * (with_it[LATER] - usual)
    return extra / (LENGTH * usual)


def main() -> None:
    asked = tuple(sys.argv[1:]) or ("",)  # the beginnings of names
    for name in [name for name in WORKLOADS if name.startswith(asked)]:
        print(f"{name}: {100 * share(name):.2f} % of {LENGTH} steps", flush=True)


if __name__ == "__main__":
    main()
