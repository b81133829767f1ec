r"""Canaries in a private training run: additional records that its own sampler draws, clip and noise included.

Each canary's gradient lies along a coordinate of its own, beside the model's, in the one vector that is clipped, summed
and noised (``training.noise.observer``). A fair coin decides whether it is in; one that is in contributes one clip norm
to every step that it is drawn for. No record moves these coordinates, so that what is released along them is, under the
claim, exactly

.. math:: x_{tk} = a_{tk} b_k + z_t\,(C^{-1} g)_{tk},

for draws a, coins b, the noise multipliers z and the claimed matrix C; :math:`g` is standard normal. ``run_audit``
bounds from that. Where neighbours replace a record, the coin is a sign, and moves the sum by two.

What these coordinates do not show is asked of the weights themselves: entries of every tensor must have at least the
claimed noise.

Guarantee of real records: unchanged. Coins and canaries are independent of records, and what is told
is a function of them, of releases and of the draws of canaries. These are independent of the draws of records where
each record has coins of its own, and where batches are dealt without amplification the price holds for known places.
Batches of a fixed size are refused: their canaries would tell how many records are in them, which the price takes as
unknown. The model is that of a run on so many more records of zero gradient.

Decision 502.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import random
from discreet.adjacency import changed_records
from discreet.auditing.evidence import Lags, NoiseOfBlocks, Repeats, SmallerNoise, WeightNoise
from discreet.auditing.reading import CannotJudge, Scores
from discreet.auditing.run_audit import Observed, RunAudit, judge, refutes
from discreet.auditing.turns import Turns
from discreet.errors import extra, number, probability, whole
from discreet.mechanisms.factorization.strategy import noise_matrix
from discreet.sessions import PaidOnce, one_at_a_time
from discreet.training.errors import PrivateTrainingError
from discreet.training.noise.base import Step
from discreet.training.noise.correlated import Correlated
from discreet.training.noise.observer import Observation, Observer
from discreet.training.plan import Plan
from discreet.training.sampling import FixedSize, Sampler, Shuffled

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["GradientCanaries"]

ENTRIES, TENSORS = 16, 32  # of the weights, whose noise is looked at
LONGEST = 2048  # steps of a run with correlated noise, whose matrix is held
DELTA = 1e-5
REFUTED = (
    "The run's own canaries refute what it claims: {found}. It stops here. What was charged stays charged, and what "
    "was released may be less private than the plan says."
)


@dataclass(frozen=True)
class GradientCanaries(Observer):
    """Canaries for ``make_private(..., audit=GradientCanaries(500))``; afterwards ``optimizer.privacy.audit``.

    Every ``every`` steps the evidence is looked at, which costs nothing of the confidence; with ``halt`` a run that
    refutes its claim stops there. After the last step ``report`` is told, on the first rank. ``delta`` is that of the
    target, or 1e-5.

    >>> from discreet.training import make_private
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> model = torch.nn.Linear(4, 1); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> loader = DataLoader(TensorDataset(torch.zeros(50, 4), torch.zeros(50, 1)), batch_size=25)
    >>> model, optimizer, loader = make_private(model, optimizer, loader, noise_multiplier=1.0, epochs=1,
    ...                                         loss_reduction="mean", audit=GradientCanaries(200, report=None, rng=1))
    >>> for x, y in loader:
    ...     optimizer.zero_grad(); torch.nn.functional.mse_loss(model(x), y).backward(); optimizer.step()
    >>> found = optimizer.privacy.audit
    >>> found.violated, found.steps, 0.3 < found.lower / found.claimed < 1
    (False, 10, True)
    """

    canaries: int = 500
    delta: float | None = None
    confidence: float = 0.95
    every: int = 32
    halt: bool = True
    report: Callable[[RunAudit | CannotJudge], object] | None = print
    rng: random.RngLike = None

    def __post_init__(self) -> None:
        whole("canaries", self.canaries, low=20)
        whole("every", self.every, low=1)
        number("confidence", self.confidence, low=0.5, high=1, open_high=True)
        if self.delta is not None:
            probability("delta", self.delta)

    def begin(self, plan: Plan, parameters: Mapping[str, Tensor], agree: Callable[[Any], Any]) -> Watched:
        """Watch one run."""
        return Watched(self, plan, parameters, agree(random.Streams(self.rng).public(0).word()))


class Watched(PaidOnce, Observation):
    """One run, watched. Steps are noted as they come, and judged some at a time."""

    def __init__(self, asked: GradientCanaries, plan: Plan, parameters: Mapping[str, Tensor], root: int) -> None:
        super().__init__()
        self.asked, self.plan, self.canaries, self._root = asked, plan, asked.canaries, root
        self._matrix = _matrix_of(plan)
        self._entries = _entries_of(parameters, random.Streams(root).public(1).generator)
        self._begin()

    def _begin(self) -> None:
        plan, count = self.plan, self.canaries
        coins = random.Streams(self._root).public(0).words(count) >> np.uint64(63) == 1
        self.inside: NDArray[np.bool_] = coins
        signed = changed_records(plan.adjacency) == 2
        self._signs = torch.from_numpy(np.where(coins, 1.0, -1.0 if signed else 0.0))
        self._released: list[Any] = []  # along canaries, in clip norms
        self._weights: list[Any] = []  # entries of the gradient, in clip norms; where a matrix is claimed, of all steps
        self._drawn: list[NDArray[np.int64]] = []
        self._multipliers: list[float] = []
        self._numbers: list[int] = []
        self._judged = 0
        self._whole = True  # whether every step was seen, from the first
        self._refuted = ""  # why the run was stopped
        self._processes: dict[str, Any] = {
            "scale": SmallerNoise(),
            "lags": Lags(count),
            "repeats": Repeats(plan.steps),
            "blocks": NoiseOfBlocks(plan.steps),
            "turns": _turns_of(plan, count),
            "weights": WeightNoise(),
        }
        self._product = self._energy = self._squares = 0.0
        self._scores, self._whitened = np.zeros(count), np.zeros(count)

    # --- what the run calls ----------------------------------------------------------------------------------------

    def contributions(self, drawn: NDArray[np.int64]) -> Tensor:
        """The sign of each canary drawn that is in; none where the run was refuted, which goes on for nobody."""
        if self._refuted:
            raise PrivateTrainingError(self._refuted)
        signs = torch.zeros(self.canaries)
        at = torch.from_numpy(drawn)
        signs[at] = self._signs[at].float()
        return signs

    @one_at_a_time
    def observe(self, step: Step, drawn: NDArray[np.int64], released: Tensor, gradient: list[Tensor]) -> None:
        """Note a step, and from time to time judge."""
        unit = step.divisor / step.sensitivity
        self._whole &= step.number == len(self._numbers)
        self._released.append(released.float().cpu().numpy() * np.float32(unit))
        if self._entries:
            seen = [gradient[i].view(-1)[at].float().cpu() for i, at in self._entries]
            self._weights.append(torch.stack(seen).numpy() * np.float32(unit))
        self._drawn.append(drawn)
        self._multipliers.append(step.multiplier)
        self._numbers.append(step.number)
        if self.asked.halt and len(self._released) % self.asked.every == 0:
            self._look()
            found = refutes(self.logs, self.asked.confidence)
            if found:
                self._refuted = REFUTED.format(found=found)
                raise PrivateTrainingError(self._refuted)

    # --- what was found --------------------------------------------------------------------------------------------

    @property
    def logs(self) -> dict[str, float]:
        """The logarithm of each e-process."""
        return {name: process.log for name, process in self._processes.items()}

    @property
    def observations(self) -> tuple[Scores, NDArray[np.bool_]]:
        """Of each canary, its coordinate of the released sums in clip norms, added over steps; and whether it is in."""
        return np.sum(self._released, axis=0), self.inside.copy()

    @property
    @one_at_a_time
    def audit(self) -> RunAudit:
        """What canaries say of the steps so far; it reads releases and coins, and costs nothing."""
        if not self._released:
            raise CannotJudge("No step was released yet, so there is nothing to audit.")
        if self._matrix is not None and not self._whole:
            raise CannotJudge(
                "Steps were left out, or a checkpoint was loaded that has no audit: correlated noise can only be "
                "judged where all of it was seen."
            )
        self._look()
        steps, part = len(self._released), self.plan.participation
        rate = getattr(part, "rate", None)

        def price(share: float, least: float | None) -> Any:
            of: Any = part if least is None or rate is None else replace(part, rate=min(1.0, least))  # type: ignore[type-var]
            # correlated noise is paid for at once
            released = self._numbers if self._matrix is None else range(self.plan.steps)
            return self.plan.noise.event(of, [share * self.plan.multiplier(number) for number in released])

        turns = self._processes["turns"]
        return judge(
            Observed(self._product, self._energy, self._squares, steps * self.canaries, turns.drawn, turns.chances),
            self.logs,
            price,
            rate=rate,
            delta=self.asked.delta or (self.plan.asked[1] if self.plan.asked else DELTA),
            confidence=self.asked.confidence,
            steps=steps,
            adjacency=self.plan.adjacency,
            scores=self._scores.copy(),
            inside=self.inside.copy(),
        )

    def report(self) -> None:
        """Tell what was found, or why nothing was: at the end of a run."""
        if self.asked.report is None:
            return
        try:
            found: RunAudit | CannotJudge = self.audit
        except CannotJudge as reason:
            found = reason
        self.asked.report(found)

    def _look(self) -> None:
        """Judge what was noted since the last time."""
        first, last = self._judged, len(self._released)
        if first == last or (self._matrix is not None and not self._whole):
            return
        self._judged = last
        z = np.array(self._multipliers[first:last])
        since = first if self._matrix is None else 0  # whitening looks back
        turns, signals = self._processes["turns"], np.zeros((last - since, self.canaries))
        for row, drawn in zip(signals, self._drawn[since:], strict=True):
            row[drawn] = self._signs.numpy()[drawn]
        for t in range(first, last):
            turns.tell(self._numbers[t], self._drawn[t])
        y = self._whiten(np.array(self._released[since:], np.float64), first) / z[:, None]
        s = self._whiten(signals, first) / z[:, None]
        self._product += float((y * s).sum())
        self._energy += float((s * s).sum())
        self._squares += float((y * y).sum())
        for name in ("scale", "lags", "repeats", "blocks"):
            self._processes[name].tell(y - s)
        if self._weights:
            w = np.array(self._weights, np.float64)
            flat = self._whiten(w.reshape(len(w), -1), 0 if self._matrix is None else first)
            self._processes["weights"].tell((flat / z[-len(flat) :, None]).reshape(-1, *w.shape[1:]))
            if self._matrix is None:
                self._weights.clear()
        rate = getattr(self.plan.participation, "rate", 1 / self.plan.participation.period)
        exponent = (2 * np.array(self._released[first:], np.float64) - 1) / (2 * z[:, None] ** 2)
        mixed = exponent if rate >= 1 else np.logaddexp(math.log1p(-rate), math.log(rate) + exponent)
        self._scores += mixed.sum(0)

    def _whiten(self, rows: Scores, first: int) -> Scores:
        """The rows from ``first`` on, times the claimed matrix."""
        if self._matrix is None:
            return rows
        return np.asarray(self._matrix[first : len(rows), : len(rows)] @ rows)

    # --- checkpoints -----------------------------------------------------------------------------------------------

    @one_at_a_time
    def state_dict(self) -> dict[str, Any]:
        """What was seen: coins, draws and what was released, so that noise that comes again after a restart is known.
        Of the weights nothing: they are looked at anew."""
        return {
            "root": self._root,
            "released": torch.from_numpy(np.array(self._released, np.float32)),
            "drawn": [torch.from_numpy(drawn) for drawn in self._drawn],
            "multipliers": list(self._multipliers),
            "numbers": list(self._numbers),
        }

    @one_at_a_time
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._root = int(state["root"])
        self._begin()
        self._released = list(state["released"].numpy())
        self._drawn = [drawn.numpy() for drawn in state["drawn"]]
        self._multipliers, self._numbers = list(state["multipliers"]), list(state["numbers"])
        self._whole = self._numbers == list(range(len(self._numbers)))
        if self._matrix is not None:  # it would look back to what was not kept
            self._entries = []


def _entries_of(parameters: Mapping[str, Tensor], rng: np.random.Generator) -> list[tuple[int, Tensor]]:
    """Some entries of every tensor; of many tensors, of some; of those that ranks share out, none."""
    plain = [i for i, p in enumerate(parameters.values()) if not hasattr(p, "placements") and p.numel() >= ENTRIES]
    if len(plain) > TENSORS:
        plain = sorted(rng.choice(plain, TENSORS, replace=False).tolist())
    sizes = [p.numel() for p in parameters.values()]
    return [(i, torch.from_numpy(np.sort(rng.choice(sizes[i], ENTRIES, replace=False)))) for i in plain]


def _matrix_of(plan: Plan) -> Scores | None:
    """What whitens the claimed noise; none where it is independent."""
    if not plan.noise.correlated:
        return None
    if not isinstance(plan.noise, Correlated) or plan.steps > LONGEST:
        raise ValueError(
            f"audit needs the matrix of {type(plan.noise).__name__} noise, which is known for Correlated noise of at "
            f"most {LONGEST} steps: leave audit out, or plan fewer steps."
        )
    noise = noise_matrix(plan.noise.strategy(plan.participation, plan.steps))
    factor = np.linalg.cholesky(noise @ noise.T)  # of a triangular matrix of draws, that matrix itself
    return np.asarray(np.linalg.solve(factor, np.eye(plan.steps)))


def _turns_of(plan: Plan, count: int) -> Turns:
    """The claimed law by which canaries are drawn."""
    sampler: Sampler = getattr(plan.sampler, "_law", plan.sampler)
    part = plan.participation
    if isinstance(sampler, FixedSize):
        raise ValueError(
            "audit is given, but batches are of a fixed size: how many canaries one holds would tell how many records "
            "it holds, and the price is amplified by not knowing that. Use Poisson batches or bins, or leave audit out."
        )
    return Turns(
        count,
        plan.steps,
        rate=float(getattr(part, "rate", 1.0)),
        period=part.period,
        kept=bool(part.keeps_place),
        independent=not isinstance(sampler, Shuffled),
        dealt=(sampler.batch_size, sampler.dataset_size) if isinstance(sampler, Shuffled) else None,
    )
