"""PATE in scikit-learn's manner: teachers vote on public rows, a student learns from the noisy answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.encoding import features
from discreet.encoding.containers import UnreadColumn, UnreadRows
from discreet.encoding.labels import Labels
from discreet.errors import extra, whole
from discreet.fitting import FitOperation
from discreet.pate.aggregation import NONE, Aggregator, GNMax, VoteAnswers
from discreet.pate.confident import InteractiveGNMax
from discreet.pate.gnmax_cost import data_dependent_cost
from discreet.pate.voting import Teachers, count_votes
from discreet.release import ONE_RECORD, Chargeable, Release, charged, unit_name

with extra("sklearn"):
    from sklearn.base import BaseEstimator, ClassifierMixin, clone
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.utils.validation import check_is_fitted

__all__ = ["PATEClassifier", "PATEFit"]

_PRIVATE = ("private_votes_", "data_dependent_cost_")


@dataclass(eq=False, repr=False)
class PATEClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A student that learns from public rows, labelled by the noisy votes of ``n_teachers`` teachers on private parts.

    teacher, student:
        Any classifiers with ``fit`` and ``predict``; logistic regression, if left out. With ``semi_supervised`` the
        student gets all public rows, -1 for those without an answer: scikit-learn's ``SelfTrainingClassifier`` (pseudo-
        labels) and ``LabelSpreading`` (label propagation) take that, and ``pate.networks`` for torch (consistency).
    aggregation, queries:
        What is shown of the votes, and how many public rows are asked: the first ones; all, if left out.
    soft:
        Whether teachers vote by probabilities.
    rounds:
        With ``InteractiveGNMax``, in how many parts the queries are asked; the student learns after each.
    unit:
        Whom a record, or all records of one of ``units`` in ``fit``, is all of.

    Guarantee: the fitted student, the answers and their number cost ``event_``, however often it predicts. The
    teachers are not kept. ``private_votes_`` and ``data_dependent_cost_`` are private, not to be published: they serve
    ``SanitisedCost`` and the data's keeper, and no copy or pickle of the estimator has them.

    >>> X = np.array([[-1.0, 0.3], [1.0, -0.2]] * 2000); y = np.array([0, 1] * 2000)
    >>> X += np.linspace(0, 1e-3, 4000)[:, None]
    >>> pate = PATEClassifier(n_teachers=50, aggregation=GNMax(sigma=5.0), classes=(0, 1), random_state=0)
    >>> pate.fit(X, y, public=X[:20] + 0.1).predict([[-2.0, 0.0], [2.0, 0.0]])
    array([0, 1])
    >>> print(pate.event_)
    20 x Gaussian(noise_multiplier=3.53553)
    """

    teacher: Any = None
    n_teachers: int = 100
    student: Any = None
    aggregation: Aggregator | None = None
    queries: int | None = None
    _: KW_ONLY
    classes: Any = None
    semi_supervised: bool = False
    soft: bool = False
    rounds: int = 1
    unit: str = ONE_RECORD
    n_jobs: int | None = None
    progress: bool | Callable[[float, str], object] = False
    random_state: Any = None

    def operation(self, public: Any) -> PATEFit:
        """Fitting this estimator with these public rows: ``release((X, y))`` gives a fitted copy."""
        return PATEFit(clone(self), public)

    def fit(self, X: Any, y: Any, *, public: Any = None, units: Any = None, book: Chargeable | None = None) -> Any:
        """Fit privately. ``book`` is charged before a value is read.

        ``public`` rows are asked about and learnt from; ``units`` has an identifier for each record, if all of a unit's
        records shall have one teacher. A record with a feature that is not finite, or a label outside the declared
        classes, is left out.
        """
        rows = features.check_features(self, X)
        charged(PATEFit(self, public, in_place=True), (rows, y, units), book=book)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The student's class for each row. Costs nothing."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.student_.predict(features.table(self, X)).astype(np.int64)])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The student's probabilities, one column per class; those of a student without any are zeros and ones."""
        check_is_fitted(self)
        return _shares(self.student_, features.table(self, X), len(self.classes_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # read as a table
        return tags

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        return {name: value for name, value in state.items() if name not in _PRIVATE}

    # --- what it is made of -----------------------------------------------------------------------------------------

    def _teachers(self) -> Teachers:
        return Teachers(
            teacher=LogisticRegression() if self.teacher is None else self.teacher,
            n_teachers=self.n_teachers,
            n_classes=len(Labels(self.classes).declared),
            soft=self.soft,
            n_jobs=self.n_jobs,
            progress=self.progress,
        )

    def _aggregator(self, public: int) -> Aggregator:
        asked = public if self.queries is None else min(whole("queries", self.queries, low=1), public)
        aggregation = GNMax(sigma=40.0) if self.aggregation is None else self.aggregation
        if not isinstance(aggregation, Aggregator):
            raise ValueError(
                f"aggregation is a {type(aggregation).__name__}, but must be an aggregator, such as GNMax."
            )
        return replace(aggregation, queries=asked, unit=unit_name(self.unit))

    def _train_student(self, rows: NDArray[Any], labels: NDArray[np.int64]) -> Any:
        """A student of the answers; one that is of no class, or of one, is answered with that class."""
        known = labels != NONE
        found = np.unique(labels[known])
        if len(found) < 2:
            constant = int(found[0]) if len(found) else 0
            return DummyClassifier(strategy="constant", constant=constant).fit(rows[:1], [constant])
        student = LogisticRegression() if self.student is None else clone(self.student, safe=False)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="y contains no unlabeled samples")
            if self.semi_supervised:
                return student.fit(rows, labels)
            return student.fit(rows[known], labels[known])


@dataclass(frozen=True)
class PATEFit(FitOperation):
    """The fit of a ``PATEClassifier`` with given public rows: ``release((X, y))`` gives a fitted copy, or itself if
    ``in_place``.
    """

    public: Any
    in_place: bool = False

    @property
    def event(self) -> events.Event:
        """The cost, from public facts alone."""
        event: events.Event = self.estimator._aggregator(len(self._queries(self.estimator))).event
        return event

    def _queries(self, model: Any) -> NDArray[np.float64]:
        """The public rows, which may be read at any time."""
        if self.public is None:
            raise ValueError("public is None, but the teachers can only be asked about public rows: pass public=.")
        rows = np.asarray(self.public, np.float64)
        if rows.ndim != 2 or not len(rows) or not np.isfinite(rows).all():
            raise ValueError("public must be a table of finite numbers, one row per query.")
        return rows

    def prepare(self, data: Any = None, rng: random.RngLike = None) -> Callable[[], Release[Any]]:
        """Refuse what types, shapes and public rows tell; no private value is looked at."""
        model = self.estimator if self.in_place else clone(self.estimator)
        if not isinstance(data, tuple) or len(data) not in (2, 3):
            raise ValueError("data must be the pair (X, y), or (X, y, units).")
        X, y, units = (*data, None)[:3]
        rows = features.check_features(model, X)
        targets, labels = features.column(y, len(rows)), Labels(model.classes)
        labels.check(targets)
        identifiers = None if units is None else features.column(units, len(rows))
        queries, teachers = self._queries(model), model._teachers()
        if queries.shape[1] != rows.columns:
            raise ValueError(f"public has {queries.shape[1]} columns, but X has {rows.columns} features.")
        aggregator, streams = (
            model._aggregator(len(queries)),
            random.Streams(random.from_state(model.random_state if rng is None else rng)),
        )
        teachers.rehearse(queries)
        run = _TeachingRun(model, teachers, aggregator, queries, streams)

        def fit_release() -> Release[Any]:
            run(rows, labels.codes(targets), identifiers)
            return Release(
                model, aggregator.event, reproducible=streams.reproducible, label=self.label, unit=aggregator.unit
            )

        return fit_release


@dataclass(frozen=True)
class _TeachingRun:
    """Votes, answers, student."""

    model: Any
    teachers: Teachers
    aggregator: Aggregator
    queries: NDArray[np.float64]
    streams: random.Streams

    def __call__(self, rows: UnreadRows, codes: NDArray[Any], units: UnreadColumn | None) -> None:
        model, asked = self.model, self.queries[: self.aggregator.queries]
        identifiers = None if units is None else units.read()
        votes = self.teachers.votes(rows.read(), codes, asked, self.streams, units=identifiers)
        counts = count_votes(votes, self.teachers.n_classes)
        answers, data = self._answers(counts)
        model.classes_ = Labels(model.classes).declared
        model.event_, model.reproducible_ = self.aggregator.event, self.streams.reproducible
        model.answers_ = answers
        model.student_ = self._student(answers.labels)
        model.private_votes_ = data
        model.data_dependent_cost_ = data_dependent_cost(self.aggregator, data, answers)

    def _answers(self, counts: NDArray[Any]) -> tuple[VoteAnswers, Any]:
        """What is said to the queries; with ``InteractiveGNMax``, part by part, with a student in between."""
        session = self.aggregator.start(self.streams.noise(0))
        interactive = isinstance(self.aggregator, InteractiveGNMax)
        shares = np.zeros(counts.shape)
        for part in np.array_split(
            np.arange(len(counts)), whole("rounds", self.model.rounds, low=1) if interactive else 1
        ):
            if interactive and len(session.answers().labels):
                shares[part] = _shares(self._student(session.answers().labels), self.queries[part], counts.shape[1])
            for at in part:
                session.ask((counts[at], shares[at]) if interactive else counts[at])
        return session.answers(), (counts, shares) if interactive else counts

    def _student(self, labels: NDArray[np.int64]) -> Any:
        rest = np.full(len(self.queries) - len(labels), NONE)
        return self.model._train_student(self.queries, np.concatenate([labels, rest]))


def _shares(student: Any, rows: NDArray[Any], classes: int) -> NDArray[np.float64]:
    """A student's probabilities in the places of their classes; of one without any, zeros and ones."""
    shares = np.zeros((len(rows), classes))
    if hasattr(student, "predict_proba"):
        shares[:, np.asarray(student.classes_, np.int64)] = student.predict_proba(rows)
    else:
        shares[np.arange(len(rows)), student.predict(rows).astype(np.int64)] = 1.0
    return shares
