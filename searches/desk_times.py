"""Nothing is learnt from when an answer arrives: ``python -m searches desk_times``.

Two real desks beside each other, over neighbouring data sets: one record more, for which reading takes a hundred times
as long (a pause that is planted in the workers, so that the machine is not kept busy by it). Clients ask both by turns,
with the library's client, which asks again where a connection was closed; what an observer has is the answer and the
tick in which it arrived. Of that pair the audit finds a lower bound of epsilon, with 95 % confidence, which must stay
below the claim. The same desks with the tick turned off are
caught: the power of it. What the arrival says where it is measured finer than by ticks is printed beside it.
"""

from __future__ import annotations

import itertools
import math
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl

from discreet.desk import Desk, connect, worker, workers
from discreet.desk.errors import DeskError
from discreet.desk.questions import BuilderCall, DeskBudget, DeskQuestion
from tests.desk.desks import Running, running

EPSILON = 0.1
ROWS = 100
CHUNK = 1_000  # requests to each desk, after which it is said what was learnt so far
SHORT, LONG = 0.001, 0.1  # seconds that reading takes, without and with the one record
QUESTION = DeskQuestion("notes", DeskBudget(epsilon=EPSILON), (BuilderCall("count"),), errors=False)
DESK = """\
[desk]
workers = {workers}
tick = {tick}
[datasets.notes]
source = "notes.parquet"
schema = "notes.toml"
epsilon = 1e9
rate = 1000000000
"""
Seen = Sequence[tuple[float, ...]]  # of each request the answer, the tick of its arrival, and the time in ticks


def serve_slowly(pipe: Any, datasets: Any, memory: float, unconfined: bool) -> None:
    """A worker that takes its time where the one record is: as an engine does, for which some records are hard."""
    charged = worker.charged

    def charged_slowly(*given: Any, **named: Any) -> Any:
        release = charged(*given, **named)
        rows = pl.read_parquet(next(iter(datasets.values()))[0]).height
        time.sleep(LONG if rows > ROWS else SHORT)
        return release

    worker.charged = charged_slowly  # type: ignore[assignment]
    worker.serve(pipe, datasets, memory, unconfined)


def write_files(folder: Path, *, rows: int, tick: float, number: int) -> Path:
    """A desk over so many records."""
    pl.DataFrame({"note": [f"note {row}" for row in range(rows)]}).write_parquet(folder / "notes.parquet")
    (folder / "notes.toml").write_text("[columns]\nnote = { unlisted = true }\n", encoding="utf-8")
    (folder / "desk.toml").write_text(DESK.format(workers=number, tick=tick), encoding="utf-8")
    return folder / "desk.toml"


def answer_of(client: Desk, key: str) -> float:
    """The number that came; what is withheld is an observation as well."""
    try:
        return float(client.ask(QUESTION, key).value.item())
    except DeskError as error:
        if error.code != "withheld":
            raise
        return math.inf


def observe(desks: Sequence[Running], requests: int, clients: int, tick: float) -> list[list[tuple[float, ...]]]:
    """What is seen of so many requests to each desk, asked by turns."""
    seen: list[list[tuple[float, ...]]] = [[] for _ in desks]
    lock, numbers = threading.Lock(), iter(range(requests))
    asking = [[desk.person(name, epsilon=1e8) for name in ("analyst",) * clients] for desk in desks]

    def work(place: int) -> None:
        with ExitStack() as opened:
            tokens = [own[place][1] for own in asking]
            at = [opened.enter_context(connect(desk.url, token)) for desk, token in zip(desks, tokens, strict=True)]
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                for client, mine in zip(at, seen, strict=True):
                    start = time.monotonic()
                    value = answer_of(client, f"k{number}")
                    taken = (time.monotonic() - start) / tick
                    with lock:
                        mine.append((value, math.floor(taken), taken))

    threads = [threading.Thread(target=work, args=(place,)) for place in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


def lower_bound(one: Seen, other: Seen, places: Sequence[int]) -> float:
    """A lower bound of epsilon with 95 % confidence: of guesses by a threshold on one of what is seen, that which is
    best on the first half of the observations, measured on the second (Hoeffding, both rates at once).
    """
    half = len(one) // 2
    guesses = list(_guesses([*one[:half], *other[:half]], places))
    best = max(guesses, key=lambda guess: _epsilon(guess, one[:half], other[:half], slack=1 / half))
    rest = len(one) - half
    return _epsilon(best, one[half:], other[half:], slack=math.sqrt(math.log(4 / 0.05) / (2 * rest)))


def _guesses(seen: Seen, places: Sequence[int]) -> Any:
    for place in places:
        values = sorted(each[place] for each in seen)
        cuts = {values[int(share * (len(values) - 1))] for share in (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)}
        yield from itertools.product((place,), sorted(cuts), (True, False))


def _epsilon(guess: tuple[int, float, bool], one: Seen, other: Seen, slack: float) -> float:
    place, cut, above = guess
    rates = [sum((each[place] > cut) == above for each in seen) / len(seen) for seen in (one, other)]
    pairs = ((rates[0] - slack, rates[1] + slack), (rates[1] - slack, rates[0] + slack))
    return max((math.log(low / high) for low, high in pairs if low > 0), default=-math.inf)


def audit(requests: int, tick: float, *, clients: int) -> tuple[float, float]:
    """Lower bounds of epsilon, from (answer, tick), and from the time itself too."""
    plain, workers.serve = workers.serve, serve_slowly
    try:
        with tempfile.TemporaryDirectory() as home, ExitStack() as opened:
            desks = []
            for rows in (ROWS, ROWS + 1):
                folder = Path(home) / str(rows)
                folder.mkdir()
                file = write_files(folder, rows=rows, tick=tick, number=clients)
                desks.append(opened.enter_context(running(file, dataset="notes")))
            seen: list[list[tuple[float, ...]]] = [[] for _ in desks]
            for first in range(0, requests // 2, CHUNK):
                size = min(CHUNK, requests // 2 - first)
                for mine, more in zip(seen, observe(desks, size, clients, tick), strict=True):
                    assert len(more) == size, "some were not answered"
                    mine += more
                bounds = lower_bound(*seen, (0, 1)), lower_bound(*seen, (0, 1, 2))
                said = f"epsilon >= {bounds[0]:.3f} by (answer, tick), >= {bounds[1]:.3f} by the time itself"
                print(f"desk_times: tick {tick} s, {2 * (first + size):,} requests: {said}", flush=True)
    finally:
        workers.serve = plain
    return bounds


def main(size: int | None = None) -> None:
    """10⁴ requests with the tick, by default, and a tenth of that with it turned off."""
    requests = size or 10_000
    caught, _ = audit(max(100, requests // 10), 0.001, clients=1)
    kept, finer = audit(requests, 0.5, clients=6)
    print(
        f"desk_times: {requests:,} requests, times of {SHORT} and {LONG} s: epsilon >= {kept:.3f} by (answer, tick), "
        f">= {finer:.3f} by the time itself; {caught:.3f} with the tick off; claim {EPSILON}",
        flush=True,
    )
    assert kept <= EPSILON < caught


def retry(case: int) -> None:
    """A short audit."""
    main(case)
