"""The officer's pages: the ledger, whether its chain holds, what protects whom. They read all, and change nothing."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.desk.errors import NOT_THERE, Refusal
from discreet.desk.pages.downloads import inert
from discreet.desk.pages.views import HEADERS
from discreet.desk.pages.visits import Visit
from discreet.desk.requests import number_of_address
from discreet.errors import extra
from discreet.ledger import ChainBroken, Entry

with extra("desk"):
    from starlette.responses import HTMLResponse, Response

if TYPE_CHECKING:
    from discreet.reporting import Report

__all__ = ["export", "hazards", "ledger", "report", "verify"]

PAGE = 60  # entries
KINDS = ("charge", "raise", "open", "plan", "reserve")
THIS_DESK = "kept by this desk"  # no path of the machine, and no server's name, leaves over the web
PATIENCE = 60.0  # seconds to wait for what others are at
QUICK = 1500  # entries of a book whose report is made while one waits


def ledger(visit: Visit) -> Response:
    """Entries, the newest first, by words, book and kind."""
    words, book, kind = (visit.query.text(name) for name in ("words", "book", "kind"))
    before = visit.query.text("before")
    names = [each.name for each in visit.service.ledger.overview().books]
    found = visit.service.ledger.search(
        words,
        book=book if book in names else None,
        kind=kind if kind in KINDS else "",
        before=number_of_address(before),
        newest=PAGE + 1,
    )
    shown = found[-PAGE:][::-1]
    return visit.show("ledger.html.j2", entries=shown, more=len(found) > PAGE, words=words, book=book, kind=kind,
                      names=names, kinds=KINDS)  # fmt: skip


def export(visit: Visit) -> Response:
    """The whole ledger, with every column, for other programs."""
    with visit.desk.alone(PATIENCE):
        entries, head = visit.service.ledger.entries(), visit.service.ledger.head()
        if visit.query.text("form") == "csv":
            return _attached(_csv(entries, head), "text/csv; charset=utf-8", "ledger.csv")
        text = json.dumps({"head": head, "entries": [entry.to_dict() for entry in entries]}, indent=1)
        return _attached(text, "application/json", "ledger.json")


def _csv(entries: list[Entry], head: str) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    columns = [field.name for field in fields(Entry)]
    writer.writerow([*columns, "chain"])
    for entry in entries:
        said = f"verified up to entry {head.partition(':')[0]}"
        writer.writerow([*(inert(getattr(entry, column)) for column in columns), said])
    return buffer.getvalue()


def _attached(content: str | bytes, kind: str, name: str) -> Response:
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


def verify(visit: Visit) -> Response:
    """Recompute every entry; with a head that was kept, find a history that was rewritten as a whole."""
    if visit.request.method == "GET":
        return visit.show("verify.html.j2", found=None, problem="", kept="")
    kept = "".join(visit.form.text("kept").split())
    try:
        with visit.desk.alone(PATIENCE):
            found = visit.service.ledger.verify(kept or None)
    except ChainBroken as error:
        return visit.show("verify.html.j2", found=None, problem=str(error), kept=kept)
    except ValueError as error:
        raise Refusal(422, "invalid", str(error)) from None
    return visit.show("verify.html.j2", found=found, problem="", kept=kept)


def _report(visit: Visit, name: str) -> Report:
    """The report of a book, made once for each head."""
    from discreet.reporting import report as make

    if name not in {each.name for each in visit.service.ledger.books()}:
        raise Refusal(404, "not_found", NOT_THERE)
    head = visit.service.ledger.head()
    with visit.desk.alone(PATIENCE):
        kept = visit.desk.made.get(("report", name))
        if kept is None or kept[0] != head:
            kept = head, make(visit.service.ledger.book(name))
            kept[1].facts["ledger"]["address"] = THIS_DESK
            visit.desk.made["report", name] = kept
    made: Report = kept[1]
    return made


def hazards(visit: Visit) -> Response:
    """The table after SP 800-226: which hazards there are, and what watches them here."""
    name = visit.part("name")
    standing = next((book for book in visit.service.ledger.overview().books if book.name == name), None)
    if standing is None or "/" in name:
        raise Refusal(404, "not_found", NOT_THERE)
    wait = standing.charges > QUICK and not visit.query.text("now")
    facts: Any = None if wait else _report(visit, name).facts
    return visit.show("hazards.html.j2", name=name, facts=facts)


def report(visit: Visit) -> Response:
    """The report as the report room makes it: in the browser, as PDF, as JSON, as an entry for the public registry."""
    name, form = visit.part("name"), visit.part("form")
    if form not in ("html", "pdf", "json", "registry"):
        raise Refusal(404, "not_found", NOT_THERE)
    made = _report(visit, name)
    match form:
        case "json":
            return _attached(made.json(), "application/json", f"{_plain(name)}.json")
        case "registry":
            entry = json.dumps(made.registry(), indent=2, ensure_ascii=False)
            return _attached(entry, "application/json", f"{_plain(name)}-registry.json")
        case "pdf":
            return _attached(_pdf(visit, made), "application/pdf", f"{_plain(name)}.pdf")
    text, policy = restyle(made.html())
    return HTMLResponse(text, headers=HEADERS | {"content-security-policy": policy})


def _pdf(visit: Visit, made: Report) -> bytes:
    with tempfile.TemporaryDirectory() as folder, visit.desk.alone(PATIENCE):
        try:
            return made.save(Path(folder) / "report.pdf").read_bytes()
        except ValueError as error:  # no browser on the desk's machine
            raise Refusal(503, "unavailable", str(error)) from None


def _plain(name: str) -> str:
    return re.sub("[^A-Za-z0-9_-]+", "-", name)[:60]


def restyle(text: str) -> tuple[str, str]:
    """A self-contained page, with its inline styles as one sheet, and a policy that allows that sheet by its hash: the
    desk's pages allow no style that is not the desk's.

    >>> restyle('<style>a {}</style><p style="width: 5%">x</p>')[0]
    '<style>a {}.s0{width: 5%}</style><p class="s0">x</p>'
    """
    classes: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        tag = found[0]
        rule = re.search(r'\sstyle="([^"]*)"', tag)
        assert rule is not None
        name = classes.setdefault(rule[1], f"s{len(classes)}")
        tag = tag.replace(rule[0], "", 1)
        if re.search(r'\sclass="', tag):
            return re.sub(r'(\sclass=")', rf"\g<1>{name} ", tag, count=1)
        return re.sub(r"^(<[A-Za-z0-9:]+)", rf'\g<1> class="{name}"', tag)

    body = re.sub(r'<[A-Za-z][^<>]*\sstyle="[^"]*"[^<>]*>', named, text)
    sheet = "".join(f".{name}{{{rule}}}" for rule, name in classes.items())
    body = body.replace("</style>", f"{sheet}</style>", 1)
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()
              for each in re.findall(r"<style[^>]*>(.*?)</style>", body, flags=re.DOTALL)]  # fmt: skip
    allowed = " ".join(f"'sha256-{each}'" for each in hashes) or "'none'"
    return body, f"default-src 'none'; style-src {allowed}; img-src data:; base-uri 'none'; frame-ancestors 'none'"
