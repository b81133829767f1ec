"""A question is charged once and answered once, whatever is repeated, interrupted or asked at the same moment."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from discreet.desk.configuration import read_configuration
from discreet.desk.errors import WITHHELD, Refusal
from discreet.desk.service import MOST_UNDECIDED, Service
from discreet.desk.state import DeskState, Person
from discreet.errors import DiscreetError
from discreet.ledger import Book
from tests.desk.desks import BY_WARD, COUNT, LARGE, Running, ask, running, write_desk


def charges(desk: Running, person: str) -> int:
    return desk.service.ledger.book(f"visits/{person}").spent().entries


def test_an_answer_has_its_cost_its_error_and_its_entry(desk: Running) -> None:
    reply = ask(desk.client(), BY_WARD, "q").json()
    assert reply["state"] == "answered"
    columns = {column["name"]: column["values"] for column in reply["columns"]}
    assert list(columns) == ["ward", "days_mean", "days_mean_low", "days_mean_high"]
    assert columns["ward"] == ["north", "south"]
    assert all(0 <= mean <= 30 for mean in columns["days_mean"])
    assert reply["unit"] == "one record"
    assert reply["event"]["type"] == "Laplace"
    assert reply["head"].startswith(f"{reply['entry']}:")
    assert "±" in reply["error"]["days_mean"]


def test_the_same_key_gives_the_same_answer_for_one_charge(desk: Running) -> None:
    name, token = desk.person()
    client = desk.with_token(token)
    replies = [ask(client, COUNT, "q").json() for _ in range(3)]
    assert replies[0] == replies[1] == replies[2]
    assert client.get("/v1/releases/q").json() == replies[0]
    assert charges(desk, name) == 1
    assert ask(client, COUNT, "other").json()["entry"] > replies[0]["entry"]
    assert charges(desk, name) == 2


def test_another_question_under_a_known_key_is_refused(desk: Running) -> None:
    client = desk.client()
    assert ask(client, COUNT, "q").status_code == 201
    refused = ask(client, BY_WARD, "q")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "key_taken")


def test_a_key_is_ones_own(desk: Running) -> None:
    first, second = desk.client(), desk.client()
    assert ask(first, COUNT, "q").json()["entry"] < ask(second, COUNT, "q").json()["entry"]
    assert second.get("/v1/releases").json()["releases"][0]["person"] != "analyst"
    assert len(second.get("/v1/releases").json()["releases"]) == 1


def test_one_question_asked_by_many_at_once_is_charged_once(desk: Running) -> None:
    name, token = desk.person()
    with desk.with_token(token) as client, ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: ask(client, COUNT, "q"), range(8)))
    assert {reply.status_code for reply in replies} <= {201, 202, 409}
    assert len({reply.text for reply in replies if reply.status_code == 201}) == 1
    assert charges(desk, name) == 1


def test_a_refused_charge_says_what_is_left_and_leaves_the_key_free(desk: Running) -> None:
    name, token = desk.person(epsilon=0.25)
    client = desk.with_token(token)
    assert [ask(client, COUNT, f"q{number}").status_code for number in range(3)] == [201, 201, 402]
    refused = ask(client, COUNT, "q2")
    assert refused.status_code == 402
    assert refused.json()["error"]["left"]["epsilon"] == pytest.approx(0.05)
    assert charges(desk, name) == 2
    desk.service.ledger.book(f"visits/{name}").raise_limit(epsilon=0.1, why="more time")
    assert ask(client, COUNT, "q2").status_code == 201


def test_analysts_share_the_budget_of_the_data_set(tmp_path: Path) -> None:
    """Two clients, four questions each, of a budget for five; the slow test has fifty clients."""
    assert admitted(write_desk(tmp_path, epsilon=0.5, delta=0.0), clients=2, questions=4) == 5


@pytest.mark.slow(sibling="test_analysts_share_the_budget_of_the_data_set")
def test_fifty_clients_of_twenty_questions_have_exactly_four_hundred_answers(tmp_path: Path) -> None:
    assert (
        admitted(write_desk(tmp_path, epsilon=40.0, delta=0.0, workers=2, tick=0.005), clients=50, questions=20) == 400
    )


@pytest.mark.slow(sibling="test_analysts_share_the_budget_of_the_data_set")
def test_postgresql_admits_exactly_as_many(tmp_path: Path, postgres: str) -> None:
    file = write_desk(tmp_path, epsilon=40.0, delta=0.0, workers=2, tick=0.005, ledger=postgres, state=postgres)
    assert admitted(file, clients=50, questions=20) == 400


def admitted(file: Path, *, clients: int, questions: int) -> int:
    """How many answers there are, where each client asks so many questions of a tenth."""
    with running(file) as desk:
        tokens = [desk.person(epsilon=1000.0)[1] for _ in range(clients)]

        def ask_all(token: str) -> list[int]:
            with desk.with_token(token) as client:
                return [ask(client, COUNT, f"q{number}").status_code for number in range(questions)]

        with ThreadPoolExecutor(clients) as pool:
            statuses = [status for found in pool.map(ask_all, tokens) for status in found]
        assert set(statuses) == {201, 402}
        assert desk.service.ledger.verify().entries > 0
        book = desk.service.books["visits"]
        assert book.spent().entries == statuses.count(201)
        assert book.remaining().epsilon < 0.1
    return statuses.count(201)


# --- crashes, by the moment in which they strike --------------------------------------------------------------------


def test_a_worker_that_dies_after_the_charge_costs_the_charge_and_says_so(
    desk: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, token = desk.person()
    client = desk.with_token(token)
    from discreet.desk.workers import _Worker

    send = _Worker._send
    monkeypatch.setattr(  # where the word to read would be sent, the process is ended
        _Worker, "_send", lambda self, message: self._process.kill() if message == {"go": True} else send(self, message)
    )
    reply = ask(client, COUNT, "q")
    monkeypatch.undo()
    assert (reply.status_code, reply.json()["state"], reply.json()["message"]) == (201, "withheld", WITHHELD)
    assert "columns" not in reply.json()
    assert ask(client, COUNT, "q").json() == reply.json()
    assert charges(desk, name) == 1
    assert ask(client, COUNT, "next").json()["state"] == "answered"  # by a new worker
    assert desk.service.workers.restarts > 0


def test_a_worker_that_dies_before_the_charge_costs_nothing(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    name, token = desk.person()
    client = desk.with_token(token)
    from discreet.desk.workers import _Worker

    monkeypatch.setattr(_Worker, "_send", lambda self, message: self._process.kill())
    reply = ask(client, COUNT, "q")
    monkeypatch.undo()
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "unavailable")
    assert charges(desk, name) == 0
    assert ask(client, COUNT, "q").status_code == 201


class _Crash(Exception):
    pass


@pytest.mark.parametrize(("moment", "state"), [("before", None), ("after", "withheld")])
def test_a_server_that_dies_leaves_what_its_ledger_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, state: str | None
) -> None:
    """Its state says that a question runs; whether that was charged, the chain says."""
    file = write_desk(tmp_path)
    with running(file) as desk:
        name, token = desk.person()
        charge = Book.charge

        def crash(self: Book, *args: object, **told: object) -> object:
            if moment == "after":
                charge(self, *args, **told)  # type: ignore[arg-type]
            raise _Crash

        monkeypatch.setattr(Book, "charge", crash)
        monkeypatch.setattr(Service, "_settle", lambda *_: (_ for _ in ()).throw(_Crash()))
        assert ask(desk.with_token(token), COUNT, "q").status_code == 503
        monkeypatch.undo()
        assert [asking.state for asking in desk.service.state.questions(name)] == ["running"]
    with running(file) as desk:
        client = desk.with_token(token)
        assert [asking.state for asking in desk.service.state.questions(name)] == ([] if state is None else [state])
        reply = ask(client, COUNT, "q").json()
        assert reply["state"] == (state or "answered")
        assert charges(desk, name) == 1


def test_a_desk_starts_though_the_book_of_who_was_interrupted_is_gone(desk: Running) -> None:
    """A ledger that was put back to before they were added: it is said to them, and keeps nobody else out."""
    state, ghost = desk.service.state, Person("ghost", "analyst", ("visits",))
    assert state.begin(ghost.name, "q", COUNT.digest(ghost.name), COUNT.to_dict(), "running")
    desk.service._withhold_interrupted()  # as it starts
    with pytest.raises(Refusal, match="You have no budget"):
        asyncio.run(desk.service.stored(ghost, "q"))


def test_a_state_that_was_restored_from_a_copy_gives_no_second_draw(tmp_path: Path) -> None:
    file = write_desk(tmp_path)
    with running(file) as desk:
        name, token = desk.person()
        assert ask(desk.with_token(token), COUNT, "q").json()["state"] == "answered"
    (tmp_path / "desk.db").unlink()
    with running(file) as desk:
        token = desk.service.state.add_person(name, "analyst", ("visits",))
        assert ask(desk.with_token(token), COUNT, "q").json()["state"] == "withheld"
        assert charges(desk, name) == 1


def test_what_cannot_be_kept_does_not_leave(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full after the charge."""
    name, token = desk.person()
    client = desk.with_token(token)

    def full(*_: object, **__: object) -> bool:
        raise DiscreetError("disk")

    monkeypatch.setattr(DeskState, "move", full)
    reply = ask(client, COUNT, "q")
    monkeypatch.undo()
    assert reply.status_code == 503
    assert "columns" not in reply.text
    assert charges(desk, name) == 1
    assert client.get("/v1/releases/q").json()["state"] == "withheld"  # as the ledger says that it was charged
    assert ask(client, COUNT, "q").json()["state"] == "withheld"
    assert charges(desk, name) == 1


