"""Which book a command charges: one rule for all of them.

``--ledger``, or else the variable ``DISCREET_LEDGER``, names a ledger, by its file or by a URL; ``--book`` a book in
it, which must be open, and may be left out where there is only one. What a release added, and what is left, is said on
standard error; so is that no book was charged, unless ``--no-book`` was asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from discreet.errors import extra

with extra("cli"):
    import typer

    from discreet.cli import colours
    from discreet.cli.options import VARIABLE, ledger_option
    from discreet.cli.show import ceiling, say, warn

if TYPE_CHECKING:
    from discreet.ledger import Book, Ledger
    from discreet.ledger.snapshot import Spent

__all__ = [
    "DEFAULT",
    "Address",
    "Anyway",
    "Name",
    "Recorded",
    "book_to_charge",
    "open_ledger",
    "vouch",
]

WHO = "DISCREET_WHO"  # the name that entries bear, instead of the system account's
# what commands take that read a ledger, or write to it by hand
DEFAULT = "budget.db"
Address = Annotated[str, ledger_option("The ledger", show_default=True)]
Name = Annotated[str, typer.Argument(metavar="BOOK", help="The book, by name or path: 'census', 'census/alice'.")]
OneName = Annotated[
    str | None,
    typer.Argument(
        metavar="BOOK",
        help="The book, by name or path: 'census', 'census/alice'; not needed if the ledger has only one.",
        show_default=False,
    ),
]
Anyway = Annotated[
    bool, typer.Option("--anyway", help="Show what a broken ledger says, under a warning, instead of refusing.")
]

NOT_CHARGED = (
    "NOT CHARGED: no book counts this release, so nothing limits what many of them reveal together. Name a ledger "
    f"with --ledger or {VARIABLE}; --no-book says that this is meant."
)
HERE = f" There is a {DEFAULT} in this folder: --ledger {DEFAULT}."


@contextmanager
def book_to_charge(
    ledger: str | None, book: str | None, no_book: bool = False, delta: float | None = None
) -> Iterator[Book | None]:
    """The book to charge; or none, which is said loudly when the block ends well. A release whose own ``delta`` is
    more than the book has in all is refused.
    """
    if no_book and book is not None:
        raise ValueError("--no-book and --book contradict each other.")
    if ledger is None and book is not None:
        raise ValueError(f"--ledger and --book belong together: --ledger budget.db --book census, or set {VARIABLE}.")
    if ledger is None or no_book:
        yield None
        if not no_book:
            warn(NOT_CHARGED + (HERE if Path(DEFAULT).is_file() else ""))
        return
    with open_ledger(ledger) as books:
        found = books.book(only_name(books, "to charge: --book") if book is None else book)
        _refuse_larger_delta(delta or 0.0, found)
        _tell_large_delta(delta or 0.0, found)
        before = found.spent()
        yield found
        _tell_cost(found, before)


def _tell_cost(book: Book, before: Spent) -> None:
    """What releases added to a book, what is spent and what is left; nothing where none was charged."""
    from discreet.ledger import LedgerError
    from discreet.reporting import words

    try:
        now, whole = book.spent(), book.limit[0]
    except LedgerError as error:  # the answer was paid for, and is still to be shown
        warn(f"What book {book.name!r} has left cannot be read: {error}", colours.BAD)
        return
    if now.entries == before.entries:
        return
    spent, limit, left = words.balance(now.epsilon, whole)
    added = ceiling(max(now.epsilon - before.epsilon, 0.0), 4)
    warn(f"{book.name}: this added epsilon = {added}; {spent} of {limit} is spent, {left} is left", colours.AMOUNT)


def open_ledger(address: str, create: bool = False, anyway: bool = False) -> Ledger:
    """The ledger, which is an extra of its own."""
    from discreet.ledger import Ledger

    return Ledger(address, who=os.environ.get(WHO), create=create, anyway=anyway)


def vouch(head: str, broken: str, data: bool = False) -> None:
    """Say whether the chain holds, above all else; where ``data`` goes to standard output, only if it does not."""
    from discreet.reporting import words

    line = words.chain(head, broken)
    if broken:
        warn(line, colours.BAD)
    elif not data:
        say(line)


class Recorded:
    """A book that remembers, after each charge, what a statement says of it: the book's name, and the ledger's head
    just then, which ``ledger verify --head`` checks. Without a book it charges nothing, and remembers nothing.
    """

    def __init__(self, book: Book | None) -> None:
        self._book = book
        self.head: dict[str, str] | None = None

    @property
    def records_asked(self) -> bool:
        """As the book does."""
        return self._book is not None

    def charge(self, event: Any, label: str = "", **told: Any) -> Any:
        """Charge the book."""
        if self._book is None:
            return None
        entry = self._book.charge(event, label, **told)
        self.head = {"book": self._book.name, "head": f"{entry.seq}:{entry.hash}"}
        return entry


def _refuse_larger_delta(delta: float, book: Book) -> None:
    """Refuse a delta above the book's, which all of its releases share."""
    whole = book.limit[1]
    if delta > whole == 0:
        raise ValueError(
            f"delta is {delta:g}, but book {book.name!r} has delta=0 and allows pure events only. Nothing was charged. "
            "Write --delta 0 for a fit, or leave --delta out of a query, or ask the data owner for a raise that has a "
            "delta."
        )
    if delta > whole:
        raise ValueError(
            f"delta is {delta:g}, which is more than book {book.name!r} has for all its releases together, {whole:g}. "
            f"Nothing was charged. Write --delta {whole / 10:.3g}, a tenth of that, or less (privacy.delta in a run's "
            "file), or ask the data owner to raise the limit."
        )


def _tell_large_delta(delta: float, book: Book) -> None:
    """Say that a release takes so much of a book's delta that it may cost more than its epsilon."""
    whole = book.limit[1]
    if delta > whole / 2:
        warn(
            f"delta is {delta:g}, more than half of what book {book.name!r} has for all its releases: so this release "
            f"and later ones may add more to the total than their epsilon. Use --delta {whole / 10:.3g}"
        )


def only_name(books: Any, how: str = "is meant: name it") -> str:
    """The name of a ledger's one book; ``how`` ends the error where there are others, or none."""
    names = [str(book.name) for book in books.books()]
    if len(names) != 1:
        raise ValueError(f"The ledger has {len(names)} books ({', '.join(names) or 'none'}), so say which one {how}.")
    return names[0]
