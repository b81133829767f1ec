"""An answer as a file: CSV that no spreadsheet runs, Parquet, JSON, and a cell for a notebook."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from discreet.desk.answers import read_frame
from discreet.desk.state import Asking

__all__ = ["FORMS", "file_name", "inert", "notebook_cell"]


def inert(value: object) -> object:
    """A cell that a spreadsheet would run as a formula gets a quote in front.

    >>> inert("=1+1"), inert("-5"), inert(-5)
    ("'=1+1", "'-5", -5)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else value


def _csv(asking: Asking, url: str) -> bytes:
    """The columns; lists, as of a histogram, are JSON. Numbers stay numbers."""
    columns = asking.answer["columns"]
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow([inert(column["name"]) for column in columns])
    for row in zip(*(column["values"] for column in columns), strict=True):
        writer.writerow([json.dumps(value) if isinstance(value, list) else inert(value) for value in row])
    return buffer.getvalue().encode()


def _parquet(asking: Asking, url: str) -> bytes:
    buffer = io.BytesIO()
    read_frame(asking.answer["columns"]).write_parquet(buffer)
    return buffer.getvalue()


def _json(asking: Asking, url: str) -> bytes:
    """What was asked, what was answered, what it cost, where it stands in the ledger."""
    facts = {"asked": asking.at, "number": asking.number, "key": asking.key, "question": dict(asking.question)}
    return json.dumps(facts | dict(asking.answer), indent=2, ensure_ascii=False, allow_nan=False).encode()


def notebook_cell(asking: Asking, url: str) -> str:
    """Python that gets the same answer again through the client, for nothing."""
    question: Mapping[str, Any] = asking.question
    operation = question["operation"]
    asked = "".join(f"# {line}\n" for line in (operation.get("sql") or json.dumps(operation)).splitlines())
    return (
        "import os\n\nimport discreet as dp\n\n"
        f"desk = dp.desk.connect({url!r}, os.environ['DISCREET_DESK_TOKEN'])\n"
        f"{asked}answer = desk.release_of({asking.key!r})  # kept: reading it again costs nothing\n"
        "answer.value\n"
    )


def _cell(asking: Asking, url: str) -> bytes:
    return notebook_cell(asking, url).encode()


FORMS: Mapping[str, tuple[str, Callable[[Asking, str], bytes]]] = {
    "csv": ("text/csv; charset=utf-8", _csv),
    "parquet": ("application/vnd.apache.parquet", _parquet),
    "json": ("application/json", _json),
    "py": ("text/x-python; charset=utf-8", _cell),
}


def file_name(asking: Asking, form: str) -> str:
    """A name that every system takes."""
    dataset = re.sub("[^A-Za-z0-9_-]+", "-", str(asking.question["operation"]["dataset"]))[:60]
    return f"{dataset}-{asking.number}.{form}"
