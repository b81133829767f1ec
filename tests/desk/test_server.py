"""Who may call what, what every reply is like, and what an attacker meets: each row of the threat model's table."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.testclient import TestClient
from uvicorn.server import ServerState

from discreet.desk import guard
from discreet.desk.connections import Connection
from discreet.desk.errors import NOT_THERE
from discreet.desk.json_text import LONGEST
from discreet.desk.server import PUBLIC, ROUTES, application
from discreet.desk.service import MOST_WAITING
from tests.desk.desks import BY_WARD, COUNT, LARGE, Running, ask

ROLES = ("analyst", "owner", "officer")
BODIES: dict[str | None, Any] = {
    "DeskQuestion": COUNT.to_dict(),
    "Decision": {"why": ""},
    "NewPerson": {"name": "described", "role": "analyst", "shares": {"visits": {"epsilon": 1.0}}},
    "Days": {"days": 1},
    "Raise": {"why": "described", "epsilon": 0.1, "person": "nobody"},
    None: None,
}
VALUES = {"name": "visits", "key": "none", "number": "999", "decision": "approve"}


def path_of(route: str) -> str:
    return re.sub(r"{([^}]+)}", lambda name: VALUES[name[1]], route)


@pytest.mark.parametrize("role", ROLES)
def test_to_other_roles_a_route_is_not_there(desk: Running, role: str) -> None:
    client = desk.client(role)
    for route, method, _, about in ROUTES:
        if role in about.roles:
            continue
        reply = client.request(method, path_of(route), json=BODIES[about.body])
        assert (reply.status_code, reply.json()["error"]["message"]) == (404, NOT_THERE)
        assert reply.text == client.get("/v1/nothing-of-that-name").text  # as one that does not exist


def test_without_a_token_nothing_is_told(desk: Running) -> None:
    token = desk.person()[1]
    for header in ({}, {"Authorization": "Bearer desk_" + "A" * 43}, {"Authorization": f"Basic {token}"}):
        with httpx.Client(base_url=desk.url, headers=header) as client:
            for route, method, _, about in ROUTES:
                reply = client.request(method, path_of(route), json=BODIES[about.body], params={"token": token})
                assert reply.status_code == 401


def test_a_token_expires_and_is_taken_back(desk: Running) -> None:
    _, late = desk.person(days=1e-9)
    assert desk.with_token(late).get("/v1/desk").status_code == 401
    name, token = desk.person()
    client = desk.with_token(token)
    assert client.get("/v1/desk").status_code == 200
    assert desk.service.state.revoke(name) == 1
    assert client.get("/v1/desk").status_code == 401


def test_a_token_is_kept_as_a_hash_alone(desk: Running) -> None:
    tokens = [desk.person()[1] for _ in range(3)]
    assert len({*tokens}) == 3
    assert all(len(token) == len("desk_") + 43 for token in tokens)  # 256 bits
    held = b"".join(file.read_bytes() for file in desk.service.configuration.folder.glob("desk.db*"))
    assert not any(token.encode() in held for token in tokens)


def test_an_analyst_sees_no_data_set_that_was_not_given(desk: Running) -> None:
    token = desk.service.state.add_person("guest", "analyst", ())
    client = desk.with_token(token)
    assert client.get("/v1/desk").json()["datasets"] == []
    for reply in (client.get("/v1/datasets/visits"), ask(client, COUNT, "q"), client.get("/v1/datasets/none")):
        assert (reply.status_code, reply.json()["error"]["message"]) == (404, NOT_THERE)


def test_an_officer_reads_everything_and_changes_nothing(desk: Running) -> None:
    officer, client = desk.client("officer"), desk.client()
    ask(client, LARGE, "q")
    for path in ("/v1/books", "/v1/people", "/v1/requests", "/v1/verify", "/v1/datasets/visits"):
        assert officer.get(path).status_code == 200
    assert ask(officer, COUNT, "q").status_code == 404
    number = officer.get("/v1/requests").json()["requests"][0]["number"]
    assert officer.post(f"/v1/requests/{number}/approve", json={"why": ""}).status_code == 404
    assert officer.get("/v1/verify").json()["head"] == desk.service.ledger.head()


# --- what every reply is like ----------------------------------------------------------------------------------------


def test_every_reply_is_marked(desk: Running) -> None:
    """It is kept by nobody, framed by nobody, and runs nothing, whatever is in it."""
    client = desk.client()
    for reply in (client.get("/healthz"), client.get("/nothing"), client.post("/v1/releases", content=b"x" * LONGEST)):
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["content-type"].startswith(("application/json", "text/plain"))


def test_what_is_described_is_what_is_there(desk: Running) -> None:
    """Each path and method of the description answers, with a status it names; what answers is described."""
    client = desk.client("owner")
    document = client.get("/openapi.json").json()
    assert {(path, method.lower()) for path, method, *_ in (*ROUTES, *PUBLIC)} == {
        (path, method) for path, methods in document["paths"].items() for method in methods
    }
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            content = about.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            body = BODIES[content["$ref"].rpartition("/")[2]] if content else None
            reply = client.request(method.upper(), path_of(path), json=body, headers={"Idempotency-Key": "described"})
            assert str(reply.status_code) in about["responses"], (path, method, reply.status_code)
            if path != "/metrics":
                schema = about["responses"][str(reply.status_code)]["content"]["application/json"]["schema"]["$ref"]
                assert_fits(reply.json(), document, document["components"]["schemas"][schema.rpartition("/")[2]])


def assert_fits(value: Any, document: Any, schema: Any) -> None:
    """The few words of JSON Schema that the description uses."""
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    if "type" in schema:
        assert isinstance(value, kinds[schema["type"]])
    if "const" in schema:
        assert value == schema["const"]
    if "enum" in schema:
        assert value in schema["enum"]
    for name in schema.get("required", []):
        assert name in value
    for name, inner in schema.get("properties", {}).items():
        if name in value:
            assert_fits(value[name], document, inner)


def test_the_described_question_is_the_one_that_is_read(desk: Running) -> None:
    schema = desk.client().get("/openapi.json").json()["components"]["schemas"]["DeskQuestion"]
    for question in (COUNT, BY_WARD, LARGE):
        assert_fits(question.to_dict(), None, schema)
        assert set(question.to_dict()) <= set(schema["properties"])


def test_metrics_count_replies_and_name_nobody(desk: Running) -> None:
    name, token = desk.person()
    client = desk.with_token(token)
    ask(client, COUNT, "q")
    text = client.get("/metrics").text
    assert 'discreet_desk_replies_total{route="/v1/releases",status="201"}' in text
    assert name not in text
    assert "visits" not in text


# --- attacks ---------------------------------------------------------------------------------------------------------


def test_a_desk_is_called_by_its_own_names_alone(desk: Running) -> None:
    """DNS rebinding: a page whose name was pointed at this machine."""
    client = desk.client()
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost@evil.example", "localhost:80@evil.example",
                 "localhost:80/evil", "localhost:x", "localhost:80?next=//evil.example"):  # fmt: skip
        reply = client.get("/v1/desk", headers={"Host": host})
        assert (reply.status_code, reply.json()["error"]["code"]) == (421, "wrong_host")
    assert client.get("/v1/desk", headers={"Host": "LOCALHOST:80"}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_a_page_of_another_site_asks_nothing(desk: Running, site: str) -> None:
    name, token = desk.person()
    client = desk.with_token(token)
    reply = client.post("/v1/releases", json=COUNT.to_dict(), headers={"Idempotency-Key": "q", "Sec-Fetch-Site": site})
    assert reply.status_code == 403
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 0


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example", "", "file://"])
def test_a_page_of_another_origin_asks_nothing(desk: Running, origin: str) -> None:
    """Of a browser that does not say from which site it comes."""
    client = desk.client()
    assert client.get("/v1/desk", headers={"Origin": origin}).status_code == 403
    assert client.get("/v1/desk", headers={"Origin": "https://LOCALHOST:8443"}).status_code == 200


def test_a_request_that_is_sent_slowly_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hold one of so many connections."""
    sent: list[Any] = []

    async def never() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    monkeypatch.setattr(guard, "SLOWEST", 0.0)
    scope = {"type": "http", "method": "POST", "path": "/v1/releases", "headers": [(b"host", b"localhost")]}
    asyncio.run(guard.Guard(None, ("localhost",), guard.Metrics(), log=False)(scope, never, send))
    assert sent[0]["status"] == 408


