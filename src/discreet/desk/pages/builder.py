"""A question put together from lists: what, of which column, by which groups, where. It writes SQL, for all to read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from discreet.desk.pages.forms import PageForm
from discreet.desk.pages.public_words import ColumnWords, sql_name
from discreet.errors import choice

__all__ = ["COMPARISONS", "FUNCTIONS", "BuiltQuestion"]

FUNCTIONS = {
    "count": ("how many rows", "COUNT(*)", "n"),
    "mean": ("the mean of", "AVG({})", "mean"),
    "sum": ("the sum of", "SUM({})", "total"),
    "median": ("the median of", "MEDIAN({})", "median"),
    "deviation": ("the standard deviation of", "STDDEV_POP({})", "deviation"),
}
COMPARISONS = {"is": "=", "is not": "<>", "at least": ">=", "more than": ">", "at most": "<=", "less than": "<"}


@dataclass(frozen=True, slots=True)
class BuiltQuestion:
    """What somebody chose."""

    what: str = "count"
    column: str = ""
    by: tuple[str, ...] = ()
    where: str = ""
    comparison: str = "is"
    value: str = ""

    @classmethod
    def read(cls, form: PageForm) -> BuiltQuestion:
        """As a form sent it."""
        return cls(form.text("what", "count") or "count", form.text("column"), tuple(form.texts("by")),
                   form.text("where"), form.text("comparison", "is") or "is", form.text("value"))  # fmt: skip

    def sql(self, dataset: str, columns: Iterable[ColumnWords]) -> str:
        """The SELECT that asks this; of names that are declared, and of no others."""
        known = {column.name: column for column in columns}
        _, form, name = choice("what", self.what, FUNCTIONS)
        if "{}" in form:
            if self.column not in known:
                raise ValueError("Choose a column: this is asked of numbers.")
            form = form.format(sql_name(self.column))
        keys = [sql_name(known[key].name) for key in self.by if key in known]
        lines = [f"SELECT {', '.join([*keys, f'{form} AS {name}'])}", f"FROM {sql_name(dataset)}"]
        if self.where and self.where in known and self.value:
            sign = choice("comparison", self.comparison, COMPARISONS)
            lines.append(f"WHERE {sql_name(self.where)} {sign} {_literal(known[self.where], self.value)}")
        if keys:
            lines.append(f"GROUP BY {', '.join(keys)}")
        return "\n".join(lines)


def _literal(column: ColumnWords, value: str) -> str:
    """A value as SQL writes it: a number where the column has numbers, text where it has text."""
    try:
        number = float(value.replace(",", "."))
    except ValueError:
        number = None
    if number is not None and column.kind in ("number", "whole number"):
        return f"{number:.15g}"
    if number is not None and column.values and all(_is_number(label) for label in column.values):
        return f"{number:.15g}"
    quoted = value.replace("'", "''")
    return f"'{quoted}'"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
