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


def test_answers_spread_to_public_digits_near_them_and_not_to_those_in_between():
    pytest.importorskip("torch", reason="students need torch")
    from experiments import pate_mnist

    corners = np.eye(3) * 3
    public = np.concatenate([corners, corners * 0.9, np.full((1, 3), 1.0)])
    empty = np.empty(0)
    parts = pate_mnist.Split(empty, empty, public, np.arange(3), empty, empty, empty, empty)
    assert pate_mnist.spread(parts, np.array([0, 1, 2])).tolist() == [0, 1, 2, 0, 1, 2, -1]


def test_a_digit_is_halved_by_itself():
    pytest.importorskip("torch", reason="generators need torch")
    from experiments.pate_digits import FACTS, halved

    images = np.random.default_rng(0).integers(0, 256, (3, 28, 28))
    assert halved(images).shape == (3, *FACTS.shape)
    assert np.array_equal(halved(images)[1:2], halved(images[1:2]))


def test_a_classifier_of_real_people_is_better_than_one_of_constant_rows():
    pytest.importorskip("torch", reason="generators need torch")
    from experiments import pate_gan

    schema, train, test = pate_gan.people()
    few = {name: values[:2000] for name, values in train.items()}
    rows = {name: values[:500] for name, values in test.items()}
    accuracy, area = pate_gan.scores(schema, few, rows)
    assert accuracy > 0.8
    assert area > 0.85
    constant = {name: np.repeat(values[:1], 50) for name, values in few.items()}
    assert pate_gan.scores(schema, constant, rows)[1] == 0.5
