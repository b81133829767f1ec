"""PATE on tables: a schema's public facts make the features, the student is a linear model in a file like any other.

The columns become numbers as in ``discreet.linear.tabular``, each row by itself. A private row with a missing number
that the schema gives no value is nobody's; in a public row such a number is the middle of its bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import Encoded, Encoder
from discreet.errors import extra, number
from discreet.events import Event
from discreet.linear.tabular import TableModel
from discreet.pate.aggregation import Aggregator
from discreet.pate.classifier import PATEClassifier
from discreet.release import Release
from discreet.schema import Categories, Declaration

with extra("sklearn"):
    from sklearn.base import clone
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import BernoulliNB

__all__ = ["TEACHERS", "TablePATE"]

TEACHERS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(C=10.0, max_iter=500),
    "forest": lambda: RandomForestClassifier(50),
    "naive-bayes": BernoulliNB,
}
_NEVER = -1e9  # the score of a class that no answer named


@dataclass(frozen=True)
class TablePATE:
    """A linear student of one declared column, taught by ``n_teachers`` teachers of a private table's parts.

    ``release(data)`` gives a ``TableModel``, which ``discreet predict`` reads. ``public`` has the same columns, without
    the target; its first ``queries`` rows are asked about, all if that is left out.

    Guarantee: the event of the aggregator, for a row or, where the schema names a unit, for a unit, of which the first
    row counts.
    """

    declaration: Declaration
    target: str
    public: Any
    aggregation: Aggregator
    n_teachers: int = 100
    teacher: str = "logistic"
    queries: int | None = None
    delta: float = 1e-6
    n_jobs: int | None = None
    progress: bool | Callable[[float, str], object] = field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.teacher not in TEACHERS:
            raise ValueError(f"teacher is {self.teacher!r}, but must be one of {', '.join(TEACHERS)}.")
        number("delta", self.delta, low=0, high=1, open_low=True, open_high=True)
        if not isinstance(self.declaration.schema[self.target], Categories):
            raise ValueError(f"target is {self.target!r}, which has no categories, but teachers vote for one of them.")

    @property
    def _facts(self) -> TableModel:
        """What makes features of rows; it is never fitted."""
        return TableModel(self.declaration, self.target, epsilon=1.0)

    def _rows(self, rows: Encoded) -> NDArray[np.float64]:
        facts = self._facts
        return np.asarray(facts.estimator._mapping(facts.width).inside(facts.design.matrix(rows)))

    def _public_queries(self) -> NDArray[np.float64]:
        encoder = Encoder(self.declaration, tuple(self._facts.features), one_row_a_unit=False)
        rows = self._facts.design.matrix(encoder.read(self.public))
        return np.asarray(self._facts.estimator._mapping(rows.shape[1]).inside(np.nan_to_num(rows)))

    @property
    def _classifier(self) -> PATEClassifier:
        goal = self.declaration.schema[self.target]
        assert isinstance(goal, Categories)
        return PATEClassifier(
            TEACHERS[self.teacher](),
            self.n_teachers,
            LogisticRegression(C=10.0, max_iter=500),
            self.aggregation,
            self.queries,
            classes=tuple(range(len(goal.labels))),
            unit=self.unit,
            n_jobs=self.n_jobs,
            progress=self.progress,
        )

    @property
    def event(self) -> Event:
        """The cost, from public facts alone."""
        return self._classifier.operation(self._public_queries()).event

    @property
    def unit(self) -> str:
        """A row, or the schema's unit, of which one row counts."""
        return self._facts.unit

    @property
    def label(self) -> str:
        """What a book calls it."""
        return f"student of {self.target}"

    def release(self, data: Any = None, rng: Any = None) -> Release[TableModel]:
        """Read the private table, and give the student."""
        return self.prepare(data, rng)()

    def prepare(self, data: Any = None, rng: Any = None) -> Callable[[], Release[TableModel]]:
        """Refuse data whose columns or types, which are public, do not suit; read the public rows alone."""
        facts, classifier, public = self._facts, self._classifier, self._public_queries()
        read = Encoder(self.declaration, (*facts.features, self.target)).prepare(data)
        operation = classifier.operation(public)
        empty = np.empty((0, public.shape[1])), np.empty(0, np.int64)
        operation.prepare(empty, rng)  # finds what is publicly wrong with teachers and aggregator

        def run() -> Release[TableModel]:
            rows = read()
            fitted = operation.release((self._rows(rows), rows.codes(self.target)), rng)
            model = self._model(fitted.value, fitted.reproducible)
            return Release(model, fitted.event, reproducible=fitted.reproducible, label=self.label, unit=self.unit)

        return run

    def _model(self, fitted: PATEClassifier, reproducible: bool) -> TableModel:
        from discreet.accounting import epsilon

        model = TableModel(self.declaration, self.target, epsilon(fitted.event_, delta=self.delta), self.delta)
        model.estimator = clone(model.estimator).restore(*_scores(fitted, model.width))
        model.stated = model.statement | {
            "solver": f"PATE, {self.n_teachers} teachers ({self.teacher}), {type(self.aggregation).__name__}",
            "event": fitted.event_.to_dict(),
            "answered": int(fitted.answers_.answered.sum()),
            "reproducible": reproducible,
        }
        return model


def _scores(fitted: PATEClassifier, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The student's coefficients, one row a declared class, or one in all for two classes."""
    student, classes = fitted.student_, len(fitted.classes_)
    coefficients, intercept = np.zeros((classes, width)), np.full(classes, _NEVER)
    known = np.asarray(student.classes_, np.int64)
    if hasattr(student, "coef_"):
        both = len(known) == 2  # one row of scores, for the second of them
        intercept[known] = [0.0, student.intercept_[0]] if both else student.intercept_
        coefficients[known] = [np.zeros(width), student.coef_[0]] if both else student.coef_
    else:
        intercept[known] = 0.0
    if classes > 2:
        return coefficients, intercept
    return coefficients[1:] - coefficients[:1], intercept[1:] - intercept[:1]
