"""Which pairs of data sets are neighbours: the unit in which privacy is counted.

``add-remove``
    One record is added or removed; the number of records is private.
``replace``
    One record is changed to another; the number of records is public.
``zero-out``
    One record is blanked to a null record that contributes nothing; the number of records is public.

A guarantee without its adjacency says little: the Gaussian mechanism with noise multiplier 1 has
epsilon 4.38 at delta 1e-5 under add-remove, and 10.00 under replace.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Adjacency", "changed_records"]


class Adjacency(StrEnum):
    """A neighbouring relation, equal to its name.

    >>> Adjacency("replace") == "replace"
    True
    """

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"
    ZERO_OUT = "zero-out"

    @classmethod
    def _missing_(cls, value: object) -> Adjacency:
        names = ", ".join(repr(str(member)) for member in cls)
        raise ValueError(f"adjacency is {value!r}, but must be one of {names}.")


def changed_records(adjacency: str) -> int:
    """How many records come or go between neighbours: replacing one is both, blanking one takes it away.

    For a sum over records, it multiplies what one record contributes. A relation without a rule raises.

    >>> changed_records(Adjacency.ADD_REMOVE), changed_records(Adjacency.REPLACE)
    (1, 2)
    """
    match adjacency:
        case Adjacency.ADD_REMOVE | Adjacency.ZERO_OUT:
            return 1
        case Adjacency.REPLACE:
            return 2
    raise ValueError(f"adjacency is {str(adjacency)!r}, for which it is not known how many records change.")
