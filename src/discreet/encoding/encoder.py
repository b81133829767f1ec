"""Rows of a table as a schema reads them: numbers inside their bounds, codes of categories, one row per unit.

===================  ==================================================================================================
entry                meaning
===================  ==================================================================================================
of a bounded column  a number (text by one grammar, ``values``) clipped to the bounds; NaN, NULL or anything else is
                     *missing*: NaN, or the number that ``missing`` declares
of a category        the number of its label; what is not listed, or missing, that of ``other``, or -1
of dates             its day; what is no date between the first and the last is missing. They are read where they are
                     named
of the unit          an identifier (``values.identity``); all missing ones are one unit
===================  ==================================================================================================

Guarantee: a row's encoding is a function of that row alone, and nothing fails because of one. Where there is a unit,
its first row counts, in the order of the container or file: which rows stay of a unit depends on that unit's rows
alone. So one unit more or less is one row more or less, and every other row is as it was. A declaration that lets more
rows of a unit count is for queries: ``one_row_note`` says that one is read here.

Decision 136.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dates import DAY
from discreet.encoding.columns import (
    Words,
    check_type,
    clip_numbers,
    codes,
    identities,
    moments,
    of_arrow,
    spelled_doubles,
    texts,
)
from discreet.encoding.containers import kind_of
from discreet.encoding.values import are_truths, identity
from discreet.errors import choice
from discreet.mechanisms.records import element_type, quiet_doubles
from discreet.schema import Bounded, Categories, Column, Dates, Declaration, Schema

__all__ = ["Encoded", "Encoder", "one_row_note"]

_Found = NDArray[np.float64] | Words
_Read = tuple[dict[str, _Found], _Found | None, int]  # the columns, whom each row is of, and how many rows
_LARGEST = 1 << 53  # whole numbers beyond are no category, and no double of their own


@dataclass(frozen=True)
class Encoded:
    """The rows that count, by column. They are private: nothing is shown of them."""

    schema: Schema = field(repr=False)
    size: int = field(repr=False)
    found: Mapping[str, _Found] = field(repr=False)

    def __len__(self) -> int:
        return self.size

    def rows(self, places: NDArray[Any]) -> Encoded:
        """The rows at these places."""
        return Encoded(self.schema, len(places), {name: _rows_of(found, places) for name, found in self.found.items()})

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A bounded column inside its bounds; NaN where it is missing and nothing is declared for that."""
        column, found = self.schema[name], self.found[name]
        assert isinstance(column, Bounded)
        assert not isinstance(found, Words)
        return clip_numbers(column, found)

    def unit_scaled(self, name: str) -> NDArray[np.float64]:
        """A bounded column from 0, its lower bound, to 1, its upper one."""
        column = self.schema[name]
        assert isinstance(column, Bounded)
        return np.asarray((self.numbers(name) - column.low) / (column.high - column.low))

    def days(self, name: str) -> NDArray[np.float64]:
        """A column of dates in days since 1970; NaN where it is missing, or outside of what is declared."""
        column, found = self.schema[name], self.found[name]
        assert isinstance(column, Dates)
        assert not isinstance(found, Words)
        return np.asarray(np.where((found >= column.low) & (found <= column.high), np.floor(found / DAY), np.nan))

    def codes(self, name: str) -> NDArray[np.int64]:
        """Which of its labels a category is, -1 for none."""
        column = self.schema[name]
        assert isinstance(column, Categories)
        return codes(column, self.found[name])


