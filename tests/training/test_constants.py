"""Numbers of Python's on the way to a loss: which count records, which follow another size, which are not known."""

from __future__ import annotations

import pytest
import torch

from discreet.training.verification.constants import Constants, Course
from tests.training import honest
from tests.training.adversaries import Around, summed, train


def batch(records, *values, sizes=(), read=False, call=torch.div, tensors=()):
    return Constants(records, (call,), (values,), (float(records), *sizes), tensors, read)


def course(*batches):
    found = Course()
    return found, [found.known(one) for one in batches]


def test_numbers_that_follow_the_records_are_counted_and_others_are_not():
    found, known = course(batch(8, 8.0, 1 / 8, 8.0, 0.3), batch(12, 12.0, 1 / 12, 8.0, 0.3))
    assert all(known)
    assert found.counts == {(0, 0): 1, (0, 1): -1}


def test_in_another_form_it_is_known_that_something_counts_but_not_what():
    found, known = course(batch(8, 8.0), batch(12, 12.0, call=torch.mul))
    assert all(known)
    assert not found.follows  # another function: nothing is known of it
    other = Constants(12, (torch.mul, torch.div), ((), (12.0,)), (12.0,), (), read=False)
    found, known = course(batch(8, 8.0), other)
    assert found.follows
    assert not found.counts


@pytest.mark.parametrize("law", [lambda n: n - 1, lambda n: n**-0.5, lambda n: 3 / (n + 1), lambda n: n**2])
def test_a_simple_function_of_a_size_is_met_at_the_third_size(law):
    assert course(*[batch(n, law(n)) for n in (7, 9, 12)])[1] == [True, True, False]
    assert course(*[batch(n, law(t), sizes=[t]) for n, t in ((7, 20), (9, 31), (12, 24))])[1] == [True, True, False]


def test_a_schedule_is_no_function_of_a_size_unless_values_are_read():
    assert all(course(*[batch(n, step / 10) for step, n in enumerate((7, 9, 12, 8, 13), 1)])[1])
    assert course(*[batch(n, step / 10, read=True) for step, n in enumerate((7, 9), 1)])[1] == [True, False]


def test_shapes_may_change_and_tensors_from_elsewhere_may_not_where_values_are_read():
    assert all(course(*[batch(n, 3.0 * n + 1, read=True, call=torch.Tensor.view) for n in (7, 9)])[1])
    same, other = ((0, torch.ones(2)),), ((1, torch.ones(2)),)
    assert all(course(batch(7, tensors=same, read=True), batch(9, tensors=other, read=True))[1])
    assert not all(course(batch(7, tensors=same, read=True), batch(9, tensors=((1, torch.zeros(2)),), read=True))[1])


def test_a_reading_that_was_contradicted_is_gone():
    """Divided by a number of records, a mean is one where that number is counted, and nowhere else."""
    model, optimizer, loader = honest.APART["mean by hand"].private()
    memory = optimizer.privacy._run.verification._memory
    assert not memory.readings[0].counts
    for x, y in loader:
        honest.APART["mean by hand"].step(model, optimizer, x, y)
    assert memory.readings
    assert all(reading.counts or reading.exact for reading in memory.readings)


def test_what_python_was_told_may_be_vouched_for():
    def loss(o, y):
        return summed(o, y) / (y.sum().item() + 1)

    train(Around(), loss, loss_reduction="sum", unverified="labels are public")
