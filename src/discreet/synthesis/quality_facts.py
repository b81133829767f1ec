"""How good a synthetic table is: marginals, correlations, ranges, what it teaches, and SDMetrics' two scores.

Every figure here compares with real rows. None is private: they are for who may see the data anyway. ``QualityCheck``
(``synthesis.quality_check``) releases the averages privately, for a share of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wasserstein_distance

from discreet.encoding import Encoder
from discreet.schema import Bounded, Categories, Declaration, Schema
from discreet.synthesis.coded_table import BINS, CodedTable, Columns, as_declared, choices, paired_counts
from discreet.synthesis.scores import column_shapes, correlation, pair_trends
from discreet.synthesis.train_and_test import check_target, correct, train_classifier
from discreet.workloads import AllRanges

__all__ = ["marginal_errors", "quality", "range_errors"]

WAYS = (1, 2, 3)
_SPIKE, _MOST_SPIKES = 0.05, 5  # the share of records from which a single number is shown, and how many of a column
_MOST_WORST = 3


def quality(
    real: Any,
    synthetic: Any,
    *,
    schema: Schema | Declaration | str | PathLike[str],
    target: str | None = None,
    holdout: Any = None,
    bins: int = BINS,
) -> dict[str, Any]:
    """Facts about a synthetic table beside the real one: **not private**.

    Tables are mappings of columns, frames or files, read by ``schema``; numbers fall into ``bins`` of equal width
    between their bounds. With a ``target`` (a column of categories) a logistic regression is trained on the synthetic
    and on the real rows and tested on the real rows ``holdout``; without these, every other real row tests, and the
    rest trains.

    >>> from discreet.schema import Bounded, Categories
    >>> table = {"age": [20, 40, 60, 80], "sex": ["f", "m", "f", "m"]}
    >>> facts = quality(table, table, schema=Schema(age=Bounded(0, 100), sex=Categories(["f", "m"])))
    >>> facts["marginals"]["2"]["mean"], facts["sdmetrics"]["score"], facts["private"]
    (0.0, 1.0, False)
    """
    facts = as_declared(schema)
    if target is not None:
        check_target(facts.schema, target)
    read = Encoder(facts, one_row_a_unit=False).read
    one, two = (CodedTable(read(data), bins) for data in (real, synthetic))
    if not (len(one) and len(two)):
        raise ValueError("A table has no rows, so that there is nothing to compare.")
    return {
        "private": False,
        "rows": {"real": len(one), "synthetic": len(two)},
        "columns": (columns := _columns(one, two)),
        "worst_columns": _worst(columns),
        "numbers": {name: _numbers(one, two, name) for name in one.numeric},
        "marginals": {str(ways): _summary(marginal_errors(one, two, ways)) for ways in WAYS if ways <= len(one.schema)},
        "correlation": _correlations(one, two),
        "ranges": {name: {"mean": mean, "max": most} for name, (mean, most) in range_errors(one, two).items()},
        "sdmetrics": _sdmetrics(one, two),
        "learning": None if target is None else _learning(one, two, target, holdout, facts),
    }


def marginal_errors(real: CodedTable, synthetic: CodedTable, ways: int) -> dict[Columns, float]:
    """Total variation of every marginal on so many columns (of a public sample of them, where they are many)."""
    found = {}
    for names in choices(real.schema, ways):
        one, two = paired_counts(real, synthetic, names)
        found[names] = float(np.abs(one / len(real) - two / len(synthetic)).sum() / 2)
    return found


def range_errors(real: CodedTable, synthetic: CodedTable) -> dict[str, tuple[float, float]]:
    """Mean and largest error of all ranges of bins, as shares of the rows, for every column of numbers."""
    found = {}
    for name in real.numeric:
        one, two = paired_counts(real, synthetic, (name,))
        gap = AllRanges(real.bins).apply((one / len(real) - two / len(synthetic))[: real.bins])
        found[name] = (float(np.abs(gap).mean()), float(np.abs(gap).max()))
    return found


def _columns(real: CodedTable, synthetic: CodedTable) -> list[dict[str, Any]]:
    """Each column's error, with the shares of its cells, the last of which is what is missing."""
    found = []
    for name in real.schema:
        one, two = paired_counts(real, synthetic, (name,))
        shares = one / len(real), two / len(synthetic)
        found.append(
            {
                "name": name,
                "kind": "numbers" if name in real.numeric else "categories",
                "labels": _labels(real.schema[name]),
                "error": float(np.abs(shares[0] - shares[1]).sum() / 2),
                "spikes": _spikes(real, synthetic, name) if name in real.numeric else [],
                "real": shares[0].tolist(),
                "synthetic": shares[1].tolist(),
            }
        )
    return found


