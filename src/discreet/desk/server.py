"""The desk's address: routes, who may call them, and the one shape of every reply."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from discreet.desk.approvals import DECISIONS, decide
from discreet.desk.configuration import Configuration, read_configuration
from discreet.desk.errors import NOT_THERE, Refusal
from discreet.desk.guard import Guard, Metrics
from discreet.desk.openapi import RouteFacts, describe
from discreet.desk.owners import add_person, add_token, raise_limit, revoke_tokens
from discreet.desk.pages import page_routes
from discreet.desk.questions import DeskQuestion
from discreet.desk.replies import Reply
from discreet.desk.requests import line_of, number_of_address, read_body, read_key, read_why, valid
from discreet.desk.service import Service
from discreet.desk.state import Person
from discreet.errors import DiscreetError, extra

with extra("desk"):
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["application", "serve"]

EVERYBODY, DECIDING, READING = ("analyst", "owner", "officer"), ("owner",), ("owner", "officer")
_USUAL = (401, 404, 503)
_NO_TOKEN = (
    "The token is missing, wrong, or has expired: the owner gives a new one (discreet desk token new PERSON). "
    "It stands in the header Authorization: Bearer ...; discreet query takes it from DISCREET_DESK_TOKEN."
)
_Handler = Callable[["Server", Person, Request], Awaitable[Reply]]


class Server:
    """The routes of one service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.metrics = Metrics()
        self.limits = _Limits()

    # --- everybody ---------------------------------------------------------------------------------------------------

    async def desk(self, person: Person, request: Request) -> Reply:
        names = [name for name in self.service.configuration.datasets if person.may_see(name)]
        head = await asyncio.to_thread(self.service.ledger.head)
        return Reply(200, {"version": 1, "person": person.name, "role": person.role, "datasets": names, "head": head})

    async def dataset(self, person: Person, request: Request) -> Reply:
        name = request.path_params["name"]
        return Reply(200, await asyncio.to_thread(self.service.describe, person, name))

    async def explain(self, person: Person, request: Request) -> Reply:
        question = await self._question(person, request)
        return Reply(200, await asyncio.to_thread(self.service.explain, person, question))

    async def release(self, person: Person, request: Request) -> Reply:
        question = await self._question(person, request)
        key = read_key(request)
        return await self.service.release(person, key, question)

    async def stored(self, person: Person, request: Request) -> Reply:
        return await self.service.stored(person, request.path_params["key"])

    async def history(self, person: Person, request: Request) -> Reply:
        mine = await asyncio.to_thread(self.service.state.questions, person.name)
        return Reply(200, {"version": 1, "releases": [line_of(self.service.shown(asking)) for asking in mine]})

    async def cancel(self, person: Person, request: Request) -> Reply:
        await asyncio.to_thread(self.service.cancel, person, request.path_params["key"])
        return Reply(200, {"version": 1, "state": "cancelled"})

    # --- owner and officer -------------------------------------------------------------------------------------------

    async def requests(self, person: Person, request: Request) -> Reply:
        waiting = await asyncio.to_thread(self.service.state.questions, None, "waiting")
        return Reply(200, {"version": 1, "requests": [line_of(asking) for asking in waiting]})

    async def decide(self, person: Person, request: Request) -> Reply:
        why = await read_why(request)
        number, decision = number_of_address(request.path_params["number"]), request.path_params["decision"]
        if decision not in DECISIONS or number is None:
            raise Refusal(404, "not_found", NOT_THERE)
        state, configuration = self.service.state, self.service.configuration
        asking = await asyncio.to_thread(decide, state, configuration, number, decision, by=person.name, why=why)
        return Reply(200, line_of(asking))

    async def people(self, person: Person, request: Request) -> Reply:
        return Reply(200, {"version": 1, "people": await asyncio.to_thread(self.service.people)})

    async def freeze(self, person: Person, request: Request) -> Reply:
        why = await read_why(request)
        await asyncio.to_thread(self.service.state.note, "frozen", why or None)
        return Reply(200, {"version": 1, "frozen": why or None})

    async def books(self, person: Person, request: Request) -> Reply:
        seen = await asyncio.to_thread(self.service.ledger.overview)
        lines = [
            {
                "name": each.name,
                "spent": each.spent.epsilon,
                "limit": {"epsilon": each.limit[0], "delta": each.limit[1]},
                "charges": each.spent.entries,
            }
            for each in seen.books
        ]
        return Reply(200, {"version": 1, "head": seen.head, "books": lines})

    async def verify(self, person: Person, request: Request) -> Reply:
        found = await asyncio.to_thread(self.service.ledger.verify)
        return Reply(200, {"version": 1, "head": found.head, "entries": found.entries, "books": found.books})

    # --- parts -------------------------------------------------------------------------------------------------------

    async def _question(self, person: Person, request: Request) -> DeskQuestion:
        body = await read_body(request)
        question = valid(lambda: DeskQuestion.from_dict(body))
        dataset = self.service.dataset(person, question.dataset)
        self.limits.take(person.name, dataset.name, dataset.rate)
        return question

    async def person_of(self, request: Request) -> Person:
        """Who calls, by the token in the one header where a token is taken from."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        person = None
        if scheme.casefold() == "bearer" and 20 <= len(token) <= 200:
            person = await asyncio.to_thread(self.service.state.person_of, token)
        if person is None:
            raise Refusal(401, "no_token", _NO_TOKEN)
        return person


class _Limits:
    """Questions of each person about each data set in a minute: buckets that fill at the rate of each."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}

    def take(self, person: str, about: str, rate: int) -> None:
        """One question more, or a refusal."""
        now = monotonic()
        level, before = self._buckets.get((person, about), (float(rate), now))
        level = min(float(rate), level + (now - before) * rate / 60)
        if level < 1:
            raise Refusal(429, "too_many", f"At most {rate} questions a minute: wait a little.")
        self._buckets[person, about] = level - 1, now


