"""UCI Adult: 48,842 people of the 1994 census, and whether they earn more than 50,000 dollars. Ships with the package.

Credit: Barry Becker and Ronny Kohavi (1996), "Adult", UCI Machine Learning Repository, doi 10.24432/C5XW20, licensed
CC BY 4.0. What is publicly known about the columns is stated here, taken from the data set's description and not from
its records.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.datasets.files import check_digest
from discreet.schema import Bounded, Categories, Schema

__all__ = ["BOUNDS", "CATEGORIES", "Adult", "Features", "adult", "adult_features"]

_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)

_RAW = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}

# Working age in the survey; sixteen grades; incomes are top-coded at 99,999; hours have two digits.
BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "age": (17.0, 90.0),
        "fnlwgt": (0.0, 1_500_000.0),
        "education_num": (1.0, 16.0),
        "capital_gain": (0.0, 99_999.0),
        "capital_loss": (0.0, 5_000.0),
        "hours_per_week": (0.0, 99.0),
    }
)

# As adult.names lists them, with "?" (not known) where the description says that values may be missing.
CATEGORIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "workclass": (
            "Private",
            "Self-emp-not-inc",
            "Self-emp-inc",
            "Federal-gov",
            "Local-gov",
            "State-gov",
            "Without-pay",
            "Never-worked",
            "?",
        ),
        "education": (
            "Bachelors",
            "Some-college",
            "11th",
            "HS-grad",
            "Prof-school",
            "Assoc-acdm",
            "Assoc-voc",
            "9th",
            "7th-8th",
            "12th",
            "Masters",
            "1st-4th",
            "10th",
            "Doctorate",
            "5th-6th",
            "Preschool",
        ),
        "marital_status": (
            "Married-civ-spouse",
            "Divorced",
            "Never-married",
            "Separated",
            "Widowed",
            "Married-spouse-absent",
            "Married-AF-spouse",
        ),
        "occupation": (
            "Tech-support",
            "Craft-repair",
            "Other-service",
            "Sales",
            "Exec-managerial",
            "Prof-specialty",
            "Handlers-cleaners",
            "Machine-op-inspct",
            "Adm-clerical",
            "Farming-fishing",
            "Transport-moving",
            "Priv-house-serv",
            "Protective-serv",
            "Armed-Forces",
            "?",
        ),
        "relationship": ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"),
        "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
        "sex": ("Female", "Male"),
        "native_country": (
            "United-States",
            "Cambodia",
            "England",
            "Puerto-Rico",
            "Canada",
            "Germany",
            "Outlying-US(Guam-USVI-etc)",
            "India",
            "Japan",
            "Greece",
            "South",
            "China",
            "Cuba",
            "Iran",
            "Honduras",
            "Philippines",
            "Italy",
            "Poland",
            "Jamaica",
            "Vietnam",
            "Mexico",
            "Portugal",
            "Ireland",
            "France",
            "Dominican-Republic",
            "Laos",
            "Ecuador",
            "Taiwan",
            "Haiti",
            "Columbia",
            "Hungary",
            "Guatemala",
            "Nicaragua",
            "Scotland",
            "Thailand",
            "Yugoslavia",
            "El-Salvador",
            "Trinadad&Tobago",
            "Peru",
            "Hong",
            "Holand-Netherlands",
            "?",
        ),
        "income": ("<=50K", ">50K"),
    }
)


@dataclass(frozen=True, slots=True)
class Adult:
    """The records as plain columns, and what is publicly known about each column."""

    train: Mapping[str, NDArray[Any]]
    test: Mapping[str, NDArray[Any]]
    bounds: Mapping[str, tuple[float, float]]
    categories: Mapping[str, tuple[str, ...]]

    @property
    def schema(self) -> Schema:
        """The same public facts as a schema, for ``dp.table``."""
        return Schema(
            {name: Bounded(*ends) for name, ends in self.bounds.items()}
            | {name: Categories(values) for name, values in self.categories.items()}
        )

    def __repr__(self) -> str:
        return f"Adult({len(self.train['age'])} + {len(self.test['age'])} records, {len(self.train)} columns)"


class Features(NamedTuple):
    """What a classifier needs: rows of norm 1, and 1 for an income above 50,000 dollars."""

    X_train: NDArray[np.float64]
    y_train: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def adult() -> Adult:
    """UCI Adult: 32,561 records to learn from and 16,281 to test on, as it was split by its donors.

    Six columns are integers and have public ``bounds``; nine are text and have public ``categories``, in which "?"
    stands for not known. Nothing about them was read off the records.

    >>> people = adult()
    >>> people
    Adult(32561 + 16281 records, 15 columns)
    >>> people.bounds["age"], people.categories["sex"]
    ((17.0, 90.0), ('Female', 'Male'))
    >>> people.train["age"][:3], people.train["education"][:2].tolist()
    (array([39, 50, 38]), ['Bachelors', 'Bachelors'])
    """
    return Adult(_columns("adult.data"), _columns("adult.test"), BOUNDS, CATEGORIES)


@lru_cache(maxsize=2)
def _columns(name: str) -> Mapping[str, NDArray[Any]]:
    packed = Path(__file__).with_name("data") / f"{name}.xz"
    text = check_digest(name, lzma.decompress(packed.read_bytes()), _RAW[name]).decode("ascii")
    records = [line.rstrip(".").split(", ") for line in text.splitlines() if line.count(",") == 14]
    columns = {
        key: np.array(entries, np.int64 if key in BOUNDS else np.str_)
        for key, entries in zip(_COLUMNS, zip(*records, strict=True), strict=True)
    }
    for column in columns.values():
        column.flags.writeable = False  # shared by every caller
    return MappingProxyType(columns)


# education_num orders the same sixteen grades as education; fnlwgt is a weight of the survey, not a fact about a
# person.
_ONE_HOT = tuple(name for name in CATEGORIES if name not in ("education", "income"))
_SCALED = ("age", "education_num", "hours_per_week")
_SQUARED = ("age", "hours_per_week")  # incomes rise with age and hours, and then fall
_LOGGED = ("capital_gain", "capital_loss")


def adult_features() -> Features:
    """Adult as numbers, by a fixed public recipe that treats every record by itself.

    1. One column of zeros and ones for each category of each categorical column, "?" included: 86 columns. Education is
       left out, because education_num orders the same grades.
    2. age, education_num and hours_per_week, clipped to their public bounds and scaled to [-1, 1]; the squares of age
       and hours, since neither acts in one direction only. fnlwgt, a weight of the survey, is left out.
    3. log(1 + x)/log(1 + bound) of capital_gain and capital_loss, clipped to their bounds.
    4. Each row divided by its Euclidean length, and by a hair more, so that no length exceeds 1 by rounding.

    That makes 93 features. There is no constant column: a model that wants an intercept adds its own. Plain logistic
    regression on them is right on 85.2 % of the test records.

    >>> X_train, y_train, X_test, y_test = adult_features()
    >>> X_train.shape, X_test.shape, bool((np.linalg.norm(X_train, axis=1) <= 1).all())
    ((32561, 93), (16281, 93), True)
    """
    people = adult()
    return Features(_encode(people.train), _labels(people.train), _encode(people.test), _labels(people.test))


def _labels(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    return np.asarray(columns["income"] == ">50K", np.int64)


def _encode(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    parts = [columns[name][:, None] == np.array(CATEGORIES[name]) for name in _ONE_HOT]
    scaled = {name: 2 * _place(columns[name], *BOUNDS[name]) - 1 for name in _SCALED}
    parts += [column[:, None] for column in scaled.values()]
    parts += [scaled[name][:, None] ** 2 for name in _SQUARED]
    parts += [_place(np.log1p(columns[name]), *np.log1p(BOUNDS[name]))[:, None] for name in _LOGGED]
    table = np.concatenate(parts, axis=1, dtype=np.float64)
    return np.asarray(table / (np.linalg.norm(table, axis=1, keepdims=True) * (1 + 1e-12)))


def _place(column: NDArray[Any], low: float, high: float) -> NDArray[np.float64]:
    return np.asarray((np.clip(column, low, high) - low) / (high - low))
