"""What each noise would do to a planned run, before anything is spent; and the best of them.

All are brought to the same epsilon and compared by the noise in the model: the root of the mean variance, over steps,
of what an optimiser of this momentum and weight decay has summed up of it, in a coordinate, at a step size of 1. Public
facts alone decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from discreet import accounting
from discreet.errors import extra, positive, whole
from discreet.events import Gaussian
from discreet.mechanisms.factorization import Banded as Bands
from discreet.mechanisms.factorization import Strategy, Workload
from discreet.training.noise import BLT, Banded, BandedInverse, Correlated, Independent, LambdaCGD, Noise, Tree
from discreet.training.plan import Plan
from discreet.training.sampling import BallsInBins, Sampler

__all__ = ["Auto", "Expected", "NoiseComparison", "best_of", "candidates", "compare", "expected"]


@dataclass(frozen=True, slots=True)
class Expected:
    """One noise with its sampler: the noise it needs, what it keeps, and the error it leads to."""

    noise: Noise
    sampler: Sampler
    noise_multiplier: float
    vectors: int
    error: float

    @property
    def name(self) -> str:
        """Noise and sampler."""
        return f"{_short(self.noise)}, {type(self.sampler).__name__}"


@dataclass(frozen=True, slots=True)
class NoiseComparison:
    """Noises at one epsilon, the best first. Printing gives a table, ``plot`` bars."""

    epsilon: float
    delta: float
    rows: tuple[Expected, ...]

    def __iter__(self) -> Iterator[Expected]:
        return iter(self.rows)

    def __str__(self) -> str:
        lines = [f"{'noise, sampler':<34} {'multiplier':>10} {'vectors':>8} {'error':>10}"]
        lines += [f"{r.name:<34} {r.noise_multiplier:>10.3f} {r.vectors:>8} {r.error:>10.4g}" for r in self]
        return "\n".join(lines)

    def plot(self, path: str | None = None, *, ax: Any = None) -> Any:
        """Draw the errors as bars; save them if a path is given."""
        with extra("report"):
            from matplotlib.figure import Figure

        if ax is None:
            ax = Figure(figsize=(7, 4), layout="constrained").add_subplot()
        rows = self.rows[::-1]
        ax.barh([r.name for r in rows], [r.error for r in rows])
        ax.set_xscale("log")
        ax.set_xlabel(f"expected noise in the model at ε = {self.epsilon:.3g}, δ = {self.delta:g}")
        if path is not None:
            ax.figure.savefig(path)
        return ax


@dataclass(frozen=True, slots=True, kw_only=True)
class Auto:
    """The noise of least expected error that keeps at most ``vectors`` vectors of the model's size.

    >>> Auto(vectors=0)
    Auto(vectors=0, momentum=0.0, decay=1.0)
    """

    vectors: int = 4
    momentum: float = 0.0
    decay: float = 1.0

    def __post_init__(self) -> None:
        whole("vectors", self.vectors)


Pair = tuple[Noise, Callable[[int, int], Sampler]]


def candidates(momentum: float = 0.0, decay: float = 1.0) -> list[Pair]:
    """The noises that are compared where none are given, each with the sampler that it is proved with.

    Independent noise has two: Poisson, and bins that are drawn anew in every pass (kept ones cost more).
    """
    known: dict[str, Any] = {"momentum": momentum, "decay": decay}
    noises: list[Noise] = [Independent(), Tree(**known), LambdaCGD(**known)]
    noises += [BandedInverse(bands=bands, **known) for bands in (4, 16)]
    noises += [BLT(buffers=buffers, **known) for buffers in (2, 4)]
    noises += [Banded(bands=bands, **known) for bands in (2, 4, 8, 16, 32)]
    return [*((noise, noise.sampler) for noise in noises), (Independent(), _bins)]


def compare(
    plan: Plan,
    *,
    delta: float,
    epsilon: float | None = None,
    noises: Sequence[Noise] | None = None,
    momentum: float = 0.0,
    decay: float = 1.0,
) -> NoiseComparison:
    """What each noise would do to a run of this length and batch size; at the plan's epsilon unless another is given.

    >>> from discreet.training import plan_for
    >>> plan = plan_for(10_000, 500, epochs=4, noise_multiplier=1.0)
    >>> print(compare(plan, delta=1e-6, epsilon=2.0, noises=[LambdaCGD(), Tree()]))
    noise, sampler                     multiplier  vectors      error
    LambdaCGD(), KeptBins                   6.292        0    0.01833
    Tree(), KeptBins                        9.975        4    0.03492
    """
    target = accounting.epsilon(plan.event, delta, adjacency=plan.adjacency) if epsilon is None else epsilon
    pairs = candidates(momentum, decay) if noises is None else [(noise, noise.sampler) for noise in noises]
    workload = Workload(plan.steps, momentum, decay)
    return _compare(pairs, plan, workload, positive("epsilon", target), delta)


def best_of(auto: Auto, sampler: Sampler, steps: int, clip_norm: float, epsilon: float, delta: float) -> Expected:
    """The noise that ``Auto`` takes for a run."""
    plan = _Length(sampler, steps, clip_norm)
    fitting = [
        pair
        for pair in candidates(auto.momentum, auto.decay)
        if pair[0].vectors(_dealt(pair, sampler).participation, steps) <= auto.vectors
    ]
    return _compare(fitting, plan, Workload(steps, auto.momentum, auto.decay), epsilon, delta).rows[0]


@dataclass(frozen=True, slots=True)
class _Length:
    """As much of a plan as a comparison needs."""

    sampler: Sampler
    steps: int
    clip_norm: float


def _compare(
    pairs: Sequence[Pair], plan: Plan | _Length, workload: Workload, epsilon: float, delta: float
) -> NoiseComparison:
    clip_norm = plan.clipping.max_grad_norm if isinstance(plan, Plan) else plan.clip_norm
    rows = [expected(pair, plan.sampler, clip_norm, workload, epsilon, delta) for pair in pairs]
    return NoiseComparison(epsilon, delta, tuple(sorted(rows, key=lambda row: row.error)))


def _dealt(pair: Pair, like: Sampler) -> Sampler:
    return pair[1](like.batch_size, like.dataset_size)


def expected(pair: Pair, like: Sampler, clip_norm: float, workload: Workload, epsilon: float, delta: float) -> Expected:
    """What one noise with its sampler would do, at this price."""
    noise, sampler, steps = pair[0], _dealt(pair, like), workload.steps
    taking_part, start = sampler.participation, 1.0
    strategy: Strategy = Bands([1.0], steps)
    if isinstance(noise, Correlated):
        strategy = noise.strategy(taking_part, steps)
        # what known batches would need is near; amplified prices at far too little noise are slow
        known = accounting.calibrate(lambda z: Gaussian(noise_multiplier=z), epsilon=epsilon, delta=delta)
        start = known * strategy.sensitivity(taking_part.pattern(steps)).value
    multiplier = accounting.calibrate(
        partial(_price, noise, taking_part, steps),
        epsilon=epsilon,
        delta=delta,
        adjacency=taking_part.adjacency,
        start=start,
    )
    error = multiplier * strategy.error(workload) * clip_norm / sampler.expected
    return Expected(noise, sampler, multiplier, noise.vectors(taking_part, steps), error)


def _price(noise: Noise, taking_part: Any, steps: int, multiplier: float) -> Any:
    return noise.event(taking_part, [multiplier] * steps)


def _bins(batch_size: int, dataset_size: int) -> Sampler:
    return BallsInBins(batch_size=batch_size, dataset_size=dataset_size)


def _short(noise: Noise) -> str:
    """What was said of it: the parameters that are not the default."""
    fields = getattr(noise, "__dataclass_fields__", {})
    said = {name: getattr(noise, name) for name, f in fields.items() if getattr(noise, name) != f.default}
    kept = {name: value for name, value in said.items() if name not in ("momentum", "decay")}
    return f"{type(noise).__name__}({', '.join(f'{name}={value}' for name, value in kept.items())})"
