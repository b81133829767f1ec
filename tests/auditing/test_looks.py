"""What an audit looks at: mechanisms that no half-line tells apart are found, and honest ones stay so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from discreet import auditing, events, mechanisms
from discreet.release import Release

HALF_LINES = "half-lines"


@dataclass(frozen=True)
class Leaking:
    """Claims Gaussian noise; what it releases shows the record elsewhere than in its size."""

    where: str
    label: ClassVar[str] = "leaking"
    unit: ClassVar[str] = "one record"

    @property
    def event(self) -> events.Event:
        return events.Gaussian(noise_multiplier=2.0)

    def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
        chance = rng.generator
        noise = chance.normal(0, 2.0)
        if self.where == "the label":
            return Release(data + noise, self.event, label=f"run on {data}")
        return Release(self._value(data, noise, chance), self.event)

    def _value(self, data: int, noise: float, chance: np.random.Generator) -> Any:
        match self.where:
            case "the parity":
                return 2 * round(noise * 50) + data
            case "the last bit":
                bits = np.float64(noise).view(np.int64)
                return float((bits & ~np.int64(1) | np.int64(data)).view(np.float64))
            case "one run in fifty":
                return float(data) if chance.random() < 0.02 else data + noise
            case "a product of signs":
                a, b, c, d = chance.normal(size=4)
                return np.array([a, b, c, abs(d) * (1 if data else -1) * np.sign(a * b * c)])
            case "the spread":
                return noise * (1 + 3 * data)
            case "the shape":
                return np.full(1 + data, noise)
        raise ValueError(self.where)


LEAKS = {
    "the label": "label, type and shape",
    "the parity": "a discriminant of bits, sizes and signs",
    "the last bit": "a discriminant of bits, sizes and signs",
    "one run in fifty": "repeated values",
    "a product of signs": "a discriminant of bits, sizes and signs",
    "the spread": "a discriminant of bits, sizes and signs",
    "the shape": "label, type and shape",
}


@pytest.mark.parametrize("where", LEAKS)
def test_what_no_half_line_tells_apart_is_found(where: str) -> None:
    report = auditing.audit(Leaking(where), 0, 1, trials=10_000, delta=1e-5, rng=1)
    assert report.violated
    assert LEAKS[where] in report.verdict


def test_honest_mechanisms_are_looked_at_by_half_lines_and_never_called_violated() -> None:
    """Twenty audits at 99 %: false alarms of all together below 0.2 by the bound; the seeds are fixed."""
    methods = []
    for seed in range(10):
        for mechanism in (
            mechanisms.Laplace(sensitivity=1.0, epsilon=1.0),
            mechanisms.Gaussian(sensitivity=1.0, epsilon=1.0, delta=1e-5),
        ):
            report = auditing.audit(mechanism, 0.0, 1.0, trials=1000, delta=1e-5, rng=seed)
            assert not report.violated
            methods.append(report.method)
    assert sum(method.endswith(HALF_LINES) for method in methods) >= 18