class Transport(asyncio.Transport):
    """Bytes that are written to nobody."""

    is_closed = False

    def write(self, data: Any) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


@pytest.mark.parametrize(
    ("sent", "is_cut_off"),
    [(b"", True), (b"GET / HTTP/1.1\r\nHost: l", True), (b"GET / HTTP/1.1\r\nHost: l\r\n\r\n", False)],
)
def test_a_head_that_is_sent_slowly_is_given_up(monkeypatch: pytest.MonkeyPatch, sent: bytes, is_cut_off: bool) -> None:
    """Five hundred connections that say nothing would lock out everybody."""
    monkeypatch.setattr(Connection, "slowest", 0.0)

    async def connect() -> bool:
        is_over = asyncio.Event()

        async def answer(scope: object, receive: object, send: object) -> None:
            await is_over.wait()

        one, transport = Connection(uvicorn.Config(answer, lifespan="off"), ServerState(), {}), Transport()
        one.connection_made(transport)
        if sent:
            one.data_received(sent)
        for _ in range(5):
            await asyncio.sleep(0)
        is_closed = transport.is_closed
        is_over.set()
        await asyncio.gather(*one.tasks)
        return is_closed

    assert asyncio.run(connect()) == is_cut_off


def test_a_request_with_two_lengths_is_refused(desk: Running) -> None:
    """A proxy that goes by the one would see a second request where a desk that goes by the other does not."""
    text = (
        "POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", int(desk.url.rpartition(":")[2]))) as connection:
        connection.sendall(text.encode())
        reply = b"".join(iter(lambda: connection.recv(65536), b""))
    assert reply.startswith(b"HTTP/1.1 400")
    assert reply.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("number", ["0", "-1", "\u00b2", "9" * 30, "9" * 5000, "x"])
