"""The first page of each role, and the page of a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.desk.errors import Refusal
from discreet.desk.pages.public_words import columns_of, examples, unit_of
from discreet.desk.pages.standing import book_lines, may_go_on
from discreet.desk.pages.visits import PageServer, Visit
from discreet.errors import DiscreetError
from discreet.ledger import Book
from discreet.tables.error_targets import half_widths

if TYPE_CHECKING:
    from starlette.responses import Response

__all__ = ["dataset", "home"]

SHARE = 50  # of the limit: a usual question


def home(visit: Visit) -> Response:
    """What there is, and what is left of it; to the officer: may this go on?"""
    cards = [_card(visit, name) for name in visit.service.configuration.datasets if visit.person.may_see(name)]
    if visit.person.role == "analyst":
        latest = visit.desk.history.search(visit.person.name, most=5)
        return visit.show("home.html.j2", cards=cards, latest=latest)
    lines = book_lines(visit.service)
    verdict = may_go_on(visit.service, lines)
    return visit.show("overview.html.j2", cards=cards, lines=lines, verdict=verdict,
                      requests=visit.desk.history.search(None, state="waiting", most=20),
                      odd=_odd(visit.desk))  # fmt: skip


def _odd(desk: PageServer) -> dict[str, list[str]]:
    return {name: facts["odd"] for name, facts in desk.behaviour.hourly().items() if facts["odd"]}


def dataset(visit: Visit) -> Response:
    """What is public of a data set."""
    name = visit.part("name")
    facts = visit.service.describe(visit.person, name)
    table = visit.service.tables[name]
    return visit.show(
        "dataset.html.j2",
        card=_card(visit, name),
        facts=facts,
        columns=columns_of(table),
        examples=examples(name, table),
    )


def _card(visit: Visit, name: str) -> dict[str, Any]:
    """A data set with what is left of it: of the person's own part, or of the whole to who has none."""
    service = visit.service
    dataset = service.configuration.datasets[name]
    contents = service.contents[name]
    facts = {"name": name, "unit": unit_of(contents), "columns": len(service.tables[name].schema), "problem": "",
             "largest": dataset.largest_epsilon, "approval": dataset.approval_above,
             "description": str(contents.get("description", ""))}  # fmt: skip
    whole = service.books[name]
    try:
        book = service.book(dataset, visit.person.name) if visit.person.role != "officer" else whole
        own = visit.person.role != "officer"
    except Refusal as refusal:
        if visit.person.role == "analyst":
            return facts | {"problem": refusal.message}
        book, own = whole, False
    left, limit = book.remaining().epsilon, book.limit
    if own:
        left = min(left, whole.remaining().epsilon)
    facts |= {"left": left, "limit": limit[0], "delta": limit[1], "own": own, "book": book.name,
              "share": 100 * left / limit[0]}  # fmt: skip
    return facts | {"more": _more(visit.desk, name, book, left)}


def _more(desk: PageServer, name: str, book: Book, left: float) -> dict[str, Any] | None:
    """How many more counts there are in what is left, and how good they would be."""
    dataset = desk.service.configuration.datasets[name]
    epsilon = min(book.limit[0] / SHARE, dataset.largest_epsilon)
    key = "usual count", name, epsilon
    if key not in desk.made:
        try:
            operation = desk.service.tables[name].group_by().count().operation(epsilon=epsilon)
            desk.made[key] = operation.event, operation.unit, max(half_widths(operation).values())
        except (ValueError, DiscreetError):  # no count can be asked of it: then there is none to speak of
            desk.made[key] = None
    if (usual := desk.made[key]) is None:
        return None
    event, unit, error = usual
    count = book.affords(event, unit=unit) if left > 0 else 0
    return {"count": count, "error": error, "epsilon": epsilon}
