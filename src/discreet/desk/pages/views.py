"""How a page is written: templates that escape everything, and the headers that let a browser run nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

from discreet.errors import extra
from discreet.reporting import words

with extra("desk"):
    import jinja2
    from starlette.responses import HTMLResponse, Response

__all__ = ["POLICY", "page", "static_file"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",  # with none at all, a browser would not say where a form was sent from
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("discreet.desk.pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "number": lambda value: "∞" if value is None else words.number(value),
        "whole": lambda value: f"{value:,}",
        "percent": words.percent,
        "day": _day,
        "moment": _moment,
        "short_head": _short_head,
    }
    environment.filters |= filters
    environment.globals["static"] = _address
    return environment


def page(template: str, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any) -> HTMLResponse:
    """A page of a template."""
    text = _environment().get_template(template).render(**values)
    return HTMLResponse(text, status, headers={**HEADERS, **(headers or {})})


def _day(at: str) -> str:
    moment = datetime.fromisoformat(at)
    return f"{moment.day} {moment:%b %Y}"


def _moment(at: str) -> str:
    """A time as people read it, in UTC.

    >>> _moment("2026-11-19T05:28:31.123456+00:00")
    '19 Nov 2026, 05:28'
    """
    return f"{_day(at)}, {at[11:16]}"


def _short_head(head: str) -> str:
    """The number of the last entry and the first digits of its hash."""
    number, _, digest = head.partition(":")
    return f"{number}:{digest[:8]}…"


@cache
def _contents(name: str) -> tuple[bytes, str] | None:
    """A file that pages load, and its kind; the report's own styles are the first of them: one family, one palette."""
    if name == "report.css":
        return resources.files("discreet.reporting").joinpath("templates/style.css.j2").read_bytes(), "text/css"
    folder = resources.files("discreet.desk.pages").joinpath("static")
    known = {file.name: file for file in folder.iterdir() if file.is_file()}
    if name not in known:
        return None
    return known[name].read_bytes(), _TYPES[name[name.rindex(".") :]]


@cache
def _address(name: str) -> str:
    """Where a static file is, with what it holds in its address: a browser may keep it for good."""
    found = _contents(name)
    assert found is not None, name
    return f"/static/{name}?{hashlib.sha256(found[0]).hexdigest()[:12]}"


def static_file(name: str) -> Response | None:
    """A static file, without a file system in between: what is not in the folder is not there."""
    found = _contents(name)
    if found is None:
        return None
    return Response(found[0], media_type=found[1], headers={"cache-control": "public, max-age=31536000, immutable"})
