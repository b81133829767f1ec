"""Counts of a million public keys beside plain DuckDB: ``python -m benchmarks.many_keys [rows] [keys]``.

10⁷ rows and 10⁶ keys unless told, one thread, processor time, the best of several turns; at most 1.5 times is owed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import discreet as dp

ROWS, KEYS, TURNS, OWED = 10**7, 10**6, 4, 1.5
MAKE = "COPY (SELECT (hash(i) % {keys})::BIGINT AS k FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"


def measure(rows: int, keys: int) -> dict[str, float]:
    """The fewest processor-seconds of each, taken in turns; the first turn warms the file cache and does not count."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        connection = duckdb.connect(config={"threads": 1})
        connection.execute(MAKE.format(rows=rows, keys=keys, path=path))
        private = dp.table(path, schema=dp.Schema(k=dp.Categories(range(keys))), threads=1).group_by("k").count()
        query = f"SELECT k, count(*) AS n FROM read_parquet('{path}') GROUP BY k"
        asked: dict[str, Callable[[], object]] = {
            "plain DuckDB": lambda: connection.sql(query).pl(),
            "private": lambda: private.release(epsilon=1.0),
        }
        best: dict[str, float] = {}
        for turn in range(TURNS):
            for name, ask in asked.items():
                start = time.process_time()
                ask()
                taken = time.process_time() - start
                if turn:
                    best[name] = min(taken, best.get(name, taken))
    return best


def main(rows: int = ROWS, keys: int = KEYS) -> None:
    """Print the seconds and their ratio."""
    best = measure(rows, keys)
    ratio = best["private"] / best["plain DuckDB"]
    told = ", ".join(f"{name} {taken:.2f} s" for name, taken in best.items())
    print(f"{rows:,} rows, {keys:,} keys: {told}; {ratio:.2f} times, {OWED} owed")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
