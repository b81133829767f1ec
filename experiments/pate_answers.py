"""Why the teachers are not released: every answer of theirs costs, a student's predictions do not.

The ensemble behind an interface answers with noise, and each answer is one more Gaussian event; the student cost its
training queries, once, and may be shown with all its weights. The teachers themselves are no release at all: whoever
holds one holds a model of 240 private records that was trained without noise, and no finite epsilon covers that. The
table shows the charged epsilon after so many predictions, and the predictions that an epsilon of ten pays for.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

import discreet as dp
from discreet.pate import GNMax
from experiments import _results

DELTA, SIGMA, TAUGHT, MOST = 1e-5, 50.0, 480, 10.0
PREDICTIONS = (10, 100, 480, 1_000, 10_000, 100_000)


def ensemble(predictions: int) -> float:
    """Epsilon of so many answers by the teachers."""
    return dp.epsilon(GNMax(sigma=SIGMA, queries=predictions).event, delta=DELTA)


def student(predictions: int) -> float:
    """Epsilon of a student, whatever it predicts: that of the answers it was taught."""
    return ensemble(TAUGHT)


def affordable(epsilon: float = MOST) -> int:
    """How many answers of the ensemble an epsilon pays for."""
    fits, fails = 1, 10**9
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if ensemble(middle) <= epsilon else (fits, middle)
    return fits


def main(quick: bool = False) -> None:
    table = Table(title=f"Charged epsilon at delta {DELTA:g}, noise of {SIGMA:g} votes")
    for header in ("predictions", "asked of the teachers", "asked of the student"):
        table.add_column(header, justify="right")
    for predictions in PREDICTIONS[: 3 if quick else None]:
        table.add_row(f"{predictions:,}", f"{ensemble(predictions):.2f}", f"{student(predictions):.2f}")
    console = Console()
    console.print(table)
    console.print(f"An epsilon of {MOST:g} pays for {affordable():,} answers of the teachers.")


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
