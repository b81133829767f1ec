"""Work on torch's threads: everything is done once, failures come back, and a seed gives the same noise on any team."""

import threading

import numpy as np
import pytest

from discreet.random import gaussian_noise
from discreet.training import threads
from discreet.training.threads import torch_threads


@pytest.mark.parametrize("openmp", [True, False])
def test_every_task_is_done_once(openmp, monkeypatch):
    if not openmp:
        monkeypatch.setattr(threads, "_parallel", lambda: None)
    done, lock = [], threading.Lock()

    def task(i):
        with lock:
            done.append(i)

    torch_threads(task, 37)
    assert sorted(done) == list(range(37))


def test_a_failure_comes_back():
    def task(i):
        if i == 3:
            raise KeyError("three")

    with pytest.raises(KeyError, match="three"):
        torch_threads(task, 5)


def test_a_seed_gives_the_same_noise_on_any_team():
    size = 1 << 17
    alone, together = (
        gaussian_noise(np.empty(size, np.float32), 1.0, 7, team=given) for given in (None, torch_threads)
    )
    assert np.array_equal(alone, together)
