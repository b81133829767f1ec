"""One spoiled record changes how no other is read: ``python -m searches readers``.

Every type of Parquet, Arrow and DuckDB, by every writer, in files, frames, relations and Spark's frames: a table whose
last record is ordinary, and one whose last record is spoiled, are read by each declaration that the type could have.
Either both are refused in the same words, or all other rows are equal to the last bit. And, since file statistics are
about the bytes as they were: of rows that are spoiled, one ordinary row more changes how many a condition finds by one
at most.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dp
from discreet.encoding.sources import open_source
from searches._containers import one_connection
from searches._readers import (
    MARK,
    SQL_TYPES,
    TYPES,
    WRITERS,
    as_polars,
    own_database,
    spark_writers,
    spoil,
    sql_table,
    table,
)

DECLARED: dict[str, tuple[Any, str | None]] = {  # what is declared of v, or that it is the unit
    "numbers": (dp.Bounded(-5, 10), None),
    "listed numbers": (dp.Categories([1, 2.5, 7]), None),
    "listed text": (dp.Categories(["1", "b", "true"], other="else"), None),
    "keys": (dp.Unlisted(), None),
    "unit": (None, "v"),
    "days": (dp.Dates("1800-01-01", "2100-12-31"), None),
    "times": (dp.Times("1800-01-01", "9999-12-31"), None),
}
FRAMES: dict[str, Callable[[Any], Any]] = {
    "frame of pyarrow": lambda rows: rows,
    "frame of polars": as_polars,
    "lazy frame": lambda rows: as_polars(rows).lazy(),
    "frame of pandas": lambda rows: rows.to_pandas(),
    "frame of pandas in Arrow's types": lambda rows: rows.to_pandas(types_mapper=pd.ArrowDtype),
    "relation": lambda rows: _relation(rows),
}


def _relation(rows: Any) -> Any:
    """A relation of the user's own over Arrow. Zoned times beyond the calendar stop it inside of the user's query,
    where nobody else can read them: a limit that is documented.
    """
    if any(pa.types.is_timestamp(kind) and kind.tz and kind.unit in ("s", "ms") for kind in rows.schema.types):
        raise TypeError("DuckDB stops at such times")
    return own_database().from_arrow(rows)


class Case(NamedTuple):
    """A type, a container, and the way in which the last record is spoiled: an odd entry, or a note if it is None."""

    kind: str
    container: str
    odd: int | None


def cases(containers: list[str]) -> Iterator[Case]:
    """Every type in every container, with every spoiled record."""
    for container in containers:
        for kind, (_, _, odd) in TYPES.items():
            yield from (Case(kind, container, place) for place in (None, *range(len(odd))))
        for kind, texts in SQL_TYPES.items():
            if container in ("duckdb", "relation"):
                yield from (Case(kind, container, place) for place in (None, *range(len(texts))))


def check(case: Case, folder: Path, session: Any = None) -> Counter[str]:
    """How often a declaration was read and refused; an ``AssertionError`` if the spoiled record changed another."""
    usual, odd = (_contained(case, spoiled, folder, session) for spoiled in (False, True))
    if usual is None or odd is None:
        return Counter({"not written": 1})
    seen: Counter[str] = Counter()
    for name, (column, unit) in DECLARED.items():
        schema = dp.Schema({"i": dp.Bounded(0, 99), "note": dp.Unlisted(), **({} if column is None else {"v": column})})
        both = [_read(source, schema, unit) for source in (usual, odd)]
        if both[0] != both[1]:
            raise AssertionError(f"{case}, declared as {name}:\n  {both[0]}\n  {both[1]}")
        seen["refused" if isinstance(both[0], str) else "read"] += 1
    return seen


def _contained(case: Case, spoiled: bool, folder: Path, session: Any) -> Any:
    """The table in its container; none if its writer does not take it."""
    odd, sql = case.odd if spoiled else None, case.kind in SQL_TYPES
    bad_note = spoiled and case.odd is None
    writers = {**WRITERS, **({} if session is None else spark_writers(session))}
    if case.container in FRAMES and not sql:
        try:
            return FRAMES[case.container](table(case.kind, odd, spoil=bad_note))
        except BaseException as error:  # not a type of this library, or no text: it holds no such table
            return _only_refused(error)
    if case.container == "relation":
        return sql_table(case.kind, odd, b"ok")
    made, write = writers[case.container]
    path = folder / ("spoiled" if spoiled else "usual") / made
    path.parent.mkdir(exist_ok=True)
    note = MARK if bad_note else b"ok"
    try:
        write(sql_table(case.kind, odd, note) if sql else table(case.kind, odd, note), path)
    except BaseException as error:  # as above; polars panics, which is no Exception
        return _only_refused(error)
    spoil(path)
    return path


def _only_refused(error: BaseException) -> None:
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        raise error


def _read(source: Any, schema: dp.Schema, unit: str | None) -> Any:
    """Rows but the last as the engine has them, in their order, with what is known of the columns; or the refusal."""
    try:
        opened = open_source(source, schema, unit)
    except ValueError as refused:
        return str(refused).replace("/spoiled/", "/usual/")
    place = list(opened.names).index("i")
    columns = [np.ma.asarray(column).tolist() for column in opened.engine.fetch(opened.frame, None)]
    rows = sorted(zip(*columns, strict=True), key=lambda row: row[place])
    facts = (opened.kinds, opened.names, opened.whole, opened.spelled)
    return [repr(row) for row in rows if row[place] < 6], facts


# --- statistics of files ---------------------------------------------------------------------------------------------

WORDS = (b"a", b"!", b"?", b"\xff", b"z")
WAYS = (
    {},
    {"write_statistics": False},
    {"row_group_size": 3},
    {"use_dictionary": False, "write_page_index": True},
)
CONDITIONS = ["k = '?'", "k <> '?'", "k IN ('?', 'z')", "k LIKE '?%'", "k LIKE '%?'", "LENGTH(k) = 1", "k IS NOT NULL"]


def check_statistics(
    folder: Path, session: Any = None, *, words: tuple[bytes, ...] = WORDS, options: Any = WAYS
) -> int:
    """How many neighbours were compared: spoiled rows beside one ordinary row more."""
    count = 0
    for number, (more, given) in enumerate(itertools.product(words, options)):
        answers = []
        for every in ([b"\xff"] * 10, [b"\xff"] * 10 + [more]):
            path = folder / f"{number}-{len(every)}.parquet"
            pq.write_table(pa.table({"k": pa.array(every, pa.binary()).view(pa.string())}), path, **given)
            source = str(path) if session is None else session.read.parquet(str(path))
            asked = dp.table(source, schema={"k": dp.Unlisted()})
            answers.append(
                [asked.sql(f"SELECT COUNT(*) AS n FROM t WHERE {one}", epsilon=1e6).value["n"][0] for one in CONDITIONS]
            )
        for condition, without, beside in zip(CONDITIONS, *answers, strict=True):
            count += 1
            if not 0 <= beside - without <= 1:
                raise AssertionError(f"{condition} finds {without} rows, and {beside} beside {more!r} ({given})")
    return count


def main(size: int | None = None, parts: list[str] | None = None) -> None:
    """Try every ``size``-th case of each part, or all; a part is a container, or ``statistics``. Spark's need Java."""
    warnings.simplefilter("ignore")
    session = _spark() if shutil.which("java") and _needs_spark(parts) else None
    every = [*WRITERS, *FRAMES, *([] if session is None else spark_writers(session)), "statistics"]
    if unknown := sorted(set(parts or ()) - set(every)):
        raise ValueError(f"there is no part {unknown[0]!r}; there are {', '.join(every)}")
    broken: list[str] = []
    seen: Counter[str] = Counter()
    with one_connection():
        for part in parts or every:
            seen_here, broken_here = _try_part(part, size, session)
            seen, broken = seen + seen_here, broken + broken_here
            print(f"readers, {part}: {_summary(seen_here, broken_here)}", flush=True)
    if session is not None:
        session.stop()
    print(f"readers: {_summary(seen, broken)}")
    if broken:
        raise AssertionError("\n".join([*broken[:40], f"{len(broken)} of {seen['cases']} cases"]))


