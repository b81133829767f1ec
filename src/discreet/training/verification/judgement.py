"""The judgement of one batch: four questions, each of which a loop that treats records apart answers alike.

1. Is anything that model and loss were given made of an earlier batch, or of several rows of this one?
2. Are made-up records' gradients, as the engine claims them, those of the records alone? (Asked once, first: a refusal
   may then say everything.)
3. Are the private ones'? A refusal is one fixed sentence.
4. Does the model write the same into its state, whatever the record?
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from discreet.errors import extra
from discreet.training.errors import (
    EARLIER,
    SEVERAL,
    UNEQUAL,
    UNJUDGED,
    UNKNOWN,
    UNREPEATABLE,
    MixedRecords,
    PrivateTrainingError,
)
from discreet.training.gradients.claims import Claim
from discreet.training.memory import return_freed_memory
from discreet.training.verification import explanation
from discreet.training.verification.compare import MADE_UP, PRIVATE, Agreement, Tolerance, Unrepeatable
from discreet.training.verification.listening import Names
from discreet.training.verification.numbers import BatchNumbers, NumbersOfRun
from discreet.training.verification.readings import READINGS, StepReading
from discreet.training.verification.replay import ancestors, calls_of_losses, recompute_inputs
from discreet.training.verification.single_record import SingleRecordRuns, trial
from discreet.training.verification.tape import LossTape, TapeEntry

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Judgement", "Memory"]

FEW = 4  # made-up records that are judged


@dataclass(slots=True)
class Memory:
    """What is remembered of a run from one verified batch to the next."""

    unverified: str = ""
    debug: bool = False
    told: bool = False  # whether it was said that there are no gradients before step
    made_up: bool = False  # whether made-up records were asked of
    ran_made_up: bool = False  # and whether they could be
    on_the_way: NumbersOfRun = field(default_factory=NumbersOfRun)  # to the losses, put there by Python
    readings: list[StepReading] = field(default_factory=lambda: list(READINGS))  # the last that was right comes first
    written: set[str] = field(
        default_factory=set
    )  # parameters and buffers that a forward pass writes, not from records
    earlier: list[weakref.ref[Tensor]] = field(default_factory=list)  # what the last batch was made into
    by_model: set[str] | None = None  # parameters and buffers that lone records' runs write; unknown before one ran
    numbers: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)  # that the loop wrote into the model with

    def note_warning(self) -> None:
        """It was said that there are no gradients before step."""
        self.told = True

    def note_reading(self, right: StepReading) -> None:
        """A claim is right under this reading: it is tried first from now on."""
        self.readings.sort(key=lambda reading: reading != right)

    def note_made_up(self, *, ran: bool) -> None:
        """Made-up records were asked of; and ``ran``, or could not be run."""
        self.made_up, self.ran_made_up = True, ran

    def note_earlier(self, made: Sequence[weakref.ref[Tensor]], *, more: bool = False) -> None:
        """What the batch was made into, or into what ``more``."""
        self.earlier = [*self.earlier, *made] if more else list(made)

    def note_numbers(self, numbers: dict[str, list[tuple[float, ...]]]) -> None:
        """Numbers that the loop wrote into the model with, by what it wrote into."""
        self.numbers = self.numbers | numbers

    def note_written_by_model(self, names: Sequence[str]) -> None:
        """What a lone record's run has written."""
        self.by_model = (self.by_model or set()) | set(names)

    def refuse(self, error: PrivateTrainingError) -> None:
        """Refuse what cannot be judged, unless the user vouches for it."""
        if not self.unverified:
            raise error


