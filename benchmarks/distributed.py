"""The speed-up from one process to two: a private step's beside that of plain ``DistributedDataParallel``.

The same records a step in all, one thread a process, plain and private and one and two processes in turns; of each the
median over the steps of a round, and of the rounds' speed-ups the median. The private loop is a user's, with its loader
and its noise; the batches that are verified (the first ones) are left out. Beside the time on the clock stands that of
the processor, of the busier rank, which says less of waiting and more on a machine that others use. Writes
``build/bench-distributed.json``.
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

ROUNDS, WARM, STEPS, RECORDS = 5, 4, 7, 512
OWED = 0.85  # of plain DDP's speed-up
MODELS = {"language model, 4 M": 8, "wide ResNet, 2.7 M": 16}  # records a step


def made(name: str) -> tuple[nn.Module, TensorDataset]:
    torch.manual_seed(0)
    if name.startswith("language"):
        words = torch.randint(2048, (RECORDS, 64))
        return LanguageModel(words=2048, length=64), TensorDataset(words, words.roll(-1, 1))
    return wide_resnet(), TensorDataset(torch.randn(RECORDS, 3, 16, 16), torch.randint(10, (RECORDS,)))


def loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    found = model(x)
    return F.cross_entropy(found.movedim(-1, 1), y) if found.dim() == 3 else F.cross_entropy(found, y)


def timed(rank: int, count: int, name: str, private: bool) -> tuple[float, float]:
    """The median time of a step, on the clock and of the processor."""
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
    seconds: list[tuple[float, float]] = []
    while len(seconds) < WARM + STEPS:
        for x, y in loader:
            start = time.perf_counter(), time.process_time()
            optimizer.zero_grad()
            loss(wrapped, x, y).backward()
            optimizer.step()
            seconds.append((time.perf_counter() - start[0], time.process_time() - start[1]))
            if len(seconds) == WARM + STEPS:
                break
    clock, processor = zip(*seconds[WARM:], strict=True)
    return statistics.median(clock), statistics.median(processor)


def slowest(count: int, name: str, private: bool) -> list[float]:
    """Of the ranks the one that takes longest, by both measures."""
    return [max(times) for times in zip(*on_ranks(count, timed, name, private), strict=True)]


def measured(name: str, rounds: int) -> list[dict[str, Any]]:
    """By both measures: times, speed-ups of every round, and the median share of plain's that the private one is."""
    found = [
        {"model": f"{name}, {measure}", "plain": [], "private": [], "seconds": []} for measure in ("clock", "processor")
    ]
    for _ in range(rounds):
        times = {(p, n): slowest(n, name, p) for p in (False, True) for n in (1, 2)}
        for which, one in enumerate(found):
            one["seconds"].append([times[key][which] for key in sorted(times)])
            for kind, private in (("plain", False), ("private", True)):
                one[kind].append(times[private, 1][which] / times[private, 2][which])
    for one in found:
        one["share"] = statistics.median(b / a for a, b in zip(one["plain"], one["private"], strict=True))
    return found


def main() -> None:
    quick = "--quick" in sys.argv
    names = list(MODELS)[: 1 if quick else None]
    results = [one for name in names for one in measured(name, 1 if quick else ROUNDS)]
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
