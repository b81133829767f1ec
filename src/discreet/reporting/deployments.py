"""Published deployments with their parameters, as a scale beside a total: is this much?

The figures are those that the organisations published: Apple (2017), "Differential privacy overview"; Aktay et al.
(2020), "Google COVID-19 community mobility reports"; Messing et al. (2020), "Facebook privacy-protected full URLs data
set"; US Census Bureau (2021), 17.14 for persons and 2.47 for housing units. They protect different units over
different times, so that they are a scale to look at and not a standard to meet.
"""

from __future__ import annotations

from typing import Any

__all__ = ["DEPLOYMENTS", "scale"]

DEPLOYMENTS = (
    {"what": "Facebook, full URLs data set", "epsilon": 0.45, "delta": 1e-5, "protects": "one action of a user"},
    {"what": "Apple, usage of health types", "epsilon": 2.0, "delta": 0.0, "protects": "a user's day, on the device"},
    {"what": "Google, COVID-19 mobility reports", "epsilon": 2.64, "delta": 0.0, "protects": "a user's day"},
    {"what": "Apple, emoji suggestions", "epsilon": 4.0, "delta": 0.0, "protects": "a user's day, on the device"},
    {"what": "Apple, crashes of Safari", "epsilon": 8.0, "delta": 0.0, "protects": "a user's day, on the device"},
    {"what": "Apple, new words of QuickType", "epsilon": 16.0, "delta": 0.0, "protects": "a user's day, on the device"},
    {"what": "US census 2020, redistricting data", "epsilon": 19.61, "delta": 1e-10, "protects": "one person"},
)


def scale(name: str, epsilon: float | None, delta: float, unit: str) -> list[dict[str, Any]]:
    """The deployments and this book, from the smallest epsilon to the largest; a total that is infinite comes last.

    >>> [row["what"] for row in scale("census", 2.5, 1e-6, "one record") if row["epsilon"] < 2.7]
    ['Facebook, full URLs data set', 'Apple, usage of health types', 'census: this book so far',
    'Google, COVID-19 mobility reports']
    """
    here = {"what": f"{name}: this book so far", "epsilon": epsilon, "delta": delta, "protects": unit, "here": True}
    rows: list[dict[str, Any]] = [{**row, "here": False} for row in DEPLOYMENTS]
    return sorted([*rows, here], key=lambda row: float("inf") if row["epsilon"] is None else row["epsilon"])
