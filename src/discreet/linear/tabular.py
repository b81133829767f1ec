"""Linear models of tables: a schema's public facts say how columns become features; the fitted model carries its statement.

The target decides the model: categories give ``LogisticRegression``, bounds give ``LinearRegression``. Every other declared
column is a feature: a bounded one scaled from its bounds to [-1, 1], a categorical one a column of zeros and ones for
each label; unlisted columns and the unit's are left out. A missing number counts as the schema says, or blanks its
record ("drop"); a category that is not listed goes to ``other``, or nowhere. Rows are shrunk to the norm that the
categorical columns alone give them (or the bounded ones, if there is none), so that records weigh about the same.

What is protected is a row or, where the schema names a unit, all rows of one unit, of which the first counts; rows without
an identifier count together as one unit, as in tables.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.events import Event
from discreet.linear.classifiers import LogisticRegression
from discreet.linear.reading import number
from discreet.linear.regressors import LinearRegression
from discreet.release import ONE_RECORD, Book, Enforced
from discreet.schema import Bounded, Categories, Column, Declaration

__all__ = ["TableModel"]

Columns = Mapping[str, Sequence[Any]]


def _scaled(column: Bounded, values: Sequence[Any]) -> NDArray[np.float64]:
    numbers = np.array([number(value) for value in values], np.float64)
    if column.missing != "drop":
        numbers = np.where(np.isnan(numbers), column.missing, numbers)
    return np.asarray((np.clip(numbers, column.low, column.high) - column.low) / (column.high - column.low) * 2 - 1)


def _codes(column: Categories, values: Sequence[Any]) -> NDArray[np.int64]:
    """Which label each value is: -1 for none of them."""
    places: dict[Any, int] = {(str(label) if column.textual else float(label)): i for i, label in enumerate(column.labels)}
    elsewhere = -1 if column.other is None else len(column.labels) - 1
    read = (_text(value) if column.textual else number(value) for value in values)
    return np.array([places.get(value, elsewhere) for value in read], np.int64)


def _text(value: Any) -> str | None:
    """What a label is called; None for what cannot say."""
    try:
        return str(value)
    except Exception:  # its own record's matter
        return None


@dataclass(slots=True)
class TableModel:
    """A private linear model of one declared column from the others.

    >>> from discreet.schema import Schema
    >>> facts = Declaration(Schema(age=Bounded(0, 100), sex=Categories(["f", "m"]), sick=Categories(["no", "yes"])))
    >>> model = TableModel(facts, target="sick", epsilon=1.0, delta=1e-6, random_state=0)
    >>> rows = {"age": [20, 80] * 2000, "sex": ["f", "m"] * 2000, "sick": ["no", "yes"] * 2000}
    >>> model.fit(rows).predict({"age": [25, 90], "sex": ["f", "m"]}).tolist()
    ['no', 'yes']
    """

    declaration: Declaration
    target: str
    epsilon: float
    delta: float = 1e-6
    random_state: Any = None
    estimator: Any = field(init=False)
    charge: dict[str, str] | None = field(default=None, init=False)  # the book that paid for it, and the ledger's head then
    stated: dict[str, Any] | None = field(default=None, init=False)  # what the file said that it was read from

    def __post_init__(self) -> None:
        goal, width = self.declaration.schema[self.target], self.width
        if not self.features:
            raise ValueError(f"target is {self.target!r}, but the schema declares no other bounded or categorical column.")
        if self.declaration.max_rows_per_unit != 1:
            raise ValueError(f"max_rows_per_unit is {self.declaration.max_rows_per_unit}, but a model takes one row a unit: "
                             "set it to 1, and the first row of each counts.")
        listed = sum(isinstance(column, Categories) for column in self.features.values())
        public = {"epsilon": self.epsilon, "delta": self.delta, "feature_norm": math.sqrt(listed or width),
                  "random_state": self.random_state}
        if isinstance(goal, Categories):
            self.estimator = LogisticRegression(classes=tuple(range(len(goal.labels))), **public)
        elif isinstance(goal, Bounded):
            self.estimator = LinearRegression(target_bounds=(goal.low, goal.high), **public)
        else:
            raise ValueError(f"target is {self.target!r}, which is unlisted, but must be bounded or have categories.")

    @property
    def features(self) -> dict[str, Column]:
        """The columns a prediction needs."""
        hidden = {self.target, self.declaration.unit}
        return {name: column for name, column in self.declaration.schema.items()
                if name not in hidden and isinstance(column, (Bounded, Categories))}

    @property
    def width(self) -> int:
        """How many numbers a row becomes."""
        return sum(map(_width, self.features.values()))

    @property
    def event(self) -> Event:
        """What ``fit`` costs, known before."""
        event: Event = self.estimator.privacy_event(self.width)
        return event

    @property
    def unit(self) -> str:
        """Whom ``fit`` protects: a row, or the schema's unit, of which one row counts."""
        name = self.declaration.unit
        return ONE_RECORD if name is None else Enforced(name)

    def check(self, names: Collection[str]) -> None:
        """Refuse data whose columns, which are public, are not those that were declared."""
        unit = self.declaration.unit
        for name in (self.target, *self.features, *([] if unit is None else [unit])):
            _found(names, name)

    def fit(self, columns: Columns, *, book: Book | None = None) -> TableModel:
        """Fit privately; the book is charged before a value is looked at."""
        self.check(columns)
        if book is not None:
            book.charge(self.event, label=f"model of {self.target}", unit=self.unit)
        kept = self._first_rows(columns)
        goal = self.declaration.schema[self.target]
        values = _chosen(columns, self.target, kept)
        y = _codes(goal, values) if isinstance(goal, Categories) else np.array([number(value) for value in values])
        if isinstance(goal, Bounded):
            y = np.clip(y if goal.missing == "drop" else np.where(np.isnan(y), goal.missing, y), goal.low, goal.high)
        self.estimator.fit(self._encoded(columns, kept), y)
        return self

    def predict(self, columns: Columns) -> NDArray[Any]:
        """Labels, or values inside the target's bounds."""
        found = self.estimator.predict(self._encoded(columns, None))
        goal = self.declaration.schema[self.target]
        if isinstance(goal, Categories):
            return np.asarray(np.asarray(goal.labels)[found])
        assert isinstance(goal, Bounded)
        return np.asarray(np.clip(found, goal.low, goal.high))

    @property
    def statement(self) -> dict[str, Any]:
        """What the model guarantees, for whoever receives it."""
        if self.stated is not None:
            return self.stated
        unit = self.declaration.unit
        return {"epsilon": self.epsilon, "delta": self.delta, "adjacency": str(self.estimator.adjacency),
                "unit": "one row" if unit is None else f"all rows with the same {unit!r}, of which the first counts",
                "solver": getattr(self.estimator, "solver_", "not fitted"), "event": self.event.to_dict(),
                "reproducible": self.random_state is not None, "charged": self.charge}

    def _first_rows(self, columns: Columns) -> NDArray[np.int64] | None:
        unit = self.declaration.unit
        if unit is None:
            return None
        seen: dict[Any, int] = {}
        for i, value in enumerate(_chosen(columns, unit, None)):
            seen.setdefault(_identifier(value), i)
        return np.array(list(seen.values()), np.int64)

    def _encoded(self, columns: Columns, kept: NDArray[np.int64] | None) -> NDArray[np.float64]:
        parts = []
        for name, column in self.features.items():
            values = _chosen(columns, name, kept)
            if isinstance(column, Bounded):
                parts.append(_scaled(column, values)[:, None])
            elif isinstance(column, Categories):
                parts.append((_codes(column, values)[:, None] == np.arange(len(column.labels))).astype(np.float64))
        return np.concatenate(parts, axis=1)


def _identifier(value: Any) -> Any:
    """What names a unit; None for what names none: a missing value of any kind, empty text, something without a hash."""
    try:
        return value if hash(value) is not None and value == value and value != "" else None
    except Exception:  # not all values can be compared, NA least of all; that is their own record's matter
        return None


def _width(column: Column) -> int:
    return len(column.labels) if isinstance(column, Categories) else 1


def _found(names: Collection[str], name: str) -> None:
    if name not in names:
        raise ValueError(f"Column {name!r} is declared, but the data does not have it.")


def _chosen(columns: Columns, name: str, kept: NDArray[np.int64] | None) -> Sequence[Any]:
    _found(columns, name)
    values = columns[name]
    return values if kept is None else [values[i] for i in kept.tolist()]
