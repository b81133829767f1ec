r"""Is the claim true? Run an operation many times on two neighbours, and see what tells them apart.

A tenth of the runs, the pilot, chooses how outputs are looked at (``looks``) and the threshold that promises most
(``counting``). The rest is counted against that one threshold, so that the confidence is exact: nothing is chosen by
what is counted. A lower bound above the claimed epsilon is a proven violation, up to the stated confidence; one below
it proves nothing: what shows in none of the looks is not seen. Where nothing could be compared there is no verdict: it
is refused.

Decision 501.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import accounting, random
from discreet.accounting.facts import stated_mu
from discreet.accounting.neighbours import resolve
from discreet.accounting.parts import Leaf
from discreet.adjacency import Adjacency
from discreet.auditing.counting import Question
from discreet.auditing.looks import choose_look
from discreet.auditing.reading import CannotJudge, Scores
from discreet.errors import extra, number, whole
from discreet.events import Event
from discreet.release import Operation, Release

__all__ = ["Audit", "audit"]

_PILOT, _SMALLEST = 0.1, 30


@dataclass(frozen=True)
class Audit:
    """What was found: with ``confidence``, no mechanism with an epsilon below ``lower`` behaves like this one."""

    lower: float
    claimed: float
    delta: float
    confidence: float
    trials: int
    method: str
    rates: tuple[float, float]
    scores: tuple[Scores, Scores]

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.lower > self.claimed

    @property
    def saw_nothing(self) -> bool:
        """Whether no epsilon above zero was shown, so that the runs say nothing for the claim either."""
        return self.lower <= 0

    @property
    def verdict(self) -> str:
        """The same in a sentence."""
        evidence = f"ε ≥ {self.lower:.3g} by {self.method} with {self.confidence:.0%} confidence"
        claim = f"ε = {self.claimed:.3g} at δ = {self.delta:g} is claimed"
        if self.violated:
            return f"VIOLATED: {evidence}, but {claim}."
        if self.saw_nothing:
            return (
                f"Could not judge: nothing in {self.trials} runs told the neighbours apart, and {claim}. Take "
                "neighbours that differ by as much as one record can, more runs, or read= to say what is compared."
            )
        return f"Consistent: {evidence}; {claim}."

    def __repr__(self) -> str:
        return f"Audit({self.verdict})"

    def plot(self, path: str | None = None) -> Any:
        """The outputs on both neighbours, as the audit read them."""
        with extra("report"):
            from matplotlib.figure import Figure
        figure = Figure(figsize=(5.6, 3.4), layout="constrained")
        ax = figure.add_subplot()
        both = np.concatenate(self.scores)
        low, high = np.quantile(both, [0.001, 0.999])
        edges = np.linspace(float(low), float(high), 60)
        for scores, label, color in zip(self.scores, ("data", "neighbour"), ("#1f5fa8", "#c2571a"), strict=True):
            ax.hist(scores, bins=edges.tolist(), alpha=0.55, label=label, color=color)
        ax.set(xlabel="output, as it was read", ylabel="runs", title=self.verdict)
        ax.title.set_fontsize(8)
        ax.legend(frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure


def audit(
    operation: Operation | Callable[[Any], Operation] | Callable[[Any, np.random.Generator], Any],
    data: Any,
    neighbour: Any,
    *,
    claim: Event | None = None,
    trials: int = 10_000,
    delta: float = 1e-5,
    confidence: float = 0.99,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    read: Callable[[Any], Any] | None = None,
    rng: random.RngLike = None,
    progress: Callable[[int, int], object] | None = None,
) -> Audit:
    """Run ``operation`` on ``data`` and on ``neighbour``, ``trials`` times each, and bound its epsilon from below.

    One that is bound to its source is given as a function that makes it from either. Code of your own is a function of
    the data and of a NumPy generator, with the event that is claimed of it: ``audit(f, data, neighbour, claim=event)``.
    ``read`` says what is compared of a released value; without it numbers, arrays and mappings of them are read as they
    are, text and labels by how often each comes. ``progress(done, of)`` is told after every run.

    >>> from discreet.mechanisms import Laplace
    >>> found = audit(Laplace(sensitivity=1.0, epsilon=1.0), 0.0, 1.0, trials=4000, delta=0.0, rng=1)
    >>> 0.7 < found.lower < found.claimed, found.violated
    (True, False)

    A function that adds Laplace noise of scale 1/2, and claims what scale 1 would cost:

    >>> def noisy(total, rng):
    ...     return round(total + rng.laplace(scale=0.5), 3)
    >>> from discreet.events import PureDP
    >>> audit(noisy, 0.0, 1.0, claim=PureDP(epsilon=1.0), trials=4000, delta=0.0, rng=1).violated
    True
    """
    trials = whole("trials", trials, low=100)
    confidence = number("confidence", confidence, low=0.5, high=1, open_high=True)
    if data is neighbour:
        raise CannotJudge("data and neighbour are the same object, so there is nothing to compare.")
    runs, event = (
        _runs(operation, data, neighbour) if claim is None else _claimed_runs(operation, claim, data, neighbour)
    )
    claimed = accounting.epsilon(event, delta, adjacency=adjacency)
    if not math.isfinite(claimed):
        raise CannotJudge(
            f"No epsilon is claimed at delta = {delta:g}, so nothing could violate it: choose another delta."
        )
    pilot = max(_SMALLEST, int(trials * _PILOT))
    gaussian = bool(delta) and _is_gaussian(event, Adjacency(adjacency))
    asked = Question(trials - pilot, delta, (1 - confidence) / 2, gaussian)
    if asked.most <= claimed:
        raise CannotJudge(
            f"With this confidence {trials} runs can show an epsilon of at most {asked.most:.3g}, so they cannot "
            f"refute a claim of {claimed:.3g}: take more runs, or a larger delta."
        )
    outputs, wrappings = _outputs(runs, trials, random.Streams(rng), read, progress)
    look, scores, threshold, side = choose_look(outputs, wrappings, pilot, asked)
    counted = [int((each[pilot:] > threshold).sum()) for each in scores]
    rates = (counted[0] / asked.trials, counted[1] / asked.trials)
    method = f"{'Gaussian' if gaussian else 'raw'} counts of {look}"
    lower = asked.bound(counted, side)
    return Audit(lower, claimed, delta, confidence, trials, method, rates, (scores[0], scores[1]))


Run = Callable[[random.Rng], Release[Any]]


def _runs(operation: Any, data: Any, neighbour: Any) -> tuple[list[Run], Event]:
    """What runs it on either neighbour, and the one cost that both claim."""
    if isinstance(operation, Operation):
        release, event = operation.release, operation.event
        return [lambda rng, side=side: release(side, rng) for side in (data, neighbour)], event  # type: ignore[misc]
    made = [operation(side) for side in (data, neighbour)]
    if made[0].event != made[1].event:
        raise ValueError("The operation claims different costs on the two neighbours: a cost is made of public facts.")
    return [lambda rng, op=op: op.release(None, rng) for op in made], made[0].event  # type: ignore[misc]


def _claimed_runs(function: Any, claim: Event, data: Any, neighbour: Any) -> tuple[list[Run], Event]:
    """What runs a function of the user on either neighbour, and what is claimed of it."""
    if isinstance(function, Operation) or not callable(function):
        raise ValueError(
            "claim goes with a function of the data and of a generator; an operation states its own event."
        )
    if not isinstance(claim, Event):
        raise ValueError("claim must be an event, such as PureDP(epsilon=1.0) or Gaussian(noise_multiplier=4.0).")
    generators: dict[int, np.random.Generator] = {}  # of each side one, from the first word of its own stream

    def run(rng: random.Rng, which: int, side: Any) -> Release[Any]:
        if which not in generators:
            generators[which] = np.random.default_rng(rng.below(1 << 128))
        return Release(function(side, generators[which]), claim)

    return [lambda rng, at=at, side=side: run(rng, at, side) for at, side in enumerate((data, neighbour))], claim  # type: ignore[misc]


def _outputs(
    runs: list[Run],
    trials: int,
    streams: random.Streams,
    read: Callable[[Any], Any] | None,
    progress: Callable[[int, int], object] | None,
) -> tuple[list[list[Any]], list[list[str]]]:
    """What every run released on either side, and how it was wrapped."""
    outputs: list[list[Any]] = [[], []]
    wrappings: list[list[str]] = [[], []]
    for which, run in enumerate(runs):
        source = streams.noise(which)  # one for all trials of a side: they are independent in one stream too
        for done in range(trials):
            release = run(source)
            outputs[which].append(release.value if read is None else read(release.value))
            wrappings[which].append(_wrapping(release))
            if progress is not None:
                progress(which * trials + done + 1, 2 * trials)
    return outputs, wrappings


def _wrapping(release: Release[Any]) -> str:
    """What is shown of a release beside its value: how it is labelled, of which type and shape it is, its error."""
    value = release.value
    shape = getattr(value, "shape", None)
    kind = getattr(value, "dtype", None) if shape is not None else type(value).__name__
    return f"{release.label} {kind} {shape} {release.error}"


def _is_gaussian(event: Event, adjacency: Adjacency) -> bool:
    """Whether everything claimed is a Gaussian's curve."""
    resolved = resolve(event, adjacency)
    gaussian = all(isinstance(part, Leaf) and stated_mu(part) is not None for part in resolved.ideal)
    return bool(resolved.ideal) and gaussian and not resolved.slack
