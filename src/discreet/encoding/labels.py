"""Labels against declared classes: each record's by itself, and none of them decides which classes there are.

Decision 385.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.containers import UnreadColumn, kind_of
from discreet.encoding.values import label as spelling
from discreet.encoding.values import number

__all__ = ["Labels"]


@dataclass(frozen=True, slots=True)
class Labels:
    """What a classifier's ``classes`` declare.

    >>> Labels(("no", "yes")).codes(UnreadColumn(["yes", "no", "perhaps"], "objects")).tolist()
    [1, 0, -1]
    """

    classes: Any

    @property
    def declared(self) -> NDArray[Any]:
        """The classes, in the order in which they were given."""
        if self.classes is None:
            raise ValueError(
                "classes is not given. The labels are private, so they are never read off the data: a label that only "
                "one record has would tell of that record. Write all possible labels, spelt as in the data: "
                "classes=(0, 1), classes=('no', 'yes') or classes=(False, True). Nothing was charged."
            )
        labels = np.asarray(self.classes)
        if labels.ndim != 1 or len(labels) < 2 or len(set(labels.tolist())) != len(labels):
            raise ValueError(
                f"classes is {self.classes!r}, but must list at least two different labels; they are declared, "
                "never read off the data."
            )
        return labels

    def check(self, y: UnreadColumn) -> None:
        """Refuse targets whose type is not that of the classes; no value is looked at."""
        declared = kind_of(self.declared.dtype)
        if "objects" not in (y.kind, declared) and y.kind != declared:
            raise ValueError(
                f"y holds {y.kind}, but classes is {self.classes!r}: {declared}. No label would ever be found. "
                "Convert y, or declare the classes as they stand in it."
            )

    def codes(self, y: UnreadColumn) -> NDArray[Any]:
        """Which class each label is, -1 for none of them."""
        self.check(y)
        labels, values = self.declared, y.read()
        codes = np.full(len(values), -1)
        if "O" not in (values.dtype.kind, labels.dtype.kind) and kind_of(values.dtype) == kind_of(labels.dtype):
            for number, label in enumerate(labels):
                codes[values == label] = number
        else:
            places: dict[Any, int] = {}
            for number, label in enumerate(labels.tolist()):
                places |= {label: number, str(label): number}  # text among objects is the label it spells
            codes[:] = [_place(places, value) for value in values.tolist()]
        return codes


def _place(places: dict[Any, int], label: Any) -> int:
    """Which label it is, or spells: -1 for none of them."""
    try:
        found = places.get(label, -1)
        if found < 0:  # numbers that a column holds as text, and text that it holds as numbers
            return places.get(number(label) if isinstance(label, str) else spelling(label), -1)
        return found
    except Exception:  # whatever it does when it is hashed or compared is its own record's matter
        return -1
