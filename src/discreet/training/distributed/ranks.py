"""The processes of one run, and the few things they say to each other outside the sums.

All ranks draw the same batches and each takes its share of the rows; all make every step, whether their share is empty
or not. Before anything is summed they meet: if one of them refused or failed, all stop, and nothing is released.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import pickle
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from discreet.errors import BudgetExceeded, extra
from discreet.release import Chargeable, pay
from discreet.training.errors import PrivateTrainingError

with extra("torch"):
    import torch
    import torch.distributed as dist
    from torch import Tensor

__all__ = ["Ranks", "answered", "bits", "digest"]

LOST = (
    "Another rank did not answer: its process ended, or it took longer than the timeout that init_process_group was "
    "given. The step was not made, and the plan stays charged. Start all ranks again and go on from the last "
    "checkpoint, on as many of them as you like."
)
DIFFERENT = (
    "The ranks do not do the same: they are at different batches, drew different records (PerUser's users?), clip at "
    "different norms, or have different weights or options of the optimizer, such as a learning rate that each finds "
    "by itself. Let every rank call step for every batch that its loader yields, with the same arguments, and load "
    "the same checkpoint on all of them."
)
CLOSE = 1 << 39  # in bits of a float: a part in ten thousand, for machines that round differently
STOPPED = (
    "Rank {rank} refused or failed, and its own message says why. The run stops on all ranks, and what was charged "
    "stays charged."
)


class Ranks:
    """The ``count`` processes of a run, of which this is number ``rank``; one, unless there is a process group.

    >>> Ranks().largest_share(3), Ranks(1, 2).largest_share(3)
    (3, 2)
    """

    def __init__(self, rank: int = 0, count: int = 1, device: torch.device | str = "cpu") -> None:
        self.rank, self.count = rank, count
        self.device = device  # where the backend takes its tensors
        self._stopped = False

    @classmethod
    def current(cls, device: torch.device | str = "cpu") -> Ranks:
        """Those of the default process group, which must be there where torchrun started several processes."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size(), device)
        if int(os.environ.get("WORLD_SIZE", "1")) > 1 and dist.is_available() and dist.is_torchelastic_launched():
            raise ValueError(
                "torchrun started several processes, but they do not know of each other, and each would train and "
                "release a model of its own. Before make_private: torch.distributed.init_process_group('gloo')"
            )
        return cls()

    # --- shares ----------------------------------------------------------------------------------------------------

    def largest_share(self, size: int) -> int:
        """The most rows that a rank has of so many."""
        return -(-size // self.count)

    # --- meetings --------------------------------------------------------------------------------------------------

    @contextmanager
    def together(self, *same: int, near: float = 0.0) -> Iterator[None]:
        """A block that all ranks get through, or none: where one raises, all do. So they do where numbers that must be
        the ``same`` are not, or one that must be ``near`` is not."""
        self.refuse_stopped()
        if self.count == 1:
            yield
            return
        failure: Exception | None = None
        try:
            yield
        except Exception as error:
            failure = error
        self._stopped = True
        both = [sign * number for number in (bits(near), *same) for sign in (1, -1)]  # the least, too
        try:
            failed, *most = self.largest(0 if failure is None else self.count - self.rank, *both)
        except PrivateTrainingError:
            if failure is None:
                raise
        if failure is not None:
            raise failure
        if failed:
            raise PrivateTrainingError(STOPPED.format(rank=self.count - failed))
        apart, *others = (a + b for a, b in zip(most[::2], most[1::2], strict=True))
        if apart > CLOSE or any(others):
            raise PrivateTrainingError(DIFFERENT)
        self._stopped = False

    @contextmanager
    def unbroken(self) -> Iterator[None]:
        """A block after which nothing goes on if it fails: the others do not know how far this rank came."""
        self._stopped = self.count > 1
        yield
        self._stopped = False

    def refuse_stopped(self) -> None:
        """Refuse to go on alone."""
        if self._stopped:
            raise PrivateTrainingError(
                "The run has stopped on all ranks. Start them again, and go on from the last checkpoint."
            )

    def largest(self, *numbers: int) -> list[int]:
        """Of each whole number, the largest that a rank gave."""
        if self.count == 1:
            return list(numbers)
        most = torch.tensor(numbers, dtype=torch.int64, device=self.device)
        with answered():
            dist.all_reduce(lent(most), dist.ReduceOp.MAX)
        return [int(number) for number in most.tolist()]

    def summed(self, number: float) -> float:
        """The sum of a number over the ranks."""
        if self.count == 1:
            return number
        total = torch.tensor([number], dtype=torch.float64, device=self.device)
        self.add_up(total)
        return float(total)

    def add_up(self, tensor: Tensor) -> None:
        """The sum over the ranks, in place, on all of them."""
        with answered():
            dist.all_reduce(lent(tensor))

    def agree(self, facts: Mapping[str, object]) -> None:
        """Refuse facts that are not the same on all ranks, by name: values may be private."""
        if self.count == 1:
            return
        of_ranks = self._of_all(dict(facts))
        for name in facts:
            if any(other.get(name) != of_ranks[0][name] for other in of_ranks):
                raise ValueError(
                    f"{name} differs between the ranks, but they carry out one plan together: call make_private with "
                    "the same arguments on all of them, on the same model and the same data."
                )

    def of_first(self, value: Any) -> Any:
        """What rank 0 has, on all ranks."""
        if self.count == 1:
            return value
        return self._of_all(value if self.rank == 0 else None)[0]

    def _of_all(self, value: Any) -> list[Any]:
        """What each rank has, on all ranks: torch's own collectives of objects keep no hold of what they lend."""
        own = pickle.dumps(value)
        rows = torch.zeros(self.count, self.largest(len(own))[0], dtype=torch.uint8)
        rows[self.rank, : len(own)] = torch.frombuffer(bytearray(own), dtype=torch.uint8)
        rows = rows.to(self.device)
        self.add_up(rows)  # each row is zero on all ranks but its own
        return [pickle.loads(bytes(row)) for row in rows.tolist()]

    def once(self, act: Callable[[], None]) -> None:
        """Done by rank 0 while the others wait; a refusal reaches all of them."""
        failure: Exception | None = None
        if self.rank == 0:
            try:
                act()
            except Exception as error:
                failure = error
        refusal = self.of_first(None if failure is None else (isinstance(failure, BudgetExceeded), str(failure)))
        if failure is not None:
            raise failure
        if refusal is not None:
            raise (BudgetExceeded if refusal[0] else PrivateTrainingError)(refusal[1])

    def pay(self, plan: Any, book: Chargeable | None, label: str, *, reproducible: bool = False) -> None:
        """Charge the plan once in all: to the book of rank 0."""
        given = self.largest(int(book is not None))[0]

        def act() -> None:
            if given and book is None:
                raise ValueError("book was given to another rank, but rank 0 charges: give it to all of them.")
            pay(plan, book, label, reproducible=reproducible)

        self.once(act)

    def copy_from_first(self, tensors: Sequence[Tensor]) -> None:
        """Let every rank have the values of rank 0."""
        if self.count > 1:
            with answered(), torch.no_grad():
                for tensor in tensors:
                    dist.broadcast(lent(tensor), src=0)


def bits(number: float) -> int:
    """A float as a whole number, equal where the float is."""
    return int(struct.unpack("q", struct.pack("d", number))[0])


def digest(value: object) -> int:
    """A value as a whole number, equal where its ``repr`` is."""
    return int.from_bytes(hashlib.blake2b(repr(value).encode(), digest_size=7).digest(), "big")


@contextmanager
def answered() -> Iterator[None]:
    """One clean error for whatever a backend says when a rank is gone."""
    try:
        yield
    except RuntimeError as error:
        kind = type(error).__name__
    else:
        return
    raise PrivateTrainingError(f"{LOST} ({kind})")


_lent = [torch.zeros(0)]  # nobody is lent the first: it shows how many references are ours
PATIENCE = 5.0  # seconds


def lent(tensor: Tensor) -> Tensor:
    """The same numbers in a tensor that a collective may have, and that is kept here until it was given back.

    A thread of gloo's lets go of it some time after the collective has returned, and needs Python for that whoever
    else has it; a process that ends just then aborts (https://github.com/pytorch/pytorch/issues/190489).
    """
    kept = {0, len(_lent) - 1, *_not_given_back()}  # the last one too: torch before 2.10 does not show who has it
    _lent[:] = [one for place, one in enumerate(_lent) if place in kept]
    _lent.append(tensor.detach())
    return _lent[-1]


def _not_given_back() -> list[int]:
    """The places of what somebody else has: torch counts all its own uses as one reference of Python's."""
    return [place for place in range(len(_lent)) if sys.getrefcount(_lent[place]) > sys.getrefcount(_lent[0])]


@atexit.register
def wait_for_borrowers() -> None:
    """Let the backend's threads let go while Python can still answer them."""
    end = time.monotonic() + PATIENCE
    while _not_given_back() and time.monotonic() < end:
        time.sleep(0.001)
