"""Answers that were kept beside a ledger, as findings of its report: the numbers beside what they cost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.reporting import Finding

__all__ = ["kept_findings"]

MOST = 30  # groups that are drawn of an answer


def kept_findings(folder: Path | None, releases: Mapping[int, str]) -> list[Finding]:
    """A finding for each column of numbers of the answers to these releases, labels by their number in the ledger.

    A file belongs to a release by its number and its question; what else is in the folder is left out. The ledger does
    not hold answers, so that it cannot vouch for their numbers: the caption says so.
    """
    if folder is None or not folder.is_dir():
        return []
    kept = sorted(folder.glob("*-*.json"), key=lambda path: (len(path.name.partition("-")[0]), path.name))
    answers = [answer for path in kept if (answer := _read(path)) is not None]
    known = [answer for answer in answers if releases.get(_number(answer)) == answer.get("question")]
    return [finding for answer in known for finding in _findings(answer)]


def _read(path: Path) -> Mapping[str, Any] | None:
    """What a file holds, if that can be an answer."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # no JSON, or no text
        return None
    return held if isinstance(held, dict) else None


def _number(answer: Mapping[str, Any]) -> int:
    number = str(answer.get("entry", "")).partition(":")[0]
    return int(number) if number.isdigit() else -1


def _findings(answer: Mapping[str, Any]) -> Iterator[Finding]:
    from discreet.reporting import Finding  # heavy: no help text needs it

    rows = answer["rows"][:MOST]
    names = list(rows[0]) if rows else []
    columns = [name for name in names if f"{name}_low" in names and f"{name}_high" in names]
    ends = {f"{name}_{end}" for name in columns for end in ("low", "high")}
    keys = [name for name in names if name not in ends and name not in columns]
    if isinstance(answer.get("groups"), list):  # which of them groups are called by
        keys = [name for name in keys if name in answer["groups"]]
    left = len(answer["rows"]) - len(rows)
    caption = f"{answer['question']} (entry {_number(answer)}, asked on {answer['asked on']}). " + (
        f"The first {MOST} groups; {left:,} more are in the kept answer. " if left else ""
    )
    for name in columns:
        whole = [row for row in rows if all(isinstance(row[part], (int, float)) for part in _parts(name))]
        if whole:
            yield Finding(
                title=name,
                labels=[", ".join(str(row[key]) for key in keys) or "all" for row in whole],
                values=[row[name] for row in whole],
                errors=[max(row[f"{name}_high"] - row[name], row[name] - row[f"{name}_low"], 0) for row in whole],
                axis=name,
                caption=caption + "The bars hold the answer without noise in 95 of 100 groups. As kept beside the "
                "ledger, which does not hold answers itself.",
            )


def _parts(name: str) -> tuple[str, str, str]:
    return name, f"{name}_low", f"{name}_high"
