"""Something already charged, to be drawn on by a long job or along a plan."""

from __future__ import annotations

import threading
from typing import NoReturn

from discreet.errors import BudgetExceeded, UnitMismatch
from discreet.events import Event, leaves
from discreet.ledger import forks
from discreet.ledger.chain import Entry
from discreet.release import ONE_RECORD

__all__ = ["Reservation"]

_REMEDY = "Draw in the process that made it, or let each process reserve its own part before it starts."


class Reservation:
    """Something already charged, to be drawn on: satisfies the ``Chargeable`` protocol, and refuses more than that.

    The same events may be drawn in any order, and not all need be: each is a simulation from its own pair of
    distributions, so the order, chosen along the way, is post-processing. What is drawn protects the unit that was
    charged.

    What is left is counted in this object alone, so there is never a second one: it is neither copied nor pickled, and
    a forked child, which has a copy all the same, may not draw.
    """

    def __init__(self, entry: Entry, event: Event, unit: str = ONE_RECORD) -> None:
        self.entry = entry
        self.event = event
        self.unit = str(unit)
        self._left = leaves(event)
        self._open = True
        self._lock = threading.Lock()
        self._home = forks.here()

    def charge(self, event: Event, label: str = "", *, unit: str = ONE_RECORD) -> Entry:
        """Draw ``event`` from what was reserved, or raise ``BudgetExceeded``; in another unit, ``UnitMismatch``."""
        if self._home != forks.here():  # before the lock, which another thread may have held when it was copied
            raise BudgetExceeded(
                f"{label!r} came from a forked process, but the reservation {self.entry.label!r} is counted in the one "
                f"that made it: every copy could draw the whole. Nothing was released. {_REMEDY}"
            )
        if unit != self.unit:
            raise UnitMismatch(f"{label!r} protects {unit!r}, but the reservation {self.entry.label!r} was made for "
                               f"{self.unit!r}. Nothing was released. Reserve with unit={unit!r}.")  # fmt: skip
        with self._lock:
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

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse ``copy``, ``deepcopy`` and ``pickle``: two objects would each draw what was charged once."""
        raise TypeError(f"A reservation cannot be copied or pickled: every copy could draw the whole. {_REMEDY}")

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *failure: object) -> None:
        self._open = False
