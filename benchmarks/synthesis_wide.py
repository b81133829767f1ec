"""A wide table for the synthesiser: 60 columns of mixed types and 10⁶ rows, made from Adult; its CPU time and memory.

Four copies of Adult's fifteen columns. A row of the first copy is a person; the others take persons further down in the
file, so that copies are independent of each other and columns within one are as dependent as in Adult.

    python -m benchmarks.synthesis_wide [rows]
"""

from __future__ import annotations

import resource
import sys
import time
from typing import Any

import numpy as np

from discreet import synthesis
from discreet.datasets import adult
from discreet.schema import Bounded, Categories, Schema

ROWS, COPIES, SHIFT = 1_000_000, 4, 7919


def wide(rows: int = ROWS) -> tuple[Any, Schema]:
    """A polars frame, and its schema."""
    import polars as pl

    people = adult()
    size = len(people.train["age"])
    columns: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    for copy in range(COPIES):
        at = (np.arange(rows) + copy * SHIFT * (1 + np.arange(rows) // size)) % size
        for name, values in people.train.items():
            columns[f"{name}{copy}"] = values[at]
            bounds = people.bounds.get(name)
            facts[f"{name}{copy}"] = Categories(people.categories[name]) if bounds is None else Bounded(*bounds)
    return pl.DataFrame(columns), Schema(facts)


def main(rows: int = ROWS) -> None:
    """One fit, and as many records drawn."""
    frame, schema = wide(rows)
    started, before = time.perf_counter(), time.process_time()
    model = synthesis.TableSynthesizer(epsilon=1.0, delta=1e-9).fit(frame, schema=schema, rng=1)
    fitted = time.process_time() - before
    drawn = model.sample(rows, rng=2)
    every = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{frame.shape[1]} columns, {rows:,} rows: fit {fitted:.0f} CPU-s, with drawing {every:.0f}")
    print(f"{time.perf_counter() - started:.0f} s by the clock, peak {peak:.1f} GB, {drawn.shape[1]} columns drawn")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
