"""The site, as ``make docs`` leaves it, in a real browser at the width of a desk and of a phone."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.documents import ROOT
from tests.reporting.browser import Browser

SITE = ROOT / "site"
SIZES = ((1280, 900), (390, 844))

# What sticks out of the window, unless something around it scrolls by itself; pictures that did not arrive; headings.
LOOK = """(() => {
  const inside = e => { for (; e; e = e.parentElement)
    if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)) return true; return false; };
  const seen = [...document.querySelectorAll('article *')];
  const wide = seen.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !inside(e.parentElement));
  const missing = [...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src);
  return {scroll: document.documentElement.scrollWidth, inner: innerWidth, missing,
          wide: wide.map(e => e.tagName + ' ' + e.textContent.slice(0, 40)),
          headings: document.querySelectorAll('article h1').length};
})()"""


class Silent(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


def faults(browser: Browser, site: Path) -> list[str]:
    """What is wrong with a site's pages, a line each; they are served on this machine only, and loaded once. Decisions
    are left out: they are many, short, and plain text.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    found = []
    try:
        for page in sorted(site.rglob("index.html")):
            name = page.parent.relative_to(site).as_posix()
            if name.startswith("decisions/"):
                continue
            browser.show(f"http://127.0.0.1:{server.server_port}/{name}/", *SIZES[0])
            for width, height in SIZES:
                browser.resize(width, height)
                seen = browser.evaluate(LOOK)
                if seen["scroll"] > seen["inner"] or seen["wide"] or seen["missing"] or seen["headings"] != 1:
                    found.append(f"{name} at {width}: {seen}")
                found += [f"{name} at {width}: {problem}" for problem in browser.problems]
                browser.problems.clear()
    finally:
        server.shutdown()
        server.server_close()
    return found


def test_a_page_with_a_fault_is_found(browser: Browser, tmp_path: Path) -> None:
    """The look has power: a wide line, a picture that is not there, an error on the console; and a wide table that
    scrolls by itself is none.
    """
    pages = {
        "fine": "<div style='overflow-x: auto'><p style='width: 2000px'>A table</p></div>",
        "wide": "<p style='width: 2000px'>A line</p>",
        "missing": "<img src='nowhere.png'>",
        "error": "<script>console.error('no')</script>",
    }
    for name, body in pages.items():
        (tmp_path / "site" / name).mkdir(parents=True)
        head = "<meta name=viewport content='width=device-width'><link rel=icon href='data:,'>"
        (tmp_path / "site" / name / "index.html").write_text(f"{head}<article><h1>A page</h1>{body}</article>")
    found = faults(browser, tmp_path / "site")
    assert {line.split()[0] for line in found} == {"wide", "missing", "error"}


@pytest.mark.slow(sibling="test_a_page_with_a_fault_is_found")
def test_every_page_fits_a_desk_and_a_phone(browser: Browser) -> None:
    """No page scrolls sideways, every picture arrives, the console has nothing to say."""
    if not (SITE / "index.html").is_file():
        pytest.skip("there is no site/; make docs builds it")
    assert faults(browser, SITE) == []
