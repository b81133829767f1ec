"""Record and replay: does a private pipeline touch its data only where it says, and as gently as it says?

Run an operation on D and keep the noisy outputs (the transcript). Run it on a neighbour D′ with those outputs forced at
every step. A correct operation sees data only through them, so on D′ it must take the same steps, hand values to the
noise that lie within the declared sensitivity of those on D, and return the very same result. With the same *noise*
instead of the same outputs a correct multi-step algorithm would look broken, because its iterates drift apart.

Each run gets copies of the operation and its data (``_fresh``), so that nothing kept from one reaches the other. Noise
must come from the system's source, not from a seed; it must be as large as its step declares; and the steps in which
the neighbours differ must cost no more together than the result says (a ``Release``, or ``event=``): see ``_charges``.
Files, prints and warnings must agree, and nothing may reach outside: see ``_outside``. An operation that fails shows
nothing.

It finds violations; it proves nothing. Not seen are: state in other modules or in classes; what compiled code writes;
memory shared with others, environment variables, the log, the time a run takes; a thread that ends before the run does;
the scale of noise in a choice (``Exponential`` and its kin) or in a step that is named by text; what a result holds in
objects without an equality; and whatever two given data sets do not bring out.

Random coins that belong to records (``random.tap.coins``) are keyed by record and step, so a record that is in both
data sets is sampled in both. Public randomness (an initial guess) should come from a source of its own, seeded inside
the operation, since forced outputs draw nothing; where one seed serves both, say ``seeded=True``.

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

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.auditing._charges import covered, size_of_noise, too_small
from discreet.auditing._fresh import fresh as copied
from discreet.auditing._outside import Traces, difference, left_behind, traced
from discreet.auditing._same import Incomparable, same
from discreet.events import Event
from discreet.random.source import drawn_from
from discreet.random.tap import Norm, listening
from discreet.release import Release

__all__ = ["ReplayError", "Step", "Transcript", "record", "replay"]

_EXACT = 4096  # entries up to which distances are computed without rounding


class ReplayError(AssertionError):
    """An operation treated two neighbours in a way its declared cost does not cover."""


@dataclass(frozen=True, slots=True)
class Step:
    """One meeting of a private value with noise: ``sources`` tells the kinds it was drawn from (see ``drawn_from``)."""

    what: str
    value: Any
    norm: Norm
    limit: Any
    output: Any
    event: Event | None = None
    sources: frozenset[bool] = frozenset()
    named: bool = False  # by text, so that the law of its output is not known

    @property
    def releases(self) -> bool:
        """Whether the step lets anything out: one that only checks a value gives nothing."""
        return self.output is not None and not (isinstance(self.output, np.ndarray) and self.output.size == 0)


@dataclass(slots=True)
class Transcript:
    """What an operation did on one data set: its steps, and how it ended. Holds private values: not for publication."""

    steps: list[Step] = field(default_factory=list)
    result: Any = None
    error: str | None = None
    traces: Traces = field(default_factory=Traces)
    failure: type[BaseException] | None = None
    elsewhere: bool = False

    def __repr__(self) -> str:
        return f"Transcript({len(self.steps)} steps)"


class _Recorder:
    """Lets noise be drawn and keeps every step."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self._coin_step = 0

    def noised(
        self,
        what: object,
        value: Any,
        norm: Norm,
        limit: Any,
        draw: Callable[[], Any],
        event: Event | None,
        once: object,
    ) -> Any:
        before = _copy(value)  # noise may be added in place
        with drawn_from() as kinds:
            output = draw()
        cost = event if event is not None else getattr(what, "event", None)
        self.transcript.steps.append(
            Step(str(what), before, norm, limit, _copy(output), cost, frozenset(kinds), isinstance(what, str))
        )
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

    def elsewhere(self) -> None:
        self.transcript.elsewhere = True


