"""The owner's pages: what waits for a decision, people and their parts, spending, and how to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.desk.approvals import decide
from discreet.desk.errors import NOT_THERE, Refusal
from discreet.desk.history import AskedQuestion
from discreet.desk.pages.charts import Trail, sparkline, trail_chart
from discreet.desk.pages.past import trail_of
from discreet.desk.pages.previews import LARGE, SMALL, Preview, preview
from discreet.desk.pages.standing import book_lines
from discreet.desk.pages.views import HEADERS
from discreet.desk.pages.visits import Visit
from discreet.desk.questions import DeskQuestion, check_label
from discreet.desk.requests import number_of_address
from discreet.desk.state import Person
from discreet.errors import DiscreetError, extra
from discreet.reporting.attacker import true_positive_rate

with extra("desk"):
    from starlette.responses import RedirectResponse

if TYPE_CHECKING:
    from starlette.responses import Response

__all__ = ["change_people", "checklist", "decide_request", "freeze", "people", "raise_limit", "requests", "spending"]

ALARM = 0.01  # how often an attacker is wrong about somebody absent
MOST_ENTRIES = 2000  # of a figure


def requests(visit: Visit) -> Response:
    """What waits, each with its cost and with what it would let an attacker learn."""
    waiting = visit.desk.history.search(None, state="waiting", most=50)
    search = visit.desk.history.search
    decided = [asked for state in ("approved", "declined") for asked in search(None, state=state, most=5)]
    return visit.show(
        "requests.html.j2",
        undecided=[(asked, _consequences(visit, asked)) for asked in waiting],
        decided=sorted(decided, key=lambda asked: -asked.number),
        alarm=ALARM,
        small=SMALL,
        large=LARGE,
    )


def _consequences(visit: Visit, asked: AskedQuestion) -> dict[str, Any]:
    """What approving would mean; nothing where the question is no longer one that can be asked."""
    service = visit.service
    try:
        question = DeskQuestion.from_dict(asked.question)
        asker = Person(asked.person, "analyst", (question.dataset,))
        known = preview(service, asker, question, visit.desk.made, rehearse=False)
    except (ValueError, Refusal, DiscreetError):
        return {"known": None}
    if not isinstance(known, Preview):
        return {"known": None}
    book = service.books[question.dataset]
    (limit, delta), spent = book.limit, book.spent().epsilon
    after = min(limit, spent + known.epsilon)
    rates = [true_positive_rate(ALARM, [(delta, epsilon)]) for epsilon in (spent, after, limit)]
    return {"known": known, "whole": {"before": limit - spent, "after": limit - after}, "rates": rates}


def decide_request(visit: Visit) -> Response:
    """Approve or decline."""
    what, why = visit.form.text("do"), _reason(visit)
    if what not in ("approve", "decline"):
        raise Refusal(422, "invalid", "The page has no such button.")
    number, service = number_of_address(visit.part("number")), visit.service
    if number is None:
        raise Refusal(404, "not_found", NOT_THERE)
    decide(service.state, service.configuration, number, what, by=visit.person.name, why=why)
    return RedirectResponse("/requests", 303, headers=HEADERS)


def _reason(visit: Visit) -> str:
    try:
        why = check_label(visit.form.text("why"))
    except ValueError as error:
        raise Refusal(422, "invalid", str(error).replace("label", "The reason")) from None
    if not why:
        raise Refusal(422, "invalid", "A decision needs its reason, which is kept.")
    return why


def people(visit: Visit) -> Response:
    """Everybody, with their parts of the books."""
    books = {line.name: line for line in book_lines(visit.service)}
    names = visit.service.configuration.datasets
    lines = [
        (each, [(name, books[f"{names[name].book}/{each.name}"])
                for name in names if f"{names[name].book}/{each.name}" in books])
        for each in visit.service.state.people()
    ]  # fmt: skip
    tokens = {each["name"]: each["tokens"] for each in visit.service.people()}
    return visit.show(
        "people.html.j2",
        lines=lines,
        tokens=tokens,
        books=list(books.values()),
        datasets=list(names),
        raised=visit.query.text("raised"),
    )


def raise_limit(visit: Visit) -> Response:
    """Raise the limit of a book, with a reason that the chain and the report repeat."""
    why, (name, _, person) = _reason(visit), visit.form.text("book").partition("/")
    book_names = {dataset.book: name for name, dataset in visit.service.configuration.datasets.items()}
    if name not in book_names:
        raise Refusal(404, "not_found", NOT_THERE)
    more = {key: _number(visit, key) for key in ("epsilon", "delta")}
    visit.service.raise_limit(visit.person, book_names[name], person or None, **more, why=why)
    return RedirectResponse("/people?raised=1", 303, headers=HEADERS)


def _number(visit: Visit, name: str) -> float:
    try:
        return visit.form.number(name) or 0.0
    except ValueError as error:
        raise Refusal(422, "invalid", str(error)) from None


def change_people(visit: Visit) -> Response:
    """Add somebody, give them a new token, or take all of theirs back. A token is shown on this page, this once."""
    name, service = visit.form.text("name"), visit.service
    match visit.form.text("do"):
        case "add":
            role, dataset = visit.form.text("role"), visit.form.text("dataset")
            asks = role != "officer" and dataset
            share = {dataset: (_number(visit, "epsilon"), _number(visit, "delta"))} if asks else {}
            token, title = service.add_person(name, role, share), f"{name} may come in"
        case "token":
            token, title = service.new_token(name), f"One more token for {name}"
        case "revoke":
            service.revoke(name)
            return RedirectResponse("/people", 303, headers=HEADERS)
        case _:
            raise Refusal(422, "invalid", "The page has no such button.")
    return visit.show("token.html.j2", name=name, token=token, title=title)


def freeze(visit: Visit) -> Response:
    """Stop all questions, or let them be asked again."""
    why = None if visit.form.text("do") == "thaw" else _reason(visit)
    visit.service.state.note("frozen", why)
    return RedirectResponse("/", 303, headers=HEADERS)


def spending(visit: Visit) -> Response:
    """What was spent of each data set, by whom, and what looks odd."""
    hourly = visit.desk.behaviour.hourly()
    sets = [_spending(visit, name) for name in visit.service.configuration.datasets]
    return visit.show("spending.html.j2", sets=sets, hourly=hourly)


def _spending(visit: Visit, name: str) -> dict[str, Any]:
    dataset = visit.service.configuration.datasets[name]
    entries = visit.service.ledger.search(book=dataset.book, kind="charge", newest=MOST_ENTRIES)
    by_person: dict[str, list[Any]] = {}
    for entry in entries:
        by_person.setdefault(entry.book.removeprefix(f"{dataset.book}/"), []).append(entry)
    start = entries[0].time if entries else None
    trails = [Trail(who, [((entry.time - start).total_seconds() / 3600, float(entry.epsilon)) for entry in theirs])
              for who, theirs in by_person.items() if start]  # fmt: skip
    trails.sort(key=lambda trail: -trail.points[-1][1])
    books = [line for line in book_lines(visit.service) if line.name.startswith(f"{dataset.book}/")]
    lines = [(line.name.rpartition("/")[2], line, sparkline([float(e.epsilon) for e in by_person.get(
        line.name.removeprefix(f"{dataset.book}/"), [])])) for line in books]  # fmt: skip
    figure = trail_chart(trails, f"ε spent of {name}, by person", trail_of(entries)[1]) if entries else None
    return {"name": name, "figure": figure, "lines": lines, "many": len(entries) == MOST_ENTRIES}


def checklist(visit: Visit) -> Response:
    """What to do for a new data set: at the machine where it is."""
    return visit.show("checklist.html.j2")
