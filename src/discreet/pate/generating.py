"""What PATE-GAN and G-PATE share: the interface of a synthesiser, one operation with one event, teachers and rows.

One path for both: the public facts make the ballots, and the ballots the cost; a book is charged; the records are read,
divided among teachers, and seen from then on through noisy votes alone.

Decision 463.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any, Self

from discreet.adjacency import Adjacency
from discreet.errors import extra, positive, whole
from discreet.events import Event
from discreet.mechanisms.budget import Budget
from discreet.pate.ballots import Ballots
from discreet.pate.discriminators import Parts, TeacherDiscriminators
from discreet.pate.generators import Generator, GeneratorModel, chance_of
from discreet.random import RngLike, Streams
from discreet.release import ONE_RECORD, Chargeable, Release, charged, unit_name
from discreet.schema import Declaration, Schema, as_declaration
from discreet.synthesis.domain import Domain
from discreet.synthesis.layouts import Images, RecordLayout, Rows, TableLayout
from discreet.synthesis.learning import Progress

with extra("torch"):
    import torch

__all__ = ["GeneratorFit", "GeneratorTraining", "TeacherGenerator"]

_KEY, _START, _COINS, _TEACHERS = range(4)  # public streams


@dataclass(kw_only=True, eq=False)
class TeacherGenerator(ABC):
    """Base of the generators that learn from teachers' votes.

    epsilon, delta, adjacency, unit:
        What is spent and whom it protects. The number of ``steps`` is fixed, and the noise follows from it.
    n_teachers, steps, batch_size:
        The more teachers, the less the noise matters and the less each knows; ``batch_size`` generated rows are voted
        on in each of the ``steps``.
    bins, whole:
        As for ``synthesis.TableSynthesizer``: cells of bounded columns, and which of them hold whole numbers.
    target:
        A column of few cells that matters most: discriminators have weights of their own for each of them.
    hidden, latent, teacher_hidden, lr, teacher_lr, teacher_steps, teacher_batch:
        Sizes of the networks and how they learn: they cost nothing.
    """

    epsilon: float = 1.0
    delta: float = 1e-9
    n_teachers: int = 100
    steps: int = 200
    batch_size: int = 32
    adjacency: str = "add-remove"
    unit: str = ONE_RECORD
    bins: Any = 16
    whole: Sequence[str] = ()
    target: str | None = None
    hidden: int = 128
    latent: int = 32
    teacher_hidden: int = 16
    lr: float = 1e-3
    teacher_lr: float = 5e-3
    teacher_steps: int = 2
    teacher_batch: int = 32

    @property
    @abstractmethod
    def questions(self) -> int:
        """How many questions a step asks each teacher."""

    @property
    @abstractmethod
    def options(self) -> int:
        """How many answers a question has."""

    @abstractmethod
    def train(self, run: GeneratorTraining) -> None:
        """All steps; sees records through ``run.noisy`` alone."""

    def ballots(self) -> Ballots:
        """What is asked of the teachers in all, and so what it costs."""
        budget = Budget(epsilon=self.epsilon, delta=self.delta, noise="gaussian")
        return Ballots(
            budget, whole("steps", self.steps, low=1), self.questions, self.options, Adjacency(self.adjacency)
        )

    def operation(
        self, schema: Schema | Declaration | str | PathLike[str] | Images, progress: Progress | None = None
    ) -> GeneratorFit:
        """The fit, as an operation: it knows its cost; ``release(data)`` gives a ``GeneratorModel``."""
        if isinstance(schema, Images):
            return GeneratorFit(self._settings(), schema, progress)
        table = TableLayout(Domain(as_declaration(schema), self.bins, whole=tuple(self.whole)), self.target)
        return GeneratorFit(self._settings(), table, progress)

    def fit(
        self,
        data: Any,
        *,
        schema: Schema | Declaration | str | PathLike[str] | Images,
        book: Chargeable | None = None,
        label: str = "",
        rng: RngLike = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit privately to a table, or to images described by ``Images``; the book is charged before a record is read.

        ``progress`` is called with a share from 0 to 1 and the name of the stage.
        """
        answer = charged(self.operation(schema, progress), data, book=book, label=label, rng=rng)
        self.model_: GeneratorModel = answer.value
        self.event_: Event = answer.event
        self.reproducible_ = answer.reproducible
        return self

    def sample(self, n: int, rng: RngLike = None) -> Any:
        """``n`` synthetic records, as the kind of container that was given to ``fit``."""
        if not hasattr(self, "model_"):
            raise ValueError(f"This {type(self).__name__} is not fitted yet: call fit(data, schema=...) first.")
        return self.model_.sample(n, rng)

    def check(self, layout: RecordLayout) -> None:
        """Refuse what is publicly wrong with the parameters."""
        for name in ("n_teachers", "hidden", "latent", "teacher_hidden", "teacher_steps", "teacher_batch"):
            whole(name, getattr(self, name), low=1)
        for name in ("lr", "teacher_lr"):
            positive(name, getattr(self, name))

    def _settings(self) -> TeacherGenerator:
        """The parameters without what was learnt."""
        return type(self)(**{each.name: getattr(self, each.name) for each in fields(self)})


