"""SELECT, read with sqlglot onto the methods of a query. What is not supported is refused by name.

>>> import pandas as pd
>>> from discreet.schema import Bounded, Categories, Schema
>>> from discreet.tables.table import table
>>> rows = pd.DataFrame({"educ": [1, 2], "income": [10.0, 20.0]})
>>> people = table(rows, schema=Schema(educ=Categories([1, 2]), income=Bounded(0, 100)))
>>> parse("SELECT educ, AVG(income) AS pay, COUNT(*) FROM people WHERE income > 5 GROUP BY educ", people)
TableQuery(pay, count by educ)
>>> parse("SELECT MAX(income) FROM people", people)
Traceback (most recent call last):
...
ValueError: MAX(income) is not supported, because one row decides it: ask for a high quantile, QUANTILE_CONT...
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from discreet.errors import extra
from discreet.tables.lists import taken_out
from discreet.tables.query import TableQuery
from discreet.tables.where import expression

if TYPE_CHECKING:
    from discreet.tables.table import Table

with extra("tables"):
    import sqlglot
    from sqlglot import exp

__all__ = ["parse"]

# Clauses that are refused, with the nearest thing that is not.
_CLAUSES: Mapping[str, str] = {
    "joins": "JOIN is not supported: join first, and declare the unit of the joined table.",
    "laterals": "LATERAL is not supported: prepare the columns in the engine first.",
    "having": "HAVING is not supported: the answer is public, so filter it after the release.",
    "order": "ORDER BY is not supported: the answer is public, so sort it after the release.",
    "limit": "LIMIT is not supported: the answer is public, so cut it after the release.",
    "offset": "OFFSET is not supported: the answer is public, so cut it after the release.",
    "distinct": "SELECT DISTINCT is not supported: use GROUP BY, or COUNT(DISTINCT column).",
    "with_": "WITH is not supported: use one SELECT, with derive() for computed columns.",
    "qualify": "QUALIFY is not supported: max_rows_per_unit= bounds the rows of a unit.",
    "windows": "WINDOW is not supported: use GROUP BY.",
    "sample": "TABLESAMPLE is not supported: read the whole table.",
    "pivots": "PIVOT is not supported: use GROUP BY, and turn the answer after the release.",
    "into": "INTO is not supported: write the answer after the release.",
}
_FORM = "give one SELECT ... FROM ... [WHERE ...] [GROUP BY ...]."
_READ = {"expressions", "from_", "where", "group"}  # the parts of a SELECT
_NAMED = {"this", "db", "catalog", "alias"}  # the parts of a table's name


LONGEST = 2_000_000  # characters; a list of 10^5 values has less than half of them


def parse(query: str, table: Table) -> TableQuery:
    """The question that a SELECT asks of ``table``; any table name is accepted after FROM."""
    if len(query) > LONGEST:
        raise ValueError(f"The query has {len(query):,} characters, but may have {LONGEST:,} at most.")
    try:
        return _asked(query, table)
    except RecursionError:
        raise ValueError(
            "The query is nested too deeply: use IN for lists of values, derive() for computed columns."
        ) from None


def _asked(query: str, table: Table) -> TableQuery:
    query, lists = taken_out(query)
    tree = _select(query)
    _nothing_else(tree, _READ)
    _one_table(tree)
    if where := tree.args.get("where"):
        table = table.filter(expression(where.this, lists))
    keys = _keys(tree)
    answer = table.group_by(*keys)
    for item in tree.expressions:
        answer = _item(answer, item, table)
    return answer


def _select(query: str) -> exp.Select:
    try:
        trees = sqlglot.parse(query, dialect="duckdb")
    except sqlglot.errors.SqlglotError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"The query cannot be read: {reason}") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        kind = "several statements" if len(trees) != 1 else type(trees[0]).__name__.upper()
        raise ValueError(f"{kind} is not supported: {_FORM}")
    return trees[0]


def _nothing_else(node: exp.Expression, known: Collection[str]) -> None:
    """Refuse every clause but those that are read: one that was passed over in silence would be answered wrongly."""
    for clause, value in node.args.items():
        if value and clause not in known:
            raise ValueError(_CLAUSES.get(clause, f"{clause.strip('_').upper()} is not supported: {_FORM}"))


def _one_table(tree: exp.Select) -> None:
    source = tree.args.get("from_")
    if source is None:
        raise ValueError("There is no FROM: give one SELECT ... FROM people.")
    if not isinstance(source.this, exp.Table):
        raise ValueError("A subquery is not supported after FROM: use filter() and derive(), then one SELECT.")
    _nothing_else(source.this, _NAMED)
    if not isinstance(source.this.this, exp.Identifier) or source.this.alias_column_names:
        raise ValueError(
            f"{source.sql(dialect='duckdb')} is not supported: write FROM and a name; the table is open already."
        )
    if any(node for node in tree.find_all(exp.Select) if node is not tree):
        raise ValueError("A subquery is not supported: use filter() and derive(), then one SELECT.")


def _keys(tree: exp.Select) -> list[str]:
    group = tree.args.get("group")
    if group is None:
        return []
    if extras := [name for name in ("rollup", "cube", "grouping_sets", "totals", "all") if group.args.get(name)]:
        raise ValueError(f"GROUP BY {extras[0].upper()} is not supported: name the columns, one query a level.")
    return [_column(key, "GROUP BY") for key in group.expressions]


def _column(node: exp.Expression, where: str) -> str:
    if not isinstance(node, exp.Column):
        raise ValueError(
            f"{node.sql()} is not supported in {where}: give the name of a column; derive() makes computed ones."
        )
    return node.name


def _item(answer: TableQuery, item: exp.Expression, table: Table) -> TableQuery:
    """One entry of the SELECT list."""
    name, node = (item.alias, item.this) if isinstance(item, exp.Alias) else (None, item)
    if isinstance(node, exp.Star):
        raise ValueError("SELECT * is not supported, because rows never leave: select aggregates and grouped columns.")
    if isinstance(node, exp.Column):
        if node.name not in answer.rows.keys:
            raise ValueError(
                f"Column {node.name!r} is selected but not grouped by: add it to GROUP BY, or aggregate it."
            )
        if name and name != node.name:
            raise ValueError(
                f"An alias for the grouped column {node.name!r} is not supported: rename it after the release."
            )
        return answer
    return _aggregate(answer, node, name)


def _aggregate(answer: TableQuery, node: exp.Expression, name: str | None) -> TableQuery:
    text = node.sql(dialect="duckdb")
    match node:
        case exp.Count(this=exp.Star()):
            return answer.count(name=name)
        case exp.Count(this=exp.Distinct(expressions=[column])):
            return answer.count_distinct(_column(column, "COUNT(DISTINCT ...)"), name=name)
        case exp.Count(this=exp.Literal()):
            raise ValueError(f"{text} is not supported: write COUNT(*).")
        case exp.Count(this=exp.Expression() as column, expressions=[]) if not isinstance(column, exp.Distinct):
            return answer.count(_column(column, "COUNT"), name=name)
        case exp.Sum(this=exp.Column() as column):
            return answer.sum(column.name, name=name)
        case exp.Avg(this=exp.Column() as column):
            return answer.mean(column.name, name=name)
        case exp.VariancePop(this=exp.Column() as column):
            return answer.variance(column.name, name=name)
        case exp.Median(this=exp.Column() as column):
            return answer.median(column.name, name=name)
        case exp.Quantile(this=exp.Column() as column, args={"quantile": exp.Literal() as q}) if not q.is_string:
            return answer.quantile(column.name, float(q.this), name=name)
        case exp.PercentileCont(this=exp.Column() as column, expression=exp.Literal() as q):
            return answer.quantile(column.name, float(q.this), name=name)
        case exp.Max(this=inner) | exp.Min(this=inner):
            kind, share = ("high", 0.99) if isinstance(node, exp.Max) else ("low", 0.01)
            raise ValueError(
                f"{text} is not supported, because one row decides it: ask for a {kind} quantile, "
                f"QUANTILE_CONT({inner.sql()}, {share})."
            )
        case exp.Variance() | exp.Stddev() | exp.StddevSamp() | exp.StddevPop():
            raise ValueError(f"{text} is not supported: ask for VAR_POP(column), and take the root after the release.")
        case exp.Window():
            raise ValueError(f"{text} is not supported: window functions look at single rows; use GROUP BY.")
        case exp.AggFunc(this=exp.Expression() as inner) if not isinstance(inner, exp.Column):
            raise ValueError(f"{text} is not supported: aggregate a column; derive() makes computed ones.")
    raise ValueError(
        f"{text} is not supported. Aggregates are COUNT(*), COUNT(column), COUNT(DISTINCT column), SUM, AVG, "
        "VAR_POP, MEDIAN and QUANTILE_CONT(column, q)."
    )
