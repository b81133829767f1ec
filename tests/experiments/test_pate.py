"""The experiments of PATE at a small size: what they show holds, what they take for public is."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import pate_adult, pate_answers
from experiments._digits import Strong, Weak, hog


def test_teachers_cost_by_the_answer_and_a_student_costs_once():
    costs = [pate_answers.ensemble(count) for count in (10, 480, 1000)]
    assert costs == sorted(costs)
    assert costs[-1] > 1.4 * costs[1]
    assert pate_answers.student(10) == pate_answers.student(10**6) == costs[1]
    assert pate_answers.ensemble(pate_answers.affordable(3.0)) <= 3.0


def test_the_settings_on_adult_cost_what_the_table_says():
    import discreet as dp

    assert dp.epsilon(pate_adult.BEST.event, delta=pate_adult.DELTA) <= 1.0
    assert dp.epsilon(pate_adult.CONFIDENT.event, delta=pate_adult.DELTA) <= 3.5


def test_a_few_teachers_teach_a_student_about_adult():
    parts = pate_adult.split(0, teachers=20, choosing=True)
    accuracy, cost, answers = pate_adult.run(0, pate_adult.GNMax(sigma=2.0, queries=300), parts)
    assert accuracy > 0.79
    assert answers == 300
    assert cost > 0


def test_an_images_features_are_its_own():
    images = np.random.default_rng(0).integers(0, 256, (5, 28, 28), dtype=np.uint8)
    together = hog(images, batch=2)
    assert np.array_equal(together[3:4], hog(images[3:4]))
    assert np.isfinite(hog(np.zeros((1, 28, 28), np.uint8))).all()


@pytest.mark.parametrize("change", [Weak(), Strong()], ids=["weak", "strong"])
def test_a_changed_digit_is_still_one_and_a_seed_repeats_it(change):
    torch = pytest.importorskip("torch", reason="students need torch")
    rows = torch.rand(4, 784)
    one, other = (change(rows, torch.Generator().manual_seed(3)) for _ in range(2))
    assert one.shape == rows.shape
    assert torch.equal(one, other)
    assert not torch.equal(one, rows)
