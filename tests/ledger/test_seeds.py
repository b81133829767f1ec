"""A release made with a seed is charged, and recorded as what it is: not private. Before anything is read."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import discreet as dp
from discreet import Ledger, events, random
from discreet.cli import app
from discreet.errors import BudgetExceeded
from discreet.ledger import Book, LedgerError
from discreet.release import ONE_RECORD, Release, charged
from discreet.training.federated import Federation
from tests.ledger.test_earlier import EARLIER, WRITTEN

PHRASE = "made with a seed: not private"


@pytest.fixture
def book(ledger: Ledger) -> Book:
    return ledger.open("census", epsilon=1000.0, delta=1e-6)


def seeds(book: Book) -> list[bool]:
    return [entry.seeded for entry in book.entries() if entry.event]


def train(book: Book, **options: Any) -> None:
    data = torch.utils.data.TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1))
    model = torch.nn.Linear(2, 1)
    dp.training.make_private(
        model, torch.optim.SGD(model.parameters(), lr=0.1), torch.utils.data.DataLoader(data, batch_size=4), epochs=1,
        noise_multiplier=2.0, loss_reduction="mean", book=book, **options,
    )  # fmt: skip


def fit(book: Book, state: Any) -> None:
    X, y = np.random.default_rng(0).uniform(size=(50, 2)), np.tile([0, 1], 25)
    model = dp.linear.LogisticRegression(epsilon=1.0, delta=0, feature_norm=1.0, classes=(0, 1), random_state=state)
    model.fit(X, y, book=book)
    assert model.reproducible_ == (state is not None)


def naive(book: Book, state: Any) -> None:
    dp.estimators.GaussianNB(bounds=(0, 1), epsilon=1.0, classes=(0, 1), random_state=state).fit(
        np.full((10, 2), 0.5), np.tile([0, 1], 5), book=book
    )


def sparse(book: Book, rng: Any) -> None:
    dp.mechanisms.SparseVector(threshold=0.0, max_positives=1).start(rng, book=book).ask(1.0)


def vote(book: Book, rng: Any) -> None:
    dp.pate.GNMax(sigma=20.0).start(rng, book=book).ask(np.array([9, 1]))


def federate(book: Book, rng: Any) -> None:
    clients = book.ledger.open("clients", epsilon=1000.0, delta=1e-6, adjacency="replace", unit="client")
    rounds = Federation(clients=4, clients_per_round=2, rounds=2, noise_multiplier=2.0, book=clients, rng=rng)
    rounds.ask(range(4), [np.zeros(2)])
    book.charge(events.PureDP(epsilon=1.0), reproducible=seeds(clients)[-1])


PATHS = {
    "statistic": lambda book, rng: dp.statistics.mean([0.5], bounds=(0, 1), epsilon=1.0, book=book, rng=rng),
    "release": lambda book, rng: book.release(dp.statistics.Count(epsilon=1.0), [1, 2], rng=rng),
    "a source": lambda book, rng: book.release(
        dp.statistics.Count(epsilon=1.0), [1, 2], rng=random.system() if rng is None else random.seeded(rng)
    ),
    "random_state": fit,
    "random_state as a generator": lambda book, rng: fit(
        book,
        None if rng is None else np.random.RandomState(rng),
    ),
    "another estimator": naive,
    "make_private": lambda book, rng: train(book, rng=rng),
    "sparse vector": sparse,
    "votes": vote,
    "federation": federate,
}


@pytest.mark.parametrize("path", PATHS)
def test_every_path_tells_the_book_of_a_seed(book: Book, path: str) -> None:
    PATHS[path](book, None)
    PATHS[path](book, 7)
    assert seeds(book) == [False, True]
    assert book.ledger.verify().entries
    assert book.snapshot().book.seeded == 1


def test_debugging_is_not_private_either(book: Book) -> None:
    train(book, debug=True)
    assert seeds(book) == [True]


class Breaking:
    """An operation that fails when it reads."""

    event: events.Event = events.PureDP(epsilon=0.1)
    unit: str = ONE_RECORD

    def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
        raise RuntimeError("read")


def test_a_seed_is_recorded_before_the_read(book: Book) -> None:
    with pytest.raises(RuntimeError, match="read"):
        book.release(Breaking(), rng=1)
    assert seeds(book) == [True]


class Hiding(Breaking):
    """An operation with a seed of its own that says nothing of it."""

    def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
        return Release(4, self.event, reproducible=True)


def test_a_seed_that_was_not_stated_is_found(book: Book) -> None:
    with pytest.raises(RuntimeError, match="a seed that it did not state"):
        charged(Hiding(), book=book)


def test_a_book_that_cannot_be_told_refuses_seeds_and_nothing_else() -> None:
    class Old:
        def charge(self, event: events.Event, label: str = "", *, unit: str = ONE_RECORD) -> None: ...

    dp.statistics.count([1], epsilon=1.0, book=Old())
    with pytest.raises(TypeError, match="reproducible"):
        dp.statistics.count([1], epsilon=1.0, book=Old(), rng=1)


def test_a_reservation_says_beforehand_whether_what_draws_on_it_has_a_seed(book: Book) -> None:
    operation = dp.statistics.Count(epsilon=0.1)
    for kind in (book.reserve, book.plan):
        job = kind(operation.event, "job")
        with pytest.raises(BudgetExceeded, match="Reserve with reproducible=True"):
            charged(operation, [1], book=job, rng=1)
        charged(operation, [1], book=job)
        charged(operation, [1], book=kind(operation.event, "job", reproducible=True), rng=1)
    assert seeds(book) == [False, True, False, True]


# --- what is said of it ------------------------------------------------------------------------------------------


@pytest.fixture
def address(tmp_path: Path) -> str:
    path = tmp_path / "budget.db"
    with Ledger(path) as ledger:
        outer = ledger.open("census", epsilon=10.0, delta=1e-6)
        inner = outer.sub("alice", epsilon=5.0)
        for label, rng in (("ages", None), ("incomes", 1)):
            inner.release(dp.statistics.Count(epsilon=0.5), [1, 2, 3], label=label, rng=rng)
        ledger.open("clean", epsilon=1.0).charge(events.PureDP(epsilon=0.5))
    return str(path)


def run(*words: str) -> str:
    result = CliRunner().invoke(app(), list(words))
    assert result.exit_code == 0, result.output
    return result.output


def test_commands_say_it(address: str) -> None:
    shown = run("ledger", "show", "-l", address)
    assert f"census: 1 of 2 releases {PHRASE}" in shown
    assert f"census/alice: 1 of 2 releases {PHRASE}" in shown
    assert not any(line.startswith("clean:") and "seed" in line for line in shown.splitlines())
    told = json.loads(run("ledger", "show", "--json", "-l", address))
    assert {row["book"]: row["seeded"] for row in told["books"]} == {"census": 1, "census/alice": 1, "clean": 0}
    history = run("ledger", "history", "census", "-l", address)
    assert f"incomes [{PHRASE}]" in history
    assert f"census: 1 of 2 releases {PHRASE}" in history
    assert f"ages [{PHRASE}]" not in history
    entries = json.loads(run("ledger", "export", "-l", address))["entries"]
    assert [entry["terms"].get("reproducible") for entry in entries if entry["event"]] == [False, True, False]


def test_the_report_says_it_in_its_verdict(address: str, tmp_path: Path) -> None:
    with Ledger(address) as ledger:
        seeded, clean = dp.report(ledger.book("census")), dp.report(ledger.book("clean"))
    assert f"1 of the 2 releases from the data was {PHRASE}" in seeded.facts["verdict"]
    assert "The other one is differentially private" in seeded.facts["verdict"]
    assert [entry["seeded"] for entry in seeded.facts["entries"]] == [False, False, False, True]
    page = seeded.html()
    assert '<p class="banner">1 of the 2 releases' in page
    assert page.count(PHRASE) >= 3  # verdict, figure, the release itself
    assert PHRASE in seeded.registry()["deployment"]["description"]
    assert "seed" not in clean.facts["verdict"]
    assert PHRASE not in clean.html()
    assert 'class="banner"' not in clean.html()


def test_a_book_of_seeds_alone_claims_nothing(ledger: Ledger) -> None:
    book = ledger.open("b", epsilon=1.0)
    book.charge(events.PureDP(epsilon=0.5), reproducible=True)
    verdict = dp.report(book).facts["verdict"]
    assert verdict.startswith(f"The one release from the data was {PHRASE}")
    assert "differentially private" not in verdict


# --- older ledgers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", WRITTEN)
def test_of_older_charges_it_is_said_that_seeds_were_not_recorded(version: str, tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((EARLIER / f"{version}.sql").read_text(encoding="utf-8"))
    connection.close()
    with Ledger(path) as ledger:
        book = ledger.book("census")
        facts = dp.report(book).facts
        assert facts["verdict"].startswith("All 2 releases from the data together are differentially private")
        assert any("For 2 of the releases this is assumed" in text for text in facts["assumptions"])
        book.charge(events.PureDP(epsilon=0.01), reproducible=True)
        assert seeds(book) == [False, False, True]
        assert book.snapshot().unknown_seeds == 2


def test_a_copy_of_the_last_schema_that_cannot_be_written_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((EARLIER / "0003.sql").read_text(encoding="utf-8"))
    connection.close()
    before = path.read_bytes()
    with Ledger(f"sqlite:///file:{path}?mode=ro&uri=true", create=False) as ledger:
        assert ledger.book("census").spent().entries == 2
        assert ledger.verify().entries == 3
        with pytest.raises(LedgerError):
            ledger.book("census").charge(events.PureDP(epsilon=0.01))
    assert path.read_bytes() == before
