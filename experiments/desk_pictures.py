"""The pictures of the desk's pages, in README and guide: a hospital's desk of made-up rows, in a real browser.

``python -m experiments desk_pictures`` needs Chromium or Chrome, and writes ``docs/images/desk-*.png`` with
``--write``, otherwise ``build/results/``; ``--quick`` takes the first picture alone. Noise is drawn anew each time.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from discreet.desk.questions import DeskBudget, DeskQuestion
from discreet.reporting.pdf import BROWSERS
from experiments import _results
from tests.desk.desks import Running, ask, running
from tests.desk.pages.hospital import write_hospital
from tests.desk.pages.visitor import Visitor

STAY = "SELECT ward, AVG(days) AS stay FROM visits GROUP BY ward"
BUSY = (
    ("ada", STAY, 0.2, "stay by ward"),
    ("ada", STAY, 0.3, "stay by ward, again"),
    ("ben", "SELECT COUNT(*) AS n FROM visits", 0.1, "all visits"),
    ("ada", "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex", 0.1, "visits by sex"),
    ("ben", "SELECT ward, MEDIAN(cost) AS cost FROM visits GROUP BY ward", 0.3, "median cost by ward"),
    ("ada", "SELECT AVG(age) AS age FROM visits", 0.05, "mean age"),
    ("ada", STAY, 0.8, "stay by ward, for the board"),
)
PICTURES = (
    ("ada", "ask", "/data/visits/ask", 1280, False),
    ("ada", "home", "/", 1280, False),
    ("ada", "data-set", "/data/visits", 1280, False),
    ("ada", "answer", "/answers/q0", 1280, False),
    ("ada", "history", "/history", 1280, False),
    ("ada", "compare", "/compare?key=q0&key=q1", 1280, False),
    ("ada", "planner", "/planner?plan=questions&count=50&epsilon=0.05&delta=1e-6", 1280, False),
    ("ada", "ask-phone", "/data/visits/ask", 390, True),
    ("olga", "owner", "/", 1280, False),
    ("olga", "requests", "/requests", 1280, False),
    ("olga", "spending", "/spending", 1280, False),
    ("olga", "people", "/people", 1280, False),
    ("otto", "ledger", "/ledger", 1280, False),
    ("otto", "verify", "/verify", 1280, True),
    ("otto", "hazards", "/hazards/visits", 1280, False),
)


def fill(desk: Running) -> dict[str, str]:
    """People, and what they have asked; their tokens."""
    service = desk.service
    shares = {"ada": {"visits": (2.0, 0.0)}, "ben": {"visits": (1.0, 0.0)}, "olga": {}, "otto": {}}
    roles = {"ada": "analyst", "ben": "analyst", "olga": "owner", "otto": "officer"}
    tokens = {name: service.add_person(name, roles[name], share) for name, share in shares.items()}
    for number, (name, sql, epsilon, label) in enumerate(BUSY):
        question = DeskQuestion("visits", DeskBudget(epsilon=epsilon), sql=sql, label=label)
        ask(desk.with_token(tokens[name]), question, f"q{number}")
    return tokens


def main(quick: bool = False) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        if quick:
            print("No pictures: they are taken by Chromium or Chrome, and none is installed here.")
            return
        raise SystemExit("Pictures of pages are taken by Chromium or Chrome, and none is installed here.")
    with tempfile.TemporaryDirectory() as name, running(write_hospital(Path(name))) as desk:
        tokens, visitor, signed_in = fill(desk), Visitor(browser, Path(name) / "profile", desk.url), ""
        for who, title, path, width, dark in PICTURES[: 1 if quick else None]:
            if who != signed_in:
                visitor.call("Network.clearBrowserCookies")
                visitor.sign_in(tokens[who])
                signed_in = who
            visitor.dark(dark)
            visitor.resize(width, 844)
            visitor.open(path)
            visitor.until("!document.querySelector('[hx-trigger=load], .htmx-request')")  # what comes after the paint
            target = _results.place_of("images", f"desk-{title}.png")
            visitor.screenshot(target)
            _results.tell(target)
        visitor.close()


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
