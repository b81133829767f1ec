"""Named streams: a source for each purpose and index, that repeats under a seed and stays in step under replay."""

from __future__ import annotations

import itertools

import pytest

from discreet.auditing import ReplayError, replay
from discreet.mechanisms import Laplace
from discreet.random import Streams, seeded, system

PURPOSES = ("public", "sampling", "noise")
PLACES = [(), (0,), (1,), (2**32 - 1,), (0, 0), (0, 1), (1, 0), (3, 1)]


def test_under_a_seed_every_purpose_and_index_has_a_stream_of_its_own_that_repeats():
    first, again = Streams(7), Streams(seeded(7))
    words = {
        (purpose, place): getattr(first, purpose)(*place).word()
        for purpose, place in itertools.product(PURPOSES, PLACES)
    }
    assert first.reproducible
    assert len(set(words.values())) == len(words)
    assert all(getattr(again, purpose)(*place).word() == word for (purpose, place), word in words.items())
    assert Streams(8).noise(0).word() != first.noise(0).word()


def test_without_a_seed_sampling_and_noise_are_the_systems():
    free = Streams()
    assert not free.reproducible
    assert free.sampling(3) is system()
    assert free.noise(3) is system()
    assert free.public(1).word() == free.public(1).word() != free.public(2).word()
    assert free.public(1).word() != Streams().public(1).word()


@pytest.mark.parametrize("index", [-1, 2**32, 1.5, True])
def test_an_index_that_could_be_another_is_refused(index):
    with pytest.raises(ValueError, match="index"):
        Streams(7).noise(index)


def adaptive(rows, choose):
    """Rounds in which a public choice decides what is asked, and noise is drawn in between."""
    asked = []
    for turn in range(3):
        threshold = choose(turn) % 5
        answer = Laplace(sensitivity=1.0, epsilon=1.0).release(sum(row > threshold for row in rows)).value
        asked.append((threshold, answer))
    return asked


def test_public_choices_are_the_same_in_both_runs_of_a_replay():
    """Also without a seed. The system's own source would make others on the neighbour, which is the power of the
    test."""

    def named(rows):
        streams = Streams()
        return adaptive(rows, lambda turn: streams.public(turn).word())

    replay(named, [1, 2, 3, 4], [1, 2, 3])
    with pytest.raises(ReplayError, match=r"results differ|another step|differs by"):
        replay(lambda rows: adaptive(rows, lambda turn: system().word()), list(range(400)), list(range(399)))
