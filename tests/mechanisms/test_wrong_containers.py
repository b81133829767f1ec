"""What is publicly wrong about a container is found before a book is charged."""

from __future__ import annotations

import collections
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.mechanisms import (
    AboveThreshold,
    ClusteredMean,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    NoisyMax,
    PermuteAndFlip,
    RandomizedResponse,
    SmoothMedian,
    SmoothSensitivity,
    SparseVector,
    StabilityHistogram,
    StableMode,
    TopK,
)
from discreet.release import Enforced, charged
from discreet.statistics import Count
from discreet.workloads import Identity, optimise
from discreet.workloads.measurement import Measure

RECORDS = [
    SmoothMedian(bounds=(0.0, 1.0), epsilon=1.0),
    StableMode(epsilon=1.0, delta=1e-6),
    StabilityHistogram(epsilon=1.0, delta=1e-6),
    AboveThreshold(threshold=1.0, sensitivity=1.0, epsilon=1.0),
    SparseVector(threshold=1.0, sensitivity=1.0, epsilon=1.0, max_positives=1),
    ClusteredMean(radius=1.0, dimension=2, size=16, epsilon=1.0, delta=1e-6),
    RandomizedResponse(epsilon=1.0),
]
SELECTIONS = [
    Exponential(sensitivity=1.0, epsilon=1.0),
    Exponential(sensitivity=1.0, epsilon=1.0, base_measure=(1.0, 2.0)),
    NoisyMax(sensitivity=1.0, epsilon=1.0),
    PermuteAndFlip(sensitivity=1.0, epsilon=1.0),
    TopK(k=2, sensitivity=1.0, epsilon=1.0),
]
REAL = [Laplace(sensitivity=1.0, epsilon=1.0, max_size=4), Gaussian(sensitivity=1.0, sigma=1.0, max_size=4)]
WHOLE = [DiscreteLaplace(epsilon=1.0, max_size=4), DiscreteGaussian(sigma=2.0, max_size=4)]
SMOOTH = SmoothSensitivity(epsilon=1.0, resolution=1e-9)

NO_LISTS = [None, "text", b"bytes", {"a": 1}, {1, 2}, object(), (x for x in (1.0, 2.0))]
NO_NUMBERS = [
    *NO_LISTS,
    1j,
    np.datetime64("2020-01-01"),
    np.timedelta64(1),
    np.array(["1", "2"]),
    np.array([1j, 2j]),
    np.array([1, 2], "timedelta64[s]"),
    np.array([1, 2], np.longdouble),
    np.array("a"),
    pd.DataFrame({"a": [1.0, 2.0]}),
    pl.DataFrame({"a": [1.0, 2.0]}),
    pa.table({"a": [1.0, 2.0]}),
    pl.Series(["a", "b"]),
    pa.array(["a", "b"]),
    [[1.0], [1.0, 2.0]],
    [1.0, [2.0]],
    [np.zeros(2), np.zeros(3)],
]
name = lambda value: type(value).__name__  # noqa: E731


class Book:
    def charge(self, event, label="", *, unit="one record", reproducible=False):
        raise AssertionError("charged")


def refused(mechanism, wrong, match):
    with pytest.raises(ValueError, match=match):
        charged(mechanism, wrong, book=Book())


@pytest.mark.parametrize("wrong", [5, *NO_LISTS[:-1]], ids=name)
@pytest.mark.parametrize("mechanism", RECORDS, ids=name)
def test_a_wrong_container_of_records_is_not_charged_for(mechanism, wrong):
    refused(mechanism, wrong, "must be a sequence|must list one record")


@pytest.mark.parametrize("mechanism", [*SELECTIONS, *REAL, *WHOLE, SMOOTH], ids=name)
def test_what_holds_no_numbers_is_not_charged_for(mechanism):
    """Texts, mappings, frames, iterators, ragged lists, and arrays of what is no number or a longer one."""
    for wrong in NO_NUMBERS:
        refused(mechanism, wrong, "must be .*number|must hold|rectangular|named columns|must be a sequence")


@pytest.mark.parametrize("mechanism", SELECTIONS, ids=name)
@pytest.mark.parametrize("wrong", [5.0, [], np.zeros((2, 2)), [[1.0, 2.0]], np.array(3.0)], ids=str)
def test_scores_that_are_no_line_are_not_charged_for(mechanism, wrong):
    refused(mechanism, wrong, "one-dimensional with at least one entry")


