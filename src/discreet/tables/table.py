"""A private table: rows that can be filtered, extended and grouped, and leave only as noisy aggregates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Literal

from discreet.dates import Dates, Times
from discreet.encoding.sources import Source, open_source
from discreet.errors import whole
from discreet.mechanisms.budget import Noise
from discreet.random import RngLike
from discreet.release import Chargeable, Release
from discreet.schema import Declaration, Schema, as_declaration
from discreet.tables.answers import as_table
from discreet.tables.bounding import ContributionLimit
from discreet.tables.derived import declaration_of, key_of
from discreet.tables.expressions import Expression
from discreet.tables.habits import LINES, ColumnOfGroups, answer_budgets, refuse_habit
from discreet.tables.missing_groups import has_missing_group
from discreet.tables.passes import GroupedRows, Progress
from discreet.tables.possible_groups import derived_columns, refuse_endless, with_columns_replaced
from discreet.tables.query import TableQuery
from discreet.tables.resolve import refuse_unclear_halves, resolve_constants, text_columns

__all__ = ["Table", "table"]

MOST_ROWS = 999_999  # of a unit: an engine that fails from then on would fail for a unit with rows, and not without


@answer_budgets
@dataclass(frozen=True)
class Table:
    """Rows that are never shown. Make one with ``table``."""

    source: Source = field(repr=False)
    declared: Schema = field(repr=False)  # every column that is read, those that only a filter needs too
    limit: ContributionLimit
    derived: Mapping[str, Expression] = field(default_factory=dict, repr=False)
    conditions: tuple[Expression, ...] = field(default=(), repr=False)
    hidden: frozenset[str] = frozenset()

    @property
    def schema(self) -> Schema:
        """The columns that may be asked about."""
        return Schema({name: column for name, column in self.declared.items() if name not in self.hidden})

    def filter(self, *conditions: Expression) -> Table:
        """The rows for which every condition holds; a missing condition does not."""
        for condition in conditions:
            if not isinstance(condition, Expression):
                raise ValueError("filter takes conditions such as col('age') >= 18.")
        found = [resolve_constants(condition, self.schema, self.texts, condition=True) for condition in conditions]
        self._refuse_unclear(*found)
        return replace(self, conditions=(*self.conditions, *found))

    def _refuse_unclear(self, *expressions: Expression) -> None:
        if self.derived:
            refuse_endless([one.node for one in (*self.conditions, *expressions)], self.derived)
            made = derived_columns(self.derived)
            for one in expressions:
                refuse_unclear_halves(with_columns_replaced(one.node, made))

    def select(self, *columns: str) -> Table:
        """The same rows, of which only these columns may be asked about from here on."""
        kept = {name for name in columns if self.schema[name] is not None}
        return replace(self, hidden=self.hidden | (set(self.declared) - kept))

    def derive(self, **columns: Expression) -> Table:
        """The same rows with further columns. Bounds, or categories, follow from the expression; where bounds do not,
        end it with ``clip``.
        """
        out = self
        for name, expression in columns.items():
            if name in out.declared:
                raise ValueError(f"There is a column {name!r} already: give the derived one another name.")
            if not isinstance(expression, Expression):
                raise ValueError(
                    f"{name!r} is no expression, but derive takes expressions such as col('income') / 1000."
                )
            found = resolve_constants(expression, self.schema, self.texts)
            self._refuse_unclear(found)
            declared = Schema({**out.declared, name: declaration_of(name, found, self.schema)})
            out = replace(out, declared=declared, derived={**out.derived, name: found})
        return out

    @property
    def texts(self) -> frozenset[str]:
        """The columns that hold text."""
        return text_columns(self.source.kinds, self.derived)

    def join(self, other: Table) -> Table:
        """The pairs of rows of two tables that have the same unit: with at most k rows of each unit here and l there,
        at most k·l. Which rows those are is chosen on each side from the unit's own rows there.

        Say it before filter and derive. A unit counts with k·l rows then, and the noise grows as much.
        """
        from discreet.tables.joining import join_tables

        return join_tables(self, other)

    def group_by(self, *keys: str) -> TableQuery:
        """Groups by columns with categories, declared or by their expression, every combination of which is answered;
        by Dates, one group per day; by Unlisted ones, with a delta.
        """
        schema = self.schema
        found = {key: key_of(key, schema[key], self.derived.get(key), schema) for key in keys}
        if len(set(keys)) < len(keys):
            raise ValueError("A key is given twice.")
        moments = frozenset(key for key in keys if found[key] is not schema[key] and _is_moment(schema[key]))
        declared = Schema({**self.declared, **found})
        missing = frozenset(key for key in keys if key in self.derived and has_missing_group(key, self.derived, schema))
        rows = GroupedRows(self.source, declared, self.limit, self.derived, self.conditions, keys, moments, missing)
        return TableQuery(rows, hidden=self.hidden)

    def sql(
        self,
        query: str,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        rho: float | None = None,
        noise: Noise = "auto",
        errors: bool = False,
        public: Mapping[str, Any] | None = None,
        book: Chargeable | None = None,
        label: str = "",
        rng: RngLike = None,
        progress: Progress | None = None,
    ) -> Release[Any]:
        """The answer to a SELECT with aggregates, as the methods give it; options as in ``TableQuery.release``.

        ``public`` holds public tables by name, in which rows may look something up by JOIN.
        """
        asked = self.parse(query, public)
        options: dict[str, Any] = {"noise": noise, "errors": errors, "book": book, "label": label, "rng": rng}
        return asked.release(epsilon, delta, rho=rho, progress=progress, **options)

    def compare(self, by: str, of: str | None = None, *further: str, **asked: Any) -> Any:
        """A private test of columns: a p-value, an effect and an interval. ``discreet.inference.compare`` says which
        tests there are, and takes the same options (``test=``, ``epsilon=``, ``book=``, ...). Of a unit its first row
        counts.

        >>> import pandas as pd
        >>> from discreet.schema import Bounded, Categories, Schema
        >>> facts = Schema(treated=Categories(["yes", "no"]), days=Bounded(0, 30))
        >>> stays = table(pd.DataFrame({"treated": ["yes", "no"] * 500, "days": [9, 7] * 500}), schema=facts)
        >>> round(stays.compare("treated", "days", epsilon=1.0, rng=1).difference)
        2
        """
        from discreet.inference import compare  # a room above: see the import contract

        if self.conditions or self.derived:
            raise ValueError(
                "The table was filtered or has derived columns, but compare tests the declared columns of all rows: "
                "write the rows that are meant to a file, or compare by a column of groups."
            )
        for name in (by, *(() if of is None else (of,)), *further):
            _ = self.schema[name]
        return compare(self.source, by, of, *further, schema=Declaration(self.schema, self.limit.unit), **asked)

    def parse(self, query: str, public: Mapping[str, Any] | None = None) -> TableQuery:
        """The question a SELECT asks, not yet released: ``explain`` it first."""
        from discreet.tables.sql import parse

        return parse(query, self, public)

    def _repr_html_(self) -> str:
        columns = {name: repr(column) for name, column in self.schema.items()}
        return as_table({"table": self.source.name, "unit": self.limit.describe(), **columns})

    def __getitem__(self, key: Any) -> Any:
        """``table["cost"]`` is a column to ask a number of, ``table[["cost", "sex"]]`` fewer columns, and
        ``table[condition]`` fewer rows."""
        if isinstance(key, str) and key == self.limit.unit and key not in self.declared:
            raise ValueError(f"{key!r} is whose rows are protected: table.count_distinct({key!r}) alone may ask of it.")
        if isinstance(key, str):
            return ColumnOfGroups(self.select(key).group_by(), key)
        if isinstance(key, Expression):
            return self.filter(key)
        if isinstance(key, list) and all(isinstance(name, str) for name in key):
            return self.select(*key)
        raise TypeError("A table is asked by the name of a column, or with a condition: table['cost'].mean().")

    def __getattr__(self, name: str) -> Any:
        if name in vars(self).get("declared", ()):
            raise AttributeError(f"A table has no {name!r}: its column is table[{name!r}].")
        refuse_habit("table", name)

    def __len__(self) -> int:
        raise TypeError(f"A table has no len(): {LINES['shape']}.")

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Table {self.source.name}: {', '.join(self.schema)}; {self.limit.describe()}>"

    # A table is its own single group.

    def count(self, column: str | None = None, *, unit_most: int | None = None, name: str | None = None) -> TableQuery:
        """How many rows, or how many with a value in ``column``."""
        return self.group_by().count(column, unit_most=unit_most, name=name)

    def sum(
        self, column: str, *, unit_bounds: tuple[float, float] | None = None, name: str | None = None
    ) -> TableQuery:
        """The sum of a bounded column."""
        return self.group_by().sum(column, unit_bounds=unit_bounds, name=name)

    def mean(self, column: str, *, name: str | None = None) -> TableQuery:
        """The mean of a bounded column."""
        return self.group_by().mean(column, name=name)

    def variance(self, column: str, *, name: str | None = None) -> TableQuery:
        """The population variance of a bounded column."""
        return self.group_by().variance(column, name=name)

    def deviation(self, column: str, *, name: str | None = None) -> TableQuery:
        """The standard deviation of a bounded column."""
        return self.group_by().deviation(column, name=name)

    def covariance(self, left: str, right: str, *, name: str | None = None) -> TableQuery:
        """The population covariance of two bounded columns."""
        return self.group_by().covariance(left, right, name=name)

    def correlation(self, left: str, right: str, *, name: str | None = None) -> TableQuery:
        """The correlation of two bounded columns."""
        return self.group_by().correlation(left, right, name=name)

    def quantile(self, column: str, q: float, *, bins: int = 1024, name: str | None = None) -> TableQuery:
        """The ``q``-quantile of a bounded column."""
        return self.group_by().quantile(column, q, bins=bins, name=name)

    def quantiles(
        self, column: str, q: Iterable[float] = (0.25, 0.5, 0.75), *, bins: int = 1024, name: str | None = None
    ) -> TableQuery:
        """Several quantiles of a bounded column, as a list."""
        return self.group_by().quantiles(column, q, bins=bins, name=name)

    def median(self, column: str, *, bins: int = 1024, name: str | None = None) -> TableQuery:
        """The median of a bounded column."""
        return self.group_by().median(column, bins=bins, name=name)

    def histogram(self, column: str, bins: int | Iterable[float] = 10, *, name: str | None = None) -> TableQuery:
        """Counts of a bounded column in bins."""
        return self.group_by().histogram(column, bins, name=name)

    def count_distinct(self, column: str, *, name: str | None = None) -> TableQuery:
        """How many different values a column has."""
        return self.group_by().count_distinct(column, name=name)


def _is_moment(column: Any) -> bool:
    return isinstance(column, (Dates, Times))


def _unit_of(facts: Declaration, *given: Any) -> tuple[Any, Any, Any]:
    """Unit and caps as they are given, or as the schema says them; not both."""
    said = {"unit": facts.unit, "max_groups_per_unit": facts.max_groups_per_unit}
    caps = facts.unit is not None or facts.max_rows_per_unit != 1
    if not caps and facts.max_groups_per_unit is None:
        return given
    if any(one is not None for one in given):
        raise ValueError("The schema says whose rows are protected, with unit or caps: leave unit= and caps out here.")
    return said["unit"], facts.max_rows_per_unit if caps else None, said["max_groups_per_unit"]


def table(
    source: Any,
    *,
    schema: Schema | Declaration | Mapping[str, Any] | str | PathLike[str],
    unit: str | None = None,
    max_rows_per_unit: int | Literal["auto"] | None = None,
    max_groups_per_unit: int | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    temp_directory: str | None = None,
) -> Table:
    """A private table over a path or glob (Parquet, CSV), a pandas, polars, pyarrow or Spark frame, or a DuckDB
    relation.

    ``schema`` declares the columns that may be used; the path of a schema file says it with the unit and its caps, as
    for the command line. Without ``unit``, a row is protected; with it, everything that has the same identifier there,
    of which ``max_rows_per_unit`` rows count, in at most ``max_groups_per_unit`` groups: one unless something else is
    said, and as many as are chosen for a share of each query's budget if it is ``"auto"``.
    ``memory_limit``, ``threads`` and ``temp_directory`` are DuckDB's, for files and frames in memory: what does not fit
    is spilled to disk. They never change an answer's law.

    >>> import pandas as pd
    >>> from discreet.schema import Bounded, Categories, Schema
    >>> rows = pd.DataFrame({"educ": [1, 2, 2] * 1000, "income": [10.0, 20.0, 40.0] * 1000})
    >>> people = table(rows, schema=Schema(educ=Categories([1, 2, 3]), income=Bounded(0, 100)))
    >>> people.group_by("educ").mean("income").release(epsilon=1.0, rng=1).value.round(0)
       educ  income_mean
    0     1         10.0
    1     2         30.0
    2     3          0.0
    """
    facts = as_declaration(schema)
    schema = facts.schema
    unit, max_rows_per_unit, max_groups_per_unit = _unit_of(facts, unit, max_rows_per_unit, max_groups_per_unit)
    auto = max_rows_per_unit == "auto"
    rows = 1 if auto or max_rows_per_unit is None else whole("max_rows_per_unit", max_rows_per_unit, low=1)
    if rows > MOST_ROWS:
        raise ValueError(
            f"max_rows_per_unit is {rows:,}, but may be {MOST_ROWS:,} at most, where DuckDB stops counting."
        )
    as_many = MOST_ROWS if auto else rows
    groups = as_many if max_groups_per_unit is None else whole("max_groups_per_unit", max_groups_per_unit, low=1)
    if unit is None and (auto or rows != 1 or max_groups_per_unit is not None):
        raise ValueError("max_rows_per_unit or max_groups_per_unit is given, but there is no unit= for them to bound.")
    if unit is not None and not isinstance(unit, str):
        raise ValueError(f"unit is {unit!r}, but must be the name of a column.")
    opened = open_source(
        source,
        schema,
        unit,
        text=facts.text,
        memory_limit=memory_limit,
        threads=threads,
        temp_directory=temp_directory,
    )
    default = unit is not None and max_rows_per_unit is None
    spread = 1 if auto and max_groups_per_unit is None else groups
    limit = ContributionLimit(unit, rows, groups if auto else min(groups, rows), spread, default, auto)
    return Table(opened, schema, limit)
