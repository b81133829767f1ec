"""UCI Adult on the public domain of ``adult_domain.json``: whole-number codes, the same for us and for every peer.

All 48,842 records, fifteen columns. The bins come from the description of the data set and round numbers, never from
the records. Needs numpy only, so that it runs in the peers' environments too.

>>> sizes()["sex"], len(sizes())
(2, 15)
>>> codes()["income"].shape
(48842,)
"""

from __future__ import annotations

import json
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DOMAIN = Path(__file__).with_name("adult_domain.json")
Codes = dict[str, NDArray[np.int64]]


@cache
def _columns() -> dict[str, dict[str, list[Any]]]:
    columns: dict[str, dict[str, list[Any]]] = json.loads(DOMAIN.read_text())["columns"]
    return columns


@cache
def sizes() -> dict[str, int]:
    """How many cells each column has."""
    return {name: len(c["categories"]) if "categories" in c else len(c["edges"]) - 1 for name, c in _columns().items()}


def codes() -> Codes:
    """Every record, a code a column: the donors' training part (32,561 records) first, then their test part."""
    from discreet.datasets import adult

    people = adult()
    return {name: _coded(np.concatenate([people.train[name], people.test[name]]), name) for name in sizes()}


def _coded(values: NDArray[Any], name: str) -> NDArray[np.int64]:
    facts = _columns()[name]
    if "edges" in facts:
        return np.searchsorted(facts["edges"][1:-1], values, side="right").astype(np.int64)
    place = {category: code for code, category in enumerate(facts["categories"])}
    return np.array([place[value] for value in values], np.int64)


def schema() -> Any:
    """What our synthesiser is told: each column holds the codes 0, 1, ... of its domain."""
    from discreet.schema import Categories, Schema

    return Schema({name: Categories(range(size)) for name, size in sizes().items()})


def frame() -> Any:
    """The codes as a pandas frame."""
    import pandas as pd

    return pd.DataFrame(codes())


def marginal_error(real: Codes, synthetic: Codes, ways: int = 3) -> float:
    """Total variation between two tables' marginals on ``ways`` columns, averaged over every choice of columns."""
    return float(np.mean([_variation(real, synthetic, chosen) for chosen in combinations(sizes(), ways)]))


def _variation(real: Codes, synthetic: Codes, chosen: tuple[str, ...]) -> float:
    shape = tuple(sizes()[name] for name in chosen)
    shares = []
    for table in (real, synthetic):
        cell = np.ravel_multi_index([table[name] for name in chosen], shape)
        shares.append(np.bincount(cell, minlength=int(np.prod(shape))) / len(cell))
    return float(np.abs(shares[0] - shares[1]).sum() / 2)
