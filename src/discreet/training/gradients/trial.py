"""A loop's batch run once more on made-up records, watched by the engine: nothing it shows is private."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.claims import Claim, claims
from discreet.training.gradients.lone import LoneRuns
from discreet.training.gradients.readings import Reading, Rows
from discreet.training.gradients.replay import losses
from discreet.training.gradients.tape import Call, LossTape

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["trial"]


def trial(
    tape: LossTape, runs: LoneRuns, records: int, count: int, few: int, reading: Reading
) -> tuple[LossTape, list[Claim]]:
    """The calls of a tape on ``count`` made-up records in place of its ``records``: a tape, and claims about a ``few``
    of them."""
    again = LossTape((), ())
    again.counted = tape.counted
    reading = replace(reading, counts=int(tape.counted))  # what was made of sizes is made again
    given = Rows(runs.row(tape, 0, records, reading), count, again, {})

    def run(call: Call, args: Any, kwargs: Any) -> list[Tensor]:
        call.func(*args, **kwargs)
        return again.calls[-1].outputs

    watch, contraction = runs.watch, runs.contraction
    with runs.from_before(), watch.trial(count) as uses, torch.random.fork_rng(devices=[]), torch.enable_grad():
        watch.listener = again
        try:
            with again:
                found = losses(tape, given, run, reading, count, records)
                for loss, weight in found:
                    loss.backward(weight)
        finally:
            watch.listener, again.finished = None, True
            for p in watch.parameters.values():
                p.grad = None
        uses_of = contraction.of_parameters(uses)
    with torch.no_grad():
        squares = contraction.squares(uses_of, count)
        lost = ~torch.isfinite(torch.stack(squares)).all(0)
        kept = [row for row in range(count) if not bool(lost[row])][-few:]
        rows = [tuple(part) for part in (kept[:1], kept[1:-1], kept[-1:]) if part]
        return again, claims(contraction, uses_of, squares, lost if bool(lost.any()) else None, rows)
