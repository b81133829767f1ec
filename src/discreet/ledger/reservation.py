"""Something already charged, to be drawn on by a long job or along a plan."""

from __future__ import annotations

from discreet.errors import BudgetExceeded, UnitMismatch
from discreet.events import Event, leaves
from discreet.ledger.chain import Entry
from discreet.release import ONE_RECORD
from discreet.sessions import PaidOnce, one_at_a_time

__all__ = ["Reservation"]

_REMEDY = "Draw in the process that made it, or let each process reserve its own part before it starts."


class Reservation(PaidOnce):
    """An amount that is charged already and can be used up in parts, but not exceeded (a ``Chargeable``).

    The same events may be drawn in any order, and not all need be: each is a simulation from its own pair of
    distributions, so the order, chosen along the way, is post-processing. What is drawn protects the unit that was
    charged.

    What is left is counted in this object alone, so there is never a second one: it is neither copied nor pickled, and
    a forked child, which has a copy all the same, may not draw.
    """

    _copied = f"A reservation cannot be copied or pickled: every copy could draw the whole. {_REMEDY}"
    _refusal = BudgetExceeded

    def __init__(self, entry: Entry, event: Event, unit: str = ONE_RECORD, reproducible: bool = False) -> None:
        super().__init__()
        self.entry = entry
        self.event = event
        self.unit = str(unit)
        self.reproducible = reproducible
        self._left = leaves(event)
        self._open = True
        self._forked = (
            f"A forked process drew on the reservation {entry.label!r}, but it is counted in the one that made it: "
            f"every copy could draw the whole. Nothing was released. {_REMEDY}"
        )

    @one_at_a_time
    def charge(self, event: Event, label: str = "", *, unit: str = ONE_RECORD, reproducible: bool = False) -> Entry:
        """Use up ``event`` from what was reserved, or raise ``BudgetExceeded``; for another unit, ``UnitMismatch``."""
        if reproducible and not self.reproducible:
            raise BudgetExceeded(
                f"{label!r} is made with a seed, which is not private, but the ledger does not say so of the "
                f"reservation {self.entry.label!r}. Nothing was released. Reserve with reproducible=True, or leave the "
                "seed out."
            )
        if unit != self.unit:
            raise UnitMismatch(f"{label!r} protects {unit!r}, but the reservation {self.entry.label!r} was made for "
                               f"{self.unit!r}. Nothing was released. Reserve with unit={unit!r}.")  # fmt: skip
        needed = leaves(event)
        if not self._open:
            raise BudgetExceeded(f"{label!r} came after the reservation {self.entry.label!r} was closed. "
                                 "Nothing was released.")  # fmt: skip
        for leaf, count in needed.items():
            if count > (left := self._left.get(leaf, 0)):
                raise BudgetExceeded(
                    f"{label!r} needs {leaf.tag} {count} times, but the reservation {self.entry.label!r} has "
                    f"{left} of that kind left. Nothing was released. Charge the book itself."
                )
        for leaf, count in needed.items():
            self._left[leaf] -= count
        return self.entry

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *failure: object) -> None:
        self._open = False
