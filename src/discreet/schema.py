"""Public facts about columns: bounds, categories, and what a missing value means. Declared, never read off the data.

>>> schema = Schema(educ=Categories(range(1, 17)), income=Bounded(0, 200_000), zip=Unlisted())
>>> schema["income"].high
200000.0
>>> schema["age"]
Traceback (most recent call last):
...
ValueError: Column 'age' is not declared. The schema has: educ, income, zip.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from os import PathLike
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from discreet.dates import Dates, Times
from discreet.errors import is_whole_text, number, whole

__all__ = [
    "Bounded",
    "Categories",
    "Column",
    "Dates",
    "Declaration",
    "Schema",
    "TextForm",
    "Times",
    "Unlisted",
    "as_declaration",
    "declaration",
    "parse_schema",
    "plain_category",
    "read_schema",
]

Value: TypeAlias = int | float | str | bool
AUTO_LARGEST = 2.0**40  # beyond which no bounds are looked for
MOST_CATEGORIES = 1 << 20  # as many as public groups are answered
LONGEST = 20_000_000  # characters of a schema file


@dataclass(frozen=True, slots=True)
class Bounded:
    """Numbers that count as lying in [``low``, ``high``]: what lies outside, infinities too, is clipped to the nearer
    end.

    A NaN, a NULL, or text that is no number is *missing*. With ``missing="drop"`` such a row does not count in this
    column's statistics; with a number, it counts as that number.

    With ``whole`` a value counts as the nearest whole number (a half as the next), so that sums are whole and get whole
    noise. Otherwise a column is of whole numbers only where the type in a Parquet or Feather file says so.

    ``Bounded("auto")`` is for tables: bounds are powers of two, found privately for a share of each query's budget.

    >>> Bounded(0, 100, missing=0)
    Bounded(low=0.0, high=100.0, missing=0.0, whole=False)
    >>> Bounded("auto").auto
    True
    """

    low: float
    high: float = math.nan
    missing: float | Literal["drop"] = "drop"
    whole: bool = False
    auto: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.low == "auto" and math.isnan(self.high):  # type: ignore[comparison-overlap]
            object.__setattr__(self, "low", -AUTO_LARGEST)
            object.__setattr__(self, "high", AUTO_LARGEST)
            object.__setattr__(self, "auto", True)
        ends = {"low": self.low, "high": self.high}
        low, high = (number(name, end, low=-1e150, high=1e150) for name, end in ends.items())
        if not high - low >= 1e-290:  # closer, and a grid between them would need steps below the smallest double
            raise ValueError(
                f"low is {self.low!r} and high {self.high!r}, but low must be below high (by 1e-290 at least)."
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if self.missing != "drop":
            object.__setattr__(self, "missing", number("missing", self.missing, low=low, high=high))
        if self.whole not in (True, False):
            raise ValueError(f"whole is {self.whole!r}, but must be true or false.")
        ends = {"low": low, "high": high, **({} if self.missing == "drop" else {"missing": float(self.missing)})}
        if self.whole and (odd := [name for name, end in ends.items() if abs(end) > 2**53 or not end.is_integer()]):
            raise ValueError(
                f"{odd[0]} is {ends[odd[0]]!r}, but must be a whole number of at most 2^53 where whole is true."
            )


@dataclass(frozen=True, slots=True, init=False)
class Categories:
    """The values a column may take, all numbers or all text, in the order in which answers list them.

    A value that is not listed, or missing, goes nowhere: its row is left out of any group-by on this column. With
    ``other`` such rows are gathered under that name, which is then one more category.

    >>> Categories(["a", "b"], other="else").labels
    ('a', 'b', 'else')
    """

    values: tuple[Value, ...]
    other: Value | None

    def __init__(self, values: Iterable[Value], other: Value | None = None) -> None:
        if isinstance(values, (str, bytes)):
            raise ValueError("values is one text, but must be a list of them: Categories(['a', 'b']).")
        listed = tuple(plain_category(value) for value in islice(values, MOST_CATEGORIES + 1))
        if len(listed) > MOST_CATEGORIES:
            raise ValueError(
                f"values has more than {MOST_CATEGORIES:,} entries, too many to list in an answer: declare the column "
                "Unlisted(), or Bounded(low, high)."
            )
        other = None if other is None else plain_category(other)
        object.__setattr__(self, "values", listed)
        object.__setattr__(self, "other", other)
        if not listed:
            raise ValueError("values is empty, but Categories needs at least one.")
        if len({isinstance(value, str) for value in self.labels}) > 1:
            raise ValueError("values mixes text and numbers (other included), but a column holds one kind.")
        if len(set(self.labels)) != len(self.labels):
            raise ValueError("values (other included) has a repeated entry, but each category may appear once.")

    @property
    def labels(self) -> tuple[Value, ...]:
        """The groups an answer lists: the values, and ``other`` at the end."""
        return self.values if self.other is None else (*self.values, self.other)

    @property
    def textual(self) -> bool:
        """Whether the categories are text."""
        return isinstance(self.values[0], str)


def plain_category(value: Any) -> Value:
    """A category as a Python value; numpy's numbers become Python's."""
    value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, (str, int, float)) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(
            f"values has {value!r}, but a category is text, a whole number, a truth value or a finite number."
        )
    if isinstance(value, str) and not is_whole_text(value):
        raise ValueError("values has text with half a character (a lone surrogate), which no file or engine holds.")
    if isinstance(value, int) and abs(value) > 2**53:
        raise ValueError(
            f"values has {value!r}, but whole numbers beyond 2^53 are not told apart everywhere: write text."
        )
    return value


@dataclass(frozen=True, slots=True)
class Unlisted:
    """A column whose values are themselves private: names, postcodes, search terms.

    It can be counted distinct, and grouped by if keys are selected privately, which needs a delta.
    """


Column: TypeAlias = Bounded | Categories | Unlisted | Dates | Times


class Schema(Mapping[str, Column]):
    """What is publicly known about each column, by name. Columns that are not declared cannot be used."""

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, Column] | None = None, /, **named: Column) -> None:
        every = {**(columns or {}), **named}
        for name, column in every.items():
            if not isinstance(name, str) or not name:
                raise ValueError(f"A column is named {name!r}, but names are text.")
            if not isinstance(column, (Bounded, Categories, Unlisted, Dates, Times)):
                raise ValueError(
                    f"Column {name!r} is declared as {type(column).__name__}, but must be Bounded(low, high), "
                    "Categories(values), Dates(first, last), Times(first, last) or Unlisted()."
                )
        self._columns = MappingProxyType(every)

    def __getitem__(self, name: str) -> Column:
        if name not in self._columns:
            near = get_close_matches(str(name), self._columns, n=1, cutoff=0.7)
            meant = f"; did you mean {near[0]!r}?" if near else "."
            raise ValueError(
                f"Column {name!r} is not declared{meant} The schema has: {', '.join(self._columns) or 'no columns'}."
            )
        return self._columns[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The column's declaration, or ``default``."""
        return self._columns.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{name}={column!r}' for name, column in self.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Schema, (dict(self._columns),)