class _Replayer(_Recorder):
    """Forces the outputs of an earlier run, compares what would have been noised,
    and adds up what the difference costs.
    """

    def __init__(self, first: Transcript) -> None:
        super().__init__()
        self._first = first
        self._paid: list[object] = []
        self.cost: list[Event | None] = []

    def noised(
        self,
        what: object,
        value: Any,
        norm: Norm,
        limit: Any,
        draw: Callable[[], Any],
        event: Event | None,
        once: object,
    ) -> Any:
        position = len(self.transcript.steps)
        if position >= len(self._first.steps):
            raise ReplayError(
                f"Step {position + 1} ({what}) happens on the neighbour only: the number of noisy steps "
                "depends on the data."
            )
        before = self._first.steps[position]
        moved = _compare(position + 1, before, Step(str(what), value, norm, limit, before.output))
        self.transcript.steps.append(before)
        if moved and before.releases and (once is None or not any(once is paid for paid in self._paid)):
            self._paid += [] if once is None else [once]
            self.cost.append(before.event)
        return _copy(before.output)


def record(operation: Callable[[Any], Any], data: Any) -> Transcript:
    """Run ``operation(data)`` and keep its noisy outputs; an error it raises is part of the record."""
    return _run(operation, data, _Recorder())


def replay(
    operation: Callable[[Any], Any],
    data: Any,
    neighbour: Any,
    *,
    event: Event | None = None,
    allow: tuple[type[Exception], ...] = (),
    seeded: bool = False,
    fresh: bool = True,
    reaches: Collection[str] = (),
) -> Transcript:
    """Record on ``data``, replay on ``neighbour``; raise ``ReplayError`` at the first thing the cost does not cover.

    ``neighbour`` must be one under the adjacency the operation states. Replay is not symmetric: try both orders.
    ``event`` is what the operation is charged, if its result does not say so; ``allow`` names errors that it may raise,
    if it raises them on both sides; ``seeded`` lets noise come from a seed; without ``fresh`` nothing is copied.
    ``reaches`` names ways out that you answer for, as Python audits them: ``("socket.connect",)`` for an engine behind
    a connection.
    """
    found: str | None = None
    for _ in range(2):  # a second look at what happens once in a process: imports, compilation, pools of threads
        first, second, cost = _pair(operation, data, neighbour, fresh)
        _judge(first, second, allow, seeded)
        declared = event if event is not None else _declared(first.result)
        if declared is not None:
            _charged(declared, cost, 1 if _sizes(data, neighbour) else 2)
        found = difference(first.traces, second.traces, reaches)
        if found is None:
            return first
        if left_behind(first.traces, second.traces):
            break
    raise ReplayError(found)


def _pair(
    operation: Callable[[Any], Any], data: Any, neighbour: Any, fresh: bool
) -> tuple[Transcript, Transcript, list[Any]]:
    (one, here), (other, there) = [
        (copied(operation), copied(records)) if fresh else (operation, records) for records in (data, neighbour)
    ]  # both copies before either runs
    first = record(one, here)
    replayer = _Replayer(first)
    return first, _run(other, there, replayer), replayer.cost


def _run(operation: Callable[[Any], Any], data: Any, listener: _Recorder) -> Transcript:
    transcript = listener.transcript
    with listening(listener), traced() as transcript.traces:
        try:
            transcript.result = operation(data)
        except ReplayError:
            raise
        except Exception as error:  # whatever it is, the neighbour must fail in the same way
            transcript.error, transcript.failure = f"{type(error).__name__}: {error}", type(error)
    return transcript


def _judge(first: Transcript, second: Transcript, allow: tuple[type[Exception], ...], seeded: bool) -> None:
    if first.error != second.error:
        kinds = " and ".join(error.split(":")[0] if error else "no error" for error in (first.error, second.error))
        raise ReplayError(f"The two runs ended differently ({kinds}): whether or how it fails depends on the data.")
    if first.failure is not None and not issubclass(first.failure, allow):
        raise ReplayError(
            f"Both runs failed ({first.failure.__name__}), which shows nothing. If the operation is meant to "
            f"fail here, say allow=({first.failure.__name__},)."
        )
    if first.elsewhere or second.elsewhere:
        raise ReplayError("Noise was drawn in another thread, where replay can neither see nor force it.")
    if len(second.steps) != len(first.steps):
        raise ReplayError(
            f"{len(first.steps)} noisy steps on the data, {len(second.steps)} on the neighbour: the "
            "number of noisy steps depends on the data."
        )
    try:
        equal = same(first.result, second.result)
    except Incomparable as error:
        raise ReplayError(f"The result holds a {error}, which has no equality: return what it publishes.") from None
    if not equal:
        raise ReplayError(
            "With every noisy output the same, the results differ: something reaches the result "
            "without noise (a shape, a key, a size, a value), or with noise that replay does not see "
            "(another library's generator)."
        )
    _judge_noise(first.steps, seeded)


