"""What an owner does over HTTP: people, tokens, raises. The same is done at the command line (``people``)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.desk.errors import Refusal
from discreet.desk.questions import check_label
from discreet.desk.replies import Reply
from discreet.desk.requests import read_body, valid
from discreet.desk.state import Person

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["add_person", "add_token", "raise_limit", "revoke_tokens"]

_NEW = "This takes an object with name, role, shares (a data set: epsilon, delta) and, if not 90, days."
_RAISE = "This takes an object with epsilon or delta, why and, for one person's part, person."


async def add_person(server: Any, person: Person, request: Request) -> Reply:
    """A person and their sub-books; the token stands in this reply and nowhere else."""
    match await read_body(request):
        case {"name": str(name), "role": str(role), **rest} if set(rest) <= {"shares", "days"}:
            shares, days = _shares(rest.get("shares", {})), _number(rest.get("days", 90.0))
        case _:
            raise Refusal(422, "invalid", _NEW)
    valid(lambda: check_label(name))
    token = await asyncio.to_thread(server.service.add_person, name, role, shares, days=days)
    return Reply(201, {"version": 1, "name": name, "token": token})


def _shares(wire: Any) -> dict[str, tuple[float, float]]:
    if not isinstance(wire, Mapping) or not all(isinstance(share, dict) for share in wire.values()):
        raise Refusal(422, "invalid", _NEW)
    if any("epsilon" not in share or set(share) - {"epsilon", "delta"} for share in wire.values()):
        raise Refusal(422, "invalid", _NEW)
    return {name: (_number(share["epsilon"]), _number(share.get("delta", 0.0))) for name, share in wire.items()}


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Refusal(422, "invalid", "epsilon, delta and days are numbers.")
    return float(value)


async def add_token(server: Any, person: Person, request: Request) -> Reply:
    """One more token."""
    name = request.path_params["name"]
    match await read_body(request):
        case {**rest} if set(rest) <= {"days"}:
            token = await asyncio.to_thread(server.service.new_token, name, days=_number(rest.get("days", 90.0)))
            return Reply(201, {"version": 1, "name": name, "token": token})
    raise Refusal(422, "invalid", "This takes an object with days, or an empty one.")


async def revoke_tokens(server: Any, person: Person, request: Request) -> Reply:
    """Every token of a person, taken back; what they have queued is not charged."""
    count = await asyncio.to_thread(server.service.revoke, request.path_params["name"])
    return Reply(200, {"version": 1, "revoked": count})


async def raise_limit(server: Any, person: Person, request: Request) -> Reply:
    """More of a budget, with the reason that the report repeats."""
    match await read_body(request):
        case {"why": str(why), **rest} if set(rest) <= {"epsilon", "delta", "person"}:
            whose = rest.get("person")
            if whose is not None and not isinstance(whose, str):
                raise Refusal(422, "invalid", _RAISE)
        case _:
            raise Refusal(422, "invalid", _RAISE)
    valid(lambda: check_label(why))
    amounts = {name: _number(rest.get(name, 0.0)) for name in ("epsilon", "delta")}
    name = request.path_params["name"]
    entered = await asyncio.to_thread(server.service.raise_limit, person, name, whose, why=why, **amounts)
    return Reply(201, {"version": 1, **entered})
