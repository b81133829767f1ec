"""How often 95 % intervals of private coefficients hold a planted truth on real columns: of Adult, PUMS, the warfarin
patients.

Features are real records, drawn with replacement: correlated, skewed, with rare values, some rarely off a bound. The
truth is the line (or the logistic model) that fits a real target in the whole file; targets are drawn from it. Errors
of lines are the real residuals of other records, scaled by up to 1.5 with the first feature, so that their variances
differ. Bounds are those that somebody would declare who has not seen the data. ``given`` is the share of fits whose
intervals are finite, ``covers`` that of given ones that hold the truth, ``wider`` how much wider they are than the
ordinary intervals of the same records. DISCREET_RUNS sets the number of runs, DISCREET_DESIGNS=squares or logistic one
of the models.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from discreet import datasets
from discreet.linear import LinearRegression, LogisticRegression, inference
from experiments import _data, _results

RUNS = int(os.environ.get("DISCREET_RUNS", "200"))
SIZES = ((5_000, 1.0), (20_000, 1.0), (20_000, 4.0))
HEADER = ["data", "coefficients", "n", "ε", "given, %", "covers, %", "± of counting", "times as wide"]
Array = NDArray[np.float64]


class Population(NamedTuple):
    """Real features with public bounds, and a planted truth: coefficients with the intercept last. No residuals:
    logistic.
    """

    name: str
    rows: Array
    bounds: list[tuple[float, float]]
    truth: Array
    residuals: Array | None
    target_bounds: tuple[float, float] | None

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        x = self.rows[rng.integers(0, len(self.rows), n)]
        line = x @ self.truth[:-1] + self.truth[-1]
        if self.residuals is None:
            return x, (rng.random(n) < expit(line)).astype(float)
        low, high = self.bounds[0]
        spread = 0.5 + (np.clip(x[:, 0], low, high) - low) / (high - low)
        return x, line + spread * rng.choice(self.residuals, n)


def columns() -> Iterator[tuple[str, Array, list[tuple[float, float]], Array, tuple[float, float] | None]]:
    """Name, features, their bounds, a real target and its bounds (none: of two classes)."""
    people, census, patients = datasets.adult().train, _data.pums(), _data.warfarin()

    def of(source: dict[str, Any], *names: str) -> Array:
        return np.column_stack([np.asarray(source[name], float) for name in names])

    sex, married = (
        (np.asarray(people["sex"]) == "Male") * 1.0,
        np.asarray(["Married" in status for status in people["marital_status"]]) * 1.0,
    )
    rich = (np.asarray(people["income"]) == ">50K") * 1.0
    usual = [(17.0, 90.0), (1.0, 16.0), (0.0, 99.0)]
    work = of(people, "age", "education_num", "hours_per_week")
    yield "Adult, 3", work, usual, rich, None
    yield (
        "Adult, 6",
        np.column_stack([work, of(people, "capital_loss"), sex, married]),
        [
            *usual,
            (0.0, 5_000.0),
            (0.0, 1.0),
            (0.0, 1.0),
        ],
        rich,
        None,
    )
    yield (
        "Adult, 4",
        np.column_stack([work[:, :2], of(people, "capital_loss"), sex]),
        [
            *usual[:2],
            (0.0, 5_000.0),
            (0.0, 1.0),
        ],
        work[:, 2],
        (0.0, 99.0),
    )
    names = ("age", "educ", "sex", "black", "employed")
    facts = [(0.0, 100.0), (1.0, 16.0), *[(0.0, 1.0)] * 3]
    yield "PUMS, 5", of(census, *names), facts, of(census, "married")[:, 0], None
    income = np.clip(of(census, "income"), 0, 200_000)
    yield (
        "PUMS, 6",
        np.column_stack([of(census, *names), income]),
        [*facts, (0.0, 200_000.0)],
        of(census, "married")[:, 0],
        None,
    )
    yield (
        "PUMS, 5",
        of(census, "educ", "sex", "black", "employed", "married"),
        facts[1:] + facts[-1:],
        of(census, "age")[:, 0],
        (0.0, 100.0),
    )

    def number(name: str) -> Array:
        return np.array([float(entry) if entry not in ("NA", "") else np.nan for entry in patients[name]])

    age = np.array([float(entry[0]) if entry[:1].isdigit() else np.nan for entry in patients["Age"]])
    dose = number("Therapeutic Dose of Warfarin")
    body = np.column_stack(
        [
            age,
            np.clip(number("Height (cm)"), 120, 220),
            np.clip(number("Weight (kg)"), 30, 200),
            (patients["Race"] == "Asian") * 1.0,
            (patients["VKORC1 -1639 consensus"] == "A/A") * 1.0,
        ]
    )
    known = np.isfinite(body).all(axis=1) & np.isfinite(dose)
    body, dose = body[known], np.clip(dose[known], 1, 100)
    facts = [(0.0, 9.0), (120.0, 220.0), (30.0, 200.0), (0.0, 1.0), (0.0, 1.0)]
    yield "warfarin, 5", body, facts, (dose > 35) * 1.0, None
    yield "warfarin, 5", body, facts, np.sqrt(dose), (0.0, 12.0)


@lru_cache(maxsize=1)
def populations() -> tuple[Population, ...]:
    """The planted truths: the fits to the whole files."""
    found = []
    for name, rows, bounds, target, target_bounds in columns():
        table = np.column_stack([rows, np.ones(len(rows))])
        if target_bounds is None:
            found.append(Population(name + ", logistic", rows, bounds, _newton(table, target), None, None))
        else:
            truth = np.linalg.lstsq(table, target, rcond=None)[0]
            residuals = target - table @ truth
            limit = min(target_bounds[1] - (table @ truth).max(), (table @ truth).min() - target_bounds[0]) / 1.5
            # real ones, so that no target is cut
            kept = residuals[np.abs(residuals) <= limit]
            found.append(Population(name + ", line", rows, bounds, truth, kept - kept.mean(), target_bounds))
    return tuple(found)


def _newton(table: Array, target: Array) -> Array:
    centre, scale = table.mean(axis=0), np.maximum(table.std(axis=0), 1e-12)
    centre[-1], scale[-1] = 0.0, 1.0
    rows, weights = (table - centre) / scale, np.zeros(table.shape[1])
    for _ in range(30):
        p = expit(rows @ weights)
        weights -= np.linalg.solve(rows.T @ (rows * (p * (1 - p))[:, None]), rows.T @ (p - target))
    slopes = weights[:-1] / scale[:-1]
    return np.append(slopes, weights[-1] - slopes @ centre[:-1])


def model_of(population: Population, epsilon: float, seed: int) -> Any:
    """An unfitted model that declares the population's public facts."""
    facts = partial(dict, epsilon=epsilon, delta=1e-6, bounds=dict(enumerate(population.bounds)), random_state=seed)
    if population.residuals is None:
        return LogisticRegression(classes=(0, 1), **facts())
    return LinearRegression(target_bounds=population.target_bounds, **facts())


