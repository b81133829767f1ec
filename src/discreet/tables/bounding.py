r"""At most so many rows of each unit, chosen in the engine by a keyed permutation.

Every row of the pass is packed into one whole number p < 2^62 (its group and its fixed-point values). A permutation of
[0, 2^62), keyed by a secret of this release and by the unit, turns p into s; the m smallest s of each unit stay, and the
inverse permutation gives the rows back. So one ``min`` per unit, without a window or a sort, does the choosing.

*Soundness.* Which rows of a unit stay is a function of that unit's rows and the key alone, neither of their order nor of
any other unit: adding or removing a unit adds or removes at most m rows and leaves all others as they were. Rows are
grouped by the identifier itself, not by a hash of it, because two units in one bucket would replace each other's rows.
Equal rows have equal s, so a tie is between rows that are the same.

*Fairness.* The permutation is a four-round Feistel network on two halves of 31 bits, with multiplications that never
leave 63 bits, so both engines compute the same s. It need not resist cryptanalysis: privacy does not rest on it, only
an even choice among a unit's rows does.

Rows too wide for 62 bits, or with text in them, are ordered by a keyed hash of their contents instead, and carried
whole. Rows without an identifier (NULL) count together as one unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.random import Rng
from discreet.random.tap import coins
from discreet.tables.engines import Engine

__all__ = ["Bounds", "Field", "SecretKey", "bound"]

HALF = 31
MASK = (1 << HALF) - 1
ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that one unit may contribute; no ``unit`` means that each row is its own."""

    unit: str | None = None
    rows: int = 1
    groups: int = 1

    def describe(self) -> str:
        """In words."""
        if self.unit is None:
            return "one row"
        groups = f", in at most {self.groups} groups" if self.groups < self.rows else ""
        return f"all rows with the same {self.unit!r}, of which at most {self.rows} count{groups}"


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a pass: whole numbers below ``size``, or NULL; no size for any other content."""

    name: str
    size: int | None = None
    text: bool = False

    @property
    def bits(self) -> int:
        """Bits for the value plus one; zero stands for NULL."""
        return self.size.bit_length() if self.size is not None else 999


@dataclass(frozen=True, slots=True)
class SecretKey:
    """Odd multipliers of 30 bits, drawn afresh for each release."""

    words: tuple[int, ...]

    @classmethod
    def draw(cls, rng: Rng) -> SecretKey:
        """From a source of randomness, through the tap, so that replay draws it again."""
        return cls(tuple(int(word) % (1 << 30) | 1 for word in coins([f"sampling key {i}" for i in range(64)], rng)))

    def __repr__(self) -> str:
        return "SecretKey(...)"


def bound(engine: Engine, frame: Any, fields: Sequence[Field], groups: Sequence[str], unit_is_text: bool, limit: Bounds,
          key: SecretKey) -> Any:
    """The rows of ``frame`` (columns ``unit_`` and ``fields``) that count, without the unit.

    ``groups`` are the fields that name the group.
    """
    names = [field.name for field in fields]
    words = _unit_words(engine, unit_is_text, key)
    if limit.groups < limit.rows and groups:
        by = [field for field in fields if field.name in groups]
        frame = _permuted(engine, frame, words, _folded(engine, by, key), [*names, "unit_"], key)
        frame = engine.ranked(frame, [*names, "unit_"], "unit_", ", ".join(["s", *groups]), limit.groups)
    if sum(field.bits for field in fields) <= 2 * HALF:
        frame = _permuted(engine, frame, words, _packed(fields), ["unit_"], key)
        frame = engine.smallest(frame, "unit_", "s", limit.rows)
        return _unpacked(engine, _restored(engine, frame, words, key), fields)
    frame = _permuted(engine, frame, words, _folded(engine, fields, key), [*names, "unit_"], key)
    return engine.first_rows(frame, "unit_", "s", names, limit.rows)


def _unit_words(engine: Engine, is_text: bool, key: SecretKey) -> list[str]:
    """Two 31-bit words that depend on the identifier and the key: the unit's share of the permutation."""
    whole = engine.digest("unit_") if is_text else "TRY_CAST(unit_ AS BIGINT)"
    parts = (f"(({whole} & {MASK}) * {key.words[0]})", f"(({engine.shifted(whole, HALF)} & {MASK}) * {key.words[1]})")
    mixed = f"COALESCE({engine.xor(*parts)}, 0)"
    return [f"{mixed} & {MASK} AS u0", f"{engine.shifted(mixed, 20)} & {MASK} AS u1"]


def _packed(fields: Sequence[Field]) -> str:
    """One number for all fields: each plus one in bits of its own, zero for NULL."""
    terms, shift = [], 0
    for field in fields:
        terms.append(f"COALESCE({field.name} + 1, 0) * {1 << shift}")
        shift += field.bits
    return " + ".join(terms)


def _unpacked(engine: Engine, frame: Any, fields: Sequence[Field]) -> Any:
    columns, shift = [], 0
    for field in fields:
        part = f"({engine.shifted('p', shift)} & {(1 << field.bits) - 1})"
        columns.append(f"NULLIF({part}, 0) - 1 AS {field.name}")
        shift += field.bits
    return engine.project(frame, columns)


def _folded(engine: Engine, fields: Sequence[Field], key: SecretKey) -> str:
    """A keyed hash of the fields, below 2^62: products of 31-bit parts with odd multipliers, joined by exclusive or."""
    total = "0"
    for number, field in enumerate(fields):
        whole = engine.digest(field.name) if field.text else f"TRY_CAST({field.name} AS BIGINT)"
        for part, word in ((whole, 2 * number), (engine.shifted(whole, HALF), 2 * number + 1)):
            factor = key.words[16 + word % 48]
            total = engine.xor(total, f"COALESCE(({part} & {MASK}) * {factor}, {factor})")
    return total


def _permuted(engine: Engine, frame: Any, words: Sequence[str], value: str, carried: Sequence[str], key: SecretKey) -> Any:
    """``carried`` columns, and ``s``: the keyed permutation of ``value``, a whole number below 2^62."""
    frame = engine.project(frame, [*carried, *words, f"{value} AS p"])
    frame = engine.project(frame, [*carried, "u0", "u1", f"{engine.shifted('p', HALF)} AS a", f"p & {MASK} AS b"])
    for turn in range(ROUNDS):
        mixed = engine.xor("a", _round(engine, "b", turn, key))
        frame = engine.project(frame, [*carried, "u0", "u1", "b AS a", f"{mixed} AS b"])
    return engine.project(frame, [*carried, f"a * {1 << HALF} + b AS s"])


def _restored(engine: Engine, frame: Any, words: Sequence[str], key: SecretKey) -> Any:
    """``p`` again, from ``unit_`` and ``s``: the rounds backwards."""
    frame = engine.project(frame, [*words, f"{engine.shifted('s', HALF)} AS a", f"s & {MASK} AS b"])
    for turn in reversed(range(ROUNDS)):
        mixed = engine.xor("b", _round(engine, "a", turn, key))
        frame = engine.project(frame, ["u0", "u1", f"{mixed} AS a", "a AS b"])
    return engine.project(frame, [f"a * {1 << HALF} + b AS p"])


def _round(engine: Engine, half: str, turn: int, key: SecretKey) -> str:
    """31 bits from the middle of a product that stays below 2^61."""
    product = f"({engine.xor(half, f'u{turn % 2}')} * {key.words[8 + turn]})"
    return f"({engine.shifted(product, 15)} & {MASK})"
