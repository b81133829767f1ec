"""Rows are read apart: what is made of a row is the same, bit for bit, whichever other rows there are.

A case is a table of random size, shape and spread, one row of it that leaves, and one way in which rows become
something: a model's predictions as scores and votes take them, bins, leaves, nearest centres, clipped and scaled rows,
encoded columns. What is made of every other row must be equal in both tables, to the last bit.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.encoder import Encoder
from discreet.encoding.rowwise import map_rows
from discreet.estimators.bins import Bins
from discreet.estimators.kmeans import _nearest
from discreet.estimators.sums import cut, in_ball, scale_to_unit
from discreet.linear.kernels import scores
from discreet.schema import Bounded, Categories, Declaration, Schema
from searches._progress import with_progress

SIZE, SEED = 1000, 30
Rows = NDArray[np.float64]
Way = Callable[[Rows], Any]


def main(size: int | None = None, seed: int = SEED) -> None:
    """Try ``size`` tables, each with every way; raise at the first row that another one moved."""
    rng, tried = np.random.default_rng(seed), Counter[str]()
    for _ in with_progress("rows", range(SIZE if size is None else size), 100):
        rows = _table(rng)
        leaves = int(rng.integers(len(rows)))
        for name, way in _ways(rng, rows.shape[1]).items():
            check(name, way, rows, leaves)
            tried[name] += 1
    print(f"rows: {dict(sorted(tried.items()))}; no row moved another")


def check(name: str, way: Way, rows: Rows, leaves: int) -> None:
    """Refuse a way in which the row that leaves moves what is made of another."""
    there = np.asarray(way(rows))
    gone = np.asarray(way(np.delete(rows, leaves, axis=0)))
    if np.delete(there, leaves, axis=0).tobytes() != gone.tobytes():
        raise AssertionError(f"{name}: without row {leaves} of {rows.shape} other rows are read differently")


def _table(rng: np.random.Generator) -> Rows:
    """Rows that are ordinary, tied, huge or equal to each other."""
    n, d = int(rng.integers(1, 700)), int(rng.integers(1, 40))
    rows = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4)
    if rng.random() < 0.3:
        rows = np.round(rows)
    if rng.random() < 0.3:
        rows[rng.integers(n, size=n // 2)] = rows[0]
    return rows


def _ways(rng: np.random.Generator, d: int) -> dict[str, Way]:
    low, high = -np.ones(d), np.ones(d)
    centres, weights = rng.normal(size=(5, d)), rng.normal(size=(d, 3))
    bins = Bins.from_bounds(low, high, 7)
    ways: dict[str, Way] = {
        "scaled rows": lambda rows: scale_to_unit(rows, low, high),
        "rows in a ball": lambda rows: cut(in_ball(scale_to_unit(rows, low, high), 1.0), 2**20),
        "bins": lambda rows: bins.codes(rows),
        "nearest centres": lambda rows: _nearest(rows, centres),
        "scores of a linear model": lambda rows: scores(np.ascontiguousarray(rows), weights),
        "exponentials": lambda rows: 1 / (1 + np.exp(-np.clip(rows, -700, 700))),
        "lengths": lambda rows: np.sqrt((rows * rows).sum(axis=1)),
        "encoded numbers": lambda rows: _encoded(rows).unit_scaled("number"),
        "encoded categories": lambda rows: _encoded(rows).codes("category"),
    }
    for name, model in _models(rng, d).items():
        ways[name] = lambda rows, model=model: map_rows(model, rows, len(rows))  # type: ignore[misc]
    return ways


def _encoded(rows: Rows) -> Any:
    schema = Schema(number=Bounded(-1, 1), category=Categories([0, 1, 2]))
    return Encoder(Declaration(schema)).read({"number": rows[:, 0], "category": np.round(rows[:, -1])})


def _models(rng: np.random.Generator, d: int) -> dict[str, Way]:
    """What a user predicts with: products of several kinds, whose largest entry is the class."""
    weights, hidden = rng.normal(size=(d, 4)), rng.normal(size=(d, 16))
    # two classes that tie but for rounding, which is where a product of another shape decides otherwise
    weights[:, 1] = weights[:, 0] * (1 + 1e-15)

    def neighbours() -> Way:
        from sklearn.neighbors import KNeighborsClassifier

        places = rng.normal(size=(30, d))
        model = KNeighborsClassifier(3).fit(places, rng.integers(3, size=30))
        return lambda rows: model.predict(rows)

    def network() -> Way:
        import torch

        layers = torch.nn.Sequential(torch.nn.Linear(d, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
        return lambda rows: layers(torch.as_tensor(rows, dtype=torch.float32)).detach()[:, 0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "largest of a product": lambda rows: (rows @ weights).argmax(axis=1),
            "a product": lambda rows: (rows @ weights)[:, 0],
            "two layers": lambda rows: np.tanh(rows @ hidden) @ hidden[0],
            "single precision": lambda rows: (rows.astype(np.float32) @ weights.astype(np.float32))[:, 2],
            "nearest neighbours": neighbours(),
            "a network": network(),
        }
