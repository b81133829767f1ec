r"""At most so many rows of each unit, chosen in the engine by a keyed hash.

Every row of the pass is packed into one whole number p of at most 42 bits (its group and its fixed-point values). A
hash of p, keyed by a secret of this release and by the unit, is put in front of p: s = hash·2^bits + p < 2^63. The m
smallest s of each unit stay, and their lower bits are the rows themselves. So one ``min`` per unit, without a window or
a sort, does the choosing.

*Soundness.* Which rows of a unit stay is a function of that unit's rows and the key alone, neither of their order nor
of any other unit: adding or removing a unit adds or removes at most m rows and leaves all others as they were. Rows are
grouped by the identifier itself, not by a hash of it, because two units in one bucket would replace each other's rows.
Equal rows have equal s, so a tie is between rows that are the same.

*Fairness.* The hash masks p with a word of the unit and then, three times, multiplies one half of the number by the
other. No product leaves 62 bits, so both engines compute the same. It need not resist cryptanalysis: privacy does not
rest on it, only an even choice among a unit's rows does.

Rows wider than that, or with text in them, are ordered by 62 bits of such hashes, then by their own values, so that a
tie is between equal rows here too, and are carried whole. Rows without an identifier (NULL) count together as one unit.

Decision 61.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.encoding.engines import Engine
from discreet.encoding.sources import Kind
from discreet.random import Rng
from discreet.random.tap import coins
from discreet.release import ONE_RECORD, Enforced

__all__ = ["ContributionLimit", "Field", "SecretKey", "bound", "kept_rows", "most_groups"]

HALF = 31
MASK = (1 << HALF) - 1
WIDEST = 42  # bits of a packed row: at least 21 of 63 remain for the hash
ROUNDS = 3  # two are measurably uneven


@dataclass(frozen=True, slots=True)
class ContributionLimit:
    """The most that one unit may contribute; no ``unit`` means that each row is its own."""

    unit: str | None = None
    rows: int = 1
    groups: int = 1
    spread: int = 1  # groups in which a unit's totals count, where those are clipped instead of its rows dropped
    default: bool = False  # nobody said how many rows count
    auto: bool = False  # how many count is chosen for a share of the budget

    @property
    def protects(self) -> str:
        """Whom it protects: a row, or the unit whose rows it bounds."""
        return ONE_RECORD if self.unit is None else Enforced(self.unit)

    def describe(self) -> str:
        """In words."""
        if self.unit is None:
            return "one row"
        groups = f", {most_groups(self.groups)}" if self.groups < self.rows else ""
        if self.auto:
            return f"all rows with the same {self.unit!r}, of which as many count as are chosen for a share of the cost"
        return f"all rows with the same {self.unit!r}, of which at most {self.rows} count{groups}"

    @property
    def bias(self) -> str | None:
        """What dropping rows costs, in words."""
        if self.unit is None:
            return None
        if self.auto:
            return "rows of a unit beyond the chosen number do not count, so totals are too low"
        said = "by default, one row" if self.default else "one row" if self.rows == 1 else f"at most {self.rows} rows"
        more = "max_rows_per_unit= keeps more, with more noise" if self.rows == 1 else "further rows are not counted"
        return f"{said} of each unit count, so totals are too low if units have more: {more}"


def most_groups(count: int) -> str:
    """In how many groups at most, in words."""
    return f"in at most {count} group{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a pass: whole numbers below ``size``, or NULL; no size for any other content, of some ``kind``."""

    name: str
    size: int | None = None
    kind: Kind = "integer"
    nullable: bool = True

    @property
    def bits(self) -> int:
        """Bits for the value, or for the value plus one if zero stands for NULL."""
        return (self.size if self.nullable else self.size - 1).bit_length() if self.size is not None else 999


@dataclass(frozen=True, slots=True)
class SecretKey:
    """Odd multipliers of exactly 30 bits, drawn afresh for each release."""

    words: tuple[int, ...]

    @classmethod
    def draw(cls, rng: Rng) -> SecretKey:
        """From a source of randomness, through the tap, so that replay draws it again."""
        drawn = coins([f"sampling key {number}" for number in range(64)], rng)
        return cls(tuple(int(word) % (1 << 29) | (1 << 29) | 1 for word in drawn))

    def __repr__(self) -> str:
        return "SecretKey(...)"


def bound(
    engine: Engine,
    frame: Any,
    fields: Sequence[Field],
    groups: Sequence[str],
    unit: Kind,
    limit: ContributionLimit,
    key: SecretKey,
) -> Any:
    """The rows of ``frame`` (columns ``unit_`` and ``fields``) that count, without the unit.

    ``groups`` are the fields that name the group, ``unit`` is the kind of the identifier.
    """
    names = [field.name for field in fields]
    word = _unit_word(engine, unit, key)
    if limit.groups < limit.rows and groups:
        by = [field for field in fields if field.name in groups]
        frame = _with_hash_order(engine, frame, word, by, [*names, "unit_"], key)
        frame = engine.smallest_per_unit(frame, [*names, "unit_"], "unit_", ", ".join(["s", *groups]), limit.groups)
    bits = sum(field.bits for field in fields)
    if bits <= WIDEST:
        frame = engine.project(frame, ["unit_", word, f"{_pack(engine, fields)} AS p"])
        frame = _with_hash(engine, frame, ["unit_", "p"], key, 0, room=min(HALF, 63 - bits))
        frame = engine.project(frame, ["unit_", f"{engine.beside('h0', bits, 'p')} AS s"])
        return _unpack(engine, engine.smallest(frame, "unit_", "s", limit.rows), fields)
    frame = _with_hash_order(engine, frame, word, fields, [*names, "unit_"], key)
    return engine.first_rows(frame, "unit_", "s", names, limit.rows)


