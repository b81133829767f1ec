"""Every formula of the accountants that has a small-argument branch, against mpmath, over 300 decades.

One seed is one formula at one point: transforms of closed pairs (value and claimed error), Rényi curves, tails,
amplification, conversions, the Gaussian profile, group factors, laws of selections, repetitions up to 1e36. An upper
bound is never below the exact value, a lower one never above, a claimed error is never exceeded, and none of them is so
loose that it says nothing where the arguments are small.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable

import mpmath
import numpy as np
from mpmath import mpc, mpf

from discreet import events as ev
from discreet.accounting.conversion import rdp_to_delta, rdp_to_epsilon
from discreet.accounting.gaussian import profile_delta, profile_epsilon
from discreet.accounting.leaves.choices import _report
from discreet.accounting.leaves.samplers import _amplified_epsilon
from discreet.accounting.outward import FLOOR, growth, times
from discreet.accounting.parts import Leaf
from discreet.accounting.pld.atoms import Atoms, binary
from discreet.accounting.pld.bounded_range import BoundedRange
from discreet.accounting.pld.contour import Contour
from discreet.accounting.pld.convolution import union
from discreet.accounting.pld.grid import _profile_bounds
from discreet.accounting.pld.pairs import GaussianShift, LaplaceShift, Pair, reverse
from discreet.accounting.pld.replaced import ReplaceSampledGaussian
from discreet.accounting.pld.sampling import Sampled
from discreet.accounting.pld.transforms import Transform
from discreet.accounting.rdp import leaf_curve
from discreet.accounting.selection import Runs
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified, UnsupportedEvent

__all__ = ["check", "main"]

TIGHT = 1e-9  # how loose a formula may be, relative to what it bounds
AR = Adjacency.ADD_REMOVE


class Violation(AssertionError):
    """A formula that is wrong, with the point where it is."""


def _log_uniform(rng: random.Random, low: float, high: float) -> float:
    return 10 ** rng.uniform(low, high)


def _loss(rng: random.Random) -> float:
    """A loss: the smallest that is computed with is 1e-60."""
    return _log_uniform(rng, -12, 2.5) if rng.random() < 0.5 else _log_uniform(rng, -59.9, 4.9)


def _above(what: str, claimed: float, exact: mpf, slack: float = TIGHT, floor: float = 0.0) -> None:
    """An upper bound, and not by more than ``slack`` relative to the exact value and ``floor``."""
    if not mpf(claimed) >= exact * (1 - mpf(2) ** -50):
        raise Violation(f"{what}: {claimed!r} is below {mpmath.nstr(exact, 17)}")
    if not mpf(claimed) <= exact * (1 + slack) + floor:
        raise Violation(f"{what}: {claimed!r} is far above {mpmath.nstr(exact, 17)}")


# --- transforms: value and claimed error -----------------------------------------------------------------------------


def _sinhc(x: mpf) -> mpf:
    return mpmath.sinh(x) / x


def _closed_pair(rng: random.Random) -> tuple[str, Pair, Callable[[mpc], mpc]]:
    """A pair with a closed transform, and the transform by another formula."""
    e = _loss(rng)
    x, decay = mpf(e), mpmath.exp(-mpf(e))
    match rng.choice(("bounded range", "laplace", "binary", "report", "member")):
        case "bounded range":
            return f"bounded range {e!r}", BoundedRange(e), lambda z: mpmath.log(_sinhc((z + 0.5) * x) / _sinhc(x / 2))
        case "laplace":
            return (
                f"laplace {e!r}",
                LaplaceShift(e),
                lambda z: mpmath.log(mpmath.cosh((z + 0.5) * x) + x / 2 * _sinhc((z + 0.5) * x)) - x / 2,
            )
        case "binary":
            d = rng.choice((0.0, _log_uniform(rng, -300, -0.1)))
            return (
                f"binary {e!r} {d!r}",
                binary(e, d),
                lambda z: mpmath.log((1 - mpf(d)) * (mpmath.exp(z * x) + mpmath.exp(-z * x) * decay) / (1 + decay)),
            )
        case "report":
            n = rng.choice((2, 3, 10, 10**6)) - 2
            return (
                f"report {e!r} {n}",
                _report(e, n + 2),
                lambda z: mpmath.log(
                    (mpmath.exp(z * x) + mpmath.exp(-z * x) * decay + n * decay) / (1 + decay + n * decay)
                ),
            )
    member = rng.choice(BoundedRange(e).attainable)
    assert isinstance(member, Atoms)
    top = mpf(float(member.losses[-1]))
    high = (1 - mpmath.exp(top - x)) / (1 - decay)
    return (
        f"member {e!r} {top}",
        member,
        lambda z: mpmath.log(high * mpmath.exp(z * top) + (1 - high) * mpmath.exp(z * (top - x))),
    )


def transforms(rng: random.Random) -> None:
    """K(z) anywhere on the right: the claimed error holds, and on the axis it is relative to K."""
    what, pair, exact = _closed_pair(rng)
    c = math.exp(rng.uniform(-12, 14))
    t = rng.choice((0.0, c * _log_uniform(rng, -3, 3), _log_uniform(rng, -3, 3) / pair.highest))
    true = exact(mpc(c, t))
    value, error = (x[0] for x in pair.log_mgf(np.array([complex(c, t)])))  # type: ignore[attr-defined]
    turns = mpmath.nint((mpf(value.imag) - true.imag) / (2 * mpmath.pi))
    if not abs(mpc(complex(value)) - true - mpc(0, 2 * mpmath.pi * turns)) <= mpf(float(error)):
        raise Violation(f"K({c!r} + {t!r}i) of {what}: {value} is not within {error} of {mpmath.nstr(true, 17)}")
    if t == 0 and not error <= TIGHT * abs(true):
        raise Violation(f"K({c!r}) of {what}: an error of {error} is claimed, of {mpmath.nstr(true, 17)}")


def swarms(rng: random.Random) -> None:
    """A Gaussian beside as many as 1e15 small losses: the contour's bounds hold what the exact K gives."""
    e, sigma = _log_uniform(rng, -9, -4), _log_uniform(rng, -0.3, 2)
    pair = rng.choice((BoundedRange(e), LaplaceShift(e), binary(e)))
    count = min(10**15, int(_log_uniform(rng, -1, 1) / (e * sigma) ** 2))
    contour = Contour(None, 1 / sigma, ((Transform(pair), count),), 0.0)
    epsilon = (1 / sigma**2 + count * e**2 / 4) / 2 + rng.uniform(0.0, 3.0) * math.sqrt(1 / sigma**2 + count * e**2 / 4)
    low, high = contour.delta_bounds(epsilon)
    true = _delta(pair, e, count, mpf(sigma), mpf(epsilon))
    if not mpf(low) * (1 - mpf(1e-12)) <= true <= mpf(high) * (1 + mpf(1e-12)):
        raise Violation(
            f"{count} of {pair} with sigma {sigma!r} at {epsilon!r}: {mpmath.nstr(true, 12)} not in {low, high}"
        )
    if not high <= low * (1 + 1e-6) + 1e-300:
        raise Violation(f"{count} of {pair} with sigma {sigma!r} at {epsilon!r}: the bounds {low, high} are wide")


