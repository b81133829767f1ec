"""What declarations and caps take away from an answer, in words, from public facts: a bias that no error bar holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.dates import Dates, Times
from discreet.schema import Bounded, Categories
from discreet.tables.aggregates import Aggregate, UnitTotal
from discreet.tables.passes import GroupedRows

__all__ = ["SPELLED", "biases"]

SPELLED = "the table holds text here, and a cell that spells no number is missing: all of them, if they are words"
_APART = "errors and intervals are those of the noise: what is said here is not in them"


def biases(rows: GroupedRows, aggregates: Sequence[Aggregate]) -> tuple[str, ...]:
    """A sentence for each column, key and cap that changes what is answered.

    >>> import polars as pl
    >>> from discreet.tables.table import table
    >>> asked = table(pl.DataFrame({"age": [30]}), schema={"age": Bounded(0, 120)}).mean("age")
    >>> for line in biases(asked.rows, [aggregate for _, aggregate in asked.aggregates]):
    ...     print(line)
    age: values outside 0 to 120 count as the nearer end; an empty cell, or one that is no number, does not count
    errors and intervals are those of the noise: what is said here is not in them
    """
    used = {name for aggregate in aggregates for name in rows.columns_used(aggregate.scan(rows))}
    said = [
        *(_cap_biases(rows, aggregates)),
        *(line for name in rows.schema if name in used for line in _read(rows, name)),
    ]
    return (*said, _APART) if said else ()


def _cap_biases(rows: GroupedRows, aggregates: Sequence[Aggregate]) -> Iterator[str]:
    totals = [one for one in aggregates if isinstance(one, UnitTotal)]
    if rows.limit.bias and len(totals) < len(aggregates):
        yield rows.limit.bias
    for one in totals:
        bounds = rows.grid(one.column).bounds
        what = f"what {one.of} adds up to" if one.of else "the number of rows"
        yield f"{what} in a unit counts as the nearer end where it lies outside {_span(bounds.low, bounds.high)}"
    if totals and rows.keys:
        yield f"of a unit, the totals in at most {rows.limit.spread} groups count"


def _read(rows: GroupedRows, name: str) -> Iterator[str]:
    """What becomes of a column's values, where the table holds it."""
    declared = rows.schema[name]
    if name in rows.derived or name not in rows.source.names:
        if name in rows.keys:
            yield f"{name}: a row where it is missing is in no group"
        return
    match declared:
        case Bounded(low=low, high=high, missing=missing):
            ends = "the bounds that are found" if declared.auto else _span(low, high)
            counts = "does not count" if missing == "drop" else f"counts as {_number(float(missing))}"
            cell = "an empty cell, or one that is no number,"
            yield f"{name}: values outside {ends} count as the nearer end; {cell} {counts}"
            if name in rows.source.spelled:
                yield f"{name}: {SPELLED}"
            if declared.auto:
                yield f"{name}: below some 1,000 rows declared bounds do better than those that are found"
        case Dates() | Times():
            yield f"{name}: what lies outside {declared.first} to {declared.last}, or is no date, is missing"
        case Categories(other=None) if name in rows.keys and name not in rows.moments:
            yield f"{name}: a row with none of the declared values is in no group"


def _span(low: float, high: float) -> str:
    return f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    return f"{value:,.10g}"
