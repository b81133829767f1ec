"""What was learnt: released numbers that stand in the report beside what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.errors import nonnegative, number

__all__ = ["Finding"]


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
    labels: tuple[str, ...]
    values: tuple[float, ...]
    errors: tuple[float, ...] = ()
    axis: str = ""
    caption: str = ""
    not_private: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        kept = {
            "labels": tuple(map(str, self.labels)),
            "values": tuple(number("values", x, low=-math.inf, high=math.inf, open_low=True, open_high=True) for x in self.values),
            "errors": tuple(nonnegative("errors", x) for x in self.errors),
            "not_private": tuple(map(str, self.not_private)),
        }
        for name, value in kept.items():
            object.__setattr__(self, name, value)
        size = len(self.labels)
        if not size or len(self.values) != size or len(self.errors) not in (0, size):
            raise ValueError(f"labels has {size}, values {len(self.values)} and errors {len(self.errors)} entries, but all need "
                             "the same number, at least one; errors may be empty.")
        if unknown := set(self.not_private) - set(self.labels):
            raise ValueError(f"not_private names {sorted(unknown)[0]!r}, but must name some of labels.")
