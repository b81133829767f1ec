"""Private group-bys in DuckDB beside the same queries written by hand, on a table too large to be comfortable.

``python -m benchmarks.tables [rows] [memory limit]``: 10⁸ rows and 4 GB unless told. Each query runs in turn, several
times, and the best time counts; the first turn warms the file cache and does not.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import discreet as dp

ROWS, MEMORY = 10**8, "4GB"
TURNS = 3
ROWS_OWED, UNIT_OWED = 1.3, 1.5

STEPS = "CAST(floor((least(greatest(income, 0.0), 200000.0) - 0.0) * 4096.0 + 0.5) AS BIGINT)"
PLAIN = "SELECT educ, avg(income) FROM read_parquet('{path}') GROUP BY educ"
CLIPPED = f"SELECT educ, count(*), sum({STEPS}) FROM read_parquet('{{path}}') WHERE educ BETWEEN 1 AND 16 GROUP BY educ"
BY_UNIT = f"""SELECT educ, count(*), sum(k) FROM (SELECT person_id, min(educ) AS educ, min({STEPS}) AS k
              FROM read_parquet('{{path}}') WHERE educ BETWEEN 1 AND 16 GROUP BY person_id) GROUP BY educ"""
MAKE = """COPY (SELECT (i * 7919 % ({rows} // 3))::BIGINT AS person_id, (1 + hash(i) % 16)::INTEGER AS educ,
          (hash(i + 5) % 250000)::DOUBLE AS income FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"""


def make(path: Path, rows: int) -> None:
    """A Parquet file of people with three rows each."""
    duckdb.connect(config={"temp_directory": str(path.parent)}).execute(MAKE.format(rows=rows, path=path))


def questions(path: Path, **settings: Any) -> dict[str, Callable[[], object]]:
    """Every query as something to call, with DuckDB's settings."""
    connection = duckdb.connect(config=settings)
    schema = dp.Schema(educ=dp.Categories(range(1, 17)), income=dp.Bounded(0, 200_000))
    rows = dp.table(path, schema=schema, **settings).group_by("educ").mean("income")
    units = dp.table(path, schema=schema, unit="person_id", **settings).group_by("educ").mean("income")

    def by_hand(query: str) -> Callable[[], object]:
        return lambda: connection.execute(query.format(path=path)).fetchall()

    return {
        "plain": by_hand(PLAIN),
        "clipped by hand": by_hand(CLIPPED),
        "private": lambda: rows.release(epsilon=1.0),
        "by unit by hand": by_hand(BY_UNIT),
        "private by unit": lambda: units.release(epsilon=1.0),
    }


def measure(rows: int, memory: str) -> dict[str, float]:
    """The best seconds of each query, taken in turns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        make(path, rows)
        asked = questions(path, memory_limit=memory, temp_directory=folder)
        best = dict.fromkeys(asked, float("inf"))
        for turn in range(TURNS + 1):
            for name, ask in asked.items():
                start = time.perf_counter()
                ask()
                if turn:
                    best[name] = min(best[name], time.perf_counter() - start)
    return best


def main(rows: int = ROWS, memory: str = MEMORY) -> None:
    best = measure(rows, memory)
    print(f"tables: {rows:,} rows, memory limit {memory}")
    for name, seconds in best.items():
        print(f"  {name:<16} {seconds:8.3f} s   {seconds / best['plain']:6.2f} x plain")
    print(f"  private / clipped by hand: {best['private'] / best['clipped by hand']:.2f} (at most {ROWS_OWED:g})")
    by_unit = best["private by unit"] / best["by unit by hand"]
    print(f"  private by unit / by unit by hand: {by_unit:.2f} (at most {UNIT_OWED:g})")


if __name__ == "__main__":
    main(*(convert(word) for convert, word in zip((lambda word: int(float(word)), str), sys.argv[1:], strict=False)))
