"""Scores of a trained model that are private themselves: what a search compares.

A score is an operation on the pair (model, data). What it says of a model is a sum of one bounded number per record, so
that a record moves it by no more than its bound, whatever the model and the other records are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet import mechanisms, random, statistics
from discreet.adjacency import Adjacency
from discreet.encoding.rowwise import map_rows, row_answers
from discreet.errors import positive
from discreet.events import Event
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.release import Release

__all__ = ["Correct", "Score", "Total", "squared_errors"]

Predict = Callable[[Any, Any], Any]


class Score(Protocol):
    """What a search needs of a score: an operation on (model, data), of a cost that no model changes."""

    @property
    def event(self) -> Event:
        """The cost, the same for every model."""
        ...

    @property
    def unit(self) -> str:
        """Whom it protects."""
        ...

    def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
        """A number: larger is better."""
        ...


def _predict(model: Any, rows: Any) -> Any:
    return model.predict(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correct(Mechanism[int]):
    """How many records' targets the model predicts, with discrete Laplace noise; data is (model, (X, y)).

    ``predict(model, X)`` gives a prediction a row, and must treat rows separately. It is asked in blocks of a fixed
    size, so that no row's prediction is rounded by how many others there are (``encoding.rowwise``), and a row on which
    it fails counts as wrong: a record moves the count by at most one.

    >>> class Always:
    ...     def predict(self, X): return np.ones(len(X))
    >>> score = Correct(epsilon=1.0)
    >>> 90 < score.release((Always(), (np.zeros((100, 2)), np.ones(100))), rng=1).value < 110
    True
    """

    epsilon: float
    predict: Predict = _predict
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    label = "correct predictions"

    def __post_init__(self) -> None:
        store(self, epsilon=positive("epsilon", self.epsilon), adjacency=self.adjacency)

    @property
    def _noise(self) -> mechanisms.DiscreteLaplace:
        return mechanisms.DiscreteLaplace(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def event(self) -> Event:
        """The cost of one count."""
        return self._noise.event

    def check(self, data: Any) -> None:
        """Refuse what is publicly no model with rows and their targets."""
        _, records = _check_pair(data, "data", "a model, and the records that it is scored on")
        rows, targets = _check_pair(records, "records", "rows X and their targets y")
        for part in (rows, *rows) if isinstance(rows, tuple) else (rows,):  # a tuple holds tables side by side
            _check_sized(part, "X")
        _check_sized(targets, "y")

    def draw(self, data: Any, rng: random.Rng) -> int:
        """The noisy number of records that the model gets right."""
        model, (rows, targets) = data
        right = _agreeing(map_rows(lambda x: self.predict(model, x), rows, len(targets)), targets)
        return int(self._noise.draw([right], rng)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Total(Mechanism[float]):
    """The sum of one bounded number per record, such as minus its loss, with noise; data is (model, records).

    ``values(model, records)`` gives one number per record, each from its own record alone; they are cut to ``bounds``.
    It is asked in blocks of a fixed size (``encoding.rowwise``); ``records`` is a container of rows, or a tuple of
    such, as (X, y). What is no number, and a record on which it fails, counts nothing.
    """

    values: Callable[[Any, Any], Any]
    bounds: tuple[float, float]
    epsilon: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    label = "total score"

    def __post_init__(self) -> None:
        store(self, adjacency=self.adjacency)
        self.event  # noqa: B018 - refuse now

    @property
    def _sum(self) -> statistics.Sum:
        return statistics.Sum(bounds=self.bounds, epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def event(self) -> Event:
        """The cost of one sum."""
        return self._sum.event

    def check(self, data: Any) -> None:
        """Refuse what is publicly no model with records."""
        _, records = _check_pair(data, "data", "a model, and the records that it is scored on")
        for part in records if isinstance(records, tuple) and records else (records,):
            _check_sized(part, "records")

    def draw(self, data: Any, rng: random.Rng) -> float:
        """The noisy sum."""
        model, records = data[0], _side_by_side(data[1])
        results = map_rows(lambda some: self.values(model, some), records, _size(records))
        values = np.array([_number(x) for x in results])
        return float(self._sum.release(values, rng).value)


def squared_errors(target_bounds: tuple[float, float], predict: Predict = _predict, **budget: Any) -> Total:
    """A score for regressions on (X, y): minus the squared errors, each relative to the width of the target's bounds.

    Predictions and targets are cut to the bounds; what is no number counts nothing.
    """
    low, high = (float(side) for side in target_bounds)

    def errors(model: Any, data: Any) -> NDArray[np.float64]:
        rows, targets = data
        predicted, wanted = (
            np.clip([_number(x) for x in values], low, high)
            for values in (row_answers(predict(model, rows)), row_answers(targets))
        )
        return np.asarray(-(((predicted - wanted) / (high - low)) ** 2))

    return Total(values=errors, bounds=(-1.0, 0.0), **budget)


def _size(records: Any) -> int:
    """How many records there are, whichever container or containers they are in."""
    column = records[-1] if isinstance(records, tuple) else records
    return int(column.shape[0]) if hasattr(column, "tocsr") else len(column)


def _side_by_side(records: Any) -> Any:
    """A table and its column in a list, as [X, y], are parts of the same records, as they are in a tuple."""
    pair = isinstance(records, list) and len(records) == 2 and getattr(records[0], "ndim", 0) == 2
    return tuple(records) if pair and hasattr(records[1], "shape") else records


def _check_pair(pair: Any, name: str, held: str) -> tuple[Any, Any]:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ValueError(f"{name} must be a pair of {held}.")
    return pair[0], pair[1]


def _check_sized(values: Any, name: str) -> None:
    """Refuse what is publicly no container with one entry per record."""
    kind = type(values)
    sized = hasattr(kind, "__len__") and (hasattr(kind, "__getitem__") or hasattr(kind, "__iter__"))
    if not sized or isinstance(values, (str, bytes, type, Mapping, Set)) or getattr(values, "ndim", 1) == 0:
        raise ValueError(f"{name} is a {kind.__name__}, but must be a table, array or list with one entry per record.")


def _number(value: Any) -> float:
    try:
        return float(value)
    except Exception:  # an odd record is no number by itself
        return math.nan


def _agreeing(found: Sequence[Any], targets: Any) -> int:
    return sum(_equal(a, b) for a, b in zip(found, row_answers(targets), strict=True))


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:  # an odd record is wrong by itself
        return False