@dataclass(frozen=True)
class GeneratorFit:
    """The fit of a generator: ``release(data)`` gives a ``GeneratorModel``."""

    settings: TeacherGenerator
    layout: RecordLayout
    progress: Progress | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.settings.check(self.layout)
        _ = self.event, self.unit

    @property
    def event(self) -> Event:
        """The cost of every vote, from public facts alone."""
        return self.settings.ballots().event

    @property
    def unit(self) -> str:
        """The declaration's unit, of which one row counts, or whom a row is all of, on the user's word."""
        return unit_name(self.settings.unit) if self.layout.unit is None else self.layout.unit

    @property
    def label(self) -> str:
        """What a book calls it."""
        return type(self.settings).__name__

    def release(self, data: Any = None, rng: RngLike = None) -> Release[GeneratorModel]:
        """Read the data, train on the teachers' noisy votes, and give the generator."""
        return self.prepare(data, rng)()

    def prepare(self, data: Any = None, rng: RngLike = None) -> Callable[[], Release[GeneratorModel]]:
        """Refuse data whose columns, shapes or types, which are public, do not suit; read nothing."""
        layout, read, streams = self.layout.for_container(data), self.layout.prepare(data), Streams(rng)

        def run() -> Release[GeneratorModel]:
            training = GeneratorTraining(self.settings, layout, read(), streams, self.progress)
            self.settings.train(training)
            model = GeneratorModel(training.generator, layout, self._statement(streams.reproducible))
            return Release(model, self.event, reproducible=streams.reproducible, label=self.label, unit=self.unit)

        return run

    def _statement(self, reproducible: bool) -> dict[str, Any]:
        return {
            "method": self.label,
            "epsilon": self.settings.epsilon,
            "delta": self.settings.delta,
            "adjacency": str(self.settings.adjacency),
            "unit": str(self.unit),
            "event": self.event.to_dict(),
            "reproducible": reproducible,
        }


class GeneratorTraining:
    """One run: a generator, teachers, and the only way from the teachers to the generator, ``noisy``."""

    def __init__(
        self,
        settings: TeacherGenerator,
        layout: RecordLayout,
        rows: Rows,
        streams: Streams,
        progress: Progress | None = None,
    ) -> None:
        self._settings, self._streams, self._progress, self._asked = settings, streams, progress, 0
        self.ballots, self.chance = settings.ballots(), chance_of(streams.public(_COINS))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(streams.public(_START).word() >> 1)
            self.generator = Generator(layout, settings.latent, settings.hidden)
        self.optimizer = torch.optim.Adam(self.generator.parameters(), lr=settings.lr, betas=(0.5, 0.99))
        parts = Parts(rows, settings.n_teachers, streams.public(_KEY).words(4).tobytes())
        self.teachers = TeacherDiscriminators(
            parts,
            settings.n_teachers,
            self.generator.width,
            self.generator.classes,
            settings.teacher_hidden,
            settings.teacher_lr,
            chance_of(streams.public(_TEACHERS)),
        )

    def generate_rows(self, size: int) -> Any:
        """Generated rows."""
        return self.generator(size, self.chance)

    def teach(self) -> None:
        """Let the teachers learn to tell their records from generated rows."""
        settings = self._settings
        for _ in range(settings.teacher_steps):
            with torch.no_grad():
                made = self.generate_rows(max(settings.teacher_batch, 2))
            self.teachers.learn(made, settings.teacher_batch)

    def noisy(self, votes: Any) -> Any:
        """The noisy counts of this step's votes, paid for in advance; there are as many steps as were paid for."""
        if self._asked >= self.ballots.steps:
            raise ValueError(f"All {self.ballots.steps} rounds of votes that were paid for are over.")
        self._asked += 1
        if self._progress is not None:
            self._progress(self._asked / self.ballots.steps, "votes")
        return self.ballots.noisy(votes, self._streams.noise(self._asked))