def _delta(pair: Pair, e: float, count: int, sigma: mpf, epsilon: mpf) -> mpf:
    """delta(epsilon) by a contour integral of the exact transform, with 45 digits."""
    exact = {
        BoundedRange: lambda z: mpmath.log(_sinhc((z + 0.5) * mpf(e)) / _sinhc(mpf(e) / 2)),
        LaplaceShift: lambda z: (
            mpmath.log(mpmath.cosh((z + 0.5) * mpf(e)) + mpf(e) / 2 * _sinhc((z + 0.5) * mpf(e))) - mpf(e) / 2
        ),
        Atoms: lambda z: mpmath.log(
            (mpmath.exp(z * mpf(e)) + mpmath.exp(-(z + 1) * mpf(e))) / (1 + mpmath.exp(-mpf(e)))
        ),
    }[type(pair)]
    with mpmath.workdps(45):
        variance = 1 / sigma**2 + count * mpf(e) ** 2 / 3
        c = max(epsilon / variance - mpf(1) / 2, mpf(1) / 2)

        def integrand(t: mpf) -> mpf:
            z = mpc(c, t)
            return (mpmath.exp(z * (z + 1) / (2 * sigma**2) + count * exact(z) - z * epsilon) / (z * (z + 1))).real

        scale = 1 / mpmath.sqrt(variance)
        return mpmath.quad(integrand, [0, *(scale * k for k in (1, 2, 4, 7, 11, 16))], maxdegree=6) / mpmath.pi


# --- curves ----------------------------------------------------------------------------------------------------------