def _judge_noise(steps: list[Step], seeded: bool) -> None:
    sizes = []
    for position, step in enumerate(steps, 1):
        if not step.releases:
            continue
        if not step.sources:
            raise ReplayError(
                f"Step {position} ({step.what}): nothing was drawn from the library's sources, so there is no "
                "noise, or noise of unknown quality."
            )
        if True in step.sources and not seeded:
            raise ReplayError(
                f"Step {position} ({step.what}): the noise comes from a seed, and who knows it can take the "
                "noise away. Leave rng= out; if public choices share the seed, say seeded=True."
            )
        sizes += [] if step.named else size_of_noise(step.event, step.value, step.output, step.limit)
    if too_small(sizes):
        raise ReplayError(
            "The noise that was added is smaller than the steps declare: on honest noise this happens with "
            "probability below 1e-12."
        )


def _declared(result: Any) -> Event | None:
    """The cost that a result states: that of the releases in it."""
    found = [release.event for release in _releases(result)]
    return sum(found[1:], start=found[0]) if found else None


def _releases(result: Any) -> Iterator[Release[Any]]:
    if isinstance(result, Release):
        yield result
    elif isinstance(result, (list, tuple, Mapping)):
        for part in result.values() if isinstance(result, Mapping) else result:
            yield from _releases(part)


def _sizes(data: Any, neighbour: Any) -> bool:
    """Whether the two are seen to differ in size, so that no record was replaced."""
    return all(hasattr(each, "__len__") for each in (data, neighbour)) and len(data) != len(neighbour)


def _charged(declared: Event, cost: list[Event | None], parts: int) -> None:
    priced = [event for event in cost if event is not None]
    if len(priced) < len(cost):
        raise ReplayError(
            "A step does not say what it costs, so it cannot be compared with what is charged: give noised() an event=."
        )
    if not covered(declared, priced, parts):
        raise ReplayError(
            f"The neighbours differ in {len(cost)} noisy step(s), which together cost more than the event "
            "that is charged."
        )


def _compare(position: int, before: Step, now: Step) -> bool:
    """Whether the value differs on the neighbour; an error if it does by too much."""
    head = f"Step {position} ({before.what})"
    if (before.what, before.norm) != (now.what, now.norm):
        raise ReplayError(
            f"{head} is another step on the neighbour ({now.what}): the course of the run, or the noise, "
            "depends on the data."
        )
    distance = _distance(before.value, now.value, before.norm)
    if distance is None:
        raise ReplayError(f"{head}: the value to be noised has another shape on the neighbour.")
    limit = min(before.limit, now.limit)  # a limit that depends on the data must hold from both sides
    if distance > limit:
        raise ReplayError(
            f"{head}: the value to be noised differs by {float(distance):.6g} in {before.norm}, but the "
            f"declared sensitivity is {float(limit):.6g}."
        )
    return bool(distance > 0)


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
    number: Callable[[Any], Any] = _exact if len(changed) <= _EXACT else float
    gaps = [abs(number(x) - number(y)) for x, y in changed]
    if norm == "linf":
        return max(gaps, default=0)
    if norm == "l1":
        return sum(gaps)
    square = sum(gap * gap for gap in gaps)
    return math.sqrt(square) * (1 - 1e-15)  # the root is rounded; do not let that look like a violation


def _exact(x: Any) -> Any:
    return x if type(x) is int else Fraction(x)


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, (np.ndarray, dict)) else value
