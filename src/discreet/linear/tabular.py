"""Linear models of tables: a schema's public facts say how columns become features; the fitted model carries its
statement.

The target decides the model: categories give ``LogisticRegression``, bounds give ``LinearRegression``. How columns
become features is ``encoding.design``'s; unlisted columns and the unit's are left out. A missing number counts as the
schema says, or blanks its record ("drop"); a category that is not listed goes to ``other``, or nowhere. Rows are shrunk
to the norm that the categorical columns alone give them (or the bounded ones, if there is none), so that records weigh
about the same.

With ``score_share`` a part of the rows is held back, and says how well the model predicts (``scoring``).

What is protected is a row or, where the schema names a unit, all rows of one unit, of which the first counts; rows
without an identifier count together as one unit. How an entry is read is ``encoding``'s: the same as in tables, from
the same files.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import random
from discreet.encoding import Design, Encoder
from discreet.errors import number
from discreet.events import Event
from discreet.fitting import Fit
from discreet.linear.classifiers import LogisticRegression
from discreet.linear.regressors import LinearRegression
from discreet.linear.scoring import HeldOutScore, Score
from discreet.random.tap import poisson_sample
from discreet.release import ONE_RECORD, Chargeable, Enforced, Release, charged, is_reproducible
from discreet.schema import Bounded, Categories, Column, as_declaration

__all__ = ["TableFit", "TableModel"]


@dataclass(slots=True)
class TableModel:
    """A private linear model of one declared column from the others; what is declared may be a schema, or a schema
    file's path.

    >>> from discreet.schema import Schema
    >>> facts = Schema(age=Bounded(0, 100), sex=Categories(["f", "m"]), sick=Categories(["no", "yes"]))
    >>> model = TableModel(facts, target="sick", epsilon=1.0, delta=1e-6, random_state=0)
    >>> rows = {"age": [20, 80] * 2000, "sex": ["f", "m"] * 2000, "sick": ["no", "yes"] * 2000}
    >>> model.fit(rows).predict({"age": [25, 90], "sex": ["f", "m"]}).tolist()
    ['no', 'yes']
    """

    declaration: Any  # a schema, one with its unit, or a schema file's path: a ``Declaration`` from then on
    target: str
    epsilon: float
    delta: float = 1e-6
    random_state: Any = None
    score_share: float = 0.0  # of the rows, held back to score the model
    estimator: Any = field(init=False)
    score: Score | None = field(default=None, init=False)
    # the book that paid for it, and the ledger's head then
    charge: dict[str, str] | None = field(default=None, init=False)
    stated: dict[str, Any] | None = field(default=None, init=False)  # what the file said that it was read from

    def __post_init__(self) -> None:
        self.declaration = as_declaration(self.declaration)  # of a schema, or of a schema file
        number("score_share", self.score_share, low=0, high=1, open_high=True)
        goal = self.design.goal
        Encoder(self.declaration)  # refuses bounds that tables alone find
        listed = sum(isinstance(column, Categories) for column in self.features.values())
        public = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "feature_norm": math.sqrt(listed or self.width),
            "random_state": self.random_state,
        }
        if isinstance(goal, Categories):
            self.estimator = LogisticRegression(classes=tuple(range(len(goal.labels))), **public)
        elif isinstance(goal, Bounded):
            self.estimator = LinearRegression(target_bounds=(goal.low, goal.high), **public)

    @property
    def design(self) -> Design:
        """How columns become features."""
        return Design(self.declaration, self.target)

    @property
    def features(self) -> dict[str, Column]:
        """The columns a prediction needs."""
        return self.design.features

    @property
    def width(self) -> int:
        """How many numbers a row becomes."""
        return self.design.width

    @property
    def event(self) -> Event:
        """What ``fit`` costs, known before."""
        fit: Event = self.estimator.privacy_event(self.width)
        return fit | self.scoring.event if self.score_share else fit

    @property
    def scoring(self) -> HeldOutScore:
        """What rows that are held back pay for."""
        return HeldOutScore(self.design.goal, self.epsilon)  # type: ignore[arg-type]  # the design has checked it

    @property
    def unit(self) -> str:
        """Whom ``fit`` protects: a row, or the schema's unit, of which one row counts."""
        name = self.declaration.unit
        return ONE_RECORD if name is None else Enforced(name)

    def operation(self) -> TableFit:
        """The fit of such a model, as an operation: ``release(data)`` gives a fitted copy."""
        return TableFit(self)

    def fit(self, data: Any, *, book: Chargeable | None = None) -> TableModel:
        """Fit privately to columns, a frame or a file; the book is charged before a value is looked at."""
        charged(TableFit(self, in_place=True), data, book=book)
        return self

    def predict(self, data: Any) -> NDArray[Any]:
        """Labels, or values inside the target's bounds, one for each row of columns, a frame or a file."""
        return self.design.as_labels(self.estimator.predict(self.design.rows_to_predict(data)))

    def probabilities(self, data: Any) -> tuple[tuple[Any, ...], NDArray[np.float64]]:
        """The target's labels, and for each row how likely the model holds each of them."""
        return self.design.labels, np.asarray(self.estimator.predict_proba(self.design.rows_to_predict(data)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model and its statement as JSON, which ``discreet predict`` reads without running code."""
        from discreet.linear.saved import dumps

        Path(path).write_text(dumps(self), encoding="utf-8")

    @property
    def statement(self) -> dict[str, Any]:
        """What the model guarantees, for whoever receives it."""
        if self.stated is not None:
            return self.stated
        unit = self.declaration.unit
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": str(self.estimator.adjacency),
            "unit": "one row" if unit is None else f"all rows with the same {unit!r}, of which the first counts",
            "solver": getattr(self.estimator, "solver_", "not fitted"),
            "event": self.event.to_dict(),
            "reproducible": self.random_state is not None,
            "charged": self.charge,
            **({} if self.score is None else {"score": asdict(self.score)}),
        }


@dataclass(frozen=True)
class TableFit:
    """The fit of a table model: ``release(data)`` gives a fitted copy, or the model itself if ``in_place``."""

    model: TableModel
    in_place: bool = False

    @property
    def event(self) -> Event:
        """The cost, from public facts alone."""
        return self.model.event

    @property
    def asked(self) -> tuple[float | None, float | None]:
        """Epsilon and delta it is asked for with."""
        return self.model.epsilon, self.model.delta

    @property
    def unit(self) -> str:
        """A row, or the schema's unit, of which one row counts."""
        return self.model.unit

    @property
    def label(self) -> str:
        """What a book calls it."""
        return f"model of {self.model.target}"

    @property
    def reproducible(self) -> bool:
        """Whether the model has a seed of its own."""
        return is_reproducible(self.model.random_state)

    def release(self, data: Any = None, rng: Any = None) -> Release[TableModel]:
        """Read the data, and give the fitted model."""
        return self.prepare(data, rng)()

    def prepare(self, data: Any = None, rng: Any = None) -> Callable[[], Release[TableModel]]:
        """Refuse data whose columns or types, which are public, do not suit; read nothing, and return what reads."""
        asked = self.model
        model = (
            asked
            if self.in_place
            else TableModel(
                asked.declaration, asked.target, asked.epsilon, asked.delta, asked.random_state, asked.score_share
            )
        )
        design = model.design
        read = design.encoder.prepare(data)
        noise = random.from_state(model.random_state if rng is None else rng)

        def run() -> Release[TableModel]:
            rows = read()
            features, targets = design.matrix(rows), design.targets(rows)
            held = np.zeros(len(rows), bool)
            if model.score_share:
                keys = [(row.tobytes(), target) for row, target in zip(features, targets.tolist(), strict=True)]
                held = poisson_sample(keys, model.score_share, noise)
            fitted = Fit(model.estimator, design.width, in_place=True).release((features[~held], targets[~held]), noise)
            if model.score_share:
                predicted = model.estimator.predict(features[held]) if held.any() else targets[held]
                model.score = model.scoring.measure(targets[held], predicted, noise)
            return Release(model, model.event, reproducible=fitted.reproducible, label=self.label, unit=self.unit)

        return run
