"""Which groups of an answer a WHERE excludes by the declarations alone, asked of DuckDB with every declared value.

Only what is certain: keys and conditions that look at one declared column each.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from searches._queries import Query
from searches._query_rows import WORDS

__all__ = ["excluded_group"]

_DECLARED = {"sex", "region", "educ", "married", "age"}


def excluded_group(query: Query, rows: list[Any]) -> Any:
    """The first row whose keys no row of the table can have; none if there is none, or if that cannot be told."""
    tree = sqlglot.parse_one(query.asked, dialect="duckdb")
    source = tree.args.get("from_")
    plain = isinstance(tree, exp.Select) and source is not None and isinstance(source.this, exp.Table)
    if not plain or source.this.name != "people" or tree.args.get("joins") or tree.args.get("with_"):
        return None
    where = tree.args.get("where")
    conditions = [] if where is None else [part for part in _conjuncts(where.this) if _is_of_one_column(part)]
    keys = _keys(tree)
    places = [place for place, item in enumerate(tree.expressions) if item.unalias() in keys]
    places = [place for place in places if _is_of_one_column(tree.expressions[place])]
    if not places:
        return None
    shown = ", ".join(f"CAST({tree.expressions[place].unalias().sql('duckdb')} AS VARCHAR)" for place in places)
    held = " AND ".join(f"({part.sql('duckdb')})" for part in conditions) or "TRUE"
    possible = set(_every_value().sql(f"SELECT DISTINCT {shown} FROM people WHERE {held}").fetchall())
    texts = {tuple(None if part is None else _spelled(part) for part in group) for group in possible}
    return next((row for row in rows if tuple(_spelled(row[place]) for place in places) not in texts), None)


def _conjuncts(node: exp.Expression) -> list[exp.Expression]:
    node = node.unnest()
    return [*_conjuncts(node.left), *_conjuncts(node.right)] if isinstance(node, exp.And) else [node]


def _is_of_one_column(node: exp.Expression) -> bool:
    names = {column.name for column in node.find_all(exp.Column)}
    return len(names) == 1 and names <= _DECLARED


def _keys(tree: exp.Select) -> list[exp.Expression]:
    """What rows are grouped by, as the SELECT writes it."""
    group = tree.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):
        return [item.unalias() for item in tree.expressions if not item.find(exp.AggFunc)]
    named = {item.alias: item.unalias() for item in tree.expressions if item.alias}
    keys: list[exp.Expression] = []
    for node in group.expressions:
        if isinstance(node, exp.Literal):
            keys.append(tree.expressions[int(node.this) - 1].unalias())
        else:
            keys.append(named.get(node.name, node) if isinstance(node, exp.Column) else node)
    return keys


def _spelled(value: Any) -> Any:
    """Values that are equal here and there, spelt alike: 3.0 as 3, true as True."""
    return None if value is None else str(value).removesuffix(".0").lower()


@cache
def _every_value() -> Any:
    """A table with every combination of what is declared, or missing."""
    connection = duckdb.connect(config={"threads": 1})
    lists = {name: str(WORDS[name]) for name in ("sex", "region")}
    lists |= {"educ": "range(1, 6)", "age": "range(0, 101)", "married": "[false, true]"}
    columns = [f"(SELECT unnest(list_append({values}, NULL)) AS {name})" for name, values in lists.items()]
    connection.execute(f"CREATE TABLE people AS SELECT * FROM {', '.join(columns)}")
    return connection
