"""``desk.toml``: which data a desk answers about, from which book, under which limits. Written by the owner alone.

.. code-block:: toml

    [desk]
    ledger = "sqlite:///budget.db"     # or postgresql+psycopg://…
    state = "sqlite:///desk.db"        # people, tokens, questions, answers
    root = "."                         # no source lies outside of this folder
    hosts = ["127.0.0.1", "localhost"] # names under which the desk may be called
    workers = 2
    memory = 4.0                       # gigabytes a worker
    tick = 1.0                         # answers leave after 1, 2, 4 … ticks
    deadline = 30.0                    # what takes longer is charged and withheld
    job_deadline = 600.0               # the same for synthetic data and models

    [datasets.visits]
    source = "visits.csv"              # or a DuckDB file, or postgresql://…, with table = "public.visits"
    schema = "visits.toml"
    book = "visits"
    epsilon = 3.0
    delta = 1e-6
    largest_epsilon = 1.0              # of a question
    approval_above = 0.5               # epsilon from which the owner is asked first
    approval_days = 7.0                # after which an approval expires
    rate = 60                          # questions a minute and person
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from glob import glob
from pathlib import Path
from typing import Any, TypeVar

from discreet.desk.clock import TickClock
from discreet.errors import is_whole_text, number, positive, probability, whole
from discreet.ledger.address import Address
from discreet.ledger.terms import check_name

__all__ = ["Configuration", "Dataset", "read_configuration", "source_files"]

Section = TypeVar("Section")
_NO_ADDRESS = (
    "is an address, but a source is a file below desk.root, or a table of PostgreSQL. Spark is none: it runs programs "
    "and speaks over a network, and a worker that has opened records may do neither. Write the table as a folder of "
    "Parquet files, and name that."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One data set: its files, its book, and the limits of a question about it.

    ``source`` is a file or, with ``table``, the database that holds the table: a DuckDB file, or PostgreSQL's address.
    """

    name: str
    source: Path | str
    schema: Path
    table: str | None = None
    book: str
    epsilon: float
    delta: float = 0.0
    largest_epsilon: float = math.inf
    approval_above: float = math.inf
    approval_days: float = 7.0
    rate: int = 60

    def __post_init__(self) -> None:
        check_name(self.name)
        check_name(self.book)
        if isinstance(self.source, str) and self.table is None:
            raise ValueError("source is a database, so table must name one of its tables.")
        if self.table is not None and (not is_whole_text(self.table) or not self.table.isprintable()):
            raise ValueError("table must be the name of a table: text of one line.")
        positive("epsilon", self.epsilon)
        probability("delta", self.delta)
        for name in ("largest_epsilon", "approval_above"):
            number(name, getattr(self, name), low=0, high=math.inf)
        number("approval_days", self.approval_days, low=0, high=3650, open_low=True)
        whole("rate", self.rate, low=1)

    @property
    def place(self) -> str:
        """Where the records are, without anything that may be secret: what a book is bound to."""
        home = Address.parse(self.source).name if isinstance(self.source, str) else str(self.source)
        return home if self.table is None else f"{home}#{self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A desk: where its books and its own state are kept, how it is reached, and its data sets."""

    folder: Path
    ledger: str = "sqlite:///budget.db"
    state: str = "sqlite:///desk.db"
    root: Path = Path()
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost")
    workers: int = 2
    memory: float = 4.0
    tick: float = 1.0
    deadline: float = 30.0
    job_deadline: float = 600.0
    unconfined: bool = False
    datasets: Mapping[str, Dataset]

    def __post_init__(self) -> None:
        if not self.hosts or not all(map(is_whole_text, self.hosts)):
            raise ValueError("desk.hosts must name at least one host under which the desk is called.")
        whole("workers", self.workers, low=1, high=64)
        number("memory", self.memory, low=0.25, high=4096)
        if self.unconfined not in (True, False):
            raise ValueError("desk.unconfined must be true or false.")
        _ = self.clock, self.job_clock
        _refuse_second_budgets(self.datasets)

    @property
    def clock(self) -> TickClock:
        """When answers leave."""
        return TickClock(self.tick, self.deadline)

    @property
    def job_clock(self) -> TickClock:
        """When what a job makes leaves."""
        return TickClock(self.tick, self.job_deadline)


