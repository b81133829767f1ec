"""Both ends of every parameter's range: the last value that is allowed, and the first that is refused, by name."""

import dataclasses
import math

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
    ProposeTestRelease,
    RandomizedResponse,
    SmoothMedian,
    SmoothSensitivity,
    SparseVector,
    StabilityHistogram,
    StableMode,
    TopK,
)

ABOVE, BUDGET, CLUSTER = (
    {"threshold": 0.0},
    {"epsilon": 1.0, "delta": 1e-6},
    {"radius": 1.0, "dimension": 1, "size": 16},
)
SELECTING = [
    (Exponential, {"epsilon": 1.0}),
    (NoisyMax, {"epsilon": 1.0}),
    (PermuteAndFlip, {"epsilon": 1.0}),
    (TopK, {"k": 1}),
    (AboveThreshold, ABOVE),
    (SparseVector, {**ABOVE, "max_positives": 1}),
]

# kind, other facts, parameter, its least value, its largest one (None: no end there)
CLOSED = [
    *((kind, given, "epsilon", 2.0**-40, 2.0**10) for kind, given in SELECTING if kind is not TopK),
    *((kind, given, "sensitivity", 2.0**-900, 2.0**900) for kind, given in SELECTING),
    *((kind, BUDGET, "epsilon", 2.0**-40, 2.0**10) for kind in (ProposeTestRelease, StableMode, StabilityHistogram)),
    (Laplace, {"scale": 1.0}, "sensitivity", 2.0**-900, 2.0**900),
    (Laplace, {"sensitivity": 1.0}, "scale", 2.0**-900, 2.0**900),
    (Gaussian, {"sigma": 1.0}, "sensitivity", 2.0**-900, 2.0**900),
    (Gaussian, {"sensitivity": 1.0}, "sigma", 2.0**-900, 2.0**900),
    (DiscreteGaussian, {"sigma": 1.0, "max_size": 2}, "sensitivity", 2.0**-900, 2.0**900),
    (DiscreteGaussian, {}, "sigma", None, 2.0**50),
    (DiscreteLaplace, {}, "scale", None, 2.0**50),
    (RandomizedResponse, {}, "epsilon", None, 100.0),
    (SmoothSensitivity, {"resolution": 1.0}, "epsilon", 1e-4, 100.0),
    (SmoothSensitivity, {"epsilon": 1.0}, "resolution", 2.0**-900, 2.0**900),
    (SmoothSensitivity, {"epsilon": 1.0, "resolution": 1.0}, "delta", 0.0, None),
    (ClusteredMean, {**CLUSTER, **BUDGET}, "radius", 2.0**-400, 2.0**400),
]
# kind, other facts, a parameter of whole numbers, its least value
WHOLE = [
    *(
        (kind, given, "max_size", 1)
        for kind, given in (
            (Laplace, {"sensitivity": 1.0, "scale": 1.0}),
            (Gaussian, {"sensitivity": 1.0, "sigma": 1.0}),
            (DiscreteLaplace, {"scale": 1.0}),
            (DiscreteGaussian, {"sigma": 1.0}),
        )
    ),
    (DiscreteLaplace, {"scale": 1.0}, "sensitivity", 1),
    (TopK, {}, "k", 1),
    (SparseVector, ABOVE, "max_positives", 1),
    (RandomizedResponse, {"epsilon": 1.0}, "categories", 2),
    (ClusteredMean, {**CLUSTER, **BUDGET}, "dimension", 1),
    (ClusteredMean, {**CLUSTER, **BUDGET}, "size", 16),
]
DELTAS = [(kind, {"epsilon": 1.0}) for kind in (ProposeTestRelease, StableMode, StabilityHistogram, DiscreteGaussian)]
DELTAS += [(Gaussian, {"sensitivity": 1.0, "epsilon": 1.0}), (ClusteredMean, {**CLUSTER, "epsilon": 1.0})]


@pytest.mark.parametrize(("kind", "given", "name", "least", "largest"), CLOSED)
def test_the_ends_of_a_range_belong_to_it_and_nothing_beyond(kind, given, name, least, largest):
    for end, beyond in ((least, -math.inf), (largest, math.inf)):
        if end is not None:
            assert getattr(kind(**{**given, name: end}), name) == end
            with pytest.raises(ValueError, match=name):
                kind(**{**given, name: math.nextafter(end, beyond)})


@pytest.mark.parametrize(("kind", "given", "name", "least"), WHOLE)
def test_whole_numbers_begin_where_they_are_said_to(kind, given, name, least):
    assert getattr(kind(**{**given, name: least}), name) == least
    with pytest.raises(ValueError, match=f"{name} is {least - 1}, but must be a whole number of at least {least}"):
        kind(**{**given, name: least - 1})


@pytest.mark.parametrize(("kind", "given"), DELTAS)
def test_a_delta_lies_strictly_between_zero_and_one(kind, given):
    assert kind(**given, delta=1e-3).event
    for bad in (0.0, 1.0):
        with pytest.raises(ValueError, match="delta"):
            kind(**given, delta=bad)


def test_bounds_are_ordered_and_far_from_the_largest_double():
    assert SmoothMedian(bounds=(-(2.0**899), 2.0**899), epsilon=1.0).bounds == (-(2.0**899), 2.0**899)
    for bad in ((0.0, 0.0), (-(2.0**901), 0.0), (0.0, 2.0**901)):
        with pytest.raises(ValueError, match="bounds"):
            SmoothMedian(bounds=bad, epsilon=1.0)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        *SELECTING,
        (ProposeTestRelease, BUDGET),
        (StableMode, BUDGET),
        (StabilityHistogram, BUDGET),
        (Laplace, {"sensitivity": 1.0, "scale": 1.0}),
        (DiscreteLaplace, {"scale": 1.0}),
        (Gaussian, {"sensitivity": 1.0, "sigma": 1.0}),
        (DiscreteGaussian, {"sigma": 1.0}),
        (RandomizedResponse, {"epsilon": 1.0}),
        (ClusteredMean, {**CLUSTER, **BUDGET}),
        (SmoothSensitivity, {"epsilon": 1.0, "resolution": 1.0}),
        (SmoothMedian, {"epsilon": 1.0, "bounds": (0.0, 1.0)}),
    ],
)
def test_every_mechanism_is_a_value_that_is_made_by_names(kind, given):
    mechanism = kind(**given)
    assert mechanism == kind(**given)
    assert hash(mechanism) == hash(kind(**given))
    assert not hasattr(mechanism, "__dict__")
    with pytest.raises(TypeError, match="positional"):
        kind(*given.values())
    for name in given:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(mechanism, name, given[name])
