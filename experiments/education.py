"""Does education predict income, and marriage? ``python -m experiments education [--quick]``; PUMS, Fulton County 2000.

The lecture's discussion, answered by running it. *Income*: three private ways to the slope (means of sixteen levels,
sufficient statistics with confidence intervals, noisy gradients), with education alone and with seven more columns.
*Marriage*: the logit of the lecture, with private intervals. *The attack*: least squares released exactly, to somebody
who knows every record but one income; the normal equations give it to the dollar.

PUMS is public, so that the exact values stand beside the private ones. Nothing was tuned; bounds are common knowledge.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LinearRegression as Plain
from sklearn.linear_model import LogisticRegression as PlainLogistic

import discreet as dp
from discreet.linear import LinearRegression, LogisticRegression, inference
from experiments import _results
from experiments._data import pums

EPSILONS, DELTA, SEEDS = (0.1, 0.3, 1.0, 3.0), 1e-6, 20
RICHEST, LEVELS = 200_000.0, range(1, 17)
BOUNDS = {
    "educ": (1, 16),
    "age": (0, 100),
    "sex": (0, 1),
    "married": (0, 1),
    "children": (0, 1),
    "employed": (0, 1),
    "disability": (0, 1),
    "uscitizen": (0, 1),
}
WAYS = ("means of levels", "sufficient statistics", "noisy gradients")
Array = NDArray[np.float64]


def people() -> tuple[Array, Array]:
    """The columns of ``BOUNDS``, and incomes within the public bounds."""
    table = pums()
    rows = np.column_stack([np.clip(table[name], *BOUNDS[name]) for name in BOUNDS]).astype(float)
    return rows, np.clip(table["income"], 0, RICHEST).astype(float)


def _bounds(columns: int) -> tuple[list[float], list[float]]:
    chosen = list(BOUNDS.values())[:columns]
    return [float(low) for low, _ in chosen], [float(high) for _, high in chosen]


def from_means(x: Array, income: Array, epsilon: float, seed: int) -> float:
    """Private counts and means of the levels, and the line through them, weighted by the counts."""
    schema = dp.Schema(educ=dp.Categories(tuple(LEVELS)), income=dp.Bounded(0, RICHEST))
    table = dp.table(pl.DataFrame({"educ": x[:, 0].astype(int), "income": income}), schema=schema)
    found = table.group_by("educ").count().mean("income").release(epsilon=epsilon, delta=DELTA, rng=seed).value
    levels, counts = found["educ"].to_numpy().astype(float), np.clip(found["count"].to_numpy(), 0, None)
    return float(np.polyfit(levels, found["income_mean"].to_numpy(), 1, w=np.sqrt(counts))[0])


def slope(way: str, x: Array, income: Array, epsilon: float, seed: int) -> float:
    """Dollars a level of education, one private fit."""
    if way == WAYS[0]:
        return from_means(x, income, epsilon, seed)
    solver = "statistics" if way == WAYS[1] else "gd"
    model = LinearRegression(
        epsilon=epsilon,
        delta=DELTA,
        bounds=_bounds(x.shape[1]),
        target_bounds=(0, RICHEST),
        solver=solver,
        random_state=seed,
    )
    return float(np.ravel(model.fit(x, income).coef_)[0])


def income_study(rows: Array, income: Array, seeds: int) -> list[dict[str, Any]]:
    """Root mean square error of the slope, by way, columns and epsilon."""
    found = []
    for columns in (1, len(BOUNDS)):
        x = rows[:, :columns]
        truth = float(Plain().fit(x, income).coef_[0])
        for way in WAYS[columns > 1 :]:  # sixteen levels of eight columns would be groups of nobody
            for epsilon in EPSILONS:
                errors = [slope(way, x, income, epsilon, seed) - truth for seed in range(seeds)]
                rmse = float(np.sqrt(np.mean(np.square(errors))))
                found.append({"way": way, "columns": columns, "epsilon": epsilon, "truth": truth, "rmse": rmse})
    return found


def intervals(rows: Array, income: Array, married: Array, seeds: int) -> list[dict[str, Any]]:
    """Private 95 % intervals of both slopes: how long, and how many of them hold the exact fit's slope.

    The exact fit is itself a sample's: an interval that covers the population's slope in 95 of 100 samples is long
    enough for both errors, so that it should hold the exact fit more often.
    """
    x = rows[:, :1]
    exact = {
        "income": float(Plain().fit(x, income).coef_[0]),
        "marriage": float(PlainLogistic(C=1e9).fit(x, married).coef_[0, 0]),
    }
    found = []
    for epsilon in EPSILONS:
        for name, y in (("income", income), ("marriage", married)):
            shared: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "bounds": _bounds(1)}
            lengths, held = [], []
            for seed in range(seeds):
                model: Any = (
                    LinearRegression(**shared, target_bounds=(0, RICHEST), random_state=seed)
                    if name == "income"
                    else LogisticRegression(**shared, classes=(0, 1), random_state=seed)
                )
                told = inference.coefficients(model, x, y)
                lengths.append(float(told.upper[0] - told.lower[0]))
                held.append(bool(told.lower[0] <= exact[name] <= told.upper[0]))
            middle = float(np.median(lengths))
            found.append(
                {
                    "of": name,
                    "epsilon": epsilon,
                    "exact": exact[name],
                    "length": middle if np.isfinite(middle) else None,
                    "held": float(np.mean(held)),
                }
            )
    return found


def attack(rows: Array, income: Array, seeds: int) -> dict[str, float]:
    """One person's income from coefficients and everybody else's records: exact coefficients, then private ones."""
    x = np.column_stack([rows, np.ones(len(rows))])
    gram, others = x.T @ x, x.T @ income
    victims = np.random.default_rng(0).choice(len(rows), seeds, replace=False)

    def recovered(coefficients: Array, victim: int) -> float:
        """From the last normal equation, whose entry of the victim is 1."""
        without = others - x[victim] * income[victim]
        return float((gram @ coefficients - without)[-1])

    exact = np.linalg.solve(gram, others)
    private = []
    for victim in victims:
        model = LinearRegression(
            epsilon=1.0, delta=DELTA, bounds=_bounds(len(BOUNDS)), target_bounds=(0, RICHEST), random_state=int(victim)
        ).fit(rows, income)
        told = np.append(np.ravel(model.coef_), model.intercept_)
        private.append(abs(np.clip(recovered(told, victim), 0, RICHEST) - income[victim]))
    return {
        "exact": float(np.median([abs(recovered(exact, victim) - income[victim]) for victim in victims])),
        "private": float(np.median(private)),
        "guess": float(np.median(np.abs(income[victims] - np.median(income)))),
    }


def show(found: dict[str, Any]) -> None:
    table = Table("", "ε = " + f"{EPSILONS[0]:g}", *(f"{epsilon:g}" for epsilon in EPSILONS[1:]))
    for label, cells in lines(found):
        table.add_row(label, *cells)
    Console().print(table)


def lines(found: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """The table of the page."""
    shown = []
    for columns in (1, len(BOUNDS)):
        for way in WAYS[columns > 1 :]:
            cells = [e for e in found["income"] if (e["way"], e["columns"]) == (way, columns)]
            label = f"income, {columns} column{'s' * (columns > 1)}, {way} (exact {cells[0]['truth']:,.0f})"
            shown.append((label, [f"± {cell['rmse']:,.0f}" for cell in cells]))
    for name, digits in (("income", 0), ("marriage", 4)):
        cells = [e for e in found["intervals"] if e["of"] == name]
        told = [
            "none given" if e["length"] is None else f"{e['length']:,.{digits}f} long, {e['held']:.0%} hold"
            for e in cells
        ]
        shown.append((f"95 % interval of {name} (exact {cells[0]['exact']:,.{digits}f})", told))
    return shown


def plot(found: dict[str, Any]) -> None:
    with _results.figure("education", 2) as (left, right):
        for columns in (1, len(BOUNDS)):
            for way in WAYS[columns > 1 :]:
                cells = [e for e in found["income"] if (e["way"], e["columns"]) == (way, columns)]
                left.plot(EPSILONS, [e["rmse"] for e in cells], marker="o", label=f"{way}, {columns}")
        left.set(xscale="log", yscale="log", xlabel="ε", ylabel="error of the slope, dollars a level")
        left.legend(fontsize=6, frameon=False)
        names = ("exact\ncoefficients", "private\n(ε = 1)", "guess:\nthe median")
        values = [max(found["attack"][key], 0.01) for key in ("exact", "private", "guess")]
        right.bar(names, values, color=["#c2571a", "#1f5fa8", "0.6"])
        right.set(yscale="log", ylabel="one income is off by, dollars")


def main(quick: bool = False) -> None:
    rows, income = people()
    married = rows[:, list(BOUNDS).index("married")].astype(int)
    seeds = 3 if quick else SEEDS
    found = {
        "income": income_study(rows, income, seeds),
        "intervals": intervals(rows, income, married, seeds),
        "attack": attack(rows, income, seeds),
    }
    show(found)
    print(f"One income from the coefficients, off by (median): {found['attack']}")
    _results.save("education", found)
    _results.write_table("education", ["", *(f"ε = {e:g}" for e in EPSILONS)], [[a, *b] for a, b in lines(found)])
    plot(found)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
