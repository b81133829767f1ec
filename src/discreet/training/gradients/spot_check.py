"""A look at the first batches: does one record's result depend on the others?

Two checks, both on the user's own code as it runs. The model is run on two records and on the first of them twice: its
answer for the first must be the same. The loss is written down as it is computed, from the model's outputs to
``backward``, and computed again with the other records replaced by copies of one: the first record's gradient must be
the same, and must be what the declared reduction makes of the record alone. Token means under ``ignore_index``, class
weights normalised over the batch, contrastive losses and a wrong ``loss_reduction`` are found so. What cannot be
computed again is not judged: the declaration counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.probe import chosen, undisturbed
from discreet.training.gradients.trees import mapped, tensors
from discreet.training.memory import return_freed_memory
from discreet.training.refusals import MixedRecords, PrivateTrainingError

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode

__all__ = ["LossTape", "refuse_crossing", "refuse_mixing", "sweep"]

_SIZES = {Tensor.size, Tensor.__len__, Tensor.numel, Tensor.nelement, torch.numel, Tensor.shape.__get__}  # type: ignore[attr-defined]
TOLERANCE = 1e-3
FEW = 3  # records on which a loss is computed again, if that can be done
LONGEST = 500  # calls of a loss that are written down
MIXING_LOSS = (
    "The loss of one record depends on the other records of the batch: a mean over tokens or class weights that "
    "the whole batch divides by, or a comparison of records. Divide by a constant, or by something of the "
    "record's own."
)
_CHANCE = {
    "rand",
    "randn",
    "randint",
    "randperm",
    "rand_like",
    "randn_like",
    "randint_like",
    "normal",
    "bernoulli",
    "poisson",
    "multinomial",
    "uniform_",
    "normal_",
    "bernoulli_",
    "exponential_",
    "random_",
    "log_normal_",
    "geometric_",
}
_ARITHMETIC = ("mul", "div", "pow")


def _differ(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or not bool(torch.isfinite(one).all() and torch.isfinite(other).all()):
        return False  # nothing can be said
    tolerance = max(TOLERANCE, 4 * torch.finfo(one.dtype).eps)  # half precision rounds by more
    return float((one - other).norm()) > tolerance * float(one.norm() + other.norm()) + 1e-30


def refuse_mixing(module: nn.Module, args: Any, kwargs: Any, records: int, reduction: str) -> None:
    """Raise if the module's answer for a record, or what it keeps, depends on what else is in the batch."""

    def answers(rows: list[int]) -> tuple[list[Tensor], dict[str, Tensor]]:
        given = chosen((args, kwargs), records, torch.tensor(rows))
        with undisturbed(module), torch.enable_grad():
            found = [x.detach() for x in tensors(module.forward(*given[0], **given[1])) if x.is_floating_point()]
            kept = module.state_dict(keep_vars=True).items()
            return found, {name: x.detach().clone() for name, x in kept if not isinstance(x, nn.Parameter)}

    few = list(range(min(records, FEW)))
    try:
        together, one = answers([0, 1]), answers([0, 0])
        losses = [x for x in together[0] if not x.dim()]
        apart = [answers([row] * len(few))[0] for row in few] if losses else []
        whole, alone = (answers(few)[0], answers([0])[0]) if losses else ([], [])
    except Exception:  # a model that cannot run on a few records is not judged
        return
    _refuse_kept(module, together[1], one[1])
    for x, other in zip(together[0], one[0], strict=True):
        if x.dim() and x.shape[0] == 2 and _differ(x[0], other[0]):
            raise MixedRecords(
                f"The answer of {type(module).__name__} for one record depends on the other records of the "
                "batch, so no record has a gradient of its own. Look for means, norms or products over the "
                "first dimension."
            )
    for place, x in enumerate(whole):
        if not x.dim():
            _refuse_loss(x, torch.stack([answer[place] for answer in apart]), alone[place], reduction)


