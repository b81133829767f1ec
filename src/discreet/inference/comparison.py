"""Tests of the columns of a file or a frame, whose public facts a schema declares.

Bounds, categories and the unit come from the schema, and so does the test, unless it is named. How an entry is read is
``encoding``'s, as for models and synthetic tables: a unit's first row counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from discreet.encoding import Encoded, Encoder
from discreet.errors import choice
from discreet.events import Event
from discreet.inference.anova import Anova
from discreet.inference.chi_squared import Independence
from discreet.inference.correlation import Correlation
from discreet.inference.hypothesis import NoisyTest, ReleasedTest, released
from discreet.inference.log_rank import LogRank
from discreet.inference.means import OneSample, Paired, Welch
from discreet.inference.quantiles import QuantileTest
from discreet.inference.ranks import KolmogorovSmirnov, MannWhitney
from discreet.inference.two_proportions import TwoProportions
from discreet.random import RngLike
from discreet.release import ONE_RECORD, Chargeable, Enforced, charged
from discreet.schema import Bounded, Categories, Column, Dates, Declaration, Times, Unlisted, as_declaration

__all__ = ["ColumnComparison", "compare"]

_BINS = 20  # of a bounded column, where a test needs bins


@dataclass(frozen=True)
class ColumnComparison:
    """A test of declared columns of a table, as an operation: ``release(data)`` takes columns, a frame or a path.

    >>> from discreet.schema import Schema
    >>> facts = Declaration(Schema(treated=Categories(["yes", "no"]), days=Bounded(0, 30)))
    >>> asked = ColumnComparison(facts, Welch(bounds=(0, 30), epsilon=1.0), ("treated", "days"))
    >>> rows = {"treated": ["yes", "no"] * 500, "days": [9, 7] * 500}
    >>> round(asked.release(rows, rng=1).difference)
    2
    """

    declaration: Declaration = field(repr=False)
    test: NoisyTest
    columns: tuple[str, ...]

    @property
    def label(self) -> str:
        """What it is called in a book."""
        return f"{self.test.label}: {', '.join(self.columns)}"

    @property
    def event(self) -> Event:
        """The cost."""
        return self.test.event

    @property
    def unit(self) -> str:
        """Whom it protects: a row, or the schema's unit, of which one row counts."""
        name = self.declaration.unit
        return ONE_RECORD if name is None else Enforced(name)

    def prepare(self, data: Any = None, rng: RngLike = None) -> Callable[[], ReleasedTest]:
        """Refuse what public facts can tell, read nothing, and return what reads."""
        read = Encoder(self.declaration, self.columns).prepare(data)
        self.test.prepare(_beside([np.zeros(0) for _ in self.columns]), rng)  # warns of a test that can show nothing
        test = replace(self.test, n_expected=None)

        def run() -> ReleasedTest:
            rows = read()
            answer = test.release(_beside([_column(rows, name, name == self._outcome) for name in self.columns]), rng)
            named = replace(answer.value, effect_name=self._with_labels(answer.value.effect_name))
            return replace(released(answer), value=named, label=self.label, unit=self.unit)

        return run

    def release(self, data: Any = None, rng: RngLike = None) -> ReleasedTest:
        """Read the columns and test them."""
        return self.prepare(data, rng)()

    @property
    def _outcome(self) -> str | None:
        """The column of two labels of which one is a success, or an event."""
        place = {TwoProportions: 1, LogRank: 2}.get(type(self.test))
        return None if place is None else self.columns[place]

    def _with_labels(self, effect: str) -> str:
        """An effect's name with the labels that are compared, and the one that is counted."""
        groups = self.declaration.schema[self.columns[0]]
        if isinstance(groups, Categories) and len(groups.labels) == 2:
            names = dict(zip(("first", "second"), map(str, groups.labels), strict=True))
            effect = re.sub("first|second", lambda found: names[found[0]], effect)
        if isinstance(self.test, TwoProportions):
            outcomes = self.declaration.schema[self.columns[1]]
            assert isinstance(outcomes, Categories)
            effect = effect.replace("shares", f"shares of {outcomes.labels[_one_of(outcomes)]}", 1)
        return effect


