"""Desks to test: their files, a server on loopback, and people with tokens."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import uvicorn

from discreet.desk.configuration import read_configuration
from discreet.desk.questions import BuilderCall, DeskBudget, DeskQuestion
from discreet.desk.server import application
from discreet.desk.service import Service

ROWS = 600
PATIENCE = 600.0  # seconds for what takes a fraction of one: on a machine with other work no test is to fail for that
SCHEMA = """\
[columns]
ward = { categories = ["north", "south"] }
days = { bounds = [0, 30] }
"""
DESK = """\
[desk]
ledger = "{ledger}"
state = "{state}"
workers = {workers}
tick = {tick}
deadline = {deadline}

[datasets.visits]
source = "visits.parquet"
schema = "visits.toml"
epsilon = {epsilon}
delta = {delta}
largest_epsilon = 2.0
approval_above = 1.0
rate = 1000000
"""
USUAL = {
    "ledger": "sqlite:///budget.db",
    "state": "sqlite:///desk.db",
    "workers": 1,
    "tick": 0.02,
    "deadline": 300.0,
    "epsilon": 1000.0,
    "delta": 1e-6,
}
COUNT = DeskQuestion("visits", DeskBudget(epsilon=0.1), (BuilderCall("count"),))
BY_WARD = DeskQuestion(
    "visits",
    DeskBudget(epsilon=0.1),
    (BuilderCall("group_by", ("ward",)), BuilderCall("mean", ("days",))),
    label="stay",
)
LARGE = DeskQuestion("visits", DeskBudget(epsilon=1.5), (BuilderCall("count"),))


def write_desk(folder: Path, **options: Any) -> Path:
    """The files of a desk: 600 visits, half in the north, ten days each."""
    wards = ["north", "south"] * (ROWS // 2)
    pl.DataFrame({"ward": wards, "days": [10] * ROWS}).write_parquet(folder / "visits.parquet")
    (folder / "visits.toml").write_text(SCHEMA, encoding="utf-8")
    (folder / "desk.toml").write_text(DESK.format(**(USUAL | options)), encoding="utf-8")
    return folder / "desk.toml"


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ThreadServer(uvicorn.Server):
    """Says when it is ready."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()


@dataclass
class Running:
    """A desk that answers at ``url``."""

    service: Service
    url: str
    dataset: str = "visits"
    numbers: Iterator[int] = field(default_factory=itertools.count)
    clients: list[httpx.Client] = field(default_factory=list)

    def person(
        self, role: str = "analyst", *, epsilon: float | None = 10.0, delta: float = 0.0, days: float = 90.0
    ) -> tuple[str, str]:
        """A new person: name and token; an analyst has a sub-book."""
        name = f"{role}{next(self.numbers)}"
        if epsilon is not None:
            self.service.books[self.dataset].sub(name, epsilon=epsilon, delta=delta)
        return name, self.service.state.add_person(name, role, (self.dataset,), days=days)

    def client(self, role: str = "analyst", **options: Any) -> httpx.Client:
        """A client with the token of a new person."""
        return self.with_token(self.person(role, **options)[1])

    def with_token(self, token: str) -> httpx.Client:
        client = httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE)
        self.clients.append(client)
        return client

    def close_clients(self) -> None:
        while self.clients:
            self.clients.pop().close()


@contextmanager
def running(file: Path, dataset: str = "visits") -> Iterator[Running]:
    """A server of this process, with real workers."""
    service = Service(read_configuration(file))
    port = free_port()
    config = uvicorn.Config(
        application(service, log=False), host="127.0.0.1", port=port, log_level="error", access_log=False
    )
    server = ThreadServer(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert server.ready.wait(PATIENCE)
        one = Running(service, f"http://127.0.0.1:{port}", dataset)
        yield one
        one.close_clients()
    finally:
        server.should_exit = True
        thread.join()
        service.close()


def ask(client: httpx.Client, question: DeskQuestion | Mapping[str, Any], key: str) -> httpx.Response:
    """Post a question under a key."""
    wire = question.to_dict() if isinstance(question, DeskQuestion) else question
    return client.post("/v1/releases", json=wire, headers={"Idempotency-Key": key})