def test_too_few_scores_are_not_charged_for():
    refused(SELECTIONS[1], [1.0, 2.0, 3.0], "3 entries, but base_measure has 2")
    refused(SELECTIONS[4], [1.0], "1 entries, but at least k=2")


@pytest.mark.parametrize("mechanism", [*REAL, *WHOLE], ids=name)
@pytest.mark.parametrize("wrong", [np.zeros((1, 5), np.int64), [[0] * 3] * 2, range(5)], ids=name)
def test_more_entries_than_were_declared_are_not_charged_for(mechanism, wrong):
    refused(mechanism, wrong, "entries, but at most max_size=4")


@pytest.mark.parametrize("mechanism", WHOLE, ids=name)
@pytest.mark.parametrize(
    "wrong",
    [
        1.0,
        Fraction(1, 2),
        np.float32(1),
        np.zeros(2),
        pl.Series([0.5]),
        pa.array([0.5]),
        pd.Series([0.5], dtype="Float64"),
    ],
    ids=name,
)
def test_what_is_publicly_not_whole_is_not_charged_for_by_integer_noise(mechanism, wrong):
    refused(mechanism, wrong, "whole numbers")


@pytest.mark.parametrize(
    "wrong", [5.0, (1.0,), (1.0, 2.0, 3.0), (np.zeros(1), 2.0), ["12", "3"][:1], np.zeros(3)], ids=str
)
def test_what_is_no_pair_of_numbers_is_not_charged_for(wrong):
    refused(SMOOTH, wrong, "number|rectangular")


def test_points_of_another_number_or_dimension_are_not_charged_for():
    refused(RECORDS[5], np.zeros((16, 3)), "shape")
    refused(RECORDS[5], np.zeros((15, 2)), "shape")
    refused(RECORDS[5], [(0.0, 0.0)] * 17, "shape")
    refused(RECORDS[5], np.full((16, 2), "a"), "dtype")


def test_a_median_of_a_table_and_reports_of_floats_are_not_charged_for():
    refused(RECORDS[0], np.zeros((2, 2)), "dimensions")
    refused(RECORDS[6], np.zeros(2), "whole numbers")


@pytest.mark.parametrize("mechanism", [*SELECTIONS, REAL[0]], ids=name)
@pytest.mark.parametrize(
    "kind", [list, tuple, np.array, collections.deque, pd.Series, pl.Series, pa.array], ids=lambda kind: kind.__name__
)
def test_whatever_lists_numbers_is_answered(mechanism, kind):
    assert charged(mechanism, kind([1.0, 2.0]), rng=1).reproducible


def test_integer_noise_answers_every_kind_of_whole_number():
    for value in (3, True, np.int8(3), np.bool_(True), np.array(3), 2**70):
        assert type(charged(WHOLE[0], value, rng=1).value) is int
    for values in ([1, 2], np.array([1, 2], np.uint64), [[1], [2]], pl.Series([1, 2])):
        assert charged(WHOLE[0], values, rng=1).value.dtype == np.int64


def test_real_noise_answers_every_kind_of_number():
    for value in (3, 0.5, Fraction(1, 3), np.float32(1), np.array(2.5), np.longdouble(1)):
        assert isinstance(charged(REAL[0], value, rng=1).value, float)
    for values in ([], [[0.5, 1], [2, 3]], np.zeros((2, 2), np.float16), [np.zeros(2), np.zeros(2)]):
        assert charged(REAL[0], values, rng=1).value.shape == np.shape(values)


@pytest.mark.parametrize("mechanism", [*RECORDS, *SELECTIONS, *REAL, *WHOLE, SMOOTH], ids=name)
def test_a_callers_unit_is_the_callers_word(mechanism):
    """Only code that bounds a unit's contribution can say that it did."""

    class Forged(Enforced):
        def __str__(self):
            return self

    for unit in (Enforced("patient"), Forged("patient")):
        said = replace(mechanism, unit=unit)
        assert said.unit == "patient"
        assert type(said.unit) is str


def test_a_statistics_and_a_measurements_unit_is_the_callers_word():
    assert type(Count(epsilon=1.0, unit=Enforced("patient")).unit) is str
    assert type(Measure(strategy=optimise(Identity(3)), epsilon=1.0, unit=Enforced("patient")).unit) is str
