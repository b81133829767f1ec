"""Every page as people have it before them: on a phone and on a desk, light and dark, with a screen reader.

axe-core (Deque Systems, MPL 2.0) checks contrast, labels, roles and landmarks; it is here for these tests alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.desk.pages.conftest import Hospital
from tests.desk.pages.test_pages import COUNTS, MEANS, ask
from tests.desk.pages.test_signing_in import signed_in
from tests.desk.pages.visitor import Visitor

AXE = (Path(__file__).parent / "axe-4.14.0.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
LOOK = """(() => {
  const edge = document.documentElement.clientWidth + 0.5, apart = 'svg, .scroll, pre, .made-up, .sr, .skip';
  const wide = [...document.querySelectorAll('body *')].filter(e => !e.closest(apart) &&
    e.getBoundingClientRect().right > edge).map(e => e.tagName + '.' + e.className);
  return {scroll: document.documentElement.scrollWidth - window.innerWidth, wide,
          h1: document.querySelectorAll('h1').length, title: document.title};
})()"""
PAGES = {
    "analyst": ("/", "/data/visits", "/data/visits/ask", "/answers/look-1", "/answers/look-3", "/history",
                "/compare?key=look-1&key=look-2", "/planner?plan=questions&count=50&epsilon=0.05&delta=1e-6",
                "/nothing", "/data/visits/ask?sql=SELECT+dayz+FROM+visits"),
    "owner": ("/", "/requests", "/people", "/spending", "/checklist"),
    "officer": ("/", "/ledger", "/verify", "/hazards/visits", "/ledger?words=nothing-of-the-kind"),
}  # fmt: skip
FEW = {"analyst": ("/data/visits/ask",), "owner": ("/requests",)}


@pytest.fixture
def tokens(hospital: Hospital) -> dict[str, str]:
    """People at a desk where something has happened."""
    found = {}
    for role in PAGES:
        _, found[role] = hospital.person(role)
        if role == "analyst":
            client = hospital.desk.with_token(found[role])
            client.headers["Origin"] = hospital.desk.url
            client.post("/sign-in", data={"token": found[role]})
            ask(client, "look-1", sql=MEANS)
            ask(client, "look-2", sql=MEANS, epsilon=0.2)
            ask(client, "look-3", sql=COUNTS, epsilon=0.9)
    return found


def violations(visitor: Visitor) -> list[str]:
    """What axe finds wrong, and where."""
    options = json.dumps({"runOnly": {"type": "tag", "values": RULES}})
    visitor.call("Runtime.evaluate", expression=AXE)
    found: dict[str, Any] = visitor.call(
        "Runtime.evaluate", expression=f"axe.run(document, {options}).then(r => JSON.stringify(r.violations))",
        awaitPromise=True, returnByValue=True,
    )["result"]  # fmt: skip
    return [f"{each['id']}: {node['html'][:160]}" for each in json.loads(found["value"]) for node in each["nodes"]]


def look(visitor: Visitor, pages: dict[str, tuple[str, ...]], tokens: dict[str, str], sizes: list[Any]) -> None:
    for role, paths in pages.items():
        visitor.call("Network.clearBrowserCookies")
        visitor.sign_in(tokens[role])
        for path in paths:
            for width, height, dark in sizes:
                visitor.dark(dark)
                visitor.resize(width, height)
                visitor.open(path)
                seen = visitor.evaluate(LOOK)
                where = (path, width, dark)
                assert seen["scroll"] <= 0, (where, seen)
                assert seen["wide"] == [], where
                assert seen["h1"] == 1, where
                assert violations(visitor) == [], where
    visitor.missed()


def test_pages_fit_and_can_be_read(visitor: Visitor, tokens: dict[str, str]) -> None:
    look(visitor, FEW, tokens, [(390, 844, True), (1280, 900, False)])


@pytest.mark.slow(sibling="test_pages_fit_and_can_be_read")
def test_every_page_fits_and_can_be_read(visitor: Visitor, tokens: dict[str, str]) -> None:
    look(visitor, PAGES, tokens, [(width, 844, dark) for width in (390, 1280) for dark in (False, True)])


def test_a_fault_is_found(visitor: Visitor, hospital: Hospital) -> None:
    """The checks see what they are for: a field without a label, pale text, a page that is too wide."""
    visitor.open("/sign-in")
    assert violations(visitor) == []
    visitor.evaluate("""(() => { document.querySelector('label').remove(); const p = document.createElement('p');
        p.textContent = 'pale'; p.style.color = '#ccc'; p.style.width = '3000px';
        document.querySelector('main').append(p); })()""")
    found = {line.partition(":")[0] for line in violations(visitor)}
    assert {"label-title-only", "color-contrast"} <= found
    assert visitor.evaluate(LOOK)["scroll"] > 0


def test_signed_out_pages_can_be_read(hospital: Hospital) -> None:
    _, client = signed_in(hospital)
    assert client.get("/static/desk.css").headers["cache-control"].endswith("immutable")
    assert client.get("/static/../views.py").status_code == 404
    assert client.get("/static/%2e%2e%2fviews.py").status_code == 404
