r"""Is the claim true? Run an operation many times on two neighbours, and see what tells them apart.

A tenth of the runs, the pilot, chooses how outputs are read: a number for each (a projection, where they are vectors),
and the threshold that promises most. The rest is counted against that one threshold, so that the confidence is exact:
nothing is chosen by what is counted.

*Raw counts* bound whatever ran: :math:`p \le e^\epsilon q + \delta`. A claim that is Gaussian is tested by *Gaussian
counts*: they bound its mu from below, and come near the claim where raw counts at a small delta cannot. A lower
bound above the claimed epsilon is a proven violation, up to the stated confidence; one below it proves nothing.

References: Jagielski, Ullman and Oprea (2020); Nasr et al. (2023) for Gaussian counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import accounting, random
from discreet.accounting.facts import stated_mu
from discreet.accounting.gaussian import gaussian_epsilon
from discreet.accounting.neighbours import resolve
from discreet.accounting.parts import Leaf
from discreet.adjacency import Adjacency
from discreet.auditing.lower_bounds import clopper_pearson
from discreet.errors import extra, number, whole
from discreet.release import Operation

__all__ = ["Audit", "audit"]

Scores = NDArray[np.float64]
_PILOT = 0.1
_SIDES = ((False, False), (False, True), (True, False), (True, True))
_FEWEST = 24  # outputs of a pilot on each side of a threshold, of which as many more are expected


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
    def verdict(self) -> str:
        """The same in a sentence."""
        found = f"ε ≥ {self.lower:.3g} by {self.method} with {self.confidence:.0%} confidence"
        claim = f"ε = {self.claimed:.3g} at δ = {self.delta:g} is claimed"
        return f"VIOLATED: {found}, but {claim}." if self.violated else f"Consistent: {found}; {claim}."

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
    operation: Operation | Callable[[], Operation],
    data: Any,
    neighbour: Any,
    *,
    trials: int = 10_000,
    delta: float = 1e-5,
    confidence: float = 0.99,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    read: Callable[[Any], Any] | None = None,
    rng: random.RngLike = None,
) -> Audit:
    """Run ``operation`` on ``data`` and on ``neighbour``, ``trials`` times each, and bound its epsilon from below.

    ``operation`` may be a factory: one that is bound to its source is called with it. ``read`` turns a released value
    into numbers; without it numbers, arrays, and mappings of them are read as they are.

    >>> from discreet.mechanisms import Laplace
    >>> found = audit(Laplace(sensitivity=1.0, epsilon=1.0), 0.0, 1.0, trials=4000, delta=0.0, rng=1)
    >>> 0.7 < found.lower < found.claimed, found.violated
    (True, False)
    """
    trials = whole("trials", trials, low=100)
    confidence = number("confidence", confidence, low=0.5, high=1, open_high=True)
    streams = random.Streams(rng)
    made = operation if isinstance(operation, Operation) else operation()
    claimed = accounting.epsilon(made.event, delta, adjacency=adjacency)
    outputs = []
    for which, side in enumerate((data, neighbour)):
        source = streams.noise(which)  # one for all trials of a side: they are independent in one stream too
        outputs.append(np.array([_numbers(made.release(side, source).value, read) for _ in range(trials)]))
    pilot = max(50, int(trials * _PILOT))
    scores = _projected([each.reshape(trials, -1) for each in outputs], pilot)
    gaussian = bool(delta) and _is_gaussian(made.event, Adjacency(adjacency))
    asked = _Question(trials - pilot, delta, (1 - confidence) / 2, gaussian)
    threshold, side = _promising([each[:pilot] for each in scores], asked)
    counted = [int((each[pilot:] > threshold).sum()) for each in scores]
    lower = asked.bound(counted, side)
    rates = (counted[0] / asked.trials, counted[1] / asked.trials)
    method = "Gaussian counts" if gaussian else "raw counts"
    return Audit(lower, claimed, delta, confidence, trials, method, rates, (scores[0], scores[1]))


def _numbers(value: Any, read: Callable[[Any], Any] | None) -> Scores:
    found = value if read is None else read(value)
    if isinstance(found, Mapping):
        found = list(found.values())
    numbers = np.atleast_1d(np.asarray(found, dtype=np.float64))
    if not np.isfinite(numbers).all():  # no threshold tells it from anything, so nothing would be found
        raise ValueError("An output is not a finite number, which an audit cannot compare: make it one by read=.")
    return numbers


def _projected(outputs: list[Scores], pilot: int) -> list[Scores]:
    """Vectors as numbers: along the difference of the pilots' means, each coordinate in units of its variance."""
    if outputs[0].shape[1] == 1:
        return [each[:, 0] for each in outputs]
    first, second = (each[:pilot] for each in outputs)
    variance = first.var(axis=0) + second.var(axis=0)
    direction = (first.mean(axis=0) - second.mean(axis=0)) / np.where(variance > 0, variance, 1.0)
    return [each @ direction for each in outputs]