def curves(rng: random.Random) -> None:
    """Rényi divergences of leaves are never below the exact ones, and close where losses are small."""
    order, e = 1 + _log_uniform(rng, -2.2, 6), _log_uniform(rng, -300, 2.8)
    c, x = mpf(order) - 1, mpf(e)
    decay = mpmath.exp(-x)
    match rng.choice(("laplace", "response", "exponential", "gaussian")):
        case "laplace":
            noise = 1 / e
            x = 1 / mpf(noise)
            event: ev.Event = ev.Laplace(noise_multiplier=noise)
            exact = (mpmath.log(mpmath.cosh((c + 0.5) * x) + x / 2 * _sinhc((c + 0.5) * x)) - x / 2) / c
        case "response":
            n = rng.choice((2, 5)) - 2
            event = ev.RandomizedResponse(epsilon=e, categories=n + 2)
            exact = (
                mpmath.log((mpmath.exp(c * x) + mpmath.exp(-c * x) * decay + n * decay) / (1 + decay + n * decay)) / c
            )
        case "exponential":
            event, exact = ev.Exponential(epsilon=e), _bounded_range_divergence(x, c)
        case "gaussian":
            event, exact = ev.GDP(mu=e), mpf(order) * x**2 / 2
    claimed = float(leaf_curve(Leaf(event, getattr(event, "adjacency", AR)), (order,))[0])
    slack = 0.35 if isinstance(event, ev.Exponential) else 1e-6  # min(ε, ε²α/8) is that much above the truth at worst
    _above(f"order {order!r} of {event}", claimed, exact, slack=slack, floor=1e-59)


def _bounded_range_divergence(x: mpf, c: mpf) -> mpf:
    """The largest over the position of the interval: Dong, Durfee and Rogers (2020), by another arrangement."""
    big, small = mpmath.expm1(x), -mpmath.expm1(-c * x)
    edge = mpmath.exp(x) - mpmath.exp(-c * x)
    top = min(max(c / (c + 1) * edge / small, mpf(1)), mpmath.exp(x))
    return mpmath.log(top**c * (edge - top * small) / big) / c


def samples(rng: random.Random) -> None:
    """A sampled Gaussian at whole orders, where the divergence is a finite sum (Mironov, Talwar and Zhang 2019)."""
    order, q, sigma = rng.randint(2, 24), _log_uniform(rng, -18, -0.01), _log_uniform(rng, -0.5, 8)
    event = ev.PoissonSampled(rate=q, event=ev.Gaussian(noise_multiplier=sigma))
    claimed = float(leaf_curve(Leaf(event, AR), (float(order),))[0])
    q_, s = mpf(q), mpf(1 / (1 / sigma))
    moment = mpmath.fsum(
        mpmath.binomial(order, k) * (1 - q_) ** (order - k) * q_**k * mpmath.exp(mpf(k * (k - 1)) / (2 * s**2))
        for k in range(order + 1)
    )
    _above(f"order {order} of {event}", claimed, mpmath.log(moment) / (order - 1), slack=1e-6, floor=1e-13)


def profiles(rng: random.Random) -> None:
    """delta(epsilon) of one pair from its tails, sampled or not, in both directions, is held by its bounds."""
    e, q = _loss(rng), rng.choice((1.0, _log_uniform(rng, -50, -0.01)))
    inner = rng.choice((LaplaceShift(e), BoundedRange(e), binary(e), GaussianShift(min(e, 300.0))))
    pair: Pair = inner if q == 1 else Sampled(q, inner)
    back = q < 1 and rng.random() < 0.4
    pair = reverse(pair) if back else pair
    top = pair.highest if math.isfinite(pair.highest) else 5 * q * inner.mu  # type: ignore[union-attr]
    at = top * rng.choice((0.0, rng.random(), _log_uniform(rng, -20, 0)))
    grown = mpmath.exp(mpf(at))
    level = 1 + (1 / grown - 1 if back else grown - 1) / mpf(q)  # e^l of the loss inside
    if level <= 0:
        true = mpf(0)
    elif back:  # Q(L < l) - e^ε((1-q)Q(L < l) + q·P(L < l))
        p, r = (_heads(inner, mpmath.log(level), law) for law in (0, 1))
        true = r - grown * ((1 - mpf(q)) * r + mpf(q) * p)
    else:
        p, r = (_heads(inner, mpmath.log(level), law) for law in (0, 1))
        true = mpf(q) * ((1 - p) - level * (1 - r))
    _within(f"{pair} at {at!r}", _profile_bounds(pair, at), max(true, mpf(0)))


