"""Hypothesis strategies for pairs of neighbours, with the values on which private pipelines break.

>>> neighbours(awkward_floats()).example  # doctest: +ELLIPSIS
<bound method ...>
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import numpy as np

from discreet.errors import MissingExtra

try:
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    raise MissingExtra("This needs a test dependency: pip install hypothesis") from error

__all__ = ["awkward_floats", "awkward_integers", "neighbours"]

T = TypeVar("T")


def awkward_floats() -> st.SearchStrategy[float]:
    """Ordinary numbers, NaN, infinities, zeros of both signs, denormals, the largest doubles, near-integers."""
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        np.nan,
        np.inf,
        -np.inf,
        5e-324,
        -5e-324,
        sys.float_info.max,
        -sys.float_info.max,
        sys.float_info.min,
        1e16,
        1 - 2.0**-53,
        1 + 2.0**-52,
        0.1,
        1e300,
    ]
    return st.one_of(st.sampled_from(special), st.floats(-10, 10), st.floats())


def awkward_integers() -> st.SearchStrategy[int]:
    """Small integers and the extremes of 64 bits."""
    return st.one_of(st.integers(-5, 5), st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1]))


@st.composite
def neighbours(
    draw: Any, records: st.SearchStrategy[T], *, replace: bool = False, max_size: int = 8
) -> tuple[list[T], list[T]]:
    """Two lists that differ in one record: one has it more (add-remove), or another in its place (replace).

    Empty data, single records and duplicates are among them.
    """
    rest: list[T] = draw(st.lists(records, max_size=max_size))
    if rest and draw(st.booleans()):
        rest += [rest[0]] * draw(st.integers(1, 3))
    position = draw(st.integers(0, len(rest)))
    longer = [*rest[:position], draw(records), *rest[position:]]
    other = [*rest[:position], draw(records), *rest[position:]] if replace else rest
    return (longer, other) if draw(st.booleans()) else (other, longer)
