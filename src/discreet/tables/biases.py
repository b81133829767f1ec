"""What declarations and caps take away from an answer, in words, from public facts: a bias that no error bar holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.dates import Dates, Times
from discreet.schema import Bounded, Categories
from discreet.tables.aggregates import Aggregate, UnitTotal
from discreet.tables.bounding import most_groups
from discreet.tables.conditions import Logic
from discreet.tables.expressions import Expression, columns
from discreet.tables.nodes import Node
from discreet.tables.passes import GroupedRows
from discreet.tables.possible_groups import derived_columns, with_columns_replaced

__all__ = ["SPELLED", "biases", "column_biases"]

SPELLED = "the table has text here, and a cell that does not spell a number is missing: all of them, if they are words"
_APART = "errors and intervals account for the noise alone, not for these biases"


def biases(rows: GroupedRows, aggregates: Sequence[Aggregate]) -> tuple[str, ...]:
    """A sentence for each column, key and cap that changes what is answered.

    >>> import polars as pl
    >>> from discreet.tables.table import table
    >>> asked = table(pl.DataFrame({"age": [30]}), schema={"age": Bounded(0, 120)}).mean("age")
    >>> for line in biases(asked.rows, [aggregate for _, aggregate in asked.aggregates]):
    ...     print(line)
    age: values outside 0 to 120 count as the nearer end; an empty cell, or one that is not a number, does not count
    errors and intervals account for the noise alone, not for these biases
    """
    said = [*_cap_biases(rows, aggregates), *column_biases(rows, aggregates)]
    return (*said, _APART) if said else ()


def column_biases(rows: GroupedRows, aggregates: Sequence[Aggregate]) -> Iterator[str]:
    """What becomes of values that a column's declaration does not hold."""
    used = {name for aggregate in aggregates for name in rows.columns_used(aggregate.scan(rows))}
    for name in rows.schema:
        yield from _read(rows, name) if name in used else ()
    yield from _opposite_biases(rows)


def _opposite_biases(rows: GroupedRows) -> Iterator[str]:
    """Conditions that a row with none of the declared values does not meet, though it seems to."""
    made = derived_columns(rows.derived)
    conditions = [with_columns_replaced(condition.node, made) for condition in rows.conditions]
    opposites = {name for condition in conditions for name in _columns_of_opposites(condition)}
    for name in sorted(opposites & set(rows.source.names)):
        declared = rows.schema[name]
        if isinstance(declared, Categories) and not (name in rows.keys and declared.other is None):
            yield f"{name}: a row with none of the declared values is left out by <>, NOT IN and NOT, too"


def _columns_of_opposites(node: Node, negated: bool = False) -> Iterator[str]:
    """The columns of conditions that must not hold, and that nothing decides where the column is missing."""
    if isinstance(node, Logic):
        for part in node.parts:
            yield from _columns_of_opposites(part, negated != (node.sign == "~"))
    elif negated and len(used := columns(Expression(node))) == 1:
        (name,) = used
        if node.value({name: None}) is None:
            yield name


def _cap_biases(rows: GroupedRows, aggregates: Sequence[Aggregate]) -> Iterator[str]:
    totals = [one for one in aggregates if isinstance(one, UnitTotal)]
    if rows.limit.bias and len(totals) < len(aggregates):
        yield rows.limit.bias
    for one in totals:
        bounds = rows.grid(one.column).bounds
        what = f"what {one.of} adds up to" if one.of else "the number of rows"
        yield f"{what} per unit counts as the nearer end if it lies outside {_span(bounds.low, bounds.high)}"
    if totals and rows.keys:
        yield f"the totals of a unit count {most_groups(rows.limit.spread)}"


def _read(rows: GroupedRows, name: str) -> Iterator[str]:
    """What becomes of a column's values, where the table holds it."""
    declared = rows.schema[name]
    if name in rows.derived or name not in rows.source.names:
        if name in rows.keys and name not in rows.missing_groups:
            yield f"{name}: a row where it is missing is in no group"
        return
    match declared:
        case Bounded(low=low, high=high, missing=missing):
            ends = "the bounds that are found" if declared.auto else _span(low, high)
            counts = "does not count" if missing == "drop" else f"counts as {_number(float(missing))}"
            cell = "an empty cell, or one that is not a number,"
            yield f"{name}: values outside {ends} count as the nearer end; {cell} {counts}"
            if name in rows.source.spelled:
                yield f"{name}: {SPELLED}"
            if declared.auto:
                yield f"{name}: with fewer than about 1,000 rows, declared bounds are better than bounds that are found"
        case Dates() | Times():
            yield f"{name}: values outside {declared.first} to {declared.last}, or that are not dates, are missing"
        case Categories(other=None) if name in rows.keys and name not in rows.moments:
            yield f"{name}: a row with none of the declared values is in no group"


def _span(low: float, high: float) -> str:
    return f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    return f"{value:,.10g}"
