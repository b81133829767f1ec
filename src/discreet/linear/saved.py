"""Table models in files: JSON that anybody can read, and that runs nothing when it is read.

A linear model is a few numbers and public facts, so a file holds just these: the declaration of the columns, the
coefficients to the last bit, and the privacy statement, with the head of the ledger that was charged, where there was
one.

>>> from discreet.schema import Bounded, Categories, Declaration, Schema
>>> facts = Declaration(Schema(age=Bounded(0, 100), sick=Categories(["no", "yes"])))
>>> rows = {"age": [20, 80] * 2000, "sick": ["no", "yes"] * 2000}
>>> model = TableModel(facts, target="sick", epsilon=1.0, delta=1e-6, random_state=0).fit(rows)
>>> again = loads(dumps(model))
>>> again.predict({"age": [25, 90]}).tolist(), again.statement == model.statement
(['no', 'yes'], True)

Decision 97.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.linear.tabular import TableModel
from discreet.schema import Bounded, Categories, Dates, Declaration, Times, Unlisted, declaration

__all__ = ["LONGEST", "as_schema_facts", "dumps", "loads"]

FORMAT = "discreet table model 1"
LONGEST = 1 << 28  # bytes; ten million coefficients
_LARGEST = sys.float_info.max  # an infinite number, NaN and a whole number beyond are no coefficient
_BAD = "The file holds no model made by 'discreet fit': {}."


def dumps(model: TableModel) -> str:
    """A fitted model as text."""
    coefficients, intercept = np.atleast_2d(model.estimator.coef_), np.atleast_1d(model.estimator.intercept_)
    learned = {"coefficients": coefficients.tolist(), "intercept": intercept.tolist()}
    learned |= {"clip": model.estimator._clip_norm}
    return json.dumps(
        {
            "format": FORMAT,
            "statement": model.statement,
            "target": model.target,
            "epsilon": model.epsilon,
            "delta": model.delta,
            "declaration": as_schema_facts(model.declaration),
            "learned": learned,
        },
        indent=1,
        allow_nan=False,
    )


def loads(text: str) -> TableModel:
    """The model in a text, or a ``ValueError``. Nothing in the text is run, and no name in it is imported."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(_BAD.format("it is not JSON")) from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(_BAD.format(f"it does not say {FORMAT!r}"))
    parts: dict[str, Any] = {name: found.get(name) for name in ("declaration", "learned", "statement")}
    if odd := [name for name, part in parts.items() if not isinstance(part, dict)]:
        raise ValueError(_BAD.format(f"{odd[0]} is missing"))
    budget: dict[str, Any] = {name: found.get(name) for name in ("epsilon", "delta")}
    model = TableModel(declaration(parts["declaration"]), _text(found.get("target")), **budget)
    _restore(model, parts["learned"] or {})
    model.stated = parts["statement"]
    return model


def _restore(model: TableModel, learned: Mapping[str, Any]) -> None:
    goal, width = model.declaration.schema[model.target], model.width
    classes = len(goal.labels) if isinstance(goal, Categories) else 0
    outputs = classes if classes > 2 else 1
    coefficients = _numbers(learned.get("coefficients"), (outputs, width))
    intercept = _numbers(learned.get("intercept"), (outputs,))
    model.estimator.restore(coefficients, intercept, _clip(learned))


def _clip(learned: Mapping[str, Any]) -> float | None:
    """The clip norm; files from before it was kept have none, and their probabilities are nearer to 0 and 1."""
    clip = learned.get("clip")
    return None if clip is None else float(_numbers(clip, ()))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(_BAD.format("target is no text"))
    return value


def _numbers(value: Any, shape: tuple[int, ...]) -> Any:
    """An array of finite numbers; lists of another shape, and anything in them but numbers, are refused."""

    def flat(part: Any, sizes: tuple[int, ...]) -> list[float]:
        if not sizes:
            if isinstance(part, bool) or not isinstance(part, (int, float)) or not abs(part) <= _LARGEST:
                raise ValueError(_BAD.format("a coefficient is no number"))
            return [float(part)]
        if not isinstance(part, list) or len(part) != sizes[0]:
            raise ValueError(_BAD.format("the coefficients do not fit the columns"))
        return [number for item in part for number in flat(item, sizes[1:])]

    return np.array(flat(value, shape), np.float64).reshape(shape)


def as_schema_facts(facts: Declaration) -> dict[str, Any]:
    """A declaration as a schema file says it."""
    columns: dict[str, Any] = {}
    for name, column in facts.schema.items():
        if isinstance(column, Bounded):
            missing = {} if column.missing == "drop" else {"missing": column.missing}
            whole = {"whole": True} if column.whole else {}
            columns[name] = {"bounds": [column.low, column.high], **missing, **whole}
        elif isinstance(column, Categories):
            other = {} if column.other is None else {"other": column.other}
            columns[name] = {"categories": list(column.values), **other}
        elif isinstance(column, (Dates, Times)):
            ends = [column.first.isoformat(), column.last.isoformat()]
            columns[name] = {"dates" if isinstance(column, Dates) else "times": ends}
        elif isinstance(column, Unlisted):
            columns[name] = {"unlisted": True}
        else:
            raise ValueError(f"{name!r} is declared as {type(column).__name__}, which no schema file says.")
    rest = {
        **facts.text.as_facts(),
        "unit": facts.unit,
        "max_rows_per_unit": facts.max_rows_per_unit,
        "max_groups_per_unit": facts.max_groups_per_unit,
    }
    return {"columns": columns} | {name: value for name, value in rest.items() if value is not None}
