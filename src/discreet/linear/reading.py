"""What users hand over as X and y, made arrays of: errors tell of types and shapes, which are public, never of values.

One odd entry is private. In an array of objects an entry that is no number becomes NaN, and its record contributes nothing;
an error would say that it is there. A column, or an array, whose *type* is not numeric is refused: types are public.
"""

from __future__ import annotations

import math
import warnings
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import extra

with extra("sklearn"):
    from sklearn.exceptions import DataConversionWarning
    from sklearn.utils.validation import validate_data

__all__ = ["column", "number", "numbers", "table"]

_NUMERIC = "biuf"
_REFUSED = "X has {what}, but must hold real numbers. Encode categories by a public list of levels first."


def number(value: Any) -> float:
    """The number that a value is or spells, and NaN for anything else.

    >>> number("2.5"), number(None), number(10**400)
    (2.5, nan, nan)
    """
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Objects as floats: what is no number, text that spells one included, is NaN."""
    flat = [number(value) if isinstance(value, (Real, np.number)) else math.nan for value in values.ravel().tolist()]
    return np.array(flat, np.float64).reshape(values.shape)


def table(estimator: Any, X: Any, *, reset: bool) -> NDArray[np.float64]:
    """X as floats, checked by scikit-learn's rules. When fitting, NaN and emptiness are not errors: they are private."""
    try:
        rows = validate_data(estimator, _numeric(X), reset=reset, dtype=np.float64, ensure_all_finite=False,
                             ensure_min_samples=0 if reset else 1)
    except (TypeError, ValueError) as error:  # their first line tells the kind; arrays are quoted below it
        first = str(error).split("\n", 1)[0].rstrip(":")
        advice = ". Reshape your data to one row a record." if first.startswith("Expected 2D") else ""
        raise type(error)(f"{first}{advice}") from None
    return np.asarray(rows, np.float64)


def _numeric(X: Any) -> Any:
    """X, if its types are numeric, with odd objects made NaN."""
    if hasattr(X, "dtypes"):
        for name, kind in zip(X.columns, X.dtypes, strict=True):
            if not _counts(kind):
                raise ValueError(_REFUSED.format(what=f"the column {name!r} of type {kind}"))
        return X
    if hasattr(X, "tocsr"):
        return X  # sparse: refused by scikit-learn, by name
    values = np.asarray(X)
    if values.dtype == object:
        return numbers(values)
    if values.dtype.kind not in _NUMERIC + "c":
        raise ValueError(_REFUSED.format(what=f"type {values.dtype.type.__name__}"))
    return values


def _counts(kind: Any) -> bool:
    """Whether a frame's column type holds numbers, in pandas or polars."""
    if hasattr(kind, "is_numeric"):
        return bool(kind.is_numeric()) or str(kind) == "Boolean"
    return getattr(kind, "kind", "O") in _NUMERIC


def column(y: Any, rows: int) -> NDArray[Any]:
    """y as an array with one entry a record."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=3)
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"y has {values.ndim} dimensions, but must have one entry a record.")
    if len(values) != rows:
        raise ValueError("X and y have inconsistent numbers of samples.")
    return values
