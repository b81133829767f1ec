"""Numbers that Python puts on the way to a loss, and which of them count the records.

A replay takes them as they are, and cannot see what they were made of. So they are compared from one verified batch to
the next. A function that was given so many times the records in batches of two sizes counts them: for one record it is
given another number. What changes otherwise is public, such as a weight that grows from step to step, unless Python
asked for values of records, or it is a power of a size, or of one more or less (a loss that is divided by
``len(y) - 1``): then nobody knows. So it is with the optimiser's options: a learning rate that follows the size of the
batch tells that size with every step.
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
    from torch.optim import Optimizer

__all__ = ["BatchNumbers", "Counts", "NumbersOfRun", "numbers_of_options", "possible_counts"]

Counts = Mapping[tuple[int, int], int]
"""By the call on the way to the losses and the place in it: 1 if a number grows with the records, -1 if it shrinks."""

Place = tuple[Any, int]
"""A torch function, and which one of its numbers."""

POWERS, SHIFTS = (1.0, -1.0, 0.5, -0.5), (0, 1, -1)
EXACTLY = 1e-9
MOST = 6  # verified batches that are compared, and places that are tried by themselves
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


def numbers_of_options(optimizer: Optimizer) -> list[float]:
    """The numbers that an optimiser goes by, such as its learning rate."""
    groups: list[dict[str, Any]] = optimizer.param_groups
    options = [value for group in groups for name, value in group.items() if name != "params"]
    return numbers([float(x) if isinstance(x, Tensor) and x.numel() == 1 else x for x in options])


def _times(x: float, records: int) -> int:
    """k if x is k·records or 1/(k·records), else 0.

    >>> [_times(x, 8) for x in (16.0, 1 / 8, 12.0, 0.3)]
    [2, 1, 0, 0]
    """
    x = x if abs(x) >= 1 or not x else 1 / x
    times = round(x / records) if math.isfinite(x) else 0
    return times if _alike(x, times * records) else 0


def _alike(x: float, y: float) -> bool:
    return abs(x - y) <= EXACTLY * max(abs(x), abs(y))


@dataclass(frozen=True, slots=True)
class BatchNumbers:
    """Of one verified batch: the calls on the way to the losses, and the numbers that each was given."""

    records: int
    calls: tuple[Any, ...]
    values: tuple[tuple[float, ...], ...]
    sizes: tuple[float, ...]  # that Python asked for
    read: bool  # whether values of records were read
    foreign: tuple[Tensor, ...] = ()  # tensors from elsewhere, where they were
    options: tuple[float, ...] = ()  # of the optimiser

    @classmethod
    def of(cls, tape: LossTape, known: set[int], options: Sequence[float] = ()) -> BatchNumbers:
        """Those of the calls that lead to a tape's losses; ``known`` tensors are the model's own."""
        calls, read = tape.calls_of_losses(), tape.values_asked_before_backward
        made = {id(x) for call in tape.calls for x in call.outputs} | tape.data | tape.drawn | known
        foreign = tuple(x for call in calls for x in _foreign(call, made)) if read else ()
        values = tuple(tuple(numbers((call.args, call.kwargs))) for call in calls)
        functions, sizes = tuple(call.func for call in calls), (float(tape.records), *tape.sizes)
        return cls(tape.records, functions, values, sizes, read, foreign, tuple(options))

    @property
    def way(self) -> tuple[Any, ...]:
        """The calls, and how many numbers each was given: what a batch that goes the same way has, too."""
        return self.calls, tuple(map(len, self.values))

    def multiples(self) -> dict[Place, set[int]]:
        """How many times the records each number is, by the function that was given it, and its place there."""
        times: dict[Place, set[int]] = {}
        for function, values in zip(self.calls, self.values, strict=True):
            for j, x in enumerate(values):
                times.setdefault((function, j), set()).add(_times(x, self.records))
        return times


@dataclass(slots=True)
class NumbersOfRun:
    """The numbers of a run's verified batches."""

    _counting: dict[Place, set[int]] = field(default_factory=dict)  # k that a number was in every batch so far
    _met: dict[Place, set[int]] = field(default_factory=dict)  # the sizes of those batches
    _last: list[BatchNumbers] = field(default_factory=list)
    _seen: dict[Any, list[BatchNumbers]] = field(default_factory=dict)  # by the way that they went

    def are_public(self, now: BatchNumbers) -> bool:
        """Take those of one batch more; whether all are public, or count records, as far as can be seen."""
        last, self._last = self._last[-1:], [*self._last, now][-MOST:]
        for place, times in now.multiples().items():
            self._counting[place] = self._counting.get(place, times) & times - {0}
            self._met.setdefault(place, set()).add(now.records)
        before = self._seen.pop(now.way, [])
        seen = self._seen[now.way] = [*before, now][-MOST:]
        if len(self._seen) > MOST:
            del self._seen[next(iter(self._seen))]  # that was gone longest ago
        if not before:
            # a condition on values may have chosen the way
            return not (self._options_follow_sizes() or (last and now.read and last[0].read))
        unknown = self._options_follow_sizes() or (now.read and not _same(before[-1].foreign, now.foreign))
        for call, function in enumerate(now.calls):
            for j, values in enumerate(zip(*(one.values[call] for one in seen), strict=True)):
                if len(set(values)) == 1 or _is_shape(function) or self.counts((function, j), values[-1], now.records):
                    continue
                unknown |= now.read or _follow(values, _sizes(seen))
        return not unknown

    def _options_follow_sizes(self) -> bool:
        told = [one for one in self._last if len(one.options) == len(self._last[-1].options)]
        return any(_follow(values, _sizes(told)) for values in zip(*(one.options for one in told), strict=True))

    def counts(self, place: Place, x: float, records: int) -> bool | None:
        """Whether a number at this place counts the records; unknown before two sizes were seen."""
        if len(self._met.get(place, ())) < 2:
            return None
        return _times(x, records) in self._counting[place]

    def choices(self, tape: LossTape) -> list[Counts]:
        """Which numbers may count the records: those that are known to, and of the others none, all, those of one
        place, one alone, or all but those of a place. Of several at a known place, such as a temperature that is the
        number of records once, one alone may count, too."""
        calls = tape.calls_of_losses()
        known: dict[Place, dict[tuple[int, int], int]] = {}
        unclear: dict[Place, dict[tuple[int, int], int]] = {}
        for (call, j), sign in possible_counts(calls, tape.records).items():
            place, x = (calls[call].func, j), numbers((calls[call].args, calls[call].kwargs))[j]
            counts = self.counts(place, x, tape.records)
            if counts is not False:
                (known if counts else unclear).setdefault(place, {})[call, j] = sign
        counted, every = _merged(known), _merged(unclear)
        sure = [counted, *({key: counted[key] for key in counted if key not in rest} for rest in _rests(known))]
        groups = list(unclear.values())[:MOST]
        some = [*groups, *({key: every[key]} for group in groups if len(group) > 1 for key in group)]
        others = [{key: sign for key, sign in every.items() if key not in group} for group in groups]
        return [one | choice for choice in ([{}, every, *some, *others] if unclear else [{}]) for one in sure]


