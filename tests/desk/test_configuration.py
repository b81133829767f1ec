"""A configuration says where the data is and what may be asked; what it does not know, it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.desk.configuration import read_configuration
from tests.desk.desks import write_desk

AGAIN = """
[datasets.again]
source = "{source}"
schema = "visits.toml"
book = "{book}"
epsilon = {epsilon}
delta = 1e-6
"""


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    configuration = read_configuration(write_desk(tmp_path))
    assert configuration.ledger == f"sqlite:///{tmp_path / 'budget.db'}"
    assert configuration.datasets["visits"].source == tmp_path / "visits.parquet"
    assert configuration.clock.tick == 0.02


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[desk]", "[counter]", "'counter'"),
        ("workers = 1", "workers = 0", "workers"),
        ("workers = 1", "worker = 1", r"desk\.worker is not known"),
        ("tick = 0.02", "tick = 0", "tick"),
        ("deadline = 300.0", "deadline = 0.001", "deadline"),
        ("epsilon = 1000.0", "epsilon = 0", r"datasets\.visits: epsilon"),
        ("delta = 1e-06", "delta = 2", "delta"),
        ("rate = 1000000", "rate = 0", "rate"),
        ("rate = 1000000", "rates = 7", r"datasets\.visits\.rates is not known"),
        ('source = "visits.parquet"', 'source = "../../etc/passwd"', "outside of desk.root"),
        ('source = "visits.parquet"', 'source = "/etc/passwd"', "outside of desk.root"),
        ('source = "visits.parquet"', 'source = "link.parquet"', "outside of desk.root"),
        ('source = "visits.parquet"', "source = 7", "must be text"),
        ('schema = "visits.toml"', "", "has no schema"),
        ("[datasets.visits]", "[datasets.'a/b']", "name"),
        ("[desk]", "[desk]\nhosts = []", "hosts"),
        ("[desk]", "[desk]\nunconfined = 7", "unconfined"),
        ("[desk]", "[desk", "is not TOML"),
    ],
)
def test_what_is_not_known_or_out_of_range_is_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    file = write_desk(tmp_path)
    (tmp_path / "link.parquet").symlink_to("/etc/hostname")
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=reason):
        read_configuration(file)


@pytest.mark.parametrize(
    ("source", "book", "epsilon", "reason"),
    [
        ("visits.parquet", "other", 1000.0, "another book counts already"),
        ("sub/../visits.parquet", "other", 1000.0, "another book counts already"),
        ("else.parquet", "visits", 1000.0, "a book of its own"),
        ("visits.parquet", "visits", 1.0, "one book with two limits"),
    ],
)
def test_one_source_has_one_book(tmp_path: Path, source: str, book: str, epsilon: float, reason: str) -> None:
    file = write_desk(tmp_path)
    with file.open("a", encoding="utf-8") as text:
        text.write(AGAIN.format(source=source, book=book, epsilon=epsilon))
    with pytest.raises(ValueError, match=reason):
        read_configuration(file)


def test_two_names_may_share_a_source_and_its_book(tmp_path: Path) -> None:
    file = write_desk(tmp_path)
    with file.open("a", encoding="utf-8") as text:
        text.write(AGAIN.format(source="visits.parquet", book="visits", epsilon=1000.0))
    assert len(read_configuration(file).datasets) == 2


def test_a_file_that_is_not_there_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'discreet desk init' writes one"):
        read_configuration(tmp_path / "desk.toml")
