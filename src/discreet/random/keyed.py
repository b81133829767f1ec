"""Streams that can be drawn again by who holds their key, and by nobody else.

Noise that is taken back later must be known until then. Where it is as large as a model, sixteen bytes are kept
instead: a key, drawn from the run's own source, from which the same noise comes once more. The key removes the noise,
so it is as secret as the data; keep it no longer than it is needed, and never beside what is published.
"""

from __future__ import annotations

import hashlib
from typing import Any

from randomgen import AESCounter

from discreet.random.source import LANES, Rng, address_of

__all__ = ["Keyed", "new_key"]

KEY_BYTES = 16


def new_key(rng: Rng) -> bytes:
    """A key of 128 bits from a source."""
    return rng.words(KEY_BYTES // 8).tobytes()


class Keyed(Rng):
    """AES in counter mode under a key, each lane under one derived from it; ``reproducible`` is its source's.

    >>> from discreet.random import seeded, system
    >>> key = new_key(system())
    >>> source, other = Keyed(key), Keyed(key)
    >>> first = source.word()
    >>> source.rewind()
    >>> source.word() == other.word() == first, source.reproducible
    (True, False)
    """

    __slots__ = ("_first", "_key")

    def __init__(self, key: bytes, *, reproducible: bool = False) -> None:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise ValueError(f"A key has {KEY_BYTES} bytes.")
        self.reproducible, self._key, self._seeds = reproducible, key, None
        self._rekey()

    def _rekey(self) -> None:
        self._bits: Any = AESCounter(key=int.from_bytes(self._key, "big"))
        self._first = self._bits.state
        self._address = address_of(self._bits)
        self._lanes: list[Rng] = []
        self._quick: Any = None

    def rewind(self) -> None:
        """Begin again: what was drawn is drawn once more. Faster than another of the same key."""
        self._bits.state, self._quick = self._first, None
        for lane in self._lanes:
            assert isinstance(lane, Keyed)
            lane.rewind()

    def __repr__(self) -> str:
        return "Keyed(...)"

    def __reduce__(self) -> Any:
        raise TypeError("A keyed source is secret: it is neither copied nor stored. Its owner keeps the key.")

    def lanes(self) -> list[Rng]:
        """``LANES`` further sources, each under a key of its own."""
        self._note()
        if not self._lanes:
            self._lanes = [Keyed(_derive_key(self._key, lane), reproducible=self.reproducible) for lane in range(LANES)]
        return self._lanes


def _derive_key(key: bytes, lane: int) -> bytes:
    return hashlib.blake2b(lane.to_bytes(4, "big"), digest_size=KEY_BYTES, key=key, person=b"discreet lane").digest()
