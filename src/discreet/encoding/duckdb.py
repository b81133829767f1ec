"""What is said to DuckDB in its own words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal
from weakref import WeakKeyDictionary

from discreet.encoding.engines import Engine, as_columns
from discreet.errors import choice

__all__ = ["DuckDB", "lock_connection"]

FEW = 8  # rows of a unit: up to as many, room is set aside for each unit, beyond rows are sorted, which takes no more
_STORED = {"date": "DATE", "time": "TIMESTAMP", "zoned": "TIMESTAMPTZ", "text": "TIMESTAMP"}  # by kind of moment
_AS_ARRAYS = {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "VARCHAR"}  # others might be rounded


def lock_connection(connection: Any, files: Sequence[str]) -> None:
    """Leave a connection nothing but these files: no other file, no extension, no setting can be reached from it, by
    whatever SQL. It cannot be unlocked.
    """
    listed = ", ".join(map(DuckDB().literal, files))
    for setting in (
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "allow_community_extensions = false",
        f"allowed_paths = [{listed}]",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


class DuckDB(Engine):
    """Embedded; the default for files and for frames in memory."""

    adds_in_128_bits = True
    half_bits = 32

    def __init__(self, connection: Any = None) -> None:
        # our own; a user's relation brings a connection that cannot be asked for progress
        self._connection = connection
        # the types of what was planned: asked after its EXPLAIN, DuckDB would bind every step of the query again
        self._types: WeakKeyDictionary[Any, list[str]] = WeakKeyDictionary()

    def quote(self, name: str) -> str:
        escaped = name.replace('"', '""')
        return f'"{escaped}"'

    def xor(self, a: str, b: str) -> str:
        return f"xor({a}, {b})"

    def shift_right(self, a: str, places: int) -> str:
        return f"({a} >> {places})"

    def beside(self, high: str, places: int, low: str) -> str:
        return f"(({high} << {places}) | {low})"

    def digest(self, text: str) -> str:
        return f"CAST('0x' || substr(md5({text}), 1, 15) AS BIGINT)"

    def spells(self, text: str, pattern: str) -> str:
        return f"regexp_full_match({text}, '{pattern}')"

    def literal(self, text: str) -> str:
        escaped = text.replace("'", "''")
        return f"'{escaped}'"

    def trim(self, text: str) -> str:
        return f"trim({text}, ' ')"

    def has(self, where: Literal["start", "end", "middle"], text: str, part: str) -> str:
        return f"{ {'start': 'starts_with', 'end': 'suffix', 'middle': 'contains'}[where] }({text}, {part})"

    def written_time(self, text: str) -> str:
        return f"TRY_CAST({text} AS TIMESTAMP)"

    def date(self, days: str) -> str:
        return f"TRY(DATE '1970-01-01' + TRY_CAST({days} AS INTEGER))"

    def days(self, date: str) -> str:
        return f"CAST({date} - DATE '1970-01-01' AS DOUBLE)"

    def like(self, text: str, pattern: str) -> str:
        return f"{text} LIKE {self.literal(pattern)}"

    def microseconds(self, value: str, kind: str) -> str:
        stored = choice("kind", kind, _STORED)
        if stored == "DATE":
            return f"TRY(CASE WHEN isfinite({value}) THEN {self.days(value)} * 86400e6 END)"
        time = f"TRY_CAST({value} AS {stored})"
        return f"TRY(CASE WHEN isfinite({time}) THEN epoch_us({time}) END)"

    def text(self, column: str, *, spelled: bool = False, mended: bool = False) -> str:
        value = self.as_text(self.quote(column))
        if spelled:
            # File statistics are about the bytes as they were, and DuckDB would look a mended text up in them, unless a
            # function stands between: one row more, and others would be found, or not.
            value = f"substr({value}, 1)" if mended else f"decode(encode({value}), 'replace')"
        return f"{value} COLLATE C"

    def as_text(self, value: str) -> str:
        return f"CAST({value} AS VARCHAR)"

    def project(self, frame: Any, columns: Sequence[str]) -> Any:
        return frame.project(", ".join(columns))

    def stop_inlining(self, frame: Any) -> Any:
        # Above a join, which a list of values is too, it would move aggregates below the join, and for that write every
        # column out in terms of the columns below: one that stands on others, which are named twice, grows with 2 to
        # the power of its depth. It moves nothing over a column that may differ from row to row.
        return frame.project("*, current_query_id() AS apart_").project(", ".join(frame.columns))

    def among(self, frame: Any, column: str, values: Sequence[Any], name: str) -> Any:
        textual = isinstance(values[0], str)
        told = list(values) if textual else [repr(float(value)) for value in values]
        every = "".join(told)
        # one constant, whatever the number of values: as 10^5 constants they take seconds to bind
        mark = next(sign for sign in map(chr, range(1, 0xD800)) if sign != "'" and sign not in every)
        listed = mark.join(told).replace("'", "''")
        kind = "VARCHAR[]" if textual else "DOUBLE[]"
        return frame.project(
            f"*, {column} IN (SELECT unnest(CAST(string_split('{listed}', '{mark}') AS {kind}))) AS {name}"
        )

    def smallest(self, frame: Any, unit: str, order: str, keep: int) -> Any:
        if keep == 1:
            return frame.aggregate(f"min({order}) AS {order}", unit)
        if keep > FEW:
            return super().smallest(frame, unit, order, keep)
        return frame.aggregate(f"unnest(min({order}, {keep})) AS {order}", unit)

    def first_rows(self, frame: Any, unit: str, order: str, columns: Sequence[str], keep: int) -> Any:
        if keep > FEW:
            return super().first_rows(frame, unit, order, columns, keep)
        packed = f"struct_pack({', '.join(f'{name} := {name}' for name in dict.fromkeys([order, *columns]))})"
        found = f"min({packed})" if keep == 1 else f"unnest(min({packed}, {keep}))"
        chosen = frame.aggregate(f"{found} AS row_", unit)
        return chosen.project(", ".join(f"row_.{name} AS {name}" for name in columns))

    def join(self, left: Any, right: Any, condition: str) -> Any:
        return left.set_alias("left_").join(right.set_alias("right_"), condition, how="inner")

    def dry_run(self, frame: Any) -> list[Any]:
        types = self._types[frame] = list(map(str, frame.types))
        try:
            frame.explain(format="json")  # half the price of the drawing, which a notebook would show
        except TypeError:  # of an older DuckDB
            frame.explain()
        return as_columns([], len(types))

    def fetch(self, frame: Any, progress: Callable[[float], None] | None) -> list[Any]:
        if progress is None or self._connection is None:
            return self._columns(frame)
        # it counts, and prints nothing
        for setting in ("enable_progress_bar = true", "enable_progress_bar_print = false"):
            self._connection.execute(f"SET {setting}")
        done = threading.Event()
        watcher = threading.Thread(target=_watch, args=(self._connection, done, progress), daemon=True)
        watcher.start()
        try:
            return self._columns(frame)
        finally:
            done.set()
            watcher.join()
            progress(1.0)

    def _columns(self, frame: Any) -> list[Any]:
        types = self._types.get(frame) or list(map(str, frame.types))
        if all(kind in _AS_ARRAYS for kind in types):
            return list(frame.fetchnumpy().values())
        return as_columns(frame.fetchall(), len(types))


def _watch(connection: Any, done: threading.Event, progress: Callable[[float], None]) -> None:
    furthest = 0.0
    while not done.wait(0.05):
        share = connection.query_progress() / 100  # negative while it is not known
        if share > furthest:
            furthest = min(share, 1.0)
            progress(furthest)
