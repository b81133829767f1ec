"""SmallDB: the score's sensitivity, the theorem before and after, the sizes at which it stops."""

import itertools
import math

import numpy as np
import pytest

from discreet.auditing import ReplayError, epsilon_lower_bound, replay
from discreet.mechanisms import Exponential
from discreet.random import seeded
from discreet.release import Release
from discreet.synthesis import SmallDB
from discreet.synthesis.linear_queries import UNIT
from discreet.synthesis.small_db import MOST_CANDIDATES, records_for
from discreet.workloads import AllRanges, Explicit, Identity, Prefix

THIRDS = Explicit([[0.0, 1 / 3, 1.0], [1.0, 0.0, 2 / 3]])


def scored(workload, histogram, records):
    """The score by its formula, one candidate after another."""
    rows = np.array([workload.row(i) for i in range(workload.queries)])
    x = np.repeat(np.arange(workload.size), histogram)
    return [
        -max(abs(sum(row[r] - row[list(y)].mean() for r in x)) for row in rows)
        for y in itertools.combinations_with_replacement(range(workload.size), records)
    ]


@pytest.mark.parametrize("workload", [Prefix(3), AllRanges(3), THIRDS], ids=["prefix", "ranges", "thirds"])
def test_scores_are_the_formula(workload):
    small = SmallDB(workload=workload, alpha=0.6, epsilon=1.0)
    found = small.scores([4, 1, 2])[::-1] / (small.records * UNIT)  # its order is the other way round
    np.testing.assert_allclose(found.astype(float), scored(workload, [4, 1, 2], small.records), atol=1e-7)


@pytest.mark.parametrize("workload", [Prefix(3), Identity(3), THIRDS], ids=["prefix", "cells", "thirds"])
@pytest.mark.parametrize("start", [[0, 0, 0], [5, 0, 2], [2**40, 3, 2**61]])
def test_one_record_moves_every_score_by_at_most_one(workload, start):
    """In whole numbers, so exactly: added, and replaced; and a record at the end of the range moves one by all of 1."""
    small = SmallDB(workload=workload, alpha=0.6, epsilon=1.0)
    most = 0
    for cell, other in itertools.product(range(3), repeat=2):
        one, two = (np.array(start, object) for _ in range(2))
        one[cell] += 1
        two[other] += 1
        base = small.scores(np.array(start, object)).astype(object)
        added, replaced = small.scores(one).astype(object), small.scores(two).astype(object)
        most = max(most, abs(added - base).max(), abs(added - replaced).max())
    assert most <= small.records * UNIT
    assert most == small.records * UNIT or workload is THIRDS


@pytest.mark.parametrize("queries", [1, 2, 3, 1000])
@pytest.mark.parametrize("alpha", [0.03, 0.3, 0.9])
def test_so_many_records_suffice(queries, alpha):
    """Strictly below one by Hoeffding's bound and the union bound; one record fewer does not reach that."""
    m = records_for(queries, alpha)
    assert 2 * queries * math.exp(-2 * m * alpha**2) < 1
    assert m == 1 or 2 * queries * math.exp(-2 * (m - 1) * alpha**2) >= 1


def test_the_slide_s_number_of_records_would_fail_for_two_queries():
    """ln|Q|/α² records: with two queries at α = 0.9 none at all, and no data set of no records is good."""
    assert math.floor(math.log(2) / 0.9**2) == 0
    assert records_for(2, 0.9) == 1


def test_the_measured_error_is_within_the_theorem():
    """At 90 % confidence, 60 runs: more than 18 beyond would happen with probability below 1e-5; half the bound
    is exceeded, so the theorem is not empty.
    """
    workload, histogram = AllRanges(5), np.array([3, 40, 2, 4, 1])
    small = SmallDB(workload=workload, alpha=0.45, epsilon=1.0, n=50)
    truth, rng = workload.apply(histogram) / 50, seeded(3)
    errors = np.array([np.abs(np.asarray(small.release(histogram, rng).value) / 50 - truth).max() for _ in range(60)])
    assert (errors > small.error(0.9)).sum() <= 18
    assert errors.max() > small.error(0.9) / 10
    assert small.release(histogram, rng=1).error == small.error() * 50


