"""The streams of a run on several ranks: batches by one secret that all of them know, noise by each rank's own.

Rank 0 draws a key and sends it to the others; a batch is drawn from a stream under that key and the batch's place (its
step, and the loop that draws it), so that every rank draws the same records by the law of one process. No two batches
have one place. The key is in no checkpoint: a run that goes on has a new one.
"""

from __future__ import annotations

import hashlib

from discreet.random import Rng, RngLike, Streams, system
from discreet.random.keyed import KEY_BYTES, Keyed, new_key
from discreet.training.distributed.ranks import Ranks

__all__ = ["SharedStreams"]


class SharedStreams(Streams):
    """The streams of one rank; all ranks must make theirs at the same time.

    >>> one, other = SharedStreams(None, Ranks()), SharedStreams(None, Ranks())
    >>> one.sampling(3).word() == one.sampling(3).word() != other.sampling(3).word()
    True
    """

    __slots__ = ("_key", "_ranks")

    def __init__(self, rng: RngLike, ranks: Ranks) -> None:
        super().__init__(rng)
        ranks.agree({"rng": self._seeded})
        mine = (self._root if self._seeded else system().word(), new_key(system()))
        self._ranks = ranks
        self._root, self._key = ranks.of_first(mine)

    def sampling(self, *index: int) -> Rng:
        """The same on all ranks."""
        if self._seeded:
            return super().sampling(*index)
        place = hashlib.blake2b(repr(index).encode(), digest_size=KEY_BYTES, key=self._key, person=b"discreet batches")
        return Keyed(place.digest())

    def noise(self, *index: int) -> Rng:
        """Another one on every rank."""
        return super().noise(*index, self._ranks.rank)

    def chance(self, *index: int) -> Rng:
        """Another one on every rank: each has rows of its own."""
        return super().chance(*index, self._ranks.rank)
