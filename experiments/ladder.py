"""The composition ladder: five accounts of the same ten thousand steps of private training.

Noise multiplier 4, sampling rate 1 %, 10,000 steps, delta 1e-5. Lectures show this ladder with figures from a slide;
some of them do not follow from the theorem they name, so each stands beside what the theorem gives. Only the slide's
figures are typed in: the library computes the others. The figure, ``docs/images/ladder.png``, has the attacker's
trade-off curve beside. Quick or not, the whole takes seconds.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

import discreet as dp
from discreet.accounting.gaussian import gaussian_epsilon
from discreet.accounting.rdp import rdp_curve
from experiments import _results

SIGMA, RATE, STEPS, DELTA = 4.0, 0.01, 10_000, 1e-5
STEP_EPSILON = 1.2  # the slide's price of one step

ev = dp.events
TRAINING = ev.PoissonSampled(rate=RATE, event=ev.Gaussian(noise_multiplier=SIGMA)) * STEPS


@dataclass(frozen=True)
class Rung:
    """One account: what the slide says, and the guarantee that its theorem gives."""

    name: str
    slide: str
    epsilon: float
    delta: float
    note: str


def classic_epsilon(sigma: float, delta: float) -> float:
    """What the classic calibration would charge for one step: a theorem for epsilon below 1, an error above."""
    return math.sqrt(2 * math.log(1.25 / delta)) / sigma


def old_conversion(event: dp.Event, delta: float) -> float:
    """Epsilon from Rényi divergences as the moments accountant first did it: r(α) + ln(1/δ)/(α-1)."""
    orders = range(2, 257)
    return min(r + math.log(1 / delta) / (order - 1) for order, r in zip(orders, rdp_curve(event, orders), strict=True))


def ladder() -> list[Rung]:
    """The five rungs, from adding epsilons to composing distributions.

    The first three treat a step as pure but for a small failure; the failures of all steps add up beside.
    """
    step = ev.PureDP(epsilon=STEP_EPSILON)
    sampled = ev.PoissonSampled(rate=RATE, event=step)
    failures, sampled_failures = STEPS * DELTA, STEPS * RATE * DELTA
    return [
        Rung(
            "naive: add up",
            "12 000",
            dp.epsilon(step * STEPS, delta=0.0, accountant="basic"),
            failures,
            "epsilons add, deltas add",
        ),
        Rung(
            "strong composition",
            "360",
            dp.epsilon(step * STEPS, delta=DELTA, accountant="advanced"),
            failures + DELTA,
            "the slide's short form needs steps < 1/ε², which fails here",
        ),
        Rung(
            "with sampling",
            "10",
            dp.epsilon(sampled * STEPS, delta=DELTA, accountant="advanced"),
            sampled_failures + DELTA,
            "each step is amplified first; the slide drops a term",
        ),
        Rung(
            "moments accountant",
            "1.25",
            dp.epsilon(TRAINING, delta=DELTA, accountant="rdp"),
            DELTA,
            f"converted tightly; {old_conversion(TRAINING, DELTA):.2f} as it was done at first",
        ),
        Rung(
            "numerical composition",
            "-",
            dp.epsilon(TRAINING, delta=DELTA),
            DELTA,
            "the distribution of the loss itself, certified",
        ),
    ]


HEADER = ["account", "slide's ε", "ε", "at δ", "why"]


def cells(rung: Rung) -> list[str]:
    name, slide, epsilon, delta, note = astuple(rung)
    return [name, slide, f"{epsilon:,.5g}", f"{delta:.3g}", note]


def plot(rungs: list[Rung], guarantee: dp.Guarantee) -> None:
    with _results.figure("ladder", 2, 9.0) as (left, right):
        height = range(len(rungs))
        left.barh(height, [rung.epsilon for rung in rungs], color="#1f5fa8", label="its theorem")
        told = [(at, float(rung.slide.replace(" ", ""))) for at, rung in enumerate(rungs) if rung.slide != "-"]
        left.plot([value for _, value in told], [at for at, _ in told], "D", color="#c2571a", label="the slide")
        left.set(xscale="log", xlabel="ε", yticks=height, yticklabels=[rung.name for rung in rungs])
        left.invert_yaxis()
        left.legend(fontsize=7, frameon=False)
        guarantee.plot(ax=right)


def main(quick: bool = False) -> None:
    del quick  # the whole takes seconds
    rungs, guarantee = ladder(), dp.guarantee(TRAINING)
    title = f"{STEPS:,} steps at noise multiplier {SIGMA:g}, sampling rate {RATE:.0%} (add-remove)"
    _results.show(title, HEADER, [cells(rung) for rung in rungs])
    classic, exact = classic_epsilon(SIGMA, DELTA), gaussian_epsilon(noise_multiplier=SIGMA, delta=DELTA)
    print(
        f"One step: the classic calibration charges ε = {classic:.4g}, but its theorem stops at ε = 1; "
        f"the exact value is {exact:.4g}."
    )
    found = guarantee.tpr_at(0.01)
    print(f"An attacker who accuses one outsider in a hundred finds at most {found:.2%} of the members.")
    _results.save("ladder", {"rungs": [astuple(rung) for rung in rungs], "exact step": exact, "found": found})
    _results.write_table("ladder", HEADER, [cells(rung) for rung in rungs])
    plot(rungs, guarantee)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
