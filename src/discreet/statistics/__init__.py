"""Statistics of arrays. Each knows its cost and its error before it reads data.

Every statistic comes twice: as a function that charges a book (if given) and answers, and as a frozen operation with
``event``, ``error`` and ``release``. Bounds, bins and categories are public and must be declared. A budget is
``epsilon=`` alone (pure DP), ``epsilon=`` with ``delta=``, or ``rho=``.

>>> operation = Mean(bounds=(0, 200_000), epsilon=1.0)
>>> round(operation.error(n=10_000), 1)
59.9
>>> answer = mean([20_000, 30_000, 40_000], bounds=(0, 200_000), epsilon=1.0)
>>> answer.event == operation.event
True
"""

from __future__ import annotations

from discreet.statistics.counting import Count, count
from discreet.statistics.covariances import Covariance, covariance
from discreet.statistics.histograms import Cdf, Histogram, cdf, histogram
from discreet.statistics.means import Mean, binary_mean, mean
from discreet.statistics.optimal_clipping_threshold import BoundedVarianceMean, bounded_variance_mean
from discreet.statistics.order import Quantile, Quantiles, median, quantile, quantiles
from discreet.statistics.private_bounds import Bounds, bounds
from discreet.statistics.running import RunningCount, RunningSum, running_count, running_sum
from discreet.statistics.selection import Mode, TopK, mode, top_k
from discreet.statistics.summing import Sum
from discreet.statistics.summing import sum_ as sum
from discreet.statistics.variances import Variance, variance
from discreet.statistics.vectors import VectorMean, vector_mean

__all__ = [
    "BoundedVarianceMean",
    "Bounds",
    "Cdf",
    "Count",
    "Covariance",
    "Histogram",
    "Mean",
    "Mode",
    "Quantile",
    "Quantiles",
    "RunningCount",
    "RunningSum",
    "Sum",
    "TopK",
    "Variance",
    "VectorMean",
    "binary_mean",
    "bounded_variance_mean",
    "bounds",
    "cdf",
    "count",
    "covariance",
    "histogram",
    "mean",
    "median",
    "mode",
    "quantile",
    "quantiles",
    "running_count",
    "running_sum",
    "sum",
    "top_k",
    "variance",
    "vector_mean",
]
