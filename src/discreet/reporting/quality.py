"""The quality report: a synthetic table beside the real one, on one page."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

from discreet.errors import extra
from discreet.release import Release
from discreet.reporting.page import Page, render
from discreet.schema import Declaration, Schema

__all__ = ["QualityReport", "private_quality_report", "quality_report"]


@dataclass(frozen=True, slots=True)
class QualityReport(Page):
    """How good a synthetic table is. ``facts["private"]`` says whether its figures were paid for."""

    def html(self) -> str:
        """One self-contained page: styles and figures inside, no script, nothing fetched."""
        if "event" in self.facts:
            return render("private_quality.html.j2", **self.facts)
        with extra("report"):
            from discreet.reporting import quality_figures as figures
        drawn = {
            "marginals": figures.marginals(self.facts),
            "columns": [figures.column(column, f"column{n}") for n, column in enumerate(self.facts["columns"])],
            "correlation": figures.correlations(self.facts) if len(self.facts["correlation"]["columns"]) > 1 else None,
        }
        return render("quality.html.j2", figures=drawn, **self.facts)


def quality_report(
    real: Any,
    synthetic: Any,
    *,
    schema: Schema | Declaration | str | PathLike[str],
    target: str | None = None,
    **told: Any,
) -> QualityReport:
    """The report of ``discreet.synthesis.quality`` on both tables. It shows private facts: **not for publication**."""
    from discreet.synthesis.quality_facts import quality

    return QualityReport(quality(real, synthetic, schema=schema, target=target, **told))


def private_quality_report(release: Release[dict[str, float]]) -> QualityReport:
    """The report of a released ``QualityCheck``: its figures were paid for, and may be published.

    >>> import discreet as dp
    >>> table, schema = {"age": [20, 60]}, dp.Schema(age=dp.Bounded(0, 100))
    >>> check = dp.synthesis.QualityCheck(synthetic=table, schema=schema, n=2, epsilon=1.0)
    >>> private_quality_report(check.release(table, rng=1)).facts["private"]    # with a seed it is not
    False
    """
    return QualityReport(
        {
            "private": not release.reproducible,
            "figures": dict(release.value),
            "error": release.error,
            "event": str(release.event),
            "unit": str(release.unit),
        }
    )
