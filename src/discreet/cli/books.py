"""Which book a command charges: ``--ledger`` and ``--book``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from discreet.errors import extra

with extra("cli"):
    import typer

if TYPE_CHECKING:
    from discreet.release import Book

__all__ = ["BookOption", "LedgerOption", "charged"]

LedgerOption = Annotated[str | None, typer.Option("--ledger", metavar="FILE", help="The ledger to charge: a file, or a URL.",
                                                  show_default=False)]
BookOption = Annotated[str | None, typer.Option("--book", help="The book in the ledger; not needed where it has only one.",
                                                show_default=False)]


@contextmanager
def charged(ledger: str | None, book: str | None) -> Iterator[Book | None]:
    """The book to charge, which must be open, or none where no ledger is named."""
    if ledger is None:
        if book is not None:
            raise ValueError("--ledger and --book belong together: --ledger budget.db --book census.")
        yield None
        return
    from discreet.ledger import Ledger

    url = ledger if "://" in ledger else f"sqlite:///{ledger}"
    with Ledger(url, create=False) as books:
        yield books.book(_only(books) if book is None else book)


def _only(books: Any) -> str:
    """The name of a ledger's one book."""
    names = [str(book.name) for book in books.books()]
    if len(names) != 1:
        raise ValueError(f"The ledger has {len(names)} books ({', '.join(names) or 'none'}), so say which one to charge: "
                         "--book.")
    return names[0]
