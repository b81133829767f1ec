"""Average effects, by weights and doubly robust, where the truth is planted."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.inference import AverageEffect, average_effect

RNG = np.random.default_rng(4)
N = 6000
X = RNG.random(N)
CHANCE = np.clip(0.2 + 0.6 * X, 0, 1)
TREATED = (RNG.random(N) < CHANCE).astype(int)
OUTCOME = np.clip(X + 0.3 * TREATED + RNG.normal(0, 0.1, N), 0, 2)  # treated records have larger x: confounded
FACTS = {"bounds": (0.0, 2.0), "overlap": 0.1}


def weighted(outcome, treated, chance, middle=1.0):
    return np.mean(np.where(treated == 1, (outcome - middle) / chance, -(outcome - middle) / (1 - chance)))


def test_weights_undo_confounding_that_a_difference_of_means_shows():
    plain = OUTCOME[TREATED == 1].mean() - OUTCOME[TREATED == 0].mean()
    assert plain > 0.4
    answer = average_effect(TREATED, OUTCOME, CHANCE, epsilon=1.0, confidence=0.9999, rng=1, **FACTS)
    assert answer.interval[0] < 0.3 < answer.interval[1] < plain
    assert answer.p_value < 0.001


def test_without_noise_it_is_the_mean_of_the_scores():
    answer = average_effect(TREATED, OUTCOME, CHANCE, epsilon=1e6, rng=1, **FACTS)
    assert answer.effect == pytest.approx(weighted(OUTCOME, TREATED, CHANCE), abs=1e-3)


def test_predictions_make_it_right_where_propensities_are_wrong():
    """Doubly robust: a half for everybody, but the outcome's own law as predictions."""
    wrong = np.full(N, 0.5)
    plain = average_effect(TREATED, OUTCOME, wrong, epsilon=1e6, rng=1, **FACTS)
    robust = average_effect(TREATED, OUTCOME, wrong, X + 0.3, X, epsilon=1e6, rng=1, **FACTS)
    assert abs(plain.effect - 0.3) > 0.05
    assert robust.effect == pytest.approx(0.3, abs=0.01)


def test_records_without_overlap_or_with_odd_entries_are_left_out():
    test = AverageEffect(epsilon=1e6, **FACTS)
    odd = ([1, 0, 1, 2, 0] * 50, [2.0, 1.0, 0.0, 1.0, float("nan")] * 50, [0.5, 0.5, 0.01, 0.5, 0.5] * 50)
    plain = ([1, 0] * 50, [2.0, 1.0] * 50, [0.5, 0.5] * 50)
    assert test.release(odd, rng=1).effect == pytest.approx(test.release(plain, rng=1).effect, abs=1e-3)


def test_what_a_limit_cuts_off_is_stated_apart():
    """The bias covers what clipping moved the effect by, and is near to it where noise is small."""
    scores = np.where(TREATED == 1, (OUTCOME - 1) / CHANCE, -(OUTCOME - 1) / (1 - CHANCE))
    moved = np.mean(np.maximum(np.abs(scores) - 1.0, 0.0))
    answer = average_effect(TREATED, OUTCOME, CHANCE, limit=1.0, epsilon=1e6, rng=1, **FACTS)
    assert abs(answer.effect - scores.mean()) <= answer.bias == pytest.approx(moved, rel=1e-3)
    assert average_effect(TREATED, OUTCOME, CHANCE, epsilon=1.0, rng=1, **FACTS).bias == 0.0


def test_what_is_cut_off_counts_as_no_records_of_a_small_study():
    """The fourth total is no number of records: 96 of them are few, however much of their scores is cut off."""
    test = AverageEffect(bounds=(0, 2), overlap=0.1, limit=1.0, epsilon=1.0)
    for cut in (0.0, 20.0):
        assert "fewer than 100 records" in test.caveat(np.array([[24.0, 48.0, 24.0, cut]]))


def test_a_limit_makes_the_interval_shorter():
    wide, narrow = (
        average_effect(TREATED, OUTCOME, CHANCE, limit=limit, epsilon=0.2, rng=1, **FACTS).interval
        for limit in (None, 1.5)
    )
    assert narrow[1] - narrow[0] < 0.6 * (wide[1] - wide[0])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: AverageEffect(bounds=(0, 1), overlap=0.7, epsilon=1.0), "overlap"),
        (lambda: AverageEffect(bounds=(0, 1), limit=-1.0, epsilon=1.0), "limit"),
        (lambda: average_effect(TREATED, OUTCOME, CHANCE, X, epsilon=1.0, **FACTS), "tuple of 5 columns"),
    ],
)
def test_public_mistakes_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()
