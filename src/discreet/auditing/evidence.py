r"""Evidence against a claim that may be looked at while a run goes on: bets that a true claim does not let win.

An *e-process* starts at 1, is never negative, and under the claim its expectation never rises, whatever was seen
before. By Ville's inequality it ever reaches 1/α with probability at most α: so one may look after every step and stop.
Means of e-processes with fixed weights are e-processes, so that many suspicions cost a logarithm, and no more.

Every class here is one suspicion about the *residuals* of a run: what was released along canaries' coordinates, less
what canaries added, whitened, in units of the claimed noise. Under the claim they are independent standard normal
numbers, :math:`r_{tk}` of step t and canary k, whatever the records are: no record has a part in these coordinates.

A bet on a density p against the standard normal one φ multiplies by :math:`p(r)/\varphi(r)`, whose expectation is
:math:`\int p = 1`. p may depend on everything seen before r. Where a bet is made at one unknown step of T, the process
is :math:`1 + \frac1T\sum_{t \le T}(e_t - 1)`, with :math:`E[e_t] = 1` given what was seen before t.

References: Ville (1939); Shafer (2021), "Testing by betting"; Ramdas, Grünwald, Vovk and Shafer (2023).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from discreet.auditing.reading import Scores

__all__ = ["Lags", "NoiseOfBlocks", "Repeats", "Seldom", "SmallerNoise", "WeightNoise", "log_mean"]

_MOST = 1e9  # the logarithm of what is as good as infinite, so that means stay finite


def log_mean(logs: Scores) -> float:
    """The logarithm of the mean of numbers whose logarithms these are."""
    most = float(np.max(logs))
    return most if math.isinf(most) else most + math.log(float(np.mean(np.exp(logs - most))))


def _log_ratio(x: Scores, mean: Scores | float, deviation: float) -> Scores:
    """log p(x)/φ(x) of normal numbers p."""
    return np.asarray((x * x - ((x - mean) / deviation) ** 2) / 2 - math.log(deviation))


class Seldom:
    """A bet at one unknown step of ``planned``, of which the logarithms of e-values are told as they come."""

    def __init__(self, planned: int) -> None:
        self._planned, self._seen, self._logs = planned, 0, -math.inf

    def tell(self, logs: Scores) -> None:
        """The logarithms of the next steps' e-values."""
        for log in logs:
            self.tell_one(float(log))

    def tell_one(self, log: float) -> None:
        """That of the next step."""
        self._seen += 1
        self._logs = float(np.logaddexp(self._logs, min(log, _MOST)))

    @property
    def log(self) -> float:
        """The logarithm of the process so far."""
        rest = self._planned - self._seen
        left = math.log(rest) if rest > 0 else -math.inf
        return float(np.logaddexp(left, self._logs)) - math.log(max(self._planned, self._seen))


class SmallerNoise:
    """Noise is smaller than claimed: bets on N(0, h²) for some h below 1.

    Valid also where noise is larger than claimed, or something unknown is added that was decided before the noise was
    drawn: p/φ falls with \\|r\\|, which then is stochastically larger (Anderson's inequality).

    >>> honest, half = SmallerNoise(), SmallerNoise()
    >>> noise = np.random.default_rng(0).normal(size=(20, 100))
    >>> honest.tell(noise), half.tell(noise / 2)
    (None, None)
    >>> honest.log < 0 < 100 < half.log
    True
    """

    SHARES = np.array([0.05, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98])

    def __init__(self) -> None:
        self._count, self._squares = 0, 0.0

    def tell(self, residuals: Scores) -> None:
        """Residuals, in any order."""
        self._count += residuals.size
        self._squares += float(np.square(residuals).sum())

    @property
    def log(self) -> float:
        """The logarithm of the process so far."""
        h = self.SHARES
        return min(_MOST, log_mean(-self._count * np.log(h) - self._squares * (h**-2 - 1) / 2))


class Lags:
    """Noise of a step depends on that of some step before it, always at the same distance (noise drawn once; a wrong
    matrix): bets on N(ρ r', τ²) with the residual r' of the same canary ``lag`` steps before."""

    RHO = np.array([-0.95, -0.8, -0.6, -0.4, -0.2, 0.2, 0.4, 0.6, 0.8, 0.95])

    def __init__(self, canaries: int, lags: int = 16) -> None:
        self._past = np.zeros((0, canaries))
        self._lags = lags
        self._logs = np.zeros((lags, 2, len(self.RHO)))

    def tell(self, residuals: Scores) -> None:
        """The residuals of the next steps, [steps, canaries]."""
        known = len(self._past)
        rows = np.concatenate([self._past, residuals])
        squares = np.square(rows).sum(1)
        for lag in range(1, min(self._lags, len(rows) - 1) + 1):
            first = max(known, lag)
            if first >= len(rows):
                continue
            now, before = slice(first, None), slice(first - lag, len(rows) - lag)
            products = float(np.einsum("ij,ij->", rows[now], rows[before]))
            own, other = float(squares[now].sum()), float(squares[before].sum())
            count = rows[now].size
            for i, square in enumerate((np.ones_like(self.RHO), 1 - self.RHO**2)):
                away = (own - 2 * self.RHO * products + self.RHO**2 * other) / square
                self._logs[lag - 1, i] += (own - away) / 2 - count / 2 * np.log(square)
        self._past = rows[-self._lags :]

    @property
    def log(self) -> float:
        """The logarithm of the process so far."""
        return min(_MOST, log_mean(self._logs.ravel()))