# --- schemas in files ----------------------------------------------------------------------------------------------


_BETWEEN_THOUSANDS = (".", ",", " ", "'", "\u2019", "\u00a0", "\u202f")  # and two spaces that do not break a line


@dataclass(frozen=True, slots=True)
class TextForm:
    """How text files are written: what separates their entries (a comma, or in ``.tsv`` files a tab, unless it is
    said; with a space after it, as ``", "``, spaces around entries do not count), the decimal sign of their numbers,
    what stands between their thousands (a point where the decimal sign is a comma, otherwise nothing unless it is
    said), and how their dates are spelled, in the signs of Python's ``strftime``.

    >>> TextForm(separator=";", decimal=",", date_format="%d/%m/%Y").as_facts()
    {'separator': ';', 'decimal': ',', 'date_format': '%d/%m/%Y'}
    >>> TextForm(decimal=",").between_thousands, TextForm().between_thousands
    ('.', None)
    """

    separator: str | None = None
    decimal: str = "."
    date_format: str | None = None
    thousands: str | None = None

    def __post_init__(self) -> None:
        sign = self.separator.removesuffix(" ") if isinstance(self.separator, str) else ""
        one_sign = len(sign) == 1 and sign.isascii() and len(self.separator or "") <= 2
        if self.separator is not None and (not one_sign or sign.isalnum() or sign in '"\r\n.-+ '):
            raise ValueError(f"separator is {self.separator!r}, but must be one sign, such as ';', or one and a space.")
        if self.decimal not in (".", ","):
            raise ValueError(f"decimal is {self.decimal!r}, but must be '.' or ','.")
        if self.thousands is not None and (self.thousands not in _BETWEEN_THOUSANDS or self.thousands == self.decimal):
            raise ValueError(
                f"thousands is {self.thousands!r}, but must be '.', ',', a space or an apostrophe, and not the decimal "
                f"sign, {self.decimal!r}."
            )
        if self.date_format is not None and (not isinstance(self.date_format, str) or "%" not in self.date_format):
            raise ValueError(f"date_format is {self.date_format!r}, but must say the parts of a date: '%d/%m/%Y'.")

    @property
    def between_thousands(self) -> str | None:
        """The sign between thousands, if there is one: beside a decimal comma a point is nothing else."""
        return "." if self.thousands is None and self.decimal == "," else self.thousands

    def as_facts(self) -> dict[str, str]:
        """What a schema file says of it."""
        decimal = None if self.decimal == "." else self.decimal
        every = {"separator": self.separator, "decimal": decimal, "date_format": self.date_format}
        return {name: value for name, value in (every | {"thousands": self.thousands}).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Declaration:
    """A schema with the unit of privacy that belongs to it, and how text files are written: what a schema file
    holds.
    """

    schema: Schema
    unit: str | None = None
    max_rows_per_unit: int | Literal["auto"] = 1
    max_groups_per_unit: int | None = None
    text: TextForm = TextForm()


def as_declaration(schema: Schema | Declaration | Mapping[str, Column] | str | PathLike[str]) -> Declaration:
    """What is declared, however it is given: a schema, which has a row as unit; one with its unit; a schema file.

    >>> as_declaration({"age": Bounded(0, 120)}).unit is None
    True
    """
    if isinstance(schema, Declaration):
        return schema
    if isinstance(schema, (str, PathLike)):
        return read_schema(schema)
    return Declaration(schema if isinstance(schema, Schema) else Schema(schema))


_COLUMN_KEYS = {"bounds", "missing", "whole", "categories", "range", "other", "unlisted", "dates", "times"}
_TEXT_KEYS = {"separator", "decimal", "date_format", "thousands"}
_FILE_KEYS = {"unit", "max_rows_per_unit", "max_groups_per_unit", "columns", *_TEXT_KEYS}


def read_schema(path: str | PathLike[str]) -> Declaration:
    """The declaration in a TOML file.

    .. code-block:: toml

        unit = "person_id"                       # optional: without it, a row is protected
        max_rows_per_unit = 1                    # optional
        separator = ";"                          # optional, of text files; also decimal = ",", thousands = ".",
                                                 # date_format = "%d/%m/%Y"

        [columns]
        income = { bounds = [0, 200000] }        # missing = 0: what a missing value counts as
        visits = { bounds = [0, 50], whole = true }       # whole numbers, which get whole noise
        educ = { range = [1, 16] }               # whole numbers, both ends included
        sex = { categories = ["f", "m"], other = "unknown" }
        zip = { unlisted = true }
        day = { dates = ["2023-01-01", "2024-12-31"] }    # or times = [first, last]
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LONGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ValueError(f"The schema file {str(path)!r} cannot be read: {reason}.") from None
    return parse_schema(text, f"The schema file {str(path)!r}")


def parse_schema(text: str, name: str = "The schema") -> Declaration:
    """The declaration in a TOML text; ``name`` is what errors call it."""
    if len(text) > LONGEST:
        raise ValueError(f"{name} has more than {LONGEST:,} characters.")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name} is not TOML: {error}.") from None
    except (RecursionError, ValueError) as error:  # brackets in brackets; a date or a number beyond what Python counts
        reason = (
            "it is nested too deeply" if isinstance(error, RecursionError) else "a number or date in it is too large"
        )
        raise ValueError(f"{name} cannot be read: {reason}.") from None
    return declaration(data)


def declaration(data: Mapping[str, Any]) -> Declaration:
    """The declaration that a schema file's contents are."""
    _refuse_unknown("The schema file", data, _FILE_KEYS)
    columns = data.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise ValueError(
            "The schema file has no [columns], but needs at least one column: take the # away from its line."
        )
    groups, rows = data.get("max_groups_per_unit"), data.get("max_rows_per_unit", 1)
    unit = data.get("unit")
    if unit is not None and not isinstance(unit, str):
        raise ValueError(f"unit is {unit!r}, but must be the name of a column.")
    return Declaration(
        Schema({name: _column_of(name, facts) for name, facts in columns.items()}),
        unit,
        "auto" if rows == "auto" else whole("max_rows_per_unit", rows, low=1),
        None if groups is None else whole("max_groups_per_unit", groups, low=1),
        TextForm(**{name: data[name] for name in _TEXT_KEYS & data.keys()}),
    )


def _column_of(name: str, facts: Any) -> Column:
    """A column as it is declared; what is wrong with it names it."""
    try:
        return _column(name, facts)
    except ValueError as error:
        said = str(error)
        raise ValueError(said if repr(name) in said else f"Column {name!r}: {said}") from None


def _column(name: str, facts: Any) -> Column:
    if not isinstance(facts, dict):
        raise ValueError(f"Column {name!r} must be a table such as {{ bounds = [0, 100] }}.")
    _refuse_unknown(f"Column {name!r}", facts, _COLUMN_KEYS)
    match facts:
        case {"bounds": "auto", **rest} if set(rest) <= {"missing", "whole"}:
            return Bounded("auto", **rest)  # type: ignore[arg-type]
        case {"bounds": [low, high], **rest} if set(rest) <= {"missing", "whole"}:
            return Bounded(low, high, **rest)
        case {"categories": list(values), **rest} if set(rest) <= {"other"}:
            return Categories(values, **rest)
        case {"range": [int(low), int(high)], **rest} if set(rest) <= {"other"} and low <= high:
            if high - low >= MOST_CATEGORIES:
                raise ValueError(
                    f"Column {name!r} has a range of more than {MOST_CATEGORIES:,} numbers, too many to "
                    "list in an answer: declare bounds = [low, high], or unlisted = true."
                )
            return Categories(range(low, high + 1), **rest)
        case {"unlisted": True, **rest} if not rest:
            return Unlisted()
        case {"dates": [first, last], **rest} if not rest:
            return Dates(first, last)
        case {"times": [first, last], **rest} if not rest:
            return Times(first, last)
    raise ValueError(
        f"Column {name!r} must have exactly one of bounds = [low, high] (with missing =, whole =), "
        "categories = [...] (with other =), range = [first, last] (with other =), dates = [first, last], "
        "times = [first, last], unlisted = true."
    )


def _refuse_unknown(where: str, facts: Mapping[str, Any], keys: set[str]) -> None:
    if unknown := sorted(set(facts) - keys):
        raise ValueError(f"{where} has {unknown[0]!r}; known are {', '.join(sorted(keys))}.")
