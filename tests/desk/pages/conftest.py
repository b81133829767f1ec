"""One hospital's desk, and one browser, for all tests of pages: each begins signed out, with empty hands."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.desk.desks import Running, running
from tests.desk.pages.hospital import write_hospital
from tests.desk.pages.visitor import Visitor


@dataclass
class Hospital:
    """The desk, and people who come to it."""

    desk: Running
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def person(self, role: str = "analyst", *, epsilon: float = 3.0) -> tuple[str, str]:
        """A new person, name and token; who asks has a part of the budget."""
        name = f"{role}-{next(self.numbers)}"
        if role != "officer":
            self.desk.service.books["visits"].sub(name, epsilon=epsilon)
        return name, self.desk.service.state.add_person(name, role, ("visits",) if role == "analyst" else ())

    def spent(self, name: str) -> int:
        """How many charges a person has made."""
        return int(self.desk.service.ledger.book(f"visits/{name}").spent().entries)


@pytest.fixture(scope="session")
def one_hospital(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hospital]:
    with running(write_hospital(tmp_path_factory.mktemp("hospital"), epsilon=500.0)) as desk:
        yield Hospital(desk)


@pytest.fixture
def hospital(one_hospital: Hospital) -> Iterator[Hospital]:
    yield one_hospital
    one_hospital.desk.service.state.note("frozen", None)
    one_hospital.desk.close_clients()


@pytest.fixture(scope="session")
def one_visitor(one_hospital: Hospital, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    if not (program := os.environ.get("DISCREET_TEST_CHROMIUM", "")):
        pytest.skip("DISCREET_TEST_CHROMIUM names no browser; .ci/run installs one")
    opened = Visitor(program, tmp_path_factory.mktemp("browser"), one_hospital.desk.url)
    yield opened
    opened.close()


@pytest.fixture
def visitor(one_visitor: Visitor, hospital: Hospital) -> Iterator[Visitor]:
    one_visitor.forget()
    yield one_visitor
    one_visitor.check()


@pytest.fixture
def another(hospital: Hospital, tmp_path: Path) -> Iterator[Visitor]:
    """A second browser, of somebody else."""
    if not (program := os.environ.get("DISCREET_TEST_CHROMIUM", "")):
        pytest.skip("DISCREET_TEST_CHROMIUM names no browser; .ci/run installs one")
    opened = Visitor(program, tmp_path / "browser", hospital.desk.url)
    try:
        yield opened
        opened.check()
    finally:
        opened.close()
