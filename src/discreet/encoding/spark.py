"""What is said to Spark in its own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from discreet.encoding.engines import Engine, as_columns

__all__ = ["Spark"]


class Spark(Engine):
    """A Spark session's frames, wherever its cluster is."""

    adds_in_128_bits = False
    half_bits = 15

    def quote(self, name: str) -> str:
        escaped = name.replace("`", "``")
        return f"`{escaped}`"

    def xor(self, a: str, b: str) -> str:
        return f"({a} ^ {b})"

    def shift_right(self, a: str, places: int) -> str:
        return f"shiftright({a}, {places})"

    def beside(self, high: str, places: int, low: str) -> str:
        return f"(shiftleft({high}, {places}) | {low})"

    def digest(self, text: str) -> str:
        return f"CAST(conv(substr(md5({text}), 1, 15), 16, 10) AS BIGINT)"

    def spells(self, text: str, pattern: str) -> str:
        # Nothing is left after the longest match at the start; Java's $ would also let some ends of lines pass.
        return f"regexp_replace({text}, '^{pattern}', '') = ''"

    def literal(self, text: str) -> str:  # by its bytes: settings decide what a backslash means
        return f"CAST(X'{text.encode().hex()}' AS STRING)"

    def trim(self, text: str) -> str:
        return f"trim(BOTH ' ' FROM {text})"

    def has(self, where: Literal["start", "end", "middle"], text: str, part: str) -> str:
        return f"{ {'start': 'startswith', 'end': 'endswith', 'middle': 'contains'}[where] }({text}, {part})"

    def written_time(self, text: str) -> str:
        return f"TRY_CAST({text} AS TIMESTAMP_NTZ)"

    def number(self, double: str) -> str:
        # The value is named once: filters are moved below what they stand on, where each name becomes the whole
        # expression, and of a chain of steps that names each twice nothing is left but its exponential.
        return f"nanvl({double}, CAST(NULL AS DOUBLE))"

    def date(self, days: str) -> str:
        return f"date_from_unix_date(TRY_CAST({days} AS INT))"

    def days(self, date: str) -> str:
        return f"CAST(unix_date({date}) AS DOUBLE)"

    def like(self, text: str, pattern: str) -> str:
        doubled = pattern.replace("\\", "\\\\")  # a backslash escapes what follows, here alone
        return f"{text} LIKE {self.literal(doubled)}"

    def microseconds(self, value: str, kind: str) -> str:
        if kind == "date":
            return f"({self.days(value)} * 86400e6)"
        if kind == "zoned":
            return f"unix_micros({value})"
        if kind not in ("time", "text"):
            raise ValueError(f"kind is {kind!r}, but must be 'date', 'time', 'zoned' or 'text'.")
        clock = f"hour({value}) * 3600 + minute({value}) * 60"
        return (
            f"((unix_date(CAST({value} AS DATE)) * 86400L + {clock}) * 1000000 "
            f"+ CAST(extract(SECOND FROM {value}) * 1000000 AS BIGINT))"
        )

    def text(self, column: str, *, spelled: bool = False, mended: bool = False) -> str:
        value = self.as_text(self.quote(column))
        if spelled and not mended:
            mark = self.literal("\ufffd")  # what Spark puts in the place of bytes that are none
            valid = f"replace(make_valid_utf8({value}), {mark}, '?')"
            value = f"CASE WHEN is_valid_utf8({value}) THEN {value} ELSE {valid} END"
        return f"{value} COLLATE UTF8_BINARY"

    def as_text(self, value: str) -> str:
        return f"CAST({value} AS STRING)"

    def project(self, frame: Any, columns: Sequence[str]) -> Any:
        return frame.selectExpr(*columns)

    def among(self, frame: Any, column: str, values: Sequence[Any], name: str) -> Any:
        return frame.withColumn(name, frame[column].isin(list(values)))

    def smallest(self, frame: Any, unit: str, order: str, keep: int) -> Any:
        if keep == 1:
            return frame.groupBy(unit).agg({order: "min"}).selectExpr(f"`min({order})` AS {order}")
        return super().smallest(frame, unit, order, keep)

    def join(self, left: Any, right: Any, condition: str) -> Any:
        from pyspark.sql.functions import expr

        return left.join(right, expr(condition), "inner")

    def dry_run(self, frame: Any) -> list[Any]:
        own = getattr(frame, "_jdf", None)
        own.queryExecution().executedPlan() if own is not None else frame.schema  # a remote session analyses alone
        return as_columns([], len(frame.columns))

    def fetch(self, frame: Any, progress: Callable[[float], None] | None) -> list[Any]:
        return as_columns([tuple(row) for row in frame.collect()], len(frame.columns))
