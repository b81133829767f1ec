"""The operations of ``discreet.inference``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from discreet import inference as i
from discreet.linear.inference import Coefficients
from discreet.schema import Bounded, Categories, Declaration, Schema
from tests.operations.contract import Case, Log, Spied, Worst

BUDGETS: dict[str, dict[str, float]] = {
    "epsilon": {"epsilon": 1.0},
    "delta": {"epsilon": 1.0, "delta": 1e-6},
    "rho": {"rho": 0.5},
}
VALUES = [0.5, 3.0, 9.0, 12.0, float("nan"), 3.0]
GROUPS = [0, 1, 1, 0, 1, 7]
TIMES = [0.5, 3.0, 4.0, 99.0, float("nan"), 1.0]
EVENTS = [1, 0, 1, 1, 1, 2]
FLAGS = [1, 0, 1, 0, 1, 1]
COUNTS = [1, 0, 9, 2, float("nan"), -1]
ONE_COLUMN = [[0.5], [3.0], [9.0], [12.0], [float("nan")], [3.0]]
CHANCES = [0.5, 0.3, 0.9, 0.01, 0.5, float("nan")]
QUICK = {"simulations": 19}
USUAL = Worst()


def columns(*parts: Any) -> tuple[Any, ...]:
    return parts


def shorter(*parts: Any) -> tuple[Any, ...]:
    return tuple(part[1:] for part in parts)


def spied(data: Any, log: Log) -> Any:
    return tuple(Spied(part, log) for part in data)


def numbers(answer: Any) -> Any:
    """What an answer shows, as one array."""
    if isinstance(answer, i.SurvivalCurve):
        return np.concatenate([answer.survival, answer.lower, answer.hazard, answer.hazard_upper])
    if isinstance(answer, Coefficients):
        return np.nan_to_num(answer.estimate, nan=0.0, posinf=1e6, neginf=-1e6)
    shown = np.array([answer.statistic, answer.p_value, answer.effect, *answer.interval, answer.bias])
    return np.clip(shown, -1e6, 1e6)  # an interval may be the whole line


def column_case(name: str, make: Any, data: Any, neighbour: Any, worst: Worst = USUAL, **options: Any) -> Case:
    return Case(name, make, data, neighbour, worst=fewer_runs(name, worst), result=numbers, **options)


def table_case(name: str, make: Any, *parts: Any, worst: Worst = USUAL) -> Case:
    return column_case(name, make, columns(*parts), shorter(*parts), spy=spied, worst=worst)


def fewer_runs(name: str, worst: Worst) -> Worst:
    """One kind of each family keeps the usual number of runs."""
    return worst if name in ("Welch, epsilon", "KaplanMeier, epsilon") else replace(worst, trials=200)


def spied_beside(data: Any, log: Log) -> Any:
    """The columns beside the features."""
    return (data[0], *(Spied(part, log) for part in data[1:]))


FACTS = Declaration(Schema(arm=Categories([0, 1]), days=Bounded(0, 10)), unit="who")
PATIENTS = {"who": [1, 2, 2, 3, 4, None], "arm": [0, 1, 0, 1, 7, 0], "days": [1.0, 12.0, 3.0, float("nan"), 2.0, 4.0]}
FEWER_PATIENTS = {name: [x for i, x in enumerate(column) if i not in (1, 2)] for name, column in PATIENTS.items()}


def spied_columns(data: Any, log: Log) -> Any:
    return {name: Spied(column, log) for name, column in data.items()}


def always(rows: Any) -> float:
    """A public test that rejects wherever there is a record."""
    return 0.0 if len(rows) else 1.0


OPERATIONS = [
    *(
        column_case(
            f"OneSample, {name}",
            lambda budget=budget: i.OneSample(bounds=(0, 10), null=5.0, **QUICK, **budget),
            VALUES,
            VALUES[:-1],
            worst=Worst([0.0, 10.0], [0.0]),
        )
        for name, budget in BUDGETS.items()
    ),
    column_case(
        "OneSample, replace",
        lambda: i.OneSample(bounds=(0, 10), null=5.0, epsilon=1.0, adjacency="replace", **QUICK),
        VALUES,
        [*VALUES[:-1], 0.0],
        worst=Worst([0.0, 0.0], [0.0, 10.0]),
    ),
    column_case(
        "OneSample, of a public number of records",
        lambda: i.OneSample(bounds=(0, 10), null=5.0, epsilon=1.0, adjacency="replace", n=36, **QUICK),
        VALUES * 6,
        [*(VALUES * 6)[:-1], 0.0],
        sized=True,
        worst=Worst([0.0] * 36, [*[0.0] * 35, 10.0]),
    ),
    table_case(
        "Paired",
        lambda: i.Paired(bounds=(0, 10), epsilon=1.0, **QUICK),
        VALUES,
        VALUES[::-1],
        worst=Worst(([0.0, 10.0], [10.0, 0.0]), ([0.0], [10.0])),
    ),
    *(
        table_case(
            f"Welch, {name}",
            lambda budget=budget: i.Welch(bounds=(0, 10), **QUICK, **budget),
            GROUPS,
            VALUES,
            worst=Worst(([0, 1], [0.0, 10.0]), ([0], [0.0])),
        )
        for name, budget in BUDGETS.items()
    ),
    table_case(
        "Anova",
        lambda: i.Anova(bounds=(0, 10), groups=(0, 1, 7), epsilon=1.0, **QUICK),
        GROUPS,
        VALUES,
        worst=Worst(([0, 1], [0.0, 10.0]), ([0], [0.0])),
    ),
    table_case(
        "Correlation",
        lambda: i.Correlation(bounds=((0, 10), (0, 10)), epsilon=1.0, **QUICK),
        VALUES,
        VALUES[::-1],
        worst=Worst(([0.0, 10.0], [10.0, 0.0]), ([0.0], [10.0])),
    ),
    table_case(
        "AverageEffect",
        lambda: i.AverageEffect(bounds=(0, 10), overlap=0.1, epsilon=1.0, **QUICK),
        FLAGS,
        VALUES,
        CHANCES,
        worst=Worst(([1, 1], [10.0, 10.0], [0.1, 0.1]), ([1], [10.0], [0.1])),
    ),
    table_case(
        "AverageEffect, with a limit and predictions",
        lambda: i.AverageEffect(bounds=(0, 10), overlap=0.1, limit=5.0, predictions=True, epsilon=1.0, **QUICK),
        FLAGS,
        VALUES,
        CHANCES,
        VALUES,
        VALUES,
        worst=Worst(
            ([1, 1], [10.0, 10.0], [0.1, 0.1], [0.0, 0.0], [0.0, 0.0]), ([1], [10.0], [0.1], [0.0], [0.0]), reach=0.9
        ),
    ),
    column_case(
        "GoodnessOfFit",
        lambda: i.GoodnessOfFit(categories=(0.5, 3.0, 9.0), probabilities=(0.2, 0.3, 0.5), epsilon=1.0, **QUICK),
        VALUES,
        VALUES[:-1],
    ),
    column_case("QuantileTest", lambda: i.QuantileTest(bins=(0, 5, 10), epsilon=1.0, **QUICK), VALUES, VALUES[:-1]),
    table_case(
        "Independence", lambda: i.Independence(rows=(0, 1), columns=(0, 1), epsilon=1.0, **QUICK), GROUPS, FLAGS
    ),
    table_case("TwoProportions", lambda: i.TwoProportions(epsilon=1.0, **QUICK), GROUPS, FLAGS),
    table_case("MannWhitney", lambda: i.MannWhitney(bins=(0, 5, 10), epsilon=1.0, **QUICK), GROUPS, VALUES),
    table_case("KolmogorovSmirnov", lambda: i.KolmogorovSmirnov(bins=(0, 5, 10), epsilon=1.0, **QUICK), GROUPS, VALUES),
    table_case("LogRank", lambda: i.LogRank(horizon=4.0, epsilon=1.0, **QUICK), GROUPS, TIMES, EVENTS),
    *(
        table_case(
            f"KaplanMeier, {name}",
            lambda budget=budget: i.KaplanMeier(horizon=4.0, **QUICK, **budget),
            TIMES,
            EVENTS,
        )
        for name, budget in BUDGETS.items()
    ),
    column_case(
        "PoissonRegression",
        lambda: i.PoissonRegression(bounds=[(0, 10)], highest=4, longest=2.0, epsilon=1.0, delta=1e-6),
        (ONE_COLUMN, COUNTS, CHANCES),
        (ONE_COLUMN[1:], COUNTS[1:], CHANCES[1:]),
        spy=spied_beside,
        worst=Worst(([[0.0], [10.0]], [4.0, 4.0], [0.1, 2.0]), ([[0.0]], [4.0], [0.1])),
    ),
    column_case(
        "ProportionalHazards",
        lambda: i.ProportionalHazards(bounds=[(0, 10)], horizon=4.0, pieces=2, epsilon=1.0, delta=1e-6),
        (ONE_COLUMN, TIMES, EVENTS),
        (ONE_COLUMN[1:], TIMES[1:], EVENTS[1:]),
        spy=spied_beside,
        worst=Worst(([[0.0], [10.0]], [1.0, 4.0], [1, 1]), ([[0.0]], [1.0], [1])),
    ),
    *(
        column_case(
            f"Proportion, {name}",
            lambda budget=budget: i.Proportion(n=6, adjacency="replace", **budget),
            FLAGS,
            [*FLAGS[:-1], 0],
            sized=True,
        )
        for name, budget in (("epsilon", {"epsilon": 2.0}), ("delta", {"epsilon": 2.0, "delta": 0.01}))
    ),
    column_case(
        "TestOfTests",
        lambda: i.TestOfTests(test=always, dimension=2, parts=4, epsilon=1.0),
        np.array([[0.5, 0.5], [3.0, -1.0], [0.0, 0.2]]),
        np.array([[0.5, 0.5], [3.0, -1.0]]),
        calls=True,
        worst=Worst(np.array([[0.5, 0.5]]), np.zeros((0, 2))),
    ),
    column_case(
        "ColumnComparison",
        lambda: i.ColumnComparison(FACTS, i.Welch(bounds=(0, 10), epsilon=1.0, **QUICK), ("arm", "days")),
        PATIENTS,
        FEWER_PATIENTS,
        spy=spied_columns,
        sized=True,
        worst=Worst({"who": [1, 2], "arm": [0, 1], "days": [0.0, 10.0]}, {"who": [1], "arm": [0], "days": [0.0]}),
    ),
]