def _heads(pair: Pair, loss: mpf, law: int) -> mpf:
    """P(L ≤ l), or Q(L ≤ l), of a closed pair."""
    if isinstance(pair, GaussianShift):
        return mpmath.ncdf(loss / mpf(pair.mu) + (mpf(pair.mu) / 2 if law else -mpf(pair.mu) / 2))
    x = mpf(pair.highest)
    if not -x <= loss < x:
        return mpf(loss >= x)
    if isinstance(pair, LaplaceShift):
        return 1 - mpmath.exp(-(x + loss) / 2) / 2 if law else mpmath.exp(-(x - loss) / 2) / 2
    if isinstance(pair, BoundedRange):
        heads = mpmath.expm1((x + loss) / 2) / mpmath.expm1(x)
        return mpmath.expm1(-(x + loss) / 2) / mpmath.expm1(-x) if law else heads
    return 1 / (1 + mpmath.exp(-x if law else x))  # the loss -x of two


def _within(what: str, bounds: tuple[float, float], true: mpf) -> None:
    low, high = (mpf(bound) for bound in bounds)
    if not low <= true * (1 + mpf(2) ** -45) + mpf(FLOOR) or not true <= high * (1 + mpf(2) ** -45):
        raise Violation(f"{what}: {mpmath.nstr(true, 17)} is not in {bounds}")


def replacements(rng: random.Random) -> None:
    """The same of a record that is replaced in a Poisson sample of Gaussian noise: a quadratic in exp(x/σ²)."""
    q, sigma = _log_uniform(rng, -50, -0.01), _log_uniform(rng, -1, 8)
    epsilon = rng.choice((0.0, _log_uniform(rng, -20, 1), q / sigma * _log_uniform(rng, -2, 1)))
    a, b, c = mpf(q) * mpmath.exp(-1 / (2 * mpf(sigma) ** 2)), (1 - mpf(q)) * mpmath.expm1(mpf(epsilon)), mpf(epsilon)
    y = (b + mpmath.sqrt(b * b + 4 * a * a * mpmath.exp(c))) / (2 * a)
    x = mpmath.log(y) * mpf(sigma)  # in units of the noise
    middle, shift = (1 - mpf(q)) * mpmath.ncdf(-x), 1 / mpf(sigma)
    p, r = (middle + mpf(q) * mpmath.ncdf(side * shift - x) for side in (1, -1))
    pair = ReplaceSampledGaussian(q, sigma)
    _within(f"{pair} at {epsilon!r}", _profile_bounds(pair, epsilon), p - mpmath.exp(c) * r)


# --- one number ------------------------------------------------------------------------------------------------------


def gaussian(rng: random.Random) -> None:
    """The Gaussian profile from both sides, and its inverse."""
    mu = _log_uniform(rng, -150, 2.5)
    scale = rng.choice((mu, mu * mu))
    epsilon = rng.choice((0.0, scale * _log_uniform(rng, -3, 1.2)))
    m, e = mpf(mu), mpf(epsilon)
    true = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
    low, high = profile_delta(mu, epsilon, side=-1), profile_delta(mu, epsilon)
    if not mpf(low) <= true <= mpf(high):
        raise Violation(f"Gaussian {mu!r} at {epsilon!r}: {mpmath.nstr(true, 17)} is not in {low, high}")
    _above(f"Gaussian {mu!r} at {epsilon!r}", high, true, slack=1e-6, floor=2 * FLOOR)
    if 1e-250 < high < 0.5 and epsilon:
        back = mpf(profile_epsilon(mu, high))
        attained = mpmath.ncdf(m / 2 - back / m) - mpmath.exp(back) * mpmath.ncdf(-m / 2 - back / m)
        if not attained <= mpf(high):
            raise Violation(f"Gaussian {mu!r} at delta {high!r}: epsilon {back} has delta {mpmath.nstr(attained, 17)}")


def amplification(rng: random.Random) -> None:
    """log(1 + q(e^ε - 1)), also times a count."""
    e, q = _log_uniform(rng, -300, 2.86), _log_uniform(rng, -300, 0)
    claimed, n = _amplified_epsilon(e, q), int(_log_uniform(rng, 0, 36))
    true = mpmath.log1p(mpf(q) * mpmath.expm1(mpf(e)))
    _above(f"amplified {e!r} at {q!r}", claimed, true, slack=1e-9, floor=1e-322)
    _above(f"{n} times {claimed!r}", times(claimed, n), mpf(claimed) * n, slack=1e-14, floor=1e-322)


