r"""Was this record in the training data? Attacks (LiRA) on trained models, by shadow models trained as the target was.

Each model is trained on a random half of the records. What is compared is a number for each record and model, the
logit of the probability of the right answer, or minus the loss: large where the record was learned. For the target θ,
with φ its number for record x:

=============  ======================================================================================================
``loss``       φ itself (Yeom et al. 2018)
``lira``       log N(φ; in) − log N(φ; out), the laws of x's number over shadow models with and without it; "online"
``offline``    log-chance of a number below φ without it (Carlini et al. 2022): needs no shadow model with it
``rmia``       the share of other records z with (φ_x above its usual) exceeding (φ_z above its usual) (Zarifzadeh 2024)
``bayes``      LiRA with a normal-inverse-gamma prior on each record's law: Student's t in place of the normal, which is
               what wins with few shadow models
=============  ======================================================================================================

An attack is no proof: it shows what *this* attacker learns. The claimed curve is above every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import random
from discreet.auditing.reading import CannotJudge
from discreet.auditing.roc import ROC
from discreet.errors import extra, whole

__all__ = ["ATTACKS", "Membership", "Trials", "membership"]

Floats = NDArray[np.float64]
Attack = Literal["loss", "lira", "offline", "rmia", "bayes"]


@dataclass(frozen=True, eq=False)
class Trials:
    """What models say of records: ``numbers`` (models × records), and which records each was trained on."""

    numbers: Floats
    members: NDArray[np.bool_]

    def without(self, model: int) -> Trials:
        """The shadow models of a target."""
        keep = np.arange(len(self.numbers)) != model
        return Trials(self.numbers[keep], self.members[keep])

    def moments(self, inside: bool) -> tuple[Floats, Floats, Floats]:
        """Of each record's numbers over the models with it, or without: how many, mean, sum of squared deviations."""
        chosen = self.members if inside else ~self.members
        count = chosen.sum(0).astype(np.float64)
        mean = np.where(chosen, self.numbers, 0.0).sum(0) / np.maximum(count, 1)
        squares = np.where(chosen, (self.numbers - mean) ** 2, 0.0).sum(0)
        return count, np.where(count > 0, mean, float(self.numbers.mean())), squares


def _loss(phi: Floats, shadows: Trials) -> Floats:
    return phi


def _spread(count: Floats, squares: Floats) -> Floats:
    """A deviation for each record; one for all where there are few models, which is what the paper advises."""
    pooled = float(np.sqrt(squares.sum() / max((count - 1).clip(0).sum(), 1.0))) + 1e-12
    own = np.sqrt(squares / np.maximum(count - 1, 1)) + 1e-12
    return np.where(count >= 32, own, pooled)


def _lira(phi: Floats, shadows: Trials) -> Floats:
    from scipy.stats import norm

    (n1, m1, s1), (n0, m0, s0) = (shadows.moments(side) for side in (True, False))
    return np.asarray(norm.logpdf(phi, m1, _spread(n1, s1)) - norm.logpdf(phi, m0, _spread(n0, s0)))


def _offline(phi: Floats, shadows: Trials) -> Floats:
    from scipy.stats import norm

    count, mean, squares = shadows.moments(False)
    return np.asarray(
        norm.logcdf((phi - mean) / _spread(count, squares)) - norm.logsf((phi - mean) / _spread(count, squares))
    )


def _rmia(phi: Floats, shadows: Trials) -> Floats:
    """With logits in place of log-probabilities; the usual is the mean over models without the record and with it."""
    (_, m1, _), (_, m0, _) = (shadows.moments(side) for side in (True, False))
    gain = phi - (m0 + m1) / 2
    return np.searchsorted(np.sort(gain), gain, side="left") / len(gain)


def _bayes(phi: Floats, shadows: Trials) -> Floats:
    found = []
    for side in (True, False):
        count, mean, squares = shadows.moments(side)
        found.append(_predictive(phi, count, mean, squares))
    return np.asarray(found[0] - found[1])


def _predictive(phi: Floats, n: Floats, mean: Floats, squares: Floats) -> Floats:
    """log Student's t: the prior's mean, variance and weight are those of all records together, worth two models."""
    from scipy.stats import t

    weight, degrees = 0.5, 4.0
    variance = float(squares.sum() / max((n - 1).clip(0).sum(), 1.0)) + 1e-12
    prior = float(np.average(mean, weights=np.maximum(n, 1e-9)))
    centre = (weight * prior + n * mean) / (weight + n)
    total = degrees * variance + squares + weight * n / (weight + n) * (mean - prior) ** 2
    scale = np.sqrt(total * (weight + n + 1) / ((degrees + n) * (weight + n)))
    return np.asarray(t.logpdf(phi, degrees + n, centre, scale))


ATTACKS: dict[str, Callable[[Floats, Trials], Floats]] = {
    "loss": _loss,
    "lira": _lira,
    "offline": _offline,
    "rmia": _rmia,
    "bayes": _bayes,
}


@dataclass(frozen=True, eq=False)
class Membership:
    """What an attack found, over all targets; ``roc`` has its curve."""

    attack: str
    roc: ROC
    trials: Trials

    def again(self, attack: Attack) -> Membership:
        """Another attack on the same models."""
        return evaluate_attack(self.trials, attack)


def evaluate_attack(trials: Trials, attack: Attack) -> Membership:
    """Every model in turn is the target, and the others are its shadows."""
    if attack not in ATTACKS:
        raise ValueError(f"attack is {attack!r}, but must be one of {', '.join(map(repr, ATTACKS))}.")
    scores = np.array([ATTACKS[attack](trials.numbers[k], trials.without(k)) for k in range(len(trials.numbers))])
    return Membership(attack, ROC.of(scores[trials.members], scores[~trials.members]), trials)


def membership(
    train: Callable[[NDArray[np.bool_], random.Rng], Any],
    records: int,
    *,
    attack: Attack = "bayes",
    models: int = 16,
    jobs: int = 1,
    progress: Callable[[int, int], object] | None = None,
    rng: random.RngLike = None,
) -> Membership:
    """Train ``models`` models, each on a random half of so many ``records``, and attack every one by the others.

    ``train(chosen, rng)`` trains on the chosen records and returns a number for *each* record, larger where the model
    knows it better; where ``jobs`` is above one it must be picklable. ``progress(done, of)`` is told after each model.
    """
    models, records = whole("models", models, low=3), whole("records", records, low=4)
    streams = random.Streams(rng)
    halves = [streams.sampling(k).words(records) >> np.uint64(63) == 1 for k in range(models)]
    sources = [streams.noise(k) for k in range(models)]
    numbers: list[Floats] = []
    for found in _each(train, list(zip(halves, sources, strict=True)), jobs):
        numbers.append(np.asarray(found, np.float64).reshape(records))
        if not np.isfinite(
            numbers[-1]
        ).all():  # a model that diverged tells nothing, which is not that it leaks nothing
            raise CannotJudge("train gave a number that is not finite, so that records cannot be compared by it.")
        if progress is not None:
            progress(len(numbers), models)
    return evaluate_attack(Trials(np.array(numbers), np.array(halves)), attack)


def _each(train: Any, asked: Sequence[tuple[Any, Any]], jobs: int) -> Any:
    if jobs == 1:
        return (train(*each) for each in asked)
    with extra("sklearn"):
        from joblib import Parallel, delayed
    return Parallel(n_jobs=jobs, return_as="generator")(delayed(train)(*each) for each in asked)
