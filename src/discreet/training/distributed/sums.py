r"""The sum over ranks, and noise that is drawn once.

Every record's gradient was clipped whole, by the one rank that has the record; what is left is
:math:`\sum_r S_r + \sigma z`. Every entry of the sum has one rank that draws its noise: under ``fully_shard`` the one
that keeps the entry, otherwise the ranks share the vector out, each adds noise to its part of its own sum, and the
sums are added up. So no entry is noised twice or not at all, and drawing is divided among the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from discreet.errors import extra
from discreet.training.distributed.ranks import Ranks, answered
from discreet.training.distributed.shards import is_sharded

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Sums"]


class Sums:
    """Adds up the sums of the ranks for the parameters ``trained``."""

    def __init__(self, ranks: Ranks, trained: Mapping[str, Tensor]) -> None:
        self._ranks, self._trained = ranks, list(trained.values())
        self._sharded = [i for i, p in enumerate(self._trained) if is_sharded(p)]
        self._groups: dict[tuple[torch.dtype, torch.device], list[int]] = {}
        for i, p in enumerate(self._trained):
            if not is_sharded(p):
                self._groups.setdefault((torch.promote_types(p.dtype, torch.float32), p.device), []).append(i)

    @property
    def alone(self) -> bool:
        """Whether one process has all of it."""
        return self._ranks.count == 1 and not self._sharded

    def opened(self, total: list[Tensor], divisor: float) -> tuple[list[Tensor], Callable[[], list[Tensor]]]:
        """The parts that this rank puts noise on and divides, and what then gives the sum over all ranks, divided.

        ``total`` is used up.
        """
        sums: list[Tensor] = list(total)
        own = [self._scatter(sums, i) for i in self._sharded]
        # what comes after the parameters, as an audit's canaries do, is shared out by itself
        beside = [[i] for i in range(len(self._trained), len(total))]
        groups = [*self._groups.values(), *beside]
        flat = [(places, torch.cat([total[i].reshape(-1) for i in places])) for places in groups]
        total.clear()
        for _, vector in flat:
            start, end = (len(vector) * part // self._ranks.count for part in (self._ranks.rank, self._ranks.rank + 1))
            vector[:start] /= divisor
            vector[end:] /= divisor
            own.append(vector[start:end])

        def added() -> list[Tensor]:
            for places, vector in flat:
                self._ranks.add_up(vector)
                self._set(sums, places, vector)
            return sums

        return own, added

    def _scatter(self, sums: list[Tensor], place: int) -> Tensor:
        """The rank's shard of the sum over ranks of one parameter, in place of the rank's own sum."""
        from torch.distributed.tensor import DTensor, Partial

        like, mine = self._trained[place], sums[place]
        with answered(), torch.no_grad():
            partial = DTensor.from_local(mine, like.device_mesh, [Partial()], run_check=False)  # type: ignore[attr-defined]
            sums[place] = partial.redistribute(placements=like.placements)  # type: ignore[attr-defined]
            return sums[place].to_local()  # type: ignore[attr-defined,no-any-return]

    def _set(self, sums: list[Tensor], places: Sequence[int], vector: Tensor) -> None:
        parts = vector.split_with_sizes([sums[i].numel() for i in places])
        for i, part in zip(places, parts, strict=True):
            sums[i] = part.view(sums[i].shape)