def test_a_full_disk_is_found_before_the_charge(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    name, token = desk.person()

    def full(*_: object, **__: object) -> bool:
        raise DiscreetError("disk")

    monkeypatch.setattr(DeskState, "begin", full)
    assert ask(desk.with_token(token), COUNT, "q").status_code == 503
    assert charges(desk, name) == 0


@pytest.mark.parametrize("file", ["desk.db", "budget.db"])
def test_a_disk_that_is_full_refuses_before_the_charge(desk: Running, file: str) -> None:
    """No file may grow much beyond what the state, or the ledger, has now: the kernel refuses it."""
    name, token = desk.person(epsilon=100.0)
    client = desk.with_token(token)
    before = ask(client, COUNT, "before").json()
    size = (desk.service.configuration.folder / file).stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 30_000, hard))
    try:
        statuses = []
        while 503 not in statuses and len(statuses) < 100:
            statuses.append(ask(client, COUNT, f"q{len(statuses)}").status_code)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert set(statuses) == {201, 503}
    assert charges(desk, name) == 1 + statuses.count(201)
    assert ask(client, COUNT, "before").json() == before
    assert ask(client, COUNT, f"q{len(statuses) - 1}").json()["state"] == "answered"  # the refused one: charged now
    assert charges(desk, name) == 2 + statuses.count(201)
    assert desk.service.ledger.verify()


