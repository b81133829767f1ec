"""What Private Evolution needs of a generator: candidates from public facts alone, and variations of candidates.

A generator never sees a record. It may be anything that can make a candidate and another one like it: a table's
cells changed at random (``variations_table``), public images moved and patched (``variations_images``), strokes of a
pen (``variations_strokes``), templates filled in (``variations_text``), or a model or an API of your own: derive from
``LayoutVariations`` and say ``draw``, ``vary`` and ``rows``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.random import Rng
from discreet.synthesis.layouts import RecordLayout, one_hot
from discreet.synthesis.nearest import Features, whole_features

__all__ = ["Candidates", "Codes", "LayoutVariations", "Variations"]

Candidates = NDArray[Any]  # whatever the generator makes, one entry each
Codes = NDArray[np.int64]

_ROUNDING = 1e-3  # of an entry: far less than a level of a pixel


class Variations(ABC):
    """A generator of candidates, which knows how records are read beside them."""

    classes: int = 1
    """How many classes there are; each has candidates of its own."""

    unit: str | None = None
    """The privacy unit a record stands for, if it is enforced."""

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> Candidates:
        """``n`` candidates, from public facts alone."""

    @abstractmethod
    def vary(self, candidates: Candidates, degree: float, rng: np.random.Generator) -> Candidates:
        """Another candidate like each: nearly itself at a ``degree`` near zero, hardly like it at one."""

    @abstractmethod
    def rows(self, candidates: Candidates) -> Any:
        """The candidates as records are read: a row of numbers each, without a class."""

    @abstractmethod
    def prepare(self, data: Any) -> Callable[[], tuple[Any, Codes]]:
        """Refuse what is publicly wrong with the data, read nothing, and return what reads rows and their classes."""

    @abstractmethod
    def values(self, candidates: Candidates, codes: Codes, rng: Rng) -> Any:
        """The candidates as records."""

    def check(self, rows: Any) -> None:  # noqa: B027  (a generator may have nothing to refuse)
        """Refuse rows of candidates that no record could have, before a record is read."""

    def for_container(self, data: Any) -> Self:
        """The generator that writes records in the container they came in."""
        return self

    def features(self, rows: Any) -> Features:
        """The whole numbers between which distances are taken, of each row by itself."""
        return whole_features(rows)


class LayoutVariations(Variations):
    """A generator for records of a ``layout`` (``Images``, or a table's cells), whose rows are numbers from 0 to 1."""

    def __init__(self, layout: RecordLayout) -> None:
        self.layout = layout
        self.classes = max(layout.classes, 1)
        self.unit = layout.unit

    def prepare(self, data: Any) -> Callable[[], tuple[Any, Codes]]:
        """As the layout reads; a class is the last group."""
        read, width = self.layout.prepare(data), self._width

        def rows_and_codes() -> tuple[Any, Codes]:
            rows = read()
            codes = rows[:, width:].argmax(axis=1) if self.layout.classes else np.zeros(len(rows), np.int64)
            return rows[:, :width], codes

        return rows_and_codes

    @property
    def _width(self) -> int:
        return self.layout.numbers + sum(self.layout.groups) - self.layout.classes

    def check(self, rows: Any) -> None:
        """Rows have the layout's entries, from 0 to 1 but for rounding."""
        given = np.asarray(rows, np.float64)
        if given.shape[1:] != (self._width,) or not ((given > -_ROUNDING) & (given < 1 + _ROUNDING)).all():
            raise ValueError(
                f"rows gives shape {given.shape}, but must give {self._width} numbers from 0 to 1 for each candidate."
            )

    def for_container(self, data: Any) -> Self:
        """With the layout for it."""
        generator = copy(self)
        generator.layout = self.layout.for_container(data)
        return generator

    def values(self, candidates: Candidates, codes: Codes, rng: Rng) -> Any:
        """As the layout writes."""
        rows = np.asarray(self.rows(candidates), np.float32)
        if self.layout.classes:
            rows = np.concatenate([rows, one_hot(codes, self.layout.classes)], axis=1)
        return self.layout.values(rows, rng)
