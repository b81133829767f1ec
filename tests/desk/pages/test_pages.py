"""History, planner, the owner's pages and the officer's: what people do there, and what they see."""

from __future__ import annotations

import csv
import io
import json
import re

import httpx
import pytest

from discreet.desk.behaviour import MANY_REFUSALS, Behaviour
from discreet.desk.errors import Refusal
from discreet.desk.pages import planner
from discreet.desk.pages.officer import restyle
from discreet.desk.pages.visits import PageServer
from discreet.desk.server import Server
from discreet.desk.state import Person
from tests.desk.pages.conftest import Hospital
from tests.desk.pages.test_signing_in import signed_in
from tests.desk.pages.visitor import Visitor

COUNTS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
MEANS = "SELECT ward, AVG(days) AS n FROM visits GROUP BY ward"


def ask(client: httpx.Client, key: str, *, sql: str = COUNTS, epsilon: float = 0.1, label: str = "") -> httpx.Response:
    form = {"sql": sql, "epsilon": str(epsilon), "key": key, "label": label or key}
    return client.post("/data/visits/release", data=form)


def words(page: str) -> str:
    """What can be read of a page's source."""
    return " ".join(re.sub("<[^>]*>", " ", page.split("<main")[1]).split())


# --- history ---------------------------------------------------------------------------------------------------------


def test_questions_are_found_noted_and_compared(visitor: Visitor, hospital: Hospital) -> None:
    name, token = hospital.person()
    visitor.sign_in(token, "/history")
    assert "Nothing asked yet" in visitor.text()
    client = hospital.desk.with_token("none")
    client.cookies.set("discreet_desk", visitor.call("Network.getCookies")["cookies"][0]["value"])
    client.headers["Origin"] = hospital.desk.url
    for key, sql in (("one", COUNTS), ("two", COUNTS), ("three", MEANS)):
        assert ask(client, key, sql=sql).headers["location"] == f"/answers/{key}"
    visitor.open("/answers/three")
    visitor.write("#note", "for the board, naïve")
    visitor.click("button[value=note]")
    for found, keys in (
        ("naïve board", ["three"]),
        ("COUNT", ["two", "one"]),
        ("50%", []),
        ("", ["three", "two", "one"]),
    ):
        visitor.open("/history")
        visitor.write("#words", found)
        visitor.click(".find button")
        listed = visitor.evaluate("[...document.querySelectorAll('ul.history a')].map(a => a.textContent)")
        assert listed == keys
    assert visitor.evaluate("document.querySelectorAll('.plot .trail').length") == 1
    for key in ("one", "two"):
        visitor.click(f"input[value={key}]", loads=False)
    visitor.click("form[action='/compare'] button")
    assert visitor.evaluate("document.querySelectorAll('.plot .second .mark').length") == 5
    assert "within noise" in visitor.text()
    assert hospital.spent(name) == 3


def test_what_is_compared_must_be_two_of_ones_own(hospital: Hospital) -> None:
    _, client = signed_in(hospital)
    ask(client, "mine")
    assert client.get("/compare?key=mine").status_code == 422
    assert client.get("/compare?key=mine&key=x&key=y").status_code == 422
    assert client.get("/compare?key=mine&key=nobodys").status_code == 404
    _, stranger = signed_in(hospital)
    ask(stranger, "theirs")
    assert client.get("/compare?a=mine&b=theirs").status_code == 404


def test_a_note_is_for_a_question_of_ones_own(hospital: Hospital) -> None:
    _, client = signed_in(hospital)
    ask(client, "noted")
    _, stranger = signed_in(hospital)
    assert stranger.post("/answers/noted", data={"do": "note", "note": "x"}).status_code == 404
    assert client.post("/answers/noted", data={"do": "note", "note": "x" * 2001}).status_code == 422
    assert client.post("/answers/noted", data={"do": "other"}).status_code == 422


def test_an_answer_that_has_not_left_is_not_shown(hospital: Hospital) -> None:
    """The page looks where the protocol looks: until the tick it runs, whoever asks again."""
    _, client = signed_in(hospital)
    ask(client, "early")
    service = hospital.desk.service
    asking = service.state.questions(state="answered")[0]
    service._in_flight.add(asking.number)
    try:
        page = client.get("/answers/early").text
        assert "being answered" in page
        assert 'http-equiv="refresh"' in page
        assert "cardiology" not in page
        assert client.get("/answers/early/csv").status_code == 404
        for path in ("/history", "/"):  # lists tell no earlier
            listed = client.get(path).text
            assert "state-running" in listed, path
            assert "state-answered" not in listed, path
        assert "You have this answer already" not in _confirm(client)
    finally:
        service._in_flight.discard(asking.number)
    assert "cardiology" in client.get("/answers/early").text
    assert "state-answered" in client.get("/history").text
    assert "You have this answer already" in _confirm(client)