def _refuse_kept(module: nn.Module, one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    """Buffers are published with the model: what records write into them has no noise."""
    for name, x in one.items():
        if not torch.equal(x.nan_to_num(), other[name].nan_to_num()):
            raise PrivateTrainingError(
                f"Buffer {name!r} of {type(module).__name__} changes with the records of a batch and is "
                "published with the model, without noise. Compute it from public data, outside "
                "forward."
            )


def _refuse_loss(whole: Tensor, each: Tensor, alone: Tensor, reduction: str) -> None:
    """A loss that a model returns is that of its records: the mean of what batches of copies of each give."""
    if _differ(whole, each.mean()):
        raise MixedRecords(MIXING_LOSS)
    if _differ(each.min(), each.max()):  # it does depend on the records
        _refuse_reduction(each[0], alone, len(each), reduction)


def _refuse_reduction(copied: Tensor, alone: Tensor, count: int, reduction: str) -> None:
    """The loss of ``count`` copies of a record against that of the record: once or ``count`` times as much."""
    if _differ(copied, alone if reduction == "mean" else alone * count):
        seen = "does not divide" if reduction == "mean" else "divides"
        raise MixedRecords(
            f"loss_reduction is {reduction!r}, but the loss {seen} by the number of records. Declare what it "
            "does with the records of a batch: 'mean' or 'sum'."
        )


def refuse_crossing(
    model: type, first: list[tuple[str | None, Tensor]], all_of_them: list[tuple[str | None, Tensor]]
) -> None:
    """Raise if gradients cross records: squared norms at each use, when the first record's outputs alone send one back,
    must be nothing for the others, and for the first what they are when all records do."""
    for (name, alone), (_, together) in zip(first, all_of_them, strict=len(first) == len(all_of_them)):
        if bool((alone[1:] > 0).any()) or _differ(alone[0], together[0]):
            where = "something made of parameters" if name is None else f"parameter {name!r}"
            raise MixedRecords(
                f"In {model.__name__} the gradients of several records meet at {where}: the model mixes "
                "records, changes their order on the way, or has a hook or a backward pass that mixes them. "
                "Keep every record in its row."
            )


@dataclass(frozen=True, slots=True)
class _Written:
    """A call on the tape."""

    func: Any
    args: Any
    kwargs: Any
    outputs: list[Tensor]
    graded: bool

    @property
    def name(self) -> str:
        return str(getattr(self.func, "__name__", ""))

    @property
    def scales(self) -> bool:
        """Whether it multiplies or divides by a Python number, which may be a size."""
        return any(word in self.name for word in _ARITHMETIC) and any(isinstance(x, int | float) for x in self.args)


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
    """Writes down the calls between a batch and ``backward``, and judges inputs and loss when that is called."""

    def __init__(self, watch: Any, reduction: str, yielded: Any = ()) -> None:
        super().__init__()
        self.watch, self.reduction, self.given = watch, reduction, tensors(yielded)
        self.calls: list[_Written] = []
        self.drawn: set[int] = set()  # tensors that chance made: taken as they are, like the data
        self.finished = False
        # whether Python was told a size: the loss may divide by it, and cannot be computed for fewer
        self.counted = False

    def finish(self) -> None:
        """Write nothing down any more."""
        self.finished, self.calls, self.given = True, [], []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.watch.depth or self.finished:
            return func(*args, **kwargs)
        if func in _SIZES:
            self.counted = True
        if func is Tensor.backward:
            self.finished = True
            self._judge(*args, **kwargs)
            self.finish()
            self.watch.forget()  # nothing that backward frees should stay for our sake
            return_freed_memory()
            return func(*args, **kwargs)
        output = func(*args, **kwargs)
        self._write(_Written(func, args, kwargs, tensors(output), torch.is_grad_enabled()))
        return output

    def _write(self, call: _Written) -> None:
        if call.name in _CHANCE:
            self.drawn |= {id(x) for x in call.outputs}
        if call.outputs:
            self.calls.append(call)
        if len(self.calls) > LONGEST:  # not a loss, or one that never came to backward
            self.finish()

    def _again(self, made: dict[int, Tensor], wanted: list[Tensor], otherwise: Callable[[Tensor], Tensor]) -> None:
        """Compute the wanted tensors again from those that are made, and of the rest what ``otherwise`` says."""
        needed, calls = {id(x) for x in wanted} - made.keys(), []
        for call in reversed(self.calls):
            ids = {id(x) for x in call.outputs}
            if ids & needed and not ids & self.drawn:
                calls.append(call)
                needed |= {id(x) for x in tensors((call.args, call.kwargs))} - made.keys()
        produced = {id(x) for call in calls for x in call.outputs}

        def now(x: Tensor) -> Tensor:
            if id(x) in made:
                return made[id(x)]
            return x.clone() if id(x) in produced else otherwise(x)  # a clone: it may be changed in place

        for call in reversed(calls):
            with torch.set_grad_enabled(call.graded):
                again = tensors(call.func(*mapped(now, call.args), **mapped(now, call.kwargs)))
            made |= {id(a): b for a, b in zip(call.outputs, again, strict=True)}

    # --- the inputs ----------------------------------------------------------------------------------------------

    def _judge(
        self,
        loss: Tensor,
        gradient: Tensor | None = None,
        retain_graph: Any = None,
        create_graph: Any = None,
        inputs: Any = None,
    ) -> None:
        """What ``backward`` was given; a parameter is no leaf of the graph, so one among ``inputs`` would get
        nothing."""
        if inputs is not None:
            raise PrivateTrainingError(
                "backward was given inputs=, but must go through the whole graph: the gradients of "
                "parameters are collected on the way. Call backward without it."
            )
        records = self.watch.records
        if records and records > 1:
            rows = [x for x in self.watch.outputs if x.dim() and x.shape[0] == records and x.requires_grad]
            beside = self._beside(records)
            self._judge_inputs([x for x in self.watch.inputs if x.dim() and x.shape[0] == records] + beside, records)
            self._judge_loss(loss, gradient, rows, beside, records)

    def _beside(self, records: int) -> list[Tensor]:
        """What the loss was given of each record beside the model's outputs: labels, masks, weights."""
        after, found = {id(x) for x in self.watch.outputs}, dict[int, Tensor]()
        for call in self.calls:
            given = tensors((call.args, call.kwargs))
            if any(id(x) in after for x in given):
                after |= {id(x) for x in call.outputs}
                found |= {id(x): x for x in given if id(x) not in after and x.dim() and x.shape[0] == records}
        return list(found.values())

    def _judge_inputs(self, inputs: list[Tensor], records: int) -> None:
        """Another record in one row of the batch may change one row of the model's inputs, whatever was done to
        them."""
        known = {id(x) for x in self.given}
        if all(id(x) in known for x in inputs):
            return
        try:
            as_they_are, with_another = (
                self._inputs(inputs, rows) for rows in (range(records), [1, *range(1, records)])
            )
        except Exception:  # what cannot be computed again is not judged
            return
        changed = torch.zeros(records, dtype=torch.bool)
        for one, other in zip(as_they_are, with_another, strict=True):
            changed |= (one.nan_to_num() != other.nan_to_num()).reshape(records, -1).any(1).cpu()
        if int(changed.sum()) > 1:
            raise MixedRecords(
                "One record of the batch is in several rows of the model's inputs: rows were mixed with others "
                "(mixup, statistics of the batch), or put in another order for one input than for another. Keep "
                "every record in its row."
            )

    def _inputs(self, inputs: list[Tensor], rows: Iterable[int]) -> list[Tensor]:
        """The model's inputs, computed again from these rows of the batch."""
        index = torch.tensor(list(rows))
        made = {id(x): x.detach()[index] for x in self.given if x.dim() and x.shape[0] == len(index)}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self._again(made, inputs, lambda x: x)
        return [made.get(id(x), x) for x in inputs]

    # --- the loss ------------------------------------------------------------------------------------------------

    def _judge_loss(
        self, loss: Tensor, weight: Tensor | None, outputs: list[Tensor], beside: list[Tensor], records: int
    ) -> None:
        if not outputs:
            return

        def gradients(count: int) -> tuple[Tensor, Tensor, Tensor, int] | None:
            """The first record's among ``count`` records, among copies of itself, and among copies of the second."""
            batches = list(range(count)), [0] * count, [0] + [1] * (count - 1)
            try:
                before, copied, other = (self._gradient(loss, weight, outputs, beside, rows) for rows in batches)
            except Exception:  # what cannot be computed again is not judged
                return None
            return before, copied, other, count

        found = gradients(min(records, FEW) if weight is None else records) or gradients(records)
        if found is None:
            return
        before, copied, other, count = found
        if _differ(before, copied) or _differ(before, other):
            raise MixedRecords(MIXING_LOSS)
        if weight is not None or (self.counted and any(call.scales for call in self.calls)):
            return
        try:
            alone = self._gradient(loss, None, outputs, beside, [0])
        except Exception:
            return
        _refuse_reduction(copied * count, alone, count, self.reduction)

    def _gradient(
        self, loss: Tensor, weight: Tensor | None, outputs: list[Tensor], beside: list[Tensor], rows: list[int]
    ) -> Tensor:
        """The gradient of the first record's outputs when the loss is computed again on these records."""
        records, index = self.watch.records, torch.tensor(rows)
        made: dict[int, Tensor] = {id(x): x.detach()[index].requires_grad_() for x in outputs}
        sources = list(made.values())
        made |= {id(x): x.detach()[index] for x in beside}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self._again(made, [loss], lambda x: x.detach()[index] if x.dim() and x.shape[0] == records else x)
        found = torch.autograd.grad(made[id(loss)], sources, weight, allow_unused=True)
        return torch.cat([g[0].reshape(-1) for g in found if g is not None])
