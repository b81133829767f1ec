"""X and y by scikit-learn's rules: types and shapes, which are public, are looked at before the charge, and no value.

``encoding.containers`` then reads every record by itself. How many columns X has must be a public fact: an array states
it, a frame, or ``bounds`` with one entry a feature. A list states nothing: whatever its rows were asked (the first, the
most frequent length), one record could change the answer, and with it how all others are read. Without a declaration it
is refused.

Decision 137.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.containers import UnreadColumn, UnreadRows, as_list, column_types, is_frame, kind_of
from discreet.errors import extra
from discreet.mechanisms.records import check_readable, element_type, readable, row_length

with extra("sklearn"):
    from sklearn.exceptions import DataConversionWarning
    from sklearn.utils.validation import validate_data

__all__ = ["MOST", "check_features", "column", "pair", "table"]

DENSEST = 1 << 33  # entries of a sparse table: what no memory holds is found before the charge
MOST = 1 << 29  # records: so many bounded numbers add up exactly in 64 bits, and certificates are proved for them

_REFUSED = "X has {what}, but must hold real numbers. Encode categories by a public list of levels first."
_NO_WIDTH = (
    "X is a {kind}, which does not say how many columns it has: only its records do, and they are private. Hand over "
    "an array of shape (records, columns) or a frame, or declare bounds= with one entry a feature."
)


def check_features(estimator: Any, X: Any, *, reset: bool = True, declared: int | None = None) -> UnreadRows:
    """X, if its types are numeric and its shape is a table's, by scikit-learn's rules; no value is looked at. A sparse
    matrix is read as the table that it stands for.

    ``declared`` is the number of columns of a list, where something else declares it.
    """
    if isinstance(X, UnreadRows):
        return X
    source = _as_source(X)
    if declared is None and reset and isinstance(source, (list, tuple)):
        raise ValueError(_NO_WIDTH.format(kind=type(source).__name__))
    try:
        checked = validate_data(
            estimator,
            _without_records(source, declared),
            reset=reset,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_samples=0,
        )
    except (TypeError, ValueError) as error:  # their first line tells the kind; arrays are quoted below it
        first = str(error).split("\n", 1)[0].rstrip(":")
        advice = ". Reshape your data to one row per record." if first.startswith("Expected 2D") else ""
        raise type(error)(f"{first}{advice}") from None
    return UnreadRows(source, checked.shape[1])


def _as_source(X: Any) -> Any:
    """X as what its rows are later read from: a frame, a sparse matrix, a list of rows or an array."""
    if hasattr(type(X), "collect_schema") and not hasattr(type(X), "iter_rows"):
        raise ValueError(f"X is a {type(X).__name__}, whose rows are not there yet, but must be: give X.collect().")
    if is_frame(X):
        return X
    source = as_list(X)
    if is_frame(source) or hasattr(source, "tocsr") or isinstance(source, (list, tuple)):
        return source
    check_readable(source, "X")
    return _array(readable(source))


def _array(source: Any) -> NDArray[Any]:
    """What is no frame, as NumPy has it. A typed column, which is no table, is refused as one: its values are unread,
    since one of them may be what NumPy cannot hold.
    """
    if isinstance(source, np.ndarray):
        return source
    is_typed = element_type(source) is not None and hasattr(type(source), "__len__")
    is_column = len(getattr(source, "shape", (0,))) == 1
    return np.empty(len(source)) if is_typed and is_column else np.asarray(source)


def table(estimator: Any, X: Any) -> NDArray[np.float64]:
    """X as floats, in one go, for a fitted model; nothing is protected here."""
    first = next(iter(X), None) if isinstance(X, (list, tuple)) else None
    found = check_features(
        estimator, X, reset=False, declared=estimator.n_features_in_ if first is None else row_length(first)
    )
    if not len(found):
        raise ValueError("Found array with 0 sample(s), but there must be at least one to predict for.")
    return found.read()


def _without_records(source: Any, declared: int | None) -> Any:
    """A table of the same columns without rows, for checks that look at no value."""
    if is_frame(source):
        for name, kind in column_types(source):
            # numbers beside one that is none are objects, or text: by who read them from a file
            if kind_of(kind) not in ("numbers", "objects", "text"):
                raise ValueError(_REFUSED.format(what=f"the column {name!r} of type {kind}"))
        return _without_rows(source)
    if isinstance(source, (list, tuple)):
        return np.empty(0 if declared is None else (0, declared))
    if hasattr(source, "tocsr") and source.ndim == 2:
        _refuse_types(source, "biuf")
        if source.shape[0] * source.shape[1] > DENSEST:
            raise ValueError(f"X is sparse, and is read as a dense table, which may have {DENSEST} entries at most.")
        return np.empty((0, source.shape[1]))
    if not isinstance(source, np.ndarray):
        return source  # which scikit-learn refuses
    _refuse_types(source, "biufcO")  # complex numbers are refused by scikit-learn, in its words
    kind = np.complex128 if source.dtype.kind == "c" else np.float64
    return np.empty((0, *source.shape[1:]), kind) if source.ndim else np.float64(0)


def _refuse_types(array: Any, letters: str) -> None:
    """Refuse an array whose type is of none of NumPy's kinds."""
    if array.dtype.kind not in letters:
        raise ValueError(_REFUSED.format(what=f"type {array.dtype.type.__name__}"))


def _without_rows(frame: Any) -> Any:
    """A frame of the same columns without rows, all of doubles: scikit-learn refuses text."""
    names = [name for name, _ in column_types(frame)]
    if hasattr(frame, "iloc"):  # pandas, whose columns may share a name
        return type(frame)(np.empty((0, len(names))), columns=frame.columns)
    if hasattr(frame, "dtypes"):  # polars
        return type(frame)({name: np.empty(0) for name in names})
    return frame.slice(0, 0)


def column(y: Any, rows: int) -> UnreadColumn:
    """y, if it has one entry a record; no value is looked at."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    found = y if isinstance(y, UnreadColumn) else _column(y)
    if len(found) != rows:
        raise ValueError("X and y have inconsistent numbers of samples, but must have the same number.")
    if rows > MOST:
        raise ValueError("X has more than 2^29 records, the most for which sums are proved.")
    return found


def _column(y: Any) -> UnreadColumn:
    check_readable(y, "y")
    y = as_list(readable(y))
    if isinstance(y, (list, tuple)):
        return UnreadColumn(y, "objects")
    kind = getattr(y, "dtype", getattr(y, "type", None))
    if kind is None or isinstance(y, np.ndarray) or not hasattr(y, "__len__"):
        y = _one_dimensional(np.asarray(y))
        return UnreadColumn(y, kind_of(y.dtype))
    holds = kind_of(kind)
    return UnreadColumn(y, "objects" if holds in ("numbers", "text") else holds)  # of a frame: see ``containers``


def _one_dimensional(y: NDArray[Any]) -> NDArray[Any]:
    """y as a column; a table of one column is taken for it, with scikit-learn's warning."""
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=5)
        return y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"y has {y.ndim} dimensions, but must have one entry per record.")
    return y


def pair(data: Any) -> tuple[Any, Any]:
    """X and y."""
    if not isinstance(data, tuple) or len(data) != 2:
        raise ValueError("data must be the pair (X, y).")
    return data
