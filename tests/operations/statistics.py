"""The operations of ``discreet.statistics``."""

from __future__ import annotations

import numpy as np

from discreet import statistics as s
from tests.operations.contract import Case, Worst

VALUES = [0.5, 3.0, 9.0, 12.0, float("nan"), 3.0]
FEWER, OTHER = VALUES[:-1], [*VALUES[:-1], -5.0]
WORDS = ["a", "b", "a", "c", "a"]
ROWS = np.array([[0.5, 0.5], [3.0, -1.0], [0.0, 0.2]])
WORST = np.array([[0.5, 0.5], [3.0, -1.0], [0.0, -9.0]])
FULL, LESS = [0.0, 10.0], [0.0]  # one record less, at the edge of the bounds
LOW, HIGH = [-5.0] * 6, [*[-5.0] * 5, 12.0]  # one that moves from edge to edge
PERIODS = [0, 4, 2, 7, float("nan"), 2.5, 0]
AMOUNTS = [(0, 5.0), (4, 99.0), (2, float("nan")), (9, 1.0), (1, 8.0)]
BUDGETS = {"epsilon": {"epsilon": 1.0}, "delta": {"epsilon": 1.0, "delta": 1e-6}, "rho": {"rho": 0.5}}
PUBLIC = {"epsilon": 1.0, "adjacency": "replace", "n": 6}

UNIT = Worst(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 0.0]]))
REPLACED = {s.Count: Worst([*VALUES[:-1], float("nan")], OTHER), s.Sum: Worst(LOW, HIGH)}

OPERATIONS = [
    *(
        Case(
            f"{kind.__name__}, {name}",
            lambda kind=kind, facts=facts, budget=budget: kind(**facts, **budget),
            VALUES,
            FEWER,
            worst=Worst(FULL, LESS, trials=400 if kind is s.Quantiles else 500),
        )
        for kind, facts in (
            (s.Count, {}),
            (s.Sum, {"bounds": (0, 10)}),
            (s.Mean, {"bounds": (0, 10)}),
            (s.Variance, {"bounds": (0, 10)}),
            (s.Histogram, {"bins": (0, 5, 10)}),
            (s.Cdf, {"bins": (0, 5, 10)}),
            (s.Bounds, {"smallest": -1, "largest": 3}),
            (s.Quantiles, {"q": (0.25, 0.5), "bounds": (0, 10), "steps": 64}),
        )
        for name, budget in BUDGETS.items()
    ),
    *(
        Case(
            f"{kind.__name__}, public size",
            lambda kind=kind: kind(bounds=(0, 10), **PUBLIC),
            VALUES,
            OTHER,
            sized=True,
            worst=Worst(LOW, HIGH),
        )
        for kind in (s.Mean, s.Variance)
    ),
    *(
        Case(
            f"{kind.__name__}, replace",
            lambda kind=kind, facts=facts: kind(**facts, epsilon=1.0, adjacency="replace"),
            VALUES,
            OTHER,
            worst=REPLACED.get(kind, Worst([1.0] * 6, [*[1.0] * 5, 9.0])),
        )
        for kind, facts in (
            (s.Count, {}),
            (s.Sum, {"bounds": (-1, 10)}),
            (s.Histogram, {"bins": (0, 5, 10)}),
            (s.Quantile, {"bounds": (0, 10), "steps": 64}),
            (s.Mode, {"bins": (0, 5, 10)}),
        )
    ),
    Case(
        "Quantile",
        lambda: s.Quantile(q=0.9, bounds=(0, 10), steps=64, epsilon=1.0),
        VALUES,
        FEWER,
        worst=Worst(trials=400),
    ),
    Case(
        "Quantile, rho",
        lambda: s.Quantile(q=0.9, bounds=(0, 10), steps=64, rho=0.1),
        VALUES,
        FEWER,
        worst=Worst(trials=400),
    ),
    *(
        Case(
            f"RunningCount, {name}, {method}",
            lambda budget=budget, method=method: s.RunningCount(periods=5, method=method, **budget),
            PERIODS,
            PERIODS[:-1],
        )
        for name, budget in BUDGETS.items()
        for method in ("tree", "square-root")
    ),
    *(
        Case(
            f"RunningSum, {name}, {adjacency}",
            lambda budget=budget, adjacency=adjacency: s.RunningSum(
                periods=5, bounds=(-1, 10), adjacency=adjacency, **budget
            ),
            AMOUNTS,
            AMOUNTS[:-1] if adjacency == "add-remove" else [*AMOUNTS[:-1], (1, -9.0)],
            worst=Worst([(0, 10.0)], [])
            if adjacency == "add-remove"
            else Worst([(0, 10.0)], [(4, 10.0)], reach=0.55),  # a record that moves is paid for as two
        )
        for name, budget in BUDGETS.items()
        for adjacency in ("add-remove", "replace")
    ),
    Case(
        "RunningCount, replace",
        lambda: s.RunningCount(periods=5, rho=0.5, adjacency="replace"),
        PERIODS,
        [*PERIODS[:-1], 3],
        worst=Worst(reach=0.75),  # a record that moves is paid for as two
    ),
    Case("Mode", lambda: s.Mode(categories="abc", epsilon=1.0), WORDS, WORDS[:-1]),
    Case("Mode, rho", lambda: s.Mode(categories="abc", rho=0.5), WORDS, WORDS[:-1]),
    Case("TopK", lambda: s.TopK(k=2, categories="abc", epsilon=1.0), WORDS, WORDS[:-1]),
    Case("VectorMean", lambda: s.VectorMean(dimension=2, norm=1.0, rho=0.5), ROWS, ROWS[:-1], worst=UNIT),
    Case(
        "VectorMean, public size",
        lambda: s.VectorMean(dimension=2, norm=1.0, rho=0.5, adjacency="replace", n=3),
        ROWS,
        WORST,
        sized=True,
        worst=Worst(ROWS * [[1], [1], [45]], WORST),
    ),
    Case("Covariance", lambda: s.Covariance(bounds=((0, 1), (-1, 1)), rho=0.5), ROWS, ROWS[:-1], worst=UNIT),
    Case("BoundedVarianceMean", lambda: s.BoundedVarianceMean(sd=2.0, n=6, epsilon=1.0), VALUES, FEWER),
    Case(
        "BoundedVarianceMean, vectors",
        lambda: s.BoundedVarianceMean(sd=2.0, n=6, dimension=2, rho=0.5),
        ROWS,
        ROWS[:-1],
        worst=Worst([[0.0, 0.0], [1e9, 0.0]], [[0.0, 0.0]]),
    ),
    Case("Count of households", lambda: s.Count(epsilon=1.0, unit="household"), VALUES, FEWER),
]
