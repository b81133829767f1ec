"""What every mechanism does the same way: exactly one of several parameters, fields that are set once."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.adjacency import Adjacency
from discreet.release import unit_name

__all__ = ["noise_asked_for", "one_of", "slack", "spent_delta", "store"]

# Asked for an epsilon, a mechanism aims this much inside it, so that no rounding of the account can exceed it.
slack = 1 + Fraction(1, 1 << 40)


def spent_delta(delta: float) -> float:
    """The delta that is used when ``delta`` was asked for: as far inside it as ``slack`` is inside epsilon."""
    return delta * (1 - 2.0**-40)


def store(frozen: Any, /, **values: Any) -> None:
    """Set fields of a frozen value while it is being made; its unit, if it states one, is the caller's: plain text."""
    if "unit" in frozen.__dataclass_fields__:
        values["unit"] = unit_name(frozen.unit)
    if "adjacency" in values:
        values["adjacency"] = Adjacency(values["adjacency"])
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


def noise_asked_for(delta: object, **choices: object) -> str:
    """The name of the one choice by which noise is asked for; ``delta`` belongs with epsilon alone."""
    asked = one_of(**choices)
    if delta is not None and asked != "epsilon":
        raise ValueError(f"delta given with {asked}, but it belongs with epsilon.")
    return asked


def one_of(**choices: object) -> str:
    """The name of the one choice that was given, or an error that lists them.

    >>> one_of(scale=None, epsilon=1.0)
    'epsilon'
    """
    given = [name for name, value in choices.items() if value is not None]
    if len(given) != 1:
        found = " and ".join(given) or "nothing"
        raise ValueError(f"{found} given, but exactly one of {', '.join(choices)} is needed.")
    return given[0]
