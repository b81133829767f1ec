"""Mechanisms: small frozen values that state their cost and error before they see data.

Each has ``event``, ``error(confidence)`` and ``release(value, rng=None)``.

>>> mechanism = Laplace(sensitivity=1.0, epsilon=0.5)
>>> answer = mechanism.release(42.0)
>>> answer.event == mechanism.event, answer.reproducible
(True, False)
"""

from __future__ import annotations

from discreet.mechanisms.budget import Budget
from discreet.mechanisms.clustered_mean import ClusteredMean
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace, Geometric
from discreet.mechanisms.exponential import Exponential
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.generalized_exponential import GeneralizedExponential
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.noisy_max import NoisyMax
from discreet.mechanisms.permute_and_flip import PermuteAndFlip
from discreet.mechanisms.propose_test_release import ProposeTestRelease
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.mechanisms.smooth_sensitivity import SmoothMedian, SmoothSensitivity
from discreet.mechanisms.sparse_vector import AboveThreshold, SparseVector
from discreet.mechanisms.stability_histogram import StabilityHistogram
from discreet.mechanisms.stable_mode import StableMode
from discreet.mechanisms.top_k import TopK
from discreet.mechanisms.tulap import Tulap

__all__ = [
    "AboveThreshold",
    "Budget",
    "ClusteredMean",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "GeneralizedExponential",
    "Geometric",
    "Laplace",
    "NoisyMax",
    "PermuteAndFlip",
    "ProposeTestRelease",
    "RandomizedResponse",
    "SmoothMedian",
    "SmoothSensitivity",
    "SparseVector",
    "StabilityHistogram",
    "StableMode",
    "TopK",
    "Tulap",
]
