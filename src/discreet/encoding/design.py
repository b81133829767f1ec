"""Declared columns as the numbers of a model: what linear models of tables and networks of tables share.

Every declared column but the target and the unit's is a feature: a bounded one scaled from its bounds to [-1, 1], a
categorical one a column of zeros and ones for each label. The target is the number of its label, or a number inside
its bounds. All of it follows from the schema, and every row from itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.encoder import Encoded, Encoder
from discreet.schema import Bounded, Categories, Column, Declaration

__all__ = ["Design"]


@dataclass(frozen=True)
class Design:
    """The features and the target of a table.

    >>> from discreet.schema import Schema
    >>> facts = Declaration(Schema(age=Bounded(0, 100), sex=Categories(["f", "m"]), sick=Categories(["no", "yes"])))
    >>> design = Design(facts, "sick")
    >>> rows = design.encoder.read({"age": [25, 100], "sex": ["m", "?"], "sick": ["yes", "no"]})
    >>> design.matrix(rows).tolist(), design.targets(rows).tolist()
    ([[-0.5, 0.0, 1.0], [1.0, 0.0, 0.0]], [1, 0])
    """

    declaration: Declaration
    target: str

    def __post_init__(self) -> None:
        if not isinstance(self.goal, (Bounded, Categories)):
            kind = type(self.goal).__name__.lower()
            raise ValueError(f"target is {self.target!r}, which is {kind}, but must be bounded or have categories.")
        if not self.features:
            raise ValueError(
                f"target is {self.target!r}, but the schema declares no other bounded or categorical column."
            )

    @property
    def goal(self) -> Column:
        """What is declared of the target."""
        return self.declaration.schema[self.target]

    @property
    def features(self) -> dict[str, Column]:
        """The columns a prediction needs."""
        hidden = {self.target, self.declaration.unit}
        return {
            name: column
            for name, column in self.declaration.schema.items()
            if name not in hidden and isinstance(column, (Bounded, Categories))
        }

    @property
    def width(self) -> int:
        """How many numbers a row becomes."""
        return sum(len(column.labels) if isinstance(column, Categories) else 1 for column in self.features.values())

    @property
    def encoder(self) -> Encoder:
        """Reads what a model learns from: one row per unit, the target included."""
        return Encoder(self.declaration, (*self.features, self.target))

    def rows_to_predict(self, data: Any) -> NDArray[np.float64]:
        """The features of every row of columns, a frame or a file, for predictions, where nothing is protected."""
        return self.matrix(Encoder(self.declaration, tuple(self.features), one_row_a_unit=False).read(data))

    def matrix(self, rows: Encoded) -> NDArray[np.float64]:
        """The features, one row per record; NaN where a number is missing and nothing is declared for that."""
        parts = []
        for name, column in self.features.items():
            if isinstance(column, Bounded):
                parts.append(rows.unit_scaled(name)[:, None] * 2 - 1)
            elif isinstance(column, Categories):
                parts.append((rows.codes(name)[:, None] == np.arange(len(column.labels))).astype(np.float64))
            else:
                raise ValueError(f"{name!r} is declared as {type(column).__name__}, which is no feature.")
        return np.concatenate(parts, axis=1)

    def targets(self, rows: Encoded) -> NDArray[Any]:
        """Numbers of labels, -1 for none; or numbers inside the bounds, NaN where they are missing."""
        return rows.codes(self.target) if isinstance(self.goal, Categories) else rows.numbers(self.target)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The target's labels; refused where it is a number, of which no value has a probability."""
        if not isinstance(self.goal, Categories):
            raise ValueError(
                f"{self.target!r} is a number, and a model predicts one value for it: only labels have probabilities."
            )
        return self.goal.labels

    def as_labels(self, found: NDArray[Any]) -> NDArray[Any]:
        """Predictions as a table says them: labels, or values inside the target's bounds."""
        goal = self.goal
        if isinstance(goal, Categories):
            return np.asarray(np.asarray(goal.labels)[found])
        assert isinstance(goal, Bounded)
        return np.asarray(np.clip(found, goal.low, goal.high))