ROUTES: tuple[tuple[str, str, _Handler, RouteFacts], ...] = (
    ("/v1/desk", "GET", Server.desk, RouteFacts("Who one is, and the data sets", (200, *_USUAL), roles=EVERYBODY)),
    ("/v1/datasets/{name}", "GET", Server.dataset,
     RouteFacts("What is public of a data set", (200, 422, *_USUAL), roles=EVERYBODY)),
    ("/v1/explain", "POST", Server.explain,
     RouteFacts("What a question would do and cost", (200, 422, 429, *_USUAL), "DeskQuestion", roles=EVERYBODY)),
    ("/v1/releases", "POST", Server.release,
     RouteFacts("Ask: charge once, answer once", (201, 202, 402, 409, 422, 429, *_USUAL), "DeskQuestion", "Answer",
               EVERYBODY)),
    ("/v1/releases", "GET", Server.history, RouteFacts("One's own questions", (200, *_USUAL), roles=EVERYBODY)),
    ("/v1/releases/{key}", "GET", Server.stored,
     RouteFacts("A stored answer", (201, 202, 409, *_USUAL), answer="Answer", roles=EVERYBODY)),
    ("/v1/releases/{key}", "DELETE", Server.cancel,
     RouteFacts("Take back a question that waits", (200, 409, *_USUAL), roles=EVERYBODY)),
    ("/v1/requests", "GET", Server.requests, RouteFacts("Questions that wait", (200, *_USUAL), roles=READING)),
    ("/v1/requests/{number}/{decision}", "POST", Server.decide,
     RouteFacts("Approve or decline", (200, 409, 422, *_USUAL), "Decision", roles=DECIDING)),
    ("/v1/people", "GET", Server.people, RouteFacts("Everybody who has a role", (200, *_USUAL), roles=READING)),
    ("/v1/people", "POST", add_person,
     RouteFacts("Add a person: their token, once", (201, 409, 422, *_USUAL), "NewPerson", "Token", DECIDING)),
    ("/v1/people/{name}/tokens", "POST", add_token,
     RouteFacts("One more token for a person", (201, 422, *_USUAL), "Days", "Token", DECIDING)),
    ("/v1/people/{name}/tokens", "DELETE", revoke_tokens,
     RouteFacts("Take back every token of a person", (200, *_USUAL), roles=DECIDING)),
    ("/v1/datasets/{name}/raise", "POST", raise_limit,
     RouteFacts("Raise what a person, or everybody together, may spend", (201, 409, 422, *_USUAL), "Raise",
                roles=DECIDING)),
    ("/v1/freeze", "POST", Server.freeze,
     RouteFacts("Stop all questions, with a reason; without one, go on", (200, 422, *_USUAL), "Decision",
               roles=DECIDING)),
    ("/v1/books", "GET", Server.books, RouteFacts("Where the books stand", (200, *_USUAL), roles=READING)),
    ("/v1/verify", "GET", Server.verify, RouteFacts("Whether the chain holds", (200, *_USUAL), roles=READING)),
)  # fmt: skip
PUBLIC = (
    ("/healthz", "GET", RouteFacts("Whether the desk is up", (200,))),
    ("/metrics", "GET", RouteFacts("Counts of replies", (200,))),
    ("/openapi.json", "GET", RouteFacts("This description", (200,))),
)


