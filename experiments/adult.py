"""UCI Adult as 91 features of norm one, by a fixed recipe whose numbers are public: nothing is read off the data.

Age, years of schooling and weekly hours are centred at 40, 10 and 40 and divided by 20, 4 and 25; capital gains and losses
become ln(1 + x)/6. Workclass, marital status, occupation, relationship, race, sex and country are one-hot by the levels of
the data's documentation, with '?' as a level (education is left out: schooling says the same). Rows are scaled to norm one.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

COLUMNS = ("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
           "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income")
LEVELS = {
    "workclass": "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov Without-pay",
    "marital-status": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated Widowed",
    "occupation": "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
                  "Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support "
                  "Transport-moving",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "native-country": "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France Germany "
                      "Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy Jamaica "
                      "Japan Laos Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal "
                      "Puerto-Rico Scotland South Taiwan Thailand Trinadad&Tobago United-States Vietnam Yugoslavia",
}
Data = tuple[NDArray[np.float64], NDArray[np.int64]]


def folder() -> Path | None:
    """Where the raw files are: ``DISCREET_DATA``, or the shared folder beside the checkout."""
    places = [Path(os.environ["DISCREET_DATA"])] if "DISCREET_DATA" in os.environ else []
    places.append(Path(__file__).resolve().parents[2] / "shared" / "data")
    return next((place / "adult" for place in places if (place / "adult").is_dir()), None)


def rows(file: Path) -> list[dict[str, str]]:
    """Records of a raw file; its comment and blank lines are skipped."""
    with gzip.open(file, "rt") as lines:
        split = [[part.strip() for part in line.strip().rstrip(".").split(",")] for line in lines]
    return [dict(zip(COLUMNS, parts, strict=True)) for parts in split if len(parts) == len(COLUMNS)]


def features(records: list[dict[str, str]]) -> NDArray[np.float64]:
    """The recipe."""
    def number(name: str) -> NDArray[np.float64]:
        return np.array([float(record[name]) for record in records])

    columns = [(number("age") - 40) / 20, (number("education-num") - 10) / 4, (number("hours-per-week") - 40) / 25,
               np.log1p(number("capital-gain")) / 6, np.log1p(number("capital-loss")) / 6]
    for name, levels in LEVELS.items():
        value = np.array([record[name] for record in records])
        columns += [(value == level).astype(float) for level in levels.split()]
    table = np.stack(columns, axis=1)
    return np.asarray(table / np.linalg.norm(table, axis=1, keepdims=True))


def load() -> tuple[Data, Data] | None:
    """Training and test data, or nothing where the raw files are not at hand."""
    if (place := folder()) is None:
        return None
    parts = [rows(place / f"adult.{name}.gz") for name in ("data", "test")]
    train, test = ((features(part), np.array([record["income"].startswith(">") for record in part]).astype(np.int64))
                   for part in parts)
    return train, test
