"""Hostile neighbours of linear models, end to end: ``python -m searches neighbours_linear --size 5000``.

A case is an estimator, containers of X and y, and two lists of records that differ in one. Any entry of any record may
be odd; the one record by which neighbours differ may also be no row at all. Noise is forced by record and replay: what
meets noise must stay within the declared sensitivity; coefficients, shapes, names, costs, predictions, warnings, errors
and their words must be equal. Types are public, so both neighbours come in containers of the same type; the width of a
list is declared.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from sklearn.base import clone

from discreet import linear
from discreet.auditing import ReplayError, replay
from discreet.linear import inference
from discreet.linear.tabular import TableModel
from discreet.schema import Bounded, Categories, Declaration, Schema
from searches import _cases
from searches._linear_containers import FLOATS, FREE, OBJECTS, ROWS, TYPED, WHOLE

SIZE, SEED = 3000, 13

FEW: dict[str, Any] = {"steps": 3}
SLOPE = linear.CustomLoss(lambda m, y: np.abs(m - y), lambda m, y: np.where(m > y, np.inf, m - y))
SOLVERS: dict[str, dict[str, Any]] = {
    "gd": FEW,
    "sgd": {"steps": 3, "rate": 0.5},
    "svrg": {"rounds": 2, "inner": 2, "rate": 0.5},
    "cd": {"passes": 1},
    "cd, greedy": {"updates": 3, "sampling": "greedy", "box": (1e3, 2e3)},
    "cd, adaptive": {"passes": 1, "clipping": "adaptive"},
    "output": {},
    "objective": {},
    "statistics": {},
}


def _estimators() -> Iterator[tuple[str, Any]]:
    both = {"bounds": (-3.0, [4.0, 5.0])}
    for solver, options in SOLVERS.items():
        asked: dict[str, Any] = {"solver": solver.split(",")[0], "solver_options": options}
        if solver != "statistics":
            yield f"logistic, {solver}", linear.LogisticRegression(**both, **asked, classes=(0, 1))
            yield f"hinge, {solver}", linear.LinearSVC(feature_norm=2.0, smoothing=0.1, **asked, classes=(0, 1))
        if solver in ("gd", "output", "objective"):
            yield f"logistic, {solver}, pure", linear.LogisticRegression(**both, **asked, delta=0.0, classes=(0, 1))
            yield f"softmax, {solver}", linear.LogisticRegression(feature_norm=1.0, classes=(0, 1, 7), **asked)
        if solver not in ("output", "objective"):
            yield f"squares, {solver}", linear.LinearRegression(**both, target_bounds=(0, 2), **asked)
            yield f"lasso, {solver}", linear.Lasso(target_bounds=(-1, 1), feature_norm=1.0, alpha=0.5, **asked)
        if solver not in ("output", "objective", "statistics"):
            yield f"own loss, {solver}", linear.LinearClassifier(SLOPE, feature_norm=1.0, **asked, classes=(0, 1))
    yield (
        "logistic, text classes",
        linear.LogisticRegression(classes=("no", "text"), feature_norm=1.0, solver_options=FEW),
    )
    yield "logistic, nothing declared", linear.LogisticRegression(solver_options=FEW, classes=(0, 1))
    yield "table of categories", TableModel(_schema(Categories([0, 1])), "y", epsilon=1.0, random_state=1)
    yield "table of numbers, by unit", TableModel(_schema(Bounded(0, 2), "u"), "y", epsilon=1.0, random_state=1)


def _schema(goal: Any, unit: str | None = None) -> Declaration:
    return Declaration(Schema(a=Bounded(-3, 4), b=Bounded(-3, 5, missing=0.0), y=goal), unit)


def _with_intervals() -> Iterator[tuple[str, Any]]:
    yield "intervals, squares", linear.LinearRegression(bounds=(-3.0, [4.0, 5.0]), target_bounds=(0, 2))
    yield "intervals, logistic", linear.LogisticRegression(bounds=(-3.0, [4.0, 5.0]), classes=(0, 1))


INTERVALS = dict(_with_intervals())
ESTIMATORS = dict(_estimators()) | INTERVALS

# --- cases -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Two neighbours in one kind of container, for one estimator under one relation."""

    name: str
    containers: tuple[str, str]
    kind: str
    adjacency: str
    first: list[Any]
    second: list[Any]

    def __str__(self) -> str:
        return f"{self.name}; {self.containers[0]} and {self.containers[1]} of {self.kind}; {self.adjacency}"


def _entry(rng: random.Random, kind: str) -> Any:
    usual, odd = ([0, 1, 2, -3], WHOLE) if kind == "whole" else ([0.5, -1.0, 2.0, 1e-162], FLOATS)
    if rng.random() < 0.6:
        return rng.choice(usual)
    return rng.choice([*odd, None] if kind != "anything" else [*FLOATS, *WHOLE, *OBJECTS])


