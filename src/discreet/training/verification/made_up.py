"""Made-up records in the place of a tape's: what is said of them tells of nobody."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.claims import Claim, claims
from discreet.training.verification.numbers import possible_counts
from discreet.training.verification.replay import Row, StepReading, losses
from discreet.training.verification.single_record import SingleRecordRuns
from discreet.training.verification.tape import LossTape, TapeEntry

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["run_made_up_records"]

LARGE = 300.0  # times the others': a made-up record


@dataclass(frozen=True, slots=True)
class _MadeUpRecords:
    """So many made-up records in place of a batch's, of the same shapes and kinds of numbers: the data of ``tape``."""

    row: Row  # of the batch's tape
    tape: LossTape
    _made: dict[int, Tensor] = field(default_factory=dict)

    def has_rows(self, x: Tensor, of_model: bool) -> bool:
        """Whether a tensor has a row for each record."""
        return self.row.has_rows(x, of_model)

    def __call__(self, x: Tensor, of_model: bool) -> Tensor:
        """Numbers around zero, and small whole ones: what any table has; the last record's are far larger, so that
        others feel it where they meet."""
        batch, dim = self.row.tape, self.row.dim(x, of_model)
        if id(x) in self.row.known:
            return x
        public = self.tape.records == batch.records and id(x) not in batch.data | batch.drawn
        if dim is None or public:
            return batch.originals.get(id(x), x).detach().clone().requires_grad_(x.requires_grad)
        if id(x) not in self._made:
            self._made[id(x)] = made = self._numbers(x, dim)
            self.tape.data.add(id(made))
            self.tape.given.append(made)
        return self._made[id(x)].requires_grad_(x.requires_grad)

    def _numbers(self, x: Tensor, dim: int) -> Tensor:
        records = self.tape.records
        shape = [records if d == dim else size for d, size in enumerate(x.shape)]
        if not (x.is_floating_point() or x.is_complex()):
            return torch.randint(0, 2, shape, device=x.device).to(x.dtype)
        made = torch.randn(shape, dtype=x.dtype, device=x.device)
        made.narrow(dim, records - 1, 1).mul_(LARGE)
        return made


def run_made_up_records(
    runs: SingleRecordRuns, count: int, few: int, reading: StepReading
) -> tuple[SingleRecordRuns, list[Claim]]:
    """The calls of a tape once more, watched, on ``count`` made-up records: what runs those alone, and the engine's
    claims about a ``few`` of them."""
    batch, watch, contraction = runs.tape, runs.clipped.watch, runs.clipped.contraction
    again = LossTape(count)
    # what was made of sizes is made again, so that the new tape has it
    counts = possible_counts(batch.calls_of_losses(), batch.records) if batch.sizes else reading.counts
    made_up = _MadeUpRecords(Row(batch, 0, runs.known, replace(reading, counts=counts)), again)

    def run(call: TapeEntry, args: Any, kwargs: Any) -> list[Tensor]:
        call.func(*args, **kwargs)
        return again.calls[-1].outputs

    with runs.from_before(), watch.trial(count) as uses, torch.random.fork_rng(devices=[]), torch.enable_grad():
        watch.listen(again)
        try:
            with again:
                for loss, weight in losses(batch, made_up, run, counts, count):
                    loss.backward(weight)
        finally:
            watch.listen(None)
            again.finish()
            for p in watch.parameters.values():
                p.grad = None
        uses_of = contraction.of_parameters(uses)
    with torch.no_grad():
        squares = contraction.squares(uses_of, count)
        lost = ~torch.isfinite(torch.stack(squares)).all(0)
        kept = [row for row in range(count) if not bool(lost[row])][-few:]
        rows = [tuple(part) for part in (kept[:1], kept[1:-1], kept[-1:]) if part]
        claimed = claims(contraction, uses_of, squares, lost if bool(lost.any()) else None, rows)
    return SingleRecordRuns(again, runs.clipped, runs.model, runs.before, private=False), claimed
