"""G-PATE: teachers vote on the direction in which a generated row should move; there is no student."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import choice, extra, number, positive, whole
from discreet.pate.generating import GeneratorTraining, TeacherGenerator
from discreet.synthesis.layouts import RecordLayout, learnt_width

with extra("torch"):
    import torch

__all__ = ["GPATE"]


@dataclass(kw_only=True, eq=False)
class GPATE(TeacherGenerator):
    """A generator whose rows are moved along the teachers' gradients, projected, cut into bins and put to the vote.

    A teacher's gradient at a generated row is projected on ``projections`` random axes, drawn anew in each step from a
    public stream, and each coordinate falls into one of ``vote_bins`` public bins within ± ``reach`` of standard
    normal. The teachers vote on the bin. With ``votes="max"`` the winner's middle is the coordinate, as published, and
    zero where its noisy count is below ``threshold`` of all teachers; with "mean" it is the noisy mean of the middles.
    Both are made of the same noisy counts, so neither the threshold nor the mean costs more than the winner.

    Guarantee: (epsilon, delta): every coordinate of every row is charged, ``steps`` ballots of ``batch_size`` ×
    ``projections`` questions (``ballots``).

    Reference: Long et al. (2021), "G-PATE", arXiv:1906.09338.

    >>> from discreet.synthesis.layouts import Images
    >>> pictures = np.tile([[[0, 255], [255, 0]]], (60, 1, 1))
    >>> made = GPATE(epsilon=1.0, delta=1e-6, n_teachers=5, steps=3, projections=2).fit(
    ...     pictures, schema=Images(shape=(2, 2), bounds=(0, 255)), rng=1
    ... )
    >>> made.sample(10, rng=2).shape
    (10, 2, 2)
    """

    projections: int = 8
    vote_bins: int = 2
    reach: float = 2.0
    votes: Literal["max", "mean"] = "mean"
    threshold: float = 0.0

    @property
    def questions(self) -> int:
        """A coordinate each."""
        return whole("batch_size", self.batch_size, low=2) * whole("projections", self.projections, low=1)

    @property
    def options(self) -> int:
        """Bins of a coordinate."""
        return whole("vote_bins", self.vote_bins, low=2)

    def check(self, layout: RecordLayout) -> None:
        """Refuse what is publicly wrong with the parameters."""
        super().check(layout)
        positive("reach", self.reach)
        number("threshold", self.threshold, low=0, high=1)
        choice("votes", self.votes, dict.fromkeys(("max", "mean")))
        if self.projections > learnt_width(layout):
            raise ValueError(
                f"projections is {self.projections}, but a row has only {learnt_width(layout)} entries to learn."
            )

    @property
    def edges(self) -> NDArray[np.float64]:
        """Between the bins."""
        return np.linspace(-self.reach, self.reach, self.options + 1)[1:-1]

    @property
    def middles(self) -> NDArray[np.float64]:
        """Of the bins."""
        ends = np.linspace(-self.reach, self.reach, self.options + 1)
        return np.asarray((ends[:-1] + ends[1:]) / 2)

    def train(self, run: GeneratorTraining) -> None:
        """Teachers, votes, generator, in turn."""
        width, edges = run.generator.learnt, torch.as_tensor(self.edges, dtype=torch.float32)
        for _ in range(self.steps):
            run.teach()
            made = run.generate_rows(self.batch_size)
            axes = torch.linalg.qr(torch.randn(width, self.projections, generator=run.chance)).Q
            noisy = run.noisy(run.teachers.pulls(made, width, axes, edges))
            pull = torch.as_tensor(self._coordinates(noisy), dtype=torch.float32).view(len(made), -1) @ axes.T
            run.optimizer.zero_grad()
            made[:, :width].backward(-pull / len(made))
            run.optimizer.step()

    def _coordinates(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """One number per question, of its noisy counts."""
        return choice("votes", self.votes, {"mean": self._mean_vote, "max": self._largest_vote})(noisy)

    def _mean_vote(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(noisy @ self.middles / self.n_teachers)

    def _largest_vote(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        sure = noisy.max(axis=1) >= self.threshold * self.n_teachers
        return np.where(sure, self.middles[noisy.argmax(axis=1)], 0.0)
