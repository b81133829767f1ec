"""The page of one question: its answer, or why there is none; read again as often as one likes, for nothing."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

from discreet.desk.errors import NOT_THERE, WITHHELD, Refusal
from discreet.desk.history import AskedQuestion
from discreet.desk.pages.answer_views import AnswerView
from discreet.desk.pages.downloads import FORMS, file_name, notebook_cell
from discreet.desk.pages.views import HEADERS
from discreet.desk.pages.visits import Visit
from discreet.desk.questions import DeskQuestion
from discreet.desk.state import Asking
from discreet.errors import extra

with extra("desk"):
    from starlette.responses import RedirectResponse, Response

__all__ = ["answer", "change", "download", "own_question", "sentence_of", "view_of"]


def own_question(visit: Visit, key: str) -> Asking:
    """A question of one's own, as it may be seen now: until its reply has left at a tick, that it runs."""
    asking = visit.service.state.question(visit.person.name, key)
    if asking is None:
        raise Refusal(404, "not_found", NOT_THERE)
    return visit.service.shown(asking)


async def answer(visit: Visit) -> Response:
    """A question in its state, with its answer if there is one."""
    try:  # settles what was interrupted, as the protocol does
        await visit.service.stored(visit.person, visit.part("key"))
    except Refusal as refusal:
        if refusal.status == 404:
            raise
    return await asyncio.to_thread(_show, visit)


def _show(visit: Visit) -> Response:
    asking = own_question(visit, visit.part("key"))
    asked = AskedQuestion(*(getattr(asking, name) for name in ("number", "person", "key", "digest", "question", "state",
                                                               "at", "decision")))  # fmt: skip
    values: dict[str, Any] = {"asked": asked, "note": visit.desk.history.note_of(asking.number), "withheld": WITHHELD,
                              "sql": asking.question["operation"].get("sql", "")}  # fmt: skip
    if asking.state != "answered":
        return visit.show("pending.html.j2", entry=asking.answer.get("entry"), **values)
    return visit.show(
        "answer.html.j2",
        view=view_of(asking),
        facts=asking.answer,
        sentence=sentence_of(asking),
        cell=notebook_cell(asking, _url(visit)),
        forms=list(FORMS),
        **values,
    )


def view_of(asking: Asking) -> AnswerView:
    """An answer as a page shows it."""
    return AnswerView.of(asking.answer["columns"], asking.answer["error"] or {})


def sentence_of(asking: Asking) -> str:
    """What one would quote: the numbers, their intervals, the guarantee, where it is written down."""
    budget = DeskQuestion.from_dict(asking.question).budget
    cost = f"ε = {budget.epsilon:g}" if budget.epsilon is not None else f"ρ = {budget.rho:g}"
    cost += f", δ = {budget.delta:g}" if budget.delta else ""
    return (
        f"{view_of(asking).sentence(asking.question['operation']['dataset'])}, released with differential privacy "
        f"({cost}, protecting {_unit(asking)}; entry {asking.answer['entry']} of its ledger)."
    )


def _unit(asking: Asking) -> str:
    from discreet.reporting.words import whom

    return whom(str(asking.answer["unit"]))


def _url(visit: Visit) -> str:
    """The desk's address as the browser called it."""
    host = visit.request.headers.get("host", "")
    local = host.rpartition(":")[0] in ("127.0.0.1", "localhost", "[::1]")
    return f"{'http' if local else 'https'}://{host}"


async def change(visit: Visit) -> Response:
    """Keep a note; take a question back while it waits; or ask what was approved."""
    key = visit.part("key")
    asking = own_question(visit, key)
    match visit.form.text("do"):
        case "note":
            visit.desk.history.note(visit.person.name, asking.number, visit.form.text("note"))
        case "cancel":
            visit.service.cancel(visit.person, key)
        case "ask":
            question = DeskQuestion.from_dict(asking.question)
            dataset = visit.service.dataset(visit.person, question.dataset)
            visit.desk.server.limits.take(visit.person.name, dataset.name, dataset.rate)
            await visit.service.release(visit.person, key, question)
        case _:
            raise Refusal(422, "invalid", "The page has no such button.")
    return RedirectResponse(f"/answers/{quote(key, safe='')}", 303, headers=HEADERS)


def download(visit: Visit) -> Response:
    """An answer as a file."""
    asking = own_question(visit, visit.part("key"))
    form = visit.part("form")
    if asking.state != "answered" or form not in FORMS:
        raise Refusal(404, "not_found", NOT_THERE)
    kind, write = FORMS[form]
    named = {"content-disposition": f'attachment; filename="{file_name(asking, form)}"'}
    return Response(write(asking, _url(visit)), media_type=kind, headers=named)
