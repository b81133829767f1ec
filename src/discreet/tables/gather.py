"""What an engine's sums say of the groups: verified, added up to exact whole numbers, put in their groups' places.

Decision 100.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.engines import EngineFailed
from discreet.tables.fixed_point import COARSE
from discreet.tables.scans import ScanPass, ScanResult, Stats, Whole

if TYPE_CHECKING:
    from discreet.tables.passes import GroupedRows

__all__ = ["MISREAD", "ODD", "gather_groups"]

ODD = "odd_"
MISREAD = (
    "The engine did not read the rows as it was told to, so nothing is released. With an engine that does, this cannot "
    "happen, whatever the rows hold: report it, with the engine's version."
)
_MANY = 1 << 30  # rows in a group: up to as many, sums of k ≤ 2^30, and products of those with k's top, fit in 64 bits


def gather_groups(rows: GroupedRows, wanted: ScanPass, columns: Sequence[Any], names: Sequence[str]) -> ScanResult:
    """The groups of a scan, of the engine's ``columns``: keys, the bin if there are any, sums with these ``names``."""
    keys, rest = columns[: len(rows.keys)], list(columns[len(rows.keys) :])
    bins = rest.pop(0) if wanted.bins else None
    sums = _whole_numbers(dict(zip(names, rest, strict=True)), rows.source.engine.half_bits)
    rows._verify(wanted, sums, bins)
    lines = Stats(len(sums["rows"]), _numbers(wanted, sums))  # each line of the engine a group of its own
    if wanted.bins and bins is not None:
        held = np.flatnonzero(~np.ma.getmaskarray(bins))
        lines.binned[wanted.bins] = held, np.ma.getdata(bins)[held].astype(np.int64), sums["rows"][held]
    if rows.private_keys:
        found = _names(rows, keys, lines.size)
        unique = {name: place for place, name in enumerate(dict.fromkeys(name for name in found if name is not None))}
        places = np.array([-1 if name is None else unique[name] for name in found], np.int64)
        return ScanResult(tuple(unique), lines.at_places(places, len(unique)))
    return ScanResult(None, lines.at_places(_places(rows, keys, lines.size), rows.public_groups))


def _whole_numbers(columns: Mapping[str, Any], half: int) -> dict[str, Whole]:
    """The sums under their names, of halves where an engine gives those; nothing, of no rows, is zero."""
    plain: dict[str, Whole] = {name: np.ma.filled(column, 0).astype(np.int64) for name, column in columns.items()}
    if plain["rows"].max(initial=0) >= _MANY:
        plain = {name: column.astype(object) for name, column in plain.items()}
    out = {name: column for name, column in plain.items() if name[-1] not in "hl"}
    for name in plain:
        if name[-1] == "h":
            high, low = plain[name], plain[f"{name[:-1]}l"]
            out[name[:-1]] = high * (1 << half) + low
    return out


def _numbers(wanted: ScanPass, sums: Mapping[str, Whole]) -> dict[Any, Whole]:
    """The same under the names of ``Stats``."""
    numbers: dict[Any, Whole] = {("rows",): sums["rows"]}
    for number, (column, steps) in enumerate(wanted.sums):
        numbers["count", column, steps] = sums[f"count{number}"]
        numbers["sum", column, steps] = sums[f"sum{number}"]
        if steps == COARSE:
            numbers["squares", column, steps] = sums[f"squares{number}"]
    for number, (left, right) in enumerate(wanted.products):
        numbers["product", left, right] = sums[f"product{number}"]
    if wanted.distinct:
        missing = sums["rows"] > sums["present"]  # the engines count a missing value as one more
        numbers["distinct", wanted.distinct] = sums["different"] - missing
    return numbers


def verify(rows: GroupedRows, wanted: ScanPass, sums: Mapping[str, Whole], bins: Any) -> None:
    """Refuse sums of values that are not what the engine was told to add up: clipped, on the grid, not NaN.

    Optimisers rewrite queries by what they believe of the data. What is added up is therefore looked at where it is
    added up. This cannot fail with an engine that does what it is told, whatever the rows hold.
    """
    tests: list[Any] = [sums[ODD] == 0] if ODD in sums else []
    if wanted.bins and bins is not None:
        known = np.ma.compressed(bins)
        tests += [known >= 0, known < wanted.bins.count]
    for number, (column, steps) in enumerate(wanted.sums):
        top, count, total = rows.grid(column, steps).top, sums[f"count{number}"], sums[f"sum{number}"]
        tests += [sums[f"least{number}"] >= 0, sums[f"most{number}"] <= top, count <= sums["rows"]]
        tests += [total >= 0, total <= count * top]
    for number, (left, right) in enumerate(wanted.products):
        most = rows.grid(left, COARSE).top * rows.grid(right, COARSE).top
        tests += [sums[f"product{number}"] >= 0, sums[f"product{number}"] <= sums["rows"] * most]
    if not all(bool(np.all(test)) for test in tests):
        raise EngineFailed(MISREAD)


# --- which group a line belongs to -----------------------------------------------------------------------------------


def _places(rows: GroupedRows, keys: Sequence[Any], size: int) -> NDArray[np.int64]:
    """Each line's place among the public groups; -1 for a line that is in none."""
    place, known = np.zeros(size, np.int64), np.ones(size, bool)
    for name, column in zip(rows.keys, keys, strict=True):
        code = rows.columns.codes(name, column)
        known &= code >= 0
        place = place * len(rows.columns.labels_of(name)) + code
    if (possible := rows.possible_places) is None:
        return np.where(known, place, -1)
    # a line of a group that is not listed cannot be: the conditions exclude it
    number = np.minimum(np.searchsorted(possible, place), max(len(possible) - 1, 0))
    known &= possible[number] == place if len(possible) else False
    return np.where(known, number, -1)


def _names(rows: GroupedRows, keys: Sequence[Any], size: int) -> list[tuple[Any, ...] | None]:
    """What each line's group is called; none for a line that is in none."""
    columns = []
    for name, column in zip(rows.keys, keys, strict=True):
        columns.append(rows.columns.labels(name, column))
    return [None if None in name else name for name in zip(*columns, strict=True)] if columns else [()] * size
