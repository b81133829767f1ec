"""The log-rank test, beside statsmodels'."""

from __future__ import annotations

import numpy as np
import pytest
from lifelines.datasets import load_rossi
from statsmodels.duration.survfunc import survdiff

from discreet.inference import LogRank, log_rank

ROSSI = load_rossi()
COLUMNS = tuple(ROSSI[name].to_numpy() for name in ("fin", "week", "arrest"))


def test_without_noise_it_is_statsmodels():
    chi_squared, p_value = survdiff(COLUMNS[1], COLUMNS[2], COLUMNS[0])
    mine = log_rank(*COLUMNS, horizon=52, epsilon=1e6, rng=1)
    assert mine.statistic**2 == pytest.approx(chi_squared, rel=3e-3)  # there with r - 1 for r
    assert mine.p_value == pytest.approx(p_value, abs=0.02)


def test_a_hazard_ratio_is_seen_through_the_noise():
    rng = np.random.default_rng(1)
    groups = np.arange(3000) % 2
    times = rng.exponential(np.where(groups == 0, 10.0, 20.0))
    answer = log_rank(groups, times, np.ones(3000), horizon=12, confidence=0.9999, epsilon=1.0, rng=1)
    assert answer.p_value < 0.001
    assert answer.interval[0] < np.log(2) < answer.interval[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [({"groups": (0,)}, "two groups"), ({"periods": 0}, "periods"), ({"horizon": -1.0}, "horizon")],
)
def test_public_mistakes_are_named(options, said):
    with pytest.raises(ValueError, match=said):
        LogRank(**{"horizon": 5.0, "epsilon": 1.0, **options})
