"""What the store promises whatever the server, the file system, the clock or the address say."""

from __future__ import annotations

import multiprocessing
import os
import stat
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import event as hooks

from discreet import events
from discreet.ledger import Ledger, LedgerError, store
from discreet.ledger.address import Address

STEP = events.PureDP(epsilon=0.001)


def alter(address: str, setting: str) -> None:
    """Change a default of the database, for connections that start later."""
    url = sa.make_url(address).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(f'ALTER DATABASE "{url.database}" SET {setting}'))
    engine.dispose()


@pytest.mark.parametrize("careless", ["off", "local", "remote_write"])
def test_every_write_waits_for_the_disk_whatever_the_database_says(postgres: str, careless: str) -> None:
    alter(postgres, f"synchronous_commit = {careless}")
    with Ledger(postgres) as ledger:
        seen: list[str | None] = []

        def look(connection: sa.Connection) -> None:  # at COMMIT, when it matters
            seen.append(connection.exec_driver_sql("SHOW synchronous_commit").scalar())

        with ledger._store._engine.connect() as connection:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == careless
        hooks.listen(ledger._store._engine, "commit", look)
        book = ledger.open("census", epsilon=1.0)
        seen.clear()
        book.charge(STEP)
        assert seen
        assert set(seen) == {"on"}


@pytest.mark.parametrize("level", ["serializable", "repeatable read", "read committed"])
def test_any_default_isolation_level_will_do(postgres: str, level: str) -> None:
    alter(postgres, f"default_transaction_isolation = '{level}'")
    with Ledger(postgres) as one, Ledger(postgres) as other:
        book = one.open("census", epsilon=1.0)
        book.charge(STEP)
        other.book("census").charge(STEP)
        book.charge(STEP)
        assert one.verify().entries == 4


def opening(url: str, said: multiprocessing.SimpleQueue[str], start: object) -> None:
    try:
        start.wait()  # type: ignore[attr-defined]
        with Ledger(url) as ledger:
            said.put(f"entry {ledger.open('census', epsilon=1.0).charge(STEP).seq}")
    except Exception as error:
        said.put(f"{type(error).__name__}: {error}")


def test_eight_processes_open_the_same_new_ledger_at_once(url: str) -> None:
    crowded(url)


@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_eight_processes_open_it_under_any_default_isolation_level(postgres: str, level: str) -> None:
    alter(postgres, f"default_transaction_isolation = '{level}'")
    crowded(postgres)


