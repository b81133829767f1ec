"""Where each page is, who may see it, and what stands before it: a session, the right origin, one kind of refusal."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from discreet.desk.errors import NOT_THERE, Refusal
from discreet.desk.pages import answered, asking, home, officer, owner, past, planner
from discreet.desk.pages.forms import PageForm
from discreet.desk.pages.refusals import refused, unknown_page
from discreet.desk.pages.views import HEADERS, page, static_file
from discreet.desk.pages.visits import ASKING, DECIDING, EVERYBODY, READING, PageServer, Visit
from discreet.errors import DiscreetError, extra

with extra("desk"):
    from starlette.requests import Request
    from starlette.responses import JSONResponse, RedirectResponse, Response
    from starlette.routing import Route

if TYPE_CHECKING:
    from discreet.desk.server import Server

__all__ = ["PAGES", "page_routes"]

COOKIE = "discreet_desk"
OVER_TLS = f"__Host-{COOKIE}"  # which a browser takes from this very host alone: no neighbour's domain can plant one
LOCAL = ("127.0.0.1", "localhost", "[::1]")

_Handler = Callable[[Visit], Any]

PAGES: tuple[tuple[str, Mapping[str, _Handler], tuple[str, ...]], ...] = (
    ("/", {"GET": home.home}, EVERYBODY),
    ("/data/{name}", {"GET": home.dataset}, EVERYBODY),
    ("/data/{name}/ask", {"GET": asking.ask, "POST": asking.ask}, ASKING),
    ("/data/{name}/confirm", {"POST": asking.confirm}, ASKING),
    ("/data/{name}/release", {"POST": asking.release}, ASKING),
    ("/answers/{key}", {"GET": answered.answer, "POST": answered.change}, ASKING),
    ("/answers/{key}/{form}", {"GET": answered.download}, ASKING),
    ("/history", {"GET": past.history}, ASKING),
    ("/compare", {"GET": past.compare}, ASKING),
    ("/planner", {"GET": planner.plan}, EVERYBODY),
    ("/requests", {"GET": owner.requests}, READING),
    ("/requests/{number}", {"POST": owner.decide_request}, DECIDING),
    ("/people", {"GET": owner.people}, READING),
    ("/people/change", {"POST": owner.change_people}, DECIDING),
    ("/limits", {"POST": owner.raise_limit}, DECIDING),
    ("/freeze", {"POST": owner.freeze}, DECIDING),
    ("/spending", {"GET": owner.spending}, READING),
    ("/checklist", {"GET": owner.checklist}, DECIDING),
    ("/ledger", {"GET": officer.ledger}, READING),
    ("/ledger/export", {"GET": officer.export}, READING),
    ("/verify", {"GET": officer.verify, "POST": officer.verify}, READING),
    ("/hazards/{name}", {"GET": officer.hazards}, READING),
    ("/report/{name}.{form}", {"GET": officer.report}, READING),
)


def page_routes(server: Server) -> list[Route]:
    """The routes of all pages, and at the end that of addresses where there is none."""
    desk = PageServer(server)
    routes = [Route(path, _endpoint(desk, path, handlers, roles), methods=list(handlers))
              for path, handlers, roles in PAGES]  # fmt: skip
    return [
        Route("/sign-in", _sign_in(desk), methods=["GET", "POST"]),
        Route("/sign-out", _sign_out(desk), methods=["POST"]),
        Route("/static/{name}", _static, methods=["GET"]),
        *routes,
        Route("/{rest:path}", _nothing(desk), methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
    ]


def _endpoint(
    desk: PageServer, path: str, handlers: Mapping[str, _Handler], roles: tuple[str, ...]
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        person = await _person(desk, request)
        if person is None:
            back = request.url.path if request.method == "GET" else "/"
            return RedirectResponse(f"/sign-in?next={quote(back)}", 303, headers=HEADERS)
        request.scope["desk_person"] = person.name
        visit = Visit(desk, person, request, PageForm(b""))
        try:
            if person.role not in roles:
                raise Refusal(404, "not_found", NOT_THERE)
            visit = Visit(desk, person, request, await _form(request), PageForm(request.url.query.encode()))
            reply = await _run(handlers["GET" if request.method == "HEAD" else request.method], visit)
        except Refusal as refusal:
            reply = await asyncio.to_thread(refused, visit, refusal)
        return reply

    return _safely(path, answer)


def _safely(path: str, answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """What goes wrong says nothing of itself: its words may hold a path, or more."""

    async def answer_safely(request: Request) -> Response:
        request.scope["desk_route"] = path
        try:
            return await answer(request)
        except Refusal as refusal:
            return page("broken.html.j2", refusal.status, refusal=refusal)
        except DiscreetError:
            what = "The desk cannot read its books: ask its owner."
        except Exception as error:  # what nobody foresaw: in the log, too, its kind alone
            request.scope["desk_failure"] = type(error).__name__
            what = "Something unexpected failed at the desk."
        return page("broken.html.j2", 503, refusal=Refusal(503, "unavailable", what))

    return answer_safely


async def _run(handler: _Handler, visit: Visit) -> Response:
    if inspect.iscoroutinefunction(handler):
        awaited: Response = await handler(visit)
        return awaited
    reply: Response = await asyncio.to_thread(handler, visit)
    return reply


async def _person(desk: PageServer, request: Request) -> Any:
    session = request.cookies.get(_cookie(request), "")
    if not 20 <= len(session) <= 200:
        return None
    return await asyncio.to_thread(desk.sessions.person_of, session)


def _cookie(request: Request) -> str:
    """The name of the session's cookie: over TLS, one that only this host can set."""
    return COOKIE if request.headers.get("host", "").rpartition(":")[0] in LOCAL else OVER_TLS


