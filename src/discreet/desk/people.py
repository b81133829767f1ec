"""Who may ask, and for how much: what an owner does for people, at the command line and over HTTP alike.

A person has a sub-book of each data set they may ask about. Taking back their tokens leaves the books as they are: what
was spent stays spent, and a new token goes on in the same books: nobody gets a fresh budget by being added again.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.desk.charging import open_books, sub_book
from discreet.desk.configuration import Configuration, Dataset
from discreet.desk.errors import NOT_THERE, Refusal
from discreet.desk.state import ROLES, DeskState
from discreet.errors import choice, number
from discreet.ledger import Book, Entry, Ledger
from discreet.ledger.terms import check_name

__all__ = ["Share", "add_person", "new_token", "raise_limit"]

Share = tuple[float, float]  # the epsilon and delta of a sub-book


def add_person(
    ledger: Ledger,
    state: DeskState,
    configuration: Configuration,
    name: str,
    role: str,
    shares: Mapping[str, Share],
    *,
    days: float = 90.0,
) -> str:
    """Add a person with a sub-book of each data set in ``shares``; their token, which is not kept.

    Somebody of that name, with another role or other data sets, is refused as long as they have one: else the tokens
    that they hold would become another's.
    """
    check_name(name)
    choice("role", role, ROLES)
    number("days", days, low=0, high=3650, open_low=True)
    if unknown := [each for each in shares if each not in configuration.datasets]:
        raise ValueError(f"There is no data set {unknown[0]!r}; there are {', '.join(configuration.datasets)}.")
    wanted = (role, tuple(sorted(shares)))
    if state.token_count(name) and any(
        (each.role, each.datasets) != wanted for each in state.people() if each.name == name
    ):
        raise ValueError(f"{name!r} has tokens, for another role or other data sets: take them back first.")
    books = open_books(ledger, configuration)
    for each, (epsilon, delta) in shares.items():
        books[each].sub(name, epsilon=epsilon, delta=delta)
    return state.add_person(name, role, tuple(shares), days=days)


def new_token(state: DeskState, name: str, *, days: float = 90.0) -> str:
    """One more token for somebody who is there already; those they have stay as they are."""
    if (person := state.person(name)) is None:
        raise ValueError(f"There is nobody called {name!r}: add them first.")
    return state.add_person(name, person.role, person.datasets, days=days)


def raise_limit(
    ledger: Ledger, dataset: Dataset, person: str | None, *, epsilon: float, delta: float, why: str, by: str
) -> Entry:
    """Raise the limit of a person's sub-book, or, for none, of the whole data set: an entry in the chain, with its
    reason and who gave it.
    """
    book: Book = ledger.book(dataset.book) if person is None else _known_book(ledger, dataset, person)
    if not why.strip():
        raise ValueError("why is empty, but a raise needs its reason: the report repeats it.")
    return book.raise_limit(epsilon=epsilon, delta=delta, why=f"{why} [raised by {by}]")


def _known_book(ledger: Ledger, dataset: Dataset, person: str) -> Book:
    try:
        check_name(person)
        return sub_book(ledger, dataset, person)
    except (ValueError, Refusal):
        raise Refusal(404, "not_found", NOT_THERE) from None
