"""Where randomness comes from: the operating system by default, a seed only in the open.

``system()`` keys AES-128 in counter mode with 128 bits of operating-system entropy (randomgen's ``AESCounter``) and
is the source of every release that was not given ``rng=``. ``seeded(seed)`` is for tests and experiments; whoever
knows the seed can subtract the noise, so a release made with it says ``reproducible=True``.

Two processes never share a system stream: a forked child replaces every system key before it runs a line of its own,
and a system source that is copied or pickled arrives as a fresh one. A seeded source is copied as it stands, because
repeating is what it is for. Two threads may share a source: whoever draws holds the bit generator's lock.

Reference: Salmon et al. (2011), "Parallel random numbers: as easy as 1, 2, 3" (AES as a counter-based generator).
"""

from __future__ import annotations

import ctypes
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter

from discreet.errors import whole

__all__ = [
    "LANES",
    "Rng",
    "RngLike",
    "Team",
    "address_of",
    "as_rng",
    "from_state",
    "in_lanes",
    "seeded",
    "system",
    "watch_sources",
]

Team: TypeAlias = Callable[[Callable[[int], None], int], None]
"""Who does ``task(0)`` … ``task(count - 1)``, in any order: ``team(task, count)``."""

LANES = 8  # fixed, so that seeded results do not depend on the number of threads
_SMALL = 1 << 14  # numbers: below this, starting threads costs more than it saves


_MAKING = threading.Lock()  # of streams that a source makes when they are asked for first
_drawn: ContextVar[set[bool] | None] = ContextVar("discreet_drawn_sources", default=None)


@contextmanager
def watch_sources() -> Iterator[set[bool]]:
    """What kinds of sources the block draws from: ``True`` stands for reproducible ones, ``False`` for the system's.

    >>> with watch_sources() as kinds:
    ...     _ = seeded(1).word()
    >>> kinds
    {True}
    """
    kinds: set[bool] = set()
    token = _drawn.set(kinds)
    try:
        yield kinds
    finally:
        _drawn.reset(token)


