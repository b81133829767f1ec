"""Ledgers that earlier versions wrote, as they were found on disk, open, verify and go on."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import discreet as dp

EARLIER = Path(__file__).parent / "earlier"
WRITTEN = sorted(path.stem for path in EARLIER.glob("*.sql"))
SPENT = 1.7221776189941  # what those versions said of a Gaussian of 6, three times, and a pure 0.25, at delta = 1e-6


@pytest.fixture(params=WRITTEN)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / "budget.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((EARLIER / f"{request.param}.sql").read_text(encoding="utf-8"))
    connection.close()
    return f"sqlite:///{path}"


def test_there_is_one_of_each_schema_before_the_newest() -> None:
    from discreet.ledger.schema import CURRENT

    assert [int(name) for name in WRITTEN] == list(range(1, int(CURRENT)))


def test_an_earlier_ledger_is_brought_forward_and_means_what_it_meant(address: str) -> None:
    with dp.Ledger(address) as ledger:
        book = ledger.book("census")
        assert [entry.label for entry in book.entries()[1:]] == ["three means", "a count"]
        assert book.spent().epsilon == pytest.approx(SPENT, rel=1e-12)
        assert ledger.verify().entries == 3


def test_an_earlier_ledger_takes_charges_and_still_refuses(address: str) -> None:
    with dp.Ledger(address) as ledger:
        book = ledger.book("census")
        book.charge(dp.events.PureDP(epsilon=0.05), label="one more")
        assert SPENT < book.spent().epsilon <= 2.0
        with pytest.raises(dp.BudgetExceeded):
            book.charge(dp.events.PureDP(epsilon=1.0))
    with dp.Ledger(address, create=False) as ledger:
        assert ledger.verify().entries == 4
        assert dp.report(ledger.book("census")).facts["spent"]["charges"] == 3
