"""The terms of a book: its limits, fixed when it is opened, and its place among the other books.

A book may hold sub-books (an analyst, a purpose): what they are charged, it is charged. It may be split into parts that
hold disjoint records; a partition costs a record no more than the costliest part, whichever that is in each currency.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from functools import lru_cache

from discreet.adjacency import Adjacency
from discreet.errors import BudgetExceeded, number, positive, probability, whole
from discreet.ledger.amounts import Number, exact
from discreet.ledger.filters import POLICIES, USUAL, Limit
from discreet.release import ONE_RECORD, unit_name

__all__ = ["Terms", "check_name"]

KINDS = ("book", "partition", "part")
LARGEST = 1e300  # to which a limit can be raised: sums stay within floats
_MOST_ROWS = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What was agreed when the book was opened. A partition bears the limits of its book, and enforces none.

    ``unit`` names whom the book protects. ``rows_per_unit``, where it was declared, is the most records one of them
    has: the owner's word, which no table is asked about. ``max_epsilon`` and ``max_delta``, where they were declared,
    are the ceiling that no raise of the limit may pass.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: str = ONE_RECORD
    filter: str = USUAL
    kind: str = "book"
    rows_per_unit: int | None = None
    max_epsilon: float | None = None
    max_delta: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        object.__setattr__(self, "unit", str(unit_name(self.unit)))
        if self.rows_per_unit is not None:
            self._check_rows()
        if self.max_epsilon is not None or self.max_delta is not None:
            self._set_ceiling()
        if self.delta >= 1:
            raise ValueError(f"delta is {self.delta:g}, but must be below 1: at 1 nothing is promised.")
        if self.filter not in POLICIES:
            raise ValueError(f"filter is {self.filter!r}, but must be one of {', '.join(map(repr, POLICIES))}.")
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}, but must be one of {', '.join(map(repr, KINDS))}.")

    def _check_rows(self) -> None:
        number("rows_per_unit", whole("rows_per_unit", self.rows_per_unit), low=1, high=_MOST_ROWS)
        if self.unit == ONE_RECORD:
            raise ValueError(
                f"rows_per_unit is {self.rows_per_unit}, but the unit is one record: name the unit that has them."
            )
        if self.adjacency is Adjacency.REPLACE:
            raise ValueError(
                f"rows_per_unit is {self.rows_per_unit}, but adjacency 'replace' has no account of it: a unit that is "
                "replaced may come back with another number of rows. Use 'add-remove' or 'zero-out'."
            )

    def _set_ceiling(self) -> None:
        for name, least in (("epsilon", self.epsilon), ("delta", self.delta)):
            given = getattr(self, f"max_{name}")
            highest = math.inf if name == "epsilon" else 1.0
            most = least if given is None else number(f"max_{name}", given, low=least, high=highest, open_high=True)
            object.__setattr__(self, f"max_{name}", most)

    def check_ceiling(self, book: str, epsilon: Number, delta: Number) -> None:
        """Refuse limits beyond the ceiling that was declared at opening."""
        if self.max_epsilon is None or self.max_delta is None:
            return
        if epsilon > exact(self.max_epsilon) or delta > exact(self.max_delta):
            raise BudgetExceeded(
                f"The raise would take book {book!r} to epsilon={float(epsilon):g}, delta={float(delta):g}, above the "
                f"ceiling epsilon={self.max_epsilon:g}, delta={self.max_delta:g} that was declared when it "
                "was opened. Nothing changed."
            )

    @property
    def limit(self) -> Limit:
        """The limit as the filters read it."""
        return Limit(exact(self.epsilon), exact(self.delta), self.filter)

    def to_json(self) -> str:
        """Canonical JSON."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @staticmethod
    @lru_cache(maxsize=256)  # every charge reads the row of its book
    def from_json(text: str) -> Terms:
        """The terms a JSON text describes."""
        return Terms(**json.loads(text))

    def describe(self) -> str:
        """Limits in words, for messages."""
        words = f"epsilon={self.epsilon:g}, delta={self.delta:g}, {self.adjacency}"
        rows = f", rows_per_unit={self.rows_per_unit}" if self.rows_per_unit is not None else ""
        top = f", at most ({self.max_epsilon:g}, {self.max_delta:g}) by raises" if self.max_epsilon is not None else ""
        return f"{words}, unit={self.unit!r}{rows}, accounting rule (filter) {self.filter!r}{top}"


def check_name(name: str) -> str:
    """A name that can be part of a path: printable, without a slash, not empty."""
    if not name or name != name.strip() or "/" in name or not name.isprintable() or len(name) > 200:
        raise ValueError(f"name is {name!r}, but must be 1 to 200 printable characters without '/'.")
    return name
