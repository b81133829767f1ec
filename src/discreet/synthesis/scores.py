r"""The two scores of SDMetrics' quality report, computed here, so that users can compare: shapes and pair trends.

==================  ============================================================================================
column shapes       mean over columns of 1 - KS statistic (numbers) or 1 - total variation (categories)
column pair trends  mean over pairs of 1 - \|r - r'\|/2 (two columns of numbers, r Pearson's correlation), or of
                    1 - total variation of the joint counts (any other pair), numbers cut into ten bins first
==================  ============================================================================================

As in their package (0.32), the ten bins of a column of numbers span *each table's own* range, so that pair trends of
tables with other extremes compare other bins; and a score that is not defined (a column that is constant, or missing
everywhere) is left out of the mean. Two differences: nothing is drawn at random from large tables, and a category that
the real table does not have gets no weight of 10⁻⁶. These scores read real rows: they are not private.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.synthesis.coded_table import CodedTable
from discreet.workloads.workload import Floats

__all__ = ["column_shapes", "correlation", "pair_trends"]

_EDGES = 10


def column_shapes(real: CodedTable, synthetic: CodedTable) -> dict[str, float]:
    """The score of each column; NaN where it is not defined."""
    numbers = set(real.numeric)
    return {name: (_ks if name in numbers else _categories)(real, synthetic, name) for name in real.schema}


def pair_trends(real: CodedTable, synthetic: CodedTable) -> dict[tuple[str, str], float]:
    """The score of each pair of columns; NaN where it is not defined."""
    numbers, cut = set(real.numeric), [{name: _own_bins(t, name) for name in t.schema} for t in (real, synthetic)]
    found = {}
    for a, b in combinations(real.schema, 2):
        if a in numbers and b in numbers:
            found[a, b] = 1 - abs(correlation(real, a, b) - correlation(synthetic, a, b)) / 2
        else:
            width = 1 + max(int(t[b].max(initial=0)) for t in cut)
            found[a, b] = 1 - _variation(*(t[a] * width + t[b] for t in cut))
    return found


def correlation(table: CodedTable, a: str, b: str) -> float:
    """Pearson's, over the rows that have both; NaN where one is constant."""
    x, y = table.rows.numbers(a), table.rows.numbers(b)
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    if len(x) < 2 or x.min() == x.max() or y.min() == y.max():
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


def _ks(real: CodedTable, synthetic: CodedTable, name: str) -> float:
    """One minus the largest distance between the two distribution functions."""
    one, two = (np.sort(v[~np.isnan(v)]) for v in (t.rows.numbers(name) for t in (real, synthetic)))
    if not (len(one) and len(two)):
        return math.nan
    places = np.concatenate([one, two])
    shares = [np.searchsorted(v, places, side="right") / len(v) for v in (one, two)]
    return 1 - float(np.abs(shares[0] - shares[1]).max())


def _categories(real: CodedTable, synthetic: CodedTable, name: str) -> float:
    """One minus total variation, over the rows that are not missing."""
    last = real.size(name) - 1
    one, two = (t.codes[name][t.codes[name] < last] for t in (real, synthetic))
    return 1 - _variation(one, two) if len(one) and len(two) else math.nan


def _own_bins(table: CodedTable, name: str) -> NDArray[np.int64]:
    """A category's code; for numbers, ten bins between the least and the largest, the last for what is missing."""
    if name not in table.numeric:
        return table.codes[name]
    values = table.rows.numbers(name)
    present = values[~np.isnan(values)]
    edges: Any = np.histogram_bin_edges(present, bins=_EDGES) if len(present) else np.zeros(_EDGES + 1)
    return np.asarray(np.digitize(values, edges), np.int64)


def _variation(one: NDArray[np.int64], two: NDArray[np.int64]) -> float:
    """Total variation between the shares of whole numbers."""
    size = int(max(one.max(initial=0), two.max(initial=0))) + 1
    shares: list[Floats] = [np.bincount(v, minlength=size) / len(v) for v in (one, two)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)
