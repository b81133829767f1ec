"""One file that people can read, and the same facts for machines."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import extra
from discreet.reporting import words
from discreet.reporting.pdf import print_pdf

__all__ = ["Page", "render"]


@dataclass(frozen=True, slots=True)
class Page(ABC):
    """Facts, and how they are written."""

    facts: dict[str, Any]

    @abstractmethod
    def html(self) -> str:
        """One self-contained page: styles and figures inside, no script, nothing fetched."""

    def json(self) -> str:
        """The facts, for machines."""
        return json.dumps(self.facts, indent=2, ensure_ascii=False, allow_nan=False)

    def save(self, path: str | Path) -> Path:
        """Write HTML, JSON or a PDF, as the name ends in ``.html``, ``.json`` or ``.pdf``; another ending is refused.

        A PDF is printed by a browser of this machine (Chromium or Chrome), without a network.
        """
        target = Path(path)
        match target.suffix.lower():
            case ".json":
                target.write_text(self.json(), encoding="utf-8")
            case ".html" | ".htm":
                target.write_text(self.html(), encoding="utf-8")
            case ".pdf":
                print_pdf(self.html(), target)
            case other:
                raise ValueError(f"The file ends in {other!r}, but a report is .html, .json or .pdf.")
        return target


def render(template: str, **values: Any) -> str:
    """A template of this room, filled in; text is escaped."""
    with extra("report"):
        import jinja2
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("discreet.reporting"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {
        "number": _number,
        "bound": _bound,
        "rule": words.rule,
        "percent": words.percent,
        "alike": words.alike,
        "day": _day,
        "hour": _hour,
    }
    return environment.get_template(template).render(**values)


def _number(value: float | None) -> str:
    return "∞" if value is None else words.number(value)


def _bound(value: float | None) -> str:
    return "∞" if value is None else words.bound(value)


def _day(at: str) -> str:
    return at[:10]


def _hour(at: str) -> str:
    return at[11:16]
