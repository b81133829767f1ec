"""What Python put on the way to a loss: numbers, and tensors that no call on the tape made.

A replay takes them as they are, so it cannot see what they were made of: a size of the batch, a value that was read out
of a tensor. They are compared from one verified batch to the next instead. One that changes as the number of records
does is a number of records (``counts``). One that changes as another size of the batch does, or that changes at all
where the loop reads values of records before its backward pass, is not known to be public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.training.gradients.trace.trees import numbers
from discreet.training.verification.tape import LossTape, TapeEntry

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Constants", "Course", "times"]

LARGEST = 4096  # entries of a tensor whose values are compared, not only which tensor it is
POWERS = (1.0, -1.0, 0.5, -0.5, 2.0, -2.0)
SHIFTS = (0, 1, -1)
EXACTLY = 1e-9
MOST = 6  # verified batches that are compared
SHAPES = frozenset(
    {
        "__getitem__",
        "arange",
        "broadcast_to",
        "chunk",
        "diagonal",
        "empty",
        "expand",
        "eye",
        "flatten",
        "gather",
        "index_select",
        "movedim",
        "narrow",
        "new_empty",
        "new_ones",
        "new_zeros",
        "ones",
        "pad",
        "permute",
        "repeat",
        "repeat_interleave",
        "reshape",
        "roll",
        "select",
        "split",
        "squeeze",
        "tile",
        "transpose",
        "tril",
        "triu",
        "unflatten",
        "unfold",
        "unsqueeze",
        "view",
        "zeros",
    }
)
"""Torch functions whose numbers are shapes and places: a wrong one does not run, or is counted."""


def following(before: float, now: float, sizes: tuple[int, int]) -> int:
    """Whether a number is a constant times a size that changed (1), or divided by it (-1), or neither (0).

    >>> following(16.0, 24.0, (8, 12)), following(1 / 8, 1 / 12, (8, 12)), following(8.0, 8.0, (8, 12))
    (1, -1, 0)
    """
    if before == now or sizes[0] == sizes[1]:
        return 0
    times = _alike(before * sizes[1], now * sizes[0])
    return 1 if times else -1 if _alike(before * sizes[0], now * sizes[1]) else 0


def times(x: float, records: int) -> int:
    """How many times the number of records a number is, or one of how many times; none: zero.

    >>> times(16, 8), times(1 / 8, 8), times(12, 8), times(0.3, 8)
    (2, 1, 0, 0)
    """
    x = x if abs(x) >= 1 or not x else 1 / x
    found = round(x / records) if math.isfinite(x) else 0
    return found if found and _alike(x, found * records) else 0


def _shapes(function: Any) -> bool:
    return getattr(function, "__name__", "") in SHAPES


def _alike(x: float, y: float) -> bool:
    return abs(x - y) <= EXACTLY * max(abs(x), abs(y))


@dataclass(frozen=True, slots=True)
class Constants:
    """Of one verified batch: the calls on the way to the losses, and for each the numbers that it was given."""

    records: int
    calls: tuple[Any, ...]
    values: tuple[tuple[float, ...], ...]
    sizes: tuple[float, ...]  # that Python was told
    tensors: tuple[tuple[int, Tensor], ...]  # that came from elsewhere, where values of records were read
    read: bool

    @classmethod
    def of(cls, tape: LossTape, calls: Sequence[TapeEntry], records: int, known: set[int]) -> Constants:
        """Those of the calls that lead to the losses; ``known`` tensors are the model's own."""
        given: dict[int, Tensor] = {}
        if tape.read:
            made = {id(x) for call in tape.calls for x in call.outputs} | tape.data | tape.drawn | known
            for call in calls:
                given |= {id(x): x for x in call.inputs if id(x) not in made}
                arrays = [x for x in call.args if isinstance(x, np.ndarray)]
                given |= {id(x): torch.from_numpy(np.atleast_1d(x)) for x in arrays}
        # a view holds the storage, so its place is nobody else's
        few = [(x.data_ptr(), x.detach().clone() if x.numel() <= LARGEST else x[:0]) for x in given.values()]
        return cls(
            records=records,
            calls=tuple(call.func for call in calls),
            values=tuple(tuple(numbers((call.args, call.kwargs))) for call in calls),
            sizes=(float(records), *tape.told),
            tensors=tuple(few),
            read=tape.read,
        )

    def multiples(self) -> set[tuple[Any, int]]:
        """Numbers that may be numbers of records, by the function that was given them: how many times."""
        scaled = [pair for pair in zip(self.calls, self.values, strict=True) if not _shapes(pair[0])]
        return {(call, times(x, self.records)) for call, values in scaled for x in values if times(x, self.records)}

    def same_form(self, other: Constants) -> bool:
        """Whether another batch went the same way."""
        return self.calls == other.calls and [len(v) for v in self.values] == [len(v) for v in other.values]


@dataclass(slots=True)
class Course:
    """The constants of the verified batches of a run, as many of the last as are of one form."""

    follows: bool = False  # whether numbers of the loop were seen to follow the number of records
    counts: dict[tuple[int, int], int] = field(default_factory=dict)  # which ones: the call, the place in it
    _seen: list[Constants] = field(default_factory=list)

    def known(self, now: Constants) -> bool:
        """Take those of one batch more; whether all of them are public, or numbers of records, as far as can be
        seen."""
        last = self._seen[-1] if self._seen else None
        if last is not None and not now.same_form(last):
            self._seen, self.counts = [now], {}
            self.follows |= last.records != now.records and bool(last.multiples() & now.multiples())
            return not (now.read and last.read)
        self._seen = [*self._seen, now][-MOST:]
        if last is None:
            return True
        changed = False
        for call, (function, before, after) in enumerate(zip(now.calls, last.values, now.values, strict=True)):
            shape = _shapes(function)
            for place, (x, y) in enumerate(zip(before, after, strict=True)):
                if sign := following(x, y, (last.records, now.records)):
                    self.counts[call, place], self.follows = sign, True
                elif x != y and not shape:
                    changed = True
        if now.read and (changed or not _same(last.tensors, now.tensors)):
            return False
        return not self._follow_a_size()

    def _follow_a_size(self) -> bool:
        """Whether a number is a function of a size: of three different ones, at least, the same simple one."""
        told = [one.sizes for one in self._seen]
        if len({len(sizes) for sizes in told}) > 1:
            told = [sizes[:1] for sizes in told]
        sizes = [u for u in zip(*told, strict=True) if len(set(u)) > 2]
        for call, function in enumerate(self._seen[0].calls if sizes else ()):
            if _shapes(function):
                continue
            for place, values in enumerate(zip(*(one.values[call] for one in self._seen), strict=True)):
                if (call, place) not in self.counts and len(set(values)) > 2 and any(_law(values, u) for u in sizes):
                    return True
        return False


def _law(values: Sequence[float], sizes: Sequence[float]) -> bool:
    """Whether numbers are a constant times a power of sizes, or of one more or one less.

    >>> _law((1 / 7, 1 / 8, 1 / 10), (8, 9, 11)), _law((0.1, 0.2, 0.3), (8, 9, 11))
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
