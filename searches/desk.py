"""No request of a stranger makes a desk fail, or tell: ``python -m searches desk``.

Requests that are right are changed at random (bytes, values, names, headers, paths), and sent to a desk whose records
hold a marked value. Whatever comes back, its status is one that the description names, and it holds neither a path nor
a line of Python nor the marked value, and neither does the log; what was charged is what was answered.
"""

from __future__ import annotations

import asyncio
import copy
import io
import json
import random
import re
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import polars as pl

from discreet.desk.configuration import read_configuration
from discreet.desk.questions import BuilderCall, DeskBudget, DeskQuestion
from discreet.desk.server import ROUTES, application
from discreet.desk.service import Service
from discreet.tables import case, col
from searches._cases import saving

MARK = "ziwkpq"  # in the records, and nowhere else
NUMBER = 27.182818
STATUSES = {200, 201, 202, 400, 401, 402, 403, 404, 405, 408, 409, 413, 421, 422, 429, 503}
WORDS = (MARK, str(NUMBER), "Traceback", 'File "', ".py", "site-packages", "duckdb", "sqlite", "/tmp", "/root", "/home")
TELLING = re.compile("|".join(map(re.escape, WORDS)))
CHUNK = 10_000  # requests to one desk
AT_ONCE = 16  # requests: while one waits for its worker or its tick, others are made
QUESTIONS = [
    DeskQuestion("visits", DeskBudget(epsilon=0.01), (BuilderCall("count"),)),
    DeskQuestion(
        "visits", DeskBudget(epsilon=0.01), (BuilderCall("group_by", ("ward",)), BuilderCall("mean", ("days",)))
    ),
    DeskQuestion(
        "visits",
        DeskBudget(epsilon=0.01, delta=1e-9),
        (
            BuilderCall("filter", ((col("days") >= 1) & col("ward").is_in(["north"]),)),
            BuilderCall("derive", (), {"long": case((col("days") > 10, 1), otherwise=0)}),
            BuilderCall("group_by", ("ward",)),
            BuilderCall("histogram", ("days", [0, 10, 30])),
            BuilderCall("limit", (3,)),
        ),
    ),
    DeskQuestion(
        "visits", DeskBudget(rho=1e-6), sql="SELECT ward, AVG(days) AS d FROM visits WHERE days > 1 GROUP BY ward"
    ),
    DeskQuestion(
        "visits", DeskBudget(epsilon=0.01, delta=1e-9), (BuilderCall("group_by", ("name",)), BuilderCall("count"))
    ),
]
WHOLE = [
    {"type": "marginals", "sets": [["ward"]]},
    {"type": "synthesis", "rows": 5},
    {"type": "fit", "target": "days"},
]
QUESTIONS += [
    DeskQuestion.from_dict(
        {"version": 1, "operation": {"dataset": "visits", **whole}, "budget": {"epsilon": 0.01, "delta": 1e-9}}
    )
    for whole in WHOLE
]
BODIES = {
    "Decision": {"why": "x"},
    "NewPerson": {
        "name": "nobody",
        "role": "analyst",
        "shares": {"visits": {"epsilon": 1.0, "delta": 1e-9}},
        "days": 1,
    },
    "Days": {"days": 1},
    "Raise": {"why": "x", "epsilon": 0.5, "delta": 0.0, "person": "analyst0"},
}
TEXTS = [json.dumps(question.to_dict()) for question in QUESTIONS]
ASKING = [route for route in ROUTES if route[3].body == "DeskQuestion"]
OTHERS = [route for route in ROUTES if route not in ASKING and route[0] != "/v1/freeze"]  # after which nothing is asked
ODD: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**63, 10**9, 10**24, -0.0, 1e308, 5e-324),
    *("", "x", "name", "days", "ward", "\x00", "é", "\ud800", "a" * 5000, "%s%n", "<script>", "=1+1"),
    *([], {}, [[]], [None], {"expression": None}, {"node": "Column", "name": "name"}),
    *("'; DROP TABLE x; --", "../../etc/passwd", "read_csv('/etc/passwd')", "SELECT * FROM x"),
    *("count", "group_by", "release", "__class__"),
]


def write_files(folder: Path) -> Path:
    """A desk whose records hold a marked text and a marked number."""
    rows = {"ward": ["north", "south"] * 50, "days": [NUMBER] * 100, "name": [MARK] + ["b", "c", "d"] * 33}
    pl.DataFrame(rows).write_parquet(folder / "visits.parquet")
    columns = 'ward = { categories = ["north", "south"] }\ndays = { bounds = [0, 30] }\nname = { unlisted = true }\n'
    (folder / "visits.toml").write_text(f"[columns]\n{columns}", encoding="utf-8")
    (folder / "desk.toml").write_text(
        "[desk]\nworkers = 1\ntick = 0.001\n[datasets.visits]\nsource = 'visits.parquet'\nschema = 'visits.toml'\n"
        "epsilon = 100000.0\ndelta = 1e-3\nlargest_epsilon = 1.0\napproval_above = 0.5\nrate = 1000000000\n",
        encoding="utf-8",
    )
    return folder / "desk.toml"


class Request(NamedTuple):
    """What goes over the wire."""

    method: str
    path: str
    headers: dict[str, str]
    content: bytes