def read_configuration(path: Path) -> Configuration:
    """The configuration in a file; paths in it are relative to the file, and sources lie below ``root``."""
    try:
        contents = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror}. 'discreet desk init' writes one.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"{path.name} is not TOML: {error}.") from None
    if unknown := sorted(set(contents) - {"desk", "datasets"}):
        raise ValueError(f"{path.name} has {unknown[0]!r}, but there are [desk] and [datasets.NAME].")
    folder = path.resolve().parent
    desk = dict(_table("desk", contents.get("desk", {})))
    root = (folder / _text("desk.root", desk.pop("root", "."))).resolve()
    named = _table("datasets", contents.get("datasets", {}))
    if not named:
        raise ValueError(f"{path.name} has no data set: add a section [datasets.NAME].")
    datasets = {name: _dataset(name, _table(f"datasets.{name}", facts), root) for name, facts in named.items()}
    for key in ("ledger", "state"):
        if key in desk:
            desk[key] = _beside(folder, _text(f"desk.{key}", desk[key]))
    whole_desk = {"ledger": _beside(folder, "sqlite:///budget.db"), "state": _beside(folder, "sqlite:///desk.db")}
    if "hosts" in desk:
        desk["hosts"] = tuple(desk["hosts"]) if isinstance(desk["hosts"], list) else ()
    return _section(Configuration, "desk", {**whole_desk, **desk, "folder": folder, "root": root, "datasets": datasets})


def _dataset(name: str, facts: Mapping[str, Any], root: Path) -> Dataset:
    missing = [key for key in ("source", "schema", "epsilon") if key not in facts]
    if missing:
        raise ValueError(f"datasets.{name} has no {missing[0]}.")
    files: dict[str, Any] = {"schema": _below(root, f"datasets.{name}.schema", facts["schema"])}
    files["source"] = _source(root, f"datasets.{name}.source", facts["source"])
    return _section(Dataset, f"datasets.{name}", {"book": name, **facts, **files, "name": name})


def _section(kind: type[Section], name: str, facts: Mapping[str, Any]) -> Section:
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(facts) - known):
        raise ValueError(
            f"{name}.{unknown[0]} is not known; there are {', '.join(sorted(known - {'name', 'folder'}))}."
        )
    try:
        return kind(**facts)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _source(root: Path, name: str, value: Any) -> Path | str:
    """A file below the root, or PostgreSQL's address."""
    address = _text(name, value)
    if address.startswith("postgresql"):
        Address.parse(address)
        return address
    if "://" in address:
        raise ValueError(f"{name} {_NO_ADDRESS}")
    path = _below(root, name, value)
    for file in () if path.is_file() else source_files(path):  # of a folder, each may be a link
        _below(root, name, file)
    return path


def _below(root: Path, name: str, value: Any) -> Path:
    """A path below the root, whatever links and dots are in it."""
    path = (root / _text(name, value)).resolve()
    if not path.is_relative_to(root):
        raise ValueError(f"{name} lies outside of desk.root: move it there, or choose another root.")
    return path


def _beside(folder: Path, address: str) -> str:
    """A file's address, relative to the configuration; a server's as it is."""
    path = address.removeprefix("sqlite:///")
    return address if path == address else f"sqlite:///{folder / path}"


def _text(name: str, value: Any) -> str:
    if not is_whole_text(value) or not value:
        raise ValueError(f"{name} must be text.")
    return str(value)


def _table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a section.")
    return value


def _refuse_second_budgets(datasets: Mapping[str, Dataset]) -> None:
    """One source has one book, under whatever name, and one book one source: else a budget would be had twice."""
    book_of: dict[Any, str] = {}
    source_of: dict[str, Any] = {}
    for each in datasets.values():
        if any(book_of.setdefault(place, each.book) != each.book for place in (each.place, *_files_of(each))):
            raise ValueError(
                f"datasets.{each.name} has a source that another book counts already: name that book, so that both are "
                "counted together."
            )
        if source_of.setdefault(each.book, each.place) != each.place:
            raise ValueError(f"datasets.{each.name} has a book that another source has: give it a book of its own.")
        first = next(other for other in datasets.values() if other.book == each.book)
        if (first.epsilon, first.delta) != (each.epsilon, each.delta):
            raise ValueError(f"datasets.{each.name} and datasets.{first.name} have one book with two limits.")


def source_files(source: Path) -> list[str]:
    """The files that a source is made of, as ``table`` finds them: one, a folder of Parquet, a glob."""
    pattern = str(source / "**" / "*.parquet") if source.is_dir() else str(source)
    return [pattern] if source.is_file() else sorted(glob(pattern, recursive=True))


def _files_of(dataset: Dataset) -> Iterator[Any]:
    """The files themselves, by whatever names (a hard link is the same, and one of a folder is that of the folder);
    with their table, where they have several.
    """
    for file in source_files(dataset.source) if isinstance(dataset.source, Path) else ():
        with suppress(OSError):  # gone just now: a worker will say so
            found = Path(file).stat()
            yield found.st_dev, found.st_ino, dataset.table
