"""The process's generators, and those that users' objects hold: keyed for a while, and then as they were."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from discreet.random import seeded, system  # noqa: E402
from discreet.random.held import generators_in, key_each  # noqa: E402
from discreet.random.process import SecretStates, States, draw_from, key_all, was_seeded  # noqa: E402

GLOBAL = np.random.default_rng(5)


def draws() -> list[float]:
    """Something of every generator, normal numbers too, of which every second one is in store."""
    return [
        random.random(),
        random.gauss(0.0, 1.0),
        float(np.random.rand()),  # noqa: NPY002
        float(np.random.randn()),  # noqa: NPY002
        float(torch.rand(())),
        float(torch.randn(())),
    ]


def begin(before: int) -> None:
    """Seeds, and so many draws."""
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    for _ in range(before):
        draws()


@pytest.mark.parametrize("before", [0, 1, 2])
def test_generators_go_on_as_if_nobody_had_drawn(before):
    begin(before)
    wanted = [draws() for _ in range(3)]
    begin(before)
    found = []
    for _ in range(3):
        with draw_from(system()), draw_from(seeded(4)):  # one inside the other
            draws()
        found.append(draws())
    assert found == wanted


def test_another_bit_generator_of_numpys_is_put_back():
    users = np.random.get_bit_generator()
    other = np.random.PCG64(3)
    try:
        np.random.set_bit_generator(other)
        kept = other.state
        with draw_from(system()):
            draws()
        assert np.random.get_bit_generator() is other
        assert other.state == kept
    finally:
        np.random.set_bit_generator(users)


def test_a_key_decides_all_and_the_system_repeats_nothing():
    found = []
    for source in (seeded(1), seeded(1), system(), system()):
        with draw_from(source):
            found.append(draws())
    assert found[0] == found[1]
    assert all(a != b for a, b in zip(found[2], found[3], strict=True))


def test_all_of_torchs_state_is_drawn_not_a_seed_of_32_bits():
    """Its generator takes 32 bits of a seed, which can be tried out: no such seed gives this state."""
    with draw_from(seeded(1)):
        state = torch.get_rng_state().numpy().view(np.uint64)
        torch.default_generator.manual_seed(torch.default_generator.initial_seed())
        other = torch.get_rng_state().numpy().view(np.uint64)
    assert len(set(state[3:627].tolist())) > 600
    assert not np.array_equal(state[3:627], other[3:627])
    assert state[0] == other[0]


def test_the_law_of_what_torch_draws_is_uniform():
    """The mean of 10⁶ uniform numbers: beyond six deviations with probability 2e-9; a shift of 0.003 is ten."""
    with draw_from(system()):
        mean = float(torch.rand(1_000_000, dtype=torch.float64).mean())
    assert abs(mean - 0.5) < 6 * (1 / 12) ** 0.5 / 1000 < 0.003


def test_a_seed_set_by_hand_is_noticed():
    kept = States.now()
    tag = key_all(system())
    assert not was_seeded(tag)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
    assert not was_seeded(tag)
    torch.manual_seed(0)
    assert was_seeded(tag)
    kept.restore()


DRAWS = {
    "python": random.random,
    "a pair of python's normal numbers": lambda: random.gauss(0, 1),
    "numpy": np.random.rand,
    "torch": lambda: torch.rand(1),
    "a seed": lambda: (random.seed(3), np.random.seed(3), torch.manual_seed(3)),  # noqa: NPY002
}


def first_draws() -> list[float]:
    """What each generator draws next, seen without moving it."""
    kept = States.now()
    drawn = [random.random(), float(np.random.rand()), float(torch.rand(1))]  # noqa: NPY002
    kept.restore()
    return drawn


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("closed", [True, False])
def test_secret_states_that_were_drawn_from_never_come_again(kind, closed):
    begin(0)
    kept, states, seen = States.now(), SecretStates(), []
    for _ in range(4):
        states.install(system())
        seen.append(first_draws())
        DRAWS[kind]()
        if closed:  # otherwise an error ended the pass
            states.retire()
        kept.restore()
    touched = {"python": [0], "a pair of python's normal numbers": [0], "numpy": [1], "torch": [2], "a seed": [0, 1, 2]}
    for place in touched[kind]:
        assert len({drawn[place] for drawn in seen}) == 4
    assert first_draws() == (begin(0), first_draws())[1]


def test_untouched_secret_states_stay_secret_and_are_not_shared_by_a_fork():
    kept, states = States.now(), SecretStates()
    states.install(system())
    first = first_draws()
    states.retire()
    kept.restore()
    states.install(system())
    assert first_draws() == first  # as good as new: nobody has seen them
    states._home = None  # as a forked child finds it
    states.install(system())
    assert all(one != other for one, other in zip(first, first_draws(), strict=True))
    kept.restore()


class Held:
    """Holds generators of all kinds in all places."""

    def __init__(self) -> None:
        own = np.random.default_rng(1)
        self.noise = partial(np.random.RandomState(2).normal, 0.0)
        self.inside = [{"coin": random.Random(3).random}]
        self.closed = lambda: own.normal()
        self.torch = torch.Generator().manual_seed(4)
        self.records = [random.Random(i) for i in range(1000)]  # too many to be looked into

    def __getitem__(self, index: int) -> list[float]:
        drawn = float(torch.rand((), generator=self.torch))
        return [GLOBAL.normal(), self.noise(), self.inside[0]["coin"](), self.closed(), drawn]


def test_generators_that_objects_hold_are_found_keyed_and_put_back():
    held = Held()
    generators = generators_in(held)
    assert len(generators) == 5
    kept = key_each(generators, seeded(1))
    one = held[0]
    key_each(generators, seeded(1))
    assert held[0] == one
    key_each(generators, seeded(2))
    assert all(a != b for a, b in zip(held[0], one, strict=True))
    kept()
    assert held[0][1:] == Held()[0][1:]


def test_the_process_s_own_are_not_held():
    assert generators_in([random, random.random, np.random.rand, torch.default_generator, random.SystemRandom()]) == []


@pytest.mark.parametrize("drawn", [False, True])
def test_a_pass_that_was_never_closed_leaves_no_secret_state_to_the_users_seeds(drawn):
    """NumPy's global functions then go on with a generator of ours, which the user seeds: it is the user's now."""
    states, secret, public = States.now(), SecretStates(), []
    secret.install(system())  # and an error ends the script's loop here
    for _ in range(3):
        np.random.seed(0)  # noqa: NPY002
        public.append(np.random.rand())  # noqa: NPY002
        np.random.seed(0)  # noqa: NPY002
        users = States.now()
        secret.install(system())
        if drawn:
            assert np.random.rand() not in public  # noqa: NPY002
        secret.retire()
        users.restore()
        assert np.random.rand() == public[0]  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    users = States.now()
    secret.install(system())
    assert np.random.rand() not in public  # noqa: NPY002
    users.restore()
    states.restore()
