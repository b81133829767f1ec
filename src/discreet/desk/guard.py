"""What stands before every route: which host was called, from where, how much is sent, and what no answer lacks.

A desk takes tokens in one header alone, so no page elsewhere can ask in somebody's name; a browser that is led here is
refused all the same, and so is a name that the owner did not list (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any

from discreet.desk.errors import Refusal
from discreet.desk.json_text import LONGEST

__all__ = ["Guard", "Metrics"]

HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
_HOST = re.compile(r"(?P<name>\[[^][/?#]*\]|[^][/?#:]*)(:[0-9]*)?")
SLOWEST = 20.0  # seconds for a request's body: whoever sends it slower holds a connection that others need
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


class Metrics:
    """Counts of replies by route and status: public things only."""

    def __init__(self) -> None:
        self.replies: Counter[tuple[str, int]] = Counter()
        self.listeners: list[Callable[[str, str, int], None]] = []  # told of person, route and status

    def text(self, gauges: Mapping[str, float]) -> str:
        """In the form that Prometheus reads."""
        lines = ["# TYPE discreet_desk_replies_total counter"]
        lines += [
            f'discreet_desk_replies_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self.replies.items())
        ]
        for name, value in gauges.items():
            lines += [f"# TYPE discreet_desk_{name} gauge", f"discreet_desk_{name} {value:g}"]
        return "\n".join(lines) + "\n"


class Guard:
    """An application around the desk's own: it refuses before anything is parsed, and marks every reply."""

    def __init__(self, application: Any, hosts: tuple[str, ...], metrics: Metrics, *, log: bool = True) -> None:
        self._application, self._metrics, self._log = application, metrics, log
        self._hosts = {host.casefold() for host in hosts}

    async def __call__(self, scope: Any, receive: _Receive, send: _Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return

        async def send_marked(message: _Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                named = {name.lower() for name, _ in own}  # pages have a policy of their own, as strict as they can
                message["headers"] = [*own, *(header for header in HEADERS if header[0] not in named)]
                self._note(scope, message["status"])
            await send(message)

        try:
            self._check(scope)
            body = await asyncio.wait_for(_read(receive), SLOWEST)
        except TimeoutError:
            await _reply(send_marked, Refusal(408, "too_slow", f"A request is sent within {SLOWEST:g} seconds."))
            return
        except Refusal as refusal:
            await _reply(send_marked, refusal)
            return

        async def receive_again() -> _Message:
            if body:
                return {"type": "http.request", "body": body.pop(), "more_body": False}
            return await receive()

        await self._application(scope, receive_again, send_marked)

    def _check(self, scope: Any) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        if {b"transfer-encoding", b"content-length"} <= headers.keys():  # where does it end? (RFC 9112, 6.3)
            raise Refusal(400, "two_lengths", "A request has one length: a proxy may see another request in it.")
        if _name_of(headers.get(b"host", b"")) not in self._hosts:
            raise Refusal(421, "wrong_host", "This desk is not called by that name: its owner lists its hosts.")
        origin = headers.get(b"origin")  # of a browser that does not say the other yet
        other = origin is not None and _name_of(origin.partition(b"://")[2]) not in self._hosts
        elsewhere = headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin")
        if other or (elsewhere and not _follows_link(scope, headers)):
            raise Refusal(403, "cross_site", "A page of another site may not ask here.")

    def _note(self, scope: Any, status: int) -> None:
        route = scope.get("desk_route", "none")
        self._metrics.replies[route, status] += 1
        for listener in self._metrics.listeners if "desk_person" in scope else ():
            listener(scope["desk_person"], route, status)
        if self._log:
            at = datetime.now(UTC).isoformat(timespec="seconds")
            facts = {"at": at, "method": scope["method"], "route": route, "status": status}
            who = {name: scope[f"desk_{name}"] for name in ("person", "failure") if f"desk_{name}" in scope}
            print(json.dumps(facts | who), file=sys.stderr, flush=True)


def _name_of(host: bytes) -> str:
    """A host without its port; of what is neither, nothing: addresses are made of it, and paths read off them."""
    named = _HOST.fullmatch(host.decode("latin-1").casefold())
    return named["name"].strip("[]") if named else ""


def _follows_link(scope: Any, headers: Mapping[bytes, bytes]) -> bool:
    """Whether somebody followed a link to a page, from a mail perhaps: without the cookie, which is strict, what they
    see is where to sign in.
    """
    opened = headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-dest") == b"document"
    return opened and scope["method"] == "GET" and not scope["path"].startswith("/v1/")


async def _read(receive: _Receive) -> list[bytes]:
    """The whole body, if it is not too long."""
    chunks, length = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return [b""]
        chunks.append(message.get("body", b""))
        length += len(chunks[-1])
        if length > LONGEST:
            raise Refusal(413, "too_long", f"A request has at most {LONGEST:,} bytes.")
        if not message.get("more_body", False):
            return [b"".join(chunks)]


async def _reply(send: _Send, refusal: Refusal) -> None:
    text = json.dumps(refusal.to_dict()).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode())]
    headers += [(b"connection", b"close")]  # what follows on it was not looked at
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
