r"""A chain of bins (:mod:`discreet.accounting.allocation_chain`) from below, where a record is removed.

For calls E f is convex and increasing in y = log x at every state x, so that of the next state's law may be taken less:

* what is below the first edge is merged at its mean (Jensen) and lowered to the lowest state, which adds nothing now;
  so is everything where what is above that edge has a mean below the first state;
* the rest is contracted onto the other states: the E(y - k)₊ of a law on them is, at each, at most the lower one of the
  two tangents at the edges around it, so never above the true one, and is made convex from below;
* where a tangent is below zero, and at the highest state, it is taken for zero one state before, so that nothing is
  above that state; sums above the highest are lowered to it.

States are whole multiples of a unit, and so are their sums: nothing else is rounded.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from discreet.accounting.allocation import MeanRatio, mean_ratio
from discreet.accounting.allocation_chain import Chain
from discreet.accounting.arrays import Array
from discreet.errors import NotCertified

__all__ = ["calls_below"]

_UNIT_STATE = 0.06  # of the mean ratio, or less: between small states; large ones are twice that of each other apart
_STATE = 0.3  # of the deviation of a step
_MOST_SUMS = 16_000
_WRONG = 1e-8  # relative, of all steps
_SLIP = 1e-14  # of masses that are differences of slopes near one


@lru_cache(maxsize=64)
def calls_below(chain: Chain, top: float) -> MeanRatio:
    """The law of the mean ratio, for calls at up to ``top``."""
    n, r = chain.bins, math.sqrt(chain.variance)
    step = _STATE * math.sqrt(chain.variance * (1 - chain.correlation**2))
    unit = max(min(_UNIT_STATE, step), top * n / _MOST_SUMS)
    if unit > 8 * min(_UNIT_STATE, step):
        raise NotCertified("the ratios of a chain of bins span more than is computed with.")
    multiples, highest = [1], math.exp(chain.variance / 2 + 8 * r) / unit
    while multiples[-1] < highest:
        multiples.append(max(multiples[-1] + 1, math.ceil(multiples[-1] * (1 + min(2 * _UNIT_STATE, step)))))
    logs = np.log(unit * np.array(multiples))
    edges = np.append(logs[0] - 0.2, (logs[1:] + logs[:-1]) / 2)
    lowest = _lowest(chain, float(edges[0]))
    means, deviation = chain._next(np.append(lowest, logs))
    deviations = np.append(r, np.full(len(means) - 1, deviation))
    moves = np.array([_contract_row(logs, edges, m, s) for m, s in zip(means, deviations, strict=True)])
    steps, size = np.array([0, *multiples]), math.ceil(top * n / unit)
    masses = np.outer(moves[0], np.append(1.0, np.zeros(size)))
    for i in range(n):
        if i:
            masses = moves[1:].T @ masses
        for state, step in enumerate(np.minimum(steps, size).tolist()):
            if step:
                row = masses[state]
                beyond = float(row[size + 1 - step :].sum())
                row[step:] = row[: size + 1 - step].copy()
                row[:step] = 0.0
                row[size] += beyond
    return mean_ratio(
        np.arange(size + 1) * unit / n, masses.sum(axis=0) * (1 - _WRONG), forward=True, wrong=_WRONG / 100
    )


def _lowest(chain: Chain, edge: float) -> float:
    """A state below the mean of what is under the edge, from whatever state: the lowest one's own next mean decides."""
    mean = edge
    for _ in range(500):
        (_, centre), deviation = chain._next(np.array([mean]))
        mean = min(mean, _mean_under(edge, float(centre), deviation))
    first = _mean_under(edge, -chain.variance / 2, math.sqrt(chain.variance))
    return min(mean, first) - 0.01


def _mean_under(edge: float, mean: float, deviation: float) -> float:
    d = (edge - mean) / deviation
    if d < -30:  # beyond floats; the mean is above edge - deviation/|d|
        return edge + deviation / d
    return mean - deviation * math.exp(-d * d / 2) / math.sqrt(2 * math.pi) / float(ndtr(d))


def _contract_row(points: Array, edges: Array, mean: float, deviation: float) -> Array:
    """Masses at the lowest state and at the points of a normal law: see the module."""
    d = (edges - mean) / deviation
    above = ndtr(-d)
    calls = deviation * (np.exp(-d * d / 2) / math.sqrt(2 * math.pi) - d * above)
    left = calls + above * (edges - points)  # the tangent at the edge before each point, at the point
    right = (calls + above * (edges - np.append(0.0, points[:-1])))[1:]  # and at the edge after it
    values = np.append(np.minimum(left[:-1], right), left[-1])
    if values[0] < 0:  # what is above the first edge has no mean as high as the first point: all is lowered
        return np.append(1.0 - _SLIP, np.zeros(len(edges)))
    end = int(np.argmax(values < 0)) if (values < 0).any() else len(values)  # nothing is above the last one
    points, values = points[:end], np.append(values[: end - 1], 0.0)
    for j in range(len(values) - 2, -1, -1):  # so that no slope is below that of all mass
        values[j] = min(values[j], values[j + 1] + above[0] * (points[j + 1] - points[j]))
    kept = _convex(points, values)
    slopes = np.concatenate([[-above[0]], np.diff(values[kept]) / np.diff(points[kept]), [0.0]])
    masses = np.zeros(len(edges))
    masses[kept] = np.maximum(np.diff(slopes) - np.where(points[kept] < mean, _SLIP, 0.0), 0.0)
    return np.append(max(float(ndtr(d[0])) - _SLIP, 0.0), masses)


def _convex(points: Array, values: Array) -> list[int]:
    """Which of them the largest convex function goes through that is nowhere above."""
    kept: list[int] = []
    for j in range(len(points)):
        while len(kept) > 1:
            i, k = kept[-2:]
            if (values[k] - values[i]) * (points[j] - points[i]) < (values[j] - values[i]) * (points[k] - points[i]):
                break
            kept.pop()
        kept.append(j)
    return kept
