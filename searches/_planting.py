"""Odd containers and odd records in the data of the operations that ``tests/operations`` lists, and what must hold.

An odd *container* is answered, or refused with nothing charged, by an error of ours that says what to give. An odd
*record* changes nothing but its own contribution: with it an operation answers if it does without it, and what meets
noise differs by no more than one record may move it by.
"""

from __future__ import annotations

import dis
import random
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from polars.exceptions import PanicException

import discreet
from discreet.auditing import ReplayError, replay
from discreet.errors import DiscreetError
from discreet.release import ONE_RECORD, charged
from tests.operations.contract import Case, Log, SpyBook

__all__ = ["Broken", "check_container", "check_record", "kinds", "plant_container", "plant_record"]

REFUSALS = (ValueError, TypeError, OSError, DiscreetError)
REMEDY = re.compile(
    r"\b(must|but|give|needs?|declare|cast|reshape|required|not supported|there is no)\b", re.IGNORECASE
)
HOME = str(Path(discreet.__file__).parent)


class Broken(AssertionError):
    """A promise that did not hold."""


def kinds(cases: list[Case]) -> list[Case]:
    """The first case of each kind of operation."""
    first: dict[type, Case] = {}
    for case in cases:
        first.setdefault(type(case.operation(case.data)[0]), case)
    return list(first.values())


# --- containers ------------------------------------------------------------------------------------------------------


def plant_container(case: Case, container: Any, place: int) -> Any:
    """The container in place of all the data (place 0), or of one of its parts: a column, rows, their targets."""
    if place == 0 or not isinstance(case.data, (tuple, dict)) or _is_list_of_numbers(case.data):
        return container
    if isinstance(case.data, dict):
        name = list(case.data)[(place - 1) % len(case.data)]
        return case.data | {name: container}
    return _with_part(case.data, container, place - 1)