def test_a_ledger_that_was_put_back_to_an_earlier_day_is_not_served(tmp_path: Path) -> None:
    """Its budget would be spent twice. A state that was put back only loses answers."""
    file = write_desk(tmp_path)
    with running(file) as desk:
        client = desk.client()
        assert ask(client, COUNT, "first").status_code == 201
        earlier = (tmp_path / "budget.db").read_bytes()
        assert ask(client, COUNT, "second").status_code == 201
    (tmp_path / "budget.db").write_bytes(earlier)
    with pytest.raises(DiscreetError, match="does not hold what this desk has answered"):
        Service(read_configuration(file))


def test_questions_that_wait_for_the_owner_are_bounded_in_number(desk: Running) -> None:
    client = desk.client()
    statuses = [ask(client, LARGE, f"q{number}").status_code for number in range(MOST_UNDECIDED + 1)]
    assert statuses == [202] * MOST_UNDECIDED + [429]


def test_what_is_public_does_not_depend_on_the_records(desk: Running, tmp_path: Path) -> None:
    """Another number of rows, other values: the same description, explanation and shape of an answer."""
    file = write_desk(tmp_path)
    pl.DataFrame({"ward": ["south"] * 7, "days": [29] * 7}).write_parquet(tmp_path / "visits.parquet")
    with running(file) as other:
        replies = []
        for one in (desk, other):
            client = one.client()
            answer = ask(client, BY_WARD, "q").json()
            shape = [(column["name"], column["type"], len(column["values"])) for column in answer["columns"]]
            described = client.get("/v1/datasets/visits").json()
            explained = client.post("/v1/explain", json=BY_WARD.to_dict()).json()
            replies.append((described, explained, shape, answer["event"], answer["error"], sorted(answer)))
        assert replies[0] == replies[1]


