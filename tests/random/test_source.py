"""Sources: system entropy by default, never shared between processes; seeds repeat."""

import os
import pickle
import threading

import numpy as np
import pytest

from discreet.random import Rng, as_rng, seeded, system
from discreet.random.source import LANES


def test_a_seed_repeats_and_says_so():
    assert seeded(5).words(4).tolist() == seeded(5).words(4).tolist()
    assert seeded(5).words(4).tolist() != seeded(6).words(4).tolist()
    assert seeded(5).reproducible
    assert not system().reproducible


def test_two_system_sources_differ():
    assert Rng().words(4).tolist() != Rng().words(4).tolist()


def test_none_is_the_system_and_whole_numbers_are_seeds():
    assert as_rng(None) is system()
    assert as_rng(3).words(2).tolist() == seeded(3).words(2).tolist()
    for wrong in (1.5, "seed", True, -1):
        with pytest.raises(ValueError, match=r"rng|seed"):
            as_rng(wrong)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_stream_of_its_own():
    """Without reseeding, parent and child would draw the same words from the same state."""
    source, kept = system(), Rng()
    source.words(3)
    kept.lanes()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        drawn = [*source.words(4), *kept.words(4), *kept.lanes()[0].words(4)]
        os.write(write, ",".join(map(str, drawn)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    childs = {int(x) for x in os.read(read, 10_000).split(b",")}
    parents = {int(x) for x in [*source.words(4), *kept.words(4), *kept.lanes()[0].words(4)]}
    assert len(childs) == 12
    assert not childs & parents


def test_a_copied_system_source_is_a_fresh_one_and_a_seeded_one_continues():
    fresh = pickle.loads(pickle.dumps(system()))
    assert not fresh.reproducible
    assert fresh.words(4).tolist() != system().words(4).tolist()
    rng = seeded(1)
    rng.words(5)
    rng.lanes()[2].words(3)
    copy = pickle.loads(pickle.dumps(rng))
    assert copy.words(4).tolist() == rng.words(4).tolist()
    assert copy.lanes()[2].words(4).tolist() == rng.lanes()[2].words(4).tolist()


def test_lanes_are_distinct_streams():
    firsts = {lane.word() for lane in seeded(1).lanes()} | {seeded(1).word()}
    assert len(firsts) == LANES + 1


def test_threads_that_share_a_source_draw_different_words():
    from discreet.random import discrete_gaussian

    rng, results = Rng(), [None] * 4

    def draw(i):
        results[i] = discrete_gaussian(1e12, size=5000, rng=rng)

    threads = [threading.Thread(target=draw, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drawn = np.concatenate(results)
    assert len(np.unique(drawn)) > 0.999 * len(drawn)


def test_below_covers_its_range_evenly_at_any_width():
    rng = seeded(3)
    assert {rng.below(3) for _ in range(100)} == {0, 1, 2}
    assert rng.below(1) == 0
    assert max(rng.below(10**40) for _ in range(50)) > 10**38


def test_a_source_does_not_show_its_seed():
    assert "12345" not in repr(seeded(12345))
