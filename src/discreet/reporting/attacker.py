r"""What a set of proved (delta, epsilon) pairs says about an attacker.

If P(S) ≤ e^ε Q(S) + δ both ways, a test with false-positive rate x has true-positive rate at most min(δ + e^ε x, 1 −
e^{−ε}(1 − δ − x)) (Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015). A mechanism that satisfies several pairs
satisfies each of these bounds, so the least of them may be taken at every x. It remains to say *which* mechanism
satisfies all the pairs of a book at once.

**At the limit.** One pair, fixed at opening (or the ceiling for raises): the book itself, whatever is still charged.

**Now.** The δ_i are a fixed list; the ε_i are readings of an odometer, and so an outcome of the data: no statement
about them can be one about the process that happened to produce them. Let e_1, e_2, … be *numbers*, and let M_e be the
book that is closed, for good, before a charge that would take the reading at any δ_i beyond e_i. Prices are public, so
closing reveals nothing.

*Claim.* M_e is (e_i, δ_i)-DP for every i at once.

*Proof.* Fix i. The reading at δ_i is the least of a few options, each of which has its own share of δ_i (``filters``).
While M_e is open, the reading at δ_i is at most e_i, hence some option is. An option that is a Rényi order, the pure
sum or the sum of what was asked (an option while its deltas are within its share) is at most e_i up to a last time N_j,
and E_P[(1 − e^{e_i − L})₊] at that time is at most its share; the option of
the Gaussian filter is the number ε of the book while Σμ² is within the threshold of its share, and counts only if ε ≤
e_i, when the same holds. M_e ends at a time N that is one of the N_j, because it never outlives all options at once;
that the readings at *other* deltas may have closed it earlier only makes N a smaller stopping time, for which each
option's bound holds as well. The sum over options is at most the sum of their shares, δ_i. Plans, and stages before a
raise, are added by basic composition on both sides. ∎

The report prints the bound for M_e at e = the present readings: what could be learnt from a book that is closed for
good at this point. It is not a bound for the book as it goes on; that one is "at the limit".
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from discreet.accounting.tradeoff import TradeOff

__all__ = ["true_positive_rate"]


def true_positive_rate(false_positive_rate: float, pairs: Iterable[tuple[float, float]]) -> float:
    """The best true-positive rate that the (delta, epsilon) pairs leave possible.

    >>> round(true_positive_rate(0.01, [(0.0, 0.0)]), 15)
    0.01
    >>> round(true_positive_rate(0.01, [(1e-6, 1.0)]), 4)
    0.0272
    """
    return 1 - TradeOff.from_pairs(pairs)(false_positive_rate)


def trade_off(pairs: list[tuple[float, float]], points: int = 201) -> tuple[list[float], list[float]]:
    """False-positive rates and the false-negative rates below which no attacker can get."""
    rates = [float(x) for x in np.linspace(0, 1, points)]
    return rates, list(map(TradeOff.from_pairs(pairs), rates))
