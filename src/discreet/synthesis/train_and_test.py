"""Train on synthetic rows, test on real ones: whether a table teaches what the real one does."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import extra
from discreet.schema import Categories
from discreet.synthesis.coded_table import CodedTable

__all__ = ["check_target", "correct", "train_classifier"]


def check_target(table: Any, target: str) -> None:
    """Refuse a target that is no column of categories."""
    if not isinstance(table[target], Categories):
        raise ValueError(f"target is {target!r}, whose values are numbers, but must be a column of categories.")


def features(table: CodedTable, target: str) -> Any:
    """A sparse row of zeros and ones a record: one column for each cell of each other column, and one more for each
    column of numbers, from 0 to 1.
    """
    from scipy.sparse import csr_matrix, hstack

    parts: list[Any] = []
    for name in table.schema:
        if name != target:
            code, rows = table.codes[name], np.arange(len(table))
            parts.append(csr_matrix((np.ones(len(table)), (rows, code)), shape=(len(table), table.size(name))))
    numbers = [name for name in table.numeric if name != target]
    parts += [csr_matrix(np.nan_to_num(table.rows.unit_scaled(name), nan=0.5)[:, None]) for name in numbers]
    return hstack(parts, format="csr")


def train_classifier(table: CodedTable, target: str, rows: slice = slice(None)) -> Any:
    """A plain logistic regression of the target's categories on everything else, without privacy of its own."""
    with extra("sklearn"):
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

    labels = table.codes[target][rows]
    known = labels < table.size(target) - 1
    if len(np.unique(labels[known])) < 2:
        return None  # one category, or none: there is nothing to learn
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # close enough for a yardstick
        return LogisticRegression(max_iter=300).fit(features(table, target)[rows][known], labels[known])


def correct(model: Any, table: CodedTable, target: str, rows: slice = slice(None)) -> NDArray[np.bool_]:
    """Which rows a model gets right; a row whose target is missing counts as wrong."""
    truth = table.codes[target][rows]
    if model is None or not len(truth):
        return np.zeros(len(truth), bool)
    known = truth < table.size(target) - 1
    return np.asarray((model.predict(features(table, target)[rows]) == truth) & known)
