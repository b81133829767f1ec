"""Which samplers amplify what, under which adjacency: every combination is priced by its theorem or refused."""

from __future__ import annotations

import math

import pytest

import discreet as dp
from discreet import events as ev
from discreet.adjacency import Adjacency
from discreet.errors import UnsupportedAdjacency

RATE = 0.01
SAMPLERS = {
    "poisson": lambda event: ev.PoissonSampled(rate=RATE, event=event),
    "truncated": lambda event: ev.TruncatedPoissonSampled(
        rate=RATE, max_batch_size=10**4, dataset_size=10**5, event=event
    ),
    "fixed size": lambda event: ev.FixedSizeSampled(rate=RATE, event=event),
    "shuffled": lambda event: ev.Shuffled(event=event),
    "bins": lambda event: ev.BallsInBins(bins=100, event=event),
    "selected": lambda event: ev.Selected(event=event, mean=2),
}
KINDS = {
    "gaussian": lambda own: ev.Gaussian(noise_multiplier=1.0, adjacency=own),
    "laplace": lambda own: ev.Laplace(noise_multiplier=1.0, adjacency=own),
    "pure": lambda own: ev.PureDP(epsilon=1.0, adjacency=own),
    "approximate": lambda own: ev.ApproxDP(epsilon=1.0, delta=1e-9, adjacency=own),
    "exponential": lambda own: ev.Exponential(epsilon=1.0, adjacency=own),
    "one of": lambda own: ev.OneOf(
        events=(ev.PureDP(epsilon=1.0, adjacency=own), ev.PureDP(epsilon=0.5, adjacency=own))
    ),
    "proved under": lambda own: ev.ProvedUnder(adjacency=own, event=ev.Gaussian(noise_multiplier=1.0, adjacency=own)),
}


def expected(sampler: str, kind: str, own: str, wanted: str) -> str:
    """The table, by hand: 'amplified', 'whole' (no amplification) or 'refused'."""
    if kind == "proved under" and own != wanted:
        return "refused"
    if sampler in ("poisson", "truncated"):
        if own != "add-remove":
            return "refused"
        return "amplified" if wanted == "add-remove" or kind == "gaussian" else "refused"
    if sampler in ("fixed size", "shuffled"):
        return {"fixed size": "amplified", "shuffled": "whole"}[sampler] if wanted == "replace" else "refused"
    if sampler == "bins" and own == "replace" and kind != "one of":
        return "refused"  # when it is built; deeper down it holds
    if sampler == "bins" and own == wanted == "add-remove":
        return "amplified"
    restated = own == wanted or (own, wanted) in {
        ("add-remove", "replace"), ("add-remove", "zero-out"), ("zero-out", "replace")}  # fmt: skip
    return ("more" if sampler == "selected" else "whole") if restated else "refused"


@pytest.mark.parametrize("wanted", list(map(str, Adjacency)))
@pytest.mark.parametrize("own", list(map(str, Adjacency)))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name != "selected"])
def test_a_sampler_amplifies_what_was_proved_for_its_comparison_and_nothing_else(sampler, kind, own, wanted):
    inside, delta = KINDS[kind](own), 1e-6
    try:
        event = SAMPLERS[sampler](inside)
        price = dp.epsilon(event, delta, adjacency=wanted)
    except (UnsupportedAdjacency, ValueError):  # a ValueError where it is refused when it is built
        outcome = "refused"
    else:
        alone = dp.epsilon(inside, delta, adjacency=wanted)
        outcome = "amplified" if price < 0.5 * alone else "whole" if price == pytest.approx(alone, rel=1e-3) else "more"
    assert outcome == expected(sampler, kind, own, wanted)


@pytest.mark.parametrize("wanted", list(map(str, Adjacency)))
@pytest.mark.parametrize("own", list(map(str, Adjacency)))
def test_a_selection_costs_more_than_a_run_wherever_the_run_has_a_price(own, wanted):
    test_a_sampler_amplifies_what_was_proved_for_its_comparison_and_nothing_else("selected", "pure", own, wanted)


@pytest.mark.parametrize("event", [
    ev.RandomizedResponse(epsilon=1.0, adjacency="zero-out"),
    ev.PureDP(epsilon=1.0, adjacency="zero-out"),
    ev.ProvedUnder(adjacency="zero-out", event=ev.Gaussian(noise_multiplier=1.0, adjacency="zero-out")),
    ev.ProvedUnder(adjacency="zero-out", event=ev.Gaussian(noise_multiplier=1.0)),
])  # fmt: skip
@pytest.mark.parametrize("wanted", ["zero-out", "replace", "add-remove"])
def test_what_is_proved_against_a_null_in_the_sample_is_not_amplified(event, wanted):
    """Randomised response at rate 0.01 was sold for 0.017, where one report of a single record costs 1."""
    with pytest.raises(UnsupportedAdjacency, match="absence"):
        dp.epsilon(ev.PoissonSampled(rate=RATE, event=event), 1e-6, adjacency=wanted)


def test_the_attack_that_amplification_would_have_hidden():
    """One record, drawn with rate q, reports its bit; a sample without it gives no report: enumerated."""
    truth = math.e / (1 + math.e)
    shown = {"nothing": 1 - RATE, 1: RATE * truth, 0: RATE * (1 - truth)}
    blank = {"nothing": 1 - RATE, 1: RATE * (1 - truth), 0: RATE * truth}
    attained = max(abs(math.log(shown[answer] / blank[answer])) for answer in shown)
    assert attained == pytest.approx(1.0)
    whole = ev.BallsInBins(bins=100, event=ev.PureDP(epsilon=1.0, adjacency="zero-out"))
    assert dp.epsilon(whole, 0.0, adjacency="zero-out") == pytest.approx(attained)


def test_a_blanked_record_is_another_record_in_its_place():
    """Gaussian noise that is proved under add-remove has the replace pair under zero-out as well."""
    step = ev.PoissonSampled(rate=RATE, event=ev.Gaussian(noise_multiplier=1.0)) * 100
    price = dp.epsilon(step, 1e-6, adjacency="zero-out")
    assert price == dp.epsilon(step, 1e-6, adjacency="replace") > dp.epsilon(step, 1e-6)


@pytest.mark.parametrize("wanted", ["replace", "zero-out"])
def test_a_record_that_comes_back_in_another_part_costs_what_it_left_and_what_it_entered(wanted):
    parts = ev.Laplace(noise_multiplier=2.0) | ev.Laplace(noise_multiplier=1.0)
    assert dp.epsilon(parts, 0.0) == 1.0
    assert dp.epsilon(parts, 0.0, adjacency=wanted) == pytest.approx(2.0)  # twice in one part, or once in each: 1.5
    alone = ev.PureDP(epsilon=1.0, adjacency=wanted) | ev.PureDP(epsilon=0.5, adjacency=wanted)
    with pytest.raises(UnsupportedAdjacency, match="leave one part and enter another"):
        dp.epsilon(alone, 0.0, adjacency=wanted)
