r"""Outputs of many runs as numbers: one score a run, by a rule that the pilot runs choose.

*Numbers*, and arrays, tuples and mappings of them, become vectors; a mapping whose keys vary has, for each key that the
pilot saw, its value and whether it was there. Vectors are projected on the difference of the pilots' means, each
coordinate in units of its variance. *Outcomes* (text, labels, anything of few values) score by how much more often the
pilot saw them on one side, :math:`\log\frac{n_1 + 1}{n_0 + 1}`. What cannot be read so is refused: an audit that did
not see a difference must have looked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CannotJudge", "Scores", "as_rows", "score_by_frequency", "score_outputs"]

Scores = NDArray[np.float64]
_FEW = 8  # values of one number that are outcomes rather than amounts


class CannotJudge(ValueError):
    """There is no verdict: nothing was compared, or nothing could have been found."""


def score_outputs(sides: Sequence[list[Any]], pilot: int) -> list[Scores]:
    """One score an output, for both neighbours; the first ``pilot`` of each side decide how outputs are read."""
    all_mappings = all(isinstance(output, Mapping) for side in sides for output in side)
    rows = _rows_by_key(sides, pilot) if all_mappings else as_rows(sides)
    if rows is None:
        names = [[_name_of_output(output) for output in side] for side in sides]
        _refuse_constant(names)
        return _score_few(names, pilot)
    if not all(np.isfinite(side).all() for side in rows):
        raise CannotJudge("An output is not a finite number, which an audit cannot compare: make it one by read=.")
    bits = [[row.tobytes() for row in side] for side in rows]
    _refuse_constant(bits)
    values = len({name for side in bits for name in side[:pilot]})
    is_vector = rows[0].shape[1] > 1
    if values <= _FEW or (is_vector and values <= pilot // 8):  # outcomes, rather than amounts
        return _score_few(bits, pilot)
    return _project(rows, pilot)


def _refuse_constant(names: Sequence[list[Any]]) -> None:
    if len({name for side in names for name in side}) < 2:
        raise CannotJudge("Every run gave the same output on both neighbours, so that nothing was compared.")


def as_rows(sides: Sequence[list[Any]]) -> list[Scores] | None:
    """All outputs as rows of one length, if they are numbers."""
    try:
        rows = [[_flat(output) for output in side] for side in sides]
    except (TypeError, ValueError):
        return None
    lengths = {len(row) for side in rows for row in side}
    return [np.array(side) for side in rows] if len(lengths) == 1 and lengths != {0} else None


def _rows_by_key(sides: Sequence[list[Mapping[Any, Any]]], pilot: int) -> list[Scores] | None:
    """For each key that the pilots saw: whether it is there, and its numbers; none where keys hold no such numbers."""
    try:
        outputs = [[_numbers_by_key(output) for output in side] for side in sides]
    except (TypeError, ValueError):
        return None
    sizes = {key: len(part) for side in outputs for output in side[:pilot] for key, part in output.items()}
    for output in (output for side in outputs for output in side):
        if any(len(output[key]) != sizes[key] for key in output.keys() & sizes.keys()):
            return None
    return [np.array([_row_of_keys(output, sizes) for output in side]) for side in outputs]


def _numbers_by_key(output: Mapping[Any, Any]) -> dict[str, Scores]:
    return {_name_of_output(key): _flat(value) for key, value in output.items()}


def _row_of_keys(output: Mapping[str, Scores], sizes: Mapping[str, int]) -> Scores:
    """One after the other, for each of the known keys: 1 and its numbers, or zeros."""
    parts = [
        np.append(1.0, output[key]) if key in output else np.zeros(1 + size) for key, size in sorted(sizes.items())
    ]
    return np.concatenate(parts) if parts else np.zeros(1)


def _flat(value: Any) -> Scores:
    """A value's numbers, in order; text is no number, even where it looks like one."""
    if isinstance(value, Mapping):
        raise TypeError("a mapping within an output")
    if isinstance(value, (list, tuple)):
        return np.concatenate([_flat(part) for part in value]) if len(value) else np.zeros(0)
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError("no number")
    return array.astype(np.float64).ravel()


def _name_of_output(value: Any) -> str:
    """A name of an output that shows whatever a reader would see of it: the sign of zero, True or 1."""
    if isinstance(value, Mapping):
        return repr(sorted((_name_of_output(key), _name_of_output(part)) for key, part in value.items()))
    if isinstance(value, (set, frozenset)):
        return repr(sorted(map(_name_of_output, value)))
    if isinstance(value, (list, tuple)):
        return repr([_name_of_output(part) for part in value])
    return repr(value.tolist()) if isinstance(value, np.ndarray) else repr(value)


def _score_few(named: Sequence[list[Any]], pilot: int) -> list[Scores]:
    """Scores of outcomes by how often the pilot saw them, if it saw few different ones."""
    if len({name for side in named for name in side[:pilot]}) > pilot:
        # of 2 * pilot outputs: most were seen once, and none of them tells anything
        raise CannotJudge(
            "Outputs are neither numbers of one shape nor few different outcomes, which an audit cannot compare: say "
            "by read= what to compare."
        )
    return score_by_frequency(named, pilot)


def score_by_frequency(named: Sequence[list[Any]], pilot: int) -> list[Scores]:
    """How much more often the pilot saw an outcome on the second side; 0 for one that it never saw."""
    first, second = (Counter(side[:pilot]) for side in named)
    score = {name: float(np.log((second[name] + 1) / (first[name] + 1))) for name in first | second}
    return [np.array([score.get(name, 0.0) for name in side]) for side in named]


def _project(rows: Sequence[Scores], pilot: int) -> list[Scores]:
    """Vectors along the difference of the pilots' means; one number is its own score."""
    if rows[0].shape[1] == 1:
        return [side[:, 0] for side in rows]
    first, second = (side[:pilot] for side in rows)
    difference = second.mean(axis=0) - first.mean(axis=0)
    variance = first.var(axis=0) + second.var(axis=0)
    # what hardly varies and differs tells the sides apart by itself: it must not drown in what varies
    scale = np.maximum(variance, (0.01 * difference) ** 2)
    direction = np.divide(difference, scale, out=np.zeros_like(difference), where=scale > 0)
    return [side @ direction for side in rows]
