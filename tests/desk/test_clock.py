"""When answers leave says nothing of how long they took, within a tick; and what a desk does with it."""

from __future__ import annotations

import asyncio
import math
import random

import pytest

from discreet.desk import service
from discreet.desk.clock import TickClock
from tests.desk.desks import COUNT, Running, ask

REQUESTS = 10_000
FALSE_ALARM = 1e-6


def test_what_is_ready_within_a_tick_leaves_at_its_end() -> None:
    clock = TickClock(1.0, 30.0)
    assert {clock.leaving_time(taken) for taken in (0.0, 1e-4, 0.005, 0.5, 1.0)} == {1.0}


def test_later_answers_leave_at_few_public_moments() -> None:
    clock = TickClock(1.0, 30.0)
    moments = {clock.leaving_time(step / 100) for step in range(4000)}
    assert moments == {1.0, 2.0, 4.0, 8.0, 16.0, 30.0}
    assert TickClock(5.0, 5.0).leaving_times == (5.0,)  # one moment: nothing is told


@pytest.mark.parametrize(("tick", "deadline"), [(0.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (1.0, math.inf)])
def test_a_clock_that_tells_no_time_is_refused(tick: float, deadline: float) -> None:
    with pytest.raises(ValueError, match=r"tick|deadline"):
        TickClock(tick, deadline)


def advantage(clock: TickClock | None) -> float:
    """By how much the best guess from the arrival is better than a coin, of two sets that differ a hundredfold in time,
    less what chance gives at the stated false-alarm rate (Hoeffding).
    """
    draw = random.Random(7)
    arrivals = {}
    for one, taken in (("fast", 0.005), ("slow", 0.5)):
        times = [draw.uniform(0.5, 1.5) * taken for _ in range(REQUESTS)]
        arrivals[one] = [time if clock is None else clock.leaving_time(time) for time in times]
    threshold = (0.005 + 0.5) / 4
    rates = [sum(time > threshold for time in arrivals[one]) / REQUESTS for one in ("slow", "fast")]
    slack = 2 * math.sqrt(math.log(2 / FALSE_ALARM) / (2 * REQUESTS))
    return abs(rates[0] - rates[1]) - slack


def test_an_observer_of_arrivals_gains_nothing_and_would_without_ticks() -> None:
    """Over 10⁴ requests; alarm 1e-6. The second line is the power of the first."""
    assert advantage(TickClock(1.0, 30.0)) < 0
    assert advantage(None) > 0.9


def test_the_answer_and_its_worker_wait_for_the_tick(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is not free before the answer has left: the next question would learn how long this one took."""
    waits: list[float] = []
    seen: list[str] = []
    name, token = desk.person()
    client = desk.with_token(token)
    jobs = []
    job_of, sleep = service.Job, asyncio.sleep

    def job(*args: object) -> object:
        jobs.append(job_of(*args))  # type: ignore[arg-type]
        return jobs[-1]

    async def wait(seconds: float) -> None:
        waits.append(seconds)
        assert jobs[0].outcome.done()
        assert not jobs[0].done.is_set()
        asking = desk.service.state.question(name, "q")
        assert asking is not None
        assert asking.state == "answered"  # and kept; but whoever asks for it sees that it runs
        seen.append(desk.service.shown(asking).state)
        assert desk.service.shown(asking).answer == {}
        await sleep(0)

    monkeypatch.setattr(service, "Job", job)
    monkeypatch.setattr(service, "sleep", wait)
    assert ask(client, COUNT, "q").status_code == 201
    assert (len(waits), seen) == (1, ["running"])
    assert jobs[0].done.is_set()


def test_no_address_tells_of_an_answer_before_its_tick(desk: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked again, looked up, listed: until the reply has left, the question runs."""
    name, token = desk.person()
    client = desk.with_token(token)
    answer = ask(client, COUNT, "q").json()
    asking = desk.service.state.question(name, "q")
    assert asking is not None
    monkeypatch.setattr(desk.service, "_in_flight", {asking.number})
    again, stored = ask(client, COUNT, "q"), client.get("/v1/releases/q")
    line = client.get("/v1/releases").json()["releases"][0]
    for reply in (again, stored):
        assert (reply.status_code, reply.json()["state"]) == (202, "running")
        assert "entry" not in reply.json()
    assert (line["state"], line["entry"]) == ("running", None)
    monkeypatch.setattr(desk.service, "_in_flight", set())
    assert client.get("/v1/releases/q").json() == answer
