"""The judgement of a run's batches: four questions, each of which a loop that treats records apart answers alike.

1. Is anything that model and loss were given made of an earlier batch, or of several rows of this one?
2. Are made-up records' gradients, as the engine claims them, those of the records alone? (Asked once, first: a refusal
   may then say everything.)
3. Are the private ones'? A refusal is one fixed sentence.
4. Does the model write the same into its state, whatever the record?
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

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
from discreet.training.verification.compare import Agreement, Unrepeatable
from discreet.training.verification.inputs import in_several_rows
from discreet.training.verification.listening import ModelTensors
from discreet.training.verification.numbers import BatchNumbers, NumbersOfRun
from discreet.training.verification.replay import READINGS, StepReading
from discreet.training.verification.single_record import SingleRecordRuns, run_made_up_records

with extra("torch"):
    from torch import Tensor

__all__ = ["Judge"]

FEW = 4  # made-up records that are judged


class Judge:
    """Judges the verified batches of one run, and remembers what is to be compared from one to the next.

    ``draw`` gives whole numbers below a bound, at random; ``options`` the optimiser's; ``unverified`` is the user's
    word for what cannot be judged; with ``debug`` a refusal may tell of private records.
    """

    def __init__(
        self,
        draw: Callable[[int], int],
        *,
        options: Callable[[], Sequence[float]] = tuple,
        unverified: str = "",
        debug: bool = False,
    ) -> None:
        self._draw, self._options, self.unverified, self._debug = draw, options, unverified, debug
        self._asked_made_up = self._ran_made_up = False  # whether made-up records were asked of, and could be run
        self._readings = list(READINGS)  # the last that was right comes first
        self.numbers = NumbersOfRun()  # of Python's, on the way to the losses
        self._written_with: dict[str, list[tuple[float, ...]]] = {}  # numbers that the loop wrote into the model
        self._written_by_model: set[str] | None = None  # what lone records' runs write; unknown before one ran
        self._earlier: list[weakref.ref[Tensor]] = []  # what the last batch was made into

    def refuse(self, reason: str) -> None:
        """Refuse what cannot be judged, unless the user vouches for it."""
        if not self.unverified:
            raise PrivateTrainingError(reason)

    @property
    def earlier(self) -> list[Tensor]:
        """What is left of what the last verified batch was made into."""
        return [x for x in (ref() for ref in self._earlier) if x is not None]

    def note_made(self, made: Iterable[Tensor]) -> None:
        """The last batch was made into this, too."""
        self._earlier += map(weakref.ref, made)

    def judge(self, runs: SingleRecordRuns, claims: Sequence[Claim], *, alone: bool, padded: bool) -> None:
        """Refuse a batch, or not; one that is ``padded`` ends with rows that weigh nothing.

        Without claims only what does not need the batch's records is asked: there is one ``alone``, or none whose
        gradient is finite.
        """
        if claims:
            self._refuse_numbers(runs)
        self._refuse_earlier(runs)
        if claims:
            self._refuse_several_rows(runs, stay=padded)
        # of one record every tensor may be a row: those that are not of the batch are taken as they are
        self._judge_made_up_once(runs, StepReading(only_data=alone), least=FEW if alone else 0)
        for claim in claims:
            self._compare(Agreement(runs, claim))
        if claims:
            self._refuse_written(runs)
        self._refuse_written_by_loop(runs)

    # --- gradients -------------------------------------------------------------------------------------------------

    def _compare(self, agreement: Agreement) -> None:
        """Refuse a claim that is wrong under every reading of the tape."""
        runs, wrong = agreement.runs, list[tuple[StepReading, list[Tensor]]]()
        for reading in self._choices(agreement):
            try:
                alone = agreement.gradient(reading)
            except PrivateTrainingError:
                raise
            except Exception:  # refused below, unless another reading shows that the loop is right
                continue
            if not agreement.differs(alone):
                right = replace(reading, counts={}, own={})
                self._readings.sort(key=lambda one: one != right)
                return
            wrong.append((reading, alone))
        if not wrong and runs.private:
            self.refuse(UNJUDGED)
        self._refuse_wrong(agreement, wrong)

    def _choices(self, agreement: Agreement) -> list[StepReading]:
        """The readings of a tape, with each choice of the numbers that count its records. A record that is padded less
        where it is collated alone runs as it is alone: padding that has an effect shows, for others decide how long it
        is."""
        tape, claim = agreement.runs.tape, agreement.claim
        alone = None if tape.alone is None or claim.several else tape.alone((claim.row, *claim.others))
        own = {} if alone is None else {id(x): y for x, y in zip(tape.given, alone, strict=True)}
        choices = self.numbers.choices(tape)
        return [replace(reading, counts=counts, own=own) for reading in self._readings for counts in choices]

    def _refuse_wrong(self, agreement: Agreement, wrong: Sequence[tuple[StepReading, list[Tensor]]]) -> None:
        """Refuse a claim that is wrong under each of these readings, whatever rounding did."""
        names: list[str] = []
        for reading, alone in wrong:
            beyond = self._beyond_rounding(agreement, reading, alone)
            if not beyond:
                return
            names = names or beyond
        if names and (not agreement.runs.private or self._debug):
            self._refuse_written(agreement.runs)
            explanation.refuse(agreement, wrong[0][0], names)
        if names:
            raise MixedRecords(UNEQUAL)

    def _beyond_rounding(self, agreement: Agreement, reading: StepReading, alone: list[Tensor]) -> list[str]:
        """The parameters in which a claim is wrong, whatever rounding did. Where the record alone does not answer alike
        twice, the loop is refused, but of a private record that may be rounding's work, if made-up ones did."""
        try:
            return agreement.beyond_rounding(reading, alone)
        except Unrepeatable:
            if not (agreement.runs.private and self._ran_made_up):
                self.refuse(UNREPEATABLE)
        except Exception:
            self.refuse(UNJUDGED)
        return []

    def _judge_made_up_once(self, runs: SingleRecordRuns, reading: StepReading, least: int) -> None:
        """Ask of made-up records, once; of ``least`` at least. What they cannot be made for is asked of the private
        ones alone."""
        tape = runs.tape
        count = tape.records if tape.sizes else max(least, min(tape.records, FEW))
        if self._asked_made_up or count == 1:  # of one record, which numbers count the records cannot be told
            return
        self._asked_made_up = True
        try:
            made_up, claims = run_made_up_records(runs, count, FEW, reading)
        except PrivateTrainingError:
            raise
        except Exception:  # shapes or values that only records have: the private ones are judged in any case
            return
        self._ran_made_up = True
        for claim in claims:
            self._compare(Agreement(made_up, claim))
        self._refuse_written(made_up)
        self._note_written(made_up)
        if tape.large:
            return_freed_memory()

    # --- what goes in ----------------------------------------------------------------------------------------------

    def _refuse_numbers(self, runs: SingleRecordRuns) -> None:
        """Refuse numbers of Python's that may be made of records; those that count records are counted."""
        if not self.numbers.are_public(BatchNumbers.of(runs.tape, runs.known, self._options())):
            self.refuse(UNKNOWN)

    def _refuse_earlier(self, runs: SingleRecordRuns) -> None:
        """Refuse what an earlier batch was made into: a queue, a memory, a running mean."""
        tape = runs.tape
        if ({id(x) for x in self.earlier} - {id(x) for x in tape.given}) & tape.ancestors():
            raise MixedRecords(EARLIER)
        made = {id(x): x for call in tape.calls for x in call.outputs if id(x) in tape.data}
        self._earlier = [weakref.ref(x) for x in made.values()]

    def _refuse_several_rows(self, runs: SingleRecordRuns, *, stay: bool) -> None:
        """Another record in one row of the batch may change one row of what model and loss are given."""
        records = runs.tape.records
        row = self._draw(records)
        try:
            several = in_several_rows(runs, (row, (row + 1 + self._draw(records - 1)) % records), stay=stay)
        except Exception:
            self.refuse(UNJUDGED)
            return
        if several:
            raise MixedRecords(SEVERAL)

    # --- what is written -------------------------------------------------------------------------------------------

    def _refuse_written(self, runs: SingleRecordRuns) -> None:
        """Refuse state that a forward pass wrote from records: it would be published with the model, without noise."""
        written = runs.written
        if len({rows for rows, *_ in written}) == 1 and written[0][1]:  # does another record write the same?
            self._run_any(runs, (written[0][0][0] + 1) % runs.tape.records)
        for (_, names, state), (_, others, other) in pairwise(written):
            differ = state.changed_since(other) if state is not None and other is not None else names or others
            if differ:
                explanation.refuse_written(differ[0], runs.model)

    def _run_any(self, runs: SingleRecordRuns, row: int) -> None:
        """Run a record in whatever reading; what cannot be run is not known to write the same."""
        for reading in READINGS:
            for counts in self.numbers.choices(runs.tape):
                try:
                    runs.gradient(row, replace(reading, counts=counts))
                    return
                except Exception:  # refused below
                    continue
        self.refuse(UNJUDGED)

    def _refuse_written_by_loop(self, runs: SingleRecordRuns) -> None:
        """Refuse what the loop itself, or a thread of its own, wrote into parameters and buffers: from the batch, or
        nobody knows from what. What a lone record's run writes, too, the model has written."""
        model, tensors, numbers = runs.model, ModelTensors(runs.model), dict[str, list[tuple[float, ...]]]()
        for write in runs.tape.writes:
            name = tensors.name_of(write.target)
            if name is not None and write.of_data:
                explanation.refuse_written(name, model)
            if name is not None:
                numbers.setdefault(name, []).append(write.numbers)
        self._note_written(runs)
        if self._written_by_model is not None and not self.unverified:
            for name in runs.changed_by_batch:
                if name in tensors and name not in self._written_by_model and name not in numbers:
                    explanation.refuse_written(name, model)
        if runs.tape.values_asked and any(x != self._written_with.get(name, x) for name, x in numbers.items()):
            self.refuse(UNKNOWN)  # a number that may have been read off the records
        self._written_with |= numbers

    def _note_written(self, runs: SingleRecordRuns) -> None:
        if runs.written:
            self._written_by_model = self._written_by_model or set()
            self._written_by_model |= {name for _, names, _ in runs.written for name in names}