class Repeats:
    """Noise of one step is that of another, however long ago: bets on N(ρ r', 1 − ρ²), at one unknown pair of steps.

    It remembers ``columns`` numbers a step.
    """

    RHO = (-0.99, -0.8, 0.8, 0.99)

    def __init__(self, planned: int, columns: int = 64) -> None:
        self._columns, self._seldom = columns, Seldom(planned)
        self._rows = np.zeros((0, columns), np.float32)

    def tell(self, residuals: Scores) -> None:
        """The residuals of the next steps, [steps, canaries]."""
        logs = []
        known, fresh = len(self._rows), residuals[:, : self._columns]
        if fresh.shape[1] < self._rows.shape[1]:
            self._rows = self._rows[:, : fresh.shape[1]]
        self._rows = np.concatenate([self._rows, fresh.astype(np.float32)])
        rows = self._rows.astype(np.float64)
        squares, products = np.square(rows).sum(1), rows @ rows[known:].T
        for t in range(known, len(rows)):
            if t == 0:
                logs.append(0.0)
                continue
            bets = [
                -np.log(1 - rho * rho) * rows.shape[1] / 2
                + (squares[t] - (squares[t] - 2 * rho * products[:t, t - known] + rho**2 * squares[:t]) / (1 - rho**2))
                / 2
                for rho in self.RHO
            ]
            logs.append(log_mean(np.concatenate(bets)))
        self._seldom.tell(np.array(logs))

    @property
    def log(self) -> float:
        """The logarithm of the process so far."""
        return self._seldom.log


class NoiseOfBlocks:
    """Within a step, noise comes again some canaries further on (two ranks draw one stream): bets, for a distance d,
    on N(ρ r', 1 − ρ²) of each canary but the first d, with the residual r' of the canary d before it."""

    RHO = (0.8, 0.99)
    EVERY = 8  # steps, of which one is looked at

    def __init__(self, planned: int) -> None:
        self._seldom, self._waiting = Seldom(-(-planned // self.EVERY)), 0

    def tell(self, residuals: Scores) -> None:
        """The residuals of the next steps, [steps, canaries]."""
        residuals, self._waiting = (
            residuals[self._waiting :: self.EVERY],
            -(len(residuals) - self._waiting) % self.EVERY,
        )
        count = residuals.shape[1]
        distances = np.arange(1, count)
        spectrum = np.fft.rfft(residuals, 2 * count, axis=1)
        products = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, 1:count]
        sums = np.cumsum(np.square(residuals), axis=1)
        own, other = sums[:, -1:] - sums[:, :-1], sums[:, -2::-1]
        left = count - distances
        bets = np.concatenate(
            [
                (own - (own - 2 * rho * products + rho**2 * other) / (1 - rho**2)) / 2 - left / 2 * math.log(1 - rho**2)
                for rho in self.RHO
            ],
            axis=1,
        )
        self._seldom.tell(np.array([log_mean(row) for row in bets]))

    @property
    def log(self) -> float:
        """The logarithm of the process so far."""
        return self._seldom.log


class WeightNoise:
    """Noise is missing, or too small, on some of the model's own tensors.

    Told is, for each tensor, what was released of a few of its entries, whitened, in units of the claimed noise:
    noise plus a gradient, which is unknown but was decided before the noise was drawn. So the bets of
    ``SmallerNoise`` are valid for it, and for its distance from what was seen before.
    """

    def __init__(self) -> None:
        self._logs: NDArray[np.float64] | None = None
        self._last: NDArray[np.float64] | None = None

    def tell(self, released: Scores) -> None:
        """The next steps, [steps, tensors, entries]."""
        last = np.zeros_like(released[:1]) if self._last is None else self._last
        before = np.concatenate([last, released[:-1]])
        h, count = SmallerNoise.SHARES[:5], released.shape[0] * released.shape[2]
        for i, away in enumerate((released, released - before)):
            squares = np.square(away).sum((0, 2))
            logs = -count * np.log(h) - squares[:, None] * (h**-2 - 1) / 2
            if self._logs is None:
                self._logs = np.zeros((2, *logs.shape))
            self._logs[i] += logs
        self._last = released[-1:]

    @property
    def log(self) -> float:
        """The logarithm of the process so far."""
        return 0.0 if self._logs is None else min(_MOST, log_mean(self._logs.ravel()))
