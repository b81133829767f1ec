"""UNION ALL of SELECTs without groups over one table: one question, each part of which counts its own rows.

Every aggregate of a part becomes one with FILTER, so all are answered by one scan and one charge, and shown one part a
line. Parts may overlap: a record then counts in each, and is paid for in each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from discreet.errors import extra
from discreet.tables.after import Presentation
from discreet.tables.nodes import Column, Node
from discreet.tables.query import TableQuery
from discreet.tables.relations import Relation, nothing_else
from discreet.tables.select import read_select

with extra("tables"):
    from sqlglot import exp

__all__ = ["read_union"]

_FORM = "give each part as SELECT aggregates FROM one table WHERE ..., or group by a CASE"


def read_union(tree: exp.Union, rows: Callable[[exp.Select], Relation]) -> TableQuery:
    """The question that a UNION ALL asks; ``rows`` gives the relation of a SELECT."""
    nothing_else(tree, {"this", "expression", "distinct", "with_", "by_name"})
    parts = _parts(tree)
    first, names = parts[0], [item.alias_or_name for item in parts[0].expressions]
    if any(len(part.expressions) != len(names) for part in parts):
        raise ValueError("The parts of UNION ALL have different numbers of columns.")
    if any(part.args.get("from_") != first.args.get("from_") or part.args.get("joins") for part in parts):
        raise ValueError(f"UNION ALL over different tables is not supported: {_FORM}.")
    whole = exp.Select(expressions=[], from_=first.args["from_"].copy())
    for number, part in enumerate(parts):
        where = part.args.get("where")
        for place, item in enumerate(part.expressions):
            node = item.unalias().copy()
            filtered = node if where is None else _with_filter(node, where.this)
            whole.append("expressions", exp.alias_(filtered, f"{number} {place}", quoted=True))
    query = read_select(whole, rows(whole))
    after = query.after
    nodes: tuple[Node, ...] = after.rows[0] if after else tuple(Column(name) for name, _ in query.aggregates)
    width = len(names)
    lines = tuple(nodes[start : start + width] for start in range(0, len(nodes), width))
    return replace(query, after=Presentation(tuple(names), lines))


def _parts(tree: exp.Expression) -> list[exp.Select]:
    if isinstance(tree, exp.Union):
        if tree.args.get("distinct"):
            raise ValueError(f"UNION is not supported, because it drops equal rows: write UNION ALL, and {_FORM}.")
        return [*_parts(tree.this), *_parts(tree.expression)]
    part: Any = tree.unnest()
    if not isinstance(part, exp.Select):
        raise ValueError(f"{type(part).__name__.upper()} is not supported in UNION ALL: {_FORM}.")
    if part.args.get("group"):
        raise ValueError(f"GROUP BY is not supported in UNION ALL: for totals write GROUP BY ROLLUP (...), or {_FORM}.")
    nothing_else(part, {"expressions", "from_", "where", "with_", "joins"})
    return [part]


def _with_filter(node: exp.Expression, condition: exp.Expression) -> exp.Expression:
    """Every aggregate with FILTER (WHERE condition)."""

    def keep_part(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Filter):
            both = exp.and_(part.expression.this.copy(), condition.copy())
            return exp.Filter(this=part.this.copy(), expression=exp.Where(this=both))
        if isinstance(part, (exp.AggFunc, exp.WithinGroup)):
            return exp.Filter(this=part.copy(), expression=exp.Where(this=condition.copy()))
        return part

    return node.transform(keep_part)
