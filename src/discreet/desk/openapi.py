"""The description of the protocol that a desk serves, in OpenAPI's words: made of the table of routes, so that what is
described is what is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from discreet.desk.state import ROLES

__all__ = ["RouteFacts", "describe"]

_ANYTHING: dict[str, Any] = {"type": "object"}
_TEXT: dict[str, Any] = {"type": "string"}
_NUMBER: dict[str, Any] = {"type": "number"}


def _object(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "additionalProperties": False, "properties": properties}


_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}
_STEP = {
    "type": "object",
    "required": ["call", "args", "options"],
    "additionalProperties": False,
    "properties": {"call": {"type": "string"}, "args": {"type": "array"}, "options": _ANYTHING},
}


def _operation(kind: str, required: Sequence[str], **own: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["type", "dataset", *required],
        "additionalProperties": False,
        "properties": {"type": {"const": kind}, "dataset": {"type": "string"}, **own},
    }


_QUESTION = {
    "type": "object",
    "required": ["version", "operation", "budget"],
    "additionalProperties": False,
    "properties": {
        "version": {"const": 1},
        "operation": {
            "oneOf": [
                _operation("marginals", ["sets"], sets={"type": "array", "items": {"type": "array", "items": _TEXT}}),
                _operation("synthesis", ["rows"], rows={"type": "integer"}, bins={"type": "integer"}),
                _operation("fit", ["target"], target=_TEXT),
                _operation("table", ["steps"], steps={"type": "array", "items": _STEP}),
                _operation("sql", ["sql"], sql={"type": "string"}),
                _operation(
                    "statistic",
                    ["statistic"],
                    statistic={"type": "string"},
                    column={"type": "string"},
                    options=_ANYTHING,
                ),
            ]
        },
        "budget": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "epsilon": {"type": "number"},
                "delta": {"type": "number"},
                "rho": {"type": "number"},
                "noise": {"enum": ["auto", "laplace", "gaussian"]},
            },
        },
        "errors": {"type": "boolean"},
        "label": {"type": "string", "maxLength": 200},
    },
}
_ANSWER = {
    "type": "object",
    "required": ["version", "state", "number", "key", "dataset", "label"],
    "properties": {
        "version": {"const": 1},
        "state": {"enum": ["answered", "withheld", "waiting", "approved", "running"]},
        "columns": {"type": "array"},
        "error": {},
        "event": _ANYTHING,
        "unit": {"type": "string"},
        "entry": {"type": "integer"},
        "head": {"type": "string"},
        "message": {"type": "string"},
        "model": {"type": "string"},
    },
}
_SHARE = _object(["epsilon"], epsilon=_NUMBER, delta=_NUMBER)
_SCHEMAS: dict[str, Any] = {
    "Error": _ERROR,
    "DeskQuestion": _QUESTION,
    "Answer": _ANSWER,
    "Decision": _object(["why"], why=_TEXT),
    "NewPerson": _object(
        ["name", "role"],
        name=_TEXT,
        role={"enum": list(ROLES)},
        shares={"type": "object", "additionalProperties": _SHARE},
        days=_NUMBER,
    ),
    "Days": _object([], days=_NUMBER),
    "Token": {
        "type": "object",
        "required": ["version", "name", "token"],
        "properties": {"version": {"const": 1}, "name": _TEXT, "token": _TEXT},
    },
    "Raise": _object(["why"], why=_TEXT, epsilon=_NUMBER, delta=_NUMBER, person={"type": ["string", "null"]}),
    "Anything": _ANYTHING,
}


class RouteFacts(NamedTuple):
    """What a route does, and with which statuses it answers."""

    summary: str
    statuses: tuple[int, ...]
    body: str | None = None
    answer: str = "Anything"
    roles: tuple[str, ...] = ()  # none: everybody, without a token


def describe(routes: Sequence[tuple[str, str, RouteFacts]]) -> dict[str, Any]:
    """The document, for routes of a path, a method and what they do."""
    paths: dict[str, dict[str, Any]] = {}
    for path, method, operation in routes:
        paths.setdefault(path, {})[method.lower()] = _describe(path, operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "discreet desk", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe(path: str, operation: RouteFacts) -> dict[str, Any]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
    if operation.body == "DeskQuestion" and 201 in operation.statuses:
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": True,
                "schema": {"type": "string", "maxLength": 100},
            }
        )
    answers = {
        str(status): {
            "description": "What was asked for." if status < 400 else "One shape of error.",
            "content": _json(operation.answer if status < 400 else "Error"),
        }
        for status in operation.statuses
    }
    described: dict[str, Any] = {"summary": operation.summary, "parameters": parameters, "responses": answers}
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": _json(operation.body)}
    if operation.roles:
        described["security"] = [{"token": []}]
        described["x-roles"] = list(operation.roles)
    return described


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
