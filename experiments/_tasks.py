"""Eight data sets for estimators, each with what is publicly known of its columns: bounds, and numbers of codes.

Adult, census records of Fulton County (who is married), breast cancer, digits, a survey of marriages (who had an
affair) are classified; the dose of warfarin, visits to a doctor and diabetes are predicted. Numbers are cut to bounds
that codebooks and descriptions state, categories are codes. The two surveys come with statsmodels, in the peers'
environment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from benchmarks import peers
from discreet import datasets
from discreet.encoding import Encoder
from discreet.schema import Bounded, Declaration
from experiments import _data
from experiments.warfarin import GENES, ORIGINS, patients

__all__ = ["TASKS", "Task"]

LEFT_OUT = {"income", "fnlwgt", "education"}  # the target, a survey weight, and what education_num says
MARKS = ("sex", "latino", "black", "asian", "children", "disability", "militaryservice", "employed", "englishability")
Array = NDArray[Any]


@dataclass(frozen=True)
class Task:
    """Columns as declared, with their bounds (a column of m codes: -0.5 and m - 0.5), and a target."""

    name: str
    x: Array
    y: Array
    bounds: tuple[Array, Array]
    nominal: tuple[int, ...] = ()
    classes: tuple[int, ...] = ()  # none: a number is predicted
    target: tuple[float, float] | None = None
    test: int = 0  # the last so many rows are the test part; none: 30 %, another part each seed

    def split(self, seed: int) -> tuple[Array, Array]:
        """Rows to learn from, and to test on."""
        n = len(self.x)
        if self.test:
            return np.arange(n - self.test), np.arange(n - self.test, n)
        order = np.random.default_rng([7, seed]).permutation(n)
        return order[: round(0.7 * n)], order[round(0.7 * n) :]

    @property
    def bins(self) -> list[int]:
        """One a code, 32 of a number."""
        low, high = self.bounds
        return [round(high[j] - low[j]) if j in self.nominal else 32 for j in range(len(low))]

    @property
    def wide(self) -> tuple[Array, float]:
        """Numbers from -1 to 1, a column of zeros and ones for each code; and the norm of such rows."""
        low, high = self.bounds
        parts = []
        for j in range(len(low)):
            if j in self.nominal:
                parts.append((self.x[:, j : j + 1] == np.arange(self.bins[j])).astype(np.float64))
            else:
                cut = np.clip(self.x[:, j : j + 1], low[j], high[j])
                parts.append((cut - low[j]) / (high[j] - low[j]) * 2 - 1)
        table = np.concatenate(parts, axis=1)
        return table, math.sqrt(len(self.nominal) or table.shape[1])


def _declared(facts: list[tuple[float, float]]) -> tuple[Array, Array]:
    low, high = np.array(facts, np.float64).T
    return low, high


def _codes(count: int) -> tuple[float, float]:
    return -0.5, count - 0.5


def adult() -> Task:
    """Who earns more than 50,000 dollars; its own test file."""
    found = datasets.adult()
    names = [name for name in found.schema if name not in LEFT_OUT]
    encoder, columns, labels = Encoder(Declaration(found.schema)), [], []
    for part in (found.train, found.test):
        rows = encoder.read(dict(part))
        columns.append(
            np.column_stack(
                [rows.numbers(n) if isinstance(found.schema[n], Bounded) else rows.codes(n) * 1.0 for n in names]
            )
        )
        labels.append(rows.codes("income"))
    declared: list[Any] = [found.schema[name] for name in names]
    facts = [(c.low, c.high) if isinstance(c, Bounded) else _codes(len(c.labels)) for c in declared]
    nominal = tuple(j for j, column in enumerate(declared) if not isinstance(column, Bounded))
    x, y = np.concatenate(columns), np.concatenate(labels)
    return Task("Adult", x, y, _declared(facts), nominal, (0, 1), test=len(labels[1]))


def census() -> Task:
    """Who is married."""
    people = _data.pums()
    names = ("age", "educ", "income", *MARKS)
    facts = [(0.0, 100.0), (0.5, 16.5), (0.0, 200_000.0), *[_codes(2)] * len(MARKS)]
    x = np.column_stack([people[name] * 1.0 for name in names])
    return Task("PUMS", x, people["married"].astype(int), _declared(facts), tuple(range(3, len(names))), (0, 1))


def cancer() -> Task:
    """Breast cancer, by the ranges in its description: "radius (mean): 6.981 28.11"."""
    found = load_breast_cancer()
    ranges = re.findall(r"\((?:mean|standard error|worst)\):\s+([\d.]+)\s+([\d.]+)", found.DESCR)
    return Task("breast cancer", found.data, found.target, _declared(ranges), classes=(0, 1))  # type: ignore[arg-type]


def digits() -> Task:
    """Ten digits, counts of 0 to 16 in 64 squares."""
    x, y = load_digits(return_X_y=True)
    return Task("digits", x, y, _declared([(0.0, 16.0)] * 64), classes=tuple(range(10)))


def _survey(name: str) -> dict[str, Array]:
    path = _data.cache(f"{name}.npz")
    if not path.exists():
        script = peers.ROOT / "benchmarks" / "peers_models.py"
        found = peers.ask(peers.python("models"), script, {"dataset": name, "to": str(path)})
        if isinstance(found, peers.Failure):
            raise FileNotFoundError(f"{name} of statsmodels: {found.reason}")
    with np.load(path) as arrays:
        return {key: arrays[key] for key in arrays.files}


def marriages() -> Task:
    """Who had an affair (Fair 1978), by the codebook's ranges."""
    found = _data.survey("fair", _survey)
    names = ("rate_marriage", "age", "yrs_married", "children", "religious", "educ", "occupation", "occupation_husb")
    facts = [(1, 5), (17, 45), (0, 25), (0, 6), (1, 4), (9, 20), (1, 6), (1, 6)]
    x = np.column_stack([found[name] for name in names])
    return Task("affairs", x, (found["affairs"] > 0).astype(int), _declared(facts), classes=(0, 1))


def doses() -> Task:
    """The square root of the weekly dose of warfarin."""
    people = patients()
    groups = {"origin": ORIGINS, **GENES}
    codes = [(people.classes[name][:, None] == np.array(values)) @ np.arange(1, len(values) + 1)
             for name, values in groups.items()]  # fmt: skip
    x = np.column_stack([people.numbers, *codes]) * 1.0
    facts = [(-1, 1)] * 3 + [_codes(2)] * 2 + [_codes(len(values) + 1) for values in groups.values()]
    return Task("warfarin", x, np.sqrt(people.dose), _declared(facts), tuple(range(3, 8)), target=(2.0, 10.0))


def visits() -> Task:
    """log(1 + visits to a doctor), of the RAND health insurance experiment."""
    found = _data.survey("randhie", _survey)
    names = ("lncoins", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp")
    facts = [(0, 5), (0, 1), (0, 8), (0, 9), (0, 1), (0, 60), (0, 1), (0, 1), (0, 1)]
    x = np.column_stack([found[name] for name in names])
    return Task("visits", x, np.log1p(found["mdvis"]), _declared(facts), target=(0.0, 5.0))


def diabetes() -> Task:
    """Progression after a year: 442 patients."""
    found = load_diabetes()
    return Task("diabetes", found.data, found.target, _declared([(-0.2, 0.2)] * 10), target=(25.0, 346.0))


TASKS: dict[str, Callable[[], Task]] = {
    "Adult": adult,
    "PUMS": census,
    "breast cancer": cancer,
    "digits": digits,
    "affairs": marriages,
    "warfarin": doses,
    "visits": visits,
    "diabetes": diabetes,
}
