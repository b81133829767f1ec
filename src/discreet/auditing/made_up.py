"""Neighbours for an audit that nobody's data is needed for: made up from public facts, at their edges.

A record counts most where it is at the edge of what is declared. So all made-up records are at the lower ends, and the
one in which the neighbours differ is at the upper ends, in a category of its own. It is not always the worst case: a
bound that stays far below the claim may say so, or that the neighbours are near.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from discreet import statistics
from discreet.adjacency import Adjacency
from discreet.schema import Bounded, Categories, Column, Dates, Declaration, Times, Unlisted

__all__ = ["STATISTICS", "made_up_statistic", "made_up_table"]

STATISTICS: dict[str, type] = {
    "count": statistics.Count,
    "sum": statistics.Sum,
    "mean": statistics.Mean,
    "variance": statistics.Variance,
    "quantile": statistics.Quantile,
    "quantiles": statistics.Quantiles,
    "histogram": statistics.Histogram,
    "cdf": statistics.Cdf,
    "mode": statistics.Mode,
    "top_k": statistics.TopK,
    "vector_mean": statistics.VectorMean,
    "covariance": statistics.Covariance,
}
"""The statistics that data can be made up for."""

_RECORDS = 5


def made_up_statistic(name: str, facts: Mapping[str, Any]) -> tuple[Any, list[Any], list[Any]]:
    """A statistic, and two neighbours under its adjacency.

    >>> operation, data, neighbour = made_up_statistic("mean", {"bounds": [0, 10], "epsilon": 1.0})
    >>> data, neighbour
    ([0, 0, 0, 0, 0, 10], [0, 0, 0, 0, 0])
    """
    if name not in STATISTICS:
        raise ValueError(f"statistic.name is {name!r}, but must be one of {', '.join(STATISTICS)}.")
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}
    try:
        operation = STATISTICS[name](**given)
    except TypeError:
        raise ValueError(f"{name} does not take what it was given: {', '.join(facts) or 'nothing'}.") from None
    low, high = _edges(name, facts)
    adjacency = Adjacency(facts.get("adjacency", Adjacency.ADD_REMOVE))
    if adjacency is Adjacency.REPLACE:
        records = _size(facts)
        return operation, [*[low] * (records - 1), high], [low] * records
    if adjacency is Adjacency.ADD_REMOVE:
        return operation, [*[low] * _RECORDS, high], [low] * _RECORDS
    raise ValueError(f"adjacency is {str(adjacency)!r}, for which no neighbours are made up: give the data yourself.")


def _size(facts: Mapping[str, Any]) -> int:
    """As many records as were declared, or a few."""
    return int(facts.get("n") or _RECORDS + 1)


def _edges(name: str, facts: Mapping[str, Any]) -> tuple[Any, Any]:
    """Two records as far apart as the facts allow."""
    if name == "vector_mean":
        zero = [0.0] * int(facts["dimension"])
        return zero, [float(facts["norm"]), *zero[1:]]
    if name == "covariance":
        return [low for low, _ in facts["bounds"]], [high for _, high in facts["bounds"]]
    if "bounds" in facts:
        return facts["bounds"][0], facts["bounds"][1]
    if "categories" in facts:
        return facts["categories"][0], facts["categories"][-1]
    if "bins" in facts:
        edges = facts["bins"]
        return edges[0], math.nextafter(float(edges[-1]), -math.inf)
    if name == "count":  # of a record that is none, and one that is
        return (math.nan, 1.0) if facts.get("adjacency") == "replace" else (1.0, 1.0)
    raise ValueError(f"{name} states no bounds, categories or bins, so that no records are made up at their ends.")


def made_up_table(declared: Declaration) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Columns of made-up rows, and the same with a unit more, of as many rows as a unit may have.

    >>> from discreet.schema import Schema
    >>> made_up_table(Declaration(Schema(age=Bounded(0, 90), sex=Categories(["f", "m"]))))[1]
    {'age': [0.0, 0.0, 0.0, 0.0, 0.0, 90.0], 'sex': ['f', 'f', 'f', 'f', 'f', 'm']}
    """
    most = declared.max_rows_per_unit if declared.unit is not None else 1
    rows = _RECORDS if most == "auto" else most  # how many count is chosen privately: more than one can tell
    more: dict[str, list[Any]] = {}
    for name, column in declared.schema.items():
        low, high = _ends(column)
        more[name] = [low] * _RECORDS + [high] * rows
    if declared.unit is not None:
        more[declared.unit] = [*range(_RECORDS), *[_RECORDS] * rows]
    return {name: values[:_RECORDS] for name, values in more.items()}, more


def _ends(column: Column) -> tuple[Any, Any]:
    if isinstance(column, Bounded):
        return column.low, column.high
    if isinstance(column, Categories):
        return column.values[0], column.values[-1]
    if isinstance(column, (Dates, Times)):
        return column.first, column.last
    if isinstance(column, Unlisted):
        return "a", "b"
    raise ValueError(f"A column is declared as {type(column).__name__}, for which no values are made up.")


def frame_read(frame: Any) -> Any:
    """What is compared of a table's answer: the numbers of each row and which are missing, named by its text."""
    import narwhals as nw

    found = nw.from_native(frame, eager_only=True)
    texts = [name for name in found.columns if not found.schema[name].is_numeric()]
    if not texts:
        return [_as_number(value) for name in found.columns for value in found[name].to_list()]
    named: dict[Any, Any] = {}
    for row in found.rows(named=True):
        key = tuple(row[name] for name in texts)
        named.setdefault(key, []).extend(_as_number(row[name]) for name in row if name not in texts)
    return named


def _as_number(value: Any) -> tuple[float, float]:
    """A number, and whether it is missing: nothing is not zero."""
    missing = value is None or math.isnan(value)
    return 0.0 if missing else float(value), float(missing)
