"""Records as rows of numbers from 0 to 1, by public facts alone: what generators make and discriminators look at.

A row is numbers, then groups of which one entry is 1 and the others 0. A table's columns are groups, one per column:
the cells of ``synthesis.Domain``, so that the schema decides what is missing, what is clipped and which bins there are,
as for every synthesiser. An image's pixels are numbers, scaled by declared bounds; its class, if it has one, a group.

Guarantee: a row is a function of its own record. A record that does not fit (a category that is not listed, a pixel
that is no number) is left out, and never an error. Nothing is scaled by what was seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.containers import UnreadColumn, kind_of
from discreet.encoding.labels import Labels
from discreet.errors import number, whole
from discreet.mechanisms.records import quiet_doubles
from discreet.random import Rng
from discreet.release import Enforced
from discreet.synthesis.domain import Domain
from discreet.synthesis.frames import Kind, as_frame, kind_of_frame

__all__ = ["Images", "RecordLayout", "Rows", "TableLayout", "learnt_width", "one_hot"]

Rows = NDArray[np.float32]


class RecordLayout(Protocol):
    """What a row consists of, how records are read as rows, and made of them."""

    @property
    def numbers(self) -> int:
        """How many entries are numbers."""
        ...

    @property
    def groups(self) -> tuple[int, ...]:
        """The sizes of the groups."""
        ...

    @property
    def classes(self) -> int:
        """The size of the last group, if discriminators look at each of its classes by itself; otherwise 0."""
        ...

    @property
    def even(self) -> bool:
        """Whether the last group is drawn evenly instead of being learnt."""
        ...

    @property
    def unit(self) -> str | None:
        """The privacy unit a row stands for, if it is enforced."""
        ...

    def prepare(self, data: Any) -> Callable[[], Rows]:
        """Refuse what is publicly wrong, read nothing, and return what reads."""
        ...

    def for_container(self, data: Any) -> RecordLayout:
        """The layout that gives records back in the container they came in."""
        ...

    def values(self, rows: Rows, rng: Rng) -> Any:
        """Records of such rows."""
        ...


def one_hot(cells: NDArray[Any], size: int) -> Rows:
    """A group for each cell, with a one at it."""
    group = np.zeros((len(cells), size), np.float32)
    group[np.arange(len(cells)), cells] = 1.0
    return group


def learnt_width(layout: RecordLayout) -> int:
    """How many entries of a row a generator learns: all but a last group that is drawn evenly."""
    return layout.numbers + sum(layout.groups[:-1] if layout.even else layout.groups)


@dataclass(frozen=True)
class TableLayout:
    """Rows of a table: one group per column, that of ``target`` last."""

    domain: Domain
    target: str | None = None
    kind: Kind = "polars"

    def __post_init__(self) -> None:
        if self.domain.private:
            raise ValueError("bins asks for PrivateBins(), but a generator measures none: give a number, or edges.")
        if self.target is not None and self.target not in self.domain.names:
            raise ValueError(f"target is {self.target!r}, which is no bounded or categorical column of the schema.")

    numbers = 0
    even = False

    @property
    def order(self) -> list[int]:
        """Where the column of each group stands in the domain."""
        return sorted(range(len(self.domain.names)), key=lambda place: self.domain.names[place] == self.target)

    @property
    def groups(self) -> tuple[int, ...]:
        """A group for each column, with an entry a cell."""
        return tuple(self.domain.sizes[place] for place in self.order)

    @property
    def classes(self) -> int:
        """The cells of the target."""
        return 0 if self.target is None else self.groups[-1]

    @property
    def unit(self) -> str | None:
        """The declaration's unit, of which one row counts."""
        name = self.domain.declaration.unit
        return None if name is None else Enforced(name)

    def prepare(self, data: Any) -> Callable[[], Rows]:
        """Refuse other columns or types than the schema's."""
        read = self.domain.encoder.prepare(data)

        def rows() -> Rows:
            codes = self.domain.codes(read())[self.order]
            parts = [one_hot(code, size) for size, code in zip(self.groups, codes, strict=True)]
            return np.concatenate(parts, axis=1)

        return rows

    def for_container(self, data: Any) -> TableLayout:
        """Frames of the kind that was given."""
        return replace(self, kind=kind_of_frame(data))

    def values(self, rows: Rows, rng: Rng) -> Any:
        """A frame; a number is drawn evenly from its bin."""
        ends = np.cumsum(self.groups)[:-1]
        codes = np.empty((len(self.groups), len(rows)), np.int32)
        codes[self.order] = [part.argmax(axis=1) for part in np.split(rows, ends, axis=1)]
        values = self.domain.values(codes, rng)
        return as_frame(self.kind, values, self.domain.whole_among(values))


