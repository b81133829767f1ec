"""Work on several threads: everything is done once, failures come back, and a seed gives the same noise on any team."""

import threading

import numpy as np
import pytest
import torch

from discreet.random import gaussian_noise
from discreet.training.speed import FEWEST, on_threads


@pytest.fixture(params=[1, 4], autouse=True)
def number(request, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: request.param)
    return request.param


def test_every_task_is_done_once(number):
    done, used, lock = [], set(), threading.Lock()

    def task(i):
        with lock:
            done.append(i)
            used.add(threading.get_ident())

    on_threads(task, 37)
    assert sorted(done) == list(range(37))
    assert (threading.get_ident() in used) == (number < FEWEST)


def test_a_failure_comes_back():
    def task(i):
        if i == 3:
            raise KeyError("three")

    with pytest.raises(KeyError, match="three"):
        on_threads(task, 5)


def test_a_seed_gives_the_same_noise_on_any_team():
    size = 1 << 17
    alone, together = (gaussian_noise(np.empty(size, np.float32), 1.0, 7, team=given) for given in (None, on_threads))
    assert np.array_equal(alone, together)
