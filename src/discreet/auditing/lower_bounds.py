r"""How private can it be at most? Lower bounds on epsilon from runs on two neighbours.

Run a mechanism many times on D and on D′ and count how often the output falls in a set S chosen beforehand. With
confidence, p ≥ p_low on one and q ≤ q_high on the other; (ε, δ)-DP demands p ≤ e^ε·q + δ, so

.. math:: \epsilon \ge \ln\frac{p_{low} - \delta}{q_{high}}

A set that tells the two apart well gives a bound near the true value; a bound above the claim is a proven bug, up to
the stated false-alarm rate. For Gaussian noise a single set cannot come near ε at small δ; there the trade-off curve is
known in shape, and the same two numbers bound its one parameter, μ (Nasr et al. 2023).
"""

from __future__ import annotations

import math

from discreet.errors import number, probability, whole

__all__ = ["clopper_pearson", "epsilon_lower_bound", "mu_lower_bound"]


def clopper_pearson(hits: int, trials: int, alarm: float) -> tuple[float, float]:
    """Bounds on a probability from ``hits`` in ``trials``; each side is wrong with probability at most ``alarm``.

    Reference: Clopper and Pearson (1934).

    >>> low, high = clopper_pearson(50, 100, alarm=0.025)
    >>> round(low, 3), round(high, 3)
    (0.398, 0.602)
    """
    from scipy.special import betaincinv

    hits, trials = whole("hits", hits), whole("trials", trials, low=1)
    if hits > trials:
        raise ValueError(f"hits is {hits}, but must be a whole number in [0, {trials}].")
    alarm = number("alarm", alarm, low=0, high=1, open_low=True, open_high=True)
    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, alarm))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1 - alarm))
    return low, high


def epsilon_lower_bound(hits: tuple[int, int], trials: int, *, delta: float = 0.0, alarm: float = 1e-6) -> float:
    """The largest epsilon that ``hits`` in a set, among ``trials`` runs on each of two neighbours, rule out.

    Both directions and the set's complement are used, so each of eight bounds is allowed an eighth of ``alarm``.

    >>> round(epsilon_lower_bound((900_000, 100_000), 1_000_000), 2)
    2.18
    >>> epsilon_lower_bound((50, 50), 100)
    0.0
    """
    delta, share = probability("delta", delta), alarm / 8
    best = 0.0
    for counts in (hits, (trials - hits[0], trials - hits[1])):
        for first, second in (counts, counts[::-1]):
            low = clopper_pearson(first, trials, share)[0] - delta
            high = clopper_pearson(second, trials, share)[1]
            best = max(best, math.log(low / high) if low > 0 else 0.0)
    return best


def mu_lower_bound(hits: tuple[int, int], trials: int, *, alarm: float = 1e-6) -> float:
    r"""The largest mu for which N(0, 1) against N(mu, 1) could give such ``hits``: :math:`\Phi^{-1}(p) - \Phi^{-1}(q)`.

    >>> round(mu_lower_bound((691_462, 308_538), 1_000_000), 2)
    0.99
    """
    from scipy.special import ndtri

    share = alarm / 8
    best = 0.0
    for first, second in (hits, hits[::-1]):
        low, high = clopper_pearson(first, trials, share)[0], clopper_pearson(second, trials, share)[1]
        if low > 0 and high < 1:
            best = max(best, float(ndtri(low) - ndtri(high)))
    return best
