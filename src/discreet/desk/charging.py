"""The charge of a question: made once, in the one transaction that also decides its key.

The price is worked out here, of public facts alone; what a worker wants to be charged must be the same. The entry bears
the key, so that whatever crashes, or is restored from a copy, no second charge is made for one question, and no second
draw of noise for one charge.

Decision 570.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from discreet.desk.configuration import Configuration, Dataset
from discreet.desk.errors import Refusal
from discreet.desk.public_tables import read_declaration
from discreet.desk.questions import DeskQuestion
from discreet.desk.state import Asking
from discreet.errors import BudgetExceeded, DiscreetError
from discreet.ledger import AlreadyCharged, Book, ChainBroken, Ledger, LedgerError
from discreet.release import ONE_RECORD

__all__ = ["Charge", "Withdrawal", "open_books", "sub_book"]


def open_books(ledger: Ledger, configuration: Configuration) -> dict[str, Book]:
    """The book of each data set, opened with its limits, for the unit that its schema names."""
    return {name: _open(ledger, dataset) for name, dataset in configuration.datasets.items()}


def _open(ledger: Ledger, dataset: Dataset) -> Book:
    unit = read_declaration(dataset.schema)[0].unit or ONE_RECORD
    return ledger.open(dataset.book, epsilon=dataset.epsilon, delta=dataset.delta, unit=unit)


def sub_book(ledger: Ledger, dataset: Dataset, person: str) -> Book:
    """The book that a person's questions about a data set are charged to, inside of the data set's own."""
    try:
        return ledger.book(f"{dataset.book}/{person}")
    except ChainBroken:
        raise
    except LedgerError:
        ledger.book(dataset.book)  # raises, where it is the ledger that cannot be read
        raise Refusal(422, "no_budget", f"You have no budget for {dataset.name!r}: ask its owner for one.") from None


class Withdrawal:
    """Whether a question is taken back or charged: whichever begins first; the other never happens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first = ""

    def take_back(self) -> bool:
        """Take the question back; false where its charge has begun."""
        return self._be_first("taken back")

    def begin_charge(self) -> None:
        """Begin the charge, or refuse where the question was taken back."""
        if not self._be_first("charged"):
            raise Refusal(409, "cancelled", "The question was taken back. Nothing was charged.")

    def _be_first(self, what: str) -> bool:
        with self._lock:
            self._first = self._first or what
            return self._first == what


class Charge:
    """What a worker calls before it reads: whether it was charged. ``entry`` is what came of it, or ``refusal``."""

    def __init__(
        self,
        asking: Asking,
        question: DeskQuestion,
        operation: Any,
        books: tuple[Book, Book],
        admit: Callable[[], None],
    ) -> None:
        self._asking, self._question, self._operation = asking, question, operation
        self._book, self._whole = books  # the person's, and the data set's
        self._admit = admit  # raises, where the question may no longer be asked
        self.entry: dict[str, Any] | None = None
        self.refusal: Refusal | None = None

    def __call__(self, wanted: Mapping[str, Any]) -> bool:
        """Whether the worker may read."""
        try:
            self.entry = self._charge(wanted)
            return True
        except Refusal as refusal:
            self.refusal = refusal
        except AlreadyCharged as error:  # before this state was restored from a copy: there is no second draw
            self.entry = {"entry": error.seq}
        except BudgetExceeded as error:
            self.refusal = Refusal(402, "budget", str(error), left={"epsilon": self._left()})
        except DiscreetError:
            self.refusal = Refusal(503, "unavailable", "The ledger did not confirm the charge, and nothing was read.")
        return False

    def _charge(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        self._admit()
        asking, question = self._asking, self._question
        operation = self._operation
        stated = {"event": operation.event.to_dict(), "unit": str(operation.unit)}
        if {name: wanted[name] for name in stated} != stated or wanted["reproducible"]:
            raise Refusal(503, "unavailable", "The source is not what was declared of it. Nothing was charged.")
        if asking.decision and asking.decision["digest"] != question.digest(asking.person):
            raise Refusal(409, "not_approved", "What was approved is another question. Nothing was charged.")
        asked = (question.budget.epsilon, question.budget.delta or 0.0) if question.budget.epsilon else None
        entry = self._book.charge(operation.event, self._label(), unit=operation.unit, asked=asked, key=asking.key)
        return {"entry": entry.seq, "head": f"{entry.seq}:{entry.hash}", **stated}

    def _label(self) -> str:
        """The label in the chain; with who approved what, where somebody did."""
        label = self._question.label or str(getattr(self._operation, "label", ""))
        decision = self._asking.decision
        return f"{label} [approved by {decision['by']}: {decision['digest']}]" if decision else label

    def _left(self) -> float:
        return float(min(book.remaining().epsilon for book in (self._book, self._whole)))
