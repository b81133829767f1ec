"""The picture of the report, in README and guide: the page that the last quickstart left, as a browser shows it.

``python -m experiments report_picture`` needs Chromium or Chrome and ``build/quickstart.html`` (``make quickstart``),
and writes ``docs/images/report.png``; ``--quick`` writes ``build/report.png`` instead.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from discreet.reporting.pdf import BROWSERS, FLAGS, SECONDS
from experiments import _results

SIZE = (1100, 1450)  # of the window: the head of the page, the verdict, the first figures


def picture(page: Path, target: Path) -> None:
    """The top of a page, as PNG."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("A picture of the page is taken by Chromium or Chrome, and none is installed here.")
    if not page.is_file():
        raise SystemExit(f"There is no {page.name} yet; make quickstart writes it.")
    with tempfile.TemporaryDirectory() as profile:
        window = f"--window-size={SIZE[0]},{SIZE[1]}"
        command = [browser, *FLAGS, "--hide-scrollbars", window, f"--user-data-dir={profile}", f"--screenshot={target}"]
        subprocess.run([*command, page.resolve().as_uri()], check=True, capture_output=True, timeout=SECONDS)


def main(quick: bool = False) -> None:
    target = _results.place_of("images", "report.png")
    try:
        picture(_results.BUILD / "quickstart.html", target)
    except SystemExit as missing:
        if not quick:
            raise
        print(f"No picture: {missing}")
        return
    _results.tell(target)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
