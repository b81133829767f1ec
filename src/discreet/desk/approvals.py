"""What the owner decides: a question that waits is approved, for a time, or declined.

An approval binds the digest of operation, budget and analyst: what runs later is that question, asked by that person,
at that price, or nothing. The charge names it, so that it stands in the chain.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from discreet.desk.configuration import Configuration
from discreet.desk.errors import NOT_THERE, Refusal
from discreet.desk.state import Asking, DeskState
from discreet.errors import choice

__all__ = ["DECISIONS", "decide", "is_over"]

DECISIONS = {"approve": "approved", "decline": "declined"}


def decide(
    state: DeskState, configuration: Configuration, number: int, decision: str, *, by: str, why: str = ""
) -> Asking:
    """Approve or decline the question of that number, which waits."""
    word = choice("decision", decision, DECISIONS)
    asking = state.question_number(number)
    if asking is None or asking.state != "waiting":
        raise Refusal(404, "not_found", NOT_THERE)
    dataset = configuration.datasets.get(asking.question["operation"]["dataset"])
    if dataset is None:
        raise Refusal(404, "not_found", NOT_THERE)
    until = datetime.now(UTC) + timedelta(days=dataset.approval_days)
    facts = {"by": by, "why": why, "digest": asking.digest, "expires": until.isoformat()}
    if not state.move(asking, "waiting", word, decision=facts):
        raise Refusal(409, "busy", "Somebody else decided at the same moment.")
    return state.question_number(number) or asking


def is_over(asking: Asking) -> bool:
    """Whether an approval has expired."""
    return datetime.fromisoformat(asking.decision["expires"]) <= datetime.now(UTC)
