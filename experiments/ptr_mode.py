"""When does propose-test-release find the mode better than a noisy histogram, and when worse?

One data set has n records: a share at the mode, the rest spread evenly over the other values of a domain of size k.
Three private answers, each at the same epsilon:

    PTR                 ``StableMode``: the exact mode, or nothing; needs delta and a lead of about ln(1/delta)/epsilon
    noisy histogram     ``PermuteAndFlip`` on the k counts: always an answer; needs the list of values, errs as ln(k)
    thresholded         ``StabilityHistogram(...).mode``: no list needed; pays for delta, and compares noisy counts

The lead over k - 1 equal runners-up at which each is right nine times in ten is found by bisection. PTR's lead does not
depend on the domain: about 2 + ln(1/delta)/epsilon records. The histogram's grows as ln(k)/epsilon. So PTR loses on
small domains, by a factor of 8 on two values at delta 1e-6, and wins once ln k exceeds ln(1/delta) or so: at delta 1e-2
from about a thousand values on. Over ℝ there is no list of values to noise at all; there PTR and the thresholded
histogram remain. The latter, too, grows with the logarithm of the number of occupied bins, and the mode itself must
clear a threshold of about ln(1/delta)/epsilon; with few occupied bins and a large mode it is the better one. The figure
is ``docs/images/ptr_mode.png``. ``--quick`` makes fewer runs on small domains, and leaves the page as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.mechanisms import PermuteAndFlip, StabilityHistogram, StableMode
from discreet.random import Rng, seeded
from experiments import _results

EPSILON, WANTED, RUNS, RUNNER_UP = 1.0, 0.9, 200, 20
DOMAINS = (2, 10, 100, 1000, 100_000)

Answer = Callable[[int, int, Rng], bool]


def ptr(delta: float) -> Answer:
    mechanism = StableMode(epsilon=EPSILON, delta=delta)

    def right(domain: int, lead: int, rng: Rng) -> bool:
        values = np.repeat(np.arange(2), [RUNNER_UP + lead, RUNNER_UP])  # the other values cannot matter
        return bool(mechanism.release(values, rng).value == 0)

    return right


def histogram(domain: int, lead: int, rng: Rng) -> bool:
    counts = np.full(domain, RUNNER_UP)
    counts[0] += lead
    return PermuteAndFlip(sensitivity=1.0, epsilon=EPSILON, monotone=True).release(counts, rng).value == 0


def thresholded(delta: float) -> Answer:
    mechanism = StabilityHistogram(epsilon=EPSILON, delta=delta)

    def right(domain: int, lead: int, rng: Rng) -> bool:
        values = np.repeat(np.arange(domain), [RUNNER_UP + lead] + [RUNNER_UP] * (domain - 1))
        return bool(mechanism.mode(values, rng).value == 0)

    return right


def lead_needed(answer: Answer, domain: int, runs: int = RUNS) -> int:
    """The smallest lead at which the answer is right in ``WANTED`` of so many seeded runs, by bisection."""
    low, high = 0, 200
    while high - low > 1:
        lead = (low + high) // 2
        rng = seeded(lead)
        right = sum(answer(domain, lead, rng) for _ in range(runs)) / runs
        low, high = (low, lead) if right >= WANTED else (lead, high)
    return high


ANSWERS: dict[str, Answer] = {
    "PTR, δ = 1e-6": ptr(1e-6),
    "PTR, δ = 1e-2": ptr(1e-2),
    "noisy histogram": histogram,
    "over ℝ, thresholded, δ = 1e-6": thresholded(1e-6),
}


def leads(domains: tuple[int, ...], runs: int) -> dict[str, dict[int, int]]:
    """For each answer and domain; a hundred thousand occupied bins are left out, for time."""
    return {
        name: {k: lead_needed(answer, k, runs) for k in domains if not (name.startswith("over") and k > 1000)}
        for name, answer in ANSWERS.items()
    }


def plot(found: dict[str, dict[int, int]]) -> None:
    with _results.figure("ptr_mode", 1, 6.0) as (axis,):
        for name, needed in found.items():
            axis.plot(list(needed), list(needed.values()), "o-", label=name)
        axis.set(xscale="log", xlabel="values (occupied bins over ℝ)", ylabel="records by which the mode must lead")
        axis.legend(fontsize=7, frameon=False)


def main(quick: bool = False) -> None:
    domains = DOMAINS[:3] if quick else DOMAINS
    found = leads(domains, 40 if quick else RUNS)
    header = ["right in 9 of 10 at a lead of", *(f"k = {k:,}" for k in domains)]
    rows = [[name, *(str(needed.get(k, "")) for k in domains)] for name, needed in found.items()]
    _results.show(f"The mode at ε = {EPSILON:g}, runner-up {RUNNER_UP}", header, rows)
    _results.save("ptr_mode", found)
    _results.write_table("ptr_mode", header, rows)
    plot(found)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
