"""One desk for all tests that leave it as it was; those that stop it have their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.desk.desks import Running, running, write_desk
from tests.ledger.conftest import postgres  # noqa: F401 - a fixture of the ledger's tests


@pytest.fixture(scope="session")
def one_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(write_desk(tmp_path_factory.mktemp("desk"))) as one:
        yield one


@pytest.fixture
def desk(one_desk: Running) -> Iterator[Running]:
    yield one_desk
    one_desk.close_clients()
