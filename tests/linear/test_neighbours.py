"""A part of the search for hostile neighbours of linear models, and controls that show it would find one."""

import numpy as np
import pytest

from discreet.auditing import ReplayError
from discreet.encoding.containers import UnreadRows
from searches import neighbours_linear as search

SOME = 144  # three of every estimator


def test_one_record_changes_nothing_but_what_is_noised():
    answered = sum(search.check(case) for case in search.cases(SOME, seed=5))
    assert answered > SOME / 2


def test_the_search_finds_a_reader_that_lets_one_record_decide(monkeypatch):
    """The control: lists read in one go by NumPy, as they once were."""
    monkeypatch.setattr(UnreadRows, "read", lambda self: np.asarray(self.source, np.float64))
    with pytest.raises(ReplayError):
        sum(search.check(case) for case in search.cases(SOME, seed=5))


@pytest.mark.slow(sibling="test_one_record_changes_nothing_but_what_is_noised")
def test_ten_times_as_many():
    answered = sum(search.check(case) for case in search.cases(10 * SOME, seed=6))
    assert answered > 5 * SOME
