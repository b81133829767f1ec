"""Whether each record of a batch is in one row of what model and loss are given.

What the loop does with a batch before the model meets it (normalising, augmenting, mixing) is computed again with one
record replaced: that may change one row of each tensor, and the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.trace.random_draws import Unjudged
from discreet.training.gradients.trace.trees import mapped, same_bits
from discreet.training.verification.replay import READINGS, make_call
from discreet.training.verification.single_record import SingleRecordRuns
from discreet.training.verification.tape import LossTape, TapeEntry

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["in_several_rows"]


def in_several_rows(runs: SingleRecordRuns, rows: Sequence[int], *, stay: bool) -> bool:
    """Whether a record in one of these rows of the batch is in several of what model and loss are given; or, where rows
    must ``stay``, in another."""
    records, (before, *answers) = runs.tape.records, _recompute_inputs(runs, rows)
    changed = [
        [_rows_changed(one, other, records) for one, other in zip(before, after, strict=True)] for after in answers
    ]
    if any(all(of_one is None for of_one in of_tensor) for of_tensor in zip(*changed, strict=True)):
        return True  # a tensor without rows may be made of one record, and not of two
    for row, of_tensors in zip(rows, changed, strict=True):
        places = sum((x.int() for x in of_tensors if x is not None), torch.zeros(records, dtype=torch.int)).nonzero()
        if len(places) > 1 or (stay and places.flatten().tolist() not in ([], [row])):
            return True
    return False


def _recompute_inputs(runs: SingleRecordRuns, rows: Sequence[int]) -> list[list[Tensor]]:
    """What model and loss were given of the batch: as it was, and for each of ``rows`` with that record replaced.

    The first is replaced by another record, the others by numbers that are larger than any: what takes the largest of a
    batch shows itself.
    """
    tape = runs.tape
    wanted = _made_of_batch(tape)
    written = [x for x, before in tape.before() if not _equal(x, before)]
    if wanted.keys() <= {id(x) for x in tape.given} and not written:
        return [[]] * (1 + len(rows))
    wanted |= {id(x): x for x in written}
    answers = []
    for row in (None, *rows):
        made = {
            id(x): _replace_row(before, row if x.dim() and x.shape[0] == tape.records else None, row == rows[0])
            for x, before in tape.before()
        }
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(0)
            _make_again(runs, list(wanted.values()), made, rows[0])
        if row is None and not all(_equal(made[id(x)], x) for x in written if id(x) not in tape.drawn):
            raise Unjudged("written")  # by nobody on the tape
        answers.append([made.get(id(x), x) for x in wanted.values()])
    return answers


def _made_of_batch(tape: LossTape) -> dict[int, Tensor]:
    """What model and loss were given that was made of the batch, by identity."""
    given = [weight for _, weight in tape.backwards if weight is not None]
    for call in tape.calls:
        if (call.is_module and call.graded) or any(id(x) in tape.after for x in call.inputs):
            given += call.inputs
    return {id(x): x for x in given if id(x) not in tape.after and id(x) in tape.data}


def _equal(one: Tensor, other: Tensor) -> bool:
    same = same_bits(one, other) or torch.equal(one, other)
    if same or not one.is_floating_point() or one.shape != other.shape:
        return same
    return torch.allclose(one, other, rtol=1e-5, equal_nan=True)


def _replace_row(x: Tensor, row: int | None, by_another: bool) -> Tensor:
    x = x.detach().clone()
    if row is not None:
        x[row] = 17 * x.abs().max() + 1 if x.is_floating_point() and not by_another else x[row - 1]
    return x


def _make_again(runs: SingleRecordRuns, wanted: list[Tensor], made: dict[int, Tensor], row: int) -> None:
    """Add to ``made`` what leads from it to the wanted tensors; what chance made stays."""
    tape = runs.tape
    calls = tape.calls_leading_to(wanted, lambda ids: not ids & tape.after and not ids & tape.drawn)
    produced = {id(x) for call in calls for x in call.outputs}

    def now(x: Tensor) -> Tensor:
        if id(x) in made:
            return made[id(x)]
        return x.detach().clone() if id(x) in produced else x

    def run(call: TapeEntry, args: Any, kwargs: Any) -> list[Tensor]:
        return runs.run(call, args, kwargs, runs.chance(row, READINGS[0]))

    for call in calls:
        again = make_call(call, mapped(now, call.args), mapped(now, call.kwargs), run)
        made |= {id(a): b for a, b in zip(call.outputs, again, strict=True)}


def _rows_changed(one: Tensor, other: Tensor, records: int) -> Tensor | None:
    """Which records' rows differ between two tensors; none can be told where one without rows differs.

    Several entries a record may be in one dimension, one after another or in turns: as few rows as can be.
    """
    if one.shape != other.shape:
        return None
    differs = (one.nan_to_num() != other.nan_to_num()).cpu()
    if not bool(differs.any()):
        return torch.zeros(records, dtype=torch.bool)
    choices = []
    for dim in [d for d in range(min(2, one.dim())) if one.shape[d] and one.shape[d] % records == 0]:
        entries = differs.movedim(dim, 0).reshape(one.shape[dim], -1).any(1)
        choices += [entries.view(records, -1).any(1), entries.view(-1, records).any(0)]
    return min(choices, key=lambda rows: int(rows.sum()), default=None)
