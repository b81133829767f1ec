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
    rows = _scores_by_key(sides, pilot) if all(map(_mappings, sides)) else as_rows(sides)
    if rows is None:
        texts = [[_name_of_output(output) for output in side] for side in sides]
        _refuse_constant(texts)
        return _outcomes(texts, pilot)
    if not all(np.isfinite(side).all() for side in rows):
        raise CannotJudge("An output is not a finite number, which an audit cannot compare: make it one by read=.")
    named = [[row.tobytes() for row in side] for side in rows]
    _refuse_constant(named)
    values = len({name for side in named for name in side[:pilot]})
    if values <= _FEW or (rows[0].shape[1] > 1 and values <= pilot // 8):
        return _outcomes(named, pilot)
    return _project(rows, pilot)


def _refuse_constant(named: Sequence[list[Any]]) -> None:
    if len({name for side in named for name in side}) < 2:
        raise CannotJudge("Every run gave the same output on both neighbours, so that nothing was compared.")


def _mappings(side: list[Any]) -> bool:
    return all(isinstance(output, Mapping) for output in side)


def as_rows(sides: Sequence[list[Any]]) -> list[Scores] | None:
    """All outputs as rows of one length, if they are numbers."""
    try:
        rows = [[_flat(output) for output in side] for side in sides]
    except (TypeError, ValueError):
        return None
    lengths = {len(row) for side in rows for row in side}
    return [np.array(side) for side in rows] if len(lengths) == 1 and lengths != {0} else None


def _scores_by_key(sides: Sequence[list[Mapping[Any, Any]]], pilot: int) -> list[Scores] | None:
    """For each key that the pilots saw: whether it is there, and its numbers."""
    named = [[{_name_of_output(key): value for key, value in output.items()} for output in side] for side in sides]
    try:
        parts = [[{key: _flat(value) for key, value in output.items()} for output in side] for side in named]
    except (TypeError, ValueError):
        return None
    sizes = {key: len(part) for side in parts for output in side[:pilot] for key, part in output.items()}
    if any(len(o[key]) != sizes[key] for side in parts for o in side for key in o.keys() & sizes.keys()):
        return None

    def row(output: dict[str, Scores]) -> Scores:
        found = [[float(key in output), *output.get(key, np.zeros(sizes[key]))] for key in sorted(sizes)]
        return np.array([number for part in found for number in part] or [0.0])

    return [np.array([row(output) for output in side]) for side in parts]


def _flat(value: Any) -> Scores:
    """A value's numbers, in order; text is no number, even where it looks like one."""
    if isinstance(value, Mapping):
        raise TypeError("a mapping within an output")
    if isinstance(value, (list, tuple)):
        return np.concatenate([_flat(part) for part in value]) if len(value) else np.zeros(0)
    found = np.asarray(value)
    if found.dtype.kind not in "biuf":
        raise TypeError("no number")
    return found.astype(np.float64).ravel()


def _name_of_output(value: Any) -> str:
    """A name of an output that shows whatever a reader would see of it: the sign of zero, True or 1."""
    if isinstance(value, Mapping):
        return repr(sorted((_name_of_output(key), _name_of_output(part)) for key, part in value.items()))
    if isinstance(value, (set, frozenset)):
        return repr(sorted(map(_name_of_output, value)))
    if isinstance(value, (list, tuple)):
        return repr([_name_of_output(part) for part in value])
    return repr(value.tolist()) if isinstance(value, np.ndarray) else repr(value)


def _outcomes(named: Sequence[list[Any]], pilot: int) -> list[Scores]:
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
    if rows[0].shape[1] == 1:
        return [side[:, 0] for side in rows]
    first, second = (side[:pilot] for side in rows)
    moved = second.mean(axis=0) - first.mean(axis=0)
    variance = first.var(axis=0) + second.var(axis=0)
    # what hardly varies and differs tells the sides apart by itself: it must not drown in what varies
    weight = np.maximum(variance, (0.01 * moved) ** 2)
    return [side @ np.where(weight > 0, moved / np.where(weight > 0, weight, 1.0), 0.0) for side in rows]
