"""Real data with its public facts: Adult ships with the package, the rest is fetched, and checked.

>>> people = adult()
>>> people.categories["income"]
('<=50K', '>50K')
"""

from __future__ import annotations

from discreet.datasets.catalogue import DATASETS, DataSet
from discreet.datasets.census import Adult, Features, adult, adult_features
from discreet.datasets.fetching import fetch
from discreet.datasets.files import data_folder, path
from discreet.datasets.others import Digits, dpbench, mnist, pums, shakespeare, warfarin

__all__ = [
    "DATASETS",
    "Adult",
    "DataSet",
    "Digits",
    "Features",
    "adult",
    "adult_features",
    "data_folder",
    "dpbench",
    "fetch",
    "mnist",
    "path",
    "pums",
    "shakespeare",
    "warfarin",
]
