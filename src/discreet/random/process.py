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
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.random.mtrand import get_bit_generator, set_bit_generator
from numpy.typing import NDArray

from discreet.forks import here
from discreet.random.source import Rng

__all__ = ["SecretStates", "States", "draw_from", "key_all", "twister", "was_seeded"]

_WORDS = 624  # of a Mersenne twister's state, 32 bits each
_BYTES = 4 * (_WORDS + 1)  # with the place of the next word
_PYTHON: Any = random._inst
_KEY = 4  # words of 64 bits, for generators that spread a seed over their state by themselves

_ours: list[np.random.MT19937] = []  # what NumPy's global functions draw from while the states are ours
_seen: tuple[Any, memoryview] = (None, memoryview(b""))  # the twister of NumPy's that was read last, and its state
_untouched = b""  # the state of the user's, when we last put it back without a normal number in store


class States(NamedTuple):
    """The states of all generators at one moment, which can be put back once ``key_all`` has given them others.

    NumPy's global functions draw from a bit generator of the user's, which is set aside, not copied.
    """

    python: tuple[Any, Any]  # the words, and a normal number in store
    numpy: tuple[np.random.BitGenerator, bytes, dict[str, Any] | None]  # the last where the first two are not all
    torch: list[tuple[Any, Any]]

    @classmethod
    def now(cls) -> States:
        """As they are."""
        return cls(_python_now(), _numpy_now(), _torch_now())

    def restore(self) -> None:
        """Put them back."""
        global _untouched
        _set_python(self.python)
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


def _python_now() -> tuple[Any, Any]:
    words = _python_words()
    return (random.getstate() if words is None else bytes(words)), _PYTHON.gauss_next


def _set_python(state: tuple[Any, Any]) -> None:
    words = _python_words()
    if words is None:
        random.setstate(state[0])
    else:
        words[:] = state[0]
    _PYTHON.gauss_next = state[1]


@cache
def _python_words() -> memoryview | None:
    """The state of Python's generator where it lies: to make the tuple of 625 numbers that Python calls its state, or
    to set it, takes longer than all else here. None on a Python that keeps it elsewhere, or may move it meanwhile."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    if type(_PYTHON).__basicsize__ < object.__basicsize__ + _BYTES:
        return None
    # CPython's object: what every object begins with, the place of the next word, the words
    view = _memory(id(_PYTHON) + object.__basicsize__)
    *words, place = random.getstate()[1]
    return view if bytes(view) == np.array([place, *words], np.uint32).tobytes() else None


def _memory(address: int) -> memoryview:
    """A twister's state of 624 words and a place, as bytes that can be read and written."""
    return memoryview((ctypes.c_ubyte * _BYTES).from_address(address)).cast("B")


def _numpy_now() -> tuple[np.random.BitGenerator, bytes, dict[str, Any] | None]:
    """NumPy's bit generator, which is taken out as it is; and its state, where somebody may move it or a normal number
    is in store.

    Normal numbers are made in pairs, and the second of a pair is lost with the bit generator. To ask for it takes
    longer than all else here, so it is not asked where the bit generator has not moved since there was none.
    """
    bits = get_bit_generator()
    fingerprint = _fingerprint(bits)
    if fingerprint and fingerprint == _untouched and bits not in _ours:
        return bits, fingerprint, None
    full: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    lasts = fingerprint and bits not in _ours and not full["has_gauss"]
    return bits, fingerprint, None if lasts else full


def _fingerprint(bits: np.random.BitGenerator) -> bytes:
    """The state of a Mersenne twister, read where it lies: NumPy's own ``state`` takes a hundred times as long. Nothing
    of other kinds."""
    global _seen
    if type(bits) is not np.random.MT19937:
        return b""
    if _seen[0] is not bits:  # kept alive, so that its memory is its own
        _seen = bits, _memory(bits.ctypes.state_address)
    return bytes(_seen[1])


def key_all(rng: Rng) -> int:
    """Give every generator a state from ``rng``; returns what torch will call its seed (``was_seeded``).

    All of a state is drawn where a generator would take 32 bits for a seed, which can be tried out one by one.
    """
    if not _ours:
        _ours.append(np.random.MT19937(0))
    _key_python(rng)
    _key_numpy(_ours[0], rng)
    return _key_torch(rng)


def _key_python(rng: Rng) -> None:
    random.seed(int.from_bytes(rng.words(_KEY).tobytes()))


def _key_numpy(bits: np.random.MT19937, rng: Rng) -> None:
    set_bit_generator(bits)
    np.random.seed(rng.words(_KEY).view(np.uint32))  # noqa: NPY002


def _key_torch(rng: Rng) -> int:
    processor, *others = _torch_generators() or [None]
    if processor is None:
        return 0
    processor.set_state(twister(rng))
    for each in others:
        each.manual_seed(rng.word() >> 1)  # counter-based: the seed is all of its key
    return int(processor.initial_seed())


class SecretStates:
    """States that nobody knows, for the process's generators while private records are processed.

    Torch's generator goes on, pass after pass, where the one before left it. Python's and NumPy's do not say whether
    they were seeded in a pass, so a state of theirs comes again as long as nothing moved it, and is drawn anew
    otherwise. One pass has them at a time; a forked child makes its own.
    """

    def __init__(self) -> None:
        self._home: Any = None
        self._in_use = False
        self._forget()

    def _forget(self) -> None:
        """All states are drawn anew the next time, and NumPy's bit generator is left to whoever may have it now."""
        self._python: Any = None  # a state, or none: to be drawn
        self._bits, self._numpy = np.random.MT19937(0), b""  # the second is a state, or nothing: to be drawn
        self._words = _memory(self._bits.ctypes.state_address)
        _ours.append(self._bits)
        self._torch: list[tuple[Any, Any]] = []  # generators and their states
        self._tag = 0

    def install(self, rng: Rng) -> int:
        """Give every generator its state, new ones from ``rng``; returns what torch will call its seed."""
        home = here()
        if self._in_use or self._home != home:  # in use: a pass that was never closed, because of an error say
            self._forget()
        self._in_use, self._home = True, home
        if self._python is None:
            _key_python(rng)
            self._python = _python_now()
        else:
            _set_python(self._python)
        if self._numpy:
            set_bit_generator(self._bits)
        else:
            _key_numpy(self._bits, rng)
            self._numpy = bytes(self._words)
        if len(self._torch) == len(_torch_generators()):  # devices may have come since
            for each, state in self._torch:
                each.set_state(state)
        else:
            self._tag = _key_torch(rng)
        return self._tag

    def retire(self) -> None:
        """The pass is over."""
        if not self._in_use:
            return
        self._in_use = False
        if _python_now() != self._python:
            self._python = None
        if bytes(self._words) != self._numpy:
            self._numpy = b""
        self._torch = [] if was_seeded(self._tag) else _torch_now()


def was_seeded(tag: int) -> bool:
    """Whether somebody has seeded torch since it was keyed."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.default_generator.initial_seed() != tag


def _torch_now() -> list[tuple[Any, Any]]:
    return [(each, each.get_state()) for each in _torch_generators()]


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
