"""When the store fails: a clear error, and nothing lost."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import event as hooks

from discreet import events
from discreet.errors import MissingExtra, extra
from discreet.ledger import ChainBroken, Ledger, LedgerError

STEP = events.PureDP(epsilon=0.001)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a ledger of ten charges."""
    with Ledger(f"sqlite:///{tmp_path / 'budget.db'}") as ledger:
        book = ledger.open("census", epsilon=1_000.0)
        for turn in range(10):
            book.charge(STEP, label=str(turn))
    return tmp_path / "budget.db"


def test_a_full_disk(path: Path) -> None:
    with Ledger(f"sqlite:///{path}") as ledger:
        hooks.listen(ledger._store._engine, "connect", lambda raw, _: raw.execute("PRAGMA max_page_count=1"))
        ledger._store._engine.dispose()
        book = ledger.book("census")
        granted = 10
        with pytest.raises(LedgerError, match=r"disk is full.*Nothing was charged\."):  # noqa: PT012
            for _ in range(1000):
                book.charge(STEP, label="x" * 500)
                granted += 1
    with Ledger(f"sqlite:///{path}") as ledger:
        assert ledger.verify().entries == granted + 1
        ledger.book("census").charge(STEP)


def test_a_read_only_file(path: Path) -> None:
    """Reading goes on; charging says why not."""
    with Ledger(f"sqlite:///file:{path}?mode=ro&uri=true") as ledger:
        book = ledger.open("census", epsilon=1_000.0)
        assert book.spent().entries == 10
        assert ledger.verify().entries == 11
        with pytest.raises(LedgerError, match=r"read-only.*Nothing was charged\."):
            book.charge(STEP)
        assert ledger.verify().entries == 11


def test_a_damaged_header(path: Path) -> None:
    path.write_bytes(b"not a ledger at all".ljust(4096) + path.read_bytes()[4096:])
    with pytest.raises(LedgerError, match="not a database"):
        Ledger(f"sqlite:///{path}")


def test_damaged_pages(path: Path) -> None:
    """Noise over every page but the first is found on use, whichever page is read first."""
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:4096] + bytes(range(1, 256)) * ((size - 4096) // 255))
    with pytest.raises(LedgerError):
        Ledger(f"sqlite:///{path}").verify()


def test_a_truncated_file(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: 4096 * 3])
    with pytest.raises(LedgerError):
        Ledger(f"sqlite:///{path}").verify()


def test_a_foreign_schema_version(path: Path) -> None:
    raw = sqlite3.connect(path)
    raw.execute("UPDATE discreet_schema SET version_num = '9999'")
    raw.commit()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=r"schema version '9999'.*Upgrade discreet.*Nothing was changed\."):
        Ledger(f"sqlite:///{path}")
    assert path.read_bytes() == before
    raw.execute("DROP TABLE discreet_schema")
    raw.commit()
    raw.close()
    with pytest.raises(LedgerError, match="no schema version"):
        Ledger(f"sqlite:///{path}")


def test_a_clock_without_a_zone() -> None:
    with Ledger("sqlite://", clock=lambda: datetime(2026, 5, 1)) as ledger, pytest.raises(LedgerError, match="UTC"):
        ledger.open("census", epsilon=1.0)


def test_a_mistyped_address_does_not_make_an_empty_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="There is no ledger"):
        Ledger(f"sqlite:///{tmp_path / 'bugdet.db'}", create=False)
    assert not (tmp_path / "bugdet.db").exists()
    (tmp_path / "empty.db").touch()
    with pytest.raises(LedgerError, match="There is no ledger"):
        Ledger(f"sqlite:///{tmp_path / 'empty.db'}", create=False)
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger(f"sqlite:///{tmp_path / 'no' / 'such' / 'directory.db'}")


def test_a_password_is_never_shown() -> None:
    with pytest.raises(LedgerError) as caught:
        Ledger("postgresql://someone:hunter2@localhost:1/none")
    assert "hunter2" not in str(caught.value)
    assert "***" in str(caught.value)


@pytest.mark.parametrize("url", ["sqlite:budget.db", "mysql://host/db", "oracle://host"])
def test_an_address_of_another_kind(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        Ledger(url)


def test_a_failed_charge_leaves_the_chain_whole(path: Path) -> None:
    """An entry written without its totals, as by a bug, is found."""
    raw = sqlite3.connect(path)
    raw.execute("UPDATE discreet_books SET entries = entries + 1")
    raw.commit()
    raw.close()
    with Ledger(f"sqlite:///{path}") as ledger, pytest.raises(ChainBroken, match="running totals"):
        ledger.verify()


def test_a_missing_extra_says_what_to_install() -> None:
    with pytest.raises(MissingExtra, match=r'pip install "discreet\[ledger\]"'), extra("ledger"):
        import no_such_database_toolkit  # type: ignore[import-not-found]  # noqa: F401
