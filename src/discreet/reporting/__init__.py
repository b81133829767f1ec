"""The privacy report: what a book released, at what cost, and what that means, for people and for machines."""

from __future__ import annotations

from discreet.reporting.document import Report, report
from discreet.reporting.findings import Finding
from discreet.reporting.quality import QualityReport, private_quality_report, quality_report

__all__ = ["Finding", "QualityReport", "Report", "private_quality_report", "quality_report", "report"]