def test_a_number_that_no_question_has_is_not_there(desk: Running, number: str) -> None:
    """Python refuses to read 5,000 digits, which is no failure of the desk's."""
    reply = desk.client("owner").post(f"/v1/requests/{number}/approve", json={"why": ""})
    assert reply.status_code == 404


def test_a_cookie_is_no_token(desk: Running) -> None:
    token = desk.person()[1]
    with httpx.Client(base_url=desk.url, cookies={"token": token, "Authorization": f"Bearer {token}"}) as client:
        assert client.get("/v1/desk").status_code == 401


def test_requests_are_bounded_in_length(desk: Running) -> None:
    client = desk.client()
    for content in (b"x" * (LONGEST + 1), (b"x" * 1000 for _ in range(LONGEST // 1000 + 1))):
        assert client.post("/v1/releases", content=content).status_code == 413


def test_a_question_above_the_largest_epsilon_is_refused(desk: Running) -> None:
    name, token = desk.person(epsilon=100.0)
    client = desk.with_token(token)
    for budget in ({"epsilon": 2.1}, {"rho": 1.0}):
        refused = ask(client, COUNT.to_dict() | {"budget": budget}, "q")
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "too_large")
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 0


def test_who_asks_too_often_is_told_to_wait(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.desk.server import _Limits

    limits = _Limits()
    now = iter([0.0, 0.0, 0.0, 30.0, 30.0])
    monkeypatch.setattr("discreet.desk.server.monotonic", lambda: next(now))
    from discreet.desk.errors import Refusal

    for _ in range(2):
        limits.take("ada", "visits", 2)
    with pytest.raises(Refusal, match="At most 2 questions a minute"):
        limits.take("ada", "visits", 2)
    limits.take("ada", "visits", 2)  # half a minute later, one more
    with pytest.raises(Refusal):
        limits.take("ada", "visits", 2)


def test_questions_about_another_data_set_do_not_lift_the_rate_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.desk.errors import Refusal
    from discreet.desk.server import _Limits

    limits = _Limits()
    now = iter([0.0, 0.0, 1.0, 1.0])
    monkeypatch.setattr("discreet.desk.server.monotonic", lambda: next(now))
    limits.take("ada", "stays", 1)
    limits.take("ada", "visits", 6000)
    limits.take("ada", "visits", 6000)  # a bucket for both would have been filled again within this second
    with pytest.raises(Refusal, match="At most 1 questions a minute"):
        limits.take("ada", "stays", 1)


def test_each_data_set_has_its_rate(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets, client = desk.service.configuration.datasets, desk.client()
    monkeypatch.setitem(datasets, "visits", replace(datasets["visits"], rate=2))  # type: ignore[arg-type]
    assert [client.post("/v1/explain", json=COUNT.to_dict()).status_code for _ in range(3)] == [200, 200, 429]


def test_a_log_has_neither_tokens_nor_what_was_asked(desk: Running, capsys: pytest.CaptureFixture[str]) -> None:
    """A token in its header, in an address, in a body; a question; a failure."""
    name, token = desk.person()
    with TestClient(application(desk.service), base_url="http://localhost") as client:
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "key-of-mine"}
        assert client.post("/v1/releases", json=BY_WARD.to_dict(), headers=headers).status_code == 201
        client.get("/v1/desk", params={"token": token})
        client.get(f"/v1/releases/{token}", headers=headers)
        client.post("/v1/explain", content=token, headers=headers)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    assert [line["status"] for line in lines] == [201, 401, 404, 422]
    assert {"at", "method", "route", "status", "person"} == set(lines[0])
    assert lines[0]["person"] == name
    text = json.dumps(lines)
    assert not [word for word in (token, "desk_", "key-of-mine", "ward", "days", "visits") if word in text]


def test_one_persons_queue_is_bounded(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    name, token = desk.person()
    monkeypatch.setitem(desk.service._waiting, name, MOST_WAITING)
    client = desk.with_token(token)
    refused = ask(client, COUNT, "q")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
    monkeypatch.delitem(desk.service._waiting, name)
    assert ask(client, COUNT, "q").status_code == 201


def test_a_public_mistake_costs_nothing_and_quotes_no_path(desk: Running) -> None:
    name, token = desk.person()
    client = desk.with_token(token)
    wire = BY_WARD.to_dict()
    wire["operation"]["steps"][1]["args"] = ["dayz"]
    refused = ask(client, wire, "q")
    assert refused.status_code == 422
    assert "did you mean 'days'?" in refused.json()["error"]["message"]
    assert str(desk.service.configuration.folder) not in refused.text
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 0


@pytest.mark.parametrize("key", [None, "", "x" * 101, "a/b", "..", "é".encode().decode("latin-1")])
def test_a_release_needs_a_key(desk: Running, key: str | None) -> None:
    headers = {} if key is None else {"Idempotency-Key": key.encode("latin-1")}
    reply = desk.client().post("/v1/releases", json=COUNT.to_dict(), headers=headers)  # type: ignore[arg-type]
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid")


def test_an_unexpected_failure_says_nothing_of_itself(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a private value: 4711")

    monkeypatch.setattr(desk.service, "explain", fail)
    reply = desk.client().post("/v1/explain", json=COUNT.to_dict())
    assert reply.status_code == 503
    assert "4711" not in reply.text


def test_a_broken_ledger_answers_nobody(tmp_path: Path) -> None:
    import sqlite3

    from tests.desk.desks import running, write_desk

    with running(write_desk(tmp_path)) as own:
        client = own.client()
        assert ask(client, COUNT, "q").status_code == 201
        with sqlite3.connect(tmp_path / "budget.db") as connection:
            connection.execute("UPDATE discreet_books SET amounts = replace(amounts, '1', '2')")
        connection.close()
        reply = ask(client, COUNT, "next")
        assert reply.status_code == 503
        assert json.loads(reply.text)["error"]["code"] == "unavailable"
        assert "columns" not in reply.text