def application(service: Service, *, log: bool = True) -> Guard:
    """The desk as an ASGI application."""
    server = Server(service)
    document = describe([(path, method, about) for path, method, _, about in ROUTES] + list(PUBLIC))

    async def health(request: Request) -> Response:
        request.scope["desk_route"] = "/healthz"
        return JSONResponse({"status": "ok"})

    async def metrics(request: Request) -> Response:
        request.scope["desk_route"] = "/metrics"
        return PlainTextResponse(server.metrics.text({"workers": service.configuration.workers}))

    async def openapi(request: Request) -> Response:
        request.scope["desk_route"] = "/openapi.json"
        return JSONResponse(document)

    public = {"/healthz": health, "/metrics": metrics, "/openapi.json": openapi}
    routes = [Route(path, _endpoint(server, path, handler, about), methods=[method])
              for path, method, handler, about in ROUTES]  # fmt: skip
    routes += [Route(path, public[path]) for path, _, _ in PUBLIC]
    routes += page_routes(server)
    inner = Starlette(routes=routes, exception_handlers={HTTPException: _not_there})
    return Guard(inner, service.configuration.hosts, server.metrics, log=log)


def _endpoint(
    server: Server, path: str, handler: _Handler, about: RouteFacts
) -> Callable[[Request], Awaitable[Response]]:
    """A route for those roles alone: to others it is not there."""

    async def answer(request: Request) -> Response:
        request.scope["desk_route"] = path
        try:
            person = await server.person_of(request)
            request.scope["desk_person"] = person.name
            if person.role not in about.roles:
                raise Refusal(404, "not_found", NOT_THERE)
            reply = await handler(server, person, request)
        except Refusal as refusal:
            return JSONResponse(refusal.to_dict(), refusal.status)
        except DiscreetError:  # of a ledger or a state that cannot be read: its words may hold a path
            unavailable = Refusal(503, "unavailable", "The desk cannot read its books: ask its owner.")
            return JSONResponse(unavailable.to_dict(), 503)
        except Exception as error:  # what nobody foresaw says nothing of itself, in a log either: its kind alone
            request.scope["desk_failure"] = type(error).__name__
            unexpected = Refusal(503, "unavailable", "Something unexpected failed at the desk.")
            return JSONResponse(unexpected.to_dict(), 503)
        return JSONResponse(dict(reply.body), reply.status)

    return answer


def _not_there(request: Request, error: Exception) -> Response:
    return JSONResponse(Refusal(404, "not_found", NOT_THERE).to_dict(), 404)


def serve(file: Path, port: int, *, say: Callable[[str], object] = print) -> None:
    """Serve the desk of a configuration until it is stopped."""
    with extra("desk"):
        import uvicorn

        from discreet.desk.connections import Connection
    configuration = read_configuration(file)
    with _only_server(configuration):
        service = Service(configuration)
        try:
            say(f"the desk answers at http://127.0.0.1:{port}")
            uvicorn.run(
                application(service), host="127.0.0.1", port=port, log_level="critical", access_log=False,
                limit_concurrency=512, server_header=False, date_header=False, http=Connection, ws="none",
            )  # fmt: skip
        finally:
            service.close()


@contextmanager
def _only_server(configuration: Configuration) -> Iterator[None]:
    """One server a configuration: a second one would take the first one's questions for interrupted ones."""
    lock = os.open(configuration.folder / ".desk.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DiscreetError("Another server runs this desk: stop it first.") from None
    else:
        yield
    finally:
        os.close(lock)
