"""Where the records are in the tensors of a call: read off a probe, a run on a few copies of one record.

The dimension whose size follows the number of records holds them. So ``batch_first=False``, flattened batches and
tables that are looked up once for all records are told apart even where sizes coincide. All records of the probe are
copies, so the order of a flattened dimension shows too: entries of a record follow one another, or the records take
turns. Which call of a pass is which, ``Positions`` counts.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from discreet.errors import extra
from discreet.training.errors import MixedRecords
from discreet.training.gradients.rules.handlers import Layout

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Place", "Places", "Positions", "records_of"]

Noted = TypeVar("Noted")


@dataclass(slots=True)
class Seen:
    """A tensor of the probe: its shape, and for each dimension that may hold several entries a record, whether the
    records take turns in it (none: unclear).

    Where something is unclear the value is kept, for a second probe in which the first record is another.
    """

    shape: torch.Size
    turns: dict[int, bool | None]
    value: Tensor | None = None

    def compare(self, x: Tensor, count: int) -> None:
        """The entries that changed with the first record are that record's."""
        if self.value is None or x.shape != self.shape:
            return
        differs = x.detach() != self.value
        for dim in [d for d, known in self.turns.items() if known is None]:
            changed = differs.movedim(dim, 0).reshape(x.shape[dim], -1).any(1).nonzero().flatten()
            blocks, turns = bool((changed < x.shape[dim] // count).all()), bool((changed % count == 0).all())
            self.turns[dim] = turns if blocks != turns else None
        self.value = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where records were found: the dimension, whether several entries a record are folded into it, and how."""

    dim: int
    folded: bool = False
    interleaved: bool | None = False  # none: unclear, and settled by another tensor of the call


def records_of(x: Tensor, records: int | None) -> int | None:
    """The dimension of an input that holds the records: the first, or the second where the batch was turned."""
    return next((d for d in range(min(2, x.dim())) if x.shape[d] == records), None)


def _look_at(x: Tensor, count: int) -> Seen:
    """What a tensor of the probe tells."""
    dims = [d for d, size in enumerate(x.shape) if size > count and size % count == 0 and x.numel()]
    if not dims:
        return Seen(x.shape, {})
    x = x.detach()
    turns = {dim: _turns(x.movedim(dim, 0), count) for dim in dims}
    return Seen(x.shape, turns, x.clone() if None in turns.values() else None)


def _turns(x: Tensor, count: int) -> bool | None:
    """Whether copies of a record take turns in the first dimension, or follow one another."""
    if x.is_complex():
        x = torch.view_as_real(x.resolve_conj())
    x = x if x.is_floating_point() else x.double()
    blocks, turns = x.reshape(count, -1, *x.shape[1:]), x.reshape(-1, count, *x.shape[1:])
    one_after_another = float((blocks[0] - blocks[1]).abs().max())
    in_turns = float((turns[:, 0] - turns[:, 1]).abs().max())
    if max(one_after_another, in_turns) <= 1e-4 * float(x.abs().max()):
        return None
    return in_turns < one_after_another


class Positions:
    """Where a pass is: in which module, in which of its calls, at which call of which torch function.

    Counted alike in a probe and in a real pass, or calls would be taken for others. A module that calls more functions
    for other records (experts, of which only some are hit; a mask that is left out) puts nothing off outside of it, and
    no other function inside.
    """

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}
        self._outside: list[tuple[Any, Any, dict[Any, int]]] = []
        self._frame: Any = None
        self._function: Any = None
        self._counts: dict[Any, int] = {}

    @property
    def now(self) -> tuple[Any, ...]:
        """The current function: which module's call it is in, and its number among that function's calls there."""
        return self._frame, self._function, self._counts.get(self._function, 0)

    def source(self, number: int) -> tuple[Any, ...]:
        """The place of the tensor of this number whose rows the current module picks."""
        return self._frame, "source", number

    def advance(self, function: Any) -> None:
        """The next function."""
        self._function = function
        self._counts[function] = self._counts.get(function, 0) + 1

    def enter(self, module: str) -> None:
        """A module inside the current one begins."""
        before = self._calls.get(module, 0)
        self._begin((module, before))
        self._calls[module] = before + 1

    def leave(self) -> None:
        """It ends."""
        if self._outside:
            self._frame, self._function, self._counts = self._outside.pop()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Functions that the current function calls: they are counted by themselves."""
        self._begin(self.now)
        try:
            yield
        finally:
            self.leave()

    def _begin(self, frame: Any) -> None:
        self._outside.append((self._frame, self._function, self._counts))
        self._frame, self._function, self._counts = frame, None, {}


class Places:
    """What is known about the calls of one module: by position in the forward pass, a place for each tensor."""

    def __init__(self, count: int = 2) -> None:
        self.count = count  # of records that a probe runs on
        self.doubtful = False  # whether something was settled that holds for one record alone
        self._probed: dict[Any, tuple[Any, list[Seen]]] = {}
        self._known: dict[Any, tuple[Any, list[Place | None]]] = {}

    def note(self, position: Any, function: Any, found: list[Tensor], shared: Container[int] = ()) -> None:
        """A call of the probe; of what is ``shared``, parameters, only the shape matters."""
        self._probed[position] = (
            function,
            [Seen(x.shape, {}) if id(x) in shared else _look_at(x, self.count) for x in found],
        )

    @property
    def unclear(self) -> bool:
        """Whether a probe with another record first may tell more."""
        return any(one.value is not None for _, found in self._probed.values() for one in found)

    def compare(self, position: Any, function: Any, found: list[Tensor]) -> None:
        """A call of the second probe."""
        before = _met(self._probed, position, function, found)
        if before is not None:
            for one, x in zip(before, found, strict=True):
                one.compare(x, self.count)

    def forget(self) -> None:
        """Drop a probe that failed: sizes alone must do."""
        self._probed.clear()

    def find(
        self,
        position: Any,
        function: Any,
        leaves: list[Tensor],
        records: int,
        guess: Callable[[Tensor], Place | None],
        location: Callable[[], str],
    ) -> list[Layout | None]:
        """The layout of each tensor of a call."""
        known = _met(self._known, position, function, leaves)
        if known is None:
            known = self._compare(position, function, leaves, records, guess, location)
            self._known[position] = function, known
        found: list[Layout | None] = []
        for leaf, place in zip(leaves, known, strict=True):
            if place is None:
                found.append(None)
                continue
            fold, rest = divmod(leaf.shape[place.dim], records)
            if rest or not fold or (fold > 1 and not place.folded):
                raise MixedRecords(
                    f"{_name(function)} at {location()} has {leaf.shape[place.dim]} entries where the batch has "
                    f"{records} records. Call the model on the batch as the loader gave it."
                )
            found.append(_layout(place.dim, fold, bool(place.interleaved) and fold > 1))
        return found

    def _compare(
        self,
        position: Any,
        function: Any,
        leaves: list[Tensor],
        records: int,
        guess: Callable[[Tensor], Place | None],
        location: Callable[[], str],
    ) -> list[Place | None]:
        before = _met(self._probed, position, function, leaves)
        if before is None:
            return [guess(leaf) for leaf in leaves]
        pairs = zip(leaves, before, strict=True)
        found = [self._place(function, leaf.shape, then, records, location) for leaf, then in pairs]
        for i, place in enumerate(found):
            if place is None or place.interleaved is not None:
                continue
            clear = next((p for p, x in zip(found, leaves, strict=True) if _settles(p, x, place, leaves[i])), None)
            if clear is None and records > 1:
                raise MixedRecords(
                    f"{_name(function)} at {location()} has {leaves[i].shape[place.dim]} rows for {records} records, "
                    "and a trial could not tell which are whose: they all looked the same. Keep the records in a "
                    "dimension of their own there."
                )
            self.doubtful |= clear is None  # of one record all rows are its own; for several, another trial must tell
            found[i] = Place(place.dim, True) if clear is None else clear
        return found

    def _place(
        self, function: Any, now: torch.Size, then: Seen, records: int, location: Callable[[], str]
    ) -> Place | None:
        if len(now) != len(then.shape):
            return None
        moved = [d for d in range(len(now)) if now[d] != then.shape[d]]
        if len(moved) > 1:
            raise MixedRecords(
                f"{_name(function)} at {location()} has the records in more than one dimension: it compares "
                "records with each other, so no record has a gradient of its own."
            )
        if not moved:
            return None
        if now[moved[0]] * self.count != then.shape[moved[0]] * records:
            raise MixedRecords(
                f"{_name(function)} at {location()} has {now[moved[0]]} entries where the batch has {records} "
                f"records, and {then.shape[moved[0]]} where it has {self.count}: its rows are not the records'."
            )
        folded = now[moved[0]] != records
        return Place(moved[0], folded, then.turns.get(moved[0], False) if folded else False)


def _met(
    calls: Mapping[Any, tuple[Any, list[Noted]]], position: Any, function: Any, found: Sequence[Tensor]
) -> list[Noted] | None:
    """What was noted at this position, if it is of the same function with as many tensors: else it was another call."""
    noted = calls.get(position)
    return noted[1] if noted is not None and noted[0] is function and len(noted[1]) == len(found) else None


def _settles(known: Place | None, x: Tensor, unclear: Place, other: Tensor) -> bool:
    """Whether a tensor of the same call shows the order of as many rows in the same dimension."""
    if known is None or known.interleaved is None or known.dim != unclear.dim:
        return False
    return known.folded and x.shape[known.dim] == other.shape[unclear.dim]


_layout = cache(Layout)  # few are different, and every call of every step asks for some


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", function))