class Rng:
    """A stream of random words that knows whether it can be repeated.

    >>> seeded(1).below(10**30) == seeded(1).below(10**30)
    True
    >>> seeded(1).reproducible, system().reproducible
    (True, False)
    """

    __slots__ = ("__weakref__", "_address", "_bits", "_lanes", "_quick", "_seeds", "reproducible")

    def __init__(self, seed: int | np.random.SeedSequence | None = None) -> None:
        self.reproducible = seed is not None
        if seed is not None and not isinstance(seed, np.random.SeedSequence):
            seed = np.random.SeedSequence(whole("seed", seed))
        self._seeds = seed
        self._rekey()
        if not self.reproducible:
            _SYSTEM_SOURCES.add(self)

    def _rekey(self) -> None:
        # New objects, not new keys in the old ones: another thread of the parent may have held the old lock.
        self._bits: Any = AESCounter(key=secrets.randbits(128)) if self._seeds is None else AESCounter(self._seeds)
        self._address = address_of(self._bits)
        self._lanes: list[Rng] = []
        self._quick: Any = None

    def __repr__(self) -> str:
        return "seeded(...)" if self.reproducible else "system()"

    def __reduce__(self) -> Any:
        if not self.reproducible:
            return Rng, ()
        return _restore, (self._seeds, self._bits.state, self._lanes, self._quick)

    def _note(self) -> None:
        if (kinds := _drawn.get()) is not None:
            kinds.add(self.reproducible)

    @property
    def lock(self) -> Any:
        """Held while drawing through ``address``; ``words``, ``below`` and ``generator`` take it themselves."""
        return self._bits.lock

    @property
    def bits(self) -> Any:
        """The bit generator; whoever draws from it holds ``lock``."""
        self._note()
        return self._bits

    @property
    def address(self) -> tuple[int, int]:
        """The C function that gives the next word, and its state, as integers for compiled code."""
        self._note()
        return self._address

    def quick(self) -> tuple[int, int]:
        """As ``address``, of a faster stream that is keyed by this one and is not cryptographic."""
        self._note()
        with _MAKING:  # another thread's would be freed while its address is in use
            if self._quick is None:
                self._quick = np.random.SFC64([int(word) for word in self._bits.random_raw(4)])
        return address_of(self._quick)

    @property
    def generator(self) -> np.random.Generator:
        """A NumPy generator on the same stream: fine for shuffling, not for noise that must not leak."""
        self._note()
        return np.random.Generator(self._bits)

    def lanes(self) -> list[Rng]:
        """``LANES`` further sources, independent of this one and of each other, for filling parts of a large array."""
        self._note()  # here, because another thread may do the drawing
        with _MAKING:  # two lists of a seed's lanes would draw the same words twice
            if not self._lanes:
                self._lanes = [Rng(self._seeds and _child(self._seeds, lane)) for lane in range(LANES)]
        return self._lanes

    def words(self, count: int) -> NDArray[np.uint64]:
        """``count`` uniform 64-bit words."""
        self._note()
        words: NDArray[np.uint64] = self._bits.random_raw(count)
        return words

    def word(self) -> int:
        """One uniform 64-bit word."""
        self._note()
        return int(self._bits.random_raw())

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound), exactly, for a bound of any size."""
        size = (bound - 1).bit_length()
        while True:
            draw = 0
            for _ in range(-(-size // 64)):
                draw = draw << 64 | self.word()
            draw &= (1 << size) - 1
            if draw < bound:
                return draw


RngLike: TypeAlias = Rng | int | None

_SYSTEM_SOURCES: weakref.WeakSet[Rng] = weakref.WeakSet()
_system: Rng | None = None


def system() -> Rng:
    """The process's own source, keyed by the operating system.

    >>> system() is system()
    True
    """
    global _system
    if _system is None:
        _system = Rng()
    return _system


def seeded(seed: int) -> Rng:
    """A repeatable source, for tests and experiments: what it makes is not private.

    >>> int(seeded(7).words(2)[1]) == int(seeded(7).words(2)[1])
    True
    """
    return Rng(seed)


def as_rng(rng: RngLike) -> Rng:
    """The source an ``rng=`` argument means: none is the system's, a whole number is a seed.

    >>> as_rng(3)
    seeded(...)
    """
    if rng is None:
        return system()
    return rng if isinstance(rng, Rng) else seeded(whole("rng", rng))


def from_state(random_state: Any) -> Rng:
    """The source for scikit-learn's ``random_state``: the system's for none, reproducible for a seed or a generator."""
    if random_state is None or isinstance(random_state, Rng):
        return as_rng(random_state)
    if isinstance(random_state, Integral):
        return seeded(int(random_state))
    if isinstance(random_state, np.random.RandomState):
        return seeded(int(random_state.randint(2**31 - 1)))
    if isinstance(random_state, np.random.Generator):
        return seeded(int(random_state.integers(2**63 - 1)))
    raise ValueError(
        f"random_state is a {type(random_state).__name__}, but must be None, a whole number or a NumPy generator."
    )


def _child(seeds: np.random.SeedSequence, lane: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seeds.entropy, spawn_key=(*seeds.spawn_key, lane))


def _restore(seeds: np.random.SeedSequence, state: Any, lanes: list[Rng], quick: Any) -> Rng:
    rng = Rng(seeds)
    rng._bits.state, rng._lanes, rng._quick = state, lanes, quick
    return rng


def address_of(bits: Any) -> tuple[int, int]:
    """A bit generator's C function for the next word, and its state, as integers."""
    interface = bits.ctypes
    function = ctypes.cast(interface.next_uint64, ctypes.c_void_p).value
    assert function is not None
    return function, int(interface.state_address)


def _rekey_in_child() -> None:
    global _MAKING
    _MAKING = threading.Lock()
    for source in list(_SYSTEM_SOURCES):
        source._rekey()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rekey_in_child)


# --- many numbers at once -------------------------------------------------------------------------------------------


def in_lanes(
    fill: Callable[[Any, Rng], None], out: NDArray[Any], rng: Rng, *, small: int = _SMALL, team: Team | None = None
) -> None:
    """``fill(part, source)`` for each of ``LANES`` parts of a flat array; a small one is filled in a single part.

    Which stream fills which part depends on the size alone, so a seeded result is the same on any machine.
    """
    if out.size < small:
        fill(out, rng)
        return
    parts, sources = np.array_split(out, LANES), rng.lanes()
    (team or _threads_of_our_own)(lambda lane: fill(parts[lane], sources[lane]), LANES)


def _threads_of_our_own(task: Callable[[int], None], count: int) -> None:
    with ThreadPoolExecutor(max_workers=min(count, _threads())) as pool:
        list(pool.map(task, range(count)))


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