@dataclass(frozen=True)
class Encoder:
    """Reads the bounded and categorical columns of a declaration, or those of them that are named.

    Data is a mapping of columns, a pandas, polars or pyarrow frame, the path of a file, or a source of these that was
    opened before: the reader of ``discreet.table``. With ``one_row_a_unit=False`` every row counts: for predictions,
    where nothing is protected.
    """

    declaration: Declaration
    columns: Sequence[str] | None = None
    one_row_a_unit: bool = True

    def __post_init__(self) -> None:
        if found := [name for name, kind in self.schema.items() if isinstance(kind, Bounded) and kind.auto]:
            raise ValueError(f'Column {found[0]!r} is Bounded("auto"), which tables alone find: declare its bounds.')

    @property
    def schema(self) -> Schema:
        """The columns that are read."""
        every = self.declaration.schema
        names = every if self.columns is None else self.columns
        kinds = (Bounded, Categories) if self.columns is None else (Bounded, Categories, Dates)
        return Schema(
            {name: every[name] for name in names if name != self.declaration.unit and isinstance(every[name], kinds)}
        )

    @property
    def unit(self) -> str | None:
        """The column of identifiers, where one row of each counts."""
        return self.declaration.unit if self.one_row_a_unit else None

    def read(self, data: Any) -> Encoded:
        """The rows that count."""
        return self.prepare(data)()

    def prepare(self, data: Any) -> Callable[[], Encoded]:
        """Refuse what public facts can tell (columns and types), read nothing, and return what reads."""
        run = self._reader(data)

        def read() -> Encoded:
            columns, units, size = run()
            every = Encoded(self.schema, size, columns)
            if units is None:
                return every
            at = units.at if isinstance(units, Words) else units
            return every.rows(np.sort(np.unique(at, return_index=True)[1]))  # all missing ones are one unit

        return read

    def prepare_every_row(self, data: Any) -> Callable[[], tuple[Encoded, Words]]:
        """The same as ``prepare`` where every row of a unit counts, and whose each row is: private, as all else."""
        assert self.unit is not None, "who asks has a unit"
        if isinstance(data, Mapping):
            run, kind = self._reader(data), "identity"
        else:
            source = self._open(data)
            run, kind = self._reader(source), "identity" if source.pandas else source.kinds[self.unit]

        def read() -> tuple[Encoded, Words]:
            columns, units, size = run()
            assert units is not None
            return Encoded(self.schema, size, columns), _identities(units, kind)

        return read

    def unit_kind(self, data: Any) -> str | None:
        """What a container's type says of its units: "numbers" or "text"; none where it says neither."""
        assert self.unit is not None, "who asks has a unit"
        if not isinstance(data, Mapping) and not (source := self._open(data)).pandas:
            return choice("kind", source.kinds[self.unit], {"text": "text", "number": "numbers", "integer": "numbers"})
        kind = element_type(data[self.unit])
        return kind_of(kind) if kind is not None and kind_of(kind) in ("numbers", "text") else None

    def _reader(self, data: Any) -> Callable[[], _Read]:
        return self._read_mapping(data) if isinstance(data, Mapping) else self._read_source(data)

    def facts_of(self, data: Any) -> tuple[tuple[str, ...], frozenset[str]]:
        """The columns of a container in its own order, and those whose type, which a file declares, is of whole
        numbers.
        """
        if isinstance(data, (str, os.PathLike)):
            from discreet.encoding.sources import open_source

            source = open_source(data, self.schema, self.unit, text=self.declaration.text)
            return source.order, source.whole
        names = data if isinstance(data, Mapping) else getattr(data, "column_names", getattr(data, "columns", ()))
        return tuple(map(str, names)), frozenset()

    # --- a mapping of columns ----------------------------------------------------------------------------------------

    def _read_mapping(self, data: Mapping[str, Any]) -> Callable[[], _Read]:
        wanted = [*self.schema, *([] if self.unit is None else [self.unit])]
        for name in wanted:
            if name not in data:
                raise ValueError(f"Column {name!r} is declared, but the data does not have it.")
            check_type(name, data[name], dates=isinstance(self.schema.get(name), Dates))
        if len({len(data[name]) for name in wanted}) > 1:
            raise ValueError("The columns differ in length, but must have one entry per row.")

        def read() -> _Read:
            found = {name: _entries(data[name], column) for name, column in self.schema.items()}
            units = None if self.unit is None else identities(data[self.unit])
            return found, units, len(data[wanted[0]])

        return read

    # --- frames and files --------------------------------------------------------------------------------------------

    def _read_source(self, data: Any) -> Callable[[], _Read]:
        from discreet.encoding.engines import quietly

        data = self._open(data)
        names = [name for name in data.names if name in self.schema or name == self.unit]
        frame = self._project(data, names)

        def read() -> _Read:
            table = quietly(frame.to_arrow_table)
            columns = {name: _array(table.column(f"c{i}")) for i, name in enumerate(names)}
            return columns, None if self.unit is None else columns.pop(self.unit), table.num_rows

        return read

    def _open(self, data: Any) -> Any:
        from discreet.encoding.sources import Source, has_row_order, open_source

        if not has_row_order(data):
            raise ValueError(
                f"The data is a {type(data).__name__}, whose rows have no order, but here the first row of each unit "
                "counts: write it to a file, or collect it to a frame."
            )
        return (
            data if isinstance(data, Source) else open_source(data, self.schema, self.unit, text=self.declaration.text)
        )

    def _project(self, source: Any, names: Sequence[str]) -> Any:
        parts = [self._expression(name, source.names[name], source.kinds[name]) for name in names]
        return source.engine.project(source.frame, [f"{part} AS c{i}" for i, part in enumerate(parts)])

    def _expression(self, name: str, own: str, kind: str) -> str:
        """A whole number as text where it names a unit, as a double where it is a category."""
        if kind != "integer":
            return own
        if name == self.unit:
            return f"CAST({own} AS VARCHAR)"
        return f"CASE WHEN {own} BETWEEN {-_LARGEST} AND {_LARGEST} THEN CAST({own} AS DOUBLE) END"


