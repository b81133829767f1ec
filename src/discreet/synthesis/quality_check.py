"""A private quality report: the averages of ``quality_facts``, released with noise, for a share of the budget.

Decision 363.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adjacency import Adjacency, changed_records
from discreet.encoding import Encoded, Encoder
from discreet.errors import whole
from discreet.events import Event
from discreet.mechanisms.budget import AdditiveMechanism, Budget
from discreet.random import Rng, RngLike, as_rng
from discreet.release import ONE_RECORD, Enforced, Release
from discreet.schema import Declaration, Schema
from discreet.synthesis.coded_table import BINS, CodedTable, Columns, as_declared, choices, paired_counts
from discreet.synthesis.train_and_test import check_target, correct, train_classifier
from discreet.workloads import AllRanges

__all__ = ["QualityCheck"]


@dataclass(frozen=True, eq=False, kw_only=True)
class QualityCheck:
    r"""How far a published table is from the private one: average error of marginals, of ranges, and what it teaches.

    The value has "1-way", "2-way", "3-way" (average total variation of marginals), "ranges" (average error of all
    ranges of bins of the columns of numbers) and, with a ``target``, "learning" (accuracy on the private rows of a
    logistic regression that was trained on the synthetic ones), each as a share and within [0, 1].

    Guarantee: ``synthetic`` is public, and ``n``, the number of private rows, is *declared*. With counts h of the n
    rows and s of the M synthetic ones, a marginal's error is :math:`\frac{1}{2n} \sum |h - n s/M|`, and a row is in one
    cell of each marginal, so that one more or less moves the average of all of them by at most 1/2n, and a row replaced
    by at most 1/n; it moves each range by at most 1, and one row is right or wrong. The sums are computed in whole
    numbers. All entries, in units of that sensitivity, meet noise as one vector: Laplace noise for ``epsilon=``,
    Gaussian with ``delta=`` or for ``rho=``. A wrong ``n`` makes the figures wrong, never the guarantee.

    >>> from discreet.schema import Bounded
    >>> table = {"age": list(range(100))}
    >>> check = QualityCheck(synthetic=table, schema=Schema(age=Bounded(0, 100)), n=100, epsilon=10.0)
    >>> check.error() < 0.01, sorted(check.release(table, rng=1).value)
    (True, ['1-way', 'ranges'])
    """

    synthetic: Any = field(repr=False)
    schema: Schema | Declaration | str | PathLike[str]
    n: int
    epsilon: InitVar[float | None] = None
    delta: InitVar[float | None] = None
    rho: InitVar[float | None] = None
    target: str | None = None
    bins: int = BINS
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    mechanism: AdditiveMechanism = field(init=False)

    label = "quality check"

    def __post_init__(self, epsilon: float | None, delta: float | None, rho: float | None) -> None:
        adjacency, facts = Adjacency(self.adjacency), as_declared(self.schema)
        if adjacency is Adjacency.ZERO_OUT:
            raise ValueError("adjacency is 'zero-out', but a blank row is in a cell of its own: use another.")
        whole("n", self.n, low=1)
        if self.target is not None:
            check_target(facts.schema, self.target)
        public = CodedTable(Encoder(facts, one_row_a_unit=False).read(self.synthetic), self.bins)
        if not len(public):
            raise ValueError("The synthetic table has no rows, so that there is nothing to compare.")
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "schema", facts)
        object.__setattr__(self, "_public", public)
        many = len(self.entries)
        noise = Budget(epsilon, delta, rho).additive(many, many, square=many, adjacency=adjacency)
        object.__setattr__(self, "mechanism", noise)

    @property
    def public(self) -> CodedTable:
        """The synthetic table, coded."""
        found: CodedTable = self.__dict__["_public"]
        return found

    @cached_property
    def entries(self) -> dict[str, float]:
        """What is released, and how far one row moves it, as a share."""
        moved = changed_records(self.adjacency)
        ways = {f"{k}-way": moved / (2 * self.n) for k in (1, 2, 3) if k <= len(self.public.schema)}
        more = {"ranges": bool(self.public.numeric), "learning": self.target is not None}
        return ways | {name: 1 / self.n for name, wanted in more.items() if wanted}

    @property
    def event(self) -> Event:
        """The cost."""
        return self.mechanism.event

    @property
    def unit(self) -> str:
        """A row, or the schema's unit, of which one row counts."""
        name = as_declared(self.schema).unit
        return ONE_RECORD if name is None else Enforced(name)

    def error(self, confidence: float = 0.95) -> float:
        """What the noise on every figure stays within, each with this confidence."""
        return self.mechanism.error(confidence) * max(self.entries.values())

    def prepare(self, data: Any = None, rng: RngLike = None) -> Callable[[], Release[dict[str, float]]]:
        """Refuse what public facts can tell (columns and types), read nothing, and return what reads."""
        source, read = as_rng(rng), Encoder(as_declared(self.schema)).prepare(data)
        if self.target is not None:
            _ = self._model  # what can fail about the public table fails here
        return lambda: Release(
            self._draw_figures(read(), source),
            self.event,
            reproducible=source.reproducible,
            label=self.label,
            unit=self.unit,
            error=self.error(),
        )

    def release(self, data: Any = None, rng: RngLike = None) -> Release[dict[str, float]]:
        """The noisy figures."""
        return self.prepare(data, rng)()

    def _draw_figures(self, rows: Encoded, rng: Rng) -> dict[str, float]:
        private = CodedTable(rows, self.bins)
        exact = np.array([self._exact(private, name) for name in self.entries], object)
        noisy = np.asarray(self.mechanism.draw(exact, rng), np.float64)
        moves = self.entries.values()
        return {
            name: min(1.0, max(0.0, float(value) * move))
            for name, value, move in zip(self.entries, noisy, moves, strict=True)
        }

    def _exact(self, private: CodedTable, name: str) -> Fraction:
        """A figure over its sensitivity, without rounding: one row moves it by at most 1."""
        if name == "learning":
            assert self.target is not None
            return Fraction(int(correct(self._model, private, self.target).sum()))
        if name == "ranges":
            width = math.comb(self.bins + 1, 2)  # the number of ranges
            gaps = [AllRanges(self.bins).apply(self._gaps(private, (c,))[: self.bins]) for c in self.public.numeric]
            return Fraction(sum(_total(gap) for gap in gaps), len(gaps) * width * len(self.public))
        if not name.endswith("-way"):
            raise ValueError(f"There is no figure {name!r}.")
        marginals = choices(self.public.schema, int(name[0]))
        total = sum(_total(self._gaps(private, names)) for names in marginals)
        return Fraction(total, len(marginals) * len(self.public) * changed_records(self.adjacency))

    def _gaps(self, private: CodedTable, names: Columns) -> NDArray[Any]:
        """h·M - n·s for every cell; in Python's whole numbers where 64 bits might not hold the sum."""
        rows = len(self.public)
        kind: Any = np.int64 if (len(private) + self.n) * rows * (self.bins + 1) ** 2 < 1 << 62 else object
        one, two = paired_counts(private, self.public, names)
        return np.asarray(one.astype(kind) * rows - two.astype(kind) * self.n)

    @cached_property
    def _model(self) -> Any:
        assert self.target is not None
        return train_classifier(self.public, self.target)


def _total(gaps: NDArray[Any]) -> int:
    return int(np.abs(gaps).sum())
