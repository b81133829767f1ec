"""UNION ALL of SELECTs without groups over one table: one question, each part of which counts its own rows.

Every aggregate of a part looks at the part's rows alone, as one with FILTER does, so all are answered by one scan and
one charge, and shown one part per line. Parts may overlap: a record then counts in each, and is paid for in each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from discreet.errors import extra
from discreet.tables.after import Presentation
from discreet.tables.nodes import Node
from discreet.tables.query import TableQuery
from discreet.tables.relations import Sources, nothing_else, relation
from discreet.tables.select import Select, answer_schema, fitted, is_dated, refuse_lists
from discreet.tables.where import only

with extra("tables"):
    from sqlglot import exp

__all__ = ["union"]

_FORM = "give each part as SELECT aggregates FROM one table WHERE ..., or group by a CASE"


def union(tree: exp.Expression, sources: Sources) -> TableQuery:
    """The question that a UNION ALL asks."""
    parts: list[Select] = []
    lines: list[list[tuple[str, Node]]] = []
    table = sources.base.table
    for part, around in _parts(tree):
        named = replace(sources, base=replace(sources.base, table=table, held=()))
        for outer in around:
            named = named.within(outer)
        found = relation(part, named)
        taken = frozenset(name for other in parts for name, _ in other.added.values())
        parts.append(Select(part, found, taken))
        lines.append(parts[-1].shown())
        table = parts[-1].measures.table  # with the columns that the part needs
    if any(len(line) != len(lines[0]) for line in lines):
        raise ValueError("The parts of UNION ALL have different numbers of columns.")
    query = table.group_by()
    for name, add in (pair for part in parts for pair in part.added.values()):
        query = add(query, name)
    refuse_lists(query, [node for line in lines for _, node in line])
    return replace(query, after=_presented(query, lines))


def _presented(query: TableQuery, lines: list[list[tuple[str, Node]]]) -> Presentation:
    """One part per line, under the names of the first."""
    schema, names = answer_schema(query), tuple(name for name, _ in lines[0])
    made = tuple(tuple(fitted(node, schema) for _, node in line) for line in lines)
    for name, column in zip(names, zip(*made, strict=True), strict=True):
        if len({"truth" if node.logical() else node.kind(schema) for node in column}) > 1:
            raise ValueError(f"The parts of UNION ALL have values of different kinds in {name!r}.")
    dated = frozenset(name for name, node in zip(names, made[0], strict=True) if is_dated(node, schema))
    return Presentation(names, made, dated=dated)


def _parts(tree: exp.Expression, around: tuple[exp.Expression, ...] = ()) -> list[tuple[exp.Select, Any]]:
    """The SELECTs, each with all that stands around it and may have a WITH, the outermost first."""
    around = (*around, tree)
    if isinstance(tree, exp.Subquery):
        only(tree, "this", "with_")
        return _parts(tree.this, around)
    if isinstance(tree, exp.Union):
        if tree.args.get("distinct"):
            raise ValueError(f"UNION is not supported, because it drops equal rows: write UNION ALL, and {_FORM}.")
        if tree.args.get("by_name"):
            raise ValueError("UNION ALL BY NAME is not supported: write UNION ALL, with columns in one order.")
        if tree.args.get("order") or tree.args.get("limit"):
            raise ValueError(f"ORDER BY and LIMIT are not supported after UNION ALL: sort the answer, or {_FORM}.")
        nothing_else(tree, {"this", "expression", "with_"})
        return [*_parts(tree.this, around), *_parts(tree.expression, around)]
    if not isinstance(tree, exp.Select):
        raise ValueError(f"{type(tree).__name__.upper()} is not supported in UNION ALL: {_FORM}.")
    if tree.args.get("group"):
        raise ValueError(f"GROUP BY is not supported in UNION ALL: for totals write GROUP BY ROLLUP (...), or {_FORM}.")
    nothing_else(tree, {"expressions", "from_", "where", "with_", "joins"})
    return [(tree, around)]
