"""What an owner does over HTTP holds at once, stands in the chain, and is nobody else's to do."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from discreet.desk.charging import open_books
from discreet.desk.configuration import read_configuration
from discreet.desk.people import raise_limit
from discreet.ledger import Ledger
from tests.desk.desks import COUNT, LARGE, PATIENCE, Running, ask, write_desk


def test_a_person_that_is_added_may_ask(desk: Running) -> None:
    owner = desk.client("owner", epsilon=None)
    reply = owner.post("/v1/people", json={"name": "eva", "role": "analyst", "shares": {"visits": {"epsilon": 0.15}}})
    assert reply.status_code == 201
    eva = desk.with_token(reply.json()["token"])
    assert [ask(eva, COUNT, key).status_code for key in "ab"] == [201, 402]
    again = owner.post("/v1/people/eva/tokens", json={})
    assert ask(desk.with_token(again.json()["token"]), COUNT, "b").status_code == 402  # the same book
    assert {line["name"]: line["tokens"] for line in owner.get("/v1/people").json()["people"]}["eva"] == 2
    assert owner.delete("/v1/people/eva/tokens").json()["revoked"] == 2
    assert eva.get("/v1/desk").status_code == 401


def test_somebody_who_is_added_again_has_no_fresh_budget(desk: Running) -> None:
    owner = desk.client("owner", epsilon=None)
    body = {"name": "ida", "role": "analyst", "shares": {"visits": {"epsilon": 0.1}}}
    token = owner.post("/v1/people", json=body).json()["token"]
    assert ask(desk.with_token(token), COUNT, "a").status_code == 201
    owner.delete("/v1/people/ida/tokens")
    back = desk.with_token(owner.post("/v1/people", json=body).json()["token"])
    assert ask(back, COUNT, "b").status_code == 402
    larger = body | {"shares": {"visits": {"epsilon": 5.0}}}
    refused = owner.post("/v1/people", json=larger)
    assert refused.status_code == 409


def test_tokens_of_one_role_never_become_anothers(desk: Running) -> None:
    owner = desk.client("owner", epsilon=None)
    owner.post("/v1/people", json={"name": "uma", "role": "analyst", "shares": {"visits": {"epsilon": 0.1}}})
    refused = owner.post("/v1/people", json={"name": "uma", "role": "owner"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid")
    assert "take them back first" in refused.json()["error"]["message"]


def test_a_raise_stands_in_the_chain_with_its_reason(desk: Running) -> None:
    name, token = desk.person(epsilon=0.1)
    client, owner = desk.with_token(token), desk.client("owner", epsilon=None)
    assert [ask(client, COUNT, key).status_code for key in "ab"] == [201, 402]
    raised = owner.post("/v1/datasets/visits/raise", json={"person": name, "epsilon": 0.1, "why": "a second year"})
    assert raised.status_code == 201
    assert ask(client, COUNT, "b").status_code == 201
    entry = desk.service.ledger.book(f"visits/{name}").entries()[-2]
    assert entry.seq == raised.json()["entry"]
    assert entry.label.startswith("a second year [raised by owner")


def test_a_raised_book_is_opened_again_by_the_same_configuration(tmp_path: Path) -> None:
    configuration = read_configuration(write_desk(tmp_path, epsilon=1.0))
    with Ledger(configuration.ledger) as ledger:
        open_books(ledger, configuration)
        dataset = configuration.datasets["visits"]
        raise_limit(ledger, dataset, None, epsilon=1.0, delta=0.0, why="more", by="olga")
    with Ledger(configuration.ledger) as ledger:
        assert open_books(ledger, configuration)["visits"].limit[0] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/datasets/visits/raise", {"epsilon": 1.0}),
        ("/v1/datasets/visits/raise", {"epsilon": 1.0, "why": " "}),
        ("/v1/datasets/visits/raise", {"epsilon": -1.0, "why": "x"}),
        ("/v1/datasets/visits/raise", {"epsilon": 0.0, "why": "x"}),
        ("/v1/datasets/visits/raise", {"epsilon": True, "why": "x"}),
        ("/v1/datasets/visits/raise", {"epsilon": 1.0, "why": "a\nb"}),
        ("/v1/datasets/visits/raise", {"epsilon": 1.0, "why": "x", "person": 7}),
        ("/v1/people", {"name": "a/b", "role": "analyst"}),
        ("/v1/people", {"name": "zoe", "role": "king"}),
        ("/v1/people", {"name": "zoe\u202e", "role": "analyst"}),
        ("/v1/people", {"name": "zoe", "role": "analyst", "shares": {"none": {"epsilon": 1.0}}}),
        ("/v1/people", {"name": "zoe", "role": "analyst", "shares": {"visits": {}}}),
        ("/v1/people", {"name": "zoe", "role": "analyst", "shares": {"visits": {"epsilon": -1.0}}}),
        ("/v1/people", {"name": "zoe", "role": "analyst", "days": 0}),
        ("/v1/people", {"name": "zoe", "role": "analyst", "days": 1e9}),
        ("/v1/people/nobody/tokens", {}),
    ],
)
def test_what_an_owner_mistypes_changes_nothing(desk: Running, path: str, body: dict[str, object]) -> None:
    owner = desk.client("owner", epsilon=None)
    head, people = desk.service.ledger.head(), len(desk.service.state.people())
    assert owner.post(path, json=body).status_code == 422
    assert (desk.service.ledger.head(), len(desk.service.state.people())) == (head, people)


# --- what is queued --------------------------------------------------------------------------------------------------


class Held:
    """Keeps the desk's only worker from its next question until it is let go."""

    def __init__(self, desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go = threading.Event(), threading.Event()
        from discreet.desk.workers import _Worker

        ask_worker = _Worker.ask

        def ask_later(worker: _Worker, job: object) -> object:
            self.reached.set()
            assert self.go.wait(PATIENCE)
            return ask_worker(worker, job)  # type: ignore[arg-type]

        monkeypatch.setattr(_Worker, "ask", ask_later)


def ask_held(desk: Running, monkeypatch: pytest.MonkeyPatch, meanwhile: object) -> tuple[str, int]:
    """A question that has reached its worker when ``meanwhile`` happens: its asker, and its status."""
    name, token = desk.person()
    held, replies = Held(desk, monkeypatch), []
    asking = threading.Thread(target=lambda: replies.append(ask(desk.with_token(token), COUNT, "q")))
    asking.start()
    assert held.reached.wait(PATIENCE)
    meanwhile(name, token)  # type: ignore[operator]
    held.go.set()
    asking.join()
    return name, replies[0].status_code


def test_a_question_that_is_queued_is_taken_back_before_the_charge(
    desk: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancel(name: str, token: str) -> None:
        assert desk.with_token(token).delete("/v1/releases/q").status_code == 200

    name, status = ask_held(desk, monkeypatch, cancel)
    assert status == 409
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 0


def test_what_is_queued_when_its_askers_tokens_are_taken_back_is_not_charged(
    desk: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, status = ask_held(desk, monkeypatch, lambda name, token: desk.service.revoke(name))
    assert status == 401
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 0


def test_what_is_queued_when_the_owner_stops_all_questions_is_not_charged(
    desk: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, status = ask_held(desk, monkeypatch, lambda name, token: desk.service.state.note("frozen", "stop"))
    desk.service.state.note("frozen", None)
    assert status == 409
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 0


def test_what_is_charged_is_not_taken_back() -> None:
    from discreet.desk.charging import Withdrawal
    from discreet.desk.errors import Refusal

    charged, taken = Withdrawal(), Withdrawal()
    charged.begin_charge()
    assert not charged.take_back()
    assert taken.take_back()
    with pytest.raises(Refusal, match="taken back"):
        taken.begin_charge()


def test_an_approval_is_for_a_question_that_still_waits(desk: Running) -> None:
    client, owner = desk.client(), desk.client("owner", epsilon=None)
    ask(client, LARGE, "q")
    number = owner.get("/v1/requests").json()["requests"][0]["number"]
    assert client.delete("/v1/releases/q").status_code == 200
    assert owner.post(f"/v1/requests/{number}/approve", json={"why": "late"}).status_code == 404
    assert ask(client, LARGE, "q").json()["error"]["code"] == "cancelled"
