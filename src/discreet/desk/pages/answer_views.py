"""An answer as people read it: a table with intervals, figures with error bars, a sentence to quote."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.desk.pages.charts import MOST_ROWS, MarkedValue, column_chart, interval_chart
from discreet.reporting.words import alike

__all__ = ["AnswerView", "ShownColumn"]

MOST_SHOWN = 500  # rows of a table on a page; the rest is in the files
MOST_FIGURES = 4


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of the table on the page."""

    name: str
    is_number: bool
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerView:
    """What a page shows of an answer: made of what was released, and of nothing else."""

    columns: tuple[ShownColumn, ...]
    rows: int
    keys: tuple[str, ...]
    marked: Mapping[str, tuple[MarkedValue, ...]]
    figures: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, columns: Sequence[Mapping[str, Any]], errors: Mapping[str, str]) -> AnswerView:
        """The view of an answer's columns, as they are kept and sent."""
        named = {column["name"]: column for column in columns}
        ends = {name for name in named for base in (name[:-4], name[:-5])
                if name in (f"{base}_low", f"{base}_high") and base in named and f"{base}_low" in named}  # fmt: skip
        answers = [name for name in named if name not in ends and (name in errors or f"{name}_low" in named)]
        keys = tuple(name for name in named if name not in ends and name not in answers)
        rows = len(columns[0]["values"]) if columns else 0
        labels = [" · ".join(_text(named[key]["values"][row]) for key in keys) or "all" for row in range(rows)]
        marked = {name: _marked(named, name, labels) for name in answers if named[name]["type"] in ("number", "whole")}
        figures = [(name, interval_chart(values, name)) for name, values in marked.items() if values]
        figures += [(f"{name}, {label}", column_chart(list(map(_float, numbers)), name, _error(errors.get(name, ""))))
                    for name in answers if "list" in named[name]["type"]
                    for label, numbers in list(zip(labels, named[name]["values"], strict=True))[:3]]  # fmt: skip
        shown = [column for name in (*keys, *answers) for column in _shown(named, name)]
        return cls(tuple(shown), rows, keys, marked, tuple(figures[:MOST_FIGURES]))

    @property
    def lines(self) -> list[tuple[str, ...]]:
        """The rows of the table."""
        return list(zip(*(column.texts for column in self.columns), strict=True))

    @property
    def note(self) -> str:
        """What of the answer is not on the page."""
        if self.rows > MOST_SHOWN:
            return f"The first {MOST_SHOWN:,} of {self.rows:,} rows; the files below have all of them."
        if self.rows > MOST_ROWS and self.figures:
            return f"Figures show the first {MOST_ROWS} rows."
        return ""

    def sentence(self, dataset: str) -> str:
        """The first number, or the first few, in words that can be quoted."""
        if not self.marked:
            return f"An answer about {dataset} with {self.rows} row{'' if self.rows == 1 else 's'}"
        name, values = next(iter(self.marked.items()))
        told = "; ".join(_quoted(each, self.keys != ()) for each in values[:3])
        more = f", and {len(values) - 3} more" if len(values) > 3 else ""
        by = f" by {', '.join(self.keys)}" if self.keys else ""
        return f"In {dataset}, {name}{by} is {told}{more}"


def _quoted(each: MarkedValue, with_label: bool) -> str:
    parts = [each.value] if each.low is None or each.high is None else [each.value, each.low, each.high]
    texts = alike(parts)
    interval = "" if len(texts) == 1 else f" (95 % interval {texts[1]} to {texts[2]})"
    return f"{each.label + ' ' if with_label else ''}{texts[0]}{interval}"


def _marked(named: Mapping[str, Any], name: str, labels: Sequence[str]) -> tuple[MarkedValue, ...]:
    lows, highs = (named.get(f"{name}_{end}", {}).get("values") for end in ("low", "high"))
    found = []
    for row, value in enumerate(named[name]["values"]):
        number = _float(value)
        if math.isfinite(number):
            low, high = (None if side is None else _float(side[row]) for side in (lows, highs))
            found.append(MarkedValue(labels[row], number, low, high))
    return tuple(found)


def _shown(named: Mapping[str, Any], name: str) -> list[ShownColumn]:
    """A column, and beside it its interval."""
    column = named[name]
    values = column["values"][:MOST_SHOWN]
    if column["type"] not in ("number", "whole"):
        return [ShownColumn(name, False, tuple(map(_text, values)))]
    lows, highs = (named.get(f"{name}_{end}", {}).get("values", [])[:MOST_SHOWN] for end in ("low", "high"))
    if column["type"] == "whole":
        texts = ["–" if value is None else f"{value:,}" for value in values]
    else:
        texts = _alike(values)
    found = [ShownColumn(name, True, tuple(texts))]
    if lows and highs:
        both = _alike([*lows, *highs])
        pairs = zip(both[: len(lows)], both[len(lows) :], strict=True)
        found.append(ShownColumn("95 % interval", True, tuple(f"{low} to {high}" for low, high in pairs)))
    return found


def _alike(values: Sequence[Any]) -> list[str]:
    numbers = [_float(value) for value in values]
    finite = [value for value in numbers if math.isfinite(value)]
    texts = iter(alike(finite))
    return [next(texts) if math.isfinite(value) else "–" if math.isnan(value) else str(value) for value in numbers]


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)


def _text(value: Any) -> str:
    match value:
        case None:
            return "–"
        case list():
            return ", ".join(_alike(value))
        case float():
            return f"{value:,.6g}"
    return str(value)


def _error(text: str) -> float | None:
    """The one number of a stated error, as of bins: ``±24 in each of 5 bins``."""
    found = re.match(r"±([0-9.e+]+) in each", text)
    return float(found[1]) if found else None
