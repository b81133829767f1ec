"""Private linear models in scikit-learn's manner.

Estimators state their ``privacy_event()`` before ``fit``, take a ``book=`` to charge, and read nothing off the data:
norms, bounds, classes and target bounds are declared. ``losses`` has the losses and their constants, ``solvers`` one
method a file and the table of what is proved for what.
"""

from __future__ import annotations

from discreet.linear.classifiers import LinearClassifier, LinearSVC, LogisticRegression
from discreet.linear.losses import CustomLoss
from discreet.linear.regressors import ElasticNet, Lasso, LinearRegression, LinearRegressor, Ridge

__all__ = [
    "CustomLoss",
    "ElasticNet",
    "Lasso",
    "LinearClassifier",
    "LinearRegression",
    "LinearRegressor",
    "LinearSVC",
    "LogisticRegression",
    "Ridge",
]
