"""Where records meet, said as plainly as can be: of made-up records, or of a run that was declared not private."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NoReturn

from discreet.errors import extra
from discreet.training.errors import MIXING_LOSS, MixedRecords, PrivateTrainingError
from discreet.training.gradients.claims import Claim
from discreet.training.gradients.trace.places import records_of
from discreet.training.gradients.trace.trees import mapped, tensors
from discreet.training.verification.compare import PRIVATE, Agreement
from discreet.training.verification.readings import StepReading
from discreet.training.verification.single_record import SingleRecordRuns
from discreet.training.verification.tape import LossTape, TapeEntry

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.nn.modules.module import register_module_forward_hook

__all__ = ["refuse", "refuse_written", "warn_of_gradients"]

CLOSE = 1e-3


def refuse(
    claim: Claim, tape: LossTape, runs: SingleRecordRuns, records: int, reading: StepReading, names: list[str]
) -> NoReturn:
    """Say why a claim is not what the record alone gives: the declaration, the model, the loss, or a backward pass."""
    as_declared = Agreement(runs, tape, records, PRIVATE)
    if not as_declared.differing(claim, reading, scale=1.0 if runs.mean else float(records)):
        seen = "does not divide" if runs.mean else "divides"
        raise MixedRecords(
            f"loss_reduction is {'mean' if runs.mean else 'sum'!r}, but the loss {seen} by the number of records. "
            "Declare what it does with the records of a batch: 'mean' or 'sum'."
        )
    claim = replace(claim, others=())  # of its first record
    where = _first_difference(claim.row, tape, runs, records, reading)
    if where is not None:
        path = next((name for name, module in runs.model.named_modules() if module is where), "")
        raise MixedRecords(
            f"The answer of {type(where).__name__} ({path or 'the model'}) for one record depends on the other records "
            "of the batch, so no record has a gradient of its own. Look for means, norms or products over the first "
            "dimension, and for records that change their places."
        )
    if _loss_mixes(claim.row, tape, runs, records, reading):
        raise MixedRecords(MIXING_LOSS)
    raise MixedRecords(
        f"In {type(runs.model).__name__} the gradients of several records meet at parameter {names[0]!r}, or are lost "
        "on the way: the model mixes records, changes their order on the way, or has a hook or a backward pass that "
        "mixes them. Keep every record in its row."
    )


def _outputs(
    call: TapeEntry, given: Any, runs: SingleRecordRuns, row: int, records: int, reading: StepReading
) -> list[Any]:
    """What each module was given and gave in a call of the model, innermost first, without the engine."""
    found: list[Any] = []

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        found.append((module, _numbers(args), _numbers(output)))

    handle = register_module_forward_hook(keep)
    try:
        with torch.no_grad(), runs.from_before(), torch.random.fork_rng(devices=[]):
            args, kwargs = given
            runs.run(call, args, kwargs, runs.chance(row, records, reading))
    finally:
        handle.remove()
    return found


def _first_difference(
    row: int, tape: LossTape, runs: SingleRecordRuns, records: int, reading: StepReading
) -> nn.Module | None:
    """The first module whose answer for a record is another where the record is alone, though it was given the same; of
    the first call."""
    call = next(call for call in tape.calls if call.is_module and call.graded)
    of = runs.row(tape, row, records, reading)
    alone = mapped(lambda x: of(x, True), (call.args, call.kwargs))
    together = mapped(Tensor.detach, (call.args, call.kwargs))
    try:
        whole_run, lone_run = (_outputs(call, given, runs, row, records, reading) for given in (together, alone))
        pairs = zip(whole_run, lone_run, strict=True)
        for (module, *whole), (_, *one) in pairs:
            given, gave = (
                [_differs(x, y, row, records) for x, y in zip(*both, strict=True)]
                for both in zip(whole, one, strict=True)
            )
            if any(gave) and not any(given):
                return module  # type: ignore[no-any-return]
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


def _loss_mixes(row: int, tape: LossTape, runs: SingleRecordRuns, records: int, reading: StepReading) -> bool:
    """Whether the loss is where records meet: the model's answers agree, and a loss follows them."""
    calls = [call for call in tape.calls if call.is_module and call.graded]
    if any(not x.dim() for call in calls for x in call.outputs):
        return True  # the model returns its loss
    return runs.output_gradients_differ(tape, row, records, reading)


def refuse_written(name: str, model: nn.Module) -> NoReturn:
    """Refuse a write by the name of what was written."""
    kinds = [("Parameter", model.named_parameters()), ("Buffer", model.named_buffers())]
    kind = next((kind for kind, found in kinds if name in dict(found)), "Attribute")
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
