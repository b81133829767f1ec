"""Pictures of tests: a forest plot, a survival curve with its band, a power curve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import extra
from discreet.inference.hypothesis import HypothesisTest, ReleasedTest
from discreet.inference.planning import power
from discreet.inference.survival import SurvivalCurve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["forest_plot", "power_curve", "survival_plot"]

_COLOURS = ("#1f5fa8", "#c2571a", "#3f8f4f", "#7a4fa0")


def forest_plot(answers: Mapping[str, HypothesisTest | ReleasedTest], *, null: float = 0.0) -> Figure:
    """Effects with their intervals, one per line; an interval that is the whole line has no dot.

    >>> answer = HypothesisTest(2.0, 0.04, 1.5, (0.1, 2.9), 0.95, "independent records")
    >>> len(forest_plot({"treated": answer}).axes[0].lines)
    2
    """
    figure, ax = _blank(0.45 * len(answers) + 1.2)
    for place, answer in enumerate(answers.values()):
        low, high = answer.interval
        if np.isfinite([low, high]).all():
            ax.errorbar(
                answer.effect, place, xerr=[[answer.effect - low], [high - answer.effect]], fmt="o", color=_COLOURS[0]
            )
    ax.axvline(null, color="grey", linewidth=0.8)
    ax.set_yticks(range(len(answers)), list(answers))
    ax.set(ylim=(len(answers) - 0.5, -0.5), xlabel="effect, with its interval")
    return figure


def survival_plot(curves: Mapping[str, SurvivalCurve]) -> Figure:
    """Survival curves with their bands.

    >>> from discreet.inference.survival import kaplan_meier
    >>> curve = kaplan_meier([3, 5, 9] * 300, [1, 1, 0] * 300, horizon=10, epsilon=1.0, rng=1).value
    >>> survival_plot({"all": curve}).axes[0].get_ylabel()
    'survival'
    """
    figure, ax = _blank(3.4)
    for number, (name, curve) in enumerate(curves.items()):
        times = np.concatenate([[0.0], curve.times])
        colour = _COLOURS[number % len(_COLOURS)]
        ends = (np.concatenate([[1.0], end]) for end in (curve.lower, curve.upper))
        ax.step(times, np.concatenate([[1.0], curve.survival]), where="post", color=colour, label=name)
        ax.fill_between(times, *ends, step="post", color=colour, alpha=0.2, linewidth=0)
    ax.set(ylim=(0.0, 1.0), xlabel="time", ylabel="survival")
    ax.legend(frameon=False)
    return figure


def power_curve(test: Any, *, n: int, effects: Iterable[float], alpha: float = 0.05, sd: float | None = None) -> Figure:
    """How often a test rejects, by effect: from public facts, before anything is spent.

    >>> from discreet.inference.proportions import Proportion
    >>> test = Proportion(n=1000, adjacency="replace", epsilon=1.0)
    >>> len(power_curve(test, n=1000, effects=(0.0, 0.05, 0.1)).axes[0].lines)
    2
    """
    figure, ax = _blank(3.4)
    every = list(effects)
    seen = [power(test, n=n, effect=effect, alpha=alpha, sd=sd) for effect in every]
    ax.plot(every, seen, color=_COLOURS[0])
    ax.axhline(alpha, color="grey", linewidth=0.8)
    ax.set(ylim=(0.0, 1.0), xlabel="effect", ylabel=f"power at {alpha:g}, n = {n:,}")
    return figure


def _blank(height: float) -> tuple[Figure, Any]:
    with extra("report"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(6.0, height), layout="constrained")
    ax = figure.add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    return figure, ax