def _beside(columns: list[Any]) -> Any:
    """What a test reads: one column, or several side by side."""
    return columns[0] if len(columns) == 1 else tuple(columns)


def _column(rows: Encoded, name: str, outcome: bool) -> Any:
    """Numbers inside their bounds, or the numbers of labels; of an outcome 1 for what is counted."""
    column = rows.schema[name]
    if isinstance(column, Bounded):
        return rows.numbers(name)
    codes = rows.codes(name)
    if not outcome:
        return codes
    assert isinstance(column, Categories)
    return np.where(codes < 0, codes, codes == _one_of(column))


def _one_of(column: Categories) -> int:
    """Which of two labels is a success, or an event: 1 or true, wherever it stands, and otherwise the second."""
    return next((place for place, label in enumerate(column.labels) if label in (1, "1")), 1)


def compare(
    data: Any,
    by: str,
    of: str | None = None,
    *further: str,
    schema: Any,
    test: str | None = None,
    book: Chargeable | None = None,
    label: str = "",
    rng: RngLike = None,
    **asked: Any,
) -> ReleasedTest:
    """A test of the columns ``by`` and ``of``, or of one column; the book is charged before a value is read.

    Without ``test`` the columns' kinds decide: "welch" for two categories and a bounded column, "anova" for more,
    "independence" for two columns of categories, "correlation" for two bounded ones. Further tests: "mann-whitney",
    "kolmogorov-smirnov", "two-proportions", "paired" of two bounded columns, and "log-rank", which takes the column of
    events too; of one column "one-sample" and "quantile", with ``null=``. The first label is compared with the second;
    of outcomes and events the label 1 (or true) is counted, of other labels the second.
    Options are those of the test: epsilon, delta, rho, alternative, confidence, ...

    >>> from discreet.schema import Schema
    >>> facts = Schema(treated=Categories(["yes", "no"]), days=Bounded(0, 30))
    >>> rows = {"treated": ["yes", "no"] * 500, "days": [9, 7] * 500}
    >>> answer = compare(rows, "treated", "days", schema=facts, epsilon=1.0, rng=1)
    >>> answer.p_value < 0.001, round(answer.difference)
    (True, 2)
    """
    declared, columns = as_declaration(schema), (by, *further) if of is None else (by, of, *further)
    facts = [declared.schema[name] for name in columns]
    kind = _usual_test(facts) if test is None else test
    subject, make = choice("test", kind, _TESTS)
    if (len(columns) == 1) != (kind in _OF_ONE_COLUMN):
        raise ValueError(f"{subject} takes {'one column' if kind in _OF_ONE_COLUMN else 'two columns: by and of'}.")
    if asked.get("n") is not None:
        raise ValueError("n is given, but of a table's rows the number is private: leave it out, or test the values.")
    if "null" in asked and kind not in _WITH_NULL:
        raise ValueError(f"null is given, but {subject} has one null hypothesis only: leave it out.")
    made = make([_Fact(name, column, subject) for name, column in zip(columns, facts, strict=True)], asked)
    if not isinstance(made, LogRank) and further:
        raise ValueError(f"{further[0]!r} is given, but only the log-rank test takes a third column: leave it out.")
    return charged(ColumnComparison(declared, made, columns), data, book=book, label=label, rng=rng)  # type: ignore[return-value]


def _usual_test(facts: list[Any]) -> str:
    if len(facts) == 1:
        raise ValueError(f"There is one column: give another with of=, or one of {_OF_ONE_COLUMN} as test=.")
    first, second = (isinstance(column, Categories) for column in facts[:2])
    if first and second:
        return "independence"
    if first:
        return "welch" if len(facts[0].labels) == 2 else "anova"
    if second:
        raise ValueError("of is a column of categories, but by is not: give the columns in the other order.")
    return "correlation"


