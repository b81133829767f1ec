"""Aggregates of SQL, read onto those of a query. Their arguments become derived columns; what is not there is refused
by name, with the nearest thing that is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from discreet.dates import Dates, Times
from discreet.errors import extra
from discreet.schema import Bounded
from discreet.tables.aggregates import Aggregate, Count, Mean, Sum, Variance
from discreet.tables.binned import CountDistinct, Quantile, Quantiles
from discreet.tables.choices import AsNumber, Case
from discreet.tables.conditions import Logic, Missing
from discreet.tables.derived import as_number
from discreet.tables.expressions import Expression
from discreet.tables.mistakes import at, declaration_name
from discreet.tables.nodes import Column, Node, Number
from discreet.tables.where import Reader, only

if TYPE_CHECKING:
    from discreet.tables.query import TableQuery
    from discreet.tables.table import Table

with extra("tables"):
    from sqlglot import exp

__all__ = ["Measures", "is_aggregate"]

Add = Callable[["TableQuery", "str | None"], "TableQuery"]

_MOMENTS: Mapping[type[exp.Expression], Callable[[str], Aggregate]] = {
    exp.Sum: Sum,
    exp.Avg: Mean,
    exp.VariancePop: Variance,
    exp.Variance: lambda column: Variance(column, sample=True),
    exp.StddevPop: lambda column: Variance(column, root=True),
    exp.Stddev: lambda column: Variance(column, sample=True, root=True),
    exp.StddevSamp: lambda column: Variance(column, sample=True, root=True),
    exp.Median: Quantile,
}
_PAIRS: Mapping[type[exp.Expression], dict[str, bool]] = {
    exp.Corr: {"correlation": True},
    exp.CovarPop: {},
    exp.CovarSamp: {"sample": True},
}
_QUANTILES = (exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.ApproxQuantile)
_KNOWN = (
    "Aggregates are COUNT(*), COUNT(x), COUNT(DISTINCT x), COUNT_IF, SUM, AVG, VAR_POP, VAR_SAMP, STDDEV, CORR, "
    "COVAR_POP, COVAR_SAMP, MEDIAN, QUANTILE_CONT(x, q) and PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x)."
)


def is_aggregate(node: exp.Expression) -> bool:
    """Whether a node looks at many rows."""
    return isinstance(node, (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.Window))


@dataclass
class Measures:
    """Reads aggregates over a table, which grows by the columns that they need; of the rows for which ``held`` holds,
    if that is given.
    """

    table: Table
    reader: Reader
    held: Node | None = None
    made: dict[str, Node] = field(default_factory=dict)  # the columns that were added, before they were resolved

    def column(self, node: Node, name: str) -> str:
        """The column that holds a value of each row."""
        if isinstance(node, Column):
            _ = self.table.schema[node.name]
            return node.name
        while name in self.table.declared and self.made.get(name) != node:
            name = f"{name} "  # what is called so is another column
        if name not in self.table.declared:
            self.table = self.table.derive(**{name: Expression(node)})
            self.made[name] = node
        return name

    def read(self, node: exp.Expression) -> Add:
        """How to add the aggregate to a query, under a name, or its own."""
        text, held = node.sql(dialect="duckdb"), self.held
        inner = node
        _refuse_pairs(node)
        _refuse_row_lists(node)
        with at(text):
            if isinstance(node, exp.Filter):
                held, inner = self._both(self.reader.node(node.expression.this), held), node.this
            aggregate = self._aggregate(inner, held, text)
        plain = getattr(aggregate, "column", None) in self.reader.names.values() and held is None
        if isinstance(aggregate, tuple):
            left, right, kind = aggregate
            return lambda query, name: query._with_pair(left, right, name or text, **kind)
        own = None if plain or aggregate == Count() else text
        if isinstance(aggregate, Count):
            return lambda query, name: query.count(aggregate.column, name=name or own)
        return lambda query, name: query._with(aggregate, name or own)

    def _aggregate(self, node: exp.Expression, held: Node | None, text: str) -> Any:
        match node:
            case exp.Count() | exp.CountIf():
                return self._count(node, held, text)
            case exp.ApproxDistinct():
                return CountDistinct(self._argument(node.this, held, text, number=False))
            case exp.WithinGroup():
                return self._within(node, held, text)
            case exp.Max() | exp.Min():
                kind, share = ("high", 0.99) if isinstance(node, exp.Max) else ("low", 0.01)
                raise ValueError(
                    f"{text} is not supported, because one row decides it: ask for a {kind} quantile, "
                    f"QUANTILE_CONT({node.this.sql()}, {share})."
                )
            case exp.Window():
                raise ValueError(f"{text} is not supported: window functions look at single rows; use GROUP BY.")
            case exp.Mode():
                raise ValueError(
                    f"{text} is not supported: write SELECT {node.this.sql()}, COUNT(*) ... GROUP BY 1 "
                    "ORDER BY COUNT(*) DESC LIMIT 1."
                )
        if isinstance(node.this, exp.Distinct):
            raise ValueError(f"{text} is not supported with DISTINCT: there is COUNT(DISTINCT column).")
        if type(node) in _MOMENTS:
            only(node, "this")
            if isinstance(node, exp.Sum) and isinstance(node.this, exp.Literal) and node.this.this == "1":
                return self._count(exp.Count(this=exp.Star()), held, text)
            return _MOMENTS[type(node)](self._argument(node.this, held, text))
        if type(node) in _PAIRS:
            left, right = (self._argument(side, held, f"{text}: {side.sql()}") for side in (node.this, node.expression))
            return left, right, _PAIRS[type(node)]
        if isinstance(node, _QUANTILES):
            only(node, "this", "quantile", "expression")
            return self._quantile(node.this, node.args.get("quantile") or node.expression, held, text)
        raise ValueError(f"{text} is not supported. {_KNOWN}")

    def _count(self, node: exp.Expression, held: Node | None, text: str) -> Aggregate:
        if isinstance(node, exp.CountIf):
            held = self._both(self.reader.node(node.this), held)
        elif isinstance(node.this, exp.Distinct):
            return CountDistinct(self._argument(node.this.expressions[0], held, text, number=False))
        elif not isinstance(node.this, (exp.Star, exp.Literal)):
            only(node, "this", "big_int")
            found = self.reader.node(node.this)
            if isinstance(found, Column) and held is None:
                self.table.count(found.name)  # refuses what cannot be counted, here where its place is known
                return Count(found.name)
            held = self._both(Logic("~", (Missing(found),)), held)
        return Count() if held is None else Count(self.column(Case((held,), (Number(1.0),)), text))

    @staticmethod
    def _both(one: Node, other: Node | None) -> Node:
        return one if other is None else Logic("&", (one, other))

    def _argument(self, node: exp.Expression, held: Node | None, text: str, *, number: bool = True) -> str:
        """The column of an aggregate's argument, in the rows that its filter keeps."""
        if not number and isinstance(node, exp.Column) and held is None:
            name = self.reader.column(node)
            if name.lower() == (self.table.limit.unit or "").lower():
                return self.table.limit.unit or ""
        found = self.reader.node(node)
        if isinstance(found, Column) and number:
            counted = as_number(found.name, self.table.schema)
            found = found if counted is None else counted.node
        if number and found.logical():
            found = AsNumber(found)
        name = self.column(found if held is None else Case((held,), (found,)), text)
        if number and not isinstance(self.table.schema[name], Bounded):
            raise self._no_number(node, self.table.schema[name])
        return name

    def _no_number(self, node: exp.Expression, declared: Any) -> ValueError:
        """Why an aggregate cannot be: it needs bounds."""
        what = node.sql(dialect="duckdb")
        if isinstance(declared, (Dates, Times)):
            first = str(declared.first)[:10]
            return ValueError(
                f"{what} is a date, but a number is needed: write date_diff('day', DATE '{first}', {what})."
            )
        plain = isinstance(node, exp.Column) and not getattr(declared, "textual", False)
        remedy = (
            f"declare {what} = {{ bounds = [low, high] }}, or GROUP BY it." if plain else "GROUP BY it, or count it."
        )
        said = f"{what} is text" if not plain else f"{what} is declared with {declaration_name(declared)}"
        return ValueError(f"{said}, but a number with bounds is needed: {remedy}")

    def _within(self, node: exp.WithinGroup, held: Node | None, text: str) -> Aggregate:
        only(node, "this", "expression")
        ordered = node.expression.expressions
        if not isinstance(node.this, (exp.PercentileCont, exp.PercentileDisc)) or len(ordered) != 1:
            raise ValueError(f"{text} is not supported. {_KNOWN}")
        if ordered[0].args.get("desc"):
            raise ValueError(f"{text} is not supported with DESC: take 1 - q instead.")
        return self._quantile(ordered[0].this, node.this.this, held, text)

    def _quantile(self, column: exp.Expression, q: exp.Expression, held: Node | None, text: str) -> Aggregate:
        argument = self._argument(column, held, f"{column.sql()} of {text}" if held else column.sql(dialect="duckdb"))
        shares = tuple(self.reader.number(share) for share in (q.expressions if isinstance(q, exp.Array) else [q]))
        if wrong := [share for share in shares if not 0 <= share <= 1]:
            raise ValueError(f"The share {wrong[0]:g} must lie between 0 and 1: the median is that of 0.5.")
        return Quantiles(argument, shares) if isinstance(q, exp.Array) else Quantile(argument, shares[0])


def _refuse_row_lists(node: exp.Expression) -> None:
    """Several words of SQL are one kind to sqlglot, which would write another than the user."""
    if node.find(exp.GroupConcat, exp.ArrayAgg):
        raise ValueError(
            "STRING_AGG, LISTAGG, GROUP_CONCAT, ARRAY_AGG and LIST are not supported, because they show single rows: "
            "GROUP BY the column, and count."
        )


def _refuse_pairs(node: exp.Expression) -> None:
    """What sqlglot would write out as a CASE of its own."""
    for distinct in node.find_all(exp.Distinct):
        if len(parts := [part.sql(dialect="duckdb") for part in distinct.expressions]) != 1:
            raise ValueError(
                f"COUNT(DISTINCT {', '.join(parts)}) is not supported: COUNT(DISTINCT ...) takes one column; texts are "
                f"joined by {' || '.join(parts)}."
            )
