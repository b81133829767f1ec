"""The estimators people expect of a private scikit-learn, beside linear models: each states its event before it reads.

Bounds and classes are declared, never read off the data. A record with a missing feature or another label contributes
nothing (additive models have a bin for what is missing); nothing fails because of a record.
"""

from __future__ import annotations

from discreet.estimators.additive_models import AdditiveClassifier, AdditiveRegressor
from discreet.estimators.kmeans import KMeans
from discreet.estimators.naive_bayes import GaussianNB
from discreet.estimators.pca import PCA
from discreet.estimators.scaling import MinMaxScaler, StandardScaler
from discreet.estimators.tree_models import DecisionTreeClassifier, RandomForestClassifier

__all__ = [
    "PCA",
    "AdditiveClassifier",
    "AdditiveRegressor",
    "DecisionTreeClassifier",
    "GaussianNB",
    "KMeans",
    "MinMaxScaler",
    "RandomForestClassifier",
    "StandardScaler",
]
