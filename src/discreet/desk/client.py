"""The analyst's end of a desk: the local builder of questions over the public facts of a table, and a way to ask.

Explaining and rehearsing happen here, on empty and on made-up tables: the same code as the server's, and no traffic.
Every question that is asked has a key of its own, so that a lost connection is answered by asking again: the desk
charges once for a key.
"""

from __future__ import annotations

import secrets
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from discreet.desk.answers import read_frame
from discreet.desk.earlier import earlier_answers, said_of
from discreet.desk.errors import ApprovalNeeded, DeskError
from discreet.desk.public_tables import empty_table, made_up_table
from discreet.desk.questions import BuilderCall, DeskBudget, DeskQuestion
from discreet.desk.whole_tables import FitQuestion, SynthesisQuestion, read_whole_table
from discreet.errors import BudgetExceeded, choice, extra
from discreet.events import Event
from discreet.release import Release
from discreet.schema import declaration
from discreet.tables.answers import as_table
from discreet.tables.expressions import Expression
from discreet.tables.operation import Explanation
from discreet.tables.query import TableQuery
from discreet.tables.table import Table

if TYPE_CHECKING:
    import httpx

__all__ = ["Desk", "DeskQuery", "DeskRelease", "DeskTable", "connect"]

_TRIES = 4  # of a request whose connection was lost: the key makes them one
_LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class DeskRelease(Release[Any]):
    """A release that a desk made: as one of a local table, with its entry in the ledger, and the head just then."""

    entry: int = field(default=0, compare=False)
    head: str = field(default="", compare=False)
    key: str = field(default="", compare=False)


def connect(
    url: str,
    token: str,
    *,
    frames: Literal["polars", "pandas"] = "polars",
    transport: httpx.BaseTransport | None = None,
) -> Desk:
    """A desk at an address, asked with a token. ``frames`` says which kind answers are; ``transport`` is httpx's, for a
    proxy or a certificate of one's own.

    A token is sent over TLS alone, or to this machine: to whoever listens in between, it would be theirs as well.
    """
    with extra("desk"):
        import httpx
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise ValueError("url must be the address of a desk, as https://desk.example, without a token in it.")
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        raise ValueError("url begins with http:, over which anybody in between reads the token: use https.")
    client = httpx.Client(
        base_url=url,
        headers={"Authorization": f"Bearer {token}"},
        timeout=httpx.Timeout(60.0, read=None),
        follow_redirects=False,
        transport=transport,
    )
    return Desk(client, frames)


