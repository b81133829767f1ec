"""From what ``make_private`` was asked for to a plan: names become samplers, and two of three figures the third."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal

from discreet import accounting
from discreet.errors import number, positive, whole
from discreet.release import ONE_RECORD, unit_name
from discreet.training.gradients import Clipping
from discreet.training.noise import Independent, Noise
from discreet.training.noise.comparison import Auto, best_of
from discreet.training.plan import Plan, Schedule
from discreet.training.sampling import (
    BallsInBins,
    FixedOrder,
    FixedSize,
    KeptBins,
    Poisson,
    Sampler,
    Shuffled,
    TruncatedPoisson,
)
from discreet.training.sampling.participation import Participation

__all__ = ["SAMPLERS", "least_noise", "plan_for"]

SAMPLERS: Mapping[str, type[Sampler]] = {
    "poisson": Poisson,
    "truncated-poisson": TruncatedPoisson,
    "fixed-size": FixedSize,
    "balls-in-bins": BallsInBins,
    "shuffled": Shuffled,
    "kept-bins": KeptBins,
    "fixed-order": FixedOrder,
}
"""The samplers that a name is enough for."""


def _sampler(
    sampler: str | Sampler | None, records: int, batch_size: int, dataset_size: int | None, noise: object
) -> Sampler:
    size = records if dataset_size is None else whole("dataset_size", dataset_size, low=1)
    if sampler is None:
        return (noise if isinstance(noise, Noise) else Independent()).sampler(batch_size, size)
    if isinstance(sampler, Sampler):
        found = sampler
        if dataset_size is not None and dataset_size != found.dataset_size:
            raise ValueError(
                f"dataset_size is {dataset_size}, but the sampler has {found.dataset_size}: say it in one place."
            )
    elif sampler in SAMPLERS:
        found = SAMPLERS[sampler](batch_size=batch_size, dataset_size=size)
    else:
        raise ValueError(f"sampler is {sampler!r}, but must be one of {', '.join(map(repr, SAMPLERS))}, or a Sampler.")
    return found


def _best(
    auto: Auto,
    sampler: str | Sampler | None,
    records: int,
    batch_size: int,
    dataset_size: int | None,
    clipping: Clipping,
    epsilon: float | None,
    delta: float | None,
    epochs: float | None,
) -> tuple[Noise, Sampler]:
    """The noise that suits a run, with its sampler."""
    if sampler is not None or clipping.adaptive is not None:
        raise ValueError(
            "noise is 'auto', which chooses the sampler too and no adaptive clip norm: leave them out, or name a noise."
        )
    if epsilon is None or delta is None or epochs is None:
        raise ValueError("noise is 'auto', which compares noises at one price: give epsilon, delta and epochs.")
    like = _sampler(None, records, batch_size, dataset_size, None)
    steps = math.ceil(positive("epochs", epochs) * like.steps_per_pass)
    found = best_of(auto, like, steps, clipping.max_grad_norm, positive("epsilon", epsilon), delta)
    return found.noise, found.sampler


def _unit(sampler: Sampler, said: str | None) -> str:
    """Whom the run protects: what the sampler bounds, or a record, which the caller may say is a whole unit."""
    if said is None or said == sampler.unit:
        return sampler.unit
    if sampler.unit != ONE_RECORD:
        raise ValueError(f"unit is {said!r}, but the sampler bounds {str(sampler.unit)!r}: say it in one place.")
    return unit_name(said)


def _clipping(clipping: Clipping | str, max_grad_norm: float | None) -> Clipping:
    if isinstance(clipping, Clipping):
        if max_grad_norm is not None and max_grad_norm != clipping.max_grad_norm:
            raise ValueError(
                f"max_grad_norm is {max_grad_norm:g}, but the Clipping has {clipping.max_grad_norm:g}: say it in "
                "one place."
            )
        return clipping
    norm = 1.0 if max_grad_norm is None else max_grad_norm
    if clipping == "automatic":
        return Clipping(max_grad_norm=norm, factor="automatic")
    return Clipping(max_grad_norm=norm, scope=clipping)  # type: ignore[arg-type]


def plan_for(
    records: int,
    batch_size: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    epochs: float | None = None,
    noise_multiplier: float | None = None,
    max_grad_norm: float | None = None,
    clipping: Clipping | Literal["flat", "per-layer", "automatic"] = "flat",
    sampler: str | Sampler | None = None,
    dataset_size: int | None = None,
    noise: Noise | Auto | Literal["auto"] | None = None,
    noise_schedule: Schedule | None = None,
    clip_schedule: Schedule | None = None,
    unit: str | None = None,
    canaries: int = 0,
) -> Plan:
    """The plan that these arguments of ``make_private`` make for a loader of so many records; ``canaries`` of an audit
    count as records, wherever their number is said.

    >>> plan_for(1000, 50, epochs=2, noise_multiplier=1.0).steps
    40
    """
    clip, records = _clipping(clipping, max_grad_norm), records + canaries
    dataset_size = dataset_size if dataset_size is None or not canaries else dataset_size + canaries
    sampler = sampler.with_canaries(canaries) if canaries and isinstance(sampler, Sampler) else sampler
    if noise == "auto" or isinstance(noise, Auto):
        auto = noise if isinstance(noise, Auto) else Auto()
        noise, sampler = _best(auto, sampler, records, batch_size, dataset_size, clip, epsilon, delta, epochs)
    drawn = _sampler(sampler, records, batch_size, dataset_size, noise)
    _two_of_three(epsilon, delta, epochs, noise_multiplier)
    if not isinstance(noise, Noise | None):
        raise ValueError(
            f"noise is a {type(noise).__name__}, but must be a Noise, such as training.noise.Independent()."
        )
    whose = _unit(drawn, unit)
    # what runs is what was priced, and one thing for all pieces of a batch, whatever a schedule looks at
    once, clips = noise_schedule and cache(noise_schedule), clip_schedule and cache(clip_schedule)
    asked = None if epsilon is None or delta is None else (epsilon, delta)

    def made(z: float, steps: int) -> Plan:
        return Plan(drawn, clip, z, steps, noise or Independent(), once, clips, whose, asked)

    plan = _complete(made, drawn, epsilon, delta, epochs, noise_multiplier)
    plan.event  # noqa: B018 - what has no price is refused here, whether a book will ask for it or not
    plan.clip_factor(0)  # a schedule that gives no norm at all fails here, not after the charge
    if plan.clipping.adaptive is not None:
        for step in range(plan.steps):  # the noise must leave room for the count at every step
            plan.sum_multiplier(step)
    return plan


def _complete(
    made: Callable[[float, int], Plan],
    sampler: Sampler,
    epsilon: float | None,
    delta: float | None,
    epochs: float | None,
    noise_multiplier: float | None,
) -> Plan:
    """The plan that two of three things decide: the target (epsilon, delta), the length, the noise."""
    if epochs is None:
        assert epsilon is not None
        assert delta is not None
        z = positive("noise_multiplier", noise_multiplier)
        return made(z, _most_steps(lambda steps: made(z, steps), epsilon, delta))
    length = number("epochs", epochs, low=0, high=math.inf, open_low=True, open_high=True)
    steps = math.ceil(length * sampler.steps_per_pass)
    if noise_multiplier is not None:
        return made(positive("noise_multiplier", noise_multiplier), steps)
    assert epsilon is not None
    assert delta is not None
    return made(least_noise(lambda z: made(z, steps), sampler.participation, epsilon, delta), steps)


def _two_of_three(
    epsilon: float | None, delta: float | None, epochs: float | None, noise_multiplier: float | None
) -> None:
    asked = {"epsilon": epsilon, "epochs": epochs, "noise_multiplier": noise_multiplier}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) != 2:
        raise ValueError(
            f"{' and '.join(given) or 'nothing'} given, but exactly two of epsilon, epochs and noise_multiplier "
            "are needed: the third follows from them."
        )
    if (epsilon is None) != (delta is None):
        raise ValueError("epsilon and delta belong together: give both or neither.")


def least_noise(plan: Callable[[float], Plan], taking_part: Participation, epsilon: float, delta: float) -> float:
    """The smallest noise multiplier whose price stays within the target."""
    return accounting.calibrate(
        lambda z: plan(z).event,
        epsilon=epsilon,
        delta=delta,
        adjacency=taking_part.adjacency,
        start=float(taking_part.movement),
    )


def _most_steps(plan: Callable[[int], Plan], epsilon: float, delta: float) -> int:
    """The most steps whose price stays within the target."""

    def fits(steps: int) -> bool:
        found = plan(steps)
        return accounting.epsilon(found.event, delta, adjacency=found.adjacency) <= epsilon

    if not fits(1):
        raise ValueError(
            f"noise_multiplier is too small for epsilon {epsilon:g} at delta {delta:g}: not one step fits."
        )
    low, high = 1, 2
    while high < 1 << 40 and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
