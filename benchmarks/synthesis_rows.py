"""Synthetic rows beside real ones, value by value: Adult's training part, our defaults, delta 1e-9.

``python -m benchmarks.synthesis_rows [epsilon [seeds]]`` prints, for each column of numbers, the real mean and the
synthetic ones' least and largest, the share of the commonest number, and the largest Wasserstein distance in real
standard deviations; then ten real and ten synthetic rows.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from discreet.datasets import adult
from discreet.schema import Bounded, Categories, Schema
from discreet.synthesis import TableSynthesizer

NUMBERS = {  # round public bounds
    "age": (0, 99),
    "fnlwgt": (0, 1_500_000),
    "education_num": (1, 16),
    "capital_gain": (0, 99_999),
    "capital_loss": (0, 5_000),
    "hours_per_week": (0, 99),
}


def people() -> Any:
    """The training part as a polars frame, names with underscores."""
    import polars as pl

    return pl.DataFrame({name.replace("-", "_"): np.asarray(values) for name, values in adult().train.items()})


def schema(frame: Any) -> Schema:
    """Bounds of the numbers; Adult's categories are public, as its description lists them."""
    facts: dict[str, Any] = {}
    for name in frame.columns:
        if name in NUMBERS:
            facts[name] = Bounded(*NUMBERS[name], missing=NUMBERS[name][0], whole=True)
        else:
            facts[name] = Categories(sorted(frame[name].unique().to_list()))
    return Schema(facts)


def measure(epsilon: float, seeds: int) -> None:
    """The table, and rows to look at."""
    from scipy.stats import wasserstein_distance

    real = people()
    facts = schema(real)
    drawn = [
        TableSynthesizer(epsilon, 1e-9).fit(real, schema=facts, rng=seed).sample(len(real), rng=seed + 100)
        for seed in range(seeds)
    ]
    print(f"epsilon {epsilon:g}, {seeds} seeds: real | least .. largest of the synthetic tables")
    for name in NUMBERS:
        common = real[name].mode()[0]
        means = [rows[name].mean() for rows in drawn]
        shares = [(rows[name] == common).mean() for rows in drawn]
        far = max(wasserstein_distance(real[name], rows[name]) for rows in drawn) / real[name].std()
        print(
            f"{name:15s} mean {real[name].mean():9.1f} | {min(means):9.1f} .. {max(means):9.1f}   share of {common:6d} "
            f"{(real[name] == common).mean():.3f} | {min(shares):.3f} .. {max(shares):.3f}   distance {far:.3f}"
        )
    for rows in (real, drawn[0]):
        for row in rows.head(10).iter_rows():
            print("  ", *row)
        print()


if __name__ == "__main__":
    measure(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0, int(sys.argv[2]) if len(sys.argv) > 2 else 5)
