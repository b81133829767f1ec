"""Whether a claim is what the lone record gives: for each parameter, and for the norms that clipping uses.

Where the two differ, the record is run again: once more as it is, in double precision, and with every operation's
result moved by some units in the last place (``rounding``). Only a record that answers alike each time shows a claim
wrong. So a model that treats records apart is not stopped by a private record, whatever is in it: what rounding may
explain is not judged. Made-up records are judged far more strictly, and nothing about them is private.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from discreet.errors import extra
from discreet.training.gradients.claims import Claim
from discreet.training.verification.replay import Change, StepReading
from discreet.training.verification.rounding import RandomRounding, in_double
from discreet.training.verification.single_record import SingleRecordRuns

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["MADE_UP", "PRIVATE", "Agreement", "Tolerance", "Unrepeatable"]

NOTHING = 1e-12  # of the clip norm
UNSTABLE = 30.0  # times what rounding is seen to move
HALF = 16.0  # units in the last place, where numbers are of half precision


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a claim may be from the lone record's gradient, and how surely rounding must be ruled out."""

    part: float  # of a parameter's gradient
    noise: float  # of a block's gradient: smaller parts of it are rounding
    samples: int  # runs with moved results


MADE_UP = Tolerance(part=1e-4, noise=1e-6, samples=4)
PRIVATE = Tolerance(part=0.05, noise=5e-4, samples=16)
"""Records that meet move each other's gradients by far more than a twentieth. A tie that rounding broke is broken
otherwise in half of the samples, so all 16 of them miss one in 65,000, and ties are rare."""


class Unrepeatable(Exception):
    """The same record alone has another gradient each time."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Compares one claim with the lone record, in several readings."""

    runs: SingleRecordRuns
    claim: Claim

    @property
    def tolerance(self) -> Tolerance:
        """How close they must be."""
        return PRIVATE if self.runs.private else MADE_UP

    def gradient(self, reading: StepReading, change: Change = Tensor.clone) -> list[Tensor]:
        """That of all records that the claim is about, by themselves."""
        others = self.claim.others
        reading = replace(reading, others=others, copies=1) if others else reading
        return self.runs.gradient(self.claim.row, reading, change)

    def differs(self, alone: list[Tensor]) -> bool:
        """Whether the claim is not this gradient, as far as one run can tell."""
        if not _finite(self.claim.gradient):
            return False  # such a record contributes nothing
        return not _finite(alone) or bool(self._beyond(alone))

    def agrees_if_declared_otherwise(self, reading: StepReading) -> bool:
        """Whether the claim would be right if the loss had been declared a mean where it is a sum, or a sum for a
        mean."""
        return not self._beyond(self.gradient(reading), mean=not self.runs.clipped.mean)

    def beyond_rounding(self, reading: StepReading, alone: list[Tensor]) -> list[str]:
        """The parameters in which the claim is not this gradient, where rounding cannot be the reason.

        Raises ``Unrepeatable`` where the record alone does not answer alike twice.
        """
        written = list(self.runs.written)
        try:
            if not _alike(alone, self.gradient(reading)):
                raise Unrepeatable
            if not _finite(alone):  # numbers too large for single precision; made-up ones are not
                return [] if self.runs.private else list(self.runs.parameters)
            names, moved = self._beyond(alone), [0.0] * len(alone)
            for other in self._round_otherwise(reading):
                if other is None or not _finite(other):
                    return []
                moved = [max(m, _distance(a, b)) for m, a, b in zip(moved, other, alone, strict=True)]
                names = self._beyond(alone, moved)
                if not names:
                    break
            return names
        finally:
            self.runs.written[:] = written

    def _round_otherwise(self, reading: StepReading) -> Iterator[list[Tensor] | None]:
        """The gradient as other roundings give it.

        Code that is written for single precision alone, say, fails in double. A private record is then not judged
        (none); a made-up one by those that did not fail.
        """
        model, private = self.runs.model, self.runs.private
        samples = [RandomRounding(model.parameters(), seed) for seed in range(self.tolerance.samples)]
        for where, change in [(in_double(model), Tensor.double), *((sample, sample.moved) for sample in samples)]:
            try:
                with where as sample:
                    other = self.gradient(reading, change)
            except Exception:
                if private:
                    yield None
            else:
                yield None if private and sample is not None and sample.near_overflow else other

    def _beyond(self, alone: list[Tensor], moved: Sequence[float] = (), *, mean: bool | None = None) -> list[str]:
        """The parameters in which a claim is too far away; rounding is known to have ``moved`` each so far."""
        claim, contraction = self.claim, self.runs.clipped.contraction
        mean = self.runs.clipped.mean if mean is None else mean  # whether the loss divides by the number of records
        scale = self.runs.tape.records / (1 + len(claim.others)) if mean else 1.0
        coarse = max(torch.finfo(kind).eps for kind in {g.dtype for g in alone} | self.runs.tape.halves)
        part, blocks = max(self.tolerance.part, HALF * coarse), contraction.block
        own, apart = _norms(alone), _norms([x * scale - y for x, y in zip(claim.gradient, alone, strict=True)])
        wholes = [math.hypot(*(n for n, b in zip(own, blocks, strict=True) if b == i)) for i in range(len(claim.norms))]
        full = [min(c, scale * n) for c, n in zip(contraction.full_weight, claim.largest, strict=True)]
        names, slack = [], 0.0
        for place, (name, parameter) in enumerate(self.runs.parameters.items()):
            block = blocks[place]
            # a record whose loss is saturated has a gradient that is all rounding: it is small beside the others'
            noise = max(self.tolerance.noise, coarse) * max(wholes[block], full[block])
            allowed = part * own[place] + noise + NOTHING * contraction.full_weight[block]
            allowed += UNSTABLE * moved[place] if moved else 0.0
            slack += allowed**2
            # what is claimed of a parameter that was frozen on the way is thrown away
            if parameter.requires_grad and not apart[place] <= allowed:
                names.append(name)
        for block, norm in enumerate(claim.norms):  # a norm that is too small lets a record through
            if not names and norm * scale < wholes[block] - math.sqrt(slack):
                names += [name for name, b in zip(self.runs.parameters, blocks, strict=True) if b == block]
        return names


def _alike(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    """Whether two runs of one record gave one gradient. Where numbers lie in memory may change how they are rounded."""
    own = _norms(one)
    whole = math.hypot(*own)
    return all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) or _distance(a, b) <= PRIVATE.part * n + PRIVATE.noise * whole
        for a, b, n in zip(one, other, own, strict=True)
    )


def _distance(one: Tensor, other: Tensor) -> float:
    return float((one.double() - other.double()).norm())


def _norms(parts: Sequence[Tensor]) -> list[float]:
    norms = [float(norm) for norm in torch._foreach_norm(list(parts))]
    if not all(map(math.isfinite, norms)):  # squares beyond single precision
        norms = [float(part.double().norm()) for part in parts]
    return norms


def _finite(parts: Sequence[Tensor]) -> bool:
    return all(math.isfinite(float(part.sum())) or bool(torch.isfinite(part).all()) for part in parts)