def test_the_theorem_needs_a_declared_n():
    small = SmallDB(workload=Prefix(3), alpha=0.5, epsilon=1.0)
    assert small.stated_error is None
    with pytest.raises(ValueError, match="n is not declared"):
        small.error()
    assert small.error(n=1000) < small.error(n=100)
    assert small.release([1, 2, 3], rng=1).value.estimate.sum() == pytest.approx(1)
    bound = 0.5 + 2 / (1.0 * 100) * math.log(small.candidates / 0.05)
    assert small.error(0.95, n=100) == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"workload": Prefix(64), "alpha": 0.1}, r"There are 10\^66\.3 data sets of 243 records over 64"),
        ({"workload": Prefix(64), "alpha": 1e-9}, r"10\^\d+\.\d data sets of [0-9,]+ records"),
        ({"workload": Identity(40), "alpha": 0.6}, "There are 53,524,680 data sets of 7 records over 40 cells"),
        ({"workload": Identity(2), "alpha": 0.0008}, "There are 1,083,044 data sets of 1,083,043 records"),
        ({"workload": Explicit(np.ones((1, 20_000))), "alpha": 1}, "at most 6,710 of them are enumerated"),
        ({"workload": Prefix(3), "alpha": 0.0}, "alpha is 0"),
        ({"workload": Prefix(3), "alpha": 0.5, "n": 0}, "n is 0"),
        ({"workload": Prefix(3), "alpha": 0.5, "adjacency": "near"}, "adjacency is 'near'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_size(facts, message):
    with pytest.raises(ValueError, match=message):
        SmallDB(epsilon=1.0, **facts)


def test_the_largest_space_that_is_allowed_is_enumerated():
    """Every candidate once: the number of them is the binomial coefficient."""
    small = SmallDB(workload=Identity(20), alpha=0.68, epsilon=1.0)
    assert small.candidates == math.comb(23, 4) <= MOST_CANDIDATES
    assert len(small.scores(np.zeros(20, int))) == small.candidates


# --- evidence --------------------------------------------------------------------------------------------------------

ONE, TWO = [6, 0, 0], [6, 0, 1]


def audited(run, trials=2000):
    """What the commonest answers rule out about epsilon, at a false alarm of 1e-6."""
    rng = seeded(9)
    found = [[tuple(run(data, rng)) for _ in range(trials)] for data in (ONE, TWO)]
    answers = sorted(set(found[0]) | set(found[1]))
    return max(
        epsilon_lower_bound(tuple(side.count(answer) for side in found), trials, alarm=1e-6 / len(answers))
        for answer in answers
    )


class Unscaled(SmallDB):
    """Broken: the score is not divided by the number of records, so that its sensitivity is m, not 1."""

    def draw(self, data, rng):
        chooser = Exponential(sensitivity=float(UNIT), epsilon=self.mechanism.epsilon)
        chosen = chooser.draw(self.scores(data), rng)
        return next(itertools.islice(self._bars(), chosen, None))


def test_an_audit_stays_below_the_claim_and_catches_the_broken_one():
    small = SmallDB(workload=Prefix(3), alpha=0.5, epsilon=1.0)
    assert small.records == 4
    assert audited(lambda data, rng: small.draw(data, rng).estimate.tolist()) <= 1.0
    broken = Unscaled(workload=Prefix(3), alpha=0.5, epsilon=1.0)
    assert audited(broken.draw) > 1.0


def test_replay_catches_the_broken_one():
    broken = Unscaled(workload=Prefix(3), alpha=0.5, epsilon=1.0)
    with pytest.raises(ReplayError):
        replay(lambda data: Release(broken.release(data).value, broken.event), ONE, TWO)
