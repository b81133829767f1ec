"""How long statistics take beside the same answer without privacy,
and the census example's error beside two other ways.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet import datasets
from discreet import statistics as s
from discreet.mechanisms import Laplace

RECORDS = 10_000_000
REPEATS = 3
RUNS = 200
WIDTH = 200_000


def best(job: Callable[[], Any]) -> float:
    """The best of several runs after a warm-up, in seconds."""
    job()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def speed() -> None:
    x = np.random.default_rng(0).gamma(2.0, 20_000.0, RECORDS)
    codes = (x / 10_000).astype(np.int64)
    edges = np.linspace(0, WIDTH, 101)
    bounds, quarters = (0, WIDTH), (0.25, 0.5, 0.75)
    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "sum": (lambda: s.sum(x, bounds, epsilon=1.0), lambda: np.clip(x, *bounds).sum()),
        "sum of integers": (lambda: s.sum(codes, (0, 20), epsilon=1.0), lambda: np.clip(codes, 0, 20).sum()),
        "mean": (lambda: s.mean(x, bounds, epsilon=1.0), lambda: np.clip(x, *bounds).mean()),
        "variance": (lambda: s.variance(x, bounds, epsilon=1.0), lambda: np.clip(x, *bounds).var()),
        "histogram": (lambda: s.histogram(x, bins=edges, epsilon=1.0), lambda: np.histogram(x, edges)),
        "mode": (lambda: s.mode(codes, categories=range(20), epsilon=1.0), lambda: np.bincount(codes).argmax()),
        "median": (lambda: s.median(x, bounds, epsilon=1.0), lambda: np.median(x)),
        "three quantiles": (lambda: s.quantiles(x, quarters, bounds, epsilon=1.0), lambda: np.quantile(x, quarters)),
    }
    print(f"{RECORDS:,} records, seconds (best of {REPEATS}): private, plain, ratio")
    for name, (private, plain) in pairs.items():
        ours, theirs = best(private), best(plain)
        print(f"  {name:16} {ours:7.3f} {theirs:7.3f} {ours / theirs:6.1f}")


def census() -> None:
    """Mean income by education, epsilon 1: the pair, the midpoint method, and plain noise on sum and count."""
    people = datasets.pums()
    groups = [np.clip(people["income"][people["educ"] == key], 0, WIDTH) for key in range(1, 17)]
    operation, half = s.Mean(bounds=(0, WIDTH), epsilon=1.0), Laplace(sensitivity=1.0, epsilon=0.5)

    def ratio(top: float, size: int) -> float:
        return half.release(top).value / max(1.0, half.release(float(size)).value)

    ways = {
        "pair": lambda x: operation.release(x).value,
        "midpoint": lambda x: np.clip(WIDTH / 2 * (1 + ratio((x / (WIDTH / 2) - 1).sum(), x.size)), 0, WIDTH),
        "sum and count": lambda x: np.clip(WIDTH * ratio((x / WIDTH).sum(), x.size), 0, WIDTH),
    }
    print(f"mean income by education, epsilon 1: mean absolute error in dollars over {RUNS} runs")
    for name, way in ways.items():
        print(f"  {name:16} {np.mean([abs(way(x) - x.mean()) for _ in range(RUNS) for x in groups]):7.1f}")


def main() -> None:
    speed()
    try:
        census()
    except FileNotFoundError as error:
        print(error)


if __name__ == "__main__":
    main()
