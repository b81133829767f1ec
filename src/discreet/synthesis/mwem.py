r"""MWEM: multiplicative weights with the exponential mechanism. Find the worst query, measure it, correct the model.

Decision 365.
"""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from discreet.adjacency import Adjacency
from discreet.errors import choice, number, whole
from discreet.events import Event
from discreet.mechanisms import Exponential
from discreet.mechanisms.budget import AdditiveMechanism, Budget
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.random import Rng
from discreet.synthesis.linear_queries import UNIT, SyntheticCounts, UnitQueries
from discreet.workloads import Workload
from discreet.workloads.strategy import check_histogram, counts
from discreet.workloads.workload import Floats

__all__ = ["MOST_CELLS", "MWEM"]

MOST_CELLS = 10**6
_MOST_RECORDS = 1 << 31
_MOST_ROUNDS = 64  # the weights of so many measured queries are held
_FOR_TOTAL = 0.1  # the share of the budget that measures n where it is not declared
_FOR_CHOICES = 2 / 3  # of the rest: what makes the bound least, see ``error``


@dataclass(frozen=True, slots=True, kw_only=True)
class MWEM(Mechanism[SyntheticCounts]):
    r"""Publishes a histogram A that gives nearly the same answers to ``workload`` as the private histogram B.

    It starts uniform, of ``n`` records in all. Each of T ``rounds`` chooses a query of large error |q(A) - q(B)| by the
    exponential mechanism, measures it with noise, m, and corrects

    .. math:: A(x) \leftarrow A(x) \exp\bigl(q(x)\,(m - q(A))/2n\bigr), \text{ scaled back to } n \text{ in all}.

    With several ``passes`` every query measured so far is corrected for again, in turn, which costs nothing and is
    better in practice. ``output`` is the "last" histogram, or the "average" of those that queries were chosen on.
    Queries have weights in [0, 1]; the domain has at most 10⁶ cells.

    Guarantee: ``n`` is *declared*: never the private sum. Then q(A) is public, and q(B) moves by at most 1 with a
    record, added, removed or replaced; so does each score, computed in whole numbers without rounding. T selections
    with two thirds of the budget and T measurements with one compose. Without ``n``, a tenth of the budget measures it
    first, and ``rounds`` must be given. ``epsilon=`` gives Laplace noise, ``rho=`` Gaussian.

    Error: for one pass and the average, a declared n that is right and ``epsilon=``, with probability 1 - 2T/|Q|

    .. math:: \max_q |q(A) - q(B)| \le 2 n \sqrt{\ln|X| / T} + 9\,T \ln|Q| / \epsilon.

    No theorem is stated for other variants. Without ``rounds``, T is what makes this bound least.
    Reference: Hardt, Ligett and McSherry (2012), Theorem 2.2, whose 10 is 9 by the other split of the budget.

    >>> from discreet.workloads import AllRanges
    >>> mwem = MWEM(workload=AllRanges(64), epsilon=1.0, n=10_000)
    >>> mwem.rounds, mwem.event == (mwem.selection.event + mwem.measurement.event) * 45
    (45, True)
    >>> release = mwem.release(np.arange(64), rng=1)
    >>> round(float(release.value.estimate.sum()))
    10000
    """

    workload: Workload
    epsilon: InitVar[float | None] = None
    rho: InitVar[float | None] = None
    n: int | None = None
    rounds: int | None = None
    passes: int = 20
    output: Literal["last", "average"] = "last"
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    total: AdditiveMechanism | None = field(init=False)
    selection: Exponential = field(init=False)
    measurement: AdditiveMechanism = field(init=False)

    label = "synthetic histogram"

    def __post_init__(self, epsilon: float | None, rho: float | None) -> None:
        adjacency, budget = Adjacency(self.adjacency), Budget(epsilon=epsilon, rho=rho)
        self._check_facts(adjacency)
        rounds = self._best_rounds(budget) if self.rounds is None else whole("rounds", self.rounds, low=1)
        if rounds > _MOST_ROUNDS:
            raise ValueError(f"rounds is {rounds}, but at most {_MOST_ROUNDS} are made.")
        total = None if self.n is not None else budget.part(_FOR_TOTAL).additive(1.0, adjacency=adjacency)
        rest = 1.0 if total is None else 1 - _FOR_TOTAL
        choices, measurements = (budget.part(rest * share) for share in (_FOR_CHOICES, 1 - _FOR_CHOICES))
        chooser = Exponential(sensitivity=float(UNIT), epsilon=choices.selection(rounds), adjacency=adjacency)
        noise = measurements.divide(rounds)[0].additive(1.0, adjacency=adjacency)
        store(self, rounds=rounds, adjacency=adjacency, total=total, selection=chooser, measurement=noise)

    def _check_facts(self, adjacency: Adjacency) -> None:
        UnitQueries(self.workload)
        if self.workload.size > MOST_CELLS:
            raise ValueError(f"The domain has {self.workload.size:,} cells, but at most {MOST_CELLS:,} are held.")
        choice("output", self.output, dict.fromkeys(("last", "average")))
        whole("passes", self.passes, low=1)
        if self.n is not None:
            number("n", whole("n", self.n, low=1), low=1, high=_MOST_RECORDS)
        elif adjacency is not Adjacency.ADD_REMOVE:
            raise ValueError(f"n is not declared, but under {adjacency} adjacency it is public: give n=.")

    def _best_rounds(self, budget: Budget) -> int:
        """The T of least 2n√(ln|X|/T) + 9 T ln|Q|/ε; with ρ in place of ε², which is of the same size."""
        if self.n is None:
            raise ValueError("rounds is missing; it can be chosen from n, but that is not declared either: give one.")
        epsilon = budget.epsilon if budget.epsilon is not None else math.sqrt(budget.rho or 0.0)
        cells, queries = max(2, self.workload.size), max(2, self.workload.queries)
        best: float = (self.n * epsilon * math.sqrt(math.log(cells)) / (9 * math.log(queries))) ** (2 / 3)
        return min(_MOST_ROUNDS, math.ceil(best))

    @property
    def event(self) -> Event:
        """The cost: T choices and T measurements, and the count of records where it is not declared."""
        assert self.rounds is not None
        each = (self.selection.event + self.measurement.event) * self.rounds
        return each if self.total is None else self.total.event + each

    @property
    def has_theorem(self) -> bool:
        """Whether ``error`` can be stated for this variant."""
        return self.n is not None and self.passes == 1 and self.output == "average"

    def error(self, confidence: float = 0.95) -> float:
        r"""What every query's error stays within, in records, with this confidence.

        Of 2T draws each fails with probability β/2T, β = 1 - confidence: a choice, with a share s of the budget, falls
        short of the worst error by at most (2T/sε) ln(2T|Q|/β), a measurement is off by at most (T/(1-s)ε) ln(2T/β).
        At β = 2T/|Q| that is (4/s + 1/(1-s)) T ln|Q|/ε: the paper's 10 at s = 1/2, and least, 9, at s = 2/3. Beside
        it stands 2n√(ln|X|/T). Why: with η = (m - q(A))/2n, the relative entropy from A to B/n, at most ln|X|,
        falls by at least ((q(A) - q(B))² - (m - q(B))²)/4n² in each round (eᶻ ≤ 1 + z + z² for z ≤ 1).
        """
        if not self.has_theorem or self.n is None or self.rounds is None:
            raise ValueError(
                "The theorem is proved for one pass, the average and a declared n: passes=1, output='average', n=."
            )
        beta = 1 - number("confidence", confidence, low=0, high=1, open_high=True)
        each = 1 - beta / (2 * self.rounds)
        short = self.selection.error(each, size=self.workload.queries) / UNIT
        start = 2 * self.n * math.sqrt(math.log(self.workload.size) / self.rounds)
        return start + short + self.measurement.error(each) + 2 * (self.n + 1) / UNIT

    @property
    def stated_error(self) -> float | None:
        """The theorem's error with 95 % confidence; none for a variant without one."""
        return self.error() if self.has_theorem else None

    def check(self, data: Any) -> None:
        """A histogram over the workload's cells."""
        check_histogram(data, self.workload.shape)

    def draw(self, data: Any, rng: Rng) -> SyntheticCounts:
        """The corrected histogram, in the workload's shape."""
        assert self.rounds is not None
        x, queries = counts(data, self.workload.shape), UnitQueries(self.workload)
        exact = queries.exact(x)
        n = float(self.n) if self.n is not None else self._measured_total(x, rng)
        model = np.full(self.workload.shape, n / self.workload.size)
        average, measured = np.zeros_like(model), []
        for _ in range(self.rounds):
            average += model / self.rounds
            chosen = self.selection.draw(np.abs(exact - queries.near(model)), rng)
            noisy = float(self.measurement.draw(_share(exact[chosen]), rng))
            measured.append((self.workload.row(chosen), min(max(noisy, 0.0), n)))
            model = _multiplicative_weights(model, measured if self.passes > 1 else measured[-1:], n, self.passes)
        return SyntheticCounts(self.workload, choice("output", self.output, {"last": model, "average": average}))

    def _measured_total(self, x: Any, rng: Rng) -> float:
        assert self.total is not None
        noisy = float(self.total.draw(sum(int(v) for v in x.reshape(-1)), rng))
        return min(max(noisy, 1.0), float(_MOST_RECORDS))


def _share(answer: Any) -> Any:
    """A whole number of units as the number it stands for: exactly, a double where that holds it."""
    exact = Fraction(int(answer), UNIT)
    return float(exact) if Fraction(float(exact)) == exact else exact


def _multiplicative_weights(model: Floats, measured: list[tuple[Floats, float]], n: float, passes: int) -> Floats:
    """The model after ``passes`` rounds of multiplicative weights over what was measured; public."""
    for _ in range(passes):
        for weights, answer in measured:
            pull = (answer - float((weights * model).sum())) / (2 * n)
            model = model * np.exp(weights * pull)
            model *= n / float(model.sum())
    return model