class Desk:
    """A desk, asked with one person's token, which is never shown."""

    def __init__(self, client: httpx.Client, frames: Literal["polars", "pandas"] = "polars") -> None:
        self._client, self._frames = client, choice("frames", frames, {"polars": "polars", "pandas": "pandas"})

    def __repr__(self) -> str:
        return f"<Desk {self._client.base_url}>"

    def _repr_html_(self) -> str:
        about = self.about()
        facts = {"desk": str(self._client.base_url), "person": about["person"], "role": about["role"],
                 "data sets": ", ".join(about["datasets"])}  # fmt: skip
        return as_table(facts)

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def about(self) -> dict[str, Any]:
        """Your name and role, the data sets you may ask about, and the head of the ledger: keep it elsewhere."""
        return self._call("GET", "/v1/desk")

    def budget(self, name: str) -> dict[str, Any]:
        """What you may spend on a data set, and what is left of it."""
        facts = self._call("GET", f"/v1/datasets/{_part(name)}")
        return {key: facts[key] for key in ("limit", "left", "largest_epsilon", "approval_above")}

    def table(self, name: str) -> DeskTable:
        """A data set as a table whose questions are asked here."""
        facts = self._call("GET", f"/v1/datasets/{_part(name)}")
        made_up = (facts["schema"], facts["facts"])
        return DeskTable(self, name, empty_table(name, *made_up), made_up)

    def history(self) -> list[dict[str, Any]]:
        """Your own questions, the newest first."""
        return list(self._call("GET", "/v1/releases")["releases"])

    def release_of(self, key: str) -> DeskRelease:
        """The stored answer to a question that was asked under a key."""
        return _release(self._call("GET", f"/v1/releases/{_part(key)}"), self._frames)

    def cancel(self, key: str) -> None:
        """Take back a question that waits for its owner: before it is charged, and never after."""
        self._call("DELETE", f"/v1/releases/{_part(key)}")

    def ask(self, question: DeskQuestion, key: str | None = None) -> DeskRelease:
        """The answer to a question; asked again under the same key until it is there."""
        key = key or secrets.token_urlsafe(16)
        while True:
            reply = self._post(question, key)
            if reply["state"] != "running":
                return _release(reply, self._frames)
            time.sleep(0.2)  # another request with this key is at work

    def _post(self, question: DeskQuestion, key: str) -> dict[str, Any]:
        """What the desk says of a question; where it may have been charged and nobody said so, the key goes along: a
        new one would be a second charge.
        """
        try:
            return self._call("POST", "/v1/releases", json=question.to_dict(), headers={"Idempotency-Key": key})
        except DeskError as error:
            if error.code == "busy":
                return {"state": "running"}
            if 0 < error.status < 500:
                raise
            unsure = f"{error} Ask again with key={key!r}: whatever became of it, it is charged once."
            raise DeskError(unsure, status=error.status, code=error.code, key=key) from None

    def _call(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        import httpx

        for attempt in range(_TRIES):
            try:
                response = self._client.request(method, path, **content)
                break
            except httpx.TransportError as error:
                if attempt == _TRIES - 1:
                    silent = f"No desk answers at {self._client.base_url} ({type(error).__name__}): does it run there?"
                    raise DeskError(silent, status=0, code="no_connection") from None
                time.sleep(0.1 * 2**attempt)
        try:
            body = response.json()
        except ValueError:
            body = {}
        if response.status_code >= 400:
            raise _failure(response.status_code, body)
        return dict(body)


def _part(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


def _failure(status: int, body: Mapping[str, Any]) -> Exception:
    """What the desk refused, as the exception that a local table would raise."""
    error = body.get("error", {})
    message = str(error.get("message", f"The desk answered with status {status}."))
    if status == 402:
        return BudgetExceeded(message)
    if status == 422:
        return ValueError(message)
    return DeskError(message, status=status, code=str(error.get("code", "unknown")))


def _value(reply: Mapping[str, Any], frames: str) -> Any:
    """A fitted model, where there is one; otherwise a frame."""
    if "model" in reply:
        from discreet.linear.saved import loads

        return loads(reply["model"])
    frame = read_frame(reply["columns"])
    return frame.to_pandas() if frames == "pandas" else frame


def _release(reply: Mapping[str, Any], frames: str) -> DeskRelease:
    if reply["state"] == "withheld":
        raise DeskError(reply["message"], status=201, code="withheld")
    if reply["state"] != "answered":
        raise ApprovalNeeded(f"{reply['message']} key={reply['key']!r}", reply["key"])
    return DeskRelease(
        _value(reply, frames),
        Event.from_dict(reply["event"]),
        label=reply["label"],
        unit=reply["unit"],
        error=reply["error"],
        entry=reply["entry"],
        head=reply["head"],
        key=reply["key"],
    )


@dataclass(frozen=True)
class _Builder:
    """Calls of the local builder, made here to see that they are right, and kept to be sent."""

    desk: Desk = field(repr=False)
    name: str
    local: Table | TableQuery
    made_up: tuple[Mapping[str, Any], Mapping[str, Any]] = field(repr=False)
    steps: tuple[BuilderCall, ...] = ()

    def _with(self, kind: Callable[..., Any], call: str, *args: Any, **options: Any) -> Any:
        step = BuilderCall(call, args, options)
        step.to_dict()  # refuses what cannot be sent
        return kind(self.desk, self.name, step.apply(self.local), self.made_up, (*self.steps, step))


class DeskQuery(_Builder):
    """A question, as ``discreet.tables.TableQuery``: each method adds a column to the answer, ``release`` asks."""

    local: TableQuery

    def __getattr__(self, call: str) -> Any:
        if call.startswith("_") or not hasattr(TableQuery, call):
            raise AttributeError(f"A question has no {call!r}.")
        return lambda *args, **options: self._with(DeskQuery, call, *args, **options)

    def explain(
        self, epsilon: float | None = None, delta: float | None = None, *, rho: float | None = None, noise: str = "auto"
    ) -> Explanation:
        """What it will cost, and how good the answer will be; nothing is sent."""
        asked = self._question(DeskBudget(epsilon, delta, rho, noise)).operation(self._empty())
        explanation: Explanation = asked.explain()  # type: ignore[assignment]
        return explanation

    def rehearse(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        rho: float | None = None,
        noise: str = "auto",
        rows: int = 1000,
    ) -> Release[Any]:
        """The answer on rows that are made up from the declarations, to see its form; nothing is sent."""
        made_up = made_up_table(self.name, *self.made_up, rows)
        return self._question(DeskBudget(epsilon, delta, rho, noise)).operation(made_up).release()

    def release(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        rho: float | None = None,
        noise: str = "auto",
        errors: bool = True,
        label: str = "",
        key: str | None = None,
    ) -> DeskRelease:
        """Ask the desk: one charge, one answer, under a key; asked again with the same ``key``, the same answer.

        Without a key it is a new question; a warning names an answer to it that one has already.
        """
        question = self._question(DeskBudget(epsilon, delta, rho, noise), errors=errors, label=label)
        question.operation(self._empty())  # what is wrong is said here
        if key is None and (line := self.earlier()) is not None:
            warnings.warn(
                f"{said_of(line)}: desk.release_of({line['key']!r}) gives that answer for nothing. This is another "
                "release, and charged.",
                stacklevel=2,
            )
        return self.desk.ask(question, key)

    def earlier(self) -> Mapping[str, Any] | None:
        """One's own newest question that was answered and asked the same, for whatever epsilon; nothing is charged."""
        return next(earlier_answers(self.desk.history(), self.name, self.local, self._empty()), None)

    def _empty(self) -> Table:
        return empty_table(self.name, *self.made_up)

    def _question(self, budget: DeskBudget, **more: Any) -> DeskQuestion:
        return DeskQuestion(self.name, budget, self.steps, **more)

    def _repr_html_(self) -> str:
        return str(self.local._repr_html_())


class DeskTable(_Builder):
    """A data set at a desk, as ``discreet.tables.Table``: rows that are never shown, and never sent."""

    local: Table

    def filter(self, *conditions: Expression) -> DeskTable:
        """The rows for which every condition holds."""
        return self._with(DeskTable, "filter", *conditions)  # type: ignore[no-any-return]

    def derive(self, **columns: Expression) -> DeskTable:
        """The same rows with further columns."""
        return self._with(DeskTable, "derive", **columns)  # type: ignore[no-any-return]

    def select(self, *columns: str) -> DeskTable:
        """The same rows, of which only these columns may be asked about."""
        return self._with(DeskTable, "select", *columns)  # type: ignore[no-any-return]

    def group_by(self, *keys: str) -> DeskQuery:
        """Groups by columns."""
        return self._with(DeskQuery, "group_by", *keys)  # type: ignore[no-any-return]

    def marginals(
        self,
        sets: Iterable[Iterable[str]],
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        rho: float | None = None,
        label: str = "",
        key: str | None = None,
    ) -> DeskRelease:
        """The counts of every combination of categories of each set of columns, all from one measurement, so that their
        sums agree."""
        asked = read_whole_table({"type": "marginals", "sets": [list(columns) for columns in sets]})
        return self._ask_whole(asked, DeskBudget(epsilon, delta, rho), label, key)

    def synthesize(
        self, rows: int, epsilon: float, delta: float, *, bins: int | None = None, label: str = "",
        key: str | None = None,
    ) -> DeskRelease:  # fmt: skip
        """Synthetic rows: a job, which the owner approves first."""
        return self._ask_whole(SynthesisQuestion(rows, bins), DeskBudget(epsilon, delta), label, key)

    def fit(self, target: str, epsilon: float, delta: float, *, label: str = "", key: str | None = None) -> DeskRelease:
        """A linear model of a column from the others: a job, which the owner approves first. Its value is a fitted
        ``TableModel``, with ``predict``."""
        return self._ask_whole(FitQuestion(target), DeskBudget(epsilon, delta), label, key)

    def _ask_whole(self, asked: Any, budget: DeskBudget, label: str, key: str | None) -> DeskRelease:
        question = DeskQuestion(self.name, budget, label=label, whole=asked)
        question.operation(self.local, declaration(self.made_up[0]))  # what is wrong is said here
        return self.desk.ask(question, key)

    def parse(self, query: str) -> DeskQuery:
        """The question that a SELECT asks."""
        return _SqlQuery(self.desk, self.name, self.local.parse(query), self.made_up, (), query)

    def sql(self, query: str, epsilon: float | None = None, delta: float | None = None, **options: Any) -> DeskRelease:
        """The answer to a SELECT with aggregates."""
        return self.parse(query).release(epsilon, delta, **options)

    def __getattr__(self, call: str) -> Any:
        """An aggregate of all rows together."""
        if call.startswith("_") or not hasattr(TableQuery, call):
            raise AttributeError(f"A table has no {call!r}.")
        return getattr(self.group_by(), call)

    @property
    def schema(self) -> Any:
        """The columns that may be asked about."""
        return self.local.schema

    def _repr_html_(self) -> str:
        return str(self.local._repr_html_())


@dataclass(frozen=True)
class _SqlQuery(DeskQuery):
    """A question that is sent as it was written, and read again by the desk's own parser."""

    text: str = ""

    def _question(self, budget: DeskBudget, **more: Any) -> DeskQuestion:
        return replace(super()._question(budget, **more), steps=(), sql=self.text)

    def _with(self, kind: Callable[..., Any], call: str, *args: Any, **options: Any) -> Any:
        raise ValueError("A question in SQL is whole: write the aggregate, the order or the limit into it.")
