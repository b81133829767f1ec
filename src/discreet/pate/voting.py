"""Teachers: each learns from its own part of the private records, votes on the public queries, and is forgotten.

Guarantee: the votes of a teacher are a function of its own part, its public seed and the public queries. Nothing is
fitted, scaled or counted across parts, and the process's generators, from which a teacher may draw, start from its
seed. What a teacher cannot do (its part is empty or of one class, it fails, it answers something else than one declared
class a query) is never an error, which would tell of its records: it casts a fixed vote instead, the class numbered by
its own number, so that many such teachers favour no class. So a record more or less moves the votes of one teacher, one
vote a query.

A *hard* vote is one class. A *soft* vote is a teacher's probabilities, cut to whole multiples of 2^-20 that sum to at
most one: sums of such votes are exact, and a teacher moves them by no more than it could by a hard vote, √2 in L2, 2 in
L1, 1 in every count.

Decision 462.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import extra, whole
from discreet.pate.aggregation import SOFT_UNIT
from discreet.pate.partition import teacher_of_records, teacher_of_units
from discreet.random import Streams, seeded
from discreet.random.process import draw_from

with extra("sklearn"):
    import joblib
    from sklearn.base import clone

__all__ = ["Teachers", "count_votes"]

_KEY, _SEEDS = 0, 1  # public streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Teachers:
    """``n_teachers`` copies of ``teacher``, a classifier with ``fit`` and ``predict`` (``predict_proba`` if ``soft``).

    Classes are whole numbers from 0 to ``n_classes`` - 1. ``n_jobs`` processes train at a time; ``progress`` writes a
    line, or is told the share that is done, and a stage. Neither changes a vote.
    """

    teacher: Any
    n_teachers: int
    n_classes: int
    soft: bool = False
    n_jobs: int | None = None
    progress: bool | Callable[[float, str], object] = False

    def __post_init__(self) -> None:
        whole("n_teachers", self.n_teachers, low=1)
        whole("n_classes", self.n_classes, low=2)
        for method in ("fit", "predict_proba" if self.soft else "predict"):
            if not callable(getattr(self.teacher, method, None)):
                raise ValueError(f"teacher is a {type(self.teacher).__name__}, but must have a method {method!r}.")

    def rehearse(self, queries: NDArray[Any]) -> None:
        """Let a teacher learn made-up labels of public queries, so that what is publicly wrong with it is found
        before a private record is touched.
        """
        y = np.arange(max(2 * self.n_classes, min(len(queries), 20 * self.n_classes))) % self.n_classes
        X = np.resize(queries, (len(y), *queries.shape[1:]))
        try:
            votes = self._collect_votes(X, y, X, 0)
        except Exception as error:
            raise ValueError(
                f"The teacher {type(self.teacher).__name__} fails on public queries with made-up labels: {error}"
            ) from error
        if votes is None:
            raise ValueError(f"The teacher {type(self.teacher).__name__} does not answer with one class per query.")

    def votes(
        self, X: NDArray[Any], y: NDArray[Any], queries: NDArray[Any], streams: Streams, *, units: Any = None
    ) -> NDArray[Any]:
        """What each teacher says to each query: (teachers, queries) classes or, if soft, with an axis of shares more.

        Private, as the teachers are: only what an aggregator makes of their counts may be shown. A record with a
        feature that is not finite, or with another label than a declared class, is nobody's. ``units`` has an
        identifier for each record, if all records of a unit shall have one teacher.
        """
        parts = self._parts_of_teachers(X, y, streams, units)
        seeds = [int(word) for word in streams.public(_SEEDS).words(self.n_teachers) >> np.uint64(33)]
        alone = replace(self, progress=False)  # what shows progress stays in this process
        jobs = (
            joblib.delayed(alone._vote)(number, X[part], y[part].astype(np.int64), queries, seeds[number])
            for number, part in enumerate(parts)
        )
        if self.n_jobs in (None, 1):
            votes: Iterator[NDArray[Any]] = (job(*given, **named) for job, given, named in jobs)
        else:
            votes = joblib.Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        return np.stack(list(self._with_progress(votes)))

    def _parts_of_teachers(
        self, X: NDArray[Any], y: NDArray[Any], streams: Streams, units: Any
    ) -> Iterator[NDArray[np.bool_]]:
        """Which records are each teacher's: by a keyed hash of the record, or of its unit."""
        key, rows = streams.public(_KEY).words(4).tobytes(), X.reshape(len(X), math.prod(X.shape[1:]))
        if units is None:
            teacher = teacher_of_records(self.n_teachers, key, rows, y)
        else:
            teacher = teacher_of_units(self.n_teachers, key, units)
        usable = np.isfinite(rows).all(axis=1) & np.isin(y, np.arange(self.n_classes))
        return (usable & (teacher == number) for number in range(self.n_teachers))

    def _vote(
        self, number: int, X: NDArray[Any], y: NDArray[np.int64], queries: NDArray[Any], seed: int
    ) -> NDArray[Any]:
        """The votes of one teacher; whatever happens in it, votes."""
        votes = None
        if len(np.unique(y)) > 1:
            try:
                votes = self._collect_votes(X, y, queries, seed)
            except Exception:  # a failure tells of this part's records: it becomes the fixed vote
                votes = None
        if votes is not None:
            return votes
        fixed = np.full(len(queries), number % self.n_classes)
        return np.eye(self.n_classes)[fixed] if self.soft else fixed

    def _collect_votes(self, X: NDArray[Any], y: NDArray[Any], queries: NDArray[Any], seed: int) -> NDArray[Any] | None:
        """Votes, or none where the answers are not of the form."""
        with warnings.catch_warnings(), draw_from(seeded(seed)):  # a warning would tell of the part
            warnings.simplefilter("ignore")
            model = _with_seed(clone(self.teacher, safe=False), seed).fit(X, y)
            if self.soft:
                return self._shares(np.asarray(model.predict_proba(queries), np.float64), model, len(queries))
            answers = np.asarray(model.predict(queries))
        are_classes = answers.shape == (len(queries),) and np.isin(answers, np.arange(self.n_classes)).all()
        return answers.astype(np.int64) if are_classes else None

    def _shares(self, probabilities: NDArray[np.float64], model: Any, size: int) -> NDArray[np.float64] | None:
        """Probabilities in the place of their class, cut downwards to multiples of 2^-20, so that a teacher's shares
        never add up to more than one; none where they are no probabilities.
        """
        known = np.asarray(getattr(model, "classes_", np.arange(self.n_classes))).astype(np.int64)
        if probabilities.shape != (size, len(known)) or not np.isfinite(probabilities).all():
            return None
        total = probabilities.sum(axis=1, keepdims=True)
        if (probabilities < 0).any() or (total <= 0).any():
            return None
        shares = np.zeros((size, self.n_classes))
        shares[:, known] = np.floor(probabilities / (total * (1 + 2.0**-40)) / SOFT_UNIT) * SOFT_UNIT
        return shares

    def _with_progress(self, votes_of_teachers: Iterator[NDArray[Any]]) -> Iterator[NDArray[Any]]:
        """The votes, one teacher after another, with the bar as full as teachers are done."""
        for done, votes in enumerate(votes_of_teachers, 1):
            if callable(self.progress):
                self.progress(done / self.n_teachers, f"teacher {done}/{self.n_teachers}")
            elif self.progress:
                filled = "█" * (20 * done // self.n_teachers)
                sys.stderr.write(f"\r{filled:░<20} teacher {done}/{self.n_teachers} ")
                sys.stderr.write("\n" if done == self.n_teachers else "")
                sys.stderr.flush()
            yield votes


def count_votes(votes: NDArray[Any], n_classes: int) -> NDArray[Any]:
    """The number of votes for each class, per query: whole for hard votes, exact sums of shares for soft ones.

    >>> count_votes(np.array([[0, 1], [0, 2], [1, 2]]), 3).tolist()
    [[2, 1, 0], [0, 1, 2]]
    """
    if votes.ndim == 3:
        return np.asarray(votes.sum(axis=0))
    return np.stack([(votes == label).sum(axis=0) for label in range(n_classes)], axis=1)


def _with_seed(model: Any, seed: int) -> Any:
    """The model with every ``random_state`` in it set to the teacher's public seed."""
    if hasattr(model, "get_params"):
        names = (name for name in model.get_params() if name.split("__")[-1] == "random_state")
        model.set_params(**dict.fromkeys(names, seed))
    return model
