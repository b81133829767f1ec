"""One contract over every operation the library has; a new one is covered by being listed in ``tests/operations``."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet import events
from discreet.mechanisms.mechanism import Mechanism
from discreet.random import Rng, discrete_laplace
from discreet.random.tap import draw_output
from discreet.release import ONE_RECORD, Release
from tests.operations import contract
from tests.operations.contract import CHECKS, Case, every_case

CASES = every_case()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_operation(check, case):
    check(case)


# --- nothing is missing --------------------------------------------------------------------------------------------


@dataclass
class _Class:
    bases: list[str]
    properties: set[str]
    methods: set[str]
    abstract: set[str]


def _classes(root: Path) -> Iterator[tuple[str, _Class]]:
    """Every class in public modules, by its full name: no room is imported for it."""
    for path in root.rglob("*.py"):
        parts = path.relative_to(root.parent).with_suffix("").parts
        if not any(part.startswith("_") for part in parts):
            tree, module = ast.parse(path.read_text()), ".".join(parts)
            known = {
                name.asname or name.name: f"{node.module}.{name.name}"
                for node in tree.body
                if isinstance(node, ast.ImportFrom)
                for name in node.names
            }
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    yield f"{module}.{node.name}", _described(node, module, known)


def _described(node: ast.ClassDef, module: str, known: dict[str, str]) -> _Class:
    functions = [item for item in node.body if isinstance(item, ast.FunctionDef)]
    marks = {f.name: {ast.unparse(mark).split(".")[-1] for mark in f.decorator_list} for f in functions}
    fields = {
        item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    properties = {name for name, found in marks.items() if found & {"property", "cached_property"}}
    bases = [ast.unparse(base).split("[")[0] for base in node.bases]
    return _Class(
        [known.get(base, f"{module}.{base}") for base in bases],
        properties | fields,
        set(marks) - properties,
        {name for name, found in marks.items() if "abstractmethod" in found},
    )


def _operations(root: Path) -> set[str]:
    """Public classes, not abstract, that state an ``event`` as a property and have ``release``."""
    found = dict(_classes(root))

    def line(name: str) -> list[_Class]:
        return [found[name], *(c for base in found[name].bases if base in found for c in line(base))]

    def concrete(name: str) -> bool:
        classes = line(name)
        made = set().union(*((c.properties | c.methods) - c.abstract for c in classes))
        return "typing.Protocol" not in found[name].bases and not set().union(*(c.abstract for c in classes)) - made

    return {
        name
        for name in found
        if not name.split(".")[-1].startswith("_")
        and concrete(name)
        and any("event" in c.properties for c in line(name))
        and any("release" in c.methods for c in line(name))
    }


def test_every_operation_of_the_library_is_listed():
    kinds = [type(case.operation(case.data)[0]) for case in CASES]
    listed = {f"{kind.__module__}.{kind.__qualname__}" for kind in kinds}
    known = _operations(Path(discreet.__file__).parent)
    assert not known - listed, f"List {sorted(known - listed)} in tests/operations/<room>.py."
    assert listed <= known, "What is listed is found: the search sees every room."


def test_a_class_that_is_not_listed_is_found(tmp_path):
    room = tmp_path / "house"
    room.mkdir()
    (room / "base.py").write_text(
        "class Base(ABC):\n    def release(self): ...\n    @abstractmethod\n    def draw(self): ...\n"
    )
    (room / "room.py").write_text(
        "from house.base import Base as Kind\n"
        "class New(Kind[int]):\n    event: int\n    def draw(self): ...\n"
        "class Method(Kind):\n    def event(self): ...\n    def draw(self): ...\n"
        "class Open(Kind):\n    @property\n    def event(self): ...\n"
        "class _Hidden(New): ...\n"
    )
    assert _operations(room) == {"house.room.New"}


# --- a new operation is one class and one entry; a broken one is found ---------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy(Mechanism[int]):
    """How many records there are, with noise of scale 1."""

    @property
    def event(self) -> events.Event:
        return events.DiscreteLaplace(scale=1.0, sensitivity=1)

    def draw(self, data: Any, rng: Rng) -> int:
        exact = sum(1 for _ in data)
        return draw_output(self, exact, "l1", 1, lambda: exact + int(discrete_laplace(1.0, 1, rng)[0]))


TOY = Case("toy", Toy, [1, 2, 3], [1, 2])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_toy_operation_takes_one_class_and_one_entry(check):
    check(TOY)


class Early(Toy):
    """Reads while it prepares."""

    def check(self, data: Any) -> None:
        list(data)


class Sizing(Toy):
    """Looks at the private number of records while it prepares."""

    def check(self, data: Any) -> None:
        len(data)


class Nameless:
    """Protects nobody in particular."""

    event = Toy().event
    release = Toy().release


class Moody(Toy):
    """Promises another cost each time."""

    count = itertools.count(1)

    @property
    def event(self) -> events.Event:
        return events.Laplace(noise_multiplier=float(next(self.count)))


class Understated(Toy):
    """Costs more than its release says."""

    def release(self, data: Any = None, rng: Any = None) -> Release[int]:
        return self.prepare(data, rng)()

    def prepare(self, data: Any = None, rng: Any = None) -> Any:
        run = Toy.prepare(self, data, rng)
        return lambda: Release(run().value, events.Laplace(noise_multiplier=9.0), rng is not None, unit=ONE_RECORD)


class Careless(Toy):
    """Finds out after the charge that its source of randomness is none."""

    def prepare(self, data: Any = None, rng: Any = None) -> Any:
        return lambda: Toy.prepare(self, data, rng)()


class Frank(Toy):
    """Adds no noise to a part of its answer."""

    def draw(self, data: Any, rng: Rng) -> Any:
        return Toy.draw(self, data, rng), sum(1 for _ in data)


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (Early, contract.is_charged_before_it_reads),
        (Early, contract.leaves_nothing_when_refused),
        (Sizing, contract.is_charged_before_it_reads),
        (Sizing, contract.leaves_nothing_when_refused),
        (Nameless, contract.states_its_event_and_unit_before_data),
        (Moody, contract.states_its_event_and_unit_before_data),
        (Moody, contract.is_charged_before_it_reads),
        (Moody, contract.gives_what_it_promised),
        (Understated, contract.gives_what_it_promised),
        (Understated, contract.passes_replay),
        (Careless, contract.refuses_public_mistakes_before_the_charge),
        (Frank, contract.passes_replay),
    ],
    ids=lambda value: value.__name__,
)
def test_a_broken_operation_is_found(kind, check):
    with pytest.raises((AssertionError, ValueError)):
        check(Case("broken", kind, TOY.data, TOY.neighbour))
