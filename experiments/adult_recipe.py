"""How ``datasets.adult_features`` was chosen: by cross-validation on Adult's training file; the test file is not
opened.

Every recipe has a column of zeros and ones for each category ("?" included), bounded numeric columns, logarithms of
gains and losses, and rows of norm 1. They differ in what that leaves open: education as its own categories, as the
number that orders them, or as both; numbers scaled to [0, 1] or to [-1, 1]; squares of age and hours or not; the
survey's weight or not. Rule: of the recipes whose plain logistic regression is within one standard error of the best
over five folds, those with the fewest features; of these, the one on which a private fit (epsilon 0.1) does best on the
same folds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression as Ordinary
from sklearn.model_selection import StratifiedKFold, cross_val_score

from discreet.datasets import adult
from discreet.datasets.census import BOUNDS, CATEGORIES
from discreet.linear import LogisticRegression
from experiments import _results

Array = NDArray[np.float64]
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


@dataclass(frozen=True)
class Recipe:
    """What the description leaves open."""

    education: str  # "categories", "number", "both"
    low: int  # numbers are scaled to [low, 1]
    squares: bool
    weight: bool

    @property
    def name(self) -> str:
        extras = (", squares" if self.squares else "") + (", survey weight" if self.weight else "")
        return f"education: {self.education}; [{self.low}, 1]{extras}"

    def __call__(self, columns: object) -> Array:
        """Rows of norm 1."""
        people = dict(columns)  # type: ignore[call-overload]
        listed = [
            name for name in CATEGORIES if name != "income" and (name != "education" or self.education != "number")
        ]
        scaled = [
            "age",
            "hours_per_week",
            *(["education_num"] if self.education != "categories" else []),
            *(["fnlwgt"] if self.weight else []),
        ]
        parts = [people[name][:, None] == np.array(CATEGORIES[name]) for name in listed]
        for name in scaled:
            column = self._placed(people[name], *BOUNDS[name])
            parts += [column, column**2] if self.squares and name in ("age", "hours_per_week") else [column]
        for name in ("capital_gain", "capital_loss"):
            top = np.log1p(BOUNDS[name][1])
            parts.append((np.minimum(np.log1p(people[name]), top) / top)[:, None])
        table = np.concatenate(parts, axis=1, dtype=np.float64)
        return np.asarray(table / np.linalg.norm(table, axis=1, keepdims=True))

    def _placed(self, column: Array, low: float, high: float) -> Array:
        return np.asarray(self.low + (1 - self.low) * (np.clip(column, low, high) - low) / (high - low))[:, None]


RECIPES = [Recipe(*facts) for facts in product(("categories", "number", "both"), (0, -1), (False, True), (False, True))]


@dataclass(frozen=True)
class Row:
    """A recipe, its number of features, and accuracies on held-out folds of the training file."""

    recipe: Recipe
    features: int
    accuracy: float
    error: float
    private: float


def results(recipes: Sequence[Recipe] = RECIPES) -> Iterator[Row]:
    people = adult().train
    y = np.asarray(people["income"] == ">50K", np.int64)
    plain = Ordinary(C=100.0, solver="newton-cholesky", max_iter=200)
    private = LogisticRegression(epsilon=0.1, delta=1e-6, feature_norm=1.0, random_state=0, classes=(0, 1))
    for recipe in recipes:
        x = recipe(people)
        found, noisy = (cross_val_score(model, x, y, cv=FOLDS) for model in (plain, private))
        yield Row(
            recipe, x.shape[1], float(found.mean()), float(found.std(ddof=1) / np.sqrt(len(found))), float(noisy.mean())
        )


def chosen(rows: list[Row]) -> Row:
    """The rule."""
    best = max(rows, key=lambda row: row.accuracy)
    good = [row for row in rows if row.accuracy >= best.accuracy - best.error]
    fewest = min(row.features for row in good)
    return max((row for row in good if row.features == fewest), key=lambda row: row.private)


def main(quick: bool = False) -> None:
    rows = sorted(results(RECIPES[::12] if quick else RECIPES), key=lambda row: -row.accuracy)
    table = Table(title="Adult's training file: accuracy of logistic regression on five held-out folds")
    for header in ("recipe", "features", "not private", "± of the mean", "epsilon 0.1"):
        table.add_column(header)
    for row in rows:
        table.add_row(
            row.recipe.name, str(row.features), f"{row.accuracy:.2%}", f"{row.error:.2%}", f"{row.private:.2%}"
        )
    console = Console(width=max(110, Console().width))
    console.print(table)
    console.print(f"Chosen: {chosen(rows).recipe.name}.")


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
