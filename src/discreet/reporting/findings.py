"""What was learnt: released numbers that stand in the report beside what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

    @classmethod
    def of_tests(
        cls, title: str, tests: Mapping[str, Any], *, caption: str = "", adjusted: Mapping[str, float] | None = None
    ) -> Finding:
        """A forest plot of released tests (``discreet.inference``) by name: effects, intervals and p-values, and
        ``adjusted`` ones (``discreet.inference.adjust``) if they are given.

        A bar is as long as the longer side of its interval; a test whose interval is the whole line is named below.

        >>> from types import SimpleNamespace
        >>> test = SimpleNamespace(effect=1.5, interval=(1.0, 2.0), confidence=0.95, effect_name="days")
        >>> test.p_value, test.p_relation = 0.003, "="
        >>> Finding.of_tests("Stay", {"treated": test}).caption
        'Bars are 95 % intervals. treated: p = 0.003.'
        """
        known = {name: test for name, test in tests.items() if all(map(math.isfinite, test.interval))}
        if not known:
            raise ValueError("None of the tests has an interval: there is nothing to draw.")
        shares = sorted({f"{100 * test.confidence:g} %" for test in known.values()})
        if adjusted is not None and set(adjusted) != set(tests):
            raise ValueError("adjusted and tests have different names: adjust the tests that are shown.")
        shown = {name: f"p {test.p_relation} {test.p_value:.2g}" for name, test in tests.items()}
        shown |= {name: f"{shown[name]}, adjusted {p:.2g}" for name, p in (adjusted or {}).items()}
        lines = [f"{name}: {shown[name]}" for name in known]
        lines += [f"{name}: no interval, {shown[name]}" for name in tests if name not in known]
        drawn = f"Bars are {' and '.join(shares)} intervals. {'; '.join(lines)}."
        effects = {test.effect_name for test in known.values()}
        return cls(
            title=title,
            labels=list(known),
            values=[test.effect for test in known.values()],
            errors=[max(abs(end - test.effect) for end in test.interval) for test in known.values()],
            axis=effects.pop() if len(effects) == 1 else "effect",
            caption=f"{caption} {drawn}".strip(),
        )

    @classmethod
    def of_survival(cls, title: str, curve: Any, *, caption: str = "") -> Finding:
        """A survival curve (``discreet.inference.kaplan_meier``) at the ends of its periods, with its band.

        A bar is as long as the longer side of the band.

        >>> from types import SimpleNamespace
        >>> band = {"times": [1.0, 2.0], "survival": [0.9, 0.7], "lower": [0.8, 0.5], "upper": [1.0, 0.8]}
        >>> Finding.of_survival("Lives", SimpleNamespace(**band, confidence=0.95)).caption
        'Bars are the 95 % band, which holds the whole curve.'
        """
        sides = zip(curve.survival, curve.lower, curve.upper, strict=True)
        return cls(
            title=title,
            labels=[f"{time:g}" for time in curve.times],
            values=list(curve.survival),
            errors=[max(value - low, high - value) for value, low, high in sides],
            axis="survival",
            caption=f"{caption} Bars are the {100 * curve.confidence:g} % band, which holds the whole curve.".strip(),
        )

    @classmethod
    def of_audit(cls, audit: Any, *, title: str = "What the run's own canaries show") -> Finding:
        """The two bounds on epsilon of an audited run (``optimizer.privacy.audit``), and its verdict.

        >>> from types import SimpleNamespace
        >>> Finding.of_audit(SimpleNamespace(lower=2.6, claimed=3.0, verdict="Consistent: ...")).values
        (2.6, 3.0)
        """
        return cls(
            title=title,
            labels=["at least, by canaries", "at most, as claimed"],
            values=[min(audit.lower, LARGEST), audit.claimed],
            axis="epsilon",
            caption=audit.verdict,
        )

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