def one_row_note(declared: Declaration) -> str:
    """What to tell where a schema lets more rows of a unit count than the one that is read here; otherwise nothing.

    >>> print(one_row_note(Declaration(Schema(age=Bounded(0, 100)), unit="patient", max_rows_per_unit=4)))
    one row per 'patient' is read here, the first: max_rows_per_unit = 4 holds for queries
    """
    most = declared.max_rows_per_unit
    if declared.unit is None or most == 1:
        return ""
    shown = f'"{most}"' if isinstance(most, str) else most
    return f"one row per {declared.unit!r} is read here, the first: max_rows_per_unit = {shown} holds for queries"


def _rows_of(found: _Found, places: NDArray[Any]) -> _Found:
    return Words(found.at[places], found.words) if isinstance(found, Words) else found[places]


def _identities(found: _Found, kind: str) -> Words:
    """Identifiers as ``identities`` writes them, by how an engine read them: "integer" and "text" as text, "number" as
    doubles; "identity" is written so.
    """
    if not isinstance(found, Words):
        values, at = np.unique(found, return_inverse=True)  # NaN are one value
        return Words(np.where(np.isnan(found), -1, at), [identity(value) for value in values.tolist()])
    read: dict[str, Callable[[Any], str | None]] = {
        "identity": lambda word: word,
        "text": identity,
        "integer": lambda word: identity(int(word)),
    }
    return Words(found.at, [choice("kind", kind, read)(word) for word in found.words])


def _array(column: Any) -> _Found:
    """A column of text, or of doubles."""
    if str(column.type) in ("string", "large_string"):
        return of_arrow(column)
    if str(column.type) == "double":
        return quiet_doubles(column.to_numpy())
    raise ValueError(f"An engine gave a column of type {column.type}, but is asked for text and doubles alone.")


def _entries(values: Any, column: Column) -> _Found:
    """A column of a mapping, read by its declaration, entry by entry."""
    if isinstance(column, Dates):
        return moments(values)
    if isinstance(column, Categories) and column.textual:
        return texts(values)
    if isinstance(column, (Bounded, Categories)):
        return spelled_doubles(values, truth=are_truths(column))
    raise ValueError(f"A column is declared as {type(column).__name__}, which is not read from a mapping.")
