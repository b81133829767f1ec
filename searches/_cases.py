"""What searches have found, as files that the tests replay: ``tests/cases``.

A search that can try one case by itself has ``retry(case)``, with a case that JSON can hold: the seed of a tree, a test
and its arguments. What breaks a promise is saved under the search's name; ``tests/test_cases.py`` tries every saved
case in every run of the tests, so that what was found once is never lost, and stays mended. A case that is a seed means
what the search draws from it today: whoever changes that writes the case down as a test of its own first.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "replay", "save", "saved", "saving"]

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "cases"


def save(search: str, case: Any, found: str, folder: Path | None = None) -> Path:
    """Keep a case that broke a promise, and what was said of it."""
    text = json.dumps({"search": search, "case": case, "found": found[:2000]}, indent=2, ensure_ascii=False) + "\n"
    name = hashlib.sha256(json.dumps([search, case], sort_keys=True).encode()).hexdigest()[:12]
    path = (folder or FOLDER) / f"{search}-{name}.json"
    path.write_text(text, encoding="utf-8")
    print(f"{search}: saved as {path.name}; python -m pytest tests/test_cases.py -k {name}", flush=True)
    return path


@contextmanager
def saving(search: str, case: Any) -> Iterator[None]:
    """Keep the case if the block breaks a promise, which is raised all the same."""
    try:
        yield
    except AssertionError as error:
        save(search, case, str(error))
        raise


def saved(folder: Path | None = None) -> list[Path]:
    """The files, by name."""
    return sorted((folder or FOLDER).glob("*.json"))


def replay(path: Path) -> None:
    """Try a saved case once more; raise if it breaks its promise still."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    importlib.import_module(f"searches.{kept['search']}").retry(kept["case"])
