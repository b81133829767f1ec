"""Faults that libraries of this kind have had: each is caught at 99 % confidence, and its honest sibling is not.

An audit calls an honest sibling violated with probability at most one percent; the seeds of noise are the system's, so
siblings are audited at 1 - 1e-6 instead, with four times the runs: fewer could refute no claim at that level.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from discreet import auditing
from discreet.training import Clipping, MixedRecords, Poisson
from discreet.training.gradients import contraction
from discreet.training.verification import verification
from tests.auditing import broken as b

CAUGHT, SURE = 0.99, 1 - 1e-6
STEP = (b.NOTHING[:3], torch.cat([b.LARGE, b.NOTHING[:3]]))
PASS = (torch.zeros(5, 2), torch.cat([b.LARGE, torch.zeros(4, 2)]))
KEYS = ([0.0] * 200, [-0.0] + [0.0] * 200)
ONES = ([1] * 11, [1] * 12)


def largest(gradients: Any) -> float:
    """Of a pass, the step that moved most against the direction of the gradient."""
    return max(float(step[0][0, 0]) for step in gradients)


FAULTS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, Any], dict[str, Any]]] = {
    "clip missing": (
        partial(b.one_step, clipping=b.NoClip(max_grad_norm=1.0)),
        partial(b.one_step, clipping=Clipping(max_grad_norm=1.0)),
        STEP,
        {},
    ),
    "noise halved": (partial(b.one_step, noise=b.Halved()), b.one_step, STEP, {"trials": 250}),
    "batch-size factor lost": (partial(b.one_step, noise=b.Averaged()), b.one_step, STEP, {}),
    "shuffled accounted as Poisson": (
        partial(b.one_pass, sampler=b.NotPoisson),
        partial(b.one_pass, sampler=Poisson),
        PASS,
        {"read": largest, "delta": 0.68},
    ),
    "a key's representation shown": (lambda _: b.FirstSeen(b.histogram()), lambda _: b.histogram(), KEYS, {}),
    "selection on exact errors": (lambda _: b.Naive(b.search()), lambda _: b.search(), ONES, {"delta": 0.0}),
}


class Given:
    """An operation that takes data, as one that is bound to it."""

    def __init__(self, operation: Any, data: Any) -> None:
        self.operation, self.data, self.unit, self.event = operation, data, operation.unit, operation.event

    def release(self, data: Any = None, rng: Any = None) -> Any:
        return self.operation.release(self.data, rng)


def bound(make: Callable[..., Any]) -> Callable[[Any], Any]:
    def made(data: Any) -> Any:
        operation = make(data)
        return operation if isinstance(operation, b.Training) else Given(operation, data)

    return made


def audited(make: Callable[..., Any], sides: tuple[Any, Any], asked: dict[str, Any], confidence: float) -> Any:
    read = {"read": lambda chosen: getattr(chosen, "model", chosen)} if make else {}
    return auditing.audit(bound(make), *sides, **{"trials": 100} | read | asked, confidence=confidence)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(fault: str) -> None:
    make, _, sides, asked = FAULTS[fault]
    assert audited(make, sides, asked, CAUGHT).violated


@pytest.mark.slow(sibling="test_a_fault_is_caught")
@pytest.mark.parametrize("fault", FAULTS)
def test_its_honest_sibling_is_not(fault: str) -> None:
    _, make, sides, asked = FAULTS[fault]
    assert not audited(make, sides, asked | {"trials": 4 * asked.get("trials", 100)}, SURE).violated


def test_a_norm_that_is_under_counted_by_tying_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the run itself, which looks; and by the audit, where nobody does."""

    def make(records: Any) -> Any:
        return b.one_step(records, b.Tied())

    assert not audited(make, STEP, {}, SURE).violated
    monkeypatch.setattr(contraction, "joint_norms", b.Recounted(contraction.joint_norms))
    with pytest.raises(MixedRecords):
        make(STEP[1]).release()
    monkeypatch.setattr(verification.StepVerification, "after_sum", lambda *_: None)
    assert audited(make, STEP, {"trials": 200}, CAUGHT).violated
