"""Questions about a table as a whole: marginals, answered as one workload; synthetic rows and linear models, which are
jobs: they take long, and wait for the owner whatever they cost.

They are read by the encoder, one row a unit, where table queries are read by the engine. Each makes an operation of the
public declaration alone; what comes of it is a frame, and a model's own text beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.desk.databases import DatabaseTable
from discreet.encoding.encoder import Encoder, one_row_note
from discreet.errors import whole
from discreet.events import Event
from discreet.random import as_rng
from discreet.release import ONE_RECORD, Enforced, Release
from discreet.schema import Categories, Declaration

if TYPE_CHECKING:
    import polars as pl

    from discreet.workloads.query import Query

__all__ = ["FitQuestion", "MarginalsQuestion", "SynthesisQuestion", "WholeTableOperation", "read_whole_table"]

MOST_CELLS = 1_000_000  # combinations of categories whose counts are inferred together
_Budget = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MarginalsQuestion:
    """The counts of every combination of categories of each set of columns, all from one measurement."""

    sets: tuple[tuple[str, ...], ...]
    is_job = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"type": "marginals", "sets": [list(columns) for columns in self.sets]}

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is in a set."""
        return tuple(dict.fromkeys(column for columns in self.sets for column in columns))

    def operation(self, declared: Declaration, budget: _Budget) -> _Marginals:
        """What it costs and reads."""
        from discreet.workloads import Marginals, Query

        cells = tuple(len(_categories(declared, name).labels) + 1 for name in self.columns)  # the last: none of them
        if math.prod(cells) > MOST_CELLS:
            raise ValueError(f"The columns have {math.prod(cells):,} combinations, but {MOST_CELLS:,} are the most.")
        if budget["noise"] != "auto":
            raise ValueError(
                "noise is only for queries of a table: here the budget decides, by whether it has a delta."
            )
        unit = ONE_RECORD if declared.unit is None else Enforced(declared.unit)
        places = [tuple(self.columns.index(name) for name in columns) for columns in self.sets]
        asked = {name: budget[name] for name in ("epsilon", "delta", "rho")}
        return _Marginals(self, declared, Query(workload=Marginals(cells, places), unit=unit, **asked))


@dataclass(frozen=True)
class _Marginals:
    """The workload of those marginals, over the table's rows."""

    asked: MarginalsQuestion
    declared: Declaration = field(repr=False)
    query: Query
    label = "marginals"

    @property
    def event(self) -> Event:
        """The cost, from public facts alone."""
        return self.query.event

    @property
    def unit(self) -> str:
        """A row, or the schema's unit, of which one row counts."""
        return ONE_RECORD if self.declared.unit is None else Enforced(self.declared.unit)

    @property
    def numbers(self) -> int:
        """How many numbers the answer has."""
        return self.query.workload.queries

    @property
    def errors(self) -> dict[str, str]:
        """What the error of a count stays within."""
        return {"count": f"±{self.query.error(0.95):.3g}"}

    def prepare(self, data: Any = None, rng: Any = None) -> Callable[[], Release[Any]]:
        """Refuse what types tell; read nothing."""
        read, source = Encoder(self.declared, self.asked.columns).prepare(data), as_rng(rng)

        def run() -> Release[Any]:
            rows, shape = read(), self.query.workload.shape
            columns = [rows.codes(name) for name in self.asked.columns]
            codes = [np.where(own < 0, size - 1, own) for own, size in zip(columns, shape, strict=True)]
            places = np.ravel_multi_index(codes, shape)
            histogram = np.bincount(places, minlength=math.prod(shape)).reshape(shape)
            return self.query.release(histogram, source)

        return run

    def frame(self, value: Any) -> pl.DataFrame:
        """One row for each count: of which columns, of which categories; null is none of those that are declared."""
        import polars as pl

        counts, names, start, parts = np.asarray(value), self.asked.columns, 0, []
        for columns in self.asked.sets:
            labels = {
                name: [*map(_plain, _categories(self.declared, name).labels), None]
                for name in sorted(columns, key=names.index)
            }
            frame = pl.DataFrame({"marginal": [", ".join(labels)]})
            for name, own in labels.items():
                frame = frame.join(pl.DataFrame({name: own}), how="cross")
            parts.append(frame.with_columns(count=pl.Series(counts[start : start + frame.height])))
            start += frame.height
        joined = pl.concat(parts, how="diagonal")
        return joined.select("marginal", *names, "count")