@dataclass(frozen=True)
class Images:
    """Public facts of images: their ``shape``, the ``bounds`` of a pixel, and the ``labels`` they have, if any.

    Data is an array of images, or with ``labels`` the pair (images, labels). So are samples; their labels are drawn
    evenly.

    >>> facts = Images(shape=(1, 2), bounds=(0, 255))
    >>> facts.prepare(np.array([[[0, 255]], [[51, 999]]]))().tolist()
    [[0.0, 1.0], [0.20000000298023224, 1.0]]
    """

    shape: tuple[int, ...]
    bounds: tuple[float, float] = (0.0, 255.0)
    labels: Sequence[Any] | None = None

    unit = None

    def __post_init__(self) -> None:
        for size in self.shape:
            whole("shape", size, low=1)
        low = number("bounds", self.bounds[0], low=-1e300, high=1e300)
        number("bounds", self.bounds[1], low=low, high=1e300, open_low=True)
        if self.labels is not None:
            _ = Labels(self.labels).declared

    @property
    def numbers(self) -> int:
        """A pixel each."""
        return math.prod(self.shape)

    @property
    def groups(self) -> tuple[int, ...]:
        """The labels."""
        return () if self.labels is None else (len(self.labels),)

    @property
    def classes(self) -> int:
        """How many labels there are."""
        return sum(self.groups)

    @property
    def even(self) -> bool:
        """Labels are drawn, not learnt."""
        return self.labels is not None

    def for_container(self, data: Any) -> Images:
        """Images are arrays."""
        return self

    def prepare(self, data: Any) -> Callable[[], Rows]:
        """Refuse arrays of another shape or type."""
        images, labels = self._parts(data)
        shape: tuple[int, ...] = tuple(getattr(images, "shape", ()))
        kind = getattr(getattr(images, "dtype", None), "kind", "none")
        if len(shape) != len(self.shape) + 1 or shape[1:] != tuple(self.shape) or kind not in "biuf":
            raise ValueError(
                f"images must be an array of numbers of shape (images, {', '.join(map(str, self.shape))})."
            )
        column = None
        if labels is not None:
            if getattr(labels, "shape", ()) != (shape[0],):
                raise ValueError("labels must be an array with one label per image.")
            column = UnreadColumn(labels, kind_of(labels.dtype))
            Labels(self.labels).check(column)
        return lambda: self._rows(quiet_doubles(np.asarray(images)), column)

    def _parts(self, data: Any) -> tuple[Any, Any]:
        if self.labels is None:
            return data, None
        if not isinstance(data, tuple) or len(data) != 2:
            raise ValueError("data must be the pair (images, labels), since labels are declared.")
        return data

    def _rows(self, images: NDArray[np.float64], labels: UnreadColumn | None) -> Rows:
        low, high = self.bounds
        pixels = (np.clip(images.reshape(len(images), self.numbers), low, high) - low) / (high - low)
        keep = np.isfinite(pixels).all(axis=1)
        parts: list[NDArray[Any]] = [pixels]
        if labels is not None:
            codes = Labels(self.labels).codes(labels)
            keep &= codes >= 0
            parts.append(one_hot(np.maximum(codes, 0), self.classes))
        return np.concatenate(parts, axis=1)[keep].astype(np.float32)

    def values(self, rows: Rows, rng: Rng) -> Any:
        """An array of images, with labels where they are declared."""
        low, high = self.bounds
        images = low + (high - low) * rows[:, : self.numbers].astype(np.float64).reshape(-1, *self.shape)
        if self.labels is None:
            return images
        return images, Labels(self.labels).declared[rows[:, self.numbers :].argmax(axis=1)]
