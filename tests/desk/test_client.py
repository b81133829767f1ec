"""At the client a question is built, explained and tried like one of a local table; asked, it is one release."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import discreet as dp
from discreet import cli
from discreet.desk import ApprovalNeeded, Desk, DeskError, connect
from discreet.desk.questions import DeskQuestion
from discreet.tables import col
from tests.desk.desks import COUNT, Running


@pytest.fixture
def at(desk: Running) -> Iterator[Desk]:
    with connect(desk.url, desk.person()[1]) as one:
        yield one


def test_a_release_is_one_of_a_local_table(desk: Running, at: Desk) -> None:
    visits = at.table("visits")
    asked = visits.filter(col("days") >= 1).group_by("ward").mean("days").count()
    folder = desk.service.configuration.folder
    local = dp.table(folder / "visits.parquet", schema=folder / "visits.toml")
    beside = local.filter(col("days") >= 1).group_by("ward").mean("days").count()
    answer, own = asked.release(epsilon=0.5, label="stay"), beside.release(epsilon=0.5, errors=True, label="stay")
    assert isinstance(answer, dp.Release)
    assert answer.value.schema == own.value.schema
    assert (answer.event, answer.unit, answer.label, answer.error) == (own.event, own.unit, own.label, own.error)
    assert dp.epsilon(answer, delta=0.0) <= 0.5
    assert answer.head.startswith(f"{answer.entry}:")
    assert "stay" in answer._repr_html_()
    assert str(asked.explain(epsilon=0.5)).splitlines()[1:] == str(beside.explain(epsilon=0.5)).splitlines()[1:]


def test_explaining_and_rehearsing_send_nothing(desk: Running, at: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = at.table("visits").group_by("ward").median("days")
    monkeypatch.setattr(Desk, "_call", lambda *_, **__: pytest.fail("this was sent"))
    assert "Exponential" in str(asked.explain(epsilon=0.5))
    rows = asked.rehearse(epsilon=50.0).value
    assert rows["ward"].to_list() == ["north", "south"]
    assert all(10 < value < 20 for value in rows["days_median"])  # of days drawn between 0 and 30


def test_made_up_rows_are_the_same_whatever_the_records_are(at: Desk) -> None:
    from discreet.desk.public_tables import made_up_table

    visits = at.table("visits")
    first, second = (made_up_table("visits", *visits.made_up).count().release(1.0, rng=7) for _ in range(2))
    assert first.value.equals(second.value)


def test_sql_is_asked_as_it_is_written(at: Desk) -> None:
    answer = at.table("visits").sql("SELECT COUNT(*) AS n FROM visits WHERE ward = 'north'", epsilon=1.0)
    assert abs(answer.value["n"][0] - 300) < 100
    with pytest.raises(ValueError, match="write the aggregate, the order or the limit into it"):
        at.table("visits").parse("SELECT COUNT(*) FROM visits").limit(1)


def test_the_key_gives_the_stored_answer(at: Desk) -> None:
    asked = at.table("visits").count()
    answer = asked.release(epsilon=0.1, key="one")
    assert asked.release(epsilon=0.1, key="one").value.equals(answer.value)
    assert at.release_of("one").value.equals(answer.value)
    assert [line["key"] for line in at.history()] == ["one"]


def test_who_has_the_answer_already_is_told_whatever_epsilon_and_words_it_was_asked_with(at: Desk) -> None:
    """In Python by a warning; under a key of one's own nothing is remarked, and another question is another."""
    visits = at.table("visits")
    first = visits.sql("SELECT ward, COUNT(*) AS n FROM visits WHERE days > 1 GROUP BY ward", epsilon=0.1)
    again = visits.filter(col("days") > 1).group_by("ward").count()
    with pytest.warns(
        UserWarning, match=rf"asked before, on 2.* UTC, with epsilon=0.1: desk.release_of\('{first.key}'"
    ):
        again.release(epsilon=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.release(epsilon=0.2, key="mine")
        visits.filter(col("days") > 2).group_by("ward").count().release(epsilon=0.1)


def test_the_command_line_refuses_to_ask_a_desk_twice_by_accident(
    desk: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, token = desk.person()
    monkeypatch.setenv("DISCREET_DESK_TOKEN", token)
    for epsilon, options, code in (("0.1", (), 0), ("0.2", (), 2), ("0.2", ("--again",), 0)):
        words = ["query", "visits", "--desk", desk.url, "--sql", "SELECT COUNT(*) AS n FROM visits", "--epsilon"]
        with pytest.raises(SystemExit) as stopped:
            cli.main([*words, epsilon, *options])
        assert int(stopped.value.code or 0) == code
        assert ("say --again to pay for another one" in capsys.readouterr().err) == (code == 2)
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 2


def test_a_lost_connection_is_asked_again_under_the_same_key(desk: Running) -> None:
    """The reply of the first request is lost after the desk has charged."""

    class Losing(httpx.HTTPTransport):
        lost = 0

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            if request.method == "POST" and self.lost < 2:
                self.lost += 1
                response.read()
                response.close()
                raise httpx.ReadError("lost")
            return response

    name, token = desk.person()
    transport = Losing()
    with connect(desk.url, token, transport=transport) as at:
        at.table("visits").count().release(epsilon=0.1)
    assert transport.lost == 2
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 1


@pytest.mark.parametrize("status", [None, 502])
def test_who_loses_the_connection_for_good_is_given_the_key(
    desk: Running, monkeypatch: pytest.MonkeyPatch, status: int | None
) -> None:
    """Charged, and no reply comes through, or a proxy's own: without the key they would pay a second time."""

    class Lost(httpx.HTTPTransport):
        lost = True

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            if request.method == "POST" and self.lost:
                response.read()
                if status is None:
                    raise httpx.ReadError("lost")
                return httpx.Response(status, text="Bad gateway")
            return response

    monkeypatch.setattr("discreet.desk.client.time.sleep", lambda seconds: None)
    name, token = desk.person()
    transport = Lost()
    with connect(desk.url, token, transport=transport) as at:
        asked = at.table("visits").count()
        with pytest.raises(DeskError, match="Ask again with key=") as failed:
            asked.release(epsilon=0.1)
        transport.lost = False
        assert asked.release(epsilon=0.1, key=failed.value.key).key == failed.value.key
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 1


def test_where_no_desk_answers_and_what_a_wrong_token_needs_is_said(
    desk: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.desk.client.time.sleep", lambda seconds: None)

    class Nobody(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError("refused")

    nobody = connect("https://desk.example", "t" * 30, transport=Nobody())
    with nobody as at, pytest.raises(DeskError, match=r"No desk answers at https://desk\.example.*ConnectError"):
        at.about()
    with connect(desk.url, "t" * 30) as at, pytest.raises(DeskError, match=r"token new PERSON.*DISCREET_DESK_TOKEN"):
        at.about()


def test_a_key_that_is_just_being_taken_up_is_asked_again(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request is not yet written down when the second one comes: that is no failure."""
    name, token = desk.person()
    waits: list[float] = []
    claimed = desk.service._claimed(name, "busy")
    claimed.__enter__()

    def wait(seconds: float) -> None:
        waits.append(seconds)
        claimed.__exit__(None, None, None)

    monkeypatch.setattr("discreet.desk.client.time.sleep", wait)
    with connect(desk.url, token) as at:
        assert at.table("visits").count().release(epsilon=0.1, key="busy").key == "busy"
    assert waits == [0.2]


def test_refusals_are_the_exceptions_of_a_local_table(desk: Running, at: Desk) -> None:
    visits = at.table("visits")
    with pytest.raises(ValueError, match="did you mean 'days'"):
        visits.mean("dayz")
    with pytest.raises(AttributeError):
        visits.head()  # rows are never shown
    with pytest.raises(ValueError, match="costs at most"):
        visits.count().release(epsilon=3.0)
    with connect(desk.url, desk.person(epsilon=0.01)[1]) as poor, pytest.raises(dp.BudgetExceeded):
        poor.table("visits").count().release(epsilon=0.1)
    with pytest.raises(DeskError) as missing:
        at.table("salaries")
    assert missing.value.status == 404


def test_a_large_question_raises_until_it_is_approved(desk: Running, at: Desk) -> None:
    asked = at.table("visits").count()
    with pytest.raises(ApprovalNeeded, match="key='large'") as waiting:
        asked.release(epsilon=1.5, key="large")
    owner = desk.client("owner", epsilon=None)
    number = owner.get("/v1/requests").json()["requests"][0]["number"]
    owner.post(f"/v1/requests/{number}/approve", json={"why": "agreed"})
    assert asked.release(epsilon=1.5, key=waiting.value.key).value.height == 1


def test_what_is_left_is_told(at: Desk) -> None:
    at.ask(COUNT)
    assert at.budget("visits")["left"]["epsilon"] == pytest.approx(9.9)
    assert at.about()["datasets"] == ["visits"]


def test_a_token_is_sent_over_tls_or_to_this_machine_and_never_shown() -> None:
    for url in ("http://desk.example", "ftp://desk.example", "https://user:secret@desk.example", "desk.example"):
        with pytest.raises(ValueError, match="url") as refused:
            connect(url, "desk_secret")
        assert "secret" not in str(refused.value)
    with connect("https://desk.example", "desk_secret") as one:
        assert "secret" not in repr(one)


def test_what_cannot_be_sent_is_refused_before_it_is_asked(at: Desk) -> None:
    visits: Any = at.table("visits")
    with pytest.raises(ValueError, match="cannot be sent"):
        visits.histogram("days", {1, 2})
    assert DeskQuestion("visits", COUNT.budget, COUNT.steps).to_dict() == COUNT.to_dict()


def test_a_missing_extra_names_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(dp.MissingExtra, match=r"discreet\[desk\]"):
        connect("https://desk.example", "t" * 30)


def test_the_client_loads_no_server(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = "import discreet.desk, sys; print([m for m in ('starlette', 'uvicorn', 'torch') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
