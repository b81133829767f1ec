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
discreet.auditing.transcript.ReplayError: Step 1 (Laplace(...)): the value to be noised differs by 9 in l1, ...

Decision 13.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from discreet.auditing._charges import covers_cost, size_of_noise, too_small
from discreet.auditing._fresh import fresh as copied
from discreet.auditing._outside import difference, leaves_new_file, trace_effects
from discreet.auditing._same import Incomparable, same
from discreet.auditing.transcript import NoisyStep, Recorder, Replayer, ReplayError, Transcript
from discreet.events import Event
from discreet.random.tap import listening
from discreet.release import Release

__all__ = ["NoisyStep", "ReplayError", "Transcript", "record", "replay"]


def record(operation: Callable[[Any], Any], data: Any) -> Transcript:
    """Run ``operation(data)`` and keep its noisy outputs; an error it raises is part of the record."""
    return _run(operation, data, Recorder())


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
        declared = event if event is not None else _declared_event(first.result)
        if declared is not None:
            _check_charge(declared, cost, 1 if _sizes(data, neighbour) else 2)
        found = difference(first.traces, second.traces, reaches)
        if found is None:
            return first
        if leaves_new_file(first.traces, second.traces):
            break
    raise ReplayError(found)


def _pair(
    operation: Callable[[Any], Any], data: Any, neighbour: Any, fresh: bool
) -> tuple[Transcript, Transcript, list[Any]]:
    (one, here), (other, there) = [
        (copied(operation), copied(records)) if fresh else (operation, records) for records in (data, neighbour)
    ]  # both copies before either runs
    first = record(one, here)
    replayer = Replayer(first)
    return first, _run(other, there, replayer), replayer.cost


def _run(operation: Callable[[Any], Any], data: Any, listener: Recorder) -> Transcript:
    transcript = listener.transcript
    with listening(listener), trace_effects() as transcript.traces:
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


def _judge_noise(steps: list[NoisyStep], seeded: bool) -> None:
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
                f"Step {position} ({step.what}): the noise comes from a seed, and whoever knows it can remove the "
                "noise. Leave rng= out; if public choices share the seed, say seeded=True."
            )
        sizes += [] if step.named else size_of_noise(step.event, step.value, step.output, step.limit)
    if too_small(sizes):
        raise ReplayError(
            "The noise that was added is smaller than the steps declare: on honest noise this happens with "
            "probability below 1e-12."
        )


def _declared_event(result: Any) -> Event | None:
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


def _check_charge(declared: Event, cost: list[Event | None], parts: int) -> None:
    priced = [event for event in cost if event is not None]
    if len(priced) < len(cost):
        raise ReplayError(
            "A step does not say what it costs, so it cannot be compared with what is charged: give noised() an event=."
        )
    if not covers_cost(declared, priced, parts):
        raise ReplayError(
            f"The neighbours differ in {len(cost)} noisy step(s), which together cost more than the event "
            "that is charged."
        )