def _categories(declared: Declaration, name: str) -> Categories:
    kind = declared.schema.get(name)
    if not isinstance(kind, Categories) or name == declared.unit:
        raise ValueError(f"Column {name!r} has no declared categories, but marginals count their combinations.")
    return kind


def _plain(label: Any) -> Any:
    return label.item() if callable(getattr(label, "item", None)) else label


@dataclass(frozen=True, slots=True)
class SynthesisQuestion:
    """Synthetic rows: a model of the table's joint distribution, and so many rows drawn from it."""

    rows: int
    bins: int | None = None
    is_job = True

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"type": "synthesis", "rows": self.rows} | ({} if self.bins is None else {"bins": self.bins})

    def operation(self, declared: Declaration, budget: _Budget) -> _Made:
        """What it costs and reads."""
        from discreet.synthesis import TableSynthesizer

        maker = TableSynthesizer(*_epsilon_and_delta(budget), bins=self.bins)
        return _Made(maker.operation(declared), lambda model: (_polars(model.sample(self.rows)), None),
                     self.rows * len(declared.schema))  # fmt: skip


@dataclass(frozen=True, slots=True)
class FitQuestion:
    """A linear model of one column from the others: logistic for categories, least squares for numbers."""

    target: str
    is_job = True

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"type": "fit", "target": self.target}

    def operation(self, declared: Declaration, budget: _Budget) -> _Made:
        """What it costs and reads."""
        from discreet.linear.saved import dumps
        from discreet.linear.tabular import TableModel

        if self.target not in declared.schema:
            raise ValueError(f"target is {self.target!r}, which is no declared column.")
        model = TableModel(declared, self.target, *_epsilon_and_delta(budget))
        return _Made(model.operation(), lambda fitted: (_coefficients(fitted), dumps(fitted)), model.width)


@dataclass(frozen=True)
class _Made:
    """An operation, and how what it gives is shown."""

    made: Any
    show: Callable[[Any], tuple[pl.DataFrame, str | None]] = field(repr=False)
    numbers: int
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def event(self) -> Event:
        """The cost, from public facts alone."""
        return self.made.event  # type: ignore[no-any-return]

    @property
    def unit(self) -> str:
        """A row, or the schema's unit, of which one row counts."""
        return self.made.unit  # type: ignore[no-any-return]

    @property
    def label(self) -> str:
        """What a book calls it."""
        return str(self.made.label)

    def prepare(self, data: Any = None, rng: Any = None) -> Callable[[], Release[Any]]:
        """Refuse what types tell; read nothing."""
        return self.made.prepare(data, rng)  # type: ignore[no-any-return]


def _epsilon_and_delta(budget: _Budget) -> tuple[float, float]:
    if budget["epsilon"] is None or budget["delta"] is None or budget["noise"] != "auto":
        raise ValueError("A job needs epsilon and delta, and neither rho nor noise.")
    return budget["epsilon"], budget["delta"]


def _polars(frame: Any) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(frame)


def _coefficients(model: Any) -> pl.DataFrame:
    """A row for each feature of each score, the intercept last."""
    import polars as pl

    names = [f"{name} = {label}" if label is not None else name for name, kind in model.features.items()
             for label in (kind.labels if isinstance(kind, Categories) else (None,))]  # fmt: skip
    scores = np.atleast_2d(model.estimator.coef_)
    ends = np.atleast_1d(model.estimator.intercept_)
    rows = [(place, name, float(value)) for place, (score, end) in enumerate(zip(scores, ends, strict=True))
            for name, value in zip([*names, "intercept"], [*score, end], strict=True)]  # fmt: skip
    return pl.DataFrame(rows, schema={"score": pl.Int64, "feature": pl.String, "coefficient": pl.Float64}, orient="row")


