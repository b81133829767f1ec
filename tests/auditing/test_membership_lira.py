"""Membership attacks: on models whose leak is known, each attack does what theory says it can."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from discreet import auditing, events, guarantee


def leaky(shift: float, spread: float = 1.0) -> Any:
    """A "model" whose number for a record is normal around its difficulty, higher by ``shift`` if it was in."""
    hardness = np.random.default_rng(0).normal(0, 3, 400)

    def train(chosen: np.ndarray, rng: Any) -> np.ndarray:
        noise = np.random.default_rng(rng.word() % 2**32).normal(0, spread, len(chosen))
        return hardness + shift * chosen + noise

    return train


@pytest.mark.parametrize("attack", ["lira", "bayes", "rmia", "offline"])
def test_attacks_that_know_each_records_difficulty_come_near_the_best_there_is(attack: Any) -> None:
    """The best has an AUC of Φ(shift/√2); the loss alone is near chance where difficulties differ more."""
    found = auditing.membership(leaky(1.5), 400, attack=attack, models=24, rng=1)
    best = norm.cdf(1.5 / np.sqrt(2))
    assert best - 0.06 < found.roc.auc < best + 0.02
    assert found.again("loss").roc.auc < 0.65


def test_no_attack_finds_anything_where_nothing_leaks() -> None:
    """4,800 pairs: the standard error of the AUC is below 0.01."""
    found = auditing.membership(leaky(0.0), 400, models=24, rng=2)
    for attack in auditing.ATTACKS:
        assert abs(found.again(attack).roc.auc - 0.5) < 0.04  # type: ignore[arg-type]


def test_with_few_models_the_bayesian_attack_is_at_least_as_good_as_lira() -> None:
    few = [auditing.membership(leaky(1.5), 400, models=4, rng=seed) for seed in range(4)]
    bayes, lira = (np.mean([each.again(name).roc.auc for each in few]) for name in ("bayes", "lira"))
    assert bayes > lira - 0.005


def test_a_gaussian_mechanism_stays_below_its_claimed_curve() -> None:
    """Each record's number is released with noise: the best attack is the claim, and none is above it."""
    claim = guarantee(events.Gaussian(noise_multiplier=1.0))
    found = auditing.membership(leaky(1.0), 400, attack="lira", models=48, rng=3)
    for fpr in (0.01, 0.1, 0.3):
        assert found.roc.interval(fpr, 0.9999)[0] <= claim.tpr_at(fpr)
    assert found.roc.tpr_at(0.1) > 0.7 * claim.tpr_at(0.1)


def test_rates_ties_and_odd_scores() -> None:
    roc = auditing.ROC.of([1.0, 1.0, np.nan], [1.0, 0.0])
    assert roc.auc == pytest.approx((0.75 + 0.75 + 0.0) / 3)
    assert roc.tpr_at(0.0) == 0.0
    assert roc.tpr_at(1.0) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="at least one score"):
        auditing.ROC.of([], [1.0])
    with pytest.raises(ValueError, match="attack is 'magic'"):
        auditing.membership(leaky(1.0), 400, attack="magic", models=3)  # type: ignore[arg-type]


def test_the_picture_has_the_claim_in_it(tmp_path: Any) -> None:
    claim = guarantee(events.Gaussian(noise_multiplier=1.0))
    told: list[tuple[int, int]] = []
    found = auditing.membership(leaky(1.0), 400, models=4, rng=3, progress=lambda *done: told.append(done))
    found.roc.plot(claim.tpr_at, str(tmp_path / "roc.png"))
    assert (tmp_path / "roc.png").stat().st_size > 1000
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_model_that_diverged_is_no_model_that_leaks_nothing() -> None:
    with pytest.raises(auditing.CannotJudge, match="not finite"):
        auditing.membership(lambda chosen, rng: np.where(chosen, np.nan, 0.0), 40, models=4)
