"""Opacus on one workload, in a fresh process: the time of a step and the peak of memory."""

from __future__ import annotations

import json
import sys

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.workloads_training import peak_megabytes, prepared, timed


def main() -> None:
    asked = json.load(sys.stdin)
    model, x, y, _, steps = prepared(asked["workload"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(torch.zeros(50_000)), len(x))
    mode = asked["method"]
    options = {
        "module": model,
        "optimizer": optimizer,
        "data_loader": loader,
        "noise_multiplier": 1.0,
        "max_grad_norm": 1.0,
        "poisson_sampling": False,
        "grad_sample_mode": mode,
    }
    if mode.startswith("ghost"):
        criterion = torch.nn.CrossEntropyLoss()
        model, optimizer, criterion, _ = PrivacyEngine().make_private(criterion=criterion, **options)
    else:
        criterion = None
        model, optimizer, _ = PrivacyEngine().make_private(**options)
    before = peak_megabytes()

    def step() -> None:
        optimizer.zero_grad()
        out = model(x)
        out = out.transpose(1, 2) if out.dim() == 3 else out
        (criterion(out, y) if criterion is not None else torch.nn.functional.cross_entropy(out, y)).backward()
        optimizer.step()

    seconds = timed(step, steps)
    print(json.dumps({"seconds": seconds, "megabytes": peak_megabytes() - before}))


main()
