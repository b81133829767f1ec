"""The speed-up from one process to two: a private step's beside that of plain ``DistributedDataParallel``.

The same records a step in all, one thread a process, plain and private and one and two processes in turns; of each the
median over the steps of a round, and of the rounds' speed-ups the median. The private loop is a user's, with its loader
and its noise; the batches that are verified (the first ones) are left out. Writes ``build/bench-distributed.json``.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.workloads_training import LanguageModel, wide_resnet
from discreet.training import make_private
from tests.training.ranks import on_ranks

ROUNDS, WARM, STEPS, RECORDS = 5, 6, 8, 512
OWED = 0.85  # of plain DDP's speed-up
MODELS = {"language model, 5 M": 16, "wide ResNet, 2.7 M": 32}


def made(name: str) -> tuple[nn.Module, TensorDataset]:
    torch.manual_seed(0)
    if name.startswith("language"):
        words = torch.randint(2048, (RECORDS, 64))
        return LanguageModel(words=2048, length=64), TensorDataset(words, words.roll(-1, 1))
    return wide_resnet(), TensorDataset(torch.randn(RECORDS, 3, 16, 16), torch.randint(10, (RECORDS,)))


def loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    found = model(x)
    return F.cross_entropy(found.movedim(-1, 1), y) if found.dim() == 3 else F.cross_entropy(found, y)


def timed(rank: int, count: int, name: str, private: bool) -> float:
    """The median time of a step."""
    model, data = made(name)
    batch = MODELS[name]
    wrapped: nn.Module = nn.parallel.DistributedDataParallel(model) if count > 1 else model
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01)
    loader: Any = DataLoader(data, batch // count, shuffle=True)
    if private:
        wrapped, optimizer, loader = make_private(
            wrapped,
            optimizer,
            DataLoader(data, batch),
            epochs=10,
            noise_multiplier=1.0,
            sampler="fixed-size",
            loss_reduction="mean",
        )
    seconds: list[float] = []
    while len(seconds) < WARM + STEPS:
        for x, y in loader:
            start = time.perf_counter()
            optimizer.zero_grad()
            loss(wrapped, x, y).backward()
            optimizer.step()
            seconds.append(time.perf_counter() - start)
            if len(seconds) == WARM + STEPS:
                break
    return statistics.median(seconds[WARM:])


def measured(name: str, rounds: int) -> dict[str, Any]:
    """Speed-ups of every round, and the median share of plain's that the private one is."""
    found: dict[str, Any] = {"model": name, "plain": [], "private": [], "seconds": []}
    for _ in range(rounds):
        times = {(p, n): on_ranks(n, timed, name, p)[0] for p in (False, True) for n in (1, 2)}
        found["seconds"].append([times[key] for key in sorted(times)])
        for kind, private in (("plain", False), ("private", True)):
            found[kind].append(times[private, 1] / times[private, 2])
    found["share"] = statistics.median(b / a for a, b in zip(found["plain"], found["private"], strict=True))
    return found


def main() -> None:
    quick = "--quick" in sys.argv
    results = [measured(name, 1 if quick else ROUNDS) for name in list(MODELS)[: 1 if quick else None]]
    table = Table("model", "plain, 1", "private, 1", "plain speed-up", "private speed-up", "share", "owed")
    for found in results:
        plain, private = (statistics.median(found[kind]) for kind in ("plain", "private"))
        alone = [1000 * statistics.median(part) for part in zip(*found["seconds"], strict=True)]
        table.add_row(
            found["model"],
            f"{alone[0]:.0f} ms",
            f"{alone[2]:.0f} ms",
            f"{plain:.2f}×",
            f"{private:.2f}×",
            f"{found['share']:.2f}",
            f"{OWED}",
        )
    Console().print(table)
    place = Path("build")
    place.mkdir(exist_ok=True)
    (place / "bench-distributed.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
