"""A public partition of what a record may be: bins of numbers, or categories. Counting is one look at each record."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import number
from discreet.mechanisms.parameters import one_of
from discreet.mechanisms.records import check_column, check_container, column, element_type, entries

__all__ = ["Partition"]


@dataclass(frozen=True, slots=True)
class Partition:
    """Public edges of bins [e₀, e₁), …, [eₖ₋₁, eₖ] with the last closed, or public categories."""

    bins: tuple[float, ...] | None = None
    categories: tuple[Hashable, ...] | None = None

    @classmethod
    def of(cls, bins: Iterable[float] | None, categories: Iterable[Hashable] | None) -> Partition:
        """Checked edges or categories, exactly one of them."""
        if one_of(bins=bins, categories=categories) == "categories":
            assert categories is not None
            names = tuple(categories.tolist() if isinstance(categories, np.ndarray) else categories)
            if not names or len(set(names)) != len(names):
                raise ValueError("categories is empty or has a repeated entry, but must be distinct public values.")
            return cls(categories=names)
        assert bins is not None
        if not isinstance(bins, Iterable):
            raise ValueError(
                f"bins is {bins!r}, but must be the edges themselves, because the data's own ends are private: "
                "bins=numpy.linspace(0, 100, 11) for ten bins from 0 to 100."
            )
        edges = tuple(number("bins", edge, low=-np.inf, high=np.inf) for edge in bins)
        if len(edges) < 2 or any(not low < high for low, high in pairwise(edges)):
            raise ValueError("bins must be at least two public edges in increasing order.")
        return cls(bins=edges)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def labels(self) -> tuple[Any, ...]:
        """What each part is called: its category, or its pair of edges."""
        if self.categories is not None:
            return self.categories
        assert self.bins is not None
        return tuple(pairwise(self.bins))

    def check(self, values: Any) -> None:
        """Refuse, by type and shape alone, what is no column of numbers; with categories, text where none is text."""
        if self.categories is None:
            check_column(values)
            return
        check_container(values)
        if (dimensions := getattr(values, "ndim", 1)) != 1:
            raise ValueError(f"values has {dimensions} dimensions, but must have one: a category for each record.")
        # Not the other way round: NumPy calls an empty array of names one of floats, and an error would say that it is
        # so.
        kind = str(element_type(values)).lower()
        if kind.startswith(("<u", ">u", "|s", "str", "string", "large_string")) and not any(
            map(_textual, self.categories)
        ):
            raise ValueError(f"values has dtype {kind}, but no category is text: no record could be one of them.")

    def counts(self, values: Any, *, clamp: bool = False) -> NDArray[np.int64]:
        """How many records fall in each part. What falls in none is left out, or, with ``clamp``, goes to an end."""
        parts = self.places(values, clamp=clamp)
        return np.bincount(parts[parts >= 0], minlength=len(self)).astype(np.int64)

    def places(self, values: Any, *, clamp: bool = False) -> NDArray[np.int64]:
        """The part of each record, from 0; -1 for one in none. With ``clamp`` numbers beyond the ends are in the last
        part there.
        """
        return self._category(values) if self.categories is not None else self._bin(values, clamp)

    def _bin(self, values: Any, clamp: bool) -> NDArray[np.int64]:
        edges = np.array(self.bins)
        x = column(values).astype(np.float64)
        inside = ~np.isnan(x) if clamp else (x >= edges[0]) & (x <= edges[-1])
        place = np.searchsorted(edges, np.clip(np.where(inside, x, edges[0]), edges[0], edges[-1]), side="right") - 1
        return np.where(inside, np.minimum(place, len(self) - 1), -1)

    def _category(self, values: Any) -> NDArray[np.int64]:
        assert self.categories is not None
        place = {name: i for i, name in enumerate(self.categories)}
        self.check(values)
        array = np.asarray(values) if isinstance(getattr(values, "dtype", None), np.dtype) else None
        if array is None or array.dtype == object:
            return np.array([_lookup(place, x) for x in entries(values)], np.int64)
        if array.dtype.kind == "i" and all(isinstance(name, int) and abs(name) < 2**62 for name in self.categories):
            names = np.array(self.categories)
            order = np.argsort(names)
            found = order[np.minimum(np.searchsorted(names, array, sorter=order), len(self) - 1)]
            return np.where(names[found] == array, found, -1)
        distinct, inverse = np.unique(array, return_inverse=True)
        return np.array([_lookup(place, x) for x in distinct.tolist()], np.int64)[inverse]


def _textual(name: Hashable) -> bool:
    return isinstance(name, (str, bytes))


def _lookup(place: dict[Any, int], x: Any) -> int:
    """The part of a record; -1 for an unknown category or something that can be none."""
    try:
        return place.get(x, -1)
    except Exception:  # it has no hash, or one that fails
        return -1
