"""One request of somebody who is signed in, and what the pages share."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from discreet.desk.behaviour import Behaviour
from discreet.desk.errors import Refusal
from discreet.desk.history import History
from discreet.desk.pages.forms import PageForm
from discreet.desk.pages.views import page
from discreet.desk.service import Service
from discreet.desk.sessions import Sessions
from discreet.desk.state import Person

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import HTMLResponse

    from discreet.desk.server import Server

__all__ = ["PageServer", "Visit"]

EVERYBODY, DECIDING, READING, ASKING = (
    ("analyst", "owner", "officer"),
    ("owner",),
    ("owner", "officer"),
    ("analyst", "owner"),
)
MENU = (
    ("/", "Home", EVERYBODY),
    ("/requests", "Requests", READING),
    ("/spending", "Spending", READING),
    ("/people", "People", READING),
    ("/ledger", "Ledger", READING),
    ("/verify", "Verify", READING),
    ("/history", "History", ASKING),
    ("/planner", "Planner", EVERYBODY),
)


class PageServer:
    """What all pages share: the desk's services, sessions, notes, and what was refused."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.service: Service = server.service
        self.sessions = Sessions(self.service.state)
        self.history = History(self.service.state, self.service.has_not_left)
        self.behaviour = Behaviour()
        server.metrics.listeners.append(self.behaviour.note)
        self.free = type(server.limits)()  # of what costs no budget, but takes the machine's time
        self._heavy = threading.Lock()
        self.made: dict[Any, Any] = {}  # the few things that are worth keeping, by what they depend on

    @contextmanager
    def alone(self, wait: float = 0.0) -> Iterator[None]:
        """Do what takes seconds, one at a time. Who waits for it holds a thread, and everybody's requests have only
        a few of those: so owner and officers wait, but no analyst does.
        """
        if not self._heavy.acquire(timeout=wait):
            raise Refusal(429, "busy", "The desk is at something else that takes some seconds: try again after it.")
        try:
            yield
        finally:
            self._heavy.release()


@dataclass(frozen=True)
class Visit:
    """One request: who made it, what it sent."""

    desk: PageServer
    person: Person
    request: Request
    form: PageForm
    query: PageForm = field(default_factory=lambda: PageForm(b""))

    @property
    def service(self) -> Service:
        """What the desk does for people."""
        return self.desk.service

    def part(self, name: str) -> str:
        """A part of the address."""
        return str(self.request.path_params[name])

    def show(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A page with what stands around every page."""
        return page(template, status, **self._around(), **values)

    def _around(self) -> dict[str, Any]:
        menu = [(path, name) for path, name, roles in MENU if self.person.role in roles]
        path = self.request.url.path
        here = max((each for each, _ in menu if path == each or path.startswith(f"{each}/")), key=len, default="")
        waiting = 0
        if self.person.role == "owner":
            waiting = self.desk.history.waiting()
        return {
            "person": self.person,
            "menu": menu,
            "here": here,
            "head": self.service.ledger.head(),
            "frozen": self.service.state.fact("frozen"),
            "waiting": waiting,
        }
