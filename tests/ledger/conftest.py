"""Ledgers to test against: memory, a file, and PostgreSQL where a server is named."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from discreet.ledger import Ledger

POSTGRES = os.environ.get("DISCREET_TEST_POSTGRES", "")


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger("sqlite://", who="tester") as made:
        yield made


@pytest.fixture
def postgres() -> Iterator[str]:
    """The address of a database of its own, on the server that DISCREET_TEST_POSTGRES names."""
    if not POSTGRES:
        pytest.skip("DISCREET_TEST_POSTGRES names no server; .ci/run starts one")
    name = f"discreet_{uuid.uuid4().hex}"
    server = sa.create_engine(sa.make_url(POSTGRES).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    yield sa.make_url(POSTGRES).set(database=name).render_as_string(hide_password=False)
    with server.connect() as connection:
        connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
    server.dispose()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty file, or of an empty PostgreSQL database."""
    if request.param == "postgres":
        address: str = request.getfixturevalue("postgres")
        return address
    return f"sqlite:///{tmp_path / 'budget.db'}"