def conversions(rng: random.Random) -> None:
    """From one order to epsilon and to delta."""
    order, r = 1 + _log_uniform(rng, -6, 8), rng.choice((0.0, _log_uniform(rng, -300, 3)))
    delta, epsilon = _log_uniform(rng, -300, -1e-6), _log_uniform(rng, -300, 3)
    a = mpf(order)
    true = mpf(r) + mpmath.log1p(-1 / a) - (mpmath.log(mpf(delta)) + mpmath.log(a)) / (a - 1)
    size = abs(mpf(r)) + (abs(mpmath.log(mpf(delta))) + mpmath.log(a)) / (a - 1) + 1 / a
    _above(f"epsilon {order!r} {r!r} {delta!r}", rdp_to_epsilon([order], [r], delta), max(true, mpf(0)),
           floor=float(size * mpf(1e-14)))  # fmt: skip
    log = (a - 1) * (mpf(r) - mpf(epsilon) + mpmath.log1p(-1 / a)) - mpmath.log(a)
    claimed = rdp_to_delta([order], [r], epsilon)
    if not mpf(claimed) >= min(mpf(1), mpmath.exp(log)):
        raise Violation(f"delta {order!r} {r!r} {epsilon!r}: {claimed!r} is below {mpmath.nstr(mpmath.exp(log), 17)}")


def groups(rng: random.Random) -> None:
    """1 + e^ε + … + e^{(k-1)ε}, and 1 - ∏(1-p)^n."""
    e, k = _log_uniform(rng, -300, 2.5), int(_log_uniform(rng, 0, 36))
    true = mpf(k) if mpf(k) * mpf(e) < mpf(10) ** -200 else mpmath.expm1(mpf(k) * mpf(e)) / mpmath.expm1(mpf(e))
    if mpf(e) * (k - 1) < 690:
        _above(f"growth {e!r} {k}", growth(e, k), true, slack=1e-9)
    chances = [(_log_uniform(rng, -300, -1e-9), int(_log_uniform(rng, 0, 36))) for _ in range(3)]
    lost = -mpmath.expm1(mpmath.fsum(n * mpmath.log1p(-mpf(p)) for p, n in chances))
    if not abs(mpf(union(chances)) - lost) <= lost * mpf(1e-13):
        raise Violation(f"union of {chances}: {union(chances)!r} for {mpmath.nstr(lost, 17)}")


def selections(rng: random.Random) -> None:
    """The law of a number of runs: its odds give its mean, and its distance and its tail are rounded up."""
    mean, shape = (
        1 + _log_uniform(rng, -12, 5.9),
        rng.choice((0.0, 1.0, rng.uniform(-0.9, 3), _log_uniform(rng, -6, 2))),
    )
    runs, chance = Runs(mean, shape), _log_uniform(rng, -300, 0)
    try:
        odds = mpf(runs.odds)
    except UnsupportedEvent:
        return
    eta, log = mpf(shape), mpmath.log1p(odds)
    of_odds = mpmath.expm1(log) / (log if shape == 0 else -mpmath.expm1(-eta * log) / eta)
    _above(f"the mean at {runs}", float(of_odds), mpf(mean) * (1 - mpf(1e-12)), slack=1e-6)
    reached = mpmath.log1p(odds * mpf(chance))
    some = reached / log if shape == 0 else mpmath.expm1(-eta * reached) / mpmath.expm1(-eta * log)
    claimed = runs._some(chance)
    if not abs(mpf(claimed) - some) <= some * mpf(1e-9):
        raise Violation(f"{runs} at {chance!r}: {claimed!r} for {mpmath.nstr(some, 17)}")


CHECKS = (transforms, transforms, transforms, curves, curves, samples, profiles, profiles, replacements, gaussian,
          amplification, conversions, groups, selections)  # fmt: skip


def check(seed: int) -> str:
    """One formula at one point; a swarm, which costs a second, once in fifty."""
    rng = random.Random(seed)
    one = swarms if seed % 50 == 0 else rng.choice(CHECKS)
    with mpmath.workdps(60 if one is swarms else 400 if one is not groups else 700):
        try:
            one(rng)
        except NotCertified:
            return f"{one.__name__}, refused"
    return one.__name__


def main(size: int | None = None, first: int = 0) -> None:
    """Try so many points, 10,000 by default."""
    tried: Counter[str] = Counter()
    started, broken = time.process_time(), []
    for seed in range(first, first + (10_000 if size is None else size)):
        try:
            tried[check(seed)] += 1
        except Violation as error:
            broken.append(f"seed {seed}: {error}")
            print(broken[-1], flush=True)
    print(f"small_arguments: {dict(sorted(tried.items()))} in {time.process_time() - started:.0f} CPU seconds")
    if broken:
        raise Violation(f"{len(broken)} formulas are wrong somewhere, the first: {broken[0]}")
