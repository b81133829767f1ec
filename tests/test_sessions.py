"""What was paid for once answers once, whoever asks at the same time: threads, coroutines, copies, forks, itself.

``meet`` lets a second caller come in exactly while the first one is between its check and its note. It waits for
no clock: the second has either been answered, or stands at the lock. Without the lock every kind of session here
answers twice (``test_without_the_lock_the_second_is_answered_too``).
"""

from __future__ import annotations

import asyncio
import copy
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from discreet import Ledger, events, random
from discreet.errors import DiscreetError
from discreet.ledger import Reservation
from discreet.mechanisms import AboveThreshold, Gaussian, SparseVector
from discreet.pate import ConfidentGNMax, GNMax, InteractiveGNMax
from discreet.sessions import PaidOnce
from discreet.training import make_private
from discreet.training.federated import Federation
from discreet.training.gradients import ClippedSum
from discreet.training.noise import Banded, Independent, LambdaCGD, Noise
from discreet.training.noise.base import Gaussians, Step
from discreet.training.noise.correlated import Stream
from discreet.training.sampling.participation import KeptBinsDealing

LAPLACE, STEP = events.Laplace(noise_multiplier=10.0), events.PureDP(epsilon=0.1)
REFUSALS = (ValueError, RuntimeError, DiscreetError)


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Watched:
    """A lock that tells when somebody has to wait for it."""

    def __init__(self, settled: threading.Event) -> None:
        self._lock, self._settled = threading.RLock(), settled

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._settled.set()
            self._lock.acquire()

    def __exit__(self, *failure: object) -> None:
        self._lock.release()


def meet(session: PaidOnce, ask: Callable[[], Any], hook: Callable[[Callable[[], None]], None]) -> list[Any]:
    """What two callers are answered, the second of whom comes while the first is inside."""
    settled, answers, second = threading.Event(), [], []
    session._lock = Watched(settled)  # type: ignore[assignment]

    def try_once() -> None:
        try:
            answers.append(ask())
        except REFUSALS:
            answers.append(None)
        settled.set()

    def inside() -> None:
        if not second:
            second.append(threading.Thread(target=try_once))
            second[0].start()
            settled.wait()

    hook(inside)
    try_once()
    second[0].join()
    return [answer for answer in answers if answer is not None]


@dataclass
class Kind:
    """How a kind of session is made, asked for the one answer that was paid for, and met in the middle of it."""

    make: Callable[[], PaidOnce]
    ask: Callable[[Any], Any]
    hook: Callable[[pytest.MonkeyPatch, Callable[[], None]], None]


def patched(target: Any, name: str, after: bool = False) -> Callable[[pytest.MonkeyPatch, Callable[[], None]], None]:
    """Meet when a function is called, or has returned."""

    def hook(monkeypatch: pytest.MonkeyPatch, inside: Callable[[], None]) -> None:
        original = getattr(target, name)

        def called(*args: Any, **kwargs: Any) -> Any:
            if not after:
                inside()
            answer = original(*args, **kwargs)
            inside()  # only the first meeting counts
            return answer

        monkeypatch.setattr(target, name, called)

    return hook


def read_twice(target: Any, name: str) -> Callable[[pytest.MonkeyPatch, Callable[[], None]], None]:
    """Meet when an attribute has been read a second time: once to check it, once to change it."""

    def hook(monkeypatch: pytest.MonkeyPatch, inside: Callable[[], None]) -> None:
        reads = []

        def read(self: Any) -> Any:
            value = self.__dict__[name]
            reads.append(value)
            if len(reads) == 2:
                inside()
            return value

        monkeypatch.setattr(
            target, name, property(read, lambda self, value: self.__dict__.update({name: value})), False
        )

    return hook


def reserved() -> PaidOnce:
    return Ledger("sqlite://").open("b", epsilon=1.0).reserve(STEP)


def stream(noise: Any) -> Callable[[], PaidOnce]:
    return lambda: noise.begun(KeptBinsDealing(4), 4)


def one_step(noise: Any) -> Any:
    total = [torch.zeros(3)]
    noise.release(
        Step(number=0, multiplier=1.0, sensitivity=1.0, movement=1, divisor=1.0), total, Gaussians(random.seeded(1))
    )
    return total


