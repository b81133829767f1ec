"""A record that is run alone is run by one process: what asks the others is stopped.

On several ranks a loop may gather features, counts or means of all of them. Run again for one record on every rank at
once, it would gather those of one record each, and look like a loop that treats records apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from discreet.errors import extra
from discreet.training.errors import MEETING, MixedRecords, PrivateTrainingError

with extra("torch"):
    from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["forbid_collectives"]

NAMESPACES = frozenset({"c10d", "c10d_functional", "_c10d_functional", "_c10d_functional_autograd"})


class _CollectivesForbidden(TorchDispatchMode):
    met = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace in NAMESPACES:
            self.met = True
            raise RuntimeError("a collective")
        return func(*args, **(kwargs or {}))


@contextmanager
def forbid_collectives(unverified: str) -> Iterator[None]:
    """Refuse a block that asks other processes for something, unless the user vouches for it."""
    mode = _CollectivesForbidden()
    try:
        with mode:
            yield
    except MixedRecords:
        raise
    except PrivateTrainingError:
        if not mode.met:
            raise
    if mode.met and not unverified:
        raise PrivateTrainingError(MEETING)
