"""Where records meet, said as plainly as can be: of made-up records, or of a run that was declared not private.

The record is run once alone and once beside all others; what each module was given and gave, and what the loss sends
back, is compared.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from discreet.errors import extra
from discreet.training.errors import MIXING_LOSS, MixedRecords, PrivateTrainingError
from discreet.training.gradients.trace.places import records_of
from discreet.training.gradients.trace.trees import tensors
from discreet.training.verification.compare import Agreement
from discreet.training.verification.replay import StepReading
from discreet.training.verification.single_record import SingleRecordRuns

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.nn.modules.module import register_module_forward_hook

__all__ = ["refuse", "refuse_written", "warn_of_gradients"]

CLOSE = 1e-3

Course = list[tuple[nn.Module | str, list[Tensor], list[Tensor]]]
"""What a run's modules were given and gave, innermost first; at last what the loss was given and sent back."""


def refuse(agreement: Agreement, reading: StepReading, names: list[str]) -> NoReturn:
    """Say why a claim is not what the record alone gives: the declaration, the model, the loss, or a backward pass."""
    runs, model = agreement.runs, agreement.runs.model
    mean = runs.clipped.mean
    if agreement.agrees_if_declared_otherwise(reading):
        raise MixedRecords(
            f"loss_reduction is {'mean' if mean else 'sum'!r}, but the loss {'does not divide' if mean else 'divides'} "
            "by the number of records. Declare what it does with the records of a batch: 'mean' or 'sum'."
        )
    where = _first_difference(runs, agreement.claim.row, reading)
    if isinstance(where, nn.Module):
        path = next((name for name, module in model.named_modules() if module is where), "")
        raise MixedRecords(
            f"The answer of {type(where).__name__} ({path or 'the model'}) for one record depends on the other records "
            "of the batch, so no record has a gradient of its own. Look for means, norms or products over the first "
            "dimension, and for records that change their places."
        )
    if where is not None:
        raise MixedRecords(MIXING_LOSS)
    raise MixedRecords(
        f"In {type(model).__name__} the gradients of several records meet at parameter {names[0]!r}, or are lost "
        "on the way: the model mixes records, changes their order on the way, or has a hook or a backward pass that "
        "mixes them. Keep every record in its row."
    )


def _follow(runs: SingleRecordRuns, row: int, reading: StepReading) -> Course:
    course, answers, sent = Course(), list[Tensor](), list[Tensor]()
    outermost = [call.func for call in runs.tape.calls if call.is_module and call.graded]

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        course.append((module, _numbers(args), _numbers(output)))
        for x in tensors(output) if module in outermost else ():
            if x.requires_grad:
                answers.append(x.detach().clone())
                sent.append(torch.zeros_like(x))
                x.register_hook(partial(sent.__setitem__, len(sent) - 1))

    handle = register_module_forward_hook(keep)
    try:
        runs.gradient(row, reading)
    finally:
        handle.remove()
    return [*course, ("loss", answers, sent)]


def _first_difference(runs: SingleRecordRuns, row: int, reading: StepReading) -> nn.Module | str | None:
    """The first module whose answer for a record is another where the record is alone, though it was given the same; or
    the loss, if that is where records meet."""
    records = runs.tape.records
    scale = float(records) if runs.clipped.mean else 1.0
    everybody = replace(reading, others=tuple(range(1, records)), copies=1)  # in their order
    try:
        together, alone = _follow(runs, 0, everybody), _follow(runs, row, replace(reading, others=()))
        for (where, *whole), (_, *one) in zip(together, alone, strict=True):
            if where == "loss":
                whole[1] = [x * scale for x in whole[1]]
                # the model returns its loss, or a lone record has none, as where it is divided by a spread
                if any(not x.dim() for x in whole[1]) or not all(bool(torch.isfinite(y).all()) for y in one[1]):
                    return where
            given, gave = (
                [_differs(x, y, row, records) for x, y in zip(*both, strict=True)]
                for both in zip(whole, one, strict=True)
            )
            if any(gave) and not any(given):
                return where
    except Exception:  # another module runs for one record than for many: the place is not known, the refusal stands
        return None
    return None


def _numbers(tree: Any) -> list[Tensor]:
    return [x.detach().clone() for x in tensors(tree) if x.is_floating_point()]


def _differs(whole: Tensor, alone: Tensor, row: int, records: int) -> bool:
    """Whether a record's part of a tensor is not what it is alone."""
    dim = records_of(whole, records)
    if dim is None or alone.dim() != whole.dim() or alone.shape[dim] != 1:
        return False
    one, other = whole.narrow(dim, row, 1), alone
    if one.shape != other.shape or not bool(torch.isfinite(one).all() and torch.isfinite(other).all()):
        return False
    return float((one - other).norm()) > CLOSE * float(one.norm() + other.norm()) + 1e-30


def refuse_written(name: str, model: nn.Module) -> NoReturn:
    """Refuse a write by the name of what was written."""
    kinds = [("Parameter", model.named_parameters()), ("Buffer", model.named_buffers())]
    kind = next((kind for kind, named in kinds if name in dict(named)), "Attribute")
    raise PrivateTrainingError(
        f"{kind} {name!r} of {type(model).__name__} changes with the records of a batch and is kept with the model, "
        "without noise. Compute it from public data, outside forward, or return it from forward."
    )


def warn_of_gradients() -> None:
    """Say that gradients were looked at before they were there."""
    warnings.warn(
        "Gradients of parameters were asked for between backward and step (clip_grad_norm_, or a log): there are none "
        "yet, so nothing happens to them. Each record's gradient is clipped to max_grad_norm in step.",
        stacklevel=2,
    )
