"""MWEM: the theorem with its constants, what the variants promise, and what is caught."""

import itertools
import math

import numpy as np
import pytest

import discreet as dp
from discreet.auditing import ReplayError, epsilon_lower_bound, replay
from discreet.random import seeded
from discreet.release import Release
from discreet.synthesis import MWEM, mwem
from discreet.synthesis.linear_queries import UNIT, UnitQueries
from discreet.synthesis.mwem import _multiplicative_weights
from discreet.workloads import AllRanges, Explicit, Identity, Marginals, Prefix

SKEWED = np.array([700, 200, 50, 30, 10, 5, 3, 2])
STATED = {"passes": 1, "output": "average", "n": 1000}


def worst(workload, estimate, histogram):
    return float(np.abs(workload.apply(estimate) - workload.apply(histogram)).max())


def test_the_bound_is_the_paper_s_at_its_confidence_with_the_split_that_makes_it_least(monkeypatch):
    """2n√(ln|X|/T) + (4/s + 1/(1 - s)) T ln|Q|/ε with probability 1 - 2T/|Q|: the paper's 10 at s = 1/2, 9 at 2/3."""
    found = {}
    for share, factor in ((1 / 2, 10.0), (0.6, 4 / 0.6 + 1 / 0.4), (2 / 3, 9.0), (0.75, 4 / 0.75 + 4)):
        monkeypatch.setattr(mwem, "_FOR_CHOICES", share)
        stated = MWEM(workload=AllRanges(8), epsilon=0.7, rounds=5, **STATED).error(1 - 2 * 5 / 36)
        paper = 2 * 1000 * math.sqrt(math.log(8) / 5) + factor * 5 * math.log(36) / 0.7
        assert paper <= stated == pytest.approx(paper, rel=1e-6)
        found[share] = stated
    assert min(found, key=found.__getitem__) == 2 / 3
    monkeypatch.undo()
    assert MWEM(workload=AllRanges(8), epsilon=0.7, rounds=5, **STATED).error(1 - 2 * 5 / 36) == found[2 / 3]


def test_the_measured_error_is_within_the_theorem_and_falls_with_epsilon():
    """At 95 %, 40 runs for each epsilon: more than 11 beyond would happen with probability below 1e-5. The bound
    has a part in 1/ε, and so has what is measured: ten times the ε, a smaller error at the same rounds.
    """
    workload, rng, means = AllRanges(8), seeded(4), []
    for epsilon in (0.05, 0.5, 5.0):
        private = MWEM(workload=workload, epsilon=epsilon, rounds=12, **STATED)
        errors = [worst(workload, private.draw(SKEWED, rng).estimate, SKEWED) for _ in range(40)]
        assert sum(error > private.error(0.95) for error in errors) <= 11
        means.append(np.mean(errors))
        assert private.error() == private.release(SKEWED, rng=1).error
    assert means[0] > means[1] > means[2]


@pytest.mark.parametrize("told", [{"passes": 2}, {"output": "last"}, {"n": None}], ids=["passes", "last", "no n"])
def test_no_theorem_is_stated_for_other_variants(told):
    private = MWEM(workload=AllRanges(8), epsilon=0.7, rounds=5, **STATED | told)
    assert private.stated_error is None
    with pytest.raises(ValueError, match="The theorem is proved for one pass"):
        private.error()


def test_one_step_lowers_the_relative_entropy_by_what_the_proof_says():
    """((q(A) - q(B))² - (m - q(B))²)/4n², for random models, queries and measurements."""
    choose = np.random.default_rng(0)
    for _ in range(200):
        truth, model = (choose.dirichlet(np.full(6, 0.5)) * 100 + 1e-9 for _ in range(2))
        truth, model = (v * 100 / v.sum() for v in (truth, model))
        weights, measured = choose.random(6), choose.uniform(0, 100)
        after = _multiplicative_weights(model, [(weights, measured)], 100.0, 1)
        fall = float((truth / 100 * np.log(after / model)).sum())
        promised = ((weights @ (model - truth)) ** 2 - (measured - weights @ truth) ** 2) / (4 * 100**2)
        assert fall >= promised - 1e-12


def test_the_cost_is_the_budget():
    """T choices and T measurements, and the total where it is measured: never more than was asked for, nearly all."""
    for told in ({"n": 1000}, {}):
        pure = MWEM(workload=Prefix(8), epsilon=0.7, rounds=5, **told)
        assert 0.699 < dp.epsilon(pure.event, delta=0.0) <= 0.7
        concentrated = MWEM(workload=Prefix(8), rho=0.3, rounds=5, **told)
        whole = dp.events.ZCDP(rho=0.3)
        assert dp.epsilon(concentrated.event, delta=1e-6) <= dp.epsilon(whole, delta=1e-6)


def test_with_little_noise_several_passes_find_the_histogram():
    """At a huge epsilon every cell of the skewed histogram comes out, as it does not in one pass."""
    told = {"workload": AllRanges(8), "epsilon": 1000.0, "n": 1000, "rounds": 16}
    many, one = (MWEM(**told, passes=passes).release(SKEWED, rng=2).value.estimate for passes in (100, 1))
    assert worst(AllRanges(8), many, SKEWED) < 5 < worst(AllRanges(8), one, SKEWED)


