"""PATE-GAN: a student discriminator learns from noisy votes on generated rows, and teaches the generator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discreet.errors import choice, extra, whole
from discreet.pate.discriminators import cross_with_class, crossed_width
from discreet.pate.generating import GeneratorTraining, TeacherGenerator
from discreet.synthesis.layouts import RecordLayout

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

__all__ = ["PATEGAN"]


@dataclass(kw_only=True, eq=False)
class PATEGAN(TeacherGenerator):
    """A generator trained against a student discriminator, which learns from the teachers' noisy votes what looks real.

    In each step ``batch_size`` generated rows are put to the vote: record, or generated? The student sees those rows
    with the noisy outcome, and no record. With ``votes="hard"`` the outcome is the winner, as published; with "share"
    it is the noisy share of teachers, which is the same release and tells the student more where all teachers say
    "generated". The student learns ``student_steps`` times from the labels of the last ``memory`` steps.

    Guarantee: (epsilon, delta): every label is charged, ``steps`` ballots of ``batch_size`` questions (``ballots``).

    Reference: Jordon, Yoon and van der Schaar (2019), "PATE-GAN"; for what public implementations got wrong, Ganev,
    Annamalai and De Cristofaro (2024), arXiv:2406.13985.

    >>> from discreet.schema import Categories, Schema
    >>> rows = {"sex": ["f", "m"] * 50, "sick": ["no", "yes"] * 50}
    >>> facts = Schema(sex=Categories(["f", "m"]), sick=Categories(["no", "yes"]))
    >>> made = PATEGAN(epsilon=1.0, delta=1e-6, n_teachers=5, steps=3).fit(rows, schema=facts, rng=1)
    >>> sorted(made.sample(10, rng=2)), print(made.event_)
    3 x Gaussian(noise_multiplier=7.3...)
    (['sex', 'sick'], None)
    """

    votes: Literal["hard", "share"] = "share"
    student_hidden: int = 64
    student_steps: int = 10
    generator_steps: int = 1
    memory: int = 10

    @property
    def questions(self) -> int:
        """A label for each row."""
        return whole("batch_size", self.batch_size, low=2)

    @property
    def options(self) -> int:
        """Generated, or a record."""
        return 2

    def check(self, layout: RecordLayout) -> None:
        """Refuse what is publicly wrong with the parameters."""
        super().check(layout)
        for name in ("student_hidden", "student_steps", "generator_steps", "memory"):
            whole(name, getattr(self, name), low=1)
        choice("votes", self.votes, dict.fromkeys(("hard", "share")))

    def train(self, run: GeneratorTraining) -> None:
        """Teachers, votes, student, generator, in turn."""
        student = _Student(self, run)
        for _ in range(self.steps):
            run.teach()
            with torch.no_grad():
                made = run.generate_rows(self.batch_size)
            student.learn(made, self._labels(run.noisy(run.teachers.votes(made))))
            for _ in range(self.generator_steps):
                loss = functional.softplus(-student.scores(run.generate_rows(4 * self.batch_size))).mean()
                run.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                run.optimizer.step()

    def _labels(self, noisy: Any) -> Tensor:
        share = np.clip(0.5 + (noisy[:, 1] - noisy[:, 0]) / (2 * self.n_teachers), 0, 1)
        labels = choice("votes", self.votes, {"hard": noisy.argmax(axis=1), "share": share})
        return torch.as_tensor(labels, dtype=torch.float32)


class _Student:
    """A discriminator of generated rows with the labels that were released for them."""

    def __init__(self, settings: PATEGAN, run: GeneratorTraining) -> None:
        self._classes = run.generator.classes
        width = crossed_width(run.generator.width, self._classes)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**62, (1,), generator=run.chance)))
            self._network = nn.Sequential(
                nn.Linear(width, settings.student_hidden), nn.LeakyReLU(0.2), nn.Linear(settings.student_hidden, 1)
            )
        self._optimizer = torch.optim.Adam(self._network.parameters(), lr=settings.lr, betas=(0.5, 0.99))
        self._steps, self._size, self._chance = settings.student_steps, 4 * settings.batch_size, run.chance
        self._memory, self._rows, self._labels = settings.memory, list[Tensor](), list[Tensor]()

    def scores(self, rows: Tensor) -> Tensor:
        """How much it takes each row for a record."""
        found: Tensor = self._network(cross_with_class(rows, self._classes))
        return found[:, 0]

    def learn(self, rows: Tensor, labels: Tensor) -> None:
        """Keep these labels, forget the oldest, and learn from what is kept."""
        self._rows.append(rows)
        self._labels.append(labels)
        del self._rows[: -self._memory], self._labels[: -self._memory]
        every, told = torch.cat(self._rows), torch.cat(self._labels)
        for _ in range(self._steps):
            chosen = torch.randint(len(every), (self._size,), generator=self._chance)
            scores = self.scores(every[chosen])
            loss = functional.binary_cross_entropy_with_logits(scores, told[chosen])
            self._optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimizer.step()