def _merged(groups: Mapping[Place, Mapping[tuple[int, int], int]]) -> dict[tuple[int, int], int]:
    return {key: sign for group in groups.values() for key, sign in group.items()}


def _rests(known: Mapping[Place, Mapping[tuple[int, int], int]]) -> list[set[tuple[int, int]]]:
    """Of each place with several numbers, all but one of them."""
    return [set(group) - {key} for group in known.values() if len(group) > 1 for key in group][:MOST]


def _sizes(seen: Sequence[BatchNumbers]) -> list[tuple[float, ...]]:
    """Of each size that Python asked for, what it was in the batches; of three different ones, at least."""
    asked = [one.sizes for one in seen]
    if len({len(sizes) for sizes in asked}) > 1:
        asked = [sizes[:1] for sizes in asked]
    return [sizes for sizes in zip(*asked, strict=True) if len(set(sizes)) > 2]


def _is_shape(function: Any) -> bool:
    return getattr(function, "__name__", "") in SHAPES


def _follow(values: Sequence[float], sizes: Sequence[Sequence[float]]) -> bool:
    return len(set(values)) > 2 and any(_is_law(values, of_one) for of_one in sizes)


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


def _foreign(call: TapeEntry, made: set[int]) -> list[Tensor]:
    """The arrays of numpy's among a call's arguments, and the tensors that no torch function made."""
    arrays = [torch.from_numpy(np.atleast_1d(x)) for x in call.args if isinstance(x, np.ndarray)]
    return [x.detach() for x in call.inputs if id(x) not in made] + arrays


def _same(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    """Whether tensors are the same ones, such as weights of a teacher that follows, or have the same values."""
    return len(one) == len(other) and all(
        x.data_ptr() == y.data_ptr() or (x.shape == y.shape and torch.equal(x, y))
        for x, y in zip(one, other, strict=True)
    )
