"""Hostile neighbours: containers of one odd record more, and everything that leaves an operation compared.

A *case* is an operation, a container and two lists of records that differ in one. Noise is forced by record and replay:
what meets noise must stay within the declared sensitivity, and keys, types, order, shapes, warnings, errors and
messages must be equal.
"""

from __future__ import annotations

import dataclasses
import random
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from discreet.auditing import ReplayError, replay
from searches._containers import CONTAINERS, Container, identifier
from searches._odd import Record, record
from searches._operations import OPERATIONS, Operation

__all__ = ["Case", "cases", "check"]


@dataclasses.dataclass(frozen=True)
class Case:
    """Two neighbours in one kind of container, for one operation."""

    operation: Operation
    container: str
    kind: str
    first: list[Record]
    second: list[Record]

    def __str__(self) -> str:
        return f"{self.operation.name}; {self.container} of {self.kind}"


def _same_unit(a: Any, b: Any) -> bool:
    from discreet.encoding.values import identity

    return identity(a) == identity(b)


def cases(
    size: int, seed: int, containers: Mapping[str, tuple[str, tuple[str, ...], Container]] | None = None
) -> list[Case]:
    """So many cases, from a seed: every operation in turn, and for each the containers that it takes in turn."""
    rng, out, chosen = random.Random(seed), list[Case](), containers or CONTAINERS
    able = [operation for operation in OPERATIONS if {holds for holds, _, _ in chosen.values()} & set(operation.takes)]
    while len(out) < size:
        turn, place = divmod(len(out), len(able))
        operation = able[place]
        fitting = [name for name, (holds, _, _) in chosen.items() if holds in operation.takes]
        name = fitting[(turn + place) % len(fitting)]
        kind = rng.choice(chosen[name][1])
        base = [record(rng, kind) for _ in range(rng.choice([0, 1, 3, 8]))]
        base += base[:1] * rng.choice([0, 0, 3, 20])  # heaps of one record
        extra, place = record(rng, kind), rng.randrange(len(base) + 1)
        longer = [*base[:place], extra, *base[place:]]
        if operation.protects == "unit":  # without all records of that unit, as the container reads identifiers
            read = identifier(name)
            base = [one for one in longer if not _same_unit(read(one["who"]), read(extra["who"]))]
        pair = (longer, base) if rng.random() < 0.5 else (base, longer)
        out.append(Case(operation, name, kind, *pair))
    return out


def check(
    case: Case,
    containers: Mapping[str, tuple[str, tuple[str, ...], Container]] | None = None,
    *,
    fresh: bool = True,
    reaches: tuple[str, ...] = (),
) -> bool:
    """Replay a case; whether it answered. A difference that its cost does not cover raises ``ReplayError``.

    Two equal refusals are no violation (a type that is publicly wrong), and show nothing else. Without ``fresh``
    nothing is copied, for containers that hold what cannot be (a session): each run makes its data and its answer anew
    all the same.
    """
    make = (containers or CONTAINERS)[case.container][2]

    def run(records: list[Record]) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            data = make(records, case.kind, Path(folder))
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                warnings.filterwarnings("ignore", "No book counts")  # said once in a process, whatever the records
                value = case.operation.release(data).value
            return _seen(value), [f"{w.category.__name__}: {w.message}" for w in heard]

    try:
        return replay(run, case.first, case.second, allow=(Exception,), fresh=fresh, reaches=reaches).error is None
    except ReplayError as error:
        raise ReplayError(f"{case}: {error}") from None


def _seen(value: Any) -> Any:
    """All that a receiver sees of an answer: its kind, the names and types of columns, their order and their values."""
    if hasattr(value, "dtypes") and hasattr(value, "columns"):
        return (
            type(value).__name__,
            [str(name) for name in value.columns],
            [str(kind) for kind in value.dtypes],
            [[repr(entry) for entry in (value[name].to_list())] for name in value.columns],
        )
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, [repr(entry) for entry in value.ravel().tolist()]
    return type(value).__name__, repr(value)