def test_without_n_the_total_is_measured():
    private = MWEM(workload=Prefix(8), epsilon=50.0, rounds=5)
    assert private.release(SKEWED, rng=1).value.estimate.sum() == pytest.approx(1000, abs=5)
    assert private.total is not None


def test_a_hundred_thousand_cells_of_three_attributes_are_held():
    """Marginals of a table; the real maximum, a million cells, is in the slow test."""
    _at_scale((50, 50, 40))


@pytest.mark.slow(sibling="test_a_hundred_thousand_cells_of_three_attributes_are_held")
def test_a_million_cells_are_held():
    _at_scale((100, 100, 100))


def _at_scale(shape):
    histogram = np.zeros(shape, int)
    histogram[0, 0, 0] = 5000
    workload = Marginals(shape, 2)
    private = MWEM(workload=workload, epsilon=10.0, n=5000, rounds=3, passes=5)
    found = private.release(histogram, rng=1).value
    uniform = np.full(shape, 5000 / histogram.size)
    assert (
        np.abs(np.asarray(found) - workload.apply(histogram)).sum()
        < 0.9 * np.abs(workload.apply(uniform) - workload.apply(histogram)).sum()
    )


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"workload": Identity((101, 100, 100))}, "The domain has 1,010,000 cells"),
        ({"output": "best"}, "output is 'best'"),
        ({"passes": 0}, "passes is 0"),
        ({"rounds": 65}, "rounds is 65"),
        ({"n": None, "rounds": None}, "rounds is missing"),
        ({"n": None, "rounds": 3, "adjacency": "replace"}, "n is not declared"),
        ({"n": 2**40}, "n is 1099511627776"),
        ({"workload": Explicit([[2.0, 0.0]])}, "weights outside"),
        ({"rho": 1.0}, "epsilon"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_public_facts_tell_is_refused(told, message):
    with pytest.raises(ValueError, match=message):
        MWEM(**{"workload": Prefix(8), "epsilon": 1.0, "n": 100} | told)


# --- evidence --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", [Prefix(3), Explicit([[0.0, 1 / 3, 1.0]])], ids=["prefix", "thirds"])
def test_one_record_moves_every_score_by_at_most_one(workload):
    """Added and replaced, at sizes that no double holds."""
    queries, model = UnitQueries(workload), np.array([3.7, 0.1, 2.2])
    for start, cell, other in itertools.product([0, 7, 2**61], range(3), range(3)):
        base = np.array([start, 5, start], object)
        one, two = base.copy(), base.copy()
        one[cell] += 1
        two[other] += 1
        scores = [np.abs(queries.exact(x).astype(object) - queries.near(model)) for x in (base, one, two)]
        assert abs(scores[1] - scores[0]).max() <= UNIT
        assert abs(scores[1] - scores[2]).max() <= UNIT


class TrueTotal(MWEM):
    """Broken: the private sum in place of a declared n, so that a record moves the model as well as the counts."""

    def draw(self, data, rng):
        honest = MWEM(workload=self.workload, epsilon=1.0, n=int(np.sum(data)), rounds=self.rounds)
        return honest.draw(data, rng)


class Noiseless(MWEM):
    """Broken: the worst query is chosen by the exact errors."""

    def draw(self, data, rng):
        queries = UnitQueries(self.workload)
        exact = queries.exact(np.asarray(data))
        model = np.full(self.workload.shape, self.n / self.workload.size)
        chosen = int(np.abs(exact - queries.near(model)).argmax())
        noisy = self.measurement.draw(float(exact[chosen] / UNIT), rng)
        return _multiplicative_weights(model, [(self.workload.row(chosen), noisy)], self.n, 1), chosen


def test_an_audit_stays_below_the_claim_and_catches_selection_by_exact_errors():
    """One round on neighbours whose worst queries differ; the broken one tells which it is every time."""
    one, two = np.array([10, 0, 0, 10]), np.array([10, 0, 0, 11])
    told = {"workload": Identity(4), "epsilon": 1.0, "n": 20, "rounds": 1}
    trials, rng = 1500, seeded(6)

    def lower(first_cells):
        hits = tuple(int(sum(first_cells(data, rng) for _ in range(trials))) for data in (one, two))
        return epsilon_lower_bound(hits, trials, alarm=1e-6)

    honest, broken = MWEM(**told), Noiseless(**told)
    assert lower(lambda data, rng: honest.draw(data, rng).estimate[3] > 5) <= 1.0
    assert lower(lambda data, rng: broken.draw(data, rng)[1] == 3) > 1.0


def test_replay_catches_the_private_total():
    one, two = [10, 0, 0, 9], [10, 0, 0, 10]
    told = {"workload": Prefix(4), "epsilon": 1.0, "n": 20, "rounds": 2}

    def run(kind):
        operation = kind(**told)
        return lambda data: Release(operation.release(data).value.estimate, operation.event)

    replay(run(MWEM), one, two)
    with pytest.raises(ReplayError):
        replay(run(TrueTotal), one, two)
