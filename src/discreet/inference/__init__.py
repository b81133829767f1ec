"""Tests, intervals, survival and effects: what a statistician publishes, with the privacy noise in every p-value.

Every test is an operation: its event before data, one charge, and an answer of which all is post-processing of noisy
totals. ``power``, ``sample_size`` and ``epsilon_needed`` say from public facts what it could show.

>>> test = Welch(bounds=(0, 30), epsilon=1.0)
>>> round(power(test, n=2000, effect=2.0, sd=8.0), 1)
1.0
>>> answer = welch([9.0, 8.0] * 300, [7.0, 6.0] * 300, bounds=(0, 30), epsilon=1.0)
>>> answer.event == test.event
True
"""

from __future__ import annotations

from discreet.inference.anova import Anova, anova
from discreet.inference.any_test import TestOfTests
from discreet.inference.cells import difference, ratio
from discreet.inference.chi_squared import GoodnessOfFit, Independence, goodness_of_fit, independence
from discreet.inference.coefficients import contrast, joint
from discreet.inference.columns import Samples
from discreet.inference.comparison import ColumnComparison, compare
from discreet.inference.correlation import Correlation, correlation
from discreet.inference.effects import AverageEffect, average_effect
from discreet.inference.figures import forest_plot, power_curve, survival_plot
from discreet.inference.hypothesis import HypothesisTest, ReleasedTest
from discreet.inference.log_rank import LogRank, log_rank
from discreet.inference.means import OneSample, Paired, Welch, one_sample, paired, welch
from discreet.inference.planning import epsilon_needed, power, sample_size
from discreet.inference.poisson import PoissonRegression, poisson_regression
from discreet.inference.proportional_hazards import HazardCoefficients, ProportionalHazards, proportional_hazards
from discreet.inference.proportions import Proportion, proportion
from discreet.inference.quantiles import QuantileTest, quantile_interval
from discreet.inference.ranks import KolmogorovSmirnov, MannWhitney, kolmogorov_smirnov, mann_whitney
from discreet.inference.several import AlphaSpending, Look, adjust
from discreet.inference.survival import KaplanMeier, SurvivalCurve, kaplan_meier
from discreet.inference.two_proportions import TwoProportions, two_proportions

__all__ = [
    "AlphaSpending",
    "Anova",
    "AverageEffect",
    "ColumnComparison",
    "Correlation",
    "GoodnessOfFit",
    "HazardCoefficients",
    "HypothesisTest",
    "Independence",
    "KaplanMeier",
    "KolmogorovSmirnov",
    "LogRank",
    "Look",
    "MannWhitney",
    "OneSample",
    "Paired",
    "PoissonRegression",
    "Proportion",
    "ProportionalHazards",
    "QuantileTest",
    "ReleasedTest",
    "Samples",
    "SurvivalCurve",
    "TestOfTests",
    "TwoProportions",
    "Welch",
    "adjust",
    "anova",
    "average_effect",
    "compare",
    "contrast",
    "correlation",
    "difference",
    "epsilon_needed",
    "forest_plot",
    "goodness_of_fit",
    "independence",
    "joint",
    "kaplan_meier",
    "kolmogorov_smirnov",
    "log_rank",
    "mann_whitney",
    "one_sample",
    "paired",
    "poisson_regression",
    "power",
    "power_curve",
    "proportion",
    "proportional_hazards",
    "quantile_interval",
    "ratio",
    "sample_size",
    "survival_plot",
    "two_proportions",
    "welch",
]
