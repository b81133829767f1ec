"""What is read of a request, and what is said of a question: public mistakes are refused here, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.desk.errors import Refusal
from discreet.desk.json_text import read_object
from discreet.desk.questions import check_label
from discreet.desk.state import Asking
from discreet.ledger.units import checked_key

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["key_of_address", "line_of", "number_of_address", "read_body", "read_key", "read_why", "valid"]

Built = TypeVar("Built")


def valid(build: Callable[[], Built]) -> Built:
    """What is built, or what is wrong with it as a refusal."""
    try:
        return build()
    except ValueError as error:
        raise Refusal(422, "invalid", str(error)) from None


def read_key(request: Request) -> str:
    """The key of a question."""
    key = request.headers.get("idempotency-key")
    if key is None:
        raise Refusal(422, "invalid", "Idempotency-Key is missing: a new one for each question.")
    return valid(lambda: key_of_address(key))


def key_of_address(key: str) -> str:
    """A key that can stand in an address, where its answer is found again."""
    if len(key) > 100 or "/" in key or not key.strip("."):
        raise ValueError("The key of a question has 1 to 100 characters, without '/', and is not made of dots alone.")
    return checked_key(key)


def number_of_address(text: str) -> int | None:
    """The number of a question or an entry, or none where there can be no such number.

    >>> number_of_address("12"), number_of_address("²"), number_of_address("9" * 5000)
    (12, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


async def read_body(request: Request) -> dict[str, Any]:
    """The object that was sent."""
    body = await request.body()
    return valid(lambda: read_object(body))


async def read_why(request: Request) -> str:
    """The reason that was sent, and nothing else."""
    match await read_body(request):
        case {"why": str(why), **rest} if not rest:
            return valid(lambda: check_label(why))
    raise Refusal(422, "invalid", "This takes an object with why.")


def line_of(asking: Asking) -> dict[str, Any]:
    """A question without its answer."""
    return {"number": asking.number, "person": asking.person, "key": asking.key, "state": asking.state, "at": asking.at,
            "digest": asking.digest, "question": dict(asking.question), "decision": dict(asking.decision),
            "entry": asking.answer.get("entry")}  # fmt: skip
