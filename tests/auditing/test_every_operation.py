"""Every operation of the library is audited on neighbours at its full sensitivity, and no claim is refuted.

A new operation is audited by being listed in ``tests/operations``; one whose neighbours are too near to each other to
tell anything fails here by name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from discreet import events
from discreet.release import Release
from tests.auditing.audited import audited, reach
from tests.operations.contract import Case, Worst, every_case
from tests.test_operations import TOY, Toy

CASES = every_case()
FAMILY = 1e-3  # the probability that any of all true claims is called violated in a run of these tests
ALARM = FAMILY / len(CASES)
SAMPLE = [case for case in CASES if case.worst.trials >= Worst().trials][::8]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_operation_has_neighbours_at_its_full_sensitivity(case: Case) -> None:
    assert reach(case) >= case.worst.reach, f"Give the case {case.name!r} worst=Worst(data, neighbour)."


@pytest.mark.slow(sibling="test_some_claims_stand")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_claim_stands(case: Case) -> None:
    """All together call a true claim violated with probability at most FAMILY (Bonferroni)."""
    assert not audited(case, ALARM).violated


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_some_claims_stand(case: Case) -> None:
    assert not audited(case, ALARM, trials=100).violated


# --- what the tests above would find -------------------------------------------------------------------------------


class Third(Toy):
    """Claims a third of what it costs."""

    @property
    def event(self) -> events.Event:
        return events.DiscreteLaplace(scale=3.0, sensitivity=1)


class Tells(Toy):
    """Costs nothing that it says, and tells in words."""

    def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
        return Release("many" if len(data) > 2 else "few", self.event)


def test_a_claim_of_a_third_is_refuted_at_the_family_wise_level() -> None:
    """A true epsilon of 1 is told from 1/3 by the trials that every quick operation has."""
    assert audited(replace(TOY, make=Third), ALARM, rng=1).violated
    assert not audited(TOY, ALARM, rng=1).violated


def test_what_is_told_in_words_is_refuted_by_the_fewest_trials() -> None:
    assert audited(replace(TOY, make=Tells, worst=Worst(trials=100)), ALARM).violated


def test_neighbours_that_hardly_differ_are_found() -> None:
    near = replace(TOY, worst=Worst([1, 2, 3], [3, 2, 1]))
    assert reach(near) == 0
    assert reach(TOY) == 1
