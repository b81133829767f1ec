"""Odd containers and odd records for every operation of the library: hundreds here, ten thousand and more by
``python -m searches containers odd_records``.
"""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import discreet as dp
import searches.containers
import searches.odd_records
from discreet.encoding.containers import UnreadColumn
from discreet.encoding.labels import Labels
from discreet.mechanisms import StableMode
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.records import entries
from discreet.release import charged
from searches._containers import one_connection
from searches._forms import ALONE, ENTRIES, FORMS, UNHELD, form, forms
from searches._odd import Failing
from searches._planting import Broken, check_container, check_record, kinds, plant_container, plant_record
from tests.operations.contract import Case, Log, SpyBook, every_case
from tests.test_operations import TOY, Toy

CASES = kinds(every_case())


def _turn(place: int, able: set[str]) -> str:
    """The list of entries whose turn it is, of those that a form can hold."""
    held = [entries for entries in ENTRIES if entries in able]
    return held[place % len(held)]


CONTAINERS = [*ALONE.items(), *(form(name, _turn(i, able)) for i, (name, (able, _)) in enumerate(FORMS.items()))]
RECORDS = [
    None,
    float("nan"),
    np.frombuffer(b"\x01\0\0\0\0\0\xf0\x7f")[0],  # a signalling one
    float("inf"),
    -0.0,
    5e-324,
    1e308,
    True,
    np.float32(1),
    np.longdouble("1e4000"),
    2**70,
    10**400,
    Decimal("1.00"),
    Decimal("sNaN"),
    Decimal("1e9999999"),
    Fraction(1, 3),
    1j,
    "",
    "1e400",
    "\ud800",
    b"\xff",
    [],
    {},
    (1.0, "a"),
    np.array([1.0, 2.0]),
    np.datetime64("NaT"),
    pd.NA,
    pd.NaT,
    Failing(),
]


@pytest.fixture(scope="module", autouse=True)
def connection():
    """One DuckDB connection: opening one takes longer than most questions here."""
    with one_connection():
        yield


def name(case):
    return case.name


def test_there_are_enough_of_both():
    assert len({name for name, _ in CONTAINERS}) >= 100
    assert len(forms()) >= 900
    assert len(RECORDS) >= 25


@pytest.mark.parametrize("case", CASES, ids=name)
def test_an_odd_container_is_answered_or_refused_with_nothing_charged(case):
    """Of every operation at least forty: in place of all data, and of one of their parts."""
    chosen = CONTAINERS if _is_quick(case) else CONTAINERS[len(case.name) % 3 :: 3]
    assert len(chosen) >= 40
    for number, (_, make) in enumerate(chosen):
        check_container(case, plant_container(case, make(), number % 4))


@pytest.mark.parametrize("case", [case for case in CASES if not case.bound], ids=name)
def test_an_odd_record_decides_nothing_but_its_own_contribution(case):
    rng = random.Random(len(case.name))
    for odd in RECORDS if _is_quick(case) else RECORDS[len(case.name) % 14 :: 14]:
        check_record(case, plant_record(case, odd, rng))


def _is_quick(case: Case) -> bool:
    return isinstance(case.operation(case.data)[0], Mechanism) and not case.bound


@pytest.mark.parametrize("kind", UNHELD)
def test_an_entry_that_python_cannot_hold_fails_no_release_and_changes_no_other(kind):
    """Of typed columns: text that is no UTF-8, dates beyond the year 9999. The list of all would fail."""
    column = UNHELD[kind]()
    every = list(entries(column))
    assert len(every) == 4
    assert sum(x is None or "?" in str(x) for x in every) == 1
    assert every == list(entries(column))
    log = Log()
    charged(StableMode(epsilon=1.0, delta=1e-6), column, book=SpyBook(log), rng=1)
    assert "charge" in log


@pytest.mark.parametrize("kind", [kind for kind in UNHELD if "text" in kind or "views" in kind])
def test_a_label_that_is_no_text_fails_no_fit(kind):
    """It is none of the classes, and its record alone is left out."""
    column = UnreadColumn(UNHELD[kind](), "text")
    assert Labels(("a", "b")).codes(column).tolist() == [0, -1, 1, 0]


