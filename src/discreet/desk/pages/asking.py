"""To ask: write the question, see what it would be like, confirm, and be answered once."""

from __future__ import annotations

import json
import math
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from discreet.desk.charging import sub_book
from discreet.desk.errors import Refusal
from discreet.desk.pages.builder import COMPARISONS, FUNCTIONS, BuiltQuestion
from discreet.desk.pages.forms import PageForm
from discreet.desk.pages.previews import LARGE, SMALL, Mistake, Preview, preview
from discreet.desk.pages.public_words import columns_of, examples, sql_name
from discreet.desk.pages.visits import Visit
from discreet.desk.questions import DeskQuestion, check_label
from discreet.desk.requests import key_of_address
from discreet.errors import DiscreetError, extra

with extra("desk"):
    from starlette.responses import RedirectResponse

if TYPE_CHECKING:
    from starlette.responses import Response

__all__ = ["ask", "confirm", "release"]

USUAL_SHARE = 20  # of the limit: what a question costs unless somebody says otherwise
SQL_WORDS = ("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "COUNT(*)", "AVG(", "SUM(", "MEDIAN(")
PREVIEWS = 240  # a minute and person: each is free, but takes the machine a tenth of a second


@dataclass(frozen=True, slots=True)
class AskForm:
    """What somebody has written so far."""

    dataset: str
    sql: str
    epsilon: float | None
    delta: float | None = None
    label: str = ""
    error: str = ""
    rows: str = ""
    built: BuiltQuestion = field(default_factory=BuiltQuestion)

    @classmethod
    def read(cls, dataset: str, form: PageForm) -> AskForm:
        """As a form sent it; numbers that are none are a ``ValueError``."""
        return cls(dataset, form.text("sql"), form.number("epsilon"), form.number("delta"), form.text("label"),
                   form.text("error"), form.text("rows"), BuiltQuestion.read(form))  # fmt: skip

    @property
    def question(self) -> DeskQuestion:
        """The question, or a ``ValueError``: read as the protocol reads one, by the same checks."""
        if self.epsilon is None:
            raise ValueError("Say how much ε the question may cost.")
        budget = {"epsilon": self.epsilon} | ({} if self.delta is None else {"delta": self.delta})
        operation = {"type": "sql", "dataset": self.dataset, "sql": self.sql}
        wire = {
            "version": 1,
            "operation": operation,
            "budget": budget,
            "errors": True,
            "label": check_label(self.label),
        }
        return DeskQuestion.from_dict(wire)


def ask(visit: Visit) -> Response:
    """The page of a question: what was written, and what is known of it."""
    name = visit.part("name")
    dataset = visit.service.dataset(visit.person, name)
    sub_book(visit.service.ledger, dataset, visit.person.name)  # who has no part of it is told so here
    if visit.request.method == "GET":
        return _show(visit, _first(visit, name), cold=("made up", name) not in visit.desk.made)
    problem, form = "", _first(visit, name)
    try:
        form = AskForm.read(name, visit.form)
        form = _done(visit, form, visit.form.text("do", "check"))
    except (ValueError, DiscreetError) as error:
        problem = str(error)
        form = replace(form, sql=visit.form.text("sql", form.sql))
    return _show(visit, form, problem)


def _first(visit: Visit, name: str) -> AskForm:
    """An empty page; or one with a question to begin with: an example, or one of one's own that was asked before."""
    sql = visit.query.text("sql")
    if key := visit.query.text("from"):
        asked = visit.service.state.question(visit.person.name, key)
        sql = "" if asked is None else str(asked.question["operation"].get("sql", ""))
    if not sql:
        sql = examples(name, visit.service.tables[name])[-1][1]
    return AskForm(name, sql, _usual(visit, name))


def _usual(visit: Visit, name: str) -> float:
    """An epsilon to begin with: a twentieth of one's limit, in round numbers."""
    dataset = visit.service.configuration.datasets[name]
    limit = visit.service.book(dataset, visit.person.name).limit[0]
    wanted = min(limit / USUAL_SHARE, dataset.largest_epsilon)
    power = 10.0 ** math.floor(math.log10(wanted))
    return float(f"{max(m * power for m in (1, 2, 5) if m * power <= wanted * 1.0000001):.3g}")


def _done(visit: Visit, form: AskForm, what: str) -> AskForm:
    """What a button asked for: the SQL of the lists, or the epsilon of an error."""
    table = visit.service.tables[form.dataset]
    match what:
        case "write":
            return replace(form, sql=form.built.sql(form.dataset, columns_of(table)))
        case "error":
            error = visit.form.number("error")
            if error is None:
                raise ValueError("Say how far off an answer may be: a number, such as 20.")
            rows = visit.form.number("rows")
            query = form.question.build(table) if form.epsilon else replace(form, epsilon=1.0).question.build(table)
            if rows is not None and not math.isfinite(rows):
                raise ValueError("rows must be a number of rows, such as 500.")
            epsilon = query.epsilon_for(error=error, delta=form.delta, rows=None if rows is None else int(rows))
            return replace(form, epsilon=epsilon)
        case "check":
            return form
    raise Refusal(422, "invalid", "The page has no such button.")


def _show(visit: Visit, form: AskForm, problem: str = "", *, cold: bool = False) -> Response:
    """The page; the first rehearsal after a start takes a second, and is fetched after the first paint."""
    service, name = visit.service, form.dataset
    dataset = service.configuration.datasets[name]
    book = service.book(dataset, visit.person.name)
    columns = columns_of(service.tables[name])
    names = [{"name": each.name, "text": sql_name(each.name), "kind": each.kind} for each in columns]
    names += [{"name": label, "text": f"'{label}'", "kind": each.name}
              for each in columns if not each.name.isdigit() for label in each.values[:200]]  # fmt: skip
    names += [{"name": word, "text": word, "kind": "SQL"} for word in SQL_WORDS]
    high = min(dataset.largest_epsilon, book.limit[0])
    return visit.show(
        "ask.html.j2",
        form=form,
        names=json.dumps(names),
        columns=columns,
        functions=FUNCTIONS,
        comparisons=COMPARISONS,
        slider=(float(f"{high / 1000:.2g}"), high),
        small=SMALL,
        large=LARGE,
        delta=book.limit[1],
        cold=cold,
        **_known(visit, form, problem, rehearse=not cold),
    )


def _known(visit: Visit, form: AskForm, problem: str, *, rehearse: bool = True) -> dict[str, Any]:
    """What is known of a question: a preview, or a mistake."""
    if problem:
        return {"mistake": Mistake(problem), "known": None}
    try:
        visit.desk.free.take(visit.person.name, "preview", PREVIEWS)
        found = preview(visit.service, visit.person, form.question, visit.desk.made, rehearse=rehearse)
    except Refusal as refusal:
        return {"mistake": Mistake(refusal.message), "known": None}
    except ValueError as error:
        return {"mistake": Mistake(str(error)), "known": None}
    if isinstance(found, Mistake):
        return {"mistake": found, "known": None}
    return {"mistake": None, "known": found}


def confirm(visit: Visit) -> Response:
    """What will be spent, once; and what was answered before, which is free."""
    name = visit.part("name")
    visit.service.dataset(visit.person, name)
    form = _read(name, visit.form)
    found = _known(visit, form, "", rehearse=False)
    if not isinstance(known := found["known"], Preview):
        return _show(visit, form)
    wire = form.question.to_dict()
    return visit.show(
        "confirm.html.j2",
        form=form,
        known=known,
        earlier=visit.desk.history.same(visit.person.name, wire["operation"]),
        key=secrets.token_urlsafe(16),
        deadline=visit.service.configuration.deadline,
    )


def _read(name: str, form: PageForm) -> AskForm:
    try:
        return AskForm.read(name, form)
    except ValueError as error:
        raise Refusal(422, "invalid", str(error)) from None


async def release(visit: Visit) -> Response:
    """Ask: by the one way that charges, under the key that the page was made with."""
    name = visit.part("name")
    dataset = visit.service.dataset(visit.person, name)
    try:
        question, key = _read(name, visit.form).question, key_of_address(visit.form.text("key"))
    except ValueError as error:
        raise Refusal(422, "invalid", str(error)) from None
    visit.desk.server.limits.take(visit.person.name, dataset.name, dataset.rate)
    await visit.service.release(visit.person, key, question)
    return RedirectResponse(f"/answers/{quote(key, safe='')}", 303)
