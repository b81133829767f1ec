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
clear a threshold of about ln(1/delta)/epsilon; with few occupied bins and a large mode it is the better one. The table
goes to the screen, the figures to ``build/ptr_mode.json``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from discreet.mechanisms import PermuteAndFlip, StabilityHistogram, StableMode
from discreet.random import Rng, seeded

BUILD = Path(__file__).resolve().parent.parent / "build"
EPSILON, WANTED, RUNS, RUNNER_UP = 1.0, 0.9, 200, 20

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


def lead_needed(answer: Answer, domain: int) -> int:
    """The smallest lead at which the answer is right in ``WANTED`` of ``RUNS`` seeded runs, by bisection."""
    low, high = 0, 200
    while high - low > 1:
        lead = (low + high) // 2
        rng = seeded(lead)
        right = sum(answer(domain, lead, rng) for _ in range(RUNS)) / RUNS
        low, high = (low, lead) if right >= WANTED else (lead, high)
    return high


def main() -> None:
    answers: dict[str, Answer] = {
        "PTR, delta 1e-6": ptr(1e-6),
        "PTR, delta 1e-2": ptr(1e-2),
        "noisy histogram": histogram,
        "thresholded, delta 1e-6": thresholded(1e-6),
    }
    domains = (2, 10, 100, 1000, 100_000)
    found: dict[str, dict[int, int]] = {}
    for name, answer in answers.items():
        found[name] = {k: lead_needed(answer, k) for k in domains if not (name.startswith("thres") and k > 1000)}
    table = Table(
        "right in 9 of 10 at a lead of",
        *(f"k = {k:,}" for k in domains),
        title=f"The mode at epsilon {EPSILON:g}: records by which it must lead, runner-up {RUNNER_UP}",
    )
    for name, leads in found.items():
        table.add_row(name, *(str(leads.get(k, "-")) for k in domains))
    console = Console()
    console.print(table)
    BUILD.mkdir(exist_ok=True)
    (BUILD / "ptr_mode.json").write_text(json.dumps(found, indent=1))
    console.print("Wrote build/ptr_mode.json.")


if __name__ == "__main__":
    main()