# --- approvals -------------------------------------------------------------------------------------------------------


def waiting(desk: Running, owner: object) -> dict[str, object]:
    found = owner.get("/v1/requests").json()["requests"]  # type: ignore[attr-defined]
    return dict(found[0])


def test_a_large_question_waits_for_the_owner_and_its_approval_is_in_the_chain(desk: Running) -> None:
    name, token = desk.person()
    client, owner = desk.with_token(token), desk.client("owner", epsilon=None)
    assert ask(client, LARGE, "q").status_code == 202
    assert charges(desk, name) == 0
    line = waiting(desk, owner)
    assert line["question"] == LARGE.to_dict()
    decided = owner.post(f"/v1/requests/{line['number']}/approve", json={"why": "agreed"})
    assert decided.json()["state"] == "approved"
    assert ask(client, LARGE, "q").json()["state"] == "answered"
    assert charges(desk, name) == 1
    entry = desk.service.ledger.book(f"visits/{name}").entries()[-1]
    assert f": {LARGE.digest(name)}]" in entry.label
    assert LARGE.digest(name) != LARGE.digest("somebody else")


def test_a_declined_question_is_not_charged(desk: Running) -> None:
    name, token = desk.person()
    client, owner = desk.with_token(token), desk.client("owner", epsilon=None)
    ask(client, LARGE, "q")
    owner.post(f"/v1/requests/{waiting(desk, owner)['number']}/decline", json={"why": "too fine"})
    refused = ask(client, LARGE, "q")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "declined")
    assert charges(desk, name) == 0


def test_an_approval_expires(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    name, token = desk.person()
    client, owner = desk.with_token(token), desk.client("owner", epsilon=None)
    ask(client, LARGE, "q")
    monkeypatch.setattr("discreet.desk.approvals.timedelta", lambda days: __import__("datetime").timedelta(0))
    owner.post(f"/v1/requests/{waiting(desk, owner)['number']}/approve", json={"why": "agreed"})
    refused = ask(client, LARGE, "q")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "expired")
    assert charges(desk, name) == 0