def _label(rng: random.Random, kind: str) -> Any:
    return rng.choice([0, 1]) if rng.random() < 0.7 else _entry(rng, kind)


def _record(rng: random.Random, kind: str) -> Any:
    return [_entry(rng, kind), _entry(rng, kind)], _label(rng, kind)


def cases(size: int, seed: int) -> Iterator[Case]:
    """So many cases: every estimator in turn, in any containers."""
    rng, names = random.Random(seed), list(ESTIMATORS)
    for number in range(size):
        kind = rng.choice(["floats", "whole", "anything"])
        names_of = [*TYPED, *FREE] if kind != "anything" else list(FREE)
        containers = rng.choice(names_of), rng.choice(names_of)
        if "text classes" in names[number % len(names)]:  # numbers for them are refused by their type, if there is one
            containers = containers[0], rng.choice([name for name in names_of if "inferred" not in name])
        listed = containers[0] in ("list", "tuple")
        base = [_record(rng, kind) for _ in range(rng.choice([0, 1, 3, 8]))]
        base += base[:1] * rng.choice([0, 0, 3, 20])
        place, odd = rng.randrange(len(base) + 1), [_record(rng, kind) for _ in range(2)]
        if listed and kind == "anything" and rng.random() < 0.5:
            odd = [(rng.choice(ROWS), label) for _, label in odd]
        model = ESTIMATORS[names[number % len(names)]]
        # Steps of the samplers are stated for add-remove alone: the sampler's event restates them for other relations.
        fixed = (
            isinstance(model, TableModel) or model.solver in ("sgd", "svrg") or names[number % len(names)] in INTERVALS
        )
        adjacency = "add-remove" if fixed else rng.choice(["add-remove", "replace"])
        longer, other = ([*base[:place], record, *base[place:]] for record in odd)
        pair = (longer, base if adjacency == "add-remove" else other)
        yield Case(
            names[number % len(names)], containers, kind, adjacency, *(pair if rng.random() < 0.5 else pair[::-1])
        )


def _run(case: Case, records: list[Any]) -> Any:
    rows, labels = [r for r, _ in records], [y for _, y in records]
    model = ESTIMATORS[case.name]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "No book counts")  # said once in a process, whatever the records
        if isinstance(model, TableModel):
            pairs = [row if isinstance(row, list) and len(row) == 2 else [None, None] for row in rows]
            columns = {"a": [a for a, _ in pairs], "b": [b for _, b in pairs], "y": labels, "u": list(range(len(rows)))}
            fitted = model.fit(columns).estimator
        else:
            make = TYPED | FREE
            fitted = clone(model).set_params(adjacency=case.adjacency, random_state=1)
            if case.containers[0] in ("list", "tuple"):  # which do not say how many columns they have
                fitted.set_params(bounds=(-3.0, [4.0, 5.0]))
            X, y = make[case.containers[0]][0](rows, case.kind), make[case.containers[1]][1](labels, case.kind)
            if case.name in INTERVALS:
                found = inference.coefficients(fitted, X, y)
                return found.estimate, found.lower, found.upper, found.event, [str(w.message) for w in heard]
            fitted.fit(X, y)
        predicted = fitted.predict(np.array([[0.5, 1.0], [-1.0, 3.0]]))
    names = list(getattr(fitted, "feature_names_in_", []))
    public = fitted.event_, fitted.n_features_in_, fitted.n_iter_, fitted.solver_, names
    return fitted.coef_, fitted.intercept_, fitted.regularization_, predicted, public, [str(w.message) for w in heard]


def check(case: Case) -> bool:
    """Replay a case; whether it answered. A difference that its cost does not cover raises ``ReplayError``."""
    try:
        found = replay(lambda records: _run(case, records), case.first, case.second, allow=(Exception,), seeded=True)
        return found.error is None
    except ReplayError as error:
        raise ReplayError(f"{case}: {error}") from None


def main(size: int | None = None, seed: int = SEED) -> None:
    """Try so many cases, print how many of each estimator answered, and raise if any broke its promise."""
    tried: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for number, case in enumerate(cases(size or SIZE, seed)):
        tried[case.name] += 1
        try:
            answered[case.name] += check(case)
        except ReplayError as error:
            broken[str(error)] += 1
            _cases.save("neighbours_linear", [seed, number], str(error))
    for name, count in tried.items():
        print(f"  {name:<32} {count:6} tried {answered[name]:6} answered")
    print(f"neighbours_linear: {tried.total()} tried, {answered.total()} answered, {broken.total()} broken")
    if broken:
        raise AssertionError("\n".join(f"{count} x {message}" for message, count in broken.items()))


def retry(case: list[int]) -> None:
    """The case of a seed and a number."""
    seed, number = case
    check(next(islice(cases(number + 1, seed), number, None)))
