"""What one has asked: found again, looked at together, and what it has cost so far."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from discreet.desk.errors import NOT_THERE, Refusal
from discreet.desk.pages.answer_views import AnswerView
from discreet.desk.pages.answered import own_question, view_of
from discreet.desk.pages.charts import MarkedValue, Trail, interval_chart, trail_chart
from discreet.desk.pages.visits import Visit
from discreet.desk.requests import number_of_address
from discreet.desk.state import Asking
from discreet.ledger.chain import Entry

if TYPE_CHECKING:
    from starlette.responses import Response

__all__ = ["compare", "history", "trail_of"]

PAGE = 30  # questions
MOST_ENTRIES = 1000  # of a figure


def history(visit: Visit) -> Response:
    """One's questions, the newest first."""
    words, dataset = visit.query.text("words"), visit.query.text("dataset")
    before = number_of_address(visit.query.text("before"))
    found = visit.desk.history.search(visit.person.name, words, dataset=dataset, before=before, most=PAGE + 1)
    return visit.show("history.html.j2", found=found[:PAGE], more=len(found) > PAGE, words=words, dataset=dataset,
                      datasets=[name for name in visit.service.configuration.datasets if visit.person.may_see(name)],
                      figures=_costs(visit))  # fmt: skip


def _costs(visit: Visit) -> list[tuple[str, Any]]:
    """What each of one's books has spent, over time."""
    figures = []
    for name, dataset in visit.service.configuration.datasets.items():
        if not visit.person.may_see(name):
            continue
        try:
            book = visit.service.book(dataset, visit.person.name)
        except Refusal:
            continue
        entries = visit.service.ledger.search(book=book.name, kind="charge", newest=MOST_ENTRIES)
        if entries:
            points, below = trail_of(entries)
            figures.append((name, trail_chart([Trail("spent", points)], f"Spent of {name}", below, book.limit[0])))
    return figures


def trail_of(entries: list[Entry]) -> tuple[list[tuple[float, float]], str]:
    """What a book had spent after each entry, by hours since the first; and how to read the axis."""
    start, end = entries[0].time, entries[-1].time
    points = [(_hours(start, entry.time), float(entry.epsilon)) for entry in entries]
    return [(0.0, 0.0), *points], f"{_when(start)} to {_when(end)}"


def _hours(start: datetime, at: datetime) -> float:
    return (at - start).total_seconds() / 3600


def _when(at: datetime) -> str:
    return f"{at.day} {at:%b %H:%M}"


def compare(visit: Visit) -> Response:
    """Two answers beside each other: what both say, and whether their intervals meet."""
    keys = [visit.query.text("a"), visit.query.text("b")]
    if not all(keys) and (chosen := visit.query.texts("key")):
        keys = [*chosen, "", ""][:2]
    if not all(keys) or len(visit.query.texts("key")) > 2:
        raise Refusal(422, "invalid", "Two answers are compared: choose two in your history.")
    both = [own_question(visit, key) for key in keys]
    if any(asking.state != "answered" for asking in both):
        raise Refusal(404, "not_found", NOT_THERE)
    first, second = (view_of(asking) for asking in both)
    names = [name for name in first.marked if name in second.marked]
    figures = [(name, interval_chart(first.marked[name], f"{name} in both", second.marked[name])) for name in names]
    return visit.show("compare.html.j2", both=both, titles=[_title(asking) for asking in both], names=names,
                      figures=figures, lines={name: _lines(first, second, name) for name in names})  # fmt: skip


def _title(asking: Asking) -> str:
    return str(asking.question["label"] or f"A question about {asking.question['operation']['dataset']}")


def _lines(first: AnswerView, second: AnswerView, name: str) -> list[tuple[str, MarkedValue, MarkedValue, str]]:
    """The rows that both have, with what can be said of their difference."""
    others = {each.label: each for each in second.marked[name]}
    return [(each.label, each, others[each.label], _verdict(each, others[each.label]))
            for each in first.marked[name] if each.label in others]  # fmt: skip


def _verdict(one: MarkedValue, other: MarkedValue) -> str:
    """Intervals that lie apart differ by more than noise, but for one case in twenty each."""
    if None in (one.low, one.high, other.low, other.high):
        return "–"
    apart = one.span[0] > other.span[1] or other.span[0] > one.span[1]
    return "apart: more than noise" if apart else "within noise"