@dataclass(frozen=True)
class WholeTableOperation:
    """Such a question of one table: what it costs is known without ``data``, which is a path or a database's table."""

    question: MarginalsQuestion | SynthesisQuestion | FitQuestion
    declared: Declaration = field(repr=False)
    budget: _Budget
    data: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_own", self.question.operation(self.declared, self.budget))

    @property
    def own(self) -> Any:
        """The operation that does it."""
        return self._own  # type: ignore[attr-defined]

    @property
    def event(self) -> Event:
        """The cost, from public facts alone."""
        return self.own.event  # type: ignore[no-any-return]

    @property
    def unit(self) -> str:
        """Whom it protects."""
        return self.own.unit  # type: ignore[no-any-return]

    @property
    def label(self) -> str:
        """What a book calls it."""
        return str(self.own.label)

    @property
    def numbers(self) -> int:
        """How many numbers the answer has, about."""
        return int(self.own.numbers)

    def explain(self) -> WholeTableExplanation:
        """What it costs, and whom it protects."""
        return WholeTableExplanation(self.label, self.unit, self.event, self.own.errors, one_row_note(self.declared))

    def prepare(self, data: Any = None, rng: Any = None) -> Callable[[], Release[Any]]:
        """Refuse what types tell, and return what reads."""
        held = self.data if data is None else data
        if isinstance(held, DatabaseTable):
            columns = [*self.declared.schema, *([self.declared.unit] if self.declared.unit else [])]
            wanted = list(dict.fromkeys(columns))
            self.own.prepare(held.empty(wanted), rng)
            return lambda: self._shown(self.own.prepare(held.rows(wanted), rng)())
        run = self.own.prepare(held, rng)
        return lambda: self._shown(run())

    def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
        """Read the table, and give a frame, and a model's text."""
        return self.prepare(data, rng)()

    def _shown(self, release: Release[Any]) -> Release[Any]:
        from dataclasses import replace

        own = self.own
        value = (own.frame(release.value), None) if isinstance(own, _Marginals) else own.show(release.value)
        return replace(release, value=value, unit=self.unit, label=self.label, error=dict(own.errors) or None)


@dataclass(frozen=True, slots=True)
class WholeTableExplanation:
    """What such a question will do, and what it will cost. Prints as a few lines."""

    label: str
    unit: str
    event: Event
    errors: Mapping[str, str]
    note: str

    def __str__(self) -> str:
        lines = [f"answer  {self.label}", f"unit    {self.unit}", f"cost    {self.event}"]
        lines += [f"error   {name}: {error} (95 %)" for name, error in self.errors.items()]
        return "\n".join([*lines, *([f"note    {self.note}"] if self.note else [])])

    __repr__ = __str__


def read_whole_table(wire: Mapping[str, Any]) -> MarginalsQuestion | SynthesisQuestion | FitQuestion:
    """Such a question from JSON, or a ``ValueError``."""
    match {name: value for name, value in wire.items() if name != "dataset"}:
        case {"type": "marginals", "sets": list(sets), **rest} if not rest:
            if not sets or len(sets) > 200 or not all(_is_set(columns) for columns in sets):
                raise ValueError("sets must be lists of different columns: at least one, and 200 at most.")
            return MarginalsQuestion(tuple(map(tuple, sets)))
        case {"type": "synthesis", "rows": rows, **rest} if not (set(rest) - {"bins"}):
            bins = rest.get("bins")
            return SynthesisQuestion(
                whole("rows", rows, low=1), None if bins is None else whole("bins", bins, low=1, high=1000)
            )
        case {"type": "fit", "target": str(target), **rest} if not rest:
            return FitQuestion(target)
    raise ValueError("A part is missing, or one too many: marginals have sets, synthesis has rows, a fit has a target.")


def _is_set(columns: Any) -> bool:
    return (
        isinstance(columns, list) and 0 < len(columns) <= 20 and all(isinstance(name, str) for name in columns)
        and len(set(columns)) == len(columns)
    )  # fmt: skip
