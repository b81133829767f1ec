r"""Privacy filters: when a book must refuse, and what it has proved so far.

Analysts choose the next event after seeing the last answer, so the sum of realised costs is itself an outcome of the
data, and the composition theorems for events fixed in advance do not apply to it. A *filter* has a threshold that was
public before the first answer, and stops before the threshold is crossed; an *odometer* gives a running bound that
holds whenever one stops. What is proved here, for one ordered pair of neighbouring data sets with output laws P and Q:

**Setting.** Event t is chosen from the answers so far; its price in each currency is then known (prices are public).
L_t is the log-ratio log dP/dQ of the first t answers, S(t) the sum of prices of events 1..t. A refusal depends on
prices alone, so it reveals nothing, and only admitted events count. N is the number admitted in the end.

**Rényi** (Feldman and Zrnic 2021, Theorem 3.1; Lécuyer 2021). At order α, exp((α−1)(L_t − S(t))) is a supermartingale
under P that starts at 1: given the past, the next factor has mean exp((α−1)(D_α − price)) ≤ 1. So its mean is at most 1
at *every* stopping time. With (1−e^{−x})₊ ≤ c_α e^{(α−1)x}, c_α = (1−1/α)^{α−1}/α (the conversion of Canonne, Kamath
and Steinke 2020), the reading

.. math:: \varepsilon_\alpha = S_\alpha(N) + \frac{\ln(c_\alpha/\delta_\alpha)}{\alpha-1}
   \quad\text{satisfies}\quad E_P\big[(1-e^{\varepsilon_\alpha-L_N})_+\big]\le\delta_\alpha .

This is an odometer, because it holds at any stopping time, and a filter, because stopping while ε_α ≤ ε bounds the
hockey-stick divergence at ε by δ_α. zCDP is the special case of events whose price is ρα: the order nearest the
optimum of that line is the zCDP filter (Whitehouse et al. 2023).

**Pure** (Rogers, Roth, Ullman and Vadhan 2016). L_t never exceeds the sum of the ε's: the sum is a reading, with δ = 0.

**Asked** (basic composition, Dwork and Roth 2014, Theorem 3.16; with parameters chosen on the way, Rogers et al. 2016).
Event i as a whole is (ε_i, δ_i)-DP by the tight account, at the δ_i it was asked for with; both are chosen from the
past. With l_i the log-ratio of its answer given the past, and a_i = min(1, e^{ε_i − l_i}), E_P[1 − a_i | past] ≤ δ_i.
Since Π a_i ≤ e^{Σ(ε_i − l_i)} and 1 − Π a_i ≤ Σ(1 − a_i), at every stopping time N with Σδ_i ≤ δ_a

.. math:: E_P\big[(1-e^{\sum\varepsilon_i-L_N})_+\big] \le E_P\Big[\sum_{i\le N}(1-a_i)\Big]
   \le E_P\Big[\sum_{i\le N}\delta_i\Big] \le \delta_a .

So Σε_i is a reading while Σδ_i ≤ δ_a; pure events have δ_i = 0, approximate ones their own. (A run that is charged at
once and answers step by step, between other answers, is simulated from one draw of randomised response: Lyu 2022.)

**Gaussian** (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023). Each answer of a μ_t-GDP event can be
simulated from a Brownian motion with drift, watched for a further time μ_t². Watching it to the fixed time μ² instead
can only tell more, so a process with Σμ_t² ≤ μ² is μ-GDP. A threshold, not an odometer: while it holds the reading is
the book's limit. A pure event has μ = 2Φ⁻¹(e^ε/(1+e^ε)): that curve lies below the two lines of ε-DP.

**Together.** The book admits an event while at least one of the filters would, each having been charged for everything.
Let N_j ≤ N be the last time filter j was within its threshold, and J one with N_J = N, which exists by the rule. Then

.. math:: E_P\big[(1-e^{\varepsilon-L_N})_+\big] = \sum_j E_P\big[1_{J=j}(1-e^{\varepsilon-L_{N_j}})_+\big]
   \le \sum_j E_P\big[(1-e^{\varepsilon-L_{N_j}})_+\big] \le \sum_j \delta_j .

The first step needs only that the transcripts at N and at N_J are the same; the last is filter j alone, stopped at its
own N_j. So the δ's add up to the book's, and the pure filter, with none, is free. The same line with readings in place
of ε proves the smallest reading as an odometer. Without a division the minimum is false: who stops at once where the
first answer exceeds one reading, and goes on to the end of the other reading's δ elsewhere, has spent both δ's.

**Approximate events.** An (ε,δ)-DP answer is a simulation from randomised response that fails outright with
probability δ (Kairouz, Oh and Viswanath 2015), alike under P and Q; short of failure it is ε-DP. The chance that any
charged event fails is at most the sum of their δ's, which is kept within its own share (Whitehouse et al. 2023). Each
term of the sum over j may be bounded for an extended transcript that shows failures, because the positive part of a sum
is at most the sum of positive parts: the pure, Gaussian and Rényi terms share one chance of failure, and the asked term
needs none, because its events are (ε_i, δ_i)-DP with their failures.

**Plans.** What is declared before any adaptive charge is fixed in advance, so the tight numerical account holds for it.
It takes (ε_p, δ_p) off the book, and the filters above are set up for the rest: basic composition of the two, for
every outcome of the plan.

Decisions 20 and 273.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from discreet.accounting.gaussian import gaussian_noise_multiplier
from discreet.ledger.amounts import ORDERS, UNIT, Amounts, Number, exact

__all__ = [
    "POLICIES",
    "USUAL",
    "Limit",
    "Proved",
    "Reading",
    "admits",
    "exact_total",
    "overdraws_delta",
    "quoted_at",
    "reading",
]  # fmt: skip

# How the delta of a book is divided, by the name under which it is recorded. A division is never changed, because
# thresholds must have been fixed before the first answer; a better one gets a new name.
POLICIES: dict[str, dict[str, Fraction]] = {
    "asked": {
        "asked": Fraction(1, 2),
        "gaussian": Fraction(1, 4),
        "renyi": Fraction(3, 20),
        "approximate": Fraction(1, 10),
    },
    "mixed": {"gaussian": Fraction(1, 2), "renyi": Fraction(2, 5), "approximate": Fraction(1, 10)},
    "gaussian": {"gaussian": Fraction(1), "renyi": Fraction(0), "approximate": Fraction(0)},
    "renyi": {"gaussian": Fraction(0), "renyi": Fraction(1), "approximate": Fraction(0)},
    "basic": {"gaussian": Fraction(0), "renyi": Fraction(0), "approximate": Fraction(1)},
}
USUAL = "asked"  # of books that are opened without a word about it; those from before it have "mixed"

_LARGEST = 10**6  # thresholds for more than this are those for this: lower, and within floats
_SLACK = 1e-12  # covers the rounding of the few float operations below; always added on the costly side


@dataclass(frozen=True, slots=True)
class Limit:
    """What a book may spend, and how its delta is divided between the filters."""

    epsilon: Number
    delta: Number
    policy: str = USUAL
    centre: Number = 0  # the delta for which the orders are weighed; zero means the delta itself

    def less(self, spent: Amounts) -> Limit:
        """What plans have left for the filters."""
        return Limit(self.epsilon - spent.planned_epsilon, self.delta - spent.planned_delta, self.policy)

    def at(self, delta: Number) -> Limit:
        """The same division of another delta."""
        return Limit(self.epsilon, delta, self.policy, self.delta)


@dataclass(frozen=True, slots=True)
class Reading:
    """A proved bound: epsilon, the theorem that gives it, and the used part of that theorem's own threshold."""

    epsilon: float
    proof: str
    fraction: float


