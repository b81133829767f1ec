"""A synthesiser of tables that measures the marginals on which its model is worst.

Decisions 360 and 361.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from typing import Any, Literal

from discreet.adjacency import Adjacency
from discreet.errors import choice
from discreet.events import Event
from discreet.habits import answer_other_names
from discreet.mechanisms.budget import Budget
from discreet.random import RngLike, Streams
from discreet.release import ONE_RECORD, Chargeable, Enforced, Release, charged, unit_name
from discreet.schema import Bounded, Declaration, Schema, as_declaration
from discreet.synthesis.dates import declared_dates, with_dates
from discreet.synthesis.domain import Domain, PrivateBins
from discreet.synthesis.frames import kind_of_frame
from discreet.synthesis.learning import Progress, TableEngine, learn
from discreet.synthesis.model import Model
from discreet.synthesis.plan import SynthesisExplanation, SynthesisPlan, workload_of

_ENGINES = {
    "residual": ("discreet.synthesis.learning", "rake_tables"),
    "mbi": ("discreet.synthesis.mbi_engine", "estimate_tables"),
}

__all__ = ["SynthesisFit", "TableSynthesizer"]


@answer_other_names
@dataclass(eq=False, repr=False)
class TableSynthesizer:
    """A model of a table's joint distribution, from noisy marginals that are chosen adaptively.

    Columns are measured alone, then pairs and larger sets where a noisy error says that the model is worst for the
    workload; the model is the distribution of most entropy near all noisy counts, along a junction tree. Engine
    "residual" fits it by raking; "mbi" by the library of that name (``pip install "discreet[mbi]"``), which is slower.

    Parameters that are public facts: ``workload`` (sets of columns whose counts matter, all sets of three by default; a
    number, a list, or a mapping to weights), ``bins`` of bounded columns (``PrivateBins()``, the default, cuts by the
    column's noisy shape; a number; edges; by column), ``structural_zeros`` (``{("sex", "role"): [("f", "husband")]}``),
    ``dependencies`` (``{"grade": ("school", {"primary": 1, ...})}``: a column that another determines), ``whole``
    (bounded columns of whole numbers, beside those of which the schema or a file's own types say so), ``dates``
    (``{"admitted": ("2020-01-01", "2024-12-31")}``: columns of ISO text, with their first and last day, beside those
    that the schema declares as ``Dates``), ``constraints`` (inequalities between columns of numbers or dates, such as
    ``["age >= education_num + 5"]``, which every synthetic row satisfies), ``total`` (the number of records, declared;
    otherwise it is measured).
    ``max_cells`` caps the model, and memory with it.

    Rows come back as they went in: the kind of frame, the order of columns, whole numbers and days as such, and numbers
    that many records share (nothing earned, forty hours) as often as they were.

    Guarantee: (epsilon, delta) for one record, or for a unit of the declaration, of which one row counts; the event is
    one Gaussian release (``spending`` has the proof).

    Reference: this is not AIM (McKenna, Mullins, Sheldon and Miklau 2022), whose way of choosing sets it follows in
    three rounds; residuals are of Xiao et al. (2023), their fit of Mullins et al. (2024, GReM), the split of the budget
    of SWIFT (google/dpsynth).
    """

    epsilon: float = 1.0
    delta: float = 1e-9
    _: KW_ONLY
    workload: Any = None
    engine: Literal["residual", "mbi"] = "residual"
    adjacency: str = "add-remove"
    unit: str = ONE_RECORD
    max_cells: int = 1_000_000
    total: float | None = None
    bins: Any = None
    structural_zeros: Mapping[tuple[str, ...], Sequence[tuple[Any, ...]]] | None = None
    dependencies: Mapping[str, tuple[str, Mapping[Any, Any]]] | None = None
    whole: Sequence[str] = ()
    dates: Mapping[str, tuple[Any, Any]] | None = None
    constraints: Sequence[str] = ()

    def operation(
        self, schema: Schema | Declaration | str | PathLike[str], progress: Progress | None = None
    ) -> SynthesisFit:
        """The fit, as an operation: it knows its cost; ``release(data)`` gives a ``Model``."""
        domain = self.domain(as_declaration(schema))
        plan = SynthesisPlan(
            domain,
            workload_of(domain, self.workload),
            Budget(epsilon=self.epsilon, delta=self.delta, noise="gaussian"),
            Adjacency(self.adjacency),
            self.total,
            self.max_cells,
        )
        return SynthesisFit(plan, self.engine, unit_name(self.unit), progress)

    def domain(self, facts: Declaration) -> Domain:
        """The columns and their cells, from what is declared."""
        dates = declared_dates(facts.schema, self.dates or {})
        facts = with_dates(facts, dates)
        return Domain(
            facts,
            self._bins(facts.schema),
            self.structural_zeros or {},
            self.dependencies or {},
            tuple(self.whole),
            tuple(dates),
            tuple(self.dates or {}),
            constraints=_as_texts(self.constraints),
        )

    def _bins(self, schema: Schema) -> Any:
        """Cells by each column's noisy shape, where nothing else is asked."""
        if self.bins is not None and not isinstance(self.bins, Mapping):
            return self.bins
        return {n: PrivateBins() for n, c in schema.items() if isinstance(c, Bounded)} | dict(self.bins or {})

    def explain(self, schema: Schema | Declaration | str | PathLike[str], n: int) -> SynthesisExplanation:
        """What a fit to about ``n`` records costs, and which error its noise alone brings; reads nothing."""
        return self.operation(schema).plan.explain(n)

    def fit(
        self,
        data: Any,
        *,
        schema: Schema | Declaration | str | PathLike[str],
        book: Chargeable | None = None,
        label: str = "",
        rng: RngLike = None,
        progress: Progress | None = None,
    ) -> TableSynthesizer:
        """Fit privately to a frame, a mapping of columns or a file; the book is charged before a record is read.

        ``progress`` is called with a share from 0 to 1 and the name of the stage.
        """
        answer = charged(self.operation(schema, progress), data, book=book, label=label, rng=rng)
        self.model_: Model = answer.value
        self.event_: Event = answer.event
        self.reproducible_ = answer.reproducible
        return self

    def _fitted_model(self) -> Model:
        if not hasattr(self, "model_"):
            raise ValueError("This synthesiser is not fitted yet: call fit(data, schema=...) first.")
        return self.model_

    def sample(self, n: int | None = None, rng: RngLike = None, where: Mapping[str, Any] | None = None) -> Any:
        """``n`` synthetic records, as the kind of frame that was given to ``fit``; all as ``where`` asks, if it does:
        see ``Model.sample``.
        """
        return self._fitted_model().sample(n, rng, where)

    def rake_to(self, margins: Mapping[Any, Mapping[Any, float]]) -> Model:
        """The model with counts that are publicly known: see ``Model.rake_to``."""
        return self._fitted_model().rake_to(margins)

    def marginal(self, names: Sequence[str]) -> Any:
        """Expected counts of every combination of the columns' cells: see ``Model.marginal``."""
        return self._fitted_model().marginal(names)

    def count(self, where: Mapping[str, Any]) -> float:
        """The expected number of records with such values: see ``Model.count``."""
        return self._fitted_model().count(where)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, which ``synthesis.load`` reads."""
        from discreet.synthesis.saved import save

        save(self._fitted_model(), path)


def _as_texts(constraints: Any) -> tuple[str, ...]:
    if isinstance(constraints, str):
        raise ValueError(f"constraints is {constraints!r}, but must be a list of such texts.")
    return tuple(constraints)


@dataclass(frozen=True)
class SynthesisFit:
    """The fit of a synthesiser: ``release(data)`` gives a ``Model``."""

    plan: SynthesisPlan
    engine: str = "residual"
    claimed: str = ONE_RECORD
    progress: Progress | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        choice("engine", self.engine, _ENGINES)

    @property
    def event(self) -> Event:
        """The cost, from public facts alone."""
        return self.plan.event

    @property
    def asked(self) -> tuple[float | None, float | None]:
        """Epsilon and delta it is asked for with."""
        return self.plan.budget.epsilon, self.plan.budget.delta

    @property
    def unit(self) -> str:
        """The declaration's unit, of which one row counts, or whom a row is all of, on the user's word."""
        name = self.plan.domain.declaration.unit
        return self.claimed if name is None else Enforced(name)

    @property
    def label(self) -> str:
        """What a book calls it."""
        return "synthetic table"

    def release(self, data: Any = None, rng: RngLike = None) -> Release[Model]:
        """Read the data, and give the fitted model."""
        return self.prepare(data, rng)()

    def prepare(self, data: Any = None, rng: RngLike = None) -> Callable[[], Release[Model]]:
        """Refuse data whose columns or types, which are public, do not suit; read nothing, and return what reads."""
        encoder, kind, streams = self.plan.domain.encoder, kind_of_frame(data), Streams(rng)
        read, engine = encoder.prepare(data), self._engine()
        order, whole = encoder.facts_of(data)
        plan = self.plan.with_whole(whole)

        def run() -> Release[Model]:
            domain, tree, tables = learn(plan, read(), streams, engine, self.progress)
            model = Model(domain, tree, tables, kind, self._statement(streams.reproducible), order)
            return Release(model, self.event, reproducible=streams.reproducible, label=self.label, unit=self.unit)

        return run

    def _engine(self) -> TableEngine:
        home, name = choice("engine", self.engine, _ENGINES)
        engine: TableEngine = getattr(importlib.import_module(home), name)
        return engine

    def _statement(self, reproducible: bool) -> dict[str, Any]:
        budget = self.plan.budget
        return {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "adjacency": str(self.plan.adjacency),
            "unit": str(self.unit),
            "engine": self.engine,
            "event": self.event.to_dict(),
            "reproducible": reproducible,
        }
