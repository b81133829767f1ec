"""Runs in the peers' environment: what dp-accounting and prv-accountant prove about one event.

Reads ``{"event": ..., "delta": ...}`` a line, prints a list of ``{"source", "lower", "upper"}`` a line. Bounds are kept
only where they are bounds. Both peers say nothing of rounding in their Fourier transforms, which grows with the
repetitions: at delta = 4e-10 and 3,230 repetitions dp-accounting's upper bound is 3e-6 below the truth. So it is asked
at a delta that much smaller or larger, and not at all where the rounding would show in the third digit of delta.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from typing import Any

import dp_accounting
import prv_accountant
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from prv_accountant import privacy_random_variables as prv

from discreet import events as ev

SMALLEST_DELTA = 1e-10
SECONDS = 12
ROUNDING = 1e-15  # of a Fourier transform, for each repetition

Bound = dict[str, Any]


def pld_of(leaf: ev.Event, *, interval: float, pessimistic: bool) -> pld.PrivacyLossDistribution:
    """The privacy-loss distribution of one leaf; optimistic ones need plain rounding (dots only connect upwards)."""
    rate = 1.0
    if isinstance(leaf, ev.PoissonSampled):
        rate, leaf = leaf.rate, leaf.event
    common_options = {"pessimistic_estimate": pessimistic, "value_discretization_interval": interval}
    options = common_options | {"sampling_prob": rate}
    match leaf:
        case ev.Gaussian(noise_multiplier=sigma):
            return pld.from_gaussian_mechanism(sigma, use_connect_dots=pessimistic, **options)
        case ev.Laplace(noise_multiplier=scale):
            return pld.from_laplace_mechanism(scale, use_connect_dots=pessimistic, **options)
        case ev.DiscreteLaplace(scale=scale, sensitivity=sensitivity):
            return pld.from_discrete_laplace_mechanism(1 / scale, sensitivity, **options)
        case ev.DiscreteGaussian(sigma=sigma, sensitivity=sensitivity):
            return pld.from_discrete_gaussian_mechanism(sigma, sensitivity, **options)
        case ev.PureDP(epsilon=epsilon) if pessimistic:
            return pld.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, 0.0), interval)
        case ev.ApproxDP(epsilon=epsilon, delta=delta) if pessimistic:
            return pld.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, delta), interval)
    raise NotImplementedError(type(leaf).__name__)


def pld_epsilon(leaves: dict[ev.Event, int], delta: float, *, interval: float, pessimistic: bool) -> float:
    total = pld.identity(interval, pessimistic)
    rounding = ROUNDING * (100 + sum(leaves.values()))
    if rounding > delta / 1000:
        raise NotImplementedError("rounding")
    for leaf, count in leaves.items():
        total = total.compose(pld_of(leaf, interval=interval, pessimistic=pessimistic).self_compose(count))
    return float(total.get_epsilon_for_delta(delta - rounding if pessimistic else delta + rounding))


def prv_of(leaf: ev.Event) -> prv.PrivacyRandomVariable:
    match leaf:
        case ev.Gaussian(noise_multiplier=sigma):
            return prv.GaussianMechanism(noise_multiplier=sigma)
        case ev.Laplace(noise_multiplier=scale):
            return prv.LaplaceMechanism(mu=1 / scale)
        case ev.PoissonSampled(rate=rate, event=ev.Gaussian(noise_multiplier=sigma)):
            return prv.PoissonSubsampledGaussianMechanism(sampling_probability=rate, noise_multiplier=sigma)
    raise NotImplementedError(type(leaf).__name__)


def prv_bounds(leaves: dict[ev.Event, int], delta: float, *, error: float) -> tuple[float, float]:
    counts = list(leaves.values())
    accountant = prv_accountant.PRVAccountant(
        [prv_of(leaf) for leaf in leaves], max_self_compositions=counts, eps_error=error, delta_error=delta / 1000
    )
    lower, _, upper = accountant.compute_epsilon(delta, counts)
    return max(0.0, lower), max(0.0, upper)


def rdp_epsilon(leaves: dict[ev.Event, int], delta: float) -> float:
    accountant = dp_accounting.rdp.RdpAccountant()
    for leaf, count in leaves.items():
        match leaf:
            case ev.PoissonSampled(rate=rate, event=ev.Gaussian(noise_multiplier=sigma)):
                inner = dp_accounting.GaussianDpEvent(sigma)
                accountant.compose(dp_accounting.PoissonSampledDpEvent(rate, inner), count)
            case ev.Gaussian(noise_multiplier=sigma):
                accountant.compose(dp_accounting.GaussianDpEvent(sigma), count)
            case _:
                raise NotImplementedError(type(leaf).__name__)
    return float(accountant.get_epsilon(delta))


def attempt(compute: Callable[[], Bound]) -> list[Bound]:
    """What a peer can say within a few seconds; a peer that cannot price the event says nothing."""
    signal.alarm(SECONDS)
    try:
        return [compute()]
    except (NotImplementedError, TimeoutError, ValueError, RuntimeError, MemoryError, OverflowError):
        return []
    finally:
        signal.alarm(0)


def bounds(event: ev.Event, delta: float) -> list[Bound]:
    leaves = ev.leaves(event)
    found = attempt(lambda: {"source": "dp-accounting rdp", "upper": rdp_epsilon(leaves, delta)})
    if delta < SMALLEST_DELTA:
        return found
    found += attempt(
        lambda: {"source": "dp-accounting pld", "upper": pld_epsilon(leaves, delta, interval=1e-4, pessimistic=True)}
    )
    if not found or found[-1]["upper"] > 100:  # a grid this wide takes the peers minutes
        return found
    finer = 1e-5 if sum(leaves.values()) <= 30 and found[-1]["upper"] < 5 else 1e-4
    found += attempt(
        lambda: {"source": "dp-accounting pld", "lower": pld_epsilon(leaves, delta, interval=finer, pessimistic=False)}
    )
    error = max(0.002, 0.003 * found[0]["upper"])
    found += attempt(
        lambda: (
            dict(zip(("lower", "upper"), prv_bounds(leaves, delta, error=error), strict=True))
            | {"source": "prv-accountant"}
        )
    )
    return found


def too_long(signum: int, frame: object) -> None:
    raise TimeoutError


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, too_long)
    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps(bounds(ev.Event.from_dict(question["event"]), question["delta"])), flush=True)
