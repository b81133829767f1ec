"""Whether each record of a batch is in one row of what model and loss are given.

What the loop does with a batch before the model meets it (normalising, augmenting, mixing) is computed again with one
record replaced: that may change one row of each tensor, and the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.trace.random_draws import Unjudged
from discreet.training.gradients.trace.trees import mapped, same_bits
from discreet.training.verification.replay import StepReading
from discreet.training.verification.single_record import SingleRecordRuns
from discreet.training.verification.tape import LossTape, TapeEntry

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["in_several_rows"]

Rows = set[int]


def in_several_rows(runs: SingleRecordRuns, rows: Sequence[int], *, stay: bool) -> bool:
    """Whether a record in one of these rows of the batch is in several of what model and loss are given; or, where rows
    must ``stay``, in another. A tensor without rows may be made of one record, and not of two."""
    tape = runs.tape
    wanted = _made_of_batch(tape)
    written = [x for x, before in tape.before() if not _equal(x, before)]
    if wanted.keys() <= {id(x) for x in tape.given} and not written:
        return False
    wanted |= {id(x): x for x in written}
    before = _computed_again(runs, list(wanted.values()), None)
    if not all(_equal(before[id(x)], x) for x in written if id(x) not in tape.drawn):
        raise Unjudged("written")  # by nobody on the tape
    without_rows = Counter[int]()
    for row in rows:
        after, places = _computed_again(runs, list(wanted.values()), row), Rows()
        for key, x in wanted.items():
            changed = _rows_changed(before.get(key, x), after.get(key, x), tape.records)
            places |= changed or Rows()
            without_rows[key] += changed is None
        if len(places) > 1 or (stay and not places <= {row}):
            return True
    return len(rows) in without_rows.values()


def _made_of_batch(tape: LossTape) -> dict[int, Tensor]:
    """What model and loss were given that was made of the batch, by identity."""
    given = [weight for _, weight in tape.backwards if weight is not None]
    for call in tape.calls:
        if (call.is_module and call.graded) or any(id(x) in tape.after for x in call.inputs):
            given += call.inputs
    return {id(x): x for x in given if id(x) not in tape.after and id(x) in tape.data}


def _computed_again(runs: SingleRecordRuns, wanted: list[Tensor], row: int | None) -> dict[int, Tensor]:
    """What leads from the batch to the wanted tensors, by identity, with the record in a row replaced; what chance made
    stays."""
    tape = runs.tape
    made = {id(x): before.clone() if row is None else _replace_row(before, row) for x, before in tape.before()}
    calls = tape.calls_leading_to(wanted, lambda ids: not ids & (tape.after | tape.drawn))
    produced = {id(x) for call in calls for x in call.outputs}

    def now(x: Tensor) -> Tensor:
        if id(x) in made:
            return made[id(x)]
        return x.detach().clone() if id(x) in produced else x

    def run(call: TapeEntry, args: Any, kwargs: Any) -> list[Tensor]:
        return runs.run(call, args, kwargs, runs.chance(row or 0, StepReading()))

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        for call in calls:
            again = call.again(mapped(now, call.args), mapped(now, call.kwargs), run)
            made |= {id(a): b for a, b in zip(call.outputs, again, strict=True)}
    return made


def _replace_row(x: Tensor, row: int) -> Tensor:
    """Another record in this row: larger than any, so that what takes the largest of a batch shows itself; of whole
    numbers, which may be places in a table, the largest for the smallest."""
    x = x.detach().clone()
    if x.dim() and len(x) > row and x.numel():
        if x.is_floating_point():
            x[row] = 17 * x.abs().max() + 1
        elif x.is_complex() or x.dtype == torch.bool:
            x[row] = x[row].logical_not()
        else:
            x[row] = x.max() - x[row] + x.min()
    return x


def _equal(one: Tensor, other: Tensor) -> bool:
    same = same_bits(one, other) or torch.equal(one, other)
    if same or not one.is_floating_point() or one.shape != other.shape:
        return same
    return torch.allclose(one, other, rtol=1e-5, equal_nan=True)


def _rows_changed(one: Tensor, other: Tensor, records: int) -> Rows | None:
    """Which records' rows differ between two tensors; none can be told where one without rows differs.

    Several entries a record may be in one dimension, one after another or in turns: as few rows as can be.
    """
    if one.shape != other.shape:
        return None
    differs = (one.nan_to_num() != other.nan_to_num()).cpu()
    if not bool(differs.any()):
        return Rows()
    choices = []
    for dim in [d for d in range(min(2, one.dim())) if one.shape[d] and one.shape[d] % records == 0]:
        entries = differs.movedim(dim, 0).reshape(one.shape[dim], -1).any(1)
        choices += [entries.view(records, -1).any(1), entries.view(-1, records).any(0)]
    return min((Rows(rows.nonzero().flatten().tolist()) for rows in choices), key=len, default=None)