def test_an_approved_question_is_asked_under_the_limits_of_the_day(
    desk: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that was lowered after the approval holds, and so does a role that was taken away."""
    name, token = desk.person()
    client, owner = desk.with_token(token), desk.client("owner", epsilon=None)
    ask(client, LARGE, "q")
    owner.post(f"/v1/requests/{waiting(desk, owner)['number']}/approve", json={"why": "agreed"})
    datasets = desk.service.configuration.datasets
    with monkeypatch.context() as changed:
        changed.setitem(datasets, "visits", replace(datasets["visits"], largest_epsilon=0.5))  # type: ignore[arg-type]
        assert ask(client, LARGE, "q").json()["error"]["code"] == "too_large"
    assert charges(desk, name) == 0
    assert ask(client, LARGE, "q").json()["state"] == "answered"


def test_a_question_whose_asker_left_before_it_began_was_never_asked(tmp_path: Path) -> None:
    """Its key is free: it stayed "running" for ever."""
    service = Service(read_configuration(write_desk(tmp_path)))
    try:
        service.books["visits"].sub("ada", epsilon=1.0)
        service.state.add_person("ada", "analyst", ("visits",), days=1)

        async def leave_while_waiting() -> None:
            ada = Person("ada", "analyst", ("visits",))
            async with service._turns.setdefault("ada", asyncio.Lock()):
                asking = asyncio.create_task(service.release(ada, "q", COUNT))
                while service.state.question("ada", "q") is None or not service._waiting.get("ada"):
                    await asyncio.sleep(0)
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking

        asyncio.run(leave_while_waiting())
        assert service.state.question("ada", "q") is None
    finally:
        service.close()


def test_an_approval_of_another_question_charges_nothing(desk: Running) -> None:
    """Whoever can write into the state, and not into the ledger, has nothing charged that was not approved."""
    name, token = desk.person()
    client, owner = desk.with_token(token), desk.client("owner", epsilon=None)
    ask(client, LARGE, "q")
    number = int(str(waiting(desk, owner)["number"]))
    asking = desk.service.state.question_number(number)
    assert asking is not None
    decision = {"by": "owner", "why": "", "digest": "0" * 64, "expires": "2999-01-01T00:00:00+00:00"}
    assert desk.service.state.move(asking, "waiting", "approved", decision=decision)
    refused = ask(client, LARGE, "q")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_approved")
    assert charges(desk, name) == 0


def test_a_question_is_cancelled_before_the_charge_only(desk: Running) -> None:
    client = desk.client()
    ask(client, LARGE, "waits")
    assert client.delete("/v1/releases/waits").status_code == 200
    assert ask(client, LARGE, "waits").json()["error"]["code"] == "cancelled"
    ask(client, COUNT, "asked")
    assert client.delete("/v1/releases/asked").status_code == 409
    assert client.delete("/v1/releases/unknown").status_code == 404


def test_nothing_is_charged_while_the_owner_has_stopped_all_questions(desk: Running) -> None:
    name, token = desk.person()
    client, owner = desk.with_token(token), desk.client("owner", epsilon=None)
    ask(client, LARGE, "waits")
    owner.post(f"/v1/requests/{waiting(desk, owner)['number']}/approve", json={"why": "agreed"})
    owner.post("/v1/freeze", json={"why": "a new file"})
    try:
        for question, key in ((COUNT, "q"), (LARGE, "waits")):
            refused = ask(client, question, key)
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "frozen")
            assert "a new file" in refused.json()["error"]["message"]
        assert charges(desk, name) == 0
    finally:
        owner.post("/v1/freeze", json={"why": ""})
    assert ask(client, COUNT, "q").status_code == 201


# --- sources ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def memory() -> Iterator[DeskState]:
    state = DeskState("sqlite://")
    yield state
    state.close()


def test_a_source_that_changed_needs_the_owners_word(tmp_path: Path, memory: DeskState) -> None:
    from discreet.desk.sources import bind_sources, same_population

    file = write_desk(tmp_path)
    configuration = read_configuration(file)
    state = memory
    contents, facts = {"visits": {"columns": {}}}, {"visits": {"days": {"kind": "number"}}}
    bind_sources(state, configuration, contents, facts)
    bind_sources(state, configuration, contents, facts)
    other = {"visits": {"days": {"kind": "text"}}}
    for _ in range(2):
        with pytest.raises(DiscreetError, match="is not the one that book 'visits' was bound to"):
            bind_sources(state, configuration, contents, other)
    with pytest.raises(ValueError, match="must give a reason"):
        same_population(state, "visits", "olga", " ")
    same_population(state, "visits", "olga", "a column was renamed")
    bind_sources(state, configuration, contents, other)
    with pytest.raises(DiscreetError, match="is not the one"):  # the word was for that change
        bind_sources(state, configuration, contents, facts)


def test_the_same_source_under_another_book_is_no_fresh_budget(tmp_path: Path, memory: DeskState) -> None:
    from discreet.desk.sources import bind_sources

    file = write_desk(tmp_path)
    state = memory
    contents, facts = {"visits": {}, "again": {}}, {"visits": {}, "again": {}}
    bind_sources(state, read_configuration(file), contents, facts)
    text = file.read_text(encoding="utf-8").replace("[datasets.visits]", "[datasets.again]")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DiscreetError, match="a second book would be a second budget"):
        bind_sources(state, read_configuration(file), contents, facts)
