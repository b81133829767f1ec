"""A record's gradient by an independent route: the record alone, through plain autograd, against what is claimed.

Nothing of the engine takes part: the modules run unwatched, the backward pass is torch's own. A claim is judged for
each parameter, and for the norms that clipping uses. Where the two differ by more than rounding was seen to add, the
record is run again with parameters moved by a few units in the last place: what that moves as far (a kink, a sum that
cancels) says nothing about records.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.chance import Handing, Unjudged
from discreet.training.gradients.claims import Claim
from discreet.training.gradients.contraction import Contraction
from discreet.training.gradients.places import records_of
from discreet.training.gradients.readings import Reading, Row, Substitute, Whole
from discreet.training.gradients.replay import given_chance, losses
from discreet.training.gradients.state import State
from discreet.training.gradients.tape import Call, LossTape, run_backward
from discreet.training.gradients.trees import tensors
from discreet.training.gradients.watch import Watch

with extra("torch"):
    import torch
    from torch import Tensor, nn

__all__ = ["Catcher", "LoneRuns"]

TOLERANCE = 1e-3  # of a parameter's gradient
NOISE = 1e-5  # of a block's gradient: smaller parts of it are rounding
TIGHT = 0.1  # of both, for made-up records, one of which is far larger than the others
NOTHING = 1e-12  # of the clip norm
UNSTABLE = 30.0  # times what a perturbation of some units in the last place moves
HALF = 16.0  # units in the last place, where numbers are of half precision


class Catcher:
    """Is told of outermost calls, and keeps what the last one gave, before later hooks changed it."""

    def __init__(self) -> None:
        self.output: Any = None
        self.paused = False

    def called(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Nothing to do."""

    def answered(self, output: Any) -> None:
        """Keep it."""
        self.output = output


