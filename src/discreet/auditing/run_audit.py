r"""The verdict about a training run that carried canaries: a lower bound on epsilon beside the upper one.

Three things are read off what the run released along its canaries' coordinates, each at its share of the alarm:

* ``ratio``: how large signals were against noise, in units of the claim (``shift``): the noise multiplier was at most
  the claimed one divided by it;
* ``rate``: how often canaries were drawn, at least (Clopper and Pearson), where a record is drawn by coins;
* ``suspicion``: the merged e-process of ``evidence``, which finds what has no such form: noise that repeats, a wrong
  matrix, a sampler that draws twice, weights without noise, gradients that were not clipped.

The lower bound is the certified lower price of the plan at this rate and this noise: *a run of the claimed form is at
least so revealing*. The form is assumed (Gaussian noise, the claimed matrix, the claimed law of sampling), which is why
it comes near the claim with one run. ``by_counting`` assumes nothing of the kind, and reaches less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import accounting
from discreet.adjacency import Adjacency
from discreet.auditing.evidence import log_mean
from discreet.auditing.lower_bounds import clopper_pearson
from discreet.auditing.reading import CannotJudge, Scores
from discreet.auditing.shift import ratio_lower_bound
from discreet.auditing.single_run import OneRun, audit_run
from discreet.errors import extra
from discreet.events import Event

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Observed", "RunAudit", "judge", "refutes"]

RATIO, RATE, SUSPICION = 0.8, 0.18, 0.02  # shares of the alarm

SUSPICIONS: Mapping[str, str] = {
    "scale": "there is less noise than claimed",
    "lags": "noise depends on that of earlier steps otherwise than claimed",
    "repeats": "noise of one step came again in another",
    "blocks": "noise came again within a step",
    "turns": "records are not drawn as claimed",
    "weights": "weights have less noise than claimed",
}
"""What each e-process speaks of."""


@dataclass(frozen=True)
class Observed:
    """Sums over all canaries and steps, in units of the claimed noise: ⟨s, y⟩, ‖s‖², ‖y‖², how many; and draws."""

    product: float
    energy: float
    squares: float
    count: int
    drawn: int
    chances: int  # in which canaries could have been drawn


@dataclass(frozen=True)
class RunAudit:
    """What canaries say of a run: with ``confidence``, it was less private than ``lower`` says."""

    lower: float
    claimed: float
    delta: float
    confidence: float
    ratio: float
    rate: float | None
    steps: int
    canaries: int
    found: str  # what refutes the claim beside the bound; empty where nothing does
    detectable: float  # the share of the claimed noise below which this run would be refuted in half of the cases
    claim: Event = field(repr=False)
    bound: Event | None = field(repr=False)
    adjacency: Adjacency = field(repr=False, default=Adjacency.ADD_REMOVE)
    scores: Scores = field(repr=False, compare=False, default_factory=lambda: np.zeros(0))
    inside: Any = field(repr=False, compare=False, default=None)

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return bool(self.found) or self.lower > self.claimed

    @property
    def verdict(self) -> str:
        """The same in a sentence."""
        said = f"{self.canaries} canaries in {self.steps} steps say ε ≥ {self.lower:.3g} with {self.confidence:.0%} "
        said += f"confidence; ε = {self.claimed:.3g} at δ = {self.delta:g} is claimed"
        if self.violated:
            return f"VIOLATED: {self.found or SUSPICIONS['scale']}; {said}."
        return f"Consistent: {said}. Noise below {self.detectable:.0%} of the claimed would have been refuted."

    def __str__(self) -> str:
        return self.verdict

    def by_counting(self) -> OneRun:
        """The bound that assumes nothing of the form of the run: right guesses about who is in."""
        return audit_run(
            self.scores,
            self.inside,
            self.claim,
            delta=self.delta,
            confidence=self.confidence,
            adjacency=self.adjacency,
            steps=self.steps,
        )

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """The claimed trade-off curve, and the region that the lower bound rules out.

        No attack on a run as claimed is below the lower line; some attack on what ran reaches the upper one.
        """
        with extra("report"):
            from matplotlib.figure import Figure
        made = Figure(figsize=(5, 4), layout="constrained")
        axes = made.subplots()
        rates = np.linspace(0, 1, 101)
        claimed = _curve(self.claim, self.adjacency, rates)
        axes.plot(rates, claimed, label=f"claimed: ε = {self.claimed:.3g}")
        if self.bound is not None:
            shown = _curve(self.bound, self.adjacency, rates)
            axes.plot(rates, shown, "--", label=f"shown by canaries: ε ≥ {self.lower:.3g}")
            axes.fill_between(rates, shown, 1 - rates, where=shown < 1 - rates, alpha=0.15)
        axes.plot(rates, 1 - rates, color="grey", linewidth=0.8, label="perfect privacy")
        axes.set(xlabel="false positive rate", ylabel="false negative rate", xlim=(0, 1), ylim=(0, 1))
        axes.legend()
        if path is not None:
            made.savefig(path)
        return made


def _curve(event: Event, adjacency: Adjacency, rates: Scores) -> Scores:
    guarantee = accounting.guarantee(event, adjacency=adjacency)
    return np.array([guarantee.tradeoff(float(rate)) for rate in rates])


def refutes(logs: Mapping[str, float], confidence: float) -> str:
    """Which suspicion refutes the claim, in words, where the merged e-process passes its share of the alarm.

    >>> refutes({"scale": 3.0, "lags": -50.0}, 0.95), refutes({"scale": 9.0, "lags": -50.0}, 0.95)
    ('', 'there is less noise than claimed')
    """
    if log_mean(np.array(list(logs.values()))) < -math.log(SUSPICION * (1 - confidence)):
        return ""
    return SUSPICIONS[max(logs, key=lambda name: logs[name])]


def judge(
    seen: Observed,
    logs: Mapping[str, float],
    price: Callable[[float, float | None], Event],
    *,
    rate: float | None,
    delta: float,
    confidence: float,
    steps: int,
    adjacency: Adjacency,
    scores: Scores,
    inside: Any,
) -> RunAudit:
    """Judge a run. ``price`` gives the event of its steps at a share of the claimed noise, and a rate (None: the
    claimed one)."""
    claim = price(1.0, None)
    claimed = accounting.epsilon(claim, delta, adjacency=adjacency)
    if not 0 < claimed < math.inf:
        raise CannotJudge(f"The run claims an epsilon of {claimed:g} at delta = {delta:g}, which no canary can test.")
    alarm, found = 1 - confidence, refutes(logs, confidence)
    needed = _normal_quantile(RATIO * alarm)
    if seen.energy <= needed**2 and not found:
        more = math.inf if seen.energy == 0 else math.ceil(len(scores) * 4 * needed**2 / seen.energy)
        raise CannotJudge(
            f"{len(scores)} canaries, drawn {seen.drawn} times in {steps} steps, could not have told this noise from "
            f"any other: take {'more' if math.isinf(more) else f'about {more}'}, or wait for more steps."
        )
    signal = seen.product, seen.energy, seen.squares, seen.count
    ratio = ratio_lower_bound(*signal, RATIO * alarm)
    # also where the price of so much noise has no lower bound; no alarm of its own, it includes that of the ratio
    if not found and ratio_lower_bound(*signal, SUSPICION * alarm) > 1:
        found = SUSPICIONS["scale"]
    least = None
    if rate is not None:
        least = clopper_pearson(seen.drawn, seen.chances, RATE * alarm)[0] if seen.drawn else 0.0
    bound = None if ratio <= 0 or least == 0 or math.isinf(ratio) else price(1 / ratio, least)
    lower = math.inf if math.isinf(ratio) else 0.0
    if bound is not None:
        lower = accounting.epsilon_bounds(bound, delta, adjacency=adjacency)[0]
    size = math.sqrt(seen.energy) if seen.energy else 1e-9
    return RunAudit(
        lower=lower,
        claimed=claimed,
        delta=delta,
        confidence=confidence,
        ratio=ratio,
        rate=least,
        steps=steps,
        canaries=len(scores),
        found=found,
        detectable=1 / (1 + needed / size),
        claim=claim,
        bound=bound,
        adjacency=adjacency,
        scores=scores,
        inside=inside,
    )


def _normal_quantile(alarm: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri(alarm))
