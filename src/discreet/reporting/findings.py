"""What was learnt: released numbers that stand in the report beside what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.errors import number

__all__ = ["Finding"]

LARGEST = 1e300  # what can be drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Released numbers under one title, drawn as points with error bars.

    ``errors`` gives half the width of each bar, from public facts and released numbers; empty means that none is drawn.
    ``not_private`` names those of ``labels`` whose value never passed through the book, such as a model fitted without
    noise for comparison: the report draws and names them as such.

    >>> Finding(title="Hours a week", labels=["Masters", "Doctorate"], values=[43.9, 46.6], errors=[0.4, 1.4]).values
    (43.9, 46.6)
    """

    title: str
    labels: Sequence[str]
    values: Sequence[float]
    errors: Sequence[float] = ()
    axis: str = ""
    caption: str = ""
    not_private: Sequence[str] = ()

    def __post_init__(self) -> None:
        kept = {
            "labels": tuple(map(str, self.labels)),
            "values": tuple(number("values", value, low=-LARGEST, high=LARGEST) for value in self.values),
            "errors": tuple(number("errors", error, low=0, high=LARGEST) for error in self.errors),
            "not_private": tuple(map(str, self.not_private)),
        }
        for name, value in kept.items():
            object.__setattr__(self, name, value)
        sizes = len(self.labels), len(self.values), len(self.errors) or len(self.labels)
        if not sizes[0] or len(set(sizes)) > 1:
            raise ValueError(
                f"labels, values and errors have {sizes[0]}, {sizes[1]} and {len(self.errors)} entries, but need "
                "the same number, at least one; errors may be left out."
            )
        if unknown := sorted(set(self.not_private) - set(self.labels)):
            raise ValueError(f"not_private has {unknown[0]!r}, but must name some of labels.")
