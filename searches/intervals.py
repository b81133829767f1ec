"""How often the intervals of a table's answers hold the answer without noise: every aggregate, in groups of 1 to 100
rows, at a small, a usual and a large ε. ``python -m searches intervals`` prints the table, and raises where fewer than
94 of 100 hold it; where many more do, the interval is cautious (``discreet.tables.confidence``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import binom

import discreet as dp

SIZES, EPSILONS = (1, 2, 5, 20, 100), (0.3, 1.0, 10.0)
PROMISED, FALSE_ALARM = 0.94, 1e-9
AGGREGATES = {
    "COUNT(*)": "COUNT(*)",
    "COUNT(x)": "COUNT(x)",
    "COUNT(DISTINCT d)": "COUNT(DISTINCT d)",
    "SUM": "SUM(x)",
    "AVG": "AVG(x)",
    "VAR_POP": "VAR_POP(x)",
    "VAR_SAMP": "VAR_SAMP(x)",
    "STDDEV_POP": "STDDEV_POP(x)",
    "STDDEV": "STDDEV(x)",
    "COVAR_POP": "COVAR_POP(x, y)",
    "COVAR_SAMP": "COVAR_SAMP(x, y)",
}
_OF_SAMPLES = ("VAR_SAMP", "STDDEV", "COVAR_SAMP")  # of one row there are none


def main(size: int | None = None) -> None:
    """Groups of every size, ``size`` of each; the share that is held, of each aggregate."""
    groups = 4_000 if size is None else size
    least = binom.isf(1 - FALSE_ALARM, groups, PROMISED) / groups
    print("".ljust(46), *(f"{rows:>4} rows" for rows in SIZES))
    for epsilon in EPSILONS:
        for values in ("at the bounds", "anywhere"):
            shares = dict(_shares(groups, epsilon, values))
            for name in [*AGGREGATES, "COUNT(*), private keys"]:
                held = [shares.get((name, rows)) for rows in SIZES]
                line = ["        -" if share is None else f"{share:9.3f}" for share in held]
                print(f"{name}, {values}, ε = {epsilon:g}".ljust(46), *line)
                if low := [share for share in held if share is not None and share < least]:
                    raise AssertionError(f"{name} at epsilon {epsilon:g} holds {low[0]:.3f}, below {PROMISED}.")


def _shares(groups: int, epsilon: float, values: str) -> Iterator[tuple[tuple[str, int], float]]:
    rng = np.random.default_rng(7)
    for rows in SIZES:
        shape = groups, rows
        x = rng.uniform(0, 10, shape) if values == "anywhere" else np.arange(rows) % 2 * 10.0 + np.zeros(shape)
        y = 10 * rng.beta(0.5, 0.5, shape) if values == "anywhere" else x
        number = np.repeat(np.arange(groups), rows)
        held = {"g": number, "k": number, "x": x.ravel(), "y": y.ravel(), "d": np.tile(np.arange(rows) % 7, groups)}
        frame = pl.DataFrame(held)
        bounds: dict[str, Any] = {"x": dp.Bounded(0, 10), "y": dp.Bounded(0, 10), "d": dp.Categories(range(7))}
        table = dp.table(frame, schema=dp.Schema(g=dp.Categories(range(groups)), k=dp.Unlisted(), **bounds), threads=1)
        truth = _truth(x, y, min(rows, 7))
        for name, sql in AGGREGATES.items():
            if rows > 1 or name not in _OF_SAMPLES:
                query = f"SELECT g, {sql} AS a FROM t GROUP BY g"
                found = table.sql(query, epsilon=epsilon, errors=True, rng=rows).value
                yield (name, rows), _held(found, truth[name], 0.002 if "VAR" in sql or "STD" in sql else 1e-6)
        found = table.group_by("k").count().release(epsilon=epsilon, delta=1e-3, errors=True, rng=rows).value
        if len(found) >= 200:  # groups that are shown
            counts = found.rename({"count_low": "a_low", "count_high": "a_high"})
            yield ("COUNT(*), private keys", rows), _held(counts, rows, 0.0)


def _truth(x: Any, y: Any, different: int) -> dict[str, Any]:
    rows = x.shape[1]
    covariance = (x * y).mean(1) - x.mean(1) * y.mean(1)
    larger = rows / max(rows - 1, 1)
    return {
        "COUNT(*)": rows,
        "COUNT(x)": rows,
        "COUNT(DISTINCT d)": different,
        "SUM": x.sum(1),
        "AVG": x.mean(1),
        "VAR_POP": x.var(1),
        "VAR_SAMP": x.var(1) * larger,
        "STDDEV_POP": x.std(1),
        "STDDEV": x.std(1) * np.sqrt(larger),
        "COVAR_POP": covariance,
        "COVAR_SAMP": covariance * larger,
    }


def _held(found: Any, truth: Any, slack: float) -> float:
    """The share of groups; ``slack`` is for the grid on which values are read."""
    low, high = found["a_low"].to_numpy(), found["a_high"].to_numpy()
    return float(np.mean((low - slack <= truth) & (truth <= high + slack)))
