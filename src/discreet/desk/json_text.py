"""JSON from strangers: bounded in length and depth, without the numbers and repetitions that JSON does not have."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

__all__ = ["LONGEST", "canonical", "read_object"]

LONGEST = 256 * 1024  # bytes of a request: a list of ten thousand values has less than half of them
DEEPEST = 64  # brackets in brackets; expressions that people write have fewer than twenty
_DIGITS = 25  # of a whole number: longer ones take quadratic time, and no column has them


def read_object(text: bytes) -> dict[str, Any]:
    """The object that a text describes, or a ``ValueError`` that quotes nothing of it.

    >>> read_object(b'{"epsilon": 0.5}')
    {'epsilon': 0.5}
    """
    if len(text) > LONGEST:
        raise ValueError(f"The request has more than {LONGEST:,} bytes.")
    if _depth(text) > DEEPEST:
        raise ValueError(f"The request is nested more than {DEEPEST} deep.")
    try:
        value = json.loads(
            text, parse_constant=_refuse, parse_int=_whole, parse_float=_finite, object_pairs_hook=_unique
        )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError("The request is not JSON in UTF-8.") from None
    if not isinstance(value, dict):
        raise ValueError("The request is not a JSON object.")
    return value


def canonical(value: Any) -> str:
    """One text for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _depth(text: bytes) -> int:
    """At most how deep brackets stand in each other: those in texts count too, which only refuses more."""
    deepest = depth = 0
    for sign in text:
        if sign in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in b"]}":
            depth -= 1
    return deepest


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"The request has the number {constant}, which is none of JSON's.")


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"The request has a whole number of more than {_DIGITS} digits.")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("The request has a number beyond 1.8e308.")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("The request has one key twice.")
    return dict(pairs)
