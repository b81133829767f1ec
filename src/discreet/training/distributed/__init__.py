"""One private run on several processes, on ``torch.distributed`` alone.

``Ranks`` are the processes and what they say to each other, ``SharedStreams`` the one secret that batches are drawn by,
``Sums`` the sum over ranks with noise that is drawn once, ``Shards`` a model under ``fully_shard``, ``unwrapped`` one
under ``DistributedDataParallel``.

Decision 430.
"""

from __future__ import annotations

from discreet.training.distributed.collectives import forbid_collectives
from discreet.training.distributed.likeness import likeness, options
from discreet.training.distributed.ranks import Ranks, bits, digest
from discreet.training.distributed.shards import Shards, as_one_process, as_shards, is_sharded
from discreet.training.distributed.streams import SharedStreams
from discreet.training.distributed.sums import Sums
from discreet.training.distributed.wrapping import admit_wrapper, unwrap

__all__ = [
    "Ranks",
    "Shards",
    "SharedStreams",
    "Sums",
    "admit_wrapper",
    "as_one_process",
    "as_shards",
    "bits",
    "digest",
    "forbid_collectives",
    "is_sharded",
    "likeness",
    "options",
    "unwrap",
]
