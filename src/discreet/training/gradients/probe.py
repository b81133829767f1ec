"""Where the records are in a tensor: found by running a module on a few copies of one record.

The dimension whose size follows the number of records holds them. So ``batch_first=False``, flattened batches and
tables that are looked up once for all records are told apart even where sizes coincide. All records of the probe are
copies, so the order of a flattened dimension shows too: entries of a record follow one another, or the records take
turns.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.calls import Layout
from discreet.training.gradients.trees import mapped
from discreet.training.refusals import MixedRecords

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn
    from torch.autograd.graph import saved_tensors_hooks

__all__ = ["Places", "chosen", "copies", "undisturbed", "without_dropout"]


@dataclass(slots=True)
class Seen:
    """A tensor of the probe: its shape, and for each dimension that may hold several entries a record, whether the
    records take turns in it (none: unclear).

    Where something is unclear the value is kept, for a second probe in which the first record is another.
    """

    shape: torch.Size
    turns: dict[int, bool | None]
    value: Tensor | None = None

    def compare(self, x: Tensor, count: int) -> None:
        """The entries that changed with the first record are that record's."""
        if self.value is None or x.shape != self.shape:
            return
        differs = x.detach() != self.value
        for dim in [d for d, known in self.turns.items() if known is None]:
            changed = differs.movedim(dim, 0).reshape(x.shape[dim], -1).any(1).nonzero().flatten()
            blocks, turns = bool((changed < x.shape[dim] // count).all()), bool((changed % count == 0).all())
            self.turns[dim] = turns if blocks != turns else None
        self.value = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where records were found: the dimension, whether several entries a record are folded into it, and how."""

    dim: int
    folded: bool = False
    interleaved: bool = False


def _records(x: Tensor, records: int) -> int | None:
    """The dimension of an input that holds the records: the first, or the second where the batch was turned."""
    return next((d for d in range(min(2, x.dim())) if x.shape[d] == records), None)


def chosen(tree: Any, records: int, rows: Tensor) -> Any:
    """These records of the inputs of a model, as new tensors."""

    def some(x: Tensor) -> Tensor:
        dim = _records(x, records)
        return x.detach().clone() if dim is None else x.detach().index_select(dim, rows.to(x.device))

    return mapped(some, tree)


def copies(tree: Any, records: int, count: int, *, other: bool = False) -> Any:
    """``count`` copies of one record, with invented numbers in place of the data's; or with another record for the
    first."""

    def few(x: Tensor) -> Tensor:
        dim = _records(x, records)
        if dim is None:
            return x.detach()
        one = x.detach().narrow(dim, 0, 1)
        if x.is_floating_point():  # from 0 to 1, all different
            one = torch.linspace(0, 1, one.numel(), dtype=x.dtype, device=x.device).view(one.shape)
        some = one.repeat_interleave(count, dim)
        if other:
            last = x.detach().narrow(dim, records - 1, 1)
            some.narrow(dim, 0, 1).copy_(one.square() + 1 if x.is_floating_point() else last)
        return some

    return mapped(few, tree)


@contextmanager
def undisturbed(module: nn.Module) -> Any:
    """Run a module without leaving a trace: no graph, no used-up random numbers, no changed buffers.

    Tensors saved for a backward pass stay out of sight of whoever counts them (gradient checkpointing does).
    """
    kept = [(buffer, buffer.clone()) for buffer in module.buffers()]
    allowed: Any = torch._C._autograd._saved_tensors_hooks_is_enabled  # type: ignore[attr-defined]
    # Detached, because a node that saves its own output as it is would keep itself alive.
    hidden = saved_tensors_hooks(Tensor.detach, _same) if allowed() else nullcontext()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]), hidden:
            yield
    finally:
        with torch.no_grad():
            for buffer, before in kept:
                buffer.copy_(before)


def _same(x: Any) -> Any:
    return x


def without_dropout(func: Any, args: Any, kwargs: Any) -> Any:
    """A call without chance, which would make copies of a record differ."""
    if "dropout" in getattr(func, "__name__", ""):
        return args[0]
    if func is F.scaled_dot_product_attention:
        if len(args) > 4:
            args = (*args[:4], 0.0, *args[5:])
        else:
            kwargs = kwargs | {"dropout_p": 0.0}
    return func(*args, **kwargs)


def seen(x: Tensor, count: int) -> Seen:
    """What a tensor of the probe tells."""
    dims = [d for d, size in enumerate(x.shape) if size > count and size % count == 0 and x.numel()]
    if not dims:
        return Seen(x.shape, {})
    x = x.detach()
    turns = {dim: _turns(x.movedim(dim, 0), count) for dim in dims}
    return Seen(x.shape, turns, x.clone() if None in turns.values() else None)


def _turns(x: Tensor, count: int) -> bool | None:
    """Whether copies of a record take turns in the first dimension, or follow one another."""
    x = x if x.is_floating_point() else x.double()
    blocks, turns = x.reshape(count, -1, *x.shape[1:]), x.reshape(-1, count, *x.shape[1:])
    one_after_another = float((blocks[0] - blocks[1]).abs().max())
    in_turns = float((turns[:, 0] - turns[:, 1]).abs().max())
    if max(one_after_another, in_turns) <= 1e-4 * float(x.abs().max()):
        return None
    return in_turns < one_after_another


class Places:
    """What is known about the calls of one module: by position in the forward pass, a place for each tensor."""

    def __init__(self) -> None:
        self.count = 2
        self._probed: dict[int, tuple[Any, list[Seen]]] = {}
        self._known: dict[int, tuple[Any, list[Place | None]]] = {}

    def note(self, position: int, function: Any, found: list[Tensor], shared: Container[int] = ()) -> None:
        """A call of the probe; of what is ``shared``, parameters, only the shape matters."""
        self._probed[position] = (
            function,
            [Seen(x.shape, {}) if id(x) in shared else seen(x, self.count) for x in found],
        )

    @property
    def unclear(self) -> bool:
        """Whether a probe with another record first may tell more."""
        return any(one.value is not None for _, found in self._probed.values() for one in found)

    def compare(self, position: int, function: Any, found: list[Tensor]) -> None:
        """A call of the second probe."""
        before = self._probed.get(position)
        if before is not None and before[0] is function and len(before[1]) == len(found):
            for one, x in zip(before[1], found, strict=True):
                one.compare(x, self.count)

    def forget(self) -> None:
        """Drop a probe that failed: sizes alone must do."""
        self._probed.clear()

    def find(
        self,
        position: int,
        function: Any,
        leaves: list[Tensor],
        records: int,
        guess: Callable[[Tensor], Place | None],
        location: Callable[[], str],
    ) -> list[Layout | None]:
        """The layout of each tensor of a call."""
        known = self._known.get(position)
        if known is None or known[0] is not function or len(known[1]) != len(leaves):
            known = self._known[position] = (
                function,
                self._compare(position, function, leaves, records, guess, location),
            )
        found: list[Layout | None] = []
        for leaf, place in zip(leaves, known[1], strict=True):
            if place is None:
                found.append(None)
                continue
            fold, rest = divmod(leaf.shape[place.dim], records)
            if rest or not fold or (fold > 1 and not place.folded):
                raise MixedRecords(
                    f"{_name(function)} at {location()} has {leaf.shape[place.dim]} entries where the batch has "
                    f"{records} records. Call the model on the batch as the loader gave it."
                )
            found.append(_layout(place.dim, fold, place.interleaved and fold > 1))
        return found

    def _compare(
        self,
        position: int,
        function: Any,
        leaves: list[Tensor],
        records: int,
        guess: Callable[[Tensor], Place | None],
        location: Callable[[], str],
    ) -> list[Place | None]:
        before = self._probed.get(position)
        if before is None or before[0] is not function or len(before[1]) != len(leaves):
            return [guess(leaf) for leaf in leaves]
        found, unclear = list[Place | None](), list[int]()
        for leaf, then in zip(leaves, before[1], strict=True):
            place, clear = self._place(function, leaf.shape, then, records, location)
            unclear += [] if clear else [len(found)]
            found.append(place)
        for i in unclear:  # as many rows as another tensor of the call has, whose order is clear
            place = found[i]
            assert place is not None
            like = next((p for j, p in enumerate(found) if j not in unclear and p and p.dim == place.dim and p.folded
                         and leaves[j].shape[p.dim] == leaves[i].shape[p.dim]), None)
            if like is None:
                raise MixedRecords(
                    f"{_name(function)} at {location()} has {leaves[i].shape[place.dim]} rows for {records} records, and a "
                    "trial could not tell which are whose: they all looked the same. Keep the records in a dimension "
                    "of their own there."
                )
            found[i] = like
        return found

    def _place(
        self, function: Any, now: torch.Size, then: Seen, records: int, location: Callable[[], str]
    ) -> tuple[Place | None, bool]:
        """Where the records of a tensor are, and whether the order of rows that are folded with them is clear."""
        if len(now) != len(then.shape):
            return None, True
        moved = [d for d in range(len(now)) if now[d] != then.shape[d]]
        if len(moved) > 1:
            raise MixedRecords(
                f"{_name(function)} at {location()} has the records in more than one dimension: it compares "
                "records with each other, so no record has a gradient of its own."
            )
        if not moved:
            return None, True
        if now[moved[0]] * self.count != then.shape[moved[0]] * records:
            raise MixedRecords(
                f"{_name(function)} at {location()} has {now[moved[0]]} entries where the batch has {records} "
                f"records, and {then.shape[moved[0]]} where it has {self.count}: its rows are not the records'."
            )
        folded = now[moved[0]] != records
        turns = then.turns.get(moved[0], False)
        return Place(moved[0], folded, bool(turns)), not folded or turns is not None


_layout = cache(Layout)  # few are different, and every call of every step asks for some


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", function))
