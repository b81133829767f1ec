"""Rows that a model puts in another order, or picks: experts that get some tokens each, a sort and its way back.

A dimension of rows then has records in no regular order, so each row's owner is written down when rows are picked by an
index, and goes along with them from call to call. ``Ragged`` is the layout of such rows: handlers see them as those
of any other sequence, a record's rows side by side, padded with rows that count for nothing.

Decision 402.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from discreet.errors import extra
from discreet.training.errors import MixedRecords
from discreet.training.gradients.rules.elementary import Rows
from discreet.training.gradients.rules.handlers import Call, Layout, PendingUse, register
from discreet.training.gradients.rules.products import GroupedWeight
from discreet.training.gradients.trace.trees import tensors

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor

__all__ = ["PICKS", "Ragged", "RowOwners", "picked_from"]

PICKS = {Tensor.__getitem__, torch.index_select, Tensor.index_select, torch.sort, Tensor.sort}
_REGROUPED = {"view", "reshape", "unflatten", "flatten"}
Find: TypeAlias = Callable[[Tensor, int], Layout | None]
_WRITES = ("index_", "scatter", "__setitem__", "masked_scatter")  # into rows of another order


@dataclass(frozen=True, slots=True)
class Ragged(Layout):
    """Rows in the first dimension, each of the record that ``owner`` says; ``fold`` is the most rows of a record."""

    owner: Tensor = field(default=None, compare=False)  # type: ignore[assignment]
    places: Tensor = field(default=None, compare=False)  # type: ignore[assignment]

    @classmethod
    def of(cls, owner: Tensor, records: int) -> Ragged:
        """The layout of rows with these owners; a row number past the last is none."""
        counts = torch.bincount(owner, minlength=records)
        most = max(2, int(counts.max()) if len(owner) else 0)  # one would look like a row a record
        order = torch.argsort(owner, stable=True)
        within = torch.arange(len(owner), device=owner.device) - (counts.cumsum(0) - counts)[owner[order]]
        places = owner.new_full((records, most), len(owner))
        places[owner[order], within] = order
        return cls(0, most, False, owner, places)

    def apart(self, x: Tensor) -> Tensor:
        """[records, most rows, ...], padded with zeros."""
        return torch.cat([x, x.new_zeros(1, *x.shape[1:])])[self.places]

    def filled(self, x: Tensor) -> Tensor:
        """The same, padded with a record's own first row: a function may not be defined at zero."""
        places = torch.where(self.places == len(self.owner), self.places[:, :1], self.places)
        return torch.cat([x, x.new_zeros(1, *x.shape[1:])])[places]

    def first(self, x: Tensor) -> Tensor:
        """The same, one record's rows after another's."""
        return self.apart(x).flatten(0, 1)

    def at(self, dim: int) -> Layout | None:
        """Rows stay in the first dimension."""
        return self if dim == 0 else None


def picked_from(func: Any, args: Any, kwargs: Any) -> Tensor | None:
    """The tensor whose rows a call picks or sorts; none if it does not."""
    if func not in PICKS or not isinstance(args[0], Tensor) or not args[0].dim():
        return None
    return None if _index(func, args, kwargs) is None else args[0]


def _index(func: Any, args: Any, kwargs: Any, output: Any = None) -> Any:
    """What picks rows: a tensor of row numbers, or of truths; True for a sort, whose output tells."""
    if getattr(func, "__name__", "") == "sort":
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        if dim % args[0].dim() != 0:
            return None
        return True if output is None else tensors(output)[1]
    if func is Tensor.__getitem__:
        found = args[1][0] if isinstance(args[1], tuple) and args[1] else args[1]
        if isinstance(found, list) and found and all(isinstance(i, int) for i in found):
            found = torch.tensor(found)
    else:
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        found = kwargs.get("index", args[2] if len(args) > 2 else None) if dim in (0, -args[0].dim()) else None
    return found if isinstance(found, Tensor) and found.dim() and not found.is_floating_point() else None