class LoneRuns:
    """Runs single records of a tape through the model and the loss, from the state in which the batch met them."""

    def __init__(self, watch: Watch, contraction: Contraction, reduction: str, model: nn.Module, before: State) -> None:
        self.watch, self.contraction, self.model, self._before = watch, contraction, model, before
        self.known = {id(x) for x in [*model.parameters(), *model.buffers()]}
        self.mean = reduction == "mean"
        self.parameters: Mapping[str, Tensor] = watch.parameters
        # of each run: its rows, what it wrote, the state after it
        self.written: list[tuple[tuple[int, ...], list[str], State | None]] = []

    def row(self, tape: LossTape, row: int, records: int, reading: Reading) -> Row:
        """A record of a tape."""
        return Row(tape, row, records, self.known, reading)

    def run(self, call: Call, args: Any, kwargs: Any, chance: Handing) -> list[Tensor]:
        """One call of the model, unwatched; what it drew for the record is handed to it again."""
        catcher, kept = Catcher(), self.watch.listener
        self.watch.listener = catcher
        chance.next(call.draws)
        try:
            with self.watch.unwatched(), given_chance(call), chance:
                call.func(*args, **kwargs)
        finally:
            self.watch.listener = kept
        return tensors(catcher.output)

    def chance(self, row: int, records: int, reading: Reading) -> Handing:
        """What chance did for a record."""
        return Handing((row, *reading.others), records, reading.copies, interleaved=reading.interleaved)

    def gradient(self, tape: LossTape, row: int, records: int, reading: Reading) -> list[Tensor]:
        """The gradient of a record's own loss, by an ordinary backward pass; leaves no trace in the model."""
        with self.from_before(), torch.enable_grad(), torch.random.fork_rng(devices=[]):
            found = self.contraction.scaled(self._backward(tape, self.row(tape, row, records, reading), reading))
            names = self._before.changed_now()
            self.written.append(((row, *reading.others), names, State(self.model) if names else None))
        return found

    @contextmanager
    def from_before(self) -> Iterator[None]:
        """The model in the state in which the batch met it, for the length of a block."""
        now = State(self.model) if self._before.changed_now() else None
        if now is not None:
            self._before.restore()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of one record alone nobody asked
                yield
        finally:
            (now or self._before).restore()

    def output_gradients_differ(self, tape: LossTape, row: int, records: int, reading: Reading) -> bool:
        """Whether the loss sends another gradient to the model's outputs for a record where it is alone."""
        # of the losses as they were: their graph may be gone, so they are computed again, for all and for one
        whole = Whole(tape, self.known)
        alone = self.row(tape, row, records, reading)
        try:
            with self.from_before(), torch.enable_grad(), torch.random.fork_rng(devices=[]):
                together = self._at_outputs(tape, whole, row, records, reading, records)
                by_itself = self._at_outputs(tape, alone, row, records, reading, reading.count)
        except Exception:  # the place is not known, the refusal stands
            return False
        scale = float(records) if self.mean else 1.0
        for x, y in zip(together, by_itself, strict=True):
            dim = records_of(x, records)
            if dim is not None and x.dim() == y.dim():
                part = x.narrow(dim, row, 1) * scale
                if not float((part - y).norm()) <= TOLERANCE * float(part.norm() + y.norm()) + 1e-30:
                    return True
        return False

    def _at_outputs(
        self, tape: LossTape, given: Substitute, row: int, records: int, reading: Reading, count: int
    ) -> list[Tensor]:
        outputs: list[Tensor] = []
        chance = self.chance(row, records, reading)

        def run(call: Call, args: Any, kwargs: Any) -> list[Tensor]:
            given = self.run(call, args, kwargs, chance)
            found = [x.detach().requires_grad_() if x.is_floating_point() else x for x in given]
            outputs.extend(x for x in found if x.requires_grad)
            return found

        found = losses(tape, given, run, reading, count, records)
        total = sum((loss if weight is None else loss * weight).sum() for loss, weight in found)
        assert isinstance(total, Tensor)
        return [
            torch.zeros_like(x) if g is None else g
            for x, g in zip(outputs, torch.autograd.grad(total, outputs, allow_unused=True), strict=True)
        ]

    def _backward(self, tape: LossTape, of: Row, reading: Reading) -> list[Tensor]:
        chance = self.chance(of.row, of.records, reading)

        def run(call: Call, args: Any, kwargs: Any) -> list[Tensor]:
            return self.run(call, args, kwargs, chance)

        found = losses(tape, of, run, reading, reading.count, of.records)
        ours = list(self.parameters.values())
        pairs = [
            (loss, None if weight is None else weight.detach().reshape(loss.shape).to(loss.dtype))
            for loss, weight in found
            if loss.requires_grad
        ]
        if any(weight is None and loss.numel() != 1 for loss, weight in pairs):
            raise Unjudged("loss")
        try:
            if pairs:
                with self.watch.unwatched(), chance:  # checkpointed modules run again
                    run_backward([loss for loss, _ in pairs], [weight for _, weight in pairs])
            times = 1 if self.mean else reading.copies
            return [torch.zeros_like(p) if p.grad is None else _dense(p.grad.detach()) / times for p in ours]
        finally:
            for p in self.model.parameters():
                p.grad = None

    # --- comparing -------------------------------------------------------------------------------------------------

    def differing(
        self,
        claim: Claim,
        tape: LossTape,
        records: int,
        reading: Reading,
        scale: float | None = None,
        *,
        tight: bool = False,
    ) -> list[str]:
        """The parameters whose claimed gradient is not the lone record's; none: they agree.

        ``scale`` times the claim is compared: as many times as there are records, where the loss divides by them.
        """
        if claim.others:
            reading = replace(reading, others=claim.others, copies=1)
        scale = scale or (records / reading.count * reading.copies if self.mean else 1.0)
        alone = self.gradient(tape, claim.row, records, reading)
        coarse = _coarseness(tape, alone)
        if not _finite(claim.gradient):
            return []  # such a record contributes nothing
        if not _finite(alone):
            return list(self.parameters)
        part = TIGHT if tight else 1.0
        found = self._beyond(claim, alone, scale, coarse, part, None)
        if found:
            closer = self._without_onednn(claim, tape, records, reading)
            found = self._beyond(claim, closer, scale, coarse, part, None)
        if found:
            unstable = self._instability(claim, tape, records, reading, alone, coarse)
            found = self._beyond(claim, alone, scale, coarse, part, unstable)
        return found

    def _beyond(
        self, claim: Claim, alone: list[Tensor], scale: float, coarse: float, part: float, unstable: list[float] | None
    ) -> list[str]:
        tolerance, blocks = max(part * TOLERANCE, HALF * coarse), self.contraction.block
        own, apart = (
            _norms(alone),
            _norms([one * scale - other for one, other in zip(claim.gradient, alone, strict=True)]),
        )
        wholes = [math.hypot(*(n for n, b in zip(own, blocks, strict=True) if b == i)) for i in range(len(claim.norms))]
        full = [min(c, scale * n) for c, n in zip(self.contraction.full_weight, claim.largest, strict=True)]
        found, slack = [], 0.0
        for place, name in enumerate(self.parameters):
            block = blocks[place]
            # a record whose loss is saturated has a gradient that is all rounding: it is small beside the others'
            noise = max(part * NOISE, coarse) * max(wholes[block], full[block])
            allowed = tolerance * own[place] + noise + NOTHING * self.contraction.full_weight[block]
            allowed += UNSTABLE * unstable[place] if unstable else 0.0
            slack += allowed**2
            frozen = not self.parameters[name].requires_grad  # on the way: what is claimed of it is thrown away
            if not frozen and not apart[place] <= allowed:
                found.append(name)
        for block, norm in enumerate(claim.norms):  # a norm that is too small lets a record through
            if not found and norm * scale < wholes[block] - math.sqrt(slack):
                found += [name for name, b in zip(self.parameters, blocks, strict=True) if b == block]
        return found

    def _without_onednn(self, claim: Claim, tape: LossTape, records: int, reading: Reading) -> list[Tensor]:
        """The gradient once more: oneDNN adds up all positions of a convolution one after another, so that rounding
        grows with their number. Torch's own loops do not."""
        written = list(self.written)
        with torch.backends.mkldnn.flags(enabled=False, deterministic=None, allow_tf32=None, fp32_precision=None):
            found = self.gradient(tape, claim.row, records, reading)
        self.written[:] = written
        return found

    def _instability(
        self, claim: Claim, tape: LossTape, records: int, reading: Reading, alone: list[Tensor], coarse: float
    ) -> list[float]:
        """How far each parameter's gradient moves when all parameters move by a few units in the last place."""
        most = [0.0] * len(alone)
        for sign in (1.0, -1.0):
            with torch.no_grad():
                kept = [(p, p.detach().clone()) for p in self.parameters.values()]
                for p, before in kept:
                    p.copy_(before * (1 + sign * 8 * max(coarse, torch.finfo(p.dtype).eps)))
            state, self._before, written = self._before, State(self.model), list(self.written)
            try:
                moved = self.gradient(tape, claim.row, records, reading)
            finally:
                self._before, self.written[:] = state, written
                with torch.no_grad():
                    for p, before in kept:
                        p.copy_(before)
            most = [max(m, float((a.double() - b.double()).norm())) for m, a, b in zip(most, moved, alone, strict=True)]
        return most


def _norms(parts: Sequence[Tensor]) -> list[float]:
    found = [float(norm) for norm in torch._foreach_norm(list(parts))]
    if not all(map(math.isfinite, found)):  # squares beyond single precision
        found = [float(part.double().norm()) for part in parts]
    return found


def _finite(parts: Sequence[Tensor]) -> bool:
    return all(math.isfinite(float(part.sum())) or bool(torch.isfinite(part).all()) for part in parts)


def _coarseness(tape: LossTape, gradient: Sequence[Tensor]) -> float:
    """The unit in the last place of the coarsest numbers that take part."""
    kinds = {g.dtype for g in gradient} | {call.casts[1] for call in tape.calls if call.casts[0]}
    kinds |= {x.dtype for call in tape.calls if call.is_module for x in call.outputs if x.is_floating_point()}
    kinds |= tape.halves  # autocast inside forward, and outputs that were cast back
    return max(torch.finfo(kind).eps for kind in kinds)


def _dense(gradient: Tensor) -> Tensor:
    """A table's gradient with all its rows, where only those that were looked up are held."""
    return gradient.to_dense() if gradient.is_sparse else gradient