def _is_gaussian(event: Any, adjacency: Adjacency) -> bool:
    """Whether everything claimed is a Gaussian's curve."""
    resolved = resolve(event, adjacency)
    gaussian = all(isinstance(part, Leaf) and stated_mu(part) is not None for part in resolved.ideal)
    return bool(resolved.ideal) and gaussian and not resolved.slack


@dataclass(frozen=True)
class _Question:
    """What is asked of counts: in how many trials, at which delta, each interval wrong with which probability."""

    trials: int
    delta: float
    alarm: float
    gaussian: bool

    def bound(self, counts: list[int], side: tuple[bool, bool]) -> float:
        """The bound on one side: outputs above the threshold or below it, and on whose behalf."""
        likely, rare = self.sided(counts, side)
        p, q = clopper_pearson(likely, self.trials, self.alarm)[0], clopper_pearson(rare, self.trials, self.alarm)[1]
        return self._gaussian(p, q) if self.gaussian else self._raw(p, q)

    def sided(self, counts: list[int], side: tuple[bool, bool]) -> tuple[int, int]:
        """How often the set of this side was hit: by the neighbour it is to be likely for, and by the other."""
        below, exchanged = side
        first, second = (self.trials - n for n in counts) if below else counts
        return (second, first) if exchanged else (first, second)

    def _raw(self, p: float, q: float) -> float:
        return math.log((p - self.delta) / q) if p - self.delta > q else 0.0

    def _gaussian(self, p: float, q: float) -> float:
        from scipy.special import ndtri

        mu = float(ndtri(p) - ndtri(q)) if p > 0 and q < 1 else 0.0
        return gaussian_epsilon(noise_multiplier=1 / mu, delta=self.delta) if mu > 0 else 0.0


def _promising(pilot: list[Scores], asked: _Question) -> tuple[float, tuple[bool, bool]]:
    """The threshold, and its side, at which counts like the pilot's would give the largest bound."""
    size, everything = len(pilot[0]), np.concatenate(pilot)
    if asked.gaussian:  # between the means is best, nearly; what a pilot counts is noisier than that
        first, second = (float(each.mean()) for each in pilot)
        return (first + second) / 2, (False, first < second)
    best, chosen = (-1.0, 0.0), (float(np.median(everything)), (False, False))
    for threshold in np.unique(np.quantile(everything, np.linspace(0.01, 0.99, 50))):
        above = [int((each > threshold).sum()) for each in pilot]
        few = min(min(above), size - max(above)) < min(_FEWEST, size // 20)
        # so few say little of what is to come: only what they prove by themselves counts
        question = replace(asked, trials=size) if few else asked
        expected = above if few else [round(asked.trials * count / size) for count in above]
        for side in _SIDES:
            likely, rare = question.sided(expected, side)
            promise = question.bound(expected, side), (likely - rare) / math.sqrt(likely + rare + 1)
            if promise > best:  # where nothing is proved yet, what stands out most
                best, chosen = promise, (float(threshold), side)
    return chosen
