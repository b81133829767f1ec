"""Arrow's types as DuckDB takes them, value by value: decided by the type, so that no value decides anything."""

from __future__ import annotations

from typing import Any

from discreet.errors import extra

with extra("tables"):
    import pyarrow as pa

__all__ = ["plain_field", "plain_schema"]


def plain_schema(schema: Any) -> Any:
    """The same columns in types that DuckDB takes."""
    return pa.schema([plain_field(field) for field in schema])


def plain_field(field: Any) -> Any:
    """A column in a type that DuckDB takes; one that it does not take is refused by name.

    Times are instants of UTC without their zone, for DuckDB stops at a zoned one that is beyond its calendar. Halves
    are floats, exactly. A dictionary is what its words are.
    """
    kind = field.type
    if isinstance(kind, pa.UuidType):
        return field
    if isinstance(kind, pa.DictionaryType):
        plain_field(field.with_type(kind.value_type))
        return field
    while isinstance(kind, (pa.BaseExtensionType, pa.RunEndEncodedType)):
        kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind.value_type
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp(kind.unit)
    elif pa.types.is_float16(kind):
        kind = pa.float32()
    elif pa.types.is_decimal(kind) and not pa.types.is_decimal128(kind):
        kind = pa.decimal128(kind.precision, kind.scale) if kind.precision <= _MOST_DIGITS else kind
    if not any(takes(kind) for takes in _TAKEN):
        raise ValueError(
            f"Column {field.name!r} has type {field.type}, but must hold numbers, truth values, text, dates or times: "
            "cast it first."
        )
    return field.with_type(kind)


_MOST_DIGITS = 38  # of a decimal in DuckDB
_TAKEN = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal128,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_date,
    pa.types.is_timestamp,
)