def _confirm(client: httpx.Client) -> str:
    return client.post("/data/visits/confirm", data={"sql": COUNTS, "epsilon": "0.1"}).text


def test_an_address_that_cannot_be_read_is_a_mistake_and_no_failure(hospital: Hospital) -> None:
    _, client = signed_in(hospital)
    with httpx.Client(base_url=hospital.desk.url) as stranger:
        assert stranger.get("/sign-in?next=%ff").status_code == 422
    assert client.get("/history?before=%c2%b2").status_code == 200
    assert client.get("/history?before=%ff").status_code == 422


def test_the_planner_reads_nothing_and_adds_up(hospital: Hospital) -> None:
    from discreet import accounting, events

    _, client = signed_in(hospital, "officer")
    page = client.get("/planner?plan=questions&count=50&epsilon=0.05&delta=1e-6").text
    together = accounting.epsilon(events.PureDP(epsilon=0.05) * 50, delta=1e-6)
    assert f"ε = {together:.4g}" in words(page)
    assert "Added up, they are ε = 2.5" in words(page)
    assert words(client.get("/planner?plan=questions&count=0&epsilon=0.05").text).count("Not yet") == 1
    assert "must be a number" in client.get("/planner?plan=questions&count=x&epsilon=0.05").text


def test_who_plans_trainings_keeps_nobody_waiting(hospital: Hospital, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes seconds holds one thread, not all that the desk has; and nobody asks for it without end."""
    _, client = signed_in(hospital)
    training = "/planner?plan=training&records=100&parameters=10&epochs=1&epsilon=2&delta=1e-6"
    monkeypatch.setattr(planner, "TRAININGS", 0)
    assert client.get(training).status_code == 429
    desk = PageServer(Server(hospital.desk.service))
    with desk.alone(), pytest.raises(Refusal, match="takes some seconds"), desk.alone():
        pass
    with desk.alone():
        pass


@pytest.mark.slow(sibling="test_the_planner_reads_nothing_and_adds_up")
def test_the_planner_plans_a_training(hospital: Hospital) -> None:
    _, client = signed_in(hospital)
    page = client.get("/planner?plan=training&records=10000&parameters=1000&epochs=20&epsilon=2&delta=1e-6").text
    assert "suggested" in words(page)
    assert page.count('class="trail') == 3


# --- the owner -------------------------------------------------------------------------------------------------------


@pytest.mark.slow(sibling="test_a_declined_question_says_why_and_costs_nothing")
def test_a_large_question_waits_is_approved_and_is_asked(
    visitor: Visitor, another: Visitor, hospital: Hospital
) -> None:
    """Two people, two browsers: one asks, the other sees what it means and decides, the first is answered."""
    name, token = hospital.person()
    visitor.sign_in(token, "/data/visits/ask")
    visitor.write("#epsilon", "0.8")
    visitor.until("document.querySelector('#panel').innerText.includes('The owner is asked first')")
    visitor.until("!document.querySelector('.htmx-request, .htmx-settling')")
    visitor.click("#panel .primary")
    visitor.click(".middle .primary")
    assert "waits for the owner" in visitor.text()
    assert "Nothing was charged." in visitor.text()
    another.sign_in(hospital.person("owner")[1], "/requests")
    mine = f"e => e.innerText.toLowerCase().includes({json.dumps(name)})"
    number = another.evaluate(f"[...document.querySelectorAll('.request')].find({mine}).id")
    assert "an attacker detects at most" in another.text(f"#{number}")
    another.write(f"#{number} input", "agreed with the ward")
    another.click(f"#{number} button[value=approve]")
    assert hospital.spent(name) == 0
    visitor.open(visitor.address())
    assert "agreed with the ward" in visitor.text()
    visitor.click("button[value=ask]")
    assert "To quote" in visitor.text()
    assert hospital.spent(name) == 1
    label = hospital.desk.service.ledger.book(f"visits/{name}").entries()[-1].label
    assert "approved by owner-" in label


def test_a_declined_question_says_why_and_costs_nothing(hospital: Hospital) -> None:
    name, client = signed_in(hospital)
    _, owner = signed_in(hospital, "owner")
    ask(client, "big", epsilon=0.9)
    number = hospital.desk.service.state.question(name, "big").number  # type: ignore[union-attr]
    assert owner.post(f"/requests/{number}", data={"do": "decline"}).status_code == 422  # without a reason
    assert owner.post(f"/requests/{number}", data={"do": "decline", "why": "too fine"}).status_code == 303
    page = words(client.get("/answers/big").text)
    assert "Nothing was charged." in page
    assert "“too fine”" in page
    assert hospital.spent(name) == 0


def test_freezing_tells_analysts_why_and_is_undone(visitor: Visitor, hospital: Hospital) -> None:
    _, client = signed_in(hospital)
    visitor.sign_in(hospital.person("owner")[1])
    visitor.write("#why", "a new file comes in")
    visitor.click("button[value=freeze]")
    assert "No, not as it stands" in visitor.text()
    refused = ask(client, "frozen")
    assert refused.status_code == 409
    assert "a new file comes in" in words(refused.text)
    assert "Nothing was charged." in words(refused.text)
    visitor.click("button[value=thaw]")
    assert ask(client, "thawed").status_code == 303


def test_a_limit_is_raised_with_a_reason_that_stays(hospital: Hospital) -> None:
    name, client = signed_in(hospital, epsilon=0.1)
    _, owner = signed_in(hospital, "owner")
    assert ask(client, "more", epsilon=0.5).status_code == 402
    form = {"book": f"visits/{name}", "epsilon": "1", "delta": "0"}
    assert owner.post("/limits", data=form).status_code == 422
    assert owner.post("/limits", data=form | {"why": "x", "epsilon": "0"}).status_code == 422
    assert owner.post("/limits", data=form | {"why": "x", "book": "other"}).status_code == 404
    assert owner.post("/limits", data=form | {"why": "a second study"}).status_code == 303
    assert ask(client, "more", epsilon=0.5).status_code == 303
    entry = hospital.desk.service.ledger.search(kind="raise")[-1]
    assert entry.label.startswith("a second study [raised by owner-")
    assert client.post("/limits", data=form | {"why": "me too"}).status_code == 404


def test_spending_is_shown_by_person_with_what_is_odd(hospital: Hospital) -> None:
    name, client = signed_in(hospital)
    _, owner = signed_in(hospital, "owner")
    ask(client, "spent")
    for _ in range(MANY_REFUSALS + 1):
        client.get("/ledger")
    page = words(owner.get("/spending").text)
    assert f"{name} 1" in page
    assert f"{MANY_REFUSALS + 1} refusals within an hour" in page
    assert f"{MANY_REFUSALS + 1} refusals" in words(owner.get("/").text)


def test_behaviour_is_forgotten_after_an_hour() -> None:
    now = [0.0]
    behaviour = Behaviour(lambda: now[0])
    for _ in range(130):
        behaviour.note("ada", "/v1/releases", 201)
    assert behaviour.hourly()["ada"]["odd"] == ["a burst: 130 questions within an hour"]
    now[0] = 3601.0
    assert behaviour.hourly()["ada"]["odd"] == []


# --- the officer -----------------------------------------------------------------------------------------------------


@pytest.mark.slow(sibling="test_the_ledger_is_filtered_and_exported")
def test_an_officer_sees_whether_this_may_go_on(visitor: Visitor, hospital: Hospital) -> None:
    """From a link to the verdict, to the chain against a head that was kept, to the hazards."""
    kept = hospital.desk.service.ledger.head()
    _, client = signed_in(hospital)
    ask(client, "later")
    visitor.sign_in(hospital.person("officer")[1])
    assert "Yes, this may go on" in visitor.text()
    visitor.open("/verify")
    visitor.write("#kept", kept)
    visitor.click("main form button")
    assert "It holds." in visitor.text()
    assert "the head that you kept is among them" in visitor.text()
    number, digest = kept.split(":")
    visitor.write("#kept", f"{number}:{digest[::-1]}")
    visitor.click("main form button")
    assert "It does not hold." in visitor.text()
    visitor.open("/hazards/visits")
    assert "SP 800-226" in visitor.text()
    visitor.open("/report/visits.html")
    assert visitor.evaluate("document.querySelectorAll('figure svg').length") == 3
    assert visitor.evaluate("getComputedStyle(document.querySelector('.bar span')).width !== '0px'")


def test_the_ledger_is_filtered_and_exported(hospital: Hospital) -> None:
    name, client = signed_in(hospital)
    _, officer = signed_in(hospital, "officer")
    ask(client, "rare", label="rare words")
    ask(client, "common", label="=cmd()")
    page = officer.get("/ledger", params={"words": "WORDS rare", "book": f"visits/{name}", "kind": "charge"}).text
    assert page.count("<tr>") == 2
    assert "No such entry" in officer.get("/ledger", params={"words": "nothing of that kind"}).text
    assert "No such entry" in officer.get("/ledger", params={"before": "1"}).text
    rows = list(csv.DictReader(io.StringIO(officer.get("/ledger/export?form=csv").text)))
    assert rows[-1]["label"] == "'=cmd()"
    sent = officer.get("/ledger/export?form=json").json()
    assert sent["head"] == hospital.desk.service.ledger.head()
    assert len(sent["entries"]) == len(rows) == int(sent["head"].split(":")[0])


def test_the_report_comes_in_every_form(hospital: Hospital) -> None:
    _, officer = signed_in(hospital, "officer")
    assert officer.get("/report/visits.json").json()["book"] == "visits"
    for form in ("json", "html", "registry"):  # where the files are is nobody's business on the web
        assert str(hospital.desk.service.configuration.folder) not in officer.get(f"/report/visits.{form}").text
    assert officer.get("/report/visits.registry").json()["model"]["name"] == "central"
    for path in ("/report/visits.exe", "/report/none.html", "/hazards/none"):
        assert officer.get(path).status_code == 404


@pytest.mark.slow(sibling="test_the_report_comes_in_every_form")
@pytest.mark.usefixtures("chromium")
def test_the_report_is_printed(hospital: Hospital) -> None:
    _, officer = signed_in(hospital, "officer")
    assert officer.get("/report/visits.pdf").content.startswith(b"%PDF")


def test_a_reports_styles_are_one_sheet_that_is_allowed_by_its_hash() -> None:
    text, policy = restyle(
        '<style>p {}</style><p class="a" style="width: 1%">x</p><b style="width: 1%"/><i>style="no"</i>'
    )
    assert text == '<style>p {}.s0{width: 1%}</style><p class="s0 a">x</p><b class="s0"/><i>style="no"</i>'
    assert policy.count("sha256-") == 1
    assert "unsafe" not in policy


# --- errors ----------------------------------------------------------------------------------------------------------


def test_a_failure_says_nothing_of_itself(hospital: Hospital, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a private value: 4711")

    _, client = signed_in(hospital)
    monkeypatch.setattr(hospital.desk.service, "describe", fail)
    reply = client.get("/data/visits")
    assert reply.status_code == 503
    assert "4711" not in reply.text
    assert "nothing is charged twice" in words(reply.text).lower()


def test_every_refusal_says_what_was_spent_and_what_to_do(hospital: Hospital) -> None:
    _, client = signed_in(hospital, epsilon=0.2)
    ask(client, "taken")
    replies = [
        ask(client, "taken", epsilon=0.05),
        ask(client, "too much", epsilon=0.5),
        ask(client, "too large", epsilon=5.0),
        ask(client, "wrong", sql="SELECT dayz FROM visits"),
        ask(client, "", epsilon=0.1),
        client.get("/answers/none"),
        client.get("/data/none"),
        client.post("/data/visits/ask", content=b"%FF=%ff&\xff"),
    ]
    assert [reply.status_code for reply in replies] == [409, 402, 422, 422, 422, 404, 404, 422]
    for reply in replies:
        page = words(reply.text)
        assert "Nothing was charged." in page
        assert 'class="notice"' in reply.text


def test_an_owner_adds_somebody_whose_token_is_shown_once(visitor: Visitor, hospital: Hospital) -> None:
    visitor.sign_in(hospital.person("owner")[1], "/people")
    visitor.write("#name", "zoe")
    visitor.write("#share", "0.5")
    visitor.click("button[value=add]")
    token = visitor.text("#token").strip()
    visitor.open("/people")
    assert token not in visitor.evaluate("document.documentElement.outerHTML")
    visitor.click(".who button")
    visitor.sign_in(token)
    assert "ε = 0.5 left of 0.5" in " ".join(visitor.text().split())
    assert hospital.desk.service.revoke("zoe") == 1
    visitor.open("/")
    assert visitor.address().startswith("/sign-in")


@pytest.mark.slow(sibling="test_a_declined_question_says_why_and_costs_nothing")
def test_a_job_is_shown_where_it_waits_and_when_it_is_answered(hospital: Hospital) -> None:
    """Synthetic rows, asked with the client: pages show what waits, and what came of it, without figures."""
    name, client = signed_in(hospital)
    hospital.desk.service.raise_limit(_owner(), "visits", name, delta=1e-7, why="a job")
    token = hospital.desk.service.new_token(name)
    wire = {"version": 1, "operation": {"dataset": "visits", "type": "synthesis", "rows": 5},
            "budget": {"epsilon": 0.2, "delta": 1e-8}}  # fmt: skip
    api = hospital.desk.with_token(token)
    assert api.post("/v1/releases", json=wire, headers={"Idempotency-Key": "rows"}).status_code == 202
    _, owner = signed_in(hospital, "owner")
    assert "synthesis" in words(owner.get("/requests").text)
    number = hospital.desk.service.state.question(name, "rows").number  # type: ignore[union-attr]
    assert owner.post(f"/requests/{number}", data={"do": "approve", "why": "fine"}).status_code == 303
    assert client.post("/answers/rows", data={"do": "ask"}).status_code == 303
    page = client.get("/answers/rows")
    assert page.status_code == 200
    assert page.text.count("<tr>") == 6
    assert "synthesis" in words(client.get("/history").text)


def _owner() -> Person:
    return Person("olga", "owner")