_KINDS = {Bounded: "numbers", Categories: "categories", Dates: "dates", Times: "times", Unlisted: "unlisted values"}


class _Fact(NamedTuple):
    """What is declared of a column, and what a test needs of it. ``test`` is the subject of a refusal."""

    name: str
    column: Column
    test: str

    def categories(self, count: int | None = None) -> tuple[int, ...]:
        """The numbers of the column's labels, as many as are needed."""
        column = self.column
        if isinstance(column, Categories) and count in (None, len(column.labels)):
            return tuple(range(len(column.labels)))
        raise self._refusal("categories" if count is None else f"exactly {count} categories", "categories = [...]")

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of a column of numbers."""
        if isinstance(self.column, Bounded):
            return self.column.low, self.column.high
        raise self._refusal("numbers", "bounds = [low, high]")

    @property
    def bins(self) -> tuple[float, ...]:
        """Bins of equal width between them."""
        return tuple(np.linspace(*self.bounds, _BINS + 1).tolist())

    def _refusal(self, needed: str, spelled: str) -> ValueError:
        kind = _KINDS[type(self.column)]
        count = f"{len(self.column.labels)} " if isinstance(self.column, Categories) else ""
        return ValueError(f"{self.name} is declared as {count}{kind}; {self.test} needs {needed} ({spelled}).")


def _two_proportions(facts: list[_Fact], asked: Mapping[str, Any]) -> NoisyTest:
    facts[1].categories(2)
    return TwoProportions(groups=facts[0].categories(2), **asked)


def _log_rank(facts: list[_Fact], asked: Mapping[str, Any]) -> NoisyTest:
    if len(facts) != 3:
        raise ValueError(
            "The log-rank test needs three columns: groups, times and events (of which 1 is one). Give it."
        )
    facts[0].categories(2), facts[2].categories(2)
    return LogRank(groups=(0, 1), **{"horizon": facts[1].bounds[1], **asked})


def _paired(facts: list[_Fact], asked: Mapping[str, Any]) -> NoisyTest:
    ends = [fact.bounds for fact in facts]
    return Paired(bounds=(min(low for low, _ in ends), max(high for _, high in ends)), **asked)


_OF_ONE_COLUMN = ("one-sample", "quantile")
_WITH_NULL = ("welch", "paired", *_OF_ONE_COLUMN)
_TESTS: dict[str, tuple[str, Callable[[list[_Fact], Mapping[str, Any]], NoisyTest]]] = {
    "welch": ("Welch's test", lambda f, asked: Welch(groups=f[0].categories(2), bounds=f[1].bounds, **asked)),
    "anova": ("analysis of variance", lambda f, asked: Anova(groups=f[0].categories(), bounds=f[1].bounds, **asked)),
    "correlation": ("a correlation", lambda f, asked: Correlation(bounds=(f[0].bounds, f[1].bounds), **asked)),
    "independence": (
        "a test of independence",
        lambda f, asked: Independence(rows=f[0].categories(), columns=f[1].categories(), **asked),
    ),
    "mann-whitney": (
        "the Mann-Whitney test",
        lambda f, asked: MannWhitney(groups=f[0].categories(2), **{"bins": f[1].bins, **asked}),
    ),
    "kolmogorov-smirnov": (
        "the Kolmogorov-Smirnov test",
        lambda f, asked: KolmogorovSmirnov(groups=f[0].categories(2), **{"bins": f[1].bins, **asked}),
    ),
    "one-sample": ("a one-sample test", lambda f, asked: OneSample(bounds=f[0].bounds, **asked)),
    "paired": ("a paired test", _paired),
    "quantile": ("a test of a quantile", lambda f, asked: QuantileTest(**{"bins": f[0].bins, **asked})),
    "two-proportions": ("a test of two proportions", _two_proportions),
    "log-rank": ("the log-rank test", _log_rank),
}
"""Tests by name: how a refusal calls each, and what makes it of the columns' facts."""
