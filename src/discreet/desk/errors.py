"""How the desk says no: one shape of error on the wire, one exception at each end.

DiscreetError
└── DeskError            a desk answered with an error: its status, its code, its own words
    └── ApprovalNeeded   the question waits for the owner of the data
"""

from __future__ import annotations

from typing import Any

from discreet.errors import DiscreetError

__all__ = ["NOT_THERE", "WITHHELD", "ApprovalNeeded", "DeskError", "Refusal"]

WITHHELD = (
    "The question was charged and its answer is withheld: it was late, or it was interrupted. Nothing is refunded, and "
    "neither reason tells of a record."
)
NOT_THERE = "There is nothing at this address, or nothing that this token may see."


class Refusal(Exception):
    """What the server answers instead: made of public facts alone."""

    def __init__(self, status: int, code: str, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.facts = status, code, message, facts

    def to_dict(self) -> dict[str, Any]:
        """The one shape of an error."""
        return {"error": {"code": self.code, "message": self.message, **self.facts}}


class DeskError(DiscreetError):
    """What a desk answered, at the client; ``key`` is that of the question, where there is one to ask again."""

    def __init__(self, message: str, *, status: int, code: str, key: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.key = status, code, key


class ApprovalNeeded(DeskError):
    """The question waits for the owner: ask again with the same ``key`` when it was approved."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message, status=202, code="waiting", key=key)
