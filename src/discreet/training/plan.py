"""The plan of a private run: what will be done, what it costs, and the refusal of one step more."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property

from discreet.adjacency import Adjacency
from discreet.errors import BudgetExceeded, positive, whole
from discreet.events import Event
from discreet.release import ONE_RECORD
from discreet.training.gradients import Clipping
from discreet.training.noise import Independent, Noise
from discreet.training.sampling import Sampler
from discreet.training.sampling.participation import Participation

__all__ = ["Plan", "Schedule"]

Schedule = Callable[[int], float]


@dataclass(frozen=True)
class Plan:
    """Public facts of a run: an event and a unit, which a book is charged with before the first record is read.

    ``noise_multiplier`` is relative to one clip norm; schedules multiply it and the clip norm.
    """

    sampler: Sampler
    clipping: Clipping
    noise_multiplier: float
    steps: int
    noise: Noise = field(default_factory=Independent)
    noise_schedule: Schedule | None = None
    clip_schedule: Schedule | None = None
    unit: str = ONE_RECORD
    asked: tuple[float, float] | None = field(default=None, compare=False, repr=False)  # for what a book records

    def __post_init__(self) -> None:
        whole("steps", self.steps)
        if self.clipping.adaptive is not None and self.noise.correlated:
            raise ValueError(
                f"clipping is adaptive, but the noise is {type(self.noise).__name__}, whose steps are paid for "
                "together: the count that the clip norm follows would not be in the price. Use Independent()."
            )

    def multiplier(self, step: int) -> float:
        """The noise multiplier of a step."""
        schedule = self.noise_schedule
        return (
            self.noise_multiplier
            if schedule is None
            else self.noise_multiplier * positive("noise_schedule", schedule(step))
        )

    def sum_multiplier(self, step: int) -> float:
        """The part of it that goes on the sum: all, unless a count is released beside it."""
        total, adaptive = self.multiplier(step), self.clipping.adaptive
        return total if adaptive is None else adaptive.sum_multiplier(total, self.sampler.expected)

    def clip_factor(self, step: int) -> float:
        """What the clip norm is multiplied by at a step."""
        return 1.0 if self.clip_schedule is None else positive("clip_schedule", self.clip_schedule(step))

    def price(self, steps: int) -> Event:
        """The price of the first ``steps`` steps; of correlated noise, all at once with the first."""
        if self.noise.correlated and steps:
            steps = self.steps
        return self.noise.event(self.participation, [self.multiplier(step) for step in range(steps)])

    @cached_property
    def event(self) -> Event:
        """The price of the whole plan."""
        return self.price(self.steps)

    @cached_property
    def identity(self) -> str:
        """What a checkpoint must share to go on. The price alone does not do: passes of 2 and of 20 steps, or a noise
        schedule and its reverse, may cost the same, and half of one and half of another more."""
        multipliers = [self.multiplier(step) for step in range(self.steps if self.noise_schedule else 1)]
        parts = [self.steps, *map(_named, (self.participation, self.noise)), multipliers, self.event.to_json()]
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()

    @property
    def facts(self) -> dict[str, object]:
        """What must be the same wherever parts of the plan are carried out, by name."""
        return {
            "the plan (noise, epochs, batch_size, sampler)": (self.identity, repr(self.sampler)),
            "clipping": repr(self.clipping),
        }

    @property
    def noise_vectors(self) -> int:
        """How many vectors of the model's size the noise keeps from step to step."""
        return self.noise.vectors(self.participation, self.steps)

    @property
    def participation(self) -> Participation:
        """How records take part in steps."""
        return self.sampler.participation

    @property
    def adjacency(self) -> Adjacency:
        """What a neighbour is."""
        return self.participation.adjacency

    def check(self, done: int) -> None:
        """Refuse the step after the last."""
        if done >= self.steps:
            raise BudgetExceeded(
                f"Step {done + 1} would exceed the plan of {self.steps} steps. Nothing was released. Plan "
                "more epochs from the start: stopping and planning again costs both plans."
            )


def _named(part: object) -> str:
    """A part with its parameters, where it tells them as a value does."""
    return repr(part) if is_dataclass(part) else type(part).__qualname__
