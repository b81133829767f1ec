"""Data that does not ship, read from the data folder (``datasets.files``) into plain arrays."""

from __future__ import annotations

import csv
import gzip
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.datasets.files import path

__all__ = ["Digits", "dpbench", "mnist", "pums", "shakespeare", "warfarin"]


class Digits(NamedTuple):
    """Images of 28 × 28 grey levels (0 to 255) and the digits they show."""

    X_train: NDArray[np.uint8]
    y_train: NDArray[np.uint8]
    X_test: NDArray[np.uint8]
    y_test: NDArray[np.uint8]


def pums() -> dict[str, NDArray[np.int64]]:
    """Census microdata of Fulton County, Georgia, 2000: 25,766 people, 18 columns of whole numbers.

    Public facts: educ is 1 to 16; the lectures bound income by 0 and 200,000 dollars.
    """
    table = _csv("pums/FultonPUMS5full.csv.gz")
    return {name: np.array(entries, np.float64).astype(np.int64) for name, entries in table.items()}


def warfarin() -> dict[str, NDArray[np.str_]]:
    """5,700 patients of the International Warfarin Pharmacogenetics Consortium (NEJM 2009, CC BY-SA 4.0), as text."""
    return {name: np.array(entries, np.str_) for name, entries in _csv("iwpc-warfarin/warfarin.csv.gz").items()}


def mnist() -> Digits:
    """Handwritten digits: 60,000 images to learn from and 10,000 to test on."""
    parts = [
        _idx(f"mnist/{part}-{kind}-ubyte.gz") for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
    ]
    return Digits(*parts)


def dpbench(name: Literal["ADULTFRANK", "HEPTH", "INCOME", "MEDCOST"]) -> NDArray[Any]:
    """A histogram of 4,096 bins from the DPBench study (Hay et al. 2016)."""
    return np.asarray(np.load(path(f"dpbench/{name}.n4096.npy")))


def shakespeare() -> str:
    """1,115,394 characters of Shakespeare."""
    with gzip.open(path("tinyshakespeare/input.txt.gz"), "rt", encoding="utf-8") as file:
        return file.read()


def _csv(name: str) -> dict[str, tuple[str, ...]]:
    with gzip.open(path(name), "rt", encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        header = next(reader)
        records = [record for record in reader if any(record)]  # one file ends in an empty record
    return dict(zip(header, zip(*records, strict=True), strict=True))


def _idx(name: str) -> NDArray[np.uint8]:
    """An array in the IDX format: two zeros, the type (8: bytes), the number of dimensions, their sizes,
    the entries.
    """
    with gzip.open(path(name)) as file:
        content = file.read()
    dimensions = content[3]
    shape = np.frombuffer(content, ">u4", count=dimensions, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape.astype(np.int64)).copy()