def change(value: Any, draw: random.Random) -> None:
    """Replace one part of a JSON value, take it out, repeat it, or put another there."""
    places = list(_places(value))
    holder, key = draw.choice(places)
    match draw.randrange(5):
        case 0 | 1:
            holder[key] = copy.deepcopy(draw.choice(ODD))
        case 2:
            del holder[key]
        case 3:
            other, there = draw.choice(places)
            holder[key] = copy.deepcopy(other[there])
        case _ if isinstance(holder, list):
            holder += [copy.deepcopy(holder[key])] * draw.choice((1, 2, 300))
        case _:
            holder[str(draw.choice(ODD))] = copy.deepcopy(draw.choice(ODD))


def _places(value: Any) -> Any:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _places(value[key])


def request(draw: random.Random, token: str) -> Request:
    """One request: right, but for a few changes."""
    path, method, _, about = draw.choice(ASKING if draw.random() < 0.7 else OTHERS)
    path = path.replace("{name}", draw.choice(("visits", "..%2f..", "x" * 300))).replace("{decision}", "approve")
    path = path.replace("{key}", draw.choice(("q1", "%00", "é")))
    path = path.replace("{number}", draw.choice(("1", "1" + "0" * 30, "9" * 5000)))
    headers = {"Host": "localhost", "Authorization": f"Bearer {token}", "Idempotency-Key": f"k{draw.getrandbits(64)}"}
    body = json.loads(json.dumps(BODIES[about.body]) if about.body in BODIES else draw.choice(TEXTS))
    for _ in range(draw.choice((0, 1, 1, 2, 4))):
        if body:
            change(body, draw)
    content = json.dumps(body).encode()
    if draw.random() < 0.1:
        place = draw.randrange(len(content))
        content = content[:place] + bytes([draw.randrange(256)]) + content[place + draw.randrange(2) :]
    if draw.random() < 0.05:
        name = draw.choice(("Authorization", "Idempotency-Key", "Host", "Content-Length", "Sec-Fetch-Site"))
        headers[name] = draw.choice(("", "x", "Bearer ", "Bearer \x7f" * 30, "-1", "0" * 4000, "é"))
    if draw.random() < 0.05:
        method = draw.choice(("GET", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE"))
    return Request(method, path, headers, content)


async def reply_to(desk: Any, sent: Request) -> tuple[int, str]:
    """The status of a reply, and all of its text: headers and body. A client's own work is left out: it cost more than
    the desk's.
    """
    scope = {
        "type": "http", "http_version": "1.1", "method": sent.method, "scheme": "http", "query_string": b"",
        "path": unquote(sent.path), "raw_path": sent.path.encode(), "server": ("127.0.0.1", 80), "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent.headers.items()],
    }  # fmt: skip
    coming: Iterator[dict[str, Any]] = iter([{"type": "http.request", "body": sent.content, "more_body": False}])
    messages: list[Any] = []

    async def receive() -> dict[str, Any]:
        return next(coming, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        messages.append(message)

    try:
        await desk(scope, receive, send)
    except Exception as error:  # which a server answers with 500
        raise AssertionError(f"{type(error).__name__} came out of the desk") from error
    text = b"".join(message.get("body", b"") for message in messages).decode()
    return messages[0]["status"], text + str(messages[0]["headers"])


async def send_all(service: Service, tokens: list[str], seeds: list[int]) -> int:
    """Send the request of each seed; how many were answered with a release."""
    desk, left, answered = application(service), iter(seeds), 0

    async def work() -> None:
        nonlocal answered
        for seed in left:
            draw = random.Random(seed)
            sent = request(draw, draw.choice(tokens))
            with saving("desk", seed):
                status, text = await reply_to(desk, sent)
                assert status in STATUSES, status
                assert TELLING.search(text) is None, text[:500]
            answered += status == 201

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return answered


def search(seeds: list[int]) -> int:
    """Requests to a desk of their own; how many were answered."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(read_configuration(write_files(Path(folder))))
        try:
            tokens = []
            for role in ("analyst", "analyst", "owner", "officer"):
                name = f"{role}{len(tokens)}"
                service.books["visits"].sub(name, epsilon=50000.0, delta=1e-4)
                tokens.append(service.state.add_person(name, role, ("visits",)))
            with redirect_stderr(io.StringIO()) as log:
                answered = asyncio.run(send_all(service, tokens, seeds))
            assert (told := TELLING.search(log.getvalue())) is None, told
            charges = service.books["visits"].spent().entries
            stored = [asking.state for asking in service.state.questions(most=None)]
            assert charges == sum(state in ("answered", "withheld") for state in stored)
            assert service.workers.restarts == 0
            service.ledger.verify()
        finally:
            service.close()
    return answered


def main(size: int | None = None, seed: int = 0) -> None:
    """10⁵ requests, by default, to a new desk after every 10⁴."""
    count, start, answered = size or 100_000, seed * 10_000_000, 0
    for first in range(0, count, CHUNK):
        sent = min(first + CHUNK, count)
        answered += search(list(range(start + first, start + sent)))
        print(f"desk: {sent:,} requests, {answered:,} answered, none told more than it may", flush=True)


def retry(case: int) -> None:
    """One request again."""
    search([case])