def ordinary(population: Population, x: Array, y: Array) -> Array:
    """Half-widths of the intervals of these records without privacy: the sandwich's."""
    rows = np.column_stack([x, np.ones(len(x))])
    unit = rows.std(axis=0) + rows.mean(axis=0)
    rows = rows / unit
    line = x @ population.truth[:-1] + population.truth[-1]
    p = expit(line)
    logistic = population.residuals is None
    bread = np.linalg.inv(rows.T @ (rows * (p * (1 - p))[:, None] if logistic else rows))
    residuals = y - (p if logistic else line)
    return np.asarray(1.96 * np.sqrt(np.diag(bread @ (rows.T @ (rows * residuals[:, None] ** 2)) @ bread)) / unit)


def covered(population: Population, n: int, epsilon: float, runs: int) -> tuple[Array, Array, Array]:
    """How far estimates are from the truth, runs × coefficients; half-widths of their intervals, and ordinary ones."""
    errors, widths, usual = [], [], []
    for run in range(runs):
        x, y = population.draw(np.random.default_rng(run), n)
        fit = inference.coefficients(model_of(population, epsilon, run), x, y)
        errors.append(np.abs(fit.estimate - population.truth))
        widths.append(fit.upper - fit.estimate)
        usual.append(ordinary(population, x, y))
    return np.array(errors), np.array(widths), np.array(usual)


def main(quick: bool = False) -> None:
    chosen, rows = os.environ.get("DISCREET_DESIGNS"), []
    for population in populations():
        if chosen in ("squares", "logistic") and (population.residuals is None) != (chosen == "logistic"):
            continue
        for n, epsilon in SIZES[:1] if quick else SIZES:
            errors, widths, usual = covered(population, n, epsilon, 4 if quick else RUNS)
            given = np.isfinite(widths)
            share = float((errors <= widths)[given].mean()) if given.any() else float("nan")
            doubt = np.sqrt(max(share * (1 - share), 0.01) / max(given.any(axis=1).sum(), 1))
            wider = np.median((widths / usual)[given]) if given.any() else float("inf")
            row = [population.name, str(len(population.truth)), f"{n:,}", f"{epsilon:g}", f"{100 * given.mean():.0f}"]
            rows.append([*row, f"{100 * share:.1f}", f"{100 * doubt:.1f}", f"{wider:.1f}"])
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    _results.show("95 % intervals on real columns", HEADER, rows)
    _results.write_table("inference_levels", HEADER, rows, mark="coefficients")


if __name__ == "__main__":
    main(_results.begin(__doc__))
