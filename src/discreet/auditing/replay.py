"""Record and replay: does a private pipeline touch its data only where it says, and as gently as it says?

Run an operation on D and keep the noisy outputs (the transcript). Run it on a neighbour D′ with those outputs forced at
every step. A correct operation sees data only through them, so on D′ it must take the same steps, hand values to the
noise that lie within the declared sensitivity of those on D, and return the very same result. With the same *noise*
instead of the same outputs a correct multi-step algorithm would look broken, because its iterates drift apart.

It finds violations; it proves nothing. Random coins that belong to records (``random.tap.coins``) are keyed by record
and step, so a record that is in both data sets is sampled in both. Public randomness (an initial guess) should come
from a source of its own, seeded inside the operation, since forced outputs draw nothing.

>>> import numpy as np
>>> from discreet.mechanisms import Laplace
>>> noise = Laplace(sensitivity=1.0, epsilon=1.0)
>>> transcript = replay(lambda x: noise.release(np.clip(x, 0, 1).sum()), [0.2, 0.9], [0.2])
>>> len(transcript.steps)
1
>>> replay(lambda x: noise.release(np.sum(x)), [0.2, 9.0], [0.2])
Traceback (most recent call last):
...
discreet.auditing.replay.ReplayError: Step 1 (Laplace(...)): the value to be noised differs by 9 in l1, ...
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.random.tap import Norm, listening

__all__ = ["ReplayError", "Step", "Transcript", "record", "replay"]

_EXACT = 4096  # entries up to which distances are computed without rounding


class ReplayError(AssertionError):
    """An operation treated two neighbours in a way its declared cost does not cover."""


@dataclass(frozen=True, slots=True)
class Step:
    """One meeting of a private value with noise."""

    what: str
    value: Any
    norm: Norm
    limit: Any
    output: Any


@dataclass(slots=True)
class Transcript:
    """What an operation did on one data set: its steps, and how it ended. Holds private values: not for publication."""

    steps: list[Step] = field(default_factory=list)
    result: Any = None
    error: str | None = None

    def __repr__(self) -> str:
        return f"Transcript({len(self.steps)} steps)"


class _Recorder:
    """Lets noise be drawn and keeps every step."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self._coin_step = 0

    def noised(self, what: object, value: Any, norm: Norm, limit: Any, draw: Callable[[], Any]) -> Any:
        before = _copy(value)  # noise may be added in place
        output = draw()
        self.transcript.steps.append(Step(str(what), before, norm, limit, _copy(output)))
        return output

    def coins(self, keys: Sequence[object]) -> NDArray[np.uint64]:
        self._coin_step += 1
        seen: Counter[object] = Counter()
        words = []
        for key in keys:
            seen[key] += 1  # the second of two equal records has a coin of its own
            text = repr((self._coin_step, key, seen[key])).encode()
            words.append(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()))
        return np.array(words, np.uint64)


class _Replayer(_Recorder):
    """Forces the outputs of an earlier run and compares what would have been noised."""

    def __init__(self, first: Transcript) -> None:
        super().__init__()
        self._first = first

    def noised(self, what: object, value: Any, norm: Norm, limit: Any, draw: Callable[[], Any]) -> Any:
        position = len(self.transcript.steps)
        if position >= len(self._first.steps):
            raise ReplayError(f"Step {position + 1} ({what}) happens on the neighbour only: the number of noisy steps "
                              "depends on the data.")
        before = self._first.steps[position]
        _compare(position + 1, before, Step(str(what), value, norm, limit, before.output))
        self.transcript.steps.append(before)
        return _copy(before.output)


def record(operation: Callable[[Any], Any], data: Any) -> Transcript:
    """Run ``operation(data)`` and keep its noisy outputs; an error it raises is part of the record."""
    return _run(operation, data, _Recorder())


def replay(operation: Callable[[Any], Any], data: Any, neighbour: Any) -> Transcript:
    """Record on ``data``, replay on ``neighbour``; raise ``ReplayError`` at the first thing the cost does not cover.

    ``neighbour`` must be one under the adjacency the operation states. Replay is not symmetric: try both orders.
    """
    first = record(operation, data)
    second = _run(operation, neighbour, _Replayer(first))
    if first.error != second.error:
        kinds = " and ".join(error.split(":")[0] if error else "no error" for error in (first.error, second.error))
        raise ReplayError(f"The two runs ended differently ({kinds}): whether or how it fails depends on the data.")
    if len(second.steps) != len(first.steps):
        raise ReplayError(f"{len(first.steps)} noisy steps on the data, {len(second.steps)} on the neighbour: the "
                          "number of noisy steps depends on the data.")
    if not _same(first.result, second.result):
        raise ReplayError("With every noisy output the same, the results differ: something reaches the result "
                          "without noise (a shape, a key, a size, a value).")
    return first


def _run(operation: Callable[[Any], Any], data: Any, listener: _Recorder) -> Transcript:
    transcript = listener.transcript
    with listening(listener):
        try:
            transcript.result = operation(data)
        except ReplayError:
            raise
        except Exception as error:  # whatever it is, the neighbour must fail in the same way
            transcript.error = f"{type(error).__name__}: {error}"
    return transcript


def _compare(position: int, before: Step, now: Step) -> None:
    head = f"Step {position} ({before.what})"
    if (before.what, before.norm) != (now.what, now.norm):
        raise ReplayError(f"{head} is another step on the neighbour ({now.what}): the course of the run, or the noise, "
                          "depends on the data.")
    distance = _distance(before.value, now.value, before.norm)
    if distance is None:
        raise ReplayError(f"{head}: the value to be noised has another shape on the neighbour.")
    limit = min(before.limit, now.limit)  # a limit that depends on the data must hold from both sides
    if distance > limit:
        raise ReplayError(f"{head}: the value to be noised differs by {float(distance):.6g} in {before.norm}, but the "
                          f"declared sensitivity is {float(limit):.6g}.")


def _distance(a: Any, b: Any, norm: Norm) -> Any:
    """The distance, exact for moderate sizes; none if shapes differ. Not-a-number is infinitely far from the rest."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = sorted({*a, *b}, key=repr)
        a, b = ([x.get(key, 0) for key in keys] for x in (a, b))
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return None
    changed = [(x, y) for x, y in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True) if x != y]
    if norm == "hamming":
        return len(changed)
    if any(isinstance(z, float) and not math.isfinite(z) for pair in changed for z in pair):
        return math.inf
    number: Callable[[Any], Any] = Fraction if len(changed) <= _EXACT else float
    gaps = [abs(number(x) - number(y)) for x, y in changed]
    if norm == "linf":
        return max(gaps, default=0)
    if norm == "l1":
        return sum(gaps)
    square = sum(gap * gap for gap in gaps)
    return math.sqrt(square) * (1 - 1e-15)  # the root is rounded; do not let that look like a violation


def _same(a: Any, b: Any) -> bool:
    """Deep equality in which not-a-number equals itself and types must agree."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return (a.shape, a.dtype) == (b.shape, b.dtype) and _same(a.reshape(-1).tolist(), b.reshape(-1).tolist())
    if isinstance(a, Mapping):
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        return all(_same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    return bool(a is b or a == b or (a != a and b != b))


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, (np.ndarray, dict)) else value
