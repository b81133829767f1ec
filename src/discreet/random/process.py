"""The process's own generators: Python's ``random``, NumPy's global one, torch's.

Users' code draws from them (dropout, augmentation, a bootstrap), and whoever knows their seed knows what it drew. Where
that code meets private records, they are given states that nobody knows, and afterwards those they had.

Torch is looked after once it is imported; this room does not import it. Generators that users' code made for itself
(``np.random.default_rng(0)``, ``torch.Generator()``) are not the process's: see ``held``.
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random.mtrand import get_bit_generator, set_bit_generator
from numpy.typing import NDArray

from discreet.random.source import Rng

__all__ = ["States", "draw_from", "key_all", "twister", "was_seeded"]

_WORDS = 624  # of a Mersenne twister's state, 32 bits each
_KEY = 4  # words of 64 bits, for generators that spread a seed over their state by themselves

_ours: np.random.MT19937 | None = None  # what NumPy's global functions draw from while the states are ours
_untouched = b""  # the state of the user's, when we last put it back without a normal number in store


@dataclass(frozen=True, slots=True)
class States:
    """The states of all generators at one moment, which can be put back once ``key_all`` has given them others.

    NumPy's global functions draw from a bit generator of the user's, which is set aside, not copied.
    """

    python: Any
    numpy: tuple[np.random.BitGenerator, bytes, dict[str, Any] | None]  # the last where the first two are not all
    torch: list[tuple[Any, Any]]

    @classmethod
    def now(cls) -> States:
        """As they are."""
        return cls(random.getstate(), _numpy_now(), [(each, each.get_state()) for each in _torch_generators()])

    def restore(self) -> None:
        """Put them back."""
        global _untouched
        random.setstate(self.python)
        bits, _untouched, full = self.numpy
        set_bit_generator(bits)
        if full is not None:
            np.random.set_state(full)  # noqa: NPY002  (the user's generator, not ours)
            _untouched = b""
        for each, state in self.torch:
            each.set_state(state)

    def with_seeds_of(self, later: States) -> States:
        """Those of ``later``, on the generators that were there before."""
        bits, fingerprint, full = self.numpy
        if type(bits) is np.random.MT19937:  # another kind cannot have been seeded there
            fingerprint, full = b"", later.numpy[2]
        return States(later.python, (bits, fingerprint, full), later.torch)

    def same_as(self, other: States) -> bool:
        """Whether nothing was drawn in between."""
        numpy = [(fingerprint, repr(full)) for _, fingerprint, full in (self.numpy, other.numpy)]
        torch = [[state.tolist() for _, state in states.torch] for states in (self, other)]
        return self.python == other.python and numpy[0] == numpy[1] and torch[0] == torch[1]


def _numpy_now() -> tuple[np.random.BitGenerator, bytes, dict[str, Any] | None]:
    """NumPy's bit generator, which is taken out as it is; and its state, where somebody may move it or a normal number
    is in store.

    Normal numbers are made in pairs, and the second of a pair is lost with the bit generator. To ask for it takes
    longer than all else here, so it is not asked where the bit generator has not moved since there was none.
    """
    bits = get_bit_generator()
    fingerprint = _fingerprint(bits)
    if fingerprint and fingerprint == _untouched and bits is not _ours:
        return bits, fingerprint, None
    full: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    lasts = fingerprint and bits is not _ours and not full["has_gauss"]
    return bits, fingerprint, None if lasts else full


def _fingerprint(bits: np.random.BitGenerator) -> bytes:
    """The state of a Mersenne twister, read where it lies: NumPy's own ``state`` takes a hundred times as long. Nothing
    of other kinds."""
    if type(bits) is not np.random.MT19937:
        return b""
    return ctypes.string_at(bits.ctypes.state_address, 4 * (_WORDS + 1))


def key_all(rng: Rng) -> int:
    """Give every generator a state from ``rng``; returns what torch will call its seed (``was_seeded``).

    All of a state is drawn where a generator would take 32 bits for a seed, which can be tried out one by one.
    """
    global _ours
    words = rng.words(2 * _KEY)
    random.seed(int.from_bytes(words[:_KEY].tobytes()))
    if _ours is None:
        _ours = np.random.MT19937(0)
    set_bit_generator(_ours)
    np.random.seed(words[_KEY:].view(np.uint32))  # noqa: NPY002
    processor, *others = _torch_generators() or [None]
    if processor is None:
        return 0
    processor.set_state(twister(rng))
    for each in others:
        each.manual_seed(rng.word() >> 1)  # counter-based: the seed is all of its key
    return int(processor.initial_seed())


def was_seeded(tag: int) -> bool:
    """Whether somebody has seeded torch since it was keyed."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.default_generator.initial_seed() != tag


def _torch_generators() -> list[Any]:
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return []
    return [torch.default_generator, *(torch.cuda.default_generators if torch.cuda.is_initialized() else ())]


def twister(rng: Rng) -> Any:
    """A state of a generator of torch's on the processor: a name that stands for its seed, one word left and seeded,
    the next, the words, and no normal number in store."""
    words: NDArray[np.uint64] = rng.words(1 + _WORDS // 2)
    state = np.zeros(8 + _WORDS, np.uint64)
    state[0], state[1] = words[0], 1 | 1 << 32
    state[3 : 3 + _WORDS] = words[1:].view(np.uint32)
    return sys.modules["torch"].from_numpy(state.view(np.uint8))


@contextmanager
def draw_from(rng: Rng) -> Iterator[None]:
    """Users' code in the block draws from ``rng``, whichever of the process's generators it asks.

    >>> from discreet.random import seeded
    >>> before = random.getstate()
    >>> with draw_from(seeded(1)):
    ...     one = random.random(), float(np.random.rand())
    >>> with draw_from(seeded(1)):
    ...     assert one == (random.random(), float(np.random.rand()))
    >>> random.getstate() == before
    True
    """
    kept = States.now()
    key_all(rng)
    try:
        yield
    finally:
        kept.restore()
