"""Declared inequalities between columns of numbers or days, such as ``"age >= education_num + 5"``.

They are public facts. Cells that cannot satisfy one are structural zeros: nothing is drawn there, and rows that lie
there are not counted. Within the cells that can, rows that do not satisfy it are drawn again a few times, and what is
left is moved to the nearest numbers above that do. A missing entry satisfies every inequality.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Inequality", "contradiction", "lift", "parse", "tightest_ranges", "violates"]

Floats = NDArray[np.float64]
Ranges = Mapping[str, tuple[Fraction, Fraction]]
_OPERATOR = re.compile(r"\s*(<=|>=|<|>)\s*")
_OFFSET = re.compile(r"^(.*?)\s*([+-])\s*([0-9]+(?:\.[0-9]*)?)$")
_FORM = "write 'a >= b', or 'a >= b + 5' (also with <=, <, > and -)"


@dataclass(frozen=True)
class Inequality:
    """``left - right >= least``; strict ones are of whole numbers, so that they are this with one more."""

    left: str
    right: str
    least: Fraction
    text: str


def parse(text: Any, whole: Mapping[str, bool]) -> Inequality:
    """An inequality as users write it; ``whole`` says of each column of numbers whether its numbers are whole.

    >>> found = parse("age > school + 4", {"age": True, "school": True})
    >>> found.left, found.right, int(found.least)
    ('age', 'school', 5)
    """
    sides = _OPERATOR.split(text.strip()) if isinstance(text, str) else []
    if len(sides) != 3:
        raise ValueError(f"constraints holds {text!r}: {_FORM}.")
    first, operator, rest = sides
    second, offset = _second_side(rest, whole)
    for name in (first, second):
        if name not in whole:
            raise ValueError(
                f"constraints holds {text!r}, but {name!r} is no modelled column of numbers or dates: {_FORM}."
            )
    if first == second:
        raise ValueError(f"constraints holds {text!r}, which compares {first!r} with itself.")
    left, right, least = (first, second, offset) if operator[0] == ">" else (second, first, -offset)
    both_whole = whole[left] and whole[right]
    if operator in ("<", ">") and not both_whole:
        raise ValueError(
            f"constraints holds {text!r}, but {operator!r} is for dates and for whole = true in the schema: "
            f"write '{operator}='."
        )
    if both_whole:
        least = Fraction(math.floor(least) + 1 if operator in ("<", ">") else math.ceil(least))
    return Inequality(left, right, least, text)


def _second_side(rest: str, columns: Collection[str]) -> tuple[str, Fraction]:
    """A column and what is added to it; a column of the whole name goes first."""
    if rest in columns or not (match := _OFFSET.match(rest)):
        return rest, Fraction(0)
    name, sign, number = match.groups()
    return name, Fraction(number) * (1 if sign == "+" else -1)


def tightest_ranges(inequalities: Sequence[Inequality], ranges: Ranges) -> Ranges | None:
    """What each column can be, given what the others can; none where the inequalities contradict each other."""
    low, high = ({name: pair[k] for name, pair in ranges.items()} for k in (0, 1))
    for _ in range(len(ranges) + 1):  # the longest chain without a repetition, and one pass that must change nothing
        before = dict(low), dict(high)
        for each in inequalities:
            low[each.left] = max(low[each.left], low[each.right] + each.least)
            high[each.right] = min(high[each.right], high[each.left] - each.least)
        if any(low[name] > high[name] for name in ranges):
            return None
        if before == (low, high):
            return {name: (low[name], high[name]) for name in ranges}
    return None


def contradiction(inequalities: Sequence[Inequality], ranges: Ranges) -> list[str]:
    """A smallest set of inequalities that cannot hold together within the ranges; empty where all can."""
    if tightest_ranges(inequalities, ranges) is not None:
        return []
    needed = list(inequalities)
    for each in inequalities:
        fewer = [other for other in needed if other is not each]
        if tightest_ranges(fewer, ranges) is None:
            needed = fewer
    return [each.text for each in needed]


def violates(inequalities: Sequence[Inequality], numbers: Mapping[str, Floats]) -> NDArray[np.bool_]:
    """Which rows break one of them."""
    broken = np.zeros(len(numbers[inequalities[0].left]), np.bool_)
    for each in inequalities:
        broken |= numbers[each.left] < numbers[each.right] + float(each.least)
    return broken


def lift(
    inequalities: Sequence[Inequality], numbers: Mapping[str, Floats], ranges: Ranges, whole: Mapping[str, bool]
) -> dict[str, Floats]:
    """The least numbers from these on that satisfy all; ``ranges`` are tightest, so that none leaves its own.

    For u the upper ends, u_right + least <= u_left: a left side is never raised above its end.
    """
    found = {name: np.clip(x, float(ranges[name][0]), float(ranges[name][1])) for name, x in numbers.items()}
    for _ in ranges:
        for each in inequalities:
            needed = found[each.right] + float(each.least)
            needed = np.ceil(needed) if whole[each.left] else needed
            raised = np.maximum(found[each.left], needed)  # NaN where either is missing
            found[each.left] = np.where(np.isnan(raised), found[each.left], raised)
    return found
