"""The smallest noise, or the most steps, that a target allows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from scipy.optimize import brentq

from discreet.accounting.guarantees import epsilon as epsilon_of
from discreet.accounting.outward import check_bound
from discreet.adjacency import Adjacency
from discreet.errors import positive, probability
from discreet.events import Event

__all__ = ["calibrate"]

_RELATIVE = 2e-7  # a fifth of the promised 1e-6, for the outward step at the end


def calibrate(
    family: Callable[[float], Event],
    *,
    epsilon: float,
    delta: float,
    accountant: str | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    start: float = 1.0,
) -> float:
    """The parameter of a monotone family of events that just satisfies (epsilon, delta), to 1e-6 and never past it.

    Where more of the parameter means less loss (noise), the smallest; where it means more (a rate), the largest.

    >>> from discreet import events as ev
    >>> round(calibrate(lambda z: ev.Gaussian(noise_multiplier=z), epsilon=1.0, delta=1e-5), 5)
    3.73063
    """
    target, delta = positive("epsilon", epsilon), probability("delta", delta)

    @cache  # a bound may take a tenth of a second, and the ends of a bracket are asked for again
    def excess(log_x: float) -> float:
        try:
            event = family(math.exp(log_x))
        except ValueError:
            return math.nan  # outside the family's range, such as a rate above one
        value = check_bound(epsilon_of(event, delta, accountant=accountant, adjacency=adjacency))
        return max(-60.0, min(60.0, math.log(value) - math.log(target) if value > 0 else -60.0))

    first = math.log(positive("start", start))
    here = excess(first)
    if math.isnan(here):
        raise ValueError(f"start is {start!r}, but must be a parameter the family accepts.")
    sign = 1.0 if _falls(excess, first, here) else -1.0  # the direction of less loss
    safe, unsafe = _bracket(excess, first, sign)
    if unsafe is None:
        return math.exp(safe)
    root = float(brentq(excess, min(safe, unsafe), max(safe, unsafe), xtol=_RELATIVE, rtol=1e-15))
    while excess(root) > 0:  # only the safe side counts
        root += sign * _RELATIVE
    return math.exp(root)


def _falls(excess: Callable[[float], float], first: float, here: float) -> bool:
    """Whether more of the parameter means less loss; where the start is saturated, seen from further away."""
    for distance in (0.01, 1.0, 4.0, 16.0, 64.0):
        ahead, behind = excess(first + distance), here
        if math.isnan(ahead) or ahead == here:
            ahead, behind = here, excess(first - distance)
        if not math.isnan(behind) and ahead != behind:
            return ahead < behind
    return here > 0


def _bracket(excess: Callable[[float], float], first: float, sign: float) -> tuple[float, float | None]:
    """A point that satisfies the target and, next to it, one that does not (None if the family ends before that)."""
    stride, point, value, growth = math.log(2), first, excess(first), 1.5
    toward = sign if value > 0 else -sign
    while abs(point - first) < 200:
        nearby = point + toward * stride
        after = excess(nearby)
        if math.isnan(after):
            stride, growth = stride / 2, 1.0  # the family ends here: come closer to the end
            if stride < _RELATIVE:
                if value <= 0:
                    return point, None
                break
            continue
        if (after > 0) != (value > 0):
            return (nearby, point) if value > 0 else (point, nearby)
        point, stride = nearby, stride * growth  # an impossible target is seen in a dozen steps
    raise ValueError(
        "No parameter of the family meets the target: it does not change epsilon enough in this direction."
    )
