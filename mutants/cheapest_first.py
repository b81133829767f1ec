"""A pytest plugin: the first run writes down how long each test takes, later ones start with the cheapest."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

TIMES = Path(os.environ["MUTANTS_TIMES"])
_took: dict[str, float] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    known = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    items.sort(key=lambda item: known.get(item.nodeid, 0.0))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _took[report.nodeid] = _took.get(report.nodeid, 0.0) + report.duration


def pytest_sessionfinish() -> None:
    if not TIMES.exists():
        TIMES.write_text(json.dumps(_took))
