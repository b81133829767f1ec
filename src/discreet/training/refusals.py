"""What a private run refuses."""

from __future__ import annotations

from discreet.errors import DiscreetError

__all__ = ["MixedRecords", "PrivateTrainingError"]


class PrivateTrainingError(DiscreetError):
    """A private run was asked for something its guarantee does not cover."""


class MixedRecords(PrivateTrainingError):
    """A model or a loss lets one record's gradient depend on another record."""
