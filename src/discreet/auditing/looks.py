r"""The ways an audit looks at outputs, of which the pilot runs choose one.

*Half-lines* of the output, or outcomes of few values, as ``reading`` scores them. *Repeated values*: outputs that come
again bit for bit, as raw data does among noise. *A discriminant* of bits, sizes and signs. *The wrapping*: label, type
and shape of a release. What shows in none of them is not seen: a "consistent" audit says no more than that.

Whichever is chosen, the runs after the pilot are counted against one fixed set, so that the bound's confidence is
exact. Another look than half-lines is taken only where it stands out in pilot runs that did not fit it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.auditing.counting import Question, Side, promising
from discreet.auditing.discriminant import fit_discriminant
from discreet.auditing.reading import CannotJudge, Scores, as_rows, score_by_frequency, score_outputs

__all__ = ["choose_look"]

_STANDS_OUT = 2.5  # standard errors between the sides' counts, in pilot runs that fitted nothing
_GAIN = 1.5  # how much more than half-lines another look must promise


def choose_look(
    sides: Sequence[list[Any]], wrappings: Sequence[list[str]], pilot: int, asked: Question
) -> tuple[str, list[Scores], float, Side]:
    """The look's name, the scores of all runs of both sides, and the threshold and side that promise most."""
    try:
        scores = score_outputs(sides, pilot)
    except CannotJudge:
        if (best := _best(_other_looks(sides, wrappings, pilot), pilot, asked, 0.0)) is None:
            raise
        return best
    threshold, side = promising([each[:pilot] for each in scores], asked)
    base = _hope([each[:pilot] for each in scores], threshold, side, asked)[0]
    best = _best(_other_looks(sides, wrappings, pilot), pilot, asked, base)
    return best or ("half-lines", scores, threshold, side)


def _best(
    looks: Iterator[tuple[str, list[Scores]]], pilot: int, asked: Question, base: float
) -> tuple[str, list[Scores], float, Side] | None:
    best = None
    for name, scores in looks:
        held_out = [each[pilot // 2 : pilot] for each in scores]
        threshold, side = promising(held_out, asked)
        hope, apart = _hope(held_out, threshold, side, asked)
        if apart >= _STANDS_OUT and hope > _GAIN * base:
            base, best = hope / _GAIN, (name, scores, threshold, side)
    return best


def _hope(pilot: Sequence[Scores], threshold: float, side: Side, asked: Question) -> tuple[float, float]:
    """The bound that counts like the pilot's would give, half a count aside, and how many standard errors apart the
    sides' counts are.
    """
    size = len(pilot[0])
    above = [int((each > threshold).sum()) for each in pilot]
    likely, rare = replace(asked, trials=size).hits_of_side(above, side)
    expected = [round(asked.trials * (n + 0.5) / (size + 1)) for n in above]
    return asked.bound(expected, side), (likely - rare) / math.sqrt(likely + rare + 1)


def _other_looks(
    sides: Sequence[list[Any]], wrappings: Sequence[list[str]], pilot: int
) -> Iterator[tuple[str, list[Scores]]]:
    """Each fitted on the first half of the pilot."""
    half = pilot // 2
    if len({text for side in wrappings for text in side}) > 1:
        yield "label, type and shape", score_by_frequency(wrappings, half)
    if (rows := as_rows(sides)) is None:
        return
    if not all(np.isfinite(side).all() for side in rows):
        return
    named = [[row.tobytes() for row in side] for side in rows]
    seen = Counter(name for side in named for name in side[:half])
    if max(seen.values()) > 1:
        yield "repeated values", score_by_frequency(named, half)
    score = fit_discriminant(rows[0][:half], rows[1][:half])
    yield "a discriminant of bits, sizes and signs", [score(side) for side in rows]
