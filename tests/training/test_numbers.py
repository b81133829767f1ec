"""Numbers of Python's on the way to a loss: which count records, which follow another size, which are not known."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from discreet.training import PrivateTrainingError
from discreet.training.sampling import FixedSize
from discreet.training.verification.numbers import BatchNumbers, NumbersOfRun
from discreet.training.verification.verification import Schedule
from tests.training import honest
from tests.training.adversaries import Around, summed, train


def batch(records, *values, sizes=(), read=False, call=torch.div):
    return BatchNumbers(records, (call,), (values,), (float(records), *sizes), read)


def seen(*batches):
    run = NumbersOfRun()
    return run, [run.are_public(one) for one in batches]


def counting(run, *places, call=torch.div, records=8, x=8.0):
    return [run.counts((call, place), x, records) for place in places]


def test_numbers_that_follow_the_records_are_counted_and_others_are_not():
    run, public = seen(batch(8, 8.0, 1 / 8, 8.0, 0.3), batch(12, 12.0, 1 / 12, 8.0, 0.3))
    assert all(public)
    assert counting(run, 0, 1, 2, 3) == [True, True, False, False]


def test_what_counts_in_one_form_of_a_loop_counts_in_another():
    """A loss that has another term in some batches divides by the number of records all the same."""
    run, public = seen(batch(8, 8.0), batch(12, 12.0), batch(9, 9.0, call=torch.mul))
    assert all(public)
    assert counting(run, 0) == [True]
    assert counting(run, 0, call=torch.mul) == [None]


def test_a_schedule_that_doubles_as_the_records_do_counts_nothing():
    """Steps 1 and 2 of a weight that grows, in batches of 5 and 10 records."""
    run, public = seen(batch(5, 0.01), batch(10, 0.02))
    assert all(public)
    assert counting(run, 0, records=10, x=0.02) == [False]


def test_a_width_that_is_the_number_of_records_once_counts_nothing():
    """A view of 8 columns, in a batch of 8 records."""
    view = torch.Tensor.view
    run, _ = seen(batch(8, 8.0, 8.0, call=view), batch(5, 5.0, 8.0, call=view))
    assert counting(run, 0, 1, call=view) == [True, False]


def test_each_way_that_a_loop_goes_may_have_another_term():
    """16 is public, and twice the records of the last batch."""
    run, public = seen(*[batch(n, float(n), 16.0, call=call) for n in (5, 7, 8) for call in (torch.div, torch.mul)])
    assert all(public)
    assert counting(run, 0, 1, x=16.0) == [False, False]
    assert counting(run, 0) == [True]


@pytest.mark.parametrize("law", [lambda n: n - 1, lambda n: n**-0.5, lambda n: 3 / (n + 1), lambda n: n**0.5])
def test_a_simple_function_of_a_size_is_met_at_the_third_size(law):
    assert seen(*[batch(n, law(n)) for n in (7, 9, 12)])[1] == [True, True, False]
    assert seen(*[batch(n, law(t), sizes=[t]) for n, t in ((7, 20), (9, 31), (12, 24))])[1] == [True, True, False]


def test_a_schedule_is_no_function_of_a_size_unless_values_are_read():
    assert all(seen(*[batch(n, step / 10) for step, n in enumerate((7, 9, 12, 8, 13), 1)])[1])
    assert seen(*[batch(n, step / 10, read=True) for step, n in enumerate((7, 9), 1)])[1] == [True, False]


def test_shapes_may_change_where_values_are_read():
    assert all(seen(*[batch(n, 3.0 * n + 1, read=True, call=torch.Tensor.view) for n in (7, 9)])[1])


@pytest.mark.parametrize(
    ("loss", "batch"),
    [
        (lambda o, y: 16 * summed(o, y) / len(y), 8),  # 16 is a multiple of the records, and counts nothing
        (lambda o, y: F.cross_entropy(o.view(len(y), 2), y), 49),  # 49 * (1 / 49) < 1
        (lambda o, y: summed(o / 8, y) / len(y), 8),  # a temperature that is the number of records
    ],
)
def test_a_mean_by_hand_passes_whatever_the_sizes_are(loss, batch):
    data = torch.utils.data.TensorDataset(torch.randn(100, 3), torch.randint(0, 2, (100,)))
    train(Around(), loss, data=data, batch=batch, sampler="fixed-size", steps=2, epochs=2)
    with pytest.raises(PrivateTrainingError):
        train(Around(), lambda o, y: loss(o - o.mean(0), y), data=data, batch=batch, sampler="fixed-size", steps=2)


def test_what_counts_is_known_after_two_sizes():
    """Divided by a number of records, a mean is one where that number is counted, and nowhere else."""
    case = honest.APART["mean by hand"]
    model, optimizer, loader = case.private()
    for x, y in loader:
        case.step(model, optimizer, x, y)
    numbers = optimizer.privacy._run.verification._judge.numbers
    assert len([place for place in numbers._met if numbers.counts(place, 8.0, 8)]) == 1


def test_a_temperature_that_is_the_number_of_records_once_does_not_count_them():
    """Batches of 6, 7 and 8 records: that the divisor counts is known, and in the third there are two of them."""
    data = torch.utils.data.TensorDataset(torch.randn(100, 3), torch.randint(0, 2, (100,)))
    sizes = iter((6, 7, 8))

    class Sizes(FixedSize):
        def draw(self, step, size, keys, order, rng):
            return np.arange(next(sizes))

    def loss(o, y):
        return summed(o / 8, y) / len(y)

    sampler = Sizes(batch_size=8, dataset_size=100)
    with mock.patch.object(Schedule, "next", return_value=True), mock.patch.object(Schedule, "claims", (1,)):
        train(Around(), loss, data=data, sampler=sampler, steps=3)


def test_what_python_was_told_may_be_vouched_for():
    def loss(o, y):
        return summed(o, y) / (y.sum().item() + 1)

    train(Around(), loss, loss_reduction="sum", unverified="labels are public")
