"""The ledger as a state machine, for long: see ``tests/ledger/machine.py``. ``size`` is the number of steps to try.

A file, and PostgreSQL too where DISCREET_TEST_POSTGRES names a server. Prints what was tried, and raises with the steps
that lead there when a promise is broken.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import uuid
from collections.abc import Callable

import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.ledger.machine import TRIED, LedgerMachine

STEPS = 40  # in one run, before it starts from an empty ledger again


def main(size: int | None, seed: int = 0) -> None:
    """Try about ``size`` steps on each store."""
    steps = size or 4_000
    with tempfile.TemporaryDirectory() as directory:
        numbers = itertools.count()
        search("file", lambda: f"sqlite:///{directory}/{next(numbers)}.db", steps, seed)
    if server := os.environ.get("DISCREET_TEST_POSTGRES"):
        on_server(server, steps, seed)


def on_server(server: str, steps: int, seed: int) -> None:
    """The same, in a database of its own, with a schema for each run."""
    name = f"discreet_{uuid.uuid4().hex}"
    engine = sa.create_engine(sa.make_url(server).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT",
                              poolclass=sa.NullPool)  # fmt: skip
    url = sa.make_url(server).set(database=name)
    inside = sa.create_engine(url.set(drivername="postgresql+psycopg"), poolclass=sa.NullPool)
    numbers = itertools.count(1)

    def address() -> str:
        number = next(numbers)
        with inside.begin() as connection:
            connection.execute(sa.text(f"CREATE SCHEMA run_{number}"))
            connection.execute(sa.text(f"DROP SCHEMA IF EXISTS run_{number - 1} CASCADE"))
        return url.update_query_dict({"options": f"-c search_path=run_{number}"}).render_as_string(hide_password=False)

    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    try:
        search("PostgreSQL", address, steps, seed)
    finally:
        with engine.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
        engine.dispose()


def search(where: str, address: Callable[[], str], steps: int, number: int) -> None:
    """Run the machine, and say what was tried. What fails is printed as steps, to be written down as a test: a kill at
    some moment cannot be saved."""

    class Machine(LedgerMachine):
        pass

    Machine.address = staticmethod(address)  # type: ignore[assignment]
    TRIED.counts.clear()
    run_state_machine_as_test(seed(number)(Machine), settings=settings(
        max_examples=max(1, steps // STEPS), stateful_step_count=STEPS, deadline=None, database=None, print_blob=True,
        derandomize=False,
        # kills are not repeated alike: nothing to shrink
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],
    ))  # fmt: skip
    print(f"ledger, {where}: " + ", ".join(f"{count:,} {what}" for what, count in sorted(TRIED.counts.items())))
