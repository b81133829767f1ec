"""Runs in the peers' environment: epsilon of a composition of Poisson-sampled Gaussians, by one peer."""

from __future__ import annotations

from typing import Any

from benchmarks.timed import answer_once

Steps = list[tuple[float, float, int]]  # rate, noise multiplier, count


def dp_accounting(steps: Steps, delta: float, error: float) -> float:
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant()  # the default grid
    for rate, noise, count in steps:
        accountant.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), count)
    return float(accountant.get_epsilon(delta))


def prv_accountant(steps: Steps, delta: float, error: float) -> float:
    from prv_accountant import PRVAccountant
    from prv_accountant import privacy_random_variables as prv

    variables = [
        prv.GaussianMechanism(noise) if rate == 1 else prv.PoissonSubsampledGaussianMechanism(rate, noise)
        for rate, noise, _ in steps
    ]
    counts = [count for _, _, count in steps]
    accountant = PRVAccountant(variables, max_self_compositions=counts, eps_error=error, delta_error=delta / 1000)
    return float(accountant.compute_epsilon(delta, counts)[2])


def opacus(steps: Steps, delta: float, error: float) -> float:
    from opacus.accountants import PRVAccountant

    accountant = PRVAccountant()
    accountant.history = [(noise, rate, count) for rate, noise, count in steps]
    return float(accountant.get_epsilon(delta, eps_error=error))


PEERS = {"dp-accounting": dp_accounting, "prv-accountant": prv_accountant, "opacus": opacus}


def answer(question: dict[str, Any]) -> float:
    return PEERS[question["peer"]](question["steps"], question["delta"], question["error"])


if __name__ == "__main__":
    answer_once(answer)
