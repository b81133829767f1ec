"""Real data with its public facts: Adult ships with the package, the rest is found in a folder and checked.

>>> people = adult()
>>> people.categories["income"]
('<=50K', '>50K')
"""

from __future__ import annotations

from discreet.datasets.census import Adult, Features, adult, adult_features
from discreet.datasets.files import data_folder, path
from discreet.datasets.others import Digits, dpbench, mnist, pums, shakespeare, warfarin

__all__ = [
    "Adult",
    "Digits",
    "Features",
    "adult",
    "adult_features",
    "data_folder",
    "dpbench",
    "mnist",
    "path",
    "pums",
    "shakespeare",
    "warfarin",
]