def run_of(noise: Noise) -> Any:
    """A private run that has one batch out, and its backward pass behind it."""
    model = torch.nn.Linear(40, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(torch.ones(8, 40), torch.ones(8, 1))
    model, optimizer, loader = make_private(
        model, optimizer, torch.utils.data.DataLoader(data, batch_size=4), noise_multiplier=1.0, epochs=3,
        loss_reduction="mean", noise=noise, rng=1,
    )  # fmt: skip
    x, y = next(batches := iter(loader))
    torch.nn.functional.mse_loss(model(x), y).backward()
    run = optimizer.privacy._run
    run.kept = batches, model, optimizer  # a loop that is left drops its batch
    return run


def federation() -> Federation:
    rounds = Federation(clients=4, clients_per_round=2, rounds=3, noise_multiplier=1.0, rng=1)
    rounds.ask(range(4), [np.zeros(3)])
    return rounds


KINDS = {
    "AboveThreshold": Kind(
        lambda: AboveThreshold(threshold=0.0).start(), lambda s: s.ask(1e6), patched(random, "laplace_cells")
    ),
    "SparseVector": Kind(
        lambda: SparseVector(threshold=0.0, max_positives=1).start(),
        lambda s: s.ask(1e6),
        patched(random, "laplace_cells"),
    ),
    "GNMax": Kind(lambda: GNMax(sigma=1.0).start(), lambda s: s.ask(np.array([9, 1])), patched(Gaussian, "draw")),
    "ConfidentGNMax": Kind(
        lambda: ConfidentGNMax(sigma=1.0, sigma_threshold=1.0, threshold=-1e6, queries=1).start(),
        lambda s: s.ask(np.array([9, 1])),
        patched(Gaussian, "draw"),
    ),
    "Reservation": Kind(reserved, lambda s: s.charge(STEP), read_twice(Reservation, "_left")),
    "Banded": Kind(stream(Banded(bands=2)), one_step, patched(Stream, "_refuse_torn", after=True)),
    "LambdaCGD": Kind(stream(LambdaCGD(back=0.5)), one_step, patched(Gaussians, "key")),
    "Run": Kind(lambda: run_of(Independent()), lambda s: s.take_step(), patched(ClippedSum, "add")),
    "Federation": Kind(
        federation, lambda s: s.next_arrays([np.zeros(3)], [(0, [np.ones(3)])]), read_twice(Federation, "_asked")
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_two_callers_get_one_answer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = KINDS[kind].make()
    assert len(meet(session, lambda: KINDS[kind].ask(session), lambda f: KINDS[kind].hook(monkeypatch, f))) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_lock_the_second_is_answered_too(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The power of the test above."""
    monkeypatch.setattr(PaidOnce, "_turn", lambda self: nullcontext())
    monkeypatch.setattr("discreet.pate.aggregation.VotingSession._refuse_outside", lambda self: None)
    session = KINDS[kind].make()
    assert len(meet(session, lambda: KINDS[kind].ask(session), lambda f: KINDS[kind].hook(monkeypatch, f))) == 2


def answers_of(ask: Callable[[], bool], callers: int = 8) -> int:
    """How many of so many threads, let go at once, are told yes."""
    said, barrier = [], threading.Barrier(callers)

    def call() -> None:
        barrier.wait()
        try:
            said.append(ask())
        except ValueError:
            said.append(False)

    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(said)


def test_threads_get_the_yeses_that_were_paid_for() -> None:
    """Many rounds, a barrier, and a book: a yes more than rounds charged has no account."""
    book = Ledger("sqlite://").open("b", epsilon=1000.0)
    for _ in range(30):
        asked = AboveThreshold(threshold=0.0).start()
        assert answers_of(lambda ask=asked.ask: ask(1e6)) == 1
        before = book.spent().entries
        session = SparseVector(threshold=0.0, epsilon=0.01, max_positives=2).start(book=book)
        session.ask(-1e6)  # a no: the round is open and paid for
        assert answers_of(lambda ask=session.ask: ask(1e6)) == 2 == session.positives == book.spent().entries - before


def test_coroutines_get_the_yeses_that_were_paid_for() -> None:
    """On the loop's own thread, and on the threads it lends."""

    async def asked(session: Any, *, threads: bool) -> bool:
        try:
            return await asyncio.to_thread(session.ask, 1e6) if threads else session.ask(1e6)
        except ValueError:
            return False

    async def count(threads: bool) -> int:
        session = SparseVector(threshold=0.0, epsilon=0.01, max_positives=3).start()
        return sum(await asyncio.gather(*(asked(session, threads=threads) for _ in range(12))))

    for threads in (False, True) * 10:
        assert asyncio.run(count(threads)) == 3


def test_interactive_sessions_pay_for_what_they_answer() -> None:
    book = Ledger("sqlite://").open("b", epsilon=1000.0, delta=1e-6)
    aggregator = InteractiveGNMax(sigma=5.0, sigma_threshold=5.0, threshold=-1e6, n_teachers=10, queries=6, answers=4)
    session, counts = aggregator.start(book=book), (np.array([9.0, 1.0]), np.array([0.5, 0.5]))
    assert answers_of(lambda: session.ask(counts) >= 0, callers=10) == 4
    told = session.answers()
    assert (len(told.labels), told.tested.sum(), told.answered.sum()) == (6, 4, 4)
    assert book.spent().entries == 8


def test_a_session_draws_only_inside_ask() -> None:
    session = GNMax(sigma=1.0).start()
    with pytest.raises(ValueError, match="inside ask"):
        session.answer(GNMax(sigma=1.0).answer, np.array([9, 1]))
    assert session.left == 1


def test_who_is_asked_again_from_inside_an_answer_refuses() -> None:
    """In the thread that holds the lock, no lock would help: a signal's handler, or a book that asks."""
    session = SparseVector(threshold=0.0, max_positives=1).start(book=(book := Asking()))
    book.session = session
    with pytest.raises(ValueError, match="inside its own answer"):
        session.ask(1e6)
    assert session.positives == 0


class Asking:
    """A book that asks the session that is about to pay."""

    session: Any = None

    def charge(self, *_: object, **__: object) -> None:
        self.session.ask(1e6)


@pytest.mark.parametrize("kind", KINDS)
def test_no_session_is_copied(kind: str) -> None:
    session = KINDS[kind].make()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises((TypeError, DiscreetError), match="cannot be copied"):
            copied(session)


def test_threads_that_share_a_source_share_its_quick_stream() -> None:
    """One made by each would be freed under the other's hands."""
    for _ in range(20):
        source, addresses, barrier = random.system().__class__(), [], threading.Barrier(4)

        def call(source: Any = source, addresses: list[Any] = addresses, barrier: Any = barrier) -> None:
            barrier.wait()
            addresses.append((source.quick(), tuple(map(id, source.lanes()))))

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(addresses)) == 1
