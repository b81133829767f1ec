r"""Batch size against steps against epsilon: how much signal a planned run has over its noise, from public facts alone.

A run that may compute so many gradients of records can take them in many small steps or in few large ones. At a given
price each way has its noise. What the optimiser sums up of gradients, were all as long as the clip norm and of one
direction, is the signal; what it sums up of noise, in all d coordinates, is the noise (``comparison``); of both the
root of the mean square over the steps of a run. Their ratio is an upper bound, and compares settings. It grows with
the batch size and levels off where sampling no longer helps; beyond that, larger batches only take steps away.
Settings are suggested there: the most steps that still have ``ENOUGH`` of the largest ratio.

Decision 425.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import accounting, events
from discreet.errors import extra, number, positive, whole
from discreet.mechanisms.factorization import Workload
from discreet.training.noise import Independent
from discreet.training.noise.comparison import Expected, candidates, expected
from discreet.training.sampling import Poisson

__all__ = ["ENOUGH", "Frontier", "Point", "batch_sizes", "frontier", "mean_error", "most_excess_loss"]

ENOUGH = 0.9  # of the largest ratio: what settings are suggested with


@dataclass(frozen=True, slots=True)
class Point:
    """One way to spend epsilon: a batch size, so many steps, a noise."""

    epsilon: float
    steps: int
    expected: Expected
    signal_to_noise: float

    @property
    def batch_size(self) -> int:
        """The mean number of records in a batch."""
        return self.expected.sampler.batch_size


@dataclass(frozen=True, slots=True)
class Frontier:
    """All points that were looked at; the best noise of each batch size and epsilon, by batch size."""

    parameters: int
    delta: float
    points: tuple[Point, ...]

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    @property
    def epsilons(self) -> list[float]:
        """The prices, the smallest first."""
        return sorted({point.epsilon for point in self})

    def best(self, epsilon: float) -> list[Point]:
        """The best noise at each batch size, the smallest first."""
        best: dict[int, Point] = {}
        for point in (p for p in self if p.epsilon == epsilon):
            before = best.get(point.batch_size)
            if before is None or point.signal_to_noise > before.signal_to_noise:
                best[point.batch_size] = point
        return [best[size] for size in sorted(best)]

    def suggested(self, epsilon: float) -> Point:
        """The most steps that have enough of the largest ratio."""
        best = self.best(epsilon)
        most = max(point.signal_to_noise for point in best)
        return next(point for point in best if point.signal_to_noise >= ENOUGH * most)

    def __str__(self) -> str:
        """A row per batch size, a column per epsilon; the suggested ones are marked."""
        rows = {e: self.best(e) for e in self.epsilons}
        marked = {e: self.suggested(e) for e in self.epsilons}
        lines = [f"{'batch':>8} {'steps':>8} " + " ".join(f"{f'epsilon {e:g}':>13}" for e in rows)]
        for points in zip(*rows.values(), strict=True):
            values = [f"{p.signal_to_noise:.3g}{'*' if p is marked[p.epsilon] else ' '}" for p in points]
            line = f"{points[0].batch_size:>8} {points[0].steps:>8} " + " ".join(f"{v:>13}" for v in values)
            lines.append(line.rstrip())
        return "\n".join(lines)

    def plot(self, path: str | None = None, *, ax: Any = None) -> Any:
        """Signal to noise over batch size, a line per epsilon; what is suggested is marked, steps stand above."""
        with extra("report"):
            from matplotlib.figure import Figure

        if ax is None:
            ax = Figure(figsize=(7, 4), layout="constrained").add_subplot()
        for epsilon in self.epsilons:
            best, chosen = self.best(epsilon), self.suggested(epsilon)
            (line,) = ax.plot([p.batch_size for p in best], [p.signal_to_noise for p in best], marker=".")
            line.set_label(f"ε = {epsilon:g}")
            ax.plot(chosen.batch_size, chosen.signal_to_noise, "*", markersize=14, color=line.get_color())
        ax.set(
            xscale="log", yscale="log", xlabel="batch size", ylabel=f"signal to noise, {self.parameters:,} parameters"
        )
        sizes = self.best(self.epsilons[0])
        above = ax.secondary_xaxis("top")
        above.set_xticks([p.batch_size for p in sizes], [str(p.steps) for p in sizes])
        above.minorticks_off()
        above.set_xlabel(f"steps (★ suggested; δ = {self.delta:g})")
        ax.legend()
        if path is not None:
            ax.figure.savefig(path)
        return ax


def batch_sizes(records: int) -> list[int]:
    """Sizes worth looking at: all records, and halves of that.

    >>> batch_sizes(10_000)
    [157, 313, 625, 1250, 2500, 5000, 10000]
    """
    return sorted({math.ceil(records / 2**power) for power in range(7)})


def frontier(
    records: int,
    parameters: int,
    *,
    epsilons: Sequence[float],
    delta: float,
    epochs: float,
    sizes: Sequence[int] = (),
    vectors: int = 4,
    momentum: float = 0.0,
    clip_norm: float = 1.0,
    noises: Sequence[Any] | None = None,
    progress: Callable[[float, str], object] | None = None,
) -> Frontier:
    """The frontier of a run over ``epochs`` passes' worth of gradients: every batch size at every epsilon.

    Noises are those of ``compare`` that keep at most ``vectors`` vectors, or ``noises``. ``progress`` is told the share
    that is done, and what is looked at.

    >>> from discreet.training.noise import LambdaCGD
    >>> print(frontier(10_000, 1000, epsilons=[1.0, 4.0], delta=1e-6, epochs=40, sizes=[100, 1000, 10_000],
    ...                noises=[LambdaCGD()]))
       batch    steps     epsilon 1     epsilon 4
         100     4000         46.6           160
        1000      400         54.9           194
       10000       40         61.5*          218*
    """
    whole("records", records, low=1)
    whole("parameters", parameters, low=1)
    positive("clip_norm", clip_norm)
    number("delta", delta, low=0, high=1, open_low=True, open_high=True)  # at zero a search would have no end
    number("epochs", epochs, low=0, high=math.inf, open_low=True, open_high=True)
    pairs = candidates(momentum, 1.0) if noises is None else [(noise, noise.sampler) for noise in noises]
    points: list[Point] = []
    ordered = sorted(set(sizes) or batch_sizes(records))
    for before, size in enumerate(ordered):
        like = Poisson(batch_size=size, dataset_size=records)
        steps = math.ceil(epochs * like.steps_per_pass)
        workload = Workload(steps, momentum)
        signal = float(np.sqrt(np.mean(workload.coefficients.cumsum() ** 2)))
        for done, pair in enumerate(pairs):
            if progress is not None:
                progress((before + done / len(pairs)) / len(ordered), f"batches of {size}: {pair[0]}")
            if pair[0].vectors(pair[1](size, records).participation, steps) > vectors:
                continue
            for epsilon in epsilons:
                row = expected(pair, like, clip_norm, workload, positive("epsilon", epsilon), delta)
                points.append(Point(epsilon, steps, row, signal * clip_norm / (row.error * math.sqrt(parameters))))
    return Frontier(parameters, delta, tuple(points))


def mean_error(records: int, dimension: int, *, epsilon: float, delta: float, norm: float = 1.0) -> float:
    """The root mean squared error, in l2, of the private mean of vectors of at most this norm: what can be hoped for.

    One Gaussian release of the sum at (epsilon, delta), divided by the public number of records: what averaging once
    costs, and what every model whose minimum is a mean pays at least with this mechanism.

    >>> round(mean_error(10_000, 100, epsilon=1.0, delta=1e-6), 4)
    0.0042
    """
    whole("records", records, low=1)
    sigma = accounting.calibrate(lambda z: events.Gaussian(noise_multiplier=z), epsilon=epsilon, delta=delta)
    return sigma * positive("norm", norm) * math.sqrt(whole("dimension", dimension, low=1)) / records


def most_excess_loss(point: Point, parameters: int, clip_norm: float = 1.0, distance: float = 1.0) -> float | None:
    r"""The most by which the mean model's expected training loss exceeds the least, for a convex loss whose gradients
    are not longer than the clip norm and a start at most ``distance`` from the minimum.

    It is :math:`R\,G/\sqrt T` at the step size :math:`R/(G\sqrt T)`, with :math:`G^2 = C^2(1 + d\,z^2/B^2)` the second
    moment of a noisy gradient. Known for independent noise alone; none for another.

    Reference: Nemirovski, Juditsky, Lan and Shapiro (2009), Section 2.2; Bassily, Smith and Thakurta (2014) for private
    descent.
    """
    row = point.expected
    if not isinstance(row.noise, Independent):
        return None
    noise = row.noise_multiplier / row.sampler.expected
    return distance * clip_norm * math.sqrt((1 + parameters * noise**2) / point.steps)
