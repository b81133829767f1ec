"""What is said of a question in each of its states: the same whenever it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.desk.errors import WITHHELD, Refusal
from discreet.desk.state import Asking

__all__ = ["BUSY", "Reply", "reply_of"]

BUSY = "A question under this key is being answered: ask for it again in a moment."
_ASK_AGAIN = "ask again under this key."


@dataclass(frozen=True, slots=True)
class Reply:
    """A status and what is sent with it."""

    status: int
    body: Mapping[str, Any]


def reply_of(asking: Asking) -> Reply:
    """What is said of a question in its state."""
    question, answer = asking.question, dict(asking.answer)
    facts = {
        "version": 1,
        "state": asking.state,
        "number": asking.number,
        "key": asking.key,
        "dataset": question["operation"]["dataset"],
        "label": question["label"],
    }
    match asking.state:
        case "answered":
            return Reply(201, facts | answer)
        case "withheld":
            return Reply(201, facts | answer | {"message": WITHHELD})
        case "waiting":
            return Reply(202, facts | {"message": f"The owner of the data is asked first: {_ASK_AGAIN}"})
        case "approved":
            return Reply(202, facts | {"message": f"The owner has approved this: {_ASK_AGAIN}"})
        case "running":
            return Reply(202, facts | {"message": BUSY})
        case "declined" | "cancelled" | "expired":
            why = asking.decision.get("why", "")
            raise Refusal(409, asking.state, f"The question was {asking.state}. {why}".strip())
    raise AssertionError(asking.state)
