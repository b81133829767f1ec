"""The operations of ``discreet.mechanisms``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet import mechanisms as m
from tests.operations.contract import Case, Worst

SCORES, CLOSE = [3.0, 9.0, 4.0, 0.0], [3.0, 9.5, 3.0, 1.0]
POINTS = np.random.default_rng(0).uniform(-0.3, 0.3, (64, 2))
MOVED = np.concatenate([[[1e9, -1e9]], POINTS[1:]])
WORDS = ["a"] * 60 + ["b"] * 9 + ["c"]
PTR = {"epsilon": 1.0, "delta": 1e-6, "distance": lambda x: 50 + sum(1 for _ in x), "base": lambda _: "safe"}

VALUES = [
    Case("Laplace", lambda: m.Laplace(sensitivity=1.0, epsilon=0.5), [3.0, 4.0], [3.5, 3.5], sized=True),
    Case(
        "Gaussian",
        lambda: m.Gaussian(sensitivity=1.0, epsilon=1.0, delta=1e-5),
        [3.0, 4.0],
        [3.5, 3.5],
        sized=True,
        worst=Worst([0.0, 0.0], [0.6, 0.8]),
    ),
    Case("DiscreteLaplace", lambda: m.DiscreteLaplace(epsilon=0.5), [3, 4], [3, 5], sized=True),
    Case("DiscreteGaussian", lambda: m.DiscreteGaussian(rho=0.5, max_size=2), [3, 4], [3, 5], sized=True),
    Case("DiscreteGaussian, one integer", lambda: m.DiscreteGaussian(sigma=2.0), [3], [4], sized=True),
    Case("Tulap", lambda: m.Tulap(epsilon=1.0), [3], [4], sized=True),
    Case("Tulap, delta", lambda: m.Tulap(epsilon=1.0, delta=0.01), [3], [4], sized=True),
    Case("Exponential", lambda: m.Exponential(sensitivity=1.0, epsilon=1.0), SCORES, CLOSE, sized=True),
    Case(
        "Exponential, base measure",
        lambda: m.Exponential(epsilon=1.0, base_measure=(1, 2, 3, 4)),
        SCORES,
        CLOSE,
        sized=True,
    ),
    Case(
        "GeneralizedExponential",
        lambda: m.GeneralizedExponential(sensitivities=(1.0, 0.5, 2.0, 1.0), epsilon=1.0),
        SCORES,
        CLOSE,
        sized=True,
        worst=Worst([0.0, 0.0, 0.0, 0.0], [1.0, -0.5, -2.0, -1.0]),
    ),
    Case("PermuteAndFlip", lambda: m.PermuteAndFlip(sensitivity=1.0, epsilon=1.0), SCORES, CLOSE, sized=True),
    Case("NoisyMax", lambda: m.NoisyMax(sensitivity=1.0, epsilon=1.0), SCORES, CLOSE, sized=True),
    Case("TopK", lambda: m.TopK(k=2, sensitivity=1.0, epsilon=1.0), SCORES, CLOSE, sized=True),
    Case(
        "AboveThreshold",
        lambda: m.AboveThreshold(threshold=8.0),
        SCORES,
        CLOSE,
        worst=Worst([8.0, 8.0, 8.0], [7.0, 7.0, 9.0]),
    ),
    Case(
        "SparseVector",
        lambda: m.SparseVector(threshold=3.5, max_positives=2),
        SCORES,
        CLOSE,
        worst=Worst([3.5, 3.5, 3.5], [2.5, 2.5, 4.5]),
    ),
    Case(
        "SmoothSensitivity",
        lambda: m.SmoothSensitivity(epsilon=1.0, resolution=1e-9),
        (3.0, 0.5),
        (3.2, 0.6),
        sized=True,
        worst=Worst((3.0, 0.5), (3.5, 0.5)),
    ),
    Case("of a household", lambda: m.Laplace(sensitivity=1.0, epsilon=0.5, unit="household"), [3.0], [4.0], sized=True),
]

RECORDS = [
    Case("RandomizedResponse", lambda: m.RandomizedResponse(epsilon=1.0, categories=3), [0, 1, 2, 1], [0, 1, 1, 1]),
    Case(
        "SmoothMedian",
        lambda: m.SmoothMedian(bounds=(0.0, 10.0), epsilon=1.0),
        [1.0, 4.0, 5.0, 9.0],
        [1.0, 4.0, 5.0, 0.0],
        worst=Worst(reach=0.98),
    ),
    Case(
        "ProposeTestRelease",
        lambda: m.ProposeTestRelease(**PTR),
        [1] * 9,
        [1] * 8,
        worst=Worst([1] * 15, [1] * 14, lambda: m.ProposeTestRelease(**PTR | {"distance": len})),
        calls=True,
    ),
    Case(
        "StableMode",
        lambda: m.StableMode(epsilon=1.0, delta=1e-6),
        WORDS,
        WORDS[1:],
        worst=Worst(["a"] * 16, ["a"] * 15),
    ),
    Case("StabilityHistogram", lambda: m.StabilityHistogram(epsilon=1.0, delta=1e-6), WORDS, WORDS[:-1]),
    Case(
        "StabilityHistogram, bins",
        lambda: m.StabilityHistogram(epsilon=1.0, delta=1e-6, width=0.5),
        [0.1] * 50,
        [0.1] * 49 + [7.0, 0.1],
    ),
    Case(
        "ClusteredMean",
        lambda: m.ClusteredMean(radius=1.0, dimension=2, size=64, epsilon=4.0, delta=1e-3),
        POINTS,
        MOVED,
        sized=True,
        worst=Worst(trials=400),
    ),
]

OPERATIONS = [*(replace(case, holds="values") for case in VALUES), *RECORDS]
