r"""Canaries in a private training run: made-up records of which a fair coin decides whether they are in.

*Gradient canaries* wrap the run's noise. In each step that a canary takes part in, its gradient, one clip norm along a
coordinate of its own, is added to the clipped sum before the noise; after the noise its coordinate is read off what is
released, and the canary's part is taken away again. The score of a canary is the log-likelihood ratio of what was read,

.. math:: \sum_t \log\bigl(1 - q + q\,e^{(2x_t - 1)/2z_t^2}\bigr),

for participation with probability q and noise of :math:`z_t` clip norms. They test noise, its correlation over steps,
its scale and its price. *Input canaries* are records that go through loader, model and clipping like all others, and
test those as well; they are scored by what the model says of them, or by what else you like.

Guarantee of real records: unchanged. Coins and canaries are public, so that gradient canaries add to the private sum a
vector that no record decides, and take it away again: what is released is the run without them, up to rounding.
Whatever an audit prints is a function of coins and of what the run releases. Input canaries are additional records of
public origin; the neighbours of a data set with them differ in one private record as before.

Decision 500.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import random
from discreet.adjacency import Adjacency
from discreet.auditing.reading import CannotJudge
from discreet.auditing.single_run import OneRun, audit_run
from discreet.errors import extra, whole
from discreet.events import Event
from discreet.sessions import PaidOnce
from discreet.training.noise import Independent, Noise
from discreet.training.noise.base import Gaussians, Step
from discreet.training.sampling.participation import Participation

with extra("torch"):
    import torch
    from torch import Tensor
    from torch.utils.data import ConcatDataset, DataLoader

__all__ = ["GradientCanaries", "InputCanaries"]


class _Notes(PaidOnce):
    """What is known of one run: which canaries are in, and what was read of them."""

    def __init__(self, rng: random.RngLike) -> None:
        super().__init__()
        self.streams = random.Streams(rng)
        self.places: list[tuple[int, Tensor, NDArray[np.int64]]] | None = None  # tensor, entries, whose they are
        self.inside = np.zeros(0, bool)
        self.scores, self.sums = np.zeros(0), np.zeros(0)
        self.multipliers: list[float] = []
        self.turns: NDArray[np.int64] = np.zeros(0, np.int64)


class GradientCanaries(Noise):
    """The noise of a run, and canaries in it: ``make_private(..., noise=GradientCanaries(1000))``.

    There are ``count`` canaries, or as many as the model has parameters. ``audit(delta)`` judges the run so far;
    with ``every`` steps ``report``, which prints by default, is told, also where nothing can be judged. The handle
    follows the last run that was made.

    >>> from discreet.training import make_private
    >>> canaries = GradientCanaries(200, rng=1)
    >>> model = torch.nn.Linear(400, 1); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> loader = DataLoader(torch.utils.data.TensorDataset(torch.zeros(4, 400), torch.zeros(4, 1)), batch_size=4)
    >>> model, optimizer, loader = make_private(model, optimizer, loader, noise_multiplier=0.5, epochs=1,
    ...                                         loss_reduction="mean", noise=canaries)
    >>> for x, y in loader:
    ...     optimizer.zero_grad(); torch.nn.functional.mse_loss(model(x), y).backward(); optimizer.step()
    >>> found = canaries.audit(delta=1e-5)
    >>> found.violated, found.steps, 1 < found.lower < found.claimed
    (False, 1, True)
    """

    def __init__(
        self,
        count: int,
        *,
        noise: Noise | None = None,
        every: int | None = None,
        delta: float = 1e-5,
        confidence: float = 0.95,
        report: Callable[[OneRun | CannotJudge], object] = print,
        rng: random.RngLike = None,
    ) -> None:
        self.count, self.noise = whole("count", count, low=20), noise or Independent()
        self.every = None if every is None else whole("every", every, low=1)
        self.delta, self.confidence, self.report, self._rng = delta, confidence, report, rng
        self._participation: Participation | None = None
        self._notes = _Notes(rng)

    def __deepcopy__(self, memo: dict[int, Any]) -> GradientCanaries:
        """A run works on a copy, whose notes are this handle's from here on."""
        made = copy.copy(self)
        made.noise = copy.deepcopy(self.noise, memo)
        made._notes = self._notes = _Notes(self._rng)
        return made

    @property
    def correlated(self) -> bool:  # type: ignore[override]
        """Whether the wrapped noise is correlated."""
        return self.noise.correlated

    def event(self, participation: Participation, multipliers: Sequence[float]) -> Event:
        """The price of the noise: canaries cost real records nothing."""
        if participation.period == 1 and not hasattr(participation, "rate"):
            raise ValueError(f"Canaries cannot take part as {type(participation).__name__} says: it has no rate.")
        self._participation = participation
        return self.noise.event(participation, multipliers)

    def release(self, step: Step, total: Sequence[Tensor], gaussians: Gaussians) -> None:
        """Add the canaries that take part, let the noise do its part, read, and take them away."""
        notes = self._notes
        with notes._turn():
            if notes.places is None:
                self._place(total)
            taking = self._taking_part(step.number)
            self._add(total, taking, step.sensitivity)
            self.noise.release(step, total, gaussians)
            read = self._read(total) * (step.divisor / step.sensitivity)
            self._add(total, taking, -step.sensitivity / step.divisor)
            notes.scores += _log_ratio(read, self._rate, step.multiplier)
            notes.sums += read
            notes.multipliers.append(step.multiplier)
            if self.every is not None and len(notes.multipliers) % self.every == 0:
                self.report(self._so_far())

    def state_dict(self) -> dict[str, Any]:
        """The state of the wrapped noise. A resumed run begins with new canaries."""
        return self.noise.state_dict()

    def load_state_dict(self, state: Any) -> None:
        """Load the state of the wrapped noise."""
        self.noise.load_state_dict(state)

    # --- what was found --------------------------------------------------------------------------------------------

    @property
    def observations(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Of each canary, its coordinate of the released sums in clip norms, added over steps; and whether it is in."""
        return self._notes.sums.copy(), self._notes.inside.copy()

    @property
    def executed(self) -> Event:
        """What the steps so far are claimed to cost."""
        if self._participation is None or not self._notes.multipliers:
            raise ValueError("No step was released yet, so there is nothing to audit.")
        return self.noise.event(self._participation, self._notes.multipliers)

    def audit(self, delta: float | None = None, *, confidence: float | None = None) -> OneRun:
        """What the canaries say of the steps so far; it reads releases and coins, and costs nothing."""
        with self._notes._lock:  # scores and steps of the same moment; also from a report, inside a step
            event, scores, steps = self.executed, self._notes.scores.copy(), len(self._notes.multipliers)
        assert self._participation is not None
        return audit_run(
            scores,
            self._notes.inside,
            event,
            delta=self.delta if delta is None else delta,
            confidence=self.confidence if confidence is None else confidence,
            adjacency=self._participation.adjacency,
            steps=steps,
        )

    def _so_far(self) -> OneRun | CannotJudge:
        """The same, or why there is no verdict: a report must not end a run in the middle of a step."""
        try:
            return self.audit()
        except CannotJudge as reason:
            return reason

    # --- where they are --------------------------------------------------------------------------------------------

    @property
    def _rate(self) -> float:
        part = self._participation
        assert part is not None
        return float(getattr(part, "rate", 1 / part.period))

    def _place(self, total: Sequence[Tensor]) -> None:
        """Give each canary an entry of the parameters, and its coin."""
        notes, sizes = self._notes, [part.numel() for part in total]
        count = min(self.count, sum(sizes))
        chosen = np.sort(notes.streams.public(0).generator.choice(sum(sizes), count, replace=False))
        ends = np.cumsum(sizes)
        owner = np.searchsorted(ends, chosen, side="right")
        notes.places = [
            (i, torch.from_numpy(chosen[owner == i] - (ends[i] - sizes[i])), np.flatnonzero(owner == i))
            for i in np.unique(owner).tolist()
        ]
        notes.inside = notes.streams.public(1).words(count) >> np.uint64(63) == 1
        notes.scores, notes.sums = np.zeros(count), np.zeros(count)

    def _taking_part(self, number: int) -> NDArray[np.bool_]:
        """Which canaries are in this step: as a record would, by a coin, in one step of a period, or both."""
        notes, part = self._notes, self._participation
        assert part is not None
        taking: NDArray[np.bool_] = notes.inside
        if part.period > 1:
            if not len(notes.turns) or (number % part.period == 0 and not part.keeps_place):
                drawn = notes.streams.public(3, number // part.period).generator
                notes.turns = drawn.integers(part.period, size=len(notes.inside))
            taking = taking & (notes.turns == number % part.period)
        if hasattr(part, "rate"):
            taking = taking & (notes.streams.public(2, number).generator.random(len(notes.inside)) < part.rate)
        return taking

    def _add(self, total: Sequence[Tensor], taking: NDArray[np.bool_], amount: float) -> None:
        for i, entries, whose in self._notes.places or ():
            part = total[i].view(-1)
            part[entries] += torch.from_numpy(taking[whose]).to(part) * amount

    def _read(self, total: Sequence[Tensor]) -> NDArray[np.float64]:
        found = np.zeros(len(self._notes.inside))
        for i, entries, whose in self._notes.places or ():
            found[whose] = total[i].view(-1)[entries].double().cpu().numpy()
        return found


def _log_ratio(read: NDArray[np.float64], rate: float, z: float) -> NDArray[np.float64]:
    exponent = (2 * read - 1) / (2 * z * z)
    if rate >= 1:
        return exponent
    return np.asarray(np.logaddexp(np.log1p(-rate), np.log(rate) + exponent))


class InputCanaries:
    """Made-up records, about half of which are put among the private ones of a loader.

    >>> records = [(torch.full((3,), float(i)), torch.tensor(1)) for i in range(40)]
    >>> canaries = InputCanaries(records, rng=1)
    >>> private = torch.utils.data.TensorDataset(torch.zeros(100, 3), torch.zeros(100).long())
    >>> len(canaries.insert(DataLoader(private, batch_size=10)).dataset) == 100 + canaries.inside.sum()
    np.True_
    """

    def __init__(self, records: Sequence[Any], *, rng: random.RngLike = None) -> None:
        self.records = list(records)
        whole("number of canaries", len(self.records), low=20)
        self.inside = random.Streams(rng).public(0).words(len(self.records)) >> np.uint64(63) == 1

    def insert(self, loader: DataLoader[Any]) -> DataLoader[Any]:
        """The loader with the canaries that are in among its records, to be handed to ``make_private``."""
        chosen: Any = [record for record, inside in zip(self.records, self.inside, strict=True) if inside]
        return DataLoader(
            ConcatDataset([loader.dataset, chosen]),
            batch_size=loader.batch_size,
            collate_fn=loader.collate_fn,
            num_workers=loader.num_workers,
            pin_memory=loader.pin_memory,
        )

    def audit(
        self,
        scores: ArrayLike | Callable[[Any], float],
        event: Event,
        *,
        delta: float = 1e-5,
        confidence: float = 0.95,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> OneRun:
        """Judge a run of this event by ``scores``, one per canary or a function of it: larger if the model knows it."""
        found = [scores(record) for record in self.records] if callable(scores) else scores
        return audit_run(found, self.inside, event, delta=delta, confidence=confidence, adjacency=adjacency)
