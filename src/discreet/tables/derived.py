"""What is publicly known of a derived column: its bounds, or its categories, follow from its expression."""

from __future__ import annotations

import math
from typing import Any

from discreet.dates import Dates, Times, moment
from discreet.schema import Bounded, Categories, Column, Schema, Unlisted, Value
from discreet.tables.choices import AsNumber
from discreet.tables.expressions import Expression
from discreet.tables.mistakes import declaration_name, mistake
from discreet.tables.nodes import Clip
from discreet.tables.nodes import Column as Read

__all__ = ["as_number", "declaration_of", "key_of"]


def declaration_of(name: str, expression: Expression, schema: Schema) -> Column:
    """The declaration of a derived column."""
    node = expression.node
    kind, domain = node.kind(schema), node.domain(schema)
    if kind == "text":
        return Unlisted() if domain is None else Categories(domain)
    bounds = node.bounds(schema)
    if not all(map(math.isfinite, bounds)) and domain:
        bounds = float(min(domain)), float(max(domain))
    if not all(map(math.isfinite, bounds)) or not bounds[0] <= bounds[1]:
        said = f"The bounds of {name!r} do not follow from its columns: "
        raise mistake(
            f"{said}end the expression with .clip(low, high).", f"{said}cut it, as LEAST(GREATEST(..., low), high)."
        )
    if kind == "moment":
        return Times(moment(bounds[0]), moment(max(bounds[1], bounds[0] + 1)))
    low, high = bounds
    return Bounded(low, high) if low < high else Bounded(min(low, 0.0), max(high, 0.0) or 1.0)


def key_of(name: str, column: Column, expression: Expression | None, schema: Schema) -> Column:
    """The declaration of a column as a key: what has few values that public facts tell has categories."""
    if isinstance(column, (Categories, Unlisted)):
        return column
    domain = None
    if expression is not None:
        domain = expression.node.domain(schema)
    elif isinstance(column, Dates):
        domain = Read(name).domain(schema)
    if domain is None:
        timed = isinstance(column, Times)
        how = "col(...).date.start('month')" if timed else "(col(...) / 10).floor() * 10"
        what = name if expression is None else "..."
        groups = f"date_trunc('month', {what})" if timed else f"FLOOR({what} / 10) * 10"
        if isinstance(column, Bounded) and column.whole and expression is None:
            groups = f"FLOOR({what}) or {groups}"
        elif expression is not None and not timed:
            groups += ", FLOOR(...) % 2"
        sql = (
            f"{name!r} has no list of groups, because it is declared with {declaration_name(column)}: group by "
            f"{groups}, or declare it with categories = [...] or range = [first, last]."
            if expression is None
            else f"its values are computed, and public facts do not list them: group by {groups}, or by a CASE."
        )
        raise mistake(
            f"Column {name!r} is {type(column).__name__}, but keys are Categories or Unlisted(), or computed with few "
            f"values, as by {how}; for ranges of a number, use histogram().",
            sql,
        )
    return Categories(_labels(domain))


def as_number(name: str, schema: Schema) -> Expression | None:
    """Categories that are numbers or truth values as numbers, which SQL takes them for; none for any other column."""
    column = Read(name)
    if not isinstance(schema[name], Categories) or column.kind(schema) != "number":
        return None
    return Expression(Clip(AsNumber(column), *column.bounds(schema)))


def _labels(domain: tuple[Value, ...]) -> tuple[Value, ...]:
    """Numbers in order, whole ones as such; truth values as such."""
    if domain == (False, True) and isinstance(domain[0], bool):
        return domain
    if isinstance(domain[0], str):
        return domain
    plain: dict[Any, None] = {(int(v) if float(v).is_integer() else v): None for v in domain}
    return tuple(sorted(plain))