class RowOwners:
    """Whose rows the tensors of a pass have, where the order is not regular."""

    def __init__(self, records: int = 0) -> None:
        self.records = records
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}  # the tensor is held: an identity is one while it lives
        self._sources: dict[int, tuple[Tensor, Layout | None]] = {}
        self._ragged: dict[int, tuple[Tensor, Ragged]] = {}

    def __bool__(self) -> bool:
        return bool(self._kept)

    def _owner(self, x: Tensor) -> Tensor | None:
        found = self._kept.get(id(x))
        return None if found is None else found[1]

    def follow(self, func: Any, args: Any, kwargs: Any, output: Any, find: Find) -> None:
        """A call without parameters: what it makes of owned rows is owned, and what it picks of records' rows.

        ``find`` tells where the records are in a tensor whose rows are picked, by its number among such tensors.
        """
        source = picked_from(func, args, kwargs)
        if source is not None:
            if id(source) not in self._sources:
                self._sources[id(source)] = source, find(source, len(self._sources))
            self._pick(_index(func, args, kwargs, output), args[0], tensors(output)[0])
            return
        name = getattr(func, "__name__", "")
        owner = self._common(tensors((args, kwargs)), name)
        if owner is None or name.startswith(_WRITES):
            return
        for x in tensors(output):
            if x.dim() and x.shape[0] == len(owner):
                self._keep(x, owner)
            elif name in _REGROUPED and x.dim() and x.shape[0] and not len(owner) % x.shape[0]:
                groups = owner.view(x.shape[0], -1)
                if bool((groups == groups[:, :1]).all()):
                    self._keep(x, groups[:, 0])

    def _pick(self, index: Tensor, source: Tensor, output: Tensor) -> None:
        owner = known = self._owner(source)
        if owner is None:
            layout = self._sources.get(id(source), (source, None))[1]
            if layout is None or layout.dim != 0:
                return
            rows = torch.arange(source.shape[0], device=source.device)
            owner = rows % self.records if layout.interleaved else rows // layout.fold
        if index.dtype in (torch.bool, torch.uint8):
            owner = owner.view(-1, *[1] * (index.dim() - 1)).expand(index.shape)
        owner = owner[index]
        if owner.dim() != 1 or not output.dim() or output.shape[0] != len(owner):
            return
        if known is None or not self._in_order(owner):
            self._keep(output, owner)

    def _in_order(self, owner: Tensor) -> bool:
        """Whether rows are back in the regular order of a tensor that some were picked from."""
        if not any(len(x) == len(owner) and layout is not None for x, layout in self._sources.values()):
            return False
        return torch.equal(owner, torch.arange(len(owner), device=owner.device) // (len(owner) // self.records))

    def _keep(self, x: Tensor, owner: Tensor) -> None:
        self._kept[id(x)] = x, owner

    def _common(self, inputs: Sequence[Tensor], name: str) -> Tensor | None:
        owners = [owner for x in inputs if (owner := self._owner(x)) is not None]
        for other in owners[1:]:
            if other is not owners[0] and len(other) == len(owners[0]) and not torch.equal(other, owners[0]):
                raise MixedRecords(
                    f"{name} takes rows in two orders, so that rows of different records meet: none has a gradient of "
                    "its own. Keep every record's rows together."
                )
        return owners[0] if owners else None

    # --- calls with parameters -----------------------------------------------------------------------------------

    def layouts(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> list[Layout | None] | None:
        """Of inputs and outputs of a call with parameters; none where no input has owners."""
        if not self._kept:
            return None
        owner = self._common(inputs, "A call with parameters")
        if owner is None:
            return None
        known = self._ragged.get(id(owner))
        if known is None:
            known = self._ragged[id(owner)] = owner, Ragged.of(owner, self.records)
        found: list[Layout | None] = [None if self._owner(x) is None else known[1] for x in inputs]
        return found + [known[1] if x.dim() and x.shape[0] == len(owner) else None for x in outputs]

    def hand_on(self, inputs: Sequence[Tensor], output: Any) -> Any:
        """The output of such a call has the owners of its inputs."""
        if not self._kept:
            return output
        owner = self._common(inputs, "A call with parameters")
        for x in tensors(output) if owner is not None else ():
            if x.dim() and x.shape[0] == len(owner):  # type: ignore[arg-type]
                self._keep(x, owner)  # type: ignore[arg-type]
        return output


# --- rules -----------------------------------------------------------------------------------------------------------


def _grouped_mm(call: Call) -> list[PendingUse] | None:
    """Rows in groups, each with a weight of its own: [S, n] and [E, n, m]; a group ends where ``offs`` says."""
    given = call.arguments
    x, weight, offs = given["mat_a"], given["mat_b"], given.get("offs")
    layout = call.layout(x)
    if layout is None or layout.dim != 0 or x.dim() != 2 or weight.dim() != 3 or not call.is_shared(weight):
        return None
    rows = torch.arange(x.shape[0], device=x.device)
    if isinstance(layout, Ragged):
        owner = layout.owner
    else:
        owner = rows % call.records if layout.interleaved else rows // layout.fold
    experts = weight.shape[0]
    group = torch.searchsorted(offs, rows.to(offs.dtype), right=True)  # past the last: rows of no group
    inside = group < experts
    each = Ragged.of((owner * experts + group)[inside], call.records * experts)

    def arranged(a: Tensor) -> Tensor:
        return each.apart(a[inside]).unflatten(0, (call.records, experts))

    handler = GroupedWeight((experts, weight.shape[2], weight.shape[1]), (0, 2, 1))
    return [PendingUse(weight, handler, arranged(x.detach()), arranged)]


if hasattr(F, "grouped_mm"):
    register(F.grouped_mm, ("mat_a", "mat_b"))(_grouped_mm)
if hasattr(torch, "_grouped_mm"):
    register(torch._grouped_mm, ("mat_a", "mat_b", "offs"))(_grouped_mm)


def _looked_up(call: Call) -> list[PendingUse] | None:
    """Rows of a parameter by numbers that records have: a table."""
    table, index = call.arguments["input"], call.arguments["index"]
    layout = call.layout(index)
    if layout is None or not call.is_shared(table) or index.dtype in (torch.bool, torch.uint8):
        return None
    if call.arguments.get("dim", 0) not in (0, -table.dim()):
        return None
    rows = layout.steps(index.unsqueeze(-1), call.records).squeeze(-1)
    records = torch.arange(call.records, device=rows.device).unsqueeze(1).expand_as(rows).reshape(-1)
    rows = rows.reshape(-1) % table.shape[0]  # numbers from the end
    shape = torch.Size([table.shape[0], table.shape[1:].numel()])

    def view(g: Tensor) -> Tensor:
        return layout.apart(g).reshape(len(rows), shape[1])

    return [PendingUse(table, Rows(shape), (records, rows, None, call.records), view)]


register(Tensor.__getitem__, ("input", "index"))(_looked_up)
for _function in (torch.index_select, Tensor.index_select):
    register(_function, ("input", "dim", "index"))(_looked_up)
