"""One odd record raises nothing, warns of nothing, changes how no other record is read,
and decides no key that is shown.
"""

from __future__ import annotations

import enum
import math
import uuid
import warnings
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.mechanisms import (
    ClusteredMean,
    DiscreteLaplace,
    Exponential,
    Laplace,
    NoisyMax,
    PermuteAndFlip,
    ProposeTestRelease,
    RandomizedResponse,
    SmoothMedian,
    StabilityHistogram,
    StableMode,
    TopK,
)
from discreet.mechanisms.canonical import UNKNOWN, canonical, keys
from discreet.mechanisms.records import column
from discreet.random import seeded
from discreet.random.tap import listening

brief = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


class Evil:
    """An object that fails at whatever is done with it, and says so in private words."""

    def __float__(self):
        raise RuntimeError("a private word")

    __hash__ = __iter__ = __eq__ = __repr__ = __index__ = __getattr__ = __float__


class Same:
    """Equal to everything, with the hash of 1."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash(1)


class Liar:
    """Says that it is a whole number."""

    @property
    def __class__(self):
        return int


class Text(str):
    """Equal to no text but a secret."""

    __slots__ = ()

    def __eq__(self, other):
        return other == "secret"

    def __hash__(self):
        return hash("secret")


class Colour(enum.Enum):
    RED = 1


class Zone(tzinfo):
    """A zone that fails."""

    def utcoffset(self, when):
        raise RuntimeError("a private word")


deep = ()
for _ in range(50_000):
    deep = (deep,)

# Records that are the same number, moment or text to Python, and are shown in one form.
CLASSES = {
    "zero": [0, 0.0, -0.0, False, np.float32(-0.0), Decimal("-0.00"), Fraction(0), complex(-0.0, -0.0), np.int8(0)],
    "one": [
        1,
        True,
        1.0,
        np.int64(1),
        np.bool_(True),
        Decimal("1.00"),
        Decimal("0.1E1"),
        Fraction(1),
        1 + 0j,
        np.uint8(1),
        np.float16(1),
        np.longdouble(1),
        np.complex64(1),
    ],
    "a half": [0.5, Decimal("0.50"), Fraction(1, 2), np.float32(0.5), np.complex128(0.5)],
    "a tenth": [Decimal("0.1"), Decimal("0.10"), Decimal("1E-1"), Fraction(1, 10)],
    "a third": [Fraction(1, 3), Fraction(2, 6)],
    "ten thousand": [10**4, Decimal("1E+4"), 1e4, Decimal("10000.000")],
    "a double beyond 2^128": [1e300, int(1e300), Decimal(int(1e300)), Fraction(1e300)],
    "nan": [
        math.nan,
        np.float64("nan"),
        Decimal("NaN"),
        Decimal("sNaN"),
        -math.nan,
        np.datetime64("NaT"),
        complex(math.nan),
    ],
    "infinity": [math.inf, Decimal("Infinity"), np.float32("inf"), np.longdouble("inf")],
    "minus infinity": [-math.inf, Decimal("-Infinity"), np.float32("-inf"), np.longdouble("-inf")],
    "imaginary": [1j, complex(-0.0, 1), np.complex64(1j)],
    "text": ["secret", np.str_("secret"), Text("secret")],
    "bytes": [b"x", bytearray(b"x"), np.bytes_(b"x")],
    "a moment": [
        datetime(2020, 1, 1, 11, tzinfo=UTC),
        datetime(2020, 1, 1, 12, tzinfo=ZoneInfo("Africa/Lagos")),
        datetime(2020, 1, 1, 6, tzinfo=timezone(timedelta(hours=-5), "odd")),
    ],
    "a moment without a zone": [
        datetime(2020, 1, 1),
        datetime(2020, 1, 1, fold=1),
        np.datetime64("2020-01-01", "D"),
        np.datetime64("2020-01-01T00:00:00", "ns"),
        np.datetime64("2020", "Y"),
    ],
    "a time": [time(1, tzinfo=UTC), time(2, tzinfo=timezone(timedelta(hours=1)))],
    "a span": [timedelta(hours=1), np.timedelta64(1, "h"), np.timedelta64(3_600_000, "ms")],
    "a pair": [(1, 0.0), (True, -0.0), (Decimal("1.0"), 0), (np.int8(1), np.float64(-0.0))],
    "nested": [((1,), "a"), ((True,), np.str_("a")), ((1.0,), Text("a"))],
    "a set": [frozenset([0, 8]), frozenset([8, 0]), frozenset([8.0, False]), frozenset([Fraction(0), np.int8(8)])],
}
PLAIN = [
    "a",
    "",
    "1",
    "nan",
    2,
    -7,
    2.5,
    date(2020, 1, 1),
    uuid.UUID(int=7),
    Colour.RED,
    None,
    (),
    10**100,
    1 - 2.0**-53,
]
STRANGE = [
    Evil(),
    Same(),
    Liar(),
    object(),
    [1],
    {},
    {1: 2},
    set(),
    np.array(1),
    np.array([1.0]),
    np.array([[1, 2], [3, 4]]),
    int,
    2**3000,
    10**5000,
    Decimal("1E+999999"),
    (1, [2]),
    deep,
    datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
    datetime(2020, 1, 1, tzinfo=Zone()),
    memoryview(b"x"),
    np.void(b"abc"),
    slice(1),
]
ODD = [x for members in CLASSES.values() for x in members] + PLAIN + STRANGE
NAMES = [f"{type(x).__name__}-{i}" for i, x in enumerate(ODD)]


# --- forms ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSES)
def test_equal_records_have_one_form_to_the_last_character(name):
    forms = {(type(form), repr(form)) for form in map(canonical, CLASSES[name])}
    assert len(forms) == 1
    assert UNKNOWN not in map(canonical, CLASSES[name])


def test_forms_that_are_equal_cannot_be_told_apart():
    forms = [form for form in map(canonical, ODD) if form is not UNKNOWN]
    for a in forms:
        for b in forms:
            if a == b:
                assert (type(a), repr(a)) == (type(b), repr(b))
    assert all(canonical(form) == form for form in forms)


@brief
@given(st.one_of(st.integers(), st.floats(), st.fractions(), st.decimals(), st.booleans(), st.complex_numbers()))
def test_the_form_of_a_number_is_that_number(x):
    form = canonical(x)
    if x.is_nan() if isinstance(x, Decimal) else x != x:
        assert form == "nan"
    elif form is not UNKNOWN:  # a fraction of very many digits
        assert form == x
        assert hash(form) == hash(x)
    assert not (isinstance(form, float) and (form == 0 or (form.is_integer() and abs(form) < 2**128)))


@pytest.mark.parametrize("x", STRANGE, ids=lambda x: type(x).__name__)
def test_what_has_no_form_has_none(x):
    assert canonical(x) is UNKNOWN
    assert keys([1, x, 2]) == [1, 2]


def test_an_arrays_keys_have_its_type():
    assert [type(x) for x in keys(np.array([True]))] == [bool]
    assert repr(keys(np.array([-0.0, 1, np.nan], np.float32))) == "[0.0, 1.0, 'nan']"
    assert keys(np.array(["2020-01-01"], "M8[ns]")) == [datetime(2020, 1, 1)]
    assert keys(np.array([(1, 2.0)], "i4,f8")) == [(1, 2)]
    for bad in ("aab", b"aab", {"a": 1}, np.zeros((2, 2)), np.array(1)):
        with pytest.raises(ValueError, match="values"):
            keys(bad)


# --- mechanisms ----------------------------------------------------------------------------------------------------


class Watch:
    """Keeps what a mechanism is about to noise."""

    def __init__(self):
        self.values = []

    def draw_output(self, what, value, norm, limit, draw, event, once):
        self.values.append(value)
        return draw()


MODE = {"epsilon": 1.0, "delta": 1e-3}
RECORDS = {
    "stable mode": (StableMode(**MODE), [0.0] * 30 + ["a"] * 3),
    "stability histogram": (StabilityHistogram(**MODE), [0.0] * 30 + [1] * 30 + ["a"] * 30),
    "stability histogram, replace": (StabilityHistogram(**MODE, adjacency="replace"), [True] * 50 + [(1, 0.0)] * 50),
    "bins": (StabilityHistogram(**MODE, width=0.5), [0.2] * 30 + [2**60 + 1] * 30),
    "median": (SmoothMedian(bounds=(-3.0, 9.0), epsilon=1.0), [0.5, 2**60 + 1, 2.5, -1.0, 3.0]),
    "median, delta": (SmoothMedian(bounds=(-3.0, 9.0), epsilon=1.0, delta=1e-3), [0.5, 1.5, 2.5]),
    "randomized response": (RandomizedResponse(epsilon=1.0, categories=3), [0, 1, 2, 2**60 + 1, 1]),
}
POINTS = [(0.1 * i % 0.7, 2**53 + 2.0) for i in range(40)]


def seen(mechanism, records):
    """What meets noise, and what comes out, with every warning an error."""
    watch = Watch()
    with warnings.catch_warnings(), listening(watch):
        warnings.simplefilter("error")
        out = mechanism.release(records, rng=seeded(1)).value
    return watch.values, out


@pytest.mark.parametrize("odd", ODD, ids=NAMES)
@pytest.mark.parametrize("name", RECORDS)
def test_one_odd_record_raises_nothing_and_decides_nothing(name, odd):
    """In any place: the answer has the keys and types that it has without the record,
    and repeats whatever its order.
    """
    mechanism, records = RECORDS[name]
    (*_, first), out = seen(mechanism, [odd, *records])
    (*_, last), other = seen(mechanism, [*records, odd])
    if isinstance(out, dict):
        assert repr(sorted(first.items(), key=repr)) == repr(sorted(last.items(), key=repr))
        without = seen(mechanism, records)[0][0]
        assert sum(first.values()) - sum(without.values()) in (0, 1)
        assert {repr(key) for key in without} <= {repr(key) for key in first}
        assert {repr(key) for key in out} == {repr(key) for key in other}
    elif name == "stable mode":
        assert repr(out) == repr(other) == "0"
    elif name == "randomized response":
        assert first.tolist()[1:] == last.tolist()[:-1] == [0, 1, 2, -1, 1]
    else:
        assert first == last


@pytest.mark.parametrize("kind", [StableMode, StabilityHistogram])
@pytest.mark.parametrize("name", CLASSES)
def test_what_is_shown_does_not_depend_on_which_record_came_first(kind, name):
    """Every rotation of a class of equal records shows the same, to the last character."""
    members = CLASSES[name]
    shown = {repr(seen(kind(**MODE), [*members[i:], *members[:i]] * 40)[1]) for i in range(len(members))}
    assert len(shown) == 1
    assert shown.isdisjoint({"None", "{}"})


@pytest.mark.parametrize(
    "odd",
    [*ODD, (1.0,), (1.0, 2.0, 3.0), ("a", 1.0), (None, math.inf), (Evil(), 1.0), "ab"],
    ids=lambda x: type(x).__name__,
)
def test_an_odd_point_is_an_outlier(odd):
    """Of a clustered mean: every other point is read as if it were not there."""
    mechanism = ClusteredMean(radius=1.0, dimension=2, size=40, epsilon=20.0, delta=1e-3)
    values, out = seen(mechanism, [*POINTS[:-1], odd])
    plain, expected = seen(mechanism, [*POINTS[:-1], (math.nan, math.nan)])
    assert repr(values) == repr(plain)
    assert (out == expected).all()


def test_errors_tell_nothing_of_records():
    """What is publicly wrong is refused in sentences that hold no record."""
    secret = "a private word"
    cases = [
        (StableMode(**MODE), secret),
        (StabilityHistogram(**MODE, width=1.0), np.array([secret])),
        (SmoothMedian(bounds=(0.0, 1.0), epsilon=1.0), np.array([secret, "b"])),
        (SmoothMedian(bounds=(0.0, 1.0), epsilon=1.0), secret),
        (ClusteredMean(radius=1.0, dimension=1, size=16, **MODE), np.array([[secret]] * 16)),
        (ClusteredMean(radius=1.0, dimension=1, size=16, **MODE), [secret] * 15),
        (RandomizedResponse(epsilon=1.0), np.array([secret])),
    ]
    cases += [
        (mechanism, scores)
        for mechanism in (Exponential(), NoisyMax(), PermuteAndFlip(), TopK(k=1), Laplace(sensitivity=1.0, epsilon=1.0))
        for scores in (np.array([secret]), [[1.0], [secret, 2]])
    ]
    for mechanism, records in cases:
        with pytest.raises(ValueError, match=r"\.$") as error:
            mechanism.release(records)
        assert secret not in str(error.value)


def test_a_distance_that_is_no_number_is_none_and_one_that_fails_is_told_in_one_sentence():
    test = ProposeTestRelease(**MODE, distance=lambda given: given, base=lambda _: 1)
    for bad in ("a private word", [1], np.array([1, 2]), 1j, None, math.nan, -math.inf, Evil()):
        assert test.release(bad, rng=1).value is None
    assert test.release(math.inf, rng=1).value == 1
    failing = ProposeTestRelease(**MODE, distance=float, base=lambda _: 1)
    with pytest.raises(ValueError, match="distance failed on the data, but must give a number of at least 0") as caught:
        failing.release("a private word")
    assert "private" not in str(caught.value)


# --- one entry does not round another ------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", [0, 0.0, 0.5, np.float32(0), Fraction(1, 3), Decimal("0.1"), True, np.int8(1), -1])
def test_an_entry_does_not_change_how_another_is_read(entry):
    """2^60 + 1 is no double; beside 0.5 NumPy would make it one, and 2^63 beside -1."""
    for large in (2**60 + 1, 2**63, 2**64 + 1):
        for mechanism in (Laplace(sensitivity=1.0, epsilon=1.0), Exponential(), TopK(k=1)):
            (value, *_), _ = seen(mechanism, [large, entry])
            step = mechanism._grid.step
            placed = Fraction(value.tolist()[0]) * (1 if isinstance(mechanism, Laplace) else step)
            assert abs(placed - large) <= step
        if isinstance(entry, (int, np.integer)):
            (value,), _ = seen(DiscreteLaplace(epsilon=1.0), [2**60 + 1, entry])
            assert value.tolist()[0] == 2**60 + 1


def test_the_median_reads_every_record_by_itself():
    """A text among numbers turned all of them into text; one huge whole number turned all into objects."""
    mechanism = SmoothMedian(bounds=(0.0, 8.0), epsilon=1.0)
    plain = mechanism.smooth_bound([1.0, 2.0, 3.0, 0.0])
    for odd in ("4.0", None, math.nan, 1j, [1], -(10**400)):
        assert mechanism.smooth_bound([1.0, 2.0, 3.0, odd]) == plain
    assert Counter(keys([math.nan, "nan"])) == {"nan": 2}


def test_an_arrow_column_is_read_like_the_list_of_its_values():
    """Its entries are Arrow's own scalars: taken as they are, none had a form, and the answer was silently empty."""
    words = ["a"] * 60 + ["b"]
    for arrow in (pa.array(words), pa.chunked_array([words])):
        assert StableMode(epsilon=1.0, delta=1e-6).release(arrow, rng=1).value == "a"
        assert list(StabilityHistogram(epsilon=1.0, delta=1e-6).release(arrow, rng=1).value) == ["a"]


