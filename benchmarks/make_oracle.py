"""Writes tests/accounting/oracle.json: what others prove about a few hundred random events.

    python -m benchmarks.make_oracle

Bounds come from dp-accounting and prv-accountant (in their own environment, see ``peers``) and from closed forms in
60-digit arithmetic (``exact``). The file is frozen so that the tests need none of them.
"""

from __future__ import annotations

import json
import math
import random
import time
from typing import Any

from benchmarks import exact, peers
from discreet import events as ev

SEED = 20_240_613
ORACLE = peers.ROOT / "tests/accounting/oracle.json"

Question = tuple[ev.Event, float, str]

# The rows every accountant of DP-SGD is judged by: rate, noise multiplier, steps, delta.
TABLE = (
    (0.01, 4, 10_000, 1e-5),
    (256 / 60_000, 1.1, 14_062, 1e-5),
    (0.001, 0.8, 100_000, 1e-6),
    (0.02, 0.6, 5_000, 1e-5),
    (1, 30, 1_000, 1e-6),
    (1e-4, 0.7, 1_000_000, 1e-8),
    (0.01, 4, 10_000, 1e-18),
)


def spread(rng: random.Random, low: float, high: float) -> float:
    """Log-uniform, to three digits: readable, and each scale as likely as the next."""
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")


def times(rng: random.Random, high: int) -> int:
    return round(spread(rng, 1, high)) if rng.random() < 0.8 else 1


def gaussian(rng: random.Random) -> ev.Event:
    return ev.Gaussian(noise_multiplier=spread(rng, 0.3, 60))


def laplace(rng: random.Random) -> ev.Event:
    return ev.Laplace(noise_multiplier=spread(rng, 0.2, 60))


def sampled_gaussian(rng: random.Random) -> ev.Event:
    return ev.PoissonSampled(rate=spread(rng, 1e-4, 0.9), event=ev.Gaussian(noise_multiplier=spread(rng, 0.5, 12)))


def sampled_laplace(rng: random.Random) -> ev.Event:
    return ev.PoissonSampled(rate=spread(rng, 1e-3, 0.9), event=ev.Laplace(noise_multiplier=spread(rng, 0.3, 12)))


def discrete_laplace(rng: random.Random) -> ev.Event:
    return ev.DiscreteLaplace(scale=spread(rng, 0.4, 25), sensitivity=rng.choice((1, 1, 2, 3)))


def discrete_gaussian(rng: random.Random) -> ev.Event:
    return ev.DiscreteGaussian(sigma=spread(rng, 0.4, 25), sensitivity=rng.choice((1, 1, 2, 3)))


def bare(rng: random.Random) -> ev.Event:
    epsilon = spread(rng, 0.01, 3)
    if rng.random() < 0.5:
        return ev.PureDP(epsilon=epsilon)
    return ev.ApproxDP(epsilon=epsilon, delta=spread(rng, 1e-12, 1e-9))


def response(rng: random.Random) -> ev.Event:
    return ev.RandomizedResponse(epsilon=spread(rng, 0.05, 3), categories=rng.choice((2, 2, 3, 10)))


def mixed(rng: random.Random) -> ev.Event:
    makers = rng.sample((gaussian, laplace, sampled_gaussian, sampled_laplace), k=rng.choice((2, 2, 3)))
    return sum(make(rng) * times(rng, 100) for make in (*makers, sampled_gaussian))  # type: ignore[return-value]


def questions() -> list[Question]:
    """A few hundred events with a delta each; every draw comes from one seed."""
    rng = random.Random(SEED)
    plan = [
        (gaussian, 45, 1_000, 1e-300),
        (laplace, 35, 1_000, 1e-10),
        (sampled_gaussian, 90, 100_000, 1e-20),
        (sampled_laplace, 30, 10_000, 1e-10),
        (discrete_laplace, 25, 500, 1e-10),
        (discrete_gaussian, 25, 500, 1e-10),
        (bare, 30, 200, 1e-14),
        (mixed, 40, 1, 1e-10),
    ]
    drawn = [
        (ev.PoissonSampled(rate=q, event=ev.Gaussian(noise_multiplier=s)) * t, delta, "add-remove")
        for q, s, t, delta in TABLE
    ]
    drawn += [
        (make(rng) * times(rng, most), spread(rng, smallest, 0.01), "add-remove")
        for make, number, most, smallest in plan
        for _ in range(number)
    ]
    drawn += [(gaussian(rng) * times(rng, 100), spread(rng, 1e-30, 0.01), "replace") for _ in range(10)]
    drawn += [(response(rng) * times(rng, 60), spread(rng, 1e-14, 0.01), "replace") for _ in range(15)]
    return drawn


def record(question: Question, bounds: list[dict[str, Any]]) -> dict[str, Any] | None:
    event, delta, adjacency = question
    found = [bound for bound in bounds if all(math.isfinite(bound.get(side, 0)) for side in ("lower", "upper"))]
    if (value := exact.epsilon(event, delta, adjacency)) is not None:
        found.append({"source": "exact", "value": value if math.isfinite(value) else "inf"})
    return {"event": event.to_dict(), "delta": delta, "adjacency": adjacency, "bounds": found} if found else None


def main() -> None:
    drawn, start = questions(), time.monotonic()
    asked = [
        {"event": event.to_dict(), "delta": delta} for event, delta, adjacency in drawn if adjacency == "add-remove"
    ]
    answers = peers.stream(peers.python("accounting"), peers.ROOT / "benchmarks/peers_oracle.py", asked)
    records = []
    for number, question in enumerate(drawn, 1):
        bounds = next(answers) if question[2] == "add-remove" else []
        if kept := record(question, bounds):
            records.append(kept)
        print(
            f"\r{number}/{len(drawn)} events, {len(records)} records, {time.monotonic() - start:.0f} s",
            end="",
            flush=True,
        )
    lines = ",\n".join(json.dumps(item, sort_keys=True) for item in records)
    ORACLE.write_text(f'{{"seed": {SEED}, "made by": "python -m benchmarks.make_oracle", "records": [\n{lines}\n]}}\n')
    print(f"\nWrote {ORACLE.relative_to(peers.ROOT)}.")


if __name__ == "__main__":
    main()
