"""Every part of a parsed SELECT that is read, by the kind of its node: whatever else a query says is refused.

A parser understands more than is answered, and puts what it understood into arguments of its nodes. One that nobody
looks at would be ignored in silence: a WITH that loses its filter, a list of columns that is not applied. So after a
query was read, its tree is held against this list, and an argument, or a kind of node, that is not here is refused by
its name. Whoever teaches a reader something new adds it here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from discreet.errors import extra

with extra("tables"):
    from sqlglot import exp

__all__ = ["UNDERSTOOD", "refuse_unread"]


def _kinds(parts: str, *kinds: type[exp.Expression]) -> dict[type[exp.Expression], frozenset[str]]:
    return dict.fromkeys(kinds, frozenset(parts.split()))


UNDERSTOOD: Mapping[type[exp.Expression], frozenset[str]] = {
    # queries, and what they stand on
    **_kinds("with_ expressions from_ joins where group having order limit offset", exp.Select),
    **_kinds("with_ this expression", exp.Union),
    **_kinds("with_ this alias", exp.Subquery),
    **_kinds("expressions", exp.With, exp.Order, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Array),
    **_kinds("this alias materialized", exp.CTE),  # how an engine computes it changes nothing
    **_kinds("this columns", exp.TableAlias),
    **_kinds("this", exp.From, exp.Where, exp.Having, exp.Paren, exp.Var),
    **_kinds("this db catalog alias", exp.Table),
    **_kinds("this on using side kind", exp.Join),
    **_kinds("expressions all rollup cube grouping_sets", exp.Group),
    **_kinds("this desc nulls_first", exp.Ordered),
    **_kinds("expression", exp.Limit, exp.Offset),
    **_kinds("count direction limit_options", exp.Fetch),
    **_kinds("rows", exp.LimitOptions),
    **_kinds("this alias", exp.Alias),
    # names and constants
    **_kinds("this table", exp.Column),
    **_kinds("this quoted", exp.Identifier),
    **_kinds("this is_string", exp.Literal),
    **_kinds("this", exp.Boolean),
    **_kinds("", exp.Star, exp.Null),
    # conditions and arithmetic
    **_kinds("this expression", exp.And, exp.Or, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is),
    **_kinds("this expression", exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv, exp.Pow),
    **_kinds("this expression typed safe", exp.Div),  # DuckDB's quotient is a double, and none by zero
    **_kinds("this", exp.Not, exp.Neg),
    **_kinds("this low high", exp.Between),
    **_kinds("this expressions", exp.In),
    # functions of a row
    **_kinds("this", exp.Abs, exp.Floor, exp.Ceil, exp.Sqrt, exp.Ln, exp.Trunc, exp.Sign),
    **_kinds("this decimals", exp.Round),
    **_kinds("this expression", exp.Log, exp.Nullif, exp.Left),
    **_kinds("this expression negate", exp.Like, exp.ILike),
    **_kinds("this expression", exp.StartsWith, exp.EndsWith, exp.Contains),
    **_kinds("this to safe", exp.Cast, exp.TryCast),
    **_kinds("this expressions nested", exp.DataType),
    **_kinds("this", exp.DataTypeParam),
    **_kinds("this ifs default", exp.Case),
    **_kinds("this true false", exp.If),
    **_kinds("this expressions", exp.Coalesce),
    **_kinds("this expressions ignore_nulls", exp.Greatest, exp.Least),
    **_kinds("this", exp.Lower, exp.Upper, exp.Trim, exp.Length),
    **_kinds("this start length", exp.Substring),
    **_kinds("this expression safe", exp.DPipe),
    # dates
    **_kinds("this", exp.Year, exp.Quarter, exp.Month, exp.Week, exp.WeekOfYear, exp.Day, exp.DayOfMonth, exp.Hour),
    **_kinds("this", exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfYear, exp.Minute, exp.Date),
    **_kinds("this expression", exp.Extract, exp.DateAdd, exp.DateSub),
    **_kinds("this unit input_type_preserved", exp.TimestampTrunc, exp.DateTrunc),
    **_kinds("this expression unit date_part_boundary", exp.DateDiff),
    **_kinds("this unit", exp.Interval),
    **_kinds("this expressions", exp.Anonymous),
    # aggregates
    **_kinds("this big_int", exp.Count),
    **_kinds("this", exp.CountIf, exp.Sum, exp.Avg, exp.Median, exp.VariancePop, exp.Variance, exp.StddevPop),
    **_kinds("this", exp.Stddev, exp.StddevSamp, exp.ApproxDistinct),
    **_kinds("this expression", exp.Corr, exp.CovarPop, exp.CovarSamp, exp.Filter, exp.WithinGroup),
    **_kinds("this quantile expression", exp.Quantile, exp.ApproxQuantile, exp.PercentileCont, exp.PercentileDisc),
    **_kinds("expressions", exp.Distinct),
    **_kinds("this over", exp.Window),
}


def refuse_unread(tree: exp.Expression) -> None:
    """Refuse a query that says something nobody has read."""
    nodes: Iterable[Any] = tree.walk()
    for node in nodes:
        if type(node) not in UNDERSTOOD:
            kind = type(node).__name__
            raise ValueError(f"{_text(node)} is not supported: {kind} is not among what is read.")
        for part, value in node.args.items():
            if value not in (None, False, "", []) and part not in UNDERSTOOD[type(node)]:
                word = part.strip("_").replace("_", " ").upper()
                raise ValueError(
                    f"{_text(node)} is not supported with {word}, which is not among what is read: leave it out."
                )


def _text(node: exp.Expression) -> str:
    """A node in SQL, or its kind where that cannot be written."""
    try:
        return node.sql(dialect="duckdb").strip() or type(node).__name__.upper()
    except Exception:  # whatever a later parser makes of it: it is refused all the same
        return type(node).__name__.upper()
