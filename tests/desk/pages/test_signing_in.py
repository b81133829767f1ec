"""Sessions: a token is pasted once, a cookie that scripts cannot read stands for it, and it ends."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import httpx
import pytest

from discreet.desk.pages.routes import PAGES, _local
from discreet.desk.pages.views import POLICY
from discreet.desk.server import application
from tests.desk.desks import PATIENCE
from tests.desk.pages.conftest import Hospital
from tests.desk.pages.visitor import Visitor

COUNTS = "SELECT COUNT(*) AS n FROM visits"
PARTS = {"{name}": "visits", "{key}": "none", "{form}": "csv", "{number}": "999"}


def signed_in(hospital: Hospital, role: str = "analyst", **options: Any) -> tuple[str, httpx.Client]:
    """A client that has a session, as a browser has."""
    name, token = hospital.person(role, **options)
    url = hospital.desk.url
    client = httpx.Client(base_url=url, headers={"Origin": url, "Accept": "text/html"}, timeout=PATIENCE)
    hospital.desk.clients.append(client)
    reply = client.post("/sign-in", data={"token": token})
    assert reply.status_code == 303, reply.text
    return name, client


def path_of(route: str) -> str:
    for part, value in PARTS.items():
        route = route.replace(part, value)
    return route


def test_somebody_signs_in_sees_what_is_left_and_signs_out(visitor: Visitor, hospital: Hospital) -> None:
    name, token = hospital.person(epsilon=2.0)
    visitor.open("/data/visits")
    assert visitor.address() == "/sign-in?next=/data/visits"
    visitor.write("#token", token)
    visitor.click("main button")
    assert visitor.address() == "/data/visits"
    assert "cardiology, geriatrics" in visitor.text()
    visitor.open("/")
    seen = visitor.text()
    assert "ε = 2 left of 2" in " ".join(seen.split())
    assert "about 50 more counts within ±150" in " ".join(seen.split())
    assert name in visitor.text("header")
    assert visitor.evaluate("document.cookie") == ""  # not for scripts
    assert visitor.evaluate("document.documentElement.outerHTML").count(token) == 0
    visitor.click(".who button")
    visitor.open("/")
    assert visitor.address() == "/sign-in?next=/"


def test_a_wrong_token_is_refused_with_what_to_do(visitor: Visitor) -> None:
    visitor.open("/sign-in")
    visitor.write("#token", "desk_" + "A" * 43)
    visitor.click("main button")
    assert "No such token" in visitor.text()
    assert "The owner of the data gives a new one" in visitor.text()
    assert visitor.missed()


def test_the_cookie_is_strict_and_not_for_scripts(hospital: Hospital) -> None:
    _, token = hospital.person()
    reply = httpx.post(f"{hospital.desk.url}/sign-in", data={"token": token}, headers={"Origin": hospital.desk.url})
    cookie = reply.headers["set-cookie"].lower()
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}
    assert token.lower() not in cookie
    assert "secure" not in cookie  # on this machine; elsewhere it is


def test_over_tls_no_neighbouring_host_can_plant_a_session(hospital: Hospital) -> None:
    """Another machine of the same domain may set cookies for it, but none of this name, which browsers keep apart."""
    _, token = hospital.person()
    _, planted = signed_in(hospital)
    own = {"Origin": "https://localhost", "Host": "localhost"}  # as a proxy passes it on
    reply = httpx.post(f"{hospital.desk.url}/sign-in", data={"token": token}, headers=own)
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith("__Host-discreet_desk=")
    assert {"Secure", "HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "domain" not in cookie.lower()
    session = cookie.partition("=")[2].partition(";")[0]
    other = planted.cookies["discreet_desk"]
    for name, value, status in (("__Host-discreet_desk", session, 200), ("discreet_desk", other, 303)):
        reply = httpx.get(f"{hospital.desk.url}/", headers=own | {"Cookie": f"{name}={value}"})
        assert reply.status_code == status
    named = f"__Host-discreet_desk={session}"
    ended = httpx.post(f"{hospital.desk.url}/sign-out", headers=own | {"Cookie": named})
    assert "Secure" in ended.headers["set-cookie"]  # else the browser keeps it
    assert httpx.get(f"{hospital.desk.url}/", headers=own | {"Cookie": named}).status_code == 303


def test_looking_whether_a_page_is_there_changes_nothing_and_is_no_form(hospital: Hospital) -> None:
    _, client = signed_in(hospital)
    client.headers.pop("Origin")
    assert client.head("/").status_code == 200
    assert client.head("/sign-in").status_code == 200


def test_a_session_ends_with_its_token_and_with_its_time(hospital: Hospital, monkeypatch: pytest.MonkeyPatch) -> None:
    name, client = signed_in(hospital)
    assert client.get("/").status_code == 200
    clock = hospital.desk.service.state._clock
    monkeypatch.setattr(hospital.desk.service.state, "_clock", lambda: clock() + timedelta(hours=12.1))
    assert client.get("/").status_code == 303
    monkeypatch.undo()
    assert client.get("/").status_code == 200
    hospital.desk.service.state.revoke(name)
    assert client.get("/").headers["location"] == "/sign-in?next=/"


def test_a_session_is_kept_as_a_hash_alone(hospital: Hospital) -> None:
    _, client = signed_in(hospital)
    session = client.cookies["discreet_desk"]
    held = b"".join(file.read_bytes() for file in hospital.desk.service.configuration.folder.glob("desk.db*"))
    assert session.encode() not in held


@pytest.mark.parametrize("origin", [None, "https://evil.example", "null"])
def test_a_form_of_another_site_changes_nothing(hospital: Hospital, origin: str | None) -> None:
    _, client = signed_in(hospital, "owner")
    client.headers.pop("Origin")
    headers = {} if origin is None else {"Origin": origin}
    for path, handlers, _ in PAGES:
        if "POST" in handlers:
            assert client.post(path_of(path), data={"why": "x"}, headers=headers).status_code in (403, 404)
    assert client.post("/sign-out", headers=headers).status_code == 403
    assert client.post("/sign-in", data={"token": "x" * 30}, headers=headers).status_code == 403
    assert client.get("/").status_code == 200
    assert hospital.desk.service.state.fact("frozen") is None


@pytest.mark.parametrize("role", ["analyst", "owner", "officer"])
def test_a_page_of_another_role_is_like_one_that_is_not_there(hospital: Hospital, role: str) -> None:
    _, client = signed_in(hospital, role)
    nothing = client.get("/no-such-page")
    assert nothing.status_code == 404
    for path, handlers, roles in PAGES:
        if role not in roles and "GET" in handlers:
            reply = client.get(path_of(path))
            assert (reply.status_code, _body(reply)) == (404, _body(nothing)), path


def _body(reply: httpx.Response) -> str:
    """What is said; which of the menu's pages one is on is no news."""
    return reply.text.split("<main")[1].split("</main>")[0]


