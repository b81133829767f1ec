"""Whom a charge protects: the unit the book keeps, a record of which a unit has at most so many, or it is refused.

A guarantee for one row is not one for a person with several rows; and one for a person, proved by leaving out all rows
of theirs, says nothing about a data set that lacks one row of theirs. So a charge in another unit is refused both ways,
unless the book declared how many rows a unit may have: then it is restated for that many rows (``groups``).

Decisions 85 and 271.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

from discreet.errors import UnitMismatch, choice, number, positive
from discreet.ledger.terms import Terms
from discreet.release import ONE_RECORD, Enforced, unit_name

__all__ = ["Charged", "charged_unit", "checked_asked", "checked_key", "suits"]


@dataclass(frozen=True, slots=True)
class Charged:
    """The unit of a charge, as the chain keeps it.

    ``by`` says on what it rests: ``"record"`` (a row, so that there is nothing to bound), ``"enforced"`` (the library
    bounded what a unit contributes), ``"said"`` (the user's word), ``"converted"`` (a row's cost, restated for ``rows``
    of them). ``reproducible`` says whether the release is made with a seed; none: a version wrote it that kept no word
    of that. ``asked`` is the (epsilon, delta) that the release was asked for with, where it was; for reading only,
    since prices follow from events. ``key`` is the caller's name of this one charge, where there was one: a book is
    charged once for each.
    """

    unit: str
    by: str
    rows: int = 1
    reproducible: bool | None = None
    asked: tuple[float, float] | None = None
    key: str | None = None

    def to_json(self) -> str:
        """Canonical JSON; without ``asked`` and ``key`` where nothing was."""
        optional = ("asked", "key")
        kept = {name: value for name, value in asdict(self).items() if name not in optional or value is not None}
        return json.dumps(kept, sort_keys=True, separators=(",", ":"))

    @staticmethod
    @lru_cache(maxsize=256)  # a history is mostly the same few units
    def from_json(text: str) -> Charged | None:
        """What a charge recorded; nothing for the charges of versions that kept no unit."""
        if not text:
            return None
        charged = Charged(**json.loads(text))
        return charged if charged.asked is None else replace(charged, asked=checked_asked(charged.asked))

    def __str__(self) -> str:
        words = {
            "record": "",
            "enforced": ", bounded by the library",
            "said": ", as the caller said",
            "converted": f", up to {self.rows:,} per unit",
        }
        return self.unit + choice("by", self.by, words)


def checked_asked(asked: object) -> tuple[float, float]:
    """The epsilon, above 0, and the delta, below 1, that a release was asked for with."""
    if not isinstance(asked, (tuple, list)) or len(asked) != 2:
        raise ValueError(f"asked is {asked!r}, but must be epsilon and delta.")
    epsilon, delta = asked
    return positive("asked epsilon", epsilon), number("asked delta", delta, low=0, high=1, open_high=True)


def checked_key(key: object) -> str:
    """A charge's own name: printable, plain text of at most 200 characters."""
    if not isinstance(key, str) or not 0 < len(key) <= 200 or not key.isascii() or not key.isprintable():
        raise ValueError("key must be 1 to 200 printable characters of ASCII: the name of one charge.")
    return key


def charged_unit(book: str, terms: Terms, unit: str, label: str, reproducible: bool = False) -> Charged:
    """How a charge in ``unit`` counts in a book, or the refusal."""
    enforced = isinstance(unit, Enforced)
    if not isinstance(unit, str) or unit != terms.unit:  # the book's own name was checked when it was opened
        unit = unit_name(unit)
    if enforced and unit == ONE_RECORD:
        raise UnitMismatch(
            f"{label!r} protects a unit whose column is called {ONE_RECORD!r}, which is what books call a row. "
            "Nothing was released. Rename the column."
        )
    if unit == terms.unit:
        by = "record" if unit == ONE_RECORD else "enforced" if enforced else "said"
        return Charged(terms.unit, by, reproducible=reproducible)
    if unit == ONE_RECORD and terms.rows_per_unit is not None:
        return Charged(ONE_RECORD, "converted", terms.rows_per_unit, reproducible)
    raise UnitMismatch(
        f"{label!r} protects {_whom(unit)}, but book {book!r} keeps {_whom(terms.unit)}. Nothing was released. "
        + (_row_remedy(terms.unit) if unit == ONE_RECORD else _other_remedy(unit))
    )


def suits(terms: Terms, charge: Charged | None) -> bool:
    """Whether a book of these terms could have made such a charge;
    versions that kept no unit made charges without one.
    """
    if charge is None:
        return True
    if charge.reproducible is not None and not isinstance(charge.reproducible, bool):
        return False
    if charge.by == "converted":
        return charge.unit == ONE_RECORD and charge.rows == terms.rows_per_unit
    kinds = ("record",) if terms.unit == ONE_RECORD else ("enforced", "said")
    return charge.unit == terms.unit and charge.by in kinds and charge.rows == 1


def _row_remedy(unit: str) -> str:
    return (
        f"Name the unit where the library can bound it (a table's or a schema's unit column {unit!r}); say "
        f"unit={unit!r} where each row is a whole one; or charge a book that was opened with rows_per_unit= "
        "(--rows-per-unit 1 on the command line, where each row is a whole one), the most rows one has."
    )


def _other_remedy(unit: str) -> str:
    return (
        f"Charge a book of unit {unit!r}, if the owner of the data keeps one: what two books over the same data "
        "promise adds up."
    )


def _whom(unit: str) -> str:
    return "one record (a row)" if unit == ONE_RECORD else f"the unit {str(unit)!r}"