def _with_part(parts: tuple[Any, ...], container: Any, place: int) -> tuple[Any, ...]:
    at = place % len(parts)
    inside = parts[at]
    if isinstance(inside, tuple):  # a model with (X, y)
        container = _with_part(inside, container, place // len(parts))
    return (*parts[:at], container, *parts[at + 1 :])


def _is_list_of_numbers(data: Any) -> bool:
    return isinstance(data, tuple) and all(isinstance(entry, (int, float)) for entry in data)


def check_container(case: Case, data: Any) -> bool:
    """Whether it was answered. Raises ``Broken`` where it was neither answered nor refused with nothing charged."""
    log = Log()
    operation = case.operation(case.data)[0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            charged(operation, data, book=SpyBook(log), rng=1)
    except (Exception, PanicException) as error:
        if "charge" in log:
            if case.calls:
                return False  # a function of the user's read it, and failed
            raise Broken(f"{case.name}: charged, then {type(error).__name__}: {error}") from error
        if _is_raw(error) or not isinstance(error, REFUSALS) or not REMEDY.search(str(error)):
            raise Broken(f"{case.name}: a raw {type(error).__name__}: {error}") from error
        return False
    return True


def _is_raw(error: BaseException) -> bool:
    """Whether it was raised by anything but a ``raise`` of the library's own."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None:
        return True
    code = step.tb_frame.f_code
    return not code.co_filename.startswith(HOME) or dis.opname[code.co_code[step.tb_lasti]] != "RAISE_VARARGS"


# --- records ---------------------------------------------------------------------------------------------------------


Planted = tuple[Any, Any, Any]  # with the odd record, a neighbour without it, and the same without anything odd


def plant_record(case: Case, odd: Any, rng: random.Random) -> Planted:
    """The odd record among the others, in a list or an array of objects, in one of the parts that data have."""
    shape = rng.choice([list, _objects])
    return _plant(case.data, case.neighbour, odd, shape, rng)


def _plant(data: Any, neighbour: Any, odd: Any, shape: Callable[[list[Any]], Any], rng: random.Random) -> Planted:
    if isinstance(data, dict):
        return _in_mapping(data, odd, shape, rng) if _is_table(data) else _in_counts(data, odd, rng)
    if isinstance(data, tuple) and all(isinstance(part, dict) for part in data):
        return _in_linked(data, odd, shape, rng)
    if isinstance(data, tuple) and not _is_list_of_numbers(data):
        return _in_parts(data, neighbour, odd, shape, rng)
    every, other = _entries(data), _entries(neighbour)
    at = rng.randrange(len(every))
    entry = every[at]
    if isinstance(entry, list) and rng.random() < 0.5:
        column = rng.randrange(len(entry))
        odd = [*entry[:column], odd, *entry[column + 1 :]]
    replaced = [*every[:at], odd, *every[at + 1 :]]
    without = every if len(every) == len(other) else [*every[:at], *every[at + 1 :]]
    return shape(replaced), shape(without), shape(every)


def _in_parts(
    data: tuple[Any, ...], neighbour: Any, odd: Any, shape: Callable[[list[Any]], Any], rng: random.Random
) -> Planted:
    """In one of parts that lie side by side, as (X, y): a record is the same place in each of them."""
    if not hasattr(data[0], "__len__"):  # a model with its records
        first, second, third = _plant(data[1], neighbour[1], odd, shape, rng)
        return (data[0], first), (data[0], second), (data[0], third)
    parts = [_entries(part) for part in data]
    at, chosen = rng.randrange(len(parts[0])), rng.randrange(len(parts))
    smaller = len(_entries(neighbour[0])) != len(parts[0])
    replaced = [[*p[:at], odd if i == chosen else p[at], *p[at + 1 :]] for i, p in enumerate(parts)]
    without = [[*p[:at], *p[at + 1 :]] if smaller else p for p in parts]
    odd_data, other, plain = (
        tuple(_as_given(entries, part, shape) for entries, part in zip(some, data, strict=True))
        for some in (replaced, without, parts)
    )
    return odd_data, other, plain


def _as_given(entries: list[Any], part: Any, shape: Callable[[list[Any]], Any]) -> Any:
    """Rows of an array stay one where that is possible, since a list of them has no public width."""
    if isinstance(part, np.ndarray) and part.ndim > 1:
        try:
            return np.array(entries, part.dtype)
        except Exception:
            return _table_of_objects(entries, part.shape[1])
    return shape(entries)


def _table_of_objects(rows: list[Any], width: int) -> Any:
    out = np.empty((len(rows), width), object)
    for place, row in enumerate(rows):
        for column in range(width):
            out[place, column] = row[column] if isinstance(row, list) and len(row) == width else row
    return out


def _in_mapping(data: dict[str, Any], odd: Any, shape: Callable[[list[Any]], Any], rng: random.Random) -> Planted:
    at, chosen = rng.randrange(len(next(iter(data.values())))), rng.choice(list(data))
    replaced = {n: shape([*v[:at], odd if n == chosen else v[at], *v[at + 1 :]]) for n, v in data.items()}
    without = {n: shape([*v[:at], *v[at + 1 :]]) for n, v in data.items()}
    return replaced, without, {n: shape(list(v)) for n, v in data.items()}


def _in_linked(
    data: tuple[dict[str, Any], ...], odd: Any, shape: Callable[[list[Any]], Any], rng: random.Random
) -> Planted:
    """In a row of tables that share one column, a key; what leaves is all that has its key."""
    (key,) = set(data[0]).intersection(*data[1:])
    root, table = rng.choice(data[0][key]), rng.choice(data)
    rows = [i for i, own in enumerate(table[key]) if own == root] or [rng.randrange(len(table[key]))]
    at, chosen = rng.choice(rows), rng.choice([name for name in table if name != key])
    root = table[key][at]
    found: list[Any] = [[], [], []]
    for part in data:
        stays = [own != root for own in part[key]]
        changed = {**part, chosen: [*part[chosen][:at], odd, *part[chosen][at + 1 :]]} if part is table else part
        found[0].append({n: shape(list(v)) for n, v in changed.items()})
        found[1].append({n: shape([x for x, stay in zip(v, stays, strict=True) if stay]) for n, v in part.items()})
        found[2].append({n: shape(list(v)) for n, v in part.items()})
    odd_data, without, plain = map(tuple, found)
    return odd_data, without, plain


def _in_counts(data: dict[Any, Any], odd: Any, rng: random.Random) -> Planted:
    return data | {rng.choice(list(data)): odd}, data, data


def _is_table(data: dict[Any, Any]) -> bool:
    return all(hasattr(values, "__len__") for values in data.values())


def _entries(data: Any) -> list[Any]:
    return data.tolist() if isinstance(data, np.ndarray) else list(data)


def _objects(entries: list[Any]) -> Any:
    out = np.empty(len(entries), object)
    for place, entry in enumerate(entries):
        out[place] = entry
    return out


def check_record(case: Case, planted: Planted) -> bool:
    """Whether it was answered. Raises ``Broken`` where the record decides more than its own contribution."""
    odd, without, ordinary = planted
    plain, told = _outcome(case, ordinary), _outcome(case, odd)
    values = case.holds == "values"  # whose shape is public, that of an entry too
    if told != plain and not (values and told.startswith("refused, ValueError")) and not case.calls:
        raise Broken(f"{case.name}: with the record {told}, without it {plain}")
    alone = case.operation(odd)[0].unit == ONE_RECORD  # otherwise a record may join another's unit
    if told != "answered" or values or case.calls or not alone:
        return told == "answered"
    try:
        replay(case.run, odd, without)
    except ReplayError as error:
        raise Broken(f"{case.name}: {error}") from error
    return True


def _outcome(case: Case, data: Any) -> str:
    """What a caller sees: that it was answered, or the kind of the refusal; warnings are errors."""
    log = Log()
    operation, given = case.operation(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            charged(operation, given, book=SpyBook(log), rng=1)
    except Exception as error:
        return f"{'charged' if 'charge' in log else 'refused'}, {type(error).__name__}: {error}"
    return "answered"
