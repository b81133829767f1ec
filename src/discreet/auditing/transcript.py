"""What a run did: its noisy steps, kept on one data set and forced on its neighbour.

A listener sits where noise meets a value (``discreet.random.tap``). The recorder lets noise be drawn and keeps every
step; the replayer gives out the outputs that were kept, and compares what would have been noised with what was.

Decision 96.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.auditing._distance import between
from discreet.auditing._outside import Traces
from discreet.events import Event, Exponential
from discreet.random.source import watch_sources
from discreet.random.tap import Norm

__all__ = ["NoisyStep", "Recorder", "ReplayError", "Replayer", "Transcript"]


class ReplayError(AssertionError):
    """An operation treated two neighbours in a way its declared cost does not cover."""


@dataclass(frozen=True, slots=True)
class NoisyStep:
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

    steps: list[NoisyStep] = field(default_factory=list)
    result: Any = None
    error: str | None = None
    traces: Traces = field(default_factory=Traces)
    failure: type[BaseException] | None = None
    elsewhere: bool = False

    def __repr__(self) -> str:
        return f"Transcript({len(self.steps)} steps)"


class Recorder:
    """Lets noise be drawn and keeps every step."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self._coin_step = 0

    def draw_output(
        self,
        what: object,
        value: Any,
        norm: Norm,
        limit: Any,
        draw: Callable[[], Any],
        event: Event | None,
        once: object,
    ) -> Any:
        """Draw, and keep what was drawn for what."""
        before = _snapshot(value)  # noise may be added in place
        with watch_sources() as kinds:
            output = draw()
        cost = event if event is not None else getattr(what, "event", None)
        self.transcript.steps.append(
            NoisyStep(str(what), before, norm, limit, _snapshot(output), cost, frozenset(kinds), isinstance(what, str))
        )
        return output

    def coins(self, keys: Sequence[object]) -> NDArray[np.uint64]:
        """Words that a record and a step decide, so that both runs give a record the same."""
        self._coin_step += 1
        seen: Counter[object] = Counter()
        words = []
        for key in keys:
            seen[key] += 1  # the second of two equal records has a coin of its own
            text = repr((self._coin_step, key, seen[key])).encode()
            words.append(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()))
        return np.array(words, np.uint64)

    def elsewhere(self) -> None:
        """Remember that another thread drew."""
        self.transcript.elsewhere = True


class Replayer(Recorder):
    """Forces the outputs of an earlier run, compares what would have been noised, and collects what it costs."""

    def __init__(self, first: Transcript) -> None:
        super().__init__()
        self._first = first
        self._paid: list[object] = []
        self.cost: list[Event | None] = []

    def draw_output(
        self,
        what: object,
        value: Any,
        norm: Norm,
        limit: Any,
        draw: Callable[[], Any],
        event: Event | None,
        once: object,
    ) -> Any:
        """The output of the step that stands here in the first run, if this is the same step on a near value."""
        position = len(self.transcript.steps)
        if position >= len(self._first.steps):
            raise ReplayError(
                f"Step {position + 1} ({what}) happens on the neighbour only: the number of noisy steps "
                "depends on the data."
            )
        before = self._first.steps[position]
        moved = _compare(position + 1, before, NoisyStep(str(what), value, norm, limit, before.output))
        self.transcript.steps.append(before)
        if moved and before.releases and (once is None or not any(once is paid for paid in self._paid)):
            self._paid += [] if once is None else [once]
            self.cost.append(_of_a_move(before.event, moved))
        return _snapshot(before.output)


def _of_a_move(event: Event | None, share: float) -> Event | None:
    """What a selection costs whose scores moved by a share of their sensitivity only: that share of its range.

    A unit may have a row in each of several groups, all of which choose at the price of all rows in one.
    """
    return replace(event, epsilon=event.epsilon * min(share, 1.0)) if isinstance(event, Exponential) else event


def _compare(position: int, before: NoisyStep, now: NoisyStep) -> float:
    """How far the value moves on the neighbour, as a share of what is declared; an error if it is too far."""
    head = f"Step {position} ({before.what})"
    if (before.what, before.norm) != (now.what, now.norm):
        raise ReplayError(
            f"{head} is another step on the neighbour ({now.what}): the course of the run, or the noise, "
            "depends on the data."
        )
    distance = between(before.value, now.value, before.norm)
    if distance is None:
        raise ReplayError(f"{head}: the value to be noised has another shape on the neighbour.")
    limit = min(before.limit, now.limit)  # a limit that depends on the data must hold from both sides
    if distance > limit:
        raise ReplayError(
            f"{head}: the value to be noised differs by {float(distance):.6g} in {before.norm}, but the "
            f"declared sensitivity is {float(limit):.6g}."
        )
    return float(distance / limit) if distance else 0.0


def _snapshot(value: Any) -> Any:
    return value.copy() if isinstance(value, (np.ndarray, dict)) else value
