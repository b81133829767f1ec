"""The estimators beside a linear model and their non-private twins: accuracy and AUC on Adult and on PUMS, ten seeds.

Adult is tested on its own test file; PUMS (who is married, Fulton County) on a fixed half. Columns are as the schemas
declare them: numbers by bounds and 32 bins, categories by their codes. Settings are the defaults, which were chosen on
parts of the training rows, on PUMS and on made data.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from discreet import datasets
from discreet.encoding import Encoder
from discreet.estimators import AdditiveClassifier, DecisionTreeClassifier, GaussianNB, RandomForestClassifier
from discreet.schema import Bounded, Declaration

SEEDS = int(os.environ.get("DISCREET_SEEDS", "10"))
EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-5
LEFT_OUT = {"income", "fnlwgt", "education"}  # the target, a survey weight, and what education_num says
PUMS = {"age": (0, 100, 32), "educ": (0.5, 16.5, 16), "income": (0, 200_000, 32)}
MARKS = ("sex", "latino", "black", "asian", "children", "disability", "militaryservice", "employed", "englishability")


@dataclass(frozen=True)
class Data:
    """Rows to learn from and to test on, with what is public of their columns."""

    name: str
    train: tuple[NDArray[np.float64], NDArray[np.int64]]
    test: tuple[NDArray[np.float64], NDArray[np.int64]]
    bounds: tuple[list[float], list[float]]
    bins: list[int]
    nominal: list[int]


def adult() -> Data:
    """Columns as the shipped schema declares them."""
    found = datasets.adult()
    names = [name for name in found.schema if name not in LEFT_OUT]
    encoder = Encoder(Declaration(found.schema))

    def read(part: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        rows = encoder.read(dict(part))
        columns = [
            rows.numbers(name) if isinstance(found.schema[name], Bounded) else rows.codes(name).astype(float)
            for name in names
        ]
        return np.column_stack(columns), rows.codes("income")

    declared = [found.schema[name] for name in names]
    facts = [
        (column.low, column.high, 32) if isinstance(column, Bounded) else _codes(len(column.labels))
        for column in declared
    ]
    low, high, bins = (list(side) for side in zip(*facts, strict=True))
    nominal = [j for j, column in enumerate(declared) if not isinstance(column, Bounded)]
    return Data("Adult", read(found.train), read(found.test), (low, high), bins, nominal)


def _codes(count: int) -> tuple[float, float, int]:
    return -0.5, count - 0.5, count


def pums() -> Data | None:
    """Who is married, if the census file is at hand."""
    try:
        people = datasets.pums()
    except FileNotFoundError:
        return None
    chosen = [*PUMS, *MARKS]
    X, y = np.column_stack([people[name].astype(float) for name in chosen]), people["married"]
    facts = [PUMS.get(name, (-0.5, 1.5, 2)) for name in chosen]
    low, high, bins = ([float(x) for x in side] for side in zip(*facts, strict=True))
    half = np.random.default_rng(0).permutation(len(X))
    train, test = half[: len(X) // 2], half[len(X) // 2 :]
    return Data("PUMS", (X[train], y[train]), (X[test], y[test]), (low, high), [int(b) for b in bins],
                list(range(len(PUMS), len(chosen))))  # fmt: skip


def models(data: Data, epsilon: float, seed: int) -> dict[str, Any]:
    """Each estimator at its defaults."""
    public = {"epsilon": epsilon, "delta": DELTA, "bounds": data.bounds, "random_state": seed}
    return {
        "additive": AdditiveClassifier(bins=data.bins, nominal=data.nominal, **public),
        "forest": RandomForestClassifier(bins=data.bins, **public),
        "tree": DecisionTreeClassifier(bins=[min(16, b) for b in data.bins], **public),
        "naive Bayes": GaussianNB(**public),
    }


def scored(model: Any, test: tuple[Any, Any]) -> tuple[float, float]:
    """Accuracy and AUC."""
    shares = model.predict_proba(test[0])[:, 1]
    return float(np.mean((shares > 0.5) == test[1])), float(roc_auc_score(test[1], shares))


def main() -> None:
    """Print a table for each data set."""
    for data in filter(None, (adult(), pums())):
        table = Table("estimator", *(f"ε = {epsilon:g}" for epsilon in EPSILONS), title=f"{data.name}: accuracy / AUC")
        for name in models(data, 1.0, 0):
            cells = []
            for epsilon in EPSILONS:
                runs = [scored(models(data, epsilon, seed)[name].fit(*data.train), data.test) for seed in range(SEEDS)]
                cells.append("{:.1%} / {:.3f}".format(*np.mean(runs, axis=0)))
            table.add_row(name, *cells)
        twin = scored(HistGradientBoostingClassifier(random_state=0).fit(*data.train), data.test)
        table.add_row("boosting, not private", *[""] * (len(EPSILONS) - 1), "{:.1%} / {:.3f}".format(*twin))
        Console().print(table)


if __name__ == "__main__":
    main()
