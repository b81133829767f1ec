"""Private steps against plain ones in one process, by turns: a ratio that a busy machine hardly moves.

Processor time on one thread, the least and the median of many turns; every figure of a turn is of neighbouring
moments. And the share of a private step that its pass's secret chance takes (``training.chance``).
``python -m benchmarks.training`` measures what is owed, in processes of their own on a quiet machine; this tells
whether a change helps. ``python -m benchmarks.paired a c`` takes the workloads whose names begin so.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from unittest.mock import patch

import torch
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.workloads_training import WARM, WORKLOADS, prepared
from discreet.training import Speed, make_private
from discreet.training.chance import Chance
from discreet.training.run import Batch

SECONDS = 4.0  # of processor time a workload, about


def plain(name: str) -> Callable[[], None]:
    """An ordinary step."""
    model, x, y, loss, _ = prepared(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return step


def private(name: str, *, secure: bool = True) -> Callable[[], None]:
    """The same, private; verified in its first steps and now and then, as in any run."""
    model, x, y, loss, _ = prepared(name)
    records = TensorDataset(torch.zeros(50_000), torch.zeros(50_000))
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.01),
        DataLoader(records, len(x)),
        epochs=1000,
        noise_multiplier=1.0,
        loss_reduction="mean",
        speed=Speed(secure=secure),
    )
    done = 0

    def step() -> None:
        nonlocal done
        loader.run.hand_out(Batch(len(x), None, done, True, True))
        done += 1
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return step


def spent(step: Callable[[], None]) -> float:
    """Processor seconds of a step."""
    start = time.process_time()
    step()
    return time.process_time() - start


def ratios(name: str, seconds: float = SECONDS) -> dict[str, float]:
    """A private step's time over a plain one's: of the least of each, and the median over neighbours."""
    steps = plain(name), private(name)
    torch.set_num_threads(1)
    for _ in range(WARM):
        for step in steps:
            step()
    pairs, left = [], seconds
    while left > 0 or len(pairs) < 5:
        pairs.append([spent(step) for step in steps])
        left -= sum(pairs[-1])
    least = [min(times) for times in zip(*pairs, strict=True)]
    return {
        "plain ms": 1000 * least[0],
        "private ms": 1000 * least[1],
        "least": least[1] / least[0],
        "median": statistics.median(b / a for a, b in pairs),
    }


def chance_share(name: str, seconds: float = SECONDS / 4) -> float:
    """The share of secret chance in a private step's time: opening and closing it, the least of each."""
    taken = 0.0

    def timed(part: Callable[..., None]) -> Callable[..., None]:
        def call(*args: object) -> None:
            nonlocal taken
            taken += spent(lambda: part(*args))

        return call

    with patch.object(Chance, "begin", timed(Chance.begin)), patch.object(Chance, "end", timed(Chance.end)):
        step = private(name)
        torch.set_num_threads(1)
        least, steps, left = [float("inf")] * 2, 0, seconds
        while left > 0 or steps < WARM + 5:
            taken = 0.0
            whole = spent(step)
            least, steps, left = [min(least[0], taken), min(least[1], whole)], steps + 1, left - whole
    return least[0] / least[1]


def main() -> None:
    asked = tuple(sys.argv[1:])
    for name in WORKLOADS:
        if name.startswith(asked or ("",)):
            figures = {**ratios(name), "chance %": 100 * chance_share(name)}
            print(name, *(f"{key} {value:.3f}" for key, value in figures.items()), sep="  ", flush=True)


if __name__ == "__main__":
    main()
