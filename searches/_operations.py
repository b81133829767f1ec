"""Operations that the search for hostile neighbours tries: tables, models of tables, statistics, mechanisms that read
records. Linear models have a search of their own.

To try further ones, append to ``OPERATIONS``; a container that an operation does not take is not tried on it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

__all__ = ["OPERATIONS", "Operation"]


@dataclasses.dataclass(frozen=True)
class Operation:
    """A function of a container that gives a Release.

    ``takes`` is what containers hold: a table (or a relation, whose rows have no order, or a mapping of columns), a
    column, rows of two numbers. ``protects`` is a row, or all records with one ``who``: such neighbours differ in all
    of them.
    """

    name: str
    takes: tuple[str, ...]
    release: Callable[[Any], Any]
    protects: str = "row"


def _table_operations() -> list[Operation]:
    import discreet as dp
    from discreet.tables import case, col

    schema = dp.Schema(x=dp.Bounded(0, 100), k=dp.Categories(["a", "b"], other="else"), who=dp.Unlisted())
    filled = dp.Schema(x=dp.Bounded(0, 100, missing=0), k=dp.Unlisted(), who=dp.Unlisted())
    listed = dp.Schema(x=dp.Categories([0, 1, 2]), k=dp.Categories(["a"]), who=dp.Unlisted())
    told = dp.Schema(x=dp.Categories(["0", "1", "2.5", "true"], other="else"), who=dp.Unlisted())
    dated = dp.Schema(x=dp.Bounded(0, 100), k=dp.Dates("2019-06-01", "2020-12-31"), who=dp.Unlisted())
    month, word = col("k").date.start("month"), col("k").text.trim().text.lower()
    letter = case((word == "a", "A"), (col("k").text.starts_with("b"), "B"), (word == "e", word), otherwise="?").among(
        "AB?"
    )
    chosen = case((col("x") > 50, 1), (col("k") == "a", 2), otherwise=0)
    rest = (col("x") % 7).fill(3.0) * 2 - (1 / col("x")).clip(0, 1).floor()
    questions: dict[str, tuple[Any, Callable[[Any], Any], dict[str, float]]] = {
        "sums": (schema, lambda t: t.group_by("k").count().sum("x").mean("x"), {"epsilon": 1.0}),
        "filled": (filled, lambda t: t.sum("x").variance("x").count("x"), {"epsilon": 1.0}),
        "bins": (schema, lambda t: t.group_by("k").histogram("x", 3).median("x", bins=8), {"epsilon": 1.0}),
        "filtered": (schema, lambda t: t.filter(~(col("x") < 50) | (col("k") == "a")).count(), {"rho": 0.5}),
        "missing": (schema, lambda t: t.filter(col("x").is_missing()).group_by("k").count(), {"rho": 8.0}),
        "derived": (schema, lambda t: t.derive(z=(1 / col("x")).clip(-1, 1)).sum("z"), {"epsilon": 1.0}),
        "private keys": (filled, lambda t: t.group_by("k").count().sum("x"), {"epsilon": 1.0, "delta": 0.2}),
        "private numbers": (schema, lambda t: t.group_by("who").count(), {"epsilon": 1.0, "delta": 0.2}),
        "numeric categories": (listed, lambda t: t.group_by("x").count(), {"epsilon": 1.0}),
        "numbers as text": (told, lambda t: t.group_by("x").count(), {"epsilon": 1.0}),
        "distinct": (schema, lambda t: t.count_distinct("who").count_distinct("k"), {"epsilon": 1.0}),
        "dates": (
            dated,
            lambda t: t.filter(col("k") > "2020-01-01").derive(m=month).group_by("m").count(),
            {"epsilon": 1.0},
        ),
        "parts of dates": (
            dated,
            lambda t: t.derive(d=col("k").date.weekday()).group_by("d").sum("x"),
            {"epsilon": 1.0},
        ),
        "texts": (filled, lambda t: t.derive(c=letter).group_by("c").count().mean("x"), {"epsilon": 1.0}),
        "private texts": (
            filled,
            lambda t: t.derive(c=col("k").text.lower()).group_by("c").count().order_by("count").limit(2),
            {"epsilon": 1.0, "delta": 0.2},
        ),
        "choices": (schema, lambda t: t.derive(w=chosen, z=rest).group_by("w").sum("z"), {"epsilon": 1.0}),
        "pairs": (schema, lambda t: t.derive(z=rest).correlation("x", "z").covariance("z", "x"), {"epsilon": 1.0}),
        "totals": (
            schema,
            lambda t: t.parse("SELECT k, AVG(x), COUNT(*) n FROM t GROUP BY ROLLUP (k) HAVING n > 0 ORDER BY 2"),
            {"epsilon": 1.0},
        ),
        "bounds": (dp.Schema(x=dp.Bounded("auto"), who=dp.Unlisted()), lambda t: t.sum("x"), {"epsilon": 1.0}),
        "looked up": (
            schema,
            lambda t: t.parse("SELECT SUM(v * x) FROM t JOIN p USING (k)", {"p": {"k": ["a", "b"], "v": [1, -2]}}),
            {"epsilon": 1.0},
        ),
    }
    totals = {
        "unit totals": (
            schema,
            lambda t: t.group_by("k").count(unit_most=2).sum("x", unit_bounds=(-1, 150)),
            {"epsilon": 1.0},
        ),
        "units": (schema, lambda t: t.group_by("k").count_distinct("who"), {"epsilon": 1.0}),
    }
    bounds: dict[str, dict[str, Any]] = {"row": {}, "unit": {"unit": "who", "max_rows_per_unit": 2}}

    def operation(name: str, protects: str, **more: Any) -> Operation:
        declared, ask, budget = (questions | totals)[name]
        options = bounds[protects] | more
        return Operation(
            f"table, {name}, a {protects}",
            ("table", "relation"),
            lambda source: ask(dp.table(source, schema=declared, **options)).release(**budget),
            protects,
        )

    every = [operation(name, protects) for name in questions for protects in bounds]
    every += [operation(name, "unit") for name in totals]
    auto = operation("sums", "unit", max_rows_per_unit="auto")
    return [*every, dataclasses.replace(auto, name="table, a chosen cap, a unit")]


def _statistics_operations() -> list[Operation]:
    from discreet import mechanisms
    from discreet import statistics as st

    edges = (-1.0, 0.0, 1.0, 50.0)
    columns = {
        "count": st.Count(epsilon=1.0),
        "sum": st.Sum(bounds=(0, 100), epsilon=1.0),
        "mean": st.Mean(bounds=(0, 100), rho=0.5),
        "variance": st.Variance(bounds=(0, 100), epsilon=1.0),
        "histogram": st.Histogram(bins=edges, epsilon=1.0),
        "categories": st.Histogram(categories=(0, 1, 2), epsilon=1.0),
        "bounds": st.Bounds(epsilon=1.0),
        "cdf": st.Cdf(bins=edges, epsilon=1.0),
        "quantile": st.Quantile(q=0.3, bounds=(0, 100), steps=50, epsilon=1.0),
        "quantiles": st.Quantiles(q=(0.2, 0.7), bounds=(0, 100), steps=50, epsilon=1.0),
        "mode": st.Mode(bins=edges, epsilon=1.0),
        "top k": st.TopK(k=2, categories=(0, 1, 2), epsilon=1.0),
        "mean of bounded variance": st.BoundedVarianceMean(sd=2.0, n=6, epsilon=1.0),
        "smooth median": mechanisms.SmoothMedian(bounds=(0.0, 100.0), epsilon=1.0),
        "stability histogram": mechanisms.StabilityHistogram(epsilon=1.0, delta=0.2),
        "stable mode": mechanisms.StableMode(epsilon=1.0, delta=0.2),
    }
    rows = {
        "vector mean": st.VectorMean(dimension=2, norm=10.0, rho=0.5),
        "covariance": st.Covariance(bounds=((0, 100), (0, 3)), epsilon=1.0),
    }
    return [
        *(Operation(f"statistics, {name}", ("column",), asked.release) for name, asked in columns.items()),
        *(Operation(f"statistics, {name}", ("rows",), asked.release) for name, asked in rows.items()),
    ]


def _model_operations() -> list[Operation]:
    """Models of whole tables, through the reader that files, frames and mappings share."""
    from types import SimpleNamespace

    import numpy as np

    from discreet.linear.tabular import TableModel
    from discreet.schema import Bounded, Categories, Declaration, Schema

    schema = Schema(x=Bounded(0, 100, missing=50), k=Categories(["a", "b", "1"], other="else"))

    def operation(target: str, protects: str) -> Operation:
        facts = Declaration(schema, "who" if protects == "unit" else None)

        def fitted(data: Any) -> Any:
            found = TableModel(facts, target, epsilon=1.0).fit(data).estimator
            return SimpleNamespace(value=np.concatenate([np.ravel(found.coef_), np.ravel(found.intercept_)]))

        return Operation(f"table model of {target}, a {protects}", ("table", "mapping"), fitted, protects)

    return [operation("x", "row"), operation("k", "row"), operation("x", "unit")]


_TABLES = _table_operations()
# Models stand among the tables, where few cases already reach the container that they alone take (``cases``).
OPERATIONS: list[Operation] = [*_TABLES[:9], *_model_operations(), *_TABLES[9:], *_statistics_operations()]
