"""A page as a PDF, printed by a browser of this machine; where there is none, refused with what to do instead."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["print_pdf"]

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
SECONDS = 120  # a page takes about two; a browser that hangs is ended

# no network, nothing that outlives the page, and no sandbox, which a browser refuses to set up for root
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-pdf-header-footer",
)


def print_pdf(html: str, target: Path) -> None:
    """Print a self-contained page to a file."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise ValueError(
            "A PDF is printed by Chromium or Chrome, and none is installed here. Save the report as .html and print "
            "it from any browser."
        )
    with tempfile.TemporaryDirectory() as folder:
        page, printed = Path(folder) / "page.html", Path(folder) / "page.pdf"
        page.write_text(html, encoding="utf-8")
        command = [browser, *FLAGS, f"--user-data-dir={folder}/profile", f"--print-to-pdf={printed}", page.as_uri()]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
            target.write_bytes(printed.read_bytes())
        except (OSError, subprocess.SubprocessError):
            raise ValueError(
                f"{Path(browser).name} did not print the report. Save it as .html and print it from a browser."
            ) from None