def kept_rows(engine: Engine, frame: Any, fields: Sequence[Field], unit: Kind, most: int, key: SecretKey) -> Any:
    """At most so many rows of each unit of ``frame`` (columns ``unit_`` and ``fields``), with the unit."""
    names = ["unit_", *(field.name for field in fields)]
    ordered = _with_hash_order(engine, frame, _unit_word(engine, unit, key), fields, names, key)
    return engine.first_rows(ordered, "unit_", "s", names, most)


def _unit_word(engine: Engine, kind: Kind, key: SecretKey) -> str:
    """62 bits that depend on the identifier and the key."""
    whole = _whole(engine, "unit_", kind)
    mixed = engine.xor(f"(({whole} & {MASK}) * {key.words[0]})", f"({engine.shift_right(whole, HALF)} & {MASK})")
    return f"COALESCE({mixed}, 0) AS u"


def _pack(engine: Engine, fields: Sequence[Field]) -> str:
    """One number for all fields, each in bits of its own; where there may be a NULL, plus one, and zero for it."""
    packed, shift = "", 0
    for field in fields:
        value = f"COALESCE({field.name} + 1, 0)" if field.nullable else field.name
        packed = engine.beside(value, shift, packed) if packed else value
        shift += field.bits
    return packed


def _unpack(engine: Engine, frame: Any, fields: Sequence[Field]) -> Any:
    columns, shift = [], 0
    for field in fields:
        part = f"({engine.shift_right('s', shift) if shift else 's'} & {(1 << field.bits) - 1})"
        columns.append(f"{f'NULLIF({part}, 0) - 1' if field.nullable else part} AS {field.name}")
        shift += field.bits
    return engine.project(frame, columns)


def _with_hash_order(
    engine: Engine, frame: Any, word: str, fields: Sequence[Field], carried: Sequence[str], key: SecretKey
) -> Any:
    """``carried`` columns, and ``s``: 62 bits of keyed hash of ``fields``."""
    frame = engine.project(frame, [*carried, word, f"{_fold(engine, fields, key)} AS p"])
    one = _with_hash(engine, frame, [*carried, "u", "p"], key, 0)
    two = _with_hash(engine, one, [*carried, "u", "p", "h0"], key, 1)
    return engine.project(two, [*carried, f"{engine.beside('h0', HALF, 'h1')} AS s"])


def _fold(engine: Engine, fields: Sequence[Field], key: SecretKey) -> str:
    """A number below 2^62 from fields of any width: products of 31-bit parts with odd multipliers,
    joined bit by bit.
    """
    total, parts = "0", []
    for field in fields:
        whole = _whole(engine, field.name, field.kind)
        parts += [whole, engine.shift_right(whole, HALF)]
        if field.kind == "number":
            parts.append(_floor(field.name, f"({field.name} - floor({field.name})) * {1 << HALF}"))
    for number, part in enumerate(parts):
        factor = key.words[16 + number % 48]
        total = engine.xor(total, f"COALESCE(({part} & {MASK}) * {factor}, {factor})")
    return total


def _whole(engine: Engine, value: str, kind: Kind) -> str:
    """64 bits of a value, the same in both engines, or NULL:
    casts of doubles that are not whole differ between them.
    """
    if kind == "text":
        return engine.digest(value)
    if kind == "integer":
        return f"TRY_CAST({value} AS BIGINT)"
    if kind == "number":
        return _floor(value, value)
    raise ValueError(f"kind is {kind!r}, but must be 'text', 'integer' or 'number'.")


def _floor(double: str, value: str) -> str:
    """The whole part of a value made of a double, where that is small enough for it not to fail; beyond, rows tie."""
    return f"CAST(CASE WHEN abs({double}) < {1 << 52} THEN floor({value}) END AS BIGINT)"


def _with_hash(engine: Engine, frame: Any, carried: Sequence[str], key: SecretKey, which: int, room: int = HALF) -> Any:
    """``carried`` columns, and ``h0`` or ``h1``: ``room`` bits of hash of the columns ``p`` and ``u``,
    both below 2^62.
    """
    frame = engine.project(frame, [*carried, f"{engine.xor('p', 'u')} AS x"])
    frame = engine.project(frame, [*carried, f"(x & {MASK}) * ({engine.shift_right('x', HALF)} | 1) AS x"])
    for turn in range(1, ROUNDS):
        middle, low = f"({engine.shift_right('x', 15)} & {MASK})", f"(x & {MASK})"
        frame = engine.project(
            frame, [*carried, f"{middle} * {engine.xor(low, str(key.words[4 + 2 * turn + which]))} AS x"]
        )
    return engine.project(frame, [*carried, f"{engine.shift_right('x', 15)} & {(1 << room) - 1} AS h{which}"])
