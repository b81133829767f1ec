r"""Private Evolution: private records vote for the nearest of public candidates, and the candidates with votes vary.

Decision 370.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.adjacency import Adjacency, changed_records
from discreet.errors import number, whole
from discreet.events import Event
from discreet.mechanisms.budget import AdditiveMechanism, Budget
from discreet.random import RngLike, Streams, as_rng
from discreet.release import ONE_RECORD, Chargeable, Enforced, Release, charged, unit_name
from discreet.synthesis.learning import Progress
from discreet.synthesis.nearest import WIDEST, Embedding, Features, count_votes, embed_rows
from discreet.synthesis.variations import Candidates, Codes, Variations

__all__ = ["Evolve", "EvolveFit", "Population"]

Floats = NDArray[np.float64]
_COARSEST, _FINEST = 1.0, 0.1  # degrees of variation: of the first round, and of the last
_START, _CHANGE = range(2)  # public streams
_CHECKED = 100  # candidates that are looked at before the charge
_MOST = 10**6  # candidates


@dataclass(eq=False)
class Evolve:
    r"""Synthetic records by Private Evolution: for what counts of cells cannot say (images, texts, high orders).

    ``generator`` makes candidates and variations of them, and never sees a record: ``CellVariations`` for tables,
    ``ImageVariations`` and ``StrokeVariations`` for images, ``TextVariations``, or a ``Variations`` of your own around
    any model or API. In each of ``rounds`` every record votes for the candidate of its class that is nearest by
    Euclidean distance; ``embedding``, a public function of rows, says between what (none: the generator's features).
    The counts of votes get Gaussian noise, what lies below ``threshold`` of its standard deviations counts as zero,
    and as many candidates as before are drawn by the rest: one that is drawn once stays, one that is drawn more often
    is joined by variations, smaller ones from round to round.

    Guarantee: (epsilon, delta) for one record. Candidates are functions of public facts and of earlier noisy counts;
    one record more is one vote more (exactly: ``nearest``), so a round is a Gaussian release of sensitivity 1, √2
    where a record is exchanged, and all rounds are composed. A record that does not fit votes for nobody.

    Reference: Lin, Gopi, Kulkarni, Nori and Yekhanin (2024), "Differentially private synthetic data via foundation
    model APIs 1: images". There all candidates are replaced by variations in each round.

    >>> from discreet.schema import Bounded, Categories, Schema
    >>> from discreet.synthesis import CellVariations
    >>> facts = Schema(age=Bounded(0, 100, missing=0), sick=Categories(["no", "yes"]))
    >>> rows = {"age": [20.0, 70.0] * 2000, "sick": ["no", "yes"] * 2000}
    >>> evolved = Evolve(CellVariations(facts, bins=10), epsilon=1.0, delta=1e-6, candidates=50).fit(rows, rng=1)
    >>> sample = evolved.sample(1000, rng=2)
    >>> bool(np.mean((sample["age"] > 50) == (sample["sick"] == "yes")) > 0.9)
    True
    """

    generator: Variations
    embedding: Embedding | None = None
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-9
    rounds: int = 10
    candidates: int = 1000
    threshold: float = 1.0
    adjacency: str = "add-remove"
    unit: str = ONE_RECORD

    def operation(self, progress: Progress | None = None) -> EvolveFit:
        """The fit, as an operation: it knows its cost; ``release(data)`` gives a ``Population``."""
        return EvolveFit(type(self)(**{each.name: getattr(self, each.name) for each in fields(self)}), progress)

    def fit(
        self,
        data: Any,
        *,
        book: Chargeable | None = None,
        label: str = "",
        rng: RngLike = None,
        progress: Progress | None = None,
    ) -> Self:
        """Let the records vote; the book is charged before one is read.

        ``progress`` is called with a share from 0 to 1 and the name of the stage.
        """
        answer = charged(self.operation(progress), data, book=book, label=label, rng=rng)
        self.population_: Population = answer.value
        self.event_: Event = answer.event
        self.reproducible_ = answer.reproducible
        return self

    def sample(self, n: int, rng: RngLike = None, *, degree: float = 0.0) -> Any:
        """``n`` synthetic records, as the kind of container that was given to ``fit``: see ``Population.sample``."""
        if not hasattr(self, "population_"):
            raise ValueError("Nothing has evolved yet: call fit(data) first.")
        return self.population_.sample(n, rng, degree=degree)


@dataclass(frozen=True, eq=False)
class Population:
    """The last candidates, their classes, and how many votes each got, noise included; public."""

    generator: Variations = field(repr=False)
    candidates: Candidates = field(repr=False)
    classes: Codes = field(repr=False)
    votes: Floats = field(repr=False)

    def sample(self, n: int, rng: RngLike = None, *, degree: float = 0.0) -> Any:
        """``n`` records: candidates by their votes, and what is drawn again varied by ``degree`` (zero: repeated)."""
        source, degree = as_rng(rng), number("degree", degree, low=0, high=1)
        drawn = _draw_by_weight(self.votes, whole("n", n, low=1), source.generator)
        chosen = self.candidates[drawn]
        if degree:
            chosen = _vary_repeated(self.generator, chosen, drawn, degree, source.generator)
        order = source.generator.permutation(n)
        return self.generator.values(chosen[order], self.classes[drawn][order], source)


@dataclass(frozen=True)
class EvolveFit:
    """All rounds of votes: ``release(data)`` gives a ``Population``."""

    settings: Evolve
    progress: Progress | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        asked = self.settings
        if not isinstance(asked.generator, Variations):
            raise ValueError(
                f"generator is {type(asked.generator).__name__}, but must make variations, as CellVariations(schema)."
            )
        whole("rounds", asked.rounds, low=1)
        whole("candidates", asked.candidates, low=2 * asked.generator.classes, high=_MOST)
        number("threshold", asked.threshold, low=0, high=100)
        _ = self.counter

    @cached_property
    def counter(self) -> AdditiveMechanism:
        """The noise on one round's counts of votes."""
        asked = self.settings
        budget = Budget(epsilon=asked.epsilon, delta=asked.delta, noise="gaussian").part(1 / asked.rounds)
        moved = changed_records(adjacency := Adjacency(asked.adjacency))
        return budget.additive(moved, asked.candidates, square=moved, adjacency=adjacency)

    @property
    def event(self) -> Event:
        """The cost of every round, from public facts alone."""
        return self.counter.event * self.settings.rounds

    @property
    def asked(self) -> tuple[float, float]:
        """Epsilon and delta it is asked for with."""
        return self.settings.epsilon, self.settings.delta

    @property
    def unit(self) -> str:
        """The declaration's unit, of which one row counts, or what a row stands for, on the user's word."""
        enforced = self.settings.generator.unit
        return unit_name(self.settings.unit) if enforced is None else Enforced(enforced)

    @property
    def label(self) -> str:
        """What a book calls it."""
        return "private evolution"

    def release(self, data: Any = None, rng: RngLike = None) -> Release[Population]:
        """Read the data, and give the candidates that got the votes."""
        return self.prepare(data, rng)()

    def prepare(self, data: Any = None, rng: RngLike = None) -> Callable[[], Release[Population]]:
        """Refuse data whose columns, shapes or types, which are public, do not suit, and a generator that fails."""
        streams, read = Streams(rng), self.settings.generator.prepare(data)
        writer = self.settings.generator.for_container(data)
        evolution = _Evolution(self.settings, self.counter, streams, self.progress)

        def run() -> Release[Population]:
            candidates, votes = evolution.run(*read())
            population = Population(writer, candidates, evolution.classes, votes)
            return Release(population, self.event, reproducible=streams.reproducible, label=self.label, unit=self.unit)

        return run


class _Evolution:
    """The course of one fit; it meets records through noisy counts of votes alone."""

    def __init__(self, asked: Evolve, counter: AdditiveMechanism, streams: Streams, progress: Progress | None) -> None:
        self.asked, self.counter, self.streams, self.progress = asked, counter, streams, progress
        self.classes: Codes = np.sort(np.arange(asked.candidates) % asked.generator.classes)
        self.first = asked.generator.draw(asked.candidates, streams.public(_START).generator)
        self.width: int | None = None
        self._check(streams.public(_START).generator)

    def _check(self, rng: np.random.Generator) -> None:
        """Refuse a generator or an embedding, both public, that fails: after the charge it would cost the budget."""
        generator, first = self.asked.generator, self.first
        if not isinstance(first, np.ndarray) or len(first) != self.asked.candidates:
            raise ValueError(f"draw must give an array with an entry for each of {self.asked.candidates} candidates.")
        varied = np.asarray(generator.vary(first[:2], _COARSEST, rng))
        if varied.shape != first[:2].shape:
            raise ValueError("vary must give an array of the shape it is given: another candidate for each.")
        for some in (varied, first[:_CHECKED]):
            generator.check(rows := generator.rows(some))
            if len(rows) != len(some):
                raise ValueError(f"rows gives {len(rows)} rows for {len(some)} candidates, but must give one for each.")
        features = self._embed(rows)
        self.width = features.shape[1]
        if self.asked.embedding is not None and not 0 < self.width <= WIDEST:
            raise ValueError(f"embedding gives {self.width} numbers, but must give 1 to {WIDEST}, and not fail.")
        if not (features == np.rint(features)).all():
            raise ValueError("embedding (or features) fails on candidates, or gives no whole numbers for some.")
        if not (self._embed(rows[:1]) == features[:1]).all():
            raise ValueError(
                "embedding (or features) says something else of a row beside other rows, or when it is asked again: a "
                "record would move others' votes. Switch off dropout and batch normalisation (model.eval())."
            )

    def run(self, rows: Any, codes: Codes) -> tuple[Candidates, Floats]:
        """The last candidates with their noisy votes."""
        features, may_vote = self._private_features(rows)
        features, codes = features[may_vote], codes[may_vote]
        candidates, rounds = self.first, self.asked.rounds
        degrees = np.geomspace(_COARSEST, _FINEST, rounds - 1)
        for turn in range(rounds):
            if self.progress is not None:
                self.progress(turn / rounds, f"round {turn + 1} of {rounds}")
            own = self._embed(self.asked.generator.rows(candidates))
            exact = count_votes(features, codes, own, self.classes)
            noisy = np.asarray(self.counter.draw(exact, self.streams.noise(turn)), np.float64)
            votes = np.where(np.isfinite(own).all(axis=1), self._above(noisy), 0.0)
            if turn + 1 == rounds:
                break
            candidates = self._next(candidates, votes, float(degrees[turn]), turn)
        if self.progress is not None:
            self.progress(1.0, "done")
        return candidates, votes

    def _above(self, noisy: Floats) -> Floats:
        return np.where(noisy > self.asked.threshold * self.counter.deviation, noisy, 0.0)

    def _next(self, candidates: Candidates, votes: Floats, degree: float, turn: int) -> Candidates:
        """As many of each class as before."""
        rng, following = self.streams.public(_CHANGE, turn).generator, list[Candidates]()
        for code in range(self.asked.generator.classes):
            own = np.flatnonzero(self.classes == code)
            drawn = own[_draw_by_weight(votes[own], len(own), rng)]
            following.append(_vary_repeated(self.asked.generator, candidates[drawn], drawn, degree, rng))
        return np.concatenate(following)  # classes are in order

    def _embed(self, rows: Any) -> Features:
        if self.asked.embedding is None:
            return self.asked.generator.features(rows)
        features, readable = embed_rows(self.asked.embedding, rows, self.width)
        return np.where(readable[:, None], features, np.nan)  # a candidate on which it fails gets no vote

    def _private_features(self, rows: Any) -> tuple[Features, NDArray[np.bool_]]:
        if self.asked.embedding is None:
            return self.asked.generator.features(rows), np.ones(len(rows), bool)
        return embed_rows(self.asked.embedding, rows, self.width)


def _draw_by_weight(weights: Floats, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``n`` places, each as often as its share of the weights, up to one (systematic sampling); in order."""
    total = float(weights.sum())
    shares = np.cumsum(weights / total if total > 0 else np.full(len(weights), 1 / len(weights)))
    places = np.searchsorted(shares, (np.arange(n) + rng.random()) / n * shares[-1], side="right")
    return np.asarray(np.minimum(places, len(weights) - 1))


def _vary_repeated(
    generator: Variations, chosen: Candidates, drawn: NDArray[np.intp], degree: float, rng: np.random.Generator
) -> Candidates:
    """Of equal neighbours the first stays, and each further one becomes a variation."""
    repeated = np.flatnonzero(np.diff(drawn, prepend=-1) == 0)
    if len(repeated):
        varied = np.asarray(generator.vary(chosen[repeated], degree, rng))
        chosen = chosen.astype(np.result_type(chosen, varied))  # a longer text must not be cut
        chosen[repeated] = varied
    return chosen