def test_every_page_is_marked_and_lets_nothing_else_run(hospital: Hospital) -> None:
    for role in ("analyst", "owner", "officer"):
        _, client = signed_in(hospital, role)
        for path, handlers, roles in PAGES:
            if "GET" in handlers and role in roles:
                reply = client.get(path_of(path))
                kind = reply.headers["content-type"]
                assert reply.headers.get_list("content-security-policy") != [], path
                if "text/html" in kind and not path.startswith("/report"):
                    assert reply.headers.get_list("content-security-policy") == [POLICY], path
                    assert "<style" not in reply.text
                    assert ' style="' not in reply.text
                    assert " onclick" not in reply.text
                assert "unsafe" not in reply.headers["content-security-policy"]
                assert reply.headers["cache-control"] == "no-store"


def test_a_link_from_elsewhere_leads_to_signing_in(hospital: Hospital) -> None:
    """A link in a mail: the strict cookie stays at home, and a page says what to do."""
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    reply = httpx.get(f"{hospital.desk.url}/data/visits", headers=headers)
    assert reply.headers["location"] == "/sign-in?next=/data/visits"
    for mode, dest in (("no-cors", "image"), ("navigate", "iframe"), ("cors", "empty")):
        headers |= {"Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
        assert httpx.get(f"{hospital.desk.url}/data/visits", headers=headers).status_code == 403
    headers |= {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert httpx.get(f"{hospital.desk.url}/v1/desk", headers=headers).status_code == 403


@pytest.mark.parametrize("address", ["//evil.example", "/\\evil.example", "https://evil.example", "", "/a\nb"])
def test_signing_in_leads_nowhere_else(address: str) -> None:
    assert _local(address) == "/"
    assert _local("/data/visits") == "/data/visits"


def test_no_route_tells_what_is_anothers_from_what_is_not_there(hospital: Hospital) -> None:
    """Every route of the server, by every method, called by an analyst of no data set: with names, and with none."""
    service = hospital.desk.service
    _, owner = signed_in(hospital)
    owner.post("/data/visits/release", data={"sql": COUNTS, "epsilon": "0.9", "key": "theirs", "label": "theirs"})
    waiting = service.state.questions(state="waiting")[0]
    token = service.state.add_person(f"stranger-{next(hospital.numbers)}", "analyst", ())
    client = hospital.desk.with_token(token)
    client.headers.update({"Origin": hospital.desk.url, "Accept": "text/html"})
    assert client.post("/sign-in", data={"token": token}).status_code == 303
    there = {"name": "visits", "key": "theirs", "number": str(waiting.number), "form": "csv", "decision": "approve"}
    nowhere = {"name": "nothing", "key": "nothing", "number": "999999", "form": "csv", "decision": "approve"}
    before, seen = service.ledger.head(), 0
    for route in application(service, log=False)._application.routes:
        path = route.path.removesuffix("{rest:path}")
        if path in ("/sign-out", "/static/{name}", "/metrics"):
            continue
        for method in sorted(route.methods):
            said = []
            for parts in (there, nowhere):
                address = re.sub("{([^}]+)}", lambda part, parts=parts: parts[part[1]], path)
                wire = {"version": 1, "operation": {"type": "sql", "dataset": parts["name"], "sql": COUNTS},
                        "budget": {"epsilon": 0.1}}  # fmt: skip
                form = {"do": "note", "note": "x", "why": "x", "sql": COUNTS, "epsilon": "0.1", "key": "k",
                        "book": parts["name"], "name": "x"}  # fmt: skip
                body = {"json": wire} if path.startswith("/v1/") else {"data": form}
                reply = client.request(method, address, headers={"Idempotency-Key": "k"}, **body)
                said.append((reply.status_code, _said(reply)))
            assert said[0] == said[1], (method, path)
            if "{" in path or method != "GET":
                seen += said[0][0] == 404
    assert seen > 30
    assert service.ledger.head() == before
    assert service.state.question_number(waiting.number) == waiting
    assert owner.post("/answers/theirs", data={"do": "cancel"}).status_code == 303


def _said(reply: httpx.Response) -> str:
    return _body(reply) if "<main" in reply.text else reply.text
