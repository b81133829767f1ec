"""Numbers that Python puts on the way to a loss, and which of them count the records.

A replay takes them as they are, and cannot see what they were made of. So they are compared from one verified batch to
the next. One that changes as the number of records does counts them: for one record it is another. One that changes
otherwise is public, such as a weight that grows from step to step, unless Python asked for values of records, or it is
a size's root, or one more or less than a size (a loss that is divided by ``len(y) - 1``): then nobody knows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.training.gradients.trace.trees import numbers
from discreet.training.verification.tape import LossTape, TapeEntry

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["BatchNumbers", "Counts", "NumbersOfRun", "possible_counts"]

Counts = Mapping[tuple[int, int], int]
"""By the call on the way to the losses and the place in it: 1 if a number grows with the records, -1 if it shrinks."""

LARGEST = 4096  # entries of a tensor whose values are compared, not only which tensor it is
POWERS = (1.0, -1.0, 0.5, -0.5)
SHIFTS = (0, 1, -1)
EXACTLY = 1e-9
MOST = 6  # verified batches that are compared
WAYS = 4  # that are remembered: a loss that has another term every tenth step goes two
SHAPES = frozenset(
    {
        *("arange", "broadcast_to", "empty", "expand", "eye", "new_empty", "new_ones", "new_zeros", "ones", "zeros"),
        *("flatten", "movedim", "permute", "reshape", "squeeze", "transpose", "unflatten", "unsqueeze", "view"),
        *("__getitem__", "chunk", "diagonal", "gather", "index_select", "narrow", "select", "split", "tril", "triu"),
        *("pad", "repeat", "repeat_interleave", "roll", "tile", "unfold"),
    }
)
"""Torch functions whose numbers are shapes and places: a wrong one does not run, or is counted."""


def possible_counts(calls: Sequence[TapeEntry], records: int) -> dict[tuple[int, int], int]:
    """The numbers of one batch that are k·records or 1/(k·records): each may count, or be public by coincidence."""
    places = [(i, j, x) for i, call in enumerate(calls) for j, x in enumerate(numbers((call.args, call.kwargs)))]
    return {(i, j): 1 if abs(x) >= 1 else -1 for i, j, x in places if _times(x, records)}


def _times(x: float, records: int) -> int:
    """k if x is k·records or 1/(k·records), else 0.

    >>> [_times(x, 8) for x in (16.0, 1 / 8, 12.0, 0.3)]
    [2, 1, 0, 0]
    """
    x = x if abs(x) >= 1 or not x else 1 / x
    times = round(x / records) if math.isfinite(x) else 0
    return times if _alike(x, times * records) else 0


def _grows(values: Sequence[float], records: Sequence[int]) -> int:
    """1 if numbers are c·records, -1 if they are c/records, 0 if neither. Of two different sizes alone any c would do
    too often by chance, so there c, or 1/c, must be whole.

    >>> _grows((16.0, 24.0), (8, 12)), _grows((1 / 8, 1 / 12), (8, 12)), _grows((0.3 / 8, 0.3 / 9, 0.03), (8, 9, 10))
    (1, -1, -1)
    >>> _grows((8.0, 8.0), (8, 12)), _grows((0.01, 0.02), (5, 10))
    (0, 0)
    """
    if len(set(values)) == 1 or len(set(records)) == 1:
        return 0
    for sign in (1, -1):
        ratios = [x / n**sign for x, n in zip(values, records, strict=True)]
        whole = ratios[0] if sign == 1 else 1 / ratios[0] if ratios[0] else 0.0
        enough = len(set(records)) > 2 or (bool(round(whole)) and _alike(whole, round(whole)))
        if enough and all(_alike(ratios[0], ratio) for ratio in ratios):
            return sign
    return 0


def _alike(x: float, y: float) -> bool:
    return abs(x - y) <= EXACTLY * max(abs(x), abs(y))


@dataclass(frozen=True, slots=True)
class BatchNumbers:
    """Of one verified batch: the calls on the way to the losses, and the numbers that each was given."""

    records: int
    calls: tuple[Any, ...]
    values: tuple[tuple[float, ...], ...]
    sizes: tuple[float, ...]  # that Python asked for
    tensors: tuple[tuple[int, Tensor], ...]  # that came from elsewhere, where values of records were read
    read: bool  # whether they were

    @classmethod
    def of(cls, tape: LossTape, known: set[int]) -> BatchNumbers:
        """Those of the calls that lead to a tape's losses; ``known`` tensors are the model's own."""
        calls, given = tape.calls_of_losses(), dict[int, Tensor]()
        if tape.values_asked_before_backward:
            made = {id(x) for call in tape.calls for x in call.outputs} | tape.data | tape.drawn | known
            for call in calls:
                arrays = [torch.from_numpy(np.atleast_1d(x)) for x in call.args if isinstance(x, np.ndarray)]
                given |= {id(x): x for x in [*call.inputs, *arrays] if id(x) not in made}
        # a view holds the storage, so its place is nobody else's
        few = [(x.data_ptr(), x.detach().clone() if x.numel() <= LARGEST else x[:0]) for x in given.values()]
        values = tuple(tuple(numbers((call.args, call.kwargs))) for call in calls)
        functions, sizes = tuple(call.func for call in calls), (float(tape.records), *tape.sizes)
        return cls(tape.records, functions, values, sizes, tuple(few), tape.values_asked_before_backward)

    def multiples(self) -> set[tuple[Any, int]]:
        """Numbers that may count the records, by the function that was given them: how many times."""
        given = {(call, x) for call, values in zip(self.calls, self.values, strict=True) for x in values}
        return {(call, _times(x, self.records)) for call, x in given if _times(x, self.records) and not _shapes(call)}

    @property
    def way(self) -> tuple[Any, ...]:
        """The calls, and how many numbers each was given: what a batch that goes the same way has, too."""
        return self.calls, tuple(map(len, self.values))


@dataclass(slots=True)
class NumbersOfRun:
    """The numbers of the last verified batches of a run, by the way that they went."""

    counting: set[tuple[Any, int]] = field(default_factory=set)  # functions that were given k·records, and k
    counts: dict[tuple[int, int], int] = field(default_factory=dict)  # which ones; empty where the way is new
    _last: BatchNumbers | None = None
    _seen: dict[Any, list[BatchNumbers]] = field(default_factory=dict)

    def are_public(self, now: BatchNumbers) -> bool:
        """Take those of one batch more; whether all are public, or count records, as far as can be seen."""
        (last, self._last), self.counts = (self._last, now), {}
        before = self._seen.pop(now.way, [])
        seen = self._seen[now.way] = [*before, now][-MOST:]
        if len(self._seen) > WAYS:
            del self._seen[next(iter(self._seen))]  # that was gone longest ago
        if not before:
            if last is not None and last.records != now.records:
                self.counting |= last.multiples() & now.multiples()
            return last is None or not (now.read and last.read)
        unknown = now.read and not _same(before[-1].tensors, now.tensors)
        records, sizes = [one.records for one in seen], _sizes(seen)
        for call, function in enumerate(now.calls):
            for place, values in enumerate(zip(*(one.values[call] for one in seen), strict=True)):
                if sign := _grows(values, records):
                    self.counts[call, place] = sign
                    self.counting |= set() if _shapes(function) else {(function, _times(values[-1], now.records))}
                elif len(set(values)) > 1 and not _shapes(function):
                    unknown |= now.read or (len(set(values)) > 2 and any(_is_law(values, u) for u in sizes))
        return not unknown

    def choices(self, tape: LossTape) -> list[Counts]:
        """Which numbers may count the records, on a way whose counts are not known: those of a function that was seen
        to be given so many times the records. Before that none, all that may, or those of one function; with shapes,
        which do not run otherwise."""
        calls, records = tape.calls_of_losses(), tape.records
        possible, groups = possible_counts(calls, records), dict[Any, dict[tuple[int, int], int]]()
        shapes = {place: sign for place, sign in possible.items() if _shapes(calls[place[0]].func)}
        for (call, place), sign in possible.items():
            if (call, place) not in shapes:
                x = numbers((calls[call].args, calls[call].kwargs))[place]
                groups.setdefault((calls[call].func, _times(x, records)), dict(shapes))[call, place] = sign
        if self.counting:
            return [{k: v for kind in groups if kind in self.counting for k, v in groups[kind].items()} | shapes]
        return [{}, possible, *list(groups.values())[:MOST]] if possible else [{}]


def _sizes(seen: Sequence[BatchNumbers]) -> list[tuple[float, ...]]:
    """Of each size that Python asked for, what it was in the batches; of three different ones, at least."""
    asked = [one.sizes for one in seen]
    if len({len(sizes) for sizes in asked}) > 1:
        asked = [sizes[:1] for sizes in asked]
    return [sizes for sizes in zip(*asked, strict=True) if len(set(sizes)) > 2]


def _shapes(function: Any) -> bool:
    return getattr(function, "__name__", "") in SHAPES


def _is_law(values: Sequence[float], sizes: Sequence[float]) -> bool:
    """Whether numbers are c·(size + shift)^power, with one c, shift and power for all.

    >>> _is_law((1 / 7, 1 / 8, 1 / 10), (8, 9, 11)), _is_law((0.1, 0.2, 0.3), (8, 9, 11))
    (True, False)
    """
    for shift in SHIFTS:
        for power in POWERS if min(sizes) + shift > 0 else ():
            ratios = [v / (u + shift) ** power for v, u in zip(values, sizes, strict=True)]
            if all(_alike(ratios[0], ratio) for ratio in ratios):
                return True
    return False


def _same(one: Sequence[tuple[int, Tensor]], other: Sequence[tuple[int, Tensor]]) -> bool:
    """Whether tensors are the same ones, or have the same values."""
    return len(one) == len(other) and all(
        i == j or (x.shape == y.shape and x.numel() > 0 and torch.equal(x, y))
        for (i, x), (j, y) in zip(one, other, strict=True)
    )
