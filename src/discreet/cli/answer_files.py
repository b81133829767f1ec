"""Answers as files: ``--out`` in the form that a file's ending says, and the folder of answers beside a ledger."""

from __future__ import annotations

import hashlib
import html
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from glob import glob
from pathlib import Path
from typing import Any

__all__ = ["ENDINGS", "KeptQuestion", "check_ending", "folder_beside", "keep", "kept_answer", "write"]

ENDINGS = (".csv", ".parquet", ".json", ".html")
_FORMULA = r"^[=+\-@\t\r]"  # a text that begins so is one to a spreadsheet, whoever wrote it
_PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title>
<style>:root{{color-scheme:light dark}}body{{font:1rem/1.5 system-ui;margin:2rem;max-width:60rem}}
td,th{{padding:.2rem .8rem;text-align:left;border-bottom:1px solid #8886}}code{{overflow-wrap:anywhere}}</style>
<h1>Private answer</h1><p><code>{title}</code></p><table><tr>{head}</tr>{rows}</table><ul>{notes}</ul>
"""


@dataclass(frozen=True)
class KeptQuestion:
    """What was asked, in one form whatever its words (``tables.canonical``), and of what: two that are equal have the
    same answer but for the noise, names and order."""

    form: str
    source: str
    schema: str
    public: tuple[str, ...] = ()

    def fingerprint(self, book: str) -> str:
        """The same for a question that is asked again, of files that have not changed since, in the same book."""
        facts = [book, self.form, *map(_state, (self.source, self.schema))]
        public = [[name, _state(path)] for name, _, path in (entry.partition("=") for entry in self.public)]
        return hashlib.sha256(json.dumps([facts, public]).encode()).hexdigest()[:24]


def _state(path: str) -> list[Any]:
    """A file, or those of a glob, as they are: where they are, and when they were written.

    Not how large: that follows from the records, and nobody has paid for it.
    """
    files = [path] if os.path.exists(path) else sorted(glob(path, recursive=True))
    return [[os.path.realpath(file), os.stat(file).st_mtime_ns] for file in files]


def check_ending(out: str) -> None:
    """Refuse a file whose ending says no form."""
    if Path(out).suffix not in ENDINGS:
        raise ValueError(f"--out is {out!r}, but must name a file that ends in {', '.join(ENDINGS)}.")


def write(frame: Any, facts: dict[str, Any], notes: list[str], file: Path) -> None:
    """Write an answer in the form of the file's ending; lists, as of a histogram, are JSON in a CSV."""
    match file.suffix:
        case ".csv":
            import polars as pl

            lists = [name for name, kind in frame.schema.items() if isinstance(kind, (pl.List, pl.Array))]
            texts = [pl.Series(name, [json.dumps(value) for value in frame[name].to_list()]) for name in lists]
            words = pl.col(pl.String)
            plain = pl.when(words.str.contains(_FORMULA)).then("'" + words).otherwise(words).name.keep()
            frame.with_columns(plain).with_columns(texts).write_csv(file)
        case ".parquet":
            frame.write_parquet(file)
        case ".json":
            file.write_text(_json(facts | {"rows": frame.to_dicts(), "notes": notes}), encoding="utf-8")
        case ".html":
            file.write_text(_html(frame, str(facts["question"]), notes), encoding="utf-8")
        case other:
            raise ValueError(f"{other!r} is no form of an answer.")


def _html(frame: Any, title: str, notes: list[str]) -> str:
    def line(tag: str, values: Any) -> str:
        return "".join(f"<{tag}>{html.escape(str(value))}</{tag}>" for value in values)

    rows = "".join(f"<tr>{line('td', row)}</tr>" for row in frame.rows())
    return _PAGE.format(title=html.escape(title), head=line("th", frame.columns), rows=rows, notes=line("li", notes))


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, default=str, allow_nan=True) + "\n"


# --- answers that were paid for ---------------------------------------------------------------------------------------


def folder_beside(ledger: str) -> Path | None:
    """The folder of answers beside a ledger that is a file: ``budget.db.answers``; none for a server's."""
    path = ledger.removeprefix("sqlite:///") if ledger.startswith("sqlite:///") else ledger
    return None if "://" in path else Path(f"{path}.answers")


def kept_answer(folder: Path | None, fingerprint: str) -> tuple[Path, str] | None:
    """The newest answer to a question that was asked before: its file, and when that was."""
    if folder is None:
        return None
    known = sorted(folder.glob(f"*-{fingerprint}.json"), key=lambda path: int(path.name.partition("-")[0]))
    if not known:
        return None
    return known[-1], str(json.loads(known[-1].read_text(encoding="utf-8"))["asked on"])


def keep(folder: Path, fingerprint: str, entry: str, frame: Any, facts: dict[str, Any], notes: list[str]) -> Path:
    """Keep an answer under the number of its entry in the ledger."""
    path = folder / f"{entry.partition(':')[0]}-{fingerprint}.json"
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    text = _json(facts | {"asked on": now, "entry": entry, "rows": frame.to_dicts(), "notes": notes})
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
    return path
