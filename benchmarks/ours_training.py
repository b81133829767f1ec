"""Plain torch, its heap as it is or settled, and private training on one workload, in a fresh process:
time and memory.
"""

from __future__ import annotations

import json
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.workloads_training import peak_megabytes, prepared, timed


def main() -> None:
    asked = json.load(sys.stdin)
    model, x, y, loss, steps = prepared(asked["workload"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    private = asked["method"] in ("private", "quick")
    if asked["method"] == "settled":
        from discreet.training import memory

        memory.keep_freed_memory()
    if private:
        from discreet.training import Speed, make_private
        from discreet.training.run import Batch

        records = TensorDataset(torch.zeros(50_000), torch.zeros(50_000))
        model, optimizer, loader = make_private(
            model,
            optimizer,
            DataLoader(records, len(x)),
            epochs=100,
            noise_multiplier=1.0,
            loss_reduction="mean",
            speed=Speed(secure=asked["method"] != "quick"),
        )
    before = peak_megabytes()
    done = 0

    def step() -> None:
        nonlocal done
        if private:
            loader.run.hand_out(Batch(len(x), None, done, True, True))  # the batch, without the time of loading it
        done += 1
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    seconds = timed(step, steps)
    print(json.dumps({"seconds": seconds, "megabytes": peak_megabytes() - before}))


main()
