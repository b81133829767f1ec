"""A question in one form, whatever words it was asked in, so that nobody pays twice for one answer.

Two questions with the same form have the same answer but for the noise, the names of columns and the order of columns
and rows. The reverse is not promised: what is computed in another way is another question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from discreet.errors import choice
from discreet.tables.aggregates import Aggregate
from discreet.tables.conditions import Compare, IsIn, Logic
from discreet.tables.expressions import Expression, columns
from discreet.tables.nodes import Column, Node
from discreet.tables.possible_groups import conjuncts, derived_columns, with_columns_replaced
from discreet.tables.query import TableQuery

__all__ = ["canonical_form"]

_MIRRORED = {">": "<", ">=": "<="}
_TURNED = {**_MIRRORED, "==": "=="}


def canonical_form(query: TableQuery) -> str:
    """The rows, groups and columns that are asked for, without what only words, aliases and order tell apart.

    >>> import polars as pl
    >>> from discreet.schema import Bounded
    >>> from discreet.tables.table import table
    >>> people = table(pl.DataFrame({"age": [30.0]}), schema={"age": Bounded(0, 120)})
    >>> one = people.parse("SELECT COUNT(*) AS n, AVG(age) AS a FROM people WHERE age > 18 AND age < 65")
    >>> other = people.parse("select avg(AGE), count(*) from t where (age < 65) and age>18")
    >>> canonical_form(one) == canonical_form(other)
    True
    """
    rows = query.rows
    made = derived_columns(rows.derived)
    conditions = [
        node
        for node in conjuncts(with_columns_replaced(each.node, made) for each in rows.conditions)
        if columns(Expression(node)) or node.value({}) is not True
    ]  # without 1 = 1
    keys = {key: _spelled(made.get(key, Column(key))) for key in rows.keys}
    asked = {name: _spelled_aggregate(aggregate, made) for name, aggregate in query.aggregates}
    shown = _shown(query, {name: Column(text) for name, text in (keys | asked).items()})
    levels = sorted(sorted(keys[key] for key in level) for level in query.levels)
    parts = (sorted({*map(_spelled, conditions)}), sorted(keys.values()), sorted({*asked.values()}), levels, *shown)
    return repr(parts)


def _shown(query: TableQuery, named: Mapping[str, Node]) -> tuple[Any, ...]:
    """What is made of the answer: which columns, which rows; their order only where it decides which rows there are."""
    after = query.after
    if after is None:
        return [sorted({_spelled(node) for node in named.values()})], "", None, 0, []
    named = {**named, **{name: Column(_spelled(with_columns_replaced(node, named))) for name, node in after.sums}}

    def text(node: Node) -> str:
        return _spelled(with_columns_replaced(node, named))

    lines = [sorted({text(node) for node in line}) for line in after.rows]
    having = "" if after.having is None else text(after.having)
    is_cut = after.limit is not None or after.offset > 0
    order = [(text(one.node), one.descending, one.missing_first) for one in after.order] if is_cut else []
    return lines, having, after.limit, after.offset, order


def _spelled_aggregate(aggregate: Aggregate, made: Mapping[str, Node]) -> str:
    """An aggregate with its columns written out in terms of the table's own."""
    values = {field.name: getattr(aggregate, field.name) for field in fields(aggregate)}
    texts = {
        name: _spelled(made[value]) if isinstance(value, str) and value in made else repr(value)
        for name, value in values.items()
    }
    return f"{type(aggregate).__name__}({', '.join(f'{name}={text}' for name, text in texts.items())})"


def _spelled(node: Node) -> str:
    return repr(_sorted(node))


def _sorted(node: Node) -> Node:
    """The node with the parts of each AND, OR and IN, and the sides of each comparison, in one order."""
    if isinstance(node, IsIn):
        node = replace(node, values=tuple(sorted(set(node.values), key=repr)))
    if isinstance(node, Compare) and (
        node.sign in _MIRRORED or (node.sign == "==" and repr(node.left) > repr(node.right))
    ):
        node = Compare(choice("sign", node.sign, _TURNED), node.right, node.left)
    changed: dict[str, Any] = {}
    for field in fields(node):  # type: ignore[arg-type]
        value = getattr(node, field.name)
        if isinstance(value, Node):
            changed[field.name] = _sorted(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Node):
            parts = [_sorted(part) for part in value]
            changed[field.name] = tuple(sorted(parts, key=repr) if isinstance(node, Logic) else parts)
    return replace(node, **changed) if changed else node  # type: ignore[type-var]