def test_the_searches_run():
    searches.containers.main(20)
    searches.odd_records.main(20)


# --- the contract finds what breaks it -------------------------------------------------------------------------------


class Late(Toy):
    """Finds out what it was given after the charge."""

    def draw(self, data, rng):
        if not hasattr(data, "__iter__"):
            raise ValueError("data is no list, but must be one.")
        return Toy.draw(self, data, rng)


class Raw(Toy):
    """Says what Python says."""

    def check(self, data):
        len(data)


class Sharp(Toy):
    """Stops at a record that it does not know."""

    def draw(self, data, rng):
        return Toy.draw(self, [float(x) for x in data], rng)


class Swayed(Toy):
    """Leaves out all records because of one."""

    def draw(self, data, rng):
        every = list(data)
        return Toy.draw(self, [] if any(isinstance(x, str) for x in every) else every * 3, rng)


@pytest.mark.parametrize(("kind", "said"), [(Late, "charged, then ValueError"), (Raw, "a raw TypeError")])
def test_a_late_or_raw_refusal_is_found(kind, said):
    with pytest.raises(Broken, match=said):
        check_container(Case("broken", kind, TOY.data, TOY.neighbour), 5)


@pytest.mark.parametrize("kind", [Sharp, Swayed])
def test_a_record_that_decides_more_is_found(kind):
    case = Case("broken", kind, TOY.data, TOY.neighbour)
    with pytest.raises(Broken, match=r"with the record charged|differs by"):
        check_record(case, plant_record(case, "a word", random.Random(1)))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("Correct", ("model", ((None, math.nan, None, math.inf), [0, 1, 0, 1]))),  # charged, then a TypeError
        ("Fit, tree", (np.dtype("float64"), [0, 1])),  # a raw TypeError
    ],
)
def test_what_the_search_of_ten_thousand_found(name, data):
    book = dp.Ledger("sqlite://").open("book", epsilon=100.0, delta=0.1)
    operation = next(case for case in every_case() if case.name == name).make()
    with pytest.raises(ValueError, match=r"must|but|2D array"):
        book.release(operation, data)
    assert len(book.entries()) == 1


TEXT, SQUARE = np.array(["a", "b", "c", "d"]), np.ones((4, 2))
SCORES = dp.mechanisms.GeneralizedExponential(sensitivities=(1.0,) * 4, epsilon=0.1)


@pytest.mark.parametrize(
    ("operation", "data"),
    [
        (dp.mechanisms.StabilityHistogram(epsilon=0.1, delta=1e-9, width=1.0), pd.Series(["a", "b"])),
        (dp.mechanisms.StabilityHistogram(epsilon=0.1, delta=1e-9), SQUARE),
        (StableMode(epsilon=0.1, delta=1e-9), SQUARE),
        (dp.mechanisms.AboveThreshold(threshold=1.0, epsilon=0.1), TEXT),
        (dp.mechanisms.AboveThreshold(threshold=1.0, epsilon=0.1), np.array(3.0)),
        (dp.mechanisms.SparseVector(threshold=1.0, epsilon=0.1, max_positives=1), SQUARE),
        (SCORES, TEXT),
        (SCORES, SQUARE),
        (SCORES, 5),
        (dp.workloads.Query(workload=dp.workloads.Prefix(4), epsilon=0.1), None),
        (dp.workloads.Measure(strategy=dp.workloads.identity(4), epsilon=0.1), 5),
        (dp.workloads.Adaptive(workload=dp.workloads.Prefix(4), epsilon=0.1), pd.Series(["a"] * 4)),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_a_release_would_refuse_is_refused_with_nothing_charged(operation, data):
    """Each was charged, and then failed on what its type or shape told."""
    book = dp.Ledger("sqlite://").open("book", epsilon=10.0, delta=1e-3)
    with pytest.raises(ValueError, match=r"must|has shape"):
        book.release(operation, data)
    assert book.spent().epsilon == 0