def _worst(columns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The columns of the largest errors, the largest first."""
    falling = sorted(columns, key=lambda column: -column["error"])
    return [{"name": column["name"], "error": column["error"]} for column in falling[:_MOST_WORST]]


def _present(table: CodedTable, name: str) -> NDArray[np.float64]:
    numbers = table.rows.numbers(name)
    return numbers[~np.isnan(numbers)]


def _spikes(real: CodedTable, synthetic: CodedTable, name: str) -> list[dict[str, float]]:
    """Single numbers that many records share, in either table, with their place among the bins."""
    column = real.schema[name]
    assert isinstance(column, Bounded)
    shares = []
    for table in (real, synthetic):
        values, counts = np.unique(_present(table, name), return_counts=True)
        shares.append(dict(zip(values.tolist(), (counts / len(table)).tolist(), strict=True)))
    common = {value for each in shares for value, share in each.items() if share >= _SPIKE}
    found = sorted(common, key=lambda value: (-max(each.get(value, 0.0) for each in shares), value))[:_MOST_SPIKES]
    return [
        {
            "value": value,
            "place": (value - column.low) / (column.high - column.low) * real.bins,
            "real": shares[0].get(value, 0.0),
            "synthetic": shares[1].get(value, 0.0),
        }
        for value in sorted(found)
    ]


def _numbers(real: CodedTable, synthetic: CodedTable, name: str) -> dict[str, Any]:
    """Means, and the Wasserstein distance in real standard deviations; none where it is not defined."""
    one, two = _present(real, name), _present(synthetic, name)
    means = [float(np.mean(values)) if len(values) else None for values in (one, two)]
    known = len(one) > 0 and len(two) > 0 and float(one.std()) > 0
    distance = float(wasserstein_distance(one, two) / one.std()) if known else None
    return {"mean": {"real": means[0], "synthetic": means[1]}, "distance": distance}


def _labels(column: Any) -> list[str] | None:
    """What the cells of a column of categories stand for; none for bins of numbers."""
    return [*map(str, column.labels), "missing"] if isinstance(column, Categories) else None


def _summary(errors: Mapping[Columns, float]) -> dict[str, Any]:
    worst = max(errors, key=errors.__getitem__)
    return {
        "count": len(errors),
        "mean": float(np.mean(list(errors.values()))),
        "max": errors[worst],
        "worst": list(worst),
    }


def _correlations(real: CodedTable, synthetic: CodedTable) -> dict[str, Any]:
    """Pearson's matrices of the columns of numbers, and how far they are apart."""
    names = real.numeric
    matrices = [
        [[1.0 if a == b else _none_for_nan(correlation(table, a, b)) for b in names] for a in names]
        for table in (real, synthetic)
    ]
    gaps = [
        abs(r - s)
        for i, (row, other) in enumerate(zip(*matrices, strict=True))
        for r, s in list(zip(row, other, strict=True))[:i]
        if r is not None and s is not None
    ]
    return {
        "columns": names,
        "real": matrices[0],
        "synthetic": matrices[1],
        "mean": float(np.mean(gaps)) if gaps else None,
        "max": max(gaps, default=None),
    }


def _sdmetrics(real: CodedTable, synthetic: CodedTable) -> dict[str, float | None]:
    shapes, trends = (_mean(scored(real, synthetic).values()) for scored in (column_shapes, pair_trends))
    both = [score for score in (shapes, trends) if score is not None]
    return {"shapes": shapes, "pair_trends": trends, "score": _mean(both)}


def _learning(real: CodedTable, synthetic: CodedTable, target: str, holdout: Any, facts: Declaration) -> dict[str, Any]:
    """Accuracy on real rows that trained nothing: of the synthetic rows' model, the real rows', and the commonest
    category of the real rows.
    """
    train, test, rows = slice(0, None, 2), real, slice(1, None, 2)
    if holdout is not None:
        train, rows = slice(None), slice(None)
        test = CodedTable(Encoder(facts, one_row_a_unit=False).read(holdout), real.bins)
    if not len(test.codes[target][rows]):
        raise ValueError("There are no real rows to test on: give holdout=, or more rows.")
    commonest = int(np.bincount(real.codes[target][train], minlength=real.size(target))[:-1].argmax())
    return {
        "target": target,
        "synthetic": float(correct(train_classifier(synthetic, target), test, target, rows).mean()),
        "real": float(correct(train_classifier(real, target, train), test, target, rows).mean()),
        "commonest": float((test.codes[target][rows] == commonest).mean()),
    }


def _none_for_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def _mean(values: Any) -> float | None:
    """Of those that are defined."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else None
