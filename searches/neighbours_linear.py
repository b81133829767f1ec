"""Hostile neighbours of linear models, end to end: ``python -m searches neighbours_linear --size 5000``.

A case is an estimator, containers of X and y, and two lists of records that differ in one. Any entry of any record may
be odd; the one record by which neighbours differ may also be no row at all. Noise is forced by record and replay: what
meets noise must stay within the declared sensitivity; coefficients, shapes, names, costs, predictions, warnings, errors
and their words must be equal. Types are public, so both neighbours come in containers of the same type; the width of a
list is declared.
"""

from __future__ import annotations

import datetime
import decimal
import math
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.base import clone

from discreet import linear
from discreet.auditing import ReplayError, replay
from discreet.linear.tabular import TableModel
from discreet.schema import Bounded, Categories, Declaration, Schema

SIZE, SEED = 3000, 13


class Failing:
    """An object that fails at whatever is done with it."""

    def __float__(self) -> float:
        raise RuntimeError("a private word")

    __hash__ = __iter__ = __eq__ = __len__ = __repr__ = __str__ = __bool__ = __index__ = __float__  # type: ignore[assignment]


FLOATS = [math.nan, -0.0, math.inf, -math.inf, 5e-324, -2.2e-308, 1e-162, 1e308, -1e308, 1e16, 0.1, 1 + 2.0**-52]
WHOLE = [0, 1, -1, 7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
OBJECTS: list[Any] = [
    None,
    True,
    np.True_,
    np.int64(1),
    np.float32(1),
    decimal.Decimal("1.00"),
    decimal.Decimal("NaN"),
    decimal.Decimal("sNaN"),
    decimal.Decimal("1e9999"),
    10**400,
    1j,
    np.complex128(1j),
    b"1",
    b"\xff",
    bytearray(b"a"),
    (1,),
    [1.0],
    [],
    {},
    set(),
    np.array(1.0),
    np.array([1.0]),
    np.array([1.0, 2.0]),
    np.datetime64("NaT"),
    np.timedelta64(1, "D"),
    np.longdouble("1e4000"),
    datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    pd.NA,
    pd.NaT,
    pd.Timestamp("2020-01-01", tz="UTC"),
    Failing(),
    Failing,
    "text",
    "",
    "1",
    "no",
    "٥",
    "é",
    "1_0",
    "nan",
    "\x00",
]
ROWS: list[Any] = [
    None,
    1.0,
    "ab",
    b"\xff\xfe",
    [],
    [1.0],
    [1.0, 2.0, 3.0],
    {1: 2, 3: 4},
    {1.0, 2.0},
    np.array([1, 2]),
    np.zeros((2, 2)),
    np.array(["a", "b"]),
    pd.Series([1.0, 2.0]),
    Failing(),
    (1.0, None),
    [[1.0], [2.0]],
]

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
            yield f"logistic, {solver}", linear.LogisticRegression(**both, **asked)
            yield f"hinge, {solver}", linear.LinearSVC(feature_norm=2.0, smoothing=0.1, **asked)
        if solver in ("gd", "output", "objective"):
            yield f"logistic, {solver}, pure", linear.LogisticRegression(**both, **asked, delta=0.0)
            yield f"softmax, {solver}", linear.LogisticRegression(feature_norm=1.0, classes=(0, 1, 7), **asked)
        if solver not in ("output", "objective"):
            yield f"squares, {solver}", linear.LinearRegression(**both, target_bounds=(0, 2), **asked)
            yield f"lasso, {solver}", linear.Lasso(feature_norm=1.0, alpha=0.5, **asked)
        if solver not in ("output", "objective", "statistics"):
            yield f"own loss, {solver}", linear.LinearClassifier(SLOPE, feature_norm=1.0, **asked)
    yield (
        "logistic, text classes",
        linear.LogisticRegression(classes=("no", "text"), feature_norm=1.0, solver_options=FEW),
    )
    yield "logistic, nothing declared", linear.LogisticRegression(solver_options=FEW)
    yield "table of categories", TableModel(_schema(Categories([0, 1])), "y", epsilon=1.0, random_state=1)
    yield "table of numbers, by unit", TableModel(_schema(Bounded(0, 2), "u"), "y", epsilon=1.0, random_state=1)


def _schema(goal: Any, unit: str | None = None) -> Declaration:
    return Declaration(Schema(a=Bounded(-3, 4), b=Bounded(-3, 5, missing=0.0), y=goal), unit)


ESTIMATORS = dict(_estimators())

# --- containers ------------------------------------------------------------------------------------------------------


def _objects(values: list[Any]) -> Any:
    out = np.empty(len(values), object)
    for i, value in enumerate(values):
        out[i] = value
    return out


def _object_rows(rows: list[Any]) -> Any:
    out = np.empty((len(rows), 2), object)
    for i, row in enumerate(rows):
        out[i, 0], out[i, 1] = row
    return out


def _floats(values: list[Any]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def _framed(
    column: Callable[[list[Any], str], Any], frame: Callable[[dict[str, Any]], Any]
) -> Callable[[list[Any], str], Any]:
    return lambda rows, kind: frame({name: column([row[i] for row in rows], kind) for i, name in enumerate("ab")})


def _nullable(values: list[Any], kind: str) -> Any:
    return pd.array(values, "Int64" if kind == "whole" else "Float64")


def _arrow(values: list[Any], kind: str) -> Any:
    return pa.array(values, pa.int64() if kind == "whole" else pa.float64(), from_pandas=False)


def _arrow_pandas(values: list[Any], kind: str) -> Any:
    return pd.Series(_arrow(values, kind).to_pandas(types_mapper=pd.ArrowDtype))


def _polars(values: list[Any], kind: str) -> Any:
    return pl.Series(values, dtype=pl.Int64 if kind == "whole" else pl.Float64)


def _list(values: list[Any], kind: str) -> Any:
    return list(values)


Container = Callable[[list[Any], str], Any]
TYPED: dict[str, tuple[Container, Container]] = {  # of X, of y
    "array": (
        lambda rows, kind: np.array([_floats(r) for r in rows], np.float64).reshape(-1, 2),
        lambda y, kind: np.array(_floats(y), np.float64),
    ),
    "pandas": (
        _framed(lambda v, kind: pd.Series(_floats(v), dtype="float64"), pd.DataFrame),
        lambda y, kind: pd.Series(_floats(y), dtype="float64"),
    ),
    "nullable": (_framed(_nullable, pd.DataFrame), lambda y, kind: pd.Series(_nullable(y, kind))),
    "Arrow of pandas": (_framed(_arrow_pandas, pd.DataFrame), _arrow_pandas),
    "polars": (_framed(_polars, pl.DataFrame), _polars),
    "pyarrow": (_framed(_arrow, pa.table), _arrow),
}
FREE: dict[str, tuple[Container, Container]] = {
    "list": (_list, _list),
    "tuple": (lambda rows, kind: tuple(rows), lambda y, kind: tuple(y)),
    "objects": (lambda rows, kind: _object_rows(rows), lambda y, kind: _objects(y)),
    "object columns": (
        _framed(lambda v, kind: pd.Series(_objects(v), dtype=object), pd.DataFrame),
        lambda y, kind: pd.Series(_objects(y), dtype=object),
    ),
}

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
        at, names_of = (TYPED | FREE, [*TYPED, *FREE]) if kind != "anything" else (FREE, list(FREE))
        containers = rng.choice(names_of), rng.choice(names_of)
        assert set(containers) <= set(at)
        listed = containers[0] in ("list", "tuple")
        base = [_record(rng, kind) for _ in range(rng.choice([0, 1, 3, 8]))]
        base += base[:1] * rng.choice([0, 0, 3, 20])
        place, odd = rng.randrange(len(base) + 1), [_record(rng, kind) for _ in range(2)]
        if listed and kind == "anything" and rng.random() < 0.5:
            odd = [(rng.choice(ROWS), label) for _, label in odd]
        model = ESTIMATORS[names[number % len(names)]]
        # Steps of the samplers are stated for add-remove alone: the sampler's event restates them for other relations.
        fixed = isinstance(model, TableModel) or model.solver in ("sgd", "svrg")
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
        if isinstance(model, TableModel):
            pairs = [row if isinstance(row, list) and len(row) == 2 else [None, None] for row in rows]
            columns = {"a": [a for a, _ in pairs], "b": [b for _, b in pairs], "y": labels, "u": list(range(len(rows)))}
            fitted = model.fit(columns).estimator
        else:
            make = TYPED | FREE
            fitted = clone(model).set_params(adjacency=case.adjacency, random_state=1)
            if case.containers[0] in ("list", "tuple"):  # which do not say how many columns they have
                fitted.set_params(bounds=(-3.0, [4.0, 5.0]))
            fitted.fit(make[case.containers[0]][0](rows, case.kind), make[case.containers[1]][1](labels, case.kind))
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


def main(size: int | None = None) -> None:
    """Try so many cases, print how many of each estimator answered, and raise if any broke its promise."""
    tried: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for case in cases(size or SIZE, SEED):
        tried[case.name] += 1
        try:
            answered[case.name] += check(case)
        except ReplayError as error:
            broken[str(error)] += 1
    for name, count in tried.items():
        print(f"  {name:<32} {count:6} tried {answered[name]:6} answered")
    print(f"neighbours_linear: {tried.total()} tried, {answered.total()} answered, {broken.total()} broken")
    if broken:
        raise AssertionError("\n".join(f"{count} x {message}" for message, count in broken.items()))
