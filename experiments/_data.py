"""The data of experiments: the real sets where they are here; in a quick run, made-up stand-ins of the same shape where
they are not, and a line that says so. A whole run never takes a stand-in: it says how to get the data.

Figures of a run on stand-ins show that an experiment works, and nothing about the world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import BUILD
from discreet import datasets
from discreet.datasets import Digits

__all__ = ["cache", "histograms", "mnist", "pums", "shakespeare", "survey", "use_stand_ins", "warfarin"]

Data = TypeVar("Data")
ALLELES = ("*1/*1", "*1/*2", "*1/*3", "*2/*2", "*2/*3", "*3/*3")
Histogram = Literal["ADULTFRANK", "HEPTH", "INCOME", "MEDCOST"]
HISTOGRAMS: tuple[Histogram, ...] = ("ADULTFRANK", "HEPTH", "INCOME", "MEDCOST")
_quick: dict[str, bool] = {"stand-ins": False}
_told: set[str] = set()


def use_stand_ins(allowed: bool) -> None:
    """Whether data that is not here may be made up."""
    _quick["stand-ins"] = allowed


def cache(name: str) -> Path:
    """Where something computed is kept between runs; quick runs, which may be of made-up data, keep theirs apart."""
    path = BUILD / "quick" / name if _quick["stand-ins"] else BUILD / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _real_or(name: str, real: Callable[[], Data], made_up: Callable[[], Data]) -> Data:
    try:
        return real()
    except FileNotFoundError as missing:
        if not _quick["stand-ins"]:
            raise SystemExit(str(missing)) from None
        if name not in _told:
            _told.add(name)
            print(f"{name} is not here: made-up data stands in for it (discreet data list tells how to get it).")
        return made_up()


def mnist() -> Digits:
    """Handwritten digits; in their place, scikit-learn's small ones, enlarged and moved about."""
    return _real_or("mnist", datasets.mnist, _digits)


def pums() -> dict[str, NDArray[np.int64]]:
    """People of Fulton County."""
    return _real_or("pums", datasets.pums, _people)


def warfarin() -> dict[str, NDArray[np.str_]]:
    """Patients and their doses."""
    return _real_or("warfarin", datasets.warfarin, _patients)


def shakespeare() -> str:
    """Text of plays; in its place, speeches of random words."""
    return _real_or("shakespeare", datasets.shakespeare, _speeches)


def histograms() -> Iterator[tuple[str, NDArray[np.int64]]]:
    """The four of DPBench, by name."""
    for number, name in enumerate(HISTOGRAMS):
        histogram: NDArray[Any] = _real_or("dpbench", partial(datasets.dpbench, name), partial(_histogram, number))
        yield name, histogram.astype(np.int64)