@dataclass(frozen=True, slots=True)
class Judgement:
    """Of the batch on a tape."""

    tape: LossTape
    runs: SingleRecordRuns
    memory: Memory
    draw: Callable[[int], int]
    records: int
    weights: Tensor | None

    def judge(self, claimed: Sequence[Claim]) -> None:
        """Refuse the batch, or not."""
        self._refuse_numbers()
        self._refuse_earlier()
        self._refuse_several_rows()
        self._judge_made_up_once(READINGS[0])
        for claim in claimed:
            self._compare(claim, self.tape, self.records, PRIVATE)
        self._refuse_written(self.tape, self.records)
        self._refuse_written_by_loop()

    def judge_made_up(self, *, alone: bool) -> None:
        """Ask what does not need the batch's records: there is one ``alone``, or none whose gradient is finite."""
        self._refuse_earlier()
        # of one record every tensor may be a row: those that are not of the batch are taken as they are
        self._judge_made_up_once(StepReading(only_data=True) if alone else READINGS[0], FEW if alone else 0)
        self._refuse_written_by_loop()

    def _compare(self, claim: Claim, tape: LossTape, records: int, tolerance: Tolerance) -> None:
        """Refuse a claim that is wrong under every reading of the tape."""
        agreement, wrong = Agreement(self.runs, tape, records, tolerance), list[StepReading]()
        for reading in self._readings(self.memory.readings, tape, records):
            try:
                differs = bool(agreement.differing(claim, reading))
            except PrivateTrainingError:
                raise
            except Exception:  # refused below, unless another reading shows that the loop is right
                continue
            if not differs:
                self.memory.note_reading(replace(reading, counts={}))
                if tolerance.private:
                    self._refuse_padding(claim, reading)
                return
            wrong.append(reading)
        if not wrong and tolerance.private:
            self.memory.refuse(PrivateTrainingError(UNJUDGED))
        self._refuse_wrong(agreement, claim, wrong)

    def _readings(self, readings: Sequence[StepReading], tape: LossTape, records: int) -> list[StepReading]:
        """The readings of a tape, with each choice of the numbers that count its records."""
        numbers = self.memory.on_the_way
        known = tape is self.tape and numbers.counts
        choices = [numbers.counts] if known else numbers.choices(calls_of_losses(tape), records)
        return [replace(reading, counts=counts) for reading in readings for counts in choices]

    def _refuse_wrong(self, agreement: Agreement, claim: Claim, readings: Sequence[StepReading]) -> None:
        """Refuse a claim that is wrong under each of these readings, whatever rounding did."""
        names: list[str] = []
        for reading in readings:
            beyond = self._beyond_rounding(agreement, claim, reading)
            if not beyond:
                return
            names = names or beyond
        if names and (not agreement.tolerance.private or self.memory.debug):
            self._refuse_written(agreement.tape, agreement.records)
            explanation.refuse(claim, agreement.tape, self.runs, agreement.records, readings[0], names)
        if names:
            raise MixedRecords(UNEQUAL)

    def _beyond_rounding(self, agreement: Agreement, claim: Claim, reading: StepReading) -> list[str]:
        """The parameters in which a claim is wrong, whatever rounding did. Where the record alone does not answer alike
        twice, the loop is refused, but of a private record that may be rounding's work, if made-up ones did."""
        try:
            return agreement.beyond_rounding(claim, reading)
        except Unrepeatable:
            if not (agreement.tolerance.private and self.memory.ran_made_up):
                self.memory.refuse(PrivateTrainingError(UNREPEATABLE))
        except Exception:
            self.memory.refuse(PrivateTrainingError(UNJUDGED))
        return []

    def _refuse_padding(self, claim: Claim, reading: StepReading) -> None:
        """Refuse padding that has an effect: others decide how long it is."""
        alone = None if self.tape.alone is None or claim.several else self.tape.alone((claim.row, *claim.others))
        if alone is None:
            return
        reading = replace(reading, own={id(x): y for x, y in zip(self.tape.given, alone, strict=True)})
        agreement = Agreement(self.runs, self.tape, self.records, PRIVATE)
        try:
            wrong = agreement.differing(claim, reading) and self._beyond_rounding(agreement, claim, reading)
        except PrivateTrainingError:
            raise
        except Exception:
            self.memory.refuse(PrivateTrainingError(UNJUDGED))
            return
        if wrong:
            raise MixedRecords(UNEQUAL)

    def _judge_made_up_once(self, reading: StepReading, least: int = 0) -> None:
        """Ask of made-up records, once; of ``least`` at least. What they cannot be made for is asked of the private
        ones alone."""
        if self.memory.made_up:
            return
        count = self.records if self.tape.counted else max(least, min(self.records, FEW))
        if count == 1:  # and which numbers count the records cannot be told
            return
        self.memory.note_made_up(ran=False)
        try:
            made, claimed = trial(self.tape, self.runs, self.records, count, FEW, reading)
        except PrivateTrainingError:
            raise
        except Exception:  # shapes or values that only records have: the private ones are judged in any case
            return
        self.memory.note_made_up(ran=True)
        for claim in claimed:
            self._compare(claim, made, count, MADE_UP)
        self._refuse_written(made, count)
        self._note_written()
        self.runs.written.clear()
        if self.tape.large:
            return_freed_memory()

    def _refuse_numbers(self) -> None:
        """Refuse numbers and tensors of Python's that may be made of records; those that count records are counted."""
        numbers = BatchNumbers.of(self.tape, calls_of_losses(self.tape), self.records, self.runs.known)
        if not self.memory.on_the_way.are_public(numbers):
            self.memory.refuse(PrivateTrainingError(UNKNOWN))

    def _refuse_earlier(self) -> None:
        """Refuse what an earlier batch was made into: a queue, a memory, a running mean."""
        tape, earlier = self.tape, {id(x) for x in (ref() for ref in self.memory.earlier) if x is not None}
        if (earlier - {id(x) for x in tape.given}) & ancestors(tape):
            raise MixedRecords(EARLIER)
        made = {id(x): x for call in tape.calls for x in call.outputs if id(x) in tape.data}
        self.memory.note_earlier([weakref.ref(x) for x in made.values()])

    def _refuse_several_rows(self) -> None:
        """Another record in one row of the batch may change one row of what model and loss are given."""
        tape, records, row = self.tape, self.records, self.draw(self.records)
        rows = row, (row + 1 + self.draw(records - 1)) % records

        def run(call: TapeEntry, args: Any, kwargs: Any) -> list[Tensor]:
            return self.runs.run(call, args, kwargs, self.runs.chance(row, records, READINGS[0]))

        try:
            found = recompute_inputs(tape, records, rows, run)
        except Exception:
            self.memory.refuse(PrivateTrainingError(UNJUDGED))
            return
        if any(all(_rows_changed(one, other, records) is None for other in others) for one, *others in found):
            raise MixedRecords(SEVERAL)
        for place, replaced in enumerate(rows, 1):
            changed = torch.zeros(records, dtype=torch.bool)
            for parts in found:
                rows_changed = _rows_changed(parts[0], parts[place], records)
                changed |= False if rows_changed is None else rows_changed
            moved = self.weights is not None and bool(changed.any()) and not bool(changed[replaced])
            if int(changed.sum()) > 1 or moved:
                raise MixedRecords(SEVERAL)

    def _refuse_written(self, tape: LossTape, records: int) -> None:
        """Refuse state that a forward pass wrote from records: it would be published with the model, without noise."""
        written = self.runs.written
        if len({rows for rows, *_ in written}) == 1 and written[0][1]:  # does another record write the same?
            for reading in self._readings(READINGS, tape, records):
                try:
                    self.runs.gradient(tape, (written[0][0][0] + 1) % records, records, reading)
                    break
                except Exception:  # refused below: what is not known to be the same is not
                    continue
            else:
                self.memory.refuse(PrivateTrainingError(UNJUDGED))
        for (_, names, state), (_, others, other) in pairwise(written):
            differ = state.changed_since(other) if state is not None and other is not None else names or others
            if differ:
                explanation.refuse_written(differ[0], self.runs.model)

    def _refuse_written_by_loop(self) -> None:
        """Refuse what the loop itself, or a thread of its own, wrote into parameters and buffers: from the batch, or
        nobody knows from what. What a lone record's run writes, too, the model has written."""
        model, names, numbers = self.runs.model, Names(self.runs.model), dict[str, list[tuple[float, ...]]]()
        for write in self.tape.writes:
            name = names.of(write.target)
            if name is not None and write.of_data:
                explanation.refuse_written(name, model)
            if name is not None:
                numbers.setdefault(name, []).append(write.numbers)
        self._note_written()
        if self.memory.by_model is not None and not self.memory.unverified:
            for name in self.runs.changed_by_batch:
                if name in names and name not in self.memory.by_model and name not in numbers:
                    explanation.refuse_written(name, model)
        if self.tape.reading and any(numbers[name] != self.memory.numbers.get(name, numbers[name]) for name in numbers):
            self.memory.refuse(PrivateTrainingError(UNKNOWN))  # a number that may have been read off the records
        self.memory.note_numbers(numbers)

    def _note_written(self) -> None:
        if self.runs.written:
            self.memory.note_written_by_model([name for _, names, _ in self.runs.written for name in names])


def _rows_changed(one: Tensor, other: Tensor, records: int) -> Tensor | None:
    """Which records' rows differ between two tensors; none can be told where one without rows differs.

    Several entries a record may be in one dimension, one after another or in turns: as few rows as can be.
    """
    if one.shape != other.shape:
        return None
    differs = (one.nan_to_num() != other.nan_to_num()).cpu()
    if not bool(differs.any()):
        return torch.zeros(records, dtype=torch.bool)
    found = []
    for dim in [d for d in range(min(2, one.dim())) if one.shape[d] and one.shape[d] % records == 0]:
        entries = differs.movedim(dim, 0).reshape(one.shape[dim], -1).any(1)
        found += [entries.view(records, -1).any(1), entries.view(-1, records).any(0)]
    return min(found, key=lambda rows: int(rows.sum()), default=None)
