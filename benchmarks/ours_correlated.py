"""Private steps with two noises in turns, in a fresh process: processor time of each; or with one alone: memory."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import torch
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.workloads_training import WORKLOADS, peak_megabytes, prepared
from discreet.random import system
from discreet.training import KeptBins, make_private, noise
from discreet.training.run import Batch
from discreet.training.sampling.participation import KeptBinsDealing

NOISES = {
    "independent": noise.Independent(),
    "lambda CGD": noise.LambdaCGD(),
    "banded, 4": noise.Banded(bands=4),
    "BLT, 3": noise.BLT(buffers=3),
    "tree": noise.Tree(),
}


def stepping(workload: str, name: str) -> tuple[Callable[[], None], int]:
    """A private step of a workload's model."""
    model, x, y, loss, steps = prepared(workload)
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.01),
        DataLoader(TensorDataset(torch.zeros(50 * len(x))), len(x)),
        epochs=10,
        noise_multiplier=1.0,
        loss_reduction="mean",
        noise=NOISES[name],
        sampler=KeptBins(batch_size=len(x), dataset_size=50 * len(x)),
    )
    done = iter(range(500))

    def step() -> None:
        loader.run.hand_out(Batch(len(x), None, next(done), True, True))  # the batch, without the time of loading it
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return step, steps


def drawn(workload: str, name: str) -> float:
    """Milliseconds that the noise of a step takes by itself, the least of 40."""
    total, least = [torch.zeros_like(p) for p in WORKLOADS[workload][0]().parameters()], float("inf")
    stream, gaussians = NOISES[name].begun(KeptBinsDealing(50), 500), noise.Gaussians(system())
    for number in range(41):
        facts = noise.Step(number=number, multiplier=1.0, sensitivity=1.0, movement=1, divisor=1.0)
        start = time.process_time()
        stream.release(facts, total, gaussians)
        if number:  # the first step takes nothing back
            least = min(least, time.process_time() - start)
    return 1000 * least


def main() -> None:
    asked = json.load(sys.stdin)
    if asked.get("alone"):
        print(json.dumps({"milliseconds": [drawn(asked["workload"], name) for name in asked["noises"]]}))
        return
    before = peak_megabytes()
    made = [stepping(asked["workload"], name) for name in asked["noises"]]
    least = [float("inf")] * len(made)
    for turn in range(made[0][1] + 4):
        for place, (step, _) in enumerate(made):
            start = time.process_time()
            step()
            if turn >= 4:  # the first are verified, and warm up
                least[place] = min(least[place], time.process_time() - start)
    print(json.dumps({"seconds": least, "megabytes": peak_megabytes() - before}))


main()