class Proved(NamedTuple):
    """A reading before it is rounded."""

    epsilon: Number
    proof: str
    fraction: float

    def as_floats(self) -> Reading:
        """As floats, upwards."""
        return Reading(_up(self.epsilon), self.proof, self.fraction)


_UNPROVED = Proved(math.inf, "none", math.inf)


@dataclass(frozen=True, slots=True)
class _Terms:
    """Everything about a limit that charging compares with, computed once."""

    approximate: Number
    asked: Number
    mu2: int
    offsets: tuple[float, ...]  # reading at order j = divergence + offsets[j]
    renyi: tuple[int, ...]


@lru_cache(maxsize=1024)
def _terms(limit: Limit) -> _Terms:
    share = POLICIES[limit.policy]
    epsilon, delta = float(min(limit.epsilon, _LARGEST)), float(limit.delta)
    offsets = _offsets(epsilon, delta * float(share["renyi"]), float(limit.centre or limit.delta))
    return _Terms(
        approximate=limit.delta * share["approximate"],
        asked=limit.delta * share.get("asked", Fraction(0)),
        mu2=math.floor(_mu_within(epsilon, delta * float(share["gaussian"])) ** 2 * (1 - _SLACK) * UNIT),
        offsets=offsets,
        renyi=tuple(_threshold(epsilon, offset) for offset in offsets),
    )


def _threshold(epsilon: float, offset: float) -> int:
    """The most that an order may stand at; none where it has no part of delta."""
    if offset == math.inf:
        return -1
    slack = max(_SLACK, (epsilon + abs(offset)) * 2.0**-49)  # the fixed one covers rounding up to some hundreds
    return math.floor((epsilon - offset - slack) * UNIT)


def _offsets(epsilon: float, delta: float, centre: float) -> tuple[float, ...]:
    r"""ln(c_α/δ_α)/(α−1) for each order, with more of delta for the orders near the best one for Gaussian noise."""
    if delta <= 0 or epsilon <= 0:
        return (math.inf,) * len(ORDERS)
    alike = [_offset(order, centre) for order in ORDERS]
    best = max(range(len(ORDERS)), key=lambda j: (epsilon - alike[j]) / ORDERS[j])
    weights = [1.0 if j == best else 0.3 / (j - best) ** 2 for j in range(len(ORDERS))]
    return tuple(_offset(order, delta * w / sum(weights)) for order, w in zip(ORDERS, weights, strict=True))