def survey(name: str, real: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """A survey that statsmodels carries, which has an environment of its own."""
    return _real_or(f"{name} of statsmodels", lambda: real(name), lambda: _answers(name))


# --- stand-ins --------------------------------------------------------------------------------------------------------


def _digits(train: int = 6000, test: int = 1000) -> Digits:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    large = np.kron(images.reshape(-1, 8, 8), np.ones((3, 3)))  # 24 pixels in a frame of 28
    chosen = rng.integers(0, len(images), train + test)
    frames = np.zeros((train + test, 28, 28))
    for frame, which, (down, right) in zip(frames, chosen, rng.integers(0, 5, (train + test, 2)), strict=True):
        frame[down : down + 24, right : right + 24] = large[which]
    x, y = (frames * 255 / 16).astype(np.uint8), labels[chosen].astype(np.uint8)
    return Digits(x[:train], y[:train], x[train:], y[train:])


def _people(n: int = 25_766) -> dict[str, NDArray[np.int64]]:
    rng = np.random.default_rng(1)
    age, educ = rng.integers(16, 94, n), np.clip(rng.normal(10.5, 3, n).round(), 1, 16).astype(np.int64)
    income = np.clip(rng.lognormal(8.0 + 0.18 * educ, 0.8, n), 0, 300_000).round(-1).astype(np.int64)
    married = (rng.random(n) < 0.2 + 0.02 * educ).astype(np.int64)
    shares = {"sex": 0.5, "latino": 0.06, "black": 0.4, "asian": 0.03, "divorced": 0.1, "uscitizen": 0.93}
    shares |= {"children": 0.4, "disability": 0.2, "militaryservice": 0.1, "employed": 0.65, "englishability": 0.97}
    flags = {name: (rng.random(n) < share).astype(np.int64) for name, share in shares.items()}
    same = {"state": np.full(n, 13), "fips": np.full(n, 13_121), "puma": rng.integers(1101, 1108, n)}
    return {**same, "age": age, "educ": educ, "income": income, "married": married, **flags}


def _patients(n: int = 2000) -> dict[str, NDArray[np.str_]]:
    rng = np.random.default_rng(2)
    origin = rng.choice(["White", "Asian", "Black or African American", "Unknown"], n, p=[0.55, 0.28, 0.09, 0.08])
    gene, other = rng.choice(["G/G", "A/G", "A/A"], n), rng.choice(list(ALLELES), n)
    decade, weight = rng.integers(2, 9, n), rng.normal(78, 18, n).clip(40, 140)
    effect = np.select([gene == "G/G", gene == "A/G"], [1.4, 1.0], 0.6) * np.where(other == "*1/*1", 1.1, 0.85)
    dose = 30 * effect * np.exp(0.1 * (5 - decade) / 3 + 0.004 * (weight - 78) + rng.normal(0, 0.3, n))
    names = ("Amiodarone (Cordarone)", "Carbamazepine (Tegretol)", "Phenytoin (Dilantin)", "Rifampin or Rifampicin")
    flags = {name: rng.choice(["0", "1", "NA"], n, p=[0.7, 0.05, 0.25]) for name in names}
    return {
        "Gender": rng.choice(["male", "female"], n),
        "Race": origin,
        "Age": np.array([f"{d}0 - {d}9" for d in decade]),
        "Height (cm)": np.char.mod("%.1f", rng.normal(168, 10, n)),
        "Weight (kg)": np.char.mod("%.1f", weight),
        **flags,
        "VKORC1 -1639 consensus": gene,
        "VKORC1 1173 consensus": np.full(n, "NA"),
        "CYP2C9 consensus": other,
        "Therapeutic Dose of Warfarin": np.char.mod("%.2f", dose.clip(4, 300)),
    }


def _speeches(speeches: int = 7300) -> str:
    rng = np.random.default_rng(3)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words = ["".join(rng.choice(letters, rng.integers(2, 8))) for _ in range(400)]
    popular = 1 / np.arange(1, 401)
    lengths = rng.integers(10, 40, speeches)
    drawn = iter(rng.choice(400, lengths.sum(), p=popular / popular.sum()))
    return "\n\n".join(
        f"SPEAKER {number % 9}:\n" + " ".join(words[next(drawn)] for _ in range(length)) + "."
        for number, length in enumerate(lengths)
    )


def _histogram(number: int, cells: int = 4096, records: int = 100_000) -> NDArray[np.int64]:
    rng, at = np.random.default_rng(4 + number), np.arange(cells)
    shape = (
        1 / (at + 1.0) ** 1.2,
        np.exp(-0.5 * ((at - 900) / 60) ** 2) + 0.002,
        np.where(rng.random(cells) < 0.05, rng.pareto(1, cells) + 0.1, 0),
        rng.permutation(1 / (at + 1.0)),
    )[number]
    return np.asarray(rng.multinomial(records, shape / shape.sum()))


def _answers(name: str, n: int = 4000) -> dict[str, NDArray[np.float64]]:
    rng = np.random.default_rng(8)
    ranges = {
        "fair": {"rate_marriage": 5, "age": 45, "yrs_married": 25, "children": 6, "religious": 4, "educ": 20}
        | {"occupation": 6, "occupation_husb": 6},
        "randhie": {"lncoins": 5, "idp": 1, "lpi": 8, "fmde": 9, "physlm": 1, "disea": 60}
        | {"hlthg": 1, "hlthf": 1, "hlthp": 1},
    }[name]
    found = {key: rng.uniform(0, high, n).round() for key, high in ranges.items()}
    if name == "fair":
        return found | {"affairs": (rng.random(n) < 0.6 - 0.1 * found["rate_marriage"]).astype(float)}
    return found | {"mdvis": rng.poisson(1 + 0.05 * found["disea"]).astype(float)}