def crowded(url: str) -> None:
    """Eight processes make the ledger, open the book and charge it, all at once: none fails, nothing is doubled."""
    context = multiprocessing.get_context("fork")
    said: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    start = context.Barrier(8)
    crowd = [context.Process(target=opening, args=(url, said, start)) for _ in range(8)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for process in crowd:
            process.start()
    words = sorted(said.get() for _ in crowd)
    for process in crowd:
        process.join()
    assert words == [f"entry {number}" for number in range(2, 10)]
    with Ledger(url) as ledger:
        assert ledger.verify().entries == 9


def test_two_writers_before_the_first_entry_wait_for_each_other(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no row to lock yet; and a lock that is not given in time is a clean error."""
    monkeypatch.setattr(store, "_PATIENCE", 0.05)
    with Ledger(postgres) as one, Ledger(postgres) as other:
        with one._store.write(), pytest.raises(LedgerError, match=r"was locked.*lock timeout.*Nothing was charged\."):
            other.open("census", epsilon=1.0)
        assert other.open("census", epsilon=1.0).charge(STEP).seq == 2


def test_a_locked_file_is_a_clean_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_PATIENCE", 0.05)
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    with Ledger(url) as one, Ledger(url) as other:
        book = one.open("census", epsilon=1.0)
        with other._store.write(), pytest.raises(LedgerError, match=r"was locked.*Nothing was charged\."):
            book.charge(STEP)
        assert book.charge(STEP).seq == 2


# --- names, clocks, files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CENSUS", "cens_s", "cens%", "cen\\sus", "census"])
def test_the_history_of_a_book_is_of_the_books_inside_it_alone(url: str, name: str) -> None:
    with Ledger(url) as ledger:
        for each in sorted({"census", name}):
            ledger.open(each, epsilon=1.0).sub("alice", epsilon=1.0).charge(STEP)
        expected = [name, f"{name}/alice", f"{name}/alice"]
        assert [entry.book for entry in ledger.book(name).entries()] == expected
        assert [entry.book for entry, _ in ledger.book(name).snapshot().readings] == [f"{name}/alice"]


def test_the_clock_is_written_down_and_never_stops_the_ledger() -> None:
    """Ten years ahead for a moment, then right again, then an hour back: the order of entries is the chain's."""
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    times = iter([noon, noon + timedelta(days=3653), noon + timedelta(seconds=1), noon - timedelta(hours=1)])
    with Ledger("sqlite://", clock=lambda: next(times)) as ledger:
        book = ledger.open("census", epsilon=1.0)
        for _ in range(3):
            book.charge(STEP)
        assert [entry.time.year for entry in ledger.entries()] == [2026, 2036, 2026, 2026]
        assert ledger.entries()[-1].time == noon - timedelta(hours=1)
        assert ledger.verify().entries == 4


@pytest.fixture
def lenient() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("form", ["sqlite:///{}", "sqlite:///file:{}?uri=true"])
def test_a_new_file_and_its_journal_are_their_owners_alone(tmp_path: Path, form: str) -> None:
    path = tmp_path / "budget.db"
    with Ledger(form.format(path)) as ledger:
        ledger.open("census", epsilon=1.0)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {"budget.db": 0o600, "budget.db-journal": 0o600}


@pytest.mark.usefixtures("lenient")
def test_the_permissions_an_owner_gave_are_kept(tmp_path: Path) -> None:
    (tmp_path / "budget.db").touch(mode=0o640)
    with Ledger(f"sqlite:///{tmp_path / 'budget.db'}") as ledger:
        ledger.open("census", epsilon=1.0)
    assert stat.S_IMODE((tmp_path / "budget.db").stat().st_mode) == 0o640


def test_a_file_that_must_exist_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger(f"sqlite:///file:{tmp_path / 'none.db'}?mode=ro&uri=true")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&uri=true"])
def test_every_way_to_write_memory_is_no_file(address: str) -> None:
    assert Address.parse(address).memory
    assert Address.parse(address).file is None


# --- passwords -----------------------------------------------------------------------------------------------------

SECRET = "hunter2"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hunter2@127.0.0.1:1/db",
        "postgresql://me@127.0.0.1:1/db?password=hunter2",
        "postgresql://127.0.0.1:1/db?user=me&sslpassword=hunter2&connect_timeout=1",
        "postgresql://127.0.0.1:1/db?passfile=hunter2",
        "postgresql://127.0.0.1:1/db?options=hunter2",
        "postgresql://127.0.0.1:1/db?password=hunter2&password=hunter2",
        "postgresql://me:p@hunter2@127.0.0.1:1/db",
        "postgresql://me:p@x/hunter2@127.0.0.1:1/db",
        "postgresql://me:p@x:hunter2@127.0.0.1:1/db",
        "postgresql://me:p@x?hunter2@127.0.0.1:1/db",
        "postgresql://me:hunter2",
        "postgresql+hunter2://me:hunter2@host/db",
        "sqlite://me:hunter2@host/budget.db",
        "sqlite:///no/such/folder/budget.db?password=hunter2",
        "mysql://me:hunter2@host/db",
        "hunter2://me:hunter2@host/db",
        "me:hunter2@host/db",
        "postgresql://me:%68unter2@127.0.0.1:1/db?password=%68unter2",
    ],
)
def test_a_password_is_in_no_error(address: str) -> None:
    with pytest.raises((LedgerError, ValueError)) as caught:
        Ledger(address)
    shown: BaseException | None = caught.value
    while shown is not None:
        assert SECRET not in f"{shown} {shown!r}"
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)


def test_a_password_is_in_no_name_and_no_repr(postgres: str) -> None:
    """Of a ledger that is open, however the password was given."""
    url = sa.make_url(postgres).update_query_dict({"password": SECRET, "application_name": "books"})
    with Ledger(url.render_as_string(hide_password=False)) as ledger:
        ledger.open("census", epsilon=1.0).charge(STEP)
        inside = ledger._store
        shown = [ledger, ledger.name, inside, inside.address, inside.address.url, inside._engine, inside._engine.url]
        assert not any(SECRET in f"{thing!r} {thing!s}" for thing in shown)
        with inside.read() as connection:
            assert connection.exec_driver_sql("SHOW application_name").scalar() == "books"


def test_a_drivers_words_are_kept_where_they_tell_nothing() -> None:
    with pytest.raises(LedgerError, match="refused"):
        Ledger("postgresql://me:hunter2@127.0.0.1:1/db")


def test_a_secret_is_known_in_every_form() -> None:
    address = Address.parse("postgresql://me:a%40b%2Fc@host/db?sslpassword=x%20y&sslmode=require")
    assert all(address.mentions_secret(f"at {form}!") for form in ("a@b/c", "a%40b%2Fc", "x y", "x+y", "x%20y"))
    assert not address.mentions_secret("sslmode require at host")
