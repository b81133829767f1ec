"""An answer beside what plain DuckDB answers, in everything that a person sees: rows, order, names, kinds of values.

The plain query is the same one with three changes that the schema asks for: rows without a declared key go nowhere,
LIMIT and OFFSET are cut afterwards (of equal rows any may be shown), and what rows are sorted by is shown too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import sqlglot
from sqlglot import exp

from searches._queries import Query
from searches._query_answers import difference, plain, unlike_kinds

__all__ = ["comparison", "wrong"]

QUANTILES = ("QUANTILE", "PERCENTILE", "MEDIAN")  # a choice between 1,024 bins
BIN = {"income": 200.0, "age": 0.2}


def comparison(query: str) -> Query:
    """What plain DuckDB is asked in place of a query, and how near its answer must be."""
    select = sqlglot.parse_one(query, dialect="duckdb")
    if isinstance(select, exp.Union):
        items, order, shown = select.selects, [], select
    else:
        shown, items = select.copy(), list(select.expressions)
        keys = _keys(select)
        for key in keys:
            shown = shown.where(exp.Not(this=exp.Is(this=exp.paren(key.copy()), expression=exp.Null())))
        order = select.args["order"].expressions if select.args.get("order") else []
        sorting = [_meant(each.this, items) for each in order]
        shown = shown.select(*(exp.alias_(each.copy(), f"o{place}") for place, each in enumerate(sorting)))
        for cut in ("limit", "offset"):
            shown.set(cut, None)
    return Query(
        asked=query,
        plain=shown.sql("duckdb"),
        shown=len(items),
        names=(None,) * len(items),
        loose=(False,) * len(items),
        wide=tuple(map(_wide, items)),
        limit=_number(select, "limit"),
        offset=_number(select, "offset") or 0,
        exact_order=tuple(not _wide(_meant(each.this, items)) for each in order),
    )


def _items(query: str) -> list[exp.Expression]:
    return list(sqlglot.parse_one(query, dialect="duckdb").selects)


def _keys(select: exp.Select) -> list[exp.Expression]:
    """What rows are grouped by, as expressions of a row."""
    group, items = select.args.get("group"), list(select.expressions)
    if group is None:
        return []
    if group.args.get("all"):
        return [each.unalias() for each in items if not each.find(exp.AggFunc)]
    parts = [*group.expressions, *(group.args.get("rollup") or ()), *(group.args.get("cube") or ())]
    keys = [key for part in parts for key in (part.expressions if isinstance(part, (exp.Rollup, exp.Cube)) else [part])]
    return [_meant(each, items) for each in keys]


def _meant(written: exp.Expression, items: list[exp.Expression]) -> exp.Expression:
    """The expression that a number or an alias stands for."""
    if isinstance(written, exp.Literal):
        return items[int(written.this) - 1].unalias()
    named = [each.unalias() for each in items if isinstance(written, exp.Column) and each.alias == written.name]
    return named[0] if named else written


def _wide(item: exp.Expression) -> float:
    """What a column may be off by: nothing for keys, and for counts at this epsilon."""
    text = item.sql().upper()
    if any(word in text for word in QUANTILES):
        return next(width for name, width in BIN.items() if name.upper() in text)
    if "DISTINCT" in text:
        return 2.0
    return 0.0 if all(isinstance(each, (exp.Count, exp.CountIf)) for each in item.find_all(exp.AggFunc)) else 0.3


def _number(select: exp.Expression, cut: str) -> int | None:
    node = select.args.get(cut)
    return None if node is None else int((node.args.get("count") or node.expression).this)


def wrong(query: str, answer: Any, truth: Any) -> str:
    """In what an answer differs from plain DuckDB's, or nothing."""
    asked = comparison(query)
    relation = truth.sql(asked.plain)
    expected = [tuple(map(plain, row)) for row in relation.fetchall()]
    rows = list(answer.itertuples(index=False)) if isinstance(answer, pd.DataFrame) else answer.rows()
    rows = [tuple(map(plain, row)) for row in rows]
    names = tuple(
        name if isinstance(item, (exp.Alias, exp.Column)) else None  # decision 354 names the others
        for name, item in zip(relation.columns, _items(query), strict=False)
    )
    said = difference(replace(asked, names=names), [str(name) for name in answer.columns], rows, expected)
    return said or unlike_kinds(answer, relation.types[: asked.shown])