async def _form(request: Request) -> PageForm:
    """What was sent by a page of this desk: a browser says where a form was sent from, and another site cannot lie."""
    if request.method in ("GET", "HEAD"):
        return PageForm(b"")
    if urlsplit(request.headers.get("origin", "")).netloc != request.headers.get("host", "-"):
        raise Refusal(403, "cross_site", "This was not sent from a page of the desk: open the page and send it again.")
    return PageForm(await request.body())


def _sign_in(desk: PageServer) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        query = PageForm(request.url.query.encode())
        if request.method != "POST":
            return page("sign_in.html.j2", next=_local(query.text("next")), problem="")
        try:
            form = await _form(request)
        except Refusal as refusal:
            return page("sign_in.html.j2", refusal.status, next="/", problem=refusal.message)
        token, back = form.text("token"), _local(form.text("next"))
        session = None
        if 20 <= len(token) <= 200:
            session = await asyncio.to_thread(desk.sessions.begin, token)
        if session is None:
            problem = (
                "No such token: it was mistyped, has expired, or was taken back. The owner of the data gives a new one."
            )
            return page("sign_in.html.j2", 401, next=back, problem=problem)
        reply = RedirectResponse(back, 303, headers=HEADERS)
        name = _cookie(request)
        reply.set_cookie(name, session, httponly=True, samesite="strict", secure=name == OVER_TLS, path="/",
                         max_age=int(desk.sessions.hours * 3600))  # fmt: skip
        return reply

    return _safely("/sign-in", answer)


def _sign_out(desk: PageServer) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        await _form(request)
        name = _cookie(request)
        await asyncio.to_thread(desk.sessions.end, request.cookies.get(name, ""))
        reply = RedirectResponse("/sign-in", 303, headers=HEADERS)
        reply.delete_cookie(name, path="/", httponly=True, samesite="strict", secure=name == OVER_TLS)
        return reply

    return _safely("/sign-out", answer)


def _local(address: str) -> str:
    """An address of this desk; whatever could lead elsewhere is the first page."""
    plain = address.startswith("/") and not address.startswith("//") and "\\" not in address and address.isprintable()
    return address if plain else "/"


async def _static(request: Request) -> Response:
    request.scope["desk_route"] = "/static"
    return static_file(request.path_params["name"]) or unknown_page()


def _nothing(desk: PageServer) -> Callable[[Request], Awaitable[Response]]:
    """An address where nothing is: for a browser a page, the same as for what somebody may not see."""

    async def answer(request: Request) -> Response:
        refusal = Refusal(404, "not_found", NOT_THERE)
        if request.url.path.startswith("/v1/") or "text/html" not in request.headers.get("accept", ""):
            return JSONResponse(refusal.to_dict(), 404)
        person = await _person(desk, request)
        if person is None:
            return unknown_page()
        return await asyncio.to_thread(refused, Visit(desk, person, request, PageForm(b"")), refusal)

    return _safely("none", answer)
