"""Candidates for short texts: templates whose slots are filled from public lists."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from discreet.encoding.containers import UnreadColumn, kind_of
from discreet.encoding.labels import Labels
from discreet.mechanisms.records import check_line, element_type, entries
from discreet.random import Rng
from discreet.synthesis.nearest import Features
from discreet.synthesis.variations import Candidates, Codes, Variations

__all__ = ["TextVariations"]

_WIDTH = 512  # features: remainders of the checksums of three letters each
_MOST = 255  # times that three letters are counted
_LONGEST = 10_000  # letters of a text that are read: one endless text must not hold up a fit


class TextVariations(Variations):
    """Texts made of ``templates`` such as ``"{who} has {what}"``, with ``words`` for each name in braces.

    Texts are near each other if they share runs of three letters. Records are a list, an array or a column of texts,
    or with ``labels`` the pair (texts, labels). An entry that is no text, or whose label is not declared, has no vote.

    >>> texts = TextVariations(["{who} {does}."], {"who": ["Ann", "Bob"], "does": ["sings", "sleeps"]})
    >>> texts.texts(np.array([[0, 1, 0]]))
    ['Bob sings.']
    """

    def __init__(
        self, templates: Sequence[str], words: Mapping[str, Sequence[str]], *, labels: Sequence[Any] | None = None
    ) -> None:
        for name, given in (("templates", templates), *((f"words[{slot!r}]", words[slot]) for slot in words)):
            if isinstance(given, str) or not given or not all(isinstance(each, str) for each in given):
                raise ValueError(f"{name} must be a list of texts, with one at least.")
        for template in templates:
            if missing := [slot for slot in _slots(template) if slot not in words]:
                raise ValueError(f"words says nothing of {missing[0]!r}, which the template {template!r} names.")
        if labels is not None:
            _ = Labels(labels).declared
        self.templates, self.words = tuple(templates), {name: tuple(each) for name, each in words.items()}
        self.labels, self.classes = labels, 1 if labels is None else len(labels)
        self._sizes = len(self.templates), *(len(each) for each in self.words.values())
        for place, template in enumerate(self.templates):
            try:
                self.texts(np.array([[place, *(0 for _ in self.words)]]))
            except Exception as error:
                raise ValueError(f"The template {template!r} cannot be filled in: {error!r}.") from error

    def texts(self, candidates: Candidates) -> list[str]:
        """The candidates as they read."""
        return [
            self.templates[first].format(
                **{name: each[place] for (name, each), place in zip(self.words.items(), rest, strict=True)}
            )
            for first, *rest in candidates.tolist()
        ]

    def draw(self, n: int, rng: np.random.Generator) -> Candidates:
        """A template, and a word for each slot, drawn evenly."""
        return np.stack([rng.integers(0, size, n) for size in self._sizes], axis=1)

    def vary(self, candidates: Candidates, degree: float, rng: np.random.Generator) -> Candidates:
        """Template and words drawn again with the chance ``degree``, one of them at least."""
        n, width = candidates.shape
        redrawn = rng.random((n, width)) < degree
        redrawn[np.arange(n), rng.integers(0, width, n)] = True
        return np.where(redrawn, self.draw(n, rng), candidates)

    def rows(self, candidates: Candidates) -> Any:
        """How often each run of three letters comes."""
        return _letters(self.texts(candidates))

    def features(self, rows: Any) -> Features:
        """The counts."""
        return np.asarray(rows, np.float64)

    def prepare(self, data: Any) -> Callable[[], tuple[Any, Codes]]:
        """Refuse a pair where no labels are declared, and the reverse; read nothing."""
        if (self.labels is not None) != isinstance(data, tuple) or (self.labels is not None and len(data) != 2):
            expected = "texts, since no labels are declared" if self.labels is None else "the pair (texts, labels)"
            raise ValueError(f"data must be {expected}.")
        texts, labels = data if isinstance(data, tuple) else (data, None)
        if isinstance(texts, (str, bytes)) or not hasattr(texts, "__len__"):
            raise ValueError(f"data is {type(texts).__name__}, but must be a list or a column of texts.")
        check_line(texts, "data")
        if (element := element_type(texts)) is not None and kind_of(element) not in ("text", "objects"):
            raise ValueError(f"data holds {kind_of(element)}, but must be a list or a column of texts.")
        column = None
        if self.labels is not None:
            check_line(labels, "labels")
            if len(labels) != len(texts):
                raise ValueError("labels must be as many as the texts.")
            column = UnreadColumn(labels, kind_of(getattr(labels, "dtype", np.dtype(object))))
            Labels(self.labels).check(column)

        def rows_and_codes() -> tuple[Any, Codes]:
            read = list(entries(texts))
            codes = np.zeros(len(read), np.int64) if column is None else Labels(self.labels).codes(column)
            keep = np.array([issubclass(type(each), str) for each in read], bool) & (codes >= 0)
            return _letters([read[place] for place in np.flatnonzero(keep)]), codes[keep]

        return rows_and_codes

    def values(self, candidates: Candidates, codes: Codes, rng: Rng) -> Any:
        """A list of texts, with an array of labels where they are declared."""
        texts = self.texts(candidates)
        return texts if self.labels is None else (texts, Labels(self.labels).declared[codes])


def _slots(template: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]


def _letters(texts: Sequence[str]) -> Any:
    counts = np.zeros((len(texts), _WIDTH), np.uint8)
    for row, text in zip(counts, texts, strict=True):
        letters = f"  {str.casefold(text)[:_LONGEST]} ".encode("utf-8", "replace")  # str's own: a subclass may fail
        for at in range(len(letters) - 2):
            place = crc32(letters[at : at + 3]) % _WIDTH
            row[place] = min(int(row[place]) + 1, _MOST)
    return counts