def _offset(order: float, delta: float) -> float:
    return math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def _mu_within(epsilon: float, delta: float) -> float:
    """The largest mu for which mu-GDP implies (epsilon, delta)-DP: that of Gaussian noise, rounded to its safe side."""
    return 1 / gaussian_noise_multiplier(epsilon=epsilon, delta=delta) if delta > 0 and epsilon > 0 else 0.0


def admits(limit: Limit, spent: Amounts) -> bool:
    """Whether a book of this limit may stand at ``spent``."""
    left = limit.less(spent)
    if left.epsilon < 0 or left.delta < 0:
        return False
    if not spent.adaptive:
        return True
    terms = _terms(left)
    if spent.delta > terms.approximate:
        return False
    renyi = any(used <= most for used, most in zip(spent.renyi, terms.renyi, strict=True))
    return (_sums_up(spent, terms) and spent.pure <= left.epsilon) or spent.mu2 <= terms.mu2 or renyi


def _sums_up(spent: Amounts, terms: _Terms) -> bool:
    """Whether the plain sum is a theorem: all events pure, or all deltas at which they were quoted within their share.

    What may fail outright is counted there as well: a sum does not know which of its terms were approximate.
    """
    return not spent.quoted or spent.quoted + spent.delta <= terms.asked


def quoted_at(asked: tuple[float, float], limit: Limit) -> float:
    """The delta at which a release asked for with this (epsilon, delta) counts in the plain sum: its own, or all of the
    share, beyond which no sum stands.
    """
    share = float(limit.delta * POLICIES[limit.policy].get("asked", Fraction(0)))
    return min(asked[1], share)


def overdraws_delta(limit: Limit, spent: Amounts) -> bool:
    """Whether the deltas of approximate events are beyond their share."""
    left = limit.less(spent)
    return left.delta < 0 or spent.delta > _terms(left).approximate


def reading(limit: Limit, spent: Amounts, delta: Number | None = None) -> Reading:
    """The smallest epsilon proved at the book's delta (or at another: a theorem of its own), rounded up."""
    return exact_total(limit, spent, delta).as_floats()


@lru_cache(maxsize=1024)  # a charge, and the replay of it, read the same book
def exact_total(limit: Limit, spent: Amounts, delta: Number | None = None) -> Proved:
    """The same, as a number that may be added to others without rounding."""
    left = limit.less(spent)
    if delta is not None:
        left = left.at(delta - spent.planned_delta)
    if left.delta < 0 or left.epsilon < 0:
        return _UNPROVED
    planned = spent.planned_epsilon
    taken = _ratio(planned, limit.epsilon)  # by plans; the filters divide what is left of the book
    if not spent.adaptive:
        return Proved(planned, "plan" if planned else "nothing charged", taken)
    terms = _terms(left)
    if spent.delta > terms.approximate:
        return _UNPROVED
    options = _options(left, spent, terms)
    best = min(options, key=lambda option: (option.epsilon, option.fraction))
    fraction = taken + (1 - taken) * min(option.fraction for option in options)
    epsilon = exact(best.epsilon) if isinstance(best.epsilon, float) else best.epsilon
    return Proved(planned + epsilon, f"plan, then {best.proof}" if planned else best.proof, fraction)


def _options(left: Limit, spent: Amounts, terms: _Terms) -> list[Proved]:
    """What each filter proves by itself. One within its threshold proves the limit, whatever its reading rounds to."""
    options = []
    if _sums_up(spent, terms):
        proof = "sum of what was asked" if spent.quoted else "pure sum"
        options.append(Proved(spent.pure, proof, _ratio(spent.pure, left.epsilon)))
    for j, order in enumerate(ORDERS):
        epsilon: Number = _reading(spent.renyi[j], terms.offsets[j])
        if spent.renyi[j] <= terms.renyi[j] and epsilon > left.epsilon:
            epsilon = left.epsilon
        options.append(Proved(epsilon, f"Rényi filter, order {order:g}", _ratio(spent.renyi[j], terms.renyi[j])))
    if spent.mu2 <= terms.mu2:
        options.append(Proved(left.epsilon, "Gaussian filter", _ratio(spent.mu2, terms.mu2)))
    return options


def _reading(renyi: Number, offset: float) -> float:
    """The reading at an order; not below the exact sum, not even as the decimal it is written as."""
    divergence = math.nextafter(renyi / UNIT, math.inf)
    return max(0.0, math.nextafter(math.fsum((divergence, offset, _SLACK)), math.inf))


def _up(value: Number) -> float:
    if value > 1e300:
        return math.inf
    result = float(value)  # the decimal it is written as must not be lower
    return result if isinstance(value, float) or exact(result) >= value else math.nextafter(result, math.inf)


def _ratio(used: Number, most: Number) -> float:
    if used == 0:
        return 0.0
    return float(used / most) if most > 0 and used < most * 10**300 else math.inf
