"""What pandas calls things: each works, or answers with the line to write."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from discreet.habits import answer_arguments
from discreet.tables.aggregates import Variance
from discreet.tables.expressions import Expression, col

if TYPE_CHECKING:
    from discreet.tables.query import TableQuery

__all__ = ["ColumnOfGroups", "answer_budgets", "refuse_habit"]

Class = TypeVar("Class", bound=type)
_ASKING = {"var", "std", "nunique", "count", "sum", "mean", "variance", "deviation", "covariance", "correlation"} | {
    *("quantile", "quantiles", "median", "histogram", "count_distinct")
}
_LAST = "the budget comes last, for all that is asked: ....release(epsilon=0.5, book=book)"

_FIRST = "filter, derive, select, join and group_by come before the aggregates: table.filter(...).count()"
LINES = {
    **dict.fromkeys(("filter", "derive", "select", "join", "group_by"), _FIRST),
    "groupby": "write group_by: table.group_by('sex').mean('cost').release(epsilon=0.5, book=book)",
    "agg": "add one column after another: table.group_by('sex').mean('cost').count().release(epsilon=0.5, book=book)",
    "aggregate": "add one column after another: table.mean('cost').count().release(epsilon=0.5, book=book)",
    "std": "write deviation: table.deviation('cost').release(epsilon=0.5, book=book)",
    "var": "write variance: table.variance('cost').release(epsilon=0.5, book=book)",
    "nunique": "write count_distinct: table.count_distinct('doctor').release(epsilon=0.5, book=book)",
    "value_counts": "group and count: table.group_by('sex').count().release(epsilon=0.5, book=book)",
    "describe": "ask for what you need: table.mean('cost').quantiles('cost').release(epsilon=0.5, book=book)",
    "corr": "write correlation: table.correlation('cost', 'age').release(epsilon=0.5, book=book)",
    "cov": "write covariance: table.covariance('cost', 'age').release(epsilon=0.5, book=book)",
    "min": "one row decides it: ask for a quantile, table.quantile('cost', 0.01).release(epsilon=0.5, book=book)",
    "max": "one row decides it: ask for a quantile, table.quantile('cost', 0.99).release(epsilon=0.5, book=book)",
    "query": "write filter: table.filter(dp.tables.col('age') >= 18)",
    "merge": "write join, or JOIN in SQL: table.join(other)",
    "head": "rows are never shown; the columns are table.schema",
    "tail": "rows are never shown; the columns are table.schema",
    **dict.fromkeys(
        ("to_pandas", "to_polars", "to_arrow", "to_csv", "collect"),
        "rows are never shown; an answer is a frame: table.count().release(epsilon=0.5, book=book).value",
    ),
    "sample": "rows are never shown; discreet.synthesis makes rows that resemble them",
    "iloc": "rows are never shown; ask for a number of them",
    "loc": "rows are never shown: filter them, table.filter(dp.tables.col('age') >= 18), and ask for a number",
    "shape": "how many rows there are is private: table.count().release(epsilon=0.5, book=book)",
    "columns": "the columns are table.schema",
    "isin": "write table.filter(dp.tables.col('sex').is_in(['f', 'm']))",
    "between": "write table.filter((dp.tables.col('age') >= 18) & (dp.tables.col('age') <= 65))",
    "fillna": "declare what a missing cell counts as: dp.Bounded(0, 100, missing=0)",
    "dropna": "rows without a value do not count: table.mean('cost') is that of the others",
    **dict.fromkeys(("isna", "isnull"), "write table.filter(dp.tables.col('cost').is_missing()).count()"),
    **dict.fromkeys(("notna", "notnull"), "write count: table.count('cost').release(epsilon=0.5, book=book)"),
    "str": "write table.filter(dp.tables.col('doctor').text.starts_with('A')), or SQL: ... WHERE doctor LIKE 'A%'",
    "dt": "write table.derive(year=dp.tables.col('day').date.year()).group_by('year'), or SQL: ... GROUP BY YEAR(day)",
    **{name: f"write table.derive(x=dp.tables.col('cost').{name}())" for name in ("round", "abs")},
    **dict.fromkeys(
        ("clip", "map", "replace"), "write an expression: table.derive(x=dp.tables.col('cost').clip(0, 9))"
    ),
    **dict.fromkeys(("nlargest", "nsmallest"), "write table.group_by('sex').count().order_by('count').limit(3)"),
    "apply": "write an expression: table.derive(dear=dp.tables.col('cost') > 100)",
    "assign": "write derive: table.derive(dear=dp.tables.col('cost') > 100)",
    "astype": "declare the column as what it is, in the schema",
    "hist": "write histogram: table.histogram('cost', bins=10).release(epsilon=0.5, book=book)",
    "where": "write filter: table.filter(dp.tables.col('age') >= 18)",
    "pivot_table": "group by both: table.group_by('sex', 'ward').mean('cost').release(epsilon=0.5, book=book)",
    "pivot": "group by both: table.group_by('sex', 'ward').mean('cost').release(epsilon=0.5, book=book)",
    "size": "write count: table.group_by('sex').count().release(epsilon=0.5, book=book)",
    "sort_values": "write order_by after the aggregates: table.group_by('sex').count().order_by('count')",
    **dict.fromkeys(("unique", "drop_duplicates"), "which values there are is declared, in table.schema"),
    "plot": "ask first, and plot the answer: table.histogram('cost').release(epsilon=0.5, book=book).value",
}


def refuse_habit(kind: str, name: str) -> NoReturn:
    """Say what to write for a name of pandas; any other name is unknown in the ordinary way."""
    if name in LINES:
        raise AttributeError(f"A {kind} has no {name!r}: {LINES[name]}.")
    raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def answer_budgets(cls: Class) -> Class:
    """A class whose questions answer a budget among their arguments with where it is said."""
    for name in _ASKING & vars(cls).keys():
        answered = answer_arguments(dict.fromkeys(("epsilon", "delta", "rho", "book"), _LAST))(vars(cls)[name])
        setattr(cls, name, answered)
    return cls


def _compared(sign: Callable[[Any, Any], Any]) -> Callable[[ColumnOfGroups, Any], Expression]:
    def condition(self: ColumnOfGroups, other: Any) -> Expression:
        return sign(col(self.name), other)  # type: ignore[no-any-return]

    return condition


@answer_budgets
@dataclass(frozen=True, eq=False)
class ColumnOfGroups:
    """A column of a table, or of its groups, to ask a number of: ``table["cost"].mean()``; compared with something, it
    is a condition: ``table[table["age"] >= 18]``.
    """

    groups: TableQuery
    name: str
    __lt__, __le__, __gt__, __ge__ = map(_compared, (operator.lt, operator.le, operator.gt, operator.ge))
    __eq__, __ne__ = map(_compared, (operator.eq, operator.ne))  # type: ignore[assignment]
    __hash__ = object.__hash__

    def mean(self) -> TableQuery:
        """The mean."""
        return self.groups.mean(self.name)

    def sum(self) -> TableQuery:
        """The sum."""
        return self.groups.sum(self.name)

    def count(self) -> TableQuery:
        """How many rows have a value."""
        return self.groups.count(self.name)

    def var(self) -> TableQuery:
        """The variance of a sample, as pandas' own; the population's is ``table.variance``."""
        return self.groups._of_numbers(Variance(self.name, sample=True), None)

    def std(self) -> TableQuery:
        """The standard deviation of a sample, as pandas' own; the population's is ``table.deviation``."""
        return self.groups._of_numbers(Variance(self.name, sample=True, root=True), None)

    def median(self) -> TableQuery:
        """The median."""
        return self.groups.median(self.name)

    def quantile(self, q: float | Sequence[float] = 0.5) -> TableQuery:
        """The ``q``-quantile, or several."""
        if isinstance(q, (list, tuple)):
            return self.groups.quantiles(self.name, q)
        return self.groups.quantile(self.name, q)  # type: ignore[arg-type]

    def nunique(self) -> TableQuery:
        """How many different values."""
        return self.groups.count_distinct(self.name)

    def __getattr__(self, name: str) -> Any:
        refuse_habit("column", name)
