"""What is spent and left, as text: bounds on the safe side that subtract, and agree with the history."""

from __future__ import annotations

import pytest

from discreet.ledger.balance import balance
from discreet.reporting.words import bound


@pytest.mark.parametrize(
    ("spent", "limit", "figures"),
    [
        (3.2009, 10.0, ("3.201", "10", "6.799")),
        (2.1558, 3.0, ("2.156", "3", "0.844")),
        (0.00123456, 10.0, ("0.001235", "10", "9.998765")),
        (9.9996, 10.0, ("9.9996", "10", "0.0004")),
        (0.0, 10.0, ("0", "10", "10")),
        (4.00001, 3.0, ("4.001", "3", "0")),
    ],
)
def test_what_is_spent_has_the_digits_of_the_history_and_what_is_left_follows(spent, limit, figures):
    assert balance(spent, limit) == figures
    assert figures[0] == bound(spent) or spent > limit * 0.999
