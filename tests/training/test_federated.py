"""Rounds over clients: each moves the sum by at most the clip norm, whatever it sends and however often."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2

import discreet as dp
from discreet import events
from discreet.errors import BudgetExceeded, UnitMismatch
from discreet.release import Enforced
from discreet.training import FixedOrder, KeptBins, PerUser, Poisson, PrivateTrainingError, TruncatedPoisson
from discreet.training.federated import Federation, clipped_update
from discreet.training.noise import BLT, Independent, LambdaCGD
from tests.operations.contract import Log, SpyBook

QUIET = 1e-12
MODEL = [np.zeros((2, 3), np.float32), np.zeros(4, np.float32)]


def rounds(**options):
    facts = {"clients": 6, "clients_per_round": 6, "rounds": 3, "noise_multiplier": QUIET, "rng": 3}
    return Federation(**(facts | options))


def sent(value):
    """What a client makes of the model: every entry moved by so much."""
    return [part + np.float32(value) for part in MODEL]


def moved(replies, **options):
    """The sum of a round in which everybody is asked."""
    federation = rounds(**options)
    federation.ask(range(6), MODEL)
    after = federation.next_arrays([part.astype(np.float64) for part in MODEL], replies)
    return 6 * np.concatenate([part.ravel() for part in after])


OTHERS = [(client, sent(0.01 * client)) for client in range(5)]
HUGE = {
    "large": [(5, sent(1e30))],
    "twice": [(5, sent(7.0)), (5, sent(7.0)), (5, sent(9.0))],
    "beyond doubles": [(5, [np.full(part.shape, 1e200) for part in MODEL])],
}
NOTHING = {
    "not a number": [(5, sent(math.nan))],
    "infinite": [(5, [sent(math.inf)[0], MODEL[1]])],
    "another shape": [(5, [np.ones(3), np.ones(4)])],
    "too few": [(5, sent(1.0)[:1])],
    "text": [(5, [np.full((2, 3), "x"), np.full(4, "x")])],
    "not asked": [(17, sent(1.0))],
    "no answer": [],
}


@pytest.mark.parametrize("kind", [*HUGE, *NOTHING])
def test_a_client_moves_the_sum_by_at_most_the_clip_norm(kind):
    without = moved(OTHERS, max_norm=0.5)
    change = float(np.linalg.norm(moved([*OTHERS, *(HUGE | NOTHING)[kind]], max_norm=0.5) - without))
    assert change <= 0.5 * (1 + 2.0**-40)
    assert change == pytest.approx(0.5 if kind in ("large", "twice") else 0.0, abs=1e-9)


def test_the_mean_is_over_a_public_number_of_clients_without_weights():
    found = moved([(0, sent(0.1)), (1, sent(0.2))], max_norm=100.0)
    assert found == pytest.approx(np.full(10, 0.3), rel=1e-6)  # two of six answered: the sum is over six


def test_clipping_keeps_what_is_short_and_the_direction_of_the_rest():
    short, long = [np.array([0.3]), np.array([0.4])], [np.array([30.0]), np.array([40.0])]
    assert clipped_update(short, 1.0) == short
    assert np.concatenate(clipped_update(long, 1.0)) == pytest.approx([0.6, 0.8])
    assert clipped_update([np.zeros(2)], 1.0)[0].tolist() == [0.0, 0.0]


# --- noise -----------------------------------------------------------------------------------------------------------

FALSE_ALARM = 1e-9


def scale_fits(noise, sigma):
    square = float((noise / sigma) @ (noise / sigma))
    return chi2.ppf(FALSE_ALARM / 2, len(noise)) < square < chi2.isf(FALSE_ALARM / 2, len(noise))


@pytest.mark.parametrize("answers", [0, 3])
def test_noise_has_the_scale_of_the_plan_however_many_answer(answers):
    model = [np.zeros(40_000)]
    federation = Federation(clients=10, clients_per_round=5, rounds=1, noise_multiplier=2.0, max_norm=0.3, rng=5)
    federation.ask(range(10), model)
    asked = sorted(federation._asked)
    [after] = federation.next_arrays(model, [(client, model) for client in asked[:answers]])
    assert scale_fits(after * 5, 2.0 * 0.3)
    assert not scale_fits(after * 5, 2.0 * 0.3 * 1.05)


def test_correlated_noise_takes_back_what_it_put_on():
    """DP-FTRL: in sums over rounds there is less noise than fresh draws of the same multiplier leave."""
    model, left = [np.zeros(20_000)], {}
    for noise in (Independent(), LambdaCGD(back=0.9)):
        federation = Federation(
            clients=8, clients_per_round=1, rounds=8, noise_multiplier=1.0, noise=noise, sampler=KeptBins, rng=5
        )
        after = model
        for _ in range(8):
            federation.ask(range(8), model)
            after = federation.next_arrays(after, [])
        left[noise.correlated] = float(np.std(after[0]))
    assert left[False] == pytest.approx(math.sqrt(8), rel=0.05)
    assert left[True] < 0.6 * left[False]


def test_momentum_is_post_processing_and_carries_on():
    federation = rounds(momentum=0.5, lr=2.0, max_norm=100.0)
    after = [part.astype(np.float64) for part in MODEL]
    for expected in (0.2, 0.5):
        federation.ask(range(6), after)
        after = federation.next_arrays(after, [(client, [part + 0.1 for part in after]) for client in range(6)])
        assert after[1] == pytest.approx(np.full(4, expected), rel=1e-6)


# --- the account -----------------------------------------------------------------------------------------------------


def test_a_fraction_of_clients_is_a_fixed_size_and_priced_under_replace():
    federation = rounds(clients=100, clients_per_round=10, rounds=7, noise_multiplier=4.0)
    step = events.FixedSizeSampled(rate=0.1, event=events.Gaussian(noise_multiplier=2.0, adjacency="replace"))
    assert events.leaves(federation.event) == {step: 7}
    assert federation.plan.adjacency == "replace"
    assert federation.epsilon(1e-5) == pytest.approx(dp.epsilon(federation.event, 1e-5, adjacency="replace"))


def test_epsilon_decides_the_noise():
    federation = rounds(
        clients=100, clients_per_round=10, noise_multiplier=None, epsilon=3.0, delta=1e-5, sampler=Poisson
    )
    assert 2.9 < federation.epsilon(1e-5) <= 3.0


def test_correlated_noise_brings_its_sampler_and_one_price():
    federation = rounds(clients=60, clients_per_round=10, rounds=12, noise_multiplier=3.0, noise=BLT(buffers=2))
    assert isinstance(federation.plan.sampler, KeptBins)
    assert len(events.leaves(federation.event)) == 1
    with pytest.raises(ValueError, match="no theorem together"):
        rounds(noise=BLT(buffers=2), sampler=Poisson)


def test_the_book_is_charged_once_and_before_anybody_is_asked():
    log = Log()
    book = SpyBook(log)
    federation = rounds(book=book, name="phone")
    assert not log
    for _ in range(2):
        federation.ask(range(6), MODEL)
        federation.next_arrays(MODEL, [])
    [(event, _, unit)] = book.charges
    assert (event, unit, type(unit)) == (federation.event, "phone", Enforced)


def test_a_book_of_clients_under_replace_takes_the_charge_and_another_refuses():
    ledger = dp.Ledger("sqlite://")
    book = ledger.open("phones", epsilon=9.0, delta=1e-5, unit="client", adjacency="replace")
    rounds(book=book, noise_multiplier=20.0).ask(range(6), MODEL)
    assert book.spent().entries == 1
    rows = ledger.open("rows", epsilon=9.0, delta=1e-5, adjacency="replace")
    with pytest.raises(UnitMismatch, match="client"):
        rounds(book=rows, noise_multiplier=20.0).ask(range(6), MODEL)


def test_a_refused_charge_asks_nobody():
    federation = rounds(book=SpyBook(Log(), refuse=True))
    with pytest.raises(BudgetExceeded):
        federation.ask(range(6), MODEL)
    with pytest.raises(PrivateTrainingError, match="ask clients first"):
        federation.next_arrays(MODEL, [])


PUBLIC = {
    "fewer clients than were declared": (range(5), MODEL, "Fewer clients are connected than clients=6 declares"),
    "more than a fixed size is priced for": (range(7), MODEL, "must be the number of records"),
    "a counter": (range(6), [np.zeros(2, np.int64)], "int64"),
    "no model": (range(6), [], "nothing"),
}


@pytest.mark.parametrize("case", PUBLIC)
def test_public_mistakes_are_found_before_the_charge(case):
    log = Log()
    connected, model, reason = PUBLIC[case]
    with pytest.raises(ValueError, match=reason):
        rounds(book=SpyBook(log)).ask(connected, model)
    assert not log


WRONG = {
    "clients_per_round": {"clients_per_round": 7},
    "rounds": {"rounds": 0},
    "noise_multiplier, or epsilon": {"epsilon": 1.0, "delta": 1e-5},
    "noise is a": {"noise": "gaussian"},
    "TruncatedPoisson": {"sampler": TruncatedPoisson},
    "another batch_size": {"sampler": Poisson(batch_size=2, dataset_size=6)},
    "several records": {"sampler": PerUser(batch_size=6, dataset_size=6, users=[1])},
    "max_grad_norm": {"max_norm": 0.0},
    "momentum": {"momentum": 1.0},
    "unit": {"name": ""},
}


@pytest.mark.parametrize("reason", WRONG)
def test_what_makes_no_plan_is_refused(reason):
    with pytest.raises(ValueError, match=reason):
        rounds(**WRONG[reason])


# --- rounds ----------------------------------------------------------------------------------------------------------


def test_rounds_beyond_the_plan_are_refused():
    federation = rounds(rounds=1)
    federation.ask(range(6), MODEL)
    federation.next_arrays(MODEL, [])
    with pytest.raises(BudgetExceeded, match="plan of 1 steps"):
        federation.ask(range(6), MODEL)
    with pytest.raises(PrivateTrainingError, match="each round once"):
        federation.next_arrays(MODEL, [])


def test_who_comes_later_takes_no_part_and_who_left_is_not_asked():
    federation = rounds(sampler=Poisson)
    assert federation.ask(range(6), MODEL) == list(range(6))
    federation.next_arrays(MODEL, [])
    assert federation.ask([1, 2, 99], MODEL) == [1, 2]


@pytest.mark.parametrize("sampler", [KeptBins, FixedOrder])
def test_a_kept_order_asks_each_client_once_a_pass_in_the_same_round_of_it(sampler):
    federation = rounds(clients=12, clients_per_round=4, rounds=6, sampler=sampler)
    asked = []
    for _ in range(6):
        asked.append(federation.ask(range(12), MODEL))
        federation.next_arrays(MODEL, [])
    assert sorted(client for each in asked[:3] for client in each) == list(range(12))
    assert asked[:3] == asked[3:]


def test_an_update_of_many_equal_entries_is_measured_in_full():
    entries, value = 1 << 23, 1 / 3
    [found] = clipped_update([np.full(entries, value)], 1.0)
    assert float(found[0]) * math.sqrt(entries) <= 1 + 2.0**-44
