"""A look at the first batches: does one record's result depend on the others?

Two checks, both on the user's own code as it runs. The model is run on two records and on the first of them twice: its
answer for the first must be the same. The loss is written down as it is computed, from the model's outputs to
``backward``, and computed again with the other records replaced by copies of one: the first record's gradient must be the
same, and must be what the declared reduction makes of the record alone. Token means under ``ignore_index``, class weights
normalised over the batch, contrastive losses and a wrong ``loss_reduction`` are found so. What cannot be computed again is
not judged: the declaration counts.
"""

from __future__ import annotations

from typing import Any

from discreet.errors import extra
from discreet.training.refusals import MixedRecords
from discreet.training.trees import mapped, tensors

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode

__all__ = ["LossTape", "refuse_mixing", "sweep"]

_SIZES = {Tensor.size, Tensor.__len__, Tensor.numel, Tensor.nelement, torch.numel, Tensor.shape.__get__}  # type: ignore[attr-defined]
TOLERANCE = 1e-3
FEW = 3  # records on which a loss is computed again, if that can be done
LONGEST = 500  # calls of a loss that are written down


def _differ(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or not bool(torch.isfinite(one).all() and torch.isfinite(other).all()):
        return False  # nothing can be said
    return float((one - other).norm()) > TOLERANCE * float(one.norm() + other.norm()) + 1e-30


def refuse_mixing(module: nn.Module, args: Any, kwargs: Any, records: int) -> None:
    """Raise if the module's answer for a record depends on what else is in the batch."""
    def pair(second: int) -> Any:
        rows = torch.tensor([0, second])
        given = mapped(lambda x: x.index_select(0, rows) if x.dim() and x.shape[0] == records else x, (args, kwargs))
        return tensors(module.forward(*given[0], **given[1]))

    try:
        apart, twice = pair(1), pair(0)
    except Exception:
        return
    for one, other in zip(apart, twice, strict=True):
        if one.dim() and one.is_floating_point() and one.shape[0] == 2 and _differ(one[0], other[0]):
            raise MixedRecords(f"The answer of {type(module).__name__} for one record depends on the other records of the "
                               "batch, so no record has a gradient of its own. Look for means, norms or products over the "
                               "first dimension.")


def sweep() -> None:
    """Take every finished tape off torch's stack of modes, also from under modes that came later."""
    above = []
    while any(isinstance(mode, LossTape) and mode.finished for mode in _get_current_function_mode_stack()):
        mode = _pop_mode()
        if not (isinstance(mode, LossTape) and mode.finished):
            above.append(mode)
    for mode in reversed(above):
        _push_mode(mode)


class LossTape(TorchFunctionMode):
    """Writes down the calls between the model's output and ``backward``, and judges the loss when that is called."""

    def __init__(self, watch: Any, reduction: str) -> None:
        super().__init__()
        self.watch, self.reduction = watch, reduction
        self.calls: list[tuple[Any, Any, Any, Any]] = []
        self.finished = False
        self.counted = False  # whether Python was told a size: the loss may divide by it, and cannot be computed for fewer

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.watch.depth or self.finished:
            return func(*args, **kwargs)
        if func in _SIZES:
            self.counted = True
        if func is Tensor.backward:
            self.finished = True
            self._judge(args[0], args[1] if len(args) > 1 else kwargs.get("gradient"))
            self.calls, self.watch.outputs = [], []  # nothing that backward frees should stay for our sake
            return func(*args, **kwargs)
        output = func(*args, **kwargs)
        if torch.is_grad_enabled() and tensors(output):
            self.calls.append((func, args, kwargs, output))
        if len(self.calls) > LONGEST:  # not a loss, or one that never came to backward
            self.finished, self.calls = True, []
        return output

    def _judge(self, loss: Tensor, weight: Tensor | None) -> None:
        records = self.watch.records
        outputs = [x for x in self.watch.outputs if x.dim() and x.shape[0] == records and x.requires_grad]
        if not records or records < 2 or not outputs:
            return
        few = min(records, FEW) if weight is None else records
        found = self._gradients(loss, weight, outputs, few) or self._gradients(loss, weight, outputs, records)
        if found is None:
            return
        before, copied, other, count = found
        if _differ(before, copied) or _differ(before, other):
            raise MixedRecords("The loss of one record depends on the other records of the batch: a mean over tokens or class "
                               "weights that the whole batch divides by, or a comparison of records. Divide by a constant, or "
                               "by something of the record's own.")
        if self.counted:
            return
        try:
            alone = self._gradient(loss, None, outputs, [0])
        except Exception:
            return
        scale = count if self.reduction == "mean" else 1
        if weight is None and _differ(copied * scale, alone):
            seen = "does not divide" if scale > 1 else "divides"
            raise MixedRecords(f"loss_reduction is {self.reduction!r}, but the loss {seen} by the number of records. Declare "
                               "what it does with the records of a batch: 'mean' or 'sum'.")

    def _gradients(self, loss: Tensor, weight: Tensor | None, outputs: list[Tensor], count: int
                   ) -> tuple[Tensor, Tensor, Tensor, int] | None:
        """The first record's gradient among ``count`` records, among copies of itself, and among copies of the second."""
        batches = list(range(count)), [0] * count, [0] + [1] * (count - 1)
        try:
            before, copied, other = (self._gradient(loss, weight, outputs, rows) for rows in batches)
        except Exception:  # what cannot be computed again is not judged
            return None
        return before, copied, other, count

    def _gradient(self, loss: Tensor, weight: Tensor | None, outputs: list[Tensor], rows: list[int]) -> Tensor:
        """The gradient of the first record's outputs when the loss is computed again on these records."""
        records, index = self.watch.records, torch.tensor(rows)
        produced = {id(x) for *_, output in self.calls for x in tensors(output)}
        made: dict[int, Tensor] = {id(x): x.detach()[index].requires_grad_() for x in outputs}
        sources = list(made.values())

        def now(x: Tensor) -> Tensor:
            if id(x) in made or id(x) in produced:
                return made.get(id(x), x)
            return x.detach()[index] if x.dim() and x.shape[0] == records else x

        with torch.enable_grad():
            for func, args, kwargs, output in self.calls:
                again = func(*mapped(now, args), **mapped(now, kwargs))
                made |= {id(a): b for a, b in zip(tensors(output), tensors(again), strict=True)}
        found = torch.autograd.grad(made[id(loss)], sources, weight, allow_unused=True)
        return torch.cat([g[0].reshape(-1) for g in found if g is not None])