@pytest.mark.parametrize(
    "make",
    [np.array, pl.Series, pd.Series, pa.array, lambda x: pd.Series(x).convert_dtypes()],
    ids=["numpy", "polars", "pandas", "arrow", "pandas' own"],
)
def test_a_container_says_whether_it_holds_numbers(make):
    """By its type alone: numbers and truth values are read, text is refused."""
    for numbers in ([1, 2], [0.5, 1.5], [True, False]):
        assert column(make(numbers)).tolist() == numbers
    with pytest.raises(ValueError, match="must hold numbers: integers or floats"):
        column(make(["1", "2"]) if make is not pd.Series else pd.Series(["1", "2"], dtype="string"))


@pytest.mark.parametrize(
    "operation", [StabilityHistogram(epsilon=1.0, delta=1e-6), StableMode(epsilon=1.0, delta=1e-6)]
)
@pytest.mark.parametrize(
    "make", [list, lambda entries: pd.Series(entries, dtype=object), lambda e: np.array(e, object)]
)
def test_a_signalling_nan_among_the_others_fails_no_release(operation, make):
    """pandas' isna() raises at such a record: what is missing is asked of each entry by itself."""
    plain, odd = (operation.release(make(["a"] * 60 + more), rng=1).value for more in ([], [Decimal("sNaN")]))
    assert plain == odd