def _needs_spark(parts: list[str] | None) -> bool:
    return not parts or any("Spark" in part or part == "statistics" for part in parts)


def _try_part(part: str, size: int | None, session: Any) -> tuple[Counter[str], list[str]]:
    """What was seen in a part, and what was wrong."""
    seen: Counter[str] = Counter()
    broken: list[str] = []
    if part == "statistics":
        with tempfile.TemporaryDirectory() as folder:
            seen["neighbours"] += check_statistics(Path(folder))
            if session is not None:
                seen["neighbours"] += check_statistics(Path(folder), session)
        return seen, broken
    for case in list(cases([part]))[::size]:
        seen["cases"] += 1
        with tempfile.TemporaryDirectory() as folder:
            try:
                seen += check(case, Path(folder), session)
            except Exception as error:
                broken.append(f"{case}: {type(error).__name__}: {error}")
    return seen, broken


def _summary(seen: Counter[str], broken: list[str]) -> str:
    return (
        f"{seen['cases']} cases, {seen['not written']} that their writer does not take; {seen['read']} pairs of tables "
        f"read alike, {seen['refused']} refused alike, {seen['neighbours']} counts of neighbours, {len(broken)} broken"
    )


def _spark() -> Any:
    from pyspark.sql import SparkSession

    quick = {"spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.sql.adaptive.enabled": "false"}
    builder = SparkSession.builder.master("local[1]").appName("discreet")
    for name, value in {**quick, "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
